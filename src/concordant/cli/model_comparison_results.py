"""What `compare-models` found: as tables, as sentences, as plain values, as CSV."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concordant.cli.model_comparison_inputs import Compared
from concordant.cli.output import new_table, number, plural, write_rows

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.evaluation import ModelComparison, PairComparison

__all__ = [
    "FEW",
    "as_dict",
    "mean_table",
    "pair_table",
    "query_table",
    "remarks",
    "test_table",
    "write_queries",
]

FEW = 10  # pairs that are worth a sentence each; there are 45 of ten rankings
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


def titled(what: str, compared: Compared) -> str:
    """Give the title of a table."""
    style = f", convention: {compared.convention}" if compared.convention else ""
    return f"{compared.metric}{style}: {what}"


def mean_table(compared: Compared, result: ModelComparison) -> Table:
    """Give the mean of each ranking."""
    from concordant.evaluation.comparison_words import percent, span

    interval = f"{percent(result.settings.confidence)} interval"
    columns = ("ranking", "mean", interval, "queries")
    table = new_table(titled("means", compared), *columns, numeric=columns[1:])
    for one in result.models:
        table.add_row(one.model, number(one.mean), span(one.interval), f"{one.n_queries:,}")
    return table


def pair_table(compared: Compared, result: ModelComparison) -> Table:
    """Give the difference of each pair, whether it is significant, and how many queries were won."""
    from concordant.evaluation.comparison_words import pair_cells, pair_columns

    columns = pair_columns(result)
    table = new_table(titled("differences", compared), *columns, numeric=columns[1:])
    for pair in result.pairs:
        table.add_row(*pair_cells(pair), style="bold" if pair.significant else "")
    return table


def test_table(compared: Compared, result: ModelComparison) -> Table:
    """Give the tests of each pair alone, its effect, and what these or more queries show."""
    from concordant.evaluation.comparison_words import test_cells, test_columns

    columns = test_columns(result)
    table = new_table(titled("tests of each pair alone", compared), *columns, numeric=columns[1:])
    for pair in result.pairs:
        table.add_row(*test_cells(pair, result))
    return table


def query_table(compared: Compared, result: ModelComparison, top: int) -> Table:
    """Give the queries that each pair differs on most, the largest gains first, then the largest losses."""
    columns = ("pair", "query", "model", "against", "difference")
    title = titled("largest gains and losses of each pair", compared)
    table = new_table(title, *columns, numeric=columns[2:])
    for pair in result.pairs:
        name = f"{pair.model} - {pair.against}"
        for place, row in enumerate(extremes(compared, result, pair, top)):
            values = number(row["model_value"]), number(row["against_value"]), f"{row['difference']:+.4f}"
            table.add_row("" if place else name, row["query"], *values)
        table.add_section()
    return table


def query_rows(compared: Compared, pair: PairComparison) -> list[dict[str, Any]]:
    """Give the values of a pair on every query."""
    own, other = (compared.values[name].tolist() for name in (pair.model, pair.against))
    head = {"convention": compared.convention, "metric": compared.metric}
    names = {"model": pair.model, "against": pair.against}
    return [
        {**head, "query": qid, **names, "model_value": a, "against_value": b, "difference": a - b}
        for qid, a, b in zip(compared.queries, own, other, strict=True)
    ]


def extremes(
    compared: Compared, result: ModelComparison, pair: PairComparison, top: int
) -> list[dict[str, Any]]:
    """Give the largest gains, then the largest losses; what is better is a gain."""
    sign = 1.0 if result.settings.greater_is_better else -1.0
    rows = [row for row in query_rows(compared, pair) if not math.isnan(row["difference"])]
    gains = [row for row in rows if sign * row["difference"] > result.settings.tie]
    losses = [row for row in rows if -sign * row["difference"] > result.settings.tie]
    most = [sorted(side, key=lambda row: -abs(row["difference"]))[:top] for side in (gains, losses)]
    return most[0] + most[1]


def remarks(compared: Compared, result: ModelComparison) -> list[str]:
    """Give what the columns mean, each pair in plain words, and what was left out."""
    lines = [meaning(result), *(result.sentences() if len(result.pairs) <= FEW else ())]
    if any(compared.left_out.values()):
        counts = ", ".join(f"{name} {count:,}" for name, count in compared.left_out.items() if count)
        lines.append(f"queries that are not in every ranking are left out: {counts}")
    skipped = result.n_queries - max(one.n_queries for one in result.models)
    if skipped:
        lines.append(f"{plural(skipped, 'query has', 'queries have')} no value in any ranking: left out")
    if not result.settings.greater_is_better:
        lines.append(f"{compared.metric} is a loss: lower is better")
    return lines


def meaning(result: ModelComparison) -> str:
    """Say what the sizes are."""
    from concordant.evaluation.comparison_words import percent

    return (
        "effect: difference / spread; detectable: difference that these queries find with probability "
        f"{percent(result.settings.power)}; needed: queries that find the observed one so"
    )


def as_dict(compared: Compared, result: ModelComparison, top: int) -> dict[str, Any]:
    """Give all numbers of one metric as plain values."""
    pairs = [
        {
            **told,
            "in_words": words,
            "largest": [without_names(row) for row in extremes(compared, result, pair, top)],
        }
        for told, words, pair in zip(result.to_dict()["pairs"], result.sentences(), result.pairs, strict=True)
    ]
    head = {"metric": compared.metric, "convention": compared.convention, "left_out": dict(compared.left_out)}
    return {**head, **result.to_dict(), "pairs": pairs}


def without_names(row: dict[str, Any]) -> dict[str, Any]:
    """Give a query's values without what the pair says already."""
    return {name: row[name] for name in QUERY_COLUMNS[2:] if name not in ("model", "against")}


def write_queries(path: Path, results: list[tuple[Compared, ModelComparison]]) -> None:
    """Write the values of every pair on every query."""
    write_rows(path, QUERY_COLUMNS, every_row(results))


def every_row(results: list[tuple[Compared, ModelComparison]]) -> Iterator[dict[str, Any]]:
    """Give the lines of all metrics and pairs."""
    for compared, result in results:
        for pair in result.pairs:
            yield from query_rows(compared, pair)
