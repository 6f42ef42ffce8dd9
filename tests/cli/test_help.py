"""`symattn --help` is fast because it loads nothing heavy: asserted by the modules loaded, not by a clock."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("sympy", "numpy", "mpmath", "flint", "rich", "pydantic", "torch", "jax", "onnx", "onnxruntime", "ml_dtypes")


def modules_after(*arguments: str) -> tuple[str, set[str]]:
    """Output of `symattn ARGUMENTS` and the top-level modules that it loaded."""
    code = (
        "import sys\n"
        f"sys.argv = ['symattn', *{list(arguments)!r}]\n"
        "from symattn_cli import app\n"
        "try:\n    app()\nexcept SystemExit:\n    pass\n"
        "print('MODULES', *sorted({m.partition('.')[0] for m in sys.modules}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    text, _, modules = done.stdout.rpartition("MODULES")
    return text, set(modules.split())


def test_help_loads_nothing_heavy():
    text, loaded = modules_after("--help")
    assert "symattn" in text
    assert not loaded & set(HEAVY)


def test_the_test_would_see_a_heavy_import():
    _, loaded = modules_after("--version")
    assert {"sympy", "mpmath"} <= loaded


def test_importing_the_package_costs_no_sympy():
    code = "import sys, symattn; print('sympy' in sys.modules, 'numpy' in sys.modules); symattn.i; print('sympy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True"]


def test_version_names_the_backends():
    text, _ = modules_after("--version")
    for name in ("symattn", "sympy", "numpy", "mpmath", "python-flint", "torch", "onnxruntime"):
        assert name in text
