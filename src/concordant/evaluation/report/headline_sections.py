"""What was judged, the table of metrics, and the conventions behind it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from concordant.evaluation.report.page import table
from concordant.evaluation.report.pieces import MetricRow, PresetRow
from concordant.evaluation.report.section import Section, between, cell, number, p_value, plural, spoken

if TYPE_CHECKING:
    from concordant.evaluation.report.document import Report

__all__ = ["conventions_section", "judged_section", "metrics_section", "summary"]

BRIEF = {
    "proven": "with enough data, the best order",
    "conditional": "the best order, under a condition",
    "refuted": "a wrong order, on some labels",
    "open": "nobody knows where it leads",
}


def summary(report: Report) -> str:
    """Give the headline in a sentence."""
    row, judged = report.metrics[0], report.judged
    text = (
        f"<strong>{escape(row.metric)} {number(row.model.value)}</strong>{between(row.model)} for "
        f"{escape(judged.model)} on {plural(row.n_counted, 'query', 'queries')}; "
        f"{number(row.baseline.value)} for {escape(judged.baseline)}."
    )
    return f'<p>{text} {escape(verdict(row))}</p>\n<div class="cards">{"".join(cards(report))}</div>'


def cards(report: Report) -> Iterator[str]:
    """Give what is read first: value, difference, queries won and lost, certificate."""
    row, gains, known = report.metrics[0], report.gains, report.certificate
    yield card(row.metric, number(row.model.value), spoken(row.model.low, row.model.high, 4))
    apart, chance = row.difference, f"p {p_value(row.p_value)}"
    ends = spoken(apart.low, apart.high, 4)
    told = "-" if math.isnan(apart.value) else f"{apart.value:+.4f}"
    below = ", ".join(filter(None, (ends, chance.replace(" ", "\N{NO-BREAK SPACE}"))))
    yield card(f"against {report.judged.baseline}", told, below, tone(row))
    if gains.n_queries:
        counted = f"{gains.wins:,} better, {gains.ties:,} equal, {gains.losses:,} worse"
        parts = {"won": gains.wins, "level": gains.ties, "lost": gains.losses}
        drawn = (f'<i class="{kind}" style="flex-grow:{count}"></i>' for kind, count in parts.items())
        bar = f'<div class="shares" aria-hidden="true">{"".join(drawn)}</div>'
        yield f'<div class="card"><span>queries</span>{bar}<small>{counted}</small></div>'
    if known is not None:
        yield card("certificate", known.status, BRIEF[known.status], known.status)


def card(label: str, value: str, below: str, kind: str = "") -> str:
    """Give one number with its name and what goes with it."""
    shown = f'<strong class="{escape(kind)}">{escape(value)}</strong>'
    return f'<div class="card"><span>{escape(label)}</span>{shown}<small>{escape(below)}</small></div>'


def tone(row: MetricRow) -> str:
    """Give the class of a difference: good or bad where interval and test leave 0 out."""
    low, high = row.difference.low, row.difference.high
    if not ((low > 0.0 or high < 0.0) and row.p_value < 0.05):
        return ""
    return "good" if (low > 0.0) == row.greater_is_better else "bad"


def verdict(row: MetricRow) -> str:
    """Say what the difference is, and whether chance would give one as large."""
    apart = row.difference.value
    if math.isnan(apart):
        return "No query can be compared."
    if apart == 0.0:
        return "There is no difference."
    better = (apart > 0.0) == row.greater_is_better
    words = f"The model is {'better' if better else 'worse'} by {abs(apart):.4f}{between(row.difference)}"
    chance = "chance rarely gives so much" if row.p_value < 0.05 else "chance could give as much"
    return f"{words}, p {p_value(row.p_value)}: {chance}."


def judged_section(report: Report) -> Section:
    """Say what was judged."""
    one = report.judged
    grades = ", ".join(f"{grade:g}: {count:,}" for grade, count in one.grades)
    counted = sum(count for _, count in one.grades)
    facts = [
        ("Model", one.model),
        ("Baseline", one.baseline),
        ("Rows", f"{one.n_rows:,}"),
        (
            "Queries",
            f"{one.n_queries:,}, of {one.shortest:,} to {one.longest:,} rows (median {one.median:g})",
        ),
        ("Features", "not given" if one.n_features is None else f"{one.n_features:,}"),
        ("Rows by grade", grades + (" and higher ones" if counted < one.n_rows else "")),
        ("Data", one.fingerprint),
        ("Date", one.date),
        ("Library", f"concordant {one.version}"),
    ]
    listed = "\n".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts if text)
    reading = f"The numbers below are about these rows and no others. {one.against}"
    return Section("judged", "What was judged", reading, f"<dl>\n{listed}\n</dl>")


def metrics_section(report: Report) -> Section:
    """Give the table of metrics."""
    columns = ("metric", "model", "baseline", "difference", "p", "queries", "left out")
    share = f"{report.confidence:.0%}"
    rows = [
        (
            escape(row.metric) + ("" if row.greater_is_better else "<small>lower is better</small>"),
            cell(row.model),
            cell(row.baseline),
            cell(row.difference, signed=True, kind=tone(row)),
            p_value(row.p_value),
            f"{row.n_counted:,}",
            f"{row.n_skipped:,}",
        )
        for row in report.metrics
    ]
    reading = (
        f"A mean over queries, and below it the interval of the mean of all such queries, at {share} "
        f"confidence (bootstrap over queries, {report.n_boot:,} resamples). p is how often chance alone "
        "would give a difference as large (paired sign-flip test, not corrected for the number of metrics)."
    )
    body = table(
        columns, rows, names=["metric"], wide=["queries", "left out"], caption="Metrics of model and baseline"
    )
    return Section("metrics", "Metrics", reading, body)


def conventions_section(report: Report) -> Section:
    """Give the convention in words, and the headline under other presets."""
    one = report.conventions
    said = "\n".join(f"<li>{escape(sentence)}</li>" for sentence in one.sentences)
    rows = [preset_cells(row) for row in one.presets]
    columns = ("rules of", one.metric, "change", "what moves it")
    shown = table(
        columns,
        rows,
        names=["rules of"],
        text=["what moves it"],
        caption=f"{one.metric} by the rules of other tools",
    )
    reading = (
        f"Tools compute different numbers under one name; those of this page follow the convention "
        f"{one.name}. The table has {one.metric} of the same scores by the rules of other tools: numbers of "
        "different rows must not be compared."
    )
    return Section("conventions", "Conventions", reading, f"<ul>\n{said}\n</ul>\n{shown}")


def preset_cells(row: PresetRow) -> tuple[str, str, str, str]:
    """Give a line of the table of presets."""
    moved = "" if math.isnan(row.change) else f"{row.change:+.4f}"
    return escape(row.preset), number(row.value), moved, escape(row.reason)
