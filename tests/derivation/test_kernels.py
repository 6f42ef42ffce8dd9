"""Derivations of kernels: the loops compute attention and its gradient; faults are refused; the pages say what is known."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from symattn import variants
from symattn.algorithms import gradient_by_tiles
from symattn.definition import Definition
from symattn.derivation.blocks import Algorithm, Display, Table
from symattn.derivation.kernels import KERNELS, derive_kernel
from symattn.derivation.kernels.loops import Assign, For, walked
from symattn.derivation.kernels.lowering import lowered
from symattn.derivation.kernels.page import kernel_of
from symattn.derivation.kernels.proof import known_of
from symattn.derivation.kernels.table import MEAN, NO_ROW_SUM, RESCALED
from symattn.derivation.shaping import with_constants_in_place
from symattn.errors import DefinitionError, UnknownNameError
from symattn.forms.algorithms import tiles_for
from symattn.theorems.algorithms import prove_backward, prove_forward
from tests.attention_oracle import attention
from tests.derivation import katex
from tests.derivation.formulas import FORMULAS
from tests.derivation.loops import run

SIZES = {"n": 3, "m": 5, "d": 2, "dv": 2, "Bc": 2, "H": 4, "Hkv": 2, "G": 2}
ORACLE = {
    "plain": ({}, {}),
    "causal": ({"causal": "bottom-right"}, {"causal": "bottom-right"}),
    "late": ({"causal": "top-left"}, {"causal": "top-left"}),
    "window": ({"causal": "bottom-right", "window": (2, 0)}, {"causal": "bottom-right", "window": (2, 0)}),
    "softcap": ({"softcap": 3}, {"softcap": 3.0}),
    "unscaled": ({"scale": 1}, {"scale": 1.0}),
}


def _arrays(seed: int = 0, heads: tuple[int, ...] = ()) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    kv = heads[:1]
    n, m, d, dv = (SIZES[k] for k in ("n", "m", "d", "dv"))
    return {
        "Q": rng.normal(size=(*heads, n, d)),
        "K": rng.normal(size=(*kv, m, d)),
        "V": rng.normal(size=(*kv, m, dv)),
    }


def _oracle(a: dict[str, np.ndarray], **options: object) -> tuple[np.ndarray, np.ndarray]:
    one = {k: x.reshape(1, -1, *x.shape[-2:]) for k, x in a.items()}
    out, lse = attention(one["Q"], one["K"], one["V"], **options)
    return out[0], lse[0]


def _slopes(a: dict[str, np.ndarray], d_o: np.ndarray, d_l: np.ndarray, **options: object) -> dict[str, np.ndarray]:
    """The gradient of <dO, O> + <dL, L> by central differences of the oracle."""

    def loss(arrays: dict[str, np.ndarray]) -> float:
        out, lse = _oracle(arrays, **options)
        return float((out * d_o).sum() + (lse * d_l).sum())

    found = {}
    for name, x in a.items():
        g = np.zeros_like(x)
        for at in np.ndindex(*x.shape):
            step = np.zeros_like(x)
            step[at] = 1e-5
            g[at] = (loss({**a, name: x + step}) - loss({**a, name: x - step})) / 2e-5
        found["d" + name] = g
    return found


# ---------------------------------------------------------------- the loops
@pytest.mark.parametrize("algorithm", ["online", "flash", "split", "ring"])
@pytest.mark.parametrize("options", ["plain", "causal", "window", "softcap"])
def test_the_loops_give_attention(algorithm: str, options: str) -> None:
    fields, said = ORACLE[options]
    kernel, _ = kernel_of(Definition(algorithm=algorithm, lse=True, **fields))
    a = _arrays()
    out, lse = _oracle(a, **said)
    found = run(kernel, a, SIZES)
    np.testing.assert_allclose(found["O"], out[0], rtol=1e-12)
    np.testing.assert_allclose(found["L"], lse[0], rtol=1e-12)


def test_grouped_heads_with_a_sink_in_loops() -> None:
    d = Definition(algorithm="flash", heads=4, kv_heads=2, sink=True, causal="bottom-right", lse=True)
    kernel, _ = kernel_of(d)
    a = _arrays(1, (2, 2)) | {"sink": np.array([[0.3, -0.7], [0.1, 1.4]])}
    out, lse = _oracle({k: a[k] for k in "QKV"}, causal="bottom-right", sinks=a["sink"].ravel())
    found = run(kernel, a, SIZES)
    np.testing.assert_allclose(found["O"].reshape(out.shape), out, rtol=1e-12)
    np.testing.assert_allclose(found["L"].reshape(lse.shape), lse, rtol=1e-12)


@pytest.mark.parametrize("algorithm", ["online", "flash", "ring"])
@pytest.mark.parametrize("options", ["plain", "causal", "softcap"])
def test_the_loops_give_the_gradient(algorithm: str, options: str) -> None:
    fields, said = ORACLE[options]
    kernel, _ = kernel_of(Definition(algorithm=algorithm, lse=True, **fields), gradient=True)
    a = _arrays(2)
    rng = np.random.default_rng(3)
    d_o, d_l = rng.normal(size=(3, 2)), rng.normal(size=3)
    out, lse = _oracle(a, **said)
    found = run(kernel, a | {"O": out[0], "L": lse[0], "dO": d_o, "dL": d_l}, SIZES)
    for name, g in _slopes(a, d_o, d_l, **said).items():
        np.testing.assert_allclose(found[name], g, atol=1e-8)


def test_grouped_heads_in_the_backward_loops() -> None:
    d = Definition(algorithm="flash", heads=4, kv_heads=2, causal="bottom-right", lse=True)
    kernel, _ = kernel_of(d, gradient=True)
    a = _arrays(4, (2, 2))
    rng = np.random.default_rng(5)
    d_o, d_l = rng.normal(size=(2, 2, 3, 2)), rng.normal(size=(2, 2, 3))
    out, lse = _oracle(a, causal="bottom-right")
    found = run(kernel, a | {"O": out.reshape(d_o.shape), "L": lse.reshape(d_l.shape), "dO": d_o, "dL": d_l}, SIZES)
    for name, g in _slopes(a, d_o.reshape(out.shape), d_l.reshape(lse.shape), causal="bottom-right").items():
        np.testing.assert_allclose(found[name], g, atol=1e-8)


def test_a_wrong_rescaling_is_wrong_in_the_loops_and_refused_by_the_proof() -> None:
    d = Definition(algorithm="flash", lse=True)
    kernel, program = kernel_of(d)
    wrong = RESCALED.planted(program)
    loops = [n.index for n in kernel.body if isinstance(n, For)]
    inner = [n.index for n, _ in walked(kernel.body) if isinstance(n, For)]
    bad = lowered(wrong, inner, loops[0], tiles_for(d))
    a = _arrays()
    assert np.abs(run(bad, a, SIZES)["O"] - _oracle(a)[0][0]).max() > 1e-3
    assert not prove_forward(d.replace(block=2), RESCALED.planted(d.replace(block=2).program())).proved


@pytest.mark.parametrize(("algorithm", "fault"), [("online", RESCALED), ("flash", RESCALED), ("ring", RESCALED), ("split", MEAN)])
def test_planted_faults_of_the_forward_are_refused(algorithm: str, fault: object) -> None:
    d = Definition(algorithm=algorithm, lse=True) if algorithm == "online" else Definition(algorithm=algorithm, block=2, lse=True)
    assert prove_forward(d, d.program()).proved
    assert not prove_forward(d, fault.planted(d.program())).proved


@pytest.mark.parametrize("algorithm", ["flash", "ring"])
def test_planted_faults_of_the_backward_are_refused(algorithm: str) -> None:
    d = Definition(algorithm=algorithm, block=2, lse=True)
    program = gradient_by_tiles(d).program
    wrong = [w for f in NO_ROW_SUM if (w := f.planted(program)) is not None]
    assert len(wrong) == 1
    assert prove_backward(d, program).proved
    assert not prove_backward(d, wrong[0]).proved


def test_a_loop_says_whether_its_turns_meet() -> None:
    kernel, _ = kernel_of(Definition(algorithm="flash", heads=4, kv_heads=2, lse=True))
    assert [(n.index.name, n.carried) for n, _ in walked(kernel.body) if isinstance(n, For)] == [
        ("k", False), ("g", False), ("i", False), ("t", True),
    ]  # fmt: skip
    kernel, _ = kernel_of(Definition(algorithm="flash", heads=4, kv_heads=2, lse=True), gradient=True)
    assert [(n.index.name, n.carried) for n, _ in walked(kernel.body) if isinstance(n, For)] == [
        ("k", False), ("t", True), ("g", True), ("i", True),
    ]  # fmt: skip
    kernel, _ = kernel_of(Definition(algorithm="split", lse=True))
    assert [(n.index.name, n.carried) for n, _ in walked(kernel.body) if isinstance(n, For)] == [("i", False), ("t", False)]


def test_nothing_as_large_as_the_weights_is_kept() -> None:
    """A variable of a flash kernel has no axis of queries and of keys at once."""
    for gradient in (False, True):
        kernel, _ = kernel_of(Definition(algorithm="flash", lse=True), gradient)
        i, t, r = sp.symbols("i t r", integer=True)
        for a in kernel.assigned():
            axes = set(a.target.indices) if isinstance(a.target, sp.Indexed) else set()
            assert not {i, r} <= axes and not {i, t} <= axes, a


# ---------------------------------------------------------------- the pages
def _section(page: object, title: str) -> object:
    return next(s for s in page.sections if s.title == title)


@pytest.mark.parametrize("kernel", list(KERNELS))
def test_every_kernel_has_its_page(kernel: str) -> None:
    page = derive_kernel(kernel)
    algorithm = _section(page, "The algorithm")
    assert algorithm.known == "proved for all sizes"
    assert any(isinstance(b, Algorithm) for b in algorithm.blocks)
    proof = [s for s in page.sections if s.title.startswith("Proof")]
    assert len(proof) == KERNELS[kernel].forward + KERNELS[kernel].backward
    for s in proof:
        rows = next(b for b in s.blocks if isinstance(b, Table)).rows
        assert s.known == "proved for all sizes" and rows
        assert "not proved" not in {row[-1] for row in rows}
    refused = [s for s in page.sections if s.title.endswith("is refused")]
    assert len(refused) == len(proof)
    beside = [x for s in page.sections for b in s.blocks if isinstance(b, Display) for x in b.beside]
    assert not [x for x in beside if "not shown" in x]
    assert "Algorithm" in page.to_text() and page.to_latex().startswith("\\documentclass")


def test_the_induction_in_formulas() -> None:
    page = derive_kernel("online-softmax")
    step = _section(page, "Step: one more tile").blocks[1]
    lines = [f.latex for f in step.formulas]
    assert lines[0] == r"\bar{\ell}_{ij} = E_{ij} + \bar{\ell}_{i,j - 1} \rho_{ij}"
    assert lines[-1] == r"\bar{\ell}_{ij} = \sum_{s \le j} \exp(\bar{m}_{is} - \bar{m}_{ij}) E_{is}"
    base = _section(page, "Base: the first tile").blocks[1]
    assert base.formulas[0].latex == r"\bar{\ell}_{i,0} = E_{i,0}"


@pytest.mark.parametrize("name", ["causal", "sliding-window", "softcap", "alibi", "rope", "boolean-mask"])
@pytest.mark.slow
def test_kernels_of_variants(name: str) -> None:
    for kernel in KERNELS:
        page = derive_kernel(kernel, variants.get(name).definition, title=name)
        assert _section(page, "The algorithm").known == "proved for all sizes"
        beside = [x for s in page.sections for b in s.blocks if isinstance(b, Display) for x in b.beside]
        assert not [x for x in beside if "not shown" in x]
        page.to_latex()


@pytest.mark.slow
def test_formulas_are_such_that_katex_takes_them() -> None:
    d = Definition(causal="bottom-right", sink=True, heads=4, kv_heads=2)
    pages = [derive_kernel(kernel, d) for kernel in ("flash-forward", "flash-backward", "split-k")]
    found = [x for page in pages for form in ("latex", "markdown") for x in FORMULAS[form](getattr(page, f"to_{form}")())]
    assert len(set(found)) > 100 and katex.complaints(found) == []


def test_what_is_not_proved_is_not_called_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the prover gives up, numbers are tried, and the label says so; where they differ, it says that."""
    from symattn.derivation.kernels import proof

    real = proof.prove_forward

    def gives_up(d: Definition) -> object:
        found = real(d)
        return replace(found, parts=tuple(replace(p, proved=False) for p in found.parts))

    monkeypatch.setattr(proof, "prove_forward", gives_up)
    assert known_of(Definition(algorithm="flash"), gradient=False).says.startswith(
        "not proved; checked with exact numbers at n = 3"
    )


def test_definitions_without_the_algorithm_are_refused() -> None:
    with pytest.raises(DefinitionError, match="there is no ring for this definition"):
        derive_kernel("ring", variants.get("linear-attention").definition)
    with pytest.raises(UnknownNameError, match="flash-forward"):
        derive_kernel("flash")


def test_the_pseudo_code_is_the_kernel() -> None:
    """As many lines as nodes, starts of a loop together; each formula has its variable on the left."""
    d = Definition(algorithm="flash", lse=True)
    kernel, program = kernel_of(d)
    block = next(b for b in _section(derive_kernel("flash-forward"), "The algorithm").blocks if isinstance(b, Algorithm))
    assigned = sum(isinstance(n, Assign) for n, _ in walked(kernel.body))
    assert sum(any(r"\gets" in getattr(p, "latex", "") for p in line.parts) for line in block.lines) == assigned + 1
    assert with_constants_in_place(d.program()) == program


def _listing(kernel: str, definition: Definition) -> list[str]:
    text = derive_kernel(kernel, definition, form="index").to_text()
    return text.partition("\nAlgorithm: ")[2].partition("\nHow known")[0].splitlines()


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize("options", [{}, {"sink": True, "window": (2, 1)}])
def test_a_listing_can_be_typed_in_as_it_stands(kernel: str, options: dict[str, object]) -> None:
    """No variable has the name of a size, and the page says what a line gives where its condition does not hold."""
    lines = _listing(kernel, Definition.of(**options))
    made = {v.strip().partition("[")[0] for x in lines if "←" in x for v in re.findall(r"([^\s,]+) ←", x)}
    assert made and not made & {"n", "m", "d_k", "d_v", "B_c"}
    said = " ".join(derive_kernel(kernel, Definition.of(**options)).to_text().split())
    assert "Where the condition of a line does not hold, the line gives 0" in said and "-oo" not in said


def test_what_a_loop_finds_from_before_is_stored_and_loaded() -> None:
    lines = [x.split(None, 1)[1] for x in _listing("flash-backward", Definition.of(sink=True)) if x[:4].strip().isdecimal()]
    assert [x.split(" ←")[0] for x in lines if x.startswith("store ")][:3] == ["store D[i]", "store db", "store dQ[i,c]"]
    (load,) = [x for x in lines if x.startswith("load Q[i,c]")]
    assert load == "load Q[i,c], L[i], dO[i,e], dL[i], D[i]"
    merged = _listing("split-k", Definition.of(sink=True))
    assert not any("store w" in x or "P_0" in x for x in merged)  # read where it is made; read nowhere


def test_a_query_without_keys_divides_nothing_by_nothing() -> None:
    """Typed in, 1/l times an empty sum is not a number, and the definition says 0."""
    lines = _listing("split-k", Definition.of(causal="bottom-right"))
    assert not any("1/ℓ" in x for x in lines)
    assert any(x.partition("store O[i,e] ← ")[2].startswith("Σ_t ") and x.endswith(" w[t]/ℓ") for x in lines), lines
