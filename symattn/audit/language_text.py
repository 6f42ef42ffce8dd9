"""Formulas as short plain text, for reports: what a page says, without its typesetting."""

from __future__ import annotations

from symattn.audit.language_nodes import Apply, Array, Gap, Name, Node, Number

_SIGNS = {"times": " × ", "dot": " · ", "star": " * ", "hadamard": " ⊙ ", "matmul": " @ ", "juxtaposed": " ", "divide": " / "}
_TIGHT = frozenset({"sum", "neg", "divide", *_SIGNS})


def plain_text(node: Node) -> str:
    r"""The formula in a line.

    >>> from symattn.audit.language import parse
    >>> plain_text(parse(r"\text{softmax}\left(\frac{QK^T}{\sqrt{d_k}}\right)V - 2"))
    'softmax(Q Kᵀ / √d_k) V - 2'
    """
    if isinstance(node, Number):
        return node.text + "%" * node.percent + "…" * node.cut
    if isinstance(node, Name):
        return node.text + _lowered(list(map(str, node.index)))
    if isinstance(node, Gap):
        return "…"
    if isinstance(node, Array):
        return "[" + ", ".join(map(plain_text, node.items)) + "]"
    return _apply(node)


def _apply(node: Apply) -> str:
    op, parts = node.op, [plain_text(a) for a in node.args]
    if op == "sum":
        text = parts[0]
        for a, p in zip(node.args[1:], parts[1:], strict=True):
            negative = isinstance(a, Apply) and a.op == "neg"
            text += f" - {p[1:]}" if negative else f" + {p}"
        return text
    if op == "neg":
        return f"-{_held(node.args[0], parts[0])}"
    if op == "degrees":
        return f"{_base(node.args[0], parts[0])}°"
    if op == "braced":
        return parts[0]
    if op == "group":
        return f"({parts[0]})"
    if op in _SIGNS:
        return _held(node.args[0], parts[0]) + _SIGNS[op] + _held(node.args[1], parts[1], right=op == "divide")
    if op == "transpose":
        return f"{_base(node.args[0], parts[0])}ᵀ"
    if op == "power":
        return f"{_base(node.args[0], parts[0])}^{_base(node.args[1], parts[1])}"
    if op == "call:sqrt":
        return f"√{parts[0]}" if isinstance(node.args[0], (Number, Name)) else f"√({parts[0]})"
    if op == "call:abs":
        return f"|{parts[0]}|"
    if op == "index":
        return f"{_base(node.args[0], parts[0])}{_lowered(parts[1:])}"
    if op in ("bigsum", "bigprod"):
        return f"{'∑' if op == 'bigsum' else '∏'} {parts[0]}"
    options = [f"{name}={plain_text(value)}" for name, value in node.options if op.startswith("call:")]
    return f"{op.partition(':')[2] or op}({', '.join(parts + options)})"


def _lowered(index: list[str]) -> str:
    """An index, so that it is read again as what it is."""
    return "" if not index else "_" + index[0] if len(index) == 1 else "_{" + ",".join(index) + "}"


def _base(node: Node, text: str) -> str:
    """What something is raised on or written after."""
    loose = isinstance(node, Apply) and (node.op in ("call:sqrt", "power") or node.op in _TIGHT)
    return f"({text})" if loose else text


def _held(node: Node, text: str, right: bool = False) -> str:
    """A part with brackets where it would read wrong without."""
    low = isinstance(node, Apply) and (node.op == "sum" or (right and node.op in _TIGHT))
    return f"({text})" if low else text
