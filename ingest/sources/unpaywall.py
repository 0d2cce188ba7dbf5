"""Unpaywall: where open copies of a Crossref DOI lie."""

from __future__ import annotations

import re
from datetime import date
from urllib.parse import quote

from ingest.sources import fields as f
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bodies import parse_json
from ingest.sources.common import Reader, each_once, kind_of_address, version_word, works_of
from ingest.sources.licences import licence_word
from ingest.sources.outcomes import nonsense
from ingest.sources.words import plain, title_of
from ingest.work import Location, Work

_HOST = "api.unpaywall.org"


class Unpaywall(Reader):
    """Locations of a DOI, and a search by title; needs a contact address."""

    name = "unpaywall"
    hosts = (
        HostRule(_HOST, 5, 1.0, 2, "no limit a second is published; five is courtesy"),
        HostRule(_HOST, 100_000, 86400.0, 2, "about 100,000 calls a day (ropensci/roadoi manual @ fcadcf7007d2)"),
    )

    def _mail(self) -> str | None:
        """Give the user's address; placeholders are refused by the service, so they count as none."""
        mail = (self.access.contact_email or "").strip()
        is_placeholder = re.search(r"(?i)@(?:.*\.)?(?:example\.(?:com|org|net)|test|localhost)$", mail)
        return mail if "@" in mail and not is_placeholder else None

    def lacks(self) -> tuple[str, ...]:
        """Nothing works without an address."""
        return () if self._mail() else ("does not answer without an address: set BRAIN_CONTACT_EMAIL",)

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Search titles, 50 a page; there is no filter by date."""
        del since, limit
        mail = self._mail()
        if not mail:
            return None
        params = (("query", query), ("page", cursor or "1"), ("email", mail))
        return Request(f"https://{_HOST}/v2/search", params)

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Look a DOI up; those of DataCite are unknown here."""
        doi, mail = identifiers.get("doi"), self._mail()
        if not doi or not mail or doi.startswith(("10.48550/", "10.5281/")):
            return None
        return Request(f"https://{_HOST}/v2/{quote(doi, safe='/:()')}", (("email", mail),))

    def read(self, answer: Answer) -> Parsed:
        """Read a record or a search."""
        value = f.mapping(parse_json(self.name, answer))
        if isinstance(value.get("results"), list):
            records = (f.mapping(item.get("response", item)) for item in f.objects(value["results"]))
            return Parsed(works_of(records, self._work))
        work = self._work(value)
        if work is None:
            raise nonsense(self.name, "JSON without a DOI", answer)
        return Parsed([work])

    def _work(self, record: f.Json) -> Work | None:
        found = f.identifiers(doi=record.get("doi") or record.get("doi_url"))
        if not found:
            return None
        places = [place for name in ("best_oa_location", "first_oa_location") if (place := record.get(name))]
        places += f.objects(record.get("oa_locations"))
        locations = each_once(location for place in f.objects(places) for location in _locations(place))
        authors = f.objects(record.get("z_authors"))
        return Work(
            source=self.name,
            source_id=found["doi"],
            identifiers=found,
            title=title_of(record.get("title")),
            authors=f.people(
                f.person(a.get("given"), a.get("family"), a.get("raw_author_name") or a.get("name")) for a in authors
            ),
            year=f.year(record.get("year"), record.get("published_date")),
            published_on=f.day(record.get("published_date")),
            venue=plain(f.text(record.get("journal_name"))) or None,
            locations=locations,
            kind=f.text(record.get("genre")),
            licence=licence_word(f.mapping(record.get("best_oa_location")).get("license")),
            updated_on=f.day(record.get("updated")),
        )


def _locations(place: f.Json) -> list[Location]:
    """Read one copy: the PDF where there is one, and the page, which stands in where there is none."""
    version = version_word(place.get("version"))
    licence = licence_word(place.get("license"))
    host = f.text(place.get("host_type"))
    host = host if host in {"publisher", "repository"} else None
    found: list[Location] = []
    for name, kind in (("url_for_pdf", "pdf"), ("url_for_landing_page", "landing"), ("url", None)):
        url = f.link(place.get(name))
        if url and url not in {location.url for location in found}:
            found.append(Location(url, kind or kind_of_address(url), version, licence, host, is_open=True))
    return found
