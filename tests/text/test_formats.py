"""HTML, JATS, Markdown and plain text by the same rules as PDF."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.text.documents import extract_document
from ingest.text.html import extract_html
from ingest.text.jats import extract_jats
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
