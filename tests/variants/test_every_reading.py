"""Every row of the catalogue in every reading of numbers, and in the commands: balls enclose, bounds hold, verify passes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from symattn import arithmetic, variants
from symattn.readings import balls, rounding
from symattn.readings import mpmath as high
from symattn.readings import numpy as floats
from symattn.verify.judge import verify
from tests.support import rows
from tests.tiny import MP
from tests.variants.entries import entry


def dyadic(e: Any) -> dict[str, Any]:
    """The numbers of an entry as float32 arrays, which they fit exactly; integers stay integers."""
    found = {}
    for n, x in e.inputs.items():
        a = np.asarray(x)
        if n in e.program.discrete:
            found[n] = a.astype(np.int64)
        else:
            found[n] = np.vectorize(float, otypes=[np.float64])(a).astype(np.float32)
    return found


@pytest.mark.parametrize("name", rows())
def test_the_readings_agree(name: str) -> None:
    e = entry(name, seed=5)
    given = dyadic(e)
    exactly = {n: x if n in e.program.discrete else _fractions(x) for n, x in given.items()}
    want = high.evaluate(e.program, exactly, sizes=e.sizes, digits=60)
    enclosed = balls.evaluate(e.program, exactly, sizes=e.sizes, bits=200)
    double = floats.evaluate(e.program, given, sizes=e.sizes, dtype="float64")
    single = floats.evaluate(e.program, given, sizes=e.sizes, dtype="float32")
    bounds = rounding.evaluate(e.program, given, arithmetic.rounded_throughout("float32"), sizes=e.sizes)
    for o in e.program.outputs:
        for at in np.ndindex(*np.shape(want[o])):
            right = np.asarray(want[o], dtype=object)[at]
            right = MP.mpf(str(right))
            if not MP.isfinite(right):
                continue
            ball = np.asarray(enclosed[o], dtype=object)[at]
            mid, rad = (MP.mpf(x) for x in _ball(ball))
            assert abs(mid - right) <= rad + MP.mpf("1e-40") * (1 + abs(right)), (o, at)
            assert abs(float(np.asarray(double[o])[at]) - float(right)) <= 1e-9 * (1 + abs(float(right))), (o, at)
            error = abs(Fraction(float(np.asarray(single[o])[at])) - _fraction(right))
            bound = float(np.asarray(bounds[o].bound)[at])
            assert error <= bound, (o, at, float(error), bound)


def _fractions(x: Any) -> Any:
    out = np.empty(np.shape(x), dtype=object)
    for at in np.ndindex(*np.shape(x)):
        out[at] = Fraction(float(np.asarray(x)[at]))
    return out if out.shape else out[()]


def _fraction(x: Any) -> Fraction:
    return Fraction(MP.nstr(x, 50))


def _ball(x: Any) -> tuple[str, str]:
    if not hasattr(x, "mid"):
        return str(x), "0"
    return x.mid().str(60, radius=False), x.rad().str(20, radius=False)


@pytest.mark.parametrize("name", rows())
def test_verify_passes_the_definitions_own_reading(name: str) -> None:
    definition = variants.get(name).definition
    numbers = {p: "3" if p == definition.prefix else "1/2" for p in definition.unbound if p not in definition.arrays}
    definition = definition.replace(params={**definition.params, **numbers}) if numbers else definition
    some = "normal,large,integers,one-hot,paired,deep,abyss,peak,flat-512,poison"
    report = verify("numpy:naive", definition, dtype="float32", backward=True, only=some, max_len=4)
    wrong = [(c.case, t.name, t.verdict) for c in report.cases for t in c.tensors if t.verdict == "fail"]
    assert report.verdict in ("pass", "inconclusive") and not wrong
    # where the arithmetic promises nothing - choices between equal scores, scores of -60000 - nothing is shown
    assert all(t.comparison.unbounded for c in report.cases for t in c.tensors if t.verdict == "inconclusive")
    assert all(t.verdict == "pass" for c in report.cases if c.case == "normal" for t in c.tensors)
