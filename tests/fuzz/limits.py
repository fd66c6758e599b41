# SPDX-License-Identifier: Apache-2.0
"""What one input may cost: seconds, address space, resident memory."""

from __future__ import annotations

import contextlib
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SECONDS = 20.0
MEGABYTES = 1024


class TooLong(BaseException):
    """No Exception, so that nothing takes it for one of its own."""


class TooLarge(Exception):
    """More resident memory than an input may take."""


def _stop(*_: Any) -> None:
    raise TooLong(f"an input took more than {SECONDS} seconds")


@contextlib.contextmanager
def bounded(seconds: float = SECONDS, megabytes: int = MEGABYTES) -> Iterator[None]:
    """TooLong, MemoryError or TooLarge where the body takes more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (megabytes << 20), hard))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    before = signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1024
        if grown > megabytes / 2:
            raise TooLarge(f"an input took {grown:.0f} MB")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
