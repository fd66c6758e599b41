# SPDX-License-Identifier: Apache-2.0
"""Sessions with all parties in this process."""

from __future__ import annotations

from typing import Any

from privml.context import Session
from privml.engines.correlations import OtChoice
from privml.engines.interface import Backend, backend
from privml.errors import ConfigError
from privml.formats import Float, Numerics, float_format
from privml.session.ledger import Ledger, Snapshot
from privml.spec import LinkProfile, SessionSpec


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
    ``like``, the name of an engine, to compute as that one does. Milliseconds are those of a message in one direction,
    megabits per second those of each direction (0: no limit), deadlines are seconds. ``ledger`` defaults to one that
    reads the engine's counters.
    Raises ConfigError for an unknown engine or setting, and for what Numerics refuses.
    """
    numerics = Numerics(bits, scale, weight_bits, weight_scale, float_format(floating), dot, exp)
    test_seed = settings.pop("test_seed", None)
    chosen = backend(engine)
    try:
        made = chosen.local(_spec_of(chosen, settings, numerics), test_seed)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"engine {engine!r}: {error}") from None
    session = Session(made, numerics, ledger, getattr(made, "close", None))
    if ledger is None:
        engines = session.engines
        counts = hasattr(made, "counters")
        session.ledger = Ledger((lambda: Snapshot.of(engines.current().counters())) if counts else Snapshot)
    return session


def _spec_of(chosen: Backend, settings: dict[str, Any], numerics: Numerics) -> SessionSpec:
    link = {name: settings.pop(name) for name in ("delay_ms", "bandwidth_mbps") if name in settings}
    common = {name: settings.pop(name) for name in ("threads", "deadline") if name in settings and chosen.remote}
    if chosen.transfers:
        ot = {name: settings.pop(name) for name in ("k", "security", "refill") if name in settings}
        ot = {"security": chosen.security or "semi_honest", "provider": settings.pop("ot", "softspoken"), **ot}
        common["ot"] = OtChoice(**ot)
    return SessionSpec(chosen.config(**settings), numerics=numerics, simulated=LinkProfile(**link), **common)
