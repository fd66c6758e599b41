# SPDX-License-Identifier: Apache-2.0
"""The actively secure engine against a peer that alters its messages: whatever it does to whichever message of a run,
the honest party ends with an error within its deadline and learns no wrong value."""

import threading

import adversary
import pytest
import torch
from patience import PATIENCE
from ports import reserved

import privml
from privml.errors import PeerDisconnected, ProgramsDiffer, ProtocolError, SecurityAbort

DEADLINE = 1.5  # of a party whose peer says less than it should
# Eight each, so that no message has bits that mean nothing.
X, W = [1.5, -2.0, 3.0, 0.25, 1.0, -1.0, 4.0, 0.0], [2.0, 5.0, -1.0, -4.0, 1.0, -1.5, 0.5, 3.0]
EXPECTED = [3.0, 0.0, 0.0, 0.0, 1.0, 1.5, 2.0, 0.0]
# What a peer says before the protocols begin (versions, settings) is in clear and covered by other tests.
SETUP_FRAMES = 2


def program(rank):
    """Inputs of both, a product with its truncation, a comparison, a selection, a sum of bits; all learn the result."""
    x = privml.share(torch.tensor(X) if rank == 1 else None, owner=1, shape=(8,))
    w = privml.share(torch.tensor(W) if rank == 0 else None, owner=0, shape=(8,))
    y = torch.relu(x * w)
    zeros = (y == 0).sum()
    return privml.reveal(y).tolist(), *(
        None if n is None else int(n) for n in (privml.reveal(zeros, to=p) for p in (0, 1))
    )


def run(dishonest, attack, ring=64, deadline=PATIENCE):
    """(what the honest party got or raised, the sizes of the dishonest party's frames)."""
    ends = {}

    def party(rank, **side):
        numerics = privml.Numerics(bits=ring, scale=8)
        spec = privml.SessionSpec.of("active", ot="ideal", ring=ring, numerics=numerics, deadline=deadline)
        try:
            with privml.connect(rank, spec, **side):
                ends[rank] = program(rank)
        except Exception as error:  # the dishonest party may end as it likes
            ends[rank] = error

    with reserved(1) as (address,), adversary.Relay(int(address.split(":")[1]), dishonest, attack) as relay:
        threads = [
            threading.Thread(target=party, args=(0,), kwargs={"listen": address}),
            threading.Thread(target=party, args=(1,), kwargs={"connect": relay.address}),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a party hangs"
    return ends[1 - dishonest], relay.sizes


@pytest.fixture(scope="module", params=[0, 1], ids=["party 0 cheats", "party 1 cheats"])
def clean(request):
    """(the dishonest party, sizes of its frames in an honest run)."""
    result, sizes = run(request.param, adversary.nothing)
    outputs, zeros_to_0, zeros_to_1 = result
    assert outputs == EXPECTED and {zeros_to_0, zeros_to_1} - {None} == {4}
    return request.param, sizes


def expect_noticed(outcome, allowed):
    result, _ = outcome
    assert isinstance(result, allowed), result


ALTERATIONS = {
    "first bit": lambda frame: adversary.flip(frame, 0),
    "a middle bit": lambda frame: adversary.flip(frame, 13),
    "random bytes": adversary.replace_by_random,
    "an earlier message": adversary.replay,
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_altered_messages_abort(clean, name):
    """Every frame after the set-up: a wrong message of the right length ends in SecurityAbort."""
    dishonest, sizes = clean
    assert len(sizes) > SETUP_FRAMES + 12
    aborts = 0
    for frame in range(SETUP_FRAMES, len(sizes)):
        with_name = f"frame {frame} of {sizes[frame]} bytes"
        result, seen = run(dishonest, ALTERATIONS[name](frame), deadline=20.0)
        assert isinstance(result, SecurityAbort | ProtocolError | PeerDisconnected), (with_name, result)
        if name != "an earlier message":  # which may lack the peer's answer
            assert len(seen) > frame, with_name
        aborts += isinstance(result, SecurityAbort)
    assert aborts > len(sizes) // 2  # in the others the party behind the relay was the first to notice


CUTS = {
    "repeated": adversary.repeat,
    "out of order": adversary.reorder,
    "halves exchanged": adversary.swap_halves,
    "its end missing": adversary.truncate,
    "silence": adversary.silence,
    "closed": adversary.hang_up,
}


@pytest.mark.parametrize("name", CUTS)
def test_messages_out_of_step_end_the_run_within_the_deadline(clean, name):
    dishonest, sizes = clean
    long = [frame for frame in range(SETUP_FRAMES, len(sizes) - 1) if sizes[frame] >= 8]  # a byte has no halves
    for frame in (long[0], long[len(long) // 3], long[len(long) // 2], long[-1]):
        outcome = run(dishonest, CUTS[name](frame), deadline=DEADLINE)
        if name == "repeated" and not isinstance(outcome[0], Exception):
            assert outcome[0][0] == EXPECTED  # nothing was read after it
            continue
        expect_noticed(outcome, (SecurityAbort, ProtocolError, PeerDisconnected, ProgramsDiffer))
