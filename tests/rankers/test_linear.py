"""LinearRanker: scikit-learn's conventions, what labels and weights mean, invariances, errors, warnings."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import concordant as cc
from concordant import GuaranteeWarning, LinearRanker, LinearRankerCV, Permutations, Preferences, Queries
from concordant.exceptions import (
    ConcordantError,
    FeaturesError,
    GradeError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    NoStandardizationError,
    NotNumericError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from concordant.metrics import METRICS
from concordant.metrics.comparison import ComparisonMetric
from concordant.rankers import linear as linear_module
from concordant.surrogates import SURROGATES, Duchi, Pairwise, PlackettLuce, Preorder, Softmax, Squared

EXACT = {"tol": 1e-13}  # for results that are compared


def drawn(n_queries=12, n_items=7, n_features=4, seed=0):
    """Features and grades that follow them, with noise; query by query."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, n_items + 1, n_queries)
    qid = np.repeat(np.arange(n_queries) * 3 + 5, sizes)
    X = rng.normal(size=(len(qid), n_features))
    level = X @ np.arange(1, n_features + 1) + 2.0 * rng.normal(size=len(qid))
    return X, np.digitize(level, [-1.0, 2.0, 5.0]), qid


X, y, qid = drawn()


# ---------------------------------------------------------------- scikit-learn


def test_parameters_are_kept_as_they_are():
    margin = Pairwise("logistic")
    model = LinearRanker("ap", margin, alpha=0.5, solver="newton", assume="P_reinforce")
    copy = clone(model)
    assert copy.surrogate is not margin
    assert copy.get_params() == model.get_params()
    assert model.surrogate is margin
    assert model.set_params(alpha=2.0) is model
    assert model.alpha == 2.0
    with pytest.raises(ValueError, match="Invalid parameter 'alhpa'"):
        model.set_params(alhpa=1.0)


def test_text_of_an_estimator():
    assert repr(LinearRanker()) == "LinearRanker()"
    text = repr(LinearRanker("ap", Pairwise("logistic"), alpha=1.0))
    assert "metric='ap'" in text
    assert "logistic" in text
    assert "LinearRanker" in LinearRanker()._repr_html_()
    assert repr(LinearRankerCV(alphas=np.array([1.0, 0.1]))) == "LinearRankerCV(alphas=array([1. , 0.1]))"


def test_pickled_and_back():
    model = LinearRanker("ndcg@3", Pairwise("squared_hinge")).fit(X, y, qid=qid)
    back = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert back.predict(X).tolist() == model.predict(X).tolist()
    assert back.surrogate_ == model.surrogate_
    assert back.solution_.stopped_by == "tolerance"


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def shuffled(seed=1):
    order = np.random.default_rng(seed).permutation(len(X))
    return X[order], y[order], qid[order]


class Uncut(GroupKFold):
    """Folds by query; knows what was cut."""

    def split(self, X, y=None, groups=None):
        for train, test in super().split(X, y, groups):
            assert not set(groups[train]) & set(groups[test])
            yield train, test


@pytest.mark.usefixtures("routing")
def test_routing_through_a_pipeline():
    """Requests are set by default; a pipeline's fit and score need no more than qid."""
    X, y, qid = shuffled()
    pipe = make_pipeline(StandardScaler(), LinearRanker(**EXACT)).fit(X, y, qid=qid)
    scaled = StandardScaler().fit_transform(X)
    alone = LinearRanker(**EXACT).fit(scaled, y, qid=qid)
    np.testing.assert_allclose(pipe.predict(X), alone.predict(scaled), rtol=1e-9)
    assert pipe.score(X, y, qid=qid) == alone.score(scaled, y, qid=qid)
    assert alone.score(scaled, y, qid=qid) != alone.score(scaled, y, qid=np.zeros(len(y)))
    weighed = pipe.fit(X, y, qid=qid, query_weight=np.where(qid > 20, 1.0, 0.5))
    assert not np.allclose(weighed[-1].coef_, alone.coef_)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("piped", [False, True])
def test_routing_through_a_grid_search(piped):
    """Every fold sees its own queries, in fit and in score, whole and in any row order."""
    X, y, qid = shuffled()
    ranker = LinearRanker("ndcg@3", **EXACT)
    prefix = "linearranker__" if piped else ""
    model = make_pipeline(StandardScaler(), ranker) if piped else ranker
    grid = {prefix + "alpha": [10.0, 0.01]}
    search = GridSearchCV(model, grid, cv=Uncut(3)).fit(X, y, groups=qid, qid=qid)
    for number, alpha in enumerate(grid[prefix + "alpha"]):
        for fold, (train, test) in enumerate(GroupKFold(3).split(X, y, qid)):
            model_of_fold = (
                clone(model).set_params(**{prefix + "alpha": alpha}).fit(X[train], y[train], qid=qid[train])
            )
            score = search.cv_results_[f"split{fold}_test_score"][number]
            assert score == model_of_fold.score(X[test], y[test], qid=qid[test])
    weights = np.ones(len(y))
    again = GridSearchCV(ranker, {"alpha": [1.0]}, cv=Uncut(3))
    again.fit(X, y, groups=qid, qid=qid, sample_weight=weights, query_weight=weights)
    assert again.score(X, y, qid=qid, query_weight=weights) == again.score(X, y, qid=qid)


@pytest.mark.usefixtures("routing")
def test_routing_through_cross_validation():
    X, y, qid = shuffled()
    params = {"qid": qid, "groups": qid}
    scores = cross_val_score(LinearRanker(), X, y, params=params, cv=Uncut(3))
    results = cross_validate(LinearRanker(), X, y, params=params, cv=Uncut(3), return_estimator=True)
    assert results["test_score"].tolist() == scores.tolist()
    for (_, test), model, score in zip(
        GroupKFold(3).split(X, y, qid), results["estimator"], scores, strict=True
    ):
        assert model.score(X[test], y[test], qid=qid[test]) == score
        assert model.n_queries_ == 8


def test_requests_may_be_changed():
    with sklearn.config_context(enable_metadata_routing=True):
        quiet = LinearRanker().set_fit_request(qid=False)
        assert quiet.get_metadata_routing().fit.requests["qid"] is False
        assert LinearRanker().get_metadata_routing().score.requests["qid"] is True


@pytest.mark.filterwarnings("ignore::concordant.exceptions.QueryWarning")  # `score` gets none
def test_without_routing_qid_reaches_fit():
    X, y, qid = shuffled()
    pipe = make_pipeline(StandardScaler(), LinearRanker()).fit(X, y, linearranker__qid=qid)
    assert pipe[-1].n_queries_ == 12
    assert pipe.score(X, y) == cc.metric("ndcg@10")(y, pipe.predict(X))
    search = GridSearchCV(LinearRanker(), {"alpha": [1.0, 0.1]}, cv=GroupKFold(3)).fit(
        X, y, groups=qid, qid=qid
    )
    assert search.best_estimator_.n_queries_ == 12
    scores = cross_val_score(LinearRanker(), X, y, groups=qid, params={"qid": qid}, cv=GroupKFold(3))
    assert np.isfinite(scores).all()


# ---------------------------------------------------------------- kinds of data

NAMES = ["a", "b", "c", "d"]
FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "nullable": lambda X: pd.DataFrame(X, columns=NAMES).astype("Float64"),
    "arrow-backed": lambda X: pd.DataFrame(X, columns=NAMES).astype("double[pyarrow]"),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "pyarrow": lambda X: pa.table({name: X[:, j] for j, name in enumerate(NAMES)}),
}


def select(frame, names):
    return frame.select(names) if isinstance(frame, pa.Table) else frame[names]


@pytest.mark.parametrize("kind", FRAMES)
def test_frames(kind):
    frame, plain = FRAMES[kind](X), LinearRanker().fit(X, y, qid=qid)
    model = LinearRanker().fit(frame, y, qid=qid)
    assert model.coef_.tolist() == plain.coef_.tolist()
    assert model.feature_names_in_.tolist() == NAMES
    assert model.predict(frame).tolist() == plain.predict(X).tolist()
    for names in (["b", "a", "c", "d"], ["a", "b", "c"]):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(select(frame, names))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    assert not hasattr(model.fit(X, y, qid=qid), "feature_names_in_")


def test_nullable_integers_and_missing_ones():
    whole = pd.DataFrame(np.round(3 * X).astype(int), columns=NAMES)
    plain = LinearRanker().fit(whole.to_numpy(), y, qid=qid)
    assert LinearRanker().fit(whole.astype("Int32"), y, qid=qid).coef_.tolist() == plain.coef_.tolist()
    missing = whole.astype("Int64").mask(whole > 3)
    with pytest.raises(ValueError, match="NaN"):
        LinearRanker().fit(missing, y, qid=qid)


COLUMNS = {
    "list": list,
    "pandas": pd.Series,
    "nullable": lambda values: pd.Series(values).astype("Int64"),
    "polars": pl.Series,
    "pyarrow": pa.array,
    "one column": lambda values: np.array(values)[:, None],
}


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
@pytest.mark.parametrize("kind", COLUMNS)
def test_columns(kind):
    make = COLUMNS[kind]
    plain = LinearRanker().fit(X, y, qid=qid, sample_weight=y + 1, query_weight=qid)
    ids = qid if kind == "one column" else make(qid)
    model = LinearRanker().fit(X, make(y), qid=ids, sample_weight=make(y + 1), query_weight=make(qid))
    assert model.coef_.tolist() == plain.coef_.tolist()
    assert model.score(X, make(y), qid=ids) == plain.score(X, y, qid=qid)


def test_ids_of_any_kind():
    plain = LinearRanker(**EXACT).fit(X, y, qid=qid)
    names = np.array([f"query {100 + q}" for q in qid])
    kinds = [
        names,
        names.astype(object),
        pd.Series(names, dtype="category"),
        pl.Series(names),
        Queries.from_ids(qid),
    ]
    for ids in kinds:
        model = LinearRanker(**EXACT).fit(X, y, qid=ids)
        assert model.coef_.tolist() == plain.coef_.tolist()
        assert model.rank(X, qid=ids).tolist() == plain.rank(X, qid=qid).tolist()
    sizes = Queries.from_ids(qid).sizes
    spaced = Queries.from_sizes(np.r_[0, sizes[:3], 0, sizes[3:], 0])  # empty queries count for nothing
    model = LinearRanker(**EXACT).fit(X, y, qid=spaced)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6)


def test_no_ids_make_one_query():
    model = LinearRanker(**EXACT).fit(X, y)
    assert model.n_queries_ == 1
    assert model.coef_.tolist() == LinearRanker(**EXACT).fit(X, y, qid=np.zeros(len(y))).coef_.tolist()
    assert sorted(model.rank(X).tolist()) == list(range(1, len(X) + 1))


SPARSE = {
    "csr matrix": sparse.csr_matrix,
    "csr array": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
}


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_sparse_equals_dense(kind, order):
    """With a constant feature: its rounded spread must not be taken for one."""
    data, labels, ids = (X, y, qid) if order == "sorted" else shuffled()
    data = np.column_stack([np.where(data > 0.3, data, 0.0), np.full(len(data), 0.1)])
    rows = SPARSE[kind](data)
    for solver in ("lbfgs", "newton"):
        dense = LinearRanker(solver=solver, **EXACT).fit(data, labels, qid=ids)
        model = LinearRanker(solver=solver, **EXACT).fit(rows, labels, qid=ids)
        np.testing.assert_allclose(model.scale_, dense.scale_, rtol=1e-12)
        assert model.scale_[-1] == 1.0
        np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-5, atol=1e-9)
        np.testing.assert_allclose(model.predict(rows), model.predict(data), rtol=1e-12)
        assert model.rank(rows, qid=ids).tolist() == model.rank(data, qid=ids).tolist()


def test_float32_is_not_copied_and_equals_float64(monkeypatch):
    single, features = X.astype(np.float32), []
    real = linear_module.Problem

    def caught(**parts):
        features.append(parts["X"])
        return real(**parts)

    monkeypatch.setattr(linear_module, "Problem", caught)
    model = LinearRanker().fit(single, y, qid=qid)
    assert np.shares_memory(features[0], single)
    double = LinearRanker().fit(single.astype(np.float64), y, qid=qid)
    np.testing.assert_allclose(model.coef_, double.coef_, rtol=1e-5)
    np.testing.assert_allclose(model.predict(single), double.predict(single), rtol=1e-5, atol=1e-6)
    assert model.predict(single).dtype == np.float64


# ---------------------------------------------------------------- what does not matter


def check_same(model, data, other, rel=1e-5):
    """Two fits give the same weights."""
    first, second = (clone(model).fit(*rows[:2], **rows[2]).coef_ for rows in (data, other))
    np.testing.assert_allclose(first, second, rtol=rel, atol=rel * abs(first).max())


EVERY = {
    "softmax": Softmax(),
    "pairwise": Pairwise(),
    "pairwise[logistic,normalize]": Pairwise("logistic", normalize=True),
    "squared": Squared(),
    "squared[plain]": Squared(centred=False),
    "duchi": Duchi(),
    "preorder[gain]": Preorder("gain"),
    "preorder[pairs]": Preorder("pairs", "squared_hinge"),
}
every_surrogate = pytest.mark.parametrize("surrogate", EVERY.values(), ids=EVERY)
baselines_too = pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")


@baselines_too
@every_surrogate
@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_the_order_of_rows_and_queries_does_not_matter(surrogate, solver):
    model = LinearRanker("dcg", surrogate, solver=solver, **EXACT)
    weights = {"sample_weight": 1.0 + y, "query_weight": qid % 4 + 1.0}
    order = np.random.default_rng(2).permutation(len(X))
    moved = {name: column[order] for name, column in weights.items()}
    check_same(model, (X, y, {"qid": qid, **weights}), (X[order], y[order], {"qid": -qid[order], **moved}))


def test_the_check_tells_fits_apart():
    with pytest.raises(AssertionError):
        check_same(LinearRanker(**EXACT), (X, y, {"qid": qid}), (X, y, {"qid": np.roll(qid, 1)}))


@baselines_too
@every_surrogate
@pytest.mark.parametrize("fit_scale", [True, False])
def test_a_query_weight_repeats_a_query(surrogate, fit_scale):
    """Weight 2 is the query twice, under another id; weight 0 is no query."""
    model = LinearRanker("dcg", surrogate, fit_scale=fit_scale, **EXACT)
    counts = np.random.default_rng(3).integers(0, 4, qid.max() + 1)[qid]
    rows = np.repeat(np.arange(len(qid)), counts)
    copy = np.concatenate([np.arange(n) for n in counts])
    check_same(
        model,
        (X, y, {"qid": qid, "query_weight": 0.3 * counts}),
        (X[rows], y[rows], {"qid": qid[rows] + 1000 * copy}),
        rel=1e-4 if surrogate.name == "preorder" else 1e-5,
    )


@pytest.mark.parametrize("surrogate", [Softmax(), Pairwise()], ids=str)
def test_a_sample_weight_weighs_the_target(surrogate):
    """Grade 2 has the gain of grade 1 three times."""
    low = np.minimum(y, 1)
    model = LinearRanker("dcg", surrogate, **EXACT)
    check_same(
        model,
        (X, low, {"qid": qid, "sample_weight": 1.0 + 2.0 * (y == 2)}),
        (X, np.minimum(low + (y == 2), 2), {"qid": qid}),
    )
    check_same(
        model, (X, y, {"qid": qid, "sample_weight": 1.0 * (y < 2)}), (X, np.where(y < 2, y, 0), {"qid": qid})
    )


def test_weights_that_are_all_alike_change_nothing():
    plain = (X, y, {"qid": qid})
    ones = np.ones(len(y))
    check_same(
        LinearRanker(**EXACT),
        plain,
        (X, y, {"qid": qid, "sample_weight": ones, "query_weight": 1e300 * ones}),
    )


@pytest.mark.parametrize("solver", ["lbfgs", "newton", "sgd", "bundle"])
def test_equal_fits_give_equal_bits(solver):
    model = LinearRanker(solver=solver, max_iter=20, tol=1e-2)
    first = model.fit(X, y, qid=qid).coef_.tobytes()
    assert model.fit(X, y, qid=qid).coef_.tobytes() == first
    assert clone(model).fit(X, y, qid=qid).coef_.tobytes() == first


def test_features_and_labels_are_left_alone():
    data, labels, ids = X.copy(), y.copy(), qid.copy()
    LinearRanker().fit(data, labels, qid=ids)
    assert (data == X).all()
    assert (labels == y).all()
    assert (ids == qid).all()


def test_scaled_features_are_penalised_alike():
    """With fit_scale the unit of a feature does not matter; without, it does."""
    units = np.array([1e-3, 1.0, 20.0, 1e6])
    model, other = (LinearRanker(**EXACT).fit(data, y, qid=qid) for data in (X, X * units))
    np.testing.assert_allclose(other.coef_ * units, model.coef_, rtol=1e-6)
    np.testing.assert_allclose(other.scale_, model.scale_ * units)
    plain, other = (
        LinearRanker(fit_scale=False, alpha=1.0, **EXACT).fit(data, y, qid=qid) for data in (X, X * units)
    )
    assert plain.scale_.tolist() == [1.0] * 4
    assert not np.allclose(other.coef_ * units, plain.coef_, rtol=0.1)


@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_the_scale_is_the_spread_within_queries(make):
    """By query weight, and whatever the queries' levels."""
    model = LinearRanker().fit(make(X + 10.0 * qid[:, None]), y, qid=qid, query_weight=qid - 5)
    off = X - np.array([X[qid == q].mean(axis=0) for q in qid])
    np.testing.assert_allclose(model.scale_, np.sqrt((qid - 5) @ off**2 / (qid - 5).sum()), rtol=1e-9)


def test_solvers_agree():
    exact, newton = (
        LinearRanker(solver=solver, **EXACT).fit(X, y, qid=qid) for solver in ("lbfgs", "newton")
    )
    np.testing.assert_allclose(newton.coef_, exact.coef_, rtol=1e-5)
    certified = LinearRanker(solver="bundle", tol=1e-9).fit(X, y, qid=qid)
    np.testing.assert_allclose(certified.coef_, exact.coef_, rtol=1e-2)
    assert certified.solution_.gap >= certified.solution_.value - exact.solution_.value - 1e-12
    with pytest.warns(ConvergenceWarning):
        rough = LinearRanker(solver="sgd", max_iter=30, tol=1e-9).fit(X, y, qid=qid)
    np.testing.assert_allclose(rough.coef_, exact.coef_, rtol=0.2, atol=0.1 * abs(exact.coef_).max())


# ---------------------------------------------------------------- labels, metrics, surrogates


def better_first(labels, ids):
    """Preferences of every row over those of its query with a lower grade."""
    better, worse = np.nonzero((ids[:, None] == ids) & (labels[:, None] > labels))
    return Preferences(better, worse, len(labels))


def orders(labels, ids):
    """Positions by grade, ties by row."""
    return Permutations(cc.decoders.positions(labels, qid=ids))


RANKED = [name for name, kind in METRICS.items() if not issubclass(kind, ComparisonMetric)]


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")
@pytest.mark.parametrize("name", RANKED)
def test_every_metric_of_items_has_a_surrogate_that_works(name):
    labels = orders(y, qid) if name == "zero_one" else y
    model = LinearRanker("p@3" if name == "p" else name).fit(X, labels, qid=qid)
    assert model.solution_.converged
    assert model.score(X, labels, qid=qid) > LinearRanker.score(constant(model), X, labels, qid=qid)


def constant(model):
    """The same ranker with all scores 0."""
    other = pickle.loads(pickle.dumps(model))  # noqa: S301
    other.coef_ = np.zeros_like(model.coef_)
    return other


CORNERED = [name for name, kind in SURROGATES.items() if not kind().smooth]


@baselines_too
@pytest.mark.parametrize(
    ("name", "solver"),
    [
        (name, solver)
        for name in SURROGATES
        for solver in ("lbfgs", "newton", "bundle")
        if solver == "bundle" or name not in CORNERED
    ],
)
def test_every_surrogate_fits(name, solver):
    labels, metric = (orders(y, qid), "zero_one") if name == "plackett_luce" else (y, "ndcg@5")
    model = LinearRanker(metric, name, solver=solver, assume="order_preserving").fit(X, labels, qid=qid)
    assert model.surrogate_ == SURROGATES[name]()
    assert model.solution_.converged
    assert cc.metric("ndcg@5")(y, model.predict(X), qid=qid) > 0.85


@baselines_too
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # its gradient never vanishes
@pytest.mark.parametrize("surrogate", [*CORNERED, Pairwise("hinge"), Preorder(margin="hinge")], ids=str)
@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_a_hinge_fits(surrogate, solver):
    """Smooth solvers come close to what the bundle certifies; newton, which reads curvature, is refused."""
    exact = LinearRanker(surrogate=surrogate, solver="bundle").fit(X, y, qid=qid)
    assert exact.solution_.converged
    model = LinearRanker(surrogate=surrogate, solver=solver, tol=1e-4).fit(X, y, qid=qid)
    lowest = exact.solution_.value - exact.solution_.gap
    assert lowest * (1 - 1e-12) <= model.solution_.value <= 1.1 * exact.solution_.value
    assert model.score(X, y, qid=qid) > 0.85
    with pytest.raises(ParameterError, match=r"solver must be 'bundle', 'lbfgs' or 'sgd'.*got 'newton'"):
        LinearRanker(surrogate=surrogate, solver="newton").fit(X, y, qid=qid)


@baselines_too
def test_corners_may_stop_a_smooth_solver():
    """With a warning that says why; the bundle goes on."""
    with pytest.warns(ConvergenceWarning, match="No step lowers it.*smooth surrogate"):
        model = LinearRanker(surrogate="position_hinge").fit(X, y, qid=qid)
    assert model.solution_.stopped_by == "precision"
    assert not model.solution_.converged


def test_a_bundle_needs_a_penalty():
    with pytest.raises(ParameterError, match=r"alpha must be > 0 for solver='bundle', got 0.0"):
        LinearRanker(alpha=0.0, solver="bundle").fit(X, y, qid=qid)


BASES = {
    "ndcg": ("ndcg@10", y, "every distribution"),
    "preorder": ("ndcg@10", y, "nothing"),
    "preorder of orders": ("zero_one", orders(y, qid), "order_preserving"),
    "plackett_luce": ("zero_one", orders(y, qid), "order_preserving"),
}


@pytest.mark.parametrize("name", BASES)
def test_what_a_fit_rests_on(name):
    metric, labels, basis = BASES[name]
    surrogate = {"ndcg": "softmax", "preorder of orders": "preorder"}.get(name, name)
    model = LinearRanker(metric, surrogate, assume="order_preserving")
    if basis == "nothing":
        with pytest.warns(GuaranteeWarning, match="Nothing guarantees that training with preorder") as caught:
            model.fit(X, labels, qid=qid)
        assert [warning.filename for warning in caught] == [__file__]
    else:
        model.fit(X, labels, qid=qid)
    assert model.basis_ == model.certificate_.condition == basis


@pytest.mark.parametrize("metric", ["pd", "wpd"])
def test_preferences(metric):
    votes = better_first(y, qid)
    with pytest.warns(GuaranteeWarning, match="only if the labels satisfy low_noise or P_f") as caught:
        model = LinearRanker(metric, **EXACT).fit(X, votes, qid=qid)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.basis_ == "low_noise"
    assumed = LinearRanker(metric, assume="low_noise", **EXACT).fit(X, votes, qid=qid)
    assert assumed.coef_.tolist() == model.coef_.tolist()
    assert assumed.score(X, votes, qid=qid) == -cc.metric(metric)(votes, assumed.predict(X), qid=qid) < 0
    other = LinearRanker(metric, assume="P_f", **EXACT).fit(X, votes, qid=qid)
    assert other.basis_ == "P_f"
    assert not np.allclose(other.coef_, assumed.coef_)


def test_preferences_in_any_row_order():
    order = np.random.default_rng(4).permutation(len(y))
    model = LinearRanker("pd", assume="low_noise", **EXACT)
    votes, moved = better_first(y, qid), better_first(y[order], qid[order])
    check_same(model, (X, votes, {"qid": qid}), (X[order], moved, {"qid": qid[order]}))


def test_permutations():
    observed = orders(y, qid)
    for surrogate in (PlackettLuce(), Squared()):
        with pytest.warns(GuaranteeWarning, match="only if the labels satisfy order_preserving"):
            warned = LinearRanker("zero_one", surrogate).fit(X, observed, qid=qid)
        assumed = LinearRanker("zero_one", surrogate, assume="order_preserving").fit(X, observed, qid=qid)
        assert warned.coef_.tolist() == assumed.coef_.tolist()
        assert warned.basis_ == assumed.basis_ == "order_preserving"
        assert -1 < assumed.score(X, observed, qid=qid) < 0


@pytest.mark.parametrize(
    ("metric", "says"),
    [
        ("err", "Nothing guarantees"),
        ("rr", "Nothing guarantees"),
        ("ap", "only if the labels satisfy P_reinforce"),
    ],
)
def test_metrics_without_a_guarantee_warn(metric, says):
    with pytest.warns(GuaranteeWarning, match=says):
        model = LinearRanker(metric).fit(X, y, qid=qid)
    assert model.basis_ == ("P_reinforce" if metric == "ap" else "nothing")
    if metric == "ap":
        LinearRanker(metric, assume="P_reinforce").fit(X, y, qid=qid)


def test_a_condition_that_does_not_serve():
    with pytest.raises(NoStandardizationError, match="does not serve"):
        LinearRanker("ap", assume="low_noise").fit(X, y, qid=qid)


def test_metrics_and_labels_may_be_objects():
    plain = LinearRanker("ndcg@3").fit(X, y, qid=qid)
    model = LinearRanker(cc.metric("ndcg@3")).fit(X, cc.Grades(y), qid=qid)
    assert model.coef_.tolist() == plain.coef_.tolist()
    assert model.score(X, y, qid=qid) == plain.score(X, y, qid=qid)


# ---------------------------------------------------------------- what a fitted ranker does


def test_rank_follows_predict():
    data, labels, ids = shuffled()
    model = LinearRanker().fit(data, labels, qid=ids)
    places, scores = model.rank(data, qid=ids), model.predict(data)
    for q in np.unique(ids):
        in_query = ids == q
        assert sorted(places[in_query].tolist()) == list(range(1, in_query.sum() + 1))
        assert (np.diff(scores[in_query][np.argsort(places[in_query])]) <= 0).all()


def test_equal_items_keep_their_order():
    """46 features: a BLAS would give equal rows different scores, by where they stand."""
    data, labels, ids = drawn(n_features=46)
    model = LinearRanker().fit(data, labels, qid=ids)
    same = np.tile(data[0], (13, 1))
    assert model.rank(same, qid=np.zeros(13)).tolist() == list(range(1, 14))
    assert len(set(model.predict(same).tolist())) == 1
    assert model.predict(data)[7] == model.predict(data[7:8])[0]


RENAMED = {
    "lbfgs": lambda: LinearRanker("ndcg@3"),
    "newton": lambda: LinearRanker("ndcg@3", Pairwise("squared_hinge"), solver="newton"),
    "sgd": lambda: LinearRanker("ndcg@3", solver="sgd", max_iter=3, tol=1e-2),
    "bundle": lambda: cc.MaxMarginRanker("ndcg", "pairwise"),
    "folds": lambda: LinearRankerCV("ndcg@3", alphas=[1.0, 0.01], cv=3),
}


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")
@pytest.mark.parametrize("name", RENAMED)
def test_names_of_queries_do_not_count(name):
    """At the default tol, of a sample of the queries; in another order of the rows steps differ."""
    data = cc.synthetic.search_log(n_queries=300, seed=0)
    weights = RENAMED[name]().fit(data.X, data.y, qid=data.qid).coef_
    names = np.random.default_rng(0).permutation(300)[data.qid]
    assert not (np.diff(names) >= 0).all()
    for renamed in (names, np.char.add("query ", names.astype(str)), Queries.from_ids(names)):
        assert RENAMED[name]().fit(data.X, data.y, qid=renamed).coef_.tolist() == weights.tolist()
    order = np.argsort(names, kind="stable")
    if name == "lbfgs":
        moved = LinearRanker("ndcg@3").fit(data.X[order], data.y[order], qid=names[order]).coef_
        assert moved.tolist() != weights.tolist()
        tight = [LinearRanker("ndcg@3", tol=1e-12) for _ in range(2)]
        tight[0].fit(data.X, data.y, qid=names)
        tight[1].fit(data.X[order], data.y[order], qid=names[order])
        np.testing.assert_allclose(tight[0].coef_, tight[1].coef_, atol=1e-5 * np.abs(weights).max())


def test_score_is_the_metric_of_the_predictions():
    model = LinearRanker("ndcg@3").fit(X, y, qid=qid)
    metric, scores = cc.metric("ndcg@3"), model.predict(X)
    assert model.score(X, y, qid=qid) == metric(y, scores, qid=qid)
    weights = np.arange(12.0)
    assert model.score(X, y, qid=qid, query_weight=weights[(qid - 5) // 3]) == metric(
        y, scores, qid=qid, weights=weights
    )
    assert model.set_params(metric="pd").score(X, y, qid=qid) == -cc.metric("pd")(y, scores, qid=qid)


PAIRS = {
    "array": lambda row: X[row],
    "list": lambda row: X[row].tolist(),
    "one row": lambda row: X[[row]],
    "Series": lambda row: pd.DataFrame(X, columns=NAMES).iloc[row],
    "frame": lambda row: pd.DataFrame(X, columns=NAMES).iloc[[row]],
    "polars": lambda row: pl.DataFrame(X, schema=NAMES)[row],
    "pyarrow": lambda row: FRAMES["pyarrow"](X).slice(row, 1),
    "csr matrix": lambda row: sparse.csr_matrix(X)[row],
    "csr array": lambda row: sparse.csr_array(X)[row],
    "csr row": lambda row: sparse.csr_array(X)[[row]],
}


@pytest.mark.parametrize("kind", PAIRS)
def test_a_pair_is_explained(kind):
    model = LinearRanker().fit(pd.DataFrame(X, columns=NAMES), y, qid=qid)
    explanation = model.explain_pair(PAIRS[kind](3), PAIRS[kind](8))
    scores = LinearRanker().fit(X, y, qid=qid).predict(X)
    assert explanation.difference == pytest.approx(scores[3] - scores[8])
    assert explanation.contributions.sum() == pytest.approx(explanation.difference)
    shares = dict(zip(NAMES, model.coef_ * (X[3] - X[8]), strict=True))
    assert explanation.features == sorted(NAMES, key=lambda name: -abs(shares[name]))
    assert explanation.contributions.tolist() == pytest.approx(
        [shares[name] for name in explanation.features]
    )


def test_explanations_in_words():
    data, labels, ids = drawn(n_features=13)
    model = LinearRanker().fit(data, labels, qid=ids)
    best, worst = data[np.argmax(model.predict(data))], data[np.argmin(model.predict(data))]
    assert "a stands above b" in repr(model.explain_pair(best, worst))
    assert "3 more" in repr(model.explain_pair(best, worst))
    assert "a stands below b" in repr(model.explain_pair(worst, best))
    level = model.explain_pair(best, best)
    assert "level with" in repr(level)
    assert level.features == [f"column {number} (LETOR {number + 1})" for number in range(13)]


@pytest.mark.parametrize(
    "item", [X[0][:3], X[:2], "text", None, 3.0], ids=["short", "two rows", "text", "None", "number"]
)
def test_items_that_are_none(item):
    model = LinearRanker().fit(X, y, qid=qid)
    with pytest.raises(ShapeError, match="b has shape"):
        model.explain_pair(X[0], item)


def test_items_with_other_names():
    frame = pd.DataFrame(X, columns=NAMES)
    model = LinearRanker().fit(frame, y, qid=qid)
    with pytest.raises(ValueError, match="feature names"):
        model.explain_pair(frame.iloc[0][["b", "a", "c", "d"]], frame.iloc[1])
    with pytest.raises(ValueError, match="NaN"):
        model.explain_pair([np.nan, 0.0, 0.0, 0.0], X[0])


def test_nothing_works_before_fit():
    for call in (
        lambda m: m.predict(X),
        lambda m: m.rank(X),
        lambda m: m.score(X, y),
        lambda m: m.explain_pair(X[0], X[1]),
    ):
        with pytest.raises(NotFittedError):
            call(LinearRanker())
    model = LinearRanker()
    with pytest.raises(GradeError):
        model.fit(X, y - 1.0, qid=qid)
    with pytest.raises(NotFittedError):
        model.predict(X)


# ---------------------------------------------------------------- errors

BAD = {
    "alpha < 0": ({"alpha": -1.0}, ParameterError, "alpha must be "),
    "alpha NaN": ({"alpha": np.nan}, ParameterError, "alpha must be "),
    "alpha text": ({"alpha": "small"}, ParameterError, "alpha must be "),
    "tol": ({"tol": -1e-3}, ParameterError, "tol must be "),
    "max_iter 0": ({"max_iter": 0}, ParameterError, "max_iter must be "),
    "max_iter half": ({"max_iter": 1.5}, ParameterError, "an integer >= 1"),
    "solver": ({"solver": "bfgs"}, UnknownNameError, "Did you mean 'lbfgs'"),
    "surrogate": ({"surrogate": "soft"}, UnknownNameError, "plackett_luce"),
    "metric": ({"metric": "ndgc"}, UnknownNameError, "Did you mean 'ndcg'"),
    "comparisons": ({"metric": "comparison_error"}, ParameterError, "not rankings"),
    "assume": ({"assume": "noise"}, UnknownNameError, "low_noise"),
    "assume, unread": ({"assume": "noise", "surrogate": "preorder"}, UnknownNameError, "low_noise"),
    "callback": ({"callback": "print"}, ParameterError, "callback"),
    "random_state": ({"random_state": -1, "solver": "sgd"}, ParameterError, "random_state must be "),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_named_before_any_work(name, monkeypatch):
    parameters, error, says = BAD[name]
    monkeypatch.setattr(LinearRanker, "checked_features", None)  # would be the first work
    with pytest.raises(error, match=re.escape(says)):
        LinearRanker(**parameters).fit(X, y, qid=qid)


def put(values, row, value):
    changed = np.array(values, dtype=float)
    changed[row] = value
    return changed


ids = np.array([f"query {q}" for q in qid])
ROWS = {
    "negative grade": ({"y": put(y, 6, -1)}, GradeError, f"grade -1 at row 6 (query '{ids[6]}') is negative"),
    "NaN grade": ({"y": put(y, 9, np.nan)}, NonFiniteError, f"y is nan at row 9 (query '{ids[9]}')"),
    "text grade": ({"y": ["good"] * len(y)}, NotNumericError, "row 0"),
    "short y": ({"y": y[:-1]}, LengthMismatchError, "y has"),
    "long y": ({"y": np.r_[y, 1]}, LengthMismatchError, "y has"),
    "short qid": ({"qid": ids[:-1]}, LengthMismatchError, "qid has"),
    "no id": ({"qid": [None, *ids[1:]]}, LabelError, "no id at row 0"),
    "short sample_weight": ({"sample_weight": np.ones(3)}, LengthMismatchError, "sample_weight has 3"),
    "short query_weight": ({"query_weight": np.ones(3)}, LengthMismatchError, "query_weight has 3"),
    "negative weight": ({"sample_weight": put(y, 2, -1)}, NonFiniteError, "sample_weight is -1.0 at row 2"),
    "NaN weight": ({"query_weight": put(qid, 2, np.nan)}, NonFiniteError, "query_weight is nan at row 2"),
    "no weight": ({"sample_weight": 0 * y}, ParameterError, "sample_weight is zero for every row"),
    "no query counts": ({"query_weight": 0 * y}, ParameterError, "query_weight is zero for every query"),
    "two weights": ({"query_weight": put(qid, 0, 77)}, LabelError, f"of query '{ids[0]}' is both 5 and 77"),
    "no labels": ({"y": None}, ValueError, "requires y to be passed"),
    "NaN feature": ({"X": put(X, (4, 1), np.nan)}, ValueError, "contains NaN"),
    "infinite feature": ({"X": put(X, (4, 1), np.inf)}, ValueError, "contains inf"),
    "no rows": ({"X": X[:0], "y": y[:0], "qid": ids[:0]}, ValueError, "0 sample(s)"),
    "one dimension": ({"X": X[:, 0]}, ValueError, "Expected 2D array"),
    "few preferences": ({"y": Preferences([0], [1], 5), "metric": "pd"}, LengthMismatchError, "y has 5"),
    "preferences, but grades": ({"y": Preferences([0], [1], len(y))}, LabelError, "ndcg reads grades"),
    "preorder of preferences": (
        {"y": Preferences([0], [1], len(y)), "metric": "pd", "surrogate": "preorder"},
        LabelError,
        "preorder reads grades, not Preferences",
    ),
    "no permutations": ({"metric": "zero_one"}, LabelError, "reads Permutations, not ndarray"),
    "no orders": ({"surrogate": "plackett_luce"}, LabelError, "plackett_luce reads Permutations"),
    "no permutation": ({"y": Permutations(0 * y + 1), "metric": "zero_one"}, LabelError, "has positions"),
}  # fmt: skip


@pytest.mark.parametrize(
    "kind", [LinearRanker, lambda **options: LinearRankerCV(cv=2, **options)], ids=["plain", "cv"]
)
@pytest.mark.parametrize("name", ROWS)
def test_bad_rows_are_named_before_any_work(name, kind, monkeypatch):
    """Rows are counted as the caller counts them, in cross-validation too."""
    changes, error, says = ROWS[name]
    parameters = {part: value for part, value in changes.items() if part in ("metric", "surrogate")}
    rows = {"X": X, "y": y, "qid": ids} | {
        part: value for part, value in changes.items() if part not in parameters
    }
    monkeypatch.setattr(LinearRanker, "solve", None)
    with pytest.raises(error, match=re.escape(says)) as caught:
        kind(**parameters).fit(rows.pop("X"), rows.pop("y"), **rows)
    assert isinstance(caught.value, ConcordantError)


def test_score_names_its_rows():
    model = LinearRanker().fit(X, y, qid=ids)
    with pytest.raises(GradeError, match=re.escape(f"row 6 (query '{ids[6]}')")):
        model.score(X, put(y, 6, -1), qid=ids)
    with pytest.raises(LengthMismatchError):
        model.score(X, y[:-1], qid=ids)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(X[:, :3])


# ---------------------------------------------------------------- warnings, and how fits end


def test_too_few_iterations_warn():
    with pytest.warns(ConvergenceWarning, match="stopped by max_iter after 1 iterations") as caught:
        model = LinearRanker(max_iter=1).fit(X, y, qid=qid)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.n_iter_ == 1
    assert not model.solution_.converged


@baselines_too
@pytest.mark.parametrize(
    "labels", [np.zeros(len(y)), np.full(len(y), 2), (qid % 3).astype(float)], ids=["0", "2", "by query"]
)
@pytest.mark.parametrize("surrogate", ["softmax", "pairwise", "squared", "preorder"])
def test_nothing_to_learn_warns(labels, surrogate):
    with pytest.warns(UserWarning, match="no query has labels that differ"):
        model = LinearRanker(surrogate=surrogate).fit(X, labels, qid=qid)
    assert model.n_informative_ == 0
    if surrogate in ("squared", "preorder"):
        np.testing.assert_allclose(model.coef_, 0.0, atol=1e-9)


def test_informative_queries_are_counted():
    labels = np.where(qid < 20, y, 1)
    model = LinearRanker().fit(X, labels, qid=qid)
    assert (model.n_queries_, model.n_informative_) == (
        12,
        sum(len(set(labels[qid == q])) > 1 for q in np.unique(qid)),
    )
    with pytest.warns(UserWarning, match="no query has labels that differ"):
        LinearRanker().fit(X, labels, qid=qid, query_weight=1.0 * (qid >= 20))


def test_a_new_fit_replaces_the_old():
    model = LinearRanker("ndcg@3").fit(X, y, qid=qid)
    wide = drawn(n_features=6, seed=5)
    model.fit(wide[0], wide[1], qid=wide[2])
    fresh = LinearRanker("ndcg@3").fit(wide[0], wide[1], qid=wide[2])
    assert model.coef_.tolist() == fresh.coef_.tolist()
    assert vars(model).keys() == vars(fresh).keys()
    assert model.n_features_in_ == 6


def test_a_warm_start_begins_where_the_last_fit_ended():
    model = LinearRanker(warm_start=True, tol=1e-10).fit(X, y, qid=qid)
    first = model.coef_
    again = model.fit(X, y, qid=qid)
    assert again.n_iter_ == 0
    np.testing.assert_allclose(again.coef_, first, rtol=1e-12)
    nearby = model.set_params(alpha=1.1e-3).fit(X, y, qid=qid).n_iter_
    assert nearby < LinearRanker(alpha=1.1e-3, tol=1e-10).fit(X, y, qid=qid).n_iter_
    with pytest.raises(ShapeError, match="warm_start"):
        model.fit(X[:, :3], y, qid=qid)


def test_a_warm_start_from_far_away_comes_back():
    model = LinearRanker(warm_start=True, **EXACT).fit(X, y, qid=qid)
    good = model.coef_
    model.coef_ = 1e4 * np.ones(4)
    np.testing.assert_allclose(model.fit(X, y, qid=qid).coef_, good, rtol=1e-4)


def test_a_callback_sees_every_step_and_may_end_it():
    steps = []
    model = LinearRanker(callback=steps.append).fit(X, y, qid=qid)
    assert [step.iteration for step in steps] == list(range(1, model.n_iter_ + 1))
    assert steps[-1].value == model.solution_.value
    assert steps[-1].w.tolist() == model.coef_.tolist()  # in the units of X
    short = LinearRanker(callback=lambda step: step.iteration == 2).fit(
        X, y, qid=qid
    )  # asked for: no warning
    assert (short.n_iter_, short.solution_.stopped_by) == (2, "callback")


@pytest.mark.parametrize("solver", ["lbfgs", "newton", "sgd"])
def test_ctrl_c_keeps_the_best_so_far(solver):
    def interrupt(step):
        if step.iteration == 2:
            raise KeyboardInterrupt

    with pytest.warns(
        ConvergenceWarning, match="stopped by interrupt after 2 iterations.*best weights so far"
    ):
        model = LinearRanker(solver=solver, callback=interrupt, tol=1e-12).fit(X, y, qid=qid)
    assert model.solution_.stopped_by == "interrupt"
    assert model.score(X, y, qid=qid) > 0.7
    assert model.coef_.any()


def test_ctrl_c_before_the_first_step(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("concordant.solvers.smooth_solvers.whitening", interrupt)
    with pytest.warns(ConvergenceWarning, match="stopped by interrupt after 0 iterations"):
        model = LinearRanker().fit(X, y, qid=qid)
    assert model.coef_.tolist() == [0.0] * 4


@pytest.mark.parametrize(
    "kind",
    [LinearRanker, lambda **options: LinearRankerCV(cv=2, alphas=[1.0, 0.1], **options)],
    ids=["plain", "cv"],
)
def test_a_bar_goes_to_standard_error_only(kind, capsys, monkeypatch):
    assert kind(verbose=0).fit(X, y, qid=qid)
    assert capsys.readouterr() == ("", "")
    kind(verbose=1).fit(X, y, qid=qid)
    out, err = capsys.readouterr()
    assert out == ""
    assert "alpha=" in err
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal, where rich would catch what others print
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    LinearRanker(verbose=1, callback=lambda _: print("mine")).fit(X, y, qid=qid)  # noqa: T201
    out, err = capsys.readouterr()
    assert set(out.split()) == {"mine"}
    assert "mine" not in err


def test_no_warning_on_a_plain_fit():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LinearRanker().fit(X, y, qid=qid)
        model.score(X, y, qid=qid)
    assert (model.n_queries_, model.n_features_in_, model.basis_) == (12, 4, "every distribution")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_no_penalty(solver):
    """Separable: no finite solution, but an end, and the right order."""
    model = LinearRanker("dcg", "softmax", alpha=0.0, solver=solver).fit(
        y[:, None] + 0.0, (y > 1) * 1, qid=qid
    )
    assert np.isfinite(model.coef_).all()
    assert model.coef_[0] > 0
    assert model.solution_.gap == np.inf


# ---------------------------------------------------------------- real data


def test_mq2008(shared_data):
    fold = cc.datasets.load("mq2008", fold=1, folder=shared_data)
    train, test = fold.train, fold.test
    model = LinearRanker("ndcg@10").fit(train.X, train.y, qid=train.qid)
    assert model.solution_.converged
    reached = model.score(test.X, test.y, qid=test.qid)
    assert reached > constant(model).score(test.X, test.y, qid=test.qid) + 0.1
    rows = sparse.csr_array(train.X)
    assert LinearRanker("ndcg@10").fit(rows, train.y, qid=train.qid).score(
        test.X, test.y, qid=test.qid
    ) == pytest.approx(reached, abs=0.01)


# ---------------------------------------------------------------- features that are not finite


FITTED = {  # a ranker, and what it says of an infinity
    "linear": (LinearRanker(), "BoostedRanker takes NaN"),
    "linear-cv": (cc.LinearRankerCV(), "BoostedRanker takes NaN"),
    "maxmargin": (cc.MaxMarginRanker("ap"), "BoostedRanker takes NaN"),
    "pairs": (cc.PairRanker("ap"), "BoostedRanker takes NaN"),
    "boosted": (cc.BoostedRanker(n_estimators=2, min_samples_leaf=2), "or by NaN, which means missing"),
}


@pytest.mark.filterwarnings("ignore::concordant.exceptions.GuaranteeWarning")
@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize(("bad", "word"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_features_that_are_not_finite_are_named(name, bad, word):
    """By row and column, of frames by name, in fit and where it scores; NaN is missing for trees."""
    model, hint = FITTED[name]
    if name == "boosted" and word == "NaN":
        return
    rows, binary = X.copy(), (y > 0).astype(int)
    rows[5, 1] = rows[7, 0] = bad
    message = rf"X contains {word} at row 5 ?.*, column 1 {{}}\(2 such value\(s\) in all\)"
    fitted = clone(model).fit(X, binary, qid=qid)
    for table, called in (
        (rows, ""),
        (sparse.csr_array(rows), ""),
        (pd.DataFrame(rows, columns=NAMES), r"\('b'\) "),
    ):
        with pytest.raises(FeaturesError, match=message.format(called)) as caught:
            clone(model).fit(table, binary, qid=qid)
        assert isinstance(caught.value, NonFiniteError)
        assert hint in str(caught.value)
    with pytest.raises(FeaturesError, match=message.format("")):
        fitted.rank(rows, qid=qid)


def test_items_of_a_pair_are_named():
    item = X[0].copy()
    item[2] = np.nan
    for model in (
        LinearRanker().fit(X, y, qid=qid),
        LinearRanker().fit(pd.DataFrame(X, columns=NAMES), y, qid=qid),
    ):
        with pytest.raises(FeaturesError, match="b contains NaN at row 0, column 2"):
            model.explain_pair(X[1], item)
