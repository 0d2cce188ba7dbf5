"""Where a redirect leads, and what of the request may follow it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from corpus.errors import SourceNonsense

_STATUSES = {301, 302, 303, 307, 308}
# Keys must not reach a host that they were not given to; everything but these follows.
_FOLLOWS = {"accept", "accept-language", "user-agent"}


@dataclass(frozen=True, slots=True)
class Hop:
    """One request of a chain of redirects; `url` is the original address, also while recordings are replayed."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None

    @property
    def origin(self) -> tuple[str, str]:
        """Scheme and host with port: who is asked."""
        parts = urlsplit(self.url)
        return parts.scheme.lower(), parts.netloc.lower()


def next_hop(hop: Hop, status: int, headers: Mapping[str, str]) -> Hop | None:
    """Give the next request of the chain, or None when the answer is no redirect (RFC 9110, 15.4)."""
    location = headers.get("location")
    if status not in _STATUSES or not location:
        return None
    try:
        url = urljoin(hop.url, location.strip()).partition("#")[0]
    except ValueError as cause:
        raise SourceNonsense(f"{hop.url.partition('?')[0]} redirects to an address that cannot be read.") from cause
    method, body = hop.method, hop.body
    if status == 303 or (status in {301, 302} and method == "POST"):
        method, body = "GET", None
    following = Hop(method, url, hop.headers, body)
    # To the same host by https instead of http is the same receiver (old addresses of APIs), not the other way.
    is_upgrade = (following.origin[0], hop.origin[0]) == ("https", "http") and following.origin[1] == hop.origin[1]
    if following.origin != hop.origin and not is_upgrade:
        kept = tuple((name, value) for name, value in hop.headers if name.lower() in _FOLLOWS)
        following = Hop("GET" if body is not None else method, url, kept, None)
    return following
