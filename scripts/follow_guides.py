# SPDX-License-Identifier: Apache-2.0
"""Follows README and guides as a new user does, in an empty folder without a cache, and measures how long each takes.

    python scripts/follow_guides.py [README.md docs/choosing.md ...]

Every `privml` and `python` line of a page's blocks runs as it is written, with addresses of this machine in place of
HOST and DEALER, free ports in place of those given, and a store of its own for each party; a party that listens runs
until the next one or the end of its block, a dealer until that end. Lines that name what the reader has to bring
(`OWN`), or take long because they ask for it (`LONG`), are left out. A page that uses files of README's commands
(`MADE`) begins with these commands if README is not among the pages. Ends with 1 if a command fails.
"""

from __future__ import annotations

import os
import re
import resource
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from privml.cli import console  # noqa: E402

PAGES = ("README.md", "docs/choosing.md", "docs/deployment.md", "docs/programs.md")
BLOCK = re.compile(r"^```(?:sh|bash)?\n(.*?)^```$|^((?: {4}privml .*\n)+)", re.M | re.S)
FENCED = re.compile(r"^```\w.*?^```$", re.M | re.S)
# The first page makes these files, and others use them.
FIRST, MADE = "README.md", ("lenet/program", "digits.npy")
PRIVML = ("-c", "from privml.cli import main; main()")
# Files and places of the reader's own.
OWN = re.compile(r"\bnet\.onnx|\bnet/|\.\.\.|example|/etc/")
LONG = re.compile(r"calibrate=(?:all|missing)|privml (?:bench|evaluate|experiment)|engine=active")
SECONDS_TO_LISTEN, SECONDS_TO_RUN = 120.0, 600.0


@dataclass(frozen=True)
class Step:
    """One command: its seconds, those of the processor, and whether it succeeded. Of a party that listens: until it
    does so, and no processor's seconds."""

    page: str
    command: str
    seconds: float
    processor: float | None
    right: bool
    output: str


def blocks(text: str) -> Iterator[list[str]]:
    """The commands of each block that has any."""
    for match in BLOCK.finditer(FENCED.sub(lambda found: found[0] if found[0][3:5] in ("sh", "ba") else "", text)):
        lines = (match[1] or match[2]).replace("\\\n", " ").splitlines()
        commands = [re.split(r"\s+#\s|\s{2,}#", line.strip())[0].strip() for line in lines]
        found = [line for line in commands if re.match(r"(?:privml|python -c) ", line)]
        found = [line for line in found if not OWN.search(line) and not LONG.search(line)]
        alone = any("preprocess" in line for line in found) and not any("server=" in line for line in found)
        if found and not alone:
            yield found


class Reader:
    """Runs the commands of pages in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers: list[subprocess.Popen] = []
        places = ("PRIVML_CACHE", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
        fresh = {name: str(folder / f".{name.lower()}") for name in places}
        self._environment = {**os.environ, **fresh, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}

    def follow(self, page: str) -> Iterator[Step]:
        found = list(blocks((ROOT / page).read_text()))
        if page != FIRST and any(name in line for lines in found for line in lines for name in MADE):
            yield from (self._run(FIRST, line, shlex.split(line)) for line in self._missing())
        for commands in found:
            port, dealer_port = _free_port(), _free_port()
            for command in commands:
                here = re.sub(r"\b(?:HOST|DEALER)\b|0\.0\.0\.0", "127.0.0.1", command)
                here = here.replace(":9000", f":{port}").replace(":9002", f":{dealer_port}")
                words = shlex.split(here)
                if any(word.startswith("server=") for word in words):  # whose store lies on another machine
                    words = [re.sub(r"^(store|preprocessing)=(.+)", r"\1=clients-\2", word) for word in words]
                listens = words[1] == "serve" or any(word.startswith("listen=") for word in words)
                if words[1] == "serve" and not any(word.startswith("listen=") for word in words):
                    words.append(f"listen=127.0.0.1:{port}")
                yield self._listen(page, command, words) if listens else self._run(page, command, words)
            self.stop()

    def _missing(self) -> list[str]:
        """README's commands that make files for other pages, unless these files are there."""
        if all((self._folder / name).exists() for name in MADE):
            return []
        lines = [line for commands in blocks((ROOT / FIRST).read_text()) for line in commands]
        return [line for line in lines if line.startswith(("privml convert ", "python "))]

    def _listen(self, page: str, command: str, words: list[str]) -> Step:
        self.stop(dealers=False)
        start = time.monotonic()
        log = self._folder / f".{words[1]}.log"
        with log.open("w") as file:
            self._servers.append(subprocess.Popen(self._line(words), stdout=file, stderr=file, **self._place()))
        while time.monotonic() - start < SECONDS_TO_LISTEN and self._servers[-1].poll() is None:
            if " port " in log.read_text():
                return Step(page, command, time.monotonic() - start, None, True, "")
            time.sleep(0.05)
        return Step(page, command, time.monotonic() - start, None, False, log.read_text())

    def _run(self, page: str, command: str, words: list[str]) -> Step:
        start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            done = subprocess.run(
                self._line(words), capture_output=True, text=True, timeout=SECONDS_TO_RUN, **self._place()
            )
            right, output = done.returncode == 0, done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            right, output = False, f"did not end within {SECONDS_TO_RUN:g} s"
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Step(page, command, time.monotonic() - start, processor, right, output)

    def _line(self, words: list[str]) -> list[str]:
        return [sys.executable, *(PRIVML if words[0] == "privml" else ()), *words[1:]]

    def _place(self) -> dict:
        return {"cwd": self._folder, "env": self._environment}

    def stop(self, dealers: bool = True) -> None:
        """Ends the parties that listen; those that preprocess have ended by themselves, or are about to."""
        kept = [] if dealers else [each for each in self._servers if each.args[3] == "deal"]
        for each in self._servers:
            if each in kept:
                continue
            if each.args[3] == "preprocess":
                each.wait(SECONDS_TO_RUN)
            if each.poll() is None:
                each.send_signal(signal.SIGINT)
                each.wait(SECONDS_TO_RUN)
        self._servers = kept


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def table(steps: list[Step]) -> object:
    rows = [
        [
            f"{step.page}: {step.command}",
            f"{step.seconds:.1f}",
            "" if step.processor is None else f"{step.processor:.1f}",
            "" if step.right else "FAILED",
        ]
        for step in steps
    ]
    return console.table("Commands as a new user calls them", ["command", "seconds", "processor", ""], rows)


def main(pages: list[str]) -> int:
    steps = []
    with tempfile.TemporaryDirectory(prefix="privml-reader-") as folder:
        reader = Reader(Path(folder))
        try:
            for page in pages or PAGES:
                for step in reader.follow(page):
                    steps.append(step)
                    if not step.right:
                        print(f"{step.page}: {step.command}\n{step.output}", file=sys.stderr, flush=True)
        finally:
            reader.stop()
    console.out.print(table(steps))
    return 0 if all(step.right for step in steps) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
