"""A derivation as one JSON document: everything that its pages are made of, for a front end of one's own.

Numbers are strings: an exact value as text (``10/√3``), a decimal as ``"5.7735"``. What every key means and which values it may
have is said by :func:`schema`, which ``symattn derive --schema`` prints; every document is valid by it.

Positions, heads and components (``follow``, ``leading``, ``row``, ``block``, every ``element``) count from ``origin``: 1, or 0
where a formula computes with a position itself, as ``(i + 1) S[i,j]`` does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from typing import Any

from symattn.derivation import blocks
from symattn.derivation.document import Cell, Derivation, Formula, Grid, Line, Step
from symattn.derivation.nodeprint import Style, latex, text
from symattn.derivation.pycode import Source
from symattn.derivation.weightmaps import HeadMap, WeightMap

VERSION = 2
SCHEMA = "derivation.schema.json"


def schema() -> str:
    """The JSON Schema (draft 2020-12) of the documents, as it is shipped."""
    return (resources.files("symattn.derivation") / SCHEMA).read_text(encoding="utf-8")


def document(d: Derivation) -> str:
    """The whole document, ASCII only, with a line feed at the end."""
    data = {
        "kind": "derivation",
        "version": VERSION,
        "title": d.title,
        "about": d.about,
        "definition": d.definition,
        "conventions": dict(d.conventions),
        "detail": d.detail,
        "words": {k: list(v) for k, v in d.words.items() if k in ("i", "j")},
        "origin": d.style.origin,
        "follow": _position(d.follow, d.style),
        "digits": str(d.digits),
        "given": [_grid(g, d.style) for g in d.inputs],
        "steps": [_step(s, d.style) for s in d.steps],
        "sections": [_section(s) for s in d.sections],
        "maps": [_map(m, d.style) for m in d.maps],
        "source": _source(d.source) if d.source is not None else None,
        "notes": list(d.notes),
        "rewritings": list(d.rewritings),
    }
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def _position(k: int | None, style: Style) -> int | None:
    return None if k is None else k + style.origin


def _step(s: Step, style: Style) -> dict[str, Any]:
    return {
        "number": s.number,
        "name": s.name,
        "tensors": list(s.tensors),
        "reason": s.reason,
        "known": s.known,
        "numbers": s.numbers,
        "uses": list(s.uses),
        "shapes": [{"latex": letter, "shape_latex": shape} for letter, shape in s.shapes],
        "backward": s.backward,
        "tangent": s.tangent,
        "remark": s.remark,
        "index": [f.latex for f in s.index],
        "matrix": [f.latex for f in s.matrix],
        "lines": [_line(x, style) for x in s.lines],
        "grids": [_grid(g, style) for g in s.grids],
    }


def _line(x: Line, style: Style) -> dict[str, Any]:
    return {
        "element": text(x.item, style),
        "formula_latex": x.formula.latex if x.formula is not None else None,
        "work": text(x.work, style) if x.work is not None else None,
        "work_latex": latex(x.work, style) if x.work is not None else None,
        "exact": text(x.cell.value, style) if x.cell.value is not None else None,
        "exact_latex": latex(x.cell.value, style) if x.cell.value is not None else None,
        "approximate": text(x.approximate, style) if x.approximate is not None else None,
        "decimal": x.cell.decimal,
        "decimal_is_exact": x.cell.exact,
        "note": " → ".join(x.note),
        "row": x.row or None,
    }


def _grid(g: Grid, style: Style) -> dict[str, Any]:
    return {
        "tensor": g.tensor,
        "leading": [k + style.origin for k in g.leading],
        "row": _position(g.row, style),
        "block": [k + style.origin for k in g.block] if g.block is not None else None,
        "shape": list(g.shape),
        "skipped_row": g.skipped_rows,
        "skipped_column": g.skipped_columns,
        "row_words": list(g.row_words),
        "column_words": list(g.column_words),
        "followed": g.followed,
        "cells": [[_cell(c, style) for c in row] for row in g.cells],
    }


def _cell(c: Cell, style: Style) -> dict[str, Any]:
    return {
        "exact": text(c.value, style) if c.value is not None else None,
        "exact_latex": latex(c.value, style) if c.value is not None else None,
        "decimal": c.decimal if not c.masked else None,
        "decimal_is_exact": c.exact,
        "masked": c.masked,
    }


# --- sections


def _section(s: blocks.Section) -> dict[str, Any]:
    return {"title": s.title, "known": s.known, "before": s.before, "blocks": [_block(b) for b in s.blocks]}


def _block(b: blocks.Block) -> dict[str, Any]:
    return _BLOCKS[type(b)](b)


def _part(p: blocks.Part) -> Any:
    return {"latex": p.latex} if isinstance(p, Formula) else p


def _parts(found: Iterable[blocks.Part]) -> list[Any]:
    return [_part(p) for p in found]


_BLOCKS: Mapping[type, Callable[[Any], dict[str, Any]]] = {
    blocks.Prose: lambda b: {"kind": "prose", "parts": _parts(b.parts)},
    blocks.Display: lambda b: {"kind": "display", "formulas": _parts(b.formulas), "beside": list(b.beside)},
    blocks.Table: lambda b: {
        "kind": "table",
        "head": _parts(b.head),
        "rows": [_parts(row) for row in b.rows],
        "caption": b.caption,
    },
    blocks.Algorithm: lambda b: {
        "kind": "algorithm",
        "title": b.title,
        "takes": _parts(b.takes),
        "gives": _parts(b.gives),
        "lines": [{"depth": x.depth, "parts": _parts(x.parts)} for x in b.lines],
    },
    blocks.Picture: lambda b: {"kind": "picture", "svg": b.svg, "says": b.says},
    blocks.Box: lambda b: {"kind": "box", "title": b.title, "blocks": [_block(x) for x in b.blocks]},
}


# --- what the numbers were computed from, and the weights of every softmax


def _source(s: Source) -> dict[str, Any]:
    return {
        "statements": [str(x) for x in s.program],
        "sizes": {str(name): n for name, n in sorted(s.sizes.items(), key=lambda x: str(x[0]))},
        "inputs": {name: _nested(array) for name, array in s.inputs.items()},
    }


def _nested(array: Any) -> Any:
    """Exact numbers as lists of text."""
    values = array.tolist() if hasattr(array, "tolist") else array
    return [_nested(x) for x in values] if isinstance(values, list) else str(values)


def _map(m: WeightMap, style: Style) -> dict[str, Any]:
    return {
        "weights": m.weights,
        "scores": m.scores,
        "shape": list(m.shape),
        "heads": [_head(h, style) for h in m.heads],
        "row_words": list(m.row_words),
        "column_words": list(m.column_words),
        "positions": m.positions,
        "followed": _position(m.followed, style),
    }


def _head(h: HeadMap, style: Style) -> dict[str, Any]:
    rows = ("printed", "weights", "scores", "extras")
    return {"leading": [k + style.origin for k in h.leading], **{name: [list(row) for row in getattr(h, name)] for name in rows}}
