"""Every surrogate equals its definition, with gradient and Hessian; each check rejects a wrong object."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concordant.data.queries import Queries
from concordant.surrogates import Pairwise, Softmax, Squared
from concordant.surrogates import pairwise as pairwise_module
from tests.helpers.surrogate_checks import (
    CASES,
    SHIFTABLE,
    SMOOTH,
    SWEPT,
    Case,
    Query,
    check_all,
    check_convex,
    check_differences,
    check_gradient,
    check_product,
    check_shift_invariance,
    check_symmetric,
    check_value,
    drawn,
    join_batch,
    reads,
)

every_case = pytest.mark.parametrize("name", CASES)
# Offset and factor of the scores: plain, tiny, high up, far apart.
REGIMES = {
    "plain": (0.0, 1.0),
    "tiny": (0.0, 1e-12),
    "offset": (1e6, 1.0),
    "far": (0.0, 1e3),
    "wide": (0.0, 1e6),
}
# Exponentials of these leave the doubles: tested by themselves.
GROWING = {"exponential": ("plain", "tiny", "offset"), "cosh": ("plain", "tiny")}

# Of few bits, so that differences are exact: on which side of a corner a pair is must not hang on rounding.
parts = st.one_of(
    st.integers(-192, 192).map(lambda k: k / 64), st.integers(-(2**21), 2**21).map(lambda k: k / 2**20)
)
bases = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 0.5]), parts)


@st.composite
def queries(draw, reads, regimes):
    n = draw(st.integers(0, 7))
    offset, factor = REGIMES[draw(st.sampled_from(regimes))]

    def column(values):
        return np.array(draw(st.lists(values, min_size=n, max_size=n)), dtype=float)

    scores = offset + factor * column(draw(st.sampled_from([bases, st.just(0.5)])))
    if reads == "positions":
        targets = np.array(draw(st.permutations(range(1, n + 1))), dtype=float)
    else:
        lowest = -2 if reads == "signed" else 0
        # In parts of 1/64: the gains of grades closer than that differ in fewer digits than are compared.
        some = st.one_of(
            st.integers(lowest, 4), st.integers(64 * lowest, 256).map(lambda k: k / 64), st.just(0.0)
        )
        targets = column(draw(st.sampled_from([some, st.just(0.0), st.just(1.5)])))
    weights = column(draw(st.sampled_from([st.just(1.0), st.sampled_from([0.0, 0.5, 1.0, 3.0])])))
    return Query(scores, targets, weights)


def batches(name, size=3):
    regimes = next((some for kind, some in GROWING.items() if kind in name), tuple(REGIMES))
    return st.lists(queries(reads(CASES[name].surrogate), regimes), min_size=1, max_size=size)


@every_case
@given(data=st.data())
@settings(max_examples=25)
def test_definition(name, data):
    check_all(CASES[name], data.draw(batches(name)))


@pytest.mark.parametrize("name", SWEPT)
@given(data=st.data())
@settings(max_examples=15)
def test_definition_by_sort_and_sweep(name, data):
    """Lists of up to three items in the double loop, longer ones sorted; then all of them sorted."""
    batch = data.draw(batches(name))
    for long in (3, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pairwise_module, "LONG", long)
            check_all(CASES[name], batch)


class Shuffled:
    """A surrogate that is given its rows in random order, with ids that say where they belong."""

    def __init__(self, inner, seed):
        self.inner, self.rng = inner, np.random.default_rng(seed)

    def moved(self, qid, weights):
        order = self.rng.permutation(qid.n_rows)
        return order, {"qid": qid.codes[order] * 10 - 7, "weights": weights[order]}

    def __call__(self, scores, targets, qid, weights):
        order, rows = self.moved(qid, weights)
        values, grad = np.zeros(qid.n_queries), np.empty(qid.n_rows)
        # By ids an empty query cannot be given: its value stays 0.
        values[qid.sizes > 0], grad[order] = self.inner(scores[order], targets[order], **rows)
        return values, grad

    def hessian_product(self, scores, targets, vector, qid, weights):
        order, rows = self.moved(qid, weights)
        product = np.empty(qid.n_rows)
        product[order] = self.inner.hessian_product(scores[order], targets[order], vector[order], **rows)
        return product


@pytest.mark.slow
@every_case
@given(data=st.data(), seed=st.integers(0, 1000))
@settings(max_examples=8)
def test_rows_may_come_in_any_order(name, data, seed):
    """Values by ascending id; gradient and product by the caller's rows."""
    batch = data.draw(batches(name).filter(lambda batch: any(len(query.scores) for query in batch)))
    check_all(Case(Shuffled(CASES[name].surrogate, seed), CASES[name].oracle), batch)


@every_case
def test_nasty_batches(name):
    """Empty queries at either end, single items, all ties, no weight at all; and no rows."""
    case = CASES[name]
    kind = reads(case.surrogate)
    rng = np.random.default_rng(3)
    batch = drawn(rng, kind, [0, 1, 5, 0, 1, 9, 0])
    check_all(case, batch)
    check_all(case, [query._replace(scores=np.zeros(len(query.scores))) for query in batch])
    nothing = [query._replace(weights=np.zeros(len(query.scores))) for query in batch]
    check_all(case, nothing)
    scores, targets, rows = join_batch(nothing)
    assert not np.any(case.surrogate(scores, targets, **rows)[0])
    for sizes in ([0, 0], [0]):
        values, grad = case.surrogate([], [], qid=Queries.from_sizes(sizes))
        assert (values.tolist(), grad.tolist()) == ([0.0] * len(sizes), [])
        assert case.surrogate.hessian_product([], [], [], qid=Queries.from_sizes(sizes)).tolist() == []


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("seed", range(3))
def test_derivatives_by_differences(name, seed):
    rng = np.random.default_rng(seed)
    check_differences(CASES[name], drawn(rng, reads(CASES[name].surrogate), [4, 1, 6]))


@every_case
def test_hessians_are_symmetric_and_convex(name):
    rng = np.random.default_rng(5)
    for spread in (0.1, 1.5, 8.0):
        batch = drawn(rng, reads(CASES[name].surrogate), [3, 0, 12], spread)
        check_symmetric(CASES[name], batch)
        check_convex(CASES[name], batch)


@pytest.mark.parametrize("name", SHIFTABLE)
def test_the_level_of_a_query_does_not_count(name):
    rng = np.random.default_rng(6)
    check_shift_invariance(CASES[name], drawn(rng, reads(CASES[name].surrogate), [1, 8, 0, 4]))


@pytest.mark.parametrize("name", [name for name in CASES if name not in SMOOTH])
def test_a_hinge_has_subgradients(name):
    """At corners too: on scores of few different values most pairs are at one."""
    surrogate = CASES[name].surrogate
    rng = np.random.default_rng(7)
    assert not surrogate.smooth
    for _ in range(20):
        _, targets, rows = join_batch(drawn(rng, surrogate.reads, [6, 5]))
        scores, others = rng.integers(-2, 3, 11) / 1.0, rng.normal(size=(20, 11)) * 2
        values, grad = surrogate(scores, targets, **rows)
        for other in others:
            there, _ = surrogate(other, targets, **rows)
            tangent = values.sum() + grad @ (other - scores)
            assert there.sum() >= tangent - 1e-9 * (1 + abs(tangent))


@every_case
def test_smooth_says_whether_there_are_corners(name):
    """One-sided slopes at scores whose differences are at the margins' corners: 1, 1 +- h, 0."""
    surrogate = CASES[name].surrogate
    scores, targets = np.array([0.0, 1.0, 1.5, 0.25, 1.0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    step = 1e-6
    here = surrogate(scores, targets)[0].sum()
    jumps = []
    for i in range(5):
        bump = step * (np.arange(5) == i)
        up, down = (surrogate(scores + sign * bump, targets)[0].sum() for sign in (1, -1))
        jumps.append(((up - here) - (here - down)) / step)
    assert surrogate.smooth == (max(jumps) < 1e-2 * (1 + abs(here)))


def test_weights_scale_terms():
    """A row's weight multiplies the terms that its target does."""
    scores, targets = np.array([0.3, -1.0, 2.0]), np.array([1.0, 2.0, 0.5])
    weights = np.array([2.0, 0.0, 1.0])
    for surrogate in (Pairwise(), Softmax()):
        np.testing.assert_allclose(
            surrogate(scores, targets, weights=weights)[1], surrogate(scores, targets * weights)[1]
        )
    plain = Squared(centred=False)
    assert plain(scores, targets, weights=weights)[0] == 2 * 0.7**2 + 1.5**2


# ---------------------------------------------------------------- wrong objects


class Altered:
    """A surrogate with its results changed."""

    def __init__(self, inner, values=None, grad=None, product=None):
        self.inner, self.change = inner, (values, grad, product)

    def __call__(self, scores, targets, **rows):
        result = self.inner(scores, targets, **rows)
        return tuple(change(x) if change else x for change, x in zip(self.change, result, strict=False))

    def hessian_product(self, *arguments, **rows):
        product = self.inner.hessian_product(*arguments, **rows)
        return self.change[2](product) if self.change[2] else product


def off(x):
    """Off by a millionth in the last entry."""
    return np.r_[x[:-1], x[-1:] * (1 + 1e-6)]


WRONG = {
    "value": (check_value, "pairwise[logistic]", {"values": off}),
    "value of another query": (check_value, "softmax", {"values": lambda v: v[::-1]}),
    "gradient": (check_gradient, "pairwise[huber_hinge]", {"grad": off}),
    "gradient sign": (check_gradient, "preorder[gain,hinge]", {"grad": np.negative}),
    "product": (check_product, "plackett_luce", {"product": lambda h: h * (1 + 1e-6)}),
    "no product": (check_product, "pairwise[exponential]", {"product": np.zeros_like}),
    "differences": (check_differences, "duchi[cosh]", {"grad": lambda g: g * (1 + 1e-3)}),
    "differences of gradients": (check_differences, "softmax", {"product": lambda h: h * (1 + 1e-2)}),
    "asymmetric": (check_symmetric, "squared", {"product": lambda h: h * np.arange(len(h))}),
    "indefinite": (check_symmetric, "squared", {"product": np.negative}),
    "concave": (check_convex, "softmax", {"values": np.negative, "grad": np.negative}),
    "not convex": (check_convex, "pairwise[squared_hinge]", {"values": np.sqrt}),
    "tangent too steep": (check_convex, "pairwise[squared_hinge]", {"grad": lambda g: 1.5 * g}),
    "gradient of a sum": (check_shift_invariance, "softmax", {"grad": lambda g: g + 1e-6}),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_the_checks_reject_what_is_wrong(wrong):
    check, name, changes = WRONG[wrong]
    batch = drawn(np.random.default_rng(8), reads(CASES[name].surrogate), [5, 6])
    check(CASES[name], batch)
    with pytest.raises(AssertionError):
        check(Case(Altered(CASES[name].surrogate, **changes), CASES[name].oracle), batch)


@pytest.mark.parametrize("name", sorted(set(CASES) - set(SHIFTABLE)))
def test_the_check_rejects_a_surrogate_that_sees_levels(name):
    with pytest.raises(AssertionError):
        check_shift_invariance(CASES[name], drawn(np.random.default_rng(9), "signed", [5, 6], 0.5))


@pytest.mark.parametrize(
    ("wrong", "right"), [("preorder[unit,hinge]", "preorder[pairs,hinge]"), ("squared", "squared[plain]")]
)
def test_the_checks_tell_neighbours_apart(wrong, right):
    """A definition is not met by the surrogate next to it."""
    batch = drawn(np.random.default_rng(10), reads(CASES[right].surrogate), [5, 6])
    with pytest.raises(AssertionError):
        check_value(Case(CASES[wrong].surrogate, CASES[right].oracle), batch)
