"""What is exported: weights in units of the raw features, networks, trees or ratings, out of any model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from concordant.comparer import Comparer
from concordant.exceptions import ExportError, ParameterError, ShapeError
from concordant.exporting.scalers import Affine, affine
from concordant.rankers.base import LinearModel
from concordant.rankers.boosted_model import TreeModel
from concordant.rankers.boosters import BOOSTERS
from concordant.rankers.neural_model import NetworkModel
from concordant.rankers.pair_model import PairModel
from concordant.ratings.base import RatingModel
from concordant.supervision.readers.text import PathLike
from concordant.types import ArrayLike, FloatArray

__all__ = ["Source", "feature_names", "read_model"]

KINDS = {  # the last of the steps -> what it is
    LinearModel: "linear",
    Comparer: "comparer",
    NetworkModel: "network",
    TreeModel: "trees",
    RatingModel: "ratings",
}
UNNAMED = "X does not have valid feature names"  # sklearn warns so: golden rows are plain numbers


@dataclass(frozen=True, eq=False)
class Source:
    """A fitted model as exporters see it.

    Attributes
    ----------
    model
        As the caller gave it.
    last
        The model itself, or the last step of a pipeline.
    kind
        "linear", "comparer", "network", "trees" or "ratings".
    names
        Of the features; empty where they have none.
    before
        What the steps of a pipeline do with the features first.
    """

    model: Any
    last: Any
    kind: str
    names: tuple[str, ...]
    before: Affine

    @property
    def n_features(self) -> int:
        """Features of a row; of ratings there are none."""
        return len(self.before.scale)

    @property
    def placed(self) -> bool:
        """Whether the model knows where its features lie, by a scaler, a transform or thresholds."""
        if self.kind == "network" and not self.before.changes:
            return any(
                hasattr(one, "mean") or hasattr(one, "landmarks") for one in self.last.scorer_.transforms
            )
        return self.kind != "linear" or self.before.changes

    @cached_property
    def linear(self) -> Affine:
        """Weights and constants, feature by feature, of a linear model on the raw features."""
        if self.kind == "linear":
            coef, constants = self.last.coef_, np.zeros(self.n_features)
        else:
            scaling, coef, constants = self.last.scaling_, self.last.coef_, np.zeros(self.n_features)
            constants[scaling.kept] = -scaling.mean * coef[scaling.kept]
        with np.errstate(over="ignore", invalid="ignore"):
            return Affine(coef * self.before.scale, coef * self.before.shift + constants)

    @property
    def weights(self) -> FloatArray:
        """Weight of each raw feature."""
        return self.linear.scale

    @property
    def constant(self) -> float:
        """What is added to the weighted features."""
        return float(self.linear.shift.sum())

    def scores(self, rows: FloatArray) -> FloatArray:
        """What the model itself says of rows of numbers, categories as codes; of ratings, of item numbers."""
        if self.kind == "ratings":
            rated: FloatArray = self.last.ratings_[rows[:, 0].astype(np.int64)]
            return rated
        if self.kind == "trees":
            return BOOSTERS[self.last.trees_.library].scores(self.last.booster_, rows, self.last.trees_)
        if self.kind == "comparer":
            compared: FloatArray = self.last.rank_score(rows)
            return compared
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", UNNAMED, UserWarning)
            found: FloatArray = self.model.predict(rows)
        return found

    def sizes(self, rows: FloatArray, *, constant: bool = True) -> FloatArray | None:
        """Sum of the sizes of what a linear score is a sum of; None for others."""
        if self.kind not in ("linear", "comparer"):
            return None
        with np.errstate(over="ignore"):
            found: FloatArray = np.abs(rows) @ np.abs(self.weights) + constant * abs(self.constant)
        return found


def read_model(model: Any, path: PathLike, features: ArrayLike = None) -> Source:
    """Give what can be exported of a model; refuse what cannot, and say what to do."""
    last, steps = model, []
    if isinstance(model, Pipeline):
        *steps, last = [step for _, step in model.steps if step not in (None, "passthrough")] or [None]
    refuse(last, path)
    kind = next((name for made, name in KINDS.items() if isinstance(last, made)), None)
    if kind is None:
        known = "rankers, a Comparer, a model of concordant.ratings, or a Pipeline of scalers and a ranker"
        hint = f"models are {known}; of a search, its best_estimator_."
        raise ExportError(path, f"no format holds models of class {type(last).__name__}", hint)
    check_is_fitted(last)
    if kind == "ratings":
        return Source(model, last, kind, (), Affine.same(0))
    if steps:
        refuse_steps(last, kind, path)
    n_features = int(steps[0].n_features_in_ if steps else last.n_features_in_)
    before = Affine.same(n_features)
    for step in steps:
        before = before.then(affine(step, path))
    source = Source(model, last, kind, feature_names(model, features, n_features), before)
    if kind in ("linear", "comparer"):
        refuse_weights(source.linear, path)
    return source


def refuse_weights(linear: Affine, path: PathLike) -> None:
    """Refuse weights that are no finite numbers, or become none with the scalers."""
    fine = np.isfinite(linear.scale) & np.isfinite(linear.shift)
    if not fine.all() or not np.isfinite(linear.shift.sum()):
        number = int(np.argmin(fine))
        problem = f"feature {number} weighs {linear.scale[number]}, and {linear.shift[number]} is added"
        raise ExportError(path, problem, "bring the features nearer to 1, and fit again.")


def refuse_steps(last: Any, kind: str, path: PathLike) -> None:
    """Refuse steps of a pipeline before a model that cannot take them in."""
    if kind in ("trees", "comparer"):
        needless = "trees do not need scaling" if kind == "trees" else "a Comparer scales by itself"
        problem = f"steps before a {type(last).__name__} cannot be taken into it"
        raise ExportError(path, problem, f"fit it on the features themselves: {needless}.")
    if kind == "network" and any(hasattr(one, "landmarks") for one in last.scorer_.transforms):
        problem = "a scaler before a quantile transform would move values off the landmarks, by rounding"
        raise ExportError(path, problem, "leave the scaler out: quantiles do not need scaling.")


def refuse(last: Any, path: PathLike) -> None:
    """Refuse models that score no single row, or not by weights."""
    if isinstance(last, PairModel):
        hint = "serve it in Python (concordant.load), or fit a LinearRanker, which scores items."
        problem = "a PairRanker scores pairs, and its order comes from a decoder: no format has that"
        raise ExportError(path, problem, hint)
    if isinstance(last, Comparer) and hasattr(last, "machine_") and not hasattr(last, "coef_"):
        problem = f"a Comparer of kernel {last.kernel!r} is a sum over training items, which no format has"
        hint = "fit kernel='linear', or serve a table of rank_score(items), computed before."
        raise ExportError(path, problem, hint)


def feature_names(model: Any, given: ArrayLike, n_features: int) -> tuple[str, ...]:
    """Give the names of the features: the caller's, else those of the fit; empty where there are none."""
    if given is None:
        try:
            found = getattr(model, "feature_names_in_", ())
        except (AttributeError, NotFittedError):
            found = ()
        return tuple(map(str, found))
    names = tuple(given) if np.iterable(given) and not isinstance(given, str) else (None,)
    if not all(isinstance(name, str) and name for name in names):
        raise ParameterError("features", given, "a list of names, none of them empty")
    if len(names) != n_features:
        raise ShapeError("features", (len(names),), f"one name for each of {n_features} features")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ParameterError("features", twice, "different for each feature")
    return names
