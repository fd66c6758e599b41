# SPDX-License-Identifier: Apache-2.0
"""ONNX files: small models of every kind of node that the front end treats by itself, and what a liar makes of them."""

from __future__ import annotations

import functools
import random
from typing import Any

import numpy as np
import onnx
import torch
from fuzz_targets import Target
from mutation import mutate_bytes, mutate_message
from onnx import TensorProto, helper, numpy_helper

from privml.graph.onnx.module import OnnxModule


def model(nodes: list[Any], weights: dict[str, Any] | None = None, shape: Any = (2, 3), opset: int = 21) -> bytes:
    """From ``x`` to ``y``."""
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in (weights or {}).items()]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def floats(*shape: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def body(name: str, nodes: list[Any], inputs: list[str], outputs: list[str], kinds: dict[str, int]) -> Any:
    def infos(names: list[str]) -> list[Any]:
        return [helper.make_tensor_value_info(n, kinds.get(n, TensorProto.FLOAT), None) for n in names]

    return helper.make_graph(nodes, name, infos(inputs), infos(outputs))


@functools.cache
def models() -> tuple[bytes, ...]:
    node = helper.make_node
    kinds = {"i": TensorProto.INT64, "c": TensorProto.BOOL, "d": TensorProto.BOOL}
    loop = body(
        "loop", [node("Identity", ["c"], ["d"]), node("Add", ["a", "a"], ["b"])], ["i", "c", "a"], ["d", "b"], kinds
    )
    scan = body("scan", [node("Add", ["s", "e"], ["t"]), node("Identity", ["t"], ["z"])], ["s", "e"], ["t", "z"], {})
    yes = body("yes", [node("Relu", ["x"], ["p"])], [], ["p"], {})
    no = body("no", [node("Neg", ["x"], ["q"])], [], ["q"], {})
    tree = {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.5, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "target_treeids": [0, 0],
        "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, -1.0], "n_targets": 1,
    }  # fmt: skip
    vectors = {
        "kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0], "n_supports": 2, "coefficients": [1.0, -1.0],
        "support_vectors": [0.0, 1.0, 0.0, 1.0, 0.0, 1.0], "rho": [0.25],
    }  # fmt: skip
    return (
        model([node("MatMul", ["x", "w"], ["y"])], {"w": floats(3, 4)}),
        model(
            [node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]), node("MaxPool", ["a"], ["y"], kernel_shape=[2, 2])],
            {"w": floats(2, 1, 3, 3)}, (1, 1, 4, 4),
        ),
        model([node("Loop", ["n", "", "x"], ["y"], body=loop)], {"n": np.array(3)}),
        model([node("Scan", ["s", "x"], ["f", "y"], body=scan, num_scan_inputs=1)], {"s": floats(3)}),
        model([node("If", ["c"], ["y"], then_branch=yes, else_branch=no)], {"c": np.array(True)}),
        model([node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **tree)]),
        model([node("SVMRegressor", ["x"], ["y"], domain="ai.onnx.ml", **vectors)]),
        model([node("GRU", ["x", "w", "r"], ["y"], hidden_size=2)],
              {"w": floats(1, 6, 3), "r": floats(1, 6, 2)}, (4, 1, 3)),
        model([node("ConstantOfShape", ["s"], ["a"]), node("Add", ["x", "a"], ["y"])], {"s": np.array([2, 3])}),
        model([node("Tile", ["v", "n"], ["a"]), node("Add", ["x", "a"], ["y"])], {"v": floats(3), "n": np.array([1])}),
        model([node("Range", ["a", "b", "c"], ["r"]), node("Add", ["x", "r"], ["y"])],
              {"a": np.float32(0), "b": np.float32(3), "c": np.float32(1)}),
        model([node("Shape", ["x"], ["s"]), node("Reshape", ["x", "s"], ["y"])]),
        model([node("Resize", ["x", "", "k"], ["y"])], {"k": np.array([1, 1, 2, 2], np.float32)}, (1, 1, 2, 2)),
        model([node("Upsample", ["x"], ["y"], scales=[1.0, 1.0, 2.0, 2.0])], {}, (1, 1, 2, 2), opset=7),
        model([node("LayerNormalization", ["x", "w"], ["y"])], {"w": floats(3)}),
        model([node("Pad", ["x", "p"], ["y"])], {"p": np.array([0, 1, 0, 1])}),
        model([node("Gather", ["x", "i"], ["y"], axis=1)], {"i": np.array([2, 0])}),
        model([node("BatchNormalization", ["x", *"wbmv"], ["y"])], {name: floats(3) ** 2 for name in "wbmv"}),
    )  # fmt: skip


def convert(data: bytes) -> None:
    module = OnnxModule(data)
    assert isinstance(module, torch.nn.Module) and module.output_names


def mutate_model(source: random.Random, data: bytes) -> bytes:
    if source.random() < 0.15:
        return mutate_bytes(source, data)
    try:
        message = onnx.load_model_from_string(data)
    except Exception:
        return mutate_bytes(source, data)
    message = mutate_message(source, message)
    if source.random() < 0.1:  # numbers that say how large things are
        for tensor in message.graph.initializer:
            if tensor.data_type == TensorProto.INT64:
                size = max(len(tensor.raw_data) // 8, 1)
                numbers = [source.choice((0, 1, -1, 3, 2**20, 2**31, 2**40, 2**62)) for _ in range(size)]
                tensor.raw_data = np.array(numbers, np.int64).tobytes()
    try:
        return message.SerializeToString()
    except Exception:
        return data


TARGETS = (Target("onnx", lambda: list(models()), convert, mutate_model),)
