"""What `symattn --version` prints: the version, Python, and the backends that this installation uses."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

CORE = ("sympy", "numpy", "mpmath", "python-flint", "ml_dtypes", "safetensors")
FRAMEWORKS = ("torch", "jax", "onnx", "onnxruntime")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def version_text() -> str:
    """The text, a line per backend.

    >>> version_text().splitlines()[0].startswith("symattn ")
    True
    """
    import mpmath
    from sympy.external.gmpy import GROUND_TYPES

    lines = [f"symattn {_version('symattn')}", f"python {platform.python_version()}"]
    lines += [f"{name} {_version(name)}" for name in CORE]
    lines.append(f"exact integers: {GROUND_TYPES} (SymPy), {mpmath.libmp.BACKEND} (mpmath)")
    lines += [f"{name} {_version(name)}" for name in FRAMEWORKS]
    return "\n".join(lines)
