"""Faults of the backward pass: its factors, D, what the weights are recomputed from, sums over groups and broadcast axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
import sympy as sp

from symattn.indexed import conjuncts, name_of, size, subscripts_of, tensor
from symattn.intake import Array
from symattn.program import Program, Statement
from symattn.verify.faults.fault import Alternative, Edit, Fault, Prediction, Predictions, Situation
from symattn.verify.faults.heads import expanded, places, starts_from_qkv
from symattn.verify.faults.leaking import leaked
from symattn.verify.faults.masking import causal_bounds, with_part
from symattn.verify.faults.normalizing import times
from symattn.verify.faults.predict import predictions
from symattn.verify.faults.reading import zeroed
from symattn.verify.faults.structure import I, J, base_name, bounds_of, fresh, rewritten, with_conjunct

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


def _row_term(change: Callable[[Situation], sp.Expr | None]) -> Rewrite:
    """D multiplied by a factor."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        f = change(s)
        if s.has_gradient and f is not None and row_terms(s.backward):
            yield Alternative(gradient=with_row_term(lambda d: f * d))

    return rewrite


def scaled(names: Iterable[str], factor: Callable[[Situation], dict[str, float]]) -> Rewrite:
    """Gradients multiplied by a number."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        for label, f in factor(s).items():
            if f != 1:
                yield Alternative(label, after=lambda _, p, f=f: {n: times(x, f) if n in names else x for n, x in p.items()})

    return rewrite


def _without_scale(s: Situation) -> dict[str, float]:
    if "scale" not in s.program or s.definition.qk_norm is not None:
        return {}
    c = s.reference.call.scale
    return {"": 1 / c} if c else {}


def _scale_twice(s: Situation) -> dict[str, float]:
    found = _without_scale(s)
    return {"twice": 1 / f for f in found.values()}


def _unscaled(names: tuple[str, ...]) -> Rewrite:
    def rewrite(s: Situation) -> Iterator[Alternative]:
        if s.has_gradient:
            yield from scaled(names, _without_scale)(s)
            yield from scaled(names, _scale_twice)(s)

    return rewrite


def _logarithms(s: Situation) -> Iterator[Alternative]:
    if not s.has_gradient or s.definition.form != "softmax":
        return
    for what, names in (("dQ", Q), ("dK", K), ("dQ and dK", Q + K)):
        for word, f in (("log2(e)", 1 / np.log(2)), ("ln 2", np.log(2))):
            yield from (replace(a, label=f"{what} times {word}") for a in scaled(names, lambda _, f=f: {"": f})(s))


def _groups(s: Situation) -> Iterator[Alternative]:
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


def _wrong_group(s: Situation) -> Iterator[Alternative]:
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


def _recomputed(p: Program) -> bool:
    """Whether the backward recomputes weights from the log-sum-exp."""
    return any(base_name(s.name) != s.name for s in p)


def in_backward(edit: Edit) -> Rewrite:
    """A rewriting of the gradient's list; where that holds the forward too, of what is recomputed alone as well."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if not s.has_gradient:
            return
        forward = {x.name for x in s.forward}
        yield Alternative(gradient=edit)
        if any(x.name in forward for x in s.backward if x.name in ("l", "L")) and _recomputed(s.backward):
            yield Alternative("the weights alone", gradient=_recomputed_alone(edit, forward))

    return rewrite


def _recomputed_alone(edit: Edit, forward: set[str]) -> Edit:
    def alone(p: Program) -> Program:
        new = {x.name: x for x in edit(p)}
        return p.with_statements([x if x.name in forward else new.get(x.name, x) for x in p])

    return alone


def _mask_ignored(s: Situation) -> Iterator[Alternative]:
    conditions = leaked(s.program)
    if conditions:
        yield from in_backward(with_conjunct(lambda c: sp.true if c in conditions else c))(s)
    for k, c in enumerate(conditions if len(conditions) > 1 else ()):
        found = in_backward(with_conjunct(lambda x, c=c: sp.true if x == c else x))(s)
        yield from (replace(a, label=f"condition {k + 1} {a.label}".strip()) for a in found)


def _alignment(s: Situation) -> Iterator[Alternative]:
    for c, own in causal_bounds(s):
        for word, offset in (
            ("top-left", sp.Integer(0)),
            ("bottom-right", size("m") - size("n")),
            ("strict", own - 1),
            ("one future key", own + 1),
        ):
            if sp.expand(offset - own) != 0:
                found = in_backward(with_part(c, sp.Le(J, I + offset)))(s)
                yield from (replace(a, label=f"{word} {a.label}".strip()) for a in found)


def _window(s: Situation) -> Iterator[Alternative]:
    for c, b in bounds_of(s.program):
        for word, by in (("one key more", 1), ("one key less", -1)):
            if not b.upper:
                found = in_backward(with_part(c, sp.Le(I - J, b.offset + by)))(s)
                yield from (replace(a, label=f"{word} {a.label}".strip()) for a in found)


def _no_derivative(s: Situation) -> Iterator[Alternative]:
    """Factors ``1 - (a/cap)**2`` of the gradient left out."""
    if s.has_gradient and s.definition.softcap is not None:

        def change(x: Statement) -> Statement:
            kept = [f for f in sp.Mul.make_args(x.expr) if not _is_slope(f)]
            return replace(x, expr=sp.Mul(*kept))

        yield Alternative(gradient=changed(change, when=lambda x: {I, J} <= set(x.indices) and x.name.startswith("d")))


def _is_slope(f: sp.Expr) -> bool:
    return (
        f.is_Add
        and any(t.is_number for t in f.args)
        and all(t.is_number or any(x.is_Pow and x.exp == 2 for x in sp.Mul.make_args(t)) for t in f.args)
    )


def only(name: str, change: Callable[[Prediction], Prediction], label: str = "") -> Rewrite:
    """One gradient changed."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if s.has_gradient and name.removeprefix("grad_") in s.fields:
            yield Alternative(label, after=lambda _, p: {**p, name: change(p[name])} if name in p else p)

    return rewrite


def _zero(p: Prediction) -> Prediction:
    return Prediction(np.zeros_like(p.value), np.zeros_like(p.reach))


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


def _labelled(*parts: tuple[str, Rewrite]) -> Rewrite:
    def rewrite(s: Situation) -> Iterator[Alternative]:
        for label, part in parts:
            yield from (replace(a, label=f"{label} {a.label}".strip()) for a in part(s))

    return rewrite


def _all(n: int) -> Array:
    return np.arange(n)


def _last(n: int) -> Array:
    return np.array([n - 1])


def _first(n: int) -> Array:
    return np.array([0])


def _lse_gradient(factor: float) -> Rewrite:
    def rewrite(s: Situation) -> Iterator[Alternative]:
        if s.has_gradient and s.with_lse and "grad_lse" in s.fields:
            a = s.fields["grad_lse"]
            yield Alternative(fields={"grad_lse": (a * np.asarray(factor, a.dtype)).astype(a.dtype)})

    return rewrite


def _rate(s: Situation) -> sp.Expr | None:
    """1 - p of the dropout."""
    if not s.definition.dropout or "Pd" not in s.program:
        return None
    kept = s.program["Pd"]
    weight = next(x for x in kept.expr.atoms(sp.Indexed) if J in x.indices)
    return sp.simplify(weight / kept.expr)


def _dropout(which: Callable[[Statement], bool], keep_mask: bool, keep_scale: bool) -> Rewrite:
    """Mask or scale of the dropout left out of some statements of the backward."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        rate = _rate(s)
        if not s.has_gradient or rate is None:
            return
        mask = [c for c in conjuncts(s.program["Pd"].where) if any(name_of(r) == "drop" for r in c.atoms(sp.Indexed))]

        def change(x: Statement) -> Statement:
            where = x.where if keep_mask else sp.And(*[c for c in x.conditions if c not in mask])
            return replace(x, where=where, expr=x.expr if keep_scale or x.over else x.expr * rate)

        yield Alternative(gradient=changed(change, when=which))

    return rewrite


def _is_dropped_gradient(x: Statement) -> bool:
    return x.name.startswith("dP")


def _is_dropped_weight(x: Statement) -> bool:
    return base_name(x.name) == "Pd"


def _swapped(a: str, b: str) -> Rewrite:
    def rewrite(s: Situation) -> Iterator[Alternative]:
        if s.has_gradient and starts_from_qkv(s) and s.fields[a].shape == s.fields[b].shape:
            x, y = "grad_" + a, "grad_" + b
            yield Alternative(after=lambda _, p: {**p, x: p[y], y: p[x]} if x in p and y in p else p)

    return rewrite


def _incoming(order: Callable[[Array], Array]) -> Rewrite:
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


def _tail(names: tuple[str, ...], axis: int) -> Rewrite:
    """The last rows (or keys) of a gradient stay 0."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if not s.has_gradient or not starts_from_qkv(s):
            return
        count = s.fields[names[0].removeprefix("grad_")].shape[axis]
        for label, kept in ends(count):
            at = (*(slice(None),) * axis, slice(kept, None))
            yield Alternative(label, after=zeroed(names, lambda shape, at=at: at))

    return rewrite


def ends(count: int) -> Iterator[tuple[str, int]]:
    """Where a loop over tiles may end too early: what is left out, and how many are kept."""
    for label, kept in (("the last one", count - 1), *((f"beyond tiles of {t}", count // t * t) for t in (16, 32, 64, 128))):
        if 0 < kept < count:
            yield label, kept


def _some_keys(which: Callable[[Statement], bool], letter: sp.Symbol, bound: Callable[[Situation], int]) -> Rewrite:
    """A sum of the backward over the first keys (or queries) alone."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        count = bound(s)
        if not s.has_gradient or count < 2:
            return
        for label, kept in ends(count):
            edit = changed(lambda x, k=kept: replace(x, where=sp.And(x.where, sp.Lt(letter, k))), when=which)
            yield Alternative(label, gradient=edit)

    return rewrite


def _local_lse(s: Situation) -> Iterator[Alternative]:
    """Weights recomputed with the log-sum-exp of one half of the keys."""
    if not s.has_gradient or s.saved is None or s.sizes.get("M", 0) < 2:
        return
    half = s.sizes["M"] // 2
    for label, c in (("of the first half of the keys", sp.Lt(J, half)), ("of the second half of the keys", sp.Ge(J, half))):
        own = {"L", *_up(s.forward, "L")}
        local = s.forward.with_statements(
            [replace(x, where=sp.And(x.where, c)) if {I, J} <= set(x.domain) else x for x in s.forward if x.name in own], ("L",)
        )
        renamed = _apart(local, "local")
        yield Alternative(label, gradient=_with_local(renamed))


def _up(p: Program, name: str) -> set[str]:
    """What a tensor is made of."""
    found: set[str] = set()
    todo = [name]
    while todo:
        x = todo.pop()
        for n in p[x].needs if x in p else ():
            if n in p and n not in found:
                found.add(n)
                todo.append(n)
    return found


def _apart(p: Program, ending: str) -> tuple[Statement, ...]:
    """The statements of a program under names of their own."""
    new = {s.name: s.name + ending for s in p if s.indices}

    def through(e: sp.Basic) -> sp.Basic:
        return e.xreplace({r: tensor(new[name_of(r)], *subscripts_of(r)) for r in e.atoms(sp.Indexed) if name_of(r) in new})

    return tuple(
        replace(
            s, target=tensor(new[s.name], *s.indices) if s.name in new else s.target, expr=through(s.expr), where=through(s.where)
        )
        for s in p
    )


def _with_local(made: tuple[Statement, ...]) -> Edit:
    def edit(p: Program) -> Program:
        known = {s.name for s in p}
        out = [
            replace(
                s,
                expr=s.expr.xreplace(
                    {r: tensor("Llocal", *subscripts_of(r)) for r in s.expr.atoms(sp.Indexed) if name_of(r) == "L"}
                ),
            )
            for s in p
        ]
        return p.with_statements([*[s for s in made if s.name not in known], *out])

    return edit


def _rotated_back(s: Situation) -> Iterator[Alternative]:
    """Gradients of rotated queries and keys given out as they are."""
    if not s.has_gradient or s.definition.rope is None:
        return
    for letter in ("Q", "K"):
        own, inner = "d" + letter, "d" + letter + "rot"
        if own in s.backward and inner in s.backward:
            target = tensor(inner, *s.backward[own].indices)
            edit = changed(lambda x, t=target: replace(x, expr=t), when=lambda x, n=own: x.name == n)
            yield Alternative(f"d{letter}", gradient=lambda p, e=edit: e(p).live())


def _sparse_support(s: Situation) -> Iterator[Alternative]:
    """The size of the support taken over all rows."""
    if not s.has_gradient or "kappa" not in s.backward or s.definition.normalizer not in ("sparsemax", "entmax15"):
        return
    k = s.backward["kappa"]
    for label, reduce in (("summed over all rows", "sum"), ("the greatest of all rows", "max")):
        name = fresh(s.backward, "kappaall")
        shared = Statement(tensor(name), k.target, k.indices, reduce, range_only=False)  # type: ignore[arg-type]

        def edit(p: Program, shared: Statement = shared, name: str = name) -> Program:
            rows = set(row_terms(p))

            def change(x: Statement) -> Statement:
                return replace(
                    x, expr=x.expr.xreplace({r: tensor(name) for r in x.expr.atoms(sp.Indexed) if name_of(r) == "kappa"})
                )

            return p.with_statements([y for x in p for y in ((shared, change(x)) if x.name in rows else (x,))])

        yield Alternative(label, gradient=edit)


_D = "D = rowsum(dO o O), and where it is used"
_C = "the factor of dQ and dK"
_SUM = "over which axes a gradient is summed"
_REDUCED = ("attn_mask", "bias", "sinks", "alibi_slopes", "bucket_bias")
ROWS = (
    Fault("B01", "dK without the scale", "mathematics", "dS^T Q", "c dS^T Q", _unscaled(K), look=_C, blind="scale = 1"),
    Fault("B02", "dQ without the scale", "mathematics", "dS K", "c dS K", _unscaled(Q), look=_C, blind="scale = 1"),
    Fault("B40", "dQ and dK without the scale", "mathematics", "dS K, dS^T Q", "c dS K, c dS^T Q", _unscaled(Q + K), look=_C, blind="scale = 1"),
    Fault(
        "B03", "a factor ln 2 or log2(e) too many in dQ or dK", "mathematics", "dQ*log2(e)", "dQ", _logarithms,
        look="the scale of a kernel that works in base 2", shows="kernels with exp2",
    ),
    Fault(
        "B04", "dK and dV of one query head of the group instead of the sum", "mathematics", "x[g - 1]", "sum over g of x", _groups,
        threads=("levanter#449",), look=_SUM, shows="H_kv < H", blind="H_kv = H",
    ),
    Fault(
        "B06", "dK and dV added to the key/value head of the other grouping", "mathematics", "kv = h mod H_kv", "kv = h // (H/H_kv)",
        _wrong_group, threads=("native-sparse-attention-triton#27",), look="the index of the key/value head in the backward",
        shows="1 < H_kv < H", blind="H_kv = 1",
    ),
    Fault(
        "B07", "D is omitted", "mathematics", "dS = P o dP", "dS = P o (dP - D)", _row_term(lambda s: sp.Integer(0)),
        threads=("FlagAttention#1",), look=_D, blind="D = 0",
    ),
    Fault(
        "B08", "D with another factor", "mathematics", "P o (dP - f D)", "P o (dP - D)",
        _labelled(
            ("-1", _row_term(lambda s: sp.Integer(-1))), ("2", _row_term(lambda s: sp.Integer(2))),
            ("the scale", _row_term(lambda s: tensor("scale") if "scale" in s.backward else None)),
        ), look=_D, blind="D = 0",
    ),
    Fault(
        "B09", "the mask is ignored in the backward", "mathematics", "P = exp(s - L) for all keys", "P = exp(s - L) where keep", _mask_ignored,
        threads=("triton#4541", "triton#5660"), look="the mask of the recomputed weights", shows="a mask", blind="no mask",
    ),
    Fault(
        "B10", "the causal mask of the backward is aligned otherwise than that of the forward", "mathematics", "j <= i", "j <= i + m - n",
        _alignment, threads=("ffpa-attn#300",), look="the mask of the recomputed weights", shows="n != m", blind="n = m",
    ),
    Fault(
        "B11", "window of another width in the backward", "mathematics", "i - j <= W", "i - j < W", _window,
        look="the window of the recomputed weights", shows="m > W", blind="W >= m",
    ),
    Fault(
        "B12", "the derivative of the softcap is missing", "mathematics", "dS", "dS (1 - tanh(s/cap)**2)", _no_derivative,
        threads=("flash-attention#1033",), look="the chain rule through tanh", shows="scores comparable with the cap", blind="cap much larger than |s|",
    ),
    Fault(
        "B13", "dSink is 0", "mathematics", "0", "-sum P_sink D", only("grad_sinks", _zero), threads=("flash-attention#1973",),
        look="whether the sink has a gradient", shows="a sink",
    ),
    Fault(
        "B14", "dSink with the wrong sign", "mathematics", "+sum P_sink D", "-sum P_sink D", only("grad_sinks", lambda p: times(p, -1)),
        look="the sign of dSink", shows="a sink",
    ),
    Fault(
        "B16", "the gradient of the LSE is ignored", "mathematics", "P o (dP - D)", "P o (dP - D + dL)", _lse_gradient(0.0),
        threads=("flash-attention#1817", "flash-attention#889"), look="whether grad_lse enters D", blind="dL = 0",
    ),
    Fault(
        "B41", "the gradient of the LSE with the wrong sign or base", "mathematics", "P o (dP - D - dL)", "P o (dP - D + dL)",
        _labelled(("-1", _lse_gradient(-1.0)), ("ln 2", _lse_gradient(float(np.log(2)))), ("log2(e)", _lse_gradient(float(1 / np.log(2)))), ("2", _lse_gradient(2.0))),
        look="whether grad_lse enters D with its sign", blind="dL = 0",
    ),
    Fault(
        "B17", "a gradient that belongs to several batch entries, heads or rows is not summed over them", "mathematics", "the last b", "sum over b",
        _labelled(
            ("the last batch entry", of_some(_REDUCED, 0, _last)), ("the first batch entry", of_some(_REDUCED, 0, _first)),
            ("the mean over the batch", of_some(_REDUCED, 0, _all, divide=True)),
            ("the last head", of_some(_REDUCED, 1, _last)), ("the first head", of_some(_REDUCED, 1, _first)),
            ("the last row", of_some(("sinks", "alibi_slopes", "bucket_bias"), 2, _last)), ("the first row", of_some(("sinks", "alibi_slopes", "bucket_bias"), 2, _first)),
        ), threads=("flash-sparse-attention#193", "jax#36702"), look=_SUM, shows="a mask, bias or sink that is shared", blind="B = 1",
    ),
    Fault(
        "B18", "the gradient of the bias with a wrong factor", "mathematics", "c dS", "dS", lambda s: (
            a for n in ("bias", "attn_mask", "alibi_slopes")
            for label, f in (("the scale", s.reference.call.scale if "scale" in s.program else 1.0), ("1/scale", 1 / s.reference.call.scale if "scale" in s.program else 1.0), ("0", 0.0), ("-1", -1.0))
            if f != 1 for a in only("grad_" + n, lambda p, f=f: times(p, f), f"{n}, {label}")(s)
        ), threads=("flash-sparse-attention#194",), look=_SUM, shows="a bias",
    ),
    Fault(
        "B19", "D multiplied by 1 - p", "mathematics", "P o (dP - (1 - p) D)", "P o (dP - D)", _row_term(_rate), threads=("torch-xpu-ops#3766",),
        look=_D, shows="dropout", blind="p = 0",
    ),
    Fault(
        "B20", "dP is not dropped", "mathematics", "P o (dP - D)", "P o (dP o Z/(1 - p) - D)",
        _labelled(
            ("", _dropout(_is_dropped_gradient, keep_mask=False, keep_scale=False)), ("masked and not scaled", _dropout(_is_dropped_gradient, keep_mask=True, keep_scale=False)),
            ("scaled and not masked", _dropout(_is_dropped_gradient, keep_mask=False, keep_scale=True)),
        ), look="dropout in the backward", shows="dropout", blind="p = 0",
    ),
    Fault(
        "B42", "the weights of dV are not dropped", "mathematics", "dV = P^T dO", "dV = (P o Z/(1 - p))^T dO",
        _labelled(
            ("", _dropout(lambda x: _is_dropped_weight(x) or to_value(x), keep_mask=False, keep_scale=False)),
            ("masked and not scaled", _dropout(_is_dropped_weight, keep_mask=True, keep_scale=False)),
        ), look="dropout in the backward", shows="dropout", blind="p = 0",
    ),
    Fault(
        "B21", "weights recomputed with a local LSE of a part of the keys", "mathematics", "P = exp(s - L_local)", "P = exp(s - L)", _local_lse,
        threads=("tt-metal#53205", "tt-metal#53216"), look="whether the merged LSE reaches the backward", shows="keys in several parts",
    ),
    Fault(
        "B27", "size of the support shared by all rows", "mathematics", "sum dP/k", "sum dP/k_i", _sparse_support, threads=("SparseMax.torch#3",),
        look="the axis of the count of the support", shows="sparsemax", blind="equal supports",
    ),
    Fault("B43", "dK and dV exchanged", "mathematics", "dK = dV", "dK", _swapped("key", "value"), look="the order of what is returned", shows="d = dv"),
    Fault("B44", "dQ and dK exchanged", "mathematics", "dQ = dK", "dQ", _swapped("query", "key"), look="the order of what is returned", shows="n = m, H = H_kv"),
    Fault(
        "B45", "the incoming gradient is read at the wrong place", "mathematics", "dO[b', h', i']", "dO[b, h, i]",
        _labelled(
            ("the first batch entry for all", _incoming(lambda p: np.broadcast_to(p[:1], p.shape))), ("the next batch entry", _incoming(lambda p: np.roll(p, -1, 0))),
            ("the first head for all", _incoming(lambda p: np.broadcast_to(p[:, :1], p.shape))), ("the next head", _incoming(lambda p: np.roll(p, -1, 1))),
            ("the next row", _incoming(lambda p: np.roll(p, -1, 2))), ("memory of (n, H, d) as (H, n, d)", _incoming(lambda p: p.swapaxes(1, 2).reshape(p.shape))),
        ), threads=("aiter#2808",), look="the strides of dO", shows="B > 1, H > 1",
    ),
    Fault(
        "B46", "a gradient with a constant factor", "mathematics", "f dX", "dX",
        lambda s: (
            replace(a, label=f"{what} times {word}") for what, names in (("dQ", Q), ("dK", K), ("dV", V), ("all", Q + K + V))
            for word, f in (("-1", -1.0), ("2", 2.0), ("1/2", 0.5), ("0", 0.0)) for a in scaled(names, lambda _, f=f: {"": f})(s) if s.has_gradient
        ), look="factors and accumulation of the gradient",
    ),
    Fault(
        "B47", "the last rows of a gradient are not written", "mathematics", "0", "dX[i]",
        _labelled(("dQ", _tail(Q, 2)), ("dK", _tail(K, 2)), ("dV", _tail(V, 2)), ("dK and dV", _tail(K + V, 2))), look="the bounds of the store",
        shows="lengths no multiple of the tile",
    ),
    Fault(
        "B48", "the last keys or queries are missing in a sum of the backward", "mathematics", "sum over j < m - 1", "sum over j",
        _labelled(
            ("dQ", _some_keys(to_query, J, lambda s: s.sizes.get("M", 0))), ("dK", _some_keys(to_key, I, lambda s: s.sizes.get("N", 0))),
            ("dV", _some_keys(to_value, I, lambda s: s.sizes.get("N", 0))),
            ("dK and dV", _some_keys(lambda x: to_key(x) or to_value(x), I, lambda s: s.sizes.get("N", 0))),
        ), look="the loops of the backward", shows="lengths no multiple of the tile",
    ),
    Fault(
        "B49", "gradients are not rotated back", "mathematics", "dQ of the rotated queries", "R(i)^T dQ", _rotated_back,
        look="the transpose of the rotation", shows="a rotation", blind="position 0",
    ),
)  # fmt: skip
