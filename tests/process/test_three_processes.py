# SPDX-License-Identifier: Apache-2.0
"""Three real processes: whichever dies or stops, at whatever time, the two others end with PeerDisconnected."""

from __future__ import annotations

import pytest
import trio
from patience import ENDLESS, PATIENCE
from ports import reserved

RANKS = range(3)


@pytest.fixture
def addresses():
    with reserved(2) as addresses:
        yield addresses


def parties(start, addresses, victim=None, die_at=None, deadline=ENDLESS):
    address, dealer = addresses
    places = ({"listen": address, "dealer": dealer}, {"connect": address, "dealer": dealer}, {"listen": dealer})
    looping = None if die_at is None else "none"  # the survivors compute until they notice
    return [start(trio.main, r, places[r], die_at if r == victim else looping, deadline) for r in RANKS]


def test_three_processes_agree(start, addresses):
    assert [each.last() for each in parties(start, addresses)] == [f"result {sum(range(500))}"] * 3


@pytest.mark.parametrize("victim", RANKS)
@pytest.mark.parametrize("die_at", ["opened", "online"])
def test_killed_party(start, addresses, victim, die_at):
    all_three = parties(start, addresses, victim, die_at)
    all_three[victim].process.join(PATIENCE)
    for rank in RANKS:
        if rank != victim:
            last = all_three[rank].last()  # a closed socket is noticed at once, long before the deadline
            assert last.startswith("error PeerDisconnected"), all_three[rank].lines


@pytest.mark.parametrize("victim", RANKS)
def test_stopped_party_ends_the_others_at_the_deadline(start, addresses, victim):
    all_three = parties(start, addresses, victim, "stop", deadline=2.0)
    for rank in RANKS:
        if rank != victim:
            last = all_three[rank].last()
            assert last.startswith("error PeerDisconnected"), all_three[rank].lines
