"""Works become papers: merged over everything that is known, without losing what was stated by hand."""

import itertools
import json
import time

import pytest

from ingest.acquire.report import estimate_unseen, is_off_topic, topic_report
from ingest.acquire.split import split_paper
from ingest.acquire.works import store_works
from ingest.decisions import read_decisions, restore_settings
from ingest.papers import write_papers
from ingest.records import PaperRecord
from ingest.seeds import SeedFile, seed_path, write_seed_file
from ingest.topics import export_seeds
from ingest.work import Location, Related, Work
from tests.sources.support import parsed

TITLE = "A careful study of how snails cross wide roads"


def arxiv(own="2401.00001", **fields):
    known = {"title": TITLE, "abstract": "Snails are slow.", "authors": ["Ada Snail"], "year": 2024, "kind": "preprint"}
    return Work("arxiv", own, {"arxiv": own}, **{**known, **fields})


def crossref(doi="10.1000/snails", **fields):
    known = {"title": TITLE, "authors": ["Ada Snail"], "year": 2024, "venue": "Journal of Snails"}
    return Work("crossref", doi, {"doi": doi}, **{**known, **fields})


@pytest.fixture
def connection(database):
    with database.connect(autocommit=True) as connection:
        connection.execute("INSERT INTO topic (name) VALUES ('snails')")
        yield connection


def rows(connection, query, *values):
    return connection.execute(query, values or None).fetchall()


def papers(connection):
    return [row[0] for row in rows(connection, "SELECT paper_id FROM paper ORDER BY 1")]


PAPERS = (
    "SELECT title, abstract, authors, year, venue, n_citations, (SELECT array_agg(kind || ':' || value ORDER BY kind, value) "
    "FROM paper_identifier i WHERE i.paper_pk = p.paper_pk AND kind <> 'key') FROM paper p ORDER BY 1"
)


def test_whatever_the_order_the_paper_is_the_same(connection):
    works = [
        arxiv(), crossref(n_citations=7, related=[Related("has-preprint", "arxiv:2401.00001")]),
        Work("openalex", "W42", {"openalex": "W42", "doi": "10.1000/snails"}, title=TITLE.upper(), n_citations=9),
    ]  # fmt: skip
    ends = set()
    for order in itertools.permutations(works):
        connection.execute("TRUNCATE paper, work CASCADE")
        for work in order:
            store_works(connection, [work])
        ends.add(json.dumps(rows(connection, PAPERS)))
        assert rows(connection, "SELECT count(*) FROM work WHERE paper_pk IS NULL") == [(0,)]
    assert len(ends) == 1
    (end,) = json.loads(ends.pop())
    assert end == [
        TITLE, "Snails are slow.", ["Ada Snail"], 2024, "Journal of Snails", 9,
        ["arxiv:2401.00001", "doi:10.1000/snails", "openalex:W42"],
    ]  # fmt: skip


def test_two_papers_that_turn_out_to_be_one_keep_the_older_key_and_everything_else(connection):
    store_works(connection, [arxiv(title="Snails cross roads", authors=["A. Snail"])], topic="snails")
    store_works(connection, [crossref()])
    assert papers(connection) == ["arxiv:2401.00001", "doi:10.1000/snails"]
    connection.execute("UPDATE paper SET mark = 'star' WHERE paper_id LIKE 'doi:%'")
    connection.execute(
        "INSERT INTO document (paper_pk, sha256, n_bytes, verdict) SELECT paper_pk, sha256('x'), 1, 'ok' FROM paper WHERE paper_id LIKE 'doi:%'"
    )
    store_works(
        connection,
        [
            arxiv(
                title="Snails cross roads",
                authors=["A. Snail"],
                related=[Related("is-preprint-of", "doi:10.1000/snails")],
            )
        ],
    )
    assert papers(connection) == ["arxiv:2401.00001"]
    assert rows(connection, "SELECT title, mark, (SELECT count(*) FROM document) FROM paper") == [(TITLE, "star", 1)]
    assert rows(
        connection, "SELECT p.paper_id FROM paper_resolve(ARRAY['doi:10.1000/snails']) JOIN paper p USING (paper_pk)"
    ) == [("arxiv:2401.00001",)]
    assert ("key", "doi:10.1000/snails") in rows(connection, "SELECT kind, value FROM paper_identifier")


def test_what_was_stated_by_hand_stays_and_a_second_statement_takes_nothing_back(connection):
    stated = PaperRecord(
        "arxiv:2401.00001",
        title="My own title",
        identifiers={"arxiv": "2401.00001", "doi": "10.48550/arxiv.2401.00001"},
        raw={"shelf": 3},
    )
    write_papers(connection, [stated])
    store_works(connection, [arxiv(), crossref(related=[Related("has-preprint", "arxiv:2401.00001")])])
    for _ in range(2):
        title, abstract, raw, provenance, venue = rows(
            connection, "SELECT title, abstract, raw, provenance, venue FROM paper"
        )[0]
        assert (title, abstract, raw, venue) == ("My own title", "Snails are slow.", {"shelf": 3}, "Journal of Snails")
        assert "title" not in provenance
        assert provenance["abstract"] == "arxiv"
        assert ("doi", "10.1000/snails") in rows(connection, "SELECT kind, value FROM paper_identifier")
        write_papers(connection, [stated])


def test_prefixed_papers_are_never_touched(connection):
    write_papers(
        connection,
        [
            PaperRecord(
                "p:1",
                is_prefixed=True,
                title=TITLE,
                authors=("Ada Snail",),
                year=2024,
                identifiers={"arxiv": "2401.00001"},
            )
        ],
    )
    before = rows(connection, "SELECT * FROM paper")
    store_works(connection, [arxiv(), crossref(related=[Related("has-preprint", "arxiv:2401.00001")])])
    assert papers(connection) == ["arxiv:2401.00001", "p:1"]
    assert rows(connection, "SELECT * FROM paper WHERE is_prefixed") == before


def test_a_merge_is_undone_for_good(connection, tmp_path):
    works = [arxiv(), crossref(), Work("openalex", "W42", {"openalex": "W42", "doi": "10.1000/snails"}, title=TITLE)]
    store_works(connection, works, topic="snails")
    assert papers(connection) == ["arxiv:2401.00001"]
    assert split_paper(connection, "arxiv:2401.00001", "10.1000/snails") == ("arxiv:2401.00001", "doi:10.1000/snails")
    for _ in range(2):
        assert papers(connection) == ["arxiv:2401.00001", "doi:10.1000/snails"]
        assert rows(connection, "SELECT count(*) FROM paper_topic") == [(2,)]
        found = rows(
            connection,
            "SELECT p.paper_id, i.kind, value FROM paper_identifier i JOIN paper p USING (paper_pk) WHERE i.kind <> 'key' ORDER BY 1, 2",
        )
        assert found == [
            ("arxiv:2401.00001", "arxiv", "2401.00001"), ("doi:10.1000/snails", "doi", "10.1000/snails"),
            ("doi:10.1000/snails", "openalex", "W42"),
        ]  # fmt: skip
        store_works(connection, works)
    export_seeds(connection, tmp_path)
    decisions = read_decisions(tmp_path)
    connection.execute("TRUNCATE paper, work, apart CASCADE")
    restore_settings(connection, decisions)
    store_works(connection, works)
    assert papers(connection) == ["arxiv:2401.00001", "doi:10.1000/snails"]


def test_papers_of_the_corpus_that_cite_each_other_are_linked_whoever_comes_first(connection):
    store_works(connection, [arxiv(references=["doi:10.1000/cited", "A text without identifier"])])
    store_works(
        connection,
        [crossref("10.1000/cited", title="Another thing that is long enough to stand alone", authors=["B. Other"])],
    )
    store_works(
        connection,
        [
            crossref(
                "10.1000/third",
                title="A third thing that is long enough to stand alone",
                authors=["C. Third"],
                references=["doi:10.1000/cited"],
            )
        ],
    )
    links = rows(
        connection,
        "SELECT a.paper_id, b.paper_id, source FROM citation JOIN paper a ON a.paper_pk = citing_pk JOIN paper b ON b.paper_pk = cited_pk ORDER BY 1",
    )
    assert links == [
        ("arxiv:2401.00001", "doi:10.1000/cited", "arxiv"),
        ("doi:10.1000/third", "doi:10.1000/cited", "crossref"),
    ]


def test_counts_by_year_make_the_velocity_and_a_retraction_stays(connection):
    store_works(
        connection,
        [
            crossref(
                n_citations=100,
                n_citations_by_year={"2024": 3, "2025": 6},
                is_retracted=True,
                locations=[Location("https://a.org/x.pdf", "pdf")],
            )
        ],
    )
    velocity, is_retracted = rows(connection, "SELECT velocity, is_retracted FROM paper")[0]
    assert 0 < velocity <= 9
    assert is_retracted
    store_works(connection, [crossref(n_citations=101, is_retracted=None)])
    assert rows(connection, "SELECT n_citations, is_retracted FROM paper") == [(101, True)]


def test_a_report_counts_rounds_and_estimates_what_is_unseen(connection):
    store_works(connection, [arxiv(), crossref(related=[Related("has-preprint", "arxiv:2401.00001")])], topic="snails")
    store_works(
        connection,
        [crossref("10.1000/other", title="Another thing that is long enough to stand alone", authors=["B. Other"])],
        topic="snails",
    )
    found = topic_report(connection, "snails")
    assert (found["n_papers"], found["n_full_texts"], found["n_by_sources"]) == (2, 0, {"1": 1, "2": 1})
    assert found["rounds"][0]["n_new"] == 3  # one paper was new to both of its sources
    assert {row["paper_id"] for row in found["missing"]} == {"arxiv:2401.00001", "doi:10.1000/other"}
    assert estimate_unseen({1: 10, 2: 4, 3: 2}) == 9.0
    assert estimate_unseen({1: 10}) is None


def test_an_acquired_paper_comes_back_from_its_seed_file(connection, tmp_path):
    write_seed_file(SeedFile(seed_path(tmp_path, "snails"), "snails"))
    store_works(
        connection,
        [arxiv(n_citations=3), crossref(related=[Related("has-preprint", "arxiv:2401.00001")])],
        topic="snails",
    )
    export_seeds(connection, tmp_path, only={"snails"})
    lines = [json.loads(line) for line in (tmp_path / "snails.jsonl").read_text().splitlines()]
    assert lines[1]["id"] == "arxiv:2401.00001"
    assert lines[1]["doi"] == "10.1000/snails"
    assert lines[1]["provenance"]["venue"] == "crossref"


@pytest.mark.shared
def test_two_hundred_works_from_three_sources_take_less_than_ten_seconds(connection):
    names = (
        "semantic-scholar/search_turing_offset0.json",
        "biorxiv/details_biorxiv_interval_100.json",
        "europe-pmc/search_core.json",
    )
    batches = [parsed(name).works for name in names]
    assert sum(map(len, batches)) >= 200
    began = time.process_time(), time.monotonic()
    for batch in batches:
        store_works(connection, batch, topic="snails")
    assert time.monotonic() - began[1] < 10
    n_papers, n_queued = rows(
        connection, "SELECT (SELECT count(*) FROM paper), (SELECT sum(n_items) FROM job WHERE kind = 'embed_papers')"
    )[0]
    assert n_papers == n_queued >= 180


def test_what_shares_no_word_with_the_queries_is_told_and_stays(connection):
    store_works(
        connection,
        [arxiv(), crossref("10.1000/wages", title="Wages in Regional Labour Markets", authors=["J. Doe"])],
        topic="snails",
    )
    connection.execute(
        "INSERT INTO topic_search (topic_id, query, source) SELECT topic_id, 'ti:snail AND roads', 'arxiv' FROM topic"
    )
    found = topic_report(connection, "snails")
    assert found["n_off_topic"] == 1
    assert found["off_topic"] == [
        {"paper_id": "doi:10.1000/wages", "title": "Wages in Regional Labour Markets", "sources": ["crossref"]}
    ]
    assert found["n_papers"] == 2
    assert not is_off_topic("A snail's pace", ["snails"])
    assert not is_off_topic("anything", []), "without a query nothing is off it"
