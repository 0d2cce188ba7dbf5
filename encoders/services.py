"""What is said to an encoder over HTTP, and what its answers mean: Ollama's shape and OpenAI's, as pure functions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from corpus.errors import (
    BadEmbedding,
    EncoderError,
    EncoderOutOfMemory,
    EncoderRefused,
    EncoderThrottled,
    EncoderUnavailable,
    UsageError,
)

Flavour = Literal["ollama", "openai"]
KEY_VARIABLE = "BRAIN_ENCODER_KEY"
_OLLAMA_DEFAULT = "http://127.0.0.1:11434"
_TOO_LONG = ("context length", "context_length", "input length", "too long", "maximum length", "too many tokens")
_NO_MEMORY = ("out of memory", "outofmemory", "not enough memory", "requires more system memory", "alloc")
_SAID = 300


class TextTooLongError(EncoderError):
    """A text is longer than the service's model reads at once."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a service is, and which of its models is meant."""

    flavour: Flavour
    model: str
    url: str

    @property
    def source(self) -> str:
        """The address as users write it."""
        return f"{self.flavour}:{self.model}@{self.url}"

    @property
    def embed_url(self) -> str:
        """Where texts are sent."""
        return f"{self.url}/api/embed" if self.flavour == "ollama" else f"{self.url}/v1/embeddings"

    def body(self, texts: Sequence[str]) -> dict[str, Any]:
        """Write the request. Ollama is told not to cut long texts off without a word, which it does otherwise."""
        if self.flavour == "ollama":
            return {"model": self.model, "input": list(texts), "truncate": False}
        return {"model": self.model, "input": list(texts), "encoding_format": "float"}


def parse_address(name: str) -> Address:
    """Read `ollama:MODEL@URL` or `openai:MODEL@URL`; without a URL, Ollama is looked for on this machine."""
    flavour, _, rest = name.partition(":")
    model, at, url = rest.rpartition("@")
    if not at:
        model, url = rest, _OLLAMA_DEFAULT if flavour == "ollama" else ""
    url = url.strip().rstrip("/")
    for tail in ("/v1/embeddings", "/api/embed", "/v1"):
        url = url.removesuffix(tail)
    parts = urlsplit(url)
    if flavour not in {"ollama", "openai"} or not model or parts.scheme not in {"http", "https"} or not parts.netloc:
        raise UsageError(
            f"{name!r} is not the address of an encoder.",
            mend="Write ollama:MODEL@http://HOST:PORT or openai:MODEL@https://HOST.",
        )
    if parts.username or parts.password:
        raise UsageError(
            "The address of an encoder is stored in the database and may hold no password.",
            mend=f"Put the key into {KEY_VARIABLE} on each node.",
        )
    return Address(cast("Flavour", flavour), model, url)


def stand_in_digest(address: Address) -> str:
    """Make a digest from the model's name, for services that do not tell one of their weights.

    It keeps encoders of different names apart; a change of weights under one name only the canary can see.
    """
    return hashlib.sha256(f"{address.flavour}:{address.model}".encode()).hexdigest()


def digest_in_tags(answer: Any, address: Address) -> str:
    """Find the model's digest in Ollama's list of models. Raises EncoderUnavailable when it has no such model."""
    models = answer.get("models") if isinstance(answer, Mapping) else None
    for model in models if isinstance(models, list) else []:
        if isinstance(model, Mapping) and _same_model(str(model.get("name", "")), address.model):
            digest = str(model.get("digest", "")).removeprefix("sha256:").lower()
            return digest if len(digest) == 64 else stand_in_digest(address)
    raise EncoderUnavailable(
        f"{address.url} has no model {address.model!r}.", mend=f"Run there: ollama pull {address.model}"
    )


def _same_model(one: str, other: str) -> bool:
    return one.removesuffix(":latest") == other.removesuffix(":latest")


def rows_of(answer: Any, n: int, flavour: Flavour) -> list[Any]:
    """Take the embeddings out of an answer, in the order of the texts. Raises BadEmbedding for any other shape."""
    rows: Any = None
    if isinstance(answer, Mapping):
        rows = answer.get("embeddings" if flavour == "ollama" else "data")
    if not isinstance(rows, list):
        raise BadEmbedding("The encoder's answer holds no embeddings.")
    if len(rows) != n:
        raise BadEmbedding(f"The encoder was given {n} texts and answered with {len(rows)} embeddings.")
    if flavour == "ollama":
        return rows
    places: list[Any] = [None] * n
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise BadEmbedding("The encoder's answer holds no embeddings.")
        index = row.get("index", place)
        if not isinstance(index, int) or not 0 <= index < n or places[index] is not None:
            raise BadEmbedding(f"The encoder's answer numbers its embeddings wrongly: {index!r} of {n}.")
        places[index] = row.get("embedding")
    return places


def retry_after_s(value: str | None, now: datetime | None = None) -> float | None:
    """Read a Retry-After header, seconds or a date (RFC 9110, 10.2.3); None where there is none to be read."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            at = parsedate_to_datetime(value)
        except ValueError:
            return None
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        seconds = (at - (now or datetime.now(UTC))).total_seconds()
    return max(0.0, seconds) if seconds == seconds and seconds != float("inf") else None  # noqa: PLR0124 - NaN


def error_of(status: int, text: str, headers: Mapping[str, str], address: Address) -> EncoderError:
    """Say what an answer other than success means."""
    said = " ".join(text.split())[:_SAID]
    low = text[:10_000].lower()
    what = f"{address.url} answered {status} for {address.model}: {said or 'nothing'}"
    wait = retry_after_s(headers.get("retry-after"))
    if status == 429 or (status == 503 and wait is not None):
        return EncoderThrottled(what, retry_after_s=wait)
    if any(sign in low for sign in _NO_MEMORY):
        return EncoderOutOfMemory(what)
    if status in {400, 413, 422, 500} and any(sign in low for sign in _TOO_LONG):
        return TextTooLongError(what)
    if status in {401, 403}:
        return EncoderRefused(what, mend=f"Put the service's key into {KEY_VARIABLE}.")
    if status in {404, 408} or status >= 500:
        mend = f"Run there: ollama pull {address.model}" if address.flavour == "ollama" and status == 404 else ""
        return EncoderUnavailable(what, mend=mend)
    return EncoderError(what, mend="Check the address and the model's name.")
