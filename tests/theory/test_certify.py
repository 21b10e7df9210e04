"""certify and its Certificate: counterexamples that stand by definition, texts, JSON, errors."""

import dataclasses
import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import concordant as cc
from concordant.exceptions import NoRegretBoundError, ParameterError, UnknownNameError
from concordant.metrics import metric
from concordant.surrogates import Duchi, Pairwise, PlackettLuce, Preorder, Softmax, Squared
from concordant.theory.certificate import in_few_lines
from concordant.theory.certify import matrix
from concordant.theory.combination import combination
from concordant.theory.exact.enclosure import high, low
from concordant.theory.kinds import format_surrogate
from concordant.theory.regret import bayes, expected
from concordant.theory.search.trial import ExpectedLosses, Mixtures, Trial, minimisers, read_surrogate_labels
from concordant.theory.spaces import every_label, format_label, space_of
from tests import oracles

REQUIRED = [  # what the search must find, each within a minute on two cores
    ("pd", "preorder"), ("ndcg", "preorder"),
    *itertools.product(("ap", "err"), ("squared", "pairwise", "softmax", "duchi")),
]  # fmt: skip


@pytest.fixture(scope="module")
def counterexamples():
    return {names: cc.certify(*names, search=True).counterexample for names in REQUIRED}


# --- counterexamples, by definition -----------------------------------------------------------------------

VALUES = {  # metric of grades and an order, from the definitions
    "ap": oracles.ap,
    "err": oracles.err,
    "ndcg": oracles.ndcg,
    "pd": lambda grades, order: oracles.pd(lambda i, j: float(grades[i] > grades[j]), order),
}


def loss_targets(name, grades):
    """What an order-preserving loss is told: y / sum(y) for ap, the probability of stopping for err."""
    if name == "ap":
        return np.array(grades) / max(sum(grades), 1)
    return (2.0 ** np.array(grades) - 1) / 16


def loss_of(surrogate, name, grades, scores):
    """The published loss of one label, as a double loop."""
    n, pairs = len(grades), list(itertools.permutations(range(len(grades)), 2))

    def phi(i, j):
        return oracles.phi("huber_hinge", scores[i] - scores[j])[0]

    if surrogate == "preorder":
        return sum(phi(i, j) for i, j in pairs if grades[i] > grades[j])
    targets = loss_targets(name, grades)
    if surrogate == "pairwise":
        return sum(targets[i] * phi(i, j) for i, j in pairs)
    if surrogate == "softmax":
        return -sum(targets[i] * (scores[i] - np.log(np.exp(scores).sum())) for i in range(n))
    if surrogate == "duchi":
        return sum(scores[i] ** 2 - targets[i] * scores[i] for i in range(n))
    return sum((scores - scores.mean() - targets + targets.mean()) ** 2)


def as_scores(example):
    """The minimiser in doubles."""
    numbers = np.array([float(low(score)) for score in example.scores])
    return np.log(numbers) if example.unit == "weights" else numbers


@pytest.mark.parametrize(("name", "surrogate"), REQUIRED)
def test_counterexamples_stand_by_definition(counterexamples, name, surrogate):
    example = counterexamples[name, surrogate]
    assert example.verify()
    labels, probs = [list(label) for label in example.labels], [float(prob) for prob in example.probs]

    def risk(scores):
        return sum(p * loss_of(surrogate, name, y, scores) for p, y in zip(probs, labels, strict=True))

    scores = as_scores(example)
    for start in (np.zeros(example.n_items), scores, np.arange(example.n_items) / 10.0):
        assert minimize(risk, start, method="Nelder-Mead", tol=1e-10).fun >= risk(scores) - 1e-9
    greater = metric(name).greater_is_better
    value = lambda order: oracles.expected_over_labels(VALUES[name], labels, probs, list(order))  # noqa: E731
    best = oracles.best_expected(VALUES[name], labels, probs, example.n_items, greater=greater)
    got = np.mean([value(order) for order in oracles.compatible_orders(scores.round(9))])
    lost = best - got if greater else got - best
    assert lost > 1e-6
    assert float(low(example.regret)) == pytest.approx(lost, abs=1e-9)


def test_they_are_small(counterexamples):
    for example in counterexamples.values():
        assert len(example.labels) <= 4
        assert max(prob.denominator for prob in example.probs) <= 20
        assert example.n_items == 3


def tampered(example):
    """The same with one thing wrong."""
    shift = Fraction(1, 7)
    yield dataclasses.replace(example, probs=(example.probs[0] / 2, *example.probs[1:]))
    yield dataclasses.replace(example, probs=tuple(reversed(example.probs)))
    yield dataclasses.replace(example, labels=tuple(reversed(example.labels)))
    yield dataclasses.replace(example, scores=(example.scores[0] + shift, *example.scores[1:]))
    yield dataclasses.replace(example, probs=(Fraction(2), Fraction(-1), *example.probs[2:]))


@pytest.mark.parametrize("names", [("ndcg", "preorder"), ("ap", "pairwise"), ("ap", "softmax")])
def test_tampering_is_noticed(counterexamples, names):
    assert counterexamples[names].verify()
    for number, wrong in enumerate(tampered(counterexamples[names])):
        assert not wrong.verify(), (number, wrong)


def test_a_distribution_without_regret_is_no_counterexample(counterexamples):
    example = counterexamples["ndcg", "preorder"]
    certain = dataclasses.replace(example, labels=example.labels[:1], probs=(Fraction(1),))
    assert not certain.verify()


def test_counterexamples_agree_with_exact_regret_in_doubles(counterexamples):
    for (name, _), example in counterexamples.items():
        distribution = example.distribution()
        gap = bayes(name, distribution).values - expected(name, distribution, as_scores(example).round(9))
        assert abs(gap[0]) == pytest.approx(float(high(example.regret)), abs=1e-9)


def test_a_counterexample_can_be_read(counterexamples):
    text = str(counterexamples["ap", "pairwise"])
    assert "3 items, numbered from 1; the label is" in text
    assert "with probability" in text
    assert "The expected pairwise loss is least" in text
    assert "Lost: " in text
    assert repr(counterexamples["ap", "pairwise"]).startswith("Counterexample(ap on binary, pairwise, sort: ")


# --- the Certificate --------------------------------------------------------------------------------------


def test_certificates_are_json():
    for names in (("ap", "pairwise"), ("ndcg", "preorder"), ("ndcg@3", "softmax"), ("pd", "pairs", "borda")):
        certificate = cc.certify(*names, budget=200, n_items=3)
        read = json.loads(certificate.to_json())
        assert read == certificate.to_dict()
        assert (read["status"], read["theorem"]) == (certificate.status, certificate.theorem.name)
        assert (read["counterexample"] is None) == (certificate.counterexample is None)
        assert read["tried"]["distributions"] == certificate.tried.distributions >= 200


def test_five_lines_say_what_holds():
    proven = str(cc.certify("ndcg@10", "pairwise"))
    assert proven.startswith(
        "ndcg@10 on grades, pairwise, sort: proven. It is consistent for every distribution"
    )
    assert "`transfer` and `regret_bound`" in proven
    assert "search=True looks for a counterexample" in proven
    refuted = str(cc.certify("ap", "softmax", n_items=4, budget=300))
    for phrase in ("It is consistent under P_reinforce", "`counterexample`, `impossibility`", "Tried: "):
        assert phrase in refuted
    assert "search=True" not in refuted


@pytest.mark.parametrize("searched", [False, True])
def test_printed_certificates_have_five_lines_at_most(searched):
    """The longest texts, too: two conditions, a listwise hinge of a metric with a convention."""
    names = [("pd", "squared"), ("ap@2[ap_denominator=min]", "softmax"), ("pd", "pairs", "insertion")]
    if not searched:
        names += [(cell.metric, cell.surrogate) for cell in matrix().cells if cell.certificate]
    for parts in names:
        lines = str(cc.certify(*parts, **({"budget": 20, "n_items": 3} if searched else {}))).splitlines()
        assert len(lines) <= 5
        assert max(map(len, lines)) <= 110


def test_longer_parts_are_cut_first():
    parts = ["a b c d", "e f g h i j k l", "m"]
    assert in_few_lines(parts, most=6, width=5).splitlines() == ["a b c", "d", "e f g", "h i j", "k l", "m"]
    assert in_few_lines(parts, most=5, width=5).splitlines() == ["a b c", "d", "e f g", "h ...", "m"]


def test_the_same_seed_gives_the_same_certificate():
    first, second = (cc.certify("auc", "preorder", budget=400, seed=3).to_json() for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("name", "divisor"),
    [
        ("ap", ""),
        ("ap@2", ""),
        ("ap@2[ap_denominator=min]", "min(sum(y), 2)"),
        ("ap[ap_denominator=min]", ""),
    ],
)
def test_the_condition_names_what_ap_divides_by(name, divisor):
    text = " ".join(str(cc.certify(name, "softmax")).split())
    assert "by the company it keeps" in text
    assert ("u_ij = E[y_i y_j / " in text) == bool(divisor)
    assert f"u_ij = E[y_i y_j / {divisor}]" * bool(divisor) in text
    fitted = cc.LinearRanker(name, "softmax", assume="P_reinforce").fit([[0.0], [1.0]], [0, 1]).certificate_
    assert ("u_ij = E[y_i y_j / " in str(fitted)) == bool(divisor)


def test_what_full_orders_cannot_be_read_by_is_named():
    match = r"preorder\(gain\), sort.*preorder\(gain\) reads grades, not full orders; preorder, preorder"
    with pytest.raises(ParameterError, match=match):
        cc.certify("zero_one", "preorder(gain)")
    for name in ("preorder", "preorder(pairs)", "position_hinge"):
        assert cc.certify("zero_one", name).combination.space == "permutations"


def test_regret_bounds_are_those_of_the_transfer():
    certificate = cc.certify("dcg", "squared")
    assert certificate.regret_bound(0.0, n_items=5) == 0.0
    assert certificate.regret_bound(0.04, n_items=5) == pytest.approx(
        2 * certificate.regret_bound(0.01, n_items=5)
    )
    with pytest.raises(NoRegretBoundError, match="no regret bound is proven for ap by squared"):
        cc.certify("ap", "squared").regret_bound(0.1, n_items=5)
    preferences = cc.certify("pd", "squared")
    assert preferences.regret_bound(0.1, n_items=5, assume="low_noise") > 0
    with pytest.raises(NoRegretBoundError):
        preferences.regret_bound(0.1, n_items=5)


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "text"),
    [
        (("ndgc", "pairwise"), {}, UnknownNameError, "ndcg"),
        (("ndcg", "pairwis"), {}, UnknownNameError, "pairwise"),
        (("ndcg", None), {}, UnknownNameError, "surrogate"),
        (("ndcg", "pairwise", "sorted"), {}, UnknownNameError, "sort"),
        (("ndcg", "pairwise", "borda"), {}, ParameterError, "decodes scores of pairs"),
        (("ndcg", "pairs"), {}, ParameterError, "pairs needs metric 'ap' or 'pd'"),
        (("ap@3", "pairs"), {}, ParameterError, "without a cutoff"),
        (("ndcg", "plackett_luce"), {}, ParameterError, "reads full orders"),
        (("err", "listwise_hinge"), {}, ParameterError, "has no listwise hinge loss"),
        (("comparison_error", "pairwise"), {}, ParameterError, "not rankings"),
        (("ndcg", "pairwise"), {"labels": "stars"}, UnknownNameError, "binary"),
        (("ndcg", "pairwise"), {"labels": "permutations"}, ParameterError, "does not read permutations"),
        (("ndcg", "pairwise"), {"n_items": 6}, ParameterError, "2 to 5"),
        (("ndcg", "pairwise"), {"n_items": 1}, ParameterError, "n_items"),
        (("ndcg", "pairwise"), {"budget": 0}, ParameterError, "budget"),
        (("ndcg", "pairwise"), {"search": "yes"}, ParameterError, "search"),
        (("ndcg", "pairwise"), {"n_items": 3}, ParameterError, "search=True"),
        (("ndcg", "pairwise"), {"seed": 1}, ParameterError, "search=True"),
        (("ndcg", "pairwise"), {"budget": 2.5}, ParameterError, "budget"),
        (("ndcg", "pairwise"), {"highest": 0}, ParameterError, "highest"),
        (("err", "pairwise"), {"labels": "grades", "highest": 5, "search": True}, ValueError, "max_grade"),
    ],
)
def test_bad_arguments_are_named(arguments, keywords, error, text):
    with pytest.raises(error, match=text):
        cc.certify(*arguments, **keywords)


def test_without_a_search_the_table_answers():
    certificate = cc.certify("ap", "softmax")
    assert (certificate.status, certificate.tried, certificate.counterexample) == ("refuted", None, None)
    by_budget, by_search = (
        cc.certify("ap", "softmax", n_items=3, **how) for how in ({"budget": 300}, {"search": True})
    )
    assert by_budget.counterexample.verify()
    assert by_search.counterexample.verify()


def test_two_and_five_items_work():
    assert cc.certify("ndcg", "pairwise", n_items=2, budget=50).status == "proven"
    assert cc.certify("rr", "squared", labels="binary", n_items=5, budget=50).counterexample.verify()


def test_a_convention_without_exact_values_is_no_crash():
    odd = metric("dcg", convention=cc.Convention.replace(metric("dcg").convention, gain=np.sqrt))
    certificate = cc.certify(odd, "preorder", budget=100, n_items=3)
    assert certificate.counterexample is None
    assert certificate.tried.worst > 0


# --- the parts --------------------------------------------------------------------------------------------


def test_spaces_are_counted():
    sizes = {
        space: [len(every_label(space, n)) for n in (2, 3, 4)]
        for space in ("binary", "grades", "preferences")
    }
    assert sizes == {
        "binary": [4, 8, 16],
        "grades": [9, 27, 81],
        "preferences": [3, 25, 543],
    }  # 543: acyclic graphs
    assert [len(every_label("permutations", n)) for n in (2, 3, 4)] == [2, 6, 24]
    for space in sizes:
        assert {space_of(label) for label in every_label(space, 3)} <= {space, "binary"}
        assert len({format_label(label) for label in every_label(space, 3)}) == len(every_label(space, 3))
    with pytest.raises(UnknownNameError):
        every_label("stars", 3)
    with pytest.raises(ParameterError):
        every_label("preferences", 5)


def test_every_metric_of_rankings_has_a_space():
    for name in ("dcg", "ndcg", "err", "ap", "p@1", "rr", "eru", "pd", "wpd", "auc", "zero_one"):
        assert metric(name).label_spaces
    assert metric("comparison_error").label_spaces == ()


@pytest.mark.parametrize(
    ("surrogate", "text"),
    [
        (Squared(), "squared"), (Squared(centred=False), "squared(centred=False)"),
        (Pairwise("huber_hinge(0.25)"), "pairwise(huber_hinge(0.25))"), (Duchi("cosh"), "duchi(cosh)"),
        (Preorder("gain", "hinge"), "preorder(gain,hinge)"), (cc.listwise_hinge("ap"), "listwise_hinge(ap)"),
        (cc.listwise_hinge("ndcg@2", "sum"), "listwise_hinge(ndcg@2,sum)"),
    ],
)  # fmt: skip
def test_surrogates_are_described(surrogate, text):
    assert format_surrogate(surrogate) == text


SMOOTH = [
    ("ndcg", Squared()), ("ndcg", Pairwise()), ("dcg", Pairwise("squared_hinge")),
    ("ndcg", Pairwise("logistic")),
    ("ndcg", Pairwise("exponential")), ("auc", Softmax()), ("eru", Duchi()), ("dcg", Duchi("quartic")),
    ("ndcg", Preorder()), ("ndcg", Preorder("gain", "logistic")), ("zero_one", PlackettLuce()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "surrogate"), SMOOTH, ids=str)
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), n_items=st.integers(2, 4))
def test_minimisers_of_many_mixtures_have_no_gradient(name, surrogate, seed, n_items):
    case, rng = combination(name, surrogate), np.random.default_rng(seed)
    labels = every_label(case.space, n_items)
    some = Mixtures(rng.integers(0, len(labels), (20, 5)), rng.dirichlet(np.full(5, 0.5), 20))
    table = read_surrogate_labels(case, labels)
    reached = minimisers(surrogate, table, some)
    assert reached.settled.all()
    losses = ExpectedLosses(surrogate, table, some)
    start, slopes = losses.value_and_grad(np.zeros((20, n_items)))
    for offset in rng.normal(size=(20, n_items)) * 0.3:
        assert (
            losses.value_and_grad(reached.scores + offset)[0] >= reached.values - 1e-9 * (1 + start)
        ).all()
    assert (reached.values <= start + 1e-12 * np.abs(start)).all()
    assert np.isfinite(slopes).all()


def test_expected_losses_have_the_derivatives_they_say(counterexamples):
    example = counterexamples["ndcg", "preorder"]
    case, labels = example.combination, list(example.labels)
    some = Mixtures(np.array([[0, 1]]), np.array([[float(prob) for prob in example.probs]]))
    losses, scores = (
        ExpectedLosses(case.surrogate, read_surrogate_labels(case, labels), some),
        np.array([[0.31, -0.22, 0.93]]),
    )
    slopes, bends = losses.value_and_grad(scores)[1][0], losses.hessian(scores)[0]
    for item, step in enumerate(1e-6 * np.eye(3)):
        up, down = (losses.value_and_grad(scores + sign * step) for sign in (1, -1))
        assert (up[0] - down[0])[0] / 2e-6 == pytest.approx(slopes[item], abs=1e-6)
        np.testing.assert_allclose((up[1] - down[1])[0] / 2e-6, bends[item], atol=1e-6)


def test_regret_in_a_trial_is_exact_regret():
    trial, rng = Trial(combination("ap", "squared"), 3), np.random.default_rng(0)
    some = Mixtures(rng.integers(0, 8, (50, 3)), rng.dirichlet(np.ones(3), 50))
    outcomes = trial.outcomes(some)
    for (indices, probs), regret, scores in zip(
        zip(*some, strict=True), outcomes.regrets, outcomes.scores, strict=True
    ):
        labels = [list(trial.labels[number]) for number in indices]
        best = oracles.best_expected(oracles.ap, labels, probs, 3)
        orders = oracles.compatible_orders(scores.round(9))
        got = np.mean(
            [oracles.expected_over_labels(oracles.ap, labels, probs, list(order)) for order in orders]
        )
        assert regret == pytest.approx(best - got, abs=1e-9)
