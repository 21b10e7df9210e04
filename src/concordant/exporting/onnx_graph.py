"""A graph of ONNX, put together one operation after the other. Needs onnx."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

__all__ = ["INPUT", "OPSET", "OUTPUT", "Graph"]

OPSET, IR = 13, 7  # of 2020: runtimes that are still in use read them
INPUT, OUTPUT = "features", "scores"
TYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}


class Graph:
    """Operations on one table of features; each is called by the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.kept: list[Any] = []

    def add(self, operation: str, *inputs: str, name: str = "", **settings: Any) -> str:
        """Add an operation; give the name of its result."""
        found = name or f"{operation}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, list(inputs), [found], **settings))
        return found

    def keep(self, values: NDArray[Any] | float) -> str:
        """Add numbers; give their name."""
        name = f"numbers_{len(self.kept)}"
        array = np.ascontiguousarray(values)
        # What is contiguous has an axis at least: a single number keeps none.
        self.kept.append(numpy_helper.from_array(array.reshape(np.shape(values)), name))
        return name

    def cast(self, value: str, dtype: str, **settings: Any) -> str:
        """Change the type of numbers."""
        return self.add("Cast", value, to=TYPES[dtype], **settings)

    def made(self, n_features: int, dtype: str, notes: dict[str, str]) -> bytes:
        """Give the file: rows of features go in, and a score for each comes out."""
        kind = TYPES[dtype]
        into = helper.make_tensor_value_info(INPUT, kind, ["rows", n_features])
        out = helper.make_tensor_value_info(OUTPUT, kind, ["rows"])
        graph = helper.make_graph(self.nodes, "ranker", [into], [out], initializer=self.kept)
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=IR, producer_name="concordant")
        helper.set_model_props(model, notes)
        onnx.checker.check_model(model, full_check=True)
        contents: bytes = model.SerializeToString()
        return contents
