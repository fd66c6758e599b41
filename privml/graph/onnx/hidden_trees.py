# SPDX-License-Identifier: Apache-2.0
"""Trees of which only depth and number are public: all complete, and the feature of each node chosen secretly.

A leaf above the last level is repeated below nodes whose outcome does not matter. The feature of each node is the
product of the input with a secret row of one 1 and zeros else. Nodes lie as in a heap: those below node n are 2n and
2n + 1, and the path to a node is the bits of its number.
Source: Damgard et al., "New Primitives for Actively-Secure MPC over Rings", section V-A.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from privml.graph.onnx.forest import Forest
from privml.graph.onnx.table import Node
from privml.ops.choices import ONE_HOT_ROWS

# The comparison that a hidden tree makes everywhere, and the one with the outcomes exchanged.
_OPPOSITE = {"BRANCH_LEQ": "BRANCH_GT", "BRANCH_LT": "BRANCH_GTE"}
MOST_LEAVES = 1 << 20


def hide(node: Node, forest: Forest) -> tuple[Forest, np.ndarray]:
    """The complete forest of equal outputs, and the selection [nodes, features] of its nodes, one 1 in each row."""
    columns = (node.inputs[0].shape or (None,))[-1]
    if not columns:
        node.refuse("tree_structure=hidden needs the number of features: pass shapes={...} to OnnxModule")
    mode = _mode(node, forest)
    depth = max(_depth(forest, root) for root in forest.roots)
    if len(forest.roots) << depth > MOST_LEAVES:
        node.refuse(f"tree_structure=hidden makes {len(forest.roots)} trees of 2^{depth} leaves, beyond {MOST_LEAVES}")
    inner = (1 << depth) - 1
    total = inner * len(forest.roots)
    features, thresholds = [0] * total, np.zeros(total, forest.thresholds.dtype)
    children, leaves = [], []
    for tree, root in enumerate(forest.roots):
        start, first = tree * inner - 1, tree << depth
        heap = [0, root]  # the original node of each place; a leaf stands in for all below it
        for n in range(1, inner + 1):
            yes, no = heap[n], heap[n]
            if heap[n] >= 0:
                features[start + n], thresholds[start + n] = forest.features[heap[n]], forest.thresholds[heap[n]]
                yes, no = forest.children[heap[n]]
                if forest.modes[heap[n]] != mode:
                    yes, no = no, yes
            heap += [no, yes]
            below = (
                [start + 2 * n, start + 2 * n + 1]
                if 2 * n < inner
                else [~(first + 2 * n + b - inner - 1) for b in (0, 1)]
            )
            children.append((below[1], below[0]))
        leaves += [~leaf for leaf in heap[inner + 1 :]]
    roots = [tree * inner if inner else ~tree for tree in range(len(forest.roots))]
    selection = np.eye(columns, dtype=forest.thresholds.dtype)[features]
    complete = replace(
        forest, modes=[mode] * total, features=features, thresholds=thresholds, children=children, roots=roots,
        leaf_weights=forest.leaf_weights[leaves], trees=[forest.trees[leaf] for leaf in leaves],
        missing=[False] * total, members={},
    )  # fmt: skip
    return complete, selection


def _mode(node: Node, forest: Forest) -> str:
    """The comparison that all nodes can be written with, children exchanged where needed."""
    for mode, opposite in _OPPOSITE.items():
        if set(forest.modes) <= {mode, opposite}:
            return mode
    node.refuse(f"tree_structure=hidden needs comparisons of one kind, nodes_modes has {sorted(set(forest.modes))}")


def _depth(forest: Forest, root: int) -> int:
    """Comparisons on the longest path."""
    depth, level = -1, [root]
    while level:
        depth += 1
        level = [child for n in level if n >= 0 for child in forest.children[n]]
    return depth


def choose(x: torch.Tensor, selection: torch.Tensor) -> torch.Tensor:
    """The feature [n, nodes] of each node; an owner who might cheat proves first that its rows choose one each."""
    return x.to(selection.dtype) @ ONE_HOT_ROWS(selection).t()
