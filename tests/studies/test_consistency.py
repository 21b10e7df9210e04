"""Consistent surrogates lose nothing in the limit, the preorder loss does: exactly, in samples, in a plot."""

import itertools
import json
import math
import re

import numpy as np
import pytest
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

from concordant.data.synthetic import LabelDistribution
from concordant.exceptions import MissingExtraError, ParameterError, UnknownNameError
from concordant.surrogates import Pairwise, PlackettLuce, Preorder, Softmax, Squared
from concordant.theory.regret import bayes
from studies.__main__ import app
from studies.consistency import plots
from studies.consistency.minimiser import minimiser
from studies.consistency.populations import exhibited, misspecified, two_items, typical
from studies.consistency.report import ConsistencyReport
from studies.consistency.study import METHODS, Consistency, Curve, fit_ranker, run
from studies.consistency.witness import search

pytestmark = [pytest.mark.usefixtures("one_blas_thread"), pytest.mark.slow]
PREORDERS = {name: kind for name, kind in METHODS.items() if name.startswith("preorder")}
CONSISTENT = {name: kind for name, kind in METHODS.items() if name not in PREORDERS}


@pytest.fixture(scope="module")
def one_blas_thread():
    """Threads of tiny matrices wait for one another, the longer the more tests run at once."""
    with threadpool_limits(1, user_api="blas"):
        yield


def mean_ndcg(labels, probs, order):
    """Expected NDCG of an order (best first), by its definition."""
    total = 0.0
    for label, prob in zip(labels, probs, strict=True):
        gains = [2.0 ** label[item] - 1.0 for item in order]
        ideal = sorted(gains, reverse=True)
        values = [
            sum(g / math.log2(position + 2) for position, g in enumerate(row)) for row in (gains, ideal)
        ]
        total += prob * values[0] / values[1]
    return total


def naive_regret(population, order):
    """Regret of an order, by trying all."""
    labels, probs = population.distribution.labels, population.distribution.probs[0]
    best = max(mean_ndcg(labels, probs, other) for other in itertools.permutations(range(len(order))))
    return best - mean_ndcg(labels, probs, order)


def naive_preorder(population, weighting, scores):
    """Expected preorder loss with the Huber hinge of width 1/2, by its definition."""

    def phi(t):
        return 0.0 if t > 1.5 else (1.5 - t) ** 2 / 2 if t > 0.5 else 1.0 - t

    total = 0.0
    for y, prob in zip(population.distribution.labels, population.distribution.probs[0], strict=True):
        pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j]]
        for i, j in pairs:
            weight = {"unit": 1.0, "pairs": 1.0 / len(pairs), "gain": (2 ** y[i] - 2 ** y[j]) / len(pairs)}
            total += prob * weight[weighting] * phi(scores[i] - scores[j])
    return total


def check_claim(population, method, order, regret):
    """The only minimiser of the expected loss sorts the items like this, and this is what it loses."""
    minimum = minimiser("ndcg", METHODS[method], population.distribution)
    assert minimum.gradient_norm < 1e-12
    assert minimum.curvature > 0.01
    assert minimum.gap > 0.05
    assert tuple((-minimum.scores).argsort() + 1) == order
    assert minimum.regret == pytest.approx(naive_regret(population, [item - 1 for item in order]), abs=1e-12)
    assert minimum.regret == pytest.approx(regret, abs=5e-5)


EXHIBITED = [  # method, items in the order of the minimiser's scores, regret
    ("pairwise", (1, 2, 3), 0.0),
    ("softmax", (1, 2, 3), 0.0),
    ("squared", (1, 2, 3), 0.0),
    ("preorder unit", (2, 1, 3), 0.0923),
    ("preorder pairs", (2, 3, 1), 0.1336),
    ("preorder gain", (2, 3, 1), 0.1336),
]
TWO_ITEMS = [(name, (2, 1) if name == "preorder gain" else (1, 2)) for name in METHODS]


@pytest.mark.parametrize(("method", "order", "regret"), EXHIBITED)
def test_the_exhibited_distribution(method, order, regret):
    check_claim(exhibited(), method, order, regret)


@pytest.mark.parametrize(("method", "order"), TWO_ITEMS)
def test_two_items_mislead_the_gain_weighting_alone(method, order):
    check_claim(two_items(), method, order, 0.3059 if method == "preorder gain" else 0.0)


@pytest.mark.parametrize(
    ("method", "order", "regret"),
    [
        ("preorder unit", (1, 2, 3), 0.0),  # it is not consistent
        ("preorder unit", (2, 1, 3), 0.0),
        ("preorder gain", (2, 3, 1), 0.0923),
        ("pairwise", (2, 1, 3), 0.0923),
    ],
)
def test_wrong_claims_are_rejected(method, order, regret):
    with pytest.raises(AssertionError):
        check_claim(exhibited(), method, order, regret)


def test_claims_cover_every_method():
    assert {name for name, _, _ in EXHIBITED} == set(METHODS) == set(plots.STYLES)
    assert [kind.order_preserving or kind.needs_positive for kind in METHODS.values()] == [True] * 3 + [
        False
    ] * 3


def test_unit_minimiser_by_hand():
    minimum = minimiser("ndcg", Preorder("unit"), exhibited().distribution)
    np.testing.assert_allclose(minimum.scores, [0.0, 2 / 3, -2 / 3], atol=1e-12)


@pytest.mark.parametrize("margin", ["huber_hinge(0.1)", "squared_hinge", "logistic"])
def test_symmetry_puts_item_1_in_the_middle_whatever_the_margin(margin):
    minimum = minimiser("ndcg", Preorder("unit", margin=margin), exhibited().distribution)
    assert abs(minimum.scores[0]) < 1e-9
    assert minimum.scores[1] > 0.1
    assert minimum.regret == pytest.approx(0.0923, abs=5e-5)


@pytest.mark.parametrize("population", [exhibited(), two_items()], ids=lambda population: population.name)
@pytest.mark.parametrize("weighting", ["unit", "pairs", "gain"])
def test_minimisers_are_least_by_definition(population, weighting):
    minimum = minimiser("ndcg", Preorder(weighting), population.distribution)
    least = naive_preorder(population, weighting, minimum.scores)
    assert minimum.value == pytest.approx(least, rel=1e-12)
    rng = np.random.default_rng(0)
    for spread in (1e-3, 0.1, 1.0, 5.0):
        for moved in minimum.scores + spread * rng.standard_normal((50, len(minimum.scores))):
            assert naive_preorder(population, weighting, moved) >= least
    # No margin is at a corner of the slope: the curvature is that of a neighbourhood, the minimiser unique.
    margins = np.abs(np.subtract.outer(minimum.scores, minimum.scores))[
        ~np.eye(len(minimum.scores), dtype=bool)
    ]
    assert min(abs(margin - corner) for margin in margins for corner in (0.5, 1.5)) > 0.01


def test_consistent_surrogates_never_lose():
    """The theorem, on random distributions; the preorder loss fails the same test."""
    rng, lost = np.random.default_rng(0), dict.fromkeys(METHODS, 0.0)
    for _ in range(40):
        n_items, n_outcomes = rng.integers(2, 5), rng.integers(2, 4)
        labels = tuple(rng.integers(0, 5, (n_outcomes, n_items)).astype(float))
        distribution = LabelDistribution(labels, rng.dirichlet(np.ones(n_outcomes))[None], [0] * n_items)
        optimal = np.sort(bayes("ndcg", distribution).scores)
        if optimal[0] < 0.01 or np.diff(optimal).min() < 0.01:
            continue
        for name, kind in METHODS.items():
            lost[name] += minimiser("ndcg", kind, distribution).regret
    assert [lost[name] for name in CONSISTENT] == [0.0] * 3
    assert min(lost[name] for name in PREORDERS) > 0.01


def test_the_search_finds_what_is_exhibited():
    example = search("ndcg", PREORDERS.values(), restarts=2, steps=150, seed=1)
    distribution = exhibited().distribution
    assert [label.tolist() for label in example.distribution.labels] == [
        label.tolist() for label in distribution.labels
    ]
    assert example.distribution.probs.tolist() == distribution.probs.tolist()
    assert example.regret == pytest.approx(0.0923, abs=5e-5)


def test_the_search_is_reproducible_and_finds_nothing_where_nothing_is():
    options = {"n_items": 2, "restarts": 2, "steps": 30, "seed": 5}
    twice = [search("ndcg", [Preorder("gain")], **options) for _ in range(2)]
    assert twice[0].distribution.labels[0].tolist() == twice[1].distribution.labels[0].tolist()
    assert twice[0].regret == twice[1].regret > 0.0
    for kind in (Squared(), Pairwise(), Softmax(), Preorder("unit")):  # two items: the majority is right
        assert search("ndcg", [kind], **options).regret <= 0.0


def test_errors_of_the_theory():
    two = LabelDistribution(([1, 0, 1, 0],), [[1.0], [1.0]], [0, 0, 1, 1])
    with pytest.raises(ParameterError, match="one query"):
        minimiser("ndcg", Squared(), two)
    with pytest.raises(ParameterError, match="reads full orders"):
        minimiser("ndcg", PlackettLuce(), exhibited().distribution)
    with pytest.raises(ParameterError, match="n_outcomes"):
        search("ndcg", [Squared()], n_outcomes=3, parts=2)
    with pytest.raises(ParameterError, match="smooth"):
        minimiser("ndcg", Preorder(margin="hinge"), exhibited().distribution)
    with pytest.raises(ParameterError, match="at least one"):
        search("ndcg", [])
    with pytest.raises(ParameterError, match="n_seeds"):
        run(n_seeds=0)
    with pytest.raises(ParameterError, match="sizes"):
        run(sizes=(0, 10))
    with pytest.raises(ParameterError, match="different names"):
        run([exhibited(), exhibited()])


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of the fits made here
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "population", [exhibited(), typical(), misspecified()], ids=lambda population: population.name
)
def test_merged_draws_give_the_fit_of_all_draws(population, method):
    """n queries drawn one by one, with labels by `LabelDistribution.sample`, against their counts."""
    rng, truth, n = np.random.default_rng(1), population.distribution, 60
    drawn = rng.integers(0, truth.queries.n_queries, n)
    rows, sizes = truth.queries.rows(drawn), truth.queries.sizes[drawn]
    sample = LabelDistribution(
        tuple(label[rows] for label in truth.labels), truth.probs[drawn], np.repeat(np.arange(n), sizes)
    )
    y = sample.sample(rng)
    outcomes, starts = population.outcomes(), np.r_[0, sizes.cumsum()]
    ends = np.r_[0, outcomes.sizes.cumsum()]
    counts = np.zeros(len(outcomes.sizes))
    for number, query in enumerate(drawn):
        label = y[starts[number] : starts[number + 1]].tolist()
        candidates = range(query * truth.n_labels, (query + 1) * truth.n_labels)
        counts[next(k for k in candidates if outcomes.y[ends[k] : ends[k + 1]].tolist() == label)] += 1
    merged = fit_ranker(outcomes, METHODS[method], counts, 1 / n)
    plain = merged.__class__(**merged.get_params()).fit(population.X[rows], y, qid=sample.queries)
    np.testing.assert_allclose(merged.predict(population.X), plain.predict(population.X), atol=5e-6)


@pytest.fixture(scope="module")
def result():
    return run([exhibited(), typical()], sizes=(30, 3000), n_seeds=4)


def test_regret_goes_to_zero_or_stays(result):
    for name in CONSISTENT:
        assert result.curve("exhibited", name).mean[-1] == result.curve("exhibited", name).limit == 0.0
        few, many = result.curve("typical", name).mean
        assert many < few / 20
        assert result.curve("typical", name).limit < 1e-9
    for name in PREORDERS:
        assert result.curve("exhibited", name).mean[-1] > 0.09
        assert min(result.curve("typical", name).mean) > 0.004


def test_limits_are_the_population_regrets(result):
    for name, kind in METHODS.items():
        exact = minimiser("ndcg", kind, exhibited().distribution).regret
        assert result.curve("exhibited", name).limit == pytest.approx(exact, abs=1e-12)


def test_the_result_is_a_table_and_plain_values(result):
    rows = result.rows()
    assert len(rows) == 2 * 6 * 2
    assert rows[0].keys() == {"population", "method", "n_queries", "mean", "low", "high"}
    assert all(row["low"] <= row["mean"] <= row["high"] for row in rows if row["population"] == "typical")
    assert json.loads(json.dumps(ConsistencyReport(result).to_dict()))["n_seeds"] == 4
    with pytest.raises(UnknownNameError, match="typical / squared"):
        result.curve("typical", "hinge")


def test_equal_seeds_give_equal_results(result):
    assert run([exhibited(), typical()], sizes=(30, 3000), n_seeds=4) == result


def call(*arguments):
    return CliRunner().invoke(app, ["consistency", *map(str, arguments)])


def test_command_line(tmp_path):
    output = tmp_path / "consistency.html"
    answer = call("--quick", "--seeds", 1, "--output", output)
    assert answer.exit_code == 0, answer.output
    assert "preorder gain" in answer.stdout
    assert "expected loss" in answer.stdout
    assert "0.13363" in answer.stdout
    assert "over 1 training sets" in answer.stdout
    assert output.stat().st_size > 1_000_000  # plotly itself is in the file
    report = json.loads(call("--quick", "--seeds", 1, "--json").stdout)
    assert [curve["n_queries"] for curve in report["curves"]] == [[10, 100, 1000]] * 18


def test_command_line_refuses_before_the_work(tmp_path, monkeypatch):
    for output, problem in (
        (tmp_path, "Isadirectory"),
        (tmp_path / "missing" / "a.html", "Nosuchfileordirectory"),
    ):
        answer = call("--output", output)
        assert answer.exit_code == 2
        assert problem in "".join(filter(str.isalnum, answer.stderr))  # the message is wrapped and framed
    monkeypatch.setattr("concordant.evaluation.outcome_plots.find_spec", lambda _: None)
    answer = call("--output", tmp_path / "a.html")
    assert answer.exit_code == 2
    assert "pip install 'concordant[report]'" in answer.stderr


def test_plot_holds_the_traces(result, tmp_path):
    path = tmp_path / "plot.html"
    plots.plot_consistency(result, path)
    page = path.read_text()
    assert all(f'"name":"{method}"' in page for method in METHODS)
    assert not re.search(r"<script[^>]*\ssrc=", page)  # nothing is loaded from elsewhere
    assert [file.name for file in tmp_path.iterdir()] == ["plot.html"]
    figure = plots.consistency_figure(result)
    lines = [trace for trace in figure.data if trace.mode == "lines+markers"]
    assert len(lines) == 2 * 6
    assert sum(bool(trace.showlegend) for trace in lines) == 6
    drawn = next(trace for trace in lines if trace.name == "preorder gain")
    np.testing.assert_allclose(drawn.y, result.curve("exhibited", "preorder gain").mean)


def test_plot_without_plotly(result, tmp_path, monkeypatch):
    monkeypatch.setattr("concordant.evaluation.outcome_plots.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="an HTML plot needs plotly"):
        plots.plot_consistency(result, tmp_path / "plot.html")
    assert not list(tmp_path.iterdir())


def test_zero_has_a_place_on_the_axis():
    curve = Curve("p", "squared", True, (10, 100), (0.03, 0.0), (0.0, 0.0), (0.1, 0.0), 0.0)
    axis = plots.Decades.from_curves([curve])
    assert axis.position(0.0) == axis.floor < axis.position(0.03) == 0.03
    assert axis.ticks() == {axis.floor: "0", 0.01: "0.01", 0.1: "0.1"}
    zeros = Curve("p", "squared", True, (10,), (0.0,), (0.0,), (0.0,), 0.0)
    assert plots.Decades.from_curves([zeros]).floor > 0.0
    plots.consistency_figure(Consistency((zeros,), (("p", "nothing"),), 1))
