"""Writing golden files: inputs of the pack, results rounded once from the exact value, and what a correct kernel may differ.

The precision of the exact value is raised until each element rounds to one number of each format. Bounds are those that
`symattn verify` judges by, and hold for whatever kernel of the declared arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from symattn import arithmetic as arithmetics
from symattn import formats
from symattn.arithmetic import Arithmetic
from symattn.arithmetic.reading import declaration
from symattn.definition import Definition
from symattn.errors import FileFormatError, UnknownNameError
from symattn.intake import Array, is_extension
from symattn.tensors import in_order
from symattn.truth.enclosure import Enclosure, straddling
from symattn.truth.fields import truth_of
from symattn.verify.axiswords import axes_of
from symattn.verify.evidence import Evidence
from symattn.verify.golden import arrays, manifest
from symattn.verify.inputs import Choice, cases_for
from symattn.verify.judge import require_values
from symattn.verify.reference import Reference, check_inputs, judge_backward, judge_forward

WIDEST = "float64"
"""The format that results are written in beside that of the kernel; bounds are around it."""


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Parameters
    ----------
    definition
        What is computed; of one that starts from X or tokens, the attention in it.
    dtypes
        Formats of the inputs, each a set of cases of its own.
    rounded_to
        Further formats that results are written in.
    choice
        Which inputs of the pack, in which sizes.
    seed
        The same seed gives the same inputs.
    arithmetic
        How kernels compute that are judged by the bounds; by default what fits each dtype.
    backward
        Gradients too.
    """

    definition: Definition
    dtypes: tuple[str, ...] = ("float32",)
    rounded_to: tuple[str, ...] = ()
    choice: Choice = field(default_factory=Choice)
    seed: int = 0
    arithmetic: Arithmetic | str | Mapping[str, Any] | None = None
    backward: bool = False


@dataclass(frozen=True)
class Written:
    """What was written: names of cases, the number of files, and how many elements of a case are undecided in an asked format."""

    cases: tuple[str, ...]
    files: int
    undecided: Mapping[str, int]


def write_golden(request: Request, folder: str | Path, progress: Callable[[str], None] | None = None) -> Written:
    """Write a folder of golden files; byte for byte the same for the same request.

    Parameters
    ----------
    request
        What is asked for.
    folder
        A new or empty one. The manifest is written last, so that a folder that holds one is whole.
    progress
        Called with a line of text before each case.

    Raises
    ------
    FileFormatError
        When the folder is not empty or cannot be written.
    DefinitionError, UnknownNameError, ShapeError
        As :func:`symattn.verify.judge.verify`.
    """
    definition = request.definition.core
    require_values(definition)
    out = _Folder(_prepared(folder))
    asked = {formats.get(f).name for f in request.rounded_to}
    further = tuple(dict.fromkeys((*sorted(asked), WIDEST)))
    entries: list[dict[str, Any]] = []
    declared: dict[str, Any] = {}
    conventions: dict[str, str] = {}
    for dtype in dict.fromkeys(formats.get(d).name for d in request.dtypes):
        if formats.get(dtype).storage != dtype:
            raise UnknownNameError(f"{dtype} is no dtype of arrays; its numbers are kept in {formats.get(dtype).storage}")
        # whoever reads bounds from files judges gradients end to end, since they are not those of the kernel's own saved output
        rule = replace(declaration(request.arithmetic) or arithmetics.default_for(dtype), staged=False)
        declared[dtype] = {"name": rule.name, "words": rule.describe(), "fields": rule.to_dict()}
        for name, fields in cases_for(definition, dtype, request.seed, request.choice).items():
            if progress is not None:
                progress(f"{dtype} {name}")
            given = {k: a for k, a in fields.items() if request.backward or k not in ("grad_out", "grad_lse")}
            ref = Reference(definition, given, keep=True)
            check_inputs(rule, ref.call)
            entries.append(_case(out, ref, rule, f"{dtype}/{name}", further, request.backward))
            conventions = conventions or {k: v for k, v in ref.definition.conventions().items() if k != "heads"}
    whole = {
        "kind": manifest.KIND,
        "version": manifest.VERSION,
        "symattn": version("symattn"),
        "layout": "bhsd: (batch, head, sequence, channel); C order, little-endian",
        "definition": {"fields": manifest.fields_text(definition), "conventions": conventions},
        "seed": request.seed,
        "backward": request.backward,
        "arithmetic": declared,
        "roles": manifest.ROLES,
        "cases": entries,
    }
    out.write(manifest.NAME, manifest.dumped(whole).encode("utf-8"))
    undecided = {e["name"]: n for e in entries if (n := _open_and_asked(e, asked))}
    return Written(tuple(e["name"] for e in entries), out.count, undecided)


def _prepared(folder: str | Path) -> Path:
    """The folder, made where there is none."""
    base = Path(folder)
    if base.exists() and (not base.is_dir() or any(base.iterdir())):
        raise FileFormatError(f"{base}: is not an empty folder; golden files are written into a new one")
    try:
        base.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(f"{base}: cannot be made ({error.strerror})") from error
    return base


class _Folder:
    """Where files are written, counted."""

    def __init__(self, base: Path) -> None:
        self.base, self.count = base, 0

    def write(self, name: str, data: bytes) -> str:
        """Write a file; its checksum."""
        path = self.base / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            raise FileFormatError(f"{path}: cannot be written ({error.strerror})") from error
        self.count += 1
        return manifest.sha256(data)


def _case(out: _Folder, ref: Reference, rule: Arithmetic, name: str, further: tuple[str, ...], backward: bool) -> dict[str, Any]:
    """Write one case; its entry of the manifest."""
    own = {"lse": formats.get(rule.lse).name}
    first = formats.get(rule.output).name
    exact = _exact(ref, {first, *own.values(), *further})
    results = {n: e.to(own.get(n, first)) for n, e in exact.items()}
    kept = _evidence(ref, results, rule, backward)
    tensors: dict[str, tuple[str, Array]] = {k: ("input", a) for k, a in ref.call.fields.items()}
    for n in in_order(results):
        tensors[n] = ("result", results[n])
        tensors |= {f"{n}.{f}": ("result", exact[n].to(f)) for f in further}
        tensors[f"{n}.bound"] = ("bound", _around(kept[n], exact[n].to(WIDEST)))
    entries = [_entry(out, name, n, role, a) for n, (role, a) in tensors.items()]
    packed = arrays.safetensors({n: a for n, (_, a) in tensors.items()}, {"case": name, "kind": manifest.KIND})
    call = ref.call
    return {
        "name": name,
        "dtype": str(call.dtype),
        "input": name.partition("/")[2],
        "sizes": call.shape,
        **({"scale": repr(call.scale)} if {"query", "key"} <= set(call.sources) else {}),
        "tensors": entries,
        "undecided": {n: e.undecided for n, e in exact.items() if e.undecided},
        "safetensors": {"file": f"{name}.safetensors", "sha256": out.write(f"{name}.safetensors", packed)},
    }


def _entry(out: _Folder, case: str, name: str, role: str, a: Array) -> dict[str, Any]:
    file = f"{case}/{name}.npy"
    return {
        "name": name,
        "role": role,
        "dtype": str(a.dtype),
        "stored": np.lib.format.dtype_to_descr(arrays.stored(a).dtype),
        **({"bits_of": str(a.dtype)} if is_extension(a.dtype) else {}),
        "shape": list(a.shape),
        "axes": list(axes_of(name.partition(".")[0], a.ndim)),
        "npy": file,
        "sha256": out.write(file, arrays.npy(a)),
    }


@dataclass(frozen=True)
class _Exact:
    """An enclosure that rounds to one number of each format that is asked, but for the elements that no precision decides."""

    by_format: Mapping[str, Enclosure]
    undecided: list[list[Any]]

    def to(self, format: str) -> Array:
        return formats.to_array(self.by_format[format].mid, format)


def _exact(ref: Reference, wanted: Iterable[str]) -> dict[str, _Exact]:
    """The results, each enclosed narrowly enough for each format."""
    runs: dict[str, dict[str, Enclosure]] = {}
    at = truth_of(ref.definition, ref.fields, decide=WIDEST)
    for f in sorted(wanted):
        if any(straddling(e, f) is not None for e in at.values()):
            at = truth_of(ref.definition, ref.fields, decide=f)
        runs[f] = at
    found = {}
    for n in at:
        open_ones = [[f, list(i)] for f, run in runs.items() for i in _open(run[n], f)]
        found[n] = _Exact({f: run[n] for f, run in runs.items()}, open_ones)
    return found


def _open(e: Enclosure, format: str) -> list[tuple[int, ...]]:
    """The elements that no precision decided for a format."""
    return [tuple(at) for at in np.argwhere(e.open(format)).tolist()]


def _open_and_asked(entry: Mapping[str, Any], asked: set[str]) -> int:
    """How many elements are undecided in a format that was asked for; float64 is always there, as the centre of bounds."""
    own = {t["dtype"] for t in entry["tensors"] if t["role"] == "result" and "." not in t["name"]}
    return sum(f in asked | own for found in entry["undecided"].values() for f, _ in found)


def _evidence(ref: Reference, results: Mapping[str, Array], rule: Arithmetic, backward: bool) -> dict[str, Evidence]:
    """Exact values and bounds as the judge has them."""
    reports = judge_forward(ref, {n: a for n, a in results.items() if not n.startswith("grad_")}, rule)
    if backward:
        gradients = {n: a for n, a in results.items() if n.startswith("grad_")}
        reports += judge_backward(ref, gradients, rule, with_lse="grad_lse" in ref.call.fields)
    return {t.name: t.evidence for t in reports if t.evidence is not None}


def _around(e: Evidence, center: Array) -> Array:
    """The bounds of distances from the result in float64 rather than from the exact value: wider by what rounding it changed."""
    values = zip(e.bound.ravel().tolist(), center.ravel().tolist(), e.mid.ravel(), e.rad.ravel(), strict=True)
    found = []
    for bound, c, mid, rad in values:
        finite = np.isfinite(bound) and np.isfinite(c) and isinstance(mid, Fraction) and not isinstance(rad, float)
        if finite:
            found.append(formats.above(Fraction(bound) + abs(Fraction(c) - mid) + rad))
        else:
            found.append(bound if bound == bound else np.inf)
    return np.array(found, dtype=np.float64).reshape(e.bound.shape)
