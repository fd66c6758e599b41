# SPDX-License-Identifier: Apache-2.0
"""ONNX's recurrent layers in all their variants, against onnxruntime."""

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from privml.errors import UnsupportedOperator
from privml.graph.onnx.module import OnnxModule

STEPS, BATCH, INPUT, HIDDEN = 5, 3, 4, 2
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
# operator, attributes, operands beyond x, w, r
VARIANTS = [
    *[(kind, {"direction": way}, "b") for kind in GATES for way in ("forward", "reverse", "bidirectional")],
    *[(kind, {"direction": "bidirectional"}, "b n h") for kind in GATES],
    *[(kind, {"direction": "reverse"}, "n") for kind in GATES],
    *[(kind, {"clip": 0.3}, "b h") for kind in GATES],
    ("GRU", {"linear_before_reset": 1}, "b"),
    ("GRU", {"linear_before_reset": 1, "direction": "bidirectional", "clip": 0.4}, "b n h"),
    ("GRU", {"activations": ["Sigmoid", "Softsign"]}, "b"),
    ("RNN", {"activations": ["Relu"]}, "b h"),
    ("LSTM", {"direction": "bidirectional"}, "b n h c p"),
    ("LSTM", {}, "p"),
    ("LSTM", {"clip": 0.2}, "b h c"),
    ("LSTM", {"input_forget": 1}, "b c"),
    ("LSTM", {"activations": ["Sigmoid", "Softsign", "Tanh"]}, "b c"),
]


def layer(kind, attributes, operands, lengths=(5, 2, 4)):
    """A model of one layer, its outputs those that the operator has."""
    random, directions = np.random.default_rng(3), 2 if attributes.get("direction") == "bidirectional" else 1
    gates = GATES[kind]

    def numbers(*shape):
        return random.normal(size=shape).astype(np.float32)

    known = {
        "b": numbers(directions, 2 * gates * HIDDEN), "n": np.array(lengths, np.int32),
        "h": numbers(directions, BATCH, HIDDEN), "c": numbers(directions, BATCH, HIDDEN),
        "p": numbers(directions, 3 * HIDDEN),
    }  # fmt: skip
    constants = {"w": numbers(directions, gates * HIDDEN, INPUT), "r": numbers(directions, gates * HIDDEN, HIDDEN)}
    constants |= {name: known[name] for name in operands.split()}
    inputs = ["x", "w", "r", *(name if name in constants else "" for name in "bnhcp"[: 5 if kind == "LSTM" else 3])]
    outputs = ["y", "state", "cell"][: 3 if kind == "LSTM" else 2]
    graph = helper.make_graph(
        [helper.make_node(kind, inputs, outputs, hidden_size=HIDDEN, **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (STEPS, BATCH, INPUT))],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=8)


@pytest.mark.parametrize(("kind", "attributes", "operands"), VARIANTS)
def test_variants_are_those_of_onnxruntime(kind, attributes, operands):
    proto = layer(kind, attributes, operands)
    x = np.random.default_rng(8).normal(size=(STEPS, BATCH, INPUT)).astype(np.float32)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    with torch.no_grad():
        results = OnnxModule(proto)(torch.from_numpy(x))
    for result, expected in zip(results, session.run(None, {"x": x}), strict=True):
        torch.testing.assert_close(result, torch.from_numpy(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("lengths", [(5, 6, 1), (-1, 2, 3)])
def test_lengths_beyond_the_sequence_are_refused(lengths):
    with pytest.raises(UnsupportedOperator, match=r"sequence_lens must be in \[0, 5\]"):
        OnnxModule(layer("GRU", {}, "n", lengths))


def test_one_length_for_every_sequence_of_the_batch():
    with pytest.raises(UnsupportedOperator, match="sequence_lens"):
        OnnxModule(layer("LSTM", {}, "n", (5, 5)))


def test_activations_for_every_direction():
    attributes = {"direction": "bidirectional", "activations": ["Sigmoid", "Tanh"]}
    with pytest.raises(UnsupportedOperator, match="activations must name 4 functions, not 2"):
        OnnxModule(layer("GRU", attributes, "b"))
