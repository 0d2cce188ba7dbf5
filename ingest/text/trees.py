"""HTML and XML as trees, whatever their bytes: encoding, broken bytes, entities without a definition, depth."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.entities import html5
from typing import Any

from ingest.text.kinds import decode, has_mark

_DECLARED_IN_HTML = re.compile(rb"(?i)<meta[^>]+charset\s*=\s*[\"']?([\w-]+)")
_DECLARED_IN_XML = re.compile(rb"\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.-]+)")
_ENTITY = re.compile(r"&([A-Za-z][A-Za-z0-9.]{0,40});")
_OF_XML = frozenset({"amp", "lt", "gt", "quot", "apos"})


@dataclass(frozen=True, slots=True)
class Tree:
    """A parsed file; `is_cut` when it nests deeper than any parser goes, so that what lies below is lost."""

    root: Any
    is_cut: bool = False


def parse_html(content: bytes) -> Tree:
    """Return the page's tree, its root None where there is none. Raises lxml's errors."""
    from lxml import html

    source = _text_of(content, _DECLARED_IN_HTML.search(content[:4096])).encode("utf-8", "replace")
    for is_huge in (False, True):
        parser = html.HTMLParser(recover=True, no_network=True, encoding="utf-8", huge_tree=is_huge)
        tree = Tree(html.document_fromstring(source, parser=parser), _is_cut(parser))
        if not tree.is_cut:
            break
    return tree


def parse_xml(content: bytes) -> Tree:
    """Return the file's tree, its root None where there is none; nothing outside of it is read. Raises lxml's errors.

    An entity that the file does not define is the character of its usual name, else U+FFFD: no definition is fetched.
    """
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    text = _ENTITY.sub(_character, _text_of(content, _DECLARED_IN_XML.match(content[:512])))
    source = text.encode("utf-8", "replace")
    for is_huge in (False, True):
        parser = etree.XMLParser(
            recover=True, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=is_huge, encoding="utf-8"
        )
        tree = Tree(etree.fromstring(source, parser=parser), _is_cut(parser))
        if not tree.is_cut:
            break
    return tree


def _text_of(content: bytes, declared: re.Match[bytes] | None) -> str:
    """The text in the encoding that the file declares, where Python knows it and no byte order mark says another."""
    name = declared[1].decode("ascii").lower() if declared else "utf-8"
    if not has_mark(content) and name.replace("-", "") != "utf8":
        try:
            return content.decode(name, "replace")
        except LookupError:
            pass
    return decode(content)


def _character(match: re.Match[str]) -> str:
    return match[0] if match[1] in _OF_XML else html5.get(match[1] + ";", "\ufffd")


def _is_cut(parser: Any) -> bool:
    return any("depth" in error.message for error in parser.error_log)
