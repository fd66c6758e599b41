# SPDX-License-Identifier: Apache-2.0
"""How long a session lasts at most, whatever its client sends, and what a service that ends does not wait for."""

from __future__ import annotations

import contextlib
import threading
import time
from functools import partial

import pytest
import services
import torch
from running import LONG, Paused, Running
from services import deal, query, serve
from small_network import Net

from privml import _core
from privml.conversion import convert
from privml.engines.correlations import OtChoice
from privml.errors import PeerDisconnected
from privml.service import client as client_module
from privml.service import dealer as dealer_module
from privml.service import sessions
from privml.service.negotiation import settings_of
from privml.service.options import Capacity
from privml.session.connections import Link, reach
from privml.session.handshake import shake_hands
from privml.spec import SessionSpec

IDEAL = OtChoice("ideal")
VALUE = torch.tensor([[0.5, -1.0, 0.25, 2.0]])
# What a session lasts at most, by a clock that the test sets.
LONGEST = 1000.0


@pytest.fixture(scope="module")
def program():
    torch.manual_seed(4)
    return convert(Net().eval(), torch.randn(1, 4), calibration=torch.randn(64, 4) * 2)


@pytest.fixture
def server(program):
    return lambda **options: Running(partial(serve, program, "127.0.0.1:0"), **{"ot": IDEAL, **options})


@pytest.fixture
def clock(monkeypatch):
    """The clock of sessions, which a test may put forward."""

    class Clock:
        ahead = 0.0

        def monotonic(self):
            return time.monotonic() + self.ahead

    clock = Clock()
    monkeypatch.setattr(sessions, "time", clock)
    return clock


def assert_right(answer):
    assert not isinstance(answer, Exception), answer
    with torch.no_grad():
        assert (answer.outputs[0] - Net().eval()(VALUE)).abs().max() < 0.05


def connected(program, address, threads=1):
    """A client's first connection, the hellos said."""
    channel = reach(address, LONG)
    shake_hands(channel, settings_of(program, SessionSpec(ot=IDEAL, threads=threads)).hello(1, "client"))
    return channel


def trickle(channel, ended):
    """Sends what may be the beginning of a message, each byte in a frame of its own, until the connection is closed."""
    with contextlib.suppress(PeerDisconnected):
        for byte in (4000).to_bytes(4, "little") + b" " * 4000:
            channel.write(bytes([byte]))
            channel.flush()
            if ended.wait(0.1):
                return


def test_who_sends_a_little_now_and_then_holds_no_thread_for_ever(server, program, clock):
    capacity = Capacity(workers=1, session_seconds=LONGEST)
    with server(capacity=capacity) as running:
        channel, ended = connected(program, running.address), threading.Event()
        trickling = threading.Thread(target=trickle, args=(channel, ended))
        trickling.start()
        running.wait("started")
        clock.ahead += LONGEST + 1
        failed = running.wait("failed", result="late")
        ended.set()
        trickling.join(LONG)
        assert failed.fields["error"] == "PeerDisconnected" and failed.severity == "warning"
        assert "the session took longer than session_seconds=1000" in running.lines[-1]
        assert_right(query(program, running.address, VALUE, ot=IDEAL))


def test_a_query_that_takes_too_long_is_cut_off(server, program, clock):
    with server(capacity=Capacity(workers=1, session_seconds=LONGEST)) as running:
        paused = Paused(program, running.address, VALUE, ot=IDEAL).there()
        clock.ahead += LONGEST + 1
        running.wait("failed", result="late")
        assert isinstance(paused.go(), PeerDisconnected)


def test_without_a_limit_a_session_takes_as_long_as_it_takes(server, program, clock):
    with server(capacity=Capacity(workers=1, session_seconds=0)) as running:
        paused = Paused(program, running.address, VALUE, ot=IDEAL).there()
        clock.ahead += 1e9
        assert_right(paused.go())


def test_what_begins_late_gets_a_session_of_its_own(server, program, clock):
    """So a query has half of the time at least."""
    with (
        server(capacity=Capacity(workers=1, session_seconds=LONGEST)) as running,
        services.client(program, running.address, ot=IDEAL) as client,
    ):
        assert [client.query(VALUE).turn for _ in range(2)] == [1, 2]
        clock.ahead += LONGEST * 0.6
        answer = client.query(VALUE)
        assert_right(answer)
        assert answer.turn == 1
        assert "too little of its time" in running.wait("ended").fields["why"]
        assert running.kinds("failed") == []


def test_a_dealer_cuts_off_what_takes_too_long(server, program, clock, monkeypatch):
    begun, errors = threading.Event(), []

    def held(connections, service, most):
        begun.set()
        connections.channels[0, 0].read(1 << 20)  # until it is closed

    def ask(address, dealer):
        try:
            query(program, address, VALUE, dealer=dealer)
        except PeerDisconnected as error:
            errors.append(error)

    monkeypatch.setattr(dealer_module, "deal_session", held)
    with (
        Running(partial(deal, program, "127.0.0.1:0"), capacity=Capacity(session_seconds=LONGEST)) as dealing,
        server(dealer=dealing.address, capacity=Capacity(session_seconds=0)) as running,
    ):
        asking = threading.Thread(target=ask, args=(running.address, dealing.address))
        asking.start()
        assert begun.wait(LONG)
        clock.ahead += LONGEST + 1
        assert "session_seconds" in dealing.wait("failed", result="late").text
        asking.join(LONG)
        assert len(errors) == 1


# ---- the end
@pytest.mark.parametrize("engine", ["twopc", "active"])
def test_draining_does_not_wait_for_what_is_made_ahead(server, program, monkeypatch, engine):
    """Nothing was asked: the session gives way, and counts neither as cut off nor as failed."""
    held, go, make = threading.Event(), threading.Event(), client_module.make_ahead

    def hold(session, stock):
        held.set()
        assert go.wait(LONG)
        return make(session, stock)

    monkeypatch.setattr(client_module, "make_ahead", hold)
    shared = {"ot": OtChoice()} if engine == "twopc" else {"ot": OtChoice(security="malicious"), "ring": 64}
    with (
        server(capacity=Capacity(workers=1, drain_seconds=10 * LONG), deadline=10 * LONG, **shared) as running,
        services.client(program, running.address, ahead=True, **shared) as client,
    ):
        assert_right(client.query(VALUE))
        assert held.wait(LONG)
        running.stop.ask()
        assert running.result() == 1 and running.stop.cut == 0 and running.stop.exit_code == 0
        go.set()
    assert "needed its place" in running.wait("ended").fields["why"] and running.kinds("failed") == []


def test_a_session_that_is_cut_off_does_not_wait_for_its_further_connections(server, program):
    with server(threads=2, deadline=10 * LONG, capacity=Capacity(workers=1, drain_seconds=10 * LONG)) as running:
        connected(program, running.address, threads=2)
        running.stop.ask()
        running.stop.ask()
        running.result()
        kinds = [event.kind for event in running.events]
        assert "failed" in kinds and kinds.index("failed") < kinds.index("stopped")
        assert "closed" in running.kinds("failed")[0].text


def test_what_joins_a_closed_session_is_closed():
    first, late = _core.memory_pair(), _core.memory_pair()
    link = Link(first[0])
    link.close()
    link.add([late[0]])
    for end in (first[1], late[1]):
        end.set_deadline(LONG)
        with pytest.raises(PeerDisconnected, match="closed"):
            end.read(1)
