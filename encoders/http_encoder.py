"""Encoding over HTTP: Ollama (`/api/embed`) and whatever speaks OpenAI's `/v1/embeddings`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import httpx2
import numpy as np

from corpus.errors import EncoderOutOfMemory, EncoderRefused, EncoderUnavailable
from encoders.base import Embeddings, EncoderSpec, Kind, normalised
from encoders.known import find_known
from encoders.services import (
    KEY_VARIABLE,
    Address,
    TextTooLongError,
    digest_in_tags,
    error_of,
    parse_address,
    rows_of,
    stand_in_digest,
)

_CONNECT_S = 5.0
_ANSWER_S = 120.0
_TEXTS_AT_ONCE = 32
_UNKNOWN_MAX_TOKENS = 512
_SHORTEST_CUT = 200
"""A text of fewer characters is not cut again: a service that cannot take it will take no piece of it."""


def _client(timeout_s: float) -> httpx2.Client:
    key = os.environ.get(KEY_VARIABLE, "")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx2.Client(headers=headers, timeout=httpx2.Timeout(timeout_s, connect=_CONNECT_S))


def _ask(client: httpx2.Client, address: Address, method: str, url: str, body: Any = None) -> Any:
    """Send one request and read its JSON; every failure becomes one of the encoders' errors."""
    try:
        answer = client.request(method, url, json=body)
    except httpx2.TimeoutException as error:
        raise EncoderUnavailable(f"{address.url} did not answer in time ({type(error).__name__}).") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise EncoderUnavailable(f"{address.url} cannot be reached: {error or type(error).__name__}.") from error
    if answer.status_code != 200:
        raise error_of(answer.status_code, answer.text, answer.headers, address)
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError) as error:
        # Another program on that port, a proxy's page, a cut answer: the service is not there, the text is not at fault.
        raise EncoderUnavailable(f"{address.url} answered something that is not JSON.") from error


def _digest(client: httpx2.Client, address: Address) -> str:
    if address.flavour == "openai":
        return stand_in_digest(address)
    return digest_in_tags(_ask(client, address, "GET", f"{address.url}/api/tags"), address)


def resolve_service(name: str) -> EncoderSpec:
    """Find the spec of `ollama:MODEL@URL` or `openai:MODEL@URL`; Ollama is asked for the digest of the weights.

    Raises UsageError for an address that cannot be read, EncoderUnavailable when Ollama does not answer or lacks the
    model.
    """
    address = parse_address(name)
    with _client(_CONNECT_S) as client:
        digest = _digest(client, address)
    known = find_known(address.model)
    if known is not None:
        return known.spec(source=address.source, weights_sha256=digest)
    return EncoderSpec(
        name=address.model,
        revision=digest[:12],
        weights_sha256=digest,
        max_tokens=_UNKNOWN_MAX_TOKENS,
        pooling="service",
        source=address.source,
    )


def open_service(spec: EncoderSpec, *, timeout_s: float = _ANSWER_S) -> HttpEncoder:
    """Make an encoder for the service that the spec names.

    Raises EncoderUnavailable when it does not answer, EncoderRefused when it holds other weights than the spec's.
    """
    address = parse_address(spec.source)
    client = _client(timeout_s)
    try:
        _need_same_weights(_digest(client, address), spec, address)
    except BaseException:
        client.close()
        raise
    return HttpEncoder(spec, address, client)


def _need_same_weights(digest: str, spec: EncoderSpec, address: Address) -> None:
    if digest != spec.weights_sha256:
        raise EncoderRefused(
            f"{address.url} serves {address.model} with weights {digest[:12]}…, not {spec.weights_sha256[:12]}….",
            mend="Pull the same version there, or register this one as an encoder of its own.",
        )


class HttpEncoder:
    """An encoder behind HTTP. Thread-safe. What the service gives is scaled to length 1, and refused where it cannot be.

    A text that the service finds too long is sent as two overlapping halves, each cut again if need be; its embedding
    is the normalised mean of the pieces' unit vectors.
    """

    def __init__(self, spec: EncoderSpec, address: Address, client: httpx2.Client) -> None:
        self.spec = spec
        self.backend: str = address.flavour
        self.device = address.url
        self.n_windowed = 0
        self._address = address
        self._client = client
        self._at_once = _TEXTS_AT_ONCE

    def encode(self, texts: Sequence[str], *, kind: Kind = "document") -> Embeddings:
        """One float32 unit vector a text, in their order; the prompt of the kind stands before each."""
        prompt = self.spec.prompt(kind)
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        out = np.empty((len(texts), self.spec.dim), dtype=np.float32)
        start = 0
        while start < len(clean):
            part = clean[start : start + self._at_once]
            try:
                out[start : start + len(part)] = self._send([prompt + text for text in part])
            except EncoderOutOfMemory:
                if len(part) == 1:
                    raise
                self._at_once = max(1, len(part) // 2)
                continue
            except TextTooLongError:
                # Which of them was too long is not said, so each goes alone.
                for place, text in enumerate(part, start):
                    out[place] = self._send_long(text, prompt)
            start += len(part)
        return out

    def _send(self, texts: list[str]) -> Embeddings:
        answer = _ask(self._client, self._address, "POST", self._address.embed_url, self._address.body(texts))
        rows = rows_of(answer, len(texts), self._address.flavour)
        return normalised(rows, len(texts), dim=self.spec.dim)

    def _send_long(self, text: str, prompt: str) -> np.ndarray:
        pieces, found = [text], []
        while pieces:
            piece = pieces.pop()
            try:
                found.append(self._send([prompt + piece])[0])
            except TextTooLongError:
                if len(piece) < _SHORTEST_CUT:
                    raise
                size = len(piece) * 9 // 16
                pieces += [piece[:size], piece[-size:]]
        if len(found) > 1:
            self.n_windowed += 1
        mean = np.mean(np.stack(found), axis=0, keepdims=True, dtype=np.float64)
        return normalised(mean, 1, dim=self.spec.dim)[0]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
