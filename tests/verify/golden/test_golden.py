"""Golden files: rounded once (against an evaluation of its own), bounds that hold, the same bytes each time, outputs judged."""

from __future__ import annotations

import hashlib
import json
import shutil
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import safetensors.numpy

from symattn import formats, variants
from symattn.definition import Definition
from symattn.errors import FileFormatError, KernelError
from symattn.verify.golden import manifest, writing
from symattn.verify.golden.arrays import npy
from symattn.verify.golden.judging import verify_golden
from symattn.verify.golden.writing import Request, write_golden
from symattn.verify.inputs import Choice
from tests.verify import planted

SMALL = Choice.of(shape="1,4,2,3,5,3,2", only="shape")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Causal attention, float32 and bfloat16, with gradients, on one small input."""
    base = tmp_path_factory.mktemp("golden") / "g"
    definition = Definition(causal="bottom-right")
    done = write_golden(Request(definition, ("float32", "bf16"), ("float16",), SMALL, backward=True), base)
    assert done.cases == ("float32/shape", "bfloat16/shape") and not done.undecided
    return base


def read(folder, name):
    entry = next(t for c in json.loads((folder / "manifest.json").read_text())["cases"] for t in c["tensors"] if t["npy"] == name)
    a = np.load(folder / name)
    return a if str(a.dtype) == entry["dtype"] else a.view(formats.get(entry["dtype"]).dtype)


def exact_attention(q, k, v, offset):
    """Causal attention of one head in 200 bits, rows of mpf."""
    c = mpmath.MPContext()
    c.prec = 200
    out = []
    for i, row in enumerate(q.astype(float)):
        scores = [c.fdot(map(c.mpf, row), map(c.mpf, key)) / c.sqrt(len(row)) for key in k.astype(float)[: i + 1 + offset]]
        weights = [c.exp(s - max(scores)) for s in scores]
        out.append([c.fdot(weights, map(c.mpf, column[: len(weights)])) / sum(weights) for column in v.astype(float).T])
    return out


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("target", [None, "float16", "float64"])
def test_results_are_rounded_once_from_the_exact_value(folder, dtype, target):
    q, k, v = (read(folder, f"{dtype}/shape/{n}.npy") for n in ("query", "key", "value"))
    name = f"{dtype}/shape/out.{target}.npy" if target else f"{dtype}/shape/out.npy"
    got = read(folder, name)
    assert str(got.dtype) == (target or dtype)
    for h in range(4):
        for row, exact in zip(got[0, h], exact_attention(q[0, h], k[0, h // 2], v[0, h // 2], 2), strict=True):
            for value, x in zip(row, exact, strict=True):
                neighbours = [np.nextafter(value, value.dtype.type(s)) for s in (-np.inf, np.inf)]
                distance = abs(mpmath.mpf(float(value)) - x)
                assert all(distance < abs(mpmath.mpf(float(other)) - x) for other in neighbours)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_correct_kernel_is_within_the_bounds_that_are_in_the_files(folder, dtype):
    names = ("query", "key", "value")
    fields = {n: read(folder, f"{dtype}/shape/{n}.npy") for n in names}
    options = {"is_causal": True, "causal_alignment": "bottom-right", "enable_gqa": True}
    out, lse = planted.kernel()(*fields.values(), **options)
    wrong, _ = planted.kernel("scale 1/d")(*fields.values(), **options)
    for name, a in (("out", out), ("lse", lse)):
        center, bound = (read(folder, f"{dtype}/shape/{name}.{end}.npy") for end in ("float64", "bound"))
        assert (np.abs(a.astype(float) - center) <= bound).all() and (bound > 0).all() and np.isfinite(bound).all()
    center, bound = (read(folder, f"{dtype}/shape/out.{end}.npy") for end in ("float64", "bound"))
    assert (np.abs(wrong.astype(float) - center) > bound).any()


def test_the_same_bytes_each_time(folder, tmp_path):
    request = Request(Definition(causal="bottom-right"), ("float32", "bf16"), ("float16",), SMALL, backward=True)
    write_golden(request, tmp_path / "again")
    files = sorted(p.relative_to(folder) for p in folder.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(tmp_path / "again") for p in (tmp_path / "again").rglob("*") if p.is_file())
    assert all((folder / f).read_bytes() == (tmp_path / "again" / f).read_bytes() for f in files)


def test_the_manifest_lists_every_file_with_its_checksum(folder):
    m = json.loads((folder / "manifest.json").read_text())
    listed = {t["npy"]: t["sha256"] for c in m["cases"] for t in c["tensors"]}
    listed |= {c["safetensors"]["file"]: c["safetensors"]["sha256"] for c in m["cases"]}
    found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} - {"manifest.json"}
    assert listed.keys() == found
    assert all(hashlib.sha256((folder / f).read_bytes()).hexdigest() == s for f, s in listed.items())
    assert m["definition"]["conventions"]["causal"] == "bottom-right: j <= i + m - n" and m["arithmetic"].keys() == {
        "float32",
        "bfloat16",
    }
    for c in m["cases"]:
        for t in c["tensors"]:
            a = np.load(folder / t["npy"])
            assert (list(a.shape), np.lib.format.dtype_to_descr(a.dtype)) == (t["shape"], t["stored"])
            assert len(t["axes"]) == a.ndim and t["role"] in m["roles"]


def test_safetensors_hold_the_same(folder):
    m = json.loads((folder / "manifest.json").read_text())
    for c in m["cases"]:
        found = safetensors.numpy.load_file(folder / c["safetensors"]["file"])
        assert found.keys() == {t["name"] for t in c["tensors"]}
        for t in c["tensors"]:
            assert str(found[t["name"]].dtype) == t["dtype"]
            np.testing.assert_array_equal(found[t["name"]].astype(float), read(folder, t["npy"]).astype(float))


def answers(folder, target, form="npy", fault=None, dtypes=("float32", "bfloat16"), backward=True):
    """What a kernel in another language would write: here the planted one."""
    kernel = planted.kernel(fault)
    for dtype in dtypes:
        names = ("query", "key", "value", *(("grad_out", "grad_lse") if backward else ()))
        f = {n: read(folder, f"{dtype}/shape/{n}.npy") for n in names}
        options = {"is_causal": True, "causal_alignment": "bottom-right", "enable_gqa": True}
        out, lse = kernel(f["query"], f["key"], f["value"], **options)
        found = {"out": out, "lse": lse}
        if backward:
            grads = kernel.backward(
                f["query"], f["key"], f["value"], f["grad_out"], out=out, lse=lse, grad_lse=f["grad_lse"], **options
            )
            found |= {"grad_query": grads["dq"], "grad_key": grads["dk"], "grad_value": grads["dv"]}
        place = target / dtype / "shape"
        if form == "npy":
            place.mkdir(parents=True)
            for n, a in found.items():
                (place / f"{n}.npy").write_bytes(npy(np.asarray(a)))
        else:
            place.parent.mkdir(parents=True)
            safetensors.numpy.save_file({n: np.ascontiguousarray(a) for n, a in found.items()}, place.with_suffix(".safetensors"))
    return target


@pytest.mark.parametrize("form", ["npy", "safetensors"])
def test_outputs_that_came_back_are_judged(folder, tmp_path, form):
    r = verify_golden(folder, answers(folder, tmp_path / "o", form))
    assert (r.verdict, [c.dtype for c in r.cases]) == ("pass", ["float32", "bfloat16"])
    assert {t.name for t in r.cases[0].tensors} == {"out", "lse", "grad_query", "grad_key", "grad_value"}
    text = r.to_text()
    assert "arithmetic  flash-fp32" in text and "arithmetic  flash-bf16" in text
    assert max(len(line) for line in text.splitlines() if str(tmp_path) not in line) <= 80


def test_a_fault_fails_and_is_named(tmp_path):
    write_golden(Request(Definition(causal="bottom-right"), choice=SMALL), tmp_path / "g")
    r = verify_golden(
        tmp_path / "g", answers(tmp_path / "g", tmp_path / "o", fault="top-left", dtypes=("float32",), backward=False)
    )
    assert r.verdict == "fail" and any("top-left" in str(d) for d in r.diagnosis)


def test_the_correctly_rounded_results_pass_themselves(folder, tmp_path):
    for dtype in ("float32", "bfloat16"):
        place = tmp_path / dtype / "shape"
        place.mkdir(parents=True)
        for n in ("out", "lse", "grad_query", "grad_key", "grad_value"):
            shutil.copy(folder / dtype / "shape" / f"{n}.npy", place)
    r = verify_golden(folder, tmp_path)
    assert r.verdict == "pass"
    assert all(t.comparison.max_ulp <= Fraction(1, 2) for c in r.cases for t in c.tensors)


def test_without_an_lse_there_is_a_remark(folder, tmp_path):
    answers(folder, tmp_path / "o")
    for f in (tmp_path / "o").rglob("lse.npy"):
        f.unlink()
    r = verify_golden(folder, tmp_path / "o")
    assert r.verdict == "pass" and any("no log-sum-exp" in w for w in r.warnings)


def spoil(path, change):
    path.write_bytes(change(path.read_bytes()))


def edit(folder, change):
    path = folder / "manifest.json"
    m = json.loads(path.read_text())
    change(m)
    path.write_text(json.dumps(m))


BROKEN = {
    "no such folder": (lambda g, o: shutil.rmtree(o), FileFormatError, "o: no such folder"),
    "missing": (lambda g, o: (o / "float32/shape/out.npy").unlink(), FileFormatError, "out.npy: no such file; the case float32/"),
    "missing gradient": (lambda g, o: (o / "bfloat16/shape/grad_key.npy").unlink(), FileFormatError, "grad_key.npy: no such"),
    "truncated": (lambda g, o: spoil(o / "float32/shape/out.npy", lambda b: b[:-7]), FileFormatError, "out.npy: truncated or no"),
    "empty": (lambda g, o: spoil(o / "float32/shape/out.npy", lambda b: b""), FileFormatError, "out.npy: truncated or no"),
    "half a header": (lambda g, o: spoil(o / "float32/shape/out.npy", lambda b: b[:40]), FileFormatError, "out.npy: truncated"),
    "too long": (lambda g, o: spoil(o / "float32/shape/out.npy", lambda b: b + b"0"), FileFormatError, "bytes after its array"),
    "no npy": (lambda g, o: spoil(o / "float32/shape/out.npy", lambda b: b"x" * 99), FileFormatError, "out.npy: truncated or no"),
    "objects": (lambda g, o: np.save(o / "float32/shape/out.npy", np.array([None])), FileFormatError, "never loaded"),
    "shape": (
        lambda g, o: np.save(o / "float32/shape/out.npy", np.zeros((1, 3, 4, 2), "f4")),
        KernelError,
        r"\(1, 3, 4, 2\); it",
    ),
    "dtype": (
        lambda g, o: np.save(o / "float32/shape/out.npy", np.zeros((1, 4, 3, 2))),
        KernelError,
        "float64; it should be float32",
    ),
    "dtype of 16 bits": (
        lambda g, o: np.save(o / "bfloat16/shape/out.npy", np.zeros((1, 4, 3, 2), "f2")),
        KernelError,
        "should be bfloat16, or its bits as uint16",
    ),
    "integers": (lambda g, o: np.save(o / "float32/shape/lse.npy", np.zeros((1, 4, 3), "i4")), KernelError, "int32"),
    "truncated safetensors": (
        lambda g, o: (o / "float32/shape.safetensors").write_bytes(b"\x50\0\0\0\0\0\0\0{"),
        FileFormatError,
        "shape.safetensors: cannot be read",
    ),
    "safetensors without out": (
        lambda g, o: safetensors.numpy.save_file({"x": np.zeros(1)}, o / "float32/shape.safetensors"),
        FileFormatError,
        "safetensors: lacks out",
    ),
    "inputs changed": (
        lambda g, o: spoil(g / "float32/shape/key.npy", lambda b: b[:-1] + bytes([b[-1] ^ 1])),
        FileFormatError,
        "checksum",
    ),
    "inputs missing": (lambda g, o: (g / "float32/shape/key.npy").unlink(), FileFormatError, "key.npy: no such file, and man"),
    "no manifest": (lambda g, o: (g / "manifest.json").unlink(), FileFormatError, "holds no manifest.json; symattn golden -o"),
    "no JSON": (lambda g, o: (g / "manifest.json").write_text("{"), FileFormatError, "not a manifest"),
    "deep JSON": (lambda g, o: (g / "manifest.json").write_text("[" * 100_000), FileFormatError, "not a manifest"),
    "another JSON": (lambda g, o: (g / "manifest.json").write_text("[1]"), FileFormatError, "not a manifest"),
    "another version": (
        lambda g, o: spoil(g / "manifest.json", lambda b: b.replace(b'"version": 1', b'"version": 9')),
        FileFormatError,
        "files' 9; read here are",
    ),
    "a path out of the folder": (
        lambda g, o: spoil(g / "manifest.json", lambda b: b.replace(b"float32/shape/key.npy", b"../../../etc/passwd")),
        FileFormatError,
        "leads out of the folder",
    ),
    "an absolute path": (
        lambda g, o: spoil(g / "manifest.json", lambda b: b.replace(b"float32/shape/key.npy", b"/etc/passwd")),
        FileFormatError,
        "leads out of the folder",
    ),
    "no cases": (lambda g, o: edit(g, lambda m: m["cases"].clear()), FileFormatError, "manifest.json: lists no case"),
    "another dtype of an input": (
        lambda g, o: edit(g, lambda m: m["cases"][0]["tensors"][0].update(dtype="bfloat16")),
        FileFormatError,
        "npy: is not what manifest.json says: .*float32; it should be bfloat16",
    ),
    "no dtype of an input": (
        lambda g, o: edit(g, lambda m: m["cases"][0]["tensors"][0].update(dtype="float33")),
        FileFormatError,
        "is not what manifest.json says: .*float33",
    ),
    "another shape of an input": (
        lambda g, o: edit(g, lambda m: m["cases"][0]["tensors"][0].update(shape=[1, 4, 3, 6])),
        FileFormatError,
        r"npy: has shape \[.*\], and manifest.json says \[1, 4, 3, 6\]",
    ),
    "other sizes": (
        lambda g, o: edit(g, lambda m: m["cases"][0]["sizes"].update(N=10**9)),
        FileFormatError,
        "case float32/shape has the sizes .*1000000000.*, its files .*'N': 3",
    ),
    "an unknown field": (
        lambda g, o: spoil(g / "manifest.json", lambda b: b.replace(b'"causal": "bottom-right"', b'"cusal": "bottom-right"')),
        FileFormatError,
        "causal",
    ),
}


@pytest.fixture(scope="module")
def answered(folder, tmp_path_factory):
    return answers(folder, tmp_path_factory.mktemp("answers") / "o")


@pytest.mark.parametrize("name", BROKEN)
def test_broken_folders(folder, answered, tmp_path, name):
    change, kind, text = BROKEN[name]
    g, o = shutil.copytree(folder, tmp_path / "g"), shutil.copytree(answered, tmp_path / "o")
    change(g, o)
    with pytest.raises(kind, match=text):
        verify_golden(g, o)


def test_a_folder_that_is_not_empty_is_refused(tmp_path):
    (tmp_path / "x").write_text("mine")
    for target in (tmp_path, tmp_path / "x"):
        with pytest.raises(FileFormatError, match="not an empty folder"):
            write_golden(Request(Definition(), choice=SMALL), target)
    assert (tmp_path / "x").read_text() == "mine" and len(list(tmp_path.iterdir())) == 1


EVEN = Definition(score="s*tanh(s)")


def test_what_no_precision_decides_is_said(tmp_path, monkeypatch):
    """Two keys of opposite scores under an even function: each weight is 1/2, which nothing shows, and the mean is a tie."""
    one = formats.to_array([[[[1.0, 1.0]]]], "bfloat16")
    value = formats.to_array([[[[1.0], [1 + Fraction(1, 128)]]]], "bfloat16")
    fields = {"query": one, "key": np.concatenate([one, -one], axis=2), "value": value}
    monkeypatch.setattr(writing, "cases_for", lambda *a: {"tie": fields})
    done = write_golden(Request(EVEN, ("bfloat16",)), tmp_path / "g")
    m = json.loads((tmp_path / "g" / "manifest.json").read_text())
    assert done.undecided == {"bfloat16/tie": 1} and m["cases"][0]["undecided"] == {"out": [["bfloat16", [0, 0, 0, 0]]]}
    assert float(read(tmp_path / "g", "bfloat16/tie/out.npy")[0, 0, 0, 0]) in (1.0, 1 + 1 / 128)


def test_an_open_tie_in_float64_is_listed_and_counts_where_it_was_asked_for(tmp_path, monkeypatch):
    """The mean of 1 and 2^-53 lies between two numbers of float64, and clearly at one of float32."""
    one = np.ones((1, 1, 1, 2), dtype=np.float32)
    value = np.array([[[[1.0], [2.0**-53]]]], dtype=np.float32)
    fields = {"query": one, "key": np.concatenate([one, -one], axis=2), "value": value}
    monkeypatch.setattr(writing, "cases_for", lambda *a: {"tie": fields})
    for further, counted in (((), {}), (("float64",), {"float32/tie": 1})):
        done = write_golden(Request(EVEN, ("float32",), further), tmp_path / f"g{len(further)}")
        m = json.loads((tmp_path / f"g{len(further)}" / "manifest.json").read_text())
        assert done.undecided == counted and m["cases"][0]["undecided"] == {"out": [["float64", [0, 0, 0, 0]]]}


def test_the_fields_of_every_variant_build_it_again():
    for name in variants.names():
        d = Definition.of(**variants.get(name).fields)
        text = manifest.fields_text(d)
        assert Definition.of(**json.loads(json.dumps(text))) == d, name
