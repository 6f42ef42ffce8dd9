"""The tensors of an example by another way than its derivation, and what is wrong with a line in the light of them."""

from __future__ import annotations

from typing import Any

from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.derivation import Derivation, examples
from symattn.derivation.binding import inputs_of
from symattn.derivation.document import Line
from symattn.derivation.nodeprint import latex, text
from symattn.derivation.numbersteps import Item
from symattn.derivation.shaping import computable, with_constants_in_place, without_maxima
from symattn.readings import mpmath as reading
from tests.derivation.reader import CONTEXT, read_latex, read_text

TIGHT = CONTEXT.mpf(10) ** -40
MASKED = b"""
Q = [[1, 0], [0, 1], [2, "1/2"]]
K = [[1, 1], [0, 2], [1, 0], [0.5, 0]]
V = [[1], [2], [3], [-1]]
grad_out = [[1], [1], [2]]
follow = 2
"""


def witness(example: examples.Example, d: Definition, gradient: bool = False, shifted: bool = False) -> dict[str, Any]:
    """The tensors by the mpmath reading of the raw gradient, which knows nothing of steps, presentation and exact values."""
    program = adjoint(d.program()) if gradient else d.program()
    program = program if shifted else without_maxima(program)
    arrays, sizes = inputs_of(example, with_constants_in_place(program), d)
    program = computable(program, set(arrays))
    tensors = reading.evaluate(program, {n: a for n, a in arrays.items() if n in program.inputs}, sizes=sizes, digits=60)
    if "dP" in tensors:
        tensors["D"] = (tensors["P"] * tensors["dP"]).sum(-1)
    return tensors


def lines_of(d: Derivation) -> list[Line]:
    return [line for s in d.steps for line in s.lines]


def checked(d: Derivation, line: Line, tensors: dict[str, Any]) -> list[str]:
    """What is wrong with a line, by independent readers of its text and its LaTeX."""
    names = {text(Item(n, (), line.item.content), d.style).partition("[")[0]: n for n in tensors}
    tex = {d.style.name(n): n for n in tensors} | {"ℓ": "l", "ℰ": "Emb"}
    want = CONTEXT.mpf(tensors[line.item.tensor][line.item.index])

    def element(letter: str, index: tuple[int, ...]) -> Any:
        n = names.get(letter) or tex[letter]
        return CONTEXT.mpf(tensors[n][tuple(k - d.style.origin for k in index)])

    wrong = []
    for node in (line.work, line.cell.value):
        if node is None or "NaN" in text(node, d.style) or CONTEXT.isnan(want):
            continue
        for value in (read_text(text(node, d.style), element), read_latex(latex(node, d.style), element)):
            if not abs(value - want) <= TIGHT * (1 + abs(want)):
                wrong.append(f"{text(line.item, d.style)} = {text(node, d.style)}: {value} and not {want}")
    return wrong
