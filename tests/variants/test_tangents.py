"""Every row of the catalogue: tangents and Hessian-vector products, as the rule gives them and as they are shown, by differences.

Differences are central, with h = 1e-20 at 80 digits: of the outputs for the tangent, of the gradient for the Hessian-vector
product. The gradient is tested elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symattn import variants
from symattn.derivation.derived import derived
from symattn.program import Program
from symattn.readings import mpmath
from symattn.truth.derived import with_tangent
from tests.variants.entries import Entry, entry

H = sp.Rational(1, 10**20)
FAST = ("self-attention", "alibi", "softcap", "sink", "dropout", "additive-mask", "self-attention-tokens")
ROWS = [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in variants.names()]


def directions(e: Entry) -> dict[str, Any]:
    """For every real input a direction of small rationals; an entry of an additive mask that drops a key does not move."""
    r = np.random.default_rng(17)
    found = {}
    for n in e.real:
        out = np.empty(np.shape(e.inputs[n]), dtype=object)
        for at in np.ndindex(*out.shape):
            out[at] = sp.Rational(int(r.integers(1, 12)) * int(r.choice([-1, 1])), 8)
        found[n] = out if out.shape else out[()]
    return found


def evaluated(program: Program, inputs: dict[str, Any], e: Entry) -> dict[str, Any]:
    return mpmath.evaluate(program, {n: inputs[n] for n in program.inputs}, sizes=e.sizes, digits=80)


def slopes(e: Entry, moves: dict[str, Any]) -> dict[str, Any]:
    """How fast every output and every gradient moves."""
    ends = [evaluated(e.program, {**e.inputs, **{n: e.inputs[n] + s * H * v for n, v in moves.items()}}, e) for s in (1, -1)]
    return {n: (ends[0][n] - ends[1][n]) / (2 * ends[0]["O"].flat[0].context.mpf("1e-20")) for n in e.program.outputs}


def wrong(found: dict[str, Any], slope: dict[str, Any]) -> set[str]:
    """The outputs whose tangent is not the slope, to 35 digits; what is -oo at both ends does not move."""
    bad = set()
    for n, want in slope.items():
        got, want = np.ravel(np.asarray(found[n + "_t"], dtype=object)), np.ravel(np.asarray(want, dtype=object))
        want = [0 * a if b != b else b for a, b in zip(got, want, strict=True)]
        top = max(1, *map(abs, want))
        if not all(abs(a - b) <= top * a.context.mpf("1e-35") for a, b in zip(got, want, strict=True)):
            bad.add(n)
    return bad


@pytest.mark.parametrize("name", ROWS)
def test_tangents_and_hessian_vector_products_are_those_of_central_differences(name: str) -> None:
    e = entry(name, seed=2)
    moves = directions(e)
    given = {**e.inputs, **{n + "_t": v for n, v in moves.items()}}
    slope = slopes(e, moves)
    assert set(slope) >= {"O" if "O" in e.forward.outputs else "Y", *("d" + n for n in e.real)}
    raw = with_tangent(e.forward, e.real, True)
    assert not wrong(evaluated(raw, given, e), slope)
    shown = derived(e.forward, jvp=True, hvp=True)
    assert name not in FAST or all(r.status == "proved for all sizes" for r in shown.rewritings)
    assert not wrong(evaluated(shown.program, given, e), slope)


def planted(program: Program, name: str, change: Any) -> Program:
    return program.with_statements(replace(s, expr=change(s.expr)) if s.name == name else s for s in program)


@pytest.mark.parametrize(
    "tensor, change, caught",
    [
        ("R_t", lambda x: x.args[0], {"O", "L"}),  # K moves with Q held, or the other way round
        ("P_t", lambda x: -x, {"O"}),
        ("L_t", lambda x: 0 * x, {"O", "L"}),  # the softmax taken for an entrywise exponential
        ("D_t", lambda x: x.args[0], {"dQ"}),
        ("dS_t", lambda x: x.args[0], {"dQ", "dK"}),
        ("dP_t", lambda x: -x, {"dQ", "dK"}),
        ("dV_t", lambda x: 2 * x, {"dV"}),
    ],
)
def test_a_term_that_is_dropped_and_a_sign_that_is_wrong_are_caught(tensor: str, change: Any, caught: set[str]) -> None:
    e = entry("self-attention", seed=2)
    moves = directions(e)
    given = {**e.inputs, **{n + "_t": v for n, v in moves.items()}}
    program = derived(e.forward, jvp=True, hvp=True).program
    assert tensor in program
    assert wrong(evaluated(planted(program, tensor, change), given, e), slopes(e, moves)) >= caught
