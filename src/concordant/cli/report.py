"""`concordant report`: what a model is worth on judged queries, as one HTML page."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concordant.cli.data import (
    Columns,
    DocidColumn,
    FeatureColumns,
    LabelColumn,
    QidColumn,
    columns_of,
    is_model,
    load_model,
    model_files,
    read_for,
    read_rows,
    run_config,
)
from concordant.cli.inputs import scores_for
from concordant.cli.output import (
    COMPILING,
    AsJson,
    Quiet,
    check_target,
    examples,
    new_table,
    number,
    plural,
    print_json,
    show,
    working,
)
from concordant.exceptions import ParameterError

if TYPE_CHECKING:
    from rich.table import Table

    from concordant import Report
    from concordant.cli.data_rows import FileRows

__all__ = ["EXAMPLES", "report"]

EXAMPLES = examples(
    "concordant report runs/linear -o linear.html",
    "concordant report runs/trees test.txt --baseline runs/linear -o trees.html",
    "concordant report model.concordant test.txt --baseline bm25.txt -m ndcg@10 -m ap -o page.html",
)


def report(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A run directory, a model file, or scores, one a line.",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA",
            help="Judged rows: LETOR text, or a table (.parquet .feather .csv .tsv). Default: the first test "
            "file of the run.",
            show_default=False,
        ),
    ] = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.html", help="The page to write.")],
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            metavar="MODEL",
            help="What to compare with: a run directory, a model file, or scores. Default: equal scores.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="METRIC",
            help="The headline first; repeat. Default: what the model was trained for; ndcg@1, ndcg@5, "
            "ndcg@10, ap and rr.",
            show_default=False,
        ),
    ] = None,
    convention: Annotated[
        str | None,
        typer.Option(
            "--convention",
            "-c",
            metavar="CONVENTION",
            help="Of every metric, such as trec_eval. Default: that of the model's metric.",
            show_default=False,
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="What stands on top of the page.")
    ] = None,
    learning_curve: Annotated[
        Path | None,
        typer.Option(
            "--learning-curve",
            metavar="FILE",
            help="Training rows: the model is fitted again to more and more of their queries.",
        ),
    ] = None,
    label: LabelColumn = None,
    qid: QidColumn = None,
    docid: DocidColumn = None,
    features: FeatureColumns = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """One HTML page on a model: metrics with intervals, queries gained and lost, certificate, weights.

    It needs no network, and nothing beside it.
    """
    from concordant.cli.train_files import refuse_pipe
    from concordant.evaluation.plots import need_plotly

    need_plotly()
    for path in filter(None, (model, data, baseline, learning_curve)):
        refuse_pipe(path)
    check_target(output, data, learning_curve, *model_files(model, baseline))
    check_suffix(output)
    given = Columns.of(label, qid, docid, features)
    with working("Reading", quiet=quiet):
        rows = judged_file(model, data)
        given = columns_of(model, rows, given)
        first = subject(model, rows, given)
        other = None if baseline is None else subject(baseline, rows, given)
        curve = None if learning_curve is None else taught(first, learning_curve, given)
    with working(f"Measuring {COMPILING}", quiet=quiet):
        asked = {"metrics": metric or None, "convention": convention, "title": title, "learning_curve": curve}
        found = reported(first, other, asked)
    with working("Drawing", quiet=quiet):
        found.write(output)
    if as_json:
        print_json({"output": str(output), **found.to_dict()})
        return
    show(metric_table(found), [] if quiet else [f"report: {output}"])


@dataclass(frozen=True, eq=False)
class Subject:
    """What is judged: a model, or None and its scores alone, on the rows of a file."""

    path: Path
    model: Any
    scores: Any
    rows: FileRows


def subject(path: Path, data: Path, columns: Columns) -> Subject:
    """Read a model and the rows as it reads them, and score them; or read the scores."""
    import numpy as np

    from concordant.cli.data_rows import scores_of

    if is_model(path):
        model = load_model(path)
        rows = read_for(path, model, data, columns)
        return Subject(path, model, scores_of(model, rows), rows)
    rows = read_rows(data, columns)
    return Subject(path, None, np.asarray(scores_for(data, len(rows.y), path)), rows)


def judged_file(model: Path, data: Path | None) -> Path:
    """Give the file to judge by: what is named, or the first test file of the run."""
    if data is not None:
        return data
    if not model.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(model))
    tests = run_config(model).test if model.is_dir() else ()
    if not tests:
        raise ParameterError("DATA", None, f"given: {model} has no test file of its own")
    return tests[0]


def check_suffix(path: Path) -> None:
    """Refuse a page of another name before the work."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise ParameterError("--output", str(path), "a file that ends in .html")


def taught(first: Subject, path: Path, columns: Columns) -> Any:
    """Give the training rows of a learning curve, as the model reads them."""
    from concordant.cli.data_rows import features_for

    if first.model is None:
        raise ParameterError("--learning-curve", str(path), "left out: scores cannot be fitted again")
    rows = read_for(first.path, first.model, path, columns)
    return features_for(first.model, rows), rows.y, rows.qid


def reported(first: Subject, other: Subject | None, asked: Mapping[str, Any]) -> Report:
    """Give the report; a baseline is judged by its scores, whatever features it reads."""
    import concordant as cc
    from concordant.cli.data_rows import features_for
    from concordant.cli.runs import fingerprint

    rows, model = first.rows, first.model
    return cc.report(
        first.scores if model is None else model,
        None if model is None else features_for(model, rows),
        rows.y,
        qid=rows.qid,
        docid=rows.docid,
        features=None if model is None else names_of(model),
        baseline=None if other is None else other.scores,
        name=named(first),
        baseline_name=None if other is None else named(other),
        fingerprint=f"{rows.path.name}, SHA-256 {fingerprint(rows.path)['sha256']}",
        **asked,
    )


def names_of(model: Any) -> list[str] | None:
    """Give the features as files call them: LETOR text counts from 1; None: the model knows their names."""
    if getattr(model, "feature_names_in_", None) is not None:
        return None
    return [f"feature {number}" for number in range(1, model.n_features_in_ + 1)]


def named(one: Subject) -> str:
    """Give the name of a run or a file, with the class of its model."""
    name = one.path.resolve().name if one.path.is_dir() else one.path.name
    return name if one.model is None else f"{name} ({type(one.model).__name__})"


def metric_table(found: Report) -> Table:
    """Give each metric of both, with the interval of the difference."""
    numeric = ("model", "baseline", "difference", "low", "high", "p")
    both, many = f"{found.judged.model} against {found.judged.baseline}", found.judged.n_queries
    title = f"{both}, {plural(many, 'query', 'queries')}"
    table = new_table(title, "metric", *numeric, numeric=numeric)
    for row in found.metrics:
        gap = row.difference
        values = (row.model.value, row.baseline.value, gap.value, gap.low, gap.high, row.p_value)
        table.add_row(row.metric, *map(number, values))
    return table
