"""A work: one provider's record of a publication, read into one shape whoever sent it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Location:
    """One address of a full text, or of a page about it.

    `kind` is `pdf`, `xml`, `html` (full texts) or `landing` (a page that may lead to one). `version` is `published`,
    `accepted`, `submitted`, or None where the provider does not say. `licence` is a short name such as `cc-by-4.0`,
    or the licence's address. `host` is `publisher` or `repository`. `is_open` is None where nobody promises either.
    """

    url: str
    kind: str = "landing"
    version: str | None = None
    licence: str | None = None
    host: str | None = None
    is_open: bool | None = None


@dataclass(frozen=True, slots=True)
class Related:
    """A link to another publication.

    `relation` is one of `is-preprint-of`, `has-preprint`, `is-version-of`, `has-version`, `is-identical-to`,
    `is-cited-by`, `is-part-of`, `retracts`, `retracted-by`, `corrects`, `corrected-by`; `identifier` is `kind:value`.
    """

    relation: str
    identifier: str


@dataclass(frozen=True, slots=True)
class Work:
    """What one provider says about one publication; None means that it does not say.

    `identifiers` maps kinds (doi, arxiv, pmid, pmcid, openalex, s2, acl, openreview, and providers' own) to values in
    their one form. `references` are `kind:value` where the cited paper has an identifier, else the text of the
    reference. `published_on` is an ISO date, and only a whole one. `n_citations_by_year` maps years to counts.
    """

    source: str
    source_id: str | None = None
    identifiers: dict[str, str] = field(default_factory=dict)
    title: str | None = None
    abstract: str | None = None
    authors: list[str] = field(default_factory=list)
    year: int | None = None
    published_on: str | None = None
    venue: str | None = None
    locations: list[Location] = field(default_factory=list)
    n_citations: int | None = None
    references: list[str] = field(default_factory=list)
    is_retracted: bool | None = None
    arxiv_version: int | None = None
    kind: str | None = None
    licence: str | None = None
    tldr: str | None = None
    related: list[Related] = field(default_factory=list)
    n_citations_by_year: dict[str, int] = field(default_factory=dict)
    updated_on: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Give the work as plain values, every field present, ready for `json.dumps`."""
        return asdict(self)
