"""Query by query: the distribution, gains and losses, the worst queries, ties and empty queries."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from concordant.evaluation.report.figures import distribution_figure, gains_figure
from concordant.evaluation.report.page import figure, table
from concordant.evaluation.report.pieces import Counts, RankedRow, WorstQuery
from concordant.evaluation.report.scored import thinned
from concordant.evaluation.report.section import Section, none, number, numbers, plural

if TYPE_CHECKING:
    from concordant.evaluation.report.document import Report

__all__ = ["counts_section", "distribution_section", "gains_section", "worst_section"]

MOST_ROWS = 21  # of the numbers of gains


def distribution_section(report: Report) -> Section:
    """Give the histogram."""
    one, names = report.distribution, (report.judged.model, report.judged.baseline)
    head = ("least", "25 %", "median", "75 %", "greatest")
    quarters = table(head, [[number(value) for value in one.quartiles]], caption="The model's values")
    rows = [
        (f"{low:.3g} to {high:.3g}", f"{mine:,}", f"{other:,}")
        for low, high, mine, other in zip(one.edges, one.edges[1:], one.model, one.baseline, strict=False)
    ]
    reading = (
        f"How many queries have each {one.metric}: a mean hides whether all queries are middling or some are "
        "perfect and some are lost."
    )
    if not any(one.model):
        return Section(
            "distribution", "Query by query", reading, none(f"{one.metric} is defined on no query.")
        )
    label = f"Histogram of {one.metric} over queries, of {names[0]} and {names[1]}"
    body = figure("plot-distribution", label) + quarters + numbers(("value", "model", "baseline"), rows)
    drawn = {"plot-distribution": distribution_figure(one, names)}
    return Section("distribution", "Query by query", reading, body, drawn)


def gains_section(report: Report) -> Section:
    """Give gains and losses against the baseline."""
    one, baseline = report.gains, report.judged.baseline
    reading = (
        f"A bar a query: how much the model gains over {baseline} in {one.metric}; bars below the line are "
        "queries that it makes worse."
    )
    if not one.n_queries:
        return Section("gains", "Gains and losses", reading, none("No query can be compared."))
    counted = (
        f"<p><strong>{one.wins:,}</strong> better, <strong>{one.ties:,}</strong> equal, "
        f"<strong>{one.losses:,}</strong> worse, of {plural(one.n_queries, 'query', 'queries')}.</p>"
    )
    shown = len(one.differences)
    if shown < one.n_queries:
        counted += f'<p class="dim">Drawn are {shown:,} of them, evenly spaced in this order.</p>'
    listed = thinned(shown, MOST_ROWS)
    rows = [(escape(one.qid[i]), f"{one.differences[i]:+.4f}") for i in listed]
    label = f"Gain in {one.metric} over {baseline}, query by query: {one.wins} gains, {one.losses} losses"
    body = counted + figure("plot-gains", label) + numbers(("query", "gain"), rows, text=["query"])
    return Section("gains", "Gains and losses", reading, body, {"plot-gains": gains_figure(one)})


def worst_section(report: Report) -> Section:
    """Give the worst queries with the heads of their rankings."""
    metric = report.conventions.metric
    reading = (
        f"The queries on which the model does worst by {metric}: the first rows of each as it ranks them, "
        "and below them the rows of higher grade that it missed. Look for what these have in common, and for "
        "labels that seem wrong. Rows of equal score stand in the order of the input."
    )
    if not report.worst:
        return Section("worst", "Worst queries", reading, none("The metric is defined on no query."))
    body = "\n".join(worst_html(one, opened=place == 0) for place, one in enumerate(report.worst))
    return Section("worst", "Worst queries", reading, body)


def worst_html(one: WorstQuery, *, opened: bool) -> str:
    """Give one query, to be opened."""
    compared = any(row.baseline_place is not None for row in one.rows)
    columns = ["place", "document", "grade", "score", *["baseline"] * compared]
    head = sum(row.place == place for place, row in enumerate(one.rows, start=1))
    shown = plural(one.n_rows, "row", "rows")
    if head < one.n_rows:
        below = len(one.rows) - head
        shown = f"first {head} of {one.n_rows:,} rows" + f", and {below} of higher grade below" * (below > 0)
    title = f"query {escape(one.qid)}: {number(one.value)}, baseline {number(one.baseline)} ({shown})"
    caption = f"Ranking of query {one.qid}" + "; baseline: its place there" * compared
    cells = [ranked_cells(row, compared=compared) for row in one.rows]
    inner = table(columns, cells, text=["document"], caption=caption)
    return f"<details{' open' * opened}><summary>{title}</summary>\n{inner}</details>"


def ranked_cells(row: RankedRow, *, compared: bool) -> list[str]:
    """Give a line of a ranking."""
    score = "not ranked" if math.isinf(row.score) else f"{row.score:.4g}{' (tied)' * row.tied}"
    grade = f"<strong>{row.grade:g}</strong>" if row.grade > 0.0 else f"{row.grade:g}"
    return [f"{row.place:,}", escape(row.docid), grade, score, *[str(row.baseline_place)] * compared]


def counts_section(one: Counts, metric: str) -> Section:
    """Give the counts."""
    share = f" of {one.n_pairs:,}" if one.n_pairs else ""
    rows = [
        ("queries with tied scores", f"{one.n_tied_queries:,}"),
        (f"pairs of rows with tied scores,{share}", f"{one.n_tied_pairs:,}"),
        ("of these, pairs of different grade: the tie rule decides them", f"{one.n_decided_ties:,}"),
        ("queries in which no grade is above 0", f"{one.n_nothing_relevant:,}"),
        ("queries in which all grades are equal: any order is right", f"{one.n_same_grade:,}"),
        ("queries of one row", f"{one.n_one_row:,}"),
        ("queries without rows", f"{one.n_without_rows:,}"),
        (f"queries that {metric} leaves out", f"{one.n_skipped:,}"),
        ("rows that are not in the ranking", f"{one.n_not_ranked:,}"),
    ]
    noticed = "".join(f"<li>{escape(line)}</li>" for line in one.noticed)
    body = table(
        ("what", "count"), [(escape(name), count) for name, count in rows], text=["what"], caption="Counts"
    )
    body += f"<ul>{noticed}</ul>" if noticed else ""
    reading = (
        "What makes numbers mean less than they seem to: where counts are high, the convention decides much."
    )
    return Section("counts", "Ties and empty queries", reading, body)
