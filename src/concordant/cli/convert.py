"""`concordant convert`: rows of any file as Parquet whose row groups hold whole queries."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concordant.cli.data import DocidColumn, FeatureColumns, LabelColumn, QidColumn
from concordant.cli.output import (
    AsJson,
    Quiet,
    check_target,
    console,
    examples,
    new_table,
    print_json,
    show,
)
from concordant.exceptions import NotNumericError, ParameterError, UnknownNameError

if TYPE_CHECKING:
    from concordant.supervision.scans.scan import Scan

__all__ = ["EXAMPLES", "convert"]

EXAMPLES = examples(
    "concordant convert train.txt.gz -o train.parquet",
    "concordant convert monday.csv tuesday.csv --label clicked --qid session -o clicks.parquet",
    "concordant convert clicks.parquet -o sorted.parquet --memory 2GiB --row-group 32MiB --dtype float32",
)


def convert(
    source: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE...",
            help="LETOR text, tables (.parquet .feather .csv .tsv) or a folder of Parquet files; text may be "
            "compressed. Several of one kind become one.",
            show_default=False,
        ),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE.parquet", help="The file to write.", show_default=False),
    ],
    label: LabelColumn = None,
    qid: QidColumn = None,
    docid: DocidColumn = None,
    features: FeatureColumns = None,
    memory: Annotated[
        str,
        typer.Option("--memory", metavar="SIZE", help="Of rows in memory at a time; a query: a sixth."),
    ] = "1GiB",
    row_group: Annotated[
        str, typer.Option("--row-group", metavar="SIZE", help="Of the features in a row group, at most.")
    ] = "64MiB",
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype",
            metavar="TYPE",
            help="Of the features: float32 or float64. Default: as they are.",
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", metavar="", help="Replace the file that is there.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write rows of any file, in any order, as Parquet from which a ranker is trained part by part."""
    import concordant as cc
    from concordant.cli.compare_options import names_in
    from concordant.supervision.scans.scan import read_size

    check_files(source, output, overwrite=overwrite)
    with naming_options():
        scan = cc.write_parquet(
            source,
            output,
            qid=qid or "qid",
            grade=label,
            docid=docid,
            features=names_in(features),
            dtype=dtype,
            memory=read_size(memory, "--memory"),
            row_group=read_size(row_group, "--row-group"),
            verbose=int(console(stderr=True).is_terminal and not (quiet or as_json)),
        )
    told = written(scan, output)
    if as_json:
        print_json({"source": [str(path) for path in source], "output": str(output), **told})
    else:
        show_written(output, told)


def check_files(source: Sequence[Path], output: Path, *, overwrite: bool) -> None:
    """Refuse what cannot be read twice, and to write over a file that is read, or that is there."""
    from concordant.supervision.scans.parquet import parquet_files

    for path in source:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise ParameterError("SOURCE", str(path), "a file that can be read twice")
    check_target(output, *(Path(file) for file in parquet_files(source)))
    if output.exists() and not overwrite:
        raise FileExistsError(errno.EEXIST, "it is there; name another file, or --overwrite it", str(output))


@contextmanager
def naming_options() -> Iterator[None]:
    """Errors about columns say how they are named here."""
    try:
        yield
    except (UnknownNameError, NotNumericError) as error:
        error.args = (f"{error}\nColumns are named by --label, --qid, --docid and --features.",)
        raise


def written(scan: Scan, path: Path) -> dict[str, Any]:
    """Give what the file holds."""
    from concordant.supervision.scans.parquet_part import opened

    return {
        "rows": scan.n_rows,
        "queries": scan.n_queries,
        "features": scan.n_features,
        "row_groups": opened(str(path)).num_row_groups,
        "bytes": path.stat().st_size,
    }


def show_written(path: Path, told: dict[str, Any]) -> None:
    """Print it."""
    names = [name.replace("_", " ") for name in told]
    table = new_table(path.name, *names, numeric=names)
    table.add_row(*(f"{value:,}" for value in told.values()))
    show(table)
