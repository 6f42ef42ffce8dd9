"""Whether two values are equal: exactly, as far as many bits tell, or as far as rounded numbers allow."""

from __future__ import annotations

from fractions import Fraction

from symattn.audit.arrays import flat, shape, size, squeezed
from symattn.audit.language_nodes import Node, numbers
from symattn.audit.provenance import signed
from symattn.audit.reals import subtract
from symattn.audit.said import Entry, Evaluated, Page, evaluated, literals
from symattn.audit.trees import Real, bounds, infinite, interval, same
from symattn.errors import SymattnError

BITS = (64, 400)


def alike(a: Real, b: Real) -> bool:
    """Whether two numbers are equal, or 400 bits do not tell them apart.

    >>> from symattn.audit.reals import multiply, sqrt
    >>> alike(sqrt(Fraction(8)), multiply(Fraction(2), sqrt(Fraction(2)))), alike(Fraction(1, 3), Fraction(333, 1000))
    (True, False)
    """
    if same(a, b):
        return True
    if infinite(a) or infinite(b):
        return False
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return False
    return all((ends := bounds(subtract(a, b), bits)) is None or ends[0] <= 0 <= ends[1] for bits in BITS)


def equal(a: Evaluated, b: Evaluated) -> bool:
    """Whether two sides have the same exact value; of values from printed intermediates, the same from those."""
    for x, y in ((a.start, b.start), (a.printed, b.printed)):
        if x is None or y is None or size(x) != size(y):
            continue
        if all(alike(p, q) for p, q in zip(flat(x), flat(y), strict=True)):
            return True
    return False


def unequal_shapes(a: Evaluated, b: Evaluated) -> bool:
    """Whether two values cannot be compared element by element."""
    return a.shape != b.shape and shape(squeezed(a.printed)) != shape(squeezed(b.printed))


def near(node: Node, value: Evaluated) -> bool:
    """Whether printed numbers are within two units of a value; cheap, before verdicts are asked."""
    return far(node, value) == 0


def far(node: Node, value: Evaluated) -> int:
    """How many printed numbers are not within two units of a value; a bare integer has to be it."""
    elements = flat(value.start if value.start is not None else value.printed)
    found = literals(node)
    if len(found) != len(elements):
        return 0 if len(elements) == 1 else len(found)
    out = 0
    for x, y in zip(found, elements, strict=True):
        ends = bounds(y, 64)
        if x is None or ends is None:
            continue
        p = x.printed()
        reach = 2 * p.unit if p.kind != "integer" else Fraction(0)
        out += ends[1] < p.value - reach or ends[0] > p.value + reach
    return out


def allowed(page: Page, node: Node, places: dict[int, Entry], known: Evaluated, value: Evaluated) -> bool:
    """Whether the rounded numbers of a formula allow a value.

    Parameters
    ----------
    page, places
        What the page said, and what single numbers stand for.
    node, value
        The formula with printed decimals, and its values.
    known
        The value that it should have.
    """
    loose = {n.start for n in numbers(node)} - set(places)
    if not loose and not value.used:
        return False
    wider = dict(places)
    for x in signed(node):
        if x.is_decimal and x.node.start in loose:
            p = x.printed()
            wider[x.node.start] = Entry(None, p.value, interval(*p.interval()))
    try:
        wide = evaluated(page, node, wider).spread
    except SymattnError:
        return False
    target = known.start if known.start is not None else known.printed
    return shape(wide) == shape(target) and all(_meets(a, b) for a, b in zip(flat(wide), flat(target), strict=True))


def _meets(wide: Real, point: Real) -> bool:
    a, b = bounds(wide), bounds(point)
    return a is not None and b is not None and a[0] <= b[1] and b[0] <= a[1]
