"""Costs: exact against programs executed with numbers that count, closed forms, paths, bytes against loops that are run."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from symattn import variants
from symattn.adjoint import adjoint
from symattn.cost.baseline import recurrent_layer
from symattn.cost.counted import bytes_of, count, sequential
from symattn.cost.operations import KINDS
from symattn.cost.page import compared, cost_of, order
from symattn.cost.paths import longest_path
from symattn.cost.traffic import ROWS, tiled_bytes
from symattn.definition import Definition
from symattn.derivation.blocks import Table
from symattn.derivation.kernels.page import kernel_of
from symattn.errors import DefinitionError, LimitError
from symattn.indexed import index, size
from tests.cost.counting import executed
from tests.derivation import katex
from tests.derivation.formulas import FORMULAS
from tests.derivation.loops import run

N, M = size("n"), size("m")
SIZES = {"n": 5, "m": 5, "d": 2, "dv": 3, "H": 4, "Hkv": 2, "G": 2, "Bc": 2, "dmodel": 2, "vocab": 3}
KINDS_OF_VARIANTS = (
    "self-attention", "causal", "causal-bottom-right", "sliding-window", "local-window", "dilated-window", "softcap",
    "alibi", "sink", "rope", "multi-head", "neighbourhood-1d", "unnormalized", "delta-rule",
)  # fmt: skip


def _sizes(program: object) -> dict[str, int]:
    return {a.name: SIZES.get(a.name, 2) for a in program.sizes}


# ---------------------------------------------------------------- operations
@pytest.mark.parametrize("name", KINDS_OF_VARIANTS)
def test_counts_are_those_of_the_program_executed(name: str) -> None:
    program = variants.get(name).definition.replace(lse=False).program()
    found, sizes = count(program, {M: N}).at(_sizes(program)), _sizes(program)
    log = executed(program, sizes)
    assert {k: int(getattr(found, k)) for k in KINDS} == {k: log[k] for k in KINDS}


@pytest.mark.parametrize("name", ["self-attention", "causal", "softcap"])
def test_counts_of_gradients(name: str) -> None:
    program = adjoint(variants.get(name).definition.replace(lse=False).program())
    sizes = _sizes(program)
    found, log = count(program, {M: N}).at(sizes), executed(program, sizes)
    assert {k: int(getattr(found, k)) for k in KINDS} == {k: log[k] for k in KINDS}


@pytest.mark.slow
@pytest.mark.parametrize("name", variants.names())
def test_counts_of_every_variant(name: str) -> None:
    program = variants.get(name).definition.replace(lse=False).program()
    cost, sizes = count(program, {M: N}), _sizes(program)
    try:
        found = cost.at(sizes)
    except LimitError:
        assert any(not c.countable for c in cost.names.values())
        return
    if cost.least > sizes.get("n", 9):
        return
    log = executed(program, sizes)
    assert {k: int(getattr(found, k)) for k in KINDS} == {k: log[k] for k in KINDS}


def test_a_given_mask_is_a_count_with_a_name() -> None:
    program = Definition(attn_mask="boolean", lse=False).program()
    cost = count(program, {M: N})
    mask = np.array([[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0], [1, 0, 0, 0, 1]])
    name = next(iter(program.discrete))
    log = executed(program, _sizes(program), {name: mask})
    table = {s: sp.Integer(mask.sum() if s.name == "kept" else mask.any(axis=1).sum()) for s in cost.names}
    sizes = {a: sp.Integer(SIZES[a.name]) for a in program.sizes}
    found = cost.total.xreplace({**table, **sizes})
    assert {k: int(getattr(found, k)) for k in KINDS} == {k: log[k] for k in KINDS}
    with pytest.raises(LimitError, match="depends on the numbers"):
        cost.at(_sizes(program))


def test_closed_forms() -> None:
    d, dv = size("d"), size("dv")
    causal = count(Definition(causal="top-left", lse=False).program(), {M: N})
    assert sp.expand(causal.total.multiplications - N * (N + 1) * (d + dv + 1) / 2) == 0 and not causal.names
    window = count(Definition(causal="top-left", window=(4, 0), lse=False).program(), {M: N})
    assert window.total.exponentials == 4 * N - 6 and window.least == 3 and not window.names
    for n in range(window.least, 12):  # four keys, fewer at the beginning
        assert window.total.exponentials.subs(N, n) == sum(min(i + 1, 4) for i in range(n))


def test_a_count_that_forgets_the_mask_is_found() -> None:
    program = Definition(causal="top-left", lse=False).program()
    bare = program.with_statements(s.__class__(s.target, s.expr, s.over, s.reduce) for s in program)
    assert executed(program, _sizes(program)) != {k: int(getattr(count(bare, {M: N}).at(_sizes(program)), k)) for k in KINDS}


# ---------------------------------------------------------------- steps and paths
def test_the_table_of_the_paper() -> None:
    """Vaswani et al., 2017, table 1: attention n^2 d, 1, 1; recurrent n d^2, n, n."""
    d = size("d")
    attention, recurrent = Definition(lse=False).program(), recurrent_layer()
    assert order(count(attention, {M: N}).total.multiplications) == N**2 * d
    assert order(count(recurrent).total.multiplications) == N * d**2
    assert not sequential(attention, {M: N}).has(N)
    assert order(sequential(recurrent)) == N
    i, j = index("i"), index("j")
    assert longest_path(attention, i, j, N).length == 1 and longest_path(recurrent, i, j, N).length == N


def test_the_recurrent_layer_is_executed_too() -> None:
    program = recurrent_layer()
    found, log = count(program).at({"n": 5, "d": 3}), executed(program, {"n": 5, "d": 3})
    assert {k: int(getattr(found, k)) for k in KINDS} == {k: log[k] for k in KINDS}


@pytest.mark.parametrize(
    ("fields", "length"),
    [
        ({"causal": "top-left"}, sp.S.One),
        ({"causal": "top-left", "window": (4, 0)}, sp.ceiling((N - 1) / sp.Integer(3))),
        ({"window": (2, 2), "window_counts": "distance"}, sp.ceiling((N - 1) / sp.Integer(2))),
        ({"attn_mask": "boolean"}, sp.S.One),
    ],
)
def test_paths(fields: dict[str, object], length: sp.Expr) -> None:
    assert longest_path(Definition.of(**fields).program(), index("i"), index("j"), N).length == length


def test_a_path_without_a_formula_is_a_number() -> None:
    found = longest_path(variants.get("global-tokens").definition.program(), index("i"), index("j"), N)
    assert found.length == 2 and found.says.startswith("at n = ")


# ---------------------------------------------------------------- bytes
@pytest.mark.parametrize("gradient", [False, True])
def test_bytes_by_tiles_are_those_of_the_loops(gradient: bool) -> None:
    """At one query at a time, against the loops of the kernel run with a meter at the memory."""
    sizes = {"n": 3, "m": 6, "d": 2, "dv": 2, "Bc": 2}
    d = Definition(algorithm="flash", lse=not gradient)
    kernel, _ = kernel_of(d, gradient)
    rng = np.random.default_rng(0)
    arrays = {
        x: rng.normal(size=s) for x, s in {"Q": (3, 2), "K": (6, 2), "V": (6, 2), "O": (3, 2), "dO": (3, 2), "L": (3,)}.items()
    }
    meter: list[int] = []
    run(kernel, {n: arrays[n] for n in kernel.reads}, sizes, meter)
    formula = tiled_bytes(Definition(), sp.Integer(1), gradient).xreplace({ROWS: sp.S.One})
    assert formula.xreplace({size(k): sp.Integer(v) for k, v in sizes.items()}) == sum(meter)


def test_bytes_of_whole_matrices() -> None:
    """Q K^T reads Q and K and writes R; and so on: seven statements and the scale."""
    at = {size(k): sp.Integer(v) for k, v in {"n": 3, "m": 4, "d": 2, "dv": 5}.items()}
    scores, scaled, row, exponentials, sums, weights, out = 26, 25, 15, 27, 15, 27, 47
    found = bytes_of(Definition(lse=False).program(), sp.Integer(2)).xreplace(at)
    assert found == 2 * (scores + scaled + row + exponentials + sums + weights + out + 1)


def test_tiles_move_less_than_whole_matrices() -> None:
    whole = bytes_of(Definition(lse=False).program(), sp.S.One, {M: N})
    tiles = tiled_bytes(Definition(), sp.S.One, equal={M: N})
    at = {size("n"): 4096, size("d"): 64, size("dv"): 64, ROWS: 128, size("Bc"): 128}
    assert tiles.subs(at) * 5 < whole.subs(at)


# ---------------------------------------------------------------- pages
def test_the_page_of_one_variant() -> None:
    page = cost_of(variants.get("causal").definition, title="causal")
    table = page.sections[0].blocks[1]
    assert isinstance(table, Table) and table.rows[-1][0] == "in all"
    assert "whole matrices   2 w n (5 n + d_k + d_v + 2)" in page.to_text()  # the value of 1/sqrt(d) is no matrix
    assert "O(n² d)" in page.to_text() and page.to_latex() and page.to_markdown() and page.to_json()
    assert "there is no such kernel" in cost_of(variants.get("linear-attention").definition).to_text()


def test_formulas_are_such_that_katex_takes_them() -> None:
    names = ("causal", "sliding-window", "padding", "multi-head", "linear-attention", "flash")
    pages = [cost_of(variants.get("grouped-query").definition, True), compared({n: variants.get(n).definition for n in names})]
    found = [x for page in pages for form in ("latex", "markdown", "myst") for x in FORMULAS[form](getattr(page, f"to_{form}")())]
    assert len(set(found)) > 20 and katex.complaints(found) == []


def test_side_by_side() -> None:
    page = compared({n: variants.get(n).definition for n in ("self-attention", "sliding-window")})
    rows = page.sections[0].blocks[1].rows
    assert [r[0] for r in rows] == ["self-attention", "sliding-window", "recurrent layer"]
    assert [r[1].latex for r in rows] == ["O(n^2 d)", "O(n d)", "O(n d^2)"]
    assert [r[3].latex for r in rows][::2] == ["1", "n"]
    assert [r[0] for r in compared({"a": Definition()}, gradient=True, baseline=False).sections[0].blocks[1].rows] == ["a"]
    with pytest.raises(DefinitionError, match="nothing to compare"):
        compared({})
