# SPDX-License-Identifier: Apache-2.0
"""Tree ensembles as tensors: one batched comparison, then the leaves reached, as balanced products of the outcomes.

Every inner node is compared whatever the path, so nothing depends on the data: a leaf is reached when every comparison
above it points to it. The shape of the trees and the features they look at are public (see ``complete`` for trees that
hide them); thresholds and leaf values are parameters.
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
class Round:
    """Products of one level of all paths: columns ``upper`` and ``lower`` of what is known so far; then the siblings of
    some of them (``product``), which are what is left of the path above (``above``)."""

    upper: torch.Tensor
    lower: torch.Tensor
    above: torch.Tensor
    product: torch.Tensor


@dataclass(slots=True)
class Schedule:
    """``order``: the inner nodes in the order of their comparisons, grouped by mode; ``groups``: (mode, count);
    ``rounds``: the products that give the paths; ``leaves``: the leaf at the end of each path; ``places``: the paths'
    columns; ``bare``: whether some tree is a single leaf, which everything reaches; ``features``, ``missing``: of each
    comparison its feature, and whether NaN counts as true (None: nowhere)."""

    order: list[int]
    groups: list[tuple[str, int]]
    rounds: list[Round]
    leaves: list[int]
    places: torch.Tensor
    bare: bool
    features: torch.Tensor
    missing: torch.Tensor | None


# A step of a path: the comparison's column, and the outcome that leads on.
Step = tuple[int, bool]
Path = tuple[Step, ...]


def schedule(forest: Forest) -> Schedule:
    """Which comparisons are made, and the products of all paths at once, balanced: a path of d steps takes log2(d)
    rounds, and paths share the products of what they have in common."""
    order = sorted(range(len(forest.modes)), key=lambda i: (forest.modes[i], i))
    place = {node: i for i, node in enumerate(order)}
    modes = [forest.modes[i] for i in order]
    groups = [(mode, modes.count(mode)) for mode in sorted(set(modes))]
    ends = paths(forest, place)
    rounds, columns = _balanced([path for _, path in ends], len(order))
    places = torch.tensor([columns[path] for _, path in ends])
    features = torch.tensor([forest.features[i] for i in order])
    missing = torch.tensor([forest.missing[i] for i in order]) if any(forest.missing) else None
    bare = any(not path for _, path in ends)
    return Schedule(order, groups, rounds, [leaf for leaf, _ in ends], places, bare, features, missing)


def paths(forest: Forest, place: dict[int, int]) -> list[tuple[int, Path]]:
    """(leaf, steps from its root) of every path; ``place``: the column of each inner node."""
    found = []
    for root in forest.roots:
        pending: list[tuple[int, Path]] = [(root, ())]
        while pending:
            node, path = pending.pop()
            if node < 0:
                found.append((~node, path))
                continue
            yes, no = forest.children[node]
            pending += [(no, (*path, (place[node], False))), (yes, (*path, (place[node], True)))]
    return found


def _halves(path: Path) -> tuple[Path, Path]:
    """A path's first steps, the largest power of two of them, and the rest."""
    cut = 1 << ((len(path) - 1).bit_length() - 1)
    return path[:cut], path[cut:]


def _balanced(ends: list[Path], nodes: int) -> tuple[list[Round], dict[Path, int]]:
    """The rounds, and the column of each path. Columns 0 .. nodes - 1 are the comparisons, the next ones their
    negations; an empty path (a tree of one leaf) has the column that comes last."""
    needed: list[set[Path]] = []
    pending = set(ends)
    while pending:
        path = pending.pop()
        level = (len(path) - 1).bit_length()  # log2 of the length, rounded up
        if len(path) < 2 or (level <= len(needed) and path in needed[level - 1]):
            continue
        needed += [set() for _ in range(level - len(needed))]
        needed[level - 1].add(path)
        pending.update(_halves(path))
    columns: dict[Path, int] = {((node, yes),): node + (0 if yes else nodes) for node in range(nodes) for yes in _BOTH}
    count, rounds = 2 * nodes, []
    for level in needed:
        siblings = [path for path in sorted(level) if _turned(path) in level and not path[-1][1]]
        products = sorted(level - set(siblings))
        index = {path: i for i, path in enumerate(products)}
        halves = [_halves(path) for path in products]
        rounds.append(
            Round(
                torch.tensor([columns[upper] for upper, _ in halves]),
                torch.tensor([columns[lower] for _, lower in halves]),
                torch.tensor([columns[path[:-1]] for path in siblings]),
                torch.tensor([index[_turned(path)] for path in siblings]),
            )
        )
        for path in (*products, *siblings):
            columns[path], count = count, count + 1
    columns[()] = count
    return rounds, columns


_BOTH = (True, False)


def _turned(path: Path) -> Path:
    """The path to the sibling, if a product with the last step alone makes this one; else one that is not needed."""
    upper, lower = _halves(path)
    node, yes = path[-1]
    return (*upper, (node, not yes)) if len(lower) == 1 else ()


def compare(forest: Forest, plan: Schedule, values: torch.Tensor, thresholds: torch.Tensor) -> torch.Tensor:
    """All comparisons, bool [n, nodes], of ``values`` [n, nodes] with ``thresholds``, in the order of the schedule."""
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
    """bool [n, paths]: the leaves that each sample reaches, one in each tree."""
    if not plan.order:
        return torch.ones(bits.shape[0], len(plan.leaves), dtype=torch.bool)
    known = torch.cat([bits, torch.logical_not(bits)], 1)
    for level in plan.rounds:
        product = torch.logical_and(known.index_select(1, level.upper), known.index_select(1, level.lower))
        parts = [known, product]
        if len(level.above):
            parts.append(torch.logical_xor(known.index_select(1, level.above), product.index_select(1, level.product)))
        known = torch.cat(parts, 1)
    if plan.bare:
        known = torch.cat([known, torch.ones(bits.shape[0], 1, dtype=torch.bool)], 1)
    return known.index_select(1, plan.places)
