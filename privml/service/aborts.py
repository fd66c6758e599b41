# SPDX-License-Identifier: Apache-2.0
"""How often actively secure sessions with one peer may fail before it is refused.

A dishonest peer has one attempt per session at a wrong value, which passes with probability 2^-sigma: sigma is 57 for
the ring of 64 bits, 26 for that of 32. Attempts of many sessions add up. A peer that is refused after ``n`` failures
succeeds with probability n 2^-sigma at most: 2^-20 for the ring of 32 bits, 2^-41 for that of 64.

Peers are known by the names that their certificates prove. Connections without them are neither counted nor
refused here, since one client could then shut out all. Sessions that are open when the limit is reached go on: add
their number to n.

Counts outlive the server in a file, since a peer may be able to end its process. A session is on the disk before it
begins and taken off when it has ended well: one that the server did not survive has failed.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import privml._core as _core
from privml.errors import (
    ConfigError,
    CorruptFile,
    HandshakeMismatch,
    IdentityError,
    InvalidInput,
    ServiceBusy,
    ServiceMoved,
    StoreError,
)
from privml.store.durable import FILE_MODE, FOLDER_MODE, replace

# What ends a session before anything is computed in it.
HARMLESS = (ConfigError, HandshakeMismatch, IdentityError, InvalidInput, ServiceBusy, ServiceMoved, StoreError)
# Failures after which a peer is refused, by the bits of the ring.
LIMITS = {32: 1 << 6, 64: 1 << 16}


def default_aborts_file() -> Path:
    """``privml/aborts.json`` in the user's folder of state."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "privml" / "aborts.json"


class Aborts:
    """Failed sessions by name, for several threads, and in ``path`` for several processes and those to come (None: in
    memory alone). Raises CorruptFile for a file that holds no counts, StoreError for one that cannot be written."""

    def __init__(self, path: Path | None = None) -> None:
        self._path, self._kept = path, Counter[str]()
        self._open: Counter[str] = Counter()  # sessions of this process, which may still end well
        self._lock = threading.Lock()
        with self._lock, self._counts():
            pass

    def require_trust(self, name: str, ring: int) -> None:
        """IdentityError where so many sessions with ``name`` have failed that no further one is opened."""
        if not name:
            return
        with self._lock, self._counts() as counts:
            count = counts[name] - self._open[name]
        if count >= LIMITS[ring]:
            raise IdentityError(f"{name!r} is refused: {count} of its sessions failed a check or broke off")

    @contextmanager
    def counted(self, channel: _core.Channel) -> Iterator[None]:
        """Counts a session with the peer of ``channel`` that fails within, however it fails: a peer that sees its
        attempt fail may leave, or send what is no message, before this party has looked."""
        name = channel.peer_name
        if not name:
            yield
            return
        with self._lock:
            self._add(name, 1)
            self._open[name] += 1
        harmless = False
        try:
            yield
            harmless = True
        except HARMLESS:
            harmless = True
            raise
        finally:
            with self._lock:
                self._open[name] -= 1
                if harmless:
                    self._add(name, -1)

    def _add(self, name: str, count: int) -> None:
        with self._counts() as counts:
            counts[name] += count
            if self._path is not None:
                held = {each: number for each, number in sorted(counts.items()) if number > 0}
                with self._writing():
                    replace(self._path, json.dumps(held, indent=1).encode())

    @contextmanager
    def _counts(self) -> Iterator[Counter[str]]:
        """What is counted, which no other process changes meanwhile."""
        if self._path is None:
            yield self._kept
            return
        with self._writing():
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
            handle = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            with self._writing():
                counts = _read(self._path)
            yield counts
        finally:
            os.close(handle)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"{self._path}: failed sessions cannot be counted there ({error.strerror}), and no session is "
                "opened without the count: name another file as aborts=FILE"
            ) from error


def _read(path: Path) -> Counter[str]:
    """The counts in a file, none if it does not exist; CorruptFile if it does not hold counts."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Counter()
    try:
        counts = json.loads(data)
        fits = all(type(number) is int and number > 0 for number in counts.values())
    except (ValueError, AttributeError, RecursionError):
        fits = False
    if not fits:
        raise CorruptFile(
            f"{path}: it does not hold counts of failed sessions; restore it, or remove it: then "
            "refused clients may connect again"
        )
    return Counter(counts)
