"""``symattn plot``: weights, scores, errors and Jacobians as pictures for papers and pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from symattn.pictures.chart import Chart

KINDS = ("weights", "scores", "error", "jacobian")


def command(
    kind: Annotated[str, typer.Argument(metavar="|".join(KINDS), help="What is drawn.")],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...", help="An example (FILE.toml or a shipped one); for error, what symattn verify --save wrote."
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Ends in .pdf, .svg or .png.")],
    by: Annotated[
        str, typer.Option("--by", metavar="NAME", help="jacobian: by scores, weights, or an input such as query, x, w_q.")
    ] = "scores",
    case: Annotated[str, typer.Option("--case", metavar="NAME", help="error: the input; default the worst.")] = "",
    tensor: Annotated[str, typer.Option("--tensor", metavar="NAME", help="error: this output only.")] = "",
    tile: Annotated[int, typer.Option("--tile", metavar="N", min=0, help="error: positions of a tile; default few.")] = 0,
    dpi: Annotated[int, typer.Option("--dpi", metavar="N", min=20, max=1200, help="Dots per inch of a PNG.")] = 150,
) -> None:
    """Draw the weights or scores of an example, the errors of a judged kernel, or a Jacobian by the exact gradient.

    Several files are drawn below each other. The same files give the same bytes.
    """
    from symattn.errors import DefinitionError, nearest
    from symattn.pictures.chart import stacked
    from symattn.pictures.drawing import SUFFIXES, matplotlib, save

    if kind not in KINDS:
        raise DefinitionError(f"what is drawn is one of {', '.join(KINDS)}, got {kind!r}. {nearest(kind, KINDS)}")
    if output.suffix.lower() not in SUFFIXES:
        raise typer.BadParameter(f"a picture ends in {', '.join(SUFFIXES)}, got {str(output)!r}", param_hint="--output")
    matplotlib()
    chart = stacked([_chart(kind, file, by, case, tensor, tile) for file in files])
    save(chart, output, dpi)
    typer.echo(chart.says)
    typer.echo(f"written: {output}", err=True)


def _chart(kind: str, file: str, by: str, case: str, tensor: str, tile: int) -> Chart:
    if kind == "error":
        from symattn.pictures.errors import errors

        return errors(file, case, tensor, tile)
    from symattn.pictures.examplevalues import bind

    bound = bind(file)
    if kind == "jacobian":
        from symattn.pictures.jacobian import jacobian

        return jacobian(bound, by)
    from symattn.pictures import weights

    return weights.weights(bound) if kind == "weights" else weights.scores(bound)
