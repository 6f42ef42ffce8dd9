"""A second, slow evaluator of programs that shares no code with symattn: the points of a domain one by one.

It walks SymPy trees in a private mpmath context of 80 digits, so that a central difference with h = 1e-20 is right to 35 digits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import numpy as np
import sympy as sp

MP = mpmath.MPContext()
MP.dps = 80

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": MP.exp,
    "log": lambda x: MP.mpf("-inf") if x == 0 else MP.log(x),
    "tanh": MP.tanh,
    "sin": MP.sin,
    "cos": MP.cos,
    "sigmoid": lambda x: 1 / (1 + MP.exp(-x)),
    "Abs": abs,
    "sign": MP.sign,
    "Max": max,
    "Min": min,
}


def value(e: Any, point: Mapping[sp.Symbol, int], env: Mapping[str, Any]) -> Any:
    """The value of an expression at a point of the index space; sums inside need ``env["#sizes"]``: index -> size."""
    if isinstance(e, sp.Indexed):
        return env[str(e.base.label)][tuple(int(value(a, point, env)) for a in e.indices)]
    if isinstance(e, sp.Symbol):
        return point[e] if e in point else env[e.name]
    if type(e).__name__ == "SumOver":
        body, over, where, *_ = e.args
        total = MP.mpf(0)
        for bound in itertools.product(*[range(env["#sizes"][a]) for a in over]):
            inner = {**point, **dict(zip(over, bound, strict=True))}
            if holds(where, inner, env):
                total += value(body, inner, env)
        return total
    if isinstance(e, sp.Integer):
        return int(e)
    if isinstance(e, sp.Rational):
        return MP.mpf(int(e.p)) / int(e.q)
    if e is sp.oo or e is -sp.oo:
        return MP.mpf("inf") if e is sp.oo else MP.mpf("-inf")
    a = [value(x, point, env) for x in e.args]
    if isinstance(e, sp.Add):
        return sum(a[1:], a[0])
    if isinstance(e, sp.Mul):
        return math.prod(a[1:], start=a[0])
    if isinstance(e, sp.Pow):
        if e.exp.is_Integer and e.exp >= 0:
            return a[0] ** a[1]
        return 1 / MP.mpf(a[0]) ** -a[1] if e.exp.is_Integer else MP.mpf(a[0]) ** a[1]
    if isinstance(e, sp.floor):
        return math.floor(a[0])
    if isinstance(e, sp.Mod):
        return a[0] % a[1]
    if e.func.__name__ in FUNCTIONS:
        return FUNCTIONS[e.func.__name__](*a)
    if e.is_number:
        return MP.mpf(sp.N(e, 90))
    raise TypeError(f"no value for {e!r}")


def holds(w: Any, point: Mapping[sp.Symbol, int], env: Mapping[str, Any]) -> bool:
    if w in (sp.true, sp.false):
        return bool(w)
    if isinstance(w, (sp.And, sp.Or)):
        return (all if isinstance(w, sp.And) else any)(holds(a, point, env) for a in w.args)
    if isinstance(w, sp.Not):
        return not holds(w.args[0], point, env)
    a, b = value(w.lhs, point, env), value(w.rhs, point, env)
    return {"==": a == b, "!=": a != b, "<=": a <= b, "<": a < b, ">=": a >= b, ">": a > b}[w.rel_op]


def run(program: Any, inputs: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """Every tensor of the program, as object arrays."""
    env = dict(inputs)
    symbols = {sp.Symbol(k, integer=True, positive=True): v for k, v in sizes.items()}
    size = lambda a: int(sp.sympify(program.dims[a]).xreplace({k: sp.Integer(v) for k, v in symbols.items()}))
    for s in program.statements:
        free = tuple(s.target.indices) if isinstance(s.target, sp.Indexed) else ()
        out = np.empty([size(a) for a in free], dtype=object)
        for at in itertools.product(*[range(size(a)) for a in free]):
            found = []
            for bound in itertools.product(*[range(size(a)) for a in s.over]):
                point = symbols | dict(zip((*free, *s.over), (*at, *bound), strict=True))
                if holds(s.where, point, env):
                    found.append(value(s.expr, point, env))
            if not s.over or s.reduce == "sum":
                out[at] = sum(found, MP.mpf(0))
            elif s.reduce == "max":
                out[at] = max(found, default=MP.mpf("-inf"))
            else:
                out[at] = math.prod(found, start=MP.mpf(1))
        env[s.name] = out if free else out[()]
    return env


def numbers(rng: np.random.Generator, *shape: int) -> Any:
    """Random multiples of 1/64 in (-2, 2)."""
    out = np.empty(shape, dtype=object)
    for at in np.ndindex(*shape):
        out[at] = MP.mpf(int(rng.integers(-127, 128))) / 64
    return out if shape else out[()]
