"""Rewritings of the list of gradients: what the rows of :mod:`symattn.verify.faults.backward` mean."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

import numpy as np
import sympy as sp

from symattn.indexed import name_of
from symattn.intake import Array
from symattn.program import Program, Statement
from symattn.verify.faults.fault import Alternative, Edit, Prediction, Predictions, Situation
from symattn.verify.faults.heads import expanded, places, starts_from_qkv
from symattn.verify.faults.predict import predictions
from symattn.verify.faults.results import multiplied, times, zeroed
from symattn.verify.faults.scaling import scale_number
from symattn.verify.faults.structure import I, J, rewritten

Rewrite = Callable[[Situation], Iterator[Alternative]]
Q, K, V = ("grad_query",), ("grad_key",), ("grad_value",)


def changed(change: Callable[[Statement], Statement], *, when: Callable[[Statement], bool]) -> Edit:
    """The rewriting of some statements of the gradient's list."""
    return lambda p: rewritten(p, lambda s: change(s) if when(s) else s)


def to_query(s: Statement) -> bool:
    """Whether a statement sums the gradient of the score over the keys: it gives dQ, or what dQ follows from."""
    return J in s.over and I in s.indices and _is_product_with_gradient(s) and not _reads_values(s)


def to_key(s: Statement) -> bool:
    """Whether it sums it over the queries: dK, or what dK follows from."""
    return I in s.over and J in s.indices and _is_product_with_gradient(s) and not _reads_output_gradient(s)


def to_value(s: Statement) -> bool:
    """Whether it sums weights and incoming gradients over the queries: dV."""
    return I in s.over and J in s.indices and _reads_output_gradient(s)


def _is_product_with_gradient(s: Statement) -> bool:
    """A sum of products in which one operand is over queries and keys."""
    return s.reduce == "sum" and any({I, J} <= r.free_symbols for r in s.reads) and s.name.startswith("d")


def _reads_values(s: Statement) -> bool:
    return any(name_of(r) == "V" for r in s.reads)


def _reads_output_gradient(s: Statement) -> bool:
    return any(name_of(r) == "dO" for r in s.reads)


def row_terms(p: Program) -> dict[str, list[str]]:
    """What is taken off the gradient of the weights in every row (D): name -> the statements over (i, j) that read it."""
    found: dict[str, list[str]] = {}
    for s in p:
        if s.over or not {I, J} <= set(s.indices):
            continue
        for f in sp.Mul.make_args(s.expr):
            for t in sp.Add.make_args(f) if f.is_Add else ():
                x = -t
                if isinstance(x, sp.Indexed) and J not in x.free_symbols and I in x.free_symbols and name_of(x) in p:
                    found.setdefault(name_of(x), []).append(s.name)
    return found


def with_row_term(change: Callable[[sp.Expr], sp.Expr]) -> Edit:
    """The rewriting of D where it is read, in every statement."""

    def edit(p: Program) -> Program:
        names = set(row_terms(p))

        def through(e: sp.Expr) -> sp.Expr:
            return e.xreplace({r: change(r) for r in e.atoms(sp.Indexed) if name_of(r) in names})

        return rewritten(p, lambda s: s if s.name in names else replace(s, expr=through(s.expr)))

    return edit


def row_term(change: Callable[[Situation], sp.Expr | None]) -> Rewrite:
    """D multiplied by a factor."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        f = change(s)
        if s.has_gradient and f is not None and row_terms(s.backward):
            yield Alternative(gradient=with_row_term(lambda d: f * d))

    return rewrite


def scaled(names: Collection[str], factor: Callable[[Situation], dict[str, float]]) -> Rewrite:
    """Gradients multiplied by a number."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        for label, f in factor(s).items():
            if f != 1:
                yield Alternative(label, after=multiplied(names, f))

    return rewrite


def _without_scale(s: Situation) -> dict[str, float]:
    if "scale" not in s.program or s.definition.qk_norm is not None:
        return {}
    c = scale_number(s)
    return {"": 1 / c} if c else {}


def _scale_twice(s: Situation) -> dict[str, float]:
    found = _without_scale(s)
    return {"": 1 / f} if (f := found.get("")) else {}


def unscaled(names: tuple[str, ...]) -> Rewrite:
    """Gradients without the scale."""
    return _with_gradient(scaled(names, _without_scale))


def scaled_twice(names: tuple[str, ...]) -> Rewrite:
    """Gradients with the scale twice."""
    return _with_gradient(scaled(names, _scale_twice))


def _with_gradient(rewrite: Rewrite) -> Rewrite:
    return lambda s: rewrite(s) if s.has_gradient else iter(())


def logarithms(s: Situation) -> Iterator[Alternative]:
    """A factor ln 2 or log2(e) in dQ, dK or both."""
    if not s.has_gradient or s.definition.form != "softmax":
        return
    for what, names in (("dQ", Q), ("dK", K), ("dQ and dK", Q + K)):
        for word, f in (("log2(e)", 1 / np.log(2)), ("ln 2", np.log(2))):
            yield Alternative(f"{what} times {word}", after=multiplied(names, f))


def groups(s: Situation) -> Iterator[Alternative]:
    """Sums over a group that take one query head, or the mean."""
    g = s.sizes.get("H", 1) // max(1, s.sizes.get("HKV", 1))
    if not s.has_gradient or g < 2:
        return
    for label, one in (("the last one", g - 1), ("the first one", 0)):
        yield Alternative(label, gradient=_one_of_group(s, one))
    yield from (replace(a, label="the mean") for a in scaled(K + V, lambda _: {"": 1 / g})(s))


def _heads_of(s: Situation) -> set[str]:
    """The names of the index that runs through a group of query heads."""
    return {"g"} if s.sizes.get("HKV", 1) > 1 else {"h"}


def _one_of_group(s: Situation, one: int) -> Edit:
    names = _heads_of(s)

    def change(x: Statement) -> Statement:
        group = [a for a in x.over if a.name in names]
        return replace(x, where=sp.And(x.where, sp.Eq(group[0], one))) if group else x

    return changed(change, when=lambda x: I in x.over and J in x.indices)


def wrong_group(s: Situation) -> Iterator[Alternative]:
    """DK and dV of a query head added to the key/value head of the other grouping; scores are right."""
    h, kv = s.sizes.get("H", 1), s.sizes.get("HKV", 1)
    if not s.has_gradient or not starts_from_qkv(s) or kv in (1, h):
        return
    heads = np.arange(h)
    div, mod = heads // (h // kv), heads % kv
    right, other = (mod, div) if s.definition.grouping == "tiled" else (div, mod)
    reads = {n: places(s.fields[n])[:, right] for n in ("key", "value")}
    scatters = {n: places(s.fields[n])[:, other] for n in ("key", "value")}
    yield Alternative(definition=expanded(s), reads=reads, scatters=scatters)


def only(name: str, change: Callable[[Prediction], Prediction], label: str = "") -> Rewrite:
    """One gradient changed."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if s.has_gradient and name.removeprefix("grad_") in s.fields:
            yield Alternative(label, after=lambda _, p: {**p, name: change(p[name])} if name in p else p)

    return rewrite


def of_some(names: tuple[str, ...], axis: int, take: Callable[[int], Array], divide: bool = False) -> Rewrite:
    """A gradient that is summed over a part of the batch (or the heads, the rows) alone; the others are right.

    A gradient is linear in the incoming ones, so that it is computed from those that are taken.
    """

    def rewrite(s: Situation) -> Iterator[Alternative]:
        found = [n for n in names if n in s.fields]
        if not s.has_gradient or not found or s.fields["grad_out"].shape[axis] < 2:
            return

        def after(_: Situation, p: Predictions) -> Predictions:
            if not any(n.startswith("grad_") for n in p):
                return p
            count = s.fields["grad_out"].shape[axis]
            dropped = np.setdiff1d(np.arange(count), take(count))
            other = dict(s.fields)
            for n in ("grad_out", "grad_lse"):
                if n in other:
                    other[n] = np.array(other[n], copy=True)
                    other[n][(slice(None),) * axis + (dropped,)] = 0
            part = predictions(
                s, Alternative(fields={n: other[n] for n in ("grad_out", "grad_lse") if n in other}), forward=False, backward=True
            )
            return {
                **p,
                **{"grad_" + n: times(part["grad_" + n], 1 / count if divide else 1) for n in found if "grad_" + n in part},
            }

        yield Alternative(after=after)

    return rewrite


def whole(n: int) -> Array:
    """All of an axis."""
    return np.arange(n)


def last_one(n: int) -> Array:
    """The last of an axis."""
    return np.array([n - 1])


def first_one(n: int) -> Array:
    """The first of an axis."""
    return np.array([0])


def lse_gradient(factor: float) -> Rewrite:
    """The incoming gradient of the log-sum-exp multiplied by a number."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if s.has_gradient and s.with_lse and "grad_lse" in s.fields:
            a = s.fields["grad_lse"]
            yield Alternative(fields={"grad_lse": (a * np.asarray(factor, a.dtype)).astype(a.dtype)})

    return rewrite


def swapped(a: str, b: str) -> Rewrite:
    """Two gradients of the same shape exchanged."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if s.has_gradient and starts_from_qkv(s) and s.fields[a].shape == s.fields[b].shape:
            x, y = "grad_" + a, "grad_" + b
            yield Alternative(after=lambda _, p: {**p, x: p[y], y: p[x]} if x in p and y in p else p)

    return rewrite


def incoming(order: Callable[[Array], Array]) -> Rewrite:
    """The incoming gradient of the output read at other places."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if s.has_gradient and s.fields["grad_out"].ndim == 4:
            at = order(places(s.fields["grad_out"]))
            if (at != places(s.fields["grad_out"])).any():
                yield Alternative(fields={"grad_out": s.fields["grad_out"].ravel()[at]})

    return rewrite


def _row_term_of(other: Callable[[sp.Expr], sp.Expr]) -> Rewrite:
    def rewrite(s: Situation) -> Iterator[Alternative]:
        if s.has_gradient and row_terms(s.backward):
            yield Alternative(gradient=with_row_term(other))

    return rewrite


def constant_factors(s: Situation) -> Iterator[Alternative]:
    """A gradient, or all of them, multiplied by -1, 2, 1/2 or 0."""
    for what, names in (("dQ", Q), ("dK", K), ("dV", V), ("all", Q + K + V)):
        for word, f in (("-1", -1.0), ("2", 2.0), ("1/2", 0.5), ("0", 0.0)):
            if s.has_gradient:
                yield Alternative(f"{what} times {word}", after=multiplied(names, f))


def bias_factors(s: Situation) -> Iterator[Alternative]:
    """The gradient of a bias, a mask or slopes multiplied by the scale, by its inverse, by 0 or -1."""
    c = scale_number(s) or 1.0
    for name in ("bias", "attn_mask", "alibi_slopes"):
        for label, f in (("the scale", c), ("1/scale", 1 / c), ("0", 0.0), ("-1", -1.0)):
            if f != 1 and s.has_gradient and name in s.fields and s.fields[name].dtype.kind not in "biu":
                yield Alternative(f"{name}, {label}", after=multiplied(("grad_" + name,), f))


def tail(names: tuple[str, ...], axis: int) -> Rewrite:
    """The last rows (or keys) of a gradient stay 0."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if not s.has_gradient or not starts_from_qkv(s):
            return
        count = s.fields[names[0].removeprefix("grad_")].shape[axis]
        for label, kept in ends(count):
            at = (*(slice(None),) * axis, slice(kept, None))
            yield Alternative(label, after=zeroed(names, at))

    return rewrite


def ends(count: int) -> Iterator[tuple[str, int]]:
    """Where a loop over tiles may end too early: what is left out, and how many are kept."""
    for label, kept in (("the last one", count - 1), *((f"beyond tiles of {t}", count // t * t) for t in (16, 32, 64, 128))):
        if 0 < kept < count:
            yield label, kept


def _limited(more: sp.Basic) -> Callable[[Statement], Statement]:
    return lambda x: replace(x, where=sp.And(x.where, more))


def some_keys(which: Callable[[Statement], bool], letter: sp.Symbol, bound: Callable[[Situation], int]) -> Rewrite:
    """A sum of the backward over the first keys (or queries) alone."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        count = bound(s)
        if not s.has_gradient or count < 2:
            return
        for label, kept in ends(count):
            edit = changed(_limited(sp.Lt(letter, kept)), when=which)
            yield Alternative(label, gradient=edit)

    return rewrite
