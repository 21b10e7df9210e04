"""Input of the commands around rankers: rows of LETOR files and tables, and model files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from concordant.cli.shared.output import argument, option, written_as
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    LabelError,
    ModelFileError,
    NotNumericError,
    UnknownNameError,
)

if TYPE_CHECKING:
    from concordant.cli.runs.config import Config
    from concordant.cli.shared.file_rows import FileRows
    from concordant.data.io.roles import Roles


CONFIG, MODEL = "config.toml", "model.concordant"  # of a run directory
TABLES = (".parquet", ".pq", ".feather", ".arrow", ".csv", ".tsv")
COLUMNS = "Columns of a table"

DataFile = Annotated[
    Path,
    argument(
        "DATA",
        "Rows: LETOR text, [cyan]grade qid:7 1:0.5 ...[/cyan] a line, or a table (.parquet .feather "
        ".csv .tsv); text may be compressed.",
    ),
]
ModelPath = Annotated[Path, argument("MODEL", "A model file, or a run directory.")]


LabelColumn = Annotated[
    str | None, option("--label", "COL", "Grades. Default: grade, y, label, relevance or rel.", COLUMNS)
]
QidColumn = Annotated[str | None, option("--qid", "COL", "Query ids. Default: qid.", COLUMNS)]
DocidColumn = Annotated[
    str | None, option("--docid", "COL", "Document ids. Default: docid, if it is there.", COLUMNS)
]
FeatureColumns = Annotated[
    str | None,
    option(
        "--features",
        "A,B,...",
        "Features, or ranges of columns such as f1-f50. Default: all other columns; they must be numbers.",
        COLUMNS,
    ),
]


@dataclass(frozen=True)
class JudgedColumns:
    """Options that name the columns of judged rows."""

    label: LabelColumn = None
    qid: QidColumn = None
    docid: DocidColumn = None

    def names(self) -> ColumnNames:
        """Return the names, with those of the features one by one."""
        return ColumnNames.from_options(**vars(self))


@dataclass(frozen=True)
class RowColumns(JudgedColumns):
    """Options that name the columns of rows with features."""

    features: FeatureColumns = None


@dataclass(frozen=True)
class TrainingColumns(RowColumns):
    """Options that name the columns of rows to train on."""

    exclude: Annotated[
        str | None,
        option("--exclude", "A,B,...", "Columns or ranges that are not features.", COLUMNS),
    ] = None


@dataclass(frozen=True)
class ColumnNames:
    """Names of the columns of a table; None: the default. LETOR text has no names."""

    label: str | None = None
    qid: str | None = None
    docid: str | None = None
    features: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None

    @classmethod
    def from_options(
        cls,
        label: str | None = None,
        qid: str | None = None,
        docid: str | None = None,
        features: str | None = None,
        exclude: str | None = None,
    ) -> ColumnNames:
        """Build the names from the options.

        >>> ColumnNames.from_options(qid="query", features="bm25, age").features
        ('bm25', 'age')
        """
        return cls(label, qid, docid, split_names(features), split_names(exclude))

    def roles(self, names: Sequence[str], hidden: Sequence[str] = ()) -> Roles:
        """Assign roles to the columns of a table, without the excluded ones.

        >>> ColumnNames(exclude=("b-c",)).roles(["qid", "grade", "a", "b", "c"]).features
        ('a',)
        """
        from concordant.data.io.roles import GRADE_NAMES, Roles, expand_ranges

        excluded = set(expand_ranges(self.exclude or (), names))
        if unknown := [name for name in excluded if name not in names]:
            raise UnknownNameError("column", unknown[0], names)
        considered = names if self.features is not None else [name for name in names if name not in excluded]
        roles = Roles.from_columns(
            considered,
            qid=self.qid or "qid",
            grade=self.label,
            features=self.features,
            docid=self.docid,
            hidden=hidden,
        )
        labels = (roles.grade,) if roles.grade in considered else GRADE_NAMES
        if needed := sorted(excluded.intersection((roles.qid, *labels))):
            problem = f"column {needed[0]!r} is excluded, but it holds labels or query ids"
            raise LabelError(
                problem, "leave it out of --exclude, or name other columns by --label and --qid."
            )
        return replace(roles, features=tuple(name for name in roles.features if name not in excluded))


def split_names(text: str | None) -> tuple[str, ...] | None:
    """Split a list with commas into names.

    >>> split_names("width, height")
    ('width', 'height')
    """
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def read_rows(path: Path, columns: ColumnNames | None = None, *, labelled: bool = True) -> FileRows:
    """Read the rows of LETOR text, or of a table, by the suffix.

    Parameters
    ----------
    labelled
        True if a table must have grades; else missing grades are 0.
    """
    columns = ColumnNames() if columns is None else columns
    if written_as(path) in TABLES:
        return _table_rows(path, columns, labelled=labelled)
    import concordant as cc
    from concordant.cli.shared.file_rows import FileRows

    refuse_names(path, columns)
    try:
        rows = cc.read_letor(path)
    except EmptyDataError as error:
        raise EmptyDataError(str(path)) from error
    return FileRows(rows.X, rows.y, rows.qid, rows.docid, path)


def refuse_names(path: Path, columns: ColumnNames) -> None:
    """Raise if columns are named for LETOR text, which has no names."""
    named_columns = [name for name, value in vars(columns).items() if value is not None]
    if named_columns:
        hint = f"leave --{named_columns[0]} out, or name a table ({' '.join(TABLES)})."
        raise LabelError(f"{path} is read as LETOR text, which has no columns of names", hint)


def _table_rows(path: Path, columns: ColumnNames, *, labelled: bool) -> FileRows:
    """Read the rows of a table, with the names of its features; errors name the file."""
    from concordant.cli.shared.file_rows import FileRows
    from concordant.data.io.roles import GRADE_NAMES, find_index_columns
    from concordant.data.io.tables import _read_arrow, from_frame, open_columns

    with naming_table(path):
        table = _read_arrow(path, (columns.qid or "qid", columns.docid or "docid"))
        names = open_columns(table)[1]
        label = columns.label or next((name for name in GRADE_NAMES if name in names), None)
        refuse_unnamed(names, columns, label if labelled else "")
        if label is None and not labelled:
            label = "grade"
            table = table.append_column(label, [[0.0] * len(table)])
        roles = columns.roles(names, find_index_columns(table.schema))
        if not roles.features and columns.features != ():  # (): features are not read
            raise LabelError("no column is left for features", f"it has {', '.join(names)}.")
        rows = from_frame(table, qid=roles.qid, grade=roles.grade, docid=roles.docid, features=roles.features)
    return FileRows(rows.X, rows.y, rows.qid, rows.docid, path, roles.features)


@contextmanager
def naming_table(path: Path) -> Iterator[None]:
    """Add the file to errors, and the option that corrects them."""
    try:
        yield
    except EmptyDataError as error:
        raise EmptyDataError(str(path)) from error
    except NotNumericError as error:
        problem = str(error).partition("\n")[0].rstrip(".")
        hint = "choose features by --features A,B,..., or leave columns out by --exclude A,B,..."
        raise LabelError(_name_file(path, problem), hint) from error
    except ConcordantError as error:
        error.args = (_name_file(path, str(error)),)
        raise


def _name_file(path: Path, message: str) -> str:
    """Put the file in front of a message, unless the message begins with it."""
    return message if message.startswith(str(path)) else f"{path}: {message}"


def refuse_unnamed(names: Sequence[str], columns: ColumnNames, label: str | None) -> None:
    """Raise if the table has no default column of grades or query ids, and none is named."""
    from concordant.data.io.roles import GRADE_NAMES

    listed = f"it has {', '.join(names)}."
    if list(names) == [str(number) for number in range(1, len(names) + 1)]:
        listed = f"it has no header, so its columns are 1 to {len(names)}."
    elif any(name.replace(".", "", 1).isdigit() for name in names):
        listed += " If this line is a row, write a line of names above it."
    if label is None:
        looked = f"no column of grades (looked for {', '.join(GRADE_NAMES)})"
        raise LabelError(looked, f"name it by --label COL; {listed}")
    if columns.qid is None and "qid" not in names:
        raise LabelError("no column of query ids (looked for qid)", f"name it by --qid COL; {listed}")


def read_for(
    source: Path, model: Any, path: Path, columns: ColumnNames | None = None, *, labelled: bool = True
) -> FileRows:
    """Read the rows for a model: of a table its features, by the column names of the run it is from.

    Parameters
    ----------
    source
        Path of the model; a run directory records the names of its columns.
    columns
        Names of the columns, if given.
    """
    columns = resolve_columns(source, path, ColumnNames() if columns is None else columns)
    names = getattr(model, "feature_names_in_", None)
    if written_as(path) in TABLES and columns.features is None and names is not None:
        columns = replace(columns, features=tuple(map(str, names)))
    return read_rows(path, columns if labelled else replace(columns, label=None), labelled=labelled)


def resolve_columns(source: Path, path: Path, columns: ColumnNames) -> ColumnNames:
    """Return the column names: as given, else as in the run that a model is from."""
    if written_as(path) not in TABLES or not (source / CONFIG).is_file():
        return columns
    run_columns = {
        name: value
        for name, value in vars(run_config(source).columns).items()
        if name not in ("features", "exclude")
    }
    return replace(
        columns, **{name: run_columns[name] for name in run_columns if getattr(columns, name) is None}
    )


def run_config(folder: Path) -> Config:
    """Read the configuration of a run directory."""
    from concordant.cli.runs.run_folder import RunFolder

    return RunFolder(folder).config()


def is_model(path: Path) -> bool:
    """True for a run directory or a model file; other files hold scores."""
    from concordant._base.files import naming_archive, open_binary

    if path.is_dir() or written_as(path) == Path(MODEL).suffix:
        return True
    with naming_archive(path), open_binary(path) as stream:
        return stream.read(2) == b"PK"  # a zip


def model_files(*paths: Path | None) -> list[Path]:
    """List the files of models and runs, which other outputs must not overwrite."""
    from concordant.cli.runs.run_folder import FACTS, OURS

    models = [path for path in paths if path is not None]
    folders = [path if path.is_dir() else path.parent for path in models]
    runs = [
        folder
        for path, folder in zip(models, folders, strict=True)
        if path.is_dir() or (folder / FACTS).is_file()
    ]
    return [*(path for path in models if not path.is_dir()), *(run / name for run in runs for name in OURS)]


def load_model(path: Path) -> Any:
    """Load the model of a file, or of a run directory."""
    import concordant as cc

    if not path.is_dir():
        return cc.load(path)
    if not (path / MODEL).is_file():
        hint = "an interrupted run has none: the same `concordant train` goes on; else name a model file."
        raise ModelFileError(path, f"there is no {MODEL} in this folder", hint)
    from concordant.cli.runs.run_folder import RunFolder

    return cc.load(path / MODEL, digest=RunFolder(path).digest())


# Rows of a file, and what of them a model is given.
