# SPDX-License-Identifier: Apache-2.0
"""Programs of a user's own, each party's as a script in a process."""

from __future__ import annotations

import textwrap
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands import Command
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


def run_programs(folder: Path, *bodies: str, deadline: float = DEADLINE, **options: Any) -> list[Outcome]:
    """The outcomes of the parties' programs: ``bodies[rank]`` runs within ``with privml.connect(...) as session``, in
    party0.py, party1.py and party2.py from their line 8 on. ``options`` go to connect."""
    with reserved(2) as (peer, dealer), ExitStack() as running:
        started = []
        for rank, body in enumerate(bodies):
            places = {"listen": peer if rank == 0 else dealer} if rank != 1 else {"connect": peer}
            if len(bodies) == 3 and rank < 2:
                places["dealer"] = dealer
            settings = {**places, "deadline": deadline, "engine": "threepc" if len(bodies) == 3 else "twopc", **options}
            lines = [
                "import random",
                "import numpy as np",
                "import torch",
                "import privml",
                "from torch.utils.data import DataLoader, TensorDataset",
                f"rank = {rank}",
                f"with privml.connect(rank, **{settings!r}) as session:",
                textwrap.indent(textwrap.dedent(body).strip(), "    "),
            ]
            script = folder / f"party{rank}.py"
            script.write_text("\n".join(lines) + "\n")
            started.append(running.enter_context(Command(str(script), cwd=folder)))
        return [Outcome(each.wait(), each.stdout.read(), each.stderr.read()) for each in started]
