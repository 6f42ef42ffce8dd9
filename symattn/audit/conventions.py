"""The convention that a page did not state: under which all digits hold that are wrong as stated.

Each row is one change, of the definition or of the program; single changes are tried first, then pairs of different kinds. One is
reported for the claims of which it bears out every number. Where weights hold under one and the outputs under another, the
outputs are stale: the page changed its convention and kept the old numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from symattn.audit.checking import Checked, fitted
from symattn.audit.claimsfile import Claim, Example, Given
from symattn.audit.findings import Alternative, Finding
from symattn.audit.printed import NOISE, Printed, verdict
from symattn.audit.quantities import field_named
from symattn.audit.sheet import Rewrite, Sheet
from symattn.audit.values import Values
from symattn.errors import SymattnError
from symattn.indexed import tensor
from symattn.program import Program, Statement, index, name_of, size
from symattn.readings import numpy as floats

Array = npt.NDArray[Any]

SLACK = 1e-9
"""Relative error that the search in float64 allows; what it finds is confirmed exactly."""
FAR = Fraction(1, 10**5)
"""Relative error up to which a number is a matter of arithmetic and not of conventions."""
MOST_NUMBERS = 4000
MOST_TITLES = 3
FAILURES = (SymattnError, ValueError, ArithmeticError)
"""What a convention that makes no sense for a page may raise: other shapes, numbers beyond float64."""


@dataclass(frozen=True)
class Change:
    """One convention.

    Parameters
    ----------
    kind
        Two changes of one kind exclude each other.
    title
        In words, after "follows with".
    fields
        Fields of the definition that it replaces.
    rewrite
        What it does to the program.
    inputs
        What it does to the inputs of the page, by field name.
    """

    kind: str
    title: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    rewrite: Rewrite | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)


def _scale(text: str, title: str) -> Change:
    return Change("scale", title, {"scale": text})


def _square(program: Program, statements: Iterable[Statement]) -> Program:
    """A program in which there are as many keys as queries: one may then be read in the place of the other."""
    n, m, j = size("n"), size("m"), index("j")
    kept = [s.xreplace({m: n}) for s in statements]
    return Program(tuple(kept), {**{a: v.xreplace({m: n}) for a, v in program.dims.items()}, j: n}, program.outputs)


def _roles(program: Program) -> Program:
    """Queries and keys exchanged in the scores: ``R[i, j] = K_i . Q_j``."""
    i, j = index("i"), index("j")
    return _square(program, [replace(s, expr=s.expr.xreplace({i: j, j: i})) if s.name == "R" else s for s in program])


def _weights_turned(program: Program) -> Program:
    """The output from the transposed weights: ``O[i] = sum over j of P[j, i] V[j]``."""
    i, j = index("i"), index("j")

    def turned(s: Statement) -> Statement:
        reads = {x: x.xreplace({i: j, j: i}) for x in s.reads if name_of(x) == "P"}
        return replace(s, expr=s.expr.xreplace(reads), where=s.where.xreplace({i: j, j: i})) if s.name == "O" else s

    return _square(program, map(turned, program))


def _over_queries(program: Program) -> Program:
    """The softmax along the other axis: every key's weights sum to 1 over the queries."""
    i, j = index("i"), index("j")
    stats = {s.target: tensor(s.name, *(j if a == i else a for a in s.indices)) for s in program if s.name in ("m", "l")}
    out = []
    for s in program:
        if s.name != "L":
            moved = replace(s, expr=s.expr.xreplace(stats))
            out.append(replace(moved, target=stats[s.target], over=(i,)) if s.target in stats else moved)
    return Program(tuple(out), program.dims, tuple(n for n in program.outputs if n != "L"))


SCALES = (
    _scale("1", "no scale"),
    _scale("1/sqrt(d)", "a scale of 1/sqrt(d)"),
    _scale("1/d", "a scale of 1/d"),
    _scale("1/2", "a scale of 1/2"),
    _scale("1/4", "a scale of 1/4"),
    _scale("1/8", "a scale of 1/8"),
)
MASKS = (
    Change("mask", "no mask", {"causal": None, "mask": None, "window": None}),
    Change("mask", "a causal mask, j <= i", {"causal": "top-left", "mask": None}),
    Change("mask", "a causal mask that hides the query itself, j < i", {"causal": None, "mask": "j < i"}),
    Change("mask", "a causal mask turned around, j >= i", {"causal": None, "mask": "j >= i"}),
    Change("mask", "a causal mask aligned bottom-right, j <= i + m - n", {"causal": "bottom-right", "mask": None}),
)
PROGRAMS = (
    Change("axis", "a softmax over the queries", rewrite=_over_queries),
    Change("roles", "the roles of Q and K exchanged", rewrite=_roles),
    Change("turned", "the transposed weights applied to V", rewrite=_weights_turned),
)


def changes_for(example: Example) -> tuple[Change, ...]:
    """The changes that make sense for an example: transposes of its square weight matrices beside the rows above."""
    square = []
    for name, g in example.inputs.items():
        called = field_named(name)
        if called in ("w_q", "w_k", "w_v", "w_o") and g.values.ndim == 2 and g.values.shape[0] == g.values.shape[1]:
            square.append(name)
    turned = [Change("transpose", f"{n} transposed", inputs={n: _transposed}) for n in square]
    if len(square) > 1:
        turned.insert(0, Change("transpose", f"{', '.join(square)} transposed", inputs=dict.fromkeys(square, _transposed)))
    return (*SCALES, *MASKS, *PROGRAMS, *turned)


def _transposed(x: Array) -> Array:
    return x.T


def search(example: Example, done: Sequence[Checked]) -> tuple[Alternative, ...]:
    """The conventions under which wrong claims hold, the one that explains most first.

    Parameters
    ----------
    example
        As the page states it.
    done
        Its claims, checked as stated.
    """
    judged = [c for c in done if c.of_program and not c.base.startswith("d")]  # gradients follow where the forward pass does
    groups = _groups(judged)
    wrong = [g for g in groups if any(_own_error(f) for c in g for f in c.findings)]
    if not wrong or sum(c.claim.printed.size for c in judged) > MOST_NUMBERS:
        return ()
    open_ = [g for g in groups if g not in wrong and not all(map(_explained, g))]
    found: dict[tuple[int, ...], list[tuple[Change, ...]]] = {}
    for combined in _combinations(_relevant(example, [c for g in wrong for c in g])):
        if len(combined) > 1 and any(len(held) == len(wrong) for held in found):
            break
        held = tuple(_holding(example, combined, wrong))
        if held and (held not in found or len(combined) == len(found[held][0])):
            found.setdefault(held, []).append(combined)
    seen: set[int] = set()
    out = []
    for held in sorted(found, key=lambda held: -len(held)):
        if not set(held) <= seen:
            seen |= set(held)
            claims = [c for k in held for c in wrong[k]]
            numbers = sum(len(c.findings) for c in claims)
            names = tuple(c.prefix + c.claim.name for c in claims)
            out.append(Alternative(_titled(found[held]), names, numbers, len(held) == len(wrong) and not open_))
    return tuple(out)


def _groups(judged: Sequence[Checked]) -> list[list[Checked]]:
    """Claims that stand or fall together: rows and elements of one quantity; every claim of a whole quantity by itself."""
    parts: dict[str, list[Checked]] = {}
    for c in judged:
        parts.setdefault(c.base if c.index else f"={c.claim.name}", []).append(c)
    return list(parts.values())


def _titled(found: Sequence[tuple[Change, ...]]) -> str:
    """Conventions that explain the same: the first few of them."""
    titles = [" and ".join(c.title for c in combined) for combined in found[:MOST_TITLES]]
    return " or ".join(titles) + (f" ({len(found) - MOST_TITLES} more)" if len(found) > MOST_TITLES else "")


def _relevant(example: Example, wrong: Sequence[Checked]) -> list[Change]:
    """The changes that move some wrong claim at all."""
    stated = _changed(example, ())
    bases = tuple(dict.fromkeys(c.base for c in wrong))
    try:
        before = [_floats(stated, b) for b in bases]
    except FAILURES:
        return []
    rows = []
    for row in changes_for(example):
        try:
            sheet = _changed(example, (row,))
            after = [_floats(sheet, b) for b in bases]
        except FAILURES:
            continue
        if any(x.shape != y.shape or not np.allclose(x, y, rtol=SLACK, atol=SLACK) for x, y in zip(before, after, strict=True)):
            rows.append(row)
    return rows


def _own_error(f: Finding) -> bool:
    """Whether a number is wrong, does not follow from printed ones, and by more than arithmetic explains."""
    v = f.verdict
    far = v.error is None or v.error * v.printed.unit > FAR * abs(v.printed.value)
    return v.wrong and not f.carried and far


def _explained(c: Checked) -> bool:
    return all(not f.verdict.wrong or f.carried for f in c.findings)


def _combinations(rows: Sequence[Change]) -> Iterator[tuple[Change, ...]]:
    for row in rows:
        yield (row,)
    for pair in itertools.combinations(rows, 2):
        if pair[0].kind != pair[1].kind:
            yield pair


def _holding(example: Example, combined: Iterable[Change], wrong: Sequence[Sequence[Checked]]) -> Iterator[int]:
    """Which groups of claims hold under some changes: found in float64, confirmed exactly."""
    try:
        sheet = _changed(example, combined)
    except FAILURES:
        return
    values = Values(replace(example, let={}), sheet)
    for k, group in enumerate(wrong):
        try:
            near = {c.base: _floats(sheet, c.base) for c in group[:1]}
            if not all(_fits(fitted(_part(near[c.base], c.index), c.claim), c.claim) for c in group):
                continue
            if all(_holds(fitted(values.part(c.base, c.index), c.claim), c.claim) for c in group):
                yield k
        except FAILURES:
            continue


def _changed(example: Example, combined: Iterable[Change]) -> Sheet:
    fields: dict[str, Any] = {}
    rewrites: list[Rewrite] = []
    inputs = dict(example.inputs)
    for c in combined:
        fields |= c.fields
        if c.rewrite is not None:
            rewrites.append(c.rewrite)
        for name, f in c.inputs.items():
            inputs[name] = Given(f(inputs[name].values), f(inputs[name].half_widths))

    def rewrite(program: Program) -> Program:
        for f in rewrites:
            program = f(program)
        return program

    return Sheet(replace(example, inputs=inputs), fields, rewrite if rewrites else None)


def _floats(sheet: Sheet, base: str) -> Array:
    def run(program: Program, inputs: dict[str, Array], letter: str) -> Array:
        lean = sheet.checked(program, letter)
        given = {n: np.asarray(x, dtype=float) for n, x in sheet.seeded(lean, inputs).items()}
        return floats.evaluate(lean, given, sizes=sheet.sizes_of(lean), dtype="float64")[letter]

    with np.errstate(all="ignore"):
        return np.asarray(sheet.evaluate(base, {}, run), dtype=float)


def _part(x: Array, at: tuple[int | None, ...]) -> Array:
    return np.asarray(x[tuple(slice(None) if k is None else k for k in at)])


def _printed(claim: Claim) -> Iterator[tuple[tuple[int, ...], Printed]]:
    for place in np.ndindex(claim.printed.shape):
        p: Any = claim.printed[place]
        if p is not None and p.kind != "infinity":
            yield place, p


def _fits(near: Array, claim: Claim) -> bool:
    for place, p in _printed(claim):
        slack = (
            float(p.half_width) + SLACK * (1 + abs(float(p.value))) + (1e-6 * abs(float(p.value)) if 7 <= p.digits <= 9 else 0)
        )
        if not abs(near[place] - float(p.value)) <= slack:
            return False
    return True


def _holds(exact: Array, claim: Claim) -> bool:
    def good(p: Printed, value: Any) -> bool:
        v = verdict(p, value, digits=6)
        return v.correct or v.status == NOISE

    return all(good(p, exact[place]) for place, p in _printed(claim))
