# SPDX-License-Identifier: Apache-2.0
"""Runs one Python target for a while: python tests/fuzz/fuzz_python.py TARGET SECONDS [SEED].

Inputs that reach new lines of privml join those that are changed next, and the corpus when they are small. What is
neither accepted nor refused by an error of privml, takes too long or too much memory, or kills the process, is a
finding: its input goes to the corpus as finding-..., its trace to the standard output. Ends with 1 where there was one.
"""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

import privml

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
SOURCES = str(Path(privml.__file__).parent)
# What is kept beside findings.
MOST_FILES, MOST_BYTES = 16, 4000


class Coverage:
    """Lines of privml that were reached."""

    def __init__(self) -> None:
        self.lines: set[tuple[Any, int]] = set()
        self._new: set[tuple[Any, int]] = set()

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(SOURCES) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and (place := (frame.f_code, frame.f_lineno)) not in self.lines:
            self._new.add(place)
        return self._line

    def of(self, run: Any, data: bytes) -> bool:
        """Whether ``run(data)`` reaches new lines."""
        self._new.clear()
        sys.settrace(self._call)
        try:
            run(data)
        finally:
            sys.settrace(None)
            new = bool(self._new)
            self.lines |= self._new
        return new


def name_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def place_of(error: BaseException) -> str:
    """Type and last line of privml: findings that share them are one."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(SOURCES)]
    last = f"{frames[-1].filename.removeprefix(SOURCES)}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} at {last}"


def child(name: str, seconds: float, seed: int, current: Path) -> None:
    from fuzz_targets import CORPUS, targets
    from limits import TooLong, bounded

    target, source, coverage = targets()[name], random.Random(seed), Coverage()
    folder = CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    pool, found, count, kept = target.seeds(), set(), 0, len(target.corpus())
    pool += [path.read_bytes() for path in target.corpus()]
    for data in target.seeds():  # what is made at the first use takes its time
        target.take(data)
    for data in pool:  # what is known already is neither new nor a finding
        try:
            with bounded():
                coverage.of(target.take, data)
        except (Exception, TooLong) as error:
            print(f"known input {name_of(data)}: {place_of(error)}", flush=True)
    begin, start_lines = time.monotonic(), len(coverage.lines)
    while time.monotonic() < begin + seconds:
        data = source.choice(pool)
        for _ in range(source.choice((1, 1, 1, 2, 5))):
            data = target.mutate(source, data) if source.random() < 0.8 else mutate_raw(source, data)
        current.write_bytes(data)
        count += 1
        try:
            with bounded():
                new = coverage.of(target.take, data)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            what = place_of(error)
            if what not in found:
                found.add(what)
                (folder / f"finding-{name_of(data)}").write_bytes(data)
                print(f"FINDING {name_of(data)}: {what}: {str(error)[:200]}", flush=True)
                traceback.print_exception(error, limit=-6, file=sys.stdout)
            continue
        if new:
            pool.append(data)
            if len(data) <= MOST_BYTES and kept < MOST_FILES:
                kept += 1
                (folder / name_of(data)).write_bytes(data)
    current.unlink(missing_ok=True)
    lasted = round(time.monotonic() - begin, 1)
    result = {"executions": count, "seconds": lasted, "lines": len(coverage.lines), "before": start_lines}
    print("RESULT " + json.dumps({"target": name, **result, "pool": len(pool), "findings": len(found)}), flush=True)


def mutate_raw(source: random.Random, data: bytes) -> bytes:
    from mutation import mutate_bytes

    return mutate_bytes(source, data)


def main(name: str, seconds: float, seed: int) -> int:
    """Starts the target again where an input kills it."""
    end, findings, current = time.monotonic() + seconds, 0, Path(f"/tmp/privml-fuzz-{name}-{seed}")
    while (left := end - time.monotonic()) > 1:
        command = [sys.executable, __file__, name, str(left), str(seed), "child"]
        process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        print(process.stdout, end="", flush=True)
        findings += process.stdout.count("FINDING ")
        if process.returncode == 0:
            break
        seed += 1
        if current.exists():
            data = current.read_bytes()
            (HERE / "corpus" / name / f"finding-{name_of(data)}").write_bytes(data)
            print(f"FINDING {name_of(data)}: the process ended with {process.returncode}", flush=True)
            findings += 1
    return 1 if findings else 0


if __name__ == "__main__":
    wanted, how_long = sys.argv[1], float(sys.argv[2])
    chosen = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(2**31)
    if len(sys.argv) > 4:
        child(wanted, how_long, chosen, Path(f"/tmp/privml-fuzz-{wanted}-{chosen}"))
        sys.exit(0)
    sys.exit(main(wanted, how_long, chosen))
