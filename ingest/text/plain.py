"""Plain text: paragraphs at blank lines, hard line ends joined, headings where a line is one."""

from __future__ import annotations

import re

from ingest.text.blocks import Block
from ingest.text.characters import clean_text
from ingest.text.finish import finish
from ingest.text.headings import section_kind
from ingest.text.hyphens import Hyphenation
from ingest.text.kinds import decode
from ingest.text.limits import Limits
from ingest.text.loose import first_identifiers, mend_blocks
from ingest.text.quality import find_language
from ingest.text.result import Extraction

_NUMBERED = re.compile(r"^\d{1,2}(?:\.\d{1,2}){0,2}\.?\s+[A-ZÀ-Þ]\S.{0,80}$")
_LIST_ITEM = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,2}[.)])\s+")


def extract_plain(content: bytes, limits: Limits) -> Extraction:
    """Return the text of a plain-text file; form feeds are page breaks."""
    source = decode(content).replace("\r\n", "\n").replace("\r", "\n")
    pages = source.strip("\f").split("\f")
    language = find_language(pages)
    hyphenation = Hyphenation(source.split("\n"), language or "en")
    blocks: list[Block] = []
    for number, page in enumerate(pages):
        for paragraph in re.split(r"\n[ \t]*\n+", page):
            blocks += _blocks(paragraph, number, hyphenation)
    title = _take_title(blocks)
    blocks, n_replaced, _ = mend_blocks(blocks)
    own = first_identifiers([], source[:3000])
    return finish(
        "text",
        blocks,
        limits,
        title=clean_text(title)[0] if title else None,
        n_pages=len(pages) if len(pages) > 1 else 0,
        n_replaced_chars=n_replaced,
        doi=own.doi,
        arxiv_id=own.arxiv_id,
        language=language,
    )


def _blocks(paragraph: str, page: int, hyphenation: Hyphenation) -> list[Block]:
    lines = [line.rstrip() for line in paragraph.split("\n") if line.strip()]
    if not lines:
        return []
    if len(lines) == 1 and is_heading_line(lines[0]):
        return [Block("heading", lines[0].strip(), page)]
    if is_heading_line(lines[0]) and section_kind(lines[0]) != "other":
        return [Block("heading", lines[0].strip(), page), *_blocks("\n".join(lines[1:]), page, hyphenation)]
    return [Block("paragraph", _join(lines, hyphenation), page)]


def is_heading_line(line: str) -> bool:
    """Whether one line alone reads as a heading: a known word, or a number before a capital."""
    bare = line.strip()
    if not 2 < len(bare) <= 90 or bare.endswith((".", ",", ";")):
        return False
    return bool(_NUMBERED.match(bare)) or (section_kind(bare) != "other" and len(bare.split()) <= 4)


def _join(lines: list[str], hyphenation: Hyphenation) -> str:
    """Lines that were broken at a width are one; lists, verse and tables keep their lines."""
    longest = max(map(len, lines))
    is_ragged = sum(len(line) < 0.6 * longest and not line.endswith("-") for line in lines[:-1]) > len(lines) // 2
    if is_ragged or longest > 200 or any(_LIST_ITEM.match(line) for line in lines[1:]):
        return "\n".join(line.strip() for line in lines)
    text = lines[0].strip()
    parts: list[str] = []
    for line in lines[1:]:
        following = line.strip()
        joined = hyphenation.join(text, following)
        parts.append(joined[: len(joined) - len(following)])
        text = following
    return "".join(parts) + text


def _take_title(blocks: list[Block]) -> str | None:
    if not blocks or len(blocks[0].text) > 300 or "\n" in blocks[0].text:
        return None
    first = blocks[0]
    if first.role == "paragraph" and not first.text.endswith("."):
        first.role = "title"
        return first.text
    return None
