# SPDX-License-Identifier: Apache-2.0
"""Workers as Ray actors, on this machine or on others of the same organisation.

Nothing secret goes through Ray: an actor gets the names of files, which lie at the same places on every machine, and
tells what a worker tells (see ``privml.service.worker``).
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator
from typing import Any

from privml.errors import ConfigError
from privml.service.stopping import Stop, kept_signals
from privml.service.worker import run

# How long a call waits for a message before it answers that there is none.
_SLICE_SECONDS = 1.0


class _Serving:
    """A server on a thread of an actor's process."""

    def __init__(self, task: dict[str, Any]) -> None:
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._stop = Stop()
        threading.Thread(target=self._run, args=(task,), name="server", daemon=True).start()

    def _run(self, task: dict[str, Any]) -> None:
        try:
            run(task, self._messages.put, self._stop)
        finally:
            self._messages.put(None)

    def next(self) -> list[dict[str, Any] | None]:
        """What has happened since the last call; None at the end."""
        try:
            told = [self._messages.get(timeout=_SLICE_SECONDS)]
        except queue.Empty:
            return []
        while not self._messages.empty():
            told.append(self._messages.get())
        return told

    def drain(self) -> None:
        self._stop.draining = True

    def cut(self) -> None:
        self._stop.draining = self._stop.ending = True

    def pid(self) -> int:
        return os.getpid()


def connect(address: str | None) -> Any:
    """Ray, begun on this machine or, with ``address`` ("auto" or host:port), found there. ConfigError without it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise ConfigError("cluster=ray needs ray: pip install 'privml[cluster]'") from None
    if not ray.is_initialized():
        with kept_signals():  # Ray would end the process at SIGTERM, and its sessions with it
            ray.init(address=address, include_dashboard=False, log_to_driver=False, configure_logging=False)
    return ray


class RayWorker:
    """An actor that serves ``task``; ``host``: where clients find it."""

    def __init__(self, ray: Any, task: dict[str, Any], host: str) -> None:
        self.host, self._ray = host, ray
        environment = {"env_vars": {"OMP_NUM_THREADS": str(task["spec"]["threads"])}}
        options = {"num_cpus": 1, "max_restarts": 0, "max_concurrency": 4, "runtime_env": environment}
        self._actor = ray.remote(_Serving).options(**options).remote(task)

    @property
    def pid(self) -> int:
        return self._ray.get(self._actor.pid.remote())

    def messages(self) -> Iterator[dict[str, Any]]:
        while True:
            try:
                told = self._ray.get(self._actor.next.remote())
            except self._ray.exceptions.RayError:
                return  # it has died
            for message in told:
                if message is None:
                    self.end()
                    return
                yield message

    def drain(self) -> None:
        self._actor.drain.remote()

    def cut(self) -> None:
        self._actor.cut.remote()

    def end(self) -> None:
        self._ray.kill(self._actor)
