"""A slow evaluator of programs in Python floats, by recursion from the entry asked for; it shares no code with symattn."""

from __future__ import annotations

import itertools
import math

import sympy as sp

FUNCTIONS = {
    "exp": math.exp,
    "log": lambda x: -math.inf if x == 0 else math.log(x),
    "tanh": math.tanh,
    "sin": math.sin,
    "cos": math.cos,
    "Abs": abs,
    "Max": max,
    "Min": min,
    "sign": lambda x: (x > 0) - (x < 0),
    "floor": math.floor,
}


def value(program, name, at, inputs, sizes):
    """The entry ``at`` of the tensor ``name``; ``inputs`` are nested lists of exact numbers."""
    known = {}

    def entry(n, where):
        if n in program:
            if (n, where) not in known:
                known[n, where] = computed(program[n], where)
            return known[n, where]
        x = inputs[n]
        for k in where:
            x = x[k]
        return float(x)

    def computed(s, where):
        total = {"sum": 0.0, "prod": 1.0, "max": -math.inf}[s.reduce if s.over else "sum"]
        point = dict(zip(s.indices, where, strict=True))
        for bound in itertools.product(*[range(length(program.dims[a])) for a in s.over]):
            here = {**point, **dict(zip(s.over, bound, strict=True))}
            if not holds(s.where, here):
                continue
            x = scalar(s.expr, here)
            total = {"sum": total + x, "prod": total * x, "max": max(total, x)}[s.reduce if s.over else "sum"]
        return total

    def length(e):
        return int(e.xreplace({a: sp.Integer(sizes[str(a)]) for a in e.free_symbols}))

    def scalar(e, here):
        if isinstance(e, sp.Indexed):
            return entry(str(e.base.label), tuple(int(scalar(a, here)) for a in e.indices))
        if isinstance(e, sp.Symbol):
            return here[e] if e in here else sizes[str(e)] if e.is_positive and e.is_integer else entry(e.name, ())
        if e.is_number:
            return math.nan if e is sp.nan else float(e)
        a = [scalar(x, here) for x in e.args]
        if isinstance(e, sp.Add):
            return sum(a)
        if isinstance(e, sp.Mul):
            return math.prod(a)
        if isinstance(e, sp.Pow):
            return a[0] ** a[1]
        return FUNCTIONS[e.func.__name__](*a)

    def holds(w, here):
        if w in (sp.true, sp.false):
            return bool(w)
        if isinstance(w, sp.And):
            return all(holds(a, here) for a in w.args)
        if isinstance(w, sp.Or):
            return any(holds(a, here) for a in w.args)
        if isinstance(w, sp.Not):
            return not holds(w.args[0], here)
        a, b = scalar(w.lhs, here), scalar(w.rhs, here)
        return {"==": a == b, "!=": a != b, "<=": a <= b, "<": a < b, ">=": a >= b, ">": a > b}[w.rel_op]

    return entry(name, at)
