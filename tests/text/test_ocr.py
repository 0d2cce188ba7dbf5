"""Text recognition: off by default, told how to get it, marked when used."""

import stat
import sys

import pytest

from ingest.text.extract import extract_file
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


def program(tmp_path, monkeypatch, body):
    """Another `ocrmypdf` on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    path = folder / "ocrmypdf"
    path.write_text(f"#!{sys.executable}\nimport shutil, sys\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder))


def test_it_is_off_unless_asked_for(scan, tmp_path, monkeypatch):
    program(tmp_path, monkeypatch, "sys.exit(99)")
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
    program(tmp_path, monkeypatch, f"shutil.copy({str(read)!r}, sys.argv[-1])")
    found = extract_file(scan, is_ocr=True)
    assert found.is_ok
    assert {"ocr", "low_text_quality"} <= set(found.warnings)
    assert found.text.startswith("The committee")


def test_a_failure_keeps_the_verdict_and_tells(scan, tmp_path, monkeypatch):
    program(tmp_path, monkeypatch, "print('no language data', file=sys.stderr); sys.exit(3)")
    found = extract_file(scan, is_ocr=True)
    assert found.verdict == "needs_ocr"
    assert "no language data" in found.reason
