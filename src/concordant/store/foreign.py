"""Models of other libraries inside ours: boosted trees in their library's format, networks as arrays."""

from __future__ import annotations

import itertools
import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from concordant.exceptions import MissingExtraError, ShapeError
from concordant.rankers.boosters import BOOSTERS
from concordant.store.value_kinds import (
    BYTES,
    FLAG,
    REAL,
    WHOLE,
    Kind,
    array,
    by_name,
    either,
    require,
    several,
    unique_dict,
)
from concordant.types import BoolArray, IntArray

if TYPE_CHECKING:
    from concordant.rankers.networks.network import NeuralScorer


# Checks that boosted trees are well formed before their library parses them: it does not check bounds.

# ASCII digits only, matched in a single way: ambiguous patterns take time quadratic in the length.
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
LARGEST_CATEGORY = 2**24  # libraries keep a bit for each category up to the highest
WIDEST = 2**24  # features


def _require(fact: Any, what: str) -> None:
    require(fact, f"these are no trees: {what}")


def _check_finite(values: Any, name: str) -> None:
    """Check that no number is NaN or infinite, since it would become a score."""
    _require(np.isfinite(np.array(values, dtype=float)).all(), f"{name} has a number that is not finite")


def _read_tokens(text: str, name: str) -> list[str]:
    _require(NUMBERS.fullmatch(text.strip(" ")), f"{name} is no list of numbers")
    return text.split()


def _read_integers(values: Any, low: int, high: int, name: str) -> IntArray:
    """Read integers between low and high (inclusive) from a list or a line of text."""
    integers = np.array([*map(int, _read_tokens(values, name))] if isinstance(values, str) else values)
    is_whole = integers.ndim == 1 and (integers.dtype.kind == "i" or not integers.size)
    _require(is_whole, f"{name} has no integers")
    _require(((integers >= low) & (integers <= high)).all(), f"{name} is out of range")
    return integers.astype(np.int64)


def _check_shape(left: IntArray, right: IntArray, n_deleted: int = 0) -> IntArray:
    """Check that the nodes form a tree, so that a walk down ends. Return the parent of each node, or -1."""
    child = np.concatenate([left, right])
    node = np.tile(np.arange(len(left)), 2)[child >= 0]
    child = child[child >= 0]
    parents = np.full(len(left), -1)
    parents[child] = node
    _require(len(np.unique(child)) == len(child) and 0 not in child, "a node stands below two")
    _require(len(child) == max(len(left) - 1 - n_deleted, 0), "a node stands below none")
    ancestors = np.where(parents < 0, np.arange(len(left)), parents)
    # The distance doubles each time; it ends at the root, unless there is a cycle.
    for _ in range(len(left).bit_length()):
        ancestors = ancestors[ancestors]
    _require(not ancestors[child].any(), "a node stands above itself")
    return parents


# --- LightGBM: lines of text


def _check_lightgbm(trees: bytes) -> None:
    _require(b"\r" not in trees and b"\0" not in trees, r"LightGBM ends lines and text at \r and \0")
    head, _, body = trees.partition(b"\n\n")
    _require(head.startswith(b"tree\n"), "it begins otherwise")
    header = _read_settings(head.decode().removeprefix("tree\n"))
    _require("objective" not in header, "they have a loss of their own")
    _require(header.keys() <= LIGHTGBM_HEAD, "a line before them is none of LightGBM's")  # a tree among them
    _require(header["num_class"] == header["num_tree_per_iteration"] == "1", "more than one score per item")
    n_features = _read_integer(header, "max_feature_idx", 0, WIDEST) + 1
    _read_integer(header, "label_index", 0, LARGEST)
    for name in ("feature_names", "feature_infos"):
        _require(len(header[name].split(" ")) == n_features, f"{name} is not of {n_features} features")
    start = 0
    for number, size in enumerate(_read_integers(header["tree_sizes"], 1, len(body), "tree_sizes").tolist()):
        block, start = body[start : start + size].decode(), start + size
        _require(block.startswith(f"Tree={number}\n") and block.endswith("\n\n\n"), "sizes are wrong")
        _check_lightgbm_tree(_read_settings(block.rstrip("\n")), n_features)
    _require(LIGHTGBM_END.fullmatch(body[start:].decode()), "they end otherwise")


def _read_settings(text: str) -> dict[str, str]:
    """Read lines of name=value into a dictionary; LightGBM continues a line without `=` on the next line."""
    lines = text.split("\n")
    _require(all("=" in line for line in lines), "a line has no =")
    pairs = [line.partition("=")[::2] for line in lines]
    values_by_name = dict(pairs)
    _require(len(values_by_name) == len(pairs), "a name stands twice")
    return values_by_name


def _read_integer(settings_by_name: Mapping[str, str], name: str, low: int, high: int) -> int:
    integers = _read_integers(settings_by_name[name], low, high, name)
    _require(len(integers) == 1, f"{name} is no number")
    return int(integers[0])


def _check_lightgbm_tree(tree: Mapping[str, str], n_features: int) -> None:
    n_leaves = _read_integer(tree, "num_leaves", 1, LARGEST)
    optional = {name for name, value in tree.items() if value and name.startswith(("leaf_", "internal_"))}
    of_leaves = {"leaf_value", *(optional & {"leaf_weight", "leaf_count"})}
    of_nodes = {"split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child"}
    of_nodes |= optional & {"internal_value", "internal_weight", "internal_count"}
    for name in of_leaves | of_nodes:
        length = n_leaves - (name in of_nodes)
        _require(len(_read_tokens(tree[name], name)) == length, f"{name} is of another length")
    _check_finite(tree["leaf_value"].split(), "leaf_value")
    _require(not np.isnan(np.array(tree["threshold"].split(), dtype=float)).any(), "threshold has NaN")
    _read_integers(tree["split_feature"], 0, n_features - 1, "split_feature")
    left = _read_integers(tree["left_child"], -n_leaves, n_leaves - 2, "left")
    right = _read_integers(tree["right_child"], -n_leaves, n_leaves - 2, "right")
    _check_shape(left, right)
    leaves = ~np.concatenate([left, right])
    all_leaves_exist = np.array_equal(np.sort(leaves[leaves >= 0]), np.arange(n_leaves))
    _require(all_leaves_exist or n_leaves == 1, "a leaf stands below none")
    _check_lightgbm_categories(tree)
    _check_linear(tree, n_leaves, n_features)


def _check_lightgbm_categories(tree: Mapping[str, str]) -> None:
    n_sets = _read_integer(tree, "num_cat", 0, LARGEST)
    by_set = _read_integers(tree["decision_type"], 0, 255, "decision_type") % 2 == 1
    set_numbers = np.array(tree["threshold"].split(), dtype=float)[by_set]
    _require(((set_numbers >= 0) & (set_numbers < n_sets)).all(), "a set of categories does not exist")
    if n_sets:
        bits = _read_integers(tree["cat_threshold"], 0, 2**32 - 1, "cat_threshold")
        edges = _read_integers(tree["cat_boundaries"], 0, len(bits), "cat_boundaries")
        whole_range = len(edges) == n_sets + 1 and edges[0] == 0 and edges[-1] == len(bits)
        _require(whole_range and (np.diff(edges) >= 0).all(), "sets of categories overlap")


def _check_linear(tree: Mapping[str, str], n_leaves: int, n_features: int) -> None:
    """Check that linear functions in leaves only read features that exist."""
    if tree.get("is_linear", "0") == "0":
        return
    counts = _read_integers(tree["num_features"], 0, n_features, "num_features")
    lengths = {"leaf_const": n_leaves, "leaf_features": counts.sum(), "leaf_coeff": counts.sum()}
    _require(len(counts) == n_leaves, "num_features is of another length")
    for name, length in lengths.items():
        _require(len(_read_tokens(tree[name], name)) == length, f"{name} is of another length")
        _check_finite(tree[name].split(), name)
    _read_integers(tree["leaf_features"], 0, n_features - 1, "leaf_features")


# --- XGBoost: JSON

REALS = ("base_weights", "loss_changes", "split_conditions", "sum_hessian")


def check_xgboost(trees: bytes) -> bytes:
    """Check that the JSON is a list of trees as XGBoost writes it, and return it written again.

    XGBoost reads escapes in names differently, and must not see what was not checked. Its numbers have at
    most nine digits: read as doubles and written, they are the same.
    """
    model = json.loads(trees.decode(), object_pairs_hook=unique_dict)
    _check_xgboost_learner(model["learner"])
    return json.dumps(model, ensure_ascii=False, separators=(",", ":")).encode()


def _check_xgboost_learner(learner: Mapping[str, Any]) -> None:
    learner_params, booster = learner["learner_model_param"], learner["gradient_booster"]
    n_features = _read_integer(learner_params, "num_feature", 1, WIDEST)
    single_score = learner_params["num_class"] == "0" and learner_params["num_target"] == "1"
    _require(single_score, "more than one score per item")
    base = _read_tokens(learner_params["base_score"].strip("[]"), "base_score")
    _require(len(base) == 1, "base_score is no number")
    _check_finite(base, "base_score")
    for name in ("feature_names", "feature_types"):
        _require(len(learner[name]) in (0, n_features), f"{name} is not of {n_features} features")
    model = booster["model"]
    n_trees = len(model["trees"])
    _require(booster["name"] == "gbtree", "they are of another kind")
    _require(model["gbtree_model_param"]["num_trees"] == str(n_trees), "their number is wrong")
    _require(model["tree_info"] == [0] * n_trees, "tree_info is wrong")
    rounds = _read_integers(model["iteration_indptr"], 0, n_trees, "iteration_indptr")
    ends = rounds[0] == 0 and rounds[-1] == n_trees
    _require(ends and (np.diff(rounds) >= 0).all(), "iteration_indptr is wrong")
    _require(not any(model.get("cats", {}).values()), "categories have names")  # ours are numbers
    for number, tree in enumerate(model["trees"]):
        _require(tree["id"] == number, "their order is wrong")
        _check_xgboost_tree(tree, n_features)


def _check_xgboost_tree(tree: Mapping[str, Any], n_features: int) -> None:
    tree_params, n_nodes = tree["tree_param"], len(tree["left_children"])
    _require(n_nodes and tree_params["num_nodes"] == str(n_nodes), "num_nodes is wrong")
    sizes = tree_params["num_feature"], tree_params["size_leaf_vector"]
    _require(sizes == (str(n_features), "1"), "sizes are wrong")
    for name in REALS:
        _require(all(type(number) in (int, float) for number in tree[name]), f"{name} has no numbers")
    limits = {"default_left": 1, "split_type": 1, "split_indices": 2**32 - 1, "parents": LARGEST}
    integers = {name: _read_integers(tree[name], 0, highest, name) for name, highest in limits.items()}
    for name in (*REALS, *limits, "right_children"):
        _require(len(tree[name]) == n_nodes, f"{name} is of another length")
    left = _read_integers(tree["left_children"], -1, n_nodes - 1, "left")
    right = _read_integers(tree["right_children"], -1, n_nodes - 1, "right")
    _require(np.array_equal(left < 0, right < 0), "a node has one side")
    above = _check_shape(left, right, _read_integer(tree_params, "num_deleted", 0, n_nodes - 1))
    hangs, inner = above >= 0, left >= 0
    _require(np.array_equal(integers["parents"][hangs], above[hangs]), "parents are wrong")
    _require((integers["split_indices"][inner] < n_features).all(), "a split is by no feature")
    with np.errstate(over="ignore"):
        conditions = np.array(tree["split_conditions"], dtype=np.float32)  # thresholds, and values of leaves
    _check_finite(conditions[~inner], "split_conditions of leaves")
    _require(not np.isnan(conditions).any(), "split_conditions has NaN")
    _check_xgboost_categories(tree, inner)


def _check_xgboost_categories(tree: Mapping[str, Any], inner: BoolArray) -> None:
    values = _read_integers(tree["categories"], 0, LARGEST_CATEGORY, "categories")
    nodes = _read_integers(tree["categories_nodes"], 0, len(inner) - 1, "categories_nodes")
    first = _read_integers(tree["categories_segments"], 0, len(values), "categories_segments")
    sizes = _read_integers(tree["categories_sizes"], 0, len(values), "categories_sizes")
    _require(len(nodes) == len(first) == len(sizes), "sets of categories differ in number")
    _require((first + sizes <= len(values)).all(), "a set of categories does not exist")
    by_set = np.flatnonzero(np.array(tree["split_type"]) == 1)
    _require(np.array_equal(nodes, by_set) and inner[nodes].all(), "a node has no set of categories")


class Blob(NamedTuple):
    """Contents of a file, and the suffix of its name."""

    contents: bytes
    suffix: str


class ForeignFormat(NamedTuple):
    """How a model of another library is split into fields, and built from them again."""

    fields: Mapping[str, Kind]
    pack: Callable[[Any], dict[str, Any]]
    build: Callable[..., Any]


# Trees are in the format that their library writes, with all digits.


def _pack_lightgbm(model: Any) -> dict[str, Any]:
    return {"trees": Blob(model.model_to_string(num_iteration=-1).encode(), ".txt")}


def _build_lightgbm(trees: bytes) -> Any:
    _check_lightgbm(trees)
    return BOOSTERS["lightgbm"].library().Booster(model_str=trees.decode())


def _pack_xgboost(model: Any) -> dict[str, Any]:
    return {"trees": Blob(bytes(model.save_raw("json")), ".json")}


def _build_xgboost(trees: bytes) -> Any:
    return BOOSTERS["xgboost"].library().Booster(model_file=bytearray(check_xgboost(trees)))


def _pack_catboost(model: Any) -> dict[str, Any]:
    """Return the trees as CatBoost's file, without the time and random name that it adds to each model."""
    model = model.copy()
    notes = model.get_metadata()
    for name in ("train_finish_time", "model_guid", "catboost_version_info"):
        if name in notes:
            notes[name] = ""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trees.cbm"
        model.save_model(str(path), format="cbm")  # CatBoost writes to files only
        return {"trees": Blob(path.read_bytes(), ".cbm")}


def _build_catboost(trees: bytes) -> Any:
    model = BOOSTERS["catboost"].library().CatBoost().load_model(blob=trees)
    _check_finite(model.get_leaf_values(), "a leaf")
    _check_finite(model.get_scale_and_bias(), "scale or bias")
    return model


# A network is arrays: its transforms, and the weights and biases of its layers.


def _is_transform(value: Any) -> bool:
    if not (isinstance(value, tuple) and len(value) == 2):
        return False
    name, buffers = value
    buffer_kind = by_name(either(*(array(np.float64, ndim, finite=False) for ndim in (1, 2))))
    return isinstance(name, str) and buffer_kind.fits(buffers)


NETWORK: Mapping[str, Kind] = {
    "n_features": WHOLE,
    "context": FLAG,
    "dropout": REAL,
    "transforms": several(Kind("a name and arrays", _is_transform)),
    "weights": several(array(np.float32, 2)),
    "biases": several(array(np.float32, 1)),
}


def _pack_network(network: NeuralScorer) -> dict[str, Any]:
    from concordant.rankers.networks.network import TRANSFORMS

    names = {kind: name for name, kind in TRANSFORMS.items()}
    layers = [layer for layer in network.layers if hasattr(layer, "weight")]
    shares = [layer.share for layer in network.layers if hasattr(layer, "share")]
    transforms = []
    for transform in network.transforms:
        buffers = {name: _to_array(buffer) for name, buffer in transform.named_buffers()}
        transforms.append((names[type(transform)], buffers))
    return {
        "n_features": network.n_features,
        "context": network.context,
        "dropout": float(shares[0]) if shares else 0.0,
        "transforms": tuple(transforms),
        "weights": tuple(_to_array(layer.weight) for layer in layers),
        "biases": tuple(_to_array(layer.bias) for layer in layers if layer.bias is not None),
    }


def _build_network(
    n_features: int, context: bool, dropout: float, transforms: Sequence[Any], weights: Any, biases: Any
) -> Any:
    if find_spec("torch") is None:
        raise MissingExtraError("torch", "torch", "NeuralRanker")
    import torch

    from concordant.rankers.networks.network import TRANSFORMS, NeuralScorer, as_tensor

    _check_network(n_features, transforms, weights, biases, context=context)
    layers = torch.nn.Sequential(*(TRANSFORMS[name](**buffers) for name, buffers in transforms))
    hidden, level = [len(weight) for weight in weights[:-1]], len(biases) == len(weights)
    rng = np.random.default_rng(0)  # weights that are replaced at once
    scorer = NeuralScorer(layers, n_features, hidden, dropout, context=context, level=level, rng=rng)
    linear = [layer for layer in scorer.layers if hasattr(layer, "weight")]
    with torch.no_grad():
        for layer, weight, bias in itertools.zip_longest(linear, weights, biases):
            layer.weight.copy_(as_tensor(weight))
            if bias is not None:
                layer.bias.copy_(as_tensor(bias))
    return scorer.eval()


def _to_array(tensor: Any) -> Any:
    return tensor.detach().cpu().numpy().copy()


def _check_network(
    n_features: int, transforms: Sequence[Any], weights: Any, biases: Any, *, context: bool
) -> None:
    """Check that layers fit together, and that transforms have as many features as the network."""
    widths = [n_features * (2 if context else 1), *(len(weight) for weight in weights)]
    for number, (weight, expected_widths) in enumerate(zip(weights, itertools.pairwise(widths), strict=True)):
        if weight.shape != expected_widths[::-1]:
            raise ShapeError(f"layer {number}", weight.shape, f"{expected_widths[::-1]}")
    if widths[-1] != 1 or not len(weights) - 1 <= len(biases) <= len(weights):
        raise ShapeError("the last layer", (widths[-1], len(biases)), "one score, and a bias per layer")
    for bias, weight in zip(biases, weights, strict=False):
        if len(bias) != len(weight):
            raise ShapeError("a bias", bias.shape, f"({len(weight)},)")
    for name, buffers in transforms:
        for key, buffer in buffers.items():
            if len(buffer) != n_features or (buffer.ndim == 2) != (name == "quantile") or not buffer.size:
                raise ShapeError(f"the transform {name}", buffer.shape, f"{n_features} features")
            # No number may turn features into NaN; the spread of a constant feature is infinite.
            fits, what = (buffer > 0.0, "above 0") if key == "spread" else (np.isfinite(buffer), "finite")
            require(fits.all(), f"the {key} of the transform {name} has a number that is not {what}")


TREES: Mapping[str, Kind] = {"trees": BYTES}
FOREIGN: Mapping[str, ForeignFormat] = {
    "lightgbm": ForeignFormat(TREES, _pack_lightgbm, _build_lightgbm),
    "xgboost": ForeignFormat(TREES, _pack_xgboost, _build_xgboost),
    "catboost": ForeignFormat(TREES, _pack_catboost, _build_catboost),
    "network": ForeignFormat(NETWORK, _pack_network, _build_network),
}
CLASSES = {
    ("lightgbm", "Booster"): "lightgbm",
    ("xgboost", "Booster"): "xgboost",
    ("catboost", "CatBoost"): "catboost",
    ("concordant", "NeuralScorer"): "network",
}


def foreign_kind(value: Any) -> str | None:
    """Return the key of FOREIGN for a model of another library, or None."""
    kind = type(value)
    return CLASSES.get((kind.__module__.partition(".")[0], kind.__name__))
