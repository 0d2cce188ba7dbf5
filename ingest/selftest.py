"""The self-test's parts of intake: adapters, seed files, store, finder, extraction, and the whole way into a database."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from corpus.database import Database
from corpus.selftest import PartFailed
from corpus.settings import Settings
from ingest.acquire.works import store_works
from ingest.decisions import CITATIONS, restore_citations
from ingest.fulltext.finder import FullTextFinder
from ingest.fulltext.wanted import Wanted as WantedPaper
from ingest.http.fetcher import Fetcher
from ingest.http.settings import HttpSettings
from ingest.pipeline import Ingest, Wanted
from ingest.seeds import SeedFile, list_seed_files, read_seed_file, seed_path, write_seed_file
from ingest.selftest_payloads import CITED, CITED_DOI, CITING, PAYLOADS, TITLE, Payload
from ingest.sources import make_sources
from ingest.sources.base import Answer
from ingest.store import Store
from ingest.text.extract import ExtractorPool, extract_file
from ingest.topics import export_seeds
from ingest.work import Location
from sql.files import queries

LEAST_FREE_BYTES = 256 << 20
_PLACE = "https://selftest.example.org/snails.pdf"
_BODY = (
    "Abstract\nSnails carry their houses because no other animal would carry them. We weighed nine snails and their houses. "
    "Each house weighed about a third of its snail.\n\n1 Introduction\n"
    + "A snail that leaves its house in the rain comes back wet, and a snail that stays at home stays dry. " * 12
    + "\n\n2 Results\n"
    + "The nine houses weighed four grams on average, and none of the snails complained about the weight. " * 12
)


def list_source_parts(payloads: Mapping[str, Payload] = PAYLOADS) -> list[tuple[str, Callable[[], None]]]:
    """One part for each adapter: it must read the one work of its payload."""
    sources = make_sources({})
    return [(f"source {name}", lambda n=name: _check_source(n, payloads.get(n))) for name in sorted(sources)]


def _check_source(name: str, payload: Payload | None) -> None:
    if payload is None:
        raise PartFailed(f"The self-test has no payload of {name}.", mend="Add one to ingest/selftest_payloads.py.")
    works = make_sources({})[name].parse(Answer(payload.body, url=payload.url)).works
    kind, value = payload.identifier
    if not any(work.title == TITLE and work.identifiers.get(kind) == value for work in works):
        raise PartFailed(
            f"The adapter of {name} does not read the work of its payload (it read {len(works)}).",
            mend="The payload's shape and the adapter differ: see `brain source parse`.",
        )


def check_seed_files(folder: Path, scratch: Path) -> None:
    """Seed files are written and read back; every line of the real ones can be read."""
    entry = {"id": "2001.00001", "title": TITLE}
    seed = SeedFile(seed_path(scratch, "a/b"), "a/b", {"title": "Both"}, [entry])
    write_seed_file(seed)
    back = read_seed_file(seed.path)
    if back.topic != "a/b" or back.entries != [entry]:
        raise PartFailed("A seed file does not come back as it was written.")
    bad = (
        [str(error) for path in list_seed_files(folder) for error in read_seed_file(path).errors]
        if folder.is_dir()
        else []
    )
    if bad:
        raise PartFailed(
            f"{len(bad)} lines of the seed files cannot be read: {bad[0]}", mend="Mend or remove the line."
        )


def check_store(store: Store, *, least_free_bytes: int = LEAST_FREE_BYTES) -> None:
    """The real store takes a file, gives it back and forgets it; its disk has room."""
    content = b"research-brain self-test " + os.urandom(16)
    sha256 = store.put_bytes(content)
    try:
        if store.read(sha256) != content:
            raise PartFailed(f"The store {store.url} gives other bytes back.")
    finally:
        store.remove(sha256)
    if store.folder is not None:
        check_disk(store.folder, least_free_bytes=least_free_bytes)


def check_disk(folder: Path, *, least_free_bytes: int = LEAST_FREE_BYTES) -> None:
    """The disk that a folder is on (or will be) has room left."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    if free < least_free_bytes:
        raise PartFailed(
            f"The disk of {folder} is full: {free >> 20} MB are left.",
            mend="Free space there, or give it a larger disk.",
        )


def write_paper(path: Path) -> Path:
    """A small PDF with a title, an abstract and running text."""
    import pymupdf

    with pymupdf.open() as pdf:
        page = pdf.new_page()
        page.insert_text((72, 80), TITLE, fontsize=20)
        page.insert_text((72, 104), "Ada Lenz", fontsize=11)
        page.insert_textbox(pymupdf.Rect(72, 120, 520, 780), _BODY, fontsize=10)
        pdf.save(path)
    return path


def check_extraction(folder: Path) -> None:
    """A PDF, Markdown, HTML and text give their words, a file that is none a verdict; all in child processes."""
    words = "none of the snails complained"
    files = {
        "a.pdf": write_paper(folder / "a.pdf").read_bytes(), "a.md": f"# {TITLE}\n\n{_BODY}".encode(),
        "a.html": f"<html><head><title>{TITLE}</title></head><body><h1>{TITLE}</h1><p>{_BODY}</p></body></html>".encode(),
        "a.txt": f"{TITLE}\n\n{_BODY}".encode(),
    }  # fmt: skip
    for name, content in files.items():
        (folder / name).write_bytes(content)
        found = extract_file(folder / name)
        if not found.is_ok or words not in " ".join(found.text.split()):
            raise PartFailed(f"Extraction reads {name} as {found.verdict} {found.reason} without its words.")
    (folder / "bad.pdf").write_bytes(b"no PDF at all")
    if (bad := extract_file(folder / "bad.pdf")).is_ok:
        raise PartFailed(f"Extraction calls a file that is no PDF {bad.verdict}.")


@contextmanager
def _serving(files: Mapping[str, bytes]) -> Iterator[str]:
    """An HTTP server of our own on this machine, for as long as it is needed; its base address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = files.get(self.path)
            self.send_response(200 if content is not None else 404)
            self.send_header("Content-Type", "application/pdf" if content else "text/plain")
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def check_finder(folder: Path) -> None:
    """The full-text finder fetches through the whole network stack, refuses another paper and stores the right one."""
    content = write_paper(folder / "served.pdf").read_bytes()
    found = asyncio.run(_find(folder, content, TITLE))
    if found != content:
        raise PartFailed("The full-text finder did not store the paper that it was led to.")
    if asyncio.run(_find(folder, content, "Convex duality in infinite games of perfect information")) is not None:
        raise PartFailed("The full-text finder took another paper for the one that was asked for.")


async def _find(folder: Path, content: bytes, title: str) -> bytes | None:
    store = Store(folder / "found")
    wanted = WantedPaper.of({}, title=title, authors=("Ada Lenz",))
    path = "/" + _PLACE.partition("://")[2]
    with _serving({path: content}) as base, ExtractorPool(1) as pool:
        async with Fetcher(HttpSettings(base_url=base)) as fetcher:
            finder = FullTextFinder(fetcher, store, pool.extract, folder / "downloads")
            search = await finder.find(wanted, [Location(_PLACE, "pdf")])
    if search.found is None:
        if title == TITLE:
            said = "; ".join(f"{attempt.outcome}: {attempt.reason}" for attempt in search.attempts)
            raise PartFailed(f"The full-text finder found nothing: {said}.")
        return None
    return store.read(search.found.sha256)


def check_intake(scratch: Database, folder: Path, settings: Settings) -> None:
    """A topic, a file and a JSONL row become papers of the scratch database, with text, passages and queued work."""
    settings = settings.model_copy(
        update={"home": folder / "home", "seeds": folder / "seeds", "store": str(folder / "store")}
    )
    files = folder / "files"
    files.mkdir()
    write_paper(files / "snails.pdf")
    (folder / "rows.jsonl").write_text(
        f'{{"_id": "1", "title": "{TITLE}, again", "text": "Row by row."}}\n', encoding="utf-8"
    )
    seed = SeedFile(
        seed_path(settings.seeds_dir, "snails"), "snails", {}, [{"id": "2001.00001", "title": "Slow animals"}]
    )
    write_seed_file(seed)
    run = Ingest(scratch, Store(settings.store_url), settings)
    report = run.run(Wanted(topics=["snails"], pdfs=[files], jsonl=[folder / "rows.jsonl"], prefix="selftest"))
    if report.problems or report.verdicts != {"ok": 1}:
        raise PartFailed(f"Intake did not go through: {'; '.join(report.problems) or report.verdicts}.")
    with scratch.connect() as connection:
        rows = connection.execute(
            "SELECT (SELECT count(*) FROM paper), (SELECT count(*) FROM passage), (SELECT count(*) FROM job WHERE kind = 'chunk')"
        ).fetchone()
    if rows is None or rows[0] != 3 or not rows[1] or rows[2] != 1:
        raise PartFailed(
            f"Intake wrote papers, passages and chunk jobs as {rows}, not as 3 papers with their passages and 1 job."
        )


def check_links_and_export(scratch: Database, folder: Path) -> None:
    """Citation links are written, and the seed files of the scratch database hold every paper and the link."""
    target = folder / "export"
    target.mkdir()
    (target / CITATIONS).write_text("selftest:1\tarxiv:2001.00001\tselftest\n", encoding="utf-8")
    with scratch.connect(autocommit=True) as connection:
        restore_citations(connection, target)
        row = connection.execute("SELECT count(*) FROM citation").fetchone()
        if row is None or row[0] != 1:
            raise PartFailed("A citation link between two papers was not written.")
        written = export_seeds(connection, target)
    if sum(written.values()) < 3 or "selftest:1" not in (target / CITATIONS).read_text(encoding="utf-8"):
        raise PartFailed(f"The export of seed files lacks papers or links: {written}.")


def check_citations(scratch: Database, citing: Mapping[str, Payload] = CITING) -> None:
    """What sources' answers cite becomes links between papers of the corpus, whichever of the two comes first."""
    wanted = [("crossref", citing["crossref"]), ("openalex", CITED), ("openalex", citing["openalex"])]
    with scratch.connect(autocommit=True) as connection:
        for name, payload in wanted:
            works = make_sources({})[name].parse(Answer(payload.body, url=payload.url)).works
            store_works(connection, works)
        rows = connection.execute(queries("selftest")["citing"], {"cited": f"doi:{CITED_DOI}"}).fetchall()
    found = {source: paper_id for paper_id, source in rows}
    for name, payload in citing.items():
        expected = ":".join(payload.identifier)
        if found.get(name) != expected:
            raise PartFailed(
                f"What an answer of {name} cites was not linked: {expected} should cite doi:{CITED_DOI}.",
                mend="The adapter's references or the linking of works has changed: see `brain source parse`.",
            )
