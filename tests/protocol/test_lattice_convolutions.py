# SPDX-License-Identifier: Apache-2.0
"""Convolutions by lattice-based encryption as Python calls them: results, costs on a meter, sealed halves."""

import numpy as np
import pytest
from parties import run_both, succeed

from privml import _core

T = _core.twopc
ELL = 40
MASK = np.uint64((1 << ELL) - 1)
CONTEXT = b"layer 1, query 0"
SHAPES = (2, 3, 6, 5), (4, 3, 3, 3)


def task(images=2, owner=1, stride=(2, 1), ell=ELL):
    return T.Convolution((images, 3, 6, 5), SHAPES[1], stride, (1, 1, 1, 1), (1, 1), 1, (owner, 9, True), ell)


def operands(weights=None):
    random = np.random.default_rng(1)
    x = random.integers(0, 1 << ELL, SHAPES[0], dtype=np.uint64)
    mask = random.integers(0, 1 << ELL, SHAPES[0], dtype=np.uint64)
    w = random.integers(-256, 256, SHAPES[1]) if weights is None else np.full(SHAPES[1], weights)
    return [mask, (x - mask) & MASK], w, x


def expected(x, w, stride=(2, 1)):
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    patches = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, :: stride[0], :: stride[1]]
    return np.einsum("ncyxij,ocij->noyx", patches, w.view(np.uint64)) & MASK


def sent(counters):
    return counters["preprocess"]["sent"], counters["online"]["sent"], counters["online"]["depth"]


@pytest.mark.parametrize("owner", [0, 1])
@pytest.mark.parametrize("kind", [0, 2, 8])
def test_direct_convolutions_equal_those_of_integers_and_of_the_meter(owner, kind):
    shares, w, x = operands()

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "softspoken", 4)
        meter = _core.TwoPartySession.meter(rank, "softspoken", 4)
        mine, results = w if rank == owner else None, []
        for one in (session, meter):
            keys = T.PackingKeys(owner, kind)
            for turn in (1, 2):
                results.append(T.lattice_convolve(one, keys, task(owner=owner), shares[rank], (-1, ELL, True), mine))
                assert keys.products == turn
        assert sent(session.counters()) == sent(meter.counters())
        return [each.view(np.uint64) for each in results[:2]]

    for first, second in zip(*succeed(run_both(party)), strict=True):
        assert ((first + second) & MASK == expected(x, w)).all()


def test_prepared_images_are_sealed_kept_and_used_once():
    shares, w, x = operands()
    owner = 1

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "softspoken", 4)
        meter = _core.TwoPartySession.meter(rank, "softspoken", 4)
        mine = w if rank == owner else None
        seal = _core.Seal(bytes([rank] * 32), bytes(16))
        for one in (session, meter):
            prepared = T.lattice_prepare_convolution(one, T.PackingKeys(owner), task(5), mine)
            assert (prepared.rows, prepared.inner, prepared.columns, prepared.owner) == (5, 90, 60, owner)
            before = one.counters()["online"]["sent"]
            if one is session:
                assert prepared.weights == (task().fingerprint(w) if rank == owner else bytes(32))
                half = prepared.take(2)
                size, sealed = half.sealed_bytes, half.seal(seal, CONTEXT)
                assert len(sealed) == size and half.rows == 0 and prepared.rows == 3
                assert T.PreparedProduct.open(seal, sealed[:-1], CONTEXT) is None
                prepared = T.PreparedProduct.open(seal, sealed, CONTEXT)
            out = T.lattice_online_convolution(one, prepared, task(), shares[rank], (-1, ELL, True), mine)
            assert one.counters()["online"]["sent"] - before == (0 if rank == owner else 16 + 2 * 90 * ELL // 8)
            if one is session:
                result = out.view(np.uint64)
                with pytest.raises(ValueError, match="fewer rows"):
                    T.lattice_online_convolution(one, prepared, task(), shares[rank], (-1, ELL, True), mine)
        assert sent(session.counters()) == sent(meter.counters())
        return result

    first, second = succeed(run_both(party))
    assert ((first + second) & MASK == expected(x, w)).all()


def test_weights_decide_nothing_of_what_is_sent():
    counted = []
    for weights in (0, 255, -256):
        shares, w, x = operands(weights)

        def party(rank, channel, shares=shares, w=w):
            session = _core.TwoPartySession(channel, rank, "softspoken", 4)
            mine = w if rank == 1 else None
            out = T.lattice_convolve(session, T.PackingKeys(1), task(), shares[rank], (-1, ELL, True), mine)
            return out.view(np.uint64), sent(session.counters())

        (first, mine), (second, theirs) = succeed(run_both(party))
        assert ((first + second) & MASK == expected(x, w)).all()
        counted.append((mine, theirs))
    assert counted[0] == counted[1] == counted[2]


def test_what_does_not_fit_is_refused_before_anything_is_sent():
    shares, w, _ = operands()

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "softspoken", 4)
        mine, fx = w if rank == 1 else None, (-1, ELL, True)
        keys, meter = T.PackingKeys(1), _core.TwoPartySession.meter(rank, "softspoken", 4)
        prepared = T.lattice_prepare_convolution(session, keys, task(), mine)
        before = sent(session.counters())
        changed = w + 1 if rank == 1 else None
        with pytest.raises(ValueError, match="owner's|owner|another party"):
            T.lattice_convolve(session, T.PackingKeys(0), task(), shares[rank], fx, mine)
        with pytest.raises(ValueError, match="no parameters"):
            T.lattice_convolve(session, keys, task(ell=64), shares[rank], (-1, 64, True), mine)
        with pytest.raises(ValueError, match="values, the shape needs"):
            T.lattice_convolve(session, keys, task(3), shares[rank], fx, mine)
        with pytest.raises(ValueError, match="another convolution"):
            T.lattice_online_convolution(session, prepared, task(stride=(1, 1)), shares[rank], fx, mine)
        if rank == 1:
            with pytest.raises(ValueError, match="have changed"):
                T.lattice_online_convolution(session, prepared, task(), shares[rank], fx, changed)
        with pytest.raises(ValueError, match="fewer rows"):
            T.lattice_online_convolution(meter, T.lattice_prepare_convolution(meter, keys, task(1), mine), task(),
                                         shares[rank], fx, mine)  # fmt: skip
        assert sent(session.counters()) == before and prepared.rows == 2

    succeed(run_both(party))


def test_a_dear_link_has_fewer_bytes_and_a_cheap_one_less_work():
    large = T.Convolution((1, 64, 32, 32), (64, 64, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1, (0, 12, True), 32)
    dear, cheap = (large.over(price).choice(T.PackingKeys(0, 2)) for price in (1000, 0))
    assert dear["up"] + dear["down"] < cheap["up"] + cheap["down"]
    assert dear["digits"] > cheap["digits"]
    assert dear["up"] < 9 * 64 * 32 * 32 * 1.3, "pixels go up once, with little more around them"
    assert large.of(7).over(0).choice(T.PackingKeys(0))["messages"] > 1
    for wrong in (lambda: large.of(0), lambda: large.over(-1)):
        with pytest.raises(ValueError, match="convolution"):
            wrong()
