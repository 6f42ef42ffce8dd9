"""A third evaluator, in NumPy over the whole index grid, for comparisons with frameworks; no code of symattn is in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp


def run(program: Any, inputs: dict[str, Any], sizes: dict[str, int]) -> dict[str, Any]:
    """Every tensor of the program in float64; every statement is evaluated on the grid of its free and bound indices."""
    env = {k: np.asarray(v, dtype=np.float64) for k, v in inputs.items()}
    number = {sp.Symbol(k, integer=True, positive=True): v for k, v in sizes.items()}
    length = lambda v: int(sp.sympify(v).xreplace({k: sp.Integer(q) for k, q in number.items()}))

    def grid(e: sp.Basic, at: dict[sp.Symbol, Any]) -> Any:
        read = {x: sp.Dummy() for x in e.atoms(sp.Indexed) if not any(x in y.args[1:] for y in e.atoms(sp.Indexed))}
        names = {x: sp.Dummy() for x in e.xreplace(read).free_symbols - set(read.values()) - set(at) - set(number)}
        values = {**at, **number}
        for x, d in read.items():
            axes = [np.asarray(grid(a, at)).astype(int) for a in x.indices]
            table = env[str(x.base.label)]
            values[d] = table[tuple(np.clip(a, 0, n - 1) for a, n in zip(axes, table.shape, strict=True))]
        for x, d in names.items():
            values[d] = env[x.name]
        plain = e.xreplace(read).xreplace(names)
        args = list(values)
        return sp.lambdify(args, plain, "numpy")(*[values[a] for a in args])

    for s in program.statements:
        free = tuple(s.target.indices) if isinstance(s.target, sp.Indexed) else ()
        order = (*free, *s.over)
        shape = tuple(length(program.dims[a]) for a in order)
        at = {a: np.arange(n).reshape([-1 if b == a else 1 for b in order]) for a, n in zip(order, shape, strict=True)}
        with np.errstate(all="ignore"):
            value = np.broadcast_to(grid(s.expr, at), shape).astype(np.float64)
            keep = np.ones(shape, bool)
            for c in s.where.args if isinstance(s.where, sp.And) else (s.where,):
                keep = keep & np.broadcast_to(grid(c, at) if c not in (sp.true, sp.false) else bool(c), shape)
        axes = tuple(range(len(free), len(order)))
        if s.over and s.reduce == "max":
            env[s.name] = np.where(keep, value, -np.inf).max(axis=axes)
        elif s.over and s.reduce == "prod":
            env[s.name] = np.where(keep, value, 1.0).prod(axis=axes)
        else:
            env[s.name] = np.where(keep, value, 0.0).sum(axis=axes)
    return env
