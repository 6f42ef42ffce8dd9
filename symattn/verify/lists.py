"""The list of statements that a kernel follows, chosen by its declared algorithm: bounds belong to a list as it is written.

``naive``: P = E/l, then O = P V; backward from the kept weights, D = sum_j P dP. ``log``: the same with P = exp(Z - L).
``flash``: O = N/l; the backward recomputes the weights from the saved LSE, P = exp(Z - L), and takes D = sum_c dO O from the
saved output.
"""

from __future__ import annotations

from collections.abc import Iterable

from symattn.arithmetic import Arithmetic
from symattn.presentation import Presented, normalise_last, recompute, through_lse
from symattn.program import Program


def kernel_program(program: Program, presented: Presented | None, arithmetic: Arithmetic) -> Program:
    """Forward, and backward where a gradient is given, as a kernel of the declared algorithm computes it.

    Parameters
    ----------
    program
        The definition's program.
    presented
        Its gradient, presented; None for the forward alone.
    arithmetic
        Whose ``algorithm`` selects the list.

    Returns
    -------
    Program
        Its outputs are those of ``program``, then the gradients.

    >>> from symattn.arithmetic import get
    >>> from symattn.definition import Definition
    >>> program = Definition(lse=False).program()
    >>> print(kernel_program(program, None, get("flash-bf16"))["O"])
    O[i, e] = N[i, e]/l[i]
    """
    if arithmetic.algorithm == "flash":
        return normalise_last(program) if presented is None else recompute(program, presented)
    if presented is not None:
        outputs = dict.fromkeys((*program.outputs, *presented.program.outputs))
        program = presented.program.with_statements(presented.program.statements, tuple(outputs))
    return through_lse(program) if arithmetic.algorithm == "log" else program


def staged(program: Program, saved: Iterable[str]) -> Program:
    """The part of a kernel's list that starts from saved tensors: these become inputs, the other outputs stay.

    >>> from symattn.program import Statement, indices, size, tensor
    >>> i, j = indices("i j")
    >>> rows = Statement(tensor("l", i), tensor("E", i, j), (j,))
    >>> weights = Statement(tensor("P", i, j), tensor("E", i, j) / tensor("l", i))
    >>> whole = Program((rows, weights), {i: size("n"), j: size("m")}, ("l", "P"))
    >>> staged(whole, ["l"]).inputs
    ('E', 'l')
    """
    names = frozenset(saved)
    outputs = tuple(o for o in program.outputs if o not in names)
    return program.with_statements([s for s in program if s.name not in names], outputs).live()
