# SPDX-License-Identifier: Apache-2.0
"""An engine that computes in the clear and counts the values that it opens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from privml.engines.base import Share
from privml.engines.interface import Backend
from privml.engines.plain.engine import PlainEngine
from privml.errors import ConfigError
from privml.spec import SessionSpec


@dataclass(frozen=True, slots=True)
class Config:
    engine: ClassVar[str] = "toy"
    largest: int = 1 << 20

    def __post_init__(self) -> None:
        if self.largest < 1:
            raise ConfigError(f"largest={self.largest} must be at least 1")


class ToyEngine(PlainEngine):
    name = "toy"

    def __init__(self, largest: int) -> None:
        super().__init__()
        self.largest, self.opened = largest, 0

    def reveal(self, a: Share, bits: int, to: int | None = None) -> torch.Tensor | None:
        self.opened += a[0].numel()
        return super().reveal(a, bits, to)


class Toy(Backend):
    name = "toy"
    Config = Config
    assumes = "everything"
    remote = False

    def check(self, spec: SessionSpec) -> None:
        if spec.threads > 1:
            raise ConfigError("engine=toy has one lane")

    def local(self, spec: SessionSpec) -> ToyEngine:
        return ToyEngine(spec.engine.largest)


BACKEND = Toy()
