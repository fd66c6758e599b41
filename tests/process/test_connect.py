# SPDX-License-Identifier: Apache-2.0
"""Two real processes: late peers, dead peers, stopped peers, wrong peers. Nothing may hang."""

from __future__ import annotations

import socket

import pytest
from patience import ENDLESS, PATIENCE

from privml.engines.correlations import OtChoice

ANY = "127.0.0.1:0"
EXPECTED = f"result {sum(range(500))}"


def pair(party, first: dict, second: dict, ranks=(0, 1)):
    a = party(ranks[0], "listen", ANY, **first)
    b = party(ranks[1], "connect", "127.0.0.1:" + a.line("port").split()[1], **second)
    return a, b


@pytest.mark.parametrize(
    "settings", [{}, {"ot": OtChoice(k=8)}, {"ot": OtChoice("silent")}, {"ot": OtChoice("ideal")}], ids=str
)
def test_two_processes_agree(party, settings):
    a, b = pair(party, {"settings": settings}, {"settings": settings})
    assert (a.last(), b.last()) == (EXPECTED, EXPECTED)


def test_late_listener(party, free_port):
    b = party(1, "connect", f"127.0.0.1:{free_port}")
    b.line("waiting")
    a = party(0, "listen", f"127.0.0.1:{free_port}")
    assert (a.last(), b.last()) == (EXPECTED, EXPECTED)


def test_late_connector(party):
    a = party(0, "listen", ANY)
    port = a.line("port").split()[1]
    a.line("waiting")
    b = party(1, "connect", f"127.0.0.1:{port}")
    assert (a.last(), b.last()) == (EXPECTED, EXPECTED)


@pytest.mark.parametrize("side", ["listen", "connect"])
def test_nobody_comes(party, free_port, side):
    lonely = party(0, side, f"127.0.0.1:{free_port}", deadline=1.0)
    last = lonely.last()
    assert last.startswith("error PeerDisconnected") and "within 1 seconds" in last and str(free_port) in last


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("die_at", ["handshake", "setup", "opened", "preprocess", "online"])
def test_killed_peer(party, victim, die_at):
    options = [{"phase": die_at, "deadline": ENDLESS}, {"phase": die_at, "deadline": ENDLESS}]
    options[victim]["die_at"] = die_at
    both = pair(party, *options)
    survivor, dead = both[1 - victim], both[victim]
    dead.process.join(PATIENCE)
    last = survivor.last()  # a closed socket is noticed at once, long before the deadline
    assert dead.process.exitcode == -9
    assert last.startswith("error PeerDisconnected"), survivor.lines


@pytest.mark.parametrize("victim", [0, 1])
def test_stopped_peer_ends_at_the_deadline(party, victim):
    options = [{"deadline": 2.0}, {"deadline": 2.0}]
    options[victim] |= {"die_at": "stop"}
    both = pair(party, *options)
    last = both[1 - victim].last()
    assert last.startswith("error PeerDisconnected"), last


@pytest.mark.parametrize("ranks", [(0, 0), (1, 1)])
def test_same_rank(party, ranks):
    for each in pair(party, {}, {}, ranks):
        last = each.last()
        assert last.startswith("error HandshakeMismatch") and f"rank is {ranks[0]} here" in last


@pytest.mark.parametrize(
    "theirs, field", [({"program": "00"}, "program"), ({"ot": OtChoice(k=2)}, "k"), ({"ot": OtChoice("ideal")}, "ot")]
)
def test_different_settings(party, theirs, field):
    for each in pair(party, {"settings": {"program": "11"}}, {"settings": {"program": "11"} | theirs}):
        last = each.last()
        assert last.startswith("error HandshakeMismatch") and f": {field} is " in last


def test_port_in_use(party):
    a = party(0, "listen", ANY)
    address = "127.0.0.1:" + a.line("port").split()[1]
    last = party(0, "listen", address).last()
    assert last.startswith("error ConfigError") and address.split(":")[1] in last


@pytest.mark.parametrize(
    "sent",
    [b"GET / HTTP/1.1\r\n\r\n" * 4, bytes(100), b"\xff" * 100, b"\x10\0\0\0" + b"\0" * 96],
    ids=["http", "zeros", "ones", "frame"],
)
def test_garbage_on_the_port(party, sent):
    a = party(0, "listen", ANY)
    with socket.create_connection(("127.0.0.1", int(a.line("port").split()[1]))) as scanner:
        scanner.sendall(sent)
        assert a.last().startswith("error ProtocolError"), a.lines


def test_scanner_that_says_nothing(party):
    a = party(0, "listen", ANY, deadline=1.0)
    with socket.create_connection(("127.0.0.1", int(a.line("port").split()[1]))):
        assert a.last().startswith("error PeerDisconnected"), a.lines
