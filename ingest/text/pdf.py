"""PDF: opens the bytes, tells what cannot be used, and reads page by page. Runs inside the child."""

from __future__ import annotations

import sys
from typing import Any

from ingest.text.blocks import Block
from ingest.text.finish import finish
from ingest.text.fragments import PageText, read_page
from ingest.text.layout import lay_out
from ingest.text.limits import Limits
from ingest.text.result import Extraction, refuse


def load_library() -> Any:
    """Import PyMuPDF without its layout models, which cost a quarter of a second and are not used."""
    if "pymupdf" not in sys.modules:
        sys.modules.setdefault("pymupdf.layout", None)  # type: ignore[arg-type]
        import pymupdf

        pymupdf.TOOLS.mupdf_display_errors(False)
        pymupdf.TOOLS.mupdf_display_warnings(False)
    return sys.modules["pymupdf"]


def extract_pdf(content: bytes, limits: Limits, *, is_ocr: bool = False) -> Extraction:
    """Return what the pages of a PDF say, or the verdict why nothing can be had."""
    library = load_library()
    try:
        document = library.open(stream=content, filetype="pdf")
    except Exception as error:  # noqa: BLE001
        return refuse("damaged", f"the PDF cannot be opened: {error}", kind="pdf")
    with document:
        if document.needs_pass:
            return refuse("encrypted", "a password is needed to open it", kind="pdf")
        n_pages = document.page_count
        if n_pages == 0:
            is_cut = b"%%EOF" not in content[-2048:]
            return refuse(
                "incomplete" if is_cut else "no_pages",
                "the file is cut off" if is_cut else "the PDF has no pages",
                kind="pdf",
            )
        if n_pages > limits.n_pages:
            return refuse("too_large", f"{n_pages} pages; the limit is {limits.n_pages}", kind="pdf", n_pages=n_pages)
        warnings = ["repaired"] if document.is_repaired else []
        pages = read_pages(library, document)
        metadata = document.metadata or {}
    n_bad = sum(page.is_bad for page in pages)
    if n_bad:
        warnings.append(f"bad_pages:{n_bad}")
    if n_bad == n_pages:
        return refuse("damaged", "no page can be read", kind="pdf", n_pages=n_pages)
    if not any(page.fragments for page in pages):
        return refuse("needs_ocr", "no text layer: the pages are images", kind="pdf", n_pages=n_pages)
    laid = lay_out(pages, metadata.get("title"))
    n_replaced = sum(page.n_replaced for page in pages)
    blocks: list[Block] = laid.blocks
    return finish(
        "pdf", blocks, limits, title=laid.title, n_pages=n_pages, warnings=warnings, n_replaced_chars=n_replaced
    )


def read_pages(library: Any, document: Any) -> list[PageText]:
    """Return every page; one that cannot be read is empty and marked, and costs no other."""
    pages: list[PageText] = []
    for number in range(document.page_count):
        try:
            pages.append(read_page(library, document.load_page(number), number))
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001
            pages.append(PageText(number, 0.0, 0.0, [], is_bad=True))
    return pages
