"""Programs with less work: what is there already is read, what is common to a row is multiplied once a row.

Gradients repeat parts of what they are derived from: ``exp(S[i, j] - m[i])`` where ``E[i, j]`` is there. And a tensor that is
another one times factors of fewer indices (``P[i, j] = E[i, j]/l[i]``) is not formed where only sums of products read it: its
factors go to these, where they meet smaller arrays. A sum of products that is read once, to be multiplied by a number, is formed
with the number in it (``S[i, j] = scale R[i, j]``), which goes to the smaller factor. All of this keeps the value of every output
in exact arithmetic; what it does to rounding is seen by the rules that evaluate the program.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from symattn.program import Program, Statement, integer_symbols, name_of, reads, subscripts_of

__all__ = ["lighter", "scaled", "shared"]


def lighter(program: Program) -> Program:
    """The program with all of it, and without what no output needs."""
    return scaled(unscaled(shared(program).live()).live())


def shared(program: Program) -> Program:
    """The program with expressions that define an earlier tensor replaced by reads of it.

    Let t be an earlier statement without a reduction whose expression has all of its indices, under no condition or under
    that of a later statement s. Wherever s is evaluated, t holds the value of its expression at the same values of the indices,
    which are the same symbols with the same ranges: reading t there gives what the expression gives.
    Tensors of scans, and those that are ``range_only``, stay as they are.

    >>> from symattn.program import indices, size, tensor
    >>> i, = indices("i")
    >>> x, e, y = tensor("x", i), tensor("e", i), tensor("y", i)
    >>> p = Program((Statement(e, sp.exp(x)), Statement(y, 2 * sp.exp(x) + 1)), {i: size("n")}, ("e", "y"))
    >>> print(shared(p))
    e[i] = exp(x[i])
    y[i] = 2*e[i] + 1
    """
    made: list[Statement] = []
    for s in program:
        earlier = {t.expr: t.target for t in made if _readable(t, s)} if s.scan is None and not s.range_only else {}
        made.append(replace(s, expr=s.expr.xreplace(earlier)) if earlier else s)
    return program if tuple(made) == program.statements else program.with_statements(made)


def _readable(t: Statement, s: Statement) -> bool:
    """Whether a statement may read an earlier one in place of what defines that."""
    plain = not t.over and t.scan is None and not t.range_only and t.where in (sp.true, s.where)
    return plain and isinstance(t.expr, (sp.exp, sp.log, sp.Pow)) and bool(t.indices) and t.expr.free_symbols >= set(t.indices)


def unscaled(program: Program) -> Program:
    """The program without tensors that are another one times factors of fewer indices, if only sums of products read them.

    Such a tensor has no condition, or that of the sum, so that its factors are there at every point of the sum. A condition may
    leave a row no point, where factors that do not depend on what is summed over need not have a value: the sum is 0 there.

    >>> from symattn.program import indices, size, tensor
    >>> i, j = indices("i j")
    >>> p = Statement(tensor("P", i, j), tensor("E", i, j) / tensor("l", i))
    >>> o = Statement(tensor("O", i), tensor("P", i, j) * tensor("v", j), (j,))
    >>> print(unscaled(Program((p, o), {i: size("n"), j: size("m")}, ("O",))).live())
    O[i] = sum over j of E[i, j]*v[j]/l[i]
    """
    statements = {s.name: s for s in program}
    for t in reversed(tuple(program)):
        if t.name in program.outputs or not _is_scaled(t):
            continue
        users = [s for s in statements.values() if t.name in s.needs]
        if all(_takes(s, t) for s in users):
            for s in users:
                statements[s.name] = replace(
                    s, expr=s.expr.xreplace({x: _at(t, x) for x in reads(s.expr) if name_of(x) == t.name})
                )
    made = tuple(statements.values())
    return program if made == program.statements else program.with_statements(made)


def scaled(program: Program) -> Program:
    """The program with the numbers that sums of products are multiplied by in these sums.

    Let s be ``f R[i, j]``, f without indices, under no condition, and R a sum of products under none that only s reads. The sum
    of ``f`` times the terms over the same values is s: a finite sum is linear.

    >>> from symattn.program import indices, size, tensor
    >>> i, j, c = indices("i j c")
    >>> r = Statement(tensor("R", i, j), tensor("q", i, c) * tensor("k", j, c), (c,))
    >>> s = Statement(tensor("S", i, j), tensor("R", i, j) * tensor("scale"))
    >>> print(scaled(Program((r, s), {i: size("n"), j: size("m"), c: size("d")}, ("S",))))
    S[i, j] = sum over c of scale*k[j, c]*q[i, c]
    """
    statements = {s.name: s for s in program}
    for s in program:
        read = next((f for f in sp.Mul.make_args(s.expr) if isinstance(f, sp.Indexed) and name_of(f) in statements), None)
        if read is None or read == s.expr:
            continue
        r = statements[name_of(read)]
        if r.name not in program.outputs and program.users(r.name) == (s,) and _is_multiple(s, read) and _is_contraction(r):
            at = dict(zip(r.indices, subscripts_of(read), strict=True))
            statements[s.name] = replace(s, expr=s.expr.xreplace({read: r.expr.xreplace(at)}), over=r.over)
            del statements[r.name]
    made = tuple(statements.values())
    return program if made == program.statements else program.with_statements(made)


def _is_multiple(s: Statement, read: sp.Indexed) -> bool:
    """Whether a statement is a read with all of its indices times numbers."""
    if s.over or s.scan is not None or s.range_only or s.where != sp.true or set(subscripts_of(read)) != set(s.indices):
        return False
    others = [f for f in s.expr.args if f != read]
    return len(subscripts_of(read)) == len(s.indices) and not any(integer_symbols(f) for f in others)


def _is_contraction(r: Statement) -> bool:
    """Whether a statement is a sum of products of two reads at every point."""
    plain = bool(r.over) and r.reduce == "sum" and r.scan is None and not r.range_only and r.where == sp.true
    return plain and isinstance(r.expr, sp.Mul) and len(r.expr.args) == 2 and all(isinstance(f, sp.Indexed) for f in r.expr.args)


def _is_scaled(t: Statement) -> bool:
    """Whether a statement is one read with all its indices times factors that have fewer."""
    if t.over or t.scan is not None or t.range_only or not isinstance(t.expr, sp.Mul):
        return False
    all_ = frozenset(t.indices)
    wide = [f for f in t.expr.args if integer_symbols(f) & all_ == all_]
    return len(wide) == 1 and isinstance(wide[0], sp.Indexed) and set(subscripts_of(wide[0])) == all_


def _takes(s: Statement, t: Statement) -> bool:
    """Whether a statement is a sum of products that have a tensor as a factor, once, at plain indices."""
    if s.reduce != "sum" or not s.over or s.scan is not None or s.range_only:
        return False
    if not isinstance(s.expr, sp.Mul):
        return False
    found = [f for f in s.expr.args if isinstance(f, sp.Indexed) and name_of(f) == t.name]
    everywhere = [x for x in sp.preorder_traversal(s.expr) if isinstance(x, sp.Indexed) and name_of(x) == t.name]
    sub = subscripts_of(found[0]) if found else ()
    if not len(found) == len(everywhere) == 1 or len(set(sub)) != len(sub) or not set(sub) <= set(s.domain):
        return False
    return t.where == sp.true or t.where.xreplace(dict(zip(t.indices, sub, strict=True))) == s.where


def _at(t: Statement, x: sp.Indexed) -> sp.Expr:
    """What defines a tensor, at the indices of a read."""
    return t.expr.xreplace(dict(zip(t.indices, subscripts_of(x), strict=True)))
