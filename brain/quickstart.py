"""`scripts/quickstart`: database, one worker and the search server in the foreground, or one answered question.

Everything that it starts it ends: children die with it, and the database stops if it did not run before.
"""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from cyclopts import App, Parameter

from brain.common import get_database, get_settings, say
from corpus.database import Database
from corpus.errors import BrainError, UsageError
from corpus.settings import Settings
from ingest.seeds import seed_path

QUESTION = "How do many workers share the work without doing anything twice?"
TOPIC = "research-brain"
_OWN_SEEDS = Path(__file__).resolve().parent.parent / "seeds"
_DRAIN_S = 240  # --no-serve waits that long for embeddings; what is missing then is found by its words
_READY_S = 120
_REGISTER_S = 10


def quickstart(
    *,
    pdfs: Annotated[
        Path | None, Parameter(help="Folder of PDFs to load; without it the project's own documentation.")
    ] = None,
    port: Annotated[int, Parameter(help="Port of the search server on 127.0.0.1.")] = 8010,
    no_serve: Annotated[bool, Parameter(negative=(), help="Answer one question and leave nothing running.")] = False,
) -> int:
    """From a bare checkout to working answers."""
    from corpus.schema import migrate

    if pdfs is not None and not pdfs.exists():
        raise UsageError(f"There is no folder {pdfs}.")
    if not 0 < port < 65536:
        raise UsageError(f"--port {port} is no port.")
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    settings = get_settings()
    if pdfs is None and not seed_path(settings.seeds_dir, TOPIC).exists():
        os.environ["BRAIN_SEEDS"] = str(_OWN_SEEDS)  # yours lie elsewhere; the documentation is in this checkout
    database = Database.at(settings.db, settings.home_dir, application_name="quickstart")
    server = database.embedded
    was_running = server is None or server.find_pid() is not None
    children: list[subprocess.Popen[bytes]] = []
    try:
        database = get_database(None, settings, name="quickstart", any_schema=True)
        migrate(database)
        _register_encoder(database, settings)
        if no_serve:
            return _answer_once(database, pdfs)
        return _serve(database, pdfs, port, children)
    except KeyboardInterrupt:
        say("stopping")
        return 0
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _end(children)
        if server is not None and not was_running:
            if server.is_listening:
                say("the database goes on for the other machines that it is open to; stop it with `brain db stop`")
            else:
                server.stop()


def _stop(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _register_encoder(database: Database, settings: Settings) -> None:
    from corpus.encoders import find_active, register_encoder
    from encoders.canary import find_reference
    from encoders.load import resolve_spec

    spec = resolve_spec(settings.encoder)
    with database.connect() as connection:
        active = find_active(connection)
        if active is None:
            register_encoder(connection, spec, activate=True, canary=find_reference(spec))
        elif active.name != spec.name:
            say(
                f"this database is embedded by {active.name}, not {spec.name}: BRAIN_ENCODER is for a new one. Another "
                "BRAIN_HOME makes one; `brain encoder add` takes a second encoder beside the first"
            )


def _ingest_words(pdfs: Path | None) -> list[str]:
    return ["ingest", "--pdfs", str(pdfs)] if pdfs is not None else ["ingest", TOPIC]


def _answer_once(database: Database, pdfs: Path | None) -> int:
    """Load, embed what can be embedded in a few minutes, ask one question."""
    code = subprocess.run(
        [_program("brain"), *_ingest_words(pdfs)], check=False, preexec_fn=_die_with_parent
    ).returncode
    if code not in {0, 3}:
        return code
    worker = subprocess.Popen(
        [_program("embed-worker"), "--drain", "--name", "quickstart"], preexec_fn=_die_with_parent
    )
    try:
        worker.wait(_DRAIN_S)
    except subprocess.TimeoutExpired:
        say(
            "embedding goes on when a worker runs again (`embed-worker`); what has no embedding yet is found by its words"
        )
    finally:
        _end([worker])
    question = _question(database, pdfs)
    words = [_program("brain"), "search", question, "-k", "3"]
    print(f"\n$ brain search {shlex.quote(question)} -k 3", flush=True)
    code = subprocess.run(words, check=False, preexec_fn=_die_with_parent).returncode
    say(
        "\nNext: scripts/quickstart serves answers on http://127.0.0.1:8010 · README.md says how a second machine joins"
    )
    return code


def _serve(database: Database, pdfs: Path | None, port: int, children: list[subprocess.Popen[bytes]]) -> int:
    """Load, server and worker side by side: what is registered can be seen and asked for while the rest goes on."""
    base = f"http://127.0.0.1:{port}"
    loading = _start(children, "brain", *_ingest_words(pdfs))
    if pdfs is not None:
        _wait_registered(database, pdfs, loading)
    search = _start(children, "search-server", "--port", str(port))
    worker = _start(children, "embed-worker", "--name", "quickstart")
    if not _wait_ready(base, search):
        return search.returncode or 1
    is_told = False
    is_worker_told = False
    while search.poll() is None:
        if not is_told and loading.poll() is not None:
            is_told = _tell(base, _question(database, pdfs))
        if not is_worker_told and worker.poll() is not None:
            say(f"the worker ended with {worker.returncode}; words still find everything. Start one with: embed-worker")
            is_worker_told = True
        try:
            search.wait(0.5)
        except subprocess.TimeoutExpired:
            continue
    say(f"the search server ended with {search.returncode}")
    return search.returncode or 1


def _start(children: list[subprocess.Popen[bytes]], name: str, *words: str) -> subprocess.Popen[bytes]:
    children.append(subprocess.Popen([_program(name), *words], preexec_fn=_die_with_parent))
    return children[-1]


def _wait_registered(database: Database, pdfs: Path, loading: subprocess.Popen[bytes]) -> None:
    """Give the load a few seconds to make every file known, so that the first look at the server shows them all."""
    from ingest.files import PDF_SUFFIXES, list_files

    n_files = len(list_files(pdfs, PDF_SUFFIXES))
    end = time.monotonic() + _REGISTER_S
    with database.connect(autocommit=True) as connection:
        while time.monotonic() < end and loading.poll() is None:
            row = connection.execute("SELECT count(*) FROM document").fetchone()
            if row is not None and row[0] >= n_files:
                return
            time.sleep(0.1)


def _wait_ready(base: str, search: subprocess.Popen[bytes]) -> bool:
    end = time.monotonic() + _READY_S
    while time.monotonic() < end and search.poll() is None:
        try:
            with urllib.request.urlopen(f"{base}/readyz", timeout=2):
                return True
        except OSError:
            time.sleep(0.1)
    if search.poll() is None:
        say(f"the search server is not ready after {_READY_S} s; it goes on starting")
        return True
    return False


def _tell(base: str, question: str) -> bool:
    """Print one ready-made curl line and its answer."""
    address = f"{base}/brain_search?{urlencode({'q': question, 'k': 3})}"
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            body: dict[str, Any] = json.load(answer)
    except (OSError, ValueError):
        return False
    if not body.get("hits"):
        return False
    print(f"\n$ curl '{address}'")
    for hit in body["hits"]:
        passage = " ".join(((hit.get("passage") or {}).get("text") or "").split())
        print(f"{hit['rank']}. {hit['title'] or hit['paper_id']}\n   {passage[:160]}…")
    print(f"\nmore: {base}/docs · {base}/health · brain status · README.md (how a second machine joins)", flush=True)
    return True


def _question(database: Database, pdfs: Path | None) -> str:
    """The ready-made question: about the documentation, or the title of a paper that was loaded."""
    if pdfs is not None:
        try:
            with database.connect() as connection:
                row = connection.execute(
                    "SELECT title FROM paper WHERE title IS NOT NULL AND same_as IS NULL AND NOT is_prefixed AND kind = 'paper' "
                    "AND EXISTS (SELECT FROM document d WHERE d.paper_pk = paper.paper_pk AND d.verdict = 'ok') "
                    "ORDER BY paper_pk LIMIT 1"
                ).fetchone()
        except BrainError:
            row = None
        if row is not None:
            return " ".join(row[0].split())[:200]
    return QUESTION


def _program(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def _die_with_parent() -> None:
    """On Linux a child gets SIGTERM when its parent is gone, however that ended (prctl PR_SET_PDEATHSIG = 1)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    os.setpgid(0, 0)  # Ctrl-C reaches the parent alone, which then ends its children in order


def _end(children: list[subprocess.Popen[bytes]]) -> None:
    for child in reversed(children):
        if child.poll() is None:
            child.terminate()
    for child in children:
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def main() -> None:
    """Run it and exit with its code."""
    from corpus.command import run_app

    app = App(name="quickstart", default_command=quickstart)
    sys.exit(run_app(app, log_level="warning"))


if __name__ == "__main__":
    main()
