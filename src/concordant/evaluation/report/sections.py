"""The page of a report: a section a part, each with a sentence that says how to read it."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from concordant.evaluation.report.headline_sections import (
    conventions_section,
    judged_section,
    metrics_section,
    summary,
)
from concordant.evaluation.report.model_sections import (
    calibration_section,
    certificate_section,
    learning_section,
    weights_section,
)
from concordant.evaluation.report.page import page
from concordant.evaluation.report.pieces import Judged
from concordant.evaluation.report.query_sections import (
    counts_section,
    distribution_section,
    gains_section,
    worst_section,
)
from concordant.evaluation.report.section import Section

if TYPE_CHECKING:
    from concordant.evaluation.report.document import Report

__all__ = ["report_page"]


def report_page(report: Report) -> str:
    """Give the page."""
    parts = list(sections(report))
    links = "\n".join(f'<li><a href="#{one.name}">{escape(one.heading)}</a></li>' for one in parts)
    head = f"<header>\n<h1>{escape(report.title)}</h1>\n{summary(report)}\n</header>"
    nav = f'<nav aria-label="Contents">\n<ul>\n{links}\n</ul>\n</nav>'
    body = "\n".join([head, nav, "<main>", *(one.html() for one in parts), "</main>", footer(report.judged)])
    return page(report.title, body, {name: drawn for one in parts for name, drawn in one.figures.items()})


def sections(report: Report) -> Iterator[Section]:
    """Give the sections in their order."""
    yield judged_section(report)
    yield metrics_section(report)
    yield conventions_section(report)
    yield distribution_section(report)
    yield gains_section(report)
    yield learning_section(report)
    yield calibration_section(report)
    yield certificate_section(report)
    yield weights_section(report)
    yield worst_section(report)
    yield counts_section(report.counts, report.conventions.metric)


def footer(judged: Judged) -> str:
    """Give who made the page."""
    when = f", {escape(judged.date)}" if judged.date else ""
    return f'<footer><p class="dim">Made by concordant {escape(judged.version)}{when}.</p></footer>'
