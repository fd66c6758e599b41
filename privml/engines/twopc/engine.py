# SPDX-License-Identifier: Apache-2.0
"""The semi-honest two-party engine: additive shares, one component per party, protocols of the compiled core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

import privml._core as _core
from privml.engines import ring
from privml.engines.base import Operand, Share
from privml.engines.correlations import Correlations
from privml.engines.formulas import Formula
from privml.engines.owned import SharedEngine
from privml.engines.pads import masked, masked_bits
from privml.engines.shape_tensor import ShapeTensor, zeros
from privml.engines.shares import NO_PROMISE, Promise, Shift, Window
from privml.engines.twopc import products, rows
from privml.engines.twopc.linear import BY_TRANSFERS, Form, Lane, Linear, Places, Record, chunk_factor
from privml.engines.twopc.operands import SHARED, array, call, extension, tensor
from privml.engines.twopc.shared import summed_squares
from privml.formats import FixedPoint, Float, Integer

_protocols = _core.twopc


class TwoPartyEngine(SharedEngine):
    """One party's engine on an open ``_core.TwoPartySession`` (or on a meter, which returns zeros). ``linear``: how it
    makes products with weights that one party knows.

    Every operation raises PeerDisconnected, ProtocolError or SecurityAbort when the other party fails, and
    ValueError for widths and shapes that do not fit; both parties call the same operations in the same order.
    """

    name = "twopc"
    parties = 2
    components = 1

    def __init__(self, session: _core.TwoPartySession, linear: Linear = BY_TRANSFERS) -> None:
        self.session = session
        self.rank = session.rank
        self.transfers, self.lanes, self.counts_only = session.ot, session.lanes, session.counts_only
        self.record = Record(linear, session.lanes)
        self.place = Places()
        self._lane: int | None = None

    @property
    def linear(self) -> Linear:
        return self.record.linear

    @property
    def ot(self) -> tuple:
        return *self.transfers, self.linear

    def lane(self, index: int) -> TwoPartyEngine:
        engine = TwoPartyEngine(self.session.lane(index), self.linear)
        engine.transcript, engine.record, engine._lane = self.transcript, self.record, index
        return engine

    def twin(self) -> TwoPartyEngine:
        return TwoPartyEngine(self.session.twin(), self.linear)

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
        """Seconds, bytes and depth per phase, correlations, and how products with owned weights were made; see
        ``privml.session.ledger.Snapshot``."""
        return {**self.session.counters(), "products": self.record.counts(self._lane)}

    def note(self, form: Form) -> None:
        """A product was made in this form."""
        self.record.note(self._lane or 0, form)
        self.products.computing += form.computing

    @property
    def computing(self) -> float:
        """Seconds that this lane's products are predicted to have computed on ciphertexts, of which messages tell
        nothing; of one core of the machine of ``linear``."""
        return self.products.computing

    @property
    def products(self) -> Lane:
        """What this lane's products have in common."""
        return self.record.lane(self._lane or 0)

    def hold(self, prepared: Mapping[str, Any], linear: Linear) -> None:
        """What was prepared for the next query, by place, and how the products of that are made; nothing is left of an
        earlier one."""
        self.record.prepared, self.record.linear = dict(prepared), linear

    def follow(self, transcript: Any, accounts: Mapping[int, Any]) -> None:
        super().follow(transcript, accounts)
        self.session.set_account(accounts[1 - self.rank])

    def set_tags(self, tags: Sequence[tuple[int, int]]) -> None:
        self.session.set_tag(tags[0][1])

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
            return zeros(shape, dtype, self.counts_only)
        if value is None:
            raise ValueError(f"party {owner} owns this input and must pass its value")
        return value.to(dtype).expand(tuple(shape)).clone(memory_format=torch.contiguous_format)

    def public(self, value: torch.Tensor, bits: int) -> Share:
        if self.counts_only:
            return (ShapeTensor(value.shape, value.dtype),)
        return (value.clone() if self.rank == 0 else torch.zeros_like(value),)

    def reveal(self, a: Share, bits: int, to: int | None = None) -> torch.Tensor | None:
        a = masked(self, a)
        return tensor(self.session, _protocols.open_ring(self.session, array(a), bits, SHARED if to is None else to))

    def reveal_bits(self, a: Share, to: int | None = None) -> torch.Tensor | None:
        a = masked_bits(self, a)
        return tensor(self.session, _protocols.open_bits(self.session, array(a), SHARED if to is None else to))

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
        return products.multiply(self, a, b, out_bits)

    def multiply_rows(self, a: Operand, b: Operand, out_bits: int) -> Share:
        made = rows.multiply_rows(self, a, b, out_bits, False)
        return super().multiply_rows(a, b, out_bits) if made is None else made[0]

    def sum_squares(self, a: Operand, square_bits: int, promise: Promise, out_bits: int) -> Share:
        made = summed_squares(self, a, square_bits, out_bits)
        return super().sum_squares(a, square_bits, promise, out_bits) if made is None else made

    def matmul(self, a: Operand, b: Operand, out_bits: int) -> Share:
        return products.matmul_with_noise(self, a, b, out_bits, False)[0]

    def conv2d(self, x: Operand, w: Operand, window: Window, out_bits: int) -> Share:
        return products.conv2d(self, x, w, window, out_bits)

    @property
    def shifts_products(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset() if self.linear.mode == "ot" else frozenset({"matmul", "multiply_rows"})

    def shifted_product(
        self,
        name: str,
        a: Operand,
        b: Operand,
        bits: int,
        shift: Shift,
        addend: Share | None = None,
        window: Window | None = None,
    ) -> Share:
        made = None
        if bits < 64 and name == "matmul":
            made = products.matmul_with_noise(self, a, b, bits, True)
        elif bits < 64 and name == "multiply_rows":
            made = rows.multiply_rows(self, a, b, bits, True)
        if made is None:
            return super().shifted_product(name, a, b, bits, shift, addend, window)
        product, more = made
        if addend is not None:
            product = (product[0] + (addend[0] << more),)
        nonnegative, bound = shift.promise
        promise = Promise(nonnegative, None if bound is None else bound << more)
        # With e = 0 or 1, floor((2 v + e) / 2^(s + 1)) is floor(v / 2^s), and that of 2 v + e + 2^s rounds v / 2^s. All
        # truncations of this engine are exact and give fresh shares, so that e is gone before anything is opened.
        return self.shifted(product, bits + more, shift._replace(count=shift.count + more, promise=promise))

    # ---- width and scale
    def truncate(self, a: Share, bits: int, shift: int, promise: Promise = NO_PROMISE, nearest: bool = False) -> Share:
        if shift == 0:
            return a
        nonnegative, bound = promise
        if nearest and bound is not None and not nonnegative and bound + (1 << (shift - 1)) > 1 << (bits - 1):
            # The sum with the half would wrap; the quotient does not.
            if bits < 64:
                return self.truncate(self.extend(a, bits, bits + 1, True, promise), bits + 1, shift, promise, True)
            if shift > 1:
                quotient = self.truncate(a, bits, shift - 1, promise)
                return self.truncate(quotient, bits, 1, Promise(bound=1 + (bound >> (shift - 1))), True)
        if not nonnegative and bound is not None and 8 * bound <= 3 << bits:  # no comparison finds the sign then
            name = "round_bounded" if nearest else "truncate_bounded"
            return self._call(name, array(a), bits, bound, min(shift, bits - 1))
        if nonnegative:
            name = "round_nonnegative" if nearest else "truncate_nonnegative"
            return self._call(name, array(a), bits, min(shift, bits - 1))
        if nearest:
            a = self.add_public(a, 1 << (shift - 1), bits)
        return self._call("truncate_arithmetic", array(a), bits, min(shift, bits - 1))

    def truncate_reduce(self, a: Share, bits: int, shift: int) -> Share:
        return self._call("truncate_reduce", array(a), bits, shift) if shift else a

    def extend(self, a: Share, bits: int, to_bits: int, signed: bool = True, promise: Promise = NO_PROMISE) -> Share:
        if to_bits <= bits:
            return a
        name, settings = extension(bits, to_bits, signed, promise)
        return self._call(name, array(a), *settings)

    def reduce(self, a: Share, bits: int, to_bits: int) -> Share:
        return a

    # ---- bits
    def less_than_zero(self, a: Share, bits: int) -> Share:
        return self._call("most_significant_bit", array(a), bits)

    def equal_zero(self, a: Share, bits: int) -> Share:
        return self._call("equal_zero", array(a), bits)

    def xor(self, a: Share, b: Share) -> Share:
        return (a[0] ^ b[0],)

    def logical_not(self, a: Share) -> Share:
        return (a[0] ^ 1,) if self.rank == 0 else a

    def logical_and(self, a: Share, b: Share) -> Share:
        return self._call("and_bits", array(a), array(b))

    def logical_or(self, a: Share, b: Share) -> Share:
        return self._call("or_bits", array(a), array(b))

    def bits_to_ring(self, a: Share, bits: int) -> Share:
        return self._call("bits_to_ring", array(a), bits)

    def select(self, bit: Share, a: Share, bits: int) -> Share:
        return self._call("multiplex", array(bit), array(a), bits)

    def select_rows(self, bits: Share, rows: Operand, out_bits: int) -> Share:
        if rows.owner is None:
            return super().select_rows(bits, rows, out_bits)
        return products.select_owned_rows(self, bits, rows, out_bits)

    # ---- what the core does better than the default compositions
    def relu(self, a: Share, bits: int) -> tuple[Share, Share]:
        value, positive = _protocols.relu(self.session, array(a), bits)
        return (tensor(self.session, value),), (tensor(self.session, positive),)

    def rectified_quotient(self, a: Share, bits: int, shift: int, out_bits: int) -> Share:
        return self._call("truncate_rectified", array(a), bits, shift, out_bits)

    @property
    def rectifies_maxima(self) -> bool:  # type: ignore[override]
        return chunk_factor(self.linear.delay) > 1

    def rectified_maximum(self, a: Share, bits: int, shift: int, out_bits: int) -> Share:
        return self._call("rectified_maximum_last", array(a), bits, shift, out_bits)

    def maximum(self, a: Share, b: Share, bits: int) -> Share:
        return self._call("maximum", array(a), array(b), bits)

    def max_last(self, a: Share, bits: int, one_hot: bool = False) -> tuple[Share, Share | None]:
        if not one_hot:
            return self._call("maximum_last", array(a), bits), None
        value, position = _protocols.maximum_last_one_hot(self.session, array(a), bits)
        return (tensor(self.session, value),), (tensor(self.session, position),)

    def argmax_last(self, a: Share, bits: int) -> Share:
        needed = a[0].shape[-1].bit_length() + 1
        if bits < needed:
            a, bits = self.extend(a, bits, needed), needed
        index = self._call("argmax_last", array(a), bits)
        return self.extend(index, bits, 64, promise=Promise(nonnegative=True))

    def function(self, name: str, a: Share, source: FixedPoint, target: FixedPoint) -> Share:
        protocol = getattr(_core.fixmath, name)
        return (
            tensor(
                self.session, protocol(self.session, array(a), source.bits, source.scale, target.bits, target.scale)
            ),
        )

    def formula(self, a: Share, formula: Formula) -> Share:
        x = array(a)
        bits, guard = formula.result_bits + formula.guard_bits, formula.guard_bits
        total = self._call(
            "addition_formula",
            array(a),
            (formula.bits, formula.place_bits),
            (formula.value_bits, False),
            (formula.ring_bits, formula.dropped),
            *self._terms(formula, x),
            formula.factor_formats(),
        )
        half = 1 << (guard - 1) if guard else 0
        return self.truncate_reduce(self.add_public(total, half, bits), bits, guard)

    def _terms(self, formula: Formula, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.counts_only:
            return formula.no_entries(x.size)
        return formula.entries(x), formula.factors(x)

    def lookup(self, table: torch.Tensor, index: Share, in_bits: int, out_bits: int) -> Share:
        return self._call("lookup", array((table,)), array(index), in_bits, out_bits)

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
        return ring.add_words(words, theirs, fmt)

    def _words(self, name: str, operands: Sequence[Share], *settings: int) -> Share:
        protocol = getattr(_core.secfloat, name)
        return (tensor(self.session, protocol(self.session, *(array(a) for a in operands), *settings)),)

    def _call(self, name: str, *args: Any) -> Share:
        return call(self.session, name, *args)
