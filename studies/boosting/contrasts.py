"""Two rows of `boosting` on the same queries: mean difference, interval and paired tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from concordant._internals import mean_of
from concordant.evaluation import Paired, paired
from concordant.types import FloatArray


@dataclass(frozen=True)
class RowContrast:
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
) -> RowContrast:
    """Compare two rows on all queries of these sets: name -> row -> values."""
    data = next(iter(columns)) if len(columns) == 1 else "all sets"
    differences = [column[first] - column[second] for column in columns.values()]
    every = np.concatenate(differences)
    defined = every[~np.isnan(every)]
    test = paired(
        *(np.concatenate([column[name] for column in columns.values()]) for name in (first, second))
    )
    by_set = float(np.mean([mean_of(set_differences) for set_differences in differences]))
    signs = [int((np.sign(defined) == sign).sum()) for sign in (1, 0, -1)]
    return RowContrast(data, metric, first, second, test, by_set, *interval(defined), *signs)


def interval(differences: FloatArray, level: float = 0.95) -> tuple[float, float]:
    """Interval of a mean by Student's t; NaN for fewer than two differences.

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
