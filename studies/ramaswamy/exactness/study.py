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

from concordant import LinearRanker, PairRanker
from concordant._internals import ROUNDING, knowingly
from concordant.exceptions import UnknownNameError
from concordant.theory.regret import bayes, expected
from concordant.types import FloatArray
from studies.consistency.populations import Population, company, incomplete, misspecified, typical
from studies.consistency.study import DECIMALS, SIZES, TOL, Consistency, Curve, measure_curve, run_methods


@dataclass(frozen=True)
class ScoringMethod:
    """A way to rank: by scores of pairs and a decoder, or by scores of items and sorting.

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
        """True if regret goes to zero whatever the labels."""
        return self.decoder == "auto"

    def fit(
        self, metric: str, population: Population, weights: FloatArray, alpha: float
    ) -> PairRanker | LinearRanker:
        """Fit the ranker to the population's weighted outcomes."""
        data = population.outcomes().fit_arguments(weights)
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


def _scores(model: PairRanker | LinearRanker, population: Population) -> FloatArray:
    """Scores of the items, or their negated positions, rounded: rounding errors must not break ties."""
    if isinstance(model, LinearRanker):
        return model.predict(population.X).round(DECIMALS)
    queries = population.distribution.queries
    pairs = model.predict_pairs(population.X, qid=queries)
    places = [model.best_order(u.round(DECIMALS)).positions for u in pairs]
    return queries.scatter(-np.concatenate(places).astype(np.float64))


ASSUMED: Mapping[str, str] = {"ap": "P_reinforce", "pd": "P_f"}
ITEMS = {f"items, {name}": ScoringMethod(surrogate=name) for name in ("squared", "pairwise", "softmax")}
METHODS: Mapping[str, Mapping[str, ScoringMethod]] = {
    "ap": {"pairs, exact": ScoringMethod("auto"), "pairs, diagonal": ScoringMethod("diagonal"), **ITEMS},
    "pd": {
        "pairs, exact": ScoringMethod("auto"),
        "pairs, edge-deletion": ScoringMethod("edge-deletion"),
        **ITEMS,
    },
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

    Training sets are the same for all methods, and the regret is exact, as in `consistency.study.run`.
    Scores of items are trained on y / sum(y) for AP and on the net weights for PD.

    Parameters
    ----------
    metric
        "ap" or "pd".
    populations
        Where queries come from; None: those of `POPULATIONS`.
    sizes, n_seeds, step
        As for `consistency.study.run`.
    """
    if metric not in METHODS:
        raise UnknownNameError("metric of this experiment", metric, METHODS)
    sources = POPULATIONS[metric]() if populations is None else tuple(populations)
    return run_methods(metric, METHODS[metric], partial(_fit_curve, metric), sources, sizes, n_seeds, step)


def _fit_curve(metric: str, population: Population, name: str, sizes: tuple[int, ...], n_seeds: int) -> Curve:
    method, lost = METHODS[metric][name], shortfall(metric, population)

    def exact(weights: FloatArray, alpha: float) -> float:
        return lost(_scores(method.fit(metric, population, weights, alpha), population))

    numbers = measure_curve(exact, population.outcomes(), sizes, n_seeds)
    return Curve(population.name, name, method.consistent, **numbers)


def shortfall(metric: str, population: Population) -> Callable[[FloatArray], float]:
    """Return a function from scores to mean regret; the best orders are enumerated once."""
    distribution = population.distribution
    best = bayes(metric, distribution).values

    def lost(scores: FloatArray) -> float:
        gap = np.abs(best - expected(metric, distribution, scores))  # a gain of AP, a loss of PD
        return float(np.where(gap <= ROUNDING * np.maximum(np.abs(best), 1.0), 0.0, gap).mean())

    return lost
