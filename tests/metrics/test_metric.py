"""Metrics as values: names, means, weights, row order, standardization, errors."""

import copy
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import concordant as cc
import concordant.metrics as cm
from concordant.exceptions import (
    ConcordantError,
    GradeError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    NoStandardizationError,
    NotNumericError,
    ParameterError,
    UnknownNameError,
)
from tests import oracles

NAMES = [
    "dcg", "dcg@5", "ndcg", "ndcg@10", "err", "err@3", "ap", "ap@100", "p@1", "p@10", "rr", "rr@10",
    "eru", "eru(v=1,w=3)", "eru(w=2.5)@7", "pd", "wpd", "auc", "zero_one", "comparison_error",
    "comparison_error(tau=0.5)", "comparison_auc", "comparison_auc(inversions=ignored)",
]  # fmt: skip
STYLES = [
    "concordant",
    *cm.PRESETS,
    "lightgbm,empty=0",
    "gain=linear,ties=random,seed=3",
    "empty_ap=nan,max_grade=data",
    "catboost,empty_ap=None",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("style", STYLES)
def test_a_metric_is_read_back_from_its_text(name, style):
    metric = cc.metric(name, convention=style)
    assert cc.metric(str(metric)) == metric
    assert hash(cc.metric(str(metric))) == hash(metric)
    assert pickle.loads(pickle.dumps(metric)) == metric  # noqa: S301
    assert copy.deepcopy(metric) == metric


@pytest.mark.parametrize(
    ("alias", "name"),
    [("map", "ap"), ("mrr@10", "rr@10"), ("precision@5", "p@5"), ("wta", "p@1"), ("NDCG@10", "ndcg@10")],
)
def test_aliases(alias, name):
    assert cc.metric(alias) == cc.metric(name)


BAD_NAMES = [
    ("ndgc@10", UnknownNameError, "Did you mean 'ndcg'"),
    ("ndcg@0", ParameterError, "an integer >= 1"),
    ("ndcg@ten", ParameterError, "an integer"),
    ("ndcg@-1", ParameterError, "an integer"),
    ("p", ParameterError, "p@5"),
    ("auc@3", ParameterError, "reads every pair"),
    ("zero_one@3", ParameterError, "whole list"),
    ("eru(x=1)", UnknownNameError, "v, w"),
    ("eru(w=1)", ParameterError, "w must be a finite number > 1"),
    ("eru(w=a)", ParameterError, "a number"),
    ("ndcg@10[lightgmb]", UnknownNameError, "lightgbm"),
    ("", ParameterError, "ndcg@10"),
    ("ndcg@10)", ParameterError, "got '10)'"),
    ("comparison_error(tau=-1)", ParameterError, "tau must be a finite number >= 0"),
    ("wta@5", ParameterError, "wta means p@1"),
    ("ndcg@\u00b2", ParameterError, "an integer"),
    ("pd@3", ParameterError, "reads every pair"),
    ("eru(v=nan)", ParameterError, "finite"),
    ("eru(w=inf)", ParameterError, "finite"),
    ("ndcg[seed=-1]", ParameterError, "an integer >= 0"),
    ("ndcg[seed=1.5]", ParameterError, "an integer >= 0"),
    ("p@" + "9" * 30, ParameterError, "an integer"),
]


@pytest.mark.parametrize(("name", "error", "text"), BAD_NAMES)
def test_bad_names(name, error, text):
    with pytest.raises(error) as caught:
        cc.metric(name)
    assert text in str(caught.value)


GRADED = [name for name in NAMES if not name.startswith(("zero_one", "comparison"))]


@pytest.mark.parametrize("name", GRADED)
@given(seed=st.integers(0, 1000))
def test_row_order_does_not_matter(name, seed):
    rng = np.random.default_rng(seed)
    n = 60
    y, s, qid = rng.integers(0, 5, n), rng.integers(0, 6, n) / 2, rng.integers(0, 8, n)
    shuffle = rng.permutation(n)
    metric = cc.metric(name)
    first, second = metric(y, s, qid=qid), metric(y[shuffle], s[shuffle], qid=qid[shuffle])
    assert float(first) == pytest.approx(float(second), rel=1e-12)
    assert (first.n_queries, first.n_skipped) == (second.n_queries, second.n_skipped)
    per_query = metric.per_query(y, s, qid=qid)
    alone = [float(metric(y[qid == q], s[qid == q])) for q in np.unique(qid)]
    np.testing.assert_allclose(per_query, alone, rtol=1e-12)


@pytest.mark.parametrize("name", GRADED)
def test_threads_change_nothing(name, monkeypatch):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 200, 600)
    qid = np.repeat(np.arange(600), sizes)
    y, s = rng.integers(0, 5, len(qid)), rng.normal(size=len(qid)).round(2)
    results = []
    for threads in ("1", "3"):
        monkeypatch.setenv("CONCORDANT_THREADS", threads)
        results.append(cc.metric(name).per_query(y, s, qid=qid))
    np.testing.assert_array_equal(*results)


def test_the_value_carries_what_it_averaged():
    value = cc.metric("ap")([1, 0, 0], [1, 2, 3], qid=[1, 1, 2])
    assert isinstance(value, float)
    assert (value.name, value.n_queries, value.n_skipped) == ("ap", 2, 1)
    assert repr(value) == "ap = 0.5 over 1 of 2 queries"
    assert f"{value:.2f}" == "0.50"
    again = pickle.loads(pickle.dumps(value))  # noqa: S301
    assert (again, again.name, again.n_skipped) == (0.5, "ap", 1)


def test_one_query_without_ids_and_single_items():
    assert float(cc.metric("ndcg")([1], [0.0])) == 1.0
    assert cc.metric("auc").per_query([1, 0], [0, 0], qid=["a", "b"]).tolist() == pytest.approx(
        [np.nan] * 2, nan_ok=True
    )


def test_empty_queries_without_rows_are_undefined():
    queries = cc.Queries.from_sizes([2, 0])
    for name in GRADED:
        assert np.isnan(cc.metric(name).per_query([1, 0], [0.1, 0.2], qid=queries)[1]), name


def custom(**fields):
    return cm.DCG(convention=cm.Convention(**fields))


BAD_CALLS = [
    (lambda m: m([1, 0], [1, 2, 3]), LengthMismatchError, "scores has 3"),
    (lambda m: m([1, 0], [1, 2], qid=[1]), LengthMismatchError, "qid has 1"),
    (lambda m: m([1, 0], [1, np.nan]), NonFiniteError, "row 1"),
    (lambda m: m([1, 0], [1, np.inf]), NonFiniteError, "-inf marks"),
    (lambda m: m([1001, 0], [1, 2]), GradeError, "2^grade overflow"),
    (lambda m: m([1, 0], [1, 2], qid=[1, 2], weights=[1]), LengthMismatchError, "weights has 1"),
    (lambda m: m([1, 0], [1, 2], qid=[1, 2], weights=[1, -1]), NonFiniteError, "query 1"),
    (lambda m: m([1, 0], [1, 2], qid=[1, 2], weights=[0, 0]), ParameterError, "at least one query"),
    (lambda m: m([1, 0], [1, 2], docid=["a"]), LengthMismatchError, "docid has 1"),
    (lambda m: m(cc.Permutations([1, 2]), [1, 2]), LabelError, "reads grades"),
    (lambda m: m([1, -1], [1, 2], qid=[1, None]), GradeError, "row 1 is negative"),
    (lambda _: cc.metric("dcg", convention="gain=linear")([1e308, 1], [1, 2]), GradeError, "added up"),
    (lambda _: cc.metric("eru")([1e308, 1], [1, 2]), GradeError, "added up"),
    (lambda _: cc.metric("wpd", convention="gain=linear")([1e308, 1], [1, 2]), GradeError, "added up"),
    (lambda _: cc.metric("err", convention="max_grade=data")([2000, 1], [1, 2]), GradeError, "overflow"),
    (
        lambda _: cm.DCG(convention=cm.Convention(gain=lambda g: g[:1]))([1, 0], [1, 2]),
        LengthMismatchError,
        "gain",
    ),
    (
        lambda _: cm.DCG(convention=cm.Convention(discount=np.sqrt))([1, 0], [1, 2]),
        ParameterError,
        "non-increasing",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD_CALLS)
def test_bad_calls(call, error, text):
    with pytest.raises(error) as caught:
        call(cc.metric("ndcg@10"))
    assert text in str(caught.value)
    assert isinstance(caught.value, ConcordantError)


@pytest.mark.parametrize(
    ("name", "y", "scores", "text"),
    [
        ("ndcg", [1, 0, -1], [1, 2, 3], "row 2 (query 'a')"),
        ("ndcg", [1, 0, 1], [1, np.nan, 3], "row 1 (query 'b')"),
        ("ndcg", [1, 2000, 1], [1, 2, 3], "row 1 (query 'b')"),
        ("err", [1, 2, 9], [1, 2, 3], "row 2 (query 'a')"),
        ("ndcg", [1, "x", 1], [1, 2, 3], "row 1 (query 'b')"),
    ],
)
def test_errors_name_the_row_as_given_and_its_query(name, y, scores, text):
    for qid in (["c", "b", "a"], cc.Queries.from_ids(["c", "b", "a"])):
        with pytest.raises(ConcordantError) as caught:
            cc.metric(name)(np.array(y, dtype=object), scores, qid=qid)
        assert text in str(caught.value)


def test_huge_grades_below_the_limit_stay_finite():
    assert float(cc.metric("ndcg")([1000, 999, 0], [3, 2, 1])) == pytest.approx(1.0)
    assert float(cc.metric("ndcg", convention="gain=linear")([1e9, 0], [1, 2])) == pytest.approx(
        1 / np.log2(3)
    )


def test_err_refuses_grades_above_its_maximum():
    with pytest.raises(GradeError, match="above max_grade=4"):
        cc.metric("err")([5, 0], [1, 2])
    assert float(cc.metric("err", convention="max_grade=data")([5, 0], [1, 0])) == pytest.approx(31 / 32)


def test_conventions_keep_plain_numbers():
    style = cm.Convention(relevant_from=np.int64(2), empty=np.float32(0.5), seed=np.int64(3))
    assert (style.relevant_from, style.empty, style.seed) == (2.0, 0.5, 3)
    assert all(type(value) in (float, int) for value in (style.relevant_from, style.empty, style.seed))
    assert cm.convention(str(style)) == style


def test_parameters_are_plain_numbers():
    assert cc.metric(str(cm.ERU(v=np.float64(0.5)))) == cm.ERU(v=0.5)
    assert type(cm.NDCG(k=np.uint64(3)).k) is int
    assert float(cm.NDCG(k=np.uint64(3))([1, 0], [1, 2])) == pytest.approx(1 / np.log2(3))
    for bad in (lambda: cm.NDCG(k=True), lambda: cm.ERU(v="1"), lambda: cm.ComparisonError(tau=None)):
        with pytest.raises(ParameterError):
            bad()


def test_a_convention_is_named_once():
    with pytest.raises(ParameterError, match="has one already"):
        cc.metric("ndcg[lightgbm]", convention="sklearn")


@pytest.mark.parametrize("scale", [1e308, 1.0, 5e-324])
def test_weights_of_any_size(scale):
    got = cc.metric("ndcg")([1, 0, 1, 0], [1, 0, 0, 1], qid=[1, 1, 2, 2], weights=[scale, scale])
    assert float(got) == pytest.approx((1 + 1 / np.log2(3)) / 2)


def test_large_gains_do_not_cancel_in_pairs():
    assert float(cc.metric("wpd[gain=linear]")([1e15, 1e15 + 2, 1e15 + 4], [3, 2, 1])) == 8.0


def test_a_discount_may_be_a_function():
    natural = cm.Convention(discount=lambda position: 1 / np.log(1 + position))
    got = float(cc.metric("dcg", convention=natural)([1, 2], [2.0, 1.0]))
    assert got == pytest.approx(1 / np.log(2) + 3 / np.log(3))


def test_every_error_survives_a_process_boundary():
    import concordant.exceptions as ce

    raised = [
        ce.GradeError(5.0, "row 3", "is high", "lower it.").at(3),
        ce.MalformedLineError("f.txt", 3, 4, "bad"),
        ce.NonFiniteError("X", float("nan"), "row 1", 2),
        ce.LengthMismatchError("y", 1, 2),
        ce.UnknownNameError("metric", "x", ["y"]),
        ce.NoStandardizationError("ap", "theorem", "hint"),
    ]
    for error in raised:
        again = pickle.loads(pickle.dumps(error))  # noqa: S301
        assert (type(again), str(again), again.__dict__) == (type(error), str(error), error.__dict__)


def test_zero_one_refuses_grades():
    with pytest.raises(LabelError, match="Permutations"):
        cc.metric("zero_one")([1, 2], [1, 2])


# ---------------------------------------------------------------- standardization

STANDARD = ["dcg", "dcg@3", "ndcg", "ndcg@3", "p@2", "eru(v=1,w=2)", "auc", "wpd"]


def best_value(metric, labels, probs, n):
    """Best expected value over all orders, and the value of a given one, by enumeration."""
    import itertools

    sign = 1 if metric.greater_is_better else -1

    def worth(scores):
        values = [np.nan_to_num(metric.per_query(y, scores)[0]) for y in labels]
        return sign * float(np.dot(probs, values))

    orders = [np.argsort(order).astype(float) for order in itertools.permutations(range(n))]
    return max(worth(scores) for scores in orders), worth


@pytest.mark.parametrize("name", STANDARD)
@given(seed=st.integers(0, 10_000))
def test_the_mean_of_the_targets_is_optimal(name, seed):
    """Definition 4 of paper 1, tried to be broken: no order beats sorting by the mean of r(y)."""
    rng = np.random.default_rng(seed)
    n, metric = 4, cc.metric(name)
    top = 2 if name == "auc" else 4
    labels = rng.integers(0, top, (3, n))
    probs = rng.dirichlet(np.ones(3))
    scores = sum(p * metric.targets(y) for p, y in zip(probs, labels, strict=True))
    best, worth = best_value(metric, labels, probs, n)
    assert worth(scores) >= best - 1e-9


def test_the_definition_rejects_a_wrong_standardization():
    """Raw gains are no standardization of NDCG: a distribution shows it."""
    metric, raw = cc.metric("ndcg"), cc.metric("dcg")
    labels, probs = np.array([[3, 0, 0], [0, 1, 1]]), np.array([0.2, 0.8])
    best, worth = best_value(metric, labels, probs, 3)
    wrong = sum(p * raw.targets(y) for p, y in zip(probs, labels, strict=True))
    assert worth(wrong) < best - 1e-3


@pytest.mark.parametrize("name", ["ap", "err", "rr"])
def test_no_standardization_exists(name):
    """(1,1,0,0) and (0,0,1,1) make every r equal in the mean, yet two orders differ in value (Theorem 3)."""
    with pytest.raises(NoStandardizationError, match="Theorem 3"):
        cc.metric(name).targets([1, 0])
    metric, labels = cc.metric(name), np.array([[1, 1, 0, 0], [0, 0, 1, 1]])
    _, worth = best_value(metric, labels, np.array([0.5, 0.5]), 4)
    assert abs(worth(np.array([4.0, 3, 2, 1])) - worth(np.array([4.0, 2, 3, 1]))) > 1e-5


def test_pd_on_three_grades_has_none_but_two_have():
    with pytest.raises(NoStandardizationError, match="Condorcet"):
        cc.metric("pd").targets([0, 1, 2])
    assert cc.metric("pd").targets([0, 3, 0, 1, 0], qid=["a", "a", "b", "b", "b"]).tolist() == [0, 1, 0, 1, 0]


def test_targets_are_zero_where_the_metric_is_undefined():
    for name in ("ndcg", "dcg", "p@2", "auc", "wpd", "pd", "eru"):
        y = [0, 0] if name in ("ndcg", "dcg", "p@2", "eru") else [2, 2]
        assert cc.metric(name).targets(y).tolist() == [0.0, 0.0], name


def test_targets_come_back_in_the_callers_order():
    y, qid = [2, 1, 0], ["b", "a", "b"]
    np.testing.assert_allclose(cc.metric("ndcg").targets(y, qid=qid), [1.0, 1.0, 0.0])


# ---------------------------------------------------------------- comparisons

outcomes = st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=20)
decisions = st.floats(-3, 3).map(lambda d: round(d, 1))


@given(y=outcomes, data=st.data(), tau=st.sampled_from([0.0, 0.5, 1.0]))
def test_comparison_error(y, data, tau):
    d = data.draw(st.lists(decisions, min_size=len(y), max_size=len(y)))
    metric = cc.metric(f"comparison_error(tau={tau})")
    assert float(metric(y, d)) == pytest.approx(oracles.comparison_error(y, d, tau), abs=1e-12)


@given(y=outcomes, data=st.data())
def test_comparison_area(y, data):
    d = data.draw(st.lists(decisions, min_size=len(y), max_size=len(y)))
    for kind in ("error", "ignored"):
        metric = cc.metric(f"comparison_auc(inversions={kind})")
        if len({o == 0 for o in y}) < 2:
            assert np.isnan(float(metric(y, d)))
            continue
        want = oracles.comparison_area(y, d, ignore_inversions=kind == "ignored")
        assert float(metric(y, d)) == pytest.approx(want, abs=1e-12)
        roc = cm.comparison_roc(y, d, inversions=kind)
        assert roc.area == pytest.approx(want)
        assert (np.diff(roc.false_positive) >= 0).all()
        assert (np.diff(roc.true_positive) >= 0).all()
        assert (roc.false_positive[[0, -1]] == [0, 1]).all()


def test_reversed_signs_look_perfect_only_where_inversions_are_ignored():
    y, d = [1, 1, -1, 0, 0], np.array([2.0, 1.5, -1.2, 0.1, 0.2])
    assert cm.comparison_roc(y, d).area == 1.0
    assert cm.comparison_roc(y, -d, inversions="ignored").area == 1.0
    assert cm.comparison_roc(y, -d).area == 0.0


def test_comparisons_need_ties_and_differences_for_a_curve():
    with pytest.raises(LabelError, match="seen 0 and 2"):
        cm.comparison_roc([1, -1], [0.1, 0.2])
    votes = cc.Comparisons(["a", "b"], ["b", "c"], [-1, 0])
    assert float(cc.metric("comparison_error")(votes, [-2.0, 0.0])) == 0.0


# ---------------------------------------------------------------- explain


def test_explain_adds_up_and_names_the_field():
    y, s, qid = [3, 0, 1, 2, 0, 0, 0], [0.1, 0.9, 0.5, 0.5, 0.2, 0.1, 0.2], [1] * 5 + [2] * 2
    table = cm.explain("ndcg@3", y, s, qid=qid)
    assert [row.preset for row in table.rows] == list(cm.PRESETS)
    first = table.rows[0]
    for row in table.rows:
        assert float(row.value) == float(cc.metric("ndcg@3", convention=row.preset)(y, s, qid=qid))
        assert sum(step.change for step in row.steps) == pytest.approx(float(row.value) - float(first.value))
    causes = {row.preset: row.cause.field for row in table.rows[1:]}
    assert causes["lightgbm"] == "empty"
    assert cm.explain("ndcg@3", y[:5], s[:5], presets=["trec_eval"]).rows[1].cause.field == "gain"


def test_explain_blames_no_field_while_the_value_stays_undefined():
    (row,) = cm.explain("ndcg@3", [0, 0, 0], [1, 2, 3], presets="sklearn").rows[1:]
    assert [step.field for step in row.steps] == ["empty"]
    assert str(cm.explain("ndcg", [1, 0], [1, 2], presets=[cm.PRESETS["rax"]]))


def test_explain_weighs_queries():
    y, s, qid = [1, 0, 2, 0], [1.0, 2.0, 2.0, 1.0], [1, 1, 2, 2]
    table = cm.explain("ndcg", y, s, qid=qid, weights=[1, 0])
    assert float(table.rows[0].value) == pytest.approx(1 / np.log2(3))


def test_explain_says_which_preset_refuses_the_labels():
    table = cm.explain("err", [2, 0], [1.0, 2.0])
    refused = {row.preset: row.refused for row in table.rows if row.refused}
    assert set(refused) == {"catboost"}
    assert "no probability" in refused["catboost"]
    assert "no probability" in str(table)


def test_explain_reads_any_convention_and_refuses_unknown_ones():
    table = cm.explain("ndcg@3", [1, 0], [0.1, 0.2], presets=["lightgbm,gain=linear"])
    assert table.rows[1].preset == "lightgbm,gain=linear"
    with pytest.raises(UnknownNameError, match="lightgbm"):
        cm.explain("ndcg@3", [1, 0], [0.1, 0.2], presets=["lightgmb"])


def test_one_signature_is_compiled():
    """Frozen and writeable labels, sorted and unsorted rows: a second signature would cost seconds."""
    from concordant.metrics.value_kernels import additive_chunk

    metric = cc.metric("ndcg@10")
    y = np.array([1.0, 0.0, 2.0])
    metric(y, y.copy(), qid=[1, 1, 2])
    metric(cc.Grades(y), y.copy(), qid=[2, 1, 2])
    frozen = y.copy()
    frozen.flags.writeable = False
    metric(frozen, frozen, qid=[2, 1, 2])
    assert len(additive_chunk.signatures) == 1


@pytest.mark.parametrize(
    "scores",
    [
        np.array([2**53, 2**53 + 1], dtype=object),
        [Decimal("1.00000000000000000001"), Decimal("1.00000000000000000002")],
        [Decimal("-1e400"), Decimal(1)],
        [Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**30)],
        [2**60, 2**60 + 1, 0.5],
        (np.int64(2**60), np.int64(2**60 + 1), 0.5),
        [2**63, 2**63 + 1, -1],
        [[2**60], [2**60 + 1], [0.5]],
    ],
    ids=["integers", "decimals", "out of range", "fractions", "mixed", "scalars", "signed", "column"],
)
def test_scores_that_doubles_cannot_hold_apart_are_refused(scores):
    with pytest.raises(NotNumericError, match="which a double cannot hold exactly"):
        cc.metric("dcg")([1, 0, 0][: len(scores)], scores)
    with pytest.raises(NotNumericError, match="which a double cannot hold exactly"):
        cc.pair_items(None, scores)
    with pytest.raises(NotNumericError, match="which a double cannot hold exactly"):
        cc.decoders.positions(scores)


@pytest.mark.parametrize("scores", [[2**60, 2**61, 0.5], [1e300, 1e299, -np.inf], [2.0**60, 3, 2]])
def test_large_scores_that_doubles_hold_apart_are_ranked(scores):
    ranks = np.where(np.isneginf(np.array(scores, dtype=float)), -np.inf, np.argsort(np.argsort(scores)))
    assert float(cc.metric("dcg")([0, 1, 2], scores)) == float(cc.metric("dcg")([0, 1, 2], ranks))


@pytest.mark.parametrize("scores", [[Decimal("0.1"), Decimal("0.1")], [Decimal("-Infinity"), Decimal(1)]])
def test_equal_and_infinite_decimals_are_scores(scores):
    assert float(cc.metric("dcg")([1, 0], scores)) == float(cc.metric("dcg")([1, 0], [*map(float, scores)]))
