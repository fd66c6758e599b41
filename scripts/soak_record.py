# SPDX-License-Identifier: Apache-2.0
"""What a long run leaves: a journal of all that happens, as it happens, and the record that is made of it.

A journal, lines of JSON, survives whatever ends the run. A run that is continued appends another part to it. Each part
has servers of its own, so that memory is looked at within parts and never across them; the record says how many parts
there were and how each one ended.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

# How a part ended: with the last query, with its time, or otherwise.
ANSWERED, OUT_OF_TIME, INTERRUPTED = "all answered", "out of time", "interrupted"
# Fewer samples than these show no growth of memory.
LEAST_SAMPLES = 10
# What parts of one run may differ in.
OF_A_PART = {"queries", "seconds", "seed", "out", "resume"}


@dataclass
class Sample:
    """What a process holds after so many answered queries."""

    queries: int
    rss_kib: int
    descriptors: int
    threads: int


@dataclass
class Part:
    """What one start of the run has seen; ``samples`` by the name of a server or dealer."""

    settings: dict[str, Any]
    answers: list[tuple[str, float]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    misbehaved: Counter[str] = field(default_factory=Counter)
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    seconds: float = 0.0
    ended: str = INTERRUPTED

    def apply(self, line: dict[str, Any]) -> None:
        """One line of a journal."""
        self.seconds = max(self.seconds, line["at"])
        if "answer" in line:
            self.answers.append((line["answer"], line["took"]))
        if "error" in line:
            self.errors.append(line["error"])
        if "misbehaved" in line:
            self.misbehaved[line["misbehaved"]] += 1
        if "sampled" in line:
            self.samples.setdefault(line["sampled"], []).append(Sample(**line["sample"]))
        self.ended = line.get("ended", self.ended)

    @property
    def whole(self) -> bool:
        """Whether it came to an end of its own, with no client left."""
        return self.ended != INTERRUPTED


class Journal:
    """A new part behind ``earlier`` ones in ``file``; ``tell`` adds a line to it."""

    def __init__(self, file: Path, settings: dict[str, Any], earlier: Sequence[Part] = ()) -> None:
        self.part = Part(settings)
        self.parts = [*earlier, self.part]
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = file.open("a" if earlier else "w", buffering=1)
        self._file.write("\n" if earlier else "")  # the last line may have no end
        self._write({"settings": settings})

    def tell(self, at: float, **what: Any) -> None:
        """``at``: seconds since the part has begun."""
        line = {"at": round(at, 4), **what}
        self.part.apply(line)
        self._write(line)

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")

    def close(self) -> None:
        self._file.close()


def read(file: Path) -> list[Part]:
    """The parts of a journal; none where there is no journal."""
    parts: list[Part] = []
    for text in file.read_text().splitlines() if file.exists() else []:
        try:
            line = json.loads(text)
        except ValueError:  # what was being written when the run was killed
            continue
        if "settings" in line:
            parts.append(Part(line["settings"]))
        else:
            parts[-1].apply(line)
    return parts


def differences(parts: Sequence[Part], settings: dict[str, Any]) -> list[str]:
    """The settings in which a continuation would not be the same run."""
    before = parts[-1].settings
    return [name for name in settings if name not in OF_A_PART and settings[name] != before.get(name)]


def journal_of(settings: dict[str, Any], out: Path) -> Journal:
    """A new run's, or one behind the parts of the run that is continued."""
    file = out.with_suffix(".journal")
    earlier = read(file)
    told = sum(len(part.answers) for part in earlier)
    if not settings["resume"]:
        if earlier and not earlier[-1].whole:
            sys.exit(f"{file}: a run interrupted after {told} answers; resume=true goes on with it, or remove the file")
        return Journal(file, settings)
    if told >= settings["queries"]:
        print(f"nothing to go on with: {file} has all {settings['queries']} answers")
        sys.exit(0)
    if earlier and (changed := differences(earlier, settings)):
        sys.exit(f"resume=true continues a run of other settings: {', '.join(changed)}; take those of {file}")
    # No two parts draw the same inputs.
    return Journal(file, {**settings, "seed": settings["seed"] + 1_000_000 * len(earlier)}, earlier)


# ---- the verdict
def growth_of(runs: Sequence[Sequence[Sample]]) -> dict[str, float]:
    """KiB per 1,000 queries and its standard error: one slope by least squares for several runs of samples, each of a
    process that began afresh (a level of its own), without the first fifth of each. Runs of fewer than
    ``LEAST_SAMPLES`` do not count; where there are no others, the error is infinite."""
    kept = [run[len(run) // 5 :] for run in runs if len(run) >= LEAST_SAMPLES]
    if not kept:
        return {"kib_per_1000": 0.0, "standard_error": float("inf")}
    freedom = sum(len(run) - 1 for run in kept) - 1
    x = [np.array([sample.queries for sample in run]) / 1000 for run in kept]
    y = [np.array([float(sample.rss_kib) for sample in run]) for run in kept]
    x, y = (np.concatenate([each - each.mean() for each in values]) for values in (x, y))
    slope = (x * y).sum() / (x**2).sum()
    spread = np.sqrt(((y - slope * x) ** 2).sum() / freedom / (x**2).sum())
    return {"kib_per_1000": float(slope), "standard_error": float(spread)}


def surely(growth: dict[str, float]) -> float:
    """The KiB per 1,000 queries that are no chance."""
    return growth["kib_per_1000"] - 2 * growth["standard_error"]


def more_than_early(samples: Sequence[Sample], now: Sample, what: str) -> int:
    """How many more "descriptors" or "threads" there are ``now`` than in the first fifth of the samples."""
    early = samples[: max(len(samples) // 5, 1)]
    return getattr(now, what) - max((getattr(sample, what) for sample in early), default=getattr(now, what))


def left_over(parts: Sequence[Part], what: str) -> dict[str, int]:
    """By process how many it has more at its last sample. Of the parts that came to an end of their own: in others
    clients are under way then."""
    left: dict[str, int] = {}
    for name, samples in (each for part in parts if part.whole for each in part.samples.items()):
        more = more_than_early(samples, samples[-1], what)
        left[name] = max(more, left.get(name, more))
    return left


def percentiles(times: list[float]) -> dict[str, float]:
    """Seconds that so many percent of the queries took at most."""
    ordered = sorted(times)
    return {f"p{p}": ordered[min(len(ordered) - 1, len(ordered) * p // 100)] for p in (50, 95, 99) if ordered}


def verdict(parts: Sequence[Part], queries: int, limit_kib: float) -> tuple[dict[str, Any], list[str]]:
    """The record of a run that was to answer ``queries``, and why it failed."""
    parts = [part for part in parts if part.answers or part.errors] or parts[-1:]
    answers = [each for part in parts for each in part.answers]
    errors = [each for part in parts for each in part.errors]
    seconds = sum(part.seconds for part in parts)
    by_model: dict[str, list[float]] = {}
    for name, took in answers:
        by_model.setdefault(name, []).append(took)
    names = dict.fromkeys(name for part in parts for name in part.samples)
    samples = {name: [part.samples.get(name, []) for part in parts] for name in names}
    watched = {name: growth_of(runs) for name, runs in samples.items()}
    left = {what: left_over(parts, what) for what in ("descriptors", "threads")}
    failures = [f"{len(errors)} errors, the first one {errors[0]}"] if errors else []
    for name, runs in samples.items():
        fast = [growth for growth in (watched[name], *(growth_of([run]) for run in runs)) if surely(growth) > limit_kib]
        failures += [f"{name} grows by {growth['kib_per_1000']:.0f} KiB per 1,000 queries" for growth in fast[:1]]
    for what, counts in left.items():
        more = {name: count for name, count in counts.items() if count > 0}
        failures += [f"{name} has {count} {what} more than at the beginning" for name, count in more.items()]
    report = {
        "settings": parts[-1].settings,
        "asked": queries,
        "answered": len(answers),
        "seconds": seconds,
        "per_second": len(answers) / seconds if seconds else 0.0,
        "latency": percentiles([took for _, took in answers]),
        "latency_by_model": {name: percentiles(times) for name, times in sorted(by_model.items())},
        "misbehaved": dict(sum((part.misbehaved for part in parts), Counter())),
        "wrong": sum("a wrong answer" in error for error in errors),
        "error_count": len(errors),
        "errors": errors[:20],
        "watched": watched,
        "left": {what: max(counts.values(), default=None) for what, counts in left.items()},
        "parts": [
            {
                "answered": len(part.answers),
                "seconds": part.seconds,
                "ended": part.ended,
                "samples": {name: [asdict(sample) for sample in samples] for name, samples in part.samples.items()},
            }
            for part in parts
        ],
        "failures": failures,
    }
    return report, failures


def keep(report: dict[str, Any], file: Path) -> None:
    """Writes the record; the file is whole at every moment."""
    file.parent.mkdir(parents=True, exist_ok=True)
    whole = file.with_suffix(".new")
    whole.write_text(json.dumps(report, indent=1) + "\n")
    whole.replace(file)
