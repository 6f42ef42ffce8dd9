"""A report as one HTML file without a network: the frame that all such pages share."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["html_page"]


def html_page(title: str, style: str, parts: Iterable[str], policy: str) -> str:
    r"""The text of a page that loads nothing, readable on a phone, light and dark.

    Parameters
    ----------
    title, parts
        HTML; what is text in it has been escaped. Empty parts are left out.
    style
        The style sheet.
    policy
        The content security policy.

    >>> html_page("a", "p {}", ["<p>b</p>", ""], "default-src 'none'").endswith("<body><main>\n<p>b</p>\n</main></body></html>\n")
    True
    """
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f"<title>{title}</title>\n<style>\n{style}</style></head>\n"
    )
    return head + "<body><main>\n" + "\n".join(p for p in parts if p) + "\n</main></body></html>\n"
