"""Results of `evaluate` as tables, plain values and rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table

from concordant.cli.shared.judged_rankings import JudgedRanking
from concordant.cli.shared.output import new_table, number, plural

if TYPE_CHECKING:
    from concordant import Metric
    from concordant.metrics import MetricValue
    from concordant.types import FloatArray


@dataclass(frozen=True, eq=False)
class MetricResult:
    """One metric of one ranking; `per_query` follows `ranking.queries.ids`, NaN where skipped."""

    ranking: JudgedRanking
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

    def head(self) -> dict[str, str]:
        """Return the names that lead a row: of the ranking, the metric and its convention."""
        return {"ranking": self.ranking.name, "metric": self.name, "convention": self.convention}

    def by_query(self) -> list[tuple[str, float]]:
        """Query ids and values, numeric ids in numeric order."""
        pairs = zip(self.ranking.queries.ids.tolist(), self.per_query.tolist(), strict=True)
        return sorted(((str(qid), value) for qid, value in pairs), key=lambda pair: number_key(pair[0]))


def measure(ranking: JudgedRanking, metric: Metric) -> MetricResult:
    """Compute a metric of a ranking, by query and on average."""
    values = metric.per_query(**ranking.arguments())
    return MetricResult(ranking, metric, metric.average(values), values)


def number_key(qid: str) -> tuple[bool, int, str]:
    """Return a sort key: whole numbers in numeric order, before all other ids.

    >>> sorted(["10", "a2", "9"], key=number_key)
    ['9', '10', 'a2']
    """
    whole = qid.isascii() and qid.isdigit()
    return not whole, int(qid) if whole else 0, qid


def _group_results(
    results: Iterable[MetricResult], key: Callable[[MetricResult], Any]
) -> dict[Any, list[MetricResult]]:
    """Group the results by a key, keys in the order of first appearance."""
    groups: dict[Any, list[MetricResult]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return groups


@dataclass(frozen=True, eq=False)
class EvaluatedRankings:
    """The metrics of all rankings, ranking by ranking; `per_query`: shown query by query."""

    results: list[MetricResult]
    per_query: bool = False

    @property
    def rankings(self) -> list[JudgedRanking]:
        """The rankings, each once."""
        return list({id(result.ranking): result.ranking for result in self.results}.values())

    def tables(self) -> Iterator[tuple[Table, list[str]]]:
        """Yield the tables, with all remarks below the last one."""
        *others, last = self._query_tables() if self.per_query else self._mean_tables()
        yield from ((table, []) for table in others)
        judged = (result for result in self.results if result.ranking.y is not None)
        problems = dict.fromkeys(result.metric.label_problem(result.ranking.y) for result in judged)
        notes = *reading_notes(self.rankings), *_empty_queries(self.results), *problems
        yield last, [note for note in notes if note]

    def _mean_tables(self) -> Iterator[Table]:
        """Yield one table per convention: a block of rows per metric, a row per ranking."""
        several = len({result.ranking.name for result in self.results}) > 1
        columns = ["metric", *["ranking"] * several, "value", "counted", "skipped"]
        for style, results in _group_results(self.results, lambda result: result.convention).items():
            table = new_table(f"convention: {style}", *columns, numeric=columns[-3:])
            for name, block in _group_results(results, lambda result: result.name).items():
                for position, result in enumerate(block):
                    value = result.value
                    counts = (value.n_queries - value.n_skipped, value.n_skipped)
                    words = ["" if position else name, *[result.ranking.name] * several, number(value)]
                    table.add_row(*words, *(f"{count:,}" for count in counts))
                if several:
                    table.add_section()
            yield table

    def _query_tables(self) -> Iterator[Table]:
        """Yield one table per ranking and convention: a row per query, a column per metric; then means."""
        blocks = _group_results(self.results, lambda result: (result.ranking.name, result.convention))
        for (name, style), results in blocks.items():
            metrics = [result.name for result in results]
            by_query = zip(*(result.by_query() for result in results), strict=True)
            rows = ([row[0][0], *(number(value) for _, value in row)] for row in by_query)
            table = new_table(f"{name}, convention: {style}", "query", *metrics, numeric=metrics, rows=rows)
            table.add_section()
            table.add_row("mean", *(number(result.value) for result in results), style="bold")
            yield table

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values for JSON."""
        return {
            "metrics": list(dict.fromkeys(result.name for result in self.results)),
            "conventions": list(dict.fromkeys(result.convention for result in self.results)),
            "rankings": [
                {
                    "name": ranking.name,
                    "n_rows": ranking.queries.n_rows,
                    "n_queries": ranking.queries.n_queries,
                    **ranking.counts,
                }
                for ranking in self.rankings
            ],
            "results": [
                {
                    **result.head(),
                    "value": float(result.value),
                    "n_queries": result.value.n_queries,
                    "n_skipped": result.value.n_skipped,
                    **({"per_query": dict(result.by_query())} if self.per_query else {}),
                }
                for result in self.results
            ],
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the value of each metric on each query; skipped queries have NaN."""
        for result in self.results:
            for qid, value in result.by_query():
                yield {**result.head(), "query": qid, "value": value}


def reading_notes(rankings: Sequence[JudgedRanking]) -> list[str]:
    """Describe what was noticed while reading; rankings are named where it does not hold for all."""
    names: dict[str, list[str]] = {}
    for ranking in rankings:
        for line in ranking.remarks():
            names.setdefault(line, []).append(ranking.name)
    return [
        line if len(owners) == len(rankings) else f"{', '.join(owners)}: {line}"
        for line, owners in names.items()
    ]


def _empty_queries(results: list[MetricResult]) -> list[str]:
    """State how many queries are skipped: once if it is the same for all rankings, else for each."""
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
