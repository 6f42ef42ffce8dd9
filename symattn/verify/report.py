"""What `symattn verify` answers: one value object, written as text for a terminal of 80 columns or as one JSON document."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from symattn.formats import Exact
from symattn.intake import Array
from symattn.verify.compare import Comparison, significant
from symattn.verify.diagnosis.finding import Finding
from symattn.verify.evidence import Evidence
from symattn.verify.properties.finding import PropertyReport
from symattn.verify.replay.replayed import Replayed

if TYPE_CHECKING:
    from symattn.verify.guard import Guard
    from symattn.verify.margins import Margins

VERDICTS = ("pass", "suspect", "inconclusive", "fail")
"""From best to worst; a report's verdict is the worst of its parts."""

DISPLAY = {
    "out": "O",
    "lse": "LSE",
    "grad_query": "dQ",
    "grad_key": "dK",
    "grad_value": "dV",
    "grad_attn_mask": "dMask",
    "grad_bias": "dBias",
    "grad_sinks": "dSink",
    "grad_alibi_slopes": "dSlope",
}
"""What tensors are called in tables, by the name of their field."""


def worst_of(verdicts: Iterable[str]) -> str:
    """The worst of some verdicts; ``"pass"`` of none.

    >>> worst_of(["pass", "fail", "inconclusive"])
    'fail'
    """
    return max(verdicts, key=VERDICTS.index, default="pass")


@dataclass(frozen=True)
class TensorReport:
    """The verdict on one tensor.

    ``known`` is the reason of a known deviation, ``suspect`` why what is out of bounds proves no fault: neither counts as a
    failure unless strict. ``evidence`` has the elements, where a run keeps them. ``replayed`` is what a replay of the cast of the
    weights says: an element outside of it fails too.
    """

    name: str
    comparison: Comparison
    known: str | None = None
    staged: bool = False
    suspect: str | None = None
    evidence: Evidence | None = field(default=None, compare=False, repr=False)
    replayed: Replayed | None = None

    @property
    def only_nan(self) -> bool:
        """Whether all that is wrong is NaN."""
        outside = self.replayed.failing if self.replayed else 0
        return 0 < self.comparison.failing == self.comparison.nan and outside <= self.comparison.nan

    @property
    def verdict(self) -> str:
        """Pass, suspect, inconclusive or fail, known deviations included."""
        outside = self.replayed is not None and self.replayed.failing > 0
        found = "fail" if outside else self.comparison.verdict
        return "suspect" if self.suspect and found == "fail" else found

    @property
    def counted(self) -> str:
        """The verdict as it counts: a known deviation passes."""
        return "pass" if self.known and self.verdict == "fail" else self.verdict

    def to_dict(self) -> dict[str, Any]:
        """The entry of the JSON document; numbers are text."""
        c = self.comparison
        entry: dict[str, Any] = {
            "verdict": self.verdict,
            "max_error": significant(c.max_error, 5),
            "max_ulp": significant(c.max_ulp, 5),
            "max_share_of_bound": significant(c.max_share, 5),
            "failing": c.failing,
            "undecided": c.undecided,
            "unbounded": c.unbounded,
            "total": c.total,
            "worst": None,
            "staged": self.staged,
        }
        if c.worst is not None:
            entry["worst"] = {
                "index": list(c.worst.index),
                "kernel": significant(c.worst.kernel, 20),
                "exact": significant(c.worst.exact, 20),
                "bound": significant(c.worst.bound, 5),
            }
        if self.known:
            entry["known"] = self.known
        if self.suspect:
            entry["suspect"] = self.suspect
        if self.replayed:
            entry["replayed"] = self.replayed.to_dict()
        return entry


@dataclass(frozen=True)
class CaseReport:
    """One input judged: its name, the sizes, a verdict per tensor; and the reason why the kernel gave no more to judge.

    ``inputs`` has the arrays by field name, where a run keeps them.
    """

    case: str
    kernel: str
    dtype: str
    shape: dict[str, int]
    definition: dict[str, Any]
    arithmetic: dict[str, Any]
    tensors: tuple[TensorReport, ...] = ()
    error: str | None = None
    known: str | None = None
    inputs: Mapping[str, Array] | None = field(default=None, compare=False, repr=False)

    @property
    def verdict(self) -> str:
        """The worst of its tensors, known deviations left out; fail where the kernel raised."""
        if self.error and not self.known:
            return "fail"
        return worst_of(t.counted for t in self.tensors)

    @property
    def deviates(self) -> bool:
        """Whether a known deviation shows here."""
        return bool(self.error and self.known) or any(t.counted != t.verdict for t in self.tensors)

    def to_dict(self) -> dict[str, Any]:
        """The entry of the JSON document."""
        entry: dict[str, Any] = {
            "case": self.case,
            "kernel": self.kernel,
            "dtype": self.dtype,
            "shape": self.shape,
            "verdict": self.verdict,
            "definition": self.definition,
            "arithmetic": self.arithmetic,
            "tensors": {t.name: t.to_dict() for t in self.tensors},
        }
        if self.error:
            entry["error"] = self.error
        if self.known:
            entry["known"] = self.known
        return entry


@dataclass(frozen=True)
class Report:
    """A whole run.

    Parameters
    ----------
    kernel
        What was judged; None for the default set of all kernels.
    definition, arithmetic
        What the kernel was judged by, as plain data; of the default set, which has many, an empty mapping: each case has its own.
    cases
        One per input.
    diagnosis
        What explains a kernel that is out of bounds.
    warnings
        Lines of text.
    replay
        The command line that runs the same again.
    skipped
        Kernels that could not be judged here, with the reason.
    error, ended
        Of a run that ended in an error: its text, and the verdict that it comes to (``"error"`` for an internal one).
    properties
        What was found of properties that need no exact value.
    strength
        What works out :attr:`guard`, when that is asked for.
    unguarded
        Whether the guard was left out.
    margins
        What is said beside pass and fail: what a bound is made of, what would conform, what would have shown, what is suspect.
    """

    kernel: str | None
    definition: dict[str, Any]
    arithmetic: dict[str, Any]
    cases: tuple[CaseReport, ...]
    replay: str
    diagnosis: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)
    error: str | None = None
    ended: str = "fail"
    properties: tuple[PropertyReport, ...] = ()
    strength: Callable[[], Guard] | None = field(default=None, compare=False, repr=False)
    margins: Margins | None = field(default=None, compare=False, repr=False)
    unguarded: bool = False

    @cached_property
    def _guarded(self) -> tuple[Guard | None, float]:
        started = time.perf_counter()
        return None if self.strength is None else self.strength(), time.perf_counter() - started

    @property
    def guard(self) -> Guard | None:
        """Which known faults the run could not have shown; None where left out, over all kernels, and of golden files."""
        return self._guarded[0]

    @property
    def elapsed(self) -> float:
        """The seconds that the run took, those of the guard included where it was worked out."""
        return self.seconds + (self._guarded[1] if "_guarded" in self.__dict__ else 0.0)

    @property
    def verdict(self) -> str:
        """``"pass"``, ``"suspect"``, ``"inconclusive"`` or ``"fail"``; of a run that ended in an error what it ended in."""
        if self.error is not None:
            return self.ended
        estimated = ["suspect"] if self.margins is not None and self.margins.suspicions else []
        return worst_of((*(c.verdict for c in self.cases), *(p.counted for p in self.properties), *estimated))

    @property
    def max_share_of_bound(self) -> str:
        """The greatest error as a share of its bound over all tensors, as text; known deviations and suspects left out."""
        counted = (t.comparison.max_share for c in self.cases for t in c.tensors if not (t.known or t.suspect))
        return significant(max(counted, default=Fraction(0)), 5)

    def exit_code(self, *, strict: bool = False) -> int:
        """0 all right (suspect included), 1 a check failed, 3 inconclusive.

        Strict: 1 also for suspect results, for known deviations, and for a run that could not have shown a known fault.
        """
        if self.verdict == "error":
            return 70
        if self.verdict == "fail" or (strict and self.objections):
            return 1
        return 3 if self.verdict == "inconclusive" else 0

    @cached_property
    def objections(self) -> tuple[str, ...]:
        """Why strict ends with exit code 1, in a few words each: what is suspect or deviates, and what could not show."""
        found = ["suspect results"] if self.verdict == "suspect" else []
        deviating = dict.fromkeys(c.case for c in self.cases if c.deviates)
        found += [f"known deviations on {', '.join(deviating)}"] if deviating else []
        return (*found, *(self.guard.objections if self.guard is not None else ()))

    def said_by_strict(self) -> str:
        """What strict adds to the verdict, as text after it; empty where it adds nothing.

        >>> Report("k", {}, {}, (), "", unguarded=True).said_by_strict()
        '; --strict: which known faults could show was not asked (--no-guard)'
        """
        left_out = ("which known faults could show was not asked (--no-guard)",) if self.unguarded else ()
        if self.verdict in ("fail", "error"):
            return ""
        if self.objections:
            return f", but --strict: {'; '.join((*self.objections, *left_out))}"
        return f"; --strict: {left_out[0]}" if left_out else ""

    def __bool__(self) -> bool:
        """Whether the verdict is pass or suspect: the exit code is 0."""
        return self.exit_code() == 0

    def to_dict(self, *, strict: bool = False) -> dict[str, Any]:
        """The JSON document as plain data; strict says in an entry ``strict`` what it comes to and why."""
        return {
            "verdict": self.verdict,
            **(self._strict() if strict else {}),
            **({} if self.error is None else {"error": self.error}),
            "kernel": self.kernel,
            "definition": self.definition,
            "arithmetic": self.arithmetic,
            "cases": [c.to_dict() for c in self.cases],
            "diagnosis": [f.to_dict() for f in self.diagnosis],
            "warnings": list(self.warnings),
            "properties": [p.to_dict() for p in self.properties],
            "guard": None if self.guard is None else self.guard.to_dict(),
            **({} if self.margins is None else self.margins.to_dict()),
            "skipped": list(self.skipped),
            "replay": self.replay,
        }

    def _strict(self) -> dict[str, Any]:
        said = self.said_by_strict().partition("--strict: ")[2]
        return {"strict": {"exit_code": self.exit_code(strict=True), "reason": said}}

    def to_json(self, *, strict: bool = False) -> str:
        """One JSON document; numbers are text, since NaN and infinities are no JSON. What UTF-8 cannot hold is escaped."""
        text = json.dumps(self.to_dict(strict=strict), indent=2, ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8", "backslashreplace").decode()  # a lone surrogate becomes an escape of JSON

    def to_text(self, *, color: bool = False, strict: bool = False, verbose: bool = False) -> str:
        """The answer for a reader, lines of at most 80 columns where names allow it; strict says what it objects to.

        Inputs that pass have a line each where there are several, and a table of their tensors where it is ``verbose``.
        """
        from symattn.verify.table import report_text

        return report_text(self, color=color, strict=strict, verbose=verbose)

    def __str__(self) -> str:
        return self.to_text()


def short(x: Exact) -> str:
    """A number in four characters or so, for tables.

    >>> short(Fraction(1, 3)), short(Fraction(0)), short(Fraction(123456)), short(Fraction(1, 10**9))
    ('0.333', '0', '1.23e+05', '1e-09')
    """
    return f"{float(x):.3g}" if not isinstance(x, Fraction) or abs(x) < 10**300 else significant(x, 3)
