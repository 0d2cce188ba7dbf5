"""Sections that no heading opens: abstracts that begin in the running line, or stand bare; reference lists without one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingest.text.blocks import Block
from ingest.text.groups import KEYWORDS
from ingest.text.headings import section_kind

_RUN_IN = re.compile(
    r"^(?:abstract|summary|synopsis|résumé|zusammenfassung|kurzfassung|resumen|resumo|sommario|riassunto|摘要|аннотация)\s*(?:[.:—–|-]+|(?<=摘要))\s*(?=\S)",
    re.IGNORECASE,
)
_NOTICE = re.compile(
    r"licen[cs]e|copyright|©|permission|correspond|creative commons|all rights reserved|arxiv:|submitted|received:?\s|accepted:?\s|@",
    re.IGNORECASE,
)
_RIGHTS = re.compile(
    r"creative commons|©\s*(?:the author|\d{4}|\w+ \d{4})|copyright\s*(?:©|\(c\)|c\s*⃝|held|\d{4}|by\b)|permission to (?:make|copy|reproduce)|"
    r"grants? permission|all rights reserved|licen[cs]ed under|open access this article|not certified by peer review|"
    r"remains neutral with regard|personal use of this material is permitted",
    re.IGNORECASE,
)
_ENTRY = re.compile(r"^\s*(?:\[(?P<bracket>\d{1,3})\]|(?P<dot>\d{1,3})\.?\)?)\s+\S")
_RUN_IN_REFERENCES = re.compile(
    r"^(?:References?(?: [Aa]nd [Nn]otes| [Cc]ited)?|REFERENCES?(?: AND NOTES| CITED)?|Bibliography|BIBLIOGRAPHY|"
    r"Literature [Cc]ited|LITERATURE CITED|Works [Cc]ited|WORKS CITED)\s*:?\s+(?=[\[(\d“\"A-ZÀ-Þ])"
)
"""The heading of a list whose first entry runs on after it, because it is set in the type of the text."""
_YEAR = re.compile(r"\b(?:19|20)\d\d[a-z]?\b")
_MIN_ABSTRACT_CHARS = 300
_MAX_ABSTRACT_CHARS = 4000
_MIN_ENTRIES = 8
_MAX_ENTRY_CHARS = 500
_PAPER_KINDS = {"introduction", "method", "results", "discussion", "conclusion", "references"}


def open_hidden_sections(blocks: Sequence[Block]) -> None:
    """Set `opens` of the blocks that begin such a section, in place."""
    _set_notices_apart(blocks)
    kinds = [block.kind or section_kind(block.text) for block in blocks if block.role == "heading"]
    if "abstract" not in kinds or blocks_before(blocks, "abstract"):
        _open_abstract(blocks, is_run_in_only="abstract" in kinds)
    if "references" not in kinds:
        _open_references(blocks)


def _set_notices_apart(blocks: Sequence[Block]) -> None:
    """Licences, permissions and the like are on the page and no words of the paper: they interrupt it like a sidebar."""
    for block in blocks:
        if block.role == "footnote" or (block.role == "paragraph" and block.page == 0 and len(block.text) < 2500):
            head = block.text[:220]
            if _RIGHTS.search(head if block.role == "paragraph" else block.text):
                block.role = "aside"


def blocks_before(blocks: Sequence[Block], kind: str) -> bool:
    """Whether another heading stands before the one of that kind, as where a second abstract closes the paper."""
    for block in blocks:
        if block.role == "heading":
            return section_kind(block.text) != kind
    return False


def run_in_label(text: str) -> str:
    """Return the words that open an abstract in the running line ("Abstract—"), or nothing."""
    match = _RUN_IN.match(text)
    return match[0] if match else ""


def _open_abstract(blocks: Sequence[Block], *, is_run_in_only: bool) -> None:
    bare: int | None = None
    seen_title = not any(block.role == "title" for block in blocks)
    for index, block in enumerate(blocks[:60]):
        if block.page > 1:
            break
        if block.role == "title":
            seen_title = True
        if block.role == "heading":
            if section_kind(block.text) not in {"other", "abstract"}:
                break
            continue
        if block.role != "paragraph":
            continue
        if run_in_label(block.text) and len(block.text) > 100:
            block.opens = ("abstract", run_in_label(block.text).strip(" .:—–|-"))
            _close_after(blocks, index)
            return
        if (
            bare is None
            and seen_title
            and not _NOTICE.search(block.text[:200])
            and _MIN_ABSTRACT_CHARS <= len(block.text) <= _MAX_ABSTRACT_CHARS
            and _is_sentences(block.text)
        ):
            bare = index
    # A paper, and no other text that happens to begin with a long paragraph.
    is_paper = any(b.role == "heading" and section_kind(b.text) in _PAPER_KINDS for b in blocks)
    if bare is not None and not is_run_in_only and is_paper:
        blocks[bare].opens = ("abstract", "abstract")
        _close_after(blocks, bare)


def _is_sentences(text: str) -> bool:
    """Running text has more small words than names and numbers."""
    words = text.split()
    return sum(word[:1].islower() for word in words) > 0.6 * len(words)


def _close_after(blocks: Sequence[Block], index: int) -> None:
    """An abstract without a heading is one paragraph; keywords and what follows are not part of it."""
    for block in blocks[index + 1 :]:
        if block.role == "heading":
            return
        if block.role == "paragraph":
            if KEYWORDS.match(block.text) or len(block.text) < 200:
                block.opens = ("other", "front")
                for later in blocks[blocks.index(block) + 1 :]:
                    if later.role == "heading":
                        return
                    if later.role == "paragraph" and len(later.text) >= 200:
                        later.opens = ("introduction", "main text")
                        return
                return
            block.opens = ("introduction", "main text")
            return


def _open_references(blocks: Sequence[Block]) -> None:
    """A heading that runs on with the first entry, or else a run of numbered entries with years, from 1 upwards."""
    for index in range(len(blocks) - 1, -1, -1):
        label = _RUN_IN_REFERENCES.match(blocks[index].text) if blocks[index].role == "paragraph" else None
        if label and _is_list_of_entries(blocks[index:]):
            blocks[index].opens = ("references", label[0].strip(" :"))
            return
    start: int | None = None
    expected, n_years = 1, 0
    best: tuple[int, int] | None = None
    for index, block in enumerate(blocks):
        if block.role not in {"paragraph", "footnote"}:
            continue
        match = _ENTRY.match(block.text)
        number = int(match["bracket"] or match["dot"]) if match else 0
        if number == 1:
            start, expected, n_years = index, 2, int(bool(_YEAR.search(block.text)))
        elif start is not None and expected <= number <= expected + 1:
            expected = number + 1
            n_years += bool(_YEAR.search(block.text))
            if expected > _MIN_ENTRIES and n_years > 0.6 * (expected - 1):
                best = (start, index)
    if best is None:
        return
    start, end = best
    blocks[start].opens = ("references", "References")
    for block in blocks[end + 1 :]:
        if block.role == "heading":
            return
        if block.role == "paragraph" and not _YEAR.search(block.text):
            block.opens = ("other", "back matter")
            return


def _is_list_of_entries(blocks: Sequence[Block]) -> bool:
    """Whether paragraphs up to the next heading are mostly entries: short, with a year."""
    paragraphs: list[str] = []
    for block in blocks:
        if block.role == "heading":
            break
        if block.role == "paragraph":
            paragraphs.append(block.text)
    n_years = sum(len(_YEAR.findall(text)) for text in paragraphs)
    with_year = sum(bool(_YEAR.search(text)) for text in paragraphs)
    return with_year >= 0.6 * len(paragraphs) and n_years * _MAX_ENTRY_CHARS >= sum(map(len, paragraphs))
