"""Each subject x each argument x each defect: refused by an error that names it, and nothing is lost."""

import copy
import re
from collections import defaultdict
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from concordant import ConcordantError
from tests.contracts.cells import Cell, cells
from tests.contracts.defects import DEFECTS, UNUSUAL, WORDS
from tests.contracts.legitimate import LEGITIMATE, reason
from tests.contracts.models import is_brief
from tests.contracts.outcomes import ACCEPTED, BROKEN, REFUSED, tried
from tests.contracts.subject import Subject
from tests.contracts.subjects import refit, subjects

pytestmark = pytest.mark.once

BY_SUBJECT = defaultdict(list)
for cell in cells():
    BY_SUBJECT[cell.subject.name].append(cell)
SUBJECTS = {subject.name: subject for subject in subjects() if is_brief(subject.name)}


OTHER = {  # of a role: forms in which it is something else
    "ids": ("float32", "decimals"),
    "times": ("float32", "decimals"),
    "orders": ("lists",),  # each an order of items, where an array has their places
}
WORDED = [name for name, subject in SUBJECTS.items() if "features" in subject.roles.values()]


def marked(name):
    """Networks take seconds."""
    return pytest.param(name, marks=[pytest.mark.once] if name == "NeuralRanker.fit" else [])


@pytest.mark.slow
@pytest.mark.parametrize("name", [marked(name) for name in SUBJECTS])
def test_bad_input_is_refused_by_name(name):
    wrong = []
    for cell in BY_SUBJECT[name]:
        outcome = cell.outcome()
        if outcome.kind != (ACCEPTED if reason(cell) else REFUSED):
            wrong.append((cell.name, outcome.kind, outcome.message))
    assert wrong == []


@pytest.mark.filterwarnings("ignore:X has feature names:UserWarning")
@pytest.mark.parametrize("name", [marked(name) for name in WORDED])
def test_text_and_dates_in_frames_and_objects_are_refused(name):
    subject = SUBJECTS[name]
    wrong = []
    for argument in (key for key, role in subject.roles.items() if role == "features"):
        for defect, damaged in WORDS.items():
            arguments = {**subject.arguments, argument: damaged(subject.arguments[argument])}
            words = f"{subject.patterns.get(argument, argument)}|categorical_features"
            outcome = tried(partial(subject.call, **arguments), words)
            category = re.fullmatch(r"BoostedRanker.*\.fit", name) and defect == "pandas, categories of text"
            if outcome.kind != (ACCEPTED if category else REFUSED):
                wrong.append((argument, defect, outcome))
    assert wrong == []


def test_every_reason_is_of_a_cell():
    reasons = {reason(cell) for group in BY_SUBJECT.values() for cell in group}
    assert reasons == {why for *_, why in LEGITIMATE} | {""}


@pytest.mark.parametrize("name", SUBJECTS)
def test_sound_input_is_accepted(name):
    subject = SUBJECTS[name]
    for arguments in (subject.arguments, {**subject.arguments, **subject.elsewhere}):
        assert tried(partial(subject.call, **arguments)).kind == ACCEPTED


@pytest.mark.once
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", SUBJECTS)
def test_unusual_input_says_the_same(name):
    """Lists, other precisions, memory orders and bytes, where an argument takes numbers."""
    subject = SUBJECTS[name]
    expected = subject.call(**subject.arguments)
    for argument, role in subject.roles.items():
        for form, changed in UNUSUAL.items():
            if form in OTHER.get(role, ()):
                continue
            arguments = {**subject.arguments, argument: changed(subject.arguments[argument])}
            check_same(subject.call(**arguments), expected, f"{argument} {form}", loose=form == "float32")


def check_same(actual, expected, label, *, loose):
    """Numbers anywhere in two results agree."""
    first, second = (np.array(list(numbers_in(result))) for result in (actual, expected))
    assert first.shape == second.shape, label
    near = 2e-2 if loose else 1e-9  # trees and iterations may part where numbers are rounded
    np.testing.assert_allclose(first, second, rtol=near, atol=near, err_msg=label)


def numbers_in(result):
    """All numbers of a result, in order."""
    if isinstance(result, (int, float, np.number, np.ndarray)):
        array = np.asarray(result)
        yield from array[()].ravel().tolist() if array.dtype.kind in "biuf" else []
    elif isinstance(result, dict):
        yield from (number for part in result.values() for number in numbers_in(part))
    elif isinstance(result, (list, tuple)):
        yield from (number for part in result for number in numbers_in(part))


# ---------------------------------------------------------------- the matrix can be broken


class Mean(BaseEstimator):
    """Keeps the mean of y; refuses all that the matrix asks it to refuse."""

    def fit(self, y):
        y = self.checked(y)
        self.mean_ = float(y.mean())
        return self

    def checked(self, y):
        try:
            array = np.asarray(y if not np.ma.is_masked(y) else [], dtype=None)
        except ValueError as error:
            raise ConcordantError("y is ragged.") from error
        if array.ndim != 1 or array.dtype.kind not in "iuf" or not len(array) or len(array) != 6:
            raise ConcordantError(f"y has {array.shape} of {array.dtype}.")
        if not np.isfinite(array).all():
            raise ConcordantError("y is not finite.")
        return array


class TakesNaN(Mean):
    def checked(self, y):
        return y if isinstance(y, np.ndarray) and y.dtype.kind == "f" else super().checked(y)


class NamesNothing(Mean):
    def checked(self, y):
        return super().checked(np.asarray(y)[[0, 1, 2, 3, 4, 5]])


class SaysNoName(Mean):
    def checked(self, y):
        try:
            return super().checked(y)
        except ConcordantError as error:
            raise ConcordantError("it is wrong.") from error


class LosesItself(Mean):
    def fit(self, y):
        self.mean_ = 0.0
        return super().fit(y)


def subject_of(model):
    """The matrix's view of such a model: fitted again, by the same harness as all others."""
    data = {"y": np.arange(6.0)}
    fitted = copy.deepcopy(model).fit(**data)
    again = refit(fitted, np.array([fitted.mean_]), data, said=lambda model, _: np.array([model.mean_]))
    return Subject(type(model).__name__, again, data, {"y": "scores"})


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (TakesNaN(), "accepted, but an array holds nan"),
        (NamesNothing(), "IndexError"),
        (SaysNoName(), "does not match"),
        (LosesItself(), "LostStateError"),
    ],
)
def test_bad_estimators_are_detected(model, problem):
    outcomes = [Cell(subject_of(model), "y", defect).outcome() for defect in DEFECTS["scores"]]
    assert any(outcome.kind == BROKEN and problem in outcome.message for outcome in outcomes)
    good = [Cell(subject_of(Mean()), "y", defect).outcome() for defect in DEFECTS["scores"]]
    assert {outcome.kind for outcome in good} == {REFUSED}
