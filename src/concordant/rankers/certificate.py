"""What is known about a ranker that scores pairs: the theorem, its condition, and what it does not cover."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from concordant.metrics.standardization import EVERY, NOTHING

__all__ = ["CLAIMS", "Claim", "PairCertificate"]


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
    excess
        How far the objective is above its optimum.

    Examples
    --------
    >>> print(PairCertificate.of("pd", "pd", "auto", excess=0.0))
    pd, squared loss on pairs, decoder 'auto': consistent for every distribution ...
    """

    metric: str
    surrogate: str
    decoder: str
    condition: str
    theorem: str
    excess: float

    @classmethod
    def of(cls, name: str, metric: str, decoder: str, excess: float) -> PairCertificate:
        """Look the claim up by the metric's name."""
        claim = CLAIMS[name][decoder]
        return cls(metric, "squared loss on pairs", decoder, claim.condition, claim.theorem, excess)

    def __str__(self) -> str:
        subject = f"{self.metric}, {self.surrogate}, decoder {self.decoder!r}"
        solved = f"The loss was minimised up to {self.excess:.1e}."
        if self.condition == NOTHING:
            covered = "an order that it proves best (`proven` of each `Decoded`) is as good as one of 'auto'"
            return f"{subject}: no theorem covers this decoder, whatever the labels; {covered}. {solved}"
        source = f"(Ramaswamy, Agarwal and Tewari 2013, {self.theorem})"
        if self.condition == EVERY:
            holds = f"consistent for every distribution {source} on queries whose decode is proven"
            holds += " (`proven` of each `Decoded`)"
        else:
            holds = f"consistent under {self.condition} {source}: {MEANING[self.condition]}"
        limit = (
            "Consistent means: as data grow, and if the pair features can express the expected pair labels."
        )
        return f"{subject}: {holds}. {limit} Nothing is said about features that cannot. {solved}"
