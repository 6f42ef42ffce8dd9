r"""How names and operators look: the styles, and how the name of a tensor, an index or a size becomes LaTeX.

A name that no table holds (:mod:`symattn.readings.typesetting.lettertable`) is taken apart by rule: ``dS`` is a gradient,
``Q_t`` a tangent (``\dot{Q}``), ``P0`` and ``W_out`` carry a subscript, Greek names become Greek letters, any other word is set
upright.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from symattn.errors import UnknownNameError, nearest
from symattn.readings.typesetting.lettertable import GREEK, SYMBOLS, TENSORS


@dataclass(frozen=True)
class Style:
    r"""The operators and macros of one kind of LaTeX.

    Parameters
    ----------
    name
        What the style is called.
    transpose, hadamard
        The superscript of a transposed matrix; the sign of the entrywise product (``\circ`` or ``\odot``).
    named
        The macro that sets a function's name; GitHub's Markdown rejects ``\operatorname``.
    thin
        The thin space; Markdown takes the backslash of ``\,`` away.
    less, greater
        The signs of order; ``<`` may start a tag in Markdown.

    >>> LATEX.function("softmax"), MARKDOWN.function("softmax")
    ('\\operatorname{softmax}', '\\mathrm{softmax}')
    """

    name: str = "latex"
    transpose: str = r"\top"
    hadamard: str = r"\circ"
    named: str = r"\operatorname"
    thin: str = r"\,"
    less: str = "<"
    greater: str = ">"

    def function(self, name: str) -> str:
        """The name of a function that LaTeX has no macro for."""
        return f"{self.named}{{{name}}}"


LATEX = Style()
MARKDOWN = Style(name="markdown", named=r"\mathrm", thin=r"\thinspace ", less=r"\lt", greater=r"\gt")
STYLES: Mapping[str, Style] = {"latex": LATEX, "markdown": MARKDOWN}


def style_of(style: Style | str) -> Style:
    r"""A style, given itself or its name.

    Raises
    ------
    UnknownNameError
        When no style has this name.

    >>> style_of("markdown").named
    '\\mathrm'
    """
    if isinstance(style, Style):
        return style
    if style not in STYLES:
        raise UnknownNameError(f"no LaTeX style is called {style!r}. {nearest(style, STYLES)}")
    return STYLES[style]


def script(sign: str, tex: str) -> str:
    r"""A subscript or a superscript, braces only where they are needed.

    >>> script("_", "i"), script("_", "ij"), script("^", "")
    ('_i', '_{ij}', '')
    """
    return (sign + tex if len(tex) == 1 else f"{sign}{{{tex}}}") if tex else ""


@dataclass(frozen=True)
class Letter:
    r"""A letter with what stands around it: ``dW_Q`` has prefix ``d``, base ``W`` and sub ``Q``.

    >>> Letter("W", "Q", "d").tex(), Letter("W", "Q").tex(indices="ac"), Letter("S").tex(batch="h", indices="ij")
    ('dW_Q', '(W_Q)_{ac}', 'S^{(h)}_{ij}')
    """

    base: str
    sub: str = ""
    prefix: str = ""

    @property
    def gradient(self) -> bool:
        """Whether a prefix stands before the base; such a name is set apart from its neighbours by a thin space."""
        return bool(self.prefix)

    def tex(self, batch: str = "", indices: str = "", raised: str = "", shape: Sequence[str] = ()) -> str:
        r"""The letter with batch indices in a superscript, ``raised`` (a transpose) behind them, and indices as subscripts.

        ``shape``, LaTeX of the sizes of rows and columns, stands under a whole matrix.

        >>> Letter("K").tex(raised=r"\top", shape=("d_k", "m"))
        '\\underset{d_k \\times m}{K^{\\top}}'
        """
        top = (f"({batch})" if batch else "") + raised
        letter = self.prefix + self.base
        if top and letter.endswith("'"):  # a prime is a superscript already
            letter = f"{{{letter}}}"
        if not self.sub:
            whole = letter + script("^", top) + script("_", indices)
        else:
            whole = letter + script("_", self.sub) + script("^", top)
            whole = f"({whole}){script('_', indices)}" if indices else whole
        sizes = r" \times ".join(shape)
        return rf"\underset{{{sizes}}}{{{whole}}}" if shape else whole


@dataclass(frozen=True)
class Letters:
    r"""The table from names to letters: one for tensors and scalar parameters, one for indices and sizes.

    Parameters
    ----------
    tensors, symbols
        Name -> LaTeX, with at most one subscript (``W_Q``); what they do not hold is read off the name by rule.
    known
        Names of tensors: ``d`` before one of them is its gradient.
    extents
        Index -> LaTeX of its size: matrices have their shapes under them. Empty for matrices without.

    >>> letters = Letters()
    >>> letters.tensor("dS").tex(indices="ij"), letters.tensor("WQ_t").tex(), letters.tensor("P0").tex(), letters.symbol("d")
    ('dS_{ij}', '\\dot{W}_Q', 'P_0', 'd_k')
    """

    tensors: Mapping[str, str] = field(default_factory=lambda: dict(TENSORS))
    symbols: Mapping[str, str] = field(default_factory=lambda: dict(SYMBOLS))
    known: frozenset[str] = frozenset()
    extents: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, letters: Letters | Mapping[str, str] | None, known: Iterable[str] = (), indices: Iterable[str] = ()) -> Letters:
        r"""The default table with the rows of ``letters`` put over it (a mapping holds names of tensors).

        Of two ``known`` tensors that would look alike, such as ``slope`` and a parameter ``mu``, one is set as a word; so is
        one that would look like one of the ``indices``.

        >>> Letters.of(None, ["sink"]).tensor("sink").tex(), Letters.of(None, ["sink"], ["b", "i"]).tensor("sink").tex()
        ('b', '\\mathrm{sink}')
        """
        if not isinstance(letters, Letters):
            letters = cls(tensors={**TENSORS, **(letters or {})})
        letters = replace(letters, known=letters.known | frozenset(known))
        plain = [n for n in letters.known if not letters._is_derived(n)]
        taken = {letters.symbol(a) for a in indices}
        return letters._apart(plain, taken)._apart(letters.known, taken)

    def _apart(self, names: Iterable[str], taken: Iterable[str]) -> Letters:
        given = {n for n in self.tensors if self.tensors[n] != TENSORS.get(n)}
        seen = {self.tensor(n).tex() for n in given} | set(taken)
        words: dict[str, str] = {}
        for n in sorted(set(names) - given, key=lambda n: (n in self.tensors, n)):
            tex = self.tensor(n).tex()
            if tex in seen:
                words[n] = upright(n)
            seen.add(tex)
        return replace(self, tensors={**self.tensors, **words}) if words else self

    def tensor(self, name: str) -> Letter:
        """The letter of a tensor or a scalar parameter."""
        if name in self.tensors:
            return _split(self.tensors[name])
        if self._is_tangent(name):
            inner = self.tensor(name[:-2])
            return replace(inner, base=rf"\dot{{{inner.base}}}")
        if self._is_gradient(name):
            inner = self.tensor(name[1:])
            return replace(inner, prefix="d" + inner.prefix)
        return self._by_rule(name)

    def symbol(self, name: str) -> str:
        """The LaTeX of an index or a size."""
        return (_split(self.symbols[name]) if name in self.symbols else self._by_rule(name)).tex()

    def _is_derived(self, name: str) -> bool:
        return self._is_tangent(name) or self._is_gradient(name)

    def _is_tangent(self, name: str) -> bool:
        return name.endswith("_t") and len(name) > 2

    def _is_gradient(self, name: str) -> bool:
        inner = name[1:]
        bare = inner.rstrip("'")
        return name[:1] == "d" and bool(bare) and (bare in self.known or bare in self.tensors or bare[0].isupper())

    def _by_rule(self, name: str) -> Letter:
        bare = name.rstrip("'")
        prime = name[len(bare) :]
        if re.fullmatch(r"[A-Za-z]", bare):
            return Letter(bare + prime)
        if bare in GREEK:
            return Letter(rf"\{bare}{prime}")
        match = re.fullmatch(r"([A-Za-z]+)_?([0-9]+)", bare) or re.fullmatch(r"([A-Za-z]+\d*'*)_([\w']+)", bare)
        match = match or re.fullmatch(r"([A-Za-z])([A-Za-z])", bare)
        if match:
            whole = match[1] in self.tensors or self._is_gradient(match[1])
            outer = self.tensor(match[1]) if whole else self._by_rule(match[1])
            sub = self._subscript(match[2])
            return Letter(outer.base + prime, f"{outer.sub},{sub}" if outer.sub else sub, outer.prefix)
        return Letter(upright(bare) + prime)

    def _subscript(self, word: str) -> str:
        given = word in self.tensors and self.tensors[word] != TENSORS.get(word)
        if re.fullmatch(r"\d+|[A-Za-z]", word) and not given:
            return word
        named = word in self.known or word in self.tensors or re.fullmatch(r"[A-Za-z]\d+", word)
        return self.tensor(word).tex() if named else upright(word)


def upright(word: str) -> str:
    """A word in upright letters; an underscore becomes a comma, and no other sign can be part of a macro."""
    return rf"\mathrm{{{re.sub(r'[^A-Za-z0-9,]', '?', word.replace('_', ','))}}}"


def _split(tex: str) -> Letter:
    r"""``W_Q`` and ``W_{Q}`` as base and subscript; an underscore inside braces does not count."""
    depth = 0
    for at, sign in enumerate(tex):
        depth += (sign == "{") - (sign == "}")
        if sign == "_" and not depth and (not at or tex[at - 1] != "\\"):
            sub = tex[at + 1 :]
            return Letter(tex[:at], sub[1:-1] if sub.startswith("{") and sub.endswith("}") else sub)
    return Letter(tex)
