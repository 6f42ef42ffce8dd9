"""The object that rules work on: which names are known, in which order statements can run, what may be put in where."""

from __future__ import annotations

import pytest
import sympy as sp

from symattn.errors import ProgramError
from symattn.presentation.listing import Listing, in_order, is_scalar_multiple
from symattn.program import Statement, indices
from symattn.program import tensor as T
from tests.presentation.cases import listed

i, j, e = indices("i j e")


def listing(name: str) -> Listing:
    program, gradient, _ = listed(name)
    base = gradient.with_statements(program.statements, outputs=())
    return Listing(base, gradient.statements[len(program) :], gradient.outputs)


def test_known_names() -> None:
    x = listing("lse")
    assert [s.name for s in x.derived if not x.known(s.name)] == ["dl_P", "dl", "dE"]
    assert x.known("dO") and not x.known("nonsense") and x.naming("nonsense").known("nonsense")
    assert x.gradient_of["dO"] == "O" and x.gradient_of["dQ"] == "Q"


def test_fresh_names() -> None:
    assert listing("lse").fresh("D") == "D" and listing("lse").fresh("dS") == "dS2"


def test_order() -> None:
    a, b, c = Statement(T("a"), T("x")), Statement(T("b"), T("a") + T("c")), Statement(T("c"), T("a"))
    assert [s.name for s in in_order([b, c, a])] == ["a", "c", "b"]
    assert in_order([a, c, b]) == (a, c, b)
    with pytest.raises(ProgramError, match=r"circle: a, c"):
        in_order([Statement(T("a"), T("c")), c])


def test_inlining_keeps_the_domain() -> None:
    x = listing("causal")
    assert x.domain_allows(x.by_name["dR"], x.by_name["dQ"])
    loose = Statement(T("y", i, j), T("dR", i, j))
    assert not x.domain_allows(x.by_name["dR"], loose)
    assert x.domain_allows(x.by_name["dl"], loose) is False  # not a reader of it
    short = x.inlined(x.by_name["dR"])
    assert "dR" not in short.by_name and str(short.by_name["dQ"].expr) == "scale*K[j, c]*dS[i, j]"


def test_a_condition_that_reads_the_tensor_forbids_it() -> None:
    source = Statement(T("a", i), T("x", i))
    user = Statement(T("b", i), T("a", i), where=sp.Gt(T("a", i), 0))
    assert not listing("plain").domain_allows(source, user)


def test_scalar_multiples() -> None:
    scale, S, m = T("scale"), T("S", i, j), T("m", i)
    assert is_scalar_multiple(S) and is_scalar_multiple(-scale * S / 2) and is_scalar_multiple(sp.sqrt(scale) * S)
    assert not any(map(is_scalar_multiple, (S + 1, S * m, i * S, S**2, scale, (1 + scale) * S, sp.exp(S))))


def test_the_full_program_has_only_shapes_that_are_used() -> None:
    x = listing("causal")
    short = x.with_derived([s for s in x.derived if s.name in ("dP",)])
    full = Listing(short.program, short.derived, ("dP",)).full()
    assert "dQ" not in full.shapes and "dP" in full.shapes and full.outputs == ("dP",)
