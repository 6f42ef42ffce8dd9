"""``symattn catalog``: the variants that symattn knows, and all there is to say about one of them."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A variant; without one, the list of all.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """List the variants of attention, or show one: idea, formula, conventions, source, what it becomes at which parameters."""
    from symattn import variants

    if name is not None:
        variants.get(name)
    from symattn import catalogue

    if not json_:
        typer.echo(catalogue.listing() if name is None else catalogue.to_text(catalogue.entry(name)), nl=False)
        return
    import json

    if name is None:
        rows = [
            {"name": n, "family": variants.family_of(n), "idea": v.idea, "source": v.source}
            for n, v in variants.CATALOGUE.items()
        ]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        typer.echo(json.dumps(catalogue.entry(name).to_dict(), indent=2, ensure_ascii=False))
