"""Metrics of pairs: pairwise disagreement and AUC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from concordant._base.segments import segment_reduce, segment_sum
from concordant.data.labels import Grades, Preferences
from concordant.data.queries import Queries
from concordant.exceptions import LabelError, NoStandardizationError, ParameterError
from concordant.metrics.additive import usable_gains
from concordant.metrics.convention import BINARY, EXP2, LINEAR, gains
from concordant.metrics.graded import (
    GradedMetric,
    KernelRows,
    KernelValues,
    cutoff,
    divide_by_query,
    run_metric,
)
from concordant.metrics.graphs import by_family, raised_net_weights
from concordant.metrics.metric import TWO_GRADES, Family, Standardization
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray, OrderLoss

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, repr=False)
class Discordance(GradedMetric):
    """Weight of the preferred items below less preferred items; half of it under a tied score."""

    weighted: ClassVar[bool] = False  # by the difference of the gains
    compares_pairs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.k is not None:
            raise ParameterError.because(
                f"{self.name} has no cutoff, got k={self.k}. It reads every pair of the list."
            )

    def gain(self) -> tuple[int, float]:
        """Return the kind of gain whose order decides which pairs count, and its parameter."""
        return LINEAR, 0.0

    def linear_discounts(self, n_items: int, space: str) -> FloatArray | None:
        """Return n - k: each pair with i above j pays r_i - r_j, where the metric has a standardization r."""
        return np.arange(n_items - 1.0, -1.0, -1.0) if self.standardized_on(space) else None

    def discordance(self, rows: KernelRows) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Weight of the misordered pairs, weight of all pairs, and whether ties matter."""
        from concordant.metrics.value_kernels import discordance_chunk

        k = cutoff(None, rows.offsets)  # every place counts
        return run_metric(discordance_chunk, rows, k, *self.gain(), self.weighted)

    def measure(self, rows: KernelRows) -> KernelValues:
        """Discordance; undefined where no pair has different grades."""
        wrong, pairs, tied = self.discordance(rows)
        return KernelValues(wrong, pairs > 0, tied)

    def order_loss(self, y: ArrayLike, sizes: IntArray) -> OrderLoss:
        """Return differences of the standardized labels, which are the weights of pairs."""
        labels = self.read_labels(y)
        if not isinstance(labels, Grades):
            raise LabelError("the loss of an order needs grades, not preferences", "pass one grade per row.")
        try:
            weights = self.standardize(labels, Queries.from_sizes(sizes))
        except NoStandardizationError as error:
            problem = (
                f"the worst order for {self} on three or more grades is hard to find (a feedback arc set)"
            )
            raise LabelError(problem, "use wpd, or at most two grades in each query.") from error
        return OrderLoss("pairs", weights, np.empty(0))


@dataclass(frozen=True, repr=False)
class PD(Discordance):
    """Pairwise disagreement, a loss: the weight of the preferences that the ranking violates.

    On `Preferences` it sums their weights; on grades every pair with y_i > y_j weighs 1. A tie counts half.

    Examples
    --------
    >>> PD()([2, 1, 0], [0.1, 0.5, 0.3])
    pd = 2 over 1 of 1 queries
    >>> PD()(Preferences(better=[0, 2], worse=[1, 1], weights=[3.0, 1.0], n_rows=3), [0.1, 0.5, 0.5])
    pd = 3.5 over 1 of 1 queries
    """

    name: ClassVar[str] = "pd"
    bounded: ClassVar[bool] = False
    label_spaces: ClassVar[tuple[str, ...]] = ("preferences", "binary", "grades")
    convention_fields: ClassVar[tuple[str, ...]] = ("ties", "empty")
    greater_is_better: ClassVar[bool] = False
    joint_targets: ClassVar[bool] = (
        True  # with three grades in any query, all queries are trained on the grades
    )

    def read_labels(self, y: ArrayLike) -> Grades | Preferences:  # type: ignore[override]
        """Check grades; return preferences unchanged."""
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
        """Return the share of a preference between tied rows that counts as violated."""
        rule = self.convention.ties
        if rule in ("expected", "worst", "best"):
            return {"expected": 0.5, "worst": 1.0, "best": 0.0}[rule]
        positions = self.tie_places(queries, docid)
        return (positions[better] > positions[worse]).astype(np.float64)

    def standardize(self, labels: Any, queries: Queries) -> FloatArray:
        """Return 1 for the higher grade of each query, if it has at most two."""
        if isinstance(labels, Preferences):
            instead = 'use the exact pair surrogate, which scores pairs of items: PairRanker("pd").'
            raise self.unstandardized(labels, "majority preferences may form a cycle", instead)
        grades = queries.gather(labels.values)
        lowest, highest = _row_ends(grades, queries)
        if ((grades > lowest) & (grades < highest)).any():
            problem = "on three or more grades Condorcet cycles refute every one"
            instead = "use wpd (pairs weigh the difference of the gains), two grades, Preferences, "
            instead += 'or PairRanker("pd").'
            raise self.unstandardized(labels, problem, instead)
        return (grades > lowest).astype(np.float64)

    def standardized_on(self, space: str) -> bool:
        """Return True for two grades; more, and preferences, allow Condorcet cycles."""
        return space == "binary"

    def conditional(self, labels: Any, f: Family | None = None) -> Mapping[str, Standardization]:
        """Return, for preferences, net weights under low noise, and any family f under P_f."""
        if isinstance(labels, Grades):
            return {}
        return {"low_noise": raised_net_weights, "P_f": partial(by_family, f=f)}

    def stand_in(self, labels: Grades, queries: Queries) -> FloatArray:
        """Return the grades."""
        return _where_mixed(queries.gather(labels.values), queries)


def _where_mixed(values: FloatArray, queries: Queries) -> FloatArray:
    """Return the values of queries with two or more different values; 0 elsewhere: no pair counts there."""
    lowest, highest = _row_ends(values, queries)
    return np.where(lowest < highest, values, 0.0)


def _row_ends(values: FloatArray, queries: Queries) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest value of each row's query."""
    ends = (segment_reduce(end, values, queries.offsets) for end in (np.minimum, np.maximum))
    lowest, highest = (np.repeat(end, queries.sizes) for end in ends)
    return lowest, highest


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
    label_spaces: ClassVar[tuple[str, ...]] = ("grades", "binary", "preferences")
    convention_fields: ClassVar[tuple[str, ...]] = ("gain", "ties", "empty")
    weighted: ClassVar[bool] = True
    joint_targets: ClassVar[bool] = False

    def gain(self) -> tuple[int, float]:
        """Return the convention's gain."""
        return (EXP2 if self.convention.gain == "exp2" else LINEAR), 0.0

    def usable(self, labels: Grades) -> Grades:
        """Apply a user's gain function; raise for grades whose 2^grade overflows."""
        return usable_gains(self, labels)

    def standardize(self, labels: Any, queries: Queries) -> FloatArray:
        """Return the gains: a[i,j] - a[j,i] is their difference."""
        if isinstance(labels, Preferences):
            return super().standardize(labels, queries)
        return _where_mixed(gains(*self.gain(), queries.gather(self.usable(labels).values)), queries)

    def standardized_on(self, space: str) -> bool:
        """Return True for grades, whose pairs weigh the difference of the gains."""
        return space != "preferences"


@dataclass(frozen=True, repr=False)
class AUC(Discordance):
    """Share of the pairs (relevant, irrelevant) in the right order, per query; a tied score counts half.

    Examples
    --------
    >>> AUC()([1, 0, 1], [0.9, 0.8, 0.8])
    auc = 0.75 over 1 of 1 queries
    """

    name: ClassVar[str] = "auc"
    label_spaces: ClassVar[tuple[str, ...]] = TWO_GRADES
    convention_fields: ClassVar[tuple[str, ...]] = ("ties", "empty", "relevant_from")
    normalised: ClassVar[bool] = True

    def gain(self) -> tuple[int, float]:
        """Return the gain: 1 if relevant, else 0."""
        return BINARY, float(self.convention.relevant_from)

    def measure(self, rows: KernelRows) -> KernelValues:
        """1 - discordance / pairs."""
        wrong, pairs, tied = self.discordance(rows)
        return KernelValues(1.0 - wrong / np.maximum(pairs, 1.0), pairs > 0, tied)

    def standardize(self, labels: Grades, queries: Queries) -> FloatArray:
        """Relevance over the number of pairs of the query."""
        relevant = self.relevance(labels, queries)
        positive = segment_sum(relevant, queries.offsets)
        return divide_by_query(relevant, positive * (queries.sizes - positive), queries)

    def standardized_on(self, space: str) -> bool:
        """Return True: the value is linear in the shares of pairs."""
        del space
        return True
