# SPDX-License-Identifier: Apache-2.0
"""What a party's process keeps of freed memory."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

# Four arrays at a time, more than the allocator keeps by itself; prints how many pages the later rounds needed.
ROUNDS = """
import resource
from privml.memory import keep_freed_memory

if {keep}:
    keep_freed_memory()

def pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [bytearray(b"x") * (20 << 20) for _ in range(4)]
    del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

pages()
print(sum(pages() for _ in range(3)))
"""


def pages_needed_again(keep: bool, **environment: str) -> int:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    command = [sys.executable, "-c", ROUNDS.format(keep=keep)]
    done = subprocess.run(command, env={**clean, **environment}, check=True, capture_output=True, text=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs the GNU C library")
def test_freed_memory_is_used_again():
    without = pages_needed_again(False)
    assert without > 3 * 4 * (20 << 20) // os.sysconf("SC_PAGE_SIZE") // 2
    assert pages_needed_again(True) < without // 20
    # What the user has set goes first.
    assert pages_needed_again(True, MALLOC_TRIM_THRESHOLD_="1000000") > without // 2
