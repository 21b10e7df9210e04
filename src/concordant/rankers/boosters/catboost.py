"""CatBoost, with two of its losses that on standardized labels equal ours."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from concordant.exceptions import ParameterError
from concordant.rankers.boosters.booster import Booster, BoostingMonitor, TrainingFacts, TreeData, Trees
from concordant.solvers.checkpoint import named_errors
from concordant.surrogates import Softmax, Squared, Surrogate
from concordant.types import FloatArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from concordant.rankers.boosters.tree_training_set import Segment

UNSHARED = ("No", "Bayesian")  # ways to draw rows that have no share parameter
DEEPEST = 16  # depth that CatBoost grows
SYMMETRIC = 6  # default depth of symmetric trees
SNAPSHOTS: dict[str, Any] = {  # parameters to write a snapshot at the end of a segment
    "allow_writing_files": True,
    "save_snapshot": True,
    "snapshot_file": "snapshot",
    "snapshot_interval": 10**9,  # seconds between snapshots on the way
}


class CatBoost(Booster):
    """CatBoost: QueryRMSE is our squared loss, QuerySoftMax our softmax, up to a constant factor.

    Scores of splits are perturbed at random by our seed, which is CatBoost's default (`random_strength`).
    """

    name: ClassVar[str] = "catboost"
    aliases: ClassVar = (
        {"loss_function", "objective"},
        {"iterations", "n_estimators", "num_boost_round", "num_trees"},
        {"learning_rate", "eta"},
        {"depth", "max_depth"},
        {"l2_leaf_reg", "reg_lambda"},
        {"random_seed", "random_state"},
        {"rsm", "colsample_bylevel"},
        {"max_leaves", "num_leaves"},
        {"min_data_in_leaf", "min_child_samples"},
        {"border_count", "max_bin"},
        {"early_stopping_rounds", "od_wait", "od_type", "od_pval"},
        {"logging_level", "verbose", "verbose_eval", "silent"},
    )
    needs_gradients: ClassVar[bool] = False
    reserved_params: ClassVar = {
        "loss_function": "surrogate names the loss",
        "eval_metric": "metric is a parameter of the ranker",
        "custom_metric": "metric is a parameter of the ranker",
        "iterations": "n_estimators is a parameter of the ranker",
        "early_stopping_rounds": "early_stopping is a parameter of the ranker",
        "use_best_model": "early_stopping is a parameter of the ranker",
        "monotone_constraints": "monotonic_cst is a parameter of the ranker",
        "cat_features": "categorical_features is a parameter of the ranker",
    }

    def accepts_loss(self, surrogate: Surrogate) -> bool:
        """True for the two losses that CatBoost has."""
        return surrogate in (Softmax(), Squared())

    def check(self, surrogate: Surrogate, curvature: str) -> None:
        """Raise for losses that CatBoost lacks, and for a chosen curvature, which CatBoost fixes."""
        if not self.accepts_loss(surrogate):
            raise ParameterError("surrogate", surrogate, "'softmax' or 'squared' for booster='catboost'")
        if curvature != "auto":
            raise ParameterError("curvature", curvature, "'auto' for booster='catboost'")

    def _library_params(self, trees: Trees, data: TrainingFacts) -> dict[str, Any]:
        softmax = isinstance(data.surrogate, Softmax)
        curvature = data.unit if softmax else 1.0  # of CatBoost's squared loss
        params = {
            "loss_function": "QuerySoftMax:lambda=0" if softmax else "QueryRMSE",
            "iterations": trees.n_estimators,
            "learning_rate": trees.learning_rate,
            "leaf_estimation_method": "Newton",
            "leaf_estimation_iterations": 1,
            "l2_leaf_reg": trees.l2 * curvature,
            "rsm": trees.colsample,
            "random_seed": trees.seed,
            "thread_count": _thread_count(trees),
            "allow_writing_files": False,
            "allow_const_label": True,
            "logging_level": "Silent",
            "bootstrap_type": "No",
            **self.shape(trees),
        }
        if trees.subsample < 1.0 and trees.params.get("bootstrap_type") not in UNSHARED:
            params |= {"bootstrap_type": "Bernoulli", "subsample": trees.subsample}
        if "subsample" in trees.params:
            params |= {"bootstrap_type": "Bernoulli"}
        return params | ({"monotone_constraints": list(trees.monotonic)} if any(trees.monotonic) else {})

    def shape(self, trees: Trees) -> dict[str, Any]:
        """Return the parameters of the tree shape: lossguide with a number of leaves, symmetric otherwise.

        Trees are also symmetric with monotonic constraints, which lossguide trees do not support.
        """
        leaves, depth = trees.max_leaf_nodes, trees.max_depth
        policy = "SymmetricTree" if leaves is None or any(trees.monotonic) else "Lossguide"
        policy = trees.params.get("grow_policy", policy)
        if policy == "SymmetricTree":
            levels = SYMMETRIC if leaves is None else (leaves - 1).bit_length()
            return {"grow_policy": policy, "depth": min(depth or levels, levels, DEEPEST)}
        shape = {"grow_policy": policy, "min_data_in_leaf": trees.min_samples_leaf}
        if policy == "Lossguide" and leaves is not None:
            shape["max_leaves"] = leaves
        return shape | {"depth": min(depth or DEEPEST, DEEPEST)}

    def pool(self, X: Any, trees: Trees, **columns: Any) -> Any:
        """Build CatBoost's pool; categories are integers, -1 for missing."""
        columns["thread_count"] = _thread_count(trees)
        if not trees.categorical:
            return self.library().Pool(X, feature_names=list(trees.names) or None, **columns)
        import pandas as pd  # a dependency of CatBoost

        numbers = range(X.shape[1])
        frame = {n: X[:, n] for n in numbers}
        for n in trees.categorical:
            frame[n] = np.where(np.isnan(X[:, n]), -1, X[:, n]).astype(np.int64)
        named = dict(zip(trees.names or map(str, numbers), frame.values(), strict=True))
        return self.library().Pool(pd.DataFrame(named), cat_features=list(trees.categorical), **columns)

    def segment(
        self, trees: Trees, data: TreeData, monitor: BoostingMonitor, segment: Segment
    ) -> tuple[Any, bytes]:
        """Continue from CatBoost's snapshot, as if training had not stopped."""
        if segment.start is not None:
            raise ParameterError.because(
                "checkpoint and warm_start do not work together with booster='catboost'. Leave one of them "
                "out."
            )
        last = segment.begun + segment.rounds
        with _open_snapshot(segment) as file:
            params = {**trees.params, **SNAPSHOTS, "train_dir": str(file.parent)}
            monitor.pause = last  # n_estimators must be that of the whole fit: other parameters depend on it
            model = self.grow_or_stump(replace(trees, params=params), data, monitor)
            _remove_snapshot_params(model)
            if last == trees.n_estimators or monitor.stopped_by != "limit":
                return model, self.to_bytes(model)
            return model, file.read_bytes()

    def to_bytes(self, model: Any) -> bytes:
        """Serialize the model in CatBoost's binary format."""
        with TemporaryDirectory() as folder:
            model.save_model(f"{folder}/model")
            return Path(folder, "model").read_bytes()

    def from_bytes(self, contents: bytes) -> Any:
        """Load a model from CatBoost's binary format."""
        return self.library().CatBoost().load_model(blob=contents)

    def grow(self, trees: Trees, data: TreeData, monitor: BoostingMonitor, start: Any = None) -> Any:
        """Grow trees by `CatBoost.fit`; held-out rows are scored by a custom metric."""
        done = 0 if start is None else self.n_trees(start)
        settings = self.settings(trees, data) | {"iterations": trees.n_estimators - done}
        n_held = 0 if data.heldout_features is None else data.heldout_features.shape[0]
        dummy_labels = (np.arange(n_held) % 2).astype(np.float32)  # never learned from
        metric = CatBoostMetric(monitor, dummy_labels)
        options: dict[str, Any] = {"init_model": start, "use_best_model": False}
        if n_held:
            group = np.zeros(n_held, dtype=np.int64)
            options["eval_set"] = self.pool(data.heldout_features, trees, label=dummy_labels, group_id=group)
            # Only symmetric trees could be cut later: CatBoost keeps the best.
            options["use_best_model"] = monitor.patience is not None
            settings["eval_metric"] = metric
        model = self.library().CatBoost(settings)
        with _hide_numba_warnings():
            train = self.pool(data.X, trees, **_label_columns(data))
            model.fit(train, callbacks=[_CatBoostCallback(monitor, done)], **options)
        metric.monitor = BoostingMonitor()  # the model keeps its metric, and is pickled
        return model

    def scores(self, model: Any, X: Any, trees: Trees) -> FloatArray:
        """Return raw scores."""
        scores: FloatArray = model.predict(self.pool(X, trees), thread_count=_thread_count(trees))
        return scores

    def gains(self, model: Any, n_features: int) -> FloatArray:
        """Return how much predictions change with each feature, as CatBoost does not keep gains."""
        del n_features
        importances: FloatArray = model.get_feature_importance(
            type="PredictionValuesChange", thread_count=1 if _is_forked() else -1
        )
        return np.asarray(importances, dtype=np.float64)

    def n_trees(self, model: Any) -> int:
        """Return the number of trees."""
        return int(model.tree_count_)

    def cut(self, model: Any, n_trees: int) -> Any:
        """Shrink a copy to the first trees."""
        short = model.copy()
        short.shrink(n_trees)
        return short


def _thread_count(trees: Trees) -> int:
    return 1 if _is_forked() else trees.n_jobs or -1


def _is_forked() -> bool:
    """True in a fork of the process that used CatBoost first.

    A fork copies the locks of CatBoost's thread pool in the state they are in, but not the threads that would
    release them: asking the pool for a thread may then wait for ever.
    """
    return os.getpid() != _first_process()


@cache
def _first_process() -> int:
    """Return this process's id; from now on, release CatBoost's threads before each fork."""
    import catboost

    def release_threads() -> None:
        catboost.Pool([[0.0]], thread_count=1)  # ends CatBoost's cached thread pool, as its size differs

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=release_threads)
    return os.getpid()


def _label_columns(data: TreeData) -> dict[str, Any]:
    """Return label, weight and group columns; CatBoost accepts weights of queries or of rows, not both.

    With the softmax, row weights are already part of the labels.
    """
    sizes = np.diff(data.offsets)
    weights, groups = np.repeat(data.query_weights, sizes), np.repeat(np.arange(len(sizes)), sizes)
    if isinstance(data.surrogate, Softmax):
        return {"label": data.labels, "group_weight": weights, "group_id": groups}
    return {"label": data.labels, "weight": weights * data.row_weights, "group_id": groups}


# CatBoost compiles methods that have no docstring, and a compiled method cannot be pickled.
class CatBoostMetric:
    """Custom CatBoost metric, called with all rows in order; the monitor knows the queries."""

    def __init__(self, monitor: BoostingMonitor, dummy_labels: NDArray[np.float32]) -> None:
        self.monitor, self.dummy_labels = monitor, dummy_labels

    def __deepcopy__(self, memo: dict[int, Any]) -> CatBoostMetric:
        return self

    def is_max_optimal(self) -> bool:
        """True: higher is better."""
        return True

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        """Score held-out rows, recognized by their labels; CatBoost passes the training rows first."""
        del weight
        if not np.array_equal(target, self.dummy_labels):
            return 0.0, 1.0
        return self.monitor.score(np.asarray(approxes[0], dtype=np.float64)), 1.0

    def get_final_error(self, error: float, weight: float) -> float:
        """Return the value itself."""
        return error / weight


class _CatBoostCallback:
    """CatBoost callback that reports rounds to the monitor."""

    def __init__(self, monitor: BoostingMonitor, done: int) -> None:
        self.monitor, self.done = monitor, done

    def after_iteration(self, info: Any) -> bool:
        return not self.monitor.record_round(self.done + info.iteration)


@contextmanager
def _hide_numba_warnings() -> Iterator[None]:
    """Hide the warning that CatBoost cannot compile our metric."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Can't optimze method", UserWarning)
        yield


@contextmanager
def _open_snapshot(segment: Segment) -> Iterator[Path]:
    """Yield the snapshot's path, in a new folder that is removed afterwards; a killed fit leaves it."""
    folder = segment.folder / "catboost"
    file: Path = folder / SNAPSHOTS["snapshot_file"]
    with named_errors(folder, "made anew"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if segment.contents:
            file.write_bytes(segment.contents)
    try:
        yield file
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_snapshot_params(model: Any) -> None:
    """Remove the snapshot parameters from a model, so that it equals one trained without snapshots."""
    about = model.get_metadata()
    for name in ("params", "output_options"):
        stored = json.loads(about[name])
        for params in (stored, stored.get("flat_params", {})):
            for key in (*SNAPSHOTS, "train_dir"):
                params.pop(key, None)
        about[name] = json.dumps(stored)
    for key in (*SNAPSHOTS, "train_dir"):
        model._init_params.pop(key, None)  # noqa: SLF001  set_params refuses fitted models
    model._init_params["allow_writing_files"] = False  # noqa: SLF001
