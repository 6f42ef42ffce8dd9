"""A claims file, audited: every number judged, what printed numbers show by themselves, and conventions that a page left out."""

from __future__ import annotations

from symattn.audit import conventions, structure
from symattn.audit.checking import check
from symattn.audit.claimsfile import ClaimsFile
from symattn.audit.findings import Alternative, Audit, Finding, Remark, Unread
from symattn.audit.values import unused
from symattn.errors import nearest

KNOWN = ("X", "Q", "K", "V", "W_Q", "W_K", "W_V", "W_O", "scores", "scaled", "weights", "d_k", "dO", "memory", "mask")
"""Inputs to suggest where nothing reads one."""


def audit(page: ClaimsFile, *, digits: int = 40) -> Audit:
    r"""Audit a claims file.

    Parameters
    ----------
    page
        As :func:`symattn.audit.claimsfile.load` or ``parse`` gives it.
    digits
        Significant digits of the exact values.

    Returns
    -------
    Audit
        A finding for every printed number in the order of the page, the first failing step, and what could not be read.

    >>> from symattn.audit.claimsfile import parse
    >>> page = parse(b'[inputs]\nscores = ["0", "4"]\nd_k = "4"\n[claims]\nweights = ["0.27", "0.73"]', "demo")
    >>> found = audit(page)
    >>> [f.label for f in found.findings], found.first, [a.title for a in found.alternatives]
    (['wrong', 'wrong'], 'weights[0]', ['a scale of 1/d or a scale of 1/4'])
    """
    findings: list[Finding] = []
    unread: list[Unread] = []
    remarks: list[Remark] = []
    alternatives: list[Alternative] = []
    notes: list[str] = []
    for example in page.examples:
        done, open_ = check(example, digits=digits)
        findings += [f for c in done for f in c.findings]
        unread += open_
        remarks += structure.remarks(example, done)
        alternatives += conventions.search(example, done)
        notes += _unread_inputs(unused(example))
    return Audit(
        page.title, tuple(findings), tuple(unread), tuple(remarks), tuple(alternatives), page.source, tuple(notes), asked=True
    )


def _unread_inputs(names: list[str]) -> list[str]:
    """Notes on inputs that nothing reads: those that look misspelt with what they may be, the rest in one line."""
    meant = {name: nearest(name, KNOWN) for name in names}
    misspelt = [name for name in names if meant[name].startswith("Did")]
    rest = [name for name in names if name not in misspelt]
    shown = ", ".join(rest[:8]) + (f" and {len(rest) - 8} more" if len(rest) > 8 else "")
    return [f"nothing reads the input {name!r}. {meant[name]}" for name in misspelt] + (
        [f"nothing reads {shown}"] if rest else []
    )
