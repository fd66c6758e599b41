# SPDX-License-Identifier: Apache-2.0
"""What crosses the wire: pinned down by hashes where the randomness is, and free of the values where it is not."""

import hashlib
import threading
from functools import partial

import numpy as np
import pytest
import torch

from privml import _core
from privml.engines.base import Operand
from privml.engines.shares import Promise, Shift
from privml.engines.threepc import backend as threepc
from privml.engines.threepc.comparison import chosen_plan
from privml.engines.threepc.links import DEALER
from privml.formats import FixedPoint

N = 300


class Recorded:
    """A channel's end that keeps what is written to it."""

    def __init__(self, channel, written):
        self._channel, self._written = channel, written

    def write_array(self, data):
        self._written.append(bytes(data))
        self._channel.write_array(data)

    def __getattr__(self, name):
        return getattr(self._channel, name)


def keep_dealt(links, written):
    deal = links.deal

    def kept(payload, size):
        written.append(bytes(payload))
        return deal(payload, size)

    links.deal = kept


def three(work, value, seed=None, comparison="few_bytes", truncation="exact"):
    """Runs ``work(engine, share of value)`` at all parties; returns what each of them sent after the set-up, by target
    ("deal" for what is dealt, before it is encrypted)."""
    pairs = {pair: _core.memory_pair() for pair in threepc.PAIRS}
    dealing = _core.memory_pair()
    written = {(a, b): [] for pair in threepc.PAIRS for a, b in (pair, pair[::-1])} | {(DEALER, "deal"): []}
    errors = []

    def party(rank):
        try:
            mine = {}
            for pair, ends in pairs.items():
                if rank in pair:
                    peer = pair[1 - pair.index(rank)]
                    mine[peer] = Recorded(ends[pair.index(rank)], written[rank, peer])
            end = {0: dealing[0], DEALER: dealing[1]}.get(rank)
            engine = threepc.established(mine, end, rank, threepc.Config(truncation, comparison=comparison), seed)
            if rank == DEALER:
                keep_dealt(engine.party.links, written[DEALER, "deal"])
            for key in written:
                if key[0] == rank:
                    written[key].clear()
            work(engine, engine.input(value if rank == 1 else None, value.shape, 1, 64))
            engine.party.drain()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=party, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    return {key: b"".join(parts) for key, parts in written.items()}


def of_function(name, engine, x):
    return engine.function(name, x, FixedPoint(64, 16), FixedPoint(32, 16))


def sent_by(name, value, seed=None):
    return three(WORK[name], value, seed, truncation="auto" if name in AUTO else "exact")


WORK = {
    "multiply": lambda e, x: e.multiply(Operand(x, 64), Operand(x, 64), 64),
    "shifted product": lambda e, x: e.shifted_product("multiply", Operand(x, 64), Operand(x, 64), 64, Shift(13)),
    "small shifted product": lambda e, x: e.shifted_product(
        "multiply", Operand(x, 64), Operand(x, 64), 64, Shift(13, Promise(bound=1 << 10))
    ),
    "reduced product": lambda e, x: e.shifted_product(
        "multiply", Operand(x, 64), Operand(x, 64), 64, Shift(13, reduces=True)
    ),
    "sign": lambda e, x: e.less_than_zero(x, 64),
    "signs of many": lambda e, x: e.less_than_many(x, [0, 5], 64),
    "select": lambda e, x: e.relu(x, 40),
    "truncate": lambda e, x: e.truncate(x, 64, 13),
    "extend": lambda e, x: e.extend(x, 32, 64),
    "quotient": lambda e, x: e.divide_public(x, 32, 10),
    "quotient of 64 bits": lambda e, x: e.divide_public(x, 64, 768),
    "lookup": lambda e, x: e.lookup(torch.arange(16), x, 4, 20),
    "and": lambda e, x: e.logical_and(e.less_than_zero(x, 8), e.less_than_zero(x, 8)),
    **{name: partial(of_function, name) for name in ("gelu", "tanh", "exp", "cos")},
}
AUTO = ("gelu", "tanh", "exp", "cos", "shifted product", "small shifted product", "reduced product")
TRACES = {
    "multiply": "c4dc30bf46895d3d",
    "shifted product": "a2b574e3ecb41d4d",
    "small shifted product": "52c86e043c3a8b8a",
    "reduced product": "466744b0f0a041e1",
    "sign": "d0bd59075e25a345",
    "signs of many": "5a184a5676962136",
    "select": "40b27f158540f25b",
    "truncate": "43af464247b159f5",
    "extend": "fe8bfd168432f73a",
    "quotient": "ca122bece1f8407a",
    "quotient of 64 bits": "c604a5d9e65a4288",
    "lookup": "c723f7a97dd9220b",
    "and": "95deb4b49aa0569c",
    "gelu": "3244a088ab0cd10f",
    "tanh": "cf6b68f5e0f85120",
    "exp": "6462f664c7bcf31d",
    "cos": "0982a96400bf68a0",
}
TRACE_BY_THE_DEALER = "2be44cac1f013935"


def digest(traffic):
    return hashlib.sha256(b"".join(str(k).encode() + v for k, v in sorted(traffic.items(), key=str))).hexdigest()[:16]


@pytest.mark.parametrize("name", WORK)
def test_trace(name):
    found = digest(sent_by(name, torch.arange(-N // 2, N // 2), 11))
    assert found == TRACES[name], "the messages changed: a protocol change must say so, a refactoring must not do it"


def test_trace_of_a_sign_by_the_dealer():
    found = digest(three(WORK["sign"], torch.arange(-N // 2, N // 2), seed=11, comparison="few_rounds"))
    assert found == TRACE_BY_THE_DEALER, "the messages changed: a protocol change must say so"


@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("value", [0, -1, 123456])
def test_messages_do_not_depend_on_values(name, value):
    """Every message has as many ones as when other values are shared, at most six standard deviations apart."""
    others = sent_by(name, torch.arange(-N // 2, N // 2))
    for key, sent in sent_by(name, torch.full((N,), value)).items():
        assert len(sent) == len(others[key])
        if sent:
            means = [np.unpackbits(np.frombuffer(data, np.uint8)).mean() for data in (sent, others[key])]
            assert abs(means[0] - means[1]) < 6 * 0.5 * np.sqrt(2 / (8 * len(sent))), (key, means)


@pytest.mark.parametrize("name", WORK)
def test_every_run_draws_anew(name):
    first, second = (sent_by(name, torch.zeros(N, dtype=torch.int64)) for _ in range(2))
    for key in first:
        assert len(first[key]) == len(second[key]) and (len(first[key]) < 16 or first[key] != second[key]), key


def test_a_mask_is_never_used_twice():
    """The same call again on one session sends other bytes."""

    def twice(engine, x):
        for _ in range(2):
            engine.less_than_zero(x, 64)

    for comparison, busy in (("few_rounds", [(0, DEALER), (DEALER, 0)]), ("few_bytes", [(0, 1), (1, 0)])):
        traffic = three(twice, torch.zeros(N, dtype=torch.int64), comparison=comparison)
        for key in (*busy, (DEALER, "deal")):
            sent = traffic[key][-(len(traffic[key]) // 2 * 2) :] if key != (1, 0) else traffic[key][8 * N :]
            half = len(sent) // 2
            assert half and sent[:half] != sent[half:], (comparison, key)


@pytest.mark.parametrize("count", [2, 3])
def test_equal_thresholds_have_masks_of_their_own(count):
    """Comparisons with one threshold many times open the same bits, and no plane under the mask of another."""
    sent = three(lambda engine, x: engine.less_than_many(x, [5] * count, 64), torch.arange(N))
    opened, size = chosen_plan("few_bytes", 64, count).opened, -(-N // 8)
    for key in ((0, 1), (1, 0)):
        planes = np.frombuffer(sent[key], np.uint8)[-sum(opened) * count * size :].reshape(-1, size)
        assert len({plane.tobytes() for plane in planes}) == len(planes) == sum(opened) * count
        # the difference of two rows is that of their masks: as many ones as zeros
        rows = np.unpackbits(planes.reshape(-1, size), axis=1)
        start = 0
        for bits in opened:
            level = rows[start : start + bits * count].reshape(bits, count, -1)
            for first in range(count):
                for second in range(first):
                    ones = (level[:, first] ^ level[:, second]).mean()
                    assert abs(ones - 0.5) < 6 * 0.5 / np.sqrt(level[:, 0].size)
            start += bits * count
