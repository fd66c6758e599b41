# SPDX-License-Identifier: Apache-2.0
"""A process that ``launch.Parties`` starts: the task that it reads, the events that it writes, its connections.

The task is a pickle on standard input. Every line on standard output is a JSON object with "event": "listening" (port),
"progress" (done, total, label), "log" (text), "done" (what it measured) or "error" (type, message). This module needs
neither torch nor the rest of the package.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

SECONDS_TO_CONNECT = 120.0  # a party that starts on a busy machine
SECONDS_TO_ANSWER = 600.0
PHASES = ("setup", "preprocess", "online")


def report(event: str, **content: Any) -> None:
    print(json.dumps({"event": event, **content}), flush=True)


def work(action: Callable[[dict[str, Any]], None]) -> None:
    """Runs ``action`` on the task, and ends the process."""
    try:
        task = pickle.load(sys.stdin.buffer)
    except EOFError:  # its launcher has ended
        os._exit(1)
    try:
        action(task)
    except Exception as error:  # the launcher raises it
        if type(error).__module__ == "builtins" and not isinstance(error, (ValueError, OSError)):
            traceback.print_exc()
        report("error", type=type(error).__name__, message=str(error))
        sys.exit(1)
    sys.stdout.flush()
    os._exit(0)  # torch's exit takes longer than a small query


def connect(core: Any, task: Mapping[str, Any], further: int) -> list[Any]:
    """The channels of party ``rank`` of ``parties``: one to each other party, by rank, then ``further`` ones between
    the first and the last party. ``ports``: of the parties before it, which listen already; it says its own.

    All parties have started when it returns.
    """
    rank, last, ports, shape = task["rank"], task["parties"] - 1, task["ports"], task["link"]
    called = [core.connect_tcp("127.0.0.1", port, SECONDS_TO_CONNECT, None, *shape) for port in ports]
    if rank == last:
        called += [core.connect_tcp("127.0.0.1", ports[0], SECONDS_TO_CONNECT, None, *shape) for _ in range(further)]
        answered = []
    else:
        listener = core.TcpListener("127.0.0.1", 0)
        report("listening", port=listener.port)
        count = last - rank + (further if rank == 0 else 0)
        answered = [listener.accept(SECONDS_TO_CONNECT, *shape) for _ in range(count)]
    channels = [*called, *answered]
    for channel in channels:
        channel.set_deadline(SECONDS_TO_ANSWER)
    meet(channels)
    return channels


def meet(channels: Sequence[Any]) -> None:
    """The others are here, too."""
    for channel in channels:
        channel.write(b"x")
    for channel in channels:
        channel.read(1)


def spent(after: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What was counted in each phase but the set-up."""
    return {
        phase: {key: after[phase][key] - before[phase][key] for key in after[phase]}
        for phase in PHASES
        if phase != "setup"
    }


def median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The run of middle length."""
    return sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2]
