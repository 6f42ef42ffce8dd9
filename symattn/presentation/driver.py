"""The presentation of a derived list: rules are applied until none proposes anything, every rewriting proved or checked."""

from __future__ import annotations

from collections.abc import Sequence

from symattn.errors import ProgramError
from symattn.presentation.listing import Listing
from symattn.presentation.presented import DROPPED, Presented, Step
from symattn.presentation.proof import changed_names, verdict
from symattn.presentation.rules import REFOLD, RULES, Rule
from symattn.program import Program, Statement

__all__ = ["apply_rules", "present", "refold"]


def present(program: Program, gradient: Program, rules: Sequence[Rule] = RULES) -> Presented:
    """The gradient of ``program`` in the form that people know.

    Parameters
    ----------
    program
        The forward program.
    gradient
        What :func:`symattn.adjoint.adjoint` makes of it: its statements, followed by derived ones. Any list that starts with
        the forward statements will do.
    rules
        Which rewritings to try, in order; all of them by default.

    Returns
    -------
    Presented
        ``program`` holds the forward statements and the presented ones, with the outputs of ``gradient``; ``steps`` holds every
        rewriting with its status. ``D`` is the row sum of a tensor times its gradient, ``P0`` a weight that the forward list does
        not name; all other names are those of ``gradient``.

    Raises
    ------
    ProgramError
        When ``gradient`` does not start with the statements of ``program``.

    Notes
    -----
    Exact: a rewriting that is neither proved for all sizes nor checked is not made.

    >>> import sympy as sp
    >>> from symattn.adjoint import adjoint
    >>> from symattn.program import Statement, indices, size, tensor
    >>> j, = indices("j")
    >>> E, l, P = tensor("E", j), tensor("l"), tensor("P", j)
    >>> weights = Program(
    ...     (
    ...         Statement(E, sp.exp(tensor("z", j)), aux=True),
    ...         Statement(l, E, (j,), aux=True),
    ...         Statement(P, E / l),
    ...         Statement(tensor("o"), P * tensor("v", j), (j,)),
    ...     ),
    ...     {j: size("m")},
    ...     ("o",),
    ... )
    >>> for s in present(weights, adjoint(weights, ["z"])).derived:
    ...     print(s)
    dP[j] = do*v[j]
    D = sum over j of P[j]*dP[j]
    dz[j] = (-D + dP[j])*P[j]
    """
    size = len(program)
    if gradient.statements[:size] != program.statements:
        raise ProgramError("the gradient must start with the statements of the program that it is the gradient of")
    base = gradient.with_statements(program.statements, outputs=())
    listing, steps = apply_rules(Listing(base, gradient.statements[size:], gradient.outputs), rules)
    return Presented(listing.full(), steps, size)


def apply_rules(listing: Listing, rules: Sequence[Rule]) -> tuple[Listing, tuple[Step, ...]]:
    """Apply rules until none proposes anything new; the listing reached and the steps that led there, dropped ones included."""
    steps: list[Step] = []
    seen = {listing.derived}  # where it has been, and what was dropped: nothing is tried twice, so the search ends
    moved = True
    while moved:
        moved = False
        for rule in rules:
            while (following := _first(listing, rule, seen, steps)) is not None:
                listing, moved = following, True
    return listing, tuple(steps)


def _first(listing: Listing, rule: Rule, seen: set[tuple[Statement, ...]], steps: list[Step]) -> Listing | None:
    """The first proposal of a rule that stands; those that do not are recorded and not tried again."""
    for proposal in rule.propose(listing):
        if proposal.derived in seen or not _scans_kept(listing, proposal):
            continue
        seen.add(proposal.derived)
        status = verdict(listing.full(), proposal.full(), listing.outputs)
        steps.append(Step(rule.name, status, changed_names(listing.derived, proposal.derived), rule.reason))
        if status != DROPPED:
            return proposal
    return None


def _scans_kept(listing: Listing, proposal: Listing) -> bool:
    """Whether the scan groups of a list are as they were, those apart that nothing reads any more."""
    left = iter(listing.scans)
    return all(any(group == other for other in left) for group in proposal.scans)


def refold(presented: Presented) -> Presented:
    """The same with ``D`` as the sum of the output times its gradient, ``D = rowsum(dO∘O)``, where the list allows it.

    The result equals the argument where there is no such sum.
    """
    program = presented.program
    forward = program.with_statements(program.statements[: presented.forward], outputs=())
    listing, steps = apply_rules(Listing(forward, presented.derived, program.outputs), (REFOLD,))
    return Presented(listing.full(), (*presented.steps, *steps), presented.forward)
