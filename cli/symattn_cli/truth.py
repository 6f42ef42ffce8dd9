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
        int | None,
        typer.Option("--digits", metavar="N", min=1, help="Significant digits to guarantee; default 50."),
    ] = None,
    bits: Annotated[int | None, typer.Option("--bits", metavar="N", min=2, help="One evaluation at this precision.")] = None,
    round_to: Annotated[
        str | None,
        typer.Option("--round", metavar="FORMAT", help="The correctly rounded values in a float format."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="decided", help="Rounded in the format of the inputs."),
    ] = None,
    gradient: Annotated[bool, typer.Option("--grad", help="Gradients too; the file holds grad_out.")] = False,
    layout: Annotated[str, typer.Option("--layout", metavar="bhsd|bshd", help="Of the file's arrays.")] = "bhsd",
    tier: Annotated[
        str | None,
        typer.Option("--tier", metavar="NAME", help="This tier only: fractions, double, limbs or balls."),
    ] = None,
    assume: Annotated[bool, typer.Option("--assume", help="Values may rest on the accuracy of NumPy's functions.")] = False,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", min=1, help="Processes; default one a core, for large jobs."),
    ] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", metavar="ADDRESS", help="A Dask scheduler instead.")] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="FILE", help="What is done is kept here, and taken up again."),
    ] = None,
    report: Annotated[bool, typer.Option("--report", help="Say which tier found what, and why others did not.")] = False,
) -> None:
    """Write the exact output, log-sum-exp and derivatives as midpoints and radii.

    Directions in the file (tangent_query ... of the shape of what moves) give the tangents tangent_out and tangent_lse, and with
    --grad the Hessian-vector products hvp_query, hvp_key ...; a direction that the file lacks is 0.

    With --digits or --bits midpoints and radii are decimal text; with --round or --until the midpoint is a number of the format,
    and the radius bounds its distance from the exact value. A status is exact, enclosed, bounded (under an assumption), tiny or
    undecided; an undecided element gives exit code 3, and with a format NAME.low and NAME.high hold both of its neighbours.
    """
    if sum(x is not None for x in (digits, bits, round_to, until)) > 1:
        raise typer.BadParameter("--digits, --bits, --round and --until exclude each other")
    if until not in (None, "decided"):
        raise typer.BadParameter(f"--until takes decided, got {until!r}")
    if workers is not None and cluster is not None:
        raise typer.BadParameter("--workers and --cluster exclude each other")
    from symattn.truth.work.progress import shown
    from symattn.truth.work.run import Work
    from symattn.verify.truthfile import write_truth
    from symattn_cli.options import definition_from

    meant = definition_from(definition)
    with shown("truth") as progress:
        done = write_truth(
            file,
            output,
            meant,
            digits=digits,
            bits=bits,
            round_to=round_to,
            until="decided" if until else None,
            gradient=gradient,
            layout=layout,
            tier=tier,
            assume=assume,
            work=Work(workers=workers, cluster=cluster, checkpoint=checkpoint, progress=progress),
        )
    for name, (count, total) in done.counts.items():
        typer.echo(f"{name}: {total} elements, {count} undecided" if count else f"{name}: {total} elements")
    if report:
        typer.echo(done.report)
    if any(count for count, _ in done.counts.values()):
        raise typer.Exit(3)
