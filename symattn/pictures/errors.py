"""The errors of a judged kernel, in units of the bound of each element, from the file that ``symattn verify --save`` writes.

One panel of a tensor is heads by tiles of rows, the largest of each tile; beside it is the head with the largest error, element
by element: query by key for the gradient of a mask or a bias, position by component otherwise. Above 1 no correct kernel comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from symattn.errors import FileFormatError, LimitError, UnknownNameError, nearest
from symattn.pictures.chart import MOST_CELLS, Chart, Panel
from symattn.verify.files import read_tensors

TILES = 64
"""Tiles of rows in a panel, at most."""
PARTS = (".exact", ".radius", ".bound")
PAIRS = ("attn_mask", "bias")
"""Tensors whose last two axes are queries and keys."""


def errors(path: str | Path, case: str = "", tensor: str = "", tile: int = 0) -> Chart:
    """The errors of one case of a judged run.

    Parameters
    ----------
    path
        A ``.npz`` file with ``CASE/NAME``, ``.exact``, ``.radius`` and ``.bound``.
    case
        Which one; empty: the one with the largest error.
    tensor
        Only this output (``out``, ``lse``, ``grad_query`` ...); empty: all.
    tile
        Rows of a tile; 0: as few as give at most 64 tiles.

    Raises
    ------
    FileFormatError
        When the file cannot be read or holds no judged output.
    UnknownNameError
        When it has no such case or output.
    LimitError
        When a tensor is too large to be looked at.
    """
    found = judged(path)
    worst = max(found, key=lambda name: max(_most(u) for u in found[name].values()))
    name = case or worst
    if name not in found:
        raise UnknownNameError(f"{path}: there is no case {name!r}. {nearest(name, list(found))}")
    if tensor and tensor not in found[name]:
        raise UnknownNameError(f"{path}: the case {name!r} has no output {tensor!r}. {nearest(tensor, list(found[name]))}")
    chosen = {t: u for t, u in found[name].items() if tensor in ("", t)}
    rows = tuple(_panels(t, u, tile) for t, u in chosen.items())
    most = max(map(_most, chosen.values()))
    says = "Errors in units of the bound of each element; beyond 1 (crossed) no correct kernel of the declared arithmetic comes."
    return Chart(f"{Path(path).stem}, input {name}", says, rows, "error / bound", 0.0, min(most, 1.0) or 1.0)


def judged(path: str | Path) -> dict[str, dict[str, Any]]:
    """Case -> output -> errors in units of the bound: NaN where nothing is promised, infinite where any error is too large."""
    tensors = read_tensors(path)
    found: dict[str, dict[str, Any]] = {}
    for name in tensors:
        if name.endswith(".bound"):
            base = name.removesuffix(".bound")
            case, _, field = base.rpartition("/")
            found.setdefault(case or "recorded", {})[field] = _units(base, tensors, path)
    if not found:
        raise FileFormatError(f"{path}: holds no judged output; write one with: symattn verify KERNEL --save FILE.npz")
    return found


def _units(base: str, tensors: Mapping[str, Any], path: str | Path) -> Any:
    parts = {end: tensors.get(base + end) for end in ("", *PARTS)}
    missing = [base + end for end, a in parts.items() if a is None]
    if missing:
        raise FileFormatError(f"{path}: {missing[0]!r} is missing beside {base + '.bound'!r}")
    if len({a.shape for a in parts.values() if a is not None}) > 1:
        raise FileFormatError(f"{path}: {base!r} and what belongs to it differ in shape")
    kernel, exact, radius, bound = (np.asarray(a, dtype=np.float64) for a in parts.values())
    if kernel.size > MOST_CELLS:
        raise LimitError(f"{path}: {base!r} has {kernel.size} elements; at most {MOST_CELLS} are drawn")
    with np.errstate(all="ignore"):
        error = np.abs(kernel - exact)
        error[(kernel == exact) | (np.isnan(kernel) & np.isnan(exact))] = 0.0
        error[np.isnan(error)] = np.inf
        units = error / bound
    units[error <= radius] = np.minimum(units[error <= radius], 1.0)  # the radius alone says nothing against the kernel
    units[(error == 0) & ~np.isinf(bound)] = 0.0
    units[np.isinf(bound)] = np.nan
    return units


def _most(units: Any) -> float:
    return float(np.nanmax(units, initial=0.0))


def _panels(name: str, units: Any, tile: int) -> tuple[Panel, ...]:
    if units.ndim < 3:
        flat = np.atleast_2d(units)
        return (Panel(name, flat, (), (), "row", "element", origin=0, outside=flat > 1),)
    last = units.ndim > 3 or name.removeprefix("grad_") in PAIRS
    rows = units if last else units[..., None]
    heads = rows.reshape(-1, *rows.shape[-2:])
    leading = units.shape[:-2] if last else units.shape[:-1]
    size = tile or 1 << max(0, int(np.ceil(np.log2(rows.shape[-2] / TILES))))
    tiles = _largest(heads, size)
    names = tuple(", ".join(map(str, at)) for at in np.ndindex(*leading))
    axis = "position" if size == 1 else f"tile of {size} positions"
    pair = name.removeprefix("grad_") in PAIRS
    first = Panel(f"{name}: largest of each", tiles, names, (), "batch, head", axis, origin=0, outside=tiles > 1)
    if not last:
        return (first,)
    most = int(np.nan_to_num(heads.reshape(len(heads), -1), nan=-1.0).max(axis=1).argmax())
    axes = ("query", "key") if pair else ("position", "component")
    worst = Panel(f"{name}: batch, head {names[most]}", heads[most], (), (), *axes, origin=0, outside=heads[most] > 1)
    return (first, worst)


def _largest(heads: Any, size: int) -> Any:
    """The largest error of each head and tile of rows; NaN where nothing is promised in all of it."""
    count = -(-heads.shape[1] // size)
    padded = np.full((len(heads), count * size, heads.shape[2]), -1.0)
    padded[:, : heads.shape[1]] = np.nan_to_num(heads, nan=-1.0, posinf=np.inf)
    out = padded.reshape(len(heads), count, -1).max(axis=2)
    return np.where(out < 0, np.nan, out)
