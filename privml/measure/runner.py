# SPDX-License-Identifier: Apache-2.0
"""Starts the two parties of one measurement as processes and merges their reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privml.engines.correlations import OtChoice
from privml.errors import PrivmlError

PARTY = Path(__file__).with_name("core_party.py")
PHASES = ("setup", "preprocess", "online")


class BenchmarkFailed(PrivmlError, RuntimeError):
    """A party of a measurement ended with an error; carries its message."""


def measure(task: Mapping[str, Any], timeout: float = 900.0) -> dict[str, Any]:
    """Runs ``task`` (operator, n, params, provider, k, security, refill, network, repeats, threads) and returns the
    merged record.

    Bytes are both directions summed; seconds are the slower side's, the median over the repeats after one
    warm-up; ``ops_per_second`` counts preprocessing and online together; depth is the longer of both views.
    """
    return merge(task, both(PARTY, task, timeout))


def both(script: Path, task: Mapping[str, Any], timeout: float) -> list[dict[str, Any]]:
    """What the two parties of ``task``, each a process that runs ``script``, report."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    server = start(script, task, 0, "0", environment)
    first = server.stdout.readline()
    if not first.startswith("port "):
        raise BenchmarkFailed(f"party 0 did not start: {first + finish(server, 10)[1]}")
    client = start(script, task, 1, first.split()[1], environment)
    reports = []
    for rank, process in enumerate((server, client)):
        output, errors = finish(process, timeout)
        if process.returncode != 0:
            for other in (server, client):
                other.kill()
            raise BenchmarkFailed(f"{task['operator']}: party {rank} failed:\n{errors.strip()}")
        reports.append(json.loads(output.strip().splitlines()[-1]))
    return reports


def start(
    script: Path, task: Mapping[str, Any], rank: int, port: str, environment: Mapping[str, str]
) -> subprocess.Popen:
    command = [sys.executable, str(script), str(rank), port, json.dumps(dict(task))]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)


def finish(process: subprocess.Popen, timeout: float) -> tuple[str, str]:
    try:
        return process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


def merge(task: Mapping[str, Any], reports: list[dict[str, Any]]) -> dict[str, Any]:
    phases = {
        phase: {
            "seconds": max(r["phases"][phase]["seconds"] for r in reports),
            "bytes": sum(r["phases"][phase]["sent"] for r in reports),
            "depth": max(r["phases"][phase]["depth"] for r in reports),
        }
        for phase in PHASES
    }
    n = task["n"]
    work = phases["preprocess"]["bytes"] + phases["online"]["bytes"]
    seconds = max(r["seconds"] for r in reports)
    return {
        "suite": task["suite"],
        "op": task["op"],
        "n": n,
        "params": task["params"],
        "engine": "twopc",
        "ot": OtChoice(task["provider"], task["k"], task["security"], task["refill"]).tag,
        "network": task["network"]["name"],
        "threads": task["threads"],
        "seconds": seconds,
        "bytes_per_op": work / n,
        "ops_per_second": n / seconds,
        "phases": phases,
        "peak_rss_bytes": max(r["peak_rss_bytes"] for r in reports),
    }
