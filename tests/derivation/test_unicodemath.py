from __future__ import annotations

import pytest

from symattn.derivation.unicodemath import unicode_math
from symattn.errors import InputValueError
from tests.derivation.cases import variant
from tests.support import rows


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"R = Q K^{\top}", "R = Q Kᵀ"),
        (r"(W_Q)_{ac}", "W_Q[a,c]"),
        (r"S = \frac{Q K^{\top}}{\sqrt{d_k}}", "S = Q Kᵀ/√d_k"),
        (r"P_{ij} = \frac{\exp(S_{ij})}{\sum_{j'} \exp(S_{ij'})}", "P[i,j] = exp(S[i,j])/(Σ_j' exp(S[i,j']))"),
        (r"dS = P \circ (dP - D\mathbf{1}^{\top})", "dS = P ∘ (dP - D𝟏ᵀ)"),
        (r"O^{(h)} = P^{(h)} V", "O^(h) = P^(h) V"),
        (r"m_i = \max_j S_{ij}", "m[i] = max_j S[i,j]"),
        (r"\frac{a + b}{2}", "(a + b)/2"),
        (r"\mathcal{E}_{t_p,a}", "ℰ[t[p],a]"),
        (r"j < \mathrm{len}", "j < len"),
    ],
)
def test_formulas(latex: str, text: str) -> None:
    assert unicode_math(latex) == text


@pytest.mark.parametrize("latex", [r"\unknown{x}", r"\frac{a}{b", r"{a", r"\left(a"])
def test_what_is_not_understood_is_an_error(latex: str) -> None:
    with pytest.raises((InputValueError, IndexError)):
        unicode_math(latex)


@pytest.mark.parametrize("name", rows())
def test_every_formula_of_every_variant_has_a_text(name: str) -> None:
    for s in variant(name).steps:
        for f in s.formulas:
            for latex in (f.latex, f.markdown):
                shown = unicode_math(latex)
                assert "\\" not in shown and "{" not in shown and "=" in shown
