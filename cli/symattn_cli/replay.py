"""`symattn verify --replay FILE`: the run of a JSON report again, by the command line that the report holds."""

from __future__ import annotations

from typing import Any

import typer

OTHERS = ("kernel", "format", "output", "save", "strict", "verbose", "arithmetic", "backward_kernel")
"""What may be said beside the report: another kernel, how it computes, and what becomes of the answer."""


ANSWER = ("format", "output", "save", "verbose")
"""What becomes of the answer: never taken from a report, which may come from elsewhere and must not say what is written where."""


def replay(path: str, context: typer.Context) -> None:
    """Run the command line of a report, with what was said beside it in the place of what the report says.

    Parameters
    ----------
    path
        A report as ``--format json`` writes it.
    context
        That of the command line that asked for it.

    Raises
    ------
    FileFormatError
        When it is no report, or the report of a run in Python.
    typer.BadParameter
        When something else was said that the report says.
    """
    words = command_line(path)
    said = {n: v for n, v in context.params.items() if n != "replay_file" and _typed(context, n)}
    for name in said:
        if name not in OTHERS:
            flag = "--" + name.replace("_", "-")
            raise typer.BadParameter("is said by the report that is replayed", param_hint=flag)
    again: Any = context.command.make_context("verify", words, parent=context.parent)
    again.params |= {n: context.params[n] for n in ANSWER} | said
    with again:
        context.command.invoke(again)


def command_line(path: str) -> list[str]:
    """The words after ``symattn verify`` of the report in a file.

    Raises
    ------
    FileFormatError
        When there is no such file, or nothing in it that can be run again.
    """
    import json
    import shlex
    from pathlib import Path

    from symattn.errors import FileFormatError

    if Path(path).suffix in (".npz", ".safetensors") and Path(path).is_file():
        raise FileFormatError(
            f"{path} holds tensors, as --save writes them, and --replay takes a report (--format json -o FILE.json); "
            "--inputs runs a kernel on these tensors, --recorded judges the results among them"
        )
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileFormatError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise FileFormatError(f"{path} is no report of --format json: {error}") from error
    line = document.get("replay") if isinstance(document, dict) else None
    if not isinstance(line, str):
        raise FileFormatError(f"{path} is no report of --format json: it has no line 'replay'")
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise FileFormatError(f"{path}: its line 'replay' cannot be read: {error}") from error
    if words[:2] != ["symattn", "verify"] or any(w.startswith("--replay") for w in words):
        raise FileFormatError(
            f"{path}: its line 'replay' is no command line of symattn verify (a run in Python has none): {line!r}"
        )
    return words[2:]


def _typed(context: typer.Context, name: str) -> bool:
    """Whether a parameter was on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
