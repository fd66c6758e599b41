# SPDX-License-Identifier: Apache-2.0
"""
Kernels of the three-party engine: what one party computes between messages.
"""

from __future__ import annotations
import collections.abc
import numpy
import numpy.typing
import typing
import typing_extensions

__all__: list[str] = [
    "Comparison",
    "add_packed",
    "bit_planes",
    "bit_shares",
    "bits_blocks",
    "deal_blocks",
    "deal_bytes",
    "deal_comparison",
    "deal_packed",
    "deal_words",
    "field_blocks",
    "lookup_shares",
    "mask_blocks",
    "mask_bytes",
    "mask_words",
    "piece_sums",
    "prf_bits",
    "prf_field",
    "prf_words",
    "selection_shares",
    "sign_deal",
    "sign_mask",
    "sign_open",
    "words_blocks",
]

class Comparison:
    """
    A comparison from dealt tables at party 0 or 1; see threepc/comparison_steps.h.
    """
    def __init__(
        self,
        party: int,
        blocks: collections.abc.Sequence[int],
        levels: collections.abc.Sequence[collections.abc.Sequence[int]],
        several: int,
        count: int,
        masks: numpy.ndarray,
        dealt: numpy.ndarray,
    ) -> None: ...
    def begin(self, m: numpy.ndarray, threads: int = 1) -> numpy.typing.NDArray[numpy.uint8]:
        """
        The first message, of int64[several * count].
        """
    def finish(self, received: numpy.ndarray) -> tuple:
        """
        uint8[several * count] each, after the peer's last message: the public bits and this party's masks of them.
        """
    def join(self, received: numpy.ndarray) -> numpy.typing.NDArray[numpy.uint8]:
        """
        The message after the peer's.
        """

def add_packed(words: numpy.ndarray, wire: numpy.ndarray, bits: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    words + unpack(wire), modulo 2^64.
    """

def bit_planes(
    words: numpy.ndarray, rows: int, count: int, bits: int, threads: int = 1
) -> numpy.typing.NDArray[numpy.uint8]:
    """
    uint8[bits, rows, ceil(count / 8)]: the low bits of int64[rows * count], lowest first, eight elements to a byte.
    """

def bit_shares(
    party: int, m_b: numpy.ndarray, r_bit: numpy.ndarray, bits: int, threads: int = 1
) -> numpy.typing.NDArray[numpy.int64]:
    """
    int64[n]: this party's share in the ring of the bit b = m_b ^ r_b.
    """

def bits_blocks(count: int) -> int:
    """
    Counter blocks that prf_bits consumes.
    """

def deal_blocks(count: int, bits: int) -> int:
    """
    Counter blocks of the dealer's key that sign_deal consumes (at both holders).
    """

def deal_bytes(count: int, bits: int, prime: int = 127) -> int:
    """
    Bytes of sign_deal's list: count * ceil((bits - 1) * ceil(log2 prime) / 8).
    """

def deal_comparison(
    blocks: collections.abc.Sequence[int],
    levels: collections.abc.Sequence[collections.abc.Sequence[int]],
    r: numpy.ndarray,
    masks: numpy.ndarray,
    several: int,
    size: int,
) -> numpy.typing.NDArray[numpy.uint8]:
    """
    Party 2: what a comparison is dealt, in clear; see threepc/comparison.h.
    """

def deal_packed(
    values: numpy.ndarray, key: typing_extensions.Buffer, counter: int, bits: int, threads: int = 1
) -> numpy.typing.NDArray[numpy.uint8]:
    """
    pack() of deal_words(values, key, counter, bits).
    """

def deal_words(
    values: numpy.ndarray, key: typing_extensions.Buffer, counter: int, bits: int, threads: int = 1
) -> numpy.typing.NDArray[numpy.int64]:
    """
    int64[n]: values - prf_words(key, counter, n, bits) modulo 2^bits, the share that the dealer sends while the other party takes prf_words. values: int64[n].
    """

def field_blocks(count: int) -> int:
    """
    Counter blocks that prf_field consumes.
    """

def lookup_shares(
    turned: numpy.ndarray, m: numpy.ndarray, dealt: numpy.ndarray, bits: int, threads: int = 1
) -> numpy.typing.NDArray[numpy.int64]:
    """
    int64[k, n]: this party's share of table[(m - r) mod size] for k public tables; turned: int64[k, 2 * size], each table backwards and twice; dealt: int64[n, size], this party's share of the unit vectors of r, which party 2 deals.
    """

def mask_blocks(count: int, bits: int) -> int:
    """
    Counter blocks of the mask key that sign_mask consumes.
    """

def mask_bytes(count: int, bits: int, prime: int = 127) -> int:
    """
    Bytes of sign_mask's list: count * ceil(bits * ceil(log2 prime) / 8).
    """

def mask_words(
    part: numpy.ndarray, key: typing_extensions.Buffer, counter: int, bits: int, threads: int = 1
) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.uint8]]:
    """
    (mask, masked, wire): prf_words(key, counter, n, bits), part + mask, and pack() of that.
    """

def piece_sums(
    coefficients: numpy.ndarray,
    powers: int,
    dropped: int,
    index: numpy.ndarray,
    place: numpy.ndarray,
    hot: numpy.ndarray,
    total: int,
    threads: int = 1,
) -> numpy.typing.NDArray[numpy.int64]:
    """
    int64[k, n]: sums of pieces' coefficients, int64[k, pieces], around the places; hot: int64[n, pieces - 1], see threepc/pieces.h.
    """

def prf_bits(
    key: typing_extensions.Buffer, counter: int, count: int, threads: int = 1
) -> numpy.typing.NDArray[numpy.uint8]:
    """
    uint8[count] of uniform bits, one keystream bit each; consumes bits_blocks(count) blocks.
    """

def prf_field(
    key: typing_extensions.Buffer, counter: int, count: int, modulus: int, threads: int = 1
) -> numpy.typing.NDArray[numpy.uint8]:
    """
    uint8[count] exactly uniform in [0, modulus), modulus 1..128 (not only primes: a rotation's modulus is bits); consumes field_blocks(count) blocks.
    """

def prf_words(
    key: typing_extensions.Buffer, counter: int, count: int, bits: int, threads: int = 1
) -> numpy.typing.NDArray[numpy.int64]:
    """
    int64[count]: uniform words in [0, 2^bits), bits 1..64, from ChaCha20 blocks counter, counter + 1, ...; consumes words_blocks(count, bits) of them.
    """

def selection_shares(
    party: int,
    m_b: numpy.ndarray,
    m_a: numpy.ndarray,
    r_a: numpy.ndarray,
    r_bit: numpy.ndarray,
    r_product: numpy.ndarray,
    bits: int,
    threads: int = 1,
) -> numpy.typing.NDArray[numpy.int64]:
    """
    int64[n]: this party's share of b * a for the bit b = m_b ^ r_b (m_b: uint8[n]); r_bit, r_product: its shares of r_b and r_b * r_a in the ring.
    """

def sign_deal(
    r: numpy.ndarray, key: typing_extensions.Buffer, counter: int, bits: int, prime: int = 127, threads: int = 1
) -> numpy.typing.NDArray[numpy.uint8]:
    """
    Party 2: the list for party 0, uint8[deal_bytes(n, bits, prime)] as it goes on the wire; party 1's shares come from (key, counter), common to parties 1 and 2. r: int64[n], the whole mask; bits above `bits` are ignored. Needed once per r, whatever it is compared to.
    """

def sign_mask(
    party: int,
    m: numpy.ndarray,
    delta: numpy.ndarray,
    rotation: numpy.ndarray,
    dealt: numpy.ndarray | None,
    deal_key: typing_extensions.Buffer | None,
    deal_counter: int,
    mask_key: typing_extensions.Buffer,
    mask_counter: int,
    bits: int,
    prime: int = 127,
    threads: int = 1,
) -> numpy.typing.NDArray[numpy.uint8]:
    """
    Parties 0 and 1: the list for party 2, uint8[mask_bytes(n, bits, prime)] as it goes on the wire. m: int64[n]; delta: uint8[n] common random bits; rotation: uint8[n] common random numbers below bits (prf_field(.., modulus=bits)); dealt: party 0's list from sign_deal, None at party 1; deal_key, deal_counter: those of sign_deal at party 1, None and 0 at party 0; mask_key, mask_counter: common to parties 0 and 1. delta, rotation and the mask's counters are fresh for every comparison; the deal may be used for several m with the same r.
    """

def sign_open(
    first: numpy.ndarray, second: numpy.ndarray, count: int, bits: int, prime: int = 127, threads: int = 1
) -> numpy.typing.NDArray[numpy.uint8]:
    """
    Party 2: uint8[count], z = 1 where the lists of parties 0 and 1 add up to one with a zero. The sign of m - r is msb(-r) ^ z ^ 1 ^ delta.
    """

def words_blocks(count: int, bits: int) -> int:
    """
    Counter blocks that prf_words and deal_words consume.
    """
