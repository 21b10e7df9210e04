"""Every metric equals its definition, averaged over all orders compatible with the scores."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import concordant.metrics as cm
from concordant.data.labels import Permutations, Preferences
from concordant.data.queries import Queries
from tests import oracles

GRADED = {
    # name -> (grades, order) -> value, or None where undefined
    "dcg": oracles.dcg,
    "dcg@3": lambda y, o: oracles.dcg(y, o, 3),
    "dcg@2[gain=linear,discount=mslr]": lambda y, o: oracles.dcg(y, o, 2, "linear", "mslr"),
    "ndcg": oracles.ndcg,
    "ndcg@1": lambda y, o: oracles.ndcg(y, o, 1),
    "ndcg@3": lambda y, o: oracles.ndcg(y, o, 3),
    "ndcg@100": lambda y, o: oracles.ndcg(y, o, 100),
    "ndcg@3[gain=linear]": lambda y, o: oracles.ndcg(y, o, 3, "linear"),
    "err": oracles.err,
    "err@2": lambda y, o: oracles.err(y, o, 2),
    "err@5[max_grade=5]": lambda y, o: oracles.err(y, o, 5, 5),
    "ap": oracles.ap,
    "ap@2": lambda y, o: oracles.ap(y, o, 2),
    "ap@3[ap_denominator=min]": lambda y, o: oracles.ap(y, o, 3, 1, "min"),
    "ap@2[ap_denominator=found]": lambda y, o: oracles.ap(y, o, 2, 1, "found"),
    "ap@4[ap_denominator=found]": lambda y, o: oracles.ap(y, o, 4, 1, "found"),
    "ap@2[ap_denominator=uncut]": lambda y, o: oracles.ap(y, o, 2, 1, "uncut"),
    "ap[relevant_from=2]": lambda y, o: oracles.ap(y, o, None, 2),
    "p@1": lambda y, o: oracles.precision(y, o, 1),
    "p@3": lambda y, o: oracles.precision(y, o, 3),
    "p@5[precision_denominator=min]": lambda y, o: oracles.precision(y, o, 5, 1, "min"),
    "rr": oracles.rr,
    "rr@2": lambda y, o: oracles.rr(y, o, 2),
    "rr@3[relevant_from=3]": lambda y, o: oracles.rr(y, o, 3, 3),
    "eru": oracles.eru,
    "eru(v=1,w=2)@3": lambda y, o: oracles.eru(y, o, 1, 2, 3),
    "pd": lambda y, o: oracles.pd(lambda i, j: y[i] > y[j], o),
    "wpd": lambda y, o: oracles.pd(lambda i, j: max(2.0 ** y[i] - 2.0 ** y[j], 0), o),
    "wpd[gain=linear]": lambda y, o: oracles.pd(lambda i, j: max(y[i] - y[j], 0), o),
    "auc": oracles.auc,
}
NEEDS_ALL = {"pd", "wpd", "wpd[gain=linear]", "auc"}  # pairs: an item that is not ranked still stands below

grades = st.one_of(st.integers(0, 4).map(float), st.sampled_from([0.0, 0.5, 1.0, 2.5, 4.0]))
scores = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0]),  # many ties
    st.floats(-1e300, 1e300),
    st.sampled_from([1e300, -1e300, 5e-324, -0.0]),
)
lists = st.integers(0, 7).flatmap(
    lambda n: st.tuples(st.lists(grades, min_size=n, max_size=n), st.lists(scores, min_size=n, max_size=n))
)


def check_expected(name, metric, batch):
    """The metric equals the definition averaged over compatible orders, query by query (1e-12)."""
    sizes = [len(y) for y, _ in batch]
    y = np.concatenate([np.array(q[0], float) for q in batch])
    s = np.concatenate([np.array(q[1], float) for q in batch])
    if not len(y):
        return
    qid = Queries.from_sizes(np.array(sizes))
    got = metric.per_query(y, s, qid=qid)
    for value, (labels, marks) in zip(got, batch, strict=True):
        want = oracle_value(name, labels, marks)
        if want is None or math.isnan(want):
            assert math.isnan(value), (name, labels, marks, value)
        else:
            assert value == pytest.approx(want, rel=1e-12, abs=1e-12), (name, labels, marks)


def oracle_value(name, labels, marks):
    """NaN where the default convention skips: no item with a gain (or no pair to order)."""
    labels = [float(g) for g in labels]
    if not labels or undefined(name, labels):
        return math.nan
    return oracles.expected(lambda order: GRADED[name](labels, order), marks)


def undefined(name, labels):
    if name.startswith(("pd", "wpd")):
        return len(set(labels)) < 2
    if name == "auc":
        return len({g >= 1 for g in labels}) < 2
    threshold = {"ap[relevant_from=2]": 2, "rr@3[relevant_from=3]": 3, "eru(v=1,w=2)@3": 1 + 1e-9}.get(name)
    if threshold is None:
        threshold = 1 if name.startswith(("ap", "p@", "rr")) else 1e-9
    return max(labels) < threshold


@given(marks=st.lists(st.integers(0, 2).map(float), max_size=5))
def test_compatible_orders_are_all_orders_in_which_no_score_rises(marks):
    """The oracle's oracle."""
    every = [
        list(order)
        for order in itertools.permutations(range(len(marks)))
        if all(marks[a] >= marks[b] for a, b in itertools.pairwise(order))
    ]
    assert sorted(oracles.compatible_orders(marks)) == sorted(every)


@pytest.mark.parametrize("name", GRADED)
@given(batch=st.lists(lists, min_size=1, max_size=4))
def test_expected_value_is_the_mean_over_orders(name, batch):
    check_expected(name, cm.metric(name), batch)


@pytest.mark.parametrize("name", sorted(set(GRADED) - NEEDS_ALL))
@given(batch=st.lists(lists, min_size=1, max_size=3), hidden=st.data())
def test_items_that_are_not_ranked_gain_nothing_but_count(name, batch, hidden):
    masked = [(y, [s if hidden.draw(st.booleans()) else -math.inf for s in marks]) for y, marks in batch]
    check_expected(name, cm.metric(name), masked)


class InputOrder(cm.NDCG):
    """A wrong metric: takes tied items as they come."""

    def measure(self, rows):
        return super().measure(dataclasses.replace(rows, strict=True))


def test_the_check_rejects_a_metric_that_ignores_ties():
    with pytest.raises(AssertionError):
        check_expected("ndcg@3", InputOrder(k=3), [([0, 1, 2, 0], [1.0, 1.0, 1.0, 0.0])])


@pytest.mark.parametrize("name", GRADED)
@given(data=lists, seed=st.integers(0, 5))
def test_strict_tie_rules_pick_one_compatible_order(name, data, seed):
    labels, marks = data
    if not labels or undefined(name, [float(g) for g in labels]):
        return
    values = [GRADED[name](labels, order) for order in oracles.compatible_orders(marks)]
    metric = cm.metric(name)
    for rule in ("input", "id_descending", "random", "worst", "best"):
        strict = cm.metric(metric, convention=metric.convention.replace(ties=rule, seed=seed))
        got = float(strict(labels, marks))
        assert min(abs(got - v) for v in values) < 1e-9 * max(1, abs(got)), (name, rule)
        if name.startswith(("dcg", "ndcg", "eru")):  # by grade is by value there
            extreme = {"worst": min, "best": max}.get(rule)
            assert extreme is None or got == pytest.approx(extreme(values), rel=1e-12, abs=1e-12)


def test_input_order_and_ids_break_ties_as_they_say():
    y, s = [0, 1, 2], [1.0, 1.0, 1.0]
    dcg1 = {
        rule: float(cm.metric("dcg@1", convention=f"ties={rule}")(y, s))
        for rule in ("input", "id_descending")
    }
    assert dcg1 == {"input": 0.0, "id_descending": 3.0}
    by_id = cm.metric("dcg@1", convention="ties=id_descending")
    assert float(by_id(y, s, docid=["b", "c", "a"])) == 1.0


def tie_heavy(rng, n):
    return rng.integers(0, 5, n).astype(float), rng.integers(0, max(n // 4, 2), n).astype(float)


SLOW_SIZES = [pytest.param(n, marks=pytest.mark.slow) for n in (11, 16, 33, 63, 64, 65, 127, 128, 400)]


@pytest.mark.parametrize("n", [129, 3000, *SLOW_SIZES])
@pytest.mark.parametrize("k", [None, 1, 10, 12, 13, 64, 65, 200])
def test_long_lists_agree_with_blockwise_formulas(n, k):
    """Around every switch of algorithm (selection, compiled sort, numpy sort)."""
    rng = np.random.default_rng(n + (k or 0))
    y, s = tie_heavy(rng, n)
    order = np.lexsort((np.arange(n), -s)).tolist()
    labels = y.tolist()
    cut = "" if k is None else f"@{k}"
    for name, oracle in (
        ("dcg", oracles.dcg),
        ("ndcg", oracles.ndcg),
        ("err", oracles.err),
        ("ap", oracles.ap),
    ):
        got = float(cm.metric(name + cut, convention="ties=input")(y, s))
        assert got == pytest.approx(oracle(labels, order, k), rel=1e-12), name
        # The mean over many random tie-breaks approaches the closed form; 6 standard errors.
        draws = [
            float(cm.metric(name + cut, convention=f"ties=random,seed={seed}")(y, s)) for seed in range(200)
        ]
        closed = float(cm.metric(name + cut)(y, s))
        error = np.std(draws) / math.sqrt(len(draws))
        assert abs(np.mean(draws) - closed) <= 6 * error + 1e-12, name


@given(data=lists.filter(lambda d: len(d[0]) > 0))
def test_preferences_pay_when_violated(data):
    labels, marks = data
    n = len(labels)
    rng = np.random.default_rng(n)
    a = rng.integers(0, 3, (n, n)) * (1 - np.eye(n, dtype=int))
    if not a.any():
        return
    got = float(cm.metric("pd")(Preferences.from_matrices([a]), marks))
    assert got == pytest.approx(
        oracles.expected(lambda o: oracles.pd(lambda i, j: a[i, j], o), marks), abs=1e-9
    )


@pytest.mark.slow
@given(
    marks=st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, -1e300]), min_size=1, max_size=7),
    seed=st.integers(0, 100),
)
def test_zero_one_on_permutations(marks, seed):
    positions = (np.random.default_rng(seed).permutation(len(marks)) + 1).tolist()
    got = float(cm.metric("zero_one")(Permutations(positions), marks))
    want = oracles.expected(lambda order: oracles.zero_one(positions, order), marks)
    assert got == pytest.approx(want, abs=1e-12)
    for rule in ("input", "id_descending", "random", "worst", "best"):
        strict = float(cm.metric("zero_one", convention=f"ties={rule}")(Permutations(positions), marks))
        assert strict in {
            oracles.zero_one(positions, order) for order in oracles.compatible_orders(marks)
        } | ({1.0} if rule == "worst" else set())


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(NEEDS_ALL))
@given(data=lists, hidden=st.data())
def test_items_that_are_not_ranked_stand_below_in_pairs(name, data, hidden):
    labels, marks = data
    masked = [mark if hidden.draw(st.booleans()) else -math.inf for mark in marks]
    lowest = [mark if mark > -math.inf else -2e300 for mark in masked]  # below every score drawn
    if labels:
        metric = cm.metric(name)
        assert metric.per_query(labels, masked)[0] == pytest.approx(
            metric.per_query(labels, lowest)[0], rel=1e-12, nan_ok=True
        )


def test_items_that_are_not_ranked_stand_below_in_orders():
    metric = cm.metric("zero_one")
    assert float(metric(Permutations([1, 3, 2]), [1.0, -math.inf, -math.inf])) == 0.5
    assert float(metric(Permutations([2, 1]), [1.0, -math.inf])) == 1.0


def test_err_of_a_long_constant_list():
    n = 100_000
    y = np.zeros(n)
    y[:50] = 4
    value = float(cm.metric("err")(y, np.zeros(n)))
    draws = [
        float(cm.metric("err", convention=f"ties=random,seed={seed}")(y, np.zeros(n))) for seed in range(50)
    ]
    assert abs(value - np.mean(draws)) < 6 * np.std(draws) / math.sqrt(50)
