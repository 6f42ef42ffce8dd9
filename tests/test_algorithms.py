"""Kernel algorithms in numbers: against dense loops, the definition in exact numbers, in every reading, and as gradients."""

import math

import mpmath
import numpy as np
import pytest
import sympy as sp

from symattn import Attention, arithmetic
from symattn.adjoint import adjoint
from symattn.algorithms import gradient_by_tiles, plain
from symattn.claims import prove_range_only
from symattn.definition import Definition
from symattn.errors import DefinitionError, InputValueError, ProofError
from symattn.readings import balls, exact, rounding
from symattn.readings import mpmath as high
from symattn.readings import numpy as floats
from symattn.theorems.duality import prove_duality

SIZES = {"n": 3, "m": 5, "d": 2, "dv": 2, "G": 2, "Hkv": 2, "H": 4}
ALGORITHMS = [("online", None), ("online", 2), ("flash", 2), ("flash", 3), ("flash", 8), ("split", 2), ("ring", 2)]
VARIANTS = {
    "plain": {},
    "rows without keys": {"causal": -2},
    "grouped": {"causal": "bottom-right", "heads": 4, "kv_heads": 2, "alibi": True},
    "sink and dropout": {"sink": True, "dropout": True, "dropout_p": "1/4", "causal": -2},
    "mask, cap, bias": {"softcap": 3, "attn_mask": "boolean", "bias": True},
    "mean on empty rows": {"causal": -2, "empty_row": "uniform"},
}


def inputs(program, seed=0):
    """A small rational for every entry; of the masks and lists of integers 0 or 1."""
    r = np.random.default_rng(seed)
    at = {s: sp.Integer(SIZES[str(s)]) for s in program.sizes if str(s) in SIZES}
    found = {}
    for n in program.inputs:
        shape = tuple(int(v.xreplace(at)) for v in program.shapes[n])
        whole = r.integers(0, 2, size=shape) if n in program.discrete else r.integers(-4, 5, size=shape)
        found[n] = whole if n in program.discrete else np.asarray(whole, dtype=float) / 4
    return found


def sizes(program):
    return {k: v for k, v in SIZES.items() if k in map(str, program.sizes)}


def run(program, given):
    return floats.evaluate(program, {n: given[n] for n in program.inputs}, sizes=sizes(program), dtype=np.float64)


# ---------------------------------------------------------------- dense loops
def loops(q, k, v, keep):
    """Attention as its formula says, one number after the other."""
    out = np.zeros((len(q), v.shape[1]))
    lse = np.full(len(q), -math.inf)
    for i in range(len(q)):
        scores = {
            j: sum(a * b for a, b in zip(q[i], k[j], strict=True)) / math.sqrt(q.shape[1]) for j in range(len(k)) if keep(i, j)
        }
        total = sum(math.exp(s) for s in scores.values())
        for j, s in scores.items():
            out[i] += math.exp(s) / total * v[j]
        if scores:
            lse[i] = math.log(total)
    return out, lse


@pytest.mark.parametrize(("algorithm", "block"), ALGORITHMS)
def test_values_are_those_of_dense_loops(algorithm, block):
    d = Definition.of(causal=-2, algorithm=algorithm, block=block)
    p = d.program()
    x = inputs(p)
    out, lse = loops(x["Q"], x["K"], x["V"], lambda i, j: j <= i - 2)
    got = run(p, x)
    np.testing.assert_allclose(got["O"], out, atol=1e-14)
    np.testing.assert_allclose(got["L"], lse, atol=1e-14)
    wrong = d.replace(causal=-1).program()
    assert np.abs(run(wrong, x)["O"] - out).max() > 1e-2


def test_scores_far_from_zero_neither_overflow_nor_vanish():
    """A shift that is no maximum so far would: exp(900) has no value in float64."""
    for algorithm, block in ALGORITHMS:
        p = Definition.of(scale=1, causal=-2, algorithm=algorithm, block=block).program()
        x = inputs(p) | {"Q": np.full((3, 2), 30.0), "K": np.array([[-15.0, -15.0]] * 2 + [[15.0, 15.0]] * 3)}
        got = run(p, x)
        assert np.isfinite(got["O"]).all() and got["L"][0] == -np.inf
        np.testing.assert_allclose(got["L"][2], -900)


@pytest.mark.parametrize("name", VARIANTS)
def test_values_and_gradients_are_those_of_the_definition(name):
    d = Definition.of(**VARIANTS[name])
    reference = adjoint(d.program())
    x = inputs(reference)
    if "dL" in x:
        x["dL"] = 0 * x["dL"]  # where a row keeps no key L has no value, and no gradient comes in
    want = run(reference, x)
    for algorithm, block in ALGORITHMS:
        other = d.replace(algorithm=algorithm, block=block)
        got = run(adjoint(other.program()), x)
        for o in (*d.program().outputs, *reference.outputs):
            np.testing.assert_allclose(got[o], want[o], atol=1e-13, err_msg=f"{algorithm} {block} {o}")


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == "rows without keys" else pytest.mark.slow) for n in VARIANTS])
def test_gradients_by_tiles_are_those_of_the_definition(name):
    d = Definition.of(**VARIANTS[name])
    reference = adjoint(d.program())
    x = inputs(reference)
    x["dL"] = 0 * x["dL"]
    want = run(reference, x)
    for algorithm, block in (("online", None), ("flash", 2), ("split", 3), ("ring", 2)):
        program = gradient_by_tiles(d.replace(algorithm=algorithm, block=block)).program
        got = run(program, x)
        for o in program.outputs:
            np.testing.assert_allclose(got[o], want[o], atol=1e-13, err_msg=f"{algorithm} {block} {o}")


# ---------------------------------------------------------------- exact numbers and the other readings
@pytest.mark.parametrize(("algorithm", "block"), [("online", None), ("flash", 2), ("split", 2), ("ring", 2)])
def test_exactly_equal_with_a_partial_tile_and_an_empty_row(algorithm, block):
    d = Definition.of(causal=-1, algorithm=algorithm, block=block)
    reference, program = adjoint(plain(d).program()), adjoint(d.program())
    tiny = {"n": 2, "m": 3, "d": 1, "dv": 1}
    x = {"Q": [[1], [2]], "K": [[0], [1], [-1]], "V": [[1], [2], [4]], "dO": [[1], [3]], "dL": [0, 2]}
    a, b = exact.evaluate(reference, x), exact.evaluate(program, x)
    assert tiny["m"] == len(x["K"])
    for o in ("O", "L", "dQ", "dK", "dV"):
        for left, right in zip(np.ravel(a[o]), np.ravel(b[o]), strict=True):
            assert left == right or exact.compare(left, right) == 0, (o, left, right)
    assert b["L"].tolist()[0] == -sp.oo and b["O"].tolist()[0] == [0]


@pytest.mark.parametrize(("algorithm", "block"), [("flash", 2), ("split", 2), ("ring", 3)])
def test_every_reading_runs_the_program(algorithm, block):
    d = Definition.of(causal="bottom-right", algorithm=algorithm, block=block)
    p, q = d.program(), plain(d).program()
    x = inputs(p)
    want = high.evaluate(q, x, digits=40)["O"]
    got = high.evaluate(p, x, digits=40)["O"]
    assert max(abs(a - b) for a, b in zip(np.ravel(got), np.ravel(want), strict=True)) < mpmath.mpf(10) ** -35
    enclosed = balls.evaluate(p, x, bits=100)["O"]
    for ball, value in zip(np.ravel(enclosed), np.ravel(want), strict=True):
        assert abs(float(ball.mid()) - float(value)) < 1e-15 and float(ball.rad()) < 1e-25
    single = {n: a.astype(np.float32) for n, a in x.items()}
    box = rounding.evaluate(p, single, arithmetic.get("eager-fp32"))["O"]
    error = np.abs(floats.evaluate(p, single, dtype=np.float32)["O"] - np.asarray(want, dtype=float))
    assert (error <= box.bound).all() and box.bound.max() < 1e-5


# ---------------------------------------------------------------- paged caches
def test_a_paged_cache_is_the_contiguous_one():
    r = np.random.default_rng(3)
    cache_k, cache_v, q = r.normal(size=(2, 7, 3, 4)), r.normal(size=(2, 7, 3, 5)), r.normal(size=(2, 4, 3, 4))
    table, lengths, g = np.array([[4, 1], [2, 6]]), np.array([5, 6]), r.normal(size=(2, 4, 3, 5))
    paged = Attention(algorithm="paged", causal="bottom-right", key_lengths=True)
    given = {"query": q, "key_cache": cache_k, "value_cache": cache_v, "block_table": table, "key_lengths": lengths}
    got = paged.truth(**given, grad_out=g, digits=20)
    k = np.stack([np.concatenate([cache_k[:, t] for t in row], axis=1) for row in table])
    v = np.stack([np.concatenate([cache_v[:, t] for t in row], axis=1) for row in table])
    want = Attention(causal="bottom-right", key_lengths=True).truth(q, k, v, key_lengths=lengths, grad_out=g, digits=20)
    assert (np.asarray(got["out"].mid, dtype=float) == np.asarray(want["out"].mid, dtype=float)).all()
    scattered = np.zeros_like(cache_k)
    for b, row in enumerate(table):
        for t, number in enumerate(row):
            scattered[:, number] += np.asarray(want["grad_key"].mid, dtype=float)[b, :, 3 * t : 3 * t + 3]
    np.testing.assert_allclose(np.asarray(got["grad_key_cache"].mid, dtype=float), scattered, atol=1e-15)
    turned = paged.truth(**{**given, "block_table": table[:, ::-1]})["out"]
    assert not np.allclose(np.asarray(turned.mid, dtype=float), np.asarray(got["out"].mid, dtype=float))


def test_the_gradient_of_a_paged_cache_is_proved_for_all_sizes():
    p = Definition(algorithm="paged", causal="bottom-right", key_lengths=True, lse=False).program()
    assert prove_duality(p, ["Kc", "Vc"])


def test_what_no_query_reads_of_a_cache_may_be_anything():
    """Pages that no table lists, and places behind the last key, are often not a number."""
    cache = np.ones((1, 4, 2, 2))
    given = {"query": np.ones((1, 1, 1, 2)), "block_table": np.array([[2, 0]]), "key_lengths": np.array([3])}
    paged = Attention(algorithm="paged", key_lengths=True)
    holes = cache.copy()
    holes[0, 1], holes[0, 3, 0, 0], holes[0, 0, 1] = np.nan, np.inf, np.nan
    got = paged.truth(**given, key_cache=holes, value_cache=holes)["out"]
    assert np.asarray(got.mid, dtype=float).tolist() == [[[[1, 1]]]]
    holes[0, 0, 0, 1] = np.nan
    with pytest.raises(InputValueError, match=r"key_cache is nan at \[0, 0, 1\]"):
        paged.truth(**given, key_cache=holes, value_cache=cache)


def test_a_page_that_is_not_there():
    with pytest.raises(InputValueError, match="looks outside Kc"):
        Attention(algorithm="paged").truth(
            query=np.ones((1, 1, 1, 2)),
            key_cache=np.ones((1, 3, 2, 2)),
            value_cache=np.ones((1, 3, 2, 2)),
            block_table=np.array([[3]]),
        )
    with pytest.raises(InputValueError, match="missing: value_cache, block_table"):
        Attention(algorithm="paged").truth(query=np.ones((1, 1, 1, 2)), key_cache=np.ones((1, 3, 2, 2)))


# ---------------------------------------------------------------- definitions
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"block": 2}, "set algorithm to online"),
        ({"algorithm": "flash", "normalizer": "sparsemax"}, "cannot be had with normalizer"),
        ({"algorithm": "flash", "differential": True}, "cannot be had with differential"),
        ({"algorithm": "paged", "start": "x"}, "set start='qkv'"),
        ({"algorithm": "flash", "form": "linear"}, "leave algorithm out"),
    ],
)
def test_what_an_algorithm_cannot_stand_with(fields, words):
    with pytest.raises(DefinitionError, match=words):
        Definition.of(**fields)


def test_numbers_need_a_size_of_tiles():
    ones = np.ones((2, 2))
    with pytest.raises(DefinitionError, match="set block"):
        Attention(algorithm="flash").truth(ones, ones, ones)


def test_conventions_say_the_algorithm():
    assert "parts of 4 keys" in Definition(algorithm="split", block=4).conventions()["algorithm"]
    assert "algorithm" not in Definition().conventions()


def test_any_running_shift_cancels_and_nothing_else():
    """The claim that nothing depends on the running maximum is proved in the scan; without the rescaling it is false."""
    program = Definition(algorithm="flash", sink=True, causal=-2).program()
    prove_range_only(program)
    wrong = program.with_statements(
        [s if s.name != "Os" else s.xreplace({x: sp.S.One for x in s.reads if "rs" in str(x)}) for s in program]
    )
    with pytest.raises(ProofError, match="ms"):
        prove_range_only(wrong)
