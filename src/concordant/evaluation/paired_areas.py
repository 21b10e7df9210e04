"""Whether one model orders pairs better than another: the difference of two ROC areas, by bootstrap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from concordant.exceptions import LabelError, ParameterError
from concordant.metrics.comparison import check_decisions, comparison_roc
from concordant.supervision.columns import check_ids, check_lengths
from concordant.supervision.synthetic.items import check_counts
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["PairedAUC", "paired_auc"]

ROUNDING = 1e-12  # areas that differ by less are equal


@dataclass(frozen=True)
class PairedAUC:
    """Two models on the same pairs.

    Attributes
    ----------
    difference
        Area of a less area of b.
    auc_a, auc_b
        The areas.
    low, high
        Percentile interval of the difference over the resamples.
    p_value
        Two-sided: twice the share of the resamples on the rarer side of 0, the observed one counted in.
    n_clusters
        What was drawn: pairs, or clusters of them.
    n_resamples
        Resamples that had a tie and a difference; the others have no area and are left out.
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
    """Give the difference of two ROC areas on the same pairs, and how sure one can be of it, by bootstrap.

    Both models are measured on the same resamples of the pairs. The models themselves are taken as they are:
    how they would differ if trained on other data is not asked. Interval and p-value are approximate, and
    good from about a hundred clusters on.

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
        Id of the event, the player or the annotator of each pair: whole clusters are drawn. Pairs that are
        not independent of one another, drawn one by one, make differences look surer than they are.
    inversions
        As for `comparison_roc`.
    level
        Of the interval.

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
    outcomes, first = check_decisions(y, decision_a, "decision_a")
    _, second = check_decisions(outcomes, decision_b, "decision_b")
    check_counts(n_resamples=n_resamples)
    if not 0.0 < level < 1.0:
        raise ParameterError("level", level, "between 0 and 1, both excluded")
    auc_a, auc_b = (comparison_roc(outcomes, each, inversions=inversions).area for each in (first, second))
    codes, n_clusters = cluster_codes(clusters, len(outcomes))
    areas = [Area.of(outcomes, values, inversions) for values in (first, second)]
    drawn = differences_drawn(areas, codes, n_clusters, n_resamples, seed)
    ends = np.quantile(drawn, [(1.0 - level) / 2.0, (1.0 + level) / 2.0]) if drawn.size else [np.nan, np.nan]
    rarer = min(int((drawn <= ROUNDING).sum()), int((drawn >= -ROUNDING).sum()))
    p_value = min(1.0, 2.0 * (1 + rarer) / (1 + len(drawn)))
    low, high = (float(end) for end in ends)
    return PairedAUC(auc_a - auc_b, auc_a, auc_b, low, high, p_value, n_clusters, len(drawn))


def cluster_codes(clusters: ArrayLike, n_pairs: int) -> tuple[IntArray | None, int]:
    """Give the number of each pair's cluster, None where each pair is its own, and how many there are."""
    if clusters is None:
        return None, n_pairs
    ids = check_ids(clusters, "clusters")
    check_lengths("y", n_pairs, clusters=ids)
    found, codes = np.unique(ids, return_inverse=True)
    if len(found) < 2:
        problem = f"all {n_pairs} pairs are in one cluster"
        raise LabelError(
            problem, "a bootstrap over clusters needs many; leave clusters out if pairs are independent."
        )
    return codes, len(found)


@dataclass(frozen=True, eq=False)
class Area:
    """The ROC area of decisions as a function of the weights of the pairs; sorted once, then two sums.

    The area is the mean over ties of the share of the differences that are found at thresholds above the
    tie's own size, those at exactly this size counted half.

    Attributes
    ----------
    ties, found
        Rows of the ties; rows of the differences of the right sign, largest size first.
    above, through
        For each tie, how many of `found` are larger than it, and at least as large.
    """

    ties: IntArray
    found: IntArray
    above: IntArray
    through: IntArray

    @classmethod
    def of(cls, outcomes: IntArray, decisions: FloatArray, inversions: str) -> Area:
        """Sort the decisions; one of size 0 is never a difference."""
        size = np.abs(decisions)
        right = (outcomes != 0) & (size > 0.0)
        right &= (np.sign(decisions) == outcomes) | (inversions == "ignored")
        ties, found = np.flatnonzero(outcomes == 0), np.flatnonzero(right)
        found = found[np.argsort(-size[found], kind="stable")]
        above, through = (np.searchsorted(-size[found], -size[ties], side=side) for side in ("left", "right"))
        return cls(ties, found, above, through)

    def at(self, weights: FloatArray) -> float:
        """Give the area where pairs count as often as their weights say; NaN without ties or differences."""
        of_ties = weights[self.ties]
        whole = of_ties.sum() * (weights.sum() - of_ties.sum())
        sums = np.concatenate(([0.0], np.cumsum(weights[self.found])))
        hits = (of_ties * (sums[self.above] + sums[self.through])).sum()  # no BLAS: its threads would wait
        return float(hits / (2.0 * whole)) if whole > 0.0 else np.nan


def differences_drawn(
    areas: list[Area], codes: IntArray | None, n_clusters: int, n_resamples: int, seed: int
) -> FloatArray:
    """Give the difference of the areas on each resample that has one."""
    rng, drawn = np.random.default_rng(seed), np.empty(n_resamples)
    for k in range(n_resamples):
        counts = np.bincount(rng.integers(0, n_clusters, n_clusters), minlength=n_clusters).astype(np.float64)
        weights = counts if codes is None else counts[codes]
        drawn[k] = areas[0].at(weights) - areas[1].at(weights)
    return drawn[np.isfinite(drawn)]
