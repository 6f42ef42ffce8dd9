"""A derivation as one JSON document. Numbers are strings: an exact value as text (``10/√3``), a decimal as ``"5.7735"``.

::

    {
      "kind": "derivation", "version": 1, "title", "about", "definition",
      "conventions": {name: reading},
      "words": {"i": [...], "j": [...]},          words at the query (i) and key (j) positions
      "origin": the number of the first position, head and component in this document: 1, or 0,
      "follow": the followed query, or null,
      "digits": "4",
      "given": [grid], "steps": [step], "notes": [text], "rewritings": [text]
    }
    step: {"number", "name", "tensors": [name], "reason", "known", "backward": bool, "tangent": bool, "remark",
           "index": [latex], "matrix": [latex], "lines": [line], "grids": [grid]}
    line: {"element": "R[5,1]", "work", "work_latex", "exact", "exact_latex", "approximate", "decimal",
           "decimal_is_exact": bool, "note", "row": null, or how many elements the row has that is cut after this line}
    grid: {"tensor", "leading": [head], "row": a position or null, "shape": [int], "skipped_row", "skipped_column",
           "row_words", "column_words", "cells": [[{"exact", "decimal", "decimal_is_exact", "masked"}]]}

``work``, ``exact`` and ``approximate`` are null where the derivation does not print them. ``origin`` is 0 where a formula
computes with a position itself, as ``(i + 1) S[i,j]`` does; ``follow``, ``leading``, ``row`` and every ``element`` count from it.
"""

from __future__ import annotations

import json
from typing import Any

from symattn.derivation.document import Cell, Derivation, Grid, Line, Step
from symattn.derivation.nodeprint import Style, latex, text

VERSION = 1


def document(d: Derivation) -> str:
    """The whole document, ASCII only, with a line feed at the end."""
    data = {
        "kind": "derivation",
        "version": VERSION,
        "title": d.title,
        "about": d.about,
        "definition": d.definition,
        "conventions": dict(d.conventions),
        "words": {k: list(v) for k, v in d.words.items() if k in ("i", "j")},
        "origin": d.style.origin,
        "follow": d.follow + d.style.origin if d.follow is not None else None,
        "digits": str(d.digits),
        "given": [_grid(g, d.style) for g in d.inputs],
        "steps": [_step(s, d.style) for s in d.steps],
        "notes": list(d.notes),
        "rewritings": list(d.rewritings),
    }
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def _step(s: Step, style: Style) -> dict[str, Any]:
    return {
        "number": s.number,
        "name": s.name,
        "tensors": list(s.tensors),
        "reason": s.reason,
        "known": s.known,
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
        "row": g.row + style.origin if g.row is not None else None,
        "shape": list(g.shape),
        "skipped_row": g.skipped_rows,
        "skipped_column": g.skipped_columns,
        "row_words": list(g.row_words),
        "column_words": list(g.column_words),
        "cells": [[_cell(c, style) for c in row] for row in g.cells],
    }


def _cell(c: Cell, style: Style) -> dict[str, Any]:
    return {
        "exact": text(c.value, style) if c.value is not None else None,
        "decimal": c.decimal if not c.masked else None,
        "decimal_is_exact": c.exact,
        "masked": c.masked,
    }
