"""From HTTP to the five outcomes: absent, throttled, down, refused and nonsense are told apart here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx2

from corpus.errors import (
    AddressRefused,
    SourceAbsent,
    SourceDown,
    SourceError,
    SourceNonsense,
    SourceRefused,
    SourceThrottled,
)
from ingest.sources.base import Answer

_MENDS = {
    401: "The host asks for a key or a login; see `brain sources`.",
    403: "The host does not let programs in; another location has to serve.",
    451: "The host may not show it here.",
}


def error_of(answer: Answer, pause_s: float | None = None) -> SourceError | None:
    """Give the outcome that a status other than 2xx means, or None. `pause_s`: how long the host wants to be left.

    404 and 410 are absence; 429, and 503 with Retry-After, ask to wait; 408, 425 and other 5xx are failures of the
    host; any other 4xx says that our request was at fault (RFC 9110, 15.5 and 15.6).
    """
    status = answer.status or 0
    where = answer.url.partition("?")[0]
    retry_after_s = answer.retry_after_s
    if 200 <= status < 300:
        return None
    if status in {404, 410}:
        return SourceAbsent(f"{where} is not there (HTTP {status}).")
    if status == 429 or (status == 503 and retry_after_s is not None):
        wait = retry_after_s if retry_after_s is not None else pause_s
        return SourceThrottled(f"{where} asks to wait (HTTP {status}).", retry_after_s=wait)
    if status in {408, 425} or 500 <= status < 600:
        return SourceDown(f"{where} does not work now (HTTP {status}).", retry_after_s=retry_after_s)
    if 400 <= status < 500:
        return SourceRefused(f"{where} refused our request (HTTP {status}).", mend=_MENDS.get(status, ""))
    return SourceNonsense(f"{where} answered with HTTP {status}, which has no meaning here.")


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Turn the HTTP library's errors into outcomes; the cause is kept."""
    where = url.partition("?")[0]
    try:
        yield
    except httpx2.TimeoutException as cause:
        raise SourceDown(f"{where} did not answer in time.") from cause
    except httpx2.TransportError as cause:
        raise SourceDown(f"{where} cannot be reached, or broke off: {cause or type(cause).__name__}.") from cause
    except httpx2.DecodingError as cause:
        raise SourceNonsense(f"{where} sent a body that cannot be unpacked.") from cause
    except httpx2.InvalidURL as cause:
        raise AddressRefused(f"{where!r} is not fetched: it cannot be read.") from cause
    except httpx2.HTTPError as cause:
        raise SourceNonsense(f"{where} answered what is no HTTP: {cause}.") from cause
