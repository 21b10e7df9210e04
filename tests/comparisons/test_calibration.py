"""Outcome curves are what they are defined to be, fitted to greatest likelihood, on pairs held out."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from concordant.comparisons.calibration import (
    CalibrationPairs,
    OutcomeCurve,
    fit_curve,
    held_out_decisions,
    prepare_pairs,
)
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    ParameterError,
)
from tests import oracles

pytestmark = pytest.mark.once

numbers = st.floats(-1e300, 1e300)
curves = st.builds(OutcomeCurve, st.floats(0, 1e300), st.floats(0, 700))
small_data = st.lists(
    st.tuples(st.sampled_from([-3.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.0]), st.sampled_from([-1, 0, 1])),
    min_size=1,
    max_size=12,
)


def drawn(curve, n, seed=0):
    """Decisions, and outcomes drawn from a curve."""
    rng = np.random.default_rng(seed)
    decision = rng.normal(0, 2, n)
    probabilities = curve(decision)
    return decision, (rng.random(n)[:, None] > probabilities.cumsum(axis=1)).sum(axis=1).clip(0, 2) - 1


# ---------------------------------------------------------------- the curve


def check_definition(curve, level, cut):
    expected = oracles.cumulative_logit(level, cut, digits=650)
    np.testing.assert_allclose(curve([level])[0], expected, rtol=1e-12, atol=1e-300)


@settings(max_examples=50)
@given(st.floats(-700, 700), st.floats(0, 300) | st.floats(0, 1e-12) | st.sampled_from([0.0, 1e-300]))
def test_probabilities_equal_their_definition(level, cut):
    check_definition(OutcomeCurve(1.0, cut), level, cut)


def test_the_check_sees_cancellation():
    def naive(level):
        lost, won = 1 / (1 + math.exp(1e-9 + level[0])), 1 / (1 + math.exp(1e-9 - level[0]))
        return np.array([[lost, 1 - lost - won, won]])

    with pytest.raises(AssertionError):
        check_definition(naive, 3.0, 1e-9)


def check_curve(curve, decisions):
    """Probabilities; the chance of +1 rises with the decision; a pair turned round has the same chances."""
    decisions = np.sort(decisions)
    probabilities = curve(decisions)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-14)
    assert (np.diff(probabilities[:, 2]) >= -1e-15).all()
    assert (np.diff(probabilities[:, 0]) <= 1e-15).all()
    np.testing.assert_allclose(curve(-decisions), probabilities[:, ::-1], rtol=1e-13)


@given(curves, st.lists(numbers, min_size=1, max_size=20))
@example(OutcomeCurve(1e-300, 5e-324), [1e300])  # a product of subnormal numbers rounds
def test_curves_are_probabilities(curve, decisions):
    check_curve(curve, np.array(decisions))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda d: OutcomeCurve(1.0, 1.0)(-d),
        lambda d: OutcomeCurve(1.0, 1.0)(d + 0.5),
        lambda d: OutcomeCurve(1.0, 1.0)(d) * 1.01,
        lambda d: OutcomeCurve(1.0, 1.0)(np.sin(d)),
    ],
    ids=["reversed", "shifted", "too much", "not monotone"],
)
def test_the_check_rejects_other_curves(wrong):
    with pytest.raises(AssertionError):
        check_curve(wrong, np.linspace(-4, 4, 21))


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, "1"])
def test_parameters_out_of_range(bad):
    with pytest.raises(ParameterError, match="slope"):
        OutcomeCurve(bad, 1.0)
    with pytest.raises(ParameterError, match="cut"):
        OutcomeCurve(1.0, bad)


# ---------------------------------------------------------------- the fit


def check_derivatives(rows, slope, cut, eps=1e-5):
    grad, hessian = rows.derivatives(slope, cut)
    for k, (ds, dc) in enumerate(eps * np.eye(2)):
        up, down = (slope + ds, cut + dc), (slope - ds, cut - dc)
        assert math.isclose(
            (rows.loss(*up) - rows.loss(*down)) / (2 * eps), grad[k], rel_tol=1e-5, abs_tol=1e-6
        )
        bent = (rows.derivatives(*up)[0] - rows.derivatives(*down)[0]) / (2 * eps)
        np.testing.assert_allclose(bent, hessian[k], rtol=1e-5, atol=1e-6)


@given(small_data, st.floats(0.1, 5), st.floats(0.1, 5))
def test_derivatives(data, slope, cut):
    rows, _ = prepare_pairs(*zip(*data, strict=True), None)
    check_derivatives(rows, slope, cut)


def test_the_check_sees_a_wrong_derivative():
    class Forgetful(CalibrationPairs):
        def derivatives(self, slope, cut):
            grad, hessian = super().derivatives(slope, cut)
            return grad + np.array([0.0, 2.0 / math.expm1(2.0 * cut)]), hessian  # the ties' term is gone

    with pytest.raises(AssertionError):
        check_derivatives(Forgetful(np.array([1.0]), np.array([True]), np.ones(1)), 1.0, 1.0)


def check_optimal(curve, decision, y, weight=None):
    """No curve of a fine grid around, or of a coarse one everywhere, is more likely."""
    weight = np.ones(len(y)) if weight is None else weight
    loss = oracles.curve_loss(curve.slope, curve.cut, decision, y, weight)
    near = [(curve.slope * a, curve.cut * b) for a in (0.99, 1, 1.01) for b in (0.99, 1, 1.01)]
    far = [(s, c) for s in (0.0, 0.1, 0.3, 1.0, 3.0, 10.0) for c in (0.0, 1e-3, 0.1, 0.3, 1.0, 2.0, 4.0)]
    for slope, cut in [*near, *far]:
        assert loss <= oracles.curve_loss(slope, cut, decision, y, weight) + 1e-9, (slope, cut)


@settings(max_examples=25)
@given(small_data)
def test_no_curve_is_more_likely(data):
    decision, y = zip(*data, strict=True)
    check_optimal(fit_curve(decision, y), decision, y)


def test_the_check_rejects_less_likely_curves():
    decision, y = drawn(OutcomeCurve(2.0, 1.0), 60)
    fitted = fit_curve(decision, y)
    check_optimal(fitted, decision, y)
    wrong = (
        fit_curve(decision, -y),
        OutcomeCurve(fitted.slope * 1.1, fitted.cut),
        OutcomeCurve(fitted.slope, 0.1),
    )
    for curve in wrong:
        with pytest.raises(AssertionError):
            check_optimal(curve, decision, y)


def test_the_truth_is_found():
    for truth in (OutcomeCurve(1.7, 0.8), OutcomeCurve(0.5, 3.0), OutcomeCurve(4.0, 0.05)):
        fitted = fit_curve(*drawn(truth, 40_000))
        assert abs(fitted.slope / truth.slope - 1) < 0.05
        assert abs(fitted.cut / truth.cut - 1) < 0.05


@given(small_data, st.data())
def test_a_weight_is_a_number_of_copies(data, more):
    decision, y = map(np.array, zip(*data, strict=True))
    copies = more.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y)).filter(any))
    weighted, repeated = (
        fit_curve(decision, y, copies),
        fit_curve(np.repeat(decision, copies), np.repeat(y, copies)),
    )
    np.testing.assert_allclose(
        [weighted.slope, weighted.cut], [repeated.slope, repeated.cut], rtol=1e-6, atol=1e-9
    )


@given(small_data, st.sampled_from([2.0**-1000, 1e-9, 1e9, 2.0**1000]))
def test_units_of_decisions_do_not_matter(data, unit):
    decision, y = map(np.array, zip(*data, strict=True))
    plain, scaled = fit_curve(decision, y), fit_curve(decision * unit, y)
    np.testing.assert_allclose(scaled(decision * unit), plain(decision), rtol=1e-6, atol=1e-9)


def test_no_ties_make_a_plain_logistic_curve():
    decision = np.linspace(-2, 2, 40)
    curve = fit_curve(decision, np.where(np.sin(3 * np.arange(40)) + decision > 0, 1, -1))
    assert curve.cut == 0.0
    assert (curve(decision)[:, 1] == 0).all()
    assert curve.slope > 0


def test_only_ties_are_not_certain():
    curve = fit_curve([1.0, -2.0, 3.0], [0, 0, 0])
    assert curve.slope == 0.0
    np.testing.assert_allclose(curve([0.0, 9.0]), [[0.125, 0.75, 0.125]] * 2)  # three ties, one added pair


def test_decisions_of_0_leave_the_shares():
    curve = fit_curve(np.zeros(99), [0] * 49 + [1] * 20 + [-1] * 30)
    np.testing.assert_allclose(curve([0.0]), [[0.255, 0.49, 0.255]])


def test_decisions_against_the_outcomes_do_not_count():
    decision, y = drawn(OutcomeCurve(2.0, 1.0), 500)
    assert fit_curve(-decision, y).slope == 0.0


@pytest.mark.parametrize("n", [2, 50, 5_000])
@pytest.mark.parametrize("ties", [True, False])
def test_separable_data_are_not_certain(n, ties):
    decision = np.linspace(-3, 3, n)
    y = np.where(np.abs(decision) < 1, 0, np.sign(decision)) if ties else np.sign(decision + 1e-9)
    curve = fit_curve(decision, y)
    probabilities = curve([-3.0, 3.0])
    assert 0 < probabilities[0, 2] == pytest.approx(probabilities[1, 0])
    assert math.isfinite(np.log(curve(decision)[np.arange(n), y.astype(int) + 1]).sum())


def test_far_decisions():
    decision, y = drawn(OutcomeCurve(2.0, 1.0), 300)
    plain = fit_curve(decision, y)
    right = fit_curve([*decision, 1e300], [*y, 1])
    assert right.slope == pytest.approx(plain.slope, rel=0.01)  # what is certain already tells nothing
    assert fit_curve([*decision, 1e300], [*y, -1]).slope * 2 < 1e-90  # one certainty was wrong
    for values in ([1e300, -1e300, 0.0], [5e-324, -5e-324, 0.0], [1e308, 1e-308, 0.0]):
        probabilities = fit_curve(values, [1, -1, 0])(values)
        assert np.isfinite(probabilities).all()


def test_weights_of_any_size():
    decision, y = drawn(OutcomeCurve(2.0, 1.0), 100)
    for weight in (np.full(100, 1e300), np.full(100, 1e-300), np.geomspace(1e-300, 1e300, 100)):
        assert np.isfinite(fit_curve(decision, y, weight)(decision)).all()


@pytest.mark.parametrize(
    ("error", "decision", "y", "weight"),
    [
        (NonFiniteError, [math.nan, 1.0], [1, 0], None),
        (NonFiniteError, [math.inf, 1.0], [1, 0], None),
        (LabelError, [1.0, 1.0], [2, 0], None),
        (LengthMismatchError, [1.0, 1.0], [0], None),
        (LengthMismatchError, [1.0, 1.0], [0, 1], [1.0]),
        (NonFiniteError, [1.0, 1.0], [0, 1], [1.0, -1.0]),
        (ParameterError, [1.0, 1.0], [0, 1], [0.0, 0.0]),
        (EmptyDataError, [], [], None),
    ],
)
def test_bad_input(error, decision, y, weight):
    with pytest.raises(error):
        fit_curve(decision, y, weight)
    assert issubclass(error, ConcordantError)


def test_a_curve_refuses_what_is_no_decision():
    with pytest.raises(NonFiniteError, match="row 1"):
        OutcomeCurve(1.0, 1.0)([0.0, math.nan])
    assert OutcomeCurve(1.0, 1.0)([]).shape == (0, 3)


# ---------------------------------------------------------------- decisions held out


def check_held_out(decide, y, n_folds):
    """Every pair is decided on once, by a fit that has not seen it, with as many others as folds allow."""
    calls = []

    def fit(train, test):
        calls.append((train, test))
        return test * 10.0

    assert decide(fit, y, n_folds).tolist() == [10.0 * row for row in range(len(y))]
    for train, test in calls:
        assert sorted([*train, *test]) == list(range(len(y)))
    assert sorted(row for _, test in calls for row in test) == list(range(len(y)))
    return calls


@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=2, max_size=30), st.integers(2, 8))
def test_pairs_are_held_out(y, n_folds):
    calls = check_held_out(held_out_decisions, y, n_folds)
    assert len(calls) == min(n_folds, len(y))
    ties = [sum(y[row] == 0 for row in test) for _, test in calls]
    if n_folds <= min(y.count(0), len(y) - y.count(0)):
        assert max(ties) - min(ties) <= 1


def test_the_check_sees_a_leak():
    def leaking(fit, y, _):
        everything = np.arange(len(y))
        return fit(everything, everything)

    with pytest.raises(AssertionError):
        check_held_out(leaking, [1, 0, -1], 2)


def test_a_single_pair_has_decision_0():
    assert held_out_decisions(lambda *_: pytest.fail("nothing to fit to"), [1]).tolist() == [0.0]


def test_folds_depend_on_the_seed_alone():
    def first(train, test):
        return np.full(len(test), train[0] + 0.01 * len(train) + 0.1 * test[0])

    y = [0, 1, -1] * 9
    again = [held_out_decisions(first, y, 3, seed).tolist() for seed in (0, 0, 1)]
    assert again[0] == again[1] != again[2]


def test_bad_folds():
    with pytest.raises(ParameterError, match="n_folds"):
        held_out_decisions(lambda *_: [], [0, 1], 1)
    with pytest.raises(LengthMismatchError):
        held_out_decisions(lambda *_: [1.0], [0, 1, 0, 1], 2)
    with pytest.raises(NonFiniteError):
        held_out_decisions(lambda _, test: np.full(len(test), math.nan), [0, 1, 0, 1], 2)


def test_held_out_calibration_is_honest():
    """A ranking function that learned pairs by heart is certain of them, and of nothing that was held out."""
    rng = np.random.default_rng(0)
    y = rng.choice([-1, 0, 1], 200)

    def by_heart(train, test):
        is_learned = np.isin(test, train)
        return np.where(is_learned, 3.0 * y[test], rng.normal(size=len(test)))

    everything = np.arange(200)
    assert fit_curve(by_heart(everything, everything), y).slope > 1
    assert fit_curve(held_out_decisions(by_heart, y), y).slope < 0.3
