"""The vacuity guard: which known faults a run could not have shown, on its own inputs and within its own bounds.

For each known fault that means anything for the definition, what a kernel with it would return on the inputs of the run is
predicted, and compared with what is right: ``max |alternative - right| / (bound + reach)``, where the bound is that of a correct
kernel and the reach that of the faulty one. Above 1 no kernel is both, so that the run tells them apart; what stays below 1 on
every input is *hidden*. The comparison is of predictions in float64 with rigorous bounds, and costs nothing of the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symattn.errors import SymattnError
from symattn.intake import Array
from symattn.verify.faults.catalogue import CATALOGUE
from symattn.verify.faults.fault import SAME, Alternative, Fault, Prediction, Predictions, Situation
from symattn.verify.faults.predict import predictions
from symattn.verify.observed import Observed

__all__ = ["Guard", "Hidden", "guard", "separation", "trivial", "vacuous"]

WORK = 40_000_000
"""Pairs of queries and keys times width that predictions may cost altogether; inputs beyond it are left out."""
FORMS = 200
"""Predictions that are made to tell which forms of faults are hidden that show in another form."""
NOTHING = 1e-6
"""A separation below which nothing moves but by the rounding of the predictions."""


@dataclass(frozen=True)
class Hidden:
    """A fault that the run could not have shown.

    Parameters
    ----------
    fault
        Its id.
    title
        What a kernel with it does.
    blind
        Inputs on which it cannot show, as far as that is known.
    ratio
        The greatest separation over all inputs, below 1; 0: no element moves.
    case, tensor
        Where that is; empty where nothing moves.
    kind
        As in the catalogue; of an ``arithmetic`` one the prediction may be as wide as what it differs by.
    variant
        Of a fault that shows in another form, the label of the form that does not; empty where the whole fault is hidden.
    """

    fault: str
    title: str
    blind: str
    ratio: float
    case: str = ""
    tensor: str = ""
    kind: str = ""
    variant: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The entry of the JSON document; numbers are text."""
        own = {"variant": self.variant} if self.variant else {}
        known = {n: getattr(self, n) for n in ("fault", "title", "blind", "case", "tensor")}
        return known | {"ratio": f"{self.ratio:.3g}"} | own

    @property
    def line(self) -> str:
        """As a warning says it."""
        where = f"; nearest on {self.case}, {self.ratio:.2g} of what would show" if self.case else "; nothing moves"
        return f"{self.fault} {self.title}{where}{f' (blind: {self.blind})' if self.blind else ''}"


@dataclass(frozen=True)
class Guard:
    """What a run tells apart.

    Parameters
    ----------
    known
        The ids of the faults that mean anything for the definition.
    hidden
        Those that the run could not have shown.
    vacuous
        The inputs on which the bound of the output is above what any weights could give.
    partly
        Of faults that the run could have shown, the forms that it could not have.
    """

    known: tuple[str, ...]
    hidden: tuple[Hidden, ...]
    vacuous: tuple[str, ...] = ()
    partly: tuple[Hidden, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether no bound is vacuous and nothing is hidden but faults of arithmetic, which a bound on rounding is no test of."""
        return not self.vacuous and all(h.kind == "arithmetic" for h in self.hidden)

    @property
    def line(self) -> str:
        """``tells apart 41 of 43 known faults; not: F12, F56``."""
        return self.brief + (f"; not: {', '.join(h.fault for h in self.hidden)}" if self.hidden else "")

    @property
    def brief(self) -> str:
        """``tells apart 41 of 43 known faults``."""
        return f"tells apart {len(self.known) - len(self.hidden)} of {len(self.known)} known faults"

    @property
    def vacuity(self) -> tuple[str, ...]:
        """The line on inputs whose bound is vacuous, where there are any."""
        where = f"the bound of O is vacuous on {', '.join(self.vacuous)}"
        said = f"{where}: the declared arithmetic allows errors as large as any weights could make"
        return (said,) if self.vacuous else ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Lines for the report, one for each fault that is hidden."""
        return (*(f"this run could not show {h.line}" for h in self.hidden), *self.partial, *self.vacuity)

    @property
    def partial(self) -> tuple[str, ...]:
        """The line on faults of which some form is hidden: ``F49 (bfloat16, once a tile, tile 32)``."""
        forms: dict[str, list[str]] = {}
        for h in self.partly:
            forms.setdefault(h.fault, []).append(h.variant)
        named = (f"{f} ({'; '.join(x[:2])}{f'; {len(x) - 2} more' if len(x) > 2 else ''})" for f, x in forms.items())
        return (f"some forms of faults could not show: {', '.join(named)}",) if forms else ()

    @property
    def objections(self) -> tuple[str, ...]:
        """Why :attr:`holds` is false, in a few words each."""
        count = sum(h.kind != "arithmetic" for h in self.hidden)
        hidden = f"{count} known fault{'' if count == 1 else 's'} could not show on these inputs"
        vacuous = f"the bound of O is vacuous on {', '.join(self.vacuous)}"
        return (*((hidden,) if count else ()), *((vacuous,) if self.vacuous else ()))

    def to_dict(self) -> dict[str, Any]:
        """The entry of the JSON document."""
        return {
            "known": list(self.known),
            "hidden": [h.to_dict() for h in self.hidden],
            "partly_hidden": [h.to_dict() for h in self.partly],
            "vacuous": list(self.vacuous),
        }


def guard(
    seen: Sequence[Observed],
    faults: Iterable[Fault] | None = None,
    *,
    further: Callable[[], Sequence[Situation]] = tuple,
    work: int = WORK,
) -> Guard:
    """What a run tells apart.

    Parameters
    ----------
    seen
        The inputs of the run, with the tensors that were judged on each.
    faults
        By default those of the catalogue; rows of shifts that exact algebra allows are no faults.
    further
        Other inputs of the same definition, made when they are needed: a fault that moves nothing on the run means something for
        the definition where it moves something on one of them.
    work
        How much predictions may cost: see :data:`WORK`.
    """
    judged = frozenset(n for o in seen for n in o.judged)
    gradient = any(n.startswith("grad_") for n in judged)
    rows = [f for f in (CATALOGUE.values() if faults is None else faults) if not f.id.startswith("C")]
    ordered = sorted(seen, key=lambda o: o.work)
    known: list[str] = []
    hidden: list[tuple[Fault, Hidden]] = []
    shown: list[tuple[Fault, Hidden]] = []
    right: dict[tuple[int, bool], Predictions] = {}
    with np.errstate(all="ignore"):  # faults overflow where that is what they are about
        for fault in (f for f in rows if gradient or not f.backward_only):
            best, work = _nearest(fault, ordered, work)
            if best is None or (best.ratio < NOTHING and not _moves(fault, further(), judged, right)):
                continue
            known.append(fault.id)
            (hidden if best.ratio <= 1 else shown).append((fault, best))
        partly = _forms([f for f, _ in shown], ordered)
        return Guard(tuple(known), tuple(h for _, h in hidden), tuple(o.case for o in seen if vacuous(o)), partly)


def _nearest(fault: Fault, seen: Sequence[Observed], work: int) -> tuple[Hidden | None, int]:
    """How well a run tells a fault apart, None where it means nothing on its inputs; and what is left of the work."""
    best: Hidden | None = None
    for o in seen:
        if o.work > work:
            continue
        for a in _alternatives(fault, o.situation):
            work -= o.work
            ratio, tensor = _told(o, a, fault)
            if best is None or ratio > best.ratio:
                best = Hidden(fault.id, fault.title, fault.blind, ratio, o.case if ratio >= NOTHING else "", tensor, fault.kind)
            if ratio > 1:
                return best, work
    return best, work


def _forms(faults: Sequence[Fault], seen: Sequence[Observed], left: int = FORMS) -> tuple[Hidden, ...]:
    """The forms of faults that show in another one, which move something and show nowhere.

    Only those of emulated faults, which the sizes of tiles and the formats tell from each other. A fault of which not all forms
    can be tried on all inputs within what is ``left`` is left out.
    """
    found: list[Hidden] = []
    for fault in (f for f in faults if f.kind in ("arithmetic", "range")):
        best: dict[str, Hidden] = {}
        for o in seen:
            pending = [a for a in _alternatives(fault, o.situation) if a.label and not _shows(best.get(a.label))]
            left -= len(pending)
            if left < 0:
                return tuple(found)
            for a in pending:
                ratio, tensor = _told(o, a, fault)
                if a.label not in best or ratio > best[a.label].ratio:
                    best[a.label] = Hidden(fault.id, fault.title, fault.blind, ratio, o.case, tensor, fault.kind, a.label)
        found += [h for h in best.values() if NOTHING <= h.ratio <= 1]
    return tuple(found)


def _shows(h: Hidden | None) -> bool:
    return h is not None and h.ratio > 1


def _moves(
    fault: Fault, situations: Sequence[Situation], judged: frozenset[str], right: dict[tuple[int, bool], Predictions]
) -> bool:
    """Whether a fault changes any number of some tensors on some inputs; ``right`` keeps what is right there."""
    for k, s in enumerate(situations):
        for a in _alternatives(fault, s):
            for back in sorted({n.startswith("grad_") for n in judged}):
                if fault.backward_only and not back:
                    continue
                try:
                    if (k, back) not in right:
                        right[k, back] = predictions(s, SAME, forward=not back, backward=back)
                    other = predictions(s, a, forward=not back, backward=back)
                except SymattnError:
                    continue
                if _apart(right[k, back], other, judged)[0] >= NOTHING:
                    return True
    return False


def _alternatives(fault: Fault, situation: Situation) -> list[Alternative]:
    try:
        return list(fault.alternatives(situation))
    except SymattnError:
        return []


def _told(o: Observed, a: Alternative, fault: Fault) -> tuple[float, str]:
    """The separation on one input, and the tensor that shows it: outputs first, gradients where those say nothing."""
    best = (0.0, "")
    for gradient in (False, True):
        names = o.part(gradient)
        if not names or (fault.backward_only and not gradient):
            continue
        try:
            other = predictions(o.situation, a, forward=not gradient, backward=gradient)
            best = max(best, _apart(o.base, other, names))
        except SymattnError:
            continue
        if best[0] > 1:
            break
    return best


def _apart(right: Predictions, other: Predictions, names: Iterable[str]) -> tuple[float, str]:
    return max(((separation(right[n], other[n]), n) for n in names if n in right and n in other), default=(0.0, ""))


def separation(right: Prediction, other: Prediction) -> float:
    """The greatest ``|other - right| / (bound + reach)`` over all elements; infinite where one is special and the other is not.

    >>> a, b = (Prediction(np.array([x]), np.array([0.25])) for x in (1.0, 2.0))
    >>> separation(a, b), separation(a, a)
    (2.0, 0.0)
    """
    if right.value.shape != other.value.shape:
        return math.inf
    with np.errstate(all="ignore"):
        room = right.reach + other.reach
        special = np.isfinite(right.value) != np.isfinite(other.value)
        ratio = np.abs(other.value - right.value) / room
    ratio = np.where(np.isnan(ratio), 0.0, ratio)
    ratio = np.where(special & ~np.isinf(right.reach), math.inf, ratio)
    return float(ratio.max(initial=0.0))


def vacuous(o: Observed) -> bool:
    """Whether the bound of most elements of the output is above what any weights could give."""
    most = trivial(o)
    return most is not None and bool(np.mean(o.base["out"].reach >= most) > 0.5)


def trivial(o: Observed) -> Array | None:
    """How far any weights could be off in each element of the output: the distance to the farthest value.

    None where there is no output that is made of values by weights.
    """
    fields = o.situation.fields
    if "out" not in o.part(False) or "value" not in fields or "out" not in o.base:
        return None
    out, value = o.base["out"], fields["value"].astype(np.float64)
    if out.value.ndim != 4 or out.value.shape[3] != value.shape[3] or not np.isfinite(value).all():
        return None
    each = value[:, o.situation.reference.call.kv_head]
    top, low = each.max(axis=2, keepdims=True), each.min(axis=2, keepdims=True)
    farthest: Array = np.maximum(np.abs(np.maximum(top, 0) - out.value), np.abs(np.minimum(low, 0) - out.value))
    return farthest
