"""The pattern of a deviation in words: which tensors, which rows, heads and keys, a constant factor, a shift, NaN."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from symattn.fields import ROWS
from symattn.intake import Array
from symattn.verify.diagnosis.explaining import wrong
from symattn.verify.faults.fault import Prediction
from symattn.verify.observed import Observed
from symattn.verify.report import DISPLAY

AXES = {row.field: row.axes for row in reversed(ROWS)} | {"out": "bHie", "lse": "bHi"}
WORDS = {"b": ("batch entry", "batch entries"), "H": ("head", "heads"), "K": ("key/value head", "key/value heads"),
         "i": ("row", "rows"), "j": ("key", "keys"), "c": ("channel", "channels"), "e": ("channel", "channels")}  # fmt: skip
FACTORS = {
    1.4426950408889634: "log2(e) = 1.4427", 0.6931471805599453: "ln 2 = 0.6931", 2.0: "2", 0.5: "1/2", -1.0: "-1", 0.0: "0",
}  # fmt: skip
SAME_TO = 1e-3
"""Relative spread below which a ratio counts as constant, beyond what the bounds leave open."""
FEWEST = 3
"""Elements, and rows, out of bounds from which on they can show that they have something in common."""
LEFT = 0.25
"""What a factor or a shift may leave of the deviation; more than that and no factor is as good an explanation."""


def axes_of(name: str, ndim: int) -> str:
    """The roles of a tensor's axes (b batch, H heads, K key/value heads, i queries, j keys, c, e channels); "" where unknown."""
    found = AXES.get(name.removeprefix("grad_"), "")
    return found if len(found) == ndim and set(found) <= set(WORDS) else ""


def place(name: str, bad: Array) -> str:
    """Where elements are, in words: ``rows 0-1 of 7``; ``everywhere`` where no axis narrows it.

    >>> bad = np.zeros((1, 2, 7, 3), bool)
    >>> bad[:, :, :2] = True
    >>> place("out", bad)
    'rows 0-1 of 7'
    """
    axes = axes_of(name, bad.ndim)
    parts = []
    for k, role in enumerate(axes):
        hit = np.flatnonzero(bad.any(axis=tuple(x for x in range(bad.ndim) if x != k)))
        if len(hit) < bad.shape[k]:
            parts.append(f"{WORDS[role][len(hit) != 1]} {ranges(hit)} of {bad.shape[k]}")
    return ", ".join(parts) or "everywhere"


def ranges(numbers: Sequence[int] | Array) -> str:
    """Numbers as ranges.

    >>> ranges([0, 1, 2, 5])
    '0-2, 5'
    """
    runs: list[list[int]] = []
    for x in map(int, numbers):
        if runs and x == runs[-1][1] + 1:
            runs[-1][1] = x
        else:
            runs.append([x, x])
    shown = [f"{a}" if a == b else f"{a}-{b}" for a, b in runs]
    return ", ".join(shown[:6]) + (" ..." if len(shown) > 6 else "")


def signature(wrong_ones: Sequence[str], right_ones: Sequence[str]) -> str | None:
    """What the choice of wrong tensors points to; None where it points nowhere."""
    bad, good = set(wrong_ones), set(right_ones)
    if bad == {"lse"}:
        return "only the LSE is wrong, the output is right: its base, a shift of the row, or the maximum that is added back"
    if "out" in bad and "lse" in good:
        return "O is wrong and the LSE is right: the values, their order, or the last division"
    three = {"grad_query", "grad_key", "grad_value"}
    if not three <= bad | good or bad & {"out", "lse"}:
        return None
    table = {
        frozenset({"grad_query", "grad_key"}): (
            "dV is right while dQ and dK are wrong: D, the gradient of the LSE, dropout of dP, or a derivative of the score"
        ),
        frozenset({"grad_query"}): "only dQ is wrong: its scale, a factor log2(e), or its accumulation over the keys",
        frozenset({"grad_key"}): "only dK is wrong: its scale, or its sum over the queries",
        frozenset({"grad_value"}): "only dV is wrong: its weights, or its sum over the queries",
        frozenset(
            {"grad_key", "grad_value"}
        ): "only dK and dV are wrong: the sum over the query heads of a group, or over the queries",
        frozenset(three): "all gradients are wrong and the outputs are right: the weights that the backward recomputes",
    }
    return table.get(frozenset(bad & three))


def patterns(o: Observed) -> list[str]:
    """What can be said of the deviations of a case, tensor by tensor."""
    lines = []
    said = signature(o.failing, [n for n in o.judged if n not in o.failing])
    if said is not None:
        lines.append(said)
    for name in o.failing:
        if name in o.base:
            lines += [f"{DISPLAY.get(name, name)}: {line}" for line in tensor_pattern(name, o.judged[name], o.base[name], o)]
    return lines


def tensor_pattern(name: str, kernel: Array, base: Prediction, o: Observed) -> Iterator[str]:
    """The pattern of one tensor."""
    k, bad = kernel.astype(np.float64), wrong(kernel, base)
    if not bad.any():
        return
    nan = int(np.isnan(k[bad]).sum())
    infinite = int(np.isinf(k[bad]).sum())
    if nan or infinite:
        what = " and ".join(f"{n} {w}" for n, w in ((nan, "NaN"), (infinite, "infinite")) if n)
        yield f"{what} of {kernel.size} elements, {place(name, ~np.isfinite(k) & bad)}"
    yield f"wrong {place(name, bad)}{_known_place(name, bad, o)}"
    usable = bad & np.isfinite(k) & np.isfinite(base.value)
    if usable.sum() < FEWEST:
        return
    factor = constant_ratio(k, base, usable)
    if factor is not None and factor != 1:
        near = next((t for f, t in FACTORS.items() if abs(f - factor) <= SAME_TO * max(1.0, abs(f))), _digits(factor))
        yield f"off by the constant factor {near}"
        return
    axes = axes_of(name, kernel.ndim)
    if axes.endswith(("e", "c")) and _constant_along_rows(k, base, usable):
        yield "off by one factor per row, the same for all channels: the normaliser"
    error = k[usable] - base.value[usable]
    shift = _constant(error, base.reach[usable])
    if shift is not None:
        yield f"off by the constant {shift:.5g}"
    elif name == "lse" and not factor:
        yield f"its mean error is {float(np.mean(error)):.4g}"


def constant_ratio(k: Array, base: Prediction, usable: Array) -> float | None:
    """The factor that all elements are off by, where there is one."""
    with np.errstate(all="ignore"):
        large = usable & (np.abs(base.value) > 8 * base.reach) & (base.value != 0)
        if large.sum() < 2:
            return None
        weights = np.abs(base.value[large])
        factor = float(np.sum(k[large] * np.sign(base.value[large])) / np.sum(weights))
        off = np.abs(k - factor * base.value)
        slack = (1 + abs(factor)) * base.reach + SAME_TO * abs(factor) * np.abs(base.value)
        fits = bool((off <= slack)[usable].all()) and _explains(off[usable], (k - base.value)[usable])
    return factor if fits else None


def _digits(factor: float) -> str:
    """A factor in 5 digits, one that is close to 1 by what it differs by.

    >>> _digits(1.5), _digits(1.0000004)
    ('1.5', '1 + 4e-07')
    """
    return f"{factor:.5g}" if abs(factor - 1) >= 1e-4 else f"1 {'-' if factor < 1 else '+'} {abs(factor - 1):.2g}"


def _explains(rest: Array, error: Array) -> bool:
    """Whether little is left of the deviations, so that it is no accident of wide bounds."""
    with np.errstate(all="ignore"):
        return bool(np.sum(np.abs(rest)) <= LEFT * np.sum(np.abs(error)))


def _constant_along_rows(k: Array, base: Prediction, usable: Array) -> bool:
    """Whether k / value is the same for all channels of every row that is wrong, where there are several."""
    rows = [at for at in np.ndindex(k.shape[:-1]) if usable[at].sum() > 1]
    if len(rows) < FEWEST or k.shape[-1] < 2:
        return False
    return all(constant_ratio(k[at], Prediction(base.value[at], base.reach[at]), np.isfinite(k[at])) is not None for at in rows)


def _constant(error: Array, reach: Array) -> float | None:
    """What all elements are off by, where that is one number."""
    middle = float(np.mean(error))
    fits = bool((np.abs(error - middle) <= reach + SAME_TO * abs(middle)).all())
    return middle if middle and fits and _explains(error - middle, error) else None


def _known_place(name: str, bad: Array, o: Observed) -> str:
    """What is special about the rows or keys that are wrong."""
    axes, d, s = axes_of(name, bad.ndim), o.situation.definition, o.situation.sizes
    for role, count in (("i", s.get("N", 0)), ("j", s.get("M", 0))):
        if role not in axes:
            continue
        k = axes.index(role)
        hit = np.flatnonzero(bad.any(axis=tuple(x for x in range(bad.ndim) if x != k)))
        if len(hit) == count:
            continue
        first, last = int(hit[0]), int(hit[-1])
        gap = s.get("N", 0) - s.get("M", 0)
        if role == "i" and gap > 0 and last < gap:
            return ": only the first n - m rows"
        if role == "i" and d.window is not None and d.window[0] is not None and first >= d.window[0]:
            return f": only rows from the width of the window, {d.window[0]}, on"
        for tile in (512, 256, 128, 64, 32, 16):
            if count > tile and first >= (count - 1) // tile * tile:
                return f": only the last tile of {tile}"
        if last == first:
            return ": one of them"
    return ""


def where(o: Observed, names: Sequence[str] | None = None) -> str:
    """Where a case is wrong, tensor by tensor, in words; the worst elements where only a verdict's own bound is crossed."""
    bad = {n: wrong(o.judged[n], o.base[n]) for n in names or o.failing if n in o.base}
    found = [f"{DISPLAY.get(n, n)} {place(n, x)} ({int(x.sum())} of {x.size})" for n, x in bad.items() if x.any()]
    worst = [(t.name, t.comparison.worst) for t in o.reports if t.name in bad]
    return "; ".join(found or [f"{DISPLAY.get(n, n)}[{','.join(map(str, e.index))}]" for n, e in worst if e is not None])
