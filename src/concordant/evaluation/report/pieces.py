"""The parts of a report, as plain values: whatever the page shows stands here first."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "Bin",
    "Calibration",
    "Certified",
    "Conventions",
    "Counts",
    "Curve",
    "Distribution",
    "Estimate",
    "Gains",
    "Judged",
    "Learning",
    "MetricRow",
    "PresetRow",
    "RankedRow",
    "Weights",
    "WorstQuery",
]


@dataclass(frozen=True)
class Estimate:
    """A mean over queries, and the ends of its bootstrap interval; NaN where there is none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Judged:
    """What was judged, and by what.

    Attributes
    ----------
    model, baseline
        Their names.
    against
        What the baseline is, in a sentence.
    n_rows, n_queries, n_features
        Size of the data; no number of features where only scores were given.
    shortest, median, longest
        Rows of a query.
    grades
        How many rows have each grade, lowest first; those beyond the tenth are left out.
    fingerprint, date
        As the caller gave them; empty: not given.
    version
        Of the library.
    """

    model: str
    baseline: str
    against: str
    n_rows: int
    n_queries: int
    n_features: int | None
    shortest: int
    median: float
    longest: int
    grades: tuple[tuple[float, int], ...]
    fingerprint: str
    date: str
    version: str


@dataclass(frozen=True)
class MetricRow:
    """A metric of model and baseline; `difference` is model less baseline, on queries where both count.

    `p_value` is that of the paired sign-flip test, two-sided.
    """

    metric: str
    greater_is_better: bool
    model: Estimate
    baseline: Estimate
    difference: Estimate
    p_value: float
    n_counted: int
    n_skipped: int


@dataclass(frozen=True)
class PresetRow:
    """The headline number as another tool would compute it; `reason`: which of its rules move it."""

    preset: str
    value: float
    change: float
    reason: str


@dataclass(frozen=True)
class Conventions:
    """What the metrics' names leave open, in words, and what else the headline number could be."""

    name: str
    sentences: tuple[str, ...]
    metric: str
    presets: tuple[PresetRow, ...]


@dataclass(frozen=True)
class Distribution:
    """How many queries have a value between edges `i` and `i + 1`; and the five quarters of the model's."""

    metric: str
    edges: tuple[float, ...]
    model: tuple[int, ...]
    baseline: tuple[int, ...]
    quartiles: tuple[float, ...]


@dataclass(frozen=True)
class Gains:
    """What the model gains over the baseline, query by query, the largest gain first.

    A gain is positive where the model is better, whether the metric grows or falls. `differences` and `qid`
    are those shown: all `n_queries`, or evenly spaced ones where they are many.
    """

    metric: str
    differences: tuple[float, ...]
    qid: tuple[str, ...]
    n_queries: int
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class Curve:
    """A line: y against x; `low` and `high` are the ends of intervals, or empty."""

    name: str
    x_name: str
    y_name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    log_x: bool = False


@dataclass(frozen=True)
class Learning:
    """How the model came about: curves, if any, and a sentence."""

    curves: tuple[Curve, ...]
    about: str


@dataclass(frozen=True)
class Bin:
    """Rows of neighbouring scores: their mean score and mean grade, with an interval for the latter."""

    lowest: float
    highest: float
    score: float
    grade: float
    low: float
    high: float
    n_rows: int


@dataclass(frozen=True)
class Calibration:
    """Mean grade by score; `n_left_out` rows are not in the ranking."""

    bins: tuple[Bin, ...]
    n_left_out: int


@dataclass(frozen=True)
class Certified:
    """What is guaranteed of the model, in words; `vacuous`: the bound says nothing (None: there is none)."""

    status: str
    plain: str
    guaranteed: str
    limits: str
    fitted: str
    regret: str
    risk: str
    vacuous: bool | None


@dataclass(frozen=True)
class Weights:
    """What features count for, the largest first; `n_features` is how many there are in all.

    `kind`: weights, importances (shares in the gains of trees), foreign (as another library counts them),
    drops (what the headline loses where a feature is shuffled within queries), or none: `about` says why.
    """

    kind: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    n_features: int
    about: str = ""


@dataclass(frozen=True)
class RankedRow:
    """A row in its query: place, id, grade and score; `tied`: its score is another row's, too.

    `baseline_place` is None where the baseline has no order of the same rows.
    """

    place: int
    docid: str
    grade: float
    score: float
    tied: bool
    baseline_place: int | None


@dataclass(frozen=True)
class WorstQuery:
    """A query of low value, the head of its ranking, and up to five rows that belonged into it."""

    qid: str
    value: float
    baseline: float
    n_rows: int
    rows: tuple[RankedRow, ...]


@dataclass(frozen=True)
class Counts:
    """What could make a number mean less than it seems to.

    Attributes
    ----------
    n_tied_queries, n_tied_pairs, n_pairs
        Queries with equal scores; pairs of rows of one query with equal scores; all such pairs.
    n_decided_ties
        Tied pairs whose grades differ: those that the tie rule decides.
    n_without_rows, n_one_row, n_nothing_relevant, n_same_grade
        Queries without rows, with one, with no grade above 0, and with all grades equal.
    n_skipped
        Queries that the headline metric leaves out.
    n_not_ranked
        Rows that are not in the ranking (score -inf).
    noticed
        What the caller noticed when reading, as sentences: documents without a judgement, and so on.
    """

    n_tied_queries: int
    n_tied_pairs: int
    n_pairs: int
    n_decided_ties: int
    n_without_rows: int
    n_one_row: int
    n_nothing_relevant: int
    n_same_grade: int
    n_skipped: int
    n_not_ranked: int
    noticed: tuple[str, ...] = ()
