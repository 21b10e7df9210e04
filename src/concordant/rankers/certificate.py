"""What is known about a ranker that scores pairs: the theorem, its condition, and what it does not cover."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from concordant.exceptions import UnknownNameError
from concordant.metrics.metric import Metric
from concordant.metrics.standardization import EVERY, NOTHING

__all__ = ["CLAIMS", "Claim", "PairCertificate", "claim_of"]


class Claim(NamedTuple):
    """Under which condition on the labels a decoder of the exact pair scores is optimal, and who shows it."""

    condition: str
    theorem: str


# Of Ramaswamy, Agarwal and Tewari (2013), by metric and decoder.
CLAIMS: Mapping[str, Mapping[str, Claim]] = {
    "ap": {
        "auto": Claim(EVERY, "Theorem 3"),
        "diagonal": Claim("P_reinforce", "Theorem 4"),
        "beam": Claim(NOTHING, ""),
    },
    "pd": {
        "auto": Claim(EVERY, "Theorem 3"),
        "edge-deletion": Claim("P_DAG", "Theorem 7"),
        "borda": Claim("P_f", "Theorem 6"),
        "insertion": Claim(NOTHING, ""),
    },
}
EXPRESSED = {  # what the features must be able to express
    "ap": "E[y_i y_j / sum(y)] of two items by the features of pairs, E[y_i / sum(y)] by those of items",
    "pd": "E[a_ij - a_ji] by the features of pairs",
}
MEANING = {
    "P_reinforce": "an item more relevant on its own is not outweighed by the company it keeps",
    "P_DAG": "the majority preferences have no cycle",
    "P_f": "the majority prefers the item with the larger expected net weight, Duchi's f",
}


@dataclass(frozen=True)
class PairCertificate:
    """What a pair surrogate and a decoder are known to optimise.

    Attributes
    ----------
    metric, surrogate, decoder
        What was fitted, and how it is decoded.
    condition
        On the distribution of the labels: "every distribution", a condition, or "nothing".
    theorem
        Of Ramaswamy, Agarwal and Tewari (2013); empty where none speaks.
    expressed
        What the features must be able to express.
    alpha
        The penalty; consistency is for penalties that go to 0.
    excess
        How far the objective is above its optimum.

    Examples
    --------
    >>> from concordant import metric
    >>> print(PairCertificate.of(metric("pd"), "auto", alpha=0.1, excess=0.0))
    pd, squared loss on pairs, decoder 'auto': consistent for every distribution ...
    """

    metric: str
    surrogate: str
    decoder: str
    condition: str
    theorem: str
    expressed: str
    alpha: float
    excess: float

    @classmethod
    def of(cls, metric: Metric, decoder: Any, *, alpha: float, excess: float) -> PairCertificate:
        """Look the claim up; a decoder that the metric has not is refused."""
        claim, surrogate = claim_of(metric, decoder), "squared loss on pairs"
        return cls(str(metric), surrogate, decoder, *claim, EXPRESSED[metric.name], alpha, excess)

    def __str__(self) -> str:
        subject = f"{self.metric}, {self.surrogate}, decoder {self.decoder!r}"
        solved = f"Here alpha is {self.alpha:g}, and the loss was minimised up to {self.excess:.1e}."
        if self.condition == NOTHING:
            covered = "an order that it proves best (`proven` of each `Decoded`) is as good as one of 'auto'"
            return f"{subject}: no theorem covers this decoder, whatever the labels; {covered}. {solved}"
        source = f"(Ramaswamy, Agarwal and Tewari 2013, {self.theorem})"
        if self.condition == EVERY:
            holds = f"consistent for every distribution {source} on queries whose decode is proven"
            holds += " (`proven` of each `Decoded`)"
        else:
            holds = f"consistent under {self.condition} {source}: {MEANING[self.condition]}"
        limit = f"as data grow and alpha goes to 0, if features can express {self.expressed}"
        silent = "Nothing is said about features that cannot"
        return f"{subject}: {holds}. Consistent means: {limit}. {silent}. {solved}"


def claim_of(metric: Metric, decoder: Any) -> Claim:
    """Give the claim of a metric's decoder; an unknown one is refused."""
    claims = CLAIMS[metric.name]
    if not isinstance(decoder, str) or decoder not in claims:
        raise UnknownNameError(f"decoder of {metric.name}", decoder, claims)
    return claims[decoder]
