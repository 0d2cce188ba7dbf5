"""The command `embed-worker`: a farm node."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from importlib import metadata
from typing import Annotated

from cyclopts import App, Parameter


def work(
    *,
    db: Annotated[
        str | None,
        Parameter(
            name="--db",
            help="Database: embedded:DIR or a libpq URL; else BRAIN_DB, else the embedded one in BRAIN_HOME.",
        ),
    ] = None,
    device: Annotated[str, Parameter(help="auto, cpu, cuda, cuda:N or mps.")] = "auto",
    drain: Annotated[
        bool, Parameter(negative=(), help="End when nothing is left; exit 3 when something failed.")
    ] = False,
    name: Annotated[str | None, Parameter(help="The node's name; the machine's name and a number without it.")] = None,
    lease: Annotated[
        float, Parameter(help="Seconds after which the work of a node that died is given to others.")
    ] = 30.0,
) -> int:
    """Claim work from the farm, cut and embed it, until stopped. Start as many as there are machines.

    The encoder is the database's; this node proves itself against its reference embeddings before it claims. SIGTERM
    finishes what is under way or gives it back. Exit 3: something failed (`brain failures`). Exit 5: refused.
    """
    from corpus.errors import UsageError

    if not 1 <= lease <= 86_400:
        raise UsageError(f"--lease {lease:g} cannot be used.", mend="Take 1 to 86400 seconds; 30 is usual.")
    from corpus.database import Database
    from corpus.schema import check_schema
    from corpus.settings import Settings
    from embed_worker.worker import Options, Worker

    settings = Settings()
    database = Database.named(db, settings, application_name=f"embed-worker {name or os.getpid()}")
    database.ensure_started(lambda text: print(text, file=sys.stderr))
    with database.connect() as connection:
        check_schema(connection)
    options = Options(
        cache=settings.cache_dir, version=metadata.version("research-brain"), name=name, device=device, is_draining=drain,
        lease_s=lease,
    )  # fmt: skip
    return _run(database, options, Worker)


def _run(database, options, worker_class) -> int:  # noqa: ANN001 - their modules are imported by the caller, late
    from corpus.database import translated

    async def live() -> int:
        worker = worker_class(database, options)
        loop = asyncio.get_running_loop()
        for sign in (signal.SIGTERM, signal.SIGINT):
            try:
                loop.add_signal_handler(sign, worker.stop)
            except NotImplementedError:  # Windows
                signal.signal(sign, lambda *_: loop.call_soon_threadsafe(worker.stop))
        return await worker.run()

    factory = asyncio.SelectorEventLoop if sys.platform == "win32" else None
    with translated(database), asyncio.Runner(loop_factory=factory) as runner:
        code = runner.run(live())
    sys.stdout.flush()
    sys.stderr.flush()
    # A call of the encoder may still run in its thread; it holds nothing any more, and nobody waits for it.
    os._exit(code)


def make_app() -> App:
    """The command line."""
    app = App(name="embed-worker", help=work.__doc__, version=lambda: metadata.version("research-brain"))
    app.default(work)
    return app


def main(words: list[str] | None = None) -> None:
    """Run `embed-worker` and exit with its code."""
    from corpus.command import run_app

    sys.exit(run_app(make_app(), words))


if __name__ == "__main__":
    main()
