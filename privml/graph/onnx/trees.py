# SPDX-License-Identifier: Apache-2.0
"""TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from onnx import numpy_helper

from privml.graph.onnx.forest import COMPARE, MEMBER, Forest, compare, reached, schedule
from privml.graph.onnx.hidden_trees import choose, hide
from privml.graph.onnx.linear_models import (
    as_float,
    binary_label,
    class_labels,
    floats,
    label_of,
    post_transform,
    two_columns,
)
from privml.graph.onnx.table import ML, Node, Run, operator
from privml.ops.choices import SELECT_ROWS

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", MEMBER)
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
# (x, thresholds, leaf weights, base values) -> scores [n, targets]
Evaluate = Callable[..., torch.Tensor]


def _read_nodes(node: Node, kind: str, targets: int) -> Forest:
    """The forest of the attributes nodes_* and ``kind``_* (versions 1 and 3)."""
    trees, ids = node.attribute("nodes_treeids"), node.attribute("nodes_nodeids")
    modes, features = node.attribute("nodes_modes"), node.attribute("nodes_featureids")
    yes, no = node.attribute("nodes_truenodeids"), node.attribute("nodes_falsenodeids")
    values = floats(node, "nodes_values")
    missing = node.attribute("nodes_missing_value_tracks_true") or [0] * len(ids)
    node.ignore("nodes_hitrates", "nodes_hitrates_as_tensor")
    for mode in set(modes) - {"LEAF"} - set(COMPARE):
        node.refuse(f"nodes_modes has {mode!r}, only {', '.join(COMPARE)} and LEAF are supported")
    inner = [i for i, mode in enumerate(modes) if mode != "LEAF"]
    leaves = [i for i, mode in enumerate(modes) if mode == "LEAF"]
    index = {n: i for i, n in enumerate(inner)} | {n: ~i for i, n in enumerate(leaves)}
    at = {(trees[n], ids[n]): index[n] for n in range(len(ids))}
    children = [(at[trees[n], yes[n]], at[trees[n], no[n]]) for n in inner]
    below = {child for pair in children for child in pair}
    roots = [index[n] for n in range(len(ids)) if index[n] not in below]
    weights = floats(node, f"{kind}_weights")
    table = np.zeros((len(leaves), targets), weights.dtype)
    rows = zip(*(node.attribute(f"{kind}_{name}") for name in ("treeids", "nodeids", "ids")), weights, strict=True)
    for tree, leaf, target, weight in rows:
        table[~at[tree, leaf], target] += weight
    return Forest(
        [modes[n] for n in inner],
        [features[n] for n in inner],
        values[inner],
        children,
        roots,
        table,
        [trees[n] for n in leaves],
        [bool(missing[n]) for n in inner],
    )


def _read_version_5(node: Node) -> Forest:
    """The forest of the one operator that replaces the two others."""
    modes = [_MODES[m] for m in numpy_helper.to_array(node.attribute("nodes_modes"))]
    yes, no = node.attribute("nodes_truenodeids"), node.attribute("nodes_falsenodeids")
    leaf_yes, leaf_no = node.attribute("nodes_trueleafs"), node.attribute("nodes_falseleafs")
    children = [(~yes[i] if leaf_yes[i] else yes[i], ~no[i] if leaf_no[i] else no[i]) for i in range(len(modes))]
    weights, targets = numpy_helper.to_array(node.attribute("leaf_weights")), node.attribute("leaf_targetids")
    table = np.zeros((len(weights), node.attribute("n_targets")), weights.dtype)
    table[np.arange(len(weights)), targets] = weights
    missing = node.attribute("nodes_missing_value_tracks_true") or [0] * len(modes)
    node.ignore("nodes_hitrates")
    roots, trees = list(node.attribute("tree_roots")), [0] * len(weights)
    # A tree of one leaf has a root whose branches are that leaf.
    for number, root in enumerate(roots):
        pending = [root]
        while pending:
            for child in children[pending.pop()]:
                if child < 0:
                    trees[~child] = number
                else:
                    pending.append(child)
    splits = numpy_helper.to_array(node.attribute("nodes_splits"))
    members = _members(node, modes)
    return Forest(
        modes, node.attribute("nodes_featureids"), splits, children, roots, table, trees,
        [bool(m) for m in missing], members,
    )  # fmt: skip


def _members(node: Node, modes: list[str]) -> dict[int, list[float]]:
    """The sets of the membership nodes: one list, the sets apart by NaN."""
    tensor = node.attribute("membership_values")
    if tensor is None:
        return {}
    sets: list[list[float]] = [[]]
    for value in numpy_helper.to_array(tensor):
        if np.isnan(value):
            sets.append([])
        else:
            sets[-1].append(float(value))
    nodes = [i for i, mode in enumerate(modes) if mode == MEMBER]
    return dict(zip(nodes, sets, strict=False))


def _evaluation(node: Node, forest: Forest, aggregate: str, base: Any) -> Evaluate:
    """Registers the parameters and returns the function that sums up the leaves reached."""
    hidden = node.tree_structure == "hidden"
    if hidden:
        forest, selection = hide(node, forest)
    plan = schedule(forest)
    trees = sorted(set(forest.trees))
    weights = forest.leaf_weights[plan.leaves]
    if aggregate in ("MIN", "MAX"):
        weights = _by_tree(node, weights[:, 0], [trees.index(forest.trees[leaf]) for leaf in plan.leaves], len(trees))
    if plan.order:
        if hidden:
            node.parameter("selection", selection[plan.order])
        node.parameter("thresholds", forest.thresholds[plan.order])
    node.parameter("leaf_weights", weights)
    if base is not None and len(base):
        node.parameter("base_values", base)

    def run(x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        rest = list(parameters)
        bits = x.new_zeros(x.shape[0], 1, dtype=torch.bool)
        if plan.order:
            values = choose(x, rest.pop(0)) if hidden else x.index_select(1, plan.features)
            bits = compare(forest, plan, values, rest.pop(0))
        scores = SELECT_ROWS(reached(plan, bits), rest.pop(0))
        if aggregate == "AVERAGE":
            scores = scores / len(trees)
        elif aggregate in ("MIN", "MAX"):
            scores = (scores.amin if aggregate == "MIN" else scores.amax)(1, keepdim=True)
        return scores + rest[0] if rest else scores

    return run


def _by_tree(node: Node, weights: np.ndarray, tree_of: list[int], trees: int) -> np.ndarray:
    """The leaves' weights [leaves], each in the column of its tree."""
    if node.attribute("n_targets", 1) > 1:
        node.refuse("the minimum or maximum (aggregate_function) of more than one target is not supported")
    spread = np.zeros((len(weights), trees), weights.dtype)
    spread[np.arange(len(weights)), tree_of] = weights
    return spread


@operator("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(node: Node) -> Run:
    aggregate = node.choice("aggregate_function", "SUM", *_AGGREGATES)
    _, transform = post_transform(node)
    forest = _read_nodes(node, "target", node.attribute("n_targets", 1))
    evaluate = _evaluation(node, forest, aggregate, floats(node, "base_values"))
    return lambda x, *parameters: transform(evaluate(as_float(x), *parameters)).float()


@operator("TreeEnsemble", domain=ML)
def tree_ensemble(node: Node) -> Run:
    number = node.attribute("post_transform", 0)
    if number not in (0, 1, 2):
        node.refuse(f"post_transform={number} is not supported, only 0, 1, 2 (NONE, SOFTMAX, LOGISTIC)")
    forest = _read_version_5(node)
    evaluate = _evaluation(node, forest, _AGGREGATES[node.attribute("aggregate_function", 1)], None)
    transform = (lambda s: s, lambda s: torch.softmax(s, -1), torch.sigmoid)[number]
    return lambda x, *parameters: transform(evaluate(x, *parameters)).to(x.dtype)


@operator("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(node: Node) -> Run:
    labels = class_labels(node, "classlabels_int64s")
    name, transform = post_transform(node)
    ids = set(node.attribute("class_ids"))
    base = floats(node, "base_values")
    forest = _read_nodes(node, "class", len(labels))
    one_score = len(labels) == 2 and len(ids) == 1
    if one_score and ids != {0}:
        node.refuse("weights of the second class alone; give the score of the second class the class_ids 0")
    if one_score and name == "SOFTMAX":
        node.refuse("post_transform=SOFTMAX of a single score is not supported")
    all_positive = bool(np.all(forest.leaf_weights >= 0))
    if one_score:
        forest.leaf_weights = forest.leaf_weights[:, list(ids)]
        if base is not None and len(base) == 2:
            node.refuse("two base_values for a single score; give the one of the second class")
    if len(forest.roots) == 1 and not node.wants(1):
        return _labels_of_leaves(node, forest, base, labels, (0.5 if all_positive else 0.0) if one_score else None)
    evaluate = _evaluation(node, forest, "SUM", base)

    def run(x: torch.Tensor, *parameters: torch.Tensor) -> Any:
        scores = evaluate(as_float(x), *parameters).float()
        if not one_score:
            return label_of(scores.argmax(-1), labels), transform(scores)
        label = binary_label(scores.squeeze(-1) > (0.5 if all_positive else 0), labels)
        if all_positive and name == "NONE":  # the score is a probability
            return label, torch.cat([1 - scores, scores], -1)
        return label, two_columns(scores, name)

    return run


def _labels_of_leaves(node: Node, forest: Forest, base: Any, labels: list[int], threshold: float | None) -> Run:
    """A single tree of which only the label is wanted: each leaf has one, so no scores are compared. ``threshold``: of
    a single score for the second class."""
    scores = forest.leaf_weights + (0 if base is None else base)
    chosen = scores.argmax(1) if threshold is None else (scores[:, 0] > threshold).astype(int)
    forest.leaf_weights = np.array(labels)[chosen, None].astype(np.float32)
    evaluate = _evaluation(node, forest, "SUM", None)
    return lambda x, *parameters: evaluate(as_float(x), *parameters).squeeze(-1).to(torch.int64)
