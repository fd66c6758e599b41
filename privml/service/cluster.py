# SPDX-License-Identifier: Apache-2.0
"""The workers of a front: each is watched, started again when it has died, and left out meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from privml.service.dispatcher import SECONDS_TO_END
from privml.service.events import Events, printable
from privml.service.host import State
from privml.service.worker import event_of

# A worker that dies is started again after so many seconds, and after twice as many each time that it dies soon again.
_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
# A worker that has lived so long has not died of its start.
_LONG_LIFE = 60.0
# What a worker that cuts off its sessions needs to say so, beyond the time of their threads.
_SECONDS_TO_TELL = 2.0


class Worker(Protocol):
    """A process that serves: see ``privml.service.worker`` for its messages."""

    host: str

    def messages(self) -> Iterator[dict[str, Any]]:
        """What it tells, until it has ended."""

    def drain(self) -> None:
        """Asks it to finish what it has begun."""

    def cut(self) -> None:
        """Asks it to cut off what it has begun, and to end."""

    def end(self) -> None:
        """Ends it at once."""


# A new worker of a number, on a port (0: any).
Start = Callable[[int, int], Worker]


@dataclass(slots=True)
class _Place:
    """What is known of one worker; ``sent``: clients sent there since it last told its state; ``cut``: sessions that it
    has cut off at its end, None until it tells."""

    number: int
    worker: Worker | None = None
    port: int = 0
    state: State = State()
    sent: int = 0
    cut: int | None = None

    @property
    def load(self) -> int:
        return self.state.waiting + self.state.running + self.sent


class Cluster:
    """``count`` workers that ``start`` makes. Their events go on to ``events``, each with the number of its worker."""

    def __init__(self, count: int, start: Start, events: Events) -> None:
        self._start, self._events = start, events
        self._changed = threading.Condition()
        self._places = [_Place(number) for number in range(count)]
        self._closing, self._lost = False, 0
        self._threads = [threading.Thread(target=self._tend, args=(place,), daemon=True) for place in self._places]
        for thread in self._threads:
            thread.start()

    def choose(self) -> str | None:
        """The address of the worker with the fewest sessions, for one client more; None when all are full or dead."""
        with self._changed:
            able = [place for place in self._places if place.state.ready and place.worker is not None]
            if self._closing or not able:
                return None
            best = min(able, key=lambda place: place.load)
            best.sent += 1
            host = best.worker.host
            return f"[{host}]:{best.port}" if ":" in host else f"{host}:{best.port}"

    @property
    def states(self) -> list[State]:
        """Of the workers that are there."""
        with self._changed:
            return [place.state for place in self._places if place.worker is not None]

    @property
    def idle(self) -> bool:
        """Whether all workers have ended."""
        return not any(thread.is_alive() for thread in self._threads)

    def drain(self) -> None:
        """No worker is started any more; those that are there finish what they have begun."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for worker in self._workers():
            worker.drain()

    def end(self) -> int:
        """Ends all workers; how many sessions were cut off, which workers that are asked to end tell best."""
        self.drain()
        for worker in self._workers():
            worker.cut()
        end = time.monotonic() + SECONDS_TO_END + _SECONDS_TO_TELL
        for thread in self._threads:
            thread.join(max(end - time.monotonic(), 0.0))
        for worker in self._workers():
            worker.end()
        for thread in self._threads:
            thread.join(_LONGEST_PAUSE)
        return self._lost

    def _workers(self) -> list[Worker]:
        with self._changed:
            return [place.worker for place in self._places if place.worker is not None]

    # ---- one thread for each worker
    def _tend(self, place: _Place) -> None:
        pause = _PAUSE
        while not self._closing:
            begun = time.monotonic()
            error = self._live(place)
            if self._closing:
                return
            pause = _PAUSE if time.monotonic() - begun > _LONG_LIFE else min(2 * pause, _LONGEST_PAUSE)
            text = f"worker {place.number} died and is started again" + (f": {printable(error)}" if error else "")
            self._events.tell("worker_died", text=text, worker=place.number, message=error)
            with self._changed:
                self._changed.wait_for(lambda: self._closing, pause)

    def _live(self, place: _Place) -> str:
        """One life of a worker; the error that it ended with."""
        error = ""
        try:
            worker = self._start(place.number, place.port)
            with self._changed:
                place.worker = worker
                if self._closing:
                    worker.end()
            for message in worker.messages():
                if "error" in message:
                    error = f"{message['error']['type']}: {message['error']['message']}"
                self._heed(place, message)
        except Exception as raised:  # whatever starting it takes
            error = f"{type(raised).__name__}: {raised}"
            if place.worker is not None:  # it would live on at its port, and nobody would hear it
                place.worker.end()
        finally:
            with self._changed:
                if self._closing:
                    self._lost += place.state.running if place.cut is None else place.cut
                place.worker, place.state, place.sent, place.cut = None, State(), 0, None
        return error

    def _heed(self, place: _Place, message: dict[str, Any]) -> None:
        with self._changed:
            if "port" in message:
                place.port = message["port"]
            if "state" in message:
                place.state, place.sent = State(**message["state"]), 0
        if "event" in message:
            event = event_of(message["event"])
            if event.kind == "stopped":
                place.cut = event.fields["cut"]
            self._events.tell(event.kind, event.session, event.text, worker=place.number, **event.fields)
