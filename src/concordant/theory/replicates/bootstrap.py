"""Votes drawn again: how often a condition holds on them, and a band around its expectations.

The band is around all expectations at once. Its width comes from the resamples; unanimity of few is not
certainty, since expectations are first drawn towards 0 as by votes of either extreme (Agresti and Coull).
Votes of different weights are too skewed for that: there the width is a bound that holds for all of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from concordant.theory.noise.predicates import ROUNDING
from concordant.theory.replicates.evidence import Evidence
from concordant.types import FloatArray, IntArray

__all__ = ["Resampled", "band", "bounded", "resample"]

BLOCK = 2**22  # numbers held at once


class Resampled(NamedTuple):
    """What the resamples say.

    Attributes
    ----------
    estimate
        Whether the condition holds on the votes themselves.
    support
        Share of the resamples on which it holds.
    lower, upper
        Ends of the band, one each expectation.
    """

    estimate: bool
    support: float
    lower: FloatArray
    upper: FloatArray


def resample(
    evidence: Evidence, counts: IntArray, n_bootstrap: int, confidence: float, margin: float, seed: list[int]
) -> Resampled:
    """Draw as many votes as there are, with replacement, many times.

    Parameters
    ----------
    evidence
        What the condition reads.
    counts
        How many annotators gave each vote.
    n_bootstrap, confidence, margin, seed
        As for `check`.
    """
    rng, total, reach = np.random.default_rng(seed), int(counts.sum()), evidence.reach
    shares = counts / total
    means, squares = evidence.means(shares[None])[0] / reach, evidence.squares(shares)
    spread = np.sqrt(np.maximum(squares - means**2, 0.0))
    moving = spread > math.sqrt(ROUNDING)
    farthest, held = np.zeros(n_bootstrap), 0
    size = max(1, BLOCK // max(len(means), evidence.n_items**2, len(counts)))
    for first in range(0, n_bootstrap, size):
        drawn = rng.multinomial(total, shares, min(size, n_bootstrap - first)) / total
        held += int(evidence.held(drawn, margin).sum())
        off = np.abs(evidence.means(drawn) / reach - means)[:, moving] / spread[moving]
        farthest[first : first + size] = off.max(axis=1, initial=0.0)
    reached = math.sqrt(total) * float(np.quantile(farthest, confidence))
    if evidence.uneven:
        lower, upper = bounded(means, squares, total, confidence)
    else:
        lower, upper = band(means, squares, total, reached, confidence)
    estimate = bool(evidence.held(shares[None], margin)[0])
    return Resampled(estimate, held / n_bootstrap, lower * reach, upper * reach)


def band(
    means: FloatArray, squares: FloatArray, total: int, reached: float, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Give the ends of the band around the means of numbers from -1 to 1.

    z is the number of standard errors within which the given share of the resamples stays in all columns, at
    least Student's for one column. To the votes z^2 imaginary ones are added, half of them -1 and half 1: for
    a single proportion this is the interval of Agresti and Coull (1998). Where the interval without them
    ends farther from 0, so does the band.

    Parameters
    ----------
    means, squares
        Of each column: its mean, and the mean of its squares.
    total
        Number of annotators.
    reached, confidence
        Standard errors that the resamples stay within, and the share of them that do.
    """
    from scipy.special import stdtrit

    if total < 2:
        return np.full(len(means), -np.inf), np.full(len(means), np.inf)
    z = max(reached, float(stdtrit(total - 1, (1.0 + confidence) / 2.0)))
    added = total + z**2
    centre = total * means / added
    half = z * np.sqrt(((total * squares + z**2) / added - centre**2) / added)
    plain = z * np.sqrt(np.maximum(squares - means**2, 0.0) / total)
    return np.minimum(centre - half, means - plain), np.maximum(centre + half, means + plain)


def bounded(
    means: FloatArray, squares: FloatArray, total: int, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Give the ends of a band around the means of numbers from -1 to 1, whatever their distribution.

    The narrower of Hoeffding's bound and Bernstein's with the standard deviation of the votes, which is
    itself off by at most 2 sqrt(2 L / (total - 1)) (Maurer and Pontil 2009, Theorems 3 and 10). Five events
    of probability exp(-L) a column would break it, and together they have what the confidence leaves.

    Parameters
    ----------
    means, squares, total, confidence
        As for `band`.
    """
    if total < 2:
        return np.full(len(means), -np.inf), np.full(len(means), np.inf)
    level = math.log(5.0 * max(len(means), 1) / (1.0 - confidence))
    deviation = np.sqrt(np.maximum(squares - means**2, 0.0) * total / (total - 1))
    deviation += 2.0 * math.sqrt(2.0 * level / (total - 1))
    bernstein = deviation * math.sqrt(2.0 * level / total) + 2.0 * level / (3.0 * total)
    half = np.minimum(bernstein, math.sqrt(2.0 * level / total))
    return means - half, means + half
