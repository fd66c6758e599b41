# SPDX-License-Identifier: Apache-2.0
"""Processes that play parties, and their end."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

PARTY = Path(__file__).with_name("party.py")


class PartyProcess:
    def __init__(self, rank: int, side: str, address: str, options: dict) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(PARTY), str(rank), side, address, json.dumps(options)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        env=environment)
        self.lines: list[str] = []

    def line(self, start: str) -> str:
        """The next line that begins with ``start``."""
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if line.startswith(start):
                return line.rstrip()
        raise AssertionError(f"no line '{start}' in {self.lines}")

    def last(self, timeout: float = 60) -> str:
        """The line it ended with."""
        output, _ = self.process.communicate(timeout=timeout)
        self.lines += output.splitlines()
        return self.lines[-1]


@pytest.fixture
def party():
    started = []

    def start(rank: int, side: str, address: str, **options) -> PartyProcess:
        started.append(PartyProcess(rank, side, address, options))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
        each.process.communicate()


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
