"""Text recognition: off by default, told how to get it, marked when used."""

import contextlib
import shlex
import shutil
import stat
import sys
import tempfile

import psutil
import pytest

from ingest.text.extract import extract_file
from ingest.text.limits import Limits
from tests.text.pdfs import PROSE, Pdf, wrapped


@pytest.fixture
def scan(tmp_path):
    pdf = Pdf().new_page()
    pixmap = pdf._library.Pixmap(pdf._library.csGRAY, pdf._library.IRect(0, 0, 50, 50))
    pixmap.clear_with(200)
    pdf.page.insert_image(pdf.page.rect, pixmap=pixmap)
    path = tmp_path / "scan.pdf"
    path.write_bytes(pdf.bytes())
    return path


def program(tmp_path, monkeypatch, body, *, interpreter=sys.executable):
    """Another `ocrmypdf` on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    path = folder / "ocrmypdf"
    path.write_text(f"#!{interpreter}\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder))


def test_it_is_off_unless_asked_for(scan, tmp_path, monkeypatch):
    program(tmp_path, monkeypatch, "import sys; sys.exit(99)")
    found = extract_file(scan)
    assert (found.verdict, found.warnings) == ("needs_ocr", ())
    assert "status" not in found.reason


def test_without_the_program_the_mend_is_said(scan, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = extract_file(scan, is_ocr=True)
    if found.is_ok:
        pytest.skip("OCRmyPDF is installed as a package here")
    assert found.verdict == "needs_ocr"
    assert "install OCRmyPDF" in found.reason


def test_what_was_recognised_is_marked(scan, tmp_path, monkeypatch):
    read = tmp_path / "read.pdf"
    read.write_bytes(Pdf().new_page().lines(72, 90, wrapped(PROSE * 3, 80)).bytes())
    program(tmp_path, monkeypatch, f"import shutil, sys; shutil.copy({str(read)!r}, sys.argv[-1])")
    found = extract_file(scan, is_ocr=True)
    assert found.is_ok
    assert {"ocr", "low_text_quality"} <= set(found.warnings)
    assert found.text.startswith("The committee")


def test_a_failure_keeps_the_verdict_and_tells(scan, tmp_path, monkeypatch):
    program(tmp_path, monkeypatch, "import sys; print('no language data', file=sys.stderr); sys.exit(3)")
    found = extract_file(scan, is_ocr=True)
    assert found.verdict == "needs_ocr"
    assert "no language data" in found.reason


@pytest.fixture
def scanned_words(tmp_path):
    """Two pages of words as pictures, as a scanner gives them."""
    words = Pdf()
    for start in ("The first page begins here. ", "The second page begins here. "):
        words.new_page().lines(72, 90, wrapped(start + PROSE * 2, 70), size=12, leading=16)
    scan = Pdf()
    for page in words.document:
        picture = page.get_pixmap(dpi=150, colorspace=scan._library.csGRAY)
        scan.new_page().page.insert_image(scan.page.rect, pixmap=picture)
    path = tmp_path / "scanned.pdf"
    path.write_bytes(scan.bytes())
    return path


needs_tesseract = pytest.mark.skipif(
    not (shutil.which("ocrmypdf") and shutil.which("tesseract")),
    reason="OCRmyPDF and Tesseract are not installed: real recognition is not tested here",
)


@needs_tesseract
def test_real_recognition_reads_the_pages(scanned_words, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert extract_file(scanned_words).verdict == "needs_ocr"
    found = extract_file(scanned_words, is_ocr=True)
    assert (found.verdict, found.n_pages) == ("ok", 2), found.reason
    assert {"ocr", "low_text_quality"} <= set(found.warnings)
    assert "several methods improve the results when more training data can be found" in found.text
    assert found.text.index("The second page begins here") >= found.page_starts[1]
    assert list(scratch.iterdir()) == []


def test_recognition_that_takes_too_long_leaves_no_file_and_no_process(scan, tmp_path, monkeypatch):
    """Its working files are as many as pages: they go with it, wherever it was killed."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    # A shell, and seconds enough for the reader's imports: on a busy machine too it is killed at work, not before.
    body = f': > "$TMPDIR/page"; echo $$ > {shlex.quote(str(tmp_path / "pid"))}; exec /bin/sleep 60'
    program(tmp_path, monkeypatch, body, interpreter="/bin/sh")
    monkeypatch.setenv("TMPDIR", str(temporary))
    found = extract_file(scan, is_ocr=True, limits=Limits(ocr_seconds=4))
    assert found.verdict in {"timeout", "needs_ocr"}
    assert "4 seconds" in found.reason
    assert list(temporary.iterdir()) == []
    with contextlib.suppress(psutil.NoSuchProcess):
        left = psutil.Process(int((tmp_path / "pid").read_text()))
        assert left.status() == psutil.STATUS_ZOMBIE or left.wait(5) is None  # killed; whoever adopted it may be slow
