"""A small corpus with everything that must come back: topics, marks, aliases, shared identifiers, files, a copy, links."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pymupdf

from corpus.database import Database
from corpus.settings import Settings
from ingest.papers import write_papers
from ingest.pipeline import Ingest, Wanted
from ingest.records import PaperRecord
from ingest.seeds import SeedFile, seed_path, write_seed_file
from ingest.store import Store
from tests.farm.support import drain

SNAILS = "Snails carry their houses slowly. They like wet leaves, and the rain that makes them wet. "


def settings_at(folder: Path) -> Settings:
    return Settings(
        home=folder / "home", seeds=folder / "seeds", store=str(folder / "store"), encoder="hashing", extract_children=1
    )


def write_pdf(path: Path, title: str, body: str, *, noise: str = "") -> None:
    """A PDF with running text; `noise` makes other bytes of the same text."""
    with pymupdf.open() as pdf:
        for n in range(2):
            page = pdf.new_page()
            page.insert_text((72, 90), title if n == 0 else "2 More", fontsize=18)
            page.insert_textbox(pymupdf.Rect(72, 120, 520, 760), body * 12, fontsize=11)
        pdf.set_metadata({"keywords": noise})
        pdf.save(path)


def make_corpus(database: Database, folder: Path) -> Settings:
    """Write, read, cut and embed the corpus, the ordinary way."""
    settings = settings_at(folder)
    files = folder / "files"
    files.mkdir()
    write_pdf(files / "snails.pdf", "On the slowness of snails", SNAILS)
    write_pdf(files / "snails-again.pdf", "On the slowness of snails", SNAILS, noise="another copy")
    write_pdf(files / "bees.pdf", "A short account of bees", "Bees dance for each other in the dark hive at noon. ")
    (files / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing")
    (files / "note.md").write_text("# A note\n\n" + "Words about moss. " * 40)
    ingest = Ingest(database, Store(settings.store_url), settings)
    entries = [{"id": "2310.11511", "title": "Self-RAG", "abstract": "Reflection."}, {"id": '"Only a title"'}]
    for topic in ("o'brien & co", "100%/two"):
        write_seed_file(
            SeedFile(seed_path(settings.seeds_dir, topic), topic, {"title": topic.title(), "own": [1]}, entries)
        )
    ingest.run(Wanted(topics=["o'brien & co"], pdfs=[files], files=[files / "note.md"]))
    ingest.run(Wanted(topics=["100%/two"]))
    with database.connect(autocommit=True) as connection:
        write_papers(
            connection,
            [
                PaperRecord("p:10.1/x/text", is_prefixed=True, title="Other", abstract="t\u2028ext " * 500, identifiers={"doi": "10.1/x"}, raw={"pdf_url": "https://example.org/x.pdf", "k": [1.5]}),
                PaperRecord("p:none", is_prefixed=True, kind="book"),
                PaperRecord("doi:10.1/x", title="A paper", authors=("A", "Ü"), year=2001, venue="V", identifiers={"doi": "10.1/x"}),
                PaperRecord("pmid:7", title="Another", abstract="With words.", identifiers={"pmid": "7"}),
            ],
        )  # fmt: skip
        connection.execute(
            "UPDATE paper SET mark = 'star', n_citations = 7, velocity = 1.25, tldr = 'short', licence = 'cc', is_retracted = true, "
            "published_on = '2001-02-03', provenance = '{\"year\": \"crossref\"}' WHERE paper_id = 'doi:10.1/x'"
        )
        # An arXiv id that came later leaves the key as it is; a merged paper's key still leads here; two papers share a DOI.
        connection.execute(
            "INSERT INTO paper_identifier (kind, value, paper_pk) SELECT x.kind, x.value, paper_pk FROM paper, "
            "(VALUES ('arxiv', '2001.00001'), ('key', 's2:gone'), ('doi', '10.2/also')) AS x (kind, value) WHERE paper_id = 'doi:10.1/x'"
        )
        connection.execute(
            "INSERT INTO paper_identifier SELECT 'doi', '10.1/x', paper_pk FROM paper WHERE paper_id = 'pmid:7'"
        )
        connection.execute(
            "INSERT INTO citation SELECT a.paper_pk, b.paper_pk, 'test' FROM paper a, paper b WHERE a.paper_id = 'pmid:7' AND b.paper_id = 'doi:10.1/x'"
        )
        connection.execute(
            "INSERT INTO setting (name, value, evidence) VALUES ('search', '{\"ef_search\": 123}', '{\"why\": 1}')"
        )
        connection.execute("INSERT INTO apart (one, other) VALUES ('doi:10.1/x', 'pmid:7')")
        connection.execute("INSERT INTO daily_count VALUES ('2026-01-01', 1, 2, 3, 4)")
        connection.execute(
            "INSERT INTO fetch_attempt (paper_pk, url, outcome, reason) SELECT paper_pk, 'https://example.org/no', 'refused', 'another paper' FROM paper WHERE paper_id = 'pmid:7'"
        )
    assert asyncio.run(drain(database)) == 0
    return settings
