"""CatBoost, by two losses of its own that standardized labels make ours."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from concordant.exceptions import ParameterError
from concordant.rankers.boosters.booster import Booster, Data, Measured, Trees
from concordant.rankers.boosters.watch import Watch
from concordant.solvers.checkpoint import named_errors
from concordant.surrogates import Softmax, Squared, Surrogate
from concordant.types import FloatArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from concordant.rankers.boosters.segments import Segment

__all__ = ["CatBoost"]

ALIASES = (  # names of one parameter each
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
UNSHARED = ("No", "Bayesian")  # ways to draw rows that know no share of them
DEEPEST = 16  # that CatBoost grows
SYMMETRIC = 6  # depth of its own trees
SNAPSHOTS: dict[str, Any] = {  # how it writes one: at the end of a segment
    "allow_writing_files": True,
    "save_snapshot": True,
    "snapshot_file": "snapshot",
    "snapshot_interval": 10**9,  # seconds between two on the way
}


class CatBoost(Booster):
    """QueryRMSE is our squared loss, QuerySoftMax our softmax, both up to a constant factor.

    Scores of splits are disturbed at random, as it does by default (`random_strength`), by our seed.
    """

    name: ClassVar[str] = "catboost"
    asks: ClassVar[bool] = False
    own: ClassVar = {
        "loss_function": "surrogate names the loss",
        "eval_metric": "metric is a parameter of the ranker",
        "custom_metric": "metric is a parameter of the ranker",
        "iterations": "n_estimators is a parameter of the ranker",
        "early_stopping_rounds": "early_stopping is a parameter of the ranker",
        "use_best_model": "early_stopping is a parameter of the ranker",
        "monotone_constraints": "monotonic_cst is a parameter of the ranker",
        "cat_features": "categorical_features is a parameter of the ranker",
    }

    def takes(self, surrogate: Surrogate) -> bool:
        """Two of ours are its own."""
        return surrogate in (Softmax(), Squared())

    def check(self, surrogate: Surrogate, curvature: str) -> None:
        """Refuse losses that CatBoost has not, and curvatures: it takes its own."""
        if not self.takes(surrogate):
            wanted = (
                "'softmax' or 'squared' (centred) for booster='catboost', which has no other loss of lists"
            )
            raise ParameterError("surrogate", surrogate, wanted)
        if curvature != "auto":
            raise ParameterError("curvature", curvature, "'auto' for booster='catboost', which takes its own")

    def chosen(self, trees: Trees, data: Measured) -> dict[str, Any]:
        """Give CatBoost's names."""
        softmax = isinstance(data.surrogate, Softmax)
        chosen = {
            "loss_function": "QuerySoftMax:lambda=0" if softmax else "QueryRMSE",
            "iterations": trees.n_estimators,
            "learning_rate": trees.learning_rate,
            "leaf_estimation_method": "Newton",
            "leaf_estimation_iterations": 1,
            "l2_leaf_reg": trees.l2 * (data.unit if softmax else 1.0),  # its squares have curvature 1
            "rsm": trees.colsample,
            "random_seed": trees.seed,
            "thread_count": trees.n_jobs or -1,
            "allow_writing_files": False,
            "allow_const_label": True,
            "logging_level": "Silent",
            "bootstrap_type": "No",
            **self.shape(trees),
        }
        if trees.subsample < 1.0 and trees.params.get("bootstrap_type") not in UNSHARED:
            chosen |= {"bootstrap_type": "Bernoulli", "subsample": trees.subsample}
        if "subsample" in trees.params:
            chosen |= {"bootstrap_type": "Bernoulli"}
        return chosen | ({"monotone_constraints": list(trees.monotonic)} if any(trees.monotonic) else {})

    def shape(self, trees: Trees) -> dict[str, Any]:
        """Leaf by leaf; symmetric, its own kind, without a number of leaves, or with constraints."""
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

    def names_of(self, name: str) -> set[str]:
        """Give all names of a parameter."""
        return next((names for names in ALIASES if name in names), {name})

    def pool(self, X: Any, trees: Trees, **columns: Any) -> Any:
        """Give the library's form of the features: categories as whole numbers, -1 the missing one."""
        if not trees.categorical:
            return self.library().Pool(X, feature_names=list(trees.names) or None, **columns)
        import pandas as pd  # which CatBoost brings

        numbers = range(X.shape[1])
        frame = {n: X[:, n] for n in numbers}
        for n in trees.categorical:
            frame[n] = np.where(np.isnan(X[:, n]), -1, X[:, n]).astype(np.int64)
        named = dict(zip(trees.names or map(str, numbers), frame.values(), strict=True))
        return self.library().Pool(pd.DataFrame(named), cat_features=list(trees.categorical), **columns)

    def segment(self, trees: Trees, data: Data, watch: Watch, segment: Segment) -> tuple[Any, bytes]:
        """From its own snapshot, after which it goes on as if nothing had been."""
        if segment.start is not None:
            wanted = "None with warm_start of booster='catboost', whose snapshots are of whole fits"
            raise ParameterError("checkpoint", str(segment.folder), wanted)
        last = segment.begun + segment.rounds
        with snapshot(segment) as file:
            own = SNAPSHOTS | {"train_dir": str(file.parent)}
            watch.pause = last  # n_estimators must be the fit's: other parameters follow from it
            model = self.planted(replace(trees, params={**trees.params, **own}), data, watch)
            forget_place(model)
            if last == trees.n_estimators or watch.stopped_by != "limit":
                return model, self.written(model)
            return model, file.read_bytes()

    def written(self, model: Any) -> bytes:
        """In its own format."""
        with TemporaryDirectory() as place:
            model.save_model(f"{place}/model")
            return Path(place, "model").read_bytes()

    def read(self, contents: bytes) -> Any:
        """Read its own format."""
        return self.library().CatBoost().load_model(blob=contents)

    def grow(self, trees: Trees, data: Data, watch: Watch, start: Any = None) -> Any:
        """Through `CatBoost.fit`; the scores of held-out rows come as to a metric of one's own."""
        done = 0 if start is None else self.n_trees(start)
        settings = self.settings(trees, data) | {"iterations": trees.n_estimators - done}
        n_held = 0 if data.held is None else data.held.shape[0]
        held, mark = None, (np.arange(n_held) % 2).astype(np.float32)  # labels that nothing is learned from
        if n_held:
            held = self.pool(data.held, trees, label=mark, group_id=np.zeros(len(mark), dtype=np.int64))
        scored = Scored(watch, mark)
        if held is not None:
            settings["eval_metric"] = scored
        model = self.library().CatBoost(settings)
        told, best = [Told(watch, done)], held is not None and watch.patience is not None
        with unoptimised():  # only symmetric trees could be cut afterwards: it keeps the best
            train = self.pool(data.X, trees, **labelled(data))
            model.fit(train, eval_set=held, init_model=start, use_best_model=best, callbacks=told)
        scored.watch = Watch()  # the model keeps its metric, and is pickled
        return model

    def scores(self, model: Any, X: Any, trees: Trees) -> FloatArray:
        """Raw scores."""
        found: FloatArray = model.predict(self.pool(X, trees), thread_count=trees.n_jobs or -1)
        return found

    def gains(self, model: Any, n_features: int) -> FloatArray:
        """How much a prediction changes with the feature: CatBoost keeps no gains."""
        del n_features
        found: FloatArray = model.get_feature_importance(type="PredictionValuesChange")
        return np.asarray(found, dtype=np.float64)

    def n_trees(self, model: Any) -> int:
        """Count the trees."""
        return int(model.tree_count_)

    def cut(self, model: Any, n_trees: int) -> Any:
        """Shrink a copy."""
        short = model.copy()
        short.shrink(n_trees)
        return short


def labelled(data: Data) -> dict[str, Any]:
    """Give the columns of the training rows; CatBoost takes weights of queries or of rows, not both.

    Those of rows are in the labels of the softmax, already.
    """
    sizes = np.diff(data.offsets)
    weights, groups = np.repeat(data.query_weights, sizes), np.repeat(np.arange(len(sizes)), sizes)
    if isinstance(data.surrogate, Softmax):
        return {"label": data.labels, "group_weight": weights, "group_id": groups}
    return {"label": data.labels, "weight": weights * data.row_weights, "group_id": groups}


class Scored:
    """A metric of one's own, as CatBoost calls it: it is given all rows, in order, and we know the lists."""

    def __init__(self, watch: Watch, mark: NDArray[np.float32]) -> None:
        self.watch, self.mark = watch, mark

    def __deepcopy__(self, memo: dict[int, Any]) -> Scored:
        return self

    def is_max_optimal(self) -> bool:
        """Higher is better."""
        return True

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        """Take the scores of held-out rows, told by their labels; it is asked of the training rows first."""
        del weight
        if not np.array_equal(target, self.mark):
            return 0.0, 1.0
        return self.watch.score(np.asarray(approxes[0], dtype=np.float64)), 1.0

    def get_final_error(self, error: float, weight: float) -> float:
        """The value itself."""
        return error / weight


class Told:
    """A callback, as CatBoost calls it."""

    def __init__(self, watch: Watch, done: int) -> None:
        self.watch, self.done = watch, done

    def after_iteration(self, info: Any) -> bool:
        """Give whether to go on."""
        return not self.watch.told(self.done + info.iteration)


@contextmanager
def unoptimised() -> Iterator[None]:
    """CatBoost tries to compile our metric, cannot, and need not say so."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Can't optimze method", UserWarning)
        yield


@contextmanager
def snapshot(segment: Segment) -> Iterator[Path]:
    """Give the file of its snapshot, in a folder that is new and goes away; a killed fit leaves it behind."""
    place = segment.folder / "catboost"
    file: Path = place / SNAPSHOTS["snapshot_file"]
    with named_errors(place, "made anew"):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        if segment.contents:
            file.write_bytes(segment.contents)
    try:
        yield file
    finally:
        shutil.rmtree(place, ignore_errors=True)


def forget_place(model: Any) -> None:
    """Take out of a model how snapshots were written: it says the same as one without."""
    about = model.get_metadata()
    for name in ("params", "output_options"):
        told = json.loads(about[name])
        for chosen in (told, told.get("flat_params", {})):
            for key in (*SNAPSHOTS, "train_dir"):
                chosen.pop(key, None)
        about[name] = json.dumps(told)
    for key in (*SNAPSHOTS, "train_dir"):
        model._init_params.pop(key, None)  # noqa: SLF001  set_params refuses fitted models
    model._init_params["allow_writing_files"] = False  # noqa: SLF001
