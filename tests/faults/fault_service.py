# SPDX-License-Identifier: Apache-2.0
"""A service between processes with a relay in every connection: what goes wrong, and what each side says then."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from fault_parties import Party, Spawner, assert_clean_error, seconds_until
from fault_proxy import Proxy

SERVER, CLIENT, DEALER = "server", "client", "dealer"
# At how many points of the whole matrix's exchanges a fault comes, evenly spread over their bytes.
POINTS = int(os.environ.get("PRIVML_FAULTS_POINTS", "20"))
# The input of the small network.
VALUE = np.array([[0.5, -1.0, 0.25, 2.0], [1.0, 1.0, -1.0, 0.0]], np.float32)
# What a side may say when the other one is gone, silent or cut off, and under TLS also while it shakes hands.
GONE = ("PeerDisconnected",)
GONE_UNDER_TLS = (*GONE, "IdentityError")
ENDED = {
    SERVER: r"a connection ended without an answer: ",
    DEALER: r"a session ended before its answer: |a session was dropped|a connection was refused: ",
}
# Behind the time.
ANSWERED = {SERVER: r"^[-\d]+ [:\d]+ query \d+: ", DEALER: r"^[-\d]+ [:\d]+ a session for input "}


@dataclass(frozen=True)
class Outcome:
    """One fault: who was hit where, what each other side said, and the seconds until it did."""

    scenario: str
    fault: str
    side: str
    point: str
    said: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def line(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Point:
    """Where in the exchange: bytes of all links and both directions that were forwarded before."""

    name: str
    byte: int


def spread(count: int, total: int) -> list[Point]:
    """``count`` points spread evenly over ``total`` bytes."""
    shares = [(2 * number + 1, 2 * count) for number in range(count)]
    return [Point(f"{100 * part / whole:.1f} %", total * part // whole) for part, whole in shares]


class Deployment:
    """A server, with ``dealer`` a dealer too, and clients on demand; each connection crosses ``proxy``.

    ``name``: of the scenario, in the table of outcomes; ``words``: further settings of serve and query alike, ``own``:
    by side; ``hooks``: by side, see fault_hooks; ``said``: what a side may say when another one is gone; ``phases``:
    whether the relay can tell where phases begin; ``recheck``: after every fault that the server survived it must
    answer a query right."""

    def __init__(
        self,
        spawner: Spawner,
        proxy: Proxy,
        folder: Path,
        program: Path,
        value: np.ndarray,
        expected: np.ndarray,
        *,
        name: str,
        dealer: bool = False,
        deadline: float = 10.0,
        words: Sequence[str] = (),
        own: Mapping[str, Sequence[str]] | None = None,
        said: Sequence[str] = GONE,
        phases: bool = True,
        tolerance: float = 0.05,
        recheck: bool = True,
    ) -> None:
        self.name, self.said, self.phases = name, said, phases and not dealer
        self.spawner, self.proxy, self.folder, self.program = spawner, proxy, folder, program
        self.expected, self.tolerance, self.deadline = expected, tolerance, deadline
        self.words, self.own, self.dealt, self.recheck = list(words), dict(own or {}), dealer, recheck
        self.hooks: dict[str, list] = {}
        np.save(folder / "input.npy", value)
        self.links = {SERVER: proxy.link()} | ({DEALER: proxy.link()} if dealer else {})
        self.parties: dict[str, Party] = {}
        self.warm: dict[str, tuple[int, int]] = {}
        self._asked = threading.Event()
        self._answers = 0

    @property
    def sides(self) -> tuple[str, ...]:
        return (SERVER, CLIENT, DEALER) if self.dealt else (SERVER, CLIENT)

    # ---- processes
    def up(self) -> None:
        """Starts what does not run: dealer first, since the server must know where it is."""
        settings = [f"program={self.program}/program", f"deadline={self.deadline}"]
        if self.dealt and not self._runs(DEALER):
            self._start(DEALER, ["deal", *settings, "listen=127.0.0.1:0"])
        if not self._runs(SERVER):
            weights = f"weights={self.program}/weights.safetensors"
            self._start(SERVER, ["serve", *settings, weights, "listen=127.0.0.1:0", *self._places(), *self.words])

    def _start(self, side: str, words: list[str]) -> None:
        words = [*words, *self.own.get(side, ())]
        self.parties[side] = self.spawner.start(words, self.folder, hooks=self.hooks.get(side, []))
        self.proxy.lead(self.links[side], self.parties[side].port())
        self.warm.pop(side, None)

    def _places(self) -> list[str]:
        return [f"dealer={self.links[DEALER]}"] if self.dealt else []

    def _runs(self, side: str) -> bool:
        return side in self.parties and self.parties[side].status is None

    def ask(self, *more: str) -> Party:
        """A client under way."""
        self._answers += 1
        settings = [f"program={self.program}/program", f"deadline={self.deadline}", f"server={self.links[SERVER]}"]
        files = ["input=input.npy", f"out=out-{self._answers}.npy"]
        words = ["query", *settings, *files, *self._places(), *self.words, *self.own.get(CLIENT, ()), *more]
        self.parties[CLIENT] = self.spawner.start(words, self.folder, hooks=self.hooks.get(CLIENT, []))
        self._asked.set()
        return self.parties[CLIENT]

    def down(self) -> None:
        for party in self.parties.values():
            party.end()

    # ---- what should work
    def assert_answers(self, *more: str) -> None:
        """A query without faults is answered right."""
        self.up()
        client = self.ask(*more)
        assert client.wait() == 0, client.errors[-3000:]
        found = np.load(self.folder / f"out-{self._answers}.npy")
        assert found.shape == self.expected.shape
        assert np.abs(found - self.expected).max() <= self.tolerance, (found, self.expected)

    def settle(self) -> None:
        """After a first answer, whose costs are in ledger.json: what the servers hold from now on."""
        self.proxy.restart()
        self.assert_answers("ledger=ledger.json")
        self.mark()
        for side in (SERVER, DEALER):
            if side in self.parties and side not in self.warm:
                time.sleep(0.2)
                self.warm[side] = self.parties[side].holds()

    def mark(self) -> None:
        for side in (SERVER, DEALER):
            if side in self.parties:
                self.parties[side].line(ANSWERED[side])
                self.parties[side].mark()

    def points(self, count: int = 20, phases: bool = True) -> list[Point]:
        """``count`` spread evenly over the bytes of a query, and where it and its phases begin, as found by one."""
        self.settle()
        total, trace = self.proxy.bytes, list(self.proxy.trace)
        if not phases:
            return spread(count, total)
        named = [Point("connection", 0), Point("handshake", min(trace[0][0], total))]
        if self.phases:
            cost = json.loads((self.folder / "ledger.json").read_text())["total"]
            payload = trace[-1][1]
            for phase in ("online", "preprocess", "setup"):
                payload -= cost[phase]["sent"] + cost[phase]["received"]
                begin = next((byte for byte, there in trace if there > payload), total)
                named.append(Point(f"{phase} begins", begin))
        return [*named, *spread(count, total)]

    # ---- what goes wrong
    def kill(self, victim: str, point: Point) -> Outcome:
        """SIGKILL of ``victim`` at ``point`` of a query; the others end it cleanly, and servers go on."""

        def strike() -> None:
            self._asked.wait(30)
            self.parties[victim].kill()

        return self._strike("kill -9", victim, point, strike)

    def cut(self, fault: str, point: Point) -> Outcome:
        """``fault``, a method of the proxy, at ``point`` of a query."""
        return self._strike(fault.replace("_", " "), "", point, getattr(self.proxy, fault))

    def _strike(self, fault: str, victim: str, point: Point, strike: Callable[[], None]) -> Outcome:
        self.up()
        if any(side in self.parties and side not in self.warm for side in (SERVER, DEALER) if side != victim):
            self.settle()
        self.proxy.restart()
        self._asked.clear()
        self.proxy.fail_at(point.byte, strike)
        self.ask()
        outcome = Outcome(self.name, fault, victim, point.name)
        assert self.proxy.fired.wait(90), f"the query ended at byte {self.proxy.bytes}, before {point}"
        if victim:
            assert self.parties[victim].wait(30) == -9
        for side in self.sides:
            if side != victim:
                self._listen(side, outcome)
        self.proxy.restart()
        for side in (SERVER, DEALER):
            if side != victim and side in self.parties:
                self.parties[side].assert_holds(self.warm[side])
                assert "Traceback" not in self.parties[side].errors
        if self.recheck and victim != SERVER:
            self.assert_answers()
            self.mark()
        return outcome

    def _listen(self, side: str, outcome: Outcome) -> None:
        """Waits until ``side`` has said what the fault meant for it."""
        party, since = self.parties[side], self.proxy.failed_at
        if side in self.links and not self.proxy.reached.get(self.links[side]):
            outcome.said[side] = "not reached yet"
            return
        if side == CLIENT:
            outcome.seconds[side] = seconds_until(lambda: party.status is not None, since)
            outcome.said[side] = "the answer" if party.status == 0 else assert_clean_error(party, *self.said)
            return
        line = party.line(f"{ENDED[side]}|{ANSWERED[side]}")
        outcome.seconds[side] = time.monotonic() - since
        line = re.sub(r" \(\S+:\d+\)$", "", line.split(" ", 2)[-1])  # between time and address
        # A last message that had left already is an answer; only the other side knows better.
        words = line.split(": ", 1)[-1] if not line.startswith(("query", "a session for")) else "answered"
        outcome.said[side] = words
        refused = line.startswith(("a session was dropped", "a connection was refused"))
        assert refused or words.split(":")[0] in (*self.said, "answered"), line
