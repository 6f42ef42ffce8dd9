"""A checkpoint: what has been done of a long run, in one ``.npz`` file that is replaced as a whole: a crash leaves the last.

The file holds numbers and text, no objects: nothing in it is executed when it is read. It says which problem it belongs to, by a
digest of the program, the inputs and the version; with another problem it is refused. Several engines may work on one problem, at
several precisions: what each has done is kept apart.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from symattn.errors import FileFormatError
from symattn.program import Program
from symattn.truth.work.items import Slot
from symattn.truth.work.packed import Packed, packed, unpacked
from symattn.truth.work.sums import Part, Sum

__all__ = ["Checkpoint", "State", "digest"]

Array = npt.NDArray[Any]
FORMAT = "symattn checkpoint 1"


DAMAGED = (
    *(OSError, EOFError, ValueError, KeyError, IndexError, TypeError, AttributeError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error, struct.error),
)
"""What reading a damaged archive of arrays may raise."""


@dataclass
class State:
    """What has been done of one grid of blocks.

    Parameters
    ----------
    count
        How many blocks there are.
    done
        The numbers of those that are.
    slices, assumptions
        As in :class:`symattn.truth.work.items.Done`, of all that is done.
    sums
        The sums under way.
    """

    count: int
    done: set[int] = field(default_factory=set)
    slices: dict[tuple[str, int], Packed] = field(default_factory=dict)
    assumptions: dict[str, str] = field(default_factory=dict)
    sums: dict[Slot, Sum] = field(default_factory=dict)


def digest(program: Program, inputs: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
    """A text that tells two problems apart: another program, size, number or version gives another one.

    >>> from symattn.program import Statement, tensor
    >>> p = Program((Statement(tensor("y"), tensor("x") ** 2),), {}, ("y",))
    >>> digest(p, {"x": 0.5}, {}) == digest(p, {"x": 0.5}, {}) != digest(p, {"x": 0.25}, {})
    True
    """
    found = hashlib.sha256()
    head = [
        FORMAT,
        version("symattn"),
        str(program),
        str(sorted(map(str, program.dims.items()))),
        program.outputs,
        sorted(sizes.items()),
    ]
    found.update(json.dumps([*map(str, head)]).encode())
    for name in program.inputs:
        if name in inputs:
            a = np.asarray(inputs[name])
            raw = np.ascontiguousarray(a).tobytes() if a.dtype != object else "\n".join(map(repr, a.ravel().tolist())).encode()
            found.update(f"{name} {a.dtype} {a.shape} {len(raw)}\n".encode() + raw)
    return found.hexdigest()


class Checkpoint:
    """The states of a run, saved now and then.

    Parameters
    ----------
    path
        The file; None keeps nothing.
    problem
        What :func:`digest` says.
    every
        Seconds between two savings.

    Raises
    ------
    FileFormatError
        When the file is there and is no checkpoint of this problem, or is truncated or damaged.
    """

    def __init__(self, path: str | os.PathLike[str] | None, problem: str, every: float = 10.0) -> None:
        self.path = None if path is None else Path(path)
        self.problem = problem
        self.states: dict[str, State] = {}
        self._every, self._last = every, time.monotonic()
        self._changed, self._whole = False, True
        if self.path is not None and self.path.exists():
            self.states = _read(self.path, problem)
        elif self.path is not None:
            self._write(self.path)  # a place that cannot be written to is told now and not after hours

    def state(self, path: str, count: int) -> State:
        """The state of a grid of so many blocks, by its place in the run."""
        found = self.states.setdefault(path, State(count))
        if found.count != count:
            raise FileFormatError(f"{self.path} has {found.count} blocks where this run has {count}; start it with another file")
        return found

    @contextmanager
    def changing(self) -> Iterator[None]:
        """While something is added; afterwards it is saved if it is time to. What is half added is never saved."""
        self._whole = False
        yield
        self._whole, self._changed = True, True
        if time.monotonic() - self._last >= self._every:
            self.save()

    def save(self) -> None:
        """Save what has been added since the last time."""
        if self.path is None or not self._changed or not self._whole:
            return
        began = time.monotonic()
        self._write(self.path)
        self._last, self._changed = time.monotonic(), False
        self._every = max(self._every, 20 * (self._last - began))

    def _write(self, path: Path) -> None:
        beside = path.with_name(path.name + ".part")
        try:
            with beside.open("wb") as file:
                arrays: dict[str, Any] = _written(self.states, self.problem)
                np.savez(file, **arrays)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except OSError as error:
            raise FileFormatError(f"the checkpoint {path} cannot be written: {error.strerror or error}") from error


def _written(states: Mapping[str, State], problem: str) -> dict[str, Array]:
    """All states as three arrays of bytes: an index in JSON, the numbers one after another, and the digest of both."""
    blob: list[bytes] = []
    index: list[Any] = []
    begin = 0

    def put(values: Packed) -> list[Any]:
        nonlocal begin
        listed = []
        for name, a in values.items():
            assert a.dtype != object  # nothing of it would be pickled, but bytes of addresses are no numbers
            blob.append(np.ascontiguousarray(a).tobytes())
            listed.append([name, a.dtype.str, a.shape, begin])
            begin += len(blob[-1])
        return listed

    def nodes(of: Sum) -> list[Any]:
        return [[node, p.start, put(packed(p.values))] for node, p in of.nodes.items()]

    for path, s in states.items():
        done = np.zeros(s.count, dtype=bool)
        done[sorted(s.done)] = True
        index.append(
            {
                "path": path,
                "done": put({"done": done}),
                "slices": [[n, k, put(v)] for (n, k), v in s.slices.items()],
                "sums": [
                    [
                        n,
                        place,
                        [x.leaves, x.reduce, x.bits],
                        [[node, p.start, put(packed(p.values))] for node, p in x.nodes.items()],
                    ]
                    for (n, place), x in s.sums.items()
                ],
                "assumptions": s.assumptions,
            }
        )
    head, data = json.dumps({"format": FORMAT, "problem": problem, "states": index}).encode(), b"".join(blob)
    parts = {"head": head, "data": data, "digest": hashlib.sha256(head + data).digest()}
    return {name: np.frombuffer(raw, dtype=np.uint8) for name, raw in parts.items()}


def _read(path: Path, problem: str) -> dict[str, State]:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            raw, data, known = (file[name].tobytes() for name in ("head", "data", "digest"))
            if hashlib.sha256(raw + data).digest() != known:
                raise ValueError("its digest is not that of its contents")
            head = json.loads(raw)
    except DAMAGED as error:
        raise FileFormatError(f"{path} is no checkpoint, or is truncated or damaged: {error}; give another file") from error
    if head["format"] != FORMAT:
        raise FileFormatError(f"{path} is no checkpoint that this version reads: it says {head['format']!r}")
    if head["problem"] != problem:
        raise FileFormatError(
            f"{path} is the checkpoint of another problem: other inputs, another program or version; "
            "give another file, or delete this one if it is not needed"
        )
    try:
        return {s["path"]: _state(s, data) for s in head["states"]}
    except DAMAGED as error:
        raise FileFormatError(f"{path} is no checkpoint, or is truncated or damaged: {error}; give another file") from error


def _state(listed: Mapping[str, Any], data: bytes) -> State:
    def get(arrays: list[Any]) -> Packed:
        out: Packed = {}
        for name, kind, shape, begin in arrays:
            dtype, count = np.dtype(kind), math.prod(shape)
            out[name] = np.frombuffer(data, dtype=dtype, count=count, offset=begin if count else 0).reshape(shape)
        return out

    done = get(listed["done"])["done"]
    return State(
        len(done),
        set(np.flatnonzero(done).tolist()),
        {(n, k): get(v) for n, k, v in listed["slices"]},
        dict(listed["assumptions"]),
        {(n, tuple(place)): _sum(about, nodes, get) for n, place, about, nodes in listed["sums"]},
    )


def _sum(about: list[Any], nodes: list[Any], get: Callable[[list[Any]], Packed]) -> Sum:
    found = Sum(*about)
    for node, start, values in nodes:
        found.put(tuple(node), Part(unpacked(get(values)), tuple(start)))
    return found
