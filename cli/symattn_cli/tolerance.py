"""`symattn tolerance`: what a test elsewhere may ask of a kernel: bounded errors, and a pair of atol and rtol."""

from __future__ import annotations

from typing import Annotated

import typer

from symattn_cli.options import DefinitionFlags, with_definition


@with_definition
def command(
    definition: DefinitionFlags,
    shape: Annotated[str, typer.Option("--shape", metavar="B,H,HKV,N,M,D[,DV]", help="Sizes of the inputs.")],
    arithmetic: Annotated[
        str | None,
        typer.Option("--arithmetic", metavar="NAME|FILE.toml", help="How the kernel computes: a preset or a TOML table."),
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", metavar="FORMAT", help="In place of --arithmetic: a tiled kernel of this format.")
    ] = None,
    grad: Annotated[bool, typer.Option("--grad", help="Gradients too, of a loss that reads the output.")] = False,
    max_query: Annotated[
        str | None, typer.Option("--max-query", metavar="X", help="Greatest |query| of the bounded error.")
    ] = None,
    max_key: Annotated[str | None, typer.Option("--max-key", metavar="X", help="Greatest |key|.")] = None,
    max_value: Annotated[str | None, typer.Option("--max-value", metavar="X", help="Greatest |value|.")] = None,
    max_other: Annotated[
        list[str] | None, typer.Option("--max", metavar="FIELD=X", help="The same for another input: sinks=5, bias=2 ...")
    ] = None,
    law: Annotated[str, typer.Option("--law", metavar="NAME", help="Inputs of the estimates: a kind of the pack.")] = "normal",
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="The same seed gives the same inputs.")] = 0,
    format: Annotated[str, typer.Option("--format", metavar="text|json", help="What is written to stdout.")] = "text",
) -> None:
    """Print the error that no correct kernel exceeds, and atol and rtol that cover the derived bounds.

    Bounded: for all inputs within the magnitudes (those of the law's input where none is given). Estimated: on one seeded
    input of a law. For each the error of the scale that it would let through.
    """
    if format not in ("text", "json"):
        raise typer.BadParameter(f"text or json, got {format!r}", param_hint="--format")
    if (arithmetic is None) == (dtype is None):
        said = "give one of --arithmetic and --dtype" + ("" if dtype is None else ", not both")
        raise typer.BadParameter(said, param_hint="--arithmetic")
    from symattn.arithmetic import default_for
    from symattn.errors import DefinitionError
    from symattn.verify.tolerance.pairs import tolerances
    from symattn_cli.options import definition_from

    given = {"query": max_query, "key": max_key, "value": max_value}
    magnitudes = {k: x for k, x in given.items() if x is not None}
    for text in max_other or []:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or name.strip() in magnitudes:
            raise DefinitionError(f"--max takes FIELD=X, each field once, got {text!r}")
        magnitudes[name.strip()] = value.strip()
    declared = default_for(dtype) if dtype is not None else arithmetic
    assert declared is not None  # one of the two is asked for above
    found = tolerances(definition_from(definition), shape, declared, magnitudes=magnitudes, law=law, seed=seed, gradient=grad)
    typer.echo(found.to_json() if format == "json" else found.to_text())
