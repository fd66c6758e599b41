# SPDX-License-Identifier: Apache-2.0
"""Measurements of the actively secure engine between two processes: its online phase, and apart from it the making of
what that draws."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privml.measure.runner import both

PARTY = Path(__file__).with_name("spdz2k_party.py")


def measure(task: Mapping[str, Any], timeout: float = 900.0) -> dict[str, Any]:
    """Runs ``task`` (operator, n, params, ring, provider, k, network, repeats) and returns the merged record: per
    second, bytes that a party sends per operation (the larger of both) and depth, of the preprocessing and of the
    online phase (None of correlations alone); the median of the repeats after one warm-up."""
    reports = both(PARTY, task, timeout)
    online = None if reports[0]["online"] is None else rate(task["n"], [r["online"] for r in reports], "online")
    made = rate(task["n"], [r["made"] for r in reports], "preprocess")
    return record_of(task, online, made, max(r["peak_rss_bytes"] for r in reports))


def rate(n: int, runs: list[dict[str, Any]], phase: str) -> dict[str, float]:
    seconds = max(run["seconds"] for run in runs)
    sent = max(run["phases"][phase]["sent"] for run in runs)
    depth = max(run["phases"][phase]["depth"] for run in runs)
    return {"n": n, "seconds": seconds, "per_second": n / seconds, "sent_per_op": sent / n, "depth": depth}


def record_of(task: Mapping[str, Any], online: Any, made: Any, peak: int) -> dict[str, Any]:
    ring, params = str(task["ring"]), task["params"]
    return {
        "suite": task["suite"],
        "op": task["op"],
        "engine": "active",
        "ring": task["ring"],
        "ot": f"{task['provider']}-k{task['k']}-malicious",
        "network": task["network"]["name"],
        "online": online,
        "made": made,
        "measured": params.get("measured", {}).get(ring),
        "made_measured": params.get("made_measured", {}).get(ring),
        "published": params.get("published", {}).get(ring),
        "peak_rss_bytes": peak,
    }
