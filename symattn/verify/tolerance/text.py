"""The text of `symattn tolerance`, for a terminal of 80 columns."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from symattn.verify.report import DISPLAY
from symattn.verify.table import conventions_text

if TYPE_CHECKING:
    from symattn.verify.tolerance.pairs import Tolerance, Tolerances

WIDTH = 80


def tolerances_text(t: Tolerances) -> str:
    """What was asked, the bounded errors, the estimated pairs, and what each would miss."""
    lines = _wrapped(f"definition  {conventions_text(t.definition.conventions())}", 12)
    lines += _wrapped(f"arithmetic  {t.arithmetic.describe()}", 12)
    lines += [f"shape       {t.shape}", ""]
    known = ", ".join(f"|{name}| <= {x:g}" for name, x in t.magnitudes.items())
    others = "; what else is read is the law's" if len(t.magnitudes) < _inputs(t) else ""
    lines += _wrapped(f"bounded: no correct kernel errs by more, for all inputs with {known}{others}")
    lines += [f"  {'':<9}{'error':>12}{'of size':>12}"]
    for name, row in t.tensors.items():
        lines.append(f"  {_label(name):<9}{_number(row.bounded):>12}{_number(row.size):>12}{_warning(row)}")
    lines += [
        "",
        *_wrapped(f"estimated: atol + rtol |exact| covers the derived bounds on one input (law {t.law}, seed {t.seed})"),
    ]
    lines += [f"  {'':<9}{'atol':>12}{'rtol':>12}{'greatest':>12}"]
    for name, row in t.tensors.items():
        lines.append(f"  {_label(name):<9}{_number(row.atol):>12}{_number(row.rtol):>12}{_number(row.greatest):>12}")
    text = "missed: a test on that input lets an otherwise exact kernel pass with this error of the scale (estimated)"
    lines += ["", *_wrapped(text), f"  {'':<9}{'bounded':>12}{'atol+rtol':>12}{'verify':>12}"]
    for name, row in t.tensors.items():
        shown = "".join(f"{_missed(row.missed[k]):>12}" for k in ("bounded", "pair", "derived"))
        lines.append(f"  {_label(name):<9}{shown}")
    lines += _wrapped("  verify: the derived bound of each element, as `symattn verify` uses it", 4)
    return "\n".join(lines)


def _inputs(t: Tolerances) -> int:
    from symattn.verify.kernels.call import Call

    return len([n for n in t.definition.program().inputs if n not in ("Q", "K", "V")]) + len(Call(t.definition, {}).sources)


def _warning(row: Tolerance) -> str:
    if not math.isfinite(row.bounded):
        return "   none can be had"
    return "   says nothing: as large as the tensor" if row.bounded >= row.size else ""


def _label(name: str) -> str:
    return DISPLAY.get(name, name)


def _number(x: float) -> str:
    return f"{x:.3g}" if math.isfinite(x) else "none"


def _missed(x: float | None) -> str:
    return "any" if x is None else f"{x:.1g}"


def _wrapped(text: str, indent: int = 2) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
