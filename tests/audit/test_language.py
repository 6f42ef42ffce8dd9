"""One formula in many notations: LaTeX, Unicode and plain text read as the same tree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symattn.audit.language import parse
from symattn.audit.language_nodes import Apply, Array, Number, is_literal, key, numbers
from symattn.audit.language_text import plain_text
from symattn.errors import GrammarError, LimitError, SymattnError

SAME = (
    (r"\frac{QK^T}{\sqrt{d_k}}", r"\dfrac{Q K^{\top}}{\sqrt{d_{k}}}",
     r"\frac{\mathbf{Q}\mathbf{K}^{\mathsf{T}}}{\sqrt{d_k}}"),
    ("QKᵀ", r"QK^T", "Q K^T", r"QK^{\intercal}", "QK.T"),
    ("softmax(x)", r"\text{softmax}(x)", r"\mathrm{softmax}\left(x\right)", r"\operatorname{Softmax}\bigl( x \bigr)",
     "F.softmax(x)"),
    ("[1, 0, 3]", "[1 0 3]", "[1,0,3]", r"\begin{bmatrix} 1 & 0 & 3 \end{bmatrix}", "(1, 0, 3)",
     r"\left[ 1 \quad 0 \quad 3 \right]", r"\{1, 0, 3\}", "⟨1, 0, 3⟩", r"\begin{array}{ccc} 1 & 0 & 3 \end{array}"),
    ("[[1, 2], [3, 4]]", "[[1 2] [3 4]]", "[[1 2]\n [3 4]]", "[1 2; 3 4]", "[1, 2; 3, 4]",
     r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \\ \end{pmatrix}"),
    ("[1, -2, 3]", "[1 -2 3]", "[ 1 -2  3]", "[1, −2, 3]"),
    ("p p^T", r"pp^{\top}", "ppᵀ"),
    ("e^{-2}", "e^-2", "e⁻²"),
    ("x^2", "x²", "x**2", "x^{2}"),
    ("√3", r"\sqrt{3}", r"\sqrt 3", "sqrt(3)", "√(3)"),
    ("1 × 2", r"1 \times 2", "1 x 2", r"1\times2"),
    ("a · b", r"a \cdot b", "a ⋅ b"),
    ("a ⊙ b", r"a \odot b", "a ∘ b"),
    (r"\frac12", r"\frac{1}{2}", r"\tfrac 1 2", "1/2"),
    ("6.03e-6", r"6.03 \times 10^{-6}", "6.03 × 10⁻⁶", "6.03 * 10^-6"),
    ("1024", "1,024", "1{,}024"),
    ("q_1", "q1", "q₁", "q_{1}", r"\mathbf{q}_1", r"\vec{q}_{1}"),
    ("XW_Q", "X W_Q", r"X\mathbf{W}_{Q}", r"XW_{\text{Q}}"),
    ("‖x‖", r"\|x\|", r"\lVert x \rVert", "||x||", r"\|x\|_2"),
    ("|x|", r"\lvert x \rvert", r"\left|x\right|"),
    ("raw scores", r"\text{Raw scores}", "Raw scores", r"\text{raw scores}"),
    ("exp(2)", r"\exp(2)", r"\exp 2", r"\exp{2}", "math.exp(2)"),
    ("softmax(x, dim=-1)", "torch.softmax(x, dim = -1)"),
)  # fmt: skip


@pytest.mark.parametrize(("first", "second"), [(row[0], other) for row in SAME for other in row[1:]])
def test_notations_of_one_formula(first: str, second: str) -> None:
    assert key(parse(first)) == key(parse(second))


DIFFERENT = (
    ("[1 - 2]", "[1 -2]"),
    ("Q", "q"),
    ("W_Q", "W_K"),
    ("2x", "2 x 3"),
    ("a - b - c", "a - (b - c)"),
    ("K'", "K"),
    ("x_1", "x"),
)


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_formulas_that_differ(first: str, second: str) -> None:
    assert key(parse(first)) != key(parse(second))


def test_precedence() -> None:
    assert key(parse("1 + 2 × 3 ^ 2")) == "sum(1,times(2,power(3,2)))"
    assert key(parse("-x^2")) == "neg(power(x,2))"
    assert key(parse("2 × -3")) == "times(2,neg(3))"
    assert key(parse("1 - 2 - 3")) == "sum(1,neg(2),neg(3))"
    assert key(parse("a / b c")) == "divide(a,juxtaposed(b,c))"
    assert key(parse("exp(x)^2")) == "power(call:exp(x),2)"
    assert key(parse(r"\sum_{i=1}^{3} x_i y_i + 1")).startswith("sum(bigsum(")


@pytest.mark.parametrize(
    ("text", "percent", "cut"),
    [("60.4%", True, False), (r"60.4\%", True, False), ("0.1906…", False, True), (r"0.19\ldots", False, True)],
)
def test_what_follows_a_number(text: str, percent: bool, cut: bool) -> None:
    node = parse(text)
    assert isinstance(node, Number) and (node.percent, node.cut) == (percent, cut)


def test_places_are_those_of_the_text() -> None:
    text = r"x = \frac{[10, 5.50]}{\sqrt{3}} - 2.5e-3"
    for n in numbers(parse(text[4:], 4)):
        assert text[n.start : n.end] == n.text


def test_an_ellipsis_is_no_number() -> None:
    node = parse("[0.1, 0.2, ..., 0.4]")
    assert isinstance(node, Array) and len(node.items) == 4 and is_literal(node) and len(numbers(node)) == 3


WRONG = (
    "",
    "1 +",
    "+",
    "(1",
    "1)",
    "[1, 2",
    "1 2 )",
    r"\frac{1}",
    r"\begin{cases} 1 \end{cases}",
    "^2",
    "_1",
    r"\begin{bmatrix} 1 & \end{bmatrix}",
    "a , b",
    "#",
)


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_formula_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(GrammarError, match=r"\w"):
        parse(text)


@pytest.mark.parametrize("text", ["(" * 60 + "1" + ")" * 60, "-" * 100 + "1", "1×" * 100 + "1", "1+" * 7000 + "1", "1" * 50_000])
def test_limits(text: str) -> None:
    with pytest.raises(LimitError):
        parse(text)


def _trees() -> st.SearchStrategy[str]:
    atoms = st.sampled_from(["1", "2.5", "x", "W_Q", "[1, 2]", "q_1", "[[1, 2], [3, 4]]"])
    return st.recursive(
        atoms,
        lambda inner: (
            st.tuples(inner, st.sampled_from([" + ", " - ", " × ", " · ", " / ", " @ ", " ⊙ "]), inner).map(
                lambda t: f"({t[0]}){t[1]}({t[2]})"
            )
            | inner.map(lambda t: f"√({t})")
            | inner.map(lambda t: f"softmax({t})")
            | inner.map(lambda t: f"({t})^2")
            | inner.map(lambda t: f"-({t})")
            | inner.map(lambda t: f"({t})ᵀ")
        ),
        max_leaves=8,
    )


@settings(max_examples=150, deadline=None)
@given(_trees())
def test_what_is_written_reads_back(text: str) -> None:
    tree = parse(text)
    again = parse(plain_text(tree))
    assert plain_text(again) == plain_text(tree)
    assert isinstance(again, Apply) == isinstance(tree, Apply)


def test_errors_say_where() -> None:
    with pytest.raises(SymattnError, match="ends where an operand is needed"):
        parse("1 + 2 ×")
    with pytest.raises(SymattnError, match="after `1 , 2 ,`"):
        parse("[1, 2, × 3]")
