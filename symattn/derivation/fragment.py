r"""A derivation as LaTeX to be included in a document of one's own with ``\input``: no preamble, amsmath only.

Headings stand one level below those of the document, settings are local, and every label carries a prefix, so that two fragments
in one document do not clash.
"""

from __future__ import annotations

import re
from hashlib import sha256

from symattn.derivation.document import Derivation
from symattn.derivation.escaping import visible
from symattn.derivation.latex import LABEL, body
from symattn.derivation.paper import WIDTH_OF_CHARACTER, paper
from symattn.errors import InputValueError

NEEDS = r"""% {title}
% Made by symattn. Include it with \input. It needs, in the preamble:
%   \usepackage{{amsmath}}
% Lines are broken for a text {width:.0f} mm wide, in a type of 10 points; --page asks for another width.
% Labels begin with {prefix}
"""
BEGIN = r"""\begingroup
\setlength{\parindent}{0pt}\setlength{\parskip}{4pt plus 2pt}
\sloppy"""
END = r"\par\endgroup"
_LABELS = re.compile(rf"\\(label|ref|eqref|pageref)\{{{LABEL}")


def fragment(d: Derivation, page: str = "a4", prefix: str | None = None) -> str:
    r"""The fragment; ``prefix`` is put before every label. Where none is given it is made of the title and of what is said.

    Raises
    ------
    InputValueError
        When the prefix has other signs than letters, digits, ``-``, ``.`` and ``:``.
    """
    width = paper(page).characters
    labelled = frozenset(s.number for s in d.steps if s.formulas)
    text = "\n".join([BEGIN, *body(d, width, labelled), END])
    own = checked(prefix) if prefix is not None else prefix_of(d.title, text)
    text = re.sub(r"\\(sub)?section\*", lambda m: rf"\sub{m[1] or ''}section*", text)
    text = _LABELS.sub(lambda m: rf"\{m[1]}{{{own}:", text)
    title = visible(d.title).encode("ascii", "replace").decode()
    return NEEDS.format(title=title, width=width * WIDTH_OF_CHARACTER, prefix=f"{own}:") + text + "\n"


def checked(prefix: str) -> str:
    """A prefix that somebody chose, for labels of LaTeX and for names of places in a page of HTML.

    Raises
    ------
    InputValueError
        When it has other signs than letters, digits, ``-``, ``.`` and ``:``.

    >>> checked("cat")
    'cat'
    """
    if not re.fullmatch(r"[A-Za-z0-9.:-]+", prefix):
        raise InputValueError(f"a prefix of labels is made of letters, digits, '-', '.' and ':', got {prefix!r}")
    return prefix


def prefix_of(title: str, text: str) -> str:
    """A prefix from a title, and from a text that tells derivations with one title apart.

    >>> prefix_of("the cat sat", "a"), prefix_of("the cat sat", "b")
    ('the-cat-sat-ca978', 'the-cat-sat-3e23e')
    """
    words = "-".join(re.findall(r"[a-z0-9]+", title.lower()))[:40].strip("-") or "derivation"
    return f"{words}-{sha256(text.encode()).hexdigest()[:5]}"
