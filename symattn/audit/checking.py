"""A claims file, audited: every printed number against the exact value, and against what the page's own numbers lead to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.audit.claimsfile import Claim, ClaimsFile, Example
from symattn.audit.findings import Audit, Finding, Unread
from symattn.audit.printed import ROUNDED, Printed, verdict
from symattn.audit.values import Values
from symattn.errors import ShapeError, SymattnError

Array = npt.NDArray[Any]


@dataclass
class Checked:
    """A claim with the quantity that it prints: its name, which part of it, and the findings."""

    claim: Claim
    base: str
    index: tuple[int | None, ...]
    findings: list[Finding]


def audit(page: ClaimsFile, *, digits: int = 40) -> Audit:
    r"""Audit a claims file.

    Parameters
    ----------
    page
        As :func:`symattn.audit.claimsfile.load` gives it.
    digits
        Significant digits of the exact values.

    >>> from symattn.audit.claimsfile import parse
    >>> page = parse(b'[inputs]\nscaled = ["0", "1"]\n[claims]\nweights = ["0.27", "0.75"]', "demo")
    >>> [(f.name, f.label) for f in audit(page).findings]
    [('weights[0]', 'rounded'), ('weights[1]', 'wrong')]
    """
    findings: list[Finding] = []
    unread: list[Unread] = []
    for example in page.examples:
        found, open_ = check(example, digits=digits)
        findings += found
        unread += open_
    return Audit(page.title, tuple(findings), tuple(unread), source=page.source)


def check(example: Example, *, digits: int = 40) -> tuple[list[Finding], list[Unread]]:
    """The findings of one example, and the claims that cannot be judged, with the reason."""
    values = Values(example)
    done: list[Checked] = []
    unread: list[Unread] = []
    for claim in example.claims:
        try:
            done.append(_check(claim, values, done, digits, example.name))
        except SymattnError as why:
            unread.append(Unread(_full(example.name, claim.name), str(why), f"claims.{claim.name}"))
    return [f for c in done for f in c.findings], unread


def _full(example: str, name: str) -> str:
    return f"{example}.{name}" if example else name


def _check(claim: Claim, values: Values, done: list[Checked], digits: int, example: str) -> Checked:
    base, index = values.resolve(claim.of, claim.name)
    exact = fitted(values.part(base, index), claim)
    used = _used(claim, values, base, done)
    printed = _printed_of(used, values)
    chained = fitted(values.part(base, index, printed), claim) if used else None
    hidden = values.hidden(base)
    mask = None if hidden is None else fitted(_part(hidden, index), claim)
    findings = []
    for place in np.ndindex(claim.printed.shape):
        p: Printed | None = claim.printed[place]  # type: ignore[assignment]  # an object array
        if p is None:
            continue
        value = -sp.oo if mask is not None and mask[place] and values.shows_mask(base, p) else exact[place]
        start = verdict(p, value, digits=digits, spread=values.spread(base, index, claim.printed.shape, place, p, value))
        after = None if chained is None or value == -sp.oo else verdict(p, chained[place], digits=digits)
        name = _full(example, _name(claim, place))
        found = Finding(
            name, _full(example, claim.name), claim.of, start, after, tuple(_full(example, c.claim.name) for c in used)
        )
        findings.append(replace(found, carried=_carried(found, used)) if found.follows else found)
    return Checked(claim, base, index, findings)


def _name(claim: Claim, place: tuple[int, ...]) -> str:
    """The name of one number of a claim: ``weights[0,1]``; a claim ``weights[0]`` of a row has ``weights[0,1]`` too."""
    if not place:
        return claim.name
    own = ",".join(map(str, place))
    return f"{claim.name[:-1]},{own}]" if claim.name == claim.of and claim.name.endswith("]") else f"{claim.name}[{own}]"


def fitted(value: Array, claim: Claim) -> Array:
    """The value in the shape of what is printed: axes of length 1 may be left out.

    Raises
    ------
    ShapeError
        When the shapes do not fit.
    """
    want = claim.printed.shape
    if value.shape == want:
        return value
    if tuple(n for n in value.shape if n != 1) == tuple(n for n in want if n != 1):
        return value.reshape(want)
    raise ShapeError(f"{claim.of} has the shape {value.shape}, and {want} is printed")


def _part(x: Array, index: tuple[int | None, ...]) -> Array:
    return np.asarray(x[tuple(slice(None) if k is None else k for k in index)], dtype=object)


def _used(claim: Claim, values: Values, base: str, done: list[Checked]) -> list[Checked]:
    """The earlier claims whose printed numbers lead to this one, nearest ones only."""
    if claim.origin is not None:
        return [c for c in done if c.claim.name in claim.origin]
    near = values.nearest(base, {c.base for c in done if c.base != base})
    last = {c.base: c for c in done if c.base in near}
    return [c for c in done if c.base in near and (c.index or c is last[c.base])]


def _printed_of(used: Iterable[Checked], values: Values) -> dict[str, Array]:
    """The printed numbers of some claims as arrays of whole quantities, None where nothing is printed."""
    out: dict[str, Array] = {}
    for c in used:
        whole = values.part(c.base, ())
        if c.base not in out:
            out[c.base] = np.full(whole.shape, None, dtype=object)
        numbers = np.empty(c.claim.printed.shape, dtype=object)
        for place in np.ndindex(numbers.shape):
            p: Printed | None = c.claim.printed[place]  # type: ignore[assignment]  # an object array
            numbers[place] = None if p is None or p.kind == "infinity" else p.value
        target = tuple(slice(None) if k is None else k for k in c.index)
        shape = np.zeros(whole.shape)[target].shape
        out[c.base][target] = numbers.reshape(shape) if shape else numbers.ravel()[0]
    return out


def _carried(found: Finding, used: list[Checked]) -> str:
    """Where an error that follows from printed numbers comes from: the first that is not right, else the rounded claim."""
    earlier = [f for c in used for f in c.findings]
    for f in earlier:
        if not f.verdict.correct:
            return f.carried or f.name
    return next((f.claim for f in earlier if f.verdict.status == ROUNDED), "")
