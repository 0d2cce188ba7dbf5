"""Pages of fragments to blocks in reading order: the steps one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ingest.text.blocks import Block
from ingest.text.columns import Column, order_columns
from ingest.text.flow import make_blocks
from ingest.text.fragments import PageText
from ingest.text.front import find_title, title_text
from ingest.text.furniture import drop_furniture
from ingest.text.groups import Group, Layout, find_layout, make_groups
from ingest.text.headings import section_kind
from ingest.text.roles import assign_roles, is_numbered
from ingest.text.rows import Row, make_rows

_Style = tuple[str, int, bool]


@dataclass(slots=True)
class LaidOut:
    """A document's blocks and its title."""

    blocks: list[Block]
    title: str | None


def lay_out(pages: Sequence[PageText], metadata_title: str | None = None) -> LaidOut:
    """Return the blocks of a document in reading order."""
    drop_furniture(pages)
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
    for page, groups in zip(pages[:2], grouped[:2], strict=True):
        title_groups = find_title(groups, layout, page.height, metadata_title)
        if title_groups:
            break
    for group in title_groups:
        group.role = "title"
    settle_headings([group for page in grouped for column in page for group in column], layout)
    blocks, hyphenation = make_blocks(grouped, layout)
    return LaidOut(blocks, title_text(title_groups, hyphenation))


def _is_rtl(pages: Sequence[PageText]) -> bool:
    n_rtl = sum(f.n_chars for page in pages for f in page.fragments if f.is_rtl)
    return n_rtl * 2 > sum(f.n_chars for page in pages for f in page.fragments)


def _set_sidebars_apart(columns: Sequence[Sequence[Group]], layout: Layout) -> None:
    """A narrow column of small text beside the text (funding, licence, how to cite) interrupts it like a footnote."""
    widths = [max(g.x1 for g in groups) - min(g.x0 for g in groups) for groups in columns]
    if len(columns) < 2:
        return
    for groups, width in zip(columns, widths, strict=True):
        n_chars = sum(len(g.text) for g in groups)
        n_small = sum(len(g.text) for g in groups if g.size < layout.size - 0.4)
        if width < 0.55 * max(widths) and n_chars and n_small > 0.8 * n_chars:
            for group in groups:
                if group.role in {"body", "heading"}:
                    group.role = "footnote"


def settle_headings(groups: Sequence[Group], layout: Layout) -> None:
    """Keep as headings what shares the style of those that are certain: numbered ones and those with known words.

    A style of its own (another font, larger or bold) that comes back three times is one of headings too.
    """
    candidates = [group for group in groups if group.role == "heading"]
    certain: Counter[_Style] = Counter()
    usual: Counter[_Style] = Counter()
    for group in candidates:
        text = group.text.replace("\t", " ")
        style = _style(group)
        if is_numbered(text) or section_kind(text) != "other":
            certain[style] += 1
        elif style[0] != layout.font and group.size > layout.size - 0.2:
            usual[style] += 1
    has_top = bool(certain)
    in_references = False
    for group in candidates:
        text = group.text.replace("\t", " ")
        kind = section_kind(text)
        style = _style(group)
        is_sure = is_numbered(text) or kind != "other"
        n_alike = certain[style] + usual[style]
        if not (certain[style] and (is_sure or n_alike >= 3)) and not (usual[style] >= 3 and not in_references):
            group.role = "body"
            continue
        if in_references and not is_sure and certain[style] < 3:
            group.role = "body"
            continue
        in_references = kind == "references" or (in_references and not is_sure)
        group.level = 1 if certain[style] or not has_top else 2


def _style(group: Group) -> _Style:
    return group.first.font, round(group.first.size * 2), group.first.is_bold
