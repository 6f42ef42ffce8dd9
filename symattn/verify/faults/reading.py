"""Faults of reading and writing: shifted, reversed or exchanged keys, values, channels and rows; what is never written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import sympy as sp

from symattn.indexed import index
from symattn.intake import Array
from symattn.verify.faults.fault import Alternative, Fault, Prediction, Predictions, Situation
from symattn.verify.faults.heads import places, starts_from_qkv
from symattn.verify.faults.leaking import TILES
from symattn.verify.faults.predict import predictions
from symattn.verify.faults.results import labelled, multiplied, zeroed
from symattn.verify.faults.structure import J, also

Rewrite = Callable[[Situation], Iterator[Alternative]]
_C = index("c")


def _moved(name: str, by: int, *, wraps: bool) -> Rewrite:
    """The keys (or values) one after or before; what is beyond the end is 0, or the other end."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if not starts_from_qkv(s) or s.fields[name].shape[2] < 2:
            return
        at = np.roll(places(s.fields[name]), -by, axis=2)
        if not wraps:
            at[:, :, -1 if by > 0 else 0] = -1
        yield Alternative(reads={name: at})

    return rewrite


def _reordered(name: str, axis: int, order: Callable[[int], Array]) -> Rewrite:
    def rewrite(s: Situation) -> Iterator[Alternative]:
        if starts_from_qkv(s) and s.fields[name].shape[axis] > 1:
            a = s.fields[name]
            yield Alternative(reads={name: np.take(places(a), order(a.shape[axis]), axis=axis)})

    return rewrite


def _clamped(name: str, by: int) -> Rewrite:
    """The keys (or values) one after or before; the one at the end is read twice."""
    return _reordered(name, 2, lambda n: np.clip(np.arange(n) + by, 0, n - 1))


def _averaged(s: Situation) -> Iterator[Alternative]:
    """The outputs of several splits of the keys, averaged without their weights; splits without keys are none."""
    m = s.sizes.get("M", 0)
    if not starts_from_qkv(s) or m < 2:
        return
    for count in (2, 4, 8):
        part = -(-m // count)

        def after(at: Situation, p: Predictions, part: int = part) -> Predictions:
            if "out" not in p:
                return p
            starts = range(0, m, part)
            value, reach = np.zeros_like(p["out"].value), np.zeros_like(p["out"].reach)
            for start in starts:
                where = (sp.Ge(J, start), sp.Lt(J, start + part))
                found = predictions(at, Alternative(edit=also(*where)))["out"]
                value, reach = value + found.value / len(starts), reach + found.reach / len(starts)
            return {**p, "out": Prediction(value, reach)}

        yield Alternative(f"{count} splits", after=after)


def exchanged(first: str, second: str) -> Rewrite:
    """Two inputs of the same shape exchanged, and so their gradients."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if not starts_from_qkv(s) or s.fields[first].shape != s.fields[second].shape:
            return

        def after(_: Situation, p: Predictions) -> Predictions:
            a, b = "grad_" + first, "grad_" + second
            return {**p, a: p[b], b: p[a]} if a in p and b in p else p

        yield Alternative(fields={first: s.fields[second], second: s.fields[first]}, after=after)

    return rewrite


def _value_is_key(s: Situation) -> Iterator[Alternative]:
    if starts_from_qkv(s) and s.fields["key"].shape == s.fields["value"].shape:

        def after(_: Situation, p: Predictions) -> Predictions:
            return {n: x for n, x in p.items() if n not in ("grad_key", "grad_value")}

        yield Alternative(fields={"value": s.fields["key"]}, after=after)


def _channels(s: Situation) -> Iterator[Alternative]:
    """Scores over the first channels alone."""
    d, name = s.sizes.get("D", 0), "R"
    if name not in s.program or _C not in s.program[name].over:
        return
    for label, kept in (("the last one left out", d - 1), *((f"beyond a multiple of {k}", d // k * k) for k in (2, 4, 8, 16))):
        if 0 < kept < d:
            changed = [replace(x, where=sp.And(x.where, sp.Lt(_C, kept))) if x.name == name else x for x in s.program]
            yield Alternative(label, program=s.program.with_statements(changed))
    if d > 1:
        changed = [replace(x, where=sp.And(x.where, sp.Ge(_C, 1))) if x.name == name else x for x in s.program]
        yield Alternative("the first one left out", program=s.program.with_statements(changed))


def _unwritten(s: Situation) -> Iterator[Alternative]:
    """The last rows, or the last channels, of the output stay 0."""
    n, dv = s.sizes.get("N", 0), s.sizes.get("DV", 0)
    if n > 1:
        yield Alternative("the last row", after=zeroed(("out",), (..., slice(n - 1, n), slice(None))))
    for tile in TILES:
        if 0 < n // tile * tile < n:
            yield Alternative(
                f"rows beyond tiles of {tile}",
                after=zeroed(("out",), (..., slice(n // tile * tile, n), slice(None))),
            )
    for label, kept in (
        ("the last channel", dv - 1),
        *((f"channels beyond a multiple of {k}", dv // k * k) for k in (2, 4, 8, 16)),
    ):
        if 0 < kept < dv:
            yield Alternative(label, after=zeroed(("out",), (..., slice(kept, dv))))


def _written_elsewhere(s: Situation) -> Iterator[Alternative]:
    """Rows, heads or channels of the output at each other's places."""
    if not starts_from_qkv(s):
        return
    b, h, n, _ = s.fields["query"].shape
    out = np.empty((b, h, n, s.fields["value"].shape[-1]))
    for label, axis in (("the rows", 2), ("the heads", 1), ("the channels", 3), ("the batch entries", 0)):
        if out.shape[axis] > 1:
            yield Alternative(f"{label} in reverse order", writes={"out": np.flip(places(out), axis)})
            yield Alternative(f"{label} moved by one", writes={"out": np.roll(places(out), 1, axis)})
            if out.shape[axis] > 2:
                yield Alternative(f"{label} moved back by one", writes={"out": np.roll(places(out), -1, axis)})


def _factored(factor: Callable[[Situation], dict[str, float]]) -> Rewrite:
    def rewrite(s: Situation) -> Iterator[Alternative]:
        for label, f in factor(s).items():
            yield Alternative(label, after=multiplied(("out",), f))

    return rewrite


def _output_factors(s: Situation) -> dict[str, float]:
    d, m = s.sizes.get("D", 1), s.sizes.get("M", 1)
    g = s.sizes.get("H", 1) // s.sizes.get("HKV", 1)
    found = {
        "1/sqrt(d)": d**-0.5,
        "sqrt(d)": d**0.5,
        "1/m": 1 / m,
        "2": 2.0,
        "1/2": 0.5,
        "-1": -1.0,
        "0": 0.0,
        "1/g": 1 / g,
        "g": float(g),
    }
    once: dict[float, str] = {}
    for label, f in found.items():
        once.setdefault(f, label)
    return {label: f for f, label in once.items() if f != 1}


def _reverse(n: int) -> Array:
    return np.arange(n)[::-1]


def _first(n: int) -> Array:
    return np.zeros(n, int)


ROWS = (
    Fault(
        "F96", "values shifted against the keys", "mathematics", "v[j + 1] or v[j - 1]", "v[j]",
        labelled(
            ("by one, 0 beyond the end", _moved("value", 1, wraps=False)), ("back by one, 0 before the start", _moved("value",
            -1, wraps=False)),
            ("by one, around", _moved("value", 1, wraps=True)), ("back by one, around", _moved("value", -1, wraps=True)),
            ("by one, the last twice", _clamped("value", 1)),
            ("back by one, the first twice", _clamped("value", -1)), ("in reverse order", _reordered("value", 2, _reverse)),
            ("the first one for all", _reordered("value", 2, _first)),
        ), look="the start of the tile of V", shows="m > 1",
    ),
    Fault(
        "F97", "keys shifted against the values and the mask", "mathematics", "k[j + 1] or k[j - 1]", "k[j]",
        labelled(
            ("by one, 0 beyond the end", _moved("key", 1, wraps=False)), ("back by one, 0 before the start", _moved("key", -1,
            wraps=False)),
            ("by one, around", _moved("key", 1, wraps=True)), ("back by one, around", _moved("key", -1, wraps=True)),
            ("by one, the last twice", _clamped("key", 1)),
            ("back by one, the first twice", _clamped("key", -1)), ("in reverse order", _reordered("key", 2, _reverse)),
        ), look="the start of the tile of K", shows="m > 1",
    ),
    Fault(
        "F98", "queries shifted", "mathematics", "q[i + 1] or q[i - 1]", "q[i]",
        labelled(
            ("by one, 0 beyond the end", _moved("query", 1, wraps=False)), ("back by one, 0 before the start", _moved("query",
            -1, wraps=False)),
            ("by one, around", _moved("query", 1, wraps=True)), ("back by one, around", _moved("query", -1, wraps=True)),
            ("in reverse order", _reordered("query", 2, _reverse)), ("the first one for all", _reordered("query", 2, _first)),
        ), look="the start of the tile of Q", shows="n > 1",
    ),
    Fault(
        "F99", "keys and values exchanged", "mathematics", "softmax(q.v) k", "softmax(q.k) v", exchanged("key", "value"),
        look="the order of the arguments", shows="d = dv",
    ),
    Fault(
        "F100", "queries and keys exchanged", "mathematics", "softmax(k.q) v", "softmax(q.k) v", exchanged("query", "key"),
        look="the order of the arguments", shows="n = m and H = H_kv",
    ),
    Fault(
        "F101", "the keys are averaged in place of the values", "mathematics", "P k", "P v", _value_is_key,
        look="the operand of the second product",
        shows="d = dv",
    ),
    Fault(
        "F102", "channels are missing in the score", "mathematics", "sum over some c of q[c] k[c]", "sum over all c",
        _channels,
        look="the end of the loop over the channels, vector widths", shows="d no multiple of the vector width",
    ),
    Fault(
        "F161", "splits of the keys are averaged without their weights", "mathematics", "mean over r of O_r",
        "sum over r of exp(L_r - L) O_r",
        _averaged, look="the merge of the splits", shows="keys in several splits",
    ),
    Fault(
        "F103", "a part of the output is not written and stays 0", "mathematics", "0", "o[i, e]", _unwritten,
        look="the bounds of the store", shows="n or dv no multiple of the tile",
    ),
    Fault(
        "F104", "the output is written to the wrong place", "mathematics", "o[i']", "o[i]", _written_elsewhere,
        look="the strides of the output", shows="several rows, heads and channels",
    ),
    Fault(
        "F105", "the output is multiplied by a constant", "mathematics", "f*P v", "P v", _factored(_output_factors),
        look="factors after the second product",
    ),
)  # fmt: skip
