# SPDX-License-Identifier: Apache-2.0
"""Models of one operator of ai.onnx.ml with random attributes, computed here and by onnxruntime."""

import numpy as np
import onnxruntime
import torch
from onnx import TensorProto, helper

from privml.graph.onnx.module import OnnxModule

FLOAT, DOUBLE, INT64, STRING = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.STRING
POSTS = ["NONE", "LOGISTIC", "SOFTMAX"]
LABELLED = [("Y", INT64), ("Z", FLOAT)]
PLAIN = [("Y", FLOAT)]


def floats(rng, *shape):
    return [float(v) for v in rng.normal(size=shape).astype(np.float32).ravel()]


def model(kind, outputs=PLAIN, input_type=FLOAT, columns=5, **attributes):
    node = helper.make_node(kind, ["X"], [name for name, _ in outputs], domain="ai.onnx.ml", **attributes)
    inputs = [helper.make_tensor_value_info("X", input_type, [None, columns])]
    results = [helper.make_tensor_value_info(name, element, None) for name, element in outputs]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph([node], "g", inputs, results), opset_imports=opsets, ir_version=10)


def compute(proto, x, tree_structure="public"):
    with torch.no_grad():
        y = OnnxModule(proto, tree_structure=tree_structure)(torch.from_numpy(x))
    return y if isinstance(y, tuple) else (y,)


def check(proto, x, tolerance=2e-5, tree_structure="public"):
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, {"X": x})
    for got, want in zip(compute(proto, x, tree_structure), expected, strict=True):
        torch.testing.assert_close(got, torch.from_numpy(want), atol=tolerance, rtol=10 * tolerance)


def forest(rng, trees=4, depth=4, modes=("BRANCH_LEQ",), missing=False):
    """(attributes of random trees, (tree, node) of the leaves)."""
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    table = {f"nodes_{name}": [] for name in (*names, "missing_value_tracks_true")}
    leaves = []

    def grow(tree, counter, left):
        node, row = counter[0], len(table["nodes_nodeids"])
        counter[0] += 1
        leaf = left == 0 or (left < depth and rng.random() < 0.2)
        entry = {"treeids": tree, "nodeids": node, "modes": "LEAF" if leaf else str(rng.choice(modes))}
        entry["values"] = 0.0 if leaf else float(np.float32(round(rng.normal(), 1)))
        entry["featureids"] = 0 if leaf else int(rng.integers(5))
        entry["missing_value_tracks_true"] = int(missing and not leaf and rng.random() < 0.5)
        for name in table:
            table[name].append(entry.get(name.removeprefix("nodes_"), 0))
        if leaf:
            leaves.append((tree, node))
        else:
            table["nodes_truenodeids"][row] = grow(tree, counter, left - 1)
            table["nodes_falsenodeids"][row] = grow(tree, counter, left - 1)
        return node

    for tree in range(trees):
        grow(tree, [0], depth)
    if not missing:
        del table["nodes_missing_value_tracks_true"]
    return table, leaves


def weights(rng, kind, leaves, columns, values=None):
    """Attributes that give each leaf a weight for each of ``columns`` targets or classes."""
    values = floats(rng, len(leaves), columns) if values is None else values
    ids = [(tree, node, column) for tree, node in leaves for column in range(columns)]
    names = ("treeids", "nodeids", "ids")
    return {f"{kind}_{n}": list(c) for n, c in zip(names, zip(*ids, strict=True), strict=True)} | {
        f"{kind}_weights": values
    }


def support_vectors(rng, counts):
    classes, vectors = len(counts), sum(counts)
    return {
        "support_vectors": floats(rng, vectors, 5),
        "coefficients": floats(rng, classes - 1, vectors),
        "rho": floats(rng, classes * (classes - 1) // 2),
        "vectors_per_class": counts,
        "classlabels_ints": list(range(1, classes + 1)),
    }
