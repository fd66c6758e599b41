# SPDX-License-Identifier: Apache-2.0
"""What tests change in a party's process before it runs: deaths at chosen steps of a store, full disks, records of
which correlations were handed out. Nothing of this is in the program itself."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

from privml.store import durable
from privml.store import store as stores


def record_hand_outs(file: str) -> None:
    """Appends a line to ``file`` for every chunk before its contents go out."""
    original = stores.Store._hand_out

    def recording(self, chunks):
        for chunk in original(self, chunks):
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.write(handle, (chunk.context.decode() + "\n").encode())
            os.close(handle)
            yield chunk

    stores.Store._hand_out = recording


def die_at_store_step(number: int) -> None:
    """SIGKILL at step ``number`` (from 1) of the store's own: before and after each write, sync, renaming and removal
    below the folder of a store, counted from the first one."""
    left = number

    def step() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(function):
        def stepping(*args, **named):
            step()
            result = function(*args, **named)
            step()
            return result

        return stepping

    class Steps:
        """The module os as the store sees it."""

        write, fsync, replace = (staticmethod(around(each)) for each in (os.write, os.fsync, os.replace))

        def __getattr__(self, name):
            return getattr(os, name)

    durable.os = Steps()
    unlink = Path.unlink

    def stepping_unlink(self, missing_ok=False):
        if self.parent.name == "chunks":
            step()
        unlink(self, missing_ok)
        if self.parent.name == "chunks":
            step()

    Path.unlink = stepping_unlink


def full_while(flag: str) -> None:
    """Writes of stores fail with ENOSPC while the file ``flag`` exists."""

    class Full:
        """The module os as the store sees it."""

        def write(self, handle, data):
            if os.path.exists(flag):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return os.write(handle, data)

        def __getattr__(self, name):
            return getattr(os, name)

    durable.os = Full()
