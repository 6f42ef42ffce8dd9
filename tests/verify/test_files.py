"""Recorded files: every dtype comes back, and what is broken is refused without being run."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from symattn.errors import FileFormatError
from symattn.formats import get
from symattn.verify.files import SAFETENSORS_DTYPES, read_tensors, write_npz


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "bool", "int64"])
def test_npz_round_trip(tmp_path, name):
    dtype = get(name).dtype if "float" in name else np.dtype(name)
    a = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    write_npz(tmp_path / "t.npz", {"query": a, "scalar": a[0, 0, ...].reshape(())})
    back = read_tensors(tmp_path / "t.npz")
    assert sorted(back) == ["query", "scalar"]
    assert back["query"].dtype == dtype
    assert back["query"].tobytes() == a.tobytes()
    assert back["scalar"].shape == ()


def test_npz_of_others_with_bfloat16(tmp_path):
    a = np.array([1.5, 2.5]).astype(get("bf16").dtype)
    np.savez(tmp_path / "t.npz", query=a)
    assert read_tensors(tmp_path / "t.npz")["query"].dtype == a.dtype


def test_text_beside_the_tensors_is_passed_over(tmp_path):
    np.savez(tmp_path / "t.npz", out=np.ones(2), **{"out.status": np.array(["exact", "exact"])})
    assert list(read_tensors(tmp_path / "t.npz")) == ["out"]


@pytest.mark.parametrize("kind, text", [("bfloat17", "bfloat16"), ("bfloat16", "bits")])
def test_a_wrong_dtype_entry_is_refused(tmp_path, kind, text):
    np.savez(tmp_path / "t.npz", out=np.ones(2, np.uint8), **{"out.dtype": np.array(kind)})
    with pytest.raises(FileFormatError, match=text):
        read_tensors(tmp_path / "t.npz")


def safetensors_file(path, entries):
    header, data = {}, b""
    for name, (kind, shape, raw) in entries.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def test_safetensors_every_dtype(tmp_path):
    """Files written byte by byte as the format describes them, not by the library that reads them."""
    entries, want = {}, {}
    for kind, name in SAFETENSORS_DTYPES.items():
        a = np.array([[0, 1, 1]]).astype(get(name).dtype if "float" in name else name)
        entries[kind], want[kind] = (kind, [1, 3], a.tobytes()), a
    back = read_tensors(safetensors_file(tmp_path / "t.safetensors", entries))
    assert {k: (v.dtype, v.tolist()) for k, v in back.items()} == {k: (v.dtype, v.tolist()) for k, v in want.items()}


def test_safetensors_written_by_torch(require, tmp_path):
    torch = require("torch")
    from safetensors.torch import save_file

    save_file({"query": torch.ones(2, 3, dtype=torch.bfloat16)}, tmp_path / "t.safetensors")
    assert read_tensors(tmp_path / "t.safetensors")["query"].dtype == get("bf16").dtype


@pytest.mark.parametrize("keep", [0, 3, 100, 4000, -5])
@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_truncated(tmp_path, keep, suffix):
    p = tmp_path / f"t{suffix}"
    if suffix == ".npz":
        np.savez(p, query=np.arange(1000.0))
    else:
        safetensors_file(p, {"query": ("F64", [1000], np.arange(1000.0).tobytes())})
    p.write_bytes(p.read_bytes()[:keep])
    with pytest.raises(FileFormatError, match=p.name):
        read_tensors(p)


def test_pickled_is_not_loaded(tmp_path):
    np.savez(tmp_path / "t.npz", query=np.array([None, {}], dtype=object))
    with pytest.raises(FileFormatError, match="pickled"):
        read_tensors(tmp_path / "t.npz")


def test_flipped_bytes_inside(tmp_path):
    p = tmp_path / "t.npz"
    np.savez_compressed(p, query=np.arange(1000.0))
    raw = bytearray(p.read_bytes())
    raw[300:320] = bytes(20)
    p.write_bytes(raw)
    with pytest.raises(FileFormatError):
        read_tensors(p)


def test_other_files(tmp_path):
    np.save(tmp_path / "a.npy", np.ones(2))
    (tmp_path / "a.npy").rename(tmp_path / "a.npz")
    with pytest.raises(FileFormatError, match=r"a\.npz"):
        read_tensors(tmp_path / "a.npz")
    with pytest.raises(FileFormatError, match="no such file"):
        read_tensors(tmp_path / "b.npz")
    with pytest.raises(FileFormatError, match=r"\.npz or \.safetensors"):
        read_tensors(tmp_path / "b.txt")
    with pytest.raises(FileFormatError, match="cannot be written"):
        write_npz(tmp_path / "no" / "such.npz", {"a": np.ones(1)})
    with pytest.raises(FileFormatError, match="F4"):
        read_tensors(safetensors_file(tmp_path / "c.safetensors", {"a": ("F4", [2], b"\0")}))
