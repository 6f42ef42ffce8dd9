"""LaTeX with every engine, on every page, as a fragment and as PDF: nothing sticks out, and what goes wrong is said."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
import time
from pathlib import Path

import pytest

from symattn.derivation import Derivation, derive, examples, pdf
from symattn.derivation.fragment import fragment
from symattn.derivation.paper import PAPERS
from symattn.errors import InputValueError, MissingDependencyError, TypesettingError, UnknownNameError
from tests.derivation.cases import TWO_HEADS, hostile, variant, wide
from tests.derivation.tex import compiled, complaints, sizes
from tests.support import require_program, rows

AROUND = r"""\documentclass[10pt,{options}]{{article}}
\usepackage{{amsmath}}
\setlength{{\textwidth}}{{{width}mm}}
\begin{{document}}
{body}
\end{{document}}
"""


def small() -> Derivation:
    return derive(example="two-words-causal")


def printed(file: Path) -> str:
    """The text of a PDF."""
    program = require_program("pdftotext")
    return subprocess.run([program, "-layout", str(file), "-"], capture_output=True, timeout=60).stdout.decode()


def torn(d: Derivation, file: Path) -> list[str]:
    """Headings and reasons of steps that end a page, so that their formula stands overleaf."""
    pages = [re.sub(r"\s*\d+\s*$", "", page).split() for page in printed(file).split("\f")]
    openings = {x: None for s in d.steps if s.formulas for x in (f"{s.number}. {s.name}", s.reason) if x}
    return [x for x in openings for page in pages if page[-len(x.split()) :] == x.split()]


# --- pages and engines


@pytest.mark.slow
@pytest.mark.parametrize("page", PAPERS)
@pytest.mark.parametrize("engine", pdf.ENGINES)
def test_every_engine_on_every_page(engine: str, page: str, tmp_path: Path) -> None:
    found = [derive(example=name, gradient=True) for name in examples.shipped()]
    found += [derive(example=examples.parse(TWO_HEADS, "two heads"), gradient=True), hostile(), wide(), derive(hvp=True)]
    assert [complaints(compiled(d.to_latex(page), tmp_path, engine)) for d in found] == [[]] * len(found)
    assert sizes(tmp_path) == {(round(PAPERS[page].width), round(PAPERS[page].height))}


@pytest.mark.slow
@pytest.mark.parametrize("page", ["letter", "a5", "narrow"])
@pytest.mark.parametrize("name", rows())
def test_every_variant_on_every_page(name: str, page: str, tmp_path: Path) -> None:
    assert complaints(compiled(variant(name).to_latex(page), tmp_path)) == []
    assert torn(variant(name), tmp_path / "d.pdf") == []


def test_words_of_a_step_stand_on_the_page_of_its_formula(tmp_path: Path) -> None:
    d = derive(gradient=True)
    for page in PAPERS:
        assert complaints(compiled(d.to_latex(page), tmp_path)) == []
        assert torn(d, tmp_path / "d.pdf") == []
    ended = d.to_latex("narrow").replace("\n\\begin{align*}", "\\par\\newpage\n\\begin{align*}")
    compiled(ended, tmp_path)
    assert torn(d, tmp_path / "d.pdf")


def test_a_narrow_page(tmp_path: Path) -> None:
    assert complaints(compiled(small().to_latex("narrow"), tmp_path)) == []
    assert sizes(tmp_path) == {(100, 240)}
    with pytest.raises(UnknownNameError, match=r"no page is called 'a3'\. Known: 'a4', 'a5'"):
        small().to_latex("a3")


# --- fragments


@pytest.mark.parametrize(("options", "width", "page"), [("a4paper,fleqn", 170, "a4"), ("a4paper", 89, "narrow")])
def test_two_fragments_stand_in_one_document(options: str, width: int, page: str, tmp_path: Path) -> None:
    one, two = (fragment(derive(gradient=g), page) for g in (False, True))
    whole = AROUND.format(options=options, width=width, body="\\section{Mine}\n\\input{one}\n\\input{two}\n\\the\\parindent")
    log = compiled(whole, tmp_path, one=one, two=two)
    assert complaints(log) == []
    labels = [re.findall(r"\\label\{([^}]*)\}", x) for x in (one, two)]
    assert labels[0] and labels[1] and not set(labels[0]) & set(labels[1])
    if shutil.which("pdftotext"):
        text = printed(tmp_path / "d.pdf")
        assert "15.0pt" in text and "??" not in text  # settings of the fragment end with it


def test_a_fragment_says_what_it_needs_and_has_no_preamble() -> None:
    tex = fragment(small(), prefix="cat")
    assert "\\usepackage" not in re.sub(r"(?m)^%.*\n", "", tex) and r"\documentclass" not in tex and tex.isascii()
    assert "%   \\usepackage{amsmath}\n" in tex and tex.count(r"\begingroup") == tex.count(r"\endgroup")
    assert r"\subsection*{two words, causal}" in tex and r"\subsubsection*{" in tex and r"\section*" not in tex
    assert set(re.findall(r"\\(?:label|eqref)\{([^:}]*)", tex)) == {"cat"}
    for wrong in ("a}b", "", "a b", "\\x"):
        with pytest.raises(InputValueError, match="a prefix of labels is made of"):
            fragment(small(), prefix=wrong)


def test_a_title_cannot_leave_its_comment() -> None:
    text = b'title = "a\\n\\\\input{x}\\u2028b"\nQ = [[1]]\nK = [[1]]\nV = [[1]]'
    tex = fragment(derive(example=examples.parse(text, "t")))
    assert tex.splitlines()[0].startswith("% a[U+000A]") and not re.search(r"(?m)^[^%\n]*\\input", tex)


def test_two_html_fragments_stand_in_one_page() -> None:
    one, two = (derive(example="two-words", gradient=g) for g in (False, True))
    page = "".join(d.to_html_fragment(prefix) for d, prefix in ((one, None), (two, None), (one, "mine")))
    places = re.findall(r'\bid="([^"]+)"', page)
    assert len(places) == len(set(places)) and "mine-step-7" in places and len(places) > 3 * 8
    assert {*re.findall(r'href="#([^"]+)"', page)} <= {*places}
    assert 'id="step-1"' in one.to_html(), "a page of its own has short names"
    with pytest.raises(InputValueError, match="a prefix of labels is made of"):
        one.to_html_fragment('a"b')


def test_an_html_fragment_has_no_page_around_it() -> None:
    html = small().to_html_fragment()
    assert "<html" not in html and "<body" not in html and "<article" in html and "<style>" in html


# --- PDF


def test_a_pdf_is_made(tmp_path: Path) -> None:
    require_program("pdflatex")
    data = small().to_pdf()
    assert data.startswith(b"%PDF-") and data.rstrip().endswith(b"%%EOF")
    (tmp_path / "d.pdf").write_bytes(data)
    text = printed(tmp_path / "d.pdf")
    assert "two words, causal" in text and "??" not in text


def test_an_error_of_tex_is_shown(tmp_path: Path) -> None:
    require_program("pdflatex")
    with pytest.raises(TypesettingError, match=r"(?s)did not make a PDF:.*Undefined control sequence.*l\.\d+ .*\\nope"):
        pdf.pdf(small().to_latex().replace(r"\begin{align*}", "\\nope\n\\begin{align*}", 1))


def test_tex_may_run_nothing_and_read_nothing_outside(tmp_path: Path) -> None:
    require_program("pdflatex")
    outside = tmp_path / "secret.tex"
    outside.write_text("secret")
    plain = "\\documentclass{article}\\begin{document}x%s\\end{document}"
    run = pdf.pdf(plain % rf"\immediate\write18{{touch {tmp_path}/made}}")
    assert run.startswith(b"%PDF-") and not (tmp_path / "made").exists()
    with pytest.raises(TypesettingError):
        pdf.pdf(plain % rf"\newwrite\f\immediate\openout\f={tmp_path}/made.tex")
    assert not (tmp_path / "made.tex").exists()


def fake(folder: Path, name: str, script: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def test_without_tex_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        MissingDependencyError, match=r"none of pdflatex, xelatex and lualatex was found.*apt-get install texlive"
    ):
        pdf.pdf("x")
    fake(tmp_path, "xelatex", "exit 0")
    assert pdf.installed() == ("xelatex",)
    with pytest.raises(MissingDependencyError, match="lualatex is not installed; there are xelatex"):
        pdf.pdf("x", "lualatex")
    with pytest.raises(TypesettingError, match="xelatex did not make a PDF"):
        pdf.pdf("x")


def test_tex_that_takes_too_long_is_stopped_with_what_it_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    fake(tmp_path, "pdflatex", f"(/bin/sleep 30; echo x > {alive}) &\n/bin/sleep 30")
    monkeypatch.setenv("PATH", str(tmp_path))
    start = time.monotonic()
    with pytest.raises(TypesettingError, match=r"pdflatex took more than 0\.2 s"):
        pdf.pdf("x", seconds=0.2)
    assert time.monotonic() - start < 25 and not alive.exists()


def test_it_is_run_again_until_references_stand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    count = tmp_path / "count"
    fake(
        tmp_path,
        "pdflatex",
        f'echo x >> {count}; echo "%PDF" > derivation.pdf; n=$(/usr/bin/wc -l < {count})\n'
        '[ "$n" -lt 3 ] && echo "LaTeX Warning: Label(s) may have changed." > derivation.log || echo ok > derivation.log',
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pdf.pdf("x") == b"%PDF\n" and count.read_text().count("x") == 3


def test_latexmk_drives_where_it_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake(tmp_path, "xelatex", "exit 1")
    fake(tmp_path, "latexmk", 'echo "$@" > derivation.pdf; echo "$openout_any" >> derivation.pdf')
    monkeypatch.setenv("PATH", str(tmp_path))
    words = pdf.pdf("x").decode().split()
    assert words[:3] == ["-norc", "-pdfxe", "-no-shell-escape"] and words[-2:] == ["derivation.tex", "p"]
