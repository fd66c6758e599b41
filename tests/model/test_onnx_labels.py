# SPDX-License-Identifier: Apache-2.0
"""Labels of ai.onnx.ml's classifiers: computed alone, and strings that are looked up once they are revealed."""

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx_ml import FLOAT, INT64, LABELLED, STRING, check, compute, floats, forest, model, support_vectors, weights

import privml
from privml.errors import CorruptFile, UnsupportedOperator
from privml.graph.onnx.module import OnnxModule
from privml.program import Program

NAMES = ["ash", "birch", "cedar"]


def only_labels(proto):
    del proto.graph.output[1]
    return proto


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("trees", [1, 3])
def test_the_label_of_a_tree_alone(rng, x, classes, trees):
    """A single tree has a label at each leaf: nothing is compared after the leaf is found."""
    table, leaves = forest(rng, trees=trees)
    extra = weights(rng, "class", leaves, classes) | {"base_values": floats(rng, classes)}
    proto = model("TreeEnsembleClassifier", LABELLED, classlabels_int64s=[7, 3, 11][:classes], **table, **extra)
    expected = compute(proto, x)[0]  # test_tree_classifier compares it with onnxruntime, whose pairs follow a sign
    (label,) = compute(only_labels(proto), x)
    assert torch.equal(label, expected) and len(label.unique()) > 1
    program = privml.convert(proto, torch.from_numpy(x))
    compared = [name for name in program.layers if "argmax" in name or "gt" in name]
    assert bool(compared) == (trees > 1)


def test_the_label_of_one_score_alone(rng, x):
    table, leaves = forest(rng, trees=1)
    extra = weights(rng, "class", leaves, 1)
    check(only_labels(model("TreeEnsembleClassifier", LABELLED, classlabels_int64s=[3, 8], **table, **extra)), x)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_label_of_a_linear_classifier_alone(rng, x, classes):
    extra = {"coefficients": floats(rng, classes, 5), "intercepts": floats(rng, classes)}
    check(only_labels(model("LinearClassifier", LABELLED, classlabels_ints=[4, 1, 7][:classes], **extra)), x)


@pytest.mark.parametrize("kind", ["TreeEnsembleClassifier", "LinearClassifier", "SVMClassifier"])
def test_string_labels_are_looked_up_in_clear(rng, x, kind):
    if kind == "TreeEnsembleClassifier":
        table, leaves = forest(rng)
        extra = table | weights(rng, "class", leaves, 3)
    elif kind == "LinearClassifier":
        extra = {"coefficients": floats(rng, 3, 5), "intercepts": floats(rng, 3)}
    else:
        extra = support_vectors(rng, [3, 2, 4]) | {"kernel_type": "RBF", "kernel_params": [0.3, 0.0, 0.0]}
        del extra["classlabels_ints"]
    proto = only_labels(model(kind, [("Y", STRING), ("Z", FLOAT)], classlabels_strings=NAMES, **extra))
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"X": x})
    program = privml.convert(proto, calibration=torch.from_numpy(x))
    assert program.labels == (tuple(NAMES),)
    with privml.local("plain", bits=program.numerics.bits, scale=program.numerics.scale) as session:
        answer = program.decode(privml.reveal(program.run(session, torch.from_numpy(x))))
    assert (answer == expected).mean() > 0.95  # of numbers with few fractional bits


def test_labels_are_part_of_a_program_s_file(rng, x, tmp_path):
    extra = {"coefficients": floats(rng, 3, 5), "intercepts": floats(rng, 3)}
    outputs = [("Y", STRING), ("Z", FLOAT)]
    program = privml.convert(
        model("LinearClassifier", outputs, classlabels_strings=NAMES, **extra), torch.from_numpy(x)
    )
    program.save(tmp_path)
    again = privml.load(tmp_path / "program")
    assert again.labels == program.labels == (tuple(NAMES), None) and again.hash == program.hash
    label, scores = again.decode((torch.tensor([2, 0]), torch.zeros(2, 3)))
    assert label.tolist() == ["cedar", "ash"] and scores.shape == (2, 3)
    for labels in ([[1]], [NAMES], [NAMES, "x"]):
        with pytest.raises(CorruptFile, match="labels"):
            Program(program.body | {"labels": labels})


def test_an_element_of_a_list_at_a_secret_place(rng, x):
    """What skl2onnx puts after ArgMax: the labels, strings or numbers, of the index."""
    for classes, kind in ((np.array(NAMES), STRING), (np.array([5, 2, 9]), INT64)):
        names = ["S", "I", "L", "Y"]
        nodes = [
            helper.make_node("MatMul", ["X", "W"], ["S"]),
            helper.make_node("ArgMax", ["S"], ["I"], axis=1),
            helper.make_node("ArrayFeatureExtractor", ["C", "I"], ["L"], domain="ai.onnx.ml"),
            helper.make_node("Reshape", ["L", "shape"], ["Y"]),
        ]
        arrays = {"W": rng.normal(size=(5, 3)).astype(np.float32), "C": classes, "shape": np.array([-1])}
        graph = helper.make_graph(
            nodes, "g", [helper.make_tensor_value_info("X", FLOAT, [None, 5])],
            [helper.make_tensor_value_info(names[-1], kind, [None])],
            [numpy_helper.from_array(v.astype(object) if v.dtype.kind == "U" else v, k) for k, v in arrays.items()],
        )  # fmt: skip
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
        proto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        module = OnnxModule(proto)
        index = (x @ arrays["W"]).argmax(1)
        got = module(torch.from_numpy(x))
        if kind == STRING:
            assert module.labels == [NAMES] and got.tolist() == index.tolist()
        else:
            assert module.labels == [None] and got.tolist() == classes[index].tolist()


def test_no_computing_with_strings(rng):
    extra = {"coefficients": floats(rng, 3, 5), "intercepts": floats(rng, 3)}
    proto = model("LinearClassifier", [("L", STRING), ("Z", FLOAT)], classlabels_strings=NAMES, **extra)
    proto.graph.node.append(helper.make_node("Equal", ["L", "L"], ["Y"]))
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("Y", TensorProto.BOOL, None))
    with pytest.raises(UnsupportedOperator, match="computes with strings"):
        OnnxModule(proto)
