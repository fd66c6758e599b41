# SPDX-License-Identifier: Apache-2.0
"""A server whose client sends what it should not, at every step of a query: the connection ends with an error of
privml, memory and descriptors stay as they were, and the next client is served."""

from __future__ import annotations

import json
import random
import secrets
import socket
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
import service_party
import torch
from small_network import Net

from privml.conversion import convert
from privml.engines.correlations import OtChoice
from privml.program import Program
from privml.service.query import query
from privml.service.serve import settings_of
from privml.session.agreement import agree
from privml.session.connect import reach
from privml.session.session import open_session

sys.path.insert(0, str(Path(__file__).parents[1] / "security"))
import adversary

INPUT = [[0.5, -1.0, 0.25, 2.0]]
# How long the server waits for a client; attacks that leave it waiting take as long.
DEADLINE = 2.0
MEGABYTES = 200
# Connections that the error of the last failed session may still refer to, of a hundred or so that failed.
ONE_SESSION = 3
ERRORS = (
    "ProtocolError", "PeerDisconnected", "SecurityAbort", "HandshakeMismatch", "InvalidInput", "IdentityError",
    "StoreError",
)  # fmt: skip
ENGINES = {"twopc": {}, "twopc, silent": {"provider": "silent"}, "active": {"ring": 32}, "threepc": {"dealer": True}}

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


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("program")
    torch.manual_seed(4)
    convert(Net().eval(), calibration=torch.randn(64, 4) * 2, numerics={"bits": 32}).save(path)
    return path


class Service:
    """A server, and for three parties its dealer, as processes."""

    def __init__(self, start, folder, engine):
        self.program = Program.load(folder)
        options = dict(ENGINES[engine])
        self.options = {"deadline": DEADLINE}
        if options.pop("dealer", False):
            dealer = start(service_party.deal_program, str(folder), {"deadline": DEADLINE, "sessions": 0})
            self.options["dealer"] = "127.0.0.1:" + dealer.line("port").split()[1]
        if "provider" in options:
            self.options["ot"] = OtChoice(options.pop("provider"), 0)
        self.options |= options
        self.running = start(service_party.serve_program, str(folder), dict(self.options))
        self.port = int(self.running.line("port").split()[1])
        self.running.line("log listening")
        self.process = psutil.Process(self.running.process.pid)

    def ask(self, address=None, deadline=20.0):
        return query(
            self.program,
            address or f"127.0.0.1:{self.port}",
            torch.tensor(INPUT),
            **{**self.options, "deadline": deadline},
        ).outputs[0]

    def is_answered(self):
        with torch.no_grad():
            exact = Net().eval()(torch.tensor(INPUT))
        assert (self.ask() - exact).abs().max() < 0.05
        assert "without an answer" not in self.end_of_session()

    def end_of_session(self):
        """What the server says at the end of a connection."""
        return self.running.line("log a ", timeout=30)

    def meet(self, attack):
        """A query under ``attack``; what the server says of it."""
        with adversary.Relay(self.port, 1, attack) as relay:
            thread = threading.Thread(target=self._try, args=(relay.address,))
            thread.start()
            line = self.end_of_session()
            thread.join(30)
            assert not thread.is_alive(), "the client hangs"
        return line

    def _try(self, address):
        try:
            self.ask(address, DEADLINE)
        except Exception as error:
            self.client_error = error

    def frames(self):
        """The sizes of an honest client's frames."""
        with adversary.Relay(self.port, 1, adversary.nothing) as relay:
            self.ask(relay.address)
        self.end_of_session()
        return relay.sizes


@pytest.fixture
def service(start, folder):
    return lambda engine: Service(start, folder, engine)


def positions(count, how_many):
    """Frames of the beginning, one by one, then some of the rest."""
    first = (0, 1, 2)[: max(how_many, 1)]
    chosen = {*first, count - 1, *random.Random(1).sample(range(count), min(count, how_many))}
    return sorted(place for place in chosen if 0 <= place < count)


def attack_all(served, kinds, how_many, may_be_answered):
    served.is_answered()
    count = len(served.frames())
    before, open_files, threads = (
        served.process.memory_info().rss,
        served.process.num_fds(),
        served.process.num_threads(),
    )
    for name, kind in kinds.items():
        for frame in positions(count, how_many):
            line = served.meet(kind(frame))
            refused = any(f" {error}:" in line for error in ERRORS)
            assert refused or (may_be_answered and "session ended" in line), (name, frame, line)
            assert "\x1b" not in line and len(line) < 1000
    served.is_answered()
    end = time.monotonic() + 10
    while served.process.num_fds() > open_files + ONE_SESSION and time.monotonic() < end:
        time.sleep(0.1)
    assert served.process.num_fds() <= open_files + ONE_SESSION and served.process.num_threads() <= threads + 1
    assert (served.process.memory_info().rss - before) >> 20 < MEGABYTES


def test_a_client_that_sends_no_frames(service):
    served = service("twopc")
    served.is_answered()
    before = served.process.memory_info().rss
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
    assert (served.process.memory_info().rss - before) >> 20 < MEGABYTES


def test_a_client_whose_messages_break_off(service):
    attack_all(service("twopc"), {name: BREAKS[name] for name in ("huge length", "garbage behind it")}, 1, True)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kinds", [CHANGES, BREAKS], ids=["changes", "breaks"])
def test_a_client_that_deviates_at_every_step(service, engine, kinds):
    """Actively secure sessions notice every change; others may compute on with wrong values, for the client alone."""
    attack_all(service(engine), kinds, 6, engine != "active" or kinds is BREAKS)


@pytest.mark.slow
def test_a_client_that_asks_for_everything(service):
    """Shapes beyond what the server accepts, and the largest that it does: refused, or bounded."""
    served = service("twopc")
    served.is_answered()
    settings = settings_of(served.program, OtChoice())
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
            open_session(channel, 1, settings, role="client", deadline=10.0, agree=ask).close()
        line = served.end_of_session()
        assert any(f" {error}:" in line for error in ERRORS), (json.dumps(shapes), line)
    served.is_answered()
