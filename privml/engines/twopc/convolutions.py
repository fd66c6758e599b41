# SPDX-License-Identifier: Apache-2.0
"""Convolutions with kernels that one party knows, by lattice ciphertexts whose answers are packed: a pixel is uploaded
once, not for each tap that meets it. At once, with keys that serve all packed products of a session, or prepared.

Both parties make the same choice, as in ``linear``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

import privml._core as _core
from privml.engines.base import Operand
from privml.engines.shape_tensor import ShapeTensor
from privml.engines.shares import Share, Window
from privml.engines.twopc.linear import (
    DIGIT,
    NOTHING,
    POLYNOMIAL,
    PREPARED,
    TRANSFERS,
    WORD_PRODUCT,
    ByTransfers,
    Form,
    Kept,
    Linear,
    Predicted,
    Wanted,
    by_transfers,
    computed,
    layout_price,
    new_meter,
    predicted,
)
from privml.engines.twopc.operands import owned_array, tensor
from privml.formats import current_node

if TYPE_CHECKING:
    from privml.engines.twopc.engine import TwoPartyEngine

# The form, as reports name it.
CONVOLVED = "convolved"


@dataclass(frozen=True, slots=True)
class Convolution:
    """x [images, c, h, w] with a kernel ``w_shape`` [o, c / groups, kh, kw] of ``owner``, mod 2^bits; ``x_shape``: one
    image's [c, h, w]; ``x_owner``: the other party if that knows x, else None. For a store an image is a row of a
    product, ``inner`` numbers of x for ``columns`` results."""

    images: int
    x_shape: tuple[int, int, int]
    w_shape: tuple[int, int, int, int]
    window: tuple[tuple[int, int], tuple[int, int], tuple[int, int], int]
    bits: int
    owner: int
    weight_bits: int
    weight_signed: bool
    x_owner: int | None = None
    x_bits: int = 64
    x_signed: bool = True

    @property
    def rows(self) -> int:
        return self.images

    @property
    def inner(self) -> int:
        return int(np.prod(self.x_shape))

    @property
    def columns(self) -> int:
        stride, padding, dilation, _ = self.window
        size = [
            (s + 2 * p - d * (k - 1) - 1) // t + 1
            for s, p, d, k, t in zip(self.x_shape[1:], padding, dilation, self.w_shape[2:], stride, strict=True)
        ]
        return self.w_shape[0] * size[0] * size[1]

    @property
    def x_format(self) -> tuple[int, int, bool]:
        return (-1, self.bits, True) if self.x_owner is None else (self.x_owner, self.x_bits, self.x_signed)

    def core(self, images: int, linear: Linear) -> Any:
        """As the core knows it, of so many images, with the layout for this link."""
        stride, (top, left), dilation, groups = self.window
        kernel = self.owner, self.weight_bits, self.weight_signed
        shapes = (images, *self.x_shape), self.w_shape
        return _core.twopc.Convolution(
            *shapes, stride, (top, top, left, left), dilation, groups, kernel, self.bits
        ).over(layout_price(linear))


def convolution_of(x: Operand, w: Operand, window: Window, out_bits: int) -> Convolution:
    images, *image = x.share[0].shape
    assert w.owner is not None
    place = tuple(window.stride), tuple(window.padding), tuple(window.dilation), window.groups
    return Convolution(
        images, tuple(image), tuple(w.share[0].shape), place, out_bits, w.owner, w.bits, w.signed,
        x.owner, out_bits if x.owner is None else x.bits, x.owner is None or x.signed,
    )  # fmt: skip


def serves(convolution: Convolution, linear: Linear) -> bool:
    """Whether some keys hold the convolution exactly; with the noise that tails bound alone."""
    if linear.mode == "ot" or linear.noise != "tail" or 0 in (convolution.images, convolution.inner):
        return False
    return bool(_kinds(convolution, convolution.images, linear))


@lru_cache(maxsize=1 << 14)
def _choice(convolution: Convolution, images: int, kind: int, linear: Linear) -> dict[str, Any] | None:
    return convolution.core(images, linear).choice(_core.twopc.PackingKeys(convolution.owner, kind))


def _kinds(convolution: Convolution, images: int, linear: Linear) -> list[int]:
    """Of keys that serve it."""
    linear = replace(linear, prepared=frozenset())
    return [kind for kind in range(_core.twopc.switching_sets) if _choice(convolution, images, kind, linear)]


def convolved(
    engine: TwoPartyEngine, x: Operand, w: Operand, window: Window, out_bits: int, otherwise: ByTransfers
) -> Share | None:
    """x with w that one party knows, if ``serves`` says so; None where transfers make it, as ``otherwise``
    says."""
    convolution, place = convolution_of(x, w, window, out_bits), engine.place.next()
    if engine.record.wanted is not None and convolution.owner == 0:
        kernel = None if isinstance(w.share[0], ShapeTensor) else owned_array(w, engine.rank)
        engine.record.wanted.append(Wanted(place, current_node().name, convolution, otherwise, 1, kernel))
    kept = Kept(keys=engine.products.kinds(convolution.owner))
    form = form_of(convolution, place, engine.transfers, engine.linear, otherwise, kept)
    engine.note(form)
    if form.name == TRANSFERS:
        return None
    session, core = engine.session, convolution.core(convolution.images, engine.linear)
    operands = owned_array(x, engine.rank), convolution.x_format, owned_array(w, engine.rank)
    if form.name == PREPARED:
        prepared = size_of(convolution, engine.rank, engine.linear) if session.metering else engine.record.take(place)
        out = _core.twopc.lattice_online_convolution(session, prepared, core, *operands)
    else:
        out = _core.twopc.lattice_convolve(session, keys_of(engine, convolution, form.keys), core, *operands)
    return (tensor(session, out),)


def form_of(
    convolution: Convolution,
    place: str,
    ot: tuple[str, int, str],
    linear: Linear,
    otherwise: ByTransfers,
    kept: Kept = NOTHING,
) -> Form:
    """How it is made at a place, in a session with the transfers ``ot``."""
    if place in linear.prepared:
        return Form(PREPARED, computing=_online_seconds(convolution))
    if linear.mode == "ot":
        return Form(TRANSFERS)
    found = at_once(convolution, ot, linear, kept)
    direct = found[1]
    if linear.mode == "auto" and by_transfers(otherwise, ot, linear).price <= direct.price:
        return Form(TRANSFERS)
    return computed(found)


def at_once(
    convolution: Convolution, ot: tuple[str, int, str], linear: Linear, kept: Kept = NOTHING
) -> tuple[Form, Predicted]:
    """The best keys for it with nothing prepared: of the least price, or of the fewest bytes with linear=lattice."""
    kind, best = best_keys(convolution, convolution.images, ot, linear, kept)
    return Form(CONVOLVED, keys=kind), best


def best_keys(
    convolution: Convolution, images: int, ot: tuple[str, int, str], linear: Linear, kept: Kept = NOTHING
) -> tuple[int, Predicted]:
    """The kind of keys that is best for so many images."""
    linear = replace(linear, prepared=frozenset())
    made = [
        (kind, by_keys(convolution, images, kind, ot, linear, kind in kept.keys))
        for kind in _kinds(convolution, images, linear)
    ]
    return min(made, key=lambda form: form[1].weight(linear))


@lru_cache(maxsize=1 << 14)
def by_keys(
    convolution: Convolution, images: int, kind: int, ot: tuple[str, int, str], linear: Linear, begun: bool
) -> Predicted:
    """What both parties predict with keys of that kind, which are there already if it has ``begun``."""
    choice = _choice(convolution, images, kind, linear)
    assert choice is not None
    meter, core = new_meter(), convolution.core(images, linear)
    keys = _core.twopc.PackingKeys(convolution.owner, kind)
    x = _zeros_of_images(convolution, images)
    kernel = _zeros_of_kernel(convolution, 0)
    if begun:
        _core.twopc.lattice_convolve(new_meter(), keys, core, x, convolution.x_format, kernel)
    _core.twopc.lattice_convolve(meter, keys, core, x, convolution.x_format, kernel)
    computing = choice["word_products"] * WORD_PRODUCT + choice["polynomials"] * POLYNOMIAL + choice["digits"] * DIGIT
    return predicted(meter, ot, linear, computing)


def keys_of(engine: TwoPartyEngine, convolution: Convolution, kind: int) -> Any:
    return engine.products.packing(convolution.owner, kind)


# ---- prepared
def saves(
    convolution: Convolution, otherwise: ByTransfers, queries: int, ot: tuple[str, int, str], linear: Linear
) -> float:
    """By how much the price of a query is lower than with nothing prepared, if so many queries are prepared
    together."""
    direct = min(at_once(convolution, ot, linear)[1].price, by_transfers(otherwise, ot, linear).price)
    return direct - by_preparation(convolution, queries, ot, linear).price


def by_preparation(convolution: Convolution, queries: int, ot: tuple[str, int, str], linear: Linear) -> Predicted:
    """What both parties predict of one query's out of so many that are prepared together."""
    ahead = best_keys(convolution, queries * convolution.images, ot, linear)[1]
    meter, core = new_meter(), convolution.core(convolution.images, linear)
    x = _zeros_of_images(convolution, convolution.images)
    kernel = _zeros_of_kernel(convolution, 0)
    prepared = size_of(convolution, 0, linear)
    _core.twopc.lattice_online_convolution(meter, prepared, core, x, convolution.x_format, kernel, bytes(32))
    online = predicted(meter, ot, linear, _online_seconds(convolution))
    return Predicted(ahead.seconds / queries + online.seconds, ahead.bytes / queries + online.bytes)


def _online_seconds(convolution: Convolution) -> float:
    """Of the owner's work with what was prepared."""
    products = convolution.images * convolution.columns * int(np.prod(convolution.w_shape[1:]))
    return products * WORD_PRODUCT


def pieces_of(engine: TwoPartyEngine, wanted: Wanted, counts: Sequence[int]) -> Iterator[Any]:
    """A ``PreparedProduct`` for each query, one after the other, ``counts`` of them prepared at a time. Only party 0
    has the kernel."""
    session, convolution, kernel = engine.session, wanted.product, wanted.weights
    assert isinstance(convolution, Convolution)
    mine, digest = kernel if session.rank == convolution.owner else None, None
    if session.metering:
        mine, digest = _zeros_of_kernel(convolution, session.rank), bytes(32)
    for count in counts:
        images = count * convolution.images
        kept = Kept(keys=engine.products.kinds(convolution.owner))
        keys = keys_of(engine, convolution, best_keys(convolution, images, engine.transfers, engine.linear, kept)[0])
        core = convolution.core(images, engine.linear)
        made = _core.twopc.lattice_prepare_convolution(session, keys, core, mine, digest)
        for _ in range(count):
            yield made.take(convolution.images)


def size_of(convolution: Convolution, rank: int, linear: Linear) -> Any:
    """What preparing it gives party ``rank``, of which a meter needs the size alone."""
    meter = _core.TwoPartySession.meter(rank, "ideal", 0, "semi_honest", 1, False, True)
    keys = _core.twopc.PackingKeys(convolution.owner, _kinds(convolution, convolution.images, linear)[0])
    kernel = _zeros_of_kernel(convolution, rank)
    core = convolution.core(convolution.images, linear)
    return _core.twopc.lattice_prepare_convolution(meter, keys, core, kernel, bytes(32))


# ---- what parties pass on a meter
def _zeros_of_kernel(convolution: Convolution, rank: int) -> np.ndarray | None:
    return np.zeros(convolution.w_shape, np.int64) if rank == convolution.owner else None


def _zeros_of_images(convolution: Convolution, images: int) -> np.ndarray | None:
    """Party 0's."""
    return None if convolution.x_owner == 1 else np.zeros((images, *convolution.x_shape), np.int64)
