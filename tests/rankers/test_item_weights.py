"""Weights of items (`sample_weight` that differs within queries): what certificates say, and if it is so."""

import itertools
import json
import warnings
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone

import concordant as cc
from concordant import (
    BoostedRanker,
    GuaranteeWarning,
    LinearRanker,
    LinearRankerCV,
    MaxMarginRanker,
    PairRanker,
)
from concordant.metrics import DCG, NDCG
from concordant.rankers.guarantee import knowingly, look_up_guarantee
from concordant.surrogates import Duchi, Pairwise, Preorder, Softmax, Squared
from concordant.theory.kinds import PairSquared
from tests.helpers.parted import scan_of

EVERY, NOTHING, BY_FEATURES = "every distribution", "nothing", "feature_weights"
ORDERS = tuple(itertools.permutations(range(3)))
EXAMINED = (Fraction(1), Fraction(1, 2), Fraction(1, 10))  # of the three places


# ---------------------------------------------------------------- what is true, by enumeration


def clicked(label):
    """Every click vector on a label, each place examined by itself, and its probability."""
    for clicks in itertools.product((0, 1), repeat=3):
        chance = Fraction(1)
        for click, theta in zip(clicks, EXAMINED, strict=True):
            chance *= theta if click else 1 - theta
        yield chance, tuple(y * click for y, click in zip(label, clicks, strict=True))


def mean_of(distribution, function):
    """Expectation of three numbers."""
    rows = [[chance * value for value in function(label)] for chance, label in distribution]
    return [sum(column) for column in zip(*rows, strict=True)]


@cache
def target(metric, label, assume):
    return [Fraction(float(value)) for value in metric.targets(np.array(label, float), assume=assume)]


@cache
def worth(metric, label, order):
    """Value of an order; of a loss its negative; 0 where it is undefined."""
    scores = np.zeros(3)
    scores[list(order)] = [3.0, 2.0, 1.0]
    value = float(metric.per_query(np.array(label, float), scores)[0])
    return Fraction(0 if np.isnan(value) else value if metric.greater_is_better else -value)


def ordered(scores):
    return tuple(sorted(range(3), key=lambda item: -scores[item]))


def expected_targets(metric, distribution, assume=None):
    """E[r(y)] of the labels, and E[w r(c)] of clicks weighed by inverse propensities."""
    of_clicks = [(p * q, c) for p, y in distribution for q, c in clicked(y)]
    weighted = mean_of(of_clicks, lambda c: target(metric, c, assume))
    true = mean_of(distribution, lambda y: target(metric, y, assume))
    return true, [value / theta for value, theta in zip(weighted, EXAMINED, strict=True)]


def lost(metric, distribution, scores):
    """How far the order of the scores is below the best one, for the labels behind the clicks."""
    means = {order: sum(p * worth(metric, y, order) for p, y in distribution) for order in ORDERS}
    return float(max(means.values()) - means[ordered(scores)])


def is_reinforcing(distribution):
    """P_reinforce: u_ii >= u_jj implies u_ii >= u_jj + sum over g of (u_jg - u_ig)_+."""
    pairs = list(itertools.permutations(range(3), 2))
    u = {
        (i, j): sum(p * Fraction(y[i] * y[j], sum(y) or 1) for p, y in distribution)
        for i, j in itertools.product(range(3), repeat=2)
    }
    return all(
        u[i, i] >= u[j, j] + sum(max(u[j, g] - u[i, g], 0) for g in range(3) if g not in (i, j))
        for i, j in pairs
        if u[i, i] >= u[j, j]
    )


def mixtures(metric):
    """Two labels each, of grades the metric tells apart."""
    grades = range(3) if metric.k == 1 and metric.name == "ndcg" else range(2)
    labels = [label for label in itertools.product(grades, repeat=3) if any(label)]
    for (label, other), tenths in itertools.product(itertools.combinations(labels, 2), (2, 3, 5, 8)):
        yield [(Fraction(tenths, 10), label), (Fraction(10 - tenths, 10), other)]


def refuted_by(metric, assume=None):
    """Give a distribution whose weighted clicks have targets in a wrong order, and whose labels have not."""
    for distribution in mixtures(metric):
        if assume and not is_reinforcing(distribution):
            continue
        true, weighted = expected_targets(metric, distribution, assume)
        apart = min(abs(a - b) for a, b in itertools.combinations(weighted, 2)) > 1e-9
        if apart and lost(metric, distribution, weighted) > 1e-9 > lost(metric, distribution, true):
            return distribution
    return None


def test_the_counterexample_for_ndcg():
    """Three documents, examined with probability 1, 1/2 and 1/10; relevant are 1 and 3, or 2 and 3."""
    truth = [(Fraction(4, 5), (1, 0, 1)), (Fraction(1, 5), (0, 1, 1))]
    metric = cc.metric("ndcg")
    true, weighted = expected_targets(metric, truth)
    np.testing.assert_allclose(np.array(true, float), [0.4905, 0.1226, 0.6131], atol=5e-5)
    np.testing.assert_allclose(np.array(weighted, float), [0.7691, 0.1923, 0.6518], atol=5e-5)
    assert (ordered(true), ordered(weighted)) == ((2, 0, 1), (0, 2, 1))
    assert (lost(metric, truth, true), round(lost(metric, truth, weighted), 4)) == (0.0, 0.0453)


COUNTEREXAMPLES = {  # exact: E[r(y)], and E[w r(c)], in another order
    "auc": (2, (0, 0, 1), (1, 1, 1), "0 0 1/10", "19/50 9/25 3/10"),
    "pd": (2, (0, 0, 1), (1, 1, 1), "0 0 1/5", "19/25 18/25 3/5"),
    "wpd": (2, (0, 0, 1), (1, 1, 1), "0 0 1/5", "19/25 18/25 3/5"),
    "ap": (3, (0, 0, 1), (1, 0, 1), "7/20 0 13/20", "133/200 0 13/20"),
}


@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_exact_counterexamples(name):
    tenths, label, other, *numbers = COUNTEREXAMPLES[name]
    truth = [(Fraction(tenths, 10), label), (Fraction(10 - tenths, 10), other)]
    metric, assume = cc.metric(name), "P_reinforce" if name == "ap" else None
    targets = expected_targets(metric, truth, assume)
    for mean, text in zip(targets, numbers, strict=True):
        assert [value.limit_denominator(1000) for value in mean] == [Fraction(part) for part in text.split()]
    assert lost(metric, truth, targets[0]) < 1e-9
    assert lost(metric, truth, targets[1]) > 0.1
    assert assume is None or is_reinforcing(truth)


GAINS = (  # sums of gains: an item's target is its own gain
    "dcg", "dcg@2", "dcg[gain=linear]", "p@1", "p@2", "p@2[precision_denominator=min]", "eru",
    "eru(v=0,w=2)@2", "rr@1", "err@1", "ap@1[ap_denominator=min]", "ap@1[ap_denominator=found]",
)  # fmt: skip
LISTS = (
    "ndcg",
    "ndcg@2",
    "ndcg[gain=linear]",
    "ndcg@1",
    "ap@1",
    "auc",
    "pd",
    "wpd",
)  # targets of whole labels
SHARES = ("ap", "ap@2", "ap@2[ap_denominator=min]")


@pytest.mark.parametrize("name", [*GAINS, *LISTS, *SHARES])
def test_targets_are_of_items_where_inverse_propensities_are_right(name):
    metric, assume = cc.metric(name), "P_reinforce" if name in SHARES else None
    right = refuted_by(metric, assume) is None
    assert right == (name in GAINS) == metric.itemwise_targets("grades")


def test_ndcg_of_the_first_place_is_precision_on_two_grades():
    assert cc.metric("ndcg@1").itemwise_targets("binary")
    assert not cc.metric("ndcg@2").itemwise_targets("binary")
    raised = cc.metric("ndcg@1", convention=cc.metrics.Convention(gain=lambda y: y + 1.0))
    assert not raised.itemwise_targets("binary")
    np.testing.assert_allclose(raised.targets([1.0, 0.0, 0.0]), [1.0, 0.5, 0.5])  # not what follows:
    np.testing.assert_allclose(raised.targets([0.0, 0.0, 0.0]), [1.0, 1.0, 1.0])


# ---------------------------------------------------------------- what losses learn, by minimising them


def least(surrogate, targets, weights, shares):
    """Scores that minimise the expected loss of labels with weights, one query each."""
    n_labels, n_items = targets.shape
    offsets = np.arange(n_labels + 1) * n_items
    loss = surrogate.bind(targets.ravel(), offsets, (weights * shares[:, None]).ravel())

    def mean_loss(scores):
        values, grad = loss.value_and_grad(np.tile(scores, n_labels))
        return values.sum(), grad.reshape(n_labels, n_items).sum(axis=0)

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}
    return minimize(mean_loss, np.zeros(n_items), jac=True, method="L-BFGS-B", options=options).x


def gain_of(metric):
    """Gain and discounts of a sum of gains, typed naively."""
    discounts = {
        "dcg": 1.0 / np.log2([2.0, 3.0, 4.0]),
        "p": [1.0, 1.0, 0.0],
        "eru": 0.5 ** (np.arange(3) / 4.0),
    }
    gains = {"dcg": lambda y: 2.0**y - 1.0, "p": lambda y: 1.0 * (y >= 1.0), "eru": lambda y: y}
    return gains[metric.name], np.asarray(discounts[metric.name])


def weighted_regret(metric, labels, weights, shares, scores):
    """What the scores' order loses of the expected sum of weight * gain * discount."""
    gain, discounts = gain_of(metric)
    means = (shares[:, None] * weights * gain(labels)).sum(axis=0)
    values = [
        sum(means[item] * discount for item, discount in zip(order, discounts, strict=True))
        for order in ORDERS
    ]
    total = sum(means[item] * discount for item, discount in zip(ordered(scores), discounts, strict=True))
    return max(values) - total


def drawn(seed):
    """Labels of three items, their weights, which depend on them, and how probable they are."""
    rng = np.random.default_rng(seed)
    n_labels = int(rng.integers(2, 5))
    labels, shares = rng.integers(0, 3, (n_labels, 3)).astype(float), rng.dirichlet(np.ones(n_labels))
    return labels, rng.choice([0.2, 0.5, 1.0, 4.0], (n_labels, 3)), shares


def is_consistent(metric, surrogate, *, by_features, unweighted=False):
    """Whether on every drawn distribution the minimiser orders best; of weighted gains, unless unweighted."""
    for seed in range(60):
        labels, weights, shares = drawn(seed)
        weights = np.tile(weights[0], (len(labels), 1)) if by_features else weights
        targets = np.array([metric.targets(label) for label in labels])
        scores = least(surrogate, targets, weights, shares)
        gain_weights = np.ones_like(weights) if unweighted else weights
        if weighted_regret(metric, labels, gain_weights, shares, scores) > 1e-4:
            return False
    return True


@pytest.mark.parametrize("name", ["dcg", "p@2", "eru"])
@pytest.mark.parametrize("surrogate", [Softmax(), Pairwise(), Pairwise("logistic")], ids=repr)
def test_losses_of_weighted_targets_follow_weighted_gains(name, surrogate):
    metric = cc.metric(name)
    assert look_up_guarantee(metric, surrogate, "sort", "grades").under_weights("items").status == "proven"
    assert is_consistent(metric, surrogate, by_features=False)
    assert not is_consistent(metric, surrogate, by_features=True, unweighted=True)


@pytest.mark.parametrize("surrogate", [Squared(), Squared(centred=False), Duchi(), Duchi("cosh")], ids=repr)
def test_losses_of_weighted_terms_forget_weights_of_features(surrogate):
    metric = cc.metric("dcg")
    claim = look_up_guarantee(metric, surrogate, "sort", "grades").under_weights("items")
    assert (claim.status, claim.condition) == ("refuted", BY_FEATURES)
    assert is_consistent(metric, surrogate, by_features=True, unweighted=True)
    assert not is_consistent(metric, surrogate, by_features=False, unweighted=True)
    assert not is_consistent(metric, surrogate, by_features=True)  # the weighted metric
    assert not is_consistent(metric, surrogate, by_features=False)


class Careless(NDCG):
    """NDCG with a wrong claim."""

    def itemwise_targets(self, space):
        del space
        return True


def test_a_wrong_claim_is_noticed(monkeypatch):
    """That NDCG is a sum of gains: its certificate says proven then, and the enumeration says no."""
    monkeypatch.setattr(NDCG, "itemwise_targets", DCG.itemwise_targets)
    claim = look_up_guarantee(cc.metric("ndcg"), Softmax(), "sort", "binary").under_weights("items")
    assert claim.status == "proven"
    assert refuted_by(cc.metric("ndcg")) is not None


def test_nothing_is_said_of_a_metric_of_ones_own():
    claim = look_up_guarantee(Careless(), Softmax(), "sort", "binary")
    assert (claim.status, claim.under_weights("items").status) == ("open", "open")


# ---------------------------------------------------------------- what rankers say


GRADES = cc.synthetic.grades(n_queries=12, n_items=4, n_features=3, seed=0)
VOTES = cc.synthetic.preferences(n_queries=12, n_items=4, n_features=3, seed=1)
RANKED = cc.synthetic.permutations(n_queries=12, n_items=4, n_features=3, seed=2)
WEIGHTS = np.tile([1.0, 2.0, 2.0, 10.0], 12)
TWO = replace(GRADES, y=(np.asarray(GRADES.y) > 1).astype(float))
FEW = {"n_estimators": 2, "min_samples_leaf": 1, "n_jobs": 1}


@dataclass(frozen=True)
class Kind:
    """A ranker, by the loss and the metric; and what a weight multiplies in its loss."""

    make: object
    weighs: str
    losses: tuple = (None,)


TARGETS, TERMS, HINGES = "targets", "terms", "hinges"
KINDS = {
    "softmax": Kind(lambda name: LinearRanker(name, "softmax", max_iter=2), TARGETS),
    "pairwise": Kind(lambda name: LinearRanker(name, "pairwise", max_iter=2), TARGETS),
    "squared": Kind(lambda name: LinearRanker(name, "squared", max_iter=2), TERMS),
    "uncentred": Kind(lambda name: LinearRanker(name, Squared(centred=False), max_iter=2), TERMS),
    "duchi": Kind(lambda name: LinearRanker(name, "duchi", max_iter=2), TERMS),
    "hinge on targets": Kind(lambda name: LinearRanker(name, Pairwise("hinge"), solver="bundle"), HINGES),
    "preorder": Kind(lambda name: LinearRanker(name, "preorder", max_iter=2), HINGES),
    "max-margin": Kind(lambda name: MaxMarginRanker(name, "pairwise"), HINGES),
    "cv": Kind(lambda name: LinearRankerCV(name, "softmax", [1.0], cv=2, max_iter=2), TARGETS),
    "cv, squared": Kind(lambda name: LinearRankerCV(name, "squared", [1.0], cv=2, max_iter=2), TERMS),
    "lightgbm": Kind(lambda name: BoostedRanker(name, "softmax", "lightgbm", **FEW), TARGETS),
    "lightgbm, pairwise": Kind(lambda name: BoostedRanker(name, "pairwise", "lightgbm", **FEW), TARGETS),
    "lightgbm, squared": Kind(lambda name: BoostedRanker(name, "squared", "lightgbm", **FEW), TERMS),
    "xgboost": Kind(lambda name: BoostedRanker(name, "softmax", "xgboost", **FEW), TARGETS),
    "xgboost, squared": Kind(lambda name: BoostedRanker(name, "squared", "xgboost", **FEW), TERMS),
    "catboost": Kind(lambda name: BoostedRanker(name, "softmax", "catboost", **FEW), TARGETS),
    "catboost, squared": Kind(lambda name: BoostedRanker(name, "squared", "catboost", **FEW), TERMS),
    "neural": Kind(lambda name: neural(name, "softmax"), TARGETS),
    "neural, squared": Kind(lambda name: neural(name, "squared"), TERMS),
}
# What holds with weights of items, by what these multiply, of the metric without them.
OF_TARGETS = {"gains": ("proven", EVERY), "lists": ("refuted", NOTHING), "none": ("refuted", NOTHING)}
OF_TARGETS |= {"P_reinforce": ("refuted", NOTHING), "order_preserving": ("refuted", NOTHING)}
OF_TERMS = {
    "gains": ("refuted", BY_FEATURES),
    "lists": ("refuted", BY_FEATURES),
    "none": ("refuted", NOTHING),
}
OF_TERMS |= {
    condition: ("refuted", f"{condition} and {BY_FEATURES}")
    for condition in ("P_reinforce", "order_preserving", "low_noise")
}
TABLE = {TARGETS: OF_TARGETS, TERMS: OF_TERMS, HINGES: dict.fromkeys(OF_TARGETS, ("refuted", NOTHING))}
METRICS = {
    **dict.fromkeys(GAINS, "gains"),
    **dict.fromkeys(("ndcg", "ndcg@2", "ndcg@1", "ap@1", "auc", "wpd", "pd"), "lists"),
    **dict.fromkeys(SHARES, "P_reinforce"),
    **dict.fromkeys(("err", "rr", "rr@3"), "none"),
    "zero_one": "order_preserving",
}


def neural(name, surrogate):
    pytest.importorskip("torch")
    return cc.NeuralRanker(name, surrogate, hidden=(2,), max_epochs=1, early_stopping=None)


def fitted(model, data=GRADES, **options):
    """The certificate of a fit, and its `GuaranteeWarning`s."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(data.X, data.y, qid=data.qid, **options)
    return model.certificate_, [
        str(warning.message) for warning in caught if warning.category is GuaranteeWarning
    ]


def data_for(metric):
    if metric == "zero_one":
        return RANKED
    return TWO if metric == "pd" else GRADES


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_ranker_and_metric(kind, metric):
    ranker, data = KINDS[kind], data_for(metric)
    certificate, said = fitted(ranker.make(metric), data, sample_weight=WEIGHTS)
    status, condition = TABLE[ranker.weighs][METRICS[metric]]
    assert (certificate.status, certificate.condition) == (status, condition)
    assert len(said) == (status == "refuted")
    assert certificate.transfer is None
    assert certificate.claim.weighted == certificate.sample.weighted == "items"
    check_texts(certificate, said, ranker.weighs, METRICS[metric])


def check_texts(certificate, said, weighs, basis):
    """What is right stands in the paragraph, the JSON and the warning, and nothing that is wrong."""
    text = certificate.guaranteed()
    assert len(str(certificate).splitlines()) <= 5
    assert "cc.certify" not in str(certificate)  # which knows of no weights
    assert "with weights of items" in repr(certificate)
    assert json.loads(certificate.to_json())["statement"] in text
    assert ("targets that are multiplied by the weights" in text) == (certificate.status == "proven")
    assert ("consistent for every distribution" in text) == (certificate.status == "proven")
    if weighs == "targets" and basis in ("lists", "P_reinforce", "order_preserving"):
        assert "depends on the labels of the whole list" in text
        assert "depends on the labels of the whole list" in said[0]
    if weighs == "terms" and basis != "none":
        assert "Inverse propensities correct nothing" in text
        assert "depend on the features alone. Weights multiply terms of the loss" in said[0]
        assert "inverse propensities correct nothing" in said[0]
    for message in said:
        assert "sum of gains" in message
        assert "labels divided by their propensities" in message
        assert "assume=" not in message


@pytest.mark.parametrize("kind", ["softmax", "squared"])
def test_a_condition_that_is_assumed_does_not_make_weights_right(kind):
    model = KINDS[kind].make("ap").set_params(assume="P_reinforce")
    certificate, said = fitted(model, sample_weight=WEIGHTS)
    assert (certificate.status, certificate.condition) == TABLE[KINDS[kind].weighs]["P_reinforce"]
    assert len(said) == 1
    votes, said = fitted(LinearRanker("pd", "squared", assume="P_f"), VOTES, sample_weight=WEIGHTS)
    assert (votes.condition, len(said)) == (f"P_f and {BY_FEATURES}", 1)
    assert votes.holds_under == (f"P_f and {BY_FEATURES}",)


PAIRS = {"ap": (GRADES, "P_reinforce"), "pd of votes": (VOTES, "P_f"), "pd": (TWO, None)}


@pytest.mark.parametrize("case", PAIRS)
def test_pair_rankers(case):
    data, shortcut = PAIRS[case]
    metric, other = case[:2], "diagonal" if case == "ap" else "borda"
    model = PairRanker(metric)
    certificate, said = fitted(model, data, sample_weight=WEIGHTS)
    assert (certificate.status, certificate.condition, len(said)) == ("refuted", BY_FEATURES, 1)
    assert "inverse propensities correct nothing" in said[0]
    quick, said = fitted(PairRanker(metric, decoder=other), data, sample_weight=WEIGHTS)
    expected = BY_FEATURES if shortcut is None else f"{shortcut} and {BY_FEATURES}"
    assert (quick.condition, len(said)) == (expected, 1)
    model.decoder = other
    assert model.certificate_.condition == expected
    long = look_up_guarantee(cc.metric("ap"), PairSquared(), "auto", "binary", n_items=100).under_weights(
        "items"
    )
    assert long.condition == f"proven_decode and {BY_FEATURES}"
    assert "only on queries whose order" in long.caution


def test_losses_of_whole_orders_lose_their_condition():
    for loss in ("plackett_luce", Preorder("pairs")):
        certificate, said = fitted(LinearRanker("zero_one", loss, max_iter=2), RANKED, sample_weight=WEIGHTS)
        assert (certificate.status, certificate.condition, len(said)) == ("refuted", NOTHING, 1)
        plain, _ = fitted(LinearRanker("zero_one", loss, max_iter=2), RANKED)
        assert plain.condition == "order_preserving"


SAME = {
    "all ones": np.ones(48),
    "all equal": np.full(48, 0.3),
    "by query": np.repeat(np.arange(12.0), 4),
    "by query, one of a row": np.repeat([0.0, *[1.0] * 11], 4),
}
RANKERS = {
    "linear": LinearRanker("ndcg"),
    "cv": LinearRankerCV("ndcg", alphas=[1.0], cv=2),
    "max-margin": MaxMarginRanker("ap"),
    "squared": LinearRanker("dcg", "squared"),
    "trees": BoostedRanker("ndcg", **FEW),
    "catboost": BoostedRanker("ndcg", "squared", "catboost", **FEW),
    "pairs": PairRanker("ap"),
}


@pytest.mark.parametrize("ranker", RANKERS)
@pytest.mark.parametrize("weights", SAME)
def test_weights_that_agree_within_queries_are_weights_of_queries(ranker, weights):
    """They change no status, condition or text, and no warning."""
    (certificate, said), (plain, expected) = (
        fitted(clone(RANKERS[ranker]), **options) for options in ({"sample_weight": SAME[weights]}, {})
    )
    assert (certificate.status, certificate.condition, said) == (plain.status, plain.condition, expected)
    assert certificate.guaranteed() == plain.guaranteed()
    if weights == "all ones":
        assert (certificate.transfer, certificate.sample, certificate.regrets()) == (
            plain.transfer,
            plain.sample,
            plain.regrets(),
        )


@pytest.mark.parametrize("ranker", RANKERS)
def test_one_item_of_weight_zero_is_a_weight_that_differs(ranker):
    certificate, said = fitted(clone(RANKERS[ranker]), sample_weight=1.0 * (np.arange(48) != 5))
    assert certificate.claim.weighted == "items"
    assert len(said) == 1


def test_no_weights_are_not_looked_at(monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr("concordant.data.check.segment_reduce", refuse)
    LinearRanker("ndcg").fit(GRADES.X, GRADES.y, qid=GRADES.qid)
    with knowingly():
        PairRanker("ap").fit(GRADES.X, GRADES.y, qid=GRADES.qid)
        with pytest.raises(AssertionError):
            LinearRanker("ndcg").fit(GRADES.X, GRADES.y, qid=GRADES.qid, sample_weight=WEIGHTS)


@pytest.mark.parametrize("model", [LinearRanker("ndcg"), LinearRanker("dcg"), PairRanker("ap")], ids=repr)
def test_data_in_parts_say_the_same(model):
    for weights in (WEIGHTS, SAME["by query"]):
        here, said = fitted(clone(model), sample_weight=weights)
        scan = scan_of(GRADES.X, np.asarray(GRADES.y), np.asarray(GRADES.qid), sample_weight=weights)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            there = clone(model).fit(scan).certificate_
        assert [str(warning.message) for warning in caught if warning.category is GuaranteeWarning] == said
        assert (there.claim, there.guaranteed()) == (here.claim, here.guaranteed())
        assert there.sample.weighted == here.sample.weighted == ("items" if weights is WEIGHTS else "queries")


@pytest.mark.parametrize("name", ["softmax", "squared", "lightgbm, squared"])
@pytest.mark.parametrize("metric", ["ndcg", "dcg", "ap"])
def test_a_saved_ranker_says_the_same(name, metric, tmp_path):
    model = KINDS[name].make(metric)
    certificate, _ = fitted(model, sample_weight=WEIGHTS)
    cc.save(model, tmp_path / "model")
    loaded = cc.load(tmp_path / "model")
    assert str(loaded.certificate_) == str(certificate)
    assert loaded.certificate_ == certificate
    assert loaded.basis_ == model.basis_


def test_a_saved_pair_ranker_says_the_same(tmp_path):
    model = PairRanker("ap")
    certificate, _ = fitted(model, sample_weight=WEIGHTS)
    cc.save(model, tmp_path / "model")
    assert str(cc.load(tmp_path / "model").certificate_) == str(certificate)


def test_a_report_says_it():
    for metric, word in (("dcg", "with weighted gains"), ("ndcg", "lead")):
        model = LinearRanker(metric, max_iter=2)
        fitted(model, sample_weight=WEIGHTS)
        certificate = cc.report(model, GRADES.X, GRADES.y, qid=GRADES.qid).certificate
        assert word in certificate.plain
        assert certificate.guaranteed == model.certificate_.guaranteed()


@pytest.mark.parametrize("metric", ["dcg", "ndcg"])
def test_objectives_of_lightgbm_warn(metric):
    lgb = pytest.importorskip("lightgbm")
    for weights, count in ((WEIGHTS, metric == "ndcg"), (SAME["by query"], 0), (None, 0)):
        data = lgb.Dataset(GRADES.X, label=np.asarray(GRADES.y), group=[4] * 12, weight=weights)
        settings = {"objective": cc.objectives.lightgbm(metric, "softmax"), "verbosity": -1, "num_threads": 1}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lgb.train(settings, data, num_boost_round=2)
        assert sum(warning.category is GuaranteeWarning for warning in caught) == count


# ---------------------------------------------------------------- clicks


def logged(n_queries=4000):
    """Clicks of the counterexample, inverse propensities, and the labels behind the clicks."""
    rng = np.random.default_rng(0)
    truth = np.where(rng.random((n_queries, 1)) < 0.8, [1, 0, 1], [0, 1, 1])
    visibility = np.array([1.0, 0.5, 0.1])
    clicks = (truth * (rng.random((n_queries, 3)) < visibility)).ravel().astype(float)
    X, qid = np.tile(np.eye(3), (n_queries, 1)), np.repeat(np.arange(n_queries), 3)
    return X, clicks, qid, np.tile(1.0 / visibility, n_queries), truth.ravel()


def test_inverse_propensities_on_clicks():
    """NDCG ranks wrongly, and warns; sums of gains rank rightly, by weights or by labels."""
    X, clicks, qid, weights, truth = logged()
    with pytest.warns(GuaranteeWarning, match="whole list"):
        wrong = LinearRanker("ndcg", alpha=1e-4).fit(X, clicks, qid=qid, sample_weight=weights)
    assert ordered(wrong.predict(np.eye(3))) == (0, 2, 1)
    right = [
        LinearRanker(name, loss, alpha=1e-4).fit(X, clicks, qid=qid, sample_weight=weights)
        for name, loss in (("dcg", "softmax"), ("dcg", "pairwise"), ("p@1", "softmax"))
    ]
    right += [
        LinearRanker("dcg[gain=linear]", loss, alpha=1e-4).fit(X, clicks * weights, qid=qid)
        for loss in ("softmax", "squared", "duchi")
    ]
    for model in right:
        assert model.certificate_.status == "proven"
        assert ordered(model.predict(np.eye(3))) == (2, 0, 1)
        assert model.score(X, truth, qid=qid) > wrong.score(X, truth, qid=qid)
    with pytest.warns(GuaranteeWarning, match="correct nothing"):
        squared = LinearRanker("dcg", "squared", alpha=1e-4).fit(X, clicks, qid=qid, sample_weight=weights)
    assert ordered(squared.predict(np.eye(3)))[0] == 0  # the document that is seen most
