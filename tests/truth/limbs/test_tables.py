"""Every entry of the tables against mpmath, which shares no code with them: one that is off by a unit is found."""

from __future__ import annotations

import flint
import mpmath
import numpy as np
import pytest

from symattn.definition import Definition
from symattn.readings.balls import precision
from symattn.truth.limbs import evaluate, products, tables
from tests.truth.limbs import enclosing


def made_by(call):
    """The tables that a call makes, with the arguments that say what they are of."""
    found = []
    whole = tables._table

    def record(*arguments):
        found.append((arguments, whole.__wrapped__(*arguments)))
        return found[-1][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_table", record)
        call()
    return found


def entries(rows, zeros, limbs, at):
    """Some entries as integers, in units."""
    full = np.zeros((limbs, len(at)))
    full[zeros:] = rows[at].T
    return products.to_integers(full)


def check(arguments, table, at):
    """Entries are within half a unit, and 2^-20 of one, of what mpmath gives."""
    (mantissa, exponent, *_), shift, width, limbs, first = arguments
    rows, zeros = table
    assert rows.shape == (1 << width, limbs - zeros)
    mp = mpmath.mp.clone()
    mp.prec = 24 * limbs + 80
    unit, c = mp.mpf(2) ** (-24 * limbs), mp.ldexp(mp.mpf(mantissa), exponent + shift)
    for v, got in zip(at.tolist(), entries(rows, zeros, limbs, at), strict=True):
        exact = mp.exp(-c * v) / 2 if first else mp.expm1(-c * v)
        assert abs(got - exact / unit) <= tables.ENTRY_ERROR, (v, got)


@pytest.mark.parametrize("limbs", [3, 8, 15])
@pytest.mark.parametrize("shift, first", [(2, True), (-9, False), (-40, False)])
def test_every_entry_is_correctly_rounded(limbs, shift, first):
    with precision(24 * limbs + 200):
        c = flint.arb(1) / 3
    arguments = ((*(int(x) for x in c.mid().man_exp()), *(int(x) for x in c.rad().man_exp())), shift, 9, limbs, first)
    check(arguments, tables._table(*arguments), np.arange(512))


@pytest.mark.parametrize("bits", [72, 178])
def test_the_tables_of_an_evaluation(bits):
    """All that one uses, at random entries; the limbs are within their range, which products count on."""
    program = Definition().program()
    inputs = enclosing.draw(program, 2, sizes={"n": 6, "m": 7, "d": 3, "dv": 2})
    found = made_by(lambda: evaluate(program, inputs, bits=bits))
    assert len(found) >= 3
    for arguments, table in found:
        rows, zeros = table
        check(arguments, table, np.random.default_rng(0).integers(0, len(rows), 60))
        reach = 2.0 ** (-24 * np.arange(zeros, zeros + rows.shape[1]) - 1)
        assert (np.abs(rows) <= reach).all()


@pytest.mark.parametrize("slip", [1, -1])
def test_an_entry_that_is_off_by_one_unit_is_found(slip):
    with precision(400):
        c = flint.arb(1) / 3
    arguments = ((*(int(x) for x in c.mid().man_exp()), *(int(x) for x in c.rad().man_exp())), -9, 9, 8, False)
    rows, zeros = tables._table(*arguments)
    for v in (0, 1, 200, 511):
        wrong = rows.copy()
        wrong[v, -1] += slip * 2.0 ** (-24 * 8)
        with pytest.raises(AssertionError):
            check(arguments, (wrong, zeros), np.arange(512))


def test_tables_made_without_the_further_limb_are_found(monkeypatch):
    """Entries that are right within the error of a product, and no better."""
    whole = tables._outer

    def shallow(left, right, limbs, first):
        short = whole(left[:-1], right[:-1], limbs - 1, first)
        return np.concatenate([short, np.zeros((1, short.shape[1]))])

    monkeypatch.setattr(tables, "_outer", shallow)
    with precision(400):
        c = flint.arb(1) / 3
    arguments = ((*(int(x) for x in c.mid().man_exp()), *(int(x) for x in c.rad().man_exp())), -9, 9, 8, False)
    with pytest.raises(AssertionError):
        check(arguments, tables._table.__wrapped__(*arguments), np.arange(512))
