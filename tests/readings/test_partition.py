"""Blocks of a program: the pieces put together are the whole, for every row of the catalogue and several block sizes."""

from __future__ import annotations

import dataclasses
import itertools
from contextlib import suppress
from functools import cache
from typing import Any

import flint
import numpy as np
import pytest
import sympy as sp

from symattn import variants
from symattn.adjoint import adjoint
from symattn.errors import ProgramError, SymattnError
from symattn.presentation import present
from symattn.program import Program, Scan, Statement, indices, size
from symattn.program import tensor as T
from symattn.readings import balls, exact
from symattn.readings.blockgrid import BlockGrid
from symattn.readings.cutting import partition_at
from symattn.readings.partition import Partition, groups_of, partition, torn
from symattn.readings.reach import reach
from symattn.readings.specials import Special
from symattn.truth.derived import with_gradient
from tests.readings.pieces import put_together
from tests.support import rows
from tests.test_random_definitions import definition
from tests.variants.entries import numbers_for, sizes_for

i, j, k, t, c = indices("i j k t c")
n, m, d = size("n"), size("m"), size("d")
SIZES = {"B": 2, "H": 2, "Hkv": 2, "G": 2, "n": 5, "m": 5, "T": 3}
LONG = {"B": 4, "H": 4, "Hkv": 4, "G": 2, "n": 1024, "m": 1024, "T": 512}
"""At such sizes the indices to cut are chosen, as for a real kernel; the values are compared at small ones."""


@cache
def gradient_of(name: str) -> Program:
    return with_gradient(variants.get(name).definition.program(batch=True))


@cache
def presented(name: str) -> Program:
    program = variants.get(name).definition.program(batch=True)
    return present(program, adjoint(program)).program


def same(a: Any, b: Any) -> bool:
    """Whether two balls are the same number as far as 200 bits tell."""
    if isinstance(a, Special) or isinstance(b, Special):
        return repr(a) == repr(b)
    a, b = flint.arb(a), flint.arb(b)
    return (
        bool(a.overlaps(b))
        and float(a.rad()) <= 1e-40 * (1 + abs(float(a.mid())))
        and float(b.rad()) <= 1e-40 * (1 + abs(float(b.mid())))
    )


def by_balls(grid: BlockGrid, inputs: Any) -> Any:
    def run(program: Program, given: Any, known: Any, sizes: Any) -> Any:
        return balls.evaluate(program, given, known=known, sizes=sizes, bits=200)

    table = balls.TABLE
    ways = {"sum": lambda a, b: a + b, "prod": lambda a, b: a * b, "max": lambda a, b: table.largest([a, b])}
    with balls.precision(200):
        return put_together(grid, inputs, run, ways, lambda x: table.negative_infinity if x is None else flint.arb(x))


def chosen(program: Program) -> Partition:
    found = partition_at(program, program.outputs, {s: LONG.get(str(s), 64) for s in program.sizes})
    assert found is not None
    return found


def compare(name: str, cut: Partition, each: tuple[int, ...] = (1, 2, 3)) -> int:
    program = cut.program
    sizes = sizes_for(name, program) | {s: n for s, n in SIZES.items() if s in map(str, program.sizes)}
    numbers = {s: sizes[str(s)] for s in program.sizes}
    inputs = numbers_for(program, sizes, 3)
    whole = balls.evaluate(program, inputs, sizes=sizes, bits=200)
    blocks = 0
    for width in each:
        grid = BlockGrid(cut, numbers, {c.index: width for c in cut.cuts})
        blocks += grid.count
        got = by_balls(grid, inputs)
        for output in program.outputs:
            for at in np.ndindex(*whole[output].shape):
                assert same(whole[output][at], got[output][at]), (output, at, width, whole[output][at], got[output][at])
    return blocks


@pytest.mark.parametrize("name", rows())
def test_blocks_of_a_row_and_its_gradient_put_together_are_the_whole(name: str) -> None:
    assert compare(name, chosen(gradient_of(name))) > 3


@pytest.mark.parametrize("name", rows())
def test_blocks_of_a_presented_gradient_put_together_are_the_whole(name: str) -> None:
    assert compare(name, chosen(presented(name)), each=(1,)) > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", variants.names())
def test_every_index_of_a_row_can_be_cut_or_is_refused(name: str) -> None:
    """Whatever is cut, however little it suits: of what is left for blocks, the pieces put together are the whole."""
    program, done = gradient_of(name), 0
    for a in dict.fromkeys(a for s in program for a in s.domain):
        groups = groups_of(program, (a,))
        if groups.local and torn(program, groups) is None:
            done += compare(name, partition(program, (a,)), each=(2,))
    assert done


def fractions(program: Program, given: Any, known: Any, sizes: Any) -> Any:
    return exact.evaluate(program, {**given, **known}, sizes=sizes)


EXACTLY: dict[str, Any] = {
    "sum": lambda a, b: a + b,
    "prod": lambda a, b: a * b,
    "max": lambda a, b: sp.Max(a, b),
}


def exactly(grid: BlockGrid, inputs: Any, evaluate: Any = fractions) -> Any:
    return put_together(grid, inputs, evaluate, EXACTLY, lambda x: -sp.oo if x is None else sp.Integer(x))


LINEAR = Program(
    (
        Statement(T("S", i, j), T("q", i, c) * T("k", j, c), (c,), where=sp.Le(j, i + m - n)),
        Statement(T("y", i), T("S", i, j) * T("v", j), (j,), where=sp.Le(j, i + m - n)),
        Statement(T("top", j), T("S", i, j), (i,), "max", where=sp.Le(j, i + m - n)),
        Statement(T("back", j), T("S", i, j) * T("y", i), (i,), where=sp.Le(j, i + m - n)),
        Statement(T("z", j), T("back", j) * j, where=sp.Ne(T("back", j), 0)),
        Statement(T("all"), T("y", i) ** 2, (i,)),
    ),
    {i: n, j: m, c: d},
    ("y", "top", "back", "z", "all"),
)
"""A causal bilinear form with what is summed and maximised over its rows, and what waits for a sum: rational in every number."""


def bilinear(rows_: int = 5, keys: int = 7, seed: int = 1) -> tuple[dict[str, Any], dict[str, int]]:
    r = np.random.default_rng(seed)
    shapes = {"q": (rows_, 2), "k": (keys, 2), "v": (keys,)}
    return {x: r.integers(-5, 6, size=s) for x, s in shapes.items()}, {"n": rows_, "m": keys, "d": 2}


def wrong(grid: BlockGrid, inputs: Any, sizes: dict[str, int]) -> list[str]:
    """The outputs of the pieces that are not those of the whole."""
    whole = exact.evaluate(LINEAR, inputs, sizes=sizes)
    got = exactly(grid, inputs)
    return [o for o in LINEAR.outputs if np.asarray(got[o]).tolist() != whole[o].tolist()]


def grid_of(width: int, sizes: dict[str, int], kind: type[BlockGrid] = BlockGrid) -> BlockGrid:
    return kind(partition(LINEAR, (i,)), {s: sizes[str(s)] for s in LINEAR.sizes}, {i: width})


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (4, 1), (1, 4)])
def test_in_exact_arithmetic_the_pieces_are_the_whole_number_for_number(width: int, shape: tuple[int, int]) -> None:
    inputs, sizes = bilinear(*shape)
    assert wrong(grid_of(width, sizes), inputs, sizes) == []


def test_parts_of_the_program() -> None:
    p = partition(LINEAR, (i,))
    assert p.whole == ("y",) and dict(p.partial) == {"top": "max", "back": "sum", "all": "sum"}
    assert [s.name for s in p.rest] == ["z"] and p.first is None
    assert [c.index for c in p.reached] == [j]
    assert p.axes["k"] == (j, None) and p.axes["q"] == (i, None) and p.axes["back"] == (j,)


def test_a_causal_block_has_the_keys_up_to_its_last_query() -> None:
    sizes = bilinear()[1]
    grid = grid_of(2, sizes)
    # queries 0 | 1 2 | 3 4 of 5, and 7 keys: query i sees the keys up to i + 2
    assert [grid.block(b).ranges[j] for b in range(grid.count)] == [(0, 3), (0, 5), (0, 7)]


class Lost(BlockGrid):
    """The last block is forgotten."""

    @property
    def count(self) -> int:
        return super().count - 1


class Doubled(BlockGrid):
    """The first block is taken for the second one as well."""

    def block(self, number: int) -> Any:
        return super().block(0 if number == 1 else number)


class Short(BlockGrid):
    """Each block stops one key before the last one that its condition leaves."""

    def block(self, number: int) -> Any:
        b = super().block(number)
        start, stop = b.ranges[j]
        return dataclasses.replace(
            b, ranges={**b.ranges, j: (start, max(start + 1, stop - 1))}, sizes={**b.sizes, "j_count": max(1, stop - start - 1)}
        )


class Unshifted(BlockGrid):
    """The condition of a block is that of the first one."""

    def block(self, number: int) -> Any:
        b = super().block(number)
        return dataclasses.replace(b, sizes={**b.sizes, "i_start": 0})


@pytest.mark.parametrize("slip", [Lost, Doubled, Short, Unshifted])
def test_a_planted_slip_is_seen(slip: type[BlockGrid]) -> None:
    inputs, sizes = bilinear()
    assert wrong(grid_of(2, sizes, slip), inputs, sizes)


def test_what_lacks_a_cut_index_counts_once() -> None:
    b = sp.Symbol("b", integer=True)
    table = Statement(T("w", i, j), T("u", i) * T("v", j))
    each = Statement(T("y", b, i), T("w", i, j) * T("x", b, j), (j,))
    total = Statement(T("s", j), T("w", i, j), (i,))
    program = Program((table, each, total), {b: size("B"), i: n, j: m}, ("y", "w", "s"))
    cut = partition(program, (b, i))
    assert cut.absent("w") == cut.absent("s") == (b,)
    sizes = {"B": 3, "n": 4, "m": 2}
    inputs = {"u": [1, 2, 3, 4], "v": [5, 6], "x": [[1, 2], [3, 4], [5, 6]]}
    whole = exact.evaluate(program, inputs, sizes=sizes)
    grid = BlockGrid(cut, {s: sizes[str(s)] for s in program.sizes}, {b: 1, i: 3})
    got = exactly(grid, {n: np.asarray(x) for n, x in inputs.items()})
    assert all(np.asarray(got[o]).tolist() == whole[o].tolist() for o in program.outputs)


def test_a_recurrence_is_cut_beside_its_axis_and_never_along_it() -> None:
    h = Statement(T("h", i, t), T("h", i, t - 1) * T("a", i) + T("x", i, t), scan=Scan(t))
    y = Statement(T("y", i, t), T("h", i, t) + T("h", i, t - 1))
    program = Program((h, y), {i: n, t: m}, ("y",))
    assert partition(program, (i,)).rest is None
    with pytest.raises(ProgramError, match="nothing to do in a block"):
        partition(program, (t,))


def test_a_recurrence_is_not_torn_from_what_reads_its_earlier_steps() -> None:
    h = Statement(T("h", t), T("h", t - 1) + T("x", t), scan=Scan(t))
    y = Statement(T("y", i, t), T("h", t - 1) * T("u", i))
    with pytest.raises(ProgramError, match="at other steps"):
        partition(Program((h, y), {i: n, t: m}, ("y",)), (i,))


def test_an_index_that_is_not_there_is_named() -> None:
    with pytest.raises(ProgramError, match="no index t to cut"):
        partition(LINEAR, (t,))


def test_long_sequences_are_cut_along_batch_heads_and_queries() -> None:
    for name, want in {
        "grouped-query": "b k g i",
        "causal": "b i",
        "rope": "b i",
        "retention": "b h i",
        "delta-rule": "b",
    }.items():
        assert " ".join(str(c.index) for c in chosen(gradient_of(name)).cuts) == want, name


def test_keys_are_projected_once_and_their_gradient_waits() -> None:
    p = chosen(gradient_of("self-attention-projections"))
    assert p.first is not None and p.rest is not None
    assert [s.name for s in p.first] == ["K", "V"]
    assert {"dK", "dV"} <= p.partial.keys() and {"dWK", "dWV", "dX"} <= {s.name for s in p.rest}
    assert "scale" in p.local  # a number costs less again than to pass on


@pytest.mark.parametrize("offset", [0, 2])
def test_reach_keeps_every_value_at_which_a_condition_can_hold(offset: int) -> None:
    conditions = [
        sp.Le(j, i),
        sp.And(sp.Le(j, i + 3), sp.Lt(i - j, 4)),
        sp.Le(sp.floor(j / 3), sp.floor(i / 3)),
        sp.Or(sp.Lt(j, 2), sp.And(sp.Le(j, i), sp.Le(i - j, 1))),
        sp.Eq(sp.Mod(i - j, 2), 0) & sp.Ge(j, i - 2),
        sp.Le(sp.Abs(i - j), 2),
        sp.And(sp.Le(sp.Min(m - 3, sp.Max(0, i - 1)), j), sp.Lt(j, sp.Min(m - 3, sp.Max(0, i - 1)) + 3)),
    ]
    for start, stop in itertools.combinations(range(offset, 13, 2), 2):
        for condition in conditions:
            kept = [b for b in range(12) if any(condition.xreplace({i: a, j: b, m: 12}) == sp.true for a in range(start, stop))]
            low, high = reach([condition], j, 12, {i: (start, stop - 1), m: (12, 12)})
            assert all(low <= b < high for b in kept), (condition, start, stop)
            if kept and condition in conditions[:4] + conditions[5:6]:
                assert (low, high) == (kept[0], kept[-1] + 1), (condition, start, stop)  # and no more than needed


def test_reach_of_a_condition_that_excludes_all_is_one_value() -> None:
    assert reach([sp.Lt(j, i - 20)], j, 12, {i: (0, 5)}) == (0, 1)
    assert reach([sp.Ne(T("M", i, j), 0)], j, 12, {i: (0, 5)}) == (0, 12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_random_definitions_put_together_are_the_whole(seed: int) -> None:
    program = definition(seed)
    with suppress(SymattnError):  # some scores have no derivative; the values of those are compared all the same
        program = with_gradient(program)
    for a in ("i", "b", "h"):
        index = next((x for x in program.dims if x.name == a), None)
        if index is None:
            continue
        groups = groups_of(program, (index,))
        if groups.local and torn(program, groups) is None:
            compare("", partition(program, (index,)), each=(2,))
