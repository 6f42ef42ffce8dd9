"""Faults of arithmetic: steps that are rounded to a narrower format than the kernel declares, run with that rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from symattn import formats
from symattn.intake import Array
from symattn.verify.emulators.machine import Machine, round_to
from symattn.verify.faults.emulating import MOST, Machines, applicable, in_forward, plain, tiled, untiled
from symattn.verify.faults.fault import Alternative, Fault, Situation

SIXTEEN = ("bfloat16", "float16")
EIGHT = ("float8_e4m3fn", "float8_e5m2")
Declared = Callable[[Situation], str | None]


def narrower(s: Situation, declared: str | None, candidates: tuple[str, ...]) -> list[str]:
    """The formats that hold fewer bits than the declared one."""
    own = formats.get(declared or s.arithmetic.compute).precision
    return [f for f in candidates if formats.get(f).precision < own]


def step(name: str, declared: Declared, candidates: tuple[str, ...] = SIXTEEN) -> Machines:
    """A step that is rounded to formats narrower than the declared one."""
    return untiled(lambda s: [(f, {"rounded": {name: f}}) for f in narrower(s, declared(s), candidates)])


def in_tiles(name: str, declared: Declared, candidates: tuple[str, ...] = SIXTEEN) -> Machines:
    """The same where it happens once a tile."""
    return tiled(lambda s: [(f, {"rounded": _weights(s) | {name: f}}) for f in narrower(s, declared(s), candidates)])


def between_tiles(name: str, declared: Declared) -> Machines:
    """What is kept in 16 bits from tile to tile, under a running maximum or one that is known before the first tile."""

    def change(s: Situation, said: str = "", **more: Any) -> list[tuple[str, dict[str, Any]]]:
        return [(f + said, {"rounded": _weights(s) | {name: f}, **more}) for f in narrower(s, declared(s), SIXTEEN)]

    def machines(s: Situation) -> Iterator[tuple[str, Machine]]:
        yield from tiled(change, most=MOST)(s)
        yield from tiled(partial(change, said=", the maximum known before", known_maximum=True))(s)

    return machines


def _weights(s: Situation) -> dict[str, str]:
    """P as it is declared to be read, where that is narrow."""
    own = s.arithmetic.probability
    return {} if own is None else {"weight": own}


def _accumulator(s: Situation) -> Iterator[tuple[str, Machine]]:
    """The output rounded after every key, weights normalised before or after; and after every tile."""
    for f in narrower(s, s.arithmetic.accumulate, SIXTEEN):
        yield f"{f} after every key, weights normalised", plain(s, normalised=True, rounded={"term": f} | _weights(s))
        yield f"{f} after every key", plain(s, tile=64, rounded={"term": f} | _weights(s))
    for label, machine in between_tiles("partial", lambda s: s.arithmetic.accumulate)(s):
        yield f"{label}, once a tile", machine


def _dot(s: Situation) -> Iterator[tuple[str, Machine]]:
    """Sums of q.k rounded after every channel, the products exact or rounded too."""
    for f in narrower(s, s.arithmetic.accumulate, SIXTEEN):
        yield f, plain(s, rounded=_weights(s) | {"dot": f})
        yield f"{f}, products too", plain(s, rounded=_weights(s) | {"dot": f, "dot_term": f})


def _exponentials(s: Situation) -> Iterator[tuple[str, Machine]]:
    """Exponentials of scores, and those of rescaling too."""
    yield from in_tiles("exp", lambda s: s.arithmetic.aux)(s)
    for label, machine in in_tiles("exp", lambda s: s.arithmetic.aux)(s):
        yield f"{label}, rescaling too", replace(machine, rounded={**machine.rounded, "rescale": machine.rounded["exp"]})


def _weight(s: Situation) -> Iterator[tuple[str, Machine]]:
    own = s.arithmetic.probability or s.arithmetic.store
    for f in narrower(s, own, (*SIXTEEN, *EIGHT)):
        yield f"{f}, normalised", plain(s, normalised=True, rounded={"weight": f})
    yield from in_tiles("weight", lambda _: own, (*SIXTEEN, *EIGHT))(s)


def _inputs(s: Situation) -> Iterator[Alternative]:
    """Queries, keys and values rounded when they are read."""
    if not applicable(s):
        return
    names = ("query", "key", "value")
    for f in narrower(s, s.arithmetic.operand or s.arithmetic.input, ("tf32", *SIXTEEN)):
        cast = {n: _cast(s.fields[n], f) for n in names}
        yield Alternative(f, fields=cast)
        yield Alternative(f"{f}, queries and keys alone", fields={n: cast[n] for n in ("query", "key")})


def _cast(x: Array, f: str) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(round_to(x.astype(np.float64), formats.get(f)).astype(x.dtype))


ROWS = (
    Fault(
        "F49",
        "output accumulated in 16 bits",
        "arithmetic",
        wrong="RN16 after each term, or after each tile",
        right="float32",
        threads=("ring-flash-attention#22", "llama.cpp#23577"),
        look="the format of the accumulator of P V, and of partial outputs between tiles or devices",
        shows="16-bit kernels on long rows: bfloat16 from 512 keys, float16 from 4096",
        blind="short rows; values of both signs",
        rewrite=in_forward(_accumulator),
    ),
    Fault(
        "F169",
        "scores accumulated in 16 bits",
        "arithmetic",
        wrong="RN16 of q.k after each channel",
        right="float32",
        look="the format of the accumulator of Q K^T",
        shows="16-bit kernels whose sums have many channels or large scores",
        blind="q.k that are numbers of the format all the way",
        rewrite=in_forward(_dot),
    ),
    Fault(
        "F140",
        "scores stored in 16 bits",
        "arithmetic",
        wrong="RN16(s)",
        right="float32",
        look="the format of q.k before the softmax",
        shows="kernels that declare wider scores",
        blind="|s| < 1",
        rewrite=in_forward(step("score", lambda s: s.arithmetic.store)),
    ),
    Fault(
        "F141",
        "exponentials in 16 bits",
        "arithmetic",
        wrong="RN16(exp(s - m)) in output and sum",
        right="float32",
        look="the format in which exp is evaluated",
        shows="sums of few keys, in the LSE",
        blind="the output alone",
        rewrite=in_forward(_exponentials),
    ),
    Fault(
        "F142",
        "sum of the exponentials in 16 bits",
        "arithmetic",
        wrong="RN16(l)",
        right="float32",
        look="the format of the running sum",
        shows="any row: the LSE and a whole row of the output",
        blind="sums that are numbers of the format",
        rewrite=in_forward(between_tiles("sum", lambda s: s.arithmetic.aux)),
    ),
    Fault(
        "F143",
        "weights read in a narrower format than declared",
        "arithmetic",
        wrong="RN(P) V",
        right="P in the declared format",
        look="the cast of P before its product with V",
        shows="rows of few weights",
        blind="weights that are numbers of the format",
        rewrite=in_forward(_weight),
    ),
    Fault(
        "F144",
        "output rounded to a narrower format on the way",
        "arithmetic",
        wrong="RN(o)",
        right="the format of the output",
        look="casts after the normalisation, buffers of other formats",
        shows="outputs that are wider than the format",
        rewrite=in_forward(step("out", lambda s: s.arithmetic.output)),
    ),
    Fault(
        "F145",
        "LSE rounded to 16 bits",
        "arithmetic",
        wrong="RN16(L)",
        right="float32",
        look="the dtype of the LSE's buffer",
        shows="the LSE, and gradients that are computed from it",
        rewrite=in_forward(step("lse", lambda s: s.arithmetic.lse)),
    ),
    Fault(
        "F146",
        "inputs rounded when they are read",
        "arithmetic",
        wrong="RN(q).RN(k)",
        right="inputs as they are",
        look="tf32 or automatic casts of matrix products",
        shows="float32 and float64 inputs, float16 read as bfloat16",
        blind="inputs that are numbers of the format",
        rewrite=_inputs,
    ),
)
