"""The first pages of a file as a reader sees them, stamps and running heads included.

Extraction drops what is not running text; here just that is evidence: arXiv's stamp, the line with the DOI, the cover.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from corpus.ids import parse_identifier
from ingest.text.result import Extraction

_N_PAGES = 5
_STAMP = re.compile(
    r"arXiv:\s?([a-z-]+(?:\.[A-Z]{2})?/\d{7}|\d{4}\.\d{4,5})v\d+\s+(?:\[[a-z-]+(?:\.[A-Za-z-]+)?\]\s+)?\d{1,2}\s+[A-Z][a-z]{2}\s+\d{4}"
)
_DOI = re.compile(r"10\.\d{4,9}/[^\s\"<>|]+[^\s\"<>|.,;:)\]]")
_DOI_LINE = re.compile(r"(?i)^\W*(?:doi:?\s*|https?://(?:dx\.)?doi\.org/)*(10\.\d{4,9}/\S+?)[\s.;,]*$")
_GOES_ON = re.compile(r"(?!doi\b|https?\b|www\b|e\b|e?mail\b)[a-z]+(?:[\s,;.]|$)")  # not `bioRxiv preprint`
_REFERENCES = re.compile(
    r"(?i)^\W*(?:\d+\.?\s*)?(?:references?|bibliography|literature cited|works cited|references and notes)\W*$"
)


@dataclass(frozen=True, slots=True)
class Front:
    """What the first pages show. `pages` are their lines up to the reference list.

    `stamped_arxiv` is the id that arXiv printed at the edge; `own_dois` are those that stand alone in a line of the
    first two pages or in the file's properties; `named_dois` all of the first page.
    """

    pages: tuple[tuple[str, ...], ...]
    titles: tuple[str, ...] = ()
    stamped_arxiv: str | None = None
    own_dois: frozenset[str] = frozenset()
    named_dois: frozenset[str] = frozenset()

    def text(self, first: int = 0, last: int = _N_PAGES) -> str:
        """Give the lines of some pages as one text."""
        return "\n".join(line for page in self.pages[first:last] for line in page)


def read_front(path: Path, extraction: Extraction) -> Front:
    """Read the first pages of a file whose extraction went well."""
    titles = [extraction.title] if extraction.title else []
    properties = ""
    if extraction.kind == "pdf":
        raw, properties = _pdf_pages(path)
    else:
        raw = [extraction.text[:8000]]
    dois = set(_dois(properties))
    spoken_of: set[str] = set()
    stamp = next((m for page in raw[:3] if (m := _STAMP.search(" ".join(page.split())))), None)
    arxiv = parse_identifier(stamp[1] if stamp else extraction.arxiv_id or "")
    for page in raw[:2]:
        lines = [*(line.strip() for line in page.splitlines() if line.strip()), ""]
        for line, following in itertools.pairwise(lines):
            # A sentence that goes on below has only been broken there: it speaks of somebody's DOI.
            if alone := _DOI_LINE.match(line):
                (spoken_of if _GOES_ON.match(following) else dois).update(_dois(alone[1]))
    if extraction.doi:
        dois.update(doi for doi in _dois(extraction.doi) if doi not in spoken_of)
    return Front(
        pages=_until_references(raw),
        titles=tuple(titles),
        stamped_arxiv=arxiv.value if arxiv and arxiv.kind == "arxiv" else None,
        own_dois=frozenset(dois),
        named_dois=frozenset(_dois(raw[0])) if raw else frozenset(),
    )


def _dois(text: str) -> list[str]:
    found = (parse_identifier(m) for m in _DOI.findall(text))
    return [f.value for f in found if f and f.kind == "doi"]


def _until_references(raw: list[str]) -> tuple[tuple[str, ...], ...]:
    pages: list[tuple[str, ...]] = []
    for page in raw:
        lines: list[str] = []
        for line in page.splitlines():
            if _REFERENCES.match(line):
                # Two columns: what follows in reading order is the list, to the end of what we look at.
                return (*pages, tuple(lines))
            if line.strip():
                lines.append(line.strip())
        pages.append(tuple(lines))
    return tuple(pages)


def _pdf_pages(path: Path) -> tuple[list[str], str]:
    import pymupdf

    try:
        with pymupdf.open(path, filetype="pdf") as document:
            metadata = document.metadata or {}
            pages = [str(document.load_page(n).get_text()) for n in range(min(_N_PAGES, document.page_count))]
            properties = " ".join(str(metadata.get(k) or "") for k in ("subject", "keywords"))
            return pages, f"{properties} {document.get_xml_metadata()}"
    except Exception:
        return [], ""
