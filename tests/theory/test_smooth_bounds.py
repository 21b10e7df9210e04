"""Bounds on expected losses: by hand, every constant against ascent, and samples that try to break them."""

import itertools
import math
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import concordant as cc
from concordant.exceptions import ConcordantError
from concordant.surrogates import Duchi, Pairwise, PlackettLuce, Preorder, Softmax, Squared, margin
from concordant.theory.bounds.empirical import Radius
from concordant.theory.bounds.smooth import (
    SampleLists,
    all_pair_weights,
    bound_of_loss,
    level_pair_weights,
    row_squares,
    swing,
    terms,
    two_way_union_radius,
    why_unbounded,
)
from tests.oracles import pair_moments, softmax_bound, squared_bound

pytestmark = pytest.mark.once

LOSSES = {
    "softmax": Softmax(),
    "plackett_luce": PlackettLuce(),
    "squared": Squared(),
    "squared, plain": Squared(centred=False),
    "duchi": Duchi(nu=0.7),
    "pairwise": Pairwise(),
    "pairwise, normalized": Pairwise("huber_hinge(0.1)", normalize=True),
    "pairwise, logistic": Pairwise("logistic"),
    "pairwise, hinge": Pairwise("hinge"),
    "pairwise, squared_hinge": Pairwise("squared_hinge", normalize=True),
    "pairwise, exponential": Pairwise("exponential", normalize=True),
    "preorder, unit": Preorder("unit"),
    "preorder, pairs": Preorder("pairs", "logistic"),
    "preorder, gain": Preorder("gain", "squared_hinge"),
}
every_loss = pytest.mark.parametrize("name", LOSSES)
ROUNDING = 1.0 + 1e-9


@dataclass
class Sample:
    """A few lists, labelled for one loss."""

    loss: object
    labels: np.ndarray
    X: np.ndarray
    queries: object

    @classmethod
    def drawn(cls, name, seed, sizes=None, scale=1.0, width=3):
        rng, loss = np.random.default_rng(seed), LOSSES[name]
        queries = cc.Queries.from_sizes(rng.integers(0, 7, 6) if sizes is None else sizes)
        labels = rng.integers(0, 3, queries.n_rows).astype(float)
        if loss.reads == "targets":
            labels *= np.round(rng.random(queries.n_rows), 2)
        if loss.reads == "positions":
            labels = np.concatenate([[], *(rng.permutation(size) + 1.0 for size in queries.sizes)])
        return cls(loss, labels, scale * rng.normal(size=(queries.n_rows, width)), queries)

    @property
    def bound_loss(self):
        return self.loss.bind(self.labels, self.queries.offsets)

    def swing(self, B):
        return swing(self.loss, self.bound_loss, self.labels, self.X, self.queries, B)

    def losses(self, w):
        return self.bound_loss.value_and_grad(self.X @ w)[0]

    def gradients(self, w):
        """Gradient of each list's loss in the weights."""
        rows = self.bound_loss.value_and_grad(self.X @ w)[1][:, None] * self.X
        return np.array([rows[a:b].sum(axis=0) for a, b in itertools.pairwise(self.queries.offsets)])

    def lists(self):
        spans = itertools.pairwise(self.queries.offsets)
        return [(self.X[a:b], self.labels[a:b]) for a, b in spans]


def in_ball(rng, B, width, many):
    """Weights no longer than B: half of them as long as that."""
    weights = rng.normal(size=(many, width))
    weights *= (B / np.linalg.norm(weights, axis=1))[:, None]
    weights[::2] *= rng.random(size=(len(weights[::2]), 1))
    return weights


def steepest_found(sample, B, rng, steps=25):
    """Longest gradients that ascent finds in the ball, list by list."""
    longest, width = np.zeros(sample.queries.n_queries), sample.X.shape[1]
    for q in range(len(longest)):
        best, length = np.zeros(width), B
        longest[q] = np.linalg.norm(sample.gradients(best)[q])
        for _ in range(steps):
            tried = best + length * rng.normal(size=(4, width))
            tried *= np.minimum(B / np.maximum(np.linalg.norm(tried, axis=1), 1e-300), 1.0)[:, None]
            values = [np.linalg.norm(sample.gradients(w)[q]) for w in tried]
            top = int(np.argmax(values))
            if values[top] > longest[q]:
                best, longest[q] = tried[top], values[top]
            else:
                length *= 0.8
    return longest


def check_swing(sample, sample_swing, B, rng):
    """No weights in the ball lose less or more, or change faster, than the swing says."""
    weights = in_ball(rng, B, sample.X.shape[1], 20)
    losses = np.array([sample.losses(w) for w in weights])
    slack = 1e-9 * (1.0 + sample_swing.highest)
    assert (losses >= sample_swing.lowest - slack).all(), "lowest"
    assert (losses <= sample_swing.highest + slack).all(), "highest"
    for (loss, w), (other, v) in itertools.pairwise(zip(losses, weights, strict=True)):
        assert (np.abs(loss - other) <= sample_swing.slopes * np.linalg.norm(w - v) + slack).all(), "slopes"
    longest = np.max([np.linalg.norm(sample.gradients(w), axis=1) for w in weights], axis=0)
    assert (longest <= sample_swing.slopes * ROUNDING + slack).all(), "slopes"


@pytest.mark.slow
@every_loss
@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1e-3, 0.3, 1.0, 5.0]),
    B=st.sampled_from([0.01, 0.5, 3.0]),
)
def test_no_weights_swing_further(name, seed, scale, B):
    sample = Sample.drawn(name, seed, scale=scale)
    check_swing(sample, sample.swing(B), B, np.random.default_rng(seed))


@pytest.mark.slow
@every_loss
def test_ascent_does_not_find_a_steeper_slope(name):
    """The slopes hold where gradients are sought on purpose; and they are no idle numbers."""
    rng, shares = np.random.default_rng(0), []
    for seed, B in itertools.product(range(3), (0.1, 2.0)):
        sample = Sample.drawn(name, seed, sizes=[2, 3, 6])
        longest, slopes = steepest_found(sample, B, rng), sample.swing(B).slopes
        assert (longest <= slopes * ROUNDING).all()
        shares += list(longest[slopes > 0.0] / slopes[slopes > 0.0])
    assert max(shares) > 0.5


@pytest.mark.parametrize("field", ["slopes", "highest", "lowest"])
def test_a_swing_too_small_is_caught(field):
    """The shared check can fail: where one document has a score, everything is attained."""
    X, labels = np.array([[1.0], [0.0]]), np.array([1.0, 0.0])
    sample = Sample(Duchi(), labels, X, cc.Queries.from_sizes([2]))
    sample_swing = sample.swing(1.0)
    check_swing(sample, sample_swing, 1.0, np.random.default_rng(0))
    wrong = sample_swing._replace(**{field: getattr(sample_swing, field) * 0.8})
    with pytest.raises(AssertionError, match=field):
        check_swing(sample, wrong, 1.0, np.random.default_rng(0))


@pytest.mark.parametrize("name", ["softmax", "plackett_luce"])
@settings(max_examples=50)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.1, 1.0, 30.0, 1e6]))
def test_the_gradient_in_the_scores(name, seed, scale):
    """`amounts` are L_q sqrt(S_q): for a huge B, L_q is the longest gradient of all."""
    sample = Sample.drawn(name, seed)
    sample_swing, rng = sample.swing(1e9), np.random.default_rng(seed)
    spread = np.array([((X - X.mean(axis=0)) ** 2).sum() if len(X) else 0.0 for X, _ in sample.lists()])
    slopes = sample_swing.parts[0].amounts / np.sqrt(np.where(spread > 0.0, spread, 1.0))
    grad = sample.bound_loss.value_and_grad(scale * rng.normal(size=len(sample.labels)))[1]
    longest = np.sqrt(
        np.array([(grad[a:b] ** 2).sum() for a, b in itertools.pairwise(sample.queries.offsets)])
    )
    assert (longest <= slopes * ROUNDING + 1e-12).all()


@pytest.mark.parametrize(
    ("loss", "labels"), [(Softmax(), [0.0, 1.0, 2.0, 0.5]), (PlackettLuce(), [3.0, 1, 2, 4])]
)
def test_the_longest_gradient_is_approached(loss, labels):
    """All probability on the item of the least target; in the order opposite to the observed one."""
    labels, queries = np.array(labels), cc.Queries.from_sizes([4])
    scores = 1e3 * labels if loss.reads == "positions" else 1e3 * (labels == labels.min())
    grad = loss.bind(labels, queries.offsets).value_and_grad(scores)[1]
    X = np.diag([1.0, -1.0, 1.0, -1.0])
    sample_swing = Sample(loss, labels, X, queries).swing(1e9)
    spread = ((X - X.mean(axis=0)) ** 2).sum()
    assert sample_swing.parts[0].amounts[0] == pytest.approx(np.linalg.norm(grad) * math.sqrt(spread))


@pytest.mark.parametrize("name", [name for name in LOSSES if "p" in name[:3] and name != "plackett_luce"])
@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_the_moments_of_pairs(name, seed):
    sample = Sample.drawn(name, seed)
    loss, offsets = sample.loss, sample.queries.offsets
    squares = row_squares(sample.X, sample.queries, centred=True)
    spread = np.array([squares[a:b].sum() for a, b in itertools.pairwise(offsets)])
    rest = sample.losses(np.zeros(3))
    sample_lists = SampleLists(
        sample.labels, sample.bound_loss, sample.X, sample.queries, squares, spread, rest, rest
    )
    weight, inside = (all_pair_weights if isinstance(loss, Pairwise) else level_pair_weights)(
        loss, sample_lists
    )
    for q, (X, y) in enumerate(sample.lists()):
        m = len(y)
        above = (y[:, None] > y[None, :]).astype(float)
        if isinstance(loss, Pairwise):
            weights = np.outer(y / (max(m * (m - 1), 1) if loss.normalize else 1), np.ones(m))
        else:
            gains = 2 ** y[:, None] - 2 ** y[None, :] if loss.weighting == "gain" else 1.0
            weights = above * gains / (1.0 if loss.weighting == "unit" else max(above.sum(), 1.0))
        expected = pair_moments(X, weights)
        assert weight[q] == pytest.approx(expected[0], abs=1e-12)
        if getattr(loss, "weighting", "") == "gain":
            assert expected[1] - 1e-12 <= inside[q] <= 3.0 * expected[1] + 1e-9
        else:
            assert inside[q] == pytest.approx(expected[1], abs=1e-9)
        assert sample_lists.apart[q] >= max([0.0, *(np.linalg.norm(a - b) for a in X for b in X)]) / ROUNDING


# ---------------------------------------------------------------- the steps of the proof

SIGNS = np.array(list(itertools.product([-1.0, 1.0], repeat=8)))
DISC = np.vstack(
    [
        r * np.column_stack([np.cos(t), np.sin(t)])
        for r in (0.0, 0.3, 0.7, 1.0)
        for t in [np.linspace(0.0, 2.0 * np.pi, 60)]
    ]
)


def rademacher(sample, B):
    """The average over all signs of the largest signed mean loss, over weights all over the disc."""
    losses = np.array([sample.losses(B * w) for w in DISC])
    return (losses @ SIGNS.T).max(axis=0).mean() / len(SIGNS[0])


def promised(sample_swing, B):
    """What the complexity says of it: half, except of squares, where the same sum bounds both."""
    half = 0.5 if len(sample_swing.parts) == 1 else 1.0
    return (
        half
        * B
        / len(sample_swing.rest)
        * sum(part.factor * np.linalg.norm(part.amounts) for part in sample_swing.parts)
    )


@pytest.mark.slow
@pytest.mark.parametrize("B", [0.1, 1.0])
@every_loss
def test_rademacher_averages_of_a_sample(name, B):
    """All signs of eight lists: the average is below what the complexity rests on, and not far below."""
    for seed in range(3):
        sample = Sample.drawn(name, seed, sizes=[2, 3, 4, 5, 2, 6, 3, 4], width=2)
        average, most = rademacher(sample, B), promised(sample.swing(B), B)
        assert average <= most
        assert average >= most / (1000.0 if name == "pairwise, exponential" else 40.0)


def one_pair_each(loss, spread=0.1):
    """Lists of two documents, all alike: what is promised is nearly attained."""
    X = np.tile(spread * np.array([[1.0, 0.0], [-1.0, 0.0]]), (8, 1))
    labels = np.tile([1.0, 0.0], 8)
    return Sample(loss, labels, X, cc.Queries.from_sizes([2] * 8))


@pytest.mark.parametrize(
    ("loss", "share"),
    [(Preorder("pairs", "hinge"), 0.75), (Pairwise("hinge"), 0.75), (Softmax(), 0.49), (Duchi(), 0.47)],
    ids=str,
)
def test_a_smaller_constant_is_caught(loss, share):
    """The check above can fail: with this share of what is promised, these lists break it."""
    sample = one_pair_each(loss)
    average, most = rademacher(sample, 1.0), promised(sample.swing(1.0), 1.0)
    assert share * most < average <= most


def test_the_mean_of_squares_falls_short_no_more_than_said():
    """Rare large amounts: the root of the expectation, against root of the mean plus what is added."""
    rng, n, chance, draws = np.random.default_rng(0), 40, 0.05, 4000
    for rare in (0.01, 0.05, 0.2):
        z = (rng.random((draws, n)) < rare) * 3.0
        mean, added = np.sqrt((z**2).mean(axis=1)), 3.0 * math.sqrt(2.0 * math.log(1.0 / chance) / n)
        truth = 3.0 * math.sqrt(rare)
        assert (truth > mean + added).mean() <= chance
        assert (truth > mean).mean() > chance  # without it the bound would rest on luck


# ---------------------------------------------------------------- populations whose risk is known


class Population:
    """A few kinds of lists, each with a probability: risks are sums."""

    def __init__(self, name, seed=0):
        rng = np.random.default_rng(seed)
        self.sample = Sample.drawn(name, seed, sizes=[2, 3, 5, 2, 4, 3], width=2, scale=0.5)
        self.probs = rng.dirichlet(np.ones(6))
        self.losses = np.array([self.sample.losses(w) for w in DISC])
        self.risks = self.losses @ self.probs
        self.swing = self.sample.swing(1.0)

    def exceeded(self, n, draws, delta, shrink=1.0):
        """Share of samples with weights on the disc whose risk is above their mean loss plus the excess."""
        rng, above = np.random.default_rng(1), 0
        for _ in range(draws):
            drawn = rng.choice(6, size=n, p=self.probs)
            parts = tuple(part._replace(amounts=part.amounts[drawn]) for part in self.swing.parts)
            sample_swing = self.swing._replace(parts=parts, rest=self.swing.rest[drawn])
            excess = sum(
                term.value for term in terms(sample_swing, self.swing.extremes, Radius("given", 1.0, delta))
            )
            above += bool((self.risks > self.losses[:, drawn].mean(axis=1) + shrink * excess).any())
        return above / draws


@every_loss
def test_samples_break_it_no_more_often_than_said(name):
    population = Population(name)
    assert population.exceeded(20, 400, 0.1) <= 0.1
    assert population.exceeded(20, 200, 0.1, shrink=0.05) > 0.1  # a twentieth of it: caught by the same check


@pytest.mark.parametrize("name", ["softmax", "squared", "pairwise", "plackett_luce"])
def test_fitted_weights_on_samples_of_a_population(name):
    """Weights fitted to each sample, B by the union, limits from the sample: never above in 60 draws."""
    whole = Sample.drawn(name, 3, sizes=np.random.default_rng(0).integers(2, 6, 400), width=2)
    rng = np.random.default_rng(2)
    for _ in range(60):
        drawn = rng.choice(400, size=30)
        rows = whole.queries.rows(drawn)
        queries = cc.Queries.from_sizes(whole.queries.sizes[drawn])
        X, labels = whole.X[rows], whole.labels[rows]
        bound_loss = whole.loss.bind(labels, queries.offsets)
        w = np.zeros(2)
        for _ in range(30):
            w -= 0.02 * (X.T @ bound_loss.value_and_grad(X @ w)[1] / 30 + 0.1 * w)
        bound = bound_of_loss(whole.loss, labels, X, queries, w)
        assert bound.measured == pytest.approx(bound_loss.value_and_grad(X @ w)[0].mean())
        assert whole.losses(w).mean() <= bound.value


# ---------------------------------------------------------------- the whole bound


@pytest.mark.parametrize(("name", "oracle"), [("softmax", softmax_bound), ("squared", squared_bound)])
@pytest.mark.parametrize("B", [0.05, 2.0])
def test_the_formula_by_hand(name, oracle, B):
    sample = Sample.drawn(name, 4, sizes=[3, 1, 5, 2, 4])
    w = B * np.array([0.3, -0.2, 0.5])
    bound = bound_of_loss(sample.loss, sample.labels, sample.X, sample.queries, w, delta=0.1, B=B)
    expected = oracle(sample.lists(), w, B, 0.1)
    assert [bound.empirical, *(term.value for term in bound.parts)] == pytest.approx(expected)
    assert bound.value == pytest.approx(sum(expected))
    assert bound.largest == pytest.approx(sample.losses(0.0 * w).mean())
    assert bound.vacuous == (bound.value >= bound.largest)
    assert (bound.rule, bound.B, bound.n, bound.multiplier) == ("given", B, 5, 1.0)


@every_loss
def test_row_order_and_sparsity_do_not_matter(name):
    sample, rng = Sample.drawn(name, 5, sizes=[3, 1, 6, 4, 2]), np.random.default_rng(0)
    w, sizes = np.array([0.4, -0.1, 0.2]), sample.queries.sizes
    bound = bound_of_loss(sample.loss, sample.labels, sample.X, sample.queries, w)
    moved = rng.permutation(len(sizes))
    starts = sample.queries.offsets[:-1]
    order = np.concatenate([starts[q] + rng.permutation(sizes[q]) for q in moved])
    queries = cc.Queries.from_sizes(sizes[moved])
    for X in (sample.X[order], sparse.csr_array(sample.X[order]), sample.X[order].astype(np.float32)):
        again = bound_of_loss(sample.loss, sample.labels[order], X, queries, w)
        near = 1e-5 if X.dtype == np.float32 else 1e-12
        values = [
            (result.value, result.worst, result.largest, result.M, result.excess) for result in (again, bound)
        ]
        assert values[0] == pytest.approx(values[1], rel=near)


def test_sparse_rows_by_hand():
    rng = np.random.default_rng(0)
    queries = cc.Queries.from_sizes([3, 0, 1, 4, 2])
    X = np.where(rng.random((10, 5)) < 0.5, rng.normal(size=(10, 5)), 0.0)
    X[:, 0] += 1e6  # large and constant, in every row
    twice = sparse.csr_array(
        (np.r_[X[0] / 2, X[0] / 2], np.r_[np.arange(5), np.arange(5)], [0, 10]), shape=(1, 5)
    )
    stacked = sparse.vstack([twice, sparse.csr_array(X[1:])], format="csr")
    for centred in (True, False):
        parts = [
            X[a:b] - (X[a:b].mean(axis=0) if centred else 0.0)
            for a, b in itertools.pairwise(queries.offsets)
            if a < b
        ]
        expected = (np.vstack(parts) ** 2).sum(axis=1)
        for given_X in (X, stacked):
            assert row_squares(given_X, queries, centred=centred) == pytest.approx(
                expected, rel=1e-7, abs=1e-9
            )


@pytest.mark.parametrize(
    "name", [name for name in LOSSES if name not in ("plackett_luce", "squared, plain", "duchi")]
)
def test_labels_that_say_nothing_cost_nothing(name):
    """All targets 0, or one grade: nothing can be lost, but by squares."""
    sample = Sample.drawn(name, 6, sizes=[3, 1, 5])
    bound = bound_of_loss(sample.loss, 0.0 * sample.labels, sample.X, sample.queries, np.ones(3))
    if name == "squared":
        assert bound.value > bound.measured > 0.0
    else:
        assert bound.value == bound.excess == bound.worst == 0.0
    assert bound.vacuous


@every_loss
def test_single_items_cannot_be_ranked(name):
    """Lists of one document cost nothing, unless the level of scores counts; they do count as queries."""
    sample = Sample.drawn(name, 7, sizes=[1, 1, 1])
    sample_swing = sample.swing(2.0)
    if name in ("squared, plain", "duchi"):
        assert (sample_swing.slopes > 0.0).all()
    else:
        assert not sample_swing.slopes.any()
        assert sample_swing.highest == pytest.approx(sample.losses(np.zeros(3)))


@every_loss
@pytest.mark.parametrize(("scale", "length"), [(1e200, 1.0), (1.0, 1e200), (1e-200, 1e-200), (1e100, 1e-100)])
def test_huge_and_tiny_values_pass(name, scale, length):
    """No warning, and no number that looks finite but is wrong: infinite where doubles end."""
    sample = Sample.drawn(name, 8, sizes=[3, 1, 5])
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("error", UserWarning)
        bound = bound_of_loss(
            sample.loss, sample.labels, scale * sample.X, sample.queries, np.full(3, length)
        )
    assert bound.value >= bound.empirical or math.isnan(bound.value) or math.isnan(bound.empirical)
    if scale * length <= 1.0:
        assert math.isfinite(bound.value)


@settings(max_examples=200)
@given(length=st.floats(0.0, 1e300), delta=st.floats(1e-6, 0.99))
def test_the_union_is_long_enough_and_paid_for(length, delta):
    rule, B, chance = two_way_union_radius(length, delta)
    assert rule == "union"
    assert length <= B
    assert 0.0 < chance < delta
    assert length > B / 2.0 or (length, B) == (0.0, 2.0**-30)
    assert two_way_union_radius(B, delta) == (rule, B, chance)


def test_the_union_spends_delta_once():
    chances = [two_way_union_radius(2.0**k, 0.05).chance for k in range(-900, 900)]
    assert 0.95 * 0.05 < sum(chances) < 0.05


def test_it_reads_like_a_statement():
    sample = Sample.drawn("duchi", 9, sizes=[4] * 30, scale=0.1)
    bound = bound_of_loss(sample.loss, sample.labels, sample.X, sample.queries, np.zeros(3))
    text = str(bound)
    assert text.startswith(f"duchi(nu=0.7) loss <= {bound.value:.4g} = 0 + ")
    assert "assumes that no list loses more than" in text
    assert " or less than -" in text
    assert text.endswith("vacuous: weights 0 lose 0 on these queries")
    assert set(bound.terms) == {"complexity", "estimate", "confidence"}
    assert not replace(bound, largest=math.inf).vacuous


class Own(Squared):
    """A loss of a user's own: it may be anything."""


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (Own(), "no risk bound is known"),
        (Pairwise(replace(margin("hinge"), edge=-1.0)), "no risk bound is known"),
        (Duchi("cosh"), "'square' only"),
        (cc.listwise_hinge("ap", "sum"), "no risk bound is known"),
        (Softmax(), ""),
    ],
    ids=str,
)
def test_what_cannot_be_bounded_says_why(loss, text):
    assert text in why_unbounded(loss)
    assert bool(text) == bool(why_unbounded(loss))
    if text:
        with pytest.raises(ConcordantError, match=text):
            bound_of_loss(loss, np.zeros(2), np.eye(2), cc.Queries.from_sizes([2]), np.zeros(2))


@pytest.mark.parametrize("options", [{"delta": 0.0}, {"delta": 1.0}, {"B": 0.1}, {"B": -1.0}], ids=str)
def test_bad_input_is_named(options):
    with pytest.raises(ConcordantError, match=next(iter(options))):
        bound_of_loss(Softmax(), np.ones(2), np.eye(2), cc.Queries.from_sizes([2]), np.ones(2), **options)


def test_a_bound_can_say_something():
    """Two documents that one feature tells apart, many queries: better than no ranking, with certainty."""
    n = 5000
    X, labels = np.tile([[0.5], [-0.5]], (n, 1)), np.tile([1.0, 0.0], n)
    bound = bound_of_loss(Softmax(), labels, X, cc.Queries.from_sizes([2] * n), np.array([2.0]))
    assert bound.measured < bound.value < bound.largest == pytest.approx(math.log(2.0))
    assert not bound.vacuous
