"""Exact arithmetic: enclosures, values, targets and minimisers, compared with the kernels."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize

from concordant.data.labels import Grades, Permutations, Preferences
from concordant.data.queries import Queries
from concordant.data.synthetic import LabelDistribution
from concordant.data.synthetic.distribution import tile
from concordant.exceptions import (
    ConcordantError,
    GradeError,
    LabelError,
    LengthMismatchError,
    NoStandardizationError,
    ParameterError,
    UnknownNameError,
)
from concordant.metrics import metric
from concordant.metrics.metric import Metric
from concordant.metrics.standardization import usable_targets
from concordant.surrogates import Duchi, Pairwise, PlackettLuce, PositionHinge, Preorder, Softmax, Squared
from concordant.surrogates.margins import Margin, margin
from concordant.surrogates.order_hinge import ListwiseHinge
from concordant.surrogates.pointwise import Penalty
from concordant.theory import regret as doubles
from concordant.theory.exact import enclosure
from concordant.theory.exact import linear_equations as linear
from concordant.theory.exact.enclosure import Enclosure, exact, high, log2, low, power2, sign, text, total
from concordant.theory.exact.exact_labels import fraction, read
from concordant.theory.exact.exact_targets import targets
from concordant.theory.exact.exact_values import (
    best_value,
    compatible_orders,
    expected_value,
    mean_value,
    order_value,
    regret,
)
from concordant.theory.exact.pair_losses import Quadratic, expected_pairs
from concordant.theory.exact.polyhedral import expected_terms, polyhedral_minimiser
from concordant.theory.exact.stationary import derivatives, exact_minimiser, verdict_of
from studies.consistency.minimiser import minimiser

pytestmark = pytest.mark.once

fractions = st.fractions(-50, 50, max_denominator=60)


# -- enclosures ----------------------------------------------------------------------------------------------


def is_minimiser(*case):
    return verdict_of(*case) is not None


def decimal(value):
    return Decimal(value.numerator) / Decimal(value.denominator)


def contains(interval, value, digits=90):
    """True if an enclosure contains a decimal, which itself is off by one in its last digits."""
    slack = Decimal(10) ** -digits * max(abs(value), 1)
    return decimal(low(interval)) - slack <= value <= decimal(high(interval)) + slack


@pytest.mark.parametrize("bits", [4, 30, 64, 200])
def test_logarithms_are_enclosed(bits):
    with localcontext(prec=120):
        for k in [*range(1, 40), 10**9 + 7, 2**40 - 1, 2**40 + 1]:
            interval = log2(k, bits)
            assert contains(interval, Decimal(k).ln() / Decimal(2).ln()), k
            assert interval.high - interval.low <= Fraction(1, 2**bits)
    assert all(log2(2**p, bits) == Enclosure(Fraction(p), Fraction(p)) for p in range(9))


@given(fractions, st.sampled_from([4, 30, 64, 200]))
def test_powers_of_two_are_enclosed(exponent, bits):
    interval = power2(exponent, bits)
    with localcontext(prec=120):
        assert contains(interval, Decimal(2) ** decimal(exponent))
    assert interval.high - interval.low <= interval.low / 2**bits
    assert (interval.low == interval.high) == (exponent.denominator == 1)


def test_a_logarithm_that_is_off_is_not_contained():
    with localcontext(prec=120):
        value = Decimal(3).ln() / Decimal(2).ln()
        width = log2(3).high - log2(3).low
        assert not contains(log2(3) + 2 * width, value)
        assert not contains(log2(3) - 2 * width, value)


ends = st.tuples(fractions, fractions).map(sorted)


@given(ends, ends, st.fractions(0, 1), st.fractions(0, 1))
def test_operations_contain_those_of_what_is_enclosed(first, second, share, other):
    a, b = Enclosure(*first), Enclosure(*second)
    x = a.low + share * (a.high - a.low)
    y = b.low + other * (b.high - b.low)
    results = [(a + b, x + y), (a - b, x - y), (a * b, x * y), (-a, -x)]
    results += [
        (a + y, x + y),
        (y + a, x + y),
        (a - y, x - y),
        (y - a, y - x),
        (a * y, x * y),
        (y * a, x * y),
    ]
    if sign(b) in (1, -1):
        results += [(a / b, x / y), (x / b, x / y), (a / y, x / y)]
    for interval, value in results:
        assert low(interval) <= value <= high(interval)
    assert sign(a) in (None, (x > 0) - (x < 0))


def test_signs_and_degenerate_enclosures():
    unit, around = Fraction(1), Enclosure(Fraction(-1), Fraction(1))
    assert [sign(v) for v in (unit, -unit, 0, around, Enclosure(unit, unit), Enclosure(-unit, -unit))] == [
        1, -1, 0, None, 1, -1,
    ]  # fmt: skip
    assert Enclosure(Fraction(), unit).sign() is None
    assert Enclosure(Fraction(), Fraction()).sign() == 0
    assert exact(Enclosure(unit, unit)) == unit
    assert exact(around) is not None
    assert total([]) == 0
    assert total([unit, around]) == Enclosure(Fraction(), Fraction(2))
    with pytest.raises(ParameterError, match="at most high"):
        Enclosure(unit, -unit)
    for zero in (around, 0, Enclosure(Fraction(), Fraction())):
        with pytest.raises(ParameterError, match="differ from 0"):
            Enclosure(unit, unit) / zero
    for wrong in (0, -3, 2.5):
        with pytest.raises(ParameterError, match="an integer >= 1"):
            log2(wrong)


def test_numbers_are_written_for_people():
    assert text(Fraction(-1, 48)) == "-1/48"
    assert text(Fraction(-(10**7) - 1, 10**7)) == "-10000001/10000000 (-1.000000...)"
    assert text(-log2(3)) == "about -1.584963"
    assert text(Enclosure(Fraction(-1, 3), Fraction(1))) == "between -0.333334 and 1.000000"
    assert enclosure.decimals(Fraction(-1, 2 * 10**6), math.floor) == "-0.000001"


# -- labels --------------------------------------------------------------------------------------------------


def test_labels_are_read_as_fractions():
    assert read(np.array([0.1, 2.0])).grades == (Fraction(1, 10), Fraction(2))
    assert read(Grades([1, 0])) == read(np.array([1.0, 0.0]))
    assert read(read(Grades([1, 0]))) == read(Grades([1, 0]))
    votes = read(Preferences([0, 0, 1, 2], [1, 1, 2, 0], 3, [1.0, 0.5, 0.0, 2.0]))
    assert votes.pairs == ((0, 1, Fraction(3, 2)), (2, 0, Fraction(2)))
    places = read(Permutations([2, 3, 1]))
    assert (places.grades, places.order) == ((2, 1, 3), (2, 0, 1))
    assert fraction(Fraction(1, 3)) == Fraction(1, 3)
    for wrong in (np.array([math.nan, 1.0]), np.array([-1.0]), np.ones((2, 2))):
        with pytest.raises(ParameterError, match="finite grade"):
            read(wrong)
    with pytest.raises(LabelError, match=r"not 1\.\.4"):
        read(Permutations([1, 2, 1, 2]))


# -- values --------------------------------------------------------------------------------------------------

GRADED = [
    "dcg", "dcg@2", "dcg@9", "dcg[gain=linear,discount=mslr]", "ndcg", "ndcg@1", "ndcg@2", "ndcg@9",
    "ndcg@4[short_list=zero]", "ndcg@3[mslr]", "ndcg[lightgbm]", "ndcg[sklearn]", "err", "err@1", "err@2",
    "err[max_grade=2.5]", "err@2[max_grade=3]", "ap", "ap@1", "ap@2", "ap@2[lightgbm]", "ap@2[mslr]",
    "ap@1[ranklib]", "ap@2[ranklib]", "ap[catboost]", "ap[mslr]", "ap@2[relevant_from=2]", "p@1", "p@2",
    "p@9", "p@9[xgboost]", "p@2[relevant_from=2]", "rr", "rr@1", "rr@2", "rr[mslr]", "eru", "eru@2",
    "eru(v=1,w=2)", "eru(v=0.1,w=2.7)@3", "pd", "wpd", "wpd[gain=linear]", "auc", "auc[lightgbm]",
    "auc[relevant_from=2]",
]  # fmt: skip
PERMUTED, PREFERRED = ["zero_one"], ["pd", "wpd"]


def small_labels(name):
    """Labels of one to four items, of every kind that the metric reads."""
    labels = []
    if name in PERMUTED:
        for n in (1, 2, 3, 4):
            labels += [Permutations.from_orders([order]) for order in itertools.permutations(range(n))]
        return labels
    if name in PREFERRED:
        rng = np.random.default_rng(0)
        for n in (2, 3, 4):
            for _ in range(12):
                edges = rng.integers(0, n, (rng.integers(0, 6), 2))
                edges = edges[edges[:, 0] != edges[:, 1]]
                weights = rng.integers(0, 4, len(edges)) / 2
                labels.append(Preferences(edges[:, 0], edges[:, 1], n, weights))
    for n, highest in ((1, 2), (2, 2), (3, 2), (4, 1)):
        labels += [np.array(y, dtype=float) for y in itertools.product(range(highest + 1), repeat=n)]
    return [*labels, np.array([0.5, 1.25, 2.0]), np.array([2.0, 0.0, 1.0, 2.0])]


def per_order(ranking_metric, label):
    """The kernel's value of every order of the items, each order a query; undefined ones 0."""
    n = len(label)
    orders = list(itertools.permutations(range(n)))
    scores = -np.argsort(np.array(orders), axis=1).astype(float)
    copies = Queries.from_sizes([n] * len(orders))
    values = ranking_metric.per_query(tile(label, np.arange(n), len(orders)), scores.ravel(), qid=copies)
    return orders, np.nan_to_num(values, nan=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*GRADED, *PERMUTED])
def test_values_are_those_of_the_kernels(name):
    ranking_metric = metric(name)
    labels = small_labels(name.partition("[")[0])
    for label in labels[:: max(1, len(labels) // 15)]:
        for order, value in zip(*per_order(ranking_metric, label), strict=True):
            interval = order_value(ranking_metric, label, order)
            assert float(low(interval)) == pytest.approx(value, abs=1e-12), (label, order)
            assert high(interval) - low(interval) <= Fraction(1, 2**40)


@pytest.mark.parametrize("name", PREFERRED)
def test_values_of_preferences_are_those_of_the_kernels(name):
    for label in small_labels(name):
        for order, value in zip(*per_order(metric(name), label), strict=True):
            assert float(low(order_value(metric(name), label, order))) == pytest.approx(value, abs=1e-12)


def test_what_has_no_exact_value_is_refused():
    label = np.array([1.0, 0.0])
    unnamed = Metric.convention.replace(gain=np.sqrt)
    for ranking_metric in (
        metric("dcg", convention=unnamed),
        metric("dcg", convention=Metric.convention.replace(discount=lambda places: 1.0 / places)),
        metric("err[max_grade=data]"),
        metric("comparison_error"),
    ):
        with pytest.raises(ParameterError):
            order_value(ranking_metric, label, (0, 1))
    with pytest.raises(ParameterError, match="a permutation of 0 to 1"):
        order_value(metric("ap"), label, (0, 0))
    with pytest.raises(GradeError, match="gives no probability"):
        order_value(metric("err"), np.array([5.0, 0.0]), (0, 1))
    with pytest.raises(LabelError, match="reads grades"):
        order_value(metric("ap"), Permutations([1, 2]), (0, 1))
    with pytest.raises(LabelError, match="reads permutations"):
        order_value(metric("zero_one"), label, (0, 1))
    with pytest.raises(LengthMismatchError):
        expected_value(metric("ap"), (label,), (Fraction(1, 2), Fraction(1, 2)), (0, 1))
    with pytest.raises(ParameterError, match="at most 7"):
        best_value(metric("ap"), (np.ones(8),), (Fraction(1),))


def test_the_example_of_theorem_3_comes_out():
    intents = (np.array([1.0, 1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 1.0]))
    half = (Fraction(1, 2), Fraction(1, 2))
    orders = (0, 2, 1, 3), (0, 1, 2, 3)
    differences = {}
    for name in ("err[max_grade=1]", "ap"):
        apart, together = (expected_value(metric(name), intents, half, order) for order in orders)
        differences[name] = apart - together
    assert differences == {"err[max_grade=1]": Fraction(1, 48), "ap": Fraction(-1, 24)}


rational_probs = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(
    lambda parts: tuple(Fraction(part, sum(parts)) for part in parts)
)


def drawn(seed, name, n_labels, n_items):
    rng = np.random.default_rng(seed)
    if name == "zero_one":
        return tuple(Permutations(rng.permutation(n_items) + 1) for _ in range(n_labels))
    highest = 1 if name in ("auc", "pd") else 3
    return tuple(rng.integers(0, highest + 1, n_items).astype(float) for _ in range(n_labels))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ndcg", "ndcg@2", "ap", "err", "rr@2", "pd", "auc", "zero_one", "eru"])
@settings(max_examples=25)
@given(st.integers(0, 10**6), rational_probs, st.integers(1, 4), st.data())
def test_mean_best_and_regret_are_those_of_the_kernels(name, seed, probs, n_items, data):
    labels = drawn(seed, name, len(probs), n_items)
    scores = data.draw(st.lists(st.integers(0, 2).map(Fraction), min_size=n_items, max_size=n_items))
    ranking_metric, floats = metric(name), np.array(scores, dtype=float)
    distribution = LabelDistribution(labels, [[float(p) for p in probs]], Queries.from_sizes([n_items]))
    mean = mean_value(ranking_metric, labels, probs, scores)
    assert float(low(mean)) == pytest.approx(
        doubles.expected(ranking_metric, distribution, floats)[0], abs=1e-12
    )
    orders, best = best_value(ranking_metric, labels, probs)
    assert float(low(best)) == pytest.approx(doubles.bayes(ranking_metric, distribution).values[0], abs=1e-12)
    gap = regret(ranking_metric, labels, probs, scores)
    assert float(high(gap)) == pytest.approx(
        doubles.regret(ranking_metric, distribution, floats)[0], abs=1e-11
    )
    assert low(gap) >= 0
    for order in orders:  # none of those is proven worse than another
        assert (
            sign(regret(ranking_metric, labels, probs, [-Fraction(order.index(i)) for i in range(n_items)]))
            != 1
        )


def test_a_regret_of_zero_is_known_where_only_one_order_is_best():
    labels = (np.array([2.0, 1.0, 0.0]),)
    assert regret(metric("ndcg"), labels, (Fraction(1),), [Fraction(v) for v in (5, 3, 1)]) == 0
    assert sign(regret(metric("ndcg"), labels, (Fraction(1),), [Fraction(v) for v in (5, 5, 1)])) == 1


def test_ties_allow_every_order_of_a_block():
    assert compatible_orders([Fraction(0)] * 3) == list(itertools.permutations(range(3)))
    assert compatible_orders([Fraction(1)]) == [(0,)]


# -- targets -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", [*GRADED, *PERMUTED])
def test_targets_are_those_of_the_package(name):
    ranking_metric = metric(name)
    for label in small_labels(name):
        queries = Queries.from_sizes([len(label)])
        for assume in (None, "P_reinforce", "low_noise", "P_f", "order_preserving"):
            try:
                expected = usable_targets(ranking_metric, ranking_metric.read_labels(label), queries, assume)[
                    0
                ]
            except NoStandardizationError:
                with pytest.raises(NoStandardizationError):
                    targets(ranking_metric, label, assume)
                continue
            if name == "pd" and isinstance(label, np.ndarray):  # as among labels of three grades
                more = Queries.from_sizes([3, len(label)])
                among = ranking_metric.read_labels(np.concatenate(([2.0, 1.0, 0.0], label)))
                expected = usable_targets(ranking_metric, among, more)[0][3:]
            values = [float(low(target)) for target in targets(ranking_metric, label, assume)]
            np.testing.assert_allclose(values, expected, atol=1e-12, err_msg=f"{label} {assume}")


def test_targets_refuse_what_they_cannot_read():
    with pytest.raises(UnknownNameError, match="condition"):
        targets(metric("ap"), np.ones(2), "hope")
    with pytest.raises(ParameterError, match="metric must be dcg"):
        targets(metric("comparison_error"), np.ones(2))
    with pytest.raises(ConcordantError):
        targets(metric("zero_one"), np.ones(2))
    with pytest.raises(LabelError, match="reads grades"):
        targets(metric("ndcg"), Permutations([1, 2]))


# -- linear equations ----------------------------------------------------------------------------------------

small = st.integers(-3, 3).map(Fraction)
systems = st.tuples(st.integers(1, 4), st.integers(1, 4)).flatmap(
    lambda shape: st.tuples(
        st.lists(st.lists(small, min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0]),
        st.lists(small, min_size=shape[0], max_size=shape[0]),
        st.lists(small, min_size=shape[1], max_size=shape[1]),
    )
)


@given(systems)
def test_equations_are_solved_where_they_can_be(system):
    matrix, right, start = system
    floats = np.array(matrix, dtype=float)
    consistent = np.linalg.matrix_rank(np.c_[floats, np.array(right, float)]) == np.linalg.matrix_rank(floats)
    assert linear.rank(matrix) == np.linalg.matrix_rank(floats)
    for solution in (linear.solve(matrix, right, start), linear.nearest(matrix, right, start)):
        assert (solution is not None) == consistent
        if solution is not None:
            assert [linear.dot(row, solution) for row in matrix] == right
    if consistent:
        best = linear.nearest(matrix, right, start)
        moved = np.linalg.lstsq(floats, np.array(right, float) - floats @ np.array(start, float), rcond=None)[
            0
        ]
        np.testing.assert_allclose(np.array(best, float), np.array(start, float) + moved, atol=1e-9)


@given(systems, st.lists(st.fractions(0, 1), min_size=4, max_size=4))
def test_enclosed_sides_give_enclosed_solutions(system, widths):
    matrix, right, start = system
    wide = [Enclosure(side, side + width) for side, width in zip(right, widths, strict=False)]
    solution, inner = linear.solve(matrix, wide, start), linear.solve(matrix, right, start)
    if solution is not None and inner is not None:
        assert all(
            low(interval) <= value <= high(interval) for interval, value in zip(solution, inner, strict=True)
        )
    if linear.rank(matrix) == len(matrix):
        assert solution is not None


# -- minimisers ----------------------------------------------------------------------------------------------


def surrogate_targets(ranking_metric, surrogate, label):
    """What the package tells the surrogate."""
    queries = Queries.from_sizes([len(label)])
    if surrogate.reads == "targets":
        return usable_targets(ranking_metric, ranking_metric.read_labels(label), queries)[0]
    if isinstance(label, Permutations):
        graded = surrogate.reads == "grades"
        return label.grades(queries) if graded else np.asarray(label.positions, dtype=float)
    return label


def kernel_loss(ranking_metric, surrogate, labels, probs):
    """Value and gradient of the expected loss, by the kernels."""
    n = len(labels[0])
    rows = np.concatenate([surrogate_targets(ranking_metric, surrogate, label) for label in labels])
    weights = np.repeat([float(prob) for prob in probs], n)
    loss = surrogate.bind(rows, np.arange(len(labels) + 1) * n, weights)

    def value_and_grad(scores):
        values, grad = loss.value_and_grad(np.tile(scores, len(labels)))
        return values.sum(), grad.reshape(len(labels), n).sum(axis=0)

    return value_and_grad


def found_in_doubles(ranking_metric, surrogate, labels, probs, rng):
    n = len(labels[0])
    if not surrogate.smooth:
        return polyhedral_minimiser(ranking_metric, surrogate, labels, probs, direction=rng.normal(size=n))
    options = {"gtol": 1e-10, "maxiter": 1000}
    loss = kernel_loss(ranking_metric, surrogate, labels, probs)
    return minimize(loss, np.zeros(n), jac=True, method="BFGS", options=options).x


def as_scores(pin, surrogate):
    numbers = np.array([float(low(number)) for number in pin.scores])
    if pin.unit == "slopes" and surrogate.penalty.name == "quartic":
        return np.array([brentq(quartic_gap, -9, 9, args=(slope,)) for slope in numbers])
    if pin.unit == "slopes":
        return np.arcsinh(numbers)
    return numbers if pin.unit == "scores" else np.log(numbers) / (1 if pin.unit == "weights" else 2)


def quartic_gap(z, slope):
    return 2 * z + 4 * z**3 - slope


SURROGATES = {
    "squared": Squared(),
    "plain squared": Squared(centred=False),
    "duchi": Duchi(nu=0.3),
    "duchi cosh": Duchi("cosh"),
    "duchi quartic": Duchi("quartic", nu=2.0),
    "softmax": Softmax(),
    "pairwise": Pairwise(),
    "pairwise per pair": Pairwise("huber_hinge(0.1)", normalize=True),
    "pairwise squared": Pairwise("squared_hinge"),
    "pairwise logistic": Pairwise("logistic"),
    "pairwise exponential": Pairwise("exponential"),
    "pairwise hinge": Pairwise("hinge"),
    "preorder": Preorder(),
    "preorder pairs": Preorder("pairs", "squared_hinge"),
    "preorder gain": Preorder("gain"),
    "preorder gain hinge": Preorder("gain", "hinge"),
    "preorder logistic": Preorder("unit", "logistic"),
    "preorder gain exponential": Preorder("gain", "exponential"),
    "position hinge": PositionHinge(),
    "position hinge pairs": PositionHinge("pairs"),
    "position hinge all": PositionHinge("all_pairs"),
}
ALWAYS = (
    "squared",
    "plain squared",
    "duchi",
    "duchi cosh",
    "duchi quartic",
    "pairwise hinge",
    "position hinge",
)
COMBINATIONS = [(name, kind) for name in ("ap", "dcg", "zero_one") for kind in SURROGATES]
COMBINATIONS = [(name, kind) for name, kind in COMBINATIONS if name != "zero_one" or "gain" not in kind]
LISTWISE = [(name, mode) for name in ("ap", "auc", "p@2", "wpd", "eru(v=0,w=2)") for mode in ("max", "sum")]


def combined(name, kind):
    ranking_metric = metric(name)
    if kind in ("max", "sum"):
        return ranking_metric, ListwiseHinge(ranking_metric, kind)
    return ranking_metric, PlackettLuce() if kind == "plackett_luce" else SURROGATES[kind]


def mixture(name, rng, n_items=4, n_labels=None):
    n_labels = n_labels or int(rng.integers(1, 5))
    labels = drawn(int(rng.integers(10**6)), name.partition("(")[0], n_labels, n_items)
    if name == "ap":
        labels = tuple(np.minimum(label, 1.0) for label in labels)
    parts = rng.integers(1, 7, n_labels)
    return labels, tuple(Fraction(int(part), int(parts.sum())) for part in parts)


def subsets(n):
    """Directions in which one group of items moves against the others."""
    return [np.array(way) for way in itertools.product((0, 1), repeat=n) if 0 < sum(way) < n]


def moved(scores, direction, step):
    return tuple(score + step * int(way) for score, way in zip(scores, direction, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), [*COMBINATIONS, *LISTWISE, ("zero_one", "plackett_luce")])
def test_what_is_pinned_minimises_the_loss_of_the_package(name, kind):
    ranking_metric, surrogate = combined(name, kind)
    rng, count = np.random.default_rng(7), 0
    for _ in range(7):
        labels, probs = mixture(
            name, rng, n_labels=5 if "logistic" in kind or kind == "plackett_luce" else None
        )
        near = found_in_doubles(ranking_metric, surrogate, labels, probs, rng)
        pin = exact_minimiser(ranking_metric, surrogate, labels, probs, near)
        if pin is None:
            assert kind not in ALWAYS
            continue
        count += 1
        assert is_minimiser(ranking_metric, surrogate, labels, pin.probs, pin.scores, pin.unit)
        assert (sum(pin.probs), len(pin.probs)) == (1, len(labels))
        assert min(pin.probs) > 0
        loss, scores = kernel_loss(ranking_metric, surrogate, labels, pin.probs), as_scores(pin, surrogate)
        value, grad = loss(scores)
        if surrogate.smooth:
            np.testing.assert_allclose(grad, 0.0, atol=1e-9)
        if pin.probs == probs:
            assert value <= loss(near)[0] + 1e-9
        for way in [*subsets(4), *rng.normal(size=(6, 4))]:
            for step in (1e-3, -0.3):
                higher = loss(scores + step * way)[0]
                assert higher >= value - 1e-12
                if pin.unique and np.ptp(way) > 0:
                    assert higher > value + 1e-12
    assert count >= (1 if kind in ("preorder logistic", "preorder gain exponential") else 3)


@pytest.mark.parametrize("kind", SURROGATES)
def test_wrong_scores_are_rejected(kind):
    surrogate, rng, count = SURROGATES[kind], np.random.default_rng(3), 0
    for _ in range(6):
        labels, probs = mixture("dcg", rng, n_items=3, n_labels=4)
        near = found_in_doubles(metric("dcg"), surrogate, labels, probs, rng)
        pin = exact_minimiser(metric("dcg"), surrogate, labels, probs, near)
        if pin is None:
            continue
        count += 1
        arguments = metric("dcg"), surrogate, labels, pin.probs
        level = kind not in ("plain squared", "duchi") and pin.unit == "scores"
        assert is_minimiser(*arguments, moved(pin.scores, (1, 1, 1), Fraction(1, 7)), pin.unit) == level
        if pin.unique and any(pin.scores):
            scaled = is_minimiser(*arguments, [3 * number for number in pin.scores], pin.unit)
            assert scaled == (pin.unit in ("weights", "squared weights"))
        for way in subsets(3):
            other = moved(pin.scores, way, Fraction(1, 10**9))
            accepted = is_minimiser(*arguments, other, pin.unit)
            if pin.unique:
                assert not accepted
            elif accepted:
                loss = kernel_loss(*arguments)
                assert loss(np.array(other, float))[0] == pytest.approx(loss(np.array(pin.scores, float))[0])
        for unit in ("scores", "weights", "squared weights", "slopes", "miles"):
            assert is_minimiser(*arguments, pin.scores, unit) == (unit == pin.unit)
    assert count > 0


rational_weights = st.dictionaries(
    st.sampled_from([(i, j) for i in range(3) for j in range(3) if i != j]), st.integers(1, 3).map(Fraction)
)


@given(rational_weights, st.sampled_from(["squared_hinge", "huber_hinge", "huber_hinge(0.25)"]))
def test_only_minimisers_are_distinguished_from_faces(weights, name):
    """A unique minimiser does not bear any group of items to move; another one lets some group move."""
    pieces = Quadratic.from_margin(margin(name))
    for scores in pieces.stationary(weights, np.array([0.0, 0.1, -0.2])):
        if any(pieces.gradient(weights, scores)):
            continue
        steps = [Fraction(1, 10**6), Fraction(-1, 10**6)]
        others = [moved(scores, way, step) for way in subsets(3) for step in steps]
        free = any(not any(pieces.gradient(weights, other)) for other in others)
        assert pieces.unique(weights, scores) == (not free)


def test_corners_of_curvature_hold_on_one_side_only():
    pieces = Quadratic.from_margin(margin("huber_hinge"))
    ahead = {(0, 1): Fraction(1)}
    for score, zero in ((Fraction(3, 2), True), (Fraction(2), True), (Fraction(7, 5), False)):
        assert (not any(pieces.gradient(ahead, (score, Fraction())))) == zero
        assert not pieces.unique(ahead, (score, Fraction())) or not zero
    # Where the tangent starts a difference may only shrink, at the edge only grow: a ring of these holds all.
    pieces = Quadratic(edge=Fraction(1), width=Fraction(1, 2), scale=Fraction(1))
    scores = (Fraction(1), Fraction(1, 2), Fraction())
    ring = dict.fromkeys([(0, 1), (1, 0), (1, 2), (2, 1), (0, 2)], Fraction(1))
    assert not any(pieces.gradient(ring, scores))
    assert pieces.unique(ring, scores)
    for way in subsets(3):
        assert any(any(pieces.gradient(ring, moved(scores, way, Fraction(step, 100)))) for step in (1, -1))
    del ring[0, 2]
    assert not any(pieces.gradient(ring, scores))
    assert not pieces.unique(ring, scores)


scores_and_labels = st.tuples(st.integers(0, 10**6), st.lists(fractions, min_size=4, max_size=4))


@pytest.mark.parametrize(
    "kind", ["pairwise", "pairwise per pair", "pairwise squared", "preorder pairs", "preorder gain"]
)
@settings(max_examples=25)
@given(scores_and_labels)
def test_derivatives_of_quadratic_pieces_are_those_of_the_kernels(kind, drawing):
    seed, scores = drawing
    surrogate = SURROGATES[kind]
    labels, probs = mixture("dcg", np.random.default_rng(seed))
    scaled = [score / 20 for score in scores]
    weights = expected_pairs(metric("dcg"), surrogate, [read(label) for label in labels], probs)
    gradient = Quadratic.from_margin(surrogate.margin).gradient(weights, scaled)
    expected = kernel_loss(metric("dcg"), surrogate, labels, probs)(np.array(scaled, float))[1]
    np.testing.assert_allclose(np.array(gradient, float), expected, atol=1e-11)


@pytest.mark.parametrize(
    "kind",
    [
        "softmax",
        "pairwise logistic",
        "pairwise exponential",
        "preorder logistic",
        "preorder gain exponential",
    ],
)
@settings(max_examples=25)
@given(st.integers(0, 10**6), st.lists(st.fractions(Fraction(1, 9), 9), min_size=4, max_size=4))
def test_derivatives_in_weights_are_those_of_the_kernels(kind, seed, x):
    surrogate = SURROGATES[kind]
    labels, _ = mixture("dcg", np.random.default_rng(seed), n_labels=1)
    gradient = derivatives(metric("dcg"), surrogate, read(labels[0]), x)
    expected = kernel_loss(metric("dcg"), surrogate, labels, (1.0,))(np.log(np.array(x, float)))[1]
    np.testing.assert_allclose(np.array(gradient, float), expected, atol=1e-9, rtol=1e-9)


@settings(max_examples=25)
@given(st.permutations(range(1, 5)), st.lists(st.fractions(Fraction(1, 9), 9), min_size=4, max_size=4))
def test_derivatives_of_the_likelihood_are_those_of_the_kernels(positions, x):
    label = Permutations(positions)
    gradient = derivatives(metric("zero_one"), PlackettLuce(), read(label), x)
    expected = kernel_loss(metric("zero_one"), PlackettLuce(), (label,), (1.0,))(np.log(np.array(x, float)))[
        1
    ]
    np.testing.assert_allclose(np.array(gradient, float), expected, atol=1e-9)


POLYHEDRAL = [
    *(
        (name, kind)
        for name in ("dcg", "zero_one")
        for kind in SURROGATES
        if "hinge" in kind and "gain" not in kind
    ),
    ("dcg", "preorder gain hinge"),
    *LISTWISE,
    ("ndcg@2", "max"),
    ("dcg", "sum"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), POLYHEDRAL)
@settings(max_examples=8)
@given(scores_and_labels)
def test_pieces_add_up_to_the_loss_of_the_package(name, kind, drawing):
    seed, scores = drawing
    ranking_metric, surrogate = combined(name, kind)
    labels, probs = mixture(name, np.random.default_rng(seed))
    terms = expected_terms(ranking_metric, surrogate, [read(label) for label in labels], probs)
    loss = kernel_loss(ranking_metric, surrogate, labels, probs)

    def added(point):
        tops = (max(low(p.constant + linear.dot(p.slope, point)) for p in term.pieces) for term in terms)
        return sum(float(low(term.weight) * top) for term, top in zip(terms, tops, strict=True))

    scaled = [score / 10 for score in scores]
    change = loss(np.array(scaled, float))[0] - loss(np.zeros(4))[0]  # pairs of an item with itself drop out
    assert added(scaled) - added([Fraction()] * 4) == pytest.approx(change, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "kind"), [("dcg", "pairwise hinge"), ("ap", "max"), ("zero_one", "position hinge")]
)
def test_directions_lead_to_different_vertices(name, kind):
    ranking_metric, surrogate = combined(name, kind)
    rng, apart = np.random.default_rng(2), 0
    for _ in range(8):
        labels, probs = mixture(name, rng)
        loss, way = kernel_loss(ranking_metric, surrogate, labels, probs), rng.normal(size=4)
        ends = [
            polyhedral_minimiser(ranking_metric, surrogate, labels, probs, direction=d)
            for d in (None, way, -way)
        ]
        values = [loss(end)[0] for end in ends]
        np.testing.assert_allclose(values, values[0], atol=1e-7)
        assert ends[1] @ way <= ends[2] @ way + 1e-7
        apart += bool(np.abs(ends[1] - ends[2]).max() > 0.1)
        for point in rng.normal(size=(20, 4)) * 3:
            assert loss(point)[0] >= values[0] - 1e-9
    assert apart > 0


@pytest.mark.parametrize("kind", ["squared", "pairwise", "pairwise logistic", "pairwise hinge"])
def test_preferences_are_pinned_through_their_targets(kind):
    cycle = [Preferences([0, 1], [1, 2], 3), Preferences([1, 2], [2, 0], 3), Preferences([2], [1], 3)]
    probs = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
    surrogate, rng = SURROGATES[kind], np.random.default_rng(0)
    near = found_in_doubles(metric("pd"), surrogate, cycle, probs, rng)
    pin = exact_minimiser(metric("pd"), surrogate, cycle, probs, near)
    loss, scores = kernel_loss(metric("pd"), surrogate, cycle, probs), as_scores(pin, surrogate)
    assert pin.probs == probs
    for way in rng.normal(size=(20, 3)):
        assert loss(scores + way)[0] >= loss(scores)[0] - 1e-12


def test_unique_minimisers_are_found_from_anywhere():
    labels, probs = (np.array([1.0, 0.0]), np.array([0.0, 1.0])), (Fraction(2, 3), Fraction(1, 3))
    for kind in ("squared", "softmax", "pairwise exponential", "preorder pairs"):
        near, far = (
            exact_minimiser(metric("ap"), SURROGATES[kind], labels, probs, [s, 0.0]) for s in (0.3, -7.0)
        )
        assert near == far


def test_trivial_losses_have_minimisers():
    labels, probs = (np.array([1.0, 1.0]),), (Fraction(1),)
    assert polyhedral_minimiser(metric("ap"), PositionHinge(), labels, probs).tolist() == [0.0, 0.0]
    for kind in ("preorder", "position hinge"):
        pin = exact_minimiser(metric("ap"), SURROGATES[kind], labels, probs, [0.25, 0.0])
        assert (pin.unique, pin.scores) == (False, (Fraction(1, 4), 0))
    single = (np.array([2.0]),)
    for surrogate in SURROGATES.values():
        pin = exact_minimiser(metric("dcg"), surrogate, single, probs, [0.0])
        assert pin.unique


def test_logarithms_in_the_targets_are_no_hindrance_to_corners():
    labels = tuple(np.array(y, float) for y in ([2, 0, 1], [0, 1, 1], [1, 1, 2]))
    probs = (Fraction(1, 2), Fraction(1, 6), Fraction(1, 3))
    ranking_metric, surrogate = metric("ndcg"), Pairwise("hinge")
    assert any(isinstance(target, Enclosure) for label in labels for target in targets(ranking_metric, label))
    pin = exact_minimiser(
        ranking_metric,
        surrogate,
        labels,
        probs,
        polyhedral_minimiser(ranking_metric, surrogate, labels, probs),
    )
    assert pin.unique
    assert not is_minimiser(
        ranking_metric, surrogate, labels, probs, moved(pin.scores, (1, 0, 0), Fraction(1, 9))
    )
    assert exact_minimiser(ranking_metric, Squared(), labels, probs, np.zeros(3)) is None
    assert not is_minimiser(ranking_metric, Squared(), labels, probs, [Fraction()] * 3)


def test_logarithms_in_the_margins_enclose_the_corner():
    ranking_metric = metric("dcg")
    surrogate, rng, count = ListwiseHinge(ranking_metric), np.random.default_rng(0), 0
    for _ in range(12):
        labels, probs = mixture("dcg", rng, n_items=3)
        near = found_in_doubles(ranking_metric, surrogate, labels, probs, rng)
        pin = exact_minimiser(ranking_metric, surrogate, labels, probs, near)
        if pin is None or all(isinstance(score, Fraction) for score in pin.scores):
            continue
        count += 1
        assert is_minimiser(ranking_metric, surrogate, labels, probs, pin.scores)
        np.testing.assert_allclose(
            [float(low(s - pin.scores[0])) for s in pin.scores], near - near[0], atol=1e-7
        )
        wrong = moved(pin.scores, (1, 0, 0), Fraction(1, 10**6))
        assert not is_minimiser(ranking_metric, surrogate, labels, probs, wrong)
    assert count > 0


def test_scores_that_may_be_tied_leave_regret_open():
    labels, probs = (np.array([1.0, 0.0]),), (Fraction(1),)
    around = Enclosure(Fraction(-1), Fraction(1))
    assert mean_value(metric("p@1"), labels, probs, [around, Fraction()]) == Enclosure(
        Fraction(), Fraction(1)
    )
    assert regret(metric("p@1"), labels, probs, [around, Fraction(-2)]) == 0
    assert regret(metric("p@1"), labels, probs, [around, Fraction(2)]) == 1
    assert sign(regret(metric("p@1"), labels, probs, [around, Fraction()])) is None


def test_the_preorder_loss_misorders_by_ndcg():
    labels = np.array([3.0, 1.0, 0.0]), np.array([3.0, 4.0, 4.0])
    half = Fraction(1, 2), Fraction(1, 2)
    pin = exact_minimiser(metric("ndcg"), Preorder(), labels, half, minimiser_scores(labels))
    assert (pin.unique, pin.scores) == (True, (Fraction(2, 3), Fraction(4, 3), 0))
    gap = regret(metric("ndcg"), labels, half, pin.scores)
    assert sign(gap) == 1
    assert text(gap).startswith("about 0.09230")


def minimiser_scores(labels):
    return minimiser(
        "ndcg", Preorder(), LabelDistribution(labels, [[0.5, 0.5]], Queries.from_sizes([3]))
    ).scores


def test_labels_that_cannot_be_are_left_alone():
    labels = tuple(Permutations.from_orders([order]) for order in itertools.permutations(range(3)))
    probs = (Fraction(1, 3), Fraction(), Fraction(1, 4), Fraction(1, 4), Fraction(1, 6), Fraction())
    near = found_in_doubles(metric("zero_one"), PlackettLuce(), labels, probs, None)
    pin = exact_minimiser(metric("zero_one"), PlackettLuce(), labels, probs, near)
    assert [prob > 0 for prob in pin.probs] == [prob > 0 for prob in probs]
    assert (pin.unique, pin.unit) == (True, "weights")
    assert sum(pin.probs) == 1


def test_what_cannot_be_proven_is_not():
    labels, probs = (np.array([1.0, 0.0]), np.array([0.0, 1.0])), (Fraction(2, 3), Fraction(1, 3))
    unknown = [
        ListwiseHinge(metric("ap"), "softmax"),
        ListwiseHinge(metric("ap"), "sum_interleavings"),
        Duchi(Penalty("square", np.square, np.square, np.square)),
        Pairwise(Margin("mine", 0, 1.0, 2.0, -1.0)),
        Pairwise(Margin("hinge", 0, 0.5, 2.0**-200, 2.0**199)),
    ]
    for surrogate in unknown:
        assert exact_minimiser(metric("ap"), surrogate, labels, probs, np.zeros(2)) is None
        assert not is_minimiser(metric("ap"), surrogate, labels, probs, (Fraction(), Fraction()))
        assert polyhedral_minimiser(metric("ap"), surrogate, labels, probs) is None
    for near in (np.zeros(3), [np.nan, 0.0], [60.0, 0.0]):
        assert exact_minimiser(metric("ap"), Preorder("unit", "logistic"), labels, probs, near) is None
    unseen = (np.array([1.0, 0.0]),)
    for surrogate in (
        Softmax(),
        Pairwise("logistic"),
        Pairwise("exponential"),
    ):  # one score goes to -infinity
        assert exact_minimiser(metric("ap"), surrogate, unseen, (Fraction(1),), [40.0, 0.0]) is None


def test_bad_distributions_are_refused():
    labels, half = (np.array([1.0, 0.0]), np.array([0.0, 1.0])), Fraction(1, 2)
    arguments = metric("ap"), Squared()
    for probs in ((half, Fraction(1, 3)), (Fraction(3, 2), -half), (0.5, 0.5)):
        with pytest.raises(ParameterError, match="fractions"):
            is_minimiser(*arguments, labels, probs, (half, half))
    with pytest.raises(LengthMismatchError):
        exact_minimiser(*arguments, labels, (Fraction(1),), np.zeros(2))
    with pytest.raises(LengthMismatchError):
        is_minimiser(*arguments, labels, (half, half), (half,))
    with pytest.raises(ParameterError, match="the same number of items"):
        exact_minimiser(*arguments, (labels[0], np.ones(3)), (half, half), np.zeros(2))
    with pytest.raises(LabelError, match="reads grades"):
        exact_minimiser(
            metric("zero_one"), Preorder("gain"), (Permutations([1, 2]),), (Fraction(1),), np.zeros(2)
        )
