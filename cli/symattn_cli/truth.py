"""`symattn truth`: the exact values of a definition on recorded tensors, with a proven radius."""

from __future__ import annotations

from typing import Annotated

import typer

from symattn_cli.options import DefinitionFlags, with_definition


@with_definition
def command(
    definition: DefinitionFlags,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A .npz or .safetensors file: query, key, value ...")],
    output: Annotated[str, typer.Option("-o", "--output", metavar="OUT.npz", help="Where NAME.mid, .rad and .status go.")],
    digits: Annotated[
        int | None, typer.Option("--digits", metavar="N", min=1, help="Significant digits to guarantee; default 50.")
    ] = None,
    bits: Annotated[int | None, typer.Option("--bits", metavar="N", min=2, help="One evaluation at this precision.")] = None,
    round_to: Annotated[
        str | None, typer.Option("--round", metavar="FORMAT", help="The correctly rounded values in a float format.")
    ] = None,
    gradient: Annotated[bool, typer.Option("--grad", help="Gradients too; the file holds grad_out.")] = False,
    layout: Annotated[str, typer.Option("--layout", metavar="bhsd|bshd", help="Of the file's arrays.")] = "bhsd",
) -> None:
    """Write the exact output, log-sum-exp and derivatives as midpoints and radii.

    Directions in the file (tangent_query ... of the shape of what moves) give the tangents tangent_out and tangent_lse, and with
    --grad the Hessian-vector products hvp_query, hvp_key ...; a direction that the file lacks is 0.

    With --digits or --bits midpoints and radii are decimal text; with --round the midpoint is a number of the format, and
    the radius bounds its distance from the exact value. A status is exact, enclosed or undecided; an undecided element gives
    exit code 3.
    """
    if sum(x is not None for x in (digits, bits, round_to)) > 1:
        raise typer.BadParameter("--digits, --bits and --round exclude each other")
    from symattn.verify.truthfile import write_truth
    from symattn_cli.options import definition_from

    undecided = write_truth(
        file, output, definition_from(definition), digits=digits, bits=bits, round_to=round_to, gradient=gradient, layout=layout
    )
    for name, (count, total) in undecided.items():
        typer.echo(f"{name}: {total} elements, {count} undecided" if count else f"{name}: {total} elements")
    if any(count for count, _ in undecided.values()):
        raise typer.Exit(3)
