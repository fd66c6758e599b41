# SPDX-License-Identifier: Apache-2.0
"""Matrix products by lattice-based encryption as Python calls them: results, costs on a meter, sealed halves."""

import numpy as np
import pytest
from parties import run_both, succeed

from privml import _core

T = _core.twopc
ELL = 44
MASK = np.uint64((1 << ELL) - 1)
CONTEXT = b"layer 1, query 0"


def operands(rows=6, inner=5, columns=4):
    random = np.random.default_rng(1)
    x = random.integers(0, 1 << ELL, (rows, inner), dtype=np.uint64)
    mask = random.integers(0, 1 << ELL, (rows, inner), dtype=np.uint64)
    return [mask, (x - mask) & MASK], random.integers(-2048, 2048, (inner, columns)), x


def online_bytes(counters):
    return sum(counters[phase]["sent"] for phase in ("preprocess", "online")), counters["online"]["sent"]


@pytest.mark.parametrize("owner", [0, 1])
def test_direct_products_equal_those_of_integers_and_of_the_meter(owner):
    shares, w, x = operands()
    arguments = ((-1, ELL, True), (owner, 12, True), 6, 5, 4, ELL)

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "softspoken", 4)
        fx, fw, *rest = arguments
        out = T.lattice_matmul(session, shares[rank], fx, w if rank == owner else None, fw, *rest, threads=1 + rank)
        meter = _core.TwoPartySession.meter(rank, "softspoken", 4)
        T.lattice_matmul(meter, shares[rank], fx, w if rank == owner else None, fw, *rest)
        assert online_bytes(session.counters()) == online_bytes(meter.counters())
        return out.view(np.uint64)

    first, second = succeed(run_both(party))
    assert ((first + second) & MASK == (x @ w.view(np.uint64)) & MASK).all()


def test_prepared_halves_are_sealed_kept_and_used_once():
    shares, w, x = operands()
    owner, fx, fw = 1, (-1, ELL, True), (1, 12, True)

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "softspoken", 4)
        meter = _core.TwoPartySession.meter(rank, "softspoken", 4)
        mine = w if rank == owner else None
        seal = _core.Seal(bytes([rank] * 32), bytes(16))
        for one in (session, meter):
            halves = T.lattice_halves(one, mine, fw, (5, 4), ELL, label=b"layer 1")
            prepared = T.lattice_prepare(one, halves, mine, fw, 12)
            assert (prepared.rows, prepared.inner, prepared.columns, prepared.owner) == (12, 5, 4, owner)
            before = one.counters()["online"]["sent"]
            if one is session:
                expected = T.lattice_fingerprint(w, fw, 5, 4) if rank == owner else bytes(32)
                assert prepared.weights == expected
                half = prepared.take(6)
                size = half.sealed_bytes
                sealed = half.seal(seal, CONTEXT)
                assert len(sealed) == size and half.rows == 0 and prepared.rows == 6
                assert T.PreparedProduct.open(seal, sealed, b"elsewhere") is None
                assert T.PreparedProduct.open(seal, sealed[:-1], CONTEXT) is None
                prepared = T.PreparedProduct.open(seal, sealed, CONTEXT)
            out = T.lattice_online(one, prepared, shares[rank], fx, mine, fw, 6)
            sent = one.counters()["online"]["sent"] - before
            assert sent == (0 if rank == owner else 16 + -(-6 * 5 * ELL // 8))
            if one is session:
                result = out.view(np.uint64)
                with pytest.raises(ValueError, match="fewer rows"):
                    T.lattice_online(one, prepared, shares[rank], fx, mine, fw, 6)
        assert online_bytes(session.counters()) == online_bytes(meter.counters())
        return result

    first, second = succeed(run_both(party))
    assert ((first + second) & MASK == (x @ w.view(np.uint64)) & MASK).all()


def test_changed_weights_are_refused_and_the_session_goes_on():
    shares, w, x = operands()
    fx, fw = (-1, ELL, True), (0, 12, True)

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "softspoken", 4)
        halves = T.lattice_halves(session, w if rank == 0 else None, fw, (5, 4), ELL)
        prepared = T.lattice_prepare(session, halves, w if rank == 0 else None, fw, 6)
        if rank == 0:
            changed = w.copy()
            changed[0, 0] ^= 1
            with pytest.raises(ValueError, match="weights have changed"):
                T.lattice_online(session, prepared, shares[0], fx, changed, fw, 6)
            with pytest.raises(ValueError, match="weights have changed"):
                T.lattice_multiply(session, halves, shares[0], fx, changed, fw, 6)
            with pytest.raises(ValueError, match="weights have changed"):
                T.lattice_prepare(session, halves, changed, fw, 6)
            with pytest.raises(ValueError, match="weights have changed"):
                T.lattice_online(session, prepared, shares[0], fx, w, fw, 6, digest=bytes(32))
            digest = T.lattice_fingerprint(w, fw, 5, 4)
            return T.lattice_online(session, prepared, shares[0], fx, w, fw, 6, digest=digest).view(np.uint64)
        return T.lattice_online(session, prepared, shares[1], fx, None, fw, 6).view(np.uint64)

    first, second = succeed(run_both(party))
    assert ((first + second) & MASK == (x @ w.view(np.uint64)) & MASK).all()


def test_halves_serve_many_products_and_cost_their_beginning_once():
    shares, w, x = operands()
    fx, fw = (-1, ELL, True), (0, 12, True)

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "softspoken", 4)
        meter = _core.TwoPartySession.meter(rank, "softspoken", 4)
        mine = w if rank == 0 else None
        results, sent = [], []
        for one in (session, meter):
            halves = T.lattice_halves(one, mine, fw, (5, 4), ELL, threads=3 - rank)
            for i in range(3):
                out = T.lattice_multiply(one, halves, shares[rank], fx, mine, fw, 6)
                assert halves.batches == i + 1
                if one is session:
                    results.append(out.view(np.uint64))
                else:
                    sent.append(one.counters()["online"]["sent"])
        assert online_bytes(session.counters()) == online_bytes(meter.counters())
        saved = 2 * sent[0] - sent[1]
        assert saved == halves.beginning_bytes[0 if rank else 1]
        return results

    for first, second in zip(*succeed(run_both(party)), strict=True):
        assert ((first + second) & MASK == (x @ w.view(np.uint64)) & MASK).all()


def test_packed_products_share_keys_that_the_first_one_makes():
    shares, w, x = operands()
    fx, fw = (-1, ELL, True), (1, 12, True)

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "softspoken", 4)
        meter = _core.TwoPartySession.meter(rank, "softspoken", 4)
        mine = w if rank == 1 else None
        results, sent = [], []
        for one in (session, meter):
            keys = T.PackingKeys(1, 1)
            for i in range(3):
                out = T.lattice_packed(one, keys, shares[rank], fx, mine, fw, (6, 5, 4), ELL)
                assert keys.products == i + 1
                if one is session:
                    results.append(out.view(np.uint64))
                else:
                    sent.append(one.counters()["online"]["sent"])
            with pytest.raises(ValueError, match="no parameters"):
                T.lattice_packed(one, keys, shares[rank][:0], fx, mine, fw, (0, 5, 4), ELL)
        assert online_bytes(session.counters()) == online_bytes(meter.counters())
        assert 2 * sent[0] - sent[1] == 64 + (keys.beginning_bytes if rank == 0 else 0)
        return results

    for first, second in zip(*succeed(run_both(party)), strict=True):
        assert ((first + second) & MASK == (x @ w.view(np.uint64)) & MASK).all()
    assert T.lattice_packed_choice((128, 768, 768), 12, True, ELL - 1)["gap"] == 32
    assert T.lattice_packed_choice((1, 400, 120), 9, True, 23, T.switching_sets - 1)["gap"] == 128
    for wrong in (-1, T.switching_sets):
        with pytest.raises(ValueError, match="no set"):
            T.PackingKeys(0, wrong)
    assert T.lattice_packed_choice((128, 768, 768), 12, True, 60) is None


def test_bytes_of_a_full_batch_are_those_of_the_arithmetic():
    meter = _core.TwoPartySession.meter(0)
    halves = T.lattice_halves(meter, np.zeros(768 * 768, np.int64), (0, 12, True), (768, 768), ELL)
    queries = 4096 // 128
    up = halves.batch_bytes  # nothing comes down
    bits = T.lattice_choice(768, 12, True, ELL)["upload_bits"]
    assert 128 * 768 * bits / 8 < up / queries < 128 * 768 * bits / 8 + 1500
    assert (halves.beginning_bytes[1] - 64) / queries == 128 * 768 * 54 / 8


def test_choice_tells_parameters_and_where_none_serve():
    choice = T.lattice_choice(768, 12, True, 44)
    assert (choice["n"], choice["log_q"], choice["dropped_bits"], choice["answer_bits"]) == (4096, 72, 10, 54)
    assert ELL < choice["upload_bits"] < 72 and choice["log2_failure"] <= -100
    assert min(choice["gates"], choice["core_svp"]) >= 128
    assert T.lattice_choice(768, 12, True, 44, noise="proved")["log2_failure"] == -np.inf
    assert T.lattice_choice(768, 12, True, 56) is None and T.lattice_choice(768, 40, True, 44) is None
    meter = _core.TwoPartySession.meter(0)
    with pytest.raises(ValueError, match="no parameters"):
        T.lattice_matmul(meter, np.zeros(4, np.int64), (-1, 60, True), np.zeros(4, np.int64), (0, 8, True), 2, 2, 2, 60)


def test_prepared_products_are_made_on_all_lanes():
    """Each lane sends rows of its own, and the meter says how many bytes."""
    rng, rows, inner, columns = np.random.default_rng(7), 300, 64, 5
    w = rng.integers(-(1 << 11), 1 << 11, (inner, columns))
    x = rng.integers(0, 1 << ELL, (rows, inner), dtype=np.uint64)
    mask = rng.integers(0, 1 << ELL, (rows, inner), dtype=np.uint64)
    shares = mask.view(np.int64), ((x - mask) & MASK).view(np.int64)
    fx, fw = (-1, ELL, True), (0, 12, True)
    further = [_core.memory_pair() for _ in range(2)]

    def party(rank, channel):
        lanes = [pair[rank] for pair in further]
        session = _core.TwoPartySession(channel, rank, "ideal", 0, "semi_honest", 5, lanes, [])
        meter = _core.TwoPartySession.meter(rank, "ideal", 0, "semi_honest", 3, False, False)
        mine, results = w if rank == 0 else None, []
        for one in (session, meter):
            prepared = T.lattice_prepare(one, T.lattice_halves(one, mine, fw, (inner, columns), ELL), mine, fw, rows)
            before = [one.lane(i).counters()["online"]["sent"] for i in range(3)]
            results.append(T.lattice_online(one, prepared, shares[rank], fx, mine, fw, rows).view(np.uint64))
            sent = [one.lane(i).counters()["online"]["sent"] - before[i] for i in range(3)]
            assert all(sent) == (rank == 1) and sum(sent) == (rank == 1) * (3 * 16 + rows * inner * ELL // 8)
        assert online_bytes(session.counters()) == online_bytes(meter.counters())
        return results[0]

    first, second = succeed(run_both(party))
    assert ((first + second) & MASK == (x @ w.view(np.uint64)) & MASK).all()
