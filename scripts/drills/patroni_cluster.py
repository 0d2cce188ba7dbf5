"""Two servers and a witness under Patroni on one machine, from the embedded server's programs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from common import ROOT, say

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
import contextlib

from corpus.embedded import binaries

PASSWORD = "drill"
VERSION = "4.1.5"
NAMES = ("one", "two")


def patroni_folder() -> Path:
    """A virtual environment with Patroni that the servers' user can read: of the system's Python, made once."""
    folder = Path(os.environ.get("BRAIN_PATRONI") or "/var/tmp/research-brain-patroni")
    if not (folder / "bin" / "patroni").exists():
        say("installing Patroni")
        python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        words = [str(folder / "bin" / "pip"), "-q", "install", f"patroni[raft]=={VERSION}", "psycopg[binary]"]
        subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
    return folder


def of_deploy(*names: str) -> dict[str, object]:
    """Settings as deploy/patroni/patroni.yml has them: what is measured here is what is delivered."""
    import yaml

    dcs = yaml.safe_load((ROOT / "deploy" / "patroni" / "patroni.yml").read_text())["bootstrap"]["dcs"]
    return {name: dcs[name] for name in names}


class Cluster:
    """The cluster of one drill; everything is below `folder` and belongs to the servers' user."""

    def __init__(self, folder: Path, port: int = 5641) -> None:
        self.folder = folder
        self.user = "pgserver" if os.geteuid() == 0 else None
        self.bin = patroni_folder() / "bin"
        self.ports = dict(zip(NAMES, (port, port + 1), strict=True))
        self.rests = dict(zip(NAMES, (port + 100, port + 101), strict=True))
        self.rafts = dict(zip((*NAMES, "witness"), (port + 200, port + 201, port + 202), strict=True))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True)
        self._own(folder)

    def address(self, attrs: str) -> str:
        """Both machines, and which of them is wanted."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        return f"postgresql://postgres:{PASSWORD}@{hosts}/brain?target_session_attrs={attrs}"

    def start(self, name: str) -> None:
        """Start one node, or the witness."""
        path = self.folder / f"{name}.yml"
        path.write_text(json.dumps(self._settings(name)))  # JSON is YAML too
        self._own(path)
        program = "patroni_raft_controller" if name == "witness" else "patroni"
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [str(self.bin / program), str(path)], cwd="/", user=self.user, group=self.user, stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, start_new_session=True, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            )  # fmt: skip

    def destroy(self, name: str, *, with_patroni: bool = True) -> None:
        """The server is killed and the folder of the database gone; with its Patroni, as a machine without power."""
        data = self.folder / name / "data"
        pids = [self.processes[name].pid] if with_patroni else []
        with contextlib.suppress(OSError, ValueError, IndexError):
            pids.append(int((data / "postmaster.pid").read_text().split()[0]))
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if with_patroni:
            self.processes[name].wait()
        for _ in range(20):
            shutil.rmtree(data, ignore_errors=True)
            if not data.exists():
                return
            time.sleep(0.2)

    def stop(self) -> None:
        """End everything that was started."""
        for name in NAMES:
            if name in self.processes:
                self.destroy(name)
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()

    def leader(self) -> str | None:
        """The node that has the leader's key and takes writes."""
        return next((name for name in NAMES if self._ask(name, "primary") == 200), None)

    def sync_standby(self) -> str | None:
        """The node that holds every acknowledged write."""
        return next((name for name in NAMES if self._ask(name, "synchronous") == 200), None)

    def wait(self, what: str, condition, seconds: float = 120) -> float:
        """Wait until the condition holds; the seconds it took. Ends the drill when it does not."""
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > seconds:
                sys.exit(f"the drill waited {seconds:.0f} s for {what}\n{self._logs()}")
            time.sleep(0.2)
        return time.monotonic() - began

    def _ask(self, name: str, path: str) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.rests[name]}/{path}", timeout=2) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def _logs(self) -> str:
        return "\n".join(f"{p.name}: {p.read_text(errors='replace')[-1200:]}" for p in self.folder.glob("*.log"))

    def _own(self, path: Path) -> None:
        if self.user is not None:
            shutil.chown(path, self.user, self.user)

    def _settings(self, name: str) -> dict[str, object]:
        raft_folder = self.folder / name / "raft"
        raft_folder.mkdir(parents=True, exist_ok=True)
        self._own(self.folder / name)
        self._own(raft_folder)
        raft = {
            "data_dir": str(raft_folder), "self_addr": f"127.0.0.1:{self.rafts[name]}",
            "partner_addrs": [f"127.0.0.1:{port}" for other, port in self.rafts.items() if other != name],
        }  # fmt: skip
        if name == "witness":
            return {"raft": raft}
        rest, port = f"127.0.0.1:{self.rests[name]}", f"127.0.0.1:{self.ports[name]}"
        return {
            "scope": "drill", "name": name, "raft": raft, "restapi": {"listen": rest, "connect_address": rest},
            "bootstrap": {
                "dcs": {
                    **of_deploy("ttl", "loop_wait", "retry_timeout", "primary_start_timeout", "synchronous_mode", "maximum_lag_on_failover"),
                    "postgresql": {"use_pg_rewind": True, "parameters": {
                        "wal_log_hints": "on", "hot_standby_feedback": "on", "max_connections": 100, "shared_buffers": "128MB", "max_wal_senders": 10,
                    }},
                },
                "initdb": ["data-checksums", {"encoding": "UTF8"}, {"locale-provider": "builtin"}, {"builtin-locale": "C.UTF-8"}, {"locale": "C"}],
            },
            "postgresql": {
                "listen": port, "connect_address": port, "data_dir": str(self.folder / name / "data"), "bin_dir": str(binaries()), "pgpass": str(self.folder / name / "pgpass"),
                "basebackup": [{"checkpoint": "fast"}],
                "parameters": {"unix_socket_directories": str(self.folder / name)},
                "pg_hba": ["local all all trust", "host all all 127.0.0.1/32 scram-sha-256", "host replication all 127.0.0.1/32 scram-sha-256"],
                "authentication": {
                    "superuser": {"username": "postgres", "password": PASSWORD},
                    "replication": {"username": "replicator", "password": PASSWORD},
                },
            },
        }  # fmt: skip
