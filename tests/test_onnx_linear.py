"""The LinearAttention operator of ONNX: the 14 cases that its own suite generates in memory, outputs and final states.

Every case is judged in all three evaluations, within the suite's tolerance (rtol 1e-3, atol 1e-7), which leaves room for float16.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from symattn.binding import bind, unbind
from symattn.definition import Definition
from symattn.readings import numpy as reading
from tests.support import onnx_cases, require

NAMES = ["linear", "gated", "gated_per_head_decay", "delta", "gated_delta", "gated_delta_beta_scalar", "gated_delta_gqa"]
NAMES += [
    "gated_delta_mqa",
    "decode_step",
    "prefill_with_past",
    "no_past_explicit_zeros",
    "explicit_scale",
    "fp16",
    "linear_t1_no_past",
]


@lru_cache(maxsize=1)
def cases() -> dict[str, Any]:
    every = onnx_cases()
    found = [c for c in every if c.model and [n.op_type for n in c.model.graph.node] == ["LinearAttention"]]
    return {c.name.removeprefix("test_linear_attention_"): c for c in found}


def packed(x: np.ndarray, heads: int) -> np.ndarray:
    """(B, n, H*d) as (B, H, n, d)."""
    return np.swapaxes(x.reshape(*x.shape[:2], heads, -1), 1, 2)


class Case:
    """One case: arrays under field names, what is expected, and the definition that the attributes say."""

    def __init__(self, name: str) -> None:
        import onnx

        case = cases()[name]
        node = case.model.graph.node[0]
        said = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        (given, self.expected), *_ = case.data_sets
        arrays = dict(zip((x for x in node.input if x), (np.asarray(x) for x in given), strict=True))
        heads, kv = said["q_num_heads"], said["kv_num_heads"]
        rule = said.get("update_rule", b"gated_delta").decode()
        wide = {n: arrays[n].astype(np.float64) for n in arrays}
        self.fields = {"query": packed(wide["query"], heads), "key": packed(wide["key"], kv), "value": packed(wide["value"], kv)}
        self.values: dict[str, Any] = {"form": "linear", "causal": True, "heads": heads, "kv_heads": kv, "delta": "delta" in rule}
        if "gated" in rule:
            each = wide["decay"].shape[-1] == kv
            decay = packed(wide["decay"], kv)
            self.fields["decay"] = decay[..., 0] if each else decay
            self.values |= {"decay": "step" if each else "channel", "decay_space": "log"}
        if self.values["delta"]:
            beta = np.broadcast_to(wide["beta"], (*wide["beta"].shape[:2], kv))
            self.fields["beta"] = np.swapaxes(beta, 1, 2)
        if "past_state" in wide:
            self.fields["initial_state"] = wide["past_state"]
            self.values["initial_state"] = True
        if said.get("scale"):
            self.values["scale"] = float(said["scale"])
        self.rtol, self.atol = case.rtol, max(case.atol, 1e-3 if arrays["query"].dtype == np.float16 else 0)


def evaluated(case: Case, evaluation: str, **changes: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """The output as (B, n, H*d), and the state after the last step where the evaluation has one."""
    block = 3 if evaluation == "chunked" else None
    bound = bind(Definition.of(evaluation=evaluation, block=block, **{**case.values, **changes}), case.fields)
    found = reading.evaluate(bound.program, bound.inputs, sizes=dict(bound.sizes))
    out = np.swapaxes(unbind(bound, "O", found["O"])[1], 1, 2)
    out = out.reshape(*out.shape[:2], -1)
    if evaluation == "parallel":
        return out, None
    last = found["St"][..., -1, :, :]
    return out, last if last.ndim == 4 else last[:, None]


def test_all_cases_are_here():
    assert sorted(cases()) == sorted(NAMES)


@pytest.mark.parametrize("evaluation", ["parallel", "recurrent", "chunked"])
@pytest.mark.parametrize("name", NAMES)
def test_the_cases_of_the_operator(name, evaluation):
    require("onnx")
    case = Case(name)
    out, state = evaluated(case, evaluation)
    np.testing.assert_allclose(out, case.expected[0], case.rtol, case.atol)
    if state is not None:
        np.testing.assert_allclose(state, case.expected[1], case.rtol, case.atol)


def test_another_rule_is_seen():
    require("onnx")
    case = Case("gated_delta")
    del case.fields["beta"]
    out, _ = evaluated(case, "recurrent", delta=False)
    assert not np.allclose(out, case.expected[0], case.rtol, case.atol)
