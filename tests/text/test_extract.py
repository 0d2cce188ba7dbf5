"""Extraction in child processes: a verdict for any file, within limits, and nothing left behind."""

import asyncio
import os
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from ingest.text.documents import extract_document
from ingest.text.extract import ExtractorPool, extract_file, extract_many
from ingest.text.limits import Limits
from ingest.text.result import EXTRACTOR_VERSION, Extraction, refuse
from tests.support import shared
from tests.text.pdfs import PROSE, Pdf, raw_pdf, shown, wrapped


@pytest.fixture
def paper(tmp_path):
    path = tmp_path / "paper.pdf"
    path.write_bytes(Pdf().new_page().lines(72, 90, wrapped(PROSE * 3, 80)).bytes())
    return path


def children():
    return {p.pid for p in psutil.Process().children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE}


def test_one_file_leaves_no_child(paper):
    before = children()
    found = extract_file(paper)
    assert found.is_ok
    assert found.extractor_version == EXTRACTOR_VERSION
    assert children() <= before


@pytest.mark.parametrize(
    ("content", "name", "verdict"),
    [
        (b"", "a.pdf", "not_pdf"),
        (b"hello world, this is text", "a.pdf", "not_pdf"),
        (b"\x89PNG\r\n\x1a\n rest", "a.png", "not_pdf"),
        (b"PK\x03\x04 zip", "a.docx", "not_pdf"),
        (b"%PDF-1.7\n garbage without any object", "a.pdf", "incomplete"),
        (b"%PDF-1.7\n garbage without any object\n%%EOF", "a.pdf", "no_pages"),
        (b"hello world, this is text", "a.txt", "ok"),
        (b"\x00\x01\x02\x03" * 50, "a.txt", "not_pdf"),
    ],
)
def test_verdicts_by_content(content, name, verdict, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with ExtractorPool(1) as pool:
        found = pool.extract(path)
    assert found.verdict in {verdict, "damaged"} if verdict in {"incomplete", "no_pages"} else found.verdict == verdict
    assert found.is_ok or found.reason


def test_the_content_decides_and_not_the_name(paper, tmp_path):
    disguised = tmp_path / "paper.txt"
    shutil.copy(paper, disguised)
    with ExtractorPool(1) as pool:
        assert pool.extract(disguised).kind == "pdf"
        assert pool.extract(paper, name="0123abcd").kind == "pdf"
        assert pool.extract(tmp_path / "missing.pdf").verdict == "damaged"


def test_a_truncated_file_is_incomplete(paper, tmp_path):
    cut = tmp_path / "cut.pdf"
    cut.write_bytes(paper.read_bytes()[:300])
    assert extract_file(cut).verdict in {"incomplete", "damaged"}


@pytest.mark.shared
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_cut_download_is_never_stored_as_a_full_paper(share, tmp_path):
    for name in ("adam_1412.6980v9.pdf", "specter_2020.acl-main.207.pdf", "fusion-in-decoder_2007.01282v2.pdf"):
        content = shared("papers", name).read_bytes()
        cut = tmp_path / name
        cut.write_bytes(content[: int(share * len(content))])
        found = extract_document(cut, cut.name, Limits())
        assert found.verdict == "incomplete" or "incomplete" in found.warnings


def test_limits_name_themselves(tmp_path):
    big = tmp_path / "big.txt"
    big.write_text("word " * 300_000)
    found = extract_file(big, limits=Limits(file_mib=1))
    assert found.verdict == "too_large"
    assert "limit is 1 MiB" in found.reason
    assert extract_file(big, limits=Limits(n_chars=1000)).verdict == "too_large"
    pages = tmp_path / "pages.pdf"
    pages.write_bytes(raw_pdf(shown(b"one"), extra_pages=[shown(b"more")] * 5))
    found = extract_file(pages, limits=Limits(n_pages=3))
    assert found.verdict == "too_large"
    assert "6 pages" in found.reason


def test_a_slow_file_times_out_and_its_child_is_replaced(paper, tmp_path):
    slow = tmp_path / "slow.pdf"
    # Each page draws a million characters.
    slow.write_bytes(
        raw_pdf(b"BT /F 1 Tf " + b"(" + b"x" * 400_000 + b") Tj " * 1 + b"ET" * 1 + shown(b"y" * 400_000) * 6)
    )
    with ExtractorPool(1, limits=Limits(seconds=0.05)) as pool:
        found = pool.extract(slow)
        assert found.verdict == "timeout"
        assert "0.05 seconds" in found.reason
    with ExtractorPool(1) as pool:
        assert pool.extract(paper).is_ok


def test_a_killed_child_gives_a_verdict_and_the_next_file_works(paper):
    with ExtractorPool(1) as pool:
        assert pool.extract(paper).is_ok
        (pid,) = children()
        os.kill(pid, 9)
        assert pool.extract(paper).verdict in {"ok", "too_large"}
        assert pool.extract(paper).is_ok


def test_a_pool_serves_threads_and_asyncio(paper):
    with ExtractorPool(2) as pool:
        with ThreadPoolExecutor(6) as threads:
            assert all(found.is_ok for found in threads.map(lambda _: pool.extract(paper), range(12)))

        async def both():
            return await asyncio.gather(*(asyncio.to_thread(pool.extract, paper) for _ in range(4)))

        assert all(found.is_ok for found in asyncio.run(both()))
        assert len(children()) <= 2
    assert not children()


def test_a_pool_closed_early_leaves_nothing(paper):
    many = extract_many([paper] * 20, 2)
    assert next(many)[1].is_ok
    many.close()
    assert not children()


def test_an_answer_that_comes_with_the_sign_of_life_is_seen(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\x00\x01\x02\x03" * 50)
    for _ in range(5):
        with ExtractorPool(1, limits=Limits(seconds=15)) as pool:
            assert pool.extract(path).verdict == "not_pdf"


def test_the_outcome_goes_through_json(paper):
    found = extract_file(paper)
    assert Extraction.from_json(found.to_json()) == found
    refused = refuse("encrypted", "a password is needed", kind="pdf")
    assert Extraction.from_json(refused.to_json()) == refused


@pytest.mark.shared
@pytest.mark.slow
def test_a_folder_of_hard_files_leaves_nothing_behind(tmp_path):
    """A tenth of real papers among hard files, in random order: every file its verdict, every paper its text."""
    folder = shared("papers")
    names = sorted(path.name for path in folder.glob("*.pdf"))
    hard = [name for name in names if name.startswith("h") and not name.startswith("h12")]
    papers = [name for name in names if not name.startswith("h")]
    chooser = random.Random(5)
    chosen = chooser.choices(hard, k=54) + chooser.sample(papers, k=6)
    chooser.shuffle(chosen)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    before = children()
    environment = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(temporary)
    try:
        with ExtractorPool(2) as pool:
            found = list(pool.extract_many(Path(folder, name) for name in chosen))
            memory = max(psutil.Process(pid).memory_info().rss for pid in children() - before)
    finally:
        os.environ.pop("TMPDIR")
        if environment is not None:
            os.environ["TMPDIR"] = environment
    assert sorted(path.name for path, _ in found) == sorted(chosen)
    assert all(e.is_ok and len(e.text) > 10_000 for path, e in found if path.name in papers)
    assert all(e.reason for _, e in found if not e.is_ok)
    assert children() <= before
    assert not list(temporary.iterdir())
    assert memory < 400 * 2**20
