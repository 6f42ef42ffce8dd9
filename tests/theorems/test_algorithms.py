"""Algorithms of kernels: proved for all sizes; planted faults are refused by the proof and refuted in exact numbers."""

from dataclasses import replace

import pytest
import sympy as sp

from symattn.algorithms import gradient_by_tiles
from symattn.definition import Definition
from symattn.errors import DefinitionError
from symattn.indexed import index, name_of, reads, subscripts_of, tensor
from symattn.program import Statement
from symattn.theorems.algorithms import ROWS, prove_algorithm, prove_backward, prove_forward
from symattn.theorems.claim import PROVED, REFUTED
from symattn.theorems.runs import Runs
from symattn.theorems.walks import turned

t, r, i, j = index("t"), index("r"), index("i"), index("j")


def cases(table, fast):
    """The names of a table, those that are not in ``fast`` marked slow."""
    return [pytest.param(n, marks=() if n in fast else pytest.mark.slow) for n in table]


FORWARD = {
    "online": {"algorithm": "online"},
    "online, masked": {"algorithm": "online", "causal": -2, "window": (3, 0)},
    "flash, grouped, masked": {"algorithm": "flash", "causal": "bottom-right", "heads": 4, "kv_heads": 2},
    "flash, sink and dropout": {"algorithm": "flash", "sink": True, "dropout": True, "bias": True},
    "flash, softcap and own score": {
        "algorithm": "flash",
        "softcap": 20,
        "score": "s - w*(i - j)",
        "mask": "j % 2 == 0 or j <= i",
    },
    "flash, uniform empty rows": {"algorithm": "flash", "causal": -2, "empty_row": "uniform", "lse_base": 2},
    "split, masked": {"algorithm": "split", "attn_mask": "boolean"},
    "split, sink": {"algorithm": "split", "causal": "top-left", "sink": True},
    "ring, documents": {"algorithm": "ring", "causal": "top-left", "document": True},
    "paged": {"algorithm": "paged", "causal": "bottom-right", "key_lengths": True, "heads": 4, "kv_heads": 2, "bias": True},
}


@pytest.mark.parametrize("name", cases(FORWARD, {"flash, grouped, masked", "split, masked", "paged"}))
def test_the_forward_is_proved_for_all_sizes(name):
    found = prove_forward(Definition.of(**FORWARD[name]))
    assert found.proved and found.scope == "all sizes", str(found)


BACKWARD = {
    "online": {"algorithm": "online", "lse": False},
    "flash, masked": {"algorithm": "flash", "causal": "bottom-right", "heads": 4, "kv_heads": 2},
    "ring": {"algorithm": "ring", "attn_mask": "boolean", "bias": True, "lse": False},
    "split, sink": {"algorithm": "split", "sink": True, "lse": False},
}


@pytest.mark.parametrize("name", cases(BACKWARD, {"online"}))
def test_the_gradient_by_tiles_is_proved_for_all_sizes(name):
    found = prove_backward(Definition.of(**BACKWARD[name]))
    assert found.proved, str(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        {"algorithm": "flash", "start": "x", "output_projection": True, "causal": -2, "empty_row": "uniform"},
        {"algorithm": "ring", "bias": True, "causal": -1, "softcap": 3, "alibi": True},
        {"algorithm": "flash", "sink": True, "dropout": True, "bias": True},
        {"algorithm": "online", "start": "x", "qk_norm": "rms", "rope": "half", "heads": 2},
        {"algorithm": "flash", "causal": "top-left", "forgetting": True},
        {"algorithm": "ring", "window": (3, 1), "document": True, "key_smoothing": True, "output_gate": True},
    ],
    ids=lambda f: f"{f['algorithm']} {len(f)}",
)
def test_both_are_proved_with_what_else_a_definition_may_say(fields):
    found = prove_algorithm(Definition.of(**fields))
    assert found.proved, str(found)


# ---------------------------------------------------------------- planted faults
FLASH = Definition(algorithm="flash", causal="bottom-right", block=2)
RING = Definition(algorithm="ring", block=2, lse=False)
INSIDE = sp.Lt(2 * t + r, sp.Symbol("m", integer=True, positive=True))


def changed(program, change):
    """The program with some statements changed: name -> function."""
    return program.with_statements([change[s.name](s) if s.name in change else s for s in program])


def without_rescaling(s):
    return replace(s, expr=s.expr.xreplace({x: sp.S.One for x in reads(s.expr) if name_of(x) == "rs"}))


def reversed_shift(s):
    return replace(s, expr=sp.exp(-s.expr.args[0]))


def without_tail(s):
    """The statement without the condition that the key exists."""
    kept = [
        c for c in s.conditions if c.has(i) or not (c.has(r) and sp.Symbol("m", integer=True, positive=True) in c.free_symbols)
    ]
    assert len(kept) < len(s.conditions)
    return replace(s, where=sp.And(*kept))


def one_tile_less(s):
    table = {x: x.xreplace({a: a - 1 for a in subscripts_of(x) if a.has(sp.ceiling)}) for x in reads(s.expr)}
    return replace(s, expr=s.expr.xreplace(table))


def every_key(s):
    return replace(s, where=sp.true)


FAULTS = {
    "the output is not rescaled": (FLASH, {"Os": without_rescaling}),
    "the denominator is not rescaled": (FLASH, {"ls": without_rescaling}),
    "m_old - m_new reversed": (FLASH, {"rs": reversed_shift}),
    "the last tile is forgotten": (FLASH, {"O": one_tile_less}),
    "a row without keys is divided": (FLASH.replace(causal=-2), {"O": lambda s: replace(s, where=sp.true)}),
    "the mask is forgotten": (FLASH, dict.fromkeys(("E", "lt", "Ot"), lambda s: replace(s, where=INSIDE))),
    "parts weighted alike": (Definition(algorithm="split", block=2), {"wt": lambda s: replace(s, expr=sp.exp(0 * s.expr) + 0)}),
    "a part's log-sum-exp without its maximum": (
        Definition(algorithm="split", block=2),
        {"Lt": lambda s: replace(s, expr=sp.log(tensor("lt", i, t)))},
    ),
    "shards skipped": (RING.replace(causal="top-left"), {"shard": lambda s: replace(s, expr=0 * t)}),
    "pages by place": (
        Definition(algorithm="paged", block=2),
        {"O": lambda s: replace(s, expr=s.expr.xreplace({sp.floor(j / 2): sp.Mod(j, 2)}))},
    ),
    "places by page": (
        Definition(algorithm="paged", block=2),
        {"R": lambda s: replace(s, expr=s.expr.xreplace({sp.floor(j / 2): sp.Mod(j, 2), sp.Mod(j, 2): sp.floor(j / 2)}))},
    ),
}


@pytest.mark.parametrize("name", cases(FAULTS, {"the output is not rescaled", "m_old - m_new reversed", "places by page"}))
def test_a_wrong_forward_is_refused_and_refuted(name):
    d, change = FAULTS[name]
    d = d.replace(lse=True)
    wrong = changed(d.program(), change)
    assert not prove_forward(d, wrong).proved
    shown = Runs(d, program=wrong, text=name).counterexample()
    assert shown is not None and shown.difference != 0


def test_the_same_list_unchanged_is_proved():
    d = FLASH.replace(lse=True)
    assert prove_forward(d, d.program()).proved
    assert Runs(d, program=d.program()).counterexample() is None


def test_a_tile_too_few_is_refused():
    """Sizes that round down leave out the last, partial tile."""
    p = FLASH.replace(lse=True).program()
    up = p.dims[t]
    down = {a: n.xreplace({up: sp.floor(up.args[0])}) for a, n in p.dims.items()}
    listed = [s.xreplace({up: sp.floor(up.args[0])}) for s in p]
    wrong = type(p)(tuple(listed), down, p.outputs, p.shapes)
    found = prove_forward(FLASH, wrong)
    assert "every key is in one tile, at one place" in [q.text for q in found.failed]
    assert Runs(FLASH, program=wrong).counterexample() is not None


def test_an_unmasked_tail_is_refused():
    """What lies behind the last key is no number of an exact example, so only the proof can see it."""
    d = FLASH.replace(lse=True, causal=None)
    wrong = changed(d.program(), {"E": without_tail, "lt": without_tail, "Ot": without_tail})
    found = prove_forward(d, wrong)
    assert not found.proved and any("numerators" in p.text for p in found.failed)


def local_lse(program):
    """A ring whose gradient takes the log-sum-exp of the shard that is at hand in place of that of the row."""
    local = Statement(tensor("Lloc", i, t), tensor("ms", i, t) + sp.log(tensor("lt", i, t)))
    out = []
    for s in program:
        if s.name == "P_b":
            out += [local, replace(s, expr=s.expr.xreplace({tensor("L", i): local.target}))]
        else:
            out.append(s)
    return program.with_statements(out)


BACK = {
    "the log-sum-exp of the shard": (RING, local_lse),
    "D without dO": (FLASH, lambda p: changed(p, {"D": lambda s: replace(s, expr=tensor("O", i, index("e")))})),
    "D of another row": (
        FLASH,
        lambda p: changed(p, {"dS": lambda s: replace(s, expr=s.expr.xreplace({tensor("D", i): tensor("D", 0)}))}),
    ),
    "dQ of the last tile only": (
        FLASH,
        lambda p: changed(p, {"dQs": lambda s: replace(s, expr=tensor("dQt", *s.indices))}),
    ),
    "dK without dS": (
        FLASH,
        lambda p: changed(p, {"dKt": lambda s: replace(s, expr=tensor("Q", *s.over, index("c")) * tensor("scale"))}),
    ),
    "the other place of the tile": (
        FLASH,
        lambda p: changed(p, {"dV": lambda s: replace(s, expr=tensor("dVt", sp.floor(j / 2), 1 - sp.Mod(j, 2), index("e")))}),
    ),
    "P not recomputed": (
        FLASH,
        lambda p: changed(p, {"dVt": lambda s: replace(s, expr=s.expr.xreplace({tensor("P_b", i, t, r): tensor("E", i, t, r)}))}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", cases(BACK, {"the log-sum-exp of the shard"}))
def test_a_wrong_gradient_is_refused_and_refuted(name):
    d, change = BACK[name]
    wrong = change(gradient_by_tiles(d).program)
    assert not prove_backward(d, wrong).proved
    shown = Runs(d, gradient=True, program=wrong, text=name).counterexample()
    assert shown is not None and shown.difference != 0


# ---------------------------------------------------------------- rows and errors
@pytest.mark.slow
def test_a_claim_about_the_users_own_definition():
    claims = next(row for row in ROWS if row.name == "flash-forward").claims
    from symattn.theorems.subject import Subject

    (claim,) = claims(Subject(Definition(score="s + w*(i - j)", sink=True)))
    assert claim.decide().verdict == PROVED
    wrong = claim.definition.replace(lse=True, block=2)
    listed = changed(wrong.program(), {"Os": without_rescaling})
    assert Runs(wrong, program=listed).decide().verdict == REFUTED


def test_nothing_to_prove_without_an_algorithm():
    with pytest.raises(DefinitionError, match="names no algorithm"):
        prove_forward(Definition())


def test_only_a_turn_of_the_tiles_is_an_order():
    n = sp.Integer(4)
    assert turned(sp.Mod(i - t, n), t, n) and turned(sp.Mod(t + 1, n), t, n)
    assert not turned(sp.Mod(i - t, 3), t, n) and not turned(t, t, n) and not turned(sp.Mod(i * t, n), t, n)
