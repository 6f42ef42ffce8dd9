"""The flags that say what attention is meant; ``derive``, ``verify`` and ``truth`` share them.

A command takes them all by one parameter of type :class:`DefinitionFlags` under the decorator :func:`with_definition`::

    @with_definition
    def command(definition: DefinitionFlags, seed: Annotated[int, typer.Option()] = 0) -> None:
        d = definition_from(definition)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from symattn.definition import Definition

PANEL = "Definition"


def _text(flag: str, metavar: str, text: str) -> Any:
    return typer.Option(flag, metavar=metavar, help=text, rich_help_panel=PANEL)


@dataclass(frozen=True)
class DefinitionFlags:
    """The definition flags of a command line, as typed."""

    variant: Annotated[str | None, _text("--variant", "NAME", "A variant of the catalogue to start from.")] = None
    score: Annotated[
        str | None, _text("--score", "TEXT", "One's own score of s (scaled, capped), i, j, h, b, n, m, d and parameters.")
    ] = None
    mask: Annotated[str | None, _text("--mask", "TEXT", "Where query i attends to key j, such as 'j <= i and i - j < 128'.")] = (
        None
    )
    param: Annotated[
        list[str], _text("--param", "NAME=VALUE", "Exact value of a parameter: 0.1, 1/3, 2^-3, or a list with one per head.")
    ] = field(default_factory=list)
    causal: Annotated[str | None, _text("--causal", "top-left|bottom-right|none", "Causal mask and its alignment.")] = None
    window: Annotated[str | None, _text("--window", "LEFT[,RIGHT]", "Sliding window; -1 is unlimited.")] = None
    window_counts: Annotated[
        str | None, _text("--window-counts", "keys|distance", "Whether LEFT counts the query's own position.")
    ] = None
    softcap: Annotated[str | None, _text("--softcap", "C", "Scores become C tanh(s/C), before the mask.")] = None
    alibi: Annotated[
        bool, typer.Option("--alibi", help="Scores fall with the distance by a slope per head.", rich_help_panel=PANEL)
    ] = False
    sink: Annotated[bool, typer.Option("--sink", help="A learned logit per head in the denominator.", rich_help_panel=PANEL)] = (
        False
    )
    scale: Annotated[str | None, _text("--scale", "TEXT", "The factor of the score; default 1/sqrt(d).")] = None
    grouping: Annotated[str | None, _text("--grouping", "interleaved|tiled", "Which key/value head a query head reads.")] = None
    empty_row: Annotated[
        str | None, _text("--empty-row", "zero|nan|uniform|error", "Output of a query that may attend to no key.")
    ] = None
    lse_base: Annotated[str | None, _text("--lse-base", "e|2", "Base of the log-sum-exp.")] = None
    set: Annotated[list[str], _text("--set", "FIELD=VALUE", "Any field of the definition.")] = field(default_factory=list)
    convention: Annotated[
        str | None, _text("--convention", "torch|jax|mlx|onnx", "What this framework means by its own names.")
    ] = None


def with_definition(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command whose parameter of type :class:`DefinitionFlags` is spread into the single flags."""
    signature = inspect.signature(function)
    hints = get_type_hints(function, include_extras=True)
    name = next(p for p in signature.parameters if hints.get(p) is DefinitionFlags)
    types = get_type_hints(DefinitionFlags, include_extras=True)
    own = [p.replace(annotation=hints[p.name], kind=p.KEYWORD_ONLY) for p in signature.parameters.values() if p.name != name]
    clash = {p.name for p in own} & {f.name for f in fields(DefinitionFlags)}
    spread = [
        inspect.Parameter(
            f.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=f.default_factory() if callable(f.default_factory) else f.default,
            annotation=types[f.name],
        )
        for f in fields(DefinitionFlags)
        if f.name not in clash
    ]

    @wraps(function)
    def command(**given: Any) -> Any:
        flags = {p.name: given.pop(p.name) for p in spread}
        flags |= {p: given.pop(p) for p in clash}
        return function(**{name: DefinitionFlags(**flags)}, **given)

    parameters = [*own, *spread]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    del command.__wrapped__
    return command


def definition_from(flags: DefinitionFlags, **more: Any) -> Definition:
    """The definition that the flags say.

    Later wins: the variant, the convention, what the command itself knows (``more``), the flags, ``--set``.

    Raises
    ------
    UnknownNameError, DefinitionError, GrammarError
        Each with what is allowed.

    >>> definition_from(DefinitionFlags(variant="causal", convention="mlx", param=["t=0.1"], score="t*s"))
    Definition(causal='bottom-right', empty_row='uniform', score='s*t', params={t: 1/10})
    """
    from symattn import conventions, variants
    from symattn.definition import Definition

    values: dict[str, Any] = {}
    if flags.variant is not None:
        values |= variants.get(flags.variant).fields
    convention = conventions.get(flags.convention) if flags.convention is not None else None
    values |= convention.fields if convention else {}
    given = {k: v for k, v in more.items() if v is not None}
    names = ("score", "mask", "causal", "window", "window_counts", "softcap", "scale", "grouping", "empty_row", "lse_base")
    given |= {name: getattr(flags, name) for name in names if getattr(flags, name) is not None}
    given |= {name: True for name in ("alibi", "sink") if getattr(flags, name)}
    bound = dict(_pairs("--param", "NAME=VALUE", flags.param))
    if bound:
        given["params"] = bound
    given |= _pairs("--set", "FIELD=VALUE", flags.set)
    values |= given
    if convention:
        if str(values.get("causal")).lower() == "true":
            values["causal"] = convention.causal
        if values.get("sink") and "empty_row" not in given:
            del values["empty_row"]  # with a sink every row has a denominator
    return Definition.of(**values)


def _pairs(flag: str, form: str, texts: list[str]) -> dict[str, str]:
    from symattn.errors import DefinitionError

    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name or not value.strip():
            raise DefinitionError(f"{flag} takes {form}, got {text!r}")
        if name in found:
            raise DefinitionError(f"{flag} gives {name} twice")
        found[name] = value.strip()
    return found


def arguments(definition: Definition) -> list[str]:
    """The flags that say this definition again, for a replay line.

    >>> from symattn.definition import Definition
    >>> arguments(Definition(causal="top-left", window=(4, None), score="t*s", params={"t": "1/3"}))
    ['--causal', 'top-left', '--window', '4,-1', '--score', 's*t', '--param', 't=1/3']
    """
    from symattn.grammarprint import write_value

    own = {f.name for f in fields(DefinitionFlags)}
    found: list[str] = []
    for name, value in definition.changed.items():
        if name == "params":
            for parameter, bound in value.items():
                found += ["--param", f"{parameter}={write_value(bound)}"]
        elif name in ("alibi", "sink"):
            found.append("--" + name)
        elif name in own:
            found += ["--" + name.replace("_", "-"), write_value(value)]
        else:
            found += ["--set", f"{name}={write_value(value)}"]
    return found
