"""`concordant compare-models`: whether one ranking is better than another, or only seems to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from concordant.cli.model_comparison_inputs import (
    Compared,
    check_several,
    from_results,
    named_baseline,
    read_scored_models,
    read_values,
)
from concordant.cli.model_comparison_results import (
    FEW,
    as_dict,
    mean_table,
    pair_table,
    query_table,
    remarks,
    test_table,
    write_queries,
)
from concordant.cli.output import (
    COMPILING,
    AsJson,
    Quiet,
    check_target,
    examples,
    print_json,
    show,
    working,
    written_as,
)
from concordant.cli.results import measure
from concordant.exceptions import ParameterError

if TYPE_CHECKING:
    from concordant.evaluation import ModelComparison

__all__ = ["EXAMPLES", "compare_models"]

METRICS = ("ndcg@10", "ap")
TOP = 3  # gains and losses
EXAMPLES = examples(
    "concordant compare-models --qrels test.qrels --run bm25.run --run dense.run",
    "concordant compare-models --qrels q --run a --run b --run c --baseline a -m map -c trec_eval",
    "concordant compare-models --letor test.txt --scores old.txt --scores new.txt --per-query queries.csv",
    "concordant compare-models --letor test.txt --model runs/linear --model runs/boosted",
    "concordant compare-models --values per-query.csv --correction holm --json",
)
TESTS = "Tests"


def compare_models(
    *,
    qrels: QrelsFile = None,
    run: RunFiles = None,
    all_queries: AllQueries = False,
    letor: LetorFile = None,
    scores: ScoreFiles = None,
    model: ModelFiles = None,
    values: Annotated[
        list[Path] | None,
        typer.Option(
            "--values", metavar="FILE", help="Values of every query, as evaluate -o writes them; repeat."
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="METRIC",
            help=f"Metric such as ndcg@10, ap, rr; repeat for several. Default: {', '.join(METRICS)}, or all "
            "of --values.",
            show_default=False,
        ),
    ] = None,
    convention: Conventions = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="NAME", help="Compare all others with this file only. Default: all pairs."
        ),
    ] = None,
    correction: Annotated[
        str,
        typer.Option(
            "--correction",
            metavar="NAME",
            help="For several pairs: max_t, holm, bonferroni, bh or none.",
            rich_help_panel=TESTS,
        ),
    ] = "max_t",
    level: Annotated[
        float,
        typer.Option(
            "--level",
            metavar="P",
            help="Adjusted p-values below it are significant.",
            rich_help_panel=TESTS,
        ),
    ] = 0.05,
    confidence: Annotated[
        float, typer.Option("--confidence", metavar="P", help="Of the intervals.", rich_help_panel=TESTS)
    ] = 0.95,
    power: Annotated[
        float,
        typer.Option(
            "--power", metavar="P", help="Of the smallest detectable difference.", rich_help_panel=TESTS
        ),
    ] = 0.8,
    resamples: Annotated[
        int,
        typer.Option(
            "--resamples", metavar="N", help="Random signs, and bootstrap samples.", rich_help_panel=TESTS
        ),
    ] = 10_000,
    wilcoxon: Annotated[
        bool,
        typer.Option(
            "--wilcoxon",
            metavar="",
            help="Also the signed-rank test, which errs on skewed differences.",
            rich_help_panel=TESTS,
        ),
    ] = False,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="N", help="Of all random choices.", rich_help_panel=TESTS)
    ] = 0,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            min=0,
            metavar="N",
            help=f"Largest gains and losses to show of each pair. Default: 3, of up to {FEW} pairs.",
            show_default=False,
        ),
    ] = None,
    per_query: Annotated[
        Path | None,
        typer.Option(
            "--per-query", metavar="FILE", help="Write the difference of every query to this .csv or .tsv."
        ),
    ] = None,
    label: LabelColumn = None,
    qid: QidColumn = None,
    docid: DocidColumn = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Whether rankings differ: paired tests over queries, intervals, effect sizes, and what went unseen."""
    files = [*(run or ()), *(scores or ()), *(model or ())]
    if per_query is not None:
        check_written(per_query, [qrels, letor, *model_files(*files), *(values or ())])
    columns = Columns.of(label, qid, docid, None)
    settings: dict[str, Any] = {
        "baseline": named_baseline(baseline, files),
        "level": level,
        "confidence": confidence,
        "correction": correction,
        "n_flips": resamples,
        "n_boot": resamples,
        "power": power,
        "wilcoxon": wilcoxon,
        "seed": seed,
    }
    check_settings(settings)
    with working(f"Evaluating {COMPILING}", quiet=quiet):
        if values:
            if qrels or letor or files or convention or all_queries or label or qid or docid:
                raise typer.BadParameter("--values stands alone: its values are measured already.")
            compared = read_values(values, metric)
        else:
            check_several(files)
            metrics = chosen_metrics(metric or METRICS, convention)
            rankings = (
                read_scored_models(
                    letor, scores or (), model, refused=bool(qrels or run or all_queries), columns=columns
                )
                if model
                else read_rankings(qrels, run, letor, scores, all_queries=all_queries, columns=columns)
            )
            compared = from_results([measure(ranking, one) for ranking in rankings for one in metrics])
    with working("Comparing", quiet=quiet):
        results = [(one, compare_one(one, settings)) for one in compared]
    if per_query is not None:
        write_queries(per_query, results)
    if as_json:
        print_json({"comparisons": [as_dict(*one, TOP if top is None else top) for one in results]})
        return
    for one, result in results:
        show_one(one, result, top=top, quiet=quiet)


def check_written(path: Path, read: Sequence[Path | None]) -> None:
    """Refuse a file that could not be written, or would not be what its name says, before the work."""
    if written_as(path) not in (".csv", ".tsv"):
        raise ParameterError("--per-query", str(path), "a file that ends in .csv or .tsv, compressed or not")
    check_target(path, *read)


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse what `compare` would refuse, before the work."""
    from concordant.evaluation import ComparisonSettings

    ComparisonSettings(**settings, tie=0.0, greater_is_better=True)


def compare_one(compared: Compared, settings: Mapping[str, Any]) -> ModelComparison:
    """Compare the rankings by one metric."""
    from concordant.evaluation import compare

    if len(compared.values) < 2:
        raise typer.BadParameter(
            f"{compared.metric} is known of {', '.join(compared.values)} only: give two."
        )
    return compare(compared.values, greater_is_better=compared.greater_is_better, **settings)


def show_one(compared: Compared, result: ModelComparison, *, top: int | None, quiet: bool) -> None:
    """Print the tables of one metric, and what they say in words."""
    top = (TOP if len(result.pairs) <= FEW else 0) if top is None else top
    from concordant.evaluation.comparison_words import legend

    show(mean_table(compared, result))
    show(pair_table(compared, result), [] if quiet else [legend(result)])
    show(test_table(compared, result), [] if quiet else remarks(compared, result))
    if top:
        show(query_table(compared, result, top))
