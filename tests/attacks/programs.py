# SPDX-License-Identifier: Apache-2.0
"""Programs of a user's own, each party's as a script in a process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands import ENVIRONMENT, Command
from patience import PATIENCE
from ports import reserved

# Long enough for a loaded machine; what waits for it is said where it is given.
DEADLINE = 120.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a party's process ended, and what it said."""

    status: int
    said: str
    errors: str

    @property
    def last(self) -> str:
        """The last line of its errors: an exception's."""
        lines = self.errors.strip().splitlines()
        return lines[-1] if lines else ""


class Apart:
    """A script as ``Command`` runs it, in a process that loads all by itself: its addresses and the order of its sets
    are not those of the others."""

    def __init__(self, script: str, cwd: Path, seed: int) -> None:
        variables = {**os.environ, **ENVIRONMENT, "PYTHONHASHSEED": str(seed)}
        self._process = subprocess.Popen(
            [sys.executable, script], cwd=cwd, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.stdout, self.stderr = self._process.stdout, self._process.stderr

    def wait(self) -> int:
        return self._process.wait(PATIENCE)

    def __enter__(self) -> Apart:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.communicate()


def run_programs(
    folder: Path, *bodies: str, deadline: float = DEADLINE, apart: bool = False, **options: Any
) -> list[Outcome]:
    """The outcomes of the parties' programs: ``bodies[rank]`` runs within ``with privml.connect(...) as session``, in
    party0.py, party1.py and party2.py from their line 8 on. ``apart``: in processes that have nothing in common;
    ``options`` go to the specification."""
    with reserved(2) as (peer, dealer), ExitStack() as running:
        started = []
        for rank, body in enumerate(bodies):
            places = {"listen": peer if rank == 0 else dealer} if rank != 1 else {"connect": peer}
            if len(bodies) == 3 and rank < 2:
                places["dealer"] = dealer
            settings = {"engine": "threepc" if len(bodies) == 3 else "twopc", "deadline": deadline, **options}
            lines = [
                "import random",
                "import numpy as np",
                "import torch",
                "import privml",
                "from torch.utils.data import DataLoader, TensorDataset",
                f"rank = {rank}",
                f"with privml.connect(rank, privml.SessionSpec.of(**{settings!r}), **{places!r}) as session:",
                textwrap.indent(textwrap.dedent(body).strip(), "    "),
            ]
            script = folder / f"party{rank}.py"
            script.write_text("\n".join(lines) + "\n")
            process = Apart(str(script), folder, rank + 1) if apart else Command(str(script), cwd=folder)
            started.append(running.enter_context(process))
        return [Outcome(each.wait(), each.stdout.read(), each.stderr.read()) for each in started]
