"""Canaries: who passes, who does not, and what a reference must survive."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from corpus.errors import EncoderRefused
from encoders.base import Embeddings, Kind
from encoders.canary import find_reference, make_reference, prove
from encoders.hashing import HASHING, HashingEncoder
from encoders.known import KNOWN


class Cutting(HashingEncoder):
    """Reads only the first thousand characters: the classic silent fault."""

    def encode(self, texts: Sequence[str], *, kind: Kind = "document") -> Embeddings:
        return super().encode([text[:1000] for text in texts], kind=kind)


class Noisy(HashingEncoder):
    """As a half-precision device: right to about 0.9999."""

    def encode(self, texts: Sequence[str], *, kind: Kind = "document") -> Embeddings:
        exact = super().encode(texts, kind=kind)
        noise = np.random.default_rng(0).normal(0, 0.0004, exact.shape).astype(np.float32)
        return (exact + noise) / np.linalg.norm(exact + noise, axis=1, keepdims=True)


class Companion(HashingEncoder):
    """Gives a text another embedding in company: padding that leaks."""

    def encode(self, texts: Sequence[str], *, kind: Kind = "document") -> Embeddings:
        found = super().encode(texts, kind=kind)
        if len(found) > 8:
            found[:] = found[::-1]
        return found


@pytest.fixture(scope="module")
def reference() -> dict:
    return json.loads(json.dumps(make_reference(HashingEncoder())))


def test_the_same_encoder_passes(reference: dict):
    prove(HashingEncoder(), reference)
    prove(Noisy(), reference)


def test_one_that_cuts_texts_off_is_refused(reference: dict):
    with pytest.raises(EncoderRefused, match="canary 5 has cosine"):
        prove(Cutting(), reference)


def test_one_that_disagrees_with_itself_makes_no_reference():
    with pytest.raises(EncoderRefused, match="disagrees with itself"):
        make_reference(Companion())


def test_known_encoders_have_shipped_references(reference: dict):
    assert find_reference(HASHING) == reference
    assert find_reference(KNOWN[0].spec(source="")) is not None
    assert find_reference(replace(HASHING, weights_sha256="0" * 64)) is None
    assert find_reference(replace(HASHING, prompts={"query": "q: "})) is None


@pytest.mark.parametrize(
    "change",
    [
        {"canary": 0},
        {"canary": None},
        {"vectors": "!"},
        {"vectors": "AAAA"},
        {"vectors": None},
        {"weights_sha256": "0"},
        {"max_tokens": 5},
    ],
)
def test_a_reference_that_does_not_fit_is_refused(reference: dict, change: dict):
    with pytest.raises(EncoderRefused):
        prove(HashingEncoder(), {**reference, **change})
