"""The definition flags: every flag reaches its field, wins in the documented order, and comes back as text."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from symattn import variants
from symattn.definition import Definition
from symattn.errors import DefinitionError, GrammarError, UnknownNameError
from symattn_cli.options import DefinitionFlags, arguments, definition_from, with_definition


def parse(*words: str) -> Definition:
    """The definition that a command line gives."""
    found: list[Definition] = []
    app = typer.Typer()

    @app.command()
    @with_definition
    def command(definition: DefinitionFlags, seed: Annotated[int, typer.Option()] = 3) -> None:
        """A command with one option of its own."""
        assert seed == 3
        found.append(definition_from(definition))

    result = CliRunner().invoke(app, list(words))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return found[0]


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (["--variant", "causal"], {"causal": "top-left"}),
        (["--variant", "causal", "--causal", "none"], {}),
        (["--causal", "bottom-right", "--window", "4"], {"causal": "bottom-right", "window": (4, None)}),
        (["--window", "4,0", "--window-counts", "distance"], {"window": (4, 0), "window_counts": "distance"}),
        (["--window=-1,2"], {"window": (None, 2)}),
        (["--softcap", "0.1", "--alibi", "--sink"], {"softcap": Fraction(1, 10), "alibi": True, "sink": True}),
        (["--scale", "1/d", "--grouping", "tiled"], {"scale": "1/d", "grouping": "tiled"}),
        (["--empty-row", "nan", "--lse-base", "2"], {"empty_row": "nan", "lse_base": "2"}),
        (["--score", "t*s", "--param", "t=2^-3"], {"score": "t*s", "params": {"t": Fraction(1, 8)}}),
        (
            ["--score", "t*s", "--param", "t=1,1/2", "--set", "heads=2"],
            {"score": "t*s", "heads": 2, "params": {"t": (1, Fraction(1, 2))}},
        ),
        (["--mask", "j <= i", "--set", "document=true"], {"mask": "j <= i", "document": True}),
        (["--variant", "causal", "--convention", "mlx"], {"causal": "bottom-right", "empty_row": "uniform"}),
        (["--causal", "top-left", "--convention", "mlx"], {"causal": "top-left", "empty_row": "uniform"}),
        (["--variant", "sink", "--convention", "mlx"], {"causal": "bottom-right", "sink": True}),
        (["--convention", "jax", "--empty-row", "zero"], {"window_counts": "distance", "window_alignment": "top-left"}),
    ],
)
def test_flags_reach_their_fields(words, fields):
    assert parse(*words) == Definition(**fields)


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        (["--variant", "casual"], UnknownNameError, "'causal'"),
        (["--convention", "troch"], UnknownNameError, "'torch'"),
        (["--causal", "left-top"], DefinitionError, "'top-left'"),
        (["--set", "widnow=3"], DefinitionError, "'window'"),
        (["--set", "window"], DefinitionError, "FIELD=VALUE"),
        (["--param", "t"], DefinitionError, "NAME=VALUE"),
        (["--param", "t=1", "--param", "t=2", "--score", "t*s"], DefinitionError, "twice"),
        (["--param", "t=1"], DefinitionError, "nothing reads"),
        (["--score", "__import__('os')"], GrammarError, "column"),
        (["--softcap", "-1"], DefinitionError, "positive"),
        (["--softcap", "nan"], DefinitionError, "softcap"),
    ],
)
def test_a_wrong_flag_says_what_is_allowed(words, error, says):
    with pytest.raises(error, match=says):
        parse(*words)


DEFINITIONS = [variants.get(name).definition for name in variants.names()] + [
    Definition(window=(None, 3), window_alignment=-2, causal=5, key_lengths=False),
    Definition(
        heads=2, score="abs(s)*t + max(s, u, 0.1)", mask="not (i == j) or (i != 3 and j // 2 < i % 3)", params={"t": ["1/3", 2]}
    ),
    Definition(scale="1/sqrt(d*n)", softcap="cap", prefix="length", attn_mask="boolean", mask_axes="bj", mask_polarity="drop"),
    Definition(score="s**2/sqrt(3) - exp(-s)/h", heads=4, kv_heads=2, dropout=True, dropout_p="1/3", lse=False),
]


@pytest.mark.parametrize("definition", DEFINITIONS, ids=str)
def test_arguments_say_the_definition_again(definition):
    assert parse(*arguments(definition)) == definition
