"""What printed numbers show by themselves, without a recomputation: rules that hold for weights and outputs whatever the scores.

Rows of weights sum to 1; outputs lie in the hull of the values; keys with equal scores have equal weights; columns of V that
differ by a constant lead to columns of the output that differ by it. Each holds to the rounding of the printed numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from symattn.audit.checking import Checked
from symattn.audit.claimsfile import Claim, Example
from symattn.audit.exactness import decimal
from symattn.audit.findings import Remark
from symattn.audit.printed import binary32_ulp
from symattn.audit.quantities import field_named, letter_named, place_of
from symattn.audit.values import target

Array = npt.NDArray[Any]
SCORES = ("R", "S", "Z")
MASKS = ("causal", "mask", "window", "attn_mask", "prefix", "document", "key_lengths", "score", "bias", "alibi", "dropout")
"""Fields under which keys with equal scores may have unequal weights."""


class Shown:
    """The printed numbers of an example by quantity: arrays of them, None where a page prints none."""

    def __init__(self, example: Example, done: Sequence[Checked]) -> None:
        self.example = example
        known = {c.claim.name: c for c in done}
        self.claims: list[tuple[str, str, Array]] = []
        for claim in example.claims:
            c = known.get(claim.name)
            base, index = (c.base, c.index) if c else _guessed(claim)
            self.claims.append((claim.name, base, self._whole(claim, index)))

    def _whole(self, claim: Claim, index: tuple[int | None, ...]) -> Array:
        """What a claim prints, as a matrix with as many rows as it reaches."""
        printed: Array = claim.printed
        if not index:
            return printed[None] if printed.ndim == 1 else printed
        at = [0 if k is None else k for k in index]
        lengths = iter(printed.shape)
        shape = [next(lengths, 1) if k is None else k + 1 for k in index] + list(lengths)
        out = np.full(shape if len(shape) > 1 else [*shape, 1], None, dtype=object)
        if min(at) < 0 or np.prod(shape) > 10_000 or len(index) > out.ndim:
            return np.full((0, 0), None, dtype=object)
        view = out[target(index)]
        if isinstance(view, np.ndarray):
            out[target(index)] = printed.reshape(view.shape)
        else:
            out[target(index)] = printed.ravel()[0]
        return out

    def of(self, *bases: str) -> Iterator[tuple[str, Array]]:
        """The claims of some quantities: names, and printed numbers with an axis of rows and one of columns at the end."""
        for name, base, printed in self.claims:
            if base in bases and printed.ndim >= 2 and printed.size:
                yield name, printed

    def exactly(self, letter: str) -> Array | None:
        """The values of an input, or of a quantity of which every printed number is an exact claim."""
        for name, g in self.example.inputs.items():
            exact = not any(w != 0 for w in g.half_widths.ravel().tolist())
            finite = not any(isinstance(x, float) for x in g.values.ravel().tolist())
            if letter_named(name) == letter and g.values.ndim == 2 and exact and finite:
                return g.values
        for _, printed in self.of(letter):
            flat = printed.ravel().tolist()
            if printed.ndim == 2 and all(p is not None and p.kind in ("integer", "fraction", "array") for p in flat):
                out = np.empty(printed.shape, dtype=object)
                out.ravel()[:] = [p.value for p in flat]
                return out
        return None


def _guessed(claim: Claim) -> tuple[str, tuple[int | None, ...]]:
    """The quantity that the name of a claim says, where its value is not known."""
    place = place_of(claim.of)
    letter = None if place is None else letter_named(place.base)
    return (letter or claim.name, place.index) if place is not None else (claim.name, ())


def remarks(example: Example, done: Sequence[Checked]) -> list[Remark]:
    """The rules that the printed numbers of an example break."""
    shown = Shown(example, done)
    prefix = done[0].prefix if done else ""
    found = []
    if _sums_to_one(example):
        found += [*_rows(shown), *_hull(shown), *_columns(shown)]
    if not any(example.definition.get(f) for f in MASKS):
        found += _equal_scores(shown)
    return [Remark(r.rule, r.text, tuple(prefix + n for n in r.names)) for r in found]


def _sums_to_one(example: Example) -> bool:
    """Whether the definition's weights are those of a softmax, all of it over keys that exist."""
    d = example.definition
    plain = str(d.get("normalizer", "softmax")) in ("softmax", "sparsemax", "entmax15") and d.get("form", "softmax") == "softmax"
    return plain and not any(d.get(f) for f in ("sink", "dropout", "differential", "head_mixing", "multi_token", "output_gate"))


def _reach(p: Any) -> tuple[Fraction, Fraction]:
    """The interval that a printed number claims; of one with the digits of binary32, 8 of its units in the last place too."""
    low, high = p.interval()
    noise = 8 * binary32_ulp(p.value) if 7 <= p.digits <= 9 else Fraction(0)
    return min(low, p.value - noise), max(high, p.value + noise)


def _rows(shown: Shown) -> Iterator[Remark]:
    for name, printed in shown.of("P"):
        for place in np.ndindex(printed.shape[:-1]):
            row = printed[place].tolist()
            if any(p is None or p.kind == "infinity" for p in row):
                continue
            low, high = (sum((_reach(p)[k] for p in row), Fraction(0)) for k in (0, 1))
            if not low <= 1 <= high:
                total = sum((p.value for p in row), Fraction(0))
                where = ",".join(map(str, place))
                yield Remark("rows sum to 1", f"row {where} of {name} sums to {_decimal(total)}, beyond its rounding", (name,))


def _hull(shown: Shown) -> Iterator[Remark]:
    values = shown.exactly("V")
    if values is None or any(field_named(name) == "w_o" for name in shown.example.inputs):
        return
    for name, printed in shown.of("O", "heads"):
        if printed.shape[-1] != values.shape[-1]:
            continue
        for place in np.ndindex(printed.shape):
            p: Any = printed[place]
            column = values[:, place[-1]].tolist()
            if p is not None and not (_reach(p)[1] >= min(column) and _reach(p)[0] <= max(column)):
                at = f"{name}[{','.join(map(str, place))}]"
                ends = f"{_decimal(min(column))} and {_decimal(max(column))}"
                yield Remark(
                    "outputs lie in the hull of V", f"{at} is {p}, and the values of its column lie between {ends}", (at,)
                )


def _columns(shown: Shown) -> Iterator[Remark]:
    values = shown.exactly("V")
    if (
        values is None
        or any(field_named(n) == "w_o" for n in shown.example.inputs)
        or shown.example.definition.get("heads", 1) != 1
    ):
        return
    for a in range(values.shape[-1]):
        for b in range(a):
            gaps = {x - y for x, y in zip(values[:, a].tolist(), values[:, b].tolist(), strict=True)}
            if len(gaps) > 1:
                continue
            gap = gaps.pop()
            for name, printed in shown.of("O", "heads"):
                if printed.shape[-1] == values.shape[-1]:
                    yield from _unequal(name, printed, a, b, gap)


def _unequal(name: str, printed: Array, a: int, b: int, gap: Any) -> Iterator[Remark]:
    for place in np.ndindex(printed.shape[:-1]):
        p, q = printed[(*place, a)], printed[(*place, b)]
        if p is None or q is None:
            continue
        (low, high), (below, above) = _reach(p), _reach(q)
        if not low - above <= gap <= high - below:
            row = ",".join(map(str, place))
            names = tuple(f"{name}[{row},{k}]" for k in (b, a))
            apart = _decimal(p.value - q.value)
            text = f"columns {b} and {a} of V differ by {_decimal(gap)} in every row, and {names[0]} and {names[1]} by {apart}"
            yield Remark("columns of V that differ by a constant", text, names)


def _equal_scores(shown: Shown) -> Iterator[Remark]:
    """Equal scores, exact ones, with weights that no rounding makes equal."""
    scores = next((s for s in map(shown.exactly, SCORES) if s is not None), None)
    if scores is None:
        return
    for name, printed in shown.of("P"):
        if printed.shape != scores.shape:
            continue
        for i, row in enumerate(printed):
            for j, p in enumerate(row):
                for k, q in enumerate(row[:j]):
                    if p is None or q is None or scores[i, j] != scores[i, k]:
                        continue
                    if _reach(p)[0] > _reach(q)[1] or _reach(q)[0] > _reach(p)[1]:
                        text = f"the scores of keys {k} and {j} are equal in row {i}, and their weights {q} and {p}"
                        yield Remark("equal scores have equal weights", text, (f"{name}[{i},{k}]", f"{name}[{i},{j}]"))


def _decimal(x: Any) -> str:
    return decimal(Fraction(x), 12)
