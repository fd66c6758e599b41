# SPDX-License-Identifier: Apache-2.0
"""Fuzzes every target, or those named, for so many seconds each: python scripts/fuzz.py SECONDS [resume]
[results=FOLDER] [TARGET...].

As many at a time as there are cores (JOBS=...). Compiled targets are those of build/fuzz (`make fuzz-build`). What they
find beyond the corpus goes to build/fuzz/found; the input of a finding to tests/fuzz/corpus. Ends with 1 where there
was a finding. ``fuzz.py keep`` moves the small inputs that reach most into the corpus.

The outcome of each target is kept when it has had its time, in build/results/fuzz.jsonl (or another folder, such as
results=benchmarks/results, of which the site makes its table) in place of an earlier one. ``resume`` leaves out the
targets that the last run has kept with as many seconds. A target that was cut short is not kept; what it has found is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CORPUS, BUILD = ROOT / "tests" / "fuzz" / "corpus", ROOT / "build" / "fuzz"
FOUND, RESULTS = BUILD / "found", ROOT / "build" / "results" / "fuzz.jsonl"
# The names of the targets that the run under way, or the last one, has kept.
DONE = BUILD / "done.json"
# With which libFuzzer ends when it is interrupted.
_INTERRUPTED = 72
# Of the corpus of one compiled target.
MOST_FILES, MOST_BYTES = 24, 600
# The name of an input that was kept: the beginning of its hash.
_KEPT = re.compile("[0-9a-f]{12}")
_STATUS = re.compile(r"#(\d+)\s+\S+\s+cov: (\d+) ft: (\d+)(?: corp: (\d+))?")


@dataclass(frozen=True, slots=True)
class Outcome:
    """``seconds``: of fuzzing; a finding ends a compiled target, and a process that an input has killed tells none.
    ``coverage`` counts ``covers``, edges of the compiled code or lines of the Python code."""

    target: str
    seconds: float
    executions: int
    coverage: int
    covers: str
    inputs: int
    findings: list[str]


class Interrupted(Exception):
    """A target that was cut short, by Ctrl-C or a signal."""


def compiled_targets() -> list[str]:
    source = (ROOT / "csrc" / "fuzz" / "targets.cpp").read_text()
    return re.findall(r'(?:Target\{|\()"([a-z_]+)"', source)


def python_targets() -> list[str]:
    sys.path.insert(0, str(ROOT / "tests" / "fuzz"))
    from fuzz_targets import targets

    return list(targets())


def fuzz_compiled(target: str, seconds: float) -> Outcome:
    found = FOUND / target
    found.mkdir(parents=True, exist_ok=True)
    (CORPUS / target).mkdir(parents=True, exist_ok=True)
    limits = ["-rss_limit_mb=1536", "-malloc_limit_mb=512", "-timeout=25", "-max_len=4096", "-use_value_profile=1"]
    command = [str(BUILD / f"fuzz_{target}"), f"-max_total_time={int(seconds)}", f"-artifact_prefix={CORPUS / target}/"]
    start = time.monotonic()
    run = subprocess.run([*command, *limits, str(found), str(CORPUS / target)], capture_output=True, text=True)
    if run.returncode == _INTERRUPTED:
        raise Interrupted(target)
    status = _STATUS.findall(run.stderr)
    executions, coverage, _, inputs = status[-1] if status else ("0", "0", "0", "0")
    findings = (
        []
        if run.returncode == 0
        else [line for line in run.stderr.splitlines() if "ERROR" in line or "SUMMARY" in line]
    )
    if run.returncode != 0:
        (BUILD / f"{target}.log").write_text(run.stderr)
        findings.append(f"see {BUILD / target}.log")
    lasted = round(time.monotonic() - start, 1)
    return Outcome(target, lasted, int(executions), int(coverage), "edges", int(inputs or 0), findings)


def fuzz_python(target: str, seconds: float) -> Outcome:
    command = [sys.executable, str(ROOT / "tests" / "fuzz" / "fuzz_python.py"), target, str(seconds)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    results = [
        json.loads(line.removeprefix("RESULT ")) for line in run.stdout.splitlines() if line.startswith("RESULT ")
    ]
    findings = [line for line in run.stdout.splitlines() if line.startswith("FINDING ")]
    if findings:
        print(run.stdout, flush=True)
    if run.returncode == -signal.SIGINT:
        raise Interrupted(target)
    if run.returncode not in (0, 1) or not (results or findings):
        raise RuntimeError(f"{target} ended with status {run.returncode} and told nothing")
    last = results[-1] if results else {"lines": 0, "pool": 0}
    lasted, executions = (sum(result[what] for result in results) for what in ("seconds", "executions"))
    return Outcome(target, lasted, executions, last["lines"], "lines", last["pool"], findings)


def keep() -> None:
    """The smallest inputs that reach what all of them reach, as far as they are few and short, in place of those that
    were kept before; inputs with names of their own, those of findings among them, stay."""
    for target in compiled_targets():
        with tempfile.TemporaryDirectory() as merged:
            folders = [str(CORPUS / target), str(FOUND / target)]
            command = [str(BUILD / f"fuzz_{target}"), "-merge=1", f"-max_len={MOST_BYTES}", merged]
            subprocess.run([*command, *[f for f in folders if Path(f).is_dir()]], capture_output=True, check=True)
            small = sorted(Path(merged).iterdir(), key=lambda path: (path.stat().st_size, path.name))[:MOST_FILES]
            for path in (CORPUS / target).iterdir():
                if _KEPT.fullmatch(path.name):
                    path.unlink()
            for path in small:
                shutil.copy(path, CORPUS / target / path.name[:12])
        print(f"{target}: {len(list((CORPUS / target).iterdir()))} inputs")


class Kept:
    """What runs leave, for several threads: the newest outcome of each target in ``results``; in ``done`` the seconds
    that the targets of this run, and with ``resume`` of the last one, were to have."""

    def __init__(self, results: Path, done: Path, resume: bool) -> None:
        self._results, self._done, self._lock = results, done, threading.Lock()
        self.seconds: dict[str, float] = json.loads(done.read_text()) if resume and done.exists() else {}

    def add(self, outcome: Outcome, seconds: float, order: list[str]) -> None:
        """``order``: of all targets, which is that of the lines."""
        with self._lock:
            rows = {row["target"]: row for row in self._rows()} | {outcome.target: asdict(outcome)}
            lines = sorted(rows.values(), key=lambda row: order.index(row["target"]) if row["target"] in order else -1)
            replace(self._results, "".join(json.dumps(row) + "\n" for row in lines))
            self.seconds[outcome.target] = seconds
            replace(self._done, json.dumps(self.seconds))

    def _rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._results.read_text().splitlines()] if self._results.exists() else []


def replace(file: Path, text: str) -> None:
    """Writes a file that is whole at every moment."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def main(seconds: float, words: list[str]) -> int:
    compiled = compiled_targets()
    every, resume = [*compiled, *python_targets()], "resume" in words
    given = [word.partition("=")[2] for word in words if word.startswith("results=")]
    results = Path(given[-1], "fuzz.jsonl") if given else RESULTS
    names = [word for word in words if word != "resume" and not word.startswith("results=")] or every
    if unknown := sorted(set(names) - set(every)):
        sys.exit(f"no target {', '.join(unknown)}; there are {', '.join(every)}")
    kept, outcomes = Kept(results, DONE, resume), []
    left = [name for name in names if kept.seconds.get(name, 0.0) < seconds]

    def one(name: str) -> None:
        outcome = (fuzz_compiled if name in compiled else fuzz_python)(name, seconds)
        kept.add(outcome, seconds, every)
        outcomes.append(outcome)
        print(f"{name}: {outcome.executions:,} executions, {len(outcome.findings)} findings", flush=True)
        for finding in outcome.findings:
            print(f"  {finding}", flush=True)

    jobs = int(os.environ.get("JOBS") or os.cpu_count() or 1)
    print(f"{len(left)} of {len(names)} targets for {seconds:g} seconds each, {jobs} at a time", flush=True)
    try:
        with ThreadPoolExecutor(jobs) as pool:
            begun = [pool.submit(one, name) for name in left]
            try:
                for each in begun:
                    each.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    except (KeyboardInterrupt, Interrupted) as why:
        print(f"interrupted{f' at {why}' if str(why) else ''}: resume takes the targets that are left", flush=True)
        return 130
    return 1 if any(outcome.findings for outcome in outcomes) else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["keep"]:
        keep()
    else:
        sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
