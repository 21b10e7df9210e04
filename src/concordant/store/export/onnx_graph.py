"""Builder of ONNX graphs, one operation after the other. Needs onnx."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET, IR = 13, 7  # of 2020: runtimes that are still in use read them
INPUT, OUTPUT = "features", "scores"
TYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}


class Graph:
    """Operations on one table of features; each is called by the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operation: str, *inputs: str, name: str = "", **settings: Any) -> str:
        """Add an operation; return the name of its result."""
        output = name or f"{operation}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, list(inputs), [output], **settings))
        return output

    def constant(self, values: NDArray[Any] | float) -> str:
        """Add constant numbers; return their name."""
        name = f"numbers_{len(self.constants)}"
        array = np.ascontiguousarray(values)
        # A contiguous array has at least one axis: the shape of a single number is restored.
        self.constants.append(numpy_helper.from_array(array.reshape(np.shape(values)), name))
        return name

    def cast(self, value: str, dtype: str, **settings: Any) -> str:
        """Convert numbers to another type."""
        return self.add("Cast", value, to=TYPES[dtype], **settings)

    def serialize(self, n_features: int, dtype: str, notes: dict[str, str]) -> bytes:
        """Return the file: rows of features go in, and a score for each comes out."""
        kind = TYPES[dtype]
        into = helper.make_tensor_value_info(INPUT, kind, ["rows", n_features])
        out = helper.make_tensor_value_info(OUTPUT, kind, ["rows"])
        graph = helper.make_graph(self.nodes, "ranker", [into], [out], initializer=self.constants)
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=IR, producer_name="concordant")
        helper.set_model_props(model, notes)
        onnx.checker.check_model(model, full_check=True)
        contents: bytes = model.SerializeToString()
        return contents
