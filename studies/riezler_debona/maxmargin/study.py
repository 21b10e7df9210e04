"""The validation that Riezler and De Bona (2009) leave open: max-margin rankers on data, beside their bounds.

"Simple risk bounds for position-sensitive max-margin ranking algorithms" ends: "Lastly, an empirical
validation supporting the theoretical results needs to be given."
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from concordant import LinearRanker, MaxMarginRanker, Queries, RankingData, datasets
from concordant._internals import check_share
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.metrics import AP, NDCG, Metric, Precision
from concordant.surrogates import ListwiseHinge, PositionHinge, Preorder, Softmax
from studies.riezler_debona.maxmargin.guarantees import measure
from studies.riezler_debona.maxmargin.results import MaxMarginResult, PenaltyPoint
from studies.shared.linear_paths import TOLERANCE, LinearMethod, decades, fit_along, score_part

DATA = ("mq2008", "ohsumed")
METHODS = (
    LinearMethod("position hinge", "ndcg", PositionHinge("pairs")),
    LinearMethod("plain hinge", "ndcg", Preorder("pairs", margin="hinge")),
    LinearMethod("AP hinge", "ap", ListwiseHinge(AP())),
    LinearMethod("NDCG hinge", "ndcg", ListwiseHinge(NDCG())),
    LinearMethod("NDCG@10 hinge", "ndcg@10", ListwiseHinge(NDCG(k=10))),
    LinearMethod("softmax", "ndcg", Softmax()),  # consistent; bounded through the NDCG hinge
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
) -> MaxMarginResult:
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
    n_folds, points, n_train = _n_folds(name, folds), list[PenaltyPoint](), []
    check_share("delta", delta, 0.05)
    for number in range(1, n_folds + 1):
        fold = scale_fold(datasets.load(name, fold=number, folder=folder))
        n_train.append(fold.train.n_queries)
        for method in METHODS:
            step(f"fold {number}: {method.name}")
            points += _points(method, number, fold, delta, tol)
    return MaxMarginResult(name, n_folds, min(n_train), GRID, delta, tuple(points))


def _n_folds(name: str, folds: int | None) -> int:
    """Folds that are run."""
    if name not in DATA:
        raise UnknownNameError("data", name, DATA)
    there = datasets.get(name).folds
    if folds is not None and not 1 <= folds <= there:
        raise ParameterError("folds", folds, f"from 1 to {there}")
    return folds or there


def n_steps(name: str, folds: int | None = None) -> int:
    """Number of times that `reproduce` calls its `step`: once for each fold and method.

    >>> n_steps("ohsumed"), n_steps("ohsumed", folds=1)
    (30, 6)
    """
    return _n_folds(name, folds) * len(METHODS)


def _points(
    method: LinearMethod, number: int, fold: datasets.Fold, delta: float, tol: float
) -> list[PenaltyPoint]:
    """Fit a method along the grid, and measure it at each penalty."""
    points, coefs = [], []
    for model in fit_along(ranker(method, tol), fold.train, Queries.from_ids(fold.train.qid), GRID):
        coefs.append(model.coef_)
        length = float(np.linalg.norm(model.coef_))
        measured = measure(model, fold.train, fold.test, delta, len(GRID))
        points.append(PenaltyPoint(method.name, number, model.alpha, False, length, *measured, {}))
    tested = score_part(fold.test, np.stack(coefs))
    best, _ = score_part(fold.validation, np.stack(coefs)).best(METRICS[CRITERION])
    for i, point in enumerate(points):
        values = {name: tested.per_query(metric, i) for name, metric in METRICS.items()}
        points[i] = replace(point, is_selected=i == best, per_query=values)
    return points


def ranker(method: LinearMethod, tol: float = TOL) -> LinearRanker:
    """Return the ranker of a method; the penalty sees unscaled features, so that it bounds their weights."""
    if isinstance(method.surrogate, Softmax):
        return LinearRanker(method.metric, method.surrogate, fit_scale=False, tol=TOLERANCE)
    return MaxMarginRanker(method.metric, method.surrogate, fit_scale=False, tol=tol)


def scale_fold(fold: datasets.Fold) -> datasets.Fold:
    """Scale every feature of every list to the range from 0 to 1, as LETOR 4.0 does."""
    validation = None if fold.validation is None else scale_lists(fold.validation)
    return datasets.Fold(scale_lists(fold.train), validation, scale_lists(fold.test))


def scale_lists(data: RankingData) -> RankingData:
    """Scale each feature of each list to the range from 0 to 1; 0 where it is constant.

    A list is changed by what it holds itself and nothing else: lists that were independent still are.

    >>> data = RankingData(np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]]), np.zeros(3), np.array([7, 7, 7]))
    >>> scale_lists(data).X.tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]]
    """
    queries = Queries.from_ids(data.qid)
    X = queries.gather(np.asarray(data.X, dtype=np.float64))
    low, high = (function.reduceat(X, queries.offsets[:-1]) for function in (np.minimum, np.maximum))
    width = np.where(high > low, high - low, 1.0)
    query_numbers = queries.codes
    return replace(data, X=queries.scatter((X - low[query_numbers]) / width[query_numbers]))
