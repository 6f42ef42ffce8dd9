"""Arithmetic as people publish it: other signs for the same numbers, each with a right line and one with a planted error."""

from __future__ import annotations

import pytest

from symattn.audit.reading import audit_article


def _wrong(text: str) -> list[tuple[str, str]]:
    """The numbers that are not right, with the first digits of the exact value."""
    return [(str(f.verdict.printed), f.verdict.exact[:6]) for f in audit_article(text).audit.findings if not f.verdict.correct]


def _checked(text: str) -> int:
    return len(audit_article(text).audit.findings)


NUMBERS = (
    ("10/√3 = 5,77 und 5/√3 = 2,89", 2, []),
    ("10/√3 = 5,87 und 5/√3 = 2,89", 2, [("5.87", "5.7735")]),
    (r"$10/\sqrt{3} = 5{,}77$ und $\sqrt{3} = 1{,}732$", 2, []),
    ("5 + 5,5 = 10,5 und $[0,5;\\ 1,5] \\cdot 2 = [1;\\ 3]$", 3, []),
    ("[1,2] · [3,4] = 11 and f = [0,5]", 1, []),
    ("512 × 2048 = 1 048 576", 1, []),
    (r"$512 \times 2048 = 1\,048\,576 = 1{,}048{,}576$", 2, []),
    ("512 × 2048 = 1 048 577", 1, [("1048577", "104857")]),
    ("e⁰·⁵ = 1.65, e⁻¹ ≈ 0.368 and 10⁻³ = 0.001", 3, []),
    ("e⁰·⁵ = 1.75", 1, [("1.75", "1.6487")]),
    (r"$\sin(30°) = 0.5$, $\cos 60^\circ = 0.5$, $\sin 45^{\circ} \approx 0.7071$, $\tan(\pi/4) = 1$", 4, []),
    (r"$\sin(30°) = 0.6$", 1, [("0.6", "0.5")]),
    (r"$x = [1, 3]$ and $\hat{x} = [-1, 1]$ and $\bar x = 2$. $\mathrm{mean}(x) = 2$", 1, []),
    (r"$x = [1, 3]$ and $\hat{x} = [-1, 1]$. $\mathrm{mean}(x) = 3$", 1, [("3", "2")]),
    (r"$\det\begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix} = \begin{vmatrix} 1 & 2 \\ 3 & 4 \end{vmatrix} = -2$", 5, []),
    (r"$\begin{vmatrix} 1 & 2 \\ 3 & 4 \end{vmatrix} = 2$", 1, [("2", "-2")]),
    (r"$\operatorname{tr}\begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix} = 5$ and $\prod_{i=1}^{4} i = 24$", 2, []),
    (r"$\arg\max([0.1, 0.7, 0.2]) = 2$; argmax([0.1, 0.7, 0.2]) = 1", 2, []),
    (r"$\operatorname{argmax}([0.1, 0.7, 0.2]) = 3$", 1, [("3", "2")]),
    (r"$\sigma(1) = \frac{1}{1 + e^{-1}} \approx 0.731$", 1, []),
    (r"$\sigma(1) = 0.741$", 1, [("0.741", "0.7310")]),
    (r"$\underbrace{0.5 \cdot 2}_{1.0} + \underbrace{0.5 \cdot 4}_{\text{second}} = 3$", 2, []),
    (r"$\underbrace{0.5 \cdot 2}_{1.5} + \underbrace{0.5 \cdot 4}_{2.0} = 3$", 3, [("1.5", "1")]),
)


@pytest.mark.parametrize(("text", "count", "expected"), NUMBERS, ids=[t[:40] for t, _, _ in NUMBERS])
def test_numbers_and_signs(text: str, count: int, expected: list[tuple[str, str]]) -> None:
    assert (_wrong(text), _checked(text)) == (expected, count)


def test_two_numbers_side_by_side_are_no_product() -> None:
    found = audit_article("2 3 = 6").audit
    assert not found.findings and "side by side" in found.unread[0].reason


def test_a_matrix_is_no_misprint_of_a_vector_with_its_numbers() -> None:
    page = "scores = [1,0,1,0] · [1,1,0,0] = 1\nW = [[1, 1], [0, 1]]\ny: [1,0] · W = [1×1+0×0, 1×1+0×1] = [1, 1]\n"
    assert _wrong(page) == []


MASKS = (
    (r"$M = \begin{bmatrix} 0 & -\infty \\ 0 & 0 \end{bmatrix}$, $S = \begin{bmatrix} 1 & 2 \\ 0.5 & 1.5 \end{bmatrix}$"
     r" $$S + M = \begin{bmatrix} 1 & -\infty \\ 0.5 & 1.5 \end{bmatrix}$$"
     r" $$\text{softmax}(S + M) = \begin{bmatrix} 1 & 0 \\ 0.269 & 0.731 \end{bmatrix}$$", []),
    ("softmax([1, -inf, 1]) = [0.5, 0, 0.5] and $e^{-\\infty} = 0$", []),
    ("softmax([1, -∞, 1]) = [0.5, 0.1, 0.5]", [("0.1", "0")]),
    ("[1, -np.inf] / 2 = [0.5, -inf] and [1, float('-inf')] + [1, 1] = [2, -inf]", []),
    (r"$[1, -\infty] + [1, 1] = [2, 3]$", [("3", "-inf")]),
    (r"$[1, 2] + [1, 1] = [2, -\infty]$", [("-inf", "3")]),
)  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), MASKS, ids=[t[:30] for t, _ in MASKS])
def test_masks_of_minus_infinity(text: str, expected: list[tuple[str, str]]) -> None:
    found = audit_article(text).audit
    assert (_wrong(text), found.unread) == (expected, ()) and found.findings


@pytest.mark.parametrize("text", [r"$\infty - \infty = 0$", r"softmax([-inf, -inf]) = [0.5, 0.5]", r"$0 \times \infty = 0$"])
def test_infinities_without_a_value_are_listed(text: str) -> None:
    found = audit_article(text).audit
    assert not found.findings and "infinit" in found.unread[0].reason


ORDERS = (
    ("$5.77 > 2.89 > 1.73$ and $0.19 < 0.60$", []),
    (r"$\sqrt{3} > 2$", ["2"]),
    (r"$e^2 \ge 7$, $1/3 \ne 0.33$, $2 + 2 \le 4$, $\log 2 \leq 0.6932$", []),
    ("$2 + 2 < 4$", ["4"]),
    ("Since 0.60 > 0.65 the first wins", ["0.65"]),
    ("$x = [1, 2]$. $x > 0$ and $x > 1$", ["1"]),
    (r"$2 \ne 1 + 1$", ["2"]),
    ("$a = 3$, $b = 2$, $a < b$", ["2"]),
    ("$q = 3 > 2 = 1 + 2$", ["2"]),
)


@pytest.mark.parametrize(("text", "expected"), ORDERS, ids=[t[:30] for t, _ in ORDERS])
def test_inequalities(text: str, expected: list[str]) -> None:
    found = audit_article(text).audit
    assert [str(f.verdict.printed) for f in found.findings if f.verdict.wrong] == expected and not found.unread


def test_an_inequality_of_rounded_numbers_may_be_left_open() -> None:
    assert audit_article(r"$\sqrt{3} > 1.7321$").audit.exit_code == 3
    assert audit_article(r"$\sqrt{3} > 1.7322$").audit.exit_code == 1


def test_an_inequality_defines_nothing() -> None:
    found = audit_article("$x > 5$ and $x = 2$. $x + 1 = 3$").audit
    assert [u.reason for u in found.unread] == ["`x` has no value on this page"] and found.exit_code == 0
