"""What extraction makes of a file: a verdict, and where it is "ok" the text with its pages and sections."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self, get_args

from corpus.passages import Section

Verdict = Literal[
    "ok", "needs_ocr", "encrypted", "not_pdf", "no_pages", "damaged", "incomplete", "too_large", "timeout"
]
Kind = Literal["pdf", "html", "jats", "markdown", "text", "unknown"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

EXTRACTOR_VERSION = 2
"""Rises whenever the same bytes may give another text; what an older one made can then be made anew."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """The outcome of one file.

    Every offset counts code points of `text`; `page_starts` rises and has one entry a page (empty where there are no
    pages). `warnings` are short words such as "repaired", "low_text_quality" or "unmapped_characters:421".
    """

    verdict: Verdict
    reason: str = ""
    kind: Kind = "unknown"
    warnings: tuple[str, ...] = ()
    title: str | None = None
    abstract: str | None = None
    n_pages: int = 0
    page_starts: tuple[int, ...] = ()
    sections: tuple[Section, ...] = ()
    text: str = ""
    doi: str | None = None
    arxiv_id: str | None = None
    language: str | None = None
    n_replaced_chars: int = 0
    extractor_version: int = EXTRACTOR_VERSION
    text_sha256: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        if not self.text_sha256:
            digest = hashlib.sha256(self.text.encode("utf-8", "replace")).hexdigest()
            object.__setattr__(self, "text_sha256", digest)

    @property
    def is_ok(self) -> bool:
        """Whether there is a text to use."""
        return self.verdict == "ok"

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as a JSON object, the text last."""
        value = asdict(self)
        value["sections"] = [section.to_json() for section in self.sections]
        value["text"] = value.pop("text")
        return value

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Return the outcome that `to_json` wrote."""
        known = dict(value)
        known["sections"] = tuple(Section.from_json(section) for section in value.get("sections", ()))
        known["warnings"] = tuple(value.get("warnings", ()))
        known["page_starts"] = tuple(value.get("page_starts", ()))
        return cls(**known)


def refuse(
    verdict: Verdict, reason: str, *, kind: Kind = "unknown", n_pages: int = 0, warnings: Sequence[str] = ()
) -> Extraction:
    """Return an outcome without text; `reason` says what is wrong in words for the reader."""
    return Extraction(verdict, reason, kind=kind, n_pages=n_pages, warnings=tuple(warnings))
