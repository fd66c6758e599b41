# SPDX-License-Identifier: Apache-2.0
"""Formats are judged on masks that no row of the calibration data has."""

import pytest
import torch
from torch import nn

import privml
from privml.errors import PrecisionLost
from privml.graph.export import export
from privml.graph.passes.supposed import suppose


class Formed(nn.Module):
    def __init__(self, form, of_ids=False):
        super().__init__()
        self.form, self.of_ids = form, of_ids

    def forward(self, x, mask):
        return self.form(x, (mask != 0).to(x.dtype) if self.of_ids else mask.to(x.dtype))


FORMS = {
    "reciprocal": lambda x, m: x + 1 / (m + 0.01),
    "factor": lambda x, m: x * (1 / (m + 0.01)),
    "root": lambda x, m: x + (m + 0.01) ** -0.5,
    "power": lambda x, m: x + torch.pow(m + 9 * (1 - m), 2.5),
    "negative power": lambda x, m: x + (m + 0.1) ** -2,
    "whole power": lambda x, m: x + (5 - 4 * m) ** 4,
    "exponential": lambda x, m: x * torch.exp(5 * (1 - m)),
    "exponent": lambda x, m: x * torch.pow(2.0, 6 * (1 - m)),
}


def samples(rows=16):
    x = torch.randn(rows, 4, generator=torch.Generator().manual_seed(0))
    mask = (torch.rand(rows, 4, generator=torch.Generator().manual_seed(1)) < 0.5).to(torch.float32)
    return x, mask


def error(program, module, x, mask):
    with privml.local("plain", bits=program.numerics.bits, scale=program.numerics.scale) as session:
        found = privml.reveal(program.run(session, x, mask))
    expected = module(x, mask)
    return float((found - expected).abs().max() / expected.abs().max())


@pytest.mark.parametrize("seen", [0, 1])
@pytest.mark.parametrize("form", FORMS)
def test_answers_are_within_the_tolerance_whatever_the_mask(form, seen):
    module, (x, mask) = Formed(FORMS[form]), samples()
    program = privml.convert(module, calibration=(x, torch.full_like(mask, seen)))
    assert program.choice.supposed == 16
    assert error(program, module, x, mask) <= 1 / 128


@pytest.mark.parametrize("way", ["secret", "client", "public"])
def test_masks_of_token_ids(way):
    module = Formed(FORMS["reciprocal"], of_ids=True)
    x, mask = samples()
    ids = torch.full_like(mask, 3, dtype=torch.int64)
    program = privml.convert(module, calibration=(x, ids), token_ids=way)
    assert program.choice.supposed == 16
    assert error(program, module, x, ids * mask.long()) <= 1 / 128


@pytest.mark.parametrize("shape", [(1, 4), (3, 4)])
def test_few_rows(shape):
    module, (x, mask) = Formed(FORMS["reciprocal"]), samples(8)
    program = privml.convert(module, calibration=(torch.randn(shape), torch.ones(shape)))
    assert program.choice.supposed >= 4
    assert error(program, module, x, mask) <= 1 / 64


def test_given_formats_that_lose_a_mask_are_refused_and_accepted():
    module, (x, mask) = Formed(FORMS["reciprocal"]), samples()
    data, coarse = (x, torch.ones_like(mask)), {"bits": 32, "scale": 6, "rescue": None}
    with pytest.raises(PrecisionLost, match="rows with other bits in masks that all calibration rows.*'reciprocal'"):
        privml.convert(module, calibration=data, numerics=coarse)
    with pytest.warns(UserWarning, match="rows with other bits in masks"):
        program = privml.convert(module, calibration=data, numerics={**coarse, "accept": 0.9})
    found = error(program, module, x, mask)
    assert found > 1 / 128 and program.choice.error == pytest.approx(found, rel=0.05)
    assert "16 with other masks or states" in program.choice.measured


def test_masks_that_the_data_vary_are_judged_as_they_are():
    module, (x, mask) = Formed(FORMS["reciprocal"]), samples()
    program = privml.convert(module, calibration=(x, mask))
    assert program.choice.supposed == 0 and error(program, module, x, mask) <= 1 / 128


def test_floats_are_judged_too():
    module, (x, mask) = Formed(lambda x, m: x + (4096 - 4095 * m) ** 2), samples()
    for seen in (torch.ones_like(mask), mask):
        with pytest.raises(PrecisionLost):
            privml.convert(module, calibration=(x, seen), numerics={"floating": "float16"})


@pytest.mark.parametrize("shape", [(9, 6), (2, 6), (5, 1, 3, 4), (7, 6, 1)])
def test_supposed_bits_have_both_values_in_every_row(shape):
    module = Formed(lambda x, m: x.sum() + m)
    data = [torch.ones(shape[0], 1), torch.ones(shape)]
    graph = export(module, tuple(data))
    found = suppose(graph, data, {})
    masks = torch.cat([inputs[1] for inputs, _ in found.parts])
    along = 1 if shape[-1] == 1 else -1
    assert found.rows == len(masks) >= 4 and bool((masks.amax(along) == 1).all() & (masks.amin(along) == 0).all())


def test_supposed_bits_of_one_place_alternate():
    data = [torch.ones(6, 3), torch.ones(6)]
    found = suppose(export(Formed(lambda x, m: x.sum(1) * m), tuple(data)), data, {})
    assert [float(bit) for bit in found.parts[0][0][1]] == [0, 1] * 3
