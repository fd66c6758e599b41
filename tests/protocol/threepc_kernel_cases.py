# SPDX-License-Identifier: Apache-2.0
"""One case per kernel: what the CUDA kernels must give bit for bit as the CPU's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from privml import _core
from privml.engines.threepc import kernels_cpu
from privml.engines.threepc.comparison_plan import plan
from privml.engines.threepc.kernels_cuda import CudaKernels

KEY, OTHER = bytes(range(32)), bytes(range(100, 132))
COUNTS = (1, 3, 5, 63, 64, 66, 130, 300)
FIELDS = ((2, 3), (8, 127), (13, 37), (32, 61), (32, 127), (64, 67), (64, 127))
_cpu = _core.threepc

Case = Callable[[CudaKernels, Callable[[np.ndarray], torch.Tensor]], tuple[Any, Any]]


def _words(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-(2**63), 2**63 - 1, count)


def _packed(values: np.ndarray, bits: int) -> np.ndarray:
    return np.packbits((values[:, None] >> np.arange(bits)) & 1, bitorder="little")


def _fills(kernels: CudaKernels, put: Callable[[np.ndarray], torch.Tensor]) -> tuple[Any, Any]:
    got, expected = [], []
    for start in (7, 2**32 - 5, 2**64 - 3):
        for count in (*COUNTS, 1100):
            for bits in (1, 32, 33, 64):
                got.append(kernels.words(KEY, start, (count,), bits))
                expected.append(_cpu.prf_words(KEY, start, count, bits))
                got.append(kernels.deal_words(put(_words(count)), KEY, start, bits))
                expected.append(_cpu.deal_words(_words(count), KEY, start, bits))
            got.append(kernels.bits(KEY, start, (count,)))
            expected.append(_cpu.prf_bits(KEY, start, count))
            for modulus in (1, 32, 37, 61, 67, 126, 127, 128):
                got.append(kernels.numbers(KEY, start, (count,), modulus))
                expected.append(_cpu.prf_field(KEY, start, count, modulus))
    return got, expected


def _wire(kernels: CudaKernels, put: Callable[[np.ndarray], torch.Tensor]) -> tuple[Any, Any]:
    got, expected = [], []
    for count in COUNTS:
        for bits in (1, 7, 8, 13, 32, 37, 63, 64):
            values = _words(count)
            packed = kernels.pack(put(values), bits)
            got += [packed, kernels.unpack(packed, (count,), bits)]
            expected += [_packed(values, bits), values & (2**bits - 1 if bits < 64 else -1)]
        small = (_words(count) & 255).astype(np.uint8)
        packed = kernels.pack(put(small), 1)
        got += [packed, kernels.unpack_bits(packed, (count,))]
        expected += [_packed(small, 1), small & 1]
    return got, expected


def _sign(kernels: CudaKernels, put: Callable[[np.ndarray], torch.Tensor]) -> tuple[Any, Any]:
    got, expected = [], []
    for ell, prime in FIELDS:
        for count in COUNTS:
            m, r = _words(count), _words(count, 1)
            flip, rotation = _cpu.prf_bits(OTHER, 0, count), _cpu.prf_field(OTHER, 16, count, ell)
            dealt = kernels.sign_deal(put(r), KEY, 9, ell, prime)
            mine = put(m), put(flip), put(rotation)
            first = kernels.sign_mask(0, mine, (dealt, None, 0), (OTHER, 2**32 - 8), ell, prime)
            second = kernels.sign_mask(1, mine, (None, KEY, 9), (OTHER, 2**32 - 8), ell, prime)
            got += [dealt, first, second, kernels.sign_open(first, second, (count,), ell, prime)]
            deal = _cpu.sign_deal(r, KEY, 9, ell, prime)
            one = _cpu.sign_mask(0, m, flip, rotation, deal, None, 0, OTHER, 2**32 - 8, ell, prime)
            two = _cpu.sign_mask(1, m, flip, rotation, None, KEY, 9, OTHER, 2**32 - 8, ell, prime)
            expected += [deal, one, two, _cpu.sign_open(one, two, count, ell, prime)]
    return got, expected


def _elements(kernels: CudaKernels, put: Callable[[np.ndarray], torch.Tensor]) -> tuple[Any, Any]:
    got, expected = [], []
    for count in COUNTS:
        w = [_words(count, seed) for seed in range(5)]
        bit = (w[0] & 1).astype(np.uint8)
        t, b = [put(v) for v in w], put(bit)
        for party in (0, 1):
            for bits in (3, 32, 64):
                got.append(kernels.selection_shares(party, b, *t[:4], bits))
                expected.append(_cpu.selection_shares(party, bit, *w[:4], bits))
                got.append(kernels.bit_shares(party, b, t[1], bits))
                expected.append(_cpu.bit_shares(party, bit, w[1], bits))
    return got, expected


def _lookups(kernels: CudaKernels, put: Callable[[np.ndarray], torch.Tensor]) -> tuple[Any, Any]:
    got, expected = [], []
    for size in (1, 8, 64):
        for count in COUNTS:
            tables, m, dealt = _words(3 * size).reshape(3, size), _words(count, 1), _words(count * size, 2)
            for bits in (32, 64):
                got.append(kernels.lookup_shares(put(tables), put(m), put(dealt), bits))
                turned = np.tile(tables[:, ::-1], 2)
                expected.append(_cpu.lookup_shares(np.ascontiguousarray(turned), m, dealt, bits))
    return got, expected


def _comparisons(kernels: CudaKernels, put: Callable[[np.ndarray], torch.Tensor]) -> tuple[Any, Any]:
    """Every step of comparisons from dealt tables, of all plans."""
    got, expected = [], []
    for bits, depth in ((1, 1), (6, 1), (7, 2), (31, 2), (36, 2), (31, 3), (63, 3), (63, 4)):
        chosen = plan(bits, depth)
        for count, several in ((1, 1), (77, 1), (513, 3)):
            size = -(-count // 8)
            r, m = torch.from_numpy(_words(count, 3)), torch.from_numpy(_words(several * count, 4))
            masks = torch.from_numpy(_words(sum(chosen.opened) * several * size, 5).astype(np.uint8))
            for side, to in ((kernels, lambda value: put(value.numpy())), (kernels_cpu, lambda value: value)):
                out = got if side is kernels else expected
                opened = to(masks).view(-1, several, size)[:-1]
                planes = side.planes(to(r).view(1, count), bits + 1)
                dealt = side.deal_comparison(chosen, planes[:, 0], opened)
                out += [planes, dealt]
                # one party has all that was dealt, the other one nothing, as if its parts were zeros
                zeros = torch.zeros_like(masks), to(torch.zeros(dealt.numel(), dtype=torch.uint8))
                given = (to(masks), dealt), (to(zeros[0]), zeros[1])
                both = [side.Comparison(rank, chosen, (several, count), *given[rank]) for rank in (0, 1)]
                messages = [steps.begin(to(m)) for steps in both]
                out += messages
                for _ in chosen.levels:
                    messages = [steps.join(theirs) for steps, theirs in zip(both, messages[::-1], strict=True)]
                    out += messages
                for steps, theirs in zip(both, messages[::-1], strict=True):
                    out += steps.finish(theirs, (several, count))
    return got, expected


def _openings(kernels: CudaKernels, put: Callable[[np.ndarray], torch.Tensor]) -> tuple[Any, Any]:
    got, expected = [], []
    for count in COUNTS:
        for bits in (1, 7, 32, 33, 64):
            values = _words(count)
            for side, to in ((kernels, put), (kernels_cpu, torch.from_numpy)):
                out = got if side is kernels else expected
                dealt = side.deal_packed(to(values), KEY, 7, bits)
                mask, masked, wire = side.mask_words(to(values), KEY, 7, bits)
                out += [dealt, mask, masked, wire, side.add_packed(mask, wire, bits)]
    return got, expected


CASES: dict[str, Case] = {
    "comparisons": _comparisons,
    "fills": _fills,
    "openings": _openings,
    "wire": _wire,
    "sign": _sign,
    "elements": _elements,
    "lookups": _lookups,
}


def assert_equal(got: list[Any], expected: list[Any]) -> None:
    assert len(got) == len(expected)
    for index, (a, b) in enumerate(zip(got, expected, strict=True)):
        mine = a.cpu().numpy() if isinstance(a, torch.Tensor) else a
        assert np.array_equal(mine.reshape(-1), np.asarray(b).reshape(-1)), f"result {index} differs"
