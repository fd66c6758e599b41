# SPDX-License-Identifier: Apache-2.0
"""The semi-honest two-party engine: additive shares, one component per party, protocols of the compiled core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from privml import _core
from privml.engines import ring
from privml.engines.base import Engine, Operand, Share
from privml.engines.correlations import DEFAULT_OT, Correlations, OtChoice
from privml.engines.formulas import Formula
from privml.errors import ConfigError
from privml.float_words import add_words
from privml.formats import FixedPoint, Float, Integer

SHARED = -1
# Every lane is a connection and a thread at each party.
MOST_THREADS = 64
_protocols = _core.twopc


class TwoPartyEngine(Engine):
    """One party's engine on an open ``_core.TwoPartySession`` (or on a meter, which returns zeros).

    Every operation raises PeerDisconnected, ProtocolError or SecurityAbort when the other party fails, and
    ValueError for widths and shapes that do not fit; both parties call the same operations in the same order.
    """

    name = "twopc"
    parties = 2
    components = 1

    def __init__(self, session: _core.TwoPartySession) -> None:
        self.session = session
        self.rank = session.rank
        self.ot, self.lanes = session.ot, session.lanes

    def lane(self, index: int) -> TwoPartyEngine:
        return TwoPartyEngine(self.session.lane(index))

    def twin(self) -> TwoPartyEngine:
        return TwoPartyEngine(self.session.twin())

    def clock(self) -> tuple[float, ...]:
        return tuple(self.session.clock())

    def advance(self, clock: Sequence[float]) -> None:
        self.session.advance(clock)

    # ---- time, of meters alone
    def set_link(self, delay: float, seconds_per_byte: float, seconds_per_correlation: float = 0.0) -> None:
        """Messages take time from here on: one way, of each direction's bytes, and what they carry to be made."""
        self.session.set_link(delay, seconds_per_byte, seconds_per_correlation)

    def compute(self, seconds: float) -> None:
        """Both parties compute for so long."""
        self.session.compute(seconds)

    def elapsed(self) -> float:
        """Seconds that the messages and ``compute`` have taken, until the later party is there."""
        return max(self.session.clock()[-2:])

    def close(self) -> None:
        self.session.close()

    def counters(self) -> dict[str, Any]:
        """Seconds, bytes and depth per phase, and correlations; see ``privml.session.ledger.Snapshot``."""
        return self.session.counters()

    def refresh(self) -> None:
        for index in range(self.lanes):
            lane = self.session.lane(index)
            lane.advance(lane.clock())

    def reserve(self, correlations: Correlations) -> None:
        self.session.reserve_lanes([lane.roles(self.rank) for lane in correlations.lanes])

    # ---- in and out
    def input(self, value: torch.Tensor | None, shape: Sequence[int], owner: int, bits: int) -> Share:
        return (self._mine(value, shape, owner, torch.int64),)

    def input_bits(self, value: torch.Tensor | None, shape: Sequence[int], owner: int) -> Share:
        return (self._mine(value, shape, owner, torch.uint8),)

    def _mine(self, value: torch.Tensor | None, shape: Sequence[int], owner: int, dtype: torch.dtype) -> torch.Tensor:
        if self.rank != owner:
            return torch.zeros(tuple(shape), dtype=dtype)
        if value is None:
            raise ValueError(f"party {owner} owns this input and must pass its value")
        return value.to(dtype).expand(tuple(shape)).clone(memory_format=torch.contiguous_format)

    def public(self, value: torch.Tensor, bits: int) -> Share:
        return (value.clone() if self.rank == 0 else torch.zeros_like(value),)

    def reveal(self, a: Share, bits: int, to: int | None = None) -> torch.Tensor | None:
        return _tensor(_protocols.open_ring(self.session, _array(a), bits, SHARED if to is None else to))

    def reveal_bits(self, a: Share, to: int | None = None) -> torch.Tensor | None:
        return _tensor(_protocols.open_bits(self.session, _array(a), SHARED if to is None else to))

    # ---- linear, local
    def add(self, a: Share, b: Share, bits: int) -> Share:
        return (a[0] + b[0],)

    def negate(self, a: Share, bits: int) -> Share:
        return (-a[0],)

    def subtract(self, a: Share, b: Share, bits: int) -> Share:
        return (a[0] - b[0],)

    def add_public(self, a: Share, value: torch.Tensor | int, bits: int) -> Share:
        return (a[0] + value,) if self.rank == 0 else a

    def multiply_public(self, a: Share, factor: torch.Tensor | int, bits: int) -> Share:
        if isinstance(factor, int):
            factor = ring.word(factor)
        return (a[0] * factor,)

    def sum(self, a: Share, dims: Sequence[int], keepdim: bool, bits: int) -> Share:
        return (a[0].sum(tuple(dims), keepdim),) if dims else a

    # ---- products
    def multiply(self, a: Operand, b: Operand, out_bits: int) -> Share:
        a, b = self._fit(a, out_bits), self._fit(b, out_bits)
        if a.owner is not None and a.owner == b.owner:
            return (self._known(a) * self._known(b),)
        if a.owner is not None and b.owner is not None:
            mine = a if a.owner == self.rank else b
            return self._call(
                "cross_term", a.owner, _array(mine.share), (a.bits, a.signed), (b.bits, b.signed), out_bits
            )
        if a.owner is not None:
            a, b = b, a
        # SiRNN's products need max(m, n) <= ell <= m + n.
        if b.owner is not None:
            width = max(b.bits, out_bits - a.bits)  # a clear value is widened for nothing
            return self._call(
                "multiply_owned",
                b.owner,
                _array(a.share),
                _factor(a),
                self._owned_array(b),
                (width, b.signed),
                out_bits,
            )
        if a.bits + b.bits < out_bits:
            a = self._extended(a, out_bits - b.bits)
        return self._call("multiply", _array(a.share), _factor(a), _array(b.share), _factor(b), out_bits)

    def multiply_rows(self, a: Operand, b: Operand, out_bits: int) -> Share:
        a, b = self._fit(a, out_bits), self._fit(b, out_bits)
        if a.owner is not None or b.owner is not None or not b.nonnegative or not _rows_pay(a.bits, b.bits, out_bits):
            return super().multiply_rows(a, b, out_bits)
        return self._call("multiply_rows", _array(a.share), _factor(a), _array(b.share), b.bits, out_bits)

    def matmul(self, a: Operand, b: Operand, out_bits: int) -> Share:
        x, y = a.share[0], b.share[0]
        if a.owner is not None and a.owner == b.owner:
            return (ring.matmul(self._known(a), self._known(b), out_bits),)
        a, b = self._uniform(a, out_bits), self._uniform(b, out_bits)
        *batch, rows, inner = x.shape
        columns = y.shape[-1]
        if y.shape[-2] != inner or list(y.shape[:-2]) != batch:
            raise ValueError(f"matmul: shapes {tuple(x.shape)} and {tuple(y.shape)} do not fit")
        if not batch:
            return self._call(
                "matmul",
                self._owned_array(a),
                _format(a),
                self._owned_array(b),
                _format(b),
                rows,
                inner,
                columns,
                out_bits,
            )
        # A batch of products is one convolution with a group for each of them.
        count = int(np.prod(batch))
        out = self._call(
            "conv2d",
            self._owned_array(b),
            _format(b),
            self._owned_array(a),
            _format(a),
            [1, count * inner, columns, 1],
            [count * rows, inner, 1, 1],
            [1, 1],
            [0, 0, 0, 0],
            [1, 1],
            count,
            out_bits,
        )
        return (out[0].reshape(*batch, rows, columns),)

    def conv2d(
        self,
        x: Operand,
        w: Operand,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        groups: int,
        out_bits: int,
    ) -> Share:
        if x.owner is not None and x.owner == w.owner:
            return (ring.conv2d(self._known(x), self._known(w), stride, padding, dilation, groups, out_bits),)
        x, w = self._uniform(x, out_bits), self._uniform(w, out_bits)
        (top, left), shapes = padding, (list(x.share[0].shape), list(w.share[0].shape))
        return self._call(
            "conv2d",
            self._owned_array(x),
            _format(x),
            self._owned_array(w),
            _format(w),
            *shapes,
            list(stride),
            [top, top, left, left],
            list(dilation),
            groups,
            out_bits,
        )

    # ---- width and scale
    def truncate(self, a: Share, bits: int, shift: int, nonnegative: bool = False, bound: int | None = None) -> Share:
        if shift == 0:
            return a
        if not nonnegative and bound is not None and 8 * bound <= 3 << bits:  # no comparison finds the sign then
            return self._call("truncate_bounded", _array(a), bits, bound, min(shift, bits - 1))
        name = "truncate_nonnegative" if nonnegative else "truncate_arithmetic"
        return self._call(name, _array(a), bits, min(shift, bits - 1))

    def truncate_reduce(self, a: Share, bits: int, shift: int) -> Share:
        return self._call("truncate_reduce", _array(a), bits, shift) if shift else a

    def extend(
        self,
        a: Share,
        bits: int,
        to_bits: int,
        signed: bool = True,
        nonnegative: bool = False,
        bound: int | None = None,
    ) -> Share:
        if to_bits <= bits:
            return a
        if signed and not nonnegative and bound is not None and 2 * bound < 1 << bits:
            return self._call("extend_bounded", _array(a), bits, bound, to_bits)
        name = "extend_nonnegative" if nonnegative else "sign_extend" if signed else "zero_extend"
        return self._call(name, _array(a), bits, to_bits)

    def reduce(self, a: Share, bits: int, to_bits: int) -> Share:
        return a

    # ---- bits
    def less_than_zero(self, a: Share, bits: int) -> Share:
        return self._call("most_significant_bit", _array(a), bits)

    def equal_zero(self, a: Share, bits: int) -> Share:
        return self._call("equal_zero", _array(a), bits)

    def xor(self, a: Share, b: Share) -> Share:
        return (a[0] ^ b[0],)

    def logical_not(self, a: Share) -> Share:
        return (a[0] ^ 1,) if self.rank == 0 else a

    def logical_and(self, a: Share, b: Share) -> Share:
        return self._call("and_bits", _array(a), _array(b))

    def logical_or(self, a: Share, b: Share) -> Share:
        return self._call("or_bits", _array(a), _array(b))

    def bits_to_ring(self, a: Share, bits: int) -> Share:
        return self._call("bits_to_ring", _array(a), bits)

    def select(self, bit: Share, a: Share, bits: int) -> Share:
        return self._call("multiplex", _array(bit), _array(a), bits)

    def select_rows(self, bits: Share, rows: Operand, out_bits: int) -> Share:
        """Of rows that one party knows: b = b0 xor b1 picks w as b0 w + b1 (1 - 2 b0) w when party 0 knows w, where b1
        is a choice between two vectors; likewise with the parties exchanged. One correlation for each bit."""
        if rows.owner is None:
            return super().select_rows(bits, rows, out_bits)
        owner, mine = rows.owner, bits[0].to(torch.int64)
        value = self._known(rows).unsqueeze(0)
        turned = value * (1 - 2 * mine).unsqueeze(-1) if self.rank == owner else value.expand(mine.shape[0], -1, -1)
        choice = Operand((mine.unsqueeze(1),), 1, 1 - owner, False)
        width = min(rows.bits + 1, out_bits)  # one more: of either sign
        share = self.matmul(choice, Operand((turned,), width, owner), out_bits)[0].squeeze(1)
        return (share + ring.matmul(mine, value[0], out_bits),) if self.rank == owner else (share,)

    # ---- what the core does better than the default compositions
    def relu(self, a: Share, bits: int) -> tuple[Share, Share]:
        value, positive = _protocols.relu(self.session, _array(a), bits)
        return (_tensor(value),), (_tensor(positive),)

    def maximum(self, a: Share, b: Share, bits: int) -> Share:
        return self._call("maximum", _array(a), _array(b), bits)

    def max_last(self, a: Share, bits: int, one_hot: bool = False) -> tuple[Share, Share | None]:
        if not one_hot:
            return self._call("maximum_last", _array(a), bits), None
        value, position = _protocols.maximum_last_one_hot(self.session, _array(a), bits)
        return (_tensor(value),), (_tensor(position),)

    def argmax_last(self, a: Share, bits: int) -> Share:
        needed = a[0].shape[-1].bit_length() + 1
        if bits < needed:
            a, bits = self.extend(a, bits, needed), needed
        index = self._call("argmax_last", _array(a), bits)
        return self.extend(index, bits, 64, nonnegative=True)

    def function(self, name: str, a: Share, source: FixedPoint, target: FixedPoint) -> Share:
        protocol = getattr(_core.fixmath, name)
        return (_tensor(protocol(self.session, _array(a), source.bits, source.scale, target.bits, target.scale)),)

    def formula(self, a: Share, formula: Formula) -> Share:
        x = a[0].numpy()
        bits, guard = formula.result_bits + formula.guard_bits, formula.guard_bits
        total = self._call(
            "addition_formula",
            _array(a),
            (formula.bits, formula.place_bits),
            (formula.value_bits, False),
            (formula.ring_bits, formula.dropped),
            formula.entries(x),
            formula.factors(x),
            formula.factor_formats(),
        )
        half = 1 << (guard - 1) if guard else 0
        return self.truncate_reduce(self.add_public(total, half, bits), bits, guard)

    def lookup(self, table: torch.Tensor, index: Share, in_bits: int, out_bits: int) -> Share:
        return self._call("lookup", _array((table,)), _array(index), in_bits, out_bits)

    # ---- floating point
    def float_operation(self, name: str, fmt: Float, *operands: Share) -> Share:
        return self._words(name, operands, fmt.exponent, fmt.mantissa)

    def float_cast(self, a: Share, fmt: Float, to: Float) -> Share:
        return self._words("cast", [a], fmt.exponent, fmt.mantissa, to.exponent, to.mantissa)

    def float_from_ring(self, a: Share, fmt: FixedPoint | Integer, to: Float) -> Share:
        return self._words("from_fixed", [a], fmt.bits, fmt.scale, to.exponent, to.mantissa)

    def float_to_ring(self, a: Share, fmt: Float, to: FixedPoint | Integer) -> Share:
        return self._words("to_fixed", [a], fmt.exponent, fmt.mantissa, to.bits, to.scale)

    def float_select(self, bit: Share, a: Share, fmt: Float) -> Share:
        return self._words("select", [bit, a], fmt.exponent, fmt.mantissa)

    def float_align(self, a: Share, shifts: Share, fmt: Float, guard: int, bits: int) -> Share:
        return self._words("align", [a, shifts], fmt.exponent, fmt.mantissa, guard, bits)

    def float_from_sum(self, a: Share, exponents: Share, fmt: Float, bits: int, fraction: int) -> Share:
        return self._words("from_sum", [a, exponents], fmt.exponent, fmt.mantissa, bits, fraction)

    def reveal_words(self, a: Share, fmt: Float, to: int | None = None) -> torch.Tensor | None:
        words, places = a[0], torch.arange(fmt.word_bits)
        bits = ((words.unsqueeze(-1) >> places) & 1).to(torch.uint8)
        difference = self.reveal_bits((bits,), to)
        if difference is None:
            return None
        theirs = words ^ (difference.to(torch.int64) << places).sum(-1)
        return add_words(words, theirs, fmt)

    def _words(self, name: str, operands: Sequence[Share], *settings: int) -> Share:
        protocol = getattr(_core.secfloat, name)
        return (_tensor(protocol(self.session, *(_array(a) for a in operands), *settings)),)

    # ---- operands
    def _call(self, name: str, *args: Any) -> Share:
        return (_tensor(getattr(_protocols, name)(self.session, *args)),)

    def _known(self, a: Operand) -> torch.Tensor:
        """The owner's value as a number (zeros at the other party), whatever the bits above its width are."""
        x = a.share[0]
        if a.signed or a.bits == 64:
            return ring.wrap(x, a.bits)
        return x & ((1 << a.bits) - 1)

    def _owned_array(self, a: Operand) -> np.ndarray | None:
        """What this party passes for an operand: nothing when the other one owns it."""
        if a.owner is None:
            return _array(a.share)
        return _array((self._known(a),)) if a.owner == self.rank else None

    def _fit(self, a: Operand, out_bits: int) -> Operand:
        """``a`` with at most ``out_bits`` bits: higher ones do not matter for the product."""
        return a if a.bits <= out_bits else replace(a, bits=out_bits, nonnegative=False)

    def _extended(self, a: Operand, bits: int) -> Operand:
        return replace(a, share=self.extend(a.share, a.bits, bits, a.signed, a.nonnegative), bits=bits)

    def _uniform(self, a: Operand, out_bits: int) -> Operand:
        """Shared operands of bilinear protocols live in the output's ring."""
        a = self._fit(a, out_bits)
        return self._extended(a, out_bits) if a.owner is None and a.bits < out_bits else a


# What a correlation counts where forms of a product are compared, whatever provider makes it (twopc/cross_terms.h).
_CORRELATION_BITS = 32


def _rows_pay(bits: int, row_bits: int, out_bits: int) -> bool:
    """Whether a row's number, whose bits carry whole rows, is cheaper than the shorter factor of each element."""

    def streams(choices: int) -> int:
        return choices * out_bits - choices * (choices - 1) // 2

    shorter = min(bits, row_bits)
    return streams(row_bits) <= streams(shorter) + _CORRELATION_BITS * shorter


def meter(rank: int = 0, ot: OtChoice = DEFAULT_OT, threads: int = 1) -> TwoPartyEngine:
    """An engine that computes on zeros and books what each protocol would cost, exactly, in its session."""
    lanes = checked_threads(threads)
    core = _core.TwoPartySession.meter(rank, ot.provider, ot.k, ot.security, lanes, ot.in_background)
    return TwoPartyEngine(core)


def connected(
    channels: Sequence[_core.Channel], rank: int, ot: OtChoice, threads: int, test_seed: int | None
) -> TwoPartyEngine:
    """An engine on connected channels, as many as ``connections`` says: the lanes', then those of their refills."""
    lanes, refills = list(channels[:threads]), list(channels[threads:])
    choice = (ot.provider, ot.k, ot.security)
    return TwoPartyEngine(_core.TwoPartySession(lanes[0], rank, *choice, test_seed, lanes[1:], refills))


def connections(ot: OtChoice, threads: int) -> int:
    """How many channels a session has."""
    return threads * (2 if ot.in_background else 1)


def checked_threads(threads: int) -> int:
    """A session's number of lanes; ConfigError when it is none."""
    if type(threads) is not int or not 1 <= threads <= MOST_THREADS:
        raise ConfigError(f"threads must be a whole number from 1 to {MOST_THREADS}, got {threads!r}")
    return threads


def _array(share: Share) -> np.ndarray:
    return share[0].detach().contiguous().numpy()


def _tensor(array: np.ndarray | None) -> torch.Tensor | None:
    return None if array is None else torch.from_numpy(array)


def _factor(a: Operand) -> tuple[int, bool, bool]:
    return a.bits, a.signed, a.nonnegative


def _format(a: Operand) -> tuple[int, int, bool]:
    return SHARED if a.owner is None else a.owner, a.bits, a.signed
