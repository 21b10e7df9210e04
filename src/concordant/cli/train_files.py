"""The data files of a run, read whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from concordant.cli.config import Config
from concordant.cli.data import read_rows
from concordant.cli.data_rows import FileRows, features_for, padded
from concordant.cli.output import working
from concordant.cli.runs import fingerprint
from concordant.exceptions import ParameterError

__all__ = ["StandIn", "read_files", "refuse_pipe"]

FOLDER = (
    "a file; a folder of Parquet files is read in parts, by `concordant train` with --memory SIZE or on a "
    "cluster"
)


def read_files(config: Config, *, quiet: bool) -> tuple[dict[str, FileRows], dict[str, dict[str, Any]]]:
    """Give the rows and the fingerprint of each file; sets that do not go together are refused."""
    rows: dict[str, FileRows] = {}
    prints: dict[str, dict[str, Any]] = {}
    for part, path in config.files.items():
        with working(f"Reading {path.name}", quiet=quiet):
            refuse_pipe(path)
            if path.is_dir():
                raise ParameterError("DATA", str(path), FOLDER)
            rows[part] = read_rows(path, config.columns)
            prints[part] = fingerprint(path)
    return together(rows), prints


def refuse_pipe(path: Path) -> None:
    """Refuse what can be read once only: neither its fingerprint nor the run could be made again."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ParameterError(
            "DATA", str(path), "a file that can be read again, since a run is made again by it"
        )


def together(rows: Mapping[str, FileRows]) -> dict[str, FileRows]:
    """Give all sets the features of the training set; of LETOR text, those of the widest."""
    train = rows["train"]
    if train.features is None:
        widest = max(one.X.shape[1] for one in rows.values() if one.features is None)
        if widest > train.X.shape[1]:
            train = FileRows(padded(train.X, widest), train.y, train.qid, train.docid, train.path)
    stand_in = StandIn(train)
    for one in rows.values():
        features_for(stand_in, one)
    return {**rows, "train": train}


class StandIn:
    """What a model fitted to these rows would ask of others."""

    def __init__(self, rows: FileRows) -> None:
        self.n_features_in_ = rows.X.shape[1]
        self.feature_names_in_ = rows.features
