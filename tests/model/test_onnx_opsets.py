# SPDX-License-Identifier: Apache-2.0
"""Operators as older opsets have them, against onnxruntime: other defaults, attributes that became operands."""

import itertools

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from privml.errors import UnsupportedOperator
from privml.graph.onnx.module import OnnxModule

SCALES = np.array([1, 1, 1.5, 2.5], np.float32)
SHRINK = np.array([1, 1, 0.6, 1.7], np.float32)
IMAGE, ROWS, BLOCK = (1, 2, 6, 8), (3, 4), (2, 3, 4)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def positive(*shape):
    return np.abs(numbers(*shape)) + 0.5


NORM = {"scale": positive(3), "bias": numbers(3), "mean": numbers(3, seed=1), "variance": positive(3)}
CELLS = {
    "GRU": {"w": numbers(1, 6, 3), "r": numbers(1, 6, 2, seed=1)},
    "LSTM": {"w": numbers(1, 8, 3), "r": numbers(1, 8, 2, seed=1), "b": numbers(1, 16, seed=2)},
}
WINDOW = {"kernel_shape": [3, 3], "strides": [2, 2]}

# opset, operator, shape of the input, constant operands, attributes; y is the result, z a second one
CASES = [
    (11, "Softmax", (2, 3, 4, 2), {}, {"axis": 1}),
    (11, "Softmax", BLOCK, {}, {}),
    (11, "LogSoftmax", (2, 3, 4, 2), {}, {"axis": 2}),
    (11, "Hardmax", BLOCK, {}, {"axis": 1}),
    (12, "Hardmax", BLOCK, {}, {"axis": 2}),
    (7, "Upsample", IMAGE, {}, {"scales": [1.0, 1.0, 1.5, 2.5], "mode": "nearest"}),
    (9, "Upsample", IMAGE, {"s": SCALES}, {"mode": "nearest"}),
    (9, "Upsample", IMAGE, {"s": SCALES}, {"mode": "linear"}),
    (10, "Resize", IMAGE, {"s": SHRINK}, {"mode": "nearest"}),
    (10, "Resize", IMAGE, {"s": SHRINK}, {"mode": "linear"}),
    (6, "Clip", ROWS, {}, {"min": -0.5, "max": 0.5}),
    (6, "Clip", ROWS, {}, {"min": -0.5}),
    (11, "Squeeze", (3, 1, 4), {}, {"axes": [1]}),
    (11, "Unsqueeze", ROWS, {}, {"axes": [0, 3]}),
    (11, "ReduceSum", BLOCK, {}, {"axes": [1], "keepdims": 0}),
    (11, "ReduceMax", BLOCK, {}, {"axes": [-1]}),
    (11, "ReduceL2", BLOCK, {}, {"axes": [0]}),
    (1, "Slice", (4, 5), {}, {"axes": [0, 1], "starts": [1, -3], "ends": [3, -1]}),
    (2, "Pad", ROWS, {}, {"pads": [0, 1, 2, 0], "value": 0.3}),
    (2, "Pad", ROWS, {}, {"pads": [0, 1, 2, 0], "mode": "reflect"}),
    (7, "BatchNormalization", BLOCK, NORM, {"spatial": 1}),
    (9, "BatchNormalization", BLOCK, NORM, {"epsilon": 1e-3}),
    (8, "InstanceNormalization", BLOCK, {"scale": positive(3), "bias": numbers(3)}, {}),
    (9, "MeanVarianceNormalization", (2, 3, 4, 5), {}, {}),
    (7, "Dropout", BLOCK, {}, {"ratio": 0.3}),
    (12, "Dropout", ROWS, {"ratio": np.array(0.3, np.float32), "training": np.array(False)}, {}),
    (7, "Gemm", (2, 3), {"w": numbers(4, 3), "c": numbers(4)}, {"alpha": 0.5, "transB": 1}),
    (7, "PRelu", BLOCK, {"slope": numbers(3, 1)}, {}),
    (6, "Sum", ROWS, {"w": numbers(3, 4)}, {}),
    (6, "HardSigmoid", ROWS, {}, {}),
    (12, "Pow", ROWS, {"e": np.array([2.0], np.float32)}, {}),
    (11, "Mod", ROWS, {"w": np.full(4, 0.3, np.float32)}, {"fmod": 1}),
    (7, "AveragePool", IMAGE, {}, {**WINDOW, "pads": [1, 1, 1, 1]}),
    (10, "AveragePool", IMAGE, {}, {**WINDOW, "pads": [1, 1, 1, 1], "ceil_mode": 1, "count_include_pad": 1}),
    (10, "AveragePool", IMAGE, {}, {**WINDOW, "pads": [0, 0, 1, 1], "ceil_mode": 1, "count_include_pad": 1}),
    (10, "AveragePool", IMAGE, {}, {**WINDOW, "pads": [0, 0, 1, 1], "ceil_mode": 1}),
    (10, "MaxPool", IMAGE, {}, {**WINDOW, "pads": [1, 1, 1, 1], "ceil_mode": 1}),
    (8, "MaxPool", IMAGE, {}, {**WINDOW, "auto_pad": "SAME_LOWER"}),
    (12, "MaxPool", (1, 2, 9), {}, {"kernel_shape": [3], "dilations": [2], "strides": [1]}),
    (2, "LpPool", IMAGE, {}, {"kernel_shape": [2, 2], "p": 2}),
    (11, "Conv", (1, 2, 7, 6), {"w": numbers(3, 2, 4, 3)}, {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    (11, "ConvTranspose", (1, 2, 4, 4), {"w": numbers(2, 3, 3, 3)}, {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    (11, "ConvTranspose", (1, 2, 4, 4), {"w": numbers(2, 3, 3, 3)}, {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    (11, "ConvTranspose", (1, 2, 4, 4), {"w": numbers(2, 3, 3, 3)}, {"strides": [2, 2], "output_shape": [9, 8]}),
    (
        11, "ConvTranspose", (1, 2, 4, 4), {"w": numbers(2, 3, 3, 3)},
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
    ),
    (7, "GRU", (4, 2, 3), CELLS["GRU"], {"hidden_size": 2}),
    (7, "LSTM", (4, 2, 3), CELLS["LSTM"], {"hidden_size": 2, "direction": "reverse"}),
    (11, "ArgMax", ROWS, {}, {"axis": 1}),
    (8, "Expand", (3, 1), {"s": np.array([3, 4])}, {}),
    (6, "Tile", (3, 1), {"s": np.array([2, 4])}, {}),
    (9, "Flatten", BLOCK, {}, {"axis": 2}),
    (9, "Scatter", ROWS, {"i": np.array([[1], [0], [3]]), "u": numbers(3, 1)}, {"axis": 1}),
    (11, "Gather", ROWS, {"i": np.array([[0, -1]])}, {"axis": 1}),
    (1, "DepthToSpace", (1, 8, 2, 3), {}, {"blocksize": 2}),
    (11, "DepthToSpace", (1, 8, 2, 3), {}, {"blocksize": 2, "mode": "CRD"}),
    (11, "CumSum", ROWS, {"a": np.array(1)}, {"reverse": 1, "exclusive": 1}),
    (8, "LRN", (2, 5, 3, 3), {}, {"size": 3, "alpha": 0.1, "beta": 0.5, "bias": 1.0}),
    (10, "ThresholdedRelu", ROWS, {}, {"alpha": 0.3}),
    (13, "LpNormalization", ROWS, {}, {"axis": 1, "p": 1}),
]  # fmt: skip


def model(opset, operator, shape, constants, attributes):
    element = TensorProto.INT64 if operator == "ArgMax" else TensorProto.FLOAT
    inputs = ["x", *("" if name == "_" else name for name in constants)]
    graph = helper.make_graph(
        [helper.make_node(operator, inputs, ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", element, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items() if name != "_"],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def check(proto, shape):
    x = numbers(*shape, seed=7)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x})
    with torch.no_grad():
        torch.testing.assert_close(
            OnnxModule(proto)(torch.from_numpy(x)), torch.from_numpy(expected), atol=1e-5, rtol=1e-4
        )


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[1]}-{c[0]}")
def test_older_opsets(case):
    check(model(*case), case[2])


COORDINATES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"]
FACTORS = [[1, 1, 0.6, 1.7], [1, 1, 2, 3], [1, 1, 0.5, 0.25]]


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize(mode, coordinates):
    rounding = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"] if mode == "nearest" else ["floor"]
    compared = 0
    for factors, nearest in itertools.product(FACTORS, rounding):
        attributes = {"mode": mode, "coordinate_transformation_mode": coordinates, "nearest_mode": nearest}
        proto = model(
            11, "Resize", IMAGE, {"roi": np.zeros(0, np.float32), "s": np.array(factors, np.float32)}, attributes
        )
        if coordinates == "align_corners" and factors[2] == 0.6:
            with pytest.raises(UnsupportedOperator, match="no whole size"):
                OnnxModule(proto)
            continue
        check(proto, IMAGE)
        compared += 1
    assert compared


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("factors", FACTORS)
def test_resize_with_antialiasing(mode, factors):
    attributes = {"mode": mode, "antialias": 1, "exclude_outside": int(mode == "cubic")}
    check(model(18, "Resize", IMAGE, {"_": None, "s": np.array(factors, np.float32)}, attributes), IMAGE)


def test_group_normalization_with_a_weight_per_group():
    """As opset 18 had it; onnxruntime and the checker no longer know it."""
    x, scale, bias = numbers(2, 4, 3), np.array([2.0, 3.0], np.float32), np.array([0.1, 0.2], np.float32)
    proto = model(18, "GroupNormalization", x.shape, {"scale": scale, "bias": bias}, {"num_groups": 2})
    expected = torch.nn.functional.group_norm(
        torch.from_numpy(x), 2, torch.from_numpy(scale.repeat(2)), torch.from_numpy(bias.repeat(2))
    )
    with torch.no_grad():
        torch.testing.assert_close(OnnxModule(proto)(torch.from_numpy(x)), expected)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ((6, "PRelu", (2, 3, 4, 4), {"slope": numbers(3)}, {}), "PRelu before opset 7"),
        ((7, "BatchNormalization", BLOCK, {n: positive(3, 4) for n in "abcd"}, {"spatial": 0}), "opset 7 to"),
    ],
)
def test_what_cannot_be_brought_up_to_date(case, message):
    with pytest.raises(UnsupportedOperator, match=message):
        OnnxModule(model(*case))
