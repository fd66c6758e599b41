# SPDX-License-Identifier: Apache-2.0
"""Tree ensembles as tensors: one batched comparison, then the leaves reached, level by level.

Every inner node is compared whatever the path, so nothing depends on the data: a node is reached when its parent
is and the comparison points to it. The shape of the trees and the features they look at are public; thresholds
and leaf values are parameters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

COMPARE: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "BRANCH_LEQ": torch.le,
    "BRANCH_LT": torch.lt,
    "BRANCH_GTE": torch.ge,
    "BRANCH_GT": torch.gt,
    "BRANCH_EQ": torch.eq,
    "BRANCH_NEQ": torch.ne,
}
MEMBER = "BRANCH_MEMBER"


@dataclass(slots=True)
class Forest:
    """``modes``, ``features``, ``thresholds`` [nodes]; ``children`` [nodes]: (if true, if false); a leaf is
    ~index into ``leaf_weights`` [leaves, targets]. ``trees``: the tree of each leaf. ``missing``: whether NaN
    counts as true. ``members``: for BRANCH_MEMBER the set compared with, per node."""

    modes: list[str]
    features: list[int]
    thresholds: np.ndarray
    children: list[tuple[int, int]]
    roots: list[int]
    leaf_weights: np.ndarray
    trees: list[int]
    missing: list[bool]
    members: dict[int, list[float]] = field(default_factory=dict)


@dataclass(slots=True)
class Level:
    """Positions in the reached nodes of one level: of leaves, and of inner nodes with their comparisons."""

    leaves: torch.Tensor
    inner: torch.Tensor
    comparisons: torch.Tensor


@dataclass(slots=True)
class Schedule:
    """``order``: the inner nodes in the order of their comparisons, grouped by mode; ``groups``: (mode, count);
    ``leaves``: leaves in the order in which they are collected; ``features``, ``missing``: of each comparison its
    feature, and whether NaN counts as true (None: nowhere)."""

    order: list[int]
    groups: list[tuple[str, int]]
    levels: list[Level]
    leaves: list[int]
    features: torch.Tensor
    missing: torch.Tensor | None


def schedule(forest: Forest) -> Schedule:
    """Which comparisons are made, and what each level of all trees at once takes from them."""
    order = sorted(range(len(forest.modes)), key=lambda i: (forest.modes[i], i))
    place = {node: i for i, node in enumerate(order)}
    modes = [forest.modes[i] for i in order]
    groups = [(mode, modes.count(mode)) for mode in sorted(set(modes))]
    levels, leaves, frontier = [], [], list(forest.roots)
    while frontier:
        at_leaves = [i for i, node in enumerate(frontier) if node < 0]
        at_inner = [i for i, node in enumerate(frontier) if node >= 0]
        inner = [frontier[i] for i in at_inner]
        leaves += [~frontier[i] for i in at_leaves]
        levels.append(Level(torch.tensor(at_leaves), torch.tensor(at_inner), torch.tensor([place[n] for n in inner])))
        frontier = [forest.children[n][0] for n in inner] + [forest.children[n][1] for n in inner]
    features = torch.tensor([forest.features[i] for i in order])
    missing = torch.tensor([forest.missing[i] for i in order]) if any(forest.missing) else None
    return Schedule(order, groups, levels, leaves, features, missing)


def compare(forest: Forest, plan: Schedule, x: torch.Tensor, thresholds: torch.Tensor) -> torch.Tensor:
    """All comparisons, bool [n, nodes] in the order of the schedule; ``thresholds`` are in that order too."""
    values = x.index_select(1, plan.features)
    parts, start = [], 0
    for mode, count in plan.groups:
        whole = count == len(plan.order)
        columns = values if whole else values.narrow(1, start, count)
        if mode == MEMBER:
            parts.append(_member(forest, plan.order[start : start + count], columns))
        else:
            parts.append(COMPARE[mode](columns, thresholds if whole else thresholds.narrow(0, start, count)))
        start += count
    bits = parts[0] if len(parts) == 1 else torch.cat(parts, 1)
    if plan.missing is None:
        return bits
    return torch.logical_or(bits, torch.logical_and(torch.isnan(values), plan.missing))


def _member(forest: Forest, nodes: Sequence[int], columns: torch.Tensor) -> torch.Tensor:
    sets = [forest.members[n] for n in nodes]
    most = max(map(len, sets))
    padded = [values + values[-1:] * (most - len(values)) for values in sets]
    tests = [columns == torch.tensor([values[i] for values in padded], dtype=columns.dtype) for i in range(most)]
    return functools.reduce(torch.logical_or, tests)


def reached(plan: Schedule, bits: torch.Tensor) -> torch.Tensor:
    """bool [n, leaves]: the leaf that each sample reaches in each tree."""
    collected = []
    here: torch.Tensor | None = None  # at the roots everything is reached
    for level in plan.levels:
        if len(level.leaves):
            if here is None:  # trees of a single leaf
                collected.append(torch.ones(bits.shape[0], len(level.leaves), dtype=torch.bool))
            else:
                collected.append(here.index_select(1, level.leaves))
        if not len(level.inner):
            break
        outcome = bits.index_select(1, level.comparisons)
        if here is None:
            yes, no = outcome, torch.logical_not(outcome)
        else:
            parent = here.index_select(1, level.inner)
            yes = torch.logical_and(parent, outcome)
            no = torch.logical_xor(parent, yes)
        here = torch.cat([yes, no], 1)
    return collected[0] if len(collected) == 1 else torch.cat(collected, 1)
