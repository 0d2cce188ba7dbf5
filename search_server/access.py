"""Who may ask: on another address than loopback, callers with the token or from the trusted network."""

from __future__ import annotations

import ipaddress
import secrets
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from corpus.errors import UsageError
from search_server.problems import plain_problem

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
OPEN_PATHS = frozenset({"/livez", "/readyz"})


@dataclass(frozen=True, slots=True)
class Access:
    """Rules of one server. Without token and network everybody on the address may ask."""

    token: str | None = None
    networks: tuple[Network, ...] = ()

    def allows(self, client: str | None, authorization: str | None) -> bool:
        """Whether a caller may ask."""
        if self.token is None and not self.networks:
            return True
        if self.token is not None and authorization is not None:
            scheme, _, given = authorization.partition(" ")
            if scheme.lower() == "bearer" and secrets.compare_digest(given.strip().encode(), self.token.encode()):
                return True
        try:
            address = ipaddress.ip_address((client or "").partition("%")[0])
        except ValueError:
            return False
        if address.version == 6 and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address.version == network.version and address in network for network in self.networks)


def check_access(host: str, token: str | None, networks: list[str]) -> Access:
    """Read the rules of a command line. Raises UsageError when an open address has none."""
    try:
        read = tuple(ipaddress.ip_network(network, strict=False) for network in networks)
    except ValueError as error:
        raise UsageError(f"--trusted-network: {error}.", mend="Give a network such as 192.168.1.0/24.") from error
    if token is not None and len(token) < 8:
        raise UsageError("--token is shorter than 8 characters.", mend="Choose a longer one.")
    if not is_loopback(host) and token is None and not read:
        raise UsageError(
            f"--host {host} opens the server to other machines.",
            mend="Add --token SECRET (callers send `Authorization: Bearer SECRET`) or --trusted-network CIDR.",
        )
    return Access(token, read)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class AccessMiddleware:
    """Refuses callers that the rules do not allow; signs of life stay open."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 or pass on."""
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            headers = {name: value for name, value in scope["headers"] if name == b"authorization"}
            given = headers.get(b"authorization")
            client = scope["client"][0] if scope.get("client") else None
            if not self._access.allows(client, given.decode("latin-1") if given else None):
                response = plain_problem(
                    401, "not-allowed", "Not allowed", "Send the token as `Authorization: Bearer …`.",
                    {"WWW-Authenticate": "Bearer"},
                )  # fmt: skip
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)
