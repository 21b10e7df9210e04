"""Proofs that no standardization exists: found where none does, never where one does, and checked anew."""

import dataclasses
import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import concordant as cc
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.surrogates import Pairwise, Softmax, Squared
from concordant.theory.exact.exact_values import expected_value
from concordant.theory.search import impossibility as mixing
from concordant.theory.search import patterns
from concordant.theory.search.impossibility import build_proof, impossibility
from concordant.theory.spaces import every_label, format_label
from tests import oracles

pytestmark = pytest.mark.once

HALVES = ["(1,1,0,0)", "(0,0,1,1)"]
GRADES = {"labels": "grades", "highest": 2}


def pair_cost(y, order):
    return oracles.pd(lambda i, j: float(y[i] > y[j]), order)


def graph_cost(a, order):
    return oracles.pd(lambda i, j: a[i][j], order)


# name, arguments -> definition and the labels of the proof
NONE_EXISTS = [
    ("ap", {}, oracles.ap, HALVES),
    ("ap@2", {}, lambda y, order: oracles.ap(y, order, 2), HALVES),
    ("ap@3", {}, lambda y, order: oracles.ap(y, order, 3), HALVES),
    ("ap@2[ap_denominator=found]", {}, lambda y, o: oracles.ap(y, o, 2, denominator="found"), HALVES),
    ("ap@1[ap_denominator=uncut]", {}, lambda y, o: oracles.ap(y, o, 1, denominator="uncut"), HALVES),
    ("err", {}, oracles.err, HALVES),
    ("err[max_grade=1]", {}, lambda y, order: oracles.err(y, order, max_grade=1), HALVES),
    ("err@2", {}, lambda y, order: oracles.err(y, order, 2), HALVES),
    ("rr", {}, oracles.rr, HALVES),
    ("rr@2", {}, lambda y, order: oracles.rr(y, order, 2), HALVES),
    ("ap", {"n_items": 3}, oracles.ap, ["(1,0,0)", "(0,1,1)"]),
    ("err", {"n_items": 3}, oracles.err, ["(1,0,0)", "(0,1,1)"]),
    ("rr", {"n_items": 3}, oracles.rr, ["(1,1,0)"]),
    ("pd", {}, graph_cost, ["1>2 2>3", "3>4 4>1"]),
    ("pd", {"n_items": 3}, graph_cost, ["1>2", "2>3", "3>1"]),
    ("wpd", {"n_items": 3}, graph_cost, ["1>2", "2>3", "3>1"]),
    ("pd", {**GRADES, "n_items": 3}, pair_cost, ["(2,1,0)", "(1,0,2)", "(0,2,1)"]),
    ("pd", GRADES, pair_cost, ["(2,1,1,0)", "(1,1,0,2)", "(0,1,2,1)"]),
    ("zero_one", {}, oracles.zero_one, ["1>2>3>4", "4>3>2>1"]),
]
ONE_EXISTS = [
    ("dcg", {}, oracles.dcg),
    ("ndcg", {}, oracles.ndcg),
    ("p@2", {}, lambda y, order: oracles.precision(y, order, 2)),
    ("eru", {}, oracles.eru),
    ("eru(w=2)", {}, lambda y, order: oracles.eru(y, order, w=2)),
    ("auc", {}, oracles.auc),
    ("pd", {"labels": "binary"}, pair_cost),
    ("wpd", GRADES, lambda y, o: oracles.pd(lambda i, j: max(2 ** y[i] - 2 ** y[j], 0), o)),
    ("ap@1", {}, lambda y, order: oracles.ap(y, order, 1)),
    ("rr@1", {}, lambda y, order: oracles.rr(y, order, 1)),
    ("err@1", {}, lambda y, order: oracles.err(y, order, 1)),
]


def plain(label):
    """A label as the oracles read it: a list of grades or positions, or a matrix."""
    if isinstance(label, cc.Preferences):
        a = np.zeros((len(label), len(label)))
        a[label.better, label.worse] = label.weights
        return a.tolist()
    return (label.positions if isinstance(label, cc.Permutations) else label).tolist()


@pytest.fixture(scope="module")
def proofs():
    """The proof of each entry, found once."""
    return {(name, *kwargs.items()): impossibility(name, **kwargs) for name, kwargs, _, _ in NONE_EXISTS}


# ---------------------------------------------------------------- where none exists


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kwargs", "value", "labels"), NONE_EXISTS)
def test_a_proof_is_found_and_verified(proofs, name, kwargs, value, labels):
    proof = proofs[name, *kwargs.items()]
    assert list(map(format_label, proof.labels)) == labels
    assert proof.verify()
    assert len(proof.refutations) == {3: 13, 4: 75}[proof.n_items]
    for order, worth in proof.contrast:
        mean = oracles.expected_over_labels(value, list(map(plain, proof.labels)), proof.probs, order)
        assert mean == pytest.approx(float(worth), abs=1e-12)


@pytest.mark.parametrize(("name", "kwargs", "value", "labels"), NONE_EXISTS)
def test_by_the_definition_no_pattern_is_left(proofs, name, kwargs, value, labels):
    """The oracle asks for a refinement all of whose orders are best, not just for one order."""
    del labels
    proof = proofs[name, *kwargs.items()]
    used = {
        format_label(each.label): plain(each.label) for each in proof.refutations if each.label is not None
    }
    greater = cc.metric(name).greater_is_better
    mixed = list(map(plain, proof.labels))
    assert not oracles.surviving_patterns(value, [*used.values()], mixed, proof.probs, greater=greater)


@pytest.mark.parametrize(
    ("name", "difference"),
    [("err[max_grade=1]", (1, 48)), ("err", (1, 3072)), ("ap", (-1, 24)), ("rr", (1, 12))],
)
def test_the_differences_of_theorem_3(proofs, name, difference):
    """Buffoni et al. print 1/24 and -1/12 for the first and the third: sums over the labels, not means."""
    proof, metric = proofs[(name,)], cc.metric(name)
    assert proof.probs == (Fraction(1, 2), Fraction(1, 2))
    apart, together = (
        expected_value(metric, proof.labels, proof.probs, o) for o in ((0, 2, 1, 3), (0, 1, 2, 3))
    )
    assert apart - together == Fraction(*difference)
    (good, most), (bad, less) = proof.contrast
    assert {good, bad} == {(0, 2, 1, 3), (0, 1, 2, 3)}
    assert abs(most - less) == abs(apart - together)


@pytest.mark.parametrize("entry", [entry for entry in NONE_EXISTS if entry[0] not in ("err", "err@2")])
def test_no_function_of_the_labels_escapes(proofs, entry):
    """Random r, many with ties, and the obvious ones: all fail at the distribution or next to it."""
    name, kwargs, value, _ = entry
    proof, rng = proofs[name, *kwargs.items()], np.random.default_rng(0)
    mixed_in = {
        format_label(each.label): plain(each.label) for each in proof.refutations if each.label is not None
    }
    labels = dict(zip(map(format_label, proof.labels), map(plain, proof.labels), strict=True))
    space = [*(labels | mixed_in).values()]
    probs = [*proof.probs, *[Fraction()] * (len(space) - len(labels))]
    greater = cc.metric(name).greater_is_better
    shape = len(space), proof.n_items
    drawn = [rng.integers(0, most + 1, shape).tolist() for most in (0, 1, 2, 5) for _ in range(5)]
    leaning = [oracles.net_weights(y) if isinstance(y[0], list) else y for y in space]
    opposed = [[-number for number in row] for row in leaning]
    for r in [*drawn, leaning, opposed]:
        assert oracles.misleads(value, space, probs, r, Fraction(1, 1000), greater=greater)


def test_the_pattern_that_the_usual_standardization_would_have(proofs):
    """y / sum(y) has equal means there, which two orders of different value refute."""
    proof = proofs[("ap",)]
    (equal,) = (each for each in proof.refutations if each.pattern == ((0, 1, 2, 3),))
    assert equal.label is None
    assert equal.order not in proof.best


# ---------------------------------------------------------------- where one exists


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kwargs", "value"), ONE_EXISTS)
def test_no_proof_is_found_where_a_standardization_exists(name, kwargs, value):
    assert impossibility(name, **kwargs) is None
    metric, n_items = cc.metric(name), kwargs.get("n_items", 4)
    labels = every_label(kwargs.get("labels", "binary"), n_items, kwargs.get("highest", 1))
    space, rng = list(map(plain, labels)), np.random.default_rng(1)
    for _ in range(6):
        indices = rng.choice(len(space), 2, replace=False)
        mixed, probs = [space[k] for k in indices], [0.5, 0.5]
        means = np.mean([metric.targets(labels[k]) for k in indices], axis=0).round(12)
        left = oracles.surviving_patterns(value, space, mixed, probs, greater=metric.greater_is_better)
        assert tuple(np.unique(means, return_inverse=True)[1].tolist()) in left


class Steeper(Squared):
    """Convex, symmetric, order-preserving (targets are not negative), and not linear in the targets."""

    def __call__(self, scores, targets, **rows):
        values, grad = Squared(centred=False)(scores, targets, **rows)
        return values + (np.square(targets) * np.maximum(-np.asarray(scores) - 1, 0) ** 2).sum(), grad


@pytest.mark.parametrize(
    ("loss", "linear"),
    [(Squared(), True), (Pairwise(), True), (Softmax(), True), (Steeper(), False)],
)
def test_the_converse_of_theorem_2_is_proven_for_losses_linear_in_the_targets(loss, linear):
    """Its proof exchanges the scores of items of equal expected target."""
    outcomes, scores = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0]]), np.array([-3.0, 0.5, 0.0])
    assert outcomes.mean(axis=0).tolist() == [1.0, 1.0, 1.5]
    before, after = (sum(loss(s, targets)[0][0] for targets in outcomes) for s in (scores, scores[[1, 0, 2]]))
    assert (abs(before - after) < 1e-12) == linear


@pytest.mark.parametrize("name", ["ap", "rr", "err", "auc", "pd", "wpd", "zero_one"])
def test_two_items_always_have_one(name):
    """The difference of the two values."""
    assert impossibility(name, n_items=2) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ap", oracles.ap),
        ("ap@2", lambda y, order: oracles.ap(y, order, 2)),
        ("ap@1", lambda y, order: oracles.ap(y, order, 1)),
        ("rr", oracles.rr),
        ("rr@1", lambda y, order: oracles.rr(y, order, 1)),
        ("p@2", lambda y, order: oracles.precision(y, order, 2)),
        ("auc", oracles.auc),
    ],
)
def test_linear_inequalities_say_the_same(name, value):
    """A linear program decides if numbers r(y) satisfy what many mixtures ask for."""
    space = list(map(plain, every_label("binary", 3)))
    mixtures = oracles.mixtures_of(len(space), np.random.default_rng(0))
    exists = oracles.may_be_standardized(value, space, mixtures)
    assert (impossibility(name, n_items=3) is None) == exists


# ---------------------------------------------------------------- proofs that are none


def changed(proof, pattern, **fields):
    """The proof with the refutation of one pattern changed."""
    return {
        "refutations": tuple(e._replace(**fields) if e.pattern == pattern else e for e in proof.refutations)
    }


def scaled(proof, factor, **fields):
    """The proof with all values multiplied."""
    contrast = tuple((order, factor * value) for order, value in proof.contrast)
    return {"value": factor * proof.value, "contrast": contrast, **fields}


HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
EQUAL, BLOCKS = ((0, 1, 2, 3),), ((0, 1), (2, 3))
NOTHING = np.zeros(4)  # adds 0 to every value
WRONG = {  # of the proof for ap; where it can be, nothing else is wrong
    "other probabilities": lambda _: {"probs": (Fraction(1, 3), Fraction(2, 3))},
    "probabilities below 1": lambda p: scaled(p, HALF, probs=(QUARTER, QUARTER)),
    "a probability below 0": lambda p: scaled(
        p, Fraction(3, 2), labels=(*p.labels, NOTHING), probs=(3 * QUARTER, 3 * QUARTER, -HALF)
    ),
    "a probability too many": lambda _: {"probs": (HALF, QUARTER, QUARTER)},
    "another label": lambda p: {"labels": (p.labels[0], np.array([0.0, 1, 1, 0]))},
    "a label of another space": lambda p: {"labels": (p.labels[0], np.array([0.0, 0, 1, 2]))},
    "a label nearly of the space": lambda p: {"labels": (p.labels[0], np.array([0.0, 0, 1, 1 + 1e-9]))},
    "another metric": lambda _: {"metric": cc.metric("rr")},
    "an irrational metric": lambda _: {"metric": cc.metric("dcg")},
    "a metric that has one": lambda _: {"metric": cc.metric("p@2")},
    "a best order too few": lambda p: {"best": p.best[:-1]},
    "a best order too many": lambda p: {"best": (*p.best, (0, 2, 1, 3))},
    "a wrong best order": lambda p: {"best": (*p.best[:-1], (0, 2, 1, 3))},
    "a wrong value": lambda p: {"value": p.value + 1},
    "a wrong contrast": lambda p: {"contrast": (p.contrast[0], ((0, 2, 1, 3), Fraction(1, 2)))},
    "no contrast": lambda p: {"contrast": (p.contrast[0], p.contrast[0])},
    "a contrast of worse to better": lambda p: {"contrast": p.contrast[::-1]},
    "a contrast of other items": lambda p: {"contrast": (p.contrast[0], ((0, 1), HALF))},
    "a pattern left out": lambda p: {"refutations": p.refutations[1:]},
    "a pattern instead of another": lambda p: {"refutations": (*p.refutations[1:], p.refutations[1])},
    "a pattern twice": lambda p: {"refutations": (*p.refutations, p.refutations[1])},
    "an order that is best": lambda p: changed(p, EQUAL, order=p.best[0]),
    "an incompatible order": lambda p: changed(p, ((0,), (2,), (1,), (3,)), order=(0, 2, 3, 1)),
    "no reason": lambda p: changed(p, EQUAL, order=None),
    "a label that refutes nothing": lambda p: changed(p, BLOCKS, label=np.zeros(4)),
    "a label that refutes another": lambda p: changed(p, BLOCKS, label=np.array([1.0, 0, 0, 0])),
    "a label mixed in of another space": lambda p: changed(p, BLOCKS, label=np.array([0.0, 0, 2, 0])),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_proof_fails(proofs, name):
    proof = proofs[("ap",)]
    assert dataclasses.replace(proof).verify()
    assert not dataclasses.replace(proof, **WRONG[name](proof)).verify()


def test_rounded_probabilities_are_no_proof(proofs):
    proof = proofs[("zero_one",)]
    assert not dataclasses.replace(proof, probs=(0.5, 0.5)).verify()


def test_what_is_not_refuted_has_no_entry():
    """At a distribution with a standardization, patterns stay, and what is written down is no proof."""
    metric, labels = cc.metric("p@2"), every_label("binary", 4)
    mixed = mixing.LabelMixture(
        (np.array([1.0, 1, 0, 0]), np.array([0.0, 0, 1, 1])), (Fraction(1, 3), Fraction(2, 3))
    )
    draft = build_proof(metric, "binary", 1, mixed, labels)
    assert 0 < len(draft.refutations) < 75
    assert not draft.verify()


# ---------------------------------------------------------------- the search

SMALL = st.integers(0, 3)


def as_table(worth):
    """A table of made-up values of 3 or 4 items."""
    orders = list(itertools.permutations(range({6: 3, 24: 4}[len(worth[0])])))
    labels = [np.eye(len(worth))[k] for k in range(len(worth))]
    rows = np.array(worth, dtype=object)
    return mixing.WorthTable(
        labels, [Fraction(k) for k in range(len(worth))], labels, orders, rows, [*range(len(worth))]
    )


@given(
    st.lists(st.tuples(*[st.integers(0, 2) | st.just(10**30)] * 4), min_size=1, max_size=6),
    st.lists(st.integers(0, 3) | st.just(10**25), min_size=4, max_size=4),
)
@settings(max_examples=60)
def test_whatever_has_a_standardization_is_never_ruled_out(r, discounts):
    """The sum of discount times r_i(y) is best for orders sorted by E r; ties, zeros and huge numbers too."""
    falling = sorted(discounts, reverse=True)
    orders = itertools.permutations(range(4))
    worth = [[sum(c * row[i] for c, i in zip(falling, order, strict=True)) for row in r] for order in orders]
    assert mixing.find_refuting_mixture(as_table(np.array(worth, dtype=object).T.tolist())) is None


@given(st.lists(st.lists(SMALL, min_size=6, max_size=6), min_size=1, max_size=4))
@settings(max_examples=150)
def test_ruled_out_means_that_no_pattern_survives(worth):
    table = as_table(worth)
    columns = {order: column for column, order in enumerate(table.orders)}
    space = [[row] * 3 for row in range(len(worth))]  # what stands for a label is as long as there are items

    def left(rows, probs):
        labels = [space[row] for row in rows]
        return oracles.surviving_patterns(
            lambda y, order: worth[y[0]][columns[tuple(order)]], space, labels, probs
        )

    mixture = mixing.find_refuting_mixture(table)
    event(f"found: {mixture is not None}")
    if mixture is not None:
        assert not left([int(np.argmax(label)) for label in mixture.labels], mixture.probs)
        return
    for count in (1, 2, 3):
        for rows in itertools.combinations(range(len(worth)), count):
            assert left(rows, [Fraction(1, count)] * count)


@given(st.lists(st.tuples(SMALL | st.just(10**20), SMALL), min_size=1, max_size=8))
def test_tipping_points(lines):
    first, second = zip(*lines, strict=True)
    assert list(mixing.tipping_points(first, second)) == oracles.tipping_shares(first, second)


def test_patterns():
    for n, number in ((1, 1), (2, 3), (3, 13), (4, 75), (5, 541)):
        every = patterns.every_pattern(n)
        assert len(set(every)) == number
        scores = {tuple(-next(k for k, b in enumerate(p) if i in b) for i in range(n)) for p in every}
        lifted = {tuple(s - min(levels) for s in levels) for levels in scores}
        assert lifted == set(oracles.weak_orders(n))
    for pattern in patterns.every_pattern(4):
        scores = [-next(k for k, block in enumerate(pattern) if i in block) for i in range(4)]
        assert sorted(patterns.compatible(pattern)) == sorted(map(tuple, oracles.compatible_orders(scores)))


@given(st.sets(st.permutations(range(3)).map(tuple), min_size=1))
def test_a_set_of_orders_is_written_by_patterns_that_make_it_up(orders):
    cover = patterns.coarsest(
        p for p in patterns.every_pattern(3) if orders.issuperset(patterns.compatible(p))
    )
    assert {order for pattern in cover for order in patterns.compatible(pattern)} == orders
    assert patterns.written_orders(orders) == " or ".join(map(patterns.written_pattern, cover))


# ---------------------------------------------------------------- what is said


def test_it_reads_as_an_argument(proofs):
    text = str(proofs["pd", ("n_items", 3)])
    assert text.startswith(
        "pd on preferences has no standardization r(y), for 3 items.\nLet y be 1>2 or 2>3 or 3>1"
    )
    assert "E[pd] is smallest, 1/3, for 1>2>3 or 2>3>1 or 3>1>2: 3 of 6 orders" in text
    assert "1>2>3: mix a little of 2>1 into y, and the best orders are only 2>3>1." in text
    assert "on grades 0 to 2 has" in str(proofs["pd", *GRADES.items()])
    for proof in proofs.values():
        lines = str(proof).splitlines()
        assert len(lines) <= 20
        assert max(map(len, lines)) <= 110


def test_every_pattern_that_is_left_is_covered_by_the_text(proofs):
    """What is written is the coarsest; its label refutes whatever breaks its ties."""
    for proof in proofs.values():
        left = [each.pattern for each in proof.refutations if each.label is not None]
        order_sets = [set(patterns.compatible(p)) for p in patterns.coarsest(left)]
        assert all(any(set(patterns.compatible(p)) <= more for more in order_sets) for p in left)
        for pattern in map(patterns.written_pattern, patterns.coarsest(left)):
            assert pattern in str(proof)


def test_to_dict_is_plain(proofs):
    given_back = json.loads(json.dumps(proofs[("ap",)].to_dict()))
    assert given_back["distribution"] == dict.fromkeys(HALVES, "1/2")
    assert given_back["value"] == "17/24"
    assert given_back["contrast"] == {"1>2>3>4": "17/24", "1>3>2>4": "2/3"}
    assert len(given_back["refutations"]) == 75
    assert {"pattern": "{1,2,3,4}", "order": "1>3>2>4"} in given_back["refutations"]
    assert {"pattern": "{1,2}>{3,4}", "label": "(0,0,1,0)"} in given_back["refutations"]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"metric": "ap", "n_items": 6}, ParameterError, "2 to 5"),
        ({"metric": "ap", "n_items": 1}, ParameterError, "2 to 5"),
        ({"metric": "ap", "n_items": 4.0}, ParameterError, "integer"),
        ({"metric": "ap", "highest": 0}, ParameterError, "highest must be "),
        ({"metric": "ap", "labels": "preferences"}, ParameterError, "'binary' or 'grades' for ap"),
        ({"metric": "ap", "labels": "binry"}, UnknownNameError, "Did you mean 'binary'"),
        ({"metric": "ap", "labels": None}, UnknownNameError, "label space"),
        ({"metric": "apx"}, UnknownNameError, "metric"),
        ({"metric": "comparison_error"}, ParameterError, "not rankings"),
    ],
)
def test_bad_input_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        impossibility(**arguments)
