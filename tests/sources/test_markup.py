"""XML is read safely: no entity is expanded, nothing is fetched, what is broken is an outcome."""

from __future__ import annotations

import time

import pytest

from corpus.errors import SourceNonsense, SourceThrottled
from ingest.sources.base import Answer
from ingest.sources.markup import child, inner, metas, parse_html, parse_xml, raw, words
from tests.sources.support import read

BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "lol">'
    + b"".join(b'<!ENTITY %c "%s">' % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(9))
    + b"]><r><t>&j;</t></r>"
)


def test_entities_are_not_expanded():
    assert inner(parse_xml("arxiv", Answer(b'<!DOCTYPE r [<!ENTITY a "lol">]><r><t>x &a; y</t></r>')), "t") == "x &a; y"
    started = time.monotonic()
    with pytest.raises(SourceNonsense, match="amplification"):
        parse_xml("arxiv", Answer(BOMB))
    assert time.monotonic() - started < 1


def test_files_and_addresses_are_not_read(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    body = f'<!DOCTYPE r [<!ENTITY x SYSTEM "file://{secret}">]><r><t>&x;</t></r>'.encode()
    assert "secret" not in inner(parse_xml("arxiv", Answer(body)), "t").replace(str(secret), "")
    entry = b'<!DOCTYPE r [<!ENTITY x SYSTEM "http://127.0.0.1:9/">]><feed><entry><id>&x;</id></entry></feed>'
    assert read("arxiv", Answer(entry)).works == []


@pytest.mark.parametrize(
    "body", [b"<a><b></a>", b"<a>", b"<a/><b/>", b"plain", b"", b"<a>&#0;</a>", b"<" + b"a><" * 2000]
)
def test_broken_documents_are_nonsense(body: bytes):
    with pytest.raises(SourceNonsense):
        parse_xml("arxiv", Answer(body))


def test_deep_documents_end_in_an_outcome():
    with pytest.raises(SourceNonsense):
        parse_xml("arxiv", Answer(b"<a>" * 5000 + b"</a>" * 5000))


def test_encodings():
    latin = "<?xml version='1.0' encoding='ISO-8859-1'?><r><t>Café</t></r>".encode("latin-1")
    assert inner(parse_xml("dblp", Answer(latin)), "t") == "Café"
    assert inner(parse_xml("dblp", Answer("\ufeff<r><t>é</t></r>".encode())), "t") == "é"
    utf16 = '<?xml version="1.0" encoding="UTF-16"?><r><t>é</t></r>'.encode("utf-16")
    assert inner(parse_xml("dblp", Answer(utf16)), "t") == "é"


def test_stray_bytes_cost_their_letters_and_not_the_document():
    stray = "<?xml version='1.0' encoding='UTF-8'?>\n<r><t>Caf\u00e9 au lait</t></r>".encode("latin-1")
    assert inner(parse_xml("dblp", Answer(stray)), "t") == "Caf\ufffd au lait"
    with pytest.raises(SourceNonsense):
        parse_xml("dblp", Answer(stray[:-3]))


def test_a_plain_message_with_a_byte_order_mark_is_read_as_one():
    with pytest.raises(SourceThrottled):
        parse_xml("arxiv", Answer(b"\xef\xbb\xbfRate exceeded."))


def test_blocks_are_set_apart_and_inline_markup_is_not():
    root = parse_xml(
        "x",
        Answer(b"<r><title>H<sub>2</sub>O</title><sec><title>Aim</title><p>One.</p><p>Two<!-- no -->.</p></sec></r>"),
    )
    assert words(root, "title") == "H2O"
    assert " ".join(raw(child(root, "sec"), headings=True).split()) == "Aim: One. Two."


def test_meta_tags():
    page = parse_html(Answer(b'<html><meta name="Citation_Title" content="A &amp;amp; B"><meta content=x></html>'))
    assert page is not None
    assert metas(page) == {"citation_title": ["A & B"]}


LATEXML = b"""<!DOCTYPE html><html><head><base href="/html/2401.00042v3/"></head><body>
<article class="ltx_document"><h1 class="ltx_title ltx_title_document">On <em>things</em><span class="ltx_note">1</span></h1>
<div class="ltx_authors"><span class="ltx_creator"><span class="ltx_personname">Ada Lovelace</span></span></div>
<div class="ltx_abstract"><h6 class="ltx_title ltx_title_abstract">Abstract</h6><p class="ltx_p">We show
<math alttext="x"><semantics><mi>x</mi><annotation encoding="application/x-tex">x</annotation></semantics></math>.</p></div>
<section class="ltx_section"><p>See <a href="https://arxiv.org/abs/1706.03762">them</a>.</p></section>
</article></body></html>"""


def test_a_paper_of_arxiv_in_html():
    work = read("arxiv", Answer(LATEXML)).works[0]
    assert work.identifiers == {"arxiv": "2401.00042"}
    assert work.arxiv_version == 3
    assert (work.title, work.abstract, work.authors) == ("On things", "We show x.", ["Ada Lovelace"])
    assert [place.url for place in work.locations if place.kind == "html"] == ["https://arxiv.org/html/2401.00042v3"]


def test_the_page_that_says_there_is_no_html():
    page = b"<html><head><title>No HTML for '2401.00042'</title></head><body>HTML is not available for the source.</body></html>"
    for status in (404, None):
        with pytest.raises(Exception, match="No HTML") as caught:
            read("arxiv", Answer(page, status))
        assert getattr(caught.value, "outcome", None) == "absent"
