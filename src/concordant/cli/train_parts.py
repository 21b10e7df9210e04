"""The data files of a run that are not read whole: part by part, or by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from concordant.cli.config import Config
from concordant.cli.data import TABLES, Columns, naming_table, refuse_names, refuse_unnamed
from concordant.cli.inputs import Ranking
from concordant.cli.output import console, plural, working, written_as
from concordant.cli.place import UNBOUNDED, Place
from concordant.cli.results import Result
from concordant.cli.runs import fingerprint
from concordant.cli.train_files import refuse_pipe
from concordant.exceptions import LabelError, ParameterError, ShapeError

if TYPE_CHECKING:
    from concordant.supervision.scans.letor_part import LetorPart
    from concordant.supervision.scans.scan import Scan
    from concordant.types import FloatArray

__all__ = ["FileParts", "scan_files"]

PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class FileParts:
    """Queries of a file or folder that stay where they are; `client`: of the cluster that reads them."""

    scan: Scan
    path: Path
    client: Any = None

    @property
    def n_rows(self) -> int:
        """Rows."""
        return self.scan.n_rows

    @property
    def n_queries(self) -> int:
        """Queries."""
        return self.scan.n_queries

    @property
    def n_features(self) -> int:
        """Features of a row."""
        return self.scan.n_features

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Give what `fit` is called with."""
        return (self.scan,), {} if self.client is None else {"client": self.client}

    def judged(self, model: Any, name: str, metrics: Sequence[str], *, quiet: bool) -> list[Result]:
        """Give what a model is worth on these queries, which are called so."""
        import concordant as cc

        index = self.scan.index
        ranking = Ranking(name, None, None, cc.Queries(index.offsets, index.ids[index.order]))
        found = self.evaluated(model, f"Measuring {name}", metrics, quiet=quiet)
        return [
            Result(ranking, cc.metric(one), found[one], found.per_query[str(cc.metric(one))])
            for one in metrics
        ]

    def evaluated(self, model: Any, title: str, metrics: Sequence[str], *, quiet: bool) -> Any:
        """Read all parts, here under a bar."""
        import concordant as cc

        barred = self.client is None and not quiet and console(stderr=True).is_terminal
        with working(title, quiet=quiet or barred):
            return cc.evaluate(model, self.scan, metrics=metrics, client=self.client, verbose=int(barred))


def scan_files(
    config: Config, place: Place, client: Any, *, quiet: bool
) -> tuple[dict[str, FileParts], dict[str, dict[str, Any]]]:
    """Give each file as parts, and its fingerprint; of others than the training set all rows are checked.

    Those of the training set are checked by the fit, before its first step.
    """
    rows: dict[str, FileParts] = {}
    prints: dict[str, dict[str, Any]] = {}
    memory = UNBOUNDED if place.memory is None else place.memory
    for part, path in config.files.items():
        with working(f"Scanning {path.name}", quiet=quiet):
            refuse_pipe(path)
            rows[part] = FileParts(scanned(path, config.columns, memory, rows), path, client)
            prints[part] = fingerprint(path)
    rows = together(rows)
    for part, one in rows.items():
        if part != "train":
            one.evaluated(unranked, f"Checking {one.path.name}", config.metrics, quiet=quiet)
    return rows, prints


def unranked(X: Any) -> FloatArray:
    """Give all rows the same score: what is evaluated so is read, and found fit for the metrics."""
    return np.zeros(len(X))


def together(rows: Mapping[str, FileParts]) -> dict[str, FileParts]:
    """Give all sets the features of the training set; of LETOR text, those of the widest."""
    train, width = rows["train"].scan, rows["train"].n_features
    if train.feature_names is None:
        width = max(one.n_features for one in rows.values() if one.scan.feature_names is None)
    for one in rows.values():
        text = one.scan.feature_names is None
        if one.n_features > width or (one.n_features < width and not text):
            expected = f"{plural(width, 'feature', 'features')}, as the training set has"
            raise ShapeError(str(one.path), (one.n_rows, one.n_features), expected)
    return {
        part: replace(one, scan=widened(one.scan, width, train.feature_names)) for part, one in rows.items()
    }


def widened(scan: Scan, n_features: int, names: tuple[str, ...] | None) -> Scan:
    """Give a scan of text those features that others have; of tables they are the same already."""
    if scan.feature_names is not None:
        return scan
    parts = tuple(replace(cast("LetorPart", part), n_features=n_features) for part in scan.parts)
    return replace(scan, parts=parts, n_features=n_features, feature_names=names)


def scanned(path: Path, columns: Columns, memory: int, others: Mapping[str, FileParts]) -> Scan:
    """Give the scan of a file; of Parquet those features that the training set has."""
    from concordant.supervision.readers.text import COMPRESSED

    suffix = written_as(path)
    parquet = path.is_dir() or suffix in PARQUET
    if path.suffix in COMPRESSED or (suffix in TABLES and not parquet):
        wanted = (
            f"Parquet or plain LETOR text, to be read in parts: `concordant convert {path.name}` makes it so"
        )
        raise ParameterError("DATA", str(path), wanted)
    if not parquet:
        return letor_scan(path, columns, memory)
    if others and columns.features is None:
        columns = replace(columns, features=others["train"].scan.feature_names)
    return parquet_scan(path, columns, memory)


def parquet_scan(path: Path, columns: Columns, memory: int) -> Scan:
    """Scan a Parquet file, or a folder of them; errors name the options that mend them."""
    import concordant as cc
    from concordant.supervision.readers.roles import GRADE_NAMES
    from concordant.supervision.scans.parquet import parquet_files, schema_of

    with naming_table(path):
        for file in parquet_files(path)[:1]:
            names = schema_of(file).names
            refuse_unnamed(
                names, columns, columns.label or next((one for one in GRADE_NAMES if one in names), None)
            )
            if lacking := [one for one in columns.features or () if one not in names]:
                hint = (
                    f"its columns are {', '.join(names)}; rename them, or name others by --features A,B,..."
                )
                raise LabelError(f"no column {lacking[0]!r}, which is a feature", hint)
        scan: Scan = cc.scan_parquet(
            path,
            qid=columns.qid or "qid",
            grade=columns.label,
            features=columns.features,
            docid=columns.docid,
            memory=memory,
        )
    return scan


def letor_scan(path: Path, columns: Columns, memory: int) -> Scan:
    """Scan LETOR text."""
    import concordant as cc

    refuse_names(path, columns)
    scan: Scan = cc.scan_letor(path, memory=memory)
    return scan
