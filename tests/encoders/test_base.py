"""The spec and the check that stands before every stored embedding."""

import json
import pickle

import numpy as np
import pytest

from corpus.errors import BadEmbedding
from encoders.base import DIM, EncoderSpec, check_embeddings, normalised
from encoders.hashing import HASHING
from encoders.known import KNOWN, find_known
from tests.support import shared

UNIT = np.eye(3, DIM, dtype=np.float32)


def _changed(row: int, value: object) -> np.ndarray:
    array = UNIT.copy()
    array[row] = value
    return array


def test_unit_vectors_pass_as_float32():
    found = check_embeddings(UNIT.astype(np.float16), 3)
    assert found.dtype == np.float32
    assert np.array_equal(found, UNIT)
    assert check_embeddings(np.zeros((0, DIM)), 0).shape == (0, DIM)


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (_changed(1, np.nan), "Embedding 1 of 3 is not finite"),
        (_changed(2, np.inf), "Embedding 2 of 3 is not finite"),
        (_changed(0, 0.0), "Embedding 0 of 3 has length zero"),
        (_changed(1, 0.5), "Embedding 1 of 3 has length 13.8"),
        (_changed(1, 3e38), "has length"),
        (UNIT[:2], "shape (2, 768)"),
        (UNIT[:, :5], "shape (3, 5)"),
        ([[1.0], [1.0, 2.0], []], "not an array of numbers"),
        ("words", "not an array of numbers"),
    ],
)
def test_a_bad_embedding_is_named(array: object, says: str):
    with pytest.raises(BadEmbedding, match=says.replace("(", r"\(").replace(")", r"\)")):
        check_embeddings(array, 3)


def test_normalised_scales_but_mends_nothing_else():
    assert np.allclose(normalised(UNIT * 7, 3), UNIT)
    for bad in (_changed(1, 0.0), _changed(1, np.nan), _changed(1, np.inf), UNIT[:2]):
        with pytest.raises(BadEmbedding):
            normalised(bad, 3)


def test_a_spec_survives_json_and_pickle():
    spec = find_known("nomic-embed-text").spec(source="dir:/models/nomic", weights_sha256="ab" * 32)
    again = EncoderSpec.from_dict(json.loads(json.dumps(spec.to_dict())))
    assert again == spec
    assert again.source == spec.source
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert hash(again) == hash(spec)
    assert spec.prompt("query") == "search_query: "
    assert spec.prompt("document") == "search_document: "


@pytest.mark.parametrize(
    ("change", "n"),
    [
        ({}, 0),
        ({"name": "another/name", "revision": "x"}, 0),
        ({"weights_sha256": KNOWN[0].weights_sha256.upper()}, 0),
        ({"prompts": {"document": "", "query": ""}}, 0),
        ({"prompts": None}, 0),
        ({"max_tokens": 384}, 1),
        ({"prompts": {"query": "q: ", "passage": ""}}, 1),
        ({"weights_sha256": "00"}, 1),
        ({"weights_sha256": None, "max_tokens": None}, 2),
    ],
)
def test_only_what_changes_the_numbers_keeps_embeddings_apart(change: dict, n: int):
    spec = KNOWN[0].spec(source="known:all-mpnet-base-v2")
    assert len(spec.differences({**spec.identity(), **change})) == n


@pytest.mark.shared
def test_the_shipped_shards_are_of_the_default_encoder():
    files = sorted(shared("vectors").glob("*.npz"))
    assert files
    for file in files:
        with np.load(file, allow_pickle=False) as shard:
            label = json.loads(str(shard["encoder"]))
        assert KNOWN[0].spec(source="").differences(label) == []
        assert HASHING.differences(label)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("sentence-transformers/all-mpnet-base-v2", "all-mpnet-base-v2"),
        ("nomic-embed-text:latest", "nomic-embed-text"),
        ("BAAI/bge-base-en-v1.5", "bge-base-en-v1.5"),
        ("embeddinggemma:300m", "embeddinggemma-300m"),
        ("Alibaba-NLP/gte-modernbert-base", "gte-modernbert-base"),
        ("all-minilm", None),
    ],
)
def test_models_are_known_under_their_other_names(name: str, known: str | None):
    found = find_known(name)
    assert (found.name if found else None) == known
