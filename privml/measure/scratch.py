# SPDX-License-Identifier: Apache-2.0
"""Folders for what a run leaves between its processes, which go with it: weights and inputs lie there in clear."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from privml.errors import StoreError
from privml.store.durable import FolderLock

_PREFIX = ".privml-run-"
# A younger folder may not be locked yet.
_SECONDS_TO_LOCK = 60.0


@contextlib.contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[Path]:
    """A folder of this user alone within ``parent`` (None: the system's folder for temporary files), until the block
    ends. Removes those of processes that were killed before."""
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    _remove_abandoned(parent)
    with tempfile.TemporaryDirectory(dir=parent, prefix=_PREFIX, ignore_cleanup_errors=True) as name:
        lock = FolderLock(Path(name))
        try:
            yield Path(name)
        finally:
            lock.release()


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.glob(_PREFIX + "*"):
        with contextlib.suppress(OSError, StoreError):  # another process removes it, or still has it
            found = folder.lstat()
            old = time.time() - found.st_mtime > _SECONDS_TO_LOCK
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or not old:
                continue
            lock = FolderLock(folder)
            shutil.rmtree(folder, ignore_errors=True)
            lock.release()
