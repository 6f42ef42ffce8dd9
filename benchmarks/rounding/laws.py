"""The inputs of the benchmark: seven laws, masks and sizes, numbers of the input format, seeded.

A problem is 4 query heads on 2 heads of keys and values, 32 rows, ``keys`` keys and ``d`` columns. Sizes of logits in nats for
d = 64: ``normal`` about 1, ``large`` 12, ``uniform`` 0.02, ``onehot`` one key ahead of all others by more than 10, ``hugelogit``
1600 common to a row with a spread of 40. ``cancelV``: pairs of keys with nearly the same weight and values +64 and -64.
``meanV``: values around 2.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np

F32 = np.float32
LAWS = ("normal", "large", "cancelV", "onehot", "uniform", "meanV", "hugelogit")
FORMATS = ("bfloat16", "float16", "float32")
DTYPES: dict[str, Any] = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
}
HEADS, GROUPS, ROWS = 4, 2, 32
WINDOW = 48
SOFTCAP = 30.0
MASKS = ("full", "window", "causal", "softcap")


def cast(x, fmt):
    """Rounded once to a format, to nearest, and kept in float32."""
    x = np.asarray(x, F32)
    if fmt in (None, "float32"):
        return x
    with np.errstate(over="ignore", under="ignore"):
        return x.astype(DTYPES[fmt]).astype(F32)


@dataclass(frozen=True)
class Problem:
    """One set of inputs, by the numbers that it follows from.

    Parameters
    ----------
    law, fmt
        One of :data:`LAWS`, and the input format.
    keys, d, rows
        Sizes.
    mask
        One of :data:`MASKS`; ``causal`` is aligned bottom-right, so with more rows than keys the first rows see none.
    seed
        Of the generator, together with everything above.
    """

    law: str
    fmt: str
    keys: int
    d: int
    seed: int = 0
    mask: str = "full"
    rows: int = ROWS
    _arrays: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        """In words without blanks; the key of results."""
        return f"{self.law}-{self.fmt}-{self.mask}-n{self.keys}-d{self.d}-r{self.rows}-s{self.seed}"

    @property
    def scale(self) -> float:
        """1/sqrt(d) in double."""
        return 1 / float(np.sqrt(self.d))

    @property
    def softcap(self) -> float:
        """0 where there is none."""
        return SOFTCAP if self.mask == "softcap" else 0.0

    def fields(self) -> dict[str, Any]:
        """The definition's fields."""
        masks: dict[str, dict[str, Any]] = {
            "full": {},
            "window": {"causal": "bottom-right", "window": (WINDOW, 0)},
            "causal": {"causal": "bottom-right"},
            "softcap": {"softcap": int(SOFTCAP)},
        }
        return {"heads": HEADS, "kv_heads": GROUPS} | masks[self.mask]

    def keep(self, window=WINDOW):
        """(rows, keys): where a query attends to a key."""
        i = np.arange(self.rows)[:, None] + self.keys - self.rows
        j = np.arange(self.keys)[None]
        if self.mask == "window":
            return (j <= i) & (j > i - window)
        return j <= i if self.mask == "causal" else np.ones((self.rows, self.keys), bool)

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """Q, dO (4, rows, d) and K, V (2, keys, d) in float32, numbers of the format."""
        rng = np.random.default_rng([self.seed, self.keys, self.d, self.rows, zlib.crc32(f"{self.law} {self.mask}".encode())])
        q, do = (rng.standard_normal((HEADS, self.rows, self.d)) for _ in range(2))
        k, v = (rng.standard_normal((GROUPS, self.keys, self.d)) for _ in range(2))
        if self.law == "large":
            q = q * 12
        elif self.law == "cancelV":
            v = 64 * np.where(np.arange(self.keys) % 2, -1, 1)[None, :, None] + 0.05 * v
            odd = k[:, 1::2].shape[1]
            k[:, 1::2] = k[:, 0::2][:, :odd] + 0.02 * k[:, 1::2]
        elif self.law == "onehot":
            chosen = rng.integers(0, self.keys, (HEADS, self.rows))
            q = 0.2 * q + 32 / np.sqrt(self.d) * np.stack([k[h // (HEADS // GROUPS)][chosen[h]] for h in range(HEADS)])
        elif self.law == "uniform":
            q = 0.02 * q
        elif self.law == "meanV":
            v = 0.5 * v + 2
        elif self.law == "hugelogit":
            q, k = 4 * q + 40, k + 5
        return {n: cast(x, self.fmt) for n, x in {"Q": q, "K": k, "V": v, "dO": do}.items()}

    def given(self, *names: str) -> dict[str, np.ndarray]:
        """The arrays in the axes of the program: heads of queries as (2, 2, rows, d)."""
        return {n: grouped(self.arrays[n]) if n in ("Q", "dO") else self.arrays[n] for n in names}


def grouped(x):
    """(4, rows, ...) as (2, 2, rows, ...): query head h reads key head h // 2."""
    return x.reshape(GROUPS, HEADS // GROUPS, *x.shape[1:])
