"""The Jacobian of one row of the output by the scores, the weights or an input of an example, by the exact gradient.

Row e of it is the gradient of component e of the followed query's output: the derived gradient, evaluated with an incoming
gradient that is 1 there and 0 elsewhere.
"""

from __future__ import annotations

from itertools import product as cartesian

import numpy as np

from symattn.derivation.derived import derived
from symattn.errors import LimitError, UnknownNameError, nearest
from symattn.fields import field_of
from symattn.indexed import name_of
from symattn.pictures.chart import Chart, Panel
from symattn.pictures.examplevalues import Bound, floats, written
from symattn.program import Program

MOST_ROWS, MOST_COLUMNS = 64, 2048


def jacobian(bound: Bound, by: str = "scores") -> Chart:
    r"""The matrix :math:`\partial O_{i e} / \partial T_u` for the followed query i.

    Parameters
    ----------
    bound
        The example.
    by
        ``scores``, ``weights``, or the name of an input (``query``, ``x``, ``w_q`` ...) or of a tensor (``Q``).

    Raises
    ------
    UnknownNameError
        When the gradient has no such tensor.
    LimitError
        When the matrix would be too large.

    >>> from symattn.pictures.examplevalues import bind
    >>> panel = jacobian(bind("two-words"), by="weights").panels[0][0]
    >>> panel.columns, panel.values.shape
    (('thinking', 'machines'), (3, 2))
    """
    whole = derived(bound.definition.program(), gradient=True).program
    output = bound.program.outputs[0]
    name = _tensor(bound, whole, by)
    row = bound.example.follow or 0
    axes = bound.program[output].indices
    at = next(k for k, a in enumerate(axes) if str(a) == "i")
    shape = bound.shape(output)
    seeds = [x for x in np.ndindex(*shape) if x[at] == row]
    own = bound.shape(f"d{name}", whole)
    places = _places(bound, whole, name, row)
    if len(seeds) > MOST_ROWS or len(places) > MOST_COLUMNS:
        raise LimitError(
            f"{bound.example.name}: the Jacobian is {len(seeds)} × {len(places)}; at most {MOST_ROWS} × {MOST_COLUMNS}"
        )
    still = {
        f"d{o}": np.zeros(bound.shape(f"d{o}", whole), dtype=object)
        for o in bound.definition.program().outputs
        if o != output and f"d{o}" in whole.inputs
    }
    table = np.empty((len(seeds), len(places)), dtype=object)
    for k, seed in enumerate(seeds):
        incoming = np.zeros(shape, dtype=object)
        incoming[seed] = 1
        found = bound.evaluate(whole, (f"d{name}",), {**still, f"d{output}": incoming})[f"d{name}"]
        table[k] = [found[u] for u in places] if own else [found[()]]
    values = floats(table)
    reach = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    rows = tuple(_place(x, at, bound.origin) for x in seeds)
    word = bound.words(axes[at], bound.program)
    query = f"query {row + bound.origin}" + (f" (“{word[row]}”)" if word else "")
    panel = Panel(f"∂ output / ∂ {by}", values, rows, _names(bound, whole, name, places), "output component", by, written(table))
    says = f"Exact derivatives of each output component of {query} (rows) by the elements of {by} (columns)."
    return Chart(bound.title, says, ((panel,),), "derivative", -reach, reach)


def _tensor(bound: Bound, whole: Program, by: str) -> str:
    """The letter of what is differentiated by."""
    known = (
        {"scores": name_of(bound.softmaxes()[0].score), "weights": bound.softmaxes()[0].name}
        if by in ("scores", "weights")
        else {}
    )
    names = {n: n for n in (*bound.program.inputs, *(s.name for s in bound.program)) if f"d{n}" in whole}
    fields = {field_of(n, bound.definition.parameters): n for n in names}
    table = {**names, **fields, **known}
    if by not in table or f"d{table[by]}" not in whole:
        allowed = tuple(dict.fromkeys(("scores", "weights", *fields, *names)))
        raise UnknownNameError(f"{bound.example.name}: there is no gradient by {by!r}. {nearest(by, allowed)}")
    return table[by]


def _places(bound: Bound, whole: Program, name: str, row: int) -> list[tuple[int, ...]]:
    """The elements that are differentiated by: of scores and weights those of the followed row."""
    axes = whole[f"d{name}"].indices
    shape = bound.shape(f"d{name}", whole)
    pairs = name in bound.program and {"i", "j"} <= {str(a) for a in axes}
    ranges = [[row] if pairs and str(a) == "i" else range(n) for a, n in zip(axes, shape, strict=True)]
    return list(cartesian(*ranges))


def _names(bound: Bound, whole: Program, name: str, places: list[tuple[int, ...]]) -> tuple[str, ...]:
    """What stands at each column: the word of its position, and the other indices."""
    axes = whole[f"d{name}"].indices
    words = [bound.words(a, whole) for a in axes]
    pairs = name in bound.program and {"i", "j"} <= {str(a) for a in axes}
    out = []
    for u in places:
        said = [
            w[k] if w else str(k + bound.origin) for a, w, k in zip(axes, words, u, strict=True) if not (pairs and str(a) == "i")
        ]
        out.append(" ".join(said))
    return tuple(out)


def _place(x: tuple[int, ...], at: int, origin: int) -> str:
    return ", ".join(str(k + origin) for n, k in enumerate(x) if n != at)
