"""Nodes: how a process of the farm makes itself known, and its signs of life."""

from __future__ import annotations

import json
import os
import platform
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psutil
import structlog
from psycopg import AsyncConnection, errors

from sql.files import queries

log = structlog.get_logger()

BEAT_S = 5.0
"""Seconds between two signs of life."""

SILENT_S = 30.0
"""After so long without a sign of life, six missed ones, a node counts as silent."""


def machine() -> dict[str, Any]:
    """What of this machine the farm's picture shows."""
    return {
        "cores": os.cpu_count(),
        "memory_mb": psutil.virtual_memory().total // 2**20,
        "system": platform.system(),
        "python": platform.python_version(),
    }


@dataclass(slots=True)
class Beat:
    """One sign of life."""

    state: str
    device: str | None = None
    backend: str | None = None
    encoder_id: int | None = None
    rate: Mapping[str, float] | None = None
    detail: Mapping[str, Any] | None = None
    error: str | None = None


async def register(
    connection: AsyncConnection[Any], *, role: str, name: str | None, version: str, device: str | None = None
) -> tuple[int, str]:
    """Make or take over a node row; returns its number and name.

    Without a name it is the host's with the first number that no living process holds; a given name that a living
    process holds gets a number too. Safe to call again after a lost connection.
    """
    host = socket.gethostname()
    base = name or host
    pids = await (await connection.execute(queries("farm")["node_pids"], {"role": role, "host": host})).fetchall()
    dead = [pid for (pid,) in pids if pid == os.getpid() or not psutil.pid_exists(pid)]
    values = {
        "role": role, "host": host, "pid": os.getpid(), "device": device, "backend": None, "version": version,
        "detail": json.dumps(machine()), "dead_pids": dead,
    }  # fmt: skip
    number = 1
    while True:
        tried = base if name is not None and number == 1 else f"{base}-{number}"
        try:
            row = await (
                await connection.execute(queries("farm")["node_register"], {**values, "name": tried})
            ).fetchone()
        except errors.InsufficientPrivilege as error:
            if not await _is_taken(connection, role, tried):
                raise
            row = None  # the name is another login's
            log.debug("node_name_taken", name=tried, error=str(error))
        if row is not None:
            return row[0], tried
        number += 1


async def _is_taken(connection: AsyncConnection[Any], role: str, name: str) -> bool:
    return (
        await (await connection.execute("SELECT FROM node WHERE role = %s AND name = %s", [role, name])).fetchone()
        is not None
    )


async def beat(connection: AsyncConnection[Any], node_id: int, sign: Beat) -> bool:
    """Write a sign of life; false when the node's row is no more."""
    cursor = await connection.execute(
        queries("farm")["node_beat"],
        {
            "node_id": node_id, "state": sign.state, "device": sign.device, "backend": sign.backend,
            "encoder_id": sign.encoder_id, "rate": json.dumps(dict(sign.rate or {})),
            "detail": json.dumps({**machine(), **(sign.detail or {})}), "error": sign.error,
        },
    )  # fmt: skip
    return cursor.rowcount == 1
