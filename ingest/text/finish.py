"""The last step for every kind of file: blocks to an outcome, by the same rules."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from corpus.texts import REPLACEMENT
from ingest.text.blocks import Block, assemble
from ingest.text.limits import Limits
from ingest.text.result import Extraction, Kind, refuse
from ingest.text.structure import open_hidden_sections

_CHUNK = re.compile(r"\S+")
_SYLLABLES = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
"""Signs that stand for more than a letter, and make a word without others."""
_MIN_LETTERS = 3


def finish(
    kind: Kind,
    blocks: Sequence[Block],
    limits: Limits,
    *,
    title: str | None = None,
    abstract: str | None = None,
    n_pages: int = 0,
    warnings: Sequence[str] = (),
    is_cut: bool = False,
    n_replaced_chars: int = 0,
    doi: str | None = None,
    arxiv_id: str | None = None,
    language: str | None = None,
) -> Extraction:
    """Return the outcome for blocks in reading order; without any word a verdict that says so.

    `is_cut`: a part of the file lies too deep to be read; what was read is used and says so.
    """
    open_hidden_sections(blocks)
    whole = assemble(blocks, n_pages)
    if not has_words(whole.text):
        return _refuse_wordless(kind, whole.text.strip(), n_pages, warnings, is_cut=is_cut)
    if len(whole.text) > limits.n_chars:
        return refuse("too_large", f"more than {limits.n_chars:,} characters of text", kind=kind, n_pages=n_pages)
    said = [*warnings, "incomplete"] if is_cut else list(warnings)
    if n_replaced_chars:
        said.append(f"unmapped_characters:{n_replaced_chars}")
    return Extraction(
        "ok",
        kind=kind,
        warnings=tuple(said),
        title=" ".join(title.split()) if title else None,
        abstract=abstract or whole.abstract,
        n_pages=n_pages,
        page_starts=whole.page_starts,
        sections=whole.sections,
        text=whole.text,
        doi=doi,
        arxiv_id=arxiv_id,
        language=language,
        n_replaced_chars=n_replaced_chars,
    )


def has_words(text: str) -> bool:
    """Whether there is anything to read: a few letters, two of them in one word. The shortest of notes passes."""
    n_letters, has_word = 0, False
    for chunk in _CHUNK.finditer(text):
        n = sum(c.isalpha() or unicodedata.category(c)[0] == "M" for c in chunk[0]) + len(_SYLLABLES.findall(chunk[0]))
        n_letters += n
        has_word = has_word or n > 1
        if has_word and n_letters >= _MIN_LETTERS:
            return True
    return False


def _refuse_wordless(kind: Kind, text: str, n_pages: int, warnings: Sequence[str], *, is_cut: bool) -> Extraction:
    if is_cut:
        return refuse("damaged", "the file is nested too deeply", kind=kind, n_pages=n_pages, warnings=warnings)
    if kind == "pdf":
        return refuse("needs_ocr", "the text layer holds no words", kind=kind, n_pages=n_pages, warnings=warnings)
    if text.count(REPLACEMENT) * 2 > len(text):
        return refuse("damaged", "its characters have no meaning", kind=kind, n_pages=n_pages, warnings=warnings)
    why = f"the file holds no words, only {text[:20]!r}" if text else "the file holds no text"
    return refuse("no_pages", why, kind=kind, n_pages=n_pages, warnings=warnings)
