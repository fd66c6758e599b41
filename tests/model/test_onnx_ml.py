# SPDX-License-Identifier: Apache-2.0
"""Models of ai.onnx.ml (trees, support vectors, linear models, preparation of features), against onnxruntime."""

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import privml
from privml.errors import ConfigError, CorruptFile, UnsupportedOperator
from privml.frontend.onnx import OnnxModule
from privml.frontend.onnx.forest import Forest, reached, schedule
from privml.frontend.onnx.hidden_trees import hide
from privml.frontend.onnx.table import Node
from privml.frontend.onnx.trees import _read_nodes
from privml.frontend.onnx.values import Value
from privml.program import Program

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


def compute(proto, x, tree_structure="public"):
    with torch.no_grad():
        y = OnnxModule(proto, tree_structure=tree_structure)(torch.from_numpy(x))
    return y if isinstance(y, tuple) else (y,)


def check(proto, x, tolerance=2e-5, tree_structure="public"):
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, {"X": x})
    for got, want in zip(compute(proto, x, tree_structure), expected, strict=True):
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


@pytest.mark.parametrize("structure", ["public", "hidden"])
@pytest.mark.parametrize("depth", [0, 1, 2, 3, 5, 8, 9])
def test_trees_of_any_depth(rng, x, depth, structure):
    trees, leaves = forest(rng, depth=depth)
    proto = model("TreeEnsembleRegressor", n_targets=1, **trees, **weights(rng, "target", leaves, 1))
    check(proto, x, tree_structure=structure)


def test_a_tree_of_one_leaf_beside_others(rng, x):
    trees, leaves = forest(rng, depth=3)
    for name, value in (("treeids", 9), ("nodeids", 0), ("modes", "LEAF")):
        trees[f"nodes_{name}"].append(value)
    for name in ("featureids", "values", "truenodeids", "falsenodeids"):
        trees[f"nodes_{name}"].append(0)
    proto = model("TreeEnsembleRegressor", n_targets=2, **trees, **weights(rng, "target", [*leaves, (9, 0)], 2))
    for structure in ("public", "hidden"):
        check(proto, x, tree_structure=structure)


@pytest.mark.parametrize("modes", [["BRANCH_LT"], ["BRANCH_GT", "BRANCH_LEQ"], ["BRANCH_LT", "BRANCH_GTE"]])
@pytest.mark.parametrize("aggregate", ["AVERAGE", "MIN"])
def test_hidden_comparisons(rng, x, modes, aggregate):
    trees, leaves = forest(rng, modes=modes)
    extra = weights(rng, "target", leaves, 1)
    proto = model("TreeEnsembleRegressor", n_targets=1, aggregate_function=aggregate, **trees, **extra)
    check(proto, x, tree_structure="hidden")


def test_what_cannot_be_hidden(rng, x):
    trees, leaves = forest(rng, modes=["BRANCH_LEQ", "BRANCH_EQ"], depth=5)
    proto = model("TreeEnsembleRegressor", n_targets=1, **trees, **weights(rng, "target", leaves, 1))
    with pytest.raises(UnsupportedOperator, match="comparisons of one kind"):
        OnnxModule(proto, tree_structure="hidden")
    with pytest.raises(ConfigError, match="public, hidden"):
        OnnxModule(proto, tree_structure="secret")


def test_a_hidden_tree_shows_depth_and_number_alone(rng, x):
    """Two forests of one depth give the same graph; nothing but parameters tells them apart."""
    bodies = []
    for _ in range(2):
        trees, leaves = forest(rng, trees=3)
        proto = model("TreeEnsembleRegressor", n_targets=1, **trees, **weights(rng, "target", leaves, 1))
        module = OnnxModule(proto, tree_structure="hidden")
        program = torch.export.export(module, (torch.from_numpy(x),))
        bodies.append([(str(n.target), str(n.args)) for n in program.graph.nodes])
        constants = [value for name, value in program.constants.items() if isinstance(value, torch.Tensor)]
        bodies[-1] += [value.tolist() for value in constants]
        assert {tuple(p.shape) for p in module.parameters()} == {(45, 5), (45,), (48, 1)}
    assert bodies[0] == bodies[1] and len(bodies[0]) > 10


def test_the_path_to_a_hidden_leaf_is_the_bits_of_its_number(rng):
    """Node n stands above 2n (its outcome is 0) and 2n + 1 (it is 1); leaves are numbered after the inner nodes."""
    trees, leaves = forest(rng, trees=1, depth=3)
    node = helper.make_node("TreeEnsembleRegressor", ["X"], ["Y"], domain="ai.onnx.ml", n_targets=1, **trees,
                            **weights(rng, "target", leaves, 1))  # fmt: skip
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    decoded = {k: [v.decode() for v in a] if k == "nodes_modes" else a for k, a in attributes.items()}
    seen = Node(node, [Value("X", FLOAT, (None, 5))], [True], decoded)
    complete, selection = hide(seen, _read_nodes(seen, "target", 1))
    plan = schedule(complete)
    for code in range(1 << 7):
        outcome = [(code >> i) & 1 for i in range(7)]  # of nodes 1 to 7
        bits = torch.tensor([[outcome[node] for node in plan.order]], dtype=torch.bool)
        n = 1
        while n < 8:
            n = 2 * n + outcome[n - 1]
        (place,) = reached(plan, bits)[0].nonzero().flatten().tolist()
        assert plan.leaves[place] == n - 8
    assert selection.sum(1).tolist() == [1.0] * 7


@pytest.mark.parametrize(("depth", "rounds"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4)])
def test_paths_are_balanced_products(depth, rounds):
    """log2(d) rounds, and siblings share a product: a complete tree needs hardly more products than it has leaves."""
    inner = (1 << depth) - 1
    children = [(2 * n + 1, 2 * n + 2) if 2 * n + 1 < inner else (~(2 * n + 1 - inner), ~(2 * n + 2 - inner))
                for n in range(inner)]  # fmt: skip
    tree = Forest(["BRANCH_LEQ"] * inner, [0] * inner, np.zeros(inner), children, [0], np.zeros((inner + 1, 1)),
                  [0] * (inner + 1), [False] * inner)  # fmt: skip
    plan = schedule(tree)
    assert len(plan.rounds) == rounds
    assert sum(len(r.upper) for r in plan.rounds) <= 3 * (inner + 1)


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
    assert names.count("aten.le.Tensor") == 1 and names.count("privml.select_rows.default") == 1
    assert not any(n.startswith(("aten.ge", "aten.gt", "aten.lt", "aten.index.")) for n in names)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classlabels_int64s": []}, "classlabels_int64s is missing"),
        ({"post_transform": "PROBIT"}, "post_transform='PROBIT'"),
    ],
)
def test_refused_classifiers(rng, change, message):
    trees, leaves = forest(rng)
    attributes = {"classlabels_int64s": [0, 1, 2], **trees, **weights(rng, "class", leaves, 3), **change}
    with pytest.raises(UnsupportedOperator, match=message):
        OnnxModule(model("TreeEnsembleClassifier", LABELLED, **{k: v for k, v in attributes.items() if v != []}))


@pytest.mark.parametrize("structure", ["public", "hidden"])
def test_secret_trees(rng, x, open_session, structure):
    trees, leaves = forest(rng, trees=2, depth=3)
    x = x + np.float32(0.03)  # thresholds are not met exactly: products with choices may round
    proto = model("TreeEnsembleRegressor", n_targets=2, **trees, **weights(rng, "target", leaves, 2))
    (expected,) = compute(proto, x[:6])
    with open_session() as session, torch.no_grad():
        if structure == "hidden" and session.engine.actively_secure:
            pytest.skip("the proof is of whole numbers, which only conversion shares; see test_hidden_trees")
        result = privml.secret(OnnxModule(proto, tree_structure=structure))(
            privml.share(torch.from_numpy(x[:6]), owner=1)
        )
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


# ---- labels
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


STRING = TensorProto.STRING
NAMES = ["ash", "birch", "cedar"]


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
