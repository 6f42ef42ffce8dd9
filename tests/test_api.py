"""The class Attention: its methods hand over to the modules that do the work, and agree with each other."""

from __future__ import annotations

import re
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import symattn
from symattn import Attention, i, j, s, variants
from symattn.errors import DefinitionError, GrammarError, InputValueError, ShapeError, UnknownNameError
from symattn.fields import field_of, public_fields
from symattn.numbers import exact_number
from symattn.truth.fields import check_outputs, with_gradient
from tests.support import rows

RNG = np.random.default_rng(5)
Q, K, V, G = (RNG.normal(size=(2, h, n, d)) for h, n, d in ((4, 3, 5), (2, 6, 5), (2, 6, 4), (4, 3, 4)))


def by_hand(q, k, v, keep):
    """Softmax attention in float64 with plain loops; shares no code with the package."""
    out = np.zeros((*q.shape[:3], v.shape[3]))
    lse = np.full(q.shape[:3], -np.inf)
    for b, h, r in np.ndindex(*q.shape[:3]):
        g = h // (q.shape[1] // k.shape[1])
        kept = [c for c in range(k.shape[2]) if keep(r, c)]
        if kept:
            scores = np.array([q[b, h, r] @ k[b, g, c] / np.sqrt(q.shape[3]) for c in kept])
            w = np.exp(scores - scores.max())
            out[b, h, r] = (w / w.sum()) @ np.array([v[b, g, c] for c in kept])
            lse[b, h, r] = scores.max() + np.log(w.sum())
    return out, lse


@pytest.mark.parametrize("reading", ["numpy", "mpmath", "balls"])
def test_lambdify_computes_the_definition(reading):
    att = Attention(causal="bottom-right")
    out, lse = att.lambdify(reading, ("out", "lse"))(Q, K, V)
    want, want_lse = by_hand(Q, K, V, lambda r, c: c <= r + 3)
    assert np.allclose(np.array([float(x) for x in out.ravel()]).reshape(out.shape), want, atol=1e-13)
    assert np.allclose(np.array([float(x) for x in lse.ravel()]).reshape(lse.shape), want_lse, atol=1e-13)


def test_truth_and_lambdify_agree_to_many_digits():
    att = Attention(heads=4, kv_heads=2, softcap=2)
    truth = att.truth(Q, K, V, grad_out=G, digits=45)
    f = att.lambdify("mpmath", ("out", "grad_query"), digits=60)
    out, grad_query = f(Q, K, V, grad_out=G)
    for name, witness in (("out", out), ("grad_query", grad_query)):
        for mid, rad, w in zip(truth[name].mid.ravel(), truth[name].rad.ravel(), witness.ravel(), strict=True):
            context = w.context
            far = abs(context.mpf(mid.numerator) / mid.denominator - w)
            assert far <= context.mpf(rad.numerator) / rad.denominator + abs(w) * context.mpf(10) ** -58


def test_gradients_are_those_of_central_differences():
    att = Attention(causal="top-left")
    grad = att.lambdify("numpy", "grad_key")(Q, K, V, grad_out=G)
    step = 1e-6
    at = (1, 1, 2, 3)
    up, down = K.copy(), K.copy()
    up[at] += step
    down[at] -= step
    f = att.lambdify("numpy")
    assert grad[at] == pytest.approx(float(((f(Q, up, V) - f(Q, down, V)) * G).sum() / (2 * step)), abs=1e-8)


def test_float32_stays_float32_and_precision_is_nobodys_global():
    before = (mpmath.mp.prec, mpmath.mp.dps)
    assert Attention().lambdify("numpy")(*(x.astype(np.float32) for x in (Q, K, V))).dtype == np.float32
    Attention().lambdify("mpmath", digits=80)(Q, K, V)
    assert (mpmath.mp.prec, mpmath.mp.dps) == before


def test_a_score_may_be_sympy_or_text():
    text = Attention(score="20*tanh(s/20) - slope*(i - j)", mask="j <= i and i - j < 128", params={"slope": "2^-3"})
    import sympy as sp

    same = Attention(
        score=20 * sp.tanh(s / 20) - sp.Symbol("slope", real=True) * (i - j),
        mask=sp.And(sp.Le(j, i), i - j < 128),
        params={"slope": Fraction(1, 8)},
    )
    assert text == same
    assert np.array_equal(text.lambdify()(Q, K, V), same.lambdify()(Q, K, V))


def test_the_layout_is_only_a_layout():
    att = Attention()
    turned = att.lambdify(layout="bshd")(*(np.swapaxes(x, 1, 2) for x in (Q, K, V)))
    assert np.array_equal(np.swapaxes(turned, 1, 2), att.lambdify()(Q, K, V))


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: Attention(casual="top-left"), TypeError, "casual"),
        (lambda: Attention(causal="top-lft"), DefinitionError, "top-left"),
        (lambda: Attention(score="__import__('os')"), GrammarError, "__import__"),
        (lambda: Attention().lambdify("nump"), UnknownNameError, "numpy"),
        (lambda: Attention().lambdify("numpy", digits=3), UnknownNameError, "dtype"),
        (lambda: Attention().lambdify("numpy", "outt"), UnknownNameError, "out"),
        (lambda: Attention().lambdify("numpy", ("out", "grad_foo")), UnknownNameError, "'grad_foo'. (Did|Known)"),
        (lambda: Attention().lambdify("numpy", "grad_sinks"), UnknownNameError, "'grad_sinks'"),
        (lambda: Attention(lse=False).lambdify("numpy", "lse"), UnknownNameError, "'lse'"),
        (lambda: Attention(attn_mask="boolean").lambdify("numpy", "grad_attn_mask"), UnknownNameError, "'grad_attn_mask'"),
        (lambda: Attention().lambdify("numpy", "grad_out"), UnknownNameError, "'grad_out'"),
        (lambda: Attention().lambdify("mpmath", "grad_query")(Q, K, V), InputValueError, "missing: grad_out or grad_lse;"),
        (lambda: Attention(lse=False).lambdify("exact", "grad_key")(Q, K, V), InputValueError, "missing: grad_out;"),
        (lambda: Attention().lambdify()(Q, K, V, V), DefinitionError, "by position"),
        (lambda: Attention().lambdify()(Q, K, V, key=K), DefinitionError, "key is given by position and by name"),
        (lambda: Attention(heads=3).truth(Q, K, V), ShapeError, "head"),
        (lambda: Attention().truth(Q, K[..., :3], V), ShapeError, "key"),
    ],
)
def test_mistakes_are_named(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_the_public_names_exist():
    for name in symattn.__all__:
        assert getattr(symattn, name) is not None
    assert set(symattn.__all__) <= set(dir(symattn))
    with pytest.raises(AttributeError, match="no attribute 'attention'"):
        symattn.attention  # the value is not needed


EXACT_Q = np.array([[Fraction(1, 3), 1], [0, Fraction(-2, 7)]], dtype=object)
PLAIN = np.array([[0.5, -0.25], [1.5, 0.1]])


@pytest.mark.parametrize("reading", ["numpy", "mpmath", "balls", "exact"])
@pytest.mark.parametrize(
    "query", [EXACT_Q, [["1/3", 1], [0, "-2/7"]], np.array([[2, 1], [0, -3]])], ids=["object", "text", "int"]
)
def test_exact_numbers_and_integers_go_with_any_float_dtype(reading, query):
    f = Attention().lambdify(reading)
    key = PLAIN.astype(np.float32)
    given = np.array([[float(Fraction(x)) for x in row] for row in np.asarray(query).tolist()])
    want = by_hand(*(x[None, None] for x in (given, key.astype(float), PLAIN.astype(np.float32))), lambda r, c: True)[0][0, 0]
    out = f(query, key, PLAIN.astype(np.float32))
    assert np.allclose([[float(x.n() if hasattr(x, "n") else x) for x in row] for row in out.tolist()], want, atol=1e-6)
    if reading == "numpy":
        assert out.dtype == np.float32
        assert f(query, key.astype("float16"), PLAIN.astype("float16")).dtype == np.float16


def test_truth_takes_a_mixture_and_two_float_dtypes_are_refused():
    found = Attention().truth(EXACT_Q, PLAIN, PLAIN.astype(int), grad_out=EXACT_Q, digits=20)
    assert found["grad_query"].decided
    with pytest.raises(InputValueError, match="the float dtypes differ: key float32, value float64"):
        Attention().truth(EXACT_Q, PLAIN.astype(np.float32), PLAIN)


def test_results_of_mpmath_are_inputs_again_without_loss():
    f = Attention().lambdify("mpmath", digits=60)
    once = f(EXACT_Q, PLAIN, PLAIN)
    twice = f(once, PLAIN, PLAIN)
    found = Attention().truth(once, PLAIN, PLAIN, digits=55)["out"]
    for w, mid in zip(twice.ravel(), found.mid.ravel(), strict=True):
        assert abs(exact_number(w) - mid) <= abs(mid) / 10**54


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_an_incoming_gradient_that_is_left_out_does_not_widen_the_dtype(dtype):
    q, k, v, g = (x.astype(dtype) for x in (Q, K, V, G))
    assert Attention().lambdify("numpy", "grad_query")(q, k, v, grad_out=g).dtype == dtype


def test_a_wrong_output_is_answered_with_field_names_only():
    att = Attention(sink=True, score="s - t*(i - j)")
    with pytest.raises(UnknownNameError) as caught:
        att.lambdify("numpy", "zzzzzz")
    known = set(re.findall("'(.*?)'", str(caught.value))) - {"zzzzzz"}
    fields = {kind + "_" + x for kind in ("grad", "hvp") for x in ("query", "key", "value", "sinks", "t")}
    fields |= {"tangent_out", "tangent_lse"}
    assert known == fields | {"out", "lse", "raw_scores", "scaled_scores", "scores", "weights"}
    with pytest.raises(UnknownNameError) as caught:
        att.lambdify("numpy", "grad_foo")
    assert not {"grad_l", "grad_E"} & set(re.findall("'(.*?)'", str(caught.value)))


@pytest.mark.parametrize("name", rows())
def test_every_output_that_exists_is_allowed_before_there_are_arrays(name):
    """What the bound program with its gradient defines under a field name passes the check, with batch and heads too."""
    d = variants.get(name).definition
    program = with_gradient(d.program(batch=True))
    seeds = {field_of("d" + n, d.parameters) for n in program.outputs[: len(d.program().outputs)]}
    found = public_fields([x.name for x in program], d.parameters) - seeds
    assert {"out"} <= found
    check_outputs(d, found)


def test_a_mask_of_batch_entries_has_values_in_every_reading():
    x = np.arange(12.0).reshape(2, 1, 3, 2)
    att = Attention(mask="b == 0 or j <= i")
    exact = att.truth(x, x, x)["out"].float()
    assert np.allclose(att.lambdify("numpy")(x, x, x), exact)
    assert not np.allclose(exact, Attention(mask="j <= i").truth(x, x, x)["out"].float())
