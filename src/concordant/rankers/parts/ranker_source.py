"""Parts sources: data in parts passed to `fit`, and access to its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from concordant._base.validate import check_grades, check_ids, check_lengths, check_nonnegative
from concordant.data.check import (
    are_in_memory,
    check_features,
    is_collection,
    plain_features,
    to_query_weights,
)
from concordant.exceptions import EmptyDataError, FeaturesError, LabelError, ParameterError, ShapeError
from concordant.scale.cluster import check_client, gather_results, submit_task
from concordant.scale.cluster_parts import (
    CollectionPiece,
    compute_pieces,
    is_partitioned,
    prepare_parts,
    rechunk_by_rows,
)
from concordant.scale.parts import Parts, Prepare
from concordant.scale.scan.index import Index, Piece
from concordant.scale.scan.parquet import ParquetPart
from concordant.scale.scan.scan import Part, PartRows, Scan, locating, scan_column_error

Addresses = Sequence[str] | None
"""Address of the worker that must hold each part; see `ClusterParts`."""
SGD_ON_CLUSTER = "solver='sgd' does not run on a cluster. Use solver='lbfgs', 'newton' or 'bundle'."


@dataclass(frozen=True, eq=False)
class PartsSource:
    """Data in parts.

    Attributes
    ----------
    client
        Client of the cluster that holds the parts; None: this process reads them.
    pieces
        Parts of a scan, or one `CollectionPiece` for each Dask partition.
    rows
        Futures of the checked rows of each partition; None for a scan.
    index
        Queries of all parts.
    n_features, feature_names
        Number and names of the features; names are None if there are none.
    weighted
        True if rows have a `sample_weight`.
    """

    client: Any
    pieces: Sequence[Part]
    rows: list[Any] | None
    index: Index
    n_features: int
    feature_names: tuple[str, ...] | None
    weighted: bool

    def parts(self, prepare: Prepare[Any], specs: Sequence[Any], places: Addresses = None) -> Parts:
        """Return the prepared parts; of collections only once, since workers need not keep the rows."""
        return prepare_parts(self.client, self.pieces, prepare, specs, self.rows, places)


def validate_names(model: Any, source: PartsSource) -> None:
    """Set the model's feature attributes as scikit-learn's `validate_data` does; raise without features."""
    if not source.n_features:
        raise FeaturesError("X", "it has no feature")
    model.n_features_in_ = source.n_features
    if source.feature_names is not None:
        model.feature_names_in_ = np.asarray(source.feature_names, dtype=object)
    elif hasattr(model, "feature_names_in_"):
        del model.feature_names_in_


def as_parts_source(
    X: Any,
    y: Any = None,
    qid: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    client: Any = None,
    *,
    by_columns: bool = False,
) -> PartsSource:
    """Return the source of data in parts; raise if X is in memory, and a client or another column is not.

    `by_columns`: features of a scan stay in columns, as they are stored, for computations on columns.
    """
    columns = {"y": y, "qid": qid, "sample_weight": sample_weight, "query_weight": query_weight}
    if isinstance(X, Scan):
        for name, value in columns.items():
            if value is not None:
                raise scan_column_error(name)
        client = None if client is None else check_client(client)
        pieces = [in_columns(part) for part in X.parts] if by_columns else X.parts
        return PartsSource(client, pieces, None, X.index, X.n_features, X.feature_names, X.weighted)
    if is_collection(X):
        return _collection_source(X, columns, check_client(client))
    if client is not None:
        raise ParameterError.because(
            "client was given, but X is an in-memory array. Pass a scan (cc.scan_parquet) or Dask "
            "collections to train on a cluster."
        )
    name = next(name for name, value in columns.items() if not are_in_memory(value))
    kind = "Dask collection" if is_collection(columns[name]) else "scan"
    hint = "give X as a Dask array or frame too, or compute() the others."
    raise LabelError(f"{name} is a {kind}, and X is not", hint)


def in_columns(part: Part) -> Part:
    """Leave the features of a Parquet part in columns; other parts stay as they are."""
    return replace(part, by_columns=True) if isinstance(part, ParquetPart) else part


# Dask arrays and frames as a source: each partition is checked where it is, and kept there.

CUT = "each partition must hold whole queries: frame.shuffle(on=QID) gives such, or a rechunk of arrays."

FrameWithSeries = tuple[Any, dict[str, Any]]
"""A partition of a frame, and the matching partitions of its series, by name."""


def _collection_source(X: Any, columns: Mapping[str, Any], client: Any) -> PartsSource:
    """Check the rows of Dask collections where they are; raise if a query has rows in two partitions."""
    if columns["y"] is None or columns["qid"] is None:
        missing = "y" if columns["y"] is None else "qid"
        hint = "give one label, and one query id, per row, as collections of the same partitions."
        raise LabelError(f"{missing} is missing", hint)
    if not is_partitioned(X) or X.ndim != 2:
        raise FeaturesError("X", f"it is a {type(X).__name__}, neither a frame nor an array of rows")
    names, X = _frame_names(X), rechunk_by_rows(X)
    rows = _checked_partitions(client, X, columns)
    summaries = gather_results(
        client, [submit_task(client, _summarize_partition, *numbered) for numbered in enumerate(rows)]
    )
    filled = [number for number, summary in enumerate(summaries) if summary is not None]
    if not filled:
        raise EmptyDataError("X")
    widths = {summaries[number][1] for number in filled}
    if len(widths) > 1:
        raise ShapeError("X", tuple(sorted(widths)), "as many columns in every partition")
    pieces = [CollectionPiece(number) for number in filled]
    index = Index.from_pieces(
        [summaries[number][0] for number in filled], [piece.name for piece in pieces], CUT
    )
    weighted = columns["sample_weight"] is not None
    filled_rows = [rows[number] for number in filled]
    return PartsSource(client, pieces, filled_rows, index, widths.pop(), names, weighted)


def _frame_names(X: Any) -> tuple[str, ...] | None:
    """Return the column names of a frame if all are text; raise if a name occurs twice."""
    names = tuple(getattr(X, "columns", ()))
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise LabelError(f"two columns of X are called {repeated[0]!r}", "rename or drop one of them.")
    return names if names and all(isinstance(name, str) for name in names) else None


def _checked_partitions(client: Any, X: Any, columns: Mapping[str, Any]) -> list[Any]:
    """Return futures of each partition's checked rows; raise if collections have other partitions than X."""
    collections = {name: _single_column(name, value) for name, value in columns.items() if value is not None}
    for name, value in collections.items():
        if value.npartitions != X.npartitions:
            problem = f"{name} has {value.npartitions} partitions, X has {X.npartitions}"
            raise LabelError(problem, "repartition one like the other.")
    beside = {name: value for name, value in collections.items() if hasattr(value, "divisions")}
    beside = beside if hasattr(X, "divisions") else {}
    partitions = compute_pieces(client, _zip_partitions(X, beside) if beside else X)
    apart = {name: compute_pieces(client, value) for name, value in collections.items() if name not in beside}
    return [
        submit_task(
            client,
            _check_partition,
            number,
            future,
            {name: futures[number] for name, futures in apart.items()},
        )
        for number, future in enumerate(partitions)
    ]


def _single_column(name: str, value: Any) -> Any:
    """Return an array or a series; of a frame its only column."""
    if not is_partitioned(value):
        hint = f"give {name} as a Dask array or series of the same partitions as X."
        raise LabelError(f"X is a Dask collection, and {name} is a {type(value).__name__}", hint)
    if not hasattr(value, "columns") or value.ndim == 1:
        return value
    if len(value.columns) != 1:
        raise LabelError(f"{name} has {len(value.columns)} columns", "give a series, or a frame of one.")
    return value[value.columns[0]]


def _zip_partitions(X: Any, series: Mapping[str, Any]) -> Any:
    """Combine a frame and series into a single collection of pairs of both.

    Computed separately, their rows might come in different orders. Partitions are matched by their divisions,
    or by number if these are unknown: Dask would shuffle such frames by an index that repeats across files.
    """
    cut = [_repartition_like(X, value) for value in series.values()]
    return X.map_partitions(_pair_with_series, *cut, names=tuple(series), meta=X, enforce_metadata=False)


def _repartition_like(X: Any, value: Any) -> Any:
    if X.known_divisions and value.known_divisions and X.divisions != value.divisions:
        return value.repartition(divisions=X.divisions, force=True)
    return value


def _pair_with_series(X: Any, *series: Any, names: Sequence[str]) -> FrameWithSeries:
    return X, dict(zip(names, series, strict=True))


def _check_partition(number: int, X: Any, apart: Mapping[str, Any]) -> PartRows | None:
    """Check the rows of a partition, on a worker; None if it is empty."""
    X, beside = X if isinstance(X, tuple) else (X, {})
    if hasattr(X, "tocsr"):
        raise FeaturesError(
            "X", "its chunks are sparse; make them dense by X.map_blocks(lambda chunk: chunk.toarray())"
        )
    with locating(CollectionPiece(number)):
        columns = {**apart, **{name: _align_series(name, series, X.index) for name, series in beside.items()}}
        if len(X):
            return _checked_rows(X, **columns)
        check_lengths("X", 0, **columns)
        return None


def _align_series(name: str, series: Any, index: Any) -> Any:
    """Return a series in the order of an index; raise if their values differ."""
    if series.index.equals(index):
        return series
    if index.is_unique and len(series) == len(index) and index.isin(series.index).all():
        return series.loc[index]
    difference = "differ" if index.is_unique else "differ, and repeat values"
    hint = f"take X and {name} from one frame, or pass {name}.to_dask_array() to match rows by position."
    raise LabelError(f"the rows of {name} are not those of X: their indices {difference}", hint)


def _checked_rows(X: Any, y: Any, qid: Any, **weights: Any) -> PartRows:
    features = np.ascontiguousarray(check_features(plain_features(X)))
    grades, ids = check_grades(y), check_ids(qid)
    checked_weights = {name: check_nonnegative(value, name, "row") for name, value in weights.items()}
    check_lengths("X", len(features), y=grades, qid=ids, **checked_weights)
    return PartRows.from_rows(features, grades, ids, **checked_weights)


def _summarize_partition(number: int, rows: PartRows | None) -> tuple[Piece, int] | None:
    """Return the queries of a partition, and its number of features, on a worker."""
    if rows is None:
        return None
    queries, weights = rows.queries, rows.query_weight
    with locating(CollectionPiece(number)):
        query_weights = None if weights is None else to_query_weights(weights, queries)
    return (queries.ids, queries.sizes, query_weights), int(rows.X.shape[1])
