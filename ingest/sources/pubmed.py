"""PubMed's XML of a record as a work."""

from __future__ import annotations

import re

from ingest.sources import fields as f
from ingest.sources.markup import Element, attribute, child, children, descend, inner, raw, words
from ingest.sources.words import abstract_of, plain
from ingest.work import Related, Work

_COMMENTS = {
    "ErratumIn": "corrected-by", "ErratumFor": "corrects", "RetractionIn": "retracted-by", "RetractionOf": "retracts",
    "PartialRetractionIn": "corrected-by", "UpdateOf": "is-version-of", "UpdateIn": "has-version",
}  # fmt: skip


def work_of_pubmed(source: str, record: Element) -> Work | None:
    """Read a `<PubmedArticle>` or `<PubmedBookArticle>`, or None where there is neither id nor title."""
    citation = child(record, "MedlineCitation")
    article = child(citation, "Article")
    if citation is None:  # a book or a chapter
        citation = article = child(record, "BookDocument")
    found = _identifiers(record, citation, article)
    title = words(article, "ArticleTitle") or words(article, "VernacularTitle") or words(article, "Book", "BookTitle")
    if not found and not title:
        return None
    kinds = [inner(item) for item in descend(article, "PublicationType")]
    related = _related(citation)
    year, day = _date(article)
    return Work(
        source=source,
        source_id=found.get("pmid") or found.get("doi"),
        identifiers=found,
        title=title,
        abstract=_abstract(article),
        authors=_authors(article),
        year=year,
        published_on=day,
        venue=words(article, "Journal", "Title") or words(article, "Journal", "ISOAbbreviation"),
        references=_references(record),
        is_retracted="Retracted Publication" in kinds or any(item.relation == "retracted-by" for item in related),
        kind=kinds[0] if kinds else None,
        related=related,
        updated_on=_day(child(citation, "DateRevised")),
    )


def _identifiers(record: Element, citation: Element | None, article: Element | None) -> dict[str, str]:
    values: dict[str, str] = {"pmid": inner(citation, "PMID")}
    # The list directly below PubmedData is this record's; others belong to its references.
    for holder in ("PubmedData", "PubmedBookData"):
        for item in children(child(record, holder, "ArticleIdList"), "ArticleId"):
            kind = {"pubmed": "pmid", "doi": "doi", "pmc": "pmcid", "pmcid": "pmcid"}.get(
                attribute(item, "IdType") or ""
            )
            if kind and not values.get(kind):
                values[kind] = inner(item)
    for item in children(article, "ELocationID"):
        if attribute(item, "EIdType") == "doi" and attribute(item, "ValidYN") != "N":
            values.setdefault("doi", inner(item))
    return f.identifiers(**values)


def _abstract(article: Element | None) -> str | None:
    parts: list[str] = []
    for item in children(child(article, "Abstract"), "AbstractText"):
        said = plain(raw(item))
        label = attribute(item, "Label")
        if said:
            parts.append(f"{label.rstrip(':')}: {said}" if label and label.upper() != "UNLABELLED" else said)
    return abstract_of(" ".join(parts))


def _authors(article: Element | None) -> list[str]:
    names: list[str | None] = []
    for group in children(article, "AuthorList"):
        if attribute(group, "Type") == "editors":
            continue
        for item in children(group, "Author"):
            person = f.person(inner(item, "ForeName") or inner(item, "Initials"), inner(item, "LastName"))
            if person and (suffix := inner(item, "Suffix")):
                person = f"{person} {suffix}"
            names.append(person or inner(item, "CollectiveName") or None)
    return f.people(names)


def _day(element: Element | None) -> str | None:
    return f.day_of(inner(element, "Year"), inner(element, "Month"), inner(element, "Day"))


def _date(article: Element | None) -> tuple[int | None, str | None]:
    """Give year and day: of the journal's issue, the electronic date where that is the whole one."""
    issue = child(article, "Journal", "JournalIssue", "PubDate")
    if issue is None:
        issue = child(article, "Book", "PubDate")
    electronic = child(article, "ArticleDate")
    season = re.search(r"[12]\d{3}", inner(issue, "MedlineDate"))
    year = f.year(inner(issue, "Year"), season[0] if season else None, inner(electronic, "Year"))
    return year, _day(electronic) or _day(issue)


def _related(citation: Element | None) -> list[Related]:
    found: list[Related] = []
    for item in descend(child(citation, "CommentsCorrectionsList"), "CommentsCorrections"):
        relation = _COMMENTS.get(attribute(item, "RefType") or "")
        doi = re.search(r"(?i)\bdoi:\s*(10\.\S+)", inner(item, "RefSource"))
        named = f.reference(doi[1] if doi else None, pmid=inner(item, "PMID"))
        if relation and named:
            found.append(Related(relation, named))
    return list(dict.fromkeys(found))


def _references(record: Element) -> list[str]:
    found: list[str | None] = []
    for item in descend(child(record, "PubmedData"), "Reference"):
        ids = {attribute(i, "IdType") or "": inner(i) for i in children(child(item, "ArticleIdList"), "ArticleId")}
        found.append(f.reference(ids.get("doi"), inner(item, "Citation"), pmid=ids.get("pubmed"), pmcid=ids.get("pmc")))
    return [ref for ref in found if ref]
