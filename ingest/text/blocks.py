"""The common shape between readers and result: blocks in reading order, put together into one text with offsets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from corpus.passages import Section
from ingest.text.headings import section_kind

Role = Literal["title", "heading", "paragraph", "caption", "table", "figure", "footnote", "aside", "front"]

_LETTERED = re.compile(r"^[A-Z](?:\.\d+)*[.:]?\s+[^\W\d_]")
_ABSTRACT_CHARS = 6000  # a longer one is a section that was taken for an abstract


@dataclass(slots=True)
class Block:
    """A paragraph, heading, caption and so on. `marks` name where later pages begin: (offset in text, page from 0)."""

    role: Role
    text: str
    page: int = 0
    level: int = 1
    kind: str | None = None
    """For a heading: its section's kind where the format tells it; else the title decides."""
    marks: list[tuple[int, int]] = field(default_factory=list)
    opens: tuple[str, str] | None = None
    """Kind and title of a section that begins here without a heading."""


@dataclass(slots=True)
class Assembled:
    """A text with its offsets."""

    text: str
    page_starts: tuple[int, ...]
    sections: tuple[Section, ...]
    abstract: str | None


def assemble(blocks: Sequence[Block], n_pages: int = 0) -> Assembled:
    """Join blocks by blank lines and count where pages and sections begin.

    A heading opens a section that lasts until the next one; headings with nothing below them join the next section.
    What stands before the first heading is the section "front". A note in the margin is a section inside another.
    """
    pieces: list[str] = []
    page_starts: list[int] = []
    opened: list[tuple[int, str, str, int]] = []  # start, kind, title, level
    offset = 0
    is_bare = False
    asides: list[Section] = []
    kept = [block for block in blocks if block.text.strip()]
    for block in kept:
        if pieces:
            offset += 2
        for at, page in [(0, block.page), *block.marks]:
            if n_pages:
                page_starts += [offset + at] * (min(page + 1, n_pages) - len(page_starts))
        if block.role == "heading":
            title = " ".join(block.text.split())
            known = block.kind or section_kind(title)
            if is_bare and opened and known == "other":
                start, kind, above, level = opened.pop()
                opened.append((start, kind, f"{above} / {title}" if block.level > level else title, level))
            elif is_bare and opened and opened[-1][1] == "other":
                start, _, above, level = opened.pop()
                opened.append((start, known, title, level))
            else:
                inherited = _inherited_kind(opened, block.level, title) if known == "other" else known
                opened.append((offset, inherited, title, block.level))
            is_bare = True
        elif block.opens is not None:
            opened.append((offset, *block.opens, 1))
            is_bare = False
        else:
            is_bare = False
        if block.role == "aside":
            asides.append(Section("aside", "note in the margin", offset, offset + len(block.text)))
        pieces.append(block.text)
        offset += len(block.text)
    text = "\n\n".join(pieces)
    if n_pages:
        page_starts += [len(text)] * (n_pages - len(page_starts))
    sections = tuple(sorted((*_close(opened, len(text)), *asides), key=lambda s: (s.char_start, -s.char_end)))
    return Assembled(text, tuple(page_starts), sections, _abstract(text, sections))


def _inherited_kind(opened: list[tuple[int, str, str, int]], level: int, title: str) -> str:
    """Return the kind of a heading whose words tell none: a subsection is of its section's kind; not so below references, which have none."""
    if _LETTERED.match(title) and any(
        kind in {"references", "conclusion", "acknowledgements", "appendix"} for _, kind, _, _ in opened
    ):
        return "appendix"
    for _, kind, _, above in reversed(opened):
        if above < level:
            return kind if kind != "references" else "other"
        if above == level and level > 1:
            return kind if kind != "references" else "other"
    if opened and opened[-1][1] == "appendix":
        return "appendix"
    return "other"


def _close(opened: Iterable[tuple[int, str, str, int]], n_chars: int) -> tuple[Section, ...]:
    starts = list(opened)
    sections: list[Section] = []
    if n_chars and (not starts or starts[0][0] > 0):
        sections.append(Section("other", "front", 0, starts[0][0] if starts else n_chars))
    for index, (start, kind, title, _) in enumerate(starts):
        end = starts[index + 1][0] if index + 1 < len(starts) else n_chars
        sections.append(Section(kind, title, start, end))
    return tuple(sections)


def _abstract(text: str, sections: Sequence[Section]) -> str | None:
    for section in sections:
        if section.kind == "abstract":
            inside = text[section.char_start : section.char_end].strip()
            first, _, rest = inside.partition("\n\n")
            body = rest if first == section.title and rest else inside.removeprefix(section.title).lstrip(" .:—–|-\n")
            return body.strip()[:_ABSTRACT_CHARS] or None
    return None
