# SPDX-License-Identifier: Apache-2.0
"""Parties that are copies of the process that runs them, as ``privml run`` makes them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
# In a process of its own: this one has threads, and may hold anything.
PRELUDE = """
import os, sys, threading
from pathlib import Path
import torch
from privml.measure.copies import Copies, can_copy
from privml.measure.launch import PARTY, launch
from privml.session.session import load_torch
from privml.spec import SessionSpec

def children():
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()

load_torch()
"""
QUERY = """
from privml.conversion import convert
spec = SessionSpec(sys.argv[1])

def told(run):
    assert (run.outputs[0] - module(value)).abs().max() < 0.05
    ledger = run.client.ledger["total"]["online"]
    print(ledger["sent"], ledger["received"], ledger["depth"], children())

with Copies(PARTY, spec.backend.parties) as copies:
    waiting = children()
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3)).eval()
    value = torch.rand(2, 6)
    program = convert(module, calibration=torch.rand(8, 6), numerics={"bits": 32})
    run = launch(program, value, spec, copies=copies)
    assert copies.take() is None and len(waiting) == spec.backend.parties
told(run)
told(launch(program, value, spec))
"""


def python(text: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + text, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("engine", ["twopc", "threepc"])
def test_copies_compute_what_fresh_processes_compute(engine: str) -> None:
    copied, fresh = python(QUERY, engine).splitlines()
    assert copied.endswith("[]")  # none is left
    assert fresh == copied


def test_a_process_with_threads_is_not_copied() -> None:
    """A lock that another thread holds would stay locked in the copy."""
    text = """
assert can_copy()
over = threading.Event()
thread = threading.Thread(target=over.wait)
thread.start()
with Copies(PARTY, 2) as copies:
    print(copies.take(), children())
over.set()
"""
    assert python(text) == "None []"


def test_a_verb_starts_without_threads() -> None:
    """Whatever the shell sets: else every party would load torch for itself."""
    text = """
from privml import cli
from privml.measure.copies import can_copy

def run_verb(verb, overrides):
    import torch, numpy
    print(can_copy())

cli.run_verb = run_verb
cli.main(["run"])
"""
    unset = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    environment = {**unset, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert done.stdout == "True\n"


def test_what_was_not_taken_ends_with_the_block() -> None:
    text = """
with Copies(PARTY, 2):
    before = len(children())
print(before, children())
"""
    assert python(text) == "2 []"


def test_a_copy_ends_when_its_launcher_is_killed() -> None:
    text = """
import signal
copies = Copies(PARTY, 2)
print(*children(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + text],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,  # which a copy that lived on would keep open
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert len(done.stdout.split()) == 2 and done.returncode == -9
