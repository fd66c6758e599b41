# SPDX-License-Identifier: Apache-2.0
"""Progress of a running program, node by node."""

from __future__ import annotations

from collections.abc import Callable

from privml.context import Session
from privml.program import Program

# Called with (nodes done, nodes in all, the node that begins or "done").
Progress = Callable[[int, int, str], None]


def report_nodes(session: Session, program: Program, progress: Progress | None) -> None:
    """Makes the session's ledger call ``progress`` at each node that starts, and at the end."""
    if progress is None or session.ledger is None:
        return
    total, done = len(program.layers), 0

    def on_node(event: str, name: str) -> None:
        nonlocal done
        if event == "start":
            progress(done, total, name)
            return
        done += 1
        if done == total:
            progress(total, total, "done")

    session.ledger.on_node.append(on_node)
