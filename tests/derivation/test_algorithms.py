"""Derivations of kernel algorithms: every step shown, numbers that end where the definition's do, gradients tile by tile."""

import pytest

from symattn.definition import Definition
from symattn.derivation.engine import derive
from symattn.errors import DefinitionError


def cells(derivation, name):
    return [[c.decimal for c in row] for row in derivation[name].grids[-1].cells]


@pytest.mark.parametrize(
    ("algorithm", "block"),
    [("flash", 2), *(pytest.param(a, k, marks=pytest.mark.slow) for a, k in (("online", None), ("split", 2), ("ring", 3)))],
)
def test_the_numbers_end_where_those_of_the_definition_do(algorithm, block):
    plain = derive(example="the-cat-sat")
    found = derive(Definition.of(start="tokens", algorithm=algorithm, block=block), example="the-cat-sat")
    assert cells(found, "O") == cells(plain, "O")
    assert "P" not in [t for s in found.steps for t in s.tensors]


def test_the_running_maximum_is_shown_without_being_asked_for():
    text = derive(Definition(algorithm="flash", causal="top-left")).to_text()
    assert "Running maxima" in text and "ρ[i,t] = exp(m̄[i,t - 1] - m̄[i,t])   where t ≥ 1 and seen[i,t - 1] ≥ 1" in text
    assert "⌈m/B_c⌉" in text


def test_the_gradient_is_that_of_a_kernel():
    found = derive(Definition(algorithm="flash", block=2), gradient=True)
    names = [s.tensors[-1] for s in found.steps]
    assert [n for n in names if n in ("P_b", "D", "dS", "dQt", "dQs", "dQ", "dKt", "dK", "dV")]
    assert names.index("P_b") < names.index("dS") < names.index("dQt") < names.index("dQs") < names.index("dQ")
    assert r"\hat{P}" in found.to_latex() and "Gradient of the keys: what a tile gives" in found.to_text()
    assert not any("checked" in line for line in found.rewritings)


def test_the_matrix_of_the_followed_query():
    """What has a matrix for every query shows that of the one that is followed: two tiles of two, one of one."""
    found = derive(Definition(start="tokens", algorithm="flash", block=2), example="the-cat-sat")
    (grid,) = found["E"].grids
    assert [[c.masked for c in row] for row in grid.cells] == [[False, False], [False, False], [False, True]]


def test_a_paged_cache_is_a_look_up():
    text = derive(Definition(algorithm="paged", block=4)).to_text()
    assert "𝒦[π[⌊j/4⌋],j mod 4,c]" in text and "table of pages" in text


def test_numbers_need_a_size_of_tiles():
    with pytest.raises(DefinitionError, match="set block"):
        derive(Definition(start="tokens", algorithm="flash"), example="the-cat-sat")
