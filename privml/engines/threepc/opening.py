# SPDX-License-Identifier: Apache-2.0
"""Operations that end with one opening: several that need nothing of one another are opened in one message.

Functionality, leakage, assumption: those of each operation (``products``, ``width``, ``lookup``). Cost: the sum of
their bytes, depth 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from privml.engines import ring
from privml.engines.base import Share
from privml.engines.shares import Window
from privml.engines.threepc import products
from privml.engines.threepc.lookup import lookup_begun
from privml.engines.threepc.party import Party
from privml.engines.threepc.products import Opening

# Those whose first two arguments are factors, brought to the ring that the last one says.
BILINEAR = ("multiply", "matmul", "conv2d")
Parts = tuple[torch.Tensor | None, tuple[int, ...]]


def begun(party: Party, name: str, *args: Any) -> Opening:
    """An operation of ``BEGINNINGS`` up to its opening; factors of products are shares in the ring of the product."""
    return BEGINNINGS[name](party, *args)


def product_parts(party: Party, name: str, x: Share, y: Share, window: Window | None, bits: int) -> Parts:
    """Additive parts of a product of ``BILINEAR`` before it is opened, and its shape."""
    return products.bilinear_parts(party, _function(party, name, window, bits), x, y, bits)


def _function(party: Party, name: str, window: Window | None, bits: int) -> products.Bilinear:
    if name == "multiply":
        return torch.mul
    if name == "matmul":
        return torch.matmul if party.metering else partial(ring.matmul, bits=bits)
    assert window is not None
    if party.metering:
        return lambda a, b: torch.nn.functional.conv2d(a.double(), b.double(), None, *window)
    return lambda a, b: ring.conv2d(a, b, window, bits)


def _multiply(party: Party, x: Share, y: Share, bits: int) -> Opening:
    return Opening(*product_parts(party, "multiply", x, y, None, bits), bits)


def _matmul(party: Party, x: Share, y: Share, bits: int) -> Opening:
    return Opening(*product_parts(party, "matmul", x, y, None, bits), bits)


def _conv2d(party: Party, x: Share, w: Share, window: Window, bits: int) -> Opening:
    return Opening(*product_parts(party, "conv2d", x, w, window, bits), bits)


def _inner(party: Party, x: Share, y: Share, bits: int) -> Opening:
    return Opening(*products.bilinear_parts(party, lambda a, b: (a * b).sum(0), x, y, bits), bits)


def _bits_to_ring(party: Party, bit: Share, bits: int) -> Opening:
    return Opening(products.ring_parts(party, bit, bits), bit[0].shape, bits)


def _select(party: Party, bit: Share, a: Share, bits: int) -> Opening:
    return Opening(products.select_parts(party, bit, a, bits), a[1].shape, bits)


def _select_sum(party: Party, bit: Share, a: Share, bits: int) -> Opening:
    part = products.select_parts(party, bit, a, bits)
    return Opening(None if part is None else part.sum(0), a[1].shape[1:], bits)


def _weighted_bits(party: Party, a: Share, weights: torch.Tensor, bits: int) -> Opening:
    part = products.ring_parts(party, a, bits)
    shape = (weights.shape[0], *a[1].shape[1:])
    if part is not None:
        part = ring.matmul(weights, part.reshape(part.shape[0], math.prod(shape[1:]))).view(shape)
    return Opening(part, shape, bits)


# Operation -> what it does before its opening.
BEGINNINGS: dict[str, Callable[..., Opening]] = {
    "multiply": _multiply,
    "matmul": _matmul,
    "conv2d": _conv2d,
    "inner": _inner,
    "bits_to_ring": _bits_to_ring,
    "logical_and": products.and_begun,
    "lookup_many": lookup_begun,
    "select": _select,
    "select_sum": _select_sum,
    "weighted_bits": _weighted_bits,
}
