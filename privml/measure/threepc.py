# SPDX-License-Identifier: Apache-2.0
"""Starts the three parties of one measurement as processes and merges their reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from privml.measure.runner import BenchmarkFailed, finish

PARTY = "privml.measure.threepc_party"


def measure(task: Mapping[str, Any], timeout: float = 900.0) -> dict[str, Any]:
    """Runs ``task`` (operator, n, bits, params, truncation, device, network, repeats, threads,
    whole: whether n is that of the published figures) and returns
    the merged record.

    Seconds are the slowest party's, the median over the repeats after one warm-up. ``phases`` count what all parties
    sent together; ``party0`` what party 0 sent and received, which is what is published; depth is the
    longest chain of messages.
    """
    return merge(task, run(task, timeout))


def run(task: Mapping[str, Any], timeout: float) -> list[dict[str, Any]]:
    environment = {**os.environ, "OMP_NUM_THREADS": str(task["threads"])}
    processes: list[subprocess.Popen] = []
    ports: list[int] = []
    try:
        for rank in range(3):
            processes.append(start(task, rank, ports, environment))
            if rank < 2:
                line = processes[-1].stdout.readline()
                if not line.startswith("port "):
                    raise BenchmarkFailed(f"party {rank} did not start: {line + finish(processes[-1], 10)[1]}")
                ports.append(int(line.split()[1]))
        reports = []
        for rank, process in enumerate(processes):
            output, errors = finish(process, timeout)
            if process.returncode != 0:
                raise BenchmarkFailed(f"{task['op']}: party {rank} failed:\n{errors.strip()}")
            reports.append(json.loads(output.strip().splitlines()[-1]))
        return reports
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()


def start(task: Mapping[str, Any], rank: int, ports: list[int], environment: Mapping[str, str]) -> subprocess.Popen:
    command = [sys.executable, "-m", PARTY, str(rank), json.dumps(ports), json.dumps(dict(task))]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)


def merge(task: Mapping[str, Any], reports: list[dict[str, Any]]) -> dict[str, Any]:
    phases, party0 = {}, {}
    for phase in ("preprocess", "online"):
        counts = [report["phases"][phase] for report in reports]
        phases[phase] = {"bytes": sum(c["sent"] for c in counts), "depth": max(c["depth"] for c in counts)}
        party0[phase] = counts[0]["sent"] + counts[0]["received"]
    seconds = max(report["seconds"] for report in reports)
    published = task["params"].get("published", {}).get(str(task["bits"])) if task["whole"] else None
    return {
        "suite": task["suite"],
        "op": task["op"],
        "n": task["n"],
        "bits": task["bits"],
        "engine": "threepc",
        "truncation": task["truncation"],
        "device": task["device"],
        "network": task["network"]["name"],
        "threads": task["threads"],
        "seconds": seconds,
        "cpu_seconds": [report["cpu_seconds"] for report in reports],
        "phases": phases,
        "party0_bytes": party0,
        "published_mb": published,
        "of_published": ratio(party0, published),
        "layers": reports[0]["layers"],
        "peak_rss_bytes": [report["peak_rss_bytes"] for report in reports],
        "peak_device_bytes": [report["peak_device_bytes"] for report in reports],
    }


def ratio(party0: Mapping[str, int], published: list[float] | None) -> dict[str, float] | None:
    """Online bytes of party 0, and all of them, as parts of the published ``[online, preprocess]`` in MB of 2^20."""
    if published is None:
        return None
    online, everything = party0["online"] / 2**20, sum(party0.values()) / 2**20
    return {"online": online / published[0], "total": everything / sum(published)}
