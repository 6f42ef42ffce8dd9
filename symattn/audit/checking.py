"""A claims file, audited: every printed number against the exact value, and against what the page's own numbers lead to."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.audit.claimsfile import Claim, Example
from symattn.audit.findings import Finding, Unread
from symattn.audit.printed import ROUNDED, Printed, Verdict, verdict
from symattn.audit.ranges import Box
from symattn.audit.values import Values, target
from symattn.errors import InputValueError, ShapeError, SymattnError, UnknownNameError

Array = npt.NDArray[Any]
MOST_VERSIONS = 8
OWN_NAME = 'Where a page has a name of its own, say what is printed: {of = "softmax(x)", printed = ...}.'


@dataclass(eq=False)
class Checked:
    """A claim with the quantity that it prints: its name, which part of it, and the findings."""

    claim: Claim
    base: str
    index: tuple[int | None, ...]
    findings: list[Finding]
    prefix: str = ""
    """Before the names of an example's numbers: ``ex1.``."""
    of_program: bool = True
    """Whether the quantity is a tensor of the program, and no input or expression."""


def check(example: Example, *, digits: int = 40) -> tuple[list[Checked], list[Unread]]:
    r"""The claims of one example with their findings, and the claims that cannot be judged, with the reason.

    Parameters
    ----------
    example
        A computation of a page.
    digits
        Significant digits of the exact values.

    >>> from symattn.audit.claimsfile import parse
    >>> page = parse(b'[inputs]\nscaled = ["0", "1"]\n[claims]\nweights = ["0.27", "0.75"]', "demo")
    >>> [(f.name, f.label) for c in check(page.examples[0])[0] for f in c.findings]
    [('weights[0]', 'rounded'), ('weights[1]', 'wrong')]
    """
    values = Values(example)
    done: list[Checked] = []
    unread: list[Unread] = []
    for claim in example.claims:
        try:
            done.append(_check(claim, values, done, digits, example.name))
        except SymattnError as why:
            own = isinstance(why, UnknownNameError) and claim.of == claim.name
            reason = f"{why} {OWN_NAME}" if own else str(why)
            unread.append(Unread(_full(example.name, claim.name), reason, f"claims.{claim.name}"))
    return done, unread


def _full(example: str, name: str) -> str:
    return f"{example}.{name}" if example else name


def _check(claim: Claim, values: Values, done: list[Checked], digits: int, example: str) -> Checked:
    base, index = values.resolve(claim.of, claim.name)
    if claim.of == claim.name and not values.is_tensor(base) and not values.is_expression(base):
        raise InputValueError(f"{base} is an input. {OWN_NAME}")
    index = _of_only_row(index, values.whole(base, {}).shape, claim.printed.shape)
    exact = fitted(values.part(base, index), claim)
    places = _places(values, base, index, claim)
    chain = _chain(claim, values, base, index, done)
    used = chain.used if chain else []
    hidden = values.hidden(base)
    mask = None if hidden is None else fitted(_part(hidden, index), claim)
    findings = []
    for place in np.ndindex(claim.printed.shape):
        p: Printed | None = claim.printed[place]  # type: ignore[assignment]  # an object array
        if p is None:
            continue
        value = -sp.oo if mask is not None and mask[place] and values.shows_mask(base, p) else exact[place]
        start = verdict(p, value, digits=digits)
        if start.wrong and values.rounded and value != -sp.oo:
            start = verdict(p, value, digits=digits, spread=values.spread(base, places[place], p))
        after = (
            None
            if chain is None or value == -sp.oo
            else chain.verdict(claim, place, places[place], p, digits, narrow=not start.correct)
        )
        name = _full(example, _name(claim, place))
        found = Finding(
            name, _full(example, claim.name), claim.of, start, after, tuple(_full(example, c.claim.name) for c in used)
        )
        findings.append(replace(found, carried=_carried(found, used)))
    return Checked(claim, base, index, findings, _full(example, ""), values.is_tensor(base))


class Chain:
    """What follows from the page's own printed numbers: from their digits, and to their rounding."""

    def __init__(self, values: Values, base: str, index: tuple[int | None, ...], used: list[Checked]) -> None:
        self.values, self.base, self.index, self.used = values, base, index, used
        self.printed, self.widths = _printed_of(used, values)
        self.box: Box | None = None

    @cached_property
    def exact(self) -> Array:
        """The part of the quantity that is printed, from the digits of earlier claims."""
        return self.values.part(self.base, self.index, self.printed)

    def verdict(
        self, claim: Claim, place: tuple[int, ...], whole: tuple[int, ...], p: Printed, digits: int, *, narrow: bool
    ) -> Verdict:
        """By the digits; where these do not bear a number out, and it matters, the intervals that they stand for may allow it."""
        value = fitted(self.exact, claim)[place]
        found = verdict(p, value, digits=digits)
        if (
            found.correct
            or not narrow
            or self.values.is_expression(self.base)
            or any(map(self.values.is_expression, self.printed))
        ):
            return found
        if self.box is None:
            self.box = Box(self.values.sheet, {b: (x, self.widths[b]) for b, x in self.printed.items()})
        spread = self.box.interval(self.base, whole)
        low, high = p.interval()
        if spread is not None and spread[0] <= high and spread[1] >= low:
            spread = self.box.sharpened(self.base, whole)
        return verdict(p, value, digits=digits, spread=spread)


def _places(values: Values, base: str, index: tuple[int | None, ...], claim: Claim) -> Any:
    """The place of every printed number in all of the quantity."""
    whole = values.part(base, ())
    every = np.empty(whole.shape, dtype=object)
    for place in np.ndindex(whole.shape):
        every[place] = place
    return fitted(_part(every, index), claim)


def _of_only_row(index: tuple[int | None, ...], shape: tuple[int, ...], printed: tuple[int, ...]) -> tuple[int | None, ...]:
    """Indices of a quantity; where it has one row only and a page counts in that row, the row is put before them."""
    if not index or len(shape) <= len(index) or shape[0] != 1:
        return index
    fits = all(k is None or -n <= k < n for k, n in zip(index, shape, strict=False))
    rest = [n for k, n in zip(index, shape, strict=False) if k is None] + list(shape[len(index) :])
    return index if fits and [n for n in rest if n != 1] == [n for n in printed if n != 1] else (0, *index)


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
    out = np.empty(np.zeros(x.shape)[target(index)].shape, dtype=object)
    if out.shape:
        out[...] = x[target(index)]
    else:
        out[()] = x[target(index)]
    return out


def _chain(claim: Claim, values: Values, base: str, index: tuple[int | None, ...], done: list[Checked]) -> Chain | None:
    """What follows from the nearest claims; of several versions of one quantity that which bears out most of the numbers."""
    chains = [Chain(values, base, index, used) for used in _versions(claim, values, base, done)]
    if len(chains) < 2:
        return chains[0] if chains else None

    def borne_out(chain: Chain) -> int:
        value = fitted(chain.exact, claim)
        shown = [(p, place) for place, p in np.ndenumerate(claim.printed) if p is not None]
        return sum(verdict(p, value[place], digits=6).correct for p, place in shown)

    return max(chains, key=borne_out)


def _versions(claim: Claim, values: Values, base: str, done: list[Checked]) -> list[list[Checked]]:
    """The nearest earlier claims whose printed numbers lead to a claim.

    Of a quantity that is printed more than once, one version each time, the last one first.
    """
    if claim.origin is not None:
        return [[c for c in done if c.claim.name in claim.origin]]
    near = values.nearest(base, {c.base for c in done if c.base != base})
    whole: dict[str, list[Checked]] = {}
    for c in done:
        if c.base in near and not c.index:
            whole.setdefault(c.base, []).insert(0, c)
    rows = [c for c in done if c.base in near and c.index]
    chosen = itertools.islice(itertools.product(*whole.values()), MOST_VERSIONS)
    found = [[c for c in done if c in rows or any(c is x for x in versions)] for versions in chosen]
    return [used for used in found if used]


def _printed_of(used: Iterable[Checked], values: Values) -> tuple[dict[str, Array], dict[str, Array]]:
    """The printed numbers of some claims as arrays of whole quantities, None where nothing is printed; and their half widths."""
    numbers: dict[str, Array] = {}
    widths: dict[str, Array] = {}
    for c in used:
        whole = values.part(c.base, ())
        if c.base not in numbers:
            numbers[c.base] = np.full(whole.shape, None, dtype=object)
            widths[c.base] = np.full(whole.shape, Fraction(0), dtype=object)
        shape = np.zeros(whole.shape)[target(c.index)].shape
        shown = [p if p is not None and p.kind != "infinity" else None for p in c.claim.printed.ravel().tolist()]
        for x, flat in (
            (numbers[c.base], [None if p is None else p.value for p in shown]),
            (widths[c.base], [Fraction(0) if p is None else p.half_width for p in shown]),
        ):
            part = np.empty(len(flat), dtype=object)
            part[:] = flat
            x[target(c.index)] = part.reshape(shape) if shape else part[0]
    return numbers, widths


def _carried(found: Finding, used: list[Checked]) -> str:
    """Where an error that follows from printed numbers comes from: the first that is not right, else the claim that is rounded.

    From the digits of right numbers an error may be carried by their rounding; from their intervals alone, which allow a misprint
    too, only where one of them is not right.
    """
    if not found.follows:
        return ""
    earlier = [f for c in used for f in c.findings]
    for f in earlier:
        if not f.verdict.correct:
            return f.carried or f.name
    return next((f.claim for f in earlier if f.verdict.status == ROUNDED), "") if found.carries else ""
