"""A section of the page, and how numbers are written there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from concordant.evaluation.report.page import table
from concordant.evaluation.report.pieces import Estimate

__all__ = ["Section", "between", "cell", "none", "number", "numbers", "p_value", "plural", "spoken"]


@dataclass(frozen=True)
class Section:
    """A heading, how to read what follows (plain text), HTML, and its plots by id."""

    name: str
    heading: str
    reading: str
    body: str
    figures: dict[str, Any] = field(default_factory=dict)

    def html(self) -> str:
        """Give the section."""
        return (
            f'<section id="{self.name}" aria-labelledby="{self.name}-h">\n'
            f'<h2 id="{self.name}-h">{escape(self.heading)}</h2>\n'
            f'<p class="dim">{escape(self.reading)}</p>\n{self.body}\n</section>'
        )


def numbers(columns: Sequence[str], rows: Sequence[Sequence[str]], *, text: Sequence[str] = ()) -> str:
    """Give the numbers of a plot, to be opened: for those who cannot see it, or have no JavaScript."""
    inner = table(columns, rows, text=text, caption="Numbers of the plot")
    return f"<details><summary>Numbers</summary>\n{inner}</details>"


def none(text: str) -> str:
    """Say that there is nothing to show, and why."""
    return f"<p>{escape(text)}</p>"


def cell(one: Estimate, *, signed: bool = False, kind: str = "") -> str:
    """Give a value, its interval below it; `kind` is a class of the style."""
    value = "-" if math.isnan(one.value) else f"{one.value:+.4f}" if signed else f"{one.value:.4f}"
    value = f'<span class="{kind}">{value}</span>' if kind else value
    ends = spoken(one.low, one.high, 4).replace(" to", "&nbsp;to")  # of two lines, no third
    return f"{value}<small>{ends}</small>" if ends else value


def between(one: Estimate) -> str:
    """Give an interval in brackets, or nothing."""
    ends = spoken(one.low, one.high, 4)
    return f" ({ends})" if ends else ""


def spoken(low: float, high: float, digits: int) -> str:
    """Give an interval in words; nothing where there is none."""
    return "" if math.isnan(low) or math.isnan(high) else f"{low:.{digits}f} to {high:.{digits}f}"


def number(value: float) -> str:
    """Give a value to four digits, or a dash."""
    return "-" if math.isnan(value) else f"{value:.4f}"


def p_value(value: float) -> str:
    """Give a p-value.

    >>> p_value(0.00001), p_value(0.25)
    ('< 0.001', '0.250')
    """
    return "-" if math.isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3f}"


def plural(count: int, one: str, many: str) -> str:
    """Give a count with its noun."""
    return f"{count:,} {one if count == 1 else many}"
