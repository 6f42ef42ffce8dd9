"""``symattn derive``: a variant step by step, in symbols and in the numbers of an example."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from symattn_cli.forms import FORMATS, PAGES, FormFlags
from symattn_cli.options import DefinitionFlags, definition_from, with_definition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from symattn.definition import Definition
    from symattn.derivation import Derivation, Example

FORMS = ("index", "matrix", "both")
DETAILS = ("brief", "steps", "full")
PICTURES = ("weights", "scores", "jacobian")
SHOWN = ("symbolic", "numeric", "both", "side-by-side")


@with_definition
def command(
    definition: DefinitionFlags,
    variant: Annotated[  # reaches the flags: see with_definition
        str | None, typer.Argument(metavar="VARIANT", hidden=True, help="A variant of the catalogue; default plain attention.")
    ] = None,
    variant_option: Annotated[
        str | None, typer.Option("--variant", metavar="NAME", help="The same as VARIANT; default plain attention.")
    ] = None,
    example: Annotated[
        str | None, typer.Option("--example", metavar="FILE.toml|NAME", help="Numbers: a TOML file, or a shipped example.")
    ] = None,
    gradient: Annotated[bool, typer.Option("--gradient", help="Add the steps of the gradient.")] = False,
    jvp: Annotated[
        bool, typer.Option("--jvp", help="Add the steps of the tangent: forward mode, the Jacobian-vector product.")
    ] = False,
    hvp: Annotated[bool, typer.Option("--hvp", help="Add the gradient and its tangent: the Hessian-vector product.")] = False,
    kernel: Annotated[
        str | None,
        typer.Option("--kernel", metavar="NAME", help="From the definition to the algorithm of a kernel (see --list)."),
    ] = None,
    form: Annotated[
        str, typer.Option("--form", metavar="|".join(FORMS), help="Formulas in indices, in matrices, or both.")
    ] = "both",
    format: Annotated[str, typer.Option("--format", metavar="|".join(FORMATS), help="What is written.")] = "text",
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to a file.")] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Write a PDF, by the TeX that is installed; with -o FILE.pdf.")] = False,
    page: Annotated[
        str, typer.Option("--page", metavar="|".join(PAGES), help="The page that lines of LaTeX are broken for.")
    ] = "a4",
    fragment: Annotated[
        bool, typer.Option("--fragment", help="A part to include in a document of one's own: LaTeX or HTML without its frame.")
    ] = False,
    prefix: Annotated[
        str | None, typer.Option("--prefix", metavar="TEXT", help="What the labels of a fragment begin with.")
    ] = None,
    digits: Annotated[int | None, typer.Option("--digits", metavar="N", help="Decimals, correctly rounded; default 4.")] = None,
    detail: Annotated[
        str, typer.Option("--detail", metavar="|".join(DETAILS), help="How much is said: formulas, steps, or all of it.")
    ] = "steps",
    show: Annotated[
        str, typer.Option("--show", metavar="|".join(SHOWN), help="Formulas, numbers, both, or both in one line.")
    ] = "both",
    follow: Annotated[
        str | None,
        typer.Option("--follow", metavar="ROW|all", help="The query that is worked out: its position on the page, or its word."),
    ] = None,
    values: Annotated[bool, typer.Option("--values", help="Show matrices whole, however large.")] = False,
    shapes: Annotated[
        bool | None, typer.Option("--shapes/--no-shapes", help="Show shapes under the symbols; default: in full detail.")
    ] = None,
    notation: Annotated[
        str | None, typer.Option("--notation", metavar="FILE.toml|NAME", help="Letters, signs and conventions of the page.")
    ] = None,
    show_max: Annotated[
        bool, typer.Option("--show-max", help="Show the row maximum and every helper as steps of their own.")
    ] = False,
    lse: Annotated[bool, typer.Option("--lse", help="Derive the log-sum-exp too.")] = False,
    tokens: Annotated[
        str | None, typer.Option("--tokens", metavar="TEXT", help="A sentence; what is not given is drawn from --seed.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="TEXT", help="The sentence that keys and values are from (cross attention)."),
    ] = None,
    vocabulary: Annotated[
        str | None, typer.Option("--vocabulary", metavar="TEXT", help="Further words of the vocabulary.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", help="Draw short exact numbers for all inputs.")] = None,
    size: Annotated[
        list[str] | None, typer.Option("--size", metavar="NAME=N", help="A size of what is drawn: dmodel, d, dv, dff, n, m ...")
    ] = None,
    dmodel: Annotated[int | None, typer.Option("--dmodel", metavar="N", min=1, help="The same as --size dmodel=N.")] = None,
    picture: Annotated[
        list[str] | None,
        typer.Option("--picture", metavar="|".join(PICTURES), help="Add a picture of the numbers; may be given several times."),
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of --format json.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List variants, shipped examples and kernels.")] = False,
) -> None:
    """Derive attention step by step: symbols, numbers put in, exact values, decimals.

    VARIANT is a row of the catalogue (see --list). An example brings its own definition; flags go over it. Without an example
    the steps are symbolic.
    """
    if schema:
        from symattn.derivation.jsonform import schema as text

        typer.echo(text(), nl=False)
        return
    if list_:
        typer.echo(_listing(), nl=False)
        return
    _choice("--form", form, FORMS)
    for kind in picture or []:
        _choice("--picture", kind, PICTURES)
    written = FormFlags(format, page, fragment, prefix, pdf, output)
    written.refuse()
    if definition.variant is not None and variant_option is not None:
        from symattn.errors import DefinitionError

        raise DefinitionError(f"the variant is given twice: {definition.variant!r} and --variant {variant_option!r}")
    named = definition.variant if definition.variant is not None else variant_option
    asked: dict[str, Any] = {"gradient": gradient, "jvp": jvp, "hvp": hvp, "show_max": show_max, "lse": lse}
    for flag, value, allowed in (("--detail", detail, DETAILS), ("--show", show, SHOWN)):
        _choice(flag, value, allowed)
    asked |= _said(detail=(detail, "steps"), show=(show, "both"), follow=(follow, None), values=(values, False))
    asked |= _said(shapes=(shapes, None), notation=(notation, None))
    words = {"tokens": tokens, "memory": memory, "vocabulary": vocabulary}
    drawing = _drawing(example, words, seed, size or [], dmodel)
    if kernel is not None:
        given = {**asked, "example": example, "digits": digits is not None, "picture": picture}
        found = _kernel(kernel, definition, named, form, [name for name, value in given.items() if value], drawing)
    else:
        found = _derivation(definition, named, example, form, digits, asked, drawing, picture or ())
    written.write(written.document(found))


def _derivation(
    flags: DefinitionFlags,
    variant: str | None,
    example: str | None,
    form: str,
    digits: int | None,
    asked: Mapping[str, Any],
    drawing: Mapping[str, Any] | None = None,
    pictures: Sequence[str] = (),
) -> Derivation:
    from dataclasses import replace

    from symattn import variants
    from symattn.derivation import derive, load
    from symattn.derivation.binding import redefined, refuse_fields
    from symattn.derivation.drawn import example_of
    from symattn.errors import DefinitionError, FileFormatError, InputValueError, SymattnError

    row = variants.get(variant) if variant is not None else None
    numbers: Example | None = load(example) if example is not None else None
    words = drawing is not None and drawing["tokens"]
    more = numbers.fields if numbers else {"start": "tokens"} if words else {}
    try:
        definition = definition_from(replace(flags, variant=variant), **more)
    except SymattnError:
        if numbers is not None:
            refuse_fields(numbers)  # is it the file that is wrong, not the flags?
        raise
    if numbers is not None:
        numbers = redefined(numbers, definition)
    elif drawing is not None:
        numbers = example_of(definition, **drawing)
    title, about = (row.name, row.idea) if row is not None and numbers is None else ("", "")
    if row is not None and title and definition.replace(lse=row.definition.lse) != row.definition:
        title, about = f"{row.name}, changed", ""
    if pictures and numbers is None:
        raise DefinitionError("--picture: there are no numbers to draw; give an example, or a seed")
    try:
        made = derive(definition, numbers, form=form, digits=digits, title=title, about=about, **asked)
    except (InputValueError, FileFormatError) as why:
        if drawing is not None and numbers is not None and str(why).startswith(f"{numbers.name}: "):
            raise DefinitionError(str(why)) from why  # no file is wrong where all numbers are drawn
        raise
    return _pictured(made, numbers, definition, pictures) if numbers is not None and pictures else made


def _pictured(made: Derivation, numbers: Example, definition: Definition, kinds: Sequence[str]) -> Derivation:
    """The page with pictures below its last step."""
    from symattn.pictures import jacobian, weights
    from symattn.pictures.documents import pictured
    from symattn.pictures.drawing import matplotlib
    from symattn.pictures.examplevalues import bind

    matplotlib()
    bound = bind(numbers, definition)
    draw = {"weights": weights.weights, "scores": weights.scores, "jacobian": jacobian.jacobian}
    return pictured(made, [draw[kind](bound) for kind in dict.fromkeys(kinds)])


def _kernel(
    kernel: str, flags: DefinitionFlags, variant: str | None, form: str, more: list[str], drawing: Mapping[str, Any] | None
) -> Derivation:
    """The page of a kernel: it has no numbers, and its gradient where it is one."""
    from dataclasses import replace

    from symattn.derivation.kernels import derive_kernel
    from symattn.errors import DefinitionError

    if more or drawing is not None:
        flag = f"--{more[0].replace('_', '-')}" if more else "--tokens, --seed and --size"
        raise DefinitionError(
            f"a kernel is derived in symbols and shows what it has to show: leave {flag} out, or leave --kernel out"
        )
    return derive_kernel(kernel, definition_from(replace(flags, variant=variant)), form, title=variant or "")


def _drawing(
    example: str | None, words: Mapping[str, str | None], seed: int | None, size: list[str], dmodel: int | None
) -> dict[str, Any] | None:
    """What numbers are drawn for; None where nothing asks for them."""
    sizes: dict[str, Any] = {} if dmodel is None else {"dmodel": dmodel}
    for text in size:
        name, _, value = text.partition("=")
        if not value.strip().isdecimal():
            raise typer.BadParameter(f"a size is NAME=N, such as dmodel=4, got {text!r}", param_hint="--size")
        if int(value) < 1:
            raise typer.BadParameter(f"a size is an integer from 1 on, got {text!r}", param_hint="--size")
        sizes[name.strip()] = int(value)
    for name, sentence in words.items():
        if sentence is not None and not sentence.split():
            raise typer.BadParameter(f"there are no words in {sentence!r}", param_hint=f"--{name}")
    if seed is None and not sizes and not any(words.values()):
        return None
    if example is not None:
        hint = "--tokens, --memory, --vocabulary, --seed, --size and --dmodel make an example of their own; "
        raise typer.BadParameter(hint + "in a file, say [weights] seed = 1", param_hint="--example")
    return {"seed": 0 if seed is None else seed, "sizes": sizes, **{k: (v or "").split() for k, v in words.items()}}


def _said(**options: tuple[Any, Any]) -> dict[str, Any]:
    """The options, each with its default, that were said."""
    return {name: value for name, (value, default) in options.items() if value != default}


def _choice(flag: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        from symattn.errors import DefinitionError, nearest

        raise DefinitionError(f"{flag} is one of {', '.join(allowed)}, got {value!r}. {nearest(value, allowed)}")


def _listing() -> str:
    """Variants, shipped examples and kernels, a line each."""
    from symattn import variants
    from symattn.derivation import load, shipped
    from symattn.derivation.kernels import KERNELS

    rows = [(name, variants.get(name).idea) for name in variants.names()]
    examples = [(name, load(name).about) for name in shipped()]
    kernels = [(row.name, row.idea.partition(". ")[0].rstrip(".")) for row in KERNELS.values()]
    width = max(len(name) for name, _ in rows + examples + kernels)
    lines = ["Variants:", *(f"  {name:<{width}}  {idea}" for name, idea in rows), "", "Examples (--example NAME):"]
    lines += [*(f"  {name:<{width}}  {about}" for name, about in examples), "", "Kernels (--kernel NAME):"]
    return "\n".join([*lines, *(f"  {name:<{width}}  {idea}" for name, idea in kernels)]) + "\n"
