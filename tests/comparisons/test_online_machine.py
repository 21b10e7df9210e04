"""Learning from a stream: steps are as defined, batches do not matter, the optimum is approached."""

import copy
import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import concordant as cc
from concordant.comparisons.calibration import fit_curve
from concordant.comparisons.machines.online_machine import OnlineState, learn, ranking, sgd_logistic, weights
from concordant.comparisons.machines.primal_newton import fit_margin
from concordant.comparisons.stream import online_curve
from concordant.exceptions import (
    EmptyDataError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from tests import oracles

pytestmark = pytest.mark.once

ARRAYS = ("mean", "square", "widest", "current", "fisher", "average", "history")


def stream(n, p=4, seed=0, noise=0.5, threshold=1.0):
    """Pairs in features of different units, compared by a linear ranking function."""
    rng = np.random.default_rng(seed)
    items, w = rng.standard_normal((n, 2, p)), np.linspace(1, 2, p) * (-1) ** np.arange(p)
    gap = (items[:, 1] - items[:, 0]) @ w + noise * rng.logistic(size=n)
    return items * 10.0 ** np.arange(-1, p - 1) + 3, np.where(abs(gap) > threshold, np.sign(gap), 0)


def squares(n, seed=0):
    """The l2 simulation, in features in which its ranking function is linear."""
    toy = cc.synthetic.comparisons(n, "l2", seed=seed)
    return toy.pairs**2, toy.y


def flipped(pairs, y):
    """Differences turned so that the right is better, in features divided by their spread; and the spread."""
    spread = pairs.reshape(-1, pairs.shape[2]).std(axis=0)
    return (pairs[:, 1] - pairs[:, 0]) / spread * np.where(y == 0, 1, y)[:, None], spread


def optimum(d, tie, C=1.0, weight=None):
    solution = minimize(
        oracles.flipped_logistic,
        np.zeros(d.shape[1] + 1),
        (d, tie, C, weight),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 9999, "ftol": 1e-14, "gtol": 1e-8},
    )
    return solution.fun


def learned(pairs, y, *, scaled=True, **options):
    return learn(OnlineState.start(pairs.shape[2], scaled=scaled), pairs, y, **options)


def same(state, other):
    return state.count == other.count and all(
        np.array_equal(getattr(state, name), getattr(other, name)) for name in ARRAYS
    )


# ---------------------------------------------------------------- one step after the other

features = st.sampled_from([-2.0, -0.5, 0.0, 0.0, 0.25, 1.0, 3.0])
streams = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.lists(features, min_size=4 * n, max_size=4 * n),
        st.lists(st.sampled_from([-1, 0, 1]), min_size=n, max_size=n),
    )
)


def check_steps(state, pairs, y, C):
    expected = oracles.online_steps(pairs, y, C, scaled=state.scaled)
    np.testing.assert_allclose(state.average, expected, rtol=1e-7, atol=1e-9)


@settings(max_examples=60)
@given(streams, st.sampled_from([0.01, 1.0, 100.0]), st.booleans())
def test_steps_equal_their_definition(data, C, scaled):
    pairs, y = np.reshape(data[0], (-1, 2, 2)), np.array(data[1])
    check_steps(learned(pairs, y, C=C, scaled=scaled), pairs, y, C)


def test_steps_equal_their_definition_on_a_stream():
    pairs, y = stream(300)
    check_steps(learned(pairs, y), pairs, y, 1.0)


def test_the_check_rejects_other_steps():
    pairs, y = stream(50)
    for state in (learned(pairs, y, C=2.0), learned(pairs, -y), learned(pairs[::-1], y[::-1])):
        with pytest.raises(AssertionError):
            check_steps(state, pairs, y, 1.0)


def test_bits_do_not_depend_on_batches():
    pairs, y = stream(200)
    whole, single, parts = learned(pairs, y), OnlineState.start(4), OnlineState.start(4)
    for i in range(200):
        single = learn(single, pairs[i : i + 1], y[i : i + 1])
    for rows in np.split(np.arange(200), [1, 7, 90]):
        parts = learn(parts, pairs[rows], y[rows])
    assert same(whole, single)
    assert same(whole, parts)
    assert not same(whole, learned(pairs[::-1], y[::-1]))


def test_a_state_that_was_stored_goes_on():
    pairs, y = stream(100)
    stored = dataclasses.asdict(learned(pairs[:60], y[:60]))
    assert same(learn(OnlineState(**stored), pairs[60:], y[60:]), learned(pairs, y))


def test_the_state_does_not_grow():
    """A pair costs the same however many were seen: nothing that a step reads or writes has grown."""
    pairs, y = stream(5_000)
    short, long = learned(pairs[:1], y[:1]), learned(pairs, y)
    assert [getattr(short, name).shape for name in ARRAYS] == [getattr(long, name).shape for name in ARRAYS]
    assert {field.name for field in dataclasses.fields(long)} == {"count", "scaled", *ARRAYS}


def test_the_state_is_changed_in_place():
    state = OnlineState.start(1)
    assert learn(state, [[[0.0], [1.0]]], [1]) is state
    assert state.count == 1


# ---------------------------------------------------------------- what does not matter


def check_invariance(change):
    pairs, y = stream(400)
    (w, bias), (other, other_bias) = weights(learned(pairs, y)), weights(learned(*change(pairs, y)))
    gaps = (pairs[:, 1] - pairs[:, 0]) @ w
    changed = change(pairs, y)[0]
    np.testing.assert_allclose((changed[:, 1] - changed[:, 0]) @ other, gaps, rtol=1e-6, atol=1e-9)
    assert math.isclose(bias, other_bias, rel_tol=1e-6)


def in_other_units(pairs, y):
    return pairs * np.array([1000.0, 1.0, 1e-60, 1e60]), y


def moved(pairs, y):
    return pairs + np.array([10.0, 0.0, -5.0, 1.0]), y


def with_a_constant(pairs, y):
    return np.concatenate((pairs, np.full((len(y), 2, 2), [7.0, 0.1])), axis=2), y


@pytest.mark.parametrize("change", [in_other_units, moved, with_a_constant])
def test_units_levels_and_constants_do_not_matter(change):
    check_invariance(change)


def test_the_check_sees_a_change_that_matters():
    with pytest.raises(AssertionError):
        check_invariance(lambda pairs, y: (pairs**2, y))


def test_sides_do_not_matter():
    pairs, y = stream(400)
    turned = np.random.default_rng(1).random(400) < 0.5
    pairs_turned = np.where(turned[:, None, None], pairs[:, ::-1], pairs)
    state, other = learned(pairs, y), learned(pairs_turned, np.where(turned, -y, y))
    np.testing.assert_allclose(state.average, other.average, rtol=1e-9)
    np.testing.assert_allclose(state.history, other.history, rtol=1e-6, atol=1e-3)


def test_constants_get_no_weight():
    pairs, y = with_a_constant(*stream(50))
    assert weights(learned(pairs, y))[0][4:].tolist() == [0.0, 0.0]


def test_a_feature_may_begin_to_vary_late():
    pairs, y = stream(4_000)
    late = pairs.copy()
    late[:2_000, :, 0] = 3.0
    late[2_000, 1, 0] += 1e-7  # by very little at first
    d, spread = flipped(late, y)
    w, bias = weights(learned(late, y))
    assert oracles.flipped_logistic(np.r_[w * spread, bias], d, y == 0, 1.0)[0] < 1.1 * optimum(d, y == 0)


def test_a_first_pair_whose_sides_are_close():
    pairs, y = stream(2_000)
    pairs[0, 1] = pairs[0, 0] + 1e-6
    y[0] = 1
    d, spread = flipped(pairs, y)
    w, bias = weights(learned(pairs, y))
    assert oracles.flipped_logistic(np.r_[w * spread, bias], d, y == 0, 1.0)[0] < 1.1 * optimum(d, y == 0)


# ---------------------------------------------------------------- few pairs, one kind of pairs


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
@pytest.mark.parametrize("outcome", [-1, 0, 1])
def test_a_single_pair(loss, outcome):
    state = learned(np.array([[[1.0, 5.0], [2.0, 5.0]]]), [outcome], loss=loss)
    w, bias = weights(state)
    assert np.sign(w[0]) == outcome
    assert w[1] == 0.0
    assert (bias < 0) == (outcome == 0)
    assert np.isfinite(online_curve(state)([0.0, 1.0, -1e300])).all()


def test_ties_alone_and_ties_first():
    pairs, y = stream(3_000)
    ties = np.flatnonzero(y == 0)
    state = learned(pairs[ties], y[ties])
    assert ranking(*weights(state))[1] == 1.0
    assert np.isfinite(state.average).all()
    curve = online_curve(state)
    assert curve([0.0])[0, 1] > 0.9
    others = np.flatnonzero(y != 0)
    state = learn(state, pairs[others], y[others])
    r, _ = ranking(*weights(state))
    assert (np.sign(r) == [1, -1, 1, -1]).all()


def test_no_ties_leave_no_threshold():
    pairs, y = stream(500, threshold=0.0)
    assert (y != 0).all()
    state = learned(pairs, y)
    r, threshold = ranking(*weights(state))
    assert threshold == 0.0
    decision = (pairs[:, 1] - pairs[:, 0]) @ r
    assert (np.sign(decision) == y).mean() > 0.8
    assert (online_curve(state)(decision)[:, 1] == 0).all()


def test_the_threshold_is_where_scores_outweigh_the_bias():
    for bias in (-2.0, -1e-90):
        r, threshold = ranking(np.array([3.0]), bias)
        assert (r[0] * 0.5 > threshold) == (bias > -1.5)
    assert ranking(np.array([3.0]), 0.0)[1] == ranking(np.array([3.0]), -1e-200)[1] == 0.0


def test_large_and_small_features():
    for unit in (2.0**479, 1e-45, 1e-200):
        state = learned(np.random.default_rng(0).uniform(-unit, unit, (50, 2, 3)), [1, 0, -1, 1, 0] * 10)
        assert np.isfinite(state.average).all()
        assert np.isfinite(state.current).all()


@pytest.mark.parametrize(
    ("error", "pairs", "y", "options"),
    [
        (NonFiniteError, [[[0.0], [math.nan]]], [1], {}),
        (NonFiniteError, [[[0.0], [math.inf]]], [1], {}),
        (NonFiniteError, [[[0.0], [1e150]]], [1], {}),
        (LabelError, [[[0.0], [1.0]]], [2], {}),
        (LengthMismatchError, [[[0.0], [1.0]]], [1, 0], {}),
        (ShapeError, [[[0.0, 1.0], [1.0, 1.0]]], [1], {}),
        (ShapeError, [[0.0, 1.0]], [1], {}),
        (EmptyDataError, np.empty((0, 2, 1)), [], {}),
        (ParameterError, [[[0.0], [1.0]]], [1], {"C": 0.0}),
        (ParameterError, [[[0.0], [1.0]]], [1], {"C": math.nan}),
        (UnknownNameError, [[[0.0], [1.0]]], [1], {"loss": "exponential"}),
    ],
)
def test_bad_input_changes_nothing(error, pairs, y, options):
    state = learned(np.array([[[1.0], [2.0]]]), [1])
    before = copy.deepcopy(state)
    with pytest.raises(error):
        learn(state, pairs, y, **options)
    assert same(state, before)


def test_no_features():
    for bad in (0, -1, 1.5):
        with pytest.raises(ParameterError, match="n_features"):
            OnlineState.start(bad)


# ---------------------------------------------------------------- the optimum is approached


def check_near_optimum(learner, pairs, y, share):
    """The objective at the learned weights is above that of the batch optimum by at most a share of it."""
    d, spread = flipped(pairs, y)
    w, bias = weights(learner(pairs, y))
    value, _ = oracles.flipped_logistic(np.r_[w * spread, bias], d, y == 0, 1.0)
    best = optimum(d, y == 0)
    assert best * (1 - 1e-9) <= value <= (1 + share) * best


@pytest.mark.parametrize(
    ("data", "share"), [(squares(30_000), 0.002), (stream(30_000), 0.002), (stream(3_000), 0.02)]
)
def test_the_batch_optimum_is_approached(data, share):
    check_near_optimum(learned, *data, share)


def test_regularisation_goes_by_the_features_as_they_are_unless_scaled():
    pairs, y = stream(20_000)
    pairs[:, :, :2] /= 100.0  # small: they would need large weights, which a small C does not allow
    d, spread = flipped(pairs, y)
    values = {}
    for scaled in (True, False):
        w, bias = weights(learned(pairs, y, C=1e-3, scaled=scaled))
        values[scaled] = oracles.flipped_logistic(np.r_[w, bias], d * spread, y == 0, 1e-3)[0]
    best = optimum(d * spread, y == 0, 1e-3)
    assert values[False] < 1.01 * best
    assert values[True] > 1.5 * best


def test_the_check_rejects_wrong_learners():
    pairs, y = squares(3_000)
    for wrong in (lambda p, y: learned(p, -y), lambda p, y: learned(p[:20], y[:20])):
        with pytest.raises(AssertionError):
            check_near_optimum(wrong, pairs, y, 0.05)


def progressive_loss(pairs, y, size, learner=learn):
    """Mean loss per pair when each block is scored before it is learned."""
    state, total = OnlineState.start(pairs.shape[2]), 0.0
    for first in range(0, len(y), size):
        rows = slice(first, first + size)
        w, bias = weights(state)
        d = (pairs[rows, 1] - pairs[rows, 0]) * np.where(y[rows] == 0, 1, y[rows])[:, None]
        joint = np.r_[w, bias]
        total += oracles.flipped_logistic(joint, d, y[rows] == 0, 1.0)[0] - 0.5 * w @ w
        learner(state, pairs[rows], y[rows])
    return total / len(y)


def test_regret():
    pairs, y = squares(20_000)
    d, _ = flipped(pairs, y)
    best = optimum(d, y == 0) / len(y)
    assert progressive_loss(pairs, y, 10) - best < 0.01
    reversed_loss = progressive_loss(pairs, y, 10, lambda state, p, outcome: learn(state, p, -outcome))
    assert reversed_loss - best > 0.01  # the check can fail


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_other_losses_approach_their_optimum(loss):
    pairs, y = squares(20_000)
    d, spread = flipped(pairs, y)
    best = fit_margin(d, y == 0, C=1.0, loss=loss)
    w, bias = weights(learned(pairs, y, loss=loss))
    g, tie = d @ (w * spread), y == 0
    slack = np.r_[(1 - bias - g)[~tie], (1 + bias - g)[tie], (1 + bias + g)[tie]].clip(0)
    value = 0.5 * (w * spread) @ (w * spread) + (slack if loss == "hinge" else slack**2).sum()
    assert value < 1.03 * best.value


# ---------------------------------------------------------------- probabilities from the stream


def check_curve(curve, state, truth):
    """The probabilities are those of a curve fitted to pairs that were never learned."""
    pairs, y = truth
    decision = (pairs[:, 1] - pairs[:, 0]) @ ranking(*weights(state))[0]
    np.testing.assert_allclose(curve(decision), fit_curve(decision, y)(decision), atol=0.03)


@pytest.mark.parametrize("data", [squares, stream])
def test_the_curve_tends_to_that_of_held_out_pairs(data):
    state = learned(*data(50_000))
    check_curve(online_curve(state), state, data(50_000, seed=1))


def test_the_check_rejects_other_curves():
    state, fresh = learned(*squares(50_000)), squares(50_000, seed=1)
    curve = online_curve(state)
    for wrong in (
        dataclasses.replace(curve, slope=0.8 * curve.slope),
        dataclasses.replace(curve, cut=1.2 * curve.cut),
    ):
        with pytest.raises(AssertionError):
            check_curve(wrong, state, fresh)


def test_bins_lose_little():
    """The histogram's curve is that of the single scores, each taken before its pair was learned."""
    pairs, y = squares(2_000)
    state, scores = OnlineState.start(2), []
    for i in range(2_000):
        scores.append((pairs[i, 1] - pairs[i, 0]) @ weights(state)[0])
        learn(state, pairs[i : i + 1], y[i : i + 1])
    time = np.arange(1, 2_001)
    exact = fit_curve(scores, y, 2_000 * time**2 / (time**2).sum())
    binned = online_curve(state)
    assert binned.slope == pytest.approx(exact.slope * -weights(state)[1], rel=0.01)
    assert binned.cut == pytest.approx(exact.cut, rel=0.01)


# ---------------------------------------------------------------- many epochs


def test_epochs_reach_the_optimum():
    pairs, y = stream(20_000, p=10)
    d, _ = flipped(pairs, y)
    best, solution = optimum(d, y == 0), sgd_logistic(d, y == 0, C=1.0)
    assert solution.converged
    assert best * (1 - 1e-9) <= solution.value <= 1.001 * best
    assert solution.value - best <= solution.gap
    joint = np.r_[solution.w, solution.bias]
    assert solution.value == pytest.approx(oracles.flipped_logistic(joint, d, y == 0, 1.0)[0])


@settings(max_examples=10)
@given(
    st.integers(0, 1000), st.sampled_from([0.01, 1.0, 100.0]), st.sampled_from(["compare", "rank", "rank2"])
)
def test_epochs_approach_the_optimum_of_small_data(seed, C, method):
    rng = np.random.default_rng(seed)
    d, tie = rng.normal(0.3, 1.0, (60, 3)), np.arange(60) % 3 == 0
    weight = rng.choice([0.0, 0.5, 2.0], 60)
    options = {"C": C, "method": method, "sample_weight": weight}
    best = fit_margin(d, tie, loss="logistic", tol=1e-9, **options)
    solution = sgd_logistic(d, tie, tol=1e-6, **options)
    assert best.value * (1 - 1e-6) <= solution.value <= 1.01 * best.value
    assert method == "compare" or solution.bias == 0.0


def test_epochs_are_reproducible_and_can_run_out():
    pairs, y = stream(2_000)
    d, _ = flipped(pairs, y)
    first, again, other = (sgd_logistic(d, y == 0, C=1.0, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.w, again.w)
    assert not np.array_equal(first.w, other.w)
    short = sgd_logistic(d, y == 0, C=1.0, max_iter=1)
    assert (short.n_iter, short.converged) == (1, False)
    with pytest.raises(EmptyDataError):
        sgd_logistic(d, np.ones(2_000, dtype=bool), C=1.0, method="rank")
    with pytest.raises(ParameterError, match="C must be"):
        sgd_logistic(d, y == 0, C=-1.0)
