"""From a name to a spec, and from a spec to a working encoder."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from corpus.errors import EncoderUnavailable, UsageError
from encoders.base import Encoder, EncoderSpec
from encoders.cache import Progress, default_cache, silent
from encoders.devices import choose_device
from encoders.hashing import HASHING, HashingEncoder
from encoders.known import KNOWN, find_known
from encoders.weights import folder_of, spec_of_folder

SERVICES = ("ollama", "openai")
BACKENDS = ("auto", "torch", "openvino")


def resolve_spec(name: str, *, cache: Path | None = None, progress: Progress = silent) -> EncoderSpec:
    """Find the spec behind what a user writes.

    That is `hashing`, `all-mpnet-base-v2`, a directory, `ollama:MODEL@URL` or `openai:MODEL@URL`. Imports no model
    library and fetches no weights. Raises UsageError for a name that means nothing, EncoderUnavailable where the
    identity must be asked of a service that does not answer.
    """
    name = name.strip()
    if name == HASHING.name:
        return HASHING
    if name.partition(":")[0] in SERVICES:
        from encoders.http_encoder import resolve_service

        return resolve_service(name)
    name = name.removeprefix("known:").removeprefix("dir:")  # a spec's own `source` is a name too
    looks_like_path = "/" in name or "\\" in name or name.startswith((".", "~"))
    folder = Path(name).expanduser()
    if looks_like_path and folder.is_dir():
        return spec_of_folder(folder, cache=cache, progress=progress)
    known = find_known(name)
    if known and known.weights_sha256:
        return known.spec(source=f"known:{known.name}")
    if name and folder.is_dir():
        return spec_of_folder(folder, cache=cache, progress=progress)
    if known:
        raise UsageError(
            f"The weights of {known.name} do not come with this project.",
            mend=f"Give a folder that holds {known.hub}, or a service: ollama:{known.name}@http://HOST:PORT.",
        )
    names = ", ".join([HASHING.name, *(each.name for each in KNOWN if each.weights_sha256)])
    raise UsageError(
        f"There is no encoder {name!r}.",
        mend=f"Choose one of: {names}, the path of a model's folder, ollama:MODEL@URL, openai:MODEL@URL.",
    )


def load_encoder(
    which: EncoderSpec | str,
    *,
    device: str = "auto",
    backend: str = "auto",
    cache: Path | None = None,
    progress: Progress = silent,
) -> Encoder:
    """Make a working encoder for a spec or a name. Weights are fetched into `cache` (default: the user's) when missing.

    `device`: auto, cpu, cuda, cuda:N, mps. `backend`: auto, torch, openvino (which is CPU only). Raises
    EncoderUnavailable, EncoderRefused, UsageError.
    """
    if backend not in BACKENDS:
        raise UsageError(f"There is no backend {backend!r}.", mend=f"Choose one of: {', '.join(BACKENDS)}.")
    cache = cache or default_cache()
    spec = which if isinstance(which, EncoderSpec) else resolve_spec(which, cache=cache, progress=progress)
    if spec.source == HASHING.source or spec.weights_sha256 == HASHING.weights_sha256:
        return HashingEncoder()
    if spec.source.partition(":")[0] in SERVICES:
        from encoders.http_encoder import open_service

        return open_service(spec)
    return _load_local(spec, device, backend, cache, progress)


def _load_local(spec: EncoderSpec, device: str, backend: str, cache: Path, progress: Progress) -> Encoder:
    chosen = choose_device(device)
    has_openvino = find_spec("openvino") is not None
    if backend == "openvino" and (chosen != "cpu" or not has_openvino):
        why = "computes on CPUs only here" if chosen != "cpu" else "is not installed"
        raise UsageError(f"The backend openvino {why}.", mend="Choose --device cpu, or another backend.")
    if backend != "torch" and chosen == "cpu" and has_openvino:
        from encoders.openvino_encoder import NotConvertibleError, load_openvino

        try:
            return load_openvino(spec, cache=cache, progress=progress)
        except NotConvertibleError:
            if backend == "openvino" or find_spec("torch") is None:
                raise
            progress("OpenVINO cannot take this model: using torch", 0, 0)
    if find_spec("torch") is None or find_spec("sentence_transformers") is None:
        raise EncoderUnavailable(
            f"The encoder {spec.name} needs a model library, and none is installed.",
            mend="Install the extra `encoder` of this project, or use the encoder `hashing`.",
        )
    from encoders.torch_encoder import load_torch

    return load_torch(spec, folder_of(spec, cache=cache, progress=progress), device=chosen)
