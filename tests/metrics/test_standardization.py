"""Standardization: every row of the table by its formula, its defining property by enumeration, errors."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import concordant as cc
from concordant.exceptions import (
    LabelError,
    NonFiniteError,
    NoStandardizationError,
    NotNumericError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from concordant.metrics import CONDITIONS, METRICS
from concordant.metrics.standardization import usable_targets
from concordant.theory.spaces import every_label
from tests import oracles

seeds = st.integers(0, 2**32 - 1)


def wins(better, worse, weights, n_items):
    """A family f as a user writes it: how many items each one beats."""
    del worse, weights
    return np.bincount(better, minlength=n_items)


def wins_of(graph):
    """The same from its definition."""
    return [sum(weight > 0 for weight in row) for row in graph]


# ---------------------------------------------------------------- each row, by its formula

# name -> (r of one query, highest grade drawn, the condition asked for)
GRADED = {
    "dcg": (oracles.r_dcg, 4, None),
    "dcg@2": (oracles.r_dcg, 4, None),
    "ndcg": (oracles.r_ndcg, 4, None),
    "ndcg@2": (lambda y: oracles.r_ndcg(y, k=2), 4, None),
    "p@2": (oracles.r_precision, 3, None),
    "wta[relevant_from=2]": (lambda y: oracles.r_precision(y, 2), 3, None),
    "eru(v=1)": (lambda y: oracles.r_eru(y, 1), 3, None),
    "auc": (oracles.r_auc, 2, None),
    "pd": (oracles.r_pd, 1, None),
    "wpd": (oracles.r_wpd, 4, None),
    "rr@1": (oracles.r_precision, 2, None),
    "err@1": (lambda y: [r / 16 for r in oracles.r_dcg(y)], 4, None),
    "ap@1": (oracles.r_ap, 2, None),
    "ap@1[ap_denominator=min]": (oracles.r_precision, 2, None),
    "ap@1[ap_denominator=found]": (oracles.r_precision, 2, None),
    "ap": (oracles.r_ap, 2, "P_reinforce"),
    "ap[relevant_from=2]": (lambda y: oracles.r_ap(y, 2), 3, "P_reinforce"),
    "ap@2": (oracles.r_ap, 2, "P_reinforce"),
    "ap@2[ap_denominator=min]": (lambda y: oracles.r_ap(y, most=2), 2, "P_reinforce"),
    "ap@1[ap_denominator=uncut]": (oracles.r_ap, 2, "P_reinforce"),
    "ap[ap_denominator=found]": (oracles.r_ap, 2, "P_reinforce"),
}


def ragged(rng):
    """Ids of a few queries of 1 to 5 rows, in any order."""
    return rng.permutation(np.repeat(rng.permutation(9)[:4], rng.integers(1, 6, 4)))


@pytest.mark.parametrize("name", GRADED)
@given(seed=seeds)
def test_rows_of_grades(name, seed):
    rng = np.random.default_rng(seed)
    formula, highest, condition = GRADED[name]
    qid = ragged(rng)
    y = rng.integers(0, highest + 1, len(qid))
    targets = cc.standardize(name, y, qid=qid, assume=condition)
    for q in np.unique(qid):
        np.testing.assert_allclose(targets[qid == q], formula(y[qid == q].tolist()), rtol=1e-12)


def random_preferences(rng, qid):
    """Preferences within queries: contradicting, repeated, cyclic, some of weight 0; maybe none at all."""
    pairs = np.argwhere((qid[:, None] == qid) & ~np.eye(len(qid), dtype=bool))
    drawn = pairs[rng.integers(0, len(pairs), rng.integers(0, 12))] if len(pairs) else pairs
    weights = rng.integers(0, 4, len(drawn))
    return cc.Preferences(drawn[:, 0], drawn[:, 1], len(qid), weights)


def matrix_of(labels, rows):
    """a[i][j] among these rows, repeated preferences added up."""
    position = {row: number for number, row in enumerate(rows.tolist())}
    a = [[0.0] * len(rows) for _ in rows]
    for better, worse, weight in zip(labels.better, labels.worse, labels.weights, strict=True):
        if better in position:
            a[position[better]][position[worse]] += weight
    return a


GRAPHS = {
    "low_noise": ({"assume": "low_noise"}, oracles.r_low_noise),
    "P_f": ({"assume": "P_f"}, lambda a: oracles.r_family(oracles.net_weights, a)),
    "P_f wins": ({"assume": "P_f", "f": wins}, lambda a: oracles.r_family(wins_of, a)),
    "P_f losses": (
        {"assume": "P_f", "f": lambda b, w, weights, n: -np.bincount(w, weights, n) - 1},  # noqa: ARG005
        lambda a: oracles.r_family(lambda a: [-sum(column) - 1 for column in zip(*a, strict=True)], a),
    ),
}


@pytest.mark.parametrize("name", ["pd", "wpd"])
@pytest.mark.parametrize("row", GRAPHS)
@given(seed=seeds)
def test_rows_of_graphs(name, row, seed):
    rng = np.random.default_rng(seed)
    arguments, formula = GRAPHS[row]
    qid = ragged(rng)
    labels = random_preferences(rng, qid)
    targets = cc.standardize(name, labels, qid=qid, **arguments)
    assert (targets >= 0).all()
    for q in np.unique(qid):
        rows = np.flatnonzero(qid == q)
        assert targets[rows].tolist() == formula(matrix_of(labels, rows))


@given(seed=seeds)
def test_row_of_permutations(seed):
    rng = np.random.default_rng(seed)
    qid = ragged(rng)
    positions = np.empty(len(qid), dtype=int)
    for q in np.unique(qid):
        positions[qid == q] = rng.permutation((qid == q).sum()) + 1
    targets = cc.standardize("zero_one", cc.Permutations(positions), qid=qid, assume="order_preserving")
    for q in np.unique(qid):
        assert targets[qid == q].tolist() == oracles.r_zero_one(positions[qid == q].tolist())


KINDS = {
    **{name: ([1, 0, 0, 0, 1], condition) for name, (_, _, condition) in GRADED.items()},
    "pd on a graph": (cc.Preferences([0, 3, 4, 2], [1, 4, 2, 3], 5), "low_noise"),
    "wpd on a graph": (cc.Preferences([0, 3, 4, 2], [1, 4, 2, 3], 5), "P_f"),
    "zero_one": (cc.Permutations([2, 1, 3, 1, 2]), "order_preserving"),
}


@pytest.mark.parametrize("name", KINDS)
def test_empty_queries_change_nothing(name):
    y, condition = KINDS[name]
    metric = name.partition(" ")[0]
    plain = cc.standardize(metric, y, qid=[0, 0, 1, 1, 1], assume=condition)
    sizes = cc.Queries.from_sizes([0, 2, 0, 0, 3, 0])
    assert cc.standardize(metric, y, qid=sizes, assume=condition).tolist() == plain.tolist()


@pytest.mark.parametrize(
    ("metric", "y", "condition"),
    [
        ("ap", [0, 0], "P_reinforce"),
        ("auc", [1, 1], None),
        ("wpd", [2, 2], None),
        ("pd", cc.Preferences([0, 1], [1, 0], 2, weights=[0, 0]), "low_noise"),
        ("pd", cc.Preferences([], [], 2), "low_noise"),
        ("pd", cc.Preferences([], [], 2), "P_f"),
        ("wpd", cc.Preferences([0], [1], 2, weights=[0]), "P_f"),
    ],
)
def test_targets_are_0_where_the_metric_is_undefined(metric, y, condition):
    assert np.isnan(cc.metric(metric).per_query(y, [1.0, 2.0])[0])
    assert cc.standardize(metric, y, assume=condition).tolist() == [0.0, 0.0]


def test_a_single_item_has_a_target():
    assert cc.standardize("zero_one", cc.Permutations([1]), assume="order_preserving").tolist() == [1.0]
    assert cc.standardize("ap", [1], assume="P_reinforce").tolist() == [1.0]
    assert cc.standardize("ndcg", [1]).tolist() == [1.0]


def test_a_cycle_has_equal_targets():
    cycle = cc.Preferences([0, 1, 2], [1, 2, 0], 3)
    assert cc.standardize("pd", cycle, assume="low_noise").tolist() == [3.0, 3.0, 3.0]
    assert cc.standardize("pd", cycle, assume="P_f").tolist() == [0.0, 0.0, 0.0]


def test_the_level_of_a_query_is_its_own():
    """C is the query's: other queries do not move its targets, and its weights scale them."""
    alone = cc.standardize("pd", cc.Preferences([0], [1], 2), assume="low_noise")
    both = cc.Preferences([0, 2], [1, 3], 4, weights=[1, 100])
    targets = cc.standardize("pd", both, qid=[0, 0, 1, 1], assume="low_noise")
    assert targets[:2].tolist() == alone.tolist() == [3.0, 1.0]
    assert targets[2:].tolist() == [300.0, 100.0]


def test_repeated_preferences_cannot_make_a_target_negative():
    many = cc.Preferences([0] * 9, [1] * 9, 2)
    assert cc.standardize("pd", many, assume="low_noise").tolist() == [27.0, 9.0]


def test_targets_are_not_the_labels_themselves():
    y = np.array([2.0, 0.0])
    targets = cc.standardize("dcg[gain=linear]", y)
    targets[0] = 7.0
    assert y.tolist() == [2.0, 0.0]


def test_a_standardization_for_every_distribution_needs_no_condition():
    for name, condition in itertools.product(("ndcg", "p@3", "auc", "pd", "wpd"), CONDITIONS):
        plain = cc.standardize(name, [1, 0, 1]).tolist()
        assert cc.standardize(name, [1, 0, 1], assume=condition).tolist() == plain


def test_a_metric_or_its_name():
    y = [2, 0, 1]
    for metric in ("ndcg@2", cc.metric("ndcg@2")):
        assert cc.standardize(metric, y).tolist() == cc.metric("ndcg@2").targets(y).tolist()


# ---------------------------------------------------------------- Definition 4, by enumeration


def optimal(value, labels, probs, scores, *, greater):
    """True if sorting by these scores, ties at random, attains the best expected value of all orders."""
    got = oracles.expected(
        lambda order: oracles.expected_over_labels(value, labels, probs, order), list(scores)
    )
    best = oracles.best_expected(value, labels, probs, len(scores), greater=greater)
    return abs(got - best) < 1e-9


def graph_cost(a, order):
    return oracles.pd(lambda i, j: a[i][j], order)


def as_graph(a):
    return cc.Preferences.from_matrices([a])


def as_given(label):
    return label


# name -> (metric, value of an order, labels as the package reads them, request, predicate)
CONDITIONAL = {
    "ap": ("ap", oracles.ap, as_given, {"assume": "P_reinforce"}, oracles.reinforces),
    "ap@2": (
        "ap@2", lambda y, order: oracles.ap(y, order, k=2), as_given,
        {"assume": "P_reinforce"}, oracles.reinforces,
    ),
    "ap@2 min": (
        "ap@2[ap_denominator=min]", lambda y, order: oracles.ap(y, order, k=2, denominator="min"), as_given,
        {"assume": "P_reinforce"}, lambda labels, probs: oracles.reinforces(labels, probs, most=2),
    ),
    "low_noise": ("wpd", graph_cost, as_graph, {"assume": "low_noise"}, oracles.has_low_noise),
    "P_f": (
        "pd", graph_cost, as_graph,
        {"assume": "P_f"}, lambda labels, probs: oracles.follows(oracles.net_weights, labels, probs),
    ),
    "P_f wins": (
        "pd", graph_cost, as_graph,
        {"assume": "P_f", "f": wins}, lambda labels, probs: oracles.follows(wins_of, labels, probs),
    ),
    "order_preserving": (
        "zero_one", oracles.zero_one, cc.Permutations,
        {"assume": "order_preserving"}, oracles.preserves_order,
    ),
}  # fmt: skip


def draw_binary(rng, n):
    return [rng.integers(0, 2, n).tolist() for _ in range(5)], rng.integers(1, 30, 5)


def draw_graphs(rng, n):
    """Weights that grow faster than differences of worth, which low noise asks for, and some noise."""
    worth = np.sort(rng.permutation(6)[:n])[::-1]
    squares = np.triu(np.subtract.outer(worth, worth) ** 2)
    graphs = [squares * rng.integers(0, 2, (n, n)) for _ in range(2)]
    noise = rng.integers(0, 3, (n, n)) * (1 - np.eye(n, dtype=int))
    return [graph.tolist() for graph in (*graphs, noise)], rng.integers(1, 10, 3)


def draw_orders(rng, n):
    """A Mallows model with noise; sometimes its first item is always first."""
    labels = list(itertools.permutations(range(1, n + 1)))
    orders = [np.argsort(positions).tolist() for positions in labels]
    chances = np.array([oracles.mallows_weight(range(n), order, 0.6) for order in orders])
    counts = np.ceil(1000 * chances * rng.uniform(0.4, 1.6, len(labels))).astype(int)
    if rng.random() < 0.5:
        counts *= [order[0] == n - 1 for order in orders]
    return labels, counts


def draw(rng, name):
    """A distribution that satisfies the condition, by rejection; probabilities are exact."""
    source = {"ap": draw_binary, "or": draw_orders}.get(name[:2], draw_graphs)
    while True:
        labels, counts = source(rng, int(rng.integers(3, 5)))
        probs = [Fraction(int(count), int(counts.sum())) for count in counts]
        if CONDITIONAL[name][-1](labels, probs):
            return labels, probs


def mean_targets(name, labels, probs):
    metric, _, read, request, _ = CONDITIONAL[name]
    targets = (cc.standardize(metric, read(label), **request) for label in labels)
    return sum(float(p) * r for p, r in zip(probs, targets, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", CONDITIONAL)
@given(seed=seeds)
def test_the_mean_of_the_targets_is_optimal_under_the_condition(name, seed):
    labels, probs = draw(np.random.default_rng(seed), name)
    metric, value, *_ = CONDITIONAL[name]
    greater = cc.metric(metric).greater_is_better
    assert optimal(value, labels, probs, mean_targets(name, labels, probs), greater=greater)


HALF = Fraction(1, 2)
CHAIN = [[0, 1, 0.5], [0, 0, 9], [0, 0, 0]]  # the middle item has the largest net weight
# Each breaks its condition, and the targets with it: the check above can fail.
VIOLATIONS = {
    "ap": ([[1, 1, 0, 0], [0, 0, 1, 1]], [HALF, HALF]),
    "ap@2": ([[1, 1, 0, 0], [0, 0, 1, 1]], [HALF, HALF]),
    "ap@2 min": ([[1, 1, 0, 0], [0, 0, 1, 1]], [HALF, HALF]),
    "low_noise": ([CHAIN], [1]),
    "P_f": ([CHAIN], [1]),
    "P_f wins": ([[[0, 5, 0], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [1, 0, 1], [0, 0, 0]]], [HALF, HALF]),
    "order_preserving": (
        [(1, 2, 3), (3, 1, 2), (3, 2, 1)],
        [Fraction(4, 10), Fraction(3, 10), Fraction(3, 10)],
    ),
}


@pytest.mark.parametrize("name", CONDITIONAL)
def test_without_the_condition_the_mean_may_not_be_optimal(name):
    labels, probs = VIOLATIONS[name]
    metric, value, _, _, predicate = CONDITIONAL[name]
    greater = cc.metric(metric).greater_is_better
    assert not predicate(labels, probs)
    assert not optimal(value, labels, probs, mean_targets(name, labels, probs), greater=greater)


def test_low_noise_lies_strictly_inside_the_condition_of_the_net_weights():
    rng = np.random.default_rng(0)
    for labels, probs in (draw(rng, "low_noise") for _ in range(100)):
        assert oracles.follows(oracles.net_weights, labels, probs)
    between = [[[0, 1, 0.5], [0, 0, 1], [0, 0, 0]]]
    assert oracles.follows(oracles.net_weights, between, [1])
    assert not oracles.has_low_noise(between, [1])


# ---------------------------------------------------------------- none exists

WITNESS = [[1, 1, 0, 0], [0, 0, 1, 1]]
REFUTED = {
    "err": lambda y, order: oracles.err(y, order, max_grade=4),
    "err[max_grade=1]": lambda y, order: oracles.err(y, order, max_grade=1),
    "ap": oracles.ap,
    "rr": oracles.rr,
    "err@2": lambda y, order: oracles.err(y, order, k=2),
    "ap@2": lambda y, order: oracles.ap(y, order, k=2),
    "ap@2[ap_denominator=found]": lambda y, order: oracles.ap(y, order, k=2, denominator="found"),
    "rr@2": lambda y, order: oracles.rr(y, order, k=2),
}


@pytest.mark.parametrize("name", REFUTED)
def test_the_witness(name):
    """The two labels leave four equal means (Lemma 4 of paper 1), yet two orders differ in value."""
    oracle = [
        oracles.expected_over_labels(REFUTED[name], WITNESS, [0.5, 0.5], order)
        for order in ([0, 1, 2, 3], [0, 2, 1, 3])
    ]
    metric = cc.metric(name)
    value = [
        np.mean([float(metric(y, scores)) for y in WITNESS]) for scores in ([4.0, 3, 2, 1], [4.0, 2, 3, 1])
    ]
    assert value == pytest.approx(oracle, abs=1e-12)
    assert abs(value[0] - value[1]) > 1e-5
    with pytest.raises(NoStandardizationError):
        metric.targets(WITNESS[0])


def grades_up_to(highest, n=3):
    return [list(y) for y in itertools.product(range(highest + 1), repeat=n)]


def pair_cost(y, order):
    return oracles.pd(lambda i, j: float(y[i] > y[j]), order)


EDGES = [
    [[float((i, j) == edge) for j in range(3)] for i in range(3)]
    for edge in itertools.permutations(range(3), 2)
]
# name -> (value, labels, greater is better, whether a standardization may exist)
EXISTENCE = {
    **{name: (value, grades_up_to(1), True, False) for name, value in REFUTED.items() if name[:5] != "err[m"},
    "err": (lambda y, order: oracles.err([4 * g for g in y], order), grades_up_to(1), True, False),
    "err@2": (lambda y, order: oracles.err([4 * g for g in y], order, k=2), grades_up_to(1), True, False),
    "ap@2[ap_denominator=min]": (
        lambda y, order: oracles.ap(y, order, k=2, denominator="min"), grades_up_to(1), True, False
    ),
    "pd on three grades": (pair_cost, grades_up_to(2), False, False),
    "pd on graphs": (graph_cost, EDGES, False, False),
    "zero_one": (oracles.zero_one, [list(p) for p in itertools.permutations((1, 2, 3))], False, False),
    "ndcg": (oracles.ndcg, grades_up_to(2), True, True),
    "p@2": (lambda y, order: oracles.precision(y, order, 2), grades_up_to(1), True, True),
    "auc": (oracles.auc, grades_up_to(1), True, True),
    "pd on two grades": (pair_cost, grades_up_to(1), False, True),
    "err@1": (lambda y, order: oracles.err(y, order, k=1), grades_up_to(2), True, True),
    "rr@1": (lambda y, order: oracles.rr(y, order, k=1), grades_up_to(1), True, True),
    "ap@1": (lambda y, order: oracles.ap(y, order, k=1), grades_up_to(1), True, True),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", EXISTENCE)
def test_where_one_is_refused_none_exists(name):
    value, labels, greater, expected = EXISTENCE[name]
    mixtures = oracles.mixtures_of(len(labels), np.random.default_rng(0))
    assert oracles.may_be_standardized(value, labels, mixtures, greater=greater) == expected


# ---------------------------------------------------------------- the fact on the metric

RANKING = ["dcg@2", "ndcg", "err", "err@1", "ap", "ap@1", "ap@1[ap_denominator=uncut]", "p@2", "rr", "rr@1"]
RANKING += ["eru(v=0,w=2)", "auc", "pd", "wpd", "zero_one"]


def gives_targets(metric, space):
    """True if every label of three items has a target."""
    try:
        for label in every_label(space, 3):
            metric.targets(label)
    except NoStandardizationError:
        return False
    return True


def states_the_truth(metric):
    """True if the metric's fact agrees with what it does, on each of its label spaces."""
    return all(metric.standardized_on(space) == gives_targets(metric, space) for space in metric.label_spaces)


@pytest.mark.parametrize("name", RANKING)
def test_the_fact_that_r_exists_is_what_targets_do(name):
    assert cc.metric(name).label_spaces
    assert states_the_truth(cc.metric(name))


def test_a_wrong_fact_is_noticed():
    class WrongPD(cc.metrics.PD):
        def standardized_on(self, space):
            return bool(space)

    assert not states_the_truth(WrongPD())


def test_every_ranking_metric_states_the_facts():
    names = {cc.metric(name).name for name in RANKING} | {"comparison_error", "comparison_auc"}
    assert names == {metric.name for metric in METRICS.values()}


# ---------------------------------------------------------------- errors

VOTES = cc.Preferences([0, 1], [1, 2], 3)
PAIR_SURROGATE = "use the exact pair surrogate, which scores pairs of items"
REFERENCE = "(1,1,0,0) and (0,0,1,1) refute every one (as in Buffoni et al. 2011, Theorem 3)"
UNKNOWN = "the known ones are P_f, P_reinforce, low_noise, order_preserving"
NONE = NoStandardizationError
BAD = [
    ("ap", [1, 0], {}, NONE, ["ap has no standardization", REFERENCE, PAIR_SURROGATE]),
    ("ap", [1, 0], {}, NONE, ['pass assume="P_reinforce" (Ramaswamy et al. 2013, Corollary 5) if']),
    ("ap@1[ap_denominator=uncut]", [1, 0], {}, NONE, ['assume="P_reinforce"']),
    ("ap@5[ap_denominator=found]", [1, 0], {}, NONE, [REFERENCE, f"Hint: {PAIR_SURROGATE}"]),
    ("ap@5[ap_denominator=found]", [1, 0], {"assume": "P_reinforce"}, NONE, ["does not serve"]),
    ("ap", [1, 0], {"assume": "low_noise"}, NONE, ["assume='low_noise' does not", 'pass assume="P_rein']),
    ("err", [1, 0], {}, NONE, [REFERENCE, "Hint: optimise ndcg or err@1, which have one."]),
    ("rr@3", [1, 0], {}, NONE, ["rr@3 has no", REFERENCE, "Hint: optimise ndcg or rr@1, which have one."]),
    ("err", [1, 0], {"assume": "P_reinforce"}, NONE, ["does not serve", "optimise ndcg"]),
    ("pd", [0, 1, 2], {}, NONE, ["three or more grades Condorcet cycles", "use wpd", "two grades"]),
    ("pd", [0, 1, 2], {"assume": "low_noise"}, NONE, ["does not serve", "Preferences"]),
    ("pd", VOTES, {}, NONE, ["majority preferences may form a cycle", PAIR_SURROGATE]),
    ("wpd", VOTES, {}, NONE, ['assume="low_noise" (Buffoni et al. 2011, section 5.3) or assume="P_f" (Rama']),
    ("pd", VOTES, {"assume": "P_reinforce"}, NONE, ["does not serve", 'assume="low_noise"']),
    ("zero_one", cc.Permutations([1, 2]), {}, NONE, ["most probable order", "Plackett and Luce"]),
    ("zero_one", cc.Permutations([1, 2]), {}, NONE, ['assume="order_preserving" (Buffoni et al. 2011']),
    ("comparison_error", [1, 0], {}, NONE, ["outcomes of pairs, not of items", "name pd"]),
    ("comparison_auc", [1, 0], {"assume": "P_f"}, NONE, ["does not serve", "as Preferences between items"]),
    ("ap", [1, 0], {"assume": "p_reinforce"}, UnknownNameError, ["Did you mean 'P_reinforce'?", UNKNOWN]),
    ("ndcg", [1, 0], {"assume": "hope"}, UnknownNameError, ["unknown condition 'hope'", UNKNOWN]),
    ("ndcg", [1, 0], {"assume": ["P_f"]}, UnknownNameError, ["unknown condition ['P_f']"]),
    ("pd", VOTES, {"f": wins}, ParameterError, ["used only with assume='P_f'"]),
    ("pd", VOTES, {"assume": "low_noise", "f": wins}, ParameterError, ["only with assume='P_f'"]),
    ("pd", VOTES, {"assume": "P_f", "f": 3}, ParameterError, ["got 3", "f(better, worse, weights, n_items)"]),
    ("ndcg", [1, 0], {"assume": "P_f", "f": wins}, ParameterError, ["ndcg has a standardization without it"]),
    ("zero_one", [1, 2], {"assume": "order_preserving"}, LabelError, ["reads Permutations"]),
    ("zero_one", cc.Permutations([1, 1]), {"assume": "order_preserving"}, LabelError, ["not 1..2"]),
    ("pd", VOTES, {"assume": "low_noise", "qid": [1, 1, 2]}, LabelError, ["different queries"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "y", "arguments", "error", "texts"), BAD)
def test_errors(name, y, arguments, error, texts):
    with pytest.raises(error) as caught:
        cc.standardize(name, y, **arguments)
    for text in texts:
        assert text in str(caught.value)


BAD_FAMILIES = [
    (
        lambda *_: [1.0, 2.0],
        ShapeError,
        "f of query 'a' has shape (2,); expected one number for each of its 3",
    ),
    (lambda *_: [[1.0, 2.0]] * 3, ShapeError, "f of query 'a' has shape (3, 2)"),
    (lambda *_: [1.0, np.nan, 2.0], NonFiniteError, "f of query 'a' is nan at item 1"),
    (lambda *_: [1.0, 2.0, -np.inf], NonFiniteError, "-inf at item 2 (1 such value(s) in all)"),
    (lambda *_: [1e308, 0.0, -1e308], NonFiniteError, "at most 1.1e+301 in size"),
    (lambda *_: ["a", "b", "c"], NotNumericError, "f of query 'a' must be numeric, but row 0 is 'a'"),
    (lambda *_: None, NotNumericError, "f of query 'a' must be numeric"),
]


@pytest.mark.parametrize(("f", "error", "text"), BAD_FAMILIES)
def test_what_f_gives_is_checked(f, error, text):
    labels = cc.Preferences([1, 2], [2, 3], 4)
    with pytest.raises(error) as caught:
        cc.standardize("pd", labels, qid=["z", "a", "a", "a"], assume="P_f", f=f)
    assert text in str(caught.value)


def test_weights_that_overflow_are_refused():
    heavy = cc.Preferences([0, 0], [1, 2], 3, weights=[1, 1e308])
    for condition in ("low_noise", "P_f"):
        with pytest.raises(LabelError, match=r"preference 1 weighs 1e\+308, which overflows"):
            cc.standardize("pd", heavy, assume=condition)


def test_f_sees_each_query_alone():
    """Items in the order of the rows, from 0; each pair once; not asked where nothing is preferred."""
    calls = []

    def note(better, worse, weights, n_items):
        calls.append((better.tolist(), worse.tolist(), weights.tolist(), n_items))
        return np.arange(n_items) - 1.0

    qid = ["b", "a", "b", "c", "a", "b"]
    labels = cc.Preferences([5, 0, 5, 1, 2], [0, 2, 0, 4, 5], 6, weights=[1, 2, 3, 1, 0])
    targets = cc.standardize("pd", labels, qid=qid, assume="P_f", f=note)
    assert calls == [([0], [1], [1.0], 2), ([0, 2], [1, 0], [2.0, 4.0], 3)]
    assert targets.tolist() == [0.0, 0.0, 1.0, 0.0, 1.0, 2.0]


# ---------------------------------------------------------------- for rankers

USABLE = [
    ("ndcg@1", [1, 0, 2], None, "every distribution", [1 / 3, 0, 1]),
    ("ndcg@1", [1, 0, 2], "low_noise", "every distribution", [1 / 3, 0, 1]),
    ("err@1", [1, 0, 2], None, "every distribution", [1 / 16, 0, 3 / 16]),
    ("ap", [1, 0, 2], None, "P_reinforce", [0.5, 0, 0.5]),
    ("ap", [1, 0, 2], "P_reinforce", "P_reinforce", [0.5, 0, 0.5]),
    ("ap@2[ap_denominator=found]", [1, 1, 1], None, "nothing", [0.5, 0.5, 0.5]),
    ("err", [1, 0, 2], None, "nothing", [1 / 16, 0, 3 / 16]),
    ("err[max_grade=data]", [1, 0, 2], None, "nothing", [1 / 4, 0, 3 / 4]),
    ("err[max_grade=probability]", [1, 0, 0.5], None, "nothing", [1, 0, 0.5]),
    ("rr[relevant_from=2]", [1, 0, 2], None, "nothing", [0, 0, 1]),
    ("pd", [5, 0, 5], None, "every distribution", [1, 0, 1]),
    ("pd", [1, 0, 2], None, "nothing", [1, 0, 2]),
    ("wpd", [1, 0, 2], None, "every distribution", [1, 0, 3]),
    ("pd", VOTES, None, "low_noise", [4, 3, 2]),
    ("wpd", VOTES, "P_f", "P_f", [2, 1, 0]),
    ("zero_one", cc.Permutations([2, 1, 3]), None, "order_preserving", [2, 3, 1]),
]


@pytest.mark.parametrize(("name", "y", "assume", "rests_on", "targets"), USABLE)
def test_usable_targets(name, y, assume, rests_on, targets):
    metric = cc.metric(name)
    got, reason = usable_targets(metric, metric.read_labels(y), cc.Queries.from_sizes([3]), assume)
    assert reason == rests_on
    assert got.tolist() == pytest.approx(targets)


def test_usable_targets_come_by_sorted_row():
    metric, queries = cc.metric("pd"), cc.Queries.from_ids([1, 0, 1, 1, 0])
    got, reason = usable_targets(metric, metric.read_labels([0, 2, 1, 2, 2]), queries)
    assert (got.tolist(), reason) == ([0.0, 0.0, 0.0, 1.0, 2.0], "nothing")  # one grade in query 0: no pair


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_of_rankings_has_usable_targets(name):
    metric = cc.metric(f"{name}@3" if name == "p" else name)
    if name.startswith("comparison"):
        with pytest.raises(NoStandardizationError, match="not of items"):
            usable_targets(metric, metric.read_labels([1, 0, -1]), cc.Queries.from_sizes([3]))
        return
    y = cc.Permutations([1, 2, 1, 2, 3]) if name == "zero_one" else [0, 1, 2, 1, 0]
    got, _ = usable_targets(metric, metric.read_labels(y), cc.Queries.from_sizes([2, 0, 3]))
    assert (got >= 0).all()
    assert got.any()


def test_an_assumption_that_does_not_serve_is_refused():
    metric, queries = cc.metric("err"), cc.Queries.from_sizes([2])
    with pytest.raises(NoStandardizationError, match="'low_noise' does not serve"):
        usable_targets(metric, metric.read_labels([1, 0]), queries, "low_noise")
    with pytest.raises(UnknownNameError, match="unknown condition"):
        usable_targets(metric, metric.read_labels([1, 0]), queries, "hope")
