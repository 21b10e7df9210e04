"""Exact regret, compared with enumeration of every order."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordant.data import synthetic
from concordant.data.labels import Permutations, Preferences
from concordant.data.synthetic import LabelDistribution
from concordant.exceptions import (
    LabelError,
    LengthMismatchError,
    NoStandardizationError,
    ParameterError,
    ShapeError,
)
from concordant.metrics import metric
from concordant.theory import regret as module
from concordant.theory.regret import bayes, comparison_regret, expected, regret
from tests import oracles

# name -> (value of an order under grades, highest grade drawn)
GRADED = {
    "dcg": (oracles.dcg, 3),
    "dcg@2": (lambda y, order: oracles.dcg(y, order, k=2), 3),
    "ndcg": (oracles.ndcg, 3),
    "ndcg@3": (lambda y, order: oracles.ndcg(y, order, k=3), 3),
    "p@2": (lambda y, order: oracles.precision(y, order, 2), 2),
    "wta": (lambda y, order: oracles.precision(y, order, 1), 2),
    "eru": (oracles.eru, 3),
    "auc": (oracles.auc, 1),
    "pd": (lambda y, order: oracles.pd(lambda i, j: float(y[i] > y[j]), order), 1),
    "wpd": (lambda y, order: oracles.pd(lambda i, j: max(2.0 ** y[i] - 2.0 ** y[j], 0), order), 3),
    "ndcg[gain=linear,ties=worst]": (lambda y, order: oracles.ndcg(y, order, kind="linear"), 3),
    "ndcg[ties=best]": (oracles.ndcg, 3),
    "ap": (oracles.ap, 2),
    "err": (oracles.err, 4),
    "err@2": (lambda y, order: oracles.err(y, order, k=2), 4),
    "rr": (oracles.rr, 2),
    "pd on three grades": (lambda y, order: oracles.pd(lambda i, j: float(y[i] > y[j]), order), 2),
}
NOT_STANDARDIZED = ("ap", "err", "err@2", "rr", "pd on three grades")
STANDARDIZED = tuple(name for name in GRADED if name not in NOT_STANDARDIZED)


def draw(rng, highest, n_queries=6, n_labels=3):
    """A small ragged distribution with mixed rows, some probability 0, and one-item queries."""
    sizes = rng.integers(1, 6, n_queries)
    qid = rng.permutation(np.repeat(np.arange(n_queries), sizes))
    labels = tuple(rng.integers(0, highest + 1, len(qid)).astype(float) for _ in range(n_labels))
    probs = rng.dirichlet(np.ones(n_labels), n_queries)
    probs[0] = np.eye(n_labels)[0]
    return LabelDistribution(labels, probs, qid)


def brute_force(value, distribution, *, greater):
    best = []
    for query in range(distribution.queries.n_queries):
        rows = distribution.queries.rows([query])
        labels = [label[rows].tolist() for label in distribution.labels]
        best.append(
            oracles.best_expected(value, labels, distribution.probs[query], len(rows), greater=greater)
        )
    return best


@pytest.mark.parametrize("name", GRADED)
def test_the_best_value_is_the_best_over_all_orders(name):
    value, highest = GRADED[name]
    ranking_metric = metric(name.partition(" ")[0])
    distribution = draw(np.random.default_rng(3), highest)
    best = bayes(ranking_metric, distribution)
    expected_best = brute_force(value, distribution, greater=ranking_metric.greater_is_better)
    np.testing.assert_allclose(best.values, expected_best, atol=1e-12)
    np.testing.assert_allclose(expected(ranking_metric, distribution, best.scores), expected_best, atol=1e-12)
    assert (
        regret(ranking_metric, distribution, best.scores).tolist() == [0.0] * distribution.queries.n_queries
    )


@pytest.mark.parametrize("name", GRADED)
def test_the_standardized_ones_are_not_enumerated(name, monkeypatch):
    def refuse(*_):
        raise AssertionError("enumerated")

    monkeypatch.setattr(module, "_enumerate_best_scores", refuse)
    distribution = draw(np.random.default_rng(4), GRADED[name][1])
    if name in STANDARDIZED:
        bayes(name, distribution)
    else:
        with pytest.raises(AssertionError, match="enumerated"):
            bayes(name.partition(" ")[0], distribution)


@pytest.mark.slow
@pytest.mark.parametrize("name", GRADED)
@given(seed=st.integers(0, 2**32 - 1), ties=st.booleans())
def test_regret_is_never_negative(name, seed, ties):
    rng = np.random.default_rng(seed)
    distribution = draw(rng, GRADED[name][1], n_queries=3)
    n = distribution.queries.n_rows
    scores = rng.integers(0, 3, n).astype(float) if ties else rng.standard_normal(n)
    assert (regret(name.partition(" ")[0], distribution, scores) >= 0).all()


def test_expected_is_the_mean_over_labels():
    distribution = draw(np.random.default_rng(5), 3)
    scores = np.random.default_rng(6).standard_normal(distribution.queries.n_rows)
    for query, value in enumerate(expected("ndcg", distribution, scores)):
        rows = distribution.queries.rows([query])
        labels = [label[rows].tolist() for label in distribution.labels]
        order = np.argsort(-scores[rows]).tolist()
        expected_mean = oracles.expected_over_labels(oracles.ndcg, labels, distribution.probs[query], order)
        assert value == pytest.approx(expected_mean, abs=1e-12)


def graph_weights(graph, rows):
    position = {row: number for number, row in enumerate(rows.tolist())}
    edges = zip(graph.better.tolist(), graph.worse.tolist(), graph.weights.tolist(), strict=True)
    weights = {}
    for better, worse, weight in edges:
        if better in position and worse in position:
            pair = position[better], position[worse]
            weights[pair] = weights.get(pair, 0.0) + weight
    return weights


def test_preference_graphs_are_enumerated():
    toy = synthetic.preferences(n_queries=5, n_items=(1, 5), noise=2.0, shuffle=True, seed=2)
    assert any(label.cyclic(toy.distribution.queries).any() for label in toy.distribution.labels)
    best = bayes("pd", toy.distribution)
    for query, value in enumerate(best.values):
        rows = toy.distribution.queries.rows([query])
        graphs = [graph_weights(label, rows) for label in toy.distribution.labels]
        expected_best = oracles.best_expected(
            lambda graph, order: oracles.pd(lambda i, j: graph.get((i, j), 0.0), order),
            graphs,
            toy.distribution.probs[query],
            len(rows),
            greater=False,
        )
        assert value == pytest.approx(expected_best, abs=1e-12)


def test_the_best_order_of_permutations_is_the_most_probable_one():
    toy = synthetic.permutations(n_queries=6, n_items=(1, 4), n_labels=6, shuffle=True, seed=1)
    queries = toy.distribution.queries
    best = bayes("zero_one", toy.distribution)
    for query in range(queries.n_queries):
        rows = queries.rows([query])
        chances = {}
        for label, prob in zip(toy.distribution.labels, toy.distribution.probs[query], strict=True):
            key = tuple(label.positions[rows])
            chances[key] = chances.get(key, 0.0) + prob
        assert best.values[query] == pytest.approx(1 - max(chances.values()))


@dataclass(frozen=True)
class WronglyStandardized:
    """Claims that the plain grades standardize NDCG: the check above must be able to fail."""

    greater_is_better: bool = True

    def per_query(self, labels, scores, *, qid=None):
        return metric("ndcg").per_query(labels, scores, qid=qid)

    def targets(self, labels, *, qid=None):
        return np.asarray(labels) if qid is not None else labels


def test_a_wrong_standardization_shows_as_negative_regret():
    labels = ([4.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0])
    distribution = LabelDistribution(labels, [[0.3, 0.7]], [0, 0, 0, 0])
    wrong = WronglyStandardized()
    right = bayes("ndcg", distribution)
    assert bayes(wrong, distribution).values[0] < right.values[0]
    assert regret(wrong, distribution, right.scores)[0] < 0


def test_long_queries_without_standardization_are_refused_by_name():
    distribution = LabelDistribution((np.ones(9), np.zeros(9)), [[0.5, 0.5]], None)
    with pytest.raises(ParameterError, match=r"metric 'ap' .*at most 8 items, got 9") as error:
        bayes("ap", distribution)
    assert isinstance(error.value.__cause__, NoStandardizationError)


def test_undefined_labels_have_no_say():
    distribution = LabelDistribution(([0, 0], [0, 1]), [[0.9, 0.1]], [5, 5])
    assert bayes("ndcg", distribution).values.tolist() == pytest.approx([0.1])
    assert regret("ndcg", distribution, [1, 0])[0] == pytest.approx(0.1 * (1 - 1 / math.log2(3)))
    assert bayes("ap", distribution).scores.argmax() == 1


@pytest.mark.parametrize(("name", "difference"), [("err[max_grade=1]", 1 / 48), ("ap", -1 / 24)])
def test_equal_means_yet_orders_of_different_value(name, difference):
    """Paper 1, Theorem 3: any standardization has four equal means here and calls all orders best."""
    distribution = LabelDistribution(([1, 1, 0, 0], [0, 0, 1, 1]), [[0.5, 0.5]], [0] * 4)
    blocks, alternating = (
        expected(name, distribution, [4, 3, 2, 1]),
        expected(name, distribution, [4, 2, 3, 1]),
    )
    assert (alternating - blocks)[0] == pytest.approx(difference)
    assert regret(name, distribution, [4, 2, 3, 1] if difference < 0 else [4, 3, 2, 1])[0] > 0


def test_comparison_regret():
    probabilities = np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])
    for predictions in itertools.product((-1, 0, 1), repeat=2):
        losses = [max(p) - p[y + 1] for p, y in zip(probabilities.tolist(), predictions, strict=True)]
        assert comparison_regret(probabilities, predictions).tolist() == pytest.approx(losses)
    toy = synthetic.comparisons(n=50)
    assert comparison_regret(toy.probabilities, toy.bayes_predictions).max() == 0
    with pytest.raises(ShapeError):
        comparison_regret([[0.5, 0.5]], [0])
    with pytest.raises(LengthMismatchError):
        comparison_regret(probabilities, [0])
    with pytest.raises(LabelError, match=r"predictions\[1\] = 2"):
        comparison_regret(probabilities, [0, 2])


def test_tile_keeps_each_copy_apart():
    tile = synthetic.distribution.tile
    graph = Preferences([3, 0, 1], [0, 3, 2], n_rows=4, weights=[2, 3, 5])
    copies = tile(graph, np.array([3, 0]), 2)
    assert copies.better.tolist() == [0, 1, 2, 3]
    assert copies.worse.tolist() == [1, 0, 3, 2]
    assert copies.weights.tolist() == [2, 3, 2, 3]
    assert tile(Permutations([2, 1, 1, 2]), np.array([0, 1]), 2).positions.tolist() == [2, 1, 2, 1]


@pytest.mark.parametrize("ties", ["expected", "input", "worst", "best", "id_descending", "random"])
def test_regret_is_never_negative_whatever_the_tie_rule(ties):
    even = LabelDistribution(([1, 0], [0, 1]), [[0.5, 0.5]], queries=[0, 0])
    for scores in ([2.0, 1.0], [1.0, 2.0], [1.0, 1.0]):
        assert regret(f"ndcg[ties={ties}]", even, scores)[0] >= 0


@given(seed=st.integers(0, 2**32 - 1))
def test_regret_of_err_that_takes_its_highest_grade_from_all_queries(seed):
    """The best order of a query is found by the metric that is measured, not by that of the query alone."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 5, (2, 6))
    probs = np.tile(rng.dirichlet([1.0, 1.0]), (2, 1))
    distribution = LabelDistribution(labels.tolist(), probs, queries=[0, 0, 0, 1, 1, 1])
    best = bayes("err[max_grade=data]", distribution).values
    orders = list(itertools.permutations(range(3)))
    tried = [expected("err[max_grade=data]", distribution, [*order, *order]) for order in orders]
    np.testing.assert_allclose(best, np.max(tried, axis=0), atol=1e-12)
