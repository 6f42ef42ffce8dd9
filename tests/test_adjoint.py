"""Gradients and tangents, against SymPy's entrywise derivative of the unrolled output and against PyTorch's autograd."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symattn.adjoint import adjoint, tangent
from symattn.definition import Definition
from symattn.derivative import real_inputs
from symattn.errors import NotDifferentiableError, ProofError
from symattn.program import Program
from symattn.program import tensor as T
from tests import dense
from tests.programs import ATTENTION, CASES, i, j, m, n

# ---------------------------------------------------------------- SymPy, entry by entry
SMALL = {"B": 1, "H": 1, "n": 2, "m": 2, "d": 2, "dv": 1, "Hkv": 1, "G": 2, "dmodel": 2, "width": 1}
UNROLLED = ["plain", "causal", "lse", "lse base 2", "softcap", "additive bias", "alibi", "sink", "output read downstream"]


def size_of(program: Program, v: Any) -> int:
    return int(sp.sympify(v).xreplace({sp.Symbol(k, integer=True, positive=True): sp.Integer(q) for k, q in SMALL.items()}))


def unrolled(program: Program, stop: Any = ()) -> dict[Any, sp.Expr]:
    """Every element as an expression in the elements of the inputs; ``stop`` names statements whose elements stay symbols.

    The row maximum is 0: that it cancels is proved elsewhere, and SymPy's Max would hide the derivative.
    """
    values: dict[Any, sp.Expr] = {}

    def element(x: Any) -> sp.Expr:
        if isinstance(x, sp.Indexed):
            key = (str(x.base.label), *[int(a) for a in x.indices])
            return values.get(key, sp.Symbol("_".join(map(str, key)), real=True))
        return values.get((x.name,), x)

    for s in program:
        for at in itertools.product(*[range(size_of(program, program.dims[a])) for a in s.indices]):
            total, product = sp.S.Zero, sp.S.One
            for bound in itertools.product(*[range(size_of(program, program.dims[a])) for a in s.over]):
                point = dict(zip((*s.indices, *s.over), map(sp.Integer, (*at, *bound)), strict=True))
                sizes = {a: sp.Integer(SMALL[a.name]) for a in program.sizes}
                here = s.where.xreplace(point).xreplace(sizes)
                assert here in (sp.true, sp.false)
                if here == sp.true:
                    e = s.expr.xreplace(point).xreplace(sizes)
                    e = e.xreplace({x: element(x) for x in (*e.atoms(sp.Indexed), *e.free_symbols) if not x.is_integer})
                    total, product = total + e, product * e
            if s.name not in stop:
                values[s.name, *at] = sp.S.Zero if s.range_only else product if s.over and s.reduce == "prod" else total
    return values


def is_zero(e: sp.Expr) -> bool:
    """Whether a rational function of symbols, exponentials and hyperbolic tangents is 0: each of these is one symbol."""
    for kind in (sp.tanh, sp.log):
        e = e.xreplace({f: sp.Dummy(positive=True) for f in e.atoms(kind)})
    symbols: dict[sp.Expr, sp.Symbol] = {}

    def power(a: sp.Expr) -> sp.Expr:
        number, rest = a.as_coeff_Mul()
        return symbols.setdefault(rest, sp.Dummy(positive=True)) ** number

    e = e.xreplace({f: sp.Mul(*[power(a) for a in sp.Add.make_args(sp.expand(f.args[0]))]) for f in e.atoms(sp.exp)})
    return sp.expand(sp.numer(sp.together(e))) == 0


def check(program: Program, wrt: list[str], stop: Any = ()) -> int:
    gradient = adjoint(program, wrt)
    plain, got = unrolled(program, stop), unrolled(gradient, stop)
    loss = sum(
        e * sp.Symbol("_".join(map(str, ("d" + k[0], *k[1:]))), real=True) for k, e in plain.items() if k[0] in program.outputs
    )
    count = 0
    for name, out in zip(wrt, gradient.outputs, strict=True):
        for at in itertools.product(*[range(size_of(program, v)) for v in gradient.shapes[out]]):
            x = sp.Symbol("_".join(map(str, (name, *at))), real=True)
            assert is_zero(sp.diff(loss, x) - got[out, *at]), (name, at)
            count += 1
    return count


def stage(program: Program, name: str) -> Program:
    """The program from the statement ``name`` on, which becomes an input."""
    return program.with_statements([s for s in program if s.name != name]).live()


@pytest.mark.parametrize("name", UNROLLED)
def test_equals_sympys_entrywise_derivative_of_the_unrolled_output(name):
    """In stages: from the scores to the outputs, then from the inputs to the scores."""
    program = ATTENTION[name].program
    later = stage(program, "S")
    assert check(later, [q for q in real_inputs(later) if q != "WO"]) >= 5
    first = Program([program["S"]], program.dims, ("S",))
    assert check(first, ["Q", "K", "scale"]) >= 9


def test_a_wrong_gradient_does_not_pass_that_comparison():
    e = sp.exp(T("x")) / (1 + sp.exp(T("x")))
    assert is_zero(sp.diff(e, T("x")) - e * (1 - e))
    assert not is_zero(sp.diff(e, T("x")) - e)


@pytest.mark.parametrize("name", ["diagonal", "product", "RMS norm", "gram", "sigmoid weights", "linear with normaliser"])
def test_programs_without_attention_equal_sympys_entrywise_derivative(name):
    program = CASES[name].program
    assert check(program, list(real_inputs(program))) >= 4


# ---------------------------------------------------------------- PyTorch
SIZES = {"B": 2, "H": 4, "Hkv": 2, "G": 2, "n": 7, "m": 9, "d": 6, "dv": 6}
HEADS = {"heads": 4, "kv_heads": 2}
TORCH: dict[str, dict] = {
    "grouped": {},
    "tiled": {"grouping": "tiled"},
    "top-left": {"causal": "top-left"},
    "bottom-right": {"causal": "bottom-right"},
    "window": {"causal": "bottom-right", "window": (3, 1), "window_counts": "distance"},
    "softcap": {"softcap": 2, "causal": "top-left"},
    "bias": {"bias": True},
    "alibi": {"alibi": True, "causal": "bottom-right"},
    "sink": {"sink": True, "causal": "top-left"},
    "boolean mask": {"attn_mask": "boolean"},
    "base 2": {"lse_base": 2, "causal": "bottom-right"},
    "scale": {"scale": "1/3"},
    "many": {"causal": "bottom-right", "softcap": 3, "alibi": True, "bias": True, "sink": True, "lse_base": 2},
}


def forward(torch, x: dict[str, Any], fields: dict) -> tuple[Any, Any]:
    """Attention in PyTorch, written from the conventions and not from the program: outputs (B, H, n, d) and (B, H, n)."""
    B, heads, rows, depth = x["Q"].shape
    groups = heads // x["K"].shape[1]
    spread = (
        (lambda a: a.repeat(1, groups, 1, 1)) if fields.get("grouping") == "tiled" else (lambda a: a.repeat_interleave(groups, 1))
    )
    k, v = spread(x["K"]), spread(x["V"])
    cols = k.shape[2]
    s = x["Q"] @ k.transpose(-1, -2) * (1 / 3 if "scale" in fields else depth**-0.5)
    if "softcap" in fields:
        s = fields["softcap"] * torch.tanh(s / fields["softcap"])
    row, col = torch.arange(rows)[:, None], torch.arange(cols)[None, :]
    shift = cols - rows if fields.get("causal") == "bottom-right" else 0
    if fields.get("alibi"):
        s = s - x["slope"][None, :, None, None] * (row + shift - col)
    if fields.get("bias"):
        s = s + x["bias"]
    keep = torch.ones(rows, cols, dtype=torch.bool)
    if "causal" in fields:
        keep = keep & (col <= row + shift)
    if "window" in fields:
        left, _ = fields["window"]
        keep = keep & (row + shift - col <= left)
    if "M" in x:
        keep = keep & (x["M"] != 0)
    s = s.masked_fill(~keep, float("-inf"))
    if fields.get("sink"):
        s = torch.cat([s, x["sink"][None, :, None, None].expand(B, heads, rows, 1)], -1)
    lse = torch.logsumexp(s, -1)
    p = torch.softmax(s, -1)[..., :cols]
    return p @ v, lse / np.log(2) if fields.get("lse_base") == 2 else lse


@pytest.mark.parametrize("name", TORCH)
def test_equals_torch_autograd_in_float64(name, require):
    torch = require("torch")
    fields = TORCH[name]
    program = Definition(**HEADS, **fields).program(batch=True)
    wrt = real_inputs(program)
    gradient = adjoint(program, wrt)
    rng = np.random.default_rng(3)
    axes = {"Q": (2, 4, 7, 6), "K": (2, 2, 9, 6), "V": (2, 2, 9, 6), "slope": (4,), "sink": (4,), "bias": (2, 4, 7, 9)}
    x = {q: torch.tensor(rng.normal(size=axes[q]), requires_grad=True) for q in wrt}
    if name == "boolean mask":
        x["M"] = torch.tensor(rng.integers(0, 2, (2, 4, 7, 9)) | np.eye(7, 9, dtype=int)).double()
    out, lse = forward(torch, x, fields)
    d_out, d_lse = torch.tensor(rng.normal(size=tuple(out.shape))), torch.tensor(rng.normal(size=tuple(lse.shape)))
    ((out * d_out).sum() + (lse * d_lse).sum()).backward()

    def ours(a: Any, name: str) -> np.ndarray:
        """A tensor (.., H, ..) in the axes of the program: head = kv-head and group member, in the order of the grouping."""
        a, want = a.detach().numpy(), [str(v) for v in gradient.shapes[name]]
        if "G" not in want:
            return a
        p = 0 if len(want) == a.ndim + 1 and want[0] != "B" else 1
        tiled = fields.get("grouping") == "tiled"
        a = a.reshape(*a.shape[:p], *((2, 2)), *a.shape[p + 1 :])
        return a.swapaxes(p, p + 1) if tiled and want.index("Hkv") < want.index("G") else a

    inputs = {q: ours(v, q) for q, v in x.items()}
    got = dense.run(gradient, {**inputs, "dO": ours(d_out, "dO"), "dL": ours(d_lse, "dL")}, SIZES)
    assert np.max(np.abs(got["O"] - ours(out, "O"))) < 1e-12
    for q, g in zip(wrt, gradient.outputs, strict=True):
        assert np.max(np.abs(got[g] - ours(x[q].grad, q))) < 1e-12, q
    assert set(wrt) >= {"Q", "K", "V"}


# ---------------------------------------------------------------- the door
def test_a_claim_is_proved_before_it_is_used():
    program = ATTENTION["lse"].program
    wrong = program.with_statements([s if s.name != "L" else type(s)(s.target, sp.log(T("l", i))) for s in program])
    for rule in (adjoint, tangent):
        assert rule(program).outputs
        with pytest.raises(ProofError, match="m is range_only"):
            rule(wrong)


def test_a_maximum_that_makes_no_claim_is_named():
    program = ATTENTION["plain"].program
    bare = program.with_statements([s if s.name != "m" else type(s)(s.target, s.expr, s.over, "max") for s in program])
    for rule in (adjoint, tangent):
        with pytest.raises(NotDifferentiableError, match="m: a maximum that is not range_only"):
            rule(bare)


def test_the_statements_of_plain_attention():
    program = ATTENTION["causal"].program
    got = [str(s) for s in adjoint(program, ["Q", "K", "V"]).statements[len(program) :]]
    assert got == [
        "dP[i, j] = sum over e of V[j, e]*dO[i, e]   where j <= i",
        "dl[i] = sum over j of -E[i, j]*dP[i, j]/l[i]**2   where j <= i",
        "dE[i, j] = dP[i, j]/l[i] + dl[i]   where j <= i",
        "dS[i, j] = exp(S[i, j] - m[i])*dE[i, j]   where j <= i",
        "dQ[i, c] = sum over j of scale*K[j, c]*dS[i, j]   where j <= i",
        "dK[j, c] = sum over i of scale*Q[i, c]*dS[i, j]   where j <= i",
        "dV[j, e] = sum over i of P[i, j]*dO[i, e]   where j <= i",
    ]
    assert adjoint(program).shapes["dS"] == (n, m) and adjoint(program).dims[j] == m


def test_the_tangent_of_plain_attention():
    program = ATTENTION["plain"].program
    got = [str(s) for s in tangent(program, ["V", "scale"]).statements[len(program) :]]
    assert got[0] == "S_t[i, j] = sum over c of scale_t*K[j, c]*Q[i, c]"
    assert got[-1] == "O_t[i, e] = sum over j of P[i, j]*V_t[j, e] + P_t[i, j]*V[j, e]"
    assert not any(s.startswith("m_t") for s in got)
