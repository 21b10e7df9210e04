"""Booster: what is asked of a library of boosted trees; and what it is told of the trees and the data."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from concordant.exceptions import MissingExtraError, ParameterError
from concordant.rankers.boosters.parameters import seed_of
from concordant.rankers.boosters.plan import Slopes, slopes
from concordant.rankers.boosters.watch import Watch
from concordant.surrogates import Loss, Squared, Surrogate
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from concordant.rankers.boosters.segments import Segment

__all__ = ["TINY", "Booster", "Data", "Measured", "Trees", "power_of_two", "varies"]

TINY = 1e-35  # LightGBM reads smaller numbers as 0


@dataclass(frozen=True)
class Trees:
    """What the trees shall be like: parameters of `BoostedRanker`, checked.

    Attributes
    ----------
    library
        The name of the booster.
    monotonic
        -1, 0 or 1 for each feature; empty: no constraint.
    categorical
        Numbers of the features that are codes of categories.
    names
        Of the features; empty where there are none that every library takes.
    params
        The library's own parameters, which win.
    """

    library: str
    n_estimators: int
    learning_rate: float
    max_leaf_nodes: int | None
    max_depth: int | None
    min_samples_leaf: int
    l2: float
    subsample: float
    colsample: float
    seed: int
    n_jobs: int | None
    monotonic: tuple[int, ...] = ()
    categorical: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)


class Measured(Protocol):
    """What a library's parameters depend on besides the trees.

    Attributes
    ----------
    surrogate
        What is minimised.
    unit
        Mean curvature of a row at scores 0, of those that have any: what a row counts in a leaf.
    gain
        What the first Newton steps of single rows would gain, in the mean; twice that.
    """

    @property
    def surrogate(self) -> Surrogate:
        """What is minimised."""

    @property
    def unit(self) -> float:
        """Mean curvature of a row."""

    @property
    def gain(self) -> float:
        """Mean gain of a row."""


@dataclass(frozen=True, eq=False)
class Data:
    """What the trees are grown on, rows of each query adjacent.

    Attributes
    ----------
    X
        Features.
    loss, curvature
        The surrogate on the labels, summed over queries of mean weight 1; and the kind of its curvature.
    labels, query_weights, row_weights, offsets
        What the surrogate is told, the weight of each query, that of each row, and the queries.
    held
        Features of held-out queries; None: there are none.
    """

    X: Any
    surrogate: Surrogate
    loss: Loss
    curvature: str
    labels: FloatArray
    query_weights: FloatArray
    row_weights: FloatArray
    offsets: IntArray
    held: Any = None

    def objective(self, watch: Watch, scale: float) -> Callable[[FloatArray, Any], Slopes]:
        """Give gradient and curvature at scores, times `scale`: a plain function, which may be copied."""
        loss, kind = self.loss, self.curvature

        def asked(scores: FloatArray, data: Any) -> Slopes:
            del data
            value, found = slopes(loss, scores, kind, scale)
            watch.losses[len(watch.history)] = value
            return found

        return asked

    @cached_property
    def first(self) -> tuple[FloatArray, FloatArray]:
        """Gradient and curvature at scores 0, of the rows that have a curvature."""
        zeros = np.zeros(len(self.labels))
        grad, found = self.loss.value_and_grad(zeros)[1], self.loss.curvature(zeros, self.curvature)
        return grad[found > 0.0], found[found > 0.0]

    @property
    def unit(self) -> float:
        """As of `Measured`."""
        found = self.first[1]
        return float(found.mean()) if found.size else 1.0

    @property
    def gain(self) -> float:
        """As of `Measured`."""
        grad, found = self.first
        return float((grad**2 / found).mean()) if found.size else 0.0


def blank(n_features: int) -> Data:
    """Give rows of so many features from which nothing is learned: splits part the labels evenly."""
    X = np.repeat([[0.0], [0.0], [1.0], [1.0]], n_features, axis=1)
    labels, offsets = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0, 4])
    loss, ones = Squared().bind(labels, offsets), np.ones(4)
    return Data(X, Squared(), loss, "exact", labels, ones[:1], ones, offsets)


def power_of_two(number: float) -> float:
    """Give the power of 2 next to a positive number.

    >>> power_of_two(0.3), power_of_two(1000.0)
    (0.25, 1024.0)
    """
    return 2.0 ** round(math.log2(number))


def varies(X: Any) -> bool:
    """Tell whether any feature has two values, missing being one.

    >>> varies(np.array([[1.0, 0.0], [1.0, np.nan]])), varies(np.array([[1.0, np.nan], [1.0, np.nan]]))
    (True, False)
    """
    columns = X.tocsc() if hasattr(X, "tocsc") else X
    for number in range(X.shape[1]):
        column = columns[:, [number]]
        values = column.toarray() if hasattr(column, "toarray") else column
        missing = np.isnan(values)
        if missing.any() != missing.all() or (not missing.any() and np.ptp(values) > TINY):
            return True
    return False


class Booster(ABC):
    """A library of boosted trees. The model it grows is the library's own object."""

    name: ClassVar[str]
    own: ClassVar[Mapping[str, str]]  # what `params` may not say -> what says it instead
    asks: ClassVar[bool] = True  # for gradients and curvatures

    def library(self) -> Any:
        """Import it."""
        try:
            return import_module(self.name)
        except ImportError as error:
            raise MissingExtraError(self.name, "boosting", f"booster={self.name!r}") from error

    def takes(self, surrogate: Surrogate) -> bool:
        """Tell whether it can be trained by this loss."""
        del surrogate
        return True

    def check(self, surrogate: Surrogate, curvature: str) -> None:
        """Refuse a loss that it cannot be trained by."""
        del surrogate, curvature

    def scale(self, data: Measured) -> float:
        """Give the power of 2 that gradients and curvatures are multiplied by: a row has a curvature near 1.

        Sums over leaves are then rows, to whatever the library compares or adds to them; and single precision
        loses nothing. Steps, and by a power of 2 their last bits, stay as they are.
        """
        return power_of_two(1.0 / data.unit)

    def draws(self, trees: Trees) -> bool:
        """Tell whether a round that finds no split may be followed by one that does."""
        return trees.subsample < 1.0 or trees.colsample < 1.0

    def settings(self, trees: Trees, data: Measured) -> dict[str, Any]:
        """Give the library's parameters: ours, then the caller's, which win."""
        chosen = self.chosen(trees, data)
        for name, value in trees.params.items():
            for meant in self.names_of(name):
                if meant in self.own:
                    raise ParameterError("params", {name: value}, f"without {name!r}: {self.own[meant]}")
                chosen.pop(meant, None)
        return {**chosen, **trees.params}

    def planted(self, trees: Trees, data: Data, watch: Watch, start: Any = None) -> Any:
        """Grow, if there is anything to split by; else one tree that scores all rows alike."""
        model = self.grow(trees, data, watch, start) if varies(data.X) else None
        if model is not None:
            return model
        watch.stopped_by = "no_split"
        if start is not None:
            return start
        watch.note(math.nan if data.held is None else watch.score(np.zeros(data.held.shape[0])))
        return self.stump(trees, data.X.shape[1])

    def stump(self, trees: Trees, n_features: int) -> Any:
        """Give one tree that scores all rows alike."""
        return self.grow(replace(trees, n_estimators=1), blank(n_features), Watch())

    def segment(self, trees: Trees, data: Data, watch: Watch, segment: Segment) -> tuple[Any, bytes]:
        """Grow some rounds from what was written; the trees, and what is to be written of them."""
        model = self.read(segment.contents) if segment.contents else segment.start
        known = 0 if model is None else self.n_trees(model)
        seed = seed_of([trees.seed, segment.begun]) if segment.begun else trees.seed
        few = replace(trees, n_estimators=known + segment.rounds, seed=seed)
        model = self.planted(few, data, watch, model if known else None)
        return model, self.written(model)

    def written(self, model: Any) -> bytes:
        """Give a model in the library's own format."""
        raise NotImplementedError

    def read(self, contents: bytes) -> Any:
        """Give the model that was written."""
        raise NotImplementedError

    @abstractmethod
    def chosen(self, trees: Trees, data: Measured) -> dict[str, Any]:
        """Give the parameters that follow from ours."""

    @abstractmethod
    def names_of(self, name: str) -> set[str]:
        """Give all names of a parameter."""

    @abstractmethod
    def grow(self, trees: Trees, data: Data, watch: Watch, start: Any = None) -> Any:
        """Give a model of `trees.n_estimators` trees, those of `start` first; the watch may end it before.

        None: the library finds no feature that it could split by.
        """

    @abstractmethod
    def scores(self, model: Any, X: Any, trees: Trees) -> FloatArray:
        """Give one score per row."""

    @abstractmethod
    def gains(self, model: Any, n_features: int) -> FloatArray:
        """Give the importance of each feature."""

    @abstractmethod
    def n_trees(self, model: Any) -> int:
        """Count the trees."""

    @abstractmethod
    def cut(self, model: Any, n_trees: int) -> Any:
        """Give a model of the first trees only."""
