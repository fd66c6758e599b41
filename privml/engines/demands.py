# SPDX-License-Identifier: Apache-2.0
"""Numbers of correlations that an actively secure session draws, by kind, as the compiled core names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

Demand = Mapping[str, Any]
NOTHING: Demand = {}


class Item(NamedTuple):
    """A kind of correlation; ``part``: whose mask, how many bits of a number, what shape of a product."""

    kind: str
    part: Any = None

    @property
    def key(self) -> str:
        return self.kind if self.part is None else f"{self.kind}/{self.part}"


def items_of(demand: Demand) -> dict[Item, int]:
    """How many of each item a demand names."""
    counts: dict[Item, int] = {}
    for kind, value in demand.items():
        parts = {None: value} if isinstance(value, int) else value
        pairs = parts.items() if isinstance(parts, Mapping) else enumerate(parts)
        counts.update({Item(kind, part): count for part, count in pairs if count})
    return counts


def demand_for(item: Item, count: int, like: Demand) -> dict[str, Any]:
    """The demand of ``count`` such items alone, in the form of ``like``."""
    demand = difference(like, like)
    whole = demand[item.kind]
    if item.part is None:
        demand[item.kind] = count
    elif isinstance(whole, Mapping):
        demand[item.kind] = {item.part: count}
    else:
        demand[item.kind] = tuple(count if index == item.part else 0 for index in range(len(whole)))
    return demand


def difference(after: Demand, before: Demand) -> dict[str, Any]:
    """What was drawn meanwhile."""
    result: dict[str, Any] = {}
    for kind, value in after.items():
        earlier = before[kind]
        if isinstance(value, int):
            result[kind] = value - earlier
        elif isinstance(value, Mapping):
            left = {part: count - earlier.get(part, 0) for part, count in value.items()}
            result[kind] = {part: count for part, count in left.items() if count}
        else:
            result[kind] = tuple(a - b for a, b in zip(value, earlier, strict=True))
    return result


def times(demand: Demand, factor: int) -> dict[str, Any]:
    """``factor`` times as many of all."""
    result: dict[str, Any] = {}
    for kind, value in demand.items():
        if isinstance(value, int):
            result[kind] = value * factor
        elif isinstance(value, Mapping):
            result[kind] = {part: count * factor for part, count in value.items()}
        else:
            result[kind] = tuple(count * factor for count in value)
    return result
