"""Exactly decoded pair scores lose nothing in the limit, sorted scores do: by hand, in samples, in a plot."""

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

from concordant.data.labels import Preferences
from concordant.data.queries import Queries
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.rankers.pair_ranker import PairRanker
from concordant.theory.noise_conditions import (
    acyclic,
    family_means,
    follows,
    net_means,
    pair_means,
    reinforces,
)
from concordant.theory.regret import regret
from studies.__main__ import app
from studies.consistency import plots
from studies.consistency.populations import (
    OwnPairs,
    company,
    exhibited,
    incomplete,
    misspecified,
    one_query,
    typical,
)
from studies.consistency.report import ConsistencyReport
from studies.ramaswamy.exactness.study import METHODS, run, shortfall
from tests import oracles

pytestmark = [pytest.mark.usefixtures("one_blas_thread"), pytest.mark.slow]


@pytest.fixture(scope="module")
def one_blas_thread():
    """Threads of tiny matrices wait for one another, the longer the more tests run at once."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(scope="module")
def ap():
    return run("ap", [company(), typical()], sizes=(30, 10_000), n_seeds=4)


@pytest.fixture(scope="module")
def pd():
    return run("pd", [incomplete(), typical("preferences")], sizes=(30, 10_000), n_seeds=4)


# ---------------------------------------------------------------- the exhibited queries, by hand

AP_LABELS = [((1, 1, 0), Fraction(1, 2)), ((1, 0, 0), Fraction(1, 5)), ((0, 0, 1), Fraction(3, 10))]
PD_LABELS = [  # pairs (preferred, other), items counted from 1
    (((2, 3), (2, 4), (3, 1), (4, 1)), Fraction(2, 5)),
    (((3, 1), (4, 1), (1, 2)), Fraction(3, 5)),
]


def mean_ap(order):
    """Expected AP of an order of items, counted from 1, as a fraction."""
    total = Fraction(0)
    for label, prob in AP_LABELS:
        places = [position for position, item in enumerate(order, 1) if label[item - 1]]
        total += prob * sum(Fraction(hits, position) for hits, position in enumerate(places, 1)) / sum(label)
    return total


def mean_pd(order):
    """Expected weight of the preferences that an order overrules."""
    return sum(prob * sum(order.index(i) > order.index(j) for i, j in label) for label, prob in PD_LABELS)


def test_company_by_hand(ap):
    values = {order: mean_ap(order) for order in itertools.permutations((1, 2, 3))}
    assert max(values, key=values.get) == (1, 2, 3)
    assert values[1, 2, 3] == Fraction(4, 5)
    assert values[1, 3, 2] == Fraction(23, 30)
    for order, value in values.items():
        label_of = [list(label) for label, _ in AP_LABELS]
        probs = [float(prob) for _, prob in AP_LABELS]
        expected = oracles.expected_over_labels(oracles.ap, label_of, probs, [item - 1 for item in order])
        assert float(value) == pytest.approx(expected)
    means = [sum(prob * Fraction(label[i], sum(label)) for label, prob in AP_LABELS) for i in range(3)]
    assert means == [Fraction(9, 20), Fraction(5, 20), Fraction(6, 20)]  # sorted: 1, 3, 2
    assert_labels(company(), [label for label, _ in AP_LABELS], [prob for _, prob in AP_LABELS])
    for method in METHODS["ap"]:
        lost = Fraction(0) if method == "pairs, exact" else Fraction(1, 30)
        curve = ap.curve("company", method)
        assert curve.limit == pytest.approx(float(lost), abs=1e-12)
        assert curve.mean[-1] == pytest.approx(float(lost), abs=1e-12)
        assert curve.consistent == (lost == 0)


def assert_labels(population, labels, probs):
    """The population is the one of the table."""
    assert [label.tolist() for label in population.distribution.labels] == [list(label) for label in labels]
    assert population.distribution.probs[0].tolist() == pytest.approx([float(prob) for prob in probs])


def test_incomplete_by_hand(pd):
    values = {order: mean_pd(order) for order in itertools.permutations((1, 2, 3, 4))}
    assert min(values.values()) == values[2, 3, 4, 1] == values[2, 4, 3, 1] == Fraction(3, 5)
    assert values[3, 4, 1, 2] == Fraction(4, 5)  # edge deletion
    assert values[3, 4, 2, 1] == Fraction(7, 5)  # sorted by net weight
    for (pairs, prob), label, share in zip(
        PD_LABELS, incomplete().distribution.labels, incomplete().distribution.probs[0], strict=True
    ):
        assert sorted(zip(label.better + 1, label.worse + 1, strict=True)) == sorted(pairs)
        assert share == pytest.approx(float(prob))
    lost = {"pairs, exact": 0.0, "pairs, edge-deletion": 0.2}
    for method in METHODS["pd"]:
        curve = pd.curve("incomplete", method)
        assert curve.limit == pytest.approx(lost.get(method, 0.8), abs=1e-12)
        assert curve.mean[-1] == pytest.approx(lost.get(method, 0.8), abs=1e-12)


def test_both_are_outside_the_conditions():
    (u,), (d,) = pair_means(company().distribution), net_means(incomplete().distribution)
    (means,) = family_means(incomplete().distribution)
    assert not reinforces(u)
    assert not acyclic(d)
    assert not follows(d, means)


# ---------------------------------------------------------------- random queries


@pytest.mark.parametrize("metric", METHODS)
def test_regret_goes_to_zero_or_stays(metric, request):
    result = request.getfixturevalue(metric)
    exact = result.curve("typical", "pairs, exact")
    assert exact.limit == 0.0
    assert exact.mean[1] < exact.mean[0] / 20
    for method in METHODS[metric]:
        curve = result.curve("typical", method)
        if method != "pairs, exact":
            assert curve.limit > 0.002
            assert curve.mean[1] > 2 * exact.mean[1]


def test_inside_the_condition_all_agree():
    """A query on which sorting is optimal: nothing is lost by any method, so that the comparison is fair."""
    inside = one_query("inside", "two labels", ([1, 1, 0], [0, 1, 1]), (0.7, 0.3))
    assert reinforces(pair_means(inside.distribution)[0])
    result = run("ap", [inside], sizes=(3000,), n_seeds=2)
    assert [curve.limit for curve in result.curves] == [0.0] * 5
    assert [curve.mean for curve in result.curves] == [(0.0,)] * 5


@pytest.mark.parametrize(
    ("metric", "population"), [("ap", typical()), ("pd", typical("preferences")), ("pd", incomplete())]
)
def test_pair_scores_of_the_expected_loss_are_the_expectations(metric, population):
    model = PairRanker(metric, 1e-9, features=population.pairs, fit_scale=False)
    outcomes, queries = population.outcomes(), population.distribution.queries
    model.fit(**outcomes.fit_arguments(outcomes.probs))
    means = (pair_means if metric == "ap" else net_means)(population.distribution)
    for u, mean in zip(model.predict_pairs(population.X, qid=queries), means, strict=True):
        np.testing.assert_allclose(u, mean, atol=1e-5)


@pytest.mark.parametrize(
    ("metric", "population"),
    [("ap", company()), ("ap", misspecified()), ("pd", incomplete()), ("pd", typical("preferences"))],
)
def test_shortfall_is_the_mean_regret(metric, population):
    scores = np.random.default_rng(0).standard_normal(len(population.X)).round(1)
    expected = regret(metric, population.distribution, scores).mean()
    assert shortfall(metric, population)(scores) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["pairs, exact", "items, squared"])
@pytest.mark.parametrize("metric", METHODS)
def test_merged_draws_give_the_fit_of_all_draws(metric, name):
    """Queries given one after another, as often as they were drawn, against their counts."""
    population, method = typical("grades" if metric == "ap" else "preferences"), METHODS[metric][name]
    outcomes, rng = population.outcomes(), np.random.default_rng(1)
    numbers = rng.integers(0, len(outcomes.sizes), 60)
    merged = method.fit(metric, population, np.bincount(numbers, minlength=80).astype(float), 1 / 60)
    ends = np.r_[0, outcomes.sizes.cumsum()]
    rows = [np.arange(ends[number], ends[number + 1]) for number in numbers]
    y = [taken(outcomes.y, query_rows) for query_rows in rows]
    if metric == "pd":
        starts = 4 * np.arange(60)
        better = np.concatenate([graph.better + start for graph, start in zip(y, starts, strict=True)])
        worse = np.concatenate([graph.worse + start for graph, start in zip(y, starts, strict=True)])
        y = Preferences(better, worse, 240, np.concatenate([graph.weights for graph in y]))
    else:
        y = np.concatenate(y)
    plain = clone(merged).fit(outcomes.X[np.concatenate(rows)], y, qid=Queries.from_sizes([4] * 60))
    if method.decoder:
        for merged_scores, plain_scores in zip(
            *(model.predict_pairs(np.eye(80), qid=np.zeros(80)) for model in (merged, plain)), strict=True
        ):
            np.testing.assert_allclose(merged_scores, plain_scores, atol=1e-9)
    else:
        np.testing.assert_allclose(merged.predict(np.eye(80)), plain.predict(np.eye(80)), atol=5e-6)


def taken(y, rows):
    return y.take(rows) if isinstance(y, Preferences) else y[rows]


def test_outcomes_are_the_labels_of_each_query():
    population = typical("preferences")
    truth, outcomes = population.distribution, population.outcomes()
    for number, prob in enumerate(outcomes.probs):
        query, label = divmod(number, truth.n_labels)
        outcome = outcomes.y.take(np.arange(4 * number, 4 * number + 4))
        expected = truth.labels[label].take(truth.queries.rows([query]))
        assert sorted(edges(outcome)) == sorted(edges(expected))
        assert prob == pytest.approx(truth.probs[query, label] / 20)


def edges(graph):
    return zip(graph.better.tolist(), graph.worse.tolist(), graph.weights.tolist(), strict=True)


def test_own_pairs_by_definition():
    sizes = (2, 1, 3)
    features = np.eye(6)
    for sign in (1.0, -1.0):
        phi = OwnPairs(sizes, sign)
        for i, j in ((0, 1), (3, 4), (3, 5), (4, 5)):
            forth, back = phi(features[[i]], features[[j]])[0], phi(features[[j]], features[[i]])[0]
            assert forth.sum() == 1.0
            assert back.tolist() == (sign * forth).tolist()
        assert not phi(features[[0]], features[[3]]).any()  # not of one query


# ---------------------------------------------------------------- results, command line, plot


def test_the_result_is_plain_values(ap):
    again = run("ap", [company(), typical()], sizes=(30, 10_000), n_seeds=4)
    assert again == ap
    assert json.loads(json.dumps(ConsistencyReport(ap).to_dict()))["metric"] == "ap"
    assert len(ap.rows()) == 2 * 5 * 2


def test_bad_parameters_are_named():
    with pytest.raises(UnknownNameError, match="metric of this experiment"):
        run("ndcg")
    with pytest.raises(ParameterError, match="different names"):
        run("ap", [company(), company()])
    with pytest.raises(ParameterError, match="n_seeds"):
        run("ap", n_seeds=0)


def call(*arguments):
    return CliRunner().invoke(app, ["exactness", *map(str, arguments)])


def test_command_line(tmp_path):
    output = tmp_path / "exactness.html"
    answer = call("--quick", "--seeds", 1, "--output", output)
    assert answer.exit_code == 0, answer.output
    assert "pairs, diagonal" in answer.stdout
    assert "0.03333" in answer.stdout
    assert "mean exact AP regret over 1 training sets" in answer.stdout
    assert "AP regret" in output.read_text()
    report = json.loads(call("--quick", "--seeds", 1, "--metric", "pd", "--json").stdout)
    assert report["metric"] == "pd"
    assert [curve["n_queries"] for curve in report["curves"]] == [[10, 100, 1000]] * 15
    assert call("--metric", "ndcg").exit_code == 2


def test_every_method_has_a_style(ap):
    assert set(plots.PAIR_STYLES) == {name for methods in METHODS.values() for name in methods}
    assert not set(plots.PAIR_STYLES) & set(plots.STYLES)
    assert all((plots.style_of(curve.method).dash == "solid") == curve.consistent for curve in ap.curves)
    figure = plots.consistency_figure(ap)
    assert sum(trace.mode == "lines+markers" for trace in figure.data) == 2 * 5
    assert figure.layout.yaxis.title.text == "AP regret"


def test_the_comparison_rejects_a_wrong_decoder(ap):
    """The populations tell methods apart: the exact decoder's curve is no other's."""
    exact = ap.curve("company", "pairs, exact")
    for method in ("pairs, diagonal", "items, squared"):
        assert ap.curve("company", method).mean[-1] > exact.mean[-1] + 0.03
    assert exhibited().pairs == ("cross",)
