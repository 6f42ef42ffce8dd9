"""The claim that a list of statements, an algorithm's, gives what a definition says: its proof, and exact numbers against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from symattn.adjoint import adjoint
from symattn.algorithms import gradient_by_tiles, plain
from symattn.definition import Definition
from symattn.errors import SymattnError
from symattn.indexed import size
from symattn.program import Program
from symattn.readings import exact
from symattn.theorems.algorithms import prove_backward, prove_forward
from symattn.theorems.claim import ALL, OPEN, PROVED, REFUTED, Counterexample, Decision
from symattn.theorems.examples import difference
from symattn.theorems.pages import looked_up

__all__ = ["Runs"]

BLOCK = 2
"""The size of tiles in a search for a counterexample: small enough for several, the last one partial."""
SIZES = {"n": 3, "m": 5, "T": 2, "Bc": 2, "pages": 3, "G": 2, "Hkv": 2, "H": 2, "dmodel": 2, "vocab": 3}
"""Sizes of the search; others are 1."""
KINDS = ("rising", "falling parameters", "mixed")
_CYCLE = (1, -1, 2, 0, 3, -2, 1, 2, -1)


@dataclass(frozen=True)
class Runs:
    """An algorithm has the outputs of its definition, or its gradients.

    Parameters
    ----------
    definition
        With an algorithm.
    gradient
        Whether the gradients are meant.
    program
        A list to be judged in place of the algorithm's own.
    text
        The claim in one line.

    >>> Runs(Definition(algorithm="online")).decide().verdict
    'proved'
    """

    definition: Definition
    gradient: bool = False
    program: Program | None = None
    text: str = ""

    def decide(self) -> Decision:
        """Prove it, or find exact numbers for which it fails."""
        found = (prove_backward if self.gradient else prove_forward)(self.definition, self.program)
        if found.proved:
            return Decision(PROVED, found.method, ALL, found.side)
        shown = self.counterexample()
        if shown is not None:
            return Decision(REFUTED, "exact values", counterexample=shown)
        return Decision(OPEN, "not proved: " + "; ".join(p.text for p in found.failed))

    def counterexample(self) -> Counterexample | None:
        """Exact numbers for which an output differs, or a gradient."""
        own, reference = self._lists()
        for kind in KINDS:
            inputs, sizes = _numbers(own, reference, kind)
            try:
                left, right = (_evaluated(p, inputs, sizes) for p in (own, reference))
            except SymattnError:
                continue
            for o in reference.outputs:
                found = difference(left[o], right[o]) if o in own else None
                if found is not None:
                    at, x, y = found
                    what = o + (f"[{', '.join(map(str, at))}]" if at else "")
                    given = {n: np.asarray(v).tolist() for n, v in inputs.items()}
                    return Counterexample(given, sizes, what, x, y, self.text)
        return None

    def _lists(self) -> tuple[Program, Program]:
        """The list that is judged and that of the definition, for tiles of a number of keys."""
        open_ = self.definition.algorithm not in ("online", "paged") and self.definition.block is None
        d = self.definition.replace(lse=True, **({"block": BLOCK} if open_ else {}))
        if d.algorithm == "paged":
            return (d.program() if self.program is None else self.program), looked_up(d)
        program = plain(d).program()
        if self.gradient:
            return (gradient_by_tiles(d).program if self.program is None else self.program), adjoint(program)
        return (d.program() if self.program is None else self.program), program


def _evaluated(p: Program, inputs: Mapping[str, Any], sizes: Mapping[str, int]) -> Mapping[str, Any]:
    known = {k: v for k, v in sizes.items() if k in map(str, p.sizes)}
    return exact.evaluate(p, {n: inputs[n] for n in p.inputs}, sizes=known)


def _numbers(own: Program, reference: Program, kind: str) -> tuple[dict[str, Any], dict[str, int]]:
    """Inputs of both lists. Rising: later keys have larger scores, so that every tile brings a new maximum."""
    sizes = {str(a): SIZES.get(str(a), 1) for p in (reference, own) for a in p.sizes}
    at = {size(k): sp.Integer(v) for k, v in sizes.items()}
    inputs: dict[str, Any] = {}
    for p in (own, reference):
        for k, n in enumerate(p.inputs):
            if n not in inputs:
                shape = tuple(int(v.xreplace(at)) for v in p.shapes[n])
                out = np.empty(shape, dtype=object)
                for place in np.ndindex(*shape):
                    out[place] = sp.Integer(_number(n, place, k, n in p.discrete, kind, sizes))
                inputs[n] = out if shape else out[()]
    return inputs, sizes


def _number(name: str, place: tuple[int, ...], salt: int, discrete: bool, kind: str, sizes: Mapping[str, int]) -> int:
    if name == "page":
        return (sizes["pages"] - 1 - place[-1]) % sizes["pages"]
    if name == "len":
        return sizes.get("m", sizes.get("T", 1) * sizes.get("Bc", 1)) - 1
    if discrete:
        return int(sum(place) % 3 != 2)
    if kind == "falling parameters" and (not place or name == "sink"):
        return -1
    if name in ("Q", "K", "Kc") and kind != "mixed":
        return 1 if name == "Q" else sum(place[:-1])
    return _CYCLE[(sum((k + 1) * x for k, x in enumerate(place)) + salt) % len(_CYCLE)]
