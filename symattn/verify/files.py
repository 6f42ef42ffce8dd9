"""Recorded tensors: reading ``.npz`` and ``.safetensors`` files without running anything in them, and writing ``.npz``."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from symattn.errors import FileFormatError, InputValueError, UnknownNameError
from symattn.formats import get
from symattn.intake import Array, is_extension, to_numpy

SUFFIXES = (".npz", ".safetensors")

SAFETENSORS_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
}
"""The dtypes of safetensors files by the names that the format gives them; its own NumPy face loses bfloat16 and float8."""


def read_tensors(path: str | Path) -> dict[str, Array]:
    """The tensors of a ``.npz`` or ``.safetensors`` file by name, in the dtype that they were saved in.

    NumPy's file format knows neither bfloat16 (it comes back as two raw bytes, and is recognised) nor float8. An entry
    ``NAME.dtype`` holding a dtype's name as text says what the bits of ``NAME`` are; save an 8-bit float as ``uint8`` with it.

    Raises
    ------
    FileFormatError
        When the file does not exist, is truncated, is of another kind, or holds pickled objects.
    """
    p = Path(path)
    if p.suffix not in SUFFIXES:
        raise FileFormatError(f"{p}: a file of recorded tensors ends in {' or '.join(SUFFIXES)}")
    if not p.is_file():
        raise FileFormatError(f"{p}: no such file")
    read = _read_npz if p.suffix == ".npz" else _read_safetensors
    try:
        return read(p)
    except FileFormatError:
        raise
    except (OSError, EOFError, MemoryError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise FileFormatError(f"{p}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    if "pickle" in str(error):
        return "holds pickled objects, which are programs and are never loaded; save plain arrays"
    return f"cannot be read; it is truncated or not of its kind ({error})"


def _read_npz(p: Path) -> dict[str, Array]:
    with p.open("rb") as file:
        archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise FileFormatError(f"{p}: holds a single array, not an archive of named ones")
        with archive:
            raw = {name: archive[name] for name in archive.files}
    kinds = {
        n.removesuffix(".dtype"): str(a) for n, a in raw.items() if n.endswith(".dtype") and a.dtype.kind == "U" and a.ndim == 0
    }
    found = {}
    for name, a in raw.items():
        if name.endswith(".dtype") and name.removesuffix(".dtype") in kinds:
            continue
        if name in kinds:
            a = _as_format(a, name, kinds[name], p)
        elif a.dtype.kind not in "USMm":  # text beside the tensors, such as NAME.status, is no tensor
            a = _checked(a, name, p)
        else:
            continue
        found[name] = a
    return found


def _as_format(a: Array, name: str, kind: str, p: Path) -> Array:
    try:
        dtype = get(kind).dtype
    except UnknownNameError as error:
        raise FileFormatError(f"{p}: {name}.dtype: {error}") from error
    if a.dtype == dtype:
        return a
    if a.dtype.kind not in "uiV" or a.dtype.itemsize != dtype.itemsize:
        raise FileFormatError(f"{p}: {name} has dtype {a.dtype}, whose bits cannot be those of {kind}")
    return np.ascontiguousarray(a).view(dtype).reshape(a.shape)


def _checked(a: Array, name: str, p: Path) -> Array:
    try:
        return to_numpy(a, name)
    except InputValueError as error:
        raise FileFormatError(f"{p}: {error}") from error


def _read_safetensors(p: Path) -> dict[str, Array]:
    import safetensors

    try:
        entries = safetensors.deserialize(p.read_bytes())  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise FileFormatError(f"{p}: {_reason(error)}") from error
    found = {}
    for name, entry in entries:
        kind = SAFETENSORS_DTYPES.get(entry["dtype"])
        if kind is None:
            raise FileFormatError(f"{p}: {name} has dtype {entry['dtype']}; known are {', '.join(SAFETENSORS_DTYPES)}")
        dtype = get(kind).dtype if kind.startswith(("float", "bfloat")) else np.dtype(kind)
        found[name] = np.frombuffer(bytes(entry["data"]), dtype=dtype).reshape(entry["shape"])
    return found


def write_npz(path: str | Path, tensors: Mapping[str, Array]) -> None:
    """Write arrays to a ``.npz`` file that :func:`read_tensors` brings back in the dtype that they have.

    An array of bfloat16 or float8 is written as its bits, with an entry ``NAME.dtype`` beside it.

    Raises
    ------
    FileFormatError
        When the file cannot be written or its name does not end in ``.npz``.
    """
    p = Path(path)
    if p.suffix != ".npz":
        raise FileFormatError(f"{p}: the file to write ends in .npz")
    entries: dict[str, Array] = {}
    for name, a in tensors.items():
        if is_extension(a.dtype):
            entries[name] = np.ascontiguousarray(a).view(f"uint{8 * a.dtype.itemsize}").reshape(a.shape)
            entries[f"{name}.dtype"] = np.array(str(a.dtype))
        else:
            entries[name] = a
    try:
        np.savez(p, **entries)  # type: ignore[arg-type]  # NumPy's own stub takes the names for its flag
    except OSError as error:
        raise FileFormatError(f"{p}: cannot be written ({error.strerror})") from error
