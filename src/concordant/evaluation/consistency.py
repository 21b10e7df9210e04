"""Consistency, seen: exact regret of fitted rankers as training queries become many, on known distributions.

>>> result = run([exhibited()], sizes=(300, 3000), n_seeds=3)
>>> for method in ("pairwise", "preorder unit"):
...     curve = result.curve("exhibited", method)
...     print(method, [round(mean, 4) for mean in curve.mean], round(curve.limit, 4))
pairwise [0.0, 0.0] 0.0
preorder unit [0.0923, 0.0923] 0.0923
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

from concordant._segments import one_blas_thread
from concordant.evaluation.populations import Outcomes, Population, exhibited, misspecified, typical
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.rankers.claim import knowingly
from concordant.rankers.linear import LinearRanker
from concordant.supervision.synthetic.items import check_counts
from concordant.surrogates import Pairwise, Preorder, Softmax, Squared, Surrogate
from concordant.theory.regret import regret
from concordant.types import FloatArray

__all__ = [
    "METHODS",
    "METRIC",
    "QUICK_SIZES",
    "SIZES",
    "Consistency",
    "Curve",
    "exhibited",
    "fitted",
    "misspecified",
    "run",
    "typical",
]

METRIC = "ndcg"
METHODS: Mapping[str, Surrogate] = {
    "pairwise": Pairwise(),
    "softmax": Softmax(),
    "squared": Squared(),
    "preorder unit": Preorder("unit"),
    "preorder pairs": Preorder("pairs"),
    "preorder gain": Preorder("gain"),
}
SIZES = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
QUICK_SIZES = (10, 100, 1000)
LIMIT_ALPHA = 1e-6  # penalty of the fit to the expected loss: where alpha = 1/n is heading
BAND = (5, 95)  # percentiles over the seeds
TOL = 1e-15  # of the objective: scores are then off by a few 1e-6 at most, whichever the solver
DECIMALS = 5  # of the scores: exact ties are common in small samples, and rounding errors must not break them


@dataclass(frozen=True)
class Curve:
    """Regret of one method on one population, by number of training queries.

    Attributes
    ----------
    population, method
        Their names.
    consistent
        Whether the method is consistent with the metric, whatever the labels.
    n_queries
        Training queries.
    mean, low, high
        Mean over the seeds, 5th and 95th percentile.
    limit
        Regret of the fit to the expected loss: what infinitely many training queries give.
    """

    population: str
    method: str
    consistent: bool
    n_queries: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    limit: float


@dataclass(frozen=True)
class Consistency:
    """What `run` found.

    Attributes
    ----------
    curves
        One per population and method.
    about
        Name of each population, and what it is.
    n_seeds
        Training sets of each size.
    metric
        Whose regret it is.
    """

    curves: tuple[Curve, ...]
    about: tuple[tuple[str, str], ...]
    n_seeds: int
    metric: str = METRIC

    def curve(self, population: str, method: str) -> Curve:
        """Give one curve."""
        found = {(curve.population, curve.method): curve for curve in self.curves}
        if (population, method) not in found:
            known = (f"{one} / {two}" for one, two in found)
            raise UnknownNameError("curve", f"{population} / {method}", known)
        return found[population, method]

    def of(self, population: str) -> tuple[Curve, ...]:
        """Give the curves of one population."""
        return tuple(curve for curve in self.curves if curve.population == population)

    def rows(self) -> list[dict[str, Any]]:
        """Give the table: one row per population, method and number of queries."""
        columns = "n_queries", "mean", "low", "high"
        return [
            {"population": curve.population, "method": curve.method, **dict(zip(columns, row, strict=True))}
            for curve in self.curves
            for row in zip(*(getattr(curve, column) for column in columns), strict=True)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Give all numbers as plain values."""
        return {
            "metric": self.metric,
            "n_seeds": self.n_seeds,
            "populations": dict(self.about),
            "curves": [asdict(curve) for curve in self.curves],
        }


def run(
    populations: Iterable[Population] | None = None,
    *,
    sizes: Sequence[int] = SIZES,
    n_seeds: int = 50,
    step: Callable[[str], None] = lambda _: None,
) -> Consistency:
    """Fit every method on training sets of every size, with penalty 1 / (number of queries).

    Training sets are the same for all methods. The regret is exact: that of the fitted scores on the label
    distribution, averaged over the queries of the population; tied scores give the mean over their orders.

    Parameters
    ----------
    populations
        Where queries come from; None: `exhibited`, `typical` and `misspecified`.
    sizes
        Numbers of training queries.
    n_seeds
        Training sets of each size.
    step
        Called with a line of text before each curve.
    """
    chosen = (exhibited(), typical(), misspecified()) if populations is None else tuple(populations)
    return compared(METRIC, METHODS, fitted_curve, chosen, sizes, n_seeds, step)


def compared(
    metric: str,
    methods: Iterable[str],
    fit_curve: Callable[[Population, str, tuple[int, ...], int], Curve],
    populations: Sequence[Population],
    sizes: Sequence[int],
    n_seeds: int,
    step: Callable[[str], None],
) -> Consistency:
    """Give the curve of every method on every population."""
    check_counts(n_seeds=n_seeds, sizes=min(sizes, default=0))
    if len({one.name for one in populations}) < len(populations):
        raise ParameterError("populations", [one.name for one in populations], "of different names")
    curves = []
    with one_blas_thread():
        for population, method in product(populations, methods):
            step(f"{population.about}: {method}")
            curves.append(fit_curve(population, method, tuple(sizes), n_seeds))
    return Consistency(tuple(curves), tuple((one.name, one.about) for one in populations), n_seeds, metric)


def fitted_curve(population: Population, method: str, sizes: tuple[int, ...], n_seeds: int) -> Curve:
    """Give the regret of one method."""
    surrogate, outcomes = METHODS[method], population.outcomes()

    def exact(weights: FloatArray, alpha: float) -> float:
        scores = fitted(outcomes, surrogate, weights, alpha).predict(population.X).round(DECIMALS)
        return float(regret(METRIC, population.distribution, scores).mean())

    consistent = surrogate.order_preserving or surrogate.needs_positive
    return Curve(population.name, method, consistent, **measured(exact, outcomes, sizes, n_seeds))


def measured(
    exact: Callable[[FloatArray, float], float], outcomes: Outcomes, sizes: tuple[int, ...], n_seeds: int
) -> dict[str, Any]:
    """Give the numbers of a curve; `exact` is the regret of the fit to weighted outcomes, with a penalty."""
    table = np.array([[exact(outcomes.draw(n, seed), 1.0 / n) for seed in range(n_seeds)] for n in sizes])
    low, high = np.percentile(table, BAND, axis=1)
    return {
        "n_queries": sizes,
        "mean": tuple(table.mean(axis=1).tolist()),
        "low": tuple(low.tolist()),
        "high": tuple(high.tolist()),
        "limit": exact(outcomes.probs, LIMIT_ALPHA),
    }


def fitted(outcomes: Outcomes, surrogate: Surrogate, weights: FloatArray, alpha: float) -> LinearRanker:
    """Give the ranker of the weighted queries."""
    # Features stay as they are: their spread over the distinct queries is not that over the draws.
    model = LinearRanker(METRIC, surrogate, alpha, fit_scale=False, tol=TOL, max_iter=2000)
    with knowingly():  # what is not consistent is what is shown
        return model.fit(**outcomes.seen(weights))
