"""The rules that bring a derived list to the form that people know, as data rows; none names a variant or a tensor.

A rule proposes: it yields whole listings, each one small rewriting away. :mod:`symattn.presentation.driver` has each proposal
proved or checked before it is taken, so a rule may be generous but cannot be wrong without being caught.

The one name that is given here, ``D``, is given by role: the row sum of a tensor times its gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

import sympy as sp

from symattn.presentation.listing import Listing, is_scalar_multiple
from symattn.presentation.products import divide_products
from symattn.presentation.scalars import coefficient, factors, matches, renaming, replace_reads, tidy
from symattn.program import Statement, integer_symbols, name_of, needed, reads, subscripts_of, tensor
from symattn.scans import grouped

__all__ = ["REFOLD", "RULES", "Rule"]

_SHORT = 12  # a helper read more than once is inlined only up to this many operations


@dataclass(frozen=True)
class Rule:
    """A named way of rewriting a listing.

    Parameters
    ----------
    name
        One word, for logs.
    reason
        What it does, as a clause that a derivation can print.
    propose
        Listing -> listings that are one rewriting away, best first.
    """

    name: str
    reason: str
    propose: Callable[[Listing], Iterator[Listing]]


def _denominators(expr: sp.Expr) -> set[sp.Expr]:
    return {p.base for p in expr.atoms(sp.Pow) if p.exp.could_extract_minus_sign()}


def _only_reads(expr: sp.Expr) -> bool:
    """Whether no index occurs outside the subscripts of a read."""
    return not integer_symbols(expr.xreplace({x: sp.Dummy() for x in reads(expr)}))


def _rewritten(listing: Listing, s: Statement, expr: sp.Expr) -> Listing:
    return listing.replaced({s.name: (replace(s, expr=expr),)})


def _substituted(
    listing: Listing, known: Statement, head: sp.Expr, value: sp.Expr, divisors: Collection[sp.Expr] = ()
) -> Iterator[Listing]:
    """Put ``value`` for ``head`` (both in the indices of ``known``) where the domain allows it and no new division appears.

    ``divisors`` are 0 only where something is that is divided by already.
    """
    allowed = _denominators(known.expr) | set(divisors)
    for b in listing.derived:
        expr = b.expr
        if isinstance(head, sp.Indexed):
            hits = [(r, t) for r in reads(expr) if (t := renaming(head, r)) is not None]
        else:
            hits = list(matches(head, known, expr))
        for found, table in hits:
            inside = {known.where.xreplace(table)} if known.where != sp.true else set()
            inside = {c for w in inside for c in (w.args if isinstance(w, sp.And) else (w,))}
            new = tidy(expr.xreplace({found: value.xreplace(table)}))
            if inside <= set(b.conditions) and _denominators(new) <= _denominators(b.expr) | {d.xreplace(table) for d in allowed}:
                expr = new
        if expr != b.expr:
            yield _rewritten(listing, b, expr)


def _unreduced(listing: Listing) -> Iterator[Statement]:
    return (s for s in listing.program if not s.over and not s.range_only)


def drop_unread(listing: Listing) -> Iterator[Listing]:
    """Leave out the statements that no output depends on."""
    kept = needed(grouped(listing.derived), listing.outputs)
    if len(kept) < len(listing.derived):
        yield listing.with_derived(kept)


def name_functions(listing: Listing) -> Iterator[Listing]:
    """Read ``exp(..)`` or ``tanh(..)`` of a forward statement through the tensor that it defines: solve the statement for it."""
    for s in _unreduced(listing):
        for h in sorted(s.expr.atoms(sp.Function), key=str):
            if isinstance(h, (sp.Piecewise, sp.Max, sp.Min, sp.sign, sp.floor, sp.ceiling)) or not reads(h):
                continue
            if not any(b.expr.has(h.func) for b in listing.derived):
                continue
            d, t = sp.Dummy(real=True), sp.Dummy(real=True)
            rest, scalars = s.expr.xreplace({h: d}), {x for x in reads(h) if not subscripts_of(x)}
            if rest.has(sp.Function) or not set(reads(rest)) - {d} <= scalars or not _only_reads(rest):
                continue  # what else the statement depends on would be in the solution too
            table = {x: sp.Dummy(real=True) for x in (*reads(s.expr), *integer_symbols(s.expr))}
            solved = sp.solve(s.expr.xreplace({h: d}).xreplace(table) - t, d, simplify=False)
            if len(solved) != 1:
                continue
            value = solved[0].xreplace({v: k for k, v in table.items()}).xreplace({t: s.target})
            plain = {x for x in reads(value) if x != s.target} <= {x for x in reads(h) if not subscripts_of(x)}
            if plain and not value.has(sp.Function) and _only_reads(value):
                yield from _substituted(listing, s, h, value)


def name_roots(listing: Listing) -> Iterator[Listing]:
    """From ``t = sqrt(v)``: read every power of ``v`` that is a whole power of ``t`` through ``t``."""
    for s in _unreduced(listing):
        power = s.expr
        if not (isinstance(power, sp.Pow) and power.exp.is_Rational and not power.exp.is_Integer and _only_reads(power)):
            continue
        for e in sorted({p.exp for b in listing.derived for p in b.expr.atoms(sp.Pow)}, key=str):
            if e.is_Rational and (e / power.exp).is_Integer:
                yield from _substituted(listing, s, power.base**e, s.target ** (e / power.exp), {s.target})


def name_quotients(listing: Listing) -> Iterator[Listing]:
    """From ``P = E/l``: read the helper ``E`` as ``P*l``."""
    for s in _unreduced(listing):
        for e in factors(s.expr):
            if isinstance(e, sp.Indexed) and name_of(e) in listing.forward and set(subscripts_of(e)) == set(s.indices):
                helper = listing.forward[name_of(e)]
                if helper.aux and not s.aux:
                    yield from _substituted(listing, s, e, s.target * e / s.expr)


def take_out(listing: Listing) -> Iterator[Listing]:
    """Take factors without bound index out of a sum, where one of them is a helper of the forward program."""
    for b in listing.derived:
        if not b.over or b.reduce != "sum" or listing.known(b.name):
            continue
        outside = [f for f in sp.Mul.make_args(b.expr) if not integer_symbols(f) & set(b.over)]
        names = {name_of(x) for f in outside for x in reads(f)}
        if any(n in listing.forward and listing.forward[n].aux for n in names):
            rest = sp.Mul(*[f for f in sp.Mul.make_args(b.expr) if f not in outside])
            inner = tensor(listing.fresh(b.name + "_sum"), *b.indices)
            yield listing.replaced(
                {b.name: (replace(b, target=inner, expr=rest), Statement(b.target, tidy(sp.Mul(*outside) * inner)))}
            )


def inline_helpers(listing: Listing) -> Iterator[Listing]:
    """Put the expression of an unreduced helper in the place of its name."""
    for b in listing.derived:
        users = listing.users(b.name)
        if b.over or listing.known(b.name) or not users or (len(users) > 1 and b.expr.count_ops() > _SHORT):
            continue
        if all(listing.domain_allows(b, u) for u in users):
            yield listing.inlined(b)


def inline_copies(listing: Listing) -> Iterator[Listing]:
    """Do without a gradient that is another one, or a scalar multiple of it; not where a sum is known by its name."""
    for b in listing.derived:
        users = listing.users(b.name)
        if b.over or b.name in listing.outputs or not users or not is_scalar_multiple(b.expr):
            continue
        source = next(f for f in sp.Mul.make_args(b.expr) if isinstance(f, sp.Indexed))
        if name_of(source) not in {*listing.by_name, *listing.gradient_of} or sorted(map(str, source.indices)) != sorted(
            map(str, b.indices)
        ):
            continue
        if all(u.name not in listing.given and listing.domain_allows(b, u) for u in users):
            yield listing.inlined(b)


def weighted_gradient(listing: Listing, b: Statement) -> bool:
    """Whether a statement is a sum of a forward tensor times its gradient: the role that is called ``D``."""
    f = factors(b.expr)
    if not b.over or b.reduce != "sum" or len(f) != 2 or any(not isinstance(x, sp.Indexed) for x in f):
        return False
    return any(
        listing.gradient_of.get(name_of(g)) == name_of(x) and name_of(x) in listing.forward and g.indices == x.indices
        for x, g in (f, f[::-1])
    )


def name_weighted_gradients(listing: Listing) -> Iterator[Listing]:
    """Call the row sum of a tensor times its gradient ``D`` (numbered when there are several), a number in front taken out."""
    for b in listing.derived:
        if listing.known(b.name) or not weighted_gradient(listing, b) or b.name.rstrip("0123456789") == "D":
            continue
        name = listing.fresh("D")
        sign, target = coefficient(b.expr), tensor(name, *b.indices)
        changed: dict[str, tuple[Statement, ...]] = {b.name: (replace(b, target=target, expr=b.expr / sign),)}
        for u in listing.users(b.name):
            changed[u.name] = (replace(u, expr=tidy(replace_reads(u.expr, b.target, sign * target))),)
        yield listing.naming(name).replaced(changed)


def name_shares(listing: Listing) -> Iterator[Listing]:
    """Call what a row's sum takes off every gradient of the row ``D``: ``dS = dP - D`` with ``D = sum_j dP / k``."""
    for b in listing.derived:
        users = listing.users(b.name)
        if not b.over or b.reduce != "sum" or listing.known(b.name) or not users:
            continue
        shares = {_share(u, b.target) for u in users}
        share = next(iter(shares))
        if len(shares) != 1 or share is None or not any(name_of(x) in listing.forward for x in reads(share)):
            continue
        name = listing.fresh("D")
        target = tensor(name, *b.indices)
        changed: dict[str, tuple[Statement, ...]] = {b.name: (replace(b, target=target, expr=tidy(-share * b.expr)),)}
        for u in users:
            changed[u.name] = (replace(u, expr=tidy(u.expr - share * b.target - target)),)
        yield listing.naming(name).replaced(changed)


def _share(u: Statement, x: sp.Expr) -> sp.Expr | None:
    """The factor of ``x`` in a statement that adds a multiple of it, by factors of the same indices, to something else."""
    if u.over or not u.expr.is_Add:
        return None
    terms = [t for t in u.expr.args if t.has(x)]
    share = terms[0] / x if len(terms) == 1 else None
    if share is None or share.has(x) or not integer_symbols(share) <= set(subscripts_of(x)) < set(u.indices):
        return None
    return share


def name_weights(listing: Listing) -> Iterator[Listing]:
    """Give a weight that the forward list does not name, an exponential over the normaliser, the name ``P0``."""
    helpers = {s.name for s in listing.program if s.aux or s.range_only}
    for b in listing.derived:
        part = [f for f in sp.Mul.make_args(b.expr) if any(name_of(x) in helpers for x in reads(f))]
        weight = sp.Mul(*part)
        if not b.over or not {name_of(x) for d in _denominators(weight) for x in reads(d)} & helpers or part == [weight]:
            continue
        name = listing.fresh("P0")
        target = tensor(name, *[a for a in b.domain if a in integer_symbols(weight)])
        if b.expr == weight:
            continue
        yield listing.naming(name).replaced({b.name: (Statement(target, weight), replace(b, expr=b.expr / weight * target))})


def share_products(listing: Listing) -> Iterator[Listing]:
    """Read a product that an earlier unreduced statement already names by that name."""
    for k, s in enumerate(listing.derived):
        if s.over or not s.expr.is_Mul or s.expr.count_ops() < 2:
            continue
        for b in listing.derived[k + 1 :]:
            if not b.expr.is_Mul or not set(s.conditions) <= set(b.conditions) or not set(s.reads) <= set(b.reads):
                continue
            for terms in {(b.expr,), _distributed(b.expr)}:
                shared = [(t, q) for t in terms if _denominators(q := tidy(t / s.expr)) <= _denominators(b.expr)]
                shared = [(t, q) for t, q in shared if not set(reads(q)) & {x for x in s.reads if name_of(x) in listing.by_name}]
                new = tidy(sp.Add(*[t for t in terms if t not in dict(shared)], *[q * s.target for _, q in shared]))
                if shared and new.count_ops() < b.expr.count_ops():
                    yield _rewritten(listing, b, new)


def _distributed(expr: sp.Expr) -> tuple[sp.Expr, ...]:
    """The terms of a product with one sum among its factors, each times the other factors."""
    sums = [f for f in sp.Mul.make_args(expr) if f.is_Add]
    return tuple(a * expr / sums[-1] for a in sums[-1].args) if sums else (expr,)


def shorten(listing: Listing) -> Iterator[Listing]:
    """Bring each expression to its shortest shape."""
    for b in listing.derived:
        if (expr := tidy(b.expr)) != b.expr:
            yield _rewritten(listing, b, expr)


def _spelled_out(expr: sp.Expr, known: dict[str, Statement]) -> sp.Expr:
    """A product with every factor that an unreduced product defines replaced by that product, again and again."""
    for _ in range(len(known) + 1):
        new = expr
        for s in known.values():
            if not s.over and not s.range_only and not s.expr.is_Add:
                new = replace_reads(new, s.target, s.expr)
        if new == expr:
            break
        expr = new
    return expr


def refold(listing: Listing) -> Iterator[Listing]:
    """Exchange the sums in ``D = sum_j P dP = sum_j P sum_e dO V`` and read the inner one by its forward name, ``O``."""
    known = {**listing.forward, **listing.by_name}
    products = {n: s for n, s in known.items() if all(isinstance(f, (sp.Indexed, sp.Symbol, sp.Pow)) for f in factors(s.expr))}
    for b in listing.derived:
        if not weighted_gradient(listing, b) or b.name in listing.outputs:
            continue
        if any(name_of(x) in listing.forward and listing.forward[name_of(x)].over for x in b.reads):
            continue  # the weighted tensor is a sum already: folded
        long = _spelled_out(b.expr, products)
        for f in factors(long):
            s = listing.by_name.get(name_of(f)) if isinstance(f, sp.Indexed) else None
            if s is None or not s.over or s.reduce != "sum" or f != s.target or set(s.over) & set(b.domain):
                continue
            whole = long / f * _spelled_out(s.expr, products)
            for u in listing.program:
                if not u.over or u.reduce != "sum" or not set(u.over) <= set(b.over):
                    continue
                rest = whole / _spelled_out(u.expr, products)
                if integer_symbols(rest) & set(u.over):
                    continue
                over = tuple(a for a in (*b.over, *s.over) if a not in u.over)
                where = sp.And(*[c for c in {*b.conditions, *s.conditions} if not integer_symbols(c) & set(u.over)])
                if set(u.domain) <= {*b.domain, *s.over}:
                    yield listing.replaced({b.name: (replace(b, expr=rest * u.target, over=over, where=where),)})


REFOLD = Rule("refold", "the sums are exchanged and the inner one is read by its name", refold)

RULES: tuple[Rule, ...] = (
    Rule("unread", "nothing that is asked for depends on it", drop_unread),
    Rule("products", "the product without a factor is the product over that factor", divide_products),
    Rule("functions", "the function is read through the forward tensor that it defines", name_functions),
    Rule("roots", "the power is read through the forward tensor that is its root", name_roots),
    Rule("quotients", "the helper is the weight times the normaliser", name_quotients),
    Rule("take out", "factors that do not depend on the summed index leave the sum", take_out),
    Rule("name", "the sum of a tensor times its gradient is D", name_weighted_gradients),
    Rule("helpers", "the helper is put in", inline_helpers),
    Rule("copies", "a multiple of another gradient needs no name", inline_copies),
    Rule("name weights", "the exponential over the normaliser is a weight", name_weights),
    Rule("share", "the product has a name already", share_products),
    Rule("shorten", "terms are cancelled and collected", shorten),
    Rule("shares", "what the row takes off each of its gradients is D", name_shares),
)
