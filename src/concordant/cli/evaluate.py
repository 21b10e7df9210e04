"""`concordant evaluate`: metrics of runs, scores or models, under stated conventions."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Annotated

from concordant.cli.shared.evaluation_tables import EvaluatedRankings, measure
from concordant.cli.shared.judged_rankings import Conventions, JudgedModels, parse_metrics
from concordant.cli.shared.output import COMPILING, Display, check_table, examples, option, switch, write_rows
from concordant.cli.shared.row_options import JudgedColumns, model_files

TREC_METRICS = ("ndcg@10", "ap", "rr", "p@10")
QUERY_COLUMNS = ("ranking", "convention", "metric", "query", "value")
LETOR_METRICS = ("ndcg@1", "ndcg@5", "ndcg@10", "ap")
EXAMPLES = examples(
    "concordant evaluate --qrels test.qrels --run bm25.run --run dense.run",
    "concordant evaluate --qrels test.qrels --run bm25.run -m map -c trec_eval",
    "concordant evaluate --letor test.txt --scores model.txt -o per-query.csv",
    "concordant evaluate --letor test.txt --model runs/linear --model runs/boosted",
)


def evaluate(
    *,
    files: JudgedModels,
    metric: Annotated[
        list[str] | None,
        option(
            "--metric -m",
            "METRIC",
            f"Metric such as ndcg@10, ap, rr, p@5, err@20; repeat for several. "
            f"Default: {', '.join(TREC_METRICS)} for runs, {', '.join(LETOR_METRICS)} for LETOR.",
        ),
    ] = None,
    convention: Conventions = None,
    per_query: Annotated[bool, switch("--per-query", "Show the value of every query.")] = False,
    output: Annotated[
        Path | None, option("--output -o", "FILE", "Write the value of every query to this .csv or .tsv.")
    ] = None,
    columns: JudgedColumns,
    display: Display,
) -> None:
    """What runs, scores or models are worth: metrics over all queries, under stated conventions."""
    check_table(output, files.qrels, files.letor, *files.rankings, *model_files(*(files.model or ())))
    metrics = parse_metrics(metric or (TREC_METRICS if files.qrels else LETOR_METRICS), convention)
    with display.working("Reading"):
        rankings = files.read(columns.names())
    with display.working(f"Evaluating {COMPILING}"):
        results = [measure(*pair) for pair in product(rankings, metrics)]
    evaluated = EvaluatedRankings(results, per_query)
    if output is not None:
        write_rows(output, QUERY_COLUMNS, evaluated.rows())
    display.present(evaluated)
