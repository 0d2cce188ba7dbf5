"""DBLP: computer science, curated; bibliography only, CC0."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from ingest.sources import fields as f
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bibtex import is_bibtex, works_of_bibtex
from ingest.sources.bodies import decoded, parse_json
from ingest.sources.common import Reader, each_once, kind_of_address, works_of
from ingest.sources.markup import Element, attribute, children, descend, inner, local, parse_xml, raw
from ingest.sources.outcomes import failure, kind_of, nonsense
from ingest.sources.words import plain
from ingest.work import Location, Work

_HOST = "dblp.org"
_RECORDS = (
    "article", "inproceedings", "proceedings", "book", "incollection", "phdthesis", "mastersthesis", "data",
)  # fmt: skip


class Dblp(Reader):
    """Search by words of title and authors; look-up by DBLP's own key."""

    name = "dblp"
    hosts = (HostRule(_HOST, 1, 2.0, 1, "wait 1 to 2 s between calls, obey 429 with Retry-After (dblp faq 1474706)"),)

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Search publications, at most 1,000 a page; there is no filter by date."""
        del since
        params = (("q", query), ("format", "json"), ("h", str(min(limit, 1000))), ("f", cursor or "0"), ("c", "0"))
        return Request(f"https://{_HOST}/search/publ/api", params)

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Look a record up by its key."""
        key = identifiers.get("dblp")
        return Request(f"https://{_HOST}/rec/{key}.xml") if key else None

    def read(self, answer: Answer) -> Parsed:
        """Read a search (JSON or XML), a record in XML, or one in BibTeX."""
        body = decoded(answer)
        if is_bibtex(body):
            return Parsed(works_of_bibtex(self.name, body))
        if body.lstrip()[:1] == "<":
            root = parse_xml(self.name, answer)
            if local(root) != "result":
                return self._records(root, answer)
            return self._page(_of_xml(root), answer)
        value = f.mapping(parse_json(self.name, answer))
        result = f.mapping(value.get("result"))
        if not result:
            raise nonsense(self.name, "JSON without a result", answer)
        return self._page(result, answer)

    def _page(self, result: f.Json, answer: Answer) -> Parsed:
        status = f.mapping(result.get("status"))
        code = f.number(status.get("@code"))
        if code and code >= 400:
            said = f.text(status.get("text")) or str(code)
            raise failure(self.name, kind_of(code, said), said, answer)
        hits = f.mapping(result.get("hits"))
        if "hits" not in result:
            raise nonsense(self.name, "a result without hits", answer)
        found = f.objects(hits.get("hit"))
        total, first = f.number(hits.get("@total")), f.number(hits.get("@first")) or 0
        end = first + len(found)
        works = works_of((f.mapping(hit.get("info")) for hit in found), self._work)
        return Parsed(works, str(end) if found and total and end < total else None, total)

    def _records(self, root: Element, answer: Answer) -> Parsed:
        records = [item for item in descend(root, *_RECORDS) if attribute(item, "key")]
        if not records:
            raise nonsense(self.name, f"XML of another kind: <{local(root)}>", answer)
        return Parsed(works_of((_of_record(item) for item in records), self._work))

    def _work(self, info: f.Json) -> Work | None:
        key = f.text(info.get("key"))
        links = [url for value in f.listed(info.get("ee")) if (url := f.link(_text(value)))]
        arxiv = re.fullmatch(r"journals/corr/abs-(\d{4})-(\d{4,5})", key or "")
        ids = f.identifiers(
            doi=info.get("doi") or next((url for url in links if "doi.org/" in url.lower()), None),
            dblp=key,
            arxiv=f"{arxiv[1]}.{arxiv[2]}"
            if arxiv
            else next((url for url in links if re.search(r"//(?:www\.)?arxiv\.org/", url)), None),
        )
        title = re.sub(r"(?<!\.)\.$", "", plain(_text(info.get("title")))) or None
        if not ids and not title:
            return None
        names = (_text(a) for a in f.listed(f.get(info.get("authors"), "author")))
        access = f.text(info.get("access"))
        is_open = {"open": True, "closed": False}.get(access or "")
        kind = f.text(info.get("type"))
        return Work(
            source=self.name,
            source_id=key,
            identifiers=ids,
            title=title,
            # Namesakes carry a number that is no part of their name.
            authors=f.people(re.sub(r" \d{4}$", "", plain(name)) or None for name in names),
            year=f.year(info.get("year")),
            venue=plain(f.text(info.get("venue"))) or None,
            locations=each_once(
                Location(url, kind_of_address(url), None, None, None, is_open=is_open) for url in links
            ),
            kind="preprint" if kind == "Informal and Other Publications" and ids.get("arxiv") else kind,
        )


def _text(value: object) -> str:
    """Give the text of a field that is a string in old answers and an object with `text` in new ones."""
    return f.text(value.get("text") if isinstance(value, dict) else value) or ""


def _of_xml(root: Element) -> dict[str, Any]:
    """Turn the XML form of a search into what its JSON form holds."""
    status = next(iter(children(root, "status")), None)
    hits = next(iter(children(root, "hits")), None)
    value: dict[str, Any] = {"status": {"@code": attribute(status, "code"), "text": inner(status)}}
    if hits is not None:
        counts = {f"@{key}": attribute(hits, key) for key in ("total", "first", "sent")}
        value["hits"] = {**counts, "hit": [{"info": _info(item)} for item in descend(hits, "info")]}
    return value


def _info(item: Element) -> dict[str, Any]:
    value: dict[str, Any] = {name: inner(item, name) or None for name in (
        "title", "venue", "year", "type", "access", "key", "doi",
    )}  # fmt: skip
    value["title"] = raw(next(iter(children(item, "title")), None))
    value["ee"] = [inner(link) for link in children(item, "ee")]
    value["authors"] = {"author": [inner(author) for author in descend(item, "author")]}
    return value


def _of_record(item: Element) -> dict[str, Any]:
    value = _info(item)
    value["key"] = attribute(item, "key")
    value["authors"] = {"author": [inner(author) for author in children(item, "author")]}
    value["venue"] = inner(item, "journal") or inner(item, "booktitle") or None
    informal = attribute(item, "publtype") == "informal"
    value["type"] = "Informal and Other Publications" if informal else local(item)
    return value
