"""Decoders: from scores to places."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordant import Queries
from concordant.decoders import positions
from concordant.exceptions import LengthMismatchError, NonFiniteError, NotNumericError, ShapeError


def naive_positions(scores, qid):
    """1 + the number of rows of the query that are better, or as good and earlier."""
    rows = range(len(scores))
    return [
        1
        + sum(
            qid[j] == qid[i] and (scores[j] > scores[i] or (scores[j] == scores[i] and j < i)) for j in rows
        )
        for i in rows
    ]


def check_positions(function, scores, qid):
    """By definition, and 1..n in each query."""
    places = function(scores, qid=qid)
    assert places.tolist() == naive_positions(scores, qid)
    for q in set(qid):
        assert sorted(places[np.array(qid) == q].tolist()) == list(range(1, qid.count(q) + 1))


rankings = st.lists(
    st.tuples(st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 1e-300, 2.0]), st.sampled_from(["a", "b", "c"])),
    min_size=1,
)


@given(rows=rankings)
def test_positions_by_definition(rows):
    scores, qid = ([row[part] for row in rows] for part in (0, 1))
    check_positions(positions, scores, qid)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda scores, qid: positions(-np.array(scores), qid=qid),
        lambda scores, qid: positions(scores, qid=["a"] * len(qid)),
        lambda scores, qid: positions(scores[::-1], qid=qid[::-1])[::-1],  # ties the other way round
        lambda scores, qid: positions(scores, qid=qid) - 1,
    ],
)
def test_the_check_rejects_what_is_wrong(wrong):
    with pytest.raises(AssertionError):
        check_positions(wrong, [0.0, 2.0, 1.0, 1.0], ["a", "b", "b", "b"])


def test_queries_may_be_given_or_left_out():
    assert positions([1.0, 3.0, 2.0]).tolist() == [3, 1, 2]
    assert positions([1.0, 3.0, 2.0], qid=Queries.from_sizes([0, 2, 1])).tolist() == [2, 1, 1]
    assert positions([]).tolist() == []


def test_bad_scores_are_named():
    for bad in (np.nan, np.inf):
        with pytest.raises(NonFiniteError, match="row 1"):
            positions([0.0, bad])
    with pytest.raises(NotNumericError):
        positions(["high", "low"])
    with pytest.raises(ShapeError):
        positions([[1.0, 2.0]])
    with pytest.raises(LengthMismatchError):
        positions([1.0, 2.0], qid=[1])
