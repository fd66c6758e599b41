# SPDX-License-Identifier: Apache-2.0
"""The engine that computes in the clear: how sessions come to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from privml.engines.interface import Backend
from privml.engines.plain.engine import PlainEngine
from privml.errors import ConfigError

if TYPE_CHECKING:
    from privml.spec import SessionSpec


@dataclass(frozen=True, slots=True)
class Config:
    """See ``PlainEngine``; ``parties`` None: as many as the engine ``like`` which it computes has."""

    engine: ClassVar[str] = "plain"
    check_overflow: bool = True
    parties: int | None = None
    like: str = "twopc"


class Plain(Backend):
    name = "plain"
    Config = Config
    assumes = "nothing is secret"
    remote = False
    floats = True

    def check(self, spec: SessionSpec) -> None:
        if spec.threads > 1:
            raise ConfigError("engine=plain has one lane: leave out threads")

    def local(self, spec: SessionSpec) -> PlainEngine:
        own = spec.engine
        return PlainEngine(own.check_overflow, own.parties or (3 if own.like == "threepc" else 2), own.like)


BACKEND = Plain()
