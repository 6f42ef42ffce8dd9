"""A fault of one path of a kernel: what explains the cases that fail, where nothing explains those too that do not.

A kernel that dispatches (decode, tall, long) has a fault where one branch is taken, and every hypothesis on the whole kernel is
refuted by the cases that take another one. That is a weaker statement than an explanation of the run, and is labelled so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from symattn.verify.diagnosis.effort import PART, Effort
from symattn.verify.diagnosis.finding import PARTIAL, Finding
from symattn.verify.diagnosis.search import DERIVED, Explanation, Search
from symattn.verify.observed import Observed

__all__ = ["Part", "explained_part"]

NAMES = 4
"""As many cases are told by name."""


@dataclass(frozen=True)
class Part:
    """The cases that fail, what explains every element of every tensor in them, and which case refutes each fault for the whole.

    Parameters
    ----------
    failing, passing
        All cases of a run.
    found
        At least one explanation, of single faults.
    against
        By fault, the name of a case without failure in which the kernel does not follow it.
    """

    failing: tuple[Observed, ...]
    passing: tuple[Observed, ...]
    found: tuple[Explanation, ...]
    against: dict[str, str]

    @property
    def scope(self) -> str:
        """What is added to the cases that are explained."""
        return f", {'those' if len(self.failing) > 1 else 'the one'} that fail{'s' * (len(self.failing) == 1)}, of {self._count}"

    @property
    def _count(self) -> int:
        return len(self.failing) + len(self.passing)

    def labelled(self, finding: Finding) -> Finding:
        """A finding on the failing cases, so that nobody takes it for one on the run."""
        names = [o.case for o in self.failing]
        told = " and ".join(names) if len(names) <= NAMES else f"{len(names)} of {self._count} cases"
        same = shared(self.failing, self.passing)
        head = f"in {told} alone{f' ({same})' * bool(same)}: "
        many = len(self.passing) > 1
        left = f"the other {len(self.passing)} that were judged do" if many else "the other one that was judged does"
        first, *rest = finding.text
        cases = dict.fromkeys(self.against[f] for f in finding.fault if f in self.against)
        whole = f"  no explanation of the whole run: case {' and '.join(cases)} does not follow it"
        text = (f"{head}{first}; {left} not fail without it", whole, *rest)
        return replace(finding, title=head + finding.title, kind=PARTIAL, text=text)


def explained_part(search: Search, cases: Sequence[Observed], choice: str = "bounded") -> Part | None:
    """What explains the failing cases of a run alone; None where nothing does, or where every case fails.

    Parameters
    ----------
    search
        One that found nothing for all cases; what only passing ones refuted is asked once more, for the failing ones.
    cases
        All that were judged; where one fails that the search left out, nothing is claimed.
    choice
        How much work is spent, as of :func:`symattn.verify.diagnosis.diagnose.diagnose`.
    """
    failing, passing = [o for o in cases if o.failing], [o for o in cases if not o.failing]
    asked = {id(o) for o in search.ordered()}
    if not search.refuted or not passing or any(id(o) not in asked for o in failing):
        return None
    faults = [f for f in search.faults if f.id in search.refuted]
    derived = DERIVED if choice == "bounded" else math.inf
    again = Search(failing, faults, budget=0, derived=derived, effort=Effort.of(choice, PART))
    found = [e for e in again.run() if len(e.faults) == 1 and not e.open]
    return Part(tuple(failing), tuple(passing), tuple(found), search.refuted) if found else None


def shared(failing: Sequence[Observed], passing: Sequence[Observed]) -> str:
    """The first relation of sizes that holds of all failing cases and of no other one; empty where there is none."""
    inside, outside = ([{k.lower(): v for k, v in o.situation.sizes.items()} for o in os] for os in (failing, passing))
    for text, holds in _relations(inside):
        if all(holds(s) for s in inside) and not any(holds(s) for s in outside):
            return text
    return ""


def _relations(failing: Sequence[dict[str, int]]) -> Iterator[tuple[str, Callable[[dict[str, int]], bool]]]:
    """Relations of queries and keys, and bounds on sizes that the failing cases keep."""
    names = [x for x in ("n", "m", "d", "h", "b") if all(x in s for s in failing)]
    if "n" in names:
        yield "n = 1", lambda s: s["n"] == 1
    if {"n", "m"} <= set(names):
        yield "n > m", lambda s: s["n"] > s["m"]
        yield "n < m", lambda s: s["n"] < s["m"]
        yield "n = m", lambda s: s["n"] == s["m"]
    for x in names:
        low, high = min(s[x] for s in failing), max(s[x] for s in failing)
        yield f"{x} >= {low}", lambda s, x=x, low=low: s[x] >= low  # type: ignore[misc]
        yield f"{x} <= {high}", lambda s, x=x, high=high: s[x] <= high  # type: ignore[misc]
