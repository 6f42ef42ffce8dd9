"""Acceptance rules of public test suites, written from their descriptions; True: accepted.

``ref`` is what such suites compare with: float32 for 16-bit inputs, double for float32 ones; ``low`` the result of eager kernels
in the input format. Sources: flash-attention's tests (twice the error of an eager kernel, and its variant with two units in the
last place), PyTorch's SDPA tests (tolerances from the eager kernel's greatest absolute and relative deviation), FlexAttention's
(mean error at most 1.1 times that of eager, 10 times in float32), ``torch.testing.assert_close`` by default, fixed 1e-2 and 2e-2,
the cosine, and hipDNN's scalar a-priori tolerance (rocm-libraries#7032). Suites check the output only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.rounding.laws import F32, cast

DEFAULT = {"bfloat16": (1e-5, 1.6e-2), "float16": (1e-5, 1e-3), "float32": (1e-5, 1.3e-6)}
"""atol and rtol of assert_close."""
LEAST = {"bfloat16": (1e-3, 1.6e-2), "float16": (1e-3, 1e-3), "float32": (1e-5, 1.3e-6)}
"""The least tolerances of PyTorch's SDPA tests."""
UNIT = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24}


@dataclass(frozen=True)
class Compared:
    """What a suite has at hand, in float64: the reference, the eager result, and the format.

    ``fudge`` is the factor of PyTorch's rule, 1 for outputs and up to 8 for gradients.
    """

    ref: np.ndarray
    low: np.ndarray
    fmt: str
    fudge: float = 1.0

    @property
    def rounded(self) -> np.ndarray:
        """The reference in the output format."""
        return cast(self.ref, self.fmt).astype(np.float64)


def near(out, ref, atol, rtol):
    return bool((np.abs(out - ref) <= atol + rtol * np.abs(ref)).all())


def twice(out, c, more=1e-5):
    return bool(np.abs(out - c.rounded).max() <= 2 * np.abs(c.low - c.rounded).max() + more)


def twice_and_ulps(out, c):
    r = cast(c.ref, c.fmt)
    moved = cast(cast(r + F32(0.3), c.fmt) - F32(0.3), c.fmt)
    return twice(out, c, 2 * float(np.abs(moved.astype(np.float64) - r).max()))


def torch_sdpa(out, c):
    off, (least_atol, least_rtol) = np.abs(c.ref - c.low), LEAST[c.fmt]
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.nan_to_num(off / np.abs(c.ref), nan=least_rtol, posinf=np.inf).max()
    rtol = c.fudge * max(relative, least_rtol) if np.isfinite(relative) else least_rtol
    return near(out, c.rounded, c.fudge * max(off.max(), least_atol), rtol)


def flex(out, c):
    most = 10.0 if c.fmt == "float32" else 1.1
    return bool(np.abs(out - c.ref).mean() <= most * np.abs(c.low - c.ref).mean())


def cosine(out, c, least=0.999):
    a, b = out.ravel(), c.ref.ravel()
    norms = np.linalg.norm(a) * np.linalg.norm(b)
    return bool(norms > 0 and a @ b >= least * norms)


RULES = {
    "2 x eager": twice,
    "2 x eager + 2 ulp": twice_and_ulps,
    "PyTorch SDPA": torch_sdpa,
    "mean 1.1 x eager": flex,
    "assert_close": lambda out, c: near(out, c.rounded, *DEFAULT[c.fmt]),
    "1e-2": lambda out, c: near(out, c.ref, 1e-2, 1e-2),
    "2e-2": lambda out, c: near(out, c.ref, 2e-2, 2e-2),
    "cosine 0.999": cosine,
}
"""By name."""


def scalar_tolerance(q, k, v, scale, fmt):
    """hipDNN's: sizes of the inputs alone, growth of sums worst case or 6 sigma, whichever formula its size selects."""
    eps = 2.0**-23
    keys, d = k.shape[-2:]

    def growth(terms):
        worst = 2 * terms * eps
        return worst / (1 - worst) if worst < 0.01 else 6 * np.sqrt(2 * terms) * eps

    of_q, of_k, of_v = (float(np.abs(x).max()) for x in (q, k, v))
    score = d * of_q * of_k * abs(scale)
    found = (growth(d) * score + score * eps) * of_v + (growth(keys) + (keys + 1) * eps) * of_v + growth(keys) * of_v
    return found + (0 if fmt == "float32" else of_v * 2 * UNIT[fmt])


def accepted(out, compared: Compared, scalar: float | None = None) -> dict[str, bool]:
    """Each rule's answer."""
    out = np.nan_to_num(np.asarray(out, np.float64), nan=1e30, posinf=1e30, neginf=-1e30)
    found = {name: rule(out, compared) for name, rule in RULES.items()}
    return found if scalar is None else found | {"scalar a priori": bool(np.abs(out - compared.ref).max() <= scalar)}
