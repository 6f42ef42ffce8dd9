"""Programs unrolled into SymPy expressions in the entries of their inputs, for SymPy itself to differentiate; no code of symattn.

Conditions that read tensors are decided at a point: a number for every entry.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import mpmath
import numpy as np
import sympy as sp

MP = mpmath.MPContext()
MP.dps = 320


def symbols(name: str, shape: tuple[int, ...]) -> Any:
    """An object array of real symbols, one an entry; a symbol for a scalar."""
    out = np.empty(shape, dtype=object)
    for at in np.ndindex(*shape):
        out[at] = sp.Symbol("_".join([name, *map(str, at)]), real=True)
    return out if shape else out[()]


def _at(e: Any, point: Mapping[Any, Any], env: Mapping[str, Any], zero: Mapping[str, int]) -> Any:
    """An expression at a point of the index space."""
    if isinstance(e, sp.Indexed):
        name, at = str(e.base.label), tuple(int(_number(_at(a, point, env, zero), env)) for a in e.indices)
        array = env[name]
        if name in zero and not 0 <= at[zero[name]] < array.shape[zero[name]]:
            return sp.S.Zero
        assert all(0 <= a < n for a, n in zip(at, array.shape, strict=True)), f"{e} looks outside at {point}"
        return array[at]
    if isinstance(e, sp.Symbol):
        value = point[e] if e in point else env[e.name]
        return value[()] if isinstance(value, np.ndarray) else value  # a scalar of the program
    return e.func(*[_at(a, point, env, zero) for a in e.args]) if e.args else e


def _number(e: Any, env: Mapping[str, Any]) -> Any:
    return sp.sympify(e).xreplace(env["#point"])


def _holds(w: Any, point: Mapping[Any, Any], env: Mapping[str, Any], zero: Mapping[str, int]) -> bool:
    if w in (sp.true, sp.false):
        return bool(w)
    if isinstance(w, (sp.And, sp.Or)):
        return (all if isinstance(w, sp.And) else any)(_holds(a, point, env, zero) for a in w.args)
    if isinstance(w, sp.Not):
        return not _holds(w.args[0], point, env, zero)
    a, b = (_number(_at(x, point, env, zero), env) for x in (w.lhs, w.rhs))
    sign = sp.N(a - b, 40)
    return {"==": sign == 0, "!=": sign != 0, "<=": sign <= 0, "<": sign < 0, ">=": sign >= 0, ">": sign > 0}[w.rel_op]


def _steps(program: Any, length: Any) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Every statement with every free point, scans step by step."""
    for scan, group in itertools.groupby(program.statements, key=lambda s: s.scan):
        members = list(group)
        if scan is None:
            for s in members:
                yield from ((s, at) for at in itertools.product(*[range(length(a)) for a in _free(s)]))
            continue
        order = range(length(scan.index))
        for t in order if scan.step > 0 else reversed(order):
            for s in members:
                for at in itertools.product(*[[t] if a == scan.index else range(length(a)) for a in _free(s)]):
                    yield s, at


def _free(s: Any) -> tuple[Any, ...]:
    return tuple(s.target.indices) if isinstance(s.target, sp.Indexed) else ()


def run(program: Any, inputs: Mapping[str, Any], point: Mapping[Any, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """Every tensor of the program as SymPy expressions; ``range_only`` statements are 0 (they cancel)."""
    numbers = {sp.Symbol(k, integer=True, positive=True): sp.Integer(v) for k, v in sizes.items()}
    length = lambda a: int(sp.sympify(program.dims[a]).xreplace(numbers))
    env: dict[str, Any] = {**inputs, "#point": point}
    zero = {s.name: _free(s).index(s.scan.index) for s in program.statements if s.scan is not None}
    for s in program.statements:
        env[s.name] = np.full([length(a) for a in _free(s)], sp.S.Zero, dtype=object)
    for s, at in _steps(program, length):
        if s.range_only:
            continue
        found = []
        for bound in itertools.product(*[range(length(a)) for a in s.over]):
            here = numbers | dict(zip((*_free(s), *s.over), map(sp.Integer, (*at, *bound)), strict=True))
            if _holds(s.where, here, env, zero):
                found.append(_at(s.expr, here, env, zero))
        assert not s.over or s.reduce != "max", f"{s.name} is a maximum whose value matters"
        env[s.name][at] = (sp.Mul if s.over and s.reduce == "prod" else sp.Add)(*found)
    return {k: (v[()] if isinstance(v, np.ndarray) and v.ndim == 0 else v) for k, v in env.items() if k != "#point"}


def is_zero(x: Any) -> bool:
    """Whether a number made of rationals, roots, exponentials and other functions is 0: by algebra, or to 250 digits."""
    x = sp.sympify(x).replace(lambda e: e.func.__name__ == "sigmoid", lambda e: 1 / (1 + sp.exp(-e.args[0])))
    if x == 0:
        return True
    if abs(MP.mpf(_digits(x, 30))) > MP.mpf("1e-20"):
        return False
    numerator = sp.fraction(sp.together(x.xreplace(_exponentials(x))))[0]
    if sp.count_ops(numerator) < 1500 and sp.expand(numerator) == 0:
        return True
    return bool(abs(_digits(x, 300)) < MP.mpf("1e-250"))


def _digits(x: Any, digits: int) -> Any:
    """The value of an expression in numbers, computed at a few digits more."""
    context = mpmath.MPContext()
    context.dps = digits + 20
    names = ("exp", "log", "tanh", "sin", "cos", "sqrt", "erf", "sinh", "cosh")
    table = {n: getattr(context, n) for n in names}

    def value(e: Any) -> Any:
        if e.is_Rational:
            return context.mpf(int(e.p)) / int(e.q)
        if e.is_Pow:
            return context.power(value(e.base), value(e.exp))
        args = [value(a) for a in e.args]
        if e.is_Add:
            return context.fsum(args)
        if e.is_Mul:
            return context.fprod(args)
        return context.pi if e is sp.pi else table[e.func.__name__](*args)

    return value(x)


def _exponentials(x: Any) -> dict[Any, Any]:
    """Each exp as a monomial in symbols: exp(a/6 + b sqrt(2)/3) is u^a v^(2 b) with u = exp(1/6), v = exp(sqrt(2)/6)."""
    parts = {f: sp.expand(f.args[0]).as_coefficients_dict() for f in x.atoms(sp.exp)}
    common: dict[Any, int] = {}
    for terms in parts.values():
        for base, k in terms.items():
            common[base] = int(sp.ilcm(common.get(base, 1), sp.Rational(k).q))
    symbols_of = {base: sp.Dummy("u", positive=True) for base in common}
    return {f: sp.Mul(*[symbols_of[b] ** int(k * common[b]) for b, k in terms.items()]) for f, terms in parts.items()}
