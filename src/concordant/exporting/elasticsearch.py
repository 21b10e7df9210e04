"""Models for the learning-to-rank plugins of Elasticsearch and OpenSearch: what `_createmodel` is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from concordant.exceptions import ExportError
from concordant.exporting.golden import Draft
from concordant.exporting.sources import Source
from concordant.exporting.trees import TREES, refuse_splits, tree_scores
from concordant.supervision.readers.text import PathLike
from concordant.types import FloatArray

__all__ = ["elasticsearch_draft"]

LARGEST = 1e37  # of the sums that the plugins add in single precision
UNSET = (
    "where a document lacks a feature, plugins differ by version: it is 0, goes right at every split, or "
    "goes where missing values go"
)


def elasticsearch_draft(source: Source, path: PathLike, name: str) -> Draft:
    """Give the body of a request that uploads the model: linear weights, or trees as XGBoost dumps them.

    The plugins add in single precision, and have no constant: it is the same for all documents, and left out.
    """
    if source.kind not in ("linear", "comparer", "trees"):
        problem = f"the plugins have linear models and trees, and {type(source.last).__name__} is neither"
        raise ExportError(path, problem, "'onnx' holds networks, and 'json' ratings.")
    if not source.names:
        hint = "features=[...] gives the names that they have in the feature set, column by column."
        raise ExportError(path, "the features have no names, by which the plugins know them", hint)
    if len(set(source.names)) < len(source.names):
        twice = next(name for name in source.names if source.names.count(name) > 1)
        hint = "features=[...] gives them names of their own."
        raise ExportError(path, f"several features are called {twice!r}", hint)
    if source.kind == "trees":
        return tree_draft(source, path, name)
    weights = dict(zip(source.names, source.weights.tolist(), strict=True))
    constant = source.constant
    notes = (f"the constant {constant:.6g} is left out: it is that of all documents",) if constant else ()
    contents = body(name, "model/linear", weights)
    read = partial(read_linear, names=source.names)
    return Draft(contents, read, single=True, constant=constant, largest=LARGEST, notes=notes)


def body(name: str, kind: str, definition: Any) -> bytes:
    """Give the request; the definition is JSON within JSON, which all versions take."""
    text = json.dumps(definition, ensure_ascii=False, allow_nan=False)
    told = {"model": {"name": name, "model": {"type": kind, "definition": text}}}
    return json.dumps(told, indent=1, ensure_ascii=False).encode() + b"\n"


def definition_of(contents: bytes) -> Any:
    """Give the model of a request."""
    return json.loads(json.loads(contents)["model"]["model"]["definition"])


def read_linear(contents: bytes, rows: FloatArray, names: tuple[str, ...]) -> FloatArray:
    """Add up as the plugins do: one feature after the other, in single precision."""
    weights: Mapping[str, float] = definition_of(contents)
    score = np.zeros(len(rows), dtype=np.float32)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for place, name in enumerate(names):
            score += np.float32(weights[name]) * rows[:, place].astype(np.float32)
    return score.astype(np.float64)


def tree_draft(source: Source, path: PathLike, name: str) -> Draft:
    """Give trees as XGBoost dumps them."""
    library = source.last.trees_.library
    if library not in TREES:
        problem = f"the plugins read trees of {' and '.join(TREES)}, and these are of {library}"
        raise ExportError(path, problem, f"format={library!r} is the file that {library} itself reads.")
    refuse_splits(source, path)
    try:
        trees = list(TREES[library](source.last.booster_, source.names))
        contents = body(name, "model/xgboost+json", trees)
    except RecursionError as error:
        hint = "fit with max_depth, or serve the file of the library itself."
        raise ExportError(path, "the trees are too deep for JSON that readers take", hint) from error
    return Draft(contents, partial(read_trees, names=source.names), single=True, notes=(UNSET,))


def read_trees(contents: bytes, rows: FloatArray, names: tuple[str, ...]) -> FloatArray:
    """Add up the leaves as the plugins do, in single precision."""
    return tree_scores(definition_of(contents), rows, names)
