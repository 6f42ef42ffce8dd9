"""Definitions and values that the tests of the presentation share."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import sympy as sp

from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.presentation import Presented, present
from symattn.program import Program
from tests.tiny import MP, numbers

DEFINITIONS: dict[str, Definition] = {
    "plain": Definition(lse=False),
    "causal": Definition(lse=False, causal="top-left"),
    "empty rows": Definition(causal="bottom-right"),
    "boolean mask": Definition(attn_mask="boolean"),
    "additive mask": Definition(attn_mask="additive"),
    "softcap": Definition(lse=False, softcap="cap"),
    "alibi": Definition(lse=False, alibi=True, causal="top-left"),
    "bias": Definition(lse=False, bias=True),
    "sink": Definition(lse=False, sink=True),
    "sink base 2": Definition(sink=True, lse_base=2, causal="bottom-right"),
    "lse": Definition(),
    "lse base 2": Definition(lse_base=2),
    "grouped": Definition(lse=False, heads=4, kv_heads=2),
    "projections": Definition(lse=False, start="x", output_projection=True, causal="top-left"),
    "tokens": Definition(lse=False, start="tokens", output_projection=True),
    "memory": Definition(lse=False, start="x", cross=True),
    "dropout": Definition(dropout=True, causal="top-left"),
    "uniform empty rows": Definition(causal="bottom-right", empty_row="uniform", dropout=True),
    "own score": Definition(score="20*tanh(s/20) - slope*(i - j)", mask="j <= i"),
    "bump": Definition(score="s*exp(-s**2/2)"),
    "own scale": Definition(scale="1/t"),
    "everything": Definition(
        heads=4, kv_heads=2, causal="bottom-right", softcap=20, alibi=True, sink=True, dropout=True, bias=True
    ),
}
SIZES = {
    "B": 1, "Hkv": 2, "G": 2, "H": 2, "n": 4, "m": 2, "d": 2, "dv": 3, "dmodel": 2, "dmem": 2, "width": 2, "vocab": 3,
}  # fmt: skip


@cache
def listed(name: str) -> tuple[Program, Program, Presented]:
    """The program of a definition, its raw gradient, and the presented one."""
    program = DEFINITIONS[name].program()
    gradient = adjoint(program)
    return program, gradient, present(program, gradient)


def sizes_of(program: Program) -> dict[str, int]:
    """Small sizes; more queries than keys, so that bottom-right leaves rows empty."""
    return {a.name: SIZES.get(a.name, 2) for a in program.sizes}


def values(program: Program, seed: int = 0) -> dict[str, Any]:
    """Random inputs of a program and of its gradient: masks of 0 and 1, an additive mask with -oo in a row and a point."""
    rng = np.random.default_rng(seed)
    table = {a: sp.Integer(v) for a, v in zip(program.sizes, sizes_of(program).values(), strict=True)}
    out: dict[str, Any] = {}
    for name in program.inputs:
        shape = tuple(int(sp.sympify(n).xreplace(table)) for n in program.shapes[name])
        if name in program.discrete:
            out[name] = np.array(rng.integers(0, 2, shape), dtype=object)
        else:
            out[name] = numbers(rng, *shape)
        if name in ("p", "cap", "t"):
            out[name] = MP.mpf(3) / 4
        if name == "B":
            out[name][0, :] = out[name][1, 1] = MP.mpf("-inf")
        if name == "M":
            out[name][0, :] = 0
    return out
