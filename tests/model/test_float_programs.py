# SPDX-License-Identifier: Apache-2.0
"""Programs with floats: of all layers, or of some among fixed-point ones."""

import pytest
import torch

import privml
from privml.engines.correlations import OtChoice
from privml.errors import ConfigError
from privml.formats import FixedPoint, Float
from privml.session.session import Settings
from privml.spec import SessionSpec


class Net(torch.nn.Module):
    """Weights of a kind that no single scale of fixed point serves."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 5), torch.nn.Linear(5, 3)
        with torch.no_grad():
            self.first.weight.mul_(torch.tensor([1e-7, 1e-5, 1e-3, 1.0, 10.0]).view(5, 1))
            self.second.weight.mul_(torch.tensor([1e7, 1e5, 1e3, 1.0, 0.1]))
            self.first.bias.zero_()

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    return Net().eval()


@pytest.fixture(scope="module")
def data():
    return torch.randn(8, 6, generator=torch.Generator().manual_seed(2))


@pytest.fixture(scope="module")
def program(model, data):
    return privml.convert(model, calibration=data, numerics={"floating": "float32"})


def outputs(program, data, engine, **settings):
    numerics = program.numerics
    formats = {"bits": numerics.bits, "scale": numerics.scale, "floating": numerics.floating, "dot": numerics.dot}
    with privml.local(engine, **formats, **settings) as session:
        return privml.reveal(program.run(session, data))


def test_every_layer_in_floats(program, model, data):
    assert program.choice.error < 1e-6
    assert {spec.format for spec in (*program.inputs, *program.outputs, *program.weight_specs)} == {Float()}
    value = outputs(program, data[:2], "plain")
    assert torch.allclose(value, model(data[:2]), rtol=1e-5)
    assert torch.equal(outputs(program, data[:2], "twopc", ot="ideal"), value)


def test_a_float_program_survives_its_file(program, data, tmp_path):
    paths = program.save(tmp_path)
    again = privml.load(*paths)
    assert again.hash == program.hash and again.numerics == program.numerics
    assert torch.equal(outputs(again, data, "plain"), outputs(program, data, "plain"))


def test_cost_of_a_float_program_is_what_it_sends(program, data):
    predicted = program.cost([(2, 6)], SessionSpec(ot=OtChoice("ideal")), rank=0).snapshot().online
    with privml.local("twopc", ot="ideal", bits=64, floating="float32") as session:
        program.prepare(session)
        before = session.ledger.snapshot().online
        privml.reveal(program.run(session, data[:2]), to=1)
        after = session.ledger.snapshot().online
    assert (after.sent - before.sent, after.received - before.received) == (predicted.sent, predicted.received)
    assert after.depth - before.depth == predicted.depth > 0


class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = (torch.nn.Linear(6, 6) for _ in range(3))

    def forward(self, x):
        return self.third(torch.relu(self.second(torch.relu(self.first(x)))))


def test_chosen_layers_in_floats(data):
    torch.manual_seed(4)
    model = Plain().eval()
    mixed = privml.convert(
        model,
        calibration=data,
        numerics={"bits": 32, "scale": 14, "weight_bits": 16, "layers": {"second": "float32", "*relu*": "tf32"}},
    )
    kinds = [type(n.meta["format"]) for n in mixed.graph.nodes if n.op == "call_function" and n.meta["secret"]]
    assert kinds == [FixedPoint, Float, Float, Float, FixedPoint]
    assert mixed.choice.error < 2e-3
    value = outputs(mixed, data[:3], "plain")
    assert torch.allclose(value, model(data[:3]), atol=2e-3)
    assert torch.equal(outputs(mixed, data[:3], "twopc", ot="ideal"), value)


def test_wrong_names_are_refused(model, data):
    with pytest.raises(ConfigError, match="there are float32"):
        privml.convert(model, calibration=data, numerics={"floating": "double"})
    with pytest.raises(ConfigError, match="no layer is called 'third'"):
        privml.convert(model, calibration=data, numerics={"layers": {"third": "float32"}})
    with pytest.raises(ConfigError, match="dot must be exact or fused"):
        privml.convert(model, calibration=data, numerics={"floating": "float32", "dot": "quick"})


def test_parties_with_other_floats_disagree():
    described = [
        Settings(SessionSpec(numerics=privml.formats.Numerics(floating=fmt, dot=dot))).hello(0, "party").numerics
        for fmt in (None, Float(), Float(8, 7))
        for dot in ("fused", "exact")
    ]
    assert len(set(described)) == 5  # dot does not matter to fixed point
