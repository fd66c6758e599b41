# SPDX-License-Identifier: Apache-2.0
"""The semi-honest two-party engine, as the rest of the package sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import privml._core as _core
from privml.engines.correlations import Correlations
from privml.engines.interface import Backend
from privml.engines.joint import JointEngine
from privml.engines.twopc.engine import TwoPartyEngine
from privml.engines.twopc.linear import checked
from privml.engines.twopc.session import checked_threads, connected, connections, create, linear_of, meter
from privml.engines.twopc.stores import TwoPartyStores
from privml.errors import ConfigError

if TYPE_CHECKING:
    from privml.spec import SessionSpec


@dataclass(frozen=True, slots=True)
class Config:
    """``linear``: how products with weights that one party knows are made, see ``Linear``: "auto", "ot" or "lattice";
    ``noise``: what bounds the noise of lattice ciphertexts, "tail" or "proved"."""

    engine: ClassVar[str] = "twopc"
    linear: str = "auto"
    noise: str = "tail"

    def __post_init__(self) -> None:
        checked(self.linear, self.noise)


class TwoParty(Backend):
    name = "twopc"
    Config = Config
    assumes = (
        "both parties follow the protocol (semi-honest); AES-128 is a correlation-robust hash, Diffie-Hellman on "
        "ristretto255; with ot=silent also that learning parity with noise is hard; with engine.linear other than ot "
        "also that learning with errors over rings is hard"
    )
    floats = transfers = lanes = True
    stores = TwoPartyStores()

    def check(self, spec: SessionSpec) -> None:
        checked_threads(spec.threads)

    def local(self, spec: SessionSpec) -> JointEngine:
        own = {"deadline": spec.deadline, "threads": spec.threads, "linear": linear_of(spec)}
        return create(spec.ot, **spec.shape, **own, test_seed=spec.test_seed)

    def connections(self, spec: SessionSpec, rank: int) -> int:
        return connections(spec.ot, spec.threads)

    def open(self, channels: Sequence[_core.Channel], rank: int, spec: SessionSpec) -> TwoPartyEngine:
        if not spec.ot.decided:
            raise ConfigError("ot=auto chooses a provider for a query between server and client; name one here")
        return connected(channels, rank, spec.ot, spec.threads, spec.test_seed, linear_of(spec))

    def meter(self, spec: SessionSpec, rank: int = 0, counts_only: bool = True) -> TwoPartyEngine:
        return meter(rank, spec.ot, spec.threads, counts_only, linear_of(spec))

    def demand(self, program: Any, shapes: Any, spec: SessionSpec, further: bool = False) -> Correlations:
        return program.correlations(shapes, spec).stock

    def terms(self, spec: SessionSpec) -> dict[str, Any]:
        return {**spec.ot.terms, "threads": spec.threads, "linear": spec.engine.linear, "noise": spec.engine.noise}

    def uses_link(self, spec: SessionSpec) -> bool:
        return True


BACKEND = TwoParty()
