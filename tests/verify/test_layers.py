"""Kernels of whole layers: judged by their tensors under field names, and a wrong epsilon is seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from symattn import Attention, variants

FIELDS = variants.get("encoder-layer").fields


def kernel(eps: str) -> Any:
    """An encoder layer in float64 with an epsilon of its own, rounded once."""
    layer = Attention(**{**FIELDS, "layer_norm_eps": eps}).lambdify("numpy")

    def run(**tensors: Any) -> dict[str, Any]:
        return {"out": np.asarray(layer(**{n: a.astype(np.float64) for n, a in tensors.items()})).astype(np.float32)}

    return run


@pytest.mark.parametrize(("eps", "verdict"), [("1e-5", "pass"), ("1e-6", "fail")])
def test_the_epsilon_of_a_layer_norm_shows(eps: str, verdict: str) -> None:
    report = Attention(**FIELDS).verify(kernel(eps))
    assert report.verdict == verdict
    assert {c.case for c in report.cases} == {"normal", "tall", "small"}
