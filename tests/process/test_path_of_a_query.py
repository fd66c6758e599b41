# SPDX-License-Identifier: Apache-2.0
"""The files that a query passes from the command line to the bytes of a protocol stay few."""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any

import numpy as np
import pytest

import privml
from privml.cli import main

PACKAGE = privml.__file__.removesuffix("__init__.py")
# From the first call of the command, to the protocols of a matrix product and of a ReLU.
PROTOCOLS, MOST = ("matmul", "relu"), 14


def files_of(frame: FrameType | None) -> list[str]:
    """The package's files on the stack, outermost first."""
    found: list[str] = []
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(PACKAGE):
            found.insert(0, name.removeprefix(PACKAGE))
        frame = frame.f_back
    return found


def _is_protocol(function: Any) -> bool:
    module = getattr(function, "__module__", None) or ""
    return getattr(function, "__name__", "") in PROTOCOLS and module.startswith("privml._core")


class Watch:
    """The stacks where the client hands a query to its session, and where that session runs protocols of the core."""

    def __init__(self) -> None:
        self.before: list[str] = []
        self.within: list[list[str]] = []

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name == "query":  # a client's, then its session's
            found = files_of(frame)
            self.before = max(self.before, found, key=len) if "cli/query.py" in found else self.before
        elif event == "c_call" and _is_protocol(argument):
            found = files_of(frame)
            online = "service/client.py" in found and "service/negotiation.py" not in found
            self.within += [found] if online else []

    @property
    def paths(self) -> list[list[str]]:
        return [list(dict.fromkeys([*self.before, *found])) for found in self.within]


@pytest.fixture
def watch():
    watch = Watch()
    sys.setprofile(watch)
    threading.setprofile(watch)
    yield watch
    sys.setprofile(None)
    threading.setprofile(None)


def test_a_query_passes_few_files(server, program, tmp_path, monkeypatch, watch):
    monkeypatch.chdir(tmp_path)
    program.save("net")
    np.save("x.npy", np.ones((2, 4), np.float32))
    with server() as running:
        main(["query", "program=net/program", f"server={running.address}", "input=x.npy", "ot=ideal", "quiet=true"])
    assert "cli/__init__.py" in watch.before and len(watch.paths) >= 2
    for path in watch.paths:
        assert path[0] == "cli/__init__.py" and path[-1].startswith("engines/twopc/")
        assert len(path) <= MOST, path
