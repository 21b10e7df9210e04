"""Parts of the data to train and to test on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from concordant._base.validate import as_numpy, check_lengths, refuse_misaligned
from concordant.data.labels import Grades, Permutations, Preferences
from concordant.data.queries import Queries, naming_query
from concordant.exceptions import LabelError, ParameterError
from concordant.metrics.metric import Metric
from concordant.rankers.missing_qid import warn_of_cuts
from concordant.rankers.training import query_weights
from concordant.types import ArrayLike, FloatArray, IntArray


class FitRows(NamedTuple):
    """Arguments of `fit`, row by row; `qid` is an array of ids, or None."""

    X: Any
    y: Any
    qid: Any
    sample_weight: Any = None
    query_weight: Any = None

    @classmethod
    def from_columns(
        cls, X: Any, y: ArrayLike, qid: ArrayLike, sample_weight: ArrayLike, query_weight: ArrayLike
    ) -> FitRows:
        """Check that all columns are as long as the features, before anything is cut."""
        label_columns = {"y": y, "sample_weight": sample_weight, "query_weight": query_weight}
        columns = {name: _read_column(values, name) for name, values in label_columns.items()}
        check_lengths("X", X.shape[0], **columns)
        if qid is not None:
            queries = Queries.for_rows(qid, X.shape[0], "X")
            qid = queries.scatter(queries.ids[queries.codes])
        return cls(X, qid=qid, **columns)

    @property
    def queries(self) -> Queries:
        """The queries of the rows."""
        return Queries.for_rows(self.qid, self.X.shape[0], "X")

    def labels_and_queries(self, metric: Metric) -> list[Any]:
        """Labels as the metric reads them, and which rows belong together: for a digest."""
        queries = self.queries
        return [metric.read_labels(self.y), queries.order, queries.offsets]

    def take(self, rows: IntArray) -> FitRows:
        """Return some of the rows."""
        return FitRows(*(_take_rows(column, rows) for column in self))


def _read_column(values: Any, name: str) -> Any:
    """Return labels unchanged, and anything else as an array."""
    is_labels = values is None or isinstance(values, (Grades, Preferences, Permutations))
    return values if is_labels else as_numpy(values, name)


def _take_rows(values: Any, rows: IntArray) -> Any:
    if values is None:
        return None
    is_labels = isinstance(values, (Grades, Preferences, Permutations))
    return values.take(rows) if is_labels else values[rows]


def row_splits(cv: Any, rows: FitRows) -> list[tuple[IntArray, IntArray]]:
    """Return rows to train and to test on: whole queries, or parts of the only query."""
    if isinstance(cv, (int, np.integer)):
        return list(_make_folds(int(cv), rows))
    n_rows = rows.X.shape[0]
    try:
        pairs = cv.split(rows.X, rows.y, rows.qid) if hasattr(cv, "split") else cv
        splits = [(_row_numbers(train, n_rows), _row_numbers(test, n_rows)) for train, test in pairs]
    except (TypeError, ValueError, IndexError) as error:
        expected = "a number of folds, a splitter or pairs of train and test rows"
        raise ParameterError(
            "cv", cv, expected, hint=f"Reading it failed: {str(error).rstrip('.')}."
        ) from error
    if not splits:
        raise ParameterError("cv", cv, "at least one pair of train and test rows")
    if rows.qid is not None and rows.queries.n_queries > 1:
        warn_of_cuts((rows.qid[train], rows.qid[test]) for train, test in splits)
    return splits


def _row_numbers(selection: ArrayLike, n_rows: int) -> IntArray:
    selected = np.asarray(selection)
    numbers: IntArray = np.arange(n_rows)[selected] if selected.size else np.empty(0, dtype=np.int64)
    if numbers.ndim != 1 or not numbers.size:
        raise ValueError("a part has no rows")
    return numbers


def _make_folds(n_folds: int, rows: FitRows) -> Iterator[tuple[IntArray, IntArray]]:
    """Generate folds of whole queries; of rows, if there is a single query."""
    n_rows, queries = rows.X.shape[0], rows.queries.in_row_order()
    if queries.n_queries == 1:
        if isinstance(rows.y, Permutations):
            raise ParameterError.because(
                "cv needs at least two queries, got a single query with a permutation."
            )
        queries = Queries.from_sizes(np.ones(n_rows, dtype=np.int64))
    if not 2 <= n_folds <= queries.n_queries:
        hint = f"There are {queries.n_queries} queries (n_samples={n_rows})."
        raise ParameterError("cv", n_folds, "an integer from 2 to the number of queries", hint=hint)
    return queries.folds(n_folds)


# Queries held out of training: accepted arguments, and evaluation of scores on them.

Evaluate = Callable[[FloatArray], float]


def read_eval_set(eval_set: Any, name: str = "eval_set") -> tuple[Any, Any, Any]:
    """Read features, labels and query ids of held-out queries."""
    if all(hasattr(eval_set, part) for part in ("X", "y", "qid")):  # RankingData and similar
        X, y, qid = eval_set.X, eval_set.y, eval_set.qid
    else:
        if not isinstance(eval_set, (tuple, list)) or len(eval_set) not in (2, 3):
            raise ParameterError.because(
                f"{name} must be RankingData or (X, y, qid), got {type(eval_set).__name__}."
            )
        X, y, qid = (*eval_set, None)[:3]
        if hasattr(X, "qid") or (isinstance(X, (tuple, list)) and len(np.shape(X[:1])) > 2):
            raise ParameterError.because(f"{name} must be a single RankingData or (X, y, qid), got several.")
    refuse_misaligned(**{f"X of {name}": X, f"y of {name}": y, f"qid of {name}": qid})
    return X, y, qid


def bind_evaluation(metric: Metric, rows: FitRows, name: str) -> Evaluate:
    """Return a function from the rows' scores to the metric: losses negated, so that higher is better."""
    queries = Queries.for_rows(rows.qid, rows.X.shape[0], f"X of {name}")
    with naming_query(rows.qid):
        labels = metric.read_labels(rows.y)
    weights = None if rows.query_weight is None else query_weights(rows.query_weight, queries)
    sign = 1.0 if metric.greater_is_better else -1.0

    def score(scores: FloatArray) -> float:
        return sign * float(metric(labels, scores, qid=queries, weights=weights))

    if not math.isfinite(score(np.zeros(queries.n_rows))):
        hint = metric.label_problem(labels) or "hold out queries whose labels differ."
        raise LabelError(f"{metric} is undefined on every query of {name}", hint)
    return score
