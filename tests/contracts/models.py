"""What is given bad input: one estimator of each kind, small data for each, and what they then say."""

from functools import cache
from importlib.util import find_spec

import numpy as np
from sklearn.base import clone

import concordant as cc
from concordant.comparisons import ratings

QUERIES, ITEMS, FEATURES, PAIRS = 4, 4, 3, 24

# ---------------------------------------------------------------- data


def exact(numbers):
    """Numbers that single precision holds."""
    return np.round(numbers * 64.0) / 64.0


def graded():
    """Few queries of few items, whose grades follow the first feature."""
    rng = np.random.default_rng(0)
    X = exact(rng.normal(size=(QUERIES * ITEMS, FEATURES)))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=len(X)), [-0.5, 0.5]).astype(float)
    return {"X": X, "y": y, "qid": np.repeat(np.arange(QUERIES), ITEMS)}


def paired():
    """Pairs with ties."""
    rng = np.random.default_rng(1)
    pairs = exact(rng.normal(size=(PAIRS, 2, FEATURES)))
    gap = pairs[:, 1, 0] - pairs[:, 0, 0]
    return {"pairs": pairs, "y": (np.sign(gap) * (np.abs(gap) > 0.5)).astype(int)}


def voted():
    """Votes among few items: each met each, and won and lost."""
    rng = np.random.default_rng(2)
    left, right = np.triu_indices(5, 1)
    both = np.concatenate((left, right, left)), np.concatenate((right, left, right))
    return {"left": both[0], "right": both[1], "outcome": rng.integers(-1, 2, len(both[0]))}


# ---------------------------------------------------------------- estimators


def rankers():
    """One of each ranker, made to be quick."""
    estimators = {
        "LinearRanker": cc.LinearRanker("ndcg@3"),
        "LinearRanker(newton)": cc.LinearRanker("dcg", "squared", solver="newton"),
        "LinearRanker(sgd)": cc.LinearRanker("ap", "pairwise", solver="sgd", max_iter=2),
        "LinearRankerCV": cc.LinearRankerCV(alphas=(1.0, 0.1), cv=2),
        "MaxMarginRanker": cc.MaxMarginRanker(tol=0.01),
        "PairRanker": cc.PairRanker("pd"),
        "PairRanker(ap)": cc.PairRanker("ap", decoder="diagonal"),
    }
    trees = {"n_estimators": 2, "max_leaf_nodes": 4, "min_samples_leaf": 1, "n_jobs": 1}
    for booster in ("lightgbm", "xgboost", "catboost"):
        if find_spec(booster):
            estimators[f"BoostedRanker({booster})"] = cc.BoostedRanker(booster=booster, **trees)
    if find_spec("torch"):
        estimators["NeuralRanker"] = cc.NeuralRanker(
            hidden=(4,), max_epochs=1, early_stopping=None, device="cpu"
        )
    return estimators


def comparers():
    """The ways in which a Comparer is trained."""
    return {
        "Comparer": cc.Comparer(calibration=2),
        "Comparer(rbf)": cc.Comparer("rbf", calibration=0),
        "Comparer(rbf, nystroem)": cc.Comparer(
            "rbf", loss="logistic", approximation="nystroem", n_components=8, calibration=0
        ),
        "Comparer(lp)": cc.Comparer(formulation="lp", calibration=0),
        "Comparer(sgd)": cc.Comparer(loss="logistic", solver="sgd", calibration=0),
    }


def rating_models():
    """One of each."""
    return {
        "BradleyTerry": ratings.BradleyTerry(alpha=0.1),
        "Davidson": ratings.Davidson(alpha=0.1, advantage=True),
        "RaoKupper": ratings.RaoKupper(alpha=0.1),
        "Elo": ratings.Elo(),
        "Elo(fide)": ratings.Elo("fide"),
        "Glicko": ratings.Glicko(period=2),
    }


def outputs(model, data):
    """What a fitted model says of sound data, as one array."""
    if isinstance(model, cc.PairRanker):
        scores = model.predict_pairs(data["X"], qid=data["qid"])
        return np.concatenate([np.nan_to_num(matrix).ravel() for matrix in scores])
    if isinstance(model, cc.Comparer):
        return np.concatenate((model.decision_function(data["pairs"]), [model.threshold_]))
    if "left" in data:
        shares = model.predict_proba(data["left"][:5], data["right"][:5]).ravel()
        return np.concatenate((model.ratings_, shares))
    return model.predict(data["X"])


@cache
def fitted(name):
    """The model of this name fitted to sound data, and its predictions."""
    data = data_of(name)
    model = clone(ESTIMATORS[name]).fit(**data)
    return model, outputs(model, data)


def data_of(name):
    """Sound arguments of this model's fit."""
    if name.startswith("Comparer"):
        return paired()
    if name.startswith("Glicko"):
        return voted() | {"time": np.arange(30.0) // 5}
    return voted() if name in rating_models() else graded()


ESTIMATORS = {**rankers(), **comparers(), **rating_models()}
BRIEF = (  # one of each class, for the suite; `python -m benchmarks robustness` takes all of them
    "LinearRanker", "LinearRankerCV", "MaxMarginRanker", "PairRanker", "BoostedRanker(lightgbm)",
    "NeuralRanker", "Comparer", "BradleyTerry", "Elo", "Glicko",
)  # fmt: skip


def is_brief(name):
    """True if the suite takes this subject: functions, and one estimator of each class."""
    owner = name.rpartition(".")[0]
    return owner in BRIEF or owner not in ESTIMATORS
