"""symattn: the exact reference for the attention mechanism.

Attention is written once, as a short list of statements in SymPy, and everything else is read off that list: derivations,
gradients, exact values, NumPy and mpmath functions, ground truth with a proven radius, and the largest error that a correct
kernel may show. Importing this package imports nothing else; every name below is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    "Attention": "symattn.api",
    "assert_attention": "symattn.testing",
    "Program": "symattn.program",
    "Scan": "symattn.program",
    "Statement": "symattn.program",
    "Arithmetic": "symattn.arithmetic",
    "SymattnError": "symattn.errors",
    "s": "symattn.symbols",
    "i": "symattn.symbols",
    "j": "symattn.symbols",
}

__all__ = [
    "Arithmetic",
    "Attention",
    "Program",
    "Scan",
    "Statement",
    "SymattnError",
    "__version__",
    "assert_attention",
    "i",
    "j",
    "s",
]

if TYPE_CHECKING:
    from symattn.api import Attention as Attention
    from symattn.arithmetic import Arithmetic as Arithmetic
    from symattn.errors import SymattnError as SymattnError
    from symattn.program import Program as Program
    from symattn.program import Scan as Scan
    from symattn.program import Statement as Statement
    from symattn.symbols import i as i
    from symattn.symbols import j as j
    from symattn.symbols import s as s
    from symattn.testing import assert_attention as assert_attention


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'symattn' has no attribute {name!r}")
    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
