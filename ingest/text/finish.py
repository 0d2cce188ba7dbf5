"""The last step for every kind of file: blocks to an outcome, by the same rules."""

from __future__ import annotations

from collections.abc import Sequence

from ingest.text.blocks import Block, assemble
from ingest.text.limits import Limits
from ingest.text.result import Extraction, Kind, refuse
from ingest.text.structure import open_hidden_sections


def finish(
    kind: Kind,
    blocks: Sequence[Block],
    limits: Limits,
    *,
    title: str | None = None,
    abstract: str | None = None,
    n_pages: int = 0,
    warnings: Sequence[str] = (),
    n_replaced_chars: int = 0,
    doi: str | None = None,
    arxiv_id: str | None = None,
    language: str | None = None,
) -> Extraction:
    """Return the outcome for blocks in reading order; without any text a verdict that says so."""
    open_hidden_sections(blocks)
    whole = assemble(blocks, n_pages)
    if not whole.text.strip():
        return refuse("no_pages", "the file holds no text", kind=kind, n_pages=n_pages, warnings=warnings)
    if len(whole.text) > limits.n_chars:
        return refuse("too_large", f"more than {limits.n_chars:,} characters of text", kind=kind, n_pages=n_pages)
    said = list(warnings)
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
