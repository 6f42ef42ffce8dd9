"""Theorems about what leaves attention as it is: permutations, the gauge of Q and K, masked keys, what drops out of a row.

Each compares the program with a copy in which an input is changed; tensors of the copy have a star.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from symattn.errors import NotStatedError
from symattn.indexed import Tensor, all_reads, conjuncts, integer_symbols, name_of, reads, subscripts_of, tensor
from symattn.program import Program, Statement
from symattn.theorems.claim import Claim, Equal
from symattn.theorems.conditions import (
    AFFINE_IN_KEYS,
    OUTPUT_IS_WEIGHTED_SUM,
    SHIFT_INVARIANT,
    THROUGH_THE_PRODUCT,
    WEIGHTS_SUM_TO_ONE,
    compared,
    moved,
    range_steps,
    with_matrix,
)
from symattn.theorems.copies import Beside, beside
from symattn.theorems.signs import AtLeastZero
from symattn.theorems.subject import ANY_MASK, Subject, starred
from symattn.theorems.theorem import Condition, Theorem

__all__ = ["ROWS"]


# ---------------------------------------------------------------- permutations
def _only_a_subscript(program: Program, a: sp.Symbol) -> bool:
    """Whether an index occurs only as a plain subscript of tensors: then its number never matters."""
    for s in program:
        for e in (s.expr, s.where):
            held = {x: sp.Dummy() for x in reads(e)}
            if a in integer_symbols(e.xreplace(held)):
                return False
            if any(b != a and b.has(a) for x in all_reads(e) for b in subscripts_of(x)):
                return False
    return True


QUERY_NUMBER = Condition(
    "the number of a query enters only as a subscript",
    lambda s: _only_a_subscript(Subject(s.definition.core).plain, s.query_index),
)
KEY_NUMBER = Condition(
    "the number of a key enters only as a subscript", lambda s: _only_a_subscript(Subject(s.definition.core).plain, s.key_index)
)


def _moved_along(program: Program, a: sp.Symbol, pi: Tensor) -> list[Statement]:
    """Every input with the axis of the index ``a``, read at ``pi[a]`` there."""
    found: dict[str, Tensor] = {}
    for s in program:
        for e in (s.expr, s.where):
            for x in all_reads(e):
                plain = all(b in s.domain for b in subscripts_of(x)) and len(set(subscripts_of(x))) == len(subscripts_of(x))
                if name_of(x) in program.inputs and a in subscripts_of(x) and plain:
                    found.setdefault(name_of(x), x)
    return [Statement(starred(x), x.xreplace({a: pi})) for x in found.values()]


def _permuted(s: Subject, a: sp.Symbol, name: str) -> tuple[Beside, tuple[Statement, ...]]:
    """The program beside the copy with ``name`` applied to an axis of all inputs; and what each tensor of the copy is."""
    program = s.plain
    pi = tensor(name, a)
    inputs = _moved_along(program, a, pi)
    copy = beside(program, inputs, shapes={name: (program.dims[a],)})
    table = {t.target: t.expr for t in inputs}  # where inputs are read with their own indices, they are written out
    listed = [replace(t, expr=t.expr.xreplace(table), where=t.where.xreplace(table)) for t in copy.program]
    copy = replace(copy, program=copy.program.with_statements(listed))
    moved_inputs = {t.name for t in copy.program if t.name.removesuffix("*") in program.inputs}
    steps = tuple(
        Statement(copy.program[star].target, program[first].target.xreplace({a: pi}))
        for star, first in copy.pairs
        if star not in moved_inputs
    )
    return copy, steps


def _query_permutation(s: Subject) -> tuple[Claim, ...]:
    s = Subject(s.definition.core)
    copy, steps = _permuted(s, s.query_index, "pi")
    out = s.out
    right = Statement(tensor("pi O", *subscripts_of(out)), out.xreplace({s.query_index: tensor("pi", s.query_index)}))
    text = "O(pi Q, K, V) = pi O(Q, K, V)"
    return (compared(copy.program, copy.program["O*"], right, text, steps=steps, bijections=frozenset({"pi"})),)


def _key_permutation(s: Subject) -> tuple[Claim, ...]:
    s = Subject(s.definition.core)
    copy, steps = _permuted(s, s.key_index, "pi")
    text = "O(Q, pi K, pi V) = O(Q, K, V)"
    return (Equal(copy.program, "O*", "O", text, steps=steps, bijections=frozenset({"pi"})),)


# ---------------------------------------------------------------- the gauge, what is masked
def _gauge(s: Subject) -> tuple[Claim, ...]:
    s.need("Q", "K")
    c = subscripts_of(s.read("K"))[-1]
    b = sp.Symbol(c.name + "2", integer=True)
    program = s.program.with_statements(s.program.statements, dims={b: s.program.dims[c]})
    whole, _ = moved(s, program, with_matrix(s))
    pairs = tuple((t.name, t.name[:-1]) for t in whole if t.name.endswith("**") and t.name[:-1] in whole)
    pairs = tuple(p for p in pairs if p[0] not in ("Q**", "K**"))
    whole = whole.with_statements(whole.statements, [*whole.outputs, *(n for n in ("O*", "O**") if n in whole)])
    return (Equal(whole, "O**", "O*", "O(Q, K A^T) = O(Q A, K), so (Q A, K A^-T) is as good as (Q, K)", pairs=pairs),)


def _masked_everywhere(s: Subject) -> bool:
    """Whether every statement that reads keys and values for a query is restricted by the mask."""
    mask = set(conjuncts(s.where))
    return all(mask <= set(t.conditions) for t in _readers(s))


def _readers(s: Subject) -> list[Statement]:
    """The statements over queries and keys that read tensors of the keys."""
    return [t for t in s.plain if {s.query_index, s.key_index} <= set(t.domain) and _of_keys(s, t)]


def _of_keys(s: Subject, t: Statement) -> list[Tensor]:
    return [x for x in t.reads if s.key_index in subscripts_of(x) and s.query_index not in subscripts_of(x)]


def _rows_mix(s: Subject) -> bool:
    """Whether a row is computed from other rows: then keys that a query may not see reach it through them."""
    i = s.query_index
    for t in s.plain:
        for x in t.reads:
            if name_of(x) in s.plain and i in s.plain[name_of(x)].indices:
                at = dict(zip(s.plain[name_of(x)].indices, subscripts_of(x), strict=True))
                if at[i] != i:
                    return True
    return False


def _keys_apart(s: Subject) -> bool:
    """Whether everything that is read of a key is made of that key alone."""
    todo = [name_of(x) for t in _readers(s) for x in _of_keys(s, t)]
    length, seen = s.plain.dims[s.key_index], set(todo)
    while todo:
        name = todo.pop()
        if name not in s.plain:
            continue
        t = s.plain[name]
        if any(s.plain.dims[a] == length for a in t.over) and t.expr.has(sp.Indexed):
            return False
        todo += [n for n in t.needs if n not in seen]
        seen |= t.needs
    return True


def _masked_keys(s: Subject) -> tuple[Claim, ...]:
    """Row by row, what is masked out is replaced by anything: row ``i`` has keys and values of its own in the copy."""
    if s.where == sp.true:
        raise NotStatedError("every query sees every key")
    if _rows_mix(s):
        raise NotStatedError("a query reads the scores of other queries, so no row has keys of its own")
    if not _keys_apart(s):
        raise NotStatedError(
            "what is read of a key is made of other keys too (a mean of the keys), so a masked key reaches every row"
        )
    i, kept_where = s.query_index, conjuncts(s.where)
    extra: list[Statement] = []
    table: dict[sp.Basic, Tensor] = {}
    shapes = {}
    for x in dict.fromkeys(x for t in _readers(s) for x in _of_keys(s, t)):
        at = (*s.row[:-1], i, *[a for a in subscripts_of(x) if a not in s.row])
        other = tensor(f"other {name_of(x)}", *at)
        kept = Statement(tensor(f"{name_of(x)} seen", *at), x, where=s.where)
        # apart by the first condition that does not hold, so that proofs meet no alternatives
        unseen = [
            Statement(tensor(f"{name_of(x)} unseen {k}", *at), other, where=sp.And(*kept_where[:k], sp.Not(kept_where[k])))
            for k in range(len(kept_where))
        ]
        row = Statement(tensor(f"{name_of(x)} of the row", *at), kept.target + sp.Add(*[u.target for u in unseen]))
        shapes[name_of(other)] = tuple(s.plain.dims[a] for a in at)
        extra += [kept, *unseen, row]
        table[x] = row.target
    changed = [replace(t, target=starred(t.target), expr=t.expr.xreplace(table)) for t in _readers(s)]
    copy = beside(s.plain, changed, extra, shapes=shapes)
    text = "O_i does not change when masked keys and values do"
    return (Equal(copy.program, "O*", "O", text, pairs=copy.pairs),)


MASKED_EVERYWHERE = Condition("keys and values are read under the mask only", _masked_everywhere)


# ---------------------------------------------------------------- hull
def _hull(s: Subject) -> tuple[Claim, ...]:
    w, out, v = s.multiplying, s.out, s.read("V")
    e = subscripts_of(v)[-1]
    low = tensor("low", *[a for a in subscripts_of(v) if a != s.key_index])
    left = Statement(tensor("O - low", *subscripts_of(out)), out - low)
    right = Statement(tensor("sum P (V - low)", *subscripts_of(out)), w * (v - low), (s.key_index,))
    program = s.plain.with_statements(s.plain.statements, shapes={})
    assert e in subscripts_of(out)
    return (
        AtLeastZero(s.plain, name_of(w), "P_ij >= 0"),
        compared(program, left, right, "O - low = sum_j P_ij (V_j - low)", forward=s.plain),
    )


def _hull_with_zero(s: Subject) -> tuple[Claim, ...]:
    s.need("P0")
    total = Statement(tensor("rowsum(P) + P0", *s.row), s.weights, (s.key_index,))
    both = Statement(tensor("rowsum_P", *s.row), s.weights, (s.key_index,))
    left = Statement(total.target, both.target + tensor("P0", *s.row))
    program = s.plain.with_statements((*s.plain, both))
    return (
        AtLeastZero(s.plain, name_of(s.weights), "P_ij >= 0"),
        AtLeastZero(s.plain, "P0", "P0_i >= 0"),
        compared(program, left, Statement(tensor("one", *s.row), sp.S.One), "sum_j P_ij + P0_i = 1", forward=s.plain),
    )


# ---------------------------------------------------------------- what drops out of a row
def _row_terms(s: Subject) -> tuple[Statement, sp.Expr]:
    """The statement of the scores, and those of its terms that are the same for all keys."""
    z = s.statement(name_of(s.score))
    terms = sp.Add.make_args(sp.expand(z.expr))
    row = sp.Add(*[a for a in terms if not a.has(s.key_index)])
    if row == 0 or z.over:
        raise NotStatedError("no term of the score depends on the query alone")
    return z, row


def _row_constant(s: Subject) -> tuple[Claim, ...]:
    z, row = _row_terms(s)
    copy = beside(s.plain, [replace(z, target=starred(z.target), expr=sp.expand(z.expr) - row)])
    text = f"O without the term {row} of the score = O"
    return (Equal(copy.program, "O*", "O", text, steps=range_steps(copy, -row), pairs=copy.pairs),)


def _smoothing(s: Subject) -> tuple[Claim, ...]:
    """K less the mean of its rows: the raw scores lose a constant of the row, and the rest is the shift invariance."""
    k, q = s.read("K"), s.read("Q")
    j, c = s.key_index, subscripts_of(k)[-1]
    at = [a for a in subscripts_of(k) if a != j]
    mean = Statement(tensor("meanK", *at), k / s.program.dims[j], (j,))
    shift = Statement(tensor("rowshift", *s.row), q * mean.target, (c,))
    program = s.program
    copy = beside(program, [Statement(starred(k), k - mean.target)], [mean, shift])
    steps, moved_by = _smoothing_steps(s, copy, shift.target)
    claims: list[Claim] = [Equal(copy.program, "O*", "O", "O(Q, K - mean K, V) = O(Q, K, V)", steps=steps, pairs=copy.pairs)]
    if "L*" in copy.program and moved_by is not None:
        unit = sp.S.One if s.definition.lse_base == "e" else 1 / sp.log(2)
        right = Statement(tensor("L - shift", *s.row), tensor("L", *s.row) - unit * moved_by)
        pairs = tuple(p for p in copy.pairs if p[0] != "L*")
        text = "L(Q, K - mean K) = L(Q, K) - scale Q mean K"
        claims.append(compared(copy.program, copy.program["L*"], right, text, forward=copy.program, steps=steps, pairs=pairs))
    return tuple(claims)


def _smoothing_steps(s: Subject, copy: Beside, shift: Tensor) -> tuple[tuple[Statement, ...], sp.Expr | None]:
    """``R* = R - shift``, and row maxima that move as the scores do; nothing where the scores are no multiple of Q K^T."""
    if "R*" not in copy.program or sp.expand(s.program["R"].expr - s.read("Q") * s.read("K")) != 0:
        return (), None
    z: sp.Expr = s.score
    while z.has(sp.Indexed) and (open_ := [x for x in reads(z) if name_of(x) in s.program and name_of(x) != "R"]):
        inner = [x for x in open_ if not s.program[name_of(x)].over and s.key_index in subscripts_of(x)]
        if not inner:
            break
        table = {}
        for x in inner:
            t = s.program[name_of(x)]
            table[x] = t.expr.xreplace(dict(zip(t.indices, subscripts_of(x), strict=True)))
        z = z.xreplace(table)
    raw = s.program["R"].target
    held = sp.Dummy(real=True)
    slope = sp.expand(z.xreplace({raw: held})).diff(held)
    alone = not any(s.key_index in subscripts_of(x) for x in reads(z) if name_of(x) in s.program and x != raw)
    if slope == 0 or not alone or slope.has(held) or slope.has(s.key_index):
        return (), None
    old = copy.program["R*"]
    first = replace(old, expr=raw - shift, over=())
    return (first, *range_steps(copy, -slope * shift)), slope * shift


ROWS = (
    Theorem(
        "query-permutation",
        "Permuted queries give permuted outputs",
        "O(pi Q, K, V) = pi O(Q, K, V); masks and biases with a query axis move along.",
        r"O(\Pi Q, K, V) = \Pi\,O(Q, K, V)",
        "arXiv 1810.00825, property 1",
        _query_permutation,
        (QUERY_NUMBER,),
        {**ANY_MASK, "sink": True, "bias": True},
        {"causal": "top-left"},
    ),
    Theorem(
        "key-permutation",
        "Keys and values permuted together change nothing",
        "O(Q, pi K, pi V) = O(Q, K, V); masks and biases with a key axis move along.",
        r"O(Q, \Pi K, \Pi V) = O(Q, K, V)",
        "arXiv 1810.00825, property 1",
        _key_permutation,
        (KEY_NUMBER,),
        {**ANY_MASK, "sink": True, "bias": True},
        {"causal": "top-left"},
    ),
    Theorem(
        "gauge",
        "The gauge of Q and K: (Q A, K A^-T)",
        "O(Q A, K) = O(Q, K A^T) for every matrix A; so for an invertible A, (Q A, K A^-T) gives what (Q, K) gives.",
        r"O(QA, K A^{-\top}, V) = O(Q, K, V)",
        "definition; the gradient's form is dQ^T Q = K^T dK",
        _gauge,
        (THROUGH_THE_PRODUCT,),
        {**ANY_MASK, "softcap": 20, "sink": True},
    ),
    Theorem(
        "masked-keys",
        "The Jacobian is zero outside the mask",
        "O_i does not change, whatever stands in the keys and values that query i may not see; under a causal mask the Jacobian "
        "dO_i/dX_j is 0 for j > i.",
        r"\frac{\partial O_i}{\partial K_j} = \frac{\partial O_i}{\partial V_j} = 0\quad\text{where } i \text{ may not see } j",
        "definition",
        _masked_keys,
        (MASKED_EVERYWHERE,),
        {"heads": 4, "kv_heads": 2, "causal": "bottom-right", "softcap": 20, "sink": True},
        {"attn_mask": "boolean", "empty_row": "uniform"},
    ),
    Theorem(
        "hull",
        "The output lies in the convex hull of V",
        "O_i = sum_j P_ij V_j with P_ij >= 0 and sum_j P_ij = 1, so every channel of O lies between the least and greatest of V.",
        r"O_i \in \operatorname{conv}\{V_j\}",
        "definition",
        _hull,
        (OUTPUT_IS_WEIGHTED_SUM, WEIGHTS_SUM_TO_ONE),
        ANY_MASK,
        {"sink": True},
    ),
    Theorem(
        "hull-with-zero",
        "With a sink the output lies in the hull of V and 0",
        "sum_j P_ij + P0_i = 1 with all of them >= 0: the output lies in the convex hull of the rows of V and 0.",
        r"O_i \in \operatorname{conv}(\{V_j\}\cup\{0\})",
        "definition",
        _hull_with_zero,
        (),
        {**ANY_MASK, "sink": True},
    ),
    Theorem(
        "row-constant",
        "ALiBi: the part of the query alone drops out",
        "Terms of the score that depend on the query alone change no output: -m (i - j) may be written +m j.",
        r"O\bigl(S - m(i-j)\bigr) = O\bigl(S + m j\bigr)",
        "arXiv 2108.12409, section 3",
        _row_constant,
        (SHIFT_INVARIANT,),
        {"heads": 4, "causal": "top-left", "alibi": True},
        {"heads": 2, "causal": "top-left", "alibi": True, "sink": True},
    ),
    Theorem(
        "key-smoothing",
        "K less its mean leaves O and shifts L",
        "O(Q, K - 1 k^T, V) = O(Q, K, V) with k the mean of the keys, and L moves by -scale Q k.",
        r"O(Q, K - \mathbf 1\bar k^\top, V) = O(Q, K, V),\qquad L \to L - c\,Q\bar k",
        "arXiv 2410.02367, section 3.2",
        _smoothing,
        (SHIFT_INVARIANT, AFFINE_IN_KEYS),
        ANY_MASK,
        {"softcap": 2},
    ),
)
