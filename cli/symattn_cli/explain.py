"""``symattn explain``: the faults that a diagnosis names, and all there is to say about one of them."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    fault: Annotated[str | None, typer.Argument(metavar="[FAULT]", help="Such as F13; without one, the list of all.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """List the faults that kernels have, or explain one: what it computes, what is right, where to look, where it shipped."""
    from symattn.verify.faults import page
    from symattn.verify.faults.catalogue import CATALOGUE, find

    rows = list(CATALOGUE.values()) if fault is None else [find(fault)]
    if json_:
        import json

        data = [page.entry(f) for f in rows]
        typer.echo(json.dumps(data if fault is None else data[0], indent=2, ensure_ascii=False))
        return
    typer.echo(page.listing() if fault is None else page.to_text(rows[0]), nl=False)
