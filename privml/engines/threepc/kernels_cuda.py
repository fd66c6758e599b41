# SPDX-License-Identifier: Apache-2.0
"""The kernels of a party on a CUDA device: the functions of ``kernels_cpu`` with the same results, bit for bit.

Shares live in CUDA tensors; what goes on the wire is a uint8 tensor on the device, which ``to_host`` and ``to_device``
carry to and from the host's numpy arrays. The kernels are csrc/threepc/kernels.cu, compiled at first use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import torch

import privml._core as _core
from privml.engines.threepc import comparison_planes
from privml.engines.threepc.comparison_plan import ComparisonPlan
from privml.engines.threepc.cuda_source import CupyLauncher
from privml.engines.threepc.piece_sums import piece_sums

Key = Any  # bytes or a uint8 array of 32 bytes
Dealt = tuple[np.ndarray | None, Key | None, int]

_QUADS = 16
_GROUP = 64
_FILL_BITS = 8192
_FILL_NUMBERS = 1024


class Launcher(Protocol):
    """Runs a kernel of kernels.cu in ``threads`` threads, each with ``shared`` words of shared memory. ``arguments``:
    numpy scalars of the parameters' widths, tensors (their addresses), None (a null pointer)."""

    def launch(self, name: str, threads: int, arguments: Sequence[Any], shared: int = 0) -> None: ...


class CudaKernels:
    """``device``: where tensors live; ``launcher``: who runs the kernels there."""

    words_blocks = staticmethod(_core.threepc.words_blocks)
    bits_blocks = staticmethod(_core.threepc.bits_blocks)
    field_blocks = staticmethod(_core.threepc.field_blocks)
    deal_blocks = staticmethod(_core.threepc.deal_blocks)
    mask_blocks = staticmethod(_core.threepc.mask_blocks)
    deal_bytes = staticmethod(_core.threepc.deal_bytes)
    mask_bytes = staticmethod(_core.threepc.mask_bytes)

    def __init__(
        self,
        device: torch.device | str = "cuda",
        launcher: Launcher | None = None,
        to_host: Callable[[torch.Tensor], np.ndarray] = lambda wire: wire.cpu().numpy(),
        to_device: Callable[[np.ndarray, torch.device], torch.Tensor] = lambda data, device: torch.from_numpy(data).to(
            device
        ),
    ) -> None:
        self.device = torch.device(device)
        self._launcher = launcher or CupyLauncher(self.device)
        self._to_host = to_host
        self._to_device = to_device

    # ---- randomness
    def words(self, key: Key, start: int, shape: Sequence[int], bits: int) -> torch.Tensor:
        """Uniform words below 2^bits, int64."""
        return self._fill_words(key, start, tuple(shape), bits, None)

    def random_bytes(self, key: Key, start: int, count: int) -> torch.Tensor:
        return self.words(key, start, (-(-count // 8),), 64).view(torch.uint8)[:count]

    def deal_words(self, value: torch.Tensor, key: Key, start: int, bits: int) -> torch.Tensor:
        """``value`` minus what ``words`` draws there."""
        return self._fill_words(key, start, tuple(value.shape), bits, value.contiguous())

    def _fill_words(
        self, key: Key, start: int, shape: tuple[int, ...], bits: int, minuend: torch.Tensor | None
    ) -> torch.Tensor:
        _expect(1 <= bits <= 64, "bits must be 1 to 64")
        out = self._empty(shape, torch.int64)
        threads = _parts(out.numel(), 256 if bits <= 32 else 128)
        self._launch(
            "fill_words", threads, *_key(key), np.uint64(start), np.int64(out.numel()), np.int32(bits), minuend, out
        )
        return out

    def bits(self, key: Key, start: int, shape: Sequence[int]) -> torch.Tensor:
        """Uniform bits, uint8."""
        out = self._empty(shape, torch.uint8)
        threads = _parts(out.numel(), _FILL_BITS)
        self._launch("fill_bits", threads, *_key(key), np.uint64(start), np.int64(out.numel()), out)
        return out

    def numbers(self, key: Key, start: int, shape: Sequence[int], modulus: int) -> torch.Tensor:
        """Uniform numbers below ``modulus`` <= 128, uint8."""
        _expect(1 <= modulus <= 128, "the modulus must be 1 to 128")
        out = self._empty(shape, torch.uint8)
        threads = _parts(out.numel(), _FILL_NUMBERS)
        self._launch(
            "fill_field", threads, *_key(key), np.uint64(start), np.int64(out.numel()), np.uint32(modulus), out
        )
        return out

    # ---- what goes before and after a message
    def mask_words(
        self, part: torch.Tensor, key: Key, start: int, bits: int
    ) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
        mask = self.words(key, start, part.shape, bits)
        masked = part + mask
        return mask, masked, self.pack(masked, bits)

    def deal_packed(self, value: torch.Tensor, key: Key, start: int, bits: int) -> np.ndarray:
        return self.pack(self.deal_words(value, key, start, bits), bits)

    def add_packed(self, value: torch.Tensor, data: np.ndarray, bits: int) -> torch.Tensor:
        return value + self.unpack(data, value.shape, bits)

    # ---- the wire
    def pack(self, values: torch.Tensor, bits: int) -> np.ndarray:
        """The low ``bits`` bits of each element (int64 or uint8), without gaps."""
        values = values.contiguous()
        out = self._empty((-(-values.numel() * bits // 8),), torch.uint8)
        name = "pack_bytes" if values.dtype == torch.uint8 else "pack_words"
        count, size = np.int64(values.numel()), np.int64(out.numel())
        self._launch(name, out.numel(), values, count, np.int32(bits), out, size)
        return self._to_host(out)

    def unpack(self, data: np.ndarray, shape: Sequence[int], bits: int) -> torch.Tensor:
        """int64 elements from what ``pack`` wrote."""
        return self._unpack("unpack_words", data, self._empty(shape, torch.int64), bits)

    def unpack_bits(self, data: np.ndarray, shape: Sequence[int]) -> torch.Tensor:
        """uint8 elements 0 and 1 from what ``pack`` wrote."""
        return self._unpack("unpack_bytes", data, self._empty(shape, torch.uint8), 1)

    def _unpack(self, name: str, data: np.ndarray, out: torch.Tensor, bits: int) -> torch.Tensor:
        _expect(data.size == -(-out.numel() * bits // 8), f"{data.size} bytes for {out.numel()} values of {bits} bits")
        self._launch(name, out.numel(), self._wire(data), np.int64(out.numel()), np.int32(bits), out)
        return out

    def to_wire(self, data: torch.Tensor) -> np.ndarray:
        """uint8 elements as the connections take them."""
        return self._to_host(data.contiguous().reshape(-1))

    def from_wire(self, data: np.ndarray) -> torch.Tensor:
        return self._wire(data)

    def planes(self, words: torch.Tensor, bits: int) -> torch.Tensor:
        """The low ``bits`` bits of int64 [rows, n], lowest first: uint8 [bits, rows, ceil(n / 8)], eight elements to a
        byte."""
        rows, count = words.shape
        padded = torch.nn.functional.pad(words, (0, -count % 8)).view(rows, -1, 8)
        places = torch.arange(8, device=words.device)
        return torch.stack([(((padded >> bit) & 1) << places).sum(-1).to(torch.uint8) for bit in range(bits)])

    # ---- comparisons from dealt tables
    def deal_comparison(self, plan: ComparisonPlan, r: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
        return comparison_planes.deal_comparison(plan, r, masks)

    def Comparison(self, *arguments: Any) -> comparison_planes.Comparison:
        return comparison_planes.Comparison(self, *arguments)

    # ---- the sign bit; see csrc/threepc/sign.h
    def sign_deal(self, r: torch.Tensor, key: Key, start: int, ell: int, prime: int) -> np.ndarray:
        """Party 2: the list for party 0."""
        count = r.numel()
        out = self._empty((_core.threepc.deal_bytes(count, ell, prime),), torch.uint8)
        self._launch(
            "deal_sign",
            _parts(count, _GROUP),
            *_field(ell, prime),
            r.contiguous(),
            np.int64(count),
            *_key(key),
            np.uint64(start),
            out,
            shared=8,
        )
        return self._to_host(out)

    def sign_mask(
        self, rank: int, words: Sequence[torch.Tensor], dealt: Dealt, common: tuple[Key, int], ell: int, prime: int
    ) -> np.ndarray:
        """Parties 0 and 1: the list for party 2. ``words``: m, flip and rotation; ``dealt``: party 0's list, party
        1's key and its block."""
        m, flip, rotation = words
        received, deal_key, deal_start = dealt
        count = m.numel()
        out = self._empty((_core.threepc.mask_bytes(count, ell, prime),), torch.uint8)
        _expect(flip.numel() == count and rotation.numel() == count, "m, flip and rotation differ in size")
        _expect(rank == 0 or deal_key is not None, "party 1 needs the key common with the dealer")
        if rank == 0:
            expected = _core.threepc.deal_bytes(count, ell, prime)
            _expect(received is not None and received.size == expected, f"party 0 needs {expected} bytes dealt")
        self._launch(
            "mask_sign",
            _parts(count, _GROUP),
            *_field(ell, prime),
            np.int32(rank),
            m.contiguous(),
            flip.contiguous(),
            rotation.contiguous(),
            np.int64(count),
            self._wire(received) if rank == 0 else None,
            *_key(bytes(32) if rank == 0 else deal_key),
            np.uint64(deal_start),
            *_key(common[0]),
            np.uint64(common[1]),
            out,
            shared=ell + 8,
        )
        return self._to_host(out)

    def sign_open(
        self, first: np.ndarray, second: np.ndarray, shape: Sequence[int], ell: int, prime: int
    ) -> torch.Tensor:
        """Party 2: 1 where the lists of parties 0 and 1 add up to one with a zero, uint8."""
        out = self._empty(shape, torch.uint8)
        expected = _core.threepc.mask_bytes(out.numel(), ell, prime)
        _expect(first.size == second.size == expected, f"the lists must have {expected} bytes")
        count = np.int64(out.numel())
        lists = self._wire(first), self._wire(second)
        self._launch("open_sign", _parts(out.numel(), _GROUP), *_field(ell, prime), *lists, count, out)
        return out

    # ---- elements of the ring; see csrc/threepc/ring.h
    def selection_shares(
        self,
        rank: int,
        m_b: torch.Tensor,
        m_a: torch.Tensor,
        r_a: torch.Tensor,
        r_bit: torch.Tensor,
        r_product: torch.Tensor,
        bits: int,
    ) -> torch.Tensor:
        """This party's share of b * a for the bit b = m_b ^ r_b (``m_b``: uint8)."""
        return self._elements("selection_shares", rank, (m_b, m_a, r_a, r_bit, r_product), bits)

    def bit_shares(self, rank: int, m_b: torch.Tensor, r_bit: torch.Tensor, bits: int) -> torch.Tensor:
        """This party's share in the ring of the bit b = m_b ^ r_b (``m_b``: uint8)."""
        return self._elements("bit_shares", rank, (m_b, r_bit), bits)

    def lookup_shares(self, tables: torch.Tensor, m: torch.Tensor, dealt: torch.Tensor, bits: int) -> torch.Tensor:
        """This party's share of tables[:, (m - r) mod size], [k, *m.shape]; ``dealt``: its share of r's unit vector."""
        kinds, size = tables.shape
        _expect(size >= 1 and size & (size - 1) == 0, "a table has 2^k entries")
        _expect(dealt.numel() == m.numel() * size, "dealt: needs one unit vector per index")
        turned = tables.to(self.device).flip(-1).repeat(1, 2).contiguous()
        out = self._empty((kinds, *m.shape), torch.int64)
        count = np.int64(m.numel())
        operands = turned, np.int64(kinds), np.int32(size), m.contiguous(), dealt.contiguous()
        self._launch("lookup_shares", m.numel(), *operands, count, np.int32(bits), out)
        return out

    def piece_sums(
        self,
        rank: int,
        coefficients: torch.Tensor,
        shifts: tuple[int, int],
        index: torch.Tensor,
        place: torch.Tensor,
        hot: torch.Tensor,
    ) -> torch.Tensor:
        whole = torch.cat([int(rank == 0) - hot.sum(-1, keepdim=True), hot], -1)
        return piece_sums(coefficients.to(self.device), shifts, index, place, whole)

    def _elements(self, name: str, rank: int, operands: Sequence[torch.Tensor], bits: int) -> torch.Tensor:
        count = operands[0].numel()
        _expect(all(o.numel() == count for o in operands), f"{name}: the operands differ in size")
        out = self._empty(operands[0].shape, torch.int64)
        dense = [o.contiguous() for o in operands]
        self._launch(name, count, np.int32(rank), *dense, np.int64(count), np.int32(bits), out)
        return out

    # ---- launching
    def _launch(self, name: str, threads: int, *arguments: Any, shared: int = 0) -> None:
        for argument in arguments:
            if isinstance(argument, torch.Tensor):
                _expect(argument.device.type == self.device.type, f"{name}: a tensor is on {argument.device}")
        if threads > 0:
            self._launcher.launch(name, threads, arguments, shared)

    def _empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(tuple(shape), dtype=dtype, device=self.device)

    def _wire(self, data: np.ndarray) -> torch.Tensor:
        return self._to_device(data, self.device)


def _parts(count: int, each: int) -> int:
    """Threads for ``count`` elements in super-blocks or groups of ``each``, one per quad of them."""
    return math.ceil(count / each) * _QUADS


def _key(key: Key) -> list[np.uint64]:
    words = np.frombuffer(key, np.uint8)
    _expect(words.size == 32, f"a key has 32 bytes, got {words.size}")
    return list(words.view("<u8"))


def _field(ell: int, prime: int) -> tuple[np.int32, np.uint32, np.int32]:
    return np.int32(ell), np.uint32(prime), np.int32((prime - 1).bit_length())


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)
