"""LinearRanker on the score-based families: Theorem 6 (any f, under P_f) and Corollary 5 (AP)."""

import itertools
import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold

import concordant as cc
from concordant import LinearRanker, LinearRankerCV, MaxMarginRanker, Preferences, Queries
from concordant.exceptions import LabelError, NoStandardizationError, ParameterError, ShapeError
from concordant.metrics.graphs import net_weights
from concordant.surrogates import Squared

EXACT = {"tol": 1e-13}
votes = cc.synthetic.preferences(n_queries=30, n_items=5, seed=3)


def wins(better, worse, weights, n_items):
    """Number of items beaten; a named function, so that it can be pickled."""
    del worse, weights
    return np.bincount(better, minlength=n_items).astype(float)


def by_hand(X, qid, targets, alpha):
    """Ridge regression of targets about their query's mean, on features about theirs."""
    off = np.vstack([X[qid == q] - X[qid == q].mean(axis=0) for q in np.unique(qid)])
    goal = np.concatenate([targets[qid == q] - targets[qid == q].mean() for q in np.unique(qid)])
    n_queries = len(np.unique(qid))
    hessian = 2 * off.T @ off / n_queries + alpha * np.eye(X.shape[1])
    return np.linalg.solve(hessian, 2 * off.T @ goal / n_queries)


@pytest.mark.parametrize("f", [wins, None, net_weights], ids=["wins", "default", "net"])
def test_the_loss_is_given_f(f):
    """Theorem 6: the squared loss on f(y); the order of the rows of X is that of the ids."""
    model = LinearRanker("pd", "squared", 0.3, assume="P_f", f=f, fit_scale=False, **EXACT)
    model.fit(votes.X, votes.y, qid=votes.qid)
    ask = net_weights if f is None else f
    targets = np.zeros(len(votes.X))
    better, worse, weights, offsets = votes.y.grouped(Queries.from_ids(votes.qid))
    for q in np.unique(votes.qid):
        rows = np.flatnonzero(votes.qid == q)
        edges = slice(offsets[q], offsets[q + 1])
        added = {}
        for i, j, weight in zip(better[edges], worse[edges], weights[edges], strict=True):  # each pair once
            added[i, j] = added.get((i, j), 0.0) + weight
        pairs = np.array(list(added)) - rows[0]
        targets[rows] = ask(pairs[:, 0], pairs[:, 1], np.array(list(added.values())), len(rows))
    np.testing.assert_allclose(model.coef_, by_hand(votes.X, votes.qid, targets, 0.3), rtol=1e-5)
    assert model.basis_ == "P_f"


def test_the_default_is_the_net_weights():
    plain, named = (
        LinearRanker("pd", "squared", assume="P_f", f=f).fit(votes.X, votes.y, qid=votes.qid)
        for f in (None, net_weights)
    )
    assert plain.coef_.tolist() == named.coef_.tolist()
    other = LinearRanker("pd", "squared", assume="P_f", f=wins).fit(votes.X, votes.y, qid=votes.qid)
    assert not np.allclose(plain.coef_, other.coef_, rtol=0.01)  # the comparison can fail


def test_corollary_5_trains_on_shares():
    """y / sum(y), y relevant or not; 0 where nothing is relevant."""
    data = cc.synthetic.grades(n_queries=20, n_items=6, seed=1)
    relevant = (data.y >= 1).astype(float)
    sums = np.array([relevant[data.qid == q].sum() for q in data.qid])
    shares = np.divide(relevant, sums, out=np.zeros_like(sums), where=sums > 0)
    model = LinearRanker("ap", "squared", 0.2, assume="P_reinforce", fit_scale=False, **EXACT)
    model.fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(model.coef_, by_hand(data.X, data.qid, shares, 0.2), rtol=1e-5, atol=1e-9)
    assert model.basis_ == "P_reinforce"


def one_hot_rows(graphs, n):
    """Every graph a query over the same items: rows of the identity, and all preferences."""
    X, qid = np.tile(np.eye(n), (len(graphs), 1)), np.repeat(np.arange(len(graphs)), n)
    edges = [(i + g * n, j + g * n, w) for g, graph in enumerate(graphs) for i, j, w in graph]
    better, worse, weights = map(list, zip(*edges, strict=True))
    return X, Preferences(better, worse, len(X), weights), qid


def expected_pd(graphs, chances, order):
    rank = {item: p for p, item in enumerate(order)}
    return sum(
        c * w for graph, c in zip(graphs, chances, strict=True) for i, j, w in graph if rank[i] > rank[j]
    )


def random_population(rng, n=4, n_graphs=5):
    """Acyclic graphs: edges along random orders, with weights."""
    graphs = []
    for _ in range(n_graphs):
        order = rng.permutation(n)
        edges = [pair for pair in itertools.combinations(order.tolist(), 2) if rng.random() < 0.7]
        graphs.append([(i, j, float(rng.integers(1, 4))) for i, j in edges or [tuple(order[:2].tolist())]])
    return graphs, rng.dirichlet(np.ones(n_graphs))


def inside(graphs, chances, f, n=4):
    """P_f: d_ij > 0 implies E f_i > E f_j."""
    d, scores = np.zeros((n, n)), np.zeros(n)
    for graph, chance in zip(graphs, chances, strict=True):
        for i, j, w in graph:
            d[i, j] += chance * w
            d[j, i] -= chance * w
        i, j, w = (np.array(part) for part in zip(*graph, strict=True))
        scores += chance * np.asarray(f(i, j, w, n), float)
    return all(scores[i] > scores[j] for i, j in np.argwhere(d > 1e-12))


@pytest.mark.parametrize("f", [wins, net_weights], ids=["wins", "net"])
def test_free_scores_reach_the_least_disagreement_inside_and_may_miss_it_outside(f):
    """Theorem 6, and that its condition is needed: the fitted ranker decodes the mean of f."""
    rng, reached, missed = np.random.default_rng(5), 0, 0
    for _ in range(60):
        graphs, chances = random_population(rng)
        X, y, qid = one_hot_rows(graphs, 4)
        model = LinearRanker("pd", Squared(centred=False), 1e-9, assume="P_f", f=f, **EXACT)
        model.fit(X, y, qid=qid, query_weight=chances[qid])
        order = np.argsort(model.rank(X[:4]))
        least = min(expected_pd(graphs, chances, order) for order in itertools.permutations(range(4)))
        best = expected_pd(graphs, chances, order) <= least + 1e-6
        if inside(graphs, chances, f):
            assert best
            reached += 1
        missed += not best
    assert reached > 5
    assert missed > 0


def test_clone_pickle_and_search():
    model = LinearRanker("pd", "squared", assume="P_f", f=wins)
    assert clone(model).f is wins
    assert "wins" in repr(model)
    model.fit(votes.X, votes.y, qid=votes.qid)
    back = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert back.f is wins
    assert back.predict(votes.X).tolist() == model.predict(votes.X).tolist()
    search = LinearRankerCV("pd", "squared", [1.0, 0.1], cv=2, assume="P_f", f=wins)
    search.fit(votes.X, votes.y, qid=votes.qid)
    assert search.basis_ == "P_f"
    plain = LinearRanker("pd", "squared", search.alpha_, assume="P_f", f=wins)
    plain.fit(votes.X, votes.y, qid=votes.qid)
    np.testing.assert_allclose(search.coef_, plain.coef_, rtol=1e-4, atol=1e-8)
    assert MaxMarginRanker().f is None
    assert "f" not in MaxMarginRanker().get_params()


def test_a_grid_search_over_f():
    folds = list(GroupKFold(3).split(votes.X, groups=votes.qid))
    model = LinearRanker("pd", "squared", assume="P_f")
    search = GridSearchCV(model, {"f": [wins, net_weights]}, cv=folds, refit=False)
    with sklearn.config_context(enable_metadata_routing=True):
        search.fit(votes.X, votes.y, qid=votes.qid)
    train, test = folds[0]
    model = LinearRanker("pd", "squared", assume="P_f", f=wins)
    model.fit(votes.X[train], votes.y.take(train), qid=votes.qid[train])
    by_hand = model.score(votes.X[test], votes.y[test], qid=votes.qid[test])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(by_hand)
    assert len(search.cv_results_["params"]) == 2
    assert search.cv_results_["params"][0]["f"] is wins
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    "kind", [LinearRanker, lambda *arguments, **options: LinearRankerCV(*arguments, cv=2, **options)]
)
@pytest.mark.parametrize(
    ("parameters", "error", "says"),
    [
        ({"f": wins}, ParameterError, "only with assume='P_f'"),
        ({"f": wins, "assume": "low_noise"}, ParameterError, "only with assume='P_f'"),
        ({"f": "wins", "assume": "P_f"}, ParameterError, "a function f"),
        ({"f": lambda *_: [1.0], "assume": "P_f"}, ShapeError, "one number for each of its 5 items"),
        ({"f": wins, "assume": "P_f", "surrogate": "preorder"}, LabelError, "reads grades"),
    ],
)
def test_what_is_no_family(kind, parameters, error, says):
    with pytest.raises(error, match=says):
        kind("pd", **parameters).fit(votes.X, votes.y, qid=votes.qid)


def test_what_is_no_family_is_named_before_any_work(monkeypatch):
    monkeypatch.setattr(LinearRanker, "checked_features", None)
    with pytest.raises(ParameterError, match="only with assume='P_f'"):
        LinearRanker("pd", f=wins).fit(votes.X, votes.y, qid=votes.qid)


@pytest.mark.parametrize("kind", [LinearRanker, LinearRankerCV, MaxMarginRanker])
def test_fit_scale_is_true_or_false(kind):
    grades = np.arange(len(votes.X)) % 3
    with pytest.raises(ParameterError, match="fit_scale must be True or False, got 'no'"):
        kind("ndcg", fit_scale="no").fit(votes.X, grades, qid=votes.qid)


def test_labels_that_no_family_reads():
    grades = np.arange(len(votes.X)) % 3
    options = {"assume": "P_f", "f": wins}
    with pytest.raises(NoStandardizationError, match="does not serve these labels"):
        LinearRanker("pd", **options).fit(votes.X, grades, qid=votes.qid)
    with pytest.raises(ParameterError, match="has a standardization without it"):
        LinearRanker("ndcg", **options).fit(votes.X, grades, qid=votes.qid)
    with pytest.raises(ParameterError, match="preorder reads the labels"):
        LinearRanker("ndcg", "preorder", **options).fit(votes.X, grades, qid=votes.qid)


def test_low_noise_is_no_condition_of_an_f_of_the_callers_own():
    """Item 1 is always preferred to item 2, which is low noise, and counting losses ranks it second."""
    votes = Preferences(2 * np.arange(50), 2 * np.arange(50) + 1, 100)
    rows, qid = np.tile(np.eye(2), (50, 1)), np.repeat(np.arange(50), 2)

    def losses(better, worse, weights, n_items):  # noqa: ARG001
        return np.bincount(worse, minlength=n_items)

    model = LinearRanker("pd", "squared", 1e-6, assume="P_f", f=losses).fit(rows, votes, qid=qid)
    assert model.predict(np.eye(2))[0] < model.predict(np.eye(2))[1]
    assert model.certificate_.holds_under == ("P_f",)
    assert model.certificate_.to_dict()["holds_under"] == ["P_f"]
