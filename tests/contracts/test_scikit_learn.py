"""scikit-learn's own checks of every estimator that takes a table, but for those listed with their reason."""

from importlib.util import find_spec

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import concordant as cc

NOT_REPEATED = dict.fromkeys(
    ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"),
    "a document stands once in a list: sample_weight weighs its label, not its number",
)
TREES = {"n_estimators": 3, "max_leaf_nodes": 4, "min_samples_leaf": 1, "n_jobs": 1, "early_stopping": None}


def estimators():
    """One of each, and those settings by which other code is reached."""
    yield from (cc.LinearRanker(), cc.LinearRankerCV(cv=2))
    yield from (cc.MaxMarginRanker(), cc.MaxMarginRanker(loss="pairwise"), cc.MaxMarginRanker(metric="ap"))
    yield cc.MaxMarginRanker(metric="ap[relevant_from=2]")
    yield from (cc.PairRanker(decoder="diagonal"), cc.PairRanker("pd", decoder="borda"))
    yield from (
        cc.BoostedRanker(booster=name, **TREES)
        for name in ("lightgbm", "xgboost", "catboost")
        if find_spec(name)
    )
    if find_spec("torch"):
        yield cc.LinearRanker(device="cpu")
        yield cc.NeuralRanker(hidden=(4,), max_epochs=2, early_stopping=None, device="cpu")


def expected_failures(model):
    """Checks that fail, and why."""
    if isinstance(model, cc.PairRanker):
        return {}  # it has no `predict`: these checks find nothing to look at
    if isinstance(model, cc.MaxMarginRanker) and model.metric == "ap":
        return {}  # the labels of these checks are >= 1, all relevant to plain AP: no weights, equal ones
    return NOT_REPEATED


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(list(estimators()), expected_failed_checks=expected_failures)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
