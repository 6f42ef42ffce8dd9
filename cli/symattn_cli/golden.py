"""`symattn golden`: inputs, correctly rounded results and per-element bounds as files, for tests in any language."""

from __future__ import annotations

from typing import Annotated

import typer

from symattn_cli.options import DefinitionFlags, with_definition


@with_definition
def command(
    definition: DefinitionFlags,
    output: Annotated[str, typer.Option("-o", "--output", metavar="DIR", help="A new folder.")],
    dtype: Annotated[
        list[str] | None,
        typer.Option("--dtype", metavar="FORMAT", help="Of inputs and results; may be repeated; default float32."),
    ] = None,
    round_to: Annotated[
        list[str] | None, typer.Option("--round", metavar="FORMAT", help="Results in this format too; may be repeated.")
    ] = None,
    shape: Annotated[
        str | None, typer.Option("--shape", metavar="B,H,HKV,N,M,D[,DV]", help="Sizes of one further input, named shape.")
    ] = None,
    only: Annotated[str | None, typer.Option("--only", metavar="KIND,..", help="These inputs of the pack alone.")] = None,
    skip: Annotated[str | None, typer.Option("--skip", metavar="KIND,..", help="Not these inputs of the pack.")] = None,
    max_len: Annotated[
        int | None, typer.Option("--max-len", metavar="N", min=1, help="The greatest number of queries and keys in the pack.")
    ] = None,
    require: Annotated[
        str | None, typer.Option("--require", metavar="TEXT", help="What sizes have to fulfil, such as 'd % 8 == 0, n == m'.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="The same seed gives the same inputs.")] = 0,
    arithmetic: Annotated[
        str | None,
        typer.Option(
            "--arithmetic", metavar="NAME", help="How kernels compute that the bounds are for; default: fits the dtype."
        ),
    ] = None,
    backward: Annotated[bool, typer.Option("--backward", help="Gradients too.")] = False,
) -> None:
    """Write golden files: a folder per dtype and input with .npy files, the same as .safetensors, and manifest.json.

    What a kernel makes of them is judged by symattn verify --golden DIR --outputs DIR2.

    Exit codes: 0 written, 2 usage, 3 some result has no single nearest number in a format that was asked for, whatever the
    precision, 4 a folder that cannot be used.
    """
    from symattn.verify.golden.writing import Request, write_golden
    from symattn.verify.inputs import Choice
    from symattn_cli.documents import progress
    from symattn_cli.options import definition_from

    request = Request(
        definition=definition_from(definition),
        dtypes=tuple(dtype or ["float32"]),
        rounded_to=tuple(round_to or []),
        choice=Choice.of(shape, only, skip, max_len, require),
        seed=seed,
        arithmetic=arithmetic,
        backward=backward,
    )
    done = write_golden(request, output, progress)
    progress("")
    for name in done.cases:
        count = done.undecided.get(name, 0)
        typer.echo(f"{name}" + (f": {count} results have no single nearest number" if count else ""))
    typer.echo(f"{len(done.cases)} cases, {done.files} files in {output}")
    if done.undecided:
        raise typer.Exit(3)
