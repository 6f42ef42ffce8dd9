"""What commands of LaTeX, signs of Unicode and words of plain text mean in a formula: tables, and nothing else."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """The words of a text as a set.

    >>> sorted(word_set("b a"))
    ['a', 'b']
    """
    return frozenset(text.split())


FUNCTIONS = {
    "exp": "exp", "log": "log", "ln": "log", "sqrt": "sqrt", "softmax": "softmax", "max": "max", "min": "min", "sum": "sum",
    "tanh": "tanh",
    "sin": "sin", "cos": "cos", "tan": "tan", "det": "det", "tr": "trace", "trace": "trace",
    "argmax": "argmax", "sigmoid": "sigmoid", "relu": "relu", "abs": "abs", "mean": "mean", "norm": "norm", "dot": "dot",
    "matmul": "matmul", "mm": "matmul", "transpose": "transpose", "array": "array", "tensor": "array", "matrix": "array",
    "asarray": "array", "concat": "concat", "concatenate": "concat", "diag": "diag", "outer": "outer", "round": "array",
    "float": "array",
    "log_softmax": "log_softmax", "logsumexp": "logsumexp", "lse": "logsumexp", "log2": "log2", "log10": "log10",
}  # fmt: skip
"""Functions by the words that people use for them."""


KEEPING = word_set("numpy tolist item detach clone float double round squeeze unsqueeze cpu contiguous")
"""Methods of arrays after which the numbers are the same."""


SIGNS = {
    "+": "PLUS", "-": "MINUS", "−": "MINUS", "–": "MINUS", "×": "TIMES", "✕": "TIMES", "⨯": "TIMES", "·": "CDOT", "⋅": "CDOT",
    "∙": "CDOT", "•": "CDOT", "*": "STAR", "∗": "STAR", "@": "AT", "/": "DIV", "÷": "DIV", "∕": "DIV", "⁄": "DIV",
    "⊙": "ODOT", "∘": "ODOT", "◦": "ODOT", "(": "LPAR", ")": "RPAR", "[": "LSQ", "]": "RSQ", ",": "COMMA", ";": "SEMI",
    "&": "AMP", "{": "LBRACE", "}": "RBRACE", "⟨": "LANGLE", "⟩": "RANGLE", "=": "EQ", "≔": "EQ", "≡": "EQ", "≈": "APPROX",
    "≃": "APPROX", "≅": "APPROX", "≒": "APPROX", "↦": "MAPS", "→": "ARROW", "⟶": "ARROW", "➜": "ARROW", "➔": "ARROW",
    "⟼": "MAPS", "⇒": "IMPLIES", "⟹": "IMPLIES", "∴": "IMPLIES", "<": "ORDER", ">": "ORDER", "≤": "ORDER", "≥": "ORDER",
    "≠": "ORDER", "…": "ELLIPSIS", "⋯": "ELLIPSIS", "⋮": "ELLIPSIS", "⋱": "ELLIPSIS", "√": "SQRT", "∑": "BIGSUM", "Σ": "BIGSUM",
    "∏": "BIGSUM", "°": "DEGREE",
    "ᵀ": "TRANSPOSE", "⊤": "TRANSPOSE", "∥": "NORM", "‖": "NORM", "|": "BAR", "^": "CARET", "_": "SUB", ":": "COLON",
}  # fmt: skip
"""Single characters, as kinds of tokens."""

DIGRAPHS = {
    "**": "CARET", ":=": "EQ", "==": "EQ", "~=": "APPROX", "=~": "APPROX", "->": "ARROW", "=>": "IMPLIES", "<=": "ORDER",
    ">=": "ORDER", "!=": "ORDER", "||": "NORM", ".T": "TRANSPOSE",
}  # fmt: skip
"""Two characters that stand together."""

COMMANDS = {
    "times": "TIMES", "cdot": "CDOT", "bullet": "CDOT", "ast": "STAR", "odot": "ODOT", "circ": "ODOT", "div": "DIV",
    "langle": "LANGLE", "rangle": "RANGLE", "lbrack": "LSQ", "rbrack": "RSQ", "lVert": "NORM", "rVert": "NORM", "Vert": "NORM",
    "|": "NORM", "lvert": "BAR", "rvert": "BAR", "vert": "BAR", "{": "LSQ", "}": "RSQ", "approx": "APPROX", "simeq": "APPROX",
    "cong": "APPROX", "sim": "APPROX", "doteq": "APPROX", "equiv": "EQ", "coloneqq": "EQ", "triangleq": "EQ", "mapsto": "MAPS",
    "longmapsto": "MAPS", "to": "ARROW", "rightarrow": "ARROW", "longrightarrow": "ARROW", "Rightarrow": "IMPLIES",
    "implies": "IMPLIES", "Longrightarrow": "IMPLIES", "iff": "IMPLIES", "therefore": "IMPLIES", "le": "ORDER", "leq": "ORDER",
    "ge": "ORDER", "geq": "ORDER", "lt": "ORDER", "gt": "ORDER", "neq": "ORDER", "ne": "ORDER", "ll": "ORDER", "gg": "ORDER",
    "in": "ORDER", "ldots": "ELLIPSIS", "dots": "ELLIPSIS", "cdots": "ELLIPSIS", "vdots": "ELLIPSIS", "ddots": "ELLIPSIS",
    "dotsc": "ELLIPSIS", "dotsb": "ELLIPSIS", "sum": "BIGSUM", "prod": "BIGSUM", "degree": "DEGREE",
    "underbrace": "BRACED", "overbrace": "BRACED", "sqrt": "SQRT", "frac": "FRAC", "dfrac": "FRAC", "tfrac": "FRAC",
    "cfrac": "FRAC", "nicefrac": "FRAC", "\\": "ROW", "cr": "ROW", "newline": "ROW", "quad": "QUAD", "qquad": "QUAD",
    "top": "TRANSPOSE", "intercal": "TRANSPOSE", "colon": "COLON",
}  # fmt: skip
"""Commands of LaTeX, as kinds of tokens."""

ORDERS = {
    "<": "LESS", "lt": "LESS", "≪": "LESS", "ll": "LESS", ">": "MORE", "gt": "MORE", "≫": "MORE", "gg": "MORE",
    "≤": "LESS EQ", "<=": "LESS EQ", "le": "LESS EQ", "leq": "LESS EQ", "≥": "MORE EQ", ">=": "MORE EQ", "ge": "MORE EQ",
    "geq": "MORE EQ", "≠": "UNEQUAL", "!=": "UNEQUAL", "ne": "UNEQUAL", "neq": "UNEQUAL",
}  # fmt: skip
"""Signs of inequalities: which of two values is larger."""

BLANK_COMMANDS = word_set(
    "left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr middle , ; ! : > displaystyle "
    "textstyle scriptstyle limits nolimits nonumber notag hfill strut centering small normalsize large boxed cancel "
    "underline mathstrut ensuremath hline"
) | {" ", "\n"}  # fmt: skip
"""Commands that change how a formula looks and not what it says."""

DROPPED_COMMANDS = word_set("label tag hspace vspace phantom hphantom vphantom color ref eqref cite footnote textcolor")
"""Commands that go away with their argument."""

FONTS = word_set("mathbf mathrm mathit mathsf mathtt mathcal mathbb mathfrak boldsymbol bm vec pmb mathnormal")
"""Commands that set their argument in another type: the argument is read as it is."""

ACCENTS = {"hat": "\u0302", "widehat": "\u0302", "tilde": "\u0303", "widetilde": "\u0303", "bar": "\u0304", "overline": "\u0304"}
"""Commands that make another name of a letter, and the sign of Unicode that does."""

TEXTS = word_set("text textbf textit textrm textsf texttt mbox operatorname operatorname* emph textsc")
"""Commands whose argument is words."""

MATRICES = word_set("matrix bmatrix pmatrix smallmatrix Bmatrix vmatrix Vmatrix bsmallmatrix psmallmatrix array")
"""Environments that hold a matrix, or for ``vmatrix`` its determinant."""

ROWS = word_set(
    "aligned align alignat gathered split align* gather gather* alignedat equation equation* multline eqnarray "
    "multline* eqnarray* alignat* flalign flalign* displaymath math subequations"
)  # fmt: skip
"""Environments of rows that are formulas."""

GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta", "ι": "iota",
    "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau",
    "υ": "upsilon", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "Δ": "Delta", "Γ": "Gamma", "Θ": "Theta", "Λ": "Lambda",
    "Ξ": "Xi", "Π": "Pi", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega", "ℓ": "ell",
}  # fmt: skip
"""Letters that LaTeX has commands for."""

SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉ₖₙₘᵢⱼₐₑₓᵥₚₜₛₗₕ₊₋", "0123456789knmijaexvptslh+-", strict=True))
SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿˣ", "0123456789+-nx", strict=True))
