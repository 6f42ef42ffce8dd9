r"""Words of the user made harmless in each form: ``\input{x}``, ``<script>``, ``$`` and control characters are shown, not obeyed.

Every writer passes every string that it did not make itself through the function of its form, whatever the string says.
"""

from __future__ import annotations

import html as _html
import unicodedata
from collections.abc import Mapping

from symattn.derivation.unicodemath import SIGNS

LONGEST = 24
"""Words longer than this are cut in tables and lines."""

_LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    '"': "''", "`": r"\`{}", "-": "{-}", "'": "'", "→": r"$\to$", "≤": r"$\le$", "≥": r"$\ge$", "∞": r"$\infty$",
    "ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}",
    "ø": r"\o{}", "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}",
    "å": r"\aa{}", "Å": r"\AA{}", "¿": "?`", "¡": "!`", "…": r"\dots{}", "–": "--", "—": "---", "×": r"$\times$",
    "β": r"$\beta$", "μ": r"$\mu$", "ℰ": r"$\mathcal{E}$", "“": "``", "”": "''", "∂": r"$\partial$",
}  # fmt: skip
_ACCENTS: Mapping[str, str] = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": ".", "\u0308": '"',
    "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c",
}  # fmt: skip
_FACES: Mapping[str, str] = {"MATHEMATICAL BOLD": r"\mathbf", "MATHEMATICAL SCRIPT": r"\mathcal", "SCRIPT CAPITAL": r"\mathcal"}
"""How the letters of formulas that words repeat are called in Unicode, and their face."""
_GREEK: Mapping[str, str] = {
    sign: name for name, sign in SIGNS.items() if sign.isalpha() and unicodedata.name(sign[0]).startswith("GREEK")
}
_PLAIN = frozenset(" .,:;'/()[]+")
_MARKDOWN = frozenset("\\`*_{}[]<>()#+|~$&@^=!")


def visible(text: str) -> str:
    r"""The text with control, formatting and unassigned characters shown as code points.

    >>> visible("a\u202eb\n"), visible("über")
    ('a[U+202E]b[U+000A]', 'über')
    """
    return "".join(
        f"[U+{ord(c):04X}]" if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") else c for c in text
    )


def shortened(text: str, longest: int = LONGEST) -> str:
    """The text, cut where it is longer than allowed.

    >>> shortened("abcdef", 4)
    'abc…'
    """
    if display_width(text) <= longest:
        return text
    out = ""
    for c in text:
        if display_width(out + c) >= longest:
            break
        out += c
    return out + "…"


def arrow(words: tuple[str, ...]) -> str:
    """Words with an arrow between them, long ones cut.

    >>> arrow(("the", "cat")), arrow(())
    ('the → cat', '')
    """
    return " → ".join(shortened(visible(w), 16) for w in words)


def display_width(text: str) -> int:
    r"""How many columns a terminal takes for a text: two for wide letters, none for combining ones.

    >>> display_width("abc"), display_width("猫"), display_width("e\u0301")
    (3, 2, 1)
    """
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def latex_text(text: str) -> str:
    r"""The text for LaTeX: no letter has a meaning, and one that pdflatex has no glyph for is shown as its code point.

    >>> print(latex_text(r"\input{x} 5% é 猫"))
    \textbackslash{}input\{x\} 5\% \'{e} [U+732B]
    """
    return "".join(_latex_letter(c) for c in visible(unicodedata.normalize("NFC", text)))


def _latex_letter(c: str) -> str:
    if c == "*":
        return r"*\hspace{0pt}"  # a score without blanks is broken at its products
    if c in _LATEX:
        return _LATEX[c]
    if c.isascii():
        return c
    face = _FACES.get(" ".join(unicodedata.name(c, "").split()[:2])) if c not in "ℰ" else None
    if face and unicodedata.normalize("NFKC", c).isascii():
        return rf"${face}{{{unicodedata.normalize('NFKC', c)}}}$"
    if c in _GREEK:
        return rf"$\{_GREEK[c]}$"
    parts = unicodedata.normalize("NFD", c)
    if len(parts) == 2 and parts[0].isascii() and parts[1] in _ACCENTS:
        base = {"i": r"\i", "j": r"\j"}.get(parts[0], parts[0]) if parts[1] != "\u0327" else parts[0]
        return rf"\{_ACCENTS[parts[1]]}{{{base}}}"
    return f"[U+{ord(c):04X}]"


def markdown_text(text: str) -> str:
    """The text for Markdown: signs with a meaning become character references.

    >>> markdown_text("<script> $x$ *a*")
    '&#60;script&#62; &#36;x&#36; &#42;a&#42;'
    """
    out = "".join(f"&#{ord(c)};" if c in _MARKDOWN else c for c in visible(text))
    return out.replace("://", "&#58;//").replace("www.", "www&#46;")


def markdown_label(text: str) -> str:
    """The text for inside a formula of Markdown, where no escape is safe: signs are shown as code points.

    >>> markdown_label("le chat"), markdown_label("a_b")
    ('le chat', 'a[U+005F]b')
    """
    return "".join(c if c.isalnum() or c in _PLAIN else f"[U+{ord(c):04X}]" for c in visible(text).replace("…", "..."))


def html_text(text: str) -> str:
    """The text for HTML.

    >>> html_text("<script>")
    '&lt;script&gt;'
    """
    return _html.escape(visible(text), quote=True)
