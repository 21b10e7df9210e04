"""What verify() must not let through: labels of another space, rounding, losses of other classes."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import concordant as cc
from concordant.data.labels import Permutations, Preferences
from concordant.exceptions import ParameterError
from concordant.metrics import metric
from concordant.metrics.additive import DCG
from concordant.metrics.cascade import AP
from concordant.surrogates import (
    Duchi,
    Margin,
    Pairwise,
    Preorder,
    Softmax,
    Squared,
    huber_hinge,
    squared_hinge,
)
from concordant.surrogates.margins import CLIP, EXPONENTIAL, LOGISTIC
from concordant.surrogates.order_hinge import ListwiseHinge
from concordant.theory.combination import Combination, combination
from concordant.theory.exact.enclosure import low
from concordant.theory.exact.exact_labels import read
from concordant.theory.exact.exact_targets import pair_targets, targets
from concordant.theory.exact.exact_values import order_value
from concordant.theory.exact.pair_losses import Quadratic, label_pairs
from concordant.theory.exact.polyhedral import polyhedral_minimiser
from concordant.theory.exact.stationary import exact_minimiser, verdict_of
from concordant.theory.search import pair_decoding
from concordant.theory.search.counterexample import (
    PLACES,
    Counterexample,
    format_equivalents,
    is_in_space,
    surrogate_labels_match,
)
from concordant.theory.search.impossibility import impossibility
from concordant.theory.search.pair_decoding import decoded_places
from concordant.theory.spaces import SPACES, every_label
from tests import oracles

pytestmark = pytest.mark.once

HALF = Fraction(1, 2)


def A(*grades):  # noqa: N802  # as labels are written
    return np.array(grades, dtype=np.float64)


def example(case, labels, probs, scores, unit="scores", *, unique=False):
    return Counterexample(
        case, tuple(labels), tuple(probs), tuple(map(Fraction, scores)), unit, unique, "seen"
    )


@pytest.fixture(scope="module")
def counterexample():
    """One that stands: NDCG by the preorder loss."""
    good = cc.certify("ndcg", "preorder", n_items=3, budget=400).counterexample
    assert good.verify()
    return good


# -- labels ------------------------------------------------------------------------------------------------

TWO_AND_ONE = (A(2, 0, 0), A(0, 1, 0)), (Fraction(2, 5), Fraction(3, 5)), (Fraction(4, 5), Fraction(3, 5), 0)


@pytest.mark.parametrize("space", ["binary", "grades"])
def test_labels_of_another_space_prove_nothing(space):
    """Among grades these are told as 0 and 1, since none has three; binary they are not."""
    case = combination("pd", "squared", labels=space)
    wrong = example(case, *TWO_AND_ONE)
    assert verdict_of(case.metric, case.surrogate, wrong.labels, wrong.probs, wrong.scores)
    assert low(wrong.regret) > 0
    assert not wrong.verify()
    assert surrogate_labels_match(case, (*wrong.labels, A(2, 1, 0)))
    assert not surrogate_labels_match(case, wrong.labels)


@pytest.mark.parametrize("space", SPACES)
def test_every_label_belongs_to_its_space_and_no_other(space):
    for label in every_label(space, 3):
        allowed = {other for other in SPACES if is_in_space(label, other)}
        plain = space == "grades" and set(label.tolist()) <= {0.0, 1.0}
        assert allowed == ({"binary", "grades"} if plain or space == "binary" else {space})


@pytest.mark.parametrize(
    "label",
    [
        A(0.5, 1), A(-1, 0), A(np.nan, 1), A(np.inf, 0), A(), np.zeros((2, 2)), np.float64(1.0), [1.0, 0.0],
        np.array(["1", "0"]), np.array([1, None]), None, Preferences([0, 1], [1, 0], 2),
        Preferences([0, 1, 2], [1, 2, 0], 3), Preferences([0], [1], 2, [2.0]),
        Preferences([0, 0], [1, 1], 2), Preferences([0, 1], [1, 0], 2, [2.0, 1.0]), Permutations([1, 1]),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_of_no_space(label):
    assert not any(is_in_space(label, space) for space in SPACES)


def test_a_preference_of_no_weight_is_none():
    assert is_in_space(Preferences([0, 1], [1, 0], 2, [1.0, 0.0]), "preferences")


MALFORMED = {
    "no labels": lambda _: {"labels": (), "probs": ()},
    "other numbers of items": lambda e: {"labels": (*e.labels[:-1], A(1, 0))},
    "another kind": lambda e: {"labels": (*e.labels[:-1], Permutations([1, 2, 3]))},
    "a score too few": lambda e: {"scores": e.scores[:-1]},
    "a score too many": lambda e: {"scores": (*e.scores, Fraction())},
    "scores in doubles": lambda e: {"scores": tuple(map(float, e.scores))},
    "a probability too few": lambda _: {"probs": (Fraction(1),)},
    "a probability too many": lambda e: {"probs": (*e.probs, Fraction())},
    "a negative one": lambda e: {"probs": (Fraction(3), Fraction(-2), *[Fraction()] * (len(e.probs) - 2))},
    "probabilities in doubles": lambda e: {"probs": tuple(map(float, e.probs))},
    "a probability of nothing": lambda e: {
        "labels": (*e.labels, A(0, 0, 0)), "probs": (*e.probs, Fraction()),
    },
    "another unit": lambda _: {"unit": "miles"},
    "places of items": lambda _: {"unit": PLACES},
    "a combination that does not fit": lambda e: {
        "combination": dataclasses.replace(e.combination, space="preferences")
    },
    "a decoder of pairs": lambda e: {"combination": dataclasses.replace(e.combination, decoder="borda")},
    "grades that the metric refuses": lambda e: {
        "combination": combination("err", "preorder", labels="grades"),
        "labels": (*e.labels[:-1], A(9, 0, 0)),
    },
    "too many items": lambda _: {
        "labels": (np.ones(9),), "probs": (Fraction(1),), "scores": (Fraction(),) * 9,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_malformed_does_not_verify_and_does_not_raise(counterexample, name):
    assert dataclasses.replace(counterexample, **MALFORMED[name](counterexample)).verify() is False


def test_a_minimiser_that_is_not_the_only_one_must_not_be_called_so():
    case = combination("ap", Pairwise("hinge"), labels="binary")
    labels, probs, scores = (A(1, 0), A(0, 1)), (HALF, HALF), (Fraction(), Fraction())
    verdict = verdict_of(case.metric, case.surrogate, labels, probs, scores)
    assert verdict is not None
    assert not verdict.unique
    case = combination("ndcg", Pairwise("hinge"))
    good = cc.certify("ndcg", Pairwise("hinge"), n_items=3, budget=400).counterexample
    good_verdict = verdict_of(case.metric, case.surrogate, good.labels, good.probs, good.scores, good.unit)
    assert dataclasses.replace(good, unique=False).verify()
    assert dataclasses.replace(good, unique=True).verify() == good_verdict.unique


# -- scores of pairs ---------------------------------------------------------------------------------------


def places_of(order):
    return tuple(Fraction(-1 - list(order).index(item)) for item in range(len(order)))


@pytest.mark.parametrize("decoder", ["auto", "diagonal", "beam"])
@pytest.mark.parametrize("tiny", [Fraction(1, 10**20), Fraction(1, 10**40), Fraction()])
def test_rounding_refutes_no_decoder(decoder, tiny):
    case = combination("ap", "pairs", decoder)
    labels, probs = (A(0, 1), A(1, 0)), (HALF + tiny, HALF - tiny)
    for scores in itertools.permutations((-1, -2)):
        assert not example(case, labels, probs, scores, PLACES, unique=True).verify()
    if decoder != "beam" and tiny:
        assert decoded_places(case, labels, probs) == (-2, -1)


def test_the_exact_decoder_is_never_refuted():
    for case in (combination("ap", "pairs"), combination("pd", "pairs")):
        labels = every_label(case.space, 3)
        rng = np.random.default_rng(0)
        for _ in range(5):
            trio = [labels[k] for k in rng.choice(len(labels), 3, replace=False)]
            probs = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
            for order in itertools.permutations(range(3)):
                assert not example(case, trio, probs, places_of(order), PLACES, unique=True).verify()


numbers = st.integers(-3, 3).map(Fraction) | st.fractions(-2, 2, max_denominator=9)


@pytest.mark.slow
@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(st.lists(numbers, min_size=n, max_size=n), min_size=n, max_size=n)
    )
)
@settings(max_examples=200)
def test_exact_decoders_follow_their_definitions(u):
    items = range(len(u))
    assert pair_decoding.by_edge_deletion(u) == tuple(oracles.edge_deletion(u))
    net = [sum(u[i][j] - u[j][i] for j in items) for i in items]
    assert pair_decoding.by_borda(u) == tuple(sorted(items, key=lambda i: (-net[i], i)))
    assert pair_decoding.by_diagonal(u) == tuple(sorted(items, key=lambda i: (-u[i][i], i)))


@given(st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=4, max_size=4))
@settings(max_examples=60)
def test_they_agree_with_the_decoders_where_nothing_is_rounded(u):
    """Whole numbers: ties are broken alike."""
    exact, symmetric = (
        [list(map(Fraction, row)) for row in u],
        [[u[max(i, j)][min(i, j)] for j in range(4)] for i in range(4)],
    )
    for name in ("borda", "edge-deletion"):
        order = cc.decoders.feedback_arc(u, method=name).order
        assert pair_decoding.EXACTLY[name](exact) == tuple(order)
    order = cc.decoders.average_precision(symmetric, method="diagonal").order
    assert pair_decoding.by_diagonal([list(map(Fraction, row)) for row in symmetric]) == tuple(order)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "decoder"), [("ap", "diagonal"), ("pd", "borda"), ("pd", "edge-deletion")])
def test_shortcuts_are_still_refuted(name, decoder):
    good = cc.certify(name, "pairs", decoder, n_items=4, budget=600).counterexample
    assert good.verify()
    assert good.unit == PLACES
    assert not dataclasses.replace(good, scores=good.scores[::-1]).verify()
    assert not dataclasses.replace(good, unit="scores").verify()
    best = places_of(good.best[0])
    assert not dataclasses.replace(good, scores=best).verify()


def test_searches_in_doubles_count_only_where_rounding_cannot_matter(monkeypatch):
    case = combination("ap", "pairs", "beam")
    labels, probs = (A(1, 0, 0), A(0, 1, 1)), (Fraction(2, 5), Fraction(3, 5))
    assert decoded_places(case, labels, probs) is None  # the best order: nothing is lost
    monkeypatch.setattr(pair_decoding, "places_in_doubles", lambda *_: np.array([2, 1, 3]))
    assert decoded_places(case, labels, probs) == (-2, -1, -3)
    assert example(case, labels, probs, (-2, -1, -3), PLACES, unique=True).verify()
    near = (HALF - Fraction(1, 10**12), HALF + Fraction(1, 10**12))
    u = pair_decoding.expected_pair_targets(case.metric, (A(1, 0, 0), A(0, 1, 0)), near)
    assert u[0][0] != u[1][1]
    assert decoded_places(case, (A(1, 0, 0), A(0, 1, 0)), near) is None


def test_pair_targets_are_of_ap_and_pd_only():
    for name in ("wpd", "auc", "rr"):
        with pytest.raises(ParameterError, match="ap or pd"):
            pair_targets(metric(name), A(1, 0))


class MyPairs(type(combination("ap", "pairs").surrogate)):
    pass


def test_another_loss_of_pairs_is_not_known():
    case = combination("ap", "pairs", "diagonal")
    good = cc.certify("ap", "pairs", "diagonal", budget=400).counterexample
    other = dataclasses.replace(case, surrogate=MyPairs())
    assert not dataclasses.replace(good, combination=other).verify()


# -- other losses and metrics under known names ------------------------------------------------------------


class Cubed(Squared):
    """A squared loss in name only."""


class Turned(Pairwise):
    pass


class Tilted(Softmax):
    pass


class Bent(Margin):
    pass


class Halved(DCG):
    pass


class OwnAP(AP):
    pass


def narrow():
    return Margin("squared_hinge", CLIP, edge=0.25, width=math.inf, scale=1.0, flat_from=0.25, smoothness=2.0)


@pytest.mark.parametrize(
    "surrogate",
    [
        Cubed(), Turned(), Turned("logistic"), Turned("exponential"), Turned("hinge"), Tilted(),
        Pairwise(Bent("squared_hinge", CLIP, 1.0, math.inf, 1.0)), Pairwise(Bent("logistic", LOGISTIC)),
        Pairwise(Bent("hinge", *cc.surrogates.hinge.code)),
        Preorder("unit", Bent("exponential", EXPONENTIAL)),
        Pairwise(Margin("squared_hinge", CLIP, 1.0, math.inf, 0.0)),
        Pairwise(Margin("huber_hinge", CLIP, 1.5, -1.0, 0.5)),
        Pairwise(Margin("huber_hinge", CLIP, math.nan, 1.0, 0.5)),
    ],
    ids=repr,
)  # fmt: skip
def test_losses_of_other_classes_have_no_exact_form(surrogate):
    labels, probs = (A(1, 0, 0), A(0, 1, 1)), (HALF, HALF)
    assert exact_minimiser(metric("dcg"), surrogate, labels, probs, np.zeros(3)) is None
    assert polyhedral_minimiser(metric("dcg"), surrogate, labels, probs) is None
    for unit, scores in itertools.product(
        ("scores", "weights", "squared weights"), ((0, 0, 0), (HALF, HALF, HALF))
    ):
        assert not verdict_of(metric("dcg"), surrogate, labels, probs, scores, unit)


def test_weights_of_pairs_are_those_of_known_classes():
    with pytest.raises(ParameterError, match="Pairwise or a Preorder"):
        label_pairs(metric("dcg"), Turned(), read(A(1, 0)))


def expected_loss(surrogate, ranking_metric, labels, probs):
    """The package's own loss in doubles, and its gradient."""
    rows = (
        labels
        if surrogate.reads == "grades"
        else [np.array(targets(ranking_metric, y), float) for y in labels]
    )
    shares = [float(prob) for prob in probs]

    def loss(scores):
        parts = [surrogate(np.array(scores, float), row) for row in rows]
        return sum(p * v[0] for p, (v, _) in zip(shares, parts, strict=True)), sum(
            p * grad for p, (_, grad) in zip(shares, parts, strict=True)
        )

    return loss


@pytest.mark.parametrize(
    "shape",
    [
        narrow(),
        Margin("huber_hinge(9)", CLIP, edge=0.75, width=0.5, scale=2.0),
        Margin("mine", CLIP, edge=-0.5, width=0.3, scale=7.0),
        Margin("logistic", CLIP, edge=1.0, width=math.inf, scale=1.0),
        Margin("hinge", CLIP, edge=1.5, width=1.0, scale=0.5),
        Margin("squared_hinge", LOGISTIC),
        huber_hinge(0.1 + 0.2),
    ],
    ids=lambda shape: f"{shape.name} {shape.parameters}",
)
def test_margins_are_identified_by_their_numbers(shape):
    """Whatever the name says, what is pinned has no gradient in the package's own loss."""
    labels, probs = (A(2, 0, 1), A(0, 1, 1), A(1, 2, 0)), (HALF, Fraction(1, 3), Fraction(1, 6))
    ranking_metric = metric("dcg[gain=linear]")
    for surrogate in (Pairwise(shape), Preorder("unit", shape)):
        loss = expected_loss(surrogate, ranking_metric, labels, probs)
        pin = exact_minimiser(
            ranking_metric, surrogate, labels, probs, minimize(loss, A(0.3, 0.1, 0.2), jac=True, tol=1e-12).x
        )
        assert pin is not None
        numbers = np.array(pin.scores, float)
        scores = np.log(numbers) if pin.unit == "weights" else numbers
        grad = expected_loss(surrogate, ranking_metric, labels, pin.probs)(scores)[1]
        np.testing.assert_allclose(grad, 0.0, atol=1e-12)


def test_a_margin_of_another_edge_is_not_the_squared_hinge():
    """Where the true squared hinge is flat, this one is, too, but not the other way round."""
    assert Quadratic.from_margin(narrow()) != Quadratic.from_margin(squared_hinge)
    labels, probs = (A(1, 0), A(0, 1)), (Fraction(3, 4), Fraction(1, 4))
    for shape in (squared_hinge, narrow()):
        surrogate = Pairwise(shape)
        score = HALF * Quadratic.from_margin(shape).edge
        assert verdict_of(metric("p@1"), surrogate, labels, probs, (score, Fraction()))
        grad = expected_loss(surrogate, metric("p@1"), labels, probs)((score, 0))[1]
        assert grad == pytest.approx(0.0, abs=1e-15)
        for other in (squared_hinge, narrow()):
            if other != shape:
                assert not verdict_of(metric("p@1"), Pairwise(other), labels, probs, (score, Fraction()))


def test_metrics_of_other_classes_have_no_exact_values():
    for ranking_metric in (Halved(), OwnAP()):
        with pytest.raises(ParameterError, match="metric class of concordant"):
            order_value(ranking_metric, A(1, 0), (0, 1))
        with pytest.raises(ParameterError, match="metric class of concordant"):
            targets(ranking_metric, A(1, 0))
        assert exact_minimiser(ranking_metric, Squared(), (A(1, 0),), (Fraction(1),), np.zeros(2)) is None
        assert (
            exact_minimiser(
                ranking_metric, ListwiseHinge(ranking_metric), (A(1, 1),), (Fraction(1),), np.zeros(2)
            )
            is None
        )
        assert polyhedral_minimiser(ranking_metric, Pairwise("hinge"), (A(1, 0),), (Fraction(1),)) is None
    with pytest.raises(ParameterError, match="metric class of concordant"):
        pair_targets(OwnAP(), A(1, 0))
    assert impossibility(OwnAP()) is None


@pytest.mark.parametrize("change", [{"metric": Halved()}, {"surrogate": Cubed()}, {"surrogate": Turned()}])
def test_a_counterexample_is_of_its_own_loss_and_metric(change):
    case = combination("ap", "squared")
    good = cc.certify(case.metric, case.surrogate, n_items=3, budget=400).counterexample
    assert good.verify()
    assert not dataclasses.replace(good, combination=dataclasses.replace(case, **change)).verify()


def test_certify_says_nothing_exact_of_other_classes():
    for case in (("ap", Cubed()), (OwnAP(), Squared()), (OwnAP(), Pairwise("hinge"))):
        assert cc.certify(*case, n_items=3, budget=100).counterexample is None


# -- words -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("surrogate", "words"),
    [
        (
            Squared(),
            "(or those plus a constant): the scores are the expected targets, up to a constant: there",
        ),
        (Squared(centred=False), ": the scores are the expected targets: there"),
        (Duchi(), ": 2 nu s_i is the expected target"),
        (Duchi("cosh"), ": nu times the slope"),
        (Softmax(), "(or those times a factor): the scores"),
        (Pairwise("logistic"), "(or those times a factor): the scores"),
    ],
    ids=repr,
)
def test_what_else_is_a_minimum_is_said_where_it_is(surrogate, words):
    good = cc.certify("ap", surrogate, n_items=3, budget=400).counterexample
    said = " ".join(str(good).split())
    assert "is least only at" in said
    assert words in said
    assert ("differences" in said) == ("or those" in words)
    assert format_equivalents(surrogate, good.unit) in said


def test_lines_are_whole_and_the_text_is_wrapped(counterexample):
    lines, text = counterexample.lines(), str(counterexample)
    assert max(map(len, lines)) > 110
    assert max(map(len, text.splitlines())) <= 110
    assert " ".join(" ".join(lines).split()) == " ".join(text.split())
    assert text.startswith("3 items, numbered from 1; the label is\n  (")
    assert lines[-1].startswith("Lost: ")


def test_ties_are_averaged_whatever_the_convention():
    labels, probs = (A(1, 0), A(0, 1)), (Fraction(2, 3), Fraction(1, 3))
    flat = Preorder("unit", Margin("mine", CLIP, edge=-1.0, width=math.inf, scale=1.0))
    for name, clause in (
        ("dcg", "over the ties."),
        ("dcg[ties=best]", "(the convention, ties=best, is not applied)."),
    ):
        case = Combination(metric(name), "binary", flat, "sort")
        tied = example(case, labels, probs, (0, 0))
        assert tied.verify()
        assert not tied.certain
        assert str(tied).endswith(clause)
        assert "is least at scores s_i = 0, 0: " in str(tied)


# -- impossibility -----------------------------------------------------------------------------------------


def test_a_proof_keeps_its_metric_and_needs_not_read_it_back():
    unnamed = metric("ap", convention=AP().convention.replace(gain=np.sqrt))
    proof = impossibility(unnamed, n_items=3)
    assert proof.verify()
    assert proof.metric is unnamed
    assert str(proof).startswith("ap[")
    assert isinstance(proof.to_dict()["metric"], str)


@pytest.mark.parametrize(
    "name", ["err[max_grade=data]", metric("dcg", convention=DCG().convention.replace(gain=np.sqrt))]
)
def test_without_exact_values_there_is_no_proof(name):
    assert impossibility(name, n_items=3) is None


def test_hypotheses_of_the_converse_are_printed():
    said = " ".join(str(impossibility("ap", n_items=3)).split())
    for words in ("bounded function r", "affine in r(y)", "attains its minimum", "converse of Theorem 2"):
        assert words in said
    assert "any function of the labels" not in said


def test_malformed_proofs_do_not_verify():
    proof = impossibility("ap", n_items=3)
    assert not dataclasses.replace(proof, labels=(), probs=()).verify()
    assert not dataclasses.replace(proof, metric=metric("zero_one")).verify()
    assert not dataclasses.replace(proof, metric=OwnAP()).verify()
