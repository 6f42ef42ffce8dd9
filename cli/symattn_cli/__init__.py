"""The command line of symattn: the typer application and one module a command."""

from symattn_cli.app import app as app

__all__ = ["app"]
