"""What is known about a dataset, and what loading one gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.supervision.data import RankingData
from concordant.supervision.labels import Comparisons, Permutations
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

__all__ = ["Annotations", "ComparisonData", "Dataset", "Fold", "Layout", "Options", "OrderData", "whole"]

Layout = Mapping[str, tuple[str, ...]]
"""Files of each split. In a name `{0}` is the number of the fold and `{1}` .. `{4}` are the numbers after it,
after 5 comes 1: so one line describes all rotations of LETOR's five parts."""


@dataclass(frozen=True)
class Options:
    """How features are kept, and by which seed sides are drawn, where they are."""

    sparse: bool = False
    dtype: DTypeLike = np.float64
    seed: int | None = 0


@dataclass(frozen=True)
class Dataset:
    """One row of the table: what a dataset is, whose it is, where its files stand.

    Attributes
    ----------
    name, title
        How it is called here, and what it is.
    kind
        "grades", "comparisons", "orders", "annotations" or "elections": what `load` returns.
    source, licence
        The owner's page, and the terms in short.
    folders
        Names under which its folder may stand in the data folder.
    layouts
        Where its files stand in that folder, the official layout first.
    read
        (dataset, files, options) -> data.
    queries, documents, features, grades
        Counts; queries are contests, voters or elections where there are no queries. None: not applicable.
    folds
        5 for LETOR's folds, 1 for one official split, 0 for none.
    checksums
        SHA-256 of the uncompressed contents, by file, for the files we have seen.
    """

    name: str
    title: str
    kind: str
    source: str
    licence: str
    folders: tuple[str, ...]
    layouts: tuple[Layout, ...]
    read: Callable[[Dataset, list[Path], Options], Any]
    queries: int | None = None
    documents: int | None = None
    features: int | None = None
    grades: str = ""
    folds: int = 0
    checksums: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Fold:
    """The three parts of a fold; `validation` is None where the owner gives none."""

    train: RankingData
    validation: RankingData | None
    test: RankingData


@dataclass(frozen=True, eq=False)
class ComparisonData:
    """Comparisons, with what else the source says.

    Attributes
    ----------
    comparisons
        Who was compared with whom, and the outcomes.
    pairs
        Features of both sides, shape (n_pairs, 2, n_features), or None.
    feature_names
        Names of those features.
    extras
        The source's own tables (pyarrow); "rows" has one row per comparison.
    """

    comparisons: Comparisons
    pairs: FloatArray | None = None
    feature_names: tuple[str, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)

    @property
    def y(self) -> IntArray:
        """The outcomes."""
        outcome: IntArray = np.asarray(self.comparisons.outcome)
        return outcome

    def __repr__(self) -> str:
        items, ties = len(self.comparisons.items), int((self.comparisons.outcome == 0).sum())
        return f"ComparisonData({len(self.comparisons):,} comparisons of {items:,} items, {ties:,} ties)"


@dataclass(frozen=True, eq=False)
class OrderData:
    """Full orders: row `k` is item `item[k]` of query `qid[k]`; `X` describes the items, where known."""

    y: Permutations
    qid: IntArray
    item: IntArray
    X: FloatArray | None = None

    def __repr__(self) -> str:
        return f"OrderData({len(self.y):,} rows, {len(np.unique(self.qid)):,} orders)"


@dataclass(frozen=True, eq=False)
class Annotations:
    """Grades by several annotators: row `k` says that `annotator[k]` gave `item[k]` the grade `grade[k]`.

    `query` is None where all items belong together; `gold` has the expert grade of some items.
    """

    item: NDArray[Any]
    annotator: NDArray[Any]
    grade: IntArray
    query: NDArray[Any] | None = None
    gold: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        items, people = len(np.unique(self.item)), len(np.unique(self.annotator))
        return f"Annotations({len(self.item):,} grades by {people:,} annotators on {items:,} items)"


def whole(*files: str) -> tuple[Layout, ...]:
    """Give the layout of a set without splits."""
    return ({"all": files},)
