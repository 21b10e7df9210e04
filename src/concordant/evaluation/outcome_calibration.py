"""Whether probabilities of outcomes are the shares that are then seen."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from concordant.exceptions import LabelError, NonFiniteError, ParameterError, ShapeError
from concordant.metrics.comparison import check_outcomes
from concordant.supervision.check import check_features
from concordant.supervision.synthetic.items import check_counts
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray

__all__ = ["OUTCOMES", "Calibration", "calibration_table"]

OUTCOMES = (-1, 0, 1)
ROUNDING = 1e-5  # of sums in float32; 1 - p - q may come out below 0 too


@dataclass(frozen=True, eq=False)
class Calibration:
    """Predicted against observed shares: one entry per outcome and bin that holds a pair.

    Attributes
    ----------
    outcome
        -1, 0 or 1.
    predicted
        Mean probability of this outcome over the pairs of the bin.
    observed
        Share of these pairs that had it.
    count
        Number of these pairs.
    low, high
        Wilson's interval of the share.
    level
        Of the intervals.
    """

    outcome: IntArray
    predicted: FloatArray
    observed: FloatArray
    count: IntArray
    low: FloatArray
    high: FloatArray
    level: float


def calibration_table(
    y: ArrayLike, probabilities: ArrayLike, *, n_bins: int = 10, level: float = 0.95
) -> Calibration:
    """Compare probabilities with what happened, for each outcome, in bins of about equally many pairs.

    Pairs of equal probability are never parted, so there may be fewer bins; a constant probability
    has one. Each outcome has its own bins.

    Parameters
    ----------
    y
        Outcomes in {-1, 0, 1}, or a `Comparisons`.
    probabilities
        P(y = -1, 0, 1), shape (n, 3).
    n_bins
        The most bins of an outcome.
    level
        Of the intervals.

    References
    ----------
    Wilson (1927), Probable inference, the law of succession, and statistical inference.

    Examples
    --------
    >>> table = calibration_table([1, 1, 0, -1], [[0.25, 0.25, 0.5]] * 4)
    >>> table.predicted.tolist(), table.observed.tolist(), table.count.tolist()
    ([0.25, 0.25, 0.5], [0.25, 0.25, 0.5], [4, 4, 4])
    """
    outcomes = check_outcomes(y)
    return calibrated(outcomes, check_three(probabilities, len(outcomes)), n_bins, level)


def calibrated(outcomes: IntArray, table: FloatArray, n_bins: int, level: float = 0.95) -> Calibration:
    """Give the bins of all three outcomes."""
    check_counts(n_bins=n_bins)
    parts = [binned(table[:, k], outcomes == outcome, n_bins) for k, outcome in enumerate(OUTCOMES)]
    predicted, observed, count = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    outcome = np.repeat(OUTCOMES, [len(part[0]) for part in parts])
    low, high = wilson(observed, count, level)
    return Calibration(outcome, predicted, observed, count, low, high, level)


def binned(given: FloatArray, happened: BoolArray, n_bins: int) -> tuple[FloatArray, FloatArray, IntArray]:
    """Give mean probability, observed share and count of each bin; a bin starts where a value starts."""
    below = np.searchsorted(np.sort(given), given, side="left")
    bins = below * n_bins // len(given)
    count = np.bincount(bins, minlength=n_bins)
    held = count > 0
    sums = (np.bincount(bins, weights=values, minlength=n_bins) for values in (given, happened))
    predicted, observed = (total[held] / count[held] for total in sums)
    return predicted, observed, count[held]


def wilson(share: FloatArray, count: IntArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Give Wilson's interval of shares of so many."""
    if not 0.0 < level < 1.0:
        raise ParameterError("level", level, "between 0 and 1, both excluded")
    z2 = NormalDist().inv_cdf((1.0 + level) / 2.0) ** 2
    middle = (share + z2 / (2.0 * count)) / (1.0 + z2 / count)
    half = np.sqrt(z2 * share * (1.0 - share) / count + z2**2 / (4.0 * count**2)) / (1.0 + z2 / count)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def check_three(probabilities: ArrayLike, n_pairs: int) -> FloatArray:
    """Give rows of three numbers >= 0 whose sum is 1; what is so to the accuracy of float32 is made so."""
    table: FloatArray = check_features(probabilities, "probabilities").astype(np.float64, copy=False)
    if table.shape != (n_pairs, 3):
        raise ShapeError("probabilities", table.shape, f"({n_pairs}, 3): P(y = -1), P(y = 0), P(y = +1)")
    if (bad := (table < -ROUNDING).any(axis=1)).any():
        row = int(np.argmax(bad))
        hint = "probabilities are >= 0; decisions are not probabilities."
        raise NonFiniteError("probabilities", float(table[row].min()), f"row {row}", int(bad.sum()), hint)
    table = np.maximum(table, 0.0)
    sums = table.sum(axis=1)
    if (off := np.flatnonzero(np.abs(sums - 1.0) > ROUNDING)).size:
        problem = f"probabilities[{off[0]}] sums to {sums[off[0]]:.8g}"
        raise LabelError(problem, "the three outcomes of a pair sum to 1.")
    scaled: FloatArray = table / sums[:, None]
    return scaled


def one_hot(outcomes: IntArray) -> BoolArray:
    """Tell for each pair which of the outcomes -1, 0, 1 it had, shape (n, 3)."""
    seen: BoolArray = outcomes[:, None] == np.array(OUTCOMES)
    return seen
