"""Long lists, sorted and swept, equal the definition and the double loop to 1e-12; threads and memory."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from concordant.surrogates import Pairwise, Preorder, Softmax, Squared
from concordant.surrogates import pairwise as pairwise_module
from tests.helpers.surrogate_checks import (
    CASES,
    PAIRWISE,
    PREORDER,
    SWEPT,
    Case,
    Query,
    check_all,
    check_value,
    pairwise_case,
    preorder_case,
    reads,
    targets_for,
)

pytestmark = pytest.mark.once

NEVER = 10**9
PRECISE = 1e-12
LAYOUTS = {  # scores of n items
    "plain": lambda rng, n: 2.0 * rng.normal(size=n),
    "ties": lambda rng, n: rng.integers(-3, 4, n) / 2.0,
    "equal": lambda _, n: np.full(n, 0.7),
    "clusters": lambda rng, n: rng.choice([-40.0, 0.0, 0.8, 41.0], n) + 1e-4 * rng.normal(size=n),
    "gaps": lambda rng, n: 30.0 * rng.permutation(n) / n * rng.integers(1, 4, n),
    "one far": lambda rng, n: np.r_[600.0, 1e-3 * rng.normal(size=n - 1)],
    "tiny": lambda rng, n: 1e-12 * rng.normal(size=n),
    "level 1e4": lambda rng, n: 1e4 + rng.normal(size=n),
    "level 1e6": lambda rng, n: 1e6 + rng.normal(size=n),
    "two levels": lambda rng, n: rng.choice([0.0, 300.0], n) + rng.normal(size=n),
}


@pytest.fixture
def sweep_all(monkeypatch):
    monkeypatch.setattr(pairwise_module, "LONG", -1)


def listed(rng, layout, n):
    """Queries of such scores: integer grades, and weights of which some are 0."""
    weights = rng.choice([0.0, 1.0, 2.5], n)
    return Query(LAYOUTS[layout](rng, n), targets_for(rng, "grades", n), weights)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SWEPT)
@pytest.mark.usefixtures("sweep_all")
def test_definition_in_extended_precision(name, layout):
    rng = np.random.default_rng(0)
    check_all(CASES[name], [listed(rng, layout, n) for n in (5, 120)], PRECISE)


@pytest.mark.parametrize("layout", ["plain", "level 1e6", "two levels"])
@pytest.mark.parametrize("name", PAIRWISE | PREORDER)
def test_definition_of_the_double_loop_in_extended_precision(name, layout, monkeypatch):
    """Sums may be taken in any order there; differences of scores may not."""
    monkeypatch.setattr(pairwise_module, "LONG", NEVER)
    rng = np.random.default_rng(0)
    check_all(CASES[name], [listed(rng, layout, n) for n in (5, 120)], PRECISE)


@pytest.mark.slow
@pytest.mark.parametrize("margin", ["huber_hinge(0.001)", "huber_hinge(20.0)", "squared_hinge", "hinge"])
@pytest.mark.parametrize("layout", ["plain", "ties", "clusters", "level 1e6"])
def test_definition_of_lists_of_hundreds(margin, layout):
    """Long enough to be swept anyhow; windows from nearly empty to nearly everything."""
    rng = np.random.default_rng(1)
    query = listed(rng, layout, 600)
    check_all(pairwise_case(margin), [query], PRECISE)
    check_all(preorder_case("gain", margin), [query], PRECISE)


@pytest.mark.parametrize("name", SWEPT)
def test_both_routes_agree(name, monkeypatch):
    """At every length around the switch, in one batch with an empty query."""
    loss, rng = CASES[name].surrogate, np.random.default_rng(2)
    sizes = [255, 256, 257, 258, 0, 700]
    scores, offsets = 1.5 * rng.normal(size=sum(sizes)), np.r_[0, np.cumsum(sizes)]
    targets, vector = targets_for(rng, "grades", len(scores)), rng.normal(size=len(scores))
    results = []
    for long in (NEVER, pairwise_module.LONG, -1):
        monkeypatch.setattr(pairwise_module, "LONG", long)
        bound = loss.bind(targets, offsets)
        results.append((*bound.value_and_grad(scores), bound.hessian_product(scores, vector)))
    for values, grad, product in results[1:]:
        np.testing.assert_allclose(values, results[0][0], rtol=PRECISE)
        np.testing.assert_allclose(grad, results[0][1], rtol=PRECISE, atol=PRECISE * np.abs(grad).max())
        np.testing.assert_allclose(product, results[0][2], rtol=PRECISE, atol=PRECISE * np.abs(product).max())


@pytest.mark.parametrize("weighting", ["unit", "pairs", "gain"])
@pytest.mark.parametrize("margin", ["huber_hinge", "squared_hinge", "hinge", "exponential"])
@pytest.mark.parametrize("n_levels", [2, 3, 5, 8, 229])
@pytest.mark.usefixtures("sweep_all")
def test_many_levels_that_are_not_whole(weighting, margin, n_levels):
    """Halving the levels comes to every pair once, whatever their number."""
    rng = np.random.default_rng(n_levels)
    levels = np.sort(rng.choice(4096, n_levels, replace=False)) / 1024
    grades = np.r_[levels, rng.choice(levels, 240 - n_levels)]
    query = Query(1.5 * rng.normal(size=240), rng.permutation(grades), rng.choice([0.5, 1.0], 240))
    check_all(preorder_case(weighting, margin), [query], PRECISE)


def test_the_check_rejects_prefix_sums_of_the_scores_themselves():
    """What the sweep avoids: sums of squared scores lose twice the digits of a common level."""

    class PrefixSums:
        def __call__(self, scores, targets, **_):
            z = np.sort(scores)
            ones, first, second = (np.r_[0.0, np.cumsum(z**k)] for k in range(3))
            end = np.searchsorted(z, scores - 1.0)
            count, linear, square = (total[-1] - total[end] for total in (ones, first, second))
            edge = 1.0 - scores
            terms = targets * (count * edge**2 + 2 * edge * linear + square)
            return np.array([terms.sum()]), None

    rng, case = np.random.default_rng(3), pairwise_case("squared_hinge")
    low = listed(rng, "plain", 300)._replace(weights=np.ones(300))
    check_value(Case(PrefixSums(), case.oracle), [low], PRECISE)
    with pytest.raises(AssertionError):
        check_value(Case(PrefixSums(), case.oracle), [low._replace(scores=low.scores + 1e6)], PRECISE)


class Kept:
    """A surrogate bound once: what it remembers of earlier scores is used for the next ones."""

    def __init__(self, loss, query):
        self.bound = loss.bind(query.targets, np.array([0, len(query.targets)]), query.weights)

    def __call__(self, scores, *_, **__):
        return self.bound.value_and_grad(scores)

    def hessian_product(self, scores, _, vector, **__):
        return self.bound.hessian_product(scores, vector)


@pytest.mark.parametrize("name", [name for name in SWEPT if "normalize" not in name])
@pytest.mark.usefixtures("sweep_all")
def test_earlier_scores_leave_no_trace(name):
    """Nearly the same, a few rows moved far, reversed, all tied, others, sorted either way, and back."""
    rng = np.random.default_rng(4)
    query = listed(rng, "plain", 100)
    first = query.scores
    moved = first.copy()
    moved[[3, 80]] = moved.max() + 1.0, moved.min() - 1.0
    case = Case(Kept(CASES[name].surrogate, query), CASES[name].oracle)
    wild, sorted_up = rng.normal(size=100), np.sort(first)
    steps = (
        first,
        first + 1e-3 * wild,
        moved,
        -moved,
        0 * first,
        9 * wild,
        sorted_up,
        sorted_up[::-1],
        first,
    )
    for scores in steps:
        check_all(case, [query._replace(scores=scores.copy())], PRECISE)


def test_results_do_not_depend_on_how_often_one_asks():
    rng = np.random.default_rng(5)
    query = listed(rng, "plain", 1000)
    bound_loss = Kept(Pairwise(), query)
    results = [bound_loss(query.scores) for _ in range(3)]
    assert all(np.array_equal(values, results[0][0]) for values, _ in results)
    assert all(np.array_equal(grad, results[0][1]) for _, grad in results)


def test_one_loss_may_be_used_by_several_threads():
    """Each with scores of its own: the order that is kept belongs to nobody."""
    rng = np.random.default_rng(6)
    query = listed(rng, "plain", 3000)
    bound_loss, wrong = Kept(Pairwise("squared_hinge"), query), []
    points = [query.scores + 1e-3 * rng.normal(size=3000) for _ in range(2)]
    wants = [Kept(Pairwise("squared_hinge"), query)(scores) for scores in points]

    def ask(scores, want):
        for _ in range(150):
            values, grad = bound_loss(scores)
            near = np.allclose(values, want[0], rtol=1e-9)
            if not (near and np.allclose(grad, want[1], rtol=1e-6, atol=1e-6)):
                wrong.append(values)

    workers = [threading.Thread(target=ask, args=job) for job in zip(points, wants, strict=True)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.parametrize("name", [name for name in CASES if "normalize" not in name])
def test_threads_change_no_bit(name, monkeypatch):
    loss, rng = CASES[name].surrogate, np.random.default_rng(7)
    sizes = np.r_[rng.integers(0, 60, 700), 400, 0, 300, rng.integers(0, 60, 100)]
    offsets = np.r_[0, np.cumsum(sizes)]
    assert offsets[-1] > 20_000
    targets = np.concatenate([targets_for(rng, reads(loss), n) for n in sizes])
    (scores, vector), weights = rng.normal(size=(2, offsets[-1])), rng.random(offsets[-1])
    results = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("CONCORDANT_THREADS", threads)
        bound = loss.bind(targets, offsets, weights)
        results.append((*bound.value_and_grad(scores), bound.hessian_product(scores, vector)))
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


MEASURE = """
import resource, sys
import numpy as np
from concordant.surrogates import *
loss = {loss}
def peak(n):
    rng = np.random.default_rng(0)
    scores, vector, targets = rng.normal(size=n), rng.normal(size=n), rng.integers(0, 5, n) / 1.0
    bound = loss.bind(targets, np.array([0, n]))
    bound.value_and_grad(scores), bound.hessian_product(scores, vector)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
small = peak(1000)
print((peak({n}) - small) / (8 * {n}))
"""


def arrays_needed(loss, n=20_000):
    """Growth of the process, in arrays of n doubles; a process of its own, since the peak never falls."""
    code = MEASURE.format(loss=loss, n=n)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no resource module")
@pytest.mark.parametrize(
    "loss",
    [
        "Pairwise()",
        "Preorder('gain', 'squared_hinge')",
        "Pairwise('logistic')",
        "Preorder('unit', 'exponential')",
    ],
)
def test_memory_is_linear_in_the_list(loss):
    """An array of all pairs would be 20,000 arrays, one bit a pair still 300 (measured: 7 to 24)."""
    assert arrays_needed(loss) < 60


def test_every_other_kernel_takes_long_lists_too():
    rng = np.random.default_rng(8)
    scores, targets = rng.normal(size=(2, 50_000))
    for loss in (Softmax(), Squared()):
        values, grad = loss(scores, np.abs(targets))
        assert np.isfinite(values).all()
        assert abs(grad.sum()) < 1e-9 * np.abs(grad).sum()
    assert Preorder()(scores, np.zeros(50_000))[0].tolist() == [0.0]
