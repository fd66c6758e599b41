# SPDX-License-Identifier: Apache-2.0
"""slow stand-in, not landed"""
import numpy as np

def _rng(key, start): return np.random.Generator(np.random.Philox(key=int.from_bytes(key[:16].tobytes(), "little") ^ (start * 0x9E3779B97F4A7C15 % 2**128)))
def random_words(key, start, count): return _rng(key, start).integers(-(2**63), 2**63 - 1, count, dtype=np.int64, endpoint=True)
def random_bits(key, start, count): return _rng(key, start).integers(0, 2, count, dtype=np.uint8)
def field_blocks(count): return -(-count * 8 // 64)
def random_field(key, start, count, prime): return _rng(key, start).integers(0, prime, count, dtype=np.uint8)

def _bits(x, n): return ((x[..., None].view(np.uint64) >> np.arange(n - 1, -1, -1, dtype=np.uint64)) & np.uint64(1)).astype(np.uint8)
def sign_deal(r, ell, prime, other):
    """[n] masks, [n, ell-1] field elements of party 1 -> party 0's packed"""
    from privml import _core
    bits = _bits(~(-r), ell - 1)
    return _core.pack(((bits.astype(np.int16) - other) % prime).astype(np.uint8).ravel(), prime.bit_length())
def sign_unpack(data, count, ell, prime):
    from privml import _core
    return _core.unpack_bytes(data, count * (ell - 1), prime.bit_length()).reshape(count, ell - 1)
def sign_blocks(count, ell): return count * ell
def sign_mask(rank, m, share, delta, ell, prime, key, start):
    """m [k, n] int64, share [n, ell-1], delta [k, n] -> packed masked permuted list of k * n * ell"""
    from privml import _core
    rng = _rng(key, start)
    mb = np.concatenate([_bits(m, ell - 1), np.zeros((*m.shape, 1), np.uint8)], -1).astype(np.int64)
    rb = np.concatenate([share, np.full((*share.shape[:-1], 1), 1 if rank == 0 else 0, np.uint8)], -1).astype(np.int64)[None]
    sm = ((m.view(np.uint64) >> np.uint64(ell - 1)) & np.uint64(1)).astype(np.int64)
    s = ((mb if rank == 0 else 0) + rb - 2 * mb * rb) % prime
    t = np.cumsum(s, -1) - 2 * s + (1 if rank == 0 else 0)
    bit = sm[..., None] ^ mb ^ delta[..., None]
    w, rho = rng.integers(1, prime, mb.shape), rng.integers(0, prime, mb.shape)
    v = (w * (t + (bit if rank == 0 else 0)) + (rho if rank == 0 else -rho)) % prime
    v = np.take_along_axis(v, rng.random(v.shape).argsort(-1), -1)
    return _core.pack(np.ascontiguousarray(v.astype(np.uint8)).ravel(), prime.bit_length())
def sign_open(first, second, count, ell, prime):
    from privml import _core
    w = prime.bit_length()
    v = (_core.unpack_bytes(first, count * ell, w).astype(np.int16) + _core.unpack_bytes(second, count * ell, w)) % prime
    return (v.reshape(count, ell) == 0).any(-1).astype(np.uint8)
