# SPDX-License-Identifier: Apache-2.0
"""Whole ONNX models: exported by torch and made by hand, against onnxruntime, exported again, and secret."""

import copy
import io
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import privml
from privml.errors import UnsupportedOperator
from privml.graph.batches import Batch
from privml.graph.export import export
from privml.graph.onnx.module import OnnxModule

BATCH = torch.export.Dim("batch")


def runtime(model, *inputs):
    """What onnxruntime computes."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feed = {i.name: np.asarray(x) for i, x in zip(session.get_inputs(), inputs, strict=True)}
    return [torch.from_numpy(y) for y in session.run(None, feed)]


def results(module, *inputs):
    with torch.no_grad():
        y = module(*inputs)
    return list(y) if isinstance(y, tuple) else [y]


def assert_close(got, expected, **tolerances):
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, **tolerances)


# ---- models of torch
class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.second, self.last = nn.Conv2d(4, 4, 3, stride=2, groups=2), nn.Linear(4, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)
        x = F.adaptive_avg_pool2d(F.relu6(self.second(x)), 1)
        return self.last(x.view(x.size(0), -1))


class Sequence(nn.Module):
    """Attention with a mask, a recurrent layer, and the shape arithmetic exporters write for them."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.norm, self.slope, self.gain = nn.LayerNorm(4), nn.PReLU(), nn.Parameter(torch.tensor(0.7))
        self.gru, self.lstm = nn.GRU(4, 3, batch_first=True, bidirectional=True), nn.LSTM(6, 2, batch_first=True)

    def forward(self, x):
        mask = torch.triu(torch.full((x.shape[1], x.shape[1]), float("-inf")), 1)
        y = self.norm(x + self.attention(x, x, x, attn_mask=mask, need_weights=False)[0])
        y = F.gelu(self.slope(y) * 0.37 / 3.3 + x**3 * self.gain)
        z = self.lstm(self.gru(y)[0])[0]
        return y.reshape(x.shape[0], -1), z


MODELS = {"convolutional": (Convolutional, (3, 1, 9, 9)), "sequence": (Sequence, (3, 5, 4))}


def from_torch(net, x, dynamo, dynamic):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dynamo:
            shapes = ({0: BATCH},) if dynamic else None
            return torch.onnx.export(net, (x,), dynamo=True, dynamic_shapes=shapes, verbose=False).model_proto
        buffer = io.BytesIO()
        axes = {"x": {0: "batch"}} if dynamic else None
        torch.onnx.export(net, (x,), buffer, dynamo=False, input_names=["x"], dynamic_axes=axes)
        return onnx.load_from_string(buffer.getvalue())


@pytest.fixture(scope="module", params=[(n, d) for n in MODELS for d in (True, False)], ids=str)
def exported(request):
    """(torch module, ONNX model with a dynamic batch, an input)."""
    name, dynamo = request.param
    torch.manual_seed(1)
    make, shape = MODELS[name]
    net, x = make(), torch.randn(shape)
    with torch.no_grad():
        for _ in range(3):
            net(torch.randn(shape) + 0.3)
    net.eval()
    return net, from_torch(net, x, dynamo, dynamic=True), x


def test_model_of_torch(exported):
    net, model, x = exported
    module = OnnxModule(model)
    for batch in (x, x[:1]):
        assert_close(results(module, batch), results(net, batch))
        assert_close(results(module, batch), runtime(model, batch), atol=1e-5, rtol=1e-4)


def test_exported_again_with_a_dynamic_batch(exported):
    net, model, x = exported
    module = OnnxModule(model).eval()
    program = torch.export.export(module, (x,), dynamic_shapes=({0: BATCH},))
    targets = {str(n.target) for n in program.graph.nodes if n.op == "call_function"}
    assert not [t for t in targets if not t.startswith(("aten.", "<built-in")) and "getitem" not in t]
    bigger = torch.cat([x, x + 1])
    assert_close(results(program.module(), bigger), results(net, bigger))


def test_nothing_of_the_shape_arithmetic_is_left():
    net, x = Sequence().eval(), torch.randn(3, 5, 4)
    module = OnnxModule(from_torch(net, x, dynamo=True, dynamic=False))
    program = torch.export.export(module, (x,)).run_decompositions({})
    names = {str(n.target).removeprefix("aten.").split(".")[0] for n in program.graph.nodes}
    assert "matmul" in names or "linear" in names
    assert not names & {"sym_size", "gather", "full", "arange", "floor_divide", "scalar_tensor"}
    assert len(module.operators) < 50


def test_joins_the_road_of_torch(exported):
    """The graph of the ONNX model is a graph of secure operators, or the error names what is missing."""
    net, model, x = exported
    try:
        graph = export(OnnxModule(model), (x,))
    except UnsupportedOperator as error:
        assert isinstance(net, Sequence) and "have no secure implementation" in str(error)
        return
    assert_close(results(graph, x), results(net, x))
    layers = {n.meta.get("layer") for n in graph.graph.nodes if n.op == "call_function"}
    assert len(layers) >= 6 and all(layers)


def test_gradients_reach_the_parameters(exported):
    net, model, x = exported
    module = OnnxModule(model)
    outputs = module(x)
    sum(y.sum() for y in (outputs if isinstance(outputs, tuple) else (outputs,))).backward()
    assert all(p.grad is not None for p in module.parameters())


def test_copies_compute_with_their_own_parameters(exported):
    _, model, x = exported
    module = OnnxModule(model)
    twin = copy.deepcopy(module)
    for p in twin.parameters():
        p.data += 1
    assert not torch.equal(results(twin, x)[0], results(module, x)[0])
    twin.load_state_dict(module.state_dict())
    assert torch.equal(results(twin, x)[0], results(module, x)[0])


def test_other_precision():
    net = Convolutional().eval()
    x = torch.randn(2, 1, 9, 9)
    module = OnnxModule(from_torch(net, x, dynamo=True, dynamic=False)).double()
    assert_close(results(module, x.double()), results(net.double(), x.double()))


def test_secret_convolutional_model(open_session):
    torch.manual_seed(2)
    net, x = Convolutional().eval(), torch.randn(2, 1, 9, 9)
    module = OnnxModule(from_torch(net, x, dynamo=True, dynamic=False))
    expected = results(net, x)
    with open_session(), torch.no_grad():
        secret = privml.secret(copy.deepcopy(module))(privml.share(x, owner=1))
        assert_close([privml.reveal(secret)], expected, atol=2e-3, rtol=0)


# ---- an old model
def old_model():
    """Opset 8 as exporters of its time wrote it: attributes for pads and shapes, initializers among the inputs,
    Dropout with a ratio, old broadcasting of Reshape's -1, ceiling in pooling done by padding."""
    rng = np.random.default_rng(4)

    def tensor(name, *shape):
        return numpy_helper.from_array((rng.normal(size=shape) / 2).astype(np.float32), name)

    weights = [
        tensor("w1", 4, 1, 3, 3), tensor("b1", 4), tensor("gamma", 4), tensor("beta", 4), tensor("mean", 4),
        numpy_helper.from_array(rng.uniform(0.5, 2, 4).astype(np.float32), "variance"), tensor("slope", 4, 1, 1),
        tensor("w2", 6, 2, 3, 3), tensor("w3", 54, 5), tensor("b3", 5),
        numpy_helper.from_array(np.array([0, -1]), "flat"),
    ]  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], auto_pad="SAME_UPPER", strides=[2, 2]),
        helper.make_node("BatchNormalization", ["c1", "gamma", "beta", "mean", "variance"], ["n1"], epsilon=1e-3),
        helper.make_node("PRelu", ["n1", "slope"], ["r1"]),
        helper.make_node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 1, 1]),
        helper.make_node("Conv", ["p1", "w2"], ["c2"], group=2, dilations=[2, 2], pads=[2, 2, 2, 2]),
        helper.make_node("Clip", ["c2"], ["k2"], min=0.0, max=6.0),
        helper.make_node("AveragePool", ["k2"], ["u2"], kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1]),
        helper.make_node("Pad", ["u2"], ["q2"], mode="constant", pads=[0, 0, 0, 0, 0, 0, 0, 0], value=0.5),
        helper.make_node("Dropout", ["q2"], ["d2"], ratio=0.5),
        helper.make_node("Reshape", ["d2", "flat"], ["f2"]),
        helper.make_node("Gemm", ["f2", "w3", "b3"], ["g3"], alpha=0.5, beta=2.0),
        helper.make_node("Softmax", ["g3"], ["y"], axis=1),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 11, 11])]
    inputs += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in weights]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("y", "g3")]
    graph = helper.make_graph(nodes, "old", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=3)


def test_old_model():
    model, x = old_model(), torch.randn(3, 1, 11, 11)
    module = OnnxModule(model)
    assert module.input_names == ["x"]
    assert_close(results(module, x), runtime(model, x), atol=1e-5, rtol=1e-4)
    program = torch.export.export(module, (x,), dynamic_shapes=({0: BATCH},))
    assert_close(results(program.module(), x[:2]), runtime(model, x[:2]), atol=1e-5, rtol=1e-4)


def test_old_model_secret(open_session):
    model, x = old_model(), torch.randn(2, 1, 11, 11)
    del model.graph.node[-1], model.graph.output[0]  # the softmax is not this test's subject
    module = OnnxModule(model)
    with open_session(), torch.no_grad():
        secret = privml.secret(module)(privml.share(x, owner=1))
        assert_close([privml.reveal(secret)], runtime(model, x), atol=2e-3, rtol=0)


# ---- control flow and functions
def test_loop_and_scan_are_unrolled():
    body = onnx.parser.parse_graph(
        "body (int64 i, bool go, float[2,3] s) => (bool again, float[2,3] next, float[2,3] seen)"
        "{ again = Identity(go) two = Constant<value_float=2.0>() next = Mul(s, two) seen = Identity(next) }"
    )
    nodes = [helper.make_node("Loop", ["trips", "", "x"], ["last", "all"], body=body)]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, (2, 3))],
        [helper.make_tensor_value_info(n, 1, None) for n in ("last", "all")],
        [numpy_helper.from_array(np.array(3), "trips")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    x = torch.randn(2, 3)
    assert_close(results(OnnxModule(model), x), [x * 8, torch.stack([x * 2, x * 4, x * 8])])


def test_functions_of_the_model_are_inlined():
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        g (float[2,3] x) => (float[2,3] y) { y = local.shifted <by: float = 0.5> (x) }
        <opset_import: ["" : 18], domain: "local">
        shifted <by> (x) => (y) { b = Constant <value_float: float = @by> () y = Add(x, b) }"""
    )
    x = torch.randn(2, 3)
    assert_close(results(OnnxModule(model), x), [x + 0.5])


def of_two_rows():
    """A file whose only input has two rows, no more and no fewer."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["products"]),
        helper.make_node("Relu", ["products"], ["positive"]),
        helper.make_node("Reshape", ["positive", "shape"], ["y"]),
    ]
    weights = np.random.default_rng(3).normal(size=(4, 3)).astype(np.float32)
    constants = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.array([6]), "shape")]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [6])]
    graph = helper.make_graph(nodes, "two rows", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("rows", [1, 2, 5, 64])
def test_a_fixed_batch_takes_calibration_of_any_number_of_rows(rows):
    model, x = of_two_rows(), torch.tensor([[0.5, -1.0, 0.25, 1.0], [1.0, 0.5, -0.5, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = privml.convert(model, calibration=torch.cat([x, torch.randn(62, 4)])[:rows])
    assert [spec.shape for spec in program.inputs] == [(2, 4)]
    seen = x if rows > 1 else x[[0, 0]]
    with privml.local(program, engine="plain") as session:
        assert (session(seen) - runtime(model, seen)[0]).abs().max() < 0.05


def test_rows_fill_whole_batches():
    data = Batch((torch.arange(5), torch.arange(10).view(5, 2)), ("a", "b"))
    filled = data.in_batches(4)
    assert filled.tensors[0].tolist() == [0, 1, 2, 3, 4, 4, 4, 4] and filled.names == data.names
    assert torch.equal(filled.tensors[1][:, 0], 2 * filled.tensors[0])
    assert data.in_batches(5) is data
    uneven = Batch((torch.zeros(2), torch.zeros(3)))
    assert uneven.in_batches(4) is uneven
