"""What an audit says: a finding for every printed number, and for the page the first failing step and what follows from it.

A finding has two verdicts: by the exact value from the inputs on, and by what follows from the page's own printed intermediates
(*chained*). A number that is wrong from the start and right from the page follows from printed inputs only: it is carried from
an earlier step and no error of its own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from symattn.audit.exactness import decimal
from symattn.audit.printed import UNDECIDED, WITHIN, Verdict, label

OK, WRONG_EXIT, OPEN_EXIT = 0, 1, 3
_VERDICTS = {OK: "nothing wrong", WRONG_EXIT: "wrong", OPEN_EXIT: "undecided"}


@dataclass(frozen=True)
class Finding:
    """A printed number and what is said of it.

    Parameters
    ----------
    name
        Of the number on the page: ``output[0,1]``, or an equation and its place.
    claim
        The name of the claim that it belongs to: ``output``.
    formula
        The quantity or expression that is printed.
    verdict
        By the exact value, from the inputs on.
    chained
        By the value that follows from printed intermediates; None where there are none.
    origin
        The claims that these intermediates are.
    carried
        The name of the earlier number or claim that this one is carried from, where its error is not its own.
    place
        Where it stands: a line number, or nothing.
    note
        What else there is to say: why this number is taken for the misprint.
    """

    name: str
    claim: str
    formula: str
    verdict: Verdict
    chained: Verdict | None = None
    origin: tuple[str, ...] = ()
    carried: str = ""
    place: str = ""
    note: str = ""

    @property
    def label(self) -> str:
        """The verdict in words."""
        if self.carried and self.follows == "rounding":
            return "follows from printed inputs, to their rounding"
        return label(self.verdict, self.chained)

    @property
    def carries(self) -> bool:
        """Whether the number is right from the digits of the page's intermediates, and not from the start."""
        return not self.verdict.correct and self.chained is not None and self.chained.correct

    @property
    def follows(self) -> str:
        """How a number that is not right from the start follows from printed ones: ``digits``, ``rounding``, or not at all."""
        if self.verdict.correct or self.chained is None or not self.chained.allowed:
            return ""
        return "digits" if self.chained.correct else "rounding"

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it, numbers as text."""
        v, c = self.verdict, self.chained
        out: dict[str, Any] = {
            "name": self.name,
            "claim": self.claim,
            "formula": self.formula,
            "printed": str(v.printed),
            "status": v.status,
            "correct": v.correct,
            "label": self.label,
            "exact": v.exact,
            "error_in_last_printed_place": None if v.error is None else decimal(v.error, 4),
        }
        if c is not None:
            out["from_printed"] = {
                "exact": c.exact,
                "status": c.status,
                "consistent": c.correct,
                "allowed": c.allowed,
                "claims": list(self.origin),
            }
        if self.carried:
            out["carried_from"] = self.carried
        if self.place:
            out["place"] = self.place
        if self.note:
            out["note"] = self.note
        return out


@dataclass(frozen=True)
class Unread:
    """What could not be checked, and why; ``place`` is a line or a key."""

    name: str
    reason: str
    place: str = ""


@dataclass(frozen=True)
class Remark:
    """Something that the printed numbers show by themselves, without a recomputation: ``rule`` says which rule they break."""

    rule: str
    text: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Alternative:
    """A convention that the page does not state and under which printed digits hold that are wrong as stated.

    Parameters
    ----------
    title
        The convention, in words.
    claims
        The claims that hold under it, all their digits.
    numbers
        How many printed numbers these are.
    everything
        Whether every claim of the page holds.
    """

    title: str
    claims: tuple[str, ...]
    numbers: int
    everything: bool

    def __str__(self) -> str:
        whole = "" if self.everything else "; other numbers stay wrong"
        which = ", ".join(self.claims[:4]) + (f" and {len(self.claims) - 4} more" if len(self.claims) > 4 else "")
        return f"all {self.numbers} numbers of {which} follow with {self.title}, which the page does not state{whole}"


@dataclass(frozen=True)
class Audit:
    """The findings of a page, in its order, and what could not be read."""

    title: str
    findings: tuple[Finding, ...] = ()
    unread: tuple[Unread, ...] = ()
    remarks: tuple[Remark, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    source: str = ""
    notes: tuple[str, ...] = field(default=())
    asked: bool = False
    """Whether every number was asked for by name, as in a claims file: one that cannot be judged is then open."""

    unchecked: int = 0
    """Of an article, the places with numbers that were not checked."""
    held: int = 0
    """Of an article, the equalities and inequalities between formulas that hold."""

    @property
    def counts(self) -> dict[str, int]:
        """How many numbers have each status."""
        return dict(Counter(f.verdict.status for f in self.findings))

    @property
    def first(self) -> str:
        """The name of the first failing step: the first wrong number, or the earlier one that it is carried from; else empty."""
        wrong = next((f for f in self.findings if f.verdict.wrong), None)
        return "" if wrong is None else wrong.carried or wrong.name

    @property
    def exit_code(self) -> int:
        """1 where something is wrong; 3 where something is open, or no number could be checked; 0 otherwise."""
        if any(f.verdict.wrong for f in self.findings):
            return WRONG_EXIT
        open_ = any(f.verdict.status in (WITHIN, UNDECIDED) for f in self.findings)
        nothing = self.unchecked and not self.findings and not self.held
        return OPEN_EXIT if open_ or nothing or (self.unread and self.asked) else OK

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it, numbers as text."""
        return {
            "title": self.title,
            "source": self.source,
            "verdict": _VERDICTS[self.exit_code],
            "counts": self.counts,
            "first_failing_step": self.first,
            "findings": [f.to_dict() for f in self.findings],
            "unread": [{"name": u.name, "place": u.place, "reason": u.reason} for u in self.unread],
            "remarks": [{"rule": r.rule, "text": r.text, "names": list(r.names)} for r in self.remarks],
            "alternatives": [
                {"title": a.title, "claims": list(a.claims), "numbers": a.numbers, "everything": a.everything}
                for a in self.alternatives
            ],
            "notes": list(self.notes),
        }
