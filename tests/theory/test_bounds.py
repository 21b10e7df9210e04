"""Risk bounds: the formulas typed again, the constants by enumeration, and the errata shown on examples."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import concordant as cc
from concordant.exceptions import ParameterError
from concordant.theory.bounds import (
    VERSIONS,
    average_precision,
    bipartite,
    kappa,
    listwise,
    multipartite,
    pairwise,
)
from concordant.theory.bounds.hinges import listwise_slope, margin_sum, n_pairs, reach, spread, variety

pytestmark = pytest.mark.once

norms = st.floats(0.01, 20.0)
deltas = st.floats(1e-6, 0.9)
sizes = st.lists(st.integers(1, 5), min_size=2, max_size=5).map(tuple)


def compositions(m):
    """All ways to cut m items into two or more levels."""
    for cuts in itertools.product((0, 1), repeat=m - 1):
        edges = [0, *(position + 1 for position, cut in enumerate(cuts) if cut), m]
        if len(edges) > 2:
            yield tuple(np.diff(edges).tolist())


def worse_than(levels):
    """Matrix: +1 where the row's item is better than the column's, -1 where it is worse, 0 on a level."""
    level = np.repeat(np.arange(len(levels)), levels)
    return np.sign(level[None, :] - level[:, None])


def margins(levels):
    """Matrix of r/y_i - r/y_j."""
    y = np.repeat(np.arange(1, len(levels) + 1), levels)
    return len(levels) / y[:, None] - len(levels) / y[None, :]


def position_hinge(scores, levels):
    better, gaps = worse_than(levels) > 0, margins(levels)
    return np.maximum(gaps - (scores[:, None] - scores[None, :]), 0.0)[better].sum()


def inverted(scores, levels):
    """Matrix: pairs whose better item has the lower score."""
    return (worse_than(levels) > 0) & (scores[:, None] < scores[None, :])


# --- the formulas


@given(st.integers(1, 10**6), st.integers(2, 30), norms, norms, deltas)
def test_published_and_corrected_are_the_closed_formulas(n, m, B, M, delta):
    first, doubt = B * M / math.sqrt(n), math.sqrt(8 * math.log(2 / delta) / n)
    P, Q, k = m * (m - 1) / 2, math.factorial(m), 2 * (m * m // 2) / (m * (m - 1))
    for bound, complexity, confidence in (
        (pairwise(n, m, B, M, delta, "published"), P * 4 * first, P * (m - 1 + 2 * B * M) * doubt),
        (pairwise(n, m, B, M, delta, "corrected"), P * 8 * first, P * (m - 1 + 2 * B * M) * doubt),
        (listwise(n, m, B, M, delta, "published"), Q * 4 * first, Q * (1 + 2 * B * M) * doubt),
        (listwise(n, m, B, M, delta, "corrected"), Q * 8 * k * first, Q * (1 + 2 * k * B * M) * doubt),
    ):
        assert bound.terms["complexity"].value == pytest.approx(complexity, rel=1e-12)
        assert bound.terms["confidence"].value == pytest.approx(confidence, rel=1e-12)
        assert bound.excess == pytest.approx(complexity + confidence, rel=1e-12)
        assert bound.log10 == pytest.approx(math.log10(complexity + confidence), abs=1e-9)
        assert bound.multiplier == 1.0


@given(st.integers(1, 10**6), sizes, norms, norms, deltas)
def test_corollaries(n, levels, B, M, delta):
    pairs = sum(first * second for first, second in itertools.combinations(levels, 2))
    doubt = math.sqrt(8 * math.log(2 / delta) / n)
    bound = multipartite(n, levels, B, M, delta, "published")
    expected = pairs * 4 * B * M / math.sqrt(n) + pairs * (len(levels) - 1 + 2 * B * M) * doubt
    assert bound.excess == pytest.approx(expected, rel=1e-12)
    rel, nrel = levels[:2]
    bound = bipartite(n, rel, nrel, B, M, delta, "published")
    expected = rel * nrel * (4 * B * M / math.sqrt(n) + (1 + 2 * B * M) * doubt)
    assert bound.excess == pytest.approx(expected, rel=1e-12)
    bound = average_precision(n, rel + nrel, rel, B, M, delta, "published")
    expected = math.comb(rel + nrel, rel) * (4 * B * M / math.sqrt(n) + (1 + 2 * B * M) * doubt)
    assert bound.excess == pytest.approx(expected, rel=1e-12)


@given(st.integers(1, 10**6), st.integers(2, 40), norms, norms, deltas)
def test_sharp_is_the_closed_formula(n, m, B, M, delta):
    doubt = math.sqrt(math.log(1 / delta) / (2 * n))
    k = 2 * (m * m // 2) / (m * (m - 1))
    slope = 4 * math.sqrt((m + 1) / (3 * m * (m - 1)))
    expected = 2 * math.sqrt(2) * slope * B * M * math.sqrt(m / n) + (1 + 2 * k * B * M) * doubt
    assert listwise(n, m, B, M, delta, "sharp").excess == pytest.approx(expected, rel=1e-12)
    mean_margin = np.mean([m / i - m / j for i, j in itertools.combinations(range(1, m + 1), 2)])
    expected = math.sqrt(2) * slope * B * M * math.sqrt(m / n) + (mean_margin + k * B * M) * doubt
    bound = pairwise(n, m, B, M, delta, "sharp", "pairs")
    assert bound.excess == pytest.approx(expected, rel=1e-11)


def test_stated_values():
    assert round(listwise(n=1700, m=40, B=1, M=1, delta=0.05, version="sharp").excess, 4) == 0.2530
    assert listwise(n=1700, m=40, B=1, M=1, delta=0.05, version="published").log10 > 40
    first = [
        pairwise(n=1, m=40, version=version, reduction="pairs").terms["complexity"].value
        for version in ("published", "corrected", "sharp")
    ]
    assert [round(value, 2) for value in first] == [4, 8, 3.35]
    assert cc.theory.bounds.pairwise(n=1700, m=40, B=1, M=1, delta=0.05, version="sharp").excess > 0


@given(st.integers(1, 10**6), st.integers(2, 30), norms, norms, deltas)
def test_corrected_differs_as_the_errata_say(n, m, B, M, delta):
    def ratio(bound_for, name):
        return bound_for("corrected").terms[name].value / bound_for("published").terms[name].value

    def pairs(version):
        return pairwise(n, m, B, M, delta, version)

    def lists(version):
        return listwise(n, m, B, M, delta, version)

    assert ratio(pairs, "complexity") == pytest.approx(2.0)
    assert ratio(pairs, "confidence") == pytest.approx(1.0)
    assert ratio(lists, "complexity") == pytest.approx(2 * kappa(m))
    assert ratio(lists, "confidence") == pytest.approx((1 + 2 * kappa(m) * B * M) / (1 + 2 * B * M))


@given(st.integers(1, 10**6), sizes, norms, norms, deltas, st.sampled_from(["corrected", "sharp", "tight"]))
def test_versions_and_reductions_are_compared_like_with_like(n, levels, B, M, delta, version):
    arguments = (n, levels, B, M, delta, version)
    summed, mean = (multipartite(*arguments, reduction=reduction) for reduction in ("sum", "pairs"))
    assert summed.excess == pytest.approx(mean.excess * n_pairs(levels))
    assert summed.largest == pytest.approx(mean.largest * n_pairs(levels))
    assert summed.vacuous == mean.vacuous or summed.excess == pytest.approx(summed.largest)
    plain, weighted = (multipartite(*arguments, error=error) for error in ("plain", "margin"))
    assert (plain.multiplier, weighted.multiplier) == (len(levels) - 1, 1.0)
    assert plain.excess == pytest.approx(weighted.excess * (len(levels) - 1))
    assert ("margin" in weighted.bounds) == (len(levels) > 2)
    assert "margin" not in plain.bounds


@given(st.integers(1, 10**6), sizes, norms, norms, deltas)
def test_tight_is_never_above_the_others(n, levels, B, M, delta):
    bounds = {version: multipartite(n, levels, B, M, delta, version) for version in VERSIONS}
    assert bounds["tight"].excess <= bounds["sharp"].excess * (1 + 1e-12)
    assert bounds["tight"].excess <= bounds["published"].excess * (1 + 1e-12) < bounds["corrected"].excess


def test_vector_contraction_alone_can_be_above_the_corrected_first_term():
    first = {version: bipartite(1, 1, 39, version=version).terms["complexity"].value for version in VERSIONS}
    assert first["sharp"] > first["corrected"] > first["tight"] == pytest.approx(first["published"])


# --- the constants, by enumeration


@pytest.mark.parametrize("m", [2, 3, 4, 5, 6, 7])
def test_slopes_are_the_largest_gradients(m):
    """Every order of every composition of m: never longer, and always attained."""
    orders = np.array(list(itertools.permutations(range(m))))
    before = np.sign(orders[:, None, :] - orders[:, :, None])  # +1: the row's item stands before the column's
    for levels in compositions(m):
        better = worse_than(levels)
        counts = (before * (better != 0)).sum(axis=2)
        lengths = np.linalg.norm(counts - better.sum(axis=1), axis=1)
        steepest = 2 / (m * (m - 1)) * lengths.max()
        assert steepest == pytest.approx(listwise_slope(levels), rel=1e-12)
        # A pair that an order inverts is violated at scores of that order, far apart.
        violated = (before < 0) & (better > 0)
        gradients = violated.sum(axis=1) - violated.sum(axis=2)
        assert np.linalg.norm(gradients, axis=1).max() == pytest.approx(reach(levels), rel=1e-12)


@pytest.mark.parametrize("levels", [(1, 1, 1), (1, 2), (2, 2), (1, 2, 1), (1, 1, 2), (3, 1)])
def test_no_set_of_violated_pairs_is_steeper(levels):
    """Scores violate some sets of pairs only; the constant holds for all sets."""
    rows, columns = np.nonzero(worse_than(levels) > 0)
    for violations in itertools.product((0, 1), repeat=len(rows)):
        gradient = np.zeros(sum(levels))
        np.add.at(gradient, columns, violations)
        np.subtract.at(gradient, rows, violations)
        assert np.linalg.norm(gradient) <= reach(levels) + 1e-12


@given(st.integers(2, 60), st.integers(1, 59))
def test_slopes_of_full_and_bipartite_rankings(m, rel):
    full = (1,) * m
    stem = math.sqrt((m + 1) / (3 * m * (m - 1)))
    assert listwise_slope(full) == pytest.approx(4 * stem)
    assert reach(full) / n_pairs(full) == pytest.approx(2 * stem)
    nrel = m
    assert reach((rel, nrel)) / (rel * nrel) == pytest.approx(math.sqrt((rel + nrel) / (rel * nrel)))
    items = rel + nrel
    expected = 4 * math.sqrt(rel * nrel * items) / (items * (items - 1))
    assert listwise_slope((rel, nrel)) == pytest.approx(expected)


@given(sizes)
def test_full_rankings_have_the_largest_constants(levels):
    full = (1,) * sum(levels)
    assert listwise_slope(levels) <= listwise_slope(full) * (1 + 1e-12)
    assert spread(levels) <= spread(full) == pytest.approx(kappa(sum(levels)))
    assert spread(levels) <= 4 * n_pairs(levels) / (sum(levels) * (sum(levels) - 1)) + 1e-12
    assert variety(levels) <= min(sum(levels) ** 2, 4 * n_pairs(levels))


@pytest.mark.parametrize("m", [2, 3, 4, 5, 6, 7])
def test_ranges_by_enumeration(m):
    """Sums of score differences are largest at scores +-1, all of which are tried."""
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=m)))
    rises = np.maximum(corners[:, None, :] - corners[:, :, None], 0.0)  # column above row
    for levels in compositions(m):
        better = worse_than(levels) > 0
        most = (rises * better).sum(axis=(1, 2)).max()
        assert spread(levels) == pytest.approx(2 * most / (m * (m - 1)))
        assert margin_sum(levels) == pytest.approx(margins(levels)[better].sum())
        assert n_pairs(levels) == better.sum()


@given(sizes, st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_variety_is_an_upper_bound(levels, seed, width):
    items = np.random.default_rng(seed).normal(size=(sum(levels), width))
    items /= np.maximum(np.linalg.norm(items, axis=1, keepdims=True), 1e-300)
    squares = ((items[:, None] - items[None]) ** 2).sum(axis=2)
    assert squares[worse_than(levels) > 0].sum() <= variety(levels) + 1e-9


@pytest.mark.parametrize("levels", [(1, 3), (2, 2), (2, 1, 1), (4, 1, 1), (1, 1, 1)])
def test_variety_is_attained(levels):
    m, largest = sum(levels), max(levels)
    if 2 * largest >= m:  # the largest level against all others
        level = np.repeat(np.arange(len(levels)), levels)
        items = np.where(level == np.argmax(levels), 1.0, -1.0)[:, None]
    else:
        turns = 2 * np.pi * np.arange(3) / 3
        items = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    squares = ((items[:, None] - items[None]) ** 2).sum(axis=2)
    assert squares[worse_than(levels) > 0].sum() == pytest.approx(variety(levels))


# --- which loss dominates which


def test_the_hinge_does_not_dominate_the_plain_error():
    """Erratum 5: the two lowest of three items are inverted by 0.1, the other pairs are right."""
    scores, levels = np.array([1.1, -1.1, -1.0]), (1, 1, 1)
    wrong = inverted(scores, levels)
    assert wrong.sum() == 1
    assert position_hinge(scores, levels) == pytest.approx(0.6)
    assert margins(levels)[wrong].sum() == pytest.approx(0.5)


@given(sizes, st.data())
def test_what_the_hinge_dominates(levels, data):
    m = sum(levels)
    scores = np.array(data.draw(st.lists(st.floats(-5, 5), min_size=m, max_size=m)))
    wrong, hinge = inverted(scores, levels), position_hinge(scores, levels)
    assert margins(levels)[wrong].sum() <= hinge + 1e-9
    assert wrong.sum() <= (len(levels) - 1) * hinge + 1e-9
    if len(levels) == 2:
        assert wrong.sum() <= hinge + 1e-9


def difference(scores, order, levels):
    """F(gold) - F(order), over pairs of different levels; `order` lists items, best first."""
    m, positions = len(scores), np.argsort(order)
    signs = np.sign(positions[None, :] - positions[:, None])
    pairs = worse_than(levels) > 0
    gaps = scores[:, None] - scores[None, :]
    return 2 / (m * (m - 1)) * (gaps * (1 - signs))[pairs].sum()


def average_precision_loss(order, rel):
    hits = [position for position, item in enumerate(order, start=1) if item < rel]
    return 1 - np.mean([(count + 1) / position for count, position in enumerate(hits)])


def test_average_precision_needs_the_best_order_of_each_interleaving():
    """A fixed order per interleaving, say by index, does not dominate 1 - AP; sorted by score, it does."""
    rng, below = np.random.default_rng(0), 0
    for _ in range(100):
        scores, hinges = rng.normal(size=4), {}
        for order in itertools.permutations(range(4)):  # each label by index in the first of an interleaving
            slack = average_precision_loss(order, 2) - difference(scores, np.array(order), (2, 2))
            hinges.setdefault(tuple(item < 2 for item in order), []).append(max(slack, 0.0))
        predicted = average_precision_loss(np.argsort(-scores), 2)
        assert sum(map(max, hinges.values())) >= predicted - 1e-12
        below += sum(hinge[0] for hinge in hinges.values()) < predicted - 1e-9
    assert below > 0


def test_interleavings_cost_no_more_than_linear_functions():
    """The largest F of an interleaving, by vector contraction, against 8 kappa."""
    for m in range(2, 200):
        for rel in range(1, m):
            twice = 2 * math.sqrt(2 * m) * listwise_slope((rel, m - rel))
            assert twice == pytest.approx(8 * math.sqrt(2 * rel * (m - rel)) / (m - 1))
            assert twice <= 8 * kappa(m)


# --- large numbers


@pytest.mark.parametrize("version", VERSIONS)
def test_large_lists(version):
    bound = listwise(n=1700, m=500, version=version)
    assert math.isfinite(bound.log10)
    if version in ("sharp", "tight"):
        assert not bound.vacuous
        assert bound.excess == pytest.approx(10**bound.log10)
        return
    assert bound.excess == math.inf
    assert bound.log10 > math.lgamma(501) / math.log(10) - 2
    needed = bound.queries_needed(0.1)
    assert isinstance(needed, int)
    assert math.log10(needed) == pytest.approx(2 * (bound.log10 + 1) + math.log10(1700), rel=1e-9)
    assert bound.at(needed).excess == pytest.approx(0.1, rel=1e-6)
    assert "10^" in str(bound)
    assert "10^" in repr(bound)


@given(
    st.integers(1, 10**6),
    st.integers(2, 12),
    norms,
    norms,
    deltas,
    st.sampled_from(VERSIONS),
    st.floats(1e-4, 1e3),
)
def test_queries_needed_is_minimal(n, m, B, M, delta, version, epsilon):
    bound = pairwise(n, m, B, M, delta, version, "pairs")
    needed = bound.queries_needed(epsilon)
    if needed < 2**50:
        assert bound.at(needed).excess <= epsilon
        assert needed == 1 or bound.at(needed - 1).excess > epsilon
    rate = Fraction(bound.parts[0].factor) + Fraction(bound.parts[1].factor)
    assert abs(needed - (rate / Fraction(epsilon)) ** 2) <= 2 + needed * Fraction(1, 10**14)
    assert bound.at(7).queries_needed(epsilon) == needed


# --- monotone, vacuous, words


@given(st.integers(1, 10**6), sizes, norms, norms, deltas, st.sampled_from(VERSIONS), st.floats(1.01, 3))
def test_monotone(n, levels, B, M, delta, version, grow):
    def excess(n=n, B=B, M=M, delta=delta):
        m = sum(levels)
        return np.array(
            [
                multipartite(n, levels, B, M, delta, version).excess,
                listwise(n, m, B, M, delta, version).excess,
                average_precision(n, m, levels[0], B, M, delta, version).excess,
            ]
        )

    now = excess()
    assert (excess(n=2 * n) < now).all()
    np.testing.assert_allclose(excess(n=4 * n), now / 2)
    assert (excess(B=B * grow) > now).all()
    assert (excess(M=M * grow) > now).all()
    assert (excess(delta=delta / grow) > now).all()


def test_length_of_lists():
    """Queries of different lengths: the shortest counts for the max hinge, the longest for sums."""
    lists = [listwise(100, m, version="sharp") for m in range(2, 60)]
    sums = [pairwise(100, m, version=version) for version in VERSIONS for m in range(2, 60)]
    for first, second in itertools.pairwise(lists):
        assert second.terms["complexity"].value < first.terms["complexity"].value
        assert second.terms["confidence"].value <= first.terms["confidence"].value * (1 + 1e-12)
    for first, second in itertools.pairwise(sums):
        assert first.version != second.version or all(
            second.terms[name].value > first.terms[name].value for name in second.terms
        )


def test_vacuous():
    assert pairwise(n=1700, m=40, version="published").vacuous
    bound = pairwise(n=100, m=3, version="sharp")
    assert bound.largest == pytest.approx(4.0)  # 1.5 + 2 + 0.5: all three pairs inverted
    for weight in ("margin", "plain"):
        bound = pairwise(n=100, m=3, version="sharp", error=weight)
        edge = bound.queries_needed(bound.largest)
        assert bound.at(edge - 1).vacuous
        assert not bound.at(edge + 1).vacuous
    assert bound.largest == 3.0
    assert bipartite(10, 2, 3).largest == 6.0
    assert bipartite(10, 2, 3, reduction="pairs").largest == 1.0
    assert listwise(10, 5, largest=7.5).largest == 7.5


def test_results_say_what_they_are():
    printed = pairwise(n=1000, m=3, version="published")
    assert printed.bounds == "0-1 error summed over pairs"
    assert printed.refuted.startswith("refuted")
    assert "erratum 5" in str(printed)
    assert "erratum 6" in str(printed)
    assert "refuted" in repr(printed)
    two = bipartite(n=1000, rel=1, nrel=2, version="published")
    assert "erratum 6" in two.refuted
    assert "erratum 5" not in two.refuted
    assert listwise(n=1000, m=3, version="published").refuted == two.refuted
    for version in ("corrected", "sharp", "tight"):
        assert not pairwise(n=1000, m=3, version=version).refuted
    plain = pairwise(n=1000, m=4, error="plain")
    assert "3 * position hinge" in str(plain)
    assert plain.bounds == "0-1 error summed over pairs"
    assert listwise(10, 3, version="sharp", mode="softmax").empirical == "soft-max listwise hinge"
    assert listwise(10, 3, version="sharp", mode="max").reduction == "max"
    assert listwise(10, 3, version="corrected", mode="max").empirical == "sum of listwise hinges"
    assert "interleaving" in average_precision(10, 3, 1).empirical
    assert listwise(10, 3, metric="ndcg@10").bounds == "1 - NDCG@10"
    assert listwise(10, 3, metric="dcg", largest=3.0).bounds == "loss of DCG"
    assert average_precision(10, 3, 1, version="sharp").bounds == "1 - AP"
    assert list(printed.terms) == ["complexity", "confidence"]
    assert pickle.loads(pickle.dumps(printed)) == printed  # noqa: S301
    assert hash(printed) == hash(pairwise(n=1000, m=3, version="published"))


def test_soft_max_range():
    def height(**options):
        bound = listwise(1, 3, 1.0, 1.0, math.exp(-2), "sharp", "softmax", **options)
        return bound.terms["confidence"].factor  # sqrt(ln(1/delta) / 2) = 1

    k = kappa(3)
    assert height() == pytest.approx(1 + 2 * k + math.log(6))
    assert height(levels=(1, 1, 1)) == pytest.approx(1 + 2 * k + math.log(6))
    assert height(levels=(1, 2), temperature=0.1) == pytest.approx(1 + 2 * k + 0.1 * math.log(5))
    assert height(levels=(1, 2), temperature=100.0) == pytest.approx(1 + 4 * k)
    hard = listwise(1, 3, 1.0, 1.0, math.exp(-2), "sharp", levels=(1, 2))
    assert hard.terms["confidence"].factor == pytest.approx(1 + 2 * k)


def test_zero_lengths_leave_the_confidence_term():
    for bound in (pairwise(10, 3, B=0), listwise(10, 3, M=0), listwise(10, 3, B=0, version="sharp")):
        assert bound.terms["complexity"].value == 0.0
        assert bound.terms["complexity"].log10 == -math.inf
        assert math.isfinite(bound.log10)
    assert np.float64(0.5) * pairwise(np.int64(10), np.int32(3), np.float32(1.0)).excess > 0


@pytest.mark.parametrize("bound", [pairwise, listwise, average_precision, bipartite, multipartite])
@pytest.mark.parametrize(
    "bad",
    [
        {"n": 0},
        {"n": 1.5},
        {"n": True},
        {"B": -1.0},
        {"B": math.inf},
        {"B": "1"},
        {"M": math.nan},
        {"M": 1e200, "B": 1e200},
        {"delta": 0.0},
        {"delta": 1.0},
        {"delta": math.nan},
        {"version": "best"},
    ],
)
def test_bad_input(bound, bad):
    good = {
        pairwise: {"m": 4},
        listwise: {"m": 4},
        average_precision: {"m": 4, "rel": 2},
        bipartite: {"rel": 2, "nrel": 2},
        multipartite: {"levels": (1, 2)},
    }[bound]
    with pytest.raises(ParameterError, match="version" if "version" in bad else "must be"):
        bound(**({"n": 10} | good | bad))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: pairwise(10, 1), "m must be an integer >= 2, got 1"),
        (lambda: pairwise(10, 2.0), "m must be an integer"),
        (lambda: pairwise(10, 3, reduction="mean"), "reduction"),
        (lambda: pairwise(10, 3, error="hinge"), "error"),
        (lambda: listwise(10, 3, version="tightest"), "version"),
        (lambda: listwise(10, 3, version="tight", mode="sum"), "mode must be 'max' or 'softmax' for version"),
        (lambda: listwise(10, 3, mode="mean"), "mode"),
        (lambda: listwise(10, 3, version="sharp", mode="sum"), "mode must be 'max' or 'softmax' for version"),
        (lambda: listwise(10, 3, temperature=0.0), "temperature"),
        (lambda: listwise(10, 3, largest=-1.0), "largest"),
        (lambda: listwise(10, 3, levels=(1, 1)), "levels"),
        (lambda: average_precision(10, 3, 3), "rel"),
        (lambda: average_precision(10, 3, 0), "rel"),
        (lambda: bipartite(10, 0, 3), "rel"),
        (lambda: bipartite(10, 3, 0), "nrel"),
        (lambda: multipartite(10, (3,)), "levels"),
        (lambda: multipartite(10, (3, 0)), "levels"),
        (lambda: multipartite(10, 3), "levels"),
        (lambda: multipartite(10, "12"), "levels"),
        (lambda: pairwise(10, 3).queries_needed(0.0), "epsilon"),
        (lambda: pairwise(10, 3).queries_needed(math.inf), "epsilon"),
        (lambda: pairwise(10, 3).at(0), "n must be"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ParameterError, match=name):
        call()
