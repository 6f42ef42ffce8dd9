"""Runs as a whole: reports, replay, recorded files, what is refused, staged gradients, kernels of users."""

from __future__ import annotations

import json
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from symattn import arithmetic
from symattn.definition import Definition
from symattn.errors import DefinitionError, FileFormatError, KernelError, ShapeError, UnknownNameError
from symattn.verify import judge
from symattn.verify import recorded as recorded_module
from symattn.verify.files import write_npz
from symattn.verify.inputs import Shape, cases_for, fields_for
from symattn.verify.judge import run_case, verify
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.ours import Flash
from symattn.verify.kernels.registry import BUILT_IN, resolve
from symattn.verify.reference import Reference
from symattn.verify.suite import verify_all
from tests.verify.planted import kernel

SMALL = "2,4,2,3,5,6"
CAUSAL = Definition(causal="top-left")
CASE_KEYS = {"case", "kernel", "dtype", "shape", "verdict", "definition", "arithmetic", "tensors"}
TENSOR_KEYS = {
    "verdict",
    "max_error",
    "max_ulp",
    "max_share_of_bound",
    "failing",
    "undecided",
    "unbounded",
    "total",
    "worst",
    "staged",
}


def verify_recorded(source, definition, **options):
    """Recorded tensors judged without the guard, which has tests of its own."""
    return judge.verify_recorded(source, definition, guard=False, **options)


@pytest.fixture
def undiagnosed(monkeypatch):
    """Runs that fail are not diagnosed: what is asked of them is the verdict, and naming has tests of its own."""
    for module in (judge, recorded_module):
        monkeypatch.setattr(module, "diagnose", lambda *args, **options: ())
    monkeypatch.setattr(judge, "with_preset", lambda seen, found: found)
    monkeypatch.setattr(recorded_module, "with_preset", lambda seen, found: found)


def at(shape):
    """The options of a run on one input of these sizes; the guard has tests of its own."""
    return {"shape": shape, "only": "shape", "guard": False}


def no_floats(x):
    """JSON without a single float: numbers are text, counts and indices are integers."""
    if isinstance(x, dict):
        return all(no_floats(v) for v in x.values())
    if isinstance(x, list):
        return all(no_floats(v) for v in x)
    return not isinstance(x, float)


@pytest.mark.parametrize("fault, verdict", [(None, "suspect"), ("strict causal", "fail")])
def test_the_json_document(fault, verdict):
    report = verify(kernel(fault), CAUSAL, backward=True, shape=SMALL, only="shape,integers,poison", guard=False)
    doc = json.loads(report.to_json())
    assert set(doc) == {
        "verdict", "kernel", "definition", "arithmetic", "cases", "diagnosis", "warnings", "properties", "guard", "bound_terms",
        "implied", "suspicions", "power", "skipped", "replay",
    }  # fmt: skip
    assert doc["verdict"] == report.verdict == verdict
    assert doc["definition"]["causal"].startswith("top-left") and doc["arithmetic"]["algorithm"] == "flash"
    assert [c["case"] for c in doc["cases"]] == ["integers", "poison", "shape"]
    for case in doc["cases"]:
        assert set(case) == CASE_KEYS
        n, m = {"integers": (7, 5), "poison": (5, 7), "shape": (3, 5)}[case["case"]]
        assert case["shape"] == {"B": 2, "H": 4, "HKV": 2, "N": n, "M": m, "D": 6, "DV": 6}
        assert list(case["tensors"]) == ["out", "lse", "grad_query", "grad_key", "grad_value"]
        for t in case["tensors"].values():
            assert set(t) - {"known", "suspect"} == TENSOR_KEYS
            assert set(t["worst"]) == {"index", "kernel", "exact", "bound"}
            assert isinstance(t["max_error"], str) and float(t["max_error"]) >= 0
    assert no_floats(doc["cases"][0]["tensors"])
    exact = doc["cases"][0]["tensors"]["out"]["worst"]["exact"]
    assert len(exact.lstrip("-0.").replace(".", "").partition("E")[0]) >= 18


def test_the_text_fits_a_terminal_and_names_the_worst_element():
    report = verify(kernel("strict causal"), CAUSAL, backward=True, **at(SMALL))
    text = report.to_text()
    assert max(map(len, text.splitlines()[:-1])) <= 80
    assert "verdict: fail" in text and "O[" in text and "exact" in text and "\x1b" not in text
    assert "\x1b[31mfail" in report.to_text(color=True)


def test_the_same_seed_gives_the_same_report():
    first, second, other = (verify(kernel(), CAUSAL, **at(SMALL), seed=s) for s in (5, 5, 6))
    assert first.to_dict() == second.to_dict()
    assert first.to_dict() != other.to_dict()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_inputs_are_seeded_and_of_the_dtype(dtype):
    a, b = (fields_for(Definition(sink=True, attn_mask="boolean"), Shape.parse(SMALL), dtype, 3) for _ in range(2))
    assert {str(x.dtype) for k, x in a.items() if k != "attn_mask"} == {dtype}
    assert a["attn_mask"].dtype == bool
    assert all(a[k].tobytes() == b[k].tobytes() for k in a)


def test_the_pack_has_what_conventions_show_on():
    cases = cases_for(Definition(causal="bottom-right"), "float32", 0)
    shapes = {name: Call(Definition(), f).shape for name, f in cases.items()}
    assert any(s["N"] > s["M"] + 1 for s in shapes.values()) and any(s["M"] > s["N"] + 1 for s in shapes.values())
    assert any(s["HKV"] not in (1, s["H"]) and s["B"] > 1 for s in shapes.values())
    assert {3, 4} <= {s["H"] for s in shapes.values()}
    assert all(s["D"] >= 4 and s["D"] != s["H"] for s in shapes.values())
    assert "poison" not in cases  # every key is read by some query
    poisoned = cases_for(CAUSAL, "float32", 0)["poison"]
    assert np.isnan(poisoned["key"]).any() and np.isnan(poisoned["value"]).any()


def online(tile, fault=None):
    """Softmax tile by tile with a running maximum, without masks; shares no code with the package."""

    def run(query, key, value, enable_gqa=False):
        group = query.shape[1] // key.shape[1]
        q, k, v = (x.astype(np.float64) for x in (query, np.repeat(key, group, 1), np.repeat(value, group, 1)))
        top, total, out = -np.inf, 0.0, 0.0
        tiles = [slice(a, a + tile) for a in range(0, k.shape[2], tile)]
        for t in tiles[: -1 if fault == "last tile dropped" and len(tiles) > 1 else None]:
            s = q @ k[:, :, t].swapaxes(-1, -2) * q.shape[-1] ** -0.5
            new = np.maximum(top, s.max(-1, keepdims=True))
            back = np.exp(np.minimum(new - top, 300) if fault == "inverse rescale" else top - new)
            p = np.exp(s - new)
            total = total * (1 if fault == "sum not rescaled" else back) + p.sum(-1, keepdims=True)
            out = out * (1 if fault == "output not rescaled" else back) + p @ v[:, :, t]
            top = new
        return (out / total).astype(query.dtype), (top + np.log(total))[..., 0].astype(np.float32)

    run.arrays = "numpy"
    return run


@pytest.fixture(scope="module")
def in_tiles():
    """The pack in bfloat16 for kernels in tiles, long rows first: no kernel is diagnosed, and the truth is worked out once."""
    packed = sorted(cases_for(Definition(), "bfloat16", 0).items(), key=lambda x: -x[1]["key"].shape[2])
    refs = {name: Reference(Definition(), fields) for name, fields in packed}

    def verdicts(kernel):
        with np.errstate(all="ignore"):
            for name, ref in refs.items():
                yield run_case(resolve(kernel), ref, name, backward=False).verdict

    return verdicts


@pytest.mark.parametrize("tile", [16, 64, 128])
@pytest.mark.parametrize("fault", ["last tile dropped", "inverse rescale", "sum not rescaled", "output not rescaled"])
def test_faults_between_tiles_of_usual_sizes_show_on_the_pack(in_tiles, fault, tile):
    assert "fail" in in_tiles(online(tile, fault))  # the first input that shows it ends the search


def test_tiles_without_a_fault_pass_on_the_pack(in_tiles):
    assert set(in_tiles(online(64))) == {"pass"}


def test_rows_without_keys_are_left_out_where_they_are_an_error():
    found = cases_for(Definition(causal="bottom-right", empty_row="error"), "float32", 0)
    assert "tall" not in found and {"normal", "large", "deep", "abyss", "long", "square"} <= set(found)


def test_a_kernel_that_writes_into_its_inputs_changes_nothing():
    def writes(query, key, value, **options):
        out = kernel()(query, key, value, **options)
        for x in (query, key, value):
            x[...] = 7
        return out

    def backward(query, key, value, grad_out, out, lse, grad_lse, **options):
        found = kernel().backward(query, key, value, grad_out, out, lse, grad_lse, **options)
        for x in (query, key, value, grad_out, out, lse, grad_lse):
            x[...] = 7
        return found

    writes.backward = backward
    ref = Reference(CAUSAL, fields_for(CAUSAL, Shape.parse(SMALL), "float32", 0))
    for _ in range(2):
        assert run_case(resolve(writes), ref, "normal", backward=True).verdict == "pass"


def test_gradients_are_staged_only_where_the_arithmetic_says_so():
    ref = Reference(CAUSAL, fields_for(CAUSAL, Shape.parse(SMALL), "bfloat16", 0))
    staged = run_case(Flash(), ref, "normal", backward=True)
    declared = replace(Flash().arithmetic(ref.call), staged=False)
    whole = run_case(Flash(), ref, "normal", backward=True, arithmetic=declared)
    assert {t.name: t.staged for t in staged.tensors}["grad_query"] and not any(t.staged for t in whole.tensors)
    assert staged.verdict == whole.verdict == "pass"
    share = {t.name: t.comparison.max_share for t in staged.tensors}
    assert share["grad_query"] > {t.name: t.comparison.max_share for t in whole.tensors}["grad_query"]


def test_a_backward_that_uses_another_lse_is_caught_in_a_staged_run():
    def backward(query, key, value, grad_out, out, lse, grad_lse, **options):
        return kernel().backward(query, key, value, grad_out, out, lse + np.float32(0.01), grad_lse, **options)

    case = run_case(resolve(kernel(), backward=backward), Reference(CAUSAL, fields_for(CAUSAL, Shape.parse(SMALL), "float32", 0)),
                    "normal", backward=True)  # fmt: skip
    assert {t.name for t in case.tensors if t.verdict == "fail"} == {"grad_query", "grad_key", "grad_value"}


def test_a_backward_without_grad_lse_is_judged_without_it():
    def backward(query, key, value, grad_out, out, lse, **options):
        zero = np.zeros(query.shape[:3], query.dtype)
        return kernel().backward(query, key, value, grad_out, out, lse, zero, **options)

    report = verify(kernel(), CAUSAL, backward=True, backward_kernel=backward, shape=SMALL, only="shape,poison")
    assert {c.case: c.verdict for c in report.cases if c.verdict != "pass"} == {"poison": "suspect"}


def test_what_is_undecided_is_inconclusive():
    """A result that lies exactly at its bound is decided when the truth is exact, and never by more digits when it is not."""
    from fractions import Fraction

    from symattn.verify.reference import Tolerance, judge_forward

    d = Definition(lse=False)
    q = np.array([[[[1.0]]]])
    fields = {"query": q, "key": np.array([[[[0.0], [1.0]]]]), "value": np.array([[[[2.0], [2.0]]]]), "grad_out": q}
    ref = Reference(d, fields)
    (report,) = judge_forward(ref, {"out": np.array([[[[2.25]]]])}, Tolerance(Fraction(0), Fraction(1, 4)), cap=512)
    assert report.verdict in ("pass", "inconclusive")
    (report,) = judge_forward(
        ref, {"out": np.array([[[[2.25]]]])}, Tolerance(Fraction(0), Fraction(1, 4) - Fraction(1, 2**40)), cap=512
    )
    assert report.verdict == "fail"


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda q: 1 / 0, KernelError, "ZeroDivisionError"),
        (lambda q: q[:, :, :1], KernelError, "shape"),
        (lambda q: q.astype(np.float64), KernelError, "dtype"),
        (lambda q: q.astype(np.int32), KernelError, "dtype"),
        (lambda q: None, KernelError, "NoneType"),
        (lambda q: (q, q, q), KernelError, "3 values"),
        (lambda q: (q, q), KernelError, "lse"),
        (lambda q: {"output": q, "lse": "text"}, KernelError, "no array"),
    ],
)
def test_kernels_that_break_the_convention(make, error, text):
    with pytest.raises(error, match=text):
        verify(lambda query, key, value: make(query), Definition(), **at("1,2,2,3,4,5"))


def test_gradients_that_break_the_convention():
    def with_backward(make):
        f = kernel()
        return lambda query, key, value, grad_out, **o: make(f, query)

    for make, text in (
        (lambda f, q: (q, q), "2 values"),
        (lambda f, q: (q, q, q), "shape"),
        (lambda f, q: {"dq": q}, "grad_key"),
        (lambda f, q: 1 / 0, "ZeroDivisionError"),
    ):
        with pytest.raises(KernelError, match=text):
            verify(kernel(), Definition(), backward=True, backward_kernel=with_backward(make), **at(SMALL))
    with pytest.raises(DefinitionError, match="no backward"):
        verify(lambda query, key, value: value, Definition(), backward=True, **at("1,2,2,4,4,5"))


@pytest.mark.parametrize(
    "options, error",
    [
        ({"dtype": "bfloat17"}, UnknownNameError),
        ({"dtype": "tf32"}, UnknownNameError),
        ({"shape": "1,2"}, ShapeError),
        ({"shape": "1,3,2,1,1,1"}, ShapeError),
        ({"shape": "1,2,2,0,1,1"}, ShapeError),
        ({"arithmetic": "flash-bf61"}, UnknownNameError),
        ({"arithmetic": {"preset": "flash-bf16", "tiel": 3}}, DefinitionError),
        ({"arithmetic": "flash-bf16"}, DefinitionError),
        ({"arithmetic": "flash-fp32", "dtype": "bfloat16"}, DefinitionError),
        ({"layout": "bshd"}, DefinitionError),
        ({"layout": "hbsd"}, UnknownNameError),
        ({"backward_kernel": "numpy:naive"}, UnknownNameError),
    ],
)
def test_usage(options, error):
    with pytest.raises(error):
        verify("numpy:flash", Definition(), **options)


def test_an_arithmetic_that_a_kernel_declares_is_held_to_its_inputs_too():
    def declares(query, key, value, **options):
        return kernel()(query, key, value, **options)

    declares.arithmetic = "flash-bf16"
    assert verify(declares, Definition(), dtype="bfloat16", **at(SMALL)).verdict == "pass"
    with pytest.raises(DefinitionError, match="flash-bf16 is one of bfloat16 inputs, and the inputs here are float32"):
        verify(declares, Definition(), **at(SMALL))


@pytest.mark.parametrize(
    "fields", [{"score": "slope*s"}, {"mask": "j <= i + t"}, {"softcap": "cap"}, {"prefix": "k"}, {"scale": "t/d"},
               {"score": "t*s", "params": {"t": "head"}}],
)  # fmt: skip
@pytest.mark.parametrize("subject", ["numpy:naive", lambda query, key, value, slope=1, t=1, cap=1, k=1: value])
def test_a_parameter_without_a_value_is_refused_by_name(fields, subject):
    d = Definition(**fields)
    (name,) = d.unbound
    for run in (lambda: verify(subject, d, **at("1,2,2,3,3,4")), lambda: verify_all(d)):
        with pytest.raises(DefinitionError, match=rf"the parameter {name} has no value: bind it with --param {name}="):
            run()


def test_a_bound_parameter_reaches_the_truth_and_the_kernel(undiagnosed):
    def mine(query, key, value, *, slope):
        assert isinstance(slope, float)
        return scaled(query, key, value, slope)

    def scaled(query, key, value, slope):
        s = query @ key.swapaxes(2, 3) * np.float32(slope / np.sqrt(query.shape[3]))
        p = np.exp(s - s.max(-1, keepdims=True))
        return p / p.sum(-1, keepdims=True) @ value

    for value, verdict in (("0.5", "pass"), ("2", "pass")):
        assert verify(mine, Definition(score="slope*s", params={"slope": value}), **at("1,2,2,3,4,5")).verdict == verdict
    wrong = lambda query, key, value: scaled(query, key, value, 2.0)
    assert verify(wrong, Definition(score="slope*s", params={"slope": "0.5"}), **at("1,2,2,3,4,5")).verdict == "fail"
    per_head = Definition(score="slope*s", params={"slope": "0.5,2"})
    assert verify("numpy:naive", per_head, **at("1,2,1,3,4,5"), backward=True).verdict == "pass"
    report = verify("numpy:naive", per_head, only="normal,tall,square", guard=False)
    assert report.verdict == "pass" and {(c.shape["H"], c.shape["HKV"]) for c in report.cases} == {(2, 1)}


def test_heads_of_the_definition_and_of_the_shape_must_agree():
    with pytest.raises(ShapeError, match="heads=4"):
        verify("numpy:flash", Definition(heads=4, kv_heads=2), **at("1,6,3,2,2,4"))
    assert verify("numpy:flash", Definition(heads=4, kv_heads=2), only="normal", guard=False).cases[0].shape["H"] == 4


def test_a_definition_from_x_is_judged_on_its_attention():
    report = verify("numpy:flash", Definition(start="x", output_projection=True, causal="top-left"), **at(SMALL))
    assert report.verdict == "pass" and any("projections" in w for w in report.warnings)


def test_an_arithmetic_that_promises_nothing_is_told():
    report = verify("numpy:naive", Definition(), dtype="bfloat16", only="normal,deep", guard=False)
    assert (report.verdict, report.exit_code()) == ("inconclusive", 3)
    assert {c.case for c in report.cases if c.verdict != "pass"} == {"deep"}
    assert any("promises nothing" in w and "deep" in w for w in report.warnings)
    (out, _) = next(c for c in report.cases if c.case == "deep").tensors
    assert out.comparison.unbounded == out.comparison.total and f"0+{out.comparison.total}?" in report.to_text()


def test_a_declared_arithmetic_decides(undiagnosed):
    """float32 results rounded to bfloat16 on the way fail as float32 and pass as what they are."""

    def rounds(query, key, value, **options):
        out, lse = kernel()(query, key, value, **options)
        return out.astype(ml_dtypes.bfloat16).astype(out.dtype), lse

    assert verify(rounds, CAUSAL, **at(SMALL)).verdict == "fail"
    rounds.arithmetic = replace(arithmetic.get("flash-bf16"), input="float32", output="float32", name="mine")
    assert verify(rounds, CAUSAL, **at(SMALL)).verdict == "pass"
    rounds.arithmetic = {"preset": "flash-bf16", "input": "float32", "output": "float32"}
    assert verify(rounds, CAUSAL, **at(SMALL)).arithmetic == arithmetic.Arithmetic.from_dict(rounds.arithmetic).to_dict()


@pytest.fixture
def recorded(tmp_path):
    def make(dtype="float32", fault=None, layout="bhsd", **changes):
        f = fields_for(CAUSAL, Shape.parse(SMALL), dtype, 0)
        call = Call(CAUSAL, f)
        subject = resolve(kernel(fault))
        out = subject.forward(call)
        grads = subject.backward(call, {**{k: f[k] for k in ("grad_out", "grad_lse")}, **out})
        tensors = {**f, **out, **grads, **changes}
        if layout == "bshd":
            turned = {"query", "key", "value", "out", "grad_out", "grad_query", "grad_key", "grad_value"}
            tensors = {k: a.swapaxes(1, 2) if k in turned else a for k, a in tensors.items()}
        path = tmp_path / "recorded.npz"
        write_npz(path, {k: a for k, a in tensors.items() if a is not None})
        return str(path)

    return make


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_recorded_tensors(recorded, undiagnosed, dtype, layout):
    report = verify_recorded(recorded(dtype, layout=layout), CAUSAL, layout=layout)
    (case,) = report.cases
    assert report.verdict == "pass" and case.dtype == dtype
    assert {t.name for t in case.tensors} == {"out", "lse", "grad_query", "grad_key", "grad_value"}
    assert verify_recorded(recorded(dtype, "D omitted"), CAUSAL).verdict == "fail"
    assert verify_recorded(recorded(dtype), Definition()).verdict == "fail"


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize(
    "fields", [{"attn_mask": "boolean", "mask_axes": "bhij"}, {"attn_mask": "additive"}, {"sink": True}, {"alibi": True},
               {"bias": True}, {"document": True}, {"key_lengths": True}, {"dropout": True}],
    ids=lambda f: next(iter(f)) + str(next(iter(f.values()))),
)  # fmt: skip
def test_recorded_tensors_say_what_the_definition_has(undiagnosed, fields, layout):
    d = Definition(**fields)
    f = fields_for(d, Shape.parse(SMALL), "float32", 0)
    out = Flash().forward(Call(d, f))
    tensors = {**f, **out, **Flash().backward(Call(d, f), {**f, **out})}
    turned = {"query", "key", "value", "out", "grad_out", "grad_query", "grad_key", "grad_value"}
    if layout == "bshd":
        tensors = {k: a.swapaxes(1, 2) if k in turned else a for k, a in tensors.items()}
    report = verify_recorded(tensors, Definition(), layout=layout)
    assert report.verdict == "pass" and not [w for w in report.warnings if "not judged" in w]
    assert {t.name for t in report.cases[0].tensors} == {k for k in tensors if k in ("out", "lse") or k[5:] in f}
    tensors["out"] = tensors["out"] + np.float32(0.01)
    assert verify_recorded(tensors, Definition(), layout=layout).verdict == "fail"


def test_recorded_copies_in_a_wider_dtype(recorded):
    """Arrays of float32 may be those of a bfloat16 kernel, if they are numbers of bfloat16."""
    f = fields_for(CAUSAL, Shape.parse(SMALL), "bfloat16", 0)
    out = Flash().forward(Call(CAUSAL, f))
    tensors = {k: np.asarray(a, np.float32) for k, a in {**f, **out}.items() if not k.startswith("grad_")}
    assert verify_recorded(tensors, CAUSAL, arithmetic="flash-bf16").verdict == "pass"
    tensors["query"] = tensors["query"] * np.float32(1.001)
    with pytest.raises(DefinitionError, match="bfloat16 inputs"):
        verify_recorded(tensors, CAUSAL, arithmetic="flash-bf16")


def test_recorded_parts(recorded, undiagnosed):
    report = verify_recorded(recorded(lse=None, grad_lse=None, grad_key=None, extra=np.zeros(3)), CAUSAL)
    assert {t.name for t in report.cases[0].tensors} == {"out", "grad_query", "grad_value"}
    assert any("'extra'" in w for w in report.warnings)


@pytest.mark.parametrize(
    "changes, text",
    [
        ({"out": None}, "lacks out"),
        ({"key": None}, "lacks key"),
        ({"out": np.zeros((2, 4, 3, 5), np.float32)}, "shape"),
        ({"key": np.zeros((2, 3, 5, 6), np.float32), "value": np.zeros((2, 3, 5, 6), np.float32)}, "heads"),
        ({"value": np.zeros((2, 2, 4, 6), np.float32)}, "numbers of keys"),
        ({"key": np.zeros((2, 2, 5, 7), np.float32)}, "dimensions"),
        ({"query": np.zeros((2, 4, 0, 6), np.float32)}, "empty"),
    ],
)
def test_recorded_files_that_do_not_fit(recorded, changes, text):
    with pytest.raises(FileFormatError, match=text):
        verify_recorded(recorded(**changes), CAUSAL)


def test_the_built_in_kernels_have_names_and_say_what_they_are():
    assert set(BUILT_IN) >= {
        "numpy:naive", "numpy:flash", "torch:sdpa", "torch:sdpa-math", "torch:sdpa-flash",
        "onnxruntime:attention", "onnx:reference", "jax:dot_product_attention",
    }  # fmt: skip
    assert all(k.about and name == k.name for name, k in BUILT_IN.items())
