"""`concordant compare-models`: test whether one ranking is better than another."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from concordant.cli.shared.evaluation_tables import (
    EvaluatedRankings,
    MetricResult,
    measure,
    number_key,
    reading_notes,
)
from concordant.cli.shared.judged_rankings import Conventions, JudgedModels, parse_metrics, short_names
from concordant.cli.shared.output import (
    COMPILING,
    Display,
    check_table,
    examples,
    new_table,
    number,
    option,
    plural,
    same_file,
    write_rows,
)
from concordant.cli.shared.row_options import JudgedColumns, model_files
from concordant.exceptions import ConcordantError, EmptyDataError, MalformedLineError, UnknownNameError

if TYPE_CHECKING:
    from concordant.evaluation import ModelComparison, PairComparison
    from concordant.types import FloatArray


# Input of `compare-models`: rankings measured here, or the values that `evaluate -o` wrote.

COLUMNS = ("ranking", "metric", "query", "value")  # and a convention, where there is one
Values = dict[tuple[str, str], dict[str, dict[str, float]]]  # (metric, convention), ranking, query -> value


@dataclass(frozen=True, eq=False)
class ComparedRankings:
    """One metric of several rankings on their common queries.

    Attributes
    ----------
    metric, convention
        As --metric and --convention take them.
    queries
        Query ids, numeric ones in numeric order.
    values
        Name of each ranking -> its value on each query; NaN for skipped queries.
    left_out
        Name of each ranking -> how many of its queries some other ranking lacks.
    notes
        Remarks on reading the rankings.
    """

    metric: str
    convention: str
    queries: list[str]
    values: Mapping[str, FloatArray]
    left_out: Mapping[str, int]
    notes: tuple[str, ...] = ()

    @property
    def greater_is_better(self) -> bool:
        """True if higher is better; also True for a metric that is unknown here."""
        import concordant as cc

        try:
            return bool(cc.metric(self.metric).greater_is_better)
        except ConcordantError:
            return True


def _check_several(files: Sequence[Path]) -> None:
    """Raise for a single ranking, or one that is given twice."""
    if len(files) == 1:
        raise typer.BadParameter(f"A comparison needs two or more files, got only {files[0]}.")
    for position, file in enumerate(files):
        if any(same_file(file, other) for other in files[:position]):
            raise typer.BadParameter(f"{file} is given twice. Name each file once.")


def _named_baseline(baseline: str | None, files: Sequence[Path]) -> str | None:
    """Return the name of a file in the tables; names that are no files are returned unchanged.

    >>> _named_baseline("runs/a.run", [Path("runs/a.run"), Path("runs/b.run")])
    'a.run'
    """
    names = dict(zip(map(str, files), short_names(files), strict=True))
    return baseline if baseline is None else names.get(baseline, baseline)


def _from_results(results: list[MetricResult]) -> list[ComparedRankings]:
    """Build one comparison per metric and convention."""
    values: Values = {}
    for result in results:
        key = result.name, result.convention
        values.setdefault(key, {})[result.ranking.name] = dict(result.by_query())
    notes = tuple(reading_notes(EvaluatedRankings(results).rankings))
    return [replace(_join_rankings(*key, rankings), notes=notes) for key, rankings in values.items()]


def _join_rankings(
    metric: str, convention: str, rankings: Mapping[str, Mapping[str, float]]
) -> ComparedRankings:
    """Select the values on the queries that are in every ranking."""
    import numpy as np

    common = set.intersection(*(set(values) for values in rankings.values()))
    if not common:
        raise ConcordantError(
            f"no query is in all of {', '.join(rankings)}.\n"
            "Hint: ids are compared as text; with --all-queries, judged queries that a run lacks count."
        )
    queries = sorted(common, key=number_key)
    columns = {name: np.array([values[qid] for qid in queries]) for name, values in rankings.items()}
    left_out = {name: len(values) - len(common) for name, values in rankings.items()}
    return ComparedRankings(metric, convention, queries, columns, left_out)


def read_values(paths: Sequence[Path], metrics: Sequence[str] | None) -> list[ComparedRankings]:
    """Read tables that `evaluate -o` wrote; return one comparison per metric and convention."""
    values: Values = {}
    for path in paths:
        for line, row in _read_rows(path):
            key, ranking = (row["metric"], row.get("convention") or ""), row["ranking"]
            queries = values.setdefault(key, {}).setdefault(ranking, {})
            if row["query"] in queries:
                problem = f"{ranking!r} has query {row['query']!r} of {row['metric']} twice"
                raise MalformedLineError(
                    path, line, 0, problem, "a ranking has one value a query; rename one."
                )
            queries[row["query"]] = _number_in(path, line, row["value"])
    if not values:
        raise EmptyDataError(", ".join(map(str, paths)))
    metric_names = {metric for metric, _ in values}
    for name in metrics or ():
        if name not in metric_names:
            raise UnknownNameError("metric", name, metric_names)
    return [
        _join_rankings(*key, rankings) for key, rankings in values.items() if not metrics or key[0] in metrics
    ]


def _read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and cells of each line below the header."""
    from concordant._base.files import read_lines

    lines = [text for _, text in read_lines(path)]
    reader = csv.DictReader(lines, delimiter="\t" if lines and "\t" in lines[0] else ",")
    try:
        yield from _read_cells(path, reader)
    except csv.Error as error:  # such as a lone carriage return
        raise MalformedLineError(path, max(reader.line_num, 1), 0, str(error).rstrip(".")) from error


def _read_cells(path: Path, reader: csv.DictReader[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and cells of each line; raise if they do not fit the header."""
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        hint = "write such a file by concordant evaluate ... -o FILE."
        raise MalformedLineError(path, 1, 0, f"there is no column {missing[0]!r}", hint)
    for row in reader:
        if None in row or None in row.values():
            problem = (
                f"{len([cell for cell in row.values() if cell is not None])} cells do not fit the header"
            )
            raise MalformedLineError(path, reader.line_num, 0, problem, "write one value a line.")
        yield reader.line_num, row


def _number_in(path: Path, line: int, text: str) -> float:
    """Parse a value; an empty one is a skipped query."""
    from concordant._base.files import read_float

    try:
        value = read_float(text) if text.strip() else math.nan
    except ValueError:
        value = math.inf
    if math.isinf(value):
        raise MalformedLineError(
            path, line, 0, f"{text[:40]!r} is not a value", "write a number, or nothing."
        )
    return value


# Results of `compare-models` as tables, sentences, plain values and CSV.

FEW = 10  # pairs that get a sentence each; ten rankings have 45
QUERY_COLUMNS = (
    "convention",
    "metric",
    "query",
    "model",
    "against",
    "model_value",
    "against_value",
    "difference",
)


def _table_title(what: str, compared: ComparedRankings) -> str:
    style = f", convention: {compared.convention}" if compared.convention else ""
    return f"{compared.metric}{style}: {what}"


def _mean_table(compared: ComparedRankings, result: ModelComparison) -> Table:
    from concordant.evaluation.model_comparison_result import percent, span

    interval = f"{percent(result.settings.confidence)} interval"
    columns = ("ranking", "mean", interval, "queries")
    rows = (
        (summary.model, number(summary.mean), span(summary.interval), f"{summary.n_queries:,}")
        for summary in result.models
    )
    return new_table(_table_title("means", compared), *columns, numeric=columns[1:], rows=rows)


def _pair_table(compared: ComparedRankings, result: ModelComparison) -> Table:
    """Build the table of differences: mean, significance, and queries won, per pair."""
    from concordant.evaluation.model_comparison_result import pair_cells, pair_columns

    columns = pair_columns(result)
    table = new_table(_table_title("differences", compared), *columns, numeric=columns[1:])
    for pair in result.pairs:
        table.add_row(*pair_cells(pair), style="bold" if pair.significant else "")
    return table


def _test_table(compared: ComparedRankings, result: ModelComparison) -> Table:
    """Build the table of uncorrected tests, effect sizes and detectable differences, per pair."""
    from concordant.evaluation.model_comparison_result import test_cells, test_columns

    columns, title = test_columns(result), _table_title("tests of each pair alone", compared)
    rows = (test_cells(pair, result) for pair in result.pairs)
    return new_table(title, *columns, numeric=columns[1:], rows=rows)


def _query_table(compared: ComparedRankings, result: ModelComparison, top: int) -> Table:
    """Build the table of the queries with the largest gains, then the largest losses, per pair."""
    columns = ("pair", "query", "model", "against", "difference")
    title = _table_title("largest gains and losses of each pair", compared)
    table = new_table(title, *columns, numeric=columns[2:])
    for pair in result.pairs:
        name = f"{pair.model} - {pair.against}"
        for position, row in enumerate(_extremes(compared, result, pair, top)):
            values = number(row["model_value"]), number(row["against_value"]), f"{row['difference']:+.4f}"
            table.add_row("" if position else name, row["query"], *values)
        table.add_section()
    return table


def _query_rows(compared: ComparedRankings, pair: PairComparison) -> list[dict[str, Any]]:
    values, against_values = (compared.values[name].tolist() for name in (pair.model, pair.against))
    head = {"convention": compared.convention, "metric": compared.metric}
    names = {"model": pair.model, "against": pair.against}
    return [
        {**head, "query": qid, **names, "model_value": a, "against_value": b, "difference": a - b}
        for qid, a, b in zip(compared.queries, values, against_values, strict=True)
    ]


def _extremes(
    compared: ComparedRankings, result: ModelComparison, pair: PairComparison, top: int
) -> list[dict[str, Any]]:
    """Return the largest gains, then the largest losses; a gain is an improvement."""
    sign = 1.0 if result.settings.greater_is_better else -1.0
    rows = [row for row in _query_rows(compared, pair) if not math.isnan(row["difference"])]
    gains = [row for row in rows if sign * row["difference"] > result.settings.tie]
    losses = [row for row in rows if -sign * row["difference"] > result.settings.tie]
    most = [sorted(side, key=lambda row: -abs(row["difference"]))[:top] for side in (gains, losses)]
    return most[0] + most[1]


def _remarks(compared: ComparedRankings, result: ModelComparison) -> list[str]:
    """Explain the columns, state each pair in words, and list what was left out."""
    lines = [
        _explain_columns(result),
        *(result.sentences() if len(result.pairs) <= FEW else ()),
        *compared.notes,
    ]
    if any(compared.left_out.values()):
        counts = ", ".join(f"{name} {count:,}" for name, count in compared.left_out.items() if count)
        lines.append(f"queries that are not in every ranking are left out: {counts}")
    skipped = result.n_queries - max(summary.n_queries for summary in result.models)
    if skipped:
        lines.append(f"{plural(skipped, 'query has', 'queries have')} no value in any ranking: left out")
    if not result.settings.greater_is_better:
        lines.append(f"{compared.metric} is a loss: lower is better")
    return lines


def _explain_columns(result: ModelComparison) -> str:
    from concordant.evaluation.model_comparison_result import percent

    return (
        "effect: difference / spread; detectable: difference that these queries find with probability "
        f"{percent(result.settings.power)}; needed: queries that find the observed one so"
    )


def _plain_comparison(compared: ComparedRankings, result: ModelComparison, top: int) -> dict[str, Any]:
    plain = result.to_dict()
    pairs = [
        {**values, "in_words": words, "largest": _plain_extremes(compared, result, pair, top)}
        for values, words, pair in zip(plain["pairs"], result.sentences(), result.pairs, strict=True)
    ]
    head = {"metric": compared.metric, "convention": compared.convention, "left_out": dict(compared.left_out)}
    return {**head, "notes": list(compared.notes), **plain, "pairs": pairs}


def _plain_extremes(
    compared: ComparedRankings, result: ModelComparison, pair: PairComparison, top: int
) -> list[dict[str, Any]]:
    """Return the extremes without the columns that the pair holds already."""
    columns = [name for name in QUERY_COLUMNS[2:] if name not in ("model", "against")]
    return [{name: row[name] for name in columns} for row in _extremes(compared, result, pair, top)]


@dataclass(frozen=True, eq=False)
class ComparedModels:
    """The tests of all metrics; `top`: gains and losses to show of each pair, None by their number."""

    results: list[tuple[ComparedRankings, ModelComparison]]
    top: int | None

    def tables(self) -> Iterator[tuple[Table, list[str]]]:
        """Yield the tables of each metric."""
        from concordant.evaluation.model_comparison_result import legend

        for compared, result in self.results:
            yield _mean_table(compared, result), []
            yield _pair_table(compared, result), [legend(result)]
            yield _test_table(compared, result), _remarks(compared, result)
            top = (TOP if len(result.pairs) <= FEW else 0) if self.top is None else self.top
            if top:
                yield _query_table(compared, result, top), []

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values for JSON."""
        top = TOP if self.top is None else self.top
        return {"comparisons": [_plain_comparison(*pair, top) for pair in self.results]}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the values of every pair of rankings on every query, by all metrics."""
        for compared, result in self.results:
            for pair in result.pairs:
                yield from _query_rows(compared, pair)


METRICS = ("ndcg@10", "ap")
TOP = 3  # gains and losses
EXAMPLES = examples(
    "concordant compare-models --qrels test.qrels --run bm25.run --run dense.run",
    "concordant compare-models --qrels q --run a --run b --run c --baseline a -m map -c trec_eval",
    "concordant compare-models --letor test.txt --scores old.txt --scores new.txt --per-query queries.csv",
    "concordant compare-models --letor test.txt --model runs/linear --model runs/boosted",
    "concordant compare-models --values per-query.csv --correction holm --json",
)
_setting = partial(option, panel="Tests")


@dataclass(frozen=True)
class PairedTests:
    """Options of the tests of all pairs."""

    correction: Annotated[
        str, _setting("--correction", "NAME", "For several pairs: max_t, holm, bonferroni, bh or none.")
    ] = "max_t"
    level: Annotated[float, _setting("--level", "P", "Adjusted p-values below it are significant.")] = 0.05
    confidence: Annotated[float, _setting("--confidence", "P", "Of the intervals.")] = 0.95
    power: Annotated[float, _setting("--power", "P", "Of the smallest detectable difference.")] = 0.8
    resamples: Annotated[int, _setting("--resamples", "N", "Random signs, and bootstrap samples.")] = 10_000
    wilcoxon: Annotated[
        bool, _setting("--wilcoxon", "", "Also the signed-rank test, which errs on skewed differences.")
    ] = False
    seed: Annotated[int, _setting("--seed", "N", "Of all random choices.", min=0)] = 0

    def settings(self, baseline: str | None) -> dict[str, Any]:
        """Return the settings of the comparison; raise before the work if it would raise."""
        from concordant.evaluation import ComparisonSettings

        options = {name: value for name, value in vars(self).items() if name != "resamples"}
        settings = {**options, "baseline": baseline, "n_flips": self.resamples, "n_boot": self.resamples}
        ComparisonSettings(**settings, tie=0.0, greater_is_better=True)
        return settings


def compare_models(
    *,
    files: JudgedModels,
    values: Annotated[
        list[Path] | None,
        option("--values", "FILE", "Values of every query, as evaluate -o writes them; repeat."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        option(
            "--metric -m",
            "METRIC",
            f"Metric such as ndcg@10, ap, rr; repeat for several. Default: {', '.join(METRICS)}, or all "
            "of --values.",
        ),
    ] = None,
    convention: Conventions = None,
    baseline: Annotated[
        str | None,
        option("--baseline", "NAME", "Compare all others with this file only. Default: all pairs."),
    ] = None,
    tests: PairedTests,
    top: Annotated[
        int | None,
        option(
            "--top",
            "N",
            f"Largest gains and losses to show of each pair. Default: 3, of up to {FEW} pairs.",
            min=0,
        ),
    ] = None,
    per_query: Annotated[
        Path | None,
        option("--per-query", "FILE", "Write the difference of every query to this .csv or .tsv."),
    ] = None,
    columns: JudgedColumns,
    display: Display,
) -> None:
    """Test whether rankings differ: paired tests over queries, intervals, effect sizes, and what went unseen."""  # noqa: E501
    inputs = [files.qrels, files.letor, *model_files(*files.rankings), *(values or ())]
    check_table(per_query, *inputs, flag="--per-query")
    settings = tests.settings(_named_baseline(baseline, files.rankings))
    with display.working(f"Evaluating {COMPILING}"):
        if values:
            if convention or any(vars(files).values()) or any(vars(columns).values()):
                raise typer.BadParameter(
                    "--values holds measured values and cannot be combined with other inputs."
                )
            compared = read_values(values, metric)
        else:
            _check_several(files.rankings)
            metrics = parse_metrics(metric or METRICS, convention)
            rankings = files.read(columns.names())
            compared = _from_results([measure(*pair) for pair in product(rankings, metrics)])
    with display.working("Comparing"):
        results = [(by_metric, _compare_metric(by_metric, settings)) for by_metric in compared]
    outcome = ComparedModels(results, top)
    if per_query is not None:
        write_rows(per_query, QUERY_COLUMNS, outcome.rows())
    display.present(outcome)


def _compare_metric(compared: ComparedRankings, settings: Mapping[str, Any]) -> ModelComparison:
    from concordant.evaluation import compare

    if len(compared.values) < 2:
        raise typer.BadParameter(
            f"A comparison needs two rankings with {compared.metric}, got only {', '.join(compared.values)}."
        )
    return compare(compared.values, greater_is_better=compared.greater_is_better, **settings)
