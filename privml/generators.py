# SPDX-License-Identifier: Apache-2.0
"""The process's generators of random numbers, equal at all parties while their programs run.

What a program draws from torch, Python's ``random`` and numpy without naming a generator (the order of a DataLoader,
dropout, initial weights) is public to the session: every party draws the same, and can predict what the others draw.
"""

from __future__ import annotations

import hashlib
import random
import threading
from array import array
from typing import Any

import numpy as np
import torch

# Those that are entered, the innermost last: like the generators themselves they belong to the process.
_entered: list[CommonGenerators] = []


class CommonGenerators:
    """Seeds the global generators on entering and restores them on leaving; on another thread than the main one it
    leaves them alone, since they belong to the whole process. If one is entered within another, what is drawn counts
    for the inner one alone."""

    def __init__(self, seed: int) -> None:
        self._seed = hashlib.blake2b(str(seed).encode(), digest_size=32, person=b"privml drawing").digest()
        self._kept: tuple[Any, ...] | None = None
        self._start = self._paused = b""

    def enter(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
        if _entered:
            _entered[-1]._paused = _state()
        _entered.append(self)
        self._kept = torch.get_rng_state(), random.getstate(), np.random.get_state(), cuda
        torch.manual_seed(int.from_bytes(self._seed[:8], "little") >> 1)
        random.seed(self._seed[8:24])
        np.random.seed(np.frombuffer(self._seed[16:], np.uint32))
        self._start = _state()

    def leave(self) -> None:
        if self._kept is None:
            return
        (of_torch, of_python, of_numpy, cuda), self._kept = self._kept, None
        torch.set_rng_state(of_torch)
        random.setstate(of_python)
        np.random.set_state(of_numpy)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)
        elif torch.cuda.is_initialized():  # within the session: there is nothing to go back to
            torch.cuda.seed_all()
        _entered.remove(self)
        if _entered:
            _entered[-1]._paused = b""

    def digest(self) -> bytes:
        """What has been drawn so far, on CPUs; empty where that is nothing, as it is for a party whose session is
        entered on another thread, and where the generators are not seeded."""
        if self._kept is None:
            return b""
        state = self._paused or _state()
        return b"" if state == self._start else state


def _state() -> bytes:
    _, key, place, has_normal, normal = np.random.get_state(legacy=True)
    state = hashlib.blake2b(torch.get_rng_state().numpy(), digest_size=32)
    _, numbers, gauss = random.getstate()
    state.update(array("Q", numbers).tobytes() + repr(gauss).encode())
    state.update(key.tobytes() + f"{place} {has_normal} {normal!r}".encode())
    return state.digest()
