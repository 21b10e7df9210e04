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
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from concordant import LinearRanker
from concordant._internals import check_counts, knowingly, one_blas_thread
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.surrogates import Pairwise, Preorder, Softmax, Squared, Surrogate
from concordant.theory.regret import regret
from concordant.types import FloatArray
from studies.consistency.populations import Outcomes, Population, exhibited, misspecified, typical

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
    """Curves of every method on every population.

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
        """Return the curve of a method on a population."""
        curves = {(curve.population, curve.method): curve for curve in self.curves}
        if (population, method) not in curves:
            names = (f"{population_name} / {method_name}" for population_name, method_name in curves)
            raise UnknownNameError("curve", f"{population} / {method}", names)
        return curves[population, method]

    def population_curves(self, population: str) -> tuple[Curve, ...]:
        """Return the curves of a population."""
        return tuple(curve for curve in self.curves if curve.population == population)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per population, method and number of queries."""
        columns = "n_queries", "mean", "low", "high"
        return [
            {"population": curve.population, "method": curve.method, **dict(zip(columns, row, strict=True))}
            for curve in self.curves
            for row in zip(*(getattr(curve, column) for column in columns), strict=True)
        ]


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
    sources = (exhibited(), typical(), misspecified()) if populations is None else tuple(populations)
    return run_methods(METRIC, METHODS, _fit_curve, sources, sizes, n_seeds, step)


def run_methods(
    metric: str,
    methods: Iterable[str],
    fit_curve: Callable[[Population, str, tuple[int, ...], int], Curve],
    populations: Sequence[Population],
    sizes: Sequence[int],
    n_seeds: int,
    step: Callable[[str], None],
) -> Consistency:
    """Compute the curve of every method on every population."""
    check_counts(n_seeds=n_seeds, sizes=min(sizes, default=0))
    if len({source.name for source in populations}) < len(populations):
        raise ParameterError.because("The populations must have different names.")
    curves = []
    with one_blas_thread():
        for population, method in product(populations, methods):
            step(f"{population.about}: {method}")
            curves.append(fit_curve(population, method, tuple(sizes), n_seeds))
    return Consistency(
        tuple(curves), tuple((source.name, source.about) for source in populations), n_seeds, metric
    )


def _fit_curve(population: Population, method: str, sizes: tuple[int, ...], n_seeds: int) -> Curve:
    surrogate, outcomes = METHODS[method], population.outcomes()

    def exact(weights: FloatArray, alpha: float) -> float:
        scores = fit_ranker(outcomes, surrogate, weights, alpha).predict(population.X).round(DECIMALS)
        return float(regret(METRIC, population.distribution, scores).mean())

    consistent = surrogate.order_preserving or surrogate.needs_positive
    return Curve(population.name, method, consistent, **measure_curve(exact, outcomes, sizes, n_seeds))


def measure_curve(
    exact: Callable[[FloatArray, float], float], outcomes: Outcomes, sizes: tuple[int, ...], n_seeds: int
) -> dict[str, Any]:
    """Numbers of a curve; `exact` is the regret of the fit to weighted outcomes, with a penalty."""
    table = np.array([[exact(outcomes.draw(n, seed), 1.0 / n) for seed in range(n_seeds)] for n in sizes])
    low, high = np.percentile(table, BAND, axis=1)
    return {
        "n_queries": sizes,
        "mean": tuple(table.mean(axis=1).tolist()),
        "low": tuple(low.tolist()),
        "high": tuple(high.tolist()),
        "limit": exact(outcomes.probs, LIMIT_ALPHA),
    }


def fit_ranker(outcomes: Outcomes, surrogate: Surrogate, weights: FloatArray, alpha: float) -> LinearRanker:
    """Fit the ranker to the weighted queries."""
    # Features stay as they are: their spread over the distinct queries is not that over the draws.
    model = LinearRanker(METRIC, surrogate, alpha, fit_scale=False, tol=TOL, max_iter=2000)
    with knowingly():  # what is not consistent is what is shown
        return model.fit(**outcomes.fit_arguments(weights))
