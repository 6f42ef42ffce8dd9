"""One ONNX node as a model, and what runs it: ONNX's reference evaluator or ONNX Runtime's CPU provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symattn.intake import Array

IR_VERSION = 11
_TYPES = {
    "float64": "DOUBLE",
    "float32": "FLOAT",
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "bool": "BOOL",
    "int32": "INT32",
    "int64": "INT64",
}


@dataclass(frozen=True)
class Node:
    """A node with what is fed to it.

    Parameters
    ----------
    operator, domain, opset
        The operator and its set of operators; ``com.microsoft`` has one version, and ``opset`` is that of ONNX's own set.
    inputs
        The names of all inputs in their order; those that ``feed`` lacks are left out.
    feed
        Arrays by the name of the input.
    outputs
        The names of all outputs in their order.
    attributes
        Of the node.
    """

    operator: str
    inputs: Sequence[str]
    feed: Mapping[str, Array]
    outputs: Sequence[str]
    opset: int
    domain: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def model(self) -> Any:
        """The node as a model."""
        from onnx import TensorProto, helper

        def info(name: str, dtype: Any, shape: Any) -> Any:
            return helper.make_tensor_value_info(name, getattr(TensorProto, _TYPES[str(dtype)]), shape)

        names = [name if name in self.feed else "" for name in self.inputs]
        while not names[-1]:
            names.pop()
        node = helper.make_node(self.operator, names, list(self.outputs), domain=self.domain, **self.attributes)
        given = [info(n, self.feed[n].dtype, list(self.feed[n].shape)) for n in names if n]
        made = [info(n, self.feed[names[0]].dtype, None) for n in self.outputs]
        sets = [helper.make_opsetid("", self.opset)] + ([helper.make_opsetid(self.domain, 1)] if self.domain else [])
        return helper.make_model(helper.make_graph([node], "attention", given, made), opset_imports=sets, ir_version=IR_VERSION)

    def copies(self) -> dict[str, Array]:
        """What is fed, as fresh arrays."""
        return {n: np.array(self.feed[n], copy=True, order="C") for n in self.inputs if n in self.feed}


def by_reference(node: Node) -> list[Any]:
    """The outputs by ONNX's reference evaluator."""
    from onnx.reference import ReferenceEvaluator

    with np.errstate(all="ignore"):
        found: list[Any] = ReferenceEvaluator(node.model()).run(None, node.copies())
    return found


def by_onnxruntime(node: Node) -> list[Any]:
    """The outputs by ONNX Runtime's CPU provider, on one thread."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(node.model().SerializeToString(), settings, providers=["CPUExecutionProvider"])
    found: list[Any] = session.run(None, node.copies())
    return found
