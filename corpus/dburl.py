"""The address of the database: `embedded:DIR` or any libpq URL, read with care for passwords.

A password never leaves this module in a message: `masked` is what is shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from corpus.errors import DatabaseUrlError

_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.\-]*):")
_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_MASK = re.compile(r"(?<=:)[^:@/]*(?=@)|(password\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)", re.IGNORECASE)


@dataclass(frozen=True)
class DatabaseUrl:
    """Either `embedded_dir` (a folder of the embedded server) or `conninfo` (what libpq takes) is set."""

    embedded_dir: Path | None = None
    conninfo: str | None = None

    @property
    def masked(self) -> str:
        """The address without its password."""
        if self.embedded_dir is not None:
            return f"embedded:{self.embedded_dir}"
        return mask(self.conninfo or "")


def mask(conninfo: str) -> str:
    """A libpq address without its password, for messages and logs."""
    if "://" in conninfo:
        scheme, rest = conninfo.split("://", 1)
        authority, slash, tail = rest.partition("/")
        user, at, hosts = authority.rpartition("@")
        if at:
            authority = f"{user.split(':', 1)[0]}@{hosts}"
        return re.sub(r"(password=)[^&]*", r"\1***", f"{scheme}://{authority}{slash}{tail}", flags=re.IGNORECASE)
    return _MASK.sub(lambda m: f"{m.group(1) or ''}***", conninfo)


def parse_database_url(text: str, home: Path) -> DatabaseUrl:
    """Read an address. `embedded:` alone means the folder `db` below `home`.

    Raises DatabaseUrlError with the mend: a sign in the password that must be percent-encoded, a scheme that is none.
    """
    text = text.strip()
    if not text:
        raise DatabaseUrlError(
            "The database address is empty.", mend="Give embedded:DIR or a libpq URL, or leave --db and BRAIN_DB out."
        )
    if text == "embedded" or text.startswith("embedded:"):
        folder = text.partition(":")[2]
        return DatabaseUrl(embedded_dir=Path(folder).expanduser().absolute() if folder else home / "db")
    scheme = _SCHEME.match(text)
    if "://" in text and (scheme is None or scheme.group(1) not in {"postgresql", "postgres"}):
        name = scheme.group(1) if scheme else text.split("://", 1)[0]
        raise DatabaseUrlError(
            f"The database URL has the scheme {name!r}, which libpq does not know.",
            mend="Begin it with postgresql:// , or use embedded:DIR.",
        )
    if "://" in text:
        _check_authority(text)
    elif "=" not in text and text:
        raise DatabaseUrlError(
            "The database address is neither a URL nor key=value pairs.",
            mend="Use postgresql://user@host/name, or embedded:DIR.",
        )
    try:
        from psycopg import conninfo as libpq

        libpq.conninfo_to_dict(text)
    except Exception as error:
        raise DatabaseUrlError(
            "The database URL cannot be read by libpq.",
            mend="Percent-encode signs in user and password (@ as %40, % as %25, / as %2F, : as %3A).",
        ) from error
    return DatabaseUrl(conninfo=text)


def _check_authority(text: str) -> None:
    """Signs that people leave bare in a password, each with its percent code."""
    rest = text.split("://", 1)[1]
    authority = re.split(r"[/?]", rest, maxsplit=1)[0]
    if _PERCENT.search(authority):
        raise DatabaseUrlError(
            "The database URL has a bare % in its user or password.", mend="Percent-encode it: write %25 for %."
        )
    if authority.count("@") > 1:
        raise DatabaseUrlError(
            "The database URL has more than one @ before the host.",
            mend="Percent-encode the one in the password: write %40 for @.",
        )
