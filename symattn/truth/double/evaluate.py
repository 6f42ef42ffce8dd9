"""Any program in float64 with a bound for every element: block by block, so that it costs little more than the values alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache

import numpy as np
import sympy as sp

from symattn.errors import ProgramError, nearest
from symattn.numbers import exact_array
from symattn.program import Program
from symattn.readings.floats import approximation
from symattn.readings.sizes import check_names, find_sizes
from symattn.truth.double.approx import FLOOR, UP, Approx, Array, U, exactly
from symattn.truth.double.blocks import POINTS, Run
from symattn.truth.double.bounded import Bounded
from symattn.truth.double.functions import NUMPY, OWNED
from symattn.truth.double.gathered import Gathered
from symattn.truth.double.shared import lighter

__all__ = ["evaluate"]


def evaluate(
    program: Program,
    inputs: Mapping[str, object],
    *,
    sizes: Mapping[sp.Symbol | str, int] | None = None,
    outputs: Iterable[str] | None = None,
    owned_exp: bool = False,
    points: int = POINTS,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Bounded]:
    """Tensors of a program in float64, each element with a radius that holds the exact value.

    Parameters
    ----------
    program
        Any program.
    inputs
        Arrays; floats are the dyadic rationals that they are, text is read exactly.
    sizes
        Sizes that no input shows.
    outputs
        Names of tensors; by default the outputs of the program.
    owned_exp
        Whether the exponential (and all functions) are those with a proof: slower, and nothing is assumed.
    points
        Elements of the largest array of a block.
    progress
        Called with the number of blocks that are done and of all.

    Returns
    -------
    dict
        A :class:`Bounded` for each name: ``mid`` and ``rad`` (infinite where nothing is known), and ``assumption``, what is
        assumed of the library's functions (``None`` where none was used, or with ``owned_exp``).

    Raises
    ------
    ShapeError, UnknownNameError, InputValueError
        When the inputs do not fit the program.
    ProgramError
        For an output that the program does not define, or a function without a rule.

    Notes
    -----
    The rules and their proofs are in :mod:`.approx` (sums, products, the rounding of the bound), :mod:`.norms` (contractions) and
    :mod:`.functions`. As in :mod:`symattn.readings.balls`, a ``range_only`` tensor is taken as it came out by what reads it: the
    outputs are proved not to depend on its value, and tensors between belong to the value used.

    >>> from symattn.program import Statement, indices, size, tensor
    >>> i, = indices("i")
    >>> p = Program((Statement(tensor("y", i), sp.exp(tensor("x", i))),), {i: size("n")}, ("y",))
    >>> y = evaluate(p, {"x": np.array([0.0, 1.0])})["y"]
    >>> y.mid, bool(np.all(y.rad < 2.0**-48)), y.status
    (array([1.        , 2.71828183]), True, 'bounded')
    >>> y.assumption
    "NumPy's float64 functions (exp) err by at most 4 ulp"
    """
    wanted = tuple(program.outputs if outputs is None else outputs)
    for name in wanted:
        if name not in program:
            raise ProgramError(f"the program defines no tensor {name!r}. {nearest(name, [s.name for s in program])}")
    check_names(program, inputs)
    given = {n: _array(v) for n, v in inputs.items()}
    shapes = tuple((n, v.shape) for n, v in given.items())
    lean, found = _lean(program, wanted, shapes, tuple((sizes or {}).items()))
    library, used = (OWNED if owned_exp else NUMPY), set[str]()
    with np.errstate(all="ignore"):
        known: dict[str, Approx | Gathered] = {n: entered(v) for n, v in given.items() if n in lean.inputs}
        run = Run({n: given[n] for n in known}, library, used, points, progress)
        out = run.cut(lean, known, found)
    return {n: Bounded(out[n], library.assumption(used)) for n in wanted}


@lru_cache(maxsize=64)
def _lean(
    program: Program,
    wanted: tuple[str, ...],
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
    given: tuple[tuple[sp.Symbol | str, int], ...],
) -> tuple[Program, dict[sp.Symbol, int]]:
    """What some tensors need of a program, each expression once, and the sizes; one look-up, since a program is long to hash."""
    found = find_sizes(program, dict(shapes), dict(given))
    return lighter(program.with_statements(program.statements, wanted).live()), found


def _array(x: object) -> Array:
    a = np.asarray(x)
    return a if a.dtype.kind in "biuf" or (a.dtype.kind == "V" and a.dtype.names is None) else exact_array(x)


def entered(a: Array) -> Approx:
    """An input as float64: exact where float64 has it, else rounded once.

    >>> entered(np.array([Fraction(1, 3)], dtype=object)).exact, entered(np.array([1.5], dtype=np.float32)).exact
    (False, True)
    """
    if a.dtype.kind == "b" or (a.dtype.kind in "fV" and a.dtype.itemsize <= 8):
        return exactly(a.astype(np.float64, copy=False))
    if a.dtype.kind in "iu":
        value = a.astype(np.float64)
        fine = bool((np.abs(value) <= 2.0**53).all())
        return exactly(value) if fine else Approx(value, 2 * U)
    exact = [approximation(x) for x in exact_array(a).ravel().tolist()]
    value = np.array([_float(x) for x in exact], dtype=np.float64).reshape(a.shape)
    off = [_distance(x, v) for x, v in zip(exact, value.ravel().tolist(), strict=True)]
    rational = all(isinstance(x, (Fraction, float)) for x in exact_array(a).ravel().tolist())
    if rational and not any(off):
        return exactly(value)
    error = np.array(off, dtype=np.float64).reshape(a.shape) * UP + FLOOR
    if not rational:
        error += np.abs(value) * 2.0**-200 + FLOOR
    return Approx(value, 0.0, error, (), bool((value >= 0).all() and rational), False, not bool(np.isfinite(value).all()))


def _float(x: Fraction | float) -> float:
    try:
        return float(x)
    except OverflowError:
        return float("nan")


def _distance(x: Fraction | float, v: float) -> float:
    if isinstance(x, float) or v != v:
        return 0.0
    d = abs(x - Fraction(v))
    return float(d) + 2.0**-1074 if d else 0.0
