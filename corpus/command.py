"""How every program of the project starts and ends: log set up, errors told, exit codes kept."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import Any, TextIO, cast

from corpus.errors import BrainError


def run_app(app: Any, words: list[str] | None = None, *, log_level: str = "info") -> int:
    """Run a cyclopts app; the exit code. A usage error is 2, one of ours its own code, anything else a fault of ours.

    `log_level` is for what BRAIN_LOG_LEVEL does not set: services tell every unit of work, commands only what is wrong.
    """
    from cyclopts import CycloptsError

    set_up_log(log_level)
    try:
        result = app(words, exit_on_error=False, print_error=True, result_action="return_value")
    except CycloptsError:
        return 2
    except BrainError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("stopped; what was done is kept, and the same command goes on from there", file=sys.stderr)
        return 130
    except BrokenPipeError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Exception as error:
        translated = _translated(error)
        if translated is None:
            raise
        print(f"error: {translated}", file=sys.stderr)
        return translated.exit_code
    return result if isinstance(result, int) and not isinstance(result, bool) else 0


def _translated(error: Exception) -> BrainError | None:
    """Database errors that no border translated."""
    import psycopg

    if not isinstance(error, psycopg.Error):
        return None
    from corpus.database import Database, translate
    from corpus.dburl import DatabaseUrl

    return translate(error, Database(DatabaseUrl(conninfo="")))


class _Stderr:
    """Standard error as it is when something is said. Nobody's work ends because nobody can listen any more."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()


def set_up_log(default_level: str = "info", *, is_json: bool | None = None) -> None:
    """One line an event on stderr: words for a terminal, JSON where BRAIN_LOG_JSON is set. Never payloads."""
    import logging

    import structlog

    level = getattr(logging, (os.environ.get("BRAIN_LOG_LEVEL") or default_level).upper(), logging.INFO)
    is_json = is_json if is_json is not None else bool(os.environ.get("BRAIN_LOG_JSON"))
    logging.basicConfig(
        level=max(level, logging.WARNING), stream=sys.stderr, format="%(levelname)s %(name)s %(message)s"
    )
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # whoever owns a connection tells its loss, once
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer()
            if is_json
            else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(file=cast("TextIO", _Stderr())),
        cache_logger_on_first_use=True,
    )
