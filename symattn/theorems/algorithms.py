"""Theorems about kernel algorithms: each gives what its definition says, and its gradient, for all sizes and any size of tiles.

:func:`prove_algorithm` judges a definition's own algorithm; the lists may also be given, so that a wrong kernel is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import sympy as sp

from symattn.algorithms import BY_TILES, flash_list
from symattn.definition import Definition
from symattn.errors import DefinitionError, NotStatedError
from symattn.indexed import Tensor, name_of, reads, subscripts_of
from symattn.normalform import SumOver
from symattn.presentation.presented import CHECKED
from symattn.program import Program, Statement
from symattn.theorems.claim import Claim
from symattn.theorems.pages import paged_parts
from symattn.theorems.proofs import DIVISION, NORMAL_FORM, WORD_FOR_WORD, Part, Proof
from symattn.theorems.subject import Subject
from symattn.theorems.theorem import Theorem
from symattn.theorems.walks import Walk

__all__ = ["ROWS", "prove_algorithm", "prove_backward", "prove_forward"]


def prove_algorithm(definition: Definition) -> Proof:
    """Prove that an algorithm gives the outputs and the gradients of its definition.

    Parameters
    ----------
    definition
        With an algorithm; what is proved holds for any size of tiles, whatever its ``block`` says.

    Returns
    -------
    Proof
        The steps of both proofs. ``proved`` says whether all hold, ``method`` how they are known, ``scope`` for which sizes.

    Raises
    ------
    DefinitionError
        When the definition has no algorithm.

    >>> found = prove_algorithm(Definition(algorithm="online"))
    >>> found.proved, found.scope
    (True, 'all sizes')
    """
    forward = prove_forward(definition)
    if definition.algorithm not in BY_TILES:
        return forward
    return Proof(forward.definition, (*forward.parts, *prove_backward(definition).parts), forward.side)


def prove_forward(definition: Definition, program: Program | None = None) -> Proof:
    """Prove that the program of an algorithm has the outputs of its definition.

    Parameters
    ----------
    definition
        With an algorithm.
    program
        A list to be judged in place of the definition's own, which is proved for any size of tiles.

    Raises
    ------
    DefinitionError
        When the definition has no algorithm.

    Notes
    -----
    For any sequence of shifts: nothing is used of the running maximum but its name. Sources: Milakov and Gimelshein, *Online
    normalizer calculation for softmax*, 2018; Dao et al., *FlashAttention*, 2022, appendix B; Liu et al., *Ring Attention*, 2023;
    Kwon et al., *PagedAttention*, 2023.

    >>> found = prove_forward(Definition(algorithm="split"))
    >>> print(found.parts[2].text)
    that is one sum over all keys, for any shifts of the parts
    """
    if definition.algorithm is None:
        raise DefinitionError("the definition names no algorithm: set algorithm to online, flash, split, ring or paged")
    if definition.algorithm == "paged":
        return Proof(definition, tuple(paged_parts(definition, program)), "every page number is that of a page")
    walk = Walk.forward(definition, program)
    return Proof(walk.definition, tuple(_forward(walk)))


def prove_backward(definition: Definition, program: Program | None = None) -> Proof:
    """Prove that a gradient by tiles is the gradient of the definition.

    Parameters
    ----------
    definition
        With an algorithm that goes by tiles.
    program
        A list to be judged in place of :func:`symattn.algorithms.gradient_by_tiles`, with the same outputs.

    Notes
    -----
    The derived gradient of the definition is brought to the form that recomputes the weights from the log-sum-exp of the whole
    row, each rewriting proved; tile by tile its sums are the same. Sources: Dao et al., *FlashAttention*, 2022, algorithm 4;
    Dao, *FlashAttention-2*, 2023, algorithm 2; Liu et al., *Ring Attention*, 2023.

    >>> found = prove_backward(Definition(algorithm="flash", block=2, lse=False))
    >>> found.proved, found.parts[-1].text
    (True, 'dQ is that of the definition')
    """
    walk = Walk.gradient(definition, program)
    return Proof(walk.definition, tuple(_backward(walk)), "")


# ---------------------------------------------------------------- forward
def _forward(w: Walk) -> Iterator[Part]:
    """Numerator and denominator of the algorithm and of the definition, compared across: shifts cancel."""
    p = w.program
    yield w.tiles_part()
    name = next(n for n in ("O0", "Og", "O") if n in p)  # before what stands for empty rows, and before a gate
    out, total, m = p[name].target, p["l"].target, p["m"].target
    total_ref = w.star(total)
    split = w.definition.algorithm == "split"
    value = p["Ot"].expr / (p["E"].target / p["lt"].target if split else p["E"].target)
    place, where = w.tiles.axes, w.starred[name].where
    if split:
        shares = SumOver(p["wt"].target * p["Ot"].target, w.t, where=w.witnessed(p["wt"]).where)
        yield w.equal("O l is the sum of the parts' outputs times their shares", out * total, shares, "l")
        above: sp.Expr = SumOver(sp.exp(w.tiles.target(_score(w)) - m) * value, *place, where=where)
        yield w.equal("that is one sum over all keys, for any shifts of the parts", shares, above, "lt", "l")
    else:
        yield from w.steps(("ls", "Os"))
        above = w.with_closed(p["Os"].target.xreplace({w.t: w.count - 1}))
        yield w.equal("O l is the numerator after the last tile", out * total, above, "l")
    below = SumOver(w.star(p["E"].target) * value, *place, where=where)
    yield w.equal("so it is in the definition: O l is the sum of E V", w.star(out) * total_ref, below, name_of(total_ref))
    yield w.equal("numerators and denominators agree across, for any shifts", above * total_ref, below * total)
    yield w.equal("exp(m) l is the same sum of exponentials", sp.exp(m) * total, sp.exp(w.star(m)) * total_ref)
    yield w.empty_part(name)
    yield from w.rest({name, "m", "l"})


def _score(w: Walk) -> Tensor:
    """The score that the exponential of the definition reads."""
    return next(x for x in reads(w.reference["E"].expr) if w.tiles.index in subscripts_of(x))


# ---------------------------------------------------------------- gradient
def _backward(w: Walk) -> Iterator[Part]:
    """Every gradient of the list by tiles against the definition's, which is cut into the same tiles."""
    steps = flash_list(w.definition)[1]
    yield Part("the definition's gradient recomputes the weights from L", NORMAL_FORM, all(s.status != CHECKED for s in steps))
    yield w.tiles_part()
    yield from w.steps(n for n in (s.name for s in w.program if s.scan is not None) if n not in w.given and n not in ("ls", "Os"))
    there = {s.name: s for s in w.cut} | w.per_key
    for o in dict.fromkeys((*w.per_key, *w.reference.outputs)):
        text = f"{o} is that of the definition"
        if o not in w.program:
            yield Part(text, NORMAL_FORM, False)
        elif o in w.shared and o not in w.per_key:
            yield Part(text, WORD_FOR_WORD, True)
        elif w.tiles.index in w.reference[o].indices and w.tiles.places:
            yield _per_key(w, o, there[o], text)
        else:
            own = w.program[o]
            yield w.equal(text, own.target, w.star(there[o].target).xreplace(_indices(there[o], own)))


def _indices(a: Statement, b: Statement) -> dict[sp.Basic, sp.Basic]:
    return dict(zip(a.indices, b.indices, strict=True))


def _per_key(w: Walk, name: str, reference: Statement, text: str) -> Part:
    """A gradient per key: read from the tile that holds the key, or a sum over the places whose position is the key."""
    s, j = w.program[name], w.tiles.index
    if w.order:
        hit = sp.Eq(j, w.tiles.position)
        whole = w.reference[name]
        own = [c for c in s.conditions if c != hit]
        if hit not in s.conditions or s.indices != whole.indices or s.over != (*whole.over, *w.tiles.axes):
            return Part(text, DIVISION, False)
        left = SumOver(s.expr, *(a for a in s.over if a not in w.tiles.axes), where=sp.And(*own))
        cut = reference
        right = SumOver(w.star_all(cut.expr), *(a for a in cut.over), where=cut.where)
        if not [a for a in s.over if a not in w.tiles.axes]:
            return Part(text, DIVISION, w.holds(s.expr, w.star_all(cut.expr)) and set(own) == set(cut.conditions))
        return Part(text, DIVISION, w.holds(left, right))
    tile = next((x for x in reads(s.expr) if name_of(x) in w.program), None)
    look = tuple(w.tiles.tile_of(j))
    if tile is None or s.expr != tile or s.where != sp.true or s.over:
        return Part(text, DIVISION, False)
    made = w.program[name_of(tile)]
    if tile != made.target.xreplace(dict(zip(w.tiles.axes, look, strict=True))):
        return Part(text, DIVISION, False)
    return w.equal(text, made.target, w.star(reference.target).xreplace(_indices(reference, made)))


# ---------------------------------------------------------------- rows
def _claim(algorithm: str, gradient: bool = False, text: str = "") -> Callable[[Subject], tuple[Claim, ...]]:
    def claims(s: Subject) -> tuple[Claim, ...]:
        from symattn.theorems.runs import Runs

        changed = s.definition.replace(algorithm=None, block=None)
        try:
            d = changed.replace(algorithm=algorithm)
        except DefinitionError as why:
            raise NotStatedError(str(why)) from why
        return (Runs(d, gradient, text=text),)

    return claims


ANY_MASK = {"heads": 4, "kv_heads": 2, "attn_mask": "boolean"}
"""Grouped heads and a given mask: what is proved of it holds for every mask and every number of heads."""

ROWS = (
    Theorem(
        "online-program",
        "The online softmax gives O and L of the definition",
        "One pass over the keys with l and O rescaled by exp(m_{t-1} - m_t) gives O and L, for any m; so does its gradient.",
        r"\bar\ell_t = \rho_t\bar\ell_{t-1} + e^{z_t - \bar m_t},\quad \bar O_t = \rho_t\bar O_{t-1} + e^{z_t - \bar m_t} v_t",
        "arXiv 1805.02867, section 3",
        _claim("online", text="O and L by one pass over the keys are those of the definition"),
        home=ANY_MASK,
    ),
    Theorem(
        "flash-forward",
        "Flash forward gives O and L of the definition",
        "Tiles of any number of keys, the last one partial, give O and L of the definition.",
        r"O = \bar O_T / \bar\ell_T,\qquad L = \bar m_T + \log\bar\ell_T",
        "arXiv 2205.14135, theorem 1; arXiv 2307.08691, section 3.1",
        _claim("flash", text="O and L tile by tile are those of the definition"),
        home=ANY_MASK,
    ),
    Theorem(
        "flash-backward",
        "Flash backward gives the gradient of the definition",
        "P = exp(Z - L) recomputed tile by tile, D = rowsum(dO o O), dZ = P o (dP - D): dQ over the tiles, dK and dV in each.",
        r"dZ_t = e^{Z_t - L}\circ(dO\,V_t^\top - D),\quad dQ = \sum_t dZ_t K_t",
        "arXiv 2205.14135, appendix B; arXiv 2307.08691, algorithm 2",
        _claim("flash", gradient=True, text="the gradient tile by tile is that of the definition"),
        home={**ANY_MASK, "attn_mask": None, "causal": "bottom-right"},
    ),
    Theorem(
        "split-program",
        "Split keys merged by their LSE give O and L",
        "Parts with their own (L, O), averaged with exp(L_t - m); those without keys take no part, none gives O = 0, L = -oo.",
        r"O = \frac{\sum_t e^{L_t} O_t}{\sum_t e^{L_t}},\qquad L = \log\sum_t e^{L_t}",
        "Flash-Decoding, pytorch.org/blog/flash-decoding, 2023",
        _claim("split", text="O and L of merged parts are those of the definition"),
        home=ANY_MASK,
    ),
    Theorem(
        "ring-program",
        "Shards in any order, with the LSE of the whole row",
        "Shards that go round give O and L; the gradient of each recomputes P from the L of the whole row.",
        r"dZ^{(\sigma)} = e^{Z^{(\sigma)} - L}\circ(dP^{(\sigma)} - D)",
        "arXiv 2310.01889, section 3",
        lambda s: (*_claim("ring", text="O and L")(s), *_claim("ring", gradient=True, text="the gradient")(s)),
        home={"causal": "top-left"},
    ),
    Theorem(
        "paged-contiguous",
        "A paged cache is a contiguous one, looked up",
        "K[j] = Kc[page[floor(j/b)], j mod b] and V likewise: statement by statement the list is that of the definition.",
        r"K_j = \mathcal{K}_{\pi(\lfloor j/b\rfloor),\; j \bmod b}",
        "arXiv 2309.06180, section 4.1",
        _claim("paged", text="attention over pages is attention over the keys that the table lists"),
        home={"causal": "bottom-right", "key_lengths": True},
    ),
)
"""The rows of this family."""
