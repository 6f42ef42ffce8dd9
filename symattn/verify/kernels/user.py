"""Functions of users as kernels: the calling convention, backward passes, and autograd for PyTorch and JAX."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from symattn import arithmetic
from symattn.arithmetic import Arithmetic
from symattn.errors import DefinitionError, KernelError, SymattnError
from symattn.intake import Array, framework, to_numpy
from symattn.tensors import turned
from symattn.verify.kernels.arrays import to_framework
from symattn.verify.kernels.base import Kernel, Tensors, guarded
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.options import options, parameters, refuse_untaken

Function = Callable[..., Any]
GRADIENTS = ("grad_query", "grad_key", "grad_value")
ARRAYS = ("numpy", "torch", "jax")
OUTPUTS = ("out", "lse", "logits", "next_word")
_SHORT = {"dq": "grad_query", "dk": "grad_key", "dv": "grad_value", "output": "out", "logsumexp": "lse"}


class FunctionKernel(Kernel):
    """A function ``kernel(query, key, value, **options)`` of the calling convention.

    Parameters
    ----------
    function
        The kernel. Attributes that it may have: ``backward`` (a function), ``arithmetic`` (how it computes: an ``Arithmetic``,
        the name of a preset, or a mapping), ``arrays`` (``"numpy"``, ``"torch"`` or ``"jax"``: what it is called with).
    name
        What reports call it.
    backward
        A function to use in place of ``function.backward``.
    layout
        ``"bhsd"`` or ``"bshd"``: the layout in which it takes and returns tensors with a head and a sequence axis.
    """

    about = "a function of your own"

    def __init__(self, function: Function, name: str, *, backward: Function | None = None, layout: str = "bhsd") -> None:
        self.function, self.name, self.layout = function, name, layout
        self.given = backward if backward is not None else getattr(function, "backward", None)
        if framework(function) == "torch" and backward is None:
            self.given = None  # a module of PyTorch: its gradients come from autograd
        self.arrays = arrays_of(function)
        self.assumed = getattr(function, "arithmetic", None) is None

    def arithmetic(self, call: Call) -> Arithmetic:
        """What the function declares; a tiled kernel of the inputs' dtype otherwise."""
        declared = getattr(self.function, "arithmetic", None)
        if declared is None:
            return arithmetic.default_for(call.dtype)
        found = arithmetic.declaration(declared) if isinstance(declared, (Arithmetic, str, Mapping)) else None
        if found is None:
            raise DefinitionError(
                f"{self.name}.arithmetic is an Arithmetic, a preset's name, a .toml file or a mapping, got {declared!r}"
            )
        return found

    def has_backward(self, call: Call) -> bool:
        """Whether it has a backward of its own or autograd."""
        return self.given is not None or self.arrays in ("torch", "jax")

    def takes(self, call: Call, outputs: Mapping[str, Array]) -> frozenset[str]:
        """What the signature of its backward names (not ``**options``); with autograd, ``grad_lse`` where the LSE has one."""
        if self.given is not None:
            return _taken(self.given, ("out", "lse", "grad_lse"), by_name=True)
        if self.arrays == "torch" and "lse" in outputs:
            leaves = [t.requires_grad_(True) for t in self._tensors(call, _positional(call))]
            lse = self._named(self._call(self.function, leaves, self._options(call, self.function))).get("lse")
            return frozenset({"grad_lse"}) if getattr(lse, "requires_grad", False) else frozenset()
        return frozenset({"grad_lse"} & {"grad_" + n for n in outputs})

    def forward(self, call: Call) -> Tensors:
        """Call the function on copies and read what it returned."""
        with _wide(self.arrays):
            result = self._call(self.function, self._tensors(call, _positional(call)), self._options(call, self.function))
            return self._outputs(result)

    def takes_out(self) -> bool:
        """Whether its signature names a buffer ``out`` that it writes its output into."""
        return bool(_taken(self.function, ("out",), by_name=True))

    def forward_into(self, call: Call, fill: float) -> Tensors:
        """What it writes into a buffer ``out=`` that is full of a number beforehand, whether it returns that or nothing."""
        shape = (*call.query.shape[:3], call.value.shape[3])
        buffer = self._laid("out", np.full(shape, fill).astype(call.dtype), self.arrays)
        with _wide(self.arrays):
            opts = self._options(call, self.function)
            result = self._call(self.function, self._tensors(call, _positional(call)), {**opts, "out": buffer})
            return self._outputs(buffer if result is None else result)

    def backward(self, call: Call, given: Mapping[str, Array]) -> Tensors:
        """Gradients from the backward function, or from autograd; none of an option that is no input but a constant."""
        found = self._raw_gradients(call, given)
        constants = {f"grad_{n}" for n in (*options(call), *parameters(call)) if n not in call.fields}
        return {n: a for n, a in found.items() if n not in constants}

    def _raw_gradients(self, call: Call, given: Mapping[str, Array]) -> Tensors:
        if self.given is not None:
            kind = arrays_of(self.given) if not hasattr(self.function, "arrays") else self.arrays
            with _wide(kind):
                extra = {k: self._laid(k, x, kind) for k, x in given.items() if k in ("out", "lse", "grad_lse")}
                args = [*self._tensors(call, _positional(call), kind), self._laid("grad_out", given["grad_out"], kind)]
                result = self._call(self.given, args, {**self._options(call, self.given, kind), **extra})
                return self._gradients(result)
        return self._torch_gradients(call, given) if self.arrays == "torch" else self._jax_gradients(call, given)

    def _torch_gradients(self, call: Call, given: Mapping[str, Array]) -> Tensors:
        import torch

        opts = self._options(call, self.function)
        extra = [k for k, t in opts.items() if isinstance(t, torch.Tensor) and t.is_floating_point() and k != "dropout_mask"]
        leaves = [t.requires_grad_(True) for t in (*self._tensors(call, _positional(call)), *(opts[k] for k in extra))]
        first = len(leaves) - len(extra)
        names = [*(f"grad_{n}" for n in _positional(call)), *(f"grad_{k}" for k in extra)]
        opts |= dict(zip(extra, leaves[first:], strict=True))
        found = self._named(self._call(self.function, leaves[:first], opts))
        pairs = [(found["out"], self._laid("grad_out", given["grad_out"], "torch"))]
        if "grad_lse" in given and isinstance(found.get("lse"), torch.Tensor) and found["lse"].requires_grad:
            pairs.append((found["lse"], to_framework(given["grad_lse"].astype(np.float64), "torch").to(found["lse"].dtype)))
        if not found["out"].requires_grad:
            raise KernelError(
                f"{self.name} returned an output without a gradient; give --backward-kernel or a backward attribute"
            )
        try:
            grads = torch.autograd.grad([a for a, _ in pairs], leaves, [g for _, g in pairs], allow_unused=True)
        except RuntimeError as error:
            raise KernelError(f"{self.name}: its backward raised RuntimeError: {error}") from error
        return self._finish({n: g for n, g in zip(names, grads, strict=True) if g is not None})

    def _jax_gradients(self, call: Call, given: Mapping[str, Array]) -> Tensors:
        import jax

        with _wide("jax"):
            opts = self._options(call, self.function)
            extra = [k for k, a in opts.items() if isinstance(a, jax.Array) and a.dtype.kind not in "biu" and k != "dropout_mask"]
            leaves = [*self._tensors(call, _positional(call)), *(opts[k] for k in extra)]

            first = len(leaves) - len(extra)

            def run(*given: Any) -> Any:
                others = dict(zip(extra, given[first:], strict=True))
                found = self._named(self._call(self.function, given[:first], {**opts, **others}))
                return {n: found[n] for n in ("out", "lse") if found.get(n) is not None}

            result, pull = jax.vjp(run, *leaves)
            seed = {"out": self._laid("grad_out", given["grad_out"], "jax")}
            if "lse" in result:
                lse = given.get("grad_lse", np.zeros(result["lse"].shape))
                seed["lse"] = to_framework(lse, "jax").astype(result["lse"].dtype)
            names = [*(f"grad_{n}" for n in _positional(call)), *(f"grad_{k}" for k in extra)]
            return self._finish(dict(zip(names, pull(seed), strict=True)))

    def _call(self, function: Function, args: Any, kwargs: Mapping[str, Any]) -> Any:
        return guarded(self.name, lambda: function(*args, **kwargs))

    def _options(self, call: Call, function: Function, kind: str | None = None) -> dict[str, Any]:
        kind = kind or self.arrays
        chosen, own = options(call), parameters(call)
        name = self.name if function is self.function else f"its backward ({getattr(function, '__qualname__', 'a function')})"
        refuse_untaken(name, call, chosen, _taken(function, tuple(chosen)))
        chosen |= {k: own[k] for k in _taken(function, tuple(own), by_name=True)}
        return {k: to_framework(v, kind) if isinstance(v, np.ndarray) else v for k, v in chosen.items()}

    def _tensors(self, call: Call, names: tuple[str, ...], kind: str | None = None) -> list[Any]:
        return [self._laid(n, call.fields[n], kind or self.arrays) for n in names]

    def _laid(self, name: str, a: Array, kind: str) -> Any:
        return to_framework(turned(name, a, self.layout), kind)

    def _named(self, result: Any) -> dict[str, Any]:
        if isinstance(result, Mapping):
            return {_SHORT.get(str(k), str(k)): v for k, v in result.items()}
        if isinstance(result, (tuple, list)):
            if not 1 <= len(result) <= 2:
                raise KernelError(f"{self.name} returned {len(result)} values; it should return out, (out, lse) or a mapping")
            return dict(zip(("out", "lse"), result, strict=False))
        return {"out": result}

    def _outputs(self, result: Any) -> Tensors:
        named = self._named(result)
        if named.get("out") is None:
            raise KernelError(
                f"{self.name} returned no output: got {type(result).__name__}, expected out, (out, lse) or a mapping"
            )
        return self._finish({k: v for k, v in named.items() if k in OUTPUTS})

    def _gradients(self, result: Any) -> Tensors:
        if isinstance(result, Mapping):
            named = self._named(result)
        elif isinstance(result, (tuple, list)) and len(result) == 3:
            named = dict(zip(GRADIENTS, result, strict=True))
        else:
            got = f"{len(result)} values" if isinstance(result, (tuple, list)) else type(result).__name__
            raise KernelError(f"{self.name}: its backward returned {got}; it should return (dq, dk, dv) or a mapping")
        return self._finish(named)

    def _finish(self, named: Mapping[str, Any]) -> Tensors:
        found: Tensors = {}
        for name, x in named.items():
            if x is None:
                continue
            try:
                a = to_numpy(x, name)
            except SymattnError as error:
                raise KernelError(f"{self.name} returned no array: {error}") from error
            found[name] = turned(name, a, self.layout)
        return found


def _positional(call: Call) -> tuple[str, ...]:
    """The fields that go by position: query, key, value; none where a form starts from other tensors, which go by name."""
    return call.sources if {"query", "key", "value"} <= set(call.sources) else ()


def arrays_of(function: Function) -> str:
    """What a function is called with: its attribute ``arrays``; else by the module that it, its class or its globals belong to.

    Raises
    ------
    DefinitionError
        For an attribute that names none of :data:`ARRAYS`.

    >>> arrays_of(lambda q, k, v: v)
    'numpy'
    """
    declared = getattr(function, "arrays", None)
    part = framework(function) == "torch" and not isinstance(declared, str)  # of a module, which names its parts as it likes
    if declared is not None and not part:
        if declared not in ARRAYS:
            name = getattr(function, "__qualname__", type(function).__name__)
            raise DefinitionError(f"{name}.arrays is one of {', '.join(map(repr, ARRAYS))}, got {declared!r}")
        return str(declared)
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    inner = inspect.unwrap(inner)
    kind = framework(inner)
    if kind in ("torch", "jax"):
        return kind
    module = str(getattr(inner, "__module__", None) or "")
    if module.partition(".")[0] in ("torch", "jax"):
        return module.partition(".")[0]
    scope = getattr(inner, "__globals__", None) or getattr(_method(inner), "__globals__", {})
    used = {getattr(v, "__name__", "").partition(".")[0] for v in scope.values() if inspect.ismodule(v)}
    return next((k for k in ("torch", "jax") if k in used and k in sys.modules), "numpy")


def _method(x: object) -> Any:
    return vars(type(x)).get("__call__")


def _taken(function: Function | None, names: tuple[str, ...], *, by_name: bool = False) -> frozenset[str]:
    """Those of ``names`` that the signature of a function takes; all of them when it takes any keyword, unless ``by_name``."""
    if function is None:
        return frozenset()
    if framework(function) == "torch" and hasattr(function, "forward"):
        function = function.forward  # a module takes anything and hands it to its forward
    try:
        known = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return frozenset() if by_name else frozenset(names)  # it has none to look at: a call says what it takes
    if not by_name and any(p.kind is p.VAR_KEYWORD for p in known.values()):
        return frozenset(names)
    by_keyword = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return frozenset(n for n in names if n in known and known[n].kind in by_keyword)


def _wide(kind: str) -> AbstractContextManager[Any]:
    """JAX keeps float64 only inside this context; nothing global is set."""
    if kind != "jax":
        return nullcontext()
    import jax

    return jax.enable_x64(True)
