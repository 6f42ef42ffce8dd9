"""How much a page says: the level of detail, symbols or numbers, which queries are followed, shapes, whole matrices.

These choices never change what is derived, only how much of it is shown; :func:`trimmed` takes away what a page leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from symattn.derivation.document import Grid, Line, Step
from symattn.derivation.examples import Example
from symattn.errors import DefinitionError, nearest

DETAILS = ("brief", "steps", "full")
SHOWN = ("symbolic", "numeric", "both", "side-by-side")
ALL = "all"


@dataclass(frozen=True)
class Page:
    """What a page shows.

    Parameters
    ----------
    detail
        ``"brief"``: numbered formulas with a name, and the matrices of the outputs; ``"steps"``: reasons, how each step is known,
        and the work of the followed row; ``"full"``: every helper, every element of the row, and shapes besides.
    show
        ``"symbolic"``, ``"numeric"``, ``"both"`` (formulas, and numbers below them) or ``"side-by-side"`` (every line of numbers
        begins with the formula that they are put into).
    follow
        The followed query: its position as counted on the page, or a word of the example; ``"all"`` for every query; None for
        what the example says.
    values
        Whether matrices are shown whole, however large.
    shapes
        Whether shapes stand under the symbols of matrices; None: in full detail.

    Raises
    ------
    DefinitionError
        When ``detail`` or ``show`` is none of its values.

    >>> Page(detail="full").shaped, Page("brief").shaped
    (True, False)
    """

    detail: str = "steps"
    show: str = "both"
    follow: int | str | None = None
    values: bool = False
    shapes: bool | None = None

    def __post_init__(self) -> None:
        for name, value, allowed in (("detail", self.detail, DETAILS), ("show", self.show, SHOWN)):
            if value not in allowed:
                said = f"{name} is one of {', '.join(map(repr, allowed))}, got {value!r}"
                raise DefinitionError(f"{said}. {nearest(str(value), allowed)}")

    @property
    def full(self) -> bool:
        """Whether every helper and every element is shown."""
        return self.detail == "full"

    @property
    def brief(self) -> bool:
        """Whether a step is a formula with a name."""
        return self.detail == "brief"

    @property
    def told(self) -> bool:
        """Whether there is prose beside the steps: not on a brief page, nor on one of numbers alone."""
        return not self.brief and self.show != "numeric"

    def holds(self, step: Step) -> bool:
        """Whether a step has a place on the page: not where nothing but its name is left of it."""
        return not self.brief or bool(step.formulas or step.grids)

    @property
    def shaped(self) -> bool:
        """Whether shapes are shown."""
        return self.full if self.shapes is None else self.shapes

    @property
    def every(self) -> bool:
        """Whether every query is followed."""
        return self.follow == ALL

    def refuse_without_numbers(self) -> None:
        """Refuse a page that asks for numbers where there are none.

        Raises
        ------
        DefinitionError
            When only numbers are to be shown, or a query is to be followed.
        """
        if self.show == "numeric":
            raise DefinitionError("show='numeric': there are no numbers to show; give an example, or a seed")
        if self.follow is not None:
            raise DefinitionError(f"follow={self.follow!r}: there are no numbers to follow; give an example, or a seed")

    def followed(self, example: Example, queries: int, origin: int) -> int | None:
        """The followed query, counted from 0; None where every one is, or where the example has none.

        Parameters
        ----------
        queries
            How many there are.
        origin
            The number of the first position on the page.

        Raises
        ------
        DefinitionError
            When no query is meant; the message lists those that there are.
        """
        if self.follow is None or self.every:
            return None if self.every else example.follow
        text = str(self.follow).strip()
        if text.isascii() and text.isdecimal() and origin <= int(text) < origin + queries:
            return int(text) - origin
        if text in example.tokens:
            return len(example.tokens) - 1 - example.tokens[::-1].index(text)
        words = [f"{k} ({w})" for k, w in enumerate(example.tokens, origin)]
        allowed = ", ".join(words) if words else f"{origin} to {origin + queries - 1}"
        raise DefinitionError(f"follow={self.follow!r}: no query is meant; there are {allowed}, and 'all'")


def trimmed(step: Step, page: Page, outputs: Sequence[str]) -> Step:
    """A step without what the page leaves out; ``outputs`` are the tensors whose matrices a brief page shows."""
    if page.show == "numeric":
        step = replace(step, index=(), matrix=(), shapes=())
    if page.brief:
        kept = step.grids if step.tensors[-1] in outputs else ()
        whole = tuple(g for g in kept if g.row is None) or kept
        return replace(step, reason="", known="", numbers="", uses=(), remark="", lines=(), grids=whole)
    return step


def how_exact(lines: Sequence[Line], grids: Sequence[Grid]) -> str:
    """Whether all numbers of a step are shown by their exact values, or decimals of some are known by an enclosure."""
    cells = [x.cell for x in lines] + [c for g in grids for row in g.cells for c in row]
    if not cells:
        return ""
    return "exact" if all(c.masked or c.exact or c.value is not None for c in cells) else "enclosed"
