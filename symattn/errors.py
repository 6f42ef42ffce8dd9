"""Every exception that symattn raises, with a line of meaning each.

All of them subclass :class:`SymattnError` and, beside it, the built-in exception that a user would catch. A message says
what was wrong and where, what was given and what is allowed, and what to do; :func:`nearest` finds the names to suggest.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SymattnError(Exception):
    """Anything that symattn refuses; catch this to catch them all. A message ends where its text does, never in a blank.

    >>> str(SymattnError(f"no such thing. {nearest('x', [])}"))
    'no such thing.'
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(a.rstrip() if isinstance(a, str) else a for a in args))


class ProgramError(SymattnError, ValueError):
    """A statement or a program that has no meaning: an unbound index, a tensor read before it is defined."""


class NotDifferentiableError(SymattnError, TypeError):
    """A gradient was asked for through something that has none: a maximum that is not known to cancel."""


class ProofError(SymattnError, ValueError):
    """A claim (``range_only``, a rewriting) that the normal form does not prove."""


class NotStatedError(SymattnError, ValueError):
    """A theorem about a tensor that a definition does not have: it says nothing of it."""


class DefinitionError(SymattnError, ValueError):
    """Fields of a definition that contradict each other or hold a value that they do not allow."""


class UnknownFieldError(DefinitionError, TypeError):
    """A keyword that is no field of a definition; the message names the nearest."""


class GrammarError(SymattnError, ValueError):
    """Text of a score, a mask or a scale that is outside the small grammar."""


class ShapeError(SymattnError, ValueError):
    """Arrays whose shapes do not fit the definition or each other: mismatched heads, an empty axis."""


class InputValueError(SymattnError, ValueError):
    """A value that cannot be used: NaN or infinity where something reads it, text that is no number."""


class EmptyRowError(SymattnError, ValueError):
    """A query that may attend to no key at all, under the convention ``empty_row="error"``."""


class FileFormatError(SymattnError, ValueError):
    """A file that cannot be read: truncated, pickled, not of its kind, or without what it must hold."""


class UnknownNameError(SymattnError, LookupError):
    """A variant, kernel, field, format or example that does not exist; the message names the nearest ones."""


class KernelError(SymattnError, RuntimeError):
    """The kernel under test raised, or returned something that is not what the convention asks for."""


class WorkerError(SymattnError, RuntimeError):
    """Work that others should do was not done: no scheduler answers, or worker after worker was lost."""


class MissingDependencyError(SymattnError, ImportError):
    """An optional package that this call needs is not installed."""


class TypesettingError(SymattnError, RuntimeError):
    """TeX did not make a PDF of a document: it stopped at an error, or took too long."""


class UndecidedError(SymattnError, ArithmeticError):
    """The precision reached its cap and the question is still open."""


class LimitError(SymattnError, ValueError):
    """A request too large to be answered: size, digits or depth beyond the stated limit."""


MOST = 24
"""As many known names are shown where none is near."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'a', 'b'?`` for the known names nearest to ``name``, or the whole list when none is near.

    >>> nearest("casual", ["causal", "window"])
    "Did you mean 'causal'?"
    >>> nearest("zzz", ["causal", "window"])
    "Known: 'causal', 'window'."
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if close:
        return "Did you mean " + ", ".join(repr(c) for c in close) + "?"
    shown, more = names[:MOST], len(names) - MOST
    return "Known: " + ", ".join(repr(c) for c in shown) + (f" and {more} more." if more > 0 else ".") if names else ""


class UnfitError(SymattnError, ValueError):
    """An engine does not take a program or these inputs; the message says why, and another one does."""
