"""From an emulated kernel to a hypothesis: what it returns on a situation, and how far a real one may be from that.

An emulation stands for a fault that exact algebra cannot show, because it is one of range, format or tile. The reach of a number
is what the declared arithmetic allows where nothing is wrong, some roundings of the result, and what hangs on ties where steps
are rounded: the emulation is repeated with every rounded number moved up and down by the errors that it may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from symattn import formats
from symattn.intake import Array
from symattn.verify.emulators import backward as emulated_backward
from symattn.verify.emulators import forward as emulated_forward
from symattn.verify.emulators.machine import Machine, within
from symattn.verify.faults.fault import SAME, Alternative, Prediction, Predictions, Situation
from symattn.verify.faults.heads import starts_from_qkv
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.flash import Setting
from symattn.verify.kernels.ours import Flash

TILES = (16, 32, 64, 128, 256, 512)
"""Tiles of keys that are tried."""
SMALL = (8, 4, 2, 1, 24, 48, 80, 96, 112)
"""Those that are tried after them where it is cheap: smaller ones, and widths of tensor cores that are no power of two."""
MANY, MOST = 64, 2048
"""How many tiles an emulation takes: of any fault, and of what is rounded once a tile, which shows on long rows alone."""
ERRORS = 64
"""Unit roundoffs that a number may be off by before it is rounded."""
RESULT = 4
"""Unit roundoffs of the result that are allowed beside the declared bound."""
SLACK = 4
"""Unit roundoffs of a 16-bit buffer, relative to the size of what was added up in it, that hang on the order of sums."""
BUFFERS = frozenset({"term", "partial", "weight"})
"""Steps whose roundings come again with every key, or have a bound of their own."""
SUM = 32
"""Unit roundoffs of the sums, relative to the size of what is added up, that a wrong row may be off by."""
FAR = 2e4
"""Scores up to which their own rounding, relative to their size, is allowed for in a wrong row."""

Rewrite = Callable[[Situation], Iterator[Alternative]]
Machines = Callable[[Situation], Iterator[tuple[str, Machine]]]


@dataclass(frozen=True)
class Emulation:
    """A situation as emulated kernels take it."""

    situation: Situation

    @property
    def call(self) -> Call:
        """The arrays."""
        return self.situation.reference.call

    @cached_property
    def setting(self) -> Setting:
        """The conventions."""
        return Flash().setting(self.call)

    def outputs(self, machine: Machine) -> dict[str, Array]:
        """Output and log-sum-exp; the latter where the definition does not return it too, since a backward starts from it."""
        c = self.call
        out, lse = emulated_forward.forward(c.query, c.key, c.value, self.setting, machine)
        out = within(out, formats.get(self.situation.arithmetic.output))
        return {"out": out, "lse": lse}

    def gradients(self, machine: Machine, saved: dict[str, Array]) -> dict[str, Array]:
        """Gradients by field name, from an output and LSE."""
        c, s = self.call, self.situation
        d, fields = s.definition, s.fields
        lse = fields["grad_lse"] if s.with_lse and "grad_lse" in fields else None
        g = emulated_backward.backward(
            c.query, c.key, c.value, fields["grad_out"], saved["out"], saved["lse"], lse, self.setting, machine
        )
        found = {n: g[n] for n in ("grad_query", "grad_key", "grad_value")}
        if d.sink:
            found["grad_sinks"] = g["sinks"]
        if d.alibi and d.alibi_slopes == "given":
            found["grad_alibi_slopes"] = g["slopes"]
        for name, axes, given in (("attn_mask", d.mask_axes, d.attn_mask == "additive"), ("bias", d.bias_axes, d.bias)):
            if given:
                spread = c.spread(name, axes)
                repeated = tuple(k for k in range(4) if spread.shape[k] == 1 and g["score"].shape[k] != 1)
                found[f"grad_{name}"] = g["score"].sum(repeated, keepdims=True).reshape(fields[name].shape)
        return {n: within(x, formats.get(s.arithmetic.output)) for n, x in found.items()}


def applicable(s: Situation) -> bool:
    """Whether emulated kernels know every field of the definition, and no score is negated or capped by a text."""
    return starts_from_qkv(s) and s.definition.normalizer == "softmax" and Flash().unsupported(s.reference.call) is None


def plain(s: Situation, **changes: Any) -> Machine:
    """A correct kernel in the range of the declared arithmetic."""
    a = s.arithmetic
    stored = a.store if formats.get(a.store).emax < formats.get(a.compute).emax else None
    return Machine(range=a.compute, stored=stored, **changes)


def in_forward(machines: Machines) -> Rewrite:
    """A fault of the forward pass; the backward is correct and starts from what was saved."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if applicable(s):
            for label, machine in machines(s):
                yield Alternative(label, compute=_Computed(s, machine, of_backward=False))

    return rewrite


def in_backward(machines: Machines) -> Rewrite:
    """A fault of the backward pass alone."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if applicable(s) and s.has_gradient:
            for label, machine in machines(s):
                yield Alternative(label, compute=_Computed(s, machine, of_backward=True))

    return rewrite


def tiled(
    change: Callable[[Situation], Sequence[tuple[str, dict[str, Any]]]], tiles: Sequence[int] = TILES, most: int = MANY
) -> Machines:
    """The same fault in tiles of several sizes; the tile is in the label.

    Small tiles are tried where there are at most so many: a step of an emulated kernel costs the same, however small it is.
    """

    def machines(s: Situation) -> Iterator[tuple[str, Machine]]:
        few = [tile for tile in SMALL if s.sizes.get("M", 0) <= most * tile]
        for label, changes in change(s):
            for tile in (*tiles, *few):
                yield f"{label}, tile {tile}".removeprefix(", "), plain(s, tile=tile, **changes)

    return machines


def untiled(change: Callable[[Situation], Sequence[tuple[str, dict[str, Any]]]]) -> Machines:
    """A fault on which tiles have no influence."""
    return lambda s: ((label, plain(s, **changes)) for label, changes in change(s))


@dataclass(frozen=True)
class _Computed:
    """What a faulty kernel returns, computed when it is asked for."""

    situation: Situation
    machine: Machine
    of_backward: bool

    def __call__(self, forward: bool, backward: bool) -> Predictions:
        s = self.situation
        found: Predictions = {}
        if forward:
            found |= correct(s, backward=False) if self.of_backward else self._outputs()
        if backward:
            given_over = s.saved is not None and not self.of_backward
            found |= correct(s, backward=True) if given_over else self._gradients()
        return found

    def _outputs(self) -> Predictions:
        e = Emulation(self.situation)
        return self._predictions(e.outputs, correct(self.situation, backward=False), self._size())

    def _gradients(self) -> Predictions:
        e, s = Emulation(self.situation), self.situation

        def run(machine: Machine) -> dict[str, Array]:
            first = plain(s) if self.of_backward else machine
            saved = dict(s.saved or {})
            if not {"out", "lse"} <= set(saved):
                saved = e.outputs(first) | saved
            return e.gradients(machine if self.of_backward else plain(s), saved)

        return self._predictions(run, correct(s, backward=True), {})

    def _predictions(self, run: Callable[[Machine], dict[str, Array]], base: Predictions, size: dict[str, Array]) -> Predictions:
        """The emulated values, with the reach of the correct ones and what rounding adds."""
        a = self.situation.arithmetic
        values = run(self.machine)
        moved = [run(self.machine.nudged(by)) for by in self._nudges()]
        found: Predictions = {}
        with np.errstate(all="ignore"):
            for name, value in values.items():
                if name not in base:
                    continue
                unit = float(formats.get(a.lse if name == "lse" else a.output).unit_roundoff)
                reach = base[name].reach + RESULT * unit * np.abs(np.nan_to_num(value, posinf=0, neginf=0))
                for other in moved:
                    change = np.abs(other[name] - value)
                    reach = reach + np.where(np.isfinite(change), change, 0.0)
                found[name] = Prediction(value, reach + self._order(name, value, size))
        if "out" in found and "out" in size:
            found["out"] = replace(found["out"], reach=found["out"].reach + self._sums(size["out"], values.get("lse")))
        return found

    def _sums(self, size: Array, lse: Array | None) -> Array:
        """What the sums of a row that is wrong may be off by: they are not those that the declared bound is about."""
        a = self.situation.arithmetic
        unit = float(formats.get(a.accumulate).unit_roundoff)
        high = 0.0 if lse is None else np.abs(np.nan_to_num(lse, posinf=0, neginf=0))[..., None]
        relative = unit * (SUM + RESULT * np.where(high < FAR, high, 0.0))
        if a.probability is not None:
            relative = relative + 2 * float(formats.get(a.probability).unit_roundoff)
        return np.nan_to_num(size * relative, posinf=0)

    def _nudges(self) -> tuple[float, ...]:
        if set(self.machine.rounded) <= BUFFERS:  # what is allowed for the order of sums covers ties
            return ()
        error = ERRORS * float(formats.get(self.situation.arithmetic.compute).unit_roundoff)
        return error, -error

    def _order(self, name: str, value: Array, size: dict[str, Array]) -> Array | float:
        """What hangs on the order in which a 16-bit buffer was filled."""
        steps = {
            "out": ("term", "partial"),
            "grad_query": ("grad_query",),
            "grad_key": ("grad_key",),
            "grad_value": ("grad_key",),
        }
        formats_ = [self.machine.rounded[x] for x in steps.get(name, ()) if x in self.machine.rounded]
        if not formats_:
            return 0.0
        unit = float(formats.get(formats_[0]).unit_roundoff)
        return SLACK * unit * size[name] if name in size else unit * np.abs(value)

    def _size(self) -> dict[str, Array]:
        """The sizes of what the output is a sum of, added up."""
        e, c = Emulation(self.situation), self.situation.reference.call
        value = np.abs(c.value.astype(np.float64))
        machine = replace(self.machine, rounded={}, empty=None if self.machine.empty == "nan" else self.machine.empty)
        out, _ = emulated_forward.forward(c.query, c.key, value, replace(e.setting, empty_row="zero"), machine)
        return {"out": out}


def correct(s: Situation, *, backward: bool) -> Predictions:
    """What the definition says, kept for the next hypothesis."""
    from symattn.verify.faults.predict import predictions

    key = ("correct", backward)
    if key not in s.kept:
        s.kept[key] = predictions(s, SAME, forward=not backward, backward=backward)
    found: Predictions = s.kept[key]
    return found
