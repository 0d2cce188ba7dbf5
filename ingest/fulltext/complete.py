"""Whether a file is a whole full text: not cut off, not a preview, not a page about the paper."""

from __future__ import annotations

import re
from pathlib import Path

from ingest.text.result import Extraction

_TAIL = 4096
_LINEARIZED = re.compile(rb"/Linearized\b.{0,400}?/L\s+(\d+)", re.DOTALL)
_LEAST_BODY = 4000
_FEW_PAGES = 4
_CITATION = re.compile(r"\bet al\b|\[\d{1,3}(?:[,;–-]\s?\d{1,3})*\]|\([A-Z][^()]{2,40},? (?:19|20)\d\d[a-z]?[;)]")
_REFERENCES = re.compile(
    r"(?im)^\W*(?:\d+\.?\s*)?(?:(?:notes and |selected )?references?(?: and notes| cited)?|bibliograph(?:y|ie|ía|ia)|literature cited|"
    r"literatur(?:verzeichnis)?|works cited|références(?: bibliographiques)?|referencias|referências|riferimenti|"
    r"список литературы|литература|参考文献|參考文獻)\W*$"
)
# A heading in the type of the text runs together with the list below it; the list then shows by its years.
_RUN_ON = re.compile(
    r"(?im)^\W*(?:\d+\.?\s*)?(?:references?(?: and notes| cited)?|bibliograph(?:y|ie|ía|ia)|literature cited|literatur(?:verzeichnis)?|"
    r"works cited|références|referencias|referências|riferimenti)[:.]?\s+(?=[\[(\dA-ZÀ-Þ])(.{0,3000})"
)
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d[a-z]?(?!\d)")
_ENTRY = re.compile(r"(?m)^\s*(?:\[\d{1,3}\]|\d{1,3}[.)])\s.{20,}\b(?:19|20)\d\d\b")
_NO_BODY = {"abstract", "references", "acknowledgements", "aside", "other"}


def find_cut(path: Path, extraction: Extraction) -> str | None:
    """Say how a file shows that it is not all there, or None.

    A PDF ends with `%%EOF` (ISO 32000-2, 7.5.5), and a linearized one states its length at its start (annex F).
    """
    if extraction.kind == "jats":
        return None if b"</article>" in _ends(path)[1] else "the XML is cut off"
    if extraction.kind != "pdf":
        return None
    head, tail = _ends(path)
    stated = _LINEARIZED.search(head)
    if stated and int(stated[1]) > path.stat().st_size:
        return f"the PDF states {int(stated[1])} bytes and has {path.stat().st_size}"
    if b"%%EOF" not in tail and b"startxref" not in tail:
        return "the PDF has no end"
    if any(w.startswith("bad_pages") for w in extraction.warnings):
        return "some of its pages cannot be read"
    return None


def find_fragment(extraction: Extraction) -> str | None:
    """Say why a readable file is no full text, or None: a landing page, or the first pages alone."""
    if extraction.kind in {"html", "jats"}:
        return _find_landing_page(extraction)
    if extraction.kind != "pdf":
        return f"its content is {extraction.kind}, no full text of a paper"
    if _has_references(extraction):
        return None
    end = extraction.text.rstrip()[-1:]
    if end.islower() or end in {",", "-", "\u2010", "("}:
        return "it ends in the middle of a sentence, without references: the first pages alone"
    begins = any(section.kind in {"abstract", "introduction"} for section in extraction.sections)
    n_citations = len(_CITATION.findall(extraction.text))
    is_short = extraction.n_pages <= _FEW_PAGES
    if (begins and n_citations >= 5) or (is_short and (begins or n_citations >= 3)):
        return "it begins like a paper, cites others and has no references: the first pages alone"
    return None


def n_reference_lists(extraction: Extraction) -> int:
    """Count the lists of references, by their headings."""
    n_marked = sum(section.kind == "references" for section in extraction.sections)
    n_run_on = sum(len(_YEAR.findall(found[1])) >= 3 for found in _RUN_ON.finditer(extraction.text))
    return max(n_marked, len(_REFERENCES.findall(extraction.text)) + n_run_on)


def _has_references(extraction: Extraction) -> bool:
    return n_reference_lists(extraction) > 0 or len(_ENTRY.findall(extraction.text)) >= 5


def _find_landing_page(extraction: Extraction) -> str | None:
    body = [s for s in extraction.sections if s.kind not in {"abstract", "references"}]
    n_chars = sum(s.char_end - s.char_start for s in body)
    if n_chars < _LEAST_BODY:
        return "a page about the paper, or its abstract alone"
    if not any(s.kind not in _NO_BODY for s in body) and len(body) < 4:
        return "a page without the sections of a paper"
    return None


def _ends(path: Path) -> tuple[bytes, bytes]:
    with path.open("rb") as file:
        head = file.read(2048)
        file.seek(max(0, path.stat().st_size - _TAIL))
        return head, file.read()
