"""PairRanker: pair features, the exact fit, what labels and weights mean, what decoding reaches, errors."""

import dataclasses
import itertools
import pickle
import re
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import concordant as cc
from concordant import GuaranteeWarning, LinearRanker, PairRanker, Permutations, Preferences, Queries
from concordant.decoders import average_precision, feedback_arc
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
from concordant.rankers import pair_scores as pairs_module
from concordant.rankers import pair_training
from concordant.rankers.pair_features import TABLES
from concordant.rankers.pair_scores import Numbering, PairScorer
from concordant.rankers.pair_training import PairProblem, pair_targets
from concordant.rankers.training import query_shares
from concordant.solvers import Solution
from concordant.solvers.ridge import Block, Inverse, Moments, combine_solutions, evaluate_weights, ridge
from concordant.theory.combination import OF_PAIRS
from tests import oracles

ORACLE_GROUPS = {  # by metric: name in the package -> name in the oracle
    "ap": {name: {"context": "level"}.get(name, name) for name in TABLES[True]},
    "pd": {name: {"cross": "signed_cross"}.get(name, name) for name in TABLES[False]},
}


def drawn(n_queries=9, n_items=6, n_features=3, seed=0):
    """Features, grades that follow them with noise, preferences with contradictions; ids in no order."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, n_items + 1, n_queries)
    qid = rng.permutation(np.repeat(np.arange(n_queries) * 3 + 5, sizes))
    X = rng.normal(size=(len(qid), n_features))
    y = np.digitize(X @ np.arange(1, n_features + 1) + 2.0 * rng.normal(size=len(qid)), [0.5, 3.0])
    edges = [
        (i, j, float(rng.integers(1, 4)))
        for i, j in itertools.permutations(range(len(qid)), 2)
        if qid[i] == qid[j] and rng.random() < 0.4
    ]
    return X, y, qid, edges


X, y, qid, edges = drawn()
rows_of = [np.flatnonzero(qid == q).tolist() for q in np.unique(qid)]


def preferences(edges, n_rows):
    better, worse, weights = map(list, zip(*edges, strict=True))
    return Preferences(better, worse, n_rows, weights)


votes = preferences(edges, len(X))
KINDS = {
    "ap": ("ap", y, lambda i, j: oracles.shared_relevance(*inside(i, j))),
    "pd of preferences": ("pd", votes, lambda i, j: oracles.net_weight(edges, i, j)),
    "pd of grades": ("pd", y, lambda i, j: float(np.sign(y[i] - y[j]))),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def inside(i, j):
    """Relevance in the query of two rows, and their places in it."""
    query_rows = next(rows for rows in rows_of if i in rows)
    return [int(y[row] >= 1) for row in query_rows], query_rows.index(i), query_rows.index(j)


# ---------------------------------------------------------------- scikit-learn


def test_parameters_are_kept_as_they_are():
    model = PairRanker("pd", 0.5, features=("difference", "cross"), decoder="borda", time_limit=1.0)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.set_params(alpha=2.0).alpha == 2.0
    assert repr(PairRanker()) == "PairRanker()"
    assert not hasattr(model, "predict")


@kinds
def test_pickled_and_back(kind):
    metric, labels, _ = KINDS[kind]
    model = PairRanker(metric).fit(X, labels, qid=qid)
    back = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert back.rank(X, qid=qid).tolist() == model.rank(X, qid=qid).tolist()
    assert back.certificate_ == model.certificate_


@pytest.mark.parametrize("metric", ["ap", "pd"])
def test_routing_through_a_pipeline_and_a_search(metric):
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), PairRanker(metric))
        grid = {"pairranker__alpha": [10.0, 0.01]}
        search = GridSearchCV(model, grid, cv=GroupKFold(3)).fit(X, y, groups=qid, qid=qid)
        train, test = next(GroupKFold(3).split(X, y, qid))
        ranker = clone(model).set_params(pairranker__alpha=10.0).fit(X[train], y[train], qid=qid[train])
        scores = search.cv_results_["split0_test_score"]
        assert scores[0] == ranker.score(X[test], y[test], qid=qid[test])
        assert search.best_estimator_[-1].n_queries_ == 9


def test_names_of_features():
    frame = pd.DataFrame(X, columns=["bm25", "age", "links"])
    model = PairRanker(features=("sum", "cross", "context")).fit(frame, y, qid=qid)
    assert model.pair_features_ == [
        *("sum(bm25)", "sum(age)", "sum(links)"),
        *("cross(bm25,age)", "cross(bm25,links)", "cross(age,links)"),
        *("context(bm25)", "context(age)", "context(links)"),
    ]
    assert len(model.coef_) == 9
    assert len(model.diagonal_coef_) == 12  # the features, their squares, the means, products of two
    with pytest.raises(ValueError, match="feature names should match"):
        model.rank(frame[["age", "bm25", "links"]], qid=qid)
    assert PairRanker("pd").fit(X[:, :1], votes, qid=qid).pair_features_ == [
        "difference(x0)",
        "signed_square(x0)",
        "context(x0)",
    ]


# ---------------------------------------------------------------- the fit against all pairs at once


def all_pairs(kind, groups, shares=None, weights=None):
    metric, _, target = KINDS[kind]
    shares = np.full(len(rows_of), 1 / len(rows_of)) if shares is None else shares
    weights = np.ones(len(X)) if weights is None else weights
    names = [ORACLE_GROUPS[metric][name] for name in groups]
    return oracles.pair_table(X.tolist(), rows_of, names, target, shares, weights)


def check_fit(model, kind, groups, shares=None, weights=None):
    """Weights and intercept are those of one long least-squares problem."""
    table = all_pairs(kind, groups, shares, weights)
    symmetric = model.symmetric_
    coef, intercept = oracles.weighted_ridge(
        *table, model.alpha, intercept=symmetric, fit_scale=model.fit_scale
    )
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-6, atol=1e-9)
    assert model.intercept_ == pytest.approx(intercept, abs=1e-9)
    rows, _, counts = table
    means = counts @ rows / counts.sum() if symmetric else 0.0
    spread = np.sqrt(counts @ (rows - means) ** 2 / counts.sum())
    np.testing.assert_allclose(model.scale_, spread if model.fit_scale else np.ones(len(spread)))


@kinds
@pytest.mark.parametrize("fit_scale", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 5.0])
def test_the_fit_is_exact(kind, fit_scale, alpha):
    metric, labels, _ = KINDS[kind]
    groups = {"ap": ("sum", "product", "absdiff"), "pd": ("difference", "signed_square", "context")}[metric]
    model = PairRanker(metric, alpha, fit_scale=fit_scale).fit(X, labels, qid=qid)
    check_fit(model, kind, groups)
    assert model.solution_.converged
    assert model.solution_.excess <= 1e-12
    assert (model.solution_.gap <= 1e-12) == (alpha > 0)
    assert model.solution_.n_gradients == 1  # pairs are read once


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
@kinds
def test_the_fit_with_every_group_and_weights(kind):
    metric, labels, _ = KINDS[kind]
    groups = tuple(ORACLE_GROUPS[metric])
    rng = np.random.default_rng(1)
    per_query = rng.integers(0, 4, len(rows_of)).astype(float)
    query_weight = per_query[np.searchsorted(np.unique(qid), qid)]
    sample_weight = rng.integers(0, 3, len(X)).astype(float)
    model = PairRanker(metric, 0.2, features=groups)
    model.fit(X, labels, qid=qid, query_weight=query_weight, sample_weight=sample_weight)
    check_fit(model, kind, groups, per_query / per_query.sum(), sample_weight / 2)
    with pytest.raises(AssertionError):  # the check can fail
        check_fit(model, kind, groups, per_query / per_query.sum())


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
@pytest.mark.parametrize("groups", [("sum",), ("context",), ("cross",), ("product", "cross", "context")])
@pytest.mark.parametrize("weighed", [False, True])
def test_the_diagonal_is_a_regression_on_items(groups, weighed):
    rng = np.random.default_rng(2)
    sample_weight = rng.integers(0, 5, len(X)) / 4.0 if weighed else np.ones(len(X))
    sample_weight[0] = 1.0
    model = PairRanker(alpha=0.3, features=groups).fit(X, y, qid=qid, sample_weight=sample_weight)
    check_diagonal(model, [ORACLE_GROUPS["ap"][name] for name in groups], sample_weight)
    if weighed:
        with pytest.raises(AssertionError):
            check_diagonal(model, [ORACLE_GROUPS["ap"][name] for name in groups], np.ones(len(X)))


def check_diagonal(model, groups, weights):
    """Weights of single items are those of one least-squares problem on them."""
    rows, targets, counts = [], [], []
    for query_rows in rows_of:
        for row in query_rows:
            rows.append(oracles.item_row(groups, X[row].tolist(), X[query_rows].mean(axis=0).tolist()))
            targets.append(oracles.shared_relevance(*inside(row, row)))
            counts.append(weights[row] / (len(rows_of) * len(query_rows)))
    table = np.array(rows), np.array(targets), np.array(counts)
    coef, intercept = oracles.weighted_ridge(*table, model.alpha, intercept=True, fit_scale=True)
    np.testing.assert_allclose(model.diagonal_coef_, coef, rtol=1e-7, atol=1e-12)
    assert model.diagonal_intercept_ == pytest.approx(intercept)
    values = np.diag(model.predict_pairs(X, qid=qid)[0])
    np.testing.assert_allclose(values, (np.array(rows) @ coef + intercept)[: len(values)], rtol=1e-7)


SCALES = {
    "1e8": lambda rows: rows * 1e8,
    "1e-8": lambda rows: rows * 1e-8,
    "1e-3, 1, 1e3": lambda rows: rows * [1e-3, 1.0, 1e3],
    "1e-8, 1, 1e8": lambda rows: rows * [1e-8, 1.0, 1e8],
    "collinear": lambda rows: np.column_stack((rows, 1e3 * rows[:, 0])),
    "level": lambda rows: rows + 1e6,
}


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["ap", "pd of grades"])
@pytest.mark.parametrize("scale", SCALES)
def test_no_feature_is_lost_beside_a_larger_one(kind, alpha, scale):
    """Without `fit_scale`: as good as the long system, or the fit says that it is not."""
    metric, labels, target = KINDS[kind]
    rows, groups = SCALES[scale](X), {"ap": ("sum", "product"), "pd": ("difference", "signed_square")}[metric]
    model = PairRanker(metric, alpha, features=groups, fit_scale=False).fit(rows, labels, qid=qid)
    shares = np.full(len(rows_of), 1 / len(rows_of))
    table = oracles.pair_table(rows.tolist(), rows_of, groups, target, shares, np.ones(len(X)))
    coef, intercept = oracles.weighted_ridge(*table, alpha, intercept=metric == "ap", fit_scale=False)

    def objective(coef, intercept):
        errors = table[2] @ (table[0] @ coef + intercept - table[1]) ** 2
        return errors + alpha / 2 * coef @ coef

    best, at_rest = objective(coef, intercept), objective(0 * coef, 0.0)
    rough = scale == "level" and alpha == 0.0  # a millionth part decides: half of the digits are left
    # The objective is the long system's, of whose sums no more digits are left.
    assert objective(model.coef_, model.intercept_) <= best + (1e-4 if rough else 1e-7) * at_rest
    scores = table[0] @ model.coef_ + model.intercept_
    np.testing.assert_allclose(scores, table[0] @ coef + intercept, atol=1e-3 if rough else 1e-9)
    assert model.solution_.converged or rough


@kinds
def test_reported_value_and_gradient(kind):
    """The objective, written down; and that no other weights have a lower one."""
    metric, labels, _ = KINDS[kind]
    groups = ("product",) if metric == "ap" else ("difference",)
    model = PairRanker(metric, 0.4, features=groups).fit(X, labels, qid=qid)
    rows, targets, counts = all_pairs(kind, groups)

    def objective(w, intercept):
        errors = counts @ (rows @ (w / model.scale_) + intercept - targets) ** 2
        return errors + 0.2 * w @ w

    weights = model.solution_.w[-len(model.coef_) :]  # the diagonal's come first
    np.testing.assert_allclose(weights, model.coef_ * model.scale_)
    value = objective(weights, model.intercept_)
    if metric == "pd":
        assert model.solution_.value == pytest.approx(value)
    rng = np.random.default_rng(0)
    for _ in range(20):
        step = 1e-4 * rng.normal(size=len(weights) + 1)
        assert objective(weights + step[:-1], model.intercept_ + step[-1] * (metric == "ap")) >= value - 1e-14
    assert model.solution_.gradient_norm < 1e-12


@kinds
@pytest.mark.parametrize("block", [1, 200, 2000])
def test_the_size_of_blocks_does_not_matter(kind, block, monkeypatch):
    metric, labels, _ = KINDS[kind]
    whole = PairRanker(metric).fit(X, labels, qid=qid)
    monkeypatch.setattr(pairs_module, "BLOCK_BYTES", block)
    monkeypatch.setattr(pairs_module, "RUN_PAIRS", block // 100)
    cut = PairRanker(metric).fit(X, labels, qid=qid)
    np.testing.assert_allclose(cut.coef_, whole.coef_, rtol=1e-9)
    np.testing.assert_allclose(cut.diagonal_coef_, whole.diagonal_coef_, rtol=1e-9)
    cut.coef_ = whole.coef_
    for some, all_at_once in zip(cut.predict_pairs(X, qid=qid), whole.predict_pairs(X, qid=qid), strict=True):
        np.testing.assert_allclose(some, all_at_once, rtol=1e-9)


@kinds
@pytest.mark.parametrize("block", [1, 200, 2000])
def test_every_block_is_reported(kind, block, monkeypatch):
    metric, labels, _ = KINDS[kind]
    monkeypatch.setattr(pairs_module, "BLOCK_BYTES", block)
    read, queries, blocks = cc.metric(metric), Queries.from_ids(qid), []
    groups = ("sum",) if metric == "ap" else ("difference",)
    scorer = PairScorer(queries.gather(X), queries.offsets, groups, symmetric=metric == "ap")
    targets = pair_targets(read, read.read_labels(labels), queries)
    problem = PairProblem(scorer, targets, np.ones(queries.n_queries), np.ones(len(X)))
    problem.moments(blocks.append)
    assert len(blocks) == problem.n_blocks
    assert set(blocks) == ({"pairs", "items"} if metric == "ap" else {"pairs"})


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
@kinds
def test_units_of_weights_do_not_matter(kind):
    metric, labels, _ = KINDS[kind]
    rng = np.random.default_rng(3)
    rows, whole = 0.1 + rng.random(len(X)), 1.0 + qid % 4
    plain = PairRanker(metric).fit(X, labels, qid=qid, sample_weight=rows, query_weight=whole)
    for unit in (1e-200, 1e-3, 1e200):
        weights = {"sample_weight": unit * rows, "query_weight": whole * unit}
        other = PairRanker(metric).fit(X, labels, qid=qid, **weights)
        np.testing.assert_allclose(other.coef_, plain.coef_, rtol=1e-9)
        np.testing.assert_allclose(other.diagonal_coef_, plain.diagonal_coef_, rtol=1e-9)


def test_shares_of_huge_and_tiny_queries():
    queries = Queries.from_sizes([1, 2, 1])
    assert query_shares([1e308, 5e307, 5e307, 5e307], queries).tolist() == [0.5, 0.25, 0.25]
    assert query_shares([4e-323, 2e-323, 2e-323, 2e-323], queries).tolist() == [0.5, 0.25, 0.25]


@kinds
def test_a_query_weight_repeats_a_query(kind):
    metric, labels, _ = KINDS[kind]
    counts = (qid % 4) + 0.0
    copies = [row for row in range(len(X)) for _ in range(int(counts[row]))]
    again = [number for row in range(len(X)) for number in range(int(counts[row]))]
    weighed = PairRanker(metric).fit(X, labels, qid=qid, query_weight=0.3 * counts)
    number_of_copy = {(row, number): k for k, (row, number) in enumerate(zip(copies, again, strict=True))}
    repeated = y[copies]
    if kind == "pd of preferences":
        edges_again = [
            (number_of_copy[i, number], number_of_copy[j, number], w)
            for i, j, w in edges
            for number in range(int(counts[i]))
        ]
        repeated = preferences(edges_again, len(copies))
    plain = PairRanker(metric).fit(X[copies], repeated, qid=[f"{qid[r]} {n}" for r, n in number_of_copy])
    np.testing.assert_allclose(weighed.coef_, plain.coef_, rtol=1e-8)
    np.testing.assert_allclose(weighed.scale_, plain.scale_, rtol=1e-8)


def test_the_unit_of_a_feature_does_not_matter_with_fit_scale():
    units = np.array([1e-4, 1.0, 1e5])
    for metric in ("ap", "pd"):
        model, other = (PairRanker(metric).fit(data, y, qid=qid) for data in (X, X * units))
        for scores, two in zip(
            model.predict_pairs(X, qid=qid), other.predict_pairs(X * units, qid=qid), strict=True
        ):
            np.testing.assert_allclose(two, scores, rtol=1e-7, atol=1e-12)


def test_a_level_far_from_zero_keeps_its_digits():
    """Sums, differences: the same fit, wherever the features lie."""
    for metric, groups in (("ap", ("sum", "absdiff")), ("pd", ("difference", "signed_square"))):
        near, far = (
            PairRanker(metric, features=groups).fit(np.round(X, 4) + level, y, qid=qid)
            for level in (0.0, 2.0**20)
        )
        np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-6)


# ---------------------------------------------------------------- features of pairs


def check_exchange(groups, symmetric, table=None):
    """Features of (j, i) are those of (i, j), or their negatives; the numbers follow the oracle."""
    scorer = PairScorer(X, np.array([0, len(X)]), groups, symmetric=symmetric)
    left, right, query = scorer.pairs.rows(0, 50)
    forth, back = scorer.features(left, right, query), scorer.features(right, left, query)
    assert forth.tolist() == (back if symmetric else -back).tolist()
    mean = X.mean(axis=0)
    names = [ORACLE_GROUPS["ap" if symmetric else "pd"][name] for name in table or groups]
    expected = [oracles.pair_row(names, X[i], X[j], mean) for i, j in zip(left, right, strict=True)]
    np.testing.assert_allclose(forth, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("groups", "symmetric"), [((name,), kind) for kind, table in TABLES.items() for name in table]
)
def test_symmetry(groups, symmetric):
    check_exchange(groups, symmetric)


def test_the_check_sees_a_wrong_group(monkeypatch):
    wrong = TABLES[True]["sum"]._replace(values=lambda left, right, _: left + 2 * right)
    monkeypatch.setitem(TABLES[True], "sum", wrong)
    with pytest.raises(AssertionError):
        check_exchange(("sum",), symmetric=True)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.data())
@settings(max_examples=60)
def test_numbers_of_pairs(sizes, data):
    offsets = np.r_[0, np.cumsum(sizes)]
    pairs = Numbering(offsets)
    expected = [
        (left, right, q)
        for q in range(len(sizes))
        for left in range(offsets[q], offsets[q + 1])
        for right in range(offsets[q], left)
    ]
    start = data.draw(st.integers(0, pairs.n_pairs))
    stop = data.draw(st.integers(start, pairs.n_pairs))
    left, right, query = pairs.rows(start, stop)
    assert list(zip(left, right, query, strict=True)) == expected[start:stop]
    assert pairs.number(right, left, query).tolist() == list(range(start, stop))


def test_numbers_of_pairs_of_a_huge_query():
    """Where a square root in doubles is rounded."""
    n = 10**8
    pairs = Numbering(np.array([0, n]))
    for number in (0, 1, pairs.n_pairs - 1, n * 1000, 2**50 - 1, 2**50, (n - 1) * (n - 2) // 2 - 1):
        left, right, query = pairs.rows(number, number + 1)
        assert left[0] * (left[0] - 1) // 2 + right[0] == number
        assert 0 <= right[0] < left[0] < n
        assert pairs.number(left, right, query).tolist() == [number]


def test_a_function_of_two_items():
    def gap(left, right):
        return np.column_stack((np.abs(left - right).sum(axis=1), left[:, 0] * right[:, 0]))

    model = PairRanker(features=gap).fit(X, y, qid=qid)
    assert model.pair_features_ == ["phi0", "phi1"]
    u = model.predict_pairs(X, qid=qid)[0]
    query_rows = rows_of[0]
    phi = gap(X[query_rows[:1]], X[query_rows[1:2]])[0]
    assert u[0, 1] == pytest.approx(phi @ model.coef_ + model.intercept_)
    named = PairRanker("pd", features=lambda left, right: left - right).fit(X, votes, qid=qid)
    groups = PairRanker("pd", features=("difference",)).fit(X, votes, qid=qid)
    np.testing.assert_allclose(named.coef_, groups.coef_)
    compressed = PairRanker(features=gap).fit(sparse.csr_array(X), y, qid=qid)
    np.testing.assert_allclose(compressed.coef_, model.coef_)
    sparse_phi = PairRanker(features=lambda left, right: sparse.csr_array(gap(left, right))).fit(
        X, y, qid=qid
    )
    assert sparse_phi.coef_.tolist() == model.coef_.tolist()
    assert len(model.diagonal_coef_) == 8  # the features, their squares, and phi of an item and itself
    same = np.hstack((X, X**2, gap(X, X)))[query_rows]
    np.testing.assert_allclose(np.diag(u), same @ model.diagonal_coef_ + model.diagonal_intercept_)


@pytest.mark.parametrize(
    ("metric", "function", "error", "says"),
    [
        ("ap", lambda left, right: left - right, ParameterError, "symmetric, phi(a, b) = phi(b, a)"),
        ("pd", lambda left, right: left + right, ParameterError, "antisymmetric, phi(a, b) = -phi(b, a)"),
        (
            "ap",
            lambda left, right: np.column_stack((1e12 * (left + right), left[:, 0])),
            ParameterError,
            "Feature 3",
        ),
        ("ap", lambda left, right: left + right + 1e-7 * left, ParameterError, "symmetric"),
        ("pd", lambda left, right: left - right + 1e-7 * left, ParameterError, "antisymmetric"),
        ("ap", lambda left, right: left[:1] + right[:1], ShapeError, "one row for each of"),
        ("ap", lambda left, right: (left + right)[:, 0], ShapeError, "two dimensions"),
        (
            "ap",
            lambda left, right: np.nan * (left + right),
            NonFiniteError,
            "features(left, right) contains NaN",
        ),
        ("ap", lambda *_: [["text"]], ConcordantError, "numeric"),
    ],
)
def test_functions_that_are_no_pair_features(metric, function, error, says):
    with pytest.raises(error, match=re.escape(says)):
        PairRanker(metric, features=function).fit(X, y, qid=qid)


def test_a_function_that_changes_its_width():
    copies = [1, 1, 2]

    def growing(left, right):
        return np.hstack([left + right] * copies.pop(0))

    with pytest.raises(ShapeError, match="3 features for each of"):
        PairRanker(features=growing).fit(X, y, qid=qid)
    copies[:] = [1, 2]  # with the items exchanged
    with pytest.raises(ShapeError, match="3 features for each of"):
        PairRanker(features=growing).fit(X, y, qid=qid)
    copies[:] = [1] * 4 + [2] * 4
    model = PairRanker(features=growing).fit(X, y, qid=qid)
    with pytest.raises(ShapeError, match="3 numbers per pair"):
        model.predict_pairs(X, qid=qid)


# ---------------------------------------------------------------- predictions and decoding


@kinds
def test_pair_scores_have_their_symmetry_and_follow_the_rows(kind):
    metric, labels, _ = KINDS[kind]
    model = PairRanker(metric).fit(X, labels, qid=qid)
    matrices = model.predict_pairs(X, qid=qid)
    assert [u.shape for u in matrices] == [(len(query_rows), len(query_rows)) for query_rows in rows_of]
    for u in matrices:
        assert u.tolist() == (u.T if metric == "ap" else -u.T).tolist()
    order = np.random.default_rng(1).permutation(len(X))
    moved = model.predict_pairs(X[order], qid=qid[order])
    for query_rows, u, other in zip(rows_of, matrices, moved, strict=True):
        now = [row for row in order.tolist() if row in query_rows]  # rows of the query, as they come now
        places = [query_rows.index(row) for row in now]
        np.testing.assert_allclose(other, u[np.ix_(places, places)], rtol=1e-12, atol=1e-15)


def test_equal_items_are_tied_exactly():
    data = np.vstack((X[:4], X[1], X[1]))
    for metric in ("ap", "pd"):
        model = PairRanker(metric).fit(X, y, qid=qid)
        u = model.predict_pairs(data)[0]
        assert u[1, 0] == u[4, 0] == u[5, 0]
        assert u[1, 3] == u[4, 3] == u[5, 3]
        assert u[1, 4] == u[4, 5]
        assert len({u[1, 1], u[4, 4], u[5, 5]}) == 1


def test_many_equal_items_are_tied_exactly():
    """Wide rows, of which a BLAS adds up some in another order than others."""
    rng = np.random.default_rng(0)
    wide, labels = rng.normal(size=(60, 37)), rng.integers(0, 2, 60)
    for metric in ("ap", "pd"):
        model = PairRanker(metric).fit(wide, labels)
        u = model.predict_pairs(np.vstack((wide[:40], np.repeat(wide[:1], 23, axis=0))))[0]
        for column in range(1, 40):
            assert len({u[0, column], *u[40:, column]}) == 1
        assert len(set(np.diag(u)[40:]) | {u[0, 0]}) == 1


@kinds
def test_rank_decode_and_score_agree(kind):
    metric, labels, _ = KINDS[kind]
    model = PairRanker(metric).fit(X, labels, qid=qid)
    decoded, places = model.decode(X, qid=qid), model.rank(X, qid=qid)
    for query_rows, decoding, u in zip(rows_of, decoded, model.predict_pairs(X, qid=qid), strict=True):
        assert decoding.proven
        assert places[query_rows].tolist() == decoding.positions.tolist()
        direct = average_precision(u) if metric == "ap" else feedback_arc(u)
        assert direct.order.tolist() == decoding.order.tolist()
    read = cc.metric(metric)
    sign = 1 if read.greater_is_better else -1
    assert model.score(X, labels, qid=qid) == sign * read(labels, -places, qid=qid)
    weights = 1.0 + qid % 2
    assert model.score(-X, labels, qid=qid, query_weight=weights) != model.score(-X, labels, qid=qid)


CLAIMS = {  # of the paper, for labels that are not only 0 and 1
    ("ap", "auto"): ("every distribution", "Theorem 3"),
    ("ap", "diagonal"): ("P_reinforce", "Theorem 4"),
    ("ap", "beam"): ("proven_decode", "Theorem 3"),
    ("pd", "auto"): ("every distribution", "Theorem 3"),
    ("pd", "edge-deletion"): ("P_DAG", "Theorem 7"),
    ("pd", "borda"): ("P_f", "Theorem 6"),
    ("pd", "insertion"): ("proven_decode", "search"),
}


@pytest.mark.parametrize(("metric", "decoder"), CLAIMS)
def test_every_decoder(metric, decoder):
    condition, theorem = CLAIMS[metric, decoder]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PairRanker(metric, decoder=decoder).fit(X, y, qid=qid)
    assert [warning.filename for warning in caught] == [__file__] * (decoder != "auto")
    for warning in caught:
        text = (
            f"decoder={decoder!r} is optimal for {metric} only if labels satisfy {condition}. decoder='auto' "
        )
        assert str(warning.message).startswith(text)
        assert issubclass(warning.category, GuaranteeWarning)
    assert sorted(model.rank(X, qid=qid)[rows_of[0]].tolist()) == list(range(1, len(rows_of[0]) + 1))
    best = PairRanker(metric).fit(X, y, qid=qid).decode(X, qid=qid)
    for decoding, exact in zip(model.decode(X, qid=qid), best, strict=True):
        sign = 1 if metric == "ap" else -1
        assert sign * decoding.value <= sign * exact.value + 1e-9
    assert model.basis_ == model.certificate_.condition == condition
    text = model.certificate_.guaranteed()
    assert theorem in text
    assert ("proven" in text) == (condition in ("every distribution", "proven_decode"))
    assert f"pairs, {decoder}: " in text


def test_there_are_claims_of_every_method_of_the_decoders():
    methods = {"ap": sys.modules[average_precision.__module__], "pd": sys.modules[feedback_arc.__module__]}
    assert set(CLAIMS) == {(metric, name) for metric, module in methods.items() for name in module.METHODS}
    assert {metric: set(names) for metric, names in OF_PAIRS.items()} == {
        metric: set(module.METHODS) for metric, module in methods.items()
    }


@pytest.mark.parametrize("decoder", OF_PAIRS["pd"])
def test_on_two_grades_every_decoder_of_pd_will_do(decoder):
    """In each query: which two does not matter."""
    model = PairRanker("pd", decoder=decoder).fit(X, np.where(y > 1, 3 + qid % 2, qid % 2), qid=qid)
    assert (model.certificate_.status, model.sample_.space) == ("proven", "binary")


def test_the_decoder_may_be_changed_after_the_fit():
    model = PairRanker("pd").fit(X, votes, qid=qid)
    with pytest.warns(GuaranteeWarning, match="'borda' is optimal for pd only if labels satisfy P_f"):
        borda = PairRanker("pd", decoder="borda").fit(X, votes, qid=qid)
    assert model.set_params(decoder="borda").rank(X, qid=qid).tolist() == borda.rank(X, qid=qid).tolist()
    assert (model.basis_, model.certificate_) == ("P_f", borda.certificate_)
    model.set_params(decoder="diagonal")
    for call in (lambda: model.rank(X, qid=qid), lambda: model.certificate_, lambda: model.basis_):
        with pytest.raises(UnknownNameError, match="unknown decoder of pd 'diagonal'"):
            call()


def test_other_parameters_wait_for_the_next_fit():
    model = PairRanker("pd", 0.5, features=("difference",)).fit(X, votes, qid=qid)
    score, places = model.score(X, votes, qid=qid), model.rank(X, qid=qid).tolist()
    text_before = str(model.certificate_)
    model.set_params(metric="ndcg", alpha=-1.0, features="none", fit_scale=None)
    assert model.score(X, votes, qid=qid) == score
    assert model.rank(X, qid=qid).tolist() == places
    assert str(model.certificate_) == text_before
    assert (model.metric_, model.alpha_) == (cc.metric("pd"), 0.5)


def test_the_time_limit_is_passed_on(monkeypatch):
    asked = []

    def spied(u, **options):
        asked.append(options["time_limit"])
        return feedback_arc(u, **options)

    model = PairRanker("pd", time_limit=7.5).fit(X, votes, qid=qid)
    monkeypatch.setattr(cc.decoders, "feedback_arc", spied)
    model.rank(X, qid=qid)
    model.set_params(time_limit=3.25).rank(X, qid=qid)
    assert set(asked) == {7.5, 3.25}


def test_certificates_are_values_and_say_what_was_done():
    strict = cc.metric("ap", convention=cc.Convention(relevant_from=2))
    certificate, two = (PairRanker(strict, 0.25).fit(X, y, qid=qid).certificate_ for _ in range(2))
    assert certificate == two
    text = " ".join(str(certificate).split())
    assert text.startswith(
        f"{strict} on binary, pairs, auto: proven. It is consistent for every distribution"
    )
    assert "penalties that go to 0" in certificate.limits()
    assert "E[y_i / sum(y)] by those of items" in certificate.limits()
    assert "at alpha=0.25" in text
    other = PairRanker("pd").fit(X, y, qid=qid).certificate_
    assert certificate != other
    assert "by those of items" not in str(other)


# ---------------------------------------------------------------- what free features reach


def repeated_items(n, n_labels):
    """The same items, one feature each, in one query per label."""
    return np.tile(np.eye(n), (n_labels, 1)), np.repeat(np.arange(n_labels), n)


def expected_ap(labels, chances, order):
    """Mean over label vectors of the average precision of an order."""
    values = [oracles.ap(label, order) for label in labels]
    return float(np.dot(chances, values))


def outside_reinforce(rng, n=4):
    """Labels and chances for which sorting by E[y_i / sum(y)] loses something; what is best; and u."""
    labels = [label for label in itertools.product((0, 1), repeat=n) if any(label)]
    while True:
        chances = rng.dirichlet(np.full(len(labels), 0.15))
        u = sum(c * np.outer(label, label) / sum(label) for c, label in zip(chances, labels, strict=True))
        values = {order: expected_ap(labels, chances, order) for order in itertools.permutations(range(n))}
        if max(values.values()) - values[tuple(np.argsort(-np.diag(u)).tolist())] > 0.02:
            return labels, chances, u, values


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # the diagonal is the baseline
@pytest.mark.parametrize("seed", range(4))
def test_ap_outside_its_condition(seed):
    """Weighted by its chances, each label a query: u is E[y_i y_j / sum(y)], and the decode is Bayes."""
    labels, chances, u, values = outside_reinforce(np.random.default_rng(seed))
    X, qid = repeated_items(4, len(labels))
    data = (X, np.ravel(labels))
    options = {"qid": qid, "query_weight": chances[qid]}
    model = PairRanker("ap", 1e-10, features=("cross",)).fit(*data, **options)
    np.testing.assert_allclose(model.predict_pairs(X[:4])[0], u, atol=1e-7)
    decoded = model.decode(X[:4])[0]
    best = max(values.values())
    assert values[tuple(decoded.order.tolist())] == pytest.approx(best, abs=1e-6)
    assert decoded.value == pytest.approx(best, abs=1e-6)
    assert model.score(*data, **options) == pytest.approx(best, abs=1e-6)
    linear = LinearRanker("ap", "squared", 1e-8, assume="P_reinforce", tol=1e-12).fit(*data, **options)
    assert linear.score(*data, **options) < best - 0.01
    diagonal = PairRanker("ap", 1e-10, features=("cross",), decoder="diagonal").fit(*data, **options)
    assert diagonal.score(*data, **options) < best - 0.01


def test_the_diagonal_follows_products_of_two_features():
    """One relevant item, most often one of those with one feature of two: no sum of features says that."""
    items = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    chances, rows, qid = np.array([0.1, 0.4, 0.4, 0.1]), np.tile(items, (4, 1)), np.repeat(np.arange(4), 4)
    options = {"qid": qid, "query_weight": chances[qid]}
    labels = np.eye(4)
    best = max(expected_ap(labels, chances, order) for order in itertools.permutations(range(4)))
    model = PairRanker("ap", 1e-9, features=("cross",)).fit(rows, labels.ravel(), **options)
    np.testing.assert_allclose(model.predict_pairs(items)[0], np.diag(chances), atol=1e-6)
    assert model.score(rows, labels.ravel(), **options) == pytest.approx(best)
    asked = PairRanker("ap", 1e-9, features=lambda left, right: (left * right).prod(axis=1, keepdims=True))
    assert asked.fit(rows, labels.ravel(), **options).score(rows, labels.ravel(), **options) == pytest.approx(
        best
    )
    without = PairRanker("ap", 1e-9, features=("product",)).fit(rows, labels.ravel(), **options)
    assert without.score(rows, labels.ravel(), **options) < best - 0.04


def cyclic_votes(rng, n=4):
    """Voters with orders whose majorities form a cycle, such that Borda's order is not the best."""
    orders = list(itertools.permutations(range(n)))
    while True:
        chances = rng.dirichlet(np.full(len(orders), 0.1))
        d = np.zeros((n, n))
        for chance, order in zip(chances, orders, strict=True):
            for i, j in itertools.combinations(order, 2):
                d[i, j] += chance
                d[j, i] -= chance
        paid = {t: sum(max(d[j, i], 0) for i, j in itertools.combinations(t, 2)) for t in orders}
        borda = tuple(np.argsort(-d.sum(axis=1)).tolist())
        if min(paid.values()) > 0.02 and paid[borda] > min(paid.values()) + 0.02:
            return orders, chances, d, paid


@pytest.mark.parametrize("seed", range(4))
def test_pd_with_a_cycle(seed):
    orders, chances, d, paid = cyclic_votes(np.random.default_rng(seed))
    X, qid = repeated_items(4, len(orders))
    pairs = [(q * 4 + i, q * 4 + j) for q, t in enumerate(orders) for i, j in itertools.combinations(t, 2)]
    y = Preferences(*np.transpose(pairs), len(X))
    options = {"qid": qid, "query_weight": chances[qid]}
    model = PairRanker("pd", 1e-10, features=("cross",)).fit(X, y, **options)
    np.testing.assert_allclose(model.predict_pairs(X[:4])[0], d, atol=1e-7)
    decoded = model.decode(X[:4])[0]
    assert decoded.value == pytest.approx(min(paid.values()), abs=1e-6)
    assert paid[tuple(decoded.order.tolist())] == pytest.approx(min(paid.values()), abs=1e-6)
    unavoidable = sum(min(a, b) for a, b in ((0.5 + v / 2, 0.5 - v / 2) for v in d[np.triu_indices(4, 1)]))
    assert model.score(X, y, **options) == pytest.approx(-unavoidable - min(paid.values()), abs=1e-6)
    linear = LinearRanker("pd", "squared", 1e-8, assume="P_f", tol=1e-12).fit(X, y, **options)
    assert linear.score(X, y, **options) < model.score(X, y, **options) - 0.01


def test_features_that_can_express_a_cycle():
    """Rock, paper, scissors in three features: differences and context cannot, the others can."""
    angle = 2 * np.pi * np.arange(3) / 3
    X = np.column_stack((np.cos(angle), np.sin(angle), np.cos(angle + 0.3)))
    y = Preferences([0, 1, 2], [1, 2, 0], 3, [3.0, 2.0, 1.0])
    for group in ("signed_square", "cross"):
        best = PairRanker("pd", 1e-9, features=(group,)).fit(X, y)
        assert best.score(X, y) == -1.0
        u = best.predict_pairs(X)[0]
        assert min(u[0, 1], u[1, 2], u[2, 0]) > 0
    for group in ("difference", "context"):
        level = PairRanker("pd", 1e-9, features=(group,)).fit(X, y).predict_pairs(X)[0]
        assert level[0, 1] + level[1, 2] + level[2, 0] == pytest.approx(0.0, abs=1e-9)


# ---------------------------------------------------------------- kinds of data


@pytest.mark.parametrize("groups", ["auto", ("context", "cross")], ids=["auto", "context"])
@pytest.mark.parametrize("metric", ["ap", "pd"])
def test_sparse_and_single_precision(metric, groups):
    holes = np.where(X > 0.2, X, 0.0)
    dense = PairRanker(metric, features=groups).fit(holes, y, qid=qid)
    for rows in (sparse.csr_array(holes), sparse.csr_matrix(holes), sparse.coo_array(holes)):
        model = PairRanker(metric, features=groups).fit(rows, y, qid=qid)
        np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-9, atol=1e-14)
        assert model.rank(rows, qid=qid).tolist() == dense.rank(holes, qid=qid).tolist()
    single = holes.astype(np.float32)
    model = PairRanker(metric, features=groups).fit(single, y, qid=qid)
    double = PairRanker(metric, features=groups).fit(single.astype(np.float64), y, qid=qid)
    np.testing.assert_allclose(model.coef_, double.coef_, rtol=1e-12)


@pytest.mark.parametrize("metric", ["ap", "pd"])
def test_constant_features_have_no_weight(metric):
    data = np.column_stack((X, np.full(len(X), 1e6), np.zeros(len(X))))
    groups = {"ap": ("sum", "product", "absdiff"), "pd": ("difference", "signed_square")}[metric]
    for alpha in (0.1, 0.0):
        model = PairRanker(metric, alpha, features=groups).fit(data, y, qid=qid)
        plain = PairRanker(metric, alpha, features=groups).fit(X, y, qid=qid)
        weights = model.coef_.reshape(len(groups), 5)
        assert not weights[:, 3:].any()
        np.testing.assert_allclose(weights[:, :3].ravel(), plain.coef_, rtol=1e-7)


def test_single_items_and_empty_queries():
    sizes = [0, 1, 3, 0, 1]
    queries = Queries.from_sizes(sizes)
    for metric in ("ap", "pd"):
        model = PairRanker(metric).fit(X[:5], [0, 1, 0, 2, 1], qid=queries)
        assert [u.shape[0] for u in model.predict_pairs(X[:5], qid=queries)] == sizes
        assert [len(decoding.order) for decoding in model.decode(X[:5], qid=queries)] == sizes
        assert model.rank(X[:5], qid=queries)[[0, 4]].tolist() == [1, 1]
        assert all(decoding.proven for decoding in model.decode(X[:5], qid=queries))


NOTHING = {
    "ap, none relevant": ("ap", 0 * y, {}, "a relevant item"),
    "ap, none that counts": ("ap", y, {"sample_weight": (y == 0) + 0.0}, "a relevant item"),
    "pd, all 0": ("pd", 0 * y, {}, "labels that differ"),
    "pd, all 2": ("pd", 0 * y + 2, {}, "labels that differ"),
    "pd, by query": ("pd", qid % 3, {}, "labels that differ"),
    "pd, none that count": ("pd", y, {"sample_weight": (y == 1) + 0.0}, "labels that differ"),
    "pd, no votes": ("pd", Preferences([], [], len(y)), {}, "labels that differ"),
    "pd, votes of nobody": (
        "pd",
        Preferences(rows_of[0][:1], rows_of[0][1:2], len(y)),
        {"sample_weight": np.arange(len(y)) != rows_of[0][0]},
        "labels that differ",
    ),
    "pd, no query that counts": (
        "pd",
        Preferences(rows_of[0][:1], rows_of[0][1:2], len(y)),
        {"query_weight": qid != qid[rows_of[0][0]]},
        "labels that differ",
    ),
}


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
@pytest.mark.parametrize("name", NOTHING)
def test_nothing_to_learn_warns(name):
    metric, labels, weights, lacking = NOTHING[name]
    with pytest.warns(UserWarning, match=f"no query has {lacking}, at a weight above 0") as caught:
        model = PairRanker(metric).fit(X, labels, qid=qid, **weights)
    assert {warning.filename for warning in caught} == {__file__}
    assert len(caught) == 1 + model.certificate_.claim.items_weighted
    assert model.n_informative_ == 0
    assert not model.coef_.any()
    assert not model.diagonal_coef_.any()
    assert sorted(model.rank(X, qid=qid)[rows_of[0]].tolist()) == list(range(1, len(rows_of[0]) + 1))


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
@kinds
def test_queries_from_which_something_is_learned(kind):
    """Counted by hand, with rows and queries that do not count."""
    metric, labels, target = KINDS[kind]
    rng = np.random.default_rng(5)
    rows, whole = (rng.random(len(X)) < 0.6) + 0.0, (qid % 2) + 0.0
    model = PairRanker(metric).fit(X, labels, qid=qid, sample_weight=rows, query_weight=whole)
    learned = 0
    for query_rows in rows_of:
        counted_rows = [row for row in query_rows if rows[row]] if whole[query_rows[0]] else []
        if metric == "ap":
            learned += any(y[row] >= 1 for row in counted_rows)
        else:
            learned += any(target(i, j) for i, j in itertools.combinations(counted_rows, 2))
    assert model.n_informative_ == learned
    assert 0 < learned < len(rows_of)


def test_equal_labels_teach_ap_something():
    """All items of some queries are relevant, none of others: pairs of the former have the larger scores."""
    levels = X.copy()
    levels[:, 0] = qid % 2
    model = PairRanker("ap", features=("context",)).fit(levels, qid % 2, qid=qid)
    assert model.n_informative_ == sum(q % 2 for q in set(qid.tolist()))
    assert model.coef_.any()


@pytest.mark.parametrize("metric", ["ap", "pd"])
def test_only_single_items(metric):
    model = PairRanker(metric, features=lambda a, b: (a - b) ** 2 if metric == "ap" else a - b)
    alone = {"qid": np.arange(len(X))}
    if metric == "ap":
        assert model.fit(X, y, **alone).n_informative_ == (y >= 1).sum()  # the diagonal learns
    else:
        with pytest.warns(UserWarning, match="no query has labels that differ"):
            model.fit(X, y, **alone)
    assert not model.coef_.any()
    assert model.rank(X, **alone).tolist() == [1] * len(X)


def test_rounding_that_spoils_a_fit_is_said(monkeypatch):
    def spoiled(moments, alpha):
        return dataclasses.replace(ridge(moments, alpha), excess=0.5, converged=False, stopped_by="precision")

    monkeypatch.setattr(pair_training, "ridge", spoiled)
    with pytest.warns(ConvergenceWarning, match=r"may be 1\.0e\+00 or more above its minimum") as caught:
        model = PairRanker("ap").fit(X, y, qid=qid)
    assert [warning.filename for warning in caught] == [__file__]
    assert not model.solution_.converged
    optimality = model.certificate_.optimality
    assert (optimality.excess, optimality.converged, optimality.stopped_by) == (1.0, False, "precision")
    text = " ".join(str(model.certificate_).split())
    assert "; rounding kept the solver from getting closer." in text


def test_contradicting_votes_cancel():
    model = PairRanker("pd", 1e-9, features=("difference",))
    both = Preferences([0, 1, 1], [1, 0, 2], 3, [2.0, 2.0, 1.0])
    single = Preferences([1], [2], 3)
    assert model.fit(X[:3], both).coef_.tolist() == clone(model).fit(X[:3], single).coef_.tolist()
    assert model.n_informative_ == 1
    with pytest.warns(UserWarning, match="no query has labels that differ"):
        PairRanker("pd").fit(X[:3], Preferences([0, 1], [1, 0], 3))


def test_relevance_is_the_conventions():
    strict = cc.metric("ap", convention=cc.Convention(relevant_from=2))
    ranker, two = PairRanker(strict).fit(X, y, qid=qid), PairRanker("ap").fit(X, y == 2, qid=qid)
    assert ranker.coef_.tolist() == two.coef_.tolist()
    assert ranker.diagonal_coef_.tolist() == two.diagonal_coef_.tolist()


def test_a_new_fit_replaces_the_old():
    model = PairRanker("ap").fit(X, y, qid=qid)
    model.set_params(metric="pd").fit(X[:, :2], votes, qid=qid)
    fresh = PairRanker("pd").fit(X[:, :2], votes, qid=qid)
    assert vars(model).keys() == vars(fresh).keys()
    assert model.coef_.tolist() == fresh.coef_.tolist()
    assert model.diagonal_coef_.shape == (0,)


def test_data_are_left_alone():
    data, labels, ids = X.copy(), y.copy(), qid.copy()
    PairRanker(features=lambda left, right: left + right).fit(data, labels, qid=ids)
    assert (data == X).all()
    assert (labels == y).all()
    assert (ids == qid).all()


@pytest.mark.parametrize("metric", ["ap", "pd"])
def test_a_bar_goes_to_standard_error_only(metric, capsys):
    model = PairRanker(metric).fit(X, y, qid=qid)
    model.rank(X, qid=qid)
    assert capsys.readouterr() == ("", "")
    model.set_params(verbose=1).fit(X, y, qid=qid).rank(X, qid=qid)
    out, err = capsys.readouterr()
    assert out == ""
    assert "decoding" in err
    assert "pairs" in err or "items" in err


values = st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.0, 1e-300, 1.0, -1.0, 1e80])


@given(st.data())
@settings(max_examples=60)
@pytest.mark.filterwarnings("ignore:Nothing was learned")
@pytest.mark.filterwarnings("ignore::concordant.exceptions.LabelWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_anything_finite_is_ranked(data):
    """Ties, zeros, huge and tiny features: an order of every query, or a named error."""
    n = data.draw(st.integers(1, 7))
    rows = np.array(data.draw(st.lists(st.tuples(values, values), min_size=n, max_size=n)))
    labels = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    ids = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    metric = data.draw(st.sampled_from(["ap", "pd"]))
    alpha = data.draw(st.sampled_from([0.0, 1e-12, 0.1, 1e12]))
    try:
        model = PairRanker(metric, alpha).fit(rows, labels, qid=ids)
        places = model.rank(rows, qid=ids)
    except NonFiniteError as error:
        assert np.abs(rows).max() > 1e70, error  # noqa: PT017
        return
    for q in set(ids.tolist()):
        assert sorted(places[ids == q].tolist()) == list(range(1, (ids == q).sum() + 1))


# ---------------------------------------------------------------- errors


def test_nothing_works_before_fit():
    for call in (PairRanker().rank, PairRanker().decode, PairRanker().predict_pairs):
        with pytest.raises(NotFittedError):
            call(X)
    with pytest.raises(NotFittedError):
        PairRanker().score(X, y)


BAD = {
    "alpha < 0": ({"alpha": -1.0}, ParameterError, "alpha must be "),
    "alpha NaN": ({"alpha": np.nan}, ParameterError, "alpha must be "),
    "alpha text": ({"alpha": "small"}, ParameterError, "alpha must be "),
    "fit_scale": ({"fit_scale": "no"}, ParameterError, "fit_scale must be "),
    "time_limit": ({"time_limit": -1}, ParameterError, "time_limit must be "),
    "metric": ({"metric": "ndcg"}, ParameterError, "'ap' or 'pd' without a cutoff, got 'ndcg'. LinearRanker"),
    "unknown metric": ({"metric": "mapp"}, UnknownNameError, "unknown metric"),
    "cut": ({"metric": "ap@10"}, ParameterError, "'ap' or 'pd' without a cutoff"),
    "comparisons": ({"metric": "comparison_error"}, ParameterError, "'ap' or 'pd' without"),
    "weighted": ({"metric": "wpd"}, ParameterError, "'ap' or 'pd' without"),
    "decoder": ({"decoder": "borda"}, UnknownNameError, "diagonal"),
    "decoder of pd": ({"metric": "pd", "decoder": "diagonal"}, UnknownNameError, "edge-deletion"),
    "no decoder": ({"decoder": None}, UnknownNameError, "unknown decoder of ap None"),
    "group": ({"features": ("sums",)}, UnknownNameError, "Did you mean 'sum'?"),
    "group of pd": ({"features": ("difference",)}, UnknownNameError, "group of pair features of ap"),
    "one name": ({"features": "products"}, UnknownNameError, "Did you mean 'product'?"),
    "no groups": ({"features": ()}, ParameterError, "a tuple of names or a function"),
    "no features": ({"features": None}, ParameterError, "a tuple of names or a function"),
    "numbers": ({"features": (1,)}, UnknownNameError, "1"),
    "twice": ({"features": ("sum", "sum")}, ParameterError, "a tuple of different names"),
    "twice by auto": ({"features": ("auto", "sum")}, ParameterError, "a tuple of different names"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_named_before_any_work(name, monkeypatch):
    parameters, error, says = BAD[name]
    monkeypatch.setattr(PairRanker, "checked_features", None)
    with pytest.raises(error, match=re.escape(says)):
        PairRanker(**parameters).fit(X, y, qid=qid)


def put(values, row, value):
    changed = np.array(values, dtype=float)
    changed[row] = value
    return changed


names = np.array([f"query {q}" for q in qid])
ROWS = {
    "negative grade": ({"y": put(y, 6, -1)}, GradeError, f"grade -1 at row 6 (query '{names[6]}')"),
    "NaN grade": ({"y": put(y, 3, np.nan)}, NonFiniteError, f"y is nan at row 3 (query '{names[3]}')"),
    "short y": ({"y": y[:-1]}, LengthMismatchError, "y has"),
    "short qid": ({"qid": names[:-1]}, LengthMismatchError, "qid has"),
    "short weight": ({"sample_weight": np.ones(3)}, LengthMismatchError, "sample_weight has 3"),
    "negative weight": ({"sample_weight": put(y, 2, -1)}, NonFiniteError, "sample_weight is -1.0 at row 2"),
    "no weight": ({"sample_weight": 0 * y}, ParameterError, "sample_weight is zero for every row"),
    "two weights": ({"query_weight": put(qid, rows_of[0][0], 77)}, LabelError, "is both 5 and 77"),
    "no labels": ({"y": None}, ValueError, "requires y to be passed"),
    "NaN feature": ({"X": put(X, (4, 1), np.nan)}, ValueError, "contains NaN"),
    "preferences of ap": ({"y": votes}, LabelError, "ap reads grades, not Preferences"),
    "few preferences": ({"y": Preferences([0], [1], 5), "metric": "pd"}, LengthMismatchError, "y has 5"),
    "other queries": (
        {"y": Preferences([rows_of[0][0]], [rows_of[1][0]], len(X)), "metric": "pd"},
        LabelError,
        "of different queries",
    ),
    "orders": ({"y": Permutations(np.ones(len(X))), "metric": "pd"}, LabelError, "not Permutations"),
    "overflow": ({"X": X * 1e200}, NonFiniteError, "rescale X"),
    "huge preferences": (
        {"y": Preferences(votes.better, votes.worse, len(X), votes.weights * 1e200), "metric": "pd"},
        NonFiniteError,
        "rescale X, the labels",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_bad_rows_are_named(name):
    changes, error, says = ROWS[name]
    rows = {"X": X, "y": y, "qid": names} | {part: v for part, v in changes.items() if part != "metric"}
    with pytest.raises(error, match=re.escape(says)):
        PairRanker(changes.get("metric", "ap")).fit(rows.pop("X"), rows.pop("y"), **rows)


@pytest.mark.parametrize("metric", ["ap", "pd"])
def test_features_too_large_to_be_scored(metric):
    model = PairRanker(metric).fit(X, y, qid=qid)
    for size in (1e155, 1e300):
        for call in (model.rank, model.predict_pairs, model.decode):
            with pytest.raises(NonFiniteError, match="rescale X"):
                call(X * size, qid=qid)
    if metric == "ap":  # the diagonal alone
        with pytest.raises(NonFiniteError, match="rescale X"):
            model.predict_pairs(X[:1] * 1e300)


def test_auto_and_more():
    groups = PairRanker("pd", features=("auto", "cross")).fit(X, votes, qid=qid).groups_
    assert groups == ("difference", "signed_square", "context", "cross")
    assert PairRanker(features=["cross", "auto"]).fit(X, y, qid=qid).groups_[0] == "cross"


def test_too_many_pair_features():
    wide = sparse.csr_array((len(X), 300))
    with pytest.raises(ParameterError, match="45450 features per pair or item, but at most 20000"):
        PairRanker(features=("cross",)).fit(wide, y, qid=qid)
    wider = sparse.csr_array((len(X), 15_000))
    with pytest.raises(
        ParameterError, match="30001 features per pair or item, but at most 20000"
    ):  # of single items
        PairRanker(features=lambda a, b: (a + b)[:, :1]).fit(wider, y, qid=qid)


# ---------------------------------------------------------------- ridge on its own


def moments_of(rows, targets, **options):
    return Moments.from_blocks(
        [Block(np.array(rows), np.array(targets), np.ones(len(rows)))], len(rows[0]), **options
    )


def test_ridge_of_a_singular_problem_is_the_shortest():
    moments = moments_of(
        [[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [3.0, 3.0, 0.0]], [2.0, 4.0, 6.0], intercept=False
    )
    solution = ridge(moments, 0.0)
    np.testing.assert_allclose(solution.w, [1.0, 1.0, 0.0], atol=1e-12)
    assert solution.converged
    assert solution.value == pytest.approx(0.0, abs=1e-12)
    assert ridge(moments, 1e-30).converged  # a penalty that rounding hides
    units = moments_of([[1.0, 1e-6], [2.0, 2e-6], [3.0, 3e-6]], [2.0, 4.0, 6.0], intercept=False)
    np.testing.assert_allclose(ridge(units, 0.0).w, [1.0, 1e6])  # in units of the features: 1 and 1


@pytest.mark.parametrize("seed", range(8))
def test_a_penalty_that_rounding_hides_does_no_harm(seed):
    """Three features, one the sum of the others: as without a penalty, not whatever rounding makes of it."""
    rng = np.random.default_rng(seed)
    rows, targets = rng.normal(size=(20, 2)), rng.normal(size=20)
    moments = moments_of(np.column_stack((rows, rows.sum(axis=1))), targets, intercept=True)
    np.testing.assert_allclose(ridge(moments, 1e-13).w, ridge(moments, 0.0).w, rtol=1e-6)


def test_ridge_without_features_or_rows():
    assert ridge(moments_of([[], []], [1.0, 2.0], intercept=True), 0.1).w.shape == (0,)
    nothing = ridge(Moments.from_blocks([], 2, intercept=True), 0.0)
    assert nothing.w.tolist() == [0.0, 0.0]
    assert nothing.converged


@pytest.mark.parametrize("alpha", [0.0, 1e-12, 0.3, 1e3])
def test_the_excess_is_what_wrong_weights_cost(alpha):
    rng = np.random.default_rng(0)
    moments = moments_of(rng.normal(size=(20, 3)) * [1e-3, 1.0, 1e4], rng.normal(size=20), intercept=True)
    best = ridge(moments, alpha)
    assert best.converged
    assert best.excess <= 1e-12
    wrong = best.w + np.array([1.0, -0.5, 1e-5])
    solution = evaluate_weights(moments, alpha, wrong, Inverse.from_gram(moments.gram, alpha))
    assert solution.excess == pytest.approx(solution.value - best.value)
    assert (solution.converged, solution.stopped_by) == (False, "precision")
    assert solution.gradient_norm == pytest.approx(
        np.linalg.norm(2 * moments.gram @ (wrong - best.w) + alpha * (wrong - best.w))
    )


def test_a_gradient_outside_the_kept_space_is_seen():
    """No weights lower this objective in doubles, and yet it is not at its least."""
    moments = moments_of([[1.0, 1.0], [1.0, -1.0]], [3.0, 1.0], intercept=False)
    moments.gram[:] = 2.0  # as if rounding had made the features one
    solution = ridge(moments, 0.0)
    np.testing.assert_allclose(solution.w, [0.75, 0.75])
    assert not solution.converged
    assert solution.excess > 1.0


def test_sums_that_are_no_squares_have_an_inverse():
    """Rounding: not even Cholesky's method works with a penalty of this size."""
    inverse = Inverse.from_gram(np.array([[1.0, 2.0], [2.0, 1.0]]), 0.5)
    np.testing.assert_allclose(inverse(np.array([1.0, 1.0])), np.full(2, 1 / 6.5))
    np.testing.assert_allclose(inverse(np.array([1.0, -1.0])), 0.0, atol=1e-15)


@pytest.mark.parametrize("intercept", [True, False])
def test_sums_over_blocks_far_apart(intercept):
    """Levels that jump between blocks, and a first block that does not count: as of all rows at once."""
    rng = np.random.default_rng(1)
    rows = np.round(rng.normal(size=(90, 2)), 4)
    rows[:10] -= 2.0**40
    rows[50:] += 2.0**20
    targets, weights = np.round(rng.normal(size=90), 4) + 2.0**20, rng.random(90)
    weights[:10] = 0.0
    parts = [slice(0, 10), slice(10, 50), slice(50, 51), slice(51, 90), slice(90, 90)]
    moments = Moments.from_blocks(
        [Block(rows[part], targets[part], weights[part]) for part in parts], 2, intercept=intercept
    )
    means = weights @ rows / weights.sum() if intercept else np.zeros(2)
    level = weights @ targets / weights.sum() if intercept else 0.0
    off, beyond = rows[10:] - means, targets[10:] - level
    np.testing.assert_allclose(moments.means, means, rtol=1e-14)
    np.testing.assert_allclose(moments.gram, (off.T * weights[10:]) @ off, rtol=1e-12)
    np.testing.assert_allclose(moments.cross, (off.T * weights[10:]) @ beyond, rtol=1e-8)
    assert moments.square == pytest.approx(weights[10:] @ beyond**2, rel=1e-9)
    assert moments.weight == pytest.approx(weights.sum())


def test_what_does_not_vary_is_left_out():
    level = np.full(50, 0.1) * (1 + 1e-15 * np.arange(50))
    moments = moments_of(np.column_stack((level, np.arange(50.0))), np.arange(50.0) ** 2, intercept=True)
    assert moments.varies.tolist() == [False, True]
    scaled = moments.scaled(np.ones(2))
    assert not scaled.gram[0].any()
    assert not scaled.gram[:, 0].any()
    assert scaled.cross[0] == 0.0
    assert ridge(scaled, 0.0).w == pytest.approx([0.0, 49.0])


def test_two_problems_as_one():
    first = Solution(np.array([1.0]), 2.0, 3.0, 0.5, 5.0, 2, 1, converged=True, stopped_by="tolerance")
    second = Solution(
        np.array([7.0, 8.0]), 20.0, 4.0, 0.25, 1.0, 1, 3, converged=False, stopped_by="precision"
    )
    for solution, other, order in ((first, second, [1.0, 7.0, 8.0]), (second, first, [7.0, 8.0, 1.0])):
        both = combine_solutions(solution, other)
        assert both.w.tolist() == order
        assert (both.value, both.gradient_norm, both.excess, both.gap) == (22.0, 5.0, 0.75, 6.0)
        assert (both.n_iter, both.n_gradients) == (2, 3)
        assert (both.converged, both.stopped_by) == (False, "precision")
    assert combine_solutions(first, first).converged
    assert combine_solutions(first, first).stopped_by == "tolerance"


# ---------------------------------------------------------------- real data


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # the diagonal is the baseline
def test_mq2008(shared_data):
    """Lists of up to 121 documents: above chance, and the default decoder finds orders worth no less."""
    fold = cc.datasets.load("mq2008", fold=1, folder=shared_data)
    train, test = fold.train, fold.test
    chance = float(cc.metric("ap")(test.y, np.zeros(len(test.y)), qid=test.qid))
    values = []
    for decoder in ("diagonal", "auto"):
        model = PairRanker(decoder=decoder).fit(train.X, train.y, qid=train.qid)
        assert model.solution_.converged
        assert model.score(test.X, test.y, qid=test.qid) > chance + 0.1
        values.append(sum(decoding.value for decoding in model.decode(test.X, qid=test.qid)))
    assert values[1] >= values[0] - 1e-9
