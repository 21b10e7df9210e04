"""Paired tests: true or apparent differences of rankers on the same queries."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant._base.validate import (
    INT32_MAX,
    check_column,
    check_lengths,
    check_share,
    check_whole,
    refuse_misaligned,
)
from concordant.exceptions import EmptyDataError, NonFiniteError, ParameterError
from concordant.types import ArrayLike, FloatArray

# Sums of differences under random signs: their distribution for rankers that are equally good.

ROUNDING = 1e-12  # relative difference of sums of the same numbers in another order
BITS_AT_ONCE = 1 << 22  # signs, or sums of signed rows, in memory at a time


def sign_flips(columns: FloatArray, n_flips: int, seed: int) -> FloatArray:
    """Two-sided p-value of the sign-flip test of each column of differences.

    Columns with few differences other than 0 are flipped in all ways, the others together by the same random
    signs of rows: the p-value of a column does not depend on its neighbours.
    """
    few = np.count_nonzero(columns, axis=0) <= math.log2(n_flips)
    p_values = np.empty(len(few))
    if not few.all():
        p_values[~few] = _share_as_far(columns[:, ~few], n_flips, seed)
    for column in np.flatnonzero(few):
        p_values[column] = _share_as_far(columns[:, [column]], n_flips, seed)[0]
    return p_values


def _share_as_far(columns: FloatArray, n_flips: int, seed: int) -> FloatArray:
    """Share of sign choices by which the sum of a column is at least as far from 0."""
    least = np.abs(columns.sum(axis=0)) - ROUNDING * np.abs(columns).sum(axis=0)
    hits, tried = np.zeros(len(least), dtype=np.int64), 0
    exact, ways = _flipped_sums(columns, n_flips, seed)
    for sums in ways:
        hits, tried = hits + (np.abs(sums) >= least).sum(axis=0), tried + len(sums)
    return hits / tried if exact else (1 + hits) / (1 + tried)


def _flipped_sums(columns: FloatArray, n_flips: int, seed: int) -> tuple[bool, Iterator[FloatArray]]:
    """Return whether all sign choices are enumerated, and the sums of the columns, one row per choice.

    Rows of zeros need no sign. If there are too many choices, `n_flips` random ones are drawn. The sums are
    yielded in blocks.
    """
    moving = columns[columns.any(axis=1)]
    exact = len(moving) < 63 and 2 ** len(moving) <= n_flips
    rows, totals = moving if exact else columns, columns.sum(axis=0)
    at_once = max(1, BITS_AT_ONCE // max(rows.shape))
    ways = _every_sign(len(rows), at_once) if exact else random_signs(len(rows), n_flips, at_once, seed)
    # A bit is 1 if the sign is unchanged: the sum is twice the sum of the unchanged rows, minus the total.
    return exact, (2.0 * (bits @ rows) - totals for bits in ways)


def _every_sign(n: int, at_once: int) -> Iterator[FloatArray]:
    """Yield all 2^n rows of n bits, in blocks."""
    for start in range(0, 2**n, at_once):
        numbers = np.arange(start, min(start + at_once, 2**n))[:, None]
        yield ((numbers >> np.arange(n)) & 1).astype(np.float64)


def random_signs(n: int, n_flips: int, at_once: int, seed: int) -> Iterator[FloatArray]:
    """Yield rows of n random bits, in blocks; the block size does not change them."""
    rng, words = np.random.default_rng(seed), -(-n // 64)  # 64-bit words per row
    for start in range(0, n_flips, at_once):
        size = min(at_once, n_flips - start), words
        drawn = rng.integers(2**64, size=size, dtype=np.uint64)
        yield np.unpackbits(drawn.view(np.uint8), axis=1, count=n).astype(np.float64)


LARGEST = 1e150  # of values, whose squares must not overflow


@dataclass(frozen=True)
class Paired:
    """Paired comparison of two rankers on the same queries.

    Attributes
    ----------
    difference
        Mean of a - b; NaN if no query has both.
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
    """Comparison of a ranker with the best one.

    Attributes
    ----------
    mean
        Mean over the queries on which the metric is defined.
    best
        True for the best ranker; then there is no test, and `significant` is false.
    test
        The paired test of the best minus this ranker; None for the best.
    adjusted
        p-value of the t-test after Holm's correction over all rankers but the best; 1 for the best.
    significant
        True if the ranker is worse, and `adjusted` is below the level.
    """

    mean: float
    best: bool
    test: Paired | None
    adjusted: float
    significant: bool


def paired(a: ArrayLike, b: ArrayLike, *, n_flips: int = 10_000, seed: int = 0) -> Paired:
    """Test the mean difference a - b over queries by the t-test and the sign-flip test.

    With d = a - b, query by query, both p-values are two-sided:

    - t-test: of mean(d) / (std(d) / sqrt(n)) under Student's t with n - 1 degrees of freedom;
    - sign-flip test: the share of all 2^n ways to give each difference a sign whose sum is at least as far
      from 0 as the sum of d. Exact where there are no more than `n_flips` ways (differences of 0 need no
      sign); else among `n_flips` random ways, including the observed: (1 + hits) / (1 + n_flips).

    Both are 1 if all differences are 0; the t-test also if there is one query.

    Parameters
    ----------
    a, b
        Value of each query, in the same order, as returned by `metric.per_query`. A query that is NaN in a
        or b is left out of the test.
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
    refuse_misaligned(a=a, b=b)
    first, second = _check_values(a, "a"), _check_values(b, "b")
    check_lengths("a", len(first), b=second)
    check_draws(seed, n_flips=n_flips)
    gaps = gaps_between(first, second)
    flipped = sign_flips(np.nan_to_num(gaps)[:, None], n_flips, seed)  # 0 has no sign and is left out
    return from_gaps(gaps, float(flipped[0]))


def check_draws(seed: object, **counts: object) -> None:
    """Check numbers of draws, and a seed."""
    for name, count in counts.items():
        check_whole(name, count, 1, INT32_MAX)
    check_whole("seed", seed, 0, math.inf)


def check_named(values: object) -> dict[str, FloatArray]:
    """Check one column for each ranker, by its name as text, all of one length."""
    if not isinstance(values, Mapping):
        raise ParameterError.because(
            f"values must map the name of each ranker to its values per query, got {type(values).__name__}."
        )
    refuse_misaligned(**{str(name): column for name, column in values.items()})
    columns: dict[str, FloatArray] = {}
    for key, column in values.items():
        name = str(key)
        if name in columns:
            raise ParameterError.because(
                f"Two of the values are named {name!r}. Give each ranker its own name."
            )
        columns[name] = _check_values(column, name)
        first = next(iter(columns))
        check_lengths(first, len(columns[first]), **{name: columns[name]})
    return columns


def from_gaps(gaps: FloatArray, permutation: float) -> Paired:
    """Build the result of a pair from its differences, NaN where undefined, and its sign-flip p-value."""
    defined = gaps[~np.isnan(gaps)]
    return Paired(mean_of(defined), len(defined), t_test(defined), permutation)


def gaps_between(first: FloatArray, second: FloatArray) -> FloatArray:
    """Compute differences, NaN if a value is NaN; differences too small to be squared become 0."""
    gaps = first - second
    return np.where(np.abs(gaps) < 1.0 / LARGEST, 0.0, gaps)


def _check_values(values: ArrayLike, name: str) -> FloatArray:
    """Check one number per query, NaN or small enough to be squared; those too small for that become 0."""
    column = check_column(values, name)
    infinite = np.isinf(column)
    if infinite.any():
        row, count = int(np.argmax(infinite)), int(infinite.sum())
        raise NonFiniteError(name, float(column[row]), f"query {row}", count, "values are finite or NaN.")
    if (np.abs(column) > LARGEST).any():
        raise ParameterError(name, float(np.nanmax(np.abs(column))), f"at most {LARGEST:g} in absolute value")
    return np.where(np.abs(column) < 1.0 / LARGEST, 0.0, column)


def t_test(differences: FloatArray) -> float:
    """Two-sided p-value of Student's test that the mean is 0."""
    if len(differences) < 2 or not differences.any():
        return 1.0
    from scipy import stats

    test: Any = stats.ttest_1samp
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # differences all equal: infinite t, p is 0
        return float(test(differences, 0.0).pvalue)


def holm(p_values: ArrayLike) -> FloatArray:
    """Adjust p-values such that the probability of any false rejection is at most the level.

    Of m tests the smallest p-value is multiplied by m, the next by m - 1, and so on; the order of p-values is
    preserved, and none exceeds 1. The tests may depend on each other in any way.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = _check_p_values(p_values)
    order = np.argsort(values, kind="stable")
    raised = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(raised, 1.0)
    return adjusted


def _check_p_values(p_values: ArrayLike) -> FloatArray:
    values = check_column(p_values, "p_values")
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise ParameterError("p_values", values.tolist(), "between 0 and 1")
    return values


def against_best(
    values: Mapping[str, ArrayLike], *, level: float = 0.05, n_flips: int = 10_000, seed: int = 0
) -> dict[str, Comparison]:
    """Compare each ranker with the one of highest mean, by paired t-tests with Holm's correction.

    The best is chosen on the same queries, which favours it: equally good rankers are marked as significant
    in more experiments than `level` says. A ranker that is not marked may still be worse.

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
    >>> result = against_best({"good": base, "bad": base - 0.1 * rng.random(50), "same": base})
    >>> best = [name for name, entry in result.items() if entry.best]
    >>> best, result["bad"].significant, result["same"].significant
    (['good'], True, False)
    """
    columns = check_named(values)
    if not columns:
        raise EmptyDataError("values")
    limit = check_share("level", level, 0.05)
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
    """Mean of the values that are not NaN; NaN if there are none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")


# Multiple tests: p-values are raised so that many comparisons do not find differences by chance.


def bonferroni(p_values: ArrayLike) -> FloatArray:
    """Multiply each p-value by their number, 1 at most.

    >>> bonferroni([0.01, 0.5]).tolist()
    [0.02, 1.0]
    """
    values = _check_p_values(p_values)
    return np.minimum(values * len(values), 1.0)


def benjamini_hochberg(p_values: ArrayLike) -> FloatArray:
    """Adjust p-values such that the expected share of false rejections is at most the level.

    This bounds the share of false discoveries, not the probability of a single one, and is proven for tests
    that are independent or positively dependent; tests of pairs that share a model need not be.

    References
    ----------
    Benjamini and Hochberg (1995), Controlling the false discovery rate.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(12).tolist()
    [0.03, 0.04, 0.04]
    """
    from scipy.stats import false_discovery_control

    return np.array(false_discovery_control(_check_p_values(p_values)))  # scipy returns a single one as it is


CORRECTIONS: Mapping[str, Callable[[ArrayLike], FloatArray] | None] = {
    "max_t": None,  # computed from the differences, not from p-values
    "holm": holm,
    "bonferroni": bonferroni,
    "bh": benjamini_hochberg,
    "none": _check_p_values,
}


def max_t(differences: FloatArray, n_flips: int, seed: int) -> FloatArray:
    """Compute p-values of all columns jointly, by sign-flips of whole rows.

    A row holds the differences of all pairs of rankers on one query, NaN where one is undefined. Each flip
    gives a query one sign for all its pairs, so that pairs depend on each other as in the data. The
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
    exact, ways = _flipped_sums(filled, n_flips, seed)
    for flipped in ways:
        sizes = t_of(flipped)[:, order]
        largest = np.maximum.accumulate(sizes[:, ::-1], axis=1)[
            :, ::-1
        ]  # of this pair and the following ones
        hits, tried = hits + (largest >= least[order]).sum(axis=0), tried + len(sizes)
    raised = np.maximum.accumulate(hits / tried if exact else (1 + hits) / (1 + tried))
    adjusted = np.empty(len(order))
    adjusted[order] = raised
    return np.where(t_of.usable, adjusted, 1.0)


class Studentised:
    """Squared paired t of columns from their sums, with fixed counts and sums of squares."""

    def __init__(self, counts: FloatArray, squares: FloatArray) -> None:
        self.usable = (counts > 1) & (squares > 0.0)
        self.freedom = np.where(self.usable, counts - 1.0, 0.0)
        # Of the squared sum; reached if all values are equal.
        self.bound = np.where(self.usable, counts * squares, 1.0)

    def __call__(self, sums: FloatArray) -> FloatArray:
        """Return t squared; infinite if all values are equal, 0 if there is nothing to test."""
        share = np.minimum(sums**2 / self.bound, 1.0) * self.usable
        with np.errstate(divide="ignore"):
            return np.asarray(self.freedom * (share / (1.0 - share)))
