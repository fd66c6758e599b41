# SPDX-License-Identifier: Apache-2.0
"""The kernels of the three-party engine as Python calls them; csrc/threepc tests each of them exhaustively."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from privml import _core
from privml.engines.threepc import kernels_cpu

kernels = _core.threepc
KEYS = {pair: bytes([16 * pair[0] + pair[1] + 1] * 32) for pair in ((0, 1), (0, 2), (1, 2))}


def signs(m: np.ndarray, r: np.ndarray, bits: int, prime: int, threads: int) -> np.ndarray:
    """The whole extraction, with what each party may see."""
    n = m.size
    delta = kernels.prf_bits(KEYS[0, 1], 0, n)
    start = kernels.bits_blocks(n)
    rotation = kernels.prf_field(KEYS[0, 1], start, n, bits)
    start += kernels.field_blocks(n)
    dealt = kernels.sign_deal(r, KEYS[1, 2], 3, bits, prime, threads)
    assert dealt.size == kernels.deal_bytes(n, bits, prime)
    first = kernels.sign_mask(
        0, m, delta, rotation, dealt, None, 0, KEYS[0, 1], start, bits, prime=prime, threads=threads
    )
    second = kernels.sign_mask(
        1, m, delta, rotation, None, KEYS[1, 2], 3, KEYS[0, 1], start, bits, prime=prime, threads=threads
    )
    assert first.size == second.size == kernels.mask_bytes(n, bits, prime)
    zero = kernels.sign_open(first, second, n, bits, prime, threads)
    negative = ((-r).view(np.uint64) >> np.uint64(bits - 1)).astype(np.uint8) & 1
    return negative ^ zero ^ 1 ^ delta


@pytest.mark.parametrize(("bits", "prime"), [(32, 127), (32, 61), (64, 127), (64, 67), (17, 31)])
@pytest.mark.parametrize("threads", [1, 2])
def test_signs_of_three_parties(bits: int, prime: int, threads: int) -> None:
    random = np.random.default_rng(bits)
    m, r = random.integers(-(2**63), 2**63 - 1, (2, 1000))
    x = (m - r).view(np.uint64) >> np.uint64(bits - 1)
    assert (signs(m, r, bits, prime, threads) == (x & np.uint64(1))).all()


def test_words_are_rfc_8439() -> None:
    """Word k of block b is element 16 k + b."""
    words = kernels.prf_words(bytes(32), 0, 256, 32)
    blocks = words.reshape(16, 16).T.astype("<u4")
    assert blocks[0].tobytes().hex().startswith("76b8e0ada0f13d90405d6ae55386bd28")
    assert blocks[1].tobytes().hex().startswith("9f07e7be5551387a98ba977c732d080d")
    wide = kernels.prf_words(bytes(32), 0, 128, 64).reshape(8, 16).T
    assert np.array_equal(np.ascontiguousarray(wide).view("<u4").reshape(16, 16), blocks)


def test_dealt_words_and_the_key_add_up() -> None:
    values = torch.arange(-500, 500)
    for bits in (1, 32, 40, 64):
        sent = kernels.deal_words(values.numpy(), KEYS[1, 2], 9, bits)
        kept = kernels.prf_words(np.frombuffer(KEYS[1, 2], np.uint8), 9, 1000, bits)
        assert (((sent + kept) - values.numpy()) & (2**bits - 1 if bits < 64 else -1) == 0).all()


def test_selections_and_bits() -> None:
    random = np.random.default_rng(1)
    draw = lambda: random.integers(-(2**63), 2**63 - 1, 300)  # noqa: E731
    split = lambda v: (s := draw(), v - s)  # noqa: E731
    m, r = draw(), draw()
    m_b, r_b = random.integers(0, 2, (2, 300))
    parts, bit, product = split(r), split(r_b), split(r_b * r)
    shown = m_b.astype(np.uint8)
    z = sum(kernels.selection_shares(p, shown, m, parts[p], bit[p], product[p], 64) for p in (0, 1))
    assert (z == (m_b ^ r_b) * (m - r)).all()
    z = sum(kernels.bit_shares(p, shown, bit[p], 64) for p in (0, 1))
    assert (z == m_b ^ r_b).all()


def test_lookups_of_shared_indices() -> None:
    random = np.random.default_rng(3)
    tables = random.integers(-(2**63), 2**63 - 1, (2, 16))
    m, r = random.integers(0, 16, (2, 500))
    kept = random.integers(-(2**63), 2**63 - 1, (500, 16))
    dealt = kept, (np.arange(16) == r[:, None]).astype(np.int64) - kept
    parts = (kernels_cpu.lookup_shares(*map(torch.from_numpy, (tables, m, d)), 64) for d in dealt)
    assert (sum(parts).numpy() == tables[:, (m - r) % 16]).all()


def test_what_is_refused() -> None:
    words, bits = np.zeros(10, np.int64), np.zeros(10, np.uint8)
    with pytest.raises(ValueError, match="32 bytes"):
        kernels.prf_words(b"short", 0, 10, 64)
    with pytest.raises(ValueError, match="negative"):
        kernels.prf_bits(KEYS[0, 1], 0, -1)
    with pytest.raises(ValueError, match="prime"):
        kernels.sign_deal(words, KEYS[0, 1], 0, 32, 63)
    with pytest.raises(ValueError, match="dealer's list"):
        kernels.sign_mask(0, words, bits, bits, None, None, 0, KEYS[0, 1], 0, 32)
    with pytest.raises(ValueError, match="common with the dealer"):
        kernels.sign_mask(1, words, bits, bits, None, None, 0, KEYS[0, 1], 0, 32)
    with pytest.raises(ValueError, match="dealt: 3 values"):
        kernels.sign_mask(0, words, bits, bits, bits[:3], None, 0, KEYS[0, 1], 0, 32)
    with pytest.raises(ValueError, match="second"):
        kernels.sign_open(np.zeros(280, np.uint8), bits, 10, 32)
    with pytest.raises(ValueError, match="contiguous"):
        kernels.sign_deal(words[::2], KEYS[0, 1], 0, 32)
    assert kernels.sign_deal(words[:0], KEYS[0, 1], 0, 32).size == 0
