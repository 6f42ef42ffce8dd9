"""Proving a theorem for a definition: the conditions are found out from its program, then every claim is decided."""

from __future__ import annotations

import time

from symattn.definition import Definition
from symattn.errors import NotDifferentiableError, NotStatedError, ProofError, SymattnError
from symattn.theorems.claim import OPEN, PROVED, REFUTED, TESTED, Claim, Counterexample, Decision
from symattn.theorems.subject import Subject
from symattn.theorems.theorem import NOT_APPLICABLE, Result, Theorem

__all__ = ["prove_theorem"]


def prove_theorem(theorem: Theorem, definition: Definition | None = None) -> Result:
    """What is found of ``theorem`` for ``definition``.

    Parameters
    ----------
    theorem
        A row.
    definition
        What it is asked of; the row's own by default.

    Returns
    -------
    Result
        Proved (every claim is); tested (what is not proved is cited and tested); not applicable (a condition does not hold; with
        a counterexample where the search finds one); refuted (the conditions hold and a claim fails); open.

    >>> from symattn.theorems.catalogue import get
    >>> prove_theorem(get("rows-sum-to-one"), Definition(softcap=20)).verdict
    'proved'
    """
    start = time.perf_counter()
    asked = theorem.definition() if definition is None else definition
    try:
        return _proved(theorem, asked, start)
    except SymattnError as why:  # a copy of the program with something changed cannot be written
        reason = f"its claim cannot be written for this program: {why}"
        return Result(theorem, asked, OPEN, reason=reason, seconds=time.perf_counter() - start)


def _proved(theorem: Theorem, asked: Definition, start: float) -> Result:
    subject = Subject(asked)

    def found(verdict: str, **more: object) -> Result:
        return Result(theorem, asked, verdict, seconds=time.perf_counter() - start, **more)  # type: ignore[arg-type]

    try:
        claims = theorem.claims(subject)
        failing = [c.text for c in theorem.needs if c.holds(subject) is False]
    except NotStatedError as why:
        return found(NOT_APPLICABLE, reason=str(why))
    except (NotDifferentiableError, ProofError) as why:
        return found(OPEN, reason=str(why))
    why_not = "; ".join(f"it does not hold that {t}" for t in failing)
    if failing:
        shown = _search(claims)
        if shown is not None:
            return found(NOT_APPLICABLE, reason=why_not, counterexample=shown)
    decisions: list[Decision] = []
    for claim in claims:
        decisions.append(claim.decide())
        if decisions[-1].verdict == REFUTED:
            return found(REFUTED, decisions=tuple(decisions), counterexample=decisions[-1].counterexample)
    if all(d.verdict == PROVED for d in decisions):
        return found(PROVED, decisions=tuple(decisions))
    if all(d.verdict in (PROVED, TESTED) for d in decisions):
        return found(TESTED, decisions=tuple(decisions))
    if failing:
        unproved = "; ".join(f"it is not proved that {text}" for text in failing)
        return found(NOT_APPLICABLE, reason=f"{unproved}; no counterexample at small sizes")
    unsettled = next(d for d in decisions if d.verdict == OPEN)
    return found(OPEN, decisions=tuple(decisions), reason=unsettled.method)


def _search(claims: tuple[Claim, ...]) -> Counterexample | None:
    return next((x for c in claims if (x := c.counterexample()) is not None), None)
