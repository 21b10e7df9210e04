"""`concordant explain`: one metric under every tool's convention, and the fields that move it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from concordant.cli.data import Columns, DocidColumn, LabelColumn, QidColumn
from concordant.cli.inputs import (
    AllQueries,
    LetorFile,
    QrelsFile,
    RunFiles,
    ScoreFiles,
    chosen_metrics,
    read_rankings,
)
from concordant.cli.output import (
    COMPILING,
    AsJson,
    Quiet,
    console,
    examples,
    new_table,
    number,
    print_json,
    show,
    working,
)

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.metrics import Explanation

__all__ = ["EXAMPLES", "explain", "reasons"]

EXAMPLES = examples(
    "concordant explain ndcg@10 --qrels test.qrels --run bm25.run",
    "concordant explain ap -c trec_eval --qrels test.qrels --run bm25.run --json",
    "concordant explain ndcg@10 --letor test.txt --scores model.txt",
)


def explain(
    metric: Annotated[
        str, typer.Argument(metavar="METRIC", help="Metric such as ndcg@10 or ap.", show_default=False)
    ],
    *,
    qrels: QrelsFile = None,
    run: RunFiles = None,
    all_queries: AllQueries = False,
    letor: LetorFile = None,
    scores: ScoreFiles = None,
    convention: Annotated[
        str | None,
        typer.Option(
            "--convention",
            "-c",
            metavar="CONVENTION",
            help="Where the comparison starts. Default: concordant.",
            show_default=False,
        ),
    ] = None,
    label: LabelColumn = None,
    qid: QidColumn = None,
    docid: DocidColumn = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Why tools disagree: a metric under every preset, and the fields of the convention that move it."""
    import concordant as cc

    (base,) = chosen_metrics([metric], [convention] if convention else None)
    columns = Columns.of(label, qid, docid, None)
    with working("Reading", quiet=quiet):
        rankings = read_rankings(qrels, run, letor, scores, all_queries=all_queries, columns=columns)
    with working(f"Evaluating under every preset {COMPILING}", quiet=quiet):
        found = [(one, cc.metrics.explain(base, **one.arguments())) for one in rankings]
    if as_json:
        print_json(
            [{"ranking": one.name, "metric": str(base), "rows": rows.to_dicts()} for one, rows in found]
        )
        return
    for one, explanation in found:
        show(explanation_table(f"{base} of {one.name}", explanation), [] if quiet else one.remarks())


def explanation_table(title: str, explanation: Explanation) -> Table:
    """Give one row a preset: the value, and the steps that lead to it from the first row."""
    start = explanation.rows[0].preset
    table = new_table(title, "preset", "value", f"what moves it from {start}", numeric=("value",))
    for row, reason in zip(explanation.rows, reasons(explanation), strict=True):
        table.add_row(row.preset, number(row.value), reason)
    return table


def reasons(explanation: Explanation) -> list[str]:
    """Give the steps to each preset: a line each in a terminal, so that none is broken, else one line."""
    lines = console().is_terminal
    told = ("\n".join(map(str, row.steps)) if lines and row.steps else row.reason for row in explanation.rows)
    return ["", *list(told)[1:]]  # the first row is where the steps start
