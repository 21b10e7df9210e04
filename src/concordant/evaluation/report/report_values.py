"""Parts of a report, as plain values: the page shows nothing else."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A mean over queries, and the ends of its bootstrap interval; NaN where there is none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class JudgedData:
    """The data, the model and the baseline.

    Attributes
    ----------
    model, baseline
        Names of model and baseline.
    against
        Description of the baseline, in a sentence.
    n_rows, n_queries, n_features
        Size of the data; n_features is None if there are only scores.
    shortest, median, longest
        Rows per query.
    grades
        Number of rows with each grade, lowest first; grades beyond the tenth are left out.
    fingerprint, date
        As passed by the caller, or empty.
    version
        Version of the library.
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

    `p_value`: paired sign-flip test, two-sided.
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
    """The headline number under the rules of another tool; `reason`: which of its rules change it."""

    preset: str
    value: float
    change: float
    reason: str


@dataclass(frozen=True)
class Conventions:
    """The convention in words, and the headline number under other conventions."""

    name: str
    sentences: tuple[str, ...]
    metric: str
    presets: tuple[PresetRow, ...]


@dataclass(frozen=True)
class Distribution:
    """Number of queries with a value between edges `i` and `i + 1`; and the quartiles for the model."""

    metric: str
    edges: tuple[float, ...]
    model: tuple[int, ...]
    baseline: tuple[int, ...]
    quartiles: tuple[float, ...]


@dataclass(frozen=True)
class Gains:
    """Gains of the model over the baseline, query by query, the largest gain first.

    A gain is positive if the model is better, whether large or small values of the metric are good.
    `differences` and `qid` are those of the queries shown: all `n_queries`, or evenly spaced ones if many.
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
    """Training of the model: curves, if any, and a sentence."""

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
class GradeByScore:
    """Mean grade by score; `n_left_out` rows are not in the ranking."""

    bins: tuple[Bin, ...]
    n_left_out: int


@dataclass(frozen=True)
class CertificateSummary:
    """Guarantees of the model, in words; `caution` says if the model ranks badly all the same."""

    status: str
    plain: str
    caution: str
    guaranteed: str
    limits: str
    fitted: str
    regret: str


@dataclass(frozen=True)
class FeatureWeights:
    """Importance of the features, the largest first; `n_features` counts all features.

    `kind`: weights, importances (shares in the gains of trees), foreign (as another library counts them),
    drops (loss of the headline metric if a feature is shuffled within queries), or none: `about` says why.
    """

    kind: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    n_features: int
    about: str = ""


@dataclass(frozen=True)
class RankedRow:
    """A row in its query: rank, id, grade and score; `tied`: another row has the same score.

    `baseline_rank` is None if the baseline has no order of the same rows.
    """

    rank: int
    docid: str
    grade: float
    score: float
    tied: bool
    baseline_rank: int | None


@dataclass(frozen=True)
class WorstQuery:
    """A query of low value, the head of its ranking, and up to five rows that the head misses."""

    qid: str
    value: float
    baseline: float
    n_rows: int
    rows: tuple[RankedRow, ...]


@dataclass(frozen=True)
class Caveats:
    """Counts of ties and degenerate queries, which weaken the meaning of a number.

    Attributes
    ----------
    n_tied_queries, n_tied_pairs, n_pairs
        Queries with equal scores; pairs of rows of one query with equal scores; all such pairs.
    n_decided_ties
        Tied pairs whose grades differ: the tie rule decides them.
    n_without_rows, n_one_row, n_nothing_relevant, n_same_grade
        Queries without rows, with a single row, with no grade above 0, and with all grades equal.
    n_skipped
        Queries that the headline metric leaves out.
    n_not_ranked
        Rows that are not in the ranking (score -inf).
    noticed
        Remarks of the caller on the data, as sentences: documents without a judgement, and so on.
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
