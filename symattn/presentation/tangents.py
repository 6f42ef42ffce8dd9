"""The rules that bring a tangent to the form that people know: ``dot P = P∘(dot S - dot L)`` with ``dot L = rowsum(P∘dot S)``.

What all tangents of a softmax have in common is the tangent of the log-sum-exp: it is the average of the scores' tangents under
the weights, and what each of them is measured against. It is found by structure (a numerator over the sum of it), whatever the
letters, and given the name ``L_t``. All other rules are those of gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import sympy as sp

from symattn.indexed import name_of, reads, subscripts_of, tensor
from symattn.presentation.driver import present
from symattn.presentation.listing import Listing
from symattn.presentation.presented import Presented
from symattn.presentation.rules import RULES, Rule
from symattn.presentation.scalars import replace_reads, tidy
from symattn.presentation.softmax import exponent, log_sum_exp, normalisations
from symattn.program import Program, Statement

__all__ = ["TANGENT_RULES", "present_tangent"]


def present_tangent(program: Program, tangent: Program) -> Presented:
    """The tangent of ``program`` in the form that people know; every rewriting is proved or checked.

    Parameters
    ----------
    program
        The forward program, or any list that is differentiated once more, such as a presented gradient.
    tangent
        What :func:`symattn.adjoint.tangent` makes of it: its statements, followed by those of the tangent.

    Returns
    -------
    Presented
        ``L_t``, the tangent of the log-sum-exp, is named whether or not the program has a log-sum-exp.

    Raises
    ------
    ProgramError
        When ``tangent`` does not start with the statements of ``program``.

    >>> from symattn.adjoint import tangent
    >>> from symattn.definition import Definition
    >>> program = Definition(lse=False).program()
    >>> for s in present_tangent(program, tangent(program, ["Q"])).derived:
    ...     print(s)
    R_t[i, j] = sum over c of K[j, c]*Q_t[i, c]
    S_t[i, j] = scale*R_t[i, j]
    L_t[i] = sum over j of P[i, j]*S_t[i, j]
    P_t[i, j] = (-L_t[i] + S_t[i, j])*P[i, j]
    O_t[i, e] = sum over j of P_t[i, j]*V[j, e]
    """
    return present(program, tangent, TANGENT_RULES)


def name_log_tangents(listing: Listing) -> Iterator[Listing]:
    """From ``l_t``, the tangent of a normaliser: that of its logarithm, ``L_t = l_t/l``, and ``l_t`` read as ``L_t*l``."""
    for n in normalisations(listing.program):
        divisor = listing.forward[name_of(n.divisor)]
        moving = listing.by_name.get(divisor.name + "_t")
        if moving is None or exponent(n.numerator, listing.program) is None:
            continue
        known = log_sum_exp(n, listing.program)
        if known is None:
            at, k, name = moving.indices, sp.S.One, _free_name(listing)
        else:
            at, k, name = known[0].indices, known[1], known[0].name + "_t"
        if name in listing.by_name and moving.name not in listing.by_name[name].needs:
            continue
        back = dict(zip(moving.indices, divisor.indices, strict=True))
        whole = moving.renamed(back) if back else moving
        target = tensor(name, *at)
        changed: dict[str, tuple[Statement, ...]] = {name: ()}
        changed[moving.name] = (replace(whole, target=target, expr=tidy(k * whole.expr / divisor.target)),)
        for u in listing.users(moving.name):
            if u.name != name:
                changed[u.name] = (replace(u, expr=tidy(replace_reads(u.expr, whole.target, target * divisor.target / k))),)
        yield listing.naming(name).replaced(changed)


def _free_name(listing: Listing) -> str:
    """``L_t``, numbered where a tensor is called ``L`` or the name is taken: ``L2_t``."""
    k, name = 2, "L"
    while name in listing.taken or name + "_t" in listing.taken:
        name, k = f"L{k}", k + 1
    return name + "_t"


def join_copies(listing: Listing) -> Iterator[Listing]:
    """A statement that only repeats a helper takes the helper's place."""
    for u in listing.derived:
        if u.over or u.where != sp.true or not isinstance(u.expr, (sp.Indexed, sp.Symbol)) or not reads(u.expr):
            continue
        b = listing.by_name.get(name_of(u.expr))
        if (
            b is None
            or listing.known(b.name)
            or listing.users(b.name) != (u,)
            or len(set(subscripts_of(u.expr))) != len(u.indices)
        ):
            continue
        table = dict(zip(b.indices, subscripts_of(u.expr), strict=True))
        if set(table.values()) & set(b.over):
            continue
        joined = replace(b.renamed(table), target=u.target)
        yield listing.replaced({b.name: (), u.name: (joined,)})


def name_shares(listing: Listing) -> Iterator[Listing]:
    """The average of the scores' tangents that a log-sum-exp with a sink shares with it gets the name ``Lk_t``."""
    logs = {n for n in listing.given if n.endswith("_t")}
    for b in listing.derived:
        users = listing.users(b.name)
        if not b.over or b.reduce != "sum" or listing.known(b.name) or not users or {u.name for u in users} - logs:
            continue
        if any(name_of(x) in listing.forward and listing.forward[name_of(x)].aux for x in b.reads):
            continue  # a helper is to leave the sum first
        name = listing.fresh("Lk_t")
        target = tensor(name, *b.indices)
        changed: dict[str, tuple[Statement, ...]] = {b.name: (replace(b, target=target),)}
        for u in users:
            changed[u.name] = (replace(u, expr=tidy(replace_reads(u.expr, b.target, target))),)
        yield listing.naming(name).replaced(changed)


def collect(listing: Listing) -> Iterator[Listing]:
    """``P_t (dP - D) + P (dP_t - D_t)``: terms with a tensor in common are put together where that is shorter."""
    for b in listing.derived:
        if not b.expr.is_Add:
            continue
        for x in reads(b.expr):
            shared = [t for t in b.expr.args if x in sp.Mul.make_args(t)]
            if len(shared) < 2:
                continue
            rest = [t for t in b.expr.args if t not in shared]
            new = sp.Add(*rest, x * tidy(sp.Add(*[t / x for t in shared])))
            if new.count_ops() < b.expr.count_ops():
                yield listing.replaced({b.name: (replace(b, expr=new),)})
                break


_SAME = {r.name: r for r in RULES}
TANGENT_RULES: tuple[Rule, ...] = (
    _SAME["unread"],
    _SAME["functions"],
    Rule("log", "the normaliser moves by itself times the tangent of its logarithm", name_log_tangents),
    _SAME["quotients"],
    _SAME["take out"],
    _SAME["helpers"],
    Rule("join", "the helper and what repeats it are one", join_copies),
    Rule("shares", "the share of the keys in the tangent of the log-sum-exp is named", name_shares),
    _SAME["share"],
    _SAME["shorten"],
    Rule("collect", "terms with a tensor in common are put together", collect),
)
