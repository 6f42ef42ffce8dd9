"""The symbols that a score or a mask of one's own is written in: the score ``s``, the query ``i`` and the key ``j``.

>>> from symattn.symbols import i, j, s
>>> s - (i - j)
-i + j + s
"""

from __future__ import annotations

import sympy as sp

from symattn.program import index

s = sp.Symbol("s", real=True)
i = index("i")
j = index("j")
