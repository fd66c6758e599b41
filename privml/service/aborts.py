# SPDX-License-Identifier: Apache-2.0
"""How often actively secure sessions with one peer may fail before it is refused.

A dishonest peer has one attempt per session at a wrong value, which passes with probability 2^-sigma: sigma is 57 for
the ring of 64 bits, 26 for that of 32. Attempts of many sessions add up. A peer that is refused after ``n`` failures
succeeds with probability n 2^-sigma at most: 2^-20 for the ring of 32 bits, 2^-41 for that of 64.

Peers are told apart by the names that their certificates prove. Connections without them count for nobody and are
never refused here, since one stranger could then shut out all. Counts last as long as the server. Sessions that are
open when the limit is reached go on: add their number to n.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from privml import _core
from privml.errors import ConfigError, HandshakeMismatch, IdentityError, InvalidInput, StoreError

# What ends a session before anything is computed in it.
HARMLESS = (ConfigError, HandshakeMismatch, IdentityError, InvalidInput, StoreError)
# Failures after which a peer is refused, by the bits of the ring.
LIMITS = {32: 1 << 6, 64: 1 << 16}


class Aborts:
    """Failed sessions by name, for several threads."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def require_trust(self, name: str, ring: int) -> None:
        """IdentityError where so many sessions with ``name`` have failed that no further one is opened."""
        with self._lock:
            count = self._counts[name] if name else 0
        if count >= LIMITS[ring]:
            raise IdentityError(f"{name!r} is refused: {count} of its sessions failed a check or broke off")

    @contextmanager
    def counted(self, channel: _core.Channel) -> Iterator[None]:
        """Counts a session with the peer of ``channel`` that fails within, however it fails: a peer that sees its
        attempt fail may leave, or send what is no message, before this party has looked."""
        try:
            yield
        except HARMLESS:
            raise
        except BaseException:
            name = channel.peer_name
            if name:
                with self._lock:
                    self._counts[name] += 1
            raise
