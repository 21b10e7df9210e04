"""Queries, labels and checks: grouping is right in any row order, bad input gets a named error."""

import os
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import concordant as cc
from concordant import Comparisons, Grades, Permutations, Preferences, Queries
from concordant._base.validate import check_column, check_grades, check_scores
from concordant.comparisons.calibration import fit_curve
from concordant.comparisons.machines.linear_program import hard_margin_lp, soft_margin_lp
from concordant.data.check import check
from concordant.decoders.threshold import best_threshold
from concordant.evaluation import TimeShares
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    GradeError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    NotNumericError,
    OutcomeWarning,
    ParameterError,
    ShapeError,
    SimilarNamesWarning,
)
from concordant.rankers.folds import read_eval_set
from concordant.theory.bounds.empirical import empirical
from concordant.theory.replicates.replicated import Replicates

FRAMES = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "pandas": pd.Series,
    "polars": pl.Series,
    "arrow": pa.array,
    "chunked arrow": lambda values: pa.chunked_array([values[:1], values[1:]]),
}
ids = st.one_of(
    st.lists(st.integers(-3, 3), min_size=1, max_size=30),
    st.lists(st.sampled_from(["a", "b", "", "aa", "é"]), min_size=1, max_size=30),
)


def check_grouping(queries, qid):
    """Each query owns exactly the rows with its id, in the caller's order; ids ascend."""
    assert queries.ids.tolist() == sorted(set(qid))
    for q, name in enumerate(queries.ids.tolist()):
        rows = queries.order[queries.offsets[q] : queries.offsets[q + 1]].tolist()
        assert rows == [row for row, value in enumerate(qid) if value == name]


@given(qid=ids)
def test_equal_ids_are_grouped_wherever_they_stand(qid):
    queries = Queries.from_ids(qid)
    check_grouping(queries, qid)
    values = np.arange(len(qid)) * 10
    assert queries.scatter(queries.gather(values)).tolist() == values.tolist()
    assert (queries.moved is None) == (list(qid) == sorted(qid))


def test_the_check_rejects_a_wrong_grouping():
    wrong = Queries(np.array([0, 1, 3]), np.array(["a", "b"]), np.array([0, 1, 2]))
    with pytest.raises(AssertionError):
        check_grouping(wrong, ["b", "a", "b"])


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_every_kind_of_column_is_read(make):
    assert check_column(make([1, 2, 3]), "y").tolist() == [1.0, 2.0, 3.0]
    assert Queries.from_ids(make(["b", "a", "b"])).order.tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table], ids=["pandas", "polars", "lazy", "arrow"]
)
def test_every_kind_of_frame_is_read(frame):
    _, X, y = check(frame({"a": [1.0, 2.0], "b": [3.0, 4.0]}), [1, 0], qid=[2, 1])
    assert X.tolist() == [[2.0, 4.0], [1.0, 3.0]]
    assert y.tolist() == [0.0, 1.0]


def test_sparse_features_are_kept_sparse():
    X = csr_array(np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 3.0]]))
    _, grouped, _ = check(X, [0, 1, 2], qid=["b", "a", "b"])
    assert grouped.toarray().tolist() == [[2.0, 0.0], [0.0, 1.0], [0.0, 3.0]]
    X.data[1] = np.nan
    with pytest.raises(NonFiniteError, match="row 1, column 0"):
        check(X, [0, 1, 2])


def test_a_sum_that_overflows_is_no_infinity():
    _, X, _ = check(np.full((2, 2), 1e308), [0, 1])
    assert X[0, 0] == 1e308


def test_what_needs_no_copy_is_not_copied():
    y, X = np.array([1.0, 0.0]), np.ones((2, 3), dtype=np.float32)
    assert check_grades(y) is y
    _, same, _ = check(X, y, [1, 2])
    assert same is X


@given(qid=ids, seed=st.integers(0, 3))
def test_splits_and_folds_never_cut_a_query(qid, seed):
    queries = Queries.from_ids(qid)
    column = np.array(qid)
    parts = queries.split(0.5, 0.3, seed=seed)
    assert not set(column[parts[0]].tolist()) & set(column[parts[1]].tolist())
    if queries.n_queries >= 2:
        tested = []
        for train, test in queries.folds(2, seed=seed):
            assert sorted(np.r_[train, test].tolist()) == list(range(len(qid)))
            assert not set(column[train].tolist()) & set(column[test].tolist())
            tested += test.tolist()
        assert sorted(tested) == list(range(len(qid)))


def test_splits_are_reproducible_and_all_rows_are_used():
    queries = Queries.from_ids(np.repeat(np.arange(100), 3))
    first, second = queries.split(0.7, 0.3, seed=5), queries.split(0.7, 0.3, seed=5)
    assert all((a == b).all() for a, b in zip(first, second, strict=True))
    assert [len(part) for part in first] == [210, 90]


BAD = [
    # what is called, the error, what its text must say
    (lambda: check_grades([1, np.nan, 2]), NonFiniteError, "row 1"),
    (lambda: check_grades([1, np.inf]), NonFiniteError, "row 1"),
    (lambda: check_grades([2, -1]), GradeError, "grade -1 at row 1 is negative"),
    (lambda: check_grades([]), EmptyDataError, "no rows"),
    (lambda: check_grades(["good", "bad"]), NotNumericError, "row 0 is 'good'"),
    (lambda: check_grades(["1", "2"]), NotNumericError, "row 0 is '1'"),
    (lambda: check_grades([1, None]), NotNumericError, "row 1 is None"),
    (lambda: check_grades([[1, 2], [3, 4]]), ShapeError, "(2, 2)"),
    (lambda: check_grades([[1, 2], [3]]), ShapeError, "nested"),
    (lambda: check_grades({"a": 1}), NotNumericError, "dict"),
    (lambda: check_grades(np.array([1 + 2j])), NotNumericError, "1+2j"),
    (lambda: check_scores([1, np.nan], 2), NonFiniteError, "row 1"),
    (lambda: check_scores([np.inf, 0], 2), NonFiniteError, "inf at row 0"),
    (lambda: check_scores([1], 2), LengthMismatchError, "scores has 1 entries, y has 2"),
    (lambda: Queries.from_ids([]), EmptyDataError, "qid"),
    (lambda: Queries.from_ids([1.0, np.nan]), LabelError, "no id at row 1"),
    (lambda: Queries.from_ids(["a", None]), LabelError, "no id at row 1"),
    (lambda: Queries.from_ids(pd.Series(["a", pd.NA], dtype="string")), LabelError, "no id at row 1"),
    (lambda: Queries.from_ids(pd.Series([1, pd.NA], dtype="Int64")), LabelError, "no id at row 1"),
    (lambda: Queries.from_ids(["1", 1]), LabelError, "mixes text and numbers"),
    (lambda: Queries.from_ids([b"\xe9", "a"]), LabelError, "mixes text and bytes"),
    (lambda: Queries.from_ids([2**63, 2**63 + 1, -1]), LabelError, "cannot hold exactly"),
    (lambda: Queries.from_ids(pd.Series([(1, 2), (3, 4)])), LabelError, "neither numbers nor text"),
    (lambda: Queries.from_ids(np.ma.array([1, 2], mask=[0, 1])), LabelError, "masked at row 1"),
    (lambda: Queries.from_ids(np.array(["NaT", "2020-01-01"], "M8[s]")), LabelError, "no id at row 0"),
    (lambda: Queries.from_sizes([2**62] * 3), ParameterError, "integers"),
    (lambda: Queries.from_ids([1, 2]).split(np.nan), ParameterError, "positive"),
    (lambda: list(Queries.from_ids([1, 2]).folds(2.5)), ParameterError, "got 2.5"),
    (lambda: check_grades(np.ma.array([3, 0], mask=[1, 0])), LabelError, "masked at row 0"),
    (lambda: check_grades([10**400, 0]), NotNumericError, "row 0"),
    (lambda: check_scores(np.array([2**53 + 2, 1]), 2), NotNumericError, "cannot hold exactly"),
    (lambda: check_scores(np.array([1, 2], "M8[ns]"), 2), NotNumericError, "datetime64"),
    (lambda: Preferences([0], [1], None), ParameterError, "n_rows must be an integer >= 1, got None"),
    (lambda: Preferences.from_matrices([[[0, 1], [1]]]), ShapeError, "nested"),
    (lambda: Permutations.from_orders([2, 0, 1]), LabelError, "not a permutation"),
    (lambda: Comparisons([10], ["10"], [1]), LabelError, "mix text and numbers"),
    (lambda: Queries.from_ids([[1], [2]]), ShapeError, "(2, 1)"),
    (lambda: Queries.from_sizes([2, -1]), ParameterError, "integers"),
    (lambda: Queries.for_rows([1, 1, 2], 2), LengthMismatchError, "qid has 3"),
    (lambda: Queries.from_ids([1, 2]).split(0.9, 0.9), ParameterError, "sum of at most 1"),
    (lambda: list(Queries.from_ids([1, 2]).folds(3)), ParameterError, "number of queries, 2"),
    (lambda: check([[1.0], [np.nan]], [0, 1]), NonFiniteError, "row 1, column 0"),
    (lambda: check([[1.0], [2.0]], [0, 1, 2]), LengthMismatchError, "y has 3"),
    (lambda: check([1.0, 2.0], [0, 1]), ShapeError, "two dimensions"),
    (lambda: check(np.empty((0, 2)), [0]), EmptyDataError, "X"),
    (lambda: check(pd.DataFrame({"a": ["x", "y"]}), [0, 1]), NotNumericError, "X[:, 0]"),
    (lambda: Preferences([0, 5], [1, 0], n_rows=3), LabelError, "better[1] = 5"),
    (lambda: Preferences([0.5], [1], n_rows=3), LabelError, "better[0] = 0.5"),
    (lambda: Preferences([0, 1], [1, 1], n_rows=3), LabelError, "row 1 with itself"),
    (lambda: Preferences([0], [1], n_rows=2, weights=[-1.0]), NonFiniteError, "preference 0"),
    (lambda: Preferences([0], [1, 2], n_rows=3), LengthMismatchError, "worse has 2"),
    (lambda: Preferences.from_matrices([[[0, 1]]]), ShapeError, "square"),
    (
        lambda: Preferences([0], [1], n_rows=2).grouped(Queries.from_ids([1, 2])),
        LabelError,
        "different queries",
    ),
    (
        lambda: Preferences([0], [1], n_rows=2).grouped(Queries.from_ids([1])),
        LengthMismatchError,
        "qid has 1",
    ),
    (lambda: Permutations([0, 1]), LabelError, "positions[0] = 0 is not an integer from 1 to 2"),
    (lambda: Permutations([]), EmptyDataError, "positions"),
    (lambda: Preferences([], [], n_rows=-3), ParameterError, "got -3"),
    (lambda: Comparisons(["a"], ["b"], [1]).pairs([["x"], ["y"]]), NotNumericError, "'x'"),
    (lambda: Permutations([1, 1]).grouped(Queries.from_sizes([2])), LabelError, "not 1..2"),
    (lambda: Permutations.from_orders([[0, 0]]), LabelError, "not a permutation"),
    (lambda: Comparisons(["a"], ["b"], [2]), LabelError, "outcome[0] = 2"),
    (lambda: Comparisons(["a"], ["b", "c"], [1]), LengthMismatchError, "right has 2"),
    (lambda: Comparisons(["a"], ["b"], ["left"]), NotNumericError, "'left'"),
    (lambda: Comparisons(["a"], ["b"], [1]).pairs([[1.0]]), ShapeError, "2 items"),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD, ids=[f"{e.__name__}: {t}" for _, e, t in BAD])
def test_bad_input_gets_a_named_error(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
    assert isinstance(caught.value, ConcordantError)


def test_labels_are_frozen():
    grades = Grades([1, 2])
    with pytest.raises(ValueError, match="read-only"):
        grades.values[0] = 3  # noqa: PD011
    source = np.array([1.0, 2.0])
    from_array = Grades(source)
    source[0] = -5  # the caller's own array stays the caller's
    assert from_array.values.tolist() == [1.0, 2.0]  # noqa: PD011


def test_preferences_are_grouped_by_query_in_sorted_rows():
    qid = ["b", "a", "b", "a"]
    labels = Preferences(better=[0, 1], worse=[2, 3], weights=[5.0, 7.0], n_rows=4)
    better, worse, weights, offsets = labels.grouped(Queries.from_ids(qid))
    assert (better.tolist(), worse.tolist()) == ([0, 2], [1, 3])  # sorted rows: a a b b
    assert (weights.tolist(), offsets.tolist()) == ([7.0, 5.0], [0, 1, 2])


@pytest.mark.parametrize(
    ("matrix", "cyclic"),
    [
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], True),
        ([[0, 1, 1], [0, 0, 1], [0, 0, 0]], False),
        ([[0, 2, 0], [1, 0, 1], [0, 0, 0]], False),  # contradicting votes, but a majority
        ([[0, 1], [1, 0]], False),  # a tie is no majority
    ],
)
def test_cycles_are_flagged(matrix, cyclic):
    n = len(matrix)
    labels = Preferences.from_matrices([matrix, np.zeros((2, 2))])
    assert labels.cyclic(Queries.from_sizes([n, 2])).tolist() == [cyclic, False]


def test_permutations_round_trip():
    labels = Permutations.from_orders([[2, 0, 1], [0, 1]])
    assert labels.grouped(Queries.from_sizes([3, 2])).tolist() == [2, 3, 1, 1, 2]


def test_ids_of_both_sides_stay_what_they_are():
    """numpy makes doubles of int64 and uint64 together, in which large ids become equal."""
    large = np.array([2**62 + 1, 2**62 + 2], dtype=np.uint64)
    votes = Comparisons(large, np.array([2**60 + 1, 2**60 + 2]), [-1, -1])
    assert votes.items.tolist() == [2**60 + 1, 2**60 + 2, 2**62 + 1, 2**62 + 2]
    with pytest.raises(LabelError, match="64-bit"):
        Comparisons(np.array([2**63 + 1], dtype=np.uint64), np.array([-1]), [0])
    with pytest.raises(LabelError, match="double"):
        Comparisons(np.array([1.0]), np.array([2**60 + 1]), [0])
    with pytest.raises(LabelError, match="mix text and numbers"):
        Comparisons(["a"], [1], [0])
    with pytest.raises(LabelError, match="times"):
        Comparisons(np.array(["2001-01-01"], dtype="M8[D]"), [1], [0])


@pytest.mark.parametrize(
    "use",
    [
        lambda: Comparisons(["a", "b"], ["b", "a"], [1, 0]),
        lambda: cc.ratings.Elo().fit(["a", "b"], ["b", "a"], [1, 0]),
        lambda: cc.Comparer(loss="logistic").fit(np.eye(8).reshape(4, 2, 8), [1, 0, 1, 0]),
    ],
)
def test_outcomes_1_and_0_are_noticed(use):
    with pytest.warns(OutcomeWarning, match="No outcome is -1, so 0 was read as a tie") as caught:
        use()
    assert len(caught) == 1


def test_names_that_look_alike_are_noticed():
    with pytest.warns(SimilarNamesWarning, match=r": 'GPT-4' and 'gpt-4 '; 'b  c' and 'b c'\.$"):
        Comparisons(["gpt-4 ", "b c"], ["GPT-4", "b  c"], [1, -1])
    with pytest.warns(SimilarNamesWarning, match="'A0' and 'a0'.*'A4' and 'a4'; 2 more"):
        cc.aggregate([[f"{letter}{number}" for letter in "aA" for number in range(7)]])
    with pytest.raises(LabelError, match="right has no id at row 0"):
        Comparisons(["a"], [""], [1])


@pytest.mark.parametrize(
    "outcome",
    [
        [True, False],
        [True, -1],
        np.array([True, False]),
        np.array([True, False], dtype=object),
        pd.Series([True, False], dtype="boolean"),
        pl.Series([True, False]),
    ],
    ids=["list", "among numbers", "numpy", "objects", "pandas", "polars"],
)
def test_truth_values_are_no_outcomes(outcome):
    with pytest.raises(LabelError, match="outcome is boolean"):
        Comparisons(["a", "b"], ["b", "a"], outcome)


@pytest.mark.parametrize("ids", [[2**53 + 1, 1.5], [2.0**53, 1.5], [float(2**60), 1.0]])
def test_ids_that_rounding_may_have_made_equal_are_refused(ids):
    with pytest.raises(LabelError, match="which a double cannot hold exactly"):
        Queries.from_ids(ids)


@pytest.mark.parametrize(
    ("kind", "exact"), [(np.float16, 2**11), (np.float32, 2**24), (np.float64, 2**53), (np.longdouble, 2**53)]
)
def test_ids_in_floats_are_refused_from_where_neighbours_merge(kind, exact):
    assert Queries.from_ids(np.array([exact - 1, exact - 2], dtype=kind)).n_queries == 2
    large = np.array([1, exact, exact + 1]).astype(kind)
    for ids in (large, -large):
        with pytest.raises(LabelError, match=r"at row 1, which .* cannot hold exactly"):
            Queries.from_ids(ids)
    if kind != np.longdouble:
        with pytest.raises(LabelError, match=r"column 'qid' is .* cannot hold exactly"):
            cc.from_frame(pd.DataFrame({"qid": large.astype(kind), "y": 1, "a": 0.5}))


def test_string_arrays_of_numpy_are_text():
    strings = np.dtypes.StringDType(na_object=None)
    assert Queries.from_ids(np.array(["b", "a", "b"], dtype=strings)).ids.tolist() == ["a", "b"]
    docid = np.array(["b", "a", "c"], dtype=strings)
    metric = cc.metric("ndcg[ties=id_descending]")
    assert metric([0, 1, 0], [1, 1, 2], docid=docid) == metric([0, 1, 0], [1, 1, 2], docid=["b", "a", "c"])
    with pytest.raises(LabelError, match="qid has no id at row 1"):
        Queries.from_ids(np.array(["b", None], dtype=strings))
    with pytest.raises(LabelError, match="NUL character at row 0"):
        Queries.from_ids(np.array(["b\0", "b"], dtype=strings))


# ---------------------------------------------------------------- rows in another order

X, Y, QID = np.arange(12.0).reshape(6, 2), [2, 0, 1, 0, 3, 1], [1, 1, 1, 2, 2, 2]
OUTCOMES, PAIRS = [1, 0, -1, 0, 1, -1], np.random.default_rng(0).normal(size=(6, 2, 2))


def backwards(values):
    """A pandas column whose index counts down, as of a sorted frame."""
    return pd.Series(values, index=range(len(values))[::-1])


def fitted():
    return cc.LinearRanker("dcg").fit(X, Y, qid=QID)


def comparer(y, weight=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # six pairs make no good model
        return cc.Comparer(calibration=0).fit(PAIRS, y, sample_weight=weight)


def of_rows(relabel):
    """Equal probabilities of three outcomes, with the index of the relabelled rows."""
    return pd.DataFrame(np.full((6, 3), 1 / 3), index=getattr(relabel(range(6)), "index", ["a row"] * 6))


MISALIGNED = {
    "metric scores": lambda relabel: cc.metric("dcg")(pd.Series(Y), relabel(Y)),
    "metric qid": lambda relabel: cc.metric("dcg").per_query(pd.Series(Y), Y, qid=relabel(QID)),
    "standardize": lambda relabel: cc.standardize("dcg", pd.Series(Y), qid=relabel(QID)),
    "linear y": lambda relabel: cc.LinearRanker("dcg").fit(pd.DataFrame(X), relabel(Y), qid=QID),
    "linear qid": lambda relabel: cc.LinearRanker("dcg").fit(pd.DataFrame(X), Y, qid=relabel(QID)),
    "linear cv": lambda relabel: cc.LinearRankerCV("dcg", cv=2).fit(pd.DataFrame(X), relabel(Y), qid=QID),
    "max margin": lambda relabel: cc.MaxMarginRanker().fit(
        X, pd.Series(Y), qid=QID, sample_weight=relabel([1.0] * 6)
    ),
    "boosted": lambda relabel: cc.BoostedRanker("dcg", n_estimators=1).fit(
        pd.DataFrame(X), relabel(Y), qid=QID
    ),
    "pairs": lambda relabel: cc.PairRanker("ap").fit(pd.DataFrame(X), relabel([1, 0, 0, 0, 1, 0]), qid=QID),
    "score": lambda relabel: fitted().score(X, pd.Series(Y), qid=relabel(QID)),
    "rank": lambda relabel: fitted().rank(pd.DataFrame(X), qid=relabel(QID)),
    "evaluate": lambda relabel: cc.evaluate(fitted(), pd.DataFrame(X), relabel(Y), qid=QID),
    "scores of a model": lambda relabel: cc.evaluate(lambda _: relabel(Y), pd.DataFrame(X), Y, qid=QID),
    "compare": lambda relabel: cc.evaluation.compare(
        {"a": pd.Series(Y), "b": relabel(Y)}, n_flips=9, n_boot=9
    ),
    "paired": lambda relabel: cc.evaluation.paired(pd.Series(Y), relabel(Y), n_flips=9),
    "pair_items": lambda relabel: cc.pair_items(None, pd.Series(Y), relabel(QID)),
    "comparisons": lambda relabel: cc.Comparisons(pd.Series(list("abc")), relabel(list("bca")), [-1, -1, -1]),
    "ratings": lambda relabel: cc.ratings.Elo().fit(
        pd.Series(list("abc")), list("bca"), relabel([-1, -1, -1])
    ),
    "times": lambda relabel: cc.ratings.Elo().fit(
        pd.Series(list("ab")), list("bc"), [-1, -1], time=relabel([2, 1])
    ),
    "history": lambda relabel: cc.ratings.to_features(
        pd.Series(["a"] * 2), ["b"] * 2, [-1, 1], time=relabel([2, 1])
    ),
    "who moves first": lambda relabel: cc.ratings.to_features(
        ["a"] * 2, ["b"] * 2, pd.Series([-1, 1]), first=relabel([True, False])
    ),
    "times beside outcomes": lambda relabel: cc.ratings.Elo().fit(
        list("ab"), list("bc"), pd.Series([-1, -1]), time=relabel([2, 1])
    ),
    "later votes": lambda relabel: cc.ratings.Elo().update(
        list("ab"), list("bc"), [-1, -1], time=pd.Series([1, 2]), sample_weight=relabel([1.0, 1.0])
    ),
    "pairs to predict": lambda relabel: (
        cc.ratings.Elo()
        .fit(list("ab"), list("bc"), [-1, -1])
        .predict(pd.Series(list("ab")), relabel(list("bc")))
    ),
    "weights of votes": lambda relabel: cc.ratings.Davidson().fit(
        list("aba"), list("bab"), pd.Series([-1, -1, 0]), sample_weight=relabel([1.0] * 3)
    ),
    "report y": lambda relabel: cc.report(fitted(), pd.DataFrame(X), relabel(Y), qid=QID, n_boot=9),
    "report scores": lambda relabel: cc.report(relabel(Y), None, pd.Series(Y), qid=QID, n_boot=9),
    "report baseline": lambda relabel: cc.report(
        fitted(), pd.DataFrame(X), Y, qid=QID, baseline=relabel(Y), n_boot=9
    ),
    "report of a model": lambda relabel: cc.report(
        SimpleNamespace(predict=lambda _: relabel(Y)), pd.DataFrame(X), Y, qid=QID, n_boot=9
    ),
    "learning curve": lambda relabel: cc.report(
        fitted(), X, Y, qid=QID, learning_curve=(pd.DataFrame(X), relabel(Y), QID), n_boot=9
    ),
    "eval_set": lambda relabel: cc.BoostedRanker("dcg", n_estimators=1).fit(
        X, Y, qid=QID, eval_set=(pd.DataFrame(X), relabel(Y), QID)
    ),
    "eval_set qid": lambda relabel: read_eval_set(cc.RankingData(pd.DataFrame(X), Y, relabel(QID))),
    "validation": lambda relabel: cc.LinearRankerCV("dcg", alphas=[1.0]).fit(
        X, Y, qid=QID, eval_set=(pd.DataFrame(X), relabel(Y), QID)
    ),
    "explain_pair": lambda relabel: fitted().explain_pair(pd.Series(X[0]), relabel(X[1])),
    "comparer": lambda relabel: comparer(pd.Series(OUTCOMES), relabel([1.0] * 6)),
    "comparer score": lambda relabel: comparer(OUTCOMES).score(
        PAIRS, pd.Series(OUTCOMES), relabel([1.0] * 6)
    ),
    "threshold": lambda relabel: best_threshold(pd.Series(Y), relabel(OUTCOMES)),
    "curve": lambda relabel: fit_curve(pd.Series(Y), relabel(OUTCOMES)),
    "comparison_roc": lambda relabel: cc.metrics.comparison_roc(pd.Series(OUTCOMES), relabel(Y)),
    "outcomes": lambda relabel: cc.evaluation.evaluate_outcomes(pd.Series(OUTCOMES), relabel(Y)),
    "probabilities": lambda relabel: cc.evaluation.evaluate_outcomes(
        OUTCOMES, pd.Series(Y), probabilities=of_rows(relabel)
    ),
    "log_loss": lambda relabel: cc.evaluation.log_loss(pd.Series(OUTCOMES), of_rows(relabel)),
    "calibration": lambda relabel: cc.evaluation.calibration_table(pd.Series(OUTCOMES), of_rows(relabel)),
    "paired_auc": lambda relabel: cc.evaluation.paired_auc(OUTCOMES, pd.Series(Y), relabel(Y), n_resamples=9),
    "clusters": lambda relabel: cc.evaluation.paired_auc(
        pd.Series(OUTCOMES), Y, Y, clusters=relabel(QID), n_resamples=9
    ),
    "write_run": lambda relabel: cc.write_run(os.devnull, QID, pd.Series(list("abcdef")), relabel(Y)),
    "write_qrels": lambda relabel: cc.write_qrels(os.devnull, QID, pd.Series(list("abcdef")), relabel(Y)),
    "write_letor": lambda relabel: cc.write_letor(os.devnull, pd.DataFrame(X), relabel(Y), QID),
    "explain": lambda relabel: cc.metrics.explain("dcg", pd.Series(Y), Y, qid=relabel(QID)),
    "positions": lambda relabel: cc.decoders.positions(pd.Series(Y), qid=relabel(QID)),
    "lightgbm": lambda relabel: cc.objectives.lightgbm_metric("dcg")(pd.Series(Y), relabel(Y), group=[3, 3]),
    "preference": lambda relabel: Preferences(pd.Series([0, 1]), relabel([2, 2]), n_rows=3),
    "check": lambda relabel: check(pd.DataFrame(X), relabel(Y), QID),
    "surrogate": lambda relabel: cc.surrogates.Softmax()(pd.Series(Y), relabel(Y), qid=QID),
    "hessian": lambda relabel: cc.surrogates.Softmax().hessian_product(Y, pd.Series(Y), relabel(Y), qid=QID),
    "risk bound": lambda relabel: empirical(
        fitted(), pd.DataFrame(X), relabel(Y), QID, loss=cc.listwise_hinge("ap"), B="union"
    ),
    "comparison_regret": lambda relabel: cc.theory.regret.comparison_regret(
        of_rows(relabel), pd.Series(OUTCOMES)
    ),
    "regret bound": lambda relabel: cc.certify("p@1", "softmax").regret_bound(
        pd.Series([0.1, 0.2]), n_items=3, mass=relabel([1.0, 2.0])
    ),
    "replicates": lambda relabel: Replicates.from_table(
        pd.Series(QID), list("abcabc"), ["x"] * 6, relabel(Y)
    ),
    "annotators": lambda relabel: Replicates.from_labels([pd.Series(Y), relabel(Y)], QID),
    "hard margin": lambda relabel: hard_margin_lp(pd.DataFrame({"x": [2.0, -2.0, 0.0]}), relabel([1, -1, 0])),
    "soft margin": lambda relabel: soft_margin_lp(
        np.ones((3, 1)), pd.Series([1, 1, 0]), 1.0, weights=relabel([1.0] * 3)
    ),
    "time shares": lambda relabel: [*TimeShares((0.5,), time=relabel(range(6))).split(pd.DataFrame(X))],
    "groups": lambda relabel: [*TimeShares((0.5,)).split(pd.DataFrame(X), groups=relabel(range(6)))],
}


@pytest.mark.parametrize("name", MISALIGNED)
def test_pandas_objects_with_one_index_in_two_orders_are_refused(name):
    with pytest.raises(LabelError, match="same index in different orders"):
        MISALIGNED[name](backwards)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        MISALIGNED[name](np.asarray)
        MISALIGNED[name](lambda values: pd.Series(values, index=[f"row {row}" for row in range(len(values))]))


FRAME = pd.DataFrame([[0, 2, 1], [1, 0, 3], [2, 0, 0]], index=list("abc"), columns=list("abc"))
BY_QUERY = pd.Series([1.0, 3.0], index=[1, 2])
BY_ITEM = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=list("abc"))
LABELLED = {
    "feedback_arc": (cc.decoders.feedback_arc, FRAME, FRAME[list("cab")]),
    "average_precision": (cc.decoders.average_precision, FRAME + FRAME.T, (FRAME + FRAME.T)[list("cab")]),
    "aggregate": (cc.aggregate, FRAME, FRAME[list("cab")]),
    "preferences": (lambda frame: Preferences.from_matrices([frame]), FRAME, FRAME.iloc[[2, 1, 0]]),
    "weights": (lambda w: cc.metric("dcg")(Y, Y, qid=QID, weights=w), BY_QUERY, BY_QUERY[::-1]),
    "features": (cc.Comparisons(["a", "b"], ["b", "c"], [-1, 1]).pairs, BY_ITEM, BY_ITEM[::-1]),
}


@pytest.mark.parametrize("name", LABELLED)
def test_labels_of_rows_that_contradict_the_order_are_refused(name):
    use, fitting, contradicting = LABELLED[name]
    use(fitting)
    use(fitting.to_numpy())
    with pytest.raises(LabelError, match=r"ascending order|order of `items`|does not match column"):
        use(contradicting)


def test_a_row_of_preferences_is_taken_once():
    labels = Preferences(better=[0, 2], worse=[1, 3], n_rows=4)
    with pytest.raises(LabelError, match="row 0 is selected more than once"):
        labels.take([0, 1, 0, 1])
    assert labels.take(np.array([True, True, False, True])).better.tolist() == [0]


@pytest.mark.parametrize("number", [-1, 2])
def test_rows_of_queries_that_are_not_there_are_refused(number):
    with pytest.raises(ParameterError, match="query numbers from 0 to 1"):
        Queries.from_ids([1, 1, 2]).rows([0, number])
    assert Queries.from_ids([1, 1, 2]).rows([]).tolist() == []


def test_masked_scores_of_a_model_are_refused():
    with pytest.raises(LabelError, match="scores is masked at row 1"):
        cc.evaluate(lambda X: np.ma.array(X[:, 0], mask=[0, 1, 0, 0, 0, 0]), X, Y, qid=QID)


def test_masked_sizes_are_refused():
    with pytest.raises(LabelError, match="sizes is masked at row 1"):
        Queries.from_sizes(np.ma.array([2, 3], mask=[0, 1]))


@pytest.mark.parametrize("ids", [[2, 2, 1], [3, 1, 1, 2], [1, 2, 3], ["b", "a", "a"], [7]])
def test_adjacent_rows_stay_where_they_are(ids):
    queries = Queries.from_ids(ids).in_row_order()
    assert queries.moved is None
    assert np.repeat(queries.ids, queries.sizes).tolist() == ids


def test_row_order_of_other_rows():
    apart = Queries.from_ids([2, 1, 2])
    assert apart.in_row_order() is apart
    empty = Queries(np.array([0, 1, 1, 3]), np.array([1, 2, 3]), np.array([2, 0, 1]))  # query 2 has no rows
    ordered = empty.in_row_order()
    assert ordered.moved is None
    assert {query: size for query, size in zip(ordered.ids, ordered.sizes, strict=True) if size} == {
        3: 2,
        1: 1,
    }
    assert np.repeat(ordered.ids, ordered.sizes).tolist() == [3, 3, 1]
