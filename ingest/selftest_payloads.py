"""A tiny answer of each source, written by hand in its own shape: what the self-test gives to the adapters.

Each holds one work titled `TITLE` with the identifier that is named beside it. They are the forms that the services
use; a test holds that there is one for every adapter.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

TITLE: Final = "How snails carry their houses"
DOI: Final = "10.1000/snails.1"


@dataclass(frozen=True, slots=True)
class Payload:
    """One answer, and an identifier of the work that must be read out of it."""

    body: bytes
    identifier: tuple[str, str] = ("doi", DOI)
    url: str = ""


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


_ATOM = (
    '<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>http://arxiv.org/abs/2001.00001v2</id>'
    f"<title>{TITLE}</title><summary>They are slow.</summary><author><name>Ada L</name></author>"
    "<published>2020-01-01T00:00:00Z</published></entry></feed>"
)
_CROSSREF = {
    "message-type": "work",
    "message": {"DOI": DOI, "title": [TITLE], "issued": {"date-parts": [[2020, 1, 1]]}},
}
_JATS = (
    "<article><front><journal-meta><journal-title-group><journal-title>J</journal-title></journal-title-group></journal-meta>"
    f'<article-meta><article-id pub-id-type="doi">{DOI}</article-id><article-id pub-id-type="pmcid">PMC123</article-id>'
    f"<title-group><article-title>{TITLE}</article-title></title-group></article-meta></front></article>"
)

PAYLOADS: Final[dict[str, Payload]] = {
    "acl-anthology": Payload(
        f'@inproceedings{{snail-2020-house,\n title = "{TITLE}",\n author = "L, Ada",\n year = "2020",\n'
        f' url = "https://aclanthology.org/2020.acl-main.1",\n doi = "{DOI}"\n}}\n'.encode(),
        ("doi", DOI),
    ),
    "arxiv": Payload(_ATOM.encode(), ("arxiv", "2001.00001")),
    "biorxiv": Payload(
        _json({"messages": [{"status": "ok"}], "collection": [
            {"doi": DOI, "title": TITLE, "authors": "L, A.", "date": "2020-01-01", "version": "1", "abstract": "Slow.",
             "server": "biorxiv", "license": "cc_by"}]})
    ),
    "core": Payload(_json({"totalHits": 1, "results": [{"id": 1, "doi": DOI, "title": TITLE, "authors": [{"name": "Ada L"}], "yearPublished": 2020}]})),
    "crossref": Payload(_json(_CROSSREF)),
    "datacite": Payload(
        _json({"data": {"id": DOI, "type": "dois", "attributes": {"doi": DOI, "titles": [{"title": TITLE}], "publicationYear": 2020, "creators": [{"name": "L, Ada"}]}}})
    ),
    "dblp": Payload(
        _json({"result": {"hits": {"@total": "1", "hit": [{"info": {"title": f"{TITLE}.", "year": "2020", "key": "journals/x/L20", "doi": DOI,
                                                                  "type": "Journal Articles", "authors": {"author": {"text": "Ada L"}}}}]}}})
    ),
    "doaj": Payload(
        _json({"total": 1, "results": [{"id": "a", "bibjson": {"title": TITLE, "year": "2020", "identifier": [{"type": "doi", "id": DOI}], "author": [{"name": "Ada L"}]}}]})
    ),
    "europe-pmc": Payload(
        _json({"hitCount": 1, "resultList": {"result": [{"id": "7", "source": "MED", "pmid": "7", "doi": DOI, "title": TITLE, "pubYear": "2020"}]}})
    ),
    "hal": Payload(_json({"response": {"numFound": 1, "docs": [{"docid": 1, "halId_s": "hal-1", "title_s": [TITLE], "doiId_s": DOI, "producedDateY_i": 2020}]}})),
    "inspire-hep": Payload(_json({"hits": {"total": 1, "hits": [{"id": "1", "metadata": {"control_number": 1, "titles": [{"title": TITLE}], "dois": [{"value": DOI}]}}]}})),
    "ncbi-pmc": Payload(_JATS.encode(), ("pmcid", "PMC123")),
    "openalex": Payload(_json({"id": "https://openalex.org/W1", "doi": f"https://doi.org/{DOI}", "title": TITLE, "publication_year": 2020})),
    "openreview": Payload(
        _json({"notes": [{"id": "abcd1234", "forum": "abcd1234", "content": {"title": {"value": TITLE}, "authors": {"value": ["Ada L"]}}}]}),
        ("openreview", "abcd1234"),
    ),
    "plos": Payload(
        _json({"response": {"numFound": 1, "docs": [{"id": "10.1371/journal.pone.0000001", "title_display": TITLE, "publication_date": "2020-01-01T00:00:00Z"}]}}),
        ("doi", "10.1371/journal.pone.0000001"),
    ),
    "semantic-scholar": Payload(_json({"paperId": "a" * 40, "title": TITLE, "year": 2020, "externalIds": {"DOI": DOI}, "authors": [{"name": "Ada L"}]})),
    "unpaywall": Payload(_json({"doi": DOI, "title": TITLE, "year": 2020, "is_oa": False, "oa_locations": [], "best_oa_location": None})),
    "zenodo": Payload(_json({"id": 123, "doi": DOI, "metadata": {"title": TITLE, "publication_date": "2020-01-01", "creators": [{"name": "L, Ada"}]}, "files": []})),
}  # fmt: skip

CITED_DOI: Final = "10.1000/snails.cited"
CITING: Final[dict[str, Payload]] = {
    "crossref": Payload(
        _json({"message-type": "work", "message": {"DOI": "10.1000/snails.citing.1", "title": ["Snails that cite by DOI"],
                                                   "issued": {"date-parts": [[2021, 1, 1]]}, "reference": [{"key": "1", "DOI": CITED_DOI}]}}),
        ("doi", "10.1000/snails.citing.1"),
    ),
    "openalex": Payload(
        _json({"id": "https://openalex.org/W2", "doi": "https://doi.org/10.1000/snails.citing.2", "title": "Snails that cite by number",
               "publication_year": 2021, "referenced_works": ["https://openalex.org/W1"]}),
        ("doi", "10.1000/snails.citing.2"),
    ),
}  # fmt: skip
"""Answers that cite the paper of `CITED`: one by its DOI, one by the source's own number."""
CITED: Final = Payload(
    _json({"id": "https://openalex.org/W1", "doi": f"https://doi.org/{CITED_DOI}", "title": "Snails that are cited", "publication_year": 2020}),
    ("doi", CITED_DOI),
)  # fmt: skip
