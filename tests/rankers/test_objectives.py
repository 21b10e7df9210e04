"""Objectives for LightGBM and XGBoost: what the libraries are told, and what they make of it."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

import concordant as cc
from concordant import GuaranteeWarning
from concordant.exceptions import (
    GradeError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    ParameterError,
    UnknownNameError,
)
from concordant.surrogates import SURROGATES, Pairwise, Softmax

lgb = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
xgb = pytest.importorskip("xgboost", reason="XGBoost is not installed")

LIGHT = {"verbosity": -1, "num_threads": 1, "deterministic": True, "force_col_wise": True, "num_leaves": 7}
EXTREME = {"max_depth": 3, "nthread": 1, "base_score": 0.0}
TREES = [name for name in SURROGATES if SURROGATES[name]().curvatures and name != "plackett_luce"]


def drawn(n_queries=40, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, n_queries)
    X = rng.normal(size=(sizes.sum(), 4))
    y = np.digitize(X @ [2.0, 1.0, 0.0, 0.5] + 0.7 * rng.normal(size=len(X)), [0.0, 1.5, 3.0])
    weight = np.repeat(rng.uniform(0.2, 3.0, n_queries), sizes) if weighted else None
    return X, y, sizes, weight


def expected(metric, surrogate, y, sizes, scores, curvature, weight=None):
    """Gradient and curvature by the public pieces, query by query, summed."""
    qid = np.repeat(np.arange(len(sizes)), sizes)
    queries = cc.Queries.from_ids(qid)
    labels = y if surrogate.reads == "grades" else cc.standardize(metric, y, qid=qid, assume="P_reinforce")
    rows = None
    if weight is not None:
        rows = weight / weight[queries.offsets[:-1]].mean()
    loss = surrogate.bind(labels, queries.offsets, rows)
    return loss.value_and_grad(scores)[1], loss.curvature(scores, curvature)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("metric", ["ndcg@3", "ap"])
@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")
def test_libraries_get_the_gradient_of_the_sum_over_queries(metric, name, weighted):
    X, y, sizes, weight = drawn(weighted=weighted)
    surrogate, scores = SURROGATES[name](), np.random.default_rng(1).normal(size=len(y))
    for kind in surrogate.curvatures:
        right = expected(metric, surrogate, y, sizes, scores, kind, weight)
        objective = cc.objectives.lightgbm(metric, name, kind, lift=0.0)
        data = lgb.Dataset(X, label=y, group=sizes, weight=weight).construct()
        matrix = xgb.DMatrix(X, label=y)
        matrix.set_group(sizes)
        if weighted:
            matrix.set_weight(weight[np.r_[0, sizes.cumsum()[:-1]]])
        for result in (
            objective(scores, data),
            objective(y, scores, weight, sizes),
            cc.objectives.xgboost(metric, name, kind, lift=0.0)(scores, matrix),
        ):
            for column, other in zip(result, right, strict=True):
                assert column.dtype == np.float32
                np.testing.assert_allclose(column, other, rtol=2e-6, atol=1e-6)


def test_targets_are_lifted_by_a_share_of_the_highest():
    _, y, sizes, _ = drawn()
    qid, scores = np.repeat(np.arange(len(sizes)), sizes), np.random.default_rng(1).normal(size=len(y))
    targets = cc.standardize("ndcg", y, qid=qid)
    highest = np.array([targets[qid == q].max() for q in qid])
    right = Softmax()(scores, targets + 0.5 * highest, qid=qid)[1]
    grad = cc.objectives.lightgbm("ndcg", "softmax", lift=0.5)(y, scores, None, sizes)[0]
    np.testing.assert_allclose(grad, right, rtol=2e-6, atol=1e-6)
    with pytest.raises(ParameterError, match="lift"):
        cc.objectives.xgboost("ndcg", lift=-1.0)


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
def test_labels_are_weighed_before_they_are_lifted():
    X, y, sizes, _ = drawn()
    row_weights = np.random.default_rng(3).uniform(0.2, 3.0, len(y))
    qid, scores = np.repeat(np.arange(len(sizes)), sizes), np.random.default_rng(1).normal(size=len(y))
    means = np.bincount(qid, row_weights) / sizes
    targets = cc.standardize("ndcg", y, qid=qid) * row_weights / means.mean()
    highest = np.array([targets[qid == q].max() for q in qid])
    for loss in (Softmax(), Pairwise()):
        right = loss(scores, targets + 0.5 * highest, qid=qid)[1]
        data = lgb.Dataset(X, label=y, group=sizes, weight=row_weights).construct()
        grad = cc.objectives.lightgbm("ndcg", loss, lift=0.5)(scores, data)[0]
        np.testing.assert_allclose(grad, right, rtol=1e-5, atol=1e-5)


def test_parts_of_a_dataset_have_whole_queries():
    X, y, sizes, _ = drawn(30)
    qid, objective = np.repeat(np.arange(len(sizes)), sizes), cc.objectives.lightgbm("ndcg@5")
    settings = {**LIGHT, "objective": objective, "metric": "None"}
    for way in ({"stratified": False}, {"stratified": False, "shuffle": False}):
        with pytest.raises(LabelError, match=r"is cut: \d+ of its \d+ rows.*\n.*GroupKFold"):
            lgb.cv(settings, lgb.Dataset(X, label=y, group=sizes), 2, nfold=3, feval=objective.metric, **way)
    whole = GroupKFold(3).split(X, y, qid)
    history = lgb.cv(settings, lgb.Dataset(X, label=y, group=sizes), 2, folds=whole, feval=objective.metric)
    assert history["valid ndcg@5-mean"][-1] > 0.5


def test_weights_have_no_unit():
    _, y, sizes, weight = drawn(weighted=True)
    objective, scores = cc.objectives.lightgbm("ndcg", "softmax"), np.zeros(len(y))
    grad, other = (objective(y, scores, unit * weight, sizes)[0] for unit in (1.0, 1000.0))
    np.testing.assert_allclose(grad, other, rtol=1e-5, atol=1e-12)
    plain = objective(y, scores, None, sizes)[0]
    np.testing.assert_allclose(
        objective(y, scores, np.full(len(y), 7.0), sizes)[0], plain, rtol=1e-6, atol=1e-12
    )
    # Queries of weight 0 are not there: the others keep their weight.
    off = np.repeat(np.arange(len(sizes)) % 2, sizes)
    some = objective(y, scores, off.astype(float), sizes)[0]
    np.testing.assert_allclose(some, plain * off, rtol=1e-6, atol=1e-12)


def trained(objective, X, y, sizes, weight=None, rounds=10, **more):
    data = lgb.Dataset(X, label=y, group=sizes, weight=weight)
    return lgb.train({**LIGHT, "objective": objective, **more}, data, rounds)


def test_train_and_the_estimator_give_the_same_model():
    X, y, sizes, weight = drawn(100, weighted=True)
    objective = cc.objectives.lightgbm("ndcg@5", "pairwise")
    booster = trained(objective, X, y, sizes, weight, min_data_in_leaf=20)
    ranker = lgb.LGBMRanker(
        objective=objective, n_estimators=10, num_leaves=7, n_jobs=1, verbosity=-1, deterministic=True,
        force_col_wise=True,
    )  # fmt: skip
    ranker = clone(ranker).fit(X, y, group=sizes, sample_weight=weight)
    again = pickle.loads(pickle.dumps(ranker))  # noqa: S301
    assert booster.predict(X).tolist() == ranker.predict(X).tolist() == again.predict(X).tolist()
    assert np.ptp(booster.predict(X)) > 0.0


@pytest.mark.parametrize("make", [cc.objectives.lightgbm, cc.objectives.xgboost])
def test_copies_and_pickles_begin_without_data(make):
    _, y, sizes, _ = drawn()
    objective = make("ndcg@5", Pairwise("logistic"))
    if make is cc.objectives.lightgbm:
        objective(y, np.zeros(len(y)), None, sizes)
        assert len(objective.datasets.entries) == 1
    for other in (copy.deepcopy(objective), pickle.loads(pickle.dumps(objective))):  # noqa: S301
        assert other == objective
        assert hash(other) == hash(objective)
        assert other.datasets.entries == []
    assert make("ndcg@5", "softmax") != objective
    assert "Pairwise" in repr(objective)
    assert objective.metric == pickle.loads(pickle.dumps(objective.metric))  # noqa: S301


def test_labels_are_read_once_and_again_when_they_change(monkeypatch):
    _, y, sizes, _ = drawn()
    objective, scores = cc.objectives.lightgbm("ndcg", Softmax()), np.zeros(len(y))
    bound = []
    attach = Softmax.attach
    monkeypatch.setattr(Softmax, "attach", lambda *arguments: bound.append(1) or attach(*arguments))
    labels = y.astype(np.float32)
    first = objective(labels, scores, None, sizes)[0]
    for _ in range(3):
        assert objective(labels.copy(), scores, None, sizes)[0].tolist() == first.tolist()
    assert len(bound) == 1
    labels[0] += 1.0  # in place
    assert objective(labels, scores, None, sizes)[0].tolist() != first.tolist()
    objective(labels, scores, np.ones(len(y)), sizes)
    objective(labels, scores, None, np.r_[sizes[1:], sizes[:1]])
    assert len(bound) == 4
    assert objective(y, scores, None, sizes)[0].tolist() == first.tolist()  # still known
    assert len(bound) == 4
    for shift in range(20):
        objective(labels + shift + 1, scores, None, sizes)
    assert len(objective.datasets.entries) == 8


@pytest.mark.parametrize("name", ["ndcg@3", "ap", "pd", "p@2[relevant_from=2]", "rr", "err@5"])
@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_are_those_of_this_library(name, weighted):
    X, y, sizes, weight = drawn(weighted=weighted)
    scores = np.random.default_rng(2).normal(size=len(y)).round(1)
    qid, metric = np.repeat(np.arange(len(sizes)), sizes), cc.metric(name)
    per_query = None if weight is None else weight[np.r_[0, sizes.cumsum()[:-1]]]
    right = float(metric(y, scores, qid=qid, weights=per_query))
    data = lgb.Dataset(X, label=y, group=sizes, weight=weight).construct()
    for result in (
        cc.objectives.lightgbm_metric(name)(scores, data),
        cc.objectives.lightgbm_metric(metric)(y, scores, weight, sizes),
    ):
        assert result == (str(metric), pytest.approx(right, rel=1e-6), metric.greater_is_better)
    matrix = xgb.DMatrix(X, label=y, qid=qid)
    if weighted:
        matrix.set_weight(per_query)
    xgb_metric = cc.objectives.xgboost_metric(name)
    assert xgb_metric(scores, matrix) == (str(metric), pytest.approx(right, rel=1e-6))
    assert xgb_metric.maximize == metric.greater_is_better


def test_conventions_of_metrics():
    _, y, sizes, _ = drawn()
    scores = np.zeros(len(y))
    values = [
        cc.objectives.lightgbm_metric("ndcg@3", convention=convention)(y, scores, None, sizes)[1]
        for convention in ("concordant", "lightgbm")
    ]
    qid = np.repeat(np.arange(len(sizes)), sizes)
    assert values == [
        float(cc.metric("ndcg@3", convention=c)(y, scores, qid=qid)) for c in ("concordant", "lightgbm")
    ]
    assert values[0] != values[1]


@pytest.mark.parametrize("metric", ["ndcg@5", "pd"])
@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")
def test_early_stopping_follows_the_metric(metric):
    """Whether higher is better is said, not guessed."""
    X, y, sizes, _ = drawn(80)
    V, v, v_sizes, _ = drawn(60, seed=9)
    objective, history = cc.objectives.lightgbm(metric, "softmax"), {}
    data = lgb.Dataset(X, label=y, group=sizes)
    valid = data.create_valid(V, label=v, group=v_sizes)
    calls = [lgb.record_evaluation(history), lgb.early_stopping(5, first_metric_only=True, verbose=False)]
    settings = {**LIGHT, "objective": objective, "metric": "None", "learning_rate": 0.3}
    booster = lgb.train(settings, data, 60, [valid], feval=objective.metric, callbacks=calls)
    best = {"ndcg@5": np.argmax, "pd": np.argmin}[metric]
    values = history["valid_0"][metric]
    assert booster.best_iteration == best(values) + 1 == len(values) - 5

    ranker = lgb.LGBMRanker(
        objective=objective, n_estimators=60, n_jobs=1, learning_rate=0.3, metric="None",
        **{k: v for k, v in LIGHT.items() if k != "num_threads"},
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions call eval_set eval_X and eval_y
        ranker.fit(
            X, y, group=sizes, eval_set=[(V, v)], eval_group=[v_sizes], eval_metric=objective.metric,
            callbacks=[lgb.early_stopping(5, verbose=False)],
        )  # fmt: skip
    assert ranker.best_iteration_ == booster.best_iteration
    assert ranker.predict(V).tolist() == booster.predict(V).tolist()

    xgb_objective, xgb_history = cc.objectives.xgboost(metric, "softmax"), {}
    train, test = (xgb.DMatrix(a, label=b) for a, b in ((X, y), (V, v)))
    train.set_group(sizes)
    test.set_group(v_sizes)
    stopping = {
        "early_stopping_rounds": 5,
        "maximize": xgb_objective.metric.maximize,
        "verbose_eval": False,
    }
    model = xgb.train(
        {**EXTREME, "disable_default_eval_metric": 1, "eta": 0.3}, train, 60, evals=[(test, "held")],
        obj=xgb_objective, custom_metric=xgb_objective.metric, evals_result=xgb_history, **stopping,
    )  # fmt: skip
    values = xgb_history["held"][metric]
    assert model.best_iteration == best(values) == len(values) - 6


def test_the_guarantee_is_warned_of_when_labels_are_seen():
    _, y, sizes, _ = drawn()
    objective = cc.objectives.lightgbm("ap")
    with pytest.warns(GuaranteeWarning, match="P_reinforce"):
        objective(y, np.zeros(len(y)), None, sizes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        objective(y, np.ones(len(y)), None, sizes)
        cc.objectives.lightgbm("ap", assume="P_reinforce")(y, np.zeros(len(y)), None, sizes)


def test_what_the_libraries_refuse_themselves():
    """So that the documentation can say so."""
    with pytest.raises(ValueError, match="custom objective function not supported"):
        xgb.XGBRanker(objective=cc.objectives.xgboost("ndcg"))


def test_mistakes_are_named():
    X, y, sizes, _ = drawn()
    objective, scores = cc.objectives.lightgbm("ndcg"), np.zeros(len(y))
    with pytest.raises(LabelError, match="has no groups"):
        objective(scores, lgb.Dataset(X, label=y).construct())
    with pytest.raises(LabelError, match="has no groups"):
        cc.objectives.xgboost("ndcg")(scores, xgb.DMatrix(X, label=y))
    with pytest.raises(ParameterError, match="XGBRanker does not accept"):
        cc.objectives.xgboost("ndcg")(y, scores)
    with pytest.raises(LengthMismatchError, match="labels has"):
        objective(y[1:], scores, None, sizes)
    with pytest.raises(LengthMismatchError, match="weight has"):
        objective(y, scores, np.ones(3), sizes)
    with pytest.raises(ParameterError, match="weight is zero for every row"):
        objective(y, scores, np.zeros(len(y)), sizes)
    with pytest.raises(NonFiniteError, match="weight is -1"):
        objective(y, scores, -np.ones(len(y)), sizes)
    with pytest.raises(GradeError, match="is negative"):
        objective(y - 5, scores, None, sizes)
    with pytest.raises(GradeError, match="too large for the single precision"):
        cc.objectives.lightgbm("dcg")(y * 100, scores, None, sizes)
    with pytest.raises(UnknownNameError, match="unknown metric"):
        cc.objectives.lightgbm("nddcg")
    with pytest.raises(ParameterError, match="curvature"):
        cc.objectives.lightgbm("ndcg", "pairwise", "exact")
    with pytest.raises(ParameterError, match="got 'none'"):
        cc.objectives.xgboost("ndcg", curvature="none")
    with pytest.raises(ParameterError, match="surrogate"):
        cc.objectives.lightgbm("ndcg", Pairwise("hinge"))
    with pytest.raises(LabelError, match="plackett_luce reads Permutations"):
        cc.objectives.lightgbm("zero_one", "plackett_luce")(y, scores, None, sizes)
