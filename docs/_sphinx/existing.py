"""A reference to what has no page here, such as a class of NumPy or an inner module, is plain text if the thing exists.

With ``-n`` Sphinx asks for a target of every reference. The types of other libraries have none without a network; instead of
ignoring them by pattern, each is looked up by importing it, so that a name that is wrong still fails the build.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import typing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment


def exists(name: str) -> bool:
    """Whether a dotted name leads to a module or to something in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        return all((found := getattr(found, part, None)) is not None for part in parts[cut:])
    return False


@cache
def imported(module: str) -> dict[str, str]:
    """Name -> where it comes from, for what a module imports, also for its annotations alone."""
    spec = importlib.util.find_spec(module) if module else None
    if spec is None or not spec.has_location or not str(spec.origin).endswith(".py"):
        return {}
    found = {}
    for node in ast.walk(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.asname: a.name for a in node.names if a.asname}
    return found


@cache
def homes(module: str) -> frozenset[str]:
    """The module, and those in which the names that it offers are defined, with the bases of classes."""
    face = importlib.import_module(module) if module else None
    offered = [getattr(face, name, None) for name in getattr(face, "__all__", ())]
    bases = [base for x in offered for base in (x.__mro__ if isinstance(x, type) else (x,))]
    return frozenset({module, *(getattr(x, "__module__", None) or "" for x in bases)} - {""})


def candidates(node: Element) -> list[str]:
    """The full names that a reference may mean: as it is, in the module that it stands in, and in a class of it."""
    target = node["reftarget"]
    module, owner = node.get("py:module") or "", node.get("py:class") or ""
    places = ["", "builtins", "typing", module, f"{module}.{owner}"]
    package = module
    while package:
        places.append(package)
        package = package.rpartition(".")[0]
    head, _, rest = target.partition(".")
    found = [f"{place}.{target.lstrip('.')}".strip(".") for place in places]
    return found + [f"{imported(home)[head]}.{rest}".strip(".") for home in homes(module) if head in imported(home)]


def resolve(app: Sphinx, env: BuildEnvironment, node: Element, contnode: Element) -> Element | None:
    """The text of the reference, where it names something; otherwise nothing, and Sphinx warns."""
    if node.get("refdomain") != "py":
        return None
    return contnode if any(map(exists, candidates(node))) or node["reftarget"] in typing.__all__ else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Ask after Sphinx's own resolution has found nothing."""
    app.connect("missing-reference", resolve, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
