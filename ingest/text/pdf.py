"""PDF: opens the bytes, tells what cannot be used, and reads page by page. Runs inside the child."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ingest.text.arabic import mend_lam_alef
from ingest.text.finish import finish
from ingest.text.fragments import PageText, read_page
from ingest.text.glyphs import REPLACEMENT
from ingest.text.identifiers import find_own_identifiers
from ingest.text.layout import lay_out
from ingest.text.limits import Limits
from ingest.text.quality import judge
from ingest.text.result import Extraction, refuse

_MIN_PAGE_CHARS = 40
_TAIL_BYTES = 4096
_MAX_BARE = 0.25


def load_library() -> Any:
    """Import PyMuPDF without its layout models, which cost half a second and 30 MB and are not used."""
    if "pymupdf" not in sys.modules:
        unused = [name for name in ("pymupdf.layout", "pymupdf4llm") if name not in sys.modules]
        sys.modules.update(dict.fromkeys(unused))  # type: ignore[arg-type]  None: "cannot be imported"
        import pymupdf

        for name in unused:
            del sys.modules[name]

        pymupdf.TOOLS.mupdf_display_errors(False)
        pymupdf.TOOLS.mupdf_display_warnings(False)
    return sys.modules["pymupdf"]


def extract_pdf(content: bytes, limits: Limits, *, ocr_scratch: Path | None = None) -> Extraction:
    """Return what the pages of a PDF say, or the verdict why nothing can be had.

    With `ocr_scratch`, a folder for working files, pages without a usable text layer are recognised.
    """
    outcome = _extract(content, limits)
    if ocr_scratch is None or outcome.verdict != "needs_ocr":
        return outcome
    from ingest.text.ocr import RecognitionFailed, recognise

    try:
        recognised = recognise(content, ocr_scratch, limits.ocr_seconds)
    except RecognitionFailed as failure:
        return replace(outcome, reason=f"{outcome.reason}; {failure}")
    read = _extract(recognised, limits)
    if not read.is_ok:
        return replace(outcome, reason=f"{outcome.reason}; text recognition found no text either")
    return replace(read, warnings=tuple(dict.fromkeys((*read.warnings, "ocr", "low_text_quality"))))


def _extract(content: bytes, limits: Limits) -> Extraction:
    library = load_library()
    try:
        document = library.open(stream=content, filetype="pdf")
    except Exception as error:
        if _has_no_end(content):
            return refuse("incomplete", "the file is cut off", kind="pdf")
        return refuse("damaged", f"the PDF cannot be opened: {error}", kind="pdf")
    with document:
        if document.needs_pass:
            return refuse("encrypted", "a password is needed to open it", kind="pdf")
        n_pages = document.page_count
        is_cut = document.is_repaired and _has_no_end(content)
        if n_pages == 0:
            return refuse(
                "incomplete" if is_cut else "no_pages",
                "the file is cut off" if is_cut else "the PDF has no pages",
                kind="pdf",
            )
        if n_pages > limits.n_pages:
            return refuse("too_large", f"{n_pages} pages; the limit is {limits.n_pages}", kind="pdf", n_pages=n_pages)
        warnings = ["repaired"] if document.is_repaired else []
        if is_cut:
            warnings.append("incomplete")
        pages = read_pages(library, document)
        info = _info(document)
        xmp = _xmp(document)
        unusable = _find_unusable(document, pages)
    n_bare = sum(not page.fragments for page in pages)
    if is_cut and n_bare >= _MAX_BARE * n_pages:
        return refuse(
            "incomplete", f"the file is cut off: {n_bare} of {n_pages} pages are empty", kind="pdf", n_pages=n_pages
        )
    n_bad = sum(page.is_bad for page in pages)
    if n_bad == n_pages:
        return refuse("damaged", "no page can be read", kind="pdf", n_pages=n_pages)
    if n_bad:
        warnings.append(f"bad_pages:{n_bad}")
    if unusable is not None:
        return unusable
    judgement = judge(f.text for page in pages for f in page.fragments)
    if judgement.quality == "garbage":
        return refuse(
            "needs_ocr",
            f"garbage text layer: {judgement.reason}",
            kind="pdf",
            n_pages=n_pages,
            warnings=["low_text_quality"],
        )
    if judgement.quality == "low":
        warnings.append("low_text_quality")
    n_swapped = mend_lam_alef(f for page in pages for f in page.fragments)
    if n_swapped:
        warnings.append(f"swapped_lam_alef:{n_swapped}")
    own = find_own_identifiers(pages, info.values(), xmp)
    laid = lay_out(pages, info.get("Title"), judgement.language)
    n_replaced = sum(block.text.count(REPLACEMENT) for block in laid.blocks)
    return finish(
        "pdf",
        laid.blocks,
        limits,
        title=laid.title if judgement.quality == "good" else None,
        n_pages=n_pages,
        warnings=warnings,
        n_replaced_chars=n_replaced,
        doi=own.doi,
        arxiv_id=own.arxiv_id,
        language=judgement.language,
    )


def _has_no_end(content: bytes) -> bool:
    """Whether the mark that ends every PDF is missing, as in a download that was cut off."""
    return b"%%EOF" not in content[-_TAIL_BYTES:]


def _find_unusable(document: Any, pages: Sequence[PageText]) -> Extraction | None:
    """The verdict for scans: no text at all, or only a cover page in front of pictures."""
    n_pages = len(pages)
    bare = [page.number for page in pages if sum(f.n_chars for f in page.fragments) < _MIN_PAGE_CHARS]
    if not any(page.fragments for page in pages):
        return refuse("needs_ocr", "no text layer: the pages are images", kind="pdf", n_pages=n_pages)
    if n_pages >= 4 and len(bare) >= 0.75 * n_pages and _n_with_images(document, bare) > 0.5 * n_pages:
        words = f"only {n_pages - len(bare)} of {n_pages} pages have a text layer, the others are images"
        return refuse("needs_ocr", words, kind="pdf", n_pages=n_pages)
    return None


def _n_with_images(document: Any, numbers: Sequence[int]) -> int:
    try:
        return sum(bool(document.get_page_images(number)) for number in numbers)
    except Exception:
        return 0


def _info(document: Any) -> dict[str, str]:
    """The strings of the file's Info dictionary; empty where it is broken."""
    try:
        kind, value = document.xref_get_key(-1, "Info")
        if kind != "xref":
            return {}
        xref = int(value.split()[0])
        found: dict[str, str] = {}
        for key in document.xref_get_keys(xref)[:40]:
            kind, value = document.xref_get_key(xref, key)
            if kind == "string":
                found[key] = value[:1000]
    except Exception:
        return {}
    return found


def _xmp(document: Any) -> str:
    try:
        return (document.get_xml_metadata() or "")[:100_000]
    except Exception:
        return ""


def read_pages(library: Any, document: Any) -> list[PageText]:
    """Return every page; one that cannot be read is empty and marked, and costs no other."""
    pages: list[PageText] = []
    for number in range(document.page_count):
        try:
            pages.append(read_page(library, document.load_page(number), number))
        except MemoryError:
            raise
        except Exception:
            pages.append(PageText(number, 0.0, 0.0, [], is_bad=True))
    return pages
