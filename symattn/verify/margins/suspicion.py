"""What is unlikely of a correct kernel though possible: *estimated*, and so suspect and never a failure.

All tests rest on what chance makes of independent roundings (:mod:`symattn.readings.slopes.estimates`), and inputs on which
roundings are not independent exist. Four are made, of a run in which no tensor fails:

* *chance*: an element errs by more than chance allows, though by less than its bound;
* *noise*: errors are larger than expected in the mean: root mean square over what is expected of it;
* *gain* and *scale*: the errors go along with the tensor itself, or with its derivative by the scale, and by more than rounding
  explains: ``|t| > 6`` with errors clustered by row;
* *fault*: the errors look like a known fault that the bounds could not have shown: an amplitude near 1 and ``|t| > 6``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symattn import formats
from symattn.arithmetic import Arithmetic
from symattn.errors import SymattnError
from symattn.intake import Array
from symattn.verify.faults.catalogue import CATALOGUE
from symattn.verify.faults.predict import predictions
from symattn.verify.guard import separation
from symattn.verify.margins.directions import by_scale
from symattn.verify.margins.samples import Sample, fit, samples
from symattn.verify.observed import Observed
from symattn.verify.report import DISPLAY, short

__all__ = ["Suspicion", "suspicions"]

WORK = 400_000
"""The largest input that is looked at, in pairs of queries and keys times width."""
T = 6.0
NARROW, WIDE = 1.25, 8.0
"""How much larger than expected errors may be: of outputs of 16 bits, and where the order of float32 sums decides."""
CLEARLY = 4.0
"""Standard errors that the noise has to be above that."""
LEAST = 3e-5
"""A smaller gain or error of the scale is not told of."""
RESOLVED = 16.0
"""How many times the expected error a gain or a scale has to move an element: the rounding of one that is not far above the
grid goes along with it (1 - tanh(x)^2 where tanh(x) rounds to 1)."""
FEW = 12
"""Rows below which a mean square says nothing."""
FILTERS = ("F08", "F33", "F87", "F88", "F91", "F92")
"""Faults that bounds miss where one key weighs little, or a width is large."""
FILTERED = 100_000
"""The largest input that faults are predicted on."""


@dataclass(frozen=True)
class Suspicion:
    """One statistic that a correct kernel hardly has.

    Parameters
    ----------
    kind
        ``chance``, ``noise``, ``gain``, ``scale``, or ``fault`` for a matched filter.
    tensor, case
        Where; "" for all cases of the run together.
    size
        What was found, and ``limit``, what a correct kernel has at most.
    text
        What that is, as a clause.
    """

    kind: str
    tensor: str
    case: str
    size: float
    limit: float
    text: str

    @property
    def line(self) -> str:
        """``O: errors go along with a scale that is off by 0.00102 (t = 9.1)``."""
        where = f" in {self.case}" if self.case else ""
        return f"{DISPLAY.get(self.tensor, self.tensor)}{where}: {self.text}"

    def to_dict(self) -> dict[str, Any]:
        """The entry of the JSON document; numbers are text."""
        return {"kind": self.kind, "tensor": self.tensor, "case": self.case, "size": short(self.size),
                "limit": short(self.limit), "estimated": True, "text": self.line}  # fmt: skip


def suspicions(seen: Sequence[Observed]) -> tuple[Suspicion, ...]:
    """What is suspect in a run; nothing where something fails, since that is said already.

    Parameters
    ----------
    seen
        What was judged.
    """
    small = [o for o in seen if o.work <= WORK and o.judged]
    if not small or any(o.failing for o in seen):
        return ()
    known = {id(o): samples(o) for o in small}
    names = list(dict.fromkeys(s.tensor for o in small for s in known[id(o)]))
    found: list[Suspicion] = []
    for name in names:
        pairs = [(o, s) for o in small for s in known[id(o)] if s.tensor == name]
        found += _chance([s for _, s in pairs])
        found += _noise(pairs)
        found += _along(pairs)
    return (*found, *_faults(small, known))


def _chance(found: Sequence[Sample]) -> Iterator[Suspicion]:
    for s in found:
        with np.errstate(all="ignore"):
            share = np.where(np.isfinite(s.rms) & (s.chance > 0), np.abs(s.error) / s.chance, 0.0)
        worst = float(share.max(initial=0.0))
        if worst > 1:
            yield Suspicion("chance", s.tensor, s.case, worst, 1.0, f"an error is {short(worst)} times what chance allows")


def _noise(pairs: Sequence[tuple[Observed, Sample]]) -> Iterator[Suspicion]:
    """Of each case, and of all together where no case stands out."""
    limit = NARROW if formats.get(pairs[0][0].tensors[pairs[0][1].tensor].dtype).precision <= 11 else WIDE
    alone = [x for o, s in pairs for x in _noisy([s], s.case, limit)]
    yield from alone or _noisy([s for _, s in pairs], "", limit)


def _noisy(found: Sequence[Sample], case: str, limit: float) -> Iterator[Suspicion]:
    rows = np.concatenate([_mean_squares(s) for s in found])
    if rows.size < FEW:
        return
    mean, error = float(rows.mean()), float(rows.std(ddof=1)) / math.sqrt(rows.size)
    if mean - CLEARLY * error > limit**2:
        ratio = math.sqrt(mean)
        yield Suspicion("noise", found[0].tensor, case, ratio, limit, f"errors are {short(ratio)} times as large as expected")


def _mean_squares(s: Sample) -> Array:
    """By row, of the errors in units of what is expected; rows without any are left out."""
    there = np.isfinite(s.rms)
    count = there.sum(axis=1)
    return ((s.error / s.rms) ** 2).sum(axis=1)[count > 0] / count[count > 0]


def _along(pairs: Sequence[tuple[Observed, Sample]]) -> Iterator[Suspicion]:
    """Errors that go along with the tensor, or with its derivative by the scale; the clearer of the two."""
    name, limit = pairs[0][1].tensor, max(_least(o) for o, _ in pairs)
    directions: Mapping[str, list[tuple[Sample, Array]]] = {
        "gain": [(s, _resolved(s, o.base[name].value)) for o, s in pairs] if name != "lse" else [],
        "scale": [(s, _resolved(s, by_scale(o)[name])) for o, s in pairs if name in by_scale(o)],
    }
    words = {"gain": "a gain of", "scale": "a scale that is off by"}
    found = []
    for kind, given in directions.items():
        x = fit(given)
        if x is not None and abs(x.t) > T and abs(x.amplitude) > limit:
            text = f"errors go along with {words[kind]} {short(x.amplitude)} (t = {x.t:.1f})"
            found.append((abs(x.t), Suspicion(kind, name, "", abs(x.amplitude), limit, text)))
    yield from (s for _, s in sorted(found, key=lambda x: -x[0])[:1])


def _resolved(s: Sample, direction: Array) -> Array:
    """A direction by rows, 0 where it is not far above what rounding does."""
    x = s.rows(direction)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(x) >= RESOLVED * s.rms, x, 0.0)


def _least(o: Observed) -> float:
    """The least effect that rounding does not explain: four times what the additions of a row may come to."""
    a: Arithmetic = o.situation.arithmetic
    keys = o.situation.sizes.get("M", o.situation.sizes.get("N", 1))
    return max(LEAST, 4 * a.additions(keys, keys) * a.step_error, 4 * a.function_errors("exp"))


def _faults(small: Sequence[Observed], known: Mapping[int, Sequence[Sample]]) -> Iterator[Suspicion]:
    """Matched filters on faults that the bounds did not exclude."""
    cases = [o for o in small if o.work <= FILTERED and o.part(False)]
    for id_ in FILTERS:
        moves: dict[str, list[tuple[Observed, dict[str, Array]]] | None] = {}
        for o in cases:
            _collect(id_, o, moves)
        for given in moves.values():
            yield from _matched(id_, given or [], known)


def _collect(id_: str, o: Observed, moves: dict[str, list[tuple[Observed, dict[str, Array]]] | None]) -> None:
    """What one fault would do to a case, by its label; None once the bounds exclude it."""
    try:
        alternatives = list(CATALOGUE[id_].alternatives(o.situation))
    except SymattnError:
        return
    for a in alternatives:
        given = moves.setdefault(a.label, [])
        if given is None:
            continue
        try:
            other = predictions(o.situation, a, forward=True)
        except SymattnError:
            continue
        names = [n for n in o.part(False) if n in other and n in o.base and other[n].value.shape == o.base[n].value.shape]
        if any(separation(o.base[n], other[n]) > 1 for n in names):
            moves[a.label] = None
            continue
        with np.errstate(all="ignore"):
            given.append((o, {n: other[n].value - o.base[n].value for n in names}))


def _matched(
    id_: str, given: Sequence[tuple[Observed, Mapping[str, Array]]], known: Mapping[int, Sequence[Sample]]
) -> Iterator[Suspicion]:
    for name in ("out", "lse"):
        x = fit((s, s.rows(d[name])) for o, d in given for s in known[id(o)] if s.tensor == name and name in d)
        if x is not None and 0.5 <= x.amplitude <= 1.5 and x.t > T:
            text = f"errors look like {CATALOGUE[id_].line} (amplitude {short(x.amplitude)}, t = {x.t:.1f})"
            yield Suspicion("fault", name, "", x.t, T, text)
            return
