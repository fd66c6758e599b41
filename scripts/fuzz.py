# SPDX-License-Identifier: Apache-2.0
"""Fuzzes every target, or those named, for so many seconds each: python scripts/fuzz.py SECONDS [TARGET...].

As many at a time as there are cores (JOBS=...). Compiled targets are those of build/fuzz (`make fuzz-build`). What they
find beyond the corpus goes to build/fuzz/found; the input of a finding to tests/fuzz/corpus. Prints a table, and ends
with 1 where there was a finding. ``fuzz.py keep`` moves the small inputs that reach most into the corpus.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORPUS, BUILD = ROOT / "tests" / "fuzz" / "corpus", ROOT / "build" / "fuzz"
FOUND = BUILD / "found"
# Of the corpus of one compiled target.
MOST_FILES, MOST_BYTES = 24, 600
_STATUS = re.compile(r"#(\d+)\s+\S+\s+cov: (\d+) ft: (\d+)(?: corp: (\d+))?")


@dataclass(frozen=True, slots=True)
class Outcome:
    """``coverage``: edges of the compiled code, lines of the Python code."""

    target: str
    executions: int
    coverage: int
    inputs: int
    findings: list[str]


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
    run = subprocess.run([*command, *limits, str(found), str(CORPUS / target)], capture_output=True, text=True)
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
    return Outcome(target, int(executions), int(coverage), int(inputs or 0), findings)


def fuzz_python(target: str, seconds: float) -> Outcome:
    command = [sys.executable, str(ROOT / "tests" / "fuzz" / "fuzz_python.py"), target, str(seconds)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    results = [
        json.loads(line.removeprefix("RESULT ")) for line in run.stdout.splitlines() if line.startswith("RESULT ")
    ]
    findings = [line for line in run.stdout.splitlines() if line.startswith("FINDING ")]
    if findings:
        print(run.stdout, flush=True)
    last = results[-1] if results else {"lines": 0, "pool": 0}
    return Outcome(target, sum(r["executions"] for r in results), last["lines"], last["pool"], findings)


def keep() -> None:
    """The smallest inputs that reach what all of them reach, as far as they are few and short."""
    for target in compiled_targets():
        with tempfile.TemporaryDirectory() as merged:
            folders = [str(CORPUS / target), str(FOUND / target)]
            command = [str(BUILD / f"fuzz_{target}"), "-merge=1", f"-max_len={MOST_BYTES}", merged]
            subprocess.run([*command, *[f for f in folders if Path(f).is_dir()]], capture_output=True, check=True)
            small = sorted(Path(merged).iterdir(), key=lambda path: (path.stat().st_size, path.name))[:MOST_FILES]
            for path in small:
                shutil.copy(path, CORPUS / target / path.name[:12])
        print(f"{target}: {len(list((CORPUS / target).iterdir()))} inputs")


def main(seconds: float, names: list[str]) -> int:
    compiled = compiled_targets()
    names = names or [*compiled, *python_targets()]

    def one(name: str) -> Outcome:
        outcome = (fuzz_compiled if name in compiled else fuzz_python)(name, seconds)
        print(f"{name}: {outcome.executions} executions, {len(outcome.findings)} findings", flush=True)
        return outcome

    with ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count() or 1)) as pool:
        outcomes = list(pool.map(one, names))
    print("| target | executions | coverage | inputs | findings |\n| --- | ---: | ---: | ---: | ---: |")
    for each in outcomes:
        print(f"| {each.target} | {each.executions:,} | {each.coverage:,} | {each.inputs} | {len(each.findings)} |")
        for finding in each.findings:
            print(f"  {finding}")
    return 1 if any(outcome.findings for outcome in outcomes) else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["keep"]:
        keep()
    else:
        sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
