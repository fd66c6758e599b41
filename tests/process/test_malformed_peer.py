# SPDX-License-Identifier: Apache-2.0
"""A party whose peer sends what it should not, at every step of a query, be it the client or the server: the session
ends with an error of privml within the deadline, memory, descriptors, threads and processes stay as they were, and the
next query is answered."""

from __future__ import annotations

import gc
import itertools
import json
import random
import secrets
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import service_party
import torch
from services import query
from small_network import Net

from privml.conversion import convert
from privml.engines.correlations import OtChoice
from privml.errors import PrivmlError
from privml.program import Program
from privml.service.client import Answer
from privml.service.negotiation import settings_of
from privml.session.agreement import agree
from privml.session.connections import Link, reach
from privml.session.ledger import PHASES
from privml.session.session import open_session
from privml.spec import SessionSpec

sys.path.insert(0, str(Path(__file__).parents[1] / "security"))
import adversary

INPUT = [[0.5, -1.0, 0.25, 2.0]]
TOLERANCE = 0.1
SERVER, CLIENT = 0, 1
# How long a party waits for the other one; attacks that leave it waiting take as long. Who computes more between two
# messages gets more time.
DEADLINE, LONG_DEADLINE = 2.0, 10.0
# What has not ended after so many seconds more hangs.
PATIENT = 60.0
MEGABYTES = 200
# Connections that the error of the last failed session may still refer to, of a hundred or so that failed.
ONE_SESSION = 3
ERRORS = (
    "ProtocolError", "PeerDisconnected", "SecurityAbort", "HandshakeMismatch", "InvalidInput", "IdentityError",
    "StoreError",
)  # fmt: skip
SILENT = {"ot": OtChoice("silent", 0), "deadline": LONG_DEADLINE}
ACTIVE = {"ring": 32, "deadline": LONG_DEADLINE}
ENGINES = {
    "twopc": {},
    "twopc, silent": SILENT,
    "active": ACTIVE,
    "active, silent": SILENT | ACTIVE,
    "threepc": {"dealer": True},
}

# What leaves the bytes' number as it is, so that semi-honest protocols compute on: the answer is spoilt.
CHANGES = {
    "first bit": lambda frame: adversary.flip(frame, 0),
    "random bytes": adversary.replace_by_random,
    "an earlier message": adversary.replay,
    "halves exchanged": adversary.swap_halves,
}
BREAKS = {
    "huge length": adversary.huge,
    "a frame of 65537 bytes": lambda frame: adversary.huge(frame, 65537),
    "an empty frame": lambda frame: adversary.huge(frame, 0),
    "garbage behind it": adversary.garbage_behind,
    "without end": adversary.endless,
    "repeated": adversary.repeat,
    "out of order": adversary.reorder,
    "its end missing": adversary.truncate,
    "closed": adversary.hang_up,
}


def network():
    """With eight comparisons at a time, so that no message has bits that mean nothing."""
    return Net(8, 8).eval()


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """The program's folder by engine."""
    path = tmp_path_factory.mktemp("program")
    calibration = torch.randn(64, 4, generator=torch.Generator().manual_seed(4)) * 2
    numerics = {"semi-honest": {"bits": 32}, "active": {"bits": 32, "scale": 8, "narrow": False}}
    for name, each in numerics.items():
        convert(network(), calibration=calibration, numerics=each).save(path / name)
    return {engine: path / ("active" if "ring" in settings else "semi-honest") for engine, settings in ENGINES.items()}


@dataclass(frozen=True)
class Held:
    """What a process holds."""

    megabytes: int
    descriptors: int
    threads: int
    children: int

    @staticmethod
    def by(process):
        return Held(
            process.memory_info().rss >> 20, process.num_fds(), process.num_threads(), len(process.children(True))
        )

    def is_no_more_than(self, then):
        return (
            self.descriptors <= then.descriptors + ONE_SESSION
            and self.threads <= then.threads + 1
            and self.children <= then.children
            and self.megabytes < then.megabytes + MEGABYTES
        )


class Service:
    """A server, and for three parties its dealer, as processes; its clients are threads of this one."""

    def __init__(self, start, folder, engine):
        self.program = Program.load(folder / "program")
        self.options = {"deadline": DEADLINE, **ENGINES[engine]}
        self.active = "ring" in self.options
        if self.options.pop("dealer", False):
            dealer = start(service_party.deal_program, str(folder), {"deadline": DEADLINE, "sessions": 0})
            self.options["dealer"] = "127.0.0.1:" + dealer.line("port").split()[1]
        self.running = start(service_party.serve_program, str(folder), dict(self.options))
        self.port = int(self.running.line("port").split()[1])
        self.running.line("log listening")
        self.processes = {SERVER: psutil.Process(self.running.process.pid), CLIENT: psutil.Process()}
        with torch.no_grad():
            self.exact = network()(torch.tensor(INPUT))

    def ask(self, address=None, **options):
        return query(
            self.program, address or f"127.0.0.1:{self.port}", torch.tensor(INPUT), **{**self.options, **options}
        )

    def is_right(self, answer):
        return bool((answer.outputs[0] - self.exact).abs().max() < TOLERANCE)

    def is_answered(self):
        assert self.is_right(self.ask(deadline=PATIENT))
        assert "without an answer" not in self.end_of_session()

    def end_of_session(self):
        """What the server says at the end of a connection."""
        return self.running.line("log a ", timeout=self.options["deadline"] + PATIENT)

    def meet(self, attack, dishonest):
        """A query under ``attack`` by a party: (what the server says of it, the client's answer or error, whether any
        message was altered)."""
        outcomes = []

        def ask():
            try:
                outcomes.append(self.ask(relay.address))
            except Exception as error:
                outcomes.append(error)

        with adversary.Relay(self.port, dishonest, attack) as relay:
            thread = threading.Thread(target=ask)
            thread.start()
            line = self.end_of_session()
            thread.join(self.options["deadline"] + PATIENT)
            assert not thread.is_alive(), "the client hangs"
        return line, outcomes[0], relay.altered

    def phases(self, party):
        """For each frame of an honest party the phase in which it begins; before them all, the handshake."""
        with adversary.Relay(self.port, party, adversary.nothing) as relay:
            cost = self.ask(relay.address, deadline=PATIENT).ledger.snapshot()
        self.end_of_session()
        way = "sent" if party == CLIENT else "received"
        begins, begin = {}, sum(relay.sizes)
        for phase in reversed(PHASES):
            begin -= getattr(getattr(cost, phase), way)
            begins[phase] = begin
        offsets = itertools.accumulate([0, *relay.sizes[:-1]])
        return [next((phase for phase in begins if offset >= begins[phase]), "handshake") for offset in offsets]

    def assert_holds(self, before):
        """Soon no more than before, at both parties."""
        end = time.monotonic() + PATIENT
        while True:
            self.processes[SERVER].send_signal(signal.SIGUSR1)  # as here: what errors and they alone refer to
            gc.collect()
            now = {party: Held.by(process) for party, process in self.processes.items()}
            if all(now[party].is_no_more_than(before[party]) for party in now):
                return
            assert time.monotonic() < end, (now, before)
            time.sleep(0.1)


@pytest.fixture
def service(start, folders):
    return lambda engine: Service(start, folders[engine], engine)


def positions(phases, within):
    """The first and the last frame of each phase, and ``within`` more of it."""
    chance, chosen = random.Random(1), set()
    for phase in dict.fromkeys(phases):
        frames = [number for number, each in enumerate(phases) if each == phase]
        inner = frames[1:-1]
        chosen |= {frames[0], frames[-1], *chance.sample(inner, min(within, len(inner)))}
    return sorted(chosen)


def attack_all(served, dishonest, kinds, within):
    """Actively secure parties notice every change, and no answer of theirs is wrong; with others, a party that deviates
    may spoil the answer, which is the client's alone."""
    served.is_answered()
    phases = served.phases(dishonest)
    before = {party: Held.by(process) for party, process in served.processes.items()}
    for name, kind in kinds.items():
        for frame in positions(phases, within):
            line, client, altered = served.meet(kind(frame), dishonest)
            where = (name, frame, phases[frame], line, client)
            refused = any(f" {error}:" in line for error in ERRORS)
            assert refused or "session ended" in line, where
            assert "\x1b" not in line and len(line) < 1000
            answered = isinstance(client, Answer)
            assert answered or isinstance(client, PrivmlError), where
            if served.active:
                assert not answered or served.is_right(client), where
                noticed = refused if dishonest == CLIENT else not answered
                assert noticed or not altered or kinds is not CHANGES, where
    served.is_answered()
    served.assert_holds(before)


def test_a_client_that_sends_no_frames(service):
    served = service("twopc")
    served.is_answered()
    before = {SERVER: Held.by(served.processes[SERVER])}
    hello = adversary.HEADER.pack(8, 0, 0) + b"privml\x00\x01"
    sent = [
        b"", b"\x00", b"GET / HTTP/1.1\r\n\r\n" * 4, b"\x16\x03\x01\x02\x00" + bytes(600),
        secrets.token_bytes(5000), hello, hello + adversary.HEADER.pack(4, 0, 0) + b"\xff" * 4,
        hello + adversary.HEADER.pack(4, 0, 0) + b"\x00\x10\x00\x00",
        hello + adversary.HEADER.pack(6, 2**32 - 1, 2**64 - 1) + b"\x02\x00\x00\x00{}",
        hello + adversary.HEADER.pack(65536, 0, 0) + b"\xff" * 65536,
    ]  # fmt: skip
    for data in sent:
        with socket.create_connection(("127.0.0.1", served.port)) as scanner:
            scanner.sendall(data)
            scanner.shutdown(socket.SHUT_WR)
            line = served.end_of_session()
            assert any(f" {error}:" in line for error in ERRORS), (data[:20], line)
    served.is_answered()
    del served.processes[CLIENT]
    served.assert_holds(before)


@pytest.mark.parametrize("engine", ["twopc", "twopc, silent", "active"])
def test_a_client_whose_messages_break_off(service, engine):
    attack_all(service(engine), CLIENT, {name: BREAKS[name] for name in ("huge length", "garbage behind it")}, 0)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dishonest", [CLIENT, SERVER], ids=["client", "server"])
@pytest.mark.parametrize("kinds", [CHANGES, BREAKS], ids=["changes", "breaks"])
def test_a_party_that_deviates_at_every_step(service, engine, dishonest, kinds):
    attack_all(service(engine), dishonest, kinds, 2)


@pytest.mark.slow
def test_a_client_that_asks_for_everything(service):
    """Shapes beyond what the server accepts, and the largest that it does: refused, or bounded."""
    served = service("twopc")
    served.is_answered()
    settings = settings_of(served.program, SessionSpec(deadline=10.0))
    for shapes in (
        [[0, 4]],
        [[-1, 4]],
        [[1 << 62, 4]],
        [[1 << 25, 4]],
        [[1, 4, 1]],
        [],
        [[1, 4]] * 3,
        [["x", 4]],
        [[1.0, 4]],
    ):

        def ask(channel, shapes=shapes):
            agree(channel, {"inputs": shapes}, lambda theirs: (None, {}), "refused")

        channel = reach(f"127.0.0.1:{served.port}", 10.0)
        with pytest.raises(Exception, match="refused|closed"):
            open_session(Link(channel), 1, settings, "client", agree=ask).close()
        line = served.end_of_session()
        assert any(f" {error}:" in line for error in ERRORS), (json.dumps(shapes), line)
    served.is_answered()
