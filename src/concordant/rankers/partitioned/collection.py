"""Dask arrays and frames as a source: each partition's rows are checked where they are, and kept there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.exceptions import EmptyDataError, FeaturesError, LabelError, ShapeError
from concordant.solvers.partitioned.cluster import gathered, submitted
from concordant.solvers.partitioned.cluster_parts import ClusterParts
from concordant.solvers.partitioned.parts import Parts, Prepare
from concordant.solvers.partitioned.pieces import Named, by_rows, is_cut, pieces
from concordant.supervision.check import check_features, plain_features
from concordant.supervision.columns import check_grades, check_ids, check_lengths, check_nonnegative
from concordant.supervision.scans.index import Index, Piece
from concordant.supervision.scans.scan import PartRows, locating
from concordant.supervision.weights import agreed_weights

__all__ = ["CollectionSource"]

CUT = "each partition must hold whole queries: frame.shuffle(on=QID) gives such, or a rechunk of arrays."

Beside = tuple[Any, dict[str, Any]]
"""A partition of a frame, and those of the series that go with it, by their names."""


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
        if not is_cut(X) or X.ndim != 2:
            raise FeaturesError("X", f"it is a {type(X).__name__}, neither a frame nor an array of rows")
        names, X = frame_names(X), by_rows(X)
        rows = checked_partitions(client, X, columns)
        found = gathered(client, [submitted(client, seen, *numbered) for numbered in enumerate(rows)])
        kept = [number for number, one in enumerate(found) if one is not None]
        if not kept:
            raise EmptyDataError("X")
        widths = {found[number][1] for number in kept}
        if len(widths) > 1:
            raise ShapeError("X", tuple(sorted(widths)), "as many columns in every partition")
        named = [Named(number).name for number in kept]
        index = Index.of([found[number][0] for number in kept], named, CUT)
        weighted = columns["sample_weight"] is not None
        return cls(client, {number: rows[number] for number in kept}, index, widths.pop(), names, weighted)

    def parts(self, prepare: Prepare[Any], own: Sequence[Any], places: Sequence[str] | None = None) -> Parts:
        """Give the partitions, prepared; once, since workers need not keep what they were made of."""
        parts, rows = [Named(number) for number in self.rows], list(self.rows.values())
        self.rows.clear()
        return ClusterParts(self.client, parts, prepare, own, rows, places)


def frame_names(X: Any) -> tuple[str, ...] | None:
    """Names of a frame's columns, if all are text; one that is there twice is refused."""
    names = tuple(getattr(X, "columns", ()))
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise LabelError(f"two columns of X are called {repeated[0]!r}", "rename or drop one of them.")
    return names if names and all(isinstance(name, str) for name in names) else None


def checked_partitions(client: Any, X: Any, columns: Mapping[str, Any]) -> list[Any]:
    """Give futures of each partition's rows; collections of other partitions than X are refused."""
    given = {name: one_column(name, value) for name, value in columns.items() if value is not None}
    for name, value in given.items():
        if value.npartitions != X.npartitions:
            problem = f"{name} has {value.npartitions} partitions, X has {X.npartitions}"
            raise LabelError(problem, "repartition one like the other.")
    beside = {name: value for name, value in given.items() if hasattr(value, "divisions")}
    beside = beside if hasattr(X, "divisions") else {}
    features = pieces(client, together(X, beside) if beside else X)
    apart = {name: pieces(client, value) for name, value in given.items() if name not in beside}
    return [
        submitted(client, part_rows, number, one, {name: own[number] for name, own in apart.items()})
        for number, one in enumerate(features)
    ]


def one_column(name: str, value: Any) -> Any:
    """Give an array or a series; of a frame its one column."""
    if not is_cut(value):
        hint = f"give {name} as a Dask array or series of the same partitions as X."
        raise LabelError(f"X is a Dask collection, and {name} is a {type(value).__name__}", hint)
    if not hasattr(value, "columns") or value.ndim == 1:
        return value
    if len(value.columns) != 1:
        raise LabelError(f"{name} has {len(value.columns)} columns", "give a series, or a frame of one.")
    return value[value.columns[0]]


def together(X: Any, series: Mapping[str, Any]) -> Any:
    """Give a frame and series in one collection, of pairs of both.

    Computed apart, their rows might come in other orders. Partitions meet by their divisions, or by their
    number where these are unknown: Dask would shuffle such frames by an index that files may have in common.
    """
    cut = [cut_as(X, value) for value in series.values()]
    return X.map_partitions(side_by_side, *cut, names=tuple(series), meta=X, enforce_metadata=False)


def cut_as(X: Any, value: Any) -> Any:
    """Give a series, cut where the frame is if that is known of both."""
    if X.known_divisions and value.known_divisions and X.divisions != value.divisions:
        return value.repartition(divisions=X.divisions, force=True)
    return value


def side_by_side(X: Any, *series: Any, names: Sequence[str]) -> Beside:
    """Give a partition of each; on a worker."""
    return X, dict(zip(names, series, strict=True))


def part_rows(number: int, X: Any, apart: Mapping[str, Any]) -> PartRows | None:
    """Check the rows of a partition, on a worker; None where it is empty."""
    X, beside = X if isinstance(X, tuple) else (X, {})
    if hasattr(X, "tocsr"):
        raise FeaturesError("X", "its chunks are sparse; X.map_blocks(lambda chunk: chunk.toarray()) is not")
    with locating(Named(number)):
        columns = {**apart, **{name: in_order(name, one, X.index) for name, one in beside.items()}}
        if len(X):
            return checked_rows(X, **columns)
        check_lengths("X", 0, **columns)
        return None


def in_order(name: str, series: Any, index: Any) -> Any:
    """Give a series in the order of an index, which must be its own but for that."""
    if series.index.equals(index):
        return series
    if index.is_unique and len(series) == len(index) and index.isin(series.index).all():
        return series.loc[index]
    told = "differ" if index.is_unique else "differ, and repeat values"
    hint = f"take X and {name} from one frame; or give {name}.to_dask_array(), whose rows go by their place."
    raise LabelError(f"the rows of {name} are not those of X: their indices {told}", hint)


def checked_rows(X: Any, y: Any, qid: Any, **weights: Any) -> PartRows:
    """Check features, grades, ids and weights."""
    features = np.ascontiguousarray(check_features(plain_features(X)))
    grades, ids = check_grades(y), check_ids(qid)
    given = {name: check_nonnegative(value, name, "row") for name, value in weights.items()}
    check_lengths("X", len(features), y=grades, qid=ids, **given)
    return PartRows.of(features, grades, ids, **given)


def seen(number: int, rows: PartRows | None) -> tuple[Piece, int] | None:
    """Give the queries of a partition, and its number of features; on a worker."""
    if rows is None:
        return None
    queries, weights = rows.queries, rows.query_weight
    with locating(Named(number)):
        own = None if weights is None else agreed_weights(weights, queries)
    return (queries.ids, queries.sizes, own), int(rows.X.shape[1])
