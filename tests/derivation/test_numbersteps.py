from __future__ import annotations

from fractions import Fraction

import pytest

from symattn.derivation import exactvalue as ev
from symattn.derivation.nodeprint import Style, latex, latex_pieces, text, text_pieces
from symattn.derivation.numbersteps import (
    Apply,
    Item,
    Node,
    Num,
    Power,
    Product,
    Quotient,
    Rounded,
    Sum,
    divided,
    number,
    product,
    tree,
)
from symattn.readings.latex import MARKDOWN

TEN = Quotient(number(10), Apply("sqrt", (number(3),)))
HALF, MINUS = number(Fraction(1, 2)), number(-3)


@pytest.mark.parametrize(
    ("node", "tex", "plain"),
    [
        (TEN, r"\frac{10}{\sqrt{3}}", "10/√3"),
        (Apply("exp", (TEN,)), r"e^{10/\sqrt{3}}", "e^(10/√3)"),
        (Sum(((1, product([number(2), MINUS])), (-1, MINUS))), r"2 \cdot (-3) - (-3)", "2·(-3) - (-3)"),
        (Sum(((1, MINUS), (-1, MINUS))), "-3 - (-3)", "-3 - (-3)"),
        (
            Product((HALF, Sum(((1, Rounded("-0.5", ev.ONE)), (1, MINUS))))),
            r"\frac{1}{2} \cdot (-0.5 + (-3))",
            "1/2·(-0.5 + (-3))",
        ),
        (Product((HALF, MINUS)), r"\frac{1}{2} \cdot (-3)", "1/2·(-3)"),
        (Product((number(3), HALF)), r"3 \cdot \frac{1}{2}", "3·(1/2)"),
        (Power(HALF, number(2)), r"{\left(\frac{1}{2}\right)}^{2}", "(1/2)^2"),
        (Quotient(number(1), Sum(((1, HALF), (1, number(1))))), r"\frac{1}{\frac{1}{2} + 1}", "1/(1/2 + 1)"),
        (Num(ev.MINUS_INFINITY), r"-\infty", "-∞"),
        (Rounded("1.5e-7", ev.ONE), r"1.5 \cdot 10^{-7}", "1.5·10⁻⁷"),
        (Quotient(HALF, TEN.under), r"\frac{\frac{1}{2}}{\sqrt{3}}", "(1/2)/√3"),
        (Apply("exp", (Quotient(TEN, number(7)),)), r"e^{(10/\sqrt{3})/7}", "e^((10/√3)/7)"),
        (divided(number(Fraction(-79, 6)), [TEN.under]), r"-\frac{79}{6\,\sqrt{3}}", "-79/(6·√3)"),
        (divided(MINUS, [TEN.under]), r"-\frac{3}{\sqrt{3}}", "-3/√3"),
        (Apply("tanh", (TEN,)), r"\tanh\left(\frac{10}{\sqrt{3}}\right)", "tanh(10/√3)"),
    ],
)
def test_printed_as_typed(node: Node, tex: str, plain: str) -> None:
    assert latex(node) == tex and text(node) == plain


def test_ten_over_root_three_is_never_rationalised() -> None:
    value = TEN.value
    assert latex(tree(value)) == r"\frac{10}{\sqrt{3}}"
    both = ev.add(value, ev.call("exp", value))
    assert latex(tree(both)) == r"\frac{10}{\sqrt{3}} + e^{10/\sqrt{3}}"


def test_the_value_of_a_tree_is_what_its_operations_give() -> None:
    node = Sum(((1, product([number(1), number(2)])), (-1, Quotient(HALF, number(4))), (1, Power(MINUS, number(2)))))
    assert node.value == ev.rational(Fraction(2) - Fraction(1, 8) + 9)


def test_elements_are_counted_from_one_and_heads_stand_above() -> None:
    item = Item("P", (0, 4, 1), ev.ONE)
    assert latex(item) == "P_{1,5,2}" and text(item) == "P[1,5,2]"
    style = Style(leading={"P": 1})
    assert latex(item, style) == "P^{(1)}_{5,2}" and text(item, style) == "P^(1)[5,2]"


def test_decimals_where_the_input_was_typed_in_decimals() -> None:
    value = ev.divide(ev.rational(Fraction(41, 10)), ev.sqrt(ev.rational(2)))
    assert text(tree(value)) == "41/(10·√2)"
    assert text(tree(value, decimals=True), Style(decimals=True)) == "4.1/√2"


def test_markdown_has_no_backslash_before_a_comma() -> None:
    value = tree(ev.multiply(ev.rational(2), ev.call("exp", ev.ONE)))
    assert latex(value) == r"2\,e^{1}"
    assert latex(value, Style(typesetting=MARKDOWN)) == r"2\thinspace e^{1}"


def test_text_and_latex_are_torn_at_the_same_places() -> None:
    inner = Sum(((1, number(1)), (-1, number(2)), (1, number(3))))
    for node in (inner, Product((HALF, inner)), TEN, Sum(((-1, number(2)),))):
        assert len(latex_pieces(node)) == len(text_pieces(node))
    assert text_pieces(Product((HALF, inner))) == ["1/2·(1", "- 2", "+ 3)"]
