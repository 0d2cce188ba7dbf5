"""Asks search servers over HTTP: the next one when one does not answer."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from corpus.errors import BrainError, UsageError

_FIRST_S = 3.0
_LAST_S = 30.0


class ServerRefused(BrainError):
    """A search server says that the question itself cannot be answered (4xx): no other server would."""

    exit_code = 2


class PaperUnknown(ServerRefused):
    """The servers hold no such paper."""

    exit_code = 1


class ServersGone(BrainError):
    """None of the search servers answers; each is named with what it said."""

    exit_code = 4
    transient = True


class Servers:
    """Search servers that hold the same corpus. The one that answered last is asked first."""

    def __init__(
        self, addresses: str | Sequence[str], *, token: str | None = None, patience_s: float = _FIRST_S
    ) -> None:
        """`addresses`: URLs, or one text with commas between. Raises UsageError for what is no address."""
        given = addresses.split(",") if isinstance(addresses, str) else addresses
        self.bases = [_base(each) for each in given if each.strip()]
        if not self.bases:
            raise UsageError("--server names no server.", mend="Example: --server http://one:8010,http://two:8010")
        self._token = token
        self._patience_s = patience_s
        self._first = 0

    def get(self, path: str, items: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
        """The JSON that the first server gives which can. Raises ServerRefused (4xx) or ServersGone.

        Where all are too slow for a short wait, each gets a long one.
        """
        tail = path + (f"?{urlencode(items)}" if items else "")
        said: dict[str, str] = {}
        for patience_s in (self._patience_s, _LAST_S):
            is_slow = False
            for step in range(len(self.bases)):
                at = (self._first + step) % len(self.bases)
                base = self.bases[at]
                try:
                    answer = self._ask(base + tail, patience_s)
                except TimeoutError:
                    said[base], is_slow = f"no answer within {patience_s:g} s", True
                except (OSError, ValueError, http.client.HTTPException) as error:
                    said[base] = _reason(error)
                    is_slow = is_slow or isinstance(getattr(error, "reason", None), TimeoutError)
                else:
                    self._first = at
                    return answer
            if not is_slow:
                break
        told = "; ".join(f"{base}: {why}" for base, why in said.items())
        raise ServersGone(
            f"No search server answers: {told}.", mend="Start one with `search-server`, or check --server."
        )

    def _ask(self, url: str, patience_s: float) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        request = urllib.request.Request(url, headers=headers)
        try:
            with _OPENER.open(request, timeout=patience_s) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                problem = _problem(error)
            if 400 <= error.code < 500 and error.code not in {408, 429}:
                kind = PaperUnknown if problem["type"].endswith("/unknown-paper") else ServerRefused
                raise kind(problem["detail"], mend=problem["mend"]) from error
            raise OSError(f"{error.code}, {problem['detail'].rstrip('.')}") from error
        if not isinstance(found, dict):
            raise OSError("it gives something else than an answer")
        return found


_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # servers of one's own are reached directly


def paper_path(paper_id: str, tail: str = "") -> str:
    """The path of one paper; slashes of its id are the id's."""
    return f"/papers/{quote(paper_id, safe='')}{tail}"


def _base(text: str) -> str:
    """`http://host:port` of what a person writes: with or without the scheme and a slash at the end."""
    base = text.strip() if "://" in text else f"http://{text.strip()}"
    try:
        parts = urlsplit(base)
        is_one = (
            parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and parts.port != 0
            and not any(c.isspace() or not c.isprintable() for c in base)
        )
    except ValueError:
        is_one = False
    if not is_one:
        raise UsageError(f"--server {text.strip()!r} is no address.", mend="Example: --server http://one:8010")
    return base.rstrip("/")


def _problem(error: urllib.error.HTTPError) -> dict[str, str]:
    """The problem document of a refusal, or what HTTP says."""
    try:
        body = json.load(error)
        return {
            "type": str(body.get("type")), "detail": str(body.get("detail") or error.reason), "mend": str(body.get("mend") or ""),
        }  # fmt: skip
    except (OSError, ValueError, AttributeError, http.client.HTTPException):
        return {"type": "", "detail": str(error.reason), "mend": ""}


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return str(getattr(reason, "strerror", None) or reason)
