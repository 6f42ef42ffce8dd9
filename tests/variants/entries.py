"""Small exact numbers for every tensor that a row of the catalogue reads, and incoming gradients for its outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from symattn import variants
from symattn.fields import BY_LETTER
from symattn.truth.fields import with_gradient

SIZES = {"B": 1, "H": 2, "Hkv": 2, "G": 2, "n": 2, "m": 2, "d": 2, "dv": 1, "dmodel": 2, "dmemory": 2, "dout": 2, "vocab": 3}
"""Other sizes are 2, or what a row of :data:`SPECIAL` says."""
SPECIAL: dict[str, dict[str, int]] = {"rope-partial": {"d": 3}, "rope-ntk": {"d": 4, "n": 1, "m": 2}} | {
    "talking-heads": {"n": 1, "d": 1},
    "differential": {"n": 1, "d": 1},
    "differential-heads": {"n": 1, "d": 1, "H": 1, "dv": 2},
    "output-gate": {"n": 1},
    "sigmoid-attention": {"n": 1},
    "forgetting": {"d": 1},
    **{
        name: {"H": 1, "n": 2, "m": 1, "d": 1, "dv": 1, "dff": 1}
        for name in ("encoder-layer", "encoder-layer-pre-norm", "decoder-layer", "decoder-layer-pre-norm")
    },
    "next-word": {"n": 2, "vocab": 2, "dmodel": 1, "d": 1, "dv": 1},
    "latent": {"H": 1, "n": 2, "d": 1, "dc": 1},
    "latent-absorbed": {"H": 1, "n": 2, "d": 1, "dc": 1},
    "latent-projections": {"H": 1, "n": 1, "d": 1, "dc": 1, "dcq": 1, "dv": 1},
}
DEEP = frozenset({"encoder-layer", "encoder-layer-pre-norm", "decoder-layer", "decoder-layer-pre-norm"})
"""Whole layers are too long for one unrolled expression: tests/forms/test_layers.py unrolls them block by block."""
INTEGERS = {"tok": "vocab", "doc": 2, "doc_q": 2, "doc_k": 2}


@dataclass(frozen=True)
class Entry:
    """A program with its gradient, a rational number for every entry of every input, and the sizes."""

    forward: Any
    program: Any
    inputs: dict[str, Any]
    sizes: dict[str, int]

    @property
    def real(self) -> tuple[str, ...]:
        return tuple(n for n in self.forward.inputs if n not in self.forward.discrete)


def sizes_for(name: str, program: Any) -> dict[str, int]:
    """Small sizes for a program of a row."""
    return {str(x): SPECIAL.get(name, {}).get(str(x), SIZES.get(str(x), 2)) for x in program.sizes}


def numbers_for(program: Any, sizes: dict[str, int], seed: int) -> dict[str, Any]:
    """A rational (or an integer) for every entry of every input."""
    table = {x: sp.Integer(sizes[str(x)]) for x in program.sizes}
    inputs = {}
    for n in program.inputs:
        r = np.random.default_rng([seed, *map(ord, n)])
        shape = tuple(int(s.xreplace(table)) for s in program.shapes[n])
        inputs[n] = _discrete(n, shape, sizes, r) if n in program.discrete else _real(n, shape, r)
    return inputs


def entry(name: str, seed: int = 0) -> Entry:
    """A row of the catalogue with numbers."""
    program = variants.get(name).definition.program()
    whole = with_gradient(program)
    sizes = sizes_for(name, whole)
    return Entry(program, whole, numbers_for(whole, sizes, seed), sizes)


def _kind(name: str) -> str:
    return BY_LETTER[name].kind if name in BY_LETTER else "real"


def _discrete(name: str, shape: tuple[int, ...], sizes: dict[str, int], r: np.random.Generator) -> Any:
    if name == "len":
        length = sizes.get("m", sizes.get("T", 1) * sizes.get("Bc", 1)) - 1  # the slots of a paged cache
        return np.full(shape, length) if shape else sp.Integer(length)
    if name in ("prefix",):
        return np.full(shape, 2)
    below = INTEGERS.get(name, BY_LETTER[name].below if name in BY_LETTER else 2) or 2
    below = sizes.get(str(below), below if isinstance(below, int) else 2)
    count = int(np.prod(shape))
    if (_kind(name) == "integer" or name == "tok") and count <= below:
        return r.permutation(below)[:count].reshape(shape)
    found = r.integers(0, below, size=shape)
    if shape and (name in ("M", "drop") or _kind(name) == "boolean"):
        found[..., 0] = 1
    return found


def _real(name: str, shape: tuple[int, ...], r: np.random.Generator) -> Any:
    out = np.empty(shape, dtype=object)
    for at in np.ndindex(*shape):
        k = int(r.integers(1, 8))
        if name == "p" or _kind(name) in ("unit", "factor"):
            out[at] = sp.Rational(k, 8)
        elif _kind(name) == "positive":
            out[at] = sp.Rational(k + 3, 4)
        else:
            out[at] = sp.Rational(k * int(r.choice([-1, 1])), 4)
    return out if shape else out[()]
