"""Position hinge and listwise hinge equal their definitions, with subgradients; checks reject wrong ones."""

import dataclasses
import itertools
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import concordant
from concordant.data.queries import Queries
from concordant.exceptions import (
    ConcordantError,
    GradeError,
    LengthMismatchError,
    NonFiniteError,
    NotNumericError,
    ParameterError,
    UnknownNameError,
)
from concordant.surrogates import SURROGATES, ListwiseHinge, PositionHinge, pairwise, surrogate
from tests import oracles
from tests.helpers.surrogate_checks import (
    LIST_METRICS,
    LISTWISE,
    MAX_MARGIN,
    POSITION,
    TWO_LABELS,
    Case,
    Query,
    check_all,
    check_convex,
    check_differences,
    check_gradient,
    check_product,
    check_row_order,
    check_shift_invariance,
    check_subgradient,
    check_symmetric,
    check_value,
    join_batch,
    listwise_case,
)

every_case = pytest.mark.parametrize("name", MAX_MARGIN)
every_position = pytest.mark.parametrize("name", POSITION)
SOFT = [name for name in LISTWISE if name.startswith("softmax")]
CORNERED = [name for name in MAX_MARGIN if name not in SOFT]

# Offset and factor of the scores.
REGIMES = {
    "plain": (0.0, 1.0),
    "tiny": (0.0, 1e-12),
    "small": (0.0, 0.05),
    "offset": (1e6, 1.0),
    "far": (0.0, 1e3),
    "huge": (0.0, 1e8),
}
# Of few bits, so that differences are exact; of few values, so that many are equal or at corners.
parts = st.integers(-192, 192).map(lambda k: k / 64)
few = st.sampled_from([0.0, 1.0, -1.0, 0.5])


def two_grades(name):
    return name.endswith("[pd]")


@st.composite
def queries(draw, name, most=6):
    n = draw(st.integers(0, most))
    offset, factor = REGIMES[draw(st.sampled_from(sorted(REGIMES)))]

    def column(values):
        return np.array(draw(st.lists(values, min_size=n, max_size=n)), dtype=float)

    scores = offset + factor * column(draw(st.sampled_from([parts, few, st.just(0.5)])))
    kinds = [st.sampled_from([0.0, 2.0]), st.just(1.5)]
    if not two_grades(name):
        kinds += [st.integers(0, 4), st.integers(0, 256).map(lambda k: k / 64)]
    weights = column(draw(st.sampled_from([st.just(1.0), st.sampled_from([0.0, 0.5, 1.0, 3.0])])))
    return Query(scores, column(draw(st.sampled_from(kinds))), weights)


def batches(name, size=3):
    return st.lists(queries(name), min_size=1, max_size=size)


def grades_of(rng, name, n, n_levels=4):
    return rng.integers(0, 2, n) * 3.0 if two_grades(name) else rng.integers(0, n_levels, n) * 1.0


def drawn(rng, name, sizes, spread=1.0):
    """Random queries: no ties in scores, some in grades, some rows of weight 0."""
    return [
        Query(spread * rng.normal(size=n), grades_of(rng, name, n), rng.choice([0.0, 0.5, 1.0, 2.0], n))
        for n in sizes
    ]


def unweighted(batch):
    return [query._replace(weights=np.ones(len(query.scores))) for query in batch]


# ---------------------------------------------------------------- definitions


@every_case
@given(data=st.data())
@settings(max_examples=10)
def test_definition(name, data):
    check_all(MAX_MARGIN[name], data.draw(batches(name)))


@pytest.mark.slow
@every_case
@given(data=st.data())
@settings(max_examples=4)
def test_tangents_lie_below(name, data):
    """On the same nasty data, where most points are corners."""
    check_subgradient(MAX_MARGIN[name], data.draw(batches(name, 2)))


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
        values[qid.sizes > 0], grad[order] = self.inner(scores[order], targets[order], **rows)
        return values, grad

    def hessian_product(self, scores, targets, vector, qid, weights):
        order, rows = self.moved(qid, weights)
        product = np.empty(qid.n_rows)
        product[order] = self.inner.hessian_product(scores[order], targets[order], vector[order], **rows)
        return product


@every_case
@pytest.mark.parametrize("seed", range(2))
def test_ids_may_come_in_any_order(name, seed):
    case = MAX_MARGIN[name]
    batch = drawn(np.random.default_rng(seed), name, [3, 1, 6, 0, 4, 2])
    check_all(Case(Shuffled(case.surrogate, seed), case.oracle), batch)


@every_case
def test_nasty_batches(name):
    """Empty queries at either end, single items, ties of scores or grades, no weight; and no rows."""
    case = MAX_MARGIN[name]
    batch = drawn(np.random.default_rng(3), name, [0, 1, 5, 0, 1, 6, 0])
    check_all(case, batch)
    check_all(case, [query._replace(scores=np.zeros(len(query.scores))) for query in batch])
    nothing = [query._replace(weights=np.zeros(len(query.scores))) for query in batch]
    tied = [query._replace(targets=np.full(len(query.scores), 2.0)) for query in batch]
    for dull in (nothing, tied):
        check_all(case, dull)
        scores, targets, rows = join_batch(dull)
        values, grad = case.surrogate(scores, targets, **rows)
        assert not values.any()
        assert not grad.any()
    for sizes in ([0, 0], [0]):
        values, grad = case.surrogate([], [], qid=Queries.from_sizes(sizes))
        assert (values.tolist(), grad.tolist()) == ([0.0] * len(sizes), [])
        assert case.surrogate.hessian_product([], [], [], qid=Queries.from_sizes(sizes)).tolist() == []


@pytest.mark.parametrize("name", ["position_hinge[pairs]", "max[ap]", "max[ndcg@3]", "sum[wpd]"])
def test_many_lists_on_threads(name):
    """More rows than one thread takes at once: each list as by itself."""
    rng = np.random.default_rng(4)
    few_lists = drawn(rng, name, [6, 0, 3, 1, 5])
    times = 2000
    scores, targets, rows = join_batch(few_lists)
    alone = MAX_MARGIN[name].surrogate(scores, targets, **rows)
    sizes = np.tile([len(query.scores) for query in few_lists], times)
    again = {"qid": Queries.from_sizes(sizes), "weights": np.tile(rows["weights"], times)}
    values, grad = MAX_MARGIN[name].surrogate(np.tile(scores, times), np.tile(targets, times), **again)
    np.testing.assert_array_equal(values, np.tile(alone[0], times))
    np.testing.assert_array_equal(grad, np.tile(alone[1], times))


@pytest.mark.parametrize("name", ["position_hinge[sum]", "max[ap]", "max[ndcg@3]", "max[auc]"])
def test_one_loss_serves_two_threads(name):
    """A bound loss has no state that one call could leave to another."""
    rng = np.random.default_rng(27)
    n, size = 60_000, 5
    bound = MAX_MARGIN[name].surrogate.bind(grades_of(rng, name, n), np.arange(0, n + 1, size))
    scores = rng.normal(size=(6, n))
    wants = [bound.value_and_grad(row) for row in scores]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            for result, want in zip(pool.map(bound.value_and_grad, scores), wants, strict=True):
                np.testing.assert_array_equal(result[0], want[0])
                np.testing.assert_array_equal(result[1], want[1])


@every_case
@pytest.mark.parametrize("spread", [0.05, 1.0])
def test_derivatives_by_differences(name, spread):
    """Of scores that are at no corner, which almost none are."""
    batch = drawn(np.random.default_rng(5), name, [4, 1, 5], spread)
    assert not any(MAX_MARGIN[name].oracle(*query).room.any() for query in batch)
    check_differences(MAX_MARGIN[name], batch)


@pytest.mark.parametrize("name", SOFT)
def test_the_soft_max_has_derivatives_everywhere(name):
    """At equal scores, where the others have corners, too."""
    assert MAX_MARGIN[name].surrogate.smooth
    rng = np.random.default_rng(6)
    for scores in (np.zeros(5), np.array([1.0, 0.0, 1.0, 0.0, 0.0]), np.round(rng.normal(size=5))):
        grades = grades_of(rng, name, 5, 3)
        check_differences(MAX_MARGIN[name], [Query(scores, grades, np.ones(5))])


@every_case
def test_shape(name):
    """Convex, in every direction of every query; nothing hangs on the level of the scores or on row order."""
    case, rng = MAX_MARGIN[name], np.random.default_rng(7)
    for spread in (0.1, 2.0):
        batch = drawn(rng, name, [3, 0, 6, 1], spread)
        check_convex(case, batch)
        check_row_order(case, batch)
        check_shift_invariance(case, batch)
        if "T=" not in name:  # where all weight is on one order, its covariance is lost in rounding
            check_symmetric(case, batch)


def corner(name, grades):
    """Scores in the order of the grades, scaled so that a violation is just about to begin."""
    if name in POSITION:
        y = np.array(oracles.rank_labels(grades.tolist()))
        return y.max() / y  # all pairs at once
    spec = name.partition("[")[2].removesuffix("]")
    metric, labels = LIST_METRICS[spec], oracles.item_labels(LIST_METRICS[spec], grades)
    scores, places = np.array(labels) + np.arange(len(labels)) / 64, oracles.all_places(len(labels))
    places = places[:, ~oracles.is_consistent(labels, places)]
    gold = oracles.order_score(scores, labels, oracles.sorted_places(labels))
    ahead = gold - oracles.order_score(scores, labels, places)
    return scores * float((oracles.order_loss(metric, grades, places) / ahead).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", CORNERED)
def test_corners(name):
    """It says that it has them, and has them: the slopes on either side of a score differ."""
    case = MAX_MARGIN[name]
    assert not case.surrogate.smooth
    for grades in ([0.0, 2.0, 0.0, 2.0], [2.0, 2.0, 0.0, 2.0], [0.0, 2.0, 0.0, 0.0]):
        scores = corner(name, np.array(grades))
        batch = [Query(scores, np.array(grades), np.ones(4))]
        jumps = []
        for step in np.eye(4) * 1e-6:
            up, here, down = (case.surrogate(scores + by * step, grades)[0][0] for by in (1, 0, -1))
            jumps.append((up - 2 * here + down) / 1e-6)
        assert max(jumps) > 1e-2
        assert np.all(jumps <= 2 * case.oracle(*batch[0]).room.astype(float) + 1e-6)
        check_gradient(case, batch)
        check_subgradient(case, batch)


@pytest.mark.slow
@every_case
def test_huge_and_tiny_scores(name):
    case, rng = MAX_MARGIN[name], np.random.default_rng(9)
    for spread in (1e-12, 1e8):
        batch = drawn(rng, name, [4, 5], spread)
        check_all(case, batch)
        check_subgradient(case, batch)


@every_case
def test_scores_far_above_zero(name):
    """Only differences count: a level of 1e8 costs none of their digits (few bits, so they are exact)."""
    case, rng = MAX_MARGIN[name], np.random.default_rng(10)
    batch = drawn(rng, name, [4, 6])
    batch = [query._replace(scores=1e8 + np.round(query.scores * 64) / 64) for query in batch]
    check_value(case, batch)


# ---------------------------------------------------------------- position hinge


@every_position
@given(data=st.data())
@settings(max_examples=10)
def test_definition_by_sort_and_sweep(name, data):
    """Lists of up to three items in the double loop, longer ones sorted; then all of them sorted."""
    batch = data.draw(batches(name))
    for long in (3, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pairwise, "LONG", long)
            check_all(POSITION[name], batch)


LONG_LISTS = {  # items, levels, how scores are drawn
    "two levels": (300, 2, "normal"),
    "few levels": (1000, 5, "normal"),
    "full order": (700, None, "normal"),
    "full order by rank": (400, None, "gold"),
    "most equal scores": (600, 5, "few"),
    "all equal scores": (500, 7, "equal"),
    "at corners": (500, 6, "corner"),
    "far apart": (400, 5, "far"),
    "three thousand": (3000, 30, "normal"),
    "just short": (256, 4, "normal"),
    "just long": (257, 4, "normal"),
}


def long_list(rng, n, levels, kind):
    grades = rng.permutation(n) + 1.0 if levels is None else rng.integers(0, levels, n) * 1.0
    y = np.array(oracles.rank_labels(grades.tolist()))
    scores = {
        "normal": lambda: rng.normal(size=n),
        "gold": lambda: grades / n + 0.1 * rng.normal(size=n),
        "few": lambda: rng.integers(0, 3, n) / 2,
        "equal": lambda: np.full(n, 0.7),
        "corner": lambda: y.max() / y + rng.choice([0.0, 0.0, 1.0], n),
        "far": lambda: 1e8 * np.round(rng.normal(size=n) * 64) / 64,
    }[kind]()
    return Query(scores, grades, rng.choice([0.0, 0.5, 1.0, 2.0], n))


@pytest.mark.slow
@pytest.mark.parametrize("kind", LONG_LISTS)
def test_long_lists(kind):
    """Beyond the double loop: values, gradients and tangents, next to short lists."""
    rng = np.random.default_rng(11)
    batch = [*drawn(rng, "", [4, 0]), long_list(rng, *LONG_LISTS[kind]), *drawn(rng, "", [1, 5])]
    case = POSITION["position_hinge[sum]"]
    wants = [case.oracle(*query) for query in batch]
    check_value(case, batch, 1e-9, wants)
    check_gradient(case, batch, 1e-9, wants)
    check_subgradient(case, batch)


@pytest.mark.parametrize("n", [5, 40, 300])
def test_a_full_order_is_grades_by_position(n):
    """Grades n + 1 - position: then the rank labels are the positions, and m is n."""
    rng = np.random.default_rng(12)
    positions, scores = rng.permutation(n) + 1, rng.normal(size=n)
    values, _ = PositionHinge()(scores, n + 1 - positions)
    pairs = [(i, j) for i, j in itertools.permutations(range(n), 2) if positions[i] < positions[j]]
    margins = [n / positions[i] - n / positions[j] - (scores[i] - scores[j]) for i, j in pairs]
    assert values[0] == pytest.approx(math.fsum(max(margin, 0.0) for margin in margins), rel=1e-12)


def test_only_the_order_of_the_grades_counts():
    rng = np.random.default_rng(13)
    for n in (6, 300):
        scores, grades = rng.normal(size=n), rng.integers(0, 4, n)
        others = (grades * 1e-300, 1e300 * grades / 4, np.array([0.3, 0.1 + 0.2, 7.0, 7.5])[grades])
        values, grad = PositionHinge()(scores, grades)
        for other in others:
            again, grad_again = PositionHinge()(scores, other)
            assert again.tolist() == values.tolist()
            assert grad_again.tolist() == grad.tolist()


def test_the_sum_over_shifted_scores():
    """With u = m/y - s: the sum over y_i < y_j of (u_i - u_j)_+."""
    rng = np.random.default_rng(14)
    for _ in range(20):
        scores, grades = rng.normal(size=7), rng.integers(0, 4, 7)
        y = np.array(oracles.rank_labels(grades.tolist()))
        u = y.max() / y - scores
        want = sum(max(u[i] - u[j], 0) for i, j in itertools.permutations(range(7), 2) if y[i] < y[j])
        assert PositionHinge()(scores, grades)[0][0] == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("n", [2, 7, 300])
def test_reductions(n):
    """Divided by the pairs of different levels, or by all pairs; by 1 where there are none."""
    rng = np.random.default_rng(15)
    scores, grades = rng.normal(size=n), rng.integers(0, 3, n)
    total, pairs, every = (PositionHinge(how)(scores, grades)[0][0] for how in ("sum", "pairs", "all_pairs"))
    different = sum(a != b for a, b in itertools.combinations(grades.tolist(), 2))
    assert pairs * max(different, 1) == pytest.approx(total)
    assert every * n * (n - 1) / 2 == pytest.approx(total)
    for how in ("sum", "pairs", "all_pairs"):
        assert PositionHinge(how)([1.0, 5.0], [2, 2])[0].tolist() == [0.0]
        assert PositionHinge(how)([1.0], [2])[0].tolist() == [0.0]


def test_it_dominates_the_weighted_0_1_loss_but_not_the_plain_one():
    """Of the two lowest of three levels the margin is 1/2: a wrong pair may cost less than 1."""
    rng = np.random.default_rng(16)
    for _ in range(50):
        scores, grades = rng.integers(-2, 3, 6) / 2, rng.integers(0, 4, 6)
        y = np.array(oracles.rank_labels(grades.tolist()))
        pairs = [(i, j) for i, j in itertools.permutations(range(6), 2) if y[i] < y[j]]
        wrong = sum(y.max() / y[i] - y.max() / y[j] for i, j in pairs if scores[i] <= scores[j])
        assert PositionHinge()(scores, grades)[0][0] >= wrong - 1e-12
    assert PositionHinge()([9.0, -0.1, 0.0], [3, 2, 1])[0][0] == pytest.approx(0.6)


def test_position_weights_are_the_better_items():
    weights = np.array([2.0, 0.5, 1.0])
    values, grad = PositionHinge()([0.0, 0.0, 0.0], [2, 1, 0], weights=weights)
    assert values[0] == pytest.approx(2 * (1.5 + 2.0) + 0.5 * 0.5)
    np.testing.assert_allclose(grad, [-4.0, 2.0 - 0.5, 2.5])


def lipschitz(n):
    return 2 * math.sqrt((n + 1) / (3 * n * (n - 1)))


@pytest.mark.parametrize("n", [2, 5, 40, 300])
def test_gradients_are_bounded(n):
    """All pairs: at most 2 sqrt((m+1)/(3m(m-1))), which a reversed list attains; listwise, twice that."""
    rng = np.random.default_rng(17)
    norm = np.linalg.norm(PositionHinge("all_pairs")(np.arange(n) * -9.0 * n, np.arange(n))[1])
    assert norm == pytest.approx(lipschitz(n))
    for _ in range(20):
        scores, grades = rng.normal(size=n), rng.integers(0, 3, n)
        assert np.linalg.norm(PositionHinge("all_pairs")(scores, grades)[1]) <= lipschitz(n) + 1e-12
        for spec in ("ap", "ndcg@3", "auc", "wpd"):
            grad = ListwiseHinge(concordant.metric(spec))(scores, grades)[1]
            assert np.linalg.norm(grad) <= 2 * lipschitz(n) + 1e-12


# ---------------------------------------------------------------- listwise hinge


def value_of(spec, mode, scores, grades, temperature=1.0, **rows):
    loss = ListwiseHinge(concordant.metric(spec), mode, temperature)
    return loss(scores, grades, **rows)[0][0]


@pytest.mark.parametrize("spec", LIST_METRICS)
def test_modes_bound_one_another(spec):
    """Max <= soft-max <= max + T log(1 + N), soft-max <= sum + N T log 2, and max <= interleavings <= sum."""
    rng = np.random.default_rng(18)
    for spread in (0.01, 0.3, 1.0, 5.0):
        scores, grades = spread * rng.normal(size=5), grades_of(rng, f"[{spec}]", 5)
        labels = oracles.item_labels(LIST_METRICS[spec], grades)
        wrong = int((~oracles.is_consistent(labels, oracles.all_places(5))).sum())
        most, total = value_of(spec, "max", scores, grades), value_of(spec, "sum", scores, grades)
        slack = 1e-12 * (1 + total)
        assert 0.0 <= most <= total + slack
        for t in (0.1, 1.0, 10.0):
            soft = value_of(spec, "softmax", scores, grades, t)
            assert most - slack <= soft <= most + t * math.log(1 + wrong) + slack
            assert soft <= total + wrong * t * math.log(2) + slack
        if spec in TWO_LABELS:
            by_class = value_of(spec, "sum_interleavings", scores, grades)
            assert most - slack <= by_class <= total + slack


@pytest.mark.parametrize("spec", LIST_METRICS)
def test_the_soft_max_hardens(spec):
    """As T goes to 0 it goes to the max, however small T is; as T grows it goes to T log of a count."""
    rng = np.random.default_rng(19)
    for _ in range(5):
        scores, grades = rng.normal(size=6), grades_of(rng, f"[{spec}]", 6)
        most = value_of(spec, "max", scores, grades)
        for t in (1e-2, 1e-5, 1e-9, 1e-300):
            assert abs(value_of(spec, "softmax", scores, grades, t) - most) <= t * math.log(720) + 1e-12
        labels = oracles.item_labels(LIST_METRICS[spec], grades)
        wrong = int((~oracles.is_consistent(labels, oracles.all_places(6))).sum())
        soft = value_of(spec, "softmax", scores, grades, 1e9)
        size = float(oracles.violations(scores, grades, LIST_METRICS[spec]).size)
        assert soft == pytest.approx(1e9 * math.log(1 + wrong), abs=size + 1e-5)


@pytest.mark.parametrize("spec", ["ndcg", "wpd", "ndcg@3"])
@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_of_a_full_ranking_the_soft_max_is_over_all_orders(spec, temperature):
    """T log of the sum over all orders of exp((L - dF)/T): the labels' own is the 1."""
    rng, places = np.random.default_rng(20), oracles.all_places(5)
    for _ in range(5):
        scores, grades = rng.normal(size=5), rng.permutation(5) * 1.0
        loss = oracles.order_loss(LIST_METRICS[spec], grades, places)
        gold = oracles.order_score(scores, grades, oracles.sorted_places(grades))
        slack = loss - (gold - oracles.order_score(scores, grades, places))
        want = temperature * np.log(np.exp(slack / temperature).sum())
        assert value_of(spec, "softmax", scores, grades, temperature) == pytest.approx(float(want), rel=1e-12)


@pytest.mark.parametrize("mode", ["max", "sum", "softmax", "sum_interleavings"])
def test_a_list_counts_by_its_mean_weight(mode):
    scores, grades = np.array([0.1, 0.5, -0.3, 0.2]), np.array([1.0, 0.0, 1.0, 0.0])
    loss = ListwiseHinge(concordant.metric("ap"), mode)
    values, grad = loss(scores, grades)
    scaled, scaled_grad = loss(scores, grades, weights=[0.0, 3.0, 1.0, 2.0])
    np.testing.assert_allclose(scaled, 1.5 * values, rtol=1e-14)
    np.testing.assert_allclose(scaled_grad, 1.5 * grad, rtol=1e-14)


@pytest.mark.parametrize("mode", ["sum", "softmax"])
@pytest.mark.parametrize("spec", ["ap", "ndcg@3", "wpd"])
def test_eight_items(spec, mode):
    """The longest lists whose orders are added up."""
    case, rng = listwise_case(spec, mode), np.random.default_rng(21)
    batch = [Query(rng.normal(size=8), rng.integers(0, 3, 8) * 1.0, np.ones(8))]
    check_value(case, batch)
    check_gradient(case, batch)


@pytest.mark.parametrize("spec", TWO_LABELS)
@pytest.mark.parametrize(("n", "high"), [(9, 4), (12, 5), (14, 1), (30, 2), (60, 59)])
def test_interleavings_of_longer_lists(spec, n, high):
    rng = np.random.default_rng(22)
    grades = rng.permutation(np.repeat([2.0, 0.0], [high, n - high]))
    for scores in (rng.normal(size=n), np.round(rng.normal(size=n))):
        batch = [Query(scores, grades, rng.random(n))]
        check_value(listwise_case(spec, "sum_interleavings"), batch)
        check_gradient(listwise_case(spec, "sum_interleavings"), batch)


@pytest.mark.parametrize("mode", ["max", "sum", "softmax"])
def test_labels_are_the_metrics_own_reading(mode):
    """A gain that does not rise with the grade, a user's discount: the best items are those of most gain."""

    def away(grades):
        return (np.asarray(grades) - 2.0) ** 2

    def halving(places):
        return 0.5 ** np.asarray(places)

    rng = np.random.default_rng(23)
    metric = concordant.metric("dcg@3", convention=concordant.Convention(gain=away, discount=halving))
    for _ in range(10):
        grades, scores = rng.integers(0, 5, 5) * 1.0, rng.normal(size=5)
        got = ListwiseHinge(metric, mode)(scores, grades)[0][0]
        plain = oracles.ListMetric("eru", k=3, w=2)  # halves from place to place, from 1 on
        want = oracles.listwise_hinge(2 * scores, away(grades), np.ones(5), plain, mode, 2.0)
        again = ListwiseHinge(metric, mode, 1.0)(scores, grades)[0][0]
        assert got == again == pytest.approx(float(want.value) / 2, rel=1e-9)


@pytest.mark.parametrize("mode", ["max", "sum", "softmax"])
def test_lists_that_a_convention_gives_0_lose_nothing(mode):
    """NDCG@4 of MSLR is 0 on lists of three items, in whatever order."""
    rng = np.random.default_rng(28)
    loss = concordant.listwise_hinge("ndcg@4[mslr]", mode=mode)
    values, grad = loss(rng.normal(size=3), [0, 1, 2])
    assert (values.tolist(), grad.tolist()) == ([0.0], [0.0, 0.0, 0.0])
    batch = [Query(rng.normal(size=n), rng.integers(0, 4, n) * 1.0, np.ones(n)) for n in (4, 5, 6)]
    metric = oracles.ListMetric("ndcg", k=4, discount="mslr")
    check_value(Case(loss, partial(oracles.listwise_hinge, metric=metric, mode=mode)), batch)


@pytest.mark.parametrize("mode", ["max", "sum", "softmax", "sum_interleavings"])
def test_relevance_starts_where_the_convention_says(mode):
    rng = np.random.default_rng(24)
    for name, spec in itertools.product(("ap", "p@2", "auc"), (1.0, 2.0, 2.5)):
        metric = concordant.metric(name, convention=f"relevant_from={spec}")
        grades, scores = rng.integers(0, 4, 6) * 1.0, rng.normal(size=6)
        got = ListwiseHinge(metric, mode)(scores, grades)[0]
        binary = ListwiseHinge(concordant.metric(name), mode)(scores, grades >= spec)[0]
        assert got.tolist() == binary.tolist()


def test_known_values():
    """By hand: two items, F = +-(s_1 - s_2), and one wrong order."""
    for s in (-3.0, -0.1, 0.0, 0.2, 0.25, 4.0):
        slack = 0.5 - 2 * s  # 1 - AP of the wrong order, less F(gold) - F(wrong)
        assert value_of("ap", "max", [s, 0.0], [1, 0]) == pytest.approx(max(slack, 0.0), abs=1e-15)
        assert value_of("ap", "sum", [s, 0.0], [1, 0]) == pytest.approx(max(slack, 0.0), abs=1e-15)
        soft = value_of("ap", "softmax", [s, 0.0], [1, 0], 0.5)
        assert soft == pytest.approx(0.5 * math.log1p(math.exp(slack / 0.5)))
        assert value_of("auc", "max", [s, 0.0], [1, 0]) == pytest.approx(max(1 - 2 * s, 0.0), abs=1e-15)
        assert value_of("wpd", "max", [s, 0.0], [2, 0]) == pytest.approx(max(3 - 2 * s, 0.0), abs=1e-15)


def test_a_nearly_right_list_has_its_digits():
    """T log(1 + 3e-35) is not 0."""
    for s in (20.0, 40.0):
        got = value_of("ap", "softmax", [s, 0.0], [1, 0])
        assert got == pytest.approx(math.log1p(math.exp(0.5 - 2 * s)), rel=1e-9, abs=0.0)
    # Three items, one relevant: slacks of the 4 wrong orders by hand, -(4 or 8) s / 6 and a loss.
    orders = [(0.5, 4), (0.5, 4), (2 / 3, 8), (2 / 3, 8)]
    for s in (30.0, 60.0):
        want = math.log1p(math.fsum(math.exp(loss - steps * s / 6) for loss, steps in orders))
        got = value_of("ap", "softmax", [s, 0.0, 0.0], [1, 0, 0])
        assert got == pytest.approx(want, rel=1e-9, abs=0.0)


# ---------------------------------------------------------------- wrong objects


class ByList:
    """A surrogate by a function of one list's scores, grades and weights that gives value and gradient."""

    def __init__(self, query_loss):
        self.query_loss = query_loss

    def __call__(self, scores, targets, qid, weights):
        pieces = zip(*(np.split(x, qid.offsets[1:-1]) for x in (scores, targets, weights)), strict=True)
        results = [self.query_loss(*piece) for piece in pieces]
        return np.array([float(value) for value, _ in results]), np.concatenate([grad for _, grad in results])

    def hessian_product(self, scores, targets, vector, qid, weights):
        del targets, vector, qid, weights
        return np.zeros(len(scores))


def value_and_grad(local):
    return local.value, local.grad.astype(float)


def at_order(scores, weights, metric, grades, places, gold, labels):
    """L - dF at one order, and its gradient."""
    weight = weights.mean() if len(weights) else 0.0
    loss = oracles.order_loss(metric, grades, places)
    value = loss - oracles.order_score(scores, labels, gold) + oracles.order_score(scores, labels, places)
    slopes = oracles.order_slopes(labels, places) - oracles.order_slopes(labels, gold)
    return max(weight * value, 0.0), weight * slopes.astype(float)


def index_gold(scores, grades, weights, metric=LIST_METRICS["ap"]):
    """All pairs count in F, and of tied labels the one that comes first is better."""
    gold = oracles.sorted_places(oracles.item_labels(metric, grades))
    every = range(len(scores))
    candidates = [
        at_order(scores, weights, metric, grades, places, gold, every)
        for places in oracles.all_places(len(scores)).T
    ]
    return max(candidates, key=lambda pair: pair[0])


def index_gold_by_label(scores, grades, weights, metric=LIST_METRICS["ap"]):
    """F of the gold order over all pairs, of the others over pairs of different labels."""
    value, grad = value_and_grad(oracles.listwise_hinge(scores, grades, weights, metric))
    every = range(len(scores))
    gold = oracles.sorted_places(oracles.item_labels(metric, grades))
    extra = oracles.order_score(scores, every, gold) - oracles.order_score(
        scores, oracles.item_labels(metric, grades), gold
    )
    return value - extra, grad


def greedy(scores, grades, weights, metric=LIST_METRICS["ap"]):
    """Sorts by score, blind to the metric."""
    labels = oracles.item_labels(metric, grades)
    gold, places = oracles.sorted_places(labels), oracles.sorted_places(scores)
    return at_order(scores, weights, metric, grades, places, gold, labels)


def tangent_of_greedy(scores, grades, weights, metric=LIST_METRICS["ap"]):
    """The right value, with the gradient of the sorted order."""
    value = oracles.listwise_hinge(scores, grades, weights, metric).value
    return value, greedy(scores, grades, weights, metric)[1]


def linear_margins(y, i):
    return y - y[i]


def rank_hinge(scores, grades, weights):
    """Margins |y_i - y_j| of the rank labels."""
    return value_and_grad(oracles.position_hinge(scores, grades, weights, margins=linear_margins))


def worse_items_weights(scores, grades, weights):
    """Pairs weighed by the worse item."""
    y = oracles.rank_labels(list(grades))
    turned = np.array(y).max() / np.array(y)
    gap = (turned[:, None] - turned) - (scores[:, None] - scores)
    active = weights[None, :] * ((gap > 0) & (np.subtract.outer(y, y) < 0))
    return (active * gap).sum(), active.sum(axis=0) - active.sum(axis=1)


def all_orders_soft_max(scores, grades, weights):
    """T log of the sum over all orders: consistent ones are counted one by one."""
    metric, n = LIST_METRICS["ap"], len(scores)
    violations = oracles.violations(scores, grades, metric)
    extra = math.factorial(n) - len(violations.slack)
    soft = oracles.softened(violations, 1.0)
    return weights.mean() * float(np.log(np.exp(soft.value) + extra - 1)), weights.mean() * soft.grad


def with_equal_labels(scores, grades, weights):
    """F over all pairs, whatever their labels, of one gold order: of the sum, not of the max."""
    labels, n = oracles.item_labels(LIST_METRICS["ap"], grades), len(scores)
    places = oracles.all_places(n)
    places, gold = places[:, ~oracles.is_consistent(labels, places)], oracles.sorted_places(labels, scores)
    loss = oracles.order_loss(LIST_METRICS["ap"], grades, places)
    slack = loss - oracles.order_score(scores, range(n), gold) + oracles.order_score(scores, range(n), places)
    return weights.mean() * np.maximum(slack, 0).sum(), np.zeros(n)


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


def altered(name, **changes):
    return Altered(MAX_MARGIN[name].surrogate, **changes)


WRONG = {  # check, the right case, the wrong surrogate
    "index-order gold": (check_row_order, "max[ap]", ByList(index_gold)),
    "index-order gold, value": (check_value, "max[ap]", ByList(index_gold)),
    "index-order gold beside labels": (check_row_order, "max[ap]", ByList(index_gold_by_label)),
    "greedy": (check_value, "max[ap]", ByList(greedy)),
    "greedy ndcg": (check_value, "max[ndcg@3]", ByList(partial(greedy, metric=LIST_METRICS["ndcg@3"]))),
    "gradient of greedy": (check_gradient, "max[ap]", ByList(tangent_of_greedy)),
    "tangent of greedy": (check_subgradient, "max[ap]", ByList(tangent_of_greedy)),
    "margins of ranks": (check_value, "position_hinge[sum]", ByList(rank_hinge)),
    "weights of worse items": (check_value, "position_hinge[sum]", ByList(worse_items_weights)),
    "soft-max over all orders": (check_value, "softmax[ap]", ByList(all_orders_soft_max)),
    "sum over all pairs": (check_value, "sum[ap]", ByList(with_equal_labels)),
    "sum for interleavings": (check_value, "sum_interleavings[ap]", MAX_MARGIN["sum[ap]"].surrogate),
    "pairs for all pairs": (check_value, "position_hinge[all_pairs]", PositionHinge("pairs")),
    "dcg for ndcg": (check_value, "max[ndcg]", ListwiseHinge(concordant.metric("dcg"))),
    "another temperature": (check_value, "softmax[ap]", MAX_MARGIN["softmax,T=0.05[ap]"].surrogate),
    "no curvature": (check_product, "softmax[ap]", altered("softmax[ap]", product=np.zeros_like)),
    "too steep": (check_subgradient, "sum[ap]", altered("sum[ap]", grad=lambda g: 1.01 * g)),
    "too flat": (check_subgradient, "max[wpd]", altered("max[wpd]", grad=lambda g: 0.9 * g)),
    "concave": (check_subgradient, "max[ap]", altered("max[ap]", values=np.sqrt)),
    "no slope": (check_subgradient, "sum[ap]", altered("sum[ap]", grad=np.zeros_like)),
    "a level": (check_shift_invariance, "max[ap]", altered("max[ap]", grad=lambda g: g + 1e-6)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_the_checks_reject_what_is_wrong(wrong):
    check, name, surrogate = WRONG[wrong]
    batch = drawn(np.random.default_rng(25), name, [5, 4, 5], 0.5)
    batch = [query._replace(weights=query.weights + np.arange(len(query.weights))) for query in batch]
    check(MAX_MARGIN[name], batch)
    with pytest.raises(AssertionError):
        check(Case(surrogate, MAX_MARGIN[name].oracle), batch)


def test_the_right_objects_by_list_pass():
    """What makes the wrong ones wrong is what they say, not how they are wrapped."""
    for name in ("max[ap]", "sum[ndcg@3]", "position_hinge[pairs]"):
        case = MAX_MARGIN[name]
        copy = Case(ByList(lambda *query, case=case: value_and_grad(case.oracle(*query))), case.oracle)
        batch = drawn(np.random.default_rng(26), name, [4, 3], 0.5)
        for check in (check_value, check_gradient, check_subgradient, check_row_order):
            check(copy, batch)


# ---------------------------------------------------------------- names, values, errors

SOME = ["position_hinge[pairs]", "max[ap]", "max[ndcg@3]", "max[wpd]", "sum[ap]", "softmax[dcg@2]"]
SOME += ["sum_interleavings[auc]"]
some_cases = pytest.mark.parametrize("name", SOME)


def test_names():
    assert surrogate("position_hinge") == PositionHinge() == PositionHinge("sum")
    assert SURROGATES["position_hinge"] is PositionHinge
    assert "listwise_hinge" not in SURROGATES  # it needs a metric
    assert ListwiseHinge.name == "listwise_hinge"
    for spec in LIST_METRICS:
        loss = concordant.listwise_hinge(spec, mode="max")
        assert loss == ListwiseHinge(concordant.metric(spec))
        assert loss == concordant.listwise_hinge(concordant.metric(spec))
        assert loss.mode == "max"
    soft = concordant.listwise_hinge("map", mode="softmax", temperature=0.5)
    assert soft == ListwiseHinge(concordant.metric("ap"), mode="softmax", temperature=0.5)
    assert soft != concordant.listwise_hinge("map", mode="softmax")


def test_wta_is_precision_at_one():
    assert concordant.listwise_hinge("wta") == concordant.listwise_hinge("p@1")


@every_case
def test_facts(name):
    loss = MAX_MARGIN[name].surrogate
    assert loss.convex
    assert not any((loss.signed, loss.order_preserving, loss.needs_positive))
    assert loss.reads == "grades"


@every_case
def test_surrogates_are_values(name):
    loss = MAX_MARGIN[name].surrogate
    assert dataclasses.replace(loss) == loss
    assert hash(dataclasses.replace(loss)) == hash(loss)
    assert pickle.loads(pickle.dumps(loss)) == loss  # noqa: S301
    assert [other for other, case in MAX_MARGIN.items() if case.surrogate == loss] == [name]
    with pytest.raises(dataclasses.FrozenInstanceError):
        loss.name = "other"


def columns():
    """Three good rows, of the queries "b", "a", "b"."""
    return {
        "scores": np.zeros(3),
        "targets": np.array([1.0, 2.0, 0.0]),
        "vector": np.ones(3),
        "weights": np.ones(3),
        "qid": ["b", "a", "b"],
    }


@some_cases
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf], ids=str)
def test_numbers_that_are_none_are_refused_with_their_row(name, bad):
    loss = MAX_MARGIN[name].surrogate
    for column in ("scores", "targets", "weights", "vector"):
        arguments = columns()
        arguments[column][1] = bad
        with pytest.raises(NonFiniteError, match=rf"{column} is {bad} at row 1"):
            loss.hessian_product(**arguments)
        if column != "vector":
            del arguments["vector"]
            with pytest.raises(NonFiniteError, match=rf"{column} is {bad} at row 1"):
                loss(**arguments)


@some_cases
@pytest.mark.parametrize("column", ["scores", "targets", "weights", "vector", "qid"])
def test_lengths_must_agree(name, column):
    for n in (2, 4):
        arguments = columns()
        arguments[column] = (list(arguments[column]) * 2)[:n]
        with pytest.raises(LengthMismatchError, match=r"has \d entries"):
            MAX_MARGIN[name].surrogate.hessian_product(**arguments)


@some_cases
def test_negative_grades_are_refused_with_their_row(name):
    loss = MAX_MARGIN[name].surrogate
    with pytest.raises(NonFiniteError, match=r"targets is -0\.5 at row 2") as caught:
        loss([0.0, 0.0, 0.0], [1.0, 2.0, -0.5])
    assert caught.value.row == 2
    with pytest.raises(NonFiniteError, match=r"targets is -2.0 at row 2 \(query 'b'\)"):
        loss([0.0, 0.0, 0.0], [1.0, 2.0, -2.0], qid=["b", "a", "b"])
    with pytest.raises(NonFiniteError, match=r"weights is -1.0 at row 2"):
        loss([0.0, 0.0, 0.0], [1.0, 2.0, 2.0], weights=[1.0, 1.0, -1.0])


@some_cases
def test_text_is_no_number(name):
    with pytest.raises(NotNumericError, match="targets must be numeric, but row 1 is 'good'"):
        MAX_MARGIN[name].surrogate([0.0, 1.0], np.array([1.0, "good"], dtype=object))


def test_gains_beyond_the_doubles_are_refused():
    with pytest.raises(GradeError, match=r"grade 2000 .* makes 2\^grade overflow"):
        ListwiseHinge(concordant.metric("ndcg"))([0.0, 0.0], [0.0, 2000.0])
    assert np.isfinite(ListwiseHinge(concordant.metric("ap"))([0.0, 0.0], [0.0, 2000.0])[0]).all()


@pytest.mark.parametrize("metric", ["ndcg@3", "ap", None, 3, concordant.metric])
def test_a_name_is_no_metric(metric):
    """Names are read by the public function, which the error names."""
    with pytest.raises(ParameterError, match=r"metric must be .*concordant\.listwise_hinge"):
        ListwiseHinge(metric)


@pytest.mark.parametrize(
    "spec", ["err", "err@5", "rr", "mrr@3", "ap@5", "ap@1", "zero_one", "comparison_error", "comparison_auc"]
)
@pytest.mark.parametrize("mode", ["max", "sum", "softmax", "sum_interleavings"])
def test_metrics_without_a_search_are_refused(spec, mode):
    """The error says what to use."""
    with pytest.raises(ConcordantError, match=r"ap, auc, dcg, eru, ndcg, p@k, wpd|ndcg"):
        concordant.listwise_hinge(spec, mode=mode)([0.0, 1.0, 2.0], [0.0, 1.0, 2.0])


@pytest.mark.parametrize("mode", ["max", "sum", "softmax", "sum_interleavings"])
def test_pd_is_for_two_grades(mode):
    loss = concordant.listwise_hinge("pd", mode=mode)
    with pytest.raises(ConcordantError, match=r"three or more grades.*\n.*use wpd"):
        loss([0.0, 1.0, 2.0], [0.0, 1.0, 2.0])
    assert np.isfinite(loss([0.0, 1.0, 2.0, 0.0], [0.0, 1.0, 2.0, 0.0], qid=[1, 1, 2, 2])[0]).all()


@pytest.mark.parametrize("name", ["ndcgs", "", "ndcg@0", "ap@x"])
def test_the_public_function_reads_names_as_metric_does(name):
    with pytest.raises(ConcordantError):
        concordant.listwise_hinge(name)


def test_unknown_metrics_list_the_table():
    with pytest.raises(UnknownNameError, match="Did you mean 'ndcg'"):
        concordant.listwise_hinge("ndgc")


@pytest.mark.parametrize("mode", ["maximum", "", None, 1, "soft-max"])
def test_unknown_modes(mode):
    allowed = "mode must be 'max', 'softmax', 'sum' or 'sum_interleavings'"
    with pytest.raises(ParameterError, match=allowed):
        ListwiseHinge(concordant.metric("ap"), mode)
    with pytest.raises(ParameterError, match=allowed):
        concordant.listwise_hinge("ap", mode=mode)


@pytest.mark.parametrize("reduction", ["mean", "", None, 1])
def test_unknown_reductions(reduction):
    with pytest.raises(ParameterError, match="reduction must be 'sum', 'pairs' or 'all_pairs'"):
        PositionHinge(reduction)


@pytest.mark.parametrize("temperature", [0, 0.0, -1.0, math.nan, math.inf, "1", None, True])
def test_bad_temperatures(temperature):
    with pytest.raises(ParameterError, match=r"temperature must be .*> 0"):
        ListwiseHinge(concordant.metric("ap"), "softmax", temperature)


@pytest.mark.parametrize("mode", ["sum", "softmax"])
def test_lists_too_long_to_add_up(mode):
    """Nine items, in any query: the error says 8, and what to use."""
    loss = concordant.listwise_hinge("ap", mode=mode)
    grades = np.arange(12) % 2
    with pytest.raises(ConcordantError, match=r"(?s)9 items.*8.*mode='max'"):
        loss(np.zeros(12), grades, qid=[1] * 3 + [2] * 9)
    assert np.isfinite(loss(np.zeros(12), grades, qid=[1] * 4 + [2] * 8)[0]).all()
    assert np.isfinite(concordant.listwise_hinge("ap")(np.zeros(12), grades)[0]).all()


def test_too_many_interleavings():
    loss = concordant.listwise_hinge("ap", mode="sum_interleavings")
    with pytest.raises(ConcordantError, match=r"(?s)interleavings.*40,?320.*mode='max'"):
        loss(np.zeros(20), np.arange(20) % 2)
    assert np.isfinite(loss(np.zeros(200), np.arange(200) == 7)[0]).all()
    with pytest.raises(ConcordantError, match=r"(?s)interleavings.*40,?320.*mode='max'"):
        loss(np.zeros(20_000), np.arange(20_000) % 2)


@pytest.mark.parametrize("spec", ["ndcg", "wpd", "dcg@2", "eru"])
def test_interleavings_are_of_two_labels(spec):
    loss = concordant.listwise_hinge(spec, mode="sum_interleavings")
    with pytest.raises(ConcordantError, match=r"(?s)sum_interleavings.*two.*mode='max'"):
        loss(np.zeros(3), [0.0, 1.0, 2.0])
