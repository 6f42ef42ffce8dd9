"""Pictures as files: the same bytes each time, nothing read as mathematics, and nothing of matplotlib changed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from symattn.derivation import derive
from symattn.derivation.svgparts import inline_svg
from symattn.errors import DefinitionError, FileFormatError, LimitError
from symattn.pictures.chart import Chart, Panel
from symattn.pictures.documents import pictured
from symattn.pictures.drawing import draw, save
from symattn.pictures.examplevalues import bind
from symattn.pictures.weights import weights
from symattn_cli.app import app
from tests.derivation.test_html import read
from tests.pictures.test_charts import write
from tests.support import require


@pytest.fixture(autouse=True)
def _library() -> None:
    require("matplotlib")


def chart(**changes: object) -> Chart:
    values = np.array([[0.25, np.nan, 0.75], [0.5, 0.5, np.inf]])
    panel = {"rows": ("a", "b"), "columns": ("x", "y", "z"), "texts": (("0.25", "", "0.75"), ("0.5", "0.5", "∞")), **changes}
    return Chart("a chart", "It shows numbers.", ((Panel("panel", values, outside=values > 1, **panel),),), "weight")  # type: ignore[arg-type]


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<?xml"), (".pdf", b"%PDF"), (".png", b"\x89PNG")])
def test_the_same_chart_gives_the_same_bytes_without_a_date(suffix: str, start: bytes) -> None:
    data = draw(chart(), suffix)
    assert data.startswith(start) and data == draw(chart(), suffix)
    assert not re.search(rb"CreationDate|<dc:date>|20\d\d-\d\d-\d\d", data)
    assert data != draw(chart(texts=()), suffix)


def test_two_processes_write_the_same_svg() -> None:
    code = (
        "import sys, hashlib\n"
        "from symattn.pictures.drawing import draw\nfrom symattn.pictures.examplevalues import bind\n"
        "from symattn.pictures.weights import weights\n"
        "print(hashlib.sha256(draw(weights(bind('two-words')))).hexdigest(), 'matplotlib.pyplot' in sys.modules)"
    )
    said = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in range(2)}
    assert len(said) == 1 and said.pop().endswith(" False\n")


def test_the_settings_of_matplotlib_are_as_they_were() -> None:
    import matplotlib

    with matplotlib.rc_context({"font.size": 23, "text.usetex": True, "axes.facecolor": "red"}):
        before = dict(matplotlib.rcParams)
        data = draw(chart())
        assert dict(matplotlib.rcParams) == before
    assert data == draw(chart()), "the user's settings do not show"


def test_words_are_not_mathematics_and_letters_without_a_glyph_are_code_points() -> None:
    hostile = ("$\\frac{$", "猫\u202e", "<script>&")
    data = draw(chart(columns=hostile, rows=("$x$", "_")), ".svg").decode()
    ElementTree.fromstring(data)
    assert "<script" not in data


def test_more_rows_than_can_be_named_are_drawn_in_blocks() -> None:
    large = Panel("large", np.random.default_rng(0).random((700, 300)))
    data = draw(Chart("t", "s", ((large,),), "x"), ".svg")
    assert len(data) < 400_000


def test_a_picture_stands_in_a_page() -> None:
    found = inline_svg(draw(weights(bind("two-words-causal"))).decode(), "weights", "p1-")
    assert found.startswith("<svg viewBox=") and found.count("<use") > 10 and "style" not in found and "http" not in found
    ids = set(re.findall(r'id="([^"]+)"', found))
    assert set(re.findall(r'href="#([^"]+)"', found)) | set(re.findall(r"url\(#([^)]+)\)", found)) <= ids


def test_pictures_stand_in_every_form_of_a_document() -> None:
    d = pictured(derive(example="two-words"), [weights(bind("two-words")), chart()])
    page = read(d.to_html())  # nothing in it runs or loads, no id stands twice
    assert "It shows numbers." in page.text and d.to_html().count("<use") > 20
    assert all("It shows numbers." in " ".join(form.split()) for form in (d.to_text(), d.to_latex()))


def test_a_picture_in_a_document_is_made_of_shapes_alone() -> None:
    large = Chart("large", "It is large.", ((Panel("large", np.random.default_rng(0).random((700, 300))),),), "x")
    (picture,) = pictured(derive(), [large]).sections[-1].blocks
    assert "<image" not in picture.svg and picture.svg.count("<path") > 15 * 47  # type: ignore[union-attr]
    assert "<image" in draw(large, ".svg").decode()


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"a picture ends in \.pdf, \.svg, \.png, got '\.jpg'"):
        draw(chart(), ".jpg")
    with pytest.raises(LimitError, match="65 panels"):
        draw(Chart("t", "s", (chart().panels[0] * 65,), "x"))
    with pytest.raises(FileFormatError, match="cannot be written"):
        save(chart(), tmp_path / "no" / "x.svg")


# --- the command


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["plot", *map(str, words)])


@pytest.mark.parametrize("kind", ["weights", "scores", "jacobian"])
def test_an_example_is_drawn(kind: str, tmp_path: Path) -> None:
    result = run(kind, "two-words", "-o", tmp_path / "x.svg")
    assert result.exit_code == 0 and (tmp_path / "x.svg").stat().st_size > 5000
    assert {"weights": "Attention weights", "scores": "Scores of", "jacobian": "Exact derivatives"}[kind] in result.stdout


def test_errors_are_drawn(tmp_path: Path) -> None:
    result = run("error", write(tmp_path / "run.npz"), "-o", tmp_path / "x.pdf", "--tensor", "out")
    assert result.exit_code == 0 and (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["weight", "two-words", "-o", "x.svg"], 2, "Did you mean 'weights'"),
        (["weights", "two-words", "-o", "x.jpg"], 2, "a picture ends in .pdf, .svg, .png"),
        (["weights", "none.toml", "-o", "x.svg"], 4, "none.toml: cannot be read"),
        (["error", "two-words", "-o", "x.svg"], 4, "ends in .npz"),
        (["jacobian", "two-words", "--by", "w_z", "-o", "x.svg"], 2, "there is no gradient by 'w_z'"),
        (["weights", "two-words"], 2, "--output"),
    ],
)
def test_wrong_words(words: list[str], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*words)
    assert result.exit_code == code and message in " ".join(result.output.split()), result.output
    assert not (tmp_path / "x.svg").exists()


def test_without_matplotlib_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("weights", "two-words", "-o", tmp_path / "x.svg")
    assert result.exit_code == 2 and "pip install 'symattn[plot]'" in result.output
