from __future__ import annotations

import pytest

from tests.derivation.reader import CONTEXT, read_latex, read_text


def nothing(name: str, index: tuple[int, ...]) -> object:
    raise AssertionError(name)


@pytest.mark.parametrize(
    ("text", "latex", "value"),
    [
        ("1·2 + 0·(-5)", r"1 \cdot 2 + 0 \cdot (-5)", 2),
        ("10/√4", r"\frac{10}{\sqrt{4}}", 5),
        ("e^(10/√4 - 5)/2", r"\frac{e^{10/\sqrt{4} - 5}}{2}", 0.5),
        ("(1 + 2)·3 - 4/8", r"(1 + 2) \cdot 3 - \frac{4}{8}", 8.5),
        ("2·e^(0)", r"2\,e^{0}", 2),
        ("max(1, 7/2)", r"\max\left(1, \frac{7}{2}\right)", 3.5),
    ],
)
def test_the_readers_do_arithmetic(text: str, latex: str, value: float) -> None:
    assert CONTEXT.almosteq(read_text(text, nothing), value) and CONTEXT.almosteq(read_latex(latex, nothing), value)


def test_the_readers_look_elements_up() -> None:
    def element(name: str, index: tuple[int, ...]) -> int:
        return {("P", (5, 1)): 3, ("ℓ", (5,)): 2, ("W_Q", (1, 2)): 7, ("dS", (2, 1, 1)): 11}[name, index]

    assert read_text("P[5,1]/ℓ[5]·W_Q[1,2] + dS^(2)[1,1]", element) == 21.5
    assert read_latex(r"\frac{P_{5,1}}{\ell_5} \cdot (W_Q)_{1,2} + dS^{(2)}_{1,1}", element) == 21.5


def test_a_wrong_line_is_not_read_as_right() -> None:
    assert read_text("1·2 + 3", nothing) != 6
    with pytest.raises((AssertionError, ValueError)):
        read_text("1·2 +) 3", nothing)
