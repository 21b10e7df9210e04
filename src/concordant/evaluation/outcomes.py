"""How well outcomes of pairs are predicted: errors, areas, probabilities, and whether one model is better.

Outcomes are -1 (the left is better), 0 (a tie) and +1; probabilities have a column for each, in that order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from concordant.evaluation.outcome_calibration import (
    Calibration,
    calibrated,
    calibration_table,
    check_three,
    one_hot,
)
from concordant.evaluation.paired_areas import PairedAUC, paired_auc
from concordant.exceptions import EmptyDataError
from concordant.metrics.comparison import (
    ROC,
    ComparisonError,
    check_decisions,
    check_outcomes,
    comparison_roc,
    roc_curve,
)
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = [
    "Calibration",
    "OutcomeReport",
    "PairedAUC",
    "calibration_table",
    "evaluate_outcomes",
    "log_loss",
    "paired_auc",
    "trivial_roc",
]

FLOOR = 1e-15  # a probability below this counts as this: one impossible outcome must not make all infinite


@dataclass(frozen=True, eq=False)
class OutcomeReport:
    """What predictions of outcomes were worth; NaN where there was nothing to measure it by.

    Attributes
    ----------
    n
        Pairs.
    error
        Share of pairs predicted wrong, at the threshold `tau`.
    auc
        Area under the ROC curve over the threshold; a difference of the wrong sign is an error. NaN without a
        tie or without a difference.
    auc_unsigned
        The same, where any difference counts, whichever its sign.
    confusion
        Counts: rows are the outcomes -1, 0, 1, columns the predictions -1, 0, 1.
    log_loss
        Mean of -log(probability of the outcome), probabilities raised to 1e-15.
    n_clipped
        Pairs whose outcome had a smaller probability than that; each is worth 34.5 in the sum.
    brier
        Mean of the squared distance between the probabilities and the outcome as (1, 0, 0), (0, 1, 0) or
        (0, 0, 1); 0 to 2.
    ranked_probability
        Mean of the squared errors of P(y <= -1) and P(y <= 0), halved: a tie is half way between the other
        outcomes; 0 to 1.
    calibration_error
        Mean distance between predicted and observed share over the bins of `calibration_table`, weighted by
        their counts. Never 0 on real data: with few pairs, chance alone makes it large.
    """

    n: int
    error: float
    auc: float
    auc_unsigned: float
    confusion: IntArray
    log_loss: float
    n_clipped: int
    brier: float
    ranked_probability: float
    calibration_error: float

    def __repr__(self) -> str:
        names = ("error", "auc", "auc_unsigned", "log_loss", "brier")
        values = ", ".join(f"{name}={getattr(self, name):.4f}" for name in names)
        clipped = f", n_clipped={self.n_clipped}" if self.n_clipped else ""
        return f"OutcomeReport(n={self.n:,}, {values}{clipped})"


def evaluate_outcomes(
    y: ArrayLike,
    decision: ArrayLike,
    *,
    tau: float = 1.0,
    probabilities: ArrayLike = None,
    n_bins: int = 10,
) -> OutcomeReport:
    """Measure decisions, and probabilities where there are any, against outcomes.

    Parameters
    ----------
    y
        Outcomes in {-1, 0, 1}, or a `Comparisons`.
    decision
        r(right) - r(left), one per pair.
    tau
        A difference is predicted where the decision's size exceeds it.
    probabilities
        P(y = -1, 0, 1), shape (n, 3).
    n_bins
        Bins of the calibration error.

    Examples
    --------
    >>> report = evaluate_outcomes([-1, 0, 1, 1], [-2.0, 0.5, 1.5, -3.0])
    >>> report.error, report.confusion.tolist()
    (0.25, [[1, 0, 0], [0, 1, 0], [1, 0, 1]])
    """
    outcomes, decisions = check_decisions(y, decision)
    if not len(outcomes):
        raise EmptyDataError("y")
    error = ComparisonError(tau)
    predicted = np.sign(decisions) * (np.abs(decisions) > error.tau)
    confusion = np.bincount((3 * outcomes + predicted + 4).astype(np.int64), minlength=9).reshape(3, 3)
    both = 0 < int((outcomes == 0).sum()) < len(outcomes)
    signed, unsigned = (
        roc_curve(outcomes, decisions, how).area if both else np.nan for how in ("error", "ignored")
    )
    quality: tuple[float, int, float, float, float] = (np.nan, 0, np.nan, np.nan, np.nan)
    if probabilities is not None:
        quality = measures(outcomes, check_three(probabilities, len(outcomes)), n_bins)
    wrong = float(np.mean(predicted != outcomes))
    return OutcomeReport(len(outcomes), wrong, signed, unsigned, confusion, *quality)


def measures(outcomes: IntArray, table: FloatArray, n_bins: int) -> tuple[float, int, float, float, float]:
    """Give log-loss, how many were clipped, Brier score, ranked probability score, calibration error."""
    seen = one_hot(outcomes)
    own = table[seen]
    gaps = np.cumsum(table - seen, axis=1)[:, :2]
    calibration = calibrated(outcomes, table, n_bins)
    off = np.average(np.abs(calibration.predicted - calibration.observed), weights=calibration.count)
    return (
        float(-np.log(np.maximum(own, FLOOR)).mean()),
        int((own < FLOOR).sum()),
        float(((table - seen) ** 2).sum(axis=1).mean()),
        float((gaps**2).sum(axis=1).mean() / 2.0),
        float(off),
    )


def log_loss(y: ArrayLike, probabilities: ArrayLike) -> float:
    """Give the mean of -log(probability of the outcome); finite, since probabilities are raised to 1e-15.

    `evaluate_outcomes` also says how many had to be.

    Parameters
    ----------
    y
        Outcomes in {-1, 0, 1}, or a `Comparisons`.
    probabilities
        P(y = -1, 0, 1), shape (n, 3).

    Examples
    --------
    >>> round(log_loss([1, 0], [[0.25, 0.25, 0.5], [0.0, 1.0, 0.0]]), 6)
    0.346574
    """
    outcomes = check_outcomes(y)
    own = check_three(probabilities, len(outcomes))[one_hot(outcomes)]
    return float(-np.log(np.maximum(own, FLOOR)).mean())


def trivial_roc(y_train: ArrayLike, y_test: ArrayLike) -> ROC:
    """Give the curve of the model that knows no features: every pair has the sign commoner in training.

    Equal counts choose -1, as printed. The curve is a straight line from (0, 0), where no difference is
    predicted, to false-positive rate 1 and the share of that sign among the test differences, so that the
    area is half this share.

    References
    ----------
    Venuto et al., Support vector comparison machines, equation 20.

    Examples
    --------
    >>> trivial_roc([1, 1, -1, 0], [1, -1, -1, -1, 0]).area
    0.125
    """
    known, unknown = check_outcomes(y_train), check_outcomes(y_test)
    sign = 1.0 if (known == 1).sum() > (known == -1).sum() else -1.0
    return comparison_roc(unknown, np.full(len(unknown), sign))
