# SPDX-License-Identifier: Apache-2.0
"""Programs that keep state between the calls of a session."""

import copy

import numpy as np
import onnxruntime
import pytest
import recurrent_network as network
import torch
from onnx import helper, numpy_helper

import privml
from privml.errors import ConfigError, CorruptFile, InvalidInput, StateLost
from privml.program import Program

ENGINES = [
    ("plain", {}), ("twopc", {"ot": "ideal"}), ("threepc", {"truncation": "exact"}), ("active", {"truncation": "exact"})
]  # fmt: skip


@pytest.fixture(scope="module")
def program():
    return network.converted()


@pytest.mark.parametrize(("engine", "options"), ENGINES, ids=[name for name, _ in ENGINES])
def test_calls_of_a_session_are_steps(program, engine, options):
    inputs = network.steps(6)
    with privml.local(program, engine=engine, **options) as session:
        answers = [session(x) for x in inputs]
        assert program.held(session).steps == 6
    for answer, expected in zip(answers, network.clear(inputs), strict=True):
        assert (answer - expected).abs().max() < 0.03
    expected = network.plain(program, inputs, engine)
    assert all(torch.equal(a, b) for a, b in zip(answers, expected, strict=True))


def test_every_step_costs_the_same(program):
    spec = privml.SessionSpec.of("threepc")
    costs = [ledger.snapshot() for ledger, _ in program.session_cost([[(2, 4)]] * 4, spec)]
    assert len({(each.online.bytes, each.online.depth, each.preprocess.bytes) for each in costs[1:]}) == 1
    assert "state h" in program.cost([(2, 4)], spec).records


def test_a_session_begins_with_zeros_and_keeps_nothing_for_another(program):
    (x,) = network.steps(1)
    first = []
    for _ in range(2):
        with privml.local(program, engine="twopc", ot="ideal") as session:
            first.append(session(x))
            assert not torch.equal(session(x), first[-1])
    assert torch.equal(*first)


def test_two_programs_of_a_session_have_states_of_their_own(program):
    inputs, other = network.steps(3), network.converted()
    assert other.hash == program.hash
    expected = network.plain(program, inputs)
    with privml.local(program, engine="plain") as session:
        for x, answer in zip(inputs, expected, strict=True):
            assert torch.equal(program(x), answer) and torch.equal(other(x), answer)
        assert session.kept[program._held] is not session.kept[other._held]


def test_the_state_is_wiped_at_the_end(program):
    with privml.local(program, engine="twopc", ot="ideal") as session:
        session(network.steps(1)[0])
        state = program.held(session)
        shares = [c for value in state._values for c in value.share]
        assert state.bytes == sum(8 * c.numel() for c in shares) and any(c.any() for c in shares)
        kept = program.state_bytes([(2, 4)])
        assert 0 < state.bytes <= 2 * kept  # both parties are here
    assert not any(c.any() for c in shares) and state.bytes == 0


@pytest.mark.parametrize(("engine", "options"), ENGINES[1:], ids=[name for name, _ in ENGINES[1:]])
def test_what_a_party_keeps_is_no_more_than_told(program, engine, options):
    with privml.local(program, engine=engine, **options) as session:
        session(network.steps(1)[0])
        assert program.held(session).bytes <= session.parties * program.state_bytes([(2, 4)])


def test_another_batch_is_refused_and_leaves_the_state(program):
    inputs = network.steps(3)
    expected = network.plain(program, inputs)
    with privml.local(program, engine="twopc", ot="ideal") as session:
        assert torch.equal(session(inputs[0]), expected[0])
        with pytest.raises(InvalidInput, match=r"state 'h' has 2 row\(s\), but the input has 3"):
            session(torch.zeros(3, 4))
        for bad in (torch.zeros(2, 5), torch.full((2, 4), float("nan"))):
            with pytest.raises(InvalidInput):
                session(bad)
        with pytest.raises(InvalidInput, match="takes 1 input"):
            session(inputs[1], torch.zeros(2, 5))
        assert [torch.equal(session(x), y) for x, y in zip(inputs[1:], expected[1:], strict=True)] == [True, True]


def test_an_input_that_is_refused_first_settles_no_batch(program):
    with privml.local(program, engine="plain") as session:
        with pytest.raises(InvalidInput):
            session(torch.zeros(3, 7))
        assert session(network.steps(1)[0]).shape == (2, 2)


def test_a_step_that_fails_takes_the_state_with_it(program, monkeypatch):
    import privml.program as module

    inputs = network.steps(2)
    with privml.local(program, engine="plain") as session:
        session(inputs[0])

        def fail(*args):
            raise RuntimeError("for this test")

        with monkeypatch.context() as patch:
            patch.setattr(module, "run_graph", fail)
            with pytest.raises(RuntimeError, match="for this test"):
                session(inputs[1])
        with pytest.raises(StateLost, match="step 2 failed"):
            session(inputs[1])


def test_other_weights_do_not_get_the_state(tmp_path):
    program = network.converted()
    program.save(tmp_path)
    with privml.local(program, engine="plain") as session:
        session(network.steps(1)[0])
        program.load_weights(tmp_path / "weights.safetensors")
        with pytest.raises(StateLost, match="weights"):
            session(network.steps(1)[0])


def test_a_session_that_has_ended_begins_no_other_state(program):
    with privml.local(program, engine="plain") as session:
        session(network.steps(1)[0])
    with pytest.raises(StateLost, match="the session has ended"):
        session(network.steps(1)[0])


def test_a_session_without_a_program_takes_no_call():
    with privml.local("plain") as session, pytest.raises(ConfigError, match="no program"):
        session(torch.zeros(1))


# ---- the file
def test_files_hold_the_state(program, tmp_path):
    program.save(tmp_path)
    loaded = Program.load(tmp_path / "program", tmp_path / "weights.safetensors")
    assert loaded.state == program.state and loaded.hash == program.hash
    assert [spec.name for spec in loaded.inputs] == ["x"] and len(loaded.outputs) == 1
    assert loaded.body["state"] == [{"name": "h", "grows": None, "most": None}]
    without = Program({name: part for name, part in program.body.items() if name != "state"})
    assert without.hash != program.hash and len(without.inputs) == 2


@pytest.mark.parametrize("entries", [
    [], [{"name": "h"}], [{"name": 5, "grows": None, "most": None}], {"name": "h"}, 5,
    [{"name": "h", "grows": None, "most": 5}], [{"name": "h", "grows": 0, "most": None}],
    [{"name": "h", "grows": 1, "most": 5}], [{"name": "h", "grows": 7, "most": 5}],
    [{"name": "h", "grows": None, "most": None}] * 2, [{"name": c, "grows": None, "most": None} for c in "abc"],
], ids=str)  # fmt: skip
def test_bodies_that_are_none(program, entries):
    with pytest.raises(CorruptFile):
        Program({**copy.deepcopy(program.body), "state": entries})


# ---- conversion
@pytest.mark.parametrize(("state", "message"), [
    ({"h": ("g", 1)}, "no input 'g'; there are x, h"), ({"h": ("h", 5)}, r"2 output\(s\)"),
    ({"h": ("h", "y")}, "outputs have no names"), ({"h": "h"}, "is not"), ({"h": ("h",)}, "is not"),
    ({"h": ("h", 1), "g": ("h", 0)}, "two states have the input 'h'"),
], ids=str)  # fmt: skip
def test_declarations_that_fit_no_model(state, message):
    with pytest.raises((ConfigError, InvalidInput), match=message):
        privml.convert(network.network(), (torch.zeros(4, 4), torch.zeros(4, 5)), state=state)


def test_a_model_that_is_nothing_but_state_is_refused():
    with pytest.raises(ConfigError, match="an input and an output besides the state"):
        privml.convert(torch.nn.Linear(4, 4), torch.zeros(4, 4), state={"h": ("input", 0)})


def test_a_state_of_another_shape_is_refused():
    with pytest.raises(InvalidInput, match=r"input 'h' is float32 of shape \(any, 5\), but output 0 is"):
        privml.convert(network.network(), (torch.zeros(4, 4), torch.zeros(4, 5)), state={"h": ("h", 0)})


def test_formats_have_room_for_later_states():
    """Zeros are given; what the state comes to is worked out."""

    class Sum(torch.nn.Module):
        def forward(self, x, total):
            total = 0.75 * total + x
            return 2 * total, total

    x = torch.rand(16, 3)
    program = privml.convert(Sum(), calibration=(x, torch.zeros(16, 3)), state={"total": ("total", 1)})
    with privml.local(program, engine="plain") as session:
        for _ in range(20):
            answer = session(torch.ones(1, 3))
    assert (answer - 8).abs().max() < 0.2


class Leaking(torch.nn.Module):
    def __init__(self, kept):
        super().__init__()
        self.kept = kept

    def forward(self, x, total):
        total = self.kept * total + x
        return 2 * total, total


def leaking(kept):
    x = torch.rand(16, 3, generator=torch.Generator().manual_seed(0))
    return privml.convert(Leaking(kept), calibration=(x, torch.zeros(16, 3)), state={"total": ("total", 1)})


@pytest.mark.parametrize("kept", [1.0, 1.5])
def test_a_state_that_grows_from_step_to_step_is_told(kept):
    with pytest.warns(UserWarning, match="state 'total' grows from step to step"):
        program = leaking(kept)
    assert any("grows from step to step" in note for note in program.notes)


def test_formats_have_room_for_a_state_that_settles_late():
    program = leaking(0.9375)
    assert not program.notes
    with privml.local(program, engine="twopc", ot="ideal") as session:
        for _ in range(60):
            answer = session(torch.ones(1, 3))
    assert (answer - 2 * (1 - 0.9375**60) * 16).abs().max() < 1.0


def test_one_tensor_for_two_inputs_is_two_inputs():
    class Two(torch.nn.Module):
        def forward(self, x, h, c):
            return x + h - 2 * c, h + x, c - x

    zeros = torch.zeros(8, 3)
    state = {"h": ("h", 1), "c": ("c", 2)}
    program = privml.convert(Two(), calibration=(torch.randn(8, 3), zeros, zeros), state=state)
    with privml.local(program, engine="plain") as session:
        answers = [session(torch.ones(1, 3)) for _ in range(3)]
    assert [round(float(answer[0, 0]), 2) for answer in answers] == [1.0, 4.0, 7.0]


def test_state_that_is_the_clients_own(program):
    """A delay line: what the client gave in the call before."""

    class Difference(torch.nn.Module):
        def forward(self, x, before):
            return x - before, x

    program = privml.convert(
        Difference(), calibration=(torch.randn(16, 3), torch.zeros(16, 3)), state={"before": ("before", 1)}
    )
    inputs = [torch.randn(2, 3) for _ in range(3)]
    for engine, options in ENGINES:
        with privml.local(program, engine=engine, **options) as session:
            answers = [session(x) for x in inputs]
        assert (answers[0] - inputs[0]).abs().max() < 0.05
        assert (answers[2] - (inputs[2] - inputs[1])).abs().max() < 0.05


def onnx_gru():
    random = np.random.RandomState(0)

    def weights(name, *shape):
        return numpy_helper.from_array((random.randn(*shape) * 0.4).astype(np.float32), name)

    tensors = [weights("w", 1, 15, 4), weights("r", 1, 15, 5), weights("b", 1, 30), weights("head", 5, 2)]
    tensors += [
        numpy_helper.from_array(np.array([place], np.int64), name) for place, name in enumerate(("zero", "one"))
    ]
    nodes = [
        helper.make_node("Unsqueeze", ["x", "zero"], ["frames"]),
        helper.make_node("GRU", ["frames", "w", "r", "b", "", "state.in"], ["seen", "state.out"], hidden_size=5),
        helper.make_node("Squeeze", ["seen", "one"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "head"], ["scores"]),
        helper.make_node("Squeeze", ["scores", "zero"], ["y"]),
    ]
    inputs = [
        helper.make_tensor_value_info("x", 1, ["n", 4]),
        helper.make_tensor_value_info("state.in", 1, [1, "n", 5]),
    ]
    outputs = [
        helper.make_tensor_value_info("state.out", 1, [1, "n", 5]), helper.make_tensor_value_info("y", 1, ["n", 2])
    ]  # fmt: skip
    graph = helper.make_graph(nodes, "gru", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("given", ["without the state", "with the state"])
def test_an_onnx_model_with_state(given):
    model, inputs = onnx_gru(), network.steps(4, rows=1)
    calibration = {"x": torch.randn(16, 4, generator=torch.Generator().manual_seed(0))}
    if given == "with the state":
        calibration["state.in"] = torch.zeros(1, 16, 5)
    else:
        calibration = calibration["x"]
    program = privml.convert(model, calibration=calibration, state={"state": ("state.in", "state.out")})
    clear = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    state = np.zeros((1, 1, 5), np.float32)
    with privml.local(program, engine="twopc", ot="ideal") as session:
        for x in inputs:
            state, expected = clear.run(None, {"x": x.numpy(), "state.in": state})
            assert np.abs(session(x).numpy() - expected).max() < 0.03
