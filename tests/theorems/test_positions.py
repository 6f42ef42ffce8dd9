"""Rotations and sinusoidal positions: proved for every pair, wrong rotations refuted, and the same facts by complex numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from symattn import Attention
from symattn.definition import Definition
from symattn.readings import exact
from symattn.theorems.catalogue import THEOREMS
from symattn.theorems.claim import OPEN, PROVED, REFUTED
from symattn.theorems.proving import prove_theorem
from symattn.theorems.subject import Subject
from symattn.theorems.theorem import NOT_APPLICABLE
from symattn.variants.latent import ROWS as LATENT
from symattn.variants.positions import ROWS as POSITIONS

ROTATED = {v.name: v.fields for v in (*POSITIONS, *LATENT) if v.fields.get("rope")}
RELATIVE = [n for n in ROTATED if n != "norm-after-rope"]


def decisions(name, definition, *changes):
    """What is found of the claims for the program with some statements changed: (name of a statement, change of its expr)."""
    s = Subject(definition)
    program = s.plain
    for n, change in changes:
        assert n in program and change(program[n].expr) != program[n].expr
        program = program.with_statements([replace(t, expr=change(t.expr)) if t.name == n else t for t in program])
    s.__dict__["plain"] = program
    return [(c, c.decide()) for c in THEOREMS[name].claims(s)]


@pytest.mark.parametrize("name", ["rope-relative", "rope-orthogonal", "sinusoidal-shift"])
def test_at_home_it_is_proved_for_all_sizes(name):
    found = prove_theorem(THEOREMS[name])
    assert (found.verdict, found.scope, found.side) == (PROVED, "all sizes", "")
    assert prove_theorem(THEOREMS[name], Definition()).verdict == NOT_APPLICABLE


@pytest.mark.parametrize("name", ROTATED)
def test_every_rotation_of_the_catalogue_keeps_lengths(name):
    assert prove_theorem(THEOREMS["rope-orthogonal"], Definition.of(**ROTATED[name])).verdict == PROVED


@pytest.mark.parametrize("name", ["rope-interleaved", "rope-partial", "rope-decode", "yarn", "latent-absorbed"])
def test_the_rotations_of_the_catalogue_are_relative(name):
    assert name in RELATIVE
    assert prove_theorem(THEOREMS["rope-relative"], Definition.of(**ROTATED[name])).verdict == PROVED


def test_there_is_a_claim_for_what_is_not_turned():
    found = decisions("rope-relative", Definition(rope="interleaved", rope_dim=4))
    assert {c.text.split(":")[0] for c, _ in found} == {"any pair of channels", "of a pair", "a channel that is not turned"}


# ---------------------------------------------------------------- wrong rotations
def minus(e):
    return -e


i, j, c = sp.symbols("i j c", integer=True)
WRONG = {
    "keys turned the other way": ("rope-relative", {"rope": "half"}, ("SK", minus)),
    "keys turned the other way, in pairs of neighbours": ("rope-relative", {"rope": "interleaved"}, ("SK", minus)),
    "the sign of a channel": ("rope-relative", {"rope": "half"}, ("Qneg", minus)),
    "the sign of a channel, length": ("rope-orthogonal", {"rope": "half"}, ("Qneg", minus)),
    "keys twice as fast": ("rope-relative", {"rope": "half"}, ("CK", lambda e: e.xreplace({j: 2 * j}))),
    "two frequencies in a pair": ("rope-relative", {"rope": "half"}, ("Thb", lambda e: e / 2)),
    "two frequencies in a pair, length": ("rope-orthogonal", {"rope": "interleaved"}, ("Thb", lambda e: e.xreplace({c: c + 1}))),
    "a constant beside the cosine": ("rope-orthogonal", {"rope": "half"}, ("CK", lambda e: e + 1)),
    "the rest left out": ("rope-orthogonal", {"rope": "half", "rope_dim": 2}, ("Qrest", lambda e: 0 * e)),
    "the rest turned into its negative": ("rope-orthogonal", {"rope": "half", "rope_dim": 2}, ("Qrest", lambda e: 2 * e)),
    "a channel twice": ("rope-relative", {"rope": "interleaved"}, ("Kpos", lambda e: 2 * e)),
    "an amplitude of the sines": ("rope-relative", {"rope": "half"}, ("SQ", lambda e: 2 * e)),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rotation_is_refuted_in_exact_numbers(name):
    theorem, fields, change = WRONG[name]
    found = decisions(theorem, Definition(**fields), change)
    assert all(d.verdict != OPEN for _, d in found), found
    wrong = [d.counterexample for _, d in found if d.verdict == REFUTED]
    assert wrong
    assert all(exact.compare(x.left, x.right) in (-1, 1) for x in wrong)


@pytest.mark.parametrize(
    "change", [("PEsin", minus), ("PEcos", lambda e: e / 2), ("PEcos", lambda e: e.xreplace({e.args[0]: 1}))]
)
def test_a_wrong_encoding_is_refuted(change):
    home = Definition(start="tokens", positions="sinusoidal")
    found = decisions("sinusoidal-shift", home, change)
    assert REFUTED in [d.verdict for _, d in found]


# ---------------------------------------------------------------- linear biases
@pytest.mark.parametrize(
    "fields", [{}, {"alibi_slopes": "power"}, {"alibi_slopes": "interleaved"}, {"alibi_distance": "absolute"}], ids=str
)
def test_the_sign_of_alibi(fields):
    d = Definition(heads=4, causal="top-left", alibi=True, **fields)
    found = prove_theorem(THEOREMS["alibi-sign"], d)
    assert (found.verdict, found.scope) == (PROVED, "all sizes")
    assert prove_theorem(THEOREMS["alibi-sign"], Definition(causal="top-left")).verdict == NOT_APPLICABLE


def test_the_opposite_sign_of_alibi_is_refuted():
    home = THEOREMS["alibi-sign"].definition()
    score = Subject(home).plain["S"].target
    for change in (lambda e: 2 * score - e, lambda e: e + sp.IndexedBase("slope")[sp.Symbol("h", integer=True)]):
        found = [d for _, d in decisions("alibi-sign", home, ("Z", change))]
        assert REFUTED in [d.verdict for d in found], found
        assert all(d.counterexample.left != d.counterexample.right for d in found if d.verdict == REFUTED)


def test_another_bias_is_told_from_its_program():
    """A table of biases is no slope; the opposite sign does not meet the condition."""
    assert prove_theorem(THEOREMS["alibi-sign"], Definition.of(**{v.name: v for v in POSITIONS}["bucket-bias"].fields)).reason
    s = Subject(THEOREMS["alibi-sign"].definition())
    (condition,) = THEOREMS["alibi-sign"].needs
    assert condition.holds(s)
    z, score = s.plain["Z"], s.plain["S"].target
    s.__dict__["plain"] = s.plain.with_statements([replace(t, expr=2 * score - z.expr) if t is z else t for t in s.plain])
    assert not condition.holds(s)


# ---------------------------------------------------------------- the same by complex numbers
def turned(x, positions, theta):
    """Pairs (c, c + d/2) as complex numbers, times exp(i position theta)."""
    half = x.shape[-1] // 2
    return (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * np.outer(positions, theta))


def test_scores_by_complex_numbers_depend_on_the_difference_alone():
    draw = np.random.default_rng(1)
    q, k = draw.normal(size=(3, 4)), draw.normal(size=(5, 4))
    theta = 10000.0 ** (-2 * np.arange(2) / 4)
    at = lambda t: (turned(q, np.arange(3) + t, theta) @ turned(k, np.arange(5) + t, theta).conj().T).real
    assert np.allclose(at(0), at(7)) and not np.allclose(at(0), q @ k.T)
    assert np.allclose((abs(turned(q, np.arange(3), theta)) ** 2).sum(-1), (q**2).sum(-1))
    p = np.exp(at(0) / 2) / np.exp(at(0) / 2).sum(1, keepdims=True)
    v = draw.normal(size=(5, 2))
    truth = Attention(rope="half").truth(q, k, v)
    assert np.allclose(p @ v, np.asarray(truth["out"].mid, dtype=float))


def test_the_shift_of_the_published_encoding():
    width, t = 6, 5
    table = np.zeros((20, width))
    for x in range(20):
        for r in range(width // 2):
            table[x, 2 * r] = np.sin(x / 10000 ** (2 * r / width))
            table[x, 2 * r + 1] = np.cos(x / 10000 ** (2 * r / width))
    step = np.zeros((width, width))
    for r in range(width // 2):
        w = t / 10000 ** (2 * r / width)
        step[2 * r : 2 * r + 2, 2 * r : 2 * r + 2] = [[np.cos(w), np.sin(w)], [-np.sin(w), np.cos(w)]]
    assert np.allclose(table[t:], table[:-t] @ step.T) and not np.allclose(table[t:], table[:-t] @ step)
