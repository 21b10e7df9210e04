"""Sorting by score in linear time equals numpy's, also where cells of equal width are of no use."""

import numpy as np
import pytest

from concordant.surrogates.long_pair_kernels import insertion_sort, rank_items, workspace

LAYOUTS = {
    "plain": lambda rng, n: rng.normal(size=n),
    "ties": lambda rng, n: rng.integers(-2, 3, n) / 2.0,
    "equal": lambda _, n: np.full(n, -3.0),
    "one far": lambda rng, n: np.r_[1e300, rng.normal(size=n)][:n],
    "two far": lambda rng, n: np.r_[1e308, -1e308, rng.normal(size=n)][:n],
    "all magnitudes": lambda rng, n: rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-320, 300, n),
    "subnormal": lambda rng, n: 5e-324 * rng.integers(-9, 10, n),
    "zeros of both signs": lambda rng, n: rng.choice([0.0, -0.0, 1e-9], n),
    "level 1e12": lambda rng, n: 1e12 + rng.normal(size=n),
    "clusters": lambda rng, n: rng.choice([0.0, 1e6], n) + 1e-6 * rng.normal(size=n),
    "sorted": lambda rng, n: np.sort(rng.normal(size=n)),
}


def sort(scores):
    space = workspace(len(scores) + 3)
    for array in space:
        array[...] = -7  # what earlier lists left
    order = space.order[: len(scores)]
    rank_items(scores, order, space.counts, space.tally)
    return order


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 100, 5000])
def test_highest_first(layout, n):
    scores = np.asarray(LAYOUTS[layout](np.random.default_rng(n), n), dtype=float)
    order = sort(scores)
    assert np.array_equal(np.sort(order), np.arange(n))
    assert np.array_equal(scores[order], -np.sort(-scores))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers_still_give_each_item_once(bad):
    """A solver that went too far asks for such: nothing may be written elsewhere."""
    scores = np.random.default_rng(0).normal(size=5000)
    scores[[5, 70]] = bad
    assert np.array_equal(np.sort(sort(scores)), np.arange(5000))


def test_insertion_gives_up_where_too_much_is_out_of_place():
    scores, order = np.arange(100.0), np.arange(100)
    assert not insertion_sort(order, scores, 8 * 100)
    assert insertion_sort(np.arange(100)[::-1].copy(), scores, 0)
