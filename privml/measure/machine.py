# SPDX-License-Identifier: Apache-2.0
"""Facts of this machine and this code that a measurement depends on."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import platformdirs
import torch

from privml.version import VERSION


@lru_cache(maxsize=1)
def machine() -> dict[str, Any]:
    """Processor, cores, memory, system and versions of what computes."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "privml": VERSION,
    }


def cache_folder() -> Path:
    """Where what can be made again is kept: ``PRIVML_CACHE``, or the cache folder that the system gives its user."""
    own = os.environ.get("PRIVML_CACHE")
    return Path(own) if own else platformdirs.user_cache_path("privml", appauthor=False)


def fingerprint() -> str:
    """A short name of the machine and the versions on it."""
    return hashlib.sha256(json.dumps(machine(), sort_keys=True).encode()).hexdigest()[:16]


def revision(folder: Path = Path(__file__).parent) -> dict[str, Any]:
    """``commit`` of the git work tree that ``folder`` lies in, and whether it is ``dirty``; both None elsewhere."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        dirty = bool(_git(folder, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": dirty}


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return None
