"""The constants of a declared arithmetic that a failing kernel may have understated, each with its changes, the least first.

Bounds grow along every row: later changes allow whatever earlier ones do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from symattn import formats
from symattn.arithmetic import LOG, Arithmetic
from symattn.formats import exact
from symattn.verify.compare import significant

__all__ = ["Change", "Range", "Row", "constants"]

NARROW = ("float32", "float16", "bfloat16")
OPERANDS = ("tf32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
TILES = (1, 2, 4, 8, 16, 32, 64)
GREATEST = 2.0**-4
"""A relative error of a function that no one means to have."""


@dataclass(frozen=True)
class Change:
    """Other values of one declared constant (a buffer with its tiles counts as one), and how that is said."""

    values: Mapping[str, Any]
    words: str


@dataclass(frozen=True)
class Row:
    """The changes of one constant, the least first."""

    constant: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Range:
    """A constant that is a number: everything from ``least`` to ``greatest``."""

    constant: str
    label: str
    least: float
    greatest: float

    def change(self, value: float) -> Change:
        """The declaration of a value."""
        return Change({self.constant: value}, f"from {self.label} {significant(exact(value), 2)} on")


def constants(a: Arithmetic, *, keys: int, queries: int, gradient: bool) -> Iterator[Row | Range]:
    """Every constant of a declaration that can be weaker, as far as it matters.

    Parameters
    ----------
    a
        The declaration.
    keys, queries
        The sizes of the input, which tiles are of.
    gradient
        Whether gradients are judged.
    """
    for f in ("exp", "log", "tanh", "function"):
        yield Range(f"{f}_error", f"{f} error" if f != "function" else "error of functions", a.function_errors(f), GREATEST)
    yield from _formats(a, gradient)
    if gradient:
        yield from _buffers(a, keys, queries)
    yield from _switches(a)
    yield from _counts(a, keys, queries)
    yield Range("stale", "lag of the maximum (nats)", a.stale, 16.0)


def _formats(a: Arithmetic, gradient: bool) -> Iterator[Row]:
    for field, words in (
        ("accumulate", "if sums are accumulated in {}"),
        ("compute", "if elementwise operations are in {}"),
        ("aux", "if exponentials and their sum are stored in {}"),
        ("store", "if intermediate results are stored in {}"),
        ("lse", "if the LSE is rounded to {}"),
    ):
        yield _row(field, getattr(a, field), NARROW, words)
    yield _row("probability", a.probability, OPERANDS, "if P is read as {}")
    if gradient:
        yield _row("gradient", a.gradient, OPERANDS, "if dS is read as {}")
    yield _row("operand", a.operand or a.input, OPERANDS, "if matrix products read inputs as {}")


def _row(field: str, declared: str | None, known: tuple[str, ...], words: str) -> Row:
    least = math.inf if declared is None else formats.get(declared).precision
    narrower = sorted((f for f in known if formats.get(f).precision < least), key=lambda f: -formats.get(f).precision)
    return Row(field, tuple(Change({field: f}, words.format(f)) for f in narrower))


def _buffers(a: Arithmetic, keys: int, queries: int) -> Iterator[Row]:
    for field, tile, length, words in (
        ("dq_accumulate", "tile", keys, "if dQ is accumulated in {} over {} tile{}"),
        ("dkv_accumulate", "query_tile", queries, "if dK and dV are accumulated in {} over {} tile{}"),
    ):
        own = getattr(a, field) or a.accumulate
        for f in (f for f in dict.fromkeys(("float32", "float16", a.input)) if _narrower(f, own)):
            counts = [t for t in TILES if t <= length]
            changes = [Change({field: f, tile: -(-length // t)}, words.format(f, t, "s" * (t > 1))) for t in counts]
            yield Row(f"{field} {f}", tuple(changes))


def _narrower(f: str, than: str) -> bool:
    return formats.get(f).precision < formats.get(than).precision


def _switches(a: Arithmetic) -> Iterator[Row]:
    for field, words in (
        ("flush_to_zero", "if subnormal results become 0"),
        ("folded", "if the scale is folded into the exponent"),
        ("expand_heads", "if dK and dV are rounded once per query head"),
    ):
        if not getattr(a, field):
            yield Row(field, (Change({field: True}, words),))
    if a.algorithm != "log":
        words = "if weights are exponentials of scores less the rounded LSE (algorithm 'log')"
        yield Row("algorithm", (Change(LOG, words),))
    if a.probability is not None and not a.sum_from_cast:
        yield Row("sum_from_cast", (Change({"sum_from_cast": True}, "if the row sum adds the rounded weights"),))
    if "accumulate" not in a.truncate:
        yield Row("truncate", (Change({"truncate": (*a.truncate, "accumulate")}, "if additions truncate"),))


def _counts(a: Arithmetic, keys: int, queries: int) -> Iterator[Row]:
    before = [Change({"scale_before": k}, f"if {said} is multiplied by the scale beforehand and rounded")
              for k, said in ((1, "Q or K"), (2, "each of Q and K")) if k > a.scale_before]  # fmt: skip
    yield Row("scale_before", tuple(before))
    yield Row("scalar_roundings", _roundings(a.scalar_roundings, "scalar_roundings", "computed scalars"))
    yield Row("shift_roundings", _roundings(a.shift_roundings, "shift_roundings", "the row maximum"))
    tiles = [Change({"tile": -(-keys // t)}, f"if there are {t} tiles of keys") for t in TILES if a.tiles(keys) < t <= keys]
    yield Row("tile", tuple(tiles))
    if a.depth is not None:
        deeper = [a.depth * k for k in (2, 4, 8, 16) if a.depth * k < max(keys, queries)]
        changes = [Change({"depth": k}, f"if a sum is up to {k} additions deep") for k in deeper]
        yield Row("depth", (*changes, Change({"depth": None}, "if sums are in any order")))


def _roundings(declared: int, field: str, of: str) -> tuple[Change, ...]:
    return tuple(Change({field: k}, f"if {of} {'is' if of.startswith('the') else 'are'} rounded {k} times more")
                 for k in (1, 2, 4, 8) if k > declared)  # fmt: skip
