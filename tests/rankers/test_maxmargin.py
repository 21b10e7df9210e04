"""MaxMarginRanker: scikit-learn's conventions, the objective by definition, labels and weights, errors."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import concordant as cc
from concordant import (
    GuaranteeWarning,
    LinearRanker,
    LinearRankerCV,
    MaxMarginRanker,
    Permutations,
    Preferences,
    Queries,
)
from concordant.exceptions import (
    ConcordantError,
    GradeError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from concordant.surrogates import ListwiseHinge, Pairwise, PositionHinge, Preorder, Softmax
from tests import oracles

# None of these losses is consistent, and each fit says so: `test_each_fit_says_once_what_is_not_guaranteed`.
pytestmark = pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")
EXACT = {"tol": 1e-11}  # for results that are compared


def drawn(n_queries=12, n_items=6, n_features=4, seed=0):
    """Features of several units, and grades that follow them, with noise; query by query."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries) * 3 + 5, rng.integers(2, n_items + 1, n_queries))
    X = rng.normal(size=(len(qid), n_features))
    level = X @ np.arange(1, n_features + 1) + 2.0 * rng.normal(size=len(qid))
    return X * np.logspace(-1, 1, n_features), np.digitize(level, [-1.0, 2.0, 5.0]), qid


def others(caught):
    """Where warnings point that are not about guarantees."""
    return [warning.filename for warning in caught if warning.category is not GuaranteeWarning]


X, y, qid = drawn()
N_QUERIES = len(set(qid))
KINDS = {
    "listwise": {},
    "ap": {"metric": "ap"},
    "auc": {"metric": "auc"},
    "p@2": {"metric": "p@2"},
    "sum": {"metric": "ap", "mode": "sum"},
    "softmax": {"mode": "softmax", "temperature": 0.5},
    "pairwise": {"loss": "pairwise"},
    "pairwise[sum]": {"loss": "pairwise", "reduction": "sum"},
    "preorder": {"loss": Preorder("pairs", margin="hinge")},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def shuffled(*columns, seed=1):
    order = np.random.default_rng(seed).permutation(len(X))
    return [column[order] for column in columns]


def check_same(model, data, other, rel=1e-4):
    """Two fits give the same weights."""
    first, second = (clone(model).fit(*rows[:2], **rows[2]).coef_ for rows in (data, other))
    scale = np.array(X).std(axis=0)
    np.testing.assert_allclose(first * scale, second * scale, atol=rel * abs(first * scale).max())


# ---------------------------------------------------------------- scikit-learn


def test_parameters_are_kept_as_they_are():
    loss = Preorder("pairs", margin="hinge")
    model = MaxMarginRanker(
        "ap", loss, 0.5, mode="softmax", temperature=2.0, reduction="sum", fit_scale=False
    )
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert model.loss is loss
    assert set(model.get_params()) == {
        "metric",
        "loss",
        "alpha",
        "mode",
        "temperature",
        "reduction",
        "fit_scale",
        "tol",
        "max_iter",
        "warm_start",
        "callback",
        "checkpoint",
        "verbose",
    }
    assert model.set_params(alpha=2.0, mode="max") is model
    assert (model.alpha, model.mode) == (2.0, "max")
    for wrong in ("solver", "surrogate", "assume", "random_state", "alhpa"):  # the parent's are not its own
        with pytest.raises(ValueError, match=f"Invalid parameter '{wrong}'"):
            model.set_params(**{wrong: 1})
    assert repr(MaxMarginRanker()) == "MaxMarginRanker()"
    assert "mode='softmax'" in repr(copy)
    assert "MaxMarginRanker" in copy._repr_html_()


@every_kind
def test_pickled_and_back(kind):
    model = MaxMarginRanker(**KINDS[kind]).fit(X, y, qid=qid)
    back = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert back.predict(X).tolist() == model.predict(X).tolist()
    assert back.surrogate_ == model.surrogate_
    assert (back.solution_.stopped_by, back.solution_.gap) == ("tolerance", model.solution_.gap)
    assert back.fit(X, y, qid=qid).coef_.tolist() == model.coef_.tolist()


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_routing_through_a_pipeline():
    data, labels, ids = shuffled(X, y, qid)
    pipe = make_pipeline(StandardScaler(), MaxMarginRanker("ap")).fit(data, labels, qid=ids)
    scaled = StandardScaler().fit_transform(data)
    alone = MaxMarginRanker("ap").fit(scaled, labels, qid=ids)
    assert pipe[-1].n_queries_ == N_QUERIES
    assert pipe.predict(data).tolist() == alone.predict(scaled).tolist()
    assert pipe.score(data, labels, qid=ids) == alone.score(scaled, labels, qid=ids)
    weighed = pipe.fit(data, labels, qid=ids, query_weight=np.where(ids > 20, 1.0, 0.1))
    assert not np.allclose(weighed[-1].coef_, alone.coef_)


@pytest.mark.usefixtures("routing")
def test_routing_through_a_grid_search():
    """Over parameters of this ranker alone; every fold sees its own queries, in fit and in score."""
    data, labels, ids = shuffled(X, y, qid)
    model = MaxMarginRanker("ap")
    grid = {"loss": ["pairwise", "listwise"], "alpha": [1.0, 0.01]}
    search = GridSearchCV(model, grid, cv=GroupKFold(3)).fit(data, labels, groups=ids, qid=ids)
    for number, params in enumerate(search.cv_results_["params"]):
        for fold, (train, test) in enumerate(GroupKFold(3).split(data, labels, ids)):
            ranker = clone(model).set_params(**params).fit(data[train], labels[train], qid=ids[train])
            score = search.cv_results_[f"split{fold}_test_score"][number]
            assert score == ranker.score(data[test], labels[test], qid=ids[test])
    assert search.best_estimator_.n_queries_ == N_QUERIES


def test_without_routing_qid_reaches_fit():
    pipe = make_pipeline(StandardScaler(), MaxMarginRanker()).fit(X, y, maxmarginranker__qid=qid)
    assert pipe[-1].n_queries_ == N_QUERIES


# ---------------------------------------------------------------- kinds of data

NAMES = ["a", "b", "c", "d"]
FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("loss", ["listwise", "pairwise"])
def test_frames(frame, loss):
    data, series = FRAMES[frame](X), {"pandas": pd.Series, "polars": pl.Series}[frame]
    plain = MaxMarginRanker(loss=loss).fit(X, y, qid=qid)
    model = MaxMarginRanker(loss=loss).fit(data, series(y), qid=series(qid))
    assert model.coef_.tolist() == plain.coef_.tolist()
    assert model.feature_names_in_.tolist() == NAMES
    assert model.predict(data).tolist() == plain.predict(X).tolist()
    assert model.score(data, series(y), qid=series(qid)) == plain.score(X, y, qid=qid)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(data[["b", "a", "c", "d"]])


@pytest.mark.parametrize(
    "make", [sparse.csr_matrix, sparse.csr_array, sparse.csc_array], ids=lambda m: m.__name__
)
@every_kind
def test_sparse_equals_dense(make, kind):
    data = np.column_stack([np.where(X > 0.3, X, 0.0), np.full(len(X), 0.1)])
    model = MaxMarginRanker(**KINDS[kind], tol=1e-9)
    dense, rows = clone(model).fit(data, y, qid=qid), clone(model).fit(make(data), y, qid=qid)
    assert rows.solution_.value == pytest.approx(dense.solution_.value, rel=1e-7)
    np.testing.assert_allclose(rows.predict(make(data)), dense.predict(data), atol=1e-3)
    assert rows.predict(make(data)) == pytest.approx(rows.predict(data), rel=1e-12)


def test_single_precision():
    single = X.astype(np.float32)
    model, double = (
        MaxMarginRanker(**EXACT).fit(data, y, qid=qid) for data in (single, single.astype(float))
    )
    np.testing.assert_allclose(model.predict(single), double.predict(single), atol=1e-4)
    assert model.predict(single).dtype == model.coef_.dtype == np.float64


@every_kind
def test_ids_in_any_order(kind):
    """Rows of a query need not be adjacent, nor ids sorted, nor numbers."""
    model, weights = (
        MaxMarginRanker(**KINDS[kind], **EXACT),
        {"sample_weight": 1.0 + y, "query_weight": qid % 4 + 1.0},
    )
    data, labels, ids, sample, query = shuffled(X, y, qid, *weights.values())
    moved = {"sample_weight": sample, "query_weight": query}
    check_same(model, (X, y, {"qid": qid, **weights}), (data, labels, {"qid": -ids, **moved}))
    plain = clone(model).fit(X, y, qid=qid)
    for same in ([f"query {100 + q}" for q in qid], Queries.from_ids(qid)):
        assert clone(model).fit(X, y, qid=same).coef_.tolist() == plain.coef_.tolist()


def test_the_check_tells_fits_apart():
    with pytest.raises(AssertionError):
        check_same(MaxMarginRanker(**EXACT), (X, y, {"qid": qid}), (X, y, {"qid": np.roll(qid, 1)}))


def test_no_ids_make_one_query():
    model = MaxMarginRanker().fit(X, y)
    assert model.n_queries_ == 1
    assert sorted(model.rank(X).tolist()) == list(range(1, len(X) + 1))


def test_features_and_labels_are_left_alone():
    data, labels, ids = X.copy(), y.copy(), qid.copy()
    for array in (data, labels, ids):
        array.flags.writeable = False
    for params in KINDS.values():
        MaxMarginRanker(**params).fit(data, labels, qid=ids)
    assert (data == X).all()


# ---------------------------------------------------------------- what is minimised


def spreads(query_weight=None):
    """Root mean square distance of each feature from its query's mean."""
    counts = np.ones(len(qid)) if query_weight is None else query_weight
    off = X - np.array([X[qid == q].mean(axis=0) for q in qid])
    return np.sqrt(counts @ off**2 / counts.sum())


ORACLES = {
    "listwise": lambda s, t, w: oracles.listwise_hinge(s, t, w, oracles.ListMetric("ndcg")),
    "ap": lambda s, t, w: oracles.listwise_hinge(s, t, w, oracles.ListMetric("ap")),
    "auc": lambda s, t, w: oracles.listwise_hinge(s, t, w, oracles.ListMetric("auc")),
    "p@2": lambda s, t, w: oracles.listwise_hinge(s, t, w, oracles.ListMetric("p", k=2)),
    "sum": lambda s, t, w: oracles.listwise_hinge(s, t, w, oracles.ListMetric("ap"), "sum"),
    "softmax": lambda s, t, w: oracles.listwise_hinge(s, t, w, oracles.ListMetric("ndcg"), "softmax", 0.5),
    "pairwise": lambda s, t, w: oracles.position_hinge(s, t, w, "pairs"),
    "pairwise[sum]": oracles.position_hinge,
    "preorder": lambda s, t, w: oracles.preorder_loss(s, t, w, "pairs", "hinge"),
}


def defined(kind, model, scale, coef=None, sample_weight=None, query_weight=None):
    """Mean over queries of the loss by its definition, plus alpha/2 |coef * scale|^2."""
    coef = model.coef_ if coef is None else coef
    rows = np.ones(len(qid)) if sample_weight is None else sample_weight
    counts = np.ones(len(qid)) if query_weight is None else query_weight
    scores, value, total = X @ coef, 0.0, 0.0
    for q in np.unique(qid):
        in_query = qid == q
        value += counts[in_query][0] * ORACLES[kind](scores[in_query], y[in_query], rows[in_query]).value
        total += counts[in_query][0]
    return float(value / total + model.alpha / 2 * np.sum((coef * scale) ** 2))


WEIGHTS = {
    "plain": {},
    "rows": {"sample_weight": 0.5 + y},
    "queries": {"query_weight": qid % 4 + 0.0},
    "both": {"sample_weight": 1.0 * (np.arange(len(y)) % 3), "query_weight": qid % 3 + 1.0},
}


def check_objective(kind, fit_scale, weights):
    """What was minimised is the definition; nothing near, and not 0, is better."""
    model = MaxMarginRanker(**KINDS[kind], fit_scale=fit_scale, alpha=0.03, tol=1e-9)
    model.fit(X, y, qid=qid, **WEIGHTS[weights])
    scale = spreads(WEIGHTS[weights].get("query_weight")) if fit_scale else np.ones(4)
    np.testing.assert_allclose(model.scale_, scale, rtol=1e-9)
    best = defined(kind, model, scale, **WEIGHTS[weights])
    assert model.solution_.value == pytest.approx(best, rel=1e-9)
    assert 0 <= model.solution_.gap <= 1e-9 * defined(kind, model, scale, 0 * model.coef_, **WEIGHTS[weights])
    rng = np.random.default_rng(5)
    for size in (1e-4, 0.03, 1.0):
        for step in size * rng.normal(size=(3, 4)) / scale:
            there = defined(kind, model, scale, model.coef_ + step, **WEIGHTS[weights])
            assert there >= best - model.solution_.gap - 1e-9 * abs(best)
    return model


@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("fit_scale", [True, False])
@pytest.mark.parametrize("weights", ["plain", "both"])
def test_the_objective_is_its_definition(kind, fit_scale, weights):
    model = check_objective(kind, fit_scale, weights)
    assert model.coef_.any()


@pytest.mark.parametrize("weights", ["rows", "queries"])
@pytest.mark.parametrize("kind", ["ap", "pairwise"])
def test_the_objective_of_some_weights(kind, weights):
    check_objective(kind, fit_scale=True, weights=weights)


def test_the_check_rejects_another_objective(monkeypatch):
    right = ORACLES["listwise"]
    for name, wrong in {
        "ap": ORACLES["auc"],
        "pairwise": ORACLES["pairwise[sum]"],
        "listwise": lambda s, t, w: right(s, t, 1.001 * w),
    }.items():
        monkeypatch.setitem(ORACLES, name, wrong)
        with pytest.raises(AssertionError):
            check_objective(name, fit_scale=True, weights="plain")


def test_the_penalty_bounds_the_weights():
    """Without fit_scale, before data are seen: alpha/2 |coef|^2 is at most the loss at weights 0."""
    for alpha in (1e-3, 0.1, 10.0):
        model = MaxMarginRanker("ap", alpha=alpha, fit_scale=False).fit(X, y, qid=qid)
        assert np.linalg.norm(model.coef_) <= np.sqrt(2.0 / alpha)


@every_kind
def test_units_do_not_matter_with_scale(kind):
    units = np.array([1e-3, 1.0, 20.0, 1e6])
    model = MaxMarginRanker(**KINDS[kind], **EXACT)
    plain, other = (clone(model).fit(data, y, qid=qid) for data in (X, X * units))
    assert other.solution_.value == pytest.approx(plain.solution_.value, rel=1e-9)
    np.testing.assert_allclose(other.predict(X * units), plain.predict(X), atol=1e-3)


# ---------------------------------------------------------------- weights


@every_kind
@pytest.mark.parametrize("fit_scale", [True, False])
def test_a_query_weight_repeats_a_query(kind, fit_scale):
    """Weight 2 is the query twice, under another id; weight 0 is no query."""
    counts = np.random.default_rng(3).integers(0, 4, qid.max() + 1)[qid]
    rows = np.repeat(np.arange(len(qid)), counts)
    copy = np.concatenate([np.arange(n) for n in counts])
    check_same(
        MaxMarginRanker(**KINDS[kind], fit_scale=fit_scale, **EXACT),
        (X, y, {"qid": qid, "query_weight": 0.3 * counts}),
        (X[rows], y[rows], {"qid": qid[rows] + 1000 * copy}),
        rel=1e-3,
    )


@pytest.mark.parametrize("kind", ["listwise", "ap", "auc", "sum", "softmax"])
def test_a_list_counts_by_the_mean_weight_of_its_rows(kind):
    """Query weights are shares, row weights are not: the penalty makes up for it."""
    weights = np.random.default_rng(4).choice([0.0, 0.5, 1.0, 3.0], len(qid))
    means = np.array([weights[qid == q].mean() for q in qid])
    total = np.mean([means[qid == q][0] for q in np.unique(qid)])
    options = {**KINDS[kind], "fit_scale": False, **EXACT}
    by_rows = MaxMarginRanker(**options).fit(X, y, qid=qid, sample_weight=weights)
    by_queries = MaxMarginRanker(**options, alpha=0.1 / total).fit(X, y, qid=qid, query_weight=means)
    np.testing.assert_allclose(by_rows.coef_, by_queries.coef_, atol=1e-4 * abs(by_rows.coef_).max())
    assert by_rows.solution_.value == pytest.approx(by_queries.solution_.value * total)


def test_a_pair_counts_by_the_weight_of_its_better_item():
    """Weight 0 on all but the best item of each query: only its pairs are left."""
    top = np.array([y[row] == y[qid == qid[row]].max() for row in range(len(y))])
    model = MaxMarginRanker(loss="pairwise", reduction="sum", **EXACT)
    weighed = clone(model).fit(X, y, qid=qid, sample_weight=1.0 * top)
    assert weighed.solution_.value == pytest.approx(
        defined("pairwise[sum]", weighed, weighed.scale_, sample_weight=1.0 * top)
    )
    assert not np.allclose(weighed.coef_, model.fit(X, y, qid=qid).coef_, rtol=0.01)


def test_equal_weights_change_nothing():
    ones = np.ones(len(y))
    for params in KINDS.values():
        weights = {"sample_weight": ones, "query_weight": 1e300 * ones}
        check_same(MaxMarginRanker(**params, **EXACT), (X, y, {"qid": qid}), (X, y, {"qid": qid, **weights}))


# ---------------------------------------------------------------- labels and losses


def test_which_loss_is_minimised():
    surrogates_by_kind = {
        "listwise": ListwiseHinge(cc.metric("ndcg")),
        "ap": ListwiseHinge(cc.metric("ap")),
        "sum": ListwiseHinge(cc.metric("ap"), "sum"),
        "softmax": ListwiseHinge(cc.metric("ndcg"), "softmax", 0.5),
        "pairwise": PositionHinge("pairs"),
        "pairwise[sum]": PositionHinge("sum"),
        "preorder": Preorder("pairs", margin="hinge"),
    }
    for kind, surrogate in surrogates_by_kind.items():
        model = MaxMarginRanker(**KINDS[kind]).fit(X, y, qid=qid)
        assert (model.surrogate_, model.basis_) == (surrogate, "nothing")
        assert model.solution_.converged
    objects = MaxMarginRanker(cc.metric("ap")).fit(X, cc.Grades(y), qid=qid)
    assert objects.coef_.tolist() == MaxMarginRanker("ap").fit(X, y, qid=qid).coef_.tolist()


@pytest.mark.parametrize("metric", ["ndcg", "ndcg@3", "dcg", "ap", "p@2", "eru", "auc", "wpd"])
def test_every_metric_with_a_worst_order(metric):
    model = MaxMarginRanker(metric, alpha=0.01).fit(X, y, qid=qid)
    assert model.solution_.converged
    still = pickle.loads(pickle.dumps(model))  # noqa: S301
    still.coef_ = np.zeros(4)
    assert model.score(X, y, qid=qid) > still.score(X, y, qid=qid)
    assert (model.n_queries_, model.n_features_in_) == (N_QUERIES, 4)


def test_the_pairwise_loss_reads_no_metric():
    first, second = (MaxMarginRanker(metric, "pairwise").fit(X, y, qid=qid) for metric in ("err", "ndcg@1"))
    assert first.coef_.tolist() == second.coef_.tolist()
    assert first.score(X, y, qid=qid) == cc.metric("err")(y, first.predict(X), qid=qid)


def test_orders_are_grades_from_the_bottom():
    places = cc.decoders.positions(y, qid=qid)
    sizes = np.array([np.sum(qid == q) for q in qid])
    model = MaxMarginRanker("zero_one", "pairwise").fit(X, Permutations(places), qid=qid)
    graded = MaxMarginRanker("ndcg", "pairwise").fit(X, sizes + 1 - places, qid=qid)
    assert model.coef_.tolist() == graded.coef_.tolist()
    assert -1 <= model.score(X, Permutations(places), qid=qid) < 0
    data, moved, ids = shuffled(X, places, qid)
    again = MaxMarginRanker("zero_one", "pairwise").fit(data, Permutations(moved), qid=ids)
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=0.05)


def test_only_levels_count_for_the_pairwise_loss():
    model = MaxMarginRanker(loss="pairwise")
    plain = clone(model).fit(X, y, qid=qid)
    assert clone(model).fit(X, 10.0 * y**2 + 0.5, qid=qid).coef_.tolist() == plain.coef_.tolist()


def test_a_surrogate_that_reads_targets():
    """The parent trains it, by the same solver if wanted."""
    with pytest.raises(ParameterError, match="LinearRanker"):
        MaxMarginRanker(loss=Softmax()).fit(X, y, qid=qid)
    model = LinearRanker("ndcg", Softmax(), solver="bundle", tol=1e-9).fit(X, y, qid=qid)
    parent = LinearRanker("ndcg", Softmax(), tol=1e-13).fit(X, y, qid=qid)
    assert model.solution_.value == pytest.approx(parent.solution_.value, rel=1e-8)
    np.testing.assert_allclose(model.predict(X), parent.predict(X), atol=1e-3)


@pytest.mark.parametrize("loss", ["listwise", "pairwise"])
def test_parameters_of_the_other_loss_are_checked_too(loss):
    with pytest.raises(ParameterError, match="mode"):
        MaxMarginRanker(loss=loss, mode="best").fit(X, y, qid=qid)
    with pytest.raises(ParameterError, match="reduction"):
        MaxMarginRanker(loss=loss, reduction="mean").fit(X, y, qid=qid)


@pytest.mark.filterwarnings("ignore::concordant.exceptions.LabelWarning")
def test_labels_count_as_the_metric_reads_them():
    with pytest.warns(UserWarning, match="no query has labels that differ"):
        model = MaxMarginRanker("ap").fit(X, np.asarray(y) + 1.0, qid=qid)
    assert model.n_informative_ == 0


def test_stopped_early_at_weights_zero_is_not_called_optimal():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        MaxMarginRanker(max_iter=1).fit(X, y, qid=qid)
    assert not any("All weights are 0" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("fit_scale", [True, False])
def test_the_same_as_a_linear_ranker(fit_scale):
    common = {"fit_scale": fit_scale, "tol": 1e-4, "alpha": 0.3}
    ranker = MaxMarginRanker(loss="pairwise", reduction="sum", **common).fit(X, y, qid=qid)
    other = LinearRanker("ndcg", "position_hinge", solver="bundle", **common).fit(X, y, qid=qid)
    assert ranker.coef_.tolist() == other.coef_.tolist()
    assert ranker.solution_.gap == other.solution_.gap
    assert other.basis_ == "nothing"
    listed = LinearRanker("ap", cc.listwise_hinge("ap"), solver="bundle", **common).fit(X, y, qid=qid)
    assert listed.coef_.tolist() == MaxMarginRanker("ap", **common).fit(X, y, qid=qid).coef_.tolist()


@pytest.mark.parametrize("surrogate", [PositionHinge("pairs"), Pairwise("hinge")], ids=str)
def test_a_linear_ranker_cv_with_a_bundle(surrogate):
    alphas = [1.0, 0.1, 0.01]
    model = LinearRankerCV("ndcg", surrogate, alphas, cv=3, solver="bundle").fit(X, y, qid=qid)
    assert model.scores_.shape == (3, 3)
    assert np.isfinite(model.scores_).all()
    assert model.solution_.converged
    whole = LinearRanker("ndcg", surrogate, alpha=model.alpha_, solver="bundle").fit(X, y, qid=qid)
    assert model.solution_.value == pytest.approx(whole.solution_.value, rel=1e-5)
    for fold, (train, test) in enumerate(Queries.from_ids(qid).folds(3)):
        ranker = LinearRanker("ndcg", surrogate, alpha=1.0, solver="bundle").fit(
            X[train], y[train], qid=qid[train]
        )
        assert model.scores_[0, fold] == ranker.score(X[test], y[test], qid=qid[test])


# ---------------------------------------------------------------- what a fitted ranker does


def test_rank_score_and_explanations():
    data, labels, ids = shuffled(X, y, qid)
    model = MaxMarginRanker("ap").fit(data, labels, qid=ids)
    places, scores = model.rank(data, qid=ids), model.predict(data)
    np.testing.assert_allclose(scores, data @ model.coef_, rtol=1e-12)
    for q in np.unique(ids):
        in_query = ids == q
        assert sorted(places[in_query].tolist()) == list(range(1, in_query.sum() + 1))
        assert (np.diff(scores[in_query][np.argsort(places[in_query])]) <= 0).all()
    metric = cc.metric("ap")
    assert model.score(data, labels, qid=ids) == metric(labels, scores, qid=ids)
    weights = np.arange(N_QUERIES) + 1.0
    by_row = weights[(ids - 5) // 3]
    assert model.score(data, labels, qid=ids, query_weight=by_row) == metric(
        labels, scores, qid=ids, weights=weights
    )
    explanation = model.explain_pair(data[3], data[8])
    assert explanation.difference == pytest.approx(scores[3] - scores[8])
    shares = model.coef_ * (data[3] - data[8])
    assert sorted(explanation.contributions.tolist()) == pytest.approx(sorted(shares.tolist()))
    assert explanation.features == [f"column {j} (LETOR {j + 1})" for j in np.argsort(-abs(shares))]


def test_nothing_works_before_fit():
    for call in (
        lambda m: m.predict(X),
        lambda m: m.rank(X),
        lambda m: m.score(X, y),
        lambda m: m.explain_pair(X[0], X[1]),
    ):
        with pytest.raises(NotFittedError):
            call(MaxMarginRanker())


# ---------------------------------------------------------------- errors

NO_WORST = "has no listwise hinge loss"
BAD = {
    "loss": ({"loss": "listwize"}, ParameterError, "got 'listwize'"),
    "loss of another kind": ({"loss": 3}, ParameterError, "'listwise', 'pairwise' or a surrogate"),
    "loss of many": ({"loss": np.zeros(3)}, ParameterError, "'listwise', 'pairwise' or a surrogate"),
    "loss class": ({"loss": PositionHinge}, ParameterError, "'listwise', 'pairwise' or a surrogate"),
    "mode": ({"mode": "min"}, ParameterError, "mode must be 'max', 'softmax', "),
    "temperature": ({"mode": "softmax", "temperature": 0.0}, ParameterError, "temperature must be "),
    "reduction": ({"loss": "pairwise", "reduction": "mean"}, ParameterError, "reduction must be "),
    "alpha 0": ({"alpha": 0}, ParameterError, "alpha must be a finite number > 0, got 0"),
    "alpha < 0": ({"alpha": -1.0}, ParameterError, "alpha must be a finite number > 0"),
    "alpha NaN": ({"alpha": np.nan}, ParameterError, "alpha must be "),
    "alpha infinite": ({"alpha": np.inf}, ParameterError, "alpha must be "),
    "alpha text": ({"alpha": "small"}, ParameterError, "alpha must be "),
    "alpha None": ({"alpha": None}, ParameterError, "alpha must be "),
    "tol": ({"tol": -1e-3}, ParameterError, "tol must be "),
    "max_iter": ({"max_iter": 0}, ParameterError, "max_iter must be "),
    "callback": ({"callback": "print"}, ParameterError, "callback"),
    "metric": ({"metric": "ndgc"}, UnknownNameError, "Did you mean 'ndcg'"),
    "comparisons": ({"metric": "comparison_error"}, ParameterError, "not rankings"),
    "comparisons of pairs": (
        {"metric": "comparison_auc", "loss": "pairwise"},
        ParameterError,
        "not rankings",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_named_before_any_work(name, monkeypatch):
    parameters, error, says = BAD[name]
    monkeypatch.setattr(LinearRanker, "checked_features", None)  # would be the first work
    with pytest.raises(error, match=re.escape(says)):
        MaxMarginRanker(**parameters).fit(X, y, qid=qid)


@pytest.mark.parametrize("metric", ["err", "rr", "ap@5", "zero_one"])
def test_metrics_without_a_worst_order(metric):
    with pytest.raises(ParameterError, match=f"metric '{metric}.* {NO_WORST}"):
        MaxMarginRanker(metric).fit(X, y, qid=qid)


def put(values, row, value):
    changed = np.array(values, dtype=float)
    changed[row] = value
    return changed


ids = np.array([f"query {q}" for q in qid])
votes = Preferences([0], [1], len(y))
ROWS = {
    "negative grade": ({"y": put(y, 6, -1)}, GradeError, f"grade -1 at row 6 (query '{ids[6]}') is negative"),
    "NaN grade": ({"y": put(y, 9, np.nan)}, NonFiniteError, "y is nan at row 9"),
    "short y": ({"y": y[:-1]}, LengthMismatchError, "y has"),
    "long y": ({"y": np.r_[y, 1]}, LengthMismatchError, "y has"),
    "short qid": ({"qid": ids[:-1]}, LengthMismatchError, "qid has"),
    "short sample_weight": ({"sample_weight": np.ones(3)}, LengthMismatchError, "sample_weight has 3"),
    "short query_weight": ({"query_weight": np.ones(3)}, LengthMismatchError, "query_weight has 3"),
    "negative weight": ({"sample_weight": put(y, 2, -1)}, NonFiniteError, "sample_weight is -1.0 at row 2"),
    "no weight": ({"sample_weight": 0 * y}, ParameterError, "sample_weight is zero for every row"),
    "two weights": ({"query_weight": put(qid, 0, 77)}, LabelError, f"of query '{ids[0]}' is both 5 and 77"),
    "no labels": ({"y": None}, ValueError, "requires y to be passed"),
    "NaN feature": ({"X": put(X, (4, 1), np.nan)}, ValueError, "contains NaN"),
    "infinite feature": ({"X": put(X, (4, 1), np.inf)}, ValueError, "contains inf"),
    "no rows": ({"X": X[:0], "y": y[:0], "qid": ids[:0]}, ValueError, "0 sample(s)"),
    "preferences": ({"y": votes}, LabelError, "listwise_hinge reads grades, not Preferences"),
    "preferences of pairs": (
        {"y": votes, "metric": "pd", "loss": "pairwise"},
        LabelError,
        "position_hinge reads grades, not Preferences",
    ),
    "an order of a list": (
        {"y": Permutations(cc.decoders.positions(y, qid=qid))},
        LabelError,
        "listwise_hinge reads grades, not Permutations",
    ),
    "no order": ({"y": Permutations(0 * y + 1), "loss": "pairwise"}, LabelError, "has positions"),
    "pd of many grades": ({"metric": "pd"}, LabelError, "feedback arc set"),
    "many labels mixed": ({"mode": "sum_interleavings"}, LabelError, "needs at most two labels per list"),
}


@pytest.mark.parametrize("name", ROWS)
def test_bad_rows_are_named_before_any_work(name, monkeypatch):
    changes, error, says = ROWS[name]
    parameters = {part: value for part, value in changes.items() if part in ("metric", "loss", "mode")}
    rows = {"X": X, "y": y, "qid": ids} | {part: changes[part] for part in changes if part not in parameters}
    monkeypatch.setattr(LinearRanker, "solve", None)
    with pytest.raises(error, match=re.escape(says)) as caught:
        MaxMarginRanker(**parameters).fit(rows.pop("X"), rows.pop("y"), **rows)
    assert isinstance(caught.value, ConcordantError)


@pytest.mark.parametrize("mode", ["sum", "softmax"])
def test_long_lists_are_not_added_up(mode):
    data, labels, groups = X[:17], np.arange(17) % 2, np.repeat([0, 1], [8, 9])
    with pytest.raises(
        LabelError, match=f"mode='{mode}' sums over all orders of a list, but a list has 9 items"
    ):
        MaxMarginRanker(mode=mode).fit(data, labels, qid=groups)
    with pytest.raises(LabelError, match="interleavings"):
        MaxMarginRanker("ap", mode="sum_interleavings").fit(np.ones((20, 1)), np.arange(20) % 2)
    assert MaxMarginRanker(mode="max").fit(data, labels, qid=groups).solution_.converged


# ---------------------------------------------------------------- warnings, and how fits end


@every_kind
def test_each_fit_says_once_what_is_not_guaranteed(kind):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = MaxMarginRanker(**KINDS[kind]).fit(X, y, qid=qid)
        model.score(X, y, qid=qid)
    assert [(warning.category, warning.filename) for warning in caught] == [(GuaranteeWarning, __file__)]
    assert "Nothing guarantees that training with" in str(caught[0].message)
    assert model.solution_.stopped_by == "tolerance"


@pytest.mark.parametrize("labels", [0 * y, 0 * y + 2, qid % 3], ids=["0", "2", "by query"])
@every_kind
def test_nothing_to_learn_warns(kind, labels):
    with pytest.warns(UserWarning, match="no query has labels that differ") as caught:
        model = MaxMarginRanker(**KINDS[kind]).fit(X, labels, qid=qid)
    assert others(caught) == [__file__]
    assert (model.coef_.tolist(), model.n_informative_) == ([0.0] * 4, 0)
    assert model.solution_.converged


@pytest.mark.parametrize("loss", ["listwise", "pairwise"])
def test_no_weights_though_labels_differ_warns(loss):
    with pytest.warns(UserWarning, match="All weights are 0, which is within") as caught:
        model = MaxMarginRanker(loss=loss).fit(np.ones((len(y), 2)), y, qid=qid)
    assert others(caught) == [__file__]
    assert (model.coef_.tolist(), model.solution_.converged) == ([0.0, 0.0], True)
    assert model.n_informative_ > 0
    # Weights 0 are within the tolerance here, and yet a step is taken: they would rank nothing.
    assert MaxMarginRanker(loss=loss, alpha=1e9).fit(X, y, qid=qid).coef_.all()


@pytest.mark.parametrize("loss", ["listwise", "pairwise"])
def test_too_few_iterations_warn(loss):
    with pytest.warns(
        ConvergenceWarning, match="stopped by max_iter after 4 iterations.*Raise max_iter"
    ) as caught:
        model = MaxMarginRanker(loss=loss, max_iter=4, tol=1e-9).fit(X, y, qid=qid)
    assert others(caught) == [__file__]
    assert (model.n_iter_, model.solution_.converged) == (4, False)
    assert model.coef_.any()
    best = MaxMarginRanker(loss=loss, tol=1e-9).fit(X, y, qid=qid).solution_.value
    assert model.solution_.gap >= model.solution_.value - best


@every_kind
def test_equal_fits_give_equal_bits(kind):
    model = MaxMarginRanker(**KINDS[kind])
    first = model.fit(X, y, qid=qid).coef_.tobytes()
    assert model.fit(X, y, qid=qid).coef_.tobytes() == first
    assert clone(model).fit(X, y, qid=qid).coef_.tobytes() == first


@pytest.mark.parametrize("kind", ["listwise", "pairwise"])
def test_a_warm_start_begins_where_the_last_fit_ended(kind):
    model = MaxMarginRanker(**KINDS[kind], warm_start=True, tol=1e-7).fit(X, y, qid=qid)
    value, begun = model.solution_.value, []
    model.set_params(callback=lambda step: begun.append(step.w)).fit(X, y, qid=qid)
    assert model.solution_.value <= value * (1 + 1e-12)
    np.testing.assert_allclose(begun[0], model.coef_, atol=0.05 * abs(model.coef_).max())
    model.coef_ = 1e4 * np.ones(4)
    assert model.fit(X, y, qid=qid).solution_.value == pytest.approx(value, rel=1e-6)
    with pytest.raises(ShapeError, match="warm_start"):
        model.fit(X[:, :3], y, qid=qid)


def test_a_new_fit_replaces_the_old():
    model = MaxMarginRanker().fit(X, y, qid=qid)
    wide = drawn(n_features=6, seed=5)
    model.set_params(loss="pairwise").fit(*wide[:2], qid=wide[2])
    fresh = MaxMarginRanker(loss="pairwise").fit(*wide[:2], qid=wide[2])
    assert model.coef_.tolist() == fresh.coef_.tolist()
    assert vars(model).keys() == vars(fresh).keys()


@pytest.mark.parametrize("fit_scale", [True, False])
def test_a_callback_sees_weights_as_coef(fit_scale):
    steps = []
    model = MaxMarginRanker(callback=steps.append, fit_scale=fit_scale).fit(X, y, qid=qid)
    assert [step.iteration for step in steps] == list(range(1, model.n_iter_ + 1))
    assert (steps[-1].value, steps[-1].excess) == (model.solution_.value, model.solution_.gap)
    assert steps[-1].w.tolist() == model.coef_.tolist()
    for step in steps:
        value = defined("listwise", model, model.scale_, step.w)
        assert step.value == pytest.approx(value, rel=1e-10)
    short = MaxMarginRanker(callback=lambda step: step.iteration == 5).fit(
        X, y, qid=qid
    )  # asked for: no warning
    assert (short.n_iter_, short.solution_.stopped_by) == (5, "callback")


def test_ctrl_c_keeps_the_best_so_far():
    def interrupt(step):
        if step.iteration == 5:
            raise KeyboardInterrupt

    with pytest.warns(
        ConvergenceWarning, match="stopped by interrupt after 5 iterations.*best weights so far"
    ):
        model = MaxMarginRanker(callback=interrupt, tol=1e-9).fit(X, y, qid=qid)
    assert model.coef_.any()
    assert model.solution_.gap < np.inf


def test_a_bar_goes_to_standard_error_only(capsys):
    MaxMarginRanker().fit(X, y, qid=qid)
    assert capsys.readouterr() == ("", "")
    MaxMarginRanker(verbose=1).fit(X, y, qid=qid)
    out, err = capsys.readouterr()
    assert out == ""
    assert "listwise_hinge, alpha=0.1" in err


# ---------------------------------------------------------------- real data


def test_mq2008(shared_data):
    fold = cc.datasets.load("mq2008", fold=1, folder=shared_data)
    train, test = fold.train, fold.test
    for metric, loss in (("ap", "listwise"), ("ndcg@10", "pairwise")):
        model = MaxMarginRanker(metric, loss).fit(train.X, train.y, qid=train.qid)
        assert model.solution_.converged
        still = pickle.loads(pickle.dumps(model))  # noqa: S301
        still.coef_ = np.zeros_like(model.coef_)
        reached = model.score(test.X, test.y, qid=test.qid)
        assert reached > still.score(test.X, test.y, qid=test.qid) + 0.1
