"""Rows of many queries without `qid`, and folds that cut queries: warnings that name the fix."""

import warnings
from importlib.util import find_spec

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score, cross_validate

import concordant as cc
from concordant.exceptions import QueryWarning
from concordant.rankers.missing_qid import LONGEST_LIST

DATA = cc.synthetic.grades(n_queries=40, n_items=10, seed=0)
X, y, qid = DATA.X, DATA.y, DATA.qid
RANKERS = {
    "linear": lambda: cc.LinearRanker("ndcg@5"),
    "linear-cv": lambda: cc.LinearRankerCV("ndcg@5", alphas=[1.0, 0.1], cv=2),
    "max-margin": lambda: cc.MaxMarginRanker("ap", "pairwise"),
    "pairs": lambda: cc.PairRanker("pd", decoder="borda"),
}
if find_spec("lightgbm"):
    RANKERS["boosted"] = lambda: cc.BoostedRanker(n_estimators=2, n_jobs=1)
if find_spec("torch"):
    RANKERS["neural"] = lambda: cc.NeuralRanker(hidden=(2,), max_epochs=1, early_stopping=None, device="cpu")
each_ranker = pytest.mark.parametrize("name", RANKERS)
pytestmark = [
    pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def one_warning(call):
    """Text of the only warning of a call, which points at a line of this file."""
    with pytest.warns(QueryWarning) as caught:
        call()
    (warning,) = [entry for entry in caught if entry.category is QueryWarning]
    assert warning.filename == __file__
    return str(warning.message)


@each_ranker
def test_score_and_rank_of_many_queries_without_qid(name):
    model = RANKERS[name]().fit(X, y, qid=qid)
    for call, example in (
        (lambda: model.score(X, y), "score(X, y, qid=qid)"),
        (lambda: model.rank(X), "rank(X, qid=qid)"),
        (lambda: cc.evaluate(model, X, y), "evaluate(model, X, y, qid=qid)"),
    ):
        text = one_warning(call)
        assert "400 rows" in text
        assert "40 queries of at most 10 rows" in text
        assert example in text


@each_ranker
def test_no_warning_in_ordinary_use(name):
    """With qid; of one query; with one id for all rows; of a fit to one list."""
    model = RANKERS[name]().fit(X, y, qid=qid)
    model.score(X, y, qid=qid)
    model.score(X[:10], y[:10])
    model.rank(X[:10])
    model.rank(X, qid=np.zeros(len(X)))
    if hasattr(model, "predict"):
        model.predict(X)
    single = RANKERS[name]().fit(X[:60], y[:60])
    single.score(X, y)
    single.rank(X)


@pytest.mark.parametrize("name", [name for name in RANKERS if name != "pairs"])  # whose fit takes all pairs
def test_fit_of_thousands_of_rows_without_qid(name):
    many = np.resize(X, (LONGEST_LIST + 1, X.shape[1])), np.resize(y, LONGEST_LIST + 1)
    text = one_warning(lambda: RANKERS[name]().fit(*many))
    assert "all 2,001 rows are one list" in text
    assert "fit(X, y, qid=qid)" in text
    RANKERS[name]().fit(*many, qid=np.zeros(len(many[1])))
    RANKERS[name]().fit(many[0][1:], many[1][1:])


def test_search_without_routing():
    """`fit` gets the ids, `score` does not: one warning, though every fold scores twice."""
    search = GridSearchCV(cc.LinearRanker("ndcg@5"), {"alpha": [10.0, 1.0]}, cv=GroupKFold(3))
    text = one_warning(lambda: search.fit(X, y, groups=qid, qid=qid))
    assert text.startswith("score() got no qid")
    assert "sklearn.set_config(enable_metadata_routing=True)" in text
    assert "cross_val_score(model, X, y, cv=GroupKFold(5), params=" in text


def test_cross_validation_without_qid():
    text = one_warning(lambda: cross_val_score(cc.LinearRanker("ndcg@5"), X, y, cv=3))
    assert text.startswith("fit() got no qid")


def test_pipeline_without_routing():
    model = sklearn.pipeline.make_pipeline(cc.LinearRanker("ndcg@5")).fit(X, y, linearranker__qid=qid)
    assert "enable_metadata_routing" in one_warning(lambda: model.score(X, y))


@pytest.mark.usefixtures("routing")
def test_the_lines_of_the_warning_are_silent():
    model = cc.LinearRanker("ndcg@5")
    GridSearchCV(model, {"alpha": [1.0, 0.1]}, cv=GroupKFold(5)).fit(X, y, qid=qid, groups=qid)
    params = {"qid": qid, "groups": qid}
    cross_val_score(model, X, y, cv=GroupKFold(5), params=params)
    cross_validate(model, X, y, cv=GroupKFold(5), params=params, return_train_score=True)


@pytest.mark.usefixtures("routing")
def test_folds_that_cut_queries():
    folds = KFold(3, shuffle=True, random_state=0)
    text = one_warning(
        lambda: cross_val_score(cc.LinearRanker("ndcg@5"), X, y, cv=folds, params={"qid": qid})
    )
    assert text.startswith("The folds cut queries")
    assert "cv=GroupKFold(5)" in text
    search = GridSearchCV(cc.LinearRanker("ndcg@5"), {"alpha": [1.0]}, cv=folds)
    assert "cut queries" in one_warning(lambda: search.fit(X, y, qid=qid))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.best_estimator_.score(X[5:], y[5:], qid=qid[5:])  # refitted to all rows, and not in a fold


@pytest.mark.usefixtures("routing")
def test_queries_cut_in_halves_are_noticed():
    data = cc.synthetic.grades(n_queries=20, n_items=10, seed=0)
    first = np.arange(200) % 10 < 5
    halves = [(np.flatnonzero(first), np.flatnonzero(~first))]
    model, params = cc.LinearRanker("ndcg@5"), {"qid": data.qid}
    assert "cut queries" in one_warning(
        lambda: cross_val_score(model, data.X, data.y, cv=halves, params=params)
    )


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
def test_own_folds_that_cut_queries():
    folds = KFold(2, shuffle=True, random_state=0)
    model = cc.LinearRankerCV("ndcg@5", alphas=[1.0], cv=folds)
    assert "cut queries" in one_warning(lambda: model.fit(X, y, qid=qid))
    model.set_params(cv=GroupKFold(2)).fit(X, y, qid=qid)
    model.set_params(cv=folds).fit(X[:60], y[:60])  # one list: its rows are cut, as asked
