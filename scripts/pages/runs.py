# SPDX-License-Identifier: Apache-2.0
"""Tables of the runs that take hours, in pages that say more about them: faults, long runs, fuzzing."""

from __future__ import annotations

import json
import math
from typing import Any

from pages import faults
from pages.figures import table
from pages.results import RESULTS, ROOT, lines_of

PARTIES = {"twopc": "two parties", "threepc": "three parties", "active": "two parties, actively secure"}


def pages() -> dict[str, str]:
    """The pages with their tables as the results have them."""
    tables = {
        "testing.md": {
            "outcomes of faults": faults.outcomes(lines_of("faults")),
            "long runs": long_runs(),
            "runs of the targets": fuzzing(),
        },
    }
    return {page: with_tables((ROOT / "docs" / page).read_text(), named) for page, named in tables.items()}


def with_tables(text: str, tables: dict[str, list[str]], source: str = "benchmarks/results") -> str:
    """``text`` with each table behind the mark of its name. Raises ValueError if a mark is missing."""
    for name, lines in tables.items():
        mark = f"<!-- {name}: the site has the table of {source} here -->"
        if mark not in text:
            raise ValueError(f"no mark for the table {name!r}")
        text = text.replace(mark, f"{mark}\n" + "\n".join(lines).rstrip())
    return text


def long_runs() -> list[str]:
    files = sorted(RESULTS.glob("soak-*.json"))
    head = [
        "run", "answers", "a second", "p50, p95, p99", "wrong, errors", "memory per 1,000 queries",
        "descriptors, threads",
    ]  # fmt: skip
    return table(head, [long_run(json.loads(file.read_text())) for file in files], len(head))


def long_run(report: dict[str, Any]) -> list[str]:
    """A row; ``report``: see scripts/soak_record.py."""
    settings, parts = report["settings"], report["parts"]
    misbehaved = {"leaving": "died", "garbage": "sent garbage", "silent": "were silent"}
    beside = [
        f"{report['misbehaved'][kind]} that {did}" for kind, did in misbehaved.items() if kind in report["misbehaved"]
    ]
    models = " and ".join(report["latency_by_model"])
    run = f"{PARTIES[settings['engine']]}, {settings['clients']} clients at a time, {models}"
    run += f", beside clients that did not behave: {', '.join(beside)}" if beside else ""
    if len(parts) > 1:
        counts = ", ".join(f"{part['answered']:,}" for part in parts)
        run += f"; {len(parts)} parts one after another, each on new servers: {counts} answers"
    answers = f"{report['answered']:,} in {report['seconds']:,.0f} s"
    if report["answered"] < report["asked"]:
        answers = f"{report['answered']:,} of {report['asked']:,} in {report['seconds']:,.0f} s ({parts[-1]['ended']})"
    latency = report["latency"]
    memory = [
        f"{name}: {seen['kib_per_1000']:+,.0f} ± {seen['standard_error']:,.0f} KiB"
        if math.isfinite(seen["standard_error"])
        else f"{name}: too few samples"
        for name, seen in report["watched"].items()
    ]
    left = list(report["left"].values())
    kept = (
        "none left"
        if left and all(more is not None and more <= 0 for more in left)
        else ", ".join("not known" if more is None else f"{max(more, 0)} left" for more in left)
    )
    return [
        run, answers, f"{report['per_second']:.2f}",
        ", ".join(f"{latency[name]:.2g}" for name in ("p50", "p95", "p99") if name in latency) + " s",
        f"{report['wrong']}, {report['error_count'] - report['wrong']}", ", ".join(memory), kept,
    ]  # fmt: skip


def fuzzing() -> list[str]:
    rows = [
        [
            line["target"], "" if line["seconds"] is None else f"{line['seconds']:,.0f}", f"{line['executions']:,}",
            f"{line['coverage']:,}", f"{line['inputs']:,}", str(len(line["findings"])),
        ]
        for line in lines_of("fuzz")
    ]  # fmt: skip
    return table(["target", "seconds", "executions", "coverage", "inputs", "findings"], rows)
