"""NumPy arrays handed to kernels as fresh arrays of their framework."""

from __future__ import annotations

from typing import Any

import numpy as np

from symattn.intake import BITS, Array, is_extension


def to_framework(a: Array, kind: str) -> Any:
    """A NumPy array as a fresh array of a framework (``"numpy"``, ``"torch"``, ``"jax"``), values and dtype unchanged.

    The result never shares memory with ``a``. For JAX, float64 stays so only inside ``jax.enable_x64``.

    >>> to_framework(np.ones(2, "float32"), "numpy")
    array([1., 1.], dtype=float32)
    """
    a = np.array(a, copy=True, order="C")
    if kind == "numpy":
        return a
    if kind == "jax":
        import jax.numpy

        return jax.numpy.asarray(a)
    import torch

    if is_extension(a.dtype):
        return torch.from_numpy(a.view(BITS[a.dtype.itemsize])).view(getattr(torch, str(a.dtype)))
    return torch.from_numpy(a)
