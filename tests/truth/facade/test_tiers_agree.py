"""All tiers enclose the same values: adversarial inputs of every dtype, each tier against balls of 200 more bits, and mpmath."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from symattn import formats, variants
from symattn.definition import Definition
from symattn.errors import UndecidedError
from symattn.truth import tiers, truth
from symattn.truth.derived import with_gradient
from symattn.truth.tiers import Found
from symattn.truth.values import Floats
from tests.truth.limbs.enclosing import as_floats
from tests.variants.entries import numbers_for, sizes_for

N, M, D, E = 3, 4, 2, 2


def drawn(dtype: str = "float32", seed: int = 0) -> dict[str, Any]:
    r = np.random.default_rng(seed)
    shapes = {"Q": (N, D), "K": (M, D), "V": (M, E), "dO": (N, E), "dL": (N,)}
    return {k: r.normal(size=s).astype(formats.get(dtype).dtype) for k, s in shapes.items()}


def scaled(**factors: float) -> dict[str, Any]:
    found = drawn()
    return {k: (v * np.float32(factors.get(k, 1))).astype(np.float32) for k, v in found.items()}


def cancelling() -> dict[str, Any]:
    found = drawn("float64")
    found["V"][:2] = [[2.0**60, 1], [-(2.0**60), 1]]
    found["K"][1] = found["K"][0]
    return found


def one_hot() -> dict[str, Any]:
    found = drawn()
    return found | {"K": np.float32([[300, 0], [0, 300], [-300, 0], [0, -300]]), "Q": np.float32([[300, 0], [0, 1], [0, 0]])}


INPUTS = {
    **{dtype: drawn(dtype) for dtype in ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn")},
    "scores of 6e4": scaled(Q=300, K=200),
    "scores near -490": drawn()
    | {"Q": np.float32([[1, 0], [0, 1], [1, 1]]), "K": np.float32([[-693, 0], [0, -690], [0, 0], [1, 1]])},
    "subnormal": scaled(V=1e-44, dO=1e-42, Q=1e-30),
    "large and small": scaled(Q=2.0**60, K=2.0**-60, V=2.0**60, dO=2.0**-60),
    "one hot": one_hot(),
    "cancellation": cancelling(),
    "zeros": {k: np.zeros_like(v) for k, v in drawn().items()},
}
DEFINITIONS = {
    "full": Definition(),
    "causal": Definition(causal="top-left"),
    "empty rows": Definition(mask="j < i"),
    "bias": Definition(score="s - (i - j)/8"),
    "capped": Definition(softcap=5),
}


def program_of(name: str) -> Any:
    return with_gradient(DEFINITIONS[name].program())


def sides(found: Any, strong: Any) -> list[str]:
    """The outputs some of whose elements do not hold what a stronger enclosure holds."""
    wrong = []
    for name, e in found.items():
        flat = zip(e.mid.ravel(), e.rad.ravel(), strong[name].mid.ravel(), strong[name].rad.ravel(), strict=True)
        for a, r, b, s in flat:
            if isinstance(r, float) or isinstance(s, float):
                continue  # nothing is known, which is no claim
            special = isinstance(a, float) or isinstance(b, float)
            if (a != b and not (a != a and b != b)) if special else abs(a - b) > r + s:
                wrong.append(name)
                break
    return wrong


FAST = ("full", "causal")


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("definition", [d if d in FAST else pytest.param(d, marks=pytest.mark.slow) for d in DEFINITIONS])
def test_every_tier_holds_what_balls_of_many_bits_hold(definition, inputs):
    program, given = program_of(definition), INPUTS[inputs]
    options: dict[str, Any] = {"sizes": {"n": N, "m": M, "d": D, "dv": E}}
    strong = truth(program, given, bits=500, tier="balls", **options)
    asked = [{"decide": "float32"}, {"decide": "bfloat16", "assume": True}, {"digits": 30}, {"digits": 30, "tier": "balls"}]
    asked += [{"digits": 30, "tier": "limbs"}] if definition != "capped" else []
    for question in asked:
        try:
            found = truth(program, given, **question, **options)
        except UndecidedError as why:
            assert question.get("tier") == "limbs", why  # numbers of exponents too far apart
            continue
        assert not sides(found, strong), question
        for e in found.values():
            exact = e.status == "exact"
            assert all(r == 0 for r in e.rad[exact])
            if "digits" in question:
                sure = (e.status == "enclosed").ravel()
                assert all(2 * r * 10**30 <= abs(m) for m, r in zip(e.mid.ravel()[sure], e.rad.ravel()[sure], strict=True))


@pytest.mark.parametrize("name", ["learned-positions", "sinusoidal-positions"])
@pytest.mark.parametrize("question", [{"decide": "float32"}, {"digits": 30}, {"digits": 30, "tier": "limbs"}], ids=str)
def test_programs_that_start_from_tokens(name, question):
    """Each tier takes them, or says why not."""
    program = with_gradient(variants.get(name).definition.program())
    sizes = sizes_for(name, program)
    given = {n: as_floats(x, n in program.discrete) for n, x in numbers_for(program, sizes, 3).items()}
    try:
        found = truth(program, given, sizes=sizes, **question)
    except UndecidedError as why:
        assert question.get("tier") == "limbs", why
        return
    assert not sides(found, truth(program, given, bits=500, tier="balls", sizes=sizes))


@pytest.mark.parametrize("tier", ["double", "limbs", "balls"])
def test_a_planted_narrow_radius_shows(tier, monkeypatch):
    """Values that are a little off what their radius says."""
    program, given = program_of("full"), INPUTS["float64"]
    row = tiers.tier(tier)

    def narrow(job: Any) -> Any:
        found = row.evaluate(job)
        return {n: Found(_shifted(f.values)) for n, f in found.items()}

    monkeypatch.setattr(tiers, "TIERS", (replace(row, evaluate=narrow),))
    question = {"decide": "bfloat16"} if tier == "double" else {"digits": 30}
    found = truth(program, given, tier=tier, **question)
    monkeypatch.undo()
    assert sides(found, truth(program, given, bits=500, tier="balls"))


def _shifted(values: Any) -> Any:
    """Midpoints moved by twice the radius."""
    from symattn.truth.values import Objects, object_array

    mids, rads = values.exact()
    moved = [m if isinstance(r, float) or isinstance(m, float) else m + 2 * r for m, r in zip(mids, rads, strict=True)]
    return Objects(object_array(moved, values.shape), object_array(rads, values.shape))


def witness(given: dict[str, Any], digits: int) -> dict[str, Any]:
    """Output and gradients of softmax attention by mpmath, written down directly."""
    mp = mpmath.mp.clone()
    mp.dps = digits
    q, k, v, g, h = (
        [[mp.mpf(float(x)) for x in row] for row in np.atleast_2d(given[n].astype(np.float64))]
        for n in ("Q", "K", "V", "dO", "dL")
    )
    scale = 1 / mp.sqrt(D)
    s = [[mp.fdot(a, b) * scale for b in k] for a in q]
    total = [mp.fsum(map(mp.exp, row)) for row in s]
    p = [[mp.exp(x) / t for x in row] for row, t in zip(s, total, strict=True)]
    out = [[mp.fsum(w * v[j][e] for j, w in enumerate(row)) for e in range(E)] for row in p]
    ds = []
    for i in range(N):
        dp = [mp.fdot(g[i], v[j]) for j in range(M)]
        d = mp.fdot(p[i], dp)
        ds.append([p[i][j] * (dp[j] - d + h[0][i]) for j in range(M)])
    return {
        "O": out,
        "L": [[mp.log(t) for t in total]],
        "dQ": [[mp.fsum(ds[i][j] * k[j][c] for j in range(M)) * scale for c in range(D)] for i in range(N)],
        "dK": [[mp.fsum(ds[i][j] * q[i][c] for i in range(N)) * scale for c in range(D)] for j in range(M)],
        "dV": [[mp.fsum(p[i][j] * g[i][e] for i in range(N)) for e in range(E)] for j in range(M)],
    }


@pytest.mark.parametrize("inputs", ["float32", "float16", "scores near -490"])
@pytest.mark.parametrize("question", [{"decide": "float32"}, {"digits": 40}, {"digits": 40, "tier": "limbs"}], ids=str)
def test_mpmath_agrees(inputs, question):
    given = INPUTS[inputs]
    found = truth(program_of("full"), given, **question)
    want = witness(given, 120)
    for name, e in found.items():
        flat = [x for row in want[name] for x in row]
        for m, r, w in zip(e.mid.ravel(), e.rad.ravel(), flat, strict=True):
            exact = Fraction(*map(int, _ratio(w)))
            assert abs(m - exact) <= r + Fraction(1, 10**100) * max(1, abs(exact)), name


def _ratio(x: Any) -> tuple[int, int]:
    sign, mantissa, e, _ = x._mpf_
    k = -int(mantissa) if sign else int(mantissa)
    return (k << e, 1) if e >= 0 else (k, 1 << -e)


def test_nothing_known_is_no_claim():
    nothing = Floats(np.array([math.nan]), np.array([math.inf]))
    assert nothing.exact() == ([0], [math.inf])
