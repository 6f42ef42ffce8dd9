"""A program as a plain Python function of its inputs, in the number type of one reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

import sympy as sp

from symattn.errors import ProgramError, UnknownNameError, nearest
from symattn.program import Program

READINGS: Mapping[str, tuple[str, ...]] = {"exact": (), "mpmath": ("digits",), "balls": ("bits",), "numpy": ("dtype",)}
"""The readings that give values, and the options of each."""


def lambdify(
    program: Program,
    reading: str = "numpy",
    outputs: str | Iterable[str] | None = None,
    *,
    sizes: Mapping[sp.Symbol | str, int] | None = None,
    **options: Any,
) -> Callable[..., Any]:
    """The function from the inputs of a program to some of its tensors.

    Parameters
    ----------
    program
        Any program; statements that no output depends on are not evaluated.
    reading
        ``"numpy"`` (``dtype=None``), ``"mpmath"`` (``digits=50``), ``"balls"`` (``bits=200``) or ``"exact"``.
    outputs
        A name (the function returns one array), names (a tuple of arrays); by default the outputs of the program.
    sizes
        Sizes that no input shows.
    options
        Those of the reading.

    Returns
    -------
    callable
        Takes the inputs by position, in the order of its ``inputs``, or by name. Inputs of the program that the outputs do not
        need are no arguments; by name they are passed over.

    Raises
    ------
    UnknownNameError
        For a reading or an option that does not exist.
    ProgramError
        For an output that the program does not define.

    >>> from symattn.program import Statement, indices, size, tensor
    >>> i, = indices("i")
    >>> p = Program((Statement(tensor("y", i), tensor("x", i) ** 2 / 3),), {i: size("n")}, ("y",))
    >>> lambdify(p, "exact", "y")(["0.1", 2]).tolist()
    [1/300, 4/3]
    """
    if reading not in READINGS:
        raise UnknownNameError(f"there is no reading {reading!r} that gives values. {nearest(reading, READINGS)}")
    for o in options:
        if o not in READINGS[reading]:
            raise UnknownNameError(f"the reading {reading!r} has no option {o!r}. {nearest(o, (*READINGS[reading], 'sizes'))}")
    wanted = (outputs,) if isinstance(outputs, str) else program.outputs if outputs is None else tuple(outputs)
    for name in wanted:
        if name not in program:
            raise ProgramError(f"the program defines no tensor {name!r}. {nearest(name, [s.name for s in program])}")
    lean = program.with_statements(program.statements, wanted).live()
    evaluate = import_module(f"symattn.readings.{reading}").evaluate
    single = isinstance(outputs, str) or (outputs is None and len(wanted) == 1)

    def function(*args: Any, **named: Any) -> Any:
        if len(args) > len(lean.inputs):
            raise TypeError(f"{len(args)} arguments for the inputs {', '.join(lean.inputs)}")
        given = dict(zip(lean.inputs, args, strict=False))
        twice = given.keys() & named.keys()
        if twice:
            raise TypeError(f"{', '.join(sorted(twice))} is given by position and by name")
        given |= {k: v for k, v in named.items() if k in lean.inputs or k not in program.inputs}
        found = evaluate(lean, given, sizes=sizes, **options)
        return found[wanted[0]] if single else tuple(found[name] for name in wanted)

    function.__name__ = function.__qualname__ = "_".join((reading, *wanted))
    function.__doc__ = f"{', '.join(wanted)} of ({', '.join(lean.inputs)}), by the {reading} reading."
    function.inputs = lean.inputs  # type: ignore[attr-defined]
    function.outputs = wanted  # type: ignore[attr-defined]
    return function
