"""DOI and arXiv id of the paper itself, and of none that it cites.

What the file's metadata calls its DOI is believed first, then the arXiv stamp, then what stands in heads and feet, then
what the first page says in a line of its own. A DOI inside a sentence is one that is cited.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from corpus.ids import normalize
from ingest.text.fragments import PageText

_DOI = re.compile(r"10\.\d{4,9}(?:\.\d+)*/[^\s\"<>{}|\\^`]+")
_LABELLED = re.compile(r"(?:\bdoi\b\s*:?\s*|doi\.org/)(?=10\.)", re.IGNORECASE)
_OWN_LINE = re.compile(
    r"^[^\w(\[]*(?:(?:article )?doi\b\W*|(?:https?://)?(?:dx\.)?doi\.org/)*10\.\d{4,9}/\S+.{0,60}$", re.IGNORECASE
)
_XMP_DOI = re.compile(r"<(?:prism|pdfx|crossmark|jav):doi[^>]*>\s*(?:doi:)?(10\.[^<\s]+)", re.IGNORECASE)
_STAMP = re.compile(
    r"arXiv:\s?(?P<id>[a-z-]+(?:\.[A-Z]{2})?/\d{7}|\d{4}\.\d{4,5})(?:v\d+)?\s*(?:\[[a-z-]+(?:\.[A-Za-z-]+)?\]|$|\s+\d)"
)
_ARXIV_LINE = re.compile(
    r"^\W{0,3}arXiv:\s?(?P<id>[a-z-]+(?:\.[A-Z]{2})?/\d{7}|\d{4}\.\d{4,5})(?:v\d+)?\b", re.IGNORECASE
)
# Funders (Crossref's registry), data and code repositories: never the paper's own.
_NOT_PAPERS = ("10.13039/", "10.5281/", "10.6084/", "10.5061/", "10.17632/", "10.7910/", "10.17605/", "10.25504/")
_PART = re.compile(r"\.(?:g|t|s|e)\d{3}$")  # PLOS: figures and tables of a paper have its DOI with such an end
_BAND = 0.2


@dataclass(frozen=True, slots=True)
class OwnIdentifiers:
    """What a paper is known by; None where it does not say."""

    doi: str | None = None
    arxiv_id: str | None = None


def find_own_identifiers(pages: Sequence[PageText], metadata: Iterable[str], xmp: str = "") -> OwnIdentifiers:
    """Return the paper's own identifiers; `pages` still hold heads and feet, `metadata` are the file's Info strings."""
    arxiv_id = _arxiv(pages)
    doi = _doi_of_metadata(metadata, xmp) or _doi_of_bands(pages) or _doi_of_first_page(pages)
    if doi and doi.startswith("10.48550/arxiv."):
        arxiv_id = arxiv_id or normalize("arxiv", doi.removeprefix("10.48550/arxiv."))
        doi = None
    return OwnIdentifiers(doi, arxiv_id)


def list_dois(text: str) -> list[str]:
    """Return the DOIs that stand in a text, in their one form, in order."""
    found: list[str] = []
    for match in _DOI.finditer(text):
        doi = normalize("doi", match[0].rstrip(".,;:)]}'’”"))
        if doi and not doi.startswith(_NOT_PAPERS):
            found.append(_PART.sub("", doi))
    return found


def _arxiv(pages: Sequence[PageText]) -> str | None:
    for page in pages[:2]:
        lines = [*page.turned, *(f.text for f in page.fragments)]
        for line in lines:
            if "rXiv" in line and (match := _STAMP.search(line)) and (found := normalize("arxiv", match["id"])):
                return found
    for f in pages[0].fragments if pages else []:
        if (match := _ARXIV_LINE.match(f.text)) and _is_in_band(f.base, pages[0].height):
            return normalize("arxiv", match["id"])
    return None


def _doi_of_metadata(metadata: Iterable[str], xmp: str) -> str | None:
    if match := _XMP_DOI.search(xmp):
        return normalize("doi", match[1])
    for value in metadata:
        dois = list_dois(value)
        if len(set(dois)) == 1:
            return dois[0]
    return None


def _doi_of_bands(pages: Sequence[PageText]) -> str | None:
    counts: Counter[str] = Counter()
    for page in pages[:40]:
        counts.update(
            {
                doi
                for f in page.fragments
                if "10." in f.text and _is_in_band(f.base, page.height)
                for doi in list_dois(f.text)
            }
        )
    for page in pages[:1]:
        counts.update(doi for line in page.turned if "10." in line for doi in list_dois(line))
    best = counts.most_common(1)
    return best[0][0] if best and best[0][1] >= 3 else None


def _doi_of_first_page(pages: Sequence[PageText]) -> str | None:
    """The first DOI that is said to be one in a line of its own, or in the head or foot of the page."""
    if not pages:
        return None
    page = pages[0]
    for f in page.fragments:
        if "10." in f.text and (
            _OWN_LINE.match(f.text) or (_LABELLED.search(f.text) and _is_in_band(f.base, page.height))
        ):
            dois = list_dois(f.text)
            if dois:
                return dois[0]
    for line in page.turned:
        dois = list_dois(line)
        if dois:
            return dois[0]
    return None


def _is_in_band(base: float, height: float) -> bool:
    return base < _BAND * height or base > (1 - _BAND) * height
