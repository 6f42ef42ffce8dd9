"""The theorem that a gradient is the transpose of a tangent: ``<dO, O_t> = sum over X of <dX, X_t>``, proved for all sizes.

It holds for any program, and it is the strongest single test of a gradient: incoming gradients and directions being free, it says
that every entry of every gradient is right. A presented list is proved against the tangent, which is derived forwards and shares
nothing with it but the forward statements.

In a scan nothing has to be unrolled: for a tensor h of it, ``sum over t of <dh[t], h_t[t]>`` is written once with the step of the
tangent and once with that of the gradient, and the two are the same sum. What is left of both is the claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import sympy as sp

from symattn.claims import prove_range_only
from symattn.derivative import backward, forward, real_inputs, tangent_name
from symattn.errors import LimitError, ProgramError
from symattn.facts import knowing
from symattn.indexed import all_reads, name_of, subscripts_of, tensor
from symattn.normalform import NormalForm, SumOver
from symattn.program import Program, Statement
from symattn.scans import grouped, kept_apart

__all__ = ["called", "prove_duality", "prove_equal_gradients", "side_by_side"]


def prove_duality(
    program: Program, wrt: Iterable[str] | None = None, gradient: Program | None = None, limit: int = 20_000
) -> bool:
    """Prove ``<dO, O_t> = sum of <dX, X_t>`` for all sizes.

    Parameters
    ----------
    program
        The forward statements.
    wrt
        The tensors that move; all inputs that have a gradient by default.
    gradient
        A list to be judged, such as a presented one: its outputs are the gradients in the order of ``wrt``, its incoming
        gradients are inputs called ``"d" + output``. The derived adjoint by default.
    limit
        The greatest number of terms that a proof may have.

    Returns
    -------
    bool
        True: proved for all sizes, wherever the expressions are defined (no divisor is 0). False: not proved.

    Raises
    ------
    ProofError
        When a ``range_only`` claim of the program is not proved.
    NotDifferentiableError
        When the program has no tangent.
    ProgramError
        When ``gradient`` has not as many outputs as ``wrt`` has names.

    >>> from symattn.indexed import indices, size
    >>> i, j = indices("i j")
    >>> y = Statement(tensor("y", i), tensor("A", i, j) * sp.tanh(tensor("x", j)), (j,))
    >>> program = Program((y,), {i: size("n"), j: size("m")}, ("y",))
    >>> prove_duality(program)
    True
    >>> good = backward(program, ["x"]).program
    >>> bad = good.with_statements([y, replace(good["dx"], expr=-good["dx"].expr)])
    >>> prove_duality(program, ["x"], good), prove_duality(program, ["x"], bad)
    (True, False)
    """
    prove_range_only(program)
    asked = real_inputs(program) if wrt is None else tuple(dict.fromkeys(wrt))
    ahead = forward(program, asked)
    if gradient is None:
        back = backward(program, asked)
        gradient, seeds = back.program, back.seeds
    else:
        seeds = {o: "d" + o for o in program.outputs}
    if len(gradient.outputs) != len(asked):
        raise ProgramError(f"{len(asked)} gradients are asked for ({', '.join(asked)}), the list has {len(gradient.outputs)}")
    own, names = side_by_side(ahead, gradient)
    joined = _join(ahead, (*ahead, *own), (gradient,))
    claim = sp.S.Zero
    for o, o_t in zip(program.outputs, ahead.outputs, strict=True):
        at = program[o].indices
        claim += _inner(tensor(seeds[o], *at) * tensor(o_t, *at), at)
    for n, g in zip(asked, gradient.outputs, strict=True):
        target = joined[names.get(g, g)].target
        at = subscripts_of(target)
        claim -= _inner(target * tensor(tangent_name(n), *at), at)
    pairs = tuple(_pairs(program, joined))
    for moved, grad in pairs:
        at = moved.indices
        to = dict(zip(grad.indices, at, strict=True))
        claim += _inner(tensor(grad.name, *at) * _right(moved), at)
        claim -= _inner(moved.target * _right(grad).xreplace(to), at)
    named = {s.name for s in program} | {s.name for pair in pairs for s in pair}
    helpers = [replace(s, scan=None) for s in joined if s.scan is not None and s.name not in named]
    return _vanishes(claim, program, joined, seeds, limit, helpers)


def _pairs(program: Program, joined: Program) -> Iterator[tuple[Statement, Statement]]:
    """For each tensor of a scan, its tangent and its gradient, which are defined in scans too."""
    scanned = {s.name.rstrip("'*"): s for s in reversed(joined.statements) if s.scan is not None}
    for s in program:
        moved, grad = scanned.get(tangent_name(s.name)), scanned.get("d" + s.name)
        if s.scan is not None and moved is not None and grad is not None:
            yield moved, grad


def _right(s: Statement) -> sp.Expr:
    """The right side of a statement as an expression."""
    return SumOver(s.expr, *s.over, where=s.where) if s.over or s.where != sp.true else s.expr


def prove_equal_gradients(raw: Program, presented: Program, limit: int = 20_000) -> bool:
    """Prove that two lists give the same outputs for all sizes; facts are taken from the statements that both have.

    Parameters
    ----------
    raw, presented
        Programs with equally many outputs, compared in order: a derived gradient and its presented form.
    limit
        The greatest number of terms that a proof may have.

    Returns
    -------
    bool
        True: proved for all sizes, wherever the expressions are defined. False: not proved.

    >>> from symattn.indexed import indices, size
    >>> i, j = indices("i j")
    >>> E, l, P = tensor("E", i, j), tensor("l", i), tensor("P", i, j)
    >>> def rows(expr):
    ...     known = (Statement(l, E, (j,)), Statement(P, E / l))
    ...     return Program((*known, Statement(tensor("r", i), expr, (j,))), {i: size("n"), j: size("m")}, ("r",))
    >>> prove_equal_gradients(rows(E), rows(P * l)), prove_equal_gradients(rows(E), rows(P))
    (True, False)
    """
    if len(raw.outputs) != len(presented.outputs):
        raise ProgramError(f"{len(raw.outputs)} outputs cannot equal {len(presented.outputs)}")
    own, names = side_by_side(raw, presented)
    common = [s for s in raw if s.name in presented and presented[s.name] == s and s.name not in names]
    base = Program(tuple(common), raw.dims, (), {k: v for k, v in raw.shapes.items() if any(k in s.needs for s in common)})
    joined = _join(raw, (*raw, *own), (presented,))
    seeds = {s.name: "d" + s.name for s in common if "d" + s.name in raw.inputs}
    for a, b in zip(raw.outputs, presented.outputs, strict=True):
        left, right = raw[a].target, joined[names.get(b, b)].target
        right = right.xreplace(dict(zip(subscripts_of(right), subscripts_of(left), strict=True)))
        if not _vanishes(left - right, base, joined, seeds, limit):
            return False
    return True


def _inner(body: sp.Expr, at: Sequence[sp.Symbol]) -> sp.Expr:
    return SumOver(body, *at) if at else body


def side_by_side(program: Program, other: Program) -> tuple[list[Statement], dict[str, str]]:
    """The statements of ``other`` that ``program`` has not, and new names for tensors that the two define differently.

    A statement is shared when both have it and everything that it reads is shared.
    """
    taken = {*program.inputs, *(s.name for s in program), *other.inputs, *(s.name for s in other)}
    names: dict[str, str] = {}
    own: list[Statement] = []

    def apart(name: str) -> None:
        names[name] = next(name + "*" * k for k in range(1, len(taken) + 2) if name + "*" * k not in taken)
        taken.add(names[name])

    for n in other.inputs:
        if n in program:
            apart(n)
    for s in other:
        if s.name in program and program[s.name] == s and not s.needs & names.keys():
            continue
        if s.name in program or s.name in program.inputs:
            apart(s.name)
        own.append(s)
    return [called(s, names) for s in own], names


def called(s: Statement, names: Mapping[str, str]) -> Statement:
    """The statement with tensors under other names.

    >>> from symattn.indexed import indices
    >>> i, j = indices("i j")
    >>> print(called(Statement(tensor("l", i), tensor("E", i, j), (j,)), {"E": "F", "l": "r"}))
    r[i] = sum over j of F[i, j]
    """
    if not names:
        return s
    table = {x: x for x in (*all_reads(s.expr), *all_reads(s.where))}
    for x in sorted(table, key=lambda y: len(str(y))):
        inner = {k: v for k, v in table.items() if k != x and k != v}
        sub = [a.xreplace(inner) for a in subscripts_of(x)]
        table[x] = tensor(names.get(name_of(x), name_of(x)), *sub)
    target = tensor(names.get(s.name, s.name), *s.indices)
    return replace(s, target=target, expr=s.expr.xreplace(table), where=s.where.xreplace(table))


def _join(program: Program, statements: Iterable[Statement], others: Iterable[Program]) -> Program:
    """One program of all statements, with the sizes and shapes of all."""
    listed = kept_apart(grouped(statements))
    dims, shapes = dict(program.dims), dict(program.shapes)
    for o in others:
        for a, n in o.dims.items():
            if dims.setdefault(a, n) != n:
                raise ProgramError(f"index {a} has the sizes {dims[a]} and {n}")
        shapes = {**o.shapes, **shapes}
    defined = {s.name for s in listed}
    read = {n for s in listed for n in s.needs} - defined
    return Program(listed, dims, (), {k: v for k, v in shapes.items() if k in read})


def _vanishes(
    claim: sp.Expr, program: Program, joined: Program, seeds: dict[str, str], limit: int, helpers: Iterable[Statement] = ()
) -> bool:
    """Whether a claim is 0: first with all forward tensors as names, then with what the program says of them.

    ``helpers`` are statements of scans that are written out; what else a scan defines stays a name.
    """
    written = {s.name: s for s in helpers}
    for opaque in ([s.name for s in program], None):
        form: NormalForm = knowing(program, joined, seeds, opaque, limit=limit)
        form.open |= written
        form.statements |= written
        try:
            if form.is_zero(claim):
                return True
        except LimitError:
            continue
    return False
