"""What is asked of estimators that take pairs, as scikit-learn asks it of those that take a table.

A check takes a `Case` and raises AssertionError. `CHECKS` lists all of them.
"""

import copy
import inspect
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from concordant import ConcordantError

TIGHT = 1e-9  # of outputs: the same up to rounding


@dataclass(frozen=True, eq=False)
class Case:
    """An estimator, what it is fitted to, and what may be asked of it then.

    Attributes
    ----------
    name
        What it is called in a report.
    model
        Unfitted.
    data
        Arguments of fit; those in `rows` have one entry per pair.
    rows
        Names of them.
    asked
        Methods of the fitted model -> names of the arguments they take.
    outputs
        Fitted model, data -> an array that says what was learned.
    swapped
        Data -> the same data, each pair the other way round.
    tolerance
        Within which two fits of the same problem agree: that of the solver.
    """

    name: str
    model: Any
    data: Mapping[str, Any]
    rows: tuple[str, ...]
    asked: Mapping[str, tuple[str, ...]]
    outputs: Callable[[Any, Mapping[str, Any]], Any]
    swapped: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    tolerance: float = 1e-4
    features: str | None = None
    different: Mapping[str, Any] = field(default_factory=dict)

    def fitted(self, data=None, **more):
        return clone(self.model).fit(**{**(self.data if data is None else data), **more})

    def learned(self, data=None, **more):
        """What a new model learns, told of the case's own data."""
        return self.outputs(self.fitted(data, **more), self.data)

    def taken(self, places, data=None):
        """The data at these places."""
        return {key: np.asarray(column)[places] for key, column in (data or self.data).items()}

    def answers(self, model, data):
        """What each method says of these data."""
        for method, names in self.asked.items():
            yield method, getattr(model, method)(*(data[name] for name in names))


def same(first, second, tolerance=TIGHT):
    np.testing.assert_allclose(first, second, rtol=tolerance, atol=tolerance)


# ---------------------------------------------------------------- parameters


def check_constructor(case):
    """`__init__` keeps its parameters as they are, and does nothing else; it takes no others."""
    parameters = inspect.signature(type(case.model).__init__).parameters
    assert not any(
        parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        for parameter in parameters.values()
    )
    marks = {name: object() for name in parameters if name != "self"}
    model = type(case.model)(**marks)
    assert {name: value for name, value in vars(model).items()} == marks  # noqa: C416  # the very objects
    assert all(vars(model)[name] is mark for name, mark in marks.items())


def check_parameters(case):
    """They can be read, set and copied; a wrong name is told."""
    copied = clone(case.model)
    assert copied.get_params() == case.model.get_params()
    assert set(vars(copied)) == set(copied.get_params())
    assert copied.set_params(**case.model.get_params()) is copied
    with pytest.raises(ValueError, match="no_such_parameter"):
        copied.set_params(no_such_parameter=1)


def check_documented(case):
    """The docstring explains every parameter, and no others."""
    text = inspect.getdoc(type(case.model)) or ""
    block = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    named = {name.strip() for line in block.split("\n") if line[:1].strip() for name in line.split(",")}
    assert named == set(case.model.get_params()), named ^ set(case.model.get_params())


def check_fit_keeps_parameters(case):
    """`fit` gives the model back, with the parameters it had; what it learned ends in _."""
    model = clone(case.model)
    before = model.get_params()
    assert model.fit(**case.data) is model
    after = model.get_params()
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    learned = set(vars(model)) - set(before)
    assert learned
    assert all(name.endswith("_") and not name.startswith("_") for name in learned), learned


def check_text(case):
    """It prints, fitted or not."""
    assert type(case.model).__name__ in repr(case.model)
    assert type(case.model).__name__ in repr(case.fitted())


# ---------------------------------------------------------------- data


def check_input_is_left_alone(case):
    """Neither `fit` nor what follows writes to its arguments; they may be read-only."""
    data = {key: np.array(column) for key, column in case.data.items()}
    before = copy.deepcopy(data)
    list(case.answers(clone(case.model).fit(**data), data))
    assert all(np.array_equal(data[key], before[key]) for key in data)
    for column in data.values():
        column.flags.writeable = False
    list(case.answers(clone(case.model).fit(**data), data))


def check_forms_of_arrays(case):
    """Lists, column-major, strided, big-endian and single-precision arrays say the same."""
    expected = case.learned(case.data)
    forms = {
        "lists": lambda array: array.tolist(),
        "column-major": np.asfortranarray,
        "strided": lambda array: np.repeat(array, 2, axis=0)[::2],
        "other bytes": lambda array: array.astype(array.dtype.newbyteorder()),
        "float32": lambda array: array.astype(np.float32) if array.dtype.kind == "f" else array,
        "small": lambda array: array.astype(np.int8) if array.dtype.kind == "i" else array,
    }
    for form in forms.values():  # the numbers of the cases are exact in single precision
        changed = {key: form(np.asarray(column)) for key, column in case.data.items()}
        same(expected, case.outputs(clone(case.model).fit(**changed), changed))


def check_columns_of_frames(case):
    """pandas and polars columns say the same as arrays."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    flat = [name for name in case.rows if np.ndim(case.data[name]) == 1]
    for series in (pandas.Series, polars.Series):
        changed = {**case.data, **{name: series(np.asarray(case.data[name]).tolist()) for name in flat}}
        same(case.learned(), case.outputs(clone(case.model).fit(**changed), case.data))


def check_width(case):
    """`n_features_in_` is the number of features, and others are refused."""
    if case.features is None:
        return
    model, table = case.fitted(), np.asarray(case.data[case.features])
    assert model.n_features_in_ == table.shape[-1]
    for width in (table[..., :-1], np.concatenate((table, table), axis=-1)):
        with pytest.raises(ConcordantError, match=r"features|shape"):
            model.predict(width)


def check_not_fitted(case):
    """Nothing is predicted before `fit`."""
    for method, names in case.asked.items():
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(clone(case.model), method)(*(case.data[name] for name in names))


# ---------------------------------------------------------------- fits


def check_fit_is_repeatable(case):
    """A second fit, and a fit of a copy, learn the very same; the first leaves no trace."""
    model = clone(case.model).fit(**case.data)
    first = case.outputs(model, case.data)
    assert np.array_equal(first, case.outputs(model.fit(**case.data), case.data))
    assert np.array_equal(first, case.learned())
    other = {**case.data, **case.different}
    assert np.array_equal(case.learned(other), case.outputs(model.fit(**other), case.data))


def check_prediction_leaves_no_trace(case):
    """Asking changes nothing."""
    model = case.fitted()
    names, before = set(vars(model)), case.outputs(model, case.data)
    list(case.answers(model, case.data))
    assert set(vars(model)) == names
    assert np.array_equal(case.outputs(model, case.data), before)


def check_pickle(case):
    """Copies of a fitted model say the very same; so does a copy that is fitted on."""
    model = case.fitted()
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):  # noqa: S301
        assert other.get_params() == model.get_params()
        for (_, first), (_, second) in zip(
            case.answers(model, case.data), case.answers(other, case.data), strict=True
        ):
            assert np.array_equal(first, second)


def check_rows_are_alone(case):
    """What is said of a pair does not depend on the pairs beside it, nor on their order."""
    model, n = case.fitted(), len(case.data[case.rows[0]])
    shuffled = np.random.default_rng(0).permutation(n)
    whole = dict(case.answers(model, case.data))
    for method, answer in case.answers(model, case.taken(shuffled)):
        same(answer, whole[method][shuffled])
    for row in range(0, n, 5):
        for method, answer in case.answers(model, case.taken([row])):
            same(answer, whole[method][[row]])


def check_order_of_rows(case):
    """Nothing that is learned depends on the order of the pairs."""
    shuffled = np.random.default_rng(1).permutation(len(case.data[case.rows[0]]))
    same(case.learned(), case.learned(case.taken(shuffled)), case.tolerance)


def check_sides(case):
    """All pairs the other way round are the same data."""
    same(case.learned(), case.learned(case.swapped(case.data)), case.tolerance)


# ---------------------------------------------------------------- weights


def check_equal_weights(case):
    """No weights are weights of 1, as a list or an array."""
    ones = np.ones(len(case.data[case.rows[0]]))
    for weights in (ones, ones.tolist(), ones.astype(int)):
        same(case.learned(), case.learned(sample_weight=weights))


def check_weight_is_number(case):
    """A weight of 2 is a pair that stands there twice."""
    counts = 1 + (np.arange(len(case.data[case.rows[0]])) % 3 == 0)
    repeated = case.taken(np.repeat(np.arange(len(counts)), counts))
    same(case.learned(sample_weight=counts), case.learned(repeated), case.tolerance)


def check_weight_of_nothing(case):
    """A weight of 0 is a pair that is not there."""
    weights = np.arange(len(case.data[case.rows[0]])) % 4 != 0
    same(case.learned(sample_weight=weights), case.learned(case.taken(weights)), case.tolerance)


def check_weights_count(case):
    """Weights change what is learned."""
    weights = np.where(np.arange(len(case.data[case.rows[0]])) < 8, 20.0, 0.1)
    assert not np.allclose(case.learned(), case.learned(sample_weight=weights), rtol=1e-3)


CHECKS = (
    check_constructor, check_parameters, check_documented, check_fit_keeps_parameters, check_text,
    check_input_is_left_alone, check_forms_of_arrays, check_columns_of_frames, check_width, check_not_fitted,
    check_fit_is_repeatable, check_prediction_leaves_no_trace, check_pickle, check_rows_are_alone,
    check_order_of_rows, check_sides, check_equal_weights, check_weight_is_number, check_weight_of_nothing,
    check_weights_count,
)  # fmt: skip
