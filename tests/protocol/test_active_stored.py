# SPDX-License-Identifier: Apache-2.0
"""Correlations and keys that leave an actively secure session sealed and serve in another one."""

import numpy as np
import pytest
from parties import run_both, succeed

from privml import _core
from privml.errors import PeerDisconnected, SecurityAbort

P = _core.spdz2k
CONTEXT = b"for this test"
STOCK = {
    "masks": (64, 64), "randoms": 2000, "triples": 64, "squares": 0, "bits": 64, "bit_triples": 640,
    "edabits": {10: 64}, "matrices": {(2, 3, 4): 2},
}  # fmt: skip
NAMES = {
    "masks 0": 64, "masks 1": 64, "randoms": 2000, "triples": 64, "bits": 64, "bit_triples": 640, "edabits 10": 64,
    "matrices 2x3x4": 2,
}  # fmt: skip
RINGS = (64, 32)


def seal_of(rank):
    return _core.Seal(bytes([rank]) * 32, b"s" * 16)


@pytest.fixture(scope="module")
def halves():
    """By ring, what each party keeps: its part of the key and every kind, sealed; of two sessions on one channel."""

    def party(ring):
        def run(rank, channel):
            seal, kept = seal_of(rank), []
            for _ in range(2):
                session = _core.ActiveSession(channel, rank, ring)
                session.reserve(STOCK)
                taken = {"key": _core.seal_active(session, seal, "key", 1, CONTEXT)}
                for name, count in NAMES.items():
                    taken[name] = _core.seal_active(session, seal, name, count, CONTEXT)
                    assert len(taken[name]) == count * _core.active_bytes(ring, name) + _core.Seal.overhead
                with pytest.raises(ValueError, match="reserve"):
                    _core.seal_active(session, seal, "triples", 10_000, CONTEXT)
                session.retire()
                with pytest.raises(PeerDisconnected, match="closed"):
                    session.reserve(STOCK)
                kept.append(taken)
            return kept

        return run

    return {ring: succeed(run_both(party(ring))) for ring in RINGS}


def open_stored(kept, rank, channel, ring):
    seal = seal_of(rank)
    session = _core.stored_active_session(channel, rank, ring, seal, kept["key"], CONTEXT)
    for name, count in NAMES.items():
        assert _core.unseal_active(session, seal, name, count, kept[name], CONTEXT)
    return session


def products(session):
    x = np.arange(-20, 20, dtype=np.int64)
    a = P.input(session, x if session.rank == 0 else None, [40], 0)
    b = P.input(session, x if session.rank == 1 else None, [40], 1)
    return P.reveal(session, P.multiply(session, a, b), session.ring)


@pytest.mark.parametrize("ring", RINGS)
def test_protocols_run_on_them_and_nothing_is_made(halves, ring):
    def party(rank, channel):
        session = open_stored(halves[ring][rank][0], rank, channel, ring)
        result = products(session)
        negative = P.reveal_bits(session, P.less_than_zero(session, P.public_numbers(session, result), 10))
        counters = session.counters()
        assert counters["preprocess"]["sent"] == counters["preprocess"]["received"] == 0
        assert counters["setup"]["sent"] == counters["setup"]["received"] == 32
        with pytest.raises(ValueError, match="used up"):
            products(session)
        return result.tolist(), negative.tolist()

    want = (np.arange(-20, 20) ** 2).tolist()
    for squares, negative in succeed(run_both(party)):
        assert squares == want and negative == [0] * 40


def test_the_parts_of_two_sessions_do_not_fit_together(halves):
    def party(rank, channel):
        return products(open_stored(halves[64][rank][rank], rank, channel, 64))

    results = run_both(party)
    assert any(isinstance(result, SecurityAbort) for result in results)
    assert all(isinstance(result, (SecurityAbort, PeerDisconnected)) for result in results)


def test_keys_and_correlations_are_fresh_in_every_session(halves):
    seal = seal_of(0)
    first, second = ({name: seal.open(data, CONTEXT) for name, data in kept.items()} for kept in halves[64][0])
    for name in first:
        assert len(first[name]) == len(second[name]) and first[name] != second[name], name


def test_altered_and_foreign_bytes_are_refused(halves):
    kept = halves[64][0][0]
    seal, channel = seal_of(0), _core.memory_pair()[0]

    def altered(data):
        return data[:40] + bytes([data[40] ^ 1]) + data[41:]

    for key, context in ((altered(kept["key"]), CONTEXT), (kept["key"], b"elsewhere"), (b"", CONTEXT)):
        assert _core.stored_active_session(channel, 0, 64, seal, key, context) is None
    assert _core.stored_active_session(channel, 0, 32, seal, kept["key"], CONTEXT) is None

    def party(rank, channel):
        seal, kept = seal_of(rank), halves[64][rank][0]
        session = _core.stored_active_session(channel, rank, 64, seal, kept["key"], CONTEXT)
        triples = kept["triples"]
        for name, count, data, context in (
            ("triples", 64, altered(triples), CONTEXT),
            ("triples", 64, triples[:-16], CONTEXT),
            ("triples", 63, triples, CONTEXT),
            ("triples", 64 + (1 << 59), triples, CONTEXT),  # as many bytes modulo 2^64
            ("squares", 96, triples, b"elsewhere"),
            ("bits", 64, triples, CONTEXT),
        ):
            assert not _core.unseal_active(session, seal, name, count, data, context)
        with pytest.raises(ValueError, match="used up"):
            products(session)

    succeed(run_both(party))


@pytest.mark.parametrize(
    "name",
    [
        "",
        "pairs",
        "edabits",
        "edabits 0",
        "edabits 65",
        "edabits 9 ",
        "masks 2",
        "bits 1",
        "masks",
        "matrices 2x3",
        "matrices 2x0x3",
        "edabits 9x2",
    ],
)
def test_what_is_no_kind_is_refused(name):
    with pytest.raises(ValueError, match=r"named|follow"):
        _core.active_bytes(64, name)


def test_ideal_correlations_and_meters_have_nothing_to_keep():
    def party(rank, channel):
        session = _core.ActiveSession(channel, rank, 64, "ideal", 0, 3)
        with pytest.raises(ValueError, match="ideal"):
            _core.seal_active(session, seal_of(rank), "triples", 1, CONTEXT)

    succeed(run_both(party))
    with pytest.raises(ValueError, match="meter"):
        _core.seal_active(_core.ActiveSession.meter(0), seal_of(0), "triples", 1, CONTEXT)
