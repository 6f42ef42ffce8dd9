"""Pictures in documents of LaTeX: squares whose areas are the numbers, without a package; and the option that puts them there."""

from __future__ import annotations

import re
from pathlib import Path

import mpmath
import numpy as np
import pytest
from typer.testing import CliRunner

from symattn.derivation import derive, examples
from symattn.pictures.chart import Chart, Panel
from symattn.pictures.documents import pictured
from symattn.pictures.examplevalues import bind
from symattn.pictures.squares import squares
from symattn.pictures.weights import scores, weights
from symattn_cli.app import app
from tests.derivation.cases import HOSTILE, TWO_HEADS
from tests.derivation.tex import compiled, complaints
from tests.support import require

RULE = re.compile(r"\\put\(([\d.]+),([\d.]+)\)\{\\makebox\(0,0\)\{\\rule\{([\d.]+)mm\}\{([\d.]+)mm\}")


def sides(tex: str) -> list[list[float]]:
    """The sides of the full squares, row by row from above."""
    rows: dict[float, list[tuple[float, float]]] = {}
    for x, y, wide, high in RULE.findall(tex):
        assert wide == high
        rows.setdefault(float(y), []).append((float(x), float(wide)))
    return [[side for _, side in sorted(row)] for _, row in sorted(rows.items(), reverse=True)]


def test_areas_are_the_weights() -> None:
    found = sides(squares(weights(bind("two-words"))))
    e = [mpmath.exp(mpmath.mpf(x) / mpmath.sqrt(3)) for x in (1, 5)]  # the scores of the first word, by hand
    shares = [[x / sum(e) for x in e], [mpmath.mpf(1) / 2] * 2]
    for row, wanted in zip(found, shares, strict=True):
        for side, x in zip(row, wanted, strict=True):
            assert abs((side / 4.5) ** 2 - x) < 0.005
    turned = [row[::-1] for row in found]
    assert any(abs((s / 4.5) ** 2 - x) > 0.1 for s, x in zip(turned[0], shares[0], strict=True))


def test_masked_places_are_dots_and_negative_numbers_frames() -> None:
    values = np.array([[-1.0, np.nan], [0.25, 1.0]])
    tex = squares(Chart("c", "Numbers.", ((Panel("p", values),),), "score", -1.0, 1.0))
    assert tex.count(r"\fbox{") == 1 and tex.count(r"$\cdot$") == 1 and [len(r) for r in sides(tex)] == [2]
    assert "a frame is a negative one" in tex and "frame" not in squares(weights(bind("two-words")))


def test_words_that_do_not_fit_stand_below() -> None:
    words = tuple(f"word{k}" for k in range(20))
    tex = squares(Chart("c", "Numbers.", ((Panel("p", np.ones((20, 20)), words, words),),), "weight"))
    assert "Columns: 1 word0, 2 word1" in tex
    width = re.search(r"\\begin\{picture\}\(([\d.]+),", tex)
    assert width is not None and float(width[1]) <= 150


def test_pages_with_pictures_compile(tmp_path: Path) -> None:
    require("matplotlib")
    example = examples.parse(TWO_HEADS, "two heads")
    page = pictured(derive(example=example), [weights(bind(example)), scores(bind(example))])
    names = tuple(HOSTILE)
    panel = Panel(HOSTILE[0], np.eye(len(names)), names, names)
    more = pictured(page, [Chart("c", HOSTILE[2], ((panel,),), "weight")])
    assert page.to_latex().count(r"\begin{picture}") == 4
    assert complaints(compiled(more.to_latex("narrow"), tmp_path)) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--picture", "weights"], "there are no numbers to draw"),
        (["--example", "two-words", "--picture", "waits"], "Did you mean 'weights'"),
        (["--kernel", "ring", "--picture", "weights"], "leave --picture out"),
    ],
)
def test_pictures_that_cannot_be(words: list[str], says: str) -> None:
    result = CliRunner().invoke(app, ["derive", *words])
    assert result.exit_code == 2 and says in result.stderr


@pytest.mark.parametrize(
    ("form", "sign"),
    [
        ("html", '<figure class="pic">'),
        ("latex", r"\begin{picture}"),
        ("ipynb", "data:image/svg"),
        ("text", "Attention weights of"),
    ],
)
def test_the_option_puts_pictures_into_documents(form: str, sign: str) -> None:
    require("matplotlib")
    asked = ["derive", "--example", "two-words", "--format", form]
    with_picture, without = (CliRunner().invoke(app, [*asked, *more]).stdout for more in (["--picture", "weights"], []))
    assert with_picture.count(sign) == 1 and sign not in without
