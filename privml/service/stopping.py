# SPDX-License-Identifier: Apache-2.0
"""How a service ends: the first signal lets it finish what it has begun, the second one ends it at once."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(slots=True)
class Stop:
    """``draining``: no further session begins. ``ending``: those under way are cut off too. ``cut``: how many were.
    Plain values, which a signal handler may set at any moment; the service looks at them many times a second."""

    draining: bool = False
    ending: bool = False
    signal: int = 0
    cut: int = 0

    def ask(self, number: int = 0) -> None:
        """To finish; asked once more, to end at once."""
        self.ending = self.draining
        self.draining = True
        self.signal = number

    @property
    def exit_code(self) -> int:
        """0 when every session under way was finished; as a shell has it where a second signal came; else 1."""
        if self.ending and self.signal:
            return 128 + self.signal
        return 1 if self.cut else 0


@contextlib.contextmanager
def on_signals(stop: Stop) -> Iterator[Stop]:
    """SIGTERM and Ctrl-C ask ``stop``; after the second one a third has its usual effect. For the main thread."""

    def handle(number: int, frame: FrameType | None) -> None:
        stop.ask(number)
        if stop.ending:
            for each in SIGNALS:
                signal.signal(each, signal.SIG_DFL)

    with kept_signals():
        for number in SIGNALS:
            signal.signal(number, handle)
        yield stop


@contextlib.contextmanager
def kept_signals() -> Iterator[None]:
    """For libraries that take signals over, some below Python's notice: afterwards they go to whom they went before.
    For the main thread; another one cannot set them and changes nothing."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
