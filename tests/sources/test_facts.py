"""Facts of recorded answers, as they stand in the recordings: what each adapter must get right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ingest.work import Related, Work
from tests.sources.support import answer, parsed, read

FIRST: dict[str, dict[str, Any]] = {
    "acl-anthology/page_2021.naacl-main.208.html": {
        "identifiers": {"acl": "2021.naacl-main.208", "doi": "10.18653/v1/2021.naacl-main.208"},
        "title": "How many data points is a prompt worth?", "authors": ["Teven Le Scao", "Alexander M. Rush"],
        "year": 2021, "licence": "cc-by-4.0",
    },
    "acl-anthology/xml_2022.naloma.xml": {
        "source_id": "2022.naloma-1.1", "title": "Strings from neurons to language", "authors": ["Tim Fernando"],
        "year": 2022,
    },
    "acl-anthology/xml_J89.xml": {"source_id": "J89-1001", "year": 1989, "licence": "cc-by-nc-sa-3.0"},
    "arxiv/query_id_1605.08386.atom.xml": {
        "source_id": "1605.08386", "identifiers": {"arxiv": "1605.08386"}, "arxiv_version": 1,
        "title": "Heat-bath random walks with Markov bases", "authors": ["Caprice Stanley", "Tobias Windisch"],
        "published_on": "2016-05-26", "year": 2016, "venue": None, "n_citations": None,
    },
    "arxiv/query_id_old_style_versioned.atom.xml": {
        "identifiers": {"arxiv": "quant-ph/0201082"}, "arxiv_version": 1, "authors": ["Stephen Blaha"], "year": 2002,
    },
    "arxiv/query_search_testing_s0_m10.atom.xml": {
        "identifiers": {"arxiv": "2202.12139", "doi": "10.1109/icstw55395.2022.00035"}, "arxiv_version": 1,
    },
    "arxiv/legacy_2020_search.atom.xml": {
        "identifiers": {"arxiv": "2008.11708"}, "arxiv_version": 1, "published_on": "2020-08-25",
        "title": "A Multitask Deep Learning Approach for User Depression Detection on Sina Weibo",
    },
    "arxiv/oai_getrecord_1305.0014_arXiv.xml": {
        "identifiers": {"arxiv": "1305.0014", "doi": "10.1103/physrevc.87.065504"},
        "authors": ["S. Gardner", "B. Plaster"], "published_on": "2013-04-30", "updated_on": "2013-06-28",
        "licence": "http://arxiv.org/licenses/nonexclusive-distrib/1.0/", "venue": "Phys. Rev. C 87, 065504 (2013)",
    },
    "arxiv/oai_listrecords_hep-th_arXiv.xml": {"source_id": "1412.8323", "licence": "cc-by-4.0"},
    "arxiv/oai_record_1711.04702_oai_dc.xml": {
        "identifiers": {"arxiv": "1711.04702"}, "published_on": "2017-11-13",
        "authors": ["Deisy Morselli Gysi", "Andre Voigt", "Tiago de Miranda Fragoso", "Eivind Almaas", "Katja Nowick"],
    },
    "biorxiv/details_biorxiv_interval_100.json": {
        "source_id": "10.1101/029900v3", "identifiers": {"doi": "10.1101/029900"}, "venue": "bioRxiv",
        "published_on": "2024-12-16", "licence": "cc-by", "kind": "preprint",
    },
    "biorxiv/crossref_work_biorxiv_published_preprint.json": {
        "related": [Related("is-preprint-of", "doi:10.1016/j.xgen.2025.100814")], "kind": "preprint", "n_citations": 2,
    },
    "biorxiv/excerpt_pubs_interval.json": {
        "identifiers": {"doi": "10.1101/2025.09.17.676679"},
        "related": [Related("is-preprint-of", "doi:10.1091/mbc.e25-09-0454")],
    },
    "core/v3_search_works.json": {
        "source_id": "58971691", "identifiers": {"doi": "10.1109/icassp.2019.8683483", "arxiv": "1904.10788"},
        "venue": "Institute of Electrical and Electronics Engineers (IEEE)", "year": 2019, "n_citations": 0,
    },
    "crossref/work_10.1007_s40278-023-41815-2.json": {
        "identifiers": {"doi": "10.1007/s40278-023-41815-2"}, "venue": "Reactions Weekly", "abstract": None,
        "authors": [], "references": ["doi:10.1016/j.eimce.2021.01.009"], "published_on": "2023-06-24",
    },
    "crossref/works_cursor_page1.json": {  # issued is [[null]] and nothing else dates it
        "identifiers": {"doi": "10.1007/978-1-4302-0197-7_9"}, "year": None, "published_on": None,
    },
    "crossref/agency_10.1126_science.169.3946.635.json": {
        "identifiers": {"doi": "10.1126/science.169.3946.635"}, "title": None,
    },
    "crossref/bibtex_10.1063_1.4938384.bib": {
        "identifiers": {"doi": "10.1063/1.4938384"}, "year": 2015, "venue": "Journal of Applied Physics",
        "authors": ["Michael D. Skarlinski", "David J. Quesnel"],
    },
    "crossref/works_query_title.json": {"n_citations": 10, "published_on": "2015-12-21"},
    "datacite/doi_10.5061_dryad.8515.json": {
        "identifiers": {"doi": "10.5061/dryad.8515"}, "references": ["doi:10.1371/journal.ppat.1000446"],
        "licence": "cc0-1.0", "n_citations": 1, "year": 2011,
    },
    "datacite/doi_ra_10.5281.json": {"source_id": "10.5281", "identifiers": {}},
    "datacite/dois_list_size5_page1.json": {
        "related": [Related("is-version-of", "doi:10.5281/zenodo.3596960")], "authors": ["Francis Gómez"],
    },
    "dblp/search_publ.xml": {
        "identifiers": {"doi": "10.1007/s11063-025-11757-7", "dblp": "journals/npl/WangSLZWWLL25"}, "year": 2025,
        "title": "Rethinking Attention Mechanism: Channel Re-attention and Spatial Multi-region Attention for "
        "Fine-grained Visual Classification",
    },
    "dblp/search_publ_test.json": {  # authors are bare strings
        "authors": ["Tsuyoshi Shinogi", "Hiroyuki Yamada", "Terumine Hayashi", "Shinji Tsuruoka", "Tomohiro Yoshikawa"],
    },
    "dblp/excerpt_search_publ_one_hit.json": {  # authors are objects
        "authors": ["Tsuyoshi Shinogi", "Hiroyuki Yamada", "Terumine Hayashi", "Shinji Tsuruoka", "Tomohiro Yoshikawa"],
    },
    "doaj/article_by_id.json": {"year": 2015, "venue": "Revista Árvore", "licence": None},
    "doaj/v4_search_articles.json": {"identifiers": {"doi": "10.3389/fpsyg.2021.700180"}, "year": 2021},
    "europe-pmc/record_core_PMC8118396.json": {
        "identifiers": {"pmid": "34027066", "pmcid": "PMC8118396", "doi": "10.1080/23802359.2021.1911705"},
        "title": "Complete mitochondrial genome sequence of the global invasive species Stictocephala bisonia "
        "(Hemiptera: Membracidae: Smiliinae).",
        "n_citations": 0, "licence": "cc-by", "is_retracted": False, "published_on": "2021-05-05",
        "authors": ["Ruitao Yu", "Leining Feng", "Xiangqun Yuan"],
    },
    "europe-pmc/fullTextXML_PMC8118396.xml": {
        "identifiers": {"pmcid": "PMC8118396", "doi": "10.1080/23802359.2021.1911705"}, "licence": "cc-by-4.0",
        "published_on": "2021-05-05", "venue": "Mitochondrial DNA. Part B, Resources",
    },
    "europe-pmc/search_lite.json": {
        "identifiers": {"pmid": "39709209", "doi": "10.1016/s0140-6736(24)02600-x"}, "abstract": None,
        "authors": ["Schoenfeld JD", "Haas-Kogan DA", "O'Neill AF"], "venue": "Lancet",
    },
    "europe-pmc/search_idlist.json": {"identifiers": {"pmid": "39709209"}, "title": None, "authors": []},
    "europe-pmc/excerpt_search_preprints_lite.json": {
        "identifiers": {"doi": "10.64898/2026.08.20.745440"}, "venue": "bioRxiv", "kind": "preprint",
    },
    "hal/page_jpa-00235190.html": {
        "source_id": "jpa-00235190", "title": "Déplacement de Knight dans les alliages", "authors": ["Jacques Friedel"],
        "identifiers": {"doi": "10.1051/jphysrad:01955001606044400", "hal": "jpa-00235190"}, "year": 1955,
    },
    "hal/search_all_fields.json": {"source_id": "hal-02498602", "published_on": "2020-06-02", "kind": "COMM"},
    "hal/search_with_fl.json": {"identifiers": {"hal": "hal-04637647"}, "year": 2020},
    "inspire-hep/literature_metadata.json": {
        "identifiers": {"doi": "10.1103/physrevd.100.015016", "arxiv": "1901.03061", "inspire": "1713040"},
        "n_citations": 26, "authors": ["Javad Ebadi", "Sara Khatibi", "Mojtaba Mohammadi Najafabadi"], "year": 2019,
        "venue": "Phys.Rev.D",
    },
    "ncbi-pmc/efetch_pmc.xml": {
        "identifiers": {"pmid": "34527728", "pmcid": "PMC8435807", "doi": "10.1183/23120541.50193-2021"},
        "related": [Related("corrects", "doi:10.1183/23120541.00193-2021")], "kind": "correction",
        "published_on": "2021-09-13", "licence": "cc-by-nc-4.0",
    },
    "ncbi-pmc/efetch_pubmed_32934823.xml": {
        "identifiers": {"pmid": "32934823", "pmcid": "PMC7489288", "doi": "10.15761/jsin.1000229"},
        "published_on": "2020-05-30", "is_retracted": False,
    },
    "ncbi-pmc/efetch_pubmed_24084238.xml": {
        "title": "Challenges in the miRNA research.", "year": 2013, "published_on": None,
        "authors": ["Tiratha Raj Singh", "Arun Gupta", "Prashanth Suravajhala"],
    },
    "ncbi-pmc/esearch_pmc.json": {"identifiers": {"pmcid": "PMC13014283"}, "title": None},
    "ncbi-pmc/esearch_pubmed_2025.xml": {"identifiers": {"pmid": "41282813"}},
    "ncbi-pmc/excerpt_idconv_ok.json": {
        "identifiers": {"pmid": "37258680", "pmcid": "PMC10949956", "doi": "10.1038/s41586-023-06139-9"},
    },
    "ncbi-pmc/excerpt_oa_fcgi_record.xml": {
        "identifiers": {"pmcid": "PMC7029759"}, "is_retracted": False, "licence": "cc-by",
    },
    "openalex/work_W2741809807.json": {
        "identifiers": {"openalex": "W2741809807", "doi": "10.7717/peerj.4375", "pmid": "29456894",
                        "pmcid": "PMC5815332", "mag": "2741809807"},
        "n_citations": 962, "is_retracted": False, "venue": "PeerJ", "published_on": "2018-02-13",
    },
    "openalex/work_by_doi_select_oa.json": {"identifiers": {"doi": "10.1093/nar/gkw1164"}, "title": None},
    "openalex/works_list_page.json": {"venue": "Physical Review Letters", "n_citations": 850},
    "openreview/excerpt_notes_search_tmlr.json": {
        "title": "Sin<GLU>: Sinusoidal Gated Linear Units Improve Classification Accuracy",
        "authors": ["Luke Byrne", "Paul Murray"], "identifiers": {"openreview": "qq4yipldw2"},
    },
    "plos/abstract_by_doi.json": {"identifiers": {"doi": "10.1371/journal.pone.0034368"}, "title": None},
    "plos/search_highlight.json": {
        "published_on": "2019-12-10", "venue": "PLOS ONE",
        "title": "Persistence of Burkholderia thailandensis E264 in lung tissue after a single binge alcohol episode",
    },
    "semantic-scholar/paper_by_doi_fields.json": {
        "identifiers": {"s2": "7e5d4466c8b85f93775fe183e1a318a3e65ac8e4", "doi": "10.1016/j.xgen.2025.100814",
                        "pmid": "40120586", "pmcid": "PMC12008803", "corpus": "268890006"},
        "n_citations": 5, "published_on": "2024-04-01",
    },
    "semantic-scholar/search_match_attention.json": {"n_citations": 136941, "locations": [], "abstract": None},
    "semantic-scholar/citations_offset0.json": {"references": ["corpus:14514057"]},
    "semantic-scholar/references_offset0.json": {
        "references": [], "related": [Related("is-cited-by", "doi:10.2139/ssrn.2250500")],
    },
    "semantic-scholar/references_offset50_last.json": {"source_id": None, "identifiers": {}},
    "semantic-scholar/snippet_search.json": {"title": "Computing Machinery and Intelligence", "authors": ["Alan Turing"]},
    "unpaywall/v2_10.1007_s40278-023-41815-2_closed.json": {"locations": [], "authors": [], "year": 2023},
    "unpaywall/v2_10.1038_nature12373_2026.json": {
        "title": "Nanometre-scale thermometry in a living cell", "published_on": "2013-07-30", "abstract": None,
    },
    "zenodo/search_publications_2026.json": {
        "identifiers": {"doi": "10.5281/zenodo.10635481"}, "licence": "cc-by-4.0", "published_on": "2024-02-12",
        "venue": "Journal of Industrial Engineering and Applied Science",
    },
}  # fmt: skip


@pytest.mark.parametrize("path", FIRST)
def test_the_first_work(path: str):
    work = parsed(path).works[0]
    assert {name: getattr(work, name) for name in FIRST[path]} == FIRST[path]


def test_openalex_abstracts_come_out_of_the_inverted_index():
    index = json.loads(answer("openalex/work_W2741809807.json").body)["abstract_inverted_index"]
    words = {place: word for word, places in index.items() for place in places}
    abstract = parsed("openalex/work_W2741809807.json").works[0].abstract or ""
    assert abstract.split() == [words[place] for place in sorted(words)]


def test_headings_of_abstracts_are_kept_apart():
    abstract = parsed("europe-pmc/search_core.json").works[2].abstract or ""
    assert abstract.startswith("Objective: This study investigated")
    labelled = [work.abstract or "" for work in parsed("ncbi-pmc/efetch_pubmed_2026.xml").works]
    assert any(text.startswith("AIMS AND OBJECTIVES: ") and " BACKGROUND: " in text for text in labelled)


def test_the_heading_abstract_is_no_part_of_it():
    works = parsed("crossref/works_has_abstract_jats.json").works
    assert works[8].abstract is not None
    assert works[8].abstract.startswith("The Earth has existed")
    assert works[9].abstract is not None
    assert works[9].abstract.startswith("Environmental damage")
    assert sum(work.abstract is None for work in works) == 1  # one says "Abstract" and nothing else


def test_core_loses_the_comment_that_it_glued_on():
    abstract = parsed("core/v3_search_works.json").works[0].abstract or ""
    assert abstract.endswith("in terms of weighted accuracy.")


def test_inline_markup_does_not_break_words():
    texts = [work.abstract or "" for work in parsed("europe-pmc/search_core.json").works]
    assert any("(H2S)" in text for text in texts)


def test_unknown_ids_are_left_out_and_not_shifted():
    assert [work.identifiers["arxiv"] for work in parsed("arxiv/query_id_two_one_unknown.atom.xml").works] == [
        "1707.08567"
    ]
    batch = parsed("semantic-scholar/batch_with_unknown_ids.json").works
    assert batch[0].identifiers["corpus"] == "470667"


def test_a_version_is_kept_beside_the_id():
    versions = {
        w.identifiers["arxiv"]: w.arxiv_version for w in parsed("arxiv/query_search_testing_s10_m10.atom.xml").works
    }
    assert versions["2403.16981"] == 2


def test_authors_that_are_objects_or_strings():
    works = parsed("openreview/excerpt_notes_search_graph_2026.json").works
    assert works[0].authors[0] == "Beini Xie"
    assert works[1].authors[0] == "Sunil Sahu"
    assert works[1].identifiers["doi"] == "10.18653/v1/p19-1423"
    assert works[1].licence == "cc-by-sa-4.0"


def test_preprints_name_the_articles_that_they_became():
    works = parsed("biorxiv/details_biorxiv_interval_100.json").works
    assert works[1].related == [Related("is-preprint-of", "doi:10.1371/journal.pone.0307156")]
    assert works[0].related == []  # "NA"


def test_an_erratum_names_what_it_corrects():
    assert Related("corrects", "pmid:39293462") in parsed("europe-pmc/search_core.json").works[1].related


def test_counts_by_year():
    counts = parsed("openalex/work_W2741809807.json").works[0].n_citations_by_year
    assert (counts["2024"], counts["2017"]) == (118, 9)


def test_bare_ids_of_pubmed_and_pmc_are_told_apart_by_the_address():
    given = answer("ncbi-pmc/esearch_pmc.xml")
    assert read("ncbi-pmc", given).works[0].identifiers == {"pmcid": "PMC6540636"}
    assert read("ncbi-pmc", type(given)(given.body)).works[0].identifiers == {"pmid": "6540636"}


def test_both_forms_of_one_answer_agree():
    def key(work: Work) -> tuple[object, ...]:
        return (work.source_id, work.title, work.authors, work.year, work.identifiers)

    json_form, xml_form = (parsed(f"europe-pmc/search_lite.{form}").works for form in ("json", "xml"))
    assert [key(work) for work in json_form] == [key(work) for work in xml_form]
