"""Paired tests: whether one ranker is better than another on the same queries, or only seems to be."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.exceptions import EmptyDataError, NonFiniteError, ParameterError
from concordant.supervision.columns import check_column, check_lengths
from concordant.supervision.synthetic.items import check_counts
from concordant.types import ArrayLike, FloatArray

__all__ = ["Comparison", "Paired", "against_best", "holm", "paired"]

ROUNDING = 1e-12  # sums of the same numbers in another order are equal to this share of their size
BITS_AT_ONCE = 1 << 22  # signs drawn together


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
    check_counts(n_flips=n_flips)
    known = ~(np.isnan(first) | np.isnan(second))
    differences = first[known] - second[known]
    mean = float(differences.mean()) if differences.size else float("nan")
    tests = t_test(differences), sign_flips(differences, n_flips, seed)
    return Paired(mean, len(differences), *tests)


def check_values(values: ArrayLike, name: str) -> FloatArray:
    """Give one number per query, finite or NaN."""
    column = check_column(values, name)
    infinite = np.isinf(column)
    if infinite.any():
        row, count = int(np.argmax(infinite)), int(infinite.sum())
        raise NonFiniteError(name, float(column[row]), f"query {row}", count, "values are finite or NaN.")
    return column


def t_test(differences: FloatArray) -> float:
    """Give the two-sided p-value of Student's test that the mean is 0."""
    if len(differences) < 2 or not differences.any():
        return 1.0
    from scipy import stats

    test: Any = stats.ttest_1samp
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # differences all equal: infinite t, p is 0
        return float(test(differences, 0.0).pvalue)


def sign_flips(differences: FloatArray, n_flips: int, seed: int) -> float:
    """Give the two-sided p-value of the sign-flip test."""
    moving = differences[differences != 0.0]
    if not moving.size:
        return 1.0
    least = abs(moving.sum()) - ROUNDING * float(np.abs(moving).sum())
    exact, ways = ways_to_flip(len(moving), n_flips, seed)
    # A bit is 1 where the sign is kept: the sum is then twice what is kept, less all.
    hits, tried = 0, 0
    for bits in ways:
        sums = 2.0 * (bits @ moving) - moving.sum()
        hits, tried = hits + int((np.abs(sums) >= least).sum()), tried + len(bits)
    return hits / tried if exact else (1 + hits) / (1 + tried)


def ways_to_flip(n: int, n_flips: int, seed: int) -> tuple[bool, Iterator[FloatArray]]:
    """Whether all 2^n signs are few enough to try, and rows of n bits: all of them, else random ones."""
    exact = n < 63 and 2**n <= n_flips
    return exact, every_sign(n) if exact else random_signs(n, n_flips, seed)


def every_sign(n: int) -> Iterator[FloatArray]:
    """All 2^n rows of n bits."""
    numbers = np.arange(2**n)[:, None]
    yield ((numbers >> np.arange(n)) & 1).astype(np.float64)


def random_signs(n: int, n_flips: int, seed: int) -> Iterator[FloatArray]:
    """Rows of n random bits, some at a time."""
    rng, rows = np.random.default_rng(seed), max(1, BITS_AT_ONCE // n)
    for start in range(0, n_flips, rows):
        wanted = min(rows, n_flips - start) * n
        bits = np.unpackbits(np.frombuffer(rng.bytes(-(-wanted // 8)), dtype=np.uint8), count=wanted)
        yield bits.reshape(-1, n).astype(np.float64)


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
    if not values:
        raise EmptyDataError("values")
    columns = {name: check_column(column, name) for name, column in values.items()}
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
            significant=adjusted.get(name, 1.0) < level and tests[name].difference > 0.0,
        )
        for name, mean in means.items()
    }


def mean_of(values: FloatArray) -> float:
    """Mean over what is defined; NaN over nothing."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
