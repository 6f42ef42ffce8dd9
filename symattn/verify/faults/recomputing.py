"""Rewritings of what a backward recomputes: weights, masks, derivatives of the score, dropout, the log-sum-exp."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import sympy as sp

from symattn.indexed import conjuncts, name_of, subscripts_of, tensor
from symattn.presentation.listing import in_order
from symattn.program import Program, Statement
from symattn.verify.faults.fault import Alternative, Edit, Situation
from symattn.verify.faults.gradients import changed, ends, row_terms, to_value
from symattn.verify.faults.leaking import leaked
from symattn.verify.faults.masking import causal_bounds, with_part
from symattn.verify.faults.structure import I, J, base_name, bounds_of, fresh, rewritten, softmax_of, with_conjunct, without

Rewrite = Callable[[Situation], Iterator[Alternative]]


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


def mask_ignored(s: Situation) -> Iterator[Alternative]:
    """The mask, or one of its conditions, left out of the backward."""
    conditions = leaked(s.program)
    if conditions:
        yield from in_backward(with_conjunct(lambda c: sp.true if c in conditions else c))(s)
    for k, c in enumerate(conditions if len(conditions) > 1 else ()):
        found = in_backward(without(c))(s)
        yield from (replace(a, label=f"condition {k + 1} {a.label}".strip()) for a in found)


def alignment(s: Situation) -> Iterator[Alternative]:
    """Another causal bound in the backward."""
    for c, own in causal_bounds(s):
        for word, offset in (
            ("top-left", sp.Integer(0)),
            ("bottom-right", s.size("m") - s.size("n")),
            ("strict", own - 1),
            ("one future key", own + 1),
        ):
            if sp.expand(offset - own) != 0:
                found = in_backward(with_part(c, sp.Le(J, I + offset)))(s)
                yield from (replace(a, label=f"{word} {a.label}".strip()) for a in found)


def window(s: Situation) -> Iterator[Alternative]:
    """Another width of the window in the backward."""
    for c, b in bounds_of(s.program):
        for word, by in (("one key more", 1), ("one key less", -1)):
            if not b.upper:
                found = in_backward(with_part(c, sp.Le(I - J, b.offset + by)))(s)
                yield from (replace(a, label=f"{word} {a.label}".strip()) for a in found)


def no_derivative(s: Situation) -> Iterator[Alternative]:
    """Factors ``1 - (a/cap)**2`` of the gradient left out."""
    if s.has_gradient and s.definition.softcap is not None:

        def change(x: Statement) -> Statement:
            kept = [f for f in sp.Mul.make_args(x.expr) if not _is_slope(f)]
            return replace(x, expr=sp.Mul(*kept))

        yield Alternative(gradient=changed(change, when=lambda x: {I, J} <= set(x.indices) and x.name.startswith("d")))


def other_derivative(s: Situation) -> Iterator[Alternative]:
    """Factors ``1 - (a/cap)**2`` of the gradient with something else than the capped score ``a``."""
    capped = [x for x in s.program if x.expr.has(sp.tanh)]
    if not s.has_gradient or s.definition.softcap is None or len(capped) != 1:
        return
    (made,) = capped
    inner = next(iter(made.expr.atoms(sp.tanh)))
    cap = sp.simplify(made.expr / inner)
    raw = sp.simplify(cap * inner.args[0])
    if not isinstance(raw, sp.Indexed):
        return
    forms: tuple[tuple[str, Callable[[sp.Expr, sp.Expr, sp.Expr], sp.Expr]], ...] = (
        ("of the score before the cap", lambda own, a, x: own.xreplace({a: x})),
        ("of the score before the cap, at least 0", lambda own, a, x: sp.Max(0, own.xreplace({a: x}))),
        ("tanh of what is capped already", lambda own, a, x: own.xreplace({a: cap * sp.tanh(a / cap)})),
        ("without the division by the cap", lambda own, a, x: own.xreplace({a: cap * a})),
    )
    for label, form in forms:
        change = partial(_at_other_score, made.name, name_of(raw), form)
        yield Alternative(label, gradient=changed(change, when=lambda x: {I, J} <= set(x.indices) and x.name.startswith("d")))


def _at_other_score(capped: str, raw: str, form: Callable[[sp.Expr, sp.Expr, sp.Expr], sp.Expr], x: Statement) -> Statement:
    """A statement whose factors of the cap are another function of themselves, the capped score and that before the cap."""
    factors = []
    for f in sp.Mul.make_args(x.expr):
        read = next((r for r in f.atoms(sp.Indexed) if base_name(name_of(r)) == capped), None)
        if _is_slope(f) and read is not None:
            before = tensor(raw + name_of(read).removeprefix(capped), *subscripts_of(read))
            f = form(f, read, before)
        factors.append(f)
    return replace(x, expr=sp.Mul(*factors))


def _is_slope(f: sp.Expr) -> bool:
    return (
        f.is_Add
        and any(t.is_number for t in f.args)
        and all(t.is_number or any(x.is_Pow and x.exp == 2 for x in sp.Mul.make_args(t)) for t in f.args)
    )


def rate(s: Situation) -> sp.Expr | None:
    """1 - p of the dropout."""
    if not s.definition.dropout or "Pd" not in s.program:
        return None
    kept = s.program["Pd"]
    weight = next(x for x in kept.expr.atoms(sp.Indexed) if J in x.indices)
    return sp.simplify(weight / kept.expr)


def _dropout_mask(s: Situation) -> list[sp.Basic]:
    """The conditions under which a weight is kept."""
    where = s.program["Pd"].where if "Pd" in s.program else sp.true
    return [c for c in conjuncts(where) if any(name_of(r) == "drop" for r in c.atoms(sp.Indexed))]


def dropout(which: Callable[[Statement], bool], keep_mask: bool, keep_scale: bool) -> Rewrite:
    """Mask or scale of the dropout left out of some statements of the backward."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        share = rate(s)
        if not s.has_gradient or share is None:
            return
        mask = _dropout_mask(s)

        def change(x: Statement) -> Statement:
            where = x.where if keep_mask else sp.And(*[c for c in x.conditions if c not in mask])
            return replace(x, where=where, expr=x.expr if keep_scale or x.over else x.expr * share)

        yield Alternative(gradient=changed(change, when=which))

    return rewrite


def dropped_weights_in_scores(s: Situation) -> Iterator[Alternative]:
    """The gradient of the scores made of the weights after dropout."""
    share, mask = rate(s), _dropout_mask(s)
    if s.has_gradient and share is not None:
        names = {n for found in row_terms(s.backward).values() for n in found}
        change = lambda x: replace(x, where=sp.And(x.where, *mask), expr=x.expr / share)
        yield Alternative(gradient=changed(change, when=lambda x: x.name in names))


def undropped_row_term(s: Situation) -> Iterator[Alternative]:
    """D as the sum of the weights and of their gradient before dropout."""
    if s.has_gradient and s.definition.dropout and row_terms(s.backward):
        yield Alternative(gradient=partial(_undropped, _dropout_mask(s)))


def _undropped(mask: list[sp.Basic], p: Program) -> Program:
    weight = next((x for x in p if base_name(x.name) == "P" and {I, J} <= set(x.indices)), None)
    made = next((x for x in p if is_weight_gradient(x)), None)
    if weight is None or made is None:
        return p
    whole = replace(
        made,
        target=tensor(fresh(p, "dPall"), *made.indices),
        where=sp.And(*[c for c in made.conditions if c not in mask]),
    )
    terms = set(row_terms(p))

    def row(x: Statement) -> Statement:
        return replace(x, expr=weight.target * whole.target, over=(J,), where=weight.where)

    return p.with_statements(in_order([*(row(x) if x.name in terms else x for x in p), whole]), p.outputs).live()


def is_weight_gradient(x: Statement) -> bool:
    """Whether a statement sums values and incoming gradients over the channels: the gradient of the weights."""
    return {I, J} <= set(x.indices) and bool(x.over) and {"V", "dO"} <= {name_of(r) for r in x.reads}


def some_channels(s: Situation) -> Iterator[Alternative]:
    """The gradient of the weights summed over the first channels alone: as many as queries have, or whole tiles."""
    d, dv = s.sizes.get("D", 0), s.sizes.get("DV", 0)
    if not s.has_gradient or not d:
        return
    for label, kept in ((("as many as the queries have", d),) if d < dv else ()) + tuple(ends(dv)):
        change = partial(_limited_channels, kept)
        yield Alternative(label, gradient=changed(change, when=is_weight_gradient))


def _limited_channels(kept: int, x: Statement) -> Statement:
    return replace(x, where=sp.And(x.where, *(sp.Lt(e, kept) for e in x.over)))


def is_dropped_gradient(x: Statement) -> bool:
    """Whether a statement is the gradient of the weights, before or after dropout."""
    return x.name.startswith("dP")


def is_dropped_weight(x: Statement) -> bool:
    """Whether a statement gives the weights after dropout."""
    return base_name(x.name) == "Pd"


def local_lse(s: Situation) -> Iterator[Alternative]:
    """Weights recomputed with the log-sum-exp of one half of the keys."""
    if not s.has_gradient or s.saved is None or s.sizes.get("M", 0) < 2:
        return
    half = s.sizes["M"] // 2
    own = {"L", *_up(s.forward, "L")}
    made = [x for x in s.forward if x.name in own]
    for label, c in (("of the first half of the keys", sp.Lt(J, half)), ("of the second half of the keys", sp.Ge(J, half))):
        yield _local(label, s, [replace(x, where=sp.And(x.where, c)) if {I, J} <= set(x.domain) else x for x in made])
    found = softmax_of(s.program)
    if found is not None and found.lse is not None and found.normalisation.total.name != found.divisor:
        keys = s.forward["L"].expr.xreplace({found.normalisation.divisor: found.normalisation.total.target})
        yield _local("without the sink", s, [replace(x, expr=keys) if x.name == "L" else x for x in made])


def _local(label: str, s: Situation, made: list[Statement]) -> Alternative:
    """Another log-sum-exp, of these statements, read by the whole backward."""
    return Alternative(label, gradient=_with_local(_apart(s.forward.with_statements(made, ("L",)), "local")))


def unnormalised_values(s: Situation) -> Iterator[Alternative]:
    """DV from exp(s - m), the weights before their division by the sum."""
    if s.has_gradient and any(base_name(x.name) == "P" for x in s.backward):
        yield Alternative(gradient=_undivided)


def _undivided(p: Program) -> Program:
    weight = next((x for x in p if base_name(x.name) == "P" and {I, J} <= set(x.indices)), None)
    if weight is None:
        return p
    made: list[Statement] = []
    if isinstance(weight.expr, sp.exp):  # exp(s - L): the sum is exp(L - m)
        score = next((t for t in sp.Add.make_args(weight.expr.exp) if J in t.free_symbols), None)
        if score is None:
            return p
        top = tensor(fresh(p, "mtop"), *[x for x in weight.indices if x != J])
        made = [Statement(top, score, (J,), "max", where=weight.where)]
        total = sp.exp(score - weight.expr.exp - top)
    else:
        total = sp.fraction(weight.expr)[1]

    def change(x: Statement) -> Statement:
        return replace(x, expr=x.expr * total) if to_value(x) and not x.name.startswith("dV_") else x

    return p.with_statements([y for x in p for y in ((x, *made) if x is weight else (change(x),))])


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
        scalars = {s.name for s in made if not s.indices}  # the same in both, and read by both
        out = [
            replace(
                s,
                expr=s.expr.xreplace(
                    {r: tensor("Llocal", *subscripts_of(r)) for r in s.expr.atoms(sp.Indexed) if name_of(r) == "L"}
                ),
            )
            for s in p
            if s.name not in scalars
        ]
        return p.with_statements([*made, *out])

    return edit


def _given_out(name: str, expr: sp.Expr) -> Edit:
    """One tensor of the list is another one, as it is."""
    return lambda p: rewritten(p, lambda x: replace(x, expr=expr) if x.name == name else x).live()


def rotated_back(s: Situation) -> Iterator[Alternative]:
    """Gradients of rotated queries and keys given out as they are."""
    if not s.has_gradient or s.definition.rope is None:
        return
    for letter in ("Q", "K"):
        own, inner = "d" + letter, "d" + letter + "rot"
        if own in s.backward and inner in s.backward:
            target = tensor(inner, *s.backward[own].indices)
            yield Alternative(f"d{letter}", gradient=_given_out(own, target))
