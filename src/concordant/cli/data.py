"""What the commands around rankers read: rows of LETOR files and tables, and model files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concordant.cli.output import written_as
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    LabelError,
    ModelFileError,
    NotNumericError,
)

if TYPE_CHECKING:
    from concordant.cli.config import Config
    from concordant.cli.data_rows import FileRows

__all__ = [
    "CONFIG",
    "MODEL",
    "Columns",
    "DataFile",
    "DocidColumn",
    "FeatureColumns",
    "LabelColumn",
    "ModelPath",
    "QidColumn",
    "columns_of",
    "is_model",
    "load_model",
    "model_files",
    "naming_table",
    "read_for",
    "read_rows",
    "refuse_names",
    "refuse_unnamed",
    "run_config",
]

CONFIG, MODEL = "config.toml", "model.concordant"  # of a run directory
TABLES = (".parquet", ".pq", ".feather", ".arrow", ".csv", ".tsv")
COLUMNS = "Columns of a table"

DataFile = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Rows: LETOR text, [cyan]grade qid:7 1:0.5 ...[/cyan] a line, or a table (.parquet .feather "
        ".csv .tsv); text may be compressed.",
        show_default=False,
    ),
]
ModelPath = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A model file, or a run directory.", show_default=False),
]


def named(option: str, metavar: str, text: str) -> Any:
    """Give an option that names columns."""
    return typer.Option(option, metavar=metavar, help=text, rich_help_panel=COLUMNS, show_default=False)


LabelColumn = Annotated[
    str | None, named("--label", "COL", "Grades. Default: the first of grade, y, label, relevance, rel.")
]
QidColumn = Annotated[str | None, named("--qid", "COL", "Query ids. Default: qid.")]
DocidColumn = Annotated[str | None, named("--docid", "COL", "Document ids. Default: docid, if it is there.")]
FeatureColumns = Annotated[
    str | None, named("--features", "A,B,...", "Features. Default: all other columns; they must be numbers.")
]


@dataclass(frozen=True)
class Columns:
    """What the columns of a table are called; None: as by default. LETOR text has no names."""

    label: str | None = None
    qid: str | None = None
    docid: str | None = None
    features: tuple[str, ...] | None = None

    @classmethod
    def of(cls, label: str | None, qid: str | None, docid: str | None, features: str | None) -> Columns:
        """Give what the four options say.

        >>> Columns.of(None, "query", None, "bm25, age").features
        ('bm25', 'age')
        """
        from concordant.cli.compare_options import names_in

        return cls(label, qid, docid, names_in(features))


def read_rows(path: Path, columns: Columns | None = None, *, labelled: bool = True) -> FileRows:
    """Give the rows of LETOR text, or of a table, by the suffix.

    Parameters
    ----------
    labelled
        Whether a table must have grades; else they are 0 where it has none.
    """
    columns = Columns() if columns is None else columns
    if written_as(path) in TABLES:
        return table_rows(path, columns, labelled=labelled)
    import concordant as cc
    from concordant.cli.data_rows import FileRows

    refuse_names(path, columns)
    try:
        rows = cc.read_letor(path)
    except EmptyDataError as error:
        raise EmptyDataError(str(path)) from error
    return FileRows(rows.X, rows.y, rows.qid, rows.docid, path)


def refuse_names(path: Path, columns: Columns) -> None:
    """Refuse columns that are named of LETOR text."""
    given = [name for name, value in vars(columns).items() if value is not None]
    if given:
        hint = f"leave --{given[0]} out, or name a table ({' '.join(TABLES)})."
        raise LabelError(f"{path} is read as LETOR text, which has no columns of names", hint)


def table_rows(path: Path, columns: Columns, *, labelled: bool) -> FileRows:
    """Give the rows of a table, and the names of its features; errors name the file."""
    import numpy as np

    from concordant.cli.data_rows import FileRows
    from concordant.supervision.readers.roles import index_columns
    from concordant.supervision.readers.tables import GRADE_NAMES, _columns, _read_arrow, from_frame

    with naming_table(path):
        table = _read_arrow(path, (columns.qid or "qid", columns.docid or "docid"))
        names = _columns(table)[1]
        label = columns.label or next((name for name in GRADE_NAMES if name in names), None)
        refuse_unnamed(names, columns, label if labelled else "")
        if label is None and not labelled:
            label = "grade"
            table = table.append_column(label, [np.zeros(len(table))])
        own = (columns.qid or "qid", label, columns.docid or ("docid" if "docid" in names else None))
        features = columns.features
        if features is None:
            taken = (*own, *index_columns(table.schema))
            features = tuple(name for name in names if name not in taken)
        if not features and columns.features is None:
            raise LabelError("no column is left for features", f"it has {', '.join(names)}.")
        rows = from_frame(table, qid=own[0], grade=label, docid=own[2], features=features)
    return FileRows(rows.X, rows.y, rows.qid, rows.docid, path, features)


@contextmanager
def naming_table(path: Path) -> Iterator[None]:
    """Errors name the file, and the option that mends them."""
    try:
        yield
    except EmptyDataError as error:
        raise EmptyDataError(str(path)) from error
    except NotNumericError as error:
        problem = str(error).partition("\n")[0].rstrip(".")
        hint = "name the columns that are features: --features A,B,..."
        raise LabelError(beginning(path, problem), hint) from error
    except ConcordantError as error:
        error.args = (beginning(path, str(error)),)
        raise


def beginning(path: Path, message: str) -> str:
    """Give a message that begins with the file, or with one of the folder."""
    return message if message.startswith(str(path)) else f"{path}: {message}"


def refuse_unnamed(names: Sequence[str], columns: Columns, label: str | None) -> None:
    """Refuse a table whose grades or query ids nobody has named; `label` is None where none was found."""
    from concordant.supervision.readers.tables import GRADE_NAMES

    listed = f"it has {', '.join(names)}."
    if label is None:
        looked = f"no column of grades (looked for {', '.join(GRADE_NAMES)})"
        raise LabelError(looked, f"name it by --label COL; {listed}")
    if columns.qid is None and "qid" not in names:
        raise LabelError("no column of query ids (looked for qid)", f"name it by --qid COL; {listed}")


def read_for(
    source: Path, model: Any, path: Path, columns: Columns | None = None, *, labelled: bool = True
) -> FileRows:
    """Give the rows that a model reads: of a table its features, by the columns of the run it is from.

    Parameters
    ----------
    source
        Where the model is from; a run directory says how its columns were called.
    columns
        What they are called here, where that is said.
    """
    columns = columns_of(source, path, Columns() if columns is None else columns)
    names = getattr(model, "feature_names_in_", None)
    if written_as(path) in TABLES and columns.features is None and names is not None:
        columns = replace(columns, features=tuple(map(str, names)))
    return read_rows(path, columns if labelled else replace(columns, label=None), labelled=labelled)


def columns_of(source: Path, path: Path, columns: Columns) -> Columns:
    """Give what the columns of a table are called: as is said, else as in the run that a model is from."""
    if written_as(path) not in TABLES or not (source / CONFIG).is_file():
        return columns
    own = {name: value for name, value in vars(run_config(source).columns).items() if name != "features"}
    return replace(columns, **{name: own[name] for name in own if getattr(columns, name) is None})


def run_config(folder: Path) -> Config:
    """Give the configuration of a run directory."""
    from concordant.cli.runs import RunFolder

    return RunFolder(folder).config()


def is_model(path: Path) -> bool:
    """Whether this is a run directory or a model file; else it holds scores."""
    from concordant.supervision.readers.text import _read_all

    if path.is_dir() or written_as(path) == Path(MODEL).suffix:
        return True
    return _read_all(path).startswith(b"PK")  # a zip


def model_files(*paths: Path | None) -> list[Path]:
    """Give the files that models and runs are made of: commands that read them write elsewhere."""
    from concordant.cli.runs import OURS

    given = [path for path in paths if path is not None]
    return [one for path in given for one in ([path / name for name in OURS] if path.is_dir() else [path])]


def load_model(path: Path) -> Any:
    """Give the model of a file, or of a run directory."""
    import concordant as cc

    if not path.is_dir():
        return cc.load(path)
    if not (path / MODEL).is_file():
        hint = "an interrupted run has none: the same `concordant train` goes on; else name a model file."
        raise ModelFileError(path, f"there is no {MODEL} in this folder", hint)
    return cc.load(path / MODEL)
