"""Statements about attention, and their proofs: a theorem is a row of data, :func:`prove` runs its proof for a definition.

>>> from symattn.theorems import prove
>>> prove("rows-sum-to-one").scope
'all sizes'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symattn.definition import Definition
    from symattn.theorems.theorem import Result

__all__ = ["names", "prove"]


def names() -> tuple[str, ...]:
    """The names of all theorems."""
    from symattn.theorems import catalogue

    return catalogue.names()


def prove(name: str, definition: Definition | None = None) -> Result:
    """Run the proof of a theorem.

    Parameters
    ----------
    name
        A name of the catalogue of theorems.
    definition
        What it is asked of: which theorems hold depends on the program. By default a definition as general as the theorem is.

    Returns
    -------
    Result
        ``verdict`` is ``"proved"``, ``"not applicable"`` (with a ``reason`` and a ``counterexample``), ``"refuted"`` or
        ``"open"``; ``scope``, ``method`` and ``seconds`` say how far, how and how long.

    Raises
    ------
    UnknownNameError
        When there is no such theorem; the message names the nearest.

    >>> from symattn import Attention
    >>> found = prove("rows-sum-to-one", Attention(sink=True))
    >>> found.verdict, found.counterexample.left, found.counterexample.right
    ('not applicable', 2/3, 1)
    """
    from symattn.theorems.catalogue import get
    from symattn.theorems.proving import prove_theorem

    return prove_theorem(get(name), definition)
