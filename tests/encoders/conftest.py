"""The real encoder for the tests that need it: loaded once a run, from the user's cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpus.errors import EncoderError
from encoders.base import Encoder
from encoders.cache import default_cache
from encoders.known import KNOWN
from encoders.load import load_encoder
from encoders.weights import ensure_weights


def _or_skip(reason: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def mpnet_folder() -> Path:
    try:
        return ensure_weights(KNOWN[0])
    except EncoderError as error:
        _or_skip(str(error))
        raise


@pytest.fixture(scope="session")
def openvino(mpnet_folder: Path) -> Iterator[Encoder]:
    pytest.importorskip("openvino")
    encoder = load_encoder("all-mpnet-base-v2", device="cpu", backend="openvino", cache=default_cache())
    yield encoder
    encoder.close()


@pytest.fixture(scope="session")
def torch(mpnet_folder: Path) -> Iterator[Encoder]:
    pytest.importorskip("sentence_transformers")
    encoder = load_encoder("all-mpnet-base-v2", device="cpu", backend="torch", cache=default_cache())
    yield encoder
    encoder.close()
