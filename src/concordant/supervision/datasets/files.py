"""Where dataset files stand, and whether they are the ones we know."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from concordant.exceptions import ChecksumError, DatasetNotFoundError
from concordant.supervision.datasets.dataset import Dataset, Layout
from concordant.supervision.readers.text import COMPRESSED, open_binary

__all__ = ["data_folder", "find", "verify_file"]

PARTS = 5
BLOCK = 1 << 20


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Give the folder of the datasets: the argument, else CONCORDANT_DATA, else the user's cache."""
    chosen = folder or os.environ.get("CONCORDANT_DATA")
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("concordant"))


def find(dataset: Dataset, root: Path, fold: int, splits: Iterable[str]) -> dict[str, list[Path]]:
    """Give the files of each split, in the first layout that is complete; else say what is missing where."""
    wanted = list(splits)
    missing = ""
    for layout in dataset.layouts:
        names = file_names(layout, fold, wanted)
        for home in homes(dataset, root):
            found = {split: [existing(home / name) for name in names[split]] for split in names}
            if all(path for paths in found.values() for path in paths):
                return {split: [path for path in paths if path] for split, paths in found.items()}
        missing = missing or ", ".join(sorted({name for group in names.values() for name in group}))
    where = str(root / dataset.folders[0])
    raise DatasetNotFoundError(dataset.name, missing, where, dataset.source, dataset.licence)


def file_names(layout: Layout, fold: int, splits: Iterable[str]) -> dict[str, list[str]]:
    """Give the file names of each split of a fold.

    >>> letor = {"train": ("S{0}.txt", "S{1}.txt", "S{2}.txt"), "validation": ("S{3}.txt",)}
    >>> file_names(letor, 4, ["train", "validation"])
    {'train': ['S4.txt', 'S5.txt', 'S1.txt'], 'validation': ['S2.txt']}
    """
    rotation = [(fold - 1 + step) % PARTS + 1 for step in range(PARTS)]
    return {split: [name.format(*rotation) for name in layout.get(split, ())] for split in splits}


def homes(dataset: Dataset, root: Path) -> list[Path]:
    """Give the folders in which the dataset may stand: below the root, or the root itself if so named."""
    below = [root / name for name in dataset.folders]
    known = {name.lower() for name in dataset.folders}
    return [root, *below] if root.name.lower() in known else below


def existing(path: Path) -> Path | None:
    """Give the file itself or a compressed copy of it, whichever is there."""
    candidates = (path.with_name(path.name + suffix) for suffix in ("", *COMPRESSED))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def verify_file(dataset: Dataset, path: Path) -> None:
    """Refuse a file whose uncompressed contents are not those we know; one we never saw passes."""
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
