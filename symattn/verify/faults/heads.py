"""Faults of heads, batches and layouts: grouping, transposes that were forgotten, axes that were mixed up, wrong strides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import sympy as sp

from symattn.definition import Definition
from symattn.indexed import name_of, tensor
from symattn.intake import Array
from symattn.program import Program, Statement
from symattn.verify.faults.fault import Alternative, Fault, Prediction, Predictions, Situation
from symattn.verify.faults.predict import predictions
from symattn.verify.faults.results import labelled
from symattn.verify.faults.structure import I, J, fresh, softmax_of
from symattn.verify.reference import Reference

Rewrite = Callable[[Situation], Iterator[Alternative]]
EXCHANGED = 8
"""Heads of which two neighbours are tried in each other's place."""
SOURCES = ("query", "key", "value")


def starts_from_qkv(s: Situation) -> bool:
    """Whether the definition reads query, key and value of four axes each."""
    return s.definition.form == "softmax" and all(n in s.fields and np.ndim(s.fields[n]) == 4 for n in SOURCES)


def _tiled(s: Situation) -> Iterator[Alternative]:
    h, kv = s.sizes.get("H", 1), s.sizes.get("HKV", 1)
    if kv not in (1, h) and s.definition.form == "softmax":
        other = "interleaved" if s.definition.grouping == "tiled" else "tiled"
        yield from s.changed("", grouping=other)


def places(a: Array) -> Array:
    """The positions of an array's elements."""
    return np.arange(a.size).reshape(a.shape)


def _axis(names: tuple[str, ...], axis: int, order: Callable[[int], Array]) -> Rewrite:
    """Some sources read in another order of one of their axes."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if not starts_from_qkv(s):
            return
        found = {n: np.take(places(s.fields[n]), order(s.fields[n].shape[axis]), axis=axis) for n in names}
        if all(s.fields[n].shape[axis] > 1 for n in names):
            yield Alternative(reads=found)

    return rewrite


def expanded(s: Situation) -> Definition:
    """The definition with a key/value head of its own for every query head."""
    h = s.sizes["H"]
    return s.definition.replace(heads=h, kv_heads=h, grouping="interleaved")


def _repeated_rows(s: Situation) -> Iterator[Alternative]:
    """The sequence repeated in place of the heads, then cut into heads: head r of a group reads key (r m + j) // g."""
    h, kv, m = s.sizes.get("H", 1), s.sizes.get("HKV", 1), s.sizes.get("M", 1)
    if not starts_from_qkv(s) or kv == h or s.definition.grouping != "interleaved":
        return
    g = h // kv
    row = (np.arange(h)[:, None] % g * m + np.arange(m)[None, :]) // g
    reads = {n: places(s.fields[n])[:, np.arange(h)[:, None] // g, row] for n in ("key", "value")}
    yield Alternative(definition=expanded(s), reads=reads)


def _split(s: Situation) -> Iterator[Alternative]:
    """The memory of (n, H, d) read as (H, n, d), or the other way round, of inputs, or of inputs and output."""
    if not starts_from_qkv(s):
        return

    def viewed(a: Array) -> Array:  # (B, H, n, d) read out of memory that holds (B, n, H, d)
        b, h, n, d = a.shape
        return places(a).swapaxes(1, 2).reshape(b, h, n, d)

    def back(a: Array) -> Array:
        b, h, n, d = a.shape
        return places(a).reshape(b, n, h, d).swapaxes(1, 2)

    b, h, n, _ = s.fields["query"].shape
    out = np.empty((b, h, n, s.fields["value"].shape[-1]))
    for label, of in (("memory of (n, H, d) as (H, n, d)", viewed), ("memory of (H, n, d) as (n, H, d)", back)):
        reads = {x: of(s.fields[x]) for x in SOURCES}
        yield Alternative(f"{label}, inputs", reads=reads)
        yield Alternative(f"{label}, queries", reads={"query": reads["query"]})
        yield Alternative(f"{label}, inputs and output alike", reads=reads, writes={"out": of(out)})
        inverse = back if of is viewed else viewed
        yield Alternative(f"{label}, inputs, and the output back", reads=reads, writes={"out": inverse(out)})
        yield Alternative(f"{label}, output", writes={"out": of(out)})


def _over_heads(s: Situation) -> Iterator[Alternative]:
    """Every position attends over its own heads: batch and position change places with heads."""
    given = {"query", "key", "value", "grad_out", "grad_lse"}
    if not starts_from_qkv(s) or s.sizes["N"] != s.sizes["M"] or set(s.fields) - given:
        return
    d = s.definition.replace(heads=None, kv_heads=None)
    fields = {n: np.ascontiguousarray(np.swapaxes(x, 1, 2)) for n, x in s.fields.items()}
    saved = None if s.saved is None else {n: np.ascontiguousarray(np.swapaxes(x, 1, 2)) for n, x in s.saved.items()}

    def compute(forward: bool, backward: bool) -> Predictions:
        other = Situation(Reference(d, fields), s.arithmetic, saved, s.with_lse)
        found = predictions(other, forward=forward, backward=backward)
        return {n: Prediction(np.swapaxes(p.value, 1, 2), np.swapaxes(p.reach, 1, 2)) for n, p in found.items()}

    yield Alternative(compute=compute)


def _joint(s: Situation) -> Iterator[Alternative]:
    """One softmax over heads and keys together."""
    found = softmax_of(s.program)
    if found is None or s.definition.sink or not isinstance(found.shift, sp.Indexed) or not isinstance(found.score, sp.Indexed):
        return
    batch = s.bound.axes.batch
    heads = [a for a in found.weight.indices if a not in (I, J) and not (batch and a == found.weight.indices[0])]
    if not heads or s.sizes.get("H", 1) < 2:
        return
    yield Alternative(program=jointly(s.program, tuple(heads)))


def jointly(program: Program, over: tuple[sp.Symbol, ...]) -> Program:
    """The program with its softmax normalised over further indices too."""
    found = softmax_of(program)
    assert found is not None
    rest = tuple(a for a in found.weight.indices if a not in (J, *over))
    top, total = fresh(program, "mall"), fresh(program, "lall")
    m, divisor, e = (program[name_of(x)] for x in (found.shift, found.normalisation.divisor, found.normalisation.numerator))
    new = [
        Statement(tensor(top, *rest), found.shift, over, "max", range_only=True, aux=True),
        Statement(tensor(total, *rest), divisor.target, over, aux=True),
    ]
    out: list[Statement] = []
    for s in program:
        if s.name == e.name:
            out += [new[0], replace(s, expr=s.expr.xreplace({m.target: tensor(top, *rest)}))]
        elif s.name == divisor.name:
            out += [s, new[1]]
        elif divisor.name in s.needs:
            out.append(replace(s, expr=s.expr.xreplace({divisor.target: tensor(total, *rest), m.target: tensor(top, *rest)})))
        else:
            out.append(s)
    return program.with_statements(out)


def other_heads(s: Situation) -> Iterator[tuple[str, Array]]:
    """What is given per query head read at other heads: for each the head that is read in its place, under a label."""
    h, kv = s.sizes.get("H", 1), s.sizes.get("HKV", 1)
    order = np.arange(h)
    pairs = order[: h // 2 * 2].reshape(-1, 2)[:, ::-1].ravel()
    found = [
        ("the first for all", 0 * order),
        ("the last for all", np.full_like(order, h - 1)),
        ("in reverse order", order[::-1]),
        ("heads in the other grouping", order.reshape(kv, h // kv).T.ravel()),
        ("heads in the other grouping, the other way round", order.reshape(h // kv, kv).T.ravel()),
        ("that of the key/value head", order % kv if s.definition.grouping == "tiled" else order // (h // kv)),
        ("the next one", np.roll(order, -1)),
        ("the one before", np.roll(order, 1)),
        ("neighbours exchanged", np.concatenate([pairs, order[len(pairs) :]])),
    ]
    for k in range(min(h, EXCHANGED) - 1):
        at = order.copy()
        at[[k, k + 1]] = k + 1, k
        found.append((f"heads {k} and {k + 1} exchanged", at))
    yield from ((label, at) for label, at in found if (at != order).any())


def _shift(k: int) -> Callable[[int], Array]:
    return lambda n: np.roll(np.arange(n), k)


def _first(n: int) -> Array:
    return np.zeros(n, int)


def _last(n: int) -> Array:
    return np.full(n, n - 1)


def _reverse(n: int) -> Array:
    return np.arange(n)[::-1]


KV = ("key", "value")
ROWS = (
    Fault(
        "F01", "key/value head of a query head by the other grouping (h mod H_kv for h // g)", "convention",
        "kv(h) = h mod H_kv",
        "kv(h) = h // (H/H_kv)", _tiled, threads=("onnx#7274", "axlearn#842"),
        look="tile or repeat where repeat_interleave is meant", shows="1 < H_kv < H", blind="H_kv = 1 or H_kv = H",
        convention="grouping",
    ),
    Fault(
        "F04", "the sequence is repeated in place of the key/value heads", "mathematics", "k[h // g, (r*m + j) // g]",
        "k[h // g, j]",
        _repeated_rows, threads=("prime-rl#2681",), look="the axis of repeat_interleave", shows="H_kv < H", blind="H_kv = H",
    ),
    Fault(
        "F02", "heads split or merged without the transpose", "mathematics", "flat[(h*n + i)*d + c]", "flat[(i*H + h)*d + c]",
        _split,
        threads=("onnx#7142", "FuxiCTR#30", "QAnet-pytorch#2"), look="view or reshape where transpose and reshape are meant",
        shows="H > 1 and n > 1", blind="H = 1 or n = 1",
    ),
    Fault(
        "F03", "axes swapped: every position attends over its heads", "mathematics", "softmax over h' of q[i,h].k[i,h']",
        "softmax over j of q[h,i].k[h,j]", _over_heads, threads=("FoundationStereo#217",),
        look="the order of the axes, bshd or bhsd",
        shows="n = m", blind="n = 1 and H = 1",
    ),
    Fault(
        "F39", "one softmax over heads and keys together", "mathematics", "sum over h, j of P = 1", "sum over j of P = 1",
        _joint,
        threads=("detr#247",), look="the axes of the softmax", shows="H > 1", blind="H = 1",
    ),
    Fault(
        "F93", "keys and values of the wrong batch entry", "mathematics", "k[b'], v[b']", "k[b], v[b]",
        labelled(
            ("the first one for all", _axis(KV, 0, _first)), ("the last one for all", _axis(KV, 0, _last)),
            ("the next one", _axis(KV, 0, _shift(-1))), ("the one before", _axis(KV, 0, _shift(1))),
            ("keys alone, the first one for all", _axis(("key",), 0, _first)),
            ("values alone, the first one for all", _axis(("value",), 0, _first)),
            ("keys alone, exchanged", _axis(("key",), 0, _shift(1))), ("values alone, exchanged", _axis(("value",), 0,
            _shift(1))),
        ), look="the batch stride of K and V", shows="B > 1", blind="B = 1",
    ),
    Fault(
        "F94", "keys and values of the wrong key/value head", "mathematics", "k[kv'], v[kv']", "k[kv(h)], v[kv(h)]",
        labelled(
            ("the first one for all", _axis(KV, 1, _first)), ("the last one for all", _axis(KV, 1, _last)),
            ("the next one", _axis(KV, 1, _shift(-1))), ("the one before", _axis(KV, 1, _shift(1))),
            ("in reverse order", _axis(KV, 1, _reverse)),
            ("keys alone, the first one for all", _axis(("key",), 1, _first)),
            ("values alone, the first one for all", _axis(("value",), 1, _first)),
            ("keys alone, the next one", _axis(("key",), 1, _shift(-1))), ("values alone, the next one", _axis(("value",), 1,
            _shift(-1))),
        ), look="the head stride of K and V", shows="H_kv > 1", blind="H_kv = 1",
    ),
    Fault(
        "F95", "queries of the wrong head or batch entry", "mathematics", "q[b', h']", "q[b, h]",
        labelled(
            ("the first head for all", _axis(("query",), 1, _first)), ("the next head", _axis(("query",), 1, _shift(-1))),
            ("the first batch entry for all", _axis(("query",), 0, _first)),
            ("the next batch entry", _axis(("query",), 0, _shift(-1))),
        ), look="the strides of Q", shows="B > 1 and H > 1",
    ),
)  # fmt: skip
