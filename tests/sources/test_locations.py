"""Where recorded answers say that full texts are."""

from __future__ import annotations

import pytest

from ingest.work import Location
from tests.sources.support import parsed


def places(path: str, index: int = 0) -> dict[str, Location]:
    return {place.url: place for place in parsed(path).works[index].locations}


@pytest.mark.parametrize(
    ("path", "index", "expected"),
    [
        (
            "arxiv/query_id_1605.08386.atom.xml", 0,
            Location("https://arxiv.org/pdf/1605.08386v1", "pdf", "submitted", None, "repository", is_open=True),
        ),
        (
            "acl-anthology/xml_2022.naloma.xml", 2,
            Location("https://aclanthology.org/2022.naloma-1.3.pdf", "pdf", "published", "cc-by-4.0", "publisher", True),
        ),
        (
            "biorxiv/details_biorxiv_interval_100.json", 0,
            Location(
                "https://www.biorxiv.org/content/10.1101/029900v3.full.pdf", "pdf", "submitted", "cc-by", "repository",
                is_open=True,
            ),
        ),
        (
            "openalex/work_W2741809807.json", 0,
            Location("https://peerj.com/articles/4375.pdf", "pdf", "published", "cc-by", "publisher", is_open=True),
        ),
        (
            "openalex/work_by_doi_10.1016_j.xgen.2025.100814.json", 0,  # open, and no PDF named
            Location("https://doi.org/10.1016/j.xgen.2025.100814", "landing", "published", "cc-by", "publisher", True),
        ),
        (
            "unpaywall/v2_10.1016_j.envint.2020.105730_2020.json", 0,
            Location("https://doi.org/10.1016/j.envint.2020.105730", "landing", "published", "cc-by-nc-nd", "publisher", True),
        ),
        (
            "unpaywall/v2_10.1038_nature12373_2020.json", 0,
            Location("http://europepmc.org/articles/pmc4221854?pdf=render", "pdf", "accepted", None, "repository", True),
        ),
        (
            "europe-pmc/record_core_PMC8118396.json", 0,
            Location("https://europepmc.org/articles/PMC8118396?pdf=render", "pdf", None, "cc-by", "repository", True),
        ),
        (
            "europe-pmc/search_core.json", 0,
            Location("https://doi.org/10.1016/S0140-6736(24)02600-X", "landing", None, None, "publisher", is_open=False),
        ),
        (
            "hal/search_with_fl.json", 0,
            Location("https://hal.science/hal-04637647/document", "pdf", None, None, "repository", is_open=True),
        ),
        (
            "inspire-hep/literature_metadata.json", 0,
            Location(
                "https://inspirehep.net/files/e0dfcdb42bf12e14ab06c704f6e2330d", "pdf", "published", "cc-by-4.0",
                "repository", is_open=True,
            ),
        ),
        (
            "core/v3_search_works.json", 0,  # a download link that is an abstract page
            Location("http://arxiv.org/abs/1904.10788", "landing", None, None, "repository", is_open=True),
        ),
        (
            "crossref/works_has_abstract_jats.json", 0,
            Location(
                "https://journals.uair.arizona.edu/index.php/JPE/article/viewFile/21112/20700", "pdf", "published",
                "cc-by-4.0", "publisher", is_open=True,
            ),
        ),
        (
            "semantic-scholar/citations_2026.json", 0,  # an empty address, and the true one in the disclaimer
            Location("https://arxiv.org/abs/2607.22410", "landing"),
        ),
        (
            "zenodo/search_publications_2026.json", 0,
            Location(
                "https://zenodo.org/api/records/10635481/files/v2n1a04.pdf/content", "pdf", None, "cc-by-4.0",
                "repository", is_open=True,
            ),
        ),
        (
            "plos/search_highlight.json", 0,
            Location(
                "https://journals.plos.org/plosone/article/file?id=10.1371/journal.pone.0218147&type=printable", "pdf",
                "published", "cc-by", "publisher", is_open=True,
            ),
        ),
        (
            "openreview/excerpt_notes_search_graph_2026.json", 0,
            Location(
                "https://openreview.net/pdf/eb64ab16c75a04aa0e9fbd0d256a2a61e6045fed.pdf", "pdf", "submitted", None,
                "repository", is_open=True,
            ),
        ),
        (
            "ncbi-pmc/efetch_pmc_three_articles_2026.xml", 0,
            Location(
                "https://eutils.ncbi.nlm.nih.gov/entrez/eutils/efetch.fcgi?db=pmc&id=13014283&retmode=xml", "xml",
                "published", "cc-by-nc-4.0", "repository", is_open=True,
            ),
        ),
    ],
)  # fmt: skip
def test_locations(path: str, index: int, expected: Location):
    assert places(path, index)[expected.url] == expected
