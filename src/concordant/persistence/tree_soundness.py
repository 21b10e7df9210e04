"""Whether boosted trees are trees, before their library parses them: it does not look where it reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from concordant.persistence.refusal import UnreadableError, once
from concordant.types import BoolArray, IntArray

__all__ = ["check_lightgbm", "check_xgboost"]

# Digits are those of ASCII, and match in one way: to look for others takes the square of the length.
NUMBER = r"-?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|inf|nan)"
NUMBERS = re.compile(rf"(?:{NUMBER}(?: +{NUMBER})*)?", re.ASCII)
LIGHTGBM_HEAD = {
    "version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx",
    "feature_names", "feature_infos", "monotone_constraints", "tree_sizes",
}  # fmt: skip
LIGHTGBM_END = re.compile(
    r"end of trees\n\nfeature_importances:\n(?:[^\n]+=\d+\n)*\n"
    r"parameters:\n(?:\[\w+: [^\n]*\]\n)*\nend of parameters\n\npandas_categorical:null\n*",
    re.ASCII,
)
LARGEST = 2**31 - 1
LARGEST_CATEGORY = 2**24  # a library has a bit for each up to the highest
WIDEST = 2**24  # features


def require(fact: Any, what: str) -> None:
    """Refuse trees of which this is not so."""
    if not fact:
        raise UnreadableError(f"these are no trees: {what}")


def tokens(text: str, name: str) -> list[str]:
    """Give the numbers of a line of text."""
    require(NUMBERS.fullmatch(text.strip(" ")), f"{name} is no list of numbers")
    return text.split()


def whole(values: Any, low: int, high: int, name: str) -> IntArray:
    """Give whole numbers from low to high, both included; of a list, or of a line of text."""
    found = np.array([*map(int, tokens(values, name))] if isinstance(values, str) else values)
    require(found.ndim == 1 and (found.dtype.kind == "i" or not found.size), f"{name} has no whole numbers")
    require(((found >= low) & (found <= high)).all(), f"{name} is out of range")
    return found.astype(np.int64)


def check_shape(left: IntArray, right: IntArray, n_deleted: int = 0) -> IntArray:
    """Refuse nodes that do not hang together: a walk down must end. Give the node above each, or -1."""
    below = np.concatenate([left, right])
    number = np.tile(np.arange(len(left)), 2)[below >= 0]
    below = below[below >= 0]
    above = np.full(len(left), -1)
    above[below] = number
    require(len(np.unique(below)) == len(below) and 0 not in below, "a node stands below two")
    require(len(below) == max(len(left) - 1 - n_deleted, 0), "a node stands below none")
    far = np.where(above < 0, np.arange(len(left)), above)
    for _ in range(len(left).bit_length()):  # twice as far each time, which ends at the root, or nowhere
        far = far[far]
    require(not far[below].any(), "a node stands above itself")
    return above


# --- LightGBM: lines of text


def check_lightgbm(trees: bytes) -> None:
    """Refuse text that is no list of trees as LightGBM writes it."""
    require(b"\r" not in trees and b"\0" not in trees, r"LightGBM ends lines and text at \r and \0")
    head, _, body = trees.partition(b"\n\n")
    require(head.startswith(b"tree\n"), "it begins otherwise")
    given = settings(head.decode().removeprefix("tree\n"))
    require("objective" not in given, "they have a loss of their own")
    require(given.keys() <= LIGHTGBM_HEAD, "a line before them is none of LightGBM's")  # a tree among them
    require(given["num_class"] == given["num_tree_per_iteration"] == "1", "more than one score per item")
    n_features = one(given, "max_feature_idx", 0, WIDEST) + 1
    one(given, "label_index", 0, LARGEST)
    for name in ("feature_names", "feature_infos"):
        require(len(given[name].split(" ")) == n_features, f"{name} is not of {n_features} features")
    start = 0
    for number, size in enumerate(whole(given["tree_sizes"], 1, len(body), "tree_sizes").tolist()):
        block, start = body[start : start + size].decode(), start + size
        require(block.startswith(f"Tree={number}\n") and block.endswith("\n\n\n"), "sizes are wrong")
        check_lightgbm_tree(settings(block.rstrip("\n")), n_features)
    require(LIGHTGBM_END.fullmatch(body[start:].decode()), "they end otherwise")


def settings(text: str) -> dict[str, str]:
    """Give what stands on lines of name=value; of a line without LightGBM reads on in the next."""
    lines = text.split("\n")
    require(all("=" in line for line in lines), "a line has no =")
    pairs = [line.partition("=")[::2] for line in lines]
    found = dict(pairs)
    require(len(found) == len(pairs), "a name stands twice")
    return found


def one(given: Mapping[str, str], name: str, low: int, high: int) -> int:
    """Give one whole number."""
    found = whole(given[name], low, high, name)
    require(len(found) == 1, f"{name} is no number")
    return int(found[0])


def check_lightgbm_tree(given: Mapping[str, str], n_features: int) -> None:
    """Refuse arrays of wrong lengths, and numbers of features, nodes and leaves that do not exist."""
    n_leaves = one(given, "num_leaves", 1, LARGEST)
    optional = {name for name, value in given.items() if value and name.startswith(("leaf_", "internal_"))}
    of_leaves = {"leaf_value", *(optional & {"leaf_weight", "leaf_count"})}
    of_nodes = {"split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child"}
    of_nodes |= optional & {"internal_value", "internal_weight", "internal_count"}
    for name in of_leaves | of_nodes:
        length = n_leaves - (name in of_nodes)
        require(len(tokens(given[name], name)) == length, f"{name} is of another length")
    whole(given["split_feature"], 0, n_features - 1, "split_feature")
    left, right = (whole(given[f"{side}_child"], -n_leaves, n_leaves - 2, side) for side in ("left", "right"))
    check_shape(left, right)
    leaves = ~np.concatenate([left, right])
    known = np.array_equal(np.sort(leaves[leaves >= 0]), np.arange(n_leaves))
    require(known or n_leaves == 1, "a leaf stands below none")
    check_lightgbm_categories(given)
    check_linear(given, n_leaves, n_features)


def check_lightgbm_categories(given: Mapping[str, str]) -> None:
    """Refuse sets of categories that are not there."""
    n_sets = one(given, "num_cat", 0, LARGEST)
    by_set = whole(given["decision_type"], 0, 255, "decision_type") % 2 == 1
    chosen = np.array(given["threshold"].split(), dtype=float)[by_set]
    require(((chosen >= 0) & (chosen < n_sets)).all(), "a set of categories does not exist")
    if n_sets:
        bits = whole(given["cat_threshold"], 0, 2**32 - 1, "cat_threshold")
        edges = whole(given["cat_boundaries"], 0, len(bits), "cat_boundaries")
        whole_range = len(edges) == n_sets + 1 and edges[0] == 0 and edges[-1] == len(bits)
        require(whole_range and (np.diff(edges) >= 0).all(), "sets of categories overlap")


def check_linear(given: Mapping[str, str], n_leaves: int, n_features: int) -> None:
    """Refuse linear functions in leaves that read features that are not there."""
    if given.get("is_linear", "0") == "0":
        return
    counts = whole(given["num_features"], 0, n_features, "num_features")
    lengths = {"leaf_const": n_leaves, "leaf_features": counts.sum(), "leaf_coeff": counts.sum()}
    require(len(counts) == n_leaves, "num_features is of another length")
    for name, length in lengths.items():
        require(len(tokens(given[name], name)) == length, f"{name} is of another length")
    whole(given["leaf_features"], 0, n_features - 1, "leaf_features")


# --- XGBoost: JSON

REALS = ("base_weights", "loss_changes", "split_conditions", "sum_hessian")


def check_xgboost(trees: bytes) -> bytes:
    """Refuse JSON that is no list of trees as XGBoost writes it; give what was checked, written anew.

    XGBoost reads escapes in names otherwise, and must not see what was not looked at. Its numbers have at
    most nine digits: read as doubles and written, they are the same.
    """
    found = json.loads(trees.decode(), object_pairs_hook=once)
    check_xgboost_learner(found["learner"])
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()


def check_xgboost_learner(learner: Mapping[str, Any]) -> None:
    """Refuse trees whose number, order, features or rounds are wrong."""
    told, booster = learner["learner_model_param"], learner["gradient_booster"]
    n_features = one(told, "num_feature", 1, WIDEST)
    require((told["num_class"], told["num_target"]) == ("0", "1"), "more than one score per item")
    require(len(tokens(told["base_score"].strip("[]"), "base_score")) == 1, "base_score is no number")
    for name in ("feature_names", "feature_types"):
        require(len(learner[name]) in (0, n_features), f"{name} is not of {n_features} features")
    model = booster["model"]
    n_trees = len(model["trees"])
    require(booster["name"] == "gbtree", "they are of another kind")
    require(model["gbtree_model_param"]["num_trees"] == str(n_trees), "their number is wrong")
    require(model["tree_info"] == [0] * n_trees, "tree_info is wrong")
    rounds = whole(model["iteration_indptr"], 0, n_trees, "iteration_indptr")
    ends = rounds[0] == 0 and rounds[-1] == n_trees
    require(ends and (np.diff(rounds) >= 0).all(), "iteration_indptr is wrong")
    require(not any(model.get("cats", {}).values()), "categories have names")  # ours are numbers
    for number, tree in enumerate(model["trees"]):
        require(tree["id"] == number, "their order is wrong")
        check_xgboost_tree(tree, n_features)


def check_xgboost_tree(tree: Mapping[str, Any], n_features: int) -> None:
    """Refuse arrays of wrong lengths, and numbers of features and nodes that do not exist."""
    told, n_nodes = tree["tree_param"], len(tree["left_children"])
    require(n_nodes and told["num_nodes"] == str(n_nodes), "num_nodes is wrong")
    require((told["num_feature"], told["size_leaf_vector"]) == (str(n_features), "1"), "sizes are wrong")
    for name in REALS:
        require(all(type(number) in (int, float) for number in tree[name]), f"{name} has no numbers")
    limits = {"default_left": 1, "split_type": 1, "split_indices": 2**32 - 1, "parents": LARGEST}
    found = {name: whole(tree[name], 0, highest, name) for name, highest in limits.items()}
    for name in (*REALS, *limits, "right_children"):
        require(len(tree[name]) == n_nodes, f"{name} is of another length")
    left, right = (whole(tree[f"{side}_children"], -1, n_nodes - 1, side) for side in ("left", "right"))
    require(np.array_equal(left < 0, right < 0), "a node has one side")
    above = check_shape(left, right, one(told, "num_deleted", 0, n_nodes - 1))
    hangs, inner = above >= 0, left >= 0
    require(np.array_equal(found["parents"][hangs], above[hangs]), "parents are wrong")
    require((found["split_indices"][inner] < n_features).all(), "a split is by no feature")
    check_xgboost_categories(tree, inner)


def check_xgboost_categories(tree: Mapping[str, Any], inner: BoolArray) -> None:
    """Refuse sets of categories that are not there."""
    values = whole(tree["categories"], 0, LARGEST_CATEGORY, "categories")
    nodes = whole(tree["categories_nodes"], 0, len(inner) - 1, "categories_nodes")
    first = whole(tree["categories_segments"], 0, len(values), "categories_segments")
    sizes = whole(tree["categories_sizes"], 0, len(values), "categories_sizes")
    require(len(nodes) == len(first) == len(sizes), "sets of categories differ in number")
    require((first + sizes <= len(values)).all(), "a set of categories does not exist")
    by_set = np.flatnonzero(np.array(tree["split_type"]) == 1)
    require(np.array_equal(nodes, by_set) and inner[nodes].all(), "a node has no set of categories")
