# SPDX-License-Identifier: Apache-2.0
"""Arguments that the bindings refuse, and channels."""

import threading

import numpy as np
import pytest
from parties import run_both, succeed

from privml import _core
from privml.errors import PeerDisconnected

T = _core.twopc


@pytest.fixture
def meter():
    return _core.TwoPartySession.meter(0, "softspoken", 4)


GOOD = np.arange(6, dtype=np.int64)


@pytest.mark.parametrize(
    "array",
    [
        GOOD.astype(np.float64),
        GOOD.astype(np.int32),
        GOOD.astype(np.uint8),
        np.arange(12)[::2],
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        GOOD.astype(">i8"),
    ],
    ids=lambda a: f"{a.dtype.str}{a.strides}",
)
def test_wrong_arrays_are_refused(meter, array):
    with pytest.raises(ValueError, match="x: needs a C-contiguous array of int64 or uint64"):
        T.relu(meter, array, 32)


def test_a_meter_returns_zeros_and_not_old_memory(meter):
    freed = [np.full(GOOD.shape, 77 + i) for i in range(64)]
    del freed
    value, bits = T.relu(meter, GOOD, 32)
    assert not value.any() and not bits.any()


def test_both_signs_and_any_shape_pass(meter):
    for array in (GOOD, GOOD.astype(np.uint64), GOOD.reshape(1, 2, 3), np.array(5), np.zeros((0, 3), np.int64)):
        value, bits = T.relu(meter, array, 32)
        assert value.shape == bits.shape == array.shape
        assert (value.dtype, bits.dtype) == (np.int64, np.uint8)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: T.and_bits(m, np.zeros(3, np.uint8), np.zeros(4, np.uint8)),
        lambda m: T.maximum_last(m, np.zeros((3, 0), np.int64), 32),
        lambda m: T.maximum_last(m, np.array(3), 32),
        lambda m: T.matmul(m, GOOD, (-1, 32, True), GOOD, (-1, 32, True), 2, 2, 3, 32),
        lambda m: T.matmul(m, None, (-1, 32, True), GOOD, (-1, 32, True), 2, 3, 2, 32),
        lambda m: T.matmul(m, GOOD, (1, 32, True), GOOD, (-1, 32, True), 2, 3, 2, 32),
        lambda m: T.conv2d(
            m, GOOD, (-1, 32, True), GOOD, (-1, 32, True), [1, 1, 2, 3], [1, 1, 3, 2], [1, 1], [0] * 4, [1, 1], 1, 32
        ),
        lambda m: T.conv2d(
            m, GOOD, (-1, 32, True), GOOD, (-1, 32, True), [1, 1, 2, 3], [1, 1, 2, 3], [0, 1], [0] * 4, [1, 1], 1, 32
        ),
        lambda m: T.multiplex(m, np.zeros(3, np.uint8), GOOD, 32),
        lambda m: T.transfer_one_of_n(m, 0, GOOD, 9, 2),
        lambda m: _core.TwoPartySession.meter(2, "softspoken", 4),
        lambda m: _core.TwoPartySession.meter(0, "other", 4),
        lambda m: _core.memory_pair(delay_ms=-1.0),
        lambda m: _core.memory_pair(delay_ms=float("nan")),
    ],
)
def test_wrong_arguments_are_refused(meter, call):
    with pytest.raises(ValueError):
        call(meter)


@pytest.mark.parametrize(
    "call",
    [
        lambda s, x: T.relu(s, x, 0),
        lambda s, x: T.relu(s, x, 65),
        lambda s, x: T.truncate_arithmetic(s, x, 32, 32),
        lambda s, x: T.sign_extend(s, x, 32, 65),
        lambda s, x: T.open_ring(s, x, 32, 2),
        lambda s, x: T.multiply(s, x, (8, True, False, False), x, (8, True, False, False), 32),
        lambda s, x: T.lookup(s, x, x, 3, 8),
        lambda s, x: T.argmax_last(s, np.zeros((2, 300), np.int64), 8),
    ],
)
def test_wrong_widths_are_refused_before_anything_is_sent(call):
    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "ideal", test_seed=3)
        sent = channel.traffic()["sent"]
        with pytest.raises(ValueError):
            call(session, GOOD)
        assert channel.traffic()["sent"] == sent
        return T.open_ring(session, GOOD, 32).tolist()

    assert succeed(run_both(party)) == [(2 * GOOD).tolist()] * 2


def test_two_threads_may_not_share_a_session():
    channels = _core.memory_pair()
    errors = []

    def wait():
        try:
            T.open_ring(session, GOOD, 32)
        except PeerDisconnected as error:
            errors.append(error)

    session = _core.TwoPartySession(channels[0], 0, "ideal", test_seed=3)
    thread = threading.Thread(target=wait)
    thread.start()
    while channels[0].traffic()["sent"] == 0:
        pass
    with pytest.raises(ValueError, match="another thread"):
        T.open_ring(session, GOOD, 32)
    session.close()
    thread.join(10)
    assert not thread.is_alive() and len(errors) == 1


def test_plain_oblivious_transfer():
    messages = np.arange(3 * 16, dtype=np.int64)
    choices = np.array([0, 7, 15], dtype=np.uint8)

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "softspoken", 4)
        return T.transfer_one_of_n(session, 0, messages if rank == 0 else choices, 4, 8)

    sender, receiver = succeed(run_both(party))
    assert sender is None and receiver.tolist() == [0, 16 + 7, 32 + 15]


def test_private_comparison_and_digits():
    x = np.array([[5, 9, 7], [5, 3, 8]], dtype=np.int64)
    digits = np.array([[0x3A7, 0x0F1], [0, 0]], dtype=np.int64)

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "ideal", test_seed=3)
        return (
            T.open_bits(session, T.millionaires(session, x[rank], 32)).tolist(),
            T.open_bits(session, T.equal(session, x[rank], 32)).tolist(),
            T.open_ring(session, T.digits(session, digits[rank], 12, 4), 4).tolist(),
            T.open_bits(session, T.most_significant_nonzero_bit(session, digits[rank], 12)).argmax(-1).tolist(),
        )

    want = ([0, 1, 0], [1, 0, 0], [[7, 1], [-6, -1], [3, 0]], [9, 7])
    assert succeed(run_both(party)) == [want, want]


def test_channel_counts_and_closes():
    first, second = _core.memory_pair()
    first.write(b"four")
    first.flush()
    assert second.read(4) == b"four"
    assert first.traffic() == {"sent": 4, "received": 0, "depth": 0}
    assert second.traffic() == {"sent": 0, "received": 4, "depth": 1}
    with pytest.raises(ValueError):
        second.read(-1)
    with pytest.raises(ValueError):
        second.set_deadline(float("inf"))
    first.close()
    with pytest.raises(PeerDisconnected):
        second.read(1)
