# SPDX-License-Identifier: Apache-2.0
"""The workers of a cluster: servers in processes of their own, on this machine or as Ray actors.

``python -m privml.service.worker`` takes its task, a line of JSON, from standard input and ends when that is closed: so
no worker outlives its cluster. Every line that it writes is a message of JSON: ``{"port": ...}`` once,
``{"state": {"ready": ..., "waiting": ..., "running": ...}}`` whenever that changes, ``{"event": {...}}`` for everything
that happens, and ``{"error": {"type": ..., "message": ...}}`` if it cannot serve.

Nothing secret goes through Ray: an actor gets the names of files, which lie at the same places on every machine, and
sends the same messages.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import torch

from privml.engines.correlations import OtChoice
from privml.errors import ConfigError, PrivmlError
from privml.program import Program
from privml.service.events import Event, Stop, kept_signals
from privml.service.options import Addresses, Capacity, Hooks, Limits
from privml.service.server import serve
from privml.session.identity import Tls
from privml.spec import Identity, LinkProfile, SessionSpec, engine

Message = dict[str, Any]
Send = Callable[[Message], None]
# Orders to a worker: to finish what it has begun, or to cut it off.
DRAIN, CUT = "drain", "cut"


def serve_task(task: Message, send: Send, stop: Stop) -> None:
    """``serve`` with the settings of a task (see ``task_of``), every message to ``send``."""
    spec, limits = spec_of(task["spec"]), task["limits"]
    torch.set_num_threads(spec.threads)
    serve(
        Program.load(task["program"], task["weights"]),
        Addresses(task["listen"], task["dealer"]),
        spec,
        limits=Limits(**{**limits, "capacity": Capacity(**limits["capacity"])}),
        hooks=Hooks(
            log=lambda text: None,
            on_listening=lambda port: send({"port": port}),
            on_event=lambda event: send({"event": asdict(event)}),
            on_state=lambda state: send({"state": asdict(state)}),
            stop=stop,
        ),
    )


def task_of(program: str, weights: str | None, dealer: str | None, spec: SessionSpec, limits: Limits) -> Message:
    """A task, as plain values: files by their names, which are the same on every machine of the cluster."""
    return {
        "program": os.path.abspath(program),
        "weights": None if weights is None else os.path.abspath(weights),
        "dealer": dealer,
        "spec": plain_spec(spec),
        "limits": asdict(limits),
    }


def plain_spec(spec: SessionSpec) -> Message:
    """``spec`` as plain values, except for the formats, which are the program's."""
    if spec.test_seed is not None:
        raise ConfigError("test_seed gives no security: workers of a cluster do not take it")
    tls = spec.identity.tls
    return {
        "engine": [spec.engine.engine, asdict(spec.engine)],
        "ot": asdict(spec.ot),
        "threads": spec.threads,
        "deadline": spec.deadline,
        "link": asdict(spec.link),
        "simulated": None if spec.simulated is None else asdict(spec.simulated),
        "tls": None if tls is None else _plain(tls),
        "insecure": spec.identity.insecure,
    }


def _plain(tls: Tls) -> Message:
    files = {name: os.path.abspath(getattr(tls, name)) for name in ("authority", "certificate", "key")}
    names = {str(rank): some if isinstance(some, str) else list(some) for rank, some in tls.names.items()}
    return {**files, "names": names}


def spec_of(plain: Message) -> SessionSpec:
    """The reverse of ``plain_spec``."""
    (name, own), tls, simulated = plain["engine"], plain["tls"], plain["simulated"]
    return SessionSpec(
        engine(name, **own),
        OtChoice(**plain["ot"]),
        threads=plain["threads"],
        deadline=plain["deadline"],
        link=LinkProfile(**plain["link"]),
        simulated=None if simulated is None else LinkProfile(**simulated),
        identity=Identity(None if tls is None else tls_of(tls), plain["insecure"]),
    )


def tls_of(plain: Message) -> Tls:
    files = {name: plain[name] for name in ("authority", "certificate", "key")}
    return Tls(**files, names={int(rank): names for rank, names in plain["names"].items()})


def event_of(plain: Message) -> Event:
    return Event(**plain)


def run(task: Message, send: Send, stop: Stop) -> None:
    """``serve_task``, to its end; what goes wrong is a message."""
    try:
        serve_task(task, send, stop)
    except (PrivmlError, ValueError, OSError) as error:
        send({"error": {"type": type(error).__name__, "message": str(error)}})


def main() -> None:
    for each in (signal.SIGINT, signal.SIGTERM):  # of a terminal or a unit: the cluster's process decides
        signal.signal(each, signal.SIG_IGN)
    lock, stop = threading.Lock(), Stop()

    def send(message: Message) -> None:
        with lock:
            print(json.dumps(message), flush=True)

    def follow_orders() -> None:
        for line in sys.stdin:
            if line.strip() == DRAIN:
                stop.draining = True
            elif line.strip() == CUT:
                stop.draining = stop.ending = True
        os._exit(0)  # the cluster's process has ended

    task = json.loads(sys.stdin.readline())
    threading.Thread(target=follow_orders, name="orders", daemon=True).start()
    run(task, send, stop)
    sys.stdout.flush()
    os._exit(0)  # torch's exit takes longer than a small query


class LocalWorker:
    """``python -m privml.service.worker`` with ``task``; ``host``: its name for clients."""

    def __init__(self, task: dict[str, Any], host: str) -> None:
        self.host = host
        environment = {**os.environ, "OMP_NUM_THREADS": str(task["spec"]["threads"])}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "privml.service.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._order(json.dumps(task))

    @property
    def pid(self) -> int:
        return self._process.pid

    def messages(self) -> Iterator[dict[str, Any]]:
        for line in self._process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                sys.stderr.write(line)  # printed by a library
                continue
            if isinstance(message, dict):
                yield message
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def drain(self) -> None:
        self._order(DRAIN)

    def cut(self) -> None:
        self._order(CUT)

    def end(self) -> None:
        self._process.kill()

    def _order(self, line: str) -> None:
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            pass  # it has ended, and so have its messages


# How long a call waits for a message before it returns none.
_SLICE_SECONDS = 1.0


class _Serving:
    """A server on a thread of a Ray actor's process."""

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
            messages = [self._messages.get(timeout=_SLICE_SECONDS)]
        except queue.Empty:
            return []
        while not self._messages.empty():
            messages.append(self._messages.get())
        return messages

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
    """An actor that serves ``task``; ``host``: its name for clients."""

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
                messages = self._ray.get(self._actor.next.remote())
            except self._ray.exceptions.RayError:
                return  # it has died
            for message in messages:
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


if __name__ == "__main__":
    main()
