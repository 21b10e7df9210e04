"""Comparers and ratings keep the contract of `contract.py`, but for what is listed; and it can be broken."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from concordant import ConcordantError
from tests.contracts.cases import EXPECTED, cases, of_pairs
from tests.contracts.contract import CHECKS

CASES = cases()


def crossed():
    """Every case with every check, those that are to fail marked."""
    for case in CASES:
        for check in CHECKS:
            why = EXPECTED.get((case.name, check.__name__))
            marks = [] if why is None else [pytest.mark.xfail(reason=why, raises=AssertionError)]
            yield pytest.param(case, check, id=f"{case.name}-{check.__name__}", marks=marks)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("case", "check"), list(crossed()))
def test_contract(case, check):
    check(case)


def test_every_expected_failure_is_of_a_check():
    checks = {(case.name, check.__name__) for case in CASES for check in CHECKS}
    assert set(EXPECTED) <= checks


# ---------------------------------------------------------------- the contract can be broken


class Plain(BaseEstimator):
    """Sums the differences of the pairs; all that the contract asks, and no more.

    Parameters
    ----------
    shrink
        Divides the weights.
    """

    def __init__(self, shrink=1.0):
        self.shrink = shrink

    def fit(self, pairs, y, sample_weight=None):
        pairs, y = np.asarray(pairs, dtype=float), np.asarray(y)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        self.coef_ = np.einsum("ik,i->k", pairs[:, 1] - pairs[:, 0], weight * y) / self.shrink
        self.threshold_, self.n_features_in_ = 0.0, pairs.shape[2]
        return self

    def decision_function(self, pairs):
        check_is_fitted(self)
        pairs = np.asarray(pairs, dtype=float)
        if pairs.shape[2] != self.n_features_in_:
            raise ConcordantError(f"pairs have shape {pairs.shape}.")
        return np.einsum("ik,k->i", pairs[:, 1] - pairs[:, 0], self.coef_)

    def predict(self, pairs):
        return np.sign(self.decision_function(pairs)).astype(int)


class Converts(Plain):
    __doc__ = Plain.__doc__

    def __init__(self, shrink=1.0):
        self.shrink = [shrink]


class Hides(Plain):
    __doc__ = Plain.__doc__

    def get_params(self, deep=True):
        return {} if deep else super().get_params(deep=False)


class Undocumented(Plain):
    """Says nothing of its parameters."""


class Rewrites(Plain):
    __doc__ = Plain.__doc__

    def fit(self, pairs, y, sample_weight=None):
        self.shrink = float(self.shrink) + 0.5 - 0.5 + np.float64(0.0)
        return super().fit(pairs, y, sample_weight)


class Silent(Plain):
    __doc__ = Plain.__doc__

    def __repr__(self, N_CHAR_MAX=0):
        return ""


class Scribbles(Plain):
    __doc__ = Plain.__doc__

    def fit(self, pairs, y, sample_weight=None):
        super().fit(pairs, y, sample_weight)
        np.asarray(pairs)[0] = 0.0
        return self


class ReadsMemory(Plain):
    __doc__ = Plain.__doc__

    def fit(self, pairs, y, sample_weight=None):
        return super().fit(np.asarray(pairs).ravel(order="K").reshape(np.shape(pairs)), y, sample_weight)


class ArraysOnly(Plain):
    __doc__ = Plain.__doc__

    def fit(self, pairs, y, sample_weight=None):
        super().fit(pairs, y, sample_weight)
        self.coef_ = self.coef_ if isinstance(y, (np.ndarray, list)) else self.coef_ + 1.0
        return self


class AnyWidth(Plain):
    __doc__ = Plain.__doc__

    def decision_function(self, pairs):
        check_is_fitted(self)
        pairs = np.asarray(pairs, dtype=float)[:, :, :1]
        return (pairs[:, 1] - pairs[:, 0])[:, 0] * self.coef_[0]


class Eager(Plain):
    __doc__ = Plain.__doc__

    def predict(self, pairs):
        return np.zeros(len(pairs)) if not hasattr(self, "coef_") else super().predict(pairs)


class Remembers(Plain):
    __doc__ = Plain.__doc__

    def fit(self, pairs, y, sample_weight=None):
        before = getattr(self, "coef_", 0.0)
        super().fit(pairs, y, sample_weight)
        self.coef_ = self.coef_ + (0.01 * before if np.shape(before) else 0.0)
        return self


class Counts(Plain):
    __doc__ = Plain.__doc__

    def predict(self, pairs):
        self.asked_ = getattr(self, "asked_", 0) + 1
        return super().predict(pairs)


class Forgets(Plain):
    __doc__ = Plain.__doc__

    def __getstate__(self):
        return {**self.__dict__, "coef_": -self.coef_} if hasattr(self, "coef_") else self.__dict__


class Compares(Plain):
    __doc__ = Plain.__doc__

    def decision_function(self, pairs):
        decision = super().decision_function(pairs)
        return decision - decision.mean()


class FirstCounts(Plain):
    __doc__ = Plain.__doc__

    def fit(self, pairs, y, sample_weight=None):
        super().fit(pairs, y, sample_weight)
        self.coef_ = self.coef_ + np.asarray(pairs, dtype=float)[0, 0]
        return self


class LeftCounts(Plain):
    __doc__ = Plain.__doc__

    def fit(self, pairs, y, sample_weight=None):
        super().fit(pairs, y, sample_weight)
        self.coef_ = self.coef_ + np.asarray(pairs, dtype=float)[:, 0].sum(axis=0)
        return self


class WeightedOtherwise(Plain):
    __doc__ = Plain.__doc__

    def fit(self, pairs, y, sample_weight=None):
        super().fit(pairs, y, sample_weight)
        self.coef_ = self.coef_ * (1.0 if sample_weight is None else 1.5)
        return self


class Squares(Plain):
    __doc__ = Plain.__doc__

    def fit(self, pairs, y, sample_weight=None):
        return super().fit(pairs, y, None if sample_weight is None else np.asarray(sample_weight) ** 2)


class NeverNothing(Plain):
    __doc__ = Plain.__doc__

    def fit(self, pairs, y, sample_weight=None):
        raised = None if sample_weight is None else np.maximum(np.asarray(sample_weight), 0.5)
        return super().fit(pairs, y, raised)


class Ignores(Plain):
    __doc__ = Plain.__doc__

    def fit(self, pairs, y, sample_weight=None):  # noqa: ARG002
        return super().fit(pairs, y)


WRONG = dict(zip((check.__name__ for check in CHECKS), (
    Converts, Hides, Undocumented, Rewrites, Silent, Scribbles, ReadsMemory, ArraysOnly, AnyWidth, Eager,
    Remembers, Counts, Forgets, Compares, FirstCounts, LeftCounts, WeightedOtherwise, Squares, NeverNothing,
    Ignores,
), strict=True))  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_each_check_passes_a_plain_estimator_and_rejects_a_wrong_one(check):
    check(of_pairs("plain", Plain()))
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(of_pairs("wrong", WRONG[check.__name__]()))
