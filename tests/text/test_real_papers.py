"""The real papers beside the checkout: what a reader reads, on the right page, in the right order; the right verdicts."""

import json
import re
import unicodedata
from bisect import bisect_right
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from corpus.passages import PASSAGE_CHARS, cut_passages
from ingest.text.extract import ExtractorPool
from ingest.text.pdf import load_library
from tests.support import shared

pytestmark = [pytest.mark.shared, pytest.mark.slow]

WANTED = {
    "accept": ({"ok"}, set()),
    "refuse": ({"encrypted", "not_pdf", "no_pages", "damaged", "incomplete", "too_large", "timeout"}, set()),
    "needs-ocr": ({"needs_ocr"}, set()),
    "flag": ({"needs_ocr"}, {"low_text_quality"}),
    "accept-or-refuse": ({"ok", "too_large", "timeout", "damaged"}, set()),
    "refuse-or-flag": ({"damaged", "incomplete", "no_pages"}, {"incomplete"}),
    "duplicate": ({"ok"}, set()),
}


def fold(text):
    return re.sub(r"\s+", " ", unicodedata.normalize("NFC", text)).strip()


@pytest.fixture(scope="module")
def rows():
    return [json.loads(line) for line in shared("papers", "MANIFEST.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def extracted(rows):
    with ExtractorPool(2) as pool:
        found = dict(pool.extract_many(Path(shared("papers", row["file"])) for row in rows))
    return {path.name: extraction for path, extraction in found.items()}


def test_every_file_has_the_right_verdict(rows, extracted):
    for row in rows:
        found = extracted[row["file"]]
        verdicts, flags = WANTED[row["expect"]["action"]]
        words = {warning.split(":")[0] for warning in found.warnings}
        assert found.verdict in verdicts or (found.is_ok and flags & words), (row["file"], found.verdict, found.reason)
        assert found.is_ok or found.reason


def test_titles_and_identifiers_are_those_of_the_paper(rows, extracted):
    for row in rows:
        found = extracted[row["file"]]
        if row["kind"] != "paper":
            continue
        assert fold(found.title).casefold() == fold(row["title"]).casefold()
        arxiv = row["identifiers"].get("arxiv")
        assert found.arxiv_id == (arxiv.partition("v")[0] if arxiv else None)
        assert found.doi in {row["identifiers"].get("doi"), None}
        assert found.abstract


def test_sentences_stand_whole_on_their_page_and_in_order(rows, extracted):
    for row in rows:
        if not row.get("ground_truth"):
            continue
        truth = json.loads(shared("papers", row["ground_truth"]).read_text())
        found = extracted[row["file"]]
        text = fold(found.text)
        starts = [len(fold(found.text[:start])) for start in found.page_starts]
        for sentence in truth["sentences"]:
            at = text.find(fold(sentence["text"]))
            assert at >= 0, (row["file"], sentence["id"])
            assert bisect_right(starts, at + 1) in sentence["pages"]
        for pair in truth["order"]:
            first, then = (text.find(fold(pair[key]["text"])) for key in ("first", "then"))
            assert 0 <= first < then, (row["file"], pair["between"])


def test_passages_are_exact_and_hold_neither_furniture_nor_references(rows, extracted):
    library = load_library()
    for row in rows:
        found = extracted[row["file"]]
        if row["kind"] != "paper":
            continue
        passages = cut_passages(found.text, found.sections, found.page_starts)
        assert passages
        pieces = [found.text[p.char_start : p.char_end] for p in passages]
        forbidden = []
        if row.get("ground_truth"):
            forbidden = json.loads(shared("papers", row["ground_truth"]).read_text())[
                "must_not_stand_inside_a_sentence"
            ]
        heads = _repeated_heads(library, shared("papers", row["file"]))
        references = [found.text[s.char_start : s.char_end] for s in found.sections if s.kind == "references"]
        entries = [line for part in references for line in part.split("\n\n") if len(line) > 60]
        assert entries, row["file"]
        for passage, piece in zip(passages, pieces, strict=True):
            assert piece.strip() == piece
            assert 0 < len(piece) <= PASSAGE_CHARS
            assert passage.section
            assert 1 <= passage.page_from <= passage.page_to <= found.n_pages
            assert not [entry for entry in entries if entry in piece]
            assert not [words for words in forbidden if words in piece], row["file"]
            lines = {line.strip() for line in piece.split("\n")}
            # A running head that is the title stands on page 1 as the title.
            assert not (lines & heads) - {found.title}, (row["file"], lines & heads)


def _repeated_heads(library, path):
    """Lines of the outer tenth of the height that stand on three or more pages."""
    seen = defaultdict(set)
    with library.open(path) as document:
        for page in document:
            for block in page.get_text("dict", flags=library.TEXTFLAGS_TEXT)["blocks"]:
                for line in block["lines"]:
                    middle = (line["bbox"][1] + line["bbox"][3]) / 2 / page.rect.height
                    text = "".join(span["text"] for span in line["spans"]).strip()
                    if (middle < 0.1 or middle > 0.9) and len(text) > 3 and line["dir"][0] > 0.9:
                        seen[text].add(page.number)
    return {text for text, pages in seen.items() if len(pages) >= 3}


def test_the_annotated_copy_and_the_clean_one_agree(extracted):
    one = next(e for name, e in extracted.items() if name.startswith("dense-passage"))
    other = next(e for name, e in extracted.items() if name.startswith("h18"))
    assert one.text == other.text
    assert one.arxiv_id == other.arxiv_id == "2004.04906"


def test_single_hard_files(extracted):
    def of(prefix):
        return next(e for name, e in extracted.items() if name.startswith(prefix))

    assert of("h02").text == "abcdeffffiflffifflststghijklmno"
    assert of("h03").text == "We test the dehypenisation of a short text."
    assert "第一季度报告" in of("h04").text
    assert of("h04").language == "zh"
    assert of("h12").n_pages == 352
    assert "second page" in of("h13").text
    assert "R وPython" in of("h05").text
    assert Counter(w.split(":")[0] for w in of("h20").warnings)["unmapped_characters"] == 1
    assert "repaired" in of("h09").warnings
