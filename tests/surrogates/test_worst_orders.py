"""The search for the order with the largest loss: against enumeration and, on long lists, slower searches."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import concordant
from concordant.surrogates import ListwiseHinge
from tests import oracles
from tests.helpers.surrogate_checks import LIST_METRICS, Case, Query, check_subgradient, join_batch

every_metric = pytest.mark.parametrize("spec", LIST_METRICS)
LINEAR = [spec for spec in LIST_METRICS if LIST_METRICS[spec].name != "ap"]
PRECISION = [spec for spec in LIST_METRICS if LIST_METRICS[spec].name == "ap"]


def worst(spec):
    return ListwiseHinge(concordant.metric(spec), "max")


def grades_of(rng, spec, n, share=0.5):
    if spec == "pd":
        return 3.0 * (rng.random(n) < share)
    return np.where(rng.random(n) < share, rng.integers(1, 5, n), 0) * 1.0


def drawn(rng, spec, most=7):
    """A random list: of any spread of scores, sometimes with equal ones; any share of good items."""
    n = int(rng.integers(1, most + 1))
    scores = rng.normal(size=n) * rng.choice([0.01, 0.1, 0.3, 1.0, 3.0])
    if rng.random() < 0.3:
        scores = np.round(scores * 2) / 2
    elif rng.random() < 0.3:
        scores = np.sort(scores)[np.argsort(np.argsort(grades_of(rng, spec, n)))]
    return Query(scores, grades_of(rng, spec, n, rng.choice([0.2, 0.5, 0.9])), np.ones(n))


# ---------------------------------------------------------------- orders, by themselves

NAIVE = {  # the metrics' own oracles, of orders as lists of items
    "ap": oracles.ap,
    "ap[relevant_from=2]": lambda y, order: oracles.ap(y, order, relevant_from=2),
    "ndcg": oracles.ndcg,
    "ndcg@3": lambda y, order: oracles.ndcg(y, order, 3),
    "ndcg@2[gain=linear,discount=mslr]": lambda y, order: oracles.ndcg(y, order, 2, "linear", "mslr"),
    "dcg@2": lambda y, order: oracles.dcg(y, order, 2),
    "eru(v=1,w=2)": lambda y, order: oracles.eru(y, order, 1, 2),
    "p@1": lambda y, order: oracles.precision(y, order, 1),
    "p@3[precision_denominator=min]": lambda y, order: oracles.precision(y, order, 3, denominator="min"),
    "auc": oracles.auc,
    "pd": lambda y, order: -oracles.pd(lambda i, j: y[i] > y[j], order),
    "wpd": lambda y, order: -oracles.pd(lambda i, j: max(2.0 ** y[i] - 2.0 ** y[j], 0), order),
}


@every_metric
def test_losses_of_orders(spec):
    """What the oracle of orders says is the metric's best value less its value, and 0 if consistent."""
    rng, metric = np.random.default_rng(0), LIST_METRICS[spec]
    for n in (1, 2, 3, 4, 5):
        grades, places = grades_of(rng, spec, n), oracles.all_places(n)
        values = [NAIVE[spec](grades, np.argsort(column).tolist()) for column in places.T]
        losses = oracles.order_loss(metric, grades, places)
        if None in values:  # undefined: no order loses anything
            assert not losses.any()
            continue
        np.testing.assert_allclose(losses, max(values) - np.array(values), rtol=1e-12, atol=1e-13)
        consistent = oracles.is_consistent(oracles.item_labels(metric, grades), places)
        np.testing.assert_allclose(losses[consistent], 0.0, atol=1e-13)


@every_metric
def test_losses_are_those_of_the_package(spec):
    """L of the order that scores give is the metric's best value less its value."""
    rng, metric = np.random.default_rng(1), concordant.metric(spec)
    for n in (4, 9):
        grades, scores = grades_of(rng, spec, n), rng.permutation(n) * 1.0
        value = metric.per_query(grades, scores)[0]
        best = metric.per_query(grades, grades)[0]
        loss = oracles.order_loss(LIST_METRICS[spec], grades, oracles.sorted_places(scores))
        assert loss == pytest.approx(abs(best - value), abs=1e-12)


numbers = st.integers(-512, 512).map(lambda k: k / 64)


@given(st.lists(numbers, min_size=2, max_size=6))
def test_scores_of_full_orders_are_linear_in_places(scores):
    """F over all pairs is 2/(n(n-1)) * sum of s_i (n + 1 - 2 place_i)."""
    n, places = len(scores), oracles.all_places(len(scores))
    linear = (np.array(scores)[:, None] * (n + 1 - 2 * places)).sum(axis=0) * 2 / (n * (n - 1))
    by_pairs = oracles.order_score(scores, range(n), places).astype(float)
    np.testing.assert_allclose(by_pairs, linear, atol=1e-12)


@given(st.lists(numbers, min_size=1, max_size=6))
def test_sorting_has_the_largest_score(scores):
    """Over all pairs: and with the tied scores in any order; nothing else has it."""
    n, places = len(scores), oracles.all_places(len(scores))
    order_scores = oracles.order_score(scores, range(n), places)
    by_score = oracles.is_consistent(scores, places)
    assert order_scores[by_score].min() == pytest.approx(float(order_scores.max()), abs=1e-12)
    assert not np.any(order_scores[~by_score] > order_scores.max() - 1e-9)


@given(st.lists(st.tuples(numbers, st.integers(0, 2)), min_size=2, max_size=6))
def test_pairs_of_equal_labels_cancel_in_a_maximiser(items):
    """Largest L + F(pairs of different labels) = largest L + F(all pairs), less W."""
    scores, grades = (np.array(column, dtype=float) for column in zip(*items, strict=True))
    n, places = len(scores), oracles.all_places(len(scores))
    for spec in ("ap", "ndcg@3", "p@1", "wpd", "auc"):
        labels = oracles.item_labels(LIST_METRICS[spec], grades)
        loss = oracles.order_loss(LIST_METRICS[spec], grades, places)
        different = (loss + oracles.order_score(scores, labels, places)).max()
        every = (loss + oracles.order_score(scores, range(n), places)).max()
        pairs = [(i, j) for i, j in itertools.combinations(range(n), 2) if labels[i] == labels[j]]
        same = sum(abs(scores[i] - scores[j]) for i, j in pairs) * 2 / (n * (n - 1))
        assert float(every - different) == pytest.approx(same, abs=1e-12)
        assert float(oracles.same_label_spread(scores, labels)) == pytest.approx(same, abs=1e-12)


@given(st.lists(st.tuples(numbers, st.integers(0, 2)), min_size=2, max_size=6))
def test_consistent_orders_have_one_score(items):
    """Over pairs of different labels; over all pairs they have not, if some labels are equal."""
    scores, labels = zip(*items, strict=True)
    places = oracles.all_places(len(scores))
    places = places[:, oracles.is_consistent(labels, places)]
    order_scores = oracles.order_score(scores, labels, places)
    assert np.ptp(order_scores.astype(float)) < 1e-12
    every = oracles.order_score(scores, range(len(scores)), places).astype(float)
    mixed = any(a != b and x == y for (a, x), (b, y) in itertools.combinations(items, 2))
    assert (np.ptp(every) > 1e-9) == mixed


# ---------------------------------------------------------------- short lists: enumeration


def check_enumeration(loss, batch, metric):
    """Values are the largest of all orders; the gradient is that of an order that attains it."""
    scores, grades, rows = join_batch(batch)
    values, grad = loss(scores, grades, **rows)
    pieces = np.split(grad, rows["qid"].offsets[1:-1])
    for value, slope, query in zip(values, pieces, batch, strict=True):
        violations = oracles.violations(query.scores, query.targets, metric)
        top = violations.slack.max(initial=0)
        assert abs(value - top) <= 1e-9 * violations.size, (value, top, query)
        near = violations.low[:, violations.slack >= top - 1e-9 * violations.size]
        if top <= 1e-9 * violations.size:
            near = np.c_[near, np.zeros(len(slope))]
        off = abs(near - slope[:, None]).max(axis=0)
        assert off.min(initial=np.inf) <= 1e-9, (slope, near, query)


@pytest.mark.slow
@every_metric
def test_inference_equals_enumeration(spec):
    """On 320 lists of up to 7 items."""
    rng = np.random.default_rng(2)
    check_enumeration(worst(spec), [drawn(rng, spec) for _ in range(320)], LIST_METRICS[spec])


@every_metric
@given(data=st.data())
@settings(max_examples=15)
def test_inference_at_ties(spec, data):
    """Where several orders are worst: the value of any, and a gradient between theirs."""
    n = data.draw(st.integers(1, 6))
    scores = data.draw(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=n, max_size=n))
    grades = data.draw(st.lists(st.sampled_from([0.0, 2.0]), min_size=n, max_size=n))
    value, grad = worst(spec)(scores, grades)
    want = oracles.listwise_hinge(scores, grades, [1.0] * n, LIST_METRICS[spec])
    assert value[0] == pytest.approx(float(want.value), rel=1e-9, abs=1e-12)
    assert np.all(abs(grad - want.grad) <= want.room + 1e-12)


# ---------------------------------------------------------------- long lists: references


def check_largest(loss, batch, reference):
    """Values are those of a slower search."""
    scores, grades, rows = join_batch(batch)
    values, _ = loss(scores, grades, **rows)
    for value, query in zip(values, batch, strict=True):
        want = reference(query.scores, query.targets)
        size = 1 + abs(want) + np.ptp(query.scores)
        assert abs(value - want) <= 1e-9 * size, (value, want, len(query.scores))


def reference_of(spec):
    metric = LIST_METRICS[spec]
    search = oracles.largest_by_interleaving if metric.name == "ap" else oracles.largest_by_assignment
    return lambda scores, grades: search(scores, grades, metric)


def long_lists(rng, spec, sizes):
    for n, share, kind in itertools.product(sizes, (0.03, 0.5), ("close", "normal", "few", "good")):
        grades = grades_of(rng, spec, n, share)
        scores = {
            "close": lambda n=n: rng.normal(size=n) * 0.01,
            "normal": lambda n=n: rng.normal(size=n),
            "few": lambda n=n: rng.integers(0, 4, n) / 2,
            "good": lambda n=n, grades=grades: grades + rng.normal(size=n),
        }[kind]()
        yield Query(scores, grades, np.ones(n))


@every_metric
def test_references_equal_enumeration(spec):
    """The slower searches, on short lists."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        query = drawn(rng, spec, 6)
        want = oracles.listwise_hinge(*query, LIST_METRICS[spec]).value
        got = reference_of(spec)(query.scores, query.targets)
        assert got == pytest.approx(float(want), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("spec", PRECISION)
def test_average_precision_of_long_lists(spec):
    """By insertion, against going through relevant items one by one."""
    rng = np.random.default_rng(4)
    check_largest(worst(spec), list(long_lists(rng, spec, (40, 41, 120, 400, 2000))), reference_of(spec))


@pytest.mark.parametrize("spec", LINEAR)
def test_metrics_linear_in_places_on_long_lists(spec):
    """Against scipy's linear assignment."""
    rng = np.random.default_rng(5)
    check_largest(worst(spec), list(long_lists(rng, spec, (40, 41, 130))), reference_of(spec))


@pytest.mark.parametrize("spec", ["ndcg", "ndcg@3", "wpd"])
def test_one_very_long_list(spec):
    rng = np.random.default_rng(6)
    query = Query(rng.normal(size=400), grades_of(rng, spec, 400), np.ones(400))
    check_largest(worst(spec), [query], reference_of(spec))


@every_metric
def test_tangents_of_long_lists(spec):
    """Wherever the scores go, the loss stays above the tangent: the order found is right there, too."""
    rng = np.random.default_rng(7)
    batch = list(long_lists(rng, spec, (60,)))
    check_subgradient(Case(worst(spec), None), batch)
    check_subgradient(Case(worst(spec), None), [batch[1]._replace(scores=batch[1].scores * 1e8)])


@pytest.mark.parametrize("spec", ["ap", "auc", "wpd", "pd", "ndcg@3", "p@1"])
def test_tangents_of_longer_lists(spec):
    rng = np.random.default_rng(8)
    batch = [Query(rng.normal(size=300), grades_of(rng, spec, 300), rng.random(300)) for _ in range(2)]
    check_subgradient(Case(worst(spec), None), batch, scales=(0.3, 3.0))


@pytest.mark.parametrize("spec", LIST_METRICS)
def test_scores_far_above_zero(spec):
    """A level of 1e8 costs no digits: on scores of few bits the values are the same."""
    rng = np.random.default_rng(9)
    for n in (30, 300):
        scores, grades = np.round(rng.normal(size=n) * 64) / 64, grades_of(rng, spec, n)
        low, high = (worst(spec)(scores + level, grades)[0][0] for level in (0.0, 1e8))
        assert high == pytest.approx(low, rel=1e-9)


# ---------------------------------------------------------------- what it bounds


def check_domination(loss, batch, metric):
    """No list has less than what sorting by its scores loses, tied scores in the worst order."""
    scores, grades, rows = join_batch(batch)
    values, _ = loss(scores, grades, **rows)
    for value, query in zip(values, batch, strict=True):
        places = oracles.all_places(len(query.scores))
        places = places[:, oracles.is_consistent(query.scores, places)]
        lost = oracles.order_loss(metric, query.targets, places).max()
        assert value >= lost - 1e-9 * (1 + lost), (value, lost, query)


@every_metric
@pytest.mark.parametrize("mode", ["max", "sum", "softmax"])
def test_it_dominates_the_loss_of_sorting(spec, mode):
    rng = np.random.default_rng(10)
    loss = ListwiseHinge(concordant.metric(spec), mode, 0.1)
    check_domination(loss, [drawn(rng, spec, 5) for _ in range(40)], LIST_METRICS[spec])


@every_metric
def test_it_dominates_the_metric_of_long_lists(spec):
    """By the package's own metric, tied scores in the worst order."""
    rng = np.random.default_rng(11)
    metric = concordant.metric(spec)
    metric = concordant.metric(spec.partition("[")[0], convention=metric.convention.replace(ties="worst"))
    for query in long_lists(rng, spec, (50, 200)):
        best, value = (metric.per_query(query.targets, s)[0] for s in (query.targets, query.scores))
        lost = 0.0 if math.isnan(best) else abs(best - value)  # undefined where all labels are equal
        assert worst(spec)(query.scores, query.targets)[0][0] >= lost - 1e-9


@every_metric
def test_it_is_0_on_scores_far_enough_apart(spec):
    rng = np.random.default_rng(12)
    for n in (2, 7, 100):
        grades = grades_of(rng, spec, n)
        labels = np.array(oracles.item_labels(LIST_METRICS[spec], grades))
        values, grad = worst(spec)(labels * 100.0 * n**2, grades)
        assert (values.tolist(), grad.any()) == ([0.0], False)


# ---------------------------------------------------------------- wrong objects


def by_order(places_of, spec):
    """L - dF at an order that this function of scores and labels gives."""
    metric = LIST_METRICS[spec]

    def query_loss(scores, grades):
        labels = oracles.item_labels(metric, grades)
        gold, places = oracles.sorted_places(labels), places_of(scores, labels)
        value = oracles.order_loss(metric, grades, places) + oracles.order_score(scores, labels, places)
        slopes = oracles.order_slopes(labels, places) - oracles.order_slopes(labels, gold)
        return float(value - oracles.order_score(scores, labels, gold)), slopes.astype(float)

    def loss(scores, grades, qid, weights):
        del weights
        pieces = zip(*(np.split(x, qid.offsets[1:-1]) for x in (scores, grades)), strict=True)
        results = [query_loss(*piece) for piece in pieces]
        return np.array([value for value, _ in results]), np.concatenate([grad for _, grad in results])

    return loss


def by_score(scores, labels):
    """Blind to the metric."""
    del labels
    return oracles.sorted_places(scores)


def reversed_labels(scores, labels):
    """Blind to the scores, but within a label."""
    return oracles.sorted_places(-np.array(labels), scores)


def pairwise_greedy(scores, labels):
    """Inverts the pairs whose scores differ by less than the margin of AUC: right for AUC, not for AP."""
    n, high = len(labels), sum(labels)
    rate, cost = 4 / max(n * (n - 1), 1), 1 / max(high * (n - high), 1)
    return oracles.sorted_places(rate * np.array(scores) - cost * np.array(labels), scores)


def unsorted_within_labels(scores, labels):
    """The worst interleaving, with items of each label against their scores."""
    metric = LIST_METRICS["ap"]
    places = oracles.all_places(len(labels))
    loss = oracles.order_loss(metric, labels, places)
    worst_places = places[:, np.argmax(loss + oracles.order_score(scores, labels, places))]
    turned = worst_places.copy()
    for label in set(labels):
        items = [i for i in oracles.sorted_places(scores).argsort() if labels[i] == label]
        turned[items] = np.sort(worst_places[items])[::-1]
    return turned


WRONG = {
    "by score": ("ap", by_score),
    "by score, ndcg": ("ndcg@3", by_score),
    "by score, wpd": ("wpd", by_score),
    "reversed labels": ("ap", reversed_labels),
    "greedy by pairs": ("ap", pairwise_greedy),
    "against the scores of a label": ("ap", unsorted_within_labels),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_the_enumeration_rejects(wrong):
    spec, places_of = WRONG[wrong]
    rng = np.random.default_rng(13)
    batch = [drawn(rng, spec, 5) for _ in range(50)]
    check_enumeration(worst(spec), batch, LIST_METRICS[spec])
    with pytest.raises(AssertionError):
        check_enumeration(by_order(places_of, spec), batch, LIST_METRICS[spec])


def test_the_enumeration_accepts_the_greedy_search_where_it_is_right():
    rng = np.random.default_rng(14)
    batch = [drawn(rng, "auc", 5) for _ in range(50)]
    check_enumeration(by_order(pairwise_greedy, "auc"), batch, LIST_METRICS["auc"])


def test_the_enumeration_rejects_the_gradient_of_another_order():
    rng = np.random.default_rng(15)
    batch = [drawn(rng, "ap", 5) for _ in range(50)]

    def mixed(scores, grades, **rows):
        return worst("ap")(scores, grades, **rows)[0], by_order(by_score, "ap")(scores, grades, **rows)[1]

    with pytest.raises(AssertionError):
        check_enumeration(mixed, batch, LIST_METRICS["ap"])
    with pytest.raises(AssertionError):
        check_subgradient(Case(mixed, None), batch)


@pytest.mark.parametrize("wrong", ["by score", "by score, wpd", "greedy by pairs"])
def test_the_references_reject(wrong):
    spec, places_of = WRONG[wrong]
    batch = list(long_lists(np.random.default_rng(16), spec, (50,)))
    with pytest.raises(AssertionError):
        check_largest(by_order(places_of, spec), batch, reference_of(spec))


def test_the_check_of_domination_rejects():
    """Half the loss, and the loss of the labels' own order."""
    rng = np.random.default_rng(17)
    batch = [drawn(rng, "ap", 5) for _ in range(40)]

    def half(scores, grades, **rows):
        values, grad = worst("ap")(scores, grades, **rows)
        return values / 2, grad / 2

    def gold(scores, labels):
        del scores
        return oracles.sorted_places(labels)

    for wrong in (half, by_order(gold, "ap")):
        with pytest.raises(AssertionError):
            check_domination(wrong, batch, LIST_METRICS["ap"])


def test_known_orders():
    """Three items, one relevant, all scores equal: at the bottom it loses 2/3; the gradient says so."""
    values, grad = worst("ap")([0.0, 0.0, 0.0], [1, 0, 0])
    assert values[0] == pytest.approx(2 / 3)
    np.testing.assert_allclose(grad, np.array([-4.0, 2.0, 2.0]) / 3)
    values, _ = worst("ndcg")([0.0, 0.0], [1, 0])
    assert values[0] == pytest.approx(1 - 1 / math.log2(3))


@pytest.mark.parametrize("name", ["ap", "ndcg", "ndcg@2", "p@2"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1.7e308])
def test_what_cannot_be_compared_ends_as_nan(name, wrong):
    """Finite scores whose differences overflow, and scores that no check has seen: no endless search."""
    y, scores = np.array([2.0, 0.0, 1.0, 0.0]), np.array([wrong, 0.0, -1.7e308, 1.0])
    values, grad = concordant.listwise_hinge(name).bind(y, np.array([0, 4])).value_and_grad(scores)
    assert np.isnan(values).all()
    assert np.isnan(grad).all()
