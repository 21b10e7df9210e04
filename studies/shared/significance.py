"""Methods compared on the same queries, in tables: the best is bold, a significantly worse one is marked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from concordant._internals import number

if TYPE_CHECKING:
    from concordant.evaluation import Comparison


def mark(*, significant: bool) -> str:
    """Return an arrow, or a letter if the encoding lacks it; a blank keeps the digits aligned."""
    if not significant:
        return " "
    return "↓" if Console().encoding.lower().startswith("utf") else "v"


def compared(comparison: Comparison) -> Text:
    """Format a mean: bold if it is the best, marked if it is significantly worse."""
    return Text(
        number(comparison.mean) + mark(significant=comparison.significant),
        style="bold" if comparison.best else "",
    )


def significance(comparisons: Iterable[Comparison], n_methods: int) -> str:
    """Explain the marks of a table."""
    who = (
        f"{mark(significant=True)} is"
        if any(comparison.significant for comparison in comparisons)
        else "no method is"
    )
    return (
        f"{who} significantly worse than the best of its column: two-sided paired t-test over queries "
        f"at 5 %, Holm's correction over the other {n_methods - 1} methods"
    )
