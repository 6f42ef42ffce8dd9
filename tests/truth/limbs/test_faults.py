"""Faults planted in the engine, each of which the comparison with balls must see, and bounds that are attained."""

from fractions import Fraction

import flint
import numpy as np
import pytest

from symattn.definition import Definition
from symattn.readings.balls import precision
from symattn.truth.derived import with_gradient
from symattn.truth.limbs import block, collected, engine, evaluate, gathered, materials, products, scores, tables
from tests.truth.limbs import enclosing

PROGRAM = with_gradient(Definition(causal="bottom-right").program())
INPUTS = enclosing.draw(PROGRAM, 1, sizes={"n": 6, "m": 7, "d": 3, "dv": 2})


def wrapped(monkeypatch, owner, name, change):
    """Replace a method by one that calls it and then changes what it did."""
    whole = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda self, *a, **k: change(whole, self, *a, **k))


def drop_last_limb(whole, self, words, keep, out):
    whole(self, words, keep, out)
    out[:, -1] = 0.0


def leave_what_was_there(whole, self, words, keep, out):
    """The memory of a block holds what an earlier one left in it: every key that is not kept has to be set to 0."""
    out[:] = np.nan
    whole(self, words, keep, out)


def one_key_less(whole, keep):
    first, last = whole(keep)
    return first, last - 1


def lose_a_tile(whole, self, block, rows, first):
    if first == 0:
        whole(self, block, rows, first)


def lose_a_block(whole, self, rows):
    if rows.start == 0:
        whole(self, rows)


def wrong_entry(whole, self, words, digit, first, out):
    zeros = whole(self, words, digit, first, out)
    out[-1, 0] += 2.0 ** (-24 * out.shape[0] + 12)
    return zeros


def unit_of_another_slice(whole, self, rows, keys):
    return [(k + (k == 1), g) for k, g in whole(self, rows, keys)]


@pytest.mark.parametrize(
    "owner,name,change",
    [
        (scores.Scores, "exponentials_into", drop_last_limb),
        (gathered.KeySums, "add", lose_a_tile),
        (scores.Dots, "products", unit_of_another_slice),
        (tables.Exponentials, "_look_up", wrong_entry),
    ],
    ids=["a limb is dropped", "a tile is lost", "a slice has the unit of another", "a table entry is wrong"],
)
def test_a_planted_fault_is_seen(monkeypatch, owner, name, change):
    monkeypatch.setattr(block, "TILE", 3)
    enclosing.check(PROGRAM, INPUTS)
    wrapped(monkeypatch, owner, name, change)
    with pytest.raises(AssertionError):
        enclosing.check(PROGRAM, INPUTS)


def test_a_lost_block_is_seen(monkeypatch):
    monkeypatch.setattr(engine, "ROWS", 4)
    enclosing.check(PROGRAM, INPUTS)
    wrapped(monkeypatch, engine.InBatch, "block", lose_a_block)
    with pytest.raises(AssertionError):
        enclosing.check(PROGRAM, INPUTS)


def test_a_row_that_is_shifted_by_another_maximum_is_seen(monkeypatch):
    def change(whole, self, *a):
        words, shifts = whole(self, *a)
        return words, [shifts[-1], *shifts[1:]]

    program = Definition().program()
    inputs = enclosing.draw(program, 2)
    wrapped(monkeypatch, scores.Scores, "block", change)
    with pytest.raises(AssertionError):
        enclosing.check(program, inputs, outputs=("L",))


@pytest.mark.parametrize("limbs", [4, 8, 16])
def test_the_bound_of_a_product_is_attained(limbs):
    """Digits at their largest, all of one sign: what is left out is nearly the bound, so half of it would be wrong."""
    x = np.ldexp(2.0**23, -24 * np.arange(1, limbs + 1)).reshape(-1, 1)
    x[0] = 2.0**-2
    out = np.zeros_like(x)
    low = products.Multiplier(limbs, 1).multiply(x, 0, x, 0, out)
    out[:low] = 0
    (v,) = products.to_integers(x)
    (got,) = products.to_integers(out)
    error = abs(Fraction(v * v, 2 ** (24 * limbs)) - got)
    assert 0.6 * (products.product_error(limbs) - 1) <= error <= products.product_error(limbs)


def test_the_radius_is_what_the_errors_add_up_to():
    """One row, equal scores: the error of the output is that of its sum and of the row's quotient, neither more nor less."""
    keys, limbs = 8, 8
    program = Definition(lse=False).program()
    inputs = {"Q": np.zeros((1, 1)), "K": np.ones((keys, 1)), "V": np.full((keys, 1), 1.0)}
    found = evaluate(program, inputs, bits=170)["O"]
    counts = [s.digits for s in recorded_scores(program, inputs)]
    each = 2 * tables.exponential_error(counts[0], limbs)
    radius = float(found.radius * 2 ** (24 * limbs))
    largest = 2.0  # a power of two that bounds V
    assert each * (largest + largest) * 0.99 <= radius <= each * (largest + largest) * 1.1 + 4


def recorded_scores(program, inputs):
    """The scores that an evaluation makes."""
    made = []
    whole = scores.Scores.__init__

    def record(self, *a, **k):
        whole(self, *a, **k)
        made.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scores.Scores, "__init__", record)
        evaluate(program, inputs, bits=170)
    return made


def test_the_bounds_of_a_material_are_attained_by_the_worst_rows():
    """``P = E a`` with an error of ``a`` alone: the bound is that error times the exponential, and a product's rounding."""
    with precision(400):
        values = [flint.arb(1, 2.0**-100), flint.arb(1)]
        column = materials.column(values, 4)
        base = materials.Errors(np.ones(2), np.zeros(2), np.zeros(2))
        made = materials.Scaled(column, base, 1, products.Multiplier(4))
    steep = made.errors.steep
    assert steep[0] >= 2.0**-4 * 0.99 and steep[0] <= 2.0**-4 + 2.0**column.exponent
    assert made.errors.flat[1] >= products.product_error(4) * 2.0**made.exponent


def test_what_an_output_cuts_off_is_in_its_radius():
    """Limbs beyond those that are kept are counted, where there are any."""
    from symattn.indexed import index, tensor

    class Data:
        axes = type("A", (), {"channels": staticmethod(lambda x: ()), "batch": (), "rows": (index("i"),)})()
        extents = type("E", (), {"shape": staticmethod(lambda axes: (1,) * len(axes))})()

    out = collected.Output(tensor("y", index("i")), Data(), 3)
    assert out.put(0, products.from_integers([1], 3), 0) == 0.0
    assert out.put(0, products.from_integers([1], 6), 0) == 2.0**-24


@pytest.mark.parametrize("chunk", [1, 10, 1 << 13])
def test_keys_that_no_row_keeps_are_zeros_whatever_was_there(chunk, monkeypatch):
    monkeypatch.setattr(scores, "CHUNK", chunk)
    wrapped(monkeypatch, scores.Scores, "exponentials_into", leave_what_was_there)
    assert enclosing.check(PROGRAM, INPUTS, bits=130) > 0


def test_a_key_that_is_left_out_is_seen(monkeypatch):
    whole = scores._range_of
    monkeypatch.setattr(scores, "_range_of", lambda keep: one_key_less(whole, keep))
    with pytest.raises(AssertionError):
        enclosing.check(PROGRAM, INPUTS, bits=130)
