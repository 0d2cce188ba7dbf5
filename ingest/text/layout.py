"""Pages of fragments to blocks in reading order: the steps one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ingest.text.blocks import Block
from ingest.text.columns import Column, order_columns
from ingest.text.dropcaps import join_drop_caps
from ingest.text.flow import make_blocks
from ingest.text.fragments import PageText
from ingest.text.front import confirm_title, find_title, title_text
from ingest.text.furniture import drop_furniture
from ingest.text.groups import Group, Layout, find_layout, make_groups
from ingest.text.outline import settle_headings
from ingest.text.roles import assign_roles
from ingest.text.rows import Row, make_rows


@dataclass(slots=True)
class LaidOut:
    """A document's blocks and its title."""

    blocks: list[Block]
    title: str | None


def lay_out(pages: Sequence[PageText], metadata_title: str | None = None, language: str | None = None) -> LaidOut:
    """Return the blocks of a document in reading order."""
    drop_furniture(pages)
    for page in pages:
        join_drop_caps(page.fragments)
    is_rtl = _is_rtl(pages)
    columns: list[list[tuple[Column, list[Row]]]] = []
    for page in pages:
        found = order_columns(page.fragments, is_rtl=is_rtl)
        columns.append([(column, make_rows(column, page.number)) for column in found])
    layout = find_layout(rows for page in columns for _, rows in page)
    grouped = [[make_groups(rows, column, layout) for column, rows in page if rows] for page in columns]
    for page, groups in zip(pages, grouped, strict=True):
        assign_roles(groups, page, layout)
        _set_sidebars_apart(groups, layout)
    title_groups: list[Group] = []
    for groups in grouped[:5]:
        title_groups = confirm_title(groups, metadata_title)
        if title_groups:
            break
    else:
        for page, groups in zip(pages[:2], grouped[:2], strict=True):
            title_groups = find_title(groups, layout, page.height)
            if title_groups:
                break
    for group in title_groups:
        group.role = "title"
    settle_headings([group for page in grouped for column in page for group in column], layout)
    blocks, hyphenation = make_blocks(grouped, layout, language or "en")
    return LaidOut(blocks, title_text(title_groups, hyphenation))


def _is_rtl(pages: Sequence[PageText]) -> bool:
    n_rtl = sum(f.n_chars for page in pages for f in page.fragments if f.is_rtl)
    return n_rtl * 2 > sum(f.n_chars for page in pages for f in page.fragments)


def _set_sidebars_apart(columns: Sequence[Sequence[Group]], layout: Layout) -> None:
    """A narrow column of small text beside the text (funding, licence, how to cite) interrupts it like a footnote."""
    side_by_side = [groups for groups in columns if not groups[0].first.column.is_spanning]
    if len(side_by_side) < 2:
        return
    widths = [max(g.x1 for g in groups) - min(g.x0 for g in groups) for groups in side_by_side]
    sizes = [sum(len(g.text) for g in groups) for groups in side_by_side]
    for groups, width, n_chars in zip(side_by_side, widths, sizes, strict=True):
        n_small = sum(len(g.text) for g in groups if g.size < layout.size - 0.4)
        if width < 0.55 * max(widths) and n_small > 0.8 * n_chars and n_chars < 0.4 * sum(sizes):
            for group in groups:
                if group.role in {"body", "heading"}:
                    group.role = "aside"
