"""Scores so far apart that exponentials leave the doubles: infinite where the loss is, NaN nowhere else."""

import math

import numpy as np
import pytest

from concordant.surrogates import Duchi, Pairwise, Preorder
from tests.helpers.surrogate_checks import CASES, Query, check_all, drawn, join_batch, reads

pytestmark = pytest.mark.once


@pytest.mark.parametrize("make", [Pairwise, lambda margin: Preorder("unit", margin)])
def test_an_exponential_beyond_the_doubles_is_infinite(make):
    """Scores 800 apart, in the wrong order: value +inf, and the gradient pulls the pair together."""
    values, grad = make("exponential")([0.0, 800.0, 0.0], [1.0, 0.0, 0.0])
    assert values.tolist() == [math.inf]
    assert grad[:2].tolist() == [-math.inf, math.inf]
    assert math.isfinite(grad[2])


def test_an_exponential_in_the_right_order_stays_finite():
    values, grad = Pairwise("exponential")([800.0, 0.0, -800.0], [1.0, 0.0, 0.0])
    assert values.tolist() == [1.0]
    assert grad.tolist() == [0.0, 0.0, 0.0]


def test_pushed_beyond_the_doubles_from_both_sides():
    """No number can say where the middle item should go; a solver turns back at the infinite value."""
    values, grad = Pairwise("exponential")([0.0, 800.0, 1600.0], [1.0, 1.0, 1.0])
    assert values.tolist() == [math.inf]
    assert grad[[0, 2]].tolist() == [-math.inf, math.inf]
    assert math.isnan(grad[1])


@pytest.mark.parametrize(
    "surrogate",
    [Pairwise("exponential"), Preorder("gain", "exponential"), Duchi("cosh"), Duchi("quartic")],
    ids=str,
)
@pytest.mark.parametrize("by", ["weight", "target"])
def test_what_does_not_count_may_be_infinite(surrogate, by):
    """Weight 0 (or, in pairs, target 0) times infinity is not NaN."""
    scores, targets, weights = np.array([0.0, 1e100, 1.0]), np.array([3.0, 0.0, 1.0]), np.ones(3)
    if by == "weight":
        weights[[0, 2]] = 0.0
        if surrogate.name == "duchi":
            weights = 1.0 - weights
    elif surrogate.name == "duchi":
        return
    else:
        targets[[0, 2]] = 0.0
    values, grad = surrogate(scores, targets, weights=weights)
    product = surrogate.hessian_product(scores, targets, [1.0, 2.0, 3.0], weights=weights)
    assert np.isfinite(np.r_[values, grad, product]).all()


@pytest.mark.parametrize(
    "name", [name for name in CASES if "exponential" not in name and "duchi" not in name]
)
@pytest.mark.parametrize("spread", [100.0, 200.0, 1e3, 1e6, 1e12])
def test_far_scores_are_finite(name, spread):
    surrogate = CASES[name].surrogate
    scores, targets, rows = join_batch(drawn(np.random.default_rng(11), reads(surrogate), [6, 7], spread))
    values, grad = surrogate(scores, targets, **rows)
    product = surrogate.hessian_product(scores, targets, np.cos(scores), **rows)
    assert np.isfinite(np.r_[values, grad, product]).all()


def test_cosh_beyond_the_doubles_is_infinite_without_a_warning():
    values, grad = Duchi("cosh")([1e3, -1e3], [1.0, 1.0], qid=[1, 2])
    assert values.tolist() == [math.inf, math.inf]
    assert grad.tolist() == [math.inf, -math.inf]


@pytest.mark.parametrize("name", [name for name in CASES if "logistic" in name])
@pytest.mark.parametrize("apart", [1.0, 250.0, 299.0, 301.0, 355.0, 500.0, 599.0, 750.0, 1e5])
def test_logistic_groups_far_apart(name, apart):
    """Quotients of exponentials, also of two small ones, however the compiler orders the factors."""
    scores, targets = np.array([0.0, 0.5, 0.25, apart]), np.array([1.0, 2.0, 0.5, 0.0])
    for turn in (1.0, -1.0):
        check_all(CASES[name], [Query(turn * scores, targets, np.ones(4))], 1e-12)


def test_a_nearly_certain_choice_has_its_digits():
    """-log(p) of p = 1 - 3e-40 is 3e-40, not 0: in softmax, and at every place of an order."""
    for name, targets in (("softmax", [1.0, 0.0, 0.0, 0.0]), ("plackett_luce", [1.0, 2.0, 3.0, 4.0])):
        scores = np.array([280.0, 190.0, 100.0, 0.0])
        check_all(CASES[name], [Query(scores, np.array(targets), np.ones(4))], 1e-12)
        assert 0.0 < CASES[name].surrogate(scores, targets)[0][0] < 1e-30


def test_a_far_row_of_weight_0_costs_no_digits():
    query = Query(np.array([1e9, 0.1, 0.7]), np.array([0.0, 1.0, 0.3]), np.array([0.0, 1.0, 2.0]))
    for name in ("squared", "squared[plain]"):
        check_all(CASES[name], [query], 1e-12)
