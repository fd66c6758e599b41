# SPDX-License-Identifier: Apache-2.0
"""Models of ai.onnx.ml (trees, support vectors, linear models, preparation of features), against onnxruntime."""

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper

import privml
from privml.errors import UnsupportedOperator
from privml.frontend.onnx import OnnxModule

FLOAT, DOUBLE, INT64 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64
POSTS = ["NONE", "LOGISTIC", "SOFTMAX"]
LABELLED = [("Y", INT64), ("Z", FLOAT)]
PLAIN = [("Y", FLOAT)]


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def x(rng):
    """Rounded, so that thresholds are met exactly too."""
    return rng.normal(size=(30, 5)).round(1).astype(np.float32)


def floats(rng, *shape):
    return [float(v) for v in rng.normal(size=shape).astype(np.float32).ravel()]


def model(kind, outputs=PLAIN, input_type=FLOAT, columns=5, **attributes):
    node = helper.make_node(kind, ["X"], [name for name, _ in outputs], domain="ai.onnx.ml", **attributes)
    inputs = [helper.make_tensor_value_info("X", input_type, [None, columns])]
    results = [helper.make_tensor_value_info(name, element, None) for name, element in outputs]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph([node], "g", inputs, results), opset_imports=opsets, ir_version=10)


def compute(proto, x):
    with torch.no_grad():
        y = OnnxModule(proto)(torch.from_numpy(x))
    return y if isinstance(y, tuple) else (y,)


def check(proto, x, tolerance=2e-5):
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, {"X": x})
    for got, want in zip(compute(proto, x), expected, strict=True):
        torch.testing.assert_close(got, torch.from_numpy(want), atol=tolerance, rtol=10 * tolerance)


# ---- trees
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


@pytest.mark.parametrize(("aggregate", "targets"), [("SUM", 1), ("SUM", 2), ("AVERAGE", 2), ("MIN", 1), ("MAX", 1)])
@pytest.mark.parametrize("base", [False, True])
def test_tree_regressor(rng, x, aggregate, targets, base):
    trees, leaves = forest(rng)
    extra = {"base_values": floats(rng, targets)} if base else {}
    extra |= weights(rng, "target", leaves, targets)
    check(model("TreeEnsembleRegressor", n_targets=targets, aggregate_function=aggregate, **trees, **extra), x)


@pytest.mark.parametrize(
    "modes",
    [["BRANCH_LT"], ["BRANCH_GT"], ["BRANCH_GTE"], ["BRANCH_EQ"], ["BRANCH_NEQ"], ["BRANCH_LEQ", "BRANCH_GT"]],
)
def test_tree_comparisons(rng, x, modes):
    trees, leaves = forest(rng, modes=modes)
    check(model("TreeEnsembleRegressor", n_targets=1, **trees, **weights(rng, "target", leaves, 1)), x)


def test_tree_missing_values(rng, x):
    trees, leaves = forest(rng, missing=True)
    x[::3, 1] = x[1::3, 3] = np.nan
    check(model("TreeEnsembleRegressor", n_targets=1, **trees, **weights(rng, "target", leaves, 1)), x)


@pytest.mark.parametrize("depth", [0, 1])
def test_shallow_trees(rng, x, depth):
    trees, leaves = forest(rng, depth=depth)
    check(model("TreeEnsembleRegressor", n_targets=1, **trees, **weights(rng, "target", leaves, 1)), x)


def test_tree_of_doubles(rng, x):
    trees, leaves = forest(rng)
    extra = weights(rng, "target", leaves, 1)
    check(model("TreeEnsembleRegressor", input_type=DOUBLE, n_targets=1, **trees, **extra), x.astype(np.float64))


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("base", [False, True])
def test_tree_classifier(rng, x, post, base):
    trees, leaves = forest(rng)
    extra = {"base_values": floats(rng, 3)} if base else {}
    extra |= weights(rng, "class", leaves, 3)
    labels = [5, 2, 9]
    check(
        model("TreeEnsembleClassifier", LABELLED, classlabels_int64s=labels, post_transform=post, **trees, **extra), x
    )


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("base", [False, True])
def test_binary_tree_classifier(rng, x, post, probabilities, base):
    """One score for the second class, as gradient boosting and random forests are written."""
    trees, leaves = forest(rng)
    values = [float(v) for v in rng.random(len(leaves)).astype(np.float32) / 4] if probabilities else None
    extra = {"base_values": floats(rng, 1)} if base else {}
    extra |= weights(rng, "class", leaves, 1, values)
    check(
        model("TreeEnsembleClassifier", LABELLED, classlabels_int64s=[3, 8], post_transform=post, **trees, **extra), x
    )


def test_a_tree_is_one_batched_comparison_and_its_weights_parameters(rng, x):
    trees, leaves = forest(rng)
    module = OnnxModule(model("TreeEnsembleRegressor", n_targets=1, **trees, **weights(rng, "target", leaves, 1)))
    inner = sum(mode != "LEAF" for mode in trees["nodes_modes"])
    assert sorted(p.numel() for p in module.parameters()) == sorted([inner, len(leaves)])
    program = torch.export.export(module, (torch.from_numpy(x),)).run_decompositions({})
    names = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    assert names.count("aten.le.Tensor") == 1 and names.count("aten.matmul.default") == 1
    assert not any(n.startswith(("aten.ge", "aten.gt", "aten.lt", "aten.index.")) for n in names)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classlabels_int64s": [], "classlabels_strings": ["a", "b", "c"]}, "string labels"),
        ({"post_transform": "PROBIT"}, "post_transform='PROBIT'"),
    ],
)
def test_refused_classifiers(rng, change, message):
    trees, leaves = forest(rng)
    attributes = {"classlabels_int64s": [0, 1, 2], **trees, **weights(rng, "class", leaves, 3), **change}
    with pytest.raises(UnsupportedOperator, match=message):
        OnnxModule(model("TreeEnsembleClassifier", LABELLED, **{k: v for k, v in attributes.items() if v != []}))


def test_secret_trees(rng, x, open_session):
    trees, leaves = forest(rng, trees=2, depth=3)
    proto = model("TreeEnsembleRegressor", n_targets=2, **trees, **weights(rng, "target", leaves, 2))
    (expected,) = compute(proto, x[:6])
    with open_session(), torch.no_grad():
        result = privml.secret(OnnxModule(proto))(privml.share(torch.from_numpy(x[:6]), owner=1))
        torch.testing.assert_close(privml.reveal(result), expected, atol=1e-3, rtol=0)


# ---- linear models and support vectors
@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_classifier(rng, x, post, classes):
    extra = {"coefficients": floats(rng, classes, 5), "intercepts": floats(rng, classes)}
    labels = [4, 1, 7][:classes]
    check(model("LinearClassifier", LABELLED, classlabels_ints=labels, post_transform=post, **extra), x)


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC"])
def test_linear_classifier_of_one_score(rng, x, post):
    extra = {"coefficients": floats(rng, 5), "intercepts": floats(rng, 1)}
    check(model("LinearClassifier", LABELLED, classlabels_ints=[3, 7], post_transform=post, **extra), x)


@pytest.mark.parametrize("post", POSTS)
def test_linear_regressor(rng, x, post):
    extra = {"coefficients": floats(rng, 2, 5), "intercepts": floats(rng, 2)}
    check(model("LinearRegressor", targets=2, post_transform=post, **extra), x)


KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_svm_regressor(rng, x, kernel, one_class):
    extra = {"support_vectors": floats(rng, 7, 5), "coefficients": floats(rng, 7), "n_supports": 7, "rho": [0.3]}
    kernel = {"kernel_type": kernel, "kernel_params": [0.3, 0.2, 3.0]}
    check(model("SVMRegressor", one_class=one_class, **kernel, **extra), x)


def support_vectors(rng, counts):
    classes, vectors = len(counts), sum(counts)
    return {
        "support_vectors": floats(rng, vectors, 5),
        "coefficients": floats(rng, classes - 1, vectors),
        "rho": floats(rng, classes * (classes - 1) // 2),
        "vectors_per_class": counts,
        "classlabels_ints": list(range(1, classes + 1)),
    }


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("counts", [[3, 2], [3, 2, 4], [2, 1, 3, 2]])
@pytest.mark.parametrize("post", ["NONE", "LOGISTIC"])
def test_svm_classifier(rng, x, kernel, counts, post):
    kernel = {"kernel_type": kernel, "kernel_params": [0.3, 0.2, 3.0]}
    check(model("SVMClassifier", LABELLED, post_transform=post, **kernel, **support_vectors(rng, counts)), x)


def test_svm_classifier_with_probabilities(rng, x):
    extra = support_vectors(rng, [3, 2])
    # onnxruntime iterates towards the sigmoid, to about a thousandth.
    extra |= {"kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 0.0]}
    check(model("SVMClassifier", LABELLED, prob_a=[-1.2], prob_b=[0.3], **extra), x, 2e-3)
    with pytest.raises(UnsupportedOperator, match="more than two classes"):
        extra = support_vectors(rng, [3, 2, 2])
        OnnxModule(model("SVMClassifier", LABELLED, prob_a=[1.0] * 3, prob_b=[0.0] * 3, **extra))


# ---- features
@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(x, norm):
    check(model("Normalizer", norm=norm), x + 0.03)


@pytest.mark.parametrize("columns", [1, 5])
def test_scaler(rng, x, columns):
    check(model("Scaler", offset=floats(rng, columns), scale=floats(rng, columns)), x)


def test_binarizer(x):
    check(model("Binarizer", threshold=0.3), x)


def test_imputer(x):
    x[::2, 1] = np.nan
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    check(model("Imputer", imputed_value_floats=values, replaced_value_float=float("nan")), x)


@pytest.mark.parametrize(
    ("kind", "output", "attributes"),
    [
        ("Scaler", FLOAT, {"offset": [0.5], "scale": [2.0]}),
        ("OneHotEncoder", FLOAT, {"cats_int64s": [0, 2, 3], "zeros": 1}),
        ("LabelEncoder", INT64, {"keys_int64s": [0, 2, 3], "values_int64s": [7, 8, 9], "default_int64": -5}),
        ("LabelEncoder", FLOAT, {"keys_int64s": [0, 2, 3], "values_floats": [7.5, 8.0, 9.0]}),
        ("Imputer", INT64, {"imputed_value_int64s": [9], "replaced_value_int64": 2}),
    ],
)
def test_integer_features(rng, kind, output, attributes):
    x = rng.integers(0, 5, size=(6, 3))
    check(model(kind, [("Y", output)], INT64, 3, **attributes), x)


def test_zip_map_is_dropped(rng, x):
    """The scores stay a tensor where onnxruntime makes a list of dictionaries of them."""
    proto = model("LinearClassifier", LABELLED, classlabels_ints=[0, 1, 2], coefficients=floats(rng, 3, 5))
    (_, scores) = compute(proto, x)
    proto.graph.node.append(helper.make_node("ZipMap", ["Z"], ["P"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2]))
    kind = helper.make_sequence_type_proto(helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, [])))
    proto.graph.output[1].CopyFrom(helper.make_value_info("P", kind))
    torch.testing.assert_close(compute(proto, x)[1], scores)
