"""`concordant report`: an HTML page on a model and its metrics on judged queries."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.table import Table

from concordant.cli.shared.judged_rankings import scores_for
from concordant.cli.shared.output import (
    COMPILING,
    Display,
    TableResult,
    argument,
    check_target,
    examples,
    new_table,
    number,
    option,
    plural,
)
from concordant.cli.shared.row_options import (
    ColumnNames,
    RowColumns,
    is_model,
    load_model,
    model_files,
    read_for,
    read_rows,
    resolve_columns,
    run_config,
)
from concordant.exceptions import ParameterError

if TYPE_CHECKING:
    from concordant import Report
    from concordant.cli.shared.file_rows import FileRows

EXAMPLES = examples(
    "concordant report runs/linear -o linear.html",
    "concordant report runs/trees test.txt --baseline runs/linear -o trees.html",
    "concordant report model.concordant test.txt --baseline bm25.txt -m ndcg@10 -m ap -o page.html",
)


def report(
    model: Annotated[Path, argument("MODEL", "A run directory, a model file, or scores, one a line.")],
    data: Annotated[
        Path | None,
        argument(
            "DATA",
            "Judged rows: LETOR text, or a table (.parquet .feather .csv .tsv). Default: the first test "
            "file of the run.",
        ),
    ] = None,
    *,
    output: Annotated[Path, option("--output -o", "FILE.html", "The page to write.")],
    baseline: Annotated[
        Path | None,
        option(
            "--baseline",
            "MODEL",
            "What to compare with: a run directory, a model file, or scores. Default: equal scores.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        option(
            "--metric -m",
            "METRIC",
            "The headline first; repeat. Default: what the model was trained for; ndcg@1, ndcg@5, ndcg@10, "
            "ap and rr.",
        ),
    ] = None,
    convention: Annotated[
        str | None,
        option(
            "--convention -c",
            "CONVENTION",
            "Of every metric, such as trec_eval. Default: that of the model's metric.",
        ),
    ] = None,
    title: Annotated[str | None, option("--title", "TEXT", "What stands on top of the page.")] = None,
    learning_curve: Annotated[
        Path | None,
        option(
            "--learning-curve",
            "FILE",
            "Training rows: the model is fitted again to more and more of their queries.",
        ),
    ] = None,
    names: RowColumns,
    display: Display,
) -> None:
    """One HTML page on a model: metrics with intervals, queries gained and lost, certificate, weights.

    It needs no network, and nothing beside it.
    """
    from concordant.cli.shared.file_rows import padding_notes
    from concordant.cli.train.train_fit import refuse_pipe
    from concordant.evaluation.outcome_plots import need_pages

    need_pages()
    for path in filter(None, (model, data, baseline, learning_curve)):
        refuse_pipe(path)
    check_target(output, data, learning_curve, *model_files(model, baseline))
    if output.suffix.lower() not in (".html", ".htm"):
        raise ParameterError("--output", str(output), "a file that ends in .html")
    with display.working("Reading"):
        rows = _judged_file(model, data)
        columns = resolve_columns(model, rows, names.names())
        judged_subject = _read_subject(model, rows, columns)
        baseline_subject = None if baseline is None else _read_subject(baseline, rows, columns)
        curve = None if learning_curve is None else _curve_rows(judged_subject, learning_curve, columns)
    with display.working(f"Measuring {COMPILING}"):
        page_options = {"convention": convention, "title": title, "learning_curve": curve}
        built = _build_report(judged_subject, baseline_subject, metrics=metric or None, **page_options)
    with display.working("Drawing"):
        built.write(output)
    notes = [] if judged_subject.model is None else padding_notes(judged_subject.model, judged_subject.rows)
    values, remarks = {"output": str(output), **built.to_dict()}, [*notes, f"report: {output}"]
    display.present(TableResult(values, _metric_table(built), remarks))


@dataclass(frozen=True, eq=False)
class Subject:
    """A model to judge, or None and its scores alone, with the rows of a file."""

    path: Path
    model: Any
    scores: Any
    rows: FileRows


def _read_subject(path: Path, data: Path, columns: ColumnNames) -> Subject:
    """Load a model, the rows as it reads them, and score them; or read scores."""
    import numpy as np

    from concordant.cli.shared.file_rows import score_rows

    if is_model(path):
        model = load_model(path)
        rows = read_for(path, model, data, columns)
        return Subject(path, model, score_rows(model, rows), rows)
    rows = read_rows(data, columns)
    return Subject(path, None, np.asarray(scores_for(data, len(rows.y), path)), rows)


def _judged_file(model: Path, data: Path | None) -> Path:
    """Return the file to judge by: the given one, or the first test file of the run."""
    if data is not None:
        return data
    if not model.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(model))
    tests = run_config(model).test if model.is_dir() else ()
    if not tests:
        raise ParameterError.because(f"Name the test file DATA: the run {model} has none of its own.")
    return tests[0]


def _curve_rows(first: Subject, path: Path, columns: ColumnNames) -> Any:
    from concordant.cli.shared.file_rows import features_for

    if first.model is None:
        raise ParameterError.because(
            "--learning-curve needs a model that can be fitted again, got a file of scores."
        )
    rows = read_for(first.path, first.model, path, columns)
    return features_for(first.model, rows), rows.y, rows.qid


def _build_report(first: Subject, other: Subject | None, **options: Any) -> Report:
    """Build the report; the baseline is judged by its scores, whatever features it reads."""
    import concordant as cc
    from concordant.cli.runs.run_folder import fingerprint
    from concordant.cli.shared.file_rows import features_for

    rows, model = first.rows, first.model
    return cc.report(
        first.scores if model is None else model,
        None if model is None else features_for(model, rows),
        rows.y,
        qid=rows.qid,
        docid=rows.docid,
        baseline=None if other is None else other.scores,
        name=_subject_name(first),
        baseline_name=None if other is None else _subject_name(other),
        fingerprint=f"{rows.path.name}, SHA-256 {fingerprint(rows.path)['sha256']}",
        **options,
    )


def _subject_name(judged: Subject) -> str:
    name = judged.path.resolve().name if judged.path.is_dir() else judged.path.name
    return name if judged.model is None else f"{name} ({type(judged.model).__name__})"


def _metric_table(built: Report) -> Table:
    """Build the table of each metric of model and baseline, with the interval of the difference."""
    numeric = ("model", "baseline", "difference", "low", "high", "p")
    judged, many = built.judged, plural(built.judged.n_queries, "query", "queries")
    title = f"{judged.model} against {judged.baseline}, {many}"
    table = new_table(title, "metric", *numeric, numeric=numeric)
    for row in built.metrics:
        gap = row.difference
        values = (row.model.value, row.baseline.value, gap.value, gap.low, gap.high, row.p_value)
        table.add_row(row.metric, *map(number, values))
    return table
