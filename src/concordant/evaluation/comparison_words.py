"""A comparison of rankers as text: three tables, and a few sentences for each pair."""

from __future__ import annotations

import math
from collections.abc import Sequence

from concordant.evaluation.comparison_result import Interval, ModelComparison, PairComparison

__all__ = [
    "as_text",
    "in_words",
    "legend",
    "pair_cells",
    "pair_columns",
    "percent",
    "span",
    "test_cells",
    "test_columns",
]


def as_text(result: ModelComparison) -> str:
    """Give the means, the pairs and their tests as three tables."""
    confidence = f"{percent(result.settings.confidence)} interval"
    models = [("model", "mean", confidence, "queries")] + [
        (one.model, decimals(one.mean), span(one.interval), f"{one.n_queries:,}") for one in result.models
    ]
    pairs = [pair_columns(result), *(pair_cells(pair) for pair in result.pairs)]
    tests = [test_columns(result), *(test_cells(pair, result) for pair in result.pairs)]
    return f"{aligned(models)}\n\n{aligned(pairs)}\n{legend(result)}\n\n{aligned(tests)}"


def pair_columns(result: ModelComparison) -> tuple[str, ...]:
    """Give the header of the pairs."""
    interval = f"{percent(result.settings.confidence)} interval"
    return ("pair", "difference", interval, "adjusted p", "won/tied/lost")


def pair_cells(pair: PairComparison) -> tuple[str, ...]:
    """Give what was found for a pair; what is significant has an asterisk."""
    return (
        f"{pair.model} - {pair.against}",
        decimals(pair.difference, signed=True),
        span(pair.interval, signed=True),
        probability(pair.adjusted) + ("*" if pair.significant else " "),
        f"{pair.wins}/{pair.ties}/{pair.losses}",
    )


def test_columns(result: ModelComparison) -> tuple[str, ...]:
    """Give the header of the tests, each of its pair alone, and of the sizes."""
    rank = ["p Wilcoxon"] * result.settings.wilcoxon
    return ("pair", "p t-test", "p random.", *rank, "effect", "detectable", "needed")


def test_cells(pair: PairComparison, result: ModelComparison) -> tuple[str, ...]:
    """Give the tests of a pair alone, its effect, and what these or more queries show."""
    rank = [probability(pair.wilcoxon)] * result.settings.wilcoxon
    return (
        f"{pair.model} - {pair.against}",
        probability(pair.t_test),
        probability(pair.permutation),
        *rank,
        decimals(pair.effect, signed=True, digits=2),
        decimals(pair.detectable),
        "-" if pair.queries_needed is None else f"{pair.queries_needed:,}",
    )


def legend(result: ModelComparison) -> str:
    """Say what the adjusted p-values and the asterisk mean."""
    how = (
        f"{result.settings.correction} over {len(result.pairs)} pairs"
        if len(result.pairs) > 1
        else "one pair"
    )
    return f"adjusted p: randomisation test, {how}; * below {result.settings.level:g}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Give rows of cells under one another: the first to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = (
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def decimals(value: float, *, signed: bool = False, digits: int = 4) -> str:
    """Give a number for a table, a dash where there is none.

    >>> decimals(0.5), decimals(0.5, signed=True), decimals(math.nan)
    ('0.5000', '+0.5000', '-')
    """
    return "-" if math.isnan(value) else f"{value:{'+' if signed else ''}.{digits}f}"


def span(interval: Interval, *, signed: bool = False) -> str:
    """Give an interval for a table, a dash where there is none.

    >>> span((-0.01, 0.02), signed=True)
    '-0.0100 to +0.0200'
    """
    low, high = interval
    return "-" if math.isnan(low) else f"{decimals(low, signed=signed)} to {decimals(high, signed=signed)}"


def probability(value: float) -> str:
    """Give a p-value for a table.

    >>> probability(0.04567), probability(0.00001), probability(math.nan)
    ('0.0457', '<0.0001', '-')
    """
    return "<0.0001" if value < 1e-4 else decimals(value)


def percent(share: float) -> str:
    """Give a share in words, to two digits that matter.

    >>> percent(0.95), percent(0.00123), percent(1.0)
    ('95 %', '0.12 %', '100 %')
    """
    return f"{100.0 * share:.2g} %" if share < 0.1 else f"{100.0 * share:.3g} %"


def in_words(pair: PairComparison, result: ModelComparison) -> str:
    """Give what was found for a pair in plain words."""
    if not pair.n_queries:
        return f"{pair.model} and {pair.against} have no query in common on which both are defined."
    parts = finding(pair, result), chance(pair, result), unnoticed(pair, result)
    return " ".join(part for part in parts if part)


def finding(pair: PairComparison, result: ModelComparison) -> str:
    """Say which is better, by how much, and how sure that is."""
    if pair.better is None:
        return f"{pair.model} and {pair.against} are equal on average."
    other = pair.against if pair.better == pair.model else pair.model
    what = "is better than" if pair.significant else "is ahead of"
    # The interval of how far the better one is ahead.
    low, high = pair.interval if pair.difference > 0.0 else (-pair.interval[1], -pair.interval[0])
    sure = "" if math.isnan(low) else f" ({percent(result.settings.confidence)} interval {span((low, high))})"
    return f"{pair.better} {what} {other} by {abs(pair.difference):.4f} on average{sure}."


def chance(pair: PairComparison, result: ModelComparison) -> str:
    """Say how easily chance alone would give such a difference."""
    if pair.better is None:
        return ""
    several = result.settings.correction != "none" and len(result.pairs) > 1
    after = f", {percent(pair.adjusted)} after correction for {len(result.pairs)} pairs" if several else ""
    level = percent(result.settings.level)
    verdict = f"significant at {level}" if pair.significant else f"not significant at {level}"
    return (
        f"If the two were equally good, chance alone would give a difference as large in "
        f"{percent(pair.permutation)} of samples of queries{after}: {verdict}."
    )


def unnoticed(pair: PairComparison, result: ModelComparison) -> str:
    """Say what difference these queries find reliably, and how many would find the one that was seen."""
    if math.isnan(pair.detectable):
        return ""
    power = percent(result.settings.power)
    told = (
        f"{pair.n_queries:,} queries of this spread find a true difference of {pair.detectable:.4f} with "
        f"probability {power}, and miss smaller ones more often"
    )
    if pair.significant or pair.queries_needed is None:
        return f"{told}."
    return f"{told}; one as large as the observed takes about {pair.queries_needed:,} queries."
