"""A backup of the embedded server comes back as it was, and a damaged one is refused before anything is touched."""

import random
import shutil

import pytest

from brain.backup import backup, restore
from brain.receipt import receipt as receipt_command
from corpus import backup as backups
from corpus import receipt
from corpus.database import Database
from corpus.encoders import register_encoder
from corpus.errors import BackupDamaged, InputError, UsageError
from corpus.receipt_compare import compare
from corpus.schema import migrate
from encoders.load import resolve_spec
from ingest.papers import write_papers
from ingest.records import PaperRecord


@pytest.fixture
def embedded(home):
    """An embedded database of the test's own, with two papers."""
    database = Database.at(f"embedded:{home / 'db'}", home)
    migrate(database)
    with database.connect() as connection:
        register_encoder(connection, resolve_spec("hashing"), activate=True)
        write_papers(
            connection,
            [
                PaperRecord("p:1", is_prefixed=True, title="Snails", abstract="Slow."),
                PaperRecord("p:2", is_prefixed=True),
            ],
        )
    return database


def take(database):
    with database.connect(autocommit=True) as connection:
        return receipt.take(connection)


def test_a_backup_comes_back_as_it_was_and_the_old_database_is_kept(embedded, home, monkeypatch):
    monkeypatch.setenv("BRAIN_HOME", str(home))
    before = take(embedded)
    assert backup(home / "copies", keep=2) == 0
    (made,) = backups.list_backups(home / "copies")
    (embedded.embedded.folder / "brain-local.conf").write_text("work_mem = '9MB'\n")
    with embedded.connect() as connection:
        connection.execute("DELETE FROM paper")
    assert restore(home / "copies") == 0
    assert compare(before, take(embedded)).is_equal
    with embedded.connect() as connection:
        connection.execute("DELETE FROM paper WHERE paper_id = 'p:2'")
    assert [path.name.startswith("db.before-restore-") for path in home.glob("db.*")] == [True]
    assert (embedded.embedded.folder / "brain-local.conf").read_text() == "work_mem = '9MB'\n"

    assert receipt_command(out=home / "seeds") == 0
    shutil.rmtree(next(home.glob("db.before-restore-*")))
    assert restore(made) == 0
    assert receipt_command(compare=home / "seeds") == 0
    assert "p:2" in take(embedded).papers


def test_a_flipped_byte_anywhere_is_refused_and_nothing_is_touched(embedded, home):
    made = backups.take(embedded.embedded, home / "copies", receipt=take(embedded).identity)
    files = [path for path in made.folder.rglob("*") if path.is_file() and path.stat().st_size]
    chance = random.Random(3)
    chosen = [
        made.folder / backups.LIST,
        made.folder / backups.SEAL,
        made.folder / "backup_manifest",
        *(made.folder / "pg_wal").glob("0*"),
        *chance.sample(files, 6),
    ]
    pid = embedded.embedded.find_pid()
    for path in chosen:
        kept = path.read_bytes()
        at = chance.randrange(len(kept))
        path.write_bytes(kept[:at] + bytes([kept[at] ^ (1 << chance.randrange(8))]) + kept[at + 1 :])
        with pytest.raises(BackupDamaged, match="Nothing was touched"):
            backups.verify(made.folder)
        path.write_bytes(kept)
    (made.folder / "pg_wal" / "more").write_bytes(b"x")
    with pytest.raises(BackupDamaged, match="more"):
        backups.verify(made.folder)
    (made.folder / "pg_wal" / "more").unlink()
    backups.verify(made.folder)
    assert embedded.embedded.find_pid() == pid
    assert not list(home.glob("db.*"))


def test_what_is_no_backup_and_no_embedded_server_is_said(embedded, home, monkeypatch):
    monkeypatch.setenv("BRAIN_HOME", str(home))
    with pytest.raises(InputError, match="no backup"):
        restore(home)
    with pytest.raises(UsageError, match="not the embedded server"):
        backup(home / "copies", db="postgresql://localhost/x")
    assert not (home / "copies").exists()
