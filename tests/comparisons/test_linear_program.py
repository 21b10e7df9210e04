"""Margins by linear and quadratic programs: feasible, optimal, and Lemma 1 between the two."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from concordant.comparisons.machines import linear_program
from concordant.comparisons.machines.linear_program import hard_margin_lp, hard_margin_qp, soft_margin_lp
from concordant.exceptions import (
    EmptyDataError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    NotSeparableError,
    ParameterError,
    ShapeError,
)
from tests import oracles

pytestmark = pytest.mark.once

HARD = (hard_margin_lp, hard_margin_qp)


def separable_pairs(seed, p, n, *, decades=0.0, band=0.2):
    """Differences that some w separates with a margin, features in units that differ; a tie among them."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=p)
    g = np.where(rng.random(n) < 0.5, rng.uniform(0, 1 - band, n), rng.uniform(1 + band, 3, n))
    g[0] = 0.5
    differences = rng.normal(size=(n, p))
    differences += ((g * rng.choice([-1, 1], n) - differences @ w) / (w @ w))[:, None] * w
    r = differences @ w
    y = np.where(np.abs(r) <= 1, 0, np.sign(r)).astype(int)
    return differences * 10.0 ** rng.uniform(-decades, decades, p), y


def lattice_pairs(most=6, labels=(-1, 0, 1)):
    """Small whole numbers, so that pairs repeat, vanish, and touch."""

    def some(p):
        rows = st.lists(st.lists(st.integers(-3, 3), min_size=p, max_size=p), min_size=1, max_size=most)
        return rows.flatmap(
            lambda d: st.tuples(
                st.just(d), st.lists(st.sampled_from(labels), min_size=len(d), max_size=len(d))
            )
        )

    return st.integers(1, 2).flatmap(some)


# ---------------------------------------------------------------- hard margin


def check_separates(differences, y, solution):
    """The two kinds of pairs are on their sides, at least mu away from the boundaries."""
    g = np.asarray(differences) @ solution.w
    assert 0 < solution.mu <= 1
    assert (np.abs(g[y == 0]) <= 1 - solution.mu + 1e-9).all()
    assert ((y * g)[y != 0] >= 1 + solution.mu - 1e-9).all()
    assert solution.gap >= 0


def check_binary(differences, y, solution):
    """The constraints of the quadratic program hold at u and bias, and Lemma 1 gives w and mu from them."""
    g = np.asarray(differences) @ solution.u
    assert solution.bias < 0
    assert (solution.bias + np.abs(g[y == 0]) <= -1 + 1e-7).all()
    assert (solution.bias + (y * g)[y != 0] >= 1 - 1e-7).all()
    assert np.allclose(solution.w, -solution.u / solution.bias, rtol=1e-12, atol=0)
    assert abs(solution.mu + 1 / solution.bias) < 1e-12


def check_lemma(differences, y, lp, qp):
    """The quadratic program's solution is feasible for the linear one, whose margin is no smaller."""
    check_separates(differences, y, lp)
    check_separates(differences, y, qp)
    check_binary(differences, y, qp)
    assert lp.mu >= qp.mu - 1e-9
    assert np.linalg.norm(qp.u) <= np.linalg.norm(lp.u) * (1 + 1e-6)


@given(
    st.integers(0, 2**32),
    st.integers(1, 6),
    st.integers(2, 40),
    st.sampled_from([0.0, 1.0, 3.0]),
    st.sampled_from([1e-4, 0.2]),
)
def test_lemma_1(seed, p, n, decades, band):
    differences, y = separable_pairs(seed, p, n, decades=decades, band=band)
    lp, qp = (program(differences, y) for program in HARD)
    check_lemma(differences, y, lp, qp)
    assert max(lp.gap, qp.gap) < 1e-6


def test_the_lemma_is_not_an_equality():
    differences, y = separable_pairs(9, 3, 30, decades=2)
    lp, qp = (program(differences, y) for program in HARD)
    assert lp.mu > 1.05 * qp.mu
    assert np.linalg.norm(lp.u) > 1.05 * np.linalg.norm(qp.u)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda lp, qp: (lp, replace(qp, mu=1.1 * qp.mu)),
        lambda lp, qp: (lp, replace(qp, w=qp.w + 1e-3 * np.abs(qp.w).max())),
        lambda lp, qp: (lp, replace(qp, w=1.001 * qp.w)),
        lambda lp, qp: (lp, replace(qp, w=-qp.w)),
        lambda lp, qp: (replace(lp, mu=lp.mu + 1e-4), qp),
        lambda lp, qp: (qp, lp),
        lambda lp, qp: (replace(lp, w=lp.w, gap=-1.0), qp),
    ],
)
def test_the_check_of_the_lemma_sees_wrong_solutions(wrong):
    differences, y = separable_pairs(9, 3, 30, decades=2)
    lp, qp = (program(differences, y) for program in HARD)
    check_lemma(differences, y, lp, qp)
    with pytest.raises(AssertionError):
        check_lemma(differences, y, *wrong(lp, qp))


def check_hard(differences, y, programs=HARD):
    """Whether pairs are separable, and the best margins, are as by enumeration; conflicts are true ones."""
    y = np.array(y)
    best = oracles.widest_margin(differences, y)
    if best <= 1e-9:
        for program in programs:
            with pytest.raises(NotSeparableError) as caught:
                program(differences, y)
            assert abs(caught.value.margin - best) < 1e-9
            rows = list(caught.value.conflict)
            assert len(rows) <= len(differences[0]) + 2
            assert oracles.widest_margin(np.array(differences)[rows], y[rows]) <= 1e-9
        return
    lp, qp = (program(differences, y) for program in programs)
    check_lemma(np.array(differences), y, lp, qp)
    assert abs(lp.mu - best) < 1e-9, (lp.mu, best)
    u, bias = oracles.shortest_separator(differences, y)
    assert np.allclose(qp.u, u, atol=1e-7)
    assert abs(qp.bias - bias) < 1e-7


@given(lattice_pairs())
def test_hard_margins_are_those_by_enumeration(pairs):
    differences, y = pairs
    if all(y):
        for program in HARD:
            with pytest.raises(LabelError, match="is a tie"):
                program(differences, y)
    else:
        check_hard(differences, y)


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(2, 6))
def test_hard_margins_of_separable_pairs_are_those_by_enumeration(seed, p, n):
    check_hard(*separable_pairs(seed, p, n, decades=0.5))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda program: lambda d, y: replace(program(d, y), mu=program(d, y).mu - 1e-5),
        lambda program: lambda d, y: replace(program(d, y), w=program(d, y).w * (1 - 1e-5)),
        lambda _: lambda *_: (_ for _ in ()).throw(NotSeparableError(3, 0.0, [0])),
        lambda _: hard_margin_lp,
    ],
)
def test_the_check_of_hard_margins_sees_wrong_programs(wrong):
    pairs = [[3.0, 0.0], [-4.0, 2.0], [1.0, 1.0]], [1, -1, 0]
    check_hard(*pairs)
    with pytest.raises((AssertionError, NotSeparableError)):
        check_hard(*pairs, programs=[hard_margin_lp, wrong(hard_margin_qp)])


@given(st.lists(st.tuples(st.integers(-9999, 9999), st.sampled_from([-1, 0, 1])), min_size=1, max_size=8))
def test_one_feature(pairs):
    """The closed form: the better of the two directions, (least difference - largest tie) / their sum."""
    d, y = np.array(pairs).T / [[1000.0], [1.0]]
    if y.all():
        return
    a = max((sign * y * d)[y != 0].min(initial=np.inf) for sign in (-1, 1))
    c = np.abs(d[y == 0]).max()
    mu = 1.0 if np.isinf(a) else (a - c) / (a + c) if a > 0 else -1.0
    for program in HARD:
        if mu > 1e-12:
            assert abs(program(d[:, None], y).mu - mu) < 1e-12
        else:
            with pytest.raises(NotSeparableError) as caught:
                program(d[:, None], y)
            assert abs(caught.value.margin - mu) < 1e-9


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.integers(1, 5))
def test_what_leaves_margins_as_they_are(seed, p):
    differences, y = separable_pairs(seed, p, 25, band=0.05)
    rng = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(rng.normal(size=(p, p)))
    any_map = rotation * 10.0 ** rng.uniform(-2, 2, p) @ rotation.T
    order, flips = rng.permutation(25), rng.choice([-1, 1], 25)
    same = [(-differences, -y), (differences[order], y[order]), (differences * flips[:, None], y * flips)]
    same += [(differences @ rotation, y), (sparse.csr_array(differences), y)]
    for program in HARD:
        mu = program(differences, y).mu
        assert all(abs(program(*pairs).mu - mu) < 1e-8 for pairs in same)
    assert abs(hard_margin_lp(differences @ any_map, y).mu - hard_margin_lp(differences, y).mu) < 1e-8


def test_touching_pairs_are_not_separable():
    for program in HARD:
        with pytest.raises(NotSeparableError, match="the largest margin is 0, and 2 of them") as caught:
            program([[2.0], [5.0], [2.0]], [1, 1, 0])
        assert caught.value.conflict == (0, 2)
        near = program([[2.0 + 1e-6], [5.0], [2.0]], [1, 1, 0])
        assert 0 < near.mu < 1e-6


def test_pairs_that_contradict_one_another():
    differences, y = separable_pairs(1, 4, 200)
    differences[17], y[17] = differences[3], -1 if y[3] >= 0 else 1
    for program in HARD:
        with pytest.raises(NotSeparableError, match="separates the 200 pairs") as caught:
            program(differences, y)
        assert {3, 17} <= set(caught.value.conflict) or len(caught.value.conflict) <= 6
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert (str(again), again.conflict) == (str(caught.value), caught.value.conflict)


def test_hard_margins_of_little_data():
    for program in HARD:
        only_ties = program([[1.0, 2.0], [0.0, 3.0]], [0, 0])
        assert only_ties.w.tolist() == [0, 0]
        assert (only_ties.mu, only_ties.bias) == (1, -1)
        zero_ties = program([[2.0, 0.0], [0.0, 0.0]], [1, 0])
        assert abs(zero_ties.mu - 1) < 1e-12  # ties at rank difference 0
        assert abs(zero_ties.w[0] - 1) < 1e-9
        constant = program([[3.0, 0.0], [-4.0, 0.0], [1.0, 0.0]], [1, -1, 0])
        assert constant.w.tolist() == [0.5, 0]
        with pytest.raises(NotSeparableError):
            program(np.zeros((2, 0)), [1, 0])
        with pytest.raises(NotSeparableError):
            program(np.zeros((2, 3)), [1, 0])


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e6, 1e12])
def test_hard_margins_in_other_units(scale):
    differences, y = separable_pairs(5, 3, 40)
    for program in HARD:
        plain, scaled = program(differences, y), program(scale * differences, y)
        assert abs(plain.mu - scaled.mu) < 1e-9
        check_separates(scale * differences, y, scaled)


def test_a_solver_that_gives_up_proves_nothing(monkeypatch):
    solved = linear_program.solve_program

    def tired(rows, *arguments, curvature=None, **options):
        if give_up(curvature):
            return np.zeros(rows.shape[1]), np.zeros(rows.shape[0]), 0
        return solved(rows, *arguments, curvature=curvature, **options)

    monkeypatch.setattr(linear_program, "solve_program", tired)
    differences, y = separable_pairs(5, 3, 40)
    give_up = lambda _: True  # noqa: E731
    for program in HARD:
        with pytest.raises(LabelError, match="HiGHS did not solve"):
            program(differences, y)
    give_up = lambda curvature: curvature is not None  # noqa: E731
    lp, qp = (program(differences, y) for program in HARD)
    assert (qp.mu, qp.gap) == (lp.mu, np.inf)  # what the other program found, and no claim


@pytest.mark.parametrize("program", [*HARD, lambda d, y: soft_margin_lp(d, y, 1.0)])
@pytest.mark.parametrize(
    ("differences", "y", "error"),
    [
        (np.zeros((0, 2)), [], EmptyDataError),
        ([[1.0], [np.nan]], [1, 0], NonFiniteError),
        ([[1.0], [np.inf]], [1, 0], NonFiniteError),
        ([[1.0], [2.0]], [1, 0, 0], LengthMismatchError),
        ([[1.0], [2.0]], [1, 2], LabelError),
        ([1.0, 2.0], [1, 0], ShapeError),
    ],
)
def test_bad_pairs(program, differences, y, error):
    with pytest.raises(error):
        program(differences, y)


# ---------------------------------------------------------------- soft margin


def check_soft(basis, y, C, nu, weights, solution):
    """Feasible, of the value that it states, and as good as the same program written in another way."""
    basis, y = np.asarray(basis, dtype=float), np.array(y)
    costs = C * (np.ones(len(y)) if weights is None else np.array(weights))
    g = basis @ solution.a
    margins = np.where(y == 0, 1 - np.abs(g), y * g - 1)
    assert 0 <= solution.mu <= 1
    assert (solution.slack >= 0).all()
    assert (solution.mu - solution.slack <= margins + 1e-9).all()
    value = np.abs(solution.a).sum() + costs @ solution.slack - nu * solution.mu
    small = 1.1e-6 * (value + 2 * nu * solution.mu) + 1e-9
    assert abs(value - solution.value) < 1e-9 * max(abs(value), 1)
    best = oracles.soft_margin(basis, y, costs, nu)
    assert abs(value - best) <= small, (value, best)
    assert solution.value - solution.gap <= best + 1e-9 * max(abs(best), 1)  # the bound is one
    assert solution.converged
    assert 0 <= solution.gap <= small


@pytest.mark.slow
@given(
    lattice_pairs(most=8),
    st.sampled_from([0.01, 0.3, 1.0, 20.0, 1e3]),
    st.sampled_from([0.0, 1.0, 5.0, 1e3]),
    st.booleans(),
)
def test_soft_margins_are_optimal(pairs, C, nu, weighted):
    basis, y = pairs
    weights = [(0.0, 0.5, 2.0)[i % 3] for i in range(len(y))] if weighted else None
    check_soft(basis, y, C, nu, weights, soft_margin_lp(basis, y, C, nu, weights))


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from([0.1, 10.0, 1e3]), st.sampled_from([0.0, 0.1, 0.5]))
def test_soft_margins_over_many_functions_are_optimal(seed, C, share):
    rng = np.random.default_rng(seed)
    n, K = int(rng.integers(1, 40)), int(rng.integers(1, 90))
    basis = rng.normal(size=(n, K)) * 10.0 ** rng.uniform(-1, 1, K)
    y = rng.integers(-1, 2, n)
    nu = C * n * share
    solution = soft_margin_lp(basis, y, C, nu)
    check_soft(basis, y, C, nu, None, solution)
    assert len(solution.support) <= 2 * n
    assert (
        abs(soft_margin_lp(sparse.csr_array(basis), y, C, nu).value - solution.value)
        <= 2 * solution.gap + 1e-8
    )


@pytest.mark.parametrize(
    "wrong",
    [
        lambda solution: replace(solution, value=solution.value - 1e-3),
        lambda solution: replace(solution, a=0.99 * solution.a),
        lambda solution: replace(solution, mu=solution.mu + 1e-3),
        lambda solution: replace(solution, slack=0.9 * solution.slack),
        lambda solution: replace(solution, gap=0.1),
    ],
)
def test_the_check_of_soft_margins_sees_wrong_solutions(wrong):
    rng = np.random.default_rng(0)
    basis, y = rng.normal(size=(20, 3)), rng.integers(-1, 2, 20)
    solution = soft_margin_lp(basis, y, 2.0, 30.0)
    assert 0 < solution.mu < 1
    check_soft(basis, y, 2.0, 30.0, None, solution)
    with pytest.raises(AssertionError):
        check_soft(basis, y, 2.0, 30.0, None, wrong(solution))


def test_kernels_at_more_points_than_pairs():
    rng = np.random.default_rng(4)
    x = rng.uniform(-2, 2, (60, 2))
    pairs = np.stack((x, x + rng.uniform(-1, 0.5, (60, 2))), axis=1)
    r = (pairs**2).sum(axis=2) @ [-1, 1] + rng.normal(size=60) / 4
    y = np.where(np.abs(r) <= 1, 0, np.sign(r)).astype(int)
    points = pairs.reshape(-1, 2)
    kernel = np.exp(-0.5 * ((pairs[:, :, None] - points) ** 2).sum(axis=-1))
    solution = soft_margin_lp(kernel[:, 1] - kernel[:, 0], y, 10.0, 100.0)
    check_soft(kernel[:, 1] - kernel[:, 0], y, 10.0, 100.0, None, solution)
    assert solution.n_rounds > 2  # functions entered by and by
    assert 0 < len(solution.support) < 40


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from([0.05, 0.2, 0.6]))
def test_nu_says_how_many_pairs_may_miss_the_margin(seed, share):
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(60, 4))
    r = basis @ [1, -1, 0.5, 0] + rng.normal(size=60) / 3
    y, weights = np.where(np.abs(r) <= 1, 0, np.sign(r)), rng.choice([0.5, 1, 2], 60)
    C, nu = 30.0, 30.0 * share * 60
    solution = soft_margin_lp(basis, y, C, nu, weights)
    g = basis @ solution.a
    room = np.where(y == 0, 1 - np.abs(g), y * g - 1) - solution.mu
    if 1e-6 < solution.mu < 1 - 1e-6:
        assert weights[room < -1e-6].sum() <= nu / C + 1e-6
        assert weights[room < 1e-6].sum() >= nu / C - 1e-6


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_a_soft_margin_that_must_not_be_missed_is_the_hard_one(seed, p):
    differences, y = separable_pairs(seed, p, 20)
    hard = hard_margin_lp(differences, y)
    # Wide margins must pay: nu far above what weights cost, C far above what nu gains.
    solution = soft_margin_lp(differences, y, C=1e8, nu=1e5 * np.abs(hard.w).sum(), tol=1e-9)
    assert abs(solution.mu - hard.mu) < 1e-4
    assert solution.slack.max() < 1e-6


def test_many_pairs_by_interior_points(monkeypatch):
    rng = np.random.default_rng(8)
    basis = rng.normal(size=(300, 4))
    r = basis @ [1, -1, 0.5, 0] + rng.normal(size=300) / 3
    y = np.where(np.abs(r) <= 1, 0, np.sign(r))
    by_simplex = soft_margin_lp(basis, y, 1.0, 30.0)
    monkeypatch.setattr(linear_program, "MANY_PAIRS", 100)
    solution = soft_margin_lp(basis, y, 1.0, 30.0)
    check_soft(basis, y, 1.0, 30.0, None, solution)
    assert (by_simplex.n_iter > 0, solution.n_iter) == (True, 0)
    assert np.allclose(solution.a, by_simplex.a, atol=1e-6)


def test_weights_count_like_repeated_pairs():
    rng = np.random.default_rng(2)
    basis, y, counts = rng.normal(size=(15, 3)), rng.integers(-1, 2, 15), rng.integers(0, 4, 15)
    repeated = np.repeat(np.arange(15), counts)
    weighed, plain = (
        soft_margin_lp(basis, y, 2.0, 9.0, counts),
        soft_margin_lp(basis[repeated], y[repeated], 2.0, 9.0),
    )
    assert abs(weighed.value - plain.value) < 1e-6


def test_soft_margins_of_little_data():
    only_ties = soft_margin_lp([[1.0], [2.0]], [0, 0], C=1.0)
    assert (only_ties.a.tolist(), only_ties.mu, only_ties.value) == ([0.0], 1.0, -1.0)
    for nu, best in ((0.4, [0.5, 0.0]), (0.6, [1.0, 1.0])):  # 2 a >= 1 + mu: mu costs half of itself
        no_ties = soft_margin_lp([[2.0], [-4.0]], [1, -1], C=10.0, nu=nu)
        assert np.allclose([*no_ties.a, no_ties.mu], best)
    nothing = soft_margin_lp(np.zeros((2, 0)), [1, 0], C=1.0)
    assert (nothing.a.shape, nothing.value) == ((0,), 1.0)
    ignored = soft_margin_lp([[1.0], [2.0]], [1, 0], C=1.0, weights=[0, 0])
    assert (ignored.a.tolist(), ignored.mu) == ([0.0], 1.0)
    solution = soft_margin_lp([[3.0, 1.0]], [-1], C=5.0)
    assert np.allclose([*solution.a, solution.mu], [-2 / 3, 0, 1])


@pytest.mark.parametrize("scale", [1e-9, 1e-4, 1e5, 1e9])
def test_soft_margins_in_other_units(scale):
    """Only the product of C and the unit counts, and that of nu."""
    rng = np.random.default_rng(3)
    basis, y = rng.normal(size=(30, 5)), rng.integers(-1, 2, 30)
    plain = soft_margin_lp(basis, y, 2.0, 10.0)
    scaled = soft_margin_lp(scale * basis, y, 2.0 / scale, 10.0 / scale)
    assert np.allclose(scaled.a * scale, plain.a, atol=1e-6)
    assert abs(scaled.mu - plain.mu) < 1e-6


@pytest.mark.parametrize(
    ("name", "value"),
    [*itertools.product(["C", "nu", "tol"], [-1.0, np.nan, np.inf, "1", None]), ("C", 0.0)],
)
def test_bad_parameters(name, value):
    parameters = {"C": 1.0, "nu": 1.0, "tol": 1e-6} | {name: value}
    with pytest.raises(ParameterError, match=name):
        soft_margin_lp([[1.0], [2.0]], [1, 0], **parameters)


def test_bad_weights():
    with pytest.raises(NonFiniteError, match="weights"):
        soft_margin_lp([[1.0], [2.0]], [1, 0], 1.0, weights=[1, -1])
    with pytest.raises(LengthMismatchError, match="weights"):
        soft_margin_lp([[1.0], [2.0]], [1, 0], 1.0, weights=[1])
