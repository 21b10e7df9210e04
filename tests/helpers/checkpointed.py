"""Fits that take a checkpoint, one of each kind; what a model is made of; and ways to end a fit."""

import time
from contextlib import contextmanager

import numpy as np
import pytest

from concordant import (
    BoostedRanker,
    Comparer,
    LinearRanker,
    LinearRankerCV,
    MaxMarginRanker,
    NeuralRanker,
    PairRanker,
    synthetic,
)
from concordant.rankers import pair_scores as pairs
from concordant.rankers import pair_training
from concordant.rankers.boosters import tree_training_set as segments
from concordant.solvers.checkpoint import Journal, Snapshot

TOY = synthetic.grades(n_queries=25, n_items=8, seed=0)
X, y, qid = TOY.X, TOY.y, TOY.qid


def compared(n=60, seed=1):
    """Pairs, and who won; near ones tie."""
    rng = np.random.default_rng(seed)
    comparisons = rng.normal(size=(n, 2, 3))
    gap = (comparisons[:, 1] - comparisons[:, 0]) @ [1.0, 2.0, -1.0] + 0.3 * rng.normal(size=n)
    return comparisons, np.where(np.abs(gap) < 0.8, 0, np.sign(gap)).astype(int)


PAIRS = compared()
TREES = {"n_estimators": 11, "n_jobs": 1, "min_samples_leaf": 3, "subsample": 0.7, "colsample": 0.6}
KINDS = {  # name -> class, parameters
    "lbfgs": (LinearRanker, {"metric": "ndcg@5", "tol": 1e-9}),
    "newton": (LinearRanker, {"surrogate": "pairwise", "solver": "newton", "tol": 1e-9}),
    "sgd": (LinearRanker, {"solver": "sgd", "max_iter": 4, "tol": 1e-12}),
    "torch": (LinearRanker, {"surrogate": "pairwise", "device": "cpu", "tol": 1e-9}),
    "cv": (LinearRankerCV, {"metric": "ndcg@5", "alphas": [1.0, 0.1], "cv": 2}),
    "maxmargin": (MaxMarginRanker, {"metric": "ndcg@5"}),
    "pairs": (PairRanker, {"metric": "pd"}),
    "pairs and items": (PairRanker, {"metric": "ap"}),
    "lightgbm": (BoostedRanker, {**TREES}),
    "xgboost": (BoostedRanker, {**TREES, "booster": "xgboost", "early_stopping": 5}),
    "catboost": (BoostedRanker, {**TREES, "booster": "catboost", "early_stopping": 5}),
    "neural": (NeuralRanker, {"hidden": (4,), "max_epochs": 4, "dropout": 0.2, "device": "cpu"}),
    "comparer": (Comparer, {"calibration": 2, "loss": "hinge"}),
    "comparer sgd": (Comparer, {"solver": "sgd", "loss": "logistic", "calibration": 0}),
    "comparer libsvm": (Comparer, {"kernel": "rbf", "calibration": 2}),
    "comparer lp": (Comparer, {"formulation": "lp", "calibration": 2}),
    "comparer nystroem": (
        Comparer,
        {"kernel": "rbf", "approximation": "nystroem", "n_components": 20, "calibration": 0},
    ),
    "comparer hard": (Comparer, {"C": np.inf, "calibration": 0}),
}


def data_of(name):
    """Rows, labels and the rest of a fit."""
    if name == "comparer hard":
        comparisons, _ = PAIRS
        gap = (comparisons[:, 1] - comparisons[:, 0]) @ [1.0, 2.0, -1.0]
        clear = (np.abs(gap) < 0.8) | (np.abs(gap) > 1.2)
        return (comparisons[clear], np.where(np.abs(gap) < 0.8, 0, np.sign(gap)).astype(int)[clear]), {}
    if name.startswith("comparer"):
        return PAIRS, {}
    return (X, (y > 0) * 1.0 if name == "pairs and items" else y), {"qid": qid}


def model_of(name, folder=None, **other):
    """Return an estimator that is not fitted, where its library is installed."""
    kind, parameters = KINDS[name]
    if kind in (BoostedRanker, NeuralRanker) or "device" in parameters:
        pytest.importorskip(parameters.get("booster", "lightgbm") if kind is BoostedRanker else "torch")
    return kind(**{**parameters, "checkpoint": folder, **other})


def fitted(name, folder=None, **other):
    """Fit one of a kind."""
    rows, rest = data_of(name)
    return model_of(name, folder, **other).fit(*rows, **rest)


@contextmanager
def fine():
    """Let boosters and sums over pairs write often enough that small fits have something to go on from."""
    before = segments.SEGMENT, pair_training.EVERY, pairs.BLOCK_BYTES
    segments.SEGMENT, pair_training.EVERY, pairs.BLOCK_BYTES = 4, 2, 2**11
    try:
        yield
    finally:
        segments.SEGMENT, pair_training.EVERY, pairs.BLOCK_BYTES = before


class Ended(BaseException):
    """As if the process had gone."""


@contextmanager
def ending(n_writes, share=1.0):
    """End a fit at its write of this number, from 0, of which this share still comes to the disk.

    A snapshot is replaced as a whole, or not at all.
    """
    real_add, real_write, count = Journal.add, Snapshot.write, [0]

    def add(self, record):
        count[0] += 1
        if count[0] > n_writes:
            real_add(self, record[: int(share * len(record))])
            raise Ended
        real_add(self, record)

    def write(self, facts, arrays):
        count[0] += 1
        if count[0] <= n_writes or share == 1.0:
            real_write(self, facts, arrays)
        if count[0] > n_writes:
            raise Ended

    Journal.add, Snapshot.write = add, write
    try:
        yield count
    finally:
        Journal.add, Snapshot.write = real_add, real_write


def slowly(name, folder, seconds):
    """Fit with a pause around each write, so that a kill has something to hit: in a process of its own."""
    real_add, real_write = Journal.add, Snapshot.write

    def add(self, record):
        half = len(record) // 2
        for part in (record[:half], record[half:]):
            time.sleep(seconds)
            real_add(self, part)

    def write(self, facts, arrays):
        time.sleep(seconds)
        real_write(self, facts, arrays)
        time.sleep(seconds)

    Journal.add, Snapshot.write = add, write
    with fine():
        fitted(name, folder)


def bits(array):
    """Everything of an array."""
    return array.dtype.str, array.shape, array.tobytes()


def of_catboost(model):
    """Leaves, and where features are cut."""
    return frozen([model.get_leaf_values(), model.get_borders()])


def of_network(module):
    """All numbers by name."""
    return [(name, bits(part.numpy())) for name, part in module.state_dict().items()]


PARTS = (  # of what a model is made of: how it is known, and what tells it from others, down to the bits
    (lambda item: isinstance(item, np.ndarray) and item.dtype != object, bits),
    (lambda item: isinstance(item, float), lambda item: np.float64(item).tobytes()),
    (lambda item: isinstance(item, dict), lambda item: [(key, frozen(part)) for key, part in item.items()]),
    (lambda item: isinstance(item, (list, tuple, np.ndarray)), lambda item: [*map(frozen, item)]),
    (lambda item: hasattr(item, "model_to_string"), lambda item: item.model_to_string()),  # LightGBM
    (lambda item: hasattr(item, "save_raw"), lambda item: bytes(item.save_raw("ubj"))),  # XGBoost
    (lambda item: hasattr(item, "get_leaf_values"), of_catboost),
    (lambda item: hasattr(item, "state_dict"), of_network),
    (lambda item: hasattr(item, "__dict__") and not callable(item), lambda item: frozen(vars(item))),
    (lambda item: isinstance(item, (str, bytes, int, type(None), np.generic)), lambda item: item),
)  # fmt: skip


def frozen(value):
    """Return everything that a value is made of, as something that can be compared."""
    return next((content(value) for matches, content in PARTS if matches(value)), type(value).__name__)


def made_of(model):
    """Everything that a fit left in a model, by name, and what it predicts."""
    learned = {name: frozen(part) for name, part in vars(model).items() if name not in model.get_params()}
    if isinstance(model, Comparer):
        return {**learned, "output": frozen(model.decision_function(PAIRS[0]))}
    output = model.predict(X) if hasattr(model, "predict") else model.rank(X, qid=qid)
    return {**learned, "output": frozen(output)}
