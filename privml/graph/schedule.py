# SPDX-License-Identifier: Apache-2.0
"""Which lane computes which task of a graph, and in which order: from public numbers alone, so that both parties
make the same decision.

A task is *serial* when every other task that sends messages must come before or after it; all lanes compute it
together, dividing its calls. Between two serial tasks stands a region of tasks that may overlap. There every task runs
on one lane (list scheduling: the task with the longest way to the region's end goes first, to the lane where it starts
soonest; HEFT of Topcuoglu, Hariri and Wu, IEEE TPDS 2002, without insertion), unless computing them one after another
on all lanes is predicted to be faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# What one message in sequence counts in bytes: between a local network's delay and a wide-area one's.
HOP_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one task: messages in sequence, and bytes of both directions. Zero for what is computed locally."""

    hops: int = 0
    bytes: int = 0

    def weight(self, divided_over: int = 1) -> int:
        return self.hops * HOP_BYTES + self.bytes // divided_over


@dataclass(frozen=True, slots=True)
class Stage:
    """Tasks of each lane in their order; with a single list, all lanes compute its tasks together."""

    lanes: tuple[tuple[int, ...], ...]

    @property
    def overlaps(self) -> bool:
        return len(self.lanes) > 1


def schedule(costs: Sequence[Cost], inputs: Sequence[Sequence[int]], lanes: int) -> tuple[Stage, ...]:
    """The stages, one after another, of tasks 0, 1, ..., which stand in topological order; ``inputs[i]``: the tasks
    whose results i needs."""
    stages: list[Stage] = []
    together: list[int] = []
    for head, region in _regions(costs, inputs):
        together += head
        lists = _assign(region, costs, inputs, lanes) if lanes > 1 else None
        if lists is None:
            together += region
            continue
        stages += [Stage((tuple(together),))] if together else []
        stages.append(Stage(lists))
        together = []
    return (*stages, Stage((tuple(together),))) if together else tuple(stages)


def _regions(costs: Sequence[Cost], inputs: Sequence[Sequence[int]]) -> list[tuple[list[int], list[int]]]:
    """Pairs of a serial task (none in the first pair) and the tasks after it that no later serial task precedes."""
    count = len(costs)
    sends = sum(1 << i for i in range(count) if costs[i].weight() > 0)
    before, after = [0] * count, [0] * count  # bit sets of tasks
    for i in range(count):
        for j in inputs[i]:
            before[i] |= before[j] | 1 << j
    for i in reversed(range(count)):
        for j in inputs[i]:
            after[j] |= after[i] | 1 << i
    serial = [i for i in range(count) if sends >> i & 1 and (before[i] | after[i] | 1 << i) & sends == sends]
    mask = sum(1 << i for i in serial)
    regions: list[tuple[list[int], list[int]]] = [([], []), *(([i], []) for i in serial)]
    for i in range(count):
        if not mask >> i & 1:
            regions[(before[i] & mask).bit_count()][1].append(i)
    return regions


def _assign(
    tasks: Sequence[int], costs: Sequence[Cost], inputs: Sequence[Sequence[int]], lanes: int
) -> tuple[tuple[int, ...], ...] | None:
    """Lists of a region's tasks by lane, or None where they had better run one after another."""
    own = set(tasks)
    way = dict.fromkeys(tasks, 0)  # to the region's end, the task included
    for i in reversed(tasks):
        way[i] += costs[i].weight()
        for j in inputs[i]:
            if j in own:
                way[j] = max(way[j], way[i])
    lists: list[list[int]] = [[] for _ in range(lanes)]
    free = [0] * lanes
    end: dict[int, int] = {}
    place: dict[int, int] = {}
    for i in sorted(tasks, key=lambda i: (-way[i], i)):
        parents = [j for j in inputs[i] if j in own]
        ready = max((end[j] for j in parents), default=0)
        near = place[max(parents, key=lambda j: (end[j], j))] if parents else 0
        lane = min(range(lanes), key=lambda lane: (max(ready, free[lane]), lane != near, lane))
        lists[lane].append(i)
        place[i] = lane
        free[lane] = end[i] = max(ready, free[lane]) + costs[i].weight()
    if max(free, default=0) >= sum(costs[i].weight(lanes) for i in tasks):
        return None
    return tuple(tuple(each) for each in lists)
