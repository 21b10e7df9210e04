"""The boosters of `boosting`: trees of the same shape in each, grown once, scored after every few of them.

Each library keeps its own regularisation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from concordant import Queries, RankingData, datasets
from concordant.exceptions import EmptyDataError, MissingExtraError
from concordant.types import FloatArray

RATE = 0.05
LEAST_ROWS = 20
SEED = 0


@dataclass(frozen=True)
class Shape:
    """Shape of trees.

    Attributes
    ----------
    leaves
        Most leaves of a tree; 2^d - 1, so that a symmetric tree of depth d is its equal but for one leaf.

    Examples
    --------
    >>> str(Shape(15)), Shape(15).depth
    ('15 leaves', 4)
    """

    leaves: int

    @property
    def depth(self) -> int:
        """Depth of the symmetric tree with one leaf more."""
        return (self.leaves + 1).bit_length() - 1

    def __str__(self) -> str:
        return f"{self.leaves} leaves"


@dataclass(frozen=True)
class Plan:
    """Number of trees, and of trees between two looks at the scores.

    Examples
    --------
    >>> Plan(30, 10).stages
    (10, 20, 30)
    """

    trees: int
    every: int

    @property
    def stages(self) -> tuple[int, ...]:
        """Numbers of trees at which there are scores."""
        return tuple(range(self.every, self.trees + 1, self.every))


@dataclass(frozen=True, eq=False)
class Part:
    """Queries with the rows of each adjacent, ids ascending, as boosters ask for them."""

    X: FloatArray
    y: FloatArray
    queries: Queries

    @classmethod
    def from_data(cls, data: RankingData | None, name: str) -> Part:
        """Sort the rows of a part by query."""
        if data is None:
            raise EmptyDataError(f"the {name} part")
        queries = Queries.from_ids(data.qid)
        rows = queries.order
        return cls(np.ascontiguousarray(data.X[rows]), data.y[rows], Queries.from_sizes(queries.sizes))


@dataclass(frozen=True, eq=False)
class Parts:
    """The three parts of a fold."""

    train: Part
    validation: Part
    test: Part

    @classmethod
    def from_fold(cls, fold: datasets.Fold) -> Parts:
        """Sort each part by query."""
        return cls(*(Part.from_data(getattr(fold, name), name) for name in ("train", "validation", "test")))


def need(library: str) -> None:
    """Raise where a booster is not installed: before the work of the others."""
    if find_spec(library) is None:
        raise MissingExtraError(library, "peers", "the study of boosting")


def options(library: str, objective: str, shape: Shape) -> dict[str, Any]:
    """Options of a library by its own names; all others keep their defaults."""
    return {"lightgbm": _lightgbm_options, "xgboost": _xgboost_options, "catboost": _catboost_options}[
        library
    ](objective, shape)


def _lightgbm_options(objective: str, shape: Shape) -> dict[str, Any]:
    """LightGBM: leaf by leaf, at least 20 rows a leaf."""
    return {
        "objective": objective,
        "learning_rate": RATE,
        "num_leaves": shape.leaves,
        "min_data_in_leaf": LEAST_ROWS,
        "seed": SEED,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,  # else both ways are timed first, and the faster one depends on the day
        "verbosity": -1,
    }


def _xgboost_options(objective: str, shape: Shape) -> dict[str, Any]:
    """XGBoost: leaf by leaf; it limits the curvature of a leaf, not its rows, and keeps its default there."""
    return {
        "objective": objective,
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_depth": 0,
        "max_leaves": shape.leaves,
        "eta": RATE,
        "seed": SEED,
        "nthread": 1,
        "base_score": 0.0,
    }


def _catboost_options(objective: str, shape: Shape) -> dict[str, Any]:
    """CatBoost: symmetric trees of 16 leaves for 15, 8 for 7; these have no least number of rows."""
    return {
        "loss_function": objective,
        "learning_rate": RATE,
        "depth": shape.depth,
        "random_seed": SEED,
        "thread_count": 1,
        "allow_writing_files": False,
        "verbose": False,
    }


def train_booster(library: str, objective: str, train: Part, shape: Shape, trees: int) -> Any:
    """Train the library's own model by its own objective on the grades, on one thread."""
    need(library)
    settings, queries = options(library, objective, shape), train.queries
    if library == "lightgbm":
        import lightgbm

        return lightgbm.train(settings, lightgbm.Dataset(train.X, train.y, group=queries.sizes), trees)
    if library == "xgboost":
        import xgboost

        labels = (train.y > 0).astype(float) if objective == "rank:map" else train.y  # which takes no others
        data = xgboost.QuantileDMatrix(train.X, labels, qid=queries.codes, nthread=1)
        return xgboost.train(settings, data, trees)
    import catboost

    pool = catboost.Pool(train.X, train.y, group_id=queries.codes)
    return catboost.CatBoost({**settings, "iterations": trees}).fit(pool)


def staged_scores(library: str, model: Any, X: FloatArray, plan: Plan) -> FloatArray:
    """Scores of the rows after each stage, one row a stage; each tree is evaluated once.

    Sums of single precision (XGBoost) are taken in double: they differ from the library's own in rounding.
    """
    stages = {"lightgbm": _lightgbm_scores, "xgboost": _xgboost_scores, "catboost": _catboost_scores}[library]
    return np.stack(list(stages(model, X, plan)))


def _lightgbm_scores(model: Any, X: FloatArray, plan: Plan) -> Iterable[FloatArray]:
    """Scores of LightGBM after each stage; where no tree could be grown any more they stay."""
    options = {"num_iteration": plan.every, "raw_score": True, "num_threads": 1}
    scores = np.zeros(len(X))
    for stage in plan.stages:
        if stage - plan.every < model.current_iteration():
            scores = scores + model.predict(X, start_iteration=stage - plan.every, **options)
        yield scores


def _xgboost_scores(model: Any, X: FloatArray, plan: Plan) -> Iterable[FloatArray]:
    """Scores of XGBoost after each stage."""
    from xgboost import DMatrix

    data, scores = DMatrix(X, nthread=1), np.zeros(len(X))
    for stage in plan.stages:
        grown_then = (stage - plan.every, stage)
        scores = scores + model.predict(data, output_margin=True, iteration_range=grown_then)
        yield scores


def _catboost_scores(model: Any, X: FloatArray, plan: Plan) -> Iterable[FloatArray]:
    """Scores of CatBoost after each stage."""
    from catboost import Pool

    stages = model.staged_predict(Pool(X), "RawFormulaVal", eval_period=plan.every, thread_count=1)
    return (np.asarray(scores, dtype=np.float64) for scores, _ in zip(stages, plan.stages, strict=True))
