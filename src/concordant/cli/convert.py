"""`concordant convert`: rows of any file as Parquet whose row groups hold whole queries."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from concordant.cli.shared.output import (
    Display,
    TableResult,
    argument,
    check_target,
    console,
    examples,
    new_table,
    option,
    switch,
)
from concordant.cli.shared.row_options import RowColumns
from concordant.exceptions import NotNumericError, ParameterError, UnknownNameError

if TYPE_CHECKING:
    from concordant.scale.scan.scan import Scan

EXAMPLES = examples(
    "concordant convert train.txt.gz -o train.parquet",
    "concordant convert monday.csv tuesday.csv --label clicked --qid session -o clicks.parquet",
    "concordant convert clicks.parquet -o sorted.parquet --memory 2GiB --row-group 32MiB --dtype float32",
)


def convert(
    source: Annotated[
        list[Path],
        argument(
            "SOURCE...",
            "LETOR text, tables (.parquet .feather .csv .tsv) or a folder of Parquet files; text may be "
            "compressed. Several of one kind become one.",
        ),
    ],
    *,
    output: Annotated[Path, option("--output -o", "FILE.parquet", "The file to write.")],
    columns: RowColumns,
    memory: Annotated[
        str, option("--memory", "SIZE", "Of rows in memory at a time; a query: a sixth.")
    ] = "1GiB",
    row_group: Annotated[
        str, option("--row-group", "SIZE", "Of the features in a row group, at most.")
    ] = "64MiB",
    dtype: Annotated[
        str | None, option("--dtype", "TYPE", "Of the features: float32 or float64. Default: as they are.")
    ] = None,
    overwrite: Annotated[bool, switch("--overwrite", "Replace the file that is there.")] = False,
    display: Display,
) -> None:
    """Write rows of any file, in any order, as Parquet from which a ranker is trained part by part."""
    import concordant as cc
    from concordant.scale.scan.scan import parse_size

    _check_files(source, output, overwrite=overwrite)
    names = columns.names()
    with _naming_options():
        scan = cc.write_parquet(
            source,
            output,
            qid=names.qid or "qid",
            grade=names.label,
            docid=names.docid,
            features=names.features,
            dtype=dtype,
            memory=parse_size(memory, "--memory"),
            row_group=parse_size(row_group, "--row-group"),
            verbose=int(console(stderr=True).is_terminal and not display.is_bare),
        )
    facts = _file_facts(scan, output)
    heads = [name.replace("_", " ") for name in facts]
    cells = [f"{value:,}" for value in facts.values()]
    values = {"source": [str(path) for path in source], "output": str(output), **facts}
    table = new_table(output.name, *heads, numeric=heads, rows=[cells])
    display.present(TableResult(values, table))


def _check_files(source: Sequence[Path], output: Path, *, overwrite: bool) -> None:
    """Raise if a source cannot be read twice, or if the output exists or is a source."""
    from concordant.scale.scan.parquet import parquet_files

    for path in source:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise ParameterError("SOURCE", str(path), "a file that can be read twice, not a pipe")
    check_target(output, *(Path(file) for file in parquet_files(source)))
    if output.exists() and not overwrite:
        raise FileExistsError(
            errno.EEXIST, "the file exists; name another file, or pass --overwrite", str(output)
        )


@contextmanager
def _naming_options() -> Iterator[None]:
    """Add to errors about columns by which options columns are named."""
    try:
        yield
    except (UnknownNameError, NotNumericError) as error:
        error.args = (f"{error}\nColumns are named by --label, --qid, --docid and --features.",)
        raise


def _file_facts(scan: Scan, path: Path) -> dict[str, Any]:
    from concordant.scale.scan.row_groups import open_parquet

    return {
        "rows": scan.n_rows,
        "queries": scan.n_queries,
        "features": scan.n_features,
        "row_groups": open_parquet(str(path)).num_row_groups,
        "bytes": path.stat().st_size,
    }
