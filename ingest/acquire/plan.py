"""Which sources are asked for a paper: by its identifiers, by what is still missing, and never twice for nothing.

First the sources that hold the paper's own record and the open indexes; only when title or an open place is missing
after that, the wider ones. What ended as absent, refused or nonsense is asked for again after `REFRESH_DAYS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ingest.preprints import is_preprint_doi
from ingest.sources.base import Source

REFRESH_DAYS: Final = 30
FIRST: Final = (
    "arxiv", "crossref", "acl-anthology", "openreview", "europe-pmc", "openalex", "semantic-scholar",
)  # fmt: skip
"""Asked for every paper that they can look up."""
FULL_TEXT: Final = ("unpaywall",)
"""Asked only when a full text is wanted and no open place is known."""
WIDER: Final = (
    "datacite", "ncbi-pmc", "hal", "inspire-hep", "doaj", "core", "zenodo", "biorxiv", "plos", "dblp",
)  # fmt: skip
"""Asked only for what the first ones did not know."""
# Registrants whose papers a source of their own describes best.
_OWN: Final = {"datacite": ("10.48550/", "10.5281/"), "zenodo": ("10.5281/zenodo.",), "plos": ("10.1371/",)}
_TRANSIENT: Final = {"throttled", "down"}


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a paper when sources are chosen; `asked` maps sources to (outcome, seconds ago)."""

    paper_pk: int
    has_title: bool
    has_abstract: bool
    nodes: list[str]
    has_document: bool
    has_location: bool
    has_address: bool
    asked: dict[str, list[Any]]

    @property
    def identifiers(self) -> dict[str, str]:
        """One value a kind; of several DOIs the article's, not the preprint's."""
        found: dict[str, str] = {}
        for node in self.nodes:
            kind, _, value = node.partition(":")
            if kind not in found or (kind == "doi" and is_preprint_doi(found[kind]) and not is_preprint_doi(value)):
                found[kind] = value
        return found

    def is_due(self, source: str) -> bool:
        """Whether a source has not said its word on the paper, or said it long ago."""
        if source not in self.asked:
            return True
        outcome, ago_s = self.asked[source]
        return outcome in _TRANSIENT or ago_s > REFRESH_DAYS * 86400


@dataclass(frozen=True, slots=True)
class Need:
    """What a run wants to know of papers. `is_listed` papers are asked for at all sources that hold records of theirs."""

    has_full_texts: bool = True
    is_listed: bool = True


def is_complete(paper: Known) -> bool:
    """Whether a paper is usable without any source: titled, its full text there, and no source ever asked."""
    return paper.has_title and paper.has_document and not paper.asked


def choose(paper: Known, sources: Mapping[str, Source], need: Need) -> list[str]:
    """The sources to be asked now, in a fixed order; none once everything is known that they could add."""
    ids = paper.identifiers
    if not ids or is_complete(paper):
        return []
    owed = [name for name, (outcome, _) in paper.asked.items() if outcome in _TRANSIENT and _can(name, ids, sources)]
    is_enough = paper.has_title and paper.has_abstract and (paper.has_location or not need.has_full_texts)
    if not need.is_listed and is_enough:
        return sorted(owed)  # found by a search whose answer said enough
    wants_place = need.has_full_texts and not (paper.has_document or paper.has_location)
    first = [name for name in FIRST if _can(name, ids, sources)]
    chosen = [name for name in first if paper.is_due(name)]
    doi = ids.get("doi", "")
    chosen += [n for n, heads in _OWN.items() if doi.startswith(heads) and paper.is_due(n) and _can(n, ids, sources)]
    if wants_place:
        chosen += [name for name in FULL_TEXT if paper.is_due(name) and _can(name, ids, sources)]
    if not chosen and ((wants_place and need.is_listed) or not paper.has_title):
        chosen = [name for name in WIDER if paper.is_due(name) and _can(name, ids, sources)]
    return list(dict.fromkeys(chosen))


def _can(name: str, identifiers: Mapping[str, str], sources: Mapping[str, Source]) -> bool:
    return name in sources and sources[name].lookup(identifiers) is not None
