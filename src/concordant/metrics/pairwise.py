"""Metrics of pairs and of whole orders: pairwise disagreement, AUC, zero-one loss on permutations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from concordant._segments import segment_reduce, segment_sum
from concordant.exceptions import LabelError, NoStandardizationError, ParameterError
from concordant.metrics.additive import usable_gains
from concordant.metrics.driver import cutoff, run_metric
from concordant.metrics.gains import BINARY, EXP2, LINEAR
from concordant.metrics.metric import GradedMetric, Measured, Metric, Rows
from concordant.supervision.labels import Grades, Permutations, Preferences
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AUC", "PD", "WPD", "ZeroOne"]


@dataclass(frozen=True, repr=False)
class Discordance(GradedMetric):
    """Weight of the preferred items that stand below less preferred ones; half of it under a tied score."""

    weighted: ClassVar[bool] = False  # by the difference of the gains

    def __post_init__(self) -> None:
        if self.k is not None:
            raise ParameterError("k", self.k, f"left out: {self.name} reads every pair of the list")

    def gain(self) -> tuple[int, float]:
        """Kind of gain whose order decides which pairs count, and its parameter."""
        return LINEAR, 0.0

    def discordance(self, rows: Rows) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Weight of the pairs that stand wrong, and of all pairs; and ties."""
        from concordant.metrics.kernels.discordance import discordance_chunk

        k = cutoff(None, rows.offsets)  # every place counts
        return run_metric(discordance_chunk, rows, k, *self.gain(), self.weighted)

    def measure(self, rows: Rows) -> Measured:
        """Undefined where no pair has different grades."""
        wrong, pairs, tied = self.discordance(rows)
        return Measured(wrong, pairs > 0, tied)


@dataclass(frozen=True, repr=False)
class PD(Discordance):
    """Pairwise disagreement, a loss: what is paid for preferences that the ranking violates.

    On `Preferences` it sums their weights; on grades every pair with y_i > y_j weighs 1. A tie pays half.

    Examples
    --------
    >>> PD()([2, 1, 0], [0.1, 0.5, 0.3])
    pd = 2 over 1 of 1 queries
    >>> PD()(Preferences(better=[0, 2], worse=[1, 1], weights=[3.0, 1.0], n_rows=3), [0.1, 0.5, 0.5])
    pd = 3.5 over 1 of 1 queries
    """

    name: ClassVar[str] = "pd"
    greater_is_better: ClassVar[bool] = False

    def read_labels(self, y: ArrayLike) -> Grades | Preferences:  # type: ignore[override]
        """Preferences as they are, or grades."""
        return y if isinstance(y, Preferences) else super().read_labels(y)

    def evaluate(
        self, labels: Any, scores: FloatArray, queries: Queries, docid: NDArray[Any] | None
    ) -> tuple[FloatArray, BoolArray]:
        """Sum over preferences, or over pairs of grades."""
        if isinstance(labels, Grades):
            return super().evaluate(labels, scores, queries, docid)
        better, worse, weights, offsets = labels.grouped(queries)
        keys = queries.gather(scores)
        tied = self.tied_below(better, worse, queries, docid)
        below = np.where(keys[better] == keys[worse], tied, keys[better] < keys[worse])
        return segment_sum(weights * below, offsets), segment_sum(weights, offsets) > 0

    def tied_below(
        self, better: IntArray, worse: IntArray, queries: Queries, docid: NDArray[Any] | None
    ) -> FloatArray | float:
        """How much a preference between tied rows counts as violated."""
        rule = self.convention.ties
        if rule in ("expected", "worst", "best"):
            return {"expected": 0.5, "worst": 1.0, "best": 0.0}[rule]
        place = tie_places(self, queries, docid)
        return (place[better] > place[worse]).astype(np.float64)

    def standardize(self, labels: Any, queries: Queries) -> FloatArray:
        """The grades themselves, if there are at most two in each query."""
        if isinstance(labels, Preferences):
            hint = "under low noise the row sums of the weights are one."
            raise NoStandardizationError(str(self), "majority preferences may form a cycle", hint)
        grades = queries.gather(labels.values)
        order = np.lexsort((grades, queries.codes))
        changes = (np.diff(grades[order]) != 0) & (np.diff(queries.codes) == 0)
        steps = np.bincount(queries.codes[1:][changes], minlength=queries.n_queries)
        if (steps > 1).any():
            hint = "use wpd (gain differences), or two grades per query."
            problem = "on three or more grades Condorcet cycles refute every one"
            raise NoStandardizationError(str(self), problem, hint)
        lowest = segment_reduce(np.minimum, grades, queries.offsets)
        return (grades > np.repeat(lowest, queries.sizes)).astype(np.float64)


def tie_places(metric: Metric, queries: Queries, docid: NDArray[Any] | None) -> IntArray:
    """Place of each sorted row in the order in which ties are broken."""
    return np.argsort(np.lexsort((metric.tie_key(queries.order, docid), queries.codes)))


@dataclass(frozen=True, repr=False)
class WPD(PD):
    """Pairwise disagreement weighted by gain differences: a pair of grades weighs gain(y_i) - gain(y_j).

    On `Preferences` it is the same as `pd`: their weights are used.

    Examples
    --------
    >>> WPD()([2, 1, 0], [0.1, 0.5, 0.3])
    wpd = 5 over 1 of 1 queries
    """

    name: ClassVar[str] = "wpd"
    weighted: ClassVar[bool] = True

    def gain(self) -> tuple[int, float]:
        """The convention's gain."""
        return (EXP2 if self.convention.gain == "exp2" else LINEAR), 0.0

    def usable(self, labels: Grades) -> Grades:
        """Apply a user's gain; refuse grades whose 2^grade overflows."""
        return usable_gains(self, labels)

    def standardize(self, labels: Any, queries: Queries) -> FloatArray:
        """The gains: a[i,j] - a[j,i] is their difference."""
        if isinstance(labels, Preferences):
            return super().standardize(labels, queries)
        grades = queries.gather(self.usable(labels).values)
        lowest = segment_reduce(np.minimum, grades, queries.offsets)
        highest = segment_reduce(np.maximum, grades, queries.offsets)
        gains = np.exp2(grades) - 1.0 if self.gain()[0] == EXP2 else grades
        return np.where(np.repeat(lowest < highest, queries.sizes), gains, 0.0)


@dataclass(frozen=True, repr=False)
class AUC(Discordance):
    """Share of the pairs (relevant, irrelevant) in the right order, per query; a tied score counts half.

    Examples
    --------
    >>> AUC()([1, 0, 1], [0.9, 0.8, 0.8])
    auc = 0.75 over 1 of 1 queries
    """

    name: ClassVar[str] = "auc"
    normalised: ClassVar[bool] = True

    def gain(self) -> tuple[int, float]:
        """Relevant or not."""
        return BINARY, float(self.convention.relevant_from)

    def measure(self, rows: Rows) -> Measured:
        """1 - discordance / pairs."""
        wrong, pairs, tied = self.discordance(rows)
        return Measured(1.0 - wrong / np.maximum(pairs, 1.0), pairs > 0, tied)

    def standardize(self, labels: Grades, queries: Queries) -> FloatArray:
        """Relevance over the number of pairs of the query."""
        relevant = (queries.gather(labels.values) >= self.convention.relevant_from).astype(np.float64)
        positive = segment_sum(relevant, queries.offsets)
        pairs = positive * (queries.sizes - positive)
        scale: FloatArray = np.divide(1.0, pairs, out=np.zeros_like(pairs), where=pairs > 0)
        return relevant * np.repeat(scale, queries.sizes)


@dataclass(frozen=True, repr=False)
class ZeroOne(Metric):
    """Zero-one loss on permutations: 1 unless the scores give exactly the observed order.

    Tied scores: the share of compatible orders that differ from the observed one.

    Examples
    --------
    >>> ZeroOne()(Permutations([1, 2, 3]), [0.9, 0.5, 0.5])
    zero_one = 0.5 over 1 of 1 queries
    """

    name: ClassVar[str] = "zero_one"
    greater_is_better: ClassVar[bool] = False

    def read_labels(self, y: ArrayLike) -> Permutations:
        """Permutations only: grades have no single order."""
        if not isinstance(y, Permutations):
            hint = "wrap positions (1 is best): Permutations(positions)."
            raise LabelError(f"zero_one reads Permutations, not {type(y).__name__}", hint)
        return y

    def evaluate(
        self, labels: Permutations, scores: FloatArray, queries: Queries, docid: NDArray[Any] | None
    ) -> tuple[FloatArray, BoolArray]:
        """1 - probability of the observed order, which a score that rises along it makes impossible."""
        codes, rule = queries.codes, self.convention.ties
        observed = np.lexsort((labels.grouped(queries), codes))
        ordered = queries.gather(scores)[observed]
        rises, same = ordered[1:] > ordered[:-1], ordered[1:] == ordered[:-1]  # -inf equals -inf
        if rule in ("expected", "worst", "best"):
            keeps = np.full(len(same), rule != "worst")
        else:
            keeps = np.diff(tie_places(self, queries, docid)[observed]) > 0
        within = np.diff(codes) == 0
        lost = within & (rises | (same & ~keeps))
        wrong = np.bincount(codes[1:][lost], minlength=queries.n_queries) > 0
        chance = tie_chance(within & same, queries) if rule == "expected" else 1.0
        return np.where(wrong, 1.0, 1.0 - chance), queries.sizes > 0


def tie_chance(tied: BoolArray, queries: Queries) -> FloatArray:
    """Probability, per query, that random tie-breaking gives one certain order: 1/size! over the blocks.

    `tied[i]` says that sorted rows i and i + 1 are tied.
    """
    from scipy.special import gammaln

    starts = np.flatnonzero(np.r_[True, ~tied][: queries.n_rows])
    sizes = np.diff(np.r_[starts, queries.n_rows])
    logs = np.bincount(queries.codes[starts], weights=gammaln(sizes + 1.0), minlength=queries.n_queries)
    return np.exp(-logs)
