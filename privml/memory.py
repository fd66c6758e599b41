# SPDX-License-Identifier: Apache-2.0
"""How much memory this process has used."""

import resource
from pathlib import Path


def peak_memory() -> int:
    """Bytes resident at most since this program started (ru_maxrss would count the launcher's as well)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
