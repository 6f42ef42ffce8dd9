"""What must not change when a kernel is run again: on what nothing may read, on later keys, alone, twice, into a used buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from symattn.errors import KernelError, SymattnError
from symattn.fields import BY_LETTER
from symattn.formats import get as format_of
from symattn.intake import Array
from symattn.verify.kernels.base import Tensors
from symattn.verify.kernels.call import BY_FIELD
from symattn.verify.pack.laws import reads_visible_keys_only, unread
from symattn.verify.properties.finding import NOT_APPLICABLE, PropertyReport
from symattn.verify.properties.tried import Tried

__all__ = ["ROWS", "Rerun"]

POISONS = {"NaN": np.nan, "infinity": np.inf, "-infinity": -np.inf}
FEW = 4
"""How many sets of keys are tried."""


@dataclass(frozen=True)
class Rerun:
    """A property that is tried by running the kernel; ``tried`` gives the verdict, the reason, and the greatest share.

    ``counts`` is False of one that correct kernels are known not to have: it is reported alone.
    """

    name: str
    title: str
    tried: Callable[[Tried], tuple[str, str, float | None]]
    counts: bool = True

    def report(self, t: Tried) -> PropertyReport:
        """The verdict on a kernel; one that raises fails."""
        try:
            verdict, reason, share = self.tried(t)
        except KernelError as error:
            verdict, reason, share = "fail", str(error), None
        except SymattnError as error:
            verdict, reason, share = NOT_APPLICABLE, f"the kernel refuses such inputs: {error}", None
        case = "" if verdict == NOT_APPLICABLE else t.observed.case
        return PropertyReport(self.name, self.title, verdict, reason, case, share, self.counts)


def _same_bits(a: Array, b: Array) -> bool:
    return (
        a.dtype == b.dtype and a.shape == b.shape and (a.tobytes() == b.tobytes() or bool(np.array_equal(a, b, equal_nan=True)))
    )


# ---------------------------------------------------------------- twice
def _twice(t: Tried) -> tuple[str, str, float | None]:
    again = t.run(t.fields, t.has_gradients)
    differ = [n for n, a in t.first.items() if not _same_bits(a, again[n])]
    if not differ:
        return "pass", "", None
    n = differ[0]
    count = int((~((t.first[n] == again[n]) | (np.isnan(t.first[n].astype(float)) & np.isnan(again[n].astype(float))))).sum())
    return "fail", f"{', '.join(differ)} differ on a second run: {count} of {again[n].size} elements of {n}", None


# ---------------------------------------------------------------- keys that rows may not see
def _hidden_keys(t: Tried) -> Iterator[tuple[Array, Array]]:
    """Sets of keys with the rows that see none of them: Boolean (m,) and (n,), the same for all batch entries and heads."""
    seen: Array = np.any(t.keep, axis=(0, 1))
    found: dict[bytes, tuple[Array, Array]] = {}
    for i in range(seen.shape[0]):
        keys = ~seen[i]
        if keys.any() and seen[i].any():
            found.setdefault(keys.tobytes(), (keys, np.asarray(~seen[:, keys].any(axis=1) & seen.any(axis=1))))
    order = sorted(found.values(), key=lambda x: -int(x[0].sum()))
    yield from order[:: max(1, -(-len(order) // FEW))]


def _changed(t: Tried, keys: Array, change: Callable[[Array], Array]) -> dict[str, Array]:
    fields = dict(t.fields)
    for name in ("key", "value"):
        fields[name] = fields[name].copy()
        fields[name][:, :, keys] = change(fields[name][:, :, keys]).astype(fields[name].dtype)
    return fields


def _rows_off(t: Tried, before: Tensors, after: Tensors, rows: Array) -> tuple[float, str, bool]:
    """The greatest change of rows as a share of what two correct results may differ by; where; whether only to NaN and inf."""
    top, where, special = 0.0, "", True
    for n in ("out", "lse"):
        if n not in before or n not in after or n not in t.room:
            continue
        a, b = (x[n].astype(np.float64)[:, :, rows] for x in (before, after))
        room = 2 * t.reach(n)[:, :, rows]
        with np.errstate(all="ignore"):
            share = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(b - a) / room)
        lost = np.isfinite(a) & ~np.isfinite(b)
        share = np.where(lost & np.isfinite(room), np.inf, share)
        share = np.where(np.isnan(share), 0.0, share)
        special = special and not (share[~lost] > 1).any()
        if share.size and share.max() > top:
            at = np.unravel_index(int(share.argmax()), share.shape)
            index = [int(at[0]), int(at[1]), int(np.flatnonzero(rows)[at[2]]), *map(int, at[3:])]
            top, where = float(share.max()), f"{n}{index}".replace(" ", "")
    return top, where, special


def _reads_only_visible(t: Tried) -> str:
    if not {"query", "key", "value"} <= set(t.observed.situation.reference.call.sources):
        return "the definition does not start from query, key and value"
    if not reads_visible_keys_only(t.definition):
        return "the definition reads keys under no mask (their mean or their norm)"
    return "" if not t.keep.any(axis=(0, 1)).all() else "every row sees every key"


def _future(t: Tried) -> tuple[str, str, float | None]:
    if reason := _reads_only_visible(t):
        return NOT_APPLICABLE, reason, None
    top, r = 0.0, np.random.default_rng(0)
    for keys, rows in _hidden_keys(t):
        after = t.run(_changed(t, keys, lambda x: np.asarray(3 + 4 * r.normal(size=x.shape))), False)
        share, where, _ = _rows_off(t, t.first, after, rows)
        top = max(top, share)
        if share > 1:
            shown = ", ".join(map(str, np.flatnonzero(keys)[:6]))
            return (
                "fail",
                f"{where} changes with keys and values {shown}{' ...' if keys.sum() > 6 else ''}, which it may not see",
                top,
            )
    return "pass", "", top


def _poison(t: Tried) -> tuple[str, str, float | None]:
    """In keys and values that no row may see."""
    if reason := _reads_only_visible(t):
        return NOT_APPLICABLE, reason, None
    nobody = unread(t.observed.situation.reference.call)
    if not nobody.any():
        return NOT_APPLICABLE, "every key is seen by some row", None
    every = np.ones(t.keep.shape[2], bool)
    return _poisoned(t, [(lambda poison: _filled(t, nobody, poison), every)])


def _poison_rows(t: Tried) -> tuple[str, str, float | None]:
    """In keys and values that other rows see."""
    if reason := _reads_only_visible(t):
        return NOT_APPLICABLE, reason, None

    def filled(keys: Array) -> Callable[[float], dict[str, Array]]:
        return lambda poison: _changed(t, keys, lambda x: np.full(x.shape, poison))

    return _poisoned(t, [(filled(keys), rows) for keys, rows in _hidden_keys(t)])


def _poisoned(t: Tried, inputs: list[tuple[Callable[[float], dict[str, Array]], Array]]) -> tuple[str, str, float | None]:
    leaks: dict[str, str] = {}
    for fields, rows in inputs:
        for name, poison in POISONS.items():
            if np.isinf(poison) and not format_of(str(t.fields["key"].dtype)).infinities:
                continue
            share, where, special = _rows_off(t, t.first, t.run(fields(poison), False), rows)
            if share > 1 and not special:
                return "fail", f"{where} is another number where keys and values that it may not see are {name}", share
            if share > 1:
                leaks.setdefault(name, where)
    if leaks:
        first = next(iter(leaks.values()))
        return "suspect", f"{' and '.join(leaks)} in keys and values that {first} may not see reaches it", None
    return "pass", "", None


def _filled(t: Tried, where: Array, poison: float) -> dict[str, Array]:
    fields = dict(t.fields)
    for name in ("key", "value"):
        fields[name] = fields[name].copy()
        fields[name][where] = poison
    return fields


# ---------------------------------------------------------------- alone
def _alone(t: Tried) -> tuple[str, str, float | None]:
    call = t.observed.situation.reference.call
    if "query" not in call.sources:
        return NOT_APPLICABLE, "the definition does not start from query, key and value", None
    count = call.query.shape[0]
    if count == 1:
        return NOT_APPLICABLE, "the input has one batch entry", None
    top = 0.0
    for b in range(count):
        own = t.run({n: a[b : b + 1] if _per_batch(n, a, count) else a for n, a in t.fields.items()}, False)
        for n in ("out", "lse"):
            if n not in own or n not in t.room:
                continue
            whole, alone = t.first[n][b].astype(np.float64), own[n][0].astype(np.float64)
            with np.errstate(all="ignore"):
                share = np.where(
                    (whole == alone) | (np.isnan(whole) & np.isnan(alone)), 0, np.abs(whole - alone) / (2 * t.reach(n)[b])
                )
            share = np.where(np.isnan(share) & (np.isnan(whole) != np.isnan(alone)), np.inf, share)
            top = max(top, float(np.nan_to_num(share, nan=0.0, posinf=np.inf).max(initial=0.0)))
            if top > 1:
                return "fail", f"{n} of batch entry {b} is another one when that entry is computed alone", top
    return "pass", "", top


def _per_batch(name: str, a: Array, count: int) -> bool:
    """Whether the first axis of a field is that of the batch."""
    if a.ndim == 0 or a.shape[0] != count:
        return False
    row = BY_FIELD.get(name.removeprefix("grad_")) or (BY_LETTER["O"] if name == "grad_out" else None)
    if row is None:
        return False
    return row.axes.startswith("b") if row.axes not in ("", "*") else a.ndim == 4


# ---------------------------------------------------------------- into a buffer
def _buffer(t: Tried) -> tuple[str, str, float | None]:
    into = getattr(t.kernel, "forward_into", None)
    call = t.observed.situation.reference.call
    if into is None or not t.kernel.takes_out():  # type: ignore[attr-defined]
        return NOT_APPLICABLE, "the kernel takes no buffer out=", None
    for name, fill in (("NaN", np.nan), ("stale numbers", 7.0)):
        found = into(call, fill)["out"]
        if not _same_bits(found, t.first["out"]):
            return "fail", f"out is another one when its buffer holds {name} beforehand", None
    return "pass", "", None


ROWS: tuple[Rerun, ...] = (
    Rerun("twice", "the same bits on a second run", _twice),
    Rerun("alone", "a batch entry alone gives what it gives in the batch", _alone),
    Rerun("future", "no row changes with keys and values that it may not see", _future),
    Rerun("poison", "NaN and infinity in keys and values that no row may see reach none", _poison),
    Rerun(
        "poison-rows", "NaN and infinity in keys and values of other rows alone do not reach a row", _poison_rows, counts=False
    ),
    Rerun("buffer", "what the output buffer held before does not matter", _buffer),
)
"""In the order of reports."""
