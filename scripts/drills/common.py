"""What the drills share: a home of their own, the program's commands, the papers and a collection beside the checkout."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BIN = ROOT / ".venv" / "bin"
SHARED = Path(os.environ.get("BRAIN_TEST_SHARED") or ROOT.parent / "shared")


class Drill:
    """One home with its seed files and shards, and the commands that work on it."""

    def __init__(self, folder: Path, encoder: str) -> None:
        self.folder = folder
        self.home, self.seeds, self.vectors = folder / "home", folder / "seeds", folder / "vectors"
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("BRAIN_")},
            "BRAIN_HOME": str(self.home), "BRAIN_SEEDS": str(self.seeds), "BRAIN_ENCODER": encoder, "BRAIN_LOG_LEVEL": "warning",
        }  # fmt: skip
        if cache := os.environ.get("BRAIN_CACHE"):
            self.env["BRAIN_CACHE"] = cache

    def run(
        self, *words: str, ok: tuple[int, ...] = (0,), prefix: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run a command; how long it took is told. Ends the drill when its exit code is none of `ok`."""
        began = time.monotonic()
        done = subprocess.run(
            [*prefix, str(BIN / words[0]), *words[1:]],
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        say(f"{' '.join(words[:3])}: exit {done.returncode}, {time.monotonic() - began:.1f} s")
        if done.returncode not in ok:
            sys.exit(f"the drill failed at {' '.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        return done

    def load(self) -> None:
        """The 22 papers and the 22 hard files, SciFact with its ready embeddings, everything embedded."""
        self.run("brain", "init")
        self.run("brain", "ingest", "--pdfs", str(need("papers")), ok=(0, 3))
        self.run(
            "brain", "ingest", "--jsonl", str(need("collections", "scifact", "corpus.jsonl.gz")), "--prefix", "scifact"
        )
        self.run("brain", "vectors", "import", str(need("vectors", "scifact-00000.npz")), ok=(0, 5))
        self.run("embed-worker", "--drain")

    def compare(self) -> dict[str, object]:
        """The corpus as it is beside the receipt of the seed files."""
        return json.loads(self.run("brain", "receipt", "--compare", str(self.seeds), "--json", ok=(0, 3)).stdout)


def need(*parts: str) -> Path:
    """A path of the shared data; ends the drill when it is missing."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        sys.exit(f"{path} is missing: this drill works on real papers beside the checkout (BRAIN_TEST_SHARED)")
    return path


def say(text: str) -> None:
    """A word for the person who waits."""
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def drill(encoder: str) -> Iterator[Drill]:
    """A drill in a folder that the server's user may enter; its server is stopped and all is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="brain-drill-", dir="/var/tmp"))
    folder.chmod(0o755)
    made = Drill(folder, encoder)
    try:
        yield made
    finally:
        subprocess.run([str(BIN / "brain"), "db", "stop"], env=made.env, cwd=folder, capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)


def without_network() -> tuple[str, ...]:
    """Words that run a command without any network; empty where this user may not do that."""
    words = ("unshare", "--net")
    done = subprocess.run([*words, "true"], capture_output=True, check=False) if shutil.which("unshare") else None
    if done is None or done.returncode != 0:
        say("this user may not take the network away; the commands get --offline alone")
        return ()
    return words


def finish(result: dict[str, object], is_good: bool) -> None:
    """Print the drill's figures and end with 0 when they are as they must be."""
    print(json.dumps({**result, "passed": is_good}, indent=1, default=str))
    sys.exit(0 if is_good else 1)
