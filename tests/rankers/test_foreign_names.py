"""Keywords and names of other libraries: errors that name the equivalent."""

import inspect
from importlib.util import find_spec

import pytest
from sklearn.base import clone

import concordant as cc
from concordant.exceptions import UnexpectedArgumentError, UnknownNameError
from concordant.rankers.foreign_names import HINTS, OF_TREES, SYNONYMS
from concordant.surrogates import SURROGATES

DATA = cc.synthetic.grades(n_queries=20, n_items=5, seed=0)
ROWS = DATA.X, DATA.y
RANKERS = (
    cc.LinearRanker,
    cc.LinearRankerCV,
    cc.MaxMarginRanker,
    cc.BoostedRanker,
    cc.NeuralRanker,
    cc.PairRanker,
)
LINEAR, BOOSTED = cc.LinearRanker(), cc.BoostedRanker()
CALLS = [
    (
        lambda: LINEAR.fit(*ROWS, group=[5] * 20),
        "LinearRanker.fit() got",
        "qid=np.repeat(np.arange(len(group)), group)",
    ),
    (lambda: BOOSTED.fit(*ROWS, qid=DATA.qid, eval_group=[5]), "'eval_group'", "eval_set=(X, y, qid)"),
    (lambda: LINEAR.fit(*ROWS, eval_set=()), "'eval_set'", "LinearRankerCV, BoostedRanker and NeuralRanker"),
    (
        lambda: BOOSTED.fit(*ROWS, early_stopping_rounds=5),
        "unexpected keyword argument",
        "BoostedRanker(early_stopping=...)",
    ),
    (lambda: BOOSTED.fit(*ROWS, eval_at=[5]), "'eval_at'", "metric='ndcg@10'"),
    (lambda: LINEAR.score(*ROWS, group=[5] * 20), "LinearRanker.score() got", "qid="),
    (lambda: LINEAR.rank(DATA.X, group=[5] * 20), "LinearRanker.rank() got", "qid="),
    (lambda: cc.evaluate(LINEAR, *ROWS, group=[5] * 20), "evaluate() got", "qid="),
    (lambda: cc.BoostedRanker(num_leaves=31), "BoostedRanker() got", "use max_leaf_nodes=."),
    (lambda: cc.BoostedRanker(objective="lambdarank"), "'objective'", "name the metric"),
    (lambda: cc.BoostedRanker(max_bin=63), "'max_bin'", "params={...}"),
    (lambda: cc.LinearRanker(n_estimators=100), "", "only trees have it: BoostedRanker(n_estimators=...)"),
    (lambda: cc.LinearRanker(num_leaves=31), "", "only trees have it: BoostedRanker(max_leaf_nodes=...)"),
    (lambda: cc.LinearRanker(alhpa=1.0), "'alhpa'", "did you mean alpha=?"),
    (lambda: cc.LinearRanker(C=1.0), "", "alpha=1/C"),
    (lambda: cc.MaxMarginRanker(zzz=1.0), "MaxMarginRanker() got", "it takes metric, loss"),
    (lambda: cc.NeuralRanker(n_estimators=10), "", "use max_epochs=."),
    (
        lambda: BOOSTED.set_params(num_leaves=31),
        "Invalid parameter 'num_leaves'",
        "use max_leaf_nodes=.",
    ),
]


@pytest.mark.parametrize(("call", "problem", "hint"), CALLS, ids=[hint for _, _, hint in CALLS])
def test_keywords_of_other_libraries(call, problem, hint):
    with pytest.raises(UnexpectedArgumentError) as caught:
        call()
    assert isinstance(caught.value, TypeError)
    assert problem in str(caught.value)
    assert hint in str(caught.value)


@pytest.mark.parametrize("ranker", RANKERS)
def test_signatures_stay_explicit(ranker):
    for function in (ranker, ranker.fit, ranker.rank, ranker.score):
        kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds
    model = clone(ranker(metric="ap"))
    assert model.set_params(metric="pd").get_params()["metric"] == "pd"
    with pytest.raises(ValueError, match="step"):
        model.set_params(step__alpha=1.0)


def test_tables_name_parameters_that_exist():
    parameters = {name for ranker in RANKERS for name in inspect.signature(ranker).parameters}
    parameters |= {name for ranker in RANKERS for name in inspect.signature(ranker.fit).parameters}
    assert set(SYNONYMS) <= parameters
    assert set(OF_TREES) <= set(inspect.signature(cc.BoostedRanker).parameters)
    for name in HINTS:
        assert name not in inspect.signature(cc.LinearRanker).parameters


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("lambdarank", "metric='ndcg@10'"),
        ("YetiRank", "metric='ndcg@10'"),
        ("rank:map", "metric='ap'"),
        ("rank_xendcg", "surrogate='softmax'"),
        ("rank:pairwise", "surrogate='preorder'"),
    ],
)
def test_objectives_of_other_libraries(name, advice):
    with pytest.raises(UnknownNameError) as caught:
        cc.LinearRanker(surrogate=name).fit(*ROWS)
    assert advice in str(caught.value)
    assert all(surrogate in str(caught.value) for surrogate in SURROGATES)


@pytest.mark.skipif(find_spec("lightgbm") is None, reason="LightGBM is not installed")
def test_warnings_point_at_the_users_line():
    with pytest.warns(cc.GuaranteeWarning) as caught:
        cc.BoostedRanker("ap", surrogate="preorder", n_estimators=2, n_jobs=1).fit(*ROWS, qid=DATA.qid)
    assert {warning.filename for warning in caught} == {__file__}


def test_subclasses_may_pass_keywords_on():
    class Passing(cc.LinearRanker):
        def fit(self, X, y=None, **keywords):
            return super().fit(X, y, **keywords)

    data = cc.synthetic.grades(n_queries=20, n_items=5, seed=0)
    assert Passing().fit(data.X, data.y, qid=data.qid).n_queries_ == 20
