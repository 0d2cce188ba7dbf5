"""BibTeX entries, as far as services send them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ingest.sources.fields import day_of, identifiers, month_number, people, person, version_of, year
from ingest.sources.words import abstract_of, plain
from ingest.work import Location, Work

_ENTRY = re.compile(r"@\s*(?P<type>\w+)\s*[{(]\s*(?P<key>[^,\s]*)\s*,")
_FIELD = re.compile(r"\s*(?P<name>[\w-]+)\s*=\s*")


def _value(text: str, at: int) -> tuple[str, int]:
    """Give the value that begins at a place, and where it ends."""
    if at < len(text) and text[at] in '{"':
        depth, end = 0, at + 1
        closer = "}" if text[at] == "{" else '"'
        while end < len(text):
            c = text[end]
            if c == "\\":
                end += 2
                continue
            if c == closer and depth == 0:
                return text[at + 1 : end], end + 1
            depth += (c == "{") - (c == "}")
            end += 1
        return text[at + 1 :], len(text)
    found = re.compile(r"[^,}\n]*").match(text, at)
    return (found[0].strip(), found.end()) if found else ("", at)


def is_bibtex(text: str) -> bool:
    """Tell whether a body begins like a BibTeX entry."""
    return bool(re.match(r"@\s*[A-Za-z]+\s*[{(]", text.lstrip()))


def bibtex_fields(text: str) -> dict[str, str]:
    """Give the fields of the first entry, names in lower case, with `type` and `key`; empty where there is none."""
    return next(iter_bibtex(text), {})


def iter_bibtex(text: str) -> Iterator[dict[str, str]]:
    """Give the fields of each entry."""
    at = 0
    while entry := _ENTRY.search(text, at):
        fields, at = _fields(text, entry)
        yield fields


def _fields(text: str, entry: re.Match[str]) -> tuple[dict[str, str], int]:
    fields = {"type": entry["type"].lower(), "key": entry["key"]}
    at = entry.end()
    while found := _FIELD.match(text, at):
        value, at = _value(text, found.end())
        fields.setdefault(found["name"].lower(), value)
        rest = re.compile(r"\s*,?").match(text, at)
        at = rest.end() if rest else at
    return fields, at


def _bare(value: str | None) -> str:
    return plain((value or "").replace("{", "").replace("}", "").replace(r"\&", "&").replace("~", " "))


def works_of_bibtex(source: str, text: str) -> list[Work]:
    """Read the entries of a BibTeX file as works; strings, comments and the like are none."""
    return [_work(source, fields) for fields in iter_bibtex(text) if "title" in fields or "doi" in fields]


def _work(source: str, fields: dict[str, str]) -> Work:
    eprint = (
        fields.get("eprint")
        if "arxiv" in (fields.get("archiveprefix", "") + fields.get("eprinttype", "")).lower()
        else None
    )
    found = identifiers(doi=fields.get("doi"), arxiv=eprint)
    names = re.split(r"\s+and\s+", _bare(fields.get("author")))
    url = fields.get("url", "")
    return Work(
        source=source,
        source_id=found.get("doi") or fields["key"] or None,
        identifiers=found,
        title=_bare(fields.get("title")) or None,
        abstract=abstract_of(_bare(fields.get("abstract"))),
        authors=people(person(None, None, name) for name in names),
        year=year(fields.get("year"), fields.get("date")),
        published_on=day_of(fields.get("year"), month_number(fields.get("month")), fields.get("day")),
        venue=_bare(fields.get("journal") or fields.get("booktitle")) or None,
        locations=[Location(url)] if url.startswith("http") else [],
        arxiv_version=version_of(eprint),
        kind=fields["type"],
    )
