"""A kernel that declares nothing, judged as another one than it is: the preset of the same dtype that holds what it returned.

It is what a reader should know first where no fault explains the kernel: it may be right, and has to say how it computes. It is
no excuse: the wider bound of another arithmetic holds small faults too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from symattn.arithmetic import PRESETS, Arithmetic, inside_float32
from symattn.errors import SymattnError
from symattn.intake import Array
from symattn.verify.diagnosis.explaining import explained, wrong
from symattn.verify.diagnosis.finding import Finding
from symattn.verify.diagnosis.patterns import where
from symattn.verify.faults.fault import SAME, Predictions, Situation
from symattn.verify.faults.predict import predictions
from symattn.verify.guard import trivial
from symattn.verify.observed import Observed

__all__ = ["with_preset"]

SHARE = 0.5
"""A bound from this share of the trivial one on says nothing."""
EXACT = ("convention", "mathematics")
"""Kinds of faults beside which no other arithmetic is worth a word."""
FLOAT32 = ("float16", "bfloat16")
ORDER = ("inside", "eager", "numpy")
"""What the names of presets begin with, in the order in which they are tried."""


def with_preset(seen: Sequence[Observed], findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings of a kernel that declares nothing, and the preset that holds every element of every tensor, if there is one.

    The preset comes first where no fault explains the kernel, and last where one of arithmetic does; it is left out where a
    convention or mathematics does, and where its bound is about the trivial one.

    Parameters
    ----------
    seen
        What the verdicts are about.
    findings
        Its diagnosis.
    """
    if any(f.named and f.kind in EXACT for f in findings):
        return tuple(findings)
    found = _fitting(seen) if any(o.failing for o in seen) else None
    if found is None or any(_vacuous(o, n, b) for o, b in zip(seen, found[1], strict=True) for n in o.failing):
        return tuple(findings)
    finding = _finding(found[0], seen)
    if any(f.named for f in findings):
        return (*findings, finding)
    own = seen[0].situation.arithmetic.name
    return (finding, *(replace(f, text=(f"if it is {own} all the same: {f.text[0]}", *f.text[1:])) for f in findings if f.text))


def _fitting(seen: Sequence[Observed]) -> tuple[Arithmetic, list[Predictions]] | None:
    """The first preset that holds every element of every case, and its bounds."""
    for a in _others(seen[0].situation.arithmetic):
        bounds = _bounds(seen, a)
        if bounds is not None:
            return a, bounds
    return None


def _others(own: Arithmetic) -> list[Arithmetic]:
    """The presets for inputs of the same format, measured ones left out: the tightest first, then what frameworks do."""
    inside = [inside_float32(own.input)] if own.input in FLOAT32 else []
    fit = [a for a in (*inside, *PRESETS.values()) if a.input == own.input and a.output == own.output and a != own]
    return sorted(fit, key=lambda a: next((k for k, x in enumerate(ORDER) if a.name.startswith(x)), len(ORDER)))


def _bounds(seen: Sequence[Observed], a: Arithmetic) -> list[Predictions] | None:
    """Value and reach of a correct kernel of an arithmetic; None as soon as an element lies outside."""
    found: dict[int, Predictions] = {}
    for k in sorted(range(len(seen)), key=lambda k: (not seen[k].failing, seen[k].work)):
        o, s = seen[k], seen[k].situation
        other = Situation(s.reference, a, s.saved if a.staged else None, s.with_lse)
        try:
            found[k] = predictions(other, SAME, forward=bool(o.part(False)), backward=bool(o.part(True)), sharp=True)
        except SymattnError:
            return None
        if not all(n in found[k] and bool(explained(x, found[k][n]).all()) for n, x in o.judged.items()):
            return None
    return [found[k] for k in range(len(seen))]


def _bad(o: Observed) -> list[tuple[str, Array]]:
    return [(n, wrong(o.judged[n], o.base[n])) for n in o.failing if n in o.base]


def _vacuous(o: Observed, name: str, bounds: Predictions) -> bool:
    """Whether the bound of most elements that fail is of the size of what any kernel could be off by.

    That is the distance to the farthest value for the output, 1 (a factor e of the sum) for the log-sum-exp, and the size of the
    largest element of a gradient.
    """
    bad = dict(_bad(o)).get(name)
    if bad is None or not bad.any():
        return False
    most = trivial(o) if name == "out" else None
    if most is None:
        size = 1.0 if name == "lse" else float(np.max(np.abs(np.nan_to_num(o.base[name].value)), initial=0.0))
        most = np.full(bad.shape, size)
    with np.errstate(all="ignore"):
        return bool(np.mean(bounds[name].reach[bad] < SHARE * most[bad]) < 0.5)


def _finding(a: Arithmetic, seen: Sequence[Observed]) -> Finding:
    shown = max((o for o in seen if o.failing), key=lambda o: len(o.failing))
    preset = a.name in PRESETS
    how = f"--arithmetic {a.name}" if preset else "everything in float32, inputs and outputs in another format"
    title = f"within every bound of {a.name}: declare it ({how})"
    place = f"{where(shown)} of case {shown.case}"
    text = (
        title,
        f"  the kernel does not say how it computes and was judged as {shown.situation.arithmetic.name}",
        f"  out of the bound of that in {place}",
    )
    return Finding((), title, "arithmetic", f"every element in {len(seen)} case{'s' * (len(seen) != 1)}", place, text)
