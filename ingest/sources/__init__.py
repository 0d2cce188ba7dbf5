"""Every source of scholarly records, by the name under which its answers are stored and asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ingest.sources.acl_anthology import AclAnthology
from ingest.sources.arxiv import Arxiv
from ingest.sources.base import Access, Source
from ingest.sources.biorxiv import Biorxiv
from ingest.sources.core import Core
from ingest.sources.crossref import Crossref
from ingest.sources.datacite import DataCite
from ingest.sources.dblp import Dblp
from ingest.sources.doaj import Doaj
from ingest.sources.europe_pmc import EuropePmc
from ingest.sources.hal import Hal
from ingest.sources.inspire_hep import InspireHep
from ingest.sources.ncbi_pmc import NcbiPmc
from ingest.sources.openalex import OpenAlex
from ingest.sources.openreview import OpenReview
from ingest.sources.plos import Plos
from ingest.sources.semantic_scholar import SemanticScholar
from ingest.sources.unpaywall import Unpaywall
from ingest.sources.zenodo import Zenodo

__all__ = ["KEYED", "SOURCES", "key_setting", "make_sources"]

SOURCES: Final[Mapping[str, Callable[[Access], Source]]] = {
    kind.name: kind
    for kind in (
        AclAnthology, Arxiv, Biorxiv, Core, Crossref, DataCite, Dblp, Doaj, EuropePmc, Hal, InspireHep, NcbiPmc,
        OpenAlex, OpenReview, Plos, SemanticScholar, Unpaywall, Zenodo,
    )
}  # fmt: skip
"""Name → what makes the source out of the user's access to it."""

KEYED: Final = frozenset({"core", "ncbi-pmc", "openalex", "openreview", "semantic-scholar", "zenodo"})
"""Sources that take a key."""


def key_setting(name: str) -> str:
    """Give the environment variable of a source's key: `semantic-scholar` → `BRAIN_SEMANTIC_SCHOLAR_API_KEY`."""
    return f"BRAIN_{name.replace('-', '_').upper()}_API_KEY"


def make_sources(environment: Mapping[str, str]) -> dict[str, Source]:
    """Make every source with the contact address and the keys that the environment holds."""
    mail = environment.get("BRAIN_CONTACT_EMAIL", "").strip() or None
    return {
        name: make(Access(mail, environment.get(key_setting(name), "").strip() or None if name in KEYED else None))
        for name, make in SOURCES.items()
    }
