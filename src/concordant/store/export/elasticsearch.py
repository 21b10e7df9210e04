"""Models for the learning-to-rank plugins of Elasticsearch and OpenSearch, as `_createmodel` requests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from concordant._base.files import PathLike
from concordant.exceptions import ExportError
from concordant.store.export.export_sources import ExportSource
from concordant.store.export.golden import Draft
from concordant.types import FloatArray, IntArray

# Trees of LightGBM and XGBoost in the form of XGBoost's dump, which search engines read.

Node = dict[str, Any]
NODE_KEYS = ("nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children", "leaf")


def _refuse_splits(source: ExportSource, path: PathLike) -> None:
    """Raise for categories, whose splits are sets of codes, and for splits that only LightGBM has."""
    if source.last.trees_.library == "lightgbm":
        text = source.last.booster_.model_to_string()
        for name in ("zero_as_missing", "linear_tree"):
            if f"[{name}: 1]" in text:
                hint = f"leave {name} out of params, or serve the file that LightGBM itself reads."
                raise ExportError(path, f"its trees do not support {name}", hint)
    if source.last.trees_.categorical:
        number = source.last.trees_.categorical[0]
        problem = f"{source.names[number]} is categorical, and its trees support numeric thresholds only"
        raise ExportError(path, problem, "fit it as numbers, such as one column of 0 and 1 per category.")


def _xgboost_trees(model: Any, names: Sequence[str]) -> Iterator[Node]:
    fitted_names = model.feature_names or [f"f{number}" for number in range(len(names))]
    new_names = dict(zip(fitted_names, names, strict=True))
    for tree in model.get_dump(dump_format="json"):
        yield _rename_features(json.loads(tree), new_names)


def _rename_features(node: Node, new_names: dict[str, str]) -> Node:
    renamed = {key: node[key] for key in NODE_KEYS if key in node}
    if "children" in renamed:
        renamed["split"] = new_names[node["split"]]
        renamed["children"] = [_rename_features(child, new_names) for child in node["children"]]
    return renamed


def _lightgbm_trees(model: Any, names: Sequence[str]) -> Iterator[Node]:
    """Yield the trees of LightGBM, which go left if a number is at most the threshold, not below it."""
    for tree in model.dump_model(num_iteration=-1)["tree_info"]:
        yield _convert_node(tree["tree_structure"], names, count(), 0)


def _convert_node(node: Node, names: Sequence[str], numbers: Iterator[int], depth: int) -> Node:
    number = next(numbers)
    if "leaf_value" in node:
        return {"nodeid": number, "leaf": node["leaf_value"]}
    sides = [_convert_node(node[side], names, numbers, depth + 1) for side in ("left_child", "right_child")]
    yes, no = (side["nodeid"] for side in sides)
    left = node["default_left"] if node["missing_type"] == "NaN" else node["threshold"] >= 0.0
    return {
        "nodeid": number,
        "depth": depth,
        "split": names[node["split_feature"]],
        "split_condition": just_above(node["threshold"]),
        "yes": yes,
        "no": no,
        "missing": yes if left else no,
        "children": sides,
    }


def just_above(threshold: float) -> float:
    """Return the smallest float32 above the threshold, at most the largest finite one.

    >>> just_above(1.0) > 1.0, just_above(0.1) == float(np.float32(0.1)), just_above(1e300)
    (True, True, 3.4028234663852886e+38)
    """
    with np.errstate(over="ignore"):
        near = np.float32(threshold)
        below = np.nextafter(near, np.float32(-np.inf)) if float(near) > threshold else near
        above = np.nextafter(below, np.float32(np.inf))
    return float(np.clip(above, *(np.finfo(np.float32).min, np.finfo(np.float32).max)))


TREES = {"lightgbm": _lightgbm_trees, "xgboost": _xgboost_trees}


def _tree_scores(trees: Sequence[Node], rows: FloatArray, names: Sequence[str]) -> FloatArray:
    """Add up the leaves that rows reach, in single precision.

    >>> leaves = [{"nodeid": 1, "leaf": 1.0}, {"nodeid": 2, "leaf": 2.0}]
    >>> tree = {"split": "age", "split_condition": 5.0, "yes": 1, "no": 2, "missing": 2, "children": leaves}
    >>> _tree_scores([tree], np.array([[4.0], [5.0], [np.nan]]), ["age"]).tolist()
    [1.0, 2.0, 2.0]
    """
    values = rows.astype(np.float32)
    columns = {name: number for number, name in enumerate(names)}
    score = np.zeros(len(rows), dtype=np.float32)
    for tree in trees:
        reached = np.empty(len(rows), dtype=np.float32)
        _descend(tree, values, np.arange(len(rows)), columns, reached)
        score += reached
    return score.astype(np.float64)


def _descend(node: Node, values: Any, rows: IntArray, columns: dict[str, int], reached: Any) -> None:
    """Write the leaf that each row reaches below a node into `reached`."""
    if "leaf" in node:
        reached[rows] = np.float32(node["leaf"])
    elif len(rows):
        split_values = values[rows, columns[node["split"]]]
        left = split_values < np.float32(node["split_condition"])
        left[np.isnan(split_values)] = node["missing"] == node["yes"]
        _descend(node["children"][0], values, rows[left], columns, reached)
        _descend(node["children"][1], values, rows[~left], columns, reached)


LARGEST = 1e37  # of the sums that the plugins add in single precision
UNSET = (
    "where a document lacks a feature, plugins differ by version: it is 0, goes right at every split, or "
    "goes where missing values go"
)


def elasticsearch_draft(source: ExportSource, path: PathLike, name: str) -> Draft:
    """Build the request that uploads the model: linear weights, or trees as XGBoost dumps them.

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
        return _tree_draft(source, path, name)
    weights = dict(zip(source.names, source.weights.tolist(), strict=True))
    constant = source.constant
    notes = (f"the constant {constant:.6g} is left out: it is that of all documents",) if constant else ()
    contents = _build_request(name, "model/linear", weights)
    read = partial(_read_linear, names=source.names)
    return Draft(contents, read, single=True, constant=constant, largest=LARGEST, notes=notes)


def _build_request(name: str, kind: str, definition: Any) -> bytes:
    """Build the request; the definition is JSON within JSON, which all versions accept."""
    text = json.dumps(definition, ensure_ascii=False, allow_nan=False)
    request = {"model": {"name": name, "model": {"type": kind, "definition": text}}}
    return json.dumps(request, indent=1, ensure_ascii=False).encode() + b"\n"


def _read_definition(contents: bytes) -> Any:
    return json.loads(json.loads(contents)["model"]["model"]["definition"])


def _read_linear(contents: bytes, rows: FloatArray, names: tuple[str, ...]) -> FloatArray:
    """Compute scores as the plugins do: one feature after the other, in single precision."""
    weights: Mapping[str, float] = _read_definition(contents)
    score = np.zeros(len(rows), dtype=np.float32)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for column, name in enumerate(names):
            score += np.float32(weights[name]) * rows[:, column].astype(np.float32)
    return score.astype(np.float64)


def _tree_draft(source: ExportSource, path: PathLike, name: str) -> Draft:
    library = source.last.trees_.library
    if library not in TREES:
        problem = f"the plugins read trees of {' and '.join(TREES)}, and these are of {library}"
        raise ExportError(path, problem, f"format={library!r} is the file that {library} itself reads.")
    _refuse_splits(source, path)
    try:
        trees = list(TREES[library](source.last.booster_, source.names))
        contents = _build_request(name, "model/xgboost+json", trees)
    except RecursionError as error:
        hint = "fit with max_depth, or serve the file of the library itself."
        raise ExportError(path, "the trees are too deep for JSON that readers take", hint) from error
    return Draft(contents, partial(_read_trees, names=source.names), single=True, notes=(UNSET,))


def _read_trees(contents: bytes, rows: FloatArray, names: tuple[str, ...]) -> FloatArray:
    return _tree_scores(_read_definition(contents), rows, names)
