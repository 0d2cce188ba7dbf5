"""What one file may cost. Every limit can be set by an environment variable BRAIN_TEXT_<NAME>."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds for the extraction of one file; what passes one gets the verdict "timeout" or "too_large"."""

    seconds: float = 120.0
    ocr_seconds: float = 1800.0
    """The bound instead of `seconds` where text recognition is asked for."""
    memory_mib: int = 1024
    """Resident memory of the child process."""
    file_mib: int = 512
    n_pages: int = 5000
    n_chars: int = 20_000_000

    @classmethod
    def from_environment(cls) -> Self:
        """Return the defaults, changed by what the environment sets; a value that is no number is left out."""
        given: dict[str, Any] = {}
        for item in fields(cls):
            word = os.environ.get(f"BRAIN_TEXT_{item.name.upper()}", "")
            try:
                number = float(word)
            except ValueError:
                continue
            if number > 0:
                given[item.name] = number if item.name.endswith("seconds") else int(number)
        return cls(**given)

    def to_json(self) -> dict[str, Any]:
        """Return the limits as a JSON object."""
        return asdict(self)
