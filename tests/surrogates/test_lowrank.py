"""Low-rank surrogates, compared with enumeration and exact arithmetic; theorems tested by falsification."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from concordant.exceptions import (
    EmptyDataError,
    GradeError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    NotNumericError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from concordant.metrics import metric
from concordant.surrogates import LowRankSurrogate
from concordant.surrogates import lowrank_surrogate as calibration
from concordant.theory.lowrank import (
    closed_form,
    dimensions,
    every_label,
    every_order,
    every_preference,
    loss_matrix,
)
from tests import oracles

pytestmark = pytest.mark.once

EPSILON = np.finfo(float).eps


def grade_pairs(y, order):
    return oracles.pd(lambda i, j: float(y[i] > y[j]), order)


# name -> (value of an order, whether it is a gain, number of grades)
GRADED = {
    "wta": (lambda y, order: oracles.precision(y, order, 1), True, 2),
    "p@2": (lambda y, order: oracles.precision(y, order, 2), True, 2),
    "p@3": (lambda y, order: oracles.precision(y, order, 3), True, 2),
    "p@3[precision_denominator=min]": (
        lambda y, order: oracles.precision(y, order, 3, denominator="min"),
        True,
        2,
    ),
    "eru": (oracles.eru, True, 3),
    "eru(v=1,w=2)": (lambda y, order: oracles.eru(y, order, v=1.0, w=2.0), True, 3),
    "dcg": (oracles.dcg, True, 3),
    "ndcg": (oracles.ndcg, True, 3),
    "ndcg@2": (lambda y, order: oracles.ndcg(y, order, k=2), True, 3),
    "ndcg[lightgbm]": (oracles.ndcg, True, 3),  # which gives 1 where nothing is relevant
    "ap": (oracles.ap, True, 2),
    "ap[relevant_from=2]": (lambda y, order: oracles.ap(y, order, relevant_from=2), True, 3),
    "ap@2": (lambda y, order: oracles.ap(y, order, k=2), True, 2),
    "ap@2[ap_denominator=min]": (lambda y, order: oracles.ap(y, order, k=2, denominator="min"), True, 2),
    "ap@2[ap_denominator=uncut]": (oracles.ap, True, 2),
    "pd": (grade_pairs, False, 3),
    "wpd": (lambda y, order: oracles.pd(lambda i, j: max(2.0 ** y[i] - 2.0 ** y[j], 0), order), False, 3),
}
OTHERS = {
    "auc": (oracles.auc, True, 2),
    "rr": (oracles.rr, True, 2),
    "err": (oracles.err, True, 3),
}
SIZES = (1, 2, 3, 4)


def closed_forms(name, labels):
    forms = ("full", "half") if name.startswith(("pd", "wpd")) else ("full",)
    return [closed_form(name, labels, dimension=form) for form in forms]


# ---------------------------------------------------------------- loss matrices and closed forms


@pytest.mark.parametrize("n_items", SIZES)
@pytest.mark.parametrize("name", GRADED | OTHERS)
def test_loss_matrices_follow_the_definitions(name, n_items):
    value, gain, n_grades = (GRADED | OTHERS)[name]
    labels = every_label(n_items, n_grades)
    expected = oracles.order_losses(value, labels.tolist(), n_items, gain=gain)
    np.testing.assert_allclose(loss_matrix(name, labels), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_items", [*SIZES, 5])
@pytest.mark.parametrize("name", GRADED)
def test_closed_forms_make_up_the_losses(name, n_items):
    labels = every_label(n_items, GRADED[name][2])
    losses = loss_matrix(name, labels)
    for surrogate in closed_forms(name, labels):
        np.testing.assert_allclose(surrogate.loss_matrix(), losses, rtol=0, atol=1e-12)
        if n_items < 5:
            from_losses = LowRankSurrogate.from_loss_matrix(losses)
            assert from_losses.dimension <= surrogate.dimension or n_items == 1
            assert (
                from_losses.dimension
                == from_losses.proof.smallest_dimension
                == surrogate.proof.smallest_dimension
            )


def random_graphs(rng, n_items, count=12):
    """Weighted graphs: dense, sparse, and empty ones, cyclic too."""
    graphs = rng.exponential(size=(count, n_items, n_items)) * (rng.random((count, n_items, n_items)) < 0.5)
    graphs[:, range(n_items), range(n_items)] = 0
    graphs[0] = 0
    return graphs


@pytest.mark.parametrize("n_items", [2, 3, 4])
@pytest.mark.parametrize("name", ["pd", "wpd"])
def test_disagreement_on_graphs(name, n_items):
    graphs = random_graphs(np.random.default_rng(n_items), n_items)
    values = lambda a, order: oracles.pd(lambda i, j: a[i][j], order)  # noqa: E731
    expected = oracles.order_losses(values, graphs.tolist(), n_items, gain=False)
    np.testing.assert_allclose(loss_matrix(name, graphs), expected, atol=1e-12)
    full, half = (closed_form(name, graphs, dimension=form) for form in ("full", "half"))
    assert (full.dimension, half.dimension) == (n_items * (n_items - 1), n_items * (n_items - 1) // 2)
    for surrogate in (full, half):
        np.testing.assert_allclose(surrogate.loss_matrix(), expected, atol=1e-12)


@pytest.mark.parametrize("n_items", [2, 3, 4])
def test_targets_are_those_of_the_paper(n_items):
    labels = every_label(n_items)
    np.testing.assert_array_equal(closed_form("p@2", labels).targets, labels)
    share = labels / np.maximum(labels.sum(axis=1, keepdims=True), 1)
    pairs = [(i, j) for i in range(n_items) for j in range(i + 1)]
    products = [[y[i] * s[j] for i, j in pairs] for y, s in zip(labels, share, strict=True)]
    np.testing.assert_allclose(closed_form("ap", labels).targets, products)
    graded = every_label(n_items, 3)
    np.testing.assert_allclose(closed_form("eru(v=1)", graded).targets, np.maximum(graded - 1, 0))
    for name in ("dcg", "ndcg"):
        targets = [metric(name).targets(y) for y in graded]
        np.testing.assert_allclose(closed_form(name, graded).targets, targets)


@pytest.mark.parametrize("n_items", [2, 3, 4])
def test_decoding_a_closed_form_is_the_exact_decoder(n_items):
    """Sorting for sums over places; else as enumerated from the decoder's own objective."""
    rng = np.random.default_rng(n_items)
    orders = every_order(n_items)
    for _ in range(50):
        u = rng.standard_normal(n_items)
        order = orders[closed_form("dcg", every_label(n_items)).decode([u])[0]]
        assert order.tolist() == np.argsort(-u).tolist()
        weights = rng.standard_normal((n_items, n_items))
        i, j = np.nonzero(~np.eye(n_items, dtype=bool))
        costs = [oracles.pd(lambda i, j, a=weights: a[i, j], order.tolist()) for order in orders]
        column = closed_form("pd", every_preference(n_items)).decode([weights[i, j]])[0]
        assert costs[column] == pytest.approx(min(costs))


# ---------------------------------------------------------------- the smallest dimension


def fractions(matrix):
    return [[Fraction(entry).limit_denominator(10_000) for entry in row] for row in matrix.tolist()]


@pytest.mark.parametrize("n_items", [2, 3, 4])
@pytest.mark.parametrize("name", ["wta", "p@2", "ap", "rr", "auc", "pd", "graphs"])
def test_the_smallest_dimension_is_the_exact_rank(name, n_items):
    labels = every_preference(n_items) if name == "graphs" else every_label(n_items)
    losses = loss_matrix("pd" if name == "graphs" else name, labels)
    proof = LowRankSurrogate.from_loss_matrix(losses).proof
    exact = fractions(losses)
    assert proof.dimension == proof.smallest_dimension == oracles.exact_rank(oracles.doubly_centred(exact))
    assert proof.matrix_rank == oracles.exact_rank(exact)
    assert proof.dimension <= min(proof.matrix_rank, losses.shape[0] - 1, losses.shape[1] - 1)


@given(
    hnp.arrays(np.int64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.integers(-3, 3))
)
def test_the_smallest_dimension_of_small_whole_losses(losses):
    surrogate = LowRankSurrogate.from_loss_matrix(losses)
    assert surrogate.dimension == oracles.exact_rank(oracles.doubly_centred(losses.tolist()))
    assert surrogate.proof.matrix_rank == oracles.exact_rank(losses.tolist())
    np.testing.assert_allclose(surrogate.loss_matrix(), losses, atol=1e-12)


@pytest.mark.parametrize("n_items", [3, 4, 5])
def test_how_many_numbers_metrics_need(n_items):
    pairs = n_items * (n_items - 1) // 2
    additive, ap, rr = (dimensions(name, n_items) for name in ("ndcg", "ap", "rr"))
    assert (additive.smallest, additive.closed_form) == (n_items - 1, n_items)
    assert (ap.smallest, ap.closed_form) == (pairs + n_items - 2, pairs + n_items)
    assert (rr.smallest, rr.closed_form) == (2**n_items - n_items - 1, None)
    assert additive.general == ap.general == rr.general == 2**n_items - 1
    graphs = dimensions("pd", n_items, every_preference(n_items))
    assert (graphs.smallest, graphs.closed_form, graphs.general) == (pairs, pairs, 2 * pairs - 1)


@pytest.mark.parametrize("n_items", [2, 3, 4])
def test_disagreement_has_one_rank_more_than_published(n_items):
    """The paper says rank <= n(n-1)/2; on these labels, of two total weights, no constant makes it so."""
    labels = np.concatenate((every_preference(n_items), 2 * every_preference(n_items)))
    losses, pairs = loss_matrix("pd", labels), n_items * (n_items - 1) // 2
    exact = fractions(losses)
    assert oracles.exact_rank(exact) == pairs + 1
    for constant in (Fraction(1, 2), Fraction(1), Fraction(3, 2)):
        assert oracles.exact_rank([[entry - constant for entry in row] for row in exact]) == pairs + 1
    assert closed_form("pd", labels, dimension="half").dimension == pairs


# ---------------------------------------------------------------- Theorem 3


def nasty():
    """Loss matrices of ranking metrics, random ones, and degenerate ones."""
    rng = np.random.default_rng(0)
    plain = rng.random((6, 8))
    return {
        "ap": loss_matrix("ap", every_label(4)),
        "ndcg": loss_matrix("ndcg", every_label(3, 3)),
        "pd": loss_matrix("pd", random_graphs(rng, 4)),
        "rr": loss_matrix("rr", every_label(4)),
        "zero-one": 1 - np.eye(7),
        "random": plain,
        "wide": rng.standard_normal((3, 40)),
        "tall": rng.standard_normal((40, 3)),
        "constant": np.full((4, 5), 0.1),
        "zero": np.zeros((3, 3)),
        "cost and level": rng.random((6, 1)) + 1e3 * rng.random((1, 7)),
        "rank 1": np.outer(rng.random(7), rng.standard_normal(5)),
        "huge": 1e12 * plain,
        "tiny": 1e-12 * plain,
        "vanishing": 1e-300 * plain,
        "largest": 1e99 * plain,
        "far from 0": 1e12 + rng.random((5, 6)),
        "all sizes": plain * 10.0 ** rng.uniform(-12, 12, plain.shape),
        "equal columns": rng.random((5, 4))[:, [0, 0, 1, 2, 3, 3]],
        "equal rows": rng.random((3, 6))[[0, 1, 1, 2, 0]],
        "one label": rng.random((1, 4)),
        "one prediction": rng.random((4, 1)),
    }


NASTY = nasty()
KINDS = {"smallest": LowRankSurrogate.from_loss_matrix, "general": LowRankSurrogate.general}


def draw_labels(rng, n_labels, count):
    """Distributions of the labels: certain, of two, sparse, even, concentrated."""
    draws = [
        np.eye(n_labels)[rng.integers(0, n_labels, count)],
        rng.dirichlet(np.full(n_labels, 1.0), count),
        rng.dirichlet(np.full(n_labels, 0.1), count),
        rng.dirichlet(np.full(n_labels, 100.0), count),
    ]
    halves = (np.eye(n_labels)[rng.integers(0, n_labels, count)] + draws[0]) / 2
    return np.concatenate((*draws, halves))


def regrets(losses, probs, decisions):
    expected = probs @ (losses - losses[:, :1])
    return expected[np.arange(len(probs)), decisions] - expected.min(axis=1)


def rounding(losses):
    """What sums over the labels and the dimensions of differences of losses may be off by."""
    return 64 * EPSILON * math.sqrt(losses.size) * np.abs(losses - losses[:, :1]).max()


def check_calibrated(surrogate, losses, seed=0):
    """Decoding the expected target has no regret, whatever the distribution of the labels."""
    probs = draw_labels(np.random.default_rng(seed), len(losses), 400)
    gaps = regrets(losses, probs, surrogate.decode(probs @ surrogate.targets))
    assert gaps.max() <= rounding(losses), gaps.max()


def check_bound(proof, losses, seed=0):
    """No regret is larger than its bound, near the best u and far from it."""
    surrogate, rng = proof.surrogate, np.random.default_rng(seed)
    probs = draw_labels(rng, len(losses), 400)
    best = probs @ surrogate.targets
    for size in (1e-9, 1e-3, 0.1, 1.0, 100.0):
        u = best + size * np.abs(surrogate.targets).max(initial=0.0) * rng.standard_normal(best.shape)
        gaps = regrets(losses, probs, surrogate.decode(u))
        bound = proof.regret_bound(((u - best) ** 2).sum(axis=1))
        assert (gaps <= bound * (1 + 1e-9) + rounding(losses) * (1 + size)).all()
    assert proof.verify() <= 1.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NASTY)
def test_the_expected_target_decodes_without_regret(name, kind):
    check_calibrated(KINDS[kind](NASTY[name]), NASTY[name])


@pytest.mark.parametrize("tol", [1e-9, 0.3])
@pytest.mark.parametrize("name", NASTY)
def test_no_regret_is_larger_than_its_bound(name, tol):
    check_bound(LowRankSurrogate.from_loss_matrix(NASTY[name], tol).proof, NASTY[name])
    check_bound(LowRankSurrogate.general(NASTY[name]).proof, NASTY[name])


@pytest.mark.parametrize("name", ["ap", "p@2", "eru", "ndcg", "pd", "wpd"])
def test_closed_forms_are_calibrated(name):
    labels = every_label(4)
    losses = loss_matrix(name, labels)
    for surrogate in closed_forms(name, labels):
        check_calibrated(surrogate, losses)
        check_bound(surrogate.proof, losses)


LOSSES = np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 3.0], [2.0, 1.0, 0.0], [5.0, 2.0, 0.5]])
GOOD = LowRankSurrogate.from_loss_matrix(LOSSES)
SHIFTED = GOOD.targets.copy()
SHIFTED[0] += 0.5
WRONG = {
    "negated directions": LowRankSurrogate(GOOD.targets, -GOOD.directions, GOOD.costs, GOOD.levels, LOSSES),
    "no costs": LowRankSurrogate(GOOD.targets, GOOD.directions, None, GOOD.levels, LOSSES),
    "a shifted target": LowRankSurrogate(SHIFTED, GOOD.directions, GOOD.costs, GOOD.levels, LOSSES),
    "a number too few": LowRankSurrogate.from_loss_matrix(LOSSES, tol=0.5),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_checks_reject_wrong_surrogates(name):
    check_calibrated(GOOD, LOSSES)
    check_bound(GOOD.proof, LOSSES)
    with pytest.raises(AssertionError):
        check_calibrated(WRONG[name], LOSSES)
    pretended = dataclasses.replace(WRONG[name].proof, residual=0.0)
    assert pretended.verify() > 1.0
    with pytest.raises(AssertionError):
        check_bound(pretended, LOSSES)
    assert WRONG[name].proof.verify() <= 1.0  # its residual owns up to it


@pytest.mark.parametrize("name", ["zero-one", "ap", "pd", "rank 1", "random", "huge", "tiny"])
def test_no_smaller_diameter_would_do(name):
    proof = LowRankSurrogate.from_loss_matrix(NASTY[name]).proof
    assert dataclasses.replace(proof, diameter=proof.diameter / 2).verify() > 1.0


@pytest.mark.parametrize("name", ["zero-one", "ap", "random", "huge", "tiny"])
def test_what_is_put_down_to_rounding_is_little(name):
    """A regret beyond its bound by 1e-11 of the largest loss does not pass for rounding."""
    proof = LowRankSurrogate.from_loss_matrix(NASTY[name]).proof
    u = 10.0 * proof.surrogate.targets
    assert (proof.rounding(u) <= 1e-11 * np.abs(proof.surrogate.net_losses).max()).all()


@pytest.mark.parametrize("size", [5e-324, 1e-320, 1e-310, 1e-300])
def test_losses_so_small_that_digits_are_lost(size):
    for losses in (size * np.eye(2), size * (1 - np.eye(3))):
        for kind in KINDS.values():
            assert kind(losses).proof.verify(300) <= 1.0


def test_the_bound_is_attained():
    """Two predictions, u on the other side of the border: regret = diameter * distance."""
    proof = LowRankSurrogate.from_loss_matrix([[0.0, 3.0], [1.0, 0.0]]).proof
    assert 0.9999 < proof.verify() <= 1.0


def test_rows_are_centred_to_the_last_digit():
    """The mean of what is left of each row is at most what the last digit of its level can change."""
    rng = np.random.default_rng(0)
    for size in (1e6, 1e12, 1e15):
        losses = size * rng.random((40, 1)) + rng.random((40, 50))
        _, _, levels = calibration.centre_losses(losses)
        left = (losses - levels[:, None]).mean(axis=1)
        assert (np.abs(left) <= 0.51 * np.spacing(levels)).all()


def test_levels_do_not_set_the_threshold():
    """A tolerance is a share of what is learned, not of what all predictions have in common."""
    pattern = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    far = LowRankSurrogate.from_loss_matrix(pattern + 1e6 * np.arange(3)[:, None], tol=1e-3)
    assert far.dimension == far.proof.smallest_dimension == 2
    assert far.proof.matrix_rank == 3


def test_the_general_surrogate_leaves_the_levels_out():
    losses = LOSSES + 1e6 * np.arange(4)[:, None]
    general = LowRankSurrogate.general(losses)
    np.testing.assert_allclose(general.levels, losses.mean(axis=1))
    np.testing.assert_allclose(general.costs, LOSSES[-1] - LOSSES[-1].mean(), atol=1e-9)
    rest = LOSSES - LOSSES.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(general.directions, (rest[:-1] - rest[-1]).T, atol=1e-9)


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int8, bool])
def test_losses_of_other_kinds(kind):
    losses = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]], dtype=kind)
    surrogate, expected = (
        LowRankSurrogate.from_loss_matrix(matrix) for matrix in (losses, losses.astype(float))
    )
    assert surrogate.targets.dtype == np.float64
    np.testing.assert_array_equal(surrogate.targets, expected.targets)
    u = expected.targets.astype(np.float32)
    assert expected.decode(u).tolist() == expected.decode(expected.targets).tolist()


def test_levels_change_no_prediction():
    probs = draw_labels(np.random.default_rng(0), 4, 50)
    moved = LowRankSurrogate(GOOD.targets, GOOD.directions, GOOD.costs, GOOD.levels + 7.0)
    u = probs @ GOOD.targets
    np.testing.assert_array_equal(moved.decode(u), GOOD.decode(u))
    np.testing.assert_allclose(moved.regret(probs, u), GOOD.regret(probs, u), atol=1e-14)


def test_a_tolerance_trades_numbers_for_a_stated_loss():
    losses = np.array([[0.0, 2.0, 2.1], [2.0, 0.0, 0.1], [2.0, 0.1, 0.0]])
    exact, rough = (LowRankSurrogate.from_loss_matrix(losses, tol=tol) for tol in (1e-9, 0.1))
    assert (exact.dimension, rough.dimension) == (2, 1)
    assert rough.proof.residual == pytest.approx(np.abs(losses - rough.loss_matrix()).max())
    assert "up to 0.101." in rough.proof.statement
    assert "up to" not in exact.proof.statement
    check_bound(rough.proof, losses)


# ---------------------------------------------------------------- value, gradient, decoding, regret


def check_gradient(surrogate, u, y):
    _, grad = surrogate(u, y)
    for row, column in itertools.product(*map(range, u.shape)):
        bump = np.zeros_like(u)
        bump[row, column] = 1e-6
        up, down = (surrogate(moved, y)[0].sum() for moved in (u + bump, u - bump))
        assert (up - down) / 2e-6 == pytest.approx(grad[row, column], abs=1e-6)


class Doubled:
    def __call__(self, u, y):
        values, grad = GOOD(u, y)
        return values, 2 * grad


def test_the_gradient_is_the_derivative():
    u, y = np.random.default_rng(1).standard_normal((5, GOOD.dimension)), [0, 3, 1, 2, 0]
    check_gradient(GOOD, u, y)
    with pytest.raises(AssertionError):
        check_gradient(Doubled(), u, y)
    values, _ = GOOD(u, y)
    expected = [
        sum((a - b) ** 2 for a, b in zip(row, GOOD.targets[k], strict=True))
        for row, k in zip(u, y, strict=True)
    ]
    np.testing.assert_allclose(values, expected)


def test_the_best_u_is_the_expected_target():
    rng = np.random.default_rng(2)
    probs = draw_labels(rng, 4, 20)
    u = rng.standard_normal((len(probs), GOOD.dimension))
    expected = sum(probs[:, k] * GOOD(u, np.full(len(u), k))[0] for k in range(4))
    best = probs @ GOOD.targets
    least = sum(probs[:, k] * GOOD(best, np.full(len(u), k))[0] for k in range(4))
    np.testing.assert_allclose(GOOD.surrogate_regret(probs, u), expected - least, atol=1e-12)


def test_regret_follows_the_definition():
    rng = np.random.default_rng(3)
    probs, u = draw_labels(rng, 4, 20), rng.standard_normal((100, GOOD.dimension))
    expected = [
        oracles.decision_regret(LOSSES.tolist(), p, t) for p, t in zip(probs, GOOD.decode(u), strict=True)
    ]
    np.testing.assert_allclose(GOOD.regret(probs, u), expected, atol=1e-12)


def test_of_equal_predictions_the_first_is_decoded():
    twins = LowRankSurrogate([[0.0], [1.0]], [[1.0], [0.0], [0.0]], costs=[0.0, 0.0, 0.0])
    assert twins.decode([[1.0], [0.0], [-1.0]]).tolist() == [1, 0, 0]


def test_blocks_change_nothing(monkeypatch):
    rng = np.random.default_rng(4)
    losses, probs = rng.random((6, 50)), draw_labels(rng, 6, 20)
    whole = LowRankSurrogate.from_loss_matrix(losses)
    u = probs @ whole.targets + rng.standard_normal((100, 5))
    decoded, regret, diameter = whole.decode(u), whole.regret(probs, u), whole.proof.diameter
    assert diameter == pytest.approx(
        max(np.linalg.norm(a - b) for a in whole.directions for b in whole.directions)
    )
    for block in (1, 120, 1000):
        monkeypatch.setattr(calibration, "BLOCK", block)
        pieces = LowRankSurrogate.from_loss_matrix(losses)
        np.testing.assert_array_equal(pieces.decode(u), decoded)
        np.testing.assert_allclose(pieces.regret(probs, u), regret, atol=1e-14)
        assert pieces.proof.diameter == pytest.approx(diameter)


def test_the_diameter_of_many_predictions_is_bounded(monkeypatch):
    losses = np.random.default_rng(5).random((6, 50))
    exact = LowRankSurrogate.from_loss_matrix(losses).proof
    monkeypatch.setattr(calibration, "MOST_COMPARED", 49)
    rough = LowRankSurrogate.from_loss_matrix(losses).proof
    assert exact.exact_diameter
    assert not rough.exact_diameter
    assert exact.diameter <= rough.diameter <= 2 * exact.diameter


def test_one_number_may_come_as_a_column():
    single = LowRankSurrogate.from_loss_matrix([[0.0, 1.0], [3.0, 0.0]])
    assert single.dimension == 1
    u = single.targets[[0, 1, 0], 0]
    assert single.decode(u).tolist() == single.decode(u[:, None]).tolist() == [0, 1, 0]
    assert single(u, [0, 1, 0])[0].tolist() == [0.0, 0.0, 0.0]


def test_parts_cannot_be_changed():
    for part in (GOOD.targets, GOOD.directions, GOOD.losses, GOOD.net_losses):
        with pytest.raises(ValueError, match="read-only"):
            part[0, 0] = 1.0
    for part in (GOOD.costs, GOOD.levels):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 1.0
    losses = LOSSES.copy()
    surrogate = LowRankSurrogate.from_loss_matrix(losses)
    losses[0, 0] = 100.0
    assert surrogate.losses[0, 0] == 0.0


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
        elements=st.floats(-1e12, 1e12) | st.sampled_from([0.0, 1.0, 1e-12, -1e-300]),
    )
)
def test_any_finite_losses(losses):
    surrogate = LowRankSurrogate.from_loss_matrix(losses)
    assert surrogate.proof.residual <= 1e-8 * np.abs(losses).max()
    assert surrogate.dimension <= min(surrogate.proof.matrix_rank, *(side - 1 for side in losses.shape))
    assert surrogate.proof.verify(200) <= 1.0
    assert LowRankSurrogate.general(losses).proof.verify(200) <= 1.0


# ---------------------------------------------------------------- bad input


EDGE = np.array([[0.0, math.nan], [1.0, 2.0]])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: LowRankSurrogate.from_loss_matrix(EDGE), NonFiniteError, "row 0, column 1"),
        (lambda: LowRankSurrogate.from_loss_matrix([[1e200, 0.0]]), NonFiniteError, "rescale"),
        (lambda: LowRankSurrogate.general([[1e100, -1e100], [0.0, 1e100]]), NonFiniteError, "^L is 1e"),
        (lambda: LowRankSurrogate.from_loss_matrix([1.0, 2.0]), ShapeError, "two dimensions"),
        (lambda: LowRankSurrogate.from_loss_matrix(np.empty((0, 3))), EmptyDataError, "no rows"),
        (lambda: LowRankSurrogate.from_loss_matrix(np.empty((3, 0))), ShapeError, "column per prediction"),
        (lambda: LowRankSurrogate.from_loss_matrix([["a", "b"]]), NotNumericError, "'a'"),
        (lambda: LowRankSurrogate.from_loss_matrix(LOSSES, tol=1.0), ParameterError, "tol must be "),
        (lambda: LowRankSurrogate.from_loss_matrix(LOSSES, tol=math.nan), ParameterError, "tol must be "),
        (lambda: LowRankSurrogate.general(EDGE), NonFiniteError, "row 0, column 1"),
        (lambda: LowRankSurrogate([[1.0]], [[1.0, 2.0]]), ShapeError, "1 columns"),
        (lambda: LowRankSurrogate([[1.0]], [[1.0]], costs=[1.0, 2.0]), ShapeError, "costs"),
        (lambda: LowRankSurrogate([[1.0]], [[1.0]], levels=[math.inf]), NonFiniteError, "levels"),
        (lambda: LowRankSurrogate([[1.0]], [[1.0]], losses=[[1.0, 2.0]]), ShapeError, "losses"),
        (lambda: GOOD.decode([[1.0]]), ShapeError, "2 columns"),
        (lambda: GOOD.decode([1.0, 2.0]), ShapeError, "two dimensions"),
        (lambda: GOOD.decode([[1.0, math.inf]]), NonFiniteError, "row 0, column 1"),
        (lambda: GOOD([[1.0, 2.0]], [4]), LabelError, "there are 4"),
        (lambda: GOOD([[1.0, 2.0]], [0.5]), LabelError, "not an integer"),
        (lambda: GOOD([[1.0, 2.0]], [0, 1]), LengthMismatchError, "2 entries"),
        (lambda: GOOD.regret([[0.5, 0.5]], [[1.0, 2.0]]), ShapeError, "probs"),
        (lambda: GOOD.regret([[0.5, 0.5, 0.5, 0.5]], [[1.0, 2.0]]), LabelError, "sums to 2"),
        (lambda: GOOD.proof.regret_bound(-1.0), NonFiniteError, ">= 0"),
        (lambda: GOOD.proof.regret_bound([0.0, math.nan]), NonFiniteError, "row 1"),
        (lambda: GOOD.proof.verify(0), ParameterError, "n_draws"),
        (lambda: every_order(7), ParameterError, "at most 6"),
        (lambda: every_label(0), ParameterError, "n_items"),
        (lambda: every_label(6, 0), ParameterError, "n_grades"),
        (lambda: every_label(6, 10), ParameterError, "100,000"),
        (lambda: every_preference(1), ParameterError, "at least 2"),
        (lambda: loss_matrix("ap", [[0] * 7]), ParameterError, "at most 6"),
        (lambda: loss_matrix("ap", [1, 0]), ShapeError, "n_labels"),
        (lambda: loss_matrix("ap", [[1, 0], [1]]), ShapeError, "labels"),
        (lambda: loss_matrix("ap", [[-1, 0]]), NonFiniteError, ">= 0"),
        (lambda: loss_matrix("pd", [np.eye(2)]), LabelError, "itself"),
        (lambda: loss_matrix("pd", np.zeros((1, 2, 3))), ShapeError, "n_items"),
        (lambda: loss_matrix("ap", every_preference(2)), LabelError, "reads grades"),
        (lambda: loss_matrix("none", [[1, 0]]), UnknownNameError, "none"),
        (lambda: loss_matrix("dcg", [[2000, 0]]), GradeError, "overflow"),
        (lambda: closed_form("err", [[1, 0]]), ParameterError, "from_loss_matrix"),
        (lambda: closed_form("ap", every_preference(2)), LabelError, "reads grades"),
        (lambda: closed_form("ap", [[1, 0]], dimension="half"), ParameterError, "Only pd"),
        (lambda: closed_form("pd", [[1, 0]], dimension="third"), UnknownNameError, "third"),
        (lambda: closed_form("ap@1[ap_denominator=found]", [[1, 0]]), ParameterError, "without a cutoff"),
        (lambda: dimensions("pd", 3, every_preference(2)), ShapeError, "3 items"),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
