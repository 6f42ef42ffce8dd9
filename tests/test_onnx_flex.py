"""The FlexAttention operator of ONNX: the 11 cases that its own suite generates, by the definition's reading in float64.

The modifications that the cases carry as graphs are definitions here; their constants are read from the graphs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from symattn.binding import bind, unbind
from symattn.definition import Definition
from symattn.readings import numpy as reading
from tests.support import onnx_cases

FIELDS: dict[str, Any] = {
    "": lambda c: {},
    "_scaled": lambda c: {"scale": c["scale"]},
    "_gqa": lambda c: {},
    "_diff_head_sizes": lambda c: {},
    "_score_mod": lambda c: {"score": f"s + {c['bias']}"},
    "_prob_mod": lambda c: {},
    "_fp16": lambda c: {},
    "_double": lambda c: {},
    "_causal_mask": lambda c: {"causal": "top-left"},
    "_soft_cap": lambda c: {"softcap": c["cap"]},
    "_relative_positional": lambda c: {"score": "s + i - j"},
}
"""Case -> fields of the definition, from the constants of the case."""


@lru_cache(maxsize=1)
def cases() -> dict[str, Any]:
    every = onnx_cases()
    found = [c for c in every if c.model and [n.op_type for n in c.model.graph.node] == ["FlexAttention"]]
    return {c.name.removeprefix("test_flexattention"): c for c in found}


def constants(node: Any) -> dict[str, float]:
    """The scalars among the attributes and in the constants of their graphs."""
    import onnx

    found = {}
    for a in node.attribute:
        value = onnx.helper.get_attribute_value(a)
        if a.type == onnx.AttributeProto.GRAPH:
            tensors = list(value.initializer) + [x for n in value.node if n.op_type == "Constant" for x in [n.attribute[0].t]]
            found |= {t.name: onnx.numpy_helper.to_array(t).item() for t in tensors if onnx.numpy_helper.to_array(t).size == 1}
        else:
            found[a.name] = value
    return found


def computed(name: str, **changes: Any) -> tuple[Any, Any, float]:
    """Ours, what the case expects, and its relative tolerance."""
    case = cases()[name]
    (given, expected), *_ = case.data_sets
    fields: dict[str, Any] = dict(zip(("query", "key", "value"), map(np.asarray, given), strict=True))
    if name == "_prob_mod":  # (c P) V is P (c V)
        fields["value"] = fields["value"] * changes.pop("times", constants(case.model.graph.node[0])["scale"])
    definition = Definition.of(**{"lse": False, **FIELDS[name](constants(case.model.graph.node[0])), **changes})
    bound = bind(definition, fields)
    values = reading.evaluate(bound.program, bound.inputs, sizes=bound.sizes, dtype="float64")
    return unbind(bound, "O", values["O"])[1], np.asarray(expected[0]), case.rtol


def test_the_suite_has_the_cases_that_are_tested_here() -> None:
    assert set(cases()) == set(FIELDS)


@pytest.mark.parametrize("name", FIELDS)
def test_the_definition_gives_the_output_of_the_case(name: str) -> None:
    got, want, rtol = computed(name)
    assert np.allclose(got, want.astype(np.float64), rtol=rtol, atol=1e-3 if want.dtype == np.float16 else 1e-6)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("_scaled", {"scale": None}),
        ("_causal_mask", {"causal": None}),
        ("_soft_cap", {"softcap": "1/10"}),
        ("_relative_positional", {"score": "s + j - i"}),
        ("_prob_mod", {"times": 1}),
    ],
)
def test_another_definition_does_not(name: str, changes: dict[str, Any]) -> None:
    got, want, rtol = computed(name, **changes)
    assert not np.allclose(got, want.astype(np.float64), rtol=rtol, atol=1e-6)
