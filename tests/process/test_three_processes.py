# SPDX-License-Identifier: Apache-2.0
"""Three real processes: whichever dies or stops, at whatever time, the two others end with PeerDisconnected."""

from __future__ import annotations

import socket
import time

import pytest
import trio

RANKS = range(3)


def free_addresses(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


def parties(start, victim=None, die_at=None, deadline=20.0):
    address, dealer = free_addresses(2)
    places = ({"listen": address, "dealer": dealer}, {"connect": address, "dealer": dealer}, {"listen": dealer})
    looping = None if die_at is None else "none"  # the survivors compute until they notice
    return [start(trio.main, r, places[r], die_at if r == victim else looping, deadline) for r in RANKS]


def test_three_processes_agree(start):
    assert [each.last() for each in parties(start)] == [f"result {sum(range(500))}"] * 3


@pytest.mark.parametrize("victim", RANKS)
@pytest.mark.parametrize("die_at", ["opened", "online"])
def test_killed_party(start, victim, die_at):
    all_three = parties(start, victim, die_at)
    all_three[victim].process.join(60)
    begin = time.monotonic()
    for rank in RANKS:
        if rank != victim:
            last = all_three[rank].last(30)
            assert last.startswith("error PeerDisconnected"), all_three[rank].lines
    assert time.monotonic() - begin < 15  # a closed socket is noticed at once, long before the deadline


@pytest.mark.parametrize("victim", RANKS)
def test_stopped_party_ends_the_others_at_the_deadline(start, victim):
    all_three = parties(start, victim, "stop", deadline=2.0)
    for rank in RANKS:
        if rank != victim:
            last = all_three[rank].last(30)
            assert last.startswith("error PeerDisconnected"), all_three[rank].lines
