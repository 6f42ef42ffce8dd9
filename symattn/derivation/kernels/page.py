"""The page of a kernel: the definition in steps, then from it to the algorithm, pseudo-code, and the proof of equality."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import sympy as sp

from symattn.algorithms import EQUAL, gradient_by_tiles, plain
from symattn.definition import Definition
from symattn.derivation.blocks import Prose, Section
from symattn.derivation.document import Derivation
from symattn.derivation.engine import derive
from symattn.derivation.kernels.backward import backward_sections, saved_sections
from symattn.derivation.kernels.induction import Walking, tiles_section
from symattn.derivation.kernels.loops import Kernel
from symattn.derivation.kernels.lowering import lowered
from symattn.derivation.kernels.merging import merging_sections
from symattn.derivation.kernels.proof import known_of, proof_sections
from symattn.derivation.kernels.pseudocode import pseudocode
from symattn.derivation.kernels.table import Row, get
from symattn.derivation.script import Script
from symattn.derivation.shaping import with_constants_in_place
from symattn.errors import DefinitionError
from symattn.forms.algorithms import tiles_for
from symattn.indexed import index
from symattn.program import Program
from symattn.readings.latex import Letters
from symattn.theorems.walks import Walk

__all__ = ["algorithm_of", "derive_kernel", "kernel_of"]

LETTERS = Letters(tensors={**Letters().tensors, "lk": r"\ell_{\mathrm{keys}}"}, symbols={**Letters().symbols, "tiles": "T"})
WORDS = {"i": "query", "t": "tile", "j": "key", "h": "head", "k": "head of the keys", "g": "head of its group"}
MERGED = {"m": r"\mu", "m0": r"\mu_0"}
"""The shift of a merge: m is the number of keys in the same lines, and this maximum is one of log-sum-exps."""
ROW = index("i")
NOWHERE = (
    "Where the condition of a line does not hold, the line gives 0; one that adds to a variable, or takes the maximum with it, "
    "leaves it as it is. A sum over no places is 0, a maximum over none is -∞, and what lies behind the last key is not loaded."
)


def derive_kernel(kernel: str, definition: Definition | None = None, form: str = "both", title: str = "") -> Derivation:
    """The derivation of a kernel: from a definition to the algorithm that computes it.

    Parameters
    ----------
    kernel
        A name of :data:`symattn.derivation.kernels.KERNELS`.
    definition
        What the kernel computes; plain attention by default. Its field ``algorithm`` is set by the kernel.
    form
        The form of the steps of the definition.
    title
        The name of what is computed, for the heading.

    Returns
    -------
    Derivation
        The steps of the definition (and of its gradient, for a backward kernel), and sections with the state, its invariant,
        the induction, pseudo-code made of the statements, the steps of the proof, and a wrong kernel that the proof refuses.

    Raises
    ------
    UnknownNameError
        When there is no such kernel.
    DefinitionError
        When no such algorithm exists for the definition: linear attention has no softmax to be merged.

    Notes
    -----
    The proof is run when the page is made: a kernel that is not proved for all sizes is labelled so. Sources: the row's.

    >>> page = derive_kernel("online-softmax")
    >>> [s.title for s in page.sections][3:6]
    ['Base: the first tile', 'Step: one more tile', 'After the last tile']
    """
    row = get(kernel)
    d = algorithm_of(row, definition or Definition())
    base = derive(plain(d), gradient=row.backward, form=form)
    return replace(
        base,
        title=f"{row.title}{f': {title}' if title else ''}",
        about=row.idea,
        definition=base.definition + (", " if base.definition else "") + f"algorithm={row.algorithm}",
        conventions=d.conventions(),
        sections=tuple(_sections(row, d)),
    )


def algorithm_of(row: Row, d: Definition) -> Definition:
    """The definition with the algorithm of a kernel, tiles of any size, the log-sum-exp among its outputs."""
    try:
        return d.replace(algorithm=None, block=None).replace(algorithm=row.algorithm, lse=True)
    except DefinitionError as why:
        raise DefinitionError(f"there is no {row.name} for this definition: {why}") from why


def _sections(row: Row, d: Definition) -> Iterator[Section]:
    known = []
    if row.forward:
        walk = Walk.forward(d)
        script = _script(walk.program)
        known.append(known_of(d, gradient=False))
        yield from merging_sections(walk, script) if row.algorithm == "split" else Walking(walk, script).sections()
        yield _pseudocode(row, d, False, known[-1].says)
    if row.backward:
        program = gradient_by_tiles(d).program
        script = _script(program)
        known.append(known_of(d, gradient=True))
        yield from saved_sections(d, script)
        if not row.forward:
            yield tiles_section(Walk.forward(d), script)
        yield from backward_sections(d, script)
        yield _pseudocode(row, d, True, known[-1].says)
    yield from proof_sections(row, d, tuple(known), script)
    yield Section("Source", (Prose((row.source + ".",)),))


def _script(program: Program) -> Script:
    return Script(program, _letters(program), frozenset(_heads(program)))


def _letters(program: Program) -> Letters:
    names = {*program.inputs, *(s.name for s in program)}
    letters = replace(LETTERS, tensors={**LETTERS.tensors, **MERGED}) if "wt" in names else LETTERS
    found = Letters.of(letters, names, [a.name for a in program.dims])
    before = {f"{n}'": f"{found.tensor(n).tex()}'" for n in names if f"{n}'" not in names}  # the value of the turn before
    return replace(found, tensors={**found.tensors, **before})


def _heads(program: Program) -> tuple[sp.Symbol, ...]:
    """The indices of heads: those before the index of the query."""
    return tuple(dict.fromkeys(a for s in program if ROW in s.indices for a in s.indices[: s.indices.index(ROW)] if a != ROW))


def _pseudocode(row: Row, d: Definition, gradient: bool, says: str) -> Section:
    kernel, program = kernel_of(d, gradient)
    heads = frozenset(_heads(program))
    title = row.title + (", backward" if gradient and row.forward else "")
    block = pseudocode(title, kernel, program, _letters(program), heads, WORDS)
    parts = ["Every line is a statement of the list that is proved below; variables are overwritten from turn to turn.", NOWHERE]
    if d.algorithm != "online":
        parts.append("A kernel takes a block of queries at once: rows do not meet.")
    if any(a.onto and a.target.has(sp.Indexed) for a in kernel.assigned()) and gradient:
        parts.append("Where a loop adds to memory, turns may also run side by side and add atomically.")
    return Section("The algorithm", (Prose((" ".join(parts),)), block), says)


def kernel_of(d: Definition, gradient: bool = False) -> tuple[Kernel, Program]:
    """The loops of an algorithm's list, and the list.

    >>> kernel, _ = kernel_of(Definition(algorithm="flash", lse=True))
    >>> kernel.gives
    ('O', 'L')
    """
    program = gradient_program(d) if gradient else with_constants_in_place(d.program()).live()
    return lowered(program, _loops(program, d, gradient), ROW, tiles_for(d)), program


def gradient_program(d: Definition) -> Program:
    """The statements of the gradient by tiles alone: what the forward pass keeps is an input."""
    made = gradient_by_tiles(d)
    program = with_constants_in_place(made.program)
    forward = {s.name for s in made.program.statements[: made.forward]}
    tile = tiles_for(d).tile
    kept = [
        s for s in program if s.name not in forward or (s.name not in EQUAL and not s.reads and tile in s.indices and not s.over)
    ]
    own = {s.name for s in kept}
    shapes: dict[str, Any] = {**program.shapes, **{s.name: program.shape_of(s) for s in program if s.name not in own}}
    return program.with_statements(kept, [o for o in program.outputs if o in own], shapes=shapes).live()


def _loops(program: Program, d: Definition, gradient: bool) -> Sequence[sp.Symbol]:
    """Which indices are looped over: heads, queries, tiles; backward, where tiles are the same for all queries, tiles outside."""
    tiles = tiles_for(d)
    heads = tuple(a for a in _heads(program) if a not in tiles.axes)
    fixed = ROW not in {a for x in tiles.position.atoms(sp.Indexed) for a in x.indices}
    if not (gradient and fixed):
        return (*heads, ROW, tiles.tile)
    at_keys = {a for s in program if tiles.axes[-1] in s.indices and ROW not in s.indices for a in s.indices}
    shared = tuple(a for a in heads if not at_keys or a in at_keys)
    return (*shared, tiles.tile, *(a for a in heads if a not in shared), ROW)
