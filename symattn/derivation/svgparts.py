"""A picture as SVG made fit to stand in a page: nothing that runs, loads or needs a style sheet is left in it.

A picture comes from a program such as matplotlib, which writes styles as attributes of text; a page whose content security policy
allows no such styles takes them as presentation attributes instead.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from symattn.errors import FileFormatError


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SHAPES = _names(
    "svg g defs path rect line circle ellipse polyline polygon text tspan title desc use clipPath linearGradient radialGradient "
    "stop marker symbol pattern mask"
)
_STYLES = _names(
    "fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-linecap stroke-linejoin stroke-dasharray "
    "stroke-dashoffset stroke-miterlimit opacity font-family font-size font-weight font-style text-anchor stop-color "
    "stop-opacity dominant-baseline clip-path clip-rule visibility"
)
_ATTRIBUTES = _STYLES | _names(
    "id class d x y x1 y1 x2 y2 cx cy r rx ry dx dy width height points transform viewBox preserveAspectRatio offset "
    "gradientUnits gradientTransform clipPathUnits markerWidth markerHeight markerUnits refX refY orient href version role "
    "patternUnits maskUnits textLength lengthAdjust"
)
_SAFE = re.compile(r"(?!.*(?:url\((?!['\"]?#)|javascript:|expression\())[^<>]*\Z", re.IGNORECASE | re.DOTALL)


def inline_svg(svg: str, says: str, prefix: str = "") -> str:
    """The picture as one ``<svg>`` element, named for readers who do not see it.

    Parameters
    ----------
    svg
        SVG as text, with or without an XML declaration. Document types and entities are refused.
    says
        What it shows; becomes its accessible name.
    prefix
        Goes before every ``id`` in it, so that several pictures stand in one page.

    Raises
    ------
    FileFormatError
        When it is no SVG.

    >>> inline_svg('<svg viewBox="0 0 1 1"><script>x</script><path style="fill: red" d="M0 0" onclick="x"/></svg>', "a dot")
    '<svg viewBox="0 0 1 1" role="img" aria-label="a dot"><path fill="red" d="M0 0" /></svg>'
    """
    text = re.sub(r"\A\s*(?:<\?xml[^>]*\?>)?\s*(?:<!DOCTYPE\s[^\[>]*>)?", "", svg)
    if "<!" in re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL):
        raise FileFormatError("a picture is SVG without a document type of its own, entities and CDATA")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 - nothing that declares an entity gets here
    except ElementTree.ParseError as why:
        raise FileFormatError(f"a picture is no SVG: {why}") from None
    _clean(root, prefix)
    if root.tag != "svg":
        raise FileFormatError(f"a picture is an <svg> element, got <{root.tag}>")
    if "viewBox" not in root.attrib and (size := _size(root)):
        root.set("viewBox", f"0 0 {size[0]} {size[1]}")
    for side in ("width", "height"):
        root.attrib.pop(side, None)  # the style sheet says how wide, and the view box how high
    root.set("role", "img")
    root.set("aria-label", says)
    root.tail = None
    return ElementTree.tostring(root, encoding="unicode")


def _size(root: ElementTree.Element) -> tuple[str, str] | None:
    found = [re.match(r"[\d.]+", root.get(side, "")) for side in ("width", "height")]
    return (found[0][0], found[1][0]) if found[0] and found[1] else None


def _clean(e: ElementTree.Element, prefix: str) -> None:
    e.tag = str(e.tag).rpartition("}")[2]
    attributes = {name.rpartition("}")[2]: value for name, value in e.attrib.items()}
    styles = dict(s.split(":", 1) for s in attributes.pop("style", "").split(";") if ":" in s)
    kept = {}
    for name, value in ({k.strip(): v.strip() for k, v in styles.items()} | attributes).items():
        if name not in _ATTRIBUTES or not _SAFE.match(value) or (name == "href" and not value.startswith("#")):
            continue
        kept[name] = _renamed(name, value, prefix)
    e.attrib.clear()
    e.attrib.update(kept)
    for child in list(e):
        if str(child.tag).rpartition("}")[2] in _SHAPES:
            _clean(child, prefix)
        else:
            e.remove(child)
    if e.tag not in ("text", "tspan", "title", "desc"):
        e.text = None
    for child in e:
        if e.tag not in ("text", "tspan"):
            child.tail = None


def _renamed(name: str, value: str, prefix: str) -> str:
    if not prefix:
        return value
    if name == "id":
        return prefix + value
    return "#" + prefix + value[1:] if name == "href" else re.sub(r"url\((['\"]?)#", rf"url(\1#{prefix}", value)
