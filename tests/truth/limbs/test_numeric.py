"""The numeric core of the limb engine against python-flint and big integers, which share no code with it."""

import math
from fractions import Fraction

import flint
import mpmath
import numpy as np
import pytest

from symattn.readings.balls import precision
from symattn.truth.limbs import products, slices, tables

RNG = np.random.default_rng


@pytest.mark.parametrize("limbs", [3, 4, 8, 16, 21])
def test_a_product_is_right_within_its_bound(limbs):
    rng, f = RNG(limbs), products.BITS * limbs
    a, b = ([int.from_bytes(rng.bytes(f // 8), "big") - 2 ** (f - 1) >> 1 for _ in range(300)] for _ in range(2))
    a[:3], b[:3] = [2 ** (f - 1), -(2 ** (f - 1)), 0], [2 ** (f - 1), 2 ** (f - 1), 5]
    x, t = products.from_integers(a, limbs), products.from_integers(b, limbs)
    assert products.to_integers(x) == a
    out = np.zeros_like(x)
    low = products.Multiplier(limbs, 300).multiply(x, 0, t, 0, out)
    out[:low] = 0
    errors = [abs(v * 2**f - p * q) / 2**f for v, p, q in zip(products.to_integers(out), a, b, strict=True)]
    assert max(errors) <= products.product_error(limbs)
    assert (np.abs(out) <= 2.0 ** (-products.BITS * np.arange(limbs) - 1).reshape(-1, 1)).all()


def test_leading_zero_limbs_are_neither_read_nor_written():
    limbs, f = 8, 192
    a, b, c = [3 * 2**90 + 7, -(2**91)], [2**140 - 9, 5], [2**100, -(2**99)]
    x, t, s = (products.from_integers(v, limbs) for v in (a, b, c))
    x[:4], t[:2], s[:3] = np.nan, np.nan, np.nan
    out = np.zeros_like(x)
    products.Multiplier(limbs, 2).multiply(x, 4, t, 2, out, ((s, 3),))
    got = products.to_integers(out)
    assert all(abs(g - (p * q / 2**f + r)) <= 4 for g, p, q, r in zip(got, a, b, c, strict=True))


def test_a_dropped_limb_is_seen():
    """The fault that the bound is there for: a product that leaves out the last column of partial products."""
    limbs = 8
    rng = RNG(1)
    x = np.stack([rng.integers(-(2**23), 2**23, 500) * 2.0 ** (-24 * (k + 1)) for k in range(limbs)])
    out, short = np.zeros_like(x), np.zeros((limbs - 1, 500))
    products.Multiplier(limbs, 500).multiply(x, 0, x, 0, out)
    products.Multiplier(limbs - 1, 500).multiply(x[:-1], 0, x[:-1], 0, short)
    exact = [v * v >> 192 for v in products.to_integers(x)]
    far = [abs(v * 2**24 - e) for v, e in zip(products.to_integers(short), exact, strict=True)]
    near = [abs(v - e) for v, e in zip(products.to_integers(out), exact, strict=True)]
    assert max(near) <= products.product_error(limbs) + 1 < 1000 < max(far)


@pytest.mark.parametrize("name", ["float32", "float16", "float64"])
def test_slices_hold_every_bit(name):
    x = RNG(2).standard_normal((20, 7)).astype(name).astype(np.float64)
    x[0, 0], x[1, 1] = 2.0**40, 2.0**-70
    s = slices.sliced(x, 21)
    assert all(np.array_equal(d, np.round(d)) and np.abs(d).max() <= 2**20 for d in s.digits)
    back = [sum(int(d[k]) << 21 * (s.count - 1 - b) for b, d in enumerate(s.digits)) for k in np.ndindex(x.shape)]
    unit = flint.fmpq(2) ** s.unit(s.count - 1) if s.unit(s.count - 1) >= 0 else 1 / flint.fmpq(2) ** -s.unit(s.count - 1)
    assert all(flint.fmpq(*map(int, float(v).as_integer_ratio())) == w * unit for v, w in zip(x.ravel(), back, strict=True))


def words_of(values, width, count, unit):
    """Integers as words: the first holds what is above ``width (count - 1)`` bits."""
    mask = (1 << width) - 1
    rows = [[v >> width * (count - 1) for v in values]]
    rows += [[(v >> width * (count - 1 - k)) & mask for v in values] for k in range(1, count)]
    return [np.array(r, dtype=np.int64) for r in rows]


@pytest.mark.parametrize(("limbs", "width", "digit"), [(3, 21, 8), (8, 21, 11), (8, 16, 13), (16, 24, 9), (21, 21, 12)])
def test_exponentials_are_right_within_their_bound(limbs, width, digit):
    f, rng = products.BITS * limbs, RNG(limbs)
    with precision(f + 100):
        c = 1 / flint.arb(128).sqrt() / 2**10
        count = 2 + f // width
        bottom, cap = tables.lowest_bit(c, limbs), int(float((f + 2) * flint.arb.const_log2() / c)) + 1
        found = tables.digits_for(c, bottom, tables.top_bits(cap), limbs, digit)
        scale = width * (count - 1)
        values = [int(rng.integers(0, cap)) << scale | int.from_bytes(rng.bytes(40), "big") % (1 << scale) for _ in range(200)]
        values += [0, 1, 1 << scale, (cap << scale) + 5, (1 << scale) - 1]
        out = np.empty((limbs, len(values)))
        engine = tables.Exponentials(found, width, products.Multiplier(limbs, 512))
        engine.evaluate(words_of(values, width, count, 0), out)
        got = products.to_integers(out)
        bound = tables.exponential_error(len(found), limbs)
        exact = [(-c * v / (flint.fmpz(1) << scale)).exp() / 2 * (flint.fmpz(1) << f) for v in values]
        errors = [float(abs(e - g).upper()) for e, g in zip(exact, got, strict=True)]
    assert max(errors) <= bound
    with mpmath.workprec(f + 60):
        v = values[3]
        by_mpmath = mpmath.exp(-mpmath.mpf(v) / mpmath.mpf(2) ** scale / mpmath.sqrt(128) / 1024) / 2 * mpmath.mpf(2) ** f
        assert abs(by_mpmath - got[3]) <= bound


def test_a_table_entry_that_is_wrong_is_seen():
    """The planted fault: one entry of one table off by more than its bound moves the exponential beyond the bound."""
    limbs = 8
    with precision(300):
        c = flint.arb(1) / 64
        found = list(tables.digits_for(c, tables.lowest_bit(c, limbs), 14, limbs, 11))
        rows = found[1].rows.copy()
        rows[5, -1] += 1000 * 2.0**-192
        found[1] = tables.Digit(found[1].shift, found[1].width, rows, found[1].zeros)
        shift = -found[1].shift
        out = np.empty((limbs, 1))
        words = words_of([5 << 21 * 2 - shift], 21, 3, 0)
        tables.Exponentials(found, 21, products.Multiplier(limbs, 8)).evaluate(words, out)
        exact = (-c * 5 / (flint.fmpz(1) << shift)).exp() / 2 * (flint.fmpz(1) << 192)
        assert float(abs(exact - products.to_integers(out)[0])) > tables.exponential_error(len(found), limbs)


def test_words_take_any_sum_of_any_units():
    """Exact sums against Python's integers: units apart, both signs, parts of the axis, so many that words have to be carried."""
    from fractions import Fraction

    from symattn.truth.limbs import sums

    rng = RNG(5)
    words = sums.Words((4, 2), 3, 6)
    exact = np.zeros((4, 2), dtype=object)
    for k in range(900):
        unit = int(rng.integers(-100, 40))
        here = slice(0, 1) if k % 2 else slice(None)
        values = rng.integers(-(2**53), 2**53, (4, 2))[here]
        words.add(values, unit, here)
        exact[here] += np.vectorize(lambda v, u=unit: Fraction(int(v)) * Fraction(2) ** u, otypes=[object])(values)
    got = np.array(words.integers(), dtype=object).reshape(4, 2)
    unit = Fraction(2) ** words.unit
    assert words.added == 900
    assert all(abs(g * unit - e) <= words.added * unit for g, e in zip(got.ravel(), exact.ravel(), strict=True))
    limbs = words.limbs()
    top = Fraction(2) ** words.top
    assert np.abs(limbs[0]).max() <= 0.5
    back = [sum(Fraction(float(v)) for v in limbs[:, a, b]) * Fraction(2) ** words.top for a in range(4) for b in range(2)]
    assert all(abs(g - e) <= words.added * unit for g, e in zip(back, exact.ravel(), strict=True)) and top > max(map(abs, back))


@pytest.mark.parametrize("kept", [1 << 26, 0], ids=["kept", "at once"])
def test_sums_over_keys_and_rows_are_exact_with_the_largest_digits(kept, monkeypatch):
    """Odd digits of the largest size, all of one sign: one term more than is allowed in a product, and bits would be lost."""
    from symattn.truth.limbs import gathered

    monkeypatch.setattr(gathered, "KEPT_BYTES", kept)
    limbs, count = 2, 1027
    matrix = gathered.Matrix(slices.Sliced((np.full((count, 1), 2.0**22 - 1), np.full((count, 1), 2.0**22 - 3)), 23, 0))
    block = np.empty((1, limbs, count))
    block[0] = np.ldexp(2.0**23 - 1, -24 * np.arange(1, limbs + 1)).reshape(-1, 1)
    one = sum((2**23 - 1) << 24 * (1 - k) for k in range(limbs)) * (((2**22 - 1) << 23) + 2**22 - 3)
    by_rows = gathered.RowSums(1, limbs, matrix, 0, count)
    by_rows.add(block, 0)
    by_rows.flush()
    by_keys = gathered.KeySums(1, limbs, matrix, count)
    for a in range(0, count, 200):
        rows = slice(a, min(count, a + 200))
        by_keys.begin(0, rows.stop - rows.start)
        by_keys.add(np.ascontiguousarray(block[0, :, rows].T[:, :, None]), rows, 0)
    for words in (by_rows.words, by_keys.finished()):
        (found,) = words.integers()
        spare = -24 * limbs - 46 - words.unit  # the unit of the sums is finer than that of the products
        assert spare >= 0 and found == count * one << spare


@pytest.mark.parametrize("smallest", [-1074, -1030, -200, -20, 900])
def test_an_extent_is_that_of_the_integers_that_numbers_are(smallest, monkeypatch):
    monkeypatch.setattr(slices, "CHUNK", 7)
    rng = RNG(smallest + 2000)
    whole = [int(v) for v in rng.integers(-(2**40), 2**40, 30)]
    shifts = [int(v) for v in rng.integers(0, 60, 30)]
    x = np.array([math.ldexp(v, smallest + k) for v, k in zip(whole, shifts, strict=True)])
    x[3] = 0.0
    exact = [abs(Fraction(v)) for v in x.tolist() if v]
    top, bottom = slices.extent(x)
    assert max(exact) <= Fraction(2) ** (top - 1) < 2 * max(exact) or max(exact) == Fraction(2) ** (top - 2)
    assert all((v / Fraction(2) ** bottom).denominator == 1 for v in exact)
    assert any((v / Fraction(2) ** (bottom + 1)).denominator == 2 for v in exact)
