"""Names, equality and errors of surrogates: what was wrong, in which row, what to do."""

import dataclasses
import math
import pickle

import numpy as np
import pytest

from concordant.exceptions import (
    ConcordantError,
    GradeError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    NotNumericError,
    ParameterError,
    UnknownNameError,
)
from concordant.surrogates import (
    SURROGATES,
    Duchi,
    Pairwise,
    Penalty,
    PlackettLuce,
    Preorder,
    Softmax,
    Squared,
    Surrogate,
    logistic,
    surrogate,
)
from concordant.surrogates.pointwise import PENALTIES
from tests.helpers.surrogate_checks import CASES

every_case = pytest.mark.parametrize("name", CASES)
UNSIGNED = [name for name, case in CASES.items() if not case.surrogate.signed]


@pytest.mark.parametrize("name", SURROGATES)
def test_names_give_defaults(name):
    default = surrogate(name)
    assert isinstance(default, Surrogate)
    assert default == SURROGATES[name]()
    assert default.name == name
    assert surrogate(default) is default


@pytest.mark.parametrize("name", ["pair_wise", "Softmax", "", None, 3, ["squared"]])
def test_unknown_names_list_the_table(name):
    with pytest.raises(UnknownNameError, match=f"the known ones are {', '.join(sorted(SURROGATES))}"):
        surrogate(name)


@every_case
def test_surrogates_are_values(name):
    """Equal by content, hashable, frozen, and the same after a trip to another process."""
    loss = CASES[name].surrogate
    assert dataclasses.replace(loss) == loss
    assert hash(dataclasses.replace(loss)) == hash(loss)
    assert pickle.loads(pickle.dumps(loss)) == loss  # noqa: S301
    assert [other for other, case in CASES.items() if case.surrogate == loss] == [name]
    with pytest.raises(dataclasses.FrozenInstanceError):
        loss.name = "other"


def test_parts_may_be_given_by_name_or_as_objects():
    assert Pairwise("logistic") == Pairwise(logistic)
    assert Duchi("cosh") == Duchi(PENALTIES["cosh"])
    quartic = Penalty("own", lambda z: z**4, lambda z: 4 * z**3, lambda z: 12 * z**2)
    values, grad = Duchi(quartic, nu=2.0)([1.0, 2.0], [1.0, -1.0])
    assert (values.tolist(), grad.tolist()) == ([2 - 1 + 32 + 2], [8 - 1, 64 + 1])


@pytest.mark.parametrize("name", UNSIGNED)
def test_negative_targets_are_refused_with_their_row(name):
    loss = CASES[name].surrogate
    with pytest.raises(
        NonFiniteError, match=r"targets is -0\.5 at row 2 .*\n.*not convex.*squared"
    ) as caught:
        loss([0.0, 0.0, 0.0], [1.0, 2.0, -0.5])
    assert caught.value.row == 2


@pytest.mark.parametrize("loss", [Squared(), Squared(centred=False), Duchi(), Duchi("cosh")], ids=str)
def test_negative_targets_are_fine_where_signed(loss):
    assert np.isfinite(loss([0.0, 1.0], [-1.0, 2.0])[0]).all()


def columns_for(loss):
    """Three good rows, of one query or of the queries "b", "a", "b"."""
    targets = [1.0, 1.0, 2.0] if loss.reads == "positions" else [1.0, 2.0, 3.0]
    return {
        "scores": np.zeros(3),
        "targets": np.array(targets),
        "vector": np.ones(3),
        "weights": np.ones(3),
        "qid": ["b", "a", "b"],
    }


@every_case
def test_numbers_that_are_none_are_refused_with_their_row(name):
    loss = CASES[name].surrogate
    for bad in (math.nan, math.inf, -math.inf):
        for column in ("scores", "targets", "weights", "vector"):
            columns = columns_for(loss)
            columns[column][1] = bad
            with pytest.raises(NonFiniteError, match=rf"{column} is {bad} at row 1"):
                loss.hessian_product(**columns)
            if column != "vector":
                del columns["vector"]
                with pytest.raises(NonFiniteError, match=rf"{column} is {bad} at row 1"):
                    loss(**columns)


@pytest.mark.parametrize(
    ("loss", "change", "message"),
    [
        (Softmax(), {"targets": [1.0, 1.0, -2.0]}, r"targets is -2.0 at row 2 \(query 'b'\)"),
        (Squared(), {"targets": [1.0, math.nan, 1.0]}, r"targets is nan at row 1 \(query 'a'\)"),
        (Squared(), {"scores": [1.0, 1.0, math.inf]}, r"scores is inf at row 2 \(query 'b'\)"),
        (Squared(), {"weights": [1.0, 1.0, -1.0]}, r"weights is -1.0 at row 2"),
        (Preorder("gain"), {"targets": [1.0, 1.0, 2000.0]}, r"grade 2000 at row 2 \(query 'b'\) makes"),
    ],
    ids=str,
)
def test_rows_are_counted_as_the_caller_does(loss, change, message):
    """Rows that do not come by query are moved: errors name the row before, and its query."""
    columns = {"scores": [0.0, 0.0, 0.0], "targets": [1.0, 1.0, 1.0], "qid": ["b", "a", "b"]} | change
    with pytest.raises(ConcordantError, match=message):
        loss(**columns)


@every_case
@pytest.mark.parametrize("column", ["scores", "targets", "weights", "vector", "qid"])
def test_lengths_must_agree(name, column):
    """Also where rows are moved: too long a column must not lose its end."""
    loss = CASES[name].surrogate
    for n in (2, 4):
        columns = columns_for(loss)
        columns[column] = (list(columns[column]) * 2)[:n]
        with pytest.raises(LengthMismatchError, match=r"has \d entries"):
            loss.hessian_product(**columns)


def test_offsets_and_targets_must_agree():
    with pytest.raises(LengthMismatchError, match="targets has 2 entries, the queries has 3 rows"):
        Squared().bind([1.0, 2.0], np.array([0, 3]))
    with pytest.raises(LengthMismatchError, match="weights has 2 entries"):
        Squared().bind([1.0, 2.0, 3.0], np.array([0, 3]), np.ones(2))
    with pytest.raises(LengthMismatchError, match="qid has 2 entries"):
        Squared()([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], qid=[1, 1])


def test_a_bound_loss_refuses_arrays_of_other_lengths():
    """Its kernels would read and write beyond them."""
    loss = Squared().bind([1.0, 2.0], [0, 2])
    with pytest.raises(LengthMismatchError, match="scores has 1 entries"):
        loss.value_and_grad(np.zeros(1))
    with pytest.raises(LengthMismatchError, match="vector has 3 entries"):
        loss.hessian_product(np.zeros(2), np.zeros(3))


@pytest.mark.parametrize("offsets", [[], [1, 2], [0, 5, 2], [0.0, 2.0], 2])
def test_offsets_cut_the_rows(offsets):
    with pytest.raises(ParameterError, match="offsets"):
        Squared().bind([1.0, 2.0], np.array(offsets))


def test_a_margin_is_shown_by_its_name():
    shown = "Pairwise(margin=margin('huber_hinge(0.25)'), normalize=False)"
    assert repr(Pairwise("huber_hinge(0.25)")) == shown


def test_text_is_no_number():
    with pytest.raises(NotNumericError, match="targets must be numeric, but row 1 is 'good'"):
        Softmax()([0.0, 1.0], np.array([1.0, "good"], dtype=object))


@pytest.mark.parametrize("positions", [[1, 1, 2], [0, 1, 2], [2, 3, 4], [1, 2, 2.5], [3, 2, 0]], ids=str)
def test_plackett_luce_reads_positions(positions):
    with pytest.raises(LabelError, match=r"query number 1 .*\n.*1 \(best\) to n, without ties"):
        PlackettLuce()(np.zeros(5), [2, 1, *positions], qid=[1, 1, 2, 2, 2])
    with pytest.raises(LabelError, match="reads positions"):
        PlackettLuce()(np.zeros(3), positions)


def test_gains_beyond_the_doubles_are_refused():
    with pytest.raises(GradeError, match=r"grade 1001 at row 1 makes 2\^grade overflow") as caught:
        Preorder("gain")([0.0, 0.0], [1000.0, 1001.0])
    assert caught.value.row == 1
    assert np.isfinite(Preorder("gain")([0.0, 0.0], [0.0, 1000.0])[0]).all()
    for weighting in ("unit", "pairs"):
        assert Preorder(weighting, "hinge")([0.0, 0.0], [1e300, 0.0])[0].tolist() == [1.0]


@pytest.mark.parametrize("weighting", ["units", "", None, 1])
def test_unknown_weighting(weighting):
    with pytest.raises(ParameterError, match="weighting must be 'unit', 'pairs' or 'gain'"):
        Preorder(weighting)


@pytest.mark.parametrize("nu", [0, -1.0, math.inf, math.nan, "1", None])
def test_bad_nu(nu):
    with pytest.raises(ParameterError, match="nu must be a finite number > 0"):
        Duchi(nu=nu)


@pytest.mark.parametrize("make", [Pairwise, lambda margin: Preorder(margin=margin)])
def test_bad_margins(make):
    with pytest.raises(UnknownNameError, match=r"unknown margin 'hinges'. Did you mean 'hinge'"):
        make("hinges")
    with pytest.raises(ParameterError, match=r"h must be .* got '-1'"):
        make("huber_hinge(-1)")


def test_bad_penalties():
    with pytest.raises(UnknownNameError, match=r"unknown penalty 'cube'.*\n.*cosh, quartic, square"):
        Duchi("cube")
    with pytest.raises(ParameterError, match="penalty must be a Penalty or the name of one"):
        Duchi(np.cosh)
