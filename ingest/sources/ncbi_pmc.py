"""NCBI: PubMed and PMC by E-utilities, the ID converter, the OA service, and PMC's open files on S3."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from corpus.errors import SourceRefused
from ingest.sources import fields as f
from ingest.sources.base import Answer, HostRule, Identifiers, Parsed, Request
from ingest.sources.bodies import decoded, parse_json
from ingest.sources.common import Reader, works_of
from ingest.sources.eutils import database_of, of_docsum, of_elink, of_links, of_summary
from ingest.sources.jats import has_body, work_of_jats
from ingest.sources.markup import Element, children, descend, inner, local, parse_xml
from ingest.sources.oai import page_of
from ingest.sources.outcomes import failure, kind_of, nonsense
from ingest.sources.pmc_services import S3_HOST, of_converter, of_listing, of_oa_service
from ingest.sources.pubmed import work_of_pubmed
from ingest.work import Location, Work

_EUTILS = "eutils.ncbi.nlm.nih.gov"
_BASE = f"https://{_EUTILS}/entrez/eutils"
_TOOL = "research-brain"
_RULE = (
    "3 requests/s without a key, 10 with one; only E-utilities, OAI-PMH, BioC, FTP and the Cloud Service may be used by "
    "programs (pmc.ncbi.nlm.nih.gov/tools/amdataset; suppakoko/research_helper docs/02 @ 73cb666a6849)"
)


class NcbiPmc(Reader):
    """Search PubMed, look PubMed and PMC up, convert ids, citing works, JATS and files of the open subset."""

    name = "ncbi-pmc"

    @property
    def hosts(self) -> tuple[HostRule, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """A key more than triples the rate."""
        rate = 9 if self.access.api_key else 3
        return (
            HostRule(_EUTILS, rate, 1.1, 3, _RULE),
            HostRule("pmc.ncbi.nlm.nih.gov", 3, 1.1, 1, _RULE, shared_with=_EUTILS),
            HostRule("www.ncbi.nlm.nih.gov", 3, 1.1, 1, _RULE, shared_with=_EUTILS),
            HostRule(S3_HOST, 10, 1.0, 4, "an open bucket without a login (pmc.ncbi.nlm.nih.gov/tools/cloud)"),
        )

    def lacks(self) -> tuple[str, ...]:
        """Everything works without a key, only slower."""
        if self.access.api_key:
            return ()
        return ("asks 3 times a second at most: set BRAIN_NCBI_PMC_API_KEY for 10",)

    def _ask(self, tool: str, *params: tuple[str, str]) -> Request:
        extra: list[tuple[str, str]] = [("tool", _TOOL)]
        if self.access.contact_email:
            extra.append(("email", self.access.contact_email))
        if self.access.api_key:
            extra.append(("api_key", self.access.api_key))
        return Request(f"{_BASE}/{tool}.fcgi", params + tuple(extra))

    def search(
        self, query: str, *, since: date | None = None, cursor: str | None = None, limit: int = 100
    ) -> Request | None:
        """Search PubMed, the first 9,999; gives ids only, to be looked up with `lookup_many`."""
        start = int(cursor) if cursor and cursor.isdigit() else 0
        if start > 9998:
            return None
        params = [("db", "pubmed"), ("term", query), ("retmode", "json"), ("retstart", str(start))]
        params.append(("retmax", str(min(limit, 9999 - start))))
        if since:
            params += [("datetype", "pdat"), ("mindate", since.strftime("%Y/%m/%d")), ("maxdate", "3000")]
        return self._ask("esearch", *params)

    def lookup(self, identifiers: Identifiers) -> Request | None:
        """Fetch a record of PubMed by PMID, or of PMC by PMCID."""
        if pmid := identifiers.get("pmid"):
            return self._ask("efetch", ("db", "pubmed"), ("id", pmid), ("retmode", "xml"))
        return self.full_text(identifiers)

    def lookup_many(self, papers: Sequence[Identifiers]) -> Request | None:
        """Fetch up to 200 records of PubMed at once."""
        ids = [pmid for paper in papers if (pmid := paper.get("pmid"))][:200]
        return self._ask("efetch", ("db", "pubmed"), ("id", ",".join(ids)), ("retmode", "xml")) if ids else None

    def full_text(self, identifiers: Identifiers) -> Request | None:
        """Ask for PMC's JATS of a paper; outside the open subset it comes without a body."""
        pmcid = identifiers.get("pmcid")
        if not pmcid:
            return None
        return self._ask("efetch", ("db", "pmc"), ("id", pmcid.removeprefix("PMC")), ("retmode", "xml"))

    def convert(self, papers: Sequence[Identifiers], kind: str) -> Request | None:
        """Ask for the other identifiers of up to 200 papers, all by one kind: doi, pmid or pmcid."""
        ids = [value for paper in papers if (value := paper.get(kind))][:200]
        if not ids:
            return None
        params = [("ids", ",".join(ids)), ("idtype", kind), ("format", "json"), ("tool", _TOOL)]
        if self.access.contact_email:
            params.append(("email", self.access.contact_email))
        return Request("https://pmc.ncbi.nlm.nih.gov/tools/idconv/api/v1/articles/", tuple(params))

    def locations(self, identifiers: Identifiers) -> Request | None:
        """List PMC's open files of a paper (the packages of the OA service were removed in August 2026)."""
        pmcid = identifiers.get("pmcid")
        return Request(f"https://{S3_HOST}/", (("list-type", "2"), ("prefix", f"{pmcid}."))) if pmcid else None

    def citations(self, identifiers: Identifiers, *, cursor: str | None = None) -> Request | None:
        """Ask for the PubMed ids of citing works in PMC."""
        del cursor
        pmid = identifiers.get("pmid")
        if not pmid:
            return None
        link = (("dbfrom", "pubmed"), ("linkname", "pubmed_pubmed_citedin"), ("id", pmid), ("retmode", "json"))
        return self._ask("elink", *link)

    def read(self, answer: Answer) -> Parsed:
        """Read whatever of these services the answer is, told by its content."""
        if decoded(answer).lstrip()[:1] in {"{", "["}:
            return self._json(f.mapping(parse_json(self.name, answer)), answer)
        root = parse_xml(self.name, answer)
        match local(root):
            case "eSearchResult":
                return self._ids_of_xml(root, answer)
            case "PubmedArticleSet" | "PubmedArticle" | "PubmedBookArticle":
                return Parsed(
                    works_of(
                        descend(root, "PubmedArticle", "PubmedBookArticle"), lambda r: work_of_pubmed(self.name, r)
                    )
                )
            case "pmc-articleset" | "article":
                return Parsed(works_of(_articles(root), self._article))
            case "eSummaryResult":
                return Parsed(
                    works_of(descend(root, "DocSum", "DocumentSummary"), lambda d: of_docsum(self.name, d, answer))
                )
            case "eLinkResult":
                return Parsed(of_elink(self.name, root))
            case "OAI-PMH":
                page = page_of(self.name, root, answer)
                articles = [article for record in page.records for article in descend(record, "article")]
                return Parsed(works_of(articles, self._article), page.token, page.n_total)
            case "OA":
                return of_oa_service(self.name, root, answer)
            case "ListBucketResult":
                return of_listing(self.name, root, answer)
            case _:
                words = inner(next(descend(root, "ERROR", "error", "Error", "Message"), root))
                kind = kind_of(None, words)
                raise failure(self.name, kind, f"<{local(root)}>: {words}", answer)

    def _json(self, value: f.Json, answer: Answer) -> Parsed:
        if isinstance(value.get("esearchresult"), dict):
            found = value["esearchresult"]
            error = f.text(found.get("ERROR"))
            if error:
                raise failure(self.name, kind_of(None, error), error, answer)
            ids = f.texts(found.get("idlist"))
            return self._ids(ids, f.number(found.get("count")), f.number(found.get("retstart")), answer)
        if isinstance(value.get("records"), list):
            return of_converter(self.name, f.objects(value["records"]), answer)
        if isinstance(value.get("result"), dict):
            return Parsed(
                works_of(f.texts(value["result"].get("uids")), lambda uid: of_summary(self.name, value, uid, answer))
            )
        if isinstance(value.get("linksets"), list):
            return Parsed(of_links(self.name, f.objects(value["linksets"])))
        raise nonsense(self.name, f"JSON of another kind: {', '.join(list(value)[:5])}", answer)

    def _ids_of_xml(self, root: Element, answer: Answer) -> Parsed:
        error = next((inner(item) for item in children(root, "ERROR")), None)
        if error:
            raise failure(self.name, kind_of(None, error), error, answer)
        ids = [inner(item) for item in descend(next(iter(children(root, "IdList")), None), "Id")]
        return self._ids(
            [i for i in ids if i], f.number(inner(root, "Count")), f.number(inner(root, "RetStart")), answer
        )

    def _ids(self, ids: list[str], total: int | None, start: int | None, answer: Answer) -> Parsed:
        """Make works of bare ids. Which database they are of stands in the address alone; the default is PubMed."""
        database = database_of(answer.url)
        if database not in {"pubmed", "pmc"}:
            raise failure(self.name, SourceRefused, f"ids of the database {database}, which holds no papers", answer)
        found = [f.identifiers(**{"pmid" if database == "pubmed" else "pmcid": _own(database, i)}) for i in ids]
        works = [Work(self.name, next(iter(ids.values())), ids) for ids in found if ids]
        end = (start or 0) + len(ids)
        more = bool(ids and total and end < total and end <= 9998)
        return Parsed(works, str(end) if more else None, total)

    def _article(self, article: Element) -> Work | None:
        bare = work_of_jats(self.name, article)
        pmcid = bare.identifiers.get("pmcid") if bare else None
        if not pmcid or not has_body(article):
            return bare
        address = f"{_BASE}/efetch.fcgi?db=pmc&id={pmcid.removeprefix('PMC')}&retmode=xml"
        return work_of_jats(self.name, article, [Location(address, "xml", None, None, "repository", is_open=True)])


def _articles(root: Element) -> list[Element]:
    return [root] if local(root) == "article" else children(root, "article")


def _own(database: str, value: str) -> str:
    return f"PMC{value.removeprefix('PMC')}" if database == "pmc" else value
