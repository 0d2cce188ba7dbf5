"""Running text out of what services send: JATS, HTML, entities (also escaped twice), hard line breaks."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

_BLOCK = (
    "address|article|aside|blockquote|body|br|caption|dd|disp-formula|disp-quote|div|dl|dt|fig|figure|"
    "graphic|h[1-6]|hr|html|li|list|list-item|ol|p|pre|sec|section|"
    "table|table-wrap|tbody|td|tfoot|th|thead|title|tr|ul|label"
)
_INLINE = (
    "a|abbr|abstract|abstracttext|acronym|alternatives|annotation|annotation-xml|b|bdi|bdo|big|bold|cite|code|"
    "del|dfn|dispformula|em|ext-link|fixed-case|font|i|img|inf|inline-formula|inline-graphic|ins|italic|kbd|m?math|"
    "maction|menclose|merror|mfenced|mfrac|mi|mmultiscripts|mn|mo|monospace|mover|mpadded|mphantom|mprescripts|mroot|"
    "mrow|ms|mspace|msqrt|mstyle|msub|msubsup|msup|mtable|mtd|mtext|mtr|munder|munderover|named-content|"
    "overline|q|roman|s|samp|sans-serif|sc|scp|semantics|small|span|strike|strong|styled-content|sub|sup|tex-math|"
    "time|title-group|tt|u|underline|wbr|xref|inline-supplementary-material|related-article"
)
_ATTRIBUTES = r"(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>]+))*"
_TAG = re.compile(rf"</?(?:(?:jats|mml|m|xhtml):)?(?P<name>{_BLOCK}|{_INLINE}){_ATTRIBUTES}\s*/?>", re.IGNORECASE)
_PREFIXED = re.compile(rf"</?(?:jats|mml|xhtml|ali|xlink):[\w-]+{_ATTRIBUTES}\s*/?>", re.IGNORECASE)
_HEADING = re.compile(r"<((?:jats:)?(?:title|h[1-6]))\b[^<>]*>(?P<text>.*?)</\1\s*>", re.IGNORECASE | re.DOTALL)
_UNSHOWN = re.compile(
    r"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[|\]\]>|<(script|style|(?:jats:|mml:)?annotation(?:-xml)?)\b[^<>]*>.*?</\1\s*>",
    re.IGNORECASE | re.DOTALL,
)
_TEX = re.compile(r"<((?:jats:)?tex-math)\b[^<>]*>.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_IS_BLOCK = re.compile(_BLOCK, re.IGNORECASE)
_BAD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_LABEL = re.compile(r"^(?:(?i:abstract|summary|résumé|resumo|resumen|zusammenfassung)\s*[:.–—]\s*|ABSTRACT\s+)(?=\S)")
_ONLY_LABEL = re.compile(
    r"(?:abstract|summary|n/?a|null|no abstract(?: is)?(?: available)?|not available)?[\s:.\[\]-]*", re.IGNORECASE
)
_LOST = "\N{REPLACEMENT CHARACTER}"


def tidy(text: object) -> str:
    """One line of text: white space runs become a space, what PostgreSQL cannot hold becomes a replacement sign."""
    if not isinstance(text, str):
        return ""
    # Pairs of surrogates that a service escaped one by one are joined again; what is left alone is lost.
    if any("\ud800" <= c <= "\udfff" for c in text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return " ".join(_BAD.sub(lambda bad: _LOST if bad[0] != "\x7f" else "", text).split())


def _heading(found: re.Match[str]) -> str:
    words = _TAG.sub("", found["text"]).strip()
    if not words:
        return " "
    return f" {words} " if words[-1] in ".:;?!" else f" {words}: "


def _tag(found: re.Match[str]) -> str:
    return " " if _IS_BLOCK.fullmatch(found["name"]) else ""


def _without_markup(text: str, *, headings: bool) -> str:
    text = _UNSHOWN.sub(" ", text)
    if "mml:math" in text:  # the same formula stands there twice
        text = _TEX.sub("", text)
    if headings:
        text = _HEADING.sub(_heading, text)
    return _PREFIXED.sub(" ", _TAG.sub(_tag, text))


def plain(text: object, *, headings: bool = False) -> str:
    """Give the running text of a string that may hold markup and entities, escaped once or several times.

    Only known tags go, so that `p < 0.05` and `a<b` in prose survive. With `headings`, section titles end in a colon.
    """
    if not isinstance(text, str):
        return ""
    for _ in range(4):
        before = text
        text = _without_markup(text, headings=headings)
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
        if text == before:
            break
    text = tidy(text)
    return re.sub(r"\s+([,;.)])(?=\s|$)", r"\1", text) if headings else text


def title_of(text: object) -> str | None:
    """Give a title as one line without markup and entities, or None."""
    return plain(text) or None


def abstract_of(text: object) -> str | None:
    """Give an abstract as running text without the heading `Abstract`, or None where there is nothing to read."""
    words = _LABEL.sub("", plain(text, headings=True)).strip()
    return None if _ONLY_LABEL.fullmatch(words) else words


def from_inverted_index(index: object) -> str | None:
    """Put OpenAlex's `{word: [positions]}` back into running text, or None where it is empty or no such thing."""
    if not isinstance(index, Mapping):
        return None
    inside: Any = index.get("InvertedIndex")  # the dress of older dumps
    entries: Mapping[Any, Any] = inside if isinstance(inside, Mapping) else index
    placed: list[tuple[int, str]] = []
    for word, positions in entries.items():
        places = positions if isinstance(positions, list) else [positions]
        placed += [(place, word) for place in places if isinstance(place, int) and isinstance(word, str)]
    return plain(" ".join(word for _, word in sorted(placed, key=lambda pair: pair[0]))) or None
