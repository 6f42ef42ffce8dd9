"""What is shown of a long run: a bar on standard error, where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

__all__ = ["Progress", "shown"]

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many blocks of it are done, and of how many."""


@contextmanager
def shown(label: str, stream: IO[str] | None = None, force: bool = False) -> Iterator[Progress | None]:
    """A bar while the work lasts, gone afterwards; None where standard error is no terminal, unless ``force``d.

    >>> import io
    >>> with shown("truth", io.StringIO()) as progress:
    ...     progress is None
    True
    """
    stream = sys.stderr if stream is None else stream
    if not (force or stream.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("blocks"), TimeElapsedColumn(),
        TextColumn("left:"), TimeRemainingColumn(),
    )  # fmt: skip
    with Bars(*columns, console=Console(file=stream, force_terminal=force or None), transient=True) as bars:
        task = bars.add_task(label, total=None)

        def update(what: str, done: int, total: int) -> None:
            bars.update(task, description=f"{label}: {what}" if what else label, completed=done, total=total)

        yield update
