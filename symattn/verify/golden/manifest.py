"""The manifest of a folder of golden files: what is in it, in words and as data, with a checksum of every file.

Paths in a manifest are relative, in forward slashes, and stay inside the folder: one that does not is refused when it is read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from symattn.arithmetic import Arithmetic
from symattn.definition import Definition
from symattn.errors import FileFormatError, KernelError, SymattnError, UnknownNameError
from symattn.grammarprint import write_value
from symattn.intake import Array
from symattn.verify.golden.arrays import in_format, read_npy

NAME = "manifest.json"
KIND, VERSION = "symattn golden files", 1

ROLES = {
    "input": "what the kernel is given, exactly these numbers",
    "result": "the exact value, rounded once, to nearest, ties to even",
    "bound": "float64: a correct kernel of this arithmetic is within it of NAME.float64, element by element; inf asks nothing",
}


def fields_text(definition: Definition) -> dict[str, Any]:
    """The fields of a definition that are not at their default, as text that builds it again.

    >>> fields_text(Definition(causal="top-left", window=(4, None), score="t*s", params={"t": "1/3"}))
    {'causal': 'top-left', 'window': '4,-1', 'score': 's*t', 'params': {'t': '1/3'}}
    """
    found: dict[str, Any] = {}
    for name, value in definition.changed.items():
        found[name] = {k: write_value(v) for k, v in value.items()} if name == "params" else write_value(value)
    return found


def dumped(manifest: Mapping[str, Any]) -> str:
    """The text of a manifest, the same each time; lists of plain values in a line.

    >>> print(dumped({"shape": [1, 2], "name": "[x]"}), end="")
    {
     "shape": [1, 2],
     "name": "[x]"
    }
    """
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
    return _PLAIN_LIST.sub(lambda m: "[" + re.sub(r",\n\s*", ", ", m[1]) + "]", text) + "\n"


def sha256(data: bytes) -> str:
    """The checksum of a file's bytes, hexadecimal."""
    return hashlib.sha256(data).hexdigest()


_PLAIN_LIST = re.compile(r"\[\n\s*([^\[\]{}]*?)\n\s*\]")  # no string of a JSON text holds a line break


@dataclass(frozen=True)
class Case:
    """One case of a manifest: its name ``DTYPE/INPUT``, and its tensors' entries by name."""

    name: str
    dtype: str
    input: str
    sizes: Mapping[str, int]
    arithmetic: Arithmetic
    tensors: Mapping[str, Mapping[str, Any]]

    @property
    def results(self) -> dict[str, Mapping[str, Any]]:
        """The entries of the results in the kernel's own format, by field name."""
        return {n: t for n, t in self.tensors.items() if t["role"] == "result" and "." not in n}


@dataclass(frozen=True)
class Manifest:
    """A manifest that was read and checked."""

    folder: Path
    definition: Definition
    backward: bool
    cases: tuple[Case, ...]

    def inputs(self, case: Case) -> dict[str, Array]:
        """The inputs of a case by field name.

        Raises
        ------
        FileFormatError
            When a file is missing or is not the one that was written.
        """
        found = {}
        for name, entry in case.tensors.items():
            if entry["role"] != "input":
                continue
            path = self.folder / entry["npy"]
            if not path.is_file():
                raise FileFormatError(f"{path}: no such file, and {NAME} lists it")
            if sha256(path.read_bytes()) != entry["sha256"]:
                raise FileFormatError(f"{path}: is not the file that was written: its checksum differs from that in {NAME}")
            found[name] = _described(read_npy(path), entry, path)
        return found


def _described(a: Array, entry: Mapping[str, Any], path: Path) -> Array:
    """An input in the dtype that the manifest says, refused where the manifest describes another array."""
    try:
        a = a if str(a.dtype) == entry["dtype"] else in_format(a, entry["dtype"], str(path))
    except (KernelError, UnknownNameError) as error:
        raise FileFormatError(f"{path}: is not what {NAME} says: {error}") from error
    if list(a.shape) != entry["shape"]:
        raise FileFormatError(f"{path}: has shape {list(a.shape)}, and {NAME} says {entry['shape']}")
    return a


def read(folder: str | Path) -> Manifest:
    """The manifest of a folder.

    Raises
    ------
    FileFormatError
        When there is none, or it is not what :mod:`symattn.verify.golden.writing` writes.
    """
    base = Path(folder)
    path = base / NAME
    if not path.is_file():
        raise FileFormatError(f"{base}: holds no {NAME}; symattn golden -o {base} makes one")
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        if raw["kind"] != KIND or raw["version"] != VERSION:
            raise FileFormatError(f"{path}: is {raw['kind']!r} {raw['version']!r}; read here are {KIND!r} {VERSION}")
        arithmetics = {d: Arithmetic.from_dict(a["fields"]) for d, a in raw["arithmetic"].items()}
        cases = tuple(_case(c, arithmetics, path) for c in raw["cases"])
        if not cases:
            raise FileFormatError(f"{path}: lists no case, so that there is nothing to judge")
        return Manifest(base, Definition.of(**raw["definition"]["fields"]), bool(raw["backward"]), cases)
    except FileFormatError:
        raise
    except SymattnError as error:
        raise FileFormatError(f"{path}: {error}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileFormatError(
            f"{path}: is not a manifest as symattn golden writes it ({type(error).__name__}: {error})"
        ) from error


def _case(raw: Mapping[str, Any], arithmetics: Mapping[str, Arithmetic], path: Path) -> Case:
    tensors = {str(t["name"]): t for t in raw["tensors"]}
    for t in tensors.values():
        if t["role"] not in ROLES or not isinstance(t["sha256"], str):
            raise ValueError(f"the tensor {t['name']!r} is not described")
        _inside(t["npy"], path)
    _inside(raw["name"], path)
    return Case(raw["name"], raw["dtype"], raw["input"], dict(raw["sizes"]), arithmetics[raw["dtype"]], tensors)


def _inside(text: str, path: Path) -> None:
    """Refuse a path that leads out of the folder."""
    p = PurePosixPath(text)
    if p.is_absolute() or not p.parts or ".." in p.parts or "\\" in text or ":" in text or "\0" in text:
        raise FileFormatError(f"{path}: the path {text!r} leads out of the folder")
