"""One file to one outcome: finds its kind by its content and calls the reader of that kind. Runs inside the child."""

from __future__ import annotations

import gc
from pathlib import Path

from ingest.text.kinds import find_kind
from ingest.text.limits import MIB, Limits
from ingest.text.result import Extraction, refuse


def extract_document(path: Path, name: str, limits: Limits, *, ocr_scratch: Path | None = None) -> Extraction:
    """Return what the file says, or the verdict why not; may raise what a broken file makes its reader raise."""
    size = path.stat().st_size
    if size > limits.file_mib * MIB:
        return refuse("too_large", f"{size / MIB:,.0f} MiB; the limit is {limits.file_mib} MiB")
    content = path.read_bytes()
    kind, looks_like = find_kind(content)
    if kind == "pdf":
        from ingest.text.pdf import extract_pdf

        # Hundreds of thousands of small things live until the end of the file: collecting in between finds nothing.
        gc.disable()
        try:
            return extract_pdf(content, limits, ocr_scratch=ocr_scratch)
        finally:
            gc.enable()
    if name.lower().endswith(".pdf") or kind == "unknown":
        return refuse("not_pdf", f"not a PDF: the content is {looks_like}", kind=kind)
    if kind == "html":
        from ingest.text.html import extract_html

        return extract_html(content, limits)
    if kind == "jats":
        from ingest.text.jats import extract_jats

        return extract_jats(content, limits)
    if kind == "markdown":
        from ingest.text.markdown import extract_markdown

        return extract_markdown(content, limits)
    from ingest.text.plain import extract_plain

    return extract_plain(content, limits)
