"""Arrays of any framework taken in as NumPy arrays, values and dtype unchanged.

A framework is recognised by the module of the array's type and is never imported here. Where a framework refuses to hand over a
dtype that NumPy does not know (bfloat16, float8), the bits are taken and seen as the dtype of ml_dtypes.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from symattn.errors import InputValueError, SymattnError
from symattn.formats import FORMATS, get

Array = np.ndarray[Any, Any]

BITS = {1: "uint8", 2: "int16"}
"""The integer dtype that a float's bits are handed over in, by its width in bytes."""


def framework(x: object) -> str | None:
    """The framework that an array or a module belongs to, from its type: ``"numpy"``, ``"torch"``, ``"jax"`` or None.

    >>> framework(np.zeros(2)), framework([1.0])
    ('numpy', None)
    """
    roots = {c.__module__.partition(".")[0] for c in type(x).__mro__}
    for name, marks in {"torch": {"torch"}, "jax": {"jax", "jaxlib"}, "numpy": {"numpy"}}.items():
        if roots & marks:
            return name
    return None


def is_extension(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is one of ml_dtypes; their ``kind`` does not tell (float8_e5m2 has ``"f"``, the others ``"V"``)."""
    return dtype.type.__module__ == "ml_dtypes"


def to_numpy(x: object, name: str = "array") -> Array:
    """The array ``x`` as a NumPy array of its true dtype in native byte order; copied only where the framework or that makes it.

    Parameters
    ----------
    x
        An array of NumPy, PyTorch (any device, with or without gradient, bfloat16 and float8 included), JAX, or anything with
        ``__array__`` or ``__dlpack__``; numbers and nested lists.
    name
        What it is called in messages.

    Raises
    ------
    InputValueError
        When it cannot be taken in as it is; the message says why and what to do.

    >>> to_numpy([[0.5, 1]], "query").dtype
    dtype('float64')
    """
    try:
        a = _take(x)
    except SymattnError:
        raise
    except Exception as error:
        raise InputValueError(f"{name}: a {_kind(x)} cannot be taken in as an array ({error})") from error
    if (a.dtype.kind in "biuf" and not is_extension(a.dtype)) or str(a.dtype) in FORMATS:
        return a if a.dtype.isnative else a.astype(a.dtype.newbyteorder("="))
    if a.dtype == np.dtype("V2"):
        return a.view(get("bfloat16").dtype)  # how NumPy's own file format brings a bfloat16 array back
    hint = "; view it as an unsigned integer of its width, and that as the ml_dtypes dtype" if a.dtype.kind == "V" else ""
    raise InputValueError(f"{name}: dtype {a.dtype} of {_kind(x)} is no number that can be taken exactly{hint}")


def _take(x: object) -> Array:
    if isinstance(x, np.ndarray):
        if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
            raise InputValueError("a masked array with masked elements has no numbers there; fill them, as by .filled(0)")
        return np.asarray(x)
    kind = framework(x)
    if kind == "torch":
        return _from_torch(x)
    if kind is None and not isinstance(x, (list, tuple, int, float)) and not hasattr(x, "__array__") and hasattr(x, "__dlpack__"):
        return np.from_dlpack(x)
    return np.asarray(x)


def _from_torch(x: Any) -> Array:
    if x.is_sparse:
        raise InputValueError("a sparse tensor has no elements to judge; call .to_dense() first")
    t = x.detach().cpu().resolve_conj().resolve_neg()
    name = str(t.dtype).removeprefix("torch.")
    if name not in FORMATS or FORMATS[name].dtype.type.__module__ == "numpy":
        return np.asarray(t.numpy())
    torch = sys.modules["torch"]  # loaded already: the tensor is its own
    f = FORMATS[name]
    return np.asarray(t.view(getattr(torch, BITS[t.element_size()])).numpy()).view(f.dtype)


def _kind(x: object) -> str:
    return f"{type(x).__module__}.{type(x).__qualname__}".removeprefix("builtins.")
