"""Markdown: headings, paragraphs, lists, tables and code as a reader of the rendered page sees them."""

from __future__ import annotations

import re
from typing import Any

from ingest.text.blocks import Block
from ingest.text.finish import finish, has_words
from ingest.text.kinds import decode
from ingest.text.limits import Limits
from ingest.text.loose import first_identifiers, mend_blocks
from ingest.text.plain import extract_plain
from ingest.text.result import Extraction

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*\n", re.DOTALL)
_FIELD = re.compile(r"^(title|doi|arxiv(?:_id)?)\s*:\s*[\"']?(.+?)[\"']?\s*$", re.IGNORECASE | re.MULTILINE)

_MAX_NESTING = 100


def extract_markdown(content: bytes, limits: Limits) -> Extraction:
    """Return the text of a Markdown file without its marks."""
    from markdown_it import MarkdownIt

    source = decode(content).replace("\r\n", "\n").replace("\r", "\n")
    front = _FRONT_MATTER.match(source)
    fields = {name.lower(): value for name, value in _FIELD.findall(front[1])} if front else {}
    tokens = (
        MarkdownIt("commonmark", {"html": True, "maxNesting": _MAX_NESTING})
        .enable("table")
        .parse(source[front.end() :] if front else source)
    )
    blocks = _blocks(tokens)
    is_cut = any(token.level >= _MAX_NESTING - 2 for token in tokens)  # a list and its item are two levels
    if is_cut and not any(has_words(block.text) for block in blocks):
        return extract_plain(content, limits)  # nested deeper than the parser goes: the words are below
    taken = _take_title(blocks)
    title = fields.get("title") or taken
    blocks, n_replaced, language = mend_blocks(blocks)
    own = first_identifiers([fields.get("doi")], source[:3000])
    return finish(
        "markdown",
        blocks,
        limits,
        title=title,
        is_cut=is_cut,
        n_replaced_chars=n_replaced,
        doi=own.doi,
        arxiv_id=fields.get("arxiv") or fields.get("arxiv_id") or own.arxiv_id,
        language=language,
    )


def _blocks(tokens: list[Any]) -> list[Block]:
    blocks: list[Block] = []
    markers: list[str] = []
    pending = ""
    row: list[str] | None = None
    for at, token in enumerate(tokens):
        kind = token.type
        if kind in {"bullet_list_open", "ordered_list_open"}:
            markers.append("•" if kind == "bullet_list_open" else "#")
        elif kind in {"bullet_list_close", "ordered_list_close"}:
            markers.pop()
        elif kind == "list_item_open":
            pending = "• " if markers[-1] == "•" else f"{token.info or '1'}. "
        elif kind == "heading_open":
            blocks.append(Block("heading", _plain(tokens[at + 1]), level=int(token.tag[1])))
        elif kind == "tr_open":
            row = []
        elif kind == "tr_close" and row is not None:
            line = "\t".join(row)
            if blocks and blocks[-1].role == "table" and token.map is None:
                blocks[-1].text += "\n" + line
            else:
                blocks.append(Block("table", line))
            row = None
        elif kind == "inline":
            if row is not None:
                row.append(_plain(token))
            elif tokens[at - 1].type == "paragraph_open":
                blocks.append(Block("paragraph", pending + _plain(token)))
                pending = ""
        elif kind in {"fence", "code_block"}:
            blocks.append(Block("paragraph", token.content.rstrip("\n")))
    return blocks


def _plain(token: Any) -> str:
    pieces: list[str] = []
    for child in token.children or []:
        if child.type in {"text", "code_inline"}:
            pieces.append(child.content)
        elif child.type in {"softbreak", "hardbreak"}:
            pieces.append(" ")
        elif child.type == "image":
            pieces.append(child.content)
    return "".join(pieces).strip()


def _take_title(blocks: list[Block]) -> str | None:
    for block in blocks[:3]:
        if block.role == "heading" and block.level == 1:
            block.role = "title"
            return block.text
    return None
