"""Facts of surrogates are true: whose minimisers follow the expected targets, and whose do not."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from concordant.surrogates import (
    SURROGATES,
    Duchi,
    Pairwise,
    PlackettLuce,
    Preorder,
    Softmax,
    Squared,
    surrogate,
)
from tests import oracles
from tests.helpers.surrogate_checks import CASES, MARGINS, reads

pytestmark = pytest.mark.once

PRESERVING = [name for name, case in CASES.items() if case.surrogate.order_preserving]
POSITIVE = [name for name, case in CASES.items() if case.surrogate.needs_positive]


def minimiser(loss, labels, probs, start):
    """Scores at which the expected loss over these label vectors is least; the gradient there."""
    labels = np.array(labels, dtype=float)
    k, n = labels.shape
    bound = loss.bind(labels.ravel(), n * np.arange(k + 1), np.repeat(np.array(probs, dtype=float), n))

    def expected(scores):
        values, grad = bound.value_and_grad(np.tile(scores, k))
        return values.sum(), grad.reshape(k, n).sum(axis=0)

    scores = minimize(expected, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 2000}).x
    return scores, np.abs(expected(scores)[1]).max()


def distributions(rng, kind, n_draws, least=0.0):
    """Label vectors of 3 or 4 items, with probabilities; expected targets >= `least`, 0.1 or more apart."""
    while n_draws:
        n, k = rng.integers(3, 5), rng.integers(1, 4)
        labels = rng.choice([0.0, 0.0, 0.5, 1.0, 2.0, 3.0], (k, n)) - (1.0 if kind == "signed" else 0.0)
        probs = rng.dirichlet(np.ones(k))
        means = probs @ labels
        if np.diff(np.sort(means)).min() >= 0.1 and (means.min() >= least or kind == "signed"):
            yield labels, probs, means
            n_draws -= 1


def follows(scores, means):
    """True if a higher mean always has a higher score."""
    pairs = itertools.permutations(range(len(means)), 2)
    return all(scores[i] > scores[j] + 1e-6 for i, j in pairs if means[i] > means[j])


def check_order_preserving(loss, *, least=0.0, n_draws=12):
    """Minimisers of the expected loss, from several starts, follow the expected targets."""
    rng = np.random.default_rng(0)
    for labels, probs, means in distributions(rng, reads(loss), n_draws, least):
        for start in (np.zeros(len(means)), rng.normal(size=len(means)) * 3):
            scores, rest = minimiser(loss, labels, probs, start)
            assert rest < 1e-6, (labels, probs, rest)
            assert follows(scores, means), (labels, probs, means, scores)


@pytest.mark.parametrize("name", PRESERVING)
def test_minimisers_follow_the_expected_targets(name):
    check_order_preserving(CASES[name].surrogate)


@pytest.mark.parametrize("name", POSITIVE)
def test_minimisers_follow_positive_expected_targets(name):
    assert not CASES[name].surrogate.order_preserving
    check_order_preserving(CASES[name].surrogate, least=0.2)


@pytest.mark.parametrize("margin", ["squared_hinge", "huber_hinge"])
@pytest.mark.parametrize("weighting", ["unit", "pairs", "gain"])
def test_the_check_rejects_the_preorder_loss(weighting, margin):
    with pytest.raises(AssertionError):
        check_order_preserving(Preorder(weighting, margin), least=0.2)


@pytest.mark.parametrize("name", POSITIVE)
def test_without_positive_targets_there_is_no_minimiser(name):
    """One item of target 0: the loss falls for ever as its score goes down."""
    loss, apart = CASES[name].surrogate, [0.0, 1.0, 5.0, 10.0, 20.0, 30.0]
    values = [loss([t, 0.0], [1.0, 0.0])[0][0] for t in apart]
    assert all(high > low for high, low in itertools.pairwise(values))
    assert all(loss([t, 0.0], [1.0, 0.0])[1][0] < 0.0 for t in apart)


def test_a_flat_margin_has_a_minimiser_even_then():
    for name in PRESERVING:
        if name.startswith("pairwise"):
            assert not np.any(CASES[name].surrogate([50.0, 0.0], [1.0, 0.0])[1])


def test_a_hinge_ties_items_of_different_expected_targets():
    """Expected targets 3, 2.5, 1: all minimal scores have items 0 and 1 equal (a linear program)."""
    means = np.array([3.0, 2.5, 1.0])
    pairs = list(itertools.permutations(range(3), 2))
    gaps = np.array([np.eye(3)[i] - np.eye(3)[j] for i, j in pairs])
    costs = np.r_[np.zeros(3), [means[i] for i, _ in pairs]]
    rows = {"A_ub": np.c_[-gaps, -np.eye(6)], "b_ub": -np.ones(6)}  # slack >= 1 - (s_i - s_j)
    bounds = [(None, None)] * 3 + [(0, None)] * 6
    least = linprog(costs, **rows, bounds=bounds).fun
    tied = Pairwise("hinge")([1.0, 1.0, 0.0], means)[0][0] - means.sum()  # less the items against themselves
    assert tied == pytest.approx(least)
    best = {"A_ub": np.r_[rows["A_ub"], [costs]], "b_ub": np.r_[rows["b_ub"], least + 1e-9]}
    ahead = linprog(np.r_[-1.0, 1.0, np.zeros(7)], **best, bounds=bounds).fun
    assert -ahead < 1e-6  # the most that item 0 is ahead of item 1 in any minimiser
    loss = Pairwise("hinge")
    assert (loss.order_preserving, loss.needs_positive) == (False, False)


INCONSISTENT = [(1, 0, 0), (0, 1, 1), (1, 0, 1)], np.array([9, 8, 9]) / 26


@pytest.mark.parametrize("margin", ["squared_hinge", "huber_hinge", "logistic", "exponential"])
@pytest.mark.parametrize("weighting", ["unit", "pairs", "gain"])
def test_preorder_is_inconsistent_with_the_pairs_it_counts(weighting, margin):
    """Binary grades (paper 1, footnote 3): expected grades order best, yet the minimiser orders otherwise."""
    labels, probs = INCONSISTENT
    scores, rest = minimiser(Preorder(weighting, margin), labels, probs, np.zeros(3))
    assert rest < 1e-6
    assert np.diff(np.sort(scores)).min() > 1e-3

    def wrong_pairs(label, order):
        return oracles.pd(lambda i, j: label[i] > label[j], order)

    best = oracles.best_expected(wrong_pairs, labels, probs, 3, greater=False)

    def regret(scores):
        order = np.argsort(-scores).tolist()
        return oracles.expected_over_labels(wrong_pairs, labels, probs, order) - best

    assert regret(scores) > 1e-3
    assert regret(probs @ np.array(labels)) == pytest.approx(0.0, abs=1e-12)
    consistent, _ = minimiser(Pairwise("squared_hinge"), labels, probs, np.zeros(3))
    assert regret(consistent) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("margin", MARGINS)
def test_facts_of_pairs_come_from_the_margin(margin):
    loss, shape = Pairwise(margin), Pairwise(margin).shape
    assert loss.order_preserving == shape.order_preserving
    assert loss.smooth == Preorder(margin=margin).smooth == shape.differentiable
    assert loss.needs_positive == (margin in {"logistic", "exponential"})


def test_table_of_facts():
    """order_preserving, needs_positive, reads, signed."""
    facts = {
        name: (loss.order_preserving, loss.needs_positive, loss.reads, loss.signed)
        for name, loss in ((name, surrogate(name)) for name in SURROGATES)
    }
    assert facts == {
        "squared": (True, False, "targets", True),
        "pairwise": (True, False, "targets", False),
        "softmax": (False, True, "targets", False),
        "duchi": (True, False, "targets", True),
        "plackett_luce": (False, False, "positions", False),
        "preorder": (False, False, "grades", False),
        "position_hinge": (False, False, "grades", False),
    }


@pytest.mark.parametrize("loss", [Pairwise("squared_hinge"), Pairwise("logistic"), Softmax()], ids=str)
def test_negative_targets_would_break_convexity(loss):
    """Why they are refused where `signed` is False."""
    bound = loss.attach(np.array([-1.0, 0.0]), np.array([0, 2]), np.ones(2))
    left, middle, right = (bound.value_and_grad(np.array([s, 0.0]))[0][0] for s in (-3.0, 0.0, 3.0))
    assert middle > (left + right) / 2 + 0.1


def test_squared_and_duchi_have_the_minimisers_they_say():
    """The expected targets themselves, up to the level; half of them under the square."""
    labels, probs = np.array([[1.0, 0.0, 2.0], [-1.0, 3.0, 0.0]]), np.array([0.25, 0.75])
    means = probs @ labels
    plain, _ = minimiser(Squared(centred=False), labels, probs, np.zeros(3))
    centred, _ = minimiser(Squared(), labels, probs, np.zeros(3))
    duchi, _ = minimiser(Duchi(), labels, probs, np.zeros(3))
    np.testing.assert_allclose(plain, means, atol=1e-7)
    np.testing.assert_allclose(centred - centred.mean(), means - means.mean(), atol=1e-7)
    np.testing.assert_allclose(duchi, means / 2, atol=1e-7)


def test_plackett_luce_recovers_the_model_that_drew_the_orders():
    """Under the distribution of orders that scores give, these scores are the minimiser."""
    truth = np.array([0.7, -0.2, -0.5, 0.0])
    orders = list(itertools.permutations(range(4)))
    probs = [oracles.plackett_luce(truth, order) for order in orders]
    positions = [np.argsort(order) + 1 for order in orders]
    scores, _ = minimiser(PlackettLuce(), positions, probs, np.zeros(4))
    np.testing.assert_allclose(scores - scores.mean(), truth - truth.mean(), atol=1e-6)
    values, _ = PlackettLuce()(np.tile(truth, 24), np.concatenate(positions), qid=np.repeat(np.arange(24), 4))
    np.testing.assert_allclose(np.exp(-values), probs, rtol=1e-12)
    assert math.fsum(np.exp(-values)) == pytest.approx(1.0)
