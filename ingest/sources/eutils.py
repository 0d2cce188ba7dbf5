"""Summaries and links as NCBI's E-utilities send them, in JSON and in XML."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from ingest.sources import fields as f
from ingest.sources.base import Answer
from ingest.sources.markup import Element, attribute, child, children, descend, inner, local
from ingest.sources.words import title_of
from ingest.work import Work


def database_of(url: str) -> str:
    """Give the database that a request named; PubMed is the default of all tools."""
    return (parse_qs(urlsplit(url).query).get("db") or ["pubmed"])[0].lower()


def of_summary(source: str, value: f.Json, uid: str, answer: Answer) -> Work | None:
    """Read one summary of an esummary answer in JSON."""
    record = f.mapping(value["result"].get(uid))
    ids = {f.text(i.get("idtype")): i.get("value") for i in f.objects(record.get("articleids"))}
    database = database_of(answer.url)
    found = f.identifiers(
        pmid=ids.get("pubmed") or ids.get("pmid") or (uid if database == "pubmed" else None),
        doi=ids.get("doi"),
        pmcid=ids.get("pmc") or ids.get("pmcid") or (f"PMC{uid}" if database == "pmc" else None),
    )
    if not found or record.get("error"):
        return None
    kinds = f.texts(record.get("pubtype"))
    return Work(
        source=source,
        source_id=next(iter(found.values())),
        identifiers=found,
        title=title_of(record.get("title")),
        authors=f.people(f.text(a.get("name")) for a in f.objects(record.get("authors"))),
        year=f.year(record.get("pubdate"), record.get("epubdate")),
        published_on=f.day((f.text(record.get("sortpubdate")) or "").replace("/", "-")),
        venue=f.text(record.get("fulljournalname")) or f.text(record.get("source")),
        n_citations=f.number(record.get("pmcrefcount")),
        is_retracted="Retracted Publication" in kinds if kinds else None,
        kind=kinds[0] if kinds else None,
    )


def of_docsum(source: str, summary: Element, answer: Answer) -> Work | None:
    """Read a summary in XML, old (`<Item Name=…>`) or new (elements with names)."""
    uid = inner(summary, "Id") or attribute(summary, "uid") or ""
    items = {(attribute(i, "Name") or local(i)).lower(): inner(i) for i in summary.iter() if local(i)}
    database = database_of(answer.url)
    own = {"pmid": uid} if database == "pubmed" else {"pmcid": f"PMC{uid}"} if database == "pmc" else {}
    found = f.identifiers(**own, doi=items.get("doi"))
    if not uid or not found:
        return None
    names = [inner(i) for i in descend(summary, "Item") if attribute(i, "Name") == "Author"]
    names += [inner(i, "Name") for i in descend(summary, "Author")]
    return Work(
        source=source,
        source_id=uid,
        identifiers=found,
        title=title_of(items.get("title")),
        authors=f.people(names),
        year=f.year(items.get("pubdate"), items.get("epubdate")),
        venue=items.get("fulljournalname") or items.get("source") or None,
        n_citations=f.number(items.get("pmcrefcount")),
    )


def of_elink(source: str, root: Element) -> list[Work]:
    """Read citing works out of an elink answer in XML."""
    sets = [
        {
            "ids": [inner(i) for i in descend(child(links, "IdList"), "Id")],
            "linksetdbs": [
                {"linkname": inner(db, "LinkName"), "links": [inner(i, "Id") for i in children(db, "Link")]}
                for db in children(links, "LinkSetDb")
            ],
        }
        for links in children(root, "LinkSet")
    ]
    return of_links(source, f.objects(sets))


def of_links(source: str, sets: list[f.Json]) -> list[Work]:
    """Read citing works out of the link sets of an elink answer."""
    works: list[Work] = []
    for links in sets:
        about = [f"pmid:{i}" for i in f.texts(links.get("ids"))]
        for database in f.objects(links.get("linksetdbs")):
            if f.text(database.get("linkname")) == "pubmed_pubmed_citedin":
                for pmid in f.texts(database.get("links")):
                    works.append(Work(source, pmid, f.identifiers(pmid=pmid), references=about))  # noqa: PERF401
    return works
