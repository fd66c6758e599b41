# SPDX-License-Identifier: Apache-2.0
"""privml.connect between three parties, here on threads over loopback TCP."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from ports import reserved

import privml
from privml.errors import ConfigError, HandshakeMismatch, PeerDisconnected


def places(address, dealer):
    """Where each party listens and whom it calls."""
    return {"listen": address, "dealer": dealer}, {"connect": address, "dealer": dealer}, {"listen": dealer}


def run(*settings, ranks=(0, 1, 2), deadline=20.0):
    """What each party of ``ranks`` ends with: its result, or what it raised."""

    def party(rank, place):
        spec = privml.SessionSpec.of("threepc", deadline=deadline, **(settings[rank] if settings else {}))
        with privml.connect(rank, spec, **place) as session:
            x = privml.share(torch.tensor([1.5, -2.0, 3.0]) if rank == 1 else None, owner=1, shape=(3,))
            w = privml.share(torch.tensor([2.0, 5.0, -1.0]) if rank == 0 else None, owner=0, shape=(3,))
            generator = session.public_generator()
            drawn = torch.randint(2**40, (1,), generator=generator).item()
            result = privml.reveal(torch.relu(x * w), to=1)
        return result, drawn, session.ledger.snapshot()  # the dealer's work is done at the end of the block

    with reserved(2) as addresses, ThreadPoolExecutor(3) as executor:
        futures = [executor.submit(party, rank, places(*addresses)[rank]) for rank in ranks]
        return [future.exception() or future.result() for future in futures]


def test_three_parties_run_one_program():
    results = run()
    assert not [result for result in results if isinstance(result, Exception)]
    assert results[0][0] is None and results[2][0] is None
    assert results[1][0].tolist() == [3.0, 0.0, 0.0]
    assert len({drawn for _, drawn, _ in results}) == 1  # one source of public randomness
    counts = [ledger.total for *_, ledger in results]
    assert sum(count.sent for count in counts) == sum(count.received for count in counts) > 0


def test_the_dealer_waits_while_the_others_are_busy_with_one_another():
    def party(rank, place):
        with privml.connect(rank, privml.SessionSpec("threepc", deadline=6.0), **place):
            x = privml.share(torch.tensor([1.5, -2.0]) if rank == 1 else None, owner=1, shape=(2,))
            for _ in range(13):  # longer than the deadline, all together
                time.sleep(0.0 if rank == 2 else 0.5)
                x = x * privml.share(torch.ones(2) if rank == 0 else None, owner=0, shape=(2,))
            return privml.reveal(torch.relu(x), to=1)

    with reserved(2) as addresses, ThreadPoolExecutor(3) as executor:
        futures = [executor.submit(party, rank, place) for rank, place in enumerate(places(*addresses))]
        results = [future.result() for future in futures]
    assert results[1].tolist() == [1.5, 0.0]


@pytest.mark.parametrize("odd", [0, 1, 2])
@pytest.mark.parametrize("setting", [{"truncation": "exact"}, {"numerics": privml.Numerics(32, 10)}])
def test_parties_that_disagree(odd, setting):
    results = run(*({} if rank != odd else setting for rank in range(3)), deadline=5.0)
    assert all(isinstance(result, (HandshakeMismatch, PeerDisconnected)) for result in results)
    mismatches = [result for result in results if isinstance(result, HandshakeMismatch)]
    assert mismatches and (odd < 2 or len(mismatches) == 3)  # a dealer that is odd is told to both others


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_party_that_does_not_come(missing):
    there = [rank for rank in range(3) if rank != missing]
    for result in run(ranks=there, deadline=2.0):
        assert isinstance(result, PeerDisconnected)


@pytest.mark.parametrize(
    "rank, place",
    [
        (0, {"listen": "127.0.0.1:1"}),
        (2, {"connect": "127.0.0.1:1"}),
        (2, {"listen": "127.0.0.1:1", "dealer": "a:1"}),
        (3, {}),
    ],
)
def test_wrong_places(rank, place):
    with pytest.raises(ConfigError):
        privml.connect(rank, privml.SessionSpec("threepc"), **place)


def test_two_parties_need_no_dealer():
    with pytest.raises(ConfigError, match="dealer"):
        privml.connect(0, listen="127.0.0.1:1", dealer="127.0.0.1:2")
