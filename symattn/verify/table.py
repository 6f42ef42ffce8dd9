"""The text of a report: of one kernel a line per case that passes and a table per other one, of many a line per case."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from symattn.arithmetic import Arithmetic
from symattn.verify.compare import significant
from symattn.verify.diagnosis.finding import Finding
from symattn.verify.properties.finding import NOT_APPLICABLE
from symattn.verify.report import DISPLAY, CaseReport, Report, TensorReport, short

WIDTH = 80
_COLORS = {"pass": "32", "known": "33", "suspect": "33", "inconclusive": "33", "fail": "31"}


def report_text(report: Report, *, color: bool = False, strict: bool = False, verbose: bool = False) -> str:
    """The text of a report.

    Parameters
    ----------
    report
        What to write.
    color
        Whether verdicts are coloured with ANSI codes.
    strict
        Whether what strict objects to is listed, and said beside the verdict.
    verbose
        Whether inputs that pass have a table of their own too; a single input always has one.
    """
    lines = _many(report, color) if report.kernel is None else _one(report, color, verbose or len(report.cases) == 1)
    lines += [line for w in report.warnings for line in _wrapped(f"warning: {w}")]
    lines += [line for d in report.diagnosis for line in _finding(d)]
    lines += [line for s in report.skipped for line in _wrapped(f"not run: {s}")]
    lines += _margins(report)
    lines += _properties(report)
    lines += _guard(report, strict)
    tail = f"  ({report.elapsed:.1f} s)" if report.seconds else ""
    said = report.said_by_strict() if strict else ""
    lines += ["", f"verdict: {_painted(report.verdict, color)}{said}{tail}", f"again:   {report.replay}"]
    return "\n".join(lines)


def _margins(report: Report) -> list[str]:
    """What is said beside pass and fail."""
    said = [] if report.margins is None else [line for m in report.margins.lines() for line in _wrapped(m)]
    return ["", *said] if said else []


def _properties(report: Report) -> list[str]:
    """A line for all properties that hold, one for each that does not."""
    tried = [p for p in report.properties if p.verdict != NOT_APPLICABLE]
    if not tried:
        return []
    held = [p.name for p in tried if p.verdict == "pass"]
    lines = ["", *_wrapped(f"properties: {len(held)} of {len(tried)} hold{': ' + ', '.join(held) if held else ''}")]
    for p in (p for p in tried if p.verdict != "pass"):
        said = p.verdict if p.counts else f"{p.verdict}, not counted"
        lines += _wrapped(f"  {p.name} {said}: {p.reason}", 4)
    return lines


def _guard(report: Report, strict: bool) -> list[str]:
    """What the run tells apart; under strict, and where nothing fails, a line for each fault that it does not."""
    line, warnings = strength(report, strict=strict)
    return ["", *_wrapped(line), *(x for w in warnings for x in _wrapped(f"warning: {w}"))] if line else []


def strength(report: Report, *, strict: bool = False) -> tuple[str, tuple[str, ...]]:
    """What the run tells apart, in a line, and the warnings that go with it; empty where that is unknown.

    The faults that it could not show are among the warnings under strict alone, and not of a run that fails: there they are no
    answer to anything.
    """
    guard = report.guard
    if guard is None or not (guard.known or guard.vacuous):
        return "", ()
    if not guard.hidden:
        return guard.line, guard.warnings
    failed = report.verdict == "fail"
    if strict and not failed:
        return guard.line, guard.warnings
    return f"{guard.brief}; {'the JSON document' if failed else '--strict'} lists the others", guard.vacuity


def _one(report: Report, color: bool, verbose: bool) -> list[str]:
    lines = [f"kernel      {report.kernel}"]
    lines += _wrapped(f"definition  {conventions_text(report.definition)}", 12)
    declared = {c.arithmetic.get("name"): c.arithmetic for c in report.cases if c.arithmetic} or {None: report.arithmetic}
    for a in declared.values():  # golden files may have several dtypes
        lines += _wrapped(f"arithmetic  {Arithmetic.from_dict(a).describe()}", 12)
    brief = [] if verbose else [c for c in report.cases if c.verdict == "pass" and not c.deviates]
    lines += _passing(brief, color)
    for case in (c for c in report.cases if not any(c is b for b in brief)):
        lines += ["", *_case(case, color)]
    return lines


def _passing(cases: Sequence[CaseReport], color: bool) -> list[str]:
    """A line for each case that passes: the tensor that comes nearest to its bound, and the sizes."""
    if not cases:
        return []
    judged = " ".join(dict.fromkeys(_label(t) for c in cases for t in c.tensors))
    dtypes = dict.fromkeys(c.dtype for c in cases)
    name = max(len(x) for x in ("input", *(c.case for c in cases))) + 2
    own = max(map(len, dtypes)) + 2 if len(dtypes) > 1 else 0
    lines = ["", *_wrapped(f"judged      {judged}, {' '.join(dtypes)}", 12)]
    lines.append(f"{'input':<{name}}{'dtype' if own else '':<{own}}{'verdict':<9}{'of bound':>8}  {'worst':<7}sizes")
    for c in cases:
        t = max(c.tensors, key=lambda t: t.comparison.max_share)
        share = f"{short(t.comparison.max_share):>8}  {_label(t):<6} {_sizes(c)}".rstrip()
        lines.append(f"{c.case:<{name}}{c.dtype if own else '':<{own}}{_painted(c.verdict, color, 9)}{share}")
    return lines


def _case(case: CaseReport, color: bool) -> list[str]:
    """A case with a line for every tensor, and its worst element."""
    lines = [_case_title(case)]
    if case.error:
        lines += _wrapped(f"  {_painted('known' if case.known else 'fail', color)}: {case.error}", 4)
        lines += _wrapped(f"  known: {case.known}", 4) if case.known else []
    if not case.tensors:
        return lines
    width = max(8, *(len(_label(t)) + 1 for t in case.tensors))
    lines.append(f"  {'tensor':<{width}}{'verdict':<14}{'max error':>10}{'ulps':>10}{'of bound':>10}{'failing':>14}")
    lines += [_row(t, color, width) for t in case.tensors]
    lines += [line for t in case.tensors for line in _worst(t)]
    lines += [line for t in case.tensors for line in _replayed(t)]
    lines += [line for t in case.tensors for said in _reasons(t) for line in _wrapped(f"  {_label(t)} {said}", 4)]
    return lines


def _many(report: Report, color: bool) -> list[str]:
    """A block per kernel, a line per case with the tensors that were judged."""
    lines: list[str] = []
    for kernel in dict.fromkeys(c.kernel for c in report.cases):
        lines += ([""] if lines else []) + [f"{kernel:<32}{'verdict':<13}{'of bound':>9}  tensors"]
        notes: dict[str, None] = {}
        for c in (c for c in report.cases if c.kernel == kernel):
            share = short(max((t.comparison.max_share for t in c.tensors), default=0.0))
            verdict = "known" if c.deviates and c.verdict == "pass" else c.verdict
            lines.append(f"  {c.case:<21}{c.dtype:<9}{_painted(verdict, color, 13)}{share:>9}  {_listed(c)}".rstrip())
            lines += _wrapped(f"    {c.error}", 4) if c.error else []
            for t in c.tensors:
                if t.verdict != "pass":
                    lines += [*_worst(t), *_replayed(t)]
                    notes |= {f"  {_label(t)} {said}": None for said in _reasons(t)}
        lines += [line for note in notes for line in _wrapped(note, 4)]
    return lines


def _listed(c: CaseReport) -> str:
    """The tensors that were judged; of gradients beyond dQ, dK, dV, where they are many, the number."""
    labels = [_label(t) for t in c.tensors]
    return " ".join(labels if len(labels) <= 6 else [*labels[:5], f"+{len(labels) - 5}"])


def _reasons(t: TensorReport) -> list[str]:
    """Why a tensor that is out of bounds is no failure."""
    kinds = {"known": t.known, "suspect": t.suspect}
    return [f"{kind}: {reason}" for kind, reason in kinds.items() if reason and t.comparison.verdict == "fail"]


def _case_title(case: CaseReport) -> str:
    return f"{case.case}  {case.dtype}  {_sizes(case)}"


def _sizes(case: CaseReport) -> str:
    return " ".join(f"{k}={v}" for k, v in case.shape.items())


def _row(t: TensorReport, color: bool, width: int) -> str:
    c = t.comparison
    verdict = "known" if t.counted != t.verdict else t.verdict
    open_ones = c.undecided + c.unbounded
    failing = f"{c.failing}+{open_ones}?/{c.total}" if open_ones else f"{c.failing}/{c.total}"
    numbers = f"{short(c.max_error):>10}{short(c.max_ulp):>10}{short(c.max_share):>10}{failing:>14}"
    return f"  {_label(t):<{width}}{_painted(verdict, color, 14)}{numbers}"


def _worst(t: TensorReport) -> list[str]:
    w = t.comparison.worst
    if w is None:
        return []
    at = ",".join(map(str, w.index))
    exact = f"exact {significant(w.exact, 20)}"
    return _wrapped(f"  {_label(t)}[{at}]: kernel {significant(w.kernel, 20)}, {exact}, bound {short(w.bound)}", 4)


def _replayed(t: TensorReport) -> list[str]:
    return [line for said in (t.replayed.lines(_label(t)) if t.replayed else []) for line in _wrapped(f"  {said}", 4)]


def _label(t: TensorReport) -> str:
    return DISPLAY.get(t.name, t.name)


def conventions_text(conventions: Mapping[str, str]) -> str:
    """The conventions of a definition in one line, those that it does not have left out.

    >>> conventions_text({"causal": "top-left: j <= i", "window": "none", "scale": "1/sqrt(d)"})
    'causal top-left: j <= i; scale 1/sqrt(d)'
    """
    return "; ".join(f"{name} {value}" for name, value in conventions.items() if value != "none")


def _painted(verdict: str, color: bool, width: int = 0) -> str:
    text = f"{verdict:<{width}}"
    return f"\x1b[{_COLORS[verdict]}m{text}\x1b[0m" if color else text


def _finding(d: Finding) -> list[str]:
    """A finding: its first line marked, the others below it."""
    first, *rest = d.text
    return ["", *_wrapped(f"diagnosis: {first}"), *(line for r in rest for line in _wrapped(r, 4))]


def _wrapped(text: str, indent: int = 2) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False) or [""]
