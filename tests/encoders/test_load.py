"""From a name to a spec: what users may write, and what they are told."""

import subprocess
import sys
from pathlib import Path

import pytest

from corpus.errors import EncoderUnavailable, UsageError
from encoders.base import EncoderSpec
from encoders.devices import choose_device
from encoders.hashing import HASHING
from encoders.load import load_encoder, resolve_spec
from tests.support import ROOT


def test_names_are_resolved_without_weights(tmp_path: Path):
    spec = resolve_spec("all-mpnet-base-v2", cache=tmp_path)
    assert (spec.name, spec.max_tokens, spec.dim) == ("all-mpnet-base-v2", 512, 768)
    assert resolve_spec("sentence-transformers/all-mpnet-base-v2", cache=tmp_path) == spec
    assert resolve_spec(" hashing ") is HASHING
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nonesuch", r"There is no encoder 'nonesuch'.*hashing, all-mpnet-base-v2"),
        ("", "There is no encoder"),
        ("nomic-embed-text", r"do not come with this project.*ollama:nomic-embed-text"),
        ("/no/such/folder", "There is no encoder"),
        ("ollama:", "not the address"),
    ],
)
def test_other_names_are_refused_with_a_mend(name: str, says: str):
    with pytest.raises(UsageError, match=says):
        resolve_spec(name)


def test_a_folder_that_is_no_model_is_named(tmp_path: Path):
    with pytest.raises(UsageError, match="holds no model"):
        resolve_spec(str(tmp_path))


def test_devices_and_backends_are_not_guessed():
    assert choose_device("cpu") == "cpu"
    with pytest.raises(UsageError, match="no device 'tpu'"):
        choose_device("tpu")
    with pytest.raises(UsageError, match="no backend 'jax'"):
        load_encoder("hashing", backend="jax")


def test_a_spec_of_unknown_weights_says_what_is_missing(tmp_path: Path):
    spec = EncoderSpec(name="mine", revision="", weights_sha256="12" * 32, max_tokens=512, source="dir:/gone")
    for backend in ("openvino", "torch"):
        with pytest.raises(EncoderUnavailable, match="not on this machine"):
            load_encoder(spec, device="cpu", backend=backend, cache=tmp_path)


def test_no_model_library_is_imported_to_resolve_or_hash():
    script = (
        "import sys\nfrom encoders.load import load_encoder, resolve_spec\n"
        "resolve_spec('all-mpnet-base-v2'); load_encoder('hashing').encode(['x'])\n"
        "print([m for m in ('torch', 'transformers', 'openvino', 'sentence_transformers', 'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
