from __future__ import annotations

from fractions import Fraction

from symattn.derivation import exactvalue as ev
from symattn.derivation.settle import equals, guess


def nothing(name: str, index: tuple[int, ...]) -> ev.Exact:
    raise AssertionError(name)


def weights(*exponents: ev.Exact) -> list[ev.Exact]:
    e = [ev.call("exp", x) for x in exponents]
    return [ev.divide(x, ev.add(*e)) for x in e]


def test_weights_add_up_to_one() -> None:
    third = ev.divide(ev.ONE, ev.sqrt(ev.rational(3)))
    total = ev.add(*weights(third, ev.multiply(ev.rational(5), third), ev.rational(2)))
    assert total.rational is None
    assert equals(total, Fraction(1), nothing)
    assert not equals(total, Fraction(999, 1000), nothing)


def test_powers_of_one_exponential_are_recognised() -> None:
    one, two = ev.call("exp", ev.ONE), ev.call("exp", ev.rational(2))
    assert equals(ev.divide(two, ev.multiply(one, one)), Fraction(1), nothing)
    large = ev.call("exp", ev.rational(10**9))
    assert equals(ev.divide(ev.add(large, one), ev.add(one, large)), Fraction(1), nothing)
    assert not equals(ev.divide(large, one), Fraction(1), nothing)


def test_named_elements_are_followed() -> None:
    p, q = weights(ev.ONE, ev.rational(3))
    known = {("P", (0,)): p, ("P", (1,)): q}
    total = ev.add(ev.generator(ev.Ref("P", (0,))), ev.generator(ev.Ref("P", (1,))))
    assert equals(total, Fraction(1), lambda name, index: known[name, index])


def test_roots_obey_their_equation() -> None:
    r = ev.sqrt(ev.rational(2))
    e = ev.call("exp", ev.ONE)
    inner = ev.multiply(ev.add(r, e), ev.add(e, ev.negate(r)))  # e^2 - 2
    assert equals(ev.add(inner, ev.negate(ev.multiply(e, e)), ev.rational(2)), Fraction(0), nothing)


def test_a_guess_needs_a_narrow_enclosure() -> None:
    assert guess(Fraction(1, 3), Fraction(1, 2**50)) is None
    assert guess(Fraction(1, 3) + Fraction(1, 2**220), Fraction(1, 2**200)) == Fraction(1, 3)
