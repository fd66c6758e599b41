# SPDX-License-Identifier: Apache-2.0
"""``ot=auto``: the transfers with which a query is predicted to take the least time on a given link.

Predicted time = for every phase, depth times one-way delay plus the bytes of the fuller direction over the bandwidth,
from the program's exact cost with each choice; plus the time to compute its correlations on the busiest lane. Computing
besides the correlations is nearly the same for all and left out. With an actively secure engine, silent transfers bring
silent vector OLE where that saves bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import privml._core as _core
from privml.engines.correlations import (
    ACTIVE_SILENT_NANOSECONDS,
    DEGREES,
    SILENT_NANOSECONDS,
    SOFTSPOKEN_NANOSECONDS,
    Correlations,
    OtChoice,
)
from privml.errors import ConfigError, ProtocolError
from privml.program import INPUT_OWNER, Program
from privml.session.ledger import Snapshot
from privml.spec import Identity, LinkProfile, SessionSpec

Shapes = tuple[tuple[int, ...], ...]

# Processor seconds of the set-up at the party that has more of them, on the machine of the nanoseconds of correlations.
SETUP_SECONDS = {"softspoken": 0.018, "silent": 0.029}


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds that a choice is predicted to take: on the link, and making correlations."""

    ot: OtChoice
    link: float
    compute: float

    @property
    def seconds(self) -> float:
        return self.link + self.compute


def candidates(spec: SessionSpec) -> dict[OtChoice, float]:
    """Everything that can be chosen, with its nanoseconds per correlation; never a provider without security."""
    security = spec.ot.security
    if security not in SOFTSPOKEN_NANOSECONDS:
        raise ConfigError(f"ot=auto has no transfers with ot.security={security}")
    softspoken = zip(DEGREES, SOFTSPOKEN_NANOSECONDS[security], strict=True)
    named = {OtChoice("softspoken", k, security): nanoseconds for k, nanoseconds in softspoken}
    silent = ACTIVE_SILENT_NANOSECONDS if spec.backend.actively_secure else SILENT_NANOSECONDS.get(security)
    if silent is not None:
        named[OtChoice("silent", 0, security)] = silent
    return named


def forecast(program: Program, shapes: Shapes, spec: SessionSpec, queries: int = 1) -> Forecast:
    """For one session of ``queries`` queries on inputs of these shapes, with the transfers ``spec.ot``. With an
    actively secure engine what each query draws is made in a session of its own."""
    link, ot = spec.expected_link, spec.ot
    if spec.backend.actively_secure:
        given = replace(spec, ot=OtChoice("ideal"))  # nothing is made
        online = program.cost(shapes, given).snapshot().online
        ahead, made = made_ahead(program.demand(shapes, given), spec)
        seconds = queries * (link.seconds(ahead.setup) + link.seconds(ahead.preprocess) + link.seconds(online))
        return Forecast(ot, seconds, queries * (SETUP_SECONDS[ot.provider] + made * candidates(spec)[ot] * 1e-9))
    lanes = program.correlations(shapes, spec).lanes
    granularity = _core.ot_granularity(ot.provider, ot.k, ot.security)
    made = max(sum(_rounded(queries * count, granularity) for count in (lane.from0, lane.from1)) for lane in lanes)
    cost = program.cost(shapes, spec).snapshot()
    setup, ahead, online = cost.setup, cost.preprocess, cost.online
    if queries > 1:
        one = program.correlations(shapes, replace(spec, threads=1))
        together = Correlations(queries * one.from0, queries * one.from1)
        ahead = made_ahead(together, replace(spec, threads=1))[0].preprocess
    seconds = link.seconds(setup) + link.seconds(ahead) + queries * link.seconds(online)
    return Forecast(ot, seconds, SETUP_SECONDS[ot.provider] + made * candidates(spec)[ot] * 1e-9)


def made_ahead(demand: Any, spec: SessionSpec) -> tuple[Snapshot, int]:
    """Set-up and preprocessing of ``demand`` in a session of its own, and the transfers that it takes, both ways."""
    engine = spec.backend.meter(spec, INPUT_OWNER)
    engine.reserve(copy(demand))
    cost = Snapshot.of(engine.counters())
    return cost, cost.cots_as_sender + cost.cots_as_receiver


def _rounded(count: int, granularity: int) -> int:
    return -(-count // granularity) * granularity


def forecasts(program: Program, shapes: Shapes, spec: SessionSpec, queries: int = 1) -> tuple[Forecast, ...]:
    """One per candidate, the best one first."""
    return _forecasts(program, shapes, replace(spec, identity=Identity(), deadline=1.0, on_wait=None), queries)


@lru_cache(maxsize=64)
def _forecasts(program: Program, shapes: Shapes, spec: SessionSpec, queries: int) -> tuple[Forecast, ...]:
    made = [forecast(program, shapes, replace(spec, ot=ot), queries) for ot in candidates(spec)]
    return tuple(sorted(made, key=lambda each: each.seconds))


def reason(ranked: Sequence[Forecast], link: LinkProfile) -> str:
    """Which and why, in one line."""
    best, *others = ranked
    rest = ", ".join(f"{each.ot} {each.seconds:.2f}" for each in others)
    return f"predicted {best.seconds:.2f} s at {link}; {rest}"


def choice_fields(choice: OtChoice, why: str) -> dict[str, Any]:
    """The choice as fields for the peer."""
    return {"ot": [choice.provider, choice.k], "why": why}


def choice_in(fields: dict[str, Any], spec: SessionSpec) -> tuple[OtChoice, str]:
    """What the peer chose and why; ProtocolError for anything that is no candidate here."""
    for choice in candidates(spec):
        if fields.get("ot") == [choice.provider, choice.k]:
            why = "".join(c for c in str(fields.get("why", ""))[:300] if c.isascii() and c.isprintable())
            return choice, why
    raise ProtocolError("the server chose transfers that ot=auto does not offer")
