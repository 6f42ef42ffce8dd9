"""How the tensors of an input move with what every kernel may have a little of: a scale that is off, a key that is lost.

Derivatives are differences of float64 evaluations of the definition, rewritten as the catalogue of faults rewrites it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import sympy as sp

from symattn.errors import SymattnError
from symattn.intake import Array
from symattn.readings import numpy as values
from symattn.verify.faults.fault import Alternative, Situation
from symattn.verify.faults.predict import predictions
from symattn.verify.faults.scaling import rescaled
from symattn.verify.faults.structure import I, J, also, softmax_of
from symattn.verify.observed import Observed

__all__ = ["STEP", "by_scale", "lost", "moved", "scaled", "weights"]

STEP = 2.0**-20
"""Of differences: their own error is below 2^-20 of what they are compared with."""


def scaled(s: Situation, error: float) -> Alternative | None:
    """All scores times 1 + error; None where the definition has no scores with a scale."""
    own = s.program["scale"].expr if "scale" in s.program else sp.Integer(1)
    return next(iter(rescaled(s, own * (1 + sp.Rational(error)))), None)


def moved(o: Observed, a: Alternative) -> dict[str, Array]:
    """What the tensors of a case become."""
    return {
        n: p.value
        for gradient in (False, True)
        if o.part(gradient)
        for n, p in predictions(o.situation, a, forward=not gradient, backward=gradient).items()
        if n in o.judged
    }


def by_scale(o: Observed) -> dict[str, Array]:
    """The derivative of every tensor by the relative error of the scale; empty where there is no scale."""
    key = ("by_scale",)
    if key not in o.situation.kept:
        a = scaled(o.situation, STEP)
        try:
            found = moved(o, a) if a is not None else {}
        except SymattnError:
            found = {}
        with np.errstate(all="ignore"):
            o.situation.kept[key] = {n: (x - o.base[n].value) / STEP for n, x in found.items() if n in o.base}
    known: dict[str, Array] = o.situation.kept[key]
    return known


def lost(i: int, j: int) -> Alternative:
    """Query i does not see key j."""
    return Alternative(edit=also(sp.Or(sp.Ne(I, i), sp.Ne(J, j))))


def weights(s: Situation) -> Array | None:
    """The weights P (B, H, n, m) of the definition's softmax, 0 where a key is not seen; None where it has no softmax."""
    found = softmax_of(s.program)
    if found is None or s.definition.form != "softmax":
        return None
    given: Mapping[str, object] = {n: s.bound.inputs[n] for n in s.program.inputs}
    with np.errstate(all="ignore"):
        whole = values.evaluate(s.program, given, sizes=dict(s.bound.sizes), dtype="float64")
        p = whole[found.weight.name]
    shape = (*_shape(s), s.sizes["N"], s.sizes["M"])
    return np.where(np.isfinite(p), p, 0.0).reshape(shape) if p.size == np.prod(shape) else None


def _shape(s: Situation) -> tuple[int, int]:
    return s.sizes["B"], s.sizes["H"]
