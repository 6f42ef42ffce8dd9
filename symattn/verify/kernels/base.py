"""What a kernel under test is to `verify`: something that can be run on a call, says what it supports and how it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np

from symattn.arithmetic import Arithmetic
from symattn.errors import KernelError, SymattnError
from symattn.intake import Array, to_numpy
from symattn.verify.kernels.call import Call

Tensors = dict[str, Array]
T = TypeVar("T")


@dataclass(frozen=True)
class Deviation:
    """A known deviation of a real kernel: where it shows, and why; it is printed, and fails a run only when strict.

    Parameters
    ----------
    tensors
        Names of the tensors that deviate; empty: the kernel raises or cannot run.
    when
        Whether a call shows it.
    reason
        What is known: the cause, and the version on which it was seen.
    nan
        It explains elements that are NaN, and no others.
    """

    tensors: tuple[str, ...]
    when: Callable[[Call], bool]
    reason: str
    nan: bool = False


def leaks(version: str) -> Deviation:
    """The deviation that frameworks share: a NaN in masked keys or values reaches the results."""
    tensors = ("out", "lse", "grad_query", "grad_key", "grad_value")
    reason = f"NaN in masked keys or values reaches it: masked entries are multiplied by 0 and not left out (seen on {version})"
    return Deviation(tensors, lambda call: bool(np.isnan(call.key).any() or np.isnan(call.value).any()), reason, nan=True)


class Kernel:
    """A kernel that can be judged; adapters and functions of users are subclasses.

    ``name`` is what reports call it; ``packages`` must be importable; ``known`` is its ledger of deviations;
    ``grouped`` says whether it takes fewer key-value heads than query heads.
    """

    name: str = ""
    about: str = ""
    packages: tuple[str, ...] = ()
    known: tuple[Deviation, ...] = ()
    grouped: bool = True
    assumed: bool = False
    """Whether its arithmetic is assumed, because it declares none."""

    def missing(self) -> str | None:
        """Why it cannot run here (a package that is not installed), or None."""
        gone = [p for p in self.packages if find_spec(p) is None]
        return f"{', '.join(gone)} is not installed (pip install {' '.join(gone)})" if gone else None

    def versions(self) -> str:
        """The packages that it runs on, with versions."""
        found = []
        for p in self.packages:
            try:
                found.append(f"{p} {version(p)}")
            except PackageNotFoundError:
                found.append(p)
        return ", ".join(found)

    def takes_dtype(self, dtype: str) -> bool:
        """Whether it computes in a format at all."""
        return True

    def unsupported(self, call: Call) -> str | None:
        """Why it does not compute this definition on these arrays, or None."""
        return None

    def arithmetic(self, call: Call) -> Arithmetic:
        """How it computes."""
        raise KernelError(f"{self.name} declares no arithmetic")

    def forward(self, call: Call) -> Tensors:
        """``out`` (B, H, n, dv) and where it can ``lse`` (B, H, n)."""
        raise KernelError(f"{self.name} has no forward")

    def has_backward(self, call: Call) -> bool:
        """Whether gradients can be had for this call."""
        return False

    def takes(self, call: Call, outputs: Mapping[str, Array]) -> frozenset[str]:
        """What its backward makes use of beside ``grad_out``, of ``out``, ``lse`` and ``grad_lse``."""
        return frozenset()

    def backward(self, call: Call, given: Mapping[str, Array]) -> Tensors:
        """Gradients by field name (``grad_query`` ...); ``given`` holds ``grad_out`` and what ``takes`` names."""
        raise KernelError(f"{self.name} has no backward")


def guarded(kernel: str, function: Callable[[], T]) -> T:
    """What a function of a kernel returns; whatever it raises is a fault of the kernel, `sys.exit` among it. Ctrl-C stays itself.

    Raises
    ------
    KernelError
        Naming the kernel and what it raised.
    """
    try:
        return function()
    except SymattnError:
        raise
    except BaseException as error:
        if type(error) is KeyboardInterrupt:
            raise
        raise KernelError(f"{kernel} raised {type(error).__name__}: {error}".removesuffix(": ")) from error


def checked(kernel: str, tensors: Mapping[str, Any], want: Mapping[str, tuple[int, ...]], dtypes: Mapping[str, Any]) -> Tensors:
    """What a kernel returned, as NumPy arrays, refused where shape or dtype are wrong.

    Parameters
    ----------
    tensors
        By field name.
    want
        The shape of each name that may be returned.
    dtypes
        The dtype of the names for which it is fixed; others may have any float dtype.

    Raises
    ------
    KernelError
        Naming the kernel, the tensor, what it is and what it should be.
    """
    found: Tensors = {}
    for name, x in tensors.items():
        if x is None:
            continue
        if name not in want:
            raise KernelError(f"{kernel} returned {name!r}; known here are {', '.join(map(repr, want))}")
        try:
            a = to_numpy(x, name)
        except SymattnError as error:
            raise KernelError(f"{kernel} returned no array: {error}") from error
        if a.shape != want[name]:
            raise KernelError(f"{kernel} returned {name} with shape {a.shape}; it should be {want[name]}")
        if a.dtype.kind in "biu" or a.dtype.itemsize > 8:
            raise KernelError(f"{kernel} returned {name} with dtype {a.dtype}; it should be a float of at most 64 bits")
        if name in dtypes and a.dtype != dtypes[name]:
            raise KernelError(
                f"{kernel} returned {name} with dtype {a.dtype}; it should be {dtypes[name]}, the dtype of its inputs"
            )
        found[name] = a
    return found
