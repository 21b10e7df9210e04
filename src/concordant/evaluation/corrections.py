"""Several tests at once: p-values raised so that many comparisons do not find differences by their number."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from concordant.evaluation.flips import ROUNDING, flipped_sums
from concordant.evaluation.significance import check_p_values, holm
from concordant.types import ArrayLike, FloatArray

__all__ = ["CORRECTIONS", "benjamini_hochberg", "bonferroni", "max_t"]


def bonferroni(p_values: ArrayLike) -> FloatArray:
    """Give each p-value times their number, 1 at most.

    >>> bonferroni([0.01, 0.5]).tolist()
    [0.02, 1.0]
    """
    given = check_p_values(p_values)
    return np.minimum(given * len(given), 1.0)


def benjamini_hochberg(p_values: ArrayLike) -> FloatArray:
    """Give p-values such that, of what is below the level, no larger share than the level is expected false.

    This bounds the share of false discoveries, not the probability of a single one, and is proven for tests
    that are independent or depend on one another positively; those of pairs that share a model need not.

    References
    ----------
    Benjamini and Hochberg (1995), Controlling the false discovery rate.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(12).tolist()
    [0.03, 0.04, 0.04]
    """
    given = check_p_values(p_values)
    order = np.argsort(given, kind="stable")[::-1]
    shares = len(given) / np.arange(len(given), 0, -1)  # 1 for the largest, which keeps its p-value
    lowered = np.minimum.accumulate(given[order] * shares)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(lowered, 1.0)
    return adjusted


def unchanged(p_values: ArrayLike) -> FloatArray:
    """Give the p-values as they are."""
    return check_p_values(p_values)


CORRECTIONS: Mapping[str, Callable[[ArrayLike], FloatArray] | None] = {
    "max_t": None,  # of the differences, not of their p-values
    "holm": holm,
    "bonferroni": bonferroni,
    "bh": benjamini_hochberg,
    "none": unchanged,
}


def max_t(differences: FloatArray, n_flips: int, seed: int) -> FloatArray:
    """Give p-values of all columns together, by sign-flips of whole rows.

    A row holds the differences of all pairs of rankers on one query, NaN where one is undefined. Each flip
    gives a query one sign for all its pairs, so that pairs depend on one another as they do in the data. The
    statistic is the paired t, so that a pair of large spread does not hide the others; flips leave the sum of
    squares as it is, so for one column this is the sign-flip test itself. The pair of largest t is compared
    with the largest t of all pairs over the flips, the next with the largest of the rest, and so on; no
    p-value comes below that of a pair before it.

    The chance of any false rejection is at most the level where the rows are symmetric around their means,
    and nears it with many queries in any case, whichever pairs are truly different.

    References
    ----------
    Westfall and Young (1993), Resampling-based multiple testing, algorithm 4.1. Carterette (2012), Multiple
    testing in statistical analysis of systems-based information retrieval experiments.
    """
    filled = np.nan_to_num(differences)
    t_of = Studentised((~np.isnan(differences)).sum(axis=0), (filled**2).sum(axis=0))
    sums, slack = np.abs(filled.sum(axis=0)), ROUNDING * np.abs(filled).sum(axis=0)
    least = t_of(np.maximum(sums - slack, 0.0))
    order = np.argsort(-least, kind="stable")
    hits, tried = np.zeros(len(order), dtype=np.int64), 0
    exact, ways = flipped_sums(filled, n_flips, seed)
    for flipped in ways:
        sizes = t_of(flipped)[:, order]
        largest = np.maximum.accumulate(sizes[:, ::-1], axis=1)[:, ::-1]  # of this pair and those after it
        hits, tried = hits + (largest >= least[order]).sum(axis=0), tried + len(sizes)
    raised = np.maximum.accumulate(hits / tried if exact else (1 + hits) / (1 + tried))
    adjusted = np.empty(len(order))
    adjusted[order] = raised
    return np.where(t_of.usable, adjusted, 1.0)


class Studentised:
    """Squares of the paired t of columns with given counts and sums of squares, from their sums."""

    def __init__(self, counts: FloatArray, squares: FloatArray) -> None:
        self.usable = (counts > 1) & (squares > 0.0)
        self.freedom = np.where(self.usable, counts - 1.0, 0.0)
        self.bound = np.where(self.usable, counts * squares, 1.0)  # of the squared sum, reached by equal ones

    def __call__(self, sums: FloatArray) -> FloatArray:
        """Give t squared; infinite where all are equal, 0 where there is nothing to test."""
        share = np.minimum(sums**2 / self.bound, 1.0) * self.usable
        with np.errstate(divide="ignore"):
            return np.asarray(self.freedom * (share / (1.0 - share)))
