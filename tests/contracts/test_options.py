"""Each parameter of each estimator x values that are mostly wrong: refused by a message that names it."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import concordant as cc
from concordant.exceptions import ParameterError
from tests.contracts import options
from tests.contracts.models import BRIEF, ESTIMATORS
from tests.contracts.options import ALLOWED, PATTERNS, PROBES, choices, fitted_with
from tests.contracts.outcomes import BROKEN

pytestmark = pytest.mark.once


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in BRIEF if name in ESTIMATORS])
def test_wrong_parameters_are_refused_by_name(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # where a checkpoint is written
    outcomes = {
        (option, probe): fitted_with(name, option, probe)
        for owner, option in choices()
        if owner == name
        for probe in PROBES
    }
    assert {cell: outcome for cell, outcome in outcomes.items() if outcome.kind == BROKEN} == {}
    capsys.readouterr()  # bars of `verbose`


@pytest.mark.parametrize("name", ["LinearRanker", "LinearRankerCV"])
def test_a_huge_number_is_named_without_torch_too(name, monkeypatch):
    monkeypatch.setattr("concordant.rankers.device_losses.find_spec", lambda _: None)
    assert fitted_with(name, "device", "10**5000").kind != BROKEN


def test_the_table_is_of_parameters():
    names = {option for _, option in choices()} | set(cc.NeuralRanker().get_params())  # not run without torch
    assert set(ALLOWED) <= names
    assert set(PATTERNS) <= names
    assert {probe for probes in ALLOWED.values() for probe in probes} <= set(PROBES)


class Careless(BaseEstimator):
    def __init__(self, alpha=1.0, tol=0.1):
        self.alpha, self.tol = alpha, tol

    def fit(self, X, y, qid):
        del y, qid
        if not isinstance(self.tol, float):
            raise ParameterError("alpha", self.tol, "another")  # names the wrong one
        self.n_features_in_ = X.shape[1] + 0 * int(self.alpha > 0)
        return self

    def predict(self, X):
        return np.full(len(X), np.nan if self.tol != self.tol else 0.0)


def test_a_careless_estimator_is_detected(monkeypatch):
    monkeypatch.setitem(options.ESTIMATORS, "Careless", Careless())
    messages = {
        (option, probe): fitted_with("Careless", option, probe).message
        for option in ("alpha", "tol")
        for probe in ("text", "inf", "nan", "0.5")
    }
    assert "TypeError" in messages["alpha", "text"]
    assert messages["alpha", "inf"] == "accepted"
    assert "does not match 'tol'" in messages["tol", "text"]
    assert "accepted, but an array holds nan" in messages["tol", "nan"]
    assert messages["tol", "0.5"] == ""
