"""Bundle solver: mixtures of planes are the best ones, gaps are true bounds, and the work ends as it says."""

import importlib
import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

import concordant as cc
from concordant._base import segments as _segments
from concordant.exceptions import ParameterError
from concordant.solvers import LinearObjective, bundle, lbfgs
from concordant.solvers import objective as objective_module
from concordant.solvers.bundle import best_mixture
from concordant.surrogates import (
    Duchi,
    ListwiseHinge,
    Pairwise,
    PositionHinge,
    Preorder,
    Softmax,
    Squared,
)
from tests import oracles

bundle_module = importlib.import_module("concordant.solvers.bundle")  # whose name the function took over

# ---------------------------------------------------------------- the best mixture


def worth(H, b, shares):
    return b @ shares - 0.5 * shares @ H @ shares


def best_by_trial(H, b):
    """Largest worth over every set of planes: each set's best shares by least squares."""
    most = -np.inf
    for size in range(1, len(b) + 1):
        for some in map(list, itertools.combinations(range(len(b)), size)):
            system = np.ones((size + 1, size + 1))
            system[:size, :size], system[size, size] = H[np.ix_(some, some)], 0.0
            values = np.linalg.lstsq(system, np.r_[b[some], 1.0], rcond=None)[0][:size].clip(min=0)
            if values.any():
                shares = np.zeros(len(b))
                shares[some] = values / values.sum()
                most = max(most, worth(H, b, shares))
    return most


def check_mixture(H, b, start, mixed=best_mixture):
    """Feasible, not below its start, and as good as the best by trial; up to rounding of the numbers."""
    before = start.copy()
    shares = mixed(H, b, start)
    assert shares.shape == b.shape
    assert (start == before).all()
    assert (shares >= 0).all()
    assert abs(shares.sum() - 1) < 1e-12
    rounding = 1e-9 * abs(b).max() + 1e-12 * np.diagonal(H).max()
    reached = worth(H, b, shares)
    assert reached >= worth(H, b, start) - rounding
    if len(b) <= 5:
        best = best_by_trial(H, b)
        assert best - rounding <= reached, (best, reached)
    # Moving towards any one plane does not pay: the optimum is above by at most the largest slope.
    slopes = b - H @ shares
    assert slopes.max() - slopes @ shares <= rounding * 10, slopes
    return shares


def starts(rng, n):
    return [np.eye(n)[rng.integers(n)], rng.dirichlet(np.ones(n)), np.full(n, 1 / n)]


SCALES = [(1.0, 1.0), (1e-9, 1.0), (1e9, 1.0), (1.0, 1e-12), (1e12, 1e12), (1e-300, 1.0), (1e-20, 1e-300)]


@pytest.mark.parametrize(("steep", "high"), SCALES)
def test_mixtures_of_few_planes(steep, high):
    rng = np.random.default_rng(0)
    for _ in range(40):
        n, n_features = rng.integers(1, 6), rng.integers(0, 6)
        slopes = rng.normal(size=(n, n_features))
        H, b = steep * (slopes @ slopes.T), high * rng.normal(size=n)
        for start in starts(rng, n):
            check_mixture(H, b, start)


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.tuples(
            st.lists(st.lists(st.integers(-2, 2), min_size=2, max_size=2), min_size=n, max_size=n),
            st.lists(st.integers(-2, 2), min_size=n, max_size=n),
            st.integers(0, n - 1),
        )
    )
)
def test_mixtures_of_planes_that_repeat(drawn):
    """Small whole numbers: equal planes, level planes, planes of equal height."""
    slopes, b, first = np.array(drawn[0], float), np.array(drawn[1], float), drawn[2]
    check_mixture(slopes @ slopes.T, b, np.eye(len(b))[first])


def test_mixtures_of_level_planes():
    """Without slopes the highest plane bears everything; among equals any will do."""
    for b in (np.zeros(3), np.array([0.0, 2.0, -1.0]), np.array([-1e300, -1.0, 1e300]), np.full(3, 7.0)):
        for start in (np.eye(3)[0], np.full(3, 1 / 3), np.array([0.5, 0.0, 0.5])):
            assert b @ check_mixture(np.zeros((3, 3)), b, start) == pytest.approx(b.max())


def test_mixtures_of_many_planes():
    """As found by another method; and from where a mixture of all but one ended."""
    rng = np.random.default_rng(1)
    for n, n_features, copies in ((12, 3, 1), (12, 20, 1), (8, 3, 3), (60, 5, 2)):
        slopes = np.repeat(rng.normal(size=(n, n_features)), copies, axis=0)
        H, b = slopes @ slopes.T, np.repeat(rng.normal(size=n), copies)
        shares = check_mixture(H, b, np.eye(n * copies)[0])
        near = np.r_[check_mixture(H[:-1, :-1], b[:-1], np.eye(n * copies - 1)[0]), 0.0]
        assert worth(H, b, check_mixture(H, b, near)) == pytest.approx(worth(H, b, shares), abs=1e-10)
        if n * copies < 30:
            result = minimize(
                lambda x, H=H, b=b: (-worth(H, b, x), H @ x - b),
                np.full(n * copies, 1 / (n * copies)),
                jac=True,
                method="SLSQP",
                bounds=[(0, 1)] * (n * copies),
                constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like},
                options={"ftol": 1e-15, "maxiter": 500},
            )
            assert worth(H, b, shares) >= -result.fun - 1e-9


def test_one_steep_plane_does_not_drown_the_others():
    """A plane from far away, 1e8 times as steep as the others, and low: as if it were not there."""
    rng = np.random.default_rng(2)
    slopes, b = rng.normal(size=(5, 3)), rng.normal(size=5)
    far = np.vstack([slopes, [1e8, 2e8, -1e8]])
    alone = check_mixture(slopes @ slopes.T, b, np.eye(5)[0])
    both = best_mixture(far @ far.T, np.r_[b, -1e16], np.eye(6)[5])
    np.testing.assert_allclose(both, np.r_[alone, 0.0], atol=1e-9)


def test_the_check_rejects_bad_mixtures():
    H, b, start = np.eye(3), np.array([0.0, 1.0, 1.0]), np.array([1.0, 0.0, 0.0])
    check_mixture(H, b, start)
    wrong = [
        lambda *_: start,
        lambda *_: np.array([0.0, 0.6, 0.6]),
        lambda *_: np.array([-0.2, 0.6, 0.6]),
        lambda *_: np.array([0.0, 0.51, 0.49]),
    ]
    for mixed in wrong:
        with pytest.raises(AssertionError):
            check_mixture(H, b, start, mixed)


# ---------------------------------------------------------------- optima, without a bundle


class Planes(NamedTuple):
    """A loss with corners: sum over groups of the highest of each group's planes; in scores of a query."""

    heights: list
    slopes: list


def pair(n, i, j):
    """Slope of s_j - s_i."""
    return np.eye(n)[j] - np.eye(n)[i]


def hinges(n, pairs):
    """Groups of two: 0, and weight * (margin - (s_i - s_j))."""
    heights = [[0.0, weight * margin] for _, _, margin, weight in pairs]
    return Planes(heights, [[np.zeros(n), weight * pair(n, i, j)] for i, j, _, weight in pairs])


def position_planes(grades, weights, reduction):
    y, n = np.array(oracles.rank_labels(list(grades))), len(grades)
    worse = [(i, j) for i, j in itertools.permutations(range(n), 2) if y[i] < y[j]]
    parts = {"sum": 1, "pairs": max(len(worse), 1), "all_pairs": max(n * (n - 1) / 2, 1)}[reduction]
    return hinges(n, [(i, j, oracles.position_margins(y, i)[j], weights[i] / parts) for i, j in worse])


def pairwise_planes(targets, weights, normalize):
    n = len(targets)
    parts = max(n * (n - 1), 1) if normalize else 1
    every = itertools.product(range(n), repeat=2)
    return hinges(n, [(i, j, 1.0, targets[i] * weights[i] / parts) for i, j in every])


def preorder_planes(grades, weights, weighting):
    n = len(grades)
    worse = [(i, j) for i, j in itertools.permutations(range(n), 2) if grades[i] > grades[j]]

    def share(i, j):
        gain = 2.0 ** grades[i] - 2.0 ** grades[j]
        return weights[i] * {"unit": 1, "pairs": 1 / len(worse), "gain": gain / len(worse)}[weighting]

    return hinges(n, [(i, j, 1.0, share(i, j)) for i, j in worse])


def listwise_planes(grades, weights, metric, *, added=False):
    """One group of all orders; or one of each order and 0."""
    n, labels = len(grades), oracles.item_labels(metric, grades)
    places = oracles.all_places(n)
    gold, share = oracles.sorted_places(labels), np.mean(weights)
    if added:
        places = places[:, ~oracles.is_consistent(labels, places)]
    heights = share * oracles.order_loss(metric, grades, places)
    slopes = share * (oracles.order_slopes(labels, places) - oracles.order_slopes(labels, gold)[:, None])
    slopes = np.asarray(slopes, float).T
    if added:
        return Planes([[0.0, height] for height in heights], [[np.zeros(n), slope] for slope in slopes])
    return Planes([list(heights)], [list(slopes)])


def listwise(spec, oracle, mode="max"):
    return ListwiseHinge(cc.metric(spec), mode), lambda t, w: listwise_planes(
        t, w, oracle, added=mode == "sum"
    )


AP, P2 = oracles.ListMetric("ap"), oracles.ListMetric("p", k=2)
CORNERED = {
    f"position[{how}]": (PositionHinge(how), lambda t, w, how=how: position_planes(t, w, how))
    for how in ("sum", "pairs", "all_pairs")
} | {
    "max[ap]": listwise("ap", AP),
    "max[ndcg]": listwise("ndcg", oracles.ListMetric("ndcg")),
    "max[auc]": listwise("auc", oracles.ListMetric("auc")),
    "max[p@2]": listwise("p@2", P2),
    "sum[ap]": listwise("ap", AP, "sum"),
    "preorder[unit]": (Preorder("unit", "hinge"), lambda t, w: preorder_planes(t, w, "unit")),
    "preorder[pairs]": (Preorder("pairs", "hinge"), lambda t, w: preorder_planes(t, w, "pairs")),
    "preorder[gain]": (Preorder("gain", "hinge"), lambda t, w: preorder_planes(t, w, "gain")),
    "pairwise": (Pairwise("hinge"), lambda t, w: pairwise_planes(t, w, normalize=False)),
    "pairwise[normalize]": (Pairwise("hinge", True), lambda t, w: pairwise_planes(t, w, normalize=True)),
}
SMOOTH = {
    "softmax": Softmax(),
    "pairwise[logistic]": Pairwise("logistic"),
    "squared[plain]": Squared(centred=False),
    "duchi": Duchi(),
    "softmax[ap]": ListwiseHinge(cc.metric("ap"), "softmax"),
}
SURROGATE = {name: surrogate for name, (surrogate, _) in CORNERED.items()} | SMOOTH
every_cornered = pytest.mark.parametrize("name", CORNERED)
every_loss = pytest.mark.parametrize("name", SURROGATE)


class Toy:
    """Features, grades and weights of a few short queries."""

    def __init__(self, name, *, sizes=(4, 1, 5, 3, 0, 5, 2), n_features=4, alpha=0.1, seed=0):
        rng = np.random.default_rng(seed)
        self.name, self.alpha, self.sizes = name, alpha, sizes
        self.offsets = np.cumsum([0, *sizes])
        n = int(self.offsets[-1])
        self.X = rng.normal(size=(n, n_features))
        grades = np.digitize(self.X[:, 0] + rng.normal(size=n), [-0.5, 0.5, 1.5])
        self.targets = np.minimum(grades, 1.0 if name.startswith(("max[", "sum[")) else 3.0)
        self.weights = rng.choice([0.5, 1.0, 2.0], n) / len(sizes)

    @property
    def zero(self):
        return np.zeros(self.X.shape[1])

    def objective(self, X=None, kind=LinearObjective, alpha=None):
        loss = SURROGATE[self.name].bind(self.targets, self.offsets, self.weights)
        return kind(loss, self.X if X is None else X, self.alpha if alpha is None else alpha)

    def solve(self, start=None, X=None, **options):
        return bundle(self.objective(X), self.zero if start is None else start, **options)

    def planes(self):
        """All groups of planes, in the weights: heights, slopes, and where each group starts."""
        heights, slopes = [], []
        for start, stop in itertools.pairwise(self.offsets):
            rows = slice(start, stop)
            group_planes = (
                CORNERED[self.name][1](self.targets[rows], self.weights[rows]) if stop > start else ([], [])
            )
            heights += group_planes[0]
            slopes += [np.array(group) @ self.X[rows] for group in group_planes[1]]
        starts = np.cumsum([0, *map(len, heights)])[:-1]
        return np.concatenate(heights), np.vstack(slopes), starts

    def enclosed(self, apart=1e-10):
        """Two numbers, hardly apart, between which the optimum lies."""
        if self.name in SMOOTH:
            solution = lbfgs(self.objective(), self.zero, tol=1e-15, max_iter=2000)
            return solution.value - solution.gap, solution.value
        return enclosed(*self.planes(), self.alpha, apart)


def enclosed(heights, slopes, starts, alpha, apart):
    """By Newton's method on soft maxima, ever harder; their shares are a dual solution, and so a bound."""
    groups = np.repeat(np.arange(len(starts)), np.diff([*starts, len(heights)]))

    def soft(w, heat):
        values = heights + slopes @ w
        tops = np.maximum.reduceat(values, starts)
        powers = np.exp((values - tops[groups]) / heat)
        totals = np.add.reduceat(powers, starts)
        penalty = 0.5 * alpha * (w @ w)
        return (tops + heat * np.log(totals)).sum() + penalty, powers / totals[groups], tops.sum() + penalty

    w, level = np.zeros(slopes.shape[1]), np.maximum.reduceat(heights, starts).sum()
    lower, upper = -np.inf, np.inf
    for heat in level * np.geomspace(1.0, 1e-13, 60):
        for _ in range(30):
            value, shares, above = soft(w, heat)
            pull = shares @ slopes
            lower = max(lower, heights @ shares - 0.5 * (pull @ pull) / alpha)
            upper = min(upper, above)
            means = np.add.reduceat(shares[:, None] * slopes, starts, axis=0)
            bend = ((shares[:, None] * slopes).T @ slopes - means.T @ means) / heat
            grad = pull + alpha * w
            step = np.linalg.solve(bend + alpha * np.eye(len(w)), -grad)
            if grad @ grad <= alpha * heat:  # twice what it adds to the distance of the two
                break
            length = 1.0
            while soft(w + length * step, heat)[0] > value + 0.1 * length * (grad @ step) and length > 1e-9:
                length *= 0.5
            w = w + length * step
    assert upper - lower < apart * level, (lower, upper)
    return lower, upper


def test_the_enclosed_optimum_is_that_of_another_dual():
    toy = Toy("pairwise", alpha=0.5)
    rows = [np.arange(a, b) for a, b in itertools.pairwise(toy.offsets)]
    queries = [(in_query, toy.targets[in_query], toy.weights[in_query]) for in_query in rows]
    assert np.mean(toy.enclosed()) == pytest.approx(oracles.hinge_dual(toy.X, queries, 0.5), rel=1e-8)


@every_cornered
def test_the_planes_are_those_of_the_surrogate(name):
    """So that what is enclosed is the optimum of the objective."""
    toy = Toy(name)
    heights, slopes, starts = toy.planes()
    for w in np.random.default_rng(3).normal(size=(4, 4)):
        tops = np.maximum.reduceat(heights + slopes @ w, starts)
        value, _ = toy.objective().value_and_grad(w)
        assert value == pytest.approx(tops.sum() + 0.05 * (w @ w), rel=1e-10)


# ---------------------------------------------------------------- the gap


def check_certificate(toy, solution, tol, between=None):
    """The gap is a bound of what is left, and not below 0; converged is as the gap says."""
    lower, upper = toy.enclosed() if between is None else between
    objective = toy.objective()
    value, grad = objective.value_and_grad(solution.w)
    rest = abs(objective.at_rest())
    rounding = 1e-13 * (rest + abs(value)) + (upper - lower)
    assert solution.value == pytest.approx(value, rel=1e-12)
    assert solution.gradient_norm == pytest.approx(np.linalg.norm(grad), rel=1e-9)
    assert value >= lower - rounding
    assert solution.gap >= value - lower - rounding, (solution.gap, value - lower)
    assert solution.gap >= -rounding
    assert solution.excess == solution.gap
    assert solution.converged == (solution.gap <= tol * (rest or abs(value)))
    assert (solution.stopped_by == "tolerance") == solution.converged


@pytest.mark.slow
@every_loss
@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4])
def test_the_gap_is_a_bound(name, alpha):
    toy = Toy(name, alpha=alpha)
    between = toy.enclosed()
    for tol in (0.3, 1e-4, 1e-9 if name in CORNERED else 1e-6):
        solution = toy.solve(tol=tol)
        assert solution.converged
        check_certificate(toy, solution, tol, between)


@every_loss
def test_the_gap_is_a_bound_after_every_step(name):
    """The best value falls, the gap falls, and what is left stays below."""
    toy, steps = Toy(name, alpha=1e-3), []
    lower, upper = toy.enclosed()
    solution = toy.solve(tol=1e-6, callback=steps.append)
    rounding = 1e-12 * abs(upper) + (upper - lower)
    for step in steps:
        value, _ = toy.objective().value_and_grad(step.w)
        assert step.value == pytest.approx(value, rel=1e-12)
        assert step.excess >= value - lower - rounding
    values, gaps = [step.value for step in steps], [step.excess for step in steps]
    assert values == sorted(values, reverse=True)
    assert gaps == sorted(gaps, reverse=True)
    assert len(set(values)) > 3
    for earlier, later in itertools.pairwise(steps):  # the best changes only where it becomes lower
        assert later.value < earlier.value or later.w.tolist() == earlier.w.tolist()
    assert (solution.value, solution.gap) == (values[-1], gaps[-1])
    assert steps[-1].goal == pytest.approx(1e-6 * (toy.objective().at_rest() or abs(solution.value)))


@every_cornered
def test_nothing_nearby_is_lower(name):
    toy = Toy(name, alpha=0.03)
    solution, objective = toy.solve(tol=1e-12), toy.objective()
    rng = np.random.default_rng(4)
    for size in (1e-6, 1e-3, 0.1, 3.0):
        for direction in rng.normal(size=(10, 4)):
            assert objective.value_and_grad(solution.w + size * direction)[0] >= solution.value * (1 - 1e-12)


STARTS = {"close": 0.1, "far": 1e2, "farther": 1e5, "beyond": 1e8}


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1.0, 1e-3])
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(
    "name", ["position[pairs]", "max[ap]", "max[auc]", "preorder[unit]", "squared[plain]"]
)
def test_a_far_start_is_no_excuse(name, start, alpha):
    """At 1e8 a height is the difference of numbers beyond 1e16: what is rounded must not raise a bound."""
    toy = Toy(name, alpha=alpha)
    solution = toy.solve(STARTS[start] * np.array([1.0, -2.0, 0.5, -1.0]), tol=1e-6)
    assert solution.converged
    check_certificate(toy, solution, 1e-6)


@pytest.mark.parametrize("unit", [1e-6, 300.0, 1e6])
@pytest.mark.parametrize("alpha", [1e-6, 1.0])
@pytest.mark.parametrize("name", ["position[pairs]", "max[auc]", "pairwise", "squared[plain]"])
def test_the_gap_is_a_bound_in_any_unit(name, unit, alpha):
    """Where doubles do not suffice the work may end by precision, with a gap that says so."""
    toy = Toy(name, alpha=alpha / unit**2)
    lower, upper = toy.enclosed(apart=1e-4)  # the same for features and weights of another unit
    toy.X, toy.alpha = toy.X * unit, alpha
    solution, rest = toy.solve(tol=1e-6), toy.objective().at_rest()
    assert solution.gap >= solution.value - upper - 1e-12 * rest
    assert solution.gap >= 0.0
    assert lower - 1e-12 * rest <= solution.value <= upper + 1e-5 * rest
    assert solution.converged or alpha / unit**2 < 1e-9


def test_planes_that_bear_nothing_are_dropped(monkeypatch):
    """And the bound still holds; the last planes are a few of all."""
    sizes, drop = [], bundle_module.Planes.drop_idle

    def drop_and_count(self):
        drop(self)
        sizes.append(len(self.heights))

    monkeypatch.setattr(bundle_module.Planes, "drop_idle", drop_and_count)
    for name in ("position[pairs]", "max[ap]", "softmax"):
        toy = Toy(name, alpha=1e-4)
        between = toy.enclosed()
        for idle in (1, 2, 5):
            sizes.clear()
            monkeypatch.setattr(bundle_module, "IDLE_ROUNDS", idle)
            solution = toy.solve(tol=1e-7)
            assert solution.converged
            assert sizes[-1] < solution.n_iter - 1
            check_certificate(toy, solution, 1e-7, between)


# ---------------------------------------------------------------- wrong bounds are found


def too_high(bound, _):
    return bound + 1e-6 * abs(bound)


def half_a_pull(_, planes):
    pull = planes.shares @ planes.slopes
    return planes.heights @ planes.shares - 0.25 * (pull @ pull) / planes.alpha


def shares_of_no_mixture(_, planes):
    shares = 1.01 * planes.shares
    pull = shares @ planes.slopes
    return planes.heights @ shares - 0.5 * (pull @ pull) / planes.alpha


def highest_plane(_, planes):
    return planes.heights.max()


WRONG = [too_high, half_a_pull, shares_of_no_mixture, highest_plane]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["position[sum]", "max[ap]", "softmax"])
def test_the_check_rejects_a_wrong_bound(monkeypatch, wrong, name):
    toy, tol = Toy(name, alpha=0.01), 1e-8
    check_certificate(toy, toy.solve(tol=tol), tol)
    real = bundle_module.Planes.lower_bound
    monkeypatch.setattr(bundle_module.Planes, "lower_bound", lambda planes: wrong(real(planes), planes))
    with pytest.raises(AssertionError):
        check_certificate(toy, toy.solve(tol=tol), tol)


class Flat(LinearObjective):
    """Gradients that are too short: planes that lie above the loss."""

    def value_and_grad(self, w):
        value, grad = super().value_and_grad(w)
        return value, 0.9 * grad


def test_the_check_rejects_wrong_planes():
    toy = Toy("position[pairs]", alpha=0.01)
    with pytest.raises(AssertionError):
        check_certificate(toy, bundle(toy.objective(kind=Flat), toy.zero, tol=1e-6), 1e-6)


def test_the_check_rejects_unrounded_heights(monkeypatch):
    """From far away, bounds of heights that were not lowered by what rounding may have taken."""
    monkeypatch.setattr(bundle_module, "ROUNDED", 0.0)
    seeds = []
    for seed in range(10):
        toy = Toy("max[auc]", alpha=1.0, seed=seed)
        try:
            check_certificate(toy, toy.solve(1e8 * np.array([1.0, -2.0, 0.5, -1.0]), tol=1e-6), 1e-6)
        except AssertionError:
            seeds.append(seed)
    assert seeds


# ---------------------------------------------------------------- how it ends


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.nan])
def test_no_penalty_is_refused(alpha):
    toy, steps = Toy("position[pairs]"), []
    with pytest.raises(ParameterError, match=r"alpha must be > 0"):
        bundle(toy.objective(alpha=alpha), toy.zero, callback=steps.append)
    assert not steps


@pytest.mark.slow
@every_loss
def test_reasons_to_stop(name):
    toy = Toy(name, alpha=1e-3)
    start = toy.zero
    enough = toy.solve(start, tol=1e-2)
    assert (enough.stopped_by, enough.converged) == ("tolerance", True)
    assert enough.gap <= 1e-2 * (toy.objective().at_rest() or abs(enough.value))
    assert enough.n_iter == enough.n_gradients
    short = toy.solve(start, tol=0.0, max_iter=3)
    assert (short.stopped_by, short.converged, short.n_iter) == ("max_iter", False, 3)
    check_certificate(toy, short, 0.0)
    ended = toy.solve(start, tol=0.0, callback=lambda step: step.iteration == 2)
    assert (ended.stopped_by, ended.converged, ended.n_iter) == ("callback", False, 2)
    check_certificate(toy, ended, 0.0)
    assert not start.any()


@every_cornered
def test_no_tolerance_stops_at_rounding(name):
    toy = Toy(name, alpha=0.05)
    solution = toy.solve(tol=0.0, max_iter=3000)
    assert solution.stopped_by in ("precision", "tolerance")
    assert solution.gap <= 1e-11 * toy.objective().at_rest()
    check_certificate(toy, solution, 0.0)


def test_callbacks_see_the_best():
    toy, steps = Toy("position[pairs]", alpha=1e-3), []

    def record_step(step):
        steps.append((step.iteration, step.value, step.w.copy()))
        step.w[:] = math.nan  # a copy: nobody minds

    solution = toy.solve(tol=1e-5, callback=record_step)
    assert [number for number, _, _ in steps] == list(range(1, solution.n_iter + 1))
    assert solution.w.tolist() == steps[-1][2].tolist()
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


@pytest.mark.parametrize("at", [1, 2, 3, 9])
@pytest.mark.parametrize("name", ["position[sum]", "max[ap]", "softmax"])
def test_ctrl_c_in_the_objective_keeps_the_best(name, at):
    toy = Toy(name, alpha=1e-3)
    objective, start = toy.objective(kind=Interrupted), np.full(4, 0.1)
    objective.at = at
    solution = bundle(objective, start, tol=1e-12)
    assert (solution.stopped_by, solution.converged, solution.n_iter) == ("interrupt", False, at - 1)
    if at == 1:
        assert solution.w.tolist() == start.tolist()
        assert math.isnan(solution.value)
        assert solution.excess == math.inf
    else:
        value, w = min(objective.evaluations, key=lambda evaluation: evaluation[0])
        assert (solution.value, solution.w.tolist()) == (value, w.tolist())
        assert solution.gap >= solution.value - toy.enclosed()[1]


@pytest.mark.parametrize("name", ["position[sum]", "softmax"])
def test_ctrl_c_in_a_callback_keeps_the_best(name):
    toy, steps = Toy(name, alpha=1e-3), []

    def interrupt(step):
        steps.append(step)
        if len(steps) == 4:
            raise KeyboardInterrupt

    solution = toy.solve(tol=1e-12, callback=interrupt)
    assert (solution.stopped_by, solution.n_iter, solution.value) == ("interrupt", 4, steps[-1].value)
    assert solution.gap == steps[-1].excess

    def at_the_end(step):
        if step.excess <= step.goal:
            raise KeyboardInterrupt

    solution = toy.solve(tol=1e-2, callback=at_the_end)
    assert (solution.stopped_by, solution.converged) == ("interrupt", True)


def test_ctrl_c_while_planes_are_mixed(monkeypatch):
    toy, calls, real = Toy("position[pairs]", alpha=1e-3), [], best_mixture

    def interrupt(*arguments):
        calls.append(arguments)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(bundle_module, "best_mixture", interrupt)
    solution = toy.solve(tol=1e-9)
    assert solution.stopped_by == "interrupt"
    check = toy.enclosed()
    assert solution.gap >= solution.value - check[1] > 0


def test_errors_of_a_callback_go_through():
    def fail(step):
        raise RuntimeError(step.iteration)

    with pytest.raises(RuntimeError):
        Toy("position[sum]").solve(callback=fail)


@every_loss
def test_at_the_optimum_it_stops_soon(name):
    """Without a gap from before one plane may not be enough; yet nothing is lost."""
    toy = Toy(name)
    best = toy.solve(tol=1e-8)
    again = toy.solve(best.w, tol=1e-4)
    assert again.converged
    assert again.value <= best.value + 1e-12 * abs(best.value)


# ---------------------------------------------------------------- kinds of data


@every_loss
def test_equal_runs_give_equal_bits(name):
    toy = Toy(name)
    first, second = (toy.solve(tol=1e-7) for _ in range(2))
    assert first.w.tobytes() == second.w.tobytes()
    assert (first.value, first.gap, first.n_iter) == (second.value, second.gap, second.n_iter)


def test_threads_change_no_bit(monkeypatch):
    monkeypatch.setattr(_segments, "SERIAL_ROWS", 0)
    monkeypatch.setattr(objective_module, "PART_ROWS", 20)
    for name in ("position[pairs]", "max[ap]", "max[auc]", "max[ndcg]"):
        toy, solutions = Toy(name, sizes=[9, 0, 30, 2, 17] * 3, n_features=5), []
        for threads in (1, 2, 5):
            monkeypatch.setenv("CONCORDANT_THREADS", str(threads))
            solutions.append(toy.solve(tol=1e-5).w.tobytes())
        assert len(set(solutions)) == 1


LAYOUTS = {
    "float32": lambda X: X.astype(np.float32),
    "columns": np.asfortranarray,
    "csr matrix": sparse.csr_matrix,
    "csr array": sparse.csr_array,
    "csr float32": lambda X: sparse.csr_array(X, dtype=np.float32),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["position[pairs]", "max[ndcg]", "preorder[gain]", "softmax"])
def test_layouts(name, layout):
    toy = Toy(name, alpha=0.03)
    toy.X = np.round(4 * toy.X) / 4 * (abs(toy.X) > 0.3)  # exact in float32, and sparse
    plain, other = toy.solve(tol=1e-9), toy.solve(X=LAYOUTS[layout](toy.X), tol=1e-9)
    assert other.converged
    assert other.value == pytest.approx(plain.value, abs=1e-8)
    np.testing.assert_allclose(other.w, plain.w, atol=1e-3)


@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", ["position[pairs]", "max[ap]", "softmax"])
def test_many_features(name, make):
    """Above 1000 features, distances are those of the variances alone."""
    toy = Toy(name, sizes=[5] * 8, n_features=1010, alpha=0.1)
    toy.X *= (np.random.default_rng(5).random(toy.X.shape) < 0.05) * np.logspace(-2, 1, 1010)
    assert bundle_module.whitening(toy.objective()).matrix.ndim == 1
    solution = toy.solve(X=make(toy.X), tol=1e-5)
    assert solution.converged
    # The optimum lies among the rows: a turn to their span gives the same problem with few features.
    turned = Toy(name, sizes=[5] * 8, alpha=0.1)
    turned.X = toy.X @ np.linalg.qr(toy.X.T)[0]
    turned.targets, turned.weights = toy.targets, toy.weights
    lower, upper = turned.enclosed()
    rounding = 1e-10 * toy.objective().at_rest()
    assert lower - rounding <= solution.value <= upper + solution.gap + rounding
    assert solution.gap >= solution.value - lower - rounding


@pytest.mark.parametrize("name", ["position[pairs]", "max[ap]", "preorder[unit]", "softmax"])
def test_constant_and_duplicate_features(name):
    toy = Toy(name, alpha=0.01)
    plain = toy.solve(tol=1e-8)
    n = len(toy.X)
    toy.X = np.column_stack([toy.X, np.full(n, 0.1), np.full(n, 1e3), np.zeros(n)])
    more = toy.solve(tol=1e-8)
    assert more.converged
    assert more.value == pytest.approx(plain.value, rel=1e-6)
    np.testing.assert_allclose(more.w[4:], 0.0, atol=1e-6)
    toy.X = np.column_stack([toy.X, toy.X[:, 0], 1e4 * toy.X[:, 1]])
    twice = toy.solve(tol=1e-6)
    assert twice.converged
    assert twice.value <= plain.value * (1 + 1e-6)


@every_cornered
def test_only_constant_features(name):
    toy = Toy(name)
    toy.X = np.full((len(toy.X), 2), 3.0)
    solution = toy.solve()
    assert (solution.w.tolist(), solution.converged, solution.n_iter) == ([0.0, 0.0], True, 1)
    assert solution.value == toy.objective().at_rest() > 0
    assert 0 <= solution.gap <= 1e-12 * solution.value
    assert toy.solve(np.ones(2)).value == pytest.approx(solution.value, rel=1e-4)


@every_cornered
@pytest.mark.parametrize("sizes", [(4, 1, 5, 3), (1, 0, 1)], ids=["tied", "single"])
def test_nothing_to_learn(name, sizes):
    """No labels differ, or no query has two items: 0 at once; from elsewhere, back to 0."""
    toy = Toy(name, sizes=sizes)
    toy.targets[:] = 0.0
    solution = toy.solve()
    assert (solution.w.tolist(), solution.value, solution.gap) == ([0.0] * 4, 0.0, 0.0)
    assert (solution.converged, solution.n_iter) == (True, 1)
    back = toy.solve(np.full(4, 3.0))
    assert (back.w.tolist(), back.value, back.converged) == ([0.0] * 4, 0.0, True)


@every_loss
def test_one_query(name):
    toy = Toy(name, sizes=(5,), alpha=0.05, seed=3)
    solution = toy.solve(tol=1e-7)
    assert solution.converged
    assert solution.w.any()
    check_certificate(toy, solution, 1e-7)


def test_a_separable_problem_reaches_its_margin():
    """One feature, two items, margin 1: w = 1 at small penalties, slope/alpha at large ones."""
    for alpha in (1e-4, 0.5, 1.0, 4.0):
        loss = PositionHinge().bind([1.0, 0.0], [0, 2], [1.0, 1.0])
        objective = LinearObjective(loss, np.array([[1.0], [0.0]]), alpha)
        solution = bundle(objective, np.zeros(1), tol=1e-12)
        assert solution.converged
        assert solution.w[0] == pytest.approx(min(1.0, 1.0 / alpha), rel=1e-5)


@pytest.mark.parametrize("margin", ["exponential", "logistic", "squared_hinge"])
def test_steep_losses(margin):
    """Steps that would leave the doubles are taken back, without a warning."""
    toy = Toy("softmax", alpha=1e-6)
    loss = Pairwise(margin).bind(toy.targets, toy.offsets, toy.weights)
    objective = LinearObjective(loss, 300.0 * toy.X, 1e-6)
    solution = bundle(objective, toy.zero, tol=1e-5)
    assert solution.converged
    assert 0 < solution.value < objective.at_rest()


def test_a_start_beyond_the_doubles_ends_at_once():
    toy = Toy("softmax")
    loss = Pairwise("exponential").bind(toy.targets, toy.offsets, toy.weights)
    solution = bundle(LinearObjective(loss, toy.X, 0.1), np.full(4, 1e5))
    assert (solution.stopped_by, solution.converged, solution.value) == ("precision", False, math.inf)


def test_steps_beyond_the_doubles_are_taken_back(monkeypatch):
    """A loss that is infinite beyond a wall."""

    class Walled(LinearObjective):
        def value_and_grad(self, w):
            value, grad = super().value_and_grad(w)
            return (math.inf, np.full_like(grad, math.nan)) if abs(w).max() > 2.0 else (value, grad)

    monkeypatch.setattr(bundle_module, "STIFF", 1e-6)
    toy = Toy("position[pairs]", alpha=0.05)
    solution = bundle(toy.objective(kind=Walled), toy.zero, tol=1e-6)
    assert abs(solution.w).max() <= 2.0
    check_certificate(toy, solution, 1e-6)
