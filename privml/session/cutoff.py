# SPDX-License-Identifier: Apache-2.0
"""What is short has an end as a whole, into however many pieces the peer cuts what it says.

A channel's deadline begins anew with every frame, so that large messages may take as long as they need.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Protocol

from privml.errors import PeerDisconnected


class Closable(Protocol):
    """A channel, or several of them."""

    def close(self) -> None:
        """Ends its reads in other threads."""


@contextlib.contextmanager
def ending_within(seconds: float, channel: Closable, what: str) -> Iterator[None]:
    """Closes ``channel`` where the inside is not done after so many seconds, and raises PeerDisconnected, which says
    that ``what`` took longer."""
    late = threading.Event()

    def end() -> None:
        late.set()
        channel.close()

    timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except PeerDisconnected:
        if not late.is_set():
            raise
    finally:
        timer.cancel()
        timer.join()  # nothing of it outlives the block
    if late.is_set():
        raise PeerDisconnected(f"{what} took longer than {seconds:g} seconds")
