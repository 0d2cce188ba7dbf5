"""Every error of the project, as one tree.

BrainError
├── UsageError                 a command was called in a way that cannot be meant (exit 2)
├── DatabaseError
│   ├── DatabaseUnavailable    no answer from the database (exit 4; transient)
│   ├── DatabaseUrlError       the address itself cannot be read (exit 2)
│   ├── UnsupportedDatabase    too old, no pgvector, or no right (exit 5)
│   └── SchemaMismatch         the schema is older or newer than this program (exit 5)
├── EmbeddedServerError        the embedded server cannot be used in this folder (exit 5)
├── EncoderError
│   ├── EncoderUnavailable     weights or service cannot be had now (transient)
│   ├── EncoderThrottled       the service asks to wait (transient; retry_after)
│   ├── EncoderOutOfMemory     the batch does not fit the device (transient)
│   ├── EncoderRefused         canary, checksum or settings disagree (exit 5)
│   └── BadEmbedding           not finite, zero, wrong length: never stored
├── SourceError                one outcome of asking a source: see the subclasses
│   ├── SourceAbsent           the source knows no such thing
│   ├── SourceThrottled        the source asks to wait (transient)
│   ├── SourceDown             the source does not work now (transient)
│   ├── SourceRefused          our request was wrong or is not allowed
│   └── SourceNonsense         an answer that cannot be read
├── FetchError                 a file could not be fetched
│   └── AddressRefused         an address that no fetch may reach
├── StoreError
│   ├── StoreMissing           the store has no such file
│   └── StoreDamaged           the bytes are not those that the name promises
├── BackupDamaged              a backup is not what was written; refused (exit 5)
├── InputError                 one line or file of the input cannot be used
└── LeaseLost                  the job is no longer this node's

`transient` is the only thing that retry decisions read.
"""

from __future__ import annotations

from typing import ClassVar


class BrainError(Exception):
    """Something went wrong; the message says what, to which thing, and the mend."""

    exit_code: ClassVar[int] = 1
    transient: ClassVar[bool] = False
    outcome: ClassVar[str] = "failed"

    def __init__(self, what: str, *, mend: str = "") -> None:
        self.what = what
        self.mend = mend
        super().__init__(f"{what} {mend}".strip())


class UsageError(BrainError):
    """A command was called in a way that cannot be meant."""

    exit_code = 2


class DatabaseError(BrainError):
    """The database refused or failed."""


class DatabaseUnavailable(DatabaseError):
    """No answer from the database."""

    exit_code = 4
    transient = True


class DatabaseUrlError(DatabaseError):
    """The address of the database cannot be read."""

    exit_code = 2


class UnsupportedDatabase(DatabaseError):
    """The server is too old, lacks pgvector, or does not give the right that is needed."""

    exit_code = 5


class SchemaMismatch(DatabaseError):
    """The schema is older or newer than this program."""

    exit_code = 5


class EmbeddedServerError(BrainError):
    """The embedded server cannot be used in this folder."""

    exit_code = 5


class EncoderError(BrainError):
    """Texts could not be encoded."""


class EncoderUnavailable(EncoderError):
    """Weights or service cannot be had now."""

    transient = True


class EncoderThrottled(EncoderError):
    """The encoder's service asks to wait."""

    transient = True

    def __init__(self, what: str, *, mend: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(what, mend=mend)
        self.retry_after_s = retry_after_s


class EncoderOutOfMemory(EncoderError):
    """The batch does not fit the device."""

    transient = True


class EncoderRefused(EncoderError):
    """Canary, checksum or settings disagree: this encoder may not write here."""

    exit_code = 5


class BadEmbedding(EncoderError):
    """An embedding that is not finite, zero, or of a wrong length; it is never stored."""


class SourceError(BrainError):
    """One outcome of asking a source; `outcome` names it."""

    outcome = "nonsense"

    def __init__(self, what: str, *, mend: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(what, mend=mend)
        self.retry_after_s = retry_after_s


class SourceAbsent(SourceError):
    """The source knows no such thing."""

    outcome = "absent"


class SourceThrottled(SourceError):
    """The source asks to wait."""

    outcome = "throttled"
    transient = True


class SourceDown(SourceError):
    """The source does not work now."""

    outcome = "down"
    transient = True


class SourceRefused(SourceError):
    """Our request was wrong, or is not allowed."""

    outcome = "refused"


class SourceNonsense(SourceError):
    """An answer that cannot be read."""

    outcome = "nonsense"


class FetchError(BrainError):
    """A file could not be fetched."""


class AddressRefused(FetchError):
    """An address that no fetch may reach."""


class StoreError(BrainError):
    """The store of full texts failed."""


class StoreMissing(StoreError):
    """The store has no such file."""


class StoreDamaged(StoreError):
    """The bytes are not those that the name promises."""


class BackupDamaged(BrainError):
    """A backup is not what was written; it is refused before anything is touched."""

    exit_code = 5


class InputError(BrainError):
    """One line or file of the input cannot be used."""

    def __init__(self, what: str, *, mend: str = "", file: str | None = None, line: int | None = None) -> None:
        super().__init__(what, mend=mend)
        self.file = file
        self.line = line


class LeaseLost(BrainError):
    """The job is no longer this node's; what it computed is discarded."""
