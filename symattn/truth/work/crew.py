"""Handing out items and taking in what they give: how much at a time, where, and what if it is stopped or a worker dies."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FrameType, TracebackType

from symattn.errors import WorkerError
from symattn.truth.work.executors import Serial, cores, opened, warm
from symattn.truth.work.items import Done, Item, perform
from symattn.truth.work.progress import Progress

__all__ = ["EVERY", "Crew", "Work"]

EVERY = 10.0
"""Seconds between two savings, at least."""
SECONDS = 0.5
"""An item takes at least about so long, so that sending it costs little."""
WORTH = 4.0
"""Seconds of work that are left when further processes are started: they take one or two to begin."""
ATTEMPTS = 3
"""How often processes are started again after one of them was lost."""
AHEAD = 16
"""Items under way on an executor that does not say how many workers it has."""
LOOK = 0.2
"""Seconds between two looks at whether Ctrl-C was pressed."""


@dataclass(frozen=True)
class Work:
    """Where and how a job is done; nothing of this changes a bit of what comes out.

    Parameters
    ----------
    workers
        Processes of this machine; None: one for each core where the job is worth it, else this process alone.
    cluster
        Address of a Dask scheduler, instead.
    executor
        Any ``concurrent.futures.Executor``, instead, such as ``mpi4py.futures.MPIPoolExecutor()``. It is not shut down.
    checkpoint
        A file that holds what has been done; a run that finds it goes on from there.
    every
        Seconds between two savings, at least.
    blocks
        Blocks of one item; None: as many as take about half a second.
    progress
        Called with what is being done, how many blocks of it are done, and of how many.
    """

    workers: int | None = None
    cluster: str | None = None
    executor: Executor | None = None
    checkpoint: str | os.PathLike[str] | None = None
    every: float = EVERY
    blocks: int | None = None
    progress: Progress | None = None

    def begin(self) -> None:
        """Processes that will be needed in any case begin to load what they need, while the job is prepared here."""
        if self.executor is None and self.cluster is None and isinstance(self.workers, int) and self.workers > 1:
            warm()


class Crew:
    """Who does the work: the executor is opened when there is work that is worth it, and closed at the end."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._executor = work.executor
        self._opened = ExitStack()
        self._cost: float | None = None

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._opened.close()

    def do(
        self, item: Callable[[list[int]], Item], blocks: Sequence[int], take: Callable[[Done], None], label: str, total: int
    ) -> None:
        """Have blocks done.

        Parameters
        ----------
        item
            Makes an item of some blocks.
        blocks
            The numbers of the blocks.
        take
            Takes what an item gave, in whatever order they finish.
        label, total
            For the progress: what is being done, and how many blocks there are with those that were done before.

        Raises
        ------
        WorkerError
            When worker processes are lost again and again.
        KeyboardInterrupt
            On Ctrl-C, when the items under way have been taken.
        """
        left = dict.fromkeys(blocks)
        self._cost = None

        def taken(done: Done) -> None:
            take(done)
            for k in done.numbers:
                left.pop(k)
            self._cost = done.seconds / len(done.numbers)
            self._tell(label, total - len(left), total)

        self._tell(label, total - len(left), total)
        lost = 0
        with _stopping() as stopped:
            while left:
                executor = self._fit(len(left))
                if executor is None:  # the first block tells what the others will cost
                    taken(perform(item([next(iter(left))])))
                    stopped.check()
                    continue
                try:
                    self._hand_out(executor, item, list(left), taken, stopped)
                except BrokenExecutor as error:
                    stopped.check()
                    lost += 1
                    if executor is self._work.executor or lost > ATTEMPTS:
                        why = str(error).rstrip(".")
                        raise WorkerError(
                            f"worker processes died: {why}. They may lack memory, or the script that starts them has no "
                            '`if __name__ == "__main__":`'
                        ) from error
                    self._opened.close()
                    self._executor = None

    def _tell(self, label: str, done: int, total: int) -> None:
        if self._work.progress is not None:
            self._work.progress(label, done, total)

    def _fit(self, left: int) -> Executor | None:
        """Who does what is left; None while nothing is known of its cost and processes may not be worth it."""
        if self._executor is not None:
            return self._executor
        if self._work.workers is None and self._work.cluster is None and cores() > 1:
            if self._cost is None and left > 1:
                return None
            if (self._cost or 0.0) * left < WORTH:
                return Serial()
        self._executor = self._opened.enter_context(opened(self._work.workers, self._work.cluster))
        return self._executor

    def _hand_out(
        self,
        executor: Executor,
        item: Callable[[list[int]], Item],
        blocks: list[int],
        take: Callable[[Done], None],
        stopped: _Stopped,
    ) -> None:
        """Some items at a time, so that neither what goes out nor what comes in piles up."""
        workers = getattr(executor, "_max_workers", None)
        ahead = 1 if isinstance(executor, Serial) else 2 * workers if isinstance(workers, int) else AHEAD
        going: set[Future[Done]] = set()
        try:
            for numbers in self._runs(blocks, 1 if isinstance(executor, Serial) else ahead):
                going.add(_submitted(executor, item(numbers)))
                while len(going) >= ahead:
                    _take_some(going, take, stopped)
            while going:
                _take_some(going, take, stopped)
        except KeyboardInterrupt:
            waiting = [f for f in going if not f.cancel()]
            for future in wait(waiting).done:
                if not future.cancelled() and future.exception() is None:
                    take(future.result())
            raise
        except BaseException:
            for future in going:
                future.cancel()
            raise

    def _runs(self, blocks: list[int], shares: int) -> Iterator[list[int]]:
        """The blocks in runs, one after another: as long as half a second takes, but so that each worker has some."""
        first = 0
        while first < len(blocks):
            count = self._work.blocks
            if count is None:
                fits = int(SECONDS / self._cost) + 1 if self._cost else 1
                count = max(1, min(fits, (len(blocks) - first) // shares))
            yield blocks[first : first + count]
            first += count


def _submitted(executor: Executor, item: Item) -> Future[Done]:
    """An item under way; processes that cannot be started are as good as lost ones."""
    try:
        return executor.submit(perform, item)
    except (EOFError, ConnectionError) as error:
        raise BrokenExecutor(f"no process could be started ({type(error).__name__}: {error})") from error


def _take_some(going: set[Future[Done]], take: Callable[[Done], None], stopped: _Stopped) -> None:
    """Wait for at least one item, and take those that are there."""
    finished: set[Future[Done]] = set()
    while not finished:
        stopped.check()
        finished = set(wait(going, LOOK, FIRST_COMPLETED).done)
    for future in finished:
        going.discard(future)
        take(_result(future))
    stopped.check()


def _result(future: Future[Done]) -> Done:
    """What an item gave; a cluster that gave it up says so in its own exceptions."""
    try:
        return future.result()
    except CancelledError as error:
        raise WorkerError("the cluster gave up an item: its scheduler was stopped, or cannot be reached any more") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "distributed":
            raise
        raise WorkerError(f"the cluster gave up an item: {error}; its workers may lack memory, or symattn itself") from error


class _Stopped:
    """Whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.pressed = False

    def check(self) -> None:
        """Raise KeyboardInterrupt if it was."""
        if self.pressed:
            raise KeyboardInterrupt

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.pressed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            raise KeyboardInterrupt
        self.pressed = True


@contextmanager
def _stopping() -> Iterator[_Stopped]:
    """Ctrl-C is noted, and takes effect between two items; a second one takes effect at once."""
    stopped = _Stopped()
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, stopped)
    try:
        yield stopped
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    stopped.check()
