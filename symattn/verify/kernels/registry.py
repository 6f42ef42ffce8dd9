"""Kernels by name, and the three ways in which a kernel is named: built-in, ``FILE.py:FUNCTION``, ``MODULE:FUNCTION``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from symattn.errors import DefinitionError, FileFormatError, KernelError, MissingDependencyError, UnknownNameError, nearest
from symattn.tensors import check_layout
from symattn.verify.kernels import flex, jax_dpa, onnx_attention, onnx_contrib, torch_mha, torch_sdpa
from symattn.verify.kernels.base import Kernel
from symattn.verify.kernels.ours import Flash, Naive
from symattn.verify.kernels.user import FunctionKernel

_OWN = "A function of your own is FILE.py:FUNCTION or MODULE:FUNCTION."
BUILT_IN: dict[str, Kernel] = {
    k.name: k
    for k in (
        *(Naive(), Flash()),
        *(*torch_sdpa.KERNELS, *flex.KERNELS, *torch_mha.KERNELS),
        *(*onnx_attention.KERNELS, *onnx_contrib.KERNELS, *jax_dpa.KERNELS),
    )
}
"""The kernels that symattn knows by name, installed here or not."""


def resolve(
    kernel: str | Callable[..., Any] | Kernel, *, backward: str | Callable[..., Any] | None = None, layout: str = "bhsd"
) -> Kernel:
    """The kernel of a name or a function.

    Parameters
    ----------
    kernel
        The name of a built-in kernel; ``FILE.py:FUNCTION``; ``MODULE:FUNCTION``, importable also from the current folder (a
        dotted FUNCTION is an attribute of an attribute); or a function.
    backward
        Where its gradients come from, named in the same ways; not for a built-in kernel.
    layout
        ``"bhsd"`` or ``"bshd"``, of a function that is not built in.

    Raises
    ------
    UnknownNameError
        When there is no such kernel, module or function; the message names the nearest.
    MissingDependencyError
        When a built-in kernel's package is not installed.
    KernelError
        When the module raises while it is imported.
    DefinitionError
        When a layout is given for a built-in kernel.

    >>> resolve("numpy:flash").name
    'numpy:flash'
    """
    check_layout(layout)
    if isinstance(kernel, Kernel):
        return _ready(kernel)
    if callable(kernel):
        name = str(getattr(kernel, "__qualname__", type(kernel).__qualname__))
        return FunctionKernel(kernel, name, backward=_function(backward), layout=layout)
    if kernel in BUILT_IN:
        if backward is not None:
            raise UnknownNameError(f"{kernel} brings its own backward; a backward kernel goes with a function of your own")
        if layout != "bhsd":
            raise DefinitionError(f"{kernel} has a layout of its own; a layout is that of a function of your own")
        return _ready(BUILT_IN[kernel])
    function = _function(kernel)
    assert function is not None
    return FunctionKernel(function, kernel, backward=_function(backward), layout=layout)


def _ready(kernel: Kernel) -> Kernel:
    missing = kernel.missing()
    if missing:
        raise MissingDependencyError(f"{kernel.name}: {missing}")
    return kernel


def _function(text: str | Callable[..., Any] | None) -> Callable[..., Any] | None:
    if text is None or callable(text):
        return text
    where, colon, name = text.rpartition(":")
    if not colon or not where or not name:
        raise UnknownNameError(f"no kernel {text!r}. {nearest(text, BUILT_IN)} {_OWN}")
    module = _file(Path(where), text) if where.endswith(".py") else _module(where, text)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            built_in = [k for k in BUILT_IN if k.partition(":")[0] == where]
            said = nearest(text, built_in) if built_in else _near(part, found)
            raise UnknownNameError(f"no kernel {text!r}: {where} has no function {name!r}. {said}")
        found = getattr(found, part)
    if not callable(found):
        raise UnknownNameError(f"{text} is a {type(found).__name__}, not a function. {_near(name, module)}")
    return found


def _near(name: str, x: object) -> str:
    """The functions of a module or class with names near to one; a few of them all where none is near."""
    names = [n for n, v in vars(x).items() if not n.startswith("_") and callable(v)] if hasattr(x, "__dict__") else []
    said = nearest(name, names)
    return said if said.startswith("Did") or len(names) <= 8 else ""


def _file(path: Path, text: str) -> ModuleType:
    if not path.is_file():
        raise UnknownNameError(f"no kernel {text!r}: the file {path} does not exist")
    name = f"symattn_kernel_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FileFormatError(f"{path} cannot be loaded as a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickling look a function's module up by name
    with _folder_on_path(str(path.resolve().parent)):
        return _run(lambda: spec.loader.exec_module(module), module, text)  # type: ignore[union-attr]


def _module(name: str, text: str) -> ModuleType:
    with _folder_on_path(str(Path.cwd())):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
                raise UnknownNameError(f"no kernel {text!r}: there is no module {name}. {nearest(text, BUILT_IN)}") from error
            raise MissingDependencyError(f"{text}: {error}") from error
        except BaseException as error:
            raise _at_import(text, error) from error


def _run(load: Callable[[], None], module: ModuleType, text: str) -> ModuleType:
    try:
        load()
    except ModuleNotFoundError as error:
        raise MissingDependencyError(f"{text}: {error}") from error
    except BaseException as error:
        raise _at_import(text, error) from error
    return module


def _at_import(text: str, error: BaseException) -> BaseException:
    """What is said when importing a kernel's module raises; a module that ends the program is no module to import."""
    if type(error) is KeyboardInterrupt:
        return error
    if isinstance(error, Exception):
        return KernelError(f"loading {text} raised {type(error).__name__}: {error}")
    said = f"importing it ended with {type(error).__name__}: {error}".removesuffix(": ")
    return UnknownNameError(f"no kernel {text!r}: {said}. Is it a script? Keep what it runs under `if __name__ == '__main__':`")


class _folder_on_path:
    """The folder in front of ``sys.path`` while a user's module is loaded."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __enter__(self) -> None:
        sys.path.insert(0, self.folder)

    def __exit__(self, *exc: object) -> None:
        if self.folder in sys.path:
            sys.path.remove(self.folder)
