"""Parts of the data to train and to test on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from concordant.exceptions import ParameterError
from concordant.supervision.columns import as_numpy, check_lengths
from concordant.supervision.labels import Grades, Permutations, Preferences
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike, IntArray

__all__ = ["Rows", "row_splits"]


class Rows(NamedTuple):
    """What `fit` is given, row by row; `qid` is an array of ids, or None."""

    X: Any
    y: Any
    qid: Any
    sample_weight: Any = None
    query_weight: Any = None

    @classmethod
    def of(
        cls, X: Any, y: ArrayLike, qid: ArrayLike, sample_weight: ArrayLike, query_weight: ArrayLike
    ) -> Rows:
        """Refuse columns of another length than the features, before anything is cut."""
        given = {"y": y, "sample_weight": sample_weight, "query_weight": query_weight}
        columns = {name: column(values, name) for name, values in given.items()}
        check_lengths("X", X.shape[0], **columns)
        if qid is not None:
            queries = Queries.of(qid, X.shape[0], "X")
            qid = queries.scatter(queries.ids[queries.codes])
        return cls(X, qid=qid, **columns)

    def take(self, rows: IntArray) -> Rows:
        """Some of the rows."""
        return Rows(*(taken(column, rows) for column in self))


def column(values: Any, name: str) -> Any:
    """Labels as they are, anything else as an array."""
    own = values is None or isinstance(values, (Grades, Preferences, Permutations))
    return values if own else as_numpy(values, name)


def taken(values: Any, rows: IntArray) -> Any:
    """Some rows of features, labels or a column."""
    if values is None:
        return None
    own = isinstance(values, (Grades, Preferences, Permutations))
    return values.take(rows) if own else values[rows]


def row_splits(cv: Any, rows: Rows) -> list[tuple[IntArray, IntArray]]:
    """Rows to train and to test on: whole queries, or parts of the only one."""
    if isinstance(cv, (int, np.integer)):
        return list(folds(int(cv), rows))
    n_rows = rows.X.shape[0]
    try:
        pairs = cv.split(rows.X, rows.y, rows.qid) if hasattr(cv, "split") else cv
        splits = [(chosen_rows(train, n_rows), chosen_rows(test, n_rows)) for train, test in pairs]
    except (TypeError, ValueError, IndexError) as error:
        wanted = "a number of folds, a splitter, or pairs of train and test rows"
        raise ParameterError("cv", cv, f"{wanted} ({error})") from error
    if not splits:
        raise ParameterError("cv", cv, "at least one pair of train and test rows")
    return splits


def chosen_rows(given: ArrayLike, n_rows: int) -> IntArray:
    """Numbers of some rows, at least one."""
    chosen = np.asarray(given)
    numbers: IntArray = np.arange(n_rows)[chosen] if chosen.size else np.empty(0, dtype=np.int64)
    if numbers.ndim != 1 or not numbers.size:
        raise ValueError("a part has no rows")
    return numbers


def folds(n_folds: int, rows: Rows) -> Iterator[tuple[IntArray, IntArray]]:
    """Give folds of whole queries; of rows, where there is one query."""
    n_rows = rows.X.shape[0]
    queries = Queries.of(rows.qid, n_rows, "X")
    if queries.n_queries == 1:
        if isinstance(rows.y, Permutations):
            raise ParameterError("cv", n_folds, "left out: the order of the only query cannot be cut")
        queries = Queries.from_sizes(np.ones(n_rows, dtype=np.int64))
    if not 2 <= n_folds <= queries.n_queries:
        seen = f"2 to the number of queries, {queries.n_queries} here"
        raise ParameterError("cv", n_folds, f"{seen} (of rows, n_samples={n_rows}, if there is one query)")
    return queries.folds(n_folds)
