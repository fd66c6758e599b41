# SPDX-License-Identifier: Apache-2.0
"""Deadlines follow a clock that nobody sets: a wall clock that jumps ends no session and keeps none alive."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from fault_parties import ROOT
from fault_service import SERVER

# Clocks that jump when somebody sets them; only dates of certificates and ages of files are of their kind.
JUMPING = re.compile(
    r"\btime\.time(_ns)?\(|\bdatetime\.(now|utcnow|today)\(|\bsystem_clock\b|\bhigh_resolution_clock\b"
    r"|\bCLOCK_REALTIME\b|\bgettimeofday\b|\bstd::time\(|\btime\(nullptr\)|\btime\(NULL\)"
)
DATES = {"privml/measure/scratch.py", "privml/service/certificates.py"}
LIBRARIES = [f"/usr/lib/{machine}-linux-gnu/faketime/libfaketimeMT.so.1" for machine in ("x86_64", "aarch64")]


def sources():
    for folder, patterns in (("privml", ["*.py"]), ("scripts", ["*.py"]), ("csrc", ["*.h", "*.cpp", "*.cuh"])):
        for pattern in patterns:
            yield from (ROOT / folder).rglob(pattern)


def test_no_deadline_follows_a_clock_that_can_be_set():
    found = {str(path.relative_to(ROOT)) for path in sources() if JUMPING.search(path.read_text(encoding="utf-8"))}
    assert found == DATES


def test_the_search_would_find_them():
    for text in ("end = time.time() + 3", "std::chrono::system_clock::now()", "datetime.now(timezone.utc)"):
        assert JUMPING.search(text)
    assert not JUMPING.search("time.monotonic(); steady_clock; self.time(3)")


@pytest.mark.skipif(not any(map(os.path.exists, LIBRARIES)), reason="needs the system package libfaketime")
@pytest.mark.slow
@pytest.mark.parametrize("jump", ["+10d", "-10d"])
def test_a_query_while_the_wall_clock_jumps(deploy, tmp_path, jump):
    """The client's clock jumps by ten days while it waits for the server's messages."""
    service = deploy("twopc", deadline=20.0)
    service.settle()
    service.proxy.restart()
    service.proxy.slow(0.02)
    stamp = tmp_path / "now"
    stamp.write_text("+0")
    library = next(filter(os.path.exists, LIBRARIES))
    words = [f"program={service.program}/program", f"server={service.links[SERVER]}", "input=input.npy", "out=jump.npy"]
    client = subprocess.Popen(
        [sys.executable, "-c", "from privml.cli import main; main()", "query", *words, "deadline=20"],
        cwd=service.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={
            "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "LD_PRELOAD": library,
            "FAKETIME_TIMESTAMP_FILE": str(stamp), "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1",
        },
    )  # fmt: skip
    while service.proxy.bytes < 2000:
        assert client.poll() is None, client.stderr.read()
        time.sleep(0.005)
    stamp.write_text(jump)
    _, errors = client.communicate(timeout=120)
    assert client.returncode == 0, errors
    assert np.abs(np.load(service.folder / "jump.npy") - service.expected).max() <= service.tolerance
    assert Path(stamp).read_text() == jump
