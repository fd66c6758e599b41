# SPDX-License-Identifier: Apache-2.0
"""``privml train`` between three processes with a relay in every connection."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from pathlib import Path

from fault_parties import Party, Spawner
from fault_proxy import Proxy

RECIPE = [
    "engine=threepc", "engine.truncation=exact", "way=traced", "train=logistic", "split=vertical", "steps=12",
    "save_every=2", "compare=false", "quiet=true",
]  # fmt: skip
LAST = "step-000000012.safetensors"
DEALER = 2


class Training:
    """Runs in ``folder``, one after another; party 1 reaches party 0, and both the dealer, through ``proxy``."""

    def __init__(self, spawner: Spawner, proxy: Proxy, folder: Path, own: Sequence[Sequence[str]] = ((), (), ())):
        self.spawner, self.proxy, self.folder, self.own = spawner, proxy, folder, own
        self.link, self.dealer = proxy.link(), proxy.link()
        self.parties: list[Party] = []
        folder.mkdir(exist_ok=True)

    def start(self, *more: str, deadline: float = 60.0) -> list[Party]:
        """All three parties, their connections and the bytes counted from zero."""
        self.end()
        self.proxy.restart()
        listening, dealing = free_addresses(2)
        self.proxy.lead(self.link, listening)
        self.proxy.lead(self.dealer, dealing)
        places = [
            [f"listen={listening}", f"dealer={self.dealer}"],
            [f"connect={self.link}", f"dealer={self.dealer}"],
            [f"listen={dealing}"],
        ]
        common = ["train", *RECIPE, f"out={self.folder / 'run'}", f"deadline={deadline}", *more]
        started = {}
        # Who listens comes first: the relay refuses those who come before there is anybody to talk to.
        for rank, waited in ((DEALER, dealing), (0, listening), (1, None)):
            started[rank] = self.spawner.start([*common, f"rank={rank}", *places[rank], *self.own[rank]], self.folder)
            while waited is not None and not is_listened_on(waited):
                assert started[rank].status is None, started[rank].errors
                time.sleep(0.01)
        self.parties = [started[rank] for rank in range(3)]
        return self.parties

    def finish(self, *more: str) -> bytes:
        """A run to its end; the weights."""
        ended = [party.wait(240) for party in self.start(*more)]
        assert ended == [0, 0, 0], [party.errors[-2000:] for party in self.parties]
        return (self.folder / "run/weights.safetensors").read_bytes()

    def saved(self) -> list[str]:
        """The newest file of each party."""
        places = [self.folder / "run" / f"party-{rank}" for rank in range(3)]
        return [max((path.name for path in place.iterdir()), default="") if place.exists() else "" for place in places]

    def end(self) -> None:
        for party in self.parties:
            party.end()


def is_listened_on(address: str) -> bool:
    """As the kernel's table of sockets has it."""
    port = f":{int(address.split(':')[1]):04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[1].endswith(port) and row[3] == "0A" for row in rows)


def free_addresses(count: int) -> list[str]:
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{probe.getsockname()[1]}" for probe in probes]
    for probe in probes:
        probe.close()
    return addresses
