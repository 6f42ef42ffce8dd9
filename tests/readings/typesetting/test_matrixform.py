"""Statements in matrix form: the exact LaTeX, and the LaTeX read back into numbers against independent NumPy."""

import numpy as np
import pytest
import sympy as sp

from symattn.errors import ShapeError
from symattn.program import Program, Statement, indices, size, tensor
from symattn.readings.latex import Style, batch_indices, matrix_form
from tests.readings.typesetting.latexreader import Reader

i, j, c, e, a, h, k, g, b, w, x = indices("i j c e a h k g b w x")
n, m, d, dv = size("n"), size("m"), size("d"), size("dv")
DIMS = {
    i: n,
    j: m,
    c: d,
    e: dv,
    a: size("D"),
    h: size("H"),
    k: size("Hkv"),
    g: size("G"),
    b: size("B"),
    w: size("W"),
    x: size("X"),
}
LENGTHS = {"i": 3, "j": 5, "c": 2, "e": 4, "a": 6, "h": 2, "k": 3, "g": 2, "b": 2, "w": 7, "x": 4}
T = tensor
I3, J5 = np.arange(3)[:, None], np.arange(5)[None, :]
rng = np.random.default_rng(7)


def array(*axes):
    return rng.uniform(0.2, 1.5, [LENGTHS[str(q)] for q in axes])


A = {
    "Q": array(i, c),
    "K": array(j, c),
    "V": array(j, e),
    "R": array(i, j),
    "S": array(i, j),
    "Z": array(i, j),
    "E": array(i, j),
    "P": array(i, j),
    "dP": array(i, j),
    "dZ": array(i, j),
    "dS": array(i, j),
    "dO": array(i, e),
    "O": array(i, e),
    "X": array(i, a),
    "WQ": array(a, c),
    "dQ": array(i, c),
    "m": array(i),
    "m0": array(i),
    "l": array(i),
    "D": array(i),
    "dL": array(i),
    "E0": array(i),
    "P0": array(i),
    "u": array(i),
    "v": array(j),
    "q": array(j),
    "W3": array(i, j),
    "Qy": array(c, x),
    "F": array(x, j),
    "cap": np.float64(1.7),
    "slope": np.float64(0.3),
    "sink": np.float64(0.4),
    "tau": np.float64(0.9),
    "p": np.float64(0.1),
    "tok": np.array([2, 0, 2]),
}
SCALE = Statement(T("scale"), 1 / sp.sqrt(d))
S, P, dP, dZ, E = T("S", i, j), T("P", i, j), T("dP", i, j), T("dZ", i, j), T("E", i, j)
R2 = np.sqrt(2)
causal = np.tril(np.ones((3, 5)), 2)
KEEP = sp.Le(j, i + m - n)


def ein(spec, *names):
    return np.einsum(spec, *[A[q] if isinstance(q, str) else q for q in names])


# statement, LaTeX, the same by NumPy
CASES = [
    (Statement(T("Y", i, c), T("WQ", a, c) * T("X", i, a), (a,)), r"X W_Q", lambda: ein("ia,ac->ic", "X", "WQ")),
    (Statement(T("Y", i, j), T("K", j, c) * T("Q", i, c), (c,)), r"Q K^{\top}", lambda: ein("ic,jc->ij", "Q", "K")),
    (
        Statement(T("Y", i, j), T("K", j, c) * T("Q", i, c) * T("scale"), (c,)),
        r"\frac{Q K^{\top}}{\sqrt{d_k}}",
        lambda: ein("ic,jc->ij", "Q", "K") / R2,
    ),
    (Statement(T("Y", i, j), T("R", i, j) * T("scale")), r"\frac{R}{\sqrt{d_k}}", lambda: A["R"] / R2),
    (Statement(T("Y", i, j), T("R", i, j) * T("tau")), r"\tau R", lambda: A["R"] * 0.9),
    (
        Statement(T("Y", i, j), T("cap") * sp.tanh(S / T("cap"))),
        r"\gamma \tanh\left(\frac{S}{\gamma}\right)",
        lambda: 1.7 * np.tanh(A["S"] / 1.7),
    ),
    (
        Statement(T("Y", i, j), S - T("slope") * (i - j)),
        r"S - \mu [i - j]_{ij}",
        lambda: A["S"] - 0.3 * (I3 - J5),
    ),
    (Statement(T("Y", i, j), S - i + j), r"S + [j - i]_{ij}", lambda: A["S"] - (I3 - J5)),
    (Statement(T("y", i), T("Z", i, j), (j,), "max"), r"\operatorname{rowmax}(Z)", lambda: A["Z"].max(1)),
    (
        Statement(T("y", i), sp.Max(T("m0", i), T("sink"), evaluate=False)),
        r"\max(m_0, b\mathbf{1})",
        lambda: np.maximum(A["m0"], 0.4),
    ),
    (
        Statement(T("Y", i, j), sp.exp(T("Z", i, j) - T("m", i))),
        r"\exp(Z - m\mathbf{1}^{\top})",
        lambda: np.exp(A["Z"] - A["m"][:, None]),
    ),
    (Statement(T("y", i), E, (j,)), r"E\mathbf{1}", lambda: A["E"].sum(1)),
    (Statement(T("y", j), E, (i,)), r"E^{\top}\mathbf{1}", lambda: A["E"].sum(0)),
    (
        Statement(T("y", i), T("E0", i) + sp.exp(T("sink") - T("m", i))),
        r"E_0 + \exp(b\mathbf{1} - m)",
        lambda: A["E0"] + np.exp(0.4 - A["m"]),
    ),
    (Statement(T("Y", i, j), E / T("l", i)), r"\operatorname{diag}(\ell)^{-1} E", lambda: A["E"] / A["l"][:, None]),
    (Statement(T("y", i), T("E0", i) / T("l", i)), r"\operatorname{diag}(\ell)^{-1} E_0", lambda: A["E0"] / A["l"]),
    (Statement(T("y", i), 1 / T("l", i)), r"\ell^{\circ -1}", lambda: 1 / A["l"]),
    (
        Statement(T("Y", i, c), T("Q", i, c) / sp.sqrt(T("u", i) + T("tau"))),
        r"\operatorname{diag}(u + \tau\mathbf{1})^{-1/2} Q",
        lambda: A["Q"] / np.sqrt(A["u"] + 0.9)[:, None],
    ),
    (Statement(T("Y", i, e), P * T("V", j, e), (j,)), r"P V", lambda: A["P"] @ A["V"]),
    (Statement(T("y", i), T("m", i) + sp.log(T("l", i))), r"m + \log(\ell)", lambda: A["m"] + np.log(A["l"])),
    (Statement(T("Y", i, j), T("V", j, e) * T("dO", i, e), (e,)), r"dO\,V^{\top}", lambda: A["dO"] @ A["V"].T),
    (Statement(T("y", i), P * dP, (j,)), r"(P \circ dP)\mathbf{1}", lambda: ein("ij,ij->i", "P", "dP")),
    (Statement(T("y", i), T("dO", i, e) * T("O", i, e), (e,)), r"(O \circ dO)\mathbf{1}", lambda: ein("ie,ie->i", "O", "dO")),
    (
        Statement(T("Y", i, j), P * (dP - T("D", i))),
        r"P \circ (dP - D\mathbf{1}^{\top})",
        lambda: A["P"] * (A["dP"] - A["D"][:, None]),
    ),
    (
        Statement(T("Y", i, j), P * (dP + T("dL", i) - T("D", i))),
        r"P \circ (dP + dL\mathbf{1}^{\top} - D\mathbf{1}^{\top})",
        lambda: A["P"] * (A["dP"] + A["dL"][:, None] - A["D"][:, None]),
    ),
    (
        Statement(T("Y", i, j), dZ * (1 - T("Z", i, j) ** 2 / T("cap") ** 2)),
        r"dZ \circ \left(\mathbf{1}\mathbf{1}^{\top} - \frac{Z^{\circ 2}}{\gamma^2}\right)",
        lambda: A["dZ"] * (1 - A["Z"] ** 2 / 1.7**2),
    ),
    (
        Statement(T("Y", i, j), P * (1 - P) * dP),
        r"P \circ (\mathbf{1}\mathbf{1}^{\top} - P) \circ dP",
        lambda: A["P"] * (1 - A["P"]) * A["dP"],
    ),
    (
        Statement(T("Y", i, c), T("dS", i, j) * T("K", j, c) * T("scale"), (j,)),
        r"\frac{dS\,K}{\sqrt{d_k}}",
        lambda: A["dS"] @ A["K"] / R2,
    ),
    (
        Statement(T("Y", j, c), T("dS", i, j) * T("Q", i, c) * T("scale"), (i,)),
        r"\frac{dS^{\top} Q}{\sqrt{d_k}}",
        lambda: A["dS"].T @ A["Q"] / R2,
    ),
    (Statement(T("Y", j, e), P * T("dO", i, e), (i,)), r"P^{\top}\,dO", lambda: A["P"].T @ A["dO"]),
    (Statement(T("Y", a, c), T("X", i, a) * T("dQ", i, c), (i,)), r"X^{\top}\,dQ", lambda: A["X"].T @ A["dQ"]),
    (
        Statement(T("y"), -dZ * (i - j), (i, j)),
        r"\mathbf{1}^{\top} ([j - i]_{ij} \circ dZ)\mathbf{1}",
        lambda: (A["dZ"] * (J5 - I3)).sum(),
    ),
    (Statement(T("y"), -T("D", i) * T("P0", i), (i,)), r"-D^{\top} P_0", lambda: -(A["D"] @ A["P0"])),
    (
        Statement(T("Y", i, j), 1 / (1 + sp.exp(-S))),
        r"(\mathbf{1}\mathbf{1}^{\top} + \exp(-S))^{\circ -1}",
        lambda: 1 / (1 + np.exp(-A["S"])),
    ),
    (Statement(T("Y", i, j), T("u", i) * T("v", j)), r"u v^{\top}", lambda: np.outer(A["u"], A["v"])),
    (
        Statement(T("Y", i, j), T("u", i) + T("v", j)),
        r"u\mathbf{1}^{\top} + \mathbf{1}v^{\top}",
        lambda: A["u"][:, None] + A["v"],
    ),
    (
        Statement(T("Y", i, j), T("u", i) * S * T("v", j)),
        r"\operatorname{diag}(u) S \operatorname{diag}(v)",
        lambda: ein("i,ij,j->ij", "u", "S", "v"),
    ),
    (Statement(T("Y", i, j), T("u", i)), r"u\mathbf{1}^{\top}", lambda: np.repeat(A["u"][:, None], 5, 1)),
    (
        Statement(T("Y", i, e), P * T("v", j) * T("V", j, e), (j,)),
        r"P \operatorname{diag}(v) V",
        lambda: ein("ij,j,je->ie", "P", "v", "V"),
    ),
    (Statement(T("y", i), P * T("v", j), (j,)), r"P v", lambda: A["P"] @ A["v"]),
    (Statement(T("y"), T("v", j) * T("q", j), (j,)), r"q^{\top} v", lambda: A["v"] @ A["q"]),
    (Statement(T("y"), T("u", i) * P * T("v", j), (i, j)), r"u^{\top} P v", lambda: ein("i,ij,j->", "u", "P", "v")),
    (Statement(T("y"), P * dP, (i, j)), r"\mathbf{1}^{\top} (P \circ dP)\mathbf{1}", lambda: (A["P"] * A["dP"]).sum()),
    (Statement(T("Y", j, i), T("Q", i, c) * T("K", j, c), (c,)), r"K Q^{\top}", lambda: A["K"] @ A["Q"].T),
    (Statement(T("Y", j, i), S), r"S^{\top}", lambda: A["S"].T),
    (
        Statement(T("Y", j, i), P * (dP - T("D", i))),
        r"P^{\top} \circ (dP^{\top} - \mathbf{1}D^{\top})",
        lambda: (A["P"] * (A["dP"] - A["D"][:, None])).T,
    ),
    (
        Statement(T("Y", i, j), T("Q", i, c) * T("Qy", c, x) * T("F", x, j), (c, x)),
        r"Q Q_y F",
        lambda: A["Q"] @ A["Qy"] @ A["F"],
    ),
    (
        Statement(T("Y", i, j), T("Q", i, c) * T("K", j, c) * S, (c,)),
        r"S \circ (Q K^{\top})",
        lambda: A["S"] * (A["Q"] @ A["K"].T),
    ),
    (
        Statement(T("Y", i, j), (T("Q", i, c) + T("dQ", i, c)) * T("K", j, c), (c,)),
        r"(Q + dQ) K^{\top}",
        lambda: (A["Q"] + A["dQ"]) @ A["K"].T,
    ),
    (
        Statement(T("Y", i, j), (T("Q", i, c) * T("K", j, c) + T("dQ", i, c) * T("K", j, c) ** 2) * T("scale"), (c,)),
        r"\frac{Q K^{\top} + dQ\,(K^{\circ 2})^{\top}}{\sqrt{d_k}}",
        lambda: (A["Q"] @ A["K"].T + A["dQ"] @ (A["K"] ** 2).T) / R2,
    ),
    (Statement(T("Y", i, j), S / (1 - T("p"))), r"\frac{S}{1 - p}", lambda: A["S"] / 0.9),
    (
        Statement(T("Y", i, e), T("V", j, e) / m, (j,)),
        r"\frac{\mathbf{1}\mathbf{1}^{\top} V}{m}",
        lambda: np.repeat(A["V"].mean(0)[None], 3, 0),
    ),
    (Statement(T("Y", i, j), 2 * S - P / 3), r"2 S - \frac{P}{3}", lambda: 2 * A["S"] - A["P"] / 3),
    (Statement(T("Y", i, j), 10 * S / sp.sqrt(3)), r"\frac{10}{\sqrt{3}} S", lambda: 10 * A["S"] / np.sqrt(3)),
    (Statement(T("y", i), T("u", i) ** 2 * T("D", i)), r"\operatorname{diag}(u)^2 D", lambda: A["u"] ** 2 * A["D"]),
    (Statement(T("y", i), sp.Integer(1)), r"\mathbf{1}", lambda: np.ones(3)),
    # conditions: left out where the summand is 0 anyway, written where it is not
    (Statement(T("y", i), sp.Integer(1), (j,), where=KEEP), r"[j \le i + m - n]_{ij}\mathbf{1}", lambda: causal.sum(1)),
    (
        Statement(T("y", i), S, (j,), where=KEEP),
        r"([j \le i + m - n]_{ij} \circ S)\mathbf{1}",
        lambda: (causal * A["S"]).sum(1),
    ),
    (
        Statement(T("Y", w, c), T("dQ", i, c), (i,), where=sp.Eq(T("tok", i), w)),
        r"[t_i = w]_{wi}\,dQ",
        lambda: np.stack([A["dQ"][A["tok"] == t].sum(0) for t in range(7)]),
    ),
]  # fmt: skip
SIZES = {"n": 3, "m": 5, "d": 2, "dv": 4, "D": 6, "W": 7, "X": 4}
BRACKETS = {
    r"[i - j]_{ij}": I3 - J5,
    r"[j - i]_{ij}": J5 - I3,
    r"[j \le i + m - n]_{ij}": causal,
    r"[t_i = w]_{wi}": (np.arange(7)[:, None] == A["tok"]).astype(float),
}
LETTERS = {
    **A,
    "W_Q": A["WQ"],
    "m_0": A["m0"],
    "E_0": A["E0"],
    "P_0": A["P0"],
    "Q_y": A["Qy"],
    r"\ell": A["l"],
    r"\gamma": A["cap"],
    r"\mu": A["slope"],
    r"\tau": A["tau"],
    "b": A["sink"],
    "d_k": 2.0,
    "mm": 5.0,
}
FUNCTIONS = {
    r"\exp": np.exp,
    r"\log": np.log,
    r"\tanh": np.tanh,
    r"\max": np.maximum,
    r"\operatorname{rowmax}": lambda z: z.max(1, keepdims=True),
}


def program_of(s):
    return Program((*((SCALE,) if "scale" in s.needs else ()), s), DIMS, (s.name,))


def reader(tex):
    letters = {**LETTERS, "m": 5.0} if tex.endswith("{m}") else LETTERS
    return Reader(letters, BRACKETS, FUNCTIONS)


def same(value, expected):
    """Equal as arrays, a free axis and a column taken for what they stand for."""
    x = np.asarray(expected, float)
    x = x.reshape(1, 1) if x.ndim == 0 else x[:, None] if x.ndim == 1 else x
    lengths = all(have in (0, want) for have, want in zip((value.rows, value.columns), x.shape, strict=True))
    return lengths and np.allclose(
        np.broadcast_to(value.x, x.shape) if 0 in (value.rows, value.columns) else value.x, x, rtol=1e-12
    )


@pytest.mark.parametrize(("statement", "expected", "numbers"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_matrix_form_says_what_the_statement_says(statement, expected, numbers):
    form = matrix_form(program_of(statement), statement, batch=())
    assert form.rhs == expected
    assert same(reader(expected).read(expected), numbers()), "the LaTeX, read back"
    np.testing.assert_allclose(form.value(A, SIZES), numbers(), rtol=1e-12)


FAULTS = [
    (r"Q K^{\top}", r"Q K"),
    (r"Q K^{\top}", r"K Q^{\top}"),
    (r"\frac{dS^{\top} Q}{\sqrt{d_k}}", r"\frac{dS\,Q}{\sqrt{d_k}}"),
    (r"\frac{dS^{\top} Q}{\sqrt{d_k}}", r"\sqrt{d_k} dS^{\top} Q"),
    (r"P^{\top}\,dO", r"dP^{\top}\,dO"),
    (r"P \circ (dP - D\mathbf{1}^{\top})", r"P \circ (dP - D)"),
    (r"P \circ (dP - D\mathbf{1}^{\top})", r"P \circ dP - D\mathbf{1}^{\top}"),
    (r"P \circ (dP - D\mathbf{1}^{\top})", r"P \circ (dP + D\mathbf{1}^{\top})"),
    (r"\operatorname{diag}(\ell)^{-1} E", r"\operatorname{diag}(\ell) E"),
    (r"\operatorname{diag}(\ell)^{-1} E", r"E \operatorname{diag}(\ell)^{-1}"),
    (r"(P \circ dP)\mathbf{1}", r"P \circ dP\mathbf{1}"),
    (r"S \circ (Q K^{\top})", r"(S \circ Q) K^{\top}"),
    (r"-D^{\top} P_0", r"D^{\top} P_0"),
    (r"E^{\top}\mathbf{1}", r"E\mathbf{1}"),
    (r"[t_i = w]_{wi}\,dQ", r"[t_i = w]_{wi}^{\top}\,dQ"),
]


@pytest.mark.parametrize(("right", "wrong"), FAULTS)
def test_the_witness_catches_wrong_forms(right, wrong):
    numbers = next(f for _, tex, f in CASES if tex == right)()
    try:
        caught = not same(reader(wrong).read(wrong), numbers)
    except ValueError:
        caught = True
    assert caught


@pytest.mark.parametrize(
    "statement",
    [
        Statement(T("Y", i, j), T("Q3", i, j, c), (c,)),
        Statement(T("Y", i, j, c), T("Q", i, c) * T("K", j, c)),
        Statement(T("Y", i, a), T("Emb", T("tok", i), a)),
        Statement(T("y", i), T("A", i, i)),
        Statement(T("y", i), T("Q", i, 0)),
        Statement(T("y", i), P, (j,), "prod"),
        Statement(T("y"), P * T("F", j, x) * T("X", i, x), (i, j, x), "max"),
        Statement(T("y"), T("Q3", i, j, c) * P, (i, j, c)),
        Statement(T("Y", i, c), T("Q", i + 1, c)),
        Statement(T("y"), sp.Integer(1), (i,)),
    ],
    ids=str,
)
def test_what_does_not_reduce_has_no_matrix_form(statement):
    shapes = {"Emb": (size("W"), size("D")), "Q": (n, d)}
    assert matrix_form(Program((statement,), DIMS, (statement.name,), shapes), statement, batch=()) is None


def test_three_matrices_meeting_in_one_index_do_reduce_where_two_are_summed_first():
    s = Statement(T("y", i), P * T("K", j, c) * T("V", j, e), (j, c, e))
    form = matrix_form(program_of(s), s, batch=())
    np.testing.assert_allclose(form.value(A), ein("ij,jc,je->i", "P", "K", "V"))
    assert form.rhs == r"P (K\mathbf{1} \circ V\mathbf{1})" or same(
        reader(form.rhs).read(form.rhs), ein("ij,jc,je->i", "P", "K", "V")
    )


def test_a_masked_statement_is_zero_outside_and_a_masked_maximum_passes_over():
    s = Statement(T("Y", i, j), sp.exp(S), where=KEEP)
    np.testing.assert_allclose(matrix_form(program_of(s), s).value(A), causal * np.exp(A["S"]))
    masked = Statement(T("F", i, j), S, where=KEEP)
    s = Statement(T("y", i), T("F", i, j), (j,), "max", where=KEEP)
    form = matrix_form(Program((masked, s), DIMS, ("y",)), s)
    np.testing.assert_allclose(form.value({**A, "F": A["S"]}), np.where(causal > 0, A["S"], -9).max(1))
    # a maximum that leaves out entries that its matrix has must say so
    assert matrix_form(program_of(s), Statement(T("y", i), S, (j,), "max", where=KEEP)) is None


def test_a_sum_over_what_is_zero_outside_needs_no_condition():
    """P is 0 outside its condition; a sum that claims less than P's condition, or another one, must say so."""
    weights = Statement(P, sp.exp(S), where=KEEP)
    lhs = T("O", i, e)
    for where, expected in [
        (KEEP, r"P V"),
        (sp.And(KEEP, sp.Lt(i - j, 2)), r"([i - j < 2]_{ij} \circ P) V"),
        (sp.Le(j, i), r"([j \le i]_{ij} \circ P) V"),
        (sp.true, r"P V"),
    ]:
        s = Statement(lhs, P * T("V", j, e), (j,), where=where)
        program = Program((weights, s), DIMS, ("O",))
        assert matrix_form(program, s).rhs == expected


def test_grouped_heads_are_summed_with_superscripts():
    dS, Q, K = array(k, g, i, j), array(k, g, i, c), array(k, j, c)
    scale = 1 / sp.sqrt(d)
    fwd = Statement(T("S", k, g, i, j), T("Q", k, g, i, c) * T("K", k, j, c) * scale, (c,))
    bwd = Statement(T("dK", k, j, c), T("dS", k, g, i, j) * T("Q", k, g, i, c) * scale, (g, i))
    program = Program((fwd, bwd), DIMS, ("S", "dK"))
    assert batch_indices(program) == {k, g}
    first, second = matrix_form(program, fwd), matrix_form(program, "dK")
    assert first.latex == r"S^{(k,g)} = \frac{Q^{(k,g)} K^{(k)\top}}{\sqrt{d_k}}"
    assert second.latex == r"dK^{(k)} = \frac{1}{\sqrt{d_k}} \sum_g dS^{(k,g)\top} Q^{(k,g)}"
    np.testing.assert_allclose(first.value({"Q": Q, "K": K}), np.einsum("kgic,kjc->kgij", Q, K) / R2)
    np.testing.assert_allclose(second.value({"dS": dS, "Q": Q}), np.einsum("kgij,kgic->kjc", dS, Q) / R2)


def test_hidden_indices_are_not_written_unless_they_are_summed():
    s = Statement(T("Y", b, h, i, j), T("Q", b, h, i, c) * T("K", b, h, j, c), (c,))
    t = Statement(T("z", h), T("Y", b, h, i, j) * T("slope", h), (b, i, j))
    program = Program((s, t), DIMS, ("z",))
    assert matrix_form(program, s, hidden="b").latex == r"Y^{(h)} = Q^{(h)} K^{(h)\top}"
    form = matrix_form(program, t, hidden="b")
    assert form.latex == r"z_h = \mu_h \sum_b \mathbf{1}^{\top} Y^{(b,h)}\mathbf{1}"
    Y, slope = array(b, h, i, j), array(h)
    np.testing.assert_allclose(form.value({"Y": Y, "slope": slope}), np.einsum("bhij,h->h", Y, slope))


def test_heads_reached_through_an_expression():
    s = Statement(T("S", h, i, j), T("Q", h, i, c) * T("K", sp.floor(h / 2), j, c), (c,))
    program = Program((s,), {**DIMS, h: sp.Integer(4)}, ("S",), {"K": (sp.Integer(2), m, d)})
    form = matrix_form(program, s)
    assert form.rhs == r"Q^{(h)} K^{(\left\lfloor h/2 \right\rfloor)\top}"
    Q, K = rng.normal(size=(4, 3, 2)), rng.normal(size=(2, 5, 2))
    np.testing.assert_allclose(form.value({"Q": Q, "K": K}), np.einsum("hic,hjc->hij", Q, K[[0, 0, 1, 1]]))


def test_the_style_sets_the_signs():
    s = Statement(T("Y", i, j), P * (dP - T("D", i)) / T("l", i))
    own = Style(transpose="T", hadamard=r"\odot", named=r"\mathrm")
    assert matrix_form(program_of(s), s, style=own).rhs == r"\mathrm{diag}(\ell)^{-1} (P \odot (dP - D\mathbf{1}^T))".replace(
        "{T}", "T"
    )


def test_a_size_that_no_array_shows_is_asked_for():
    s = Statement(T("Y", i, j), T("u", i))
    with pytest.raises(ShapeError, match="size m of the index j"):
        matrix_form(program_of(s), s).value({"u": A["u"]})


def test_arrays_that_disagree_are_refused():
    s = Statement(T("Y", i, j), T("Q", i, c) * T("K", j, c), (c,))
    form = matrix_form(program_of(s), s)
    with pytest.raises(ShapeError, match="length 3 along d"):
        form.value({"Q": np.ones((2, 2)), "K": np.ones((4, 3))})
    with pytest.raises(ShapeError, match="K has 2 axes"):
        form.value({"Q": np.ones((2, 2)), "K": np.ones(4)})


def test_random_products_are_read_back_as_what_they_are():
    """Products of random matrices and vectors over random index sets: where a matrix form exists, its LaTeX gives the einsum."""
    draw = np.random.default_rng(11)
    axes = (i, j, c, e)
    reduced = 0
    for _ in range(400):
        names, factors, spec = {}, [], []
        for k in range(draw.integers(1, 5)):
            own = [axes[q] for q in sorted(draw.choice(4, draw.integers(1, 3), replace=False))]
            own = own[::-1] if draw.random() < 0.4 else own
            name = "ABFGHNRU"[k]
            names[name] = draw.uniform(0.3, 1.4, [LENGTHS[str(q)] for q in own])
            power = int(draw.choice([1, 1, 1, 2, -1]))
            factors.append(T(name, *own) ** power)
            spec.append(("".join(map(str, own)), names[name] ** float(power)))
        used = [q for q in axes if any(q in f.free_symbols for f in factors)]
        keep = [used[q] for q in draw.permutation(len(used))[: draw.integers(0, 3)]]
        over = tuple(q for q in used if q not in keep)
        s = Statement(T("Y", *keep) if keep else T("Y"), sp.Mul(*factors) * draw.choice([1, -1, 2]), over)
        form = matrix_form(program_of(s), s, batch=())
        if form is None:
            continue
        reduced += 1
        sign = s.expr.as_coeff_Mul()[0]
        expected = float(sign) * np.einsum(",".join(q for q, _ in spec) + "->" + "".join(map(str, keep)), *[x for _, x in spec])
        np.testing.assert_allclose(form.value(names), expected, rtol=1e-10, err_msg=form.latex)
        assert same(Reader(names, {}, {}).read(form.rhs), expected), f"{s}: {form.latex}"
    assert reduced > 250
