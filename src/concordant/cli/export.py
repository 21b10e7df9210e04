"""`concordant export`: a model as a file for a search engine, a runtime or its own library, checked."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

from concordant.cli.shared.output import Display, TableResult, check_target, examples, option, plural
from concordant.cli.shared.row_options import ModelPath, load_model, model_files, read_for, split_names

EXAMPLES = examples(
    "concordant export runs/linear -o ranker.onnx",
    "concordant export runs/linear -f elasticsearch --features bm25,age -o ranker.json",
    "concordant export runs/trees -f lightgbm --golden test.txt -o trees.txt",
)
NAMES = "onnx, json, elasticsearch, opensearch, lightgbm, xgboost, catboost"  # a test compares them


def export(
    model: ModelPath,
    *,
    output: Annotated[Path, option("--output -o", "FILE", "The file to write.")],
    form: Annotated[
        str | None,
        option(
            "--format -f", "FORMAT", f"One of {NAMES}. Default: by the suffix (.onnx .json .txt .ubj .cbm)."
        ),
    ] = None,
    golden: Annotated[
        Path | None,
        option(
            "--golden",
            "DATA",
            "Check by these rows: LETOR text, or a table. Default: rows at the scale of the features.",
        ),
    ] = None,
    features: Annotated[str | None, option("--features", "A,B,...", "Names of the features.")] = None,
    name: Annotated[
        str | None,
        option("--name", "NAME", "Name of the model in the search engine. Default: that of the file."),
    ] = None,
    dtype: Annotated[str | None, option("--dtype", "TYPE", "Of ONNX: float32 (default) or float64.")] = None,
    display: Display,
) -> None:
    """Write a model in a format that others read, if golden rows have the same scores there as here."""
    import concordant as cc

    check_target(output, golden, *model_files(model))
    with display.working("Reading"):
        fitted = load_model(model)
        rows, notes = _golden_rows(model, fitted, golden)
    with display.working("Writing"):
        options = {"features": split_names(features), "name": name, "dtype": dtype, "golden": rows}
        done = cc.export(fitted, output, form, **options)
    notes = [*notes, *done.notes]
    facts = {"output": str(done.path), "format": done.format, "n_golden": done.n_golden}
    display.present(TableResult(facts | {"difference": done.difference, "notes": notes}))
    if not display.as_json:
        checked = plural(done.n_golden, "golden row", "golden rows")
        scored = f"{checked} scored as by the model, within {done.difference:.1e} of their size: {output}"
        display.notes([*notes, scored])


def _golden_rows(source: Path, model: Any, path: Path | None) -> tuple[Any, list[str]]:
    """Read the rows of a file for the model, with notes on what was filled in; None without a file."""
    if path is None:
        return None, []
    from concordant.cli.shared.file_rows import features_for, padding_notes

    rows = read_for(source, model, path, labelled=False)
    if not hasattr(model, "n_features_in_"):  # ratings, which are refused with them
        return rows, []
    return SimpleNamespace(X=features_for(model, rows), qid=rows.qid), padding_notes(model, rows)
