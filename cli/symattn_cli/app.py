"""The typer application: registers the commands and turns errors into messages and exit codes.

Command modules import typer and the standard library only; SymPy and the rest are imported when a command runs.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from symattn_cli import audit, catalog, cost, derive, explain, golden, plot, prove, tolerance, truth, verify
from symattn_cli.exits import exit_code

_HIDDEN = re.compile(r"\n(?=\s*(?:::|##\[))|[^\n]")
"""Any character but a line end, and the line ends before what a runner of GitHub reads as a command."""


def shown(text: str) -> str:
    r"""The text of an error as a terminal and a runner may have it: what is not printable is escaped, line ends stay.

    A message may quote what a kernel or a file says. A line end stays a line end unless a workflow command would follow.

    >>> print(shown("the text\n  x +\n    ^ and \x1b[31m\r\n::set-output name=a"))
    the text
      x +
        ^ and \x1b[31m\r\n::set-output name=a
    """
    return _HIDDEN.sub(lambda m: m[0] if m[0].isprintable() else m[0].encode("unicode_escape").decode(), text)


class Guarded(TyperGroup):
    """A command group that reports every error as a message on stderr with the exit code of its kind, never as a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; see :func:`symattn_cli.exits.exit_code` for the codes."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # the reader of the output went away; Python must not complain about it again while it exits
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(141) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(130) from None
        except Exception as error:
            code = exit_code(error)
            if code is None:
                if isinstance(message := getattr(error, "message", None), str):
                    error.message = shown(message)  # type: ignore[attr-defined]  # the parser writes it
                raise
            if code == 70:
                typer.echo(f"internal error: {type(error).__name__}: {shown(str(error))}", err=True)
                typer.echo("This is a fault of symattn; SYMATTN_TRACEBACK=1 shows where it happened.", err=True)
            else:
                typer.echo(f"error: {shown(str(error))}", err=True)
            if os.environ.get("SYMATTN_TRACEBACK"):
                raise
            raise typer.Exit(code) from None


app = typer.Typer(
    cls=Guarded,
    name="symattn",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="The exact reference for the attention mechanism: derivations, gradients, ground truth, verified kernels.",
)


def _version(value: bool) -> None:
    if value:
        from symattn_cli.version import version_text

        typer.echo(version_text())
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and the backends in use.")
    ] = False,
) -> None:
    """Take the options that belong to no command."""


app.command("derive")(derive.command)
app.command("verify")(verify.command)
app.command("golden")(golden.command)
app.command("truth")(truth.command)
app.command("tolerance")(tolerance.command)
app.command("prove")(prove.command)
app.command("audit")(audit.command)
app.command("catalog")(catalog.command)
app.command("explain")(explain.command)
app.command("plot")(plot.command)
app.command("cost")(cost.command)
