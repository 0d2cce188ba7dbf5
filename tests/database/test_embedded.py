"""The embedded server: a service of its folder, started by the first user, stopped by nobody's exit."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest

from corpus.database import Database
from corpus.embedded import EmbeddedServer
from corpus.embedded_host import server_settings
from corpus.errors import EmbeddedServerError, UsageError
from tests.support import free_port

ROOT = Path(__file__).parents[2]


def answers(conninfo="", **where):
    with psycopg.connect(conninfo, **where) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


def test_started_by_many_at_once_it_is_one_server(home):
    server = EmbeddedServer(home / "db")
    failures = []

    def start():
        try:
            EmbeddedServer(home / "db").ensure_running()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    with psycopg.connect(server.conninfo) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("postgres",)


def test_it_outlives_the_process_that_started_it_even_a_killed_one(home):
    code = (
        "import sys, os; from pathlib import Path; from corpus.embedded import EmbeddedServer;"
        "EmbeddedServer(Path(sys.argv[1])).ensure_running(); print('up', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(home / "db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )
    process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stdout.close()
    with psycopg.connect(EmbeddedServer(home / "db").conninfo) as connection:
        connection.execute("SELECT 1")


def test_a_killed_server_recovers_and_keeps_what_was_committed(home):
    server = EmbeddedServer(home / "db")
    server.ensure_running()
    with psycopg.connect(server.conninfo) as connection:
        connection.execute("CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
    os.kill(server.find_pid(), signal.SIGKILL)
    server.ensure_running()
    with psycopg.connect(server.conninfo) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (1000,)


def test_a_process_that_used_it_does_not_start_it_again(home):
    database = Database.at("embedded:", home)
    with database.connect():
        pass
    assert database.embedded.stop()
    assert not database.embedded.stop()
    with pytest.raises(Exception, match="brain db start"), database.connect():
        pass
    assert database.embedded.find_pid() is None


def test_a_half_made_folder_of_a_killed_start_is_no_obstacle(home):
    (home / f".db.new-{os.getpid() + 1}").mkdir()
    (home / f".db.new-{os.getpid() + 1}" / "PG_VERSION").write_text("18")
    server = EmbeddedServer(home / "db")
    server.ensure_running()
    assert not list(home.glob(".db.new-*"))


def test_a_folder_with_other_things_in_it_is_refused(home):
    (home / "db").mkdir()
    (home / "db" / "thesis.doc").write_text("x")
    with pytest.raises(EmbeddedServerError, match="no database"):
        EmbeddedServer(home / "db").ensure_running()
    assert (home / "db" / "thesis.doc").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
def test_below_a_private_folder_root_is_refused_and_nothing_is_opened(home):
    private = home / "private"
    private.mkdir(mode=0o700)
    with pytest.raises(EmbeddedServerError, match="BRAIN_HOME"):
        EmbeddedServer(private / "db").ensure_running()
    assert private.stat().st_mode & 0o777 == 0o700


def test_a_very_long_path_gets_its_socket_elsewhere(home):
    deep = home / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    server = EmbeddedServer(deep / "db")
    try:
        server.ensure_running()
        assert answers(server.conninfo)
    finally:
        server.stop(immediate=True)


def test_other_machines_need_a_password(home):
    port = free_port()
    server = EmbeddedServer(home / "db")
    server.listen("127.0.0.1", port, "p'a%s\\s")
    with psycopg.connect(host="127.0.0.1", port=port, user="brain", password="p'a%s\\s", dbname="brain") as connection:
        assert connection.execute("SHOW password_encryption").fetchone() == ("scram-sha-256",)
    for wrong in ({"password": "x", "user": "brain"}, {"user": "postgres"}):
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(host="127.0.0.1", port=port, dbname="brain", **wrong)


def test_opening_it_again_and_programs_that_know_it_already(home):
    database = Database.at("embedded:", home)
    with database.connect() as connection:
        connection.execute("SELECT 1")
    known = database.conninfo
    for word in ("first", "second"):
        port = free_port()
        database.embedded.listen("127.0.0.1", port, word)
        assert answers(known)
        assert answers(host="127.0.0.1", port=port, user="brain", password=word, dbname="brain")
    database.embedded.restart()
    assert answers(known)


@pytest.mark.parametrize("host", ["nohost.invalid", "192.0.2.1", "a..b", "x" * 64])
def test_an_address_that_is_not_ours_changes_nothing(home, host):
    server = EmbeddedServer(home / "db")
    server.ensure_running()
    pid = server.find_pid()
    with pytest.raises(UsageError, match="cannot listen"):
        server.listen(host, 55555, "x")
    assert server.find_pid() == pid
    assert not server.is_listening


def test_an_address_that_is_not_ours_keeps_the_one_that_is_open_and_its_password(home):
    port = free_port()
    server = EmbeddedServer(home / "db")
    assert not server.listen("127.0.0.1", port, "first")
    pid = server.find_pid()
    with pytest.raises(UsageError, match="cannot listen"):
        server.listen("192.0.2.1", port, "second")
    assert server.find_pid() == pid
    assert answers(host="127.0.0.1", port=port, user="brain", password="first", dbname="brain")
    assert server.listen("127.0.0.1", port, "third")


def test_a_home_with_an_apostrophe(home):
    folder = home / "it's a home, 100 % ü"
    folder.mkdir()
    server = EmbeddedServer(folder / "db")
    try:
        server.ensure_running()
        assert answers(server.conninfo)
    finally:
        server.stop(immediate=True)


def test_settings_follow_the_machine(tmp_path):
    text = server_settings(tmp_path)
    assert "shared_buffers" in text
    assert "maintenance_work_mem" in text
