"""The truth of recorded tensors as a file: a midpoint, a radius and a status for every element."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from symattn import formats
from symattn.definition import Definition
from symattn.directions import directions_in
from symattn.errors import FileFormatError, InputValueError, ShapeError, UnknownNameError
from symattn.fields import INPUT_FIELDS
from symattn.formats import Exact
from symattn.intake import Array
from symattn.tensors import check_layout, implied, in_order
from symattn.truth.enclosure import Enclosure
from symattn.truth.fields import truth_of
from symattn.truth.tiers import tier as tier_of
from symattn.truth.truth import Truth, format_of
from symattn.truth.work.run import Work
from symattn.verify.files import read_tensors, write_npz

RADIUS_DIGITS = 3


@dataclass(frozen=True)
class Written:
    """What was written: for each name the number of undecided elements and of all; how they were found, as text."""

    counts: Mapping[str, tuple[int, int]]
    report: str


def write_truth(
    source: str,
    target: str,
    definition: Definition,
    *,
    digits: int | None = None,
    bits: int | None = None,
    round_to: str | None = None,
    until: Literal["decided"] | None = None,
    gradient: bool = False,
    layout: str = "bhsd",
    tier: str | None = None,
    assume: bool = False,
    work: Work | None = None,
) -> Written:
    """Write ``NAME.mid``, ``NAME.rad`` and ``NAME.status`` of every output to a ``.npz`` file.

    Parameters
    ----------
    source, target
        The file that is read and the one that is written.
    definition
        What is computed; tensors in the file (``attn_mask``, ``sinks``, ``bias`` ...) say by their presence that it has them.
    digits, bits, round_to, until
        One of: significant digits to guarantee (50 by default), a working precision, a float format to round to, ``"decided"``
        for that of the inputs. Without a format midpoints and radii are decimal text, the radius rounded up and with it all that
        the text of the midpoint leaves out; with one the midpoint is an array of the format, and the radius (float64) bounds its
        distance from the exact value. Where an element is undecided then, ``NAME.low`` and ``NAME.high`` hold both neighbours.
    gradient
        Gradients too, for the ``grad_out`` (and ``grad_lse``) of the file. Directions in the file (``tangent_query`` ...) give
        the tangents, and with gradients the Hessian-vector products.
    layout
        ``"bhsd"`` or ``"bshd"``.
    tier, assume, work
        As for :func:`symattn.truth.truth`.

    Raises
    ------
    FileFormatError
        When the file cannot be read, lacks a tensor or holds tensors that do not fit.
    UnknownNameError
        For a format or a tier that does not exist.
    """
    check_layout(layout)
    format = formats.get(round_to) if round_to is not None else None
    if tier is not None:
        tier_of(tier)
    tensors = read_tensors(source)
    definition = implied(definition, tensors)
    known = INPUT_FIELDS | set(definition.unbound) | directions_in(definition, tensors)[0].keys()
    seeds = ("grad_", "tangent_grad_")
    inputs = {k: a for k, a in tensors.items() if k in known and (gradient or not k.startswith(seeds))}
    if gradient and "grad_out" not in inputs:
        raise FileFormatError(f"{source}: gradients need grad_out; it holds {', '.join(sorted(tensors))}")
    if until is not None:
        format = format_of(inputs)
    how = {"decide": format, "tier": tier, "assume": assume, "work": work}
    evaluate: Callable[..., Truth] = truth_of
    try:
        found = evaluate(definition, inputs, layout=layout, digits=digits, bits=bits, **how)
    except (ShapeError, InputValueError, UnknownNameError) as error:
        raise FileFormatError(f"{source}: {error}") from error
    entries: dict[str, Array] = {}
    for name in in_order(found):
        e = found[name]
        mid, rad, status = _texts(e, digits, bits) if format is None else _rounded(e, format)
        entries |= {f"{name}.mid": mid, f"{name}.rad": rad, f"{name}.status": status}
        if format is not None and (status == "undecided").any():
            entries |= dict(zip((f"{name}.low", f"{name}.high"), e.neighbours(format), strict=True))
    write_npz(target, entries)
    counts = {n: (int((entries[f"{n}.status"] == "undecided").sum()), found[n].values.size) for n in in_order(found)}
    return Written(counts, found.report())


def _texts(e: Enclosure, digits: int | None, bits: int | None) -> tuple[Array, Array, Array]:
    """Midpoints as decimal text, and radii that also cover what the text leaves out."""
    count = (digits or (50 if bits is None else math.ceil(bits * math.log10(2)))) + 5
    mids, rads = [], []
    for m, r in zip(e.mid.ravel(), e.rad.ravel(), strict=True):
        text = _decimal(m, count)
        mids.append(text)
        left_out = abs(Fraction(text) - m) if isinstance(m, Fraction) else Fraction(0)
        rads.append(_decimal(r if isinstance(r, float) else r + left_out, RADIUS_DIGITS, decimal.ROUND_UP))
    return _array(mids, e.mid.shape), _array(rads, e.mid.shape), e.status


def _rounded(e: Enclosure, format: formats.Format) -> tuple[Array, Array, Array]:
    """Correctly rounded values, and how far they may be from the exact ones; undecided where two values are possible."""
    mid = formats.to_array(e.mid, format)
    status = np.where(e.open(format), "undecided", np.where(e.status == "bounded", "bounded", "enclosed"))
    rads = np.zeros(e.mid.shape)
    for at in np.ndindex(e.mid.shape):
        value: Exact = formats.exact(mid[at])
        m, r = e.mid[at], e.rad[at]
        if status[at] == "enclosed" and r == 0 and (value == m or value != value):
            status[at] = "exact"
        rads[at] = (
            formats.above(abs(value - m) + r)
            if isinstance(m, Fraction) and isinstance(value, Fraction) and not isinstance(r, float)
            else 0
        )
    return mid, rads, status


def _decimal(x: Any, digits: int, rounding: str = decimal.ROUND_HALF_EVEN) -> str:
    """A rational as text of so many digits; specials as ``inf``, ``-inf``, ``nan``."""
    if isinstance(x, float):
        return str(x)
    context = decimal.Context(prec=digits, rounding=rounding, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    return str(context.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator)))


def _array(texts: list[str], shape: tuple[int, ...]) -> Array:
    return np.array(texts, dtype=np.str_).reshape(shape)
