"""Fixtures for all tests."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from tests import support


@pytest.fixture
def require() -> Callable[[str], ModuleType]:
    """``require("torch")`` returns the module, skips without it, and fails without it in CI."""
    return support.require
