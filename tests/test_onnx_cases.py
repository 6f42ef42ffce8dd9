"""The Attention operator of ONNX: all 93 cases that its own suite generates, in every output, by the definition's reading.

The cases are made in memory by ``onnx.backend.test.case.node`` (69 of opset 23, 13 of 24, 11 of 25) and judged within the suite's
tolerances, rtol 1e-3 and atol 1e-7. Values are float64 readings of the definition, rounded once to the dtype of the case.

The bfloat16 cases cannot be judged so: bfloat16 has 8 bits, and even the exact result rounded once misses a relative 1e-3. They
are judged by the rigorous bound of an arithmetic that rounds everything to bfloat16, which is what the reference evaluator does.
No case is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from symattn import conventions
from symattn.arithmetic import uniform
from symattn.binding import Bound, bind, unbind
from symattn.definition import Definition
from symattn.readings import numpy as reading
from symattn.readings import rounding
from tests.support import onnx_cases

MASKS = ("causal", "window", "attn_mask", "mask_axes", "key_lengths")


@lru_cache(maxsize=1)
def cases() -> dict[str, Any]:
    every = onnx_cases()
    found = [c for c in every if c.model and [n.op_type for n in c.model.graph.node] == ["Attention"]]
    return {c.name.removeprefix("test_attention_"): c for c in found}


class Case:
    """One case: arrays and attributes by their ONNX names, and the definition that they say."""

    def __init__(self, name: str) -> None:
        import onnx

        case = cases()[name]
        node = case.model.graph.node[0]
        (given, expected), *_ = case.data_sets
        self.rtol, self.atol = case.rtol, case.atol
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        self.inputs = dict(zip((x for x in node.input if x), map(np.asarray, given), strict=True))
        self.expected = dict(zip((x for x in node.output if x), map(np.asarray, expected), strict=True))
        self.mode = self.attributes.pop("qk_matmul_output_mode", 0)
        self.attributes.pop("softmax_precision", None)  # a precision is not part of what is computed
        self.dtype = self.inputs["Q"].dtype
        self.heads = self.attributes.get("q_num_heads"), self.attributes.get("kv_num_heads")

    def split(self, x: np.ndarray, heads: int | None) -> np.ndarray:
        """(B, n, H*d) as (B, H, n, d)."""
        return x if x.ndim == 4 else np.swapaxes(x.reshape(*x.shape[:2], heads, -1), 1, 2)

    @property
    def fields(self) -> dict[str, np.ndarray]:
        q = self.split(self.inputs["Q"], self.heads[0])
        k, v = (self.split(self.inputs[x], self.heads[1]) for x in "KV")
        if "past_key" in self.inputs:
            k, v = (np.concatenate([self.inputs[p], x], axis=2) for p, x in (("past_key", k), ("past_value", v)))
        fields = {"query": q, "key": k, "value": v}
        if "attn_mask" in self.inputs:
            mask = self.inputs["attn_mask"]
            short = k.shape[2] - mask.shape[-1]
            pad = [(0, 0)] * (mask.ndim - 1) + [(0, short)]
            fields["attn_mask"] = np.pad(mask, pad, constant_values=False if mask.dtype == bool else -np.inf)
        if "nonpad_kv_seqlen" in self.inputs:
            fields["key_lengths"] = self.inputs["nonpad_kv_seqlen"]
        return fields

    @property
    def definition(self) -> Definition:
        options = dict(self.attributes)
        if "attn_mask" in self.inputs:
            options["attn_mask"] = "boolean" if self.inputs["attn_mask"].dtype == bool else "additive"
        if "past_key" in self.inputs:
            options["past_key"] = self.inputs["past_key"].shape[2]
        if "nonpad_kv_seqlen" in self.inputs:
            options["nonpad_kv_seqlen"] = True
        return conventions.get("onnx").definition(**options)

    def bound(self, **changes: Any) -> Bound:
        """The definition with its numbers; without masks where ``changes`` drop them."""
        d = self.definition.replace(**changes)
        kept = {"attn_mask": d.attn_mask, "key_lengths": d.key_lengths}
        return bind(d, {k: x for k, x in self.fields.items() if kept.get(k, True)})

    def qk_matmul_output(self) -> tuple[Bound, str]:
        """The tensor that the fourth output shows: scaled, capped, final scores, or weights."""
        if self.mode == 3:
            return self.bound(), "P"
        masked = self.mode == 2
        bound = self.bound() if masked else self.bound(**dict.fromkeys(MASKS[:4]), key_lengths=False)
        wanted = ("Z", "A", "S") if masked else ("A", "S") if self.mode == 1 else ("S",)
        return bound, next(x for x in wanted if x in bound.program)

    def computed(self) -> dict[str, np.ndarray]:
        """Every output in float64."""
        found: dict[str, np.ndarray] = {}
        for output in self.expected:
            if output in ("present_key", "present_value"):
                found[output] = self.fields[output.removeprefix("present_")]
                continue
            bound, tensor = (self.bound(), "O") if output == "Y" else self.qk_matmul_output()
            values = reading.evaluate(bound.program, bound.inputs, sizes=bound.sizes, dtype="float64")
            x = unbind(bound, tensor, values[tensor])[1]
            if output != "Y" and self.mode == 2:
                x = np.where(bound.keep(), x, -np.inf)
            if output == "Y" and self.expected["Y"].ndim == 3:
                x = np.swapaxes(x, 1, 2).reshape(self.expected["Y"].shape)
            found[output] = x
        return found


def names() -> Iterator[str]:
    """The names of the cases: known without onnx, so that collecting the tests costs nothing."""
    return iter(NAMES.split())


NAMES = """
4d 4d_fp16 4d_gqa 4d_diff_heads_sizes 4d_scaled 4d_gqa_scaled 4d_diff_heads_sizes_scaled 4d_causal 4d_gqa_causal
4d_diff_heads_sizes_causal 4d_attn_mask 4d_attn_mask_3d 4d_attn_mask_3d_causal 4d_attn_mask_4d 4d_attn_mask_4d_causal
4d_attn_mask_bool 4d_attn_mask_bool_4d 4d_gqa_attn_mask 4d_diff_heads_sizes_attn_mask 4d_with_past_and_present
4d_gqa_with_past_and_present 4d_gqa_with_past_and_present_fp16 4d_diff_heads_with_past_and_present
4d_diff_heads_with_past_and_present_mask3d 4d_diff_heads_with_past_and_present_mask4d 4d_softcap 4d_gqa_softcap
4d_diff_heads_sizes_softcap 4d_with_qk_matmul 4d_with_qk_matmul_bias 4d_with_qk_matmul_softcap 4d_with_qk_matmul_softmax
4d_with_past_and_present_qk_matmul_bias 4d_with_past_and_present_qk_matmul_bias_3d_mask
4d_with_past_and_present_qk_matmul_bias_4d_mask 4d_with_past_and_present_qk_matmul_bias_3d_mask_causal
4d_with_past_and_present_qk_matmul_bias_4d_mask_causal 4d_with_past_and_present_qk_matmul 3d 3d_gqa 3d_diff_heads_sizes
3d_scaled 3d_gqa_scaled 3d_diff_heads_sizes_scaled 3d_causal 3d_gqa_causal 3d_diff_heads_sizes_causal 3d_attn_mask
3d_gqa_attn_mask 3d_diff_heads_sizes_attn_mask 3d_softcap 3d_gqa_softcap 3d_diff_heads_sizes_softcap 3d_with_past_and_present
3d_gqa_with_past_and_present 3d_diff_heads_with_past_and_present 3d_with_past_and_present_qk_matmul
3d_with_past_and_present_qk_matmul_bias 3d_with_past_and_present_qk_matmul_softcap 3d_with_past_and_present_qk_matmul_softmax
3d_transpose_verification 4d_diff_heads_mask4d_padded_kv 4d_causal_bf16 4d_causal_fp16 4d_padded_kv_bf16
4d_causal_padded_kv_bf16 4d_attn_mask_causal_bf16 3d_causal_bf16 4d_softcap_neginf_mask 4d_softcap_neginf_mask_poison
4d_gqa_causal_nonpad_decode 4d_gqa_causal_nonpad_decode_fp16 4d_causal_nonpad_continued_prefill
4d_causal_with_past_and_present causal_boolmask_nan_robustness 23_boolmask_fullymasked_row_nan_robustness
4d_causal_nonpad_negative_offset_structural_empty 23_fullymasked_qk_matmul_output_mode3_zero
24_fullymasked_qk_matmul_output_mode3_zero 24_qk_matmul_output_mode3_softmax_precision 4d_causal_nonpad_attn_mask_composition
4d_causal_nonpad_batch_prefill local_window bidirectional_window local_window_default local_window_rank1_boolean_mask
local_window_with_past local_window_ext_cache_rank3_head_mask local_window_ext_cache_rank4_batch_mask
local_window_ext_cache_rank2_mask local_window_ext_cache_float16_mask 3d_local_window local_window_gqa_rank4_mask
"""


def test_the_suite_has_the_cases_that_are_listed():
    assert sorted(cases()) == sorted(names())
    opsets = [c.model.opset_import[0].version for c in cases().values()]
    assert [opsets.count(v) for v in (23, 24, 25)] == [69, 13, 11]


@pytest.mark.parametrize("name", [n for n in names() if "bf16" not in n])
def test_every_output_of_a_case_agrees(name, require):
    require("onnx")
    case = Case(name)
    found = case.computed()
    assert sorted(found) == sorted(case.expected)
    for output, expected in case.expected.items():
        with np.errstate(invalid="ignore"):
            rounded = found[output].astype(case.dtype).astype(np.float64)
        np.testing.assert_allclose(rounded, expected.astype(np.float64), rtol=case.rtol, atol=case.atol, err_msg=output)


def outside_bound(case: Case, definition: Definition) -> int:
    """How many elements of Y no kernel that rounds everything to bfloat16 could give for this definition."""
    bound = bind(definition, case.fields)
    arithmetic = uniform("reference", "bfloat16", scale_before=2)
    box = rounding.evaluate(bound.program, bound.inputs, arithmetic, sizes=bound.sizes)["O"]
    value, allowed = (unbind(bound, "O", x)[1] for x in (box.value, box.bound + box.own))
    y = case.expected["Y"].astype(np.float64)
    y = y if y.ndim == 4 else np.swapaxes(y.reshape(*y.shape[:2], case.heads[0], -1), 1, 2)
    return int((np.abs(y - value) > allowed).sum())


@pytest.mark.parametrize("name", [n for n in names() if "bf16" in n])
def test_bfloat16_is_within_the_bound_of_its_arithmetic(name, require):
    require("onnx")
    case = Case(name)
    assert set(case.expected) == {"Y"}
    assert outside_bound(case, case.definition) == 0
    # and the bound is small enough to tell: without the causal mask, or with one too many, the result is outside
    d = case.definition
    assert outside_bound(case, d.replace(causal=None if d.causal is not None else "top-left")) > 0
