"""For tests: assert that arrays are the attention of others, within the largest error that correct arithmetic may show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from symattn import arithmetic as arithmetics
from symattn import formats
from symattn.arithmetic import Arithmetic
from symattn.definition import Definition
from symattn.errors import DefinitionError, UndecidedError, UnknownNameError, nearest
from symattn.intake import Array, to_numpy
from symattn.tensors import IMPLIED, implied, laid_out
from symattn.verify.assumed import judge_gradients, judge_outputs
from symattn.verify.compare import Comparison, Element, significant
from symattn.verify.reference import Reference, Tolerance, check_inputs
from symattn.verify.report import TensorReport, short

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def assert_attention(
    actual: ArrayLike | tuple[Any, ...] | Mapping[str, Any],
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    *,
    attention: Definition | None = None,
    grad_out: ArrayLike | None = None,
    grad_lse: ArrayLike | None = None,
    arithmetic: Arithmetic | str | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    layout: str = "bhsd",
    err_msg: str = "",
    **given: Any,
) -> None:
    """Raise an AssertionError where ``actual`` is not the attention of ``query, key, value``.

    Parameters
    ----------
    actual
        The output, ``(out, lse)``, or a mapping ``out lse grad_query grad_key grad_value grad_sinks ...``.
    query, key, value
        Arrays of any framework, (B, H, n, d) in the layout ``bhsd``, or (n, d); taken exactly as the floats that they are.
    attention
        What they should be the attention of; or give its fields by name, ``causal="top-left"``.
    grad_out, grad_lse
        Incoming gradients, where gradients are among ``actual``.
    arithmetic
        How ``actual`` was computed: a declaration or the name of a preset; by default a tiled kernel of the query's dtype.
    rtol, atol
        A tolerance ``atol + rtol |exact|`` in place of the bound that follows from the arithmetic.
    layout
        ``"bhsd"`` or ``"bshd"``.
    err_msg
        Put in front of the message.
    given
        Fields of the definition, and tensors that it reads: ``attn_mask`` (boolean or additive by its dtype), ``sinks``,
        ``alibi_slopes``, ``bias`` ..., which also say that the definition has them.

    Raises
    ------
    AssertionError
        Naming tensor, element, its value, the exact value to 20 digits, the bound, and the error in ulps.
    UndecidedError
        When no precision decides it: the error equals the bound as far as can be told.
    SymattnError
        When the inputs themselves cannot be used.

    >>> q = np.array([[1.0, 0.5]])
    >>> assert_attention(np.array([[3.0]]), q, np.zeros((2, 2)), np.array([[2.0], [4.0]]))
    >>> assert_attention(np.array([[3.1]]), q, np.zeros((2, 2)), np.array([[2.0], [4.0]]), atol=0.01)
    Traceback (most recent call last):
    ...
    AssertionError: Not the attention of query, key, value to rtol=0, atol=0.01
    out: mismatched elements: 1 / 1 (100%)
    Worst at index (0, 0):
      ACTUAL: 3.1000000000000000888
      EXACT:  3
    Error 0.1 = 2.25e+14 ulp, 10 times the allowed 0.01
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    actuals = _named(actual)
    arrays = {"query": query, "key": key, "value": value, "grad_out": grad_out, "grad_lse": grad_lse}
    definition, tensors = _split(attention, given)
    inputs = laid_out({**{k: to_numpy(x, k) for k, x in arrays.items() if x is not None}, **tensors}, layout)
    ref = Reference(definition.core, inputs)
    found = laid_out({k: _numbers(x, k) for k, x in actuals.items() if x is not None}, layout)
    _check_shapes(found, ref)
    rule = _rule(arithmetic, rtol, atol, found, ref)
    assumed = arithmetic is None
    outputs = {k: a for k, a in found.items() if k in ("out", "lse")}
    reports = judge_outputs(ref, outputs, rule, assumed=assumed)
    gradients = {k: a for k, a in found.items() if k.startswith("grad_")}
    if gradients:
        if grad_out is None:
            raise DefinitionError("gradients are among the actual arrays, so grad_out is needed")
        saved = found if {"out", "lse"} <= set(found) else None
        reports += judge_gradients(ref, gradients, rule, saved=saved, with_lse=grad_lse is not None, assumed=assumed)
    _raise_for(reports, rule, np.asarray(inputs["query"]).shape == _shape_of(query), err_msg)


def _named(actual: Any) -> dict[str, Any]:
    if isinstance(actual, Mapping):
        return dict(actual)
    if isinstance(actual, tuple):
        return dict(zip(("out", "lse"), actual, strict=True))
    return {"out": actual}


def _numbers(x: Any, name: str) -> Array:
    a = to_numpy(x, name)
    return a.astype(np.float64) if a.dtype.kind in "biu" else a


def _shape_of(x: Any) -> tuple[int, ...]:
    return tuple(to_numpy(x).shape)


def _split(attention: Definition | None, given: Mapping[str, Any]) -> tuple[Definition, dict[str, Array]]:
    """The definition, and the tensors among the keywords."""
    own = {f.name for f in dataclass_fields(Definition)}
    values: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    for name, x in given.items():
        is_array = hasattr(x, "shape") or isinstance(x, list)
        is_field = name in own and not (is_array and name in ("attn_mask", "bias", "alibi_slopes", "key_lengths"))
        (values if is_field else arrays)[name] = x
    definition = attention if attention is not None else Definition()
    telling = {name: to_numpy(x, name) for name, x in arrays.items() if name in IMPLIED or name == "attn_mask"}
    definition = implied(definition, telling, said=values)
    definition = definition.replace(**values) if values else definition
    read = {*IMPLIED, "attn_mask", "dropout_p", *definition.unbound}
    for name in arrays:
        if name not in read:
            said = f"{name!r} is neither a field of the definition nor a tensor that it reads"
            raise UnknownNameError(f"{said}. {nearest(name, own | read)}")
    return definition, telling | {name: to_numpy(x, name) for name, x in arrays.items() if name not in telling}


def _check_shapes(found: Mapping[str, Array], ref: Reference) -> None:
    __tracebackhide__ = True
    b, h, n, _ = ref.call.query.shape
    want = {"out": (b, h, n, ref.call.value.shape[3]), "lse": (b, h, n)}
    want |= {f"grad_{k}": a.shape for k, a in ref.call.fields.items() if not k.startswith("grad_")}
    for name, a in found.items():
        if name not in want:
            raise UnknownNameError(f"{name!r} is nothing that attention gives; known here are {', '.join(want)}")
        if a.shape != want[name]:
            raise AssertionError(f"{name}: shapes differ\n  ACTUAL: {a.shape}\n  EXACT:  {want[name]}")


def _rule(
    arithmetic: Arithmetic | str | None, rtol: float | None, atol: float | None, found: Mapping[str, Array], ref: Reference
) -> Arithmetic | Tolerance:
    if rtol is not None or atol is not None:
        return Tolerance(Fraction(rtol or 0), Fraction(atol or 0))
    if arithmetic is not None:
        declared = arithmetics.declaration(arithmetic)
        assert declared is not None
        check_inputs(declared, ref.call, by_value=True)
        return declared
    base = arithmetics.default_for(ref.call.dtype)
    stored = {"output": "out", "lse": "lse"}
    changes: dict[str, Any] = {k: formats.get(found[f].dtype).name for k, f in stored.items() if f in found}
    return replace(base, **changes)


def _raise_for(reports: list[TensorReport], rule: Arithmetic | Tolerance, batched: bool, err_msg: str) -> None:
    __tracebackhide__ = True
    failing = [t for t in reports if t.verdict == "fail"]
    open_ones = [t.name for t in reports if t.verdict == "inconclusive"]
    if not failing and not open_ones:
        return
    if not failing:
        raise UndecidedError(f"{', '.join(open_ones)}: the error equals the bound as far as any precision tells")
    what = f"within the bound of {rule.describe()}" if isinstance(rule, Arithmetic) else _tolerance(rule)
    lines = [*([err_msg] if err_msg else []), f"Not the attention of query, key, value {what}"]
    for t in failing:
        lines += _message(t.name, t.comparison, batched) if t.comparison.failing else []
        lines += t.replayed.lines(t.name) if t.replayed and t.replayed.failing else []
    raise AssertionError("\n".join(lines))


def _tolerance(t: Tolerance) -> str:
    return f"to rtol={float(t.rtol):g}, atol={float(t.atol):g}"


def _message(name: str, c: Comparison, batched: bool) -> list[str]:
    w: Element | None = c.worst
    assert w is not None, "a failing tensor has elements"
    index = w.index if batched else w.index[2:]
    times = f", {short(w.share)} times the allowed {short(w.bound)}" if w.bound else ", and none is allowed"
    return [
        f"{name}: mismatched elements: {c.failing} / {c.total} ({100 * c.failing / c.total:.3g}%)",
        f"Worst at index {index}:",
        f"  ACTUAL: {significant(w.kernel, 20)}",
        f"  EXACT:  {significant(w.exact, 20)}",
        f"Error {short(w.error)} = {short(w.ulps)} ulp{times}",
    ]
