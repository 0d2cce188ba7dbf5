"""Sections, titles and identifiers of a paper itself."""

import pytest

from corpus.passages import cut_passages
from ingest.text.blocks import Block, assemble
from ingest.text.front import usable_metadata_title
from ingest.text.headings import is_section_word, section_kind
from ingest.text.structure import open_hidden_sections
from tests.text.pdfs import PROSE, Pdf, read, wrapped


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("Abstract", "abstract"),
        ("A B S T R A C T", "abstract"),
        ("1 Introduction", "introduction"),
        ("I. INTRODUCTION", "introduction"),
        ("2. Materials and Methods", "method"),
        ("3.1 Results and discussion", "results"),
        ("5 Discussion", "discussion"),
        ("Conclusions and Future Work", "conclusion"),
        ("References", "references"),
        ("REFERENCES AND NOTES", "references"),
        ("Literaturverzeichnis", "references"),
        ("参考文献", "references"),
        ("Acknowledgments", "acknowledgements"),
        ("Appendix A: Proofs", "appendix"),
        ("B.2 More proofs", "appendix"),
        ("Availability of data and materials", "other"),
        ("A Study of Things", "other"),
        ("4 Why Self-Attention", "other"),
    ],
)
def test_kinds_of_sections(title, kind):
    assert section_kind(title) == kind


def test_usual_words_alone_are_headings():
    assert is_section_word("2 Related Work")
    assert not is_section_word("Model")


def test_offsets_of_sections_and_pages():
    blocks = [
        Block("title", "A Title", 0),
        Block("heading", "1 Introduction", 0),
        Block("paragraph", "First page, second page.", 0, marks=[(12, 1)]),
        Block("aside", "Funding: none.", 1),
        Block("heading", "2 Methods", 2),
        Block("heading", "2.1 Data", 2, 2),
        Block("paragraph", "Text.", 2),
    ]
    whole = assemble(blocks, 4)
    assert [(s.kind, s.title) for s in whole.sections] == [
        ("other", "front"),
        ("introduction", "1 Introduction"),
        ("aside", "note in the margin"),
        ("method", "2 Methods / 2.1 Data"),
    ]
    assert whole.text[whole.page_starts[1] :].startswith("second page.")
    assert whole.text[whole.page_starts[2] :].startswith("2 Methods")
    assert whole.page_starts[3] == len(whole.text)
    pieces = [
        whole.text[p.char_start : p.char_end] for p in cut_passages(whole.text, whole.sections, whole.page_starts)
    ]
    assert not any("Funding" in piece for piece in pieces)


def test_an_abstract_in_the_running_line_and_references_without_a_heading():
    blocks = [
        Block("title", "A Title"),
        Block("paragraph", "Abstract—" + PROSE * 2),
        Block("paragraph", "Keywords: one, two"),
        Block("heading", "I. Introduction"),
        Block("paragraph", PROSE),
        *[Block("paragraph", f"[{n}] A. Author, A title, {2000 + n}.") for n in range(1, 12)],
    ]
    open_hidden_sections(blocks)
    whole = assemble(blocks)
    assert [s.kind for s in whole.sections] == ["other", "abstract", "other", "introduction", "references"]
    assert whole.abstract == (PROSE * 2).strip()


@pytest.mark.parametrize(
    "title", ["Microsoft Word - x.doc", "untitled", "paper.dvi", "Document1", "Proceedings Template - WORD", "x"]
)
def test_titles_of_programs_are_none(title):
    assert usable_metadata_title(title) is None


def paper(**metadata):
    pdf = Pdf().new_page().line(72, 80, "Journal of Tests, Vol. 3", 9)
    pdf.line(72, 120, "A Study of Things That", 18, "hebo").line(72, 142, "Are Tested", 18, "hebo").line(
        72, 170, "Ann Author", 12
    )
    pdf.lines(72, 220, wrapped(PROSE * 4, 90))
    if metadata:
        pdf.document.set_metadata(metadata)
    return pdf


@pytest.mark.parametrize(
    "metadata", [{}, {"title": "Microsoft Word - x.doc"}, {"title": "A Study of Things That Are Tested"}]
)
def test_the_title_is_what_stands_on_the_page(metadata):
    assert read(paper(**metadata).bytes()).title == "A Study of Things That Are Tested"


def test_a_cited_doi_is_not_the_papers_own():
    pdf = paper()
    pdf.lines(
        72,
        400,
        wrapped(
            "As shown before (doi:10.1000/cited.1) and in the work of others (https://doi.org/10.1000/cited.2). "
            + PROSE,
            90,
        ),
    )
    assert read(pdf.bytes()).doi is None
    pdf.line(72, 770, "https://doi.org/10.1234/OWN.5", 8)
    assert read(pdf.bytes()).doi == "10.1234/own.5"


def test_the_doi_of_the_metadata_wins():
    pdf = paper(subject="Journal of Tests, doi:10.1234/meta.7")
    pdf.line(72, 770, "https://doi.org/10.1234/other.5", 8)
    assert read(pdf.bytes()).doi == "10.1234/meta.7"


def test_a_cited_arxiv_id_is_not_the_papers_own():
    pdf = paper().lines(72, 500, wrapped("This follows arXiv:1412.6980 and its kin. " + PROSE, 90))
    assert read(pdf.bytes()).arxiv_id is None
    pdf.line(30, 600, "arXiv:2104.08663v4 [cs.IR] 21 Oct 2021", 20, rotate=90)
    assert read(pdf.bytes()).arxiv_id == "2104.08663"


def test_line_numbers_of_a_manuscript_stay_out():
    pdf = Pdf().new_page()
    for number, line in enumerate(wrapped(PROSE * 4, 80)):
        pdf.line(40, 80 + 24 * number, str(number + 1), 8).line(72, 80 + 24 * number, line)
    assert read(pdf.bytes()).text == " ".join((PROSE * 4).split())


def test_a_footnote_stands_after_its_paragraph_and_its_mark_goes():
    pdf = Pdf().new_page()
    lines = wrapped(PROSE + "This library", 80)
    pdf.lines(72, 600, lines, size=11)
    x, y = 72 + pdf._library.get_text_length(lines[-1], fontsize=11), 600 + 12 * (len(lines) - 1)
    pdf.line(x + 1, y - 4, "1", 7).line(x + 8, y, "is a good one and the sentence", 11)
    pdf.line(72, 735, "1 See http://example.org for it.", 8)
    pdf.new_page().lines(72, 80, wrapped("goes on here. " + PROSE * 2, 80), size=11)
    found = read(pdf.bytes())
    assert "This library is a good one and the sentence goes on here." in found.text
    assert found.text.index("See http") < found.page_starts[1]


def test_a_rotated_page_is_read_like_any_other():
    pdf = Pdf().new_page().lines(72, 90, wrapped(PROSE * 3, 80))
    upright = read(pdf.bytes()).text
    pdf.page.set_rotation(90)
    assert read(pdf.bytes()).text == upright


def test_text_that_runs_upwards_on_the_whole_page_is_read():
    pdf = Pdf().new_page()
    for number, line in enumerate(wrapped(PROSE * 3, 80)):
        pdf.line(100 + 14 * number, 700, line, rotate=90)
    assert read(pdf.bytes()).text == " ".join((PROSE * 3).split())


def test_a_large_initial_begins_its_word():
    pdf = Pdf().new_page().line(72, 100, "S", 30)
    pdf.lines(
        94,
        88,
        ["calable computers are a goal of physics and many", "groups work on them in a number of countries now."],
    )
    pdf.lines(72, 112, wrapped(PROSE * 2, 60))
    assert "Scalable computers are" in read(pdf.bytes()).text


def test_a_licence_on_the_page_is_in_the_text_and_in_no_passage():
    pdf = paper().line(72, 740, "© The Author(s) 2023. This article is licensed under a Creative Commons licence.", 7)
    pdf.line(72, 360, "1 Introduction", 13, "hebo").lines(72, 380, wrapped(PROSE * 3, 90))
    found = read(pdf.bytes())
    assert "Creative Commons" in found.text
    pieces = [
        found.text[p.char_start : p.char_end] for p in cut_passages(found.text, found.sections, found.page_starts)
    ]
    assert not any("Creative Commons" in piece for piece in pieces)


@pytest.mark.parametrize(
    ("x", "size", "raised", "start"), [(50, 8, 0, 1), (66, 11, 0, 1), (60, 8, 3, 1), (50, 8, 0, 95)]
)
def test_line_numbers_in_every_width_stay_out(x, size, raised, start):
    pdf = Pdf()
    lines = wrapped(" ".join(f"{PROSE} In the year {1990 + n} there were {n} of them." for n in range(12)), 78)
    for at, line in enumerate(lines):
        if at % 28 == 0:
            pdf.new_page()
        pdf.line(x, 80 + 24 * (at % 28) - raised, str(start + at), size).line(78, 80 + 24 * (at % 28), line, 11)
    assert read(pdf.bytes()).text == " ".join(lines)


ENTRIES = [
    "[1] Adams, B. On the growth of lists. Journal of Lists 4, 12-20, 2001.",
    "[2] Clark, D. and Evans, F. More about lists. In Proceedings of Lists, pages 1-9, 2007.",
    "[3] Grey, H. Lists without end. Press of Lists, 2012.",
]


@pytest.mark.parametrize("label", ["References", "REFERENCES", "Bibliography", "Works cited:"])
@pytest.mark.parametrize("is_numbered", [True, False])
def test_a_list_of_references_whose_heading_runs_on_is_one(label, is_numbered):
    entries = ENTRIES if is_numbered else [entry[4:] for entry in ENTRIES]
    blocks = [
        Block("title", "A Title", 0),
        Block("paragraph", "We show in this paper that lists are long. " * 6, 0),
        Block("paragraph", f"{label} {entries[0]}", 1),
        *(Block("paragraph", entry, 1) for entry in entries[1:]),
        Block("heading", "A Proofs", 1),
        Block("paragraph", "What was said is proved here.", 1),
    ]
    open_hidden_sections(blocks)
    whole = assemble(blocks, 2)
    (found,) = [section for section in whole.sections if section.kind == "references"]
    assert whole.text[found.char_start : found.char_end].startswith(label)
    assert "2012" in whole.text[found.char_start : found.char_end]
    assert "proved" not in whole.text[found.char_start : found.char_end]


@pytest.mark.parametrize(
    "text",
    [
        "References to colour in this figure are in the electronic copy of 2001.",
        "References Section 4 of the appendix, in which we say at length what was found. " + "It goes on and on. " * 60,
        "Bibliography is the science of books. It began in 1545.",
    ],
)
def test_a_sentence_about_references_opens_no_list(text):
    blocks = [Block("title", "A Title", 0), Block("paragraph", text, 1), Block("paragraph", "More words follow.", 1)]
    open_hidden_sections(blocks)
    assert all(section.kind != "references" for section in assemble(blocks, 2).sections)
