"""PMC's small services: the OA service, the ID converter, and the listing of its open files."""

from __future__ import annotations

import re

from corpus.errors import SourceAbsent
from ingest.sources import fields as f
from ingest.sources.base import Answer, Parsed
from ingest.sources.licences import licence_word
from ingest.sources.markup import Element, attribute, descend, inner
from ingest.sources.outcomes import failure, kind_of
from ingest.work import Location, Work

S3_HOST = "pmc-oa-opendata.s3.amazonaws.com"
"""Where PMC's open files lie since 2026 (pmc.ncbi.nlm.nih.gov/tools/cloud)."""


def of_oa_service(source: str, root: Element, answer: Answer) -> Parsed:
    """Read the OA service: licence, retraction and packages of papers; errors come inside HTTP 200."""
    error = next(descend(root, "error"), None)
    if error is not None:
        code, words = attribute(error, "code") or "", inner(error)
        kind = SourceAbsent if code in {"idIsNotOpenAccess", "idDoesNotExist"} else kind_of(None, f"{code} {words}")
        raise failure(source, kind, f"{code}: {words}", answer)
    works: list[Work] = []
    for record in descend(root, "record"):
        found = f.identifiers(pmcid=attribute(record, "id"))
        licence = licence_word(attribute(record, "license"))
        places = [
            Location(
                href,
                "pdf" if attribute(link, "format") == "pdf" else "archive",
                None, licence, "repository", is_open=True,
            )
            for link in descend(record, "link")
            if (href := f.link(re.sub(r"(?i)^ftp://", "https://", attribute(link, "href") or "")))
        ]  # fmt: skip
        if found:
            retracted = f.flag(attribute(record, "retracted"))
            works.append(
                Work(
                    source, found["pmcid"], found, locations=places, is_retracted=retracted, licence=licence,
                    venue=(attribute(record, "citation") or "").partition(".")[0] or None,
                )
            )  # fmt: skip
    token = next(descend(root, "resumption"), None)
    link = next(descend(token, "link"), None)
    return Parsed(works, attribute(link, "token"))


def of_listing(source: str, root: Element, answer: Answer) -> Parsed:
    """Read the listing of a paper's files: the newest version's PDF and XML."""
    by_paper: dict[str, dict[str, tuple[int, str]]] = {}
    for item in descend(root, "Key"):
        found = re.fullmatch(r"(?:.*/)?(PMC\d+)\.(\d+)/PMC\d+\.\d+\.(pdf|xml)", inner(item))
        if found:
            files = by_paper.setdefault(found[1], {})
            if files.get(found[3], (0, ""))[0] <= int(found[2]):
                files[found[3]] = (int(found[2]), f"https://{S3_HOST}/{inner(item)}")
    if not by_paper:
        raise failure(source, SourceAbsent, "no open files of this paper", answer)
    return Parsed(
        [
            Work(
                source, pmcid, {"pmcid": pmcid},
                locations=[
                    Location(url, kind, None, None, "repository", is_open=True)
                    for kind, (_, url) in sorted(files.items())
                ],
            )
            for pmcid, files in by_paper.items()
        ]
    )  # fmt: skip


def of_converter(source: str, records: list[f.Json], answer: Answer) -> Parsed:
    """Read the ID converter: the identifiers of each paper; raises SourceAbsent where none is known."""
    works: list[Work] = []
    for record in records:
        found = f.identifiers(pmid=record.get("pmid"), pmcid=record.get("pmcid"), doi=record.get("doi"))
        if found and f.text(record.get("status")) != "error":
            works.append(Work(source, found.get("pmid") or found.get("pmcid"), found))
    if records and not works:
        raise failure(source, SourceAbsent, f.text(records[0].get("errmsg")) or "unknown ids", answer)
    return Parsed(works)
