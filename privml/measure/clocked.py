# SPDX-License-Identifier: Apache-2.0
"""Time on a link for meters without clocks."""

from __future__ import annotations

from typing import Any


class Clocked:
    """A meter of protocols in which both parties send, then both receive; in all else the meter itself.

    Every message of the longest chain takes the link's delay, and the busier direction carries its bytes.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._delay = self._seconds_per_byte = self._computed = 0.0

    def set_link(self, delay: float, seconds_per_byte: float, making: float = 0.0) -> None:
        """Seconds of a message one way and of a byte; what ``making`` correlations takes is added by ``compute``."""
        self._delay, self._seconds_per_byte = delay, seconds_per_byte

    def compute(self, seconds: float) -> None:
        """The parties compute for so long."""
        self._computed += seconds

    def elapsed(self) -> float:
        """Seconds that messages and ``compute`` have taken, the set-up apart."""
        counters = self._engine.counters()
        phases = [counters[phase] for phase in ("preprocess", "online")]
        depth = sum(phase["depth"] for phase in phases)
        carried = max(sum(phase[side] for phase in phases) for side in ("sent", "received"))
        return self._computed + depth * self._delay + carried * self._seconds_per_byte

    def lane(self, index: int) -> Clocked:
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)
