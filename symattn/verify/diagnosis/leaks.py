"""The diagnosis of a kernel in which nothing is wrong but that NaN or infinity in masked keys or values comes through.

Such a kernel is suspect and does not fail, so that no search is made for it: the fault is known by what it is suspect of. Where
the kernel can be run again, the special values are put into keys alone and into values alone, which says what lets them through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from symattn.errors import SymattnError
from symattn.formats import get as format_of
from symattn.intake import Array
from symattn.verify.diagnosis.finding import Finding
from symattn.verify.diagnosis.patterns import place
from symattn.verify.faults.fault import SAME, Fault, Situation
from symattn.verify.faults.predict import predictions
from symattn.verify.observed import Observed
from symattn.verify.pack.laws import unread
from symattn.verify.properties.finding import PropertyReport
from symattn.verify.remarks import LEAK
from symattn.verify.report import DISPLAY

__all__ = ["LEAKING", "Rerun", "leaks"]

LEAKING = "F31"
"""The row of the catalogue."""
PROPERTY = "poison"
"""The property that tries the same on an ordinary input, with infinity too."""
POISONS = {"NaN": np.nan, "infinity": np.inf}
SOURCES = {"key": "keys", "value": "values"}

Rerun = Callable[[Observed, Mapping[str, Array], bool], Mapping[str, Array]]
"""The kernel on other arrays of a case: outputs, and with True gradients too."""
Reached = dict[str, dict[str, tuple[str, ...]]]
"""Source (``key``, ``value``) -> what was put there -> the tensors that it reaches."""


@dataclass(frozen=True)
class _Seen:
    """A case that shows a leak, and where: by tensor the elements that are special and should be numbers."""

    observed: Observed
    bad: Mapping[str, Array]

    @property
    def where(self) -> str:
        named = (f"{DISPLAY.get(n, n)} {place(n, x)} ({int(x.sum())} of {x.size})" for n, x in self.bad.items() if x.any())
        return f"{'; '.join(named)} of case {self.observed.case}"


def leaks(
    cases: Sequence[Observed], row: Fault, run: Rerun | None = None, properties: Sequence[PropertyReport] = ()
) -> tuple[Finding, ...]:
    """The finding on a kernel that masked NaN or infinity reaches; none where nothing of the kind is suspect.

    Parameters
    ----------
    cases
        What the kernel was run on; nothing in it fails.
    row
        The fault.
    run
        Runs the kernel again; None where it cannot be.
    properties
        What was found of properties: infinity is tried there alone.
    """
    marked = [o for o in cases if any(t.suspect == LEAK for t in o.reports)]
    tried = [p for p in properties if p.name == PROPERTY and p.counted == "suspect"]
    by_property = [o for o in cases if tried and o.case == tried[0].case]
    if not marked and not by_property:
        return ()
    reached = {} if run is None else _reached((marked or by_property)[0], run)
    seen = _marked(marked[0]) if marked else _of_property(by_property[0], run, reached)
    return (_finding(row, seen, reached, tried[0].reason if tried else ""),)


def _marked(o: Observed) -> _Seen:
    names = [t.name for t in o.reports if t.suspect == LEAK]
    s = o.situation
    gradient = any(n.startswith("grad_") for n in names)
    right = predictions(Situation(s.reference, s.arithmetic), SAME, forward=True, backward=gradient)
    return _Seen(o, {n: np.isnan(o.tensors[n].astype(np.float64)) & ~np.isnan(right[n].value) for n in names if n in right})


def _of_property(o: Observed, run: Rerun | None, reached: Reached) -> _Seen:
    """Where what comes through on an ordinary input goes: in the first way in which it does."""
    for source, found in reached.items():
        for poison, names in found.items():
            if names and run is not None:
                return _Seen(o, {n: x for n, x in _special(o, run, source, POISONS[poison]).items() if n in names})
    return _Seen(o, {})


def _reached(o: Observed, run: Rerun) -> Reached:
    """What each of the special values reaches, in keys alone and in values alone."""
    found: Reached = {}
    infinite = format_of(str(o.situation.fields["key"].dtype)).infinities
    for source in SOURCES:
        for name, poison in POISONS.items():
            if np.isinf(poison) and not infinite:
                continue
            try:
                bad = _special(o, run, source, poison)
            except SymattnError:
                continue
            found.setdefault(source, {})[name] = tuple(n for n, x in bad.items() if x.any())
    return found


def _special(o: Observed, run: Rerun, source: str, poison: float) -> dict[str, Array]:
    """The elements that are special with a special value in masked keys, or values, and are not with zeros there."""
    gradients = any(n.startswith("grad_") for n in o.tensors)
    with np.errstate(all="ignore"):  # 0 times infinity is what is looked for
        clean = run(o, _filled(o, {}), gradients)
        other = run(o, _filled(o, {source: poison}), gradients)
    found = {}
    for n in (n for n in o.tensors if n in clean and n in other):
        a, b = clean[n].astype(np.float64), other[n].astype(np.float64)
        found[n] = ~np.isfinite(b) & ~((a == b) | (np.isnan(a) & np.isnan(b)))
    return found


def _filled(o: Observed, poisons: Mapping[str, float]) -> dict[str, Array]:
    """The arrays of a case with 0 in masked keys and values, or what is said."""
    fields, nobody = dict(o.situation.fields), unread(o.situation.reference.call)
    for name in SOURCES:
        fields[name] = fields[name].copy()
        fields[name][nobody] = poisons.get(name, 0.0)
    return fields


def _finding(row: Fault, seen: _Seen, reached: Reached, reason: str) -> Finding:
    names = [n for n, x in seen.bad.items() if x.any()]
    reached_ = [n for found in reached.values() for x in found.values() for n in x]
    into = _joined(DISPLAY.get(n, n) for n in seen.observed.tensors if n in names or n in reached_)
    label = "; ".join(x for x in (_sources(reached), f"into {into}" if into else "") if x)
    title = row.title + (f" ({label})" if label else "")
    o = seen.observed
    explained = _explained(o, _joined(DISPLAY.get(n, n) for n in names), reason)
    wrong, right = row.formulas(o.situation)
    lines = [f"{row.id} {title}", f"  computes {wrong}; right is {right}", *(f"  {x}" for x in _ways(reached))]
    lines.append(f"  it explains {explained}, and no number is wrong: suspect, which --strict alone fails")
    lines.append(f"  shows in {seen.where}")
    lines.append(f"  symattn explain {row.id}")
    return Finding((row.id,), title, row.kind, explained, seen.where, tuple(lines))


def _explained(o: Observed, names: str, reason: str) -> str:
    return f"every NaN of {names} in case {o.case}" if o.case == PROPERTY else f"what {PROPERTY} found in case {o.case}: {reason}"


def _sources(reached: Reached) -> str:
    """``values alone``, ``infinity in keys``: what comes through from where, where it is not everything from everywhere."""
    through = {s: [p for p, names in found.items() if names] for s, found in reached.items()}
    open_ = {s: x for s, x in through.items() if x}
    if not open_:
        return ""
    poisons = {p for x in open_.values() for p in x}
    what = f"{poisons.pop()} in " if len(poisons) == 1 else ""
    return what + (" and ".join(SOURCES[s] for s in open_) if len(open_) > 1 else f"{SOURCES[next(iter(open_))]} alone")


def _ways(reached: Reached) -> Iterator[str]:
    """A line for each place that special values were put in: what they reach."""
    for source, found in reached.items():
        said = [f"{p} reaches {_joined(DISPLAY.get(n, n) for n in names) or 'nothing'}" for p, names in found.items()]
        yield f"in masked {SOURCES[source]} alone: {', '.join(said)}"


def _joined(names: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(names))
