# SPDX-License-Identifier: Apache-2.0
"""Command lines as processes of their own, without the seconds that loading torch takes each time.

They fork from a server that has loaded what privml needs, and so do the parties that they start; arguments,
environment, working directory, output and exit status are those of the command. ``test_cli`` runs some as a shell does,
and ``test_copies`` and a test of ``test_service`` start parties as users do, to see that this makes no difference.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from multiprocessing import forkserver, reduction, resource_tracker
from pathlib import Path
from typing import Any, TextIO

from patience import PATIENCE

from privml.measure import launch
from privml.measure.copies import Running

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
PROCESSES = multiprocessing.get_context("forkserver")
# What takes long to load, and pytest, which every process of its workers loads; what is not installed is passed over.
# None of them starts a thread, which a copy would lack, as pandas and onnxruntime do.
PROCESSES.set_forkserver_preload(
    ["pytest", "torch.distributed.tensor", "hydra", "privml.conversion", "privml.service.server", "privml.cli.sources"]
    # what conversion loads of torch when it is called; readers, training and pictures
    + ["torch.export._trace", "torch._export.non_strict_utils", "torch._inductor.fx_passes", "sympy.combinatorics"]
    + ["onnx.reference", "scipy.stats", "scipy.sparse.linalg", "joblib", "matplotlib.pyplot", "jinja2"]
)
FRESH = launch.fresh


class Command:
    """``privml *arguments``, or the script ``arguments[0]`` where that ends in .py, started in ``cwd``.

    ``stdout`` and ``stderr`` are text files; leaving the block kills what still runs.
    """

    def __init__(self, *arguments: str, cwd: Path, environment: Mapping[str, str] | None = None) -> None:
        ends = [os.pipe(), os.pipe()]
        self.stdout, self.stderr = (os.fdopen(reading, encoding="utf-8") for reading, _ in ends)
        writing = [_Descriptor(end) for _, end in ends]
        variables = {**os.environ, **ENVIRONMENT, **(environment or {})}
        self._process = PROCESSES.Process(target=_run, args=(arguments, str(cwd), variables, *writing))
        self._process.start()
        for _, end in ends:
            os.close(end)

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self, timeout: float = PATIENCE) -> int:
        """The exit status."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutError(f"process {self.pid} still runs after {timeout} seconds")
        return self._process.exitcode

    def poll(self) -> int | None:
        """The exit status, None while it runs."""
        return self._process.exitcode

    def kill(self) -> None:
        if self._process.is_alive():
            self._process.kill()
        self._process.join()

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()
        self.stdout.close()
        self.stderr.close()


def run(*arguments: str, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """A command to its end. ``check``: it must succeed."""
    with Command(*arguments, cwd=cwd) as command:
        errors: list[str] = []
        reader = _reading(command.stderr, errors)
        output = command.stdout.read()
        status = command.wait()
        reader.join()
    assert not check or status == 0, errors[0]
    return subprocess.CompletedProcess(arguments, status, output, errors[0])


class Party(Running):
    """A party of ``launch``, which runs ``main`` of ``module``."""

    def __init__(self, module: str, threads: int) -> None:
        (task, giving), (reading, events) = os.pipe(), os.pipe()
        self.stdin, self.stdout = os.fdopen(giving, "wb"), os.fdopen(reading, "rb")
        variables = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1"}
        arguments = module, variables, _Descriptor(task), _Descriptor(events)
        super().__init__(PROCESSES.Process(target=_play, args=arguments))
        for end in (task, events):
            os.close(end)


def forked(command: Sequence[str], threads: int) -> Running | subprocess.Popen:
    """In place of ``launch.fresh``; what does without torch is started as it is."""
    return Party(command[1], threads) if command[0] == "-m" else FRESH(command, threads)


def forked_verb(arguments: Sequence[str], stderr: TextIO | None) -> Running:
    """In place of ``train.start``."""
    output, errors = (_Descriptor(number) for number in (1, stderr.fileno() if stderr else 2))
    given = tuple(arguments), os.getcwd(), dict(os.environ), output, errors
    return Running(PROCESSES.Process(target=_run, args=given))


def _reading(file: TextIO, into: list[str]) -> threading.Thread:
    """So that neither pipe fills up while the other one is read."""
    thread = threading.Thread(target=lambda: into.append(file.read()))
    thread.start()
    return thread


class _Descriptor:
    """A file descriptor that goes along to a started process."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (reduction.DupFd(self._number),)


def _received(shared: Any) -> int:
    return shared.detach()


def _play(module: str, variables: dict[str, str], task: int, events: int) -> None:
    os.environ.clear()
    os.environ.update(variables)
    for number, end in ((0, task), (1, events)):
        os.dup2(end, number)
        os.close(end)
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
    import torch

    from privml.measure.worker import work

    torch.set_num_threads(int(variables["OMP_NUM_THREADS"]))
    work(import_module(module).main)


def _run(arguments: tuple[str, ...], cwd: str, variables: dict[str, str], output: int, errors: int) -> None:
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(cwd)
    for number, end in ((1, output), (2, errors)):
        os.dup2(end, number)
        os.close(end)
    import torch

    torch.set_num_threads(int(variables["OMP_NUM_THREADS"]))
    sys.path.insert(0, variables["PYTHONPATH"])
    # What the command starts forks from the same server, not from one of its own.
    forkserver._forkserver.ensure_running = resource_tracker.ensure_running
    launch.fresh = forked
    if "train" in arguments:
        from privml.cli import train

        train.start = forked_verb
    if arguments[0].endswith(".py"):
        sys.argv = list(arguments)
        runpy.run_path(arguments[0], run_name="__main__")
        return
    from privml.cli import main

    main(list(arguments))
