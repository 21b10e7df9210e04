"""Queries, labels and checks: grouping is right in any row order, bad input gets a named error."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from concordant import Comparisons, Grades, Permutations, Preferences, Queries
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    GradeError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    NotNumericError,
    ParameterError,
    ShapeError,
)
from concordant.supervision.check import check
from concordant.supervision.columns import check_column, check_grades, check_scores

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
    (lambda: Queries.from_ids([2**63, 2**63 + 1, -1]), LabelError, "cannot hold exactly"),
    (lambda: Queries.from_ids(pd.Series([(1, 2), (3, 4)])), LabelError, "neither numbers nor text"),
    (lambda: Queries.from_ids(np.ma.array([1, 2], mask=[0, 1])), LabelError, "masked at row 1"),
    (lambda: Queries.from_ids(np.array(["NaT", "2020-01-01"], "M8[s]")), LabelError, "no id at row 0"),
    (lambda: Queries.from_sizes([2**62] * 3), ParameterError, "whole numbers"),
    (lambda: Queries.from_ids([1, 2]).split(np.nan), ParameterError, "positive"),
    (lambda: list(Queries.from_ids([1, 2]).folds(2.5)), ParameterError, "n_folds=2.5"),
    (lambda: check_grades(np.ma.array([3, 0], mask=[1, 0])), LabelError, "masked at row 0"),
    (lambda: check_grades([10**400, 0]), NotNumericError, "row 0"),
    (lambda: check_scores(np.array([2**53 + 2, 1]), 2), NotNumericError, "cannot hold exactly"),
    (lambda: check_scores(np.array([1, 2], "M8[ns]"), 2), NotNumericError, "datetime64"),
    (lambda: Preferences([0], [1], None), ParameterError, "n_rows=None"),
    (lambda: Preferences.from_matrices([[[0, 1], [1]]]), ShapeError, "nested"),
    (lambda: Permutations.from_orders([2, 0, 1]), LabelError, "no permutation"),
    (lambda: Comparisons([10], ["10"], [1]), LabelError, "mix text and numbers"),
    (lambda: Queries.from_ids([[1], [2]]), ShapeError, "(2, 1)"),
    (lambda: Queries.from_sizes([2, -1]), ParameterError, "whole numbers"),
    (lambda: Queries.of([1, 1, 2], 2), LengthMismatchError, "qid has 3"),
    (lambda: Queries.from_ids([1, 2]).split(0.9, 0.9), ParameterError, "sum of at most 1"),
    (lambda: list(Queries.from_ids([1, 2]).folds(3)), ParameterError, "number of queries (2)"),
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
    (lambda: Permutations([0, 1]), LabelError, "positions[0] = 0 is no whole number from 1 to 2"),
    (lambda: Permutations([]), EmptyDataError, "positions"),
    (lambda: Preferences([], [], n_rows=-3), ParameterError, "n_rows=-3"),
    (lambda: Comparisons(["a"], ["b"], [1]).pairs([["x"], ["y"]]), NotNumericError, "'x'"),
    (lambda: Permutations([1, 1]).grouped(Queries.from_sizes([2])), LabelError, "not 1..2"),
    (lambda: Permutations.from_orders([[0, 0]]), LabelError, "no permutation"),
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
    kept = Grades(source)
    source[0] = -5  # the caller's own array stays the caller's
    assert kept.values.tolist() == [1.0, 2.0]  # noqa: PD011


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
    with pytest.raises(LabelError, match="64 bits"):
        Comparisons(np.array([2**63 + 1], dtype=np.uint64), np.array([-1]), [0])
    with pytest.raises(LabelError, match="double"):
        Comparisons(np.array([1.0]), np.array([2**60 + 1]), [0])
    with pytest.raises(LabelError, match="mix text and numbers"):
        Comparisons(["a"], [1], [0])
    with pytest.raises(LabelError, match="times"):
        Comparisons(np.array(["2001-01-01"], dtype="M8[D]"), [1], [0])
