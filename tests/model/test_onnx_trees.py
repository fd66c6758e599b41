# SPDX-License-Identifier: Apache-2.0
"""Trees of ai.onnx.ml with public and hidden structure, against onnxruntime."""

import numpy as np
import pytest
import torch
from onnx import helper
from onnx_ml import DOUBLE, FLOAT, LABELLED, POSTS, check, compute, floats, forest, model, weights

import privml
from privml.errors import ConfigError, UnsupportedOperator
from privml.graph.onnx.forest import Forest, reached, schedule
from privml.graph.onnx.hidden_trees import hide
from privml.graph.onnx.module import OnnxModule
from privml.graph.onnx.table import Node
from privml.graph.onnx.trees import _read_nodes
from privml.graph.onnx.values import Value


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
