"""Equations between a kernel's own tensors, each with the conditions on the program under which it holds.

A tolerance is the sum of the bounds of the tensors that enter, each times what it is multiplied by: the equation holds exactly of
exact tensors, so that what a kernel's tensors may miss it by is what they may be off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import sympy as sp

from symattn.definition import Definition
from symattn.errors import NotStatedError, SymattnError
from symattn.indexed import name_of
from symattn.intake import Array
from symattn.theorems import conditions as when
from symattn.theorems.signs import nonnegative
from symattn.theorems.subject import Subject
from symattn.theorems.theorem import Condition
from symattn.verify.properties.finding import NOT_APPLICABLE, PropertyReport
from symattn.verify.properties.tried import Tried, subject_of

__all__ = ["ROWS", "Equation", "unmet"]

Sides = tuple[Array, Array]
"""What should be 0, and how far it may be from it."""


@dataclass(frozen=True)
class Equation:
    """A property as a row of data.

    Parameters
    ----------
    name, title
        As in reports.
    needs
        Conditions on the program.
    tensors
        The kernel's tensors that enter; of several names joined by ``|`` the first that there is.
    sides
        The deviation and what is allowed, from the kernel's tensors in float64.
    """

    name: str
    title: str
    needs: tuple[Condition, ...]
    tensors: tuple[str, ...]
    sides: Callable[[Tried], Sides]

    def report(self, t: Tried) -> PropertyReport:
        """The verdict on a kernel."""
        missing = [n for n in self.tensors if not any(x in t.tensors for x in n.split("|"))]
        if missing:
            return self._none(f"there is no {' and no '.join(n.replace('|', ' or ') for n in missing)}")
        reason = unmet(self.needs, t.definition)
        if reason:
            return self._none(f"it does not hold of this definition: not '{reason}'")
        try:
            off, allowed = self.sides(t)
        except NotStatedError as error:
            return self._none(str(error))
        if not off.size:
            return self._none("no row of this input has keys")
        if not np.isfinite(allowed).all():
            return self._none("the declared arithmetic promises nothing for the tensors that enter")
        with np.errstate(all="ignore"):
            share = np.where(off == 0, 0.0, np.abs(off) / allowed)
        share = np.where(np.isnan(share), np.inf, share)
        worst = tuple(int(k) for k in np.unravel_index(int(share.argmax()), share.shape))
        at, top = ",".join(map(str, worst)), float(share.max())
        if top <= 1:
            return PropertyReport(self.name, self.title, "pass", case=t.observed.case, share=top)
        text = f"off by {abs(off[worst]):.3g} at [{at}], where {allowed[worst]:.3g} is allowed"
        return PropertyReport(self.name, self.title, "fail", text, t.observed.case, top)

    def _none(self, reason: str) -> PropertyReport:
        return PropertyReport(self.name, self.title, NOT_APPLICABLE, reason)


@lru_cache(maxsize=512)
def _holds(condition: Condition, definition: Definition) -> bool:
    try:
        return bool(condition.holds(subject_of(definition)))
    except SymattnError:
        return False


def unmet(needs: tuple[Condition, ...], definition: Definition) -> str | None:
    """The first condition that is not known to hold of a definition, as text; None where all do.

    >>> unmet((when.SHIFT_INVARIANT,), Definition()), unmet((when.SHIFT_INVARIANT,), Definition(sink=True))
    (None, 'the normaliser does not change under a shift of the row')
    """
    return next((c.text for c in needs if not _holds(c, definition)), None)


def _sum(terms: Array, reach: Array, axes: tuple[int, ...]) -> Sides:
    """A sum and how far it may be off: its terms' own reach, and the rounding of the float64 sum."""
    count = int(np.prod([terms.shape[a] for a in axes]))
    return terms.sum(axes), reach.sum(axes) + 4 * count * np.finfo(np.float64).eps * np.abs(terms).sum(axes)


def _less(a: Sides, b: Sides) -> Sides:
    return a[0] - b[0], a[1] + b[1]


# ---------------------------------------------------------------- the rows
def _added_last(s: Subject) -> bool:
    """The scores that the normaliser sees are what is added plus something."""
    z = s.statement(name_of(s.score))
    added = [x for x in z.reads if name_of(x) in ("bias", "B")]
    return bool(added) and all(sp.expand(z.expr).coeff(x) == 1 for x in added)


def _not_negative(s: Subject) -> bool:
    return name_of(s.multiplying) in nonnegative(s.plain)


ADDED_LAST = Condition("a given mask or bias is added to the scores that the normaliser sees", _added_last)
NOT_NEGATIVE = Condition("no weight is negative", _not_negative)


def _score_rows(t: Tried) -> Sides:
    name = next(n for n in ("grad_bias", "grad_attn_mask") if n in t.tensors)
    given = t.fields[name.removeprefix("grad_")]
    if given.shape[-1] != t.keep.shape[3] or t.keep.shape[3] == 1:
        raise NotStatedError("it is given without an axis of the keys")
    return _sum(t.tensors[name], t.reach(name), (-1 % given.ndim,))


def _key_columns(t: Tried) -> Sides:
    return _sum(t.tensors["grad_key"], t.reach("grad_key"), (2,))


def _group_products(t: Tried, a: str, b: str, gradient: str) -> Sides:
    """``sum of a_c b_e`` over the rows of a head, and the group: (B, H_kv, d, d)."""
    parts, wanted = [], (t.tensors[gradient], t.reach(gradient))
    other = t.fields[b if gradient == a else a].astype(np.float64)
    kv = t.observed.situation.reference.call.kv_head
    for x, y in ((wanted[0], other), (wanted[1], np.abs(other)), (np.abs(wanted[0]), np.abs(other))):
        left, right = (x, y) if gradient == a else (y, x)
        each = np.einsum("bhic,bhie->bhce", left, right)
        parts.append(each if each.shape[1] != len(kv) or a == "key" else _grouped(each, kv))
    count = wanted[0].shape[2] * len(kv)
    return parts[0], parts[1] + 4 * count * np.finfo(np.float64).eps * parts[2]


def _grouped(x: Array, kv: Array) -> Array:
    return np.stack([x[:, kv == k].sum(1) for k in range(int(kv.max()) + 1)], axis=1)


def _gauge(t: Tried) -> Sides:
    return _less(_group_products(t, "grad_query", "query", "grad_query"), _group_products(t, "key", "grad_key", "grad_key"))


def _scale(t: Tried) -> Sides:
    every = (0, 1, 2, 3)
    sides = []
    for n in ("query", "key"):
        x, g = t.fields[n].astype(np.float64), t.tensors["grad_" + n]
        sides.append(_sum(g * x, t.reach("grad_" + n) * np.abs(x), every))
    off, allowed = _less(*sides)
    return np.asarray(off).reshape(1), np.asarray(allowed).reshape(1)


def _value_total(t: Tried) -> Sides:
    kv = t.observed.situation.reference.call.kv_head
    seen = np.any(t.keep, axis=-1, keepdims=True)
    grad_out = np.where(seen, t.fields["grad_out"].astype(np.float64), 0)
    total, allowed = _sum(grad_out, np.zeros_like(grad_out), (2,))
    return _less(_sum(t.tensors["grad_value"], t.reach("grad_value"), (2,)), (_grouped(total, kv), _grouped(allowed, kv)))


def _beyond(t: Tried, *, with_zero: bool) -> Sides:
    """How far each channel of the output lies outside of the values that its row may see (and 0)."""
    out, values = t.tensors["out"], t.several("value")
    low, high = np.full(out.shape, np.inf), np.full(out.shape, -np.inf)
    for j in range(values.shape[2]):
        may, v = t.keep[..., j, None], values[:, :, j][:, :, None]
        low, high = np.where(may, np.minimum(low, v), low), np.where(may, np.maximum(high, v), high)
    if with_zero:
        low, high = np.minimum(low, 0), np.maximum(high, 0)
    off = np.where(np.isnan(out), np.nan, np.maximum(0, np.maximum(low - out, out - high)))
    rows = t.keep.any(-1)
    return off[rows], t.reach("out")[rows]


def _has_sink(s: Subject) -> bool:
    return s.has("P0")


ROWS: tuple[Equation, ...] = (
    Equation(
        "hull",
        "the output lies among the values that its row may see",
        (when.OUTPUT_IS_WEIGHTED_SUM, when.WEIGHTS_SUM_TO_ONE, NOT_NEGATIVE),
        ("out",),
        lambda t: _beyond(t, with_zero=False),
    ),
    Equation(
        "hull-with-zero",
        "the output lies among the values that its row may see, and 0",
        (Condition("there is a sink", _has_sink), when.OUTPUT_IS_WEIGHTED_SUM, NOT_NEGATIVE),
        ("out",),
        lambda t: _beyond(t, with_zero=True),
    ),
    Equation(
        "score-rows",
        "the rows of dZ sum to 0",
        (when.SHIFT_INVARIANT, ADDED_LAST),
        ("grad_bias|grad_attn_mask",),
        _score_rows,
    ),
    Equation(
        "key-columns", "the columns of dK sum to 0", (when.SHIFT_INVARIANT, when.AFFINE_IN_KEYS), ("grad_key",), _key_columns
    ),
    Equation(
        "gauge",
        "dQ^T Q = K^T dK, summed over the group",
        (when.THROUGH_THE_PRODUCT,),
        ("grad_query", "grad_key"),
        _gauge,
    ),
    Equation("scale", "<dQ, Q> = <dK, K>", (when.ONE_FACTOR_PER_PAIR,), ("grad_query", "grad_key"), _scale),
    Equation(
        "value-total",
        "sum_j dV_j = sum_i dO_i",
        (when.OUTPUT_IS_WEIGHTED_SUM, when.WEIGHTS_SUM_TO_ONE),
        ("grad_value",),
        _value_total,
    ),
)
"""In the order of reports."""
