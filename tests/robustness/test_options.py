"""Each parameter of each estimator x values that are mostly wrong: refused by a message that names it."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from concordant.exceptions import ParameterError
from robustness import options
from robustness.models import BRIEF, ESTIMATORS
from robustness.options import ALLOWED, PROBES, TOLD, choices, fitted_with
from robustness.outcomes import BROKEN

pytestmark = pytest.mark.once


@pytest.mark.parametrize("name", [name for name in BRIEF if name in ESTIMATORS])
def test_wrong_parameters_are_refused_by_name(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # where a checkpoint is written
    found = {
        (option, probe): fitted_with(name, option, probe)
        for own, option in choices()
        if own == name
        for probe in PROBES
    }
    assert {cell: outcome for cell, outcome in found.items() if outcome.kind == BROKEN} == {}
    capsys.readouterr()  # bars of `verbose`


def test_the_table_is_of_parameters():
    known = {option for _, option in choices()}
    assert set(ALLOWED) <= known
    assert set(TOLD) <= known
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


def test_a_careless_estimator_is_told(monkeypatch):
    monkeypatch.setitem(options.ESTIMATORS, "Careless", Careless())
    told = {
        (option, probe): fitted_with("Careless", option, probe).told
        for option in ("alpha", "tol")
        for probe in ("text", "inf", "nan", "0.5")
    }
    assert "TypeError" in told["alpha", "text"]
    assert told["alpha", "inf"] == "accepted"
    assert "does not match 'tol'" in told["tol", "text"]
    assert "accepted, but an array holds nan" in told["tol", "nan"]
    assert told["tol", "0.5"] == ""
