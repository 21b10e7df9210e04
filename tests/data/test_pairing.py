"""Items with ordinal labels as pairs: all of them, or a fair draw."""

import itertools
import tracemalloc

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from concordant.data.pairing import pair_items, pair_positions
from concordant.data.queries import Queries
from concordant.exceptions import (
    EmptyDataError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    NotNumericError,
    ParameterError,
    ShapeError,
)
from tests import oracles

LABELS = st.sampled_from([-1e308, -1.0, 0.0, 5e-324, 1.0, 2.0, 1e308])


@st.composite
def items(draw):
    n = draw(st.integers(1, 14))
    labels = draw(st.lists(LABELS, min_size=n, max_size=n))
    groups = draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))
    return labels, groups


def as_set(item_pairs):
    """Pairs with the earlier row first, as the oracle gives them."""
    turned = [(b, a, -y) if a > b else (a, b, y) for a, b, y in rows_of(item_pairs)]
    assert len(set(turned)) == len(item_pairs), "a pair was given twice"
    return set(turned)


def rows_of(item_pairs):
    return list(zip(item_pairs.left.tolist(), item_pairs.right.tolist(), item_pairs.y.tolist(), strict=True))


@given(items(), st.integers(0, 3))
def test_every_pair_of_a_group_once(data, seed):
    labels, groups = data
    expected = oracles.all_item_pairs(labels, groups)
    if not expected:
        with pytest.raises(LabelError, match="no group has two items"):
            pair_items(None, labels, groups, seed=seed)
        return
    X = np.arange(2.0 * len(labels)).reshape(-1, 2)
    item_pairs = pair_items(X, labels, groups, seed=seed)
    assert as_set(item_pairs) == expected
    assert np.array_equal(item_pairs.pairs, np.stack((X[item_pairs.left], X[item_pairs.right]), axis=1))


@given(items(), st.integers(1, 20), st.integers(0, 3))
def test_a_cap_takes_some_of_them(data, cap, seed):
    labels, groups = data
    expected = oracles.all_item_pairs(labels, groups)
    if not expected:
        return
    pairs = as_set(pair_items(None, labels, groups, cap=cap, seed=seed))
    assert pairs <= expected
    for group in set(groups):
        n_pairs, possible = (sum(groups[i] == group for i, _, _ in some) for some in (pairs, expected))
        assert n_pairs == min(cap, possible)


def rejects_uniformity(draws, possible):
    """True if pairs are not drawn equally often, by the chi-squared test at one in a million."""
    from scipy.stats import chisquare

    counts = [sum(pair in drawn for drawn in draws) for pair in possible]
    return chisquare(counts).pvalue < 1e-6


def test_all_pairs_are_equally_likely_and_so_are_the_sides():
    labels = np.arange(6)
    samples = [pair_items(None, labels, cap=4, seed=seed) for seed in range(1500)]
    possible = list(itertools.permutations(range(6), 2))  # sides are drawn too
    draws = [{(left, right) for left, right, _ in rows_of(sample)} for sample in samples]
    assert not rejects_uniformity(draws, possible)
    assert rejects_uniformity([{pair for pair in drawn if pair[0] < pair[1]} for drawn in draws], possible)


def test_sides_are_random_where_rows_stand_best_first():
    item_pairs = pair_items(None, np.arange(200)[::-1], cap=5000)
    assert 0.45 < (item_pairs.y == 1).mean() < 0.55
    assert not (item_pairs.y == 0).any()


def test_equal_seeds_give_equal_pairs():
    labels, groups = np.arange(40) % 5, np.arange(40) % 3
    first, again, other = (pair_items(None, labels, groups, cap=20, seed=seed) for seed in (1, 1, 2))
    assert rows_of(first) == rows_of(again) != rows_of(other)


@given(st.integers(0, 2**52))
def test_numbers_become_places_without_rounding(number):
    around = np.array([max(number - 1, 0), number, number + 1])
    first, second = pair_positions(around)
    assert ((first >= 0) & (first < second)).all()
    assert (second * (second - 1) // 2 + first).tolist() == around.tolist()


def test_numbers_of_whole_rows_become_places():
    last = np.array([2, 3, 1000, 10**6, 94_906_265])  # where the square root is a whole number
    first, second = pair_positions(last * (last - 1) // 2)
    assert (first.tolist(), second.tolist()) == ([0] * 5, last.tolist())
    first, second = pair_positions(last * (last - 1) // 2 - 1)
    assert (first - second).tolist() == [-1] * 5


def test_a_long_group_is_not_written_out():
    labels = np.zeros(300_000)  # 45 thousand million pairs
    tracemalloc.start()
    item_pairs = pair_items(None, labels, cap=1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(item_pairs) == 1000
    assert item_pairs.pairs is None
    assert peak < 20e6


def test_empty_and_single_groups_give_nothing():
    item_pairs = pair_items(None, [1, 2, 3], Queries.from_sizes([0, 1, 0, 2]))
    assert as_set(item_pairs) == {(1, 2, 1)}


def test_frames_and_narrow_features():
    frame = pl.DataFrame({"a": [1.0, 2.0], "y": [0, 3]})
    item_pairs = pair_items(frame[["a"]], frame["y"])
    assert item_pairs.pairs.shape == (1, 2, 1)
    assert pair_items(np.ones((2, 1), dtype=np.float32), [1, 1]).pairs.dtype == np.float32


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"y": []}, EmptyDataError, "y has no rows"),
        ({"y": [1]}, LabelError, "no group has two items"),
        ({"y": [1, np.nan]}, NonFiniteError, "row 1"),
        ({"y": [1, np.inf]}, NonFiniteError, "row 1"),
        ({"y": ["a", "b"]}, NotNumericError, "row 0"),
        ({"y": [2**60, 2**60 + 1]}, NotNumericError, "exactly"),
        ({"y": [[1, 2]]}, ShapeError, "y"),
        ({"y": [1, 2], "qid": [1]}, LengthMismatchError, "qid has 1"),
        ({"y": [1, 2], "X": [[1.0]]}, LengthMismatchError, "X has 1"),
        ({"y": [1, 2], "X": [[1.0], [np.nan]]}, NonFiniteError, "row 1"),
        ({"y": [1, 2], "X": sparse.csr_matrix((2, 2))}, ParameterError, "dense"),
        ({"y": [1, 2], "cap": 0}, ParameterError, "cap must be an integer >= 1 or None, got 0"),
        ({"y": [1, 2], "cap": 1.5}, ParameterError, "integer"),
    ],
)
def test_bad_input(arguments, error, text):
    with pytest.raises(error, match=text):
        pair_items(**{"X": None, **arguments})
