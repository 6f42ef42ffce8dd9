r"""LaTeX formulas as one line of Unicode text: ``\frac{Q K^{\top}}{\sqrt{d_k}}`` becomes ``Q Kᵀ/√d_k``.

Only the mathematics that symattn itself writes is understood; an unknown macro is an error, so that no formula is ever shown
with a piece missing. Subscripts of tensors become brackets, as in code: ``R_{ij}`` is ``R[i,j]``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from symattn.errors import InputValueError

SIGNS: Mapping[str, str] = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "varepsilon": "ε", "epsilon": "ε", "zeta": "ζ", "eta": "η",
    "theta": "θ",
    "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "upsilon": "υ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ",
    "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ", "Upsilon": "Υ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω", "ell": "ℓ", "infty": "∞",
    "cdot": "·", "times": "×", "circ": "∘", "odot": "⊙", "ast": "∗", "le": "≤", "ge": "≥", "leq": "≤", "geq": "≥", "lt": "<",
    "gt": ">", "ne": "≠", "approx": "≈", "gets": "←", "propto": "∝", "equiv": "≡", "implies": "⟹", "iff": "⟺", "mapsto": "↦",
    "in": "∈", "to": "→", "dots": "…", "ldots": "…", "cdots": "⋯", "vdots": "⋮", "top": "ᵀ", "intercal": "ᵀ", "mid": "|",
    "partial": "∂",
    "prime": "'",
    "quad": "   ", "qquad": "   ", "thinspace": " ", "enspace": "", ",": " ", ";": " ", ":": " ", " ": " ", "!": "",
    "sum": "Σ", "prod": "Π", "max": "max", "min": "min", "exp": "exp", "log": "log", "ln": "ln", "tanh": "tanh", "sinh": "sinh",
    "cosh": "cosh", "sin": "sin", "cos": "cos", "tan": "tan", "bmod": " mod ", "lvert": "|", "rvert": "|", "lfloor": "⌊",
    "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉", "langle": "⟨", "rangle": "⟩", "_": "_", "{": "{", "}": "}", "%": "%", "&": "&",
    "#": "#",
}  # fmt: skip
"""Macros without an argument."""
UPRIGHT = frozenset({"mathrm", "mathit", "operatorname", "text", "mathbf", "mathcal"})
"""Macros that only change how their argument looks."""
ACCENTS: Mapping[str, str] = {"dot": "\u0307", "bar": "\u0304", "tilde": "\u0303", "hat": "\u0302"}
RAISED: Mapping[str, str] = {"2": "²", "3": "³", "ᵀ": "ᵀ", "-1": "⁻¹"}
LARGE = ("Σ", "Π", "max", "min")
SIZES = frozenset({"d", "H"})
INDICES = frozenset("bkghijcefauptwxyz")
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SCRIPT: Mapping[int, str] = dict(zip(map(ord, UPPER), "𝒜ℬ𝒞𝒟ℰℱ𝒢ℋℐ𝒥𝒦ℒℳ𝒩𝒪𝒫𝒬ℛ𝒮𝒯𝒰𝒱𝒲𝒳𝒴𝒵", strict=True))
BOLD: Mapping[int, str] = {ord("1"): "𝟏"} | {ord(c): chr(0x1D400 + k) for k, c in enumerate(UPPER + UPPER.lower())}

NAME_IN_BRACKETS = re.compile(r"(?<![\w^])\((\w+(?:\^\(\w+\))?)\)\[")
"""A name with a subscript, which LaTeX brackets before a second one: text has that one in brackets of its own."""

_TOKEN = re.compile(r"\\([A-Za-z]+|.)|([{}_^&])|(\s+)|([^\\{}_^&\s])", re.DOTALL)


def unicode_math(latex: str, labels: bool = False) -> str:
    r"""The formula as text; with ``labels`` every subscript is part of a name (``P_0``), not an index.

    Raises
    ------
    InputValueError
        On a macro that is not in the table, and on unbalanced braces.

    >>> unicode_math(r"S_{ij} = \frac{1}{\sqrt{d_k}} \sum_{c} Q_{ic} K_{jc} \quad\text{where } j \le i")
    'S[i,j] = 1/√d_k Σ_c Q[i,c] K[j,c]   where j ≤ i'
    >>> unicode_math(r"(W_Q)_{ac} + (W_Q^{(h)})_{ac}"), unicode_math(r"\exp(x)_{i} P^{(h)}_{ij}")
    ('W_Q[a,c] + W_Q^(h)[a,c]', 'exp(x)[i] P^(h)[i,j]')
    >>> unicode_math(r"dS = P \circ (dP - D \mathbf{1}^{\top})"), unicode_math(r"\frac{e^{S_{ij}}}{a + b}")
    ('dS = P ∘ (dP - D 𝟏ᵀ)', 'e^S[i,j]/(a + b)')
    """
    reader = _Reader([m.groups() for m in _TOKEN.finditer(latex)], labels)
    out = reader.until(None)
    out = re.sub(r"(?<! ) {2}(?! )", " ", re.sub(r" {3,}", "   ", out))
    out = re.sub(r"(?<=[(\[⟨]) +| +(?=[)\]⟩])", "", out).strip()
    return NAME_IN_BRACKETS.sub(r"\1[", out)


def is_simple(body: str) -> bool:
    """Whether a piece of text can stand beside a slash, under a root or as an exponent without brackets.

    >>> is_simple("Q[i,c]"), is_simple("(a + b)"), is_simple("a b")
    (True, True, False)
    """
    depth = 0
    for c in body:
        depth += (c in "([") - (c in ")]")
        if not depth and c in " +-·/∘":
            return False
    return True


class _Reader:
    """Reads the tokens of one formula from left to right."""

    def __init__(self, tokens: list[tuple[str | None, ...]], labels: bool) -> None:
        self.tokens = tokens
        self.labels = labels
        self.at = 0

    def until(self, closing: str | None) -> str:
        r"""Everything up to a closing brace or ``\right``, which is left where it stands."""
        out = ""
        while self.at < len(self.tokens):
            macro, special, space, char = self.tokens[self.at]
            if closing is not None and closing in (macro, special):
                return out
            self.at += 1
            if special in ("_", "^"):
                out = self.below(out) if special == "_" else self.above(out)
            elif special == "{":
                out += self.braced()
            else:
                out += char or (" " if space else "") or (self.macro(macro) if macro else "")
        if closing is not None:
            raise InputValueError(f"a formula ends before {closing!r}")
        return out

    def braced(self) -> str:
        body = self.until("}")
        self.at += 1
        return body

    def argument(self) -> str:
        """One argument of a macro: a group, a macro or a character."""
        while self.tokens[self.at][2] is not None:
            self.at += 1
        macro, special, _, char = self.tokens[self.at]
        self.at += 1
        return self.braced().strip() if special == "{" else char or self.macro(macro or "")

    def below(self, out: str) -> str:
        """A subscript: joined for a large operator, a size or a label; brackets with commas for indices."""
        start = self.at
        body = self.argument()
        typed = all(t[0] is None for t in self.tokens[start : self.at])
        following = [t[3] or t[1] for t in self.tokens[self.at : self.at + 2]]
        label = (
            self.labels
            or (following in ([")", "_"], [")", "^"]) and not out.endswith(")"))
            or (len(body) == 1 and body.islower() and body not in INDICES)
        )
        base = re.search(r"[^\W\d_]*$", out.rstrip("'"))
        if out.endswith(LARGE):
            return f"{out}_{body}" if is_simple(body) and "," not in body else f"{out}_({body})"
        named = re.fullmatch(r"[A-Z]\w*|\d+", body) or "×" in body or (not typed and body.isalpha())
        if (base and base[0] in SIZES) or named or label:
            return f"{out}_{body}"
        if re.fullmatch(r"[a-z]'*([a-z]'*)+", body) and typed:
            body = ",".join(re.findall(r"[a-z]'*", body))
        return f"{out}[{body}]"

    def above(self, out: str) -> str:
        """A superscript: raised where Unicode has it, otherwise behind a caret."""
        body = self.argument()
        if body in RAISED:
            return out + RAISED[body]
        if re.fullmatch(r"\(.*\)ᵀ", body):
            return f"{out}^{body}"
        return out + "^" + (body if is_simple(body) else f"({body})")

    def macro(self, name: str) -> str:
        if name == "frac":
            over, under = self.argument(), self.argument()
            kept = is_simple(over) or not re.search(r" [+∘-] |^-", over)
            return f"{over if kept else f'({over})'}/{under if is_simple(under) else f'({under})'}"
        if name == "sqrt":
            body = self.argument()
            return "√" + (body if is_simple(body) else f"({body})")
        if name == "underset":  # a shape, which text says on a line of its own
            self.argument()
            return self.argument()
        if name in ACCENTS:
            return self.argument() + ACCENTS[name]
        if name in UPRIGHT:
            body = self.argument() if name != "text" else self.spaced()
            signs: Mapping[int, str] = {"mathcal": SCRIPT, "mathbf": BOLD}.get(name, {})
            return body.translate(signs)
        if name == "left":
            opening = self.delimiter()
            body = self.until("right").strip()
            self.at += 1
            return opening + body + self.delimiter()
        if name not in SIGNS:
            raise InputValueError(f"the formula has the macro {name!r}, which has no sign in text")
        return SIGNS[name]

    def spaced(self) -> str:
        r"""An argument of ``\text``, with its spaces."""
        self.at += 1
        return self.braced()

    def delimiter(self) -> str:
        macro, _, _, char = self.tokens[self.at]
        self.at += 1
        return "" if char == "." else char or SIGNS[macro or ""]
