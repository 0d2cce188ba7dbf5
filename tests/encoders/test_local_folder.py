"""A model of the user's own, in a folder: other pooling, prompts, a short window; both CPU backends; damage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from corpus.errors import EncoderUnavailable
from encoders.base import Encoder, check_embeddings
from encoders.canary import make_reference, prove
from encoders.load import load_encoder, resolve_spec
from encoders.openvino_encoder import converted_folder
from tests.encoders.small_model import write_small_model

TEXTS = ["abc def", "a", "", "the quick brown fox. " * 9 + "one end", "the quick brown fox. " * 9 + "other tail"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("openvino")
    cache = tmp_path_factory.mktemp("cache")
    write_small_model(cache / "my-model")
    return cache


@pytest.fixture(scope="module")
def torch_encoder(cache: Path) -> Iterator[Encoder]:
    encoder = load_encoder(str(cache / "my-model"), device="cpu", backend="torch", cache=cache)
    yield encoder
    encoder.close()


@pytest.fixture(scope="module")
def openvino_encoder(cache: Path) -> Iterator[Encoder]:
    """Loaded over a conversion that a power cut has damaged, so that it is made anew."""
    spec = resolve_spec(str(cache / "my-model"), cache=cache)
    damaged = converted_folder(spec, cache)
    damaged.mkdir(parents=True)
    (damaged / "facts.json").write_text("{")
    (damaged / "model.xml").write_text("<net")
    seen: list[str] = []
    encoder = load_encoder(spec, device="cpu", cache=cache, progress=lambda what, *_: seen.append(what))
    assert any("damaged" in what for what in seen)
    assert any("preparing my-model" in what for what in seen)
    yield encoder
    encoder.close()


@pytest.fixture(params=["torch", "openvino"])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    encoder = request.getfixturevalue(f"{request.param}_encoder")
    assert encoder.backend == request.param
    return encoder


def _by_sentence_transformers(folder: Path, texts: list[str]) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu").encode(texts, normalize_embeddings=True)


def test_it_agrees_with_sentence_transformers(encoder: Encoder, cache: Path):
    assert encoder.spec.prompts == {"query": "ask: ", "passage": "text: "}
    assert encoder.spec.pooling == "cls"
    assert encoder.spec.max_tokens == 32
    short = TEXTS[:3]
    wanted = _by_sentence_transformers(cache / "my-model", [f"text: {text}" for text in short])
    assert np.einsum("ij,ij->i", encoder.encode(short), wanted).min() > 0.9999
    wanted = _by_sentence_transformers(cache / "my-model", ["ask: what"])
    assert encoder.encode(["what"], kind="query")[0] @ wanted[0] > 0.9999


def test_windows_carry_the_prompt_and_tails_count(encoder: Encoder):
    found = check_embeddings(encoder.encode(TEXTS), len(TEXTS))
    assert encoder.n_windowed >= 2
    assert np.abs(found[3] - found[4]).max() > 1e-5
    for text, vector in zip(TEXTS, found, strict=True):
        assert encoder.encode([text])[0] @ vector > 0.9999


def test_a_reference_of_its_own_can_be_made(openvino_encoder: Encoder, torch_encoder: Encoder):
    prove(torch_encoder, make_reference(openvino_encoder))


def test_a_model_that_no_backend_can_load_says_so(cache: Path):
    folder = write_small_model(cache / "broken")
    (folder / "config.json").write_text('{"model_type": "nonesuch", "hidden_size": 768}')
    with pytest.raises(EncoderUnavailable, match="nonesuch"):
        load_encoder(str(folder), device="cpu", backend="torch", cache=cache)
