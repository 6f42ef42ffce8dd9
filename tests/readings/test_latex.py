"""The LaTeX reading as a whole: every formula is made of known macros, and pdflatex takes it."""

import os
import re
import shutil
import subprocess

import pytest

from symattn.adjoint import adjoint, tangent
from symattn.definition import Definition
from symattn.errors import UnknownNameError
from symattn.presentation import present
from symattn.readings.latex import (
    batch_indices,
    condition_form,
    index_form,
    letter,
    matrix_form,
    scalar_form,
    softmax_form,
    softmax_steps,
)
from symattn.variants import get

OWN = Definition(score="20*tanh(s/20) - slope*(i - j)", mask="j <= i or i < 1 and not (j > 5)", empty_row="nan")
# what KaTeX, MathJax as GitHub runs it, and latex2mathml all know
SAFE = frozenset(
    re.findall(
        r"\S+",
        r"\alpha \beta \circ \dot \ell \exp \frac \infty \le \left \log \lt \mathbf \mathcal \mathrm \max \mu \ne \quad \right"
        r" \sqrt \sum \tanh \text \thinspace \top",
    )
)


@pytest.fixture(scope="module")
def programs():
    """Presented gradients and tangents of variants that together have every kind of statement."""
    chosen = ("self-attention-tokens", "multi-head-projections", "grouped-query", "document", "boolean-mask", "sink", "dropout")
    out = [tangent(OWN.program())]
    for definition in (*(get(n).definition for n in chosen), OWN):
        forward = definition.program(batch=True)
        out.append(present(forward, adjoint(forward)).program)
    return out


def formulas(programs, style):
    """All forms of all statements."""
    out = {}
    for program in programs:
        lifted = batch_indices(program)
        for s in program:
            out[index_form(program, s, style=style)] = None
            out[index_form(program, s, style=style, batch=lifted, hidden="b")] = None
            form = matrix_form(program, s, style=style, hidden="b")
            out |= {form.latex: None} if form is not None else {}
        for found in softmax_steps(program):
            for form in ("matrix", "index"):
                for lse in (False, True):
                    out[softmax_form(program, found, form, style=style, lse=lse)] = None
    return [tex for tex in out if tex is not None]


@pytest.fixture(scope="module")
def plain(programs):
    return formulas(programs, "latex")


def problems(tex, macros):
    """What is wrong with a formula, in words."""
    out = [f"unknown macro {t}" for t in re.findall(r"\\(?:[a-zA-Z]+|.)", tex) if t not in macros]
    depth = 0
    for sign in tex:
        depth += (sign == "{") - (sign == "}")
        if depth < 0:
            break
    out += ["unbalanced braces"] if depth else []
    out += ["unbalanced \\left and \\right"] if len(re.findall(r"\\left\b", tex)) != len(re.findall(r"\\right\b", tex)) else []
    # a second script on one base is an error in TeX
    out += ["double script"] if re.search(r"([_^])(?:\{[^{}]*\}|\w)\1", tex) else []
    return out


def test_markdown_is_made_of_safe_macros(programs):
    found = {tex: problems(tex, SAFE) for tex in formulas(programs, "markdown")}
    assert len(found) > 300
    assert {tex: p for tex, p in found.items() if p} == {}


def test_latex_is_made_of_known_macros(plain):
    macros = (SAFE - {r"\lt", r"\thinspace"}) | {r"\operatorname", r"\,"}
    assert {tex: p for tex in plain for p in [problems(tex, macros)] if p} == {}


@pytest.mark.parametrize(
    "tex", [r"\operatorname{softmax}(S)", r"\frac{a}{b", r"a}{b", r"\left(a)", r"W_Q_{ac}", r"S^{(h)}^{\top}", r"a \, b"]
)
def test_the_check_sees_what_it_is_for(tex):
    assert problems(tex, SAFE)


def test_pdflatex_takes_every_formula(plain, tmp_path):
    if shutil.which("pdflatex") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("pdflatex is not installed")
        pytest.skip("pdflatex is not installed")
    head = r"\documentclass{article}\usepackage{amsmath}\usepackage[margin=1cm,paperwidth=60cm]{geometry}\begin{document}"
    rows = [rf"\noindent$\displaystyle {tex}$\par" for tex in plain]
    (tmp_path / "all.tex").write_text("\n".join([head, *rows, r"\end{document}"]))
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "all.log").read_text(errors="replace")
    assert "Missing character" not in log
    assert "Overfull" not in log


def test_small_doors():
    program = Definition(causal="bottom-right", heads=2).program()
    assert condition_form(program, "P") == r"j \le i + m - n"
    assert condition_form(program, "L") == ""
    assert scalar_form(program, "scale", program["scale"].expr) == r"\frac{1}{\sqrt{d_k}}"
    assert index_form(program, "S", constants=False, where=False) == r"S_{hij} = \alpha R_{hij}"
    assert matrix_form(program, "S", constants=False).latex == r"S^{(h)} = \alpha R^{(h)}"
    assert letter("WK") == "W_K"


def test_a_style_that_does_not_exist_is_named():
    program = Definition().program()
    with pytest.raises(UnknownNameError, match="'markdown'"):
        index_form(program, "S", style="markdwon")
