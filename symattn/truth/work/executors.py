"""Where work runs: in this process, in processes of this machine, on the workers of a Dask scheduler, on a given executor.

All of them are ``concurrent.futures.Executor``; that of ``mpi4py.futures`` is given like any other.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

from symattn.errors import LimitError, MissingDependencyError, WorkerError

__all__ = ["Serial", "cores", "opened", "started", "warm"]

MOST = 1024
LOADED = ["symattn.truth.work.items", "symattn.truth.limbs", "symattn.truth.double"]
"""What a worker needs: loading it takes longer than a block of a small job."""


class Serial(Executor):
    """Does a task when it is submitted, in this process.

    >>> Serial().submit(pow, 2, 5).result()
    32
    """

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run ``fn`` now; the future holds what it returned or raised. Ctrl-C is not held back."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def cores() -> int:
    """How many processes can run at once here.

    >>> cores() >= 1
    True
    """
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:
        return max(1, os.cpu_count() or 1)


def started() -> BaseContext:
    """How processes are started here.

    On Linux workers are copies of a process that has loaded what they need: of this one while it has one thread, so that none
    can hold a lock that its copy would wait for; else of a server process that loads it once (the ``forkserver`` of Python, which
    lives until this process ends). Elsewhere each worker is a new process that loads it when it is started.

    >>> started().get_start_method() in ("fork", "forkserver", "spawn")
    True
    """
    if sys.platform != "linux":
        return get_context("spawn")
    if not _alone():
        return _served()
    for name in LOADED:
        import_module(name)
    return get_context("fork")


def warm() -> None:
    """Where workers will be copies of a server, it begins to load what they need, on a core that has nothing to do yet."""
    if sys.platform == "linux" and not _alone():
        _served()


def _alone() -> bool:
    """Whether this process has one thread, those of libraries counted."""
    try:
        return len(list(Path("/proc/self/task").iterdir())) == 1
    except OSError:
        return False


def _served() -> BaseContext:
    from multiprocessing import forkserver

    context = get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    try:
        forkserver.ensure_running()
    finally:
        context.set_forkserver_preload(["__main__"])  # Python's own choice, for whoever starts another server
    return context


def _quiet() -> None:
    """In a worker: Ctrl-C in the terminal reaches the whole group; it is this process that stops the work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def opened(workers: int | None = None, cluster: str | None = None) -> Iterator[Executor]:
    """An executor, closed when it is left; what has not begun by then is cancelled.

    Parameters
    ----------
    workers
        Processes of this machine. They load the script that asks for them, so that it starts under
        ``if __name__ == "__main__":``.
        With 1, the work is done in this process.
    cluster
        Address of a Dask scheduler, such as ``tcp://node1:8786``; the extra ``cluster`` installs what it needs. symattn has to be
        installed on its workers.

    Raises
    ------
    LimitError
        When ``workers`` is not from 1 to 1024.
    MissingDependencyError
        When ``distributed`` is not installed.
    WorkerError
        When no scheduler answers at the address.

    >>> with opened(1) as executor:
    ...     type(executor).__name__
    'Serial'
    """
    if cluster is not None:
        with _dask(cluster) as executor:
            yield executor
        return
    count = cores() if workers is None else workers
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST:
        raise LimitError(f"workers is an integer from 1 to {MOST}, got {workers!r}")
    if count == 1:
        yield Serial()
        return
    pool = ProcessPoolExecutor(count, mp_context=started(), initializer=_quiet)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingDependencyError(
            "a cluster needs the package distributed; install it with: pip install 'symattn[cluster]'"
        ) from error
    connect: Any = Client
    try:
        client = connect(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise WorkerError(f"no Dask scheduler answers at {address!r}: {error}; start one with: dask scheduler") from error
    try:
        yield client.get_executor(retries=RETRIES)
    finally:
        client.close()


RETRIES = 3
"""How often a cluster tries a task again whose worker was lost."""
