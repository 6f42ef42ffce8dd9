"""A job in blocks: the same bits from every executor, and those of the whole as far as balls tell."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symattn.errors import LimitError, ProgramError, UndecidedError, WorkerError
from symattn.program import Program, Statement, indices, size
from symattn.program import tensor as T
from symattn.readings import balls
from symattn.readings.specials import Special
from symattn.truth.values import Floats
from symattn.truth.work import crew
from symattn.truth.work.crew import Work
from symattn.truth.work.engines import Engine, engine_for
from symattn.truth.work.executors import LOADED, Serial, opened
from symattn.truth.work.run import evaluate
from tests.truth.work.jobs import differing, job, run

ALONE = Work(workers=1)


def encloses_the_whole(found: Any, name: str) -> None:
    program, inputs, sizes = job(name)
    whole = balls.evaluate(program, inputs, sizes=sizes, bits=300)
    for output in program.outputs:
        for at in np.ndindex(*whole[output].shape):
            a, b = whole[output][at], found[output].values.balls[at]
            if isinstance(a, Special):
                assert a is b
            else:
                assert a.overlaps(b) and float(b.rad()) < 1e-25, (output, at, a, b)


@pytest.mark.parametrize("name", ["causal", "grouped-query", "self-attention-projections", "rope", "sink", "delta-rule", "paged"])
def test_blocks_enclose_what_the_whole_is(name: str) -> None:
    found = run(ALONE, name)
    encloses_the_whole(found, name)
    assert differing(found, run(dataclasses.replace(ALONE, blocks=3), name)) == []


def test_neither_order_nor_size_of_items_nor_executor_changes_a_bit() -> None:
    want = run(ALONE)
    with ThreadPoolExecutor(2) as threads:
        others = {
            "one block an item": Work(workers=1, blocks=1),
            "all in one item": Work(workers=1, blocks=1000),
            "five": Work(workers=1, blocks=5),
            "threads": Work(executor=threads, blocks=2),
            "as it likes": Work(),
        }
        for label, work in others.items():
            assert differing(want, run(work)) == [], label


def test_a_pool_of_two_processes_gives_the_same_bits() -> None:
    with opened(2) as pool:
        assert isinstance(pool, ProcessPoolExecutor)
        for name in ("causal", "self-attention-projections"):
            assert differing(run(ALONE, name), run(Work(executor=pool, blocks=2), name)) == []


@pytest.mark.slow
def test_workers_are_opened_and_closed_by_number() -> None:
    assert differing(run(ALONE), run(Work(workers=2))) == []


@dataclasses.dataclass
class Slip(Executor):
    """An executor with a slip."""

    slip: Any
    count: int = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.count += 1
        future: Future[Any] = Future()
        future.set_result(self.slip(self.count, fn(*args)))
        return future


def doubled(k: int, done: Any) -> Any:
    """The second item gives what the first one gave."""
    doubled.first = done if k == 1 else doubled.first
    return doubled.first if k == 2 else done


def lost(k: int, done: Any) -> Any:
    """The third item says that it is done and gives nothing to the sums."""
    return dataclasses.replace(done, nodes={}) if k == 3 else done


def lost_slice(k: int, done: Any) -> Any:
    return dataclasses.replace(done, slices={}) if k == 3 else done


def twice(k: int, done: Any) -> Any:
    """The third item has its parts under another number, where those of the second are."""
    if k == 2:
        twice.nodes = done.nodes
    return dataclasses.replace(done, nodes=twice.nodes) if k == 3 else done


@pytest.mark.parametrize("slip", [doubled, lost, lost_slice, twice])
def test_a_lost_or_doubled_block_is_never_a_result(slip: Any) -> None:
    with pytest.raises((ProgramError, KeyError)):
        run(Work(executor=Slip(slip), blocks=1))


def test_an_executor_that_is_given_is_not_shut_down() -> None:
    with ThreadPoolExecutor(1) as threads:
        run(Work(executor=threads))
        assert threads.submit(pow, 2, 3).result() == 8


def test_float64_engines_add_their_parts_enclosed() -> None:
    engine = Engine("tests.truth.work.test_run:doubles", {}, points=24, passes=False)
    found = run(ALONE, "causal", engine)
    program, inputs, sizes = job("causal")
    whole = balls.evaluate(program, inputs, sizes=sizes, bits=200)
    for output in program.outputs:
        v = found[output].values
        assert isinstance(v, Floats) and found[output].assumption == "a test"
        for at in np.ndindex(*v.shape):
            assert abs(float(whole[output][at].mid()) - v.mid[at]) <= v.rad[at] < 1e-9, (output, at)


def doubles(program: Any, inputs: Any, *, known: Any, sizes: Any, outputs: Any) -> Any:
    """Balls rounded to float64: an engine of another kind."""
    from symattn.truth.tiers import Found
    from symattn.truth.values import Balls

    values = balls.evaluate(program, inputs, sizes=sizes, bits=80)
    return {n: Found(Floats(*Balls(values[n]).approx()), "a test") for n in outputs}


def float_job(n: int = 24) -> tuple[Any, dict[str, Any], dict[str, int]]:
    """Attention in float32, for the engines of the tiers."""
    program = job("causal")[0]
    r = np.random.default_rng(5)
    inputs = {x: r.standard_normal((2, n, 4)).astype(np.float32) for x in ("Q", "K", "V", "dO")}
    return program, {**inputs, "dL": r.standard_normal((2, n)).astype(np.float32)}, {"B": 2, "n": n, "m": n, "d": 4, "dv": 4}


@pytest.mark.parametrize(("tier", "bits", "least"), [("limbs", 180, 1e-45), ("double", 53, 1e-9)])
def test_blocks_of_a_tier_hold_what_balls_find_and_items_change_no_bit(tier: str, bits: int, least: float) -> None:
    program, inputs, sizes = float_job()
    engine = dataclasses.replace(engine_for(tier, bits, proven=False), points=24 * 5, rows=1)
    one, more = (evaluate(engine, program, inputs, sizes=sizes, work=Work(workers=1, blocks=k)) for k in (1, 4))
    assert isinstance(one, dict) and differing(one, more) == []
    whole = balls.evaluate(program, inputs, sizes=sizes, bits=300)
    with balls.precision(600):
        for output in program.outputs:
            for x, m, r in zip(whole[output].ravel(), *one[output].values.exact(), strict=True):
                assert balls.ball(m - r) <= x <= balls.ball(m + r) and r < least, (output, x, m, r)


def declining(program: Any, inputs: Any, **_: Any) -> str:
    return "it is Sunday"


def raising(program: Any, inputs: Any, **_: Any) -> Any:
    raise UndecidedError("not decided")


def test_what_an_engine_does_not_take_comes_back_with_its_reason() -> None:
    assert run(ALONE, engine=Engine("tests.truth.work.test_run:declining", {}, 24)) == "it is Sunday"


def test_an_error_in_a_block_is_the_error_of_the_job() -> None:
    with pytest.raises(UndecidedError, match="not decided"), ThreadPoolExecutor(2) as threads:
        run(Work(executor=threads), engine=Engine("tests.truth.work.test_run:raising", {}, 24))


def test_an_engine_that_takes_no_values_of_others_gets_a_cut_that_passes_none() -> None:
    engine = Engine("tests.truth.work.test_run:doubles", {}, points=24, passes=False)
    for name in ("self-attention-projections", "rope"):
        assert run(ALONE, name, engine)  # `doubles` would fail on a tensor that it is not given


def test_a_program_without_anything_to_cut_is_one_block() -> None:
    (i,) = indices("i")
    program = Program((Statement(T("y"), T("x", i) ** 2, (i,)),), {i: size("n")}, ("y",))
    found = evaluate(engine_for("balls", 60), program, {"x": [1, 2]}, work=ALONE)
    assert found["y"].values.exact()[0] == [5]


def test_progress_says_what_and_how_much() -> None:
    seen: list[Any] = []
    run(Work(workers=1, blocks=1, progress=lambda *a: seen.append(a)))
    assert seen[0][1] == 0 and seen[-1][1] == seen[-1][2] == len(seen) - 1 > 5
    assert seen[0][0] == "O, L, dQ, dK, dV"


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, 10**6])
def test_numbers_of_workers_that_make_no_sense_are_refused(workers: Any) -> None:
    with pytest.raises(LimitError, match="from 1 to 1024"):
        run(Work(workers=workers))


class KilledWorker(Exception):
    """As Dask names what it raises when an item has cost too many workers."""

    __module__ = "distributed.scheduler"


@pytest.mark.parametrize("error", [KilledWorker("attempted to run on 4 workers"), CancelledError()])
def test_a_cluster_that_gives_up_is_an_error_that_says_so(error: Exception) -> None:
    class GivingUp(Serial):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            future: Future[Any] = Future()
            future.set_exception(error)
            return future

    with pytest.raises(WorkerError, match="the cluster gave up an item"):
        run(Work(executor=GivingUp()))


def test_a_pool_whose_processes_die_is_given_up_with_a_message() -> None:
    class Dying(Serial):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            from concurrent.futures.process import BrokenProcessPool

            raise BrokenProcessPool("a process was terminated abruptly")

    with pytest.raises(WorkerError, match="lack memory"):
        run(Work(executor=Dying()))


@dataclasses.dataclass
class Unstarted(Serial):
    """An executor whose processes cannot be started, as when the server that starts them was stopped while it was loading."""

    before: Any = None

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        if self.before is not None:
            self.before()
        raise EOFError("unexpected EOF")


def test_processes_that_cannot_be_started_are_an_error_that_says_so() -> None:
    with pytest.raises(WorkerError, match="no process could be started"):
        run(Work(executor=Unstarted()))


def test_ctrl_c_while_processes_are_started_is_ctrl_c() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts in the background
    try:
        with pytest.raises(KeyboardInterrupt):
            run(Work(executor=Unstarted(lambda: signal.raise_signal(signal.SIGINT))))
    finally:
        signal.signal(signal.SIGINT, before)


def modules() -> set[str]:
    return set(sys.modules)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each worker loads what it needs")
def test_workers_have_loaded_what_they_need_before_they_are_asked() -> None:
    with opened(2) as pool:
        assert set(LOADED) <= pool.submit(modules).result()


@pytest.mark.parametrize(
    ("work", "wanted"), [(Work(workers=2), 1), (Work(workers=1), 0), (Work(), 0), (Work(workers=2, executor=Serial()), 0)]
)
def test_processes_begin_to_load_only_where_they_will_be_needed(work: Work, wanted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    monkeypatch.setattr(crew, "warm", lambda: begun.append(1))
    work.begin()
    assert len(begun) == wanted


COPIED = """
import threading
import numpy as np
from symattn import Attention
from symattn.truth.work import Work
from symattn.truth.work.executors import started

def found(workers):
    q, k, v = (np.random.default_rng(x).normal(size=(1, 2, 24, 8)).astype(np.float32) for x in range(3))
    out = Attention().truth(q, k, v, bits=100, tier="limbs", work=Work(workers=workers, blocks=1))["out"]
    return [(x.mid, x.rad) for x in (out[0, h, i, c] for h in range(2) for i in range(0, 24, 5) for c in (0, 7))]

if __name__ == "__main__":
    one, alone = found(1), found(2)
    print(started().get_start_method(), one == alone)
    held = threading.Event()
    threading.Thread(target=held.wait, daemon=True).start()
    print(started().get_start_method(), one == found(2))
    held.set()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each worker is a new process")
def test_a_process_is_copied_while_it_has_one_thread_and_never_with_two(tmp_path: Path) -> None:
    script = tmp_path / "alone.py"
    script.write_text(COPIED)
    once = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(script)], env={**os.environ, **once}, capture_output=True, text=True, timeout=300)
    assert done.stdout.split("\n")[:2] == ["fork True", "forkserver True"], done.stderr
