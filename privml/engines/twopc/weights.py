# SPDX-License-Identifier: Apache-2.0
"""Products of which one party knows one factor, the weights: by lattice ciphertexts, or with what was prepared.

Of two factors that different parties know, that of party 0 counts as the weights where it is prepared or kept;
elsewhere the one with which the product costs least. A convolution is the product of its patches, which every party
cuts out of its own share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F

import privml._core as _core
from privml.engines.base import Operand
from privml.engines.shape_tensor import ShapeTensor
from privml.engines.shares import Share, Window
from privml.engines.twopc import convolutions, wide
from privml.engines.twopc.linear import (
    LARGEST_KEPT,
    PACKED,
    PREPARED,
    TRANSFERS,
    WIDE,
    ByTransfers,
    Form,
    Kept,
    Linear,
    Predicted,
    Product,
    Wanted,
    at_once,
    fits,
    form_of,
    halves_of,
    kept_bytes,
    multiply,
    pack,
    prepare,
)
from privml.engines.twopc.operands import call, owned_array, tensor
from privml.engines.twopc.wide import candidates, of_weights
from privml.formats import current_node

if TYPE_CHECKING:
    from privml.engines.twopc.engine import TwoPartyEngine

# A session's party that owns the weights of its program.
WEIGHTS_OWNER = 0
# Rows that packed answers have.
MOST_PIXELS = 4096
# A convolution of more groups stays with transfers: each group would be a product of its own.
MOST_GROUPS = 8


def with_weights(
    engine: TwoPartyEngine, a: Operand, b: Operand, out_bits: int, otherwise: ByTransfers, noisy: bool
) -> tuple[Share, int] | None:
    """a [n, k] times b [k, m], of which one party knows one, as ``products.matmul_with_noise`` gives it; None where
    transfers make it, as ``otherwise`` says. Shared factors are of out_bits."""
    place = engine.place.next()
    turned = _left_are_weights(engine, a, b, out_bits, place, otherwise, noisy)
    pair = _turned(a, b) if turned else (a, b)  # the transposed product has the weights on the right
    made = _products(engine, [pair], out_bits, [place], otherwise, noisy)
    if made is None:
        return None
    (out,), more = made
    return ((out[0].t(),) if turned else out), more


def _left_are_weights(
    engine: TwoPartyEngine, a: Operand, b: Operand, out_bits: int, place: str, otherwise: ByTransfers, noisy: bool
) -> bool:
    """Of two factors that different parties know, those of party 0 are the weights where they are prepared or may be,
    or their halves may be kept; elsewhere those with which ciphertexts cost least, for the other factor is encrypted.
    """
    if a.owner is None or b.owner is None:
        return b.owner is None
    first, linear = a.owner == WEIGHTS_OWNER, engine.linear
    choices = {True: product_of(*_turned(a, b), out_bits), False: product_of(a, b, out_bits)}
    fitting = [left for left in (first, not first) if fits(choices[left], linear.noise)]
    ahead = engine.record.wanted is not None or place in linear.prepared
    if linear.mode == "ot" or ahead or len(fitting) < 2 or kept_bytes(choices[first], linear.noise) <= LARGEST_KEPT:
        return fitting[0] if fitting else first

    def weight(left: bool) -> float:
        kept, further = _kept(engine, choices[left], [place], noisy)
        return at_once(choices[left], 1, engine.transfers, linear, otherwise, kept, further)[1].weight(linear)

    return min(fitting, key=weight)


def convolved(
    engine: TwoPartyEngine, x: Operand, w: Operand, window: Window, out_bits: int, otherwise: ByTransfers
) -> Share | None:
    """x [n, c, h, w] with w [o, c / groups, kh, kw] that one party knows, zero padding: whole, or group by group as
    products of patches where that does not serve, or where a kernel of one pixel is a matrix whose halves can be kept;
    None where transfers make it, as ``otherwise`` says."""
    groups = window.groups
    if x.owner == WEIGHTS_OWNER:  # the kernel is the other party's
        return None
    whole = convolutions.convolution_of(x, w, window, out_bits)
    if convolutions.serves(whole, engine.linear) and not _is_matrix(whole):
        return convolutions.convolved(engine, x, w, window, out_bits, otherwise)
    if groups > MOST_GROUPS:
        if engine.linear.mode != "ot":
            engine.note(Form(TRANSFERS, f"more than {MOST_GROUPS} groups"))
        return None
    (count, _, height, width), (outputs, inner, *kernel) = x.share[0].shape, w.share[0].shape
    size = output_size((height, width), kernel, window)
    each, pairs = outputs // groups, []
    for group in range(groups):
        patches = tuple(patches_of(c[:, group * inner : (group + 1) * inner], kernel, size, window) for c in x.share)
        columns = tuple(c[group * each : (group + 1) * each].reshape(each, -1).t() for c in w.share)
        pairs.append((replace(x, share=patches), replace(w, share=columns)))
    made = _products(engine, pairs, out_bits, [engine.place.next() for _ in pairs], otherwise, False)
    if made is None:
        return None
    out = made[0]
    return (torch.cat([part[0].reshape(count, *size, each) for part in out], 3).permute(0, 3, 1, 2),)


def _is_matrix(convolution: convolutions.Convolution) -> bool:
    """Whether each pixel of the result is one pixel times a matrix, for as many as a polynomial has rows for; more
    would leave no form but that without packing."""
    outputs, _, *kernel = convolution.w_shape
    _, padding, _, groups = convolution.window
    pixels = convolution.images * convolution.columns // outputs
    return kernel == [1, 1] and padding == (0, 0) and groups == 1 and pixels <= MOST_PIXELS


def output_size(image: Sequence[int], kernel: Sequence[int], window: Window) -> list[int]:
    """Height and width of a convolution's outputs."""
    sides = zip(image, window.padding, window.dilation, kernel, window.stride, strict=True)
    return [(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, p, d, k, t in sides]


def patches_of(x: torch.Tensor, kernel: list[int], size: list[int], window: Window) -> torch.Tensor:
    """[n * oh * ow, c * kh * kw]: what a kernel meets at each output; zeros around the image."""
    count, channels = x.shape[:2]
    shape = (count * size[0] * size[1], channels * kernel[0] * kernel[1])
    if isinstance(x, ShapeTensor):
        return ShapeTensor(shape, x.dtype)
    (top, left), stride, dilation = window.padding, window.stride, window.dilation
    x = F.pad(x, (left, left, top, top)).contiguous()
    of_image, of_channel, of_row, of_column = x.stride()
    view = x.as_strided(
        (count, *size, channels, *kernel),
        (of_image, of_row * stride[0], of_column * stride[1], of_channel)
        + (of_row * dilation[0], of_column * dilation[1]),
    )
    return view.reshape(shape)


def _products(
    engine: TwoPartyEngine,
    pairs: Sequence[tuple[Operand, Operand]],
    out_bits: int,
    places: Sequence[str],
    otherwise: ByTransfers,
    noisy: bool,
) -> tuple[list[Share], int] | None:
    """The products of all pairs x [n, k], weights [k, m], which are of one shape, each at its place, as
    ``products.matmul_with_noise`` gives them; None where transfers make them."""
    product = product_of(*pairs[0], out_bits)
    if engine.record.wanted is not None and product.owner == WEIGHTS_OWNER:
        engine.record.wanted += [
            Wanted(place, current_node().name, product, otherwise, len(pairs), _clear(engine, weights), noisy)
            for place, (_, weights) in zip(places, pairs, strict=True)
        ]
    kept, further = _kept(engine, product, places, noisy)
    form = form_of(product, places, engine.transfers, engine.linear, otherwise, kept, further)
    engine.note(form)
    if form.name == TRANSFERS:
        return None
    if form.name == WIDE:
        stacked = (_stacked(each) for each in zip(*pairs, strict=True))
        out = wide.multiply(engine, of_weights(product, len(pairs), engine.linear, noisy), *stacked)
        return [(one,) for one in out], int(noisy)
    return [_product(engine, form, product, place, *pair) for place, pair in zip(places, pairs, strict=True)], 0


def _kept(
    engine: TwoPartyEngine, product: Product, places: Sequence[str], noisy: bool
) -> tuple[Kept, list[tuple[Form, Predicted]]]:
    """What the session has kept for such a product at each place, and the further forms of ciphertexts for them."""
    kept = Kept(engine.record.halves.keys() >= set(places), engine.products.kinds(product.owner))
    further = of_weights(product, len(places), engine.linear, noisy)
    return kept, candidates(further, engine.transfers, engine.linear)


def _product(engine: TwoPartyEngine, form: Form, product: Product, place: str, x: Operand, weights: Operand) -> Share:
    """x [n, k] times weights [k, m] in a form of ciphertexts."""
    session, linear = engine.session, engine.linear
    values, kernel = owned_array(x, engine.rank), owned_array(weights, engine.rank)
    if form.name == PREPARED:
        prepared = _shape(product, engine.rank, linear.noise) if session.metering else engine.record.take(place)
        return (tensor(session, multiply(session, prepared, product, values, kernel)),)
    if form.name == PACKED:
        keys = engine.products.packing(product.owner, form.keys)
        return (tensor(session, pack(session, keys, product, values, kernel)),)
    halves = engine.record.halves.get(place)
    if halves is None and _keeps(engine, product, place):
        kept = halves_of(session, product, kernel, place.encode(), linear.noise, engine.products.threads)
        halves = engine.record.halves[place] = kept
        engine.products.halves -= kept_bytes(product, linear.noise)
    if halves is not None:
        return (tensor(session, multiply(session, halves, product, values, kernel)),)
    operands = values, product.x_format, kernel, product.weight_format
    shape = product.rows, product.inner, product.columns, product.bits
    return call(session, "lattice_matmul", *operands, *shape, linear.noise, engine.products.threads)


def _stacked(operands: Sequence[Operand]) -> Operand:
    """One of a batch; nothing is copied of a batch of one."""
    if len(operands) == 1:
        return replace(operands[0], share=tuple(part.unsqueeze(0) for part in operands[0].share))
    return replace(operands[0], share=tuple(map(torch.stack, zip(*(each.share for each in operands), strict=True))))


def _keeps(engine: TwoPartyEngine, product: Product, place: str) -> bool:
    """Whether both parties keep what serves further products with the weights of a place. What party 1 knows is its
    input, another one in each query."""
    room = min(engine.products.halves, LARGEST_KEPT)
    return bool(place) and product.owner == WEIGHTS_OWNER and kept_bytes(product, engine.linear.noise) <= room


def _shape(product: Product, rank: int, noise: str) -> Any:
    """What ``prepare`` gives, of which a meter needs the size alone."""
    meter = _core.TwoPartySession.meter(rank, "ideal", 0, "semi_honest", 1, False, True)
    return prepare(meter, halves_of(meter, product, None, b"", noise), product, None, product.rows)


def stored_bytes(product: Product | convolutions.Convolution, rank: int, noise: str) -> int:
    """What party ``rank`` keeps of a prepared product, sealed."""
    if isinstance(product, convolutions.Convolution):
        return convolutions.size_of(product, rank, Linear("lattice", noise)).sealed_bytes
    return _shape(product, rank, noise).sealed_bytes


def _clear(engine: TwoPartyEngine, weights: Operand) -> np.ndarray | None:
    """Their values, where they are known."""
    return None if isinstance(weights.share[0], ShapeTensor) else owned_array(weights, engine.rank)


def product_of(x: Operand, weights: Operand, out_bits: int) -> Product:
    rows, inner = x.share[0].shape
    assert weights.owner is not None
    return Product(
        rows, inner, weights.share[0].shape[-1], out_bits, weights.owner, weights.bits, weights.signed,
        x.owner, out_bits if x.owner is None else x.bits, x.owner is None or x.signed,
    )  # fmt: skip


def _turned(a: Operand, b: Operand) -> tuple[Operand, Operand]:
    return _transposed(b), _transposed(a)


def _transposed(a: Operand) -> Operand:
    return replace(a, share=tuple(c.t() for c in a.share))
