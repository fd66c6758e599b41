# SPDX-License-Identifier: Apache-2.0
"""If, Loop and Scan of ONNX files whose conditions depend on shapes alone: decided when the model is converted."""

import onnxruntime
import pytest
import torch
from onnx import parser

import privml
from privml.errors import InvalidInput, UnsupportedOperator
from privml.graph.onnx.module import OnnxModule

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'

# Rows of another length go another way, through a shape that inference does not know.
BRANCH = (
    HEAD
    + """branch (float[n, k] x) => (float[n, m] y)
<float[1] half = {0.5}, int64[1] one = {1}, int64[1] five = {5}, int64[2] all = {0, -1}>
{
    same = Reshape(x, all)
    sizes = Shape(same)
    length = Gather(sizes, one)
    short = Less(length, five)
    wanted = Squeeze(short)
    y = If(wanted) <
        then_branch = shorter () => (float[n, m] a) { a = Mul(same, half) },
        else_branch = longer () => (float[n, m] b) { b = Relu(same) }
    >
}"""
)

LOOP = (
    HEAD
    + """loop (float[n, k] x) => (float[n, k] y)
<int64 place = {1}, bool yes = {1}, float[1] tenth = {0.1}>
{
    sizes = Shape(x)
    count = Gather(sizes, place)
    y = Loop(count, yes, x) <
        body = step (int64 i, bool on, float[n, k] before) => (bool goes_on, float[n, k] after) {
            goes_on = Identity(on)
            after = Add(before, tenth)
        }
    >
}"""
)

SCAN = (
    HEAD
    + """scan (float[k, n] x) => (float[n] y)
<float[1] zero = {0}, int64[1] first = {0}>
{
    row = Gather(x, first)
    flat = Squeeze(row, first)
    start = Mul(flat, zero)
    y = Scan <num_scan_inputs = 1,
        body = step (float[n] before, float[n] part) => (float[n] after) { after = Add(before, part) }
    > (start, x)
}"""
)

SECRET = (
    HEAD
    + """secret (float[n, k] x) => (float[n, k] y)
<float half = {0.5}>
{
    total = ReduceSum <keepdims = 0> (x)
    large = Greater(total, half)
    y = If(large) <
        then_branch = a () => (float[n, k] b) { b = Relu(x) },
        else_branch = c () => (float[n, k] d) { d = Neg(x) }
    >
}"""
)


def onnx(text):
    return parser.parse_model(text)


def clear(model, x):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, {"x": x.numpy()})[0])


@pytest.mark.parametrize("text, length", [(BRANCH, 4), (BRANCH, 6), (LOOP, 3)])
def test_shapes_decide(text, length):
    torch.manual_seed(0)
    x = torch.randn(8, length)
    model = onnx(text)
    program = privml.convert(model, calibration=x)
    for engine, options in (("plain", {}), ("twopc", {"ot": "ideal"})):
        with privml.local(engine, bits=program.numerics.bits, scale=program.numerics.scale, **options) as session:
            found = privml.reveal(program.run(session, x))
        assert (found - clear(model, x)).abs().max() < 0.02
    assert program.inputs[0].shape[0] is None  # rows still vary


def test_a_scan_of_open_length_takes_that_of_the_examples():
    x = torch.randn(5, 3)
    assert torch.allclose(OnnxModule(onnx(SCAN), examples=[x])(x), x.sum(0), atol=1e-6)


def test_inputs_for_which_it_would_be_decided_otherwise_are_refused():
    module = OnnxModule(onnx(BRANCH), examples=[torch.randn(2, 4)])
    assert torch.equal(module(torch.full((1, 3), -2.0)), torch.full((1, 3), -1.0))
    with pytest.raises(InvalidInput, match="converted for inputs of other sizes: its condition"):
        module(torch.randn(2, 6))


def test_refusals_tell_shapes_from_values():
    with pytest.raises(UnsupportedOperator, match="If .*its condition depends on the values of the model's inputs"):
        privml.convert(onnx(SECRET), calibration=torch.randn(8, 4))
    with pytest.raises(
        UnsupportedOperator, match="depends on sizes of the inputs that the file leaves open.*examples?"
    ):
        OnnxModule(onnx(BRANCH))
    assert torch.equal(OnnxModule(onnx(BRANCH), shapes={"x": [2, 4]})(torch.ones(2, 4)), torch.full((2, 4), 0.5))


def test_a_size_of_minus_one_may_vary():
    model = onnx(HEAD + "open (float[n, 3] x) => (float[n, 3] y) { y = Relu(x) }")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    module = OnnxModule(model)
    assert torch.equal(module(torch.ones(5, 3)), torch.ones(5, 3))
