"""Paired tests: whether one ranker is better than another on the same queries, or only seems to be."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from concordant._numbers import as_double, is_whole
from concordant.evaluation.flips import sign_flips
from concordant.exceptions import EmptyDataError, NonFiniteError, ParameterError
from concordant.supervision.columns import check_column, check_lengths
from concordant.types import ArrayLike, FloatArray

__all__ = ["Comparison", "Paired", "against_best", "holm", "paired"]

LARGEST = 1e150  # of values: spreads are made of squares


@dataclass(frozen=True)
class Paired:
    """Two rankers on the same queries.

    Attributes
    ----------
    difference
        Mean of a - b; NaN where no query has both.
    n_queries
        Queries on which both have a value.
    t_test
        Two-sided p-value of the paired t-test.
    permutation
        Two-sided p-value of the sign-flip test.
    """

    difference: float
    n_queries: int
    t_test: float
    permutation: float


@dataclass(frozen=True)
class Comparison:
    """A ranker against the best one.

    Attributes
    ----------
    mean
        Mean over the queries on which the metric is defined.
    best
        Whether it is the best itself; then there is no test, and `significant` is false.
    test
        The paired test of the best less this one; None for the best.
    adjusted
        p-value of the t-test after Holm's correction over all rankers but the best; 1 for the best.
    significant
        Whether it is worse, and `adjusted` is below the level that was asked for.
    """

    mean: float
    best: bool
    test: Paired | None
    adjusted: float
    significant: bool


def paired(a: ArrayLike, b: ArrayLike, *, n_flips: int = 10_000, seed: int = 0) -> Paired:
    """Give the mean difference a - b over queries, and how easily chance would give one as large.

    With d = a - b, query by query, both p-values are two-sided:

    - t-test: of mean(d) / (std(d) / sqrt(n)) under Student's t with n - 1 degrees of freedom;
    - sign-flip test: the share of all 2^n ways to give each difference a sign whose sum is at least as far
      from 0 as the sum of d. Exact where there are no more than `n_flips` ways (differences of 0 need no
      sign); else among `n_flips` random ways, the observed one counted in: (1 + hits) / (1 + n_flips).

    Both are 1 where all differences are 0; the t-test also where there is one query.

    Parameters
    ----------
    a, b
        Value of each query, in the same order, as `metric.per_query` gives them. A query that is NaN in one
        (or both) is left out of the test.
    n_flips
        Random choices of signs.
    seed
        Equal seeds give equal p-values.

    References
    ----------
    Smucker, Allan and Carterette (2007), A comparison of statistical significance tests for information
    retrieval evaluation.

    Examples
    --------
    >>> result = paired([0.9, 0.8, 0.7, float("nan")], [0.5, 0.6, 0.6, 0.4])
    >>> round(result.difference, 6), result.n_queries, round(result.t_test, 6), result.permutation
    (0.233333, 3, 0.118083, 0.25)
    """
    first, second = check_values(a, "a"), check_values(b, "b")
    check_lengths("a", len(first), b=second)
    check_draws(seed, n_flips=n_flips)
    gaps = gaps_between(first, second)
    flipped = sign_flips(np.nan_to_num(gaps)[:, None], n_flips, seed)  # 0 has no sign: it is left out
    return from_gaps(gaps, float(flipped[0]))


def check_draws(seed: object, **counts: object) -> None:
    """Refuse numbers of draws below 1 or beyond all use, and what seeds no generator."""
    for name, count in counts.items():
        if not is_whole(count, 1):
            raise ParameterError(name, count, "a whole number >= 1, below 2^31")
    if isinstance(seed, bool) or not (isinstance(seed, Integral) and int(seed) >= 0):
        raise ParameterError("seed", seed, "a whole number >= 0")


def check_share(value: object, name: str) -> float:
    """Give a level, a confidence or a power as a plain number."""
    share = as_double(value)
    if not 0.0 < share < 1.0:
        raise ParameterError(name, value, "between 0 and 1, both left out")
    return share


def check_named(values: object) -> dict[str, FloatArray]:
    """Give one column for each ranker by its name as text, all of one length."""
    if not isinstance(values, Mapping):
        wanted = "a mapping: the name of each ranker -> its value on each query"
        raise ParameterError("values", type(values).__name__, wanted)
    columns: dict[str, FloatArray] = {}
    for given, column in values.items():
        name = str(given)
        if name in columns:
            raise ParameterError("values", list(values), f"of different names, but two read {name!r}")
        columns[name] = check_values(column, name)
        first = next(iter(columns))
        check_lengths(first, len(columns[first]), **{name: columns[name]})
    return columns


def from_gaps(gaps: FloatArray, permutation: float) -> Paired:
    """Give the entry of a pair by its differences, NaN where one is undefined, and its sign-flip test."""
    known = gaps[~np.isnan(gaps)]
    return Paired(mean_of(known), len(known), t_test(known), permutation)


def gaps_between(first: FloatArray, second: FloatArray) -> FloatArray:
    """Give the differences, NaN where one is; those too small to be squared are 0."""
    gaps = first - second
    return np.where(np.abs(gaps) < 1.0 / LARGEST, 0.0, gaps)


def check_values(values: ArrayLike, name: str) -> FloatArray:
    """Give one number per query, NaN or small enough to be squared; those too small for that are 0."""
    column = check_column(values, name)
    infinite = np.isinf(column)
    if infinite.any():
        row, count = int(np.argmax(infinite)), int(infinite.sum())
        raise NonFiniteError(name, float(column[row]), f"query {row}", count, "values are finite or NaN.")
    if (np.abs(column) > LARGEST).any():
        raise ParameterError(name, float(np.nanmax(np.abs(column))), f"{LARGEST:g} at most, in size")
    return np.where(np.abs(column) < 1.0 / LARGEST, 0.0, column)


def t_test(differences: FloatArray) -> float:
    """Give the two-sided p-value of Student's test that the mean is 0."""
    if len(differences) < 2 or not differences.any():
        return 1.0
    from scipy import stats

    test: Any = stats.ttest_1samp
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # differences all equal: infinite t, p is 0
        return float(test(differences, 0.0).pvalue)


def holm(p_values: ArrayLike) -> FloatArray:
    """Give p-values of several tests, raised so that all of them together err with the level's probability.

    Of m tests the smallest p-value is multiplied by m, the next by m - 1, and so on; none comes below a
    smaller one's, nor above 1. No assumption is made on how the tests depend on one another.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    given = check_p_values(p_values)
    order = np.argsort(given, kind="stable")
    raised = np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1))
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(raised, 1.0)
    return adjusted


def check_p_values(p_values: ArrayLike) -> FloatArray:
    """Give numbers between 0 and 1."""
    given = check_column(p_values, "p_values")
    if not ((given >= 0.0) & (given <= 1.0)).all():
        raise ParameterError("p_values", given.tolist(), "between 0 and 1")
    return given


def against_best(
    values: Mapping[str, ArrayLike], *, level: float = 0.05, n_flips: int = 10_000, seed: int = 0
) -> dict[str, Comparison]:
    """Compare each ranker with the one of highest mean, by paired t-tests with Holm's correction.

    The best is chosen on the same queries, so it is flattered: equally good rankers
    are marked in more experiments than `level` says. A
    ranker that is not marked may still be worse.

    Parameters
    ----------
    values
        Name of each ranker -> its value on each query, NaN where undefined; higher is better.
    level
        Adjusted p-values below it are significant.
    n_flips, seed
        As for `paired`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> base = rng.random(50)
    >>> told = against_best({"good": base, "bad": base - 0.1 * rng.random(50), "same": base})
    >>> [name for name, one in told.items() if one.best], told["bad"].significant, told["same"].significant
    (['good'], True, False)
    """
    columns = check_named(values)
    if not columns:
        raise EmptyDataError("values")
    limit = check_share(level, "level")
    means = {name: mean_of(column) for name, column in columns.items()}
    best = max(means, key=lambda name: -np.inf if np.isnan(means[name]) else means[name])
    options = {"n_flips": n_flips, "seed": seed}
    tests = {name: paired(columns[best], column, **options) for name, column in columns.items()}
    del tests[best]
    adjusted = dict(zip(tests, holm([test.t_test for test in tests.values()]).tolist(), strict=True))
    return {
        name: Comparison(
            mean=mean,
            best=name == best,
            test=tests.get(name),
            adjusted=adjusted.get(name, 1.0),
            significant=adjusted.get(name, 1.0) < limit and tests[name].difference > 0.0,
        )
        for name, mean in means.items()
    }


def mean_of(values: FloatArray) -> float:
    """Mean over what is defined; NaN over nothing."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
