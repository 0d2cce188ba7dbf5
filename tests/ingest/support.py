"""A document that an older extractor has read, and what the tests of reading it anew ask of it."""

from dataclasses import replace

from ingest.documents import store_extraction
from ingest.files import register_file
from ingest.reextract import list_outdated, reextract
from ingest.text.limits import Limits
from ingest.text.plain import extract_plain
from ingest.text.result import EXTRACTOR_VERSION

LINE = "Snails of valley {n} carry their shells up the wet limestone and rest at noon, as was counted on day {n}."
FILE = "A Study of Snails\n\n" + "\n\n".join(
    " ".join(LINE.format(n=10 * p + s) for s in range(12)) + (" Quickword ends it." if p == 0 else "") for p in range(8)
)


def today(text=FILE):
    return extract_plain(text.encode(), Limits())


def older(text=FILE, version=EXTRACTOR_VERSION - 1, **changed):
    """What an extractor before this one made of it: one word of the first passage is wrong."""
    made = today(text)
    return replace(
        made, text=made.text.replace("Quickword", "Staleword"), text_sha256="", extractor_version=version, **changed
    )


def add(connection, store, tmp_path, name="snails.txt", text=FILE, made=None):
    path = tmp_path / name
    path.write_text(text)
    document_id = register_file(connection, store, path).document_id
    connection.execute("DELETE FROM job WHERE kind = 'extract'")
    with connection.transaction():
        store_extraction(connection, document_id, made or older(text))
    return document_id


def run(database, store, *, is_all=False, **which):
    with database.connect() as connection:
        wanted = list_outdated(connection, is_all=is_all, **which)
    return reextract(database, store, wanted, is_all=is_all, n_children=1)


def served(connection, word):
    """Whether the text and a passage of it hold the word."""
    return connection.execute(
        "SELECT EXISTS (SELECT FROM document WHERE position(%(w)s IN text) > 0),"
        " EXISTS (SELECT FROM passage WHERE position(%(w)s IN text) > 0)",
        {"w": word},
    ).fetchone()


def check_slices(connection):
    assert connection.execute(
        "SELECT count(*) FROM passage p JOIN document d USING (document_id)"
        " WHERE p.text IS DISTINCT FROM substr(d.text, p.char_start + 1, p.char_end - p.char_start)"
    ).fetchone() == (0,)
