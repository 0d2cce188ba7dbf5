"""What people complain about elsewhere when papers become text: a small input for each, and its right value."""

import pytest

from corpus.passages import cut_passages
from corpus.sentences import split_sentences
from ingest.text.characters import clean_text
from ingest.text.hyphens import Hyphenation
from ingest.text.ligatures import find_dropped, find_mistaken, mend_ligatures
from ingest.text.limits import Limits
from ingest.text.plain import extract_plain
from ingest.text.quality import judge
from tests.text.pdfs import PROSE, Pdf, flate_bomb, raw_pdf, read, shown, wrapped

LEFT = wrapped("Alpha begins the left column. " + PROSE * 2 + "The left column ends in the middle of a", 46)
RIGHT = wrapped("sentence that the right column ends. " + PROSE * 2 + "Omega closes the right column.", 46)


def two_columns(order):
    pdf = Pdf().new_page()
    columns = {"left": (60, LEFT), "right": (330, RIGHT)}
    for name in order:
        x, lines = columns[name]
        pdf.lines(x, 80, lines)
    return pdf


@pytest.mark.parametrize("order", [("left", "right"), ("right", "left")])
def test_two_columns_are_read_left_first_whatever_the_order_of_the_file(order):
    text = read(two_columns(order).bytes()).text
    assert text.index("Alpha") < text.index("Omega")
    assert "in the middle of a sentence that the right column ends." in text


def test_after_a_page_turn_the_left_column_comes_first_and_the_sentence_runs_on():
    pdf = two_columns(("left", "right"))
    pdf.lines(330, 80 + 12 * len(RIGHT), ["A sentence that begins on the first page and"])
    pdf.new_page()
    pdf.lines(330, 80, wrapped("Last comes this column. " + PROSE * 2, 46))
    pdf.lines(60, 80, wrapped("ends on the second page. " + PROSE * 2, 46))
    found = read(pdf.bytes())
    assert "begins on the first page and ends on the second page." in found.text
    assert found.text.index("ends on the second page") < found.text.index("Last comes this column")
    assert found.text[found.page_starts[1] :].startswith("ends on the second page")


def test_rows_drawn_over_the_gutter_do_not_weave_the_columns():
    pdf = Pdf().new_page()
    for number, (left, right) in enumerate(zip(LEFT, RIGHT, strict=False)):
        pdf.line(60, 80 + 12 * number, left).line(330, 80 + 12 * number, right)
    text = read(pdf.bytes()).text
    assert " ".join(LEFT[:3]) in text
    assert " ".join(RIGHT[:3]) in text


def test_words_without_space_characters_are_not_glued():
    stream = b"BT /F 12 Tf 72 700 Td [(internal)-333(covariate)-333(shift)-333(slows)-333(down)-333(training)] TJ ET"
    assert read(raw_pdf(stream)).text == "internal covariate shift slows down training"


@pytest.mark.parametrize(
    ("bfchar", "expected"),
    [
        (b"<0000>", "an efficient method"),  # a ligature mapped to NUL
        (b"<D835>", "an efficient method"),  # to half a surrogate pair
        (b"<FB03>", "an efficient method"),
        (b"<006600660069>", "an efficient method"),
    ],
)
def test_ligatures_that_a_font_maps_to_something_else(bfchar, expected):
    content = raw_pdf(shown(b"an e\xe9cient method"), to_unicode=b"1 beginbfchar <E9> " + bfchar + b" endbfchar")
    assert read(content).text == expected


def test_ligatures_dropped_without_a_trace():
    lines = ["nancial and signicant and dicult and ecient and specic and denition of oce sta"] * 60
    repairs = find_dropped(lines)
    assert repairs["nancial"] == "financial"
    assert repairs["signicant"] == "significant"
    assert find_dropped([*lines, "this line has a fish"]) == {}


def test_ligatures_that_became_the_replacement_character():
    assert (
        mend_ligatures("di\ufffderent, e\ufffdcient, the \ufffdnal x\ufffdy")
        == "different, efficient, the final x\ufffdy"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a di ff cult and an e ffi cient way", "a difficult and an efficient way"),
        ("see fi gure 3, di ff erent", "see figure 3, different"),
        ("if fi and fl are glyphs", "if fi and fl are glyphs"),
    ],
)
def test_ligatures_split_off_by_spaces(text, expected):
    assert mend_ligatures(text) == expected
    assert read(raw_pdf(shown(text.encode()))).text == expected


def test_a_sign_that_stands_for_a_ligature():
    assert find_mistaken(["di↵erent e↵orts of Müller and café"]) == {"di↵erent": "different", "e↵orts": "efforts"}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["We test the dehypenisa-", "tion of a text."], "We test the dehypenisation of a text."),
        (["All capabili-", "ties are good."], "All capabilities are good."),
        (["A price-", "determining thing."], "A price-determining thing."),
        (["The EF-", "1A protein of COVID-", "19 patients."], "The EF-1A protein of COVID-19 patients."),
        (["of state-of-the-", "art models."], "of state-of-the-art models."),
        (["the Triv-", "iaQA data."], "the TriviaQA data."),
        (["with the flags -pn 1 -", "and more words."], "with the flags -pn 1 - and more words."),
        (["a self-", "attention layer"], "a self-attention layer"),
        (["mention–", "mention edges"], "mention–mention edges"),
        (["a V-", "measure of it"], "a V-measure of it"),
    ],
)
def test_hyphens_at_line_ends(lines, expected):
    text = lines[0]
    hyphenation = Hyphenation(lines)
    for line in lines[1:]:
        text = hyphenation.join(text, line)
    assert text == expected


def test_the_document_itself_decides_about_a_hyphen():
    assert Hyphenation(["a nanobody binds", "nano-"]).join("the nano-", "body binds") == "the nanobody binds"
    assert Hyphenation(["a nano-body binds", "nano-"]).join("the nano-", "body binds") == "the nano-body binds"


def test_a_hyphen_before_a_space_inside_a_line_stays():
    content = raw_pdf(shown(b"between the temperature optimum- for binding and growth."))
    assert read(content).text == "between the temperature optimum- for binding and growth."


def test_line_ends_that_were_lost_upstream():
    text = extract_plain(
        b"We do ac- counting for COVID- 19 with pre- and post-war data and so on and on.", Limits()
    ).text
    assert text == "We do accounting for COVID-19 with pre- and post-war data and so on and on."


def test_glyph_numbers_are_no_text():
    assert judge(["(cid:56)(cid:81)(cid:87) (cid:3)(cid:90)(cid:72)" * 40]).quality == "garbage"


def test_mathematical_letters_come_whole():
    content = raw_pdf(shown(b"the value \xe9 is"), to_unicode=b"1 beginbfchar <E9> <D835DF0E> endbfchar")
    assert read(content).text == "the value 𝜎 is"
    assert clean_text("\ud835\udf0e") == ("𝜎", 0)


def test_lone_surrogates_and_nul_are_replaced_and_counted():
    assert clean_text("a\udbffb\x00c") == ("a\ufffdb\ufffdc", 2)
    found = extract_plain(b"1 Introduction\x00s\n\nText with a NUL \x00 in it.\n\n2 Method\n\nMore.", Limits())
    everything = found.text + (found.title or "") + "".join(s.title for s in found.sections)
    assert "\x00" not in everything
    assert "unmapped_characters:2" in found.warnings
    found.text.encode()


def test_a_scan_is_no_success():
    pdf = Pdf().new_page()
    pixmap = pdf._library.Pixmap(pdf._library.csGRAY, pdf._library.IRect(0, 0, 50, 50))
    pixmap.clear_with(200)
    pdf.page.insert_image(pdf.page.rect, pixmap=pixmap)
    found = read(pdf.bytes())
    assert found.verdict == "needs_ocr"
    assert "text layer" in found.reason


def test_one_bad_page_costs_that_page():
    document = Pdf()
    for word in ("first", "second", "third"):
        document.new_page().line(72, 100, f"This is the {word} page of the document.")
    content = document.bytes(deflate=False)
    bad = content.replace(b"/Type/Page/MediaBox", b"/Type/Pagx/MediaBox", 2).replace(b"/Type/Pagx/", b"/Type/Page/", 1)
    found = read(bad)
    assert found.n_pages == 3 or found.verdict == "ok"
    assert "first" in found.text
    assert "third" in found.text


def test_foot_and_page_number_do_not_stand_inside_a_sentence():
    pdf = Pdf()
    for number in range(1, 5):
        pdf.new_page().line(250, 40, "A running head of the paper")
        own = (
            f"This page speaks of {('apples', 'pears', 'plums', 'cherries')[number - 1]} and of nothing else. " * number
        )
        pdf.lines(
            72,
            90,
            wrapped(f"goes on {number * 'and on '}here. {own} {PROSE[number:]} Sentence {number} begins and", 80),
        )
        pdf.line(300, 760, str(number)).line(72, 745, "Journal of Tests 12 (2020)")
    text = read(pdf.bytes()).text
    assert "running head" not in text
    assert "Journal of Tests" not in text
    assert "Sentence 1 begins and goes on and on and on here." in text
    assert "Sentence 3 begins and goes on and on and on and on and on here." in text


def test_a_stamp_along_the_margin_stays_out_and_names_the_paper():
    pdf = (
        Pdf()
        .new_page()
        .lines(100, 80, wrapped("This is com-", 90))
        .lines(100, 92, wrapped("putational work. " + PROSE * 4, 80))
    )
    pdf.line(30, 500, "arXiv:2510.25665v1  [cs.CL]  29 Oct 2025", size=20, rotate=90)
    found = read(pdf.bytes())
    assert "arXiv:" not in found.text
    assert found.arxiv_id == "2510.25665"
    assert "This is computational work." in found.text


@pytest.mark.parametrize(
    "page", ["<html><head><title>302 Found</title></head></html>", "<!DOCTYPE html><title>Just a moment...</title>"]
)
def test_a_page_of_a_web_server_is_no_pdf(page, tmp_path):
    from ingest.text.documents import extract_document

    path = tmp_path / "paper.pdf"
    path.write_text(page)
    found = extract_document(path, path.name, Limits())
    assert found.verdict == "not_pdf"
    assert "HTML" in found.reason


def test_owner_password_only_opens_and_a_user_password_does_not():
    pdf = Pdf().new_page().line(72, 100, "Some words that can be read by everyone.")
    aes = pdf._library.PDF_ENCRYPT_AES_128
    assert read(pdf.bytes(encryption=aes, owner_pw="o", user_pw="")).is_ok
    locked = read(pdf.bytes(encryption=aes, owner_pw="o", user_pw="u"))
    assert locked.verdict == "encrypted"
    assert not locked.text
    assert "password" in locked.reason


def test_pages_are_joined_with_something_between():
    pdf = (
        Pdf()
        .new_page()
        .lines(72, 90, wrapped(PROSE * 3 + "In this year the whole of the revenue of the company grew to", 80))
    )
    pdf.new_page().lines(72, 90, wrapped("$4.2 million. " + PROSE * 2, 80))
    assert "grew to $4.2 million" in read(pdf.bytes()).text


def test_a_passage_over_two_pages_is_cited_with_both():
    pdf = Pdf()
    for _ in range(2):
        pdf.new_page().lines(72, 90, wrapped(PROSE * 8, 80))
    found = read(pdf.bytes())
    passages = cut_passages(found.text, found.sections, found.page_starts)
    assert any((p.page_from, p.page_to) == (1, 2) for p in passages)
    assert all(p.page_from and p.section for p in passages)


def test_et_al_and_fig_end_no_sentence():
    assert len(split_sentences("Lee et al. (2018) introduced it (Fig. 2c). It works.")) == 2


def test_references_make_no_passages_and_a_section_called_so_in_the_middle_does_not_end_the_paper():
    pdf = Pdf().new_page()
    pdf.line(72, 80, "1 Introduction", 14, "hebo").lines(72, 100, wrapped(PROSE * 2, 80))
    pdf.line(72, 200, "References", 14, "hebo").lines(
        72, 220, ["[1] A. Author. A title of a work. 2001.", "[2] B. Author. Another. 2002."]
    )
    pdf.line(72, 300, "2 Appendix on proofs", 14, "hebo").lines(72, 320, wrapped("After them. " + PROSE, 80))
    found = read(pdf.bytes())
    assert [s.kind for s in found.sections if s.title == "References"] == ["references"]
    pieces = [
        found.text[p.char_start : p.char_end] for p in cut_passages(found.text, found.sections, found.page_starts)
    ]
    assert not any("A. Author" in piece for piece in pieces)
    assert any("After them." in piece for piece in pieces)


def test_tick_labels_of_plots_do_not_swallow_a_paragraph():
    pdf = Pdf().new_page().lines(72, 80, wrapped(PROSE * 3, 90))
    for x in (80, 330):
        pdf.lines(x, 200, ["1.0", "0.8", "0.6", "0.4"], size=7, leading=20)
        pdf.line(x + 40, 290, "10   20   30   40   50", 7)
    pdf.line(72, 310, "Figure 1: Two plots side by side.", 9)
    pdf.lines(72, 345, wrapped("This paragraph stands between the plots. " + PROSE * 2, 90))
    for x in (80, 330):
        pdf.lines(x, 430, ["1.0", "0.8", "0.6", "0.4"], size=7, leading=20)
    pdf.line(72, 520, "Figure 2: Two more plots.", 9)
    pdf.lines(72, 550, wrapped("And the text ends here. " + PROSE * 2, 90))
    text = read(pdf.bytes()).text
    paragraph = next(part for part in text.split("\n\n") if part.startswith("This paragraph stands"))
    assert paragraph == " ".join(("This paragraph stands between the plots. " + PROSE * 2).split())


def test_a_nested_flate_bomb_ends_in_a_verdict(tmp_path):
    from ingest.text.extract import extract_file

    path = tmp_path / "bomb.pdf"
    path.write_bytes(raw_pdf(flate_bomb(400), filters=b"/FlateDecode/FlateDecode"))
    assert path.stat().st_size < 100_000
    found = extract_file(path, limits=Limits(seconds=20, memory_mib=150))
    assert found.verdict in {"too_large", "timeout", "damaged", "needs_ocr"}


def test_notes_of_readers_are_not_the_authors_words():
    def made():
        return Pdf().new_page().lines(72, 90, wrapped(PROSE * 3, 80))

    annotated = made()
    annotated.page.add_freetext_annot((300, 300, 500, 340), "I do not believe this at all")
    annotated.page.add_highlight_annot((72, 80, 300, 95))
    found = read(annotated.bytes())
    assert "believe" not in found.text
    assert found.text == read(made().bytes()).text
