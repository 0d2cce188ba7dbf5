"""What recorded answers say of their next page and of how many there are."""

from __future__ import annotations

import pytest

from tests.sources.support import parsed


@pytest.mark.parametrize(
    ("path", "cursor", "total"),
    [
        ("arxiv/oai_generic_listrecords_with_resumptionToken.xml", "ListRecords2.xml", 8),
        ("arxiv/oai_generic_listrecords_last_page.xml", None, None),
        ("biorxiv/details_biorxiv_interval_100.json", "100", 60568),
        ("biorxiv/excerpt_details_interval.json", "30", 109),  # the page size changed: step by what the answer holds
        ("core/v3_search_works.json", "1", 2129241),
        ("crossref/works_query_no_hits.json", None, 0),
        ("doaj/v4_search_articles.json", "2", 33928),
        ("europe-pmc/search_lite.json", "AoIIP4ZawSg1MzEyODI1MA==", 5059039),
        ("europe-pmc/search_lite.xml", "AoIIP4ZawSg1MzEyODI1MA==", 5059039),
        ("europe-pmc/search_no_results.json", None, 0),
        ("hal/search_default_fields.json", "30", 51),
        ("inspire-hep/excerpt_search_envelope.json", "2", 126),
        ("ncbi-pmc/esearch_pubmed_2025.xml", "20", 63),
        ("openalex/excerpt_cursor_meta.json", "IlsxNjA5MzcyODAwMDAwLCAnaHR0cHM...", 8695857),
        ("plos/search_count_only_rows0.json", None, 3788),
        ("plos/search_highlight.json", "5", 32773),
        ("semantic-scholar/search_turing_offset0.json", "100", 70498),
        ("semantic-scholar/search_turing_offset100.json", "200", 70498),
        ("semantic-scholar/bulk_search_last_page.json", None, 3027),
        ("semantic-scholar/references_offset0.json", "50", None),
        ("semantic-scholar/references_offset50_last.json", None, None),
        ("dblp/search_publ_test.json", "30", 67660),
        ("arxiv/query_search_testing_s0_m10.atom.xml", "10", None),
    ],
)
def test_paging(path: str, cursor: str | None, total: int | None):
    page = parsed(path)
    assert page.cursor == cursor
    if total is not None:
        assert page.n_total == total


def test_crossref_gives_the_cursor_until_the_items_end():
    first = parsed("crossref/works_cursor_page1.json")
    assert first.cursor is not None
    assert first.cursor.startswith("DnF1ZXJ5VGhlbkZldGNo")
    assert parsed("crossref/works_query_no_hits.json").cursor is None
