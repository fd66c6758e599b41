# SPDX-License-Identifier: Apache-2.0
"""Files that must be on the disk before anything else happens: written, synced, and their folder too."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from privml.errors import StoreError

FILE_MODE, FOLDER_MODE = 0o600, 0o700


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns a full disk, in whatever system call it shows, into a StoreError naming ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoreError(f"{path}: the disk is full; free some space or choose another folder") from error
        raise


def sync_folder(folder: Path) -> None:
    """Makes created, renamed and removed names of ``folder`` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_new(path: Path, data: bytes) -> None:
    """A file of mode 0600 that did not exist, with its contents on the disk (its name needs ``sync_folder``)."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def replace(path: Path, data: bytes) -> None:
    """Old contents or new ones, never a mixture, and durably the new ones when it returns."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with writing(path):
        try:
            write_new(fresh, data)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
        os.replace(fresh, path)
        sync_folder(path.parent)


class FolderLock:
    """One process at a time: an advisory lock that the system drops when its holder dies."""

    def __init__(self, folder: Path) -> None:
        with writing(folder):
            self._handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._handle, 32, 0).decode(errors="replace").strip()
            os.close(self._handle)
            raise StoreError(
                f"{folder} is in use by process {holder or 'unknown'}; a store serves one at a time"
            ) from None
        with contextlib.suppress(OSError):  # who holds it is for people; a full disk must not keep others from reading
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)

    @property
    def held(self) -> bool:
        return self._handle >= 0

    def release(self) -> None:
        if self.held:
            os.close(self._handle)
            self._handle = -1
