# SPDX-License-Identifier: Apache-2.0
"""Workers as processes of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from privml.service.worker import CUT, DRAIN


class LocalWorker:
    """``python -m privml.service.worker`` with ``task``; ``host``: where clients find it."""

    def __init__(self, task: dict[str, Any], host: str) -> None:
        self.host = host
        environment = {**os.environ, "OMP_NUM_THREADS": str(task["spec"]["threads"])}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "privml.service.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._order(json.dumps(task))

    @property
    def pid(self) -> int:
        return self._process.pid

    def messages(self) -> Iterator[dict[str, Any]]:
        for line in self._process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                sys.stderr.write(line)  # a library's own words
                continue
            if isinstance(message, dict):
                yield message
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def drain(self) -> None:
        self._order(DRAIN)

    def cut(self) -> None:
        self._order(CUT)

    def end(self) -> None:
        self._process.kill()

    def _order(self, line: str) -> None:
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            pass  # it has ended, which messages() tells
