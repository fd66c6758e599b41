# SPDX-License-Identifier: Apache-2.0
"""What crosses the wire looks like uniform bytes, whatever the secrets are; and a value that no mask covers does not.

Seeds are fixed, so nothing here depends on luck: a protocol that changes may have to be looked at, not run again.
"""

import numpy as np
import pytest
import torch
import wire

import privml
from privml.engines.threepc import backend as threepc
from privml.engines.threepc import kernels_cpu
from privml.engines.threepc.randomness import Silence

N = 4096  # a multiple of 8: no message ends in bits that mean nothing
SECRETS = {"zeros": torch.zeros(N), "ones": torch.ones(N), "large": torch.full((N,), 1000.25)}
OPERATIONS = {
    "product of integers": lambda x, y: x * y,
    "product": lambda x, y: x * y,
    "comparison": lambda x, y: x < y,
    "ReLU": lambda x, y: torch.relu(x + y),
    "selection": lambda x, y: torch.where(x < y, x, y),
    "sigmoid": lambda x, y: torch.sigmoid(x + y),
}
COMMON = ("product of integers", "product", "ReLU")
# What is sent besides masked values: choices of transfers, hashes, seeds of trees; all of them look uniform, too.
ENGINES = {
    "twopc": {"ot": "ideal"},
    "twopc, transfers": {"ot": "softspoken"},
    "threepc": {"truncation": "exact"},
    "active": {"ot": "ideal"},
}

# Seven bits that are numbers below a prime are not uniform; two secrets must still look alike.
FIELD_ELEMENTS = {("threepc", name) for name in OPERATIONS if name != "product of integers"}


def sent(engine, operation, value, seed):
    """All bytes that an operation on secrets of both parties sends, the set-up excluded."""
    settings = {**ENGINES[engine], "test_seed": seed}
    with wire.recorded(engine.split(",")[0], keep_bytes=True, **settings) as (_, seen):
        seen.forget()
        with torch.no_grad():
            value = value.long() if operation == "product of integers" else value
            x, y = privml.share(value, owner=0), privml.share(-value, owner=1)
            result = OPERATIONS[operation](x, y)
            assert result.shape == (N,)
        return seen.sent()


def check(engine, operation):
    data = {name: sent(engine, operation, value, 5 + i) for i, (name, value) in enumerate(SECRETS.items())}
    for name, each in data.items():
        p = {} if (engine, operation) in FIELD_ELEMENTS else wire.p_values(each)
        assert min(p.values(), default=1) >= wire.LEAST_P, (name, p)
    assert wire.difference_p(data["zeros"], data["large"]) >= wire.LEAST_P
    assert wire.difference_p(data["ones"], data["large"]) >= wire.LEAST_P


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("operation", COMMON)
def test_messages_look_alike_for_every_secret(engine, operation):
    check(engine, operation)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name not in COMMON])
def test_messages_of_further_operations_look_alike(engine, operation):
    check(engine, operation)


# ---- the tests can fail
MASK = np.random.default_rng(11).integers(0, 2**63, N, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
VALUE = np.full(N, 3 << 16, np.uint64)
UNMASKED = {
    "nothing": VALUE,
    "a mask of the low half": VALUE + (MASK & np.uint64(0xFFFFFFFF)),
    "a mask without its highest bit": VALUE + (MASK & np.uint64(2**63 - 1)),
    "a mask without its lowest bit": VALUE + (MASK & ~np.uint64(1)),
    "the same mask for all": VALUE + MASK[0],
    "a mask used eight times": VALUE + np.repeat(MASK[: N // 8], 8),
}


@pytest.mark.parametrize("name", UNMASKED)
def test_what_no_mask_covers_is_noticed(name):
    assert not wire.looks_uniform(UNMASKED[name].tobytes())


def test_a_full_mask_is_uniform_and_one_of_other_values_is_told_apart():
    uniform = np.random.default_rng(12).bytes(8 * N)
    assert wire.looks_uniform(uniform)
    assert wire.difference_p(uniform, np.random.default_rng(13).bytes(8 * N)) >= wire.LEAST_P
    skewed = np.random.default_rng(14).integers(0, 255, 8 * N, dtype=np.uint8)  # no 255
    assert wire.difference_p(uniform, skewed.tobytes()) < wire.LEAST_P


class Zeros(Silence):
    """A stream that draws zeros for parties that compute."""

    def deal_packed(self, value, bits):
        return kernels_cpu.pack(value, bits)

    def mask(self, part, bits):
        return self.words(part.shape, bits), part, kernels_cpu.pack(part, bits)


def test_a_party_that_masks_nothing_is_noticed(monkeypatch):
    monkeypatch.setattr(threepc, "Stream", lambda key, kernels: Zeros())
    with privml.local("threepc", test_seed=5):  # and its results are right
        x, y = privml.share(SECRETS["large"], owner=0), privml.share(-SECRETS["large"], owner=1)
        assert not privml.reveal(x < y).any() and privml.reveal(torch.relu(x)).equal(SECRETS["large"])
    data = sent("threepc", "product of integers", SECRETS["large"], 5)
    assert not wire.looks_uniform(data)


@pytest.mark.parametrize("engine", ["twopc", "threepc"])
def test_a_value_that_is_revealed_by_its_owner_is_noticed(engine):
    """The owner of a value holds it in clear as its share, which the others learn as it is."""
    with wire.recorded(engine, keep_bytes=True, test_seed=5) as (_, seen):
        x = privml.share(SECRETS["large"], owner=0)
        seen.forget()
        privml.reveal(x)
        assert not wire.looks_uniform(seen.sent())
