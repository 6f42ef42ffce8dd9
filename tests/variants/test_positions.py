"""Rotations, relative distances, buckets: values against loops, faults that must show, reductions, errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from symattn import Attention
from symattn.definition import Definition
from symattn.errors import DefinitionError, GrammarError, InputValueError, ShapeError
from symattn.positions import relative_buckets
from tests.variants import positions_oracle as oracle


def arrays(heads: int = 4, kv: int = 2, n: int = 3, m: int = 5, d: int = 6, seed: int = 0) -> dict[str, Any]:
    r = np.random.default_rng(seed)
    shapes = {"query": (2, heads, n, d), "key": (2, kv, m, d), "value": (2, kv, m, 2)}
    return {k: r.integers(-8, 9, size=s) / 4 for k, s in shapes.items()}


def values(fields: dict[str, Any], given: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return Attention(**fields).lambdify("numpy", ("out", "lse"))(**given)


def close(a: Any, b: Any) -> bool:
    return all(np.allclose(x, y, rtol=1e-11, atol=1e-12) for x, y in zip(a, b, strict=True))


def standard(r: int, base: float = 10000.0) -> list[float]:
    return [base ** (-2 * p / r) for p in range(r // 2)]


# ---------------------------------------------------------------- rotations
ROPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "half": ({"rope": "half"}, {}),
    "interleaved": ({"rope": "interleaved"}, {"pairing": "interleaved"}),
    "partial": ({"rope": "half", "rope_dim": 4}, {"r": 4}),
    "partial interleaved": ({"rope": "interleaved", "rope_dim": 2}, {"pairing": "interleaved", "r": 2}),
    "decode": ({"rope": "half", "rope_offset": "bottom-right"}, {"offset": 2}),
    "offset": ({"rope": "interleaved", "rope_offset": 7}, {"pairing": "interleaved", "offset": 7}),
    "negative offset": ({"rope": "half", "rope_offset": -1}, {"offset": -1}),
    "amplitude": (
        {"rope": "half", "rope_amplitude": "1/10*log(4)+1", "rope_dim": 4},
        {"amplitude": 0.1 * math.log(4) + 1, "r": 4},
    ),
    "base": ({"rope": "half", "rope_frequencies": "500000**(-2*p/r)"}, {"frequencies": standard(6, 500000.0)}),
    "in the size": ({"rope": "half", "rope_frequencies": "2**(-p)/m"}, {"frequencies": [2.0**-p / 5 for p in range(3)]}),
}


def rotated(given: dict[str, Any], pairing: str = "half", r: int = 6, offset: int = 0, amplitude: float = 1.0, **o: Any) -> Any:
    f = o.pop("frequencies", standard(r))
    return oracle.attention(
        **given,
        of_query=lambda x, i: oracle.rotate(x, i + offset, f, pairing, amplitude),
        of_key=lambda x, j: oracle.rotate(x, j, f, pairing, amplitude),
        **o,
    )


@pytest.mark.parametrize("name", ROPES)
def test_rotations_are_those_of_complex_numbers(name):
    fields, meant = ROPES[name]
    given = arrays()
    assert close(values(fields, given), rotated(given, **meant))


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("half", {"pairing": "interleaved"}),
        ("half", {"frequencies": [-f for f in standard(6)], "offset": 1}),
        ("partial", {"r": 6}),
        ("partial", {"frequencies": standard(6)[:2], "r": 4}),
        ("decode", {"offset": 0}),
        ("amplitude", {"amplitude": (0.1 * math.log(4) + 1) ** 0.5}),
        ("offset", {"offset": 0}),
        ("base", {"frequencies": standard(6)}),
    ],
)
def test_another_rotation_does_not_pass_that_comparison(name, fault):
    fields, meant = ROPES[name]
    given = arrays()
    assert not close(values(fields, given), rotated(given, **{**meant, **fault}))


def test_rotations_go_with_masks_softcap_sinks_and_lengths():
    given = arrays(n=3, m=5)
    lengths, sinks = [5, 3], [0.5, -1.0, 0.0, 2.0]
    fields = {"rope": "half", "rope_offset": "bottom-right", "key_lengths": True, "softcap": 2, "sink": True}
    found = values({**fields, "causal": "bottom-right"}, {**given, "key_lengths": np.array(lengths), "sinks": np.array(sinks)})
    for b in range(2):
        one = {k: x[b : b + 1] for k, x in given.items()}
        offset = lengths[b] - 3
        expected = rotated(
            one, offset=offset, softcap=2.0, sinks=sinks, keep=lambda _, i, j, o=offset: j <= i + o and j < lengths[b]
        )
        assert close([x[b : b + 1] for x in found], expected)


def test_padding_may_hold_anything_under_a_rotation_and_a_norm():
    given = arrays()
    fields = {"rope": "half", "key_lengths": True, "qk_norm": "rms", "key_smoothing": True}
    lengths = {"key_lengths": np.array([4, 4])}
    clean = values(fields, {**given, **lengths})
    given["key"][:, :, 4], given["value"][:, :, 4] = np.nan, np.inf
    assert close(values(fields, {**given, **lengths}), clean)


def test_a_masked_key_may_be_nan_where_it_is_only_taken_along():
    given = arrays(n=3, m=5)
    mask = np.array([[1, 1, 1, 1, 0]] * 3, dtype=bool)
    fields = {"rope": "half", "attn_mask": "boolean", "lse": False}
    f = Attention(**fields).lambdify("numpy", ("out", "grad_query", "grad_key", "grad_value"))
    clean = f(**given, attn_mask=mask, grad_out=np.ones((2, 4, 3, 2)))
    given["key"][:, :, 4], given["value"][:, :, 4] = np.nan, np.nan
    assert close(f(**given, attn_mask=mask, grad_out=np.ones((2, 4, 3, 2))), clean)
    with pytest.raises(InputValueError, match="key is nan"):  # its own gradient would look at it
        Attention(**fields, qk_norm="rms").lambdify("numpy")(**given, attn_mask=mask)
    mask[1, 4] = True
    with pytest.raises(InputValueError, match="key is nan"):
        Attention(**fields).lambdify("numpy")(**given, attn_mask=mask)


def test_scaled_frequencies_are_text():
    given = arrays(d=8)
    factor, length = 4.0, 128.0

    def ramped(p: int) -> float:
        f = standard(8)[p]
        rotations = length * f / (2 * math.pi)
        gamma = min(max((rotations - 1) / (4 - 1), 0), 1)
        return (1 - gamma) * f / factor + gamma * f

    text = "10000**(-2*p/r)*(1/4 + 3/4*min(max((10000**(-2*p/r)*128/(2*pi) - 1)/(4 - 1), 0), 1))"
    frequencies = [ramped(p) for p in range(4)]
    assert standard(8)[0] == frequencies[0] and standard(8)[1] / 4 < frequencies[1] < standard(8)[1]  # one in each part
    found = values({"rope": "half", "rope_frequencies": text}, given)
    assert close(found, rotated(given, r=8, frequencies=frequencies))
    ntk = values({"rope": "half", "rope_frequencies": "(10000*4**(r/(r-2)))**(-2*p/r)"}, given)
    assert close(ntk, rotated(given, r=8, frequencies=standard(8, 10000 * 4 ** (8 / 6))))


def test_exact_values_keep_the_cosines_of_whole_numbers():
    import sympy as sp

    q, k, v = [[0, 0], [3, 4]], [[1, 2]], [[1]]
    lse = Attention(rope="half", scale=1).lambdify("exact", "lse")(q, k, v)
    c, s = sp.cos(1), sp.sin(1)
    assert lse[0] == 0
    assert sp.expand(lse[1] - ((3 * c - 4 * s) + 2 * (4 * c + 3 * s))) == 0


def slope(fields: dict[str, Any], given: dict[str, Any], name: str) -> tuple[Any, Any]:
    """The gradient by a scalar parameter, and its central difference at 80 digits."""
    import mpmath

    from symattn.numbers import exact_array

    att = Attention(**fields)
    seed = np.ones(given["query"].shape[:-1] + given["value"].shape[-1:])
    found = att.lambdify("mpmath", f"grad_{name}", digits=80)(**given, grad_out=seed)
    f = att.lambdify("mpmath", "out", digits=80)
    h = exact_array("1e-20")
    with mpmath.workdps(80):
        sides = [f(**{**given, name: exact_array(given[name]) + sign * h}).sum() for sign in (1, -1)]
        return mpmath.mpf(np.asarray(found).item()), (mpmath.mpf(sides[0]) - mpmath.mpf(sides[1])) / (2 * mpmath.mpf(10) ** -20)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"rope": "half", "rope_frequencies": "base**(-2*p/r)", "rope_amplitude": "amp"}, "base"),
        ({"rope": "interleaved", "rope_frequencies": "base**(-2*p/r)", "rope_amplitude": "amp", "rope_dim": 4}, "amp"),
        ({"rope": "half", "rope_frequencies": "base**(-p)*min(max(t*p - 1/3, 0), 1) + base", "rope_amplitude": "amp"}, "t"),
    ],
)
def test_parameters_of_a_rotation_have_gradients(fields, name):
    given = arrays(1, 1, n=2, m=3, d=6)
    given = {k: x[0, 0] for k, x in given.items()} | {"base": "3/2", "amp": "5/4"} | ({"t": "5/8"} if name == "t" else {})
    found, expected = slope(fields, given, name)
    assert abs(expected) > 1e-6
    assert abs(found - expected) < 1e-35 * (1 + abs(expected))


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_an_odd_width_is_refused_by_what_to_do(pairing):
    with pytest.raises(ShapeError, match="even width, or rope_dim=4"):
        values({"rope": pairing}, arrays(d=5))
    values({"rope": pairing, "rope_dim": 4}, arrays(d=5))
    with pytest.raises(ShapeError, match="rope_dim is 6"):
        values({"rope": pairing, "rope_dim": 6}, arrays(d=5))


@pytest.mark.parametrize(
    ("fields", "error", "why"),
    [
        ({"rope_dim": 4}, DefinitionError, "set rope"),
        ({"rope_frequencies": "1/p"}, DefinitionError, "set rope"),
        ({"rope": "half", "rope_dim": 3}, DefinitionError, "even"),
        ({"rope": "half", "rope_frequencies": "s*p"}, GrammarError, "cannot read the score"),
        ({"rope": "half", "rope_frequencies": "p <= 3"}, GrammarError, "frequency is a number"),
        (
            {"rope": "half", "rope_frequencies": "base*p", "heads": 2, "params": {"base": "1,2"}},
            DefinitionError,
            "not one per head",
        ),
        ({"qk_norm_weight": True}, DefinitionError, "set qk_norm"),
        ({"qk_norm": "rms", "qk_norm_order": "after-rope"}, DefinitionError, "needs both"),
        ({"qk_norm": "rms", "qk_norm_eps": -1}, DefinitionError, "at least 0"),
        ({"relative_clip": 3}, DefinitionError, "set relative"),
        ({"relative": "keys", "similarity": "additive"}, DefinitionError, "cannot stand with"),
    ],
)
def test_fields_that_cannot_hold_together(fields, error, why):
    with pytest.raises(error, match=why):
        Definition(**fields)


# ---------------------------------------------------------------- distances
def row(i: int, j: int, offset: int, clip: int | None, m: int) -> int:
    return i - j + m - 1 if clip is None else clip + max(-clip, min(clip, i + offset - j))


@pytest.mark.parametrize("clip", [None, 0, 1, 3])
@pytest.mark.parametrize("causal", [None, "top-left"])
def test_vectors_of_distances_are_added_to_the_keys(clip, causal):
    given = arrays()
    n, m, d = 3, 5, 6
    offset = 0 if causal else m - n
    rows = n + m - 1 if clip is None else 2 * clip + 1
    table = np.random.default_rng(1).integers(-8, 9, size=(rows, d)) / 4
    found = values({"relative": "keys", "relative_clip": clip, "causal": causal}, {**given, "relative_keys": table})

    def meant(shift: int) -> Any:
        at = lambda i, j: (row(i, j, offset, clip, m) + shift) % rows
        return oracle.attention(
            **given,
            similarity=lambda q, k, i, j, h: float(q @ (k + table[at(i, j)])),
            keep=lambda b, i, j: causal is None or j <= i,
        )

    assert close(found, meant(0))
    assert clip == 0 or not close(found, meant(1))


@pytest.mark.parametrize("clip", [None, 2])
def test_content_and_distance_have_biases_of_their_own(clip):
    given = arrays()
    n, m, d, heads = 3, 5, 6, 4
    r = np.random.default_rng(1)
    rows = n + m - 1 if clip is None else 2 * clip + 1
    table, u, v = (r.integers(-8, 9, size=s) / 4 for s in ((heads, rows, d), (heads, d), (heads, d)))
    fields = {"relative": "recurrent", "relative_clip": clip, "causal": "bottom-right", "softcap": 9}
    more = {"relative_keys": table, "content_bias": u, "position_bias": v}

    def meant(u: Any, v: Any) -> Any:
        return oracle.attention(
            **given,
            similarity=lambda q, k, i, j, h: float((q + u[h]) @ k + (q + v[h]) @ table[h, row(i, j, m - n, clip, m)]),
            keep=lambda b, i, j: j <= i + m - n,
            softcap=9.0,
        )

    found = values(fields, {**given, **more})
    assert close(found, meant(u, v))
    assert not close(found, meant(v, u))


@pytest.mark.parametrize(
    ("bidirectional", "buckets", "longest"), [(True, 32, 128), (False, 32, 128), (True, 8, 20), (False, 7, 100)]
)
def test_numbers_of_buckets_are_those_of_logarithms(bidirectional, buckets, longest):
    found = relative_buckets(3, 300, buckets=buckets, max_distance=longest, bidirectional=bidirectional, offset=140)
    expected = [
        [oracle.bucket(j - i - 140, bidirectional, buckets, longest) for j in range(300)] for i in range(3)
    ]  # fmt: skip
    assert found.tolist() == expected
    assert set(found.ravel()) <= set(range(buckets)) and found.max() == buckets - 1


def test_too_few_buckets_are_refused():
    with pytest.raises(DefinitionError, match="hold 0 distances"):
        relative_buckets(2, 2, buckets=2)
    with pytest.raises(DefinitionError, match="below max_distance"):
        relative_buckets(2, 2, buckets=64, max_distance=16)


def test_biases_of_buckets_are_added_to_unscaled_scores():
    given = arrays()
    numbers = relative_buckets(3, 5, buckets=8, max_distance=6, offset=2)
    table = np.random.default_rng(1).integers(-8, 9, size=(4, 8)) / 4
    more = {"bucket_numbers": numbers, "bucket_bias": table}
    found = values({"buckets": True, "scale": 1}, {**given, **more})
    bias = lambda i, j, h: table[h, numbers[i, j]]
    assert close(found, oracle.attention(**given, scale=1.0, bias=bias))
    assert not close(found, oracle.attention(**given, bias=bias))
    mirrored = relative_buckets(3, 5, buckets=8, max_distance=6, bidirectional=False, offset=2)
    assert not close(found, oracle.attention(**given, scale=1.0, bias=lambda i, j, h: table[h, mirrored[i, j]]))


@pytest.mark.parametrize(
    ("change", "error", "why"),
    [
        ({"bucket_numbers": np.full((3, 5), 8)}, InputValueError, "outside"),
        ({"bucket_numbers": np.zeros((3, 5))}, InputValueError, "integers are needed"),
        ({"bucket_numbers": np.zeros((5, 3), dtype=int)}, ShapeError, "bucket_numbers"),
        ({"bucket_bias": np.zeros((3, 8))}, ShapeError, "3 heads"),
        ({"bucket_bias": np.full((4, 8), np.nan)}, InputValueError, "bucket_bias is nan"),
        ({"bucket_bias": None}, InputValueError, "missing: bucket_bias"),
    ],
)
def test_wrong_inputs_are_refused_by_name(change, error, why):
    given = {**arrays(), "bucket_numbers": np.zeros((3, 5), dtype=int), "bucket_bias": np.ones((4, 8))}
    with pytest.raises(error, match=why):
        values({"buckets": True, "scale": 1}, {**given, **change})
