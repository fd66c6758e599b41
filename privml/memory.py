# SPDX-License-Identifier: Apache-2.0
"""How much memory this process has used, and how much it keeps."""

import ctypes
import os
import platform
import resource
from pathlib import Path

# mallopt's names, from malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
# Bytes that are kept at most, and from which on an array goes back to the system at once.
_KEPT, _LARGE = 1 << 28, 1 << 25


def peak_memory() -> int:
    """Bytes resident at most since this program started (ru_maxrss would count the launcher's as well)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def keep_freed_memory() -> None:
    """Up to 256 MiB that this process frees are kept for what it allocates next, instead of going back to the system,
    which clears every page that it gives out again. For processes that are a party's alone; the environment's
    MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_ go first, and nothing happens without the GNU C library."""
    if any(name in os.environ for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")):
        return
    if platform.libc_ver()[0] != "glibc":
        return
    mallopt = ctypes.CDLL(None).mallopt
    mallopt(_TRIM_THRESHOLD, _KEPT)
    mallopt(_MMAP_THRESHOLD, _LARGE)
