# SPDX-License-Identifier: Apache-2.0
"""The semi-honest two-party engine: how parties come to it, and as a meter."""

from __future__ import annotations

from collections.abc import Sequence

from privml import _core
from privml.engines.correlations import DEFAULT_OT, OtChoice
from privml.engines.twopc.engine import TwoPartyEngine
from privml.errors import ConfigError

__all__ = ["MOST_THREADS", "TwoPartyEngine", "checked_threads", "connected", "connections", "meter"]

# Every lane is a connection and a thread at each party.
MOST_THREADS = 64


def meter(rank: int = 0, ot: OtChoice = DEFAULT_OT, threads: int = 1, counts_only: bool = True) -> TwoPartyEngine:
    """An engine that books what each protocol would cost, exactly, in its session; its shares have shapes alone
    (``counts_only``), or are zeros, with which it computes as a party does."""
    lanes = checked_threads(threads)
    core = _core.TwoPartySession.meter(rank, ot.provider, ot.k, ot.security, lanes, ot.in_background, counts_only)
    return TwoPartyEngine(core)


def connected(
    channels: Sequence[_core.Channel], rank: int, ot: OtChoice, threads: int, test_seed: int | None
) -> TwoPartyEngine:
    """An engine on connected channels, as many as ``connections`` says: the lanes', then those of their refills."""
    lanes, refills = list(channels[:threads]), list(channels[threads:])
    choice = (ot.provider, ot.k, ot.security)
    return TwoPartyEngine(_core.TwoPartySession(lanes[0], rank, *choice, test_seed, lanes[1:], refills))


def connections(ot: OtChoice, threads: int) -> int:
    """How many channels a session has."""
    return threads * (2 if ot.in_background else 1)


def checked_threads(threads: int) -> int:
    """A session's number of lanes; ConfigError when it is none."""
    if type(threads) is not int or not 1 <= threads <= MOST_THREADS:
        raise ConfigError(f"threads must be a whole number from 1 to {MOST_THREADS}, got {threads!r}")
    return threads
