"""Boosted trees in the files that their own libraries read."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from concordant.exceptions import ExportError
from concordant.exporting.golden import Draft
from concordant.exporting.sources import Source
from concordant.persistence.foreign import FOREIGN
from concordant.rankers.boosters import BOOSTERS
from concordant.supervision.readers.text import COMPRESSED, PathLike
from concordant.types import FloatArray

__all__ = ["category_notes", "native_draft"]

SHOWN = 3  # categories of a feature, and features


def native_draft(source: Source, path: PathLike, library: str) -> Draft:
    """Give the trees in the format of the library; only those that predict."""
    if source.kind != "trees":
        problem = f"{type(source.last).__name__} has no trees, which format={library!r} is a file of"
        raise ExportError(path, problem, "'json' and 'onnx' hold linear models and networks.")
    trees = source.last.trees_
    if trees.library != library:
        problem = f"the trees are of {trees.library}, and {library} cannot read them"
        raise ExportError(path, problem, f"take format={trees.library!r}, or fit with booster={library!r}.")

    suffix = ".json" if library == "xgboost" and is_json(path) else SUFFIXES[library]

    def read(contents: bytes, rows: FloatArray) -> FloatArray:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "trees").with_suffix(suffix)
            file.write_bytes(contents)
            return BOOSTERS[library].scores(
                READERS[library](BOOSTERS[library].library(), str(file)), rows, trees
            )

    return Draft(written(source.last.booster_, library, suffix), read, notes=category_notes(source))


def is_json(path: PathLike) -> bool:
    """Whether the name of a file, that of a compression left out, ends in .json.

    >>> is_json("trees.json.gz"), is_json("trees.json.ubj")
    (True, False)
    """
    name = Path(path)
    return (Path(name.stem) if name.suffix in COMPRESSED else name).suffix.lower() == ".json"


def written(model: Any, library: str, suffix: str) -> bytes:
    """Give the bytes: XGBoost reads JSON or binary JSON by how the name of the file ends."""
    if library == "xgboost":
        return bytes(model.save_raw(suffix.removeprefix(".")))
    contents: bytes = FOREIGN[library].packed(model)["trees"].contents
    return contents


SUFFIXES = {"lightgbm": ".txt", "xgboost": ".ubj", "catboost": ".cbm"}
READERS: dict[str, Callable[[Any, str], Any]] = {  # as whoever serves it would
    "lightgbm": lambda library, file: library.Booster(model_file=file),
    "xgboost": lambda library, file: library.Booster(model_file=file),
    "catboost": lambda library, file: library.CatBoost().load_model(file),
}


def category_notes(source: Source) -> tuple[str, ...]:
    """Say which features are codes, and of what; the file knows the codes only."""
    notes = []
    for number, known in list(source.last.encoding_.categories.items())[:SHOWN]:
        name = source.names[number] if source.names else f"number {number}"
        codes = ", ".join(f"{code} for {value!r}" for code, value in enumerate(known[:SHOWN]))
        more = "; categories_ of the model lists all" if known[SHOWN:] else ""
        absent = "-1" if source.last.trees_.library == "catboost" else "missing"
        notes.append(f"the feature {name} is given as codes, {codes}{more}; unknown ones are {absent}")
    return tuple(notes)
