"""``symattn cost``: what a layer costs, as functions of its sizes; one statement by statement, or several side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from symattn_cli.forms import FORMATS, FormFlags
from symattn_cli.options import DefinitionFlags, definition_from, with_definition


@with_definition
def command(
    definition: DefinitionFlags,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[VARIANT]...", help="Variants of the catalogue; default plain attention.")
    ] = None,
    gradient: Annotated[bool, typer.Option("--gradient", help="Count the statements of the gradient too.")] = False,
    baseline: Annotated[
        bool, typer.Option("--baseline/--no-baseline", help="Put a simple recurrent layer beside several variants.")
    ] = True,
    format: Annotated[str, typer.Option("--format", metavar="|".join(FORMATS), help="What is written.")] = "text",
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to a file.")] = None,
) -> None:
    """Count operations, bytes, steps that wait for each other and paths, as functions of sizes.

    One variant is counted statement by statement, with flags going over it; several are set side by side.
    """
    written = FormFlags(format, output=output)
    written.refuse()
    from symattn.cost.page import compared, cost_of

    if names and len(names) > 1:
        from symattn.errors import DefinitionError

        if len(set(names)) < len(names):
            raise DefinitionError("a variant is named twice")
        rows = {n: definition_from(replace(definition, variant=n)) for n in names}
        page = compared(rows, gradient, baseline)
    else:
        name = names[0] if names else None
        page = cost_of(definition_from(replace(definition, variant=name)), gradient, name or "")
    written.write(written.document(page))
