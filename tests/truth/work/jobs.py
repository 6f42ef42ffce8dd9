"""Small jobs for the tests of work: attention with its gradient in balls, and whether two results are the same bit for bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from symattn import variants
from symattn.truth.derived import with_gradient
from symattn.truth.work.engines import Engine, engine_for
from symattn.truth.work.packed import packed
from tests.variants.entries import numbers_for, sizes_for

BALLS = replace(engine_for("balls", 120), points=24)
"""Blocks of a few rows, so that a small problem has many."""


def job(name: str = "causal", n: int = 12) -> tuple[Any, dict[str, Any], dict[str, int]]:
    """A program, its inputs and its sizes."""
    program = with_gradient(variants.get(name).definition.program(batch=True))
    sizes = sizes_for(name, program)
    sizes |= {s: k for s, k in {"B": 2, "n": n, "m": n}.items() if s in sizes}
    return program, numbers_for(program, sizes, 7), sizes


def run(work: Any, name: str = "causal", engine: Engine = BALLS, n: int = 12) -> Any:
    from symattn.truth.work.run import evaluate

    program, inputs, sizes = job(name, n)
    return evaluate(engine, program, inputs, sizes=sizes, work=work)


def differing(x: Any, y: Any) -> list[str]:
    """The tensors of two results that are not the same bit for bit."""
    assert x.keys() == y.keys()
    out = []
    for name in x:
        a, b = packed(x[name].values), packed(y[name].values)
        if a.keys() != b.keys() or not all(np.array_equal(a[k], b[k]) for k in a):
            out.append(name)
    return out
