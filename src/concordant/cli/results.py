"""What `evaluate` found: as tables, as plain values, as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concordant.cli.inputs import Ranking
from concordant.cli.output import new_table, number, plural

if TYPE_CHECKING:
    from rich.table import Table

    from concordant import Metric
    from concordant.metrics import MetricValue
    from concordant.types import FloatArray

__all__ = ["Result", "as_dict", "mean_tables", "measure", "query_tables", "remarks", "write_csv"]


@dataclass(frozen=True, eq=False)
class Result:
    """One metric of one ranking; `per_query` follows `ranking.queries.ids`, NaN where skipped."""

    ranking: Ranking
    metric: Metric
    value: MetricValue
    per_query: FloatArray

    @property
    def name(self) -> str:
        """The metric without its convention."""
        import concordant as cc

        return str(cc.metric(self.metric, convention="concordant"))

    @property
    def convention(self) -> str:
        """The convention, as it can be given back by --convention."""
        return str(self.metric.convention)

    def by_query(self) -> list[tuple[str, float]]:
        """Query ids and values, numbers in the order of numbers."""
        pairs = zip(self.ranking.queries.ids.tolist(), self.per_query.tolist(), strict=True)
        return sorted(((str(qid), value) for qid, value in pairs), key=lambda pair: by_number(pair[0]))


def measure(ranking: Ranking, metric: Metric) -> Result:
    """Give a metric of a ranking, by query and on average."""
    values = metric.per_query(**ranking.arguments())
    return Result(ranking, metric, metric.average(values), values)


def by_number(qid: str) -> tuple[bool, int, str]:
    """Give a sort key: whole numbers in their order, before other ids in theirs.

    >>> sorted(["10", "a2", "9"], key=by_number)
    ['9', '10', 'a2']
    """
    whole = qid.isascii() and qid.isdigit()
    return not whole, int(qid) if whole else 0, qid


def grouped(results: Iterable[Result], key: Callable[[Result], Any]) -> dict[Any, list[Result]]:
    """Give the results that share a key, keys in the order of first appearance."""
    groups: dict[Any, list[Result]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return groups


def mean_tables(results: list[Result]) -> list[Table]:
    """Give one table a convention: a block of rows for each metric, a row for each ranking."""
    several = len({result.ranking.name for result in results}) > 1
    by_convention = grouped(results, lambda result: result.convention)
    return [mean_table(style, block, several=several) for style, block in by_convention.items()]


def mean_table(style: str, results: list[Result], *, several: bool) -> Table:
    """Give the table of one convention; rankings are named where there are several."""
    columns = ["metric", *["ranking"] * several, "value", "counted", "skipped"]
    table = new_table(f"convention: {style}", *columns, numeric=columns[-3:])
    for name, block in grouped(results, lambda result: result.name).items():
        for place, result in enumerate(block):
            value = result.value
            counts = (value.n_queries - value.n_skipped, value.n_skipped)
            named = [result.ranking.name] * several
            table.add_row("" if place else name, *named, number(value), *(f"{count:,}" for count in counts))
        if several:
            table.add_section()
    return table


def query_tables(results: list[Result]) -> list[Table]:
    """Give one table a ranking and convention: a row for each query, a column for each metric."""
    blocks = grouped(results, lambda result: (result.ranking.name, result.convention))
    return [query_table(f"{name}, convention: {style}", block) for (name, style), block in blocks.items()]


def query_table(title: str, results: list[Result]) -> Table:
    """Give the values of every query, and their means in the last row."""
    names = [result.name for result in results]
    table = new_table(title, "query", *names, numeric=names)
    for row in zip(*(result.by_query() for result in results), strict=True):
        table.add_row(row[0][0], *(number(value) for _, value in row))
    table.add_section()
    table.add_row("mean", *(number(result.value) for result in results), style="bold")
    return table


def remarks(rankings: list[Ranking], results: list[Result]) -> list[str]:
    """Give what a reader of the numbers should know; rankings are named where it is not true of all."""
    names: dict[str, list[str]] = {}
    for ranking in rankings:
        for line in ranking.remarks():
            names.setdefault(line, []).append(ranking.name)
    lines = [
        line if len(owners) == len(rankings) else f"{', '.join(owners)}: {line}"
        for line, owners in names.items()
    ]
    return lines + empty_queries(results)


def empty_queries(results: list[Result]) -> list[str]:
    """Say how many queries have nothing to find: once where it is the same of all rankings, else of each."""
    most: dict[str, int] = {}
    for result in results:
        most[result.ranking.name] = max(most.get(result.ranking.name, 0), result.value.n_skipped)
    skipped = max(most.values())
    if not skipped:
        return []
    if len(set(most.values())) > 1:
        counts = ", ".join(f"{name} {count:,}" for name, count in most.items())
        return [f"queries that have nothing to find are skipped (empty=skip): {counts}"]
    many = plural(skipped, "query has", "queries have")
    return [f"{many} nothing to find and {'is' if skipped == 1 else 'are'} skipped (empty=skip)"]


def as_dict(rankings: list[Ranking], results: list[Result], *, per_query: bool) -> dict[str, Any]:
    """Give all numbers as plain values."""
    return {
        "metrics": list(dict.fromkeys(result.name for result in results)),
        "conventions": list(dict.fromkeys(result.convention for result in results)),
        "rankings": [
            {"name": one.name, "n_rows": one.queries.n_rows, "n_queries": one.queries.n_queries, **one.counts}
            for one in rankings
        ],
        "results": [
            {
                "ranking": result.ranking.name,
                "metric": result.name,
                "convention": result.convention,
                "value": float(result.value),
                "n_queries": result.value.n_queries,
                "n_skipped": result.value.n_skipped,
                **({"per_query": dict(result.by_query())} if per_query else {}),
            }
            for result in results
        ],
    }


def write_csv(path: Path, results: list[Result]) -> None:
    """Write one line a query and metric, whole or not at all; no value where the query was skipped."""
    from concordant.supervision.readers.text import write_atomically

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["ranking", "convention", "metric", "query", "value"])
    for result in results:
        head = result.ranking.name, result.convention, result.name
        writer.writerows((*head, qid, "" if math.isnan(value) else value) for qid, value in result.by_query())
    with write_atomically(path) as stream:
        stream.write(text.getvalue().encode())
