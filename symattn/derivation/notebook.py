"""A derivation as a Jupyter notebook whose cells recompute every number that its text shows, with mpmath and plain Python.

Each step has its text and, below it, its statements as functions of their indices and the printed decimals, which are compared
with what those functions give. A wrong decimal, formula or input stops the notebook at its step.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any

from symattn.derivation import blocks
from symattn.derivation.document import Derivation, Step
from symattn.derivation.escaping import markdown_text
from symattn.derivation.markup import Markup
from symattn.derivation.pycode import GUARD, SETUP, Python
from symattn.errors import MissingDependencyError
from symattn.program import Statement

WIDTH = 100


class Cells(Markup):
    """Text for a notebook: dollars around formulas, pictures inside of it."""

    def inline(self, latex: str) -> str:
        """A formula in a line."""
        return f"${latex}$"

    def picture(self, p: blocks.Picture) -> list[str]:
        """A picture, and what it shows in words."""
        data = base64.b64encode(p.svg.encode("utf-8")).decode("ascii")
        return [f"![picture](data:image/svg+xml;base64,{data})", "", f"*{markdown_text(p.says)}*", ""]

    def reference(self, number: int) -> str:
        """A reference to a step by its number: notebooks make places of headings in ways of their own."""
        return f"({number})"


def document(d: Derivation) -> str:
    """The whole notebook as JSON, valid by nbformat.

    Raises
    ------
    MissingDependencyError
        When nbformat is not installed.
    UnfitError
        When a statement cannot be written in plain Python.
    """
    try:
        import nbformat
    except ImportError as why:
        raise MissingDependencyError("a notebook needs nbformat: pip install 'symattn[notebook]'") from why
    made = nbformat.v4.new_notebook(metadata=_metadata())  # type: ignore[no-untyped-call]
    for k, (kind, text) in enumerate(cells(d)):
        new = nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell
        made.cells.append(new(text, id=f"cell-{k}"))  # type: ignore[no-untyped-call]
    nbformat.validate(made)
    return str(nbformat.writes(made)) + "\n"  # type: ignore[no-untyped-call]


def _metadata() -> dict[str, Any]:
    return {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }


def cells(d: Derivation) -> Iterator[tuple[str, str]]:
    """``("markdown", text)`` and ``("code", text)``, one after the other."""
    python = Python(d.source.program) if d.source is not None else None
    left = list(d.source.program) if d.source is not None else []
    groups = [{s.name for s in group} for group in d.source.program.groups()] if d.source is not None else []
    for k, part in enumerate(Cells(d).parts()):
        yield "markdown", "\n".join(part.lines).strip()
        if python is not None and not k:
            yield "code", SETUP.format(digits=d.digits + GUARD).strip()
            yield "code", _inputs(d, python)
        if python is not None and part.step is not None:
            wanted = {name for group in groups if group & {*part.step.tensors} for name in group}
            last = max((n for n, s in enumerate(left) if s.name in wanted), default=-1)
            code = _step(part.step, left[: last + 1], python)
            left = left[last + 1 :]
            if code:
                yield "code", code


def _inputs(d: Derivation, python: Python) -> str:
    """Sizes and inputs."""
    assert d.source is not None
    sizes = ", ".join(f"{s.name}={n}" for s, n in sorted(d.source.sizes.items(), key=lambda x: x[0].name))
    out = [f"size = SimpleNamespace({sizes})"]
    out += [f"{python.names[name]} = given({_nested(array)})" for name, array in d.source.inputs.items()]
    return "\n".join(out)


def _nested(array: Any) -> str:
    """Exact numbers as lists of text."""
    values = array.tolist() if hasattr(array, "tolist") else array

    def text(x: Any) -> str:
        if isinstance(x, list):
            return f"[{', '.join(map(text, x))}]"
        return repr(str(int(x) if isinstance(x, bool) else x))

    return text(values)


def _step(s: Step, statements: Iterable[Statement], python: Python) -> str:
    """The statements of a step, and the decimals that are printed for them."""
    out = [python.statement(x) for x in statements]
    checks = []
    for name, printed in _printed(s).items():
        if name in python.names and printed:
            checks.append(f"check({python.names[name]}, {_table(printed)})")
    return "\n\n\n".join([*out, "\n".join(checks)] if checks else out)


def _printed(s: Step) -> dict[str, dict[tuple[int, ...], str]]:
    """Tensor -> index, counted from 0 -> the decimal on the page."""
    found: dict[str, dict[tuple[int, ...], str]] = {}
    for g in s.grids:
        for r, row in enumerate(g.cells):
            for c, cell in enumerate(row):
                if not cell.masked:
                    at = (*g.leading, *(g.place(r, 0), g.place(c, 1))[2 - min(2, len(g.shape)) :])
                    found.setdefault(g.tensor, {})[at] = cell.decimal
    for x in s.lines:
        if not x.cell.masked:
            found.setdefault(x.item.tensor, {})[x.item.index] = x.cell.decimal
    return found


def _table(printed: dict[tuple[int, ...], str]) -> str:
    """A dictionary, in lines that are not too long."""
    lines = [""]
    for at, decimal in printed.items():
        item = f'{at}: "{decimal}", '
        if len(lines[-1]) + len(item) > WIDTH - 4:
            lines.append("")
        lines[-1] += item
    return "{\n" + "\n".join(f"    {x.rstrip()}" for x in lines) + "\n}"
