"""A whole topic through the replayed internet: six sources, full texts, and the same end whatever goes wrong on the way."""

import json

import pytest

from ingest.http.settings import HttpSettings
from ingest.sources import make_sources
from tests.acquire.internet import Internet, serving
from tests.acquire.support import ingest, state, write_topic
from tests.fulltext.papers import PAPERS

pytestmark = pytest.mark.shared
_clean: list[list[list[tuple]]] = []


def _query(database, query, *values):
    with database.connect() as connection:
        return connection.execute(query, values or None).fetchall()


def _cleared(rows):
    """Without what tells of attempts: which places of papers that nobody has were down is no part of the end state."""
    return [json.loads(json.dumps(part, default=str)) for part in rows]


def test_a_topic_becomes_papers_with_full_texts(database, tmp_path):
    write_topic(tmp_path)
    seen: list[tuple[float, str]] = []
    with serving(Internet()) as internet:
        report = ingest(database, tmp_path, internet, seen)
        n_asked = len(internet.asked)
        first = {url: n for url, n in internet.delivered.items() if url.startswith("arxiv.org/pdf/")}
        again = ingest(database, tmp_path, internet)
        assert {url: n for url, n in internet.delivered.items() if url.startswith("arxiv.org/pdf/")} == first
        assert [url for _, url in internet.asked[n_asked:]] == [], "a second run asks nothing"
    assert report.problems == []
    assert again.papers.n_changed == 0
    sources = {row[0] for row in _query(database, "SELECT DISTINCT source FROM work")}
    assert {"arxiv", "openalex", "semantic-scholar", "crossref", "europe-pmc", "zenodo", "doaj"} <= sources
    documents = _query(
        database,
        "SELECT p.paper_id, d.verdict, d.file_name, encode(d.sha256, 'hex') FROM document d JOIN paper p USING (paper_pk) ORDER BY 1",
    )
    assert [(row[0], row[1]) for row in documents] == [
        ("acl:N18-3011", "ok"), ("arxiv:2007.01282", "ok"), ("arxiv:2203.14465", "ok"),
    ] or {row[0] for row in documents} == {"doi:10.18653/v1/n18-3011", "arxiv:2007.01282", "arxiv:2203.14465"}  # fmt: skip
    (title, abstract, tldr, provenance) = _query(
        database, "SELECT title, abstract, tldr, provenance FROM paper WHERE paper_id = 'arxiv:2007.01282'"
    )[0]
    assert title == PAPERS["fid"].title
    assert abstract
    assert tldr == f"About {title}."
    assert provenance["title"] == "arxiv"
    assert provenance["tldr"] == "semantic-scholar"
    n_chunks = _query(database, "SELECT count(*) FROM job WHERE kind = 'chunk'")[0][0]
    assert n_chunks == 3
    lines = [json.loads(line) for line in (tmp_path / "seeds" / "retrieval.jsonl").read_text().splitlines()]
    assert lines[0]["_meta"]["fetched_at"]
    entry = next(line for line in lines[1:] if line["id"] == "arxiv:2007.01282")
    assert entry["sha256"]
    assert entry["pdf_url"].startswith("https://arxiv.org/pdf/2007.01282")
    assert [line["id"] for line in lines[1:]] == sorted(line["id"] for line in lines[1:])
    _keeps_limits(seen)
    _clean.append(_cleared(state(database)))


@pytest.mark.parametrize("seed", [2, 3])
def test_faults_change_nothing_in_the_end(database, tmp_path, seed):
    if not _clean:
        pytest.skip("the run without faults did not go through")
    write_topic(tmp_path)
    seen: list[tuple[float, str]] = []
    with serving(Internet(seed)) as internet:
        report = ingest(database, tmp_path, internet, seen)
    assert report.problems == []
    assert sum(internet.faults.values()) > 10
    for one, other in zip(_cleared(state(database)), _clean[0], strict=True):
        assert one == other
    _keeps_limits(seen)
    today = {row[0]: row[1:] for row in _query(database, "SELECT source, n_throttled, n_down FROM source_day")}
    assert sum(n for counts in today.values() for n in counts) > 0


def _keeps_limits(seen):
    """In no stretch of a rule's window do more requests begin than it allows."""
    rules = {
        rule.host: rule
        for source in make_sources({"BRAIN_CONTACT_EMAIL": "me@example.org"}).values()
        for rule in source.hosts
    }
    for host in {host for _, host in seen}:
        rule = rules.get(host, HttpSettings().default_rule)
        starts = sorted(at for at, other in seen if other == host)
        for n in range(len(starts) - rule.n_requests):
            assert starts[n + rule.n_requests] - starts[n] >= rule.per_s - 1e-6, (host, starts[n : n + 3])
