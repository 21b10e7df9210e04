"""Plain JSON: weights, names, constants, and the formula of the score in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Any

import numpy as np

from concordant._base.files import PathLike
from concordant.exceptions import ExportError
from concordant.metrics.parse import metric
from concordant.store.export.export_sources import ExportSource
from concordant.store.export.golden import Draft
from concordant.store.foreign import FOREIGN
from concordant.types import FloatArray

# Scores from the plain JSON file alone, as a user would compute them in another language.

SAME = 1e-14  # relative error that a logarithm computed elsewhere may have


def scores(document: Mapping[str, Any], rows: FloatArray) -> FloatArray:
    """Compute one score per row, in doubles; for ratings a row is the number of an item.

    >>> scores({"kind": "linear", "weights": [2.0, 0.5], "constant": 1.0}, np.array([[1.0, 4.0]])).tolist()
    [5.0]
    """
    if document["kind"] == "ratings":
        return np.asarray(document["ratings"], dtype=np.float64)[rows[:, 0].astype(np.int64)]
    if document["kind"] == "network":
        return _network_scores(document, rows)
    weights = np.asarray(document["weights"], dtype=np.float64)
    return np.asarray(rows @ weights + document["constant"])


def _network_scores(document: Mapping[str, Any], rows: FloatArray) -> FloatArray:
    """Compute the scores of a network; with context, rows must be those of one query."""
    x = rows
    if "scale" in document:
        x = np.asarray(document["scale"]) * x + np.asarray(document["shift"])
    for step in document["transforms"]:
        x = TRANSFORM_FUNCTIONS[step["name"]](step, x)
    x = np.clip(x, -document["limit"], document["limit"])
    if document["context"]:
        x = np.hstack([x, x - x.mean(axis=0)])
    for depth, layer in enumerate(document["layers"]):
        x = np.maximum(x, 0.0) if depth else x
        x = x @ np.asarray(layer["weights"], dtype=np.float64).T
        x = x if layer["bias"] is None else x + np.asarray(layer["bias"])
    clipped: FloatArray = np.clip(x[:, 0], -document["largest"], document["largest"])
    return clipped


def log1p(step: Mapping[str, Any], x: FloatArray) -> FloatArray:
    """Logarithms of absolute values, with signs."""
    del step
    return np.sign(x) * np.log1p(np.abs(x))


def standard(step: Mapping[str, Any], x: FloatArray) -> FloatArray:
    """Differences from the mean, in units of the spread."""
    spread = [np.inf if deviation is None else deviation for deviation in step["spread"]]
    standardized: FloatArray = (x - np.asarray(step["mean"])) / np.array(spread, dtype=np.float64)
    return standardized


def quantile(step: Mapping[str, Any], x: FloatArray) -> FloatArray:
    """Share of the landmarks below, interpolated linearly.

    >>> marks = {"landmarks": [[0.0, 1.0, 1.0, 3.0, 5.0]], "same": 0.0}
    >>> (4 * quantile(marks, np.array([[-1.0], [0.5], [1.0], [2.0], [9.0]]))).ravel().tolist()
    [0.0, 0.5, 1.5, 2.5, 4.0]
    """
    features = zip(step["landmarks"], x.T, strict=True)
    return np.column_stack([shares(np.array(marks), values, step["same"]) for marks, values in features])


def shares(marks: FloatArray, x: FloatArray, same: float) -> FloatArray:
    """Compute the shares of one feature."""
    tolerance, last = same * np.abs(x), len(marks) - 1
    below = np.searchsorted(marks, x - tolerance)
    until = np.searchsorted(marks, x + tolerance, side="right")
    left, right = np.clip(below - 1, 0, last), np.clip(below, 0, last)
    gap = marks[right] - marks[left]
    between = left + (x - marks[left]) / np.where(gap > 0.0, gap, 1.0)
    share = np.where(until > below, (below + until - 1) / 2, between) / max(last, 1)
    return np.where(below == 0, 0.0, np.where(until == len(marks), 1.0, share))


TRANSFORM_FUNCTIONS: dict[str, Callable[[Mapping[str, Any], FloatArray], FloatArray]] = {
    "log1p": log1p,
    "standard": standard,
    "quantile": quantile,
}


VERSION = 1
SUM = "score = constant + sum over features of weight * feature"
FORMULAS = {
    "linear": f"{SUM}; high is better",
    "comparer": f"{SUM}; high is better; two tie where abs(score(right) - score(left)) <= threshold",
    "network": "x = scale * features + shift, where those are there; then the transforms, in order; x is cut "
    "to -limit and limit; with context, x minus its mean over the rows of the query is appended; each layer "
    "is x = weights x + bias, with max(x, 0) between two layers; the score is cut to -largest and largest",
    "ratings": "the rating of item number i is ratings[i]; high is better",
}
TRANSFORM_FORMULAS = {
    "log1p": "sign(x) * log1p(abs(x))",
    "standard": "(x - mean) / spread; 0 where spread is null",
    "quantile": "of the n landmarks of a feature, below are < x and until are <= x, those as near as "
    "same * abs(x) counting as equal; 0 if below = 0; else 1 if until = n; else (below + until - 1) / 2 / "
    "(n - 1) if until > below; else, with i = below - 1 and landmarks counted from 0, "
    "(i + (x - landmarks[i]) / (landmarks[i + 1] - landmarks[i])) / (n - 1)",
}


def plain_draft(source: ExportSource, path: PathLike) -> Draft:
    """Build the JSON of a linear model, a network or ratings."""
    refuse_trees(source, path, "plain JSON")
    document = {
        "format": "concordant-export",
        "version": VERSION,
        "model": type(source.last).__name__,
        "kind": source.kind,
        "metric": metric_name(source),
        "formula": FORMULAS[source.kind],
        **DESCRIPTIONS[source.kind](source),
    }
    try:
        text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        problem = f"it holds what JSON cannot ({error})"
        raise ExportError(path, problem, "names are text or integers, and weights finite.") from error
    return Draft(text.encode() + b"\n", _read_plain, notes=context_notes(source))


def _read_plain(contents: bytes, rows: FloatArray) -> FloatArray:
    return scores(json.loads(contents), rows)


def refuse_trees(source: ExportSource, path: PathLike, form: str) -> None:
    """Raise for trees, which the format cannot hold."""
    if source.kind == "trees":
        library = source.last.trees_.library
        hint = f"format={library!r} is the file that {library} itself reads."
        raise ExportError(path, f"a BoostedRanker cannot be written as {form}", hint)


def metric_name(source: ExportSource) -> str | None:
    """Return the name of the metric with its convention; None if there is no metric."""
    metric_or_name = getattr(source.last, "metric", None)
    return None if metric_or_name is None else str(metric(metric_or_name))


def context_notes(source: ExportSource) -> tuple[str, ...]:
    """Note that a network with context must score whole queries."""
    if source.kind != "network" or not source.last.scorer_.context:
        return ()
    return ("the network reads the context: score all rows of one query together, and no others with them",)


def _describe_features(source: ExportSource) -> dict[str, Any]:
    return {"features": list(source.names) or None, "n_features": source.n_features}


def _describe_linear(source: ExportSource) -> dict[str, Any]:
    return {**_describe_features(source), "weights": source.weights.tolist(), "constant": source.constant}


def _describe_comparer(source: ExportSource) -> dict[str, Any]:
    return {**_describe_linear(source), "threshold": float(source.last.threshold_)}


def _describe_network(source: ExportSource) -> dict[str, Any]:
    from concordant.rankers.networks.network import LIMIT

    parts, before = FOREIGN["network"].pack(source.last.scorer_), source.before
    steps = []
    for name, arrays in parts["transforms"]:
        lists = {key: _to_lists(parameters) for key, parameters in arrays.items()}
        same = {"same": SAME} if name == "quantile" else {}
        steps.append({"name": name, "formula": TRANSFORM_FORMULAS[name], **lists, **same})
    layers = [
        {"weights": weight.tolist(), "bias": None if bias is None else bias.tolist()}
        for weight, bias in zip_longest(parts["weights"], parts["biases"])
    ]
    scaled = {"scale": before.scale.tolist(), "shift": before.shift.tolist()} if before.changes else {}
    ends = {"limit": LIMIT, "largest": float(np.finfo(np.float32).max), "context": bool(parts["context"])}
    return {**_describe_features(source), **scaled, "transforms": steps, **ends, "layers": layers}


def _to_lists(numbers: FloatArray) -> list[Any]:
    """Convert numbers to lists, infinite ones to null."""
    objects = numbers.astype(object)
    objects[~np.isfinite(numbers)] = None
    nested: list[Any] = objects.tolist()
    return nested


def _describe_ratings(source: ExportSource) -> dict[str, Any]:
    return {"items": source.last.items_.tolist(), "ratings": source.last.ratings_.tolist()}


DESCRIPTIONS = {
    "linear": _describe_linear,
    "comparer": _describe_comparer,
    "network": _describe_network,
    "ratings": _describe_ratings,
}
