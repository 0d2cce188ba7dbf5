"""Which addresses a fetch may reach: public web hosts, and nothing inside anyone's network.

An address is judged twice: as it is written, before anything is sent, and by the numbers that its host resolves to,
in the moment of connecting (`ingest.http.network`), so that nothing can change between the check and the use.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import re
import socket
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import urlsplit

from corpus.errors import AddressRefused

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port to the numeric addresses that the host has at this moment."""

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

# Names that mean this machine or this network wherever they resolve to (RFC 6761, 6762, 7686, 8375; what routers and
# clusters call their own: RFC 9476, appendix G of RFC 6762; cloud metadata).
_INNER_NAMES: Final = re.compile(
    r"(?:.*\.)?(?:localhost6?|local|localdomain6?|internal|intranet|private|corp|home|lan|svc|home\.arpa|onion)"
    r"|metadata(?:\..*)?"
)
_HOST_NAME: Final = re.compile(r"(?=.{1,253}$)(?:(?!-)[a-z0-9_-]{1,63}(?<!-)\.)+(?!-)[a-z0-9-]{2,63}(?<!-)", re.ASCII)
_NUMERIC: Final = re.compile(r"(?:0x[0-9a-f]*|\d+)(?:\.(?:0x[0-9a-f]*|\d+))*", re.ASCII)

# Above 1023 a web server may have any port but those that belong to other services: Fetch's list of bad ports (WHATWG),
# and databases, queues and cluster managers, which do what a request that is no request of theirs says.
_OTHER_SERVICES: Final = frozenset((
    1433, 1521, 1719, 1720, 1723, 2049, 2375, 2376, 2379, 2380, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432, 5672, 5900,
    6000, 6379, 6443, 6566, *range(6665, 6670), 6679, 6697, 9042, 9092, 9200, 9300, 10080, 10250, 11211, 27017,
))  # fmt: skip

# Not public although Python's `is_global` of some versions says so. IPv6: only 2000::/3 is handed out at all.
_REFUSED_4: Final = [
    ipaddress.IPv4Network(net)
    for net in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
        "168.63.129.16/32",  # Azure's host agent answers here, on a public number
    )
]  # fmt: skip
_REFUSED_6: Final = [
    ipaddress.IPv6Network(net) for net in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
]
_HANDED_OUT_6: Final = ipaddress.IPv6Network("2000::/3")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Whether a numeric address is one of the public internet (IANA special-purpose registries, both families)."""
    try:
        number = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(number, ipaddress.IPv6Address):
        if number in _NAT64:  # how a network without IPv4 reaches IPv4 hosts: judged by the address inside
            return is_public(str(ipaddress.IPv4Address(number.packed[-4:])))
        return (
            number.scope_id is None
            and number in _HANDED_OUT_6
            and number.is_global
            and not any(number in net for net in _REFUSED_6)
        )
    return number.is_global and not any(number in net for net in _REFUSED_4)


def _refuse(url: str, why: str) -> NoReturn:
    # Credentials and control signs must not reach a log by way of the message.
    shown = re.sub(r"//[^/@]*@", "//…@", "".join(c if c.isprintable() else "?" for c in url))[:200]
    raise AddressRefused(f"{shown!r} is not fetched: {why}.", mend="Only public http(s) addresses are.")


def check_url(url: str) -> tuple[str, str, int]:
    """Judge an address as it is written and give its scheme, host (ASCII, lower case) and port.

    Raises AddressRefused for other schemes than http and https, credentials, hosts that are numbers in an unusual or
    non-public form, names that mean an inner network, and ports that no web server has.
    """
    if len(url) > 8192:
        _refuse(url, "it is longer than 8,192 characters")
    if any(c.isspace() or not c.isprintable() or c == "\\" for c in url):
        _refuse(url, "it holds white space, control characters or backslashes")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        _refuse(url, "it cannot be read")
    scheme = parts.scheme.lower()
    if scheme not in {"http", "https"}:
        _refuse(url, f"{scheme or 'no scheme'} is neither http nor https")
    if "@" in parts.netloc:
        _refuse(url, "it holds credentials")
    host = _check_host(url, parts.hostname or "", bracketed="[" in parts.netloc)
    port = port if port is not None else {"http": 80, "https": 443}[scheme]
    if port not in {80, 443} and (not 1024 <= port <= 65535 or port in _OTHER_SERVICES):
        _refuse(url, f"no web server has port {port}")
    return scheme, host, port


def _check_host(url: str, host: str, *, bracketed: bool) -> str:
    if bracketed:
        if not is_public(host):
            _refuse(url, "its host is no public address")
        return host.lower()
    # What browsers fold (full-width digits, other full stops) is folded before judging.
    plain = unicodedata.normalize("NFKC", host).replace("\u3002", ".").lower().removesuffix(".")
    # Digits of other scripts are digits to some resolvers.
    plain = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in plain)
    if _NUMERIC.fullmatch(plain):
        # 127.1, 0x7f.0.0.1, 2130706433 and 0177.0.0.1 are read by some as 127.0.0.1: only four plain numbers pass.
        if not is_public(plain):
            _refuse(url, "its host is no public address in the usual form")
        return plain
    try:
        plain = plain.encode("idna").decode() if not plain.isascii() else plain
    except UnicodeError:
        _refuse(url, "its host is no name")
    if _INNER_NAMES.fullmatch(plain):
        _refuse(url, "its host names an inner network")
    # A name that ends in a number is read as an address by some (WHATWG URL, 3.5).
    if not _HOST_NAME.fullmatch(plain) or _NUMERIC.fullmatch(plain.rpartition(".")[2]):
        _refuse(url, "its host is no full public name")
    return plain


def check_resolved(host: str, addresses: Sequence[str]) -> list[str]:
    """Judge what a host resolves to; one inner address among public ones is enough to refuse it.

    Raises AddressRefused.
    """
    for address in addresses:
        if not is_public(address):
            raise AddressRefused(
                f"{host} is not fetched: it resolves to {address}, which is no public address.",
                mend="Only public http(s) addresses are.",
            )
    return list(addresses)


async def resolve(host: str, port: int) -> list[str]:
    """Ask the system's resolver. Raises OSError where the host has no address."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def resolve_offline(host: str, port: int) -> list[str]:  # noqa: ARG001
    """Ask the hosts file alone: while recordings are replayed no name is looked up in the network."""
    return [entry[0] for entry in _hosts_file() if host in entry[1:]]


@functools.cache
def _hosts_file() -> list[list[str]]:
    try:
        lines = Path("/etc/hosts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line.partition("#")[0].lower().split() for line in lines]
