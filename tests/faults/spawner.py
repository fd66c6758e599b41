# SPDX-License-Identifier: Apache-2.0
"""Starts programs of privml as processes of their own, quickly: it has loaded what they load and forks.

    python spawner.py     one JSON order a line on standard input, one JSON report a line on standard output

An order has "words" (a verb of privml and its settings, or a script and its arguments), "folder", "output" and
"errors" (files), and may have "hooks" (a list of [function of fault_hooks, its arguments]) and "namespace" (a network
namespace). The report names the "pid"; another one tells its "status" when it has ended. After an empty line, or when
the standard input ends, whatever still runs is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOADED = (
    "hydra", "torch.distributed.tensor", "privml.cli.serve", "privml.cli.query", "privml.cli.deal",
    "privml.cli.preprocess", "rich.progress", "matplotlib", "safetensors.torch", "models.tasks",
    "sklearn.datasets", "torch._dynamo", "privml.checkpoint", "privml.step", "privml.cli.train",
)  # fmt: skip
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1


def tell(**report: int) -> None:
    os.write(1, (json.dumps(report) + "\n").encode())


def report_ends(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            RUNNING.discard(ended[0])
            tell(pid=ended[0], status=os.waitstatus_to_exitcode(ended[1]))


RUNNING: set[int] = set()


def orders() -> dict | None:
    """The order that this process, a child, is to carry out; None at the end of all orders, in the parent."""
    for line in sys.stdin.buffer:
        if line == b"\n":
            break
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # its end is told after its beginning
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            return json.loads(line)
        RUNNING.add(pid)
        tell(pid=pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    for pid in list(RUNNING):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return None


def carry_out(order: dict) -> None:
    """As if it had been started from a shell."""
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if order.get("namespace"):
        with open(f"/run/netns/{order['namespace']}") as place:
            if library.setns(place.fileno(), _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
    os.chdir(order["folder"])
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    for target, name in ((1, "output"), (2, "errors")):
        handle = os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(handle, target)
        os.close(handle)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for hook, arguments in order.get("hooks", []):
        getattr(importlib.import_module("fault_hooks"), hook)(*arguments)
    program, *words = order["words"]
    if program.endswith(".py"):
        sys.argv = [program, *words]
        runpy.run_path(program, run_name="__main__")
    else:
        from privml.cli import main

        main(order["words"])


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]
    for name in LOADED:
        with contextlib.suppress(ImportError):  # what only some programs need
            importlib.import_module(name)
    import torch

    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, report_ends)
    tell(pid=0)
    if (mine := orders()) is not None:
        carry_out(mine)
