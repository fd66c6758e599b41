# SPDX-License-Identifier: Apache-2.0
"""Recurrent ONNX models that take their state and give it back, called chunk by chunk."""

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import helper, numpy_helper

import privml

FEATURES, HIDDEN, STEPS = 6, 8, 3


def streaming(kind):
    """``x`` [n, steps, features] and the state [n, hidden] (two for an LSTM) to scores [n, steps, 2] and the state."""
    random = np.random.RandomState(0)
    gates = {"LSTM": 4, "GRU": 3}[kind]
    names = ["h", "c"] if kind == "LSTM" else ["h"]

    def weights(name, *shape):
        return numpy_helper.from_array((random.randn(*shape) * 0.4).astype(np.float32), name)

    tensors = [
        weights("w", 1, gates * HIDDEN, FEATURES), weights("r", 1, gates * HIDDEN, HIDDEN),
        weights("b", 1, 2 * gates * HIDDEN), weights("head", HIDDEN, 2),
        numpy_helper.from_array(np.array([0], np.int64), "first"),
        numpy_helper.from_array(np.array([1], np.int64), "second"),
    ]  # fmt: skip
    nodes = [helper.make_node("Transpose", ["x"], ["by_step"], perm=[1, 0, 2])]
    nodes += [helper.make_node("Unsqueeze", [name, "first"], [f"{name}_before"]) for name in names]
    states = [f"{name}_before" for name in names]
    after = [f"{name}_after" for name in names]
    nodes.append(
        helper.make_node(kind, ["by_step", "w", "r", "b", "", *states], ["seen", *after], hidden_size=HIDDEN)
    )  # fmt: skip
    nodes += [
        helper.make_node("Squeeze", ["seen", "second"], ["one"]),
        helper.make_node("MatMul", ["one", "head"], ["scores"]),
        helper.make_node("Transpose", ["scores"], ["y"], perm=[1, 0, 2]),
    ]
    nodes += [helper.make_node("Squeeze", [f"{name}_after", "first"], [f"{name}_next"]) for name in names]

    def info(name, *shape):
        return helper.make_tensor_value_info(name, 1, shape)

    inputs = [info("x", "n", STEPS, FEATURES), *(info(name, "n", HIDDEN) for name in names)]
    outputs = [info("y", "n", STEPS, 2), *(info(f"{name}_next", "n", HIDDEN) for name in names)]
    graph = helper.make_graph(nodes, "streaming", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), names


@pytest.mark.parametrize("kind", ["LSTM", pytest.param("GRU", marks=pytest.mark.slow)])
def test_chunk_by_chunk(kind):
    model, names = streaming(kind)
    clear = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    torch.manual_seed(0)
    calibration = [torch.randn(16, STEPS, FEATURES), *(torch.tanh(torch.randn(16, HIDDEN)) for _ in names)]
    program = privml.convert(model, calibration=calibration)
    chunks = [torch.randn(2, STEPS, FEATURES) for _ in range(2)]
    answers = {}
    for engine, options in (("plain", {}), ("twopc", {"ot": "ideal"}), ("threepc", {"truncation": "exact"})):
        known, state = [torch.zeros(2, HIDDEN) for _ in names], [torch.zeros(2, HIDDEN) for _ in names]
        with privml.local(engine, bits=program.numerics.bits, scale=program.numerics.scale, **options) as session:
            for x in chunks:
                y, *state = (privml.reveal(r) for r in program.run(session, x, *state))
                feed = dict(zip(["x", *names], (v.numpy() for v in (x, *known)), strict=True))
                expected, *known = (torch.from_numpy(r) for r in clear.run(None, feed))
                assert (y - expected).abs().max() < 0.05 * expected.abs().max()
        answers[engine] = y
    assert torch.equal(answers["plain"], answers["twopc"])
