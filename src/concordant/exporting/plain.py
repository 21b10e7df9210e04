"""Plain JSON: weights, names, constants, and in words how a score is computed from them."""

from __future__ import annotations

import json
from itertools import zip_longest
from typing import Any

import numpy as np

from concordant.exceptions import ExportError
from concordant.exporting.golden import Draft
from concordant.exporting.plain_scores import SAME, scores
from concordant.exporting.sources import Source
from concordant.metrics.parse import metric
from concordant.persistence.foreign import FOREIGN
from concordant.supervision.readers.text import PathLike
from concordant.types import ArrayLike, FloatArray

__all__ = ["plain_draft", "refuse_trees", "told_metric"]

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
TRANSFORMS = {
    "log1p": "sign(x) * log1p(abs(x))",
    "standard": "(x - mean) / spread; 0 where spread is null",
    "quantile": "of the n landmarks of a feature, below are < x and until are <= x, those as near as "
    "same * abs(x) counting as equal; 0 if below = 0; else 1 if until = n; else (below + until - 1) / 2 / "
    "(n - 1) if until > below; else, with i = below - 1 and landmarks counted from 0, "
    "(i + (x - landmarks[i]) / (landmarks[i + 1] - landmarks[i])) / (n - 1)",
}


def plain_draft(source: Source, path: PathLike) -> Draft:
    """Give the JSON of a linear model, a network or ratings."""
    refuse_trees(source, path, "plain JSON")
    told = {
        "format": "concordant-export",
        "version": VERSION,
        "model": type(source.last).__name__,
        "kind": source.kind,
        "metric": told_metric(source),
        "formula": FORMULAS[source.kind],
        **DESCRIPTIONS[source.kind](source),
    }
    try:
        text = json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        problem = f"it holds what JSON cannot ({error})"
        raise ExportError(path, problem, "names are text or whole numbers, and weights finite.") from error
    return Draft(text.encode() + b"\n", read_plain, notes=context_notes(source))


def read_plain(contents: bytes, rows: FloatArray) -> FloatArray:
    """Scores by the arithmetic that the file states."""
    return scores(json.loads(contents), rows)


def refuse_trees(source: Source, path: PathLike, form: str) -> None:
    """Refuse trees where they have no form."""
    if source.kind == "trees":
        library = source.last.trees_.library
        hint = f"format={library!r} is the file that {library} itself reads."
        raise ExportError(path, f"a BoostedRanker has no form as {form}", hint)


def told_metric(source: Source) -> str | None:
    """Give the name of the metric, with its convention; None where there is none."""
    named = getattr(source.last, "metric", None)
    return None if named is None else str(metric(named))


def context_notes(source: Source) -> tuple[str, ...]:
    """Say that a network must see whole queries, where it does."""
    if source.kind != "network" or not source.last.scorer_.context:
        return ()
    return ("the network reads the context: score all rows of one query together, and no others with them",)


def named(source: Source) -> dict[str, Any]:
    """Give the names of the features, or null."""
    return {"features": list(source.names) or None, "n_features": source.n_features}


def told_linear(source: Source) -> dict[str, Any]:
    """Give weights and constant, in units of the features before any scaling."""
    return {**named(source), "weights": source.weights.tolist(), "constant": source.constant}


def told_comparer(source: Source) -> dict[str, Any]:
    """Give weights, constant and threshold."""
    return {**told_linear(source), "threshold": float(source.last.threshold_)}


def told_network(source: Source) -> dict[str, Any]:
    """Give transforms and layers."""
    from concordant.scorers.neural import LIMIT

    parts, before = FOREIGN["network"].packed(source.last.scorer_), source.before
    steps = [
        {"name": name, "formula": TRANSFORMS[name], **{key: numbers(kept) for key, kept in arrays.items()}}
        | ({"same": SAME} if name == "quantile" else {})
        for name, arrays in parts["transforms"]
    ]
    layers = [
        {"weights": weight.tolist(), "bias": None if bias is None else bias.tolist()}
        for weight, bias in zip_longest(parts["weights"], parts["biases"])
    ]
    scaled = {"scale": before.scale.tolist(), "shift": before.shift.tolist()} if before.changes else {}
    ends = {"limit": LIMIT, "largest": float(np.finfo(np.float32).max), "context": bool(parts["context"])}
    return {**named(source), **scaled, "transforms": steps, **ends, "layers": layers}


def numbers(values: ArrayLike) -> list[Any]:
    """Give numbers as lists; null for infinite ones."""
    found: list[Any] = np.asarray(values, dtype=object).tolist()
    return [numbers(one) if isinstance(one, list) else one if np.isfinite(one) else None for one in found]


def told_ratings(source: Source) -> dict[str, Any]:
    """Give items and ratings."""
    return {"items": source.last.items_.tolist(), "ratings": source.last.ratings_.tolist()}


DESCRIPTIONS = {
    "linear": told_linear,
    "comparer": told_comparer,
    "network": told_network,
    "ratings": told_ratings,
}
