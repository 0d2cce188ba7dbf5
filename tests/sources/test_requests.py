"""Requests as plain values: addresses, paging, keys, contact, limits."""

from __future__ import annotations

from datetime import date
from urllib.parse import parse_qs, urlsplit

import pytest

from ingest.sources import KEYED, SOURCES, key_setting, make_sources
from ingest.sources.arxiv import Arxiv
from ingest.sources.base import Access, Request, Source
from ingest.sources.biorxiv import Biorxiv
from ingest.sources.datacite import DataCite
from ingest.sources.ncbi_pmc import NcbiPmc
from ingest.sources.semantic_scholar import SemanticScholar, paper_name

MAIL = "reader@university.edu"
FULL = Access(MAIL, "the-key")
SEARCHING = sorted(set(SOURCES) - {"acl-anthology", "biorxiv"})
IDS = {
    "doi": "10.1371/journal.pone.0034368", "arxiv": "2005.11401", "pmid": "123", "pmcid": "PMC456", "openalex": "W1",
    "acl": "J89-1001", "openreview": "aVh9KRZdRk", "dblp": "journals/x/Y20", "inspire": "1", "hal": "hal-01234567",
}  # fmt: skip


def query(request: Request | None) -> dict[str, list[str]]:
    assert request is not None
    return parse_qs(urlsplit(request.full_url).query, keep_blank_values=True)


def every_request(source: Source) -> list[Request]:
    found = [
        source.search("graph neural networks", since=date(2026, 1, 2)),
        source.search("graph"),
        source.lookup(IDS),
        source.lookup({"doi": "10.1101/029900"}),
        source.lookup_many([IDS, {"doi": "10.1371/journal.pone.0000001"}]),
        source.locations(IDS),
        source.citations(IDS),
        source.citations(IDS, cursor="2"),
    ]
    return [request for request in found if request is not None]


@pytest.mark.parametrize("name", SOURCES)
def test_every_request_goes_to_a_host_with_a_rule_and_keeps_the_key_to_itself(name: str):
    source = SOURCES[name](FULL)
    hosts = {rule.host for rule in source.hosts}
    requests = every_request(source)
    assert requests
    for request in requests:
        assert request.url.startswith("https://")
        assert request.host in hosts
        assert "+" not in urlsplit(request.full_url).query.replace("%2B", "")
        if name not in KEYED:
            assert "the-key" not in f"{request.full_url}{request.headers}"


@pytest.mark.parametrize("name", SOURCES)
def test_rules_are_cited(name: str):
    for access in (Access(), FULL):
        for rule in SOURCES[name](access).hosts:
            assert rule.n_requests >= 1
            assert rule.per_s > 0
            assert rule.concurrency >= 1
            assert len(rule.rule) > 15


@pytest.mark.parametrize("name", SEARCHING)
def test_searching(name: str):
    assert SOURCES[name](FULL).search("graph", since=date(2026, 1, 2)) is not None


@pytest.mark.parametrize("name", sorted(KEYED))
def test_keys_go_where_the_service_wants_them(name: str):
    request = SOURCES[name](FULL).search("graph")
    assert request is not None
    if name == "ncbi-pmc":
        assert query(request)["api_key"] == ["the-key"]
        return
    assert "the-key" not in request.full_url
    assert any("the-key" in value for _, value in request.headers)
    without = SOURCES[name](Access()).search("graph")
    assert without is not None
    assert without.headers == ()


def test_settings_of_keys():
    assert key_setting("semantic-scholar") == "BRAIN_SEMANTIC_SCHOLAR_API_KEY"
    made = make_sources({"BRAIN_CONTACT_EMAIL": MAIL, "BRAIN_CORE_API_KEY": "k", "BRAIN_PLOS_API_KEY": "no such key"})
    assert list(made) == list(SOURCES)
    assert made["core"].lacks() == ()
    assert made["semantic-scholar"].lacks() != ()
    assert made["unpaywall"].lookup(IDS) is not None


@pytest.mark.parametrize("mail", [None, "", "user@example.org", "you@example.com", "nobody"])
def test_unpaywall_asks_for_nothing_without_a_true_address(mail: str | None):
    source = SOURCES["unpaywall"](Access(mail))
    assert source.lookup(IDS) is None
    assert source.search("x") is None
    assert "BRAIN_CONTACT_EMAIL" in source.lacks()[0]


@pytest.mark.parametrize("name", sorted(KEYED - {"zenodo"}))
def test_sources_say_what_they_lack(name: str):
    assert key_setting(name) in SOURCES[name](Access()).lacks()[0]
    assert SOURCES[name](FULL).lacks() == ()


def test_contact_makes_crossref_polite():
    assert query(SOURCES["crossref"](FULL).search("x"))["mailto"] == [MAIL]
    assert "mailto" not in query(SOURCES["crossref"](Access()).search("x"))
    assert SOURCES["crossref"](Access()).hosts[0].n_requests < SOURCES["crossref"](FULL).hosts[0].n_requests


def test_dois_of_datacite_are_not_asked_from_crossref_and_unpaywall():
    for name in ("crossref", "unpaywall"):
        assert SOURCES[name](FULL).lookup({"doi": "10.48550/arxiv.2005.11401"}) is None
    assert DataCite(FULL).lookup({"arxiv": "2005.11401"}) is not None


def test_slashes_and_odd_signs_in_dois():
    odd = {"doi": "10.1002/(sici)1097-4571(199806)49:8<693::aid-asi4>3.0.co;2-o"}
    for name in ("crossref", "openalex", "unpaywall", "datacite", "inspire-hep", "doaj"):
        request = SOURCES[name](FULL).lookup(odd)
        assert request is not None
        assert "<" not in request.full_url
        assert " " not in request.full_url
        assert ";" not in request.full_url.replace("%3B", "")


def test_doaj_writes_the_query_into_the_path_with_spaces_as_percent_20():
    request = SOURCES["doaj"](FULL).search("attention mechanism/x")
    assert request is not None
    assert request.full_url == ("https://doaj.org/api/v4/search/articles/attention%20mechanism%2Fx?page=1&pageSize=100")


def test_arxiv_asks_for_words_dates_and_pages():
    asked = query(Arxiv().search("graph neural-network", since=date(2026, 1, 2), cursor="100", limit=50))
    assert asked["search_query"] == [
        "(all:graph AND all:neural-network) AND submittedDate:[202601020000 TO 300001010000]"
    ]
    assert (asked["start"], asked["max_results"]) == (["100"], ["50"])
    assert query(Arxiv().search('ti:"graph" AND cat:cs.LG'))["search_query"] == ['ti:"graph" AND cat:cs.LG']
    assert Arxiv().search("graph", cursor="30000") is None
    assert query(Arxiv().lookup_many([{"arxiv": "2005.11401"}, {}, {"arxiv": "hep-th/9901001"}]))["id_list"] == [
        "2005.11401,hep-th/9901001"
    ]
    harvest = query(Arxiv().harvest(date(2026, 1, 2), group="cs:cs:AI"))
    assert harvest == {
        "verb": ["ListRecords"],
        "metadataPrefix": ["arXiv"],
        "from": ["2026-01-02"],
        "set": ["cs:cs:AI"],
    }
    assert query(Arxiv().harvest(date(2026, 1, 2), cursor="t"))["resumptionToken"] == ["t"]
    assert all(rule.shared_with == "export.arxiv.org" for rule in Arxiv().hosts if rule.host == "oaipmh.arxiv.org")


def test_semantic_scholar_batches_and_names():
    source = SemanticScholar(FULL)
    request = source.lookup_many([{"arxiv": "2005.11401"}, {"openalex": "W1"}, {"pmcid": "PMC12"}])
    assert request is not None
    assert request.method == "POST"
    assert request.body == b'{"ids": ["ARXIV:2005.11401", "PMCID:12"]}'
    assert paper_name({"s2": "a" * 40, "doi": "10.1/x"}) == "a" * 40
    assert query(source.search("self-improving RAG"))["query"] == ["self improving RAG"]
    assert source.search("x", cursor="1000") is None


def test_the_end_of_what_can_be_paged():
    assert SOURCES["doaj"](FULL).search("x", cursor="11") is None
    assert SOURCES["core"](FULL).search("x", cursor="10000") is None
    assert NcbiPmc(FULL).search("x", cursor="9999") is None
    assert SOURCES["inspire-hep"](FULL).search("x", cursor="101") is None


def test_datacite_follows_the_address_of_the_next_page():
    request = DataCite(FULL).search("x", cursor="https://api.datacite.org/dois?page%5Bcursor%5D=abc&query=x")
    assert query(request) == {"page[cursor]": ["abc"], "query": ["x"]}
    elsewhere = DataCite(FULL).search("x", cursor="https://evil.example/dois?page%5Bcursor%5D=abc")
    assert elsewhere is not None
    assert elsewhere.host == "api.datacite.org"


def test_biorxiv_by_day():
    request = Biorxiv().harvest(date(2026, 8, 1), date(2026, 8, 2), server="medrxiv", cursor="30")
    assert request.url == "https://api.biorxiv.org/details/medrxiv/2026-08-01/2026-08-02/30/json"


def test_plos_leaves_parts_of_articles_out():
    assert "doc_type:full" in query(SOURCES["plos"](FULL).search("x"))["fq"]
    assert SOURCES["plos"](FULL).lookup({"doi": "10.1000/x"}) is None
