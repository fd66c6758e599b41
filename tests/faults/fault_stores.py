# SPDX-License-Identifier: Apache-2.0
"""Both halves of a store, made by `privml preprocess` between two processes, and a service that draws from them."""

from __future__ import annotations

import shutil
from pathlib import Path

from fault_parties import Party, Spawner
from fault_proxy import Proxy
from fault_service import CLIENT, SERVER, Deployment

from privml.store.files import Position
from privml.store.store import Store

RANKS = {SERVER: 0, CLIENT: 1}


def preprocess(
    spawner: Spawner,
    proxy: Proxy,
    folder: Path,
    program: Path,
    count: int = 1,
    hooks: dict[str, list] | None = None,
    deadline: float = 20.0,
    stores: dict[str, Path] | None = None,
    products: bool = False,
) -> dict[str, Party]:
    """Both parties under way, the client through ``proxy``; the halves come to ``folder``/server and /client.
    ``products``: whether products with weights are prepared, too."""
    hooks, parties = hooks or {}, {}
    for side in (SERVER, CLIENT):
        place = (stores or {}).get(side, folder / side)
        key = folder / f"{side}.key"
        words = [f"program={program}/program", f"count={count}", f"store={place}", f"store_key={key}"]
        where = "listen=127.0.0.1:0" if side == SERVER else f"server={proxy.link(parties[SERVER].port())}"
        words = ["preprocess", *words, f"deadline={deadline}", "batch=2", where]
        if products:
            words += ["engine.linear=lattice", *([f"weights={program}/weights.safetensors"] if side == SERVER else [])]
        parties[side] = spawner.start(words, folder, hooks=hooks.get(side, []))
    return parties


class Stored:
    """A service on copies of a store, and a record of every chunk that either side has handed out."""

    def __init__(self, service: Deployment, made: Path) -> None:
        self.service, self.made = service, made
        self.places = {side: service.folder / f"half-{side}" for side in RANKS}
        self.records = {side: service.folder / f"handed-out-{side}" for side in RANKS}
        for side in RANKS:
            words = [f"preprocessing={self.places[side]}", f"store_key={made / side}.key"]
            service.own = {**service.own, side: words}
            service.hooks[side] = self.recording(side)

    def recording(self, side: str) -> list:
        return [["record_hand_outs", [str(self.records[side])]]]

    def fill(self) -> None:
        """Fresh halves (of one store: the same chunks), which no server may be using."""
        for side in RANKS:
            if self.places[side].exists():
                shutil.rmtree(self.places[side])
            shutil.copytree(self.made / side, self.places[side])
            self.records[side].unlink(missing_ok=True)

    def position(self, side: str) -> Position:
        """Where the half stands after whatever has happened; no process may be using it."""
        with Store(self.places[side], f"{self.made / side}.key") as store:
            return store.position

    def handed_out(self, side: str) -> list[str]:
        record = self.records[side]
        return record.read_text().splitlines() if record.exists() else []

    def assert_nothing_twice(self) -> None:
        for side in RANKS:
            chunks = self.handed_out(side)
            assert len(set(chunks)) == len(chunks), f"the {side} used chunks twice: {chunks}"
