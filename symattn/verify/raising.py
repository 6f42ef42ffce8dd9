"""Inputs on which a kernel raised: which it need not take, the one error where it raised on all, and what tells them apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from symattn.errors import KernelError
from symattn.verify.pack.kinds import KINDS
from symattn.verify.pack.requirement import Requirement
from symattn.verify.report import CaseReport

__all__ = ["excused", "hints", "refuse_all", "requirement_of"]

Sizes = Mapping[str, int]
MOST = 3
"""Different errors that are told where a kernel raises on every input."""
USUAL = ("h == hkv", *(f"d % {k} == 0" for k in (8, 16, 4, 2, 32, 64, 128)), "dv == d", "n == m", "n <= m", "n >= m")
"""What kernels ask of sizes, most usual first; of these two may explain together what one does not."""
RARER = ("n > 1", "m > 1", "b == 1")


def excused(cases: Sequence[CaseReport]) -> list[CaseReport]:
    """The cases of a run; what a kernel raised on an input that it need not take is known, if it takes another one."""
    needs = {k.name: k.need for k in KINDS if k.need}
    able = {c.kernel for c in cases if c.error is None and c.case not in needs}
    return [
        replace(c, known=f"a kernel may need {needs[c.case]}; --require {needs[c.case]!r} leaves this input out")
        if c.error is not None and c.known is None and c.case in needs and c.kernel in able
        else c
        for c in cases
    ]


def refuse_all(cases: Sequence[CaseReport], hint: str | None = None) -> None:
    """Refuse a run in which a kernel raised on every input, in one message.

    Parameters
    ----------
    cases
        Of the run; nothing is refused where one of them has no error, or a known one.
    hint
        What is said after the errors.

    Raises
    ------
    KernelError
        With each error once, the inputs that raised it, and the sizes of the first of them.
    """
    if not cases or any(c.error is None or c.known for c in cases):
        return
    groups: dict[str, list[CaseReport]] = {}
    for c in cases:
        groups.setdefault(str(c.error), []).append(c)
    said = [f"{_places(found)}: {error}" for error, found in list(groups.items())[:MOST]]
    rest = sum(len(found) for found in list(groups.values())[MOST:])
    said += [f"other errors on {rest} more"] if rest else []
    raise KernelError("; ".join([*said, *([hint] if hint else [])]))


def _places(cases: Sequence[CaseReport]) -> str:
    first = cases[0]
    title = f"{first.case} {first.dtype} {' '.join(f'{k}={v}' for k, v in first.shape.items())}"
    return f"on {title}" if len(cases) == 1 else f"on each of {len(cases)} inputs, {title} the first"


def hints(cases: Sequence[CaseReport], given: str | None) -> list[str]:
    """The line on the sizes that tell the inputs on which a kernel raised from the others; none where none do.

    Parameters
    ----------
    cases
        Of one kernel.
    given
        What is required of sizes already.
    """
    raised = [c for c in cases if c.error is not None and not c.known]
    fine = [c for c in cases if c.error is None]
    found = requirement_of([_sizes(c) for c in raised], [_sizes(c) for c in fine], given) if raised else None
    if found is None:
        return []
    new = found.removeprefix(f"{given}, ")
    if not fine and any("takes no keyword" in str(c.error) for c in raised):
        return []  # it would not be called with any sizes
    if not fine:
        return [f"none of these inputs fulfils {new!r}: if the kernel needs that, --require {found!r} makes inputs that do"]
    return [
        f"the kernel raised on {len(raised)} of {len(cases)} inputs, on those alone that do not fulfil {new!r}: "
        f"if it cannot take them, --require {found!r} leaves them out"
    ]


def requirement_of(raised: Sequence[Sizes], fine: Sequence[Sizes], given: str | None = None) -> str | None:
    """What all sizes that went well fulfil and none that raised does, added to what is required already; None: nothing usual.

    Where nothing went well, only what kernels ask of d is thought of: anything else would be a guess.

    >>> a, b = ({"b": 1, "h": 2, "hkv": 2, "n": 5, "m": 5, "d": d, "dv": d} for d in (6, 8))
    >>> requirement_of([a], [b])
    'd % 8 == 0'
    """
    for text in _candidates(raised, fine):
        rule = Requirement.parse(text)
        if all(_fits(rule, s) is True for s in fine) and all(_fits(rule, s) is False for s in raised):
            return f"{given}, {text}" if given else text
    return None


def _candidates(raised: Sequence[Sizes], fine: Sequence[Sizes]) -> Iterator[str]:
    if not fine:
        yield from (text for text in USUAL if text.startswith("d "))
        return
    yield from USUAL
    yield from RARER
    for name in ("d", "dv", "n", "m"):
        if all(name in s for s in (*raised, *fine)) and min(s[name] for s in raised) > max(s[name] for s in fine):
            yield f"{name} <= {max(s[name] for s in fine)}"
    for size in ("m", "n"):
        yield from (f"{size} % {k} == 0" for k in (16, 8, 32, 64, 128, 4, 2))
    yield from (", ".join(pair) for pair in combinations(USUAL, 2))


def _fits(rule: Requirement, sizes: Sizes) -> bool | None:
    """Whether sizes fulfil a requirement; None where it names one that a definition does not have."""
    return rule.fulfilled(sizes) if all(c.names <= sizes.keys() for c in rule.clauses) else None


def _sizes(case: CaseReport) -> Sizes:
    return {k.lower(): v for k, v in case.shape.items()}
