# SPDX-License-Identifier: Apache-2.0
"""Unusual attributes of ONNX operators: answers are onnxruntime's, and what has no meaning is an error."""

import numpy as np
import pytest
import torch
from onnx import TensorProto
from test_onnx_opsets import BLOCK, IMAGE, check, model, numbers, positive

import privml
from privml.errors import InvalidInput, UnsupportedOperator
from privml.graph.onnx.module import OnnxModule

FIRST = np.array([np.iinfo(np.int64).min])
CROPPED = {"strides": [2, 2], "auto_pad": "SAME_LOWER"}

CASES = [
    (13, "Slice", BLOCK, {"b": FIRST, "e": FIRST, "a": np.array([1]), "s": np.array([-1])}, {}),
    (13, "Slice", BLOCK, {"b": np.array([-9]), "e": np.array([-9]), "a": np.array([2]), "s": np.array([-2])}, {}),
    (13, "Slice", BLOCK, {"b": np.array([9]), "e": np.array([-9]), "a": np.array([2]), "s": np.array([-2])}, {}),
    (13, "InstanceNormalization", (2, 3, 1), {"scale": positive(3), "bias": numbers(3)}, {}),
    (13, "InstanceNormalization", (2, 3, 1, 1), {"scale": positive(3), "bias": numbers(3)}, {}),
    (11, "ConvTranspose", (1, 2, 4), {"w": numbers(2, 3, 1)}, {"strides": [3], "output_shape": [12]}),
    (11, "ConvTranspose", (1, 2, 4), {"w": numbers(2, 3, 2)}, {"strides": [3], "output_shape": [12]}),
    *(
        (19, "Pad", (4,), {"p": np.array(p)}, {"mode": m})
        for p in ([2, -1], [-1, 2])
        for m in ("wrap", "reflect", "edge")
    ),
    (19, "Pad", BLOCK, {"p": np.array([0, -1, 2, 1, 1, -2])}, {"mode": "constant"}),
    (13, "Flatten", BLOCK, {}, {"axis": 3}),
    (13, "Flatten", BLOCK, {}, {"axis": -3}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[1]}-{c[2]}")
def test_they_answer_as_onnxruntime(case):
    check(model(*case), case[2])


AXIS = np.array([3])


@pytest.mark.parametrize(
    ("operator", "constants", "attributes"),
    [
        ("ReduceSum", {"a": AXIS}, {}),
        ("Slice", {"b": np.array([0]), "e": np.array([1]), "a": AXIS}, {}),
        ("Unsqueeze", {"a": AXIS + 2}, {}),
        ("Gather", {"i": np.array([0])}, {"axis": 3}),
        ("GatherElements", {"i": np.zeros(BLOCK, np.int64)}, {"axis": -4}),
        ("Pad", {"p": np.array([1, 1]), "_": None, "a": AXIS}, {}),
        ("LayerNormalization", {"w": positive(4)}, {"axis": 3}),
        ("Flatten", {}, {"axis": 4}),
    ],
)
def test_an_axis_that_there_is_not_is_an_error(operator, constants, attributes):
    """It was counted on from the first axis."""
    proto = model(18, operator, BLOCK, constants, attributes)
    proto.graph.node[0].name = "of_no_axis"
    with pytest.raises(IndexError):
        OnnxModule(proto)(torch.from_numpy(numbers(*BLOCK)))
    with pytest.raises(InvalidInput, match="'of_no_axis'"):
        privml.convert(proto, calibration=torch.from_numpy(numbers(*BLOCK)))


def test_crops_between_samples_need_a_whole_size():
    """onnx and onnxruntime differ there."""
    region = np.array([0, 0, 0.1, 0.1, 1, 1, 0.9, 0.9], np.float32)
    attributes = {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": "linear"}
    for factor in (2.0, 0.6):
        proto = model(13, "Resize", IMAGE, {"r": region, "s": np.array([1, 1, factor, factor], np.float32)}, attributes)
        if factor == 2.0:
            check(proto, IMAGE)
            continue
        with pytest.raises(UnsupportedOperator, match="no whole size"):
            OnnxModule(proto)


def test_transposed_convolutions_that_crop_take_any_batch():
    shape = (5, 2, 4, 4)
    proto = model(11, "ConvTranspose", ["N", *shape[1:]], {"w": numbers(2, 3, 3, 3)}, CROPPED)
    check(proto, shape)
    data = torch.from_numpy(numbers(16, *shape[1:]))
    program = privml.convert(proto, calibration=data)
    assert program.inputs[0].shape[0] is None
    with torch.no_grad(), privml.local(program, engine="plain"):
        expected = OnnxModule(proto)(data[:3])
        assert (program(data[:3]) - expected).abs().max() <= expected.abs().max() / 64


@pytest.mark.parametrize("operator", ["LpPool", "AveragePool", "MaxPool"])
def test_windows_beyond_the_paddings_are_an_error(operator):
    """onnx counts no such window, onnxruntime one."""
    proto = model(18, operator, (1, 2, 2, 4), {}, {"kernel_shape": [3, 2], "strides": [2, 1]})
    proto.graph.node[0].name = "wide"
    with pytest.raises(InvalidInput, match="'wide'"):
        privml.convert(proto, calibration=torch.from_numpy(numbers(1, 2, 2, 4)))


def test_strides_that_leave_gaps_need_explicit_paddings():
    """onnx and onnxruntime differ there."""
    attributes = {"strides": [3], "auto_pad": "SAME_UPPER"}
    module = OnnxModule(model(11, "ConvTranspose", (1, 2, 4), {"w": numbers(2, 3, 1)}, attributes))
    with pytest.raises(UnsupportedOperator, match="give pads"):
        module(torch.from_numpy(numbers(1, 2, 4)))


def test_outputs_of_no_elements_have_no_error():
    proto = model(13, "Slice", ["N", 3], {"b": np.array([2]), "e": np.array([2]), "a": np.array([1])}, {})
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    program = privml.convert(proto, calibration=torch.from_numpy(numbers(8, 3)))
    with privml.local(program, engine="plain"):
        assert program(torch.from_numpy(numbers(2, 3))).shape == (2, 0)
