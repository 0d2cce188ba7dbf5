"""XML and HTML read safely: no entity is expanded, no DTD loaded, nothing fetched, no huge tree built."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from lxml import etree, html  # pyright: ignore[reportAttributeAccessIssue]

from ingest.sources.base import Answer
from ingest.sources.bodies import decoded, is_html, raise_unreadable
from ingest.sources.outcomes import nonsense
from ingest.sources.words import plain, tidy

Element: TypeAlias = Any
"""An element of lxml, which has no types of its own."""
MAX_BYTES = 64 * 1024 * 1024
"""Larger payloads are no record of a paper, nor a page of them."""

_XLINK = "{http://www.w3.org/1999/xlink}href"


def parse_xml(source: str, answer: Answer) -> Element:
    """Read a whole XML body; raises the outcome of an HTML page, a plain message, or half a document."""
    body = answer.body.lstrip()
    if len(body) > MAX_BYTES:
        raise nonsense(source, f"{len(body)} bytes of XML", answer)
    if not _begins_with_a_tag(answer) or _is_page(answer):
        raise_unreadable(source, answer, "XML")
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False, huge_tree=False, recover=False
    )
    try:
        root = etree.fromstring(body, parser)
    except etree.XMLSyntaxError as error:
        if (root := _by_stray_bytes(body, parser)) is None:
            raise nonsense(source, f"XML that is broken or cut off ({error})", answer) from error
    except (ValueError, LookupError) as error:
        raise nonsense(source, f"XML that is broken or cut off ({error})", answer) from error
    if root is None:
        raise nonsense(source, "XML without an element", answer)
    return root


def _by_stray_bytes(body: bytes, parser: Any) -> Element | None:
    """Read a whole document that says UTF-8 and holds bytes of another charset, each of them replaced; else None."""
    try:
        body.decode()
    except UnicodeDecodeError:
        text = re.sub(r"^\s*<\?xml[^<>]*\?>", "", body.decode("utf-8", "replace"), count=1)
        try:
            return etree.fromstring(text.encode(), parser)
        except (etree.XMLSyntaxError, ValueError, LookupError):
            return None
    return None


def _begins_with_a_tag(answer: Answer) -> bool:
    return decoded(Answer(answer.body[:2000], content_type=answer.content_type)).lstrip()[:1] == "<"


def _is_page(answer: Answer) -> bool:
    start = Answer(answer.body[:2000], content_type=answer.content_type)
    return is_html(decoded(start))


def parse_html(answer: Answer) -> Element | None:
    """Read an HTML page as browsers would, or None where there is nothing in it."""
    text = decoded(answer)
    if not text.strip() or len(answer.body) > MAX_BYTES:
        return None
    try:
        return html.document_fromstring(text.encode(), parser=html.HTMLParser(encoding="utf-8", no_network=True))
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return None


def local(element: Element) -> str:
    """Give the name of an element without its namespace, empty for comments and the like."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def children(element: Element | None, *names: str) -> list[Element]:
    """Give the children of some names, in any namespace."""
    return [] if element is None else [child for child in element if local(child) in names]


def child(element: Element | None, *path: str) -> Element | None:
    """Follow a path of names, the first child of each; None as soon as one is missing."""
    for name in path:
        found = children(element, name)
        if not found:
            return None
        element = found[0]
    return element


def descend(element: Element | None, *names: str) -> Iterator[Element]:
    """Walk through all elements of some names below, and including, an element, in document order."""
    if element is not None:
        yield from (found for found in element.iter() if local(found) in names)


def inner(element: Element | None, *path: str) -> str:
    """Give the text of the element at a path on one line, its inline markup gone."""
    return tidy(raw(child(element, *path)))


def raw(element: Element | None, *, headings: bool = False) -> str:
    """Give the text of an element and all below it as it stands; blocks are set apart, comments left out.

    With `headings`, section titles end in a colon.
    """
    if element is None:
        return ""
    parts: list[str] = []
    _collect(element, parts, headings=headings)
    return "".join(parts)


_BLOCKS = frozenset(
    [
        "p",
        "sec",
        "title",
        "list",
        "list-item",
        "disp-formula",
        "disp-quote",
        "label",
        "td",
        "th",
        "tr",
        "div",
        "br",
        "li",
        "ul",
        "ol",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "break",
        "AbstractText",
        "fig",
        "table-wrap",
        "caption",
    ]
)
_SKIPPED = frozenset(["tex-math", "annotation", "annotation-xml", "object-id", "script", "style"])


def _collect(element: Element, parts: list[str], *, headings: bool) -> None:
    name = local(element)
    if not name and isinstance(element, etree._Entity):  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        parts.append(f"&{element.name};")
        return
    if not name:
        return
    if "ltx_note" in (element.get("class") or "").split():  # a footnote that LaTeXML leaves in its place
        return
    if name in _SKIPPED and not (name == "tex-math" and not _has_math_sibling(element)):
        return
    if headings and name == "title":
        words = tidy(raw(element))
        parts.append(f" {words} " if not words or words[-1] in ".:;?!" else f" {words}: ")
        return
    block = name in _BLOCKS
    parts.append(" " if block else "")
    parts.append(element.text or "")
    for below in element:
        _collect(below, parts, headings=headings)
        parts.append(below.tail or "")
    parts.append(" " if block else "")


def _has_math_sibling(element: Element) -> bool:
    parent = element.getparent()
    return parent is not None and any(local(other) == "math" for other in parent)


def words(element: Element | None, *path: str) -> str | None:
    """Give the text at a path as a title: one line, markup and stray entities gone; None where there is none."""
    return plain(raw(child(element, *path))) or None


def attribute(element: Element | None, name: str) -> str | None:
    """Give an attribute's value on one line, or None; `xlink:href` names that one."""
    if element is None:
        return None
    value = element.get(_XLINK if name == "xlink:href" else name)
    return tidy(value) or None


def metas(page: Element) -> dict[str, list[str]]:
    """Give the `<meta name= content=>` of a page (Highwire's `citation_*` and friends), names in lower case."""
    found: dict[str, list[str]] = {}
    for meta in page.iter("meta"):
        name, content = meta.get("name") or meta.get("property"), meta.get("content")
        if name and content and (value := plain(content)):
            found.setdefault(name.lower(), []).append(value)
    return found
