"""Arrays as files, byte for byte the same each time: ``.npy`` and ``.safetensors``, of any dtype, written and read.

NumPy's own format knows neither bfloat16 nor 8-bit floats: such an array is stored as the unsigned integers of its bits, and
the manifest says which format they are.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from symattn import formats
from symattn.errors import FileFormatError, KernelError
from symattn.intake import Array, is_extension
from symattn.verify.files import SAFETENSORS_DTYPES

CODES = {dtype: code for code, dtype in SAFETENSORS_DTYPES.items()}


def stored(a: Array) -> Array:
    """An array as NumPy's file format can hold it, little-endian and in C order.

    >>> stored(formats.to_array([1, 2], "bfloat16"))
    array([16256, 16384], dtype=uint16)
    """
    a = np.ascontiguousarray(a).reshape(a.shape)
    if is_extension(a.dtype):
        a = a.view(f"uint{8 * a.dtype.itemsize}").reshape(a.shape)
    return a.astype(a.dtype.newbyteorder("<"), copy=False)


def npy(a: Array) -> bytes:
    """The bytes of a ``.npy`` file, version 1.0."""
    target = io.BytesIO()
    np.lib.format.write_array(target, stored(a), version=(1, 0), allow_pickle=False)
    return target.getvalue()


def safetensors(tensors: Mapping[str, Array], about: Mapping[str, str]) -> bytes:
    """The bytes of a ``.safetensors`` file: the length of a JSON header, the header, and the tensors, widest dtype first.

    >>> safetensors({"x": np.array([1.0], dtype="float32")}, {})[8:-4]
    b'{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  '
    """
    header: dict[str, object] = {"__metadata__": dict(about)} if about else {}
    body, at = [], 0
    for name in sorted(tensors, key=lambda n: (-tensors[n].dtype.itemsize, n)):
        a = tensors[name]
        data = stored(a).tobytes()
        header[name] = {"dtype": CODES[str(a.dtype)], "shape": list(a.shape), "data_offsets": [at, at + len(data)]}
        body.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=True).encode("ascii")
    text += b" " * (-len(text) % 8)  # so that the numbers start at a multiple of eight bytes
    return struct.pack("<Q", len(text)) + text + b"".join(body)


def read_npy(path: Path) -> Array:
    """The array of a ``.npy`` file as it is stored.

    Raises
    ------
    FileFormatError
        When the file does not exist, is truncated, is of another kind, or holds pickled objects.
    """
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file")
    try:
        with path.open("rb") as file:
            found = np.lib.format.read_array(file, allow_pickle=False)
            rest = file.read(1)
    except (OSError, EOFError, MemoryError, ValueError, TypeError, SyntaxError) as error:
        reason = "holds pickled objects, which are never loaded" if "pickle" in str(error) else f"truncated or no .npy ({error})"
        raise FileFormatError(f"{path}: {reason}") from error
    if rest:
        raise FileFormatError(f"{path}: has bytes after its array; it is not what was meant to be written")
    return np.asarray(found)


def in_format(a: Array, dtype: str, where: str) -> Array:
    """An array that came back, in the dtype that it should have: bits as integers or raw bytes are taken for numbers.

    Raises
    ------
    KernelError
        When it has another dtype.

    >>> one = in_format(np.array([16256], dtype="uint16"), "bfloat16", "out.npy")
    >>> one.dtype, one.astype(float)
    (dtype(bfloat16), array([1.]))
    """
    want = formats.get(dtype).dtype
    a = a.astype(a.dtype.newbyteorder("="), copy=False)
    if a.dtype == want:
        return a
    if is_extension(want) and a.dtype.kind in "uV" and a.dtype.itemsize == want.itemsize:
        return np.ascontiguousarray(a).view(want).reshape(a.shape)
    bits = f", or its bits as uint{8 * want.itemsize}" if is_extension(want) else ""
    raise KernelError(f"{where} has dtype {a.dtype}; it should be {dtype}{bits}")
