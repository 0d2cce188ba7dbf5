"""What sources do to us is told apart: throttled and down wait and are asked again, nothing turns into "no results"."""

import json
from datetime import date

import pytest

from corpus.errors import InputError
from ingest.acquire.harvest import harvest, read_wish
from ingest.fetching import http_settings
from ingest.http.fetcher import Fetcher
from ingest.pipeline import Wanted
from ingest.seeds import SeedFile, get_seed_file
from ingest.sources import make_sources
from tests.acquire.internet import Internet, serving
from tests.acquire.support import TOPIC, ingest, make_ingest, write_topic
from tests.sources.support import parsed, payload

pytestmark = pytest.mark.shared
ONE = ("2007.01282",)
OUTCOMES = {
    "throttled": (429, b'{"message": "Too Many Requests"}', {"Retry-After": "7200"}),
    "down": (503, b"maintenance", {}),
    "refused": (403, b'{"message": "Forbidden"}', {}),
    "nonsense": (200, b"<html><body>Welcome</body></html>", {}),
}


def rows(database, query):
    with database.connect() as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize("outcome", list(OUTCOMES))
def test_a_source_that_fails_is_counted_told_and_asked_again(database, tmp_path, outcome):
    write_topic(tmp_path, ids=ONE)
    lookups = "SELECT outcome FROM lookup WHERE source = 'semantic-scholar'"
    searches = "SELECT outcome, searched_at IS NULL FROM topic_search WHERE source = 'semantic-scholar'"
    with serving(Internet(broken={"api.semanticscholar.org": OUTCOMES[outcome]})) as internet:
        report = ingest(database, tmp_path, internet, has_full_texts=False)
        is_waiting = outcome in {"throttled", "down"}
        assert {row[0] for row in rows(database, lookups)} == {outcome}
        assert rows(database, searches) == [(outcome, is_waiting)]
        assert rows(
            database,
            f"SELECT n_{outcome} > 0, n_found, last_answer LIKE '{outcome}%' FROM source_day WHERE source = 'semantic-scholar'",
        ) == [(True, 0, True)]
        assert any("semantic-scholar" in note and outcome in note for note in report.notes)
        assert (rows(database, "SELECT fetched_at IS NULL FROM topic") == [(True,)]) == is_waiting
        assert report.problems == []
        internet.broken.clear()
        n_before = len(internet.asked)
        report = ingest(database, tmp_path, internet, has_full_texts=False)
        asked = [url for _, url in internet.asked[n_before:]]
        if is_waiting:
            assert asked
            assert all(url.startswith("api.semanticscholar.org/") for url in asked)
            assert rows(database, searches) == [("ok", False)]
            assert report.notes == []


def test_what_no_source_knows_is_a_problem_and_is_not_asked_for_again(database, tmp_path):
    write_topic(tmp_path, ids=("2601.00001",), queries=())
    with serving(Internet()) as internet:
        first = ingest(database, tmp_path, internet)
        n_before = len(internet.asked)
        second = ingest(database, tmp_path, internet)
        assert internet.asked[n_before:] == []
    assert [problem.partition(" ")[0] for problem in first.problems] == ["arxiv:2601.00001"]
    assert "semantic-scholar absent" in first.problems[0]
    assert second.problems == first.problems


def test_a_title_in_quotes_becomes_the_paper_and_a_title_that_nobody_knows_is_named(database, tmp_path):
    work = parsed("semantic-scholar/search_2026.json").works[0]
    seeds = write_topic(tmp_path, ids=(f'"{work.title.upper()}"', '"A title of no paper at all"'), queries=())
    with serving(Internet()) as internet:
        report = ingest(database, tmp_path, internet, has_full_texts=False)
    assert len(report.problems) == 1
    assert "A title of no paper at all" in report.problems[0]
    ids = [entry["id"] for entry in get_seed_file(seeds, TOPIC).entries]
    assert '"A title of no paper at all"' in ids
    (own,) = [own for own in ids if not own.startswith('"')]
    assert rows(database, "SELECT paper_id, title FROM paper") == [(own, work.title)]


def test_without_a_network_given_metadata_and_notes_work_as_ever(database, tmp_path, monkeypatch):
    async def is_online():
        return False

    monkeypatch.setattr("ingest.acquire.run.is_online", is_online)
    (tmp_path / "note.md").write_text("# A note about snails\n\n" + "Words about snails. " * 40)
    entries = ({"id": "2310.11511", "title": "Self-RAG", "abstract": "Reflection."}, {"id": "note.md", "kind": "note"})
    write_topic(tmp_path, ids=(), queries=("snails",), entries=entries)
    ingest_ = make_ingest(database, tmp_path, Internet())
    ingest_.make_fetcher = Fetcher
    report = ingest_.run(Wanted(topics=[TOPIC]))
    assert report.problems == []
    assert len(report.notes) == 1
    assert "no network" in report.notes[0]
    assert rows(database, "SELECT count(*) FROM paper") == [(2,)]
    assert rows(database, "SELECT count(*) FROM job WHERE kind = 'fetch'") == [(0,)]


def test_files_that_are_not_the_paper_are_put_aside_with_the_reason(database, tmp_path):
    wrong = "https://example.org/wrong.pdf"
    write_topic(tmp_path, ids=(), queries=(), entries=({"id": "2007.01282", "pdf_url": wrong},))
    internet = Internet()
    with serving(internet):
        answer = internet.answer

        def other(method, url, body):
            if url.startswith("example.org/"):
                return answer(method, "arxiv.org/pdf/1412.6980", body)
            return answer(method, url, body)

        internet.answer = other
        report = ingest(database, tmp_path, internet)
    assert report.problems == []
    found = dict(
        rows(database, "SELECT url, outcome FROM fetch_attempt WHERE outcome <> 'absent' ORDER BY fetch_attempt_id")
    )
    assert found == {wrong: "quarantined", "https://arxiv.org/pdf/2007.01282v1": "ok"}
    reasons = rows(database, "SELECT reason FROM fetch_attempt WHERE outcome = 'quarantined'")
    assert "wrong paper" in reasons[0][0]
    assert len(list((tmp_path / "home" / "quarantine").rglob("*"))) >= 1
    assert rows(database, "SELECT count(*) FROM document") == [(1,)]


def test_a_harvest_takes_what_fits_the_topics_that_ask(database, tmp_path):
    works = parsed("arxiv/oai_listrecords_hep-th_arXiv.xml").works
    words = " ".join(works[0].title.split()[:3])
    write_topic(tmp_path, ids=(), queries=(words,))
    seed = SeedFile(tmp_path / "x.jsonl", TOPIC, {"queries": [words], "harvest": {"sets": ["physics:hep-th"]}})
    wish = read_wish(seed)
    assert read_wish(SeedFile(tmp_path / "x.jsonl", TOPIC, {"queries": [words]})) is None
    with database.connect(autocommit=True) as connection:
        connection.execute("INSERT INTO topic (name) VALUES (%s)", [TOPIC])
    with serving(Internet()) as internet:
        bench = make_ingest(database, tmp_path, internet)
        for n_new in (1, 0):
            done = harvest(
                database, [wish], date(2026, 11, 29), sources=make_sources({}), http=http_settings(bench.settings),
                make_fetcher=bench.make_fetcher, clock=bench.clock,
            )  # fmt: skip
            assert (done.n_read, done.n_new, done.problems) == (len(works), n_new, [])
            assert done.n_taken[TOPIC] >= 1
    assert "from=2026-11-29" in internet.asked[0][1]
    assert json.dumps(works[0].title) in [json.dumps(row[0]) for row in rows(database, "SELECT title FROM paper")]


def test_a_harvest_reads_the_preprint_servers_that_a_topic_names(database, tmp_path):
    page = json.loads(payload("biorxiv/details_biorxiv_interval_100.json"))
    row = page["collection"][0]
    server = {
        "biorxiv": [row, page["collection"][1]],
        "medrxiv": [{**row, "doi": "10.1101/2026.11.29.26000001", "server": "medRxiv"}],
    }
    asked = {"servers": ["bioRxiv", "medRxiv"], "words": [" ".join(row["title"].split()[:4])]}
    wish = read_wish(SeedFile(tmp_path / "x.jsonl", TOPIC, {"harvest": asked}))
    with pytest.raises(InputError, match="chemrxiv"):
        read_wish(SeedFile(tmp_path / "x.jsonl", TOPIC, {"harvest": {**asked, "servers": ["chemrxiv"]}}))
    with database.connect(autocommit=True) as connection:
        connection.execute("INSERT INTO topic (name) VALUES (%s)", [TOPIC])
    internet = Internet()

    def answer(_method, url, _body):
        _, _, name, _, _, cursor, _ = url.partition("?")[0].split("/")
        rows = server[name][int(cursor) : int(cursor) + 1]  # one a page, whatever the number was last year
        said = {"status": "ok", "cursor": int(cursor), "count": len(rows), "total": str(len(server[name]))}
        return 200, "application/json", json.dumps({"messages": [said], "collection": rows}).encode()

    internet.answer = answer
    with serving(internet):
        bench = make_ingest(database, tmp_path, internet)
        done = harvest(
            database, [wish], date(2026, 11, 29), sources=make_sources({}), http=http_settings(bench.settings),
            make_fetcher=bench.make_fetcher, clock=bench.clock,
        )  # fmt: skip
    assert (done.n_read, done.problems) == (3, [])
    assert {url.split("/")[2] for _, url in internet.asked} == {"biorxiv", "medrxiv"}
    assert len(internet.asked) == 3
    found = {row[0] for row in rows(database, "SELECT value FROM paper_identifier WHERE kind = 'doi'")}
    assert {row["doi"].lower(), "10.1101/2026.11.29.26000001"} <= found


def test_a_wait_that_is_asked_for_inside_a_success_is_counted_and_waited_for(database, tmp_path):
    write_topic(tmp_path, ids=(), queries=("snails",))
    place = "www.ebi.ac.uk/europepmc/webservices/rest/search"
    said = [b'{"errMsg": "Rate limit exceeded, try again in 30 seconds"}', payload("europe-pmc/search_core_2026.json")]
    with serving(Internet(searches={place: said})) as internet:
        report = ingest(database, tmp_path, internet, has_full_texts=False)
    assert report.notes == []
    assert rows(database, "SELECT outcome FROM topic_search WHERE source = 'europe-pmc'") == [("ok",)]
    assert rows(database, "SELECT n_throttled, n_found > 0, last_answer FROM source_day WHERE source = 'europe-pmc'")[
        0
    ][:2] == (1, True)
