"""What scores of pairs reach and scores of items do not: exact regret for AP and PD as training queries grow.

>>> result = run("ap", [company()], sizes=(300, 3000), n_seeds=3)
>>> for method in ("pairs, exact", "pairs, diagonal", "items, softmax"):
...     curve = result.curve("company", method)
...     print(method, [round(mean, 4) for mean in curve.mean], round(curve.limit, 4))
pairs, exact [0.0, 0.0] 0.0
pairs, diagonal [0.0333, 0.0333] 0.0333
items, softmax [0.0333, 0.0333] 0.0333
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from concordant.evaluation.consistency import (
    DECIMALS,
    SIZES,
    TOL,
    Consistency,
    Curve,
    compared,
    measured,
)
from concordant.evaluation.populations import Population, company, incomplete, misspecified, typical
from concordant.exceptions import UnknownNameError
from concordant.rankers.claim import knowingly
from concordant.rankers.linear import LinearRanker
from concordant.rankers.pairs import PairRanker
from concordant.theory.regret import ROUNDING, bayes, expected
from concordant.types import FloatArray

__all__ = ["ASSUMED", "METHODS", "POPULATIONS", "Method", "run", "shortfall"]


@dataclass(frozen=True)
class Method:
    """How to rank: by scores of pairs and a decoder, or by scores of items and sorting.

    Attributes
    ----------
    decoder
        Of `PairRanker`; empty for scores of items.
    surrogate
        Of `LinearRanker`; empty for scores of pairs.
    """

    decoder: str = ""
    surrogate: str = ""

    @property
    def consistent(self) -> bool:
        """Whether regret goes to zero whatever the labels."""
        return self.decoder == "auto"

    def fitted(
        self, metric: str, population: Population, weights: FloatArray, alpha: float
    ) -> PairRanker | LinearRanker:
        """Give the ranker trained on the population's weighted outcomes."""
        data = population.outcomes().seen(weights)
        # Features stay as they are: their spread over the distinct queries is not that over the draws.
        if self.decoder:
            pairs = PairRanker(
                metric, alpha, features=population.pairs, decoder=self.decoder, fit_scale=False
            )
            with knowingly():  # shortcuts are what is compared
                return pairs.fit(**data)
        items = LinearRanker(
            metric, self.surrogate, alpha, assume=ASSUMED[metric], fit_scale=False, tol=TOL, max_iter=2000
        )
        with knowingly():
            return items.fit(**data)


def scores_of(model: PairRanker | LinearRanker, population: Population) -> FloatArray:
    """Give the items' scores, or their places, negated: rounding errors must not break ties."""
    if isinstance(model, LinearRanker):
        return model.predict(population.X).round(DECIMALS)
    queries = population.distribution.queries
    pairs = model.predict_pairs(population.X, qid=queries)
    places = [model.best_order(u.round(DECIMALS)).positions for u in pairs]
    return queries.scatter(-np.concatenate(places).astype(np.float64))


ASSUMED: Mapping[str, str] = {"ap": "P_reinforce", "pd": "P_f"}
ITEMS = {f"items, {name}": Method(surrogate=name) for name in ("squared", "pairwise", "softmax")}
METHODS: Mapping[str, Mapping[str, Method]] = {
    "ap": {"pairs, exact": Method("auto"), "pairs, diagonal": Method("diagonal"), **ITEMS},
    "pd": {"pairs, exact": Method("auto"), "pairs, edge-deletion": Method("edge-deletion"), **ITEMS},
}
POPULATIONS: Mapping[str, Callable[[], tuple[Population, ...]]] = {
    "ap": lambda: (company(), typical(), misspecified()),
    "pd": lambda: (incomplete(), typical("preferences"), misspecified("preferences")),
}


def run(
    metric: str = "ap",
    populations: Iterable[Population] | None = None,
    *,
    sizes: Sequence[int] = SIZES,
    n_seeds: int = 50,
    step: Callable[[str], None] = lambda _: None,
) -> Consistency:
    """Fit every method on training sets of every size, with penalty 1 / (number of queries).

    Training sets are the same for all methods, and the regret is exact, as in `evaluation.consistency.run`.
    Scores of items are trained on y / sum(y) for AP and on the net weights for PD.

    Parameters
    ----------
    metric
        "ap" or "pd".
    populations
        Where queries come from; None: those of `POPULATIONS`.
    sizes, n_seeds, step
        As for `evaluation.consistency.run`.
    """
    if metric not in METHODS:
        raise UnknownNameError("metric of this experiment", metric, METHODS)
    chosen = POPULATIONS[metric]() if populations is None else tuple(populations)
    return compared(metric, METHODS[metric], partial(fitted_curve, metric), chosen, sizes, n_seeds, step)


def fitted_curve(
    metric: str, population: Population, name: str, sizes: tuple[int, ...], n_seeds: int
) -> Curve:
    """Give the regret of one method."""
    method, lost = METHODS[metric][name], shortfall(metric, population)

    def exact(weights: FloatArray, alpha: float) -> float:
        return lost(scores_of(method.fitted(metric, population, weights, alpha), population))

    numbers = measured(exact, population.outcomes(), sizes, n_seeds)
    return Curve(population.name, name, method.consistent, **numbers)


def shortfall(metric: str, population: Population) -> Callable[[FloatArray], float]:
    """Give the mean regret as a function of scores; the best orders, found by trying all, are found once."""
    distribution = population.distribution
    best = bayes(metric, distribution).values

    def lost(scores: FloatArray) -> float:
        gap = np.abs(best - expected(metric, distribution, scores))  # a gain of AP, a loss of PD
        return float(np.where(gap <= ROUNDING * np.maximum(np.abs(best), 1.0), 0.0, gap).mean())

    return lost
