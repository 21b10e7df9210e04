"""Models as exporters read them: weights in units of the raw features, networks, trees or ratings."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from concordant._base.files import PathLike
from concordant._base.light_sklearn import NotFittedError, check_is_fitted
from concordant.comparisons import Comparer
from concordant.comparisons.ratings.rating_model import RatingModel
from concordant.exceptions import ExportError, ParameterError, ShapeError
from concordant.rankers.base import LinearModel
from concordant.rankers.boosted import TreeModel
from concordant.rankers.boosters import BOOSTERS
from concordant.rankers.neural import NetworkModel
from concordant.rankers.pair_ranker import PairModel
from concordant.types import ArrayLike, FloatArray

# Scalers as affine transforms: each feature times a number, plus a number.

SCALERS = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)


@dataclass(frozen=True, eq=False)
class Affine:
    """x * scale + shift, feature by feature.

    >>> Affine(np.array([2.0]), np.array([1.0])).then(Affine(np.array([3.0]), np.array([0.5]))).shift.tolist()
    [3.5]
    """

    scale: FloatArray
    shift: FloatArray

    @classmethod
    def identity(cls, n_features: int) -> Affine:
        """Return the transform that changes nothing."""
        return cls(np.ones(n_features), np.zeros(n_features))

    @property
    def changes(self) -> bool:
        """True if the transform changes any feature."""
        return bool((self.scale != 1.0).any() or self.shift.any())

    def then(self, other: Affine) -> Affine:
        """Compose with another transform; this one is applied first."""
        return Affine(self.scale * other.scale, self.shift * other.scale + other.shift)


def _read_scaler(step: Any, path: PathLike) -> Affine:
    """Read a fitted scaler as an affine transform; raise for steps that are not affine."""
    name = type(step).__name__
    if type(step) not in SCALERS:
        scaler_names = ", ".join(scaler.__name__ for scaler in SCALERS)
        problem = f"the step {name} cannot be merged into the weights"
        hint = f"those that can are {scaler_names}; do the rest where features are made."
        raise ExportError(path, problem, hint)
    check_is_fitted(step)
    if getattr(step, "clip", False):
        hint = "fit it with clip=False."
        raise ExportError(
            path, f"{name} with clip=True is not linear, so it cannot be merged into the weights", hint
        )
    ones, zeros = np.ones(step.n_features_in_), np.zeros(step.n_features_in_)
    if isinstance(step, MinMaxScaler):
        min_max = np.asarray(step.scale_, dtype=np.float64), np.asarray(step.min_, dtype=np.float64)
        return _check_affine(Affine(*min_max), name, path)
    scale = ones if getattr(step, "scale_", None) is None else step.scale_
    middle = getattr(step, "mean_" if isinstance(step, StandardScaler) else "center_", None)
    if isinstance(step, StandardScaler) and not step.with_mean:
        middle = None  # it is computed by fit, but not used
    middle = zeros if middle is None else middle
    return _check_affine(Affine(1.0 / scale, -middle / scale), name, path)


def _check_affine(transform: Affine, name: str, path: PathLike) -> Affine:
    """Check that a scaler is finite: features may have been missing or too large when it was fitted."""
    bad = ~(np.isfinite(transform.scale) & np.isfinite(transform.shift))
    if bad.any():
        problem = f"{name} takes feature {int(np.argmax(bad))} times {transform.scale[bad][0]}, "
        problem += f"plus {transform.shift[bad][0]}"
        raise ExportError(path, problem, "fit it on finite numbers.")
    return transform


KINDS = {  # class of the last step -> kind of model
    LinearModel: "linear",
    Comparer: "comparer",
    NetworkModel: "network",
    TreeModel: "trees",
    RatingModel: "ratings",
}
UNNAMED = "X does not have valid feature names"  # sklearn warns so: golden rows are plain numbers


@dataclass(frozen=True, eq=False)
class ExportSource:
    """A fitted model as exporters see it."""

    model: Any  # as passed by the caller
    last: Any  # the model itself, or the last step of a pipeline
    kind: str  # a value of KINDS
    names: tuple[str, ...]  # of the features; empty if they have none
    before: Affine  # the transform of the steps of a pipeline before the model

    @property
    def n_features(self) -> int:
        """Features of a row; 0 for ratings."""
        return len(self.before.scale)

    @property
    def has_feature_ranges(self) -> bool:
        """True if the model knows the range of its features, by a scaler, a transform or thresholds."""
        if self.kind == "network" and not self.before.changes:
            transforms = self.last.scorer_.transforms
            return any(hasattr(step, "mean") or hasattr(step, "landmarks") for step in transforms)
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
        """Constant that is added to the weighted features."""
        return float(self.linear.shift.sum())

    def scores(self, rows: FloatArray) -> FloatArray:
        """Scores of the model itself: of numeric rows, categories as codes; for ratings, of item numbers."""
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
            predicted: FloatArray = self.model.predict(rows)
        return predicted

    def sizes(self, rows: FloatArray, *, constant: bool = True) -> FloatArray | None:
        """Sum of the absolute terms of a linear score; None for other models."""
        if self.kind not in ("linear", "comparer"):
            return None
        with np.errstate(over="ignore"):
            shift = constant * np.abs(self.linear.shift).sum()  # of parts that may cancel: each is rounded
            term_sizes: FloatArray = np.abs(rows) @ np.abs(self.weights) + shift
        return term_sizes


def read_model(model: Any, path: PathLike, features: ArrayLike = None) -> ExportSource:
    """Read what can be exported of a model; raise for the rest, with a hint what to do."""
    last, steps = model, []
    if isinstance(model, Pipeline):
        *steps, last = [step for _, step in model.steps if step not in (None, "passthrough")] or [None]
    _refuse_unscorable(last, path)
    kind = next((name for model_class, name in KINDS.items() if isinstance(last, model_class)), None)
    if kind is None:
        exportable = "rankers, a Comparer, a model of cc.ratings, or a Pipeline of scalers and a ranker"
        hint = f"models are {exportable}; of a search, its best_estimator_."
        raise ExportError(path, f"no format holds models of class {type(last).__name__}", hint)
    check_is_fitted(last)
    if kind == "ratings":
        return ExportSource(model, last, kind, (), Affine.identity(0))
    if steps:
        _refuse_steps(last, kind, path)
    n_features = int(steps[0].n_features_in_ if steps else last.n_features_in_)
    before = Affine.identity(n_features)
    for step in steps:
        before = before.then(_read_scaler(step, path))
    source = ExportSource(model, last, kind, feature_names(model, features, n_features), before)
    if kind in ("linear", "comparer"):
        _refuse_weights(source.linear, path)
    return source


def _refuse_weights(linear: Affine, path: PathLike) -> None:
    fine = np.isfinite(linear.scale) & np.isfinite(linear.shift)
    if not fine.all() or not np.isfinite(linear.shift.sum()):
        number = int(np.argmin(fine))
        problem = f"feature {number} weighs {linear.scale[number]}, and {linear.shift[number]} is added"
        raise ExportError(path, problem, "bring the features nearer to 1, and fit again.")


def _refuse_steps(last: Any, kind: str, path: PathLike) -> None:
    if kind in ("trees", "comparer"):
        needless = "trees do not need scaling" if kind == "trees" else "a Comparer scales by itself"
        problem = f"steps before a {type(last).__name__} cannot be taken into it"
        raise ExportError(path, problem, f"fit it on the features themselves: {needless}.")
    if kind == "network" and any(hasattr(transform, "landmarks") for transform in last.scorer_.transforms):
        problem = "a scaler before a quantile transform would move values off the landmarks, by rounding"
        raise ExportError(path, problem, "leave the scaler out: quantiles do not need scaling.")


def _refuse_unscorable(last: Any, path: PathLike) -> None:
    """Raise for models that score no single row, or not by weights."""
    if isinstance(last, PairModel):
        hint = "serve it in Python (concordant.load), or fit a LinearRanker, which scores items."
        problem = "a PairRanker scores pairs, and its order comes from a decoder: no format has that"
        raise ExportError(path, problem, hint)
    if isinstance(last, Comparer) and hasattr(last, "machine_") and not hasattr(last, "coef_"):
        problem = f"a Comparer of kernel {last.kernel!r} is a sum over training items, which no format has"
        hint = "fit kernel='linear', or serve a table of rank_score(items), computed before."
        raise ExportError(path, problem, hint)


def feature_names(model: Any, features: ArrayLike, n_features: int) -> tuple[str, ...]:
    """Return the names of the features: the caller's, else those of the fit; empty if there are none."""
    try:
        fitted_names = tuple(map(str, getattr(model, "feature_names_in_", ())))
    except (AttributeError, NotFittedError):
        fitted_names = ()
    if features is None:
        return fitted_names
    names = tuple(features) if np.iterable(features) and not isinstance(features, str) else (None,)
    if not all(isinstance(name, str) and name for name in names):
        raise ParameterError("features", features, "a list of non-empty names")
    if len(names) != n_features:
        raise ShapeError("features", (len(names),), f"one name for each of {n_features} features")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ParameterError.because(f"features has {twice!r} twice. Give each feature its own name.")
    if names != fitted_names and set(names) == set(fitted_names):  # each weight would go to another feature
        allowed = f"in the order of the fit ({', '.join(fitted_names)})"
        raise ParameterError("features", features, allowed, hint="Or leave it out.")
    return names
