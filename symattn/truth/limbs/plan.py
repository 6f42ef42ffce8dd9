"""What a program asks of the limb engine: its statements as sums over keys, sums over rows, and what a row computes of them.

The rules are three. A sum over keys is taken of exponentials, whatever coefficient a row has beside them, which is multiplied
afterwards; a sum of an exponential times an exact product is taken inside out (``sum_j E_ij sum_e A_ie B_je`` is
``sum_e A_ie sum_j E_ij B_je``); anything else, and every sum over rows, is taken of a *material*: an exponential times a row's
coefficient times an exact number, formed in limbs. Each has a *stage*: the pass over the keys in which what it needs is known.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from symattn.errors import UnfitError
from symattn.indexed import tensor
from symattn.program import Program, Statement, Tensor, all_reads, name_of, reads
from symattn.truth.limbs.forms import Conditions, Dot, Form, Monomial, Plain, Reader, Score
from symattn.truth.limbs.pairs import axes_of
from symattn.truth.limbs.steps import (
    Coefficient,
    Count,
    KeyMatrix,
    Material,
    Pairs,
    Plan,
    RowMatrix,
    RowStep,
    RowTotal,
    Step,
    Sum,
    Weighed,
)


class Planner:
    """Reads the statements of a program one by one."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.axes = axes_of(program)
        self.plan = Plan(program, self.axes)
        self.reader = Reader(self.axes, frozenset(program.inputs), self.named, shifts=self.plan.shifts)
        self.stage: dict[str, int] = {}
        self.sums: dict[Sum | Count | Weighed, Tensor] = {}
        self.made: dict[str, tuple[Statement, tuple[tuple[Coefficient, Score, Tensor], ...]]] = {}
        self.row = (*self.axes.batch, *self.axes.rows)

    def read(self) -> Plan:
        """The plan of the whole program."""
        for s in self.program:
            if s.scan is not None:
                raise UnfitError(f"{s.name} is a recurrence")
            if self.axes.level(s.target) == "pair" or self.axes.channels(s.target):
                made = [x for x in all_reads(s.where) if name_of(x) in self.program]
                if made:
                    raise UnfitError(f"the condition of {s.name} reads `{made[0]}`, which is computed")
            self.statement(s)
        return self.plan

    def statement(self, s: Statement) -> None:
        """One statement, by what its target and its bound indices are."""
        level, channels = self.axes.level(s.target), self.axes.channels(s.target)
        if level == "pair" and not channels:
            self.pair(s)
        elif s.reduce == "max" and s.over:
            self.maximum(s)
        elif channels:
            self.matrix(s, level)
        elif level == "key":
            raise UnfitError(f"{s.name} is a tensor on keys that has no channel")
        else:
            self.row_tensor(s)

    def pair(self, s: Statement) -> None:
        """A tensor on pairs: its form is kept until something is made of it."""
        where = frozenset(s.conditions)
        form = self.reader.form(s.expr, where)
        if s.over:
            form = self.dots(s, form)
        elif any(m.matrices for m in form):
            raise UnfitError(f"{s.name} has a channel that is not summed")
        self.reader.pairs[s.name] = form
        if s.name in self.program.outputs:
            parts = self.materials(form)
            self.add(Pairs(s, tuple((c, m) for c, m in parts)), *(x for _, m in parts for x in m.coefficients), later=1)

    def dots(self, s: Statement, form: Form) -> Form:
        """A sum over channels: of products of a matrix on rows and one on keys."""
        out: Form = {}
        for m, c in form.items():
            sides = {self.axes.level(x): x for x in m.matrices}
            exact = all(name_of(x) in self.program.inputs for x in m.matrices)
            if m.exact or m.scores or len(m.matrices) != 2 or set(sides) != {"row", "key"} or not exact or s.reduce != "sum":
                raise UnfitError(f"`{s}` is no product of two given matrices, one on rows and one on keys")
            if {frozenset(self.axes.channels(x)) for x in m.matrices} != {frozenset(s.over)}:
                raise UnfitError(f"`{s}` is not summed over the channels that both matrices have")
            key = Monomial(exact=(Dot(sides["row"], sides["key"]),), where=m.where)
            out[key] = out.get(key, sp.S.Zero) + c
        return out

    def maximum(self, s: Statement) -> None:
        """A row maximum of a score: some number near it, which is why no output may depend on its value."""
        if s.over != (self.axes.key,) or not s.range_only or s.name in self.program.outputs:
            raise UnfitError(f"{s.name} is a maximum whose value matters")
        where = frozenset(s.conditions)
        form = self.reader.form(s.expr, where)
        score = self.reader.score(form, where)
        if score is None:
            raise UnfitError(f"{s.name} is the maximum of nothing that a pair has")
        rest = sum((c for m, c in form.items() if not m.exact), sp.S.Zero)
        if score not in self.plan.shifts:
            shift = tensor(f"_max{len(self.plan.shifts)}", *self.row)
            self.plan.shifts[score], self.stage[name_of(shift)] = shift, 0
        self.reader.aliases[s.target] = self.plan.shifts[score] + rest
        self.define(s.target, self.plan.shifts[score] + rest, sp.true)

    def matrix(self, s: Statement, level: str) -> None:
        """A tensor with channels: a sum over keys for rows, or over rows for keys."""
        form = self.reader.form(s.expr, frozenset(s.conditions))
        if level == "row" and s.over == (self.axes.key,) and s.reduce == "sum":
            parts: list[tuple[Coefficient, Score | Material, Tensor]] = []
            for x, sub in self.by_matrix(s, form, "key").items():
                mixed = {m.scores for m in sub if m.exact or len(m.scores) != 1 or m.where != m.scores[0].where}
                simple = {m: c for m, c in sub.items() if m.scores not in mixed}
                parts += [(c, m.scores[0], x) for m, c in simple.items()]
                parts += [(c, m, x) for c, m in self.materials({m: c for m, c in sub.items() if m not in simple})]
            later = int(any(isinstance(p, Material) for _, p, _ in parts))
            inside = [x for _, p, _ in parts if isinstance(p, Material) for x in p.coefficients]
            if not later:
                self.made[s.name] = s, tuple((c, p, x) for c, p, x in parts if isinstance(p, Score))
            self.add(RowMatrix(s, tuple(parts)), *inside, later=later, after=[c for c, _, _ in parts])
        elif level == "key" and set(s.over) == set(self.axes.rows) and s.reduce == "sum":
            found = [(c, m, x) for x, sub in self.by_matrix(s, form, "row").items() for c, m in self.materials(sub)]
            self.add(KeyMatrix(s, tuple(found)), *(x for _, m, _ in found for x in m.coefficients), later=1)
        else:
            raise UnfitError(f"`{s}` is no sum over keys or rows of a tensor on pairs times a given matrix")

    def by_matrix(self, s: Statement, form: Form, level: str) -> dict[Tensor, Form]:
        """A form by the given matrix that it is multiplied with."""
        out: dict[Tensor, Form] = {}
        for m, c in form.items():
            if len(m.matrices) != 1 or name_of(m.matrices[0]) not in self.program.inputs:
                raise UnfitError(f"`{s}` is no sum of a tensor on pairs times a given matrix")
            (x,) = m.matrices
            if self.axes.level(x) != level or self.axes.channels(x) != self.axes.channels(s.target):
                raise UnfitError(f"`{s}` takes {name_of(x)} at other indices than its own")
            out.setdefault(x, {})[Monomial(m.exact, m.scores, (), m.where)] = c
        return out

    def materials(self, form: Form) -> list[tuple[Coefficient, Material]]:
        """A form as materials, each with a coefficient that all rows of a batch share."""
        groups: dict[Score, dict[Monomial, Coefficient]] = {}
        for m, c in form.items():
            if len(m.scores) != 1 or len(m.exact) > 1:
                raise UnfitError("a product of tensors on pairs is no exponential times one exact number")
            groups.setdefault(m.scores[0], {})[m] = c
        return [self.material(score, sub) for score, sub in groups.items()]

    def material(self, score: Score, form: Mapping[Monomial, Coefficient]) -> tuple[Coefficient, Material]:
        """The material of one exponential, and the coefficient."""
        first = min(form, key=lambda m: (not m.exact, str(m.exact)))
        leading = form[first]
        content = sp.Mul(*[a for a in sp.Mul.make_args(leading) if self.axes.level(a) == "batch"])
        factor = leading / content
        common = frozenset.intersection(*(m.where for m in form)) - score.where
        inner: list[tuple[Dot, Conditions]] = []
        rest = sp.S.Zero
        for m, c in form.items():
            own = m.where - score.where - common
            if m.exact:
                x = m.exact[0]
                if not isinstance(x, Dot) or c / leading != 1:
                    raise UnfitError("an exponential is multiplied with a sum of exact numbers that is no sum of dot products")
                inner.append((x, own))
            elif own:
                raise UnfitError("a sum has a part that only some of its points have")
            else:
                rest = c / leading
        if not inner:
            return content, Material(score, factor, where=common)
        return content, Material(score, factor, tuple(sorted(inner, key=str)), rest, common)

    def row_tensor(self, s: Statement) -> None:
        """A tensor on rows, batches or nothing."""
        over = set(s.over)
        if not over:
            if self.axes.level(s.where) in ("key", "pair"):
                raise UnfitError(f"`{s}` has a condition on keys")
            self.define(s.target, s.expr.xreplace(self.reader.aliases), s.where)
            return
        if s.reduce != "sum":
            raise UnfitError(f"`{s}` is a {s.reduce} that the engine does not take")
        expr = s.expr
        if over and over.isdisjoint((*self.row, self.axes.key)):
            self.define(s.target, self.inner(s), sp.true, summed=True)
            return
        if self.axes.key in over or self.axes.level(expr) in ("key", "pair"):
            if self.axes.key not in over:
                raise UnfitError(f"`{s}` is not summed over the keys")
            expr = self.summed(s)
        elif s.where != sp.true or self.reader.depends(expr):
            raise UnfitError(f"`{s}` is a sum over rows of what a row does not have, or under a condition")
        rest = over - {self.axes.key}
        if not rest:
            self.define(s.target, expr, sp.true, summed=True)
        elif rest <= set(self.row):
            self.add(RowTotal(s, expr.xreplace(self.reader.aliases)), expr)
            self.stage[s.name] = -1
        else:
            raise UnfitError(f"`{s}` is a sum over a channel")

    def inner(self, s: Statement) -> sp.Expr:
        """A sum over channels of a given matrix times one that is a sum over keys, which is taken first."""
        total = sp.S.Zero
        for m, c in self.reader.form(s.expr, frozenset(s.conditions)).items():
            made = [x for x in m.matrices if name_of(x) in self.made]
            given = [x for x in m.matrices if name_of(x) in self.program.inputs]
            if m.exact or m.scores or m.where or len(made) != 1 or len(given) != 1 or self.axes.level(given[0]) != "row":
                raise UnfitError(f"`{s}` is no sum of a given matrix times one that is a sum over keys")
            statement, parts = self.made[name_of(made[0])]
            if made[0] != statement.target or set(self.axes.channels(given[0])) != set(s.over):
                raise UnfitError(f"`{s}` takes {name_of(made[0])} at other indices than its own")
            for coefficient, score, x in parts:
                total += c * coefficient * self.term(Sum(self.fresh(), score, Dot(given[0], x)))
        return total

    def summed(self, s: Statement) -> sp.Expr:
        """A sum over keys of a form, as an expression in sums that rows have."""
        total = sp.S.Zero
        form = self.reader.form(s.expr, frozenset(s.conditions))
        mixed: Form = {}
        for m, c in form.items():
            if m.matrices:
                raise UnfitError(f"`{s}` has a channel that is not summed")
            if not m.scores and not m.exact:
                total += c * self.term(Count(self.fresh(), m.where))
            elif len(m.scores) == 1 and m.where == m.scores[0].where and not m.exact:
                total += c * self.term(Sum(self.fresh(), m.scores[0]))
            elif len(m.scores) == 1 and m.where == m.scores[0].where and len(m.exact) == 1 and isinstance(m.exact[0], Dot):
                total += c * self.term(Sum(self.fresh(), m.scores[0], m.exact[0]))
            else:
                mixed[m] = c
        weights: dict[Plain | None, Form] = {}
        for m, c in mixed.items():
            plain = [a for a in m.exact if isinstance(a, Plain) and not reads(a.expr)]
            weight = plain[0] if len(plain) == 1 else None
            kept = tuple(a for a in m.exact if a != weight)
            weights.setdefault(weight, {})[Monomial(kept, m.scores, (), m.where)] = c
        for weight, sub in weights.items():
            for c, material in self.materials(sub):
                total += c * self.term(Weighed(self.fresh(), material, weight), *material.coefficients, later=1)
        return total

    def named(self, e: sp.Expr) -> Tensor:
        """An expression on rows as a tensor of its own."""
        target = tensor(f"_factor{len(self.plan.steps)}", *self.row)
        self.define(target, e, sp.true)
        return target

    def fresh(self) -> Tensor:
        """A tensor on rows with a name of its own."""
        return tensor(f"_sum{len(self.sums)}", *self.row)

    def term(self, step: Sum | Count | Weighed, *needs: sp.Expr, later: int = 0) -> Tensor:
        """The tensor of a sum over keys, made once."""
        for known, target in self.sums.items():
            if type(known) is type(step) and _same(known, step):
                return target
        self.sums[step] = step.target
        self.stage[name_of(step.target)] = self.add(step, *needs, later=later)
        return step.target

    def define(self, target: Tensor, expr: sp.Expr, where: sp.Basic, summed: bool = False) -> None:
        """A tensor on rows as an expression."""
        self.stage[name_of(target)] = self.add(RowStep(target, expr, where, summed), expr, where)

    def add(self, step: Step, *needs: sp.Basic, later: int = 0, after: list[sp.Expr] | None = None) -> int:
        """Put a step in the plan; ``later`` passes after what it needs, and not before what is multiplied ``after`` it."""
        stage = self.stage_of(*needs) + later
        stage = max(stage, self.stage_of(*(after or [])))
        self.plan.steps.append((stage, step))
        return stage

    def stage_of(self, *needs: sp.Basic) -> int:
        """The pass after which some expressions are known."""
        found = [0]
        for e in needs:
            for x in (*reads(e), *(a for a in e.free_symbols if isinstance(a, sp.Symbol) and not a.is_integer)):
                name = name_of(x)
                if name in self.program and name not in self.stage:
                    raise UnfitError(f"`{x}` is no tensor on rows")
                if self.stage.get(name, 0) < 0:
                    raise UnfitError(f"`{x}`, a sum over rows, is needed before all rows are known")
                found.append(self.stage.get(name, 0))
        return max(found)


def _same(a: Sum | Count | Weighed, b: Sum | Count | Weighed) -> bool:
    """Whether two sums differ in their names only."""
    if isinstance(a, Sum) and isinstance(b, Sum):
        return (a.score, a.dot) == (b.score, b.dot)
    if isinstance(a, Count) and isinstance(b, Count):
        return a.where == b.where
    return isinstance(a, Weighed) and isinstance(b, Weighed) and (a.material, a.weight) == (b.material, b.weight)


def plan_of(program: Program) -> Plan:
    """The plan of a program.

    Raises
    ------
    UnfitError
        When it is not one that the engine takes.

    >>> from symattn.definition import Definition
    >>> plan = plan_of(Definition().program())
    >>> plan.axes.rows, plan.axes.key, plan.stages
    ((i,), j, 1)
    """
    return Planner(program).read()
