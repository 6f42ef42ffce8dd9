"""Inputs of a user's own: tensors from a file or under field names, checked, with seeded gradients where they bring none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from symattn.binding import bind
from symattn.definition import Definition
from symattn.errors import FileFormatError, LimitError, ShapeError
from symattn.fields import INPUT_FIELDS
from symattn.formats import FORMATS
from symattn.intake import Array, to_numpy
from symattn.tensors import implied, laid_out
from symattn.verify.files import read_tensors
from symattn.verify.kernels.call import BY_FIELD, Call
from symattn.verify.kernels.user import OUTPUTS
from symattn.verify.savefile import cases_in

__all__ = ["MOST", "OwnInputs", "own_cases", "own_inputs", "refuse_other_dtypes"]

MOST = 2**23
"""The most scores, B H n m, that a run on a user's own inputs takes."""


@dataclass(frozen=True)
class OwnInputs:
    """A user's inputs: the definition that they imply, arrays by field name in the layout ``bhsd``, and remarks."""

    name: str
    definition: Definition
    fields: dict[str, Array]
    remarks: tuple[str, ...]


def own_cases(source: str | Mapping[str, Any], definition: Definition, **options: Any) -> dict[str, OwnInputs]:
    """The inputs of a run by case: one, ``inputs``, or those that names ``CASE/NAME`` tell apart, as ``--save`` writes them.

    Parameters
    ----------
    source, definition, options
        As for :func:`own_inputs`.
    """
    name = source if isinstance(source, str) else "arrays"
    tensors = read_tensors(source) if isinstance(source, str) else {k: v for k, v in source.items() if v is not None}
    several = any("/" in n for n in tensors)
    parts = cases_in(tensors) if several else {"inputs": dict(tensors)}
    return {
        case: own_inputs(part, definition, name=f"{name}: {case}" if several else name, **options) for case, part in parts.items()
    }


def own_inputs(
    source: str | Mapping[str, Any],
    definition: Definition,
    *,
    layout: str = "bhsd",
    backward: bool = False,
    seed: int = 0,
    name: str = "",
) -> OwnInputs:
    """The inputs of a run that a user brings.

    Parameters
    ----------
    source
        A ``.npz`` or ``.safetensors`` file, or arrays by field name: ``query key value``, what the definition reads, and
        ``grad_out grad_lse`` where gradients are judged. Tensors say by their presence that the definition has them; results
        among them are left out.
    definition
        What the kernel should compute.
    layout
        Of the arrays.
    backward
        Whether gradients are judged: incoming ones that are missing are then drawn, N(0, 1), from the seed.
    name
        What messages call the source; by default the file.

    Raises
    ------
    FileFormatError
        When the file cannot be read, lacks a tensor, or holds tensors that fit neither each other nor the definition.
    LimitError
        For more scores than are looked at.
    """
    name = name or (source if isinstance(source, str) else "arrays")
    tensors = read_tensors(source) if isinstance(source, str) else {k: to_numpy(v, k) for k, v in source.items() if v is not None}
    tensors = laid_out(tensors, layout)
    missing = [n for n in Call(definition, {}).sources if n not in tensors]
    if missing:
        raise FileFormatError(f"{name}: lacks {', '.join(missing)}; it holds {', '.join(sorted(tensors)) or 'nothing'}")
    wanted = implied(definition, tensors)
    known = (INPUT_FIELDS | set(wanted.unbound)) - set(OUTPUTS)
    fields = {k: a for k, a in tensors.items() if k in known}
    others = [k for k in sorted(set(tensors) - set(fields)) if not _is_result(k)]
    remarks = [f"{name} holds {k!r}, which is no input of this definition" for k in others]
    refuse_other_dtypes(name, wanted, fields)
    _refuse_large(name, Call(wanted, fields).shape)
    try:
        bound = bind(wanted, fields)
    except ShapeError as error:
        raise FileFormatError(f"{name}: {error}") from error
    if backward and "query" in fields:
        r = np.random.default_rng(seed)
        shape = (*fields["query"].shape[:3], fields["value"].shape[3])
        for grad, size, is_output in (("grad_out", shape, True), ("grad_lse", shape[:3], "L" in bound.program.outputs)):
            if is_output and grad not in fields:
                fields[grad] = r.normal(size=size).astype(fields["query"].dtype)
                remarks.append(f"{name} holds no {grad}: it was drawn, N(0, 1), from the seed")
    return OwnInputs(name, wanted, fields, tuple(remarks))


def _is_result(name: str) -> bool:
    return name in OUTPUTS or (name.startswith("grad_") and name not in INPUT_FIELDS)


def refuse_other_dtypes(name: str, definition: Definition, fields: Mapping[str, Array]) -> None:
    """Refuse inputs that no kernel is judged on: integers where real numbers belong, and floats wider than float64.

    Raises
    ------
    FileFormatError
        Naming the field, its dtype, and those that are allowed.
    """
    real = [n for n in Call(definition, {}).sources if n != "tokens" and BY_FIELD[n].kind not in ("integer", "boolean")]
    for field, a in fields.items():
        if (a.dtype.kind == "f" and a.dtype.itemsize > 8) or (field in real and a.dtype.kind in "biu"):
            allowed = ", ".join(f.name for f in FORMATS.values() if f.storage == f.name)
            raise FileFormatError(f"{name}: {field} has dtype {a.dtype}; it should be one of {allowed}")


def _refuse_large(name: str, sizes: Mapping[str, int]) -> None:
    b, h, n = (sizes.get(letter, 1) for letter in ("B", "H", "N"))
    m = sizes.get("M", n)
    if b * h * n * m > MOST:
        raise LimitError(
            f"{name}: {b * h * n * m} scores (B={b}, H={h}, N={n}, M={m}): at most {MOST} are judged in one run. Give fewer "
            "queries or keys, or fewer batches and heads at a time"
        )
