# SPDX-License-Identifier: Apache-2.0
"""The operators of the actively secure session that suites name, and what each draws; numpy and the core are all this
needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

SHIFT = 16
NOTHING = {"masks": (0, 0), "randoms": 0, "triples": 0, "squares": 0, "bits": 0, "bit_triples": 0, "edabits": {}}
# Operations that are correlations alone.
CORRELATIONS = {"triple": "triples", "bit_triple": "bit_triples", "random_bit": "bits"}


def prepare(core: Any, session: Any, rank: int, task: Mapping[str, Any]) -> Callable[[], None]:
    """The operation on n numbers that are shared already, and the check of all that it opened; raises KeyError for an
    unknown name."""
    protocols, ring, n = core.spdz2k, session.ring, task["n"]
    bits = min(int(task["params"].get("bits", ring)), ring)
    values = np.random.default_rng(7).integers(-(2**30), 2**30, n) if rank == 0 else None
    x, y = (protocols.input(session, values, [n], 0) for _ in range(2))
    bit = protocols.less_than_zero(session, x, bits) if task["operator"] == "select" else None
    session.check()
    operations: dict[str, Callable[[], Any]] = {
        "multiply": lambda: protocols.multiply(session, x, y),
        "equal": lambda: protocols.equal_zero(session, x, bits),
        "less_than": lambda: protocols.less_than_zero(session, x, bits),
        "truncate": lambda: protocols.truncate(session, x, bits, SHIFT, "exact"),
        "select": lambda: protocols.multiply(session, protocols.bits_to_ring(session, bit), x),
    }
    operation = operations[task["operator"]]

    def action() -> None:
        operation()
        session.check()

    return action


def demand_of(core: Any, task: Mapping[str, Any]) -> dict[str, Any]:
    """What n operations draw."""
    if task["operator"] in CORRELATIONS:
        return {**NOTHING, CORRELATIONS[task["operator"]]: task["n"]}
    meter = core.ActiveSession.meter(0, task["ring"], "ideal")
    action = prepare(core, meter, 1, task)
    before = meter.drawn()
    action()
    return difference_of(meter.drawn(), before)


def difference_of(after: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    result = {name: after[name] - before[name] for name in after if isinstance(after[name], int)}
    result["masks"] = tuple(a - b for a, b in zip(after["masks"], before["masks"], strict=True))
    for kind in ("edabits", "matrices"):
        result[kind] = {key: c - before[kind].get(key, 0) for key, c in after[kind].items()}
    return result
