"""All properties of a kernel, tried on one input of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from symattn.intake import Array
from symattn.verify.kernels.base import Kernel, Tensors
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.user import FunctionKernel
from symattn.verify.observed import Observed
from symattn.verify.properties import algebra, runs
from symattn.verify.properties.finding import PropertyReport
from symattn.verify.properties.tried import Tried
from symattn.verify.running import gradients_of, outputs_of

__all__ = ["properties_of", "rerun"]

WANTED = ("normal", "shape", "inputs", "tall", "integers")
"""The inputs on which properties are tried, the first that a run has; else its smallest."""


def properties_of(kernel: Kernel, seen: Sequence[Observed]) -> tuple[PropertyReport, ...]:
    """The verdict on every property.

    Parameters
    ----------
    kernel
        What is judged; of a built-in one verdicts are reported and do not count.
    seen
        The inputs of the run.
    """
    usable = [o for o in seen if o.case != "poison"]
    if not usable:
        return ()
    chosen = min(usable, key=lambda o: (WANTED.index(o.case) if o.case in WANTED else len(WANTED), o.work))
    tried = Tried(kernel, chosen, partial(rerun, kernel, chosen))
    counts = isinstance(kernel, FunctionKernel)
    with np.errstate(all="ignore"):
        found = [row.report(tried) for row in algebra.ROWS] + [row.report(tried) for row in runs.ROWS]
    return tuple(PropertyReport(f.name, f.title, f.verdict, f.reason, f.case, f.share, f.counts and counts) for f in found)


def rerun(kernel: Kernel, observed: Observed, fields: Mapping[str, Array], gradients: bool) -> Tensors:
    """The kernel on other arrays of the same definition; the batch may be another."""
    s = observed.situation
    call = Call(s.definition, fields)
    batch = fields[call.sources[0]].shape[0]
    shapes = {n: (batch, *shape[1:]) for n, shape in s.reference.shapes().items()}
    outputs = outputs_of(kernel, call, shapes, s.arithmetic)
    grads = gradients_of(kernel, call, outputs, s.arithmetic, partial=True)[0] if gradients else {}
    return {**outputs, **grads}
