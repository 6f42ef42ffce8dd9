"""What the a-priori reading knows of tensors: magnitudes and errors, and shares of weights; and what it asks of statements."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import sympy as sp

from symattn import formats
from symattn.arithmetic import Arithmetic
from symattn.program import Program, Statement, name_of, reads, subscripts_of, tensor
from symattn.readings.boxes import UP, Box
from symattn.readings.degrees import Degree
from symattn.readings.units import Unit, fits
from symattn.verify.replay.plan import chain_of


@dataclass(frozen=True)
class Reach:
    """The magnitude of a tensor, and the greatest error of a kernel in it, over all its elements and all inputs."""

    size: float
    error: float


@dataclass(frozen=True)
class Share:
    """A tensor relative to weights; see the module.

    Parameters
    ----------
    base
        The exponential that its weights are; None for a sum of several.
    gauge
        The row maximum; None once c has cancelled.
    factor, rel, tiny
        ``|t| <= factor W``, and the kernel within ``rel factor W + tiny``.
    fall
        Where it is tight, a kernel has at least ``(1 - fall) c t - tiny``; below 1 however large ``rel`` is.
    tight
        ``t`` is the sum of its weights, so that ``rel`` is relative to t.
    summed
        Whether it is a sum over the keys.
    covers, leaves
        The exponentials whose sums it holds entirely, and the leaves of the maximum among them.
    most
        At least t.
    keys
        The indices over which the weights of one row sum.
    signed
        Whether t may be negative: the weights were multiplied by other tensors.
    """

    base: str | None
    gauge: str | None
    factor: float
    rel: float
    tiny: float
    fall: float
    tight: bool
    summed: bool
    covers: frozenset[str] = frozenset()
    leaves: frozenset[sp.Basic] = frozenset()
    most: float = 1.0
    keys: frozenset[sp.Symbol] = frozenset()
    signed: bool = False


def around(shape: tuple[int, ...], magnitude: float, held: str) -> Box:
    """All numbers of a format up to a magnitude."""
    zero = np.zeros(shape)
    return Box(zero, zero, zero, np.full(shape, float(magnitude)), held=formats.get(held).name)


def weights_up_to(shape: tuple[int, ...], magnitude: float, error: float, held: str) -> Box:
    """All numbers from 0 to a magnitude, and what a kernel has in their place; it has none below 0."""
    half, zero = np.full(shape, magnitude / 2), np.zeros(shape)
    return Box(half, np.full(shape, error), zero, half * UP, nonneg=True, held=formats.get(held).name)


def over(b: Box) -> Reach:
    """The magnitude and error of a box over all its elements; a logarithm of nothing is exact, what is no number has no bound."""
    nothing = np.isneginf(b.value)
    size = np.where(nothing, 0.0, np.abs(b.value) + b.own)
    error = np.where(np.isnan(b.value) | np.isnan(b.bound) | ~np.isfinite(size), np.inf, b.bound)
    return Reach(float(np.max(np.where(np.isnan(size), np.inf, size), initial=0.0)), float(np.max(error, initial=0.0)))


def exponent_of(s: Statement, degrees: Mapping[str, Degree | None]) -> tuple[sp.Expr, str] | None:
    """The z and m of a statement ``exp(z - m)``."""
    degree = degrees.get(s.name)
    if s.over or not isinstance(s.expr, sp.exp) or degree is None or len(degree) != 1:
        return None
    [(name, power)] = degree.items()
    shift = next(x for x in reads(s.expr) if name_of(x) == name)
    return (s.expr.args[0] + shift, name) if power == 1 else None


def leaf_of(program: Program, s: Statement, exponent: tuple[sp.Expr, str]) -> sp.Basic | None:
    """The leaf of a row maximum that an exponent is: then it is at most the maximum."""
    z, gauge = exponent
    chain = chain_of(program, gauge)
    if chain is None:
        return None
    root = chain[0]
    if z == root.expr and set(root.conditions) <= set(s.conditions):
        return sp.Symbol(root.name)
    return next((x for t in chain[1:] for x in t.expr.args if x == z), None)


def copies_of(program: Program) -> dict[str, str]:
    """Of each tensor the first that is made in the same way: a backward that computes the scores again has its own names."""
    first: dict[object, str] = {}
    found: dict[str, str] = {}
    for s in program:
        said = (s.indices, s.over, s.reduce, renamed(s.expr, found), frozenset(renamed(c, found) for c in s.conditions), s.scan)
        found[s.name] = first.setdefault(said, s.name)
    return found


def renamed(e: sp.Basic, names: Mapping[str, str]) -> sp.Basic:
    """An expression that reads other tensors."""
    table = {x: tensor(names[name_of(x)], *subscripts_of(x)) for x in reads(e) if name_of(x) in names}
    return e.xreplace({x: y for x, y in table.items() if x != y})


def leaves_of(program: Program, gauge: str | None) -> frozenset[sp.Basic]:
    """All leaves of a row maximum."""
    chain = chain_of(program, gauge) if gauge is not None else None
    if chain is None or any(not isinstance(t.expr, sp.Max) for t in chain[1:]):
        return frozenset({sp.nan})
    names = {t.name for t in chain}
    found = {sp.Symbol(chain[0].name)}
    for t in chain[1:]:
        found |= {x for x in t.expr.args if not (x in reads(x) and name_of(x) in names)}
    return frozenset(found)


def log_of(mass: Share, number: float, lag: float, top: float, a: Arithmetic) -> Reach | None:
    """``number (log l + m)`` of a sum of weights l and its maximum, at most ``top`` and off by at most ``lag``: c cancels."""
    u, more = Unit.of(a.compute, a.flush_to_zero), mass.tiny * math.exp(min(lag, 700.0))
    if not mass.fall + more < 1:
        return None
    height = math.log(mass.most)
    error = max(-math.log1p(-mass.fall - more), math.log1p(mass.rel + more))
    error += a.function_errors("log") * (height + lag + error) + u.tiny
    error += a.shift_roundings * u.u * (top + lag)
    error += u.u * (top + height + 2 * lag + error)
    if number != 1:
        error = number * error + 4 * u.u * number * (top + height + error)
    if not fits(a.compute, a.lse):
        out = Unit.of(a.lse)
        error += out.u * (number * (top + height) + error) + out.tiny
    return Reach(number * (top + height), error * UP)
