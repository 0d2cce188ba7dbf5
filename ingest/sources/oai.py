"""OAI-PMH 2.0: errors inside HTTP 200, resumption tokens, deleted records; metadata as arXiv's own or Dublin Core."""

from __future__ import annotations

import re
from dataclasses import dataclass

from corpus.errors import SourceAbsent, SourceError, SourceRefused
from ingest.sources import fields as f
from ingest.sources.base import Answer
from ingest.sources.licences import licence_word
from ingest.sources.markup import Element, attribute, child, children, descend, inner, local, raw, words
from ingest.sources.outcomes import failure, kind_of
from ingest.sources.words import abstract_of, plain, tidy
from ingest.work import Location, Work

_CODES: dict[str, type[SourceError]] = {
    "idDoesNotExist": SourceAbsent,
    "noMetadataFormats": SourceAbsent,
    "badArgument": SourceRefused,
    "badResumptionToken": SourceRefused,
    "badVerb": SourceRefused,
    "cannotDisseminateFormat": SourceRefused,
    "noSetHierarchy": SourceRefused,
}
_WITHDRAWN = re.compile(
    r"\b(?:this|the)\s+(?:paper|article|submission|manuscript|work|preprint|note)\s+(?:has been|is|was)\s+"
    r"(?:being\s+)?withdrawn\b|^withdrawn\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Page:
    """The records of one answer, where the next is, and how many there are in all where that is still said."""

    records: list[Element]
    token: str | None
    n_total: int | None


def is_oai(root: Element) -> bool:
    """Tell whether a document is an OAI-PMH answer or a record cut out of one."""
    return local(root) in {"OAI-PMH", "ListRecords", "GetRecord", "record"}


def page_of(source: str, root: Element, answer: Answer) -> Page:
    """Read an OAI-PMH answer; `noRecordsMatch` is an empty page (the protocol's word for it), other errors are raised.

    Codes: http://www.openarchives.org/OAI/openarchivesprotocol.html#ErrorConditions
    """
    for error in children(root, "error"):
        code = attribute(error, "code") or ""
        said = f"{code}: {inner(error)}"
        if code == "noRecordsMatch":
            return Page([], None, 0)
        raise failure(source, _CODES.get(code) or kind_of(None, said), said, answer)
    records = [root] if local(root) == "record" else list(descend(root, "record"))
    for listed in descend(root, "ListIdentifiers"):  # headers alone
        records += children(listed, "header")
    last = next(descend(root, "resumptionToken"), None)
    return Page(records, inner(last) or None, f.number(attribute(last, "completeListSize")))


def is_withdrawn(*texts: str | None) -> bool | None:
    """Tell whether authors say that they have withdrawn the paper; None where they say nothing of it."""
    return True if any(_WITHDRAWN.search(text) for text in texts if text) else None


def work_of_record(source: str, record: Element) -> Work | None:
    """Read a record as a work, or None where it was deleted or holds nothing."""
    header = record if local(record) == "header" else child(record, "header")
    if attribute(header, "status") == "deleted":
        return None
    own = inner(header, "identifier")
    metadata = child(record, "metadata")
    form = next((item for item in metadata if local(item)), None) if metadata is not None else None
    stamp = f.day(inner(header, "datestamp"))
    if form is None:
        found = f.identifiers(arxiv=own)
        return Work(source, found.get("arxiv") or own, found, updated_on=stamp) if local(record) == "header" else None
    if local(form) in {"arXiv", "arXivRaw", "arXivOld"}:
        return _of_arxiv(source, form, own, stamp)
    return _of_dublin_core(source, form, own, stamp)


def _of_arxiv(source: str, form: Element, own: str, stamp: str | None) -> Work | None:
    found = f.identifiers(arxiv=inner(form, "id") or own, doi=_first(inner(form, "doi")))
    versions = [number for item in descend(form, "version") if (number := re.search(r"\d+", item.get("version") or ""))]
    version = max((int(number[0]) for number in versions), default=None)
    names = [
        f.person(inner(a, "forenames"), f"{inner(a, 'keyname')} {inner(a, 'suffix')}".strip())
        for a in descend(child(form, "authors"), "author")
    ]
    if not names and (said := inner(form, "authors")):  # arXivRaw and arXivOld: one string
        said = re.sub(r"\([^()]*\)", "", said)
        names = [tidy(part) for part in re.split(r",|\band\b", said)]
    dates = [inner(item, "date") for item in descend(form, "version")]
    created = f.day(inner(form, "created")) or next((day for text in dates if (day := _mail_date(text))), None)
    comments = inner(form, "comments") or None
    abstract = abstract_of(raw(child(form, "abstract")))
    licence = inner(form, "license") or None
    arxiv = found.get("arxiv")
    return Work(
        source=source,
        source_id=arxiv or own or None,
        identifiers=found,
        title=words(form, "title"),
        abstract=abstract,
        authors=f.people(names),
        year=f.year(created),
        published_on=created,
        venue=inner(form, "journal-ref") or None,
        locations=locations_of_arxiv(arxiv, version, licence),
        is_retracted=is_withdrawn(comments, (abstract or "")[:200]),
        arxiv_version=version,
        kind="preprint",
        licence=licence_word(licence),
        updated_on=f.day(inner(form, "updated")) or stamp,
    )


def _of_dublin_core(source: str, form: Element, own: str, stamp: str | None) -> Work | None:
    said = [inner(item) for item in children(form, "identifier")]
    addresses = [address for text in said if (address := f.link(text))]
    ids: dict[str, object] = {}
    for text in [own, *said]:
        named = f.named(re.sub(r"(?i)^oai:arxiv\.org:", "arXiv:", text))
        if named:
            kind, _, value = named.partition(":")
            ids.setdefault(kind, value)
    found = f.identifiers(**ids)
    descriptions = [raw(item) for item in children(form, "description")]
    comments = [tidy(text) for text in descriptions if tidy(text).startswith("Comment:")]
    abstract = next((got for text in descriptions if tidy(text) not in comments and (got := abstract_of(text))), None)
    days = [day for item in children(form, "date") if (day := f.day(inner(item)))]
    arxiv = found.get("arxiv")
    places = locations_of_arxiv(arxiv, None, None) if arxiv else [Location(address) for address in addresses]
    return Work(
        source=source,
        source_id=arxiv or own or None,
        identifiers=found,
        title=words(form, "title"),
        abstract=abstract,
        authors=f.people(f.person(None, None, inner(item)) for item in children(form, "creator")),
        year=f.year(*sorted(days), *(inner(item) for item in children(form, "date"))),
        published_on=min(days, default=None),
        venue=None if arxiv else (inner(form, "source") or None),
        locations=places,
        is_retracted=is_withdrawn(*comments, (abstract or "")[:200]),
        kind="preprint" if arxiv else (inner(form, "type") or None),
        licence=next((inner(item) for item in children(form, "rights") if f.link(inner(item))), None),
        updated_on=stamp,
    )


def locations_of_arxiv(arxiv: str | None, version: int | None, licence: str | None) -> list[Location]:
    """Give abstract page and PDF of an arXiv paper, of a version where one is known."""
    if not arxiv:
        return []
    name = f"{arxiv}v{version}" if version else arxiv
    word = licence_word(licence)
    return [
        Location(f"https://arxiv.org/pdf/{name}", "pdf", "submitted", word, "repository", is_open=True),
        Location(f"https://arxiv.org/abs/{name}", "landing", "submitted", word, "repository", is_open=True),
    ]


def _first(dois: str) -> str | None:
    """Give the first of the DOIs that authors typed into one field."""
    return dois.split(maxsplit=1)[0].rstrip(",;") if dois.split() else None


def _mail_date(text: str) -> str | None:
    """Give the day of `Thu, 14 Dec 2017 12:56:31 GMT`."""
    found = re.search(r"(\d{1,2}) ([A-Z][a-z]{2}) (\d{4})", plain(text))
    return f.day_of(found[3], found[2], found[1]) if found else None
