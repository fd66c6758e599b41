# SPDX-License-Identifier: Apache-2.0
"""Sessions with all parties in this process."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from privml.context import Session
from privml.errors import ConfigError
from privml.formats import Float, Numerics, float_format
from privml.session.ledger import Ledger, Snapshot
from privml.spec import SessionSpec


def local(
    engine: str = "plain",
    *,
    bits: int = 64,
    scale: int = 16,
    floating: Float | str | None = None,
    ledger: Any = None,
    **settings: Any,
) -> Session:
    """A session in which this process plays all parties: ``with privml.local("plain") as session: ...``.

    ``bits``, ``scale``, ``floating`` (a format or one of the names of ``privml.formats.FLOATS``): see Numerics.
    ``settings``: Numerics' others, ``weight_bits``, ``weight_scale``, ``dot`` and ``exp``; those of
    ``privml.SessionSpec.of``, such as ``ot``, ``threads``, ``delay_ms`` (of a message in one direction),
    ``bandwidth_mbps`` (of each direction; 0: no limit), ``deadline`` (seconds), and the engine's own, such as
    ``truncation`` and ``ring``; ``plain`` takes ``check_overflow``, ``parties`` and ``like``, the name of an engine,
    to compute as that one does. ``ledger`` defaults to one that reads the engine's counters.
    Raises ConfigError for an unknown engine or setting, and for what Numerics refuses.
    """
    formats = {each.name: settings.pop(each.name) for each in fields(Numerics) if each.name in settings}
    numerics = Numerics(bits, scale, floating=float_format(floating), **formats)
    try:
        spec = SessionSpec.of(engine, numerics=numerics, **settings)
        made = spec.backend.local(spec)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"engine {engine!r}: {error}") from None
    session = Session(made, numerics, ledger, getattr(made, "close", None))
    if ledger is None:
        engines = session.engines
        counts = hasattr(made, "counters")
        session.ledger = Ledger((lambda: Snapshot.of(engines.current().counters())) if counts else Snapshot)
    return session
