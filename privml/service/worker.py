# SPDX-License-Identifier: Apache-2.0
"""One worker of a cluster: a server in a process of its own, and what it tells the front.

``python -m privml.service.worker`` takes its task, a line of JSON, from standard input and ends when that is closed: a
worker whose front has died serves nobody. Every line that it writes is a message of JSON: ``{"port": ...}`` once,
``{"state": {"ready": ..., "waiting": ..., "running": ...}}`` whenever that changes, ``{"event": {...}}`` for everything
that happens, and ``{"error": {"type": ..., "message": ...}}`` when it cannot serve.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch

from privml.engines.correlations import OtChoice
from privml.errors import PrivmlError
from privml.program import Program
from privml.service.events import Event
from privml.service.options import Addresses, Capacity, Hooks, Limits
from privml.service.serve import serve
from privml.service.stopping import Stop
from privml.session.identity import Tls
from privml.spec import Identity, LinkProfile, SessionSpec, engine

Message = dict[str, Any]
Tell = Callable[[Message], None]
# What the front sends to a worker: to finish what it has begun, or to cut it off.
DRAIN, CUT = "drain", "cut"


def serve_task(task: Message, tell: Tell, stop: Stop) -> None:
    """``serve`` with the settings of a task (see ``task_of``), every message to ``tell``."""
    spec, limits = spec_of(task["spec"]), task["limits"]
    torch.set_num_threads(spec.threads)
    serve(
        Program.load(task["program"], task["weights"]),
        Addresses(task["listen"], task["dealer"]),
        spec,
        limits=Limits(**{**limits, "capacity": Capacity(**limits["capacity"])}),
        hooks=Hooks(
            log=lambda text: None,
            on_listening=lambda port: tell({"port": port}),
            on_event=lambda event: tell({"event": asdict(event)}),
            on_state=lambda state: tell({"state": asdict(state)}),
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
    """``spec`` as plain values, but for the formats, which are the program's."""
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


def run(task: Message, tell: Tell, stop: Stop) -> None:
    """``serve_task``, to its end; what goes wrong is a message."""
    try:
        serve_task(task, tell, stop)
    except (PrivmlError, ValueError, OSError) as error:
        tell({"error": {"type": type(error).__name__, "message": str(error)}})


def main() -> None:
    for each in (signal.SIGINT, signal.SIGTERM):  # of a terminal or a unit: the front decides
        signal.signal(each, signal.SIG_IGN)
    lock, stop = threading.Lock(), Stop()

    def tell(message: Message) -> None:
        with lock:
            print(json.dumps(message), flush=True)

    def obey() -> None:
        for line in sys.stdin:
            if line.strip() == DRAIN:
                stop.draining = True
            elif line.strip() == CUT:
                stop.draining = stop.ending = True
        os._exit(0)  # the front has gone

    task = json.loads(sys.stdin.readline())
    threading.Thread(target=obey, name="orders", daemon=True).start()
    run(task, tell, stop)
    sys.stdout.flush()
    os._exit(0)  # torch's exit takes longer than a small query


if __name__ == "__main__":
    main()
