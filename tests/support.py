"""What several tests need: optional packages that must be there in CI, and nothing that shares code with what is tested."""

from __future__ import annotations

import importlib
import os
import shutil
import warnings
from functools import cache
from types import ModuleType
from typing import Any

import pytest

from symattn import variants

IN_CI = os.environ.get("CI") == "true"


def require(name: str) -> ModuleType:
    """Import an optional package; without it the test is skipped with a reason, and fails in CI."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if IN_CI:
            pytest.fail(f"{name} must be installed in CI: {error}")
        pytest.skip(f"{name} is not installed")


def require_program(name: str) -> str:
    """The path of a program such as pdflatex; without it the test is skipped with a reason, and fails in CI."""
    found = shutil.which(name)
    if found is None:
        if IN_CI:
            pytest.fail(f"{name} must be installed in CI")
        pytest.skip(f"{name} is not installed")
    return found


FAST = {n for f in variants.families() for n in [n for n in variants.names() if variants.family_of(n) == f][:2]}
"""Two rows of each family of the catalogue, for every run."""


def rows(*without: str) -> list[object]:
    """The names of the catalogue as parameters of a test: a few for every run, the others for the slow one."""
    return [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in variants.names() if n not in without]


@cache
def onnx_cases() -> tuple[Any, ...]:
    """All node cases of ONNX's own suite: made once a process, because its collection is empty when it is asked again."""
    require("onnx")
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the cases of other operators overflows on purpose
        return tuple(collect_testcases())
