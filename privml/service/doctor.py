# SPDX-License-Identifier: Apache-2.0
"""What this machine offers privml, and what to do about what is missing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import resource
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GOOD, LACKING, BROKEN = "ok", "missing", "broken"

# Instruction sets in the order of /proc/cpuinfo's names, and what is slower without them.
_FEATURES = {
    "aes": "hashing and random bits",
    "avx2": "products and bit transposes",
    "avx512f": "products in wide rings",
    "vaes": "oblivious transfers",
    "gfni": "bit transposes",
}
_NEEDED = ("torch", "numpy", "onnx", "hydra-core", "safetensors", "rich", "cryptography")
# Package -> (what it is for, how to get it).
_OPTIONAL = {
    "onnxruntime": ("comparing imported models with their reference", "pip install onnxruntime"),
    "skl2onnx": ("models of scikit-learn", 'pip install "privml[sklearn]"'),
    "mlflow": ("tracking of experiments", 'pip install "privml[experiments]"'),
    "matplotlib": ("curves and reports", "pip install matplotlib"),
}
_LEAST_DESCRIPTORS = 1024
_LEAST_MEMORY_GIB = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """``advice`` is empty where nothing needs to be done."""

    subject: str
    state: str
    found: str
    advice: str = ""


def examine() -> list[Finding]:
    """Everything, in the order in which it is worth mending. Opens no connection beyond this machine."""
    return [*_core(), *_packages(), *_processor(), *_graphics(), *_system(), *_network()]


def _core() -> Iterator[Finding]:
    try:
        from privml import _core

        second = _core.memory_pair()
        second[0].write(b"x")
        second[0].flush()
        works = second[1].read(1) == b"x"
        yield Finding("compiled core", GOOD if works else BROKEN, str(Path(_core.__file__).name))
    except ImportError as error:
        yield Finding("compiled core", BROKEN, str(error), "build it: pip install . (or make build in a checkout)")


def _packages() -> Iterator[Finding]:
    yield Finding("Python", GOOD, f"{platform.python_version()} ({sys.executable})")
    for name in _NEEDED:
        version = _version(name)
        if version:
            yield Finding(name, GOOD, version)
        else:
            yield Finding(name, BROKEN, "not installed", f"pip install {name}")
    yield Finding("OpenSSL", GOOD, ssl.OPENSSL_VERSION)
    for name, (purpose, advice) in _OPTIONAL.items():
        version = _version(name)
        yield Finding(name, GOOD if version else LACKING, version or f"for {purpose}", "" if version else advice)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> Iterator[Finding]:
    info = Path("/proc/cpuinfo")
    text = info.read_text() if info.exists() else ""
    said = dict(line.split(":", 1) for line in reversed(text.splitlines()) if ":" in line)
    said = {name.strip(): value.strip() for name, value in said.items()}
    model = said.get("model name", platform.machine())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("processor", GOOD, f"{model}, {cores} cores for this process")
    flags = set(said.get("flags", "").split())
    missing = {name: what for name, what in _FEATURES.items() if name not in flags}
    there = [name for name in _FEATURES if name in flags]
    slower = "; slower without: " + ", ".join(f"{what} ({name})" for name, what in missing.items()) if missing else ""
    yield Finding("instruction sets", LACKING if missing else GOOD, (", ".join(there) or "none known") + slower)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    enough = memory >= _LEAST_MEMORY_GIB
    advice = "" if enough else "large models need more; small batches help"
    yield Finding("memory", GOOD if enough else LACKING, f"{memory:.1f} GiB", advice)


def _graphics() -> Iterator[Finding]:
    import torch

    if not torch.cuda.is_available():
        found = "torch sees no CUDA device"
        yield Finding("GPU", LACKING, found, "engine=threepc computes on CPUs; a CUDA device makes it faster")
        return
    name, memory = torch.cuda.get_device_name(), torch.cuda.get_device_properties(0).total_memory / 2**30
    cupy = next((package for package in ("cupy-cuda13x", "cupy-cuda12x", "cupy") if _version(package)), None)
    advice = "" if cupy else 'pip install "privml[gpu]"'
    yield Finding("GPU", GOOD if cupy else LACKING, f"{name}, {memory:.0f} GiB, {cupy or 'without CuPy'}", advice)


def _system() -> Iterator[Finding]:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = soft >= _LEAST_DESCRIPTORS
    advice = "" if enough else f"ulimit -n {_LEAST_DESCRIPTORS}: a server of many clients needs more"
    yield Finding("open files", GOOD if enough else LACKING, str(soft), advice)


def _network() -> Iterator[Finding]:
    """Whether the kernel can imitate loss and delay between processes; the networks of privml itself need nothing."""
    if shutil.which("tc") is None or shutil.which("ip") is None:
        advice = "apt-get install iproute2, to try packet loss; network=lan and wan work without it"
        yield Finding("network emulation", LACKING, "tc or ip is not installed", advice)
        return
    try:
        allowed = subprocess.run(["ip", "netns", "list"], capture_output=True, timeout=5, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        allowed = False
    permitted = allowed and os.geteuid() == 0
    advice = "" if permitted else "needs root; network=lan and wan work without it"
    yield Finding("network emulation", GOOD if permitted else LACKING, "tc and ip", advice)
