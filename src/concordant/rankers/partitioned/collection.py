"""Dask arrays and frames as a source: each partition's rows are checked where they are, and kept there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.exceptions import EmptyDataError, FeaturesError, LabelError, ShapeError
from concordant.rankers.training import query_weights
from concordant.solvers.partitioned.cluster import (
    ClusterParts,
    by_rows,
    gathered,
    is_collection,
    partitions,
    submitted,
)
from concordant.solvers.partitioned.parts import Parts, Prepare
from concordant.supervision.check import check_features, plain_features
from concordant.supervision.columns import check_grades, check_ids, check_lengths, check_nonnegative
from concordant.supervision.queries import Queries
from concordant.supervision.scans.index import Index, Piece
from concordant.supervision.scans.scan import PartRows, locating

__all__ = ["CollectionSource", "Partition"]

CUT = "each partition must hold whole queries: frame.shuffle(on=QID) gives such, or a rechunk of arrays."
OURS = "concordant: "  # begins the names of columns that are put beside a frame's


@dataclass(frozen=True)
class Partition:
    """A partition of collections, by its number."""

    number: int
    n_rows: int = 0
    nbytes: int = 0

    @property
    def name(self) -> str:
        """What it is called."""
        return f"partition {self.number}"

    def where(self, row: int) -> tuple[str, int]:
        """Rows are counted in the partition."""
        return self.name, row

    def read(self) -> PartRows:
        """Nobody asks: workers have the rows."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class CollectionSource:
    """Rows that workers have, and what is known of them.

    Attributes
    ----------
    client
        Of the cluster.
    rows
        Futures of `PartRows`, by the number of the partition; empty partitions have none.
    index, n_features, feature_names, weighted
        As of `Source`.
    """

    client: Any
    rows: dict[int, Any]
    index: Index
    n_features: int
    feature_names: tuple[str, ...] | None
    weighted: bool

    @classmethod
    def of(cls, X: Any, columns: Mapping[str, Any], client: Any) -> CollectionSource:
        """Check the rows where they are; a query whose rows are in two partitions is refused."""
        if columns["y"] is None or columns["qid"] is None:
            missing = "y" if columns["y"] is None else "qid"
            hint = "give one label, and one query id, per row, as collections of the same partitions."
            raise LabelError(f"{missing} is missing", hint)
        if getattr(X, "ndim", None) != 2:
            raise FeaturesError("X", f"it is a {type(X).__name__}, neither a frame nor an array of rows")
        names, X = frame_names(X), by_rows(X)
        rows = checked_partitions(client, X, columns)
        pieces = gathered(client, [submitted(client, piece, row) for row in rows])
        kept = [number for number, one in enumerate(pieces) if one is not None]
        if not kept:
            raise EmptyDataError("X")
        widths = {pieces[number][1] for number in kept}
        if len(widths) > 1:
            raise ShapeError("X", tuple(sorted(widths)), "as many columns in every partition")
        named = [Partition(number).name for number in kept]
        index = Index.of([pieces[number][0] for number in kept], named, CUT)
        weighted = columns["sample_weight"] is not None
        return cls(client, {number: rows[number] for number in kept}, index, widths.pop(), names, weighted)

    def parts(self, prepare: Prepare[Any], own: Sequence[Any], places: Sequence[str] | None = None) -> Parts:
        """Give the partitions, prepared; once, since workers need not keep what they were made of."""
        parts, rows = [Partition(number) for number in self.rows], list(self.rows.values())
        self.rows.clear()
        return ClusterParts(self.client, parts, prepare, own, rows, places)


def frame_names(X: Any) -> tuple[str, ...] | None:
    """Names of a frame's columns, if all are text; one that is there twice is refused."""
    names = tuple(getattr(X, "columns", ()))
    if repeated := [name for name in names if names.count(name) > 1]:
        raise LabelError(f"two columns of X are called {repeated[0]!r}", "rename or drop one of them.")
    return names if names and all(isinstance(name, str) for name in names) else None


def checked_partitions(client: Any, X: Any, columns: Mapping[str, Any]) -> list[Any]:
    """Give futures of each partition's rows; collections of other partitions than X are refused."""
    given = {name: one_column(name, value) for name, value in columns.items() if value is not None}
    for name, value in given.items():
        refuse_other(name, value.npartitions, X.npartitions)
    whole = with_columns(X, given)
    apart = {name: value for name, value in given.items() if not is_beside(X, value)}
    for name, value in apart.items():
        refuse_other(name, value.npartitions, whole.npartitions)
    features = partitions(client, whole)
    apart = {name: partitions(client, value) for name, value in apart.items()}
    return [
        submitted(client, part_rows, number, one, {name: own[number] for name, own in apart.items()})
        for number, one in enumerate(features)
    ]


def one_column(name: str, value: Any) -> Any:
    """Give an array or a series; of a frame its one column."""
    if not is_collection(value) or not hasattr(type(value), "npartitions"):
        hint = f"give {name} as a Dask array or series of the same partitions as X."
        raise LabelError(f"X is a Dask collection, and {name} is a {type(value).__name__}", hint)
    if not hasattr(value, "columns") or value.ndim == 1:
        return value
    if len(value.columns) != 1:
        raise LabelError(f"{name} has {len(value.columns)} columns", "give a series, or a frame of one.")
    return value[value.columns[0]]


def refuse_other(name: str, own: int, n_partitions: int) -> None:
    """Refuse a column that is cut elsewhere than X, or than X is where its rows meet those of a series."""
    if own != n_partitions:
        problem = f"{name} has {own} partitions, X has {n_partitions}"
        raise LabelError(problem, "repartition one like the other.")


def is_beside(X: Any, value: Any) -> bool:
    """Whether both are of frames, so that one can be a column of the other."""
    return hasattr(X, "divisions") and hasattr(value, "divisions")


def with_columns(X: Any, given: Mapping[str, Any]) -> Any:
    """Give a frame with the series beside it: computed apart, their rows might come in other orders."""
    own = {OURS + name: value for name, value in given.items() if is_beside(X, value)}
    return X.assign(**own) if own else X


def part_rows(number: int, X: Any, apart: Mapping[str, Any]) -> PartRows | None:
    """Check the rows of a partition, on a worker; None where it is empty."""
    if hasattr(X, "tocsr"):
        raise FeaturesError("X", "its chunks are sparse; X.map_blocks(lambda chunk: chunk.toarray()) is not")
    if not len(X):
        return None
    beside = [name for name in getattr(X, "columns", ()) if str(name).startswith(OURS)]
    columns = {**apart, **{name.removeprefix(OURS): X[name] for name in beside}}
    return checked_rows(number, X.drop(columns=beside) if beside else X, **columns)


def checked_rows(number: int, X: Any, y: Any, qid: Any, **weights: Any) -> PartRows:
    """Check features, grades, ids and weights."""
    with locating(Partition(number)):
        features = np.ascontiguousarray(check_features(plain_features(X)))
        grades, ids = check_grades(y), check_ids(qid)
        given = {name: check_nonnegative(value, name, "row") for name, value in weights.items()}
        check_lengths("X", len(features), y=grades, qid=ids, **given)
        return PartRows.of(features, grades, ids, **given)


def piece(rows: PartRows | None) -> tuple[Piece, int] | None:
    """Give the queries of a partition, and its number of features; on a worker."""
    if rows is None:
        return None
    queries, weights = rows.queries, None
    if rows.query_weight is not None:
        own = Queries.from_sizes(queries.sizes)
        counts = rows.query_weight.any()
        weights = query_weights(rows.query_weight, own) if counts else np.zeros(own.n_queries)
    return (queries.ids, queries.sizes, weights), int(rows.X.shape[1])
