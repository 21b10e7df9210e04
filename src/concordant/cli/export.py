"""`concordant export`: a model as a file for a search engine, a runtime or its own library, checked."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concordant.cli.data import ModelPath, load_model, model_files, read_for
from concordant.cli.output import AsJson, Quiet, check_target, examples, note, plural, print_json, working

if TYPE_CHECKING:
    from concordant.exporting import Exported

__all__ = ["EXAMPLES", "export"]

EXAMPLES = examples(
    "concordant export runs/linear -o ranker.onnx",
    "concordant export runs/linear -f elasticsearch --features bm25,age -o ranker.json",
    "concordant export runs/trees -f lightgbm --golden test.txt -o trees.txt",
)
NAMES = "onnx, json, elasticsearch, opensearch, lightgbm, xgboost, catboost"  # a test compares them


def export(
    model: ModelPath,
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.", show_default=False)
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help=f"One of {NAMES}. Default: by the suffix (.onnx .json .txt .ubj .cbm).",
            show_default=False,
        ),
    ] = None,
    golden: Annotated[
        Path | None,
        typer.Option(
            "--golden",
            metavar="DATA",
            help="Check by these rows: LETOR text, or a table. Default: rows at the scale of the features.",
            show_default=False,
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option("--features", metavar="A,B,...", help="Names of the features.", show_default=False),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Name of the model in the search engine. Default: that of the file.",
            show_default=False,
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype", metavar="TYPE", help="Of ONNX: float32 (default) or float64.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a model in a format that others read, if golden rows have the same scores there as here."""
    import concordant as cc
    from concordant.cli.compare_options import names_in

    check_target(output, golden, *model_files(model))
    with working("Reading", quiet=quiet):
        fitted = load_model(model)
        rows, notes = golden_rows(model, fitted, golden)
    with working("Writing", quiet=quiet):
        options = {"features": names_in(features), "name": name, "dtype": dtype, "golden": rows}
        done = cc.export(fitted, output, form, **options)
    if as_json:
        print_json(as_dict(done, notes))
    elif not quiet:
        for line in [*notes, *done.notes]:
            note(line)
        checked = plural(done.n_golden, "golden row", "golden rows")
        note(f"{checked} scored as by the model, within {done.difference:.1e} of their size: {output}")


def golden_rows(source: Path, model: Any, path: Path | None) -> tuple[Any, list[str]]:
    """Give the rows of a file as the model reads them, and what was filled in; None without a file."""
    if path is None:
        return None, []
    from concordant.cli.data_rows import features_for, padding

    rows = read_for(source, model, path, labelled=False)
    if not hasattr(model, "n_features_in_"):  # ratings, which are refused with them
        return rows, []
    return SimpleNamespace(X=features_for(model, rows), qid=rows.qid), padding(model, rows)


def as_dict(done: Exported, notes: list[str]) -> dict[str, Any]:
    """Give what was done as plain values."""
    told = {"output": str(done.path), "format": done.format, "n_golden": done.n_golden}
    return told | {"difference": done.difference, "notes": [*notes, *done.notes]}
