"""HTML, JATS, Markdown and plain text by the same rules as PDF."""

import time

import pymupdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.text.documents import extract_document
from ingest.text.html import extract_html
from ingest.text.jats import extract_jats
from ingest.text.kinds import decode
from ingest.text.limits import Limits
from ingest.text.markdown import extract_markdown
from ingest.text.plain import extract_plain
from tests.support import shared

READERS = {"html": extract_html, "jats": extract_jats, "markdown": extract_markdown, "plain": extract_plain}

HTML = """<!DOCTYPE html><html><head><title>Journal – My Paper</title><meta name="citation_title" content="My Paper">
<meta name="citation_doi" content="10.1234/ABC"></head><body><nav>Home Menu</nav><article><h1>My Paper</h1>
<h2>Abstract</h2><p>We show<sup>1,2</sup> this &amp; that<sup>*</sup>.</p><h2>2 Results</h2><div>Bare text<p>and a formula
<math alttext="x^2"></math>.</p></div><ul><li>one</li></ul><figure><figcaption>Figure 1. A cap.</figcaption></figure>
<table><tr><th>a</th><td>1</td></tr><tr><th>b</th><td>2</td></tr></table><script>var x = 'code';</script>
<p style="display:none">hidden words</p>
<section class="references"><ol><li>Ref one 2001.</li></ol></section></article><footer>Copyright</footer></body></html>"""

JATS = """<?xml version="1.0"?><!DOCTYPE article PUBLIC "-//NLM//DTD JATS 1.0//EN" "JATS.dtd">
<article xmlns:mml="http://www.w3.org/1998/Math/MathML"><front><article-meta><article-id pub-id-type="doi">10.1000/X.5</article-id>
<title-group><article-title>On <italic>E. coli</italic></article-title></title-group>
<abstract><sec><title>Background</title><p>B text.</p></sec></abstract></article-meta></front><body>
<sec sec-type="intro"><label>1</label><title>Introduction</title><p>First<sup><xref ref-type="bibr">1</xref></sup> part<fig>
<label>Fig 1</label><caption><p>Cap here.</p></caption></fig> goes on.</p></sec>
<sec><title>Approach</title><p>x <inline-formula><mml:math><mml:mi>a</mml:mi><mml:mo>=</mml:mo><mml:mn>2</mml:mn></mml:math></inline-formula> y.</p></sec>
</body><back><ack><p>Thanks.</p></ack><ref-list><title>References</title><ref><label>1</label>
<mixed-citation>Foo B. 2001.</mixed-citation></ref></ref-list></back></article>"""

MARKDOWN = """---
title: "A paper on x"
doi: 10.1234/ABC.5
---
# A paper on x

Some *intro* text with a [link](http://x.org) and `code`.

## 1 Introduction

- item one

| a | b |
|---|---|
| 1 | 2 |

## References

1. Foo 2020.
"""

PLAIN = """A Study of Things

Abstract
This is the ab-
stract of the paper that we wrote for this test of the plain reader.

1 Introduction

We begin with a long sentence that is broken at a width
and goes on here. The end.

References

[1] Foo 2001.
"""


def read(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return extract_document(path, name, Limits())


def test_html(tmp_path):
    found = read(tmp_path, "a.html", HTML)
    assert (found.kind, found.title, found.doi) == ("html", "My Paper", "10.1234/abc")
    assert found.abstract == "We show 1,2 this & that."
    assert [s.kind for s in found.sections] == ["other", "abstract", "results", "references"]
    assert "Bare text\n\nand a formula x^2." in found.text
    assert "a\t1\nb\t2" in found.text
    for absent in ("Menu", "Copyright", "code", "hidden"):
        assert absent not in found.text


@pytest.mark.parametrize("title", ["403 Forbidden", "Just a moment...", "302 Found"])
def test_an_error_page_is_no_paper(tmp_path, title):
    found = read(tmp_path, "a.html", f"<html><head><title>{title}</title></head><body><p>Go away.</p></body></html>")
    assert found.verdict == "not_pdf"
    assert title in found.reason


def test_jats(tmp_path):
    found = read(tmp_path, "a.xml", JATS)
    assert (found.kind, found.title, found.doi) == ("jats", "On E. coli", "10.1000/x.5")
    assert found.abstract == "Background: B text."
    assert [s.kind for s in found.sections] == [
        "other", "abstract", "introduction", "method", "acknowledgements", "references",
    ]  # fmt: skip
    assert "First 1 part goes on.\n\nFig 1. Cap here." in found.text
    assert "x a = 2 y." in found.text


def test_markdown(tmp_path):
    found = read(tmp_path, "a.md", MARKDOWN)
    assert (found.kind, found.title, found.doi) == ("markdown", "A paper on x", "10.1234/abc.5")
    assert "Some intro text with a link and code." in found.text
    assert "a\tb\n1\t2" in found.text
    assert [s.kind for s in found.sections] == ["other", "introduction", "references"]


def test_plain_text(tmp_path):
    found = read(tmp_path, "a.txt", PLAIN)
    assert (found.kind, found.title) == ("text", "A Study of Things")
    assert found.abstract == "This is the abstract of the paper that we wrote for this test of the plain reader."
    assert "broken at a width and goes on here." in found.text
    assert [s.kind for s in found.sections] == ["other", "abstract", "introduction", "references"]
    assert found.page_starts == ()


def test_form_feeds_are_pages(tmp_path):
    found = read(tmp_path, "a.txt", "First page.\n\fSecond page.\n")
    assert found.n_pages == 2
    assert found.text[found.page_starts[1] :] == "Second page."


@pytest.mark.parametrize(
    "content", ["Grüße aus Köln".encode("cp1252"), "Grüße aus Köln".encode("utf-16"), "\ufeffGrüße aus Köln".encode()]
)
def test_encodings(tmp_path, content):
    assert read(tmp_path, "a.txt", content).text == "Grüße aus Köln"


@pytest.mark.parametrize("name", ["a.html", "a.xml", "a.md", "a.txt"])
def test_nothing_in_it(tmp_path, name):
    assert not read(tmp_path, name, {"a.html": "<html></html>", "a.xml": "<article/>"}.get(name, "   \n")).is_ok


def test_entities_of_xml_reach_no_file(tmp_path):
    evil = '<?xml version="1.0"?><!DOCTYPE article [<!ENTITY x SYSTEM "file:///etc/passwd">]><article><body><p>a &x; b</p></body></article>'
    assert "root:" not in read(tmp_path, "a.xml", evil).text


def test_deeply_nested_html_is_read(tmp_path):
    found = read(tmp_path, "a.html", "<html><body>" + "<div>" * 3000 + "deep words" + "</div>" * 3000)
    assert found.verdict in {"ok", "no_pages", "damaged"}


@pytest.mark.shared
@pytest.mark.parametrize(
    ("parts", "title"),
    [
        (("europe-pmc", "fullTextXML_PMC8164761.xml"), "Methodology: non-invasive monitoring system"),
        (("ncbi-pmc", "efetch_pmc_three_articles_2026.xml"), "Biomarker tests of progression"),
    ],
)
def test_real_jats(parts, title):
    path = shared("sources", *parts)
    found = extract_document(path, path.name, Limits())
    assert found.kind == "jats"
    assert found.title.startswith(title)
    assert {"abstract", "introduction", "method", "results", "references"} <= {s.kind for s in found.sections}


pieces = st.sampled_from(
    [
        "<p>",
        "</p>",
        "<table><tr><td>",
        "<sup>1</sup>",
        "<math><mi>x</mi></math>",
        "&amp;",
        "# ",
        "\n\n",
        "- ",
        "| a |",
        "```\n",
        "<sec>",
    ]
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(pieces, st.text(max_size=12)), max_size=30).map("".join),
    st.sampled_from(["<html>", "<article>", "", "# T\n"]),
)
def test_any_text_gives_a_verdict_and_storable_text(body, head):
    for reader in READERS.values():
        found = reader((head + body).encode("utf-8", "surrogatepass"), Limits())
        assert found.is_ok == bool(found.text)
        assert "\x00" not in found.text
        found.text.encode()
        assert all(0 <= s.char_start < s.char_end <= len(found.text) for s in found.sections)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Größe über alles, süße Öfen ".encode() + b"\xed\xa0\x80" + b" am Ende", "Größe über alles, süße Öfen \ufffd am Ende"),
        ("Größe über alles, süße Öfen ".encode() + b"\xff am \x92 Ende", "Größe über alles, süße Öfen \ufffd am \ufffd Ende"),
        (b"A lone half \xed\xa0\x80 in plain letters", "A lone half \ufffd in plain letters"),
        (b"A smile \xed\xa0\xbd\xed\xb8\x80 in halves", "A smile 😀 in halves"),
        (b"Neither \x81 nor that", "Neither \ufffd nor that"),
        ("Grüße aus Köln – „schön“".encode("cp1252"), "Grüße aus Köln – „schön“"),
        (b"It\x92s an old apostrophe", "It\u2019s an old apostrophe"),
    ],
)  # fmt: skip
def test_broken_bytes_cost_themselves_alone(tmp_path, content, text):
    pages = {
        "a.txt": content + b".",
        "a.md": b"# A title\n\n* one\n* two\n\n" + content + b".",
        "a.html": b"<html><body><p>" + content + b".</p></body></html>",
        "b.html": b"<html><head><meta charset='utf-8'></head><body><p>" + content + b".</p></body></html>",
        "a.xml": b"<?xml version='1.0' encoding='UTF-8'?><article><body><p>" + content + b".</p></body></article>",
    }
    for name, page in pages.items():
        found = read(tmp_path, name, page)
        assert text in found.text, name
        n = text.count("\ufffd")
        assert found.warnings == ((f"unmapped_characters:{n}",) if n else ()), name


@given(
    st.text(alphabet="aäöü€漢😀 \n", min_size=20),
    st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from([b"\xff", b"\x92", b"\xed\xa0\x80"])), max_size=2),
)
def test_text_that_is_mostly_utf8_is_utf8(text, breaks):
    text = "äöüäöüäöü" + text
    content = text.encode()
    for at, wrong in breaks:
        place = len(text[: at % len(text)].encode())
        content = content[:place] + wrong + content[place:] if is_boundary(content, place) else content
    assert decode(content).replace("\ufffd", "") == text


def is_boundary(content, place):
    """Whether a character begins there: bytes are put between characters, not into them."""
    return place == len(content) or content[place] & 0xC0 != 0x80


def test_a_page_that_names_no_encoding_is_utf8(tmp_path):
    assert (
        read(tmp_path, "a.html", "<html><body><p>Größe und Ähre, 漢字.</p></body></html>".encode()).text
        == "Größe und Ähre, 漢字."
    )


def test_entities_that_no_file_defines(tmp_path):
    content = b"<article><body><p>The &alpha;-helix of &mu;m size &amp; a &nosuchname; thing.</p></body></article>"
    found = read(tmp_path, "a.xml", content)
    assert found.text == "The α-helix of μm size & a \ufffd thing."
    assert found.warnings == ("unmapped_characters:1",)


WORDLESS = {
    "entity.xml": b"<article><body><p>&nosuchname;</p></body></article>",
    "dot.xml": b"<article><body><p>.</p></body></article>",
    "quotes.md": b"# t\n\n" + b">" * 5000,
    "div.md": b"# t\n\n" + b"<div>" * 500,
    "one.txt": b"x",
    "numbers.txt": b"1 2 3\n\n4 5 6\n",
    "letters.txt": b"a b c d",
    "dashes.txt": b"-" * 5000,
    "unknown.txt": "\ufffd \ufffd".encode() * 500,
    "one.html": b"<html><body><p>i</p></body></html>",
}


@pytest.mark.parametrize("name", WORDLESS)
def test_a_file_without_words_is_no_success(tmp_path, name):
    found = read(tmp_path, name, WORDLESS[name])
    assert found.verdict in {"no_pages", "damaged"}
    assert found.reason
    assert found.text == ""


def test_a_pdf_without_words_is_no_success(tmp_path):
    document = pymupdf.open()
    for number in range(3):
        document.new_page().insert_text((72, 72), str(number + 1))
    assert read(tmp_path, "a.pdf", document.tobytes()).verdict == "needs_ocr"


@pytest.mark.parametrize(
    "note", ["Call Bob", "Yes.", "E = mc²", "买牛奶", "はい", "हाँ जी", "نعم", "Да, да!", "PCR at 37"]
)
def test_a_short_note_is_a_text(tmp_path, note):
    assert read(tmp_path, "a.txt", note.encode()).text == note
    assert read(tmp_path, "a.html", f"<html><body><p>{note}</p></body></html>".encode()).text == note


DEEP = 3000
SAID = "Some words at the very bottom."


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("div.html", "<html><body><p>On top.</p>" + "<div>" * DEEP + SAID + "</body></html>"),
        ("span.html", "<html><body><p>On top. " + "<span>" * DEEP + SAID + "</body></html>"),
        ("sec.xml", "<article><body><p>On top.</p>" + "<sec>" * DEEP + f"<p>{SAID}</p>" + "</sec>" * DEEP + "</body></article>"),
        ("quote.md", "On top of it all.\n\n* a\n\n" + "> " * DEEP + SAID),
    ],
)  # fmt: skip
def test_words_too_deep_are_read_or_said_to_be_lost(tmp_path, name, content):
    found = read(tmp_path, name, content.encode())
    assert SAID in found.text or "incomplete" in found.warnings or found.verdict == "damaged"


@pytest.mark.parametrize("depth", [50, 300, 900])
def test_words_of_any_sensible_depth_are_read(tmp_path, depth):
    page = "<html><body>" + "<div>" * depth + SAID + "</div>" * depth + "</body></html>"
    heading = "<html><body><h1>" + "<span>" * depth + SAID + "</span>" * depth + "</h1></body></html>"
    paragraph = "<article><body><p>" + "<bold>" * depth + SAID + "</bold>" * depth + "</p></body></article>"
    for name, content in (("a.html", page), ("b.html", heading), ("a.xml", paragraph)):
        assert read(tmp_path, name, content.encode()).text == SAID


ATTACKS = {
    "links.md": "[a](", "brackets.md": "[", "images.md": "![a](", "stars.md": "*", "emphasis.md": "a**b_", "quotes.md": ">",
    "ticks.md": "`a``", "angles.md": "<a ", "comments.html": "<!---->", "pipes.md": "\n|a", "bold.md": "**a",
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_reading_takes_time_in_proportion(tmp_path, name):
    """Four times as much takes about four times as long, not sixteen times; measured where it is long enough to tell."""

    def seconds(n):
        began = time.process_time()
        read(tmp_path, name, ("# A title\n\n" * (not name.endswith("html")) + ATTACKS[name] * n).encode())
        return time.process_time() - began

    def is_linear():  # the machine's own speed changes from one moment to the next
        short, long = seconds(800), seconds(3200)
        return long < 0.2 or long < 9 * short

    seconds(10)
    assert any(is_linear() for _ in range(5))
