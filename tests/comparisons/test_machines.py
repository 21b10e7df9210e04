"""The comparison family: the objective is the definition's, gaps are true bounds, libsvm agrees."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from concordant.comparisons.gram_kernel import Kernel, KernelScorer, NystroemMap
from concordant.comparisons.machine import fit_gram
from concordant.comparisons.machines import primal_newton as margin_module
from concordant.comparisons.machines.machine_kernels import loss_at
from concordant.comparisons.machines.machine_parts import MachineProblem
from concordant.comparisons.machines.primal_newton import (
    LOSSES,
    METHODS,
    build_problem,
    fit_margin,
    value_and_gap,
)
from concordant.decoders.threshold import best_threshold, outcomes
from concordant.exceptions import LengthMismatchError, NonFiniteError, ParameterError, ShapeError
from tests import oracles

pytestmark = pytest.mark.once

CASES = [(method, loss) for method in METHODS for loss in LOSSES]


def drawn(n, p, seed=0, *, noise=1.0, cut=1.0):
    """Pairs with ties, and their differences turned so that right is better."""
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=(n, 2, p))
    gap = (pairs[:, 1] - pairs[:, 0]) @ rng.normal(size=p) + noise * rng.normal(size=n)
    y = np.where(np.abs(gap) > cut, np.sign(gap), 0).astype(int)
    return pairs, y, turned(pairs, y)


def turned(pairs, y):
    return (pairs[:, 1] - pairs[:, 0]) * np.where(y < 0, -1.0, 1.0)[:, None]


# ---------------------------------------------------------------- value, slopes, gap


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_losses_have_their_own_slopes_and_curvatures(kind):
    for s in (-30.0, -0.3, 0.02, 0.4, 2.0, 30.0):
        step = 1e-5
        around = [loss_at(s + k * step, kind, 0.1) for k in (-1, 0, 1)]
        assert around[1][1] == pytest.approx((around[2][0] - around[0][0]) / (2 * step), abs=1e-6)
        assert around[1][2] == pytest.approx((around[2][1] - around[0][1]) / (2 * step), abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "loss"), CASES)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 12), bias=st.floats(-3, 3))
@settings(max_examples=15, deadline=None)
def test_objective_is_the_definition(method, loss, seed, n, bias):
    pairs, y, d = drawn(n, 3, seed)
    u = np.random.default_rng(seed).normal(size=3)
    bias = bias if METHODS[method].has_bias else 0.0
    problem = MachineProblem.from_rows(build_problem(d, y == 0, 0.7, method, loss))
    if not problem.n_rows:
        return
    value, gap = value_and_gap(problem, problem.look(u, bias, 1e-3))
    expected = oracles.comparison_objective(u, bias, pairs, y, 0.7, method, loss)
    assert value == pytest.approx(expected, rel=1e-12)
    least = fit_margin(d, y == 0, C=0.7, method=method, loss=loss, tol=1e-11).value
    assert value - gap <= least * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize(("method", "loss"), CASES)
def test_gradient_is_that_of_the_rounded_objective(method, loss):
    _, y, d = drawn(30, 3, 1)
    problem = MachineProblem.from_rows(build_problem(d, y == 0, 0.5, method, loss))
    point = np.array([0.3, -0.2, 0.1, -0.4 if problem.has_bias else 0.0])

    def value(z):
        return problem.look(z[:3], float(z[3]), 0.5).value

    slopes = [(value(point + h) - value(point - h)) / 2e-6 for h in 1e-6 * np.eye(4)]
    slopes_at_point = np.array(slopes) * np.r_[1, 1, 1, problem.has_bias]
    np.testing.assert_allclose(
        problem.look(point[:3], float(point[3]), 0.5).grad, slopes_at_point, rtol=1e-5, atol=1e-5
    )


def optimum(pairs, y, C, method, loss):
    """Least value by a general solver: epigraph for the hinge, plain minimisation for smooth losses."""
    p = pairs.shape[2]

    def value(z):
        bias = z[p] if METHODS[method].has_bias else 0.0
        return oracles.comparison_objective(z[:p], bias, pairs, y, C, method, loss)

    start = np.zeros(p + 1)
    for _ in range(12):
        start = minimize(value, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-13}).x
    return value(start)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "loss"), CASES)
def test_optimum_is_the_least_value_and_the_gap_bounds_it(method, loss):
    pairs, y, d = drawn(14, 2, 3)
    least = optimum(pairs, y, 0.8, method, loss)
    solution = fit_margin(d, y == 0, C=0.8, method=method, loss=loss, tol=1e-10)
    assert solution.converged
    assert solution.value == pytest.approx(least, rel=1e-7)
    rough = fit_margin(d, y == 0, C=0.8, method=method, loss=loss, tol=0.5, max_iter=1)
    assert rough.value - rough.gap <= least * (1 + 1e-9) <= rough.value * (1 + 1e-7)


def check_gap(solution, least):
    assert solution[0] - solution[1] <= least * (1 + 1e-9)


def test_a_gap_that_is_too_small_is_noticed():
    pairs, y, d = drawn(14, 2, 3)
    problem = MachineProblem.from_rows(build_problem(d, y == 0, 0.8, "compare", "hinge"))
    value, gap = value_and_gap(problem, problem.look(np.array([0.1, 0.1]), -0.5, 0.1))
    least = optimum(pairs, y, 0.8, "compare", "hinge")
    check_gap((value, gap), least)
    with pytest.raises(AssertionError):
        check_gap((value, 0.5 * (value - least)), least)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(2, 40),
    p=st.integers(1, 60),
    method=st.sampled_from(sorted(METHODS)),
    loss=st.sampled_from(sorted(LOSSES)),
    power=st.integers(-3, 3),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
    repeat=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_every_problem_ends_near_its_optimum(seed, n, p, method, loss, power, scale, repeat):
    _, y, d = drawn(n, p, seed)
    d = scale * (np.repeat(d[:1], n, axis=0) if repeat else d)
    y[0], y[-1] = 1, 0
    solution = fit_margin(d, y == 0, C=10.0**power, method=method, loss=loss)
    assert np.isfinite(solution.w).all()
    assert solution.gap <= 1e-3 * solution.value + 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("method", sorted(METHODS))
def test_heavy_tails_and_large_costs_end_near_the_optimum(method, loss):
    """Where a first attempt ends far from it, the cost is raised step by step; curvatures may underflow."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        d = rng.standard_t(2, size=(60, 34)) * np.r_[1e4, np.ones(33)]
        gap = d @ rng.normal(size=34)
        tie = np.abs(gap) <= np.quantile(np.abs(gap), 0.4)
        solution = fit_margin(d * np.where(gap < 0, -1, 1)[:, None], tie, C=300.0, method=method, loss=loss)
        assert np.isfinite(solution.w).all()
        assert (
            solution.gap <= 0.05 * solution.value + 1e-5 * 300.0 * 60
        )  # or little beside the losses at rest


def test_weights_of_0_and_2_are_absence_and_repetition():
    _, y, d = drawn(60, 3, 4)
    weight = np.random.default_rng(0).integers(0, 3, size=60).astype(float)
    rows = np.repeat(np.arange(60), weight.astype(int))
    for method in METHODS:
        weighted = fit_margin(d, y == 0, C=0.3, method=method, sample_weight=weight, tol=1e-10)
        repeated = fit_margin(d[rows], y[rows] == 0, C=0.3, method=method, tol=1e-10)
        np.testing.assert_allclose(weighted.w, repeated.w, atol=1e-6)
        gram = d @ d.T
        dual = fit_gram(gram, y == 0, C=0.3, method=method, sample_weight=weight, tol=1e-9)
        np.testing.assert_allclose(dual.coef @ d, repeated.w, atol=1e-5)


def test_a_sample_to_start_from_and_threads_change_nothing(monkeypatch):
    _, y, d = drawn(3000, 4, 5)
    plain = fit_margin(d, y == 0, C=0.1, tol=1e-9)
    monkeypatch.setattr(margin_module, "SAMPLE_FROM", 1000)
    monkeypatch.setattr(margin_module, "SAMPLE", 300)
    monkeypatch.setattr("concordant.comparisons.machines.machine_rows.SERIAL", 100)
    monkeypatch.setenv("CONCORDANT_THREADS", "3")
    started = fit_margin(d, y == 0, C=0.1, tol=1e-9)
    np.testing.assert_allclose(started.w, plain.w, atol=1e-5)
    assert started.value == pytest.approx(plain.value, rel=1e-8)


def test_a_callback_ends_the_work():
    _, y, d = drawn(100, 3, 6)
    steps = []
    solution = fit_margin(
        d, y == 0, C=1.0, tol=1e-12, callback=lambda step, gap: steps.append((step, gap)) or True
    )
    assert len(steps) == 1
    assert not solution.converged


# ---------------------------------------------------------------- libsvm


@pytest.mark.parametrize("method", sorted(METHODS))
@pytest.mark.parametrize(("n", "p", "C"), [(80, 4, 0.01), (120, 6, 0.1), (60, 3, 1.0)])
def test_newton_and_libsvm_give_the_same_machine(method, n, p, C):
    """Dual objective and decisions to 1e-6, and the bias, since there are free support vectors.

    No closer: libsvm keeps its matrix in single precision.
    """
    _, y, d = drawn(n, p, n)
    newton = fit_margin(d, y == 0, C=C, method=method, tol=1e-12)
    libsvm = fit_gram(d @ d.T, y == 0, C=C, method=method, tol=1e-11)
    dual = libsvm.value - libsvm.gap
    assert dual == pytest.approx(newton.value - newton.gap, rel=1e-6)
    size = max(np.abs(d @ newton.w).max(), 1.0)
    np.testing.assert_allclose(d @ (libsvm.coef @ d), d @ newton.w, atol=1e-6 * size)
    assert libsvm.bias == pytest.approx(newton.bias, abs=2e-6)


def test_rows_of_the_binary_machine_are_those_of_equation_8():
    from sklearn.svm import SVC

    pairs, y, _ = drawn(40, 2, 9)
    rows = oracles.machine_rows(pairs, y)
    gram = np.array([[oracles.pair_kernel(a, b, 0.7) for b in rows] for a in rows])
    labels = np.array([label for *_, label in rows])
    plain = SVC(C=2.0, kernel="precomputed", tol=1e-10).fit(gram, labels)
    both = np.where((y < 0)[:, None, None], pairs[:, ::-1], pairs)
    kernel = Kernel("rbf", 0.7)
    ours = fit_gram(kernel.gram(both), y == 0, C=2.0, tol=1e-10)
    direct = plain.decision_function(gram)[labels == 1]
    mine = (kernel.gram(both) @ ours.coef + ours.bias)[y != 0]
    np.testing.assert_allclose(mine, direct, atol=1e-6)


# ---------------------------------------------------------------- kernels


@pytest.mark.parametrize("name", ["linear", "rbf", "poly"])
def test_gram_is_that_of_differences(name):
    pairs = np.random.default_rng(0).normal(size=(5, 2, 3))
    kernel = Kernel(name, 0.3, 2, 1.0)
    gram = kernel.gram(pairs)
    for i, (a, b) in enumerate(pairs):
        for j, (c, d) in enumerate(pairs):
            k = lambda x, z: float(kernel(x[None], z[None])[0, 0])  # noqa: E731
            assert gram[i, j] == pytest.approx(k(b, d) - k(b, c) - k(a, d) + k(a, c), abs=1e-12)
    assert np.linalg.eigvalsh(gram).min() > -1e-10


def test_kernels_are_their_formulas():
    a, b = np.array([[1.0, 2.0]]), np.array([[0.0, -1.0]])
    assert Kernel("rbf", 0.25)(a, b)[0, 0] == pytest.approx(np.exp(-0.25 * 10))
    assert Kernel("poly", 0.5, 3, 2.0)(a, b)[0, 0] == pytest.approx((0.5 * -2 + 2) ** 3)
    assert Kernel("linear")(a, b)[0, 0] == -2.0
    assert Kernel(lambda x, z: x @ z.T + 1)(a, b)[0, 0] == -1.0


def test_a_kernel_that_is_none_is_refused():
    items = np.zeros((2, 1))
    with pytest.raises(ShapeError, match="all pairs of items"):
        Kernel(lambda _a, _b: np.zeros(3))(items, items)
    with pytest.raises(ParameterError, match="finite"):
        Kernel(lambda a, b: np.full((len(a), len(b)), np.nan))(items, items)
    for bad in ({"name": "cosine"}, {"name": "rbf", "gamma": 0}, {"name": "poly", "degree": 0}):
        with pytest.raises(ParameterError):
            Kernel(**bad)


def test_the_map_of_all_items_is_the_kernel_and_its_scorer_its_scores():
    rng = np.random.default_rng(1)
    items = np.repeat(rng.normal(size=(20, 2)), 2, axis=0)
    kernel = Kernel("rbf", 0.5)
    features = NystroemMap.from_items(kernel, items, 100, rng)
    np.testing.assert_allclose(features(items) @ features(items).T, kernel(items, items), atol=1e-8)
    w = rng.normal(size=features.whiten.shape[1])
    np.testing.assert_allclose(features.scorer(w)(items), features(items) @ w, atol=1e-9)
    few = NystroemMap.from_items(kernel, items, 5, rng)
    assert len(few.landmarks) == 5
    at_landmarks = few(few.landmarks)
    np.testing.assert_allclose(at_landmarks @ at_landmarks.T, kernel(few.landmarks, few.landmarks), atol=1e-8)


def test_scores_in_blocks_are_the_scores(monkeypatch):
    rng = np.random.default_rng(2)
    scorer = KernelScorer(Kernel("rbf"), rng.normal(size=(7, 2)), rng.normal(size=7))
    items = rng.normal(size=(23, 2))
    whole = scorer(items)
    monkeypatch.setattr("concordant.comparisons.gram_kernel.BLOCK", 15)
    np.testing.assert_allclose(scorer(items), whole)
    assert KernelScorer(Kernel("rbf"), np.empty((0, 2)), np.empty(0))(items).tolist() == [0.0] * 23


# ---------------------------------------------------------------- the threshold


DECISIONS = st.lists(
    st.tuples(st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 1e300]), st.sampled_from([-1, 0, 1])),
    min_size=1,
    max_size=12,
)


def check_threshold(tau, decision, y):
    tried = [0.0, *np.abs(decision), *(0.5 * np.abs(decision)), 2.0 * np.abs(decision).max()]
    least = min(oracles.threshold_errors(decision, y, t) for t in tried)
    assert oracles.threshold_errors(decision, y, tau) == least


@given(DECISIONS)
@settings(deadline=None)
def test_no_threshold_has_a_smaller_error(rows):
    decision, y = (np.array(column) for column in zip(*rows, strict=True))
    check_threshold(best_threshold(decision, y), decision, y)


def test_a_threshold_that_is_not_best_is_noticed():
    decision, y = [0.2, 0.4, 1.0], [0, 0, 1]
    assert best_threshold(decision, y) == pytest.approx(0.7)
    with pytest.raises(AssertionError):
        check_threshold(0.3, decision, y)


def test_thresholds_of_degenerate_decisions():
    assert best_threshold([1.0, -2.0], [1, -1]) == 0.0
    assert best_threshold([1.0, -2.0], [0, 0]) == 2.0
    assert best_threshold([0.0], [0]) == 0.0
    assert best_threshold([1.0, 3.0, 2.0], [0, 0, 1], [1.0, 1.0, 5.0]) == pytest.approx(1.5)
    assert outcomes(np.array([-1.0, 1.0, 1.0 + 1e-12]), 1.0).tolist() == [0, 0, 1]
    with pytest.raises(NonFiniteError):
        best_threshold([np.nan], [0])
    with pytest.raises(LengthMismatchError):
        best_threshold([1.0], [0, 1])
