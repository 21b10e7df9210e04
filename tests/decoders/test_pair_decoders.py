"""Decoders of pair matrices: against every order of up to 8 items, and against one another beyond."""

import itertools
import math
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from concordant._base.combinatorics import best_order, improve_by_insertion
from concordant.decoders import Decoded, average_precision, feedback_arc, reinforced, sort, top
from concordant.decoders.average_precision import beam
from concordant.decoders.graph_kernels import by_swaps
from concordant.exceptions import (
    ConcordantError,
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

# The functions of these names hide the modules.
ap_module = sys.modules[average_precision.__module__]
arc_module = sys.modules[feedback_arc.__module__]
KINDS = ("dense", "sparse", "tied", "cyclic", "zero", "labels", "huge", "tiny")


def drawn(rng, kind, n):
    """A matrix of any kind."""
    u = rng.normal(size=(n, n))
    if kind == "sparse":
        u *= rng.random((n, n)) < 0.2
    elif kind == "tied":
        u = rng.integers(0, 3, (n, n)).astype(float)
    elif kind == "cyclic":  # a preference for the next few around a circle
        u = ((np.arange(n)[None, :] - np.arange(n)[:, None]) % n <= n // 2) * rng.integers(1, 4, (n, n))
    elif kind == "zero":
        u = np.zeros((n, n))
    elif kind == "labels":
        labels = rng.random((5, n)) < rng.random(n)
        labels[~labels.any(axis=1), 0] = True
        u = np.einsum("k,ki,kj->ij", rng.dirichlet(np.ones(5)) / labels.sum(axis=1), labels, labels)
    return u * {"huge": 1e150, "tiny": 1e-250}.get(kind, 1.0)


def symmetric(u):
    return np.tril(u) + np.tril(u, -1).T


class Task:
    """What a decoder is for: its objective, by enumeration, and which way it goes."""

    def __init__(self, values, sign):
        self.values, self.sign = values, sign

    def best(self, u):
        """The largest gain, or the least loss."""
        return self.sign * (self.sign * self.values(u, oracles.order_places(len(u)))).max()

    def check(self, result, u):
        """An order, its value by definition, a bound that holds, and a proof that is one."""
        n, size = len(u), np.abs(u).sum()
        assert sorted(result.order.tolist()) == list(range(n))
        assert result.positions[result.order].tolist() == list(range(1, n + 1))
        near = {"rtol": 1e-12, "atol": 1e-11 * size}
        np.testing.assert_allclose(result.value, self.values(u, result.positions[None, :])[0], **near)
        best = self.best(u)
        assert self.sign * (best - result.value) >= -1e-11 * size
        assert self.sign * (result.bound - best) >= -1e-11 * size
        if result.proven:
            assert abs(result.value - best) <= 2e-9 * size
            assert (result.bound, result.gap) == (result.value, 0.0)
        else:
            larger = max(abs(result.value), abs(result.bound))
            assert result.gap == pytest.approx(abs(result.value - result.bound) / larger)
            assert result.gap > 1e-14
        assert result.seconds >= 0.0


PRECISION = Task(oracles.pair_precisions, 1)
DISAGREEMENT = Task(oracles.pair_disagreements, -1)


@pytest.mark.parametrize("kind", KINDS)
def test_decoders_equal_enumeration(kind):
    """2,000 inputs over all kinds, up to 8 items, for each of the two."""
    rng = np.random.default_rng(KINDS.index(kind))
    for number in range(250):
        u = drawn(rng, kind, 1 + number % 8)
        result = feedback_arc(u)
        assert result.proven
        DISAGREEMENT.check(result, u * (1 - np.eye(len(u))))
        result = average_precision(symmetric(u))
        assert result.proven
        PRECISION.check(result, symmetric(u))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_method_says_only_what_is_true(kind):
    rng = np.random.default_rng(100 + KINDS.index(kind))
    for number in range(70):
        u = drawn(rng, kind, 1 + number % 7)
        for method in arc_module.METHODS:
            DISAGREEMENT.check(feedback_arc(u, method=method), u * (1 - np.eye(len(u))))
        for method, width in itertools.product(ap_module.METHODS, (None, 1, 2)):
            PRECISION.check(average_precision(symmetric(u), method=method, width=width), symmetric(u))


@pytest.mark.parametrize("kind", KINDS)
def test_integer_program_equals_enumeration(kind, monkeypatch):
    monkeypatch.setattr(arc_module, "DYNAMIC_ITEMS", 1)
    rng = np.random.default_rng(200 + KINDS.index(kind))
    for number in range(40):
        u = drawn(rng, kind, 3 + number % 5)
        result = feedback_arc(u)
        assert result.proven
        DISAGREEMENT.check(result, u * (1 - np.eye(len(u))))


def spread_out(rng, kind, n):
    """Weights on which a program solved in doubles goes wrong, if it can."""
    u = rng.integers(0, 10, (n, n)).astype(float)
    if kind == "spike":
        u[0, 1] = 10.0 ** rng.integers(6, 14)
    elif kind == "half":
        u /= 2
    elif kind == "nearly tied":
        u = u // 5 + 1e-9 * rng.integers(0, 5, (n, n))
    elif kind == "wide":
        u = 10.0 ** rng.uniform(-9, 0, (n, n))
    elif kind == "tournament":  # of one weight: the relaxation is left with fractions most often
        won = np.triu(rng.random((n, n)) < 0.5, 1)
        u = 3.0 * (won | np.tril(~won.T, -1))
    return u


def least_violated(net):
    """By dynamic programming over sets."""
    return arc_module.violated_weight(net, best_order(*arc_module.as_gains(net)))


@pytest.mark.parametrize("kind", ["whole", "half", "spike", "nearly tied", "wide", "tournament"])
def test_integer_program_equals_dynamic_programming(kind, monkeypatch):
    monkeypatch.setattr(arc_module, "DYNAMIC_ITEMS", 1)
    rng = np.random.default_rng(42)
    for number in range(25):
        u = spread_out(rng, kind, 13 + number % 4)
        net = np.maximum(u - u.T, 0.0)
        best, result = least_violated(net), feedback_arc(net)
        assert result.proven
        near = 0.4 if kind in ("whole", "spike", "tournament") else 1e-9 * net.max() * len(net) ** 2 / 2
        assert best - 1e-12 * net.sum() <= result.value <= best + near


def test_bounds_of_whole_programs_hold_before_anything_is_clipped(monkeypatch):
    """Rounded up to the grain or not; and at least one of these programs must have been solved whole."""
    whole = []
    ask = arc_module.OrderingProgram.make_whole
    monkeypatch.setattr(
        arc_module.OrderingProgram,
        "make_whole",
        lambda self, above: whole.append(ask(self, above)) or whole[-1],
    )
    rng = np.random.default_rng(0)
    for number in range(60):
        u = spread_out(rng, "tournament", 14 + number % 3)
        net = np.maximum(u - u.T, 0.0) * (2.0 if number % 2 else 0.3)
        best, step = least_violated(net), arc_module.grain(net)
        assert step == (6.0 if number % 2 else 0.0)
        for _, bound in arc_module.iter_bounds(net, step, time.perf_counter() + 60.0):
            assert bound <= best + 1e-12 * net.sum()
            assert not step or bound % step == 0
    assert sum(whole) >= 3


def test_the_linear_bound_holds_for_any_duals():
    rng = np.random.default_rng(1)
    net = np.maximum(spread_out(rng, "whole", 12) - spread_out(rng, "whole", 12), 0.0) * (1 - np.eye(12))
    net = np.maximum(net - net.T, 0.0)
    program, best = arc_module.OrderingProgram(net, 0.0), least_violated(net)
    program.solve(time.perf_counter() + 60.0)
    assert program.cut(program.above())
    program.solve(time.perf_counter() + 60.0)
    right = np.array(program.highs.getSolution().row_dual)
    for duals in (right, right + 0.05 * (right == 0.0), 0.3 * rng.normal(size=len(right))):
        program.highs = SimpleNamespace(getSolution=lambda duals=duals: SimpleNamespace(row_dual=duals))
        assert (program.level + program.dual_bound()) * program.scale <= best


def test_a_vote_in_three_billion_counts():
    votes = np.array([[0, 3, 3], [2, 0, 5], [2, 0, 0]]) + 1e9 * (1 - np.eye(3))
    borda, best = feedback_arc(votes, method="borda"), feedback_arc(votes)
    assert (borda.value, borda.proven, borda.bound) == (3000000005.0, False, 3000000004.0)
    assert (best.value, best.proven) == (3000000004.0, True)


def test_whole_numbers_are_compared_exactly():
    votes = np.zeros((6, 6))
    votes[:3, 3:] = 1e13
    votes[:3, :3] = [[0, 3, 3], [2, 0, 5], [2, 0, 0]]
    borda, best = feedback_arc(votes, method="borda"), feedback_arc(votes)
    assert (borda.value - best.value, borda.proven, best.proven) == (1.0, False, True)


def test_a_light_component_is_not_proven_by_a_heavy_one():
    u = np.zeros((43, 43))
    u[:40, :40] = 1e-6 * np.random.default_rng(0).random((40, 40))
    u[40, 41] = u[41, 42] = 2e6
    u[42, 40] = 1e6
    assert not feedback_arc(u, time_limit=0).proven


def test_time_is_shared_among_components(monkeypatch):
    u = np.zeros((50, 50))
    for start in (0, 25):
        u[start : start + 25, start : start + 25] = drawn(np.random.default_rng(start), "dense", 25)
    deadlines = []
    monkeypatch.setattr(arc_module.Component, "close", lambda _, deadline, __: deadlines.append(deadline))
    started = time.perf_counter()
    assert not feedback_arc(u, time_limit=1000.0).proven
    first, second = (deadline - started for deadline in deadlines)
    assert (first, second) == (pytest.approx(500.0, abs=5.0), pytest.approx(1000.0, abs=5.0))


def test_no_time_limit_is_allowed():
    assert feedback_arc(drawn(np.random.default_rng(0), "tied", 20), time_limit=math.inf).proven
    assert feedback_arc([[0, 1], [0, 0]], time_limit=10**400).proven


@pytest.mark.parametrize("spoil", ["proven", "bound", "value", "order", "gap"])
@pytest.mark.parametrize("task", [PRECISION, DISAGREEMENT], ids=["precision", "disagreement"])
def test_the_check_rejects_what_is_wrong(task, spoil):
    u = symmetric(drawn(np.random.default_rng(3), "dense", 6))
    if task is DISAGREEMENT:
        u = np.tril(u) - np.triu(u)
        right = feedback_arc(u, method="borda")
    else:
        right = average_precision(u, method="diagonal")
    assert not right.proven
    u = u * (1 - np.eye(6)) if task is DISAGREEMENT else u
    task.check(right, u)
    wrong = {
        "proven": {"proven": True, "bound": right.value, "gap": 0.0},
        "bound": {"bound": 0.5 * (task.best(u) + right.value)},
        "value": {"value": task.best(u)},
        "order": {"order": right.order[::-1]},
        "gap": {"gap": 0.5 * right.gap},
    }[spoil]
    with pytest.raises(AssertionError):
        task.check(replace(right, **wrong), u)


# ---------------------------------------------------------------- feedback arc sets


@pytest.mark.parametrize("kind", KINDS)
def test_edge_deletion_is_algorithm_1(kind):
    rng = np.random.default_rng(300 + KINDS.index(kind))
    for number in range(60):
        u = drawn(rng, kind, 1 + number % 9)
        assert feedback_arc(u, method="edge-deletion").order.tolist() == oracles.edge_deletion(u.tolist())


def test_edge_deletion_differs_from_its_mistakes():
    """Other orders of equal edges, or other ends, give other orders: the test above would see them."""
    rng = np.random.default_rng(0)
    inputs = [drawn(rng, "tied", 6) for _ in range(50)]
    right = [oracles.edge_deletion(u.tolist()) for u in inputs]
    flipped = [[5 - i for i in oracles.edge_deletion(u[::-1, ::-1].tolist())] for u in inputs]
    heaviest = [oracles.edge_deletion((-u.T).tolist()) for u in inputs]
    assert right != flipped
    assert right != heaviest or right != [oracles.edge_deletion(u.T.tolist()) for u in inputs]


def test_borda_sorts_by_net_weight():
    u = drawn(np.random.default_rng(1), "dense", 7)
    net = [sum(u[i, j] - u[j, i] for j in range(7)) for i in range(7)]
    assert feedback_arc(u, method="borda").order.tolist() == sorted(range(7), key=lambda i: -net[i])
    assert feedback_arc(np.zeros((3, 3)), method="borda").order.tolist() == [0, 1, 2]


@pytest.mark.parametrize("n", [6, 15, 40])
def test_insertion_leaves_no_better_move(n):
    u = drawn(np.random.default_rng(n), "dense", n)
    result = feedback_arc(u, method="insertion")
    pairs = u - np.diag(np.diag(u))
    least = min(np.tril(pairs[np.ix_(order, order)], -1).sum() for order in oracles.insertions(result.order))
    assert result.value <= least + 1e-9
    net = np.maximum(pairs - pairs.T, 0.0)
    starts = arc_module.by_borda(net), arc_module.by_edge_deletion(net)
    moved = [arc_module.violated_weight(net, arc_module.improve_order(net, start)) for start in starts]
    assert arc_module.violated_weight(net, result.order) == min(moved)
    if n == 40:
        assert moved[1] < moved[0]  # neither start is always the better one


@pytest.mark.parametrize("n", [10, 14, 18])
def test_the_two_exact_ways_agree(n, monkeypatch):
    u = drawn(np.random.default_rng(n), "tied", n)
    values = []
    for most in (1, 20):
        monkeypatch.setattr(arc_module, "DYNAMIC_ITEMS", most)
        result = feedback_arc(u)
        assert result.proven
        values.append(result.value)
    assert values[0] == values[1]


def test_every_round_of_the_program_bounds_from_below():
    rng = np.random.default_rng(5)
    for kind in ("dense", "tied", "cyclic"):
        for _ in range(10):
            u = drawn(rng, kind, 7)
            net = np.maximum(u - u.T, 0.0)
            best = DISAGREEMENT.best(net)
            bounds = [
                bound
                for _, bound in arc_module.iter_bounds(net, arc_module.grain(net), time.perf_counter() + 60.0)
            ]
            assert max(bounds, default=0.0) <= best + 1e-9 * net.sum()
            assert not bounds or bounds[-1] == pytest.approx(best, abs=1e-9 * net.sum())


def planted(rng, sizes):
    """Cycles of these sizes, each above the next; items shuffled. The cost is the lightest edge of each."""
    n = sum(sizes)
    block = np.repeat(np.arange(len(sizes)), sizes)
    u = (block[:, None] < block[None, :]) * 5.0
    start = 0
    for size in sizes:
        ring = np.arange(start, start + size)
        if size > 2:
            u[ring, np.roll(ring, -1)] = 2.0
            u[ring[-1], ring[0]] = 1.0
        start += size
    shuffled = rng.permutation(n)
    return u[np.ix_(shuffled, shuffled)], block[shuffled]


def test_components_are_solved_one_by_one():
    u, block = planted(np.random.default_rng(0), [3, 1, 30, 2, 17])
    result = feedback_arc(u)
    assert (result.value, result.proven) == (3.0, True)
    assert np.diff(block[result.order]).min() >= 0


def test_unrelated_components_come_by_their_first_items():
    u = np.zeros((6, 6))
    for ring in ([5, 1, 3], [4, 0, 2]):
        u[ring, np.roll(ring, -1)] = 1.0
    assert set(feedback_arc(u).order[:3].tolist()) == {0, 2, 4}


def test_unrelated_items_cost_nothing():
    u = np.zeros((60, 60))
    u[3, 1] = u[1, 7] = u[50, 2] = 1.0
    result = feedback_arc(u)
    assert (result.value, result.proven) == (0.0, True)
    assert result.order.tolist()[:2] == [0, 3]  # of what is free, the smallest


def test_only_differences_and_pairs_count():
    u = drawn(np.random.default_rng(2), "dense", 9)
    added = symmetric(drawn(np.random.default_rng(3), "dense", 9))
    assert feedback_arc(u + added).order.tolist() == feedback_arc(u).order.tolist()
    assert feedback_arc(u + added).value == pytest.approx(feedback_arc(u).value + np.tril(added, -1).sum())


def test_time_runs_out_but_the_bound_holds():
    u = drawn(np.random.default_rng(0), "dense", 45)
    none, some = feedback_arc(u, time_limit=0.0), feedback_arc(u, time_limit=0.5)
    assert not none.proven
    assert none.bound <= some.bound <= some.value <= none.value
    assert none.gap > some.gap > 0


def test_callback_sees_order_and_bound_close_in():
    progress = []
    result = feedback_arc(
        drawn(np.random.default_rng(4), "tied", 25), callback=lambda *pair: progress.append(pair)
    )
    values, bounds = (list(column) for column in zip(*progress, strict=True))
    assert values == sorted(values, reverse=True)
    assert bounds == sorted(bounds)
    assert (values[-1], bounds[-1]) == pytest.approx((result.value, result.bound))


def test_a_large_component_is_left_to_search(monkeypatch):
    monkeypatch.setattr(arc_module, "PROGRAM_ITEMS", 20)
    result = feedback_arc(drawn(np.random.default_rng(0), "dense", 30))
    assert 0.0 < result.gap < 1.0
    monkeypatch.setattr(arc_module, "PACKED_ITEMS", 20)
    assert feedback_arc(drawn(np.random.default_rng(0), "dense", 30)).bound < result.bound


# ---------------------------------------------------------------- average precision


@pytest.mark.parametrize("kind", ["dense", "labels", "tied"])
def test_beam_proves_only_optima(kind):
    """Beyond enumeration, against dynamic programming over all sets."""
    rng = np.random.default_rng(7)
    proofs = 0
    for n in (13, 14, 15, 16):
        u = symmetric(drawn(rng, kind, n))
        best = average_precision(u, width=1)  # where sorting does not prove, all sets are tried
        assert best.proven
        for width in (1, 20, 5000):
            result = average_precision(u, method="beam", width=width)
            assert result.value <= best.value + 1e-9 <= result.bound + 2e-9
            proofs += result.proven
            assert not result.proven or result.value == pytest.approx(best.value)
    assert proofs or kind == "dense"


def naive_reinforced(u, i, j):
    others = (g for g in range(len(u)) if g not in (i, j))
    return i != j and u[i][i] - u[j][j] >= math.fsum(max(u[j][g] - u[i][g], 0.0) for g in others)


@pytest.mark.parametrize("kind", ["dense", "sparse", "tied", "labels", "zero"])
def test_reinforced_by_definition(kind):
    rng = np.random.default_rng(8)
    for n in (1, 2, 3, 5):
        u = symmetric(np.round(drawn(rng, kind, n), 1) * 8)  # sums of these are exact
        expected = [[naive_reinforced(u, i, j) for j in range(n)] for i in range(n)]
        assert reinforced(u).tolist() == expected


def test_dominance_holds_in_some_optimal_order_at_once():
    """The claim on which the beam rests, tried on thousands of matrices; a weaker relation fails it."""
    rng = np.random.default_rng(9)
    failures = 0
    for number in range(600):
        u = symmetric(drawn(rng, ("labels", "tied", "sparse")[number % 3], 2 + number % 4))
        places = oracles.order_places(len(u))
        values = oracles.pair_precisions(u, places)
        best = places[values >= values.max() - 1e-12]
        above = reinforced(u)
        above &= ~(above.T & np.tri(len(u), dtype=bool))
        assert respecting(best, above).any()
        diagonal = np.diag(u)[:, None] > np.diag(u)[None, :]
        failures += not respecting(best, diagonal).any()
    assert failures > 20


def respecting(places, above):
    """Which rows of places put i above j wherever `above` says so."""
    return np.all([places[:, i] < places[:, j] for i, j in np.argwhere(above)] or [[True] * len(places)], 0)


@pytest.mark.slow
@pytest.mark.parametrize("n", [25, 60])
def test_search_leaves_no_better_move_or_exchange(n):
    u = symmetric(drawn(np.random.default_rng(n), "dense", n))
    result = average_precision(u)
    neighbours = list(oracles.insertions(result.order.tolist()))
    for item, other in itertools.combinations(range(n), 2):
        swapped = result.order.tolist()
        swapped[item], swapped[other] = swapped[other], swapped[item]
        neighbours.append(swapped)
    values = [ap_module.order_value(u, np.array(order)) for order in neighbours]
    assert max(values) <= result.value + 1e-8 * np.abs(u).max()
    assert not result.proven
    assert result.bound > result.value


def test_sorting_is_proven_only_where_it_is_optimal():
    """Here sorting by the diagonal loses a millionth."""
    u = np.array([[0.6, 0.25, 0.0], [0.25, 0.25, 0.0], [0.0, 0.0, 0.5 - 6e-6]])
    best, by_diagonal = average_precision(u), average_precision(u, method="diagonal")
    assert best.value - by_diagonal.value == pytest.approx(1e-6)
    assert (best.proven, by_diagonal.proven) == (True, False)
    for seed in range(20):  # of two items the more relevant one goes first, whatever the rest says
        two = symmetric(drawn(np.random.default_rng(seed), "dense", 2))
        assert average_precision(two, method="diagonal").proven


def test_exchanges_go_on_until_none_helps():
    rng, helped = np.random.default_rng(11), 0
    for _ in range(50):
        u = symmetric(drawn(rng, "dense", 7))
        u /= np.abs(u).max()
        order, rates = np.arange(7), 1.0 / np.arange(1, 8)
        improve_by_insertion(u, rates, order)
        before = ap_module.order_value(u, order)
        changed = by_swaps(u, rates, order)
        after = ap_module.order_value(u, order)
        assert changed == (after > before + 1e-12)
        helped += changed
        for item, other in itertools.combinations(range(7), 2):
            swapped = order.copy()
            swapped[[item, other]] = order[[other, item]]
            assert ap_module.order_value(u, swapped) <= after + 1e-9
    assert helped > 0


def test_a_narrow_beam_keeps_the_promising_sets():
    """Before any item is moved: most of the way from a random order to the best one."""
    rng, shares = np.random.default_rng(12), []
    for _ in range(20):
        u = symmetric(drawn(rng, "dense", 14))
        u /= np.abs(u).max()
        order, complete = beam(u, reinforced(u), 30)
        assert not complete
        chance = ap_module.order_value(u, rng.permutation(14))
        shares.append((ap_module.order_value(u, order) - chance) / (average_precision(u).value - chance))
    assert np.mean(shares) > 0.95


def test_long_lists_take_a_narrow_beam():
    u = symmetric(drawn(np.random.default_rng(0), "labels", 300))
    result = average_precision(u)
    assert result.value >= average_precision(u, method="diagonal").value - 1e-12
    assert result.gap < 0.05


def test_sparse_matrices_are_read():
    u = symmetric(drawn(np.random.default_rng(0), "tied", 5))
    for decoder in (average_precision, feedback_arc):
        assert decoder(csr_array(u)).value == decoder(u).value


def test_slight_asymmetry_is_rounding():
    u = symmetric(drawn(np.random.default_rng(0), "labels", 5))
    shaken = u * (1 + 1e-12 * np.random.default_rng(1).normal(size=u.shape))
    assert average_precision(shaken).value == pytest.approx(average_precision(u).value)


# ---------------------------------------------------------------- both, on whatever is given

numbers = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e200, -1e200, 3.0])
matrices = st.integers(1, 5).flatmap(
    lambda n: st.lists(numbers, min_size=n * n, max_size=n * n).map(lambda v: np.array(v).reshape(n, n))
)


@given(u=matrices)
@settings(max_examples=150)
def test_nasty_matrices(u):
    result = feedback_arc(u)
    assert result.proven
    DISAGREEMENT.check(result, u * (1 - np.eye(len(u))))
    result = average_precision(symmetric(u))
    assert result.proven
    PRECISION.check(result, symmetric(u))


@given(u=matrices)
@settings(max_examples=50)
def test_the_input_is_not_changed(u):
    before = u.copy()
    feedback_arc(u)
    average_precision(symmetric(u))
    assert (u == before).all()


@pytest.mark.parametrize("decoder", [average_precision, feedback_arc])
@pytest.mark.parametrize(
    ("u", "error"),
    [
        ([[1.0, 2.0]], ShapeError),
        ([1.0, 2.0], ShapeError),
        (np.zeros((0, 0)), EmptyDataError),
        ([[0.0, math.nan], [0.0, 0.0]], NonFiniteError),
        ([[0.0, math.inf], [math.inf, 0.0]], NonFiniteError),
        ([[0.0, 1e308], [1e308, 0.0]], NonFiniteError),
        ([["a", "b"], ["c", "d"]], ConcordantError),
    ],
)
def test_bad_matrices_are_named(decoder, u, error):
    with pytest.raises(error):
        decoder(u)


@pytest.mark.parametrize(
    ("decoder", "options", "error"),
    [
        (average_precision, {"method": "greedy"}, UnknownNameError),
        (average_precision, {"method": None}, UnknownNameError),
        (average_precision, {"width": 0}, ParameterError),
        (average_precision, {"width": 1.5}, ParameterError),
        (average_precision, {"width": True}, ParameterError),
        (feedback_arc, {"method": "kemeny"}, UnknownNameError),
        (feedback_arc, {"time_limit": -1}, ParameterError),
        (feedback_arc, {"time_limit": math.nan}, ParameterError),
        (feedback_arc, {"time_limit": False}, ParameterError),
        (feedback_arc, {"callback": 3}, ParameterError),
    ],
)
def test_bad_options_are_named(decoder, options, error):
    with pytest.raises(error):
        decoder(np.eye(2), **options)


def test_sides_are_refused_for_average_precision():
    with pytest.raises(LabelError, match=r"u\[0, 1\] = 1 differs from u\[1, 0\] = 2"):
        average_precision([[0, 1], [2, 0]])


# ---------------------------------------------------------------- sorting and selection


@given(u=st.lists(st.sampled_from([0.0, 1.0, -1.0, 2.5]), min_size=1, max_size=6), data=st.data())
def test_sort_and_top_equal_enumeration(u, data):
    n = len(u)
    rates = data.draw(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=n, max_size=n).map(sorted))[::-1]
    q = data.draw(st.integers(1, n))
    orders = list(itertools.permutations(range(n)))
    result = sort(u, rates)
    assert result.order.tolist() == sorted(range(n), key=lambda i: -u[i])
    assert result.value == max(sum(u[i] * rate for i, rate in zip(o, rates, strict=True)) for o in orders)
    result = top(u, q)
    assert result.order.tolist()[:q] == sorted(range(n), key=lambda i: -u[i])[:q]
    assert result.order.tolist()[q:] == sorted(result.order.tolist()[q:])
    assert result.value == pytest.approx(max(sum(u[i] for i in o[:q]) / q for o in orders))
    assert result.proven
    assert isinstance(result, Decoded)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: sort([1.0, 2.0], [0.5, 1.0]), ParameterError),
        (lambda: sort([1.0, 2.0], [1.0]), LengthMismatchError),
        (lambda: sort([1.0, math.nan], [1.0, 0.5]), NonFiniteError),
        (lambda: sort([1.0, 2.0], [1.0, -0.5]), NonFiniteError),
        (lambda: sort([], []), EmptyDataError),
        (lambda: top([1.0], 2), ParameterError),
        (lambda: top([1.0], 0), ParameterError),
        (lambda: top([1.0, 2.0], 1.5), ParameterError),
        (lambda: top([1.0, 2.0], True), ParameterError),
        (lambda: sort([1e308, 1e308], [1.0, 1.0]), NonFiniteError),
        (lambda: top([math.inf], 1), NonFiniteError),
    ],
)
def test_bad_scores_are_named(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("method", ["borda", "insertion", "edge-deletion", "auto"])
def test_a_huge_weight_does_not_make_a_light_one_rounding(method):
    """Beyond 2^53 sums of whole weights are no longer exact, and the light ones must still count."""
    u = np.zeros((3, 3))
    u[0, 1], u[2, 1], u[2, 0] = 2.0**53 - 2, 1.0, 1.0
    result = feedback_arc(u, method=method)
    assert not (result.proven and result.value > 0.0)


@pytest.mark.parametrize("method", ["auto", "beam", "diagonal"])
@pytest.mark.parametrize("scale", [5e-324, 2.0**-1060, 2.0**1010])
def test_average_precision_is_proven_alike_on_every_scale(method, scale):
    """Sums of subnormal numbers are rounded: what they hide must not look like a proof."""
    rng = np.random.default_rng(3)
    whole = np.array([[4, 4, 2, 2], [4, 3, 4, 4], [2, 4, 1, 4], [2, 4, 4, 4]])
    drawn = [np.tril(u) + np.tril(u, -1).T for u in rng.integers(0, 6, (20, 4, 4))]
    for u in [whole, *drawn]:
        plain = average_precision(u, method=method)
        scaled = average_precision(u * scale, method=method)
        assert (scaled.proven, scaled.order.tolist()) == (plain.proven, plain.order.tolist())
        assert scaled.value == pytest.approx(plain.value * scale, rel=1e-12, abs=5e-324)
        assert scaled.bound >= scaled.value
    assert average_precision(whole * scale, method="diagonal").proven is False
