"""BoostedRanker: three libraries, one contract; what they are told, when they stop, and what they refuse."""

import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import concordant as cc
from concordant import BoostedRanker, GuaranteeWarning, Permutations, Preferences, Queries
from concordant.exceptions import (
    GradeError,
    LabelError,
    LengthMismatchError,
    LibraryError,
    MissingExtraError,
    ParameterError,
    UnknownNameError,
)
from concordant.rankers.boosters import BOOSTERS
from concordant.surrogates import Pairwise, Softmax, Squared

lgb = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
pytest.importorskip("xgboost", reason="XGBoost is not installed")
pytest.importorskip("catboost", reason="CatBoost is not installed")

SMALL = {"n_estimators": 12, "learning_rate": 0.2, "max_leaf_nodes": 5, "min_samples_leaf": 5, "n_jobs": 1}


def boosted(*arguments, **more):
    return BoostedRanker("ndcg@5", *arguments, **{**SMALL, **more})


each = pytest.mark.parametrize("booster", BOOSTERS)


def drawn(n_queries=40, seed=0, n_items=9):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, n_items, n_queries)
    qid = np.repeat(np.arange(n_queries) * 3 + 5, sizes)
    X = rng.normal(size=(len(qid), 4))
    y = np.digitize(X @ [2.0, 1.0, 0.0, 0.5] + 0.7 * rng.normal(size=len(X)), [0.0, 1.5, 3.0])
    return X, y, qid


X, y, qid = drawn()
HELD = drawn(30, seed=5)


# ---------------------------------------------------------------- scikit-learn


def test_parameters_are_kept_as_they_are():
    model = BoostedRanker("ap", Pairwise("logistic"), "xgboost", l2=3.0, params={"max_bin": 16})
    assert clone(model).get_params() == model.get_params()
    assert repr(BoostedRanker()) == "BoostedRanker()"


@each
def test_pickled_and_back(booster):
    model = boosted(booster=booster, early_stopping=3).fit(X, y, qid=qid, eval_set=HELD)
    back = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert back.predict(X).tolist() == model.predict(X).tolist()
    assert back.history_.tolist() == model.history_.tolist()
    assert clone(back).fit(X, y, qid=qid, eval_set=HELD).predict(X).tolist() == model.predict(X).tolist()


def test_a_grid_search_of_whole_queries():
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), boosted())
        grid = {"boostedranker__max_leaf_nodes": [2, 6]}
        search = GridSearchCV(pipe, grid, cv=GroupKFold(2)).fit(X, y, qid=qid, groups=qid)
        assert search.best_score_ > 0.5
        assert pipe.fit(X, y, qid=qid).score(X, y, qid=qid) == search.best_estimator_.set_params(
            **dict.fromkeys(grid, 5)
        ).fit(X, y, qid=qid).score(X, y, qid=qid)


# ---------------------------------------------------------------- learning


@each
@pytest.mark.parametrize("surrogate", ["auto", "softmax", "squared"])
def test_every_booster_learns(booster, surrogate):
    model = boosted(surrogate, booster).fit(X, y, qid=qid)
    assert model.score(*HELD[:2], qid=HELD[2]) > 0.85
    assert model.n_estimators_ == model.best_iteration_ == 12
    assert model.stopped_by_ == "limit"
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert np.argmax(model.feature_importances_) == 0
    fell = model.certificate_.optimality
    assert fell.value < fell.first
    assert (fell.unit, fell.n_iter) == ("trees", 12)
    loss = model.surrogate_.bind(targets(model), Queries.from_ids(qid).offsets)
    assert fell.value == pytest.approx(loss.value_and_grad(model.predict(X))[0].mean(), rel=1e-5)
    assert model.basis_ == "every distribution"
    assert model.certificate_.status == "proven"
    assert "12 trees" in str(model.certificate_)
    with pytest.raises(cc.exceptions.NoRiskBoundError, match="what trees express"):
        model.risk_bound(X, y, qid=qid)
    assert model.rank(X[:4]).tolist() == (np.argsort(np.argsort(-model.predict(X[:4]))) + 1).tolist()


def targets(model):
    """What a fitted model was told: standardized labels, lifted."""
    standardized = cc.standardize(model.metric, y, qid=qid)
    lift = 1.0 if model.surrogate_ == Softmax() else 0.0
    return standardized + lift * np.array([standardized[qid == q].max() for q in qid])


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
@pytest.mark.parametrize("surrogate", ["squared", "softmax"])
@pytest.mark.parametrize("weighted", [(), ("query_weight",), ("sample_weight", "query_weight")])
def test_catboosts_losses_are_ours(surrogate, weighted):
    """On standardized labels, at its own scores, under every weighting."""
    rng = np.random.default_rng(3)
    weights = {"sample_weight": rng.uniform(0.2, 3.0, len(y)), "query_weight": 1.0 + qid % 4}
    weights = {name: weights[name] for name in weighted}
    model = boosted(surrogate, "catboost", lift=0.0).fit(X, y, qid=qid, **weights)
    (losses,) = model.booster_.get_evals_result()["learn"].values()
    per_row = weights.get("query_weight", np.ones(len(y)))
    per_row = per_row / per_row[np.unique(qid, return_index=True)[1]].mean()
    row_weights = weights.get("sample_weight", np.ones(len(y)))
    per_row = per_row * row_weights / row_weights.mean()
    ours = model.certificate_.optimality.value * model.n_queries_
    if surrogate == "squared":
        assert losses[-1] ** 2 * per_row.sum() == pytest.approx(ours, rel=1e-6)
    else:
        assert losses[-1] * (per_row * cc.standardize("ndcg@5", y, qid=qid)).sum() == pytest.approx(
            ours, rel=1e-6
        )


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("surrogate", ["pairwise", "preorder", "duchi", Pairwise("logistic")])
def test_other_losses_where_the_library_takes_gradients(booster, surrogate):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        assert boosted(surrogate, booster).fit(X, y, qid=qid).score(X, y, qid=qid) > 0.85


@pytest.mark.parametrize(
    ("metric", "kind"), [("pd", "preferences"), ("zero_one", "permutations"), ("auc", "grades")]
)
@each
def test_labels_of_other_kinds(metric, kind, booster):
    rng = np.random.default_rng(0)
    items = rng.normal(size=(120, 3))
    groups = np.repeat(np.arange(20), 6)
    labels = {
        "grades": (items[:, 0] > 0.3).astype(int),
        "permutations": Permutations(
            np.concatenate([np.argsort(np.argsort(-items[groups == q, 0])) + 1 for q in range(20)])
        ),
        "preferences": Preferences(
            *np.array([(i, j) if items[i, 0] > items[j, 0] else (j, i) for q in range(20)
                       for i in range(6 * q, 6 * q + 6) for j in range(6 * q, i)]).T, 120),
    }[kind]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        model = BoostedRanker(metric, booster=booster, **SMALL).fit(items, labels, qid=groups)
    assert abs(np.corrcoef(model.predict(items), items[:, 0])[0, 1]) > 0.7
    assert model.score(items, labels, qid=groups) > {"pd": -4.0, "zero_one": -1.0, "auc": 0.95}[metric]


# ---------------------------------------------------------------- a round never raises the loss


def rises(seed, surrogate, share=1.0):
    """How much the training loss rose in the worst round, relative to its first value, at rate 1."""
    rng = np.random.default_rng(seed)
    features, labels, groups = drawn(int(rng.integers(2, 12)), seed, n_items=int(rng.integers(3, 12)))
    sizes = Queries.from_ids(groups).sizes
    objective = cc.objectives.lightgbm("ndcg", surrogate, "majorising")
    values = []

    def scale_curvature(scores, data):
        grad, curvature = objective(scores, data)
        values.append(objective.datasets.entries[0][1].value_and_grad(scores)[0].sum())
        return grad, share * curvature

    data = lgb.Dataset(features.round(int(rng.integers(0, 3))), label=labels, group=sizes)
    free = {"learning_rate": 1.0, "lambda_l2": 0.0, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0.0}
    free |= {"min_data_in_bin": 1, "num_leaves": int(rng.integers(2, 9)), "verbosity": -1, "num_threads": 1}
    lgb.train({**free, "objective": scale_curvature, "seed": seed}, data, 8)
    return max(np.diff(values), default=0.0) / max(values[0], 1e-12)


LOSSES = [
    Softmax(),
    Squared(),
    Squared(centred=False),
    Pairwise(),
    Pairwise("squared_hinge"),
    Pairwise("logistic"),
]


@pytest.mark.parametrize("surrogate", LOSSES, ids=str)
def test_majorising_curvature_never_raises_the_loss(surrogate):
    assert max(rises(seed, surrogate) for seed in range(12)) <= 1e-5  # gradients are float32


@pytest.mark.parametrize("surrogate", LOSSES, ids=str)
def test_the_check_sees_a_curvature_that_is_too_small(surrogate):
    assert max(rises(seed, surrogate, share=0.1) for seed in range(12)) > 1e-3


def one_round(rate, signs, booster):
    """How far one tree takes the loss, on targets that no function with the constraint can follow."""
    items = np.array(list(itertools.product([0, 1, 2], [0, 1], [0, 1])), dtype=float)
    grades = np.log2(1.0 + 5.0 * np.random.default_rng(265).exponential(size=len(items)) ** 2)
    free = {"l2": 0.0, "min_samples_leaf": 1, "max_leaf_nodes": 12, "n_estimators": 1, "n_jobs": 1}
    free |= {"curvature": "majorising", "learning_rate": rate, "monotonic_cst": signs}
    model = BoostedRanker("dcg", "squared", booster, **free)
    fell = model.fit(np.tile(items, (10, 1)), np.tile(grades, 10), qid=np.repeat(np.arange(10), len(items)))
    return fell.certificate_.optimality


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_constraints_halve_the_rate_that_is_safe(booster):
    free, bound = one_round(1.0, None, booster), one_round(0.5, [1, 0, 0], booster)
    assert free.value <= free.first * (1.0 + 1e-6)
    assert bound.value < bound.first
    with pytest.warns(ConvergenceWarning, match="training loss rose.* Lower learning_rate or raise l2.$"):
        clipped = one_round(1.0, [1, 0, 0], booster)
    assert clipped.value > 1.2 * clipped.first


@pytest.mark.parametrize("booster", ["lightgbm", "catboost"])
def test_a_loss_that_rose_is_warned_of(booster):
    wild = {"learning_rate": 3.0, "l2": 0.0, "n_estimators": 4, "min_samples_leaf": 1}
    model = boosted("squared", booster, **wild)
    advice = "majorising" if booster == "lightgbm" else r"raise l2\.$"
    with pytest.warns(ConvergenceWarning, match=f"training loss rose from .*{advice}"):
        model.fit(X, y, qid=qid)


# ---------------------------------------------------------------- held-out queries


@each
@pytest.mark.parametrize("metric", ["ndcg@3", "err@3"])
def test_early_stopping_keeps_the_best_round(booster, metric):
    model = BoostedRanker(metric, "squared", booster, early_stopping=4, **{**SMALL, "n_estimators": 60})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        model.fit(X, y, qid=qid, eval_set=HELD)
    best = int(np.argmax(model.history_)) + 1
    assert model.best_iteration_ == model.n_estimators_ == best
    assert (model.stopped_by_, len(model.history_)) == ("early_stopping", best + 4)
    assert model.score(*HELD[:2], qid=HELD[2]) == pytest.approx(model.history_.max(), abs=1e-6)
    again = clone(model).set_params(n_estimators=best, early_stopping=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        again.fit(X, y, qid=qid)
    assert again.predict(X).tolist() == pytest.approx(model.predict(X).tolist(), abs=1e-9)
    losses = (ranker.certificate_.optimality.value for ranker in (model, again))
    assert next(losses) == pytest.approx(next(losses), rel=1e-6)
    # Every entry is the score of that many trees.
    short = clone(model).set_params(n_estimators=3, early_stopping=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        short.fit(X, y, qid=qid)
    assert short.score(*HELD[:2], qid=HELD[2]) == pytest.approx(model.history_[2], abs=1e-6)
    assert short.history_.tolist() == pytest.approx([np.nan] * 3, nan_ok=True)


@each
def test_losses_are_negated(booster):
    model = BoostedRanker("pd", "squared", booster, early_stopping=3, **SMALL)
    with pytest.warns(GuaranteeWarning):
        model.fit(X, y, qid=qid, eval_set=HELD)
    assert (model.history_ < 0.0).all()
    assert model.n_estimators_ == np.argmax(model.history_) + 1


def test_queries_held_out_of_the_training_ones():
    model = boosted(early_stopping=3, validation_fraction=0.25).fit(X, y, qid=qid)
    assert model.n_queries_ == 30
    ids = Queries.from_ids(qid)
    train, validation = ids.split(0.75, 0.25, seed=0)
    rows, apart = (np.isin(np.arange(len(qid)), part) for part in (train, validation))
    refit = boosted(early_stopping=3).fit(
        X[rows], y[rows], qid=qid[rows], eval_set=(X[apart], y[apart], qid[apart])
    )
    assert refit.history_.tolist() == model.history_.tolist()
    assert refit.predict(X).tolist() == model.predict(X).tolist()
    assert boosted(early_stopping=3, random_state=1).fit(X, y, qid=qid).history_[0] != model.history_[0]
    for nothing in (None, [1] * len(y)):
        with pytest.raises(ParameterError, match="eval_set"):
            boosted(early_stopping=3).fit(X, y, qid=nothing)


@each
def test_held_out_rows_in_any_form(booster):
    data = cc.RankingData(*HELD)
    order = np.random.default_rng(0).permutation(len(HELD[1]))
    shuffled = tuple(column[order] for column in HELD)
    expected = boosted(booster=booster).fit(X, y, qid=qid, eval_set=HELD).history_
    for eval_set in (data, list(HELD), shuffled, (HELD[0], HELD[1], Queries.from_ids(HELD[2]))):
        history = boosted(booster=booster).fit(X, y, qid=qid, eval_set=eval_set).history_
        assert history.tolist() == pytest.approx(expected.tolist(), abs=1e-12)
    alone = boosted(booster=booster).fit(X, y, qid=qid, eval_set=HELD[:2]).history_  # one query
    assert alone.tolist() != expected.tolist()


@each
def test_as_many_held_out_rows_as_training_rows(booster):
    model = boosted(booster=booster).fit(X, y, qid=qid, eval_set=(X, y, qid))
    assert model.history_[-1] == pytest.approx(model.score(X, y, qid=qid), abs=1e-6)


def test_eval_set_mistakes():
    for wrong in (HELD[0], 3, (X,), [HELD, HELD], [cc.RankingData(*HELD)] * 2):
        with pytest.raises(ParameterError, match="eval_set"):
            boosted().fit(X, y, qid=qid, eval_set=wrong)
    with pytest.raises(LabelError, match="undefined on every query of eval_set"):
        boosted().fit(X, y, qid=qid, eval_set=(HELD[0], np.zeros(len(HELD[1])), HELD[2]))
    with pytest.raises(ValueError, match="features"):
        boosted().fit(X, y, qid=qid, eval_set=(HELD[0][:, :2], HELD[1], HELD[2]))
    with pytest.raises(LengthMismatchError):
        boosted().fit(X, y, qid=qid, eval_set=(HELD[0], HELD[1][1:], HELD[2]))


# ---------------------------------------------------------------- features


@each
def test_monotone_constraints_hold(booster):
    model = boosted(booster=booster, monotonic_cst=[-1, 0, 0, 1]).fit(X, y, qid=qid)
    names = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    named = boosted(booster=booster, monotonic_cst={"d": 1, "a": -1}).fit(names, y, qid=qid)
    assert named.predict(names).tolist() == model.predict(X).tolist()
    grid = np.linspace(-3.0, 3.0, 50)
    for feature, sign in ((0, -1.0), (3, 1.0)):
        rows = np.repeat(X[:20], 50, axis=0)
        rows[:, feature] = np.tile(grid, 20)
        steps = np.diff(model.predict(rows).reshape(20, 50), axis=1) * sign
        assert steps.min() >= -1e-12
    free = boosted(booster=booster).fit(X, y, qid=qid)  # the check can fail
    rows[:, 0] = np.tile(grid, 20)
    assert np.diff(free.predict(rows).reshape(20, 50), axis=1).max() > 0.1


def colours(as_text=True):
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 6, len(y))
    good = np.isin(codes, [1, 4])
    labels = np.digitize(2.0 * good + 0.3 * rng.normal(size=len(y)), [0.5, 1.8])
    names = np.array(["red", "green", "blue", "pink", "gold", "grey"])[codes]
    return (names if as_text else codes), labels


@each
@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow", "codes", "objects"])
def test_categories_by_type_by_name_and_by_number(booster, frame):
    kind, labels = colours(as_text=frame != "codes")
    other = {"categorical_features": ["kind"]}
    if frame == "pandas":
        table = pd.DataFrame({"size": X[:, 2], "kind": pd.Categorical(kind)})
        plain = table.assign(kind=kind)
    elif frame == "polars":
        plain = pl.DataFrame({"size": X[:, 2], "kind": kind})
        table = plain.with_columns(pl.col("kind").cast(pl.Categorical))
    elif frame == "pyarrow":
        plain = pa.table({"size": X[:, 2], "kind": kind})
        table = plain.set_column(1, "kind", plain["kind"].dictionary_encode())
    else:
        other, dtype = {"categorical_features": [1]}, object if frame == "objects" else float
        table = plain = np.column_stack([X[:, 2].astype(dtype), kind])
    options = other if frame in ("codes", "objects") else {}
    few = {"min_data_per_group": 5, "cat_smooth": 1.0, "cat_l2": 0.0} if booster == "lightgbm" else {}
    other, options = other | {"params": few}, options | {"params": few}
    model = boosted(booster=booster, **options).fit(table, labels, qid=qid)
    assert model.score(table, labels, qid=qid) > 0.9
    assert model.categories_ == {1: sorted(set(kind.tolist()))}
    named = boosted(booster=booster, **other).fit(plain, labels, qid=qid)
    assert named.predict(plain).tolist() == model.predict(table).tolist()
    assert pickle.loads(pickle.dumps(model)).predict(table).tolist() == model.predict(table).tolist()  # noqa: S301


@each
def test_unknown_and_missing_categories_are_missing(booster):
    kind, labels = colours()
    table = pd.DataFrame(
        {"size": X[:, 2], "kind": pd.Categorical(np.where(np.arange(len(y)) % 7, kind, None))}
    )
    model = boosted(booster=booster).fit(table, labels, qid=qid)
    asked = pd.DataFrame({"size": [0.1, 0.1, 0.1], "kind": pd.Categorical(["violet", None, "red"])})
    unknown, missing, _ = model.predict(asked)
    assert unknown == missing
    with pytest.warns(UserWarning, match="fit saw no value of feature 1, so all count as missing: 'violet'"):
        model.predict(asked[:2])
    model.predict(asked[1:2])  # missing, not unknown
    with pytest.raises(ParameterError, match="0 for categorical"):
        boosted(booster=booster, monotonic_cst=[0, 1]).fit(table, labels, qid=qid)


@each
def test_missing_values_are_learned_from(booster):
    """NaN where an item is good: only where it goes can tell."""
    rng = np.random.default_rng(4)
    items = rng.normal(size=(len(y), 2))
    items[y > 1, 0] = np.nan
    model = boosted(booster=booster).fit(items, y, qid=qid)
    assert model.score(items, y, qid=qid) > 0.95
    with pytest.raises(ValueError, match="contains inf"):
        boosted(booster=booster).fit(np.where(np.isnan(items), np.inf, items), y, qid=qid)
    with pytest.raises(ValueError, match="contains inf"):
        model.predict(np.full((1, 2), np.inf))


@each
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sparse_features_are_dense_ones(booster, kind):
    holes = np.where(np.abs(X) < 0.5, 0.0, X).astype(kind)
    dense = boosted(booster=booster).fit(holes, y, qid=qid).predict(holes)
    rows = sparse.csr_matrix(holes)
    for given_rows in (rows, rows.tocsc()):
        model = boosted(booster=booster).fit(given_rows, y, qid=qid)
        assert model.predict(given_rows).tolist() == dense.tolist() == model.predict(holes).tolist()


@each
def test_names_that_libraries_refuse(booster):
    table = pd.DataFrame(X, columns=["a b", "x<1", "ü", "[0]"])
    assert boosted(booster=booster).fit(table, y, qid=qid).predict(table).tolist() == pytest.approx(
        boosted(booster=booster).fit(X, y, qid=qid).predict(X).tolist()
    )
    model = boosted(booster=booster).fit(table.set_axis(list("abcd"), axis=1), y, qid=qid)
    names = model.booster_.feature_name() if booster == "lightgbm" else getattr(
        model.booster_, {"xgboost": "feature_names", "catboost": "feature_names_"}[booster]
    )  # fmt: skip
    assert list(names) == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table)


def test_mistakes_about_features():
    table = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(UnknownNameError, match="unknown feature 'e'"):
        boosted(categorical_features=["e"]).fit(table, y, qid=qid)
    with pytest.raises(UnknownNameError, match="unknown feature 'e'"):
        boosted(monotonic_cst={"e": 1}).fit(table, y, qid=qid)
    with pytest.raises(ParameterError, match="categorical_features"):
        boosted(categorical_features=[9]).fit(X, y, qid=qid)
    with pytest.raises(ParameterError, match="from_dtype"):
        boosted(categorical_features="by_dtype").fit(X, y, qid=qid)
    with pytest.raises(ParameterError, match="None for sparse"):
        boosted(categorical_features=[0]).fit(sparse.csr_matrix(X), y, qid=qid)
    with pytest.raises(ParameterError, match="Column 'a' is text"):
        boosted().fit(table.astype({"a": str}), y, qid=qid)
    for wrong in ([1, 0], [2, 0, 0, 0], 1, "up", {1: 1}):
        with pytest.raises(ParameterError, match="monotonic_cst"):
            boosted(monotonic_cst=wrong).fit(X, y, qid=qid)
    for wrong in (5, [True, False], [1.5]):
        with pytest.raises(ParameterError, match="categorical_features"):
            boosted(categorical_features=wrong).fit(X, y, qid=qid)
    odd = table.assign(e=[(1,) if row % 2 else 3 for row in range(len(y))])
    with pytest.raises(LabelError, match="cannot be compared"):
        boosted(categorical_features=["e"]).fit(odd, y, qid=qid)
    codes = np.column_stack([qid % 3, X])
    model = boosted(categorical_features=[0]).fit(codes, y, qid=qid)
    with pytest.raises(ParameterError, match="X must be dense"):
        model.predict(sparse.csr_matrix(codes))


def test_names_and_numbers_of_categories_together():
    table = pd.DataFrame(X, columns=list("abcd")).assign(kind=pd.Categorical(colours()[0]), code=qid % 3)
    mask = [False] * 4 + [True] * 2
    for given_as in (["kind", 5], [5, "kind"], mask, np.array(mask)):
        assert [*boosted(categorical_features=given_as).fit(table, y, qid=qid).categories_] == [4, 5]


# ---------------------------------------------------------------- queries and weights


@each
def test_the_order_of_queries_does_not_matter(booster):
    places = np.argsort(np.random.default_rng(1).permutation(qid.max() + 1)[qid], kind="stable")
    ordered = boosted(booster=booster).fit(X, y, qid=qid)
    other = boosted(booster=booster).fit(X[places], y[places], qid=qid[places])
    assert ordered.predict(X).tolist() == other.predict(X).tolist()
    shuffled = np.random.default_rng(2).permutation(len(y))
    third = boosted(booster=booster).fit(X[shuffled], y[shuffled], qid=qid[shuffled])
    assert third.score(X, y, qid=qid) == pytest.approx(ordered.score(X, y, qid=qid), abs=0.03)


@each
def test_a_query_of_weight_two_stands_there_twice(booster):
    twice = qid % 2 == 0
    exact = {"l2": 0.0, "min_samples_leaf": 1, "max_leaf_nodes": 3, "n_estimators": 4}
    items = np.sign(X) * (np.abs(X) > 1.0)  # so few values that both have the same bins
    exact |= {"params": {"random_strength": 0.0}} if booster == "catboost" else {}
    model = boosted(booster=booster).set_params(**exact)
    weighted = clone(model).fit(items, y, qid=qid, query_weight=1.0 + twice)
    rows, labels = np.vstack([items, items[twice]]), np.r_[y, y[twice]]
    other = clone(model).fit(rows, labels, qid=np.r_[qid, 1000 + qid[twice]])
    np.testing.assert_allclose(weighted.predict(items), other.predict(items), rtol=1e-4, atol=1e-5)
    unit = clone(model).fit(items, y, qid=qid, query_weight=40.0 * (1.0 + twice))
    np.testing.assert_allclose(weighted.predict(items), unit.predict(items), rtol=1e-4, atol=1e-6)
    assert weighted.n_queries_ == 40


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
@each
def test_rows_and_queries_of_weight_zero(booster):
    off = qid > 80
    given_weight = clone(boosted(booster=booster)).fit(X, y, qid=qid, query_weight=(~off).astype(float))
    assert given_weight.n_informative_ < boosted(booster=booster).fit(X, y, qid=qid).n_informative_
    assert given_weight.score(X, y, qid=qid) > 0.8
    weighted = boosted(booster=booster).fit(X, y, qid=qid, sample_weight=np.where(y == 1, 0.0, 1.0))
    assert weighted.certificate_.sample.weighted == "items"
    with pytest.raises(ParameterError, match="query_weight"):
        boosted(booster=booster).fit(X, y, qid=qid, query_weight=np.zeros(len(y)))


def clicks(least, most, n_queries=1500, n_items=6):
    """Clicks on items of falling visibility and some relevance, inverse propensities, and the right order."""
    rng, relevance = np.random.default_rng(0), np.linspace(least, most, n_items)
    places, visibility = np.argsort(relevance), np.linspace(1.0, 0.1, n_items)
    clicked = (rng.random((n_queries, n_items)) < relevance * visibility).astype(float).ravel()
    items, weights = np.tile(np.eye(n_items), (n_queries, 1)), np.tile(1.0 / visibility, n_queries)
    return items, clicked, np.repeat(np.arange(n_queries), n_items), weights, places


@each
@pytest.mark.parametrize("lift", ["auto", 0.0])
def test_inverse_propensities_are_weighed_before_the_lift(booster, lift):
    items, clicked, groups, weights, places = clicks(0.9, 0.1)  # a lift of a weight's size would reverse it
    options = {"lift": lift, "learning_rate": 0.3, "max_leaf_nodes": 6, "n_estimators": 40}
    model = BoostedRanker("p@3", "softmax", booster, **{**SMALL, **options})
    model.fit(items, clicked, qid=groups, sample_weight=weights)
    assert np.argsort(model.predict(np.eye(6))).tolist() == places.tolist()
    assert model.certificate_.status == "proven"


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
def test_inverse_propensities_by_loss():
    """Softmax and pairwise multiply the label; squares are weighed, and forget their weights."""
    items, clicked, groups, weights, places = clicks(0.3, 0.8)
    orders = {}
    for loss in ("softmax", "pairwise", "squared"):
        for lift in (0.0, 0.5):
            model = BoostedRanker(
                "p@3", loss, lift=lift, **{**SMALL, "learning_rate": 0.5, "n_estimators": 40}
            )
            model.fit(items, clicked, qid=groups, sample_weight=weights)
            orders[loss, lift] = np.argsort(model.predict(np.eye(6))).tolist()
    assert orders["softmax", 0.0] == orders["softmax", 0.5] == places.tolist()
    assert orders["pairwise", 0.0] == orders["pairwise", 0.5] == places.tolist()
    assert orders["squared", 0.0] == orders["squared", 0.5] != places.tolist()
    assert "Inverse propensities correct nothing." in model.certificate_.theorem.statement


@each
def test_the_unit_of_labels_and_weights_does_not_matter(booster):
    flat = cc.metric("dcg", convention="gain=linear")
    model = BoostedRanker(flat, "squared", booster, **SMALL)
    plain = clone(model).fit(X, y, qid=qid).predict(X)
    for unit in (2.0**-20, 2.0**20):
        scores = clone(model).fit(X, y * unit, qid=qid).predict(X) / unit
        np.testing.assert_allclose(scores, plain, rtol=1e-3, atol=1e-4)
    row_weights = 1.0 + qid % 3
    plain = clone(model).fit(X, y, qid=qid, sample_weight=row_weights).predict(X)
    for unit in (1e-45, 1e39, 1e200):
        scores = clone(model).fit(X, y, qid=qid, sample_weight=unit * row_weights).predict(X)
        np.testing.assert_allclose(scores, plain, rtol=1e-3, atol=1e-4)


@each
@pytest.mark.parametrize("grade", [60, 140, 900])
def test_targets_beyond_single_precision_are_refused(booster, grade):
    large = np.where(y == 3, grade, y)
    row = int(np.argmax(y == 3))
    for stopping in (None, 3):
        with pytest.raises(GradeError, match=rf"row {row} \(query {qid[row]}\).* too large for the single"):
            BoostedRanker("dcg", booster=booster, early_stopping=stopping, **SMALL).fit(X, large, qid=qid)
    assert np.isfinite(boosted(booster=booster).fit(X, large, qid=qid).predict(X)).all()  # at most 1, of ndcg


@each
def test_features_as_far_apart_as_can_be_raise_no_warning(booster):
    """XGBoost refuses what single precision cannot hold; no library's spread of them overflows aloud."""
    far = X.copy()
    far[:2, 0] = 1.7e308, -1.7e308
    try:
        assert np.isfinite(boosted(booster=booster).fit(far, y, qid=qid).predict(far)).all()
    except LibraryError:
        assert booster == "xgboost"


def test_smoothing_of_categories_is_in_rows():
    """Softmax scores do not depend on the unit of targets; so neither may what LightGBM adds to leaves."""
    kind, labels = colours(as_text=False)
    flat = cc.metric("dcg", convention="gain=linear")
    few = {"min_data_per_group": 5}
    model = BoostedRanker(flat, "softmax", categorical_features=[0], params=few, **SMALL)
    scores, other = (
        clone(model).fit(kind[:, None], labels * unit, qid=qid).predict(kind[:, None])
        for unit in (1.0, 2.0**-12)
    )
    assert np.ptp(scores) > 0.1
    assert scores.tolist() == pytest.approx(other.tolist(), abs=1e-9)


def test_queries_that_count_are_held_out():
    some = np.isin(qid, np.unique(qid)[:4]).astype(float)
    model = boosted(early_stopping=3, validation_fraction=0.5).fit(X, y, qid=qid, query_weight=some)
    assert np.isfinite(model.history_).all()
    only = (qid == qid[0]).astype(float)
    with pytest.raises(ParameterError, match="of 1 queries leaves none"):
        boosted(early_stopping=3).fit(X, y, qid=qid, query_weight=only)


# ---------------------------------------------------------------- rounds


@each
def test_a_warm_start_is_one_long_fit(booster):
    whole = boosted(booster=booster).fit(X, y, qid=qid, eval_set=HELD)
    model = boosted(booster=booster, warm_start=True).set_params(n_estimators=5)
    model.fit(X, y, qid=qid, eval_set=HELD)
    first = model.predict(X)
    model.set_params(n_estimators=12).fit(X, y, qid=qid, eval_set=HELD)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-6)
    np.testing.assert_allclose(model.history_, whole.history_, atol=1e-6)
    assert model.n_estimators_ == 12
    assert first.tolist() != model.predict(X).tolist()
    again = model.fit(X, y, qid=qid)
    assert (again.n_estimators_, len(again.history_)) == (12, 12)
    with pytest.raises(ParameterError, match="at least 12"):
        model.set_params(n_estimators=11).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="features"):
        model.set_params(n_estimators=20).fit(X[:, :2], y, qid=qid)
    other = "xgboost" if booster == "lightgbm" else "lightgbm"
    with pytest.raises(ParameterError, match="warm_start"):
        model.set_params(booster=other).fit(X, y, qid=qid)


@each
def test_a_warm_start_takes_no_tree_back(booster):
    model = boosted(booster=booster, warm_start=True).fit(X, y, qid=qid, eval_set=HELD)
    model.set_params(n_estimators=200, learning_rate=3.0, early_stopping=2)  # far too long steps
    model.fit(X, y, qid=qid, eval_set=HELD)
    assert model.n_estimators_ == model.best_iteration_ >= 12
    assert model.n_estimators_ <= len(model.history_)


@each
def test_a_warm_start_is_scored_on_the_rows_held_out_now(booster):
    model = boosted(booster=booster, warm_start=True, early_stopping=3).fit(
        X, y, qid=qid, eval_set=(X, y, qid)
    )
    first, before = model.n_estimators_, model.score(*HELD[:2], qid=HELD[2])
    hard = 3 - HELD[1]  # of which the trees so far know nothing
    asked = model.score(HELD[0], hard, qid=HELD[2])
    model.set_params(n_estimators=40).fit(X, y, qid=qid, eval_set=(HELD[0], hard, HELD[2]))
    assert model.history_[first - 1] == pytest.approx(asked) != pytest.approx(before)
    assert model.best_iteration_ == first + np.argmax(model.history_[first - 1 :])
    assert model.n_estimators_ == model.best_iteration_


def test_a_failed_fit_changes_nothing():
    codes = np.column_stack([qid % 3, X])
    model = boosted(categorical_features=[0]).fit(codes, y + (codes[:, 0] == 1), qid=qid)
    before, state = model.predict(codes), dict(vars(model))
    for wrong in (codes + 5.0, codes[:, :3]):
        with pytest.raises(GradeError):
            model.fit(wrong, -1.0 - y, qid=qid)
    assert vars(model) == state
    assert model.predict(codes).tolist() == before.tolist()


@each
def test_the_loss_at_the_end_is_that_of_the_trees_kept(booster):
    """Also where rounds found no split, and were no trees."""
    rare = {"subsample": 0.3, "min_samples_leaf": 20, "early_stopping": 30, "n_estimators": 60, "lift": 0.0}
    model = boosted("softmax", booster, **rare).fit(X, y, qid=qid, eval_set=HELD)
    loss = Softmax().bind(cc.standardize("ndcg@5", y, qid=qid), Queries.from_ids(qid).offsets)
    right = loss.value_and_grad(model.predict(X))[0].mean()
    assert model.certificate_.optimality.value == pytest.approx(right, rel=1e-5)


def test_rounds_without_a_split_end_it_unless_rows_are_drawn():
    n_trees = []
    few = {"min_samples_leaf": len(y) // 2 + 1, "callback": lambda step: n_trees.append(step.n_trees)}
    with pytest.warns(UserWarning, match="No split"):
        boosted(params={"max_bin": 15}, **few).fit(X, y, qid=qid)
    once = len(n_trees)
    with pytest.warns(UserWarning, match="No split"):
        boosted(params={"bagging_fraction": 0.9, "bagging_freq": 1}, **few).fit(X, y, qid=qid)
    assert once < len(n_trees) - once


@each
def test_what_a_callback_raises_comes_through(booster):
    def fail(step):
        if step.n_trees == 2:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        boosted(booster=booster, callback=fail).fit(X, y, qid=qid, eval_set=HELD)


@each
def test_a_callback_sees_steps_and_can_end_it(booster):
    steps = []
    model = boosted(booster=booster, callback=lambda step: steps.append(step) or step.n_trees == 4)
    model.fit(X, y, qid=qid, eval_set=HELD)
    assert (model.n_estimators_, model.stopped_by_) == (4, "callback")
    assert [step.n_trees for step in steps] == [1, 2, 3, 4]
    assert [step.score for step in steps] == model.history_.tolist()
    assert steps[-1].best_iteration == np.argmax(model.history_) + 1
    quiet = []
    boosted(booster=booster, callback=lambda step: quiet.append(step.score)).fit(X, y, qid=qid)
    assert quiet == [None] * 12


@each
@pytest.mark.parametrize("way", ["signal", "exception"])
def test_interrupts_keep_the_trees(booster, way):
    def interrupt(step):
        if step.n_trees == 3:
            if way == "exception":
                raise KeyboardInterrupt
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    model = boosted(booster=booster, callback=interrupt)
    with pytest.warns(ConvergenceWarning, match="interrupted after [34] of 12"):
        model.fit(X, y, qid=qid)
    assert model.n_estimators_ in (3, 4)
    assert model.stopped_by_ == "interrupt"
    assert "Ctrl-C" in str(model.certificate_.optimality)
    assert model.score(X, y, qid=qid) > 0.7
    assert signal.getsignal(signal.SIGINT) is before


def test_fits_in_other_threads():
    scores = []
    thread = threading.Thread(target=lambda: scores.append(boosted().fit(X, y, qid=qid).predict(X)))
    thread.start()
    thread.join()
    assert scores[0].tolist() == boosted().fit(X, y, qid=qid).predict(X).tolist()


@each
def test_equal_seeds_give_equal_models(booster):
    drawing = {"subsample": 0.6, "colsample": 0.6}
    scores, same, other = (
        boosted(booster=booster, random_state=seed, **drawing).fit(X, y, qid=qid).predict(X)
        for seed in (3, 3, 4)
    )
    assert scores.tolist() == same.tolist() != other.tolist()
    assert (
        boosted(booster=booster, random_state=None, **drawing).fit(X, y, qid=qid).predict(X).shape
        == scores.shape
    )


FORKING = """
import os, pickle, sys
import numpy as np
import concordant as cc
data = cc.synthetic.grades(n_queries=50, n_items=20, seed=0)
models = [
    cc.BoostedRanker("ndcg", booster=booster, n_estimators=3, n_jobs=n_jobs).fit(data.X, data.y, qid=data.qid)
    for booster in sys.argv[1:]
    for n_jobs in (None, 2)
]
expected = [model.predict(data.X) for model in models]
packed = pickle.dumps(models)
if child := os.fork():
    sys.exit(os.waitpid(child, 0)[1])
for model, copy, scores in zip(models, pickle.loads(packed), expected):
    assert np.array_equal(model.predict(data.X), scores)
    assert np.array_equal(copy.predict(data.X), scores)
    model.fit(data.X, data.y, qid=data.qid)
"""


FORKING_OFTEN = """
import os, sys
import numpy as np
import concordant as cc
data = cc.synthetic.grades(n_queries=50, n_items=20, seed=0)
model = cc.BoostedRanker("ndcg", booster=sys.argv[1], n_estimators=3, n_jobs=2)
model.fit(data.X, data.y, qid=data.qid)
expected = model.predict(data.X)
for _ in range(40):
    children = []
    for _ in range(4):  # at each fork, threads are about to sleep, and may hold locks
        model.predict(data.X)
        children.append(os.fork())
        if not children[-1]:
            os._exit(not np.array_equal(model.predict(data.X), expected))
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="needs fork")
@pytest.mark.parametrize("program", [FORKING, pytest.param(FORKING_OFTEN, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "booster", ["lightgbm", *(pytest.param(name, marks=pytest.mark.slow) for name in ("xgboost", "catboost"))]
)
def test_a_fork_after_a_fit_by_threads_predicts_and_fits(booster, program):
    command = [sys.executable, "-c", program, booster]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            errors = process.communicate(timeout=100)[1]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the fork, too
            pytest.fail("the forked process hangs")
    assert process.returncode == 0, errors


def test_all_threads():
    assert (
        boosted(n_jobs=None).fit(X, y, qid=qid).trees_.n_jobs
        is boosted(n_jobs=-1).fit(X, y, qid=qid).trees_.n_jobs
    )


def test_threads_change_nothing_of_lightgbm():
    rng = np.random.default_rng(0)
    items, groups = rng.normal(size=(5000, 3)), np.repeat(np.arange(500), 10)
    labels = (items[:, 0] + rng.normal(size=5000) > 1.0).astype(int)
    scores, two = (
        BoostedRanker("ndcg", **{**SMALL, "n_jobs": n}).fit(items, labels, qid=groups).predict(items)
        for n in (1, 2)
    )
    assert scores.tolist() == two.tolist()


@each
def test_progress_is_shown(booster, capfd):
    boosted(booster=booster, verbose=1).fit(X, y, qid=qid, eval_set=HELD)
    shown = capfd.readouterr()
    assert "12 trees" in shown.err
    assert shown.out == ""
    boosted(booster=booster).fit(X, y, qid=qid, eval_set=HELD)
    assert capfd.readouterr() == ("", "")


# ---------------------------------------------------------------- nasty input


@each
def test_nothing_to_learn(booster):
    with pytest.warns(UserWarning, match="no query has labels that differ"):
        tied = boosted(booster=booster).fit(X, np.ones(len(y)), qid=qid)
    assert np.ptp(tied.predict(X)) < 1e-7
    assert tied.n_informative_ == 0
    with pytest.warns(UserWarning, match="no query has labels that differ"):
        alone = boosted(booster=booster).fit(X, y, qid=np.arange(len(y)))
    assert np.ptp(alone.predict(X)) < 1e-7
    for items in (np.ones_like(X), np.full_like(X, np.nan), sparse.csr_matrix(X.shape)):
        with pytest.warns(UserWarning, match="No split was found"):
            flat = boosted(booster=booster).fit(items, y, qid=qid)
        assert np.ptp(flat.predict(items)) == np.ptp(flat.predict(X)) == 0.0
        assert flat.stopped_by_ == "no_split"
        with pytest.warns(UserWarning, match="No split was found"):
            model = boosted(booster=booster, early_stopping=2).fit(items, y, qid=qid, eval_set=HELD)
        assert (model.n_estimators_, len(model.history_)) == (1, 1)
        assert flat.feature_importances_.tolist() == [0.0] * 4


@each
def test_empty_and_single_item_queries(booster):
    queries = Queries.from_sizes([0, 5, 0, 1, 30, 0])
    data = {"qid": queries, "eval_set": (X[:36], y[:36], queries)}
    model = boosted(booster=booster).fit(X[:36], y[:36], **data)
    assert model.n_queries_ >= 3
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.history_).all()


@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 25),
    n_queries=st.integers(1, 6),
    booster=st.sampled_from(["lightgbm", "xgboost"]),
    surrogate=st.sampled_from(["softmax", "squared", "pairwise"]),
    scale=st.sampled_from([1e-8, 1.0, 1e8]),
)
@settings(max_examples=25, deadline=None)
def test_any_small_data_gives_finite_scores(seed, n_rows, n_queries, booster, surrogate, scale):
    rng = np.random.default_rng(seed)
    items = rng.normal(size=(n_rows, 2)).round(1) * scale
    items[rng.random(items.shape) < 0.2] = np.nan
    labels, groups = rng.integers(0, 5, n_rows), rng.integers(0, n_queries, n_rows)
    model = BoostedRanker("dcg", surrogate, booster, **{**SMALL, "min_samples_leaf": 1, "l2": 0.0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(items, labels, qid=groups)
    assert np.isfinite(model.predict(items)).all()
    fell = model.certificate_.optimality
    assert np.isfinite([fell.first, fell.value]).all()


# ---------------------------------------------------------------- refused


@each
def test_params_of_the_library_win(booster):
    few = {
        "lightgbm": {"max_leaves": 2},
        "xgboost": {"eta": 0.01},
        "catboost": {"max_depth": 1, "reg_lambda": 50.0},
    }[booster]
    plain, other = (
        boosted(booster=booster, params=options).fit(X, y, qid=qid).predict(X) for options in (None, few)
    )
    assert np.std(other) < np.std(plain)
    name = {"lightgbm": "application", "xgboost": "objective", "catboost": "objective"}[booster]
    with pytest.raises(ParameterError, match="surrogate names the loss"):
        boosted(booster=booster, params={name: "x"}).fit(X, y, qid=qid)
    trees = {"lightgbm": "num_trees", "xgboost": "n_estimators", "catboost": "num_trees"}[booster]
    with pytest.raises(ParameterError, match="n_estimators is a parameter"):
        boosted(booster=booster, params={trees: 5}).fit(X, y, qid=qid)


@pytest.mark.parametrize("params", [{"tree_method": "approx"}, {"tree_method": "exact"}, {"max_bin": 8}])
def test_other_ways_of_xgboost(params):
    assert boosted(booster="xgboost", params=params).fit(X, y, qid=qid, eval_set=HELD).history_[-1] > 0.85


@pytest.mark.parametrize(
    "params", [{"verbose": False}, {"silent": True}, {"subsample": 0.7}, {"bootstrap_type": "Bayesian"}]
)
def test_other_ways_of_catboost(params):
    for share in (1.0, 0.8):
        model = boosted(booster="catboost", params=params, subsample=share).fit(X, y, qid=qid)
        assert model.score(X, y, qid=qid) > 0.85


@pytest.mark.parametrize("params", [{"num_class": 3}, {"process_type": "update"}])
def test_what_xgboost_does_not_take(params):
    with pytest.raises(ParameterError, match="params may not set"):
        boosted(booster="xgboost", params=params).fit(X, y, qid=qid)


def test_unknown_params_are_refused():
    with pytest.raises(UnknownNameError, match="num_leafs"):
        boosted(params={"num_leafs": 5}).fit(X, y, qid=qid)
    with pytest.warns(UserWarning, match="not used"):
        boosted(booster="xgboost", params={"max_leafs": 5}).fit(X, y, qid=qid)
    with pytest.raises(Exception, match="max_leafs"):
        boosted(booster="catboost", params={"max_leafs": 5}).fit(X, y, qid=qid)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_estimators", 0), ("n_estimators", 1.5), ("learning_rate", 0.0), ("max_leaf_nodes", 1),
        ("max_depth", 0), ("min_samples_leaf", 0), ("l2", -1.0), ("l2", np.nan), ("subsample", 1.1),
        ("colsample", 0.0), ("early_stopping", 0), ("early_stopping", True), ("validation_fraction", 1.0),
        ("curvature", "none"), ("n_jobs", 0), ("random_state", -1), ("callback", 3), ("params", 3),
        ("lift", -1.0), ("lift", True), ("lift", np.array([1.0, 2.0])), ("booster", "adaboost"),
        ("booster", None), ("surrogate", "position_hinge"), ("metric", "comparison_error"),
    ],
)  # fmt: skip
def test_parameters_out_of_range(name, value):
    with pytest.raises(
        (ParameterError, UnknownNameError), match=name if name != "curvature" else "curvature"
    ):
        boosted().set_params(**{name: value}).fit(X, y, qid=qid)


def test_what_catboost_has_not():
    for wrong in ("pairwise", Squared(centred=False), "duchi"):
        with pytest.raises(ParameterError, match="'softmax' or 'squared'"):
            boosted(wrong, "catboost").fit(X, y, qid=qid)
    with pytest.raises(ParameterError, match="curvature must be 'auto'"):
        boosted("squared", "catboost", curvature="exact").fit(X, y, qid=qid)


@each
def test_a_missing_library_is_named(booster, monkeypatch):
    monkeypatch.setitem(sys.modules, booster, None)
    with pytest.raises(MissingExtraError, match=f"needs {booster}, which is not installed"):
        boosted(booster=booster).fit(X, y, qid=qid)


def test_mistakes_in_labels_name_the_row_and_the_query():
    wrong = y.astype(float)
    wrong[7] = -1.0
    for stopping in (None, 3):
        with pytest.raises(GradeError, match=rf"row 7 \(query {qid[7]}\)"):
            boosted(early_stopping=stopping).fit(X, wrong, qid=qid)
    with pytest.raises(LengthMismatchError, match="y has"):
        boosted().fit(X, y[1:], qid=qid)
    with pytest.raises(ValueError, match="requires y"):
        boosted().fit(X, None, qid=qid)


def test_guarantees_are_warned_of_once():
    with pytest.warns(GuaranteeWarning) as caught:
        BoostedRanker("ap", **SMALL).fit(X, y, qid=qid)
    assert [warning.filename for warning in caught] == [__file__]
    BoostedRanker("ap", assume="P_reinforce", **SMALL).fit(X, y, qid=qid)


@each
def test_entries_of_sparse_rows_may_be_given_in_pieces(booster):
    """Two entries of one place add up, as everywhere in SciPy."""
    n, m = X.shape
    places = np.tile(np.r_[np.arange(m), np.arange(m)], n)
    pieces = sparse.csr_matrix((np.hstack([X * 0.25, X * 0.75]).ravel(), places, np.arange(n + 1) * 2 * m))
    model = boosted(booster=booster).fit(X, y, qid=qid)
    assert model.predict(pieces).tolist() == model.predict(sparse.csr_matrix(X)).tolist()
    assert pieces.nnz == 2 * n * m  # the caller's own is as it was
    assert boosted(booster=booster).fit(pieces, y, qid=qid).predict(X).tolist() == model.predict(X).tolist()
