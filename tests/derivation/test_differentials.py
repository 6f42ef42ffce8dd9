"""The gradient as a derivation: what its sections say, that this is right for every variant, and that a fault is found."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import pytest

from symattn import variants
from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.derivation import derive
from symattn.derivation.blocks import Box, Display, Prose
from symattn.derivation.differentials import linear
from symattn.derivation.differentials.linear import differentials
from symattn.presentation.ballcheck import random_inputs, small_sizes
from symattn.program import Program
from symattn.readings import balls

KINDS = ("self-attention", "causal", "sink", "softcap", "rope", "sparsemax", "linear-attention", "dropout")


def _lines(page: object, title: str) -> list[str]:
    section = next(s for s in page.sections if s.title == title)
    return [f.latex for b in section.blocks if isinstance(b, Display) for f in b.formulas]


def test_plain_attention_reads_as_a_paper() -> None:
    page = derive(gradient=True, form="matrix")
    assert [s.title for s in page.sections] == [
        "The loss",
        "Differentials",
        "The rule",
        "Read backwards",
        "What stands with each movement",
        "Summary",
        "The gradient as a kernel computes it",
    ]
    assert _lines(page, "The loss")[1] == r"\dot{\mathcal{J}} = \langle dO, \dot{O} \rangle"
    assert _lines(page, "Differentials")[-1] == r"\dot{O} = P \dot{V} + \dot{P} V"
    backwards = _lines(page, "Read backwards")
    assert backwards[0] == (
        r"\langle dO, \dot{O} \rangle = \langle dO, P \dot{V} + \dot{P} V \rangle"
        r" = \langle dO\, V^{\top}, \dot{P} \rangle + \langle P^{\top}\,dO, \dot{V} \rangle"
    ).replace(r"dO\, V", r"dO\,V")
    assert _lines(page, "What stands with each movement")[1] == r"dL = -(P \circ dP)\mathbf{1}"
    box = next(b for s in page.sections for b in s.blocks if isinstance(b, Box))
    assert [f.latex for f in box.blocks[0].formulas][2] == r"dS = P \circ (dP - D\mathbf{1}^{\top})"
    chain = _lines(page, "The gradient as a kernel computes it")[0]
    assert chain.startswith(r"D_i = \sum_j \hat{P}_{ij}\,dP_{ij}") and chain.count("=") == 4
    assert all(s.known for s in page.sections if s.title in ("Differentials", "What stands with each movement"))


def test_letters_in_sentences_are_formulas() -> None:
    """In a paper dT in roman type is another thing than the dT of a display."""
    for s in derive(gradient=True).sections:
        said = " ".join(x for b in s.blocks if isinstance(b, Prose) for x in b.parts if isinstance(x, str))
        assert not re.search(r"\bd?[A-Z]\b(?! \w*dot)|\.\.(?!$)", re.sub(r"\bA (?=\w)", "", said)), said


def test_sections_stand_around_the_steps_of_the_gradient() -> None:
    page = derive(gradient=True)
    first = next(s.number for s in page.steps if s.backward)
    assert [s.before for s in page.sections] == [first] * 5 + [None] * 2
    text = page.to_text()
    assert text.index("Context vectors") < text.index("The loss") < text.index("Gradient of the weights") < text.index("Summary")
    assert not derive().sections and not derive(jvp=True).sections
    assert not derive(gradient=True, detail="brief").sections


@pytest.mark.parametrize("name", KINDS)
def test_what_is_collected_is_the_gradient(name: str) -> None:
    """In balls of 400 bits, against what the rule makes, at sizes of one, two and three."""
    program = variants.get(name).definition.replace(lse=False).program()
    found = differentials(program)
    assert found.status == "proved for all sizes"
    gradient = adjoint(program)
    sizes = small_sizes(gradient)
    inputs = random_inputs(gradient, sizes, 7)
    outputs = [o for o in gradient.outputs if o in {s.name for s in found.collected}]
    assert outputs
    base = program.with_statements([*program, *found.collected], outputs, {**found.program.dims}, found.program.shapes)
    left = balls.evaluate(gradient, inputs, sizes=sizes, bits=400)
    right = balls.evaluate(base, {n: inputs[n] for n in base.inputs}, sizes=sizes, bits=400)
    for o in outputs:
        for x, y in zip(left[o].flat, right[o].flat, strict=True):
            (a, r), (b, s) = balls.parts(x), balls.parts(y)
            assert abs(a - b) <= r + s and max(r, s) < Fraction(1, 2**200)


def test_each_pairing_is_an_identity() -> None:
    """``<dT, T_t>`` and the sum of its shares are the same number, for every statement of a variant with a bit of everything."""
    d = Definition(heads=4, kv_heads=2, sink=True, softcap="cap", causal="bottom-right")
    found = differentials(d.program())
    sizes = small_sizes(found.program)
    for p in found.pairings:
        shares = [s for _, s in p.shares]
        assert shares
        names = {*(n for s in shares for n in s.needs), *p.moving.needs, "d" + p.name}
        given = {s.name: found.program.shape_of(s) for s in found.program if s.name in names and s.name != p.moving.name} | {
            "d" + p.name: found.program.shape_of(p.moving)
        }
        one = Program(
            (p.moving, *shares),
            found.program.dims,
            (p.moving.name, *(s.name for s in shares)),
            dict(found.program.shapes) | given,
        )
        inputs = random_inputs(one, sizes, 3) | random_inputs(
            Program((p.moving,), found.program.dims, (p.moving.name,), dict(found.program.shapes) | given), sizes, 3
        )
        value = balls.evaluate(one, {n: inputs[n] for n in one.inputs}, sizes=sizes, bits=300)
        d_t = inputs["d" + p.name]
        left = _paired(value[p.moving.name], d_t, p.moving, sizes)
        right = sum(_paired(value[s.name], inputs[n], s, sizes) for n, s in p.shares)
        assert abs(left - right) < Fraction(1, 2**150)


def _paired(values: object, others: object, s: object, sizes: dict[str, int]) -> Fraction:
    """The sum of products over all entries; entries outside a condition are 0 on one side."""
    return sum((Fraction(balls.parts(x)[0]) * Fraction(y) for x, y in zip(values.flat, others.flat, strict=True)), Fraction(0))


def test_a_fault_is_not_called_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sign that is wrong in what is collected is neither proved nor checked."""
    real = linear._called

    def wrong(s: object, names: dict[str, str]) -> object:
        made = real(s, names)
        return replace(made, expr=-made.expr) if made.name == "dL" else made

    monkeypatch.setattr(linear, "_called", wrong)
    assert linear.differentials.__wrapped__(Definition(lse=False).program()).status not in ("proved for all sizes", "checked")


def test_an_algorithm_is_derived_from_its_definition() -> None:
    page = derive(Definition(algorithm="flash", block=2), gradient=True)
    assert "The algorithm computes the tensors of its definition" in page.to_text().replace("\n", " ")
    assert _lines(page, "Differentials") == _lines(derive(Definition(), gradient=True), "Differentials")


@pytest.mark.slow
@pytest.mark.parametrize("name", variants.names())
def test_every_variant(name: str) -> None:
    page = derive(variants.get(name).definition, gradient=True)
    collected = next(s for s in page.sections if s.title == "What stands with each movement")
    assert collected.known in ("proved for all sizes", "checked at 400 bits")
    assert _lines(page, "Differentials") and any(s.title == "Summary" for s in page.sections)
    assert page.to_text() and page.to_latex() and page.to_markdown()
