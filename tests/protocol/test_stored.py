# SPDX-License-Identifier: Apache-2.0
"""Correlations that leave a session sealed and serve in another one."""

import numpy as np
import pytest
from parties import run_both, succeed

from privml import _core
from privml.errors import PeerDisconnected

T = _core.twopc
COUNT = 40_000
CONTEXT = b"for this test"


def seal_of(rank):
    return _core.Seal(bytes([rank]) * 32, b"s" * 16)


@pytest.fixture(scope="module")
def halves():
    """What each party keeps: (sealed offset, sealed correlations as sender, as receiver)."""

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "softspoken", 4)
        session.reserve(COUNT, COUNT)
        seal = seal_of(rank)
        offset = _core.seal_offset(session, seal, CONTEXT)
        roles = [_core.seal_correlations(session, seal, as_sender, COUNT, CONTEXT) for as_sender in (True, False)]
        assert session.counters()["cots_as_sender"] == 0
        with pytest.raises(ValueError, match="reserve"):
            _core.seal_correlations(session, seal, True, 1000, CONTEXT)
        return offset, *roles

    return succeed(run_both(party))


def open_stored(halves, rank, channel):
    seal = seal_of(rank)
    session = _core.stored_session([channel], rank, seal, halves[rank][0], CONTEXT, "softspoken", 4, "semi_honest")
    stocks = [_core.Stock(), _core.Stock()]
    for stock, sealed in zip(stocks, halves[rank][1:], strict=True):
        assert stock.add(seal, sealed, CONTEXT) and stock.count == COUNT
    return session, stocks


def test_protocols_run_on_them_and_nothing_is_made(halves):
    x = np.arange(-500, 500, dtype=np.int64)

    def party(rank, channel):
        session, stocks = open_stored(halves, rank, channel)
        for piece in (1000, COUNT - 1000):
            stocks[0].give(session, True, piece)
            stocks[1].give(session, False, piece)
        assert stocks[0].count == stocks[1].count == 0
        value, _ = T.relu(session, x if rank == 0 else np.zeros_like(x), 32)
        counters = session.counters()
        assert counters["preprocess"]["sent"] == counters["preprocess"]["received"] == 0
        assert counters["setup"]["sent"] == counters["setup"]["received"] == 64
        assert 0 < counters["cots_as_sender"] <= COUNT
        return T.open_ring(session, value, 32).tolist()

    want = np.maximum(x, 0).tolist()
    assert succeed(run_both(party)) == [want, want]


def test_a_session_that_has_used_them_up_says_so(halves):
    x = np.arange(100, dtype=np.int64)

    def party(rank, channel):
        session, stocks = open_stored(halves, rank, channel)
        stocks[0].give(session, True, 10)
        stocks[1].give(session, False, 10)
        with pytest.raises(ValueError, match="used up"):
            T.relu(session, x, 32)

    succeed(run_both(party))


def test_a_stock_gives_each_once(halves):
    def party(rank, channel):
        session, stocks = open_stored(halves, rank, channel)
        stocks[0].give(session, True, COUNT)
        for count in (1, -1):
            with pytest.raises(ValueError, match="fewer"):
                stocks[0].give(session, True, count)

    succeed(run_both(party))


def test_altered_and_foreign_bytes_are_refused(halves):
    offset, sealed, _ = halves[0]
    seal, stock = seal_of(0), _core.Stock()
    altered = bytearray(sealed)
    altered[77] ^= 4
    for data, key, context in (
        (bytes(altered), seal, CONTEXT),
        (sealed[:-16], seal, CONTEXT),
        (b"", seal, CONTEXT),
        (sealed, seal_of(1), CONTEXT),
        (sealed, seal, b"elsewhere"),
    ):
        assert not stock.add(key, data, context)
    assert stock.count == 0
    channels = _core.memory_pair()
    with pytest.raises(ValueError, match="altered"):
        _core.stored_session([channels[0]], 0, seal_of(1), offset, CONTEXT, "softspoken", 4, "semi_honest")


def test_a_closed_session_gives_nothing_out(halves):
    def party(rank, channel):
        session, stocks = open_stored(halves, rank, channel)
        stocks[0].give(session, True, 500)
        session.close()
        with pytest.raises(PeerDisconnected):
            _core.seal_correlations(session, seal_of(rank), True, 1, CONTEXT)

    succeed(run_both(party))


def test_meters_have_none():
    meter = _core.TwoPartySession.meter(0, "softspoken", 4)
    with pytest.raises(ValueError, match="meter"):
        _core.seal_correlations(meter, seal_of(0), True, 0, CONTEXT)
    with pytest.raises(ValueError, match="meter"):
        _core.Stock().give(meter, True, 0)
