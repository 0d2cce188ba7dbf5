"""Seed files: read forgivingly, written stably, and enough to bring every paper back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.errors import InputError
from corpus.settings import Settings
from ingest.papers import write_papers
from ingest.pipeline import Ingest, Wanted
from ingest.records import PaperRecord
from ingest.seeds import (
    SeedFile,
    add_entries,
    find_seed_file,
    list_seed_files,
    read_entry,
    read_seed_file,
    seed_path,
    write_seed_file,
)
from ingest.store import Store
from ingest.topics import export_seeds


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=60),
        min_size=2,
        max_size=2,
        unique=True,
    )
)
def test_any_two_topics_have_files_of_their_own(tmp_path_factory, topics):
    folder = tmp_path_factory.mktemp("seeds")
    for topic in topics:
        write_seed_file(
            SeedFile(seed_path(folder, topic), topic, {"topic": topic}, [{"id": f"arxiv:{2400 + len(topic)}.00001"}])
        )
    found = {topic: find_seed_file(folder, topic) for topic in topics}
    assert all(seed is not None and seed.topic == topic for topic, seed in found.items())
    assert (
        len({seed.path.name.casefold() for seed in found.values()}) == 2 or topics[0].casefold() == topics[1].casefold()
    )


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ({"id": "2310.11511"}, "arxiv:2310.11511"), ({"id": "https://arxiv.org/abs/2310.11511v2"}, "arxiv:2310.11511"),
        ({"id": "10.18653/V1/2020.emnlp-main.550"}, "doi:10.18653/v1/2020.emnlp-main.550"),
        ({"id": "https://doi.org/10.1038/srep08555"}, "doi:10.1038/srep08555"),
        ({"id": "PMID: 24084238"}, "pmid:24084238"), ({"id": "doi:10.1/x", "arxiv": "2401.00001"}, "arxiv:2401.00001"),
        ({"id": "scifact:10.1/x", "is_prefixed": True}, "scifact:10.1/x"),
    ],
)  # fmt: skip
def test_entries_with_identifiers(entry, key, tmp_path):
    assert read_entry(entry, tmp_path).record.paper_id == key


def test_entries_with_files_addresses_and_titles(tmp_path):
    assert read_entry({"id": "docs/a b.md"}, tmp_path).path == tmp_path / "docs/a b.md"
    assert read_entry({"id": "/x/y.PDF"}, tmp_path).path.name == "y.PDF"
    assert read_entry({"id": "https://example.org/p.pdf?x=1"}, tmp_path).url == "https://example.org/p.pdf?x=1"
    assert read_entry({"id": "10.1/a", "pdf_url": "https://example.org/p"}, tmp_path).url == "https://example.org/p"
    assert read_entry({"id": '"Attention Is All You Need"'}, tmp_path).title == "Attention Is All You Need"
    with pytest.raises(InputError):
        read_entry({"year": 2020}, tmp_path)


def test_a_broken_line_is_named_and_the_rest_is_read(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"_meta": {"topic": "My topic"}}\n{"id": "2310.11511"}\nnot json\n[1]\n{"id": "2310.11512"}\n')
    seed = read_seed_file(path)
    assert seed.topic == "My topic"
    assert [entry["id"] for entry in seed.entries] == ["2310.11511", "2310.11512"]
    assert [error.line for error in seed.errors] == [3, 4]


def test_adding_the_same_paper_in_other_forms_adds_it_once(tmp_path):
    seed = SeedFile(tmp_path / "t.jsonl", "t")
    assert (
        len(add_entries(seed, ["2310.11511", "arXiv:2310.11511v2", "https://arxiv.org/abs/2310.11511"], tmp_path)) == 1
    )
    with pytest.raises(InputError):
        add_entries(seed, ["what is this"], tmp_path)


def test_a_topic_is_ingested_twice_without_change_and_from_two_files_gets_two_topics(database, tmp_path):
    seeds = tmp_path / "seeds"
    (tmp_path / "doc.md").write_text("# A heading that is a title\n\n" + "Words about snails. " * 50)
    for topic in ("one", "two/three"):
        entries = [
            {"id": "2310.11511", "title": "Self-RAG", "abstract": "Reflection."},
            {"id": "doc.md", "kind": "note"},
        ]
        write_seed_file(SeedFile(seed_path(seeds, topic), topic, {"title": topic.title()}, entries))
    ingest = Ingest(database, Store(tmp_path / "store"), Settings(home=tmp_path / "home", seeds=seeds))
    report = ingest.run(Wanted(is_all_topics=True))
    assert report.problems == []
    assert ingest.run(Wanted(is_all_topics=True)).papers.n_changed == 0
    with database.connect() as connection:
        rows = connection.execute(
            "SELECT p.paper_id, p.kind, array_agg(t.name ORDER BY t.name) FROM paper p JOIN paper_topic USING (paper_pk) JOIN topic t USING (topic_id) GROUP BY 1, 2 ORDER BY 1"
        ).fetchall()
        assert [row[2] for row in rows] == [["one", "two/three"]] * 2
        assert [row[1] for row in rows] == ["paper", "note"]


def test_export_and_ingest_give_the_same_papers_back(database, server, template, tmp_path):
    records = [
        PaperRecord(
            "arxiv:2310.11511",
            title="Self-RAG",
            abstract="Refle\u2028ction.",
            authors=("A", "B"),
            year=2023,
            identifiers={"arxiv": "2310.11511", "doi": "10.1/x"},
            topics=("o'brien", "100%"),
        ),
        PaperRecord(
            "p:10.1/x/text",
            is_prefixed=True,
            title="Other",
            abstract="text",
            identifiers={"doi": "10.1/x"},
            raw={"k": [1]},
        ),
        PaperRecord("p:none", is_prefixed=True, kind="book"),
    ]
    seeds = tmp_path / "seeds"
    query = "SELECT p.paper_id, p.is_prefixed, p.kind, p.title, p.abstract, p.authors, p.year, p.raw, p.text_sha256, (SELECT array_agg(t.name ORDER BY t.name) FROM paper_topic JOIN topic t USING (topic_id) WHERE paper_pk = p.paper_pk), (SELECT array_agg(kind || value ORDER BY 1) FROM paper_identifier WHERE paper_pk = p.paper_pk) FROM paper p ORDER BY 1"
    with database.connect(autocommit=True) as connection:
        write_papers(connection, records)
        before = connection.execute(query).fetchall()
        assert export_seeds(connection, seeds) == {"o%27brien.jsonl": 1, "100%25.jsonl": 1, "_unsorted.jsonl": 2}
        names = [path.name for path in list_seed_files(seeds)]
        assert names[-1] == "_unsorted.jsonl"
        first = {path: path.read_bytes() for path in list_seed_files(seeds)}
        export_seeds(connection, seeds)
        assert {path: path.read_bytes() for path in list_seed_files(seeds)} == first
        connection.execute("TRUNCATE paper, topic CASCADE")
        Ingest(database, Store(tmp_path / "store"), Settings(home=tmp_path / "home", seeds=seeds)).run(
            Wanted(is_all_topics=True)
        )
        assert connection.execute(query).fetchall() == before


def test_entries_that_wait_to_be_acquired_survive_an_export(database, tmp_path):
    seeds = tmp_path / "seeds"
    write_seed_file(
        SeedFile(
            seed_path(seeds, "t"),
            "t",
            {"queries": ["snails"]},
            [{"id": '"A title only"'}, {"id": "https://example.org/x.pdf"}],
        )
    )
    with database.connect(autocommit=True) as connection:
        connection.execute("INSERT INTO topic (name) VALUES ('t')")
        export_seeds(connection, seeds)
    seed = find_seed_file(seeds, "t")
    assert {json.dumps(e) for e in seed.entries} == {
        '{"id": "\\"A title only\\""}',
        '{"id": "https://example.org/x.pdf"}',
    }
    assert seed.meta["queries"] == ["snails"]
