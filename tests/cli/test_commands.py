"""The command line as scripts rely on it: help, quick starts, exit codes, a wheel that works in an empty folder."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from brain.cli import _COMMANDS, _GROUPS
from tests.support import ROOT

BIN = Path(sys.executable).parent
WORDS = [(name,) for name in _COMMANDS] + [(group, name) for group, (_, members) in _GROUPS.items() for name in members]


def run(*words, home=None, env=None, cwd=ROOT, timeout=60):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "BRAIN_"))}
    if home:
        kept["BRAIN_HOME"] = str(home)
    return subprocess.run(
        [str(BIN / words[0]), *map(str, words[1:])],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=cwd,
        env={**kept, **(env or {})},
    )


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_every_command_has_help_that_needs_neither_database_nor_model(words, tmp_path):
    done = run("brain", *words, "--help", home=tmp_path / "none")
    assert done.returncode == 0, done.stderr
    assert "Usage:" in done.stdout
    assert not (tmp_path / "none").exists()


def test_help_and_text_import_nothing_heavy():
    code = (
        "import sys; sys.argv=['brain','--help'];\n"
        "from brain.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'torch', 'openvino', 'fastapi', 'pymupdf', 'psycopg', 'numpy', 'tantivy'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip().endswith("[]")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["nonsense"], 2), (["ingest", "--nonsense"], 2), (["ingest", "--prefix", "x"], 2), (["search"], 2),
        (["status", "--db", "mysql://h/d"], 2), (["status", "--db", "postgresql://u@127.0.0.1:1/d"], 4), (["text", "/no/such/file"], 1),
        (["db", "listen", "nonsense"], 2), (["db", "stop", "--db", "postgresql://h/d"], 2), (["seed", "add", "topic"], 2),
    ],
)  # fmt: skip
def test_exit_codes(words, code, tmp_path):
    done = run("brain", *words, home=tmp_path / "none")
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


@pytest.mark.parametrize("program", ["embed-worker", "search-server"])
def test_services_refuse_wrong_use(program, tmp_path):
    assert run(program, "--help").returncode == 0
    done = run(program, "--nonsense", home=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_another_host_than_loopback_asks_for_a_token(tmp_path):
    done = run("search-server", "--host", "0.0.0.0", home=tmp_path / "none")
    assert done.returncode == 2
    assert "--token" in done.stderr


def test_ingest_names_bad_rows_and_loads_the_rest(home, tmp_path):
    run("brain", "init", "--encoder", "hashing", home=home)
    file = tmp_path / "papers.jsonl"
    deep = '{"_id": "deep", "metadata": {"x": ' + "[" * 700 + "]" * 700 + "}}"
    year = '{"_id": "year", "metadata": {"year": ' + "9" * 4000 + "}}"
    long = '{"_id": "' + "x" * 20_000 + '"}'
    file.write_text(
        '{"_id": "1", "title": "Good"}\nnot json\n{"title": "no id"}\n{"_id": 7, "text": "Also good"}\n'
        f"{deep}\n{year}\n{long}"
        "\n"
    )
    done = run("brain", "ingest", "--jsonl", file, "--prefix", "t", "--json", home=home)
    assert done.returncode == 3
    assert "line 2" in done.stderr
    assert "line 3" in done.stderr
    assert "line 5" in done.stderr
    assert "line 7" in done.stderr
    assert len(json.loads(done.stdout)["problems"]) == 4
    assert json.loads(done.stdout)["papers"]["n_new"] == 3
    listed = json.loads(run("brain", "papers", "--json", home=home).stdout)
    # A year that cannot be one is left out, and the paper taken.
    assert {p["paper_id"]: p["year"] for p in listed["papers"]} == {"t:1": None, "t:7": None, "t:year": None}
    assert run("brain", "ingest", "--jsonl", tmp_path / "none.jsonl", "--prefix", "t", home=home).returncode == 1
    assert run("brain", "ingest", "--pdfs", tmp_path / "none", home=home).returncode == 1
    assert run("brain", "ingest", "no-such-topic", home=home).returncode == 2


def test_a_changed_encoder_is_refused(home):
    run("brain", "init", "--encoder", "hashing", home=home)
    done = run("brain", "init", "--encoder", "all-mpnet-base-v2", home=home)
    assert done.returncode == 5
    assert "brain encoder add" in done.stderr
    assert run("brain", "init", home=home).returncode == 0


def test_a_wheel_works_in_an_empty_folder(home, tmp_path):
    wheels = tmp_path / "wheels"
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(wheels), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (wheel,) = wheels.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    empty = tmp_path / "empty"
    empty.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(site), "BRAIN_HOME": str(home)}
    code = "import sys, corpus; assert 'site' in corpus.__file__; from brain.cli import main; main(sys.argv[1:])"
    for words in (["init", "--encoder", "hashing"], ["status", "--json"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=empty, env=environment, timeout=60
        )
        assert done.returncode == 0, done.stderr


def test_the_reference_is_what_the_code_says():
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "docs"), "--check"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_documents_name_only_commands_that_exist():
    known = {" ".join(words) for words in WORDS} | {words[0] for words in WORDS}
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for found in re.findall(
            r"(?<![\w/])brain ([a-z]+(?: [a-z]+)?)", "\n".join(re.findall(r"`([^`]+)`", page.read_text()))
        ):
            first = found.split()[0]
            assert found in known or first in known, f"{page.name} names `brain {found}`"
