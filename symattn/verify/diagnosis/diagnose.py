"""The diagnosis: which faults of the catalogue explain a kernel that is out of bounds, or what its deviation looks like."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from symattn import formats
from symattn.errors import SymattnError
from symattn.verify.diagnosis.effort import SEARCH, SHRINK, Effort, rerun
from symattn.verify.diagnosis.explaining import Hypothesis, wrong
from symattn.verify.diagnosis.finding import Finding
from symattn.verify.diagnosis.leaks import LEAKING, Rerun, leaks
from symattn.verify.diagnosis.part import Part, explained_part
from symattn.verify.diagnosis.patterns import patterns, where
from symattn.verify.diagnosis.search import DERIVED, EVALUATIONS, Explanation, Search, together
from symattn.verify.diagnosis.shrink import TRIES, smallest_failing
from symattn.verify.faults.catalogue import CATALOGUE
from symattn.verify.faults.fault import KINDS, Fault, Predictions, Situation
from symattn.verify.faults.predict import predictions
from symattn.verify.inputs import KINDS as INPUTS
from symattn.verify.inputs import Shape, fields_for, fitted
from symattn.verify.observed import Observed
from symattn.verify.properties.finding import PropertyReport
from symattn.verify.reference import Reference
from symattn.verify.report import DISPLAY

LARGE = 4_000_000
"""Multiplications of one score matrix beyond which a case is left out of the search, unless all are so large."""
STARTS = 4
"""Failing cases of which the sizes are asked for, for the search for a smaller shape to start from."""
SHOWN = 4
"""As many hypotheses are told apart by other inputs."""
SEPARATING = ("2,6,3,5,9,5", "1,4,2,9,5,6", "2,6,2,7,7,8", "1,6,2,21,26,6")
"""Shapes on which hypotheses are tried that coincide on the inputs of a run."""


SAME_TO = 1e-11
"""To which two predictions of one formula are equal."""
PLAIN = ("normal", "shape", "inputs")
"""Inputs on which a place is shown first."""
EXTREME = ("paired", "abyss", "over", "poison")
"""Inputs on which it is shown only where no other one fails."""


def diagnose(
    cases: Sequence[Observed],
    again: Callable[[str, Shape], bool] | None = None,
    faults: Mapping[str, Fault] = CATALOGUE,
    choice: str = "bounded",
    run: Rerun | None = None,
    properties: Sequence[PropertyReport] = (),
) -> tuple[Finding, ...]:
    """Findings on a kernel, best first; none where no case fails, but for special values that come through a mask.

    Parameters
    ----------
    cases
        Everything that it was run on.
    again
        Whether it fails on a kind of input in another shape: for the smallest shape that still fails, where nothing explains it.
    faults
        The catalogue.
    choice
        ``"bounded"``: the search stops after so much work (:mod:`symattn.verify.diagnosis.effort`), and what it did not
        come to is said; ``"all"``: it tries every fault and every pair.
    run, properties
        What a leak of masked NaN and infinity is asked by: see :func:`symattn.verify.diagnosis.leaks.leaks`.

    Raises
    ------
    UnknownNameError
        For another choice.
    """
    effort, shrinking = Effort.of(choice, SEARCH), Effort.of(choice, SHRINK)
    if not any(o.failing for o in cases):
        return leaks(cases, faults[LEAKING], run, properties) if LEAKING in faults else ()
    small = [o for o in cases if o.work <= LARGE]
    kept = small if any(o.failing for o in small) else list(cases)
    pairs, derived = (EVALUATIONS, DERIVED) if choice == "bounded" else (np.inf, np.inf)
    search = Search(kept, list(faults.values()), budget=pairs, derived=derived, effort=effort)
    explanations = ranked(search.run(), faults)
    if explanations:
        found = list(_findings(explanations, kept))
    else:
        found = [_pattern(kept, again, shrinking), *_partial(explained_part(search, cases, choice), faults)]
    stopped = _stopped(search)
    return (replace(found[0], text=(*found[0].text, *stopped)), *found[1:])


def _stopped(search: Search) -> tuple[str, ...]:
    """The line on faults that the search did not come to, where there are any."""
    known, left = len(search.tried), len(search.untried)
    if not left and not search.effort.over:
        return ()
    reached = f"{known - left} of {known} faults" if left else f"all {known} single faults, before pairs were through"
    return (f"  the search stopped after {reached}; --diagnose all goes on",)


def ranked(found: Sequence[Explanation], faults: Mapping[str, Fault]) -> list[Explanation]:
    """Explanations in order: fewer faults first, conventions before mathematics, arithmetic and range; once per set of faults."""
    order = {f: k for k, f in enumerate(faults)}
    once: dict[tuple[str, ...], Explanation] = {}
    for e in found:
        once.setdefault(tuple(sorted(f.id for f in e.faults)), e)

    def rank(e: Explanation) -> tuple[int, int, int]:
        return len(e.faults), max(KINDS.index(f.kind) for f in e.faults), min(order[f.id] for f in e.faults)

    return sorted((e for e in once.values() if e.faults), key=rank)


def _findings(found: Sequence[Explanation], cases: Sequence[Observed]) -> Iterator[Finding]:
    first = len(found[0].faults)
    kept = [e for e in found if len(e.faults) == first]
    others = [" + ".join(f.id for f in e.faults) for e in kept]
    told = _told_apart(kept[:SHOWN], cases) if len(kept) > 1 else None
    for k, e in enumerate(kept):
        coincide = [x for x in others if x != others[k]]
        yield _finding(e, cases, coincide, told if k == 0 else None)


def _partial(part: Part | None, faults: Mapping[str, Fault]) -> Iterator[Finding]:
    """Findings on the failing cases alone; what would tell them apart is not asked, as other inputs need not take their path."""
    if part is None:
        return
    found = ranked(part.found, faults)
    for e in found:
        coincide = [x.faults[0].id for x in found if x is not e]
        yield part.labelled(_finding(e, part.failing, coincide, None, part.scope))


def _finding(e: Explanation, cases: Sequence[Observed], coincide: Sequence[str], told: str | None, scope: str = "") -> Finding:
    failing = [o for o in cases if o.failing]
    shown = min(failing, key=lambda o: (simplicity(o), share(o)))
    names = dict.fromkeys(DISPLAY.get(n, n) for o in cases for n in o.judged if _covers(e, n))
    explained = f"every element of {', '.join(names)} in {len(cases)} case{'s' * (len(cases) != 1)}{scope}"
    place = f"{where(shown)} of case {shown.case}"
    label = " and ".join(h.label for h in (*e.forward, *e.backward) if h.label)
    title = " and ".join(f.title for f in e.faults) + (f" ({label})" if label else "") + _passes(e)
    lines = [f"{' + '.join(f.id for f in e.faults)} {title}" + said(e, shown.situation)]
    spelled = [h.fault.formulas(shown.situation, h.label) for h in (*e.forward, *e.backward) if h.fault is not None]
    lines += [f"  computes {wrong_}; right is {right}" for wrong_, right in dict.fromkeys(spelled)]
    kind = max((f.kind for f in e.faults), key=KINDS.index)
    exact = "under it every element is within its bound: " if kind == "convention" else "it explains "
    lines.append(f"  {exact}{explained}")
    lines.append(f"  shows in {place}")
    if e.open:
        lines.append(f"  {', '.join(DISPLAY.get(n, n) for n in e.open)} stay unexplained")
    if coincide:
        lines.append(f"  {', '.join(coincide[:8])} explain{'s' * (len(coincide) == 1)} it as well on these inputs")
    if told:
        lines.append(f"  {told}")
    lines.append("  symattn explain " + e.faults[0].id)
    return Finding(tuple(f.id for f in e.faults), title, kind, explained, place, tuple(lines))


def share(o: Observed) -> float:
    """The share of the elements of failing tensors that are wrong: a place is best shown where it is small."""
    bad = [wrong(o.judged[n], o.base[n]) for n in o.failing if n in o.base]
    return sum(int(x.sum()) for x in bad) / max(1, sum(x.size for x in bad)) if any(x.any() for x in bad) else 2.0


def simplicity(o: Observed) -> int:
    """0 of ordinary inputs, 2 of extreme ones, 1 of all others: where a fault is best shown."""
    return 0 if o.case in PLAIN else 2 if o.case in EXTREME else 1


def _covers(e: Explanation, name: str) -> bool:
    return name not in e.open


def _passes(e: Explanation) -> str:
    """In which pass, where it is one of two."""
    if e.forward and not e.both and not e.backward and e.split:
        return ", in the forward pass alone"
    if not e.forward and e.backward and not all(h.fault.backward_only for h in e.backward if h.fault):
        return ", in the backward pass alone"
    return ""


def said(e: Explanation, situation: Situation) -> str:
    """What the definition says instead, of a fault that is a choice of one of its conventions."""
    words = situation.definition.conventions()
    found = [words[f.convention] for f in e.faults if f.convention in words]
    return f"; the definition says {' and '.join(dict.fromkeys(found))}" if found else ""


def _told_apart(found: Sequence[Explanation], cases: Sequence[Observed]) -> str | None:
    """Which input would tell the hypotheses apart that remain."""
    base = min((o for o in cases if o.failing), key=lambda o: o.work)
    definition, dtype = base.situation.definition, formats.get(base.situation.dtype).name
    pairs = [(a, b) for a, b in combinations(range(len(found)), 2)]
    open_, same = set(pairs), set(pairs)
    shown = []
    plain = definition.replace(heads=None, kv_heads=None) if definition.params == {} else definition
    for text in SEPARATING:
        shape = fitted(plain, Shape.parse(text))
        if not open_:
            break
        try:
            o = _asked(base, Reference(plain, fields_for(plain, shape, dtype, 0, INPUTS[0])))
            apart = {p for p in open_ if _differ(found[p[0]], found[p[1]], o)}
            same -= {p for p in same if p in apart or not _equal(found[p[0]], found[p[1]], o)}
        except SymattnError:
            continue
        if apart:
            shown.append(f"an input of {shape} (--shape)")
            open_ -= apart
    return "; ".join(_words(found, shown, open_, same))


def _words(
    found: Sequence[Explanation], shown: Sequence[str], open_: set[tuple[int, int]], same: set[tuple[int, int]]
) -> Iterator[str]:
    """What tells explanations apart, and which are one formula."""
    same &= open_
    if shown:
        yield f"{' and '.join(shown)} would tell {'them' if open_ == same else 'some of them'} apart"
    elif open_ != same:
        yield "the inputs that were tried tell them apart nowhere: they may be the same here"
    for a, b in sorted(same):
        yield " and ".join(" + ".join(f.id for f in found[k].faults) for k in (a, b)) + " are the same formula here"


def _asked(o: Observed, ref: Reference) -> Observed:
    s = o.situation
    return Observed(o.case, Situation(ref, s.arithmetic, None, s.with_lse), {}, ())


def _equal(a: Explanation, b: Explanation, o: Observed) -> bool:
    """Whether two explanations predict the same numbers on an input, but for the rounding of the predictions."""
    found = _both(a, b, o)
    if found is None:
        return False
    close = (np.isclose(p.value, found[1][n].value, rtol=SAME_TO, atol=SAME_TO, equal_nan=True) for n, p in found[0].items())
    return found[0].keys() == found[1].keys() and all(bool(x.all()) for x in close)


def _both(a: Explanation, b: Explanation, o: Observed) -> list[Predictions] | None:
    """What two explanations predict on an input; None where one cannot be asked there."""
    gradient = not (a.forward or b.forward)
    found = []
    for e in (a, b):
        hypotheses: tuple[Hypothesis, ...] = e.backward if gradient else e.forward
        alternative = together(hypotheses, o)
        if alternative is None:
            return None
        found.append(predictions(o.situation, alternative, forward=not gradient, backward=gradient, sharp=True))
    return found


def _differ(a: Explanation, b: Explanation, o: Observed) -> bool:
    """Whether two explanations predict something else on an input."""
    found = _both(a, b, o)
    if found is None:
        return False
    for name in found[0].keys() & found[1].keys():
        p, q = found[0][name], found[1][name]
        with np.errstate(all="ignore"):
            if bool((np.abs(p.value - q.value) > p.reach + q.reach).any()) or bool(
                (np.isnan(p.value) != np.isnan(q.value)).any()
            ):
                return True
    return False


def _pattern(cases: Sequence[Observed], again: Callable[[str, Shape], bool] | None, effort: Effort) -> Finding:
    """What can be said where nothing in the catalogue explains the kernel."""
    o = min((o for o in cases if o.failing), key=lambda o: (simplicity(o), round(2 * share(o))))
    seen = patterns(o)
    lines = ["no fault of the catalogue, and no pair that was tried, explains every element", f"  in case {o.case}:"]
    lines += [f"  {line}" for line in seen]
    if again is not None:
        lines += _shrunk(cases, o, again, effort)
    return Finding((), seen[0] if seen else lines[0], "pattern", "", f"{where(o)} of case {o.case}", tuple(lines))


def _shrunk(cases: Sequence[Observed], shown: Observed, again: Callable[[str, Shape], bool], effort: Effort) -> Iterator[str]:
    """The line on the smallest shape that fails: from the smallest case on whose sizes ``--shape`` fails too, where one does.

    Otherwise from the case that is shown, with inputs of its kind.
    """
    failing = sorted((o for o in cases if o.failing), key=lambda o: o.work)
    starts = {shape: o for o in reversed(failing) if (shape := _shape(o)) is not None}
    kind, asked = "shape", 0
    for start, o in [*reversed(starts.items())][:STARTS]:
        if not effort.take(rerun(o)):
            return
        asked += 1
        if again(kind, start):
            break
    else:
        kind, own = shown.case, _shape(shown)
        if own is None:
            return
        start, o = own, shown
    tries = min(float(TRIES - asked), effort.left // rerun(o))
    if tries < 1:
        return
    found = smallest_failing(start, lambda s: again(kind, s), tries)
    inputs = "" if kind == "shape" else f", with inputs as in {kind}"
    ending = "no size of it can be lowered alone" if found.complete else "the tries ran out"
    count = found.tried + (asked if kind == "shape" else 1)
    yield f"  the smallest of {count} shapes tried that still fails: --shape {found.shape}{inputs}; {ending}"


def _shape(o: Observed) -> Shape | None:
    s = o.situation.sizes
    if set(s) != {"B", "H", "HKV", "N", "M", "D", "DV"}:
        return None
    return Shape(s["B"], s["H"], s["HKV"], s["N"], s["M"], s["D"], s["DV"])
