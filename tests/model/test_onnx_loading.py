# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a file or a model is said at conversion, all of it at once."""

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from privml.errors import CorruptFile, InvalidInput, UnsupportedOperator
from privml.graph.onnx.load import TARGET_OPSET
from privml.graph.onnx.module import OnnxModule


def model(nodes, shape=(2, 3), weights=(), opset=TARGET_OPSET, inputs=None, outputs=("y",)):
    """A model of float tensors from ``x`` to ``y``."""
    inputs = inputs or [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights]
    graph = helper.make_graph(nodes, "g", inputs, results, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def linear(rows=3, columns=4):
    weight = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    return model([helper.make_node("MatMul", ["x", "w"], ["y"])], (2, rows), [("w", weight)]), weight


# ---- files
def test_model_bytes_and_path_give_the_same(tmp_path):
    proto, weight = linear()
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    x = torch.randn(2, 3)
    for source in (proto, proto.SerializeToString(), path, str(path)):
        torch.testing.assert_close(OnnxModule(source)(x), x @ torch.from_numpy(weight))


def test_every_truncation_is_reported():
    data = linear()[0].SerializeToString()
    x = torch.ones(2, 3)
    expected = OnnxModule(data)(x)
    for length in range(0, len(data) - 1, 7):
        try:
            result = OnnxModule(data[:length])(x)
        except (CorruptFile, UnsupportedOperator):
            continue
        assert torch.equal(result, expected)  # what was cut off said nothing of the result


def test_damaged_bytes_are_reported():
    data = linear()[0].SerializeToString()
    random = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(data)
        for place in random.integers(len(data), size=random.integers(1, 4)):
            damaged[place] = random.integers(256)
        try:
            OnnxModule(bytes(damaged))
        except (CorruptFile, UnsupportedOperator):
            continue  # anything else would escape


@pytest.mark.parametrize("content", [b"", b"not a model at all", bytes(range(256))])
def test_other_content(content, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(CorruptFile):
        OnnxModule(path)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        OnnxModule(tmp_path / "none.onnx")


def test_weight_of_wrong_size():
    proto, _ = linear()
    proto.graph.initializer[0].raw_data = proto.graph.initializer[0].raw_data[:-4]
    with pytest.raises(CorruptFile, match="'w'"):
        OnnxModule(proto)


def test_value_computed_nowhere():
    with pytest.raises(CorruptFile, match="nowhere|not output of any previous nodes"):
        OnnxModule(model([helper.make_node("Relu", ["nowhere"], ["y"])]))


@pytest.fixture
def external(tmp_path):
    """A model whose weight of 64 KiB lies beside it."""
    proto, weight = linear(128, 128)
    path = tmp_path / "m.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path, weight


def test_external_data(external):
    path, weight = external
    module = OnnxModule(path)
    x = torch.randn(2, 128)
    torch.testing.assert_close(module(x), x @ torch.from_numpy(weight))
    assert path.stat().st_size < 1000


def test_external_data_needs_the_path(external):
    with pytest.raises(CorruptFile, match="path"):
        OnnxModule(external[0].read_bytes())


@pytest.mark.parametrize("size", [None, 1000])
def test_external_data_missing_or_truncated(external, size):
    data = external[0].parent / "weights.bin"
    data.write_bytes(data.read_bytes()[:size]) if size else data.unlink()
    with pytest.raises(CorruptFile, match="'w'"):
        OnnxModule(external[0])


def test_external_data_stays_in_its_folder(external):
    proto = onnx.load(external[0], load_external_data=False)
    (location,) = [e for e in proto.graph.initializer[0].external_data if e.key == "location"]
    location.value = "../../secret.bin"
    onnx.save(proto, external[0])
    with pytest.raises(CorruptFile):
        OnnxModule(external[0])


def test_weights_leave_the_graph_before_it_is_transformed(external, monkeypatch):
    """What the onnx package serializes stays far below its limit of 2 GB, however large the weights."""
    sizes = []
    infer = onnx.shape_inference.infer_shapes

    def measured(proto, *arguments):
        sizes.append(proto.ByteSize())
        return infer(proto, *arguments)

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", measured)
    OnnxModule(external[0])
    assert sizes and max(sizes) < 1000


# ---- operators
def test_all_problems_are_reported_with_names_and_nearest_spelling():
    nodes = [
        helper.make_node("Unique", ["x"], ["u"], name="distinct"),
        helper.make_node("MaxPol", ["x"], ["p"], name="first"),
        helper.make_node("Frobnicate", ["u"], ["f"], domain="com.acme", name="second"),
        helper.make_node("NonZero", ["p"], ["z"]),
        helper.make_node("Add", ["f", "z"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    proto = model(nodes)
    proto.opset_import.append(helper.make_opsetid("com.acme", 1))
    with pytest.raises(UnsupportedOperator) as caught:
        OnnxModule(proto)
    text = str(caught.value)
    assert "4 nodes" in text
    assert "Unique (domain 'ai.onnx', node 'distinct')" in text and "shape of its result" in text
    assert "MaxPol (domain 'ai.onnx', node 'first')" in text and "MaxPool" in text
    assert "Frobnicate (domain 'com.acme', node 'second')" in text
    assert "NonZero (domain 'ai.onnx', node producing 'z')" in text
    assert len(text.splitlines()) == 6 and "Abs" not in text and "Relu (" not in text


def test_what_no_output_depends_on_is_left_out():
    nodes = [helper.make_node("Frobnicate", ["x"], ["f"], domain="com.acme"), helper.make_node("Relu", ["x"], ["y"])]
    proto = model(nodes)
    proto.opset_import.append(helper.make_opsetid("com.acme", 1))
    x = torch.randn(2, 3)
    assert torch.equal(OnnxModule(proto)(x), x.relu())


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (helper.make_node("Gelu", ["x"], ["y"], approximate="cubic"), "approximate='cubic'.*'none', 'tanh'"),
        (helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E4M3FN), "FLOAT8E4M3FN"),
        (helper.make_node("RandomNormalLike", ["x"], ["y"]), "random results"),
        (helper.make_node("Reshape", ["x", "x"], ["y"]), "'shape' .*depends on the values"),
    ],
)
def test_unsupported_values(node, message):
    with pytest.raises(UnsupportedOperator, match=message):
        OnnxModule(model([node]))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"activations": ["Affine", "Tanh"]}, "'Affine' is not supported, only Relu, Sigmoid"),
        ({"activation_alpha": [0.1]}, "activation_alpha"),
        ({"direction": "sideways"}, "direction='sideways'"),
    ],
)
def test_unsupported_attributes_of_recurrent_layers(attributes, message):
    weights = [("w", np.zeros((1, 6, 3), np.float32)), ("r", np.zeros((1, 6, 2), np.float32))]
    node = helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=2, **attributes)
    with pytest.raises(UnsupportedOperator, match=message):
        OnnxModule(model([node], (5, 1, 3), weights))


def test_secret_condition():
    branch = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["b"])], "b", [], [helper.make_tensor_value_info("b", 1, None)]
    )
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Cast", ["s"], ["c"], to=TensorProto.BOOL),
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch, name="choice"),
    ]
    with pytest.raises(UnsupportedOperator, match="'choice'.*its condition depends on the values"):
        OnnxModule(model(nodes))


def test_newer_opset_than_onnx_knows():
    with pytest.raises((CorruptFile, UnsupportedOperator), match="999|opset"):
        OnnxModule(model([helper.make_node("Relu", ["x"], ["y"])], opset=999))


# ---- inputs
def test_inputs_are_checked():
    module = OnnxModule(linear()[0])
    for arguments, message in [
        ((), "takes 1 inputs \\('x'\\), got 0"),
        ((torch.ones(2, 3), torch.ones(2, 3)), "got 2"),
        ((torch.ones(2, 4),), "must have shape \\[2, 3\\], got \\[2, 4\\].*shapes="),
        ((torch.ones(2, 3, dtype=torch.int64),), "must be torch.float32"),
        ((np.ones((2, 3), np.float32),), "must be a tensor"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            module(*arguments)
    with pytest.raises(InvalidInput, match="'z'"):
        module(z=torch.ones(2, 3))
    assert module(x=torch.ones(2, 3)).shape == (2, 4)


def test_shapes_override_what_the_file_declares():
    proto, _ = linear()
    assert OnnxModule(proto, shapes={"x": (None, 3)})(torch.ones(7, 3)).shape == (7, 4)
    with pytest.raises(InvalidInput, match="no input 'q'"):
        OnnxModule(proto, shapes={"q": (1,)})


def test_fixed_input_becomes_a_constant():
    inputs = [helper.make_tensor_value_info(n, 1, (2, 3)) for n in ("x", "c")]
    module = OnnxModule(
        model([helper.make_node("Add", ["x", "c"], ["y"])], inputs=inputs), fixed={"c": np.ones((2, 3))}
    )
    assert module.input_names == ["x"] and not list(module.parameters())


# ---- what is secret
def test_parameters_buffers_and_public_numbers():
    mask = np.where(np.tri(3), 0, -np.inf).astype(np.float32)
    weights = [
        ("w", np.ones((3, 3), np.float32)),
        ("mask", mask),
        ("temperature", np.array(2.0, np.float32)),
        ("limit", np.array(6.0, np.float32)),
        ("shape", np.array([1, 3, 3, 1])),
        *((name, np.ones(3, np.float32)) for name in ("gamma", "beta", "mean", "variance")),
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Div", ["a", "temperature"], ["b"]),
        helper.make_node("Add", ["b", "mask"], ["c"]),
        helper.make_node("Clip", ["c", "", "limit"], ["d"]),
        helper.make_node("Reshape", ["d", "shape"], ["e"]),
        helper.make_node("BatchNormalization", ["e", "gamma", "beta", "mean", "variance"], ["y"]),
    ]
    module = OnnxModule(model(nodes, (3, 3), weights))
    # The divisor of a trained quotient is turned into a factor, so that no secret is divided by.
    assert {module.onnx_names[n] for n, _ in module.named_parameters()} == {"w", "gamma", "beta", "Div_b.reciprocal"}
    assert {module.onnx_names[n] for n, _ in module.named_buffers()} == {"mean", "variance"}
    assert module.public_constants == {"mask": (3, 3), "limit": ()}


def test_public_initializers():
    nodes = [helper.make_node("Mul", ["x", "scale"], ["y"])]
    proto = model(nodes, weights=[("scale", np.array([0.5], np.float32))])
    assert [n for n, _ in OnnxModule(proto).named_parameters()] == ["scale"]
    assert not list(OnnxModule(proto, public=["scale"]).parameters())


def test_weights_in_constant_nodes_are_parameters():
    weight = np.ones((3, 4), np.float32)
    nodes = [
        helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(weight)),
        helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]),
        helper.make_node("Gemm", ["x", "t"], ["y"], transB=1),
    ]
    module = OnnxModule(model(nodes))
    assert [tuple(p.shape) for p in module.parameters()] == [(4, 3)]


# ---- what would fill the memory, or never end
def grown(op, **weights):
    return model([helper.make_node(op, list(weights), ["a"]), helper.make_node("Add", ["x", "a"], ["y"])],
                 weights=list(weights.items()))  # fmt: skip


@pytest.mark.parametrize(
    "proto",
    [
        grown("ConstantOfShape", s=np.array([2**20, 2**10])),
        grown("ConstantOfShape", s=np.array([2**40])),
        grown("Expand", v=np.float32([1]), s=np.array([2**15, 2**15])),
        grown("Tile", v=np.float32([1, 2, 3]), n=np.array([2**30])),
        grown("Range", p=np.float32(0), q=np.float32(2**30), r=np.float32(1)),
        grown("Add", v=np.zeros((2**15, 1), np.float32), w=np.zeros((1, 2**15), np.float32)),
    ],
)
def test_constants_that_a_small_file_lets_grow_are_refused(proto):
    with pytest.raises(UnsupportedOperator, match="the constants that the model computes have more than"):
        OnnxModule(proto)


def test_loops_within_loops_end():
    kinds = {"i": TensorProto.INT64, "c": TensorProto.BOOL, "d": TensorProto.BOOL}

    def loop(level, inner):
        infos = [helper.make_tensor_value_info(n, kinds.get(n, TensorProto.FLOAT), None) for n in ("i", "c", "v")]
        ends = [helper.make_tensor_value_info(n, kinds.get(n, TensorProto.FLOAT), None) for n in ("d", f"o{level}")]
        nodes = [helper.make_node("Identity", ["c"], ["d"]), inner]
        body = helper.make_graph(nodes, f"b{level}", infos, ends)
        return helper.make_node(
            "Loop", ["n", "", "v" if level else "x"], [f"o{level + 1}" if level else "y"], body=body
        )

    first = helper.make_node("Add", ["v", "v"], ["o2"])
    proto = model([loop(0, loop(1, loop(2, first)))], weights=[("n", np.array(2000))])
    with pytest.raises((UnsupportedOperator, CorruptFile)):
        OnnxModule(proto)


def test_a_sequence_too_long_to_scan_is_refused():
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("s", "e")]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("t", "z")]
    nodes = [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Identity", ["t"], ["z"])]
    body = helper.make_graph(nodes, "b", infos, ends)
    scan = helper.make_node("Scan", ["s0", "x"], ["f", "y"], body=body, num_scan_inputs=1)
    with pytest.raises(UnsupportedOperator, match="more than 10000 parts"):
        OnnxModule(model([scan], (2**40, 3), [("s0", np.zeros(3, np.float32))]))


def test_a_model_without_outputs():
    proto, _ = linear()
    del proto.graph.output[:]
    with pytest.raises(CorruptFile, match="no outputs"):
        OnnxModule(proto)
