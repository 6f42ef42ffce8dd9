"""Any text in: an answer or a SymattnError out, soon, and nothing of it is evaluated as code."""

from __future__ import annotations

import builtins

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from symattn.audit.language import parse
from symattn.audit.reading import audit_article
from symattn.audit.writers import FORMATS, document
from symattn.errors import SymattnError

PIECES = (
    "1", "0.5", "12.", "3e4", "9" * 50, "1e-9", "10^{99}", "x", "Q", "W_Q", "K^T", "d_k", "raw scores", "e^",
    "\\frac", "\\sqrt",
    "\\sqrt[3]", "{", "}", "[", "]", "(", ")", "&", "\\\\", "\\begin{bmatrix}", "\\end{bmatrix}",
    "\\begin{align}", "\\end{align}",
    "\\left", "\\right", "\\text{", "softmax", "exp", "log", "sum", "\\sum_{i=1}^{3}", "=", "≈", "\\approx", "\\mapsto", "+", "-",
    "×", "\\times", "·", "*", "**", "/", "^", "_", "|", "‖", "⟨", "⟩", ",", ";", ":", " ", "\n", "$", "$$", "...", "…", "\\ldots",
    "%", "\\%", "²", "₁", "√", "½", "̈", "\x00", "‮", "\\mathbf{", "'", '"', "`", "```\n", "|---|", "is [", "# ", "\\", "𝟙", "٣",
)  # fmt: skip


def texts() -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text(max_size=80)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts())
@example("$2^{2^{2^{2^{2^{2}}}}} = 1$")
@example("$10^{99}^{99} = 1$")
@example("0.5 = 0.5 = ")
@example("$e^{e^{e^{e^9}}} = 1$")
@example("$\\log(0) = 1$ $1/0 = 2$ $\\sqrt{-1} = 3$ $0^{-1} = 4$")
@example("$x = x = x$ $x = x + 1 = 3$")
@example("$exp(exp(20)) = 1$")
def test_any_text_gives_an_answer(text: str) -> None:
    found = audit_article(text)
    assert found.audit.exit_code in (0, 1, 3)
    for form in FORMATS:
        assert document(found, form)


@settings(max_examples=150, deadline=None)
@given(texts())
def test_any_formula_is_read_or_refused(text: str) -> None:
    try:
        parse(text)
    except SymattnError as error:
        assert str(error)


HOSTILE = (
    "__import__('os').system('touch /tmp/hurt') = 1",
    "$\\text{__import__('os')} = eval(1)$",
    "exec(open('x').read()) = 1",
    "$().__class__.__bases__[0] = 1$",
    "lambda: 0 = 1",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_is_evaluated_as_code(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **more: object) -> object:
        raise AssertionError("text became code")

    audit_article("$1 + 1 = 2$")  # what is imported lazily compiles code of its own
    with monkeypatch.context() as patched:
        for name in ("eval", "exec", "compile"):
            patched.setattr(builtins, name, refuse)
        found = audit_article(text)
    assert found.audit.exit_code in (0, 1, 3)


def test_text_of_the_page_is_only_shown() -> None:
    found = audit_article(
        "<script>alert(1)</script> $x<script> = <img src=y onerror=z> = 1 = 2$\n\n$$\\text{<b>x</b>} = 2 \\times 3 = 7$$"
    )
    page = document(found, "html")
    assert "<script" not in page and "<img" not in page and "<b>x" not in page
    assert "\x1b" not in document(audit_article("$\\text{\x1b[31m} = 1 + 1 = 3$"), "text")


LARGE = (
    "$" + "{" * 3000 + "1" + "}" * 3000 + " = 1$",
    "$" + "-" * 5000 + "1 = 1$",
    "$" + "1+" * 5000 + "1 = 2$",
    "$" + "2^" * 2000 + "2 = 2$",
    "$" + "\\sqrt" * 2000 + "{2} = 2$",
    "$" + "\\mathbf{" * 2000 + "x" + "}" * 2000 + " = 2$",
    "$" + "exp " * 1000 + "2 = 2$",
    "$" + "9" * 20000 + " = 9$",
    "$$" + "[" + "1," * 8000 + "1] = 2$$",
    "$$softmax([" + "0.1," * 500 + "1]) = 2$$",
    "$2^{1000} = 1$ " * 300,
    "\n".join("x = x + 1 = 2" for _ in range(500)),
    "$x = \\sqrt{2} + 1$\n" + "$x = x \\cdot x$\n" * 90 + "$softmax([x, 1]) = [1, 0]$ $x = 0.5$ $x - x = 0$",
    "$x_1 = 1$" + "$x = \\sqrt{x} + 1 = 2$" * 300,
    "[" * 20000,
    "= " * 10000,
    "\\begin{bmatrix}" * 3000,
    "$" * 9999,
    "a = [" + "\n" * 5000,
    "1 = 2 " * 5000,
    "`" * 9999 + "=1",
    "( " * 5000 + "= 1",
    "<a" * 20000,
    "![" * 20000,
    "$$\\begin{bmatrix}" + " & ".join(["0.5"] * 60) + "\\end{bmatrix}" + " = 1$$",
)


@pytest.mark.parametrize("text", LARGE, ids=lambda t: repr(t[:14]))
def test_large_and_deep_texts_are_refused_or_answered(text: str) -> None:
    found = audit_article(text)
    assert found.audit.exit_code in (0, 1, 3)
