"""Work on other machines: a Dask cluster of which a worker is killed in the middle, MPI, and what is said where there is none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from symattn.errors import MissingDependencyError, WorkerError
from symattn.truth.work.crew import Work
from symattn.truth.work.engines import Engine
from symattn.truth.work.executors import opened
from tests.support import require
from tests.truth.work.jobs import BALLS, differing, run

ROOT = Path(__file__).parents[3]


def slow(program: Any, inputs: Any, **options: Any) -> Any:
    """An engine that takes its time, so that a worker can be killed while it works."""
    from symattn.truth.work.engines import by_balls

    time.sleep(0.1)
    return by_balls(program, inputs, **options)


SLOW = Engine("tests.truth.work.test_cluster:slow", BALLS.arguments, BALLS.points, True, BALLS.bits)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A Dask cluster of two worker processes on this machine."""
    distributed = require("distributed")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as local:
        yield local


@pytest.mark.filterwarnings("ignore")  # those of Dask about itself
def test_a_dask_worker_is_killed_in_the_middle_and_nothing_is_lost(cluster: Any) -> None:
    want = run(Work(workers=1))
    killed: list[int] = []

    def kill(what: str, done: int, total: int) -> None:
        if done >= 2 and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    seen: list[int] = []

    def progress(what: str, done: int, total: int) -> None:
        seen.append(done)
        kill(what, done, total)

    found = run(Work(cluster=cluster.scheduler_address, blocks=1, progress=progress), engine=SLOW)
    assert killed and seen[-1] > max(seen[: seen.index(2) + 1])  # there was work left when it was killed
    assert differing(want, found) == []


def test_a_cluster_that_does_not_answer_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = require("distributed")

    def nobody(address: str, **_: Any) -> None:
        raise OSError(f"Timed out trying to connect to {address}")

    monkeypatch.setattr(distributed, "Client", nobody)
    with (
        pytest.raises(WorkerError, match="no Dask scheduler answers at 'tcp://nowhere:8786'"),
        opened(cluster="tcp://nowhere:8786"),
    ):
        pass


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'symattn\[cluster\]'"), opened(cluster="tcp://127.0.0.1:8786"):
        pass


@pytest.mark.slow
def test_a_process_of_the_pool_that_is_killed_is_replaced() -> None:
    want = run(Work(workers=1))
    pids: list[int] = []

    def progress(what: str, done: int, total: int) -> None:
        import multiprocessing

        if done >= 2 and not pids:
            pids.extend(p.pid for p in multiprocessing.active_children() if p.pid)
            os.kill(pids[0], signal.SIGKILL)

    assert differing(want, run(Work(workers=2, blocks=1, progress=progress), engine=SLOW)) == []
    assert pids


MPI = """
import sys
from mpi4py.futures import MPIPoolExecutor
from symattn.truth.work.crew import Work
from tests.truth.work.jobs import differing, run

if __name__ == "__main__":
    with MPIPoolExecutor(max_workers=1) as executor:
        sys.exit(len(differing(run(Work(workers=1)), run(Work(executor=executor, blocks=2)))))
"""


@pytest.mark.slow
def test_mpi_gives_the_same_bits(tmp_path: Path) -> None:
    script = tmp_path / "mpi.py"
    script.write_text(MPI)
    probe = subprocess.run([sys.executable, "-c", "from mpi4py import MPI"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("mpi4py with an MPI library is not installed")
    command = ["mpiexec", "-n", "2", sys.executable, "-m", "mpi4py.futures", str(script)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
