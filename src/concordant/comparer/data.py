"""Data: what `Comparer.fit` is given, checked; in memory, or in parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from concordant.comparer.machine import Machine, train
from concordant.comparer.pairs import decisions
from concordant.comparer.recipe import Recipe, refused_in_parts
from concordant.comparer.scaling import Scaling
from concordant.exceptions import LabelError, ParameterError
from concordant.scorers.kernel import Kernel
from concordant.solvers.checkpoint import digest
from concordant.solvers.journal import Journal
from concordant.solvers.partitioned.cluster import is_collection
from concordant.supervision.check import check_pairs
from concordant.supervision.columns import check_lengths, check_nonnegative
from concordant.supervision.labels import check_outcome
from concordant.supervision.scans.pairs import PairScan
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = [
    "Data",
    "Fitted",
    "PairData",
    "Split",
    "checked",
    "checked_rows",
    "data_of",
    "no_outcomes",
    "no_weight",
]

KERNEL_ROWS = 50  # items whose values tell a user's kernel from another

Fitted = tuple[Scaling, Machine]
Split = tuple[IntArray, IntArray]
"""Rows to train on, and rows that are held out."""


class Data(Protocol):
    """Pairs to train on.

    Attributes
    ----------
    n_features
        Of an item.
    y, weight
        Outcome and weight of each pair.
    """

    @property
    def n_features(self) -> int:
        """Of an item."""

    @property
    def y(self) -> IntArray:
        """Outcome of each pair."""

    @property
    def weight(self) -> FloatArray:
        """Weight of each pair."""

    def train(self, recipe: Recipe, journal: Journal | None, split: Split | None = None) -> Fitted:
        """Train on all pairs, or on those of a split."""

    def decisions(self, fitted: Fitted, rows: IntArray | None = None) -> FloatArray:
        """Give the decisions of all pairs, or of some."""

    def digest(self, kernel: Kernel | None) -> str:
        """Give what tells these pairs, and a kernel of the user's, from others."""


@dataclass(frozen=True, eq=False)
class PairData:
    """Pairs in memory."""

    pairs: FloatArray
    y: IntArray
    weight: FloatArray

    @property
    def n_features(self) -> int:
        """Of an item."""
        return int(self.pairs.shape[2])

    def train(self, recipe: Recipe, journal: Journal | None, split: Split | None = None) -> Fitted:
        """Train on all pairs, or on those of a split."""
        given = self.pairs, self.y, self.weight
        if split is not None:
            given = self.pairs[split[0]], self.y[split[0]], self.weight[split[0]]
        return train(*given, recipe, journal)

    def decisions(self, fitted: Fitted, rows: IntArray | None = None) -> FloatArray:
        """Give the decisions of all pairs, or of some."""
        scaling, machine = fitted
        return decisions(scaling, machine.scorer, self.pairs if rows is None else self.pairs[rows])

    def digest(self, kernel: Kernel | None) -> str:
        """Give what tells these pairs, and a kernel of the user's, from others."""
        few = self.pairs[:KERNEL_ROWS, 0]
        return digest(self.pairs, self.y, self.weight, None if kernel is None else kernel(few, few))


def data_of(
    pairs: ArrayLike, y: ArrayLike, sample_weight: ArrayLike, client: Any, recipe: Recipe, n_folds: int
) -> Data:
    """Check what is given; `n_folds` of it are going to be held out, one after the other."""
    if not is_parted(pairs):
        if client is not None:
            wanted = "left out: pairs are in memory here; cc.scan_pairs or Dask arrays go to a cluster"
            raise ParameterError("client", type(client).__name__, wanted)
        return PairData(*checked(pairs, y, sample_weight))
    from concordant.comparer.partitioned.source import source_of
    from concordant.comparer.partitioned.training import PartedData

    if (refused := refused_in_parts(recipe)) is not None:
        raise refused
    return PartedData.of(source_of(pairs, y, sample_weight, client, recipe.solver), n_folds, recipe.seed)


def is_parted(pairs: ArrayLike) -> bool:
    """Whether pairs are in parts."""
    return is_collection(pairs) or isinstance(pairs, PairScan)


def checked(
    pairs: ArrayLike, y: ArrayLike, sample_weight: ArrayLike
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Give pairs, outcomes and weights that fit together, and of which one counts."""
    given, outcome, weight = checked_rows(pairs, y, sample_weight)
    if not weight.any():
        raise no_weight()
    return given, outcome, weight


def checked_rows(
    pairs: ArrayLike, y: ArrayLike, sample_weight: ArrayLike
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Give pairs, outcomes and weights that fit together."""
    if y is None:
        raise no_outcomes()
    given, outcome = check_pairs(pairs), check_outcome(y, "y")
    weight = np.ones(len(given)) if sample_weight is None else sample_weight
    weight = check_nonnegative(weight, "sample_weight", "pair")
    check_lengths("pairs", len(given), y=outcome, sample_weight=weight)
    return given, outcome, weight


def no_outcomes() -> LabelError:
    """Say what is missing."""
    hint = "give the outcomes, -1 left better, 0 tie, 1 right better (of Comparisons: .outcome)."
    return LabelError("y is missing", hint)


def no_weight() -> ParameterError:
    """Say that no pair counts."""
    return ParameterError("sample_weight", 0.0, "above 0 for at least one pair")
