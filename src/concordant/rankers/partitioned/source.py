"""Source: what `fit` is given where that is in parts, and how its parts are reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from concordant.exceptions import FeaturesError, LabelError, ParameterError
from concordant.solvers.partitioned.cluster import checked_client, is_collection
from concordant.solvers.partitioned.cluster_parts import ClusterParts
from concordant.solvers.partitioned.parts import Parts, Prepare, StreamedParts
from concordant.supervision.scans.index import Index
from concordant.supervision.scans.parquet_part import ParquetPart
from concordant.supervision.scans.scan import Part, Scan

__all__ = [
    "ON_CLUSTER",
    "Places",
    "ScanSource",
    "Source",
    "in_columns",
    "is_on_cluster",
    "source_of",
    "validate_names",
]

Places = Sequence[str] | None
"""Address of the worker that each part must be held by, as of `ClusterParts`."""
ON_CLUSTER = "'lbfgs', 'newton' or 'bundle' on a cluster: a walk from query to query is of one machine"


class Source(Protocol):
    """Data in parts.

    Attributes
    ----------
    index
        The queries of all parts.
    n_features, feature_names
        Of X; names are None where it has none.
    """

    @property
    def client(self) -> Any:
        """Of the cluster whose workers hold the parts; None: this process reads them."""

    @property
    def index(self) -> Index:
        """The queries of all parts."""

    @property
    def n_features(self) -> int:
        """Features of a row."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Their names, if they have any."""

    @property
    def weighted(self) -> bool:
        """Whether rows have a `sample_weight`."""

    def parts(self, prepare: Prepare[Any], own: Sequence[Any], places: Places = None) -> Parts:
        """Give the parts, prepared: read at each pass, or held by a cluster, at `places` if there are any."""


@dataclass(frozen=True, eq=False)
class ScanSource:
    """A scan, read by this process or, with a client, by the workers of a cluster.

    Features may be left in columns, as they are stored, for those that work on columns.
    """

    scan: Scan
    client: Any = None
    by_columns: bool = False

    @property
    def index(self) -> Index:
        """The queries of all parts."""
        return self.scan.index

    @property
    def n_features(self) -> int:
        """Features of a row."""
        return self.scan.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Their names, if they have any."""
        return self.scan.feature_names

    @property
    def weighted(self) -> bool:
        """Whether rows have a `sample_weight`."""
        return self.scan.weighted

    def parts(self, prepare: Prepare[Any], own: Sequence[Any], places: Places = None) -> Parts:
        """Give the parts, prepared."""
        parts = [in_columns(part) for part in self.scan.parts] if self.by_columns else self.scan.parts
        if self.client is None:
            return StreamedParts(parts, prepare, own)
        return ClusterParts(self.client, parts, prepare, own, places=places)


def in_columns(part: Part) -> Part:
    """Give a part whose features are left in columns, if that is how they are stored."""
    return replace(part, by_columns=True) if isinstance(part, ParquetPart) else part


def is_on_cluster(source: Source) -> bool:
    """Whether workers hold the parts."""
    return source.client is not None


def validate_names(model: Any, source: Source) -> None:
    """Take note of the features, as scikit-learn's `validate_data` does; there must be one."""
    if not source.n_features:
        raise FeaturesError("X", "it has no feature")
    model.n_features_in_ = source.n_features
    if source.feature_names is not None:
        model.feature_names_in_ = np.asarray(source.feature_names, dtype=object)
    elif hasattr(model, "feature_names_in_"):
        del model.feature_names_in_


def source_of(
    X: Any,
    y: Any = None,
    qid: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    client: Any = None,
    *,
    by_columns: bool = False,
) -> Source | None:
    """Give data in parts as such; None where it is in memory.

    `by_columns`: features of a scan may lie in memory column after column.
    """
    columns = {"y": y, "qid": qid, "sample_weight": sample_weight, "query_weight": query_weight}
    if isinstance(X, Scan):
        for name, value in columns.items():
            if value is not None:
                raise ParameterError(name, type(value).__name__, "left out: a scan has its own columns")
        return ScanSource(X, None if client is None else checked_client(client), by_columns)
    if is_collection(X):
        from concordant.rankers.partitioned.collection import CollectionSource

        return CollectionSource.of(X, columns, checked_client(client))
    if client is not None:
        wanted = "left out: X is in memory here; a scan (cc.scan_parquet) or Dask collections go to a cluster"
        raise ParameterError("client", type(client).__name__, wanted)
    if given := [name for name, value in columns.items() if is_collection(value)]:
        hint = "give X as a Dask array or frame too, or compute() the others."
        raise LabelError(f"{given[0]} is a Dask collection, and X is not", hint)
    return None
