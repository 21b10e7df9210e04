"""ONNX: linear models and networks as graphs that compute in doubles, whatever the type of their input."""

from __future__ import annotations

import json
from importlib.util import find_spec
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant._base.files import PathLike
from concordant.exceptions import ExportError, MissingExtraError
from concordant.store.export.export_sources import ExportSource
from concordant.store.export.golden import Draft
from concordant.store.export.plain import SAME, context_notes, metric_name, refuse_trees
from concordant.store.foreign import FOREIGN
from concordant.types import FloatArray

if TYPE_CHECKING:
    from concordant.store.export.onnx_graph import Graph

LARGEST = 1e38  # of sums that float32 can hold
WIDER = "take dtype='float64'; or: "


def onnx_draft(source: ExportSource, path: PathLike, dtype: str) -> Draft:
    """Build a graph from `features`, (rows, n_features), to `scores`, (rows,), both of type `dtype`."""
    refuse_trees(source, path, "ONNX")
    if source.kind == "ratings":
        problem = f"{type(source.last).__name__} reads no features, and ONNX is a function of features"
        raise ExportError(path, problem, "'json' holds a table of ratings.")
    for package in ("onnx", "onnxruntime"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "export", "format='onnx'")
    from concordant.store.export.onnx_graph import INPUT, OUTPUT, Graph

    graph = Graph()
    rows = graph.cast(INPUT, "float64")
    column = network(graph, rows, source) if source.kind == "network" else linear(graph, rows, source)
    scores = graph.add("Squeeze", column, graph.constant(np.array([1])))
    graph.cast(scores, dtype, name=OUTPUT)
    contents = graph.serialize(source.n_features, dtype, _build_metadata(source))
    if dtype == "float64":
        return Draft(contents, _read_onnx, notes=context_notes(source))
    return Draft(contents, _read_onnx, True, largest=LARGEST, wider=WIDER, notes=context_notes(source))


def _read_onnx(contents: bytes, rows: FloatArray) -> FloatArray:
    import onnxruntime as ort

    settings = ort.SessionOptions()
    settings.log_severity_level, settings.intra_op_num_threads = 3, 1
    session = ort.InferenceSession(contents, settings, providers=["CPUExecutionProvider"])
    (input_info,) = session.get_inputs()
    inputs = rows.astype(np.float32 if input_info.type == "tensor(float)" else np.float64)
    (outputs,) = session.run(None, {input_info.name: inputs})
    return np.asarray(outputs, dtype=np.float64)


def _build_metadata(source: ExportSource) -> dict[str, str]:
    metadata = {"model": type(source.last).__name__, "metric": metric_name(source)}
    metadata["feature_names"] = json.dumps(source.names, ensure_ascii=False) if source.names else None
    return {key: value for key, value in metadata.items() if value is not None}


def linear(graph: Graph, rows: str, source: ExportSource) -> str:
    """Add weighted features and the constant to the graph."""
    weighted = graph.add("MatMul", rows, graph.constant(source.weights[:, None]))
    return graph.add("Add", weighted, graph.constant(np.array([source.constant])))


def network(graph: Graph, x: str, source: ExportSource) -> str:
    """Add scaled and transformed features and the layers to the graph."""
    from concordant.rankers.networks.network import LIMIT

    parts, before = FOREIGN["network"].pack(source.last.scorer_), source.before
    if before.changes:
        x = graph.add("Mul", x, graph.constant(before.scale))
        x = graph.add("Add", x, graph.constant(before.shift))
    for name, arrays in parts["transforms"]:
        x = TRANSFORMS[name](graph, x, **arrays)
    x = graph.add("Clip", x, graph.constant(-LIMIT), graph.constant(LIMIT))
    if parts["context"]:
        mean = graph.add("ReduceMean", x, axes=[0], keepdims=1)
        x = graph.add("Concat", x, graph.add("Sub", x, mean), axis=1)
    for depth, (weight, bias) in enumerate(zip_longest(parts["weights"], parts["biases"])):
        x = graph.add("Relu", x) if depth else x
        # Kept as they are, in single precision: half the size.
        x = graph.add("MatMul", x, graph.cast(graph.constant(weight.T), "float64"))
        if bias is not None:
            x = graph.add("Add", x, graph.cast(graph.constant(bias), "float64"))
    most = float(np.finfo(np.float32).max)
    return graph.add("Clip", x, graph.constant(-most), graph.constant(most))


def log1p(graph: Graph, x: str) -> str:
    """sign(x) log(1 + abs(x)); ONNX has no log1p.

    With u = 1 + a as it is rounded, log(u) a / (u - 1) has the digits that log(u) alone loses near 0.
    """
    size, unit = graph.add("Abs", x), graph.constant(1.0)
    u = graph.add("Add", size, unit)
    rounded_size = graph.add("Sub", u, unit)
    is_zero = graph.add("Equal", rounded_size, graph.constant(0.0))
    safe = graph.add("Where", is_zero, unit, rounded_size)
    grown = graph.add("Mul", graph.add("Log", u), graph.add("Div", size, safe))
    return graph.add("Mul", graph.add("Sign", x), graph.add("Where", is_zero, size, grown))


def standard(graph: Graph, x: str, mean: FloatArray, spread: FloatArray) -> str:
    """(x - mean) / spread."""
    return graph.add("Div", graph.add("Sub", x, graph.constant(mean)), graph.constant(spread))


def quantile(graph: Graph, x: str, landmarks: FloatArray) -> str:
    """Share of the landmarks below, as in `plain.shares`; feature by feature, so transposed."""
    x, n = graph.add("Transpose", x), landmarks.shape[1]
    tolerance = graph.add("Mul", graph.add("Abs", x), graph.constant(SAME))
    below = _count_landmarks(graph, landmarks, graph.add("Sub", x, tolerance), "Less")
    until = _count_landmarks(graph, landmarks, graph.add("Add", x, tolerance), "LessOrEqual")
    zero, increment, last = (graph.constant(np.array(number)) for number in (0, 1, n - 1))
    left = graph.add("Clip", graph.add("Sub", below, increment), zero, last)
    right = graph.add("Clip", below, zero, last)
    marks = graph.constant(landmarks)
    low, high = (graph.add("GatherElements", marks, side, axis=1) for side in (left, right))
    gap, flat, unit = graph.add("Sub", high, low), graph.constant(0.0), graph.constant(1.0)
    gap = graph.add("Where", graph.add("Greater", gap, flat), gap, unit)
    fraction = graph.add("Div", graph.add("Sub", x, low), gap)
    between = graph.add("Add", graph.cast(left, "float64"), fraction)
    rank_sum = graph.add("Sub", graph.add("Add", below, until), increment)
    middle = graph.add("Mul", graph.cast(rank_sum, "float64"), graph.constant(0.5))
    share = graph.add("Where", graph.add("Greater", until, below), middle, between)
    share = graph.add("Div", share, graph.constant(max(n - 1.0, 1.0)))
    share = graph.add("Where", graph.add("Equal", until, graph.constant(np.array(n))), unit, share)
    return graph.add("Transpose", graph.add("Where", graph.add("Equal", below, zero), flat, share))


def _count_landmarks(graph: Graph, landmarks: FloatArray, x: str, comparison: str) -> str:
    """Count the landmarks less than x (or equal) by halving: each step adds a power of 2 or not."""
    steps = landmarks.shape[1].bit_length()
    padded = np.full((len(landmarks), 2**steps), np.inf)
    padded[:, : landmarks.shape[1]] = landmarks
    marks = graph.constant(padded)
    n_below = graph.add("Cast", graph.add("Mul", x, graph.constant(0.0)), to=7)  # whole numbers, all 0
    for power in reversed(range(steps)):
        candidate = graph.add("Add", n_below, graph.constant(np.array(2**power)))
        index = graph.add("Sub", candidate, graph.constant(np.array(1)))
        landmark = graph.add("GatherElements", marks, index, axis=1)
        n_below = graph.add("Where", graph.add(comparison, landmark, x), candidate, n_below)
    return n_below


TRANSFORMS: dict[str, Any] = {"log1p": log1p, "standard": standard, "quantile": quantile}
