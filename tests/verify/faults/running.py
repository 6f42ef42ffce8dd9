"""A kernel on some inputs of the pack, and its diagnosis."""

from __future__ import annotations

import functools

from symattn.definition import Definition
from symattn.verify.diagnosis.diagnose import diagnose
from symattn.verify.inputs import KINDS, fields_for, fitted
from symattn.verify.judge import run_case
from symattn.verify.kernels.registry import resolve
from symattn.verify.reference import Reference

BY_NAME = {k.name: k for k in KINDS}


@functools.lru_cache(maxsize=32)
def _reference(fields, kind, dtype):
    d = Definition.of(**dict(fields))
    return Reference(d, fields_for(d, fitted(d, BY_NAME[kind].shape), dtype, 0, BY_NAME[kind]))


def seen(kernel, definition, kinds, dtype="float32", *, backward=False):
    """What a kernel returned on some kinds of inputs."""
    found = []
    for kind in kinds:
        ref = _reference(tuple(sorted(definition.items())), kind, dtype)
        run_case(resolve(kernel), ref, kind, backward=backward, seen=found)
    return found


def diagnosis(kernel, definition, kinds=("normal", "tall"), dtype="float32", *, backward=False):
    """The findings on a kernel."""
    return diagnose(seen(kernel, definition, kinds, dtype, backward=backward))
