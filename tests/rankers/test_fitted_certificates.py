"""Certificates of fitted rankers: status and text, one warning a fit, and bounds that fits try to break."""

import contextlib
import gc
import itertools
import json
import pickle
import re
import warnings
import weakref
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import concordant as cc
from concordant import GuaranteeWarning, LinearRanker, LinearRankerCV, MaxMarginRanker, PairRanker, Queries
from concordant.decoders.average_precision import DYNAMIC_ITEMS as AP_ITEMS
from concordant.decoders.feedback_arc import DYNAMIC_ITEMS as PD_ITEMS
from concordant.exceptions import (
    NonFiniteError,
    NoRegretBoundError,
    NoRiskBoundError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from concordant.metrics.standardization import usable_targets
from concordant.rankers.guarantee import knowingly, label_space, look_up_guarantee
from concordant.surrogates import (
    Duchi,
    ListwiseHinge,
    Pairwise,
    PositionHinge,
    Preorder,
    Softmax,
    Squared,
    Surrogate,
)
from concordant.theory.bounds import empirical
from concordant.theory.bounds.empirical import shape
from concordant.theory.noise_conditions import net_means, pair_means
from concordant.theory.regret import regret

GRADES = cc.synthetic.grades(n_queries=60, n_items=(2, 7), n_features=4, seed=0)
VOTES = cc.synthetic.preferences(n_queries=60, n_items=5, n_features=4, seed=1)
ORDERS = cc.synthetic.permutations(n_queries=60, n_items=4, n_features=4, seed=2)
LONG = cc.synthetic.grades(n_queries=15, n_items=(2, AP_ITEMS + 10), n_features=4, seed=3)
CV = {"alphas": [1.0, 0.1], "cv": 3}
HINGE = Preorder("pairs", margin="hinge")


class Case:
    """A ranker, its data, and what its certificate should say."""

    def __init__(self, model, data, status, condition, phrase, said=""):
        self.model, self.data, self.status, self.condition = model, data, status, condition
        self.phrase, self.said = phrase, said

    def fitted(self, **options):
        return clone(self.model).fit(self.data.X, self.data.y, qid=self.data.qid, **options)


EVERY, NOTHING = "every distribution", "nothing"
ASSUMED, MISSED = "This was assumed, not tested.", "This was neither assumed nor tested."
CASES = {
    "ndcg": Case(LinearRanker("ndcg@5"), GRADES, "proven", EVERY, "ndcg@5 on grades, softmax, sort: proven."),
    "dcg, squared": Case(LinearRanker("dcg", "squared"), GRADES, "proven", EVERY, "dcg on grades, squared"),
    "p@1, pairwise": Case(
        LinearRanker("p@1", "pairwise"), GRADES, "proven", EVERY, "p@1 on binary, pairwise"
    ),
    "ap": Case(
        LinearRanker("ap"), GRADES, "refuted", "P_reinforce", MISSED, "only if the labels satisfy P_reinforce"
    ),
    "ap, assumed": Case(LinearRanker("ap", assume="P_reinforce"), GRADES, "refuted", "P_reinforce", ASSUMED),
    "err": Case(
        LinearRanker("err"), GRADES, "refuted", NOTHING, "It is not consistent", "with squared optim"
    ),
    "rr": Case(LinearRanker("rr"), GRADES, "refuted", NOTHING, "rr on binary", "Nothing guarantees"),
    "preorder": Case(
        LinearRanker("ndcg", "preorder"), GRADES, "refuted", NOTHING, "compares grades", "preorder"
    ),
    "hinge on targets": Case(
        LinearRanker("ndcg", Pairwise("hinge"), solver="bundle"),
        GRADES,
        "refuted",
        NOTHING,
        "pairwise(hinge)",
        "Nothing guarantees that training with pairwise",
    ),
    "position hinge": Case(
        LinearRanker("ndcg", "position_hinge", solver="bundle"),
        GRADES,
        "refuted",
        NOTHING,
        "position_hinge",
        "with position_hinge optimises ndcg",
    ),
    "pd of votes": Case(
        LinearRanker("pd"), VOTES, "refuted", "low_noise", "This was neither", "pass assume='P_f'"
    ),
    "pd, assumed": Case(
        LinearRanker("pd", assume="low_noise"), VOTES, "refuted", "low_noise", "low_noise: maj"
    ),
    "pd, P_f": Case(LinearRanker("pd", assume="P_f"), VOTES, "refuted", "P_f", ASSUMED),
    "pd of grades": Case(
        LinearRanker("pd"), GRADES, "refuted", NOTHING, "pd on grades", "Nothing guarantees"
    ),
    "zero_one": Case(
        LinearRanker("zero_one", "plackett_luce"),
        ORDERS,
        "refuted",
        "order_preserving",
        MISSED,
        "only if the labels satisfy order",
    ),
    "orders for ndcg": Case(
        LinearRanker("ndcg", "plackett_luce"),
        ORDERS,
        "open",
        NOTHING,
        "Reason: ndcg does not read permutations.",
        "ndcg does not read permutations. See print(model.certificate_).",
    ),
    "cv": Case(
        LinearRankerCV("ndcg", **CV), GRADES, "proven", EVERY, "ndcg on grades, softmax, sort: proven."
    ),
    "cv, ap": Case(
        LinearRankerCV("ap", **CV), GRADES, "refuted", "P_reinforce", MISSED, "labels satisfy P_rei"
    ),
    "cv, preorder": Case(
        LinearRankerCV("ndcg", "preorder", **CV), GRADES, "refuted", NOTHING, "preorder", "Nothing guarantees"
    ),
    "max margin": Case(
        MaxMarginRanker(), GRADES, "refuted", NOTHING, "listwise_hinge(ndcg)", "listwise_hinge"
    ),
    "max margin, pairs": Case(
        MaxMarginRanker("ap", "pairwise"),
        GRADES,
        "refuted",
        NOTHING,
        "position_hinge(pairs)",
        "position_hinge(pairs)",
    ),
    "pairs, ap": Case(PairRanker("ap"), GRADES, "proven", EVERY, "ap on binary, pairs, auto: proven."),
    "pairs, diagonal": Case(
        PairRanker("ap", decoder="diagonal"),
        GRADES,
        "refuted",
        "P_reinforce",
        MISSED,
        "decoder='auto' needs no condition",
    ),
    "pairs, beam": Case(
        PairRanker("ap", decoder="beam"),
        GRADES,
        "conditional",
        "proven_decode",
        "Decoded.proven",
        "proven_decode",
    ),
    "pairs, ap of long lists": Case(
        PairRanker("ap"),
        LONG,
        "proven",
        "proven_decode",
        "under proven_decode: on queries whose order the decoder proves",
    ),
    "pairs, pd": Case(PairRanker("pd"), VOTES, "proven", EVERY, "pd on preferences, pairs, auto: proven."),
    "pairs, edges": Case(
        PairRanker("pd", decoder="edge-deletion"),
        VOTES,
        "refuted",
        "P_DAG",
        MISSED,
        "for pd only if labels satisfy P_DAG",
    ),
    "pairs of grades, borda": Case(
        PairRanker("pd", decoder="borda"),
        GRADES,
        "refuted",
        "P_f",
        "pd on grades, pairs, borda",
        "'pairs', 'borda'",
    ),
}
every_case = pytest.mark.parametrize("name", CASES)


def text_of(certificate):
    """The paragraph on one line."""
    return " ".join(str(certificate).split())


def facts_of(certificate):
    """What reports say at length, on one line."""
    return f"{certificate.guaranteed()} {certificate.limits()} {certificate.regrets()}"


def call_with_warnings(call):
    """What a call gives, and the warnings that it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, caught


# ---------------------------------------------------------------- every ranker


@every_case
def test_what_each_certificate_says(name):
    case = CASES[name]
    model, caught = call_with_warnings(case.fitted)
    assert [(warning.category, warning.filename) for warning in caught] == [
        (GuaranteeWarning, __file__)
    ] * bool(case.said)
    for warning in caught:
        assert case.said in str(warning.message)
        assert "print(model.certificate_)" in str(warning.message)
    certificate = model.certificate_
    assert (certificate.status, certificate.condition, model.basis_) == (
        case.status,
        case.condition,
        case.condition,
    )
    assert case.condition in (EVERY, NOTHING, *certificate.holds_under)
    text = text_of(certificate)
    assert case.phrase in text
    assert text.startswith(certificate.subject)
    assert ("It needs enough queries" in text) == (case.condition == EVERY)
    assert ("It is consistent under" in text) == (case.condition not in (EVERY, NOTHING))
    assert ("Reason: " in text) == (case.condition == NOTHING)
    assert ("penalties that go to 0" in certificate.limits()) == (case.condition != NOTHING)
    assert ("cannot express" in certificate.limits()) == (case.condition != NOTHING)
    assert certificate.theorem is None or certificate.theorem.statement in certificate.guaranteed()
    assert "Risk" not in text
    assert "the objective is" in text
    assert f"rests on {case.condition})" in repr(certificate)
    assert "|" not in text
    lines = str(certificate).splitlines()
    assert len(lines) <= 5
    assert max(map(len, lines)) <= 110
    assert not any(line.endswith(" ...") for line in lines)


@every_case
def test_as_json_and_through_pickle(name):
    with knowingly():
        model = CASES[name].fitted()
    certificate = model.certificate_
    read = json.loads(certificate.to_json(), parse_constant=lambda _: pytest.fail("not JSON"))
    assert read == certificate.to_dict()
    assert (read["status"], read["condition"]) == (certificate.status, certificate.condition)
    assert read["optimality"]["value"] == certificate.optimality.value
    back = pickle.loads(pickle.dumps(model)).certificate_  # noqa: S301
    assert back == certificate
    assert str(back) == str(certificate)
    assert len(pickle.dumps(certificate)) < 20_000  # nothing of X


@every_case
def test_silenced_by_knowingly(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with knowingly():
            CASES[name].fitted()


def test_knowingly_silences_nothing_else():
    with pytest.warns(UserWarning, match="other"), knowingly():
        warnings.warn("other", UserWarning, stacklevel=1)


@every_case
def test_the_solvers_word_is_quoted(name):
    with knowingly():
        model = CASES[name].fitted()
    optimality, solution = model.certificate_.optimality, model.solution_
    assert (optimality.value, optimality.excess) == (solution.value, solution.excess)
    assert (optimality.converged, optimality.stopped_by) == (solution.converged, solution.stopped_by)
    assert optimality.alpha == getattr(model, "alpha_", model.alpha if hasattr(model, "alpha") else None)
    assert optimality.gap == solution.gap  # smooth losses and penalties, or a bundle
    quoted = f"the objective is {optimality.value:.6g} at alpha={optimality.alpha:g}, "
    assert quoted in text_of(model.certificate_)


def test_a_gap_that_is_none_is_not_called_one():
    model, _ = call_with_warnings(
        lambda: LinearRanker("ndcg", "position_hinge").fit(GRADES.X, GRADES.y, qid=GRADES.qid)
    )
    assert model.certificate_.optimality.gap is None
    assert "an estimated" in text_of(model.certificate_)
    assert "at most" not in str(model.certificate_.optimality)
    free = LinearRanker("ndcg", "squared", alpha=0.0).fit(GRADES.X, GRADES.y, qid=GRADES.qid)
    assert free.certificate_.optimality.gap is None
    assert json.loads(free.certificate_.to_json())["optimality"]["gap"] is None


def test_work_cut_short_is_said():
    with pytest.warns(match="max_iter"):
        model = LinearRanker(max_iter=1).fit(GRADES.X, GRADES.y, qid=GRADES.qid)
    assert "max_iter ended training early" in text_of(model.certificate_)


def test_the_penalty_is_the_chosen_one():
    model = CASES["cv"].fitted()
    assert model.certificate_.optimality.alpha == model.alpha_
    plain = LinearRanker("ndcg", alpha=model.alpha_).fit(GRADES.X, GRADES.y, qid=GRADES.qid)
    assert model.certificate_.claim == plain.certificate_.claim


def test_a_new_fit_replaces_the_certificate():
    model = LinearRanker("ndcg").fit(GRADES.X, GRADES.y, qid=GRADES.qid)
    first = model.certificate_
    second = model.set_params(metric="dcg").fit(GRADES.X, GRADES.y, qid=GRADES.qid).certificate_
    assert first != second
    assert (str(first.claim.metric), str(second.claim.metric)) == ("ndcg", "dcg")
    assert not hasattr(clone(model), "certificate_")


def test_the_decoder_may_be_changed_without_a_word():
    model = PairRanker("pd").fit(VOTES.X, VOTES.y, qid=VOTES.qid)
    assert model.certificate_.status == "proven"
    certificate, caught = call_with_warnings(lambda: model.set_params(decoder="borda").certificate_)
    assert (certificate.status, certificate.condition, model.basis_, caught) == ("refuted", "P_f", "P_f", [])
    assert certificate.transfer is None
    assert model.set_params(decoder="auto").certificate_.status == "proven"


# ---------------------------------------------------------------- decodes that may not be proven


def items(n, metric="pd"):
    """A query of so many items, each of three grades; of preferences for pd."""
    rng = np.random.default_rng(n)
    y = np.arange(n) % 3
    better, worse = np.nonzero(y[:, None] > y)
    return rng.normal(size=(n, 3)), y if metric == "ap" else cc.Preferences(better, worse, n)


@pytest.mark.parametrize(("metric", "limit"), [("ap", AP_ITEMS), ("pd", PD_ITEMS)])
def test_long_lists_rest_on_the_proof_of_the_decode(metric, limit):
    models = [PairRanker(metric).fit(*items(n, metric)) for n in (limit, limit + 1)]
    assert [model.basis_ for model in models] == [EVERY, "proven_decode"]
    assert [model.certificate_.status for model in models] == ["proven", "proven"]
    assert [model.certificate_.holds_under for model in models] == [(), ("proven_decode",)]
    short, long = (facts_of(model.certificate_) for model in models)
    proven = "on queries whose order the decoder proves best (`Decoded.proven`)"
    assert proven not in short
    assert f"for every distribution of the labels, {proven}." in long
    assert f"The longest query here has {limit + 1} items." in long
    assert f"off its best {proven}." in long
    assert "assumed nor tested" not in long
    assert json.loads(models[1].certificate_.to_json())["condition"] == "proven_decode"


@pytest.mark.parametrize("decoder", ["auto", "borda"])
def test_two_grades_need_no_proof(decoder):
    """No majority cycle: any number of items; the transfer is for the best order of the pair scores."""
    X, _ = items(PD_ITEMS + 4)
    model = PairRanker("pd", decoder=decoder).fit(X, np.arange(len(X)) % 2)
    assert (model.basis_, model.certificate_.holds_under) == (EVERY, ())
    assert ("off its best on queries whose order" in facts_of(model.certificate_)) == (decoder == "auto")


# ---------------------------------------------------------------- words


def warning_of(model, data):
    """The one warning of a fit."""
    _, caught = call_with_warnings(lambda: clone(model).fit(data.X, data.y, qid=data.qid))
    (warning,) = caught
    return str(warning.message)


@pytest.mark.parametrize(
    ("model", "data", "asked"),
    [
        (LinearRanker("pd"), GRADES, "cc.certify('pd', model.surrogate_, labels='grades')"),
        (LinearRanker("pd"), VOTES, "cc.certify('pd', model.surrogate_)"),
        (LinearRanker("err"), GRADES, "cc.certify('err', model.surrogate_, labels='grades')"),
        (LinearRanker("ap"), GRADES, "cc.certify('ap', model.surrogate_)"),
        (MaxMarginRanker("ap", "pairwise"), GRADES, "cc.certify('ap', model.surrogate_, labels='grades')"),
        (LinearRanker("ndcg", "preorder"), GRADES, "cc.certify('ndcg', model.surrogate_)"),
        (PairRanker("pd", decoder="borda"), GRADES, "cc.certify('pd', 'pairs', 'borda', labels='grades')"),
        (PairRanker("pd", decoder="borda"), VOTES, "cc.certify('pd', 'pairs', 'borda')"),
    ],
    ids=str,
)
def test_warnings_ask_about_the_labels_at_hand(model, data, asked):
    assert f" and {asked}." in warning_of(model, data)
    with knowingly():
        fitted = clone(model).fit(data.X, data.y, qid=data.qid)
    answer = eval(asked, {"cc": cc, "model": fitted})  # noqa: S307
    certificate = fitted.certificate_
    assert (answer.combination.space, answer.status) == (certificate.sample.space, certificate.status)


@pytest.mark.parametrize("metric", ["pd", "wpd"])
def test_all_conditions_are_named_and_the_weaker_one_is_offered(metric):
    text = warning_of(LinearRanker(metric), VOTES)
    assert (
        "only if the labels satisfy low_noise or P_f (low_noise implies P_f). If yours do, pass assume='P_f'."
        in text
    )
    assumed_text = text_of(CASES["pd, P_f"].fitted().certificate_)
    assert "low_noise" not in assumed_text
    with knowingly():
        open_one = facts_of(CASES["pd of votes"].fitted().certificate_)
    assert "nor tested; it is consistent under P_f, too: the majority prefers" in open_one


@every_case
def test_no_capital_follows_a_colon(name):
    _, caught = call_with_warnings(CASES[name].fitted)
    for warning in caught:
        assert not re.search(r": [A-Z][a-z ]", str(warning.message))


def test_a_condition_of_pairs_serves_no_items():
    with pytest.raises(ParameterError, match=r"P_DAG is a condition of PairRanker\(decoder='edge-del"):
        LinearRanker("pd", assume="P_DAG").fit(VOTES.X, VOTES.y, qid=VOTES.qid)


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (("precision", 1.0), "; rounding kept the solver from getting closer"),
        (("precision", None), "; rounding, or a corner of the loss, kept the solver from getting closer"),
        (("interrupt", 1.0), "; Ctrl-C ended training early"),
        (("callback", 1.0), "; the callback ended training early"),
    ],
)
def test_what_ended_the_work_is_said(ending, said):
    stopped_by, gap = ending
    optimality = CASES["ndcg"].fitted().certificate_.optimality
    short = replace(optimality, converged=False, stopped_by=stopped_by, gap=gap)
    assert str(short).endswith(said)


# ---------------------------------------------------------------- labels


def space(metric, surrogate, y, sizes=(3, 3)):
    """The space of grades of some queries."""
    return label_space(cc.metric(metric), surrogate, cc.Grades(y), Queries.from_sizes(sizes))


def test_labels_are_named_as_they_are_read():
    two, three = [0, 5, 5, 1, 0, 1], [0, 1, 2, 0, 1, 1]
    assert [space("pd", Squared(), y) for y in (two, three)] == ["binary", "grades"]
    assert [space("ndcg", Squared(), y) for y in (two, [0, 1, 1, 0, 0, 0])] == ["grades", "binary"]
    assert [space("ap", kind, three) for kind in (Squared(), Preorder())] == ["binary", "grades"]
    assert space("pd", Squared(), [7.0], [1]) == "binary"


@pytest.mark.parametrize("metric", ["dcg", "ndcg@3", "err", "ap", "p@2", "rr", "eru", "auc", "pd", "wpd"])
@pytest.mark.parametrize("highest", [1, 2])
def test_the_catalogue_and_the_standardization_agree(metric, highest):
    """What training on targets rests on, by the labels at hand and by the catalogue."""
    queries, metric_object = Queries.from_sizes([3, 3]), cc.metric(metric)
    labels = metric_object.read_labels(np.array([0, 1, highest, 1, 1, 0.0]))
    basis = usable_targets(metric_object, labels, queries)[1]
    for kind in (Softmax(), Squared(), Pairwise()):
        claim = look_up_guarantee(
            metric_object, kind, "sort", label_space(metric_object, kind, labels, queries)
        )
        assert claim.condition == basis


@pytest.mark.parametrize("least", [0.5, 1, 2, 3])
def test_relevance_may_begin_anywhere(least):
    """The catalogue reads it as 0 and 1; what the metric calls relevant changes no guarantee."""
    name = f"[relevant_from={least}]"
    for model, status in ((PairRanker("ap"), "proven"), (LinearRanker("p@2"), "proven")):
        metric = f"{model.metric}{name}"
        certificate = (
            clone(model).set_params(metric=metric).fit(GRADES.X, GRADES.y, qid=GRADES.qid).certificate_
        )
        assert (certificate.status, certificate.condition, certificate.claim.metric) == (
            status,
            EVERY,
            cc.metric(metric),
        )
    text = warning_of(LinearRanker(f"ap{name}"), GRADES)
    assert "If yours do, pass assume='P_reinforce'." in text
    asked = cc.metric(f"ap{name}" if least < 1 else "ap")
    assert f"cc.certify('{asked}', model.surrogate_)." in text
    assert cc.certify(str(asked), "softmax").status == "refuted"


class Stubborn(Squared):
    """A loss of a user's own, of which no hash can be taken."""

    name = "stubborn"
    __hash__ = None


def test_nothing_is_claimed_of_losses_of_ones_own():
    with pytest.warns(GuaranteeWarning, match="with stubborn optimises ndcg: nothing is shown of this loss"):
        model = LinearRanker("ndcg", Stubborn()).fit(GRADES.X, GRADES.y, qid=GRADES.qid)
    assert (model.certificate_.status, isinstance(model.surrogate_, Surrogate)) == ("open", True)
    assert model.certificate_.transfer is None


# ---------------------------------------------------------------- regret


def population(seed=3):
    """Grades of known distribution, many outcomes a query."""
    return cc.synthetic.grades(n_queries=400, n_items=(2, 6), n_features=4, n_labels=4, seed=seed)


def mean_targets(metric, distribution):
    """E[r(y)] by row."""
    return distribution.mean_per_row(lambda label: cc.metric(metric).targets(label, qid=distribution.queries))


def squared_regret(scores, targets, offsets):
    """Sum of squares about each query's mean difference."""
    away = np.split(scores - targets, offsets[1:-1])
    return np.array([((part - part.mean()) ** 2).sum() for part in away])


def softmax_regret(scores, targets, offsets):
    """Sum of a_i log(a_i / (sum(a) softmax(s)_i))."""
    regrets = []
    for s, a in zip(np.split(scores, offsets[1:-1]), np.split(targets, offsets[1:-1]), strict=True):
        logs = s - s.max() - np.log(np.exp(s - s.max()).sum())
        shown = a > 0
        regrets.append((a[shown] * (np.log(a[shown] / a.sum()) - logs[shown])).sum() if shown.any() else 0.0)
    return np.array(regrets)


def check_transfer(certificate, surrogate_regret, metric_regret, **options):
    """The mean of the metric's regret is bounded."""
    most = certificate.regret_bound(float(surrogate_regret.mean()), **options)
    assert metric_regret.mean() <= most + 1e-9
    return metric_regret.mean() / most


@pytest.mark.parametrize("alpha", [0.01, 10.0])
@pytest.mark.parametrize("metric", ["ndcg@3", "dcg", "p@2"])
@pytest.mark.parametrize("kind", ["squared", "softmax"])
def test_the_regret_of_a_fitted_ranker_is_bounded(metric, kind, alpha):
    toy = population()
    model = LinearRanker(metric, kind, alpha).fit(toy.X, toy.y, qid=toy.qid)
    targets, queries = mean_targets(metric, toy.distribution), toy.distribution.queries
    scores, offsets = model.predict(toy.X), queries.offsets
    of_loss = {"squared": squared_regret, "softmax": softmax_regret}[kind](scores, targets, offsets)
    of_metric = regret(metric, toy.distribution, scores)
    mass = float(np.add.reduceat(targets, offsets[:-1]).mean())
    sample = model.certificate_.sample
    assert sample.n_items == queries.sizes.max()
    assert sample.mass == pytest.approx(mass, rel=0.15)  # that of the labels drawn
    assert check_transfer(model.certificate_, of_loss, of_metric, mass=mass) > 1e-4
    bound = model.certificate_.regret_bound(of_loss, mass=np.add.reduceat(targets, offsets[:-1]))
    assert (of_metric <= bound + 1e-9).all()
    with pytest.raises(AssertionError):
        check_transfer(model.certificate_, of_loss, of_metric, mass=mass, n_items=1)  # the check can fail


@pytest.mark.parametrize("kind", ["softmax", "pairwise"])
def test_by_the_mass_of_training_only_means_are_bounded(kind):
    y = np.zeros(80)
    y[[0, 40]] = 1.0  # 2 of 40 queries have a relevant document
    model = LinearRanker("p@1", kind).fit(np.arange(80.0)[:, None] % 7, y, qid=np.arange(80) // 2)
    certificate = model.certificate_
    rho, lost = float(np.log(2.0) + 0.57 * np.log(0.57) + 0.43 * np.log(0.43)), 0.57 - 0.43
    assert certificate.regret_bound(rho) < lost  # of a query with P = .57 and .43 and nearly tied scores
    assert certificate.regret_bound([rho], mass=[1.0])[0] >= certificate.regret_bound(rho, mass=1.0) > lost
    with pytest.raises(ParameterError, match=r"mass is missing.* does not bound single queries"):
        certificate.regret_bound([rho])
    with pytest.raises(ShapeError):
        certificate.regret_bound([[0.1], [0.3, 0.4]])
    text = certificate.regrets()
    assert "averaged over queries by their weights: if the expected loss of a query is 0.01" in text
    assert "its targets sum to 0.05 (as in training), p@1 is at most" in text
    assert "A single query may lose more. Where p@1 is undefined it counts as 0." in text
    assert (
        "averaged over queries"
        not in LinearRanker("ndcg", "squared").fit(GRADES.X, GRADES.y, qid=GRADES.qid).certificate_.regrets()
    )


@pytest.mark.parametrize("metric", ["ap", "pd"])
def test_the_regret_of_a_pair_ranker_is_bounded(metric):
    toy = population(4) if metric == "ap" else cc.synthetic.preferences(n_queries=200, n_items=5, seed=5)
    model = PairRanker(metric).fit(toy.X, toy.y, qid=toy.qid)
    means = pair_means(toy.distribution) if metric == "ap" else net_means(toy.distribution)
    of_loss = []
    for u, mean in zip(model.predict_pairs(toy.X, qid=toy.qid), means, strict=True):
        rows, columns = np.triu_indices(len(u), k=0 if metric == "ap" else 1)
        of_loss.append(((u - mean)[rows, columns] ** 2).sum())
    of_metric = regret(metric, toy.distribution, -model.rank(toy.X, qid=toy.qid).astype(float))
    assert check_transfer(model.certificate_, np.array(of_loss), of_metric) > 0.01


@pytest.mark.parametrize("metric", ["ap", "pd"])
def test_the_loss_of_pairs_is_a_sum_and_the_objective_has_means(metric):
    """By the definition of either, from the fitted pair scores."""
    data = GRADES if metric == "ap" else VOTES
    model = PairRanker(metric, alpha=0.25, fit_scale=False).fit(data.X, data.y, qid=data.qid)
    text, means = model.certificate_.regrets(), []
    for u, rows in zip(model.predict_pairs(data.X, qid=data.qid), rows_of(data.qid), strict=True):
        left, right = np.triu_indices(len(u), k=1)
        if metric == "ap":
            y = (data.y[rows] > 0).astype(float)
            target = np.outer(y, y) / max(y.sum(), 1.0)
            means.append((np.diag(u - target) ** 2).mean())
        else:
            target = net_of(data.y, rows)
        means.append((((u - target)[left, right]) ** 2).mean())
    weights = np.concatenate((model.coef_, model.diagonal_coef_))
    objective = np.sum(means) / len(np.unique(data.qid)) + 0.125 * weights @ weights
    assert model.certificate_.optimality.value == pytest.approx(objective, rel=1e-9)
    summed = (
        "its pairs and its items (the objective has their means)," if metric == "ap" else "its pairs (the"
    )
    assert f"if the expected squared loss of a query, summed over {summed}" in text


def rows_of(qid):
    """Rows of each query."""
    return [np.flatnonzero(qid == query) for query in np.unique(qid)]


def net_of(votes, rows):
    """a_ij - a_ji of a query's rows."""
    net = np.zeros((len(rows), len(rows)))
    number_of_row = {row: number for number, row in enumerate(rows)}
    for better, worse, weight in zip(votes.better, votes.worse, votes.weights, strict=True):
        if better in number_of_row:
            net[number_of_row[better], number_of_row[worse]] += weight
            net[number_of_row[worse], number_of_row[better]] -= weight
    return net


def test_a_regret_bound_that_says_nothing_is_called_so():
    model = LinearRanker("auc").fit(LONG.X, LONG.y, qid=LONG.qid)
    most = model.certificate_.regret_bound(0.01)
    assert most > 1.0
    assert (
        f"auc is at most {most:.3g} off its best, which says nothing: it is never more than 1 off. A single "
        "query may lose more." in model.certificate_.regrets()
    )
    for name in ("ndcg", "dcg, squared", "pairs, pd"):
        assert "says nothing: it is never more" not in CASES[name].fitted().certificate_.regrets()
    dcg = LinearRanker("dcg", "squared").fit(LONG.X, LONG.y, qid=LONG.qid).certificate_
    assert dcg.regret_bound(10.0) > 1.0
    assert "says nothing: it is" not in replace(dcg, sample=replace(dcg.sample, n_items=10**6)).regrets()


def test_of_longer_lists_than_in_training_nothing_is_said():
    """Targets fall by a hair, and sorting turns them round: what is lost grows with the list."""
    certificate = LinearRanker("auc", "squared").fit([[0.0], [1.0]], [0, 1]).certificate_
    assert certificate.regrets().startswith(
        "Regret on lists of at most 2 items: if the expected loss of a query"
    )
    targets = np.linspace(0.0, 0.1, 20)
    rho, worst = float(((targets - targets.mean()) ** 2).sum()), np.arange(20.0)
    lost = targets @ (worst - worst[::-1])
    assert certificate.regret_bound(rho) < lost <= certificate.regret_bound(rho, n_items=20) * (1 + 1e-9)


@pytest.mark.parametrize("model", [LinearRanker("ndcg@10"), LinearRanker("p@1", "pairwise")], ids=str)
def test_nothing_is_said_of_regret_where_labels_are_0(model):
    with pytest.warns(UserWarning, match="Nothing was learned"):
        certificate = clone(model).fit(GRADES.X, 0.0 * GRADES.y, qid=GRADES.qid).certificate_
    assert (certificate.transfer is not None, certificate.regret_bound(0.01)) == (True, 0.0)
    assert "off its best" not in certificate.regrets()


def test_low_noise_that_was_assumed_gives_a_bound():
    with knowingly():
        names = ("pd, assumed", "pd, P_f", "pd of votes")
        assumed, other, unsaid = (CASES[name].fitted().certificate_ for name in names)
    assert assumed.regret_bound(0.01) > 0.0
    assert " under low_noise" in assumed.regrets()
    assert unsaid.transfer is other.transfer is None
    assert unsaid.regret_bound(0.01, assume="low_noise") == assumed.regret_bound(0.01)
    with pytest.raises(NoRegretBoundError, match=r"is proven for pd by pairwise \(refuted\)"):
        unsaid.regret_bound(0.01)
    for assume in (None, "low_noise"):  # f may be anything
        with pytest.raises(NoRegretBoundError, match=r"is proven for pd by pairwise \(by f, under P_f\)"):
            other.regret_bound(0.01, assume=assume)
    with pytest.raises(UnknownNameError, match="unknown condition 'hope'"):
        assumed.regret_bound(0.01, assume="hope")


def test_where_no_regret_bound_is_proven():
    with knowingly():
        refuted, unread = (CASES[name].fitted().certificate_ for name in ("err", "orders for ndcg"))
    with pytest.raises(
        NoRegretBoundError, match=r"^no regret bound is proven for err by squared \(refuted\)"
    ):
        refuted.regret_bound(0.01)
    with pytest.raises(NoRegretBoundError, match=r"for ndcg by plackett_luce \(open\)"):
        unread.regret_bound(0.01)


@pytest.mark.parametrize("name", ["ndcg", "dcg, squared", "pairs, ap"])
@pytest.mark.parametrize("mass", [-1, float("nan"), [1.0, -1.0]])
def test_a_mass_below_0_is_refused_needed_or_not(name, mass):
    with pytest.raises(NonFiniteError, match="mass"):
        CASES[name].fitted().certificate_.regret_bound(0.01, mass=mass)


def test_weighted_labels_have_no_transfer():
    case, by_item = CASES["ndcg"], {"sample_weight": 1.0 + GRADES.y}
    with knowingly():
        plain, weighted = case.fitted(), case.fitted(**by_item)
    assert plain.certificate_.transfer is not None
    assert weighted.certificate_.transfer is None
    with pytest.raises(NoRegretBoundError, match="items weighted by sample_weight"):
        weighted.certificate_.regret_bound(0.1)
    by_query = case.fitted(sample_weight=1.0 + GRADES.qid % 3).certificate_
    assert by_query.transfer is None
    with pytest.raises(NoRegretBoundError, match="queries weighted by sample_weight"):
        by_query.regret_bound(0.1)
    gains = LinearRanker("dcg").fit(GRADES.X, GRADES.y, qid=GRADES.qid, **by_item)
    assert gains.certificate_.transfer is None
    heavy = case.fitted(query_weight=1.0 + GRADES.qid % 3).certificate_
    assert heavy.transfer is not None
    assert heavy.sample.mass != plain.certificate_.sample.mass


# ---------------------------------------------------------------- risk


HINGED = {
    "listwise": MaxMarginRanker("ap"),
    "promised": MaxMarginRanker("ndcg", alpha=5.0, fit_scale=False),
    "softmax": MaxMarginRanker("ndcg", mode="softmax"),
    "pairwise": MaxMarginRanker("ndcg", "pairwise"),
    "plain": MaxMarginRanker("ndcg", HINGE, alpha=2.0, fit_scale=False),
    "linear": LinearRanker("ndcg", "position_hinge", solver="bundle"),
    "cv": LinearRankerCV("ndcg", HINGE, solver="bundle", fit_scale=False, **CV),
}
ROWS = {
    "dense": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "sparse": sparse.csr_array,
    "sparse float32": lambda X: sparse.csr_matrix(X.astype(np.float32)),
}


@pytest.mark.slow
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", HINGED)
def test_the_risk_bound_is_the_one_of_theory(name, rows):
    """Rows in any order, too."""
    order = np.random.default_rng(0).permutation(len(GRADES.y))
    X, y, qid = ROWS[rows](GRADES.X[order]), GRADES.y[order], GRADES.qid[order]
    with knowingly():
        model = clone(HINGED[name]).fit(X, y, qid=qid)
    bound, expected = model.risk_bound(X, y, qid=qid), empirical(model, X, y, qid)
    assert bound.rule == ("regulariser" if name in ("promised", "plain") else "union")
    assert bound.parts == expected.parts
    for field in ("empirical", "measured", "worst", "B", "length", "M", "value"):
        assert getattr(bound, field) == pytest.approx(getattr(expected, field), rel=1e-9)
    assert any("alpha was fixed" in text for text in bound.assumes) == (bound.rule == "regulariser")


@pytest.mark.parametrize("fit_scale", [True, False])
def test_the_bound_holds_on_fresh_queries(fit_scale):
    toy, fresh = (cc.synthetic.grades(n_queries=n, n_items=10, seed=s) for n, s in ((4000, 0), (3000, 1)))
    with knowingly():
        model = MaxMarginRanker("ap", alpha=10.0, fit_scale=fit_scale).fit(toy.X, toy.y, qid=toy.qid)
    bound = model.risk_bound(toy.X, toy.y, qid=toy.qid)
    assert not bound.vacuous
    lost = 1.0 - model.score(fresh.X, fresh.y, qid=fresh.qid)
    assert bound.measured * 0.9 < lost <= bound.value


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (LinearRanker("ndcg", Duchi("cosh")), "a risk bound of duchi is known for the penalty 'square' only"),
        (PairRanker("ap"), "no bound is known for decoded orders"),
        (MaxMarginRanker("dcg"), "dcg has no largest loss"),
        (MaxMarginRanker("wpd"), "wpd has no largest loss"),
        (MaxMarginRanker("ap", mode="sum_interleavings"), "no risk bound is known for this loss"),
    ],
    ids=str,
)
def test_where_there_is_no_bound_the_reason_is_said(model, reason):
    with knowingly():
        fitted = clone(model).fit(GRADES.X, GRADES.y, qid=GRADES.qid)
    with pytest.raises(NoRiskBoundError, match=f"there is no risk bound: {reason}"):
        fitted.risk_bound(GRADES.X, GRADES.y, qid=GRADES.qid)


def test_a_broken_promise_bounds_by_a_union():
    """A warm start far out that is not brought back: the penalty bounds the minimiser, not this."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MaxMarginRanker("ap", alpha=1.0, fit_scale=False).fit(GRADES.X, GRADES.y, qid=GRADES.qid)
        model.coef_ = 100.0 * np.ones(4)
        model.set_params(warm_start=True, callback=lambda _: True).fit(GRADES.X, GRADES.y, qid=GRADES.qid)
    assert np.linalg.norm(model.coef_) > np.sqrt(2.0)
    bound = model.risk_bound(GRADES.X, GRADES.y, qid=GRADES.qid)
    assert bound.rule == "union"
    assert np.sqrt(2.0) < bound.B


def test_a_bound_on_other_queries_needs_no_promise():
    """Shorter lists of lower grades allow shorter weights than those of the fit."""
    with knowingly():
        model = LinearRanker("ndcg@5", "position_hinge", fit_scale=False, alpha=10.0)
        model.fit(GRADES.X, GRADES.y, qid=GRADES.qid)
    whole = model.risk_bound(GRADES.X, GRADES.y, qid=GRADES.qid)
    few = np.unique(GRADES.qid, return_index=True)[1][:, None] + np.arange(2)
    part = model.risk_bound(GRADES.X[few.ravel()], GRADES.y[few.ravel()] > 2, qid=GRADES.qid[few.ravel()])
    assert np.isfinite(part.value)
    model.set_params(fit_scale=True, alpha=7.0)  # parameters of the next fit
    assert model.risk_bound(GRADES.X, GRADES.y, qid=GRADES.qid) == whole


def test_a_loaded_ranker_has_the_same_bound(tmp_path):
    for name in ("promised", "softmax", "cv"):
        with knowingly():
            model = clone(HINGED[name]).fit(GRADES.X, GRADES.y, qid=GRADES.qid)
        cc.save(model, tmp_path / name)
        for copy in (cc.load(tmp_path / name), pickle.loads(pickle.dumps(model))):  # noqa: S301
            assert copy.risk_bound(GRADES.X, GRADES.y, qid=GRADES.qid) == model.risk_bound(
                GRADES.X, GRADES.y, qid=GRADES.qid
            )


def test_a_risk_bound_needs_the_rows_in_memory():
    model = LinearRanker().fit(GRADES.X, GRADES.y, qid=GRADES.qid)
    with pytest.raises(cc.exceptions.LabelError):
        model.risk_bound(GRADES.X, None, qid=GRADES.qid)
    with pytest.raises(cc.exceptions.FeaturesError, match="2 features"):
        model.risk_bound(GRADES.X[:, :2], GRADES.y, qid=GRADES.qid)
    with pytest.raises(NotFittedError):
        LinearRanker().risk_bound(GRADES.X, GRADES.y, qid=GRADES.qid)


def test_a_fitted_ranker_holds_no_training_data():
    sizes = []
    for n_queries in (50, 500):
        toy = cc.synthetic.grades(n_queries=n_queries, n_items=5, n_features=4, seed=0)
        X = toy.X.copy()
        model, alive = LinearRanker("ndcg").fit(X, toy.y, qid=toy.qid), weakref.ref(X)
        sizes.append(len(pickle.dumps(model)))
        assert "certificate_" not in vars(model)
        del X
        gc.collect()
        assert alive() is None
        assert model.certificate_.sample.n_queries == n_queries
    assert abs(sizes[0] - sizes[1]) < 100


def test_fits_compute_no_risk_bound(monkeypatch):
    monkeypatch.setattr("concordant.theory.bounds.smooth.bound_of_loss", None)
    monkeypatch.setattr("concordant.rankers.risk_bound.bound_of_loss", None)
    model = LinearRanker("ndcg").fit(GRADES.X, GRADES.y, qid=GRADES.qid)
    assert model.certificate_.status == "proven"
    with pytest.raises(TypeError):  # the check can fail
        model.risk_bound(GRADES.X, GRADES.y, qid=GRADES.qid)


def test_weighted_labels_need_a_union():
    with knowingly():
        model = HINGED["promised"].fit(GRADES.X, GRADES.y, qid=GRADES.qid, sample_weight=1.0 + GRADES.y)
    assert model.risk_bound(GRADES.X, GRADES.y, qid=GRADES.qid).rule == "union"


@pytest.mark.parametrize(
    "model", [LinearRanker(), MaxMarginRanker(), PairRanker(), PairRanker("pd")], ids=str
)
@pytest.mark.parametrize("n", [1, 5])
def test_a_single_query(model, n):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing to learn from one item
        fitted = clone(model).fit(GRADES.X[:n], np.arange(n) % 2)
    certificate = fitted.certificate_
    assert (certificate.sample.n_queries, certificate.sample.n_items) == (1, n)
    with contextlib.suppress(NoRiskBoundError):
        assert fitted.risk_bound(GRADES.X[:n], np.arange(n) % 2).vacuous
    json.loads(certificate.to_json())
    assert "the objective is" in text_of(certificate)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_features_beyond_the_squares_of_doubles(scale):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        model = MaxMarginRanker("ap").fit(scale * GRADES.X, GRADES.y, qid=GRADES.qid)
    assert json.loads(model.certificate_.to_json())["status"] == "refuted"
    with contextlib.suppress(NoRiskBoundError):
        assert np.isfinite(model.risk_bound(scale * GRADES.X, GRADES.y, qid=GRADES.qid).value)


# ---------------------------------------------------------------- how documents lie


def shape_by_definition(X, sizes, codes):
    """Loops over rows and pairs of rows."""
    spread, apart, far, start = [], [], 0.0, 0
    for size in sizes:
        features, levels = X[start : start + size], codes[start : start + size]
        mean = features.sum(axis=0) / max(size, 1)
        squares = [((row - mean) ** 2).sum() for row in features]
        pairs = itertools.combinations(range(size), 2)
        spread.append(sum(squares))
        apart.append(
            sum(((features[i] - features[j]) ** 2).sum() for i, j in pairs if levels[i] != levels[j])
        )
        far, start = max([far, *np.sqrt(squares)]), start + size
    return np.array(spread), np.array(apart), far


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), shift=st.sampled_from([0.0, 1e4]), unit=st.sampled_from([1e-8, 1.0, 1e8]))
def test_the_shape_of_lists_is_that_of_the_definition(seed, shift, unit):
    rng = np.random.default_rng(seed)
    sizes = np.append(rng.integers(0, 6, 4), 1)
    n, n_features = int(sizes.sum()), int(rng.integers(1, 5))
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < 0.6)
    X[:, 0] += shift  # large, and nearly constant
    X, codes = unit * X, rng.integers(0, 3, n)
    expected = shape_by_definition(X, sizes, codes)
    twice = sparse.csr_array(X)  # each entry stored in two halves
    twice = sparse.csr_array(
        (0.5 * np.repeat(twice.data, 2), np.repeat(twice.indices, 2), 2 * twice.indptr), X.shape
    )
    for rows in (X, sparse.csr_array(X), sparse.csr_matrix(X), twice):
        shapes = shape(rows, Queries.from_sizes(sizes), codes)
        for values, other in zip(shapes, expected, strict=True):
            np.testing.assert_allclose(values, other, rtol=1e-9, atol=1e-9 * unit**2)


def test_the_definition_can_tell():
    X, codes = np.eye(3), np.array([0, 0, 1])
    right, wrong = (shape(X, Queries.from_sizes([3]), levels) for levels in (codes, 0 * codes))
    assert right.apart[0] == pytest.approx(shape_by_definition(X, [3], codes)[1][0])
    assert wrong.apart[0] != pytest.approx(right.apart[0])


# ---------------------------------------------------------------- values


def test_certificates_are_values():
    certificate, two = (CASES["ndcg"].fitted().certificate_ for _ in range(2))
    assert certificate == two
    assert certificate != replace(certificate, sample=replace(certificate.sample, n_items=99))
    assert re.fullmatch(r"FittedCertificate\(.*\)", repr(certificate))


def test_what_is_not_finite_is_null():
    certificate = CASES["ndcg"].fitted().certificate_
    lost = replace(
        certificate, optimality=replace(certificate.optimality, value=float("nan"), excess=float("inf"))
    )
    read = json.loads(lost.to_json(), parse_constant=lambda _: pytest.fail("not JSON"))
    assert read["optimality"]["value"] is None
    assert read["optimality"]["excess"] is None


def test_listwise_hinges_of_another_metric_are_named():
    with knowingly():
        model = LinearRanker("ndcg", ListwiseHinge(cc.metric("ap")), solver="bundle")
        certificate = model.fit(GRADES.X, GRADES.y, qid=GRADES.qid).certificate_
    assert certificate.subject == "ndcg on grades, listwise_hinge(ap), sort"
    assert model.risk_bound(GRADES.X, GRADES.y, qid=GRADES.qid).bounds == "loss by ap"
    assert certificate.status == "refuted"
    with knowingly():
        other = LinearRanker("zero_one", PositionHinge(), solver="bundle")
        certificate = other.fit(ORDERS.X, ORDERS.y, qid=ORDERS.qid).certificate_
    assert certificate.subject == "zero_one on permutations, position_hinge, sort"
