"""Everything under deploy/ that a tool can check is checked, and what the files say of each other holds."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT

DEPLOY = ROOT / "deploy"
PROGRAMS = ("brain", "embed-worker", "search-server")


def yaml_documents(path: Path) -> list[dict[str, Any]]:
    yaml = pytest.importorskip("ruamel.yaml", reason="the YAML reader of check-jsonschema is not installed")
    return [document for document in yaml.YAML(typ="safe", pure=True).load_all(path.read_text()) if document]


def tool(name: str) -> str:
    """A checking program of the development environment; skipped with the reason where it is missing, but not in CI."""
    found = shutil.which(str(Path(sys.executable).parent / name)) or shutil.which(name)
    if found is None:
        reason = f"{name} is not installed here"
        if os.environ.get("CI") and name != "systemd-analyze":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)


def test_units_are_understood_by_systemd(tmp_path):
    analyze = tool("systemd-analyze")
    paths = []
    for unit in sorted((DEPLOY / "systemd").glob("research-brain*.[st]*")):
        if unit.suffix in {".service", ".timer"}:
            text = re.sub(r"/opt/research-brain/(?:\.venv|patroni)/bin/\S+", "/bin/true", unit.read_text())
            name = unit.name.replace("@.", "@1.")
            (tmp_path / name).write_text(text)
            paths.append(tmp_path / name)
    done = run(analyze, "verify", "--man=no", *paths)
    said = [line for line in done.stderr.splitlines() if "research-brain" in line]
    assert not said, said
    assert len(paths) >= 11


def test_units_start_commands_that_there_are_and_timers_have_services():
    folder = DEPLOY / "systemd"
    from brain.cli import _COMMANDS, _GROUPS

    for unit in folder.glob("*.service"):
        for program, words in re.findall(
            r"^Exec\w+=/opt/research-brain/\.venv/bin/(\S+) ?(.*)$", unit.read_text(), re.MULTILINE
        ):
            assert program in PROGRAMS, (unit.name, program)
            if program == "brain":
                first, *rest = words.split()
                assert first in _COMMANDS or rest[0] in _GROUPS[first][1], (unit.name, words)
    for timer in folder.glob("*.timer"):
        assert timer.with_suffix(".service").exists(), timer.name
    names = {timer.stem for timer in folder.glob("*.timer")}
    assert names == {f"research-brain-{name}" for name in ("harvest", "receipt", "backup", "selftest")}


def test_settings_of_the_environment_file_exist():
    from corpus.settings import Settings

    lines = (DEPLOY / "systemd" / "research-brain.env").read_text().splitlines()
    names = {line.split("=")[0] for line in lines if line and not line.startswith("#")}
    known = {f"BRAIN_{name.upper()}" for name in Settings.model_fields}
    assert names - known == {"SEARCH_OPTIONS", "BACKUP_DIR"}


def test_the_dockerfile_is_clean():
    done = run(tool("hadolint"), "--no-color", DEPLOY / "docker" / "Dockerfile")
    assert done.returncode == 0, done.stdout + done.stderr


def test_compose_follows_its_schema():
    done = run(tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", DEPLOY / "docker" / "compose.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_kubernetes_files_follow_their_schemas():
    validate = tool("kubernetes-validate")
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        done = run(validate, "--strict", path)
        said = done.stdout + done.stderr
        # Of the operators' own kinds no schema is shipped; the test below looks at them.
        bad = [line for line in said.splitlines() if "ERROR" in line]
        assert not bad, said
        assert all(
            re.search(r"Cluster|ScaledObject|TriggerAuthentication|ScheduledBackup", line)
            for line in said.splitlines()
            if "WARN" in line
        ), said


def test_kubernetes_names_fit_together():
    documents = [d for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")) for d in yaml_documents(path)]
    by_kind: dict[str, dict[str, Any]] = {}
    for document in documents:
        by_kind.setdefault(document["kind"], {})[document["metadata"]["name"]] = document
        assert document["kind"] == "Namespace" or document["metadata"]["namespace"] == "research-brain"
    text = json.dumps(documents)
    cluster = by_kind["Cluster"]["database"]["spec"]
    assert set(re.findall(r'"name": "(database-\w+)", "key"', text)) == {"database-app", "database-superuser"}
    assert cluster["enableSuperuserAccess"] is True
    assert cluster["postgresql"]["synchronous"]["number"] < cluster["instances"] - 1
    scaled = by_kind["ScaledObject"]["worker"]["spec"]
    assert scaled["scaleTargetRef"]["name"] in by_kind["Deployment"]
    assert scaled["triggers"][0]["authenticationRef"]["name"] in by_kind["TriggerAuthentication"]
    assert by_kind["ScheduledBackup"]["weekly"]["spec"]["cluster"]["name"] in by_kind["Cluster"]
    for deployment in by_kind["Deployment"].values():
        spec = deployment["spec"]
        assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
        assert spec["template"]["spec"]["containers"][0]["command"][0] in PROGRAMS


def test_the_scaling_query_runs_on_the_schema(database):
    (query,) = re.findall(r'query: "(.+)"', (DEPLOY / "kubernetes" / "40-worker.yaml").read_text())
    with database.connect() as connection:
        assert connection.execute(query).fetchone() == (0,)


def test_patroni_is_synchronous_and_its_machines_know_each_other():
    (one,) = yaml_documents(DEPLOY / "patroni" / "patroni.yml")
    (witness,) = yaml_documents(DEPLOY / "patroni" / "witness.yml")
    dcs = one["bootstrap"]["dcs"]
    assert dcs["synchronous_mode"] is True
    assert dcs["primary_start_timeout"] == 0, "a server that crashed hands over at once"
    assert dcs["loop_wait"] <= 3, "a lost server is noticed at the next look"
    assert dcs["ttl"] >= dcs["loop_wait"] + 2 * dcs["retry_timeout"]
    assert {one["raft"]["self_addr"], *one["raft"]["partner_addrs"]} == {
        witness["raft"]["self_addr"],
        *witness["raft"]["partner_addrs"],
    }


def test_yaml_is_clean():
    done = run(tool("yamllint"), "-d", "{extends: relaxed, rules: {line-length: disable}}", DEPLOY)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page", ["first-start", "second-machine", "gpu-machine", "upgrade", "what-to-watch"])
def test_there_is_a_page_for_each_step(page):
    assert (ROOT / "docs" / "deploy" / f"{page}.md").read_text().startswith("# ")
