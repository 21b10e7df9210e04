"""The validation that Riezler and De Bona (2009) leave open: max-margin rankers on data, beside their bounds.

"Simple risk bounds for position-sensitive max-margin ranking algorithms" ends: "Lastly, an empirical
validation supporting the theoretical results needs to be given."
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from concordant.evaluation.reproduction.linear_paths import TOLERANCE, Method, along, decades, held_out
from concordant.evaluation.reproduction.maxmargin_bounds import measure
from concordant.evaluation.reproduction.maxmargin_points import Point, Reproduction
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.metrics import AP, NDCG, Metric, Precision
from concordant.rankers import LinearRanker, MaxMarginRanker
from concordant.supervision import datasets
from concordant.supervision.data import RankingData
from concordant.supervision.datasets import Fold
from concordant.supervision.queries import Queries
from concordant.surrogates import ListwiseHinge, PositionHinge, Preorder, Softmax
from concordant.theory.bounds.bound import check_delta

__all__ = ["CRITERION", "DATA", "GRID", "METHODS", "METRICS", "n_steps", "reproduce"]

DATA = ("mq2008", "ohsumed")
METHODS = (
    Method("position hinge", "ndcg", PositionHinge("pairs")),
    Method("plain hinge", "ndcg", Preorder("pairs", margin="hinge")),
    Method("AP hinge", "ap", ListwiseHinge(AP())),
    Method("NDCG hinge", "ndcg", ListwiseHinge(NDCG())),
    Method("NDCG@10 hinge", "ndcg@10", ListwiseHinge(NDCG(k=10))),
    Method("softmax", "ndcg", Softmax()),  # consistent; bounded through the NDCG hinge
)
METRICS: Mapping[str, Metric] = {
    "map": AP(),
    "ndcg@10": NDCG(k=10),
    "p@1": Precision(k=1),
    "p@5": Precision(k=5),
}
CRITERION = "ndcg@10"  # by which validation queries choose the penalty, for all methods
GRID = decades(3, -5, steps=2)  # from weights next to 0 to rankers that no longer change
TOL = 1e-7  # at the largest penalty not much more than this share of the objective is to be gained


def reproduce(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    folds: int | None = None,
    delta: float = 0.05,
    tol: float = TOL,
    step: Callable[[str], None] = lambda _: None,
) -> Reproduction:
    """Train every method at every penalty on every fold; test, and bound the risk of each ranker.

    Parameters
    ----------
    name
        "mq2008" or "ohsumed".
    folder
        Folder of the datasets, as for `datasets.load`.
    folds
        Run only so many folds, from the first; None: all five.
    delta
        Probability that a bound fails.
    tol
        Duality gap at which fits end, as a share of the objective at weights 0.
    step
        Called with what comes next, once for each fold and method.

    Raises
    ------
    UnknownNameError
        If no set of the experiment has this name.
    DatasetNotFoundError
        If its files are missing; the message says where to get them.

    Examples
    --------
    >>> reproduce("mq2009")
    Traceback (most recent call last):
    concordant.exceptions.UnknownNameError: unknown data 'mq2009'. Did you mean 'mq2008'?
    ...
    """
    n_folds, points, n_train = folds_of(name, folds), list[Point](), []
    check_delta(delta)
    for number in range(1, n_folds + 1):
        fold = in_unit_ranges(datasets.load(name, fold=number, folder=folder))
        n_train.append(fold.train.n_queries)
        for method in METHODS:
            step(f"fold {number}: {method.name}")
            points += points_of(method, number, fold, delta, tol)
    return Reproduction(name, n_folds, min(n_train), GRID, delta, tuple(points))


def folds_of(name: str, folds: int | None) -> int:
    """Folds that are run."""
    if name not in DATA:
        raise UnknownNameError("data", name, DATA)
    there = datasets.get(name).folds
    if folds is not None and not 1 <= folds <= there:
        raise ParameterError("folds", folds, f"1 to {there}")
    return folds or there


def n_steps(name: str, folds: int | None = None) -> int:
    """How often `reproduce` calls its `step`: once for each fold and method.

    >>> n_steps("ohsumed"), n_steps("ohsumed", folds=1)
    (30, 6)
    """
    return folds_of(name, folds) * len(METHODS)


def points_of(method: Method, number: int, fold: Fold, delta: float, tol: float) -> list[Point]:
    """Fit a method along the grid, and measure it at each penalty."""
    points, coefs = [], []
    for model in along(ranker(method, tol), fold.train, Queries.from_ids(fold.train.qid), GRID):
        coefs.append(model.coef_)
        length = float(np.linalg.norm(model.coef_))
        found = measure(model, fold.train, fold.test, delta, len(GRID))
        points.append(Point(method.name, number, model.alpha, False, length, *found, {}))
    tested = held_out(fold.test, np.stack(coefs))
    best, _ = held_out(fold.validation, np.stack(coefs)).best(METRICS[CRITERION])
    for i, point in enumerate(points):
        values = {name: tested.per_query(metric, i) for name, metric in METRICS.items()}
        points[i] = replace(point, chosen=i == best, per_query=values)
    return points


def ranker(method: Method, tol: float = TOL) -> LinearRanker:
    """Give the ranker of a method; the penalty sees features as given, so that it bounds their weights."""
    if isinstance(method.surrogate, Softmax):
        return LinearRanker(method.metric, method.surrogate, fit_scale=False, tol=TOLERANCE)
    return MaxMarginRanker(method.metric, method.surrogate, fit_scale=False, tol=tol)


def in_unit_ranges(fold: Fold) -> Fold:
    """Give the fold with every feature of every list from 0 to 1, as LETOR 4.0 has it."""
    validation = None if fold.validation is None else unit_ranges(fold.validation)
    return Fold(unit_ranges(fold.train), validation, unit_ranges(fold.test))


def unit_ranges(data: RankingData) -> RankingData:
    """Give each feature of each list a range from 0 to 1; 0 where it is constant.

    A list is changed by what it holds itself and nothing else: lists that were independent still are.

    >>> data = RankingData(np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]]), np.zeros(3), np.array([7, 7, 7]))
    >>> unit_ranges(data).X.tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]]
    """
    queries = Queries.from_ids(data.qid)
    X = queries.gather(np.asarray(data.X, dtype=np.float64))
    low, high = (function.reduceat(X, queries.offsets[:-1]) for function in (np.minimum, np.maximum))
    width = np.where(high > low, high - low, 1.0)
    own = queries.codes
    return replace(data, X=queries.scatter((X - low[own]) / width[own]))
