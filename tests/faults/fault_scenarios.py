# SPDX-License-Identifier: Apache-2.0
"""What runs while something goes wrong: networks, and the engines and connections that they are queried with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from fault_parties import Spawner
from fault_proxy import Proxy
from fault_service import CLIENT, DEALER, GONE, GONE_UNDER_TLS, SERVER, Deployment

# Settings of server and client, by side.
Own = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Network:
    """``folder``: one with the program for each engine; ``words``: further settings by engine."""

    name: str
    folder: Path
    value: np.ndarray
    expected: np.ndarray
    tolerance: float
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Scenario:
    """``phases``: whether faults also come where phases begin, which a single connection in clear shows."""

    engine: str = "twopc"
    words: Sequence[str] = ()
    tls: bool = False
    phases: bool = True

    @property
    def sides(self) -> tuple[str, ...]:
        return (SERVER, CLIENT, DEALER) if self.engine == "threepc" else (SERVER, CLIENT)


ACTIVE, UNDER_TLS, LANES = "active", "twopc under TLS", "twopc on two lanes, refilled in the background"
SCENARIOS = {
    "twopc": Scenario(),
    "threepc": Scenario("threepc"),
    ACTIVE: Scenario("active", ["engine=active"]),
    UNDER_TLS: Scenario(tls=True, phases=False),
    LANES: Scenario(words=["threads=2", "ot.refill=background"], phases=False),
}


class Deployments:
    """``with Deployments(...) as deploy: service = deploy("twopc", deadline=3.0)``; they end with the block.

    ``certificates`` gives the settings under TLS; ``folder`` is where each deployment gets one of its own."""

    def __init__(
        self, spawner: Spawner, proxy: Proxy, folder: Path, network: Network, certificates: Callable[[], Own]
    ) -> None:
        self._spawner, self._proxy, self._folder = spawner, proxy, folder
        self._network, self._certificates = network, certificates
        self._made: list[Deployment] = []

    def __call__(self, which: str = "twopc", **options: object) -> Deployment:
        """``which``: a name of ``SCENARIOS``; ``options``: of ``Deployment``, in place of the scenario's."""
        network, scenario = self._network, SCENARIOS[which]
        place = self._folder / f"service-{len(self._made)}"
        place.mkdir()
        settings = {
            "dealer": scenario.engine == "threepc",
            "words": [*scenario.words, *network.words.get(scenario.engine, ())],
            "own": self._certificates() if scenario.tls else {},
            "said": GONE_UNDER_TLS if scenario.tls else GONE,
            "phases": scenario.phases,
            "tolerance": network.tolerance,
            "name": f"{network.name}, {which}",
        }
        program = network.folder / scenario.engine
        made = Deployment(
            self._spawner, self._proxy, place, program, network.value, network.expected, **{**settings, **options}
        )
        self._made.append(made)
        return made

    def __enter__(self) -> Deployments:
        return self

    def __exit__(self, *exception: object) -> None:
        for each in self._made:
            each.down()
