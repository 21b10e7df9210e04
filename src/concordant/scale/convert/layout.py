"""Layout of the file to write: its columns and their types, and checked rows of any table in that form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant._base.validate import refuse
from concordant.data.io.roles import Roles
from concordant.data.io.tables import check_query_ids, open_columns
from concordant.exceptions import ConcordantError, LabelError, ParameterError, RowError
from concordant.scale.scan.index import concatenate_part_ids
from concordant.scale.scan.row_groups import UNKNOWN_DOCID, check_columns, row_bytes
from concordant.types import IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


DTYPES = ("float32", "float64")


@dataclass(frozen=True, eq=False)
class RowChunk:
    """Rows of a source: a table, its location for messages, and the number of rows before it there."""

    frame: Any
    location: str = ""
    start: int = 0

    @contextmanager
    def located(self) -> Iterator[None]:
        """Add the location to errors, and count rows from its beginning."""
        try:
            yield
        except RowError as error:
            if error.row is None:
                self.put_before(error)
            else:
                error.within(self.location, error.row + self.start)
                error.args = (str(error).removeprefix(": "),)  # rows of a frame need no location
            raise
        except ConcordantError as error:
            self.put_before(error)
            raise

    def put_before(self, error: ConcordantError) -> None:
        """Prefix an error with the location, and with the first row if that is not 0."""
        prefix = f"{self.location} from row {self.start} on".strip() if self.start else self.location
        if prefix:
            error.args = (f"{prefix}: {error}",)


@dataclass(frozen=True)
class RowLayout:
    """Columns to write, and their types.

    Attributes
    ----------
    roles
        Names of the columns, in the file and in the source.
    dtype
        Type of the features: "float32" or "float64".
    rounds
        True if the caller asked for this type, so that features may be rounded to it.
    docid_bytes
        Estimated memory of a document id; None: unknown.
    """

    roles: Roles
    dtype: str
    rounds: bool = False
    docid_bytes: int | None = None

    @property
    def feature_bytes(self) -> int:
        """Memory that the features of a row take, in bytes."""
        return max(1, len(self.roles.features)) * np.dtype(self.dtype).itemsize

    @property
    def row_bytes(self) -> int:
        """Memory that a row takes while it is processed, in bytes."""
        roles = self.roles
        documents = UNKNOWN_DOCID if self.docid_bytes is None else self.docid_bytes
        size = row_bytes(len(roles.features), self.dtype, len(roles.weights))
        return size + (0 if roles.docid is None else documents)

    def ids(self, chunk: RowChunk) -> NDArray[Any]:
        """Return the query ids of the rows."""
        with chunk.located():
            return check_query_ids(open_columns(chunk.frame)[0](self.roles.qid), self.roles.qid)

    def table(self, chunk: RowChunk) -> Any:
        """Return the rows in the layout; raise at a bad row."""
        import pyarrow as pa

        with chunk.located():
            column, names = open_columns(chunk.frame)
            if lacking := [name for name in self.roles.named if name not in names]:
                hint = f"all pieces have the same columns; it has {', '.join(names)}."
                raise LabelError(f"there is no column {lacking[0]!r}", hint)
            others = self.others(column)
            features = {name: self.numbers(column(name), name) for name in self.roles.features}
        return pa.table({**others, **{name: pa.array(values) for name, values in features.items()}})

    def others(self, column: Any) -> dict[str, Any]:
        """Return all columns but features, ids first."""
        import pyarrow as pa

        roles = self.roles
        ids, checked = check_query_ids(column(roles.qid), roles.qid), check_columns(column, roles)
        columns = {
            roles.qid: ids,
            roles.grade: checked["y"],
            roles.docid: checked["docid"],
            roles.sample_weight: checked["sample_weight"],
            roles.query_weight: checked["query_weight"],
        }
        return {name: pa.array(values) for name, values in columns.items() if name is not None}

    def numbers(self, values: NDArray[Any], name: str) -> NDArray[Any]:
        """Convert a feature to the layout's type; raise if a value does not fit."""
        from concordant.scale.scan.parquet import finite_column

        exact = finite_column(values, name)
        with np.errstate(over="ignore"):
            rounded = np.ascontiguousarray(exact, dtype=self.dtype)
        lost = ~np.isfinite(rounded) if self.rounds else rounded != exact
        if rounded is not exact and lost.any():
            hint = "single precision does not hold it: give dtype='float64'"
            refuse(
                lost, exact, f"column {name!r}", hint + ("." if self.rounds else ", or 'float32' to round.")
            )
        return rounded


def check_dtype(dtype: Any) -> str | None:
    """Return the name of the requested type, or None."""
    if dtype is None:
        return None
    names = [name for name in DTYPES if dtype in (name, getattr(np, name), np.dtype(name))]
    if not names:
        raise ParameterError("dtype", dtype, "'float32', 'float64' or None")
    return names[0]


# Counts: the number of rows of each query, and whether they are adjacent.

MERGED_AT_ONCE = 1 << 18  # minimum number of entries that are collected before they are merged


@dataclass(frozen=True, eq=False)
class QueryCounts:
    """Queries of a source, with their row counts.

    Attributes
    ----------
    ids, sizes
        Ascending ids, and the number of rows of each query.
    together
        True if the rows of each query are adjacent.
    """

    ids: NDArray[Any]
    sizes: IntArray
    together: bool

    @property
    def n_rows(self) -> int:
        """Number of rows of all queries."""
        return int(self.sizes.sum())

    def within(self, first: int, last: int) -> QueryCounts:
        """Return the queries numbered from `first` to `last`."""
        return QueryCounts(self.ids[first:last], self.sizes[first:last], self.together)


def count_rows(columns: Iterable[NDArray[Any]]) -> QueryCounts | None:
    """Count the rows per id over consecutive columns; None if there are no rows.

    >>> counts = count_rows([np.array([7, 7]), np.array([7, 3])])
    >>> counts.ids.tolist(), counts.sizes.tolist(), counts.together
    ([3, 7], [1, 3], True)
    >>> count_rows([np.array([7, 3, 7])]).together
    False
    """
    counts: list[tuple[NDArray[Any], IntArray]] = []
    n_merged, n_runs, last = 0, 0, None
    for column in columns:
        if not len(column):
            continue
        starts = run_starts(column)
        counts.append(_merge_counts([(column[starts], np.diff(starts, append=len(column)))]))
        n_runs += len(starts) - int(last is not None and bool(last == column[0]))
        last = column[-1]
        if sum(len(ids) for ids, _ in counts) > n_merged + max(MERGED_AT_ONCE, n_merged):
            counts = [_merge_counts(counts)]
            n_merged = len(counts[0][0])
    if not counts:
        return None
    ids, sizes = _merge_counts(counts)
    return QueryCounts(ids, sizes, together=n_runs == len(ids))


def run_starts(column: NDArray[Any]) -> IntArray:
    """Return the rows at which runs of equal ids begin.

    >>> run_starts(np.array([7, 7, 3])).tolist()
    [0, 2]
    """
    return np.concatenate(([0], np.flatnonzero(column[1:] != column[:-1]) + 1))[: len(column)]


def _merge_counts(counts: list[tuple[NDArray[Any], IntArray]]) -> tuple[NDArray[Any], IntArray]:
    """Return the distinct ids, ascending, and the summed counts of each."""
    columns, sizes = zip(*counts, strict=True)
    ids, codes = np.unique(concatenate_part_ids(columns), return_inverse=True)
    return ids, np.bincount(codes, weights=np.concatenate(sizes)).astype(np.int64)
