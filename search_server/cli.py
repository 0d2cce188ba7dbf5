"""The command `search-server`: serves until SIGINT or SIGTERM."""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

if TYPE_CHECKING:
    import uvicorn

_GRACE_S = 3
_SWITCH_S = 0.0005
_MAX_HEAD_BYTES = 1 << 20  # a question of 8,000 characters, percent-encoded, passes 64 KiB


def serve(
    *,
    db: Annotated[
        str | None,
        Parameter(
            name="--db",
            help="Database: embedded:DIR or a libpq URL; else BRAIN_DB, else the embedded one in BRAIN_HOME.",
        ),
    ] = None,
    host: Annotated[
        str, Parameter(help="Address to listen on; another one than loopback needs --token or --trusted-network.")
    ] = "127.0.0.1",
    port: Annotated[int, Parameter(help="Port; 0 chooses a free one and prints it.")] = 8010,
    token: Annotated[str | None, Parameter(help="Callers must send `Authorization: Bearer TOKEN`.")] = None,
    trusted_network: Annotated[
        list[str] | None, Parameter(negative=(), help="Callers from this network (CIDR, repeatable) need no token.")
    ] = None,
) -> int:
    """Answer questions over HTTP: words at once, vectors as soon as the encoder is loaded.

    Try `curl 'http://127.0.0.1:8010/brain_search?q=…'`; /docs shows everything. Without --host only this machine can ask.
    """
    from corpus.errors import UsageError
    from search_server.access import check_access

    access = check_access(host, token, trusted_network or [])
    if not 0 <= port <= 65535:
        raise UsageError(f"--port {port} is no port.", mend="Choose 0 to 65535.")
    from corpus.database import Database
    from corpus.schema import check_schema
    from corpus.settings import Settings
    from search_server.app import create_app

    settings = Settings()
    database = Database.named(db, settings, application_name="search-server")
    database.ensure_started(lambda text: print(text, file=sys.stderr, flush=True))
    with database.connect() as connection:
        check_schema(connection)
    listener = _listen(host, port)
    return _run(create_app(database, settings, access=access), listener)


def _listen(host: str, port: int) -> socket.socket:
    """Bind before anything else is loaded. Raises UsageError when the address is taken."""
    from corpus.errors import UsageError

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"{host}:{port} cannot be listened on: {error.strerror or error}.",
            mend="Choose another --port, or --port 0.",
        ) from error
    return listener


def _run(app: Any, listener: socket.socket) -> int:
    import asyncio
    import gc

    import uvicorn

    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=_GRACE_S, timeout_keep_alive=30,
        http="h11", h11_max_incomplete_event_size=_MAX_HEAD_BYTES, lifespan="on", server_header=False,
    )  # fmt: skip

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Ours below: uvicorn's would end the process by the signal and not with 0."""
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                gc.freeze()
                # Threads of the word index hand the interpreter over sooner: they and the event loop wait on each other.
                sys.setswitchinterval(_SWITCH_S)
                name, port = listener.getsockname()[:2]
                shown = f"[{name}]" if ":" in name else name
                print(f"search-server answers on http://{shown}:{port}", flush=True)

    server = Server(config)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        for sign in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(sign, _stop, server)
            except NotImplementedError:
                signal.signal(sign, lambda *_: _stop(server))
        await server.serve(sockets=[listener])

    # uvloop where it is installed.
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(run())
    return 0 if server.started else 1


def _stop(server: uvicorn.Server) -> None:
    """Once: finish what is under way; twice: now."""
    server.force_exit = server.should_exit
    server.should_exit = True


def main(words: list[str] | None = None) -> None:
    """Run `search-server` and exit with its code."""
    from importlib import metadata

    from corpus.command import run_app

    app = App(name="search-server", help_format="markdown", version=lambda: metadata.version("research-brain"))
    app.default(serve)
    sys.exit(run_app(app, words))
