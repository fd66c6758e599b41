# SPDX-License-Identifier: Apache-2.0
"""Sessions with all parties in this process."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from privml.context import Session
from privml.errors import ConfigError
from privml.formats import Float, Numerics, float_format
from privml.session.ledger import Ledger, Snapshot
from privml.spec import SessionSpec

if TYPE_CHECKING:
    from privml.program import Program


def local(
    program: Program | str | None = None,
    /,
    engine: str | None = None,
    *,
    bits: int | None = None,
    scale: int | None = None,
    floating: Float | str | None = None,
    ledger: Any = None,
    **settings: Any,
) -> Session:
    """A session in which this process plays all parties: ``with privml.local("plain") as session: ...``.

    ``with privml.local(program, engine=name) as p: p(x)`` opens one with the formats of a converted program. The
    name of the engine, "plain" by default, may stand in its place. Without a program ``bits`` (64), ``scale`` (16) and
    ``floating`` (a format or one of the names of ``privml.formats.FLOATS``) say what numbers there are: see Numerics.
    ``settings``: Numerics' others, ``weight_bits``, ``weight_scale``, ``dot`` and ``exp``; those of
    ``privml.SessionSpec.of``, such as ``ot``, ``threads``, ``delay_ms`` (of a message in one direction),
    ``bandwidth_mbps`` (of each direction; 0: no limit), ``deadline`` (seconds), and the engine's own, such as
    ``truncation`` and ``ring``; ``plain`` takes ``check_overflow``, ``parties`` and ``like``, the name of an engine,
    to compute as that one does. ``ledger`` defaults to one that reads the engine's counters.
    Raises ConfigError for an unknown engine or setting, and for what Numerics refuses.
    """
    formats: dict[str, Any] = {"bits": bits, "scale": scale, "floating": float_format(floating)}
    formats = {name: value for name, value in formats.items() if value is not None}
    formats |= {each.name: settings.pop(each.name) for each in fields(Numerics) if each.name in settings}
    if isinstance(program, str):
        if engine is not None:
            raise ConfigError(f"two engines are given, {program!r} and {engine!r}; name one")
        program, engine = None, program
    engine = engine or "plain"
    if program is None:
        numerics = Numerics(**formats)
    elif formats:
        raise ConfigError(f"a converted program has its own formats; leave out {', '.join(formats)}")
    else:
        numerics = program.numerics
    try:
        spec = SessionSpec.of(engine, numerics=numerics, **settings)
        made = spec.backend.local(spec)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"engine {engine!r}: {error}") from None
    session = Session(made, numerics, ledger, getattr(made, "close", None))
    session.program = program
    if ledger is None:
        engines = session.engines
        counts = hasattr(made, "counters")
        session.ledger = Ledger((lambda: Snapshot.of(engines.current().counters())) if counts else Snapshot)
    return session
