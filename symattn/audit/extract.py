"""A draft of a claims file from an article: what it gives, computes and prints, to be completed by hand.

Every chain that ends in printed numbers becomes a claim of an expression; what the page copies from an earlier result is written
as that result's name. What is not in the draft stands there as a comment, with its line.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from symattn.audit.article import Article
from symattn.audit.language_nodes import Apply, Array, Gap, Name, Node, Number, is_literal
from symattn.audit.language_text import plain_text
from symattn.audit.provenance import signed
from symattn.audit.reading import ReadArticle
from symattn.audit.said import literal_value, literals
from symattn.audit.statements import Chain
from symattn.errors import SymattnError

_RESERVED = frozenset({"half_width"})


def draft(found: ReadArticle) -> str:
    """The text of a claims file.

    Parameters
    ----------
    found
        An audited article.

    >>> from symattn.audit.reading import audit_article
    >>> print(draft(audit_article("q = [1, 2] and k = [3, 4]. The score is q · k = 11.", "a page")))
    title = "a page"
    <BLANKLINE>
    [inputs]
    q = ["1", "2"]  # line 1
    k = ["3", "4"]  # line 1
    <BLANKLINE>
    [let]
    value_1 = "q · k"
    <BLANKLINE>
    [claims]
    value_1 = "11"  # line 1
    <BLANKLINE>
    """
    d = _Draft(found.article)
    for chain in found.chains:
        d.take(chain)
    title = json.dumps(found.audit.title, ensure_ascii=False)
    out = [f"title = {title}"]
    for name, rows in (("inputs", d.inputs), ("let", d.let), ("claims", d.claims)):
        if rows:
            out += ["", f"[{name}]", *rows]
    if not d.claims:
        out += ["", "[claims]", "# nothing was found that the page computes; write here what it prints, such as weights = [...]"]
    notes = [f"# line {u.place}: {_comment(u.name)}: {_comment(u.reason)}" for u in found.audit.unread]
    if notes or d.left:
        out += ["", "# not in this draft:", *d.left, *notes]
    return "\n".join(out) + "\n"


def _comment(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


@dataclass
class _Draft:
    """The rows of the file as they are found."""

    article: Article
    inputs: list[str] = field(default_factory=list)
    let: list[str] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)
    """The names of the file, by what the page calls them."""
    printed: list[tuple[tuple[str, ...], str, bool]] = field(default_factory=list)
    """Texts of printed results, the name of each, and whether it is a vector."""
    taken: set[str] = field(default_factory=set)

    def take(self, chain: Chain) -> None:
        """Add a chain."""
        nodes = [s.node for s in chain.sides]
        target = nodes[0] if isinstance(nodes[0], Name) else None
        results = [n for n in nodes if n is not None and is_literal(n)]
        formulas = [n for n in nodes[1 if target is not None else 0 :] if n is not None and not is_literal(n)]
        line = self.article.line(chain.start)
        if not results:
            return
        last = results[-1]
        try:
            literal_value(last)
        except SymattnError as error:
            self.left.append(f"# line {line}: {_comment(plain_text(last))[:80]}: {_comment(str(error))}")
            return
        usable = [n for n in formulas if self._closed(n)]
        if usable:
            self._claim(target, usable[0], last, line)
        elif target is not None and not formulas:
            self._input(target, last, line)
        else:
            self.left.append(f"# line {line}: {_comment(plain_text(last))[:80]}: of something that the draft cannot name")

    def _closed(self, node: Node) -> bool:
        """Whether all names of a formula are names of the file."""
        if isinstance(node, Name):
            return plain_text(node) in self.known or node.text in ("e", "pi")
        if isinstance(node, Gap):
            return False
        if isinstance(node, Apply) and node.op.startswith("named:"):
            return False
        parts = node.items if isinstance(node, Array) else node.args if isinstance(node, Apply) else ()
        return all(map(self._closed, parts))

    def _input(self, target: Name, value: Node, line: int) -> None:
        texts = tuple(x.text for x in literals(value) if x is not None)
        for known, name, is_vector in self.printed:
            if known == texts and is_vector:
                self.known[plain_text(target)] = name
                return
        name = self._named(target)
        if name in self.taken_inputs():
            self.left.append(f"# line {line}: {name} is given again, as {_comment(plain_text(value))[:80]}")
            return
        self.inputs.append(f"{name} = {_array(value)}  # line {line}")
        self.known[plain_text(target)] = name

    def taken_inputs(self) -> set[str]:
        """The names that are inputs."""
        return {row.partition(" = ")[0] for row in self.inputs}

    def _claim(self, target: Name | None, formula: Node, value: Node, line: int) -> None:
        try:
            text = plain_text(self._with_names(formula))
        except SymattnError:
            return
        name = self._named(target) if target is not None else ""
        if not name or name in self.taken:
            name = f"value_{len(self.claims) + 1}"
        self.taken.add(name)
        self.let.append(f"{name} = {json.dumps(text, ensure_ascii=False)}")
        self.claims.append(f"{name} = {_array(value)}  # line {line}")
        if target is not None:
            self.known[plain_text(target)] = name
        self.printed.append((tuple(x.text for x in literals(value) if x is not None), name, isinstance(value, Array)))

    def _named(self, target: Name) -> str:
        """A name of the page as one of the file."""
        bare = re.sub(r"\W+", "_", plain_text(target).replace("^", "_").replace("'", "_prime"), flags=re.ASCII).strip("_")
        if not bare or bare[0].isdigit() or bare in _RESERVED:
            bare = f"value_{bare}".rstrip("_")
        return bare

    def _with_names(self, node: Node) -> Node:
        """The formula in names of the file: copies of results become their names."""
        if isinstance(node, Array) and is_literal(node):
            texts = tuple(x.text for x in literals(node) if x is not None)
            for known, name, is_vector in reversed(self.printed):
                if is_vector and known == texts:
                    return Name(name, node.start, node.end)
            return node
        places = self._in_order(node)
        return self._renamed(node, places)

    def _in_order(self, node: Node) -> dict[int, str]:
        """Numbers of a formula that repeat all elements of a vector in order, as elements of its name."""
        numbers = [x for x in signed(node) if x.is_decimal]
        for texts, name, is_vector in reversed(self.printed):
            if is_vector and all("." in t for t in texts) and [x.text for x in numbers] == list(texts):
                return {x.node.start: f"{name}[{k}]" for k, x in enumerate(numbers)}
        return {}

    def _renamed(self, node: Node, places: dict[int, str]) -> Node:
        if isinstance(node, Number):
            return Name(places[node.start], node.start, node.end) if node.start in places else node
        if isinstance(node, Name):
            return Name(self.known.get(plain_text(node), node.text), node.start, node.end)
        if isinstance(node, Array):
            if is_literal(node):
                return self._with_names(node)
            return Array(tuple(self._renamed(x, places) for x in node.items), node.start, node.end, node.depth)
        if isinstance(node, Apply):
            args = tuple(self._renamed(x, places) for x in node.args)
            op = "times" if node.op == "juxtaposed" else node.op
            return Apply(op, args, node.start, node.end, node.depth, node.options)
        return node


def _array(node: Node) -> str:
    """A literal as TOML writes it."""
    if isinstance(node, Array):
        return "[" + ", ".join(_array(x) for x in node.items) + "]"
    found = literals(node)[0]
    return '"..."' if found is None else json.dumps(found.text, ensure_ascii=False)
