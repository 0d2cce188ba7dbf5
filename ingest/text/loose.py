"""What formats without pages share: characters, hyphens that lost their line end, language, identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from corpus.ids import normalize
from ingest.text.blocks import Block
from ingest.text.characters import clean_text
from ingest.text.glyphs import REPLACEMENT
from ingest.text.hyphens import Hyphenation
from ingest.text.identifiers import OwnIdentifiers, list_dois
from ingest.text.ligatures import mend_ligatures
from ingest.text.quality import find_language

_ARXIV = re.compile(r"\barXiv:\s?(\d{4}\.\d{4,5}|[a-z-]+/\d{7})(?:v\d+)?\s*\[", re.IGNORECASE)
_LONE_LIGATURE = re.compile("\ufffd| f(?:f[il]?|[il]) ")


def mend_blocks(blocks: Sequence[Block]) -> tuple[list[Block], int, str | None]:
    """Return the blocks with clean characters, how many characters have no meaning, and the language.

    Such texts often come from PDF files: hyphens of lost line ends and broken ligatures are mended here too.
    """
    kept: list[Block] = []
    for block in blocks:
        block.text = clean_text(block.text)[0].strip("\n ")
        if block.text:
            kept.append(block)
    language = find_language(block.text for block in kept)
    hyphenation = Hyphenation((line for block in kept for line in block.text.split("\n")), language or "en")
    for block in kept:
        if _LONE_LIGATURE.search(block.text):
            block.text = mend_ligatures(block.text, hyphenation.knows)
        if "- " in block.text:
            block.text = hyphenation.mend(block.text)
    return kept, sum(block.text.count(REPLACEMENT) for block in kept), language


def first_identifiers(stated: Iterable[str | None], head: str) -> OwnIdentifiers:
    """Return the identifiers that the metadata states; without them what a line of the text's head calls its own."""
    doi = next((found for value in stated if value and (found := normalize("doi", value))), None)
    if doi is None:
        labelled = re.findall(r"(?im)^.{0,60}(?:\bdoi\b\s*:?\s*|doi\.org/)(10\.\S+)", head)
        dois = list_dois(" ".join(labelled))
        doi = dois[0] if dois and len(set(dois)) == 1 else None
    match = _ARXIV.search(head)
    arxiv_id = normalize("arxiv", match[1]) if match else None
    if doi and doi.startswith("10.48550/arxiv."):
        return OwnIdentifiers(None, arxiv_id or normalize("arxiv", doi.removeprefix("10.48550/arxiv.")))
    return OwnIdentifiers(doi, arxiv_id)
