"""Texts as word pieces, and the rule for texts that are longer than a model reads at once.

**Windows.** A text of at most `max_tokens` pieces, special ones included, is one window: itself. A longer one is cut
into the fewest windows of full length that overlap by at least an eighth, spread evenly from its first piece to its
last; each window carries the prompt and the special pieces. The text's embedding is the mean of its windows' unit
vectors, scaled to length 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus.errors import EncoderUnavailable

_OVERLAP = 8
"""Neighbouring windows share at least one part in this many."""


@dataclass(frozen=True, slots=True)
class Windows:
    """What a model is to read: `ids` of every window, and for each window the number of the text that it is of."""

    ids: list[list[int]]
    owners: list[int]
    n_windowed: int


def window_starts(n_pieces: int, size: int) -> list[int]:
    """Place windows of `size` pieces over `n_pieces`: first at 0, last ending at the end, evenly between."""
    if n_pieces <= size:
        return [0]
    stride = max(1, size - size // _OVERLAP)
    n_steps = -(-(n_pieces - size) // stride)
    return [round(step * (n_pieces - size) / n_steps) for step in range(n_steps + 1)]


class Pieces:
    """A model's tokenizer, read from its `tokenizer.json` alone. Thread-safe."""

    def __init__(self, file: Path, max_tokens: int) -> None:
        from tokenizers import Tokenizer

        try:
            self._tokenizer: Any = Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises bare Exception
            raise EncoderUnavailable(
                f"The tokenizer {file} cannot be read: {error}.", mend="Remove its folder, so that it is fetched anew."
            ) from error
        # The file carries limits of its own, which would cut the tails off without a word.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.max_tokens = max_tokens
        self._head, self._tail = self._special()

    def _special(self) -> tuple[list[int], list[int]]:
        """Find the pieces that the model wants before and after every text."""
        bare = self._tokenizer.encode("a", add_special_tokens=False).ids
        full = self._tokenizer.encode("a", add_special_tokens=True).ids
        for start in range(len(full) - len(bare) + 1):
            if full[start : start + len(bare)] == bare:
                return full[:start], full[start + len(bare) :]
        return [], []

    def windows(self, texts: Sequence[str], prompt: str = "") -> Windows:
        """Cut texts into what the model can read, as the module's rule says."""
        # Lone surrogates are no text to the tokenizer, and become question marks.
        clean = [(prompt + text).encode("utf-8", "replace").decode("utf-8") for text in texts]
        ids: list[list[int]] = []
        owners: list[int] = []
        n_windowed = 0
        room = self.max_tokens - len(self._head) - len(self._tail)
        for number, encoding in enumerate(self._tokenizer.encode_batch(clean, add_special_tokens=False)):
            pieces: list[int] = encoding.ids
            if len(pieces) <= room:
                cuts = [pieces]
            else:
                n_prompt = sum(1 for _, end in encoding.offsets if end <= len(prompt)) if prompt else 0
                before, body = pieces[:n_prompt], pieces[n_prompt:]
                size = room - n_prompt
                cuts = [before + body[start : start + size] for start in window_starts(len(body), size)]
                n_windowed += 1
            ids.extend(self._head + cut + self._tail for cut in cuts)
            owners.extend([number] * len(cuts))
        return Windows(ids, owners, n_windowed)
