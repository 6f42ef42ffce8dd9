"""``symattn prove``: statements about attention, proved when asked, and which of them hold for a definition of one's own."""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from symattn_cli.options import DefinitionFlags, definition_from, with_definition

if TYPE_CHECKING:
    from symattn.theorems.theorem import Result


@with_definition
def command(
    definition: DefinitionFlags,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Theorems to prove; without any, the list of all.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Prove all of them; print a table.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Write JSON; exact numbers are strings.")] = False,
) -> None:
    """Prove theorems about attention.

    Each runs its proof and says for which sizes it holds and how that was shown. With definition flags it is asked of that
    definition: a theorem whose condition the program does not meet is not applicable, and exact numbers show it.

    Exit codes: 0 proved or not applicable, 1 refuted, 2 usage, 3 open.
    """
    if names and all_:
        raise typer.BadParameter("give names or --all, not both", param_hint="--all")
    from symattn.theorems.catalogue import FAMILIES, get
    from symattn.theorems.catalogue import names as known
    from symattn.theorems.report import listing

    if not names and not all_:
        typer.echo(listing(FAMILIES), nl=False)
        return
    rows = [get(n) for n in (names or known())]
    asked = definition_from(definition) if _is_given(definition) else None
    results: list[Result] = []
    for k, row in enumerate(rows):
        from symattn.theorems.proving import prove_theorem

        results.append(prove_theorem(row, asked))
        if not json_:
            _show(results[-1], first=k == 0, short=all_, whole=asked is None and not all_)
    if json_:
        import json

        from symattn.theorems.report import to_json

        typer.echo(json.dumps(to_json(results), indent=2, ensure_ascii=False))
    elif all_:
        typer.echo(_summary(results))
    if any(r.failed for r in results):
        raise typer.Exit(1)
    if any(r.undecided for r in results):
        raise typer.Exit(3)


def _is_given(flags: DefinitionFlags) -> bool:
    """Whether any flag says what is meant; without one each theorem takes the definition that it is about."""
    return any(getattr(flags, f.name) not in (None, False, []) for f in fields(flags))


def _show(result: Result, first: bool, short: bool, whole: bool) -> None:
    """A row of the table as soon as it is known, or the theorem at length, with what becomes of it outside its condition."""
    from symattn.theorems.report import at_length, table

    if short:
        lines = table([result]).splitlines()
        typer.echo("\n".join(lines if first else lines[1:]))
        sys.stdout.flush()
        return
    typer.echo(("" if first else "\n") + at_length(result))
    if whole and result.theorem.outside is not None:
        from symattn.definition import Definition
        from symattn.theorems.proving import prove_theorem
        from symattn.theorems.report import outside

        typer.echo(outside(prove_theorem(result.theorem, Definition.of(**result.theorem.outside))))


def _summary(results: list[Result]) -> str:
    counts: dict[str, int] = {}
    for r in results:
        counts[r.verdict] = counts.get(r.verdict, 0) + 1
    return ", ".join(f"{n} {verdict}" for verdict, n in counts.items()) + f" in {sum(r.seconds for r in results):.0f} s"
