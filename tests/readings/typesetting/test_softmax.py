"""Softmax found by its structure, whatever the names, and written as one step."""

from dataclasses import replace

import pytest
import sympy as sp

from symattn.definition import Definition
from symattn.errors import UnknownNameError
from symattn.program import Program, Statement, indices, size, tensor
from symattn.readings.latex import softmax_form, softmax_steps

i, j, h, x = indices("i j h x")
DIMS = {i: size("n"), j: size("m"), h: size("H"), x: size("X")}
T = tensor
KEEP = sp.Le(j, i)


def program(*statements, outputs=("p",)):
    return Program(statements, DIMS, outputs)


def rows(where=sp.true):
    """A softmax in names of its own."""
    return {
        "top": Statement(T("top", i), T("a", i, j), (j,), "max", where, range_only=True),
        "w": Statement(T("w", i, j), sp.exp(T("a", i, j) - T("top", i)), where=where),
        "total": Statement(T("total", i), T("w", i, j), (j,), where=where),
        "p": Statement(T("p", i, j), T("w", i, j) / T("total", i), where=where),
    }


def test_plain_and_masked():
    for where in (sp.true, KEEP):
        p = program(*rows(where).values())
        (found,) = softmax_steps(p)
        assert (found.name, found.score, found.over, found.helpers) == ("p", T("a", i, j), j, ("top", "w", "total"))
        assert (found.shift, found.extras, found.lse) == (T("top", i), (), None)
        assert softmax_form(p, found) == r"p = \operatorname{softmax}(a)"
        assert softmax_form(p, found, style="markdown") == r"p = \mathrm{softmax}(a)"
        kept = "j'" if where == sp.true else r"j' \le i"  # nothing is evaluated at a key that is masked
        assert softmax_form(p, found, "index") == rf"p_{{ij}} = \frac{{\exp(a_{{ij}})}}{{\sum_{{{kept}}} \exp(a_{{ij'}})}}"
        assert softmax_form(p, found, lse=True) is None


def changed(**statements):
    """The masked softmax with statements replaced; ``more`` comes before the weights."""
    table = rows(KEEP) | statements
    last = table.pop("p")
    return Program((*table.values(), last), {i: size("n"), j: size("n"), h: size("H"), x: size("X")}, ("p",))


LOOKALIKES = {
    "another mask in the sum": changed(total=replace(rows()["total"], where=sp.Lt(j, i))),
    "another mask on the weights": changed(p=replace(rows()["p"], where=sp.Lt(j, i))),
    "no mask on the exponentials": changed(w=rows()["w"]),
    "a sum of something else": changed(total=Statement(T("total", i), T("a", i, j), (j,), where=KEEP)),
    "a product": changed(total=replace(rows()["total"], reduce="prod", where=KEEP)),
    "a sum along the other axis": changed(total=Statement(T("total", i), T("w", j, i), (j,), where=KEEP)),
    "no exponential": changed(w=Statement(T("w", i, j), sp.tanh(T("a", i, j) - T("top", i)), where=KEEP)),
    "one plus the sum": changed(
        total=Statement(T("r", i), T("w", i, j), (j,), where=KEEP), more=Statement(T("total", i), T("r", i) + 1)
    ),
    "a factor before the quotient": changed(p=Statement(T("p", i, j), 2 * T("w", i, j) / T("total", i), where=KEEP)),
}


@pytest.mark.parametrize("name", list(LOOKALIKES))
def test_what_only_looks_like_a_softmax_is_none(name):
    assert softmax_steps(LOOKALIKES[name]) == ()


def test_a_maximum_that_does_not_cancel_stays_in_the_score():
    p = changed(top=replace(rows(KEEP)["top"], range_only=False))
    (found,) = softmax_steps(p)
    assert found.shift is None
    assert softmax_form(p, found) == r"p = \operatorname{softmax}(a - \mathrm{top}\mathbf{1}^{\top})"


@pytest.mark.parametrize("inline", [True, False])
def test_a_sink_stands_in_the_denominator(inline):
    sink = sp.exp(T("b") - T("top", i))
    parts = rows(KEEP)
    extra = () if inline else (Statement(T("e0", i), sink),)
    p = program(
        Statement(T("top0", i), T("a", i, j), (j,), "max", KEEP, range_only=True),
        Statement(T("top", i), sp.Max(T("top0", i), T("b")), range_only=True),
        parts["w"],
        Statement(T("r", i), T("w", i, j), (j,), where=KEEP),
        *extra,
        Statement(T("total", i), T("r", i) + (sink if inline else T("e0", i))),
        parts["p"],
        Statement(T("out", i), T("top", i) + sp.log(T("total", i))),
        outputs=("p", "out"),
    )
    (found,) = softmax_steps(p)
    assert found.extras == (T("b"),)
    assert set(found.helpers) == {"top0", "top", "w", "r", "total"} | ({"e0"} if not inline else set())
    assert found.lse == "out"
    assert softmax_form(p, found) == r"p = \operatorname{diag}(\exp(b)\mathbf{1} + \exp(a)\mathbf{1})^{-1} \exp(a)"
    assert softmax_form(p, found, "index") == r"p_{ij} = \frac{\exp(a_{ij})}{\exp(b) + \sum_{j' \le i} \exp(a_{ij'})}"
    assert softmax_form(p, found, lse=True) == r"\mathrm{out} = \log(\exp(b)\mathbf{1} + \exp(a)\mathbf{1})"
    assert softmax_form(p, found, "index", lse=True) == r"\mathrm{out}_i = \log\left(\exp(b) + \sum_{j \le i} \exp(a_{ij})\right)"


def test_a_row_maximum_that_passes_over_the_sink_still_cancels():
    parts = rows()
    p = program(
        parts["top"],
        parts["w"],
        Statement(T("r", i), T("w", i, j), (j,)),
        Statement(T("total", i), T("r", i) + sp.exp(T("b") - 2 * T("top", i))),
        parts["p"],
    )
    assert softmax_steps(p) == ()


@pytest.mark.parametrize("base", ["e", 2])
def test_definitions(base):
    definition = Definition(heads=2, lse_base=base, causal="top-left")
    p = definition.program()
    (found,) = softmax_steps(p)
    log = r"\log" if base == "e" else r"\log_2"
    assert found.helpers == ("m", "E", "l")
    assert softmax_form(p, found) == r"P^{(h)} = \operatorname{softmax}(S^{(h)})"
    assert softmax_form(p, found, lse=True) == rf"L^{{(h)}} = {log}(\exp(S^{{(h)}})\mathbf{{1}})"
    want = r"P^{(h)}_{ij} = \frac{\exp(S^{(h)}_{ij})}{\sum_{j' \le i} \exp(S^{(h)}_{ij'})}"
    assert softmax_form(p, found, "index", batch="h") == want


def test_a_score_of_three_axes_has_no_matrix_form():
    p = program(
        Statement(T("w", i, x, j), sp.exp(T("a", i, x, j))),
        Statement(T("total", i, x), T("w", i, x, j), (j,)),
        Statement(T("p", i, x, j), T("w", i, x, j) / T("total", i, x)),
    )
    (found,) = softmax_steps(p)
    assert softmax_form(p, found, batch=()) is None
    assert softmax_form(p, found, batch="i") == r"p^{(i)} = \operatorname{softmax}(a^{(i)})"


def test_two_softmaxes_are_two():
    first, second = rows(), rows()
    renamed = [
        replace(
            s,
            target=T(s.name + "2", *s.indices),
            expr=s.expr.xreplace({y: T(str(y.base.label) + "2", *y.indices) for y in s.reads}),
        )
        for s in second.values()
    ]
    assert [f.name for f in softmax_steps(program(*first.values(), *renamed))] == ["p", "p2"]


def test_the_share_of_the_sink_is_written_without_helpers():
    p = Definition(sink=True, heads=2, causal="top-left").program()
    (found,) = softmax_steps(p)
    assert found.beside == (("P0", T("sink", h)),)
    total = r"\exp(b_h)\mathbf{1} + \exp(S^{(h)})\mathbf{1}"
    assert softmax_form(p, found, of="P0") == rf"P_0^{{(h)}} = \operatorname{{diag}}({total})^{{-1}} \exp(b_h)\mathbf{{1}}"
    assert softmax_form(p, found, "index", of="P0") == r"(P_0)_{hi} = \frac{\exp(b_h)}{\exp(b_h) + \sum_{j \le i} \exp(S_{hij})}"
    assert softmax_form(p, found, of="L") == softmax_form(p, found, lse=True)
    with pytest.raises(UnknownNameError, match="'PO' is no part"):
        softmax_form(p, found, of="PO")
