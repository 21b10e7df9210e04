"""Every margin equals its definition, and every fact it states about itself is true."""

import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordant.exceptions import ParameterError, UnknownNameError
from concordant.surrogates import exponential, hinge, huber_hinge, logistic, margin, squared_hinge
from concordant.surrogates.margins import MARGINS, Margin
from tests import oracles
from tests.helpers.surrogate_checks import parsed

WIDTHS = (0.01, 0.25, 0.5, 1.0, 3.0, 40.0)
EVERY = [squared_hinge, hinge, logistic, exponential, *(huber_hinge(h) for h in WIDTHS)]
by_name = pytest.mark.parametrize("shape", EVERY, ids=str)
FAR = 1e300  # a slope or a curvature above has no bound
STEP = 2.0**-12


def grid(shape):
    """Points from far below to far above all that happens, dense around the corners, with 0 and +-t pairs."""
    corners = [0.0, 1.0, shape.edge, shape.edge - min(shape.width, 100.0)]
    fine = np.concatenate([c + np.linspace(-1.0, 1.0, 513) for c in corners])
    wide = np.r_[np.linspace(-60.0, 60.0, 1921), 10.0 ** np.arange(-9.0, 2.5)]
    return np.unique(np.concatenate([fine, wide, -fine, -wide]))


def check_convex(shape):
    """The slope never falls, and no value lies below a tangent."""
    t = grid(shape)
    value, slope = shape.value(t), shape.slope(t)
    size = np.abs(value).max()
    falls = np.diff(slope).min() < -1e-12 * np.abs(slope).max()
    below = value[::7] < (value[:, None] + slope[:, None] * (t[::7] - t[:, None])) - 1e-9 * size
    assert shape.convex == (not falls and not below.any())


def check_non_increasing(shape):
    assert shape.non_increasing == (np.diff(shape.value(grid(shape))).max() <= 0.0)


def check_differentiable(shape):
    """The slopes to the left and to the right agree at every corner of the formula (and between)."""
    t = np.unique(np.r_[grid(shape), shape.edge, shape.edge - min(shape.width, 100.0), shape.flat_from])
    t = t[np.isfinite(t) & (abs(t) < 50.0)]
    step = 2.0**-20
    left, right = ((shape.value(t + s) - shape.value(t)) / s for s in (-step, step))
    assert shape.differentiable == bool(np.all(abs(left - right) < 1e-3 * (1.0 + abs(left))))


def check_favours_order(shape):
    t = np.r_[10.0 ** np.arange(-6.0, 2.5, 0.25), np.linspace(0.01, 5.0, 500)]
    assert shape.favours_order == bool(np.all(shape.value(t) < shape.value(-t)))


def check_falls_at_zero(shape):
    """By slope and by value: a step to the right goes down in proportion."""
    down = (shape.value(0.0) - shape.value(1e-6)) / 1e-6
    assert shape.falls_at_zero == (shape.slope(0.0) < 0.0) == (down > 1e-3)


def check_flat_from(shape):
    """From there on slope 0 and one value, just before neither; infinite: it still falls at 30."""
    if math.isinf(shape.flat_from):
        assert shape.slope(30.0) < 0.0
        assert shape.value(30.0) > shape.value(31.0)
        return
    after = shape.flat_from + np.r_[0.0, 10.0 ** np.arange(-9.0, 4.0)]
    before = shape.flat_from - STEP
    assert np.all(shape.slope(after) == 0.0)
    assert np.ptp(shape.value(after)) == 0.0
    assert shape.slope(before) < 0.0
    assert shape.value(before) > shape.value(shape.flat_from)


def check_lipschitz(shape):
    """No chord is steeper, and some slope comes near; infinite: slopes pass any bound."""
    t = np.r_[-700.0, grid(shape)]
    steepest = np.abs(shape.slope(t)).max()
    if math.isinf(shape.lipschitz):
        assert max(steepest, abs(shape.slope(-FAR))) >= FAR
        return
    assert steepest == pytest.approx(shape.lipschitz, rel=1e-9)
    assert np.abs(np.diff(shape.value(t)) / np.diff(t)).max() <= shape.lipschitz * (1 + 1e-6)


def check_smoothness(shape):
    """Slopes change by no more per unit of t, somewhere by that much; infinite: by more than any bound."""
    t = grid(shape)
    near = np.r_[t, shape.edge + np.array([-1e-9, 0.0, 1e-9])]
    bend = np.abs(np.diff(shape.slope(np.sort(near)))) / np.maximum(np.diff(np.sort(near)), 1e-12)
    if math.isinf(shape.smoothness):
        assert max(bend.max(), abs(shape.curvature(-700.0))) > 1e8
        return
    assert bend.max() <= shape.smoothness * (1 + 1e-6) + 1e-6  # rounding, at the closest points
    assert np.abs(shape.curvature(t)).max() == pytest.approx(shape.smoothness, rel=1e-9)


CHECKS = {
    "convex": check_convex,
    "non_increasing": check_non_increasing,
    "differentiable": check_differentiable,
    "favours_order": check_favours_order,
    "falls_at_zero": check_falls_at_zero,
    "flat_from": check_flat_from,
    "lipschitz": check_lipschitz,
    "smoothness": check_smoothness,
}


@pytest.mark.parametrize("fact", CHECKS)
@by_name
def test_facts_are_true(shape, fact):
    CHECKS[fact](shape)


def test_every_fact_has_a_check():
    formula = {"name", "kind", "edge", "width", "scale"}
    assert {field.name for field in dataclasses.fields(Margin)} == formula | set(CHECKS)


@pytest.mark.parametrize(
    ("shape", "fact", "wrong"),
    [
        *((shape, name, False) for shape in EVERY for name in list(CHECKS)[:2]),
        *((shape, name, False) for shape in EVERY for name in ("favours_order", "falls_at_zero")),
        *((shape, "differentiable", not shape.differentiable) for shape in EVERY),
        (logistic, "flat_from", 2.0),
        (logistic, "flat_from", 29.0),
        (squared_hinge, "flat_from", 1.01),  # flat there, but earlier too
        (squared_hinge, "flat_from", 0.99),
        (squared_hinge, "flat_from", math.inf),
        (hinge, "flat_from", 1.5),
        (huber_hinge(0.25), "flat_from", 1.5),
        (logistic, "lipschitz", 0.99),
        (logistic, "lipschitz", 1.01),
        (logistic, "lipschitz", math.inf),
        (exponential, "lipschitz", 1e6),
        (squared_hinge, "lipschitz", 2.0),
        (huber_hinge(3.0), "lipschitz", 0.5),
        (logistic, "smoothness", 0.24),
        (logistic, "smoothness", 0.26),
        (logistic, "smoothness", math.inf),
        (huber_hinge(0.25), "smoothness", 1.0),
        (hinge, "smoothness", 1.0),
        (exponential, "smoothness", 1.0),
    ],
    ids=str,
)
def test_the_checks_reject_a_wrong_fact(shape, fact, wrong):
    with pytest.raises(AssertionError):
        CHECKS[fact](dataclasses.replace(shape, **{fact: wrong}))


@dataclasses.dataclass(frozen=True)
class Bent(Margin):
    """A wrong margin: its formula has none of the properties that it claims."""

    def value(self, t):
        return 2.0 + np.sin(np.asarray(t)) + np.abs(t)

    def slope(self, t):
        return np.cos(np.asarray(t)) + np.sign(t)


@pytest.mark.parametrize(
    "fact", ["convex", "non_increasing", "differentiable", "favours_order", "falls_at_zero"]
)
def test_the_checks_reject_a_wrong_formula(fact):
    with pytest.raises(AssertionError):
        CHECKS[fact](Bent("bent", 0, 1.0, 1.0, 1.0))


@by_name
def test_order_preserving_is_the_sum_of_the_conditions(shape):
    """Theorem 1: true of the margins with quadratic pieces, and of them only."""
    assert shape.order_preserving == (shape not in {hinge, logistic, exponential})


@pytest.mark.parametrize(
    "broken",
    [{name: False} for name in list(CHECKS)[:5]] + [{"flat_from": math.inf}],
    ids=lambda broken: next(iter(broken)),
)
def test_each_condition_is_needed(broken):
    assert not dataclasses.replace(squared_hinge, **broken).order_preserving


@pytest.mark.slow
@by_name
@given(points=st.lists(st.one_of(st.floats(-600, 600), st.floats(-3, 5), st.sampled_from([0.0, 1.0, -1.0]))))
def test_formulas(shape, points):
    """The definition's value and slope, to 1e-12 of themselves, also where they are tiny."""
    t = np.array(points)
    value, slope, _ = oracles.phi(t=t, **parsed(str(shape)))
    np.testing.assert_allclose(shape.value(t), value.astype(float), rtol=1e-12, atol=1e-16)
    np.testing.assert_allclose(shape.slope(t), slope.astype(float), rtol=1e-12, atol=1e-16)
    if shape in {logistic, exponential}:
        assert np.all(shape.slope(t) < 0.0)


@pytest.mark.slow
@by_name
@given(points=st.lists(st.integers(-400, 400), min_size=1))
def test_slope_and_curvature_are_derivatives(shape, points):
    """Between the corners, by differences; the corners of these margins are no multiples of 1/64 + 1/128."""
    t = (np.array(points) + 0.5) / 64
    t = t[(np.abs(t - shape.edge) > STEP) & (np.abs(t - shape.edge + shape.width) > STEP)]
    up, down = t + STEP / 4, t - STEP / 4
    np.testing.assert_allclose(
        (shape.value(up) - shape.value(down)) / (STEP / 2), shape.slope(t), rtol=1e-6, atol=1e-8
    )
    np.testing.assert_allclose(
        (shape.slope(up) - shape.slope(down)) / (STEP / 2), shape.curvature(t), rtol=1e-6, atol=1e-8
    )


def test_at_corners_the_right_side_counts():
    assert hinge.slope([1.0, np.nextafter(1.0, 0.0)]).tolist() == [0.0, -1.0]
    assert squared_hinge.curvature([1.0, np.nextafter(1.0, 0.0)]).tolist() == [0.0, 2.0]
    assert huber_hinge().curvature([1.5, 0.5, 0.5 - 1e-12]).tolist() == [0.0, 1.0, 0.0]


def test_what_overflows_is_infinite_without_a_warning():
    for read in (exponential.value, exponential.curvature):
        assert read([-1000.0, 1000.0]).tolist() == [math.inf, 0.0]
    assert exponential.slope(-1000.0) == -math.inf
    assert logistic.value([-1e300, 1e300]).tolist() == [1e300, 0.0]
    assert logistic.slope([-1e300, 1e300]).tolist() == [-1.0, 0.0]
    assert np.isfinite(logistic.curvature([-1e300, 1e300])).all()


@by_name
def test_names_round_trip(shape):
    assert margin(str(shape)) == shape
    assert margin(shape) is shape
    assert pickle.loads(pickle.dumps(shape)) == shape  # noqa: S301
    assert hash(margin(str(shape))) == hash(shape)


@given(h=st.floats(1e-99, 1e99))
def test_widths_round_trip(h):
    assert margin(str(huber_hinge(h))) == huber_hinge(h) == margin(f"huber_hinge(h={h!r})")


def test_the_table_names_what_it_gives():
    assert {name: make().name for name, make in MARGINS.items()} == {name: name for name in MARGINS}
    assert huber_hinge() == huber_hinge(0.5) == huber_hinge(np.float32(0.5)) == margin("huber_hinge")


@pytest.mark.parametrize("h", [0, -1.0, math.inf, math.nan, "0.5", None, 1e-200, 1e200])
def test_a_bad_width_is_named(h):
    with pytest.raises(ParameterError, match=r"h must be a number from 1e-100"):
        huber_hinge(h)


@pytest.mark.parametrize(
    "name", ["huber_hinge(0)", "huber_hinge(-2)", "huber_hinge(e)", "huber_hinge(1e999)"]
)
def test_a_bad_width_in_a_name_is_named(name):
    with pytest.raises(ParameterError, match=r"^h must be a finite number > 0"):
        margin(name)


@pytest.mark.parametrize(
    "name", ["hing", "Hinge", "huber_hinge()", "huber_hinge(0.5", "hinge(1)", "", None, 3]
)
def test_an_unknown_name_lists_the_table(name):
    with pytest.raises(UnknownNameError, match=f"the known ones are {', '.join(sorted(MARGINS))}"):
        margin(name)
