# SPDX-License-Identifier: Apache-2.0
"""Services and clients on threads of this process, at moments that the test chooses: nothing waits for a clock."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from services import query
from small_network import Net

from privml.engines.correlations import OtChoice
from privml.errors import PrivmlError
from privml.service.events import Event, Stop

LONG = 200.0
IDEAL = OtChoice("ideal")  # where what is tested is who is served, not the protocols


class Running:
    """``call(on_listening=, on_event=, stop=, log=, **options)``, a service, on a thread until the block ends."""

    def __init__(self, call: Callable[..., int], **options: Any) -> None:
        self.stop, self.lines, self.events = Stop(), [], []
        self._changed = threading.Condition()
        self._port: Future[int] = Future()
        self._executor = ThreadPoolExecutor(1)
        self._done = self._executor.submit(self._run, call, options)

    def _run(self, call: Callable[..., int], options: dict[str, Any]) -> int:
        heard = options.pop("on_event", None)

        def note(event: Event) -> None:
            with self._changed:
                self.events.append(event)
                self._changed.notify_all()
            if heard is not None:
                heard(event)

        try:
            return call(
                on_listening=self._port.set_result, on_event=note, stop=self.stop, log=self.lines.append, **options
            )
        except BaseException as error:
            if not self._port.done():
                self._port.set_exception(error)
            raise

    def __enter__(self) -> Running:
        self.address = f"127.0.0.1:{self._port.result(LONG)}"
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop.ask()
        self.stop.ask()
        self._executor.shutdown()

    def result(self) -> int:
        """What the service returns."""
        return self._done.result(LONG)

    def wait(self, kind: str, count: int = 1, **fields: Any) -> Event:
        """The ``count``-th event of this kind with these fields, when it has come."""

        def found() -> list[Event]:
            return [e for e in self.events if e.kind == kind and fields.items() <= e.fields.items()]

        with self._changed:
            assert self._changed.wait_for(lambda: len(found()) >= count, LONG), (kind, fields, self.events)
            return found()[count - 1]

    def kinds(self, kind: str) -> list[Event]:
        with self._changed:
            return [event for event in self.events if event.kind == kind]


class Paused:
    """A query on a thread that stops within its first layer, the server in the midst of the protocol, until ``go``."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._go, self._there = threading.Event(), threading.Event()
        executor = ThreadPoolExecutor(1)
        self._done = executor.submit(query, *args, progress=self._pause, **options)
        executor.shutdown(wait=False)

    def _pause(self, done: int, total: int, label: str) -> None:
        self._there.set()
        assert self._go.wait(LONG)

    def there(self) -> Paused:
        """Waits until it has stopped."""
        assert self._there.wait(LONG), self._done.exception(0)
        return self

    def go(self) -> Any:
        """Lets it go on; its answer, or its error."""
        self._go.set()
        return self.outcome()

    def outcome(self) -> Any:
        try:
            return self._done.result(LONG)
        except PrivmlError as error:
            return error


def value(seed: int) -> torch.Tensor:
    """An input of the small network."""
    return torch.randn(seed % 3 + 1, 4, generator=torch.Generator().manual_seed(seed))


def assert_right(answer: Any, asked: torch.Tensor) -> None:
    assert not isinstance(answer, Exception), answer
    with torch.no_grad():
        assert (answer.outputs[0] - Net().eval()(asked)).abs().max() < 0.05


def connect(running: Running) -> socket.socket:
    host, port = running.address.split(":")
    return socket.create_connection((host, int(port)), LONG)
