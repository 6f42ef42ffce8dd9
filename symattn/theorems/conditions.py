"""Conditions on programs, each found out from the statements: by the normal form, or by how a statement is made.

None of them asks for the name of a variant, so they say of a definition that nobody wrote down before what holds for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import sympy as sp

from symattn.indexed import Tensor, conjuncts, index, name_of, subscripts_of, tensor
from symattn.program import Program, Statement
from symattn.theorems.claim import Equal
from symattn.theorems.copies import Beside, beside
from symattn.theorems.deciding import proved_for_all_sizes
from symattn.theorems.subject import Subject
from symattn.theorems.theorem import Condition

__all__ = [
    "AFFINE_IN_KEYS",
    "EXPONENTIAL_WEIGHTS",
    "NATURAL_LOGARITHM",
    "ONE_FACTOR_PER_PAIR",
    "OUTPUT_IS_WEIGHTED_SUM",
    "SHIFT_INVARIANT",
    "THROUGH_THE_PRODUCT",
    "WEIGHTS_SUM_TO_ONE",
    "compared",
    "range_steps",
    "shifted",
    "transformed",
]


def compared(program: Program, left: Statement, right: Statement, text: str, **more: object) -> Equal:
    """The claim that two statements beside a program give the same."""
    both = program.with_statements((*program, *(s for s in (left, right) if s.name not in program)))
    return Equal(both, left.name, right.name, text, **more)  # type: ignore[arg-type]


def of_gradient(s: Subject, gradient: Program, left: Statement, right: Statement, text: str) -> Equal:
    """The claim that two statements beside the gradient of a subject give the same."""
    return compared(gradient, left, right, text, forward=s.plain, seeds=s.seeds)


# ---------------------------------------------------------------- shifts of a row
def shifted(subject: Subject) -> tuple[Beside, tuple[Statement, ...], Tensor]:
    """The program beside the copy whose scores have a constant of the row added; the steps of a proof; and the constant."""
    score, program = subject.score, subject.program
    r = subject.tensor("r", *subject.row)
    old = program[name_of(score)]
    shapes = {name_of(r): tuple(program.dims[a] for a in subject.row)}
    both = beside(program, [Statement(tensor(old.name + "*", *old.indices), score + r, where=subject.where)], shapes=shapes)
    return both, range_steps(both, r), r


def range_steps(both: Beside, r: sp.Expr) -> tuple[Statement, ...]:
    """Row maxima of the copy given the value of the first one plus ``r``: nothing depends on their value."""
    maxima = [(both.program[star], name) for star, name in both.pairs if both.program[star].range_only]
    return tuple(Statement(s.target, both.program[name].target + r) for s, name in maxima)


def _shift_invariant(subject: Subject) -> bool:
    both, steps, _ = shifted(subject)
    star = name_of(subject.weights) + "*"
    if star not in both.program:
        return True
    claim = Equal(both.program, star, name_of(subject.weights), steps=steps, pairs=both.pairs)
    return proved_for_all_sizes(claim) is not None


SHIFT_INVARIANT = Condition("the normaliser does not change under a shift of the row", _shift_invariant)


# ---------------------------------------------------------------- weights and output
def _sum_to_one(subject: Subject) -> bool:
    total = Statement(tensor("sum of weights", *subject.row), subject.multiplying, (subject.key_index,))
    one = Statement(tensor("one", *subject.row), sp.S.One)
    return proved_for_all_sizes(compared(subject.plain, total, one, "", forward=subject.plain)) is not None


WEIGHTS_SUM_TO_ONE = Condition("the weights that multiply V sum to one in every row", _sum_to_one)


def _weighted_sum(subject: Subject) -> bool:
    s = subject.statement("O")
    values = [x for x in s.reads if name_of(x) == "V"]
    return len(values) == 1 and s.over == (subject.key_index,) and sp.expand(s.expr - subject.multiplying * values[0]) == 0


OUTPUT_IS_WEIGHTED_SUM = Condition("the output is the weighted sum of V and nothing else", _weighted_sum)


def _exponential(subject: Subject) -> bool:
    """``P = E / l`` with ``E`` the exponential of the score and a constant of the row."""
    p, j = subject.statement(name_of(subject.weights)), subject.key_index
    for x in p.reads:
        if name_of(x) not in subject.plain:
            continue
        s = subject.plain[name_of(x)]
        if isinstance(s.expr, sp.exp) and not s.over and s.indices == p.indices:
            return not sp.cancel(p.expr / x).has(j) and not sp.expand(s.expr.args[0] - subject.score).has(j)
    return False


EXPONENTIAL_WEIGHTS = Condition("the weights are exponentials of the scores, normalised by row", _exponential)


def _natural(subject: Subject) -> bool:
    logarithms = subject.statement("L").expr.atoms(sp.log)
    return any(sp.expand(subject.statement("L").expr).coeff(x) == 1 for x in logarithms if x.free_symbols)


NATURAL_LOGARITHM = Condition("the log-sum-exp is a natural logarithm", _natural)


# ---------------------------------------------------------------- how Q and K enter the scores
def transformed(subject: Subject, name: str, change: Callable[[Tensor], Sequence[Statement]], program: Program) -> Beside:
    """The program beside the copy in which ``name`` is replaced; ``change`` gives its statement (last) and what that needs."""
    x = subject.read(name)
    *extra, last = change(tensor(name + "*", *subscripts_of(x)))
    shapes = {name: program.shapes[name]} if name in program.inputs else {}
    return beside(program, [last], extra, dims={a: program.dims[a] for a in program.dims}, shapes=shapes)


def _bare(subject: Subject) -> Program:
    """The statements up to the score, without masks: what a score says of pairs that are masked out."""
    wanted = subject.plain.with_statements(subject.plain.statements, [name_of(subject.score)]).live()
    mask = conjuncts(subject.where)
    return wanted.with_statements([replace(s, where=sp.And(*[c for c in s.conditions if c not in mask])) for s in wanted])


def _affine(subject: Subject) -> bool:
    """Adding a vector to every key adds to every score of a row the same."""
    program, z = _bare(subject), subject.score
    k = subject.read("K")
    u = subject.tensor("u", *[a for a in subscripts_of(k) if a != subject.key_index])
    both = transformed(subject, "K", lambda star: [Statement(star, k + u)], program).program
    star = tensor(name_of(z) + "*", *subscripts_of(z))
    if name_of(star) not in both:
        return True
    other = index(subject.key_index.name + "2")
    there = {subject.key_index: other}
    at = (*subscripts_of(z), other)
    here = Statement(tensor("here", *at), star - z)
    elsewhere = Statement(tensor("elsewhere", *at), (star - z).xreplace(there))
    whole = both.with_statements((*both, here, elsewhere), dims={other: program.dims[subject.key_index]})
    return proved_for_all_sizes(Equal(whole, "here", "elsewhere")) is not None


AFFINE_IN_KEYS = Condition("a vector added to all keys adds a constant to every row of scores", _affine)


def moved(
    subject: Subject, program: Program, factor: Callable[[str, Tensor], Sequence[Statement]]
) -> tuple[Program, tuple[str, str]]:
    """The score with the change made to Q, and with it made to K, in one program; and their names."""
    z = name_of(subject.score)
    left = transformed(subject, "Q", lambda star: factor("Q", star), program)
    right = transformed(subject, "K", lambda star: factor("K", star), program)
    mine = [s for s in left.program if s.name not in program]
    rename = {s.name: s.name + "*" for s in right.program if s.name not in program}
    from symattn.theorems.duality import called

    theirs = [called(s, rename) for s in right.program if s.name not in program]
    shapes = {**program.shapes, **left.program.shapes, **right.program.shapes}
    needed = {n for s in (*program, *mine, *theirs) for n in s.needs}
    dims = {**left.program.dims, **right.program.dims}
    whole = Program((*program, *mine, *theirs), dims, program.outputs, {k: v for k, v in shapes.items() if k in needed})
    names = (z + "*" if z + "*" in whole else z, z + "**" if z + "**" in whole else z)
    return whole, names


def with_matrix(subject: Subject) -> Callable[[str, Tensor], Sequence[Statement]]:
    """``Q A`` for Q and ``K A^T`` for K, one matrix A for every key head."""
    k = subject.read("K")
    c = subscripts_of(k)[-1]
    b = index(c.name + "2")
    heads = [a for a in subscripts_of(k)[:-1] if a != subject.key_index]

    def change(name: str, star: Tensor) -> Sequence[Statement]:
        x = subject.read(name)
        inner = x.xreplace({c: b})
        matrix = tensor("A~", *heads, b, c) if name == "Q" else tensor("A~", *heads, c, b)
        return [Statement(star, inner * matrix, (b,))]

    return change


def with_factor(subject: Subject) -> Callable[[str, Tensor], Sequence[Statement]]:
    """``alpha Q`` for Q and ``alpha K`` for K, one number."""
    return lambda name, star: [Statement(star, tensor("alpha~") * subject.read(name))]


def _scores_agree(subject: Subject, factor: Callable[[str, Tensor], Sequence[Statement]]) -> bool:
    subject.need("Q", "K")
    c = subscripts_of(subject.read("K"))[-1]
    program = _bare(subject)
    program = program.with_statements(program.statements, dims={index(c.name + "2"): program.dims[c]})
    whole, (a, b) = moved(subject, program, factor)
    if a == b:
        return True
    rest = [n for n in (s.name for s in whole) if n.endswith("**")]
    pairs = tuple((n, n[:-1]) for n in rest if n[:-1] in whole and not n.startswith(("Q", "K")))
    return proved_for_all_sizes(Equal(whole, b, a, pairs=pairs)) is not None


THROUGH_THE_PRODUCT = Condition("Q and K enter only through Q K^T", lambda s: _scores_agree(s, with_matrix(s)))
ONE_FACTOR_PER_PAIR = Condition("a factor on Q does to the scores what it does on K", lambda s: _scores_agree(s, with_factor(s)))
