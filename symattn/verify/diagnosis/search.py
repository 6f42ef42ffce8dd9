"""The search for faults that explain a kernel: single ones on the smallest failing case first, then pairs, within bounds.

Outputs and gradients are explained one after the other: a kernel may have one fault in both passes, in the forward alone, in
the backward alone, or two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from symattn.program import Program
from symattn.verify.diagnosis.effort import Effort, derivation, evaluation
from symattn.verify.diagnosis.explaining import Evidence, Hypothesis, convincing, explains, hypotheses, misses, predicted
from symattn.verify.diagnosis.fitting import fitted_fault
from symattn.verify.faults.fault import KINDS, SAME, Alternative, Edit, Fault
from symattn.verify.faults.scaling import FITTED
from symattn.verify.observed import Observed

EVALUATIONS = 150
"""Lists that are evaluated for pairs."""
LONG = 20
"""Statements of a list beyond which it counts as more than one, by its length."""
FITS = 40
"""Evaluations that a fitted factor takes."""
DERIVED = 24
"""Other programs whose gradients are derived."""
TELLING = 8
"""Wrong elements that have to speak for a fault of failing cases alone: fewer of them some hypothesis meets by chance."""
POISON = "poison"
EXACT = ("convention", "mathematics")
"""Kinds that show in exact arithmetic: where one explains, none that is emulated is asked for."""


@dataclass(frozen=True)
class Explanation:
    """What explains a kernel: a hypothesis or two for the outputs, one for the gradients.

    ``forward`` is empty where the outputs are right; ``backward`` is what the gradients follow, beside or instead of it;
    ``both`` says that the gradients follow ``forward`` too, ``split`` that they were judged and do not; ``open`` are tensors that
    stay unexplained.
    """

    forward: tuple[Hypothesis, ...]
    backward: tuple[Hypothesis, ...] = ()
    both: bool = False
    split: bool = False
    open: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults in it, once each."""
        found = [h.fault for h in (*self.forward, *self.backward) if h.fault is not None]
        return tuple(dict.fromkeys(found))


@dataclass
class Search:
    """The cases of a kernel, and what was found out about them.

    ``budget`` bounds what is evaluated for pairs, ``derived`` the gradients that are derived, ``effort`` the work of everything.
    """

    cases: Sequence[Observed]
    faults: Sequence[Fault]
    budget: float = EVALUATIONS
    derived: float = DERIVED
    effort: Effort = field(default_factory=Effort)
    tried: set[str] = field(default_factory=set)
    """The ids of faults that were asked alone."""
    untried: set[str] = field(default_factory=set)
    """Of those, the ones that the effort did not reach in every form."""
    refuted: dict[str, str] = field(default_factory=dict)
    """By the ids of faults that explain every failing case alone: a case without failure that they do not explain."""
    _smallest: dict[bool, Observed] = field(default_factory=dict)
    _held: dict[tuple[tuple[Hypothesis, ...], bool], bool] = field(default_factory=dict)

    def run(self) -> list[Explanation]:
        """Everything that explains all cases; single faults before pairs."""
        forward = self._forward() if self.fails(False) else [()]
        if not any(o.part(True) for o in self.cases):
            return [Explanation(f) for f in forward if f]
        followed = [e for f in forward for e in self._followed(f)]  # what takes no further fault is said first
        return followed or [e for f in forward for e in self._gradients(f)] or self._halves(forward)

    def fails(self, gradient: bool) -> bool:
        """Whether any case has an output (a gradient) out of bounds."""
        return any(o.fails(gradient) for o in self.cases)

    def smallest(self, gradient: bool) -> Observed:
        """The smallest case in which an output (a gradient) fails, or where none does."""
        if gradient not in self._smallest:
            pool = [o for o in self.cases if o.fails(gradient)] or list(self.cases)
            self._smallest[gradient] = min(pool, key=lambda o: o.work)
        return self._smallest[gradient]

    def holds(self, parts: tuple[Hypothesis, ...], gradient: bool) -> bool:
        """Whether one hypothesis, or several at once, explain every case."""
        key = (parts, gradient)
        if key not in self._held:
            alone = {h.fault.id for h in parts if h.fault is not None} if len(parts) == 1 else set()
            self.tried |= alone
            found = self._holds(parts, gradient)
            if found is None:
                self.untried |= alone
                return False
            self._held[key] = found
        return self._held[key]

    def _holds(self, parts: tuple[Hypothesis, ...], gradient: bool) -> bool | None:
        """As :meth:`holds`; None where that would be more work than is left."""
        first = self.smallest(gradient)
        found: list[Evidence] = []
        for o in (first, *(o for o in self.ordered() if o is not first)):
            if not o.part(gradient):
                continue
            a = together(parts, o)
            if a is not None and a is not SAME and not self.effort.take(evaluation(o, gradient)):
                return None
            evidence = None if a is None else explains(o, a, gradient)
            if evidence is None:
                self._refute(parts, o, found, gradient)
                return False
            found.append(evidence)
        return not self.fails(gradient) or convincing(found)

    def _refute(self, parts: tuple[Hypothesis, ...], o: Observed, found: Sequence[Evidence], gradient: bool) -> None:
        """Keep a single fault that only a case without failure speaks against, where the others, all that fail, say enough."""
        fault = parts[0].fault if len(parts) == 1 else None
        enough = sum(told.count for e in found for told in e.values()) >= TELLING
        if fault in self.faults and fault is not None and not o.failing and self.fails(gradient) and enough and convincing(found):
            self.refuted.setdefault(fault.id, o.case)

    def ordered(self) -> list[Observed]:
        """Failing cases first, small ones first; those with NaN in what must not be read only where nothing else fails."""
        plain = [o for o in self.cases if o.case != POISON]
        kept = plain if any(o.failing for o in plain) else list(self.cases)
        return sorted(kept, key=lambda o: (not o.failing, o.work))

    def _forward(self) -> list[tuple[Hypothesis, ...]]:
        """What explains the outputs of every case."""
        o = self.smallest(False)
        for k, faults in enumerate(self.rounds(False)):
            singles = hypotheses(faults, o.situation)
            found: list[tuple[Hypothesis, ...]] = [(h,) for h in singles if self.holds((h,), False)]
            if found or (found := self._fitted(o) if k == 0 else []):
                return found
        return [*self._pairs(o, hypotheses(self.rounds(False)[0], o.situation))]

    def _fitted(self, o: Observed) -> list[tuple[Hypothesis, ...]]:
        """A factor of the scores that was fitted to one case, where it explains every case."""
        row = next((f for f in self.faults if f.id == FITTED), None)
        affordable = row is not None and self.effort.take(FITS * evaluation(o, False))
        fault = fitted_fault(row, o) if row is not None and affordable else None
        return [(Hypothesis(fault),)] if fault is not None and self.holds((Hypothesis(fault),), False) else []

    def rounds(self, backward_only: bool) -> tuple[list[Fault], list[Fault]]:
        """Faults of the forward, or of the backward alone: conventions, then mathematics; and in the end what is emulated."""
        own = sorted((f for f in self.faults if f.backward_only == backward_only), key=lambda f: KINDS.index(f.kind))
        return [f for f in own if f.kind in EXACT], [f for f in own if f.kind not in EXACT]

    def _pairs(self, o: Observed, singles: Sequence[Hypothesis]) -> Iterator[tuple[Hypothesis, ...]]:
        """Two faults at once, those first that explain most alone."""
        tensors, scored = o.part(False), []
        for h in singles:
            a = h.on(o.situation)
            if not composable(a) or not self.effort.take(evaluation(o, False)):
                continue
            found = predicted(o, a, False)
            if found is not None:
                scored.append((misses(tensors, found), h))
        ranked = [h for _, h in sorted(scored, key=lambda x: x[0])]
        left, cost = float(self.budget), max(1.0, len(o.situation.forward.statements) / LONG)
        for total in range(1, 2 * len(ranked) - 2):
            for k in range(max(0, total - len(ranked) + 1), (total + 1) // 2):
                first, second = ranked[k], ranked[total - k]
                if left <= 0 or self.effort.over:
                    return
                if first.fault is second.fault:
                    continue
                left -= cost
                if self.holds((first, second), False):
                    yield (first, second)

    def _followed(self, forward: tuple[Hypothesis, ...]) -> list[Explanation]:
        """Gradients that follow from what explains the outputs, or are right, as they are."""
        for base in dict.fromkeys((forward, ())):
            if self.holds(base, True):
                return [Explanation(forward, (), both=bool(base), split=not base)]
        return []

    def _gradients(self, forward: tuple[Hypothesis, ...]) -> list[Explanation]:
        """How the gradients follow, given what explains the outputs."""
        if followed := self._followed(forward):
            return followed
        found: list[Explanation] = []
        o = self.smallest(True)
        for base, faults in product(dict.fromkeys((forward, ())), self.rounds(True)):
            found += [
                Explanation(forward, (h,), both=bool(base))
                for h in hypotheses(faults, o.situation)
                if self.holds((*base, h), True)
            ]
            if found:
                return found
        return self._other_in_backward(forward)

    def _other_in_backward(self, forward: tuple[Hypothesis, ...]) -> list[Explanation]:
        """A fault of the forward that only the backward has."""
        o = self.smallest(True)
        return [
            Explanation(forward, (h,))
            for h in hypotheses(self.rounds(False)[0], o.situation)
            if self._affordable(h, h.on(o.situation)) and self.holds((h,), True)
        ]

    def _affordable(self, h: Hypothesis, a: Alternative) -> bool:
        """Whether its gradient is known already, needs no derivation, or one is left."""
        if ((h,), True) in self._held:
            return True
        if a.values is not None or a.compute is not None or (a.definition is None and a.program is None):
            return True
        self.derived -= 1
        if self.derived >= 0 and self.effort.take(derivation(self.smallest(True))):
            return True
        if h.fault is not None:
            self.tried |= {h.fault.id}
            self.untried |= {h.fault.id}
        return False

    def _halves(self, forward: Sequence[tuple[Hypothesis, ...]]) -> list[Explanation]:
        """What explains the outputs alone, or the gradients alone, where nothing explains both."""
        gradients = tuple(dict.fromkeys(n for o in self.cases for n in o.failing if n.startswith("grad_")))
        if forward:
            return [Explanation(f, open=gradients) for f in forward if f]
        outputs = tuple(dict.fromkeys(n for o in self.cases for n in o.failing if not n.startswith("grad_")))
        return [replace(e, open=outputs) for e in self._gradients(()) if e.faults]


def composable(a: Alternative) -> bool:
    """Whether another alternative can be put on top."""
    return a.values is None and a.compute is None and a.program is None


def together(parts: Iterable[Hypothesis], o: Observed) -> Alternative | None:
    """Several hypotheses at once on a case; None where they cannot be combined."""
    result = SAME
    for h in parts:
        both = combined(result, h.on(o.situation))
        if both is None:
            return None
        result = both
    return result


def combined(a: Alternative, b: Alternative) -> Alternative | None:
    """Two alternatives at once; None where both change the same thing."""
    if a is SAME or b is SAME:
        return b if a is SAME else a
    if any(x is not None for x in (a.values, b.values, a.compute, b.compute)):
        return None
    single = ("definition", "program", "reads", "scatters", "writes", "fields", "arithmetic")
    if any(getattr(a, f) is not None and getattr(b, f) is not None for f in single):
        return None
    if {a.definition, b.definition} != {None} and {a.program, b.program} != {None}:
        return None
    taken = {f: getattr(a, f) if getattr(a, f) is not None else getattr(b, f) for f in single}
    after = a.after or b.after
    if a.after is not None and b.after is not None:
        first, second = a.after, b.after
        after = lambda s, p: second(s, first(s, p))
    return Alternative(
        label=" and ".join(x for x in (a.label, b.label) if x),
        edit=_one_after_the_other(a.edit, b.edit),
        gradient=_one_after_the_other(a.gradient, b.gradient),
        after=after,
        **taken,
    )


def _one_after_the_other(first: Edit | None, second: Edit | None) -> Edit | None:
    if first is None or second is None:
        return first or second

    def edit(program: Program) -> Program:
        return second(first(program))

    return edit
