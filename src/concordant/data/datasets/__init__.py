"""Named public datasets: descriptions, owners, and loading of the files once you have them.

Nothing is downloaded: most owners require an agreement first. Put the files in a folder and pass it as
`folder=`, set the environment variable CONCORDANT_DATA, or use the default, the user's cache folder.

>>> print(describe("mq2008").splitlines()[0])
mq2008: LETOR 4.0 MQ2008, supervised, query-level normalised
"""

from __future__ import annotations

import os
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from concordant._base.validate import is_whole
from concordant.data.datasets.dataset import (
    Annotations,
    ComparisonData,
    Dataset,
    Fold,
    Options,
    OrderData,
    data_folder,
    file_names,
    find_files,
    verify_file,
)
from concordant.data.datasets.loaders import DATASETS
from concordant.exceptions import DatasetNotFoundError, ParameterError, UnknownNameError

__all__ = [
    "Annotations",
    "ComparisonData",
    "Dataset",
    "Fold",
    "OrderData",
    "available",
    "data_folder",
    "describe",
    "get",
    "load",
    "names",
    "table",
]

Folder = str | os.PathLike[str] | None
SPLITS = ("train", "validation", "test")
COLUMNS = ("name", "kind", "queries", "documents", "features", "grades", "folds", "licence", "source")


def load(
    name: str,
    *,
    fold: int | None = None,
    split: str | None = None,
    folder: Folder = None,
    verify: bool = False,
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
    seed: int | None = 0,
) -> Any:
    """Load a named dataset from files on this machine.

    Parameters
    ----------
    name
        One of `names()`.
    fold
        Number of the fold, from 1: returns a `Fold`. Sets with one official split have fold 1. None: all
        parts together.
    split
        "train", "validation" or "test": returns that part alone. Needs `fold` if there are five folds.
    folder
        The folder that holds the datasets; default CONCORDANT_DATA, else the user's cache folder. Official
        archives, unpacked, and the five parts S1 to S5 are both understood, plain or compressed.
    verify
        Check the contents against their SHA-256 first.
    sparse, dtype
        Storage of the features of graded sets.
    seed
        Seed for the sides of pairs, in a set whose source always has the better item on the same side
        (sushi-pairs); None keeps the sides.

    Returns
    -------
    RankingData, Fold, ComparisonData, OrderData, Annotations, or dict of elections
        By the kind of the set and by `fold` and `split`.

    Raises
    ------
    UnknownNameError
        If no set has this name.
    DatasetNotFoundError
        If files are missing; the message says where to get them and where to put them.
    ChecksumError
        If `verify` finds other contents.

    Examples
    --------
    >>> load("mq2008", fold=1, folder="/nowhere")
    Traceback (most recent call last):
    concordant.exceptions.DatasetNotFoundError: dataset 'mq2008': Fold1/test.txt, Fold1/train.txt, ...
    """
    dataset = get(name)
    splits = _select_splits(dataset, fold, split)
    paths_by_split = find_files(dataset, data_folder(folder), fold or 1, splits)
    options = Options(sparse, dtype, seed)
    if verify:
        for path in (path for paths in paths_by_split.values() for path in paths):
            verify_file(dataset, path)
    if fold is None or split is not None:
        return dataset.read(dataset, [path for part in splits for path in paths_by_split[part]], options)
    present = {part: paths for part, paths in paths_by_split.items() if paths}
    parts = {part: dataset.read(dataset, paths, options) for part, paths in present.items()}
    return Fold(parts["train"], parts.get("validation"), parts["test"])


def _select_splits(dataset: Dataset, fold: int | None, split: str | None) -> tuple[str, ...]:
    if fold is not None and not is_whole(fold, 1, dataset.folds):
        allowed = (
            f"None or 1 to {dataset.folds}"
            if dataset.folds
            else f"None for {dataset.name}, which has no folds"
        )
        raise ParameterError("fold", fold, allowed)
    if split is None:
        return SPLITS if dataset.folds else ("all",)
    available_splits = tuple(part for part in SPLITS if part in dataset.layouts[0])
    if split not in available_splits:
        raise UnknownNameError(f"split of {dataset.name}", split, available_splits or ("None",))
    if fold is None and dataset.folds > 1:
        raise ParameterError("fold", fold, f"1 to {dataset.folds} if split is given")
    return (split,)


def get(name: str) -> Dataset:
    """Return the table entry of this name."""
    for dataset in DATASETS:
        if dataset.name == name:
            return dataset
    raise UnknownNameError("dataset", name, names())


def names() -> tuple[str, ...]:
    """Return the names of all sets in the table, on this machine or not."""
    return tuple(dataset.name for dataset in DATASETS)


def available(folder: Folder = None) -> tuple[str, ...]:
    """Return the names of the sets whose files are on this machine."""
    return tuple(dataset.name for dataset in DATASETS if is_present(dataset, folder))


def is_present(dataset: Dataset, folder: Folder = None) -> bool:
    """True if all files of a set are on this machine."""
    try:
        find_files(dataset, data_folder(folder), 1, SPLITS if dataset.folds else ("all",))
    except DatasetNotFoundError:
        return False
    return True


def table(folder: Folder = None) -> list[dict[str, Any]]:
    """List one row per set: its facts, and whether its files are on this machine.

    >>> row = table(folder="/nowhere")[0]
    >>> row["name"], row["queries"], row["features"], row["present"]
    ('mq2007', 1692, 46, False)
    """
    return [
        {name: getattr(dataset, name) for name in COLUMNS} | {"present": is_present(dataset, folder)}
        for dataset in DATASETS
    ]


def describe(name: str) -> str:
    """Describe a set in a few lines of text.

    >>> print(describe("pudding"))
    pudding: Davidson's pudding brands: counts of wins and ties (Davidson 1970)
    kind: comparisons
    size: 15 queries, 6 documents
    source: GitHub cran/PlackettLuce data/pudding.rda at 855e9d39727c84f0f155146b8c6be389090d0803
    licence: GPL-3
    folders: paired-ties-classic
    files: pudding.csv
    """
    dataset = get(name)
    counts = ((dataset.queries, "queries"), (dataset.documents, "documents"), (dataset.features, "features"))
    files = [", ".join(chain(*file_names(layout, 1, layout).values())) for layout in dataset.layouts]
    lines = {
        "kind": dataset.kind,
        "size": ", ".join(f"{count:,} {what}" for count, what in counts if count is not None),
        "grades": dataset.grades,
        "folds": str(dataset.folds or ""),
        "source": dataset.source,
        "licence": dataset.licence,
        "folders": " or ".join(dataset.folders),
        "files": " or ".join(files),
    }
    body = "\n".join(f"{key}: {value}" for key, value in lines.items() if value)
    return f"{dataset.name}: {dataset.title}\n{body}"
