"""Scores by a plain JSON file alone: what whoever serves it would write in another language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from concordant.types import FloatArray

__all__ = ["SAME", "scores"]

SAME = 1e-14  # share of a number that a logarithm, computed elsewhere, may be off by


def scores(told: Mapping[str, Any], rows: FloatArray) -> FloatArray:
    """Give one score per row, in doubles; of ratings a row is the number of an item.

    >>> scores({"kind": "linear", "weights": [2.0, 0.5], "constant": 1.0}, np.array([[1.0, 4.0]])).tolist()
    [5.0]
    """
    if told["kind"] == "ratings":
        return np.asarray(told["ratings"], dtype=np.float64)[rows[:, 0].astype(np.int64)]
    if told["kind"] == "network":
        return network_scores(told, rows)
    found: FloatArray = rows @ np.asarray(told["weights"], dtype=np.float64) + told["constant"]
    return found


def network_scores(told: Mapping[str, Any], rows: FloatArray) -> FloatArray:
    """Scores of a network; with context, of the rows of one query."""
    x = rows
    if "scale" in told:
        x = np.asarray(told["scale"]) * x + np.asarray(told["shift"])
    for step in told["transforms"]:
        x = TRANSFORMS[step["name"]](step, x)
    x = np.clip(x, -told["limit"], told["limit"])
    if told["context"]:
        x = np.hstack([x, x - x.mean(axis=0)])
    for depth, layer in enumerate(told["layers"]):
        x = np.maximum(x, 0.0) if depth else x
        x = x @ np.asarray(layer["weights"], dtype=np.float64).T
        x = x if layer["bias"] is None else x + np.asarray(layer["bias"])
    found: FloatArray = np.clip(x[:, 0], -told["largest"], told["largest"])
    return found


def log1p(step: Mapping[str, Any], x: FloatArray) -> FloatArray:
    """Logarithms of sizes, with signs."""
    del step
    return np.sign(x) * np.log1p(np.abs(x))


def standard(step: Mapping[str, Any], x: FloatArray) -> FloatArray:
    """Differences to the mean, in spreads."""
    spread = np.array([np.inf if one is None else one for one in step["spread"]], dtype=np.float64)
    found: FloatArray = (x - np.asarray(step["mean"])) / spread
    return found


def quantile(step: Mapping[str, Any], x: FloatArray) -> FloatArray:
    """Share of the landmarks below, between them by a straight line.

    >>> marks = {"landmarks": [[0.0, 1.0, 1.0, 3.0, 5.0]], "same": 0.0}
    >>> (4 * quantile(marks, np.array([[-1.0], [0.5], [1.0], [2.0], [9.0]]))).ravel().tolist()
    [0.0, 0.5, 1.5, 2.5, 4.0]
    """
    features = zip(step["landmarks"], x.T, strict=True)
    return np.column_stack([shares(np.array(marks), values, step["same"]) for marks, values in features])


def shares(marks: FloatArray, x: FloatArray, same: float) -> FloatArray:
    """Give the shares of one feature."""
    near, last = same * np.abs(x), len(marks) - 1
    below = np.searchsorted(marks, x - near)
    until = np.searchsorted(marks, x + near, side="right")
    left, right = np.clip(below - 1, 0, last), np.clip(below, 0, last)
    gap = marks[right] - marks[left]
    between = left + (x - marks[left]) / np.where(gap > 0.0, gap, 1.0)
    found = np.where(until > below, (below + until - 1) / 2, between) / max(last, 1)
    return np.where(below == 0, 0.0, np.where(until == len(marks), 1.0, found))


TRANSFORMS: dict[str, Callable[[Mapping[str, Any], FloatArray], FloatArray]] = {
    "log1p": log1p,
    "standard": standard,
    "quantile": quantile,
}
