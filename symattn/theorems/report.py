"""Results of proofs as people read them: a table of 80 columns, one theorem at length, and JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

import sympy as sp

from symattn.definition import Definition
from symattn.theorems.claim import PROVED, TESTED, Counterexample
from symattn.theorems.theorem import Result, Theorem

__all__ = ["at_length", "definition_text", "listing", "outside", "table", "to_json"]

WIDTH = 80


def definition_text(definition: Definition) -> str:
    """A definition in a line.

    >>> definition_text(Definition(heads=2, sink=True)), definition_text(Definition())
    ('heads=2, kv_heads=2, sink=True', 'plain attention')
    """
    text = repr(definition)
    return text[text.index("(") + 1 : -1] or "plain attention"


def listing(families: Mapping[str, Iterable[Theorem]]) -> str:
    """Every theorem in a line, under its family."""
    lines: list[str] = []
    for family, rows in families.items():
        lines += ["", family, *(f"  {row.name:<23} {row.title}"[:WIDTH] for row in rows)]
    return "\n".join(lines[1:]) + "\n"


def table(results: Iterable[Result]) -> str:
    """Name, verdict, scope, seconds and method of each result.

    >>> from symattn.theorems import prove
    >>> print(table([prove("rows-sum-to-one")]))  # doctest: +NORMALIZE_WHITESPACE
    theorem                 verdict        scope        seconds method
    rows-sum-to-one         proved         all sizes        ... normal form
    """
    lines = [f"{'theorem':<23} {'verdict':<14} {'scope':<11} {'seconds':>7} method"]
    for r in results:
        how = r.method if r.scope else "exact values" if r.counterexample else ""
        how = how if len(how) <= 21 else how.split(",")[0].split(";")[0]
        lines.append(
            f"{r.theorem.name:<23} {r.verdict:<14} {r.scope.removeprefix('sizes ') or '-':<11} {r.seconds:7.1f} {how}"[
                :WIDTH
            ].rstrip()
        )
    return "\n".join(lines)


def at_length(result: Result) -> str:
    """A theorem, what it was asked of, and what was found, in lines of at most 80 columns."""
    t = result.theorem
    lines = [f"{t.name}: {t.title}", *_wrapped(t.text)]
    lines += _wrapped(f"source: {t.source}")
    if t.general:
        lines += _wrapped("about a formula or an algorithm, whatever the definition")
    else:
        lines += _wrapped(f"holds when: {t.applies}")
        lines += _wrapped(f"asked of: {definition_text(result.definition)}")
    lines += _wrapped(verdict_text(result))
    if result.side:
        lines += _wrapped(f"where {result.side}")
    if result.counterexample is not None:
        lines += counterexample_lines(result.counterexample)
    elif result.verdict == "not applicable" and not result.decisions and "counterexample" not in result.reason:
        lines += _wrapped("it says nothing of this definition, so there is no counterexample")
    return "\n".join(lines)


def outside(result: Result) -> str:
    """What becomes of a theorem for a definition that does not meet its condition."""
    lines = _wrapped(f"outside its condition, for {definition_text(result.definition)}:") + _wrapped(verdict_text(result), 4)
    return "\n".join([*lines, *(counterexample_lines(result.counterexample) if result.counterexample else [])])


def verdict_text(result: Result) -> str:
    """The verdict as a clause."""
    seconds = f"({result.seconds:.1f} s)"
    if result.verdict == TESTED:
        return f"TESTED only: {result.method} {seconds}"
    if result.verdict == PROVED:
        return f"PROVED for {result.scope}, by {result.method} {seconds}"
    return f"{result.verdict.upper()}{': ' + result.reason if result.reason else ''} {seconds}"


def counterexample_lines(found: Counterexample) -> list[str]:
    """The two sides, their difference, and the numbers that were put in."""
    lines = [f"  counterexample to {found.claim}:"] if found.claim else ["  counterexample:"]
    lines += _wrapped(f"left  {found.what} = {_exact(found.left)}", 4)
    lines += _wrapped(f"right {' ' * len(found.what)} = {_exact(found.right)}", 4)
    lines += _wrapped(f"difference = {_exact(found.difference)}", 4)
    for name, value in found.inputs.items():
        lines += _wrapped(f"{name} = {nested(value)}", 4)
    return lines


def nested(value: Any) -> str:
    """Nested lists of exact numbers as text."""
    return "[" + ", ".join(map(nested, value)) + "]" if isinstance(value, list) else str(value)


def _exact(x: sp.Expr) -> str:
    if x.is_Rational or x.is_Float or not x.is_number or not x.is_finite:
        return str(x)
    return f"{x} = {sp.N(x, 6)}..."


def _wrapped(text: str, indent: int = 2) -> list[str]:
    blank = " " * indent
    return textwrap.wrap(text, WIDTH, initial_indent=blank, subsequent_indent=blank + "  ", break_on_hyphens=False)


def to_json(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Results as data; exact numbers are strings."""
    out = []
    for r in results:
        c = r.counterexample
        row: dict[str, Any] = {
            "name": r.theorem.name,
            "title": r.theorem.title,
            "statement": r.theorem.text,
            "latex": r.theorem.latex,
            "source": r.theorem.source,
            "applies": r.theorem.applies,
            "definition": definition_text(r.definition),
            "verdict": r.verdict,
            "scope": r.scope,
            "method": r.method,
            "side_condition": r.side,
            "reason": r.reason,
            "seconds": f"{r.seconds:.3f}",
            "counterexample": None,
        }
        if c is not None:
            row["counterexample"] = {
                "claim": c.claim,
                "entry": c.what,
                "left": str(c.left),
                "right": str(c.right),
                "difference": str(c.difference),
                "sizes": dict(c.sizes),
                "inputs": {n: _texts(v) for n, v in c.inputs.items()},
            }
        out.append(row)
    return out


def _texts(value: Any) -> Any:
    return [_texts(v) for v in value] if isinstance(value, list) else str(value)
