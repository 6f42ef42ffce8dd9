r"""Notations: letters, signs and conventions that a derivation is written in, set once in a TOML file and kept on the whole page.

A letter is one of a small part of LaTeX, checked sign by sign: ``q``, ``\alpha``, ``\mathbf{q}``, ``\mathcal{E}``,
``\mathrm{att}``, ``\hat{q}``, with a subscript (``q_h``, ``q_{\mathrm{in}}``). Nothing else of a file reaches a formula.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TypeVar

from symattn.derivation import blocks, document
from symattn.derivation.columns import worded
from symattn.derivation.document import Formula, Step
from symattn.derivation.unicodemath import INDICES, unicode_math
from symattn.derivation.unicodemath import SIZES as JOINED
from symattn.errors import DefinitionError, UnknownNameError
from symattn.fields import letter_of
from symattn.readings.typesetting.letters import Letters
from symattn.readings.typesetting.lettertable import GREEK

PAGES = frozenset({blocks.__name__, document.__name__})
"""The modules whose data pages are made of."""
SIGNS: Mapping[str, Mapping[str, str]] = {
    "transpose": {r"\top": r"\top", "top": r"\top", "T": "T", r"\intercal": r"\intercal", "intercal": r"\intercal"},
    "hadamard": {r"\circ": r"\circ", "circ": r"\circ", r"\odot": r"\odot", "odot": r"\odot", r"\ast": r"\ast", "ast": r"\ast"},
    "convention": {"row": "row", "column": "column"},
    "decimal": {".": ".", ",": ","},
}
WORD = r"[A-Za-z][A-Za-z0-9]{0,11}"
_BASE = rf"""(?P<greek>\\[A-Za-z]+) | (?P<letter>[A-Za-z])
    | \\(?P<face>mathbf|mathcal|hat|tilde|bar)\s*(?:\{{\s*(?P<inner>\\?[A-Za-z]+)\s*\}}|\s(?P<bare>[A-Za-z]))
    | \\mathrm\s*\{{(?P<word>{WORD})\}}"""
_LETTER = re.compile(
    rf"(?:{_BASE})(?P<prime>')?(?:_(?:(?P<sub>[A-Za-z0-9])|\{{(?P<subs>{WORD}|[0-9]{{1,3}}|\\mathrm\{{{WORD}\}})\}}))?", re.X
)
ALLOWED = (
    r"a letter (q, \alpha, \mathbf q, \mathcal E, \mathrm{att}, \hat q, \tilde q, \bar q), perhaps with a prime and with a "
    r"subscript (q_h, q_{in}, q_{\mathrm{in}})"
)


def letter(text: str) -> str | None:
    r"""A letter as it is put into formulas; None for a text that is none.

    >>> letter(r"\mathbf q"), letter("d_h"), letter(r"x_{\mathrm{in}}"), letter("W_k")
    ('\\mathbf{q}', 'd_h', 'x_{\\mathrm{in}}', 'W_{\\mathit{k}}')
    >>> letter(r"\input{x}"), letter("ab"), letter(r"\beta"), letter(r"q^2"), letter(r"\dot q")
    (None, None, '\\beta', None, None)
    """
    m = _LETTER.fullmatch(text.strip())
    if m is None:
        return None
    if m["greek"]:
        base = m["greek"] if m["greek"][1:] in {*GREEK, "ell", "varepsilon"} else ""
    elif m["face"]:
        inner = m["inner"] or m["bare"]
        plain = len(inner) == 1 and (inner.isupper() or m["face"] != "mathcal")
        accented = m["face"] in ("hat", "tilde", "bar") and inner.startswith("\\") and inner[1:] in GREEK
        base = rf"\{m['face']}{{{inner}}}" if plain or accented else ""
    else:
        base = m["letter"] or rf"\mathrm{{{m['word']}}}"
    if not base:
        return None
    below = m["sub"] or m["subs"] or ""
    if len(below) == 1 and below in INDICES and base not in JOINED:
        below = rf"\mathit{{{below}}}"  # so that no form takes it for an index
    elif re.fullmatch("[A-Za-z][A-Za-z0-9]+", below):
        below = rf"\mathrm{{{below}}}"
    sub = "" if not below else f"_{below}" if len(below) == 1 else f"_{{{below}}}"
    return base + (m["prime"] or "") + sub


@dataclass(frozen=True)
class Notation:
    r"""What a page is written in; what is not said is as without a notation.

    Parameters
    ----------
    letters, sizes
        Field name of a tensor or its letter in programs, and name of a size -> LaTeX.
    transpose, hadamard
        The superscript of a transposed matrix, and the sign of the entrywise product.
    convention
        ``"row"``: a position is a row of a matrix, ``O = P V``; ``"column"``: it is a column, ``O = V P``.
    decimal
        The decimal mark.
    origin
        The number of the first position; None: 1, or 0 where a formula computes with positions.
    heads
        The names of the heads.
    name
        Where it comes from, for messages.

    >>> Notation(letters={"Q": r"\mathbf{q}"}, transpose="T").columns
    False
    """

    letters: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, str] = field(default_factory=dict)
    transpose: str = r"\top"
    hadamard: str = r"\circ"
    convention: str = "row"
    decimal: str = "."
    origin: int | None = None
    heads: tuple[str, ...] = ()
    name: str = "notation"

    @property
    def columns(self) -> bool:
        """Whether positions are columns."""
        return self.convention == "column"

    def resolved(self, names: Collection[str]) -> Notation:
        """The notation with the letters of the tensors of a page, by their names in programs.

        Raises
        ------
        DefinitionError
            When one tensor is named by its field and by its letter.
        """
        own: dict[str, str] = {}
        for key, tex in self.letters.items():
            try:
                name = key if key in names else letter_of(key, names)
            except UnknownNameError:
                continue  # a tensor of other pages
            if name in own:
                raise DefinitionError(f"{self.name}: letters: {key!r} and {name!r} are one tensor; give it one letter")
            own[name] = tex
        return replace(self, letters=own)

    def table(self, letters: Letters, names: Collection[str], indices: Iterable[str], sizes: Iterable[str]) -> Letters:
        """Letters with those of the notation put over them; ``names`` are the tensors of a page.

        Raises
        ------
        DefinitionError
            When a letter would stand for two things.
        """
        own = {n: tex for n, tex in self.letters.items() if n in names}
        table = replace(letters, tensors={**letters.tensors, **own}, symbols={**letters.symbols, **self.sizes})
        seen: dict[str, str] = {}
        for kind, found, write in (
            ("the index", indices, table.symbol),
            ("the size", sizes, table.symbol),
            ("the tensor", sorted(names, key=lambda n: n not in own), lambda n: table.tensor(n).tex()),
        ):
            for n in found:
                tex, what = write(n), f"{kind} {n}"
                if tex in seen and (n in own or seen[tex].split()[-1] in {*own, *self.sizes} or n in self.sizes):
                    raise DefinitionError(
                        f"{self.name}: {tex} would stand for {seen[tex]} and for {what}; give one of them another"
                    )
                seen.setdefault(tex, what)
        return table

    def first(self, allowed: int) -> int:
        """The number of the first position; ``allowed`` is 1 where formulas hold from either, and 0 where they need 0.

        Raises
        ------
        DefinitionError
            When the notation says 1 and a formula computes with positions, which count from 0.
        """
        if self.origin == 1 and not allowed:
            why = "a formula of this definition computes with positions themselves, which count from 0"
            raise DefinitionError(f"{self.name}: origin: got 1; {why}; allowed: 0")
        return allowed if self.origin is None else self.origin

    def named(self, leading: Mapping[str, int], heads: int | None, kv_heads: int | None) -> dict[str, tuple[str, ...]]:
        """Tensor -> names of its heads, for those with one matrix a head; ``leading`` counts the indices above a tensor.

        Raises
        ------
        DefinitionError
            When the definition has another number of heads than there are names, or heads that share their keys.
        """
        if not self.heads:
            return {}
        shared = kv_heads not in (None, heads)
        if len(self.heads) != heads or shared:
            have = "no heads" if heads is None else f"{heads} heads" + (" that share their keys" if shared else "")
            allowed = "no names" if heads is None or shared else f"{heads} names"
            raise DefinitionError(f"{self.name}: heads: got {len(self.heads)} names for {have}; allowed: {allowed}")
        return {n: self.heads for n, count in leading.items() if count == 1}

    def signed(self, tex: str) -> str:
        r"""A formula with the signs of the notation.

        >>> Notation(transpose="T", hadamard=r"\odot").signed(r"P \circ K^{(h)\top} \mathbf{1}^{\top}")
        'P \\odot K^{(h)T} \\mathbf{1}^T'
        """
        tex = re.sub(r"\\circ(?![A-Za-z])", lambda _: self.hadamard, tex)
        tex = re.sub(r"\\top(?![A-Za-z])", lambda _: self.transpose, tex)
        return tex.replace("^{T}", "^T") if self.transpose == "T" else tex

    def written(self, step: Step) -> Step:
        """A step with the signs of the notation in its formulas, and its letters in its words."""
        name, reason, remark = (self.spoken(self.worded(x)) for x in (step.name, step.reason, step.remark))
        return replace(signed(step, self.signed), name=name, reason=reason, remark=remark)

    def worded(self, text: str) -> str:
        """A sentence on rows of matrices, which are columns where the notation says so."""
        return worded(text) if self.columns else text

    def spoken(self, text: str) -> str:
        r"""A sentence that mentions tensors by their letters, with those of the notation.

        >>> Notation(letters={"Q": r"\mathbf{q}", "K": r"\hat{k}"}).spoken("The matrix Q is the identity, so R is K transposed.")
        'The matrix 𝐪 is the identity, so R is k hat transposed.'
        """
        said = {n[0] + "_" + n[1:] if len(n) == 2 and n[0] in "FW" else n: tex for n, tex in self.letters.items()}
        if not said:
            return text
        words = "|".join(map(re.escape, sorted(said, key=len, reverse=True)))
        return re.sub(rf"(?<![\w'])({words})(?![\w'])", lambda m: _spoken(said[m[1]]), text)


def _spoken(tex: str) -> str:
    accent = re.match(r"\\(hat|tilde|bar)\{([^}]*)\}(.*)", tex)
    return f"{unicode_math(accent[2] + accent[3], labels=True)} {accent[1]}" if accent else unicode_math(tex, labels=True)


T = TypeVar("T")


def signed(data: T, change: Callable[[str], str], say: Callable[[str], str] = str) -> T:
    """A step, a section or any other data of a page with its formulas changed, and with its words where it is said how.

    >>> from symattn.derivation.document import Formula, Step
    >>> signed((Formula("a", "b"), "c"), str.upper)
    (Formula(latex='A', markdown='B'), 'c')
    """
    if isinstance(data, Formula):
        return replace(data, latex=change(data.latex), markdown=change(data.markdown))
    if isinstance(data, tuple):
        return type(data)(signed(x, change, say) for x in data)
    if isinstance(data, str):
        return say(data)  # type: ignore[return-value]
    if is_dataclass(data) and not isinstance(data, type) and type(data).__module__ in PAGES:
        return replace(data, **{f.name: signed(getattr(data, f.name), change, say) for f in fields(data)})
    return data
