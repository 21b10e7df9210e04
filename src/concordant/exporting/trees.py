"""Trees in the form of XGBoost's dump, which search engines read: made from those of two libraries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from concordant.exceptions import ExportError
from concordant.exporting.sources import Source
from concordant.supervision.readers.text import PathLike
from concordant.types import FloatArray, IntArray

__all__ = ["TREES", "refuse_splits", "tree_scores"]

Node = dict[str, Any]
KEPT = ("nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children", "leaf")


def refuse_splits(source: Source, path: PathLike) -> None:
    """Refuse categories, whose splits are sets of codes, and what only LightGBM has."""
    if source.last.trees_.library == "lightgbm":
        text = source.last.booster_.model_to_string()
        for name in ("zero_as_missing", "linear_tree"):
            if f"[{name}: 1]" in text:
                hint = f"leave {name} out of params, or serve the file that LightGBM itself reads."
                raise ExportError(path, f"the trees there do not know {name}", hint)
    if source.last.trees_.categorical:
        number = source.last.trees_.categorical[0]
        problem = f"{source.names[number]} has categories, and the trees there know thresholds only"
        raise ExportError(path, problem, "fit it as numbers, such as one column of 0 and 1 per category.")


def xgboost_trees(model: Any, names: Sequence[str]) -> Iterator[Node]:
    """Give the dump, its features by these names."""
    known = model.feature_names or [f"f{number}" for number in range(len(names))]
    called = dict(zip(known, names, strict=True))
    for tree in model.get_dump(dump_format="json"):
        yield renamed(json.loads(tree), called)


def renamed(node: Node, called: dict[str, str]) -> Node:
    """Give a node, and all below it, by other names of the features."""
    found = {key: node[key] for key in KEPT if key in node}
    if "children" in found:
        found["split"] = called[node["split"]]
        found["children"] = [renamed(child, called) for child in node["children"]]
    return found


def lightgbm_trees(model: Any, names: Sequence[str]) -> Iterator[Node]:
    """Give the trees of LightGBM, which go left where a number is at most the threshold, not below it."""
    for tree in model.dump_model(num_iteration=-1)["tree_info"]:
        yield turned(tree["tree_structure"], names, count(), 0)


def turned(node: Node, names: Sequence[str], numbers: Iterator[int], depth: int) -> Node:
    """Give a node of LightGBM, and all below it."""
    number = next(numbers)
    if "leaf_value" in node:
        return {"nodeid": number, "leaf": node["leaf_value"]}
    sides = [turned(node[side], names, numbers, depth + 1) for side in ("left_child", "right_child")]
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
    """Give the single-precision number that is larger than just those which are at most the threshold.

    >>> just_above(1.0) > 1.0, just_above(0.1) == float(np.float32(0.1)), just_above(1e300)
    (True, True, 3.4028234663852886e+38)
    """
    with np.errstate(over="ignore"):
        near = np.float32(threshold)
        below = np.nextafter(near, np.float32(-np.inf)) if float(near) > threshold else near
        above = np.nextafter(below, np.float32(np.inf))
    return float(np.clip(above, *(np.finfo(np.float32).min, np.finfo(np.float32).max)))


TREES: dict[str, Callable[[Any, Sequence[str]], Iterator[Node]]] = {
    "lightgbm": lightgbm_trees,
    "xgboost": xgboost_trees,
}


def tree_scores(trees: Sequence[Node], rows: FloatArray, names: Sequence[str]) -> FloatArray:
    """Add up the leaves that rows reach, in single precision.

    >>> leaves = [{"nodeid": 1, "leaf": 1.0}, {"nodeid": 2, "leaf": 2.0}]
    >>> tree = {"split": "age", "split_condition": 5.0, "yes": 1, "no": 2, "missing": 2, "children": leaves}
    >>> tree_scores([tree], np.array([[4.0], [5.0], [np.nan]]), ["age"]).tolist()
    [1.0, 2.0, 2.0]
    """
    values = rows.astype(np.float32)
    place = {name: number for number, name in enumerate(names)}
    score = np.zeros(len(rows), dtype=np.float32)
    for tree in trees:
        reached = np.empty(len(rows), dtype=np.float32)
        descend(tree, values, np.arange(len(rows)), place, reached)
        score += reached
    return score.astype(np.float64)


def descend(node: Node, values: Any, rows: IntArray, place: dict[str, int], reached: Any) -> None:
    """Note the leaf that each of these rows reaches below a node."""
    if "leaf" in node:
        reached[rows] = np.float32(node["leaf"])
    elif len(rows):
        found = values[rows, place[node["split"]]]
        left = found < np.float32(node["split_condition"])
        left[np.isnan(found)] = node["missing"] == node["yes"]
        descend(node["children"][0], values, rows[left], place, reached)
        descend(node["children"][1], values, rows[~left], place, reached)
