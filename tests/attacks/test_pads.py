# SPDX-License-Identifier: Apache-2.0
"""What a party receives of an opening tells it nothing where it computes something else: a program that does not look
at tags, as a curious one, finds noise."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import privml
from privml import _core
from privml.context import Session
from privml.engines.active import backend as active
from privml.engines.correlations import OtChoice
from privml.engines.threepc import backend as threepc
from privml.engines.threepc.comparison import chosen_plan
from privml.engines.threepc.party import Party
from privml.engines.threepc.sign import common_region
from privml.engines.twopc import backend as twopc
from privml.transcript import Transcript

KEY = bytes(range(32))
VALUES = torch.tensor([3.0, -2.0, 0.5, 100.0])


class Tagless(Transcript):
    """Follows what is computed without a tag on any frame."""

    def step(self, *args, **kwargs):
        super().step(*args, **kwargs)
        return []


def opened(engine_of, parties, programs, to=None):
    """What each party opens of the secret of party 0 after ``programs[rank]``."""

    def party(rank):
        engine = engine_of(rank)
        engine.set_tags = lambda tags: None
        session = Session(engine)
        session.transcript = engine.transcript = Tagless({peer: KEY for peer in range(parties) if peer != rank},
                                                         lambda peer, line: None)  # fmt: skip
        if isinstance(getattr(engine, "party", None), Party):
            engine.party.transcript = session.transcript
        x = privml.share(VALUES if rank == 0 else None, 0, shape=(4,), session=session)
        programs[rank](session)
        try:
            return privml.reveal(x, to)
        except privml.errors.SecurityAbort:
            return "abort"
        finally:
            engine.finish()

    with ThreadPoolExecutor(parties) as executor:
        return [future.result() for future in [executor.submit(party, rank) for rank in range(parties)]]


def two(make):
    channels = _core.memory_pair()
    return lambda rank: make(channels[rank], rank)


def three():
    pairs = {pair: _core.memory_pair() for pair in threepc.PAIRS}
    dealing = _core.memory_pair()

    def make(rank):
        mine = {pair[1 - pair.index(rank)]: ends[pair.index(rank)] for pair, ends in pairs.items() if rank in pair}
        return threepc.established(mine, {0: dealing[0], 2: dealing[1]}.get(rank), rank)

    return make


ENGINES = {
    "twopc": (lambda: two(lambda c, rank: twopc.connected([c], rank, OtChoice("ideal"), 1, 1)), 2),
    "active": (lambda: two(lambda c, rank: active.established(c, rank, OtChoice("ideal"), 64, "auto", 1)), 2),
    "threepc": (three, 3),
}


def same(session):
    session.step("an operation")


def other(session):
    session.step("another operation")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("to", [None, 0, 1])
def test_parties_that_agree_open_the_value(engine, to):
    make, parties = ENGINES[engine]
    for rank, value in enumerate(opened(make(), parties, [same] * parties, to)):
        assert value is None if to not in (None, rank) else torch.equal(value, VALUES)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("deviates", range(3))
def test_parties_that_differ_open_noise(engine, deviates):
    make, parties = ENGINES[engine]
    if deviates >= parties:
        pytest.skip("two parties")
    programs = [other if rank == deviates else same for rank in range(parties)]
    values = opened(make(), parties, programs)
    # Party 0 sends to both others, party 1 to party 0 alone.
    listeners = {0: [0, 1, 2], 1: [0, 1], 2: [2]}[deviates]
    for rank in listeners[:parties]:
        assert isinstance(values[rank], str) or not torch.isclose(values[rank], VALUES, atol=1.0).any()


def test_no_pad_comes_twice():
    transcript = Transcript({1: KEY}, lambda peer, line: None)
    transcript.step("an operation")
    drawn = [transcript.pad_key(1) for _ in range(2)]
    transcript.step("an operation")
    drawn.append(transcript.pad_key(1))
    apart = Transcript({1: KEY}, lambda peer, line: None)
    apart.step("another operation")
    drawn.append(apart.pad_key(1))
    assert len(set(drawn)) == 4


@pytest.mark.parametrize("program", [same, other])
def test_lists_for_the_dealer_belong_to_one_computation(program):
    """What parties 0 and 1 re-randomise their lists with is alike only if they have computed the same."""
    drawn = {}

    def party(rank, engine):
        session = Session(engine)
        session.transcript = engine.party.transcript = Tagless({1 - rank: KEY}, lambda peer, line: None)
        (program if rank == 0 else same)(session)
        drawn[rank] = [common_region(engine.party, 4)[0].tobytes() for _ in range(2)]
        engine.close()

    make = three()
    with ThreadPoolExecutor(3) as executor:
        engines = list(executor.map(make, range(3)))
    for rank in range(2):
        party(rank, engines[rank])
    assert len(set(drawn[0])) == 2 and (drawn[0] == drawn[1]) == (program is same)


@pytest.mark.parametrize("deviates", [0, 1])
def test_comparisons_from_tables_of_parties_that_differ_open_noise(deviates):
    """What the parties reveal of a comparison that they have made together is right for half of the bits only."""
    values = torch.arange(-256, 256).double() + 0.5

    def party(rank, make):
        engine = make(rank)
        engine.set_tags = lambda tags: None
        session = Session(engine)
        session.transcript = engine.transcript = engine.party.transcript = Tagless(
            {peer: KEY for peer in range(3) if peer != rank}, lambda peer, line: None
        )
        x = privml.share(values if rank == 0 else None, 0, shape=(512,), session=session)
        assert chosen_plan(engine.party.comparison, 64) is not None
        below = engine.less_than_zero(x.share, 64)
        (other if rank == deviates else same)(session)
        try:
            return engine.reveal_bits(below)
        finally:
            engine.finish()

    make = three()
    with ThreadPoolExecutor(3) as executor:
        revealed = list(executor.map(lambda rank: party(rank, make), range(3)))
    for rank in {0: (0, 1, 2), 1: (0, 1)}[deviates]:
        right = (revealed[rank] == (values < 0)).double().mean()
        assert 0.35 < right < 0.65, rank
    if deviates == 1:
        assert torch.equal(revealed[2], (values < 0).to(torch.uint8))


def test_comparisons_of_parties_that_agree_are_right():
    def compare(session):
        y = privml.share(VALUES if session.rank == 0 else None, 0, shape=(4,), session=session)
        assert torch.equal(privml.reveal(y > 0), VALUES > 0)

    make, parties = ENGINES["threepc"]
    opened(make(), parties, [compare] * parties)
