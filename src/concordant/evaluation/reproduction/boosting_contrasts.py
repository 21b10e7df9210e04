"""Two rows of `boosting` on the same queries: mean difference, interval and paired tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from concordant.evaluation.significance import Paired, holm, mean_of, paired
from concordant.types import FloatArray

__all__ = ["Contrast", "contrast", "corrected", "interval"]


@dataclass(frozen=True)
class Contrast:
    """Two rows on the same test queries.

    Attributes
    ----------
    data
        The set, or "all sets".
    metric, first, second
        What is compared.
    test
        Mean of first less second over queries, and the paired tests.
    by_set
        Mean over sets of the mean over each one's queries.
    low, high
        The 95 % interval of that mean, by Student's t.
    wins, ties, losses
        Queries on which the first is better, equal, worse.
    adjusted
        p-value of the t-test after Holm's correction over what was asked together.
    """

    data: str
    metric: str
    first: str
    second: str
    test: Paired
    by_set: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int
    adjusted: float = 1.0


def contrast(
    metric: str, columns: Mapping[str, Mapping[str, FloatArray]], first: str, second: str
) -> Contrast:
    """Compare two rows on all queries of these sets: name -> row -> values."""
    data = next(iter(columns)) if len(columns) == 1 else "all sets"
    differences = [column[first] - column[second] for column in columns.values()]
    every = np.concatenate(differences)
    known = every[~np.isnan(every)]
    test = paired(
        *(np.concatenate([column[name] for column in columns.values()]) for name in (first, second))
    )
    by_set = float(np.mean([mean_of(own) for own in differences]))
    signs = [int((np.sign(known) == sign).sum()) for sign in (1, 0, -1)]
    return Contrast(data, metric, first, second, test, by_set, *interval(known), *signs)


def interval(differences: FloatArray, level: float = 0.95) -> tuple[float, float]:
    """Give the interval of a mean by Student's t; of fewer than two differences there is none.

    >>> [round(end, 4) for end in interval(np.array([0.0, 1.0, 2.0]))]
    [-1.4841, 3.4841]
    """
    if len(differences) < 2:
        return float("nan"), float("nan")
    from scipy.stats import t

    half = (
        float(t.ppf(0.5 + level / 2, len(differences) - 1))
        * float(differences.std(ddof=1))
        / float(np.sqrt(len(differences)))
    )
    return float(differences.mean()) - half, float(differences.mean()) + half


def corrected(found: Sequence[Contrast]) -> list[Contrast]:
    """Correct the p-values of contrasts that were asked together."""
    if not found:
        return []
    adjusted = holm([one.test.t_test for one in found]).tolist()
    return [replace(one, adjusted=p) for one, p in zip(found, adjusted, strict=True)]
