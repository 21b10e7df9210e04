"""`concordant evaluate`: what runs or scores are worth, under stated conventions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from concordant.cli.data import Columns, DocidColumn, LabelColumn, QidColumn, model_files
from concordant.cli.inputs import (
    AllQueries,
    Conventions,
    LetorFile,
    ModelFiles,
    QrelsFile,
    RunFiles,
    ScoreFiles,
    chosen_metrics,
    read_rankings,
)
from concordant.cli.model_comparison_inputs import read_scored_models
from concordant.cli.output import COMPILING, AsJson, Quiet, check_target, examples, print_json, show, working
from concordant.cli.results import as_dict, mean_tables, measure, query_tables, remarks, write_csv

__all__ = ["EXAMPLES", "evaluate"]

TREC_METRICS = ("ndcg@10", "ap", "rr", "p@10")
LETOR_METRICS = ("ndcg@1", "ndcg@5", "ndcg@10", "ap")
EXAMPLES = examples(
    "concordant evaluate --qrels test.qrels --run bm25.run --run dense.run",
    "concordant evaluate --qrels test.qrels --run bm25.run -m map -c trec_eval",
    "concordant evaluate --letor test.txt --scores model.txt -o per-query.csv",
    "concordant evaluate --letor test.txt --model runs/linear --model runs/boosted",
)


def evaluate(
    *,
    qrels: QrelsFile = None,
    run: RunFiles = None,
    all_queries: AllQueries = False,
    letor: LetorFile = None,
    scores: ScoreFiles = None,
    model: ModelFiles = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="METRIC",
            help=f"Metric such as ndcg@10, ap, rr, p@5, err@20; repeat for several. "
            f"Default: {', '.join(TREC_METRICS)} for runs, {', '.join(LETOR_METRICS)} for LETOR.",
            show_default=False,
        ),
    ] = None,
    convention: Conventions = None,
    per_query: Annotated[
        bool, typer.Option("--per-query", metavar="", help="Show the value of every query.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the value of every query to this file, as CSV."
        ),
    ] = None,
    label: LabelColumn = None,
    qid: QidColumn = None,
    docid: DocidColumn = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """What runs, scores or models are worth: metrics over all queries, under stated conventions."""
    if output is not None:
        check_target(output, qrels, *(run or ()), letor, *(scores or ()), *model_files(*(model or ())))
    columns = Columns.of(label, qid, docid, None)
    metrics = chosen_metrics(metric or (TREC_METRICS if qrels else LETOR_METRICS), convention)
    with working("Reading", quiet=quiet):
        if model:
            refused = bool(qrels or run or all_queries)
            rankings = read_scored_models(letor, scores or (), model, refused=refused, columns=columns)
        else:
            rankings = read_rankings(qrels, run, letor, scores, all_queries=all_queries, columns=columns)
    with working(f"Evaluating {COMPILING}", quiet=quiet):
        results = [measure(ranking, one) for ranking in rankings for one in metrics]
    if output is not None:
        write_csv(output, results)
    if as_json:
        print_json(as_dict(rankings, results, per_query=per_query))
        return
    tables = query_tables(results) if per_query else mean_tables(results)
    for table in tables[:-1]:
        show(table)
    show(tables[-1], [] if quiet else remarks(rankings, results))
