# SPDX-License-Identifier: Apache-2.0
"""Products with weights that one party knows, in every form: bit for bit those of the plain engine, at the predicted
cost, and with a report of which form it was."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from privml import _core
from privml.engines.base import Operand
from privml.engines.correlations import OtChoice
from privml.engines.plain.engine import PlainEngine
from privml.engines.ring import wrap
from privml.engines.shares import Window
from privml.engines.twopc import backend as twopc
from privml.engines.twopc.convolutions import CONVOLVED, convolution_of
from privml.engines.twopc.convolutions import form_of as convolution_form
from privml.engines.twopc.linear import (
    LATTICE,
    PACKED,
    PREPARED,
    TRANSFERS,
    WIDE,
    ByTransfers,
    Kept,
    Linear,
    Product,
    by_lattice,
    by_packing,
    by_transfers,
    fits,
    form_of,
)
from privml.engines.twopc.wide import candidates, of_weights
from privml.errors import ConfigError
from privml.formats import node

PLAIN = PlainEngine(check_overflow=False)
SOFTSPOKEN = ("softspoken", 4, "semi_honest")
# Of x, of the weights, of the product.
WIDTHS = [(32, 12, 44), (32, 16, 32), (20, 8, 37)]
CONVOLUTIONS = [
    ((2, 3, 6, 5), (4, 3, 3, 2), Window((1, 1), (0, 0), (1, 1), 1)),
    ((1, 4, 7, 7), (4, 2, 3, 3), Window((2, 1), (1, 2), (1, 1), 2)),
    ((2, 2, 8, 6), (2, 2, 2, 3), Window((1, 2), (1, 0), (2, 1), 1)),
]


@pytest.fixture(scope="module")
def engine():
    made = twopc.create(OtChoice("ideal"), deadline=60.0, linear=Linear("lattice"))
    yield made
    made.close()


@pytest.fixture
def rng(request):
    return torch.Generator().manual_seed(len(request.node.name))


def random_ring(rng, shape, bits):
    return wrap(torch.randint(-(2**63), 2**63 - 1, tuple(shape), generator=rng), bits)


def extremes(rng, shape, bits):
    """The largest and the smallest values in any mixture."""
    low = torch.randint(0, 2, tuple(shape), generator=rng)
    return torch.where(low == 1, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def operand(engine, rng, value, bits, owner):
    if owner is not None:
        return Operand(engine.input(value, value.shape, owner, bits), bits, owner)
    mask = random_ring(rng, value.shape, 64)
    return Operand((value - mask, mask), bits, None)


def notes(engine, call):
    """What the call gives, and how its products were made."""
    before = engine.counters()["products"]
    result = call()
    after = engine.counters()["products"]
    return result, {name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)}


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("values", [random_ring, extremes])
@pytest.mark.parametrize("owners", [(None, 0), (None, 1), (0, None), (1, None), (0, 1), (1, 0)], ids=str)
@pytest.mark.parametrize("widths", WIDTHS, ids=str)
def test_products_are_exact(engine, rng, widths, owners, values):
    m, n, ell = widths
    left, right = (n, m) if owners[1] is None else (m, n)
    x, y = values(rng, (5, 7), left), values(rng, (7, 3), right)
    a, b = operand(engine, rng, x, left, owners[0]), operand(engine, rng, y, right, owners[1])
    got, made = notes(engine, lambda: engine.matmul(a, b, ell))
    want = PLAIN.matmul(Operand((x,), left), Operand((y,), right), ell)[0]
    assert torch.equal(engine.reveal(got, ell), want)
    assert list(made) == [LATTICE]


@pytest.mark.parametrize("owners", [(None, 0), (None, 1), (1, 0), (0, 1)], ids=str)
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=lambda c: f"{c[0]}x{c[1]}")
def test_convolutions_are_exact(engine, rng, case, owners):
    x_shape, w_shape, window = case
    x, w = random_ring(rng, x_shape, 32), random_ring(rng, w_shape, 12)
    a, b = operand(engine, rng, x, 32, owners[0]), operand(engine, rng, w, 12, owners[1])
    got, made = notes(engine, lambda: engine.conv2d(a, b, window, 44))
    want = PLAIN.conv2d(Operand((x,), 32), Operand((w,), 12), window, 44)[0]
    assert torch.equal(engine.reveal(got, 44), want)
    assert made == ({CONVOLVED: 1} if owners[0] != 0 else {}), "an image that party 0 knows is not the weights"


@pytest.mark.parametrize("mode", ["ot", "lattice", "auto"])
@pytest.mark.parametrize("owner", [0, 1])
def test_bits_above_the_width_of_a_known_factor_do_not_matter(rng, mode, owner):
    def dirty(shape, bits):
        clean = random_ring(rng, shape, bits)
        return clean, clean + (random_ring(rng, shape, 64) << bits)

    made = twopc.create(OtChoice("ideal"), deadline=60.0, linear=Linear(mode))
    try:
        for rows, inner, columns in ((5, 7, 3), (2, 40, 150), (64, 64, 8)):
            x, (w, words) = random_ring(rng, (rows, inner), 32), dirty((inner, columns), 12)
            got = made.matmul(operand(made, rng, x, 32, None), operand(made, rng, words, 12, owner), 44)
            want = PLAIN.matmul(Operand((x,), 32), Operand((w,), 12), 44)[0]
            assert torch.equal(made.reveal(got, 44), want), (rows, inner, columns)
        x_shape, w_shape, window = CONVOLUTIONS[0]
        (x, pixels), (w, words) = dirty(x_shape, 20), dirty(w_shape, 12)
        got = made.conv2d(operand(made, rng, pixels, 20, 1), operand(made, rng, words, 12, 0), window, 32)
        assert torch.equal(made.reveal(got, 32), PLAIN.conv2d(Operand((x,), 20), Operand((w,), 12), window, 32)[0])
        x, (w, words) = random_ring(rng, (30,), 20), dirty((30,), 12)
        got = made.multiply(operand(made, rng, x, 20, None), operand(made, rng, words, 12, owner), 37)
        assert torch.equal(made.reveal(got, 37), PLAIN.multiply(Operand((x,), 20), Operand((w,), 12), 37)[0])
    finally:
        made.close()


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("stride", [(1, 1), (2, 1)], ids=str)
def test_kernels_of_one_pixel_are_matrices_whose_halves_are_kept(engine, rng, stride):
    """Bit for bit; a further product of the same layer sends less."""
    window = Window(stride, (0, 0), (1, 1), 1)
    x, w = random_ring(rng, (1, 3, 6, 5), 32), random_ring(rng, (4, 3, 1, 1), 12)
    a, b = operand(engine, rng, x, 32, None), operand(engine, rng, w, 12, 0)
    got, made = notes(engine, lambda: engine.conv2d(a, b, window, 32))
    assert torch.equal(engine.reveal(got, 32), PLAIN.conv2d(Operand((x,), 32), Operand((w,), 12), window, 32)[0])
    assert CONVOLVED not in made
    meter, sent = twopc.meter(0, OtChoice("ideal"), linear=Linear("lattice")), []
    for _ in range(2):
        before = meter.counters()["online"]["sent"]
        with node("conv", place="7"):
            meter.conv2d(Operand((torch.zeros_like(x),), 32), Operand((torch.zeros_like(w),), 12, 0), window, 32)
        sent.append(meter.counters()["online"]["sent"] - before)
    assert meter.counters()["products"] == {LATTICE: 2}
    assert sent[1] < sent[0] / 10


@pytest.fixture(scope="module")
def proved():
    made = twopc.create(OtChoice("ideal"), deadline=60.0, linear=Linear("lattice", "proved"))
    yield made
    made.close()


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=lambda c: f"{c[0]}x{c[1]}")
def test_convolutions_whose_noise_is_proved_are_products_of_patches(proved, rng, case):
    x_shape, w_shape, window = case
    x, w = random_ring(rng, x_shape, 32), random_ring(rng, w_shape, 12)
    a, b = operand(proved, rng, x, 32, None), operand(proved, rng, w, 12, 0)
    got, made = notes(proved, lambda: proved.conv2d(a, b, window, 44))
    assert torch.equal(proved.reveal(got, 44), PLAIN.conv2d(Operand((x,), 32), Operand((w,), 12), window, 44)[0])
    assert made == {LATTICE: 1}


def test_a_convolution_is_predicted_as_its_meter_counts(rng):
    """In bytes; a further one with the keys of the first sends less."""
    ot, linear = OtChoice("ideal"), Linear("lattice")
    made, meters = twopc.create(ot, deadline=60.0, linear=linear), [twopc.meter(r, ot, linear=linear) for r in (0, 1)]
    window, sent = Window((1, 1), (1, 1), (1, 1), 1), []
    try:
        for channels in (3, 4):
            x, w = random_ring(rng, (1, channels, 8, 8), 32), random_ring(rng, (40, channels, 3, 3), 12)
            out = made.conv2d(operand(made, rng, x, 32, None), operand(made, rng, w, 12, 0), window, 32)
            assert torch.equal(wrap(sum(out), 32), PLAIN.conv2d(Operand((x,), 32), Operand((w,), 12), window, 32)[0])
            for meter in meters:
                meter.conv2d(Operand((torch.zeros_like(x),), 32), Operand((torch.zeros_like(w),), 12, 0), window, 32)
            sent.append(meters[1].counters()["online"]["sent"])
            for engine, meter in zip(made.engines, meters, strict=True):
                got, want = engine.counters(), meter.counters()
                assert {**got["online"], "seconds": 0} == {**want["online"], "seconds": 0}
                assert got["products"] == want["products"] == {CONVOLVED: len(sent)}
    finally:
        made.close()
    assert sent[0] > 2 * (sent[1] - sent[0])


def test_transfers_make_convolutions_where_they_are_predicted_to_be_faster():
    window = Window((1, 1), (0, 0), (1, 1), 1)
    for shape, form in (((1, 1, 3, 3), TRANSFERS), ((1, 64, 32, 32), CONVOLVED)):
        x, w = torch.zeros(shape, dtype=torch.int64), torch.zeros((shape[1], shape[1], 3, 3), dtype=torch.int64)
        image, kernel = Operand((x,), 32), Operand((w,), 12, 0)
        convolution = convolution_of(image, kernel, window, 32)
        otherwise = ByTransfers("conv2d", (shape, (-1, 32, True)), (tuple(w.shape), (0, 12, True)),
                                (shape, tuple(w.shape), (1, 1), (0, 0, 0, 0), (1, 1), 1, 32))  # fmt: skip
        for link in (LAN, LOOPBACK):
            assert convolution_form(convolution, "a 0", SOFTSPOKEN, link, otherwise).name == form
            prepared = replace(link, prepared=frozenset({"a 0"}))
            assert convolution_form(convolution, "a 0", SOFTSPOKEN, prepared, otherwise).name == PREPARED


def test_a_width_without_parameters_stays_with_transfers_and_is_told(engine, rng):
    inner = (1 << 16) + 1
    x, w = random_ring(rng, (1, inner), 64), random_ring(rng, (inner, 1), 1)
    a, b = operand(engine, rng, x, 64, None), operand(engine, rng, w, 1, 0)
    got, made = notes(engine, lambda: engine.matmul(a, b, 64))
    assert torch.equal(engine.reveal(got, 64), wrap(x @ w, 64))
    assert list(made) == ["ot (no lattice parameters fit 1-bit weights and 64 bits)"]


def test_many_groups_of_patches_stay_with_transfers_and_are_told(engine, proved, rng):
    x, w = random_ring(rng, (1, 9, 4, 4), 32), random_ring(rng, (9, 1, 2, 2), 12)
    window = Window((1, 1), (0, 0), (1, 1), 9)
    for made_by, how in ((engine, CONVOLVED), (proved, "ot (more than 8 groups)")):
        a, b = operand(made_by, rng, x, 32, None), operand(made_by, rng, w, 12, 0)
        got, made = notes(made_by, lambda: made_by.conv2d(a, b, window, 44))  # noqa: B023
        want = PLAIN.conv2d(Operand((x,), 32), Operand((w,), 12), window, 44)[0]
        assert torch.equal(made_by.reveal(got, 44), want) and list(made) == [how]


# A shape whose keys pay at once, and one that only uses them.
FEW_ROWS, FEWER = (2, 40, 150), (1, 30, 12)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("values", [random_ring, extremes])
@pytest.mark.parametrize("owners", [(None, 0), (None, 1), (0, None), (1, None), (0, 1), (1, 0)], ids=str)
@pytest.mark.parametrize("widths", WIDTHS, ids=str)
def test_packed_products_are_exact(engine, rng, widths, owners, values):
    m, n, ell = widths
    left, right = (n, m) if owners[1] is None else (m, n)
    # Numbers of 32 bits are no weights: then those of party 1 are.
    weights_left = left < 32 and (owners[0] == 0 or owners == (1, None))
    for rows, inner, columns in (FEW_ROWS, FEWER):
        if weights_left:
            rows, columns = columns, rows
        x, y = values(rng, (rows, inner), left), values(rng, (inner, columns), right)
        a, b = operand(engine, rng, x, left, owners[0]), operand(engine, rng, y, right, owners[1])
        got, made = notes(engine, lambda: engine.matmul(a, b, ell))  # noqa: B023
        want = PLAIN.matmul(Operand((x,), left), Operand((y,), right), ell)[0]
        assert torch.equal(engine.reveal(got, ell), want)
        assert list(made) == [PACKED]


@pytest.mark.usefixtures("narrow")
def test_products_with_any_weights_of_a_party_share_its_keys(rng):
    """Those of the other party have keys of their own; every number is what the meter says."""
    ot, linear = OtChoice("ideal"), Linear("lattice")
    made, meters = twopc.create(ot, deadline=60.0, linear=linear), [twopc.meter(r, ot, linear=linear) for r in (0, 1)]
    sent = []
    try:
        for shape, owner in ((FEW_ROWS, 0), (FEW_ROWS, 0), (FEWER, 0), (FEW_ROWS, 1), (FEW_ROWS, 1)):
            rows, inner, columns = shape
            x, w = random_ring(rng, (rows, inner), 32), random_ring(rng, (inner, columns), 12)
            kernel = operand(made, rng, w, 12, owner)
            out = made.matmul(operand(made, rng, x, 32, None), kernel, 32)
            for meter in meters:
                meter.matmul(Operand((torch.zeros_like(x),), 32), Operand((torch.zeros_like(w),), 12, owner), 32)
            sent.append([meter.counters()["online"]["sent"] for meter in meters])
            for engine, meter in zip(made.engines, meters, strict=True):
                got, want = engine.counters(), meter.counters()
                assert {**got["online"], "seconds": 0} == {**want["online"], "seconds": 0}
                assert got["products"] == want["products"] == {PACKED: len(sent)}
            assert torch.equal(wrap(sum(out), 32), wrap(x @ w, 32))
    finally:
        made.close()
    spent = np.diff([[0, 0], *sent], axis=0)
    assert spent[0].sum() > spent[1].sum() > spent[2].sum() and spent[3].sum() > spent[4].sum()
    first = 128 + _core.twopc.PackingKeys(0, 3).beginning_bytes
    assert (spent[0] - spent[1]).sum() == (spent[3] - spent[4]).sum() == first


@pytest.mark.parametrize("shape", [(5, 7, 3), (130, 9, 2), FEW_ROWS], ids=str)
@pytest.mark.parametrize("provider", ["ideal", "softspoken"])
def test_the_meter_books_what_crosses_the_wire(rng, shape, provider):
    rows, inner, columns = shape
    ot, linear = OtChoice(provider), Linear("lattice")
    x, w = random_ring(rng, (rows, inner), 32), random_ring(rng, (inner, columns), 12)
    engine = twopc.create(ot, deadline=60.0, linear=linear)
    meter = twopc.meter(0, ot, 1, False, linear)
    zeros = torch.zeros(rows, inner, dtype=torch.int64), torch.zeros(inner, columns, dtype=torch.int64)
    try:
        engine.matmul(operand(engine, rng, x, 32, None), operand(engine, rng, w, 12, 0), 44)
        meter.matmul(Operand((zeros[0],), 32), Operand((zeros[1],), 12, 0), 44)
        got, want = engine.counters(), meter.counters()
        for phase in ("preprocess", "online"):
            assert {**got[phase], "seconds": 0} == {**want[phase], "seconds": 0}
        for name in ("cots_as_sender", "cots_as_receiver", "products"):
            assert got[name] == want[name]
    finally:
        engine.close()


@pytest.mark.parametrize("owners", [(1, 0), (0, 1)], ids=str)
def test_of_two_known_factors_the_one_that_costs_least_is_encrypted(rng, owners):
    ot, linear, shapes = OtChoice("ideal"), LOOPBACK, ((12, 700), (700, 2000))
    bits = torch.randint(0, 2, shapes[0], generator=rng)
    table = random_ring(rng, shapes[1], 12)
    engine, meter = twopc.create(ot, deadline=60.0, linear=linear), twopc.meter(0, ot, 1, False, linear)
    try:
        choice = Operand(engine.input(bits, bits.shape, owners[0], 1), 1, owners[0], False)
        got, made = notes(engine, lambda: engine.matmul(choice, operand(engine, rng, table, 12, owners[1]), 24))
        spent = engine.counters()["online"]
        assert torch.equal(engine.reveal(got, 24), wrap(bits @ table, 24))
        of_choice, of_table = (torch.zeros(shape, dtype=torch.int64) for shape in shapes)
        meter.matmul(Operand((of_choice,), 1, owners[0], False), Operand((of_table,), 12, owners[1]), 24)
        assert {**spent, "seconds": 0} == {**meter.counters()["online"], "seconds": 0}
        # A few columns of bits times ciphertexts that a row of the table fills: the table's owner encrypts.
        turned = Product(2000, 700, 12, 24, owners[0], 1, False, owners[1], 12)
        straight = Product(12, 700, 2000, 24, owners[1], 12, True, owners[0], 1, False)
        prices = [by_lattice(each, ("ideal", 0, "semi_honest"), linear).price for each in (turned, straight)]
        assert made == {LATTICE: 1} and prices[0] < prices[1]
    finally:
        engine.close()


# ---- the choice
def call_of(product):
    shape = product.rows, product.inner, product.columns
    return ByTransfers(
        "matmul", (shape[:2], product.x_format), (shape[1:], product.weight_format), (*shape, product.bits)
    )


def chosen(product, linear, places=("",)):
    return form_of(product, places, SOFTSPOKEN, linear, call_of(product))


def product(rows, inner, columns, bits=44, weight_bits=12):
    return Product(rows, inner, columns, bits, 0, weight_bits, True)


LAN, LOOPBACK = Linear("auto", delay=0.0002, seconds_per_byte=8e-9), Linear("auto", seconds_per_byte=4e-10)


def test_small_products_stay_with_transfers_and_large_ones_do_not():
    for link in (LAN, LOOPBACK):
        assert chosen(product(1, 4, 6), link).name == TRANSFERS
        assert chosen(product(4096, 64, 64), link).name == LATTICE
    gaps, slow = [], Linear("auto", delay=0.04, seconds_per_byte=8e-8)
    for link in (slow, LOOPBACK):
        form = chosen(product(128, 768, 768), link)
        assert form.name == PACKED
        gaps.append(_core.twopc.lattice_packed_choice((128, 768, 768), 12, True, 44, form.keys)["gap"])
    assert gaps[0] > gaps[1], "packing takes time"


SHAPES = [(1, 30, 10), (1, 400, 120), (64, 64, 16), (576, 25, 6), (4096, 16, 4), (5000, 16, 4)]


@pytest.mark.parametrize("bits", [23, 37, 44])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_is_chosen_is_what_is_predicted_to_be_least(shape, bits):
    """The price with linear=auto, bytes of ciphertexts with linear=lattice; of keys that are there nothing is sent."""
    made = product(*shape, bits=bits)
    for link, kept in itertools.product([LAN, LOOPBACK, Linear("lattice")], [Kept(), Kept(True, frozenset({1, 4}))]):
        predicted = {(LATTICE, -1): by_lattice(made, SOFTSPOKEN, link, kept.halves)}
        for kind in range(_core.twopc.switching_sets):
            packed = by_packing(made, kind, SOFTSPOKEN, link, kind in kept.keys)
            if packed is not None:
                predicted[PACKED, kind] = packed
        if link.mode == "auto":
            predicted[TRANSFERS, -1] = by_transfers(call_of(made), SOFTSPOKEN, link)
        least = {name: each.price if link.mode == "auto" else each.bytes for name, each in predicted.items()}
        form = form_of(made, ("",), SOFTSPOKEN, link, call_of(made), kept)
        assert least[form.name, form.keys] == min(least.values())


ONE_ROW = [(768, 768), (768, 2304), (768, 3072), (3072, 768)]


@pytest.mark.parametrize("provider", [SOFTSPOKEN, ("silent", 0, "semi_honest")], ids=str)
@pytest.mark.parametrize("shape", ONE_ROW, ids=str)
def test_no_choice_sends_more_than_a_gigabyte_for_each_second_that_it_saves(shape, provider):
    """On loopback transfers would take less time for products of one row, and send hundreds of times as much."""
    made = product(1, *shape, bits=37)
    others = candidates(of_weights(made, 1, LOOPBACK), provider, LOOPBACK)
    form = form_of(made, ("",), provider, LOOPBACK, call_of(made), further=others)
    assert form.name == WIDE
    (ciphertexts,) = (predicted for other, predicted in others if other.name == WIDE)
    transfers = by_transfers(call_of(made), provider, LOOPBACK)
    assert transfers.bytes > 200 * ciphertexts.bytes
    assert transfers.bytes - ciphertexts.bytes > 1e9 * (ciphertexts.seconds - transfers.seconds)
    assert chosen(product(1, 64, 64), LOOPBACK).name == TRANSFERS, "few bytes, and much less time"


def test_keys_pay_for_several_products_that_are_made_together():
    """Of a convolution in groups, say: only the first one sends keys."""
    made, several = product(8, 20, 8, bits=24), ("", "", "", "", "", "", "", "")
    assert chosen(made, Linear("lattice")).name == LATTICE
    assert chosen(made, Linear("lattice"), several).name == PACKED


def test_noise_that_is_proved_is_never_packed():
    made = product(128, 768, 768)
    assert chosen(made, Linear("lattice")).name == PACKED
    assert chosen(made, Linear("lattice", "proved")).name == LATTICE


def test_predicted_bytes_are_those_of_the_cost_functions():
    made = product(128, 64, 32)
    meter = _core.TwoPartySession.meter(0, "softspoken", 4, "semi_honest", 1, False, True)
    meter.reserve(1 << 20, 1 << 20)  # more than is drawn
    before = meter.counters()
    zeros = np.zeros((128, 64), np.int64), np.zeros((64, 32), np.int64)
    _core.twopc.lattice_matmul(meter, zeros[0], made.x_format, zeros[1], made.weight_format, 128, 64, 32, 44, "tail")
    online = {way: meter.counters()["online"][way] - before["online"][way] for way in ("sent", "received")}
    predicted = by_lattice(made, ("ideal", 0, "semi_honest"), LAN).bytes
    assert sum(online.values()) == predicted


def test_settings_override_the_choice():
    tiny, large = product(1, 4, 6), product(128, 768, 768)
    assert chosen(tiny, Linear("lattice")).name == LATTICE and chosen(large, Linear("ot")).name == TRANSFERS
    assert not fits(product(2, 3, 2, 64, 16), "tail")
    assert chosen(product(0, 3, 2), Linear("lattice")).name == TRANSFERS, "there is nothing to make"


@pytest.mark.parametrize("wrong", [("fast", "tail"), ("auto", "none"), ("ot", "proved")], ids=str)
def test_settings_that_do_not_exist_or_contradict_are_refused(wrong):
    with pytest.raises(ConfigError):
        Linear(*wrong)
    with pytest.raises(ConfigError):
        twopc.Config(*wrong)
