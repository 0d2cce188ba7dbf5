"""One paper's full text: the places that are known, tried until a file is the paper's, and everything that was tried noted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from corpus.ids import parse_identifier
from ingest.documents import store_extraction
from ingest.files import register_file
from ingest.fulltext import FullText, FullTextFinder, Search, Wanted, known_locations
from ingest.fulltext.rank import HostRecord
from ingest.papers import PRIORITY_NEW
from ingest.preprints import is_preprint_doi
from ingest.store import Store
from ingest.work import Location
from sql import files

SQL = files.queries("fetch")
TRIED_DAYS = 30
_TYPES = {
    "pdf": "application/pdf",
    "jats": "application/xml",
    "html": "text/html",
    "markdown": "text/markdown",
    "text": "text/plain",
}


@dataclass(frozen=True, slots=True)
class FetchJob:
    """A claimed job with what is known of its paper; `is_same_life` is false once a person has sent it back."""

    job_id: int
    lease_token: UUID
    priority: int
    paper_pk: int
    paper_id: str
    kind: str
    title: str | None
    authors: list[str]
    year: int | None
    pdf_url: str | None
    is_same_life: bool


@dataclass(frozen=True, slots=True)
class Places:
    """Where to look, and for what."""

    wanted: Wanted
    locations: Sequence[Location]
    skip: frozenset[str]
    refused: frozenset[str]


def claim(connection: Connection[Any], n: int, lease_s: float) -> list[FetchJob]:
    """Take jobs for some seconds."""
    with connection.cursor(row_factory=class_row(FetchJob)) as cursor:
        return cursor.execute(SQL["claim"], {"n": n, "lease_s": lease_s}).fetchall()


def host_record(connection: Connection[Any]) -> HostRecord:
    """How each host has done so far."""
    return {host: (n_good, n_bad) for host, n_good, n_bad in connection.execute(SQL["select_hosts"]).fetchall()}


def places_of(connection: Connection[Any], job: FetchJob) -> Places:
    """Everything known about a paper that helps to find its full text."""
    identifiers: dict[str, str] = {}
    dois: list[str] = []
    for kind, value in connection.execute(SQL["select_identifiers"], [job.paper_pk]).fetchall():
        if kind == "doi":
            dois.append(value)
        identifiers.setdefault(kind, value)
    if articles := [doi for doi in dois if not is_preprint_doi(doi)]:
        identifiers["doi"] = articles[0]
    titles: list[str] = []
    version: int | None = None
    found: list[Location] = []
    authors = list(job.authors)
    for title, locations, arxiv_version, names in connection.execute(SQL["select_works"], [job.paper_pk]).fetchall():
        titles += [title] if title and title != job.title else []
        version = max(version or 0, arxiv_version or 0) or None
        found += [place for each in locations or () if not _is_page_of_known_file(place := _location(each))]
        authors = authors or list(names or ())
    wanted = Wanted.of(
        identifiers, title=job.title, authors=authors, year=job.year, other_dois=dois, other_titles=sorted(set(titles))
    )
    tried = connection.execute(SQL["select_tried"], {"paper_pk": job.paper_pk, "days": TRIED_DAYS}).fetchall()
    return Places(
        wanted, [*known_locations(identifiers, version), *found],
        frozenset(url for url, _, _ in tried if job.is_same_life),
        frozenset(sha256 for _, outcome, sha256 in tried if outcome == "quarantined" and sha256),
    )  # fmt: skip


def _location(value: Mapping[str, Any]) -> Location:
    """A stored place; arXiv's own feed still names its files by the old scheme, which costs a redirect each time."""
    return Location(**{**value, "url": re.sub(r"^http://arxiv\.org/", "https://arxiv.org/", value["url"])})


def _is_page_of_known_file(place: Location) -> bool:
    """Whether a page would lead to nothing but the file that an arXiv id names already."""
    identifier = parse_identifier(place.url) if place.kind == "landing" else None
    return identifier is not None and identifier.kind == "arxiv"


async def search(finder: FullTextFinder, job: FetchJob, places: Places, record: HostRecord) -> Search:
    """Try the address that the seed names first, then the others in their order."""
    options: Mapping[str, Any] = {"skip": places.skip, "refused": places.refused, "record": record}
    first = Search()
    if job.pdf_url:
        first = await finder.find(places.wanted, [Location(job.pdf_url, "pdf")], **options)
        if first.found is not None:
            return first
    rest = [place for place in places.locations if place.url != job.pdf_url]
    done = await finder.find(places.wanted, rest, **options)
    done.attempts[:0] = first.attempts
    if first.retry_after_s is not None:
        done.retry_after_s = min(first.retry_after_s, done.retry_after_s or first.retry_after_s)
    return done


def write_found(connection: Connection[Any], store: Store, job: FetchJob, done: Search) -> bool:
    """Write document, text and attempts and end the job, all or nothing; False when the lease was lost meanwhile."""
    assert done.found is not None
    with connection.transaction():
        if not connection.execute(SQL["complete"], {"job_id": job.job_id, "token": job.lease_token}).fetchall():
            return False
        note_attempts(connection, job, done)
        _write_document(connection, store, job, done.found)
    return True


def _write_document(connection: Connection[Any], store: Store, job: FetchJob, found: FullText) -> None:
    registered = register_file(
        connection, store, store.local_path(found.sha256), paper_pk=job.paper_pk, source_url=found.location.url,
        priority=job.priority, name=safe_name(found.location.url), licence=found.location.licence,
        content_type=_TYPES.get(found.extraction.kind),
    )  # fmt: skip
    # The finder has read the file already; whoever has taken the job meanwhile reads it again, to the same text.
    if connection.execute(SQL["take_extract_job"], [registered.document_id]).fetchone():
        store_extraction(connection, registered.document_id, found.extraction, is_backlog=job.priority > PRIORITY_NEW)


def note_attempts(connection: Connection[Any], job: FetchJob, done: Search) -> None:
    """Write how each place ended; a page that only led on is no end."""
    for attempt in done.attempts:
        if attempt.outcome == "led_on":
            continue
        connection.execute(
            SQL["record_attempt"],
            {
                "paper_pk": job.paper_pk, "url": attempt.location.url.replace("\x00", ""),
                "outcome": "ok" if attempt.outcome == "stored" else attempt.outcome,
                "reason": attempt.reason[:1000].replace("\x00", "") or None,
                "sha256": bytes.fromhex(attempt.sha256) if attempt.sha256 else None,
            },
        )  # fmt: skip


def write_later(connection: Connection[Any], job: FetchJob, done: Search, wait_s: float) -> None:
    """Give the job back: some place has to be asked again."""
    with connection.transaction():
        note_attempts(connection, job, done)
        reason = next((a.reason for a in done.attempts if a.is_transient), "")
        values = {
            "job_id": job.job_id,
            "token": job.lease_token,
            "later_s": wait_s,
            "reason": f"waits: {reason}"[:1000],
        }
        connection.execute(SQL["later"], values)


def write_nothing(connection: Connection[Any], job: FetchJob, done: Search) -> str:
    """No place has it: the job ends, and fails where a person had named the address. Returns the reason."""
    reasons = [f"{a.location.url}: {a.outcome}, {a.reason}" for a in done.attempts if a.outcome != "led_on"]
    reason = ("; ".join(reasons) or "no open place is known")[:2000]
    with connection.transaction():
        note_attempts(connection, job, done)
        if not reasons:
            values = {"paper_pk": job.paper_pk, "url": "", "outcome": "absent", "reason": reason, "sha256": None}
            connection.execute(SQL["record_attempt"], values)
        values = {"job_id": job.job_id, "token": job.lease_token, "reason": reason, "url": job.pdf_url or ""}
        connection.execute(SQL["fail" if job.pdf_url else "complete"], values)
    return reason


def safe_name(url: str) -> str:
    """A file's name out of an address: letters, digits, dot, dash and underscore; nothing else comes from outside."""
    last = Path(urlsplit(url).path.rstrip("/")).name[:200] or "download"
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in last).lstrip(".") or "file"
