"""Evaluation of predicted outcomes of pairs: errors, areas, probabilities, and comparison of two models.

Outcomes are -1 (the left is better), 0 (a tie) and +1; probabilities have a column for each, in that order.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from concordant._base.validate import check_counts, check_ids, check_lengths, check_share, refuse_misaligned
from concordant.data.check import check_features
from concordant.exceptions import EmptyDataError, LabelError, NonFiniteError, ShapeError
from concordant.metrics.comparison import (
    ROC,
    ComparisonError,
    check_decisions,
    check_outcomes,
    comparison_roc,
    roc_curve,
)
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray

# Calibration: comparison of the probabilities of outcomes with observed shares.

OUTCOMES = (-1, 0, 1)
SHARE_ROUNDING = 1e-5  # of sums in float32; 1 - p - q may be rounded below 0 too


@dataclass(frozen=True, eq=False)
class OutcomeCalibration:
    """Predicted against observed shares: one entry per outcome and non-empty bin.

    Attributes
    ----------
    outcome
        -1, 0 or 1.
    predicted
        Mean probability of this outcome over the pairs of the bin.
    observed
        Share of these pairs with this outcome.
    count
        Number of these pairs.
    low, high
        Wilson's interval of the share.
    level
        Confidence level of the intervals.
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
) -> OutcomeCalibration:
    """Compare probabilities with observed shares, for each outcome, in bins of about equally many pairs.

    Pairs of equal probability stay in one bin, so there may be fewer bins; a constant probability has a
    single bin. Bins are separate for each outcome.

    Parameters
    ----------
    y
        Outcomes in {-1, 0, 1}, or a `Comparisons`.
    probabilities
        P(y = -1, 0, 1), shape (n, 3).
    n_bins
        Largest number of bins of an outcome.
    level
        Confidence level of the intervals.

    References
    ----------
    Wilson (1927), Probable inference, the law of succession, and statistical inference.

    Examples
    --------
    >>> table = calibration_table([1, 1, 0, -1], [[0.25, 0.25, 0.5]] * 4)
    >>> table.predicted.tolist(), table.observed.tolist(), table.count.tolist()
    ([0.25, 0.25, 0.5], [0.25, 0.25, 0.5], [4, 4, 4])
    """
    refuse_misaligned(y=y, probabilities=probabilities)
    outcomes = check_outcomes(y)
    return _compute_calibration(outcomes, _check_three(probabilities, len(outcomes)), n_bins, level)


def _compute_calibration(
    outcomes: IntArray, table: FloatArray, n_bins: int, level: float = 0.95
) -> OutcomeCalibration:
    check_counts(n_bins=n_bins)
    parts = [_bin_outcomes(table[:, k], outcomes == outcome, n_bins) for k, outcome in enumerate(OUTCOMES)]
    predicted, observed, count = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    outcome = np.repeat(OUTCOMES, [len(part[0]) for part in parts])
    low, high = wilson(observed, count, level)
    return OutcomeCalibration(outcome, predicted, observed, count, low, high, level)


def _bin_outcomes(
    probabilities: FloatArray, occurred: BoolArray, n_bins: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Mean probability, observed share and count of each bin; bins start where a value starts."""
    below = np.searchsorted(np.sort(probabilities), probabilities, side="left")
    bins = below * n_bins // len(probabilities)
    count = np.bincount(bins, minlength=n_bins)
    is_filled = count > 0
    sums = (np.bincount(bins, weights=values, minlength=n_bins) for values in (probabilities, occurred))
    predicted, observed = (total[is_filled] / count[is_filled] for total in sums)
    return predicted, observed, count[is_filled]


def wilson(share: FloatArray, count: IntArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Compute Wilson's interval of shares observed over `count` pairs."""
    check_share("level", level, 0.95)
    z2 = NormalDist().inv_cdf((1.0 + level) / 2.0) ** 2
    middle = (share + z2 / (2.0 * count)) / (1.0 + z2 / count)
    half = np.sqrt(z2 * share * (1.0 - share) / count + z2**2 / (4.0 * count**2)) / (1.0 + z2 / count)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def _check_three(probabilities: ArrayLike, n_pairs: int) -> FloatArray:
    """Check rows of three numbers >= 0 that sum to 1 up to float32 rounding; rescale them to sum to 1."""
    table: FloatArray = check_features(probabilities, "probabilities").astype(np.float64, copy=False)
    if table.shape != (n_pairs, 3):
        raise ShapeError("probabilities", table.shape, f"({n_pairs}, 3): P(y = -1), P(y = 0), P(y = +1)")
    if (bad := (table < -SHARE_ROUNDING).any(axis=1)).any():
        row = int(np.argmax(bad))
        hint = "probabilities are >= 0; decisions are not probabilities."
        raise NonFiniteError("probabilities", float(table[row].min()), f"row {row}", int(bad.sum()), hint)
    table = np.maximum(table, 0.0)
    sums = table.sum(axis=1)
    if (off := np.flatnonzero(np.abs(sums - 1.0) > SHARE_ROUNDING)).size:
        problem = f"probabilities[{off[0]}] sums to {sums[off[0]]:.8g}"
        raise LabelError(problem, "the three outcomes of a pair sum to 1.")
    scaled: FloatArray = table / sums[:, None]
    return scaled


def _one_hot(outcomes: IntArray) -> BoolArray:
    """One-hot matrix of the outcomes -1, 0, 1, shape (n, 3)."""
    matrix: BoolArray = outcomes[:, None] == np.array(OUTCOMES)
    return matrix


FLOOR = 1e-15  # smaller probabilities are raised to this: an impossible outcome must not give infinity


@dataclass(frozen=True, eq=False)
class OutcomeReport:
    """Quality of predictions of outcomes; NaN where the data do not define a measure.

    Attributes
    ----------
    n
        Number of pairs.
    error
        Share of pairs predicted wrong, at the threshold `tau`.
    auc
        Area under the ROC curve over the threshold; a difference of the wrong sign is an error. NaN without a
        tie or without a difference.
    auc_unsigned
        The same, if any difference counts, whatever its sign.
    confusion
        Counts: rows are the outcomes -1, 0, 1, columns the predictions -1, 0, 1.
    log_loss
        Mean of -log(probability of the outcome), probabilities raised to 1e-15.
    n_clipped
        Number of pairs whose outcome had a smaller probability; each adds 34.5 to the sum.
    brier
        Mean of the squared distance between the probabilities and the outcome as (1, 0, 0), (0, 1, 0) or
        (0, 0, 1); 0 to 2.
    ranked_probability
        Mean of the squared errors of P(y <= -1) and P(y <= 0), halved: a tie lies half way between the
        other outcomes; 0 to 1.
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
    """Evaluate decisions, and probabilities if passed, against outcomes.

    Parameters
    ----------
    y
        Outcomes in {-1, 0, 1}, or a `Comparisons`. Only 0 and 1 are read as ties and wins of the right,
        without the warning of `Comparer.fit`, since few pairs may lack -1.
    decision
        r(right) - r(left), one per pair.
    tau
        A difference is predicted if the size of the decision exceeds it.
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
    refuse_misaligned(y=y, decision=decision, probabilities=probabilities)
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
        quality = _measures(outcomes, _check_three(probabilities, len(outcomes)), n_bins)
    wrong = float(np.mean(predicted != outcomes))
    return OutcomeReport(len(outcomes), wrong, signed, unsigned, confusion, *quality)


def _measures(outcomes: IntArray, table: FloatArray, n_bins: int) -> tuple[float, int, float, float, float]:
    """Compute log-loss, number of clipped pairs, Brier score, ranked probability score, calibration error."""
    occurred = _one_hot(outcomes)
    outcome_probabilities = table[occurred]
    gaps = np.cumsum(table - occurred, axis=1)[:, :2]
    calibration = _compute_calibration(outcomes, table, n_bins)
    off = np.average(np.abs(calibration.predicted - calibration.observed), weights=calibration.count)
    return (
        float(-np.log(np.maximum(outcome_probabilities, FLOOR)).mean()),
        int((outcome_probabilities < FLOOR).sum()),
        float(((table - occurred) ** 2).sum(axis=1).mean()),
        float((gaps**2).sum(axis=1).mean() / 2.0),
        float(off),
    )


def log_loss(y: ArrayLike, probabilities: ArrayLike) -> float:
    """Mean of -log(probability of the outcome); finite, since probabilities are raised to 1e-15.

    `evaluate_outcomes` also returns the number of raised probabilities.

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
    refuse_misaligned(y=y, probabilities=probabilities)
    outcomes = check_outcomes(y)
    outcome_probabilities = _check_three(probabilities, len(outcomes))[_one_hot(outcomes)]
    return float(-np.log(np.maximum(outcome_probabilities, FLOOR)).mean())


def trivial_roc(y_train: ArrayLike, y_test: ArrayLike) -> ROC:
    """ROC curve of the model without features: every pair has the more common sign in training.

    Equal counts choose -1, as in the paper. The curve is a straight line from (0, 0), where no difference is
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
    train, test = check_outcomes(y_train), check_outcomes(y_test)
    sign = 1.0 if (train == 1).sum() > (train == -1).sum() else -1.0
    return comparison_roc(test, np.full(len(test), sign))


# Comparison of two models on pairs: the difference of two ROC areas, by bootstrap.

AREA_ROUNDING = 1e-12  # areas that differ by less are equal


@dataclass(frozen=True)
class PairedAUC:
    """Comparison of two models on the same pairs.

    Attributes
    ----------
    difference
        Area of a minus area of b.
    auc_a, auc_b
        The areas.
    low, high
        Percentile interval of the difference over the resamples.
    p_value
        Two-sided: twice the share of resamples on the rarer side of 0, including the observed sample.
    n_clusters
        Number of drawn units: pairs, or clusters of pairs.
    n_resamples
        Number of resamples with a tie and a difference; the others have no area and are left out.
    """

    difference: float
    auc_a: float
    auc_b: float
    low: float
    high: float
    p_value: float
    n_clusters: int
    n_resamples: int


def paired_auc(
    y: ArrayLike,
    decision_a: ArrayLike,
    decision_b: ArrayLike,
    *,
    n_resamples: int = 2000,
    seed: int = 0,
    clusters: ArrayLike = None,
    inversions: str = "error",
    level: float = 0.95,
) -> PairedAUC:
    """Compute the difference of two ROC areas on the same pairs, with a bootstrap interval and p-value.

    Both models are evaluated on the same resamples of the pairs. The models themselves are fixed: variation
    from training on other data is not included. Interval and p-value are approximate, and accurate from
    about a hundred clusters on.

    Parameters
    ----------
    y
        Outcomes in {-1, 0, 1}, or a `Comparisons`; ties and differences are needed.
    decision_a, decision_b
        r(right) - r(left) of the two models, one per pair.
    n_resamples
        Samples drawn with replacement.
    seed
        Equal seeds give equal results.
    clusters
        Id of the event, the player or the annotator of each pair: whole clusters are drawn. Drawing
        dependent pairs one by one understates the uncertainty of differences.
    inversions
        As for `comparison_roc`.
    level
        Confidence level of the interval.

    References
    ----------
    Efron and Tibshirani (1993), An introduction to the bootstrap, chapters 13 and 15.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(-1, 2, 400)
    >>> good, bad = y + rng.normal(0.0, 1.0, 400), y + rng.normal(0.0, 3.0, 400)
    >>> result = paired_auc(y, good, bad, n_resamples=500)
    >>> 0.0 < result.low < result.difference < result.high, result.p_value < 0.01
    (True, True)
    """
    refuse_misaligned(y=y, decision_a=decision_a, decision_b=decision_b, clusters=clusters)
    outcomes, first = check_decisions(y, decision_a, "decision_a")
    _, second = check_decisions(outcomes, decision_b, "decision_b")
    check_counts(n_resamples=n_resamples)
    check_share("level", level, 0.95)
    auc_a, auc_b = (comparison_roc(outcomes, each, inversions=inversions).area for each in (first, second))
    codes, n_clusters = _cluster_codes(clusters, len(outcomes))
    areas = [Area.from_decisions(outcomes, values, inversions) for values in (first, second)]
    drawn = _resample_differences(areas, codes, n_clusters, n_resamples, seed)
    ends = np.quantile(drawn, [(1.0 - level) / 2.0, (1.0 + level) / 2.0]) if drawn.size else [np.nan, np.nan]
    rarer = min(int((drawn <= AREA_ROUNDING).sum()), int((drawn >= -AREA_ROUNDING).sum()))
    p_value = min(1.0, 2.0 * (1 + rarer) / (1 + len(drawn)))
    low, high = (float(end) for end in ends)
    return PairedAUC(auc_a - auc_b, auc_a, auc_b, low, high, p_value, n_clusters, len(drawn))


def _cluster_codes(clusters: ArrayLike, n_pairs: int) -> tuple[IntArray | None, int]:
    """Return the cluster number of each pair (None if pairs are independent) and the number of clusters."""
    if clusters is None:
        return None, n_pairs
    ids = check_ids(clusters, "clusters")
    check_lengths("y", n_pairs, clusters=ids)
    unique_ids, codes = np.unique(ids, return_inverse=True)
    if len(unique_ids) < 2:
        problem = f"all {n_pairs} pairs are in one cluster"
        raise LabelError(
            problem, "a bootstrap over clusters needs many; leave clusters out if pairs are independent."
        )
    return codes, len(unique_ids)


@dataclass(frozen=True, eq=False)
class Area:
    """ROC area of decisions as a function of the weights of the pairs; sorted once, then two sums.

    The area is the mean over ties of the share of the differences that are detected at thresholds above the
    size of the tie, those at exactly this size counted half.

    Attributes
    ----------
    ties, correct
        Rows of the ties; rows of the differences predicted with the correct sign, largest size first.
    above, through
        For each tie, the number of rows in `correct` that are larger than it, and at least as large.
    """

    ties: IntArray
    correct: IntArray
    above: IntArray
    through: IntArray

    @classmethod
    def from_decisions(cls, outcomes: IntArray, decisions: FloatArray, inversions: str) -> Area:
        """Sort the decisions; a decision of size 0 is never a difference."""
        size = np.abs(decisions)
        is_correct = (outcomes != 0) & (size > 0.0)
        is_correct &= (np.sign(decisions) == outcomes) | (inversions == "ignored")
        ties, correct = np.flatnonzero(outcomes == 0), np.flatnonzero(is_correct)
        correct = correct[np.argsort(-size[correct], kind="stable")]
        above, through = (
            np.searchsorted(-size[correct], -size[ties], side=side) for side in ("left", "right")
        )
        return cls(ties, correct, above, through)

    def at(self, weights: FloatArray) -> float:
        """Area if pairs count as often as their weights say; NaN without ties or differences."""
        tie_weights = weights[self.ties]
        total = tie_weights.sum() * (weights.sum() - tie_weights.sum())
        sums = np.concatenate(([0.0], np.cumsum(weights[self.correct])))
        # A product and a sum, not BLAS: its threads would wait.
        hits = (tie_weights * (sums[self.above] + sums[self.through])).sum()
        return float(hits / (2.0 * total)) if total > 0.0 else np.nan


def _resample_differences(
    areas: list[Area], codes: IntArray | None, n_clusters: int, n_resamples: int, seed: int
) -> FloatArray:
    """Difference of the areas on each resample on which both are defined."""
    rng, drawn = np.random.default_rng(seed), np.empty(n_resamples)
    for k in range(n_resamples):
        counts = np.bincount(rng.integers(0, n_clusters, n_clusters), minlength=n_clusters).astype(np.float64)
        weights = counts if codes is None else counts[codes]
        drawn[k] = areas[0].at(weights) - areas[1].at(weights)
    return drawn[np.isfinite(drawn)]
