"""Formulas of an article as MathML, made from their trees: each number is marked, and a wrong one has the right below it.

Only elements of MathML come out; all text of the page goes through escaping.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from symattn.audit.alignment import plain
from symattn.audit.language_nodes import Apply, Array, Gap, Name, Node, Number
from symattn.audit.outcome import Mark
from symattn.audit.statements import Chain, Side
from symattn.audit.writers import words

_RELATIONS = {"EQ": "=", "APPROX": "≈", "MAPS": "↦", "ARROW": "→", "ORDER": "∈", "LESS": "<", "MORE": ">", "LESS EQ": "≤",
              "MORE EQ": "≥", "UNEQUAL": "≠"}  # fmt: skip
_SIGNS = {"times": "×", "dot": "·", "star": "∗", "hadamard": "⊙", "matmul": "@"}
_LOW = frozenset({"sum", "neg"})
_GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ϵ", "lambda": "λ", "sigma": "σ", "pi": "π",
          "theta": "θ", "mu": "μ", "tau": "τ", "eta": "η", "phi": "ϕ", "rho": "ρ", "omega": "ω"}  # fmt: skip

Marks = Mapping[int, Mark]


def chain(c: Chain, marks: Marks, source: str) -> list[str]:
    """The sides of a chain, each a ``<math>`` of its own that begins with its relation, so that lines can break there."""
    out = []
    for k, side in enumerate(c.sides):
        relation = f"<mo>{_RELATIONS[c.relations[k - 1]]}</mo>" if k else ""
        out.append(f"<math>{relation}{_side(side, marks, source)}</math>")
    return out


def _side(side: Side, marks: Marks, source: str) -> str:
    if side.node is None:
        return f"<mtext>{escape(words.plain(source[side.start : side.end]))}</mtext>"
    inner = node(side.node, marks)
    whole = marks.get(side.start)
    if whole is not None and whole.end == side.end and not isinstance(side.node, Number):
        return _wrong(f"<mrow>{inner}</mrow>", whole)
    return inner


def node(n: Node, marks: Marks) -> str:
    """A formula.

    >>> from symattn.audit.language import parse
    >>> node(parse("x^2 + 1"), {})
    '<mrow><msup><mi>x</mi><mn>2</mn></msup><mo>+</mo><mn>1</mn></mrow>'
    """
    if isinstance(n, Number):
        return _number(n, marks)
    if isinstance(n, Name):
        return _name(n)
    if isinstance(n, Gap):
        return "<mo>…</mo>"
    if isinstance(n, Array):
        return _array(n, marks)
    return _apply(n, marks)


def _number(n: Number, marks: Marks) -> str:
    text = escape(n.text.replace("inf", "∞") + "%" * n.percent + "…" * n.cut)
    mark = marks.get(n.start)
    if mark is None or mark.end != n.end:
        return f"<mn>{text}</mn>"
    shown = words.kind(mark.finding)
    if mark.finding.verdict.correct:
        return f'<mn class="{shown}">{text}</mn>'
    return _wrong(f"<mn>{text}</mn>", mark)


def _wrong(inner: str, mark: Mark) -> str:
    """Something that is not right, with the right digits below."""
    f = mark.finding
    title = escape(f"{f.label}; exact {words.short(f.verdict.exact, 12)}", quote=True)
    right = escape(words.right_digits(f.verdict).removeprefix("-" if str(f.verdict.printed).startswith("-") else "\0"))
    return f'<munder class="{words.kind(f)}"><mrow title="{title}">{inner}</mrow><mn class="instead">{right}</mn></munder>'


def _name(n: Name) -> str:
    base, _, script = n.text.partition("_")
    upper = ""
    base, _, upper = base.partition("^")
    script, _, more = script.partition("^")
    shown = escape(_GREEK.get(base, base))
    tag = "mi" if len(_GREEK.get(base, base)) == 1 else "mtext"
    index = ",".join(map(str, n.index))
    lower = escape(",".join(x for x in (script, index) if x))
    inner = f"<{tag}>{shown}</{tag}>"
    upper = escape(upper or more)
    if lower and upper:
        return f"<msubsup>{inner}<mtext>{lower}</mtext><mtext>{upper}</mtext></msubsup>"
    if lower or upper:
        script_tag = "msub" if lower else "msup"
        return f"<{script_tag}>{inner}<mtext>{lower or upper}</mtext></{script_tag}>"
    return inner


def _array(n: Array, marks: Marks) -> str:
    if n.items and all(isinstance(x, Array) for x in n.items):
        rows = "".join(
            "<mtr>" + "".join(f"<mtd>{node(y, marks)}</mtd>" for y in (x.items if isinstance(x, Array) else ())) + "</mtr>"
            for x in n.items
        )
        return f"<mrow><mo>[</mo><mtable>{rows}</mtable><mo>]</mo></mrow>"
    items = '<mo separator="true">,</mo>'.join(node(x, marks) for x in n.items)
    return f'<mrow><mo stretchy="false">[</mo>{items}<mo stretchy="false">]</mo></mrow>'


def _apply(n: Apply, marks: Marks) -> str:
    parts = [node(a, marks) for a in n.args]
    if n.op == "sum":
        return f"<mrow>{_sum(n, parts, marks)}</mrow>"
    if n.op == "neg":
        return f'<mrow><mo form="prefix">−</mo>{parts[0]}</mrow>'
    if n.op == "degrees":
        return f"<mrow>{parts[0]}<mo>°</mo></mrow>"
    if n.op == "braced":
        return f"<munder>{parts[0]}<mrow>{parts[1]}</mrow></munder>" if len(parts) > 1 else parts[0]
    if n.op == "group":
        return f"<mrow><mo>(</mo>{parts[0]}<mo>)</mo></mrow>"
    if n.op in _SIGNS:
        return f"<mrow>{parts[0]}<mo>{_SIGNS[n.op]}</mo>{parts[1]}</mrow>"
    if n.op == "juxtaposed":
        return f"<mrow>{parts[0]}<mspace width='0.17em'/>{parts[1]}</mrow>"
    if n.op == "divide":
        return f"<mfrac>{''.join(f'<mrow>{node(plain(a), marks)}</mrow>' for a in n.args)}</mfrac>"
    if n.op == "power":
        return (
            f"<msup>{_grouped(n.args[0], parts[0])}<mrow>{parts[1]}</mrow></msup>"
            if not _plain(n.args[1])
            else (f"<msup>{_grouped(n.args[0], parts[0])}{parts[1]}</msup>")
        )
    if n.op == "transpose":
        return f"<msup>{_grouped(n.args[0], parts[0])}<mi>T</mi></msup>"
    if n.op == "index":
        return f"<msub>{_grouped(n.args[0], parts[0])}<mrow>{'<mo>,</mo>'.join(parts[1:])}</mrow></msub>"
    if n.op == "root":
        return f"<mroot><mrow>{parts[0]}</mrow><mrow>{parts[1]}</mrow></mroot>"
    return _called(n, parts)


def _called(n: Apply, parts: list[str]) -> str:
    name = n.op.partition(":")[2]
    if name == "sqrt":
        return f"<msqrt>{parts[0]}</msqrt>"
    if name == "abs":
        return f"<mrow><mo>|</mo>{parts[0]}<mo>|</mo></mrow>"
    if name.startswith("norm"):
        return f"<mrow><mo>‖</mo>{parts[0]}<mo>‖</mo></mrow>"
    if n.op in ("bigsum", "bigprod"):
        return f"<mrow><mo>{'∑' if n.op == 'bigsum' else '∏'}</mo>{parts[0]}</mrow>"
    if name == "array":
        return f"<mrow>{parts[0]}</mrow>"
    inner = '<mo separator="true">,</mo>'.join(parts)
    return f"<mrow><mi>{escape(name or n.op)}</mi><mo>&#x2061;</mo><mo>(</mo>{inner}<mo>)</mo></mrow>"


def _sum(n: Apply, parts: list[str], marks: Marks) -> str:
    out = [parts[0]]
    for a, p in zip(n.args[1:], parts[1:], strict=True):
        if isinstance(a, Apply) and a.op == "neg":
            out.append(f"<mo>−</mo>{node(a.args[0], marks)}")
        else:
            out.append(f"<mo>+</mo>{p}")
    return "".join(out)


def _plain(n: Node) -> bool:
    return isinstance(n, (Number, Name))


def _grouped(n: Node, shown: str) -> str:
    if isinstance(n, Apply) and (n.op in _LOW or n.op in _SIGNS or n.op in ("juxtaposed", "divide")):
        return f"<mrow><mo>(</mo>{shown}<mo>)</mo></mrow>"
    return shown
