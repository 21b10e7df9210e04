"""Dataset: an entry of the table, the data that loading returns, and its files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from concordant._base.files import COMPRESSED, open_binary
from concordant.data.labels import Comparisons, Permutations, RankingData
from concordant.exceptions import ChecksumError, DatasetNotFoundError
from concordant.types import FloatArray, IntArray

Layout = Mapping[str, tuple[str, ...]]
"""Files of each split. In a name `{0}` is the number of the fold and `{1}` .. `{4}` are the numbers after it,
after 5 comes 1: so one line describes all rotations of LETOR's five parts."""


@dataclass(frozen=True)
class Options:
    """Storage of features, and the seed for drawing sides, if they are drawn."""

    sparse: bool = False
    dtype: DTypeLike = np.float64
    seed: int | None = 0


@dataclass(frozen=True)
class Dataset:
    """Entry of the table: description, owner and files of a dataset.

    Attributes
    ----------
    name, title
        Name in the table, and a description.
    kind
        "grades", "comparisons", "orders", "annotations" or "elections": what `load` returns.
    source, licence
        The owner's page, and a summary of the terms.
    folders
        Possible names of its folder in the data folder.
    layouts
        Possible layouts of its files in that folder, the official one first.
    read
        (dataset, files, options) -> data.
    queries, documents, features, grades
        Counts; queries are contests, voters or elections where there are no queries. None: not applicable.
    folds
        5 for LETOR's folds, 1 for one official split, 0 for none.
    checksums
        SHA-256 of the uncompressed contents, by file, for files that we have checked.
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
    """The three parts of a fold; `validation` is None if the owner provides none."""

    train: RankingData
    validation: RankingData | None
    test: RankingData


@dataclass(frozen=True, eq=False)
class ComparisonData:
    """Comparisons, with features and tables of the source.

    Attributes
    ----------
    comparisons
        Compared items, and the outcomes.
    pairs
        Features of both sides, shape (n_pairs, 2, n_features), or None.
    feature_names
        Names of those features.
    extras
        The tables of the source (pyarrow); "rows" has one row per comparison.
    """

    comparisons: Comparisons
    pairs: FloatArray | None = None
    feature_names: tuple[str, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)

    @property
    def y(self) -> IntArray:
        """Outcomes of the comparisons."""
        outcome: IntArray = np.asarray(self.comparisons.outcome)
        return outcome

    def __repr__(self) -> str:
        items, ties = len(self.comparisons.items), int((self.comparisons.outcome == 0).sum())
        return f"ComparisonData({len(self.comparisons):,} comparisons of {items:,} items, {ties:,} ties)"


@dataclass(frozen=True, eq=False)
class OrderData:
    """Full orders: row `k` is item `item[k]` of query `qid[k]`; `X` describes the items, if available."""

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


# Location and checksums of dataset files.

PARTS = 5
BLOCK = 1 << 20


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of the datasets: the argument, else CONCORDANT_DATA, else the user's cache."""
    configured = folder or os.environ.get("CONCORDANT_DATA")
    if configured:
        return Path(configured).expanduser()
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("concordant"))


def find_files(dataset: Dataset, root: Path, fold: int, splits: Iterable[str]) -> dict[str, list[Path]]:
    """Find the files of each split, in the first complete layout; raise if there is none."""
    split_names = list(splits)
    missing = ""
    for layout in dataset.layouts:
        names = file_names(layout, fold, split_names)
        for home in homes(dataset, root):
            paths_by_split = {split: [existing(home / name) for name in names[split]] for split in names}
            if all(path for paths in paths_by_split.values() for path in paths):
                return {split: [path for path in paths if path] for split, paths in paths_by_split.items()}
        missing = missing or ", ".join(sorted({name for group in names.values() for name in group}))
    where = str(root / dataset.folders[0])
    raise DatasetNotFoundError(dataset.name, missing, where, dataset.source, dataset.licence)


def file_names(layout: Layout, fold: int, splits: Iterable[str]) -> dict[str, list[str]]:
    """Format the file names of each split of a fold.

    >>> letor = {"train": ("S{0}.txt", "S{1}.txt", "S{2}.txt"), "validation": ("S{3}.txt",)}
    >>> file_names(letor, 4, ["train", "validation"])
    {'train': ['S4.txt', 'S5.txt', 'S1.txt'], 'validation': ['S2.txt']}
    """
    rotation = [(fold - 1 + step) % PARTS + 1 for step in range(PARTS)]
    return {split: [name.format(*rotation) for name in layout.get(split, ())] for split in splits}


def homes(dataset: Dataset, root: Path) -> list[Path]:
    """Possible folders of the dataset: below the root, or the root itself if it has the name."""
    below = [root / name for name in dataset.folders]
    folder_names = {name.lower() for name in dataset.folders}
    return [root, *below] if root.name.lower() in folder_names else below


def existing(path: Path) -> Path | None:
    """Return the path of the file or of a compressed copy; None if there is neither."""
    candidates = (path.with_name(path.name + suffix) for suffix in ("", *COMPRESSED))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def verify_file(dataset: Dataset, path: Path) -> None:
    """Raise if the uncompressed contents of a file have another checksum; files without a checksum pass."""
    plain = path.as_posix()
    plain = plain.removesuffix(path.suffix) if path.suffix in COMPRESSED else plain
    expected = next((sum_ for name, sum_ in dataset.checksums.items() if plain.endswith("/" + name)), None)
    if expected is None:
        return
    digest = hashlib.sha256()
    with open_binary(path) as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
    if digest.hexdigest() != expected:
        raise ChecksumError(path, digest.hexdigest(), expected)
