"""Metrics of pairs with ties: zero-one error, and the ROC curve over the threshold.

A comparison is scored by `decision = r(right) - r(left)`; the prediction is its sign where it exceeds the
threshold in size, else 0 (no difference).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from concordant._base.segments import segment_sum
from concordant._base.validate import (
    check_choice,
    check_column,
    check_lengths,
    check_number,
    refuse,
    refuse_misaligned,
)
from concordant.data.labels import Comparisons, check_outcome
from concordant.data.queries import Queries
from concordant.exceptions import LabelError, ParameterError
from concordant.metrics.metric import Metric
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

INVERSIONS = ("error", "ignored")  # how a pair predicted the wrong way round counts


def check_outcomes(y: ArrayLike) -> IntArray:
    """Check that there is one outcome in {-1, 0, 1} per pair."""
    if isinstance(y, Comparisons):
        return y.outcome  # type: ignore[no-any-return]
    return check_outcome(y, "y")


def check_decisions(y: ArrayLike, decision: ArrayLike, name: str = "decision") -> tuple[IntArray, FloatArray]:
    """Check outcomes, and one decision value per pair; decisions may be infinite but not NaN."""
    refuse_misaligned(**{"y": y, name: decision})
    outcomes, decisions = check_outcomes(y), check_column(decision, name)
    check_lengths("y", len(outcomes), **{name: decisions})
    if (bad := np.isnan(decisions)).any():
        refuse(bad, decisions, name, "every pair needs a decision value.")
    return outcomes, decisions


def ranking_metric_error(metric: Metric) -> ParameterError:
    """Build the error for a metric of comparisons where only metrics of rankings are allowed."""
    return ParameterError.because(
        f"metric {str(metric)!r} scores pairs with ties, not rankings. Use it with cc.Comparer, or rank by "
        "metric='pd' with Preferences."
    )


@dataclass(frozen=True, repr=False)
class ComparisonMetric(Metric):
    """A metric of outcomes in {-1, 0, 1} and decision values."""

    def read_labels(self, y: ArrayLike) -> IntArray:
        """Check outcomes, or read them from a `Comparisons`."""
        return check_outcomes(y)

    def standardize(self, labels: IntArray, queries: Queries) -> FloatArray:
        """Raise: targets are numbers of items, and the rows are pairs."""
        del queries
        instead = "give the outcomes as Preferences between items, and name pd."
        raise self.unstandardized(labels, "its labels are outcomes of pairs, not of items", instead)


@dataclass(frozen=True, repr=False)
class ComparisonError(ComparisonMetric):
    """Share of pairs predicted wrong; the prediction is the decision's sign if its size exceeds tau, else 0.

    Examples
    --------
    >>> ComparisonError()([-1, 0, 1, 1], [-2.0, 0.5, 1.5, -3.0])
    comparison_error = 0.25 over 1 of 1 queries
    """

    tau: float = 1.0
    name: ClassVar[str] = "comparison_error"
    greater_is_better: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "tau", check_number("tau", self.tau, least=0.0))

    def evaluate(
        self, labels: IntArray, scores: FloatArray, queries: Queries, docid: NDArray[Any] | None
    ) -> tuple[FloatArray, BoolArray]:
        """Mean error of each group of pairs."""
        del docid
        predicted = np.sign(scores) * (np.abs(scores) > self.tau)
        errors = queries.gather((predicted != labels).astype(np.float64))
        return segment_sum(errors, queries.offsets) / np.maximum(queries.sizes, 1), queries.sizes > 0


@dataclass(frozen=True, eq=False)
class ROC:
    """ROC curve of detecting a difference, as the threshold falls from infinity to 0.

    Attributes
    ----------
    false_positive
        Share of ties for which a difference is predicted; from 0 to 1.
    true_positive
        Share of labelled differences that are predicted, with their sign unless inversions are ignored.
    tau
        Threshold of each point: a difference is predicted where the decision's size is at least tau;
        the last, horizontal segment to false-positive rate 1 has NaN.
    area
        Area under the curve, by trapezoid.
    """

    false_positive: FloatArray
    true_positive: FloatArray
    tau: FloatArray
    area: float


def comparison_roc(y: ArrayLike, decision: ArrayLike, *, inversions: str = "error") -> ROC:
    """Compute the ROC curve of decision values against outcomes with ties.

    Parameters
    ----------
    y
        Outcomes in {-1, 0, 1}, or a `Comparisons`.
    decision
        r(right) - r(left), one per pair.
    inversions
        `"error"`: a difference predicted with the wrong sign is a false negative (Table 3 of the paper).
        `"ignored"`: any predicted difference counts (its Figure 5; a model with all signs reversed looks
        perfect).

    References
    ----------
    Venuto et al., Support vector comparison machines, section 4.

    Examples
    --------
    >>> comparison_roc([1, 0, -1], [2.0, 0.5, 1.0]).area
    0.5
    >>> comparison_roc([1, 0, -1], [2.0, 0.5, 1.0], inversions="ignored").area
    1.0
    """
    outcomes, decisions = check_decisions(y, decision)
    ties, differences = int((outcomes == 0).sum()), int((outcomes != 0).sum())
    if not ties or not differences:
        problem = f"a ROC curve needs ties and differences; seen {ties} and {differences}"
        raise LabelError(problem, "use comparison_error on such data.")
    return roc_curve(outcomes, decisions, inversions)


def roc_curve(outcomes: IntArray, decisions: FloatArray, inversions: str) -> ROC:
    """Count along the thresholds from high to low; |decision| = 0 is never a predicted difference."""
    check_choice("inversions", inversions, INVERSIONS)
    size = np.abs(decisions)
    order = np.argsort(-size, kind="stable")
    order = order[: int((size > 0).sum())]
    falling = size[order]
    # Decisions of equal size enter together.
    last = np.flatnonzero(np.r_[falling[1:] != falling[:-1], True][: len(falling)])
    right = (outcomes != 0) & ((np.sign(decisions) == outcomes) | (inversions == "ignored"))
    hits = np.cumsum(right[order])[last] / (outcomes != 0).sum()
    alarms = np.cumsum(outcomes[order] == 0)[last] / (outcomes == 0).sum()
    end = hits[-1] if hits.size else 0.0
    false_positive, true_positive = np.r_[0.0, alarms, 1.0], np.r_[0.0, hits, end]
    area = float(np.trapezoid(true_positive, false_positive))
    return ROC(false_positive, true_positive, np.r_[np.inf, falling[last], np.nan], area)


@dataclass(frozen=True, repr=False)
class ComparisonAUC(ComparisonMetric):
    """Area under the ROC curve over the threshold (`comparison_roc`).

    Examples
    --------
    >>> ComparisonAUC()([1, 0, -1], [2.0, 0.5, -1.0])
    comparison_auc = 1 over 1 of 1 queries
    """

    inversions: str = "error"
    name: ClassVar[str] = "comparison_auc"
    normalised: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choice("inversions", self.inversions, INVERSIONS)

    def evaluate(
        self, labels: IntArray, scores: FloatArray, queries: Queries, docid: NDArray[Any] | None
    ) -> tuple[FloatArray, BoolArray]:
        """Area of each group of pairs; undefined without a tie or without a difference."""
        del docid
        outcomes, decisions = queries.gather(labels), queries.gather(scores)
        areas = np.zeros(queries.n_queries)
        ties = segment_sum((outcomes == 0).astype(np.float64), queries.offsets)
        defined = (ties > 0) & (ties < queries.sizes)
        for q in np.flatnonzero(defined):
            rows = slice(queries.offsets[q], queries.offsets[q + 1])
            areas[q] = roc_curve(outcomes[rows], decisions[rows], self.inversions).area
        return areas, defined
