"""What the written forms of an audit share: the right digits, errors in words, and findings gathered by what they are about."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from symattn.audit.exactness import decimal
from symattn.audit.findings import Audit, Finding
from symattn.audit.printed import Verdict

_DECIMAL = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d{1,5})?")
GOOD, OPEN, BAD, CARRIED = "right", "open", "wrong", "carried"
_CLASS = {
    "exact": GOOD, "rounded": GOOD, "float32_noise": OPEN, "truncated": OPEN, "last_digit": OPEN, "within_input_rounding": OPEN,
    "undecided": OPEN, "wrong": BAD,
}  # fmt: skip


def kind(f: Finding) -> str:
    """How a finding is shown: ``right``, ``open`` (off in the last digits, or not decidable), ``carried`` or ``wrong``."""
    if f.carried and not f.verdict.correct:
        return CARRIED
    return _CLASS[f.verdict.status]


def right_digits(v: Verdict) -> str:
    """What a page should have printed: the exact value, rounded to the printed places; more digits where that shows nothing.

    >>> from symattn.audit.printed import verdict
    >>> right_digits(verdict("0.1908", Fraction(19061, 100000))), right_digits(verdict("11", Fraction(21, 2)))
    ('0.1906', '10.5')
    """
    if v.error is None:
        return v.exact
    p = v.printed
    shown = _rounded(v.exact, p.decimals)
    same = shown is not None and Fraction(shown) == p.value
    if p.kind in ("integer", "fraction", "array") or same or shown is None:
        return short(v.exact, max(6, p.digits + 2))
    return shown


def _rounded(exact: str, decimals: int) -> str | None:
    """A decimal text rounded to some places; None where it is written with an exponent."""
    if not _DECIMAL.fullmatch(exact) or "e" in exact or decimals < 0 or decimals > 40:
        return None
    n = round(Fraction(exact) * 10**decimals)
    sign, text = "-" if n < 0 else "", str(abs(n)).rjust(decimals + 1, "0")
    return sign + (f"{text[:-decimals]}.{text[-decimals:]}" if decimals else text)


def short(exact: str, digits: int) -> str:
    """A decimal text with fewer digits; what is no number is left as it is."""
    return decimal(Fraction(exact), digits) if _DECIMAL.fullmatch(exact) else exact


def units(f: Finding) -> str:
    """The error in units of the last printed place; nothing where it is none or is said better otherwise."""
    error = f.verdict.error
    if error is None or error == 0 or f.verdict.printed.kind in ("integer", "fraction"):
        return ""
    return f"{decimal(error, 3)} units of the last place"


@dataclass(frozen=True)
class Group:
    """Findings about one thing in one place."""

    place: str
    claim: str
    findings: tuple[Finding, ...]


def groups(findings: Iterable[Finding]) -> list[Group]:
    """The findings gathered by place and claim, in order."""
    out: dict[tuple[str, str], list[Finding]] = {}
    for f in findings:
        out.setdefault((f.place, f.claim), []).append(f)
    return [Group(place, claim, tuple(fs)) for (place, claim), fs in out.items()]


def headline(audit: Audit) -> str:
    """The audit in a line."""
    n = len(audit.findings)
    left = audit.unchecked or (len(audit.unread) if audit.asked else 0)
    if not n and left and not audit.held:
        return (
            f"{plain(audit.title)}: none of the printed numbers could be checked ({left} place{'s' if left != 1 else ''} listed)"
        )
    if not n:
        held = f", {audit.held} equalities of formulas hold" if audit.held else ": nothing to check"
        return f"{plain(audit.title)}: no printed number is the result of a formula{held}"
    wrong = sum(f.verdict.wrong for f in audit.findings)
    carried = sum(f.verdict.wrong and kind(f) == CARRIED for f in audit.findings)
    open_ = sum(not f.verdict.wrong and not f.verdict.correct for f in audit.findings)
    parts = [f"{wrong} wrong" if wrong else "nothing wrong"]
    parts[0] += f" ({carried} of them carried from an earlier step)" if carried else ""
    parts += [f"{open_} off in the last digits or not decidable"] if open_ else []
    parts += [f"{left} place{'s' if left != 1 else ''} with numbers not checked"] if left else []
    return f"{plain(audit.title)}: {n} printed number{'s' if n != 1 else ''} checked, {', '.join(parts)}"


def first_step(audit: Audit) -> str:
    """The first failing step in words; nothing where nothing fails."""
    f = next((f for f in audit.findings if f.name == audit.first), None)
    if f is None:
        return plain(audit.first)
    where = f"line {f.place}, " if f.place.isdigit() else ""
    digits = ", rounded; what takes it for exact is off" if f.verdict.correct else f", right: {right_digits(f.verdict)}"
    return f"{where}{plain(f.claim)}: {plain(str(f.verdict.printed))} printed{digits}"


def counted(audit: Audit) -> str:
    """How many numbers have each status, the most frequent first."""
    rows = sorted(audit.counts.items(), key=lambda x: -x[1])
    return ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in rows)


def plain(text: str) -> str:
    """The text with control characters shown as code points, so that a page can say nothing to a terminal."""
    return "".join(f"[U+{ord(c):04X}]" if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") else c for c in text)


def listed(items: Sequence[str], most: int) -> tuple[list[str], int]:
    """The first items, and how many are left."""
    return list(items[:most]), max(0, len(items) - most)


def name_of(audit: Audit, name: str) -> str:
    """A finding's name as a reader finds it: its line, or the name of the claim."""
    f = next((f for f in audit.findings if f.name == name), None)
    if f is None or not f.place.isdigit():
        return plain(name)
    return f"{plain(str(f.verdict.printed))} in line {f.place}"
