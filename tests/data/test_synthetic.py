"""Generators: the data follow the distribution that is returned with them."""

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy import stats

from concordant.data import synthetic
from concordant.data.labels import Grades, Permutations, Preferences
from concordant.data.queries import Queries
from concordant.data.synthetic import LabelDistribution
from concordant.data.synthetic.tied_pairs import difference, outcome_probabilities, plain_tie_share
from concordant.exceptions import (
    ConcordantError,
    GradeError,
    GuaranteeWarning,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    ParameterError,
    ShapeError,
)
from concordant.rankers import LinearRanker
from concordant.theory import regret
from tests import oracles

GENERATORS = (synthetic.grades, synthetic.preferences, synthetic.permutations)


def same_label(left, right):
    if isinstance(left, Preferences):
        return all(
            np.array_equal(getattr(left, name), getattr(right, name))
            for name in ("better", "worse", "weights")
        )
    if isinstance(left, Permutations):
        return np.array_equal(left.positions, right.positions)
    return np.array_equal(left, right)


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_equal_seeds_give_equal_data(generator, shuffle):
    first, second, other = (generator(n_queries=7, shuffle=shuffle, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(first.X, second.X)
    assert np.array_equal(first.qid, second.qid)
    assert np.array_equal(first.distribution.probs, second.distribution.probs)
    assert same_label(first.y, second.y)
    assert first.X.shape != other.X.shape or not np.array_equal(first.X, other.X)
    assert (first.distribution.queries.moved is None) is not shuffle


@pytest.mark.parametrize("generator", GENERATORS)
def test_shapes_and_sizes(generator):
    toy = generator(n_queries=30, n_items=(1, 6), n_features=4, n_labels=3, shuffle=True)
    assert toy.X.shape == (len(toy.qid), 4)
    assert toy.distribution.probs.shape == (30, 3)
    np.testing.assert_allclose(toy.distribution.probs.sum(axis=1), 1)
    sizes = toy.distribution.queries.sizes
    assert sizes.min() == 1
    assert sizes.max() == 6
    assert len(toy.y) == len(toy.qid)


def test_only_grades_become_ranking_data():
    assert synthetic.grades(n_queries=3).data.n_queries == 3
    with pytest.raises(LabelError, match="Preferences"):
        _ = synthetic.preferences(n_queries=3).data


def test_grades_are_skewed_and_within_range():
    toy = synthetic.grades(n_queries=400, n_levels=4)
    shares = np.bincount(np.concatenate(toy.distribution.labels).astype(int)) / (4 * len(toy.qid))
    np.testing.assert_allclose(shares, [1 / 2, 1 / 4, 1 / 8, 1 / 8], atol=0.03)


def test_each_query_draws_by_its_probabilities():
    distribution = synthetic.grades(n_queries=4, n_items=12, seed=5).distribution
    rng, draws = np.random.default_rng(0), 3000
    counts = np.zeros_like(distribution.probs)
    for _ in range(draws):
        sample = distribution.sample(rng)
        for query in range(4):
            rows = distribution.queries.rows([query])
            matches = [np.array_equal(sample[rows], label[rows]) for label in distribution.labels]
            assert sum(matches) == 1  # 12 items: the four intents differ
            counts[query] += matches
    for frequencies, probs in zip(counts, distribution.probs, strict=True):
        assert stats.chisquare(frequencies, draws * probs).pvalue > 1e-3


def test_queries_draw_independently():
    qid = np.repeat([0, 1], 1)
    distribution = LabelDistribution(([0, 0], [1, 1]), np.full((2, 2), 0.5), qid)
    rng = np.random.default_rng(1)
    pairs = [tuple(distribution.sample(rng).astype(int)) for _ in range(2000)]
    counts = [pairs.count(pair) for pair in itertools.product((0, 1), repeat=2)]
    assert stats.chisquare(counts).pvalue > 1e-3


def test_labels_of_probability_zero_never_come():
    distribution = LabelDistribution(([0], [1], [2]), [[0.0, 1.0, 0.0]], [0])
    rng = np.random.default_rng(2)
    assert {float(distribution.sample(rng)[0]) for _ in range(200)} == {1.0}


def test_preferences_and_orders_are_drawn_by_query():
    first = Preferences([0, 2], [1, 3], n_rows=4, weights=[1, 2])
    second = Preferences([1, 3], [0, 2], n_rows=4, weights=[3, 4])
    queries = Queries.from_ids(["b", "b", "a", "a"])
    distribution = LabelDistribution((first, second), [[1, 0], [0, 1]], queries)  # a: first, b: second
    drawn = distribution.sample(0)
    assert drawn.better.tolist() == [2, 1]
    assert drawn.worse.tolist() == [3, 0]
    assert drawn.weights.tolist() == [2, 3]
    orders = (Permutations([1, 2, 1, 2]), Permutations([2, 1, 2, 1]))
    assert LabelDistribution(orders, [[1, 0], [0, 1]], queries).sample(0).positions.tolist() == [2, 1, 1, 2]


def test_means_follow_the_rows_of_the_caller():
    distribution = LabelDistribution(([1, 0, 3], [0, 2, 0]), [[1, 0], [0.25, 0.75]], ["b", "a", "b"])
    assert distribution.mean_per_row(lambda y: y).tolist() == [0.25, 0, 0.75]
    per_query = {0: [np.nan, 1.0], 1: [2.0, np.nan]}
    labels = [id(label) for label in distribution.labels]
    assert distribution.mean_per_query(lambda y: per_query[labels.index(id(y))]).tolist() == [0, 0.25]


@pytest.mark.parametrize("model", ["plackett-luce", "mallows"])
def test_small_queries_follow_the_order_model_exactly(model):
    spread = 0.7
    toy = synthetic.permutations(n_queries=3, n_items=3, n_labels=8, model=model, spread=spread, seed=9)
    for query in range(3):
        rows = toy.distribution.queries.rows([query])
        orders = [np.argsort(label.positions[rows]).tolist() for label in toy.distribution.labels]
        probs = toy.distribution.probs[query]
        # The scores are not returned: read them off the two-way odds of the model instead.
        if model == "mallows":
            centre = orders[int(probs.argmax())]
            scores = [-centre.index(i) for i in range(3)]
            weights = [oracles.mallows_weight(scores, order, 1 / spread) for order in orders[:6]]
        else:
            firsts = [probs[[order[0] == i for order in orders]].sum() for i in range(3)]
            weights = [oracles.plackett_luce(np.log(firsts), order) for order in orders[:6]]
        np.testing.assert_allclose(probs[:6], np.array(weights) / sum(weights), rtol=1e-9)
        assert probs[6:].tolist() == [0, 0]
        assert len({tuple(order) for order in orders[:6]}) == math.factorial(3)


def test_preferences_are_tournaments_unless_thinned():
    toy = synthetic.preferences(n_queries=20, n_items=6, noise=3.0)
    graph = toy.distribution.labels[0]
    pairs = {frozenset(pair) for pair in zip(graph.better.tolist(), graph.worse.tolist(), strict=True)}
    assert len(pairs) == len(graph.better) == 20 * 15
    assert graph.cyclic(toy.distribution.queries).any()
    assert not synthetic.preferences(noise=0.0).y.cyclic(synthetic.preferences().distribution.queries).any()
    thin = synthetic.preferences(n_queries=20, n_items=6, share=0.3)
    assert 0 < len(thin.y.better) < 20 * 15 * 0.5


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (((), [[1.0]], [0]), ParameterError, "labels"),
        ((([0, 1],), [[0.5, 0.5]], [0, 0]), ShapeError, "probs"),
        ((([0, 1],), [[0.5]], [0, 0]), LabelError, "sums to 0.5"),
        ((([0], [1]), [[2.0, -1.0]], [0]), NonFiniteError, "-1"),
        ((([0], [1]), [[np.nan, 1.0]], [0]), NonFiniteError, "contains NaN at row 0, column 0"),
        ((([0], Permutations([1])), [[0.5, 0.5]], [0]), LabelError, "several kinds"),
        ((([0, 1], [1]), [[0.5, 0.5]], [0, 0]), LengthMismatchError, r"labels\[1\]"),
        ((([0, -1],), [[1.0]], [0, 0]), GradeError, "negative"),
        ((([0, 1],), [[1.0]], [0, 0, 0]), LengthMismatchError, "qid"),
    ],
)
def test_impossible_distributions_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        LabelDistribution(*arguments)


def test_grades_objects_are_labels_and_stay_unchanged():
    distribution = LabelDistribution((Grades([1, 2]),), [[1.0]], None)
    with pytest.raises(ValueError, match="read-only"):
        distribution.labels[0][0] = 5
    assert "1 outcomes of kind Grades" in repr(distribution)


@pytest.mark.parametrize(
    ("generator", "parameters"),
    [
        (synthetic.grades, {"n_queries": 0}),
        (synthetic.grades, {"n_items": (5, 4)}),
        (synthetic.grades, {"n_items": 0}),
        (synthetic.grades, {"n_levels": 0}),
        (synthetic.grades, {"n_labels": 1.5}),
        (synthetic.grades, {"noise": -1}),
        (synthetic.preferences, {"noise": np.nan}),
        (synthetic.preferences, {"share": 0}),
        (synthetic.permutations, {"spread": 0}),
        (synthetic.permutations, {"model": "mallow"}),
        (synthetic.permutations, {"n_labels": 0}),
        (synthetic.search_log, {"n_queries": 0}),
        (synthetic.search_log, {"n_items": (5, 3)}),
        (synthetic.search_log, {"n_items": (5,)}),
        (synthetic.comparisons, {"n": 0}),
        (synthetic.comparisons, {"norm": "l3"}),
        (synthetic.comparisons, {"tie_share": 1.5}),
        (synthetic.comparisons, {"noise": np.inf}),
        (synthetic.comparisons, {"threshold": -1}),
    ],
)
def test_bad_parameters_are_named(generator, parameters):
    with pytest.raises(ConcordantError, match=next(iter(parameters))):
        generator(**parameters)


# ---------------------------------------------------------------- search log


def test_a_search_log_follows_its_story():
    log = synthetic.search_log(n_queries=200, seed=3)
    navigate, cheap, dear, research = log.distribution.labels
    first = log.distribution.queries.offsets[:-1]
    assert navigate.sum() == 4 * 200  # the official page, and nothing else
    assert (navigate[first] == 4).all()
    for none in (cheap[first], dear[first], cheap * dear):
        assert not none.any()
    assert set(np.unique(research)) == {0.0, 2.0, 4.0}
    brand = log.X[first, log.features.index("brand")]
    assert np.corrcoef(brand, log.distribution.probs[:, 0])[0, 1] > 0.9
    for constant in ("brand", "words"):  # of a query, which is why no linear score can use it
        column = log.X[:, log.features.index(constant)]
        assert np.array_equal(column, column[first][log.qid])
    assert log.table.column_names == list(log.features)
    assert np.array_equal(log.table["match"].to_numpy(), log.X[:, 1])
    again, other = synthetic.search_log(n_queries=200, seed=3), synthetic.search_log(n_queries=200, seed=4)
    assert np.array_equal(log.y, again.y)
    assert not np.array_equal(brand, other.X[other.distribution.queries.offsets[:-1], 5])


def test_comparing_grades_misses_what_a_search_log_wants():
    log, test = (synthetic.search_log(n_queries=400, seed=seed) for seed in (0, 1))
    lost = {}
    for surrogate in ("preorder", "auto"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GuaranteeWarning)
            model = LinearRanker("ndcg@10", surrogate).fit(log.table, log.y, qid=log.qid)
        scores = model.predict(test.table)
        lost[surrogate] = regret.regret("ndcg@10", test.distribution, scores).mean()
    assert lost["preorder"] > lost["auto"] + 0.02


# ---------------------------------------------------------------- comparisons


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("tie_share", [None, 0.0, 0.3, 1.0])
def test_outcomes_follow_their_probabilities(norm, tie_share):
    toy = synthetic.comparisons(n=20_000, norm=norm, tie_share=tie_share, seed=8)
    np.testing.assert_allclose(toy.probabilities.sum(axis=1), 1)
    assert (toy.probabilities >= -1e-15).all()
    if tie_share is not None:
        assert (toy.y == 0).sum() == round(tie_share * 20_000)
    # Calibration: among pairs to which an outcome has about the same chance, it comes that often.
    for column, outcome in enumerate((-1, 0, 1)):
        chance = toy.probabilities[:, column]
        for low in np.linspace(0, 0.8, 5):
            group = (chance >= low) & (chance < low + 0.2)
            if group.sum() > 200:
                spread = 5 * math.sqrt(0.25 / group.sum()) + 1e-3
                assert abs((toy.y[group] == outcome).mean() - chance[group].mean()) < spread
    assert abs((toy.bayes_predictions != toy.y).mean() - toy.bayes_error) < 0.01


def test_pairs_lie_where_the_published_ones_do():
    for norm, low, high in (("l1", -0.5, 0.5), ("l2", -1, 0.5), ("linf", -1, 1)):
        toy = synthetic.comparisons(n=5000, norm=norm)
        steps = toy.pairs[:, 1] - toy.pairs[:, 0]
        assert np.abs(toy.pairs[:, 0]).max() <= 2
        assert np.abs(toy.pairs[:, 0]).max() > 1.99
        assert low <= steps.min() < low + 0.01
        assert high - 0.01 < steps.max() <= high
    x = np.array([[3.0, -4.0]])
    for norm, value in (("l1", 49), ("l2", 25), ("linf", 16)):
        assert synthetic.comparisons(n=1, norm=norm).ranking(x)[0] == pytest.approx(value)


def test_without_noise_outcomes_are_certain():
    toy = synthetic.comparisons(n=500, noise=0)
    assert set(np.unique(toy.probabilities)) == {0.0, 1.0}
    assert toy.bayes_error == 0
    assert (toy.bayes_predictions == toy.y).all()
    expected = np.where(np.abs(toy.gap) > 1, np.sign(toy.gap), 0)
    assert (toy.y == expected).all()


def test_a_share_that_cannot_be_drawn_is_refused(monkeypatch):
    monkeypatch.setattr(synthetic.tied_pairs, "PATIENCE", 3)
    with pytest.raises(ParameterError, match=r"tie_share=0\.5"):
        synthetic.comparisons(n=10, tie_share=0.5, threshold=0)
    assert (synthetic.comparisons(n=10, tie_share=0, threshold=0).y != 0).all()


def test_the_share_of_ties_is_integrated_well_enough():
    for norm in ("l1", "l2", "linf"):
        sample = synthetic.comparisons(n=400_000, norm=norm, seed=11).probabilities[:, 1]
        assert abs(sample.mean() - plain_tie_share(norm, 0.25, 1.0)) < 4 * sample.std() / math.sqrt(400_000)


def test_the_published_pool_comes_from_this_generator(shared_data):
    path = shared_data / "svmcompare-l2" / "pool.csv.gz"
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    pool = np.genfromtxt(path, delimiter=",", names=True)
    sides = [np.stack([pool[name] for name in names], axis=1) for names in (("x1", "x2"), ("xp1", "xp2"))]
    pairs = np.stack(sides, axis=1)
    probabilities = outcome_probabilities(difference(pairs, "l2"), noise=0.25, threshold=1.0)
    frequencies = np.array([(pool["y"] == outcome).sum() for outcome in (-1, 0, 1)])
    assert stats.chisquare(frequencies, probabilities.sum(axis=0)).pvalue > 1e-3
    error = (probabilities.argmax(axis=1) - 1 != pool["y"]).mean()
    assert error == pytest.approx(1 - probabilities.max(axis=1).mean(), abs=0.005)
    ours = synthetic.comparisons(n=10_000, seed=1)
    for coordinate in range(2):
        for side in range(2):
            test = stats.ks_2samp(pairs[:, side, coordinate], ours.pairs[:, side, coordinate])
            assert test.pvalue > 1e-3
    assert stats.ks_2samp(difference(pairs, "l2"), ours.gap).pvalue > 1e-3
