"""Odd and other shapes: one instead of many, old and new forms, other endpoints of the same services, random damage."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus.errors import SourceError
from ingest.sources import SOURCES
from ingest.sources.base import Answer
from ingest.work import Related, Work
from tests.sources.recordings import ERRORS, N_WORKS
from tests.sources.support import answer, read


def works(name: str, value: Any, url: str = "") -> list[Work]:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read(name, Answer(body, url=url)).works


def test_dblp_with_no_hit_one_hit_and_one_author():
    assert works("dblp", {"result": {"status": {"@code": "200"}, "hits": {"@total": "0", "@sent": "0"}}}) == []
    info = {"title": "On Things.", "authors": {"author": {"@pid": "1/1", "text": "Wei Wang 0001"}}, "year": "2020",
            "key": "journals/corr/abs-2005-11401", "ee": ["https://arxiv.org/abs/2005.11401"],
            "type": "Informal and Other Publications", "doi": "10.48550/ARXIV.2005.11401"}  # fmt: skip
    found = works("dblp", {"result": {"hits": {"hit": {"info": info}}}})
    assert found[0].title == "On Things"
    assert found[0].authors == ["Wei Wang"]
    assert found[0].identifiers["arxiv"] == "2005.11401"
    assert found[0].identifiers["doi"] == "10.48550/arxiv.2005.11401"
    assert found[0].kind == "preprint"


def test_dblp_records():
    body = (
        b"<dblp><article key='journals/x/Y20'><author>A. B.</author><title>T &amp; U.</title><year>2020</year>"
        b"<journal>J</journal><ee>https://doi.org/10.1/ABC</ee></article></dblp>"
    )
    assert works("dblp", body)[0].title == "T & U"


def test_crossref_by_content_negotiation_and_odd_dates():
    csl = {"DOI": "10.1000/X", "title": "One", "container-title": "J", "issued": {"date-parts": [[2020, 5]]}}
    work = works("crossref", csl)[0]
    assert (work.title, work.venue, work.year, work.published_on) == ("One", "J", 2020, None)
    assert works("datacite", csl)[0].identifiers == {"doi": "10.1000/x"}


def test_crossref_retractions():
    record = {"DOI": "10.1/a", "title": ["T"], "updated-by": [{"type": "retraction", "DOI": "10.1/B"}]}
    work = works("crossref", {"message-type": "work", "message": record})[0]
    assert work.is_retracted is True
    assert work.related == [Related("retracted-by", "doi:10.1/b")]
    notice = {"DOI": "10.1/b", "title": ["Retraction"], "update-to": [{"type": "retraction", "DOI": "10.1/A"}]}
    work = works("crossref", {"message-type": "work", "message": notice})[0]
    assert work.is_retracted is None
    assert work.related == [Related("retracts", "doi:10.1/a")]


def test_lists_of_other_things_are_no_works():
    with pytest.raises(SourceError):
        works("crossref", {"message-type": "journal-list", "message": {"items": [{"title": "Journal", "ISSN": []}]}})


def test_a_field_that_is_null_or_missing_does_not_lose_the_record():
    record = {"id": "https://openalex.org/W1", "title": None, "abstract_inverted_index": None, "authorships": None,
              "primary_location": None, "best_oa_location": None, "locations": [None], "open_access": None, "ids": None,
              "publication_date": None, "referenced_works": None, "counts_by_year": None}  # fmt: skip
    assert works("openalex", {"results": [record, None, "..."], "meta": {"count": 1}})[0].source_id == "W1"
    assert works("openalex", {"results": [], "meta": {"count": 0, "next_cursor": None}}) == []


def test_openalex_takes_the_arxiv_id_from_a_location():
    place = {"landing_page_url": "http://arxiv.org/abs/2005.11401v4", "pdf_url": "https://arxiv.org/pdf/2005.11401v4"}
    work = works("openalex", {"id": "https://openalex.org/W1", "title": "T", "locations": [place]})[0]
    assert work.identifiers["arxiv"] == "2005.11401"
    assert work.arxiv_version == 4


def test_semantic_scholar_answers_of_other_endpoints():
    paper = {"paperId": "a" * 40, "title": "T", "tldr": {"text": "Short."}, "externalIds": None, "authors": None}
    assert works("semantic-scholar", {"recommendedPapers": [paper]})[0].tldr == "Short."
    assert works("semantic-scholar", {"total": 1, "offset": 0, "data": None}) == []
    assert works("semantic-scholar", [None, None]) == []


def test_zenodo_in_the_new_shape():
    record = {
        "id": "123", "pids": {"doi": {"identifier": "10.5281/ZENODO.123"}}, "access": {"files": "public"},
        "metadata": {"title": "T", "publication_date": "2026-01", "rights": [{"id": "cc-by-4.0"}],
                     "creators": [{"person_or_org": {"given_name": "Ada", "family_name": "L"}}]},
        "files": {"entries": {"a.pdf": {"key": "a.pdf", "links": {"content": "https://zenodo.org/api/a b.pdf/content"}}}},
    }  # fmt: skip
    work = works("zenodo", record)[0]
    assert work.identifiers == {"doi": "10.5281/zenodo.123"}
    assert (work.authors, work.year, work.licence) == (["Ada L"], 2026, "cc-by-4.0")
    assert work.locations[0].url == "https://zenodo.org/api/a%20b.pdf/content"


def test_openreview_of_the_first_version_and_its_reviews():
    notes = [
        {
            "id": "abcd1234",
            "forum": "abcd1234",
            "replyto": None,
            "content": {"title": "T", "authors": ["A B"], "pdf": "/pdf/x.pdf"},
        },
        {"id": "review00", "forum": "abcd1234", "replyto": "abcd1234", "content": {"title": "Review", "rating": 3}},
    ]
    found = works("openreview", {"notes": notes})
    assert [work.title for work in found] == ["T"]
    assert found[0].locations[0].url == "https://openreview.net/pdf/x.pdf"
    assert works("openreview", {"notes": [], "count": 0}) == []


def test_parts_of_plos_articles_are_no_works():
    docs = [{"id": "10.1371/journal.pone.0026564/body"}, {"id": "10.1371/journal.pone.0026564"}]
    assert len(works("plos", {"response": {"numFound": 2, "start": 0, "docs": docs}})) == 1


@pytest.mark.parametrize("name", ["plos", "hal"])
def test_solr_in_xml(name: str):
    field = {"plos": ("id", "10.1371/journal.pone.0000001"), "hal": ("doiId_s", "10.1371/journal.pone.0000001")}[name]
    body = (
        f'<response><result name="response" numFound="3" start="0"><doc><str name="{field[0]}">{field[1]}</str>'
        '<arr name="abstract"><str>Words.</str></arr></doc></result></response>'
    ).encode()
    page = read(name, Answer(body))
    assert page.works[0].identifiers == {"doi": "10.1371/journal.pone.0000001"}
    assert (page.cursor, page.n_total) == ("1", 3)


def test_europe_pmc_citations_references_and_one_article():
    url = "https://www.ebi.ac.uk/europepmc/webservices/rest/MED/29867326/citations?page=1"
    citing = {"id": "1", "source": "MED", "title": "Citing.", "journalAbbreviation": "J"}
    found = works("europe-pmc", {"hitCount": 1, "citationList": {"citation": [citing]}}, url)
    assert found[0].references == ["pmid:29867326"]
    cited = {"id": "2", "source": "MED", "title": "Cited."}
    found = works("europe-pmc", {"referenceList": {"reference": [cited]}}, url.replace("citations", "references"))
    assert found[0].related == [Related("is-cited-by", "pmid:29867326")]
    assert works("europe-pmc", {"hitCount": 1, "result": cited})[0].identifiers == {"pmid": "2"}
    retracted = {"id": "3", "source": "MED", "pubTypeList": {"pubType": ["Journal Article", "Retracted Publication"]}}
    assert works("europe-pmc", {"resultList": {"result": retracted}})[0].is_retracted is True


def test_ncbi_summaries_links_listings_and_wrapped_articles():
    summary = {"result": {"uids": ["5"], "5": {"title": "T", "articleids": [{"idtype": "doi", "value": "10.1/X"}]}}}
    assert works("ncbi-pmc", summary)[0].identifiers == {"pmid": "5", "doi": "10.1/x"}
    old = b'<eSummaryResult><DocSum><Id>5</Id><Item Name="Title">T</Item><Item Name="DOI">10.1/X</Item></DocSum></eSummaryResult>'
    assert works("ncbi-pmc", old)[0].title == "T"
    links = {"linksets": [{"ids": ["7"], "linksetdbs": [{"linkname": "pubmed_pubmed_citedin", "links": ["8"]}]}]}
    assert works("ncbi-pmc", links)[0].references == ["pmid:7"]
    listing = (
        b"<ListBucketResult><Contents><Key>PMC12.1/PMC12.1.pdf</Key></Contents>"
        b"<Contents><Key>PMC12.2/PMC12.2.pdf</Key></Contents><Contents><Key>PMC12.2/fig1.jpg</Key></Contents></ListBucketResult>"
    )
    assert [place.url for place in works("ncbi-pmc", listing)[0].locations] == [
        "https://pmc-oa-opendata.s3.amazonaws.com/PMC12.2/PMC12.2.pdf"
    ]
    assert works("ncbi-pmc", b"<PubmedArticleSet></PubmedArticleSet>") == []
    wrapped = (
        b"<OAI-PMH><GetRecord><record><metadata><article><front><article-meta><article-id pub-id-type='pmc'>12</article-id>"
        b"</article-meta></front></article></metadata></record></GetRecord></OAI-PMH>"
    )
    assert works("ncbi-pmc", wrapped)[0].identifiers == {"pmcid": "PMC12"}


def test_retractions_of_pubmed():
    body = (
        b"<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>1</PMID><Article><ArticleTitle>T<i>x</i></ArticleTitle>"
        b"<PublicationTypeList><PublicationType>Retracted Publication</PublicationType></PublicationTypeList></Article>"
        b"<CommentsCorrectionsList><CommentsCorrections RefType='RetractionIn'><PMID>2</PMID></CommentsCorrections>"
        b"</CommentsCorrectionsList></MedlineCitation></PubmedArticle></PubmedArticleSet>"
    )
    work = works("ncbi-pmc", body)[0]
    assert work.is_retracted is True
    assert work.title == "Tx"
    assert work.related == [Related("retracted-by", "pmid:2")]


def test_arxiv_in_its_other_forms():
    raw = (
        b"<record><header><identifier>oai:arXiv.org:2005.11401</identifier></header><metadata><arXivRaw>"
        b"<id>2005.11401</id><version version='v1'><date>Fri, 22 May 2020 21:34:34 GMT</date></version>"
        b"<version version='v4'><date>Mon, 12 Apr 2021 15:42:18 GMT</date></version><title>T</title>"
        b"<authors>Ada Lovelace (Analytical Engines), Charles Babbage and George Boole</authors></arXivRaw></metadata></record>"
    )
    work = works("arxiv", raw)[0]
    assert (work.arxiv_version, work.published_on) == (4, "2020-05-22")
    assert work.authors == ["Ada Lovelace", "Charles Babbage", "George Boole"]
    feed = (
        b"<rss><channel><item><title>T</title><guid>oai:arXiv.org:2401.00042v1</guid><link>https://arxiv.org/abs/2401.00042</link>"
        b"<description>arXiv:2401.00042v1 Announce Type: new \nAbstract: Words.</description></item></channel></rss>"
    )
    work = works("arxiv", feed)[0]
    assert (work.identifiers, work.arxiv_version, work.abstract) == ({"arxiv": "2401.00042"}, 1, "Words.")
    headers = (
        b"<OAI-PMH><ListIdentifiers><header><identifier>oai:arXiv.org:2401.00042</identifier></header>"
        b"<header status='deleted'><identifier>oai:arXiv.org:2401.00043</identifier></header></ListIdentifiers></OAI-PMH>"
    )
    assert [work.source_id for work in works("arxiv", headers)] == ["2401.00042"]


def test_a_withdrawn_paper_is_marked():
    entry = (
        b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>http://arxiv.org/abs/2401.00042v2</id><title>T</title>'
        b"<summary>This paper has been withdrawn by the authors.</summary></entry></feed>"
    )
    assert works("arxiv", entry)[0].is_retracted is True


def test_several_bibtex_entries():
    body = b'@string{x = 1}\n@article{a, title={A {B}}, year=2020}\n@misc{b, title = "C", doi = {10.1/X}, author={L, Ada and B}}'
    found = works("hal", body)
    assert [work.title for work in found] == ["A B", "C"]
    assert found[1].authors == ["Ada L", "B"]


def test_an_anthology_paper_elsewhere_and_a_retracted_one():
    body = (
        b"<collection id='W19'><volume id='1'><meta><year>2019</year></meta>"
        b"<paper id='2'><title>A <fixed-case>B</fixed-case></title><url>https://example.org/a.pdf</url></paper>"
        b"<paper id='3'><title>C</title><url>W19-0103</url><retracted>why</retracted></paper></volume></collection>"
    )
    first, second = works("acl-anthology", body)
    assert (first.source_id, first.title, first.locations[0].url) == ("W19-0102", "A B", "https://example.org/a.pdf")
    assert second.is_retracted is True


def damaged(value: Any, chance: random.Random, share: float) -> Any:
    if chance.random() < share:
        odd = [None, "", 0, -1, 1.5, True, [], {}, [None], ["x"], {"a": 1}, "null", [[]], 10**25, "\ud800x\x00"]
        return chance.choice(odd)
    if isinstance(value, dict):
        return {key: damaged(item, chance, share) for key, item in value.items() if chance.random() > share / 2}
    if isinstance(value, list):
        return [damaged(item, chance, share) for item in value[:5]]
    return value


@pytest.mark.parametrize("path", [path for path in (*N_WORKS, *ERRORS) if path.endswith(".json")])
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), share=st.sampled_from([0.01, 0.05, 0.2]))
def test_damaged_fields_end_in_works_or_in_an_outcome(path: str, seed: int, share: float):
    name = path.partition("/")[0]
    value = damaged(json.loads(answer(path).body), random.Random(seed), share)
    source = SOURCES[name]
    from ingest.sources.base import Access

    try:
        page = source(Access()).read(Answer(json.dumps(value).encode()))  # pyright: ignore[reportAttributeAccessIssue]
    except SourceError:
        return
    for work in page.works:
        assert json.dumps(work.to_json(), ensure_ascii=False).encode()
        assert all(place.url.startswith("http") for place in work.locations)
        assert all(text is None or text.strip() for text in (work.title, work.abstract, work.venue, work.source_id))
        assert all(isinstance(text, str) and text for text in (*work.authors, *work.references))
