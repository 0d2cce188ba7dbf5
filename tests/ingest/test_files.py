"""Files into the corpus: once each, whatever their names; copies of one paper found; hard files no obstacle."""

import shutil

import pymupdf
import pytest

from corpus.passages import Section
from ingest.documents import store_extraction
from ingest.extraction import run_extractions
from ingest.files import PDF_SUFFIXES, list_files, register_file
from ingest.papers import write_papers
from ingest.records import PaperRecord
from ingest.text.result import Extraction, refuse
from tests.support import shared


def pdf(path, *lines, title=None):
    document = pymupdf.open()
    page = document.new_page()
    for n, line in enumerate(lines):
        page.insert_text((72, 90 + 24 * n), line, fontsize=20 if n == 0 else 11)
    if title:
        document.set_metadata({"title": title})
    document.save(path)
    return path


def rows(connection, query="SELECT paper_id, title FROM paper ORDER BY paper_pk"):
    return connection.execute(query).fetchall()


def extracted(title="A Study of Snails", arxiv=None, doi=None, text="Snails are slow. " * 300):
    return Extraction("ok", title=title, text=text, arxiv_id=arxiv, doi=doi, n_pages=2, page_starts=(0, 2000),
                      sections=(Section("introduction", "1 Introduction", 0, len(text)),))  # fmt: skip


def test_the_same_bytes_under_two_names_and_in_two_topics_are_one_paper(connection, store, tmp_path):
    one = pdf(tmp_path / "a.pdf", "A Title")
    other = shutil.copy(one, tmp_path / "b.pdf")
    assert register_file(connection, store, one, topics=["first"]).is_new
    assert not register_file(connection, store, other, topics=["second"]).is_new
    assert len(rows(connection)) == 1
    assert rows(connection, "SELECT t.name FROM paper_topic JOIN topic t USING (topic_id) ORDER BY 1") == [
        ("first",),
        ("second",),
    ]
    assert rows(connection, "SELECT count(*) FROM job WHERE kind = 'extract'") == [(1,)]


def test_a_file_is_listed_before_it_is_read_and_read_once(database, connection, store, tmp_path):
    path = pdf(tmp_path / "x.pdf", "Title of the Thing", "Some words of the text of the thing.")
    register_file(connection, store, path)
    assert rows(connection, "SELECT verdict FROM document") == [(None,)]
    assert run_extractions(database, store, n_children=1).n_done == 1
    assert rows(connection, "SELECT verdict FROM document") == [("ok",)]
    register_file(connection, store, path)
    assert run_extractions(database, store, n_children=1).n_done == 0
    assert rows(connection, "SELECT count(*) FROM job WHERE kind = 'chunk'") == [(1,)]


def test_the_title_comes_from_the_text(database, connection, store, tmp_path):
    register_file(
        connection,
        store,
        pdf(
            tmp_path / "x.pdf",
            "On the Speed of Snails",
            "We measured how fast snails go over wet and dry ground in spring and autumn.",
            title="Microsoft Word - final2.doc",
        ),
    )
    run_extractions(database, store, n_children=1)
    assert rows(connection)[0][1] == "On the Speed of Snails"


def test_a_full_text_becomes_that_of_the_paper_that_owns_its_identifier(connection, store, tmp_path):
    write_papers(
        connection,
        [
            PaperRecord(
                "arxiv:2401.00042", title="A Study of Snails", identifiers={"arxiv": "2401.00042"}, topics=("t",)
            )
        ],
    )
    document = register_file(connection, store, pdf(tmp_path / "x.pdf", "x"), topics=["u"]).document_id
    with connection.transaction():
        stored = store_extraction(connection, document, extracted(arxiv="2401.00042"))
    assert stored.paper_id == "arxiv:2401.00042"
    assert len(rows(connection)) == 1
    digest = rows(connection, "SELECT encode(sha256, 'hex') FROM document")[0][0]
    assert rows(
        connection, f"SELECT p.paper_id FROM paper_resolve(ARRAY['file:{digest}']) r JOIN paper p USING (paper_pk)"
    ) == [("arxiv:2401.00042",)]
    assert rows(connection, "SELECT t.name FROM paper_topic JOIN topic t USING (topic_id) ORDER BY 1") == [
        ("t",),
        ("u",),
    ]


@pytest.mark.parametrize("again", [{"arxiv": "2401.00042", "text": "Other snails. " * 200}, {"arxiv": None}])
def test_another_copy_says_whose_and_makes_no_passages(connection, store, tmp_path, again):
    first = register_file(connection, store, pdf(tmp_path / "a.pdf", "one")).document_id
    second = register_file(connection, store, pdf(tmp_path / "b.pdf", "two")).document_id
    with connection.transaction():
        store_extraction(connection, first, extracted(arxiv="2401.00042"))
        stored = store_extraction(connection, second, extracted(**again))
    assert stored.is_copy
    assert len(rows(connection)) == 2
    reason = rows(connection, f"SELECT reason FROM document WHERE document_id = {second}")[0][0]
    assert "another copy of file:" in reason
    assert rows(connection, "SELECT count(*) FROM job WHERE kind = 'chunk'") == [(1,)]


def test_a_number_that_only_looks_like_its_own_hides_nothing(connection, store, tmp_path):
    first = register_file(connection, store, pdf(tmp_path / "a.pdf", "one")).document_id
    second = register_file(connection, store, pdf(tmp_path / "b.pdf", "two")).document_id
    with connection.transaction():
        store_extraction(connection, first, extracted(arxiv="2401.00042"))
        stored = store_extraction(
            connection, second, extracted(title="Of Whales and Waves", arxiv="2401.00042", text="Whales. " * 300)
        )
    assert not stored.is_copy
    assert rows(connection, "SELECT count(*) FROM job WHERE kind = 'chunk'") == [(2,)]


def test_a_full_text_is_never_moved_to_a_prefixed_paper(connection, store, tmp_path):
    write_papers(
        connection,
        [PaperRecord("p:1", is_prefixed=True, title="A Study of Snails", identifiers={"arxiv": "2401.00042"})],
    )
    document = register_file(connection, store, pdf(tmp_path / "x.pdf", "x")).document_id
    with connection.transaction():
        store_extraction(connection, document, extracted(arxiv="2401.00042"))
    assert len(rows(connection)) == 2


def test_a_refused_file_keeps_its_reason_and_makes_no_work(connection, store, tmp_path):
    document = register_file(connection, store, pdf(tmp_path / "x.pdf", "x")).document_id
    with connection.transaction():
        store_extraction(connection, document, refuse("encrypted", "a password is needed to open it"))
    assert rows(connection, "SELECT verdict, reason FROM document") == [
        ("encrypted", "a password is needed to open it")
    ]
    assert rows(connection, "SELECT count(*) FROM passage") == [(0,)]
    assert rows(connection, "SELECT count(*) FROM job WHERE kind = 'chunk'") == [(0,)]


def test_texts_and_titles_with_unstorable_characters_are_stored(connection, store, tmp_path):
    document = register_file(connection, store, pdf(tmp_path / "x.pdf", "x")).document_id
    odd = Extraction("ok", title="a\x00b\ud800", text="words \x00 and \udbff more", reason="\x00",
                     sections=(Section("other", "he\x00ad\ud800", 0, 5),), page_starts=(0,), n_pages=1, text_sha256="0" * 64)  # fmt: skip
    with connection.transaction():
        store_extraction(connection, document, odd)
    assert rows(connection)[0][1] == "a\ufffdb\ufffd"
    assert rows(connection, "SELECT text FROM document") == [("words \ufffd and \ufffd more",)]


def test_a_file_missing_from_the_store_is_one_failure(database, connection, store, tmp_path):
    register_file(connection, store, pdf(tmp_path / "a.pdf", "one"))
    register_file(connection, store, pdf(tmp_path / "b.pdf", "Good Title", "words and words"))
    digest = rows(connection, "SELECT encode(sha256, 'hex') FROM document ORDER BY document_id")[0][0]
    store.remove(digest)
    run = run_extractions(database, store, n_children=1)
    assert (run.n_done, run.n_failed) == (1, 1)
    assert rows(connection, "SELECT state, error_class FROM job WHERE kind = 'extract'") == [("failed", "poison")]


def test_odd_folders(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / ".hidden").mkdir()
    pdf(tmp_path / "sub" / "B.PDF", "x")
    pdf(tmp_path / ".hidden" / "c.pdf", "x")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "gone.pdf").symlink_to(tmp_path / "nothing")
    (tmp_path / "folder.pdf").mkdir()
    assert [p.name for p in list_files(tmp_path, PDF_SUFFIXES)] == ["B.PDF"]


def test_real_and_hard_files_all_get_a_verdict(database, connection, store):
    folder = shared("papers")
    found = list_files(folder, PDF_SUFFIXES)
    for path in found:
        register_file(connection, store, path)
    assert len(rows(connection)) == len(found) == 44
    run = run_extractions(database, store)
    assert (run.n_done, run.n_failed) == (44, 0)
    assert rows(connection, "SELECT count(*) FROM document WHERE verdict IS NULL") == [(0,)]
    assert rows(connection, "SELECT count(*) FROM document WHERE verdict <> 'ok' AND coalesce(reason, '') = ''") == [
        (0,)
    ]
    copies = rows(
        connection, "SELECT d.file_name FROM document d JOIN paper p USING (paper_pk) WHERE p.same_as IS NOT NULL"
    )
    assert len(copies) == 1
    untitled = "SELECT d.file_name FROM document d JOIN paper p USING (paper_pk) WHERE d.verdict = 'ok' AND p.title IS NULL AND d.n_pages > 4"
    assert rows(connection, untitled) == []
