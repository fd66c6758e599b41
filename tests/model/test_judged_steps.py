# SPDX-License-Identifier: Apache-2.0
"""Formats of a model with state are judged on calls of one session, in which errors of one call enter the next."""

import pytest
import torch
from torch import nn

import privml
from privml.errors import ConfigError


class Slow(nn.Module):
    """A state that forgets slowly: the errors of about twenty calls add up in it."""

    def __init__(self):
        super().__init__()
        self.taken, self.told = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x, h):
        h = h * 0.95 + self.taken(x) * 0.05
        return self.told(h), h


class Cache(nn.Module):
    def forward(self, x, past):
        keys = torch.cat([past, x], 1)
        return torch.softmax(x @ keys.transpose(1, 2), 2) @ keys, keys


def walked(program, count, **settings):
    """Per call of a session the largest error, as a part of the largest output of all."""
    torch.manual_seed(1)
    inputs, h, pairs = [torch.randn(2, 3) for _ in range(count)], torch.zeros(2, 4), []
    model = slow()
    with privml.local(program, **settings) as session, torch.no_grad():
        for x in inputs:
            clear, h = model(x, h)
            pairs.append((session(x), clear))
    largest = max(float(clear.abs().max()) for _, clear in pairs)
    return [float((found - clear).abs().max()) / largest for found, clear in pairs]


def slow():
    torch.manual_seed(0)
    return Slow().eval()


def converted(**settings):
    torch.manual_seed(2)
    data = torch.randn(16, 3), torch.zeros(16, 4)
    return privml.convert(slow(), calibration=data, state={"h": ("h", 1)}, **settings)


def test_the_worst_call_of_a_session_decides():
    program = converted()
    assert len(program.choice.by_step) == 64
    assert max(program.choice.by_step) <= program.choice.error <= program.choice.precision.tolerance
    assert "64 calls of a session" in program.choice.measured
    assert max(walked(program, 64, engine="plain")) <= 2 / 128


def test_errors_that_add_up_are_seen():
    found = converted(numerics={"bits": 32, "scale": 8, "weight_bits": 12, "accept": 1.0}).choice
    assert found.error == max(found.by_step) > 4 * found.by_step[0]
    once = converted(steps=1, numerics={"bits": 32, "scale": 8, "weight_bits": 12, "accept": 1.0}).choice
    assert len(once.by_step) == 1 and once.error < found.error


def test_a_state_that_grows_is_judged_until_it_is_full():
    torch.manual_seed(0)
    data = torch.randn(8, 1, 4), torch.zeros(8, 0, 4)
    program = privml.convert(Cache(), calibration=data, state={"past": ("past", 1, 1, 6)})
    assert len(program.choice.by_step) == 6 and max(program.choice.by_step) <= program.choice.error


@pytest.mark.parametrize("steps", [0, 2.5, True])
def test_steps_are_calls(steps):
    with pytest.raises(ConfigError, match="whole number of calls"):
        converted(steps=steps)


def test_errors_of_other_engines_are_told():
    torch.manual_seed(0)
    module, x = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid()).eval(), torch.rand(16, 4)
    program = privml.convert(module, calibration=x)
    ((engine, error),) = program.choice.elsewhere
    with privml.local(program, engine="plain", like="threepc"), torch.no_grad():
        expected = module(x)
        found = float((program(x) - expected).abs().max() / expected.abs().max())
    assert engine == "threepc" and error == pytest.approx(found, rel=1e-3)
    assert f"on threepc {error:.2%}" in program.choice.measured


def test_without_narrow_rings_weights_stay_wide():
    torch.manual_seed(0)
    module, x = nn.Linear(4, 2).eval(), torch.rand(16, 4)
    wide, narrow = (privml.convert(module, calibration=x, numerics={"narrow": each}) for each in (False, True))
    assert wide.choice.precision.weight_bits == 20 > narrow.choice.precision.weight_bits
