# SPDX-License-Identifier: Apache-2.0
"""Threads that play the parties of one process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Any

from privml.errors import PeerDisconnected, PrivmlError, SecurityAbort

# How long the other parties may take to refuse the same wrong arguments before the channels are closed.
_GRACE_SECONDS = 2.0


class PartyThreads:
    """One thread per party. When a party fails, ``close`` ends what the others wait for, and the first
    error is raised; after that every call raises PeerDisconnected naming it, or SecurityAbort if it was one."""

    def __init__(self, parties: int, close: Callable[[], None], session: list[PartyThreads] | None = None) -> None:
        self._executors = [ThreadPoolExecutor(1, f"party-{rank}") for rank in range(parties)]
        self._close = close
        self._submitting = threading.Lock()
        self._ended: str | None = None
        self._kind: type[PrivmlError] = PeerDisconnected
        # All threads of one session; what ends one of them ends all.
        self._session = [] if session is None else session
        self._session.append(self)

    def beside(self) -> PartyThreads:
        """Further threads of the same session, for calls that run at the same time."""
        return PartyThreads(len(self._executors), self._close, self._session)

    def run(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        """Runs ``calls[rank]`` on the thread of each party and returns the results."""
        failed: list[BaseException] = []

        def guarded(call: Callable[[], Any]) -> Any:
            try:
                return call()
            except BaseException as error:
                failed.append(error)
                raise

        with self._submitting:
            if self._ended is not None:  # just now
                raise self._kind(f"this session ended: {self._ended}; open a new one")
            pairs = zip(self._executors, calls, strict=True)
            futures = [executor.submit(guarded, call) for executor, call in pairs]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            if failed:
                self._settle(futures, failed)
        except BaseException as error:
            if self._ended is None and not _refused_by_all(futures):
                self._fail(error)
            raise
        return [future.result() for future in futures]

    def _settle(self, futures: list[Future[Any]], failed: list[BaseException]) -> None:
        # Wrong arguments are refused by every party before a byte is sent: the session lives on.
        if isinstance(failed[0], ValueError):
            wait(futures, _GRACE_SECONDS, ALL_COMPLETED)
        if not _refused_by_all(futures):
            self._fail(failed[0])
            wait(futures)
        raise next((e for e in failed if not isinstance(e, PeerDisconnected)), failed[0])

    def _fail(self, error: BaseException) -> None:
        kind = SecurityAbort if isinstance(error, SecurityAbort) else PeerDisconnected
        self.close(f"{type(error).__name__}: {error}", kind)

    def close(self, reason: str = "it was closed", kind: type[PrivmlError] = PeerDisconnected) -> None:
        """Ends all channels; running calls of the parties end with PeerDisconnected, later ones with ``kind``."""
        for threads in self._session:
            with threads._submitting:
                if threads._ended is not None:
                    continue
                threads._ended, threads._kind = reason, kind
                for executor in threads._executors:
                    executor.shutdown(wait=False)
        self._close()


def _refused_by_all(futures: list[Future[Any]]) -> bool:
    return all(f.done() and isinstance(f.exception(), ValueError) for f in futures)
