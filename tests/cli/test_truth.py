"""`symattn truth`: files of midpoints, radii and states."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from typer.testing import CliRunner

from symattn.formats import round_exact
from symattn.verify.files import read_tensors
from symattn_cli.app import app


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    r = np.random.default_rng(0)
    f = {n: r.normal(size=(1, 2, k, 3)).astype(np.float32) for n, k in (("query", 2), ("key", 4), ("value", 4), ("grad_out", 2))}
    np.savez("in.npz", **f)

    def invoke(*words):
        return CliRunner().invoke(app, ["truth", "in.npz", "-o", "out.npz", *words])

    return invoke


def witness(digits):
    """The output and LSE at one query by mpmath, written down directly."""
    f = {k: v.astype(float) for k, v in np.load("in.npz").items()}
    mp = mpmath.mp.clone()
    mp.dps = digits + 15
    q, k, v = f["query"][0, 1, 0], f["key"][0, 1], f["value"][0, 1]
    s = [mp.fsum(mp.mpf(a) * mp.mpf(b) for a, b in zip(q, row, strict=True)) / mp.sqrt(3) for row in k]
    total = mp.fsum(mp.exp(x) for x in s)
    return mp, [mp.fsum(mp.exp(x) * mp.mpf(w) for x, w in zip(s, v[:, e], strict=True)) / total for e in range(3)], mp.log(total)


@pytest.mark.parametrize(
    "words, digits", [([], 50), (["--digits", "30"], 30), (["--digits", "200"], 200), (["--bits", "160"], 40)]
)
def test_digits(run, words, digits):
    result = run(*words)
    assert result.exit_code == 0, result.output
    z = dict(np.load("out.npz"))
    assert set(z) == {f"{n}.{p}" for n in ("out", "lse") for p in ("mid", "rad", "status")}
    assert z["out.mid"].shape == z["out.rad"].shape == z["out.status"].shape == (1, 2, 2, 3) and z["lse.mid"].shape == (1, 2, 2)
    mp, out, lse = witness(digits)
    for mid, rad, want in [
        *zip(z["out.mid"][0, 1, 0], z["out.rad"][0, 1, 0], out, strict=True),
        (z["lse.mid"][0, 1, 0], z["lse.rad"][0, 1, 0], lse),
    ]:
        assert abs(mp.mpf(str(mid)) - want) <= mp.mpf(str(rad)) <= abs(want) * mp.mpf(10) ** (1 - digits)


def test_what_a_file_holds_is_part_of_the_definition(run):
    f = dict(np.load("in.npz"))
    np.savez("in.npz", **f, attn_mask=np.array([[True, False, True, True]] * 2), sinks=np.zeros(2, np.float32))
    assert run("--digits", "20").exit_code == 0
    found = dict(np.load("out.npz"))
    assert run("--digits", "20", "--set", "attn_mask=boolean", "--sink").exit_code == 0
    said = dict(np.load("out.npz"))
    assert all((found[n] == said[n]).all() for n in said)
    np.savez("in.npz", **f)
    assert run("--digits", "20").exit_code == 0
    assert not (dict(np.load("out.npz"))["out.mid"] == said["out.mid"]).any()


def test_rounding_to_a_format(run):
    assert run("--digits", "60", "--grad").exit_code == 0
    exact = dict(np.load("out.npz"))
    assert {n.partition(".")[0] for n in exact} == {"out", "lse", "grad_query", "grad_key", "grad_value"}
    assert run("--round", "bf16", "--grad").exit_code == 0
    rounded = read_tensors("out.npz")
    assert str(rounded["grad_key.mid"].dtype) == "bfloat16"
    for name in ("out", "lse", "grad_query", "grad_key", "grad_value"):
        for at in np.ndindex(rounded[f"{name}.mid"].shape):
            x = Fraction(Decimal(str(exact[f"{name}.mid"][at])))
            got = Fraction(float(rounded[f"{name}.mid"][at]))
            assert got == round_exact(x, "bfloat16")
            assert abs(got - x) <= Fraction(float(rounded[f"{name}.rad"][at])) * (1 + Fraction(1, 10**9))


def test_until_decided_rounds_to_the_format_of_the_file(run):
    assert run("--until", "decided", "--grad").exit_code == 0
    found = dict(np.load("out.npz"))
    assert run("--round", "float32", "--grad").exit_code == 0
    same = dict(np.load("out.npz"))
    assert found["grad_key.mid"].dtype == np.float32 and set(found) == set(same)
    assert all((found[n] == same[n]).all() for n in found if not n.endswith(".rad"))


def test_the_report_says_which_tier_found_what(run):
    result = run("--digits", "30", "--report")
    assert result.exit_code == 0 and "balls at 164 bits, the whole program" in result.output
    assert "not by double: gives at most 53 bits" in result.output and "O" not in dict(np.load("out.npz"))
    result = run("--round", "bf16", "--assume", "--report")
    assert "bounded by double, assuming" in result.output
    assert set(np.unique(np.load("out.npz")["out.status"])) == {"bounded"}


@pytest.mark.parametrize("tier", ["balls", "limbs"])
def test_one_tier(run, tier):
    result = run("--digits", "25", "--tier", tier, "--report", "--grad")
    assert result.exit_code == 0 and f"enclosed by {tier}" in result.output
    mp, out, _ = witness(25)
    z = dict(np.load("out.npz"))
    for mid, rad, want in zip(z["out.mid"][0, 1, 0], z["out.rad"][0, 1, 0], out, strict=True):
        assert abs(mp.mpf(str(mid)) - want) <= mp.mpf(str(rad)) <= abs(want) * mp.mpf(10) ** -24


def test_a_checkpoint_is_taken_up_again_with_the_same_bits(run):
    from pathlib import Path

    words = ("--bits", "120", "--tier", "balls", "--workers", "1", "--checkpoint", "run.npz")
    assert run(*words).exit_code == 0 and Path("run.npz").exists()
    first, when = dict(np.load("out.npz")), Path("run.npz").stat().st_mtime_ns
    assert run(*words).exit_code == 0
    assert all((first[n] == np.load("out.npz")[n]).all() for n in first) and Path("run.npz").stat().st_mtime_ns >= when
    Path("run.npz").write_bytes(Path("run.npz").read_bytes()[:100])
    result = run(*words)
    assert result.exit_code == 4 and "run.npz" in result.stderr


def test_both_neighbours_of_what_is_undecided_are_written(run):
    fields = {"query": [[1.0]], "key": [[1.0], [-1.0]], "value": [[1.0], [1 + 2.0**-7]]}
    np.savez("in.npz", **{k: np.array(v, dtype=np.float32) for k, v in fields.items()})
    result = run("--score", "s*tanh(s)", "--round", "bf16")
    assert result.exit_code == 3 and "out: 1 elements, 1 undecided" in result.output
    z = read_tensors("out.npz")
    assert [float(z[f"out.{end}"][0, 0]) for end in ("low", "high")] == [1.0, 1 + 2.0**-7] and "lse.low" not in z


def test_a_tie_is_undecided_or_settled_and_a_zero_is_exact(run):
    np.savez("in.npz", query=np.zeros((1, 2)), key=np.ones((2, 2)), value=np.array([[1.0, 3.0], [1.0, -3.0]]))
    result = run()
    z = dict(np.load("out.npz"))
    assert [Decimal(str(x)) for x in z["out.mid"][0]] == [1, 0]
    assert result.exit_code == (3 if "undecided" in z["out.status"] else 0)


@pytest.mark.parametrize(
    "words, code, text",
    [
        (["--digits", "5", "--bits", "9"], 2, "exclude"),
        (["--digits", "0"], 2, "digits"),
        (["--until", "tired"], 2, "decided"),
        (["--until", "decided", "--round", "bf16"], 2, "exclude"),
        (["--tier", "bals"], 2, "balls"),
        (["--tier", "fractions"], 3, "rational"),
        (["--workers", "2", "--cluster", "tcp://x:1"], 2, "exclude"),
        (["--round", "bf61"], 2, "bf16"),
        (["--layout", "x"], 2, "layout"),
        (["--grad", "--sink"], 4, "missing: sinks"),
        (["--causal", "up"], 2, "top-left"),
        (["-o", "out.txt"], 4, ".npz"),
        (["--digits", "99999999"], 2, "beyond"),
    ],
)
def test_bad_input(run, words, code, text):
    result = run(*words)
    assert result.exit_code == code, result.output
    assert text in " ".join(result.stderr.split()) and "Traceback" not in result.output


def test_gradients_need_grad_out(run):
    np.savez("in.npz", **{k: v for k, v in np.load("in.npz").items() if k != "grad_out"})
    result = run("--grad")
    assert result.exit_code == 4 and "grad_out" in result.stderr


def test_directions_in_the_file_give_tangents_and_with_gradients_hessian_vector_products(run):
    f = dict(np.load("in.npz"))
    r = np.random.default_rng(7)
    move = r.normal(size=f["query"].shape).astype(np.float32)
    np.savez("in.npz", **f, tangent_query=move, tangent_out=f["grad_out"])  # a recorded result is no direction
    assert run("--digits", "30").exit_code == 0
    assert {n.partition(".")[0] for n in np.load("out.npz")} == {"out", "lse", "tangent_out", "tangent_lse"}
    assert run("--digits", "30", "--grad").exit_code == 0
    found = dict(np.load("out.npz"))
    assert {n.partition(".")[0] for n in found} >= {"grad_query", "tangent_out", "hvp_query", "hvp_key", "hvp_value"}
    q, k, v = (f[n].astype(float)[0, 1] for n in ("query", "key", "value"))
    s, t = q @ k.T / np.sqrt(3), move.astype(float)[0, 1] @ k.T / np.sqrt(3)
    p = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    want = (p * (t - (p * t).sum(axis=1, keepdims=True))) @ v
    assert np.allclose(found["tangent_out.mid"][0, 1].astype(float), want, atol=1e-12)
    np.savez("in.npz", **f, tangent_query=move[:, :1])
    result = run()
    assert result.exit_code == 4 and "in.npz: tangent_query has shape (1, 1, 2, 3), needed is (1, 2, 2, 3)" in result.stderr
    np.savez("in.npz", **f, tangent_qery=move)
    assert run().exit_code == 4 and "'tangent_query'" in run().stderr
