"""Checkpoints: a run that was stopped goes on at the block where it was, with the same bits; what is no checkpoint is refused."""

from __future__ import annotations

import io
import os
import pickle
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symattn.errors import FileFormatError
from symattn.truth.work import checkpoint
from symattn.truth.work.crew import Work
from symattn.truth.work.executors import Serial
from tests.truth.work.jobs import BALLS, differing, job, run


class Counting(Serial):
    """Counts the blocks that are done, and is stopped as by Ctrl-C before one of them."""

    def __init__(self, stop: int | None = None) -> None:
        self.blocks: list[int] = []
        self.stop = stop

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        if len(self.blocks) == self.stop:
            raise KeyboardInterrupt
        self.blocks += args[0].numbers
        return super().submit(fn, *args, **kwargs)


def stopped(path: Path, at: int, name: str = "causal", **options: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(Work(executor=Counting(at), checkpoint=path, blocks=1, **options), name)


@pytest.mark.parametrize("at", [1, 4, 7])
def test_a_run_that_is_stopped_goes_on_with_the_next_block_and_gives_the_same_bits(tmp_path: Path, at: int) -> None:
    path, whole = tmp_path / "run.npz", Counting()
    want = run(Work(executor=whole, blocks=1))
    stopped(path, at)
    again = Counting()
    found = run(Work(executor=again, blocks=2, checkpoint=path))
    assert differing(want, found) == []
    assert again.blocks == whole.blocks[at:]
    third = Counting()
    assert differing(want, run(Work(executor=third, checkpoint=path))) == [] and third.blocks == []


def test_a_run_of_several_parts_goes_on_in_each_of_them(tmp_path: Path) -> None:
    name, whole = "self-attention-projections", Counting()
    want = run(Work(executor=whole, blocks=1), name)
    for at in range(1, len(whole.blocks), 3):
        path = tmp_path / f"{at}.npz"
        stopped(path, at, name)
        again = Counting()
        assert differing(want, run(Work(executor=again, checkpoint=path, blocks=1), name)) == []
        assert len(again.blocks) == len(whole.blocks) - at


def test_stopped_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    for _ in range(3):
        stopped(path, 2)
    last = Counting()
    assert differing(run(Work(executor=last, checkpoint=path)), run(Work(workers=1))) == []
    whole = Counting()
    run(Work(executor=whole, blocks=1))
    assert len(last.blocks) == len(whole.blocks) - 6


def test_what_was_done_since_the_last_saving_is_all_that_a_crash_loses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.npz"
    monkeypatch.setattr(checkpoint.Checkpoint, "save", only_on_time)
    stopped(path, 5, every=0.0)  # saved after each item; the last saving of a clean stop does not happen
    again = Counting()
    assert differing(run(Work(executor=again, checkpoint=path)), run(Work(workers=1))) == []


def only_on_time(self: Any) -> None:
    if sys._getframe(1).f_code.co_name == "changing" and self.path is not None:
        self._write(self.path)


def test_a_crash_while_saving_leaves_the_last_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.npz"
    stopped(path, 4)
    before = path.read_bytes()

    def half(file: Any, **arrays: Any) -> None:
        file.write(b"half a file")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(FileFormatError, match="No space left"):
        run(Work(workers=1, checkpoint=path, every=0.0))
    assert path.read_bytes() == before


OTHER = {
    "other numbers": lambda p, x, s: (p, {**x, "Q": -np.asarray(x["Q"])}, s),
    "another output": lambda p, x, s: (p.with_statements(p.statements, ("O",)).live(), x, s),
    "another program": lambda p, x, s: (
        p.with_statements([replace(t, expr=2 * t.expr) if t.name == "scale" else t for t in p]),
        x,
        s,
    ),
}


@pytest.mark.parametrize("other", OTHER)
def test_the_checkpoint_of_another_problem_is_refused(tmp_path: Path, other: str) -> None:
    from symattn.truth.work.run import evaluate

    path = tmp_path / "run.npz"
    stopped(path, 3)
    program, inputs, sizes = OTHER[other](*job())
    with pytest.raises(FileFormatError, match="checkpoint of another problem"):
        evaluate(BALLS, program, {n: inputs[n] for n in program.inputs}, sizes=sizes, work=Work(workers=1, checkpoint=path))


@pytest.mark.parametrize("change", [{"points": 48}, {"bits": 121, "arguments": {"bits": 121}}])
def test_each_engine_and_precision_has_its_own_part_of_the_file(tmp_path: Path, change: dict[str, Any]) -> None:
    path, other = tmp_path / "run.npz", replace(BALLS, **change)
    stopped(path, 3)
    assert differing(run(Work(workers=1), engine=other), run(Work(workers=1, checkpoint=path), engine=other)) == []
    again, whole = Counting(), Counting()
    assert differing(run(Work(executor=whole, blocks=1)), run(Work(executor=again, checkpoint=path))) == []
    assert len(again.blocks) == len(whole.blocks) - 3


def test_a_file_that_is_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    stopped(path, 4)
    whole = path.read_bytes()
    for kept in {0, 1, 100, len(whole) // 3, len(whole) // 2, len(whole) - 100, len(whole) - 1}:
        path.write_bytes(whole[:kept])
        with pytest.raises(FileFormatError, match="truncated or damaged"):
            run(Work(workers=1, checkpoint=path))


def test_a_file_with_a_wrong_byte_is_refused_or_says_the_same(tmp_path: Path) -> None:
    path, want = tmp_path / "run.npz", run(Work(workers=1))
    stopped(path, 4)
    whole, refused = path.read_bytes(), 0
    r = np.random.default_rng(0)
    for at in r.integers(0, len(whole), size=60).tolist():
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << int(r.integers(8)))]) + whole[at + 1 :])
        try:
            states = checkpoint.Checkpoint(path, _problem(whole)).states
        except FileFormatError:
            refused += 1
        else:
            assert [len(s.done) for s in states.values()] == [4]
    assert refused > 50  # the others are dates and the like in the archive
    path.write_bytes(whole)
    assert differing(want, run(Work(workers=1, checkpoint=path))) == []


def _problem(raw: bytes) -> str:
    import json

    with np.load(io.BytesIO(raw), allow_pickle=False) as file:
        return str(json.loads(file["head"].tobytes())["problem"])


class Bomb:
    def __reduce__(self) -> Any:
        return (os.abort, ())


@pytest.mark.parametrize("kind", ["text", "directory", "pickle", "pickled array", "npz of something else"])
def test_what_is_no_checkpoint_is_refused_and_not_executed(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "run.npz"
    if kind == "text":
        path.write_text("not this")
    elif kind == "directory":
        path.mkdir()
    elif kind == "pickle":
        path.write_bytes(pickle.dumps(Bomb()))
    elif kind == "pickled array":
        with zipfile.ZipFile(path, "w") as file:
            raw = io.BytesIO()
            np.lib.format.write_array(raw, np.array([Bomb()], dtype=object), allow_pickle=True)
            file.writestr("head.npy", raw.getvalue())
    else:
        np.savez(path, mid=np.zeros(3))
    with pytest.raises(FileFormatError, match=r"no checkpoint|cannot be"):
        run(Work(workers=1, checkpoint=path))


def test_a_place_that_cannot_be_written_to_is_told_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="cannot be written"):
        run(Work(executor=Counting(0), checkpoint=tmp_path / "no" / "run.npz"))


SCRIPT = """
import signal, sys, time
from tests.truth.work.jobs import run, BALLS
from symattn.truth.work.crew import Work
from symattn.truth.work.engines import Engine

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts in the background
    engine = Engine("tests.truth.work.test_checkpoint:slow", BALLS.arguments, BALLS.points, True, BALLS.bits)
    print("began", flush=True)
    try:
        said = lambda what, done, total: print(done, flush=True)
        run(Work(int(sys.argv[2]), checkpoint=sys.argv[1], every=1000.0, blocks=1, progress=said), engine=engine)
    except KeyboardInterrupt:
        sys.exit(130)
"""


def slow(program: Any, inputs: Any, **options: Any) -> Any:
    """An engine that takes its time, for somebody to press Ctrl-C."""
    from symattn.truth.work.engines import by_balls

    time.sleep(0.2)
    return by_balls(program, inputs, **options)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.skipif(os.name != "posix", reason="signals of a process group are those of POSIX")
def test_ctrl_c_stops_cleanly_and_what_was_done_is_kept(tmp_path: Path, workers: int) -> None:
    script, path = tmp_path / "script.py", tmp_path / "run.npz"
    script.write_text(SCRIPT)
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, str(script), str(path), str(workers)],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == "2":
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of its processes
            break
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130 and err == "", err
    again = Counting()
    engine = type(BALLS)("tests.truth.work.test_checkpoint:slow", BALLS.arguments, BALLS.points, True, BALLS.bits)
    found = run(Work(executor=again, checkpoint=path, blocks=1), engine=engine)
    assert differing(found, run(Work(workers=1))) == []
    done = max([2, *map(int, out.split())])
    assert again.blocks and done >= 2 and len(again.blocks) + done == len(set(range(len(again.blocks) + done)))
