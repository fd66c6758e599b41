# SPDX-License-Identifier: Apache-2.0
"""A two-party engine without protocols: random additive shares that a dealer opens and deals anew.

It holds rules to what real engines need: constants enter once, bits above the ring are noise, an owned
operand is the value at its owner, sign-extended if it is signed, and zeros elsewhere.
Results equal the plain engine's bit for bit.
"""

import torch

from privml.engines import ring
from privml.engines.catalogue import FORMS, FUNCTIONS
from privml.engines.owned import SharedEngine
from privml.engines.plain.engine import PlainEngine
from privml.engines.shares import NO_PROMISE


class AdditiveEngine(SharedEngine):
    name = "additive"
    rank = None
    parties = 2
    components = 2

    def __init__(self, seed=0):
        self.plain = PlainEngine(check_overflow=False)
        self.generator = torch.Generator().manual_seed(seed)

    def _noise(self, shape):
        return torch.randint(-(2**63), 2**63 - 1, tuple(shape), generator=self.generator)

    def _deal(self, value, bits):
        mask = self._noise(value.shape)
        noise = self._noise(value.shape) << bits if bits < 64 else 0
        return value - mask + noise, mask

    def _deal_bits(self, value):
        assert value.dtype is torch.uint8
        mask = torch.randint(0, 2, tuple(value.shape), generator=self.generator, dtype=torch.uint8)
        return value ^ mask, mask

    def _open(self, a, bits):
        assert a[0].dtype is torch.int64 and a[1].dtype is torch.int64
        return (ring.wrap(a[0] + a[1], bits),)

    def _open_bits(self, a):
        assert a[0].dtype is torch.uint8 and a[1].dtype is torch.uint8 and int(a[0].max() | a[1].max()) <= 1
        return (a[0] ^ a[1],)

    def _operand(self, a):
        width = min(a.bits + (not a.signed), 64)
        if a.owner is None:
            assert a.signed, "a shared operand is signed"
        else:
            assert not a.share[1 - a.owner].any(), "an owned share is not zero at the other party"
            own = a.share[a.owner]
            assert torch.equal(own, ring.wrap(own, width)), "an owned share is not sign-extended"
            assert a.signed or (own >= 0).all(), "an unsigned operand is negative"
        value = self._open(a.share, width)
        assert not a.nonnegative or not (value[0] < 0).any(), "a negative value was promised to be nonnegative"
        return type(a)(value, a.bits, a.owner, a.signed, a.nonnegative)

    def _kept(self, value, promise):
        nonnegative, bound = promise
        """``value``, which keeps what its caller promised."""
        low, high = ring.extremes(value[0])
        assert not nonnegative or low >= 0, "a negative value was promised to be nonnegative"
        assert bound is None or -bound <= low <= high < bound, "a bound was broken"
        return value

    # ---- in and out
    def input(self, value, shape, owner, bits):
        value = value.expand(tuple(shape)).clone()
        zeros = torch.zeros_like(value)
        return (value, zeros) if owner == 0 else (zeros, value)

    def input_bits(self, value, shape, owner):
        return self.input(value, shape, owner, 1)

    def public(self, value, bits):
        return value.clone(), torch.zeros_like(value)

    def reveal(self, a, bits, to=None):
        return self._open(a, bits)[0]

    def reveal_bits(self, a, to=None):
        return self._open_bits(a)[0]

    # ---- local
    def add(self, a, b, bits):
        return a[0] + b[0], a[1] + b[1]

    def negate(self, a, bits):
        return -a[0], -a[1]

    def multiply_public(self, a, factor, bits):
        return a[0] * factor, a[1] * factor

    def sum(self, a, dims, keepdim, bits):
        return tuple(c.sum(tuple(dims), keepdim) for c in a) if dims else a

    def xor(self, a, b):
        return a[0] ^ b[0], a[1] ^ b[1]

    def logical_not(self, a):
        return a[0] ^ 1, a[1]

    # ---- dealt
    def multiply(self, a, b, out_bits):
        assert a.share[0].shape == b.share[0].shape
        return self._deal(self.plain.multiply(self._operand(a), self._operand(b), out_bits)[0], out_bits)

    def matmul(self, a, b, out_bits):
        return self._deal(self.plain.matmul(self._operand(a), self._operand(b), out_bits)[0], out_bits)

    def conv2d(self, x, w, window, out_bits):
        x, w = self._operand(x), self._operand(w)
        return self._deal(self.plain.conv2d(x, w, window, out_bits)[0], out_bits)

    def truncate(self, a, bits, shift, promise=NO_PROMISE, nearest=False):
        value = self._kept(self._open(a, bits), promise)
        return self._deal(self.plain.truncate(value, bits, shift, promise, nearest)[0], bits)

    def truncate_reduce(self, a, bits, shift):
        return self._deal(self.plain.truncate(self._open(a, bits), bits, shift)[0], bits - shift)

    def extend(self, a, bits, to_bits, signed=True, promise=NO_PROMISE):
        value = self._kept(self._open(a, bits), promise)
        return self._deal(self.plain.extend(value, bits, to_bits, signed)[0], to_bits)

    def divide_public(self, a, bits, divisor, promise=NO_PROMISE):
        value = self._kept(self._open(a, bits), promise)
        return self._deal(self.plain.divide_public(value, bits, divisor)[0], bits)

    def less_than_zero(self, a, bits):
        return self._deal_bits(self.plain.less_than_zero(self._open(a, bits), bits)[0])

    def equal_zero(self, a, bits):
        return self._deal_bits(self.plain.equal_zero(self._open(a, bits), bits)[0])

    def logical_and(self, a, b):
        return self._deal_bits(self._open_bits(a)[0] & self._open_bits(b)[0])

    def bits_to_ring(self, a, bits):
        return self._deal(self._open_bits(a)[0].long(), bits)

    def select(self, bit, a, bits):
        assert bit[0].shape == a[0].shape
        return self._deal(self.plain.select(self._open_bits(bit), self._open(a, bits), bits)[0], bits)

    def max_last(self, a, bits, one_hot=False):
        value, position = PlainEngine().max_last(self._open(a, bits), bits, one_hot)
        return self._deal(value[0], bits), self._deal_bits(position[0]) if one_hot else None

    def argmax_last(self, a, bits):
        return self._deal(PlainEngine().argmax_last(self._open(a, bits), bits)[0], 64)

    def function(self, name, a, source, target):
        value = self._open(a, source.bits)
        domain = (FUNCTIONS | FORMS)[name]
        allowed = {"all": True, "x > 0": value[0] > 0, "x >= 0": value[0] >= 0, "x <= 0": value[0] <= 0}[domain]
        assert torch.as_tensor(allowed).all(), f"{name} outside its domain"
        return self._deal(self.plain.function(name, value, source, target)[0], target.bits)

    def lookup(self, table, index, in_bits, out_bits):
        return self._deal(self.plain.lookup(table, self._open(index, 64), in_bits, out_bits)[0], out_bits)
