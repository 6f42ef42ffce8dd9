"""The typer application: registers the commands."""

from __future__ import annotations

import typer

app = typer.Typer(
    name="symattn", no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=True
)


@app.callback()
def main() -> None:
    """The exact reference for the attention mechanism."""
