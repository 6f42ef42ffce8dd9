"""Exit codes: 0 all right, 1 a check failed, 2 usage, 3 inconclusive, 4 an input file, 70 internal, 130 Ctrl-C."""

from __future__ import annotations

# by name, because the classes live in a package that is not imported for `--help`
_CODES = {
    "KernelError": 1,
    "UndecidedError": 3,
    "FileFormatError": 4,
    "InputValueError": 4,
    "SymattnError": 2,
}


def exit_code(error: BaseException) -> int | None:
    """The exit code of an error; None for those that the command line parser handles itself.

    >>> from symattn.errors import GrammarError, FileFormatError
    >>> exit_code(GrammarError("x")), exit_code(FileFormatError("x")), exit_code(ZeroDivisionError())
    (2, 4, 70)
    """
    names = [c.__name__ for c in type(error).__mro__]
    if any(c.__module__.partition(".")[0] in ("click", "typer") for c in type(error).__mro__):
        return None
    for name in names:
        if name in _CODES:
            return _CODES[name]
    return 70
