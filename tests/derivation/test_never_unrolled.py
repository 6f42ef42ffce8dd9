"""What is differentiated is a statement's expression, whose size no length of a sequence changes: never what it unrolls to."""

from __future__ import annotations

from contextlib import contextmanager
from unittest.mock import patch

import pytest
import sympy as sp
from sympy.core.cache import clear_cache

from symattn import derivative, variants
from symattn.derivation.engine import derive
from symattn.derivation.examples import shipped
from symattn.program import indices, tensor
from tests.support import rows

LARGEST = 60
"""Operations of the largest expression that one statement of a variant has."""


@contextmanager
def differentiated():
    """Every expression whose derivative is taken."""
    found = []
    plain = sp.Expr.diff

    def recorded(self, *symbols, **options):
        found.append(self)
        return plain(self, *symbols, **options)

    for cached in (f for f in vars(derivative).values() if hasattr(f, "cache_clear")):
        cached.cache_clear()
    clear_cache()  # SymPy keeps derivatives too
    with patch.object(sp.Expr, "diff", recorded):
        yield found


def unrolled(e):
    """Whether an expression names single elements, or is larger than any statement."""
    elements = [x for x in e.atoms(sp.Indexed) if any(k.is_Integer for k in x.indices)]
    return bool(elements) or e.count_ops() > LARGEST


def test_an_unrolled_softmax_would_be_seen():
    s = [tensor("S", 0, k) for k in range(40)]
    with differentiated() as found:
        (sp.exp(s[0]) / sum(map(sp.exp, s))).diff(s[0])
    assert unrolled(found[0])
    with differentiated() as found:
        derivative.derivative(sp.exp(s[0]) / sum(map(sp.exp, s)), s[0])
    assert unrolled(found[0])
    i, j = indices("i j")
    assert unrolled(tensor("S", 1, j)) and not unrolled(sp.exp(tensor("S", i, j)))


@pytest.mark.parametrize("example, kind", [*((x, "gradient") for x in shipped()), ("two-words", "jvp"), ("two-words", "hvp")])
def test_no_shipped_derivation_differentiates_what_it_unrolls(example, kind):
    with differentiated() as found:
        derive(example=example, **{kind: True})
    assert not [e for e in found if unrolled(e)]


def test_no_derivative_is_larger_for_a_longer_sequence():
    """Of the same definition in two words and in five."""
    largest = []
    for example in ("two-words", "the-cat-sat"):
        with differentiated() as found:
            derive(variants.get("softcap").definition, example=example, gradient=True)
        largest.append(max((e.count_ops() for e in found), default=0))
    assert largest[0] > 0 and largest[1] <= largest[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", rows())
def test_no_gradient_of_the_catalogue_differentiates_what_it_unrolls(name):
    with differentiated() as found:
        derive(variants.get(name).definition, gradient=True)
    assert not [e for e in found if unrolled(e)]
