"""Boxes of sums of products: matrix products of values, radii and sizes instead of a term at a time.

``sum over R of f1 f2 ...`` errs by

* what the factors err by: ``sum_p sum |t1| .. |k_p - t_p| .. |k_q|``, each factor in its turn (telescoping);
* casts of intermediate factors when a matrix product reads them (part of their radii);
* accumulation: ``gamma_r sum |k1 k2 ..|``, r the roundings that a term passes through, in whatever order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import sympy as sp

from symattn.arithmetic import Arithmetic
from symattn.errors import LimitError
from symattn.program import integer_symbols
from symattn.readings import boxes as bx
from symattn.readings.boxarithmetic import multiply, power_of_two
from symattn.readings.boxes import Array, Box
from symattn.readings.boxterms import Axes, Known, Mask, combined, doubtful, unknown
from symattn.readings.products import Operand, align, contract
from symattn.readings.units import Unit, fits

DENSE_LIMIT = 2**27
"""The most points of a sum that is evaluated a term at a time."""


@dataclass(frozen=True)
class Factor:
    """A factor of the terms: its box on the grid of its own indices."""

    box: Box
    axes: Axes
    given: bool = False
    rounded: bool = False
    """Whether what the kernel stored is already what a matrix product reads."""

    def operand(self, name: str) -> Operand:
        """One of its arrays with its indices."""
        return getattr(self.box, name), self.axes


@dataclass(frozen=True)
class Extra:
    """Declared roundings of a sum beyond those of its terms.

    ``relative`` to the sum of sizes; absolute, for ``each`` term and for the whole (``block``); ``scaled``: a number
    that operands may have been multiplied with beforehand.
    """

    relative: float = 0.0
    each: float = 0.0
    block: float = 0.0
    scaled: float | None = None


def gamma(n: Array, u: float) -> Array:
    """``exp(n u) - 1 >= (1 + u)^n - 1``, what n roundings of sums and products in a row amount to at most.

    >>> gamma(np.array([0.0, 2.0]), 0.25).round(4).tolist()
    [0.0, 0.6487]
    """
    with np.errstate(over="ignore"):
        return np.expm1(np.asarray(n, dtype=np.float64) * u) * (1 + 2.0**-48)


def additions_of(count: Array, points: int, rescalings: int, a: Arithmetic) -> Array:
    """How many additions a term passes through at most, by the number of terms; blocks may begin anew in every tile."""
    counts, places = np.unique(count, return_inverse=True)
    found = np.array([a.additions(int(n), points) if n else 0 for n in counts], dtype=np.float64)
    if a.block is not None and a.depth is None:
        found = np.where(counts > 0, found + rescalings, 0.0)
    return found[places].reshape(np.shape(count))


def accumulated(additions: Array, products: Array, unit: Unit, a: Arithmetic) -> Array:
    """What products and additions amount to, relative to the sum of sizes: ``(1 + g_a)(1 + g_p) - 1``."""
    sums, factors = gamma(additions, a.step_error), gamma(products, unit.u)
    if a.step_error == unit.u:
        return gamma(additions + products, unit.u)
    return (sums + factors + sums * factors) * bx.UP


def cast_operands(factors: Sequence[Factor], over: Axes, known: Known) -> list[Factor]:
    """Round what a matrix product reads: intermediates to the declared operand formats, inputs to ``operand``.

    A factor is an operand of a matrix product when it has a bound index and lacks an index of another factor that has one too;
    a sum of products of tensors of one shape (a row sum of dO∘O) is none.
    """
    a, out = known.arithmetic, []
    for f in factors:
        summed = set(f.axes) & set(over)
        others = [set(g.axes) for g in factors if g is not f and set(g.axes) & set(over)]
        if summed and any(o - set(f.axes) for o in others):
            target = a.operand if f.given else (a.probability if f.box.nonneg else a.gradient)
            if target is not None and not f.rounded:
                f = replace(f, box=_read_operand(f, target, a))
        out.append(f)
    return out


def _read_operand(f: Factor, target: str, a: Arithmetic) -> Box:
    if f.box.nonneg and not f.given:
        return weights(f.box, a)
    box = replace(f.box, held=f.box.held if f.box.held is not None or f.given else a.compute)
    unit = Unit.of(target, ulps=a.ulps("operand") if f.given else 1)
    if not f.given and a.gradient_scale != 1:
        unit = replace(unit, tiny=unit.tiny / a.gradient_scale, top=unit.top / a.gradient_scale)
    return bx.stored(box, unit)


def weights(b: Box, a: Arithmetic) -> Box:
    """Weights as a matrix product reads them: times the declared constant, rounded to ``probability``, divided again.

    A constant that is no power of two costs two roundings of the compute format. What is beyond the format's largest number
    becomes it or, where the declaration says NaN, has no bound.
    """
    assert a.probability is not None
    unit, held, c = Unit.of(a.probability, ulps=a.ulps("probability")), b.held or a.compute, a.probability_scale
    power = abs(float(np.frexp(c)[0])) == 0.5
    if c == 1 and b.held is not None and fits(b.held, unit.name):
        return b
    also = 0.0 if power else 3 * Unit.of(a.compute).u * (1 + unit.u)
    out = bx.finish(b.value, b.own, b.bound, b.low, unit.u + also, unit.tiny / c, b.nonneg, held=held, rescalings=b.rescalings)
    top = unit.top / (c * math.exp(min(a.stale, 700.0)))
    beyond = b.size > top
    if not np.any(beyond):
        return out
    lost = np.inf if a.probability_overflow == "nan" else np.maximum(b.size - top, 0.0)
    least = np.minimum(out.low, top * bx.DOWN)
    return replace(out, bound=np.where(beyond, (out.bound + lost) * bx.UP, out.bound), low=np.where(beyond, least, out.low))


def sum_of_products(factors: Sequence[Factor], free: Axes, over: Axes, masks: Sequence[Mask], extra: Extra, known: Known) -> Box:
    """The box of the sum over ``over`` of the product of the factors, on the grid of ``free``.

    Parameters
    ----------
    factors
        At least one.
    masks
        Those that read a bound index.
    extra
        Further declared roundings.
    """
    sizes, a = known.sizes, known.arithmetic
    if masks:
        count = contract([(m.keep.astype(np.float64), m.axes) for m in masks], free, over, sizes)
    else:
        count = np.full((1,) * len(free), float(math.prod(sizes[x] for x in over)))
    placed, left = _place(factors, masks)
    if masks and not all(np.all(np.isfinite(f.box.value)) for f in placed):
        placed, left = [_dense(factors, masks, (*free, *over), known)], []
    unit = Unit.of(a.accumulate, a.flush_to_zero)
    if extra.scaled is not None:
        placed = [_prescaled(f, extra.scaled, known) for f in placed]
    k = sum(1 for f in placed if not power_of_two(f.box)) if len(factors) == len(placed) else len(factors)
    rescalings = max(f.box.rescalings for f in placed)
    points = math.prod(sizes[x] for x in over)
    additions = additions_of(count, points, rescalings, a)
    products = np.where(count > 0, max(k - 1, 0.0) + rescalings, 0.0)
    own_roundings = np.where(count > 0, np.maximum(count - 1, 0.0) + max(k - 1, 0) + rescalings, 0.0)
    more: list[Operand] = [(m.keep.astype(np.float64), m.axes) for m in left]

    def total(name: str) -> Array:
        return contract([*(f.operand(name) for f in placed), *more], free, over, sizes)

    value, size = total("value"), total("size")
    own = np.asarray(gamma(own_roundings, bx.U) * size)
    for part in _telescope(placed, "own", "true_size", free, over, more, known):
        own += part
    own += bx.OWN_TINY * count
    own *= _outward(count)
    size = size * _outward(count)
    big = sorted((float(np.max(f.box.size, initial=1.0)) for f in placed), reverse=True)
    reach = max(1.0, float(np.prod(big[: max(len(placed) - 2, 0)])))
    tiny = unit.tiny * a.ulps("accumulate")
    underflow = (count * max(k, 1) + rescalings * (count > 0)) * reach * tiny if k > 1 or rescalings else 0.0 * count
    underflow = underflow + extra.each * count + extra.block * (count > 0)
    share = accumulated(additions, products, unit, a)
    bound = np.asarray((share + extra.relative * (1 + share)) * size)
    for part in _telescope(placed, "bound", "size", free, over, more, known):
        bound += part * _outward(count)
    bound += underflow
    nonneg = all(f.box.nonneg for f in placed)
    low = None
    if nonneg:
        low = np.maximum(total("low") / _outward(count) * (1 - share - extra.relative), 0.0)
        low = np.maximum(low - underflow, 0.0)
    top = unit.top / math.exp(min(known.late, 700.0))
    if not np.max(size, initial=0.0) <= top:
        bound = np.where((size > top) & np.isfinite(value), np.inf, bound)
    out = bx.finish(value, own, bound, low, 0.0, 0.0, nonneg, held=unit.name, rescalings=rescalings)
    out = out if np.min(count) > 0 else bx.select(count > 0, out)
    return out if not any(np.any(m.doubt) for m in masks) else _there_or_not(out, factors, masks, free, over, known)


def _there_or_not(out: Box, factors: Sequence[Factor], masks: Sequence[Mask], free: Axes, over: Axes, known: Known) -> Box:
    """The sum where rounding errors could turn a condition: a term may be in one of the sums and not in the other."""
    axes = (*free, *over)
    if math.prod(known.sizes[x] for x in axes) > DENSE_LIMIT:
        return unknown(out, doubtful(masks, free, over, known))
    maybe = reduce(np.logical_and, [align(m.keep | m.doubt, m.axes, axes, known.sizes) for m in masks])
    open_ = maybe & reduce(np.logical_or, [align(m.doubt, m.axes, axes, known.sizes) for m in masks])
    shaped = [_spread(f, axes, known) for f in factors]
    term = reduce(np.multiply, [np.maximum(b.size, b.true_size) for b in shaped])
    shape = [known.sizes[x] for x in axes]
    over_axes = tuple(range(len(free), len(axes)))
    some = np.broadcast_to(open_, shape)
    terms = np.where(some, np.broadcast_to(np.where(np.isnan(term), np.inf, term), shape), 0.0)
    count, reach = some.sum(axis=over_axes), terms.sum(axis=over_axes)
    unit = Unit.of(known.arithmetic.accumulate, known.arithmetic.flush_to_zero)
    more = np.where(count > 0, reach * _outward(count) * (1 + gamma(count, bx.U)), 0.0)
    all_ = np.broadcast_to(maybe, shape).sum(axis=over_axes)
    whole = np.abs(out.value) + out.own + out.bound + more
    rounded = np.where(count > 0, gamma(2.0 * all_ + len(factors), unit.u) * whole, 0.0)
    low = np.maximum(out.low - more, 0.0)
    return replace(out, own=out.own + more, bound=out.bound + more + rounded, low=np.where(count > 0, low, out.low))


def _outward(count: Array) -> Array:
    """Covers the float64 roundings of a sum of so many non-negative terms."""
    return 1 + (count + 16) * 2.0**-52


def _telescope(
    factors: Sequence[Factor], radius: str, after: str, free: Axes, over: Axes, more: list[Operand], known: Known
) -> Iterator[Array]:
    """``sum |t1| .. r_p .. |k_q|`` for each p: the factors before p at their true size, those after it at their computed size."""
    for p, f in enumerate(factors):
        if bx.some(getattr(f.box, radius)):
            ops = [g.operand("true_size" if q < p else radius if q == p else after) for q, g in enumerate(factors)]
            yield contract([*ops, *more], free, over, known.sizes)


def _place(factors: Sequence[Factor], masks: Sequence[Mask]) -> tuple[list[Factor], list[Mask]]:
    """Select each mask into a factor that has its indices; what fits none is left."""
    placed, left = list(factors), []
    for m in masks:
        fit = [k for k, f in enumerate(placed) if set(m.axes) <= set(f.axes)]
        if not fit:
            left.append(m)
        for k in fit:
            f = placed[k]
            sizes = dict(zip(f.axes, f.box.value.shape, strict=True))
            placed[k] = replace(f, box=bx.select(align(m.keep, m.axes, f.axes, sizes), f.box))
    return placed, left


def _dense(factors: Sequence[Factor], masks: Sequence[Mask], axes: Axes, known: Known) -> Factor:
    """The terms one by one, so that what is not kept is not touched even where it is no number."""
    points = math.prod(known.sizes[x] for x in axes)
    if points > DENSE_LIMIT:
        raise LimitError(f"a sum of {points} terms with values that are no numbers: at most {DENSE_LIMIT} are taken one by one")
    shaped = [_spread(f, axes, known) for f in factors]
    box = reduce(lambda x, y: multiply(x, y, Unit.of(known.arithmetic.accumulate)), shaped)
    keep = combined(masks, axes, known)
    box = bx.select(keep, box) if keep is not None else box
    shape = [known.sizes[x] for x in axes]
    return Factor(box.map(lambda x: np.broadcast_to(x, shape)), axes)


def _spread(f: Factor, axes: Axes, known: Known) -> Box:
    return f.box.map(lambda x: align(x, f.axes, axes, known.sizes))


def _prescaled(f: Factor, scale: float, known: Known) -> Factor:
    """An operand that may be multiplied by the scale and rounded beforehand: what underflows, seen before the scale."""
    if not f.axes:
        return f
    tiny = Unit.of(known.arithmetic.scale_format or known.arithmetic.input).tiny / min(1.0, abs(scale) or 1.0)
    return replace(f, box=replace(f.box, bound=f.box.bound + np.where(f.box.size > 0, tiny, 0.0)))


def factor_axes(e: sp.Basic, domain: Axes) -> Axes:
    """The indices of a statement's domain that an expression carries, in order."""
    used = integer_symbols(e)
    return tuple(x for x in domain if x in used)
