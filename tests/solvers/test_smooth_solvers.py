"""Linear objectives equal their definition in every layout; solvers find the optimum and know how far off."""

import itertools
import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from concordant._base import segments as _segments
from concordant._base.validate import freeze
from concordant.exceptions import LengthMismatchError, ParameterError, ShapeError
from concordant.solvers import LinearObjective, lbfgs, linear_scores, newton, sgd
from concordant.solvers import objective as objective_module
from concordant.solvers.linear_scores import LinearScorer, squares_within
from concordant.solvers.precondition import whitening
from concordant.surrogates import Duchi, Pairwise, Softmax, Squared
from tests import oracles
from tests.helpers.surrogate_checks import CASES, SMOOTH, reads, targets_for

SIZES = [0, 1, 6, 0, 9, 1, 4, 0]
SMOOTH_SOLVERS = {"lbfgs": lbfgs, "newton": newton}
SOLVERS = SMOOTH_SOLVERS | {"sgd": sgd}
SOME = [
    "softmax",
    "pairwise[huber_hinge]",
    "squared[plain]",
    "plackett_luce",
    "duchi[cosh]",
    "preorder[gain,logistic]",
]

every_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
every_smooth_solver = pytest.mark.parametrize("solver", SMOOTH_SOLVERS.values(), ids=SMOOTH_SOLVERS)


class Toy:
    """Features, labels and weights of a few queries, and their objective by definition."""

    def __init__(self, name, *, sizes=SIZES, n_features=4, alpha=0.1, scale=1.0, seed=0):
        rng = np.random.default_rng(seed)
        self.case, self.alpha, self.scale = CASES[name], alpha, scale
        self.offsets = np.cumsum([0, *sizes])
        # Whole quarters, half of them 0: exact in float32, and sparse.
        self.X = (
            rng.integers(-8, 9, (self.offsets[-1], n_features))
            / 4.0
            * rng.integers(0, 2, (self.offsets[-1], n_features))
        )
        self.targets = np.concatenate([targets_for(rng, reads(self.case.surrogate), n) for n in sizes])
        self.weights = rng.choice([0.5, 1.0, 2.0], len(self.targets)) / len(sizes)

    def objective(self, X=None, kind=LinearObjective, alpha=None):
        loss = self.case.surrogate.bind(self.targets, self.offsets, self.weights)
        scale = None if np.ndim(self.scale) == 0 else self.scale
        return kind(loss, self.X if X is None else X, self.alpha if alpha is None else alpha, scale)

    def defined(self, w):
        """Value, gradient and Hessian."""
        queries = self.queries
        return oracles.linear_objective(w, self.X, queries, self.case.oracle, self.alpha, self.scale)

    @property
    def queries(self):
        parts = [np.arange(start, stop) for start, stop in itertools.pairwise(self.offsets)]
        return [(rows, self.targets[rows], self.weights[rows]) for rows in parts]

    @property
    def n_features(self):
        return self.X.shape[1]

    def optimum(self):
        """Lowest value, found by another solver from the definition."""
        values = {}

        def at(w):
            key = w.tobytes()
            if key not in values:
                values[key] = self.defined(w)
            return values[key]

        result = minimize(
            lambda w: at(w)[:2],
            np.zeros(self.n_features),
            jac=True,
            hess=lambda w: at(w)[2],
            method="trust-exact",
            options={"gtol": 1e-11, "maxiter": 300},
        )
        assert np.linalg.norm(result.jac) < 1e-8 * (1 + abs(result.fun))
        return result.fun


# ---------------------------------------------------------------- the objective


def unsorted(X):
    """Each row's entries backwards."""
    rows = sparse.csr_array(X)
    places = np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in itertools.pairwise(rows.indptr)])
    return sparse.csr_array((rows.data[places], rows.indices[places], rows.indptr), shape=rows.shape)


def int64_indices(X):
    rows = sparse.csr_array(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


LAYOUTS = {
    "float64": np.array,
    "float32": lambda X: X.astype(np.float32),
    "columns": np.asfortranarray,
    "columns float32": lambda X: np.asfortranarray(X, dtype=np.float32),
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "read-only": freeze,
    "csr matrix": sparse.csr_matrix,
    "csr array": sparse.csr_array,
    "csr float32": lambda X: sparse.csr_matrix(X, dtype=np.float32),
    "csr int64": int64_indices,
    "csr unsorted": unsorted,
}


def check_defined(toy, objective, w, rel=1e-10):
    """Value, gradient and Hessian products are those of the definition."""
    value, grad = objective.value_and_grad(w)
    want, slope, hessian = toy.defined(w)
    assert value == pytest.approx(want, rel=rel, abs=rel)
    np.testing.assert_allclose(grad, slope, rtol=0, atol=rel * (1 + abs(slope).max()))
    for direction in (np.ones(len(w)), np.cos(np.arange(len(w)))):
        product = objective.hessian_product(direction)
        np.testing.assert_allclose(product, hessian @ direction, rtol=0, atol=rel * (1 + abs(hessian).max()))


def check_differences(objective, w, step=1e-6):
    """The gradient is the derivative of the value, the product that of the gradient."""
    _, grad = objective.value_and_grad(w)
    direction = np.sin(1.0 + np.arange(len(w)))
    product = objective.hessian_product(direction)
    (up, above), (down, below) = (objective.value_and_grad(w + sign * step * direction) for sign in (1, -1))
    assert abs((up - down) / (2 * step) - grad @ direction) < 1e-6 * (1 + abs(up))
    np.testing.assert_allclose(
        (above - below) / (2 * step), product, rtol=0, atol=1e-5 * (1 + abs(product).max())
    )


def points(n_features):
    return [np.zeros(n_features), *np.random.default_rng(1).normal(size=(2, n_features))]


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_objective_is_its_definition(name, layout):
    toy = Toy(name)
    for w in points(toy.n_features):
        check_defined(toy, toy.objective(LAYOUTS[layout](toy.X)), w)


@pytest.mark.parametrize("name", CASES)
def test_every_surrogate_goes_through(name):
    toy = Toy(name, scale=np.array([0.5, 1.0, 3.0, 1e3]))
    for w in points(toy.n_features):
        check_defined(toy, toy.objective(), w)


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_by_differences(name):
    toy = Toy(name)
    for w in points(toy.n_features)[1:]:
        check_differences(toy.objective(), 0.3 * w)


@pytest.mark.parametrize("sizes", [[1], [0, 1], [3], [0, 0, 2, 0], [1] * 7])
def test_few_rows(sizes):
    for name in SOME:
        toy = Toy(name, sizes=sizes)
        check_defined(toy, toy.objective(), points(toy.n_features)[1])


@pytest.mark.parametrize("layout", ["float64", "float32", "csr array"])
@pytest.mark.parametrize("block_bytes", [1, 200, 300])
@pytest.mark.parametrize("part_rows", [1, 8])
def test_blocks_and_parts(monkeypatch, layout, block_bytes, part_rows):
    monkeypatch.setattr(linear_scores, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(objective_module, "PART_ROWS", part_rows)
    toy = Toy("pairwise[logistic]")
    objective = toy.objective(LAYOUTS[layout](toy.X))
    assert len(objective.edges) > 2
    assert len(list(objective.blocks(0, len(SIZES)))) > 1
    check_defined(toy, objective, points(toy.n_features)[1])


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["float64", "float32", "columns float32", "csr array"])
@pytest.mark.parametrize("name", [*SOME, "pairwise[exponential]"])
def test_threads_change_no_bit(monkeypatch, name, layout):
    monkeypatch.setattr(_segments, "SERIAL_ROWS", 0)
    monkeypatch.setattr(objective_module, "PART_ROWS", 40)
    monkeypatch.setattr(linear_scores, "BLOCK_BYTES", 3000)
    toy = Toy(name, sizes=[7, 0, 31, 300, 2] * 4, n_features=17)
    results = []
    for threads in (1, 2, 5):
        monkeypatch.setenv("CONCORDANT_THREADS", str(threads))
        objective = toy.objective(LAYOUTS[layout](toy.X / 3))
        value, grad = objective.value_and_grad(np.linspace(-1, 1, 17))
        results.append(
            (value, *grad, *objective.hessian_product(np.ones(17)), *objective.scorer.all_scores(grad))
        )
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_are_not_copied(dtype, order):
    X = np.ones((5, 3), dtype=dtype, order=order)
    scorer = LinearScorer(X)
    assert np.shares_memory(scorer.X, X)
    assert not scorer.X.flags.writeable
    assert X.flags.writeable
    rows = sparse.csr_array(X)
    assert np.shares_memory(LinearScorer(rows).arrays[0], rows.data)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_rows", [1, 40])
def test_the_widest_of_each_feature_is_its_largest_size(n_rows, layout):
    assert LinearScorer(np.ones((0, 3))).widest().tolist() == [0.0] * 3
    X = np.random.default_rng(0).normal(size=(n_rows, 7)).round(2)
    widest = LinearScorer(LAYOUTS[layout](X)).widest()
    np.testing.assert_allclose(widest, np.abs(X).max(axis=0, initial=0.0), rtol=1e-6)


def test_equal_rows_have_equal_scores():
    rng = np.random.default_rng(0)
    for n_features in (1, 46, 136, 700):
        row, w = rng.normal(size=(2, n_features))
        for X in (
            np.tile(row, (103, 1)),
            np.tile(row.astype(np.float32), (5, 1)),
            np.asfortranarray(np.tile(row, (103, 1))),
            np.asfortranarray(np.tile(row, (21, 1)), dtype=np.float32),
            sparse.csr_array(np.tile(row, (9, 1))),
        ):
            scores = LinearScorer(X).all_scores(w)
            assert len(set(scores.tolist())) == 1
            np.testing.assert_allclose(scores, X @ w, rtol=1e-5)


def test_along_reads_scores_only():
    toy = Toy("softmax")
    objective = toy.objective()
    w, direction = points(toy.n_features)[1:]
    objective.value_and_grad(w)
    along = objective.along(toy.X @ direction, 0.7)
    there = w + 0.7 * direction
    assert along + 0.05 * there @ there == pytest.approx(toy.defined(there)[0])
    assert objective.at_rest() == pytest.approx(toy.defined(np.zeros(toy.n_features))[0])
    assert objective.n_gradients == 1


def test_lengths_that_kernels_rely_on():
    toy = Toy("softmax")
    with pytest.raises(LengthMismatchError):
        toy.objective(toy.X[:-1])
    toy.scale = np.ones(3)
    with pytest.raises(ShapeError, match="scale"):
        toy.objective()


class Doubled(LinearObjective):
    """A gradient twice too long."""

    def value_and_grad(self, w):
        value, grad = super().value_and_grad(w)
        return value, 2 * grad


class Bent(LinearObjective):
    """A Hessian without its penalty."""

    def hessian_product(self, direction):
        return super().hessian_product(direction) - self.alpha * direction


@pytest.mark.parametrize("kind", [Doubled, Bent])
def test_the_checks_reject_what_is_wrong(kind):
    toy = Toy("softmax")
    w = points(toy.n_features)[1]
    with pytest.raises(AssertionError):
        check_defined(toy, toy.objective(kind=kind), w)
    with pytest.raises(AssertionError):
        check_differences(toy.objective(kind=kind), w)


# ---------------------------------------------------------------- spread of features


@pytest.mark.parametrize("layout", LAYOUTS)
def test_squares_within_queries(layout):
    toy = Toy("softmax", n_features=5)
    X = toy.X.copy()
    X[:, 3], X[:, 4] = 0.1, 1.7e9 + np.arange(len(X))  # constant; far from 0, as dates are
    if "float32" in layout:
        X[:, 4] = 0.0
    counts = np.arange(len(SIZES)) / 4
    inside, whole = squares_within(LAYOUTS[layout](X), toy.offsets, counts)
    parts = [X[rows] for rows, _, _ in toy.queries]
    about = sum(
        n * ((x - x.mean(axis=0)) ** 2).sum(axis=0) for n, x in zip(counts, parts, strict=True) if len(x)
    )
    np.testing.assert_allclose(inside, about, rtol=1e-6, atol=1e-25)
    np.testing.assert_allclose(
        whole, sum(n * (x**2).sum(axis=0) for n, x in zip(counts, parts, strict=True)), rtol=1e-6
    )


def test_squares_of_nothing():
    for empty in (np.empty((0, 2)), sparse.csr_array((0, 2))):
        for squares in squares_within(empty, np.array([0, 0])):
            assert squares.tolist() == [0.0, 0.0]


def test_stored_twice_is_added():
    twice = sparse.csr_array((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2, 2])), shape=(2, 1))
    assert [x.tolist() for x in squares_within(twice, np.array([0, 2]))] == [[4.5], [9.0]]
    assert twice.nnz == 2


# ---------------------------------------------------------------- optima


def check_solution(toy, solution, tol, factor=20.0):
    """Within a factor of the tolerance, and below what the solution itself says."""
    best, at_rest = toy.optimum(), abs(toy.defined(np.zeros(toy.n_features))[0])
    value, grad, _ = toy.defined(solution.w)
    assert solution.value == pytest.approx(value, rel=1e-10)
    assert solution.gradient_norm == pytest.approx(np.linalg.norm(grad), rel=1e-5, abs=1e-9)
    rounding = 1e-12 * (1 + abs(best))
    assert -rounding <= value - best <= solution.gap + rounding
    assert value - best <= factor * tol * (at_rest or abs(best)) + rounding


@pytest.mark.parametrize("name", SMOOTH)
@every_smooth_solver
@pytest.mark.parametrize("alpha", [1.0, 1e-3])
def test_optimum(name, solver, alpha):
    toy = Toy(name, alpha=alpha)
    solution = solver(toy.objective(), np.zeros(toy.n_features), tol=1e-8)
    assert (solution.converged, solution.stopped_by) == (True, "tolerance")
    check_solution(toy, solution, 1e-8)


def test_the_check_rejects_a_wrong_optimum():
    toy = Toy("softmax")
    with pytest.raises(AssertionError):
        check_solution(toy, lbfgs(toy.objective(kind=Doubled), np.zeros(4)), 1e-6)
    with pytest.raises(AssertionError):
        check_solution(toy, lbfgs(toy.objective(alpha=0.2), np.zeros(4)), 1e-6)
    with pytest.raises(AssertionError):
        check_solution(toy, lbfgs(toy.objective(), np.zeros(4), max_iter=1), 1e-6)


@pytest.mark.parametrize("name", SOME)
@every_smooth_solver
def test_gap_is_a_bound_and_excess_a_good_guess(name, solver):
    """After every step on the way, too."""
    toy = Toy(name, sizes=[5, 9, 12, 4, 8], alpha=0.01)
    best, steps = toy.optimum(), []
    solver(toy.objective(), np.zeros(toy.n_features), tol=1e-10, callback=steps.append)
    assert len(steps) >= 2
    for step in steps:
        value, grad, _ = toy.defined(step.w)
        off = value - best
        assert step.value == pytest.approx(value, rel=1e-10)
        assert off <= grad @ grad / (2 * toy.alpha) + 1e-12
        assert off < 1e-9 * abs(best) or 0.05 < off / step.excess < 20, (off, step.excess)


@pytest.mark.parametrize("alpha", [1.0, 1e-2])
def test_a_hinge_comes_close(alpha):
    """Corners: no gradient vanishes, but the dual bounds the optimum from below."""
    toy = Toy("pairwise[hinge]", sizes=[4, 5, 3], alpha=alpha)
    solution = lbfgs(toy.objective(), np.zeros(4), tol=1e-8)
    bound = oracles.hinge_dual(toy.X, toy.queries, alpha)
    assert bound * (1 - 1e-9) <= solution.value <= bound * (1 + 1e-3)
    assert math.isfinite(lbfgs(toy.objective(alpha=0.0), np.zeros(4)).value)


def test_solvers_agree_across_layouts():
    toy = Toy("pairwise[huber_hinge]", sizes=[9] * 6)
    weights = [lbfgs(toy.objective(make(toy.X)), np.zeros(4), tol=1e-12).w for make in LAYOUTS.values()]
    for w in weights[1:]:
        np.testing.assert_allclose(w, weights[0], rtol=1e-5, atol=1e-8)


def test_equal_runs_give_equal_bits():
    toy = Toy("pairwise[logistic]")
    for solver in SOLVERS.values():
        first, second = (solver(toy.objective(), np.zeros(4)) for _ in range(2))
        assert first.w.tobytes() == second.w.tobytes()


# ---------------------------------------------------------------- how solvers end


@every_solver
def test_reasons_to_stop(solver):
    toy = Toy("softmax", sizes=[6] * 9, alpha=0.01)
    objective, zero = toy.objective(), np.zeros(4)
    enough = solver(objective, zero, tol=1e-2)
    assert (enough.stopped_by, enough.converged) == ("tolerance", True)
    assert enough.excess <= 1e-2 * objective.at_rest()
    short = solver(objective, zero, tol=0.0, max_iter=1)
    assert (short.stopped_by, short.converged, short.n_iter) == ("max_iter", False, 1)
    ended = solver(objective, zero, tol=0.0, callback=lambda step: step.iteration == 2)
    assert (ended.stopped_by, ended.converged, ended.n_iter) == ("callback", False, 2)
    assert enough.n_gradients >= enough.n_iter
    assert not zero.any()


@every_smooth_solver
def test_no_tolerance_stops_at_rounding(solver):
    toy = Toy("softmax")
    solution = solver(toy.objective(), np.zeros(4), tol=0.0)
    assert solution.stopped_by == "precision"
    assert solution.excess < 1e-14


@every_solver
def test_callbacks_see_the_way(solver):
    toy, steps = Toy("softmax", alpha=0.01), []

    def record_step(step):
        steps.append(step)
        step.w[:] = math.nan  # a copy: nobody minds

    solution = solver(toy.objective(), np.zeros(4), tol=1e-3, callback=record_step)
    assert [step.iteration for step in steps] == list(range(1, solution.n_iter + 1))
    assert steps[-1].excess <= steps[-1].goal
    assert solution.value == min(step.value for step in steps)
    assert np.isfinite(solution.w).all()


class Interrupted(LinearObjective):
    """Ctrl-C at the n-th evaluation; keeps the ones before."""

    at = 1

    def value_and_grad(self, w):
        if not hasattr(self, "evaluations"):
            self.evaluations = []
        if len(self.evaluations) + 1 == self.at:
            raise KeyboardInterrupt
        result = super().value_and_grad(w)
        self.evaluations.append((result[0], w.copy()))
        return result


@every_solver
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_ctrl_c_in_the_objective_keeps_the_best(solver, at):
    toy = Toy("pairwise[logistic]", alpha=0.01)
    objective, start = toy.objective(kind=Interrupted), np.full(4, 0.1)
    objective.at = at
    solution = solver(objective, start, tol=1e-12)
    assert (solution.stopped_by, solution.converged) == ("interrupt", False)
    if at == 1:
        assert solution.w.tolist() == start.tolist()
        assert math.isnan(solution.value)
        assert solution.excess == math.inf
    elif solver is not sgd or at == 2:  # later ones of sgd try out rates
        value, w = min(objective.evaluations, key=lambda evaluation: evaluation[0])
        assert (solution.value, solution.w.tolist()) == (value, w.tolist())


@every_solver
def test_ctrl_c_in_a_callback_keeps_the_best(solver):
    toy, steps = Toy("softmax", alpha=0.01), []

    def interrupt(step):
        steps.append(step)
        if len(steps) == 2:
            raise KeyboardInterrupt

    solution = solver(toy.objective(), np.zeros(4), tol=1e-12, callback=interrupt)
    assert (solution.stopped_by, solution.n_iter) == ("interrupt", 2)
    assert solution.value <= min(step.value for step in steps)


@every_solver
def test_ctrl_c_at_the_last_step_is_not_lost(solver):
    def interrupt(step):
        if step.excess <= step.goal:
            raise KeyboardInterrupt

    solution = solver(Toy("softmax").objective(), np.zeros(4), tol=1e-2, callback=interrupt)
    assert (solution.stopped_by, solution.converged) == ("interrupt", True)


@every_solver
def test_errors_of_a_callback_go_through(solver):
    def fail(step):
        raise RuntimeError(step.iteration)

    with pytest.raises(RuntimeError):
        solver(Toy("softmax").objective(), np.zeros(4), callback=fail)


@every_solver
@pytest.mark.parametrize("name", ["softmax", "pairwise[huber_hinge]", "duchi[square]"])
def test_at_the_optimum_it_stops_at_once(solver, name):
    toy = Toy(name)
    best = lbfgs(toy.objective(), np.zeros(4), tol=1e-13)
    again = solver(toy.objective(), best.w, tol=1e-6)
    assert (again.n_iter, again.n_gradients, again.stopped_by) == (0, 1, "tolerance")
    assert again.w.tolist() == best.w.tolist()


@every_smooth_solver
@pytest.mark.parametrize("name", ["pairwise[logistic]", "pairwise[huber_hinge]", "softmax", "duchi[quartic]"])
def test_a_bad_start_is_no_excuse(solver, name):
    """Where a loss grows like a line, its gradient is small beside its value: yet far from done."""
    toy = Toy(name, alpha=1e-8)
    cold = solver(toy.objective(), np.zeros(4))
    warm = solver(toy.objective(), np.array([3e4, -1e4, 2e4, 1e4]))
    assert warm.converged
    assert warm.value == pytest.approx(cold.value, rel=1e-4)


def test_newton_needs_products():
    class Plain:
        n_gradients, alpha = 0, 1.0

    with pytest.raises(ParameterError, match="hessian_product"):
        newton(Plain(), np.zeros(2))


# ---------------------------------------------------------------- hard cases


@every_solver
@pytest.mark.parametrize(
    "name",
    [
        "pairwise[huber_hinge]",
        "preorder[unit,squared_hinge]",
        "preorder[pairs,logistic]",
        "preorder[gain,exponential]",
        "softmax",
        "pairwise[hinge]",
    ],
)
def test_separable_without_penalty(solver, name):
    """The lowest value may lie at infinity: it is approached, and the work ends."""
    toy = Toy(name, sizes=[6] * 5, alpha=0.0)
    toy.targets = np.tile([1.0, 0.0, 0.0, 0.0, 0.0, 0.0], 5)
    toy.X[:, 0] = toy.targets
    solution = solver(toy.objective(), np.zeros(4), max_iter=60)
    assert np.isfinite(solution.w).all()
    assert solution.gap == math.inf
    reached = solution.value / toy.objective().at_rest()
    floor = {"pairwise[huber_hinge]": 0.5, "pairwise[hinge]": 0.5}.get(
        name, 1e-2 if solver is not sgd else 0.2
    )
    assert reached < floor


@every_solver
@pytest.mark.parametrize("alpha", [0.0, 1e-3])
@pytest.mark.parametrize("start", [0.0, 1.0])
def test_no_label_differs(solver, alpha, start):
    """All targets 0: the penalty alone decides."""
    toy = Toy("pairwise[huber_hinge]", alpha=alpha)
    toy.targets = np.zeros(len(toy.targets))
    solution = solver(toy.objective(), np.full(4, start))
    assert np.isfinite(solution.w).all()
    if not start:
        assert (solution.w.tolist(), solution.converged) == ([0.0] * 4, True)
    elif alpha and solver is not sgd:
        assert abs(solution.w).max() < 1e-3


@every_solver
def test_nothing_to_learn_from(solver):
    """Queries of one item, and empty ones."""
    toy = Toy("softmax", sizes=[1, 0, 1])
    assert solver(toy.objective(), np.zeros(4)).w.tolist() == [0.0] * 4


@every_smooth_solver
@pytest.mark.parametrize("name", ["pairwise[exponential]", "duchi[cosh]"])
def test_values_beyond_the_doubles(solver, name):
    """Steps that overshoot to infinity are taken back, without a warning."""
    toy = Toy(name, alpha=1e-6)
    toy.X = toy.X * 300.0
    solution = solver(toy.objective(), np.zeros(4))
    assert np.isfinite([*solution.w, solution.value]).all()
    assert solution.value < toy.objective().at_rest()


@every_smooth_solver
@pytest.mark.parametrize("alpha", [0.0, 1e-4])
@pytest.mark.parametrize("name", ["softmax", "duchi[square]"])
def test_constant_and_duplicate_features(solver, name, alpha):
    toy = Toy(name, sizes=[8] * 6, n_features=3, alpha=alpha)
    plain = solver(toy.objective(), np.zeros(3), tol=1e-10)
    extra = np.column_stack(
        [toy.X, toy.X[:, 0], np.full(len(toy.X), 0.1), 1e6 * toy.X[:, 1], np.zeros(len(toy.X))]
    )
    solution = solver(toy.objective(extra), np.zeros(7), tol=1e-10)
    assert solution.converged
    assert np.isfinite(solution.w).all()
    if name == "softmax" and not alpha:  # neither adds anything
        assert solution.value == pytest.approx(plain.value, rel=1e-7)
    assert solution.value <= plain.value * (1 + 1e-7) + 1e-12


# ---------------------------------------------------------------- coordinates


def roundness(toy, objective):
    """Eigenvalues of the Hessian, by definition and at weights 0, in the coordinates."""
    frame = whitening(objective)
    P = np.column_stack([frame.forth(e) for e in np.eye(objective.n_features)])
    return np.linalg.eigvalsh(P.T @ toy.defined(np.zeros(objective.n_features))[2] @ P)


@pytest.mark.parametrize(
    "name", ["squared", "softmax", "pairwise[logistic]", "duchi[square]", "squared[plain]"]
)
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_the_objective_is_nearly_round(name, alpha):
    rng = np.random.default_rng(3)
    toy = Toy(name, sizes=[10] * 60, alpha=alpha)
    mix = rng.normal(size=(4, 4)) * [1e3, 1.0, 1e-3, 1.0]
    toy.X = rng.normal(size=(600, 4)) @ mix + np.repeat(5 * rng.normal(size=(60, 4)), 10, axis=0) @ mix
    toy.weights = np.full(600, 1 / 60)
    eigenvalues = roundness(toy, toy.objective())
    assert eigenvalues.min() > 0.1
    assert eigenvalues.max() < 10


def test_coordinates_go_forth_and_back():
    toy = Toy("softmax", sizes=[9] * 9)
    for objective in (toy.objective(), toy.objective(np.tile(toy.X, 300))):
        frame, rng = whitening(objective), np.random.default_rng(4)
        w, v = rng.normal(size=(2, objective.n_features))
        np.testing.assert_allclose(frame.forth(frame.inverse(w)), w, atol=1e-6)
        assert frame.forth(v) @ w == pytest.approx(v @ frame.back(w))
        assert frame.matrix.ndim == (2 if objective.n_features == 4 else 1)


@pytest.mark.parametrize("alpha", [1e-2, 0.0])
def test_many_sparse_features_stay_sparse(monkeypatch, alpha):
    """A dense copy of a sample would be gigabytes."""
    rng = np.random.default_rng(5)
    X = sparse.random_array((300, 5_000), density=4e-3, rng=rng, format="csr")
    targets = np.asarray(X[:, :2_500].sum(axis=1)).ravel()
    loss = Softmax().bind(targets, np.arange(0, 301, 10), np.full(300, 0.1))
    monkeypatch.setattr(sparse.csr_array, "toarray", None)
    objective = LinearObjective(loss, X, alpha)
    solution = lbfgs(objective, np.zeros(5_000), max_iter=20, tol=1e-4)
    assert solution.value < 0.98 * objective.at_rest()


@pytest.mark.parametrize("surrogate", [Squared(), Duchi(), Pairwise("hinge")])
def test_a_few_gradients_are_enough(surrogate):
    """Features of different scales, correlated, with levels that differ between queries."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(2000, 20)) @ rng.normal(size=(20, 20)) * np.logspace(-3, 3, 20)
    X += 3 * np.repeat(rng.normal(size=(100, 20)), 20, axis=0) * np.logspace(-3, 3, 20)
    targets = np.round(np.abs(X[:, 0] / X[:, 0].std() + rng.normal(size=2000)))
    loss = surrogate.bind(targets, np.arange(0, 2001, 20), np.full(2000, 0.01))
    solution = lbfgs(LinearObjective(loss, X, 1e-3), np.zeros(20), tol=1e-6)
    assert solution.converged
    assert solution.n_gradients < (120 if surrogate.name == "pairwise" else 25)


# ---------------------------------------------------------------- stochastic gradient


@pytest.mark.parametrize("name", ["softmax", "pairwise[huber_hinge]", "squared", "preorder[pairs,logistic]"])
def test_sgd_comes_close(name):
    toy = Toy(name, sizes=[8] * 60, alpha=0.01, seed=2)
    toy.targets = toy.targets + (toy.X[:, 0] > 0)
    best, rest = toy.optimum(), toy.objective().at_rest()
    solution = sgd(toy.objective(), np.zeros(4), max_iter=40, tol=1e-12)
    assert solution.value - best < 1e-3 * rest
    assert solution.value < rest
    assert solution.value - best <= solution.gap + 1e-12


def test_sgd_is_reproducible():
    toy = Toy("softmax", sizes=[6] * 20)
    runs = [
        sgd(toy.objective(), np.zeros(4), max_iter=3, tol=0.0, seed=seed).w.tolist() for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1] != runs[2]


def test_sgd_on_sparse_rows():
    toy = Toy("softmax", sizes=[6] * 20)
    dense, rows = (sgd(toy.objective(X), np.zeros(4), max_iter=3) for X in (toy.X, sparse.csr_array(toy.X)))
    np.testing.assert_allclose(rows.w, dense.w, rtol=1e-9)


def test_the_spread_of_sparse_features_is_summed_by_parts(monkeypatch):
    from scipy.sparse import random_array

    X, offsets = random_array((50, 4), density=0.4, rng=3, format="csr"), np.array([0, 7, 7, 20, 50])
    weights = np.array([1.0, 2.0, 0.5, 3.0])
    whole = squares_within(X.toarray(), offsets, weights)
    np.testing.assert_allclose(squares_within(X, offsets, weights), whole)
    monkeypatch.setattr(linear_scores, "PART_CELLS", 10)
    np.testing.assert_allclose(squares_within(X, offsets, weights), whole)
