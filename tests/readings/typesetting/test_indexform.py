"""Statements in index form: the exact LaTeX that a reader expects."""

import pytest
import sympy as sp

from symattn.program import Program, Statement, indices, size, tensor
from symattn.readings.latex import condition_form, index_form, letter

i, j, c, e, a, f, h, k, g, w = indices("i j c e a f h k g w")
n, m, d, dv = size("n"), size("m"), size("d"), size("dv")
DIMS = {i: n, j: m, c: d, e: dv, a: size("dmodel"), f: size("dout"), h: size("H"), k: size("Hkv"), g: size("G"), w: size("vocab")}
KEEP = sp.Le(j, i + m - n)
T = tensor


def tex(s, *before, **options):
    program = Program((*before, s), DIMS, (s.name,), {"Emb": (size("vocab"), size("dmodel"))})
    return index_form(program, s, **options)


SCALE = Statement(T("scale"), 1 / sp.sqrt(d))
S, P, dP, dZ = T("S", i, j), T("P", i, j), T("dP", i, j), T("dZ", i, j)

FORWARD = [
    (Statement(T("X", i, a), T("Emb", T("tok", i), a)), r"X_{ia} = \mathcal{E}_{t_i,a}"),
    (Statement(T("Q", i, c), T("WQ", a, c) * T("X", i, a), (a,)), r"Q_{ic} = \sum_a X_{ia} (W_Q)_{ac}"),
    (Statement(T("R", i, j), T("K", j, c) * T("Q", i, c), (c,)), r"R_{ij} = \sum_c Q_{ic} K_{jc}"),
    (Statement(S, T("scale") * T("Q", i, c) * T("K", j, c), (c,)), r"S_{ij} = \frac{1}{\sqrt{d_k}} \sum_c Q_{ic} K_{jc}"),
    (Statement(T("A", i, j), 20 * sp.tanh(S / 20)), r"A_{ij} = 20 \tanh\left(\frac{S_{ij}}{20}\right)"),
    (Statement(T("Z", i, j), S - T("slope") * (i - j)), r"Z_{ij} = S_{ij} - \mu (i - j)"),
    (Statement(T("m", i), T("Z", i, j), (j,), "max", range_only=True), r"m_i = \max_j Z_{ij}"),
    (Statement(T("m", i), sp.Max(T("m0", i), T("sink"))), r"m_i = \max((m_0)_i, b)"),
    (Statement(T("E", i, j), sp.exp(T("Z", i, j) - T("m", i))), r"E_{ij} = \exp(Z_{ij} - m_i)"),
    (Statement(T("l", i), T("E", i, j), (j,)), r"\ell_i = \sum_j E_{ij}"),
    (Statement(P, T("E", i, j) / T("l", i)), r"P_{ij} = \frac{E_{ij}}{\ell_i}"),
    (Statement(T("O", i, e), P * T("V", j, e), (j,)), r"O_{ie} = \sum_j P_{ij} V_{je}"),
    (Statement(T("L", i), T("m", i) + sp.log(T("l", i))), r"L_i = m_i + \log(\ell_i)"),
    (Statement(P, 1 / (1 + sp.exp(-S - T("beta")))), r"P_{ij} = \frac{1}{1 + \exp(-S_{ij} - \beta)}"),
]
BACKWARD = [
    (Statement(dP, T("V", j, e) * T("dO", i, e), (e,)), r"dP_{ij} = \sum_e dO_{ie}\,V_{je}"),
    (Statement(T("D", i), dP * P, (j,)), r"D_i = \sum_j P_{ij}\,dP_{ij}"),
    (Statement(dZ, P * (dP - T("D", i))), r"dZ_{ij} = P_{ij} (dP_{ij} - D_i)"),
    (Statement(dZ, -P * (T("D", i) - dP)), r"dZ_{ij} = P_{ij} (dP_{ij} - D_i)"),
    (Statement(dZ, P * (1 - P) * dP), r"dZ_{ij} = P_{ij} (1 - P_{ij})\,dP_{ij}"),
    (
        Statement(T("dS", i, j), dZ * (1 - T("A", i, j) ** 2 / T("cap") ** 2)),
        r"dS_{ij} = dZ_{ij} \left(1 - \frac{A_{ij}^2}{\gamma^2}\right)",
    ),
    (
        Statement(T("dQ", i, c), T("dS", i, j) * T("K", j, c) * T("scale"), (j,)),
        r"dQ_{ic} = \frac{1}{\sqrt{d_k}} \sum_j dS_{ij}\,K_{jc}",
    ),
    (
        Statement(T("dK", j, c), T("dS", i, j) * T("Q", i, c) * T("scale"), (i,)),
        r"dK_{jc} = \frac{1}{\sqrt{d_k}} \sum_i dS_{ij}\,Q_{ic}",
    ),
    (Statement(T("dV", j, e), T("dO", i, e) * P, (i,)), r"dV_{je} = \sum_i P_{ij}\,dO_{ie}"),
    (Statement(T("dslope"), -dZ * (i - j), (i, j)), r"d\mu = \sum_{i,j} (j - i)\,dZ_{ij}"),
    (Statement(T("dsink"), -T("D", i) * T("P0", i), (i,)), r"db = -\sum_i D_i (P_0)_i"),
    (Statement(T("dWQ", a, c), T("dQ", i, c) * T("X", i, a), (i,)), r"(dW_Q)_{ac} = \sum_i X_{ia}\,dQ_{ic}"),
    (
        Statement(T("dEmb", w, a), T("dX", i, a), (i,), where=sp.Eq(T("tok", i), w)),
        r"d\mathcal{E}_{wa} = \sum_i dX_{ia} \quad\text{where } t_i = w",
    ),
    (Statement(T("S_t", i, j), T("Q_t", i, c) * T("K", j, c), (c,)), r"\dot{S}_{ij} = \sum_c \dot{Q}_{ic} K_{jc}"),
]


@pytest.mark.parametrize(("statement", "expected"), FORWARD + BACKWARD, ids=lambda x: str(x)[:40])
def test_statements_are_written_as_a_reader_would(statement, expected):
    before = (SCALE,) if "scale" in statement.needs else ()
    assert tex(statement, *before) == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (sp.Le(j, i), r"j \le i"),
        (KEEP, r"j \le i + m - n"),
        (sp.And(sp.Lt(i - j, 128), sp.Le(j, i)), r"j \le i \text{ and } i - j < 128"),
        (sp.Ne(T("M", i, j), 0), r"M_{ij} = 1"),
        (sp.Eq(T("M", i, j), 0), r"M_{ij} = 0"),
        (sp.Ne(T("B", i, j), -sp.oo), r"B_{ij} \ne -\infty"),
        (sp.Eq(T("doc", i), T("doc_k", j)), r"\mathrm{doc}_i = (\mathrm{doc}_k)_j"),
        (sp.Or(sp.Le(j, i), sp.Lt(j, 4)), r"j < 4 \text{ or } j \le i"),
        (sp.And(sp.Lt(i - j, 9), sp.Or(sp.Le(j, i), sp.Lt(j, 4))), r"i - j < 9 \text{ and } (j < 4 \text{ or } j \le i)"),
        (sp.Not(sp.And(sp.Le(j, i), sp.Lt(j, 4)), evaluate=False), r"\text{not } (j < 4 \text{ and } j \le i)"),
        (sp.true, ""),
    ],
    ids=str,
)
def test_conditions(where, expected):
    s = Statement(T("Z", i, j), S, where=where)
    program = Program((s,), DIMS, ("Z",))
    assert condition_form(program, s) == expected
    assert index_form(program, s) == r"Z_{ij} = S_{ij}" + (rf" \quad\text{{where }} {expected}" if expected else "")
    assert index_form(program, s, where=False) == r"Z_{ij} = S_{ij}"


def test_a_compared_number_is_no_boolean():
    """`rank < 2` and a token number keep their comparison; only an input that is compared with 0 and nothing else is a flag."""
    s = Statement(T("X", i, a), T("Emb", T("tok", i), a), where=sp.Ne(T("tok", i), 0))
    assert tex(s).endswith(r"\text{where } t_i \ne 0")
    two = sp.And(sp.Ne(T("r", i, j), 0), sp.Lt(T("r", i, j), 3))
    assert r"r_{ij} \ne 0" in tex(Statement(T("Z", i, j), S, where=two))


NUMBERS = [
    (10 / sp.sqrt(3), r"\frac{10}{\sqrt{3}}"),
    (5 * sp.sqrt(3) / 3, r"\frac{5}{\sqrt{3}}"),
    (1 / sp.sqrt(2), r"\frac{1}{\sqrt{2}}"),
    (sp.sqrt(3) / 2, r"\frac{\sqrt{3}}{2}"),
    (-7 / (2 * sp.sqrt(5)), r"-\frac{7}{2 \sqrt{5}}"),
    (2 * sp.sqrt(3), r"2 \sqrt{3}"),
    (sp.Rational(-3, 4), r"-\frac{3}{4}"),
    (sp.S(12), "12"),
    (1 / sp.sqrt(d), r"\frac{1}{\sqrt{d_k}}"),
    (1 / sp.sqrt(d) / 2, r"\frac{1}{2 \sqrt{d_k}}"),
    (sp.sqrt(2) / sp.sqrt(d), r"\frac{\sqrt{2}}{\sqrt{d_k}}"),
    (1 / sp.Integer(8), r"\frac{1}{8}"),
    (2 ** (-8 * (h + 1) / size("H")), r"2^{-8 (h + 1)/H}"),
    (sp.Integer(3) * 2**h, r"3 \cdot 2^h"),
    (1 / sp.log(2), r"\frac{1}{\log 2}"),
    (sp.Rational(1, 2) * sp.log(2) ** 2, r"\frac{(\log 2)^2}{2}"),
]


@pytest.mark.parametrize(("number", "expected"), NUMBERS, ids=str)
def test_numbers_stay_as_typed(number, expected):
    s = Statement(T("x", h), number)
    assert tex(s) == f"x_h = {expected}"


SCALARS = [
    (2 * (S + T("B", i, j)), r"2 (B_{ij} + S_{ij})"),
    (S / 2 + P / 3, r"\frac{P_{ij}}{3} + \frac{S_{ij}}{2}"),
    (P**2 - sp.tanh(S) ** 2, r"P_{ij}^2 - \tanh^2(S_{ij})"),
    (dP**2, r"(dP_{ij})^2"),
    (sp.sqrt(S + 1), r"\sqrt{1 + S_{ij}}"),
    (S / sp.sqrt(T("q", i) + T("eps")), r"\frac{S_{ij}}{\sqrt{q_i + \varepsilon}}"),
    (-(S + P), r"-P_{ij} - S_{ij}"),
    (P * (S - T("D", i)) / 2, r"\frac{1}{2} P_{ij} (S_{ij} - D_i)"),
    (sp.Abs(i - j) * T("slope"), r"\mu \left\lvert i - j \right\rvert"),
    (S * sp.Mod(h, size("Hkv")), r"(h \bmod H_{\mathrm{kv}}) S_{ij}"),
    (sp.Piecewise((S, sp.Le(j, i)), (0, True)), r"\begin{cases} S_{ij} & \text{if } i \ge j \\ 0 & \text{otherwise} \end{cases}"),
    (sp.erf(S) * sp.exp(-S), r"\operatorname{erf}(S_{ij}) \exp(-S_{ij})"),
    (S - 1, r"S_{ij} - 1"),
    (1 - P, r"1 - P_{ij}"),
    (S * (i - j + m - n), r"(i - j + m - n) S_{ij}"),
    (S / sp.sqrt(3), r"\frac{S_{ij}}{\sqrt{3}}"),
    (10 * S / sp.sqrt(3), r"\frac{10 S_{ij}}{\sqrt{3}}"),
    (-sp.sqrt(2) * (S + P) / 2, r"-\frac{1}{\sqrt{2}} (P_{ij} + S_{ij})"),
    (S / T("cap"), r"\frac{S_{ij}}{\gamma}"),
    (T("K", sp.floor(h / size("G")), j, c), r"K_{\left\lfloor h/G \right\rfloor,j,c}"),
    (T("x", i - 1) * T("x", 0), r"x_0 x_{i - 1}"),
]


@pytest.mark.parametrize(("expr", "expected"), SCALARS, ids=str)
def test_scalar_expressions(expr, expected):
    s = Statement(T("Y", h, i, j, c), expr)
    shapes = {"K": (size("Hkv"), m, d), "x": (n,)}
    assert index_form(Program((s,), DIMS, ("Y",), shapes), s).split(" = ", 1)[1] == expected


def test_a_sum_multiplied_into_a_number_is_not_a_sum_of_multiples():
    """SymPy has no 2*(a + b): it makes 2*a + 2*b of it; different multiples stay as they are."""
    assert tex(Statement(T("Y", i, j), 2 * S + 4 * P)) == r"Y_{ij} = 4 P_{ij} + 2 S_{ij}"


def test_batch_indices_go_above_and_hidden_ones_away():
    b = indices("b")[0]
    s = Statement(T("S", b, h, i, j), T("Q", b, h, i, c) * T("K", b, h, j, c) - T("slope", h), (c,))
    program = Program((s,), {**DIMS, b: size("B")}, ("S",))
    assert index_form(program, s, where=False) == r"S_{bhij} = \sum_c (Q_{bhic} K_{bhjc} - \mu_h)"
    assert index_form(program, s, batch="h", hidden="b") == r"S^{(h)}_{ij} = \sum_c (Q^{(h)}_{ic} K^{(h)}_{jc} - \mu_h)"


def test_letters_can_be_given():
    assert tex(Statement(T("Y", i, j), S), letters={"S": r"\mathcal{S}", "Y": "Y_1"}) == r"(Y_1)_{ij} = \mathcal{S}_{ij}"
    assert letter("dE0") == "dE_0"
    assert letter("dQ_t") == r"d\dot{Q}"
    assert letter("doc") == r"\mathrm{doc}"
    assert letter("dgain", known=("gain",)) == r"d\mathrm{gain}"
    assert letter("dgain") == r"\mathrm{dgain}"
    assert letter("W_out") == r"W_{\mathrm{out}}"
    assert letter("S'") == "S'"


def test_markdown_has_no_macro_that_github_rejects():
    s = Statement(T("Y", i, j), T("P", i, j) * sp.erf(T("dP", i, j)) * T("dP", i, j), where=sp.Lt(j, i))
    assert tex(s, style="markdown") == (
        r"Y_{ij} = P_{ij}\thinspace dP_{ij}\thinspace \mathrm{erf}(dP_{ij}) \quad\text{where } j \lt i"
    )


def test_two_tensors_never_look_alike():
    """`slope` is a mu by default, and so is a parameter called mu; the gradients follow."""
    terms = T("slope") + 2 * T("mu") + 3 * T("dslope") + 4 * T("dmu") + 5 * T("P0") + 6 * T("P_0") + T("sink") / 2 + T("b") / 3
    out = tex(Statement(T("Y", i), terms))
    for part in (
        r"\mathrm{slope}",
        r"2 \mu",
        r"3\,d\mathrm{slope}",
        r"4\,d\mu",
        "5 P_0",
        r"6 \mathrm{P,0}",
        r"\mathrm{sink}",
        "b",
    ):
        assert part in out
    assert tex(Statement(T("Y", i), T("mu") * T("slope")), letters={"mu": "s", "slope": "s"}) == "Y_i = s s"


@pytest.mark.parametrize("name", ["a_", "x_1_y", "A1B", "under_score_name", "x%y", "x\\input{y}", "x}{", "x$y", "ä"])
def test_no_name_breaks_the_formula(name):
    shown = letter(name)
    assert shown.count("{") == shown.count("}")
    assert not any(sign in shown for sign in ("%", "$", "input{", "\\_"))
