"""Kernels in loops run number by number in Python floats: a second reading of what the pseudo-code says, with none of its code.

Variables are overwritten as they would be on a machine; what is read from memory in a loop must have been loaded there.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import sympy as sp


def run(
    kernel: Any, arrays: dict[str, np.ndarray], sizes: dict[str, int], meter: list[int] | None = None
) -> dict[str, np.ndarray]:
    """The tensors that a kernel gives, as arrays; a meter takes how many numbers go between memory and the chip."""
    machine = _Machine(kernel, arrays, sizes)
    machine.body(kernel.body, {}, set())
    if meter is not None:
        meter.append(machine.moved)
    return {name: machine.array(name) for name in kernel.gives}


def _flat(nodes: Any) -> Any:
    for n in nodes:
        yield n
        yield from _flat(getattr(n, "body", ()))


def _looped(nodes: Any) -> set[Any]:
    return {n.index for n in _flat(nodes) if type(n).__name__ == "For"}


class _Machine:
    def __init__(self, kernel: Any, arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> None:
        self.kernel, self.arrays, self.sizes = kernel, arrays, sizes
        self.values: dict[tuple[str, tuple[int, ...]], float] = {}
        self.moved = 0
        loops = _looped(kernel.body)
        targets = [n.target for n in _flat(kernel.body) if type(n).__name__ == "Assign"]
        kept = {str(x.base) for x in targets if isinstance(x, sp.Indexed) and loops & set(x.indices)}
        self.memory = kept | set(kernel.gives)  # a variable that is kept for all turns of a loop lies in memory

    def array(self, name: str) -> np.ndarray:
        found = {at: v for (n, at), v in self.values.items() if n == name}
        shape = tuple(max(at[k] for at in found) + 1 for k in range(len(next(iter(found)))))
        out = np.full(shape, np.nan)
        for at, v in found.items():
            out[at] = v
        return out

    def body(self, nodes: Any, at: dict[str, int], loaded: set[Any]) -> None:
        mine = set(loaded)
        for n in nodes:
            kind = type(n).__name__
            if kind == "For":
                for value in range(int(self.number(n.count, at))):
                    self.body(n.body, {**at, n.index.name: value}, mine)
            elif kind == "Load":
                mine |= set(n.reads)
                self.moved += sum(self.places(x, at) for x in n.reads)
            elif kind == "Start":
                for point in self.points(self.symbols(n.target), at):
                    self.write(n.target, point, self.number(n.value, point))
            else:
                self.check(n, at, mine)
                self.meter(n, at)
                self.assign(n, at)

    def places(self, x: Any, at: dict[str, int]) -> int:
        """How many places of memory a read is of; places behind the end of an array do not exist."""
        axes = sorted({a for i in getattr(x, "indices", ()) for a in i.free_symbols if a in self.kernel.dims}, key=str)
        return len({self.place(x, p)[1] for p in self.points(axes, at)})

    def meter(self, n: Any, at: dict[str, int]) -> None:
        """What an assignment writes to memory, and reads of what is kept there."""
        name = self.place(n.target, {**at, **dict.fromkeys((a.name for a in n.free), 0)})[0]
        inner = {x for x in n.expr.atoms(sp.Indexed) if str(x.base) in self.memory or (not at and str(x.base) in self.arrays)}
        if name in self.memory:
            own = n.onto or any(str(x.base) == name for x in inner)
            self.moved += self.places(n.target, at) * (2 if own else 1)
        self.moved += sum(self.places(x, at) for x in inner if str(x.base) != name)

    def symbols(self, target: Any) -> list[Any]:
        return list(target.indices) if isinstance(target, sp.Indexed) else []

    def points(self, symbols: Any, at: dict[str, int]) -> list[dict[str, int]]:
        free = [a for a in symbols if a.name not in at]
        ranges = [range(int(self.number(self.kernel.dims[a], at))) for a in free]
        return [{**at, **dict(zip((a.name for a in free), p, strict=True))} for p in itertools.product(*ranges)]

    def check(self, n: Any, at: dict[str, int], loaded: set[Any]) -> None:
        for x in n.expr.atoms(sp.Indexed):
            if str(x.base) in self.arrays and at and any(a.name in at for i in x.indices for a in i.free_symbols):
                assert x in loaded, f"{x} is read in {sorted(at)} and was not loaded"

    def assign(self, n: Any, at: dict[str, int]) -> None:
        """All right hand sides first: an assignment reads what was there before it."""
        made = []
        for point in self.points(n.free, at):
            if n.over:
                terms = [self.number(n.expr, q) for q in self.points(n.over, point) if self.holds(n.where, q)]
                value = max(terms, default=-math.inf) if n.reduce == "max" else math.fsum(terms)
            elif self.holds(n.where, point):
                value = self.number(n.expr, point)
            elif n.onto:
                continue
            else:
                if not self.inside(n.target, point):
                    continue
                value = 0.0
            if n.onto:
                before = self.read(n.target, point)
                value = max(before, value) if n.reduce == "max" else before + value
            made.append((n.target, point, value))
        for target, point, value in made:
            self.write(target, point, value)

    def inside(self, target: Any, point: dict[str, int]) -> bool:
        """Whether a place in memory exists: the last tile may be partial, and nothing is written outside of it."""
        return all(isinstance(i, sp.Symbol) for i in (target.indices if isinstance(target, sp.Indexed) else ()))

    def place(self, x: Any, at: dict[str, int]) -> tuple[str, tuple[int, ...]]:
        if isinstance(x, sp.Indexed):
            return str(x.base), tuple(int(self.number(i, at)) for i in x.indices)
        return str(x), ()

    def write(self, x: Any, at: dict[str, int], value: float) -> None:
        self.values[self.place(x, at)] = value

    def read(self, x: Any, at: dict[str, int]) -> float:
        name, where = self.place(x, at)
        if (name, where) in self.values:
            return self.values[name, where]
        return float(self.arrays[name][where])

    def holds(self, c: Any, at: dict[str, int]) -> bool:
        if c in (sp.true, sp.false):
            return bool(c)
        if isinstance(c, sp.And):
            plain_first = sorted(c.args, key=lambda q: len(q.atoms(sp.Indexed)) + sum(not a.is_integer for a in q.free_symbols))
            return all(self.holds(q, at) for q in plain_first)
        if isinstance(c, sp.Or):
            return any(self.holds(q, at) for q in c.args)
        a, b = self.number(c.lhs, at), self.number(c.rhs, at)
        return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[c.rel_op]

    def number(self, e: Any, at: dict[str, int]) -> float:
        if isinstance(e, sp.Indexed):
            return self.read(e, at)
        if isinstance(e, sp.Symbol):
            if e.is_integer:
                return at[e.name] if e.name in at else self.sizes[e.name]
            return self.read(e, at)
        if e.is_number and not e.args:
            return float(e)
        args = [self.number(a, at) for a in e.args]
        name = type(e).__name__
        simple = {"exp": math.exp, "log": math.log, "tanh": math.tanh, "floor": math.floor, "ceiling": math.ceil}
        if name in simple:
            return simple[name](*args)
        if name == "Add":
            return math.fsum(args)
        if name == "Mul":
            return math.prod(args)
        return {"Pow": pow, "Max": max, "Min": min, "Mod": lambda a, b: a % b}[name](*args)
