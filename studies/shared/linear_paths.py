"""Linear methods side by side: penalties relative to each method's own loss, chosen on validation queries."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant import LinearRanker, Queries, RankingData, datasets
from concordant._internals import knowingly
from concordant.exceptions import EmptyDataError
from concordant.metrics import Metric, standardize
from concordant.surrogates import Surrogate
from concordant.types import FloatArray

TOLERANCE = 1e-9  # share of the objective: results do not depend on where the solver stops
MOST_STEPS = 10_000  # far more than are needed; should they not suffice, the ranker warns


@dataclass(frozen=True)
class LinearMethod:
    """A way to train a linear ranker.

    Attributes
    ----------
    name
        How it is called in tables.
    metric
        The metric whose standardized labels the surrogate reads; without effect on one that reads grades.
    surrogate
        The loss.
    """

    name: str
    metric: str
    surrogate: Surrogate


@dataclass(frozen=True, eq=False)
class Path:
    """Weights of a method at each penalty of a grid.

    Attributes
    ----------
    shares
        The grid c, largest first.
    unit
        The loss at w = 0; the penalties are c * unit.
    coefs
        Weights, one row per penalty.
    """

    shares: FloatArray
    unit: float
    coefs: FloatArray


@dataclass(frozen=True, eq=False)
class PenaltyChoice:
    """A metric on the test queries of a fold, at the penalty that the validation queries chose for it.

    Attributes
    ----------
    share, alpha
        The chosen c, and the penalty c * unit.
    at_edge
        Whether c is the largest or the smallest of the grid.
    validation
        Mean over the validation queries at that penalty.
    per_query
        Value on each test query, ascending ids; NaN where skipped.
    """

    share: float
    alpha: float
    at_edge: bool
    validation: float
    per_query: FloatArray


def decades(highest: int, lowest: int, *, steps: int = 1) -> FloatArray:
    """Grid from 10^highest down to 10^lowest, so many steps a decade.

    >>> decades(1, -1).tolist(), decades(0, -1, steps=2).round(4).tolist()
    ([10.0, 1.0, 0.1], [1.0, 0.3162, 0.1])
    """
    grid: FloatArray = 10.0 ** np.linspace(highest, lowest, (highest - lowest) * steps + 1)
    return grid


def fit_path(method: LinearMethod, train: RankingData, shares: FloatArray, *, scaled: bool) -> Path:
    """Fit at each penalty c * (loss at w = 0), c from the largest, each fit beginning where the last ended.

    Losses differ in size by factors of hundreds, and with them the penalties that suit them; as shares of the
    loss at 0 one grid serves all. Equivalently, each loss is divided by its value at 0.

    Parameters
    ----------
    method
        What is minimised.
    train
        Queries to learn from.
    shares
        The grid c, largest first.
    scaled
        Whether the penalty sees features divided by their spread within queries (`fit_scale`).
    """
    queries = Queries.from_ids(train.qid)
    unit = _loss_at_zero(method, train, queries)
    model = LinearRanker(method.metric, method.surrogate, fit_scale=scaled, tol=TOLERANCE)
    coefs = [fitted.coef_ for fitted in fit_along(model, train, queries, shares * unit)]
    return Path(shares, unit, np.stack(coefs))


def fit_along(
    model: LinearRanker, train: RankingData, queries: Queries, alphas: Iterable[float]
) -> Iterator[LinearRanker]:
    """Yield the ranker itself, fitted at each penalty in turn, from where the last fit ended.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C, which a ranker by itself answers with its best weights so far.
    """
    model.set_params(max_iter=MOST_STEPS, warm_start=True)
    for alpha in alphas:
        with knowingly():  # baselines, too
            warnings.filterwarnings("ignore", "Training was stopped by interrupt")  # said by the exception
            warnings.filterwarnings("ignore", "All weights are 0")  # a result, which its length tells
            model.set_params(alpha=float(alpha)).fit(train.X, train.y, qid=queries)
        if model.solution_.stopped_by == "interrupt":
            raise KeyboardInterrupt
        yield model


def _loss_at_zero(method: LinearMethod, train: RankingData, queries: Queries) -> float:
    """Mean over queries of the surrogate where all scores are 0.

    >>> from concordant.surrogates import Preorder
    >>> toy = RankingData(np.ones((3, 1)), np.array([1.0, 0.0, 0.0]), np.array([7, 7, 7]))
    >>> two_pairs = LinearMethod("preorder", "ndcg", Preorder())
    >>> _loss_at_zero(two_pairs, toy, Queries.from_ids(toy.qid))
    2.0
    """
    reads_grades = method.surrogate.reads == "grades"
    labels = train.y if reads_grades else standardize(method.metric, train.y, qid=queries)
    values, _ = method.surrogate(np.zeros(len(labels)), labels, qid=queries)
    return float(values.mean())


def choose(path: Path, fold: datasets.Fold, metrics: Mapping[str, Metric]) -> dict[str, PenaltyChoice]:
    """Evaluate each metric on the test queries, at its best penalty on the validation queries.

    Of penalties that are equally good the largest is taken.
    """
    validation, tested = score_part(fold.validation, path.coefs), score_part(fold.test, path.coefs)
    choices = {}
    for name, metric in metrics.items():
        best, mean = validation.best(metric)
        choices[name] = PenaltyChoice(
            share=float(path.shares[best]),
            alpha=float(path.shares[best]) * path.unit,
            at_edge=best in (0, len(path.shares) - 1),
            validation=mean,
            per_query=tested.per_query(metric, best),
        )
    return choices


@dataclass(frozen=True, eq=False)
class PartScores:
    """Queries of a part, its grades, and the scores of its rows at each penalty."""

    queries: Queries
    y: FloatArray
    scores: FloatArray

    def best(self, metric: Metric) -> tuple[int, float]:
        """Number of the best penalty, the first of equals, and the mean over queries there."""
        means = [float(metric(self.y, scores, qid=self.queries)) for scores in self.scores]
        best = int(np.argmax(np.nan_to_num(means, nan=-np.inf)))
        return best, means[best]

    def per_query(self, metric: Metric, number: int) -> FloatArray:
        """Value on each query at a penalty, ascending ids; NaN where skipped."""
        return metric.per_query(self.y, self.scores[number], qid=self.queries)


def score_part(data: RankingData | None, coefs: FloatArray) -> PartScores:
    """Score a part at all penalties."""
    if data is None:
        raise EmptyDataError("the validation part")
    X: Any = data.X
    return PartScores(Queries.from_ids(data.qid), data.y, np.ascontiguousarray((X @ coefs.T).T))
