"""Paired tests: against scipy, and against their definitions on few queries."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from concordant.evaluation import against_best, holm, paired
from concordant.evaluation.significance import random_signs, sign_flips
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    LengthMismatchError,
    NonFiniteError,
    NotNumericError,
    ParameterError,
)

EIGHTHS = st.integers(-8, 8).map(lambda number: number / 8)  # exact sums, many ties and zeros


def every_flip(differences):
    """Share of all choices of signs whose sum is at least as far from 0, by definition."""
    reached = abs(sum(differences))
    sums = [
        abs(sum(sign * difference for sign, difference in zip(signs, differences, strict=True)))
        for signs in itertools.product((-1, 1), repeat=len(differences))
    ]
    return sum(total >= reached - 1e-12 for total in sums) / len(sums)


def holm_by_steps(p_values, level):
    """Which hypotheses Holm's procedure rejects, step by step as he gives it."""
    rejected, left = set(), sorted(range(len(p_values)), key=lambda i: p_values[i])
    while left and p_values[left[0]] < level / len(left):
        rejected.add(left.pop(0))
    return rejected


@given(st.lists(EIGHTHS, min_size=1, max_size=8))
def test_flips_are_counted_exactly_on_few_queries(differences):
    assert paired(differences, np.zeros(len(differences))).permutation == every_flip(differences)


def test_flips_are_those_of_scipy():
    a, b = np.random.default_rng(0).random((2, 9))
    real = stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", n_resamples=np.inf
    )
    assert paired(a, b).permutation == pytest.approx(real.pvalue, abs=1e-12)


def test_random_flips_come_close_to_all():
    a, b = np.random.default_rng(1).random((2, 14))
    exact = paired(a, b, n_flips=2**14).permutation
    assert exact == every_flip(a - b)
    for seed in range(3):
        drawn = paired(a, b, n_flips=10_000, seed=seed).permutation
        assert drawn == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 10_000))
        assert drawn == paired(a, b, n_flips=10_000, seed=seed).permutation


def test_random_flips_are_uniform_over_blocks(monkeypatch):
    """The p-value does not depend on how many signs are drawn at once, nor on columns beside it."""
    gaps = np.random.default_rng(2).normal(0.1, 1, (200, 3))
    gaps[8:, 2] = 0.0  # flipped in all 2^8 ways
    whole = sign_flips(gaps, 1000, 5)
    assert whole[:2] == pytest.approx([stats.ttest_1samp(gap, 0).pvalue for gap in gaps.T[:2]], abs=0.05)
    assert whole[2] == every_flip(gaps[:8, 2])
    assert [float(sign_flips(gap[:, None], 1000, 5)[0]) for gap in gaps.T] == whole.tolist()
    monkeypatch.setattr("concordant.evaluation.significance.BITS_AT_ONCE", 1 << 10)
    assert sign_flips(gaps, 1000, 5).tolist() == whole.tolist()


def test_random_signs_are_fair_and_not_those_of_neighbours():
    bits = np.vstack(list(random_signs(70, 4000, 999, 0)))  # more than a word a row
    assert bits.shape == (4000, 70)
    assert set(np.unique(bits)) == {0.0, 1.0}
    together = np.corrcoef(bits.T)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(4000)
    assert np.abs(together - np.eye(70)).max() < 5.5 / np.sqrt(4000)


def test_a_p_value_of_chance_is_never_zero():
    ones = np.arange(1.0, 101.0)
    assert paired(ones, 0 * ones, n_flips=99).permutation == 1 / 100


@pytest.mark.parametrize("n", [2, 3, 30, 500])
def test_t_test_is_that_of_scipy(n):
    rng = np.random.default_rng(n)
    a = rng.random(n)
    b = a + 0.1 * rng.normal(size=n)
    result = paired(a, b)
    assert result.t_test == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-12)
    assert result.difference == pytest.approx((a - b).mean(), abs=1e-15)
    assert paired(b, a).t_test == pytest.approx(result.t_test, rel=1e-12)


def test_undefined_queries_are_left_out_in_pairs():
    a = np.array([0.1, np.nan, 0.3, 0.9, np.nan, 0.5])
    b = np.array([0.2, 0.5, np.nan, 0.1, np.nan, 0.4])
    defined = [0, 3, 5]
    assert paired(a, b) == paired(a[defined], b[defined])
    assert paired(a, b).n_queries == 3
    assert paired(a, b).t_test == pytest.approx(stats.ttest_rel(a, b, nan_policy="omit").pvalue)


def test_no_difference_and_no_queries():
    same = paired([0.5, 0.25], [0.5, 0.25])
    assert (same.difference, same.t_test, same.permutation) == (0.0, 1.0, 1.0)
    none = paired([np.nan], [1.0])
    assert np.isnan(none.difference)
    assert (none.n_queries, none.t_test, none.permutation) == (0, 1.0, 1.0)
    assert paired([1.0], [0.0]).t_test == 1.0  # one query has no spread
    assert paired([1.0, 1.0, 1.0], [0.5, 0.5, 0.5]).t_test == 0.0  # no spread at all


@pytest.mark.parametrize(
    ("a", "b", "error"),
    [
        ([1.0, 2.0], [1.0], LengthMismatchError),
        ([1.0, np.inf], [1.0, 1.0], NonFiniteError),
        (["a"], [1.0], NotNumericError),
    ],
)
def test_bad_input_has_a_name(a, b, error):
    with pytest.raises(error):
        paired(a, b)


def test_bad_parameters_have_a_name():
    with pytest.raises(ParameterError, match="n_flips"):
        paired([1.0], [0.0], n_flips=0)
    with pytest.raises(ParameterError, match="p_values"):
        holm([0.5, 1.5])
    with pytest.raises(ParameterError, match="p_values"):
        holm([0.5, np.nan])
    with pytest.raises(EmptyDataError):
        against_best({})
    for seed in (-1, "x", True):
        with pytest.raises(ParameterError, match="seed"):
            paired([1.0], [0.0], seed=seed)
    for level in ("x", 0.0, np.nan):
        with pytest.raises(ParameterError, match="level"):
            against_best({"a": [1.0], "b": [0.0]}, level=level)
    with pytest.raises(ParameterError, match=r"values must map .* got list"):
        against_best([[1.0], [0.0]])
    assert issubclass(ParameterError, ConcordantError)


def test_rankers_may_have_the_names_of_parameters():
    assert against_best({"a": [1.0], "reference": [0.0], "n_rows": [2.0]})["n_rows"].best


@given(
    st.lists(st.integers(0, 40).map(lambda n: n / 200), max_size=7), st.sampled_from([0.01, 0.05, 0.1, 0.5])
)
def test_holm_rejects_what_the_procedure_does(p_values, level):
    # Levels between the p-values' multiples: there both sides round alike.
    level += 1e-6
    assert {i for i, p in enumerate(holm(p_values)) if p < level} == holm_by_steps(p_values, level)


def test_holm_keeps_order_and_range():
    adjusted = holm([0.9, 0.001, 0.5, 0.001])
    assert adjusted.tolist() == [1.0, 0.004, 1.0, 0.004]
    assert holm([]).size == 0


def test_a_deliberately_worse_ranker_is_marked():
    rng = np.random.default_rng(3)
    good = rng.random(200)
    noise = 0.05 * rng.normal(size=(2, 200))
    noise -= noise.mean(axis=1, keepdims=True)
    results = against_best({"worse": good - 0.05 + noise[0], "good": good, "as good": good - 1e-4 + noise[1]})
    assert [name for name, result in results.items() if result.best] == ["good"]
    assert {name: result.significant for name, result in results.items()} == {
        "worse": True,
        "good": False,
        "as good": False,
    }
    worse = results["worse"]
    assert worse.test == paired(good, good - 0.05 + noise[0])
    assert worse.adjusted == pytest.approx(2 * worse.test.t_test)
    assert results["good"].test is None
    assert results["good"].mean == good.mean()


def test_a_ranker_that_is_better_where_both_are_defined_is_not_worse():
    """Means over different queries may disagree with the paired difference."""
    low = np.r_[np.linspace(0.1, 0.2, 50), np.full(50, np.nan)]
    high = np.r_[np.linspace(0.0, 0.1, 50), np.ones(50)]
    results = against_best({"high": high, "low": low})
    assert results["high"].best
    assert results["low"].adjusted < 0.05
    assert not results["low"].significant


def test_rankers_without_any_value_are_never_the_best():
    results = against_best({"none": [np.nan, np.nan], "some": [0.0, 0.1]})
    assert results["some"].best
    assert np.isnan(results["none"].mean)
    assert not results["none"].significant


def test_two_equal_rankers_differ_at_the_level():
    rng = np.random.default_rng(4)
    marked = sum(
        any(result.significant for result in against_best({"a": a, "b": b}, n_flips=1).values())
        for a, b in rng.normal(size=(1000, 2, 40))
    )
    assert 30 <= marked <= 72  # 50 expected; three standard deviations
