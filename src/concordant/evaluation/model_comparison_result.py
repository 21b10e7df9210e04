"""Result of a comparison of rankers: an entry for each ranker, one for each pair, and the settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from concordant._base.validate import check_flag, check_number, check_share
from concordant.evaluation.significance import CORRECTIONS, check_draws
from concordant.exceptions import UnknownNameError

Interval = tuple[float, float]
SHARES = {"level": 0.05, "confidence": 0.95, "power": 0.8}  # with an example of each


@dataclass(frozen=True)
class ModelMean:
    """Mean of one ranker over all queries where its metric is defined.

    Attributes
    ----------
    mean, interval
        Mean over those queries, and its bootstrap interval; NaN if there is none.
    n_queries
        Number of those queries.
    """

    model: str
    mean: float
    interval: Interval
    n_queries: int


@dataclass(frozen=True)
class PairComparison:
    """Comparison of two rankers on the queries where both are defined.

    Attributes
    ----------
    model, against
        Names of the rankers; every number describes `model` minus `against`.
    difference, interval
        Mean difference, and its bootstrap interval, for this pair alone; NaN if there is none.
    n_queries, n_left_out
        Queries used, and queries on which one of the two, or both, are undefined.
    t_test, permutation
        Two-sided p-values, as in `paired`.
    wilcoxon
        Two-sided p-value of the signed-rank test; NaN if it was not requested.
    adjusted
        p-value of the randomisation test after the correction for several pairs.
    significant
        True if `adjusted` is below the level.
    better
        The ranker that is better on average, significantly or not; None if they are equal.
    effect, effect_interval
        Hedges' g of the paired differences, and an interval for its true value, exact under normality.
    wins, ties, losses
        Numbers of queries on which `model` is better, equal, and worse.
    detectable
        True difference that a t-test of these queries and this spread detects with the given power, before
        any correction; NaN without spread. Smaller differences are missed more often.
    queries_needed
        Number of queries of this spread that would detect the observed difference with that power; None
        without difference or spread. A plan, not a result: the observed difference is itself uncertain.
    """

    model: str
    against: str
    difference: float
    interval: Interval
    n_queries: int
    n_left_out: int
    t_test: float
    permutation: float
    wilcoxon: float
    adjusted: float
    significant: bool
    better: str | None
    effect: float
    effect_interval: Interval
    wins: int
    ties: int
    losses: int
    detectable: float
    queries_needed: int | None


@dataclass(frozen=True)
class ComparisonSettings:
    """Settings of a comparison; the names are those of `compare`."""

    baseline: str | None
    level: float
    confidence: float
    correction: str
    n_flips: int
    n_boot: int
    power: float
    tie: float
    wilcoxon: bool
    seed: int
    greater_is_better: bool

    def __post_init__(self) -> None:
        check_number("tie", self.tie, least=0.0)
        if not isinstance(self.correction, str) or self.correction not in CORRECTIONS:
            raise UnknownNameError("correction", self.correction, CORRECTIONS)
        check_draws(self.seed, n_flips=self.n_flips, n_boot=self.n_boot)
        for name in ("wilcoxon", "greater_is_better"):
            check_flag(name, getattr(self, name))
        self.make_plain()

    def make_plain(self) -> None:
        """Convert numpy numbers to Python numbers, which can be written as JSON, and the baseline to text."""
        plain: dict[str, Any] = {
            name: check_share(name, getattr(self, name), example) for name, example in SHARES.items()
        }
        plain |= {name: int(getattr(self, name)) for name in ("n_flips", "n_boot", "seed")}
        plain |= {name: bool(getattr(self, name)) for name in ("wilcoxon", "greater_is_better")}
        plain |= {"tie": float(self.tie), "baseline": None if self.baseline is None else str(self.baseline)}
        for name, value in plain.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, repr=False)
class ModelComparison:
    """Result of `compare`; printed, it is three tables.

    Attributes
    ----------
    models, pairs
        One entry for each ranker, and for each pair that was compared.
    n_queries
        Number of queries, defined or not.
    settings
        Settings of the comparison.
    """

    models: tuple[ModelMean, ...]
    pairs: tuple[PairComparison, ...]
    n_queries: int
    settings: ComparisonSettings

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        return asdict(self)

    def sentences(self) -> list[str]:
        """Describe each pair in plain words."""
        return [_describe_pair(pair, self) for pair in self.pairs]

    def __repr__(self) -> str:

        return _format_tables(self)


# A comparison of rankers as text: three tables, and a few sentences for each pair.


def _format_tables(result: ModelComparison) -> str:
    confidence = f"{percent(result.settings.confidence)} interval"
    models = [("model", "mean", confidence, "queries")] + [
        (model.model, decimals(model.mean), span(model.interval), f"{model.n_queries:,}")
        for model in result.models
    ]
    pairs = [pair_columns(result), *(pair_cells(pair) for pair in result.pairs)]
    tests = [test_columns(result), *(test_cells(pair, result) for pair in result.pairs)]
    return f"{_align(models)}\n\n{_align(pairs)}\n{legend(result)}\n\n{_align(tests)}"


def pair_columns(result: ModelComparison) -> tuple[str, ...]:
    """Header of the table of pairs."""
    interval = f"{percent(result.settings.confidence)} interval"
    return ("pair", "difference", interval, "adjusted p", "won/tied/lost")


def pair_cells(pair: PairComparison) -> tuple[str, ...]:
    """Row of a pair; an asterisk marks significance."""
    return (
        f"{pair.model} - {pair.against}",
        decimals(pair.difference, signed=True),
        span(pair.interval, signed=True),
        probability(pair.adjusted) + ("*" if pair.significant else " "),
        f"{pair.wins}/{pair.ties}/{pair.losses}",
    )


def test_columns(result: ModelComparison) -> tuple[str, ...]:
    """Header of the table of tests, each of its pair alone, and of effect sizes."""
    rank = ["p Wilcoxon"] * result.settings.wilcoxon
    return ("pair", "p t-test", "p random.", *rank, "effect", "detectable", "needed")


def test_cells(pair: PairComparison, result: ModelComparison) -> tuple[str, ...]:
    """Row of the tests of a pair alone, its effect, and what these or more queries detect."""
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
    """Explain the adjusted p-values and the asterisk."""
    how = (
        f"{result.settings.correction} over {len(result.pairs)} pairs"
        if len(result.pairs) > 1
        else "one pair"
    )
    return f"adjusted p: randomisation test, {how}; * below {result.settings.level:g}"


def _align(rows: Sequence[Sequence[str]]) -> str:
    """Align rows of cells: the first column to the left, numbers to the right."""
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
    """Format a number for a table, NaN as a dash.

    >>> decimals(0.5), decimals(0.5, signed=True), decimals(math.nan)
    ('0.5000', '+0.5000', '-')
    """
    return "-" if math.isnan(value) else f"{value:{'+' if signed else ''}.{digits}f}"


def span(interval: Interval, *, signed: bool = False) -> str:
    """Format an interval for a table, NaN as a dash.

    >>> span((-0.01, 0.02), signed=True)
    '-0.0100 to +0.0200'
    """
    low, high = interval
    return "-" if math.isnan(low) else f"{decimals(low, signed=signed)} to {decimals(high, signed=signed)}"


def probability(value: float) -> str:
    """Format a p-value for a table.

    >>> probability(0.04567), probability(0.00001), probability(math.nan)
    ('0.0457', '<0.0001', '-')
    """
    return "<0.0001" if value < 1e-4 else decimals(value)


def percent(share: float) -> str:
    """Format a share as a percentage with two significant digits.

    >>> percent(0.95), percent(0.00123), percent(1.0)
    ('95 %', '0.12 %', '100 %')
    """
    return f"{100.0 * share:.2g} %" if share < 0.1 else f"{100.0 * share:.3g} %"


def _describe_pair(pair: PairComparison, result: ModelComparison) -> str:
    if not pair.n_queries:
        return f"{pair.model} and {pair.against} have no query in common on which both are defined."
    parts = _describe_difference(pair, result), _describe_chance(pair, result), _describe_power(pair, result)
    return " ".join(part for part in parts if part)


def _describe_difference(pair: PairComparison, result: ModelComparison) -> str:
    if pair.better is None:
        return f"{pair.model} and {pair.against} are equal on average."
    other = pair.against if pair.better == pair.model else pair.model
    what = "is better than" if pair.significant else "is ahead of"
    # Interval of the lead of the better model.
    low, high = pair.interval if pair.difference > 0.0 else (-pair.interval[1], -pair.interval[0])
    sure = "" if math.isnan(low) else f" ({percent(result.settings.confidence)} interval {span((low, high))})"
    return f"{pair.better} {what} {other} by {abs(pair.difference):.4f} on average{sure}."


def _describe_chance(pair: PairComparison, result: ModelComparison) -> str:
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


def _describe_power(pair: PairComparison, result: ModelComparison) -> str:
    """Describe the difference that these queries detect, and how many would detect the observed one."""
    if math.isnan(pair.detectable):
        return ""
    power = percent(result.settings.power)
    sentence = (
        f"{pair.n_queries:,} queries of this spread find a true difference of {pair.detectable:.4f} with "
        f"probability {power}, and miss smaller ones more often"
    )
    if pair.significant or pair.queries_needed is None:
        return f"{sentence}."
    return f"{sentence}; one as large as the observed takes about {pair.queries_needed:,} queries."
