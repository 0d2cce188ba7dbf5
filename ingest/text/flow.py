"""Groups of all pages to blocks: sentences run on over columns and pages, what interrupted them stands beside them.

Captions, tables, drawings and footnotes wait until the paragraph that they interrupt is done. Where that paragraph runs
on to the next page they stand before it instead, so that every character keeps its page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ingest.text.blocks import Block, Role
from ingest.text.glyphs import REPLACEMENT
from ingest.text.groups import CAPTION, Group, Layout, is_finished
from ingest.text.hyphens import Hyphenation
from ingest.text.joining import continues, interrupts, is_display, join_rows
from ingest.text.ligatures import find_dropped, find_mistaken, mend_ligatures, restore_dropped, restore_mistaken
from ingest.text.roles import heading_level
from ingest.text.rows import Row
from ingest.text.superscripts import resolve_superscripts

_FLOATS = {"caption", "table", "figure", "footnote", "aside"}
_LONE_LIGATURE = re.compile(r"(?m:^| )f(?:f[il]?|[il]) ")


@dataclass(slots=True)
class _Open:
    """A paragraph that may still go on."""

    rows: list[Row]
    floats: list[Block] = field(default_factory=list)


def make_blocks(
    pages: Sequence[Sequence[Sequence[Group]]], layout: Layout, language: str = "en"
) -> tuple[list[Block], Hyphenation]:
    """Return the blocks of a document; `pages` hold columns in reading order, these hold groups."""
    for page in pages:
        resolve_superscripts(page)
    hyphenation = Hyphenation(
        (row.text for page in pages for column in page for group in column for row in group.rows), language
    )
    _mend_rows(pages, hyphenation)
    writer = _Writer(hyphenation, layout)
    groups = [group for page in pages for column in page for group in column]
    for index, group in enumerate(groups):
        writer.add(group, groups[index + 1 : index + 90])
    writer.close()
    return writer.blocks, hyphenation


class _Writer:
    def __init__(self, hyphenation: Hyphenation, layout: Layout) -> None:
        self.blocks: list[Block] = []
        self._hyphenation = hyphenation
        self._layout = layout
        self._open: _Open | None = None
        self._caption: tuple[Block, list[Row]] | None = None

    def add(self, group: Group, following: Sequence[Group]) -> None:
        """Take the next group; `following` are those after it, to see whether a sentence goes on behind it."""
        if self._goes_on_with_caption(group):
            return
        rows = self._open.rows if self._open is not None else None
        if group.role == "body" and rows is not None and interrupts(rows, group, following):
            group.role = "footnote"
        if group.role in _FLOATS:
            block = self._float(group)
            if self._open is not None and not is_finished(self._open.rows[-1].text):
                _add_float(self._open.floats, block)
            else:
                self._close_paragraph()
                _add_float(self.blocks, block)
            if group.role == "caption":
                self._caption = (block, group.rows)
        elif group.role in {"heading", "title"}:
            self._close_paragraph()
            text = join_rows(group.rows, self._hyphenation)[0]
            role: Role = "heading" if group.role == "heading" else "title"
            self.blocks.append(Block(role, text, group.first.page, max(group.level, heading_level(text))))
        elif rows is not None and (continues(rows, group) or is_display(rows, group)):
            rows += group.rows
        else:
            self._close_paragraph()
            self._open = _Open(list(group.rows))

    def close(self) -> None:
        """Write what is still open."""
        self._close_paragraph()

    def _goes_on_with_caption(self, group: Group) -> bool:
        """The second column of a caption that is set in two."""
        if self._caption is None:
            return False
        block, rows = self._caption
        last, first = rows[-1], group.first
        if group.role in {"figure", "table"}:
            return False
        if group.role in {"caption", "heading", "title"} and not first.text[:1].islower() and CAPTION.match(group.text):
            return False
        is_small = abs(self._layout.size - last.size) > 0.4 or last.font != self._layout.font
        if first.page != last.page or first.column is last.column or not is_small:
            return False
        if (
            abs(first.size - last.size) > 0.2
            or first.font != last.font
            or is_finished(last.text)
            or abs(first.base - rows[0].base) > 40
        ):
            return False
        rows = [*rows, *group.rows]
        block.text, block.marks = join_rows(rows, self._hyphenation)
        self._caption = (block, rows)
        return True

    def _close_paragraph(self) -> None:
        if self._open is None:
            return
        rows, floats = self._open.rows, self._open.floats
        self._open = None
        text, marks = join_rows(rows, self._hyphenation)
        last_page = rows[-1].page
        before = [block for block in floats if block.page < last_page]
        after = [block for block in floats if block.page >= last_page]
        self.blocks += [*before, Block("paragraph", text, rows[0].page, marks=marks), *after]

    def _float(self, group: Group) -> Block:
        page = group.first.page
        if group.role in {"table", "figure"}:
            lines = [line for row in group.rows if (line := row.text.strip()) and not _is_letters_apart(line)]
            return Block("table" if group.role == "table" else "figure", "\n".join(lines), page)
        text, marks = join_rows(group.rows, self._hyphenation)
        role: Role = group.role if group.role in {"caption", "aside"} else "footnote"  # pyright: ignore[reportAssignmentType]
        return Block(role, text, page, marks=marks)


def _is_letters_apart(line: str) -> bool:
    """Rows of single signs: an alignment of sequences, the cells of a drawing."""
    tokens = line.split()
    return len(tokens) > 20 and sum(map(len, tokens)) < 1.9 * len(tokens)


def _add_float(blocks: list[Block], block: Block) -> None:
    """Pieces of one table or drawing are one block."""
    if blocks and blocks[-1].role == block.role and block.role in {"table", "figure"} and blocks[-1].page == block.page:
        blocks[-1].text += "\n" + block.text
    else:
        blocks.append(block)


def _mend_rows(pages: Sequence[Sequence[Sequence[Group]]], hyphenation: Hyphenation) -> None:
    """Mend ligatures row by row, so that offsets are counted on what is stored."""
    rows = [row for page in pages for column in page for group in column for row in group.rows]
    lines = [row.text for row in rows]
    dropped = find_dropped(lines)
    mistaken = find_mistaken(lines, hyphenation.knows) if hyphenation.language == "en" else {}
    if dropped:
        for row in rows:
            row.text = restore_dropped(row.text, dropped)
    if mistaken:
        for row in rows:
            if not row.text.isascii():
                row.text = restore_mistaken(row.text, mistaken)
    everything = "\n".join(lines)
    if REPLACEMENT in everything or _LONE_LIGATURE.search(everything):
        for row in rows:
            if REPLACEMENT in row.text or _LONE_LIGATURE.search(row.text):
                row.text = mend_ligatures(row.text, hyphenation.knows)
