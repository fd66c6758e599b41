# SPDX-License-Identifier: Apache-2.0
"""Sessions with all parties in this process."""

from __future__ import annotations

import importlib
from typing import Any

from privml.context import Numerics, Session
from privml.errors import ConfigError
from privml.formats import Float, float_format
from privml.session.ledger import Ledger, Snapshot

# Engine name -> "module:function"; the function takes the engine's settings and returns the engine.
ENGINES = {
    "plain": "privml.engines.plain:create",
    "twopc": "privml.engines.joint:create",
    "threepc": "privml.engines.threepc:create",
    "active": "privml.engines.active:create",
}


def local(
    engine: str = "plain",
    *,
    bits: int = 64,
    scale: int = 16,
    weight_bits: int | None = None,
    weight_scale: int | None = None,
    floating: Float | str | None = None,
    dot: str = "fused",
    exp: str = "auto",
    ledger: Any = None,
    **settings: Any,
) -> Session:
    """A session in which this process plays all parties: ``with privml.local("plain") as session: ...``.

    ``bits``, ``scale``, ``weight_bits``, ``weight_scale``, ``floating`` (a format or one of the names of
    ``privml.formats.FLOATS``), ``dot``, ``exp``: see Numerics. ``settings`` go to the engine
    (``plain``: check_overflow=True, parties=2; ``twopc``: ot="softspoken", k=4, security="semi_honest", refill="none",
    delay_ms=0, bandwidth_mbps=0, deadline=60, threads=1; ``threepc``: truncation="auto", delay_ms, bandwidth_mbps,
    deadline; ``active``: ring=64, ot, k, truncation="auto", delay_ms, bandwidth_mbps, deadline). ``plain`` takes
    like="threepc" or "active" to compute as that engine does. Milliseconds are those of a message in one direction,
    megabits per second those of each direction (0: no limit), deadlines are seconds. ``ledger`` defaults to one that
    reads the engine's counters.
    Raises ConfigError for an unknown engine or setting, and for what Numerics refuses.
    """
    numerics = Numerics(bits, scale, weight_bits, weight_scale, float_format(floating), dot, exp)
    if engine not in ENGINES:
        raise ConfigError(f"engine {engine!r} is not one of {sorted(ENGINES)}")
    module, function = ENGINES[engine].split(":")
    create = getattr(importlib.import_module(module), function)
    try:
        made = create(**settings)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"engine {engine!r}: {error}") from None
    session = Session(made, numerics, ledger, getattr(made, "close", None))
    if ledger is None:
        engines = session.engines
        counts = hasattr(made, "counters")
        session.ledger = Ledger((lambda: Snapshot.of(engines.current().counters())) if counts else Snapshot)
    return session
