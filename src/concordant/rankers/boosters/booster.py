"""Booster: interface of the libraries of boosted trees, and the monitor that they report rounds to."""

from __future__ import annotations

import math
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from concordant._base.segments import allow_forks
from concordant._base.validate import is_verbose
from concordant.exceptions import MissingExtraError, ParameterError, show_value
from concordant.rankers.boosters.plan import Slopes, draw_seed, slopes
from concordant.rankers.fit_progress import open_status_bar
from concordant.surrogates import Loss, Squared, Surrogate
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from concordant.rankers.boosters.tree_training_set import Segment


# The monitor is called after each round of boosting; it keeps the scores and decides when to stop.


@dataclass(frozen=True)
class Round:
    """State after a round of boosting, as passed to callbacks.

    Attributes
    ----------
    n_trees
        Number of trees so far.
    score
        Metric on the held-out queries, as from `score`; None without such queries.
    best_iteration
        Number of trees that early stopping would keep.
    """

    n_trees: int
    score: float | None
    best_iteration: int


@dataclass
class BoostingMonitor:
    """Record of the rounds of boosting, which decides when to stop."""

    evaluate: Callable[[FloatArray], float] | None = None  # scores the held-out rows; None: there are none
    patience: int | None = None  # rounds without a better score after which training stops; None: never
    callbacks: tuple[Callable[[Round], object], ...] = ()  # a true result stops the training
    done: int = 0  # trees of an earlier fit, which are all kept
    random: bool = False  # True if a round without a split may be followed by a round with one
    history: list[float] = field(default_factory=list)  # score at each number of trees; NaN if not computed
    losses: dict[int, float] = field(default_factory=dict)  # number of trees -> summed loss, if known
    train_scores: FloatArray | None = None  # after the last round, if the library provides them
    stopped_by: str = "limit"  # "limit", "early_stopping", "no_split", "callback" or "interrupt"
    pause: int | None = None  # number of trees at which the library is to stop for now; None: no limit
    interrupted: bool = False
    latest: float | None = None
    failure: Exception | None = None  # of a callback, for the caller to raise: not all libraries propagate it

    def __post_init__(self) -> None:
        self.history = [*self.history[: self.done], *[math.nan] * (self.done - len(self.history))]
        self.peak = self.done if self.done and math.isfinite(self.history[-1]) else 0

    @property
    def best(self) -> int:
        """First number of trees with the best score; the current number if there are no scores."""
        return self.peak or len(self.history)

    def score(self, scores: FloatArray) -> float:
        """Score the held-out rows after a round, before the round is recorded."""
        if self.evaluate is not None:
            self.latest = self.evaluate(scores)
        return math.nan if self.latest is None else self.latest

    def note(self, score: float) -> None:
        """Append the score with another tree, and update the best number of trees."""
        self.history.append(score)
        if math.isfinite(score) and not (self.peak and score <= self.history[self.peak - 1]):
            self.peak = len(self.history)

    def rewind(self, history: Sequence[float]) -> None:
        """Restore the state of a training with these scores, which include those of an earlier fit."""
        self.history, self.peak = self.history[: self.done], min(self.peak, self.done)
        for score in history[self.done :]:
            self.note(score)
        self.latest = self.history[-1] if self.history and self.evaluate is not None else None

    def record_round(self, n_trees: int) -> bool:
        """Record a round; return True if training is to stop."""
        has_new_tree = n_trees > len(self.history)
        if has_new_tree:
            self.note(math.nan if self.latest is None else self.latest)
        try:
            answers = [callback(Round(n_trees, self.latest, self.best)) for callback in self.callbacks]
        except KeyboardInterrupt:
            self.interrupted, answers = True, []
        except Exception as error:  # noqa: BLE001  any exception is the caller's
            self.failure, answers = error, [True]
        if self.interrupted:
            self.stopped_by = "interrupt"
        elif any(answers):
            self.stopped_by = "callback"
        elif self.patience is not None and n_trees - self.best >= self.patience:
            self.stopped_by = "early_stopping"
        elif not (has_new_tree or self.random):
            self.stopped_by = "no_split"
        return self.stopped_by != "limit" or n_trees == self.pause


@contextmanager
def interruptible(monitor: BoostingMonitor) -> Iterator[None]:
    """Make Ctrl-C stop the training after the round, in every library; a second one stops it at once."""
    default_handler = signal.getsignal(signal.SIGINT)
    if default_handler is None or threading.current_thread() is not threading.main_thread():
        yield  # signals belong to the main thread, or to another program
        return

    def handle_interrupt(number: int, frame: Any) -> None:
        del number, frame
        monitor.interrupted = True
        signal.signal(signal.SIGINT, default_handler)

    signal.signal(signal.SIGINT, handle_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, default_handler)


@contextmanager
def progress_callbacks(
    title: str, total: int, verbose: int
) -> Iterator[tuple[Callable[[Round], object], ...]]:
    """Yield the callback of a progress bar, or nothing if no bar is wanted."""
    if not is_verbose(verbose):
        yield ()
        return
    with open_status_bar(title, total) as (_, update):

        def move_bar(round_: Round) -> None:
            score = "" if round_.score is None else f", {round_.score:.4f} (best at {round_.best_iteration})"
            update(round_.n_trees, f"{round_.n_trees} trees{score}")

        yield (move_bar,)


# Booster: the interface of a library of boosted trees, and its inputs: tree parameters and data.

TINY = 1e-35  # LightGBM reads smaller numbers as 0


@dataclass(frozen=True)
class Trees:
    """Checked tree parameters of `BoostedRanker`."""

    library: str  # name of the booster
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
    monotonic: tuple[int, ...] = ()  # -1, 0 or 1 per feature; empty: no constraints
    categorical: tuple[int, ...] = ()  # numbers of the features that are category codes
    names: tuple[str, ...] = ()  # of features; empty if some library would not accept them
    params: Mapping[str, Any] = field(default_factory=dict)  # of the library, which take precedence


class TrainingFacts(Protocol):
    """Facts about the training data that a library's parameters depend on."""

    @property
    def surrogate(self) -> Surrogate:
        """Loss that is minimised."""

    @property
    def unit(self) -> float:
        """Mean curvature at scores 0 of the rows that have any: the weight of a row in a leaf."""

    @property
    def gain(self) -> float:
        """Twice the mean gain of a first Newton step of a single row."""


@dataclass(frozen=True, eq=False)
class TreeData:
    """Training data of trees; rows of each query are adjacent."""

    X: Any
    surrogate: Surrogate
    loss: Loss  # summed over queries of mean weight 1
    curvature: str  # its kind
    labels: FloatArray  # as the surrogate reads them
    query_weights: FloatArray
    row_weights: FloatArray
    offsets: IntArray
    heldout_features: Any = None  # None: there are none

    def objective(self, monitor: BoostingMonitor, scale: float) -> Callable[[FloatArray, Any], Slopes]:
        """Return a plain function of scores that computes scaled gradient and curvature; it may be copied."""
        loss, kind = self.loss, self.curvature

        def compute_slopes(scores: FloatArray, data: Any) -> Slopes:
            del data
            value, pair = slopes(loss, scores, kind, scale)
            monitor.losses[len(monitor.history)] = value
            return pair

        return compute_slopes

    @cached_property
    def first_slopes(self) -> tuple[FloatArray, FloatArray]:
        """Gradient and curvature at scores 0 of the rows that have a curvature."""
        zeros = np.zeros(len(self.labels))
        grad, curvature = self.loss.value_and_grad(zeros)[1], self.loss.curvature(zeros, self.curvature)
        return grad[curvature > 0.0], curvature[curvature > 0.0]

    @property
    def unit(self) -> float:
        """Mean curvature of a row; see `TrainingFacts`."""
        curvature = self.first_slopes[1]
        return float(curvature.mean()) if curvature.size else 1.0

    @property
    def gain(self) -> float:
        """Mean gain of a row; see `TrainingFacts`."""
        grad, curvature = self.first_slopes
        return float((grad**2 / curvature).mean()) if curvature.size else 0.0


def _blank_data(n_features: int) -> TreeData:
    """Build four rows from which nothing is learned: each split leaves the same labels on both sides."""
    X = np.repeat([[0.0], [0.0], [1.0], [1.0]], n_features, axis=1)
    labels, offsets = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0, 4])
    loss, ones = Squared().bind(labels, offsets), np.ones(4)
    return TreeData(X, Squared(), loss, "exact", labels, ones[:1], ones, offsets)


def power_of_two(number: float) -> float:
    """Return the power of 2 nearest to a positive number, in the logarithm.

    >>> power_of_two(0.3), power_of_two(1000.0)
    (0.25, 1024.0)
    """
    return 2.0 ** round(math.log2(number))


def can_split(X: Any) -> bool:
    """True if some feature has two different values, counting missing as a value.

    >>> can_split(np.array([[1.0, 0.0], [1.0, np.nan]])), can_split(np.array([[1.0, np.nan], [1.0, np.nan]]))
    (True, False)
    """
    columns = X.tocsc() if hasattr(X, "tocsc") else X
    for number in range(X.shape[1]):
        column = columns[:, [number]]
        values = column.toarray() if hasattr(column, "toarray") else column
        missing = np.isnan(values)
        with np.errstate(over="ignore"):  # an infinite spread counts
            if missing.any() != missing.all() or (not missing.any() and np.ptp(values) > TINY):
                return True
    return False


class Booster(ABC):
    """Interface of a library of boosted trees; fitted models are the library's objects."""

    name: ClassVar[str]
    aliases: ClassVar[tuple[set[str], ...]] = ()  # each set: names of the same parameter
    reserved_params: ClassVar[Mapping[str, str]]  # names that `params` may not set -> what to use instead
    needs_gradients: ClassVar[bool] = True  # True if it is called with gradients and curvatures

    def library(self) -> Any:
        """Import the library; raise if it is not installed."""
        try:
            module = import_module(self.name)
        except ImportError as error:
            raise MissingExtraError(self.name, "boosting", f"booster={self.name!r}") from error
        allow_forks(self.name, self.set_threads)
        return module

    @staticmethod
    def set_threads(number: int) -> None:
        """Limit the library's OpenMP threads; most libraries follow OpenMP's limit."""
        del number

    def accepts_loss(self, surrogate: Surrogate) -> bool:
        """True if the library can train with this loss."""
        del surrogate
        return True

    def check(self, surrogate: Surrogate, curvature: str) -> None:
        """Raise if the library cannot train with this loss and curvature."""
        del surrogate, curvature

    def scale(self, data: TrainingFacts) -> float:
        """Return the power of 2 that scales gradients and curvatures, so that a row has curvature near 1.

        Sums over leaves then count rows, in comparison with the library's constants, and single precision
        loses nothing. Steps stay the same, to the last bit since the scale is a power of 2.
        """
        return power_of_two(1.0 / data.unit)

    def is_random(self, trees: Trees) -> bool:
        """True if a round without a split may be followed by a round with one."""
        return trees.subsample < 1.0 or trees.colsample < 1.0

    def settings(self, trees: Trees, data: TrainingFacts) -> dict[str, Any]:
        """Build the library's parameters: ours, overridden by the caller's `params`."""
        params = self._library_params(trees, data)
        for name, value in trees.params.items():
            for main_name in self.find_aliases(name):
                if main_name in self.reserved_params:
                    reason = self.reserved_params[main_name]
                    raise ParameterError.because(f"params may not set {name}={show_value(value)}: {reason}.")
                params.pop(main_name, None)
        return {**params, **trees.params}

    def grow_or_stump(self, trees: Trees, data: TreeData, monitor: BoostingMonitor, start: Any = None) -> Any:
        """Grow trees, or a single constant tree if no feature can be split."""
        model = self.grow(trees, data, monitor, start) if can_split(data.X) else None
        if model is not None:
            return model
        monitor.stopped_by = "no_split"
        if start is not None:
            return start
        held_out = data.heldout_features
        monitor.note(math.nan if held_out is None else monitor.score(np.zeros(held_out.shape[0])))
        return self.stump(trees, data.X.shape[1])

    def stump(self, trees: Trees, n_features: int) -> Any:
        """Grow a single tree that scores all rows alike."""
        return self.grow(replace(trees, n_estimators=1), _blank_data(n_features), BoostingMonitor())

    def segment(
        self, trees: Trees, data: TreeData, monitor: BoostingMonitor, segment: Segment
    ) -> tuple[Any, bytes]:
        """Grow the segment's rounds from the saved state; return the trees and the state to save."""
        model = self.from_bytes(segment.contents) if segment.contents else segment.start
        n_grown = 0 if model is None else self.n_trees(model)
        seed = draw_seed([trees.seed, segment.begun]) if segment.begun else trees.seed
        segment_trees = replace(trees, n_estimators=n_grown + segment.rounds, seed=seed)
        model = self.grow_or_stump(segment_trees, data, monitor, model if n_grown else None)
        return model, self.to_bytes(model)

    def to_bytes(self, model: Any) -> bytes:
        """Serialize a model in the library's format."""
        raise NotImplementedError

    def from_bytes(self, contents: bytes) -> Any:
        """Load a model from `to_bytes`."""
        raise NotImplementedError

    @abstractmethod
    def _library_params(self, trees: Trees, data: TrainingFacts) -> dict[str, Any]:
        """Return the library's parameters for these trees."""

    def find_aliases(self, name: str) -> set[str]:
        """Return all names of a parameter."""
        return next((names for names in self.aliases if name in names), {name})

    @abstractmethod
    def grow(self, trees: Trees, data: TreeData, monitor: BoostingMonitor, start: Any = None) -> Any:
        """Grow `trees.n_estimators` trees, starting from those of `start`; the monitor may stop it earlier.

        Returns None if the library finds no feature to split by.
        """

    @abstractmethod
    def scores(self, model: Any, X: Any, trees: Trees) -> FloatArray:
        """Return a score per row."""

    @abstractmethod
    def gains(self, model: Any, n_features: int) -> FloatArray:
        """Return the importance of each feature."""

    @abstractmethod
    def n_trees(self, model: Any) -> int:
        """Return the number of trees."""

    @abstractmethod
    def cut(self, model: Any, n_trees: int) -> Any:
        """Return a model of the first `n_trees` trees."""
