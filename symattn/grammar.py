"""Text to SymPy: the small grammar in which a user may write a score, a mask, a scale or a number.

Text is parsed by Python's ``ast`` and rebuilt node by node; what is not in the tables below is refused with its position.
Nothing is ever evaluated: no ``eval``, no ``sympify``.

=============  ============================================================================================
numbers        ``3``, ``0.1`` (exactly 1/10), ``1e-3``
names          of a score: ``s`` the scaled score, ``i j`` query and key, ``h b`` head and batch, ``n m d`` the number
               of queries, of keys, of channels; of a mask all of these but ``s``; of a scale ``n m d dv``. ``pi`` is
               the number. Any other name is a parameter;
               ``name[i]``, ``name[j]``, ``name[i, j]`` (``b`` may stand first) is an entry of a given array
arithmetic     ``+ - * / **``, ``//`` and ``%`` (floor division and its remainder)
functions      ``exp log sqrt tanh sin cos abs min max sigmoid floor erf``
comparisons    ``< <= > >= == !=``, chained as in ``0 <= i - j < 4`` (masks only)
logic          ``and or not``; ``& | ~`` between parenthesised comparisons only, because they bind tighter than ``<=``
=============  ============================================================================================

``^`` is a power in the value of a parameter (``--param slope=2^-3``, see :func:`symattn.numbers.exact_number`), and refused in a
score, where Python and mathematics read it differently. :func:`symattn.grammarprint.write` is the way back from SymPy to text.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from symattn.grammartree import Reader
from symattn.indexed import index, size
from symattn.symbols import i, j, s

SCORE_NAMES: Mapping[str, sp.Symbol] = {
    "s": s, "i": i, "j": j, "h": index("h"), "b": index("b"), "n": size("n"), "m": size("m"), "d": size("d"),
}  # fmt: skip
MASK_NAMES: Mapping[str, sp.Symbol] = {name: symbol for name, symbol in SCORE_NAMES.items() if name != "s"}
SCALE_NAMES: Mapping[str, sp.Symbol] = {name: size(name) for name in ("n", "m", "d", "dv")}
FREQUENCY_NAMES: Mapping[str, sp.Symbol] = {**SCALE_NAMES, "p": index("p"), "r": size("r")}
"""Of the frequencies of a rotation: the pair of channels, from 0, and how many channels rotate, beside the sizes."""


def parse_score(text: str, names: Mapping[str, sp.Expr] | None = None) -> sp.Expr:
    """The scalar expression that ``text`` writes, in ``s``, the indices, the sizes and real symbols for parameters.

    Parameters
    ----------
    text
        For example ``"20*tanh(s/20) - slope*(i - j)"``.
    names
        What the known names stand for; every other name becomes a real symbol. Default: ``s i j h b n m d``.

    Raises
    ------
    GrammarError
        With the position, when the text is outside the grammar.
    LimitError
        When it is too long, too deep, or holds a number too large.

    >>> parse_score("s/10 + 0.1")
    s/10 + 1/10
    """
    return Reader(text, SCORE_NAMES if names is None else names, "score").value()


def parse_mask(text: str, names: Mapping[str, sp.Expr] | None = None) -> sp.Basic:
    """The condition that ``text`` writes: where it holds, query ``i`` attends to key ``j``.

    Raises as :func:`parse_score` does.

    >>> parse_mask("j <= i and i - j < 128")
    (j <= i) & (i - j < 128)
    """
    return Reader(text, MASK_NAMES if names is None else names, "mask").condition()


def parse_scale(text: str, names: Mapping[str, sp.Expr] | None = None) -> sp.Expr:
    """The scalar that ``text`` writes in the sizes ``n m d dv`` and parameters.

    Raises as :func:`parse_score` does.

    >>> parse_scale("1/sqrt(d)")
    1/sqrt(d)
    """
    return Reader(text, SCALE_NAMES if names is None else names, "scale").value()


def parse_frequency(text: str) -> sp.Expr:
    """The angle by which pair ``p`` of the ``r`` rotated channels turns from one position to the next, in parameters and sizes.

    Raises as :func:`parse_score` does.

    >>> parse_frequency("base**(-2*p/r)")
    base**(-2*p/r)
    """
    return Reader(text, FREQUENCY_NAMES, "frequency").value()


def parameters_of(expr: sp.Basic) -> tuple[str, ...]:
    """The names of the parameters that a parsed score, mask or scale reads, sorted.

    >>> parameters_of(parse_score("cap*tanh(s/cap) - slope*(i - j)"))
    ('cap', 'slope')
    """
    symbols = {a for a in expr.free_symbols if isinstance(a, sp.Symbol)}
    return tuple(sorted(a.name for a in symbols if not a.is_integer and a != s))


def arrays_of(expr: sp.Basic) -> dict[str, str]:
    """The arrays that a parsed score or mask reads, and their axes.

    >>> arrays_of(parse_mask("lane[i] == owner[j] or open[b, i, j] > 0"))
    {'lane': 'i', 'open': 'bij', 'owner': 'j'}
    """
    found = {str(x.base.label): "".join(str(a) for a in x.indices) for x in expr.atoms(sp.Indexed)}
    return dict(sorted(found.items()))
