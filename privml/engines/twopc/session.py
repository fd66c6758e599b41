# SPDX-License-Identifier: Apache-2.0
"""How parties come to the semi-honest two-party engine, in one process, on channels and as a meter."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

import privml._core as _core
from privml.engines.base import Engine
from privml.engines.correlations import DEFAULT_OT, OtChoice
from privml.engines.joint import JointEngine, joined
from privml.engines.twopc.engine import TwoPartyEngine
from privml.engines.twopc.linear import BY_TRANSFERS, Linear, chunk_factor
from privml.errors import ConfigError

if TYPE_CHECKING:
    from privml.spec import SessionSpec

# Every lane is a connection and a thread at each party.
MOST_THREADS = 64


def meter(
    rank: int = 0, ot: OtChoice = DEFAULT_OT, threads: int = 1, counts_only: bool = True, linear: Linear = BY_TRANSFERS
) -> TwoPartyEngine:
    """An engine that books what each protocol would cost, exactly, in its session; its shares have shapes alone
    (``counts_only``), or are zeros, with which it computes as a party does."""
    lanes = checked_threads(threads)
    core = _core.TwoPartySession.meter(rank, ot.provider, ot.k, ot.security, lanes, ot.in_background, counts_only)
    return engine_on(core, linear)


def connected(
    channels: Sequence[_core.Channel],
    rank: int,
    ot: OtChoice,
    threads: int,
    test_seed: int | None,
    linear: Linear = BY_TRANSFERS,
) -> TwoPartyEngine:
    """An engine on connected channels, as many as ``connections`` says: the lanes', then those of their refills."""
    lanes, refills = list(channels[:threads]), list(channels[threads:])
    choice = (ot.provider, ot.k, ot.security)
    return engine_on(_core.TwoPartySession(lanes[0], rank, *choice, test_seed, lanes[1:], refills), linear)


def engine_on(core: _core.TwoPartySession, linear: Linear) -> TwoPartyEngine:
    """The engine of a session before any call, or of a meter: with chunks as long as the link asks for, and functions
    that may make ciphertexts where products with weights may."""
    core.set_planning(chunk_factor(linear.delay), linear.mode != "ot" and linear.noise == "tail")
    return TwoPartyEngine(core, linear)


def connections(ot: OtChoice, threads: int) -> int:
    """How many channels a session has."""
    return threads * (2 if ot.in_background else 1)


def checked_threads(threads: int) -> int:
    """A session's number of lanes; ConfigError when it is none."""
    if type(threads) is not int or not 1 <= threads <= MOST_THREADS:
        raise ConfigError(f"threads must be a whole number from 1 to {MOST_THREADS}, got {threads!r}")
    return threads


def create(
    choice: OtChoice = DEFAULT_OT,
    *,
    delay_ms: float = 0.0,
    bandwidth_mbps: float = 0.0,
    deadline: float = 60.0,
    threads: int = 1,
    test_seed: int | None = None,
    linear: Linear = BY_TRANSFERS,
) -> JointEngine:
    """The engine of ``privml.local(engine="twopc")``: both parties over a channel in memory.

    ``delay_ms`` (one way) and ``bandwidth_mbps`` (0: unlimited) shape the channel; ``deadline`` is the longest
    a party waits for the other, in seconds; ``threads`` is the number of lanes, each with a channel of its own;
    ``test_seed`` makes all randomness deterministic (tests only); ``linear``: how products with weights are made.
    """
    if choice.provider == "ideal" and test_seed is None:
        test_seed = secrets.randbits(64)
    pairs = [_core.memory_pair(delay_ms, bandwidth_mbps) for _ in range(connections(choice, checked_threads(threads)))]

    def close() -> None:
        for pair in pairs:
            for channel in pair:
                channel.close()

    def party(rank: int) -> Engine:
        mine = [pair[rank] for pair in pairs]
        for channel in mine:
            channel.set_deadline(deadline)
        return connected(mine, rank, choice, threads, test_seed, linear)

    return joined(2, party, close)


def linear_of(spec: SessionSpec) -> Linear:
    """How a session's products with weights are made."""
    own, link = spec.engine, spec.expected_link
    return Linear(own.linear, own.noise, link.delay_ms / 1000, link.seconds_per_byte, spec.prepared)
