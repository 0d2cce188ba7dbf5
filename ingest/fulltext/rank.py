"""In which order the places of a full text are tried, and the places that follow from an identifier alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, urlsplit

from corpus.ids import implied_identifiers, parse_identifier
from ingest.work import Location

HostRecord = Mapping[str, tuple[int, int]]
"""Host → how often a file from it was stored, and how often it was not to be had or not the right one."""

# A file of the article as it appeared is better than one before review; unknown stands between.
_VERSIONS = {"published": 0, "accepted": 1, None: 2, "submitted": 3}
# A PDF has pages to quote by; XML reads best of the rest; a page may only lead to a file.
_KINDS = {"pdf": 0, "xml": 1, "html": 2, "landing": 3}
_SUPPLEMENT = re.compile(
    r"(?i)moesm\d|[/_.-](?:suppl?(?:ement(?:ary)?)?|supporting|esm|appendix|additional[_-]?file)s?[/_.\d-]|[_-]si[_-]?\d*\.(?:pdf|docx?)$"
)


def known_locations(identifiers: Mapping[str, str], arxiv_version: int | None = None) -> list[Location]:
    """Give the places that an identifier itself names: arXiv, the ACL Anthology, OpenReview and Europe PMC are free."""
    known = implied_identifiers(identifiers)
    found: list[Location] = []
    if arxiv := known.get("arxiv"):
        name = f"{arxiv}v{arxiv_version}" if arxiv_version else arxiv
        found.append(Location(f"https://arxiv.org/pdf/{name}", "pdf", "submitted", None, "repository", is_open=True))
        found.append(Location(f"https://arxiv.org/html/{name}", "html", "submitted", None, "repository", is_open=True))
    if acl := known.get("acl"):
        found.append(
            Location(f"https://aclanthology.org/{acl}.pdf", "pdf", "published", None, "publisher", is_open=True)
        )
    if openreview := known.get("openreview"):
        url = f"https://openreview.net/pdf?id={quote(openreview)}"
        found.append(Location(url, "pdf", None, None, "repository", is_open=True))
    if pmcid := known.get("pmcid"):
        url = f"https://www.ebi.ac.uk/europepmc/webservices/rest/{pmcid}/fullTextXML"
        found.append(Location(url, "xml", None, None, "repository", is_open=True))
    return found


def ranked(locations: Iterable[Location], record: HostRecord | None = None) -> list[Location]:
    """Order places, best first, each address once; those that are known to be closed or supplements are left out.

    Files come before pages that may lead to one; then published, accepted, unknown, submitted; a PDF before other
    kinds; a licence before none; the host with the better record; and last the address, so that the order is fixed.
    HTML of a repository comes after every PDF and XML: it is the full text where there is no better one.
    """
    best: dict[str, Location] = {}
    for place in locations:
        if place.is_open is False or _SUPPLEMENT.search(urlsplit(place.url).path):
            continue
        same = _same_file(place.url)
        if same not in best or _order(place, record or {}) < _order(best[same], record or {}):
            best[same] = place
    return sorted(best.values(), key=lambda place: _order(place, record or {}))


def _order(place: Location, record: HostRecord) -> tuple[int, int, int, int, float, str]:
    n_good, n_bad = record.get((urlsplit(place.url).hostname or "").lower(), (0, 0))
    doubt = (n_bad + 1) / (n_good + n_bad + 2)
    group = {"pdf": 0, "xml": 0, "html": 1}.get(place.kind, 2)
    # A host that has failed again and again (bot checks, walls) waits behind the others of its group.
    return (
        group,
        int(n_bad >= 5 and doubt > 0.9),
        _VERSIONS.get(place.version, 2),
        _KINDS.get(place.kind, 3),
        round(doubt + (0.0 if place.licence else 0.25), 3),
        place.url,
    )


def _same_file(url: str) -> str:
    """Name the file behind an address: arXiv's PDF of one version has several, and http and https are one."""
    found = parse_identifier(url)
    if found and found.kind == "arxiv":
        form = "html" if "/html/" in url else "abs" if "/abs/" in url else "pdf"
        return f"arxiv:{found.value}:{form}"
    return re.sub(r"^https?://(?:www\.)?", "", url).rstrip("/")
