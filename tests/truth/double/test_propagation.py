"""Errors that come in with the inputs, far larger than roundings: the results hold the values of the exact inputs.

A rule that loses a term hides behind the slack of the rounding bounds; here the errors that are propagated are all there is.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from symattn import variants
from symattn.definition import Definition
from symattn.readings import balls
from symattn.truth.double import sums
from symattn.truth.double.approx import Approx, exactly
from symattn.verify.programs import presented
from tests.support import rows
from tests.truth.double.enclosing import encloses
from tests.variants.entries import numbers_for, sizes_for

module = importlib.import_module("symattn.truth.double.evaluate")  # the package's name for it is the function


def coarse(bits: int, discrete: frozenset[str], seed: int = 0) -> Any:
    """An intake that rounds numbers to a few bits, and says by how much."""

    def entered(a: np.ndarray) -> Approx:
        v = np.asarray(a)
        if v.dtype.kind in "iub":
            return exactly(v.astype(np.float64))
        v = np.vectorize(float, otypes=[np.float64])(v)
        m, e = np.frexp(v)
        near = np.ldexp(np.rint(np.ldexp(m, bits)), e - bits)
        return Approx(near, 0.0, np.abs(near - v) * (1 + 2.0**-50), (), bool((near >= 0).all() and (v >= 0).all()))

    return entered


def spoilt(program: Any, inputs: dict[str, Any], sizes: Any, points: int, bits: int) -> tuple[list[Any], float, float]:
    """Elements that do not hold the value, the share of known ones, and the largest error in units of its radius."""
    right = balls.evaluate(program, inputs, sizes=sizes, bits=200)
    found = module.evaluate(program, inputs, sizes=sizes, points=points)
    wrong, known, total, top = [], 0, 0, 0.0
    for name in program.outputs:
        rad = found[name].rad
        for at in np.ndindex(*rad.shape):
            v, r = float(found[name].mid[at]), float(rad[at])
            total += 1
            known += np.isfinite(r)
            if not encloses(v, r, np.asarray(right[name], dtype=object)[at]):
                wrong.append((name, at, v, r))
            elif 0 < r < np.inf and hasattr(right[name][at], "mid"):
                top = max(top, abs(v - float(right[name][at].mid())) / r)
    return wrong, known / total, top


def with_gradient(program: Any) -> Any:
    found = presented(program).program
    return found.with_statements(found.statements, dict.fromkeys((*program.outputs, *found.outputs)))


@pytest.mark.parametrize("name", rows())
def test_rows_of_the_catalogue(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = with_gradient(variants.get(name).definition.program())
    sizes = sizes_for(name, program)
    inputs = {
        n: x if n in program.discrete else np.vectorize(float, otypes=[np.float64])(np.asarray(x)) / 3
        for n, x in numbers_for(program, sizes, 6).items()
    }
    monkeypatch.setattr(module, "entered", coarse(12, program.discrete))
    wrong, _, top = spoilt(program, inputs, sizes, 1 + len(name) % 2 * 1000, 12)
    assert not wrong
    assert top <= 1


def test_a_term_that_is_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    program = with_gradient(Definition().program())
    r = np.random.default_rng(2)
    inputs = {k: r.standard_normal((5, 3)) for k in ("Q", "K", "V", "dO")} | {"dL": np.zeros(5)}
    monkeypatch.setattr(module, "entered", coarse(12, program.discrete))
    assert not spoilt(program, inputs, None, 1 << 20, 12)[0]
    monkeypatch.setattr(sums, "_terms", lambda a: [])
    assert spoilt(program, inputs, None, 1 << 20, 12)[0]


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("points", [1 << 20, 4000])
def test_many_elements(points: int, aligned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coefficients of rows, weights and norms: with ``aligned`` all errors have one sign and all factors too."""
    program = with_gradient(Definition(causal=None if aligned else "top-left").program())
    r = np.random.default_rng(1)
    n, m, d = 95, 110, 2
    shapes = {"Q": (n, d), "K": (m, d), "V": (m, d), "dO": (n, d), "dL": (n,)}
    inputs = {k: r.standard_normal(s) for k, s in shapes.items()}
    if aligned:
        inputs = {k: np.full(s, 1 + 2.0**-13) for k, s in shapes.items()}
    monkeypatch.setattr(module, "entered", coarse(12, program.discrete))
    wrong, known, top = spoilt(program, inputs, None, points, 12)
    assert not wrong and known == 1
    assert top > (0.3 if aligned else 0.01)
