r"""LaTeX formulas as one line of Unicode text: ``\frac{Q K^{\top}}{\sqrt{d_k}}`` becomes ``Q Kᵀ/√d_k``.

Only the mathematics that symattn itself writes is understood; an unknown macro is an error, so that no formula is ever shown
with a piece missing. Subscripts become brackets, as in code: ``R_{ij}`` is ``R[i,j]``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from symattn.errors import InputValueError

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "varepsilon": "ε", "epsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ",
    "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "upsilon": "υ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ",
    "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ", "Upsilon": "Υ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
}  # fmt: skip
SIGNS: Mapping[str, str] = {
    **GREEK,
    "cdot": "·", "times": "×", "circ": "∘", "odot": "⊙", "oplus": "⊕", "le": "≤", "ge": "≥", "lt": "<", "gt": ">", "ne": "≠",
    "approx": "≈", "infty": "∞", "ell": "ℓ", "quad": "   ", "qquad": "      ", "thinspace": " ", ",": " ", ";": " ", ":": " ", " ": " ",
    "in": "∈", "to": "→", "mapsto": "↦", "land": "∧", "lor": "∨", "neg": "¬", "dots": "…", "ldots": "…", "cdots": "⋯", "vdots": "⋮",
    "sum": "Σ", "prod": "Π", "max": "max", "min": "min", "exp": "exp", "log": "log", "ln": "ln", "tanh": "tanh", "sinh": "sinh",
    "cosh": "cosh", "sin": "sin", "cos": "cos", "tan": "tan", "bmod": " mod ", "lvert": "|", "rvert": "|", "lfloor": "⌊",
    "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉", "langle": "⟨", "rangle": "⟩", "top": "ᵀ", "_": "_", "{": "{", "}": "}", "!": "",
    "mid": "|", "partial": "∂", "prime": "'", "colon": ":", "star": "*", "ast": "*", "sim": "~", "pm": "±", "{,}": ",",
}  # fmt: skip
WRAPPERS = frozenset({"mathrm", "operatorname", "text", "mathbf", "mathit", "mathcal", "textbf", "boldsymbol", "mathsf"})
OPERATORS = frozenset("ΣΠ")
RAISED: Mapping[str, str] = {"2": "²", "3": "³", "ᵀ": "ᵀ", "-1": "⁻¹"}

_TOKEN = re.compile(r"\\([A-Za-z]+|.)|([{}_^&])|(\s+)|([^\\{}_^&\s])", re.DOTALL)


def unicode_math(latex: str) -> str:
    r"""The formula as text.

    Raises
    ------
    InputValueError
        On a macro that is not in the table.

    >>> unicode_math(r"S_{ij} = \frac{1}{\sqrt{d_{k}}} \sum_{c} Q_{ic} K_{jc} \quad\text{where } j \le i")
    'S[i,j] = 1/√d_k Σ_c Q[i,c] K[j,c]   where j ≤ i'
    >>> unicode_math(r"dS = P \circ (dP - D \mathbf{1}^{\top})"), unicode_math(r"\frac{e^{S_{ij}}}{a + b}")
    ('dS = P ∘ (dP - D 1ᵀ)', 'e^S[i,j]/(a + b)')
    """
    reader = _Reader([m.groups() for m in _TOKEN.finditer(latex)])
    out = reader.group(None)
    return re.sub(r"(?<=\S) (?= \S)|(?<=\() +| +(?=\))", "", _spaces(out)).strip()


def _spaces(text: str) -> str:
    return re.sub(r" {4,}", "   ", re.sub(r"(?<! ) {2}(?! )", " ", text))


def _simple(body: str) -> bool:
    """Whether a piece can stand beside a slash or under a root without brackets."""
    depth = 0
    for c in body:
        depth += (c in "([") - (c in ")]")
        if not depth and c in " +-·/∘":
            return False
    return True


class _Reader:
    """Reads the tokens of one formula from left to right."""

    def __init__(self, tokens: list[tuple[str | None, ...]]) -> None:
        self.tokens = tokens
        self.at = 0

    def group(self, closing: str | None) -> str:
        out = ""
        while self.at < len(self.tokens):
            macro, special, space, char = self.tokens[self.at]
            if special == closing and closing is not None:
                self.at += 1
                return out
            if macro is not None and macro == closing == "right":
                return out
            out = self.append(out, macro, special, space, char)
        if closing is not None:
            raise InputValueError(f"a formula ends inside a group, which {closing!r} would close")
        return out

    def append(self, out: str, macro: str | None, special: str | None, space: str | None, char: str | None) -> str:
        self.at += 1
        if space is not None:
            return out + " "
        if char is not None:
            return out + char
        if special == "{":
            return out + self.group("}")
        if special == "_":
            return self.below(out)
        if special == "^":
            return self.above(out)
        if special == "&":
            return out
        assert macro is not None
        return out + self.macro(macro)

    def argument(self) -> str:
        while self.tokens[self.at][2] is not None:
            self.at += 1
        macro, special, space, char = self.tokens[self.at]
        self.at += 1
        if special == "{":
            return self.group("}")
        return char if char is not None else self.macro(macro or "")

    def below(self, out: str) -> str:
        raw = self.tokens[self.at]
        start = self.at
        body = self.argument().strip()
        if out and (out[-1] in OPERATORS or out.endswith(("max", "min", "rowmax"))):
            return f"{out}_{body}" if _simple(body) and "," not in body else f"{out}_({body})"
        separate = raw[1] == "{" and re.fullmatch(r"[a-z]{2,}'*", body) and self._letters(start)
        if separate:
            return out + "[" + ",".join(re.findall(r"[a-z]'*", body)) + "]"
        word = re.fullmatch(r"[A-Za-zα-ωΑ-Ω]+", body) and not re.fullmatch(r"[ijcekghbpafuw]'*", body)
        if out[-1:] and (word or re.fullmatch(r"\d+", body)):
            return f"{out}_{body}"
        return f"{out}[{body}]"

    def _letters(self, start: int) -> bool:
        """Whether the subscript was typed as letters side by side and not as one word."""
        return all(t[0] is None for t in self.tokens[start : self.at])

    def above(self, out: str) -> str:
        body = self.argument().strip()
        if body in RAISED:
            return out + RAISED[body]
        if body.endswith("ᵀ") and body[:-1].startswith("("):
            return out + "^" + body[:-1] + "ᵀ"
        if out.endswith("e") and not out.endswith("de"):
            return out + "^" + (body if _simple(body) else f"({body})")
        return out + "^" + (body if _simple(body) or body.startswith("(") and body.endswith(")") else f"({body})")

    def macro(self, name: str) -> str:
        if name == "frac":
            over, under = self.argument().strip(), self.argument().strip()
            return f"{self.held(over, product=True)}/{self.held(under)}"
        if name == "sqrt":
            return "√" + self.held(self.argument().strip())
        if name == "dot":
            return self.argument() + "\u0307"
        if name in WRAPPERS:
            return self.argument()
        if name == "left":
            _, _, _, opening = self.tokens[self.at]
            opened = opening if opening is not None else SIGNS[self.tokens[self.at][0] or ""]
            self.at += 1
            body = self.group("right")
            self.at += 1
            macro, _, _, closing = self.tokens[self.at]
            self.at += 1
            return opened.replace(".", "") + body.strip() + (closing if closing is not None else SIGNS[macro or ""]).replace(".", "")
        if name in ("begin", "end"):
            return self.environment()
        if name == "\\":
            return "; "
        if name not in SIGNS:
            raise InputValueError(f"the formula has the macro {name!r}, which has no sign in text")
        return SIGNS[name]

    def environment(self) -> str:
        name = self.argument()
        return {"cases": "{", "bmatrix": "[", "pmatrix": "("}.get(name, "") if self.tokens[self.at - 1] else ""

    @staticmethod
    def held(body: str, product: bool = False) -> str:
        return body if _simple(body) or (product and not re.search(r" [+-] ", body)) else f"({body})"
