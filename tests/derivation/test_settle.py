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


def test_squares_of_sine_and_cosine_add_up_to_one() -> None:
    def rotated(angle: ev.Exact, way: int) -> ev.Exact:
        """The product of the vectors (3, way*1/2) and (1, 2), each turned by the angle."""
        c, s = ev.call("cos", angle), ev.call("sin", angle)
        half, two = ev.rational(Fraction(way, 2)), ev.rational(2)
        q = [ev.add(ev.multiply(ev.rational(3), c), ev.negate(ev.multiply(half, s)))]
        q += [ev.add(ev.multiply(ev.rational(3), s), ev.multiply(half, c))]
        k = [ev.add(c, ev.negate(ev.multiply(two, s))), ev.add(s, ev.multiply(two, c))]
        return ev.add(*(ev.multiply(x, y) for x, y in zip(q, k, strict=True)))

    angle = ev.multiply(ev.rational(2), ev.sqrt(ev.rational(3)))
    assert equals(rotated(angle, 1), Fraction(4), nothing) and equals(rotated(angle, -1), Fraction(2), nothing)
    assert not equals(rotated(angle, 1), Fraction(2), nothing)
    other = ev.call("cos", ev.ONE)
    apart = ev.add(ev.multiply(other, other), ev.multiply(ev.call("sin", angle), ev.call("sin", angle)))
    assert not equals(apart, Fraction(1), nothing)  # the cosine and the sine of two angles


def test_functions_of_zero_are_exact() -> None:
    for name, want in {"cos": 1, "sin": 0, "tan": 0, "cosh": 1, "sinh": 0, "exp": 1, "atan": 0}.items():
        assert ev.call(name, ev.ZERO).rational == want


def test_a_proof_that_would_take_minutes_is_given_up() -> None:
    def vanishing(count: int) -> tuple[ev.Exact, ev.Exact]:
        parts = [ev.divide(ev.ONE, ev.add(ev.call("tanh", ev.rational(k)), ev.ONE)) for k in range(1, count + 1)]
        whole = ev.add(*parts)
        return ev.add(whole, ev.negate(ev.generator(ev.Ref("x", ())))), whole

    for count, proved in ((3, True), (12, False)):
        value, whole = vanishing(count)
        assert equals(value, Fraction(0), lambda name, index, whole=whole: whole) is proved
