"""Which device to compute on, found without importing a model library."""

from __future__ import annotations

import ctypes
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from corpus.errors import UsageError

DEVICES = ("auto", "cpu", "cuda", "mps")


def choose_device(asked: str = "auto") -> str:
    """Return the device to use: what was asked for, or for `auto` the fastest that is there.

    Raises UsageError for a device that there is not, rather than falling back to a slow one without a word.
    """
    kind = asked.partition(":")[0]
    if kind not in DEVICES:
        raise UsageError(f"There is no device {asked!r}.", mend=f"Choose one of: {', '.join(DEVICES)}.")
    if kind == "cpu":
        return "cpu"
    if kind == "cuda" and not n_cuda_devices():
        raise UsageError(
            "No CUDA device can be used: there is no driver, no card, or torch is a build without CUDA.",
            mend="Install torch's CUDA build, or choose --device cpu.",
        )
    if kind == "mps" and not _has_mps():
        raise UsageError("MPS is there on Apple silicon only.", mend="Choose --device cpu.")
    if kind != "auto":
        return asked
    if n_cuda_devices():
        return "cuda"
    return "mps" if _has_mps() else "cpu"


def n_cuda_devices() -> int:
    """Count the CUDA devices that this process could use; 0 without a driver or with a torch that cannot."""
    try:
        if "+cpu" in version("torch"):
            return 0
    except PackageNotFoundError:
        return 0
    try:
        # The driver itself, because asking torch costs seconds and hundreds of megabytes that a CPU node can spare.
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        count = ctypes.c_int(0)
        if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
            return 0
    except (OSError, AttributeError):
        return 0
    return count.value


def _has_mps() -> bool:
    return sys.platform == "darwin" and platform.machine() == "arm64"
