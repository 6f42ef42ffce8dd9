"""Statements and programs: what is refused, what is printed, what compares equal."""

from __future__ import annotations

import pytest
import sympy as sp

from symattn.errors import ProgramError
from symattn.program import Program, Statement, Table, all_reads, conjuncts, indices, reads, size, tensor

i, j, c, p = indices("i j c p")
n, m, d = size("n"), size("m"), size("d")
DIMS = {i: n, j: m, c: d}
S = Statement(tensor("S", i, j), tensor("Q", i, c) * tensor("K", j, c), (c,), where=sp.Le(j, i))
ROW = Statement(tensor("m", i), tensor("S", i, j), (j,), "max", sp.Le(j, i), range_only=True, aux=True)


def test_a_statement_prints_as_it_is_written_in_mathematics():
    assert str(ROW) == "m[i] = max over j of S[i, j]   where j <= i"
    boolean = Statement(tensor("A", i), tensor("B", i, j), (j,), where=sp.And(sp.Ne(tensor("M", i, j), 0), sp.Le(j, i)))
    assert str(boolean) == "A[i] = sum over j of B[i, j]   where M[i, j] != 0 and j <= i"
    either = Statement(tensor("A", i), tensor("B", i, j), (j,), where=sp.Or(sp.Le(j, i), j < 3))
    assert str(either).endswith("where (j < 3 or j <= i)")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Statement(tensor("A", i, i), tensor("B", i)), "not distinct"),
        (lambda: Statement(tensor("A", i), tensor("B", i), (i,)), "not distinct"),
        (lambda: Statement(tensor("A", i + 1), tensor("B", i)), "no plain index"),
        (lambda: Statement(tensor("A", i), tensor("A", i) + 1), "cannot read the tensor that it defines"),
        (lambda: Statement(tensor("A", i), tensor("B", tensor("A", i))), "cannot read the tensor that it defines"),
        (lambda: Statement(tensor("A", i), tensor("B", i), reduce="mean"), "'sum', 'max' or 'prod'"),
        (lambda: Statement("A", tensor("B", i)), "target of a statement is a tensor"),
        (lambda: Statement(tensor("A", i), "B"), "must be a SymPy expression"),
    ],
)
def test_a_statement_without_meaning_is_refused(make, says):
    with pytest.raises(ProgramError, match=says):
        make()


@pytest.mark.parametrize(
    ("statements", "outputs", "shapes", "says"),
    [
        ((S, S), ("S",), {}, "defined twice: S"),
        ((ROW, S), ("m",), {}, "reads S before it is defined"),
        ((S,), ("O",), {}, "output O is not defined"),
        ((Statement(tensor("A", p), tensor("B", p)),), ("A",), {}, "index p has no size"),
        ((Statement(tensor("A", i), tensor("B", j)),), ("A",), {}, "j is neither a free nor a bound index"),
        ((Statement(tensor("A", i), tensor("B", i), (j,)),), ("A",), {}, "bound index j is in neither"),
        ((Statement(tensor("A", i), tensor("B", tensor("tok", i))),), ("A",), {}, "shape of B cannot be seen"),
        ((Statement(tensor("A", i, j), tensor("B", i) * tensor("B", j)),), ("A",), {}, "axis 0 of B has size n"),
        ((Statement(tensor("A", i, j), tensor("B", i) * tensor("B", i, j)),), ("A",), {}, "has 1 axes|has 2 axes"),
        ((Statement(tensor("A", i), tensor("B", i)),), ("A",), {"B": (m,)}, "axis 0 of B has size m"),
    ],
)
def test_a_program_without_meaning_is_refused(statements, outputs, shapes, says):
    with pytest.raises(ProgramError, match=says):
        Program(statements, DIMS, outputs, shapes)


def test_a_count_may_leave_its_bound_index_unused():
    count = Program((Statement(tensor("N", i), sp.Integer(1), (j,), where=sp.Le(j, i)),), DIMS, ("N",))
    assert count.inputs == ()


def test_inputs_shapes_and_discrete_inputs():
    look_up = Statement(tensor("X", i, c), tensor("Emb", tensor("tok", i), c), where=sp.Ne(tensor("M", i), 0))
    program = Program((look_up,), DIMS, ("X",), {"Emb": (size("w"), d)})
    assert set(program.inputs) == {"Emb", "tok", "M"}
    assert program.discrete == {"tok", "M"}
    assert program.shapes["tok"] == (n,)
    assert set(map(str, program.sizes)) == {"n", "m", "d", "w"}


def test_reads_are_the_outermost_ones_and_labels_are_no_parameters():
    e = tensor("Emb", tensor("tok", i), c) * tensor("scale") + n
    assert [str(x) for x in reads(e)] == ["Emb[tok[i], c]", "scale"]
    assert [str(x) for x in all_reads(e)] == ["Emb[tok[i], c]", "scale", "tok[i]"]


def test_programs_compare_and_hash_by_what_they_say():
    one, two = Program((S, ROW), DIMS, ("m",)), Program((S, ROW), dict(reversed(DIMS.items())), ("m",))
    assert one == two
    assert hash(one) == hash(two)
    assert one != Program((S, ROW), DIMS, ("S",))
    assert Table({1: 2}) == {1: 2}


def test_live_drops_what_no_output_needs():
    dead = Statement(tensor("A", i), tensor("S", i, j), (j,))
    assert [s.name for s in Program((S, ROW, dead), DIMS, ("m",)).live()] == ["S", "m"]


def test_conjuncts_of_true_are_none():
    assert conjuncts(sp.true) == ()
    assert len(conjuncts(sp.And(sp.Le(j, i), j > 2))) == 2


def test_renaming_keeps_the_statement_consistent():
    renamed = S.renamed({i: p})
    assert str(renamed) == "S[p, j] = sum over c of K[j, c]*Q[p, c]   where j <= p"


@pytest.mark.parametrize("first", [tensor("E", 0, j), tensor("E", i - 1, j), tensor("E", tensor("tok", i), j)])
def test_a_shape_is_inferred_from_any_read_that_reveals_it(first):
    early = Statement(tensor("A", i, j), first, where=sp.Ge(i, 1))
    plain = Statement(tensor("C", i), tensor("E", i, j), (j,))
    for statements in ((early, plain), (plain, early)):
        assert Program(statements, DIMS, ("A", "C")).shapes["E"] == (n, m)
    with pytest.raises(ProgramError, match="shape of E cannot be seen"):
        Program((early,), DIMS, ("A",))


def test_a_shape_is_inferred_axis_by_axis_and_a_condition_may_reveal_it():
    both = Statement(tensor("A", i, j), tensor("E", 0, j) * tensor("E", i, 0))
    assert Program((both,), DIMS, ("A",)).shapes["E"] == (n, m)
    difference = Statement(tensor("y", i), tensor("x", i - 1) - tensor("x", i), where=sp.Ge(i, 1))
    assert Program((difference,), DIMS, ("y",)).shapes["x"] == (n,)
    asked = Statement(tensor("y", i), tensor("x", 0), where=sp.Gt(tensor("x", i), 0))
    assert Program((asked,), DIMS, ("y",)).shapes["x"] == (n,)
    with pytest.raises(ProgramError, match="axis 1 of E has size m"):
        Program((Statement(tensor("A", i, j), tensor("E", 0, j) * tensor("E", i, i)),), DIMS, ("A",))


def test_numbers_become_exact_and_text_is_never_parsed():
    from symattn.indexed import expression
    from symattn.normalform import NormalForm

    assert Statement(tensor("A", i), 0.5).expr == sp.Rational(1, 2)
    for hostile in ("__import__('os').abort()", None, float("nan")):
        with pytest.raises(ProgramError, match="SymPy objects and exact numbers"):
            expression(hostile)
    with pytest.raises(ProgramError, match="SymPy objects and exact numbers"):
        NormalForm().is_zero("__import__('os').abort()")
