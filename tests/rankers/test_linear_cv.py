"""LinearRankerCV: the path, the choice, the folds, interruption, errors."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold

import concordant as cc
from concordant import (
    GuaranteeWarning,
    LinearRanker,
    LinearRankerCV,
    Permutations,
    Preferences,
    Queries,
    RankingData,
)
from concordant.exceptions import (
    GradeError,
    LabelError,
    LengthMismatchError,
    ParameterError,
    UnknownNameError,
)
from concordant.rankers import linear_cv
from concordant.rankers.folds import FitRows
from concordant.rankers.linear_cv import FitSplit, PenaltyPath
from concordant.surrogates import Pairwise, Softmax

ALPHAS = [0.01, 10.0, 1.0, 0.1]


def drawn(n_queries=15, n_items=8, n_features=5, seed=0):
    """Noisy grades, rows in any order."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(n_queries) + 100, rng.integers(3, n_items + 1, n_queries)))
    X = rng.normal(size=(len(qid), n_features))
    return X, np.digitize(X[:, 0] + 1.5 * rng.normal(size=len(qid)), [0.0, 1.0, 2.0]), qid


X, y, qid = drawn()
HELD = drawn(seed=1)


def brute_force(splits, alphas, **parameters):
    """Scores by penalty and fold, each fit by itself."""
    scores = np.empty((len(alphas), len(splits)))
    for number, alpha in enumerate(alphas):
        for fold, (train, test) in enumerate(splits):
            model = LinearRanker(alpha=alpha, **parameters).fit(X[train], y[train], qid=qid[train])
            scores[number, fold] = model.score(X[test], y[test], qid=qid[test])
    return scores


def check_choice(model, scores):
    """The penalty is the largest of those with the best mean."""
    np.testing.assert_allclose(model.scores_, scores, atol=1e-12)
    means = scores.mean(axis=1)
    assert model.alpha_ == model.alphas_[np.argmax(means)]
    assert model.best_score_ == pytest.approx(means.max())
    assert model.alphas_.tolist() == sorted(set(ALPHAS), reverse=True)


# ---------------------------------------------------------------- path and choice


@pytest.mark.parametrize("surrogate", [Softmax(), Pairwise("logistic")], ids=str)
@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_the_path_equals_cold_fits(surrogate, solver):
    model = LinearRankerCV("ndcg@5", surrogate, ALPHAS, solver=solver)
    model.alphas_ = np.array(sorted(ALPHAS, reverse=True))
    ranker = model.ranker(1.0)
    recipe = ranker.checked_parameters()
    problem = ranker.problem(recipe, X, y, qid)
    path = PenaltyPath(
        ranker,
        recipe[0],
        lambda: FitSplit(problem, FitRows.from_columns(X, y, qid, None, None)),
        None,
        "fold-0",
    )
    for alpha, (value, solution) in zip(model.alphas_, path.along(model.alphas_), strict=True):
        cold = LinearRanker("ndcg@5", surrogate, alpha, solver=solver, tol=1e-12).fit(X, y, qid=qid)
        off = solution.value - cold.solution_.value
        assert abs(off) <= 1e-4 * cold.solution_.value
        scores = X @ (solution.w / problem.scale)
        assert value == pytest.approx(cc.metric("ndcg@5")(y, scores, qid=qid))
        np.testing.assert_allclose(scores, cold.predict(X), atol=0.02 * np.ptp(scores))


def test_each_fit_begins_where_the_last_one_ended(monkeypatch):
    begun, ended, solved = [], [], LinearRanker.solve

    def caught(self, problem, alpha, start, journal):
        begun.append(start.tolist())
        solution = solved(self, problem, alpha, start, journal)
        ended.append(solution.w.tolist())
        return solution

    monkeypatch.setattr(LinearRanker, "solve", caught)
    LinearRankerCV(alphas=ALPHAS).fit(X, y, qid=qid, eval_set=HELD)
    assert begun == [[0.0] * 5, *ended[:-1]]


def test_the_choice_equals_brute_force():
    model = LinearRankerCV("ndcg@5", alphas=ALPHAS, cv=3, tol=1e-12).fit(X, y, qid=qid)
    splits = list(Queries.from_ids(qid).folds(3))
    check_choice(model, brute_force(splits, model.alphas_, metric="ndcg@5", tol=1e-12))
    whole = LinearRanker("ndcg@5", alpha=model.alpha_, tol=1e-12).fit(X, y, qid=qid)
    assert model.coef_.tolist() == whole.coef_.tolist()
    assert (model.n_queries_, model.basis_, model.n_iter_) == (15, whole.basis_, whole.n_iter_)
    assert model.score(X, y, qid=qid) == whole.score(X, y, qid=qid)


def test_the_check_rejects_a_wrong_choice():
    model = LinearRankerCV("ndcg@5", alphas=ALPHAS, cv=3, tol=1e-12).fit(X, y, qid=qid)
    scores = model.scores_.copy()
    with pytest.raises(AssertionError):
        check_choice(model, scores[::-1])
    model.alpha_ = model.alphas_[np.argmin(scores.mean(axis=1))]
    with pytest.raises(AssertionError):
        check_choice(model, scores)


def test_among_equals_the_largest_penalty_wins():
    """One feature: every penalty gives the same order."""
    model = LinearRankerCV(alphas=ALPHAS, cv=3).fit(X[:, :1], y, qid=qid)
    assert np.ptp(model.scores_, axis=0).max() == 0
    assert model.alpha_ == 10.0


@pytest.mark.parametrize("validation", [HELD, RankingData(*HELD)], ids=["tuple", "data"])
def test_a_validation_set(validation):
    model = LinearRankerCV("ndcg@5", alphas=ALPHAS, tol=1e-12).fit(X, y, qid=qid, eval_set=validation)
    assert model.scores_.shape == (4, 1)
    fits = [LinearRanker("ndcg@5", alpha=alpha, tol=1e-12).fit(X, y, qid=qid) for alpha in model.alphas_]
    check_choice(model, np.array([[fit.score(HELD[0], HELD[1], qid=HELD[2])] for fit in fits]))
    best = fits[model.alphas_.tolist().index(model.alpha_)]
    np.testing.assert_allclose(model.coef_, best.coef_, rtol=1e-4)
    assert model.n_queries_ == 15


def test_a_validation_set_of_frames():
    names = list("abcde")
    frame, validation = (pd.DataFrame(data, columns=names) for data in (X, HELD[0]))
    model = LinearRankerCV(alphas=ALPHAS).fit(frame, y, qid=qid, eval_set=(validation, *HELD[1:]))
    plain = LinearRankerCV(alphas=ALPHAS).fit(X, y, qid=qid, eval_set=HELD)
    assert model.coef_.tolist() == plain.coef_.tolist()
    assert model.feature_names_in_.tolist() == names
    with pytest.raises(ValueError, match="feature names should match"):
        model.fit(frame, y, qid=qid, eval_set=(validation[names[::-1]], *HELD[1:]))


def test_a_loss_is_made_small():
    """Scores of pd are negated: the best is the highest."""
    model = LinearRankerCV("pd", alphas=ALPHAS, cv=3, assume="low_noise").fit(X, np.minimum(y, 1), qid=qid)
    assert (model.scores_ < 0).all()
    assert model.best_score_ == model.scores_.mean(axis=1).max()


# ---------------------------------------------------------------- folds


def folds_seen(monkeypatch, **parameters):
    """Rows of X that each problem was made of, the whole first."""
    rows_by_fit, real = [], LinearRanker.problem
    marked = np.column_stack([X, np.arange(len(X))])

    def caught(self, recipe, features, *columns):
        rows_by_fit.append(features[:, -1].astype(int))
        return real(self, recipe, features, *columns)

    monkeypatch.setattr(LinearRanker, "problem", caught)
    LinearRankerCV(alphas=[1.0], **parameters).fit(marked, y, qid=qid)
    return rows_by_fit


@pytest.mark.parametrize("cv", [2, 5, 15])
def test_folds_never_cut_a_query(monkeypatch, cv):
    whole, *trains = folds_seen(monkeypatch, cv=cv)
    assert len(trains) == cv
    left_out = [np.setdiff1d(whole, train) for train in trains]
    assert sorted(np.concatenate(left_out).tolist()) == whole.tolist()
    for train, test in zip(trains, left_out, strict=True):
        assert not set(qid[train]) & set(qid[test])


CUTS = {
    "pairs": lambda: [(np.arange(30), np.arange(30, len(X))), (np.arange(20, len(X)), np.arange(20))],
    "lists": lambda: [(list(range(30)), list(range(30, len(X)))), (list(range(20, len(X))), list(range(20)))],
    "masks": lambda: [
        (np.arange(len(X)) < 30, np.arange(len(X)) >= 30),
        (np.arange(len(X)) >= 20, np.arange(len(X)) < 20),
    ],
    "iterator": lambda: iter(CUTS["pairs"]()),
}


@pytest.mark.filterwarnings("ignore::concordant.exceptions.QueryWarning")  # some queries are cut
@pytest.mark.parametrize("kind", CUTS)
def test_given_folds(kind):
    model = LinearRankerCV("ndcg@5", alphas=ALPHAS, cv=CUTS[kind](), tol=1e-12).fit(X, y, qid=qid)
    check_choice(model, brute_force(CUTS["pairs"](), model.alphas_, metric="ndcg@5", tol=1e-12))


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored by KFold")  # true, and the user's wish
@pytest.mark.filterwarnings("ignore::concordant.exceptions.QueryWarning")
@pytest.mark.parametrize("splitter", [GroupKFold(3), KFold(3)], ids=["queries", "rows"])
def test_splitters_of_scikit_learn(splitter):
    model = LinearRankerCV("ndcg@5", alphas=ALPHAS, cv=splitter, tol=1e-12).fit(X, y, qid=qid)
    check_choice(
        model, brute_force(list(splitter.split(X, y, qid)), model.alphas_, metric="ndcg@5", tol=1e-12)
    )


def test_one_query_is_cut_by_rows():
    model = LinearRankerCV("ndcg@5", alphas=[1.0, 0.1], cv=4).fit(X, y)
    assert model.scores_.shape == (2, 4)
    assert np.isfinite(model.scores_).all()
    assert model.n_queries_ == 1


def better_first():
    better, worse = np.nonzero((qid[:, None] == qid) & (y[:, None] > y))
    return Preferences(better, worse, len(y))


def observed_orders():
    return Permutations(cc.decoders.positions(y, qid=qid))


LABELS = {
    "grades": ({"metric": "ndcg@5"}, lambda: cc.Grades(y)),
    "list": ({"metric": "ndcg@5"}, y.tolist),
    "polars": ({"metric": "ndcg@5"}, lambda: pl.Series(y)),
    "preferences": ({"metric": "pd", "assume": "low_noise"}, better_first),
    "permutations": ({"metric": "zero_one", "assume": "order_preserving"}, observed_orders),
    "orders": (
        {"metric": "zero_one", "surrogate": "plackett_luce", "assume": "order_preserving"},
        observed_orders,
    ),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize(
    "ids",
    [qid, Queries.from_ids(qid), [f"q{q}" for q in qid], pd.Series(qid)],
    ids=["array", "Queries", "text", "pandas"],
)
def test_labels_and_ids_go_through_folds(kind, ids):
    parameters, make = LABELS[kind]
    model = LinearRankerCV(alphas=[1.0, 0.1], cv=3, **parameters).fit(X, make(), qid=ids)
    splits = list(Queries.from_ids(qid).folds(3))
    labels = cc.Grades(y) if parameters["metric"] == "ndcg@5" else make()
    for fold, (train, test) in enumerate(splits):
        ranker = LinearRanker(alpha=1.0, **parameters).fit(X[train], labels.take(train), qid=qid[train])
        assert model.scores_[0, fold] == ranker.score(X[test], labels.take(test), qid=qid[test])


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
def test_weights_go_through_folds():
    """Queries count in the score as in the fit; a fold whose queries all have weight 0 counts them alike."""
    train, test = next(iter(Queries.from_ids(qid).folds(3)))
    counts = np.where(np.isin(np.arange(len(qid)), test), 0.0, qid % 3 + 1.0)
    for query_weight in ((qid % 3 + 1.0), counts):
        weights = {"sample_weight": 1.0 + y, "query_weight": query_weight}
        model = LinearRankerCV(alphas=[0.1], cv=3).fit(
            X, y, qid=qid, **{k: v.tolist() for k, v in weights.items()}
        )
        taken = {name: column[train] for name, column in weights.items()}
        ranker = LinearRanker(alpha=0.1).fit(X[train], y[train], qid=qid[train], **taken)
        fold_weight = query_weight[test] if query_weight[test].any() else None
        assert model.scores_[0, 0] == ranker.score(X[test], y[test], qid=qid[test], query_weight=fold_weight)


def test_sparse_rows_go_through_folds():
    dense = LinearRankerCV("ndcg@5", alphas=ALPHAS, cv=3, tol=1e-12).fit(X, y, qid=qid)
    rows = LinearRankerCV("ndcg@5", alphas=ALPHAS, cv=3, tol=1e-12).fit(sparse.csr_array(X), y, qid=qid)
    np.testing.assert_allclose(rows.scores_, dense.scores_, atol=1e-9)
    np.testing.assert_allclose(rows.coef_, dense.coef_, rtol=1e-5)


def test_one_fold_at_a_time(monkeypatch):
    """Copies of the rows are made when they are needed, not all at the beginning."""
    events, take, solved = [], FitRows.take, LinearRanker.solve
    monkeypatch.setattr(FitRows, "take", lambda self, rows: events.append("take") or take(self, rows))
    monkeypatch.setattr(
        LinearRanker, "solve", lambda self, *arguments: events.append("solve") or solved(self, *arguments)
    )
    LinearRankerCV(alphas=[1.0], cv=3).fit(X, y, qid=qid)
    assert events == ["take", "take", "solve"] * 3 + ["solve"]


# ---------------------------------------------------------------- warnings and interruption


def test_a_missing_guarantee_is_warned_of_once():
    with pytest.warns(GuaranteeWarning) as caught:
        LinearRankerCV("pd", alphas=ALPHAS, cv=3).fit(X, better_first(), qid=qid)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("validation", [None, HELD], ids=["folds", "validation"])
def test_only_the_kept_fit_warns_of_its_end(validation):
    with pytest.warns(ConvergenceWarning, match="max_iter") as caught:
        LinearRankerCV(alphas=ALPHAS, cv=3, max_iter=1).fit(X, y, qid=qid, eval_set=validation)
    assert [warning.filename for warning in caught] == [__file__]


def test_undefined_on_all_held_out_queries():
    with (
        pytest.warns(UserWarning, match="undefined on all held-out queries"),
        pytest.warns(UserWarning, match="no query has labels that differ"),
    ):
        model = LinearRankerCV(alphas=ALPHAS, cv=3).fit(X, 0 * y, qid=qid)
    assert model.alpha_ == 10.0
    assert np.isnan(model.best_score_)


def test_a_fold_without_a_value_does_not_count():
    """All relevant rows lie in one fold's queries, which the others cannot be scored on."""
    splits = [(np.flatnonzero(qid != q), np.flatnonzero(qid == q)) for q in (100, 101)]
    labels = np.where(qid == 101, 0, y)
    model = LinearRankerCV("ndcg@5", alphas=ALPHAS, cv=splits).fit(X, labels, qid=qid)
    assert np.isnan(model.scores_[:, 1]).all()
    assert model.best_score_ == model.scores_[:, 0].max()


def interrupting(monkeypatch, at):
    """Ctrl-C in the solver at the n-th fit; how many there were."""
    fits, solved = [], LinearRanker.solve

    def interrupt(_):
        raise KeyboardInterrupt

    def caught(self, *arguments):
        fits.append(arguments[1])
        self.callback = interrupt if len(fits) == at else None
        return solved(self, *arguments)

    monkeypatch.setattr(LinearRanker, "solve", caught)
    return fits


@pytest.mark.parametrize("at", [3, 6])
def test_ctrl_c_on_folds_keeps_the_best_so_far(monkeypatch, at):
    whole = LinearRankerCV("ndcg@5", alphas=ALPHAS, cv=3).fit(X, y, qid=qid)
    fits = interrupting(monkeypatch, at)
    with pytest.warns(UserWarning, match="best penalty tried so far") as caught:
        model = LinearRankerCV("ndcg@5", alphas=ALPHAS, cv=3).fit(X, y, qid=qid)
    assert [warning.filename for warning in caught] == [__file__]
    assert len(fits) == at + 1  # and one on all rows
    if at == 6:  # the second fold is not finished: only the first one counts
        assert model.scores_[:, 0].tolist() == whole.scores_[:, 0].tolist()
        assert np.isnan(model.scores_[:, 1:]).all()
        assert model.alpha_ == model.alphas_[np.argmax(whole.scores_[:, 0])]
    else:
        assert np.isfinite(model.scores_[:3, 0]).all()
        assert np.isnan(model.scores_[3, 0])
        assert model.alpha_ == model.alphas_[np.nanargmax(model.scores_[:, 0])]
    assert model.solution_.converged


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # if the interrupted one is best
def test_ctrl_c_on_a_validation_set(monkeypatch):
    fits = interrupting(monkeypatch, at=2)
    with pytest.warns(UserWarning, match="best penalty tried so far"):
        model = LinearRankerCV("ndcg@5", alphas=ALPHAS).fit(X, y, qid=qid, eval_set=HELD)
    assert fits == [10.0, 1.0]
    assert np.isfinite(model.scores_[:2]).all()
    assert np.isnan(model.scores_[2:]).all()
    assert model.alpha_ in (10.0, 1.0)
    assert model.predict(X).any()


def test_ctrl_c_while_scoring(monkeypatch):
    calls, real = [], linear_cv.mean_score

    def interrupt(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(linear_cv, "mean_score", interrupt)
    with pytest.warns(UserWarning, match="interrupted"):
        model = LinearRankerCV(alphas=ALPHAS, cv=3).fit(X, y, qid=qid)
    assert np.isfinite(model.scores_).sum() == 2


def test_ctrl_c_before_any_score_is_passed_on(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(linear_cv, "mean_score", interrupt)
    with pytest.raises(KeyboardInterrupt):
        LinearRankerCV(alphas=ALPHAS, cv=3).fit(X, y, qid=qid)


# ---------------------------------------------------------------- errors

BAD = {
    "no alphas": ({"alphas": []}, ParameterError, "alphas"),
    "one number": ({"alphas": 0.1}, ParameterError, "alphas must be "),
    "alphas text": ({"alphas": "1e-3"}, ParameterError, "alphas must be "),
    "alpha < 0": ({"alphas": [1.0, -1.0]}, ParameterError, "finite numbers >= 0"),
    "alpha NaN": ({"alphas": [np.nan]}, ParameterError, "finite numbers >= 0"),
    "one fold": ({"cv": 1}, ParameterError, "cv must be "),
    "too many folds": ({"cv": 16}, ParameterError, "There are 15 queries"),
    "cv text": ({"cv": "five"}, ParameterError, "cv must be "),
    "cv None": ({"cv": None}, ParameterError, "pairs of train and test rows"),
    "no pairs": ({"cv": []}, ParameterError, "at least one pair"),
    "no rows to train": ({"cv": [([], [0])]}, ParameterError, "a part has no rows"),
    "rows beyond": ({"cv": [([0, 1], [1000])]}, ParameterError, "1000"),
    "halves of rows": ({"cv": [([0.5], [1])]}, ParameterError, "pairs of train and test rows"),
    "metric": ({"metric": "ndgc"}, UnknownNameError, "ndcg"),
    "solver": ({"solver": "bfgs"}, UnknownNameError, "lbfgs"),
    "max_iter": ({"max_iter": 0}, ParameterError, "max_iter must be "),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_named_before_any_fit(name, monkeypatch):
    parameters, error, says = BAD[name]
    monkeypatch.setattr(LinearRanker, "solve", None)
    with pytest.raises(error, match=re.escape(says)):
        LinearRankerCV(**parameters).fit(X, y, qid=qid)


VALIDATION = {
    "one part": (HELD[:1], ParameterError, "RankingData or (X, y, qid)"),
    "a frame": (pd.DataFrame(HELD[0]), ParameterError, "RankingData or (X, y, qid)"),
    "other features": ((HELD[0][:, :2], *HELD[1:]), ValueError, "2 features"),
    "negative grade": ((HELD[0], HELD[1] - 1.0, HELD[2]), GradeError, "is negative"),
    "nothing relevant": (
        (HELD[0], HELD[1] * 0.0, HELD[2]),
        LabelError,
        "undefined on every query of eval_set",
    ),
    "short y": ((HELD[0], HELD[1][:-1], HELD[2]), LengthMismatchError, "scores has"),
    "short qid": ((*HELD[:2], HELD[2][:-1]), LengthMismatchError, "qid has"),
    "other labels": (
        (HELD[0], Preferences([0], [1], len(HELD[1])), HELD[2]),
        LabelError,
        "ndcg reads grades",
    ),
}


@pytest.mark.parametrize("name", VALIDATION)
def test_a_bad_validation_set_is_named_before_any_fit(name, monkeypatch):
    validation, error, says = VALIDATION[name]
    monkeypatch.setattr(LinearRanker, "solve", None)
    with pytest.raises(error, match=re.escape(says)):
        LinearRankerCV().fit(X, y, qid=qid, eval_set=validation)


def test_the_only_order_cannot_be_cut():
    order = Permutations(np.arange(len(X)) + 1)
    with pytest.raises(ParameterError, match="at least two queries"):
        LinearRankerCV("zero_one", assume="order_preserving", cv=3).fit(X, order)


# ---------------------------------------------------------------- real data


def test_mq2008(shared_data):
    fold = cc.datasets.load("mq2008", fold=1, folder=shared_data)
    train, test = fold.train, fold.test
    model = LinearRankerCV("ndcg@10").fit(train.X, train.y, qid=train.qid, eval_set=fold.validation)
    assert model.score(test.X, test.y, qid=test.qid) > 0.65
    assert model.scores_.max() == model.best_score_
