"""That two programs are the same function for all sizes, proved from tensor to tensor: latent attention, expanded and absorbed.

A tensor that both programs define under one name and that is proved equal is taken as given in what follows, so that no proof is
longer than from one such tensor to the next: a softmax of scores that are equal need not be opened.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from symattn.adjoint import adjoint
from symattn.claims import prove_range_only
from symattn.definition import Definition
from symattn.program import Program
from symattn.theorems.duality import prove_equal_gradients

__all__ = ["Same", "prove_absorption", "prove_same"]


@dataclass(frozen=True)
class Same:
    """How two programs were compared.

    Parameters
    ----------
    outputs
        The names that were asked for.
    identical
        Tensors that both compute by the same statements from tensors known to be equal.
    proved
        Tensors whose equality was proved by the normal form, for all sizes.
    open
        Outputs of which no proof was found.
    """

    outputs: tuple[str, ...]
    identical: tuple[str, ...]
    proved: tuple[str, ...]
    open: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether all outputs are proved equal."""
        return not self.open

    def __str__(self) -> str:
        if self.open:
            return f"not proved: {', '.join(self.open)}"
        ways = ((self.proved, "by the normal form"), (self.identical, "by the same statements"))
        return "for all sizes: " + "; ".join(f"{', '.join(names)} {how}" for names, how in ways if names)


def prove_same(first: Program, second: Program, outputs: Iterable[str] | None = None) -> Same:
    """Prove that two programs compute the same outputs, whatever the sizes.

    Parameters
    ----------
    first, second
        Programs with the same inputs; ``range_only`` claims of both are proved first.
    outputs
        Names that both define; by default the outputs of ``first``.

    Returns
    -------
    Same
        True where every output is proved equal, wherever the expressions are defined; its text says how.

    Raises
    ------
    ProofError
        When a ``range_only`` claim is not proved.

    >>> from symattn.program import Program, Statement, indices, size, tensor
    >>> i, j, k = indices("i j k")
    >>> A, B, x = tensor("A", i, j), tensor("B", j, k), tensor("x", k)
    >>> dims = {i: size("n"), j: size("m"), k: size("d")}
    >>> y, u, C = tensor("y", i), tensor("u", j), tensor("C", i, k)
    >>> inner = Program((Statement(u, B * x, (k,)), Statement(y, A * u, (j,))), dims, ("y",))
    >>> outer = Program((Statement(C, A * B, (j,)), Statement(y, C * x, (k,))), dims, ("y",))
    >>> print(prove_same(inner, outer))
    for all sizes: y by the normal form
    """
    wanted = tuple(first.outputs if outputs is None else outputs)
    for program in (first, second):
        prove_range_only(program)
    known: set[str] = set()
    identical, proved = [], []
    for s in first:
        if s.name not in second:
            continue
        a, b = _from(first, s.name, known), _from(second, s.name, known)
        if a.statements == b.statements and all(a.dims[x] == b.dims[x] for s in a for x in s.domain):
            identical.append(s.name)
        elif prove_equal_gradients(a, b):
            proved.append(s.name)
        else:
            continue
        known.add(s.name)
    return Same(wanted, tuple(identical), tuple(proved), tuple(o for o in wanted if o not in known))


def _from(program: Program, name: str, known: set[str]) -> Program:
    """What leads to a tensor from those that are known, which are inputs now."""
    return program.with_statements((s for s in program if s.name == name or s.name not in known), (name,)).live()


def prove_absorption(definition: Definition | None = None, *, gradient: bool = False) -> Same:
    """Latent attention with its up-projections absorbed is the expanded one, for all sizes.

    Parameters
    ----------
    definition
        Fields beside the form (masks, rotation, heads); several heads by default.
    gradient
        Whether the gradients with respect to all inputs are compared too.

    Returns
    -------
    Same
        True where it is proved.

    References
    ----------
    arXiv 2405.04434, section 2.1.2.

    >>> print(prove_absorption())
    for all sizes: Rlat, O by the normal form; Rrope, R, scale, S, m, E, l, P, L by the same statements
    """
    d = definition if definition is not None else Definition(form="mla", heads=2)
    expanded, absorbed = (d.replace(form=form).program() for form in ("mla", "mla-absorbed"))
    if not gradient:
        return prove_same(expanded, absorbed)
    one, other = adjoint(expanded), adjoint(absorbed)
    return prove_same(one, other, (*expanded.outputs, *one.outputs))
