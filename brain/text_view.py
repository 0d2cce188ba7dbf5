"""An extraction as people read it in a shell: what it is, then the text with page and section marks."""

from __future__ import annotations

from ingest.text.result import Extraction


def render(name: str, extraction: Extraction) -> str:
    """Return the lines of the view; marks stand in lines of their own where that breaks no word."""
    lines = [f"{name}: {extraction.verdict}" + (f" ({extraction.reason})" if extraction.reason else "")]
    facts = {
        "title": extraction.title,
        "kind": extraction.kind,
        "pages": extraction.n_pages or None,
        "characters": f"{len(extraction.text):,}" if extraction.text else None,
        "doi": extraction.doi,
        "arxiv": extraction.arxiv_id,
        "language": extraction.language,
        "warnings": ", ".join(extraction.warnings) or None,
    }
    lines += [f"  {key}: {value}" for key, value in facts.items() if value]
    return "\n".join(lines) + ("\n\n" + _marked(extraction) if extraction.text else "")


def _marked(extraction: Extraction) -> str:
    marks: list[tuple[int, int, str]] = [
        (start, 0, f"[page {number}]") for number, start in enumerate(extraction.page_starts, 1)
    ]
    marks += [(s.char_start, 1, f"[section {s.kind}: {s.title}]") for s in extraction.sections]
    pieces: list[str] = []
    at = 0
    for offset, _, mark in sorted(marks):
        before = extraction.text[at:offset]
        is_inside = bool(before) and not before.endswith("\n\n")
        pieces.append(before + (f" {mark} " if is_inside else f"{mark}\n"))
        at = offset
    return "".join(pieces) + extraction.text[at:]
