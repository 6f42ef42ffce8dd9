"""The ONNX operator Attention: as ONNX's own reference evaluates it, and as ONNX Runtime runs it. Forward only, no LSE."""

from __future__ import annotations

from typing import Any

import numpy as np

from symattn import measured
from symattn.arithmetic import Arithmetic
from symattn.intake import Array, to_numpy
from symattn.verify.kernels import masks
from symattn.verify.kernels.base import Deviation, Kernel, Tensors, leaks
from symattn.verify.kernels.call import Call

OPSET = 24
IR_VERSION = 11
_TYPES = {"float64": "DOUBLE", "float32": "FLOAT", "float16": "FLOAT16", "bfloat16": "BFLOAT16", "bool": "BOOL"}


def model(call: Call) -> tuple[Any, dict[str, Array]]:
    """A model of one Attention node for the call, and what to feed it."""
    from onnx import TensorProto, helper

    feed: dict[str, Array] = {"Q": call.query, "K": call.key, "V": call.value}
    attributes: dict[str, Any] = {}
    if masks.is_plain_causal(call):
        attributes["is_causal"] = 1
    else:
        mask = masks.additive_mask(call) if call.additive is not None else masks.boolean_mask(call)
        if mask is not None:
            feed["attn_mask"] = mask
    if call.definition.scale is not None:
        attributes["scale"] = call.scale
    if call.definition.softcap is not None:
        attributes["softcap"] = call.number(call.definition.softcap)

    def info(name: str, a: Array) -> Any:
        return helper.make_tensor_value_info(name, getattr(TensorProto, _TYPES[str(a.dtype)]), None)

    node = helper.make_node("Attention", list(feed), ["Y"], **attributes)
    graph = helper.make_graph([node], "attention", [info(n, a) for n, a in feed.items()], [info("Y", call.query)])
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    return built, {n: np.array(a, copy=True, order="C") for n, a in feed.items()}


class OnnxReference(Kernel):
    """``onnx:reference``: ONNX's reference evaluator."""

    name = "onnx:reference"
    about = "the reference evaluator of ONNX's Attention operator, forward only, no LSE"
    packages: tuple[str, ...] = ("onnx",)
    known: tuple[Deviation, ...] = (leaks("onnx 1.23"),)
    dtypes: tuple[str, ...] = ("float64", "float32", "float16")

    def takes_dtype(self, dtype: str) -> bool:
        """Not bfloat16 nor 8 bits."""
        return dtype in self.dtypes

    def unsupported(self, call: Call) -> str | None:
        """It knows scale, softcap before the mask, masks and grouped heads, and gives 0 for a row without keys."""
        if not self.takes_dtype(str(call.dtype)):
            return f"it does not compute in {call.dtype}"
        return masks.beyond(call, empty_row="zero", softcap=True, base=True)

    def arithmetic(self, call: Call) -> Arithmetic:
        """One NumPy operation after the other, each result in the inputs' dtype; Q and K both scaled by the root of the scale."""
        return measured.onnx_reference(str(call.dtype))

    def forward(self, call: Call) -> Tensors:
        """Output only."""
        from onnx.reference import ReferenceEvaluator

        built, feed = model(call)
        with np.errstate(all="ignore"):
            return self._read(ReferenceEvaluator(built).run(None, feed))

    def _read(self, outputs: Any) -> Tensors:
        return {"out": to_numpy(outputs[0], "out")}


class OnnxRuntime(OnnxReference):
    """``onnxruntime:attention``: ONNX Runtime's CPU provider."""

    name = "onnxruntime:attention"
    about = "the Attention operator in ONNX Runtime's CPU provider, forward only, no LSE"
    packages = ("onnx", "onnxruntime")
    known = (leaks("ONNX Runtime 1.32"),)

    def arithmetic(self, call: Call) -> Arithmetic:
        """One operation after the other, each result stored in the inputs' dtype; the scale in float32."""
        return measured.onnxruntime(str(call.dtype))

    def forward(self, call: Call) -> Tensors:
        """Output only."""
        import onnxruntime

        built, feed = model(call)
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 4
        settings.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(built.SerializeToString(), settings, providers=["CPUExecutionProvider"])
        return self._read(session.run(None, feed))


KERNELS: tuple[Kernel, ...] = (OnnxRuntime(), OnnxReference())
