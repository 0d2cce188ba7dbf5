"""Plain text: paragraphs at blank lines, hard line ends joined, headings where a line is one."""

from __future__ import annotations

import re

from ingest.text.blocks import Block
from ingest.text.characters import clean_text
from ingest.text.finish import finish
from ingest.text.headings import section_kind
from ingest.text.kinds import decode
from ingest.text.limits import Limits
from ingest.text.result import Extraction

_NUMBERED = re.compile(r"^\d{1,2}(?:\.\d{1,2}){0,2}\.?\s+[A-ZÀ-Þ]\S.{0,80}$")
_LIST_ITEM = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,2}[.)])\s+")


def extract_plain(content: bytes, limits: Limits) -> Extraction:
    """Return the text of a plain-text file; form feeds are page breaks."""
    text, n_replaced = clean_text(decode(content))
    pages = text.split("\f") if "\f" in text.strip("\f") else [text]
    blocks: list[Block] = []
    for number, page in enumerate(pages):
        for paragraph in re.split(r"\n[ \t]*\n+", page.replace("\r\n", "\n").replace("\r", "\n")):
            blocks += _blocks(paragraph, number)
    title = _take_title(blocks)
    return finish(
        "text", blocks, limits, title=title, n_pages=len(pages) if len(pages) > 1 else 0, n_replaced_chars=n_replaced
    )


def _blocks(paragraph: str, page: int) -> list[Block]:
    lines = [line.rstrip() for line in paragraph.split("\n") if line.strip()]
    if not lines:
        return []
    if len(lines) == 1 and is_heading_line(lines[0]):
        return [Block("heading", lines[0].strip(), page)]
    if is_heading_line(lines[0]) and section_kind(lines[0]) != "other":
        return [Block("heading", lines[0].strip(), page), *_blocks("\n".join(lines[1:]), page)]
    return [Block("paragraph", _join(lines), page)]


def is_heading_line(line: str) -> bool:
    """Whether one line alone reads as a heading: a known word, or a number before a capital."""
    bare = line.strip()
    if not 2 < len(bare) <= 90 or bare.endswith((".", ",", ";")):
        return False
    return bool(_NUMBERED.match(bare)) or (section_kind(bare) != "other" and len(bare.split()) <= 4)


def _join(lines: list[str]) -> str:
    """Lines that were broken at a width are one; lists, verse and tables keep their lines."""
    longest = max(map(len, lines))
    is_ragged = sum(len(line) < 0.6 * longest for line in lines[:-1]) > len(lines) // 3
    if is_ragged or longest > 200 or any(_LIST_ITEM.match(line) for line in lines[1:]):
        return "\n".join(line.strip() for line in lines)
    return " ".join(line.strip() for line in lines)


def _take_title(blocks: list[Block]) -> str | None:
    if not blocks or len(blocks[0].text) > 300 or "\n" in blocks[0].text:
        return None
    first = blocks[0]
    if first.role == "paragraph" and not first.text.endswith("."):
        first.role = "title"
        return first.text
    return None
