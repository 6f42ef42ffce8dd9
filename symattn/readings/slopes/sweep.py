"""One output's bound from slopes: the plan carried out over the boxes of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np

from symattn.arithmetic import uniform
from symattn.claims import prove_range_only
from symattn.errors import ProofError
from symattn.program import Program, Statement, Table, name_of, needed
from symattn.readings import boxes as bx
from symattn.readings.boxes import Array, Box
from symattn.readings.rounding import Evaluation
from symattn.readings.slopes.enclosures import EACH, Enclosures
from symattn.readings.slopes.kinds import split
from symattn.readings.slopes.planning import Leaf, Mask, Plan, Situation, plan_for

__all__ = ["Sweeps"]

LONGEST = 96
"""More statements than this behind an output are left to plain propagation: the terms of a sweep grow with their square."""
SMALL = 2.0**-12
"""Row maxima that are off by less widen slopes by twice that part of what they are made of: it saves a second evaluation."""


class Sweeps:
    """The sweeps over one evaluation; what they share is found once.

    Parameters
    ----------
    evaluation
        The boxes.
    each
        Up to so many points, slopes are evaluated element by element.
    before
        The sweeps over another block of rows: what lacks their index is the same.
    """

    def __init__(self, evaluation: Evaluation, each: int = EACH, before: Sweeps | None = None) -> None:
        self.evaluation, self.program, self.each = evaluation, evaluation.program, each
        self._doubt: dict[str, bool] = {}
        self._still_before: dict[str, Box] = {}
        self.errors: dict[tuple[str, frozenset[tuple[str, str]], frozenset[str]], Array] = {}
        self._behind: dict[str, frozenset[str]] = {}
        self._leaves: dict[Leaf | Mask, tuple[Array, Array | None]] = {}
        if before is not None and evaluation.block is not None:
            rows = evaluation.block.rows
            still = before.__dict__.get("still", {})  # where it was asked for
            self._still_before = {n: b for n, b in still.items() if n not in rows.axes}
            self._leaves |= {f: a for f, a in before._leaves.items() if rows.index not in f.axes}
            self.errors |= {key: e for key, e in before.errors.items() if key[0] not in rows.axes}
            self._behind = before._behind

    def worthwhile(self, out: str) -> bool:
        """Whether some error reaches the output by more than one path: plain propagation is as sharp where none does.

        Lists that are too long for a sweep are left to plain propagation as well.
        """
        live = needed(self.program.groups(), (out,))
        if len(live) > LONGEST:
            return False
        moving, seen = self._moving(), set()
        for s in live:
            for x in () if s.range_only or s.name in self.opaque() else s.reads:
                n = name_of(x)
                if n in moving and self.evaluation.boxes[n].value.ndim:
                    if n in seen:
                        return True
                    seen.add(n)
        return False

    def bound(self, out: str) -> Array:
        """The bound of the theorem for every element of a tensor; not finite where it says nothing."""
        known, local = self.evaluation.known, self.local(out)
        plan = local.plan
        enclosures = self._enclosures(plan)
        with np.errstate(all="ignore"):
            total = np.zeros(known.boxes[out].value.shape)
            for term in plan.terms:
                total = total + enclosures.weighed(term.monomials, local.error(term.name), term.at)
        return np.where(np.isnan(total) | ~np.isfinite(known.boxes[out].value), np.inf, total)

    def own(self, name: str, small: float = SMALL) -> Array:
        """At most how far the float64 values of a tensor are from the true ones, whatever row maxima the kernel used.

        Row maxima that are off by ``small`` at most are taken as they are.
        """
        boxes = self.evaluation.known.boxes
        reach = [float(np.max(b.own, initial=0.0)) for b in boxes.values() if b.gauge]
        if max(reach, default=0.0) <= small or not self._independent(name):
            return boxes[name].own
        return np.fmin(boxes[name].own, self.still[name].own)

    @cached_property
    def still(self) -> Mapping[str, Box]:
        """The boxes of a kernel that uses the float64 values of the row maxima."""
        e, block = self.evaluation, self.evaluation.block
        if block is not None:
            block = replace(block, shared=self._still_before)
        return Evaluation(e.program, e.inputs, uniform("own", "float64"), sizes=e.sizes, fixed=True, block=block).boxes

    def _independent(self, name: str) -> bool:
        """Whether the true values of a tensor are proved not to depend on the row maxima."""
        if name not in self.program or self.program[name].range_only:
            return False
        return _independent(self.program, name)

    def situation(self) -> Situation:
        """What a plan depends on."""
        sizes = Table(self.evaluation.known.sizes)
        return Situation(self.program, sizes, self._moving(), self.opaque(), frozenset(self.evaluation.refined))

    def local(self, out: str, *, fold: bool = True) -> Local:
        """The local errors as the plan of an output hands them on."""
        return Local(self, plan_for(replace(self.situation(), fold=fold), out))

    def parts(self, out: str) -> dict[str, Array]:
        """What each statement and kind of rounding contributes to the bound; no error is handed on to another statement."""
        known, local = self.evaluation.known, self.local(out, fold=False)
        enclosures = self._enclosures(local.plan)
        found: dict[str, Array] = {}
        with np.errstate(all="ignore"):
            for term in local.plan.terms:
                for kind, error in local.split(term.name).items():
                    part = enclosures.weighed(term.monomials, error, term.at)
                    name = f"{term.name}: {kind}"
                    found[name] = found.get(name, np.zeros(known.boxes[out].value.shape)) + part
        return {name: np.where(np.isnan(part), np.inf, part) for name, part in found.items() if np.any(part)}

    def behind(self, name: str) -> frozenset[str]:
        """The statements that a tensor is made by, its own among them."""
        if name not in self._behind:
            self._behind[name] = frozenset(s.name for s in needed(self.program.groups(), (name,)))
        return self._behind[name]

    def _enclosures(self, plan: Plan) -> Enclosures:
        known = self.evaluation.known
        return Enclosures(plan, known, {**known.boxes, **self.evaluation.refined}, self.own, self._leaves, self.each)

    def _moving(self) -> frozenset[str]:
        return frozenset(n for n, b in self.evaluation.known.boxes.items() if bx.some(b.bound))

    def opaque(self) -> frozenset[str]:
        """The statements that no slope passes."""
        return frozenset(s.name for s in self.program if s.name in self.evaluation.known.boxes and self._is_opaque(s))

    def _is_opaque(self, s: Statement) -> bool:
        """Steps of a scan, maxima, products, and what rounding errors could put on the other side of a condition."""
        if s.name not in self._doubt:
            hard = s.scan is not None or (bool(s.over) and s.reduce != "sum")
            self._doubt[s.name] = hard or (bool(s.conditions) and self.evaluation.doubtful(s))
        return self._doubt[s.name]


@lru_cache(maxsize=512)
def _independent(program: Program, name: str) -> bool:
    try:
        prove_range_only(program.with_statements(program.statements, (name,)).live())
    except ProofError:
        return False
    return True


class Local:
    """What each statement of a plan adds by itself, the errors of operands that it hands on among it."""

    def __init__(self, sweeps: Sweeps, plan: Plan) -> None:
        self.sweeps, self.plan, self.boxes = sweeps, plan, sweeps.evaluation.known.boxes

    def error(self, name: str) -> Array:
        """At the worst of all values that a kernel may have computed from."""
        program, known = self.sweeps.program, self.sweeps.errors
        if name not in program or name in self.sweeps.opaque():
            return self.boxes[name].bound
        behind = self.sweeps.behind(name)
        key = (name, frozenset(c for c in self.plan.cut if c[1] in behind), self.plan.folded & behind)
        if key not in known:
            s, given = program[name], self.operands(program[name])
            once = self.sweeps.evaluation.refined.get(name, self.boxes[name])
            known[key] = self.sweeps.evaluation.local(s, given).bound if given else once.bound
        return known[key]

    def split(self, name: str) -> dict[str, Array]:
        """The local error by its kinds; ``cut`` is what comes from operands that have no slope."""
        program, sweeps = self.sweeps.program, self.sweeps
        if name not in program:
            return {"given": self.boxes[name].bound}
        if name in sweeps.opaque():
            return {"cut": self.boxes[name].bound}
        s = program[name]
        whole, opened = self.error(name), self.operands(s, cut=False)
        found = split(lambda a: sweeps.evaluation.local(s, opened, a).bound, sweeps.evaluation.known.arithmetic)
        rest = whole - sum(found.values())
        return {"cut": np.where(rest > 0, rest, 0.0), **found} if len(opened) > len(self.operands(s)) else found

    def operands(self, s: Statement, *, cut: bool = True) -> Mapping[str, Box]:
        given = {}
        for n in {name_of(x) for x in s.reads}:
            b = self.boxes[n]
            if b.gauge or not bx.some(b.bound) or (cut and (n, s.name) in self.plan.cut):
                continue
            given[n] = bx.as_given(b, self.error(n) if n in self.plan.folded else 0.0)
        return given
