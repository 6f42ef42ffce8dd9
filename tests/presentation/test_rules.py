"""Each rule by itself: what it proposes, and where it must hold back."""

from __future__ import annotations

import pytest
import sympy as sp

from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.presentation import present
from symattn.presentation.listing import Listing
from symattn.presentation.rules import REFOLD, RULES, Rule
from symattn.program import Program, Statement, indices, size
from symattn.program import tensor as T
from tests.presentation.cases import listed

i, j, e = indices("i j e")
DIMS = {i: size("n"), j: size("m"), e: size("dv")}
BY_NAME = {r.name: r for r in (*RULES, REFOLD)}


def listing(forward: list[Statement], derived: list[Statement], *outputs: str) -> Listing:
    shapes = {"dy": (size("n"),)} if any("dy" in s.needs for s in derived) else {}
    base = Program(tuple(forward), DIMS, (), shapes)
    return Listing(base, tuple(derived), outputs)


def proposals(rule: str, x: Listing) -> list[list[str]]:
    return [[str(s) for s in p.derived if s not in x.derived] for p in BY_NAME[rule].propose(x)]


def test_every_rule_is_a_row_with_a_reason_and_is_used_by_some_gradient() -> None:
    names = [r.name for r in RULES]
    assert len(set(names)) == len(names) and all(isinstance(r, Rule) and r.reason for r in RULES)
    seen = {s.rule for n in ("softcap", "sink", "own scale", "lse") for s in listed(n)[2].steps}
    program = listed("sink")[0]
    program = program.with_statements([s for s in program if s.name != "P0"])
    seen |= {s.rule for s in present(program, adjoint(program)).steps}
    for normalizer in ("sparsemax", "entmax15", "stick-breaking"):  # a share of the row, roots, products without a factor
        program = Definition(normalizer=normalizer, causal=True).program()
        seen |= {s.rule for s in present(program, adjoint(program)).steps}
    assert set(names) - seen <= {"unread", "shorten"}


def test_no_rule_mentions_a_variant_or_a_tensor() -> None:
    import inspect

    import symattn.presentation.rules as module

    code = "\n".join(x for x in inspect.getsource(module).split('"""')[2::2])
    words = {w for w in ("softcap", "alibi", "sink", "causal", "dropout", '"P"', '"S"', '"l"', '"E"', '"O"', '"dP"') if w in code}
    assert not words


def test_functions_are_read_through_their_tensor() -> None:
    x, y = T("x", i), T("y", i)
    forward = [Statement(y, T("a") * sp.tanh(x / T("a")))]
    assert proposals("functions", listing(forward, [Statement(T("dx", i), sp.tanh(x / T("a")) ** 2 * T("u", i))], "dx")) == [
        ["dx[i] = u[i]*y[i]**2/a**2"]
    ]


@pytest.mark.parametrize(
    ("value", "slope"),
    [
        (T("x", i) * sp.exp(-T("x", i)), sp.exp(-T("x", i))),  # y/x: a new division
        (20 * sp.tanh(T("x", i) / 20) - i, sp.tanh(T("x", i) / 20)),  # (y + i)/20: no shorter
        (sp.tanh(T("x", i)) + T("z", i), sp.tanh(T("x", i))),  # y - z: another tensor
        (sp.exp(T("x", i)), sp.exp(2 * T("x", i) + 1)),  # another exponential
        (sp.sin(T("x", i)) ** 2, sp.sin(T("x", i))),  # two solutions
    ],
)
def test_functions_hold_back(value: sp.Expr, slope: sp.Expr) -> None:
    x = listing([Statement(T("y", i), value)], [Statement(T("dx", i), slope * T("u", i))], "dx")
    assert proposals("functions", x) == []


def test_no_function_is_read_outside_the_domain_of_its_tensor() -> None:
    forward = [Statement(T("y", i), sp.tanh(T("x", i)), where=sp.Ge(i, 1))]
    inside = Statement(T("dx", i), sp.tanh(T("x", i)), where=sp.Ge(i, 1))
    outside = Statement(T("dx", i), sp.tanh(T("x", i)))
    assert proposals("functions", listing(forward, [inside], "dx")) == [["dx[i] = y[i]   where i >= 1"]]
    assert proposals("functions", listing(forward, [outside], "dx")) == []


def test_quotients_take_helpers_only() -> None:
    for aux in (True, False):
        forward = [
            Statement(T("E", i, j), sp.exp(T("x", i, j)), aux=aux),
            Statement(T("l", i), T("E", i, j), (j,), aux=True),
            Statement(T("P", i, j), T("E", i, j) / T("l", i)),
        ]
        x = listing(forward, [Statement(T("r", i), T("E", i, j) * T("u", j), (j,))], "r")
        assert proposals("quotients", x) == ([["r[i] = sum over j of P[i, j]*l[i]*u[j]"]] if aux else [])


def test_take_out_only_helpers_and_only_what_has_no_bound_index() -> None:
    forward = [Statement(T("l", i), T("E", i, j), (j,), aux=True)]
    inner = Statement(T("t", i), -T("u", i, j) * T("v", i) / T("l", i), (j,))
    x = listing(forward, [inner, Statement(T("o", i), T("t", i) ** 2)], "o")
    (made,) = proposals("take out", x)
    assert made == ["t_sum[i] = sum over j of u[i, j]", "t[i] = -t_sum[i]*v[i]/l[i]"]
    assert proposals("take out", listing(forward, [inner], "t")) == []  # an output keeps its sum
    plain = Statement(T("t", i), T("u", i, j) * T("v", i), (j,))
    assert proposals("take out", listing(forward, [plain, Statement(T("o", i), T("t", i) ** 2)], "o")) == []


def test_unread_statements_go() -> None:
    a, b = Statement(T("a", i), T("x", i)), Statement(T("b", i), T("x", i))
    x = listing([], [a, b], "b")
    assert [p.derived for p in BY_NAME["unread"].propose(x)] == [(b,)]
    assert proposals("unread", listing([], [a, b], "a", "b")) == []


def test_helpers_that_are_long_and_read_often_stay() -> None:
    long = sum((T("x", i) + k) * T(f"u{k}", i) for k in range(8))
    a = Statement(T("a", i), long)
    users = [Statement(T(f"o{k}", i), T("a", i) * T("y", i)) for k in range(2)]
    assert proposals("helpers", listing([], [a, *users], "o0", "o1")) == []
    assert len(proposals("helpers", listing([], [a, users[0]], "o0"))) == 1


def test_the_sum_of_a_tensor_times_its_gradient_is_named_and_nothing_else() -> None:
    forward = [Statement(T("P", i, j), T("x", i, j) ** 2)]
    dP = Statement(T("dP", i, j), T("u", i, j))

    def named(expr: sp.Expr, over: tuple = (j,)) -> list[list[str]]:
        t = T("t", i) if over == (j,) else T("t", j)
        return proposals("name", listing(forward, [dP, Statement(t, expr, over), Statement(T("o"), t, tuple(t.indices))], "o"))

    assert named(-3 * T("P", i, j) * T("dP", i, j)) == [["D[i] = sum over j of P[i, j]*dP[i, j]", "o = sum over i of -3*D[i]"]]
    assert len(named(T("P", i, j) * T("dP", i, j), (i,))) == 1
    for other in (T("P", i, j) ** 2, T("dP", i, j) * T("u", i, j), T("P", i, j) * T("dP", i, j) * T("u", i, j), T("dP", i, j)):
        assert named(other) == []


def test_share_does_not_divide_by_what_may_be_zero() -> None:
    s = Statement(T("a", i), T("x", i) * (1 + T("y", i)))
    wrong = Statement(T("o", i), T("x", i) * T("z", i))
    assert proposals("share", listing([], [s, wrong], "a", "o")) == []
    right = Statement(T("o", i), T("x", i) * (1 + T("y", i)) * T("z", i))
    assert proposals("share", listing([], [s, right], "a", "o")) == [["o[i] = a[i]*z[i]"]]
