"""ONNX: linear models and networks as graphs that compute in doubles, whatever they are given."""

from __future__ import annotations

import json
from importlib.util import find_spec
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import ExportError, MissingExtraError
from concordant.exporting.golden import Draft
from concordant.exporting.plain import context_notes, refuse_trees, told_metric
from concordant.exporting.plain_scores import SAME
from concordant.exporting.sources import Source
from concordant.persistence.foreign import FOREIGN
from concordant.supervision.readers.text import PathLike
from concordant.types import FloatArray

if TYPE_CHECKING:
    from concordant.exporting.onnx_graph import Graph

__all__ = ["onnx_draft"]

LARGEST = 1e38  # of sums that float32 can hold
WIDER = "take dtype='float64'; or: "


def onnx_draft(source: Source, path: PathLike, dtype: str) -> Draft:
    """Give a graph from `features`, (rows, n_features), to `scores`, (rows,), both of this type."""
    refuse_trees(source, path, "ONNX")
    if source.kind == "ratings":
        problem = f"{type(source.last).__name__} reads no features, and ONNX is a function of features"
        raise ExportError(path, problem, "'json' holds a table of ratings.")
    for package in ("onnx", "onnxruntime"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "export", "format='onnx'")
    from concordant.exporting.onnx_graph import INPUT, OUTPUT, Graph

    graph = Graph()
    rows = graph.cast(INPUT, "float64")
    column = network(graph, rows, source) if source.kind == "network" else linear(graph, rows, source)
    scores = graph.add("Squeeze", column, graph.keep(np.array([1])))
    graph.cast(scores, dtype, name=OUTPUT)
    contents = graph.made(source.n_features, dtype, notes(source))
    if dtype == "float64":
        return Draft(contents, read_onnx, notes=context_notes(source))
    return Draft(contents, read_onnx, True, largest=LARGEST, wider=WIDER, notes=context_notes(source))


def read_onnx(contents: bytes, rows: FloatArray) -> FloatArray:
    """Scores by ONNX Runtime."""
    import onnxruntime as ort

    settings = ort.SessionOptions()
    settings.log_severity_level, settings.intra_op_num_threads = 3, 1
    session = ort.InferenceSession(contents, settings, providers=["CPUExecutionProvider"])
    (told,) = session.get_inputs()
    given = rows.astype(np.float32 if told.type == "tensor(float)" else np.float64)
    (found,) = session.run(None, {told.name: given})
    return np.asarray(found, dtype=np.float64)


def notes(source: Source) -> dict[str, str]:
    """Give what stands in the file for its reader."""
    told = {"model": type(source.last).__name__, "metric": told_metric(source)}
    told["feature_names"] = json.dumps(source.names, ensure_ascii=False) if source.names else None
    return {key: value for key, value in told.items() if value is not None}


def linear(graph: Graph, rows: str, source: Source) -> str:
    """Weighted features, and the constant."""
    found = graph.add("MatMul", rows, graph.keep(source.weights[:, None]))
    return graph.add("Add", found, graph.keep(np.array([source.constant])))


def network(graph: Graph, x: str, source: Source) -> str:
    """Scaled and transformed features through the layers."""
    from concordant.scorers.neural import LIMIT

    parts, before = FOREIGN["network"].packed(source.last.scorer_), source.before
    if before.changes:
        x = graph.add("Mul", x, graph.keep(before.scale))
        x = graph.add("Add", x, graph.keep(before.shift))
    for name, arrays in parts["transforms"]:
        x = TRANSFORMS[name](graph, x, **arrays)
    x = graph.add("Clip", x, graph.keep(-LIMIT), graph.keep(LIMIT))
    if parts["context"]:
        mean = graph.add("ReduceMean", x, axes=[0], keepdims=1)
        x = graph.add("Concat", x, graph.add("Sub", x, mean), axis=1)
    for depth, (weight, bias) in enumerate(zip_longest(parts["weights"], parts["biases"])):
        x = graph.add("Relu", x) if depth else x
        # Kept as they are, in single precision: half the size.
        x = graph.add("MatMul", x, graph.cast(graph.keep(weight.T), "float64"))
        if bias is not None:
            x = graph.add("Add", x, graph.cast(graph.keep(bias), "float64"))
    most = float(np.finfo(np.float32).max)
    return graph.add("Clip", x, graph.keep(-most), graph.keep(most))


def log1p(graph: Graph, x: str) -> str:
    """sign(x) log(1 + abs(x)); ONNX has no log1p.

    With u = 1 + a as it is rounded, log(u) a / (u - 1) has the digits that log(u) alone loses near 0.
    """
    size, one = graph.add("Abs", x), graph.keep(1.0)
    u = graph.add("Add", size, one)
    gone = graph.add("Sub", u, one)
    none = graph.add("Equal", gone, graph.keep(0.0))
    safe = graph.add("Where", none, one, gone)
    grown = graph.add("Mul", graph.add("Log", u), graph.add("Div", size, safe))
    return graph.add("Mul", graph.add("Sign", x), graph.add("Where", none, size, grown))


def standard(graph: Graph, x: str, mean: FloatArray, spread: FloatArray) -> str:
    """(x - mean) / spread."""
    return graph.add("Div", graph.add("Sub", x, graph.keep(mean)), graph.keep(spread))


def quantile(graph: Graph, x: str, landmarks: FloatArray) -> str:
    """Share of the landmarks below, as `plain_scores.shares` says it; feature by feature, so transposed."""
    x, n = graph.add("Transpose", x), landmarks.shape[1]
    near = graph.add("Mul", graph.add("Abs", x), graph.keep(SAME))
    below = counted(graph, landmarks, graph.add("Sub", x, near), "Less")
    until = counted(graph, landmarks, graph.add("Add", x, near), "LessOrEqual")
    zero, one, last = (graph.keep(np.array(number)) for number in (0, 1, n - 1))
    left = graph.add("Clip", graph.add("Sub", below, one), zero, last)
    right = graph.add("Clip", below, zero, last)
    marks = graph.keep(landmarks)
    low, high = (graph.add("GatherElements", marks, side, axis=1) for side in (left, right))
    gap, flat, unit = graph.add("Sub", high, low), graph.keep(0.0), graph.keep(1.0)
    gap = graph.add("Where", graph.add("Greater", gap, flat), gap, unit)
    way = graph.add("Div", graph.add("Sub", x, low), gap)
    between = graph.add("Add", graph.cast(left, "float64"), way)
    both = graph.add("Sub", graph.add("Add", below, until), one)
    middle = graph.add("Mul", graph.cast(both, "float64"), graph.keep(0.5))
    found = graph.add("Where", graph.add("Greater", until, below), middle, between)
    found = graph.add("Div", found, graph.keep(max(n - 1.0, 1.0)))
    found = graph.add("Where", graph.add("Equal", until, graph.keep(np.array(n))), unit, found)
    return graph.add("Transpose", graph.add("Where", graph.add("Equal", below, zero), flat, found))


def counted(graph: Graph, landmarks: FloatArray, x: str, comparison: str) -> str:
    """Count the landmarks that are less than x (or equal), by halving: each step adds a power of 2 or not."""
    steps = landmarks.shape[1].bit_length()
    padded = np.full((len(landmarks), 2**steps), np.inf)
    padded[:, : landmarks.shape[1]] = landmarks
    marks = graph.keep(padded)
    found = graph.add("Cast", graph.add("Mul", x, graph.keep(0.0)), to=7)  # whole numbers, all 0
    for power in reversed(range(steps)):
        tried = graph.add("Add", found, graph.keep(np.array(2**power)))
        place = graph.add("Sub", tried, graph.keep(np.array(1)))
        mark = graph.add("GatherElements", marks, place, axis=1)
        found = graph.add("Where", graph.add(comparison, mark, x), tried, found)
    return found


TRANSFORMS: dict[str, Any] = {"log1p": log1p, "standard": standard, "quantile": quantile}
